"""The notebooks of docs/notebooks run without an error, and are stored as they ran. `python test_notebooks.py` runs
them and stores what they show."""
import base64
import pathlib
import sys

import pytest

nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(path):
    """The notebook with new outputs; raises CellExecutionError."""
    notebook = nbformat.read(path, 4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def figures(notebook):
    return [output.data["image/png"] for cell in code(notebook) for output in cell.outputs if "image/png" in output.get("data", {})]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    stored, again = nbformat.read(path, 4), run(path)
    nbformat.validate(stored)
    assert [cell.execution_count for cell in code(stored)] == list(range(1, len(code(stored)) + 1)), "store it as it ran"
    assert len(figures(again)) == len(figures(stored)) > 0
    assert all(len(base64.b64decode(figure)) < 60000 for figure in figures(stored))


def store(path):
    notebook = run(path)
    for number, cell in enumerate(notebook.cells):  # nothing that differs without a reason from run to run
        cell.id, cell.metadata = f"cell{number}", {}
        if cell.cell_type != "code":
            continue
        kept = []
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):  # without its name, <Figure size ...>
                output.data, output.metadata = {"image/png": output.data["image/png"]}, {}
            if kept and output.get("name", "") == kept[-1].get("name") == "stdout":  # printed with pauses
                kept[-1].text += output.text
            else:
                kept.append(output)
        cell.outputs = kept
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for path in sys.argv[1:] or NOTEBOOKS:
        store(pathlib.Path(path))
