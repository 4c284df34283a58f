"""Archives of NumPy, plain and compressed, taken apart by the command in docs/io/npy.md and read by xtensor.

Usage: read_npz.py PROGRAM      PROGRAM is the built read_npy
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "io" / "npy.md"
command = re.search(r"^python3 (-m zipfile -e) model.npz model\b", PAGE.read_text(), re.M)[1].split()

arrays = {"E": np.arange(6, dtype=np.float32).reshape(2, 3) / 7, "lstm.W": np.array([[-1e-30, 3e38]], dtype=np.float32)}
for save in np.savez, np.savez_compressed:
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/model.npz", **arrays)
        subprocess.run([sys.executable, *command, "model.npz", "model"], cwd=folder, check=True)
        said = subprocess.run([sys.argv[1], *(f"{folder}/model/{name}.npy" for name in arrays)], capture_output=True, text=True, check=True)
    for line, array in zip(said.stdout.splitlines(), arrays.values(), strict=True):
        rows, columns, *values = line.split()
        assert (int(rows), int(columns)) == array.shape, (line, array)
        assert np.array_equal(np.array(values, dtype=np.float32).reshape(array.shape), array), (line, array)
print("read")
