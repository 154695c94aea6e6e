#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks, headless, on traces that the program makes here and now.

    notebooks.py --binary TWINSTEP [--keep FOLDER] [NAME...]

A notebook's first cell shows the commands that make its traces, in a block of `sh`: they are run as
they stand there. Then each notebook must execute without an error, and every cell that shows a
figure must give one. (That committed notebooks hold no outputs is a rule of lint.py.) Exit status 77
(skipped) where h5py, matplotlib, nbclient or ipykernel is missing, 1 when something fails, 0
otherwise. --keep leaves traces, executed notebooks and pictures in FOLDER."""
import argparse
import base64
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("numpy", "h5py", "matplotlib", "nbformat", "nbclient", "ipykernel")
LEAST_PICTURE = 11000  # bytes; empty axes of such figures have up to 9,200


def missing():
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def source_of(cell):
    return "".join(cell["source"])


def commands_of(document):
    blocks = re.findall(r"```sh\n(.*?)```", source_of(document["cells"][0]), re.S)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines() if line.strip()]
    assert lines and all(words[0] == "twinstep" for words in lines), "the first cell has no commands"
    return lines


def make_traces(binary, document, folder):
    for words in commands_of(document):
        result = subprocess.run([binary, *words[1:]], cwd=folder, capture_output=True, text=True,
                                check=False, timeout=300)
        # 1 is a verdict: something differs.
        if result.returncode not in (0, 1):
            raise RuntimeError(f"{shlex.join(words)}: exit status {result.returncode}\n"
                               f"{result.stdout}{result.stderr}")


def execute(path, folder):
    import nbclient
    import nbformat
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(folder)}}).execute()
    nbformat.validate(notebook)
    return notebook


def pictures_of(cell):
    return [base64.b64decode(output["data"]["image/png"]) for output in cell["outputs"]
            if "image/png" in output.get("data", {})]


def executed_faults(notebook, stem, folder):
    shown = 0
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code":
            continue
        pictures = pictures_of(cell)
        expected = source_of(cell).count("plt.show()")
        if len(pictures) != expected:
            yield f"cell {number}: {len(pictures)} pictures, expected {expected}"
        for output in cell["outputs"]:
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield f"cell {number}: {output.get('text') or output.get('evalue')}"
        for picture in pictures:
            shown += 1
            (folder / f"{stem}-{shown}.png").write_bytes(picture)
            if len(picture) < LEAST_PICTURE:
                yield f"cell {number}: a picture of {len(picture)} bytes is empty"
    if shown == 0:
        yield "no picture at all"


def check(binary, path, folder):
    began = time.monotonic()
    document = json.loads(path.read_text(encoding="utf-8"))
    faults = []
    try:
        make_traces(binary, document, folder)
        made = time.monotonic()
        notebook = execute(path, folder)
        (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
        faults += executed_faults(notebook, path.stem, folder)
        print(f"{path.name}: traces {made - began:.1f} s, cells {time.monotonic() - made:.1f} s")
    except Exception as error:  # pylint: disable=broad-except
        faults.append(f"{type(error).__name__}: {error}")
    for fault in faults:
        print(f"{path.name}: {fault}")
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    lacking = missing()
    if lacking:
        print(f"skipped: this Python has no {', '.join(lacking)}")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        # Nothing of the user's set-up decides what is drawn, and nothing is left in his home.
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR",
                     "MPLCONFIGDIR"):
            os.environ[name] = temporary
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # warns on stderr otherwise
        paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
        chosen = [p for p in paths if not options.names or p.stem in options.names]
        assert chosen, "no notebook"
        binary = str(pathlib.Path(options.binary).resolve())
        results = [check(binary, path, folder) for path in chosen]
        print(f"{len(results)} notebooks, {results.count(False)} failed")
        return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
