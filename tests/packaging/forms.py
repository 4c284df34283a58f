"""The workflow and the forms of .github/ are what the host expects: python3 forms.py ROOT

Valid YAML; the workflow calls commands that are there; each form has a name, a description and fields with labels and
distinct ids. Prints one line for each that does not, and ends with status 1.
"""

import pathlib
import re
import sys

import yaml

root = pathlib.Path(sys.argv[1])
faults = []
files = sorted((root / ".github").rglob("*.yml"))
read = {}
for path in files:
    try:
        read[path.name] = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        faults.append(f"{path.relative_to(root)}: {error}")

for name in ("bug.yml", "question.yml", "documentation.yml"):
    form = read.get(name) or {}
    fields = [field for field in form.get("body", []) if field["type"] != "markdown"]
    ids = [field.get("id") for field in fields]
    if not (form.get("name") and form.get("description") and fields):
        faults.append(f"{name}: expected name, description and a body with fields")
    if None in ids or len(set(ids)) < len(ids):
        faults.append(f"{name}: found the ids {ids}, expected one for each field, all different")
    faults += [f"{name}: {field['id']} has no label" for field in fields if not field["attributes"].get("label")]

commands = [step["run"] for job in read.get("ci.yml", {}).get("jobs", {}).values() for step in job["steps"] if "run" in step]
scripts = [script for command in commands for script in re.findall(r"bash (\S+)", command)]
for script in ("examples/run.sh", "tests/run.sh"):
    if script not in scripts:
        faults.append(f"ci.yml: does not call {script}")
faults += [f"ci.yml: no file {script}" for script in scripts if not (root / script).exists()]

print("\n".join(faults) or f"{len(files)} files")
sys.exit(bool(faults))
