#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks, headless, on traces that the program makes here and now, and holds what is
committed equal to what they show.

    notebooks.py --binary TWINSTEP [--keep FOLDER] [--commit] [NAME...]

A notebook's first cell shows the commands that make its traces, in a block of `sh` (twinstep, or
gzip -dc of a recording that is committed): they are run as they stand there. Then each cell must execute without an error, its text must be the committed text,
and each figure must draw the data that the committed picture drew: the numbers behind lines, bars,
bands and images, rounded to five digits, are hashed into the picture's metadata ("drawn"). The PNG
itself may differ, since fonts and versions of matplotlib do. --commit rewrites the notebooks, --keep
leaves traces, executed notebooks and pictures in FOLDER. Exit status 77 (skipped) where h5py,
matplotlib, nbclient or ipykernel is missing, 1 when something fails, 0 otherwise."""
import argparse
import base64
import difflib
import gzip
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
MOST_PICTURE = 60000  # bytes; pictures are committed
DRAWN = "application/x-drawn"

# IPython runs this before the first cell: each figure that is shown then tells what it draws.
STARTUP = """
def _watch():
    import hashlib
    import numpy as np
    import matplotlib.pyplot as plt
    from IPython.display import display

    def numbers(axes):
        yield from (line.get_xydata() for line in axes.lines)
        yield from (patch.get_patch_transform().transform(patch.get_path().vertices)
                    for patch in axes.patches)
        yield from (path.vertices for group in axes.collections for path in group.get_paths())
        yield from (np.ma.filled(image.get_array(), np.nan) for image in axes.images)

    def digest(figure):
        numbers_of_all = [np.asarray(part, dtype=float).ravel()
                          for axes in figure.axes for part in numbers(axes)]
        if not numbers_of_all or not np.isfinite(np.concatenate(numbers_of_all)).any():
            return "nothing"
        words = ["%.5g" % x for part in numbers_of_all for x in part]
        return hashlib.sha256(" ".join(words).encode()).hexdigest()

    shown = plt.show

    def show(*words, **options):
        for number in plt.get_fignums():
            display({"DRAWN": digest(plt.figure(number))}, raw=True)
        shown(*words, **options)
    plt.show = show
_watch()
del _watch
""".replace("DRAWN", DRAWN)


def missing():
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def source_of(cell):
    return "".join(cell["source"])


def commands_of(document):
    blocks = re.findall(r"```sh\n(.*?)```", source_of(document["cells"][0]), re.S)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines() if line.strip()]
    assert lines and all(words[0] == "twinstep" or is_unpacking(words) for words in lines), \
        "the first cell has no commands, or others than twinstep and gzip -dc FILE > FILE"
    return lines


def is_unpacking(words):
    """Whether it is `gzip -dc FILE > FILE`, by which a notebook takes a recording that is committed."""
    return words[:2] == ["gzip", "-dc"] and len(words) == 5 and words[3] == ">"


def make_traces(binary, document, folder):
    for words in commands_of(document):
        if is_unpacking(words):         # its paths are those of the folder of notebooks
            packed = (ROOT / "notebooks" / words[2]).read_bytes()
            (folder / words[4]).write_bytes(gzip.decompress(packed))
            continue
        result = subprocess.run([binary, *words[1:]], cwd=folder, capture_output=True, text=True,
                                check=False, timeout=1800)
        # exit status 1 is a verdict: something differs
        if result.returncode not in (0, 1):
            raise RuntimeError(f"{shlex.join(words)}: exit status {result.returncode}\n"
                               f"{result.stdout}{result.stderr}")


def execute(path, folder):
    import nbclient
    import nbformat
    notebook = nbformat.read(path, as_version=4)
    metadata = dict(notebook.metadata)  # the kernel adds its version to it
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata = metadata
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = with_drawn(cell.outputs)
    nbformat.validate(notebook)
    return notebook


def with_drawn(outputs):
    """Moves the digests of figures from outputs of their own to the pictures that follow them."""
    kept, digests = [], []
    for output in outputs:
        if DRAWN in output.get("data", {}):
            digests.append(output["data"][DRAWN])
            continue
        if "image/png" in output.get("data", {}):
            output["metadata"] = {"drawn": digests.pop(0) if digests else "unknown"}
        kept.append(output)
    return kept


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
            if output.get("metadata", {}).get("drawn") == "nothing":
                yield f"cell {number}: an empty picture"
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield f"cell {number}: {output.get('text') or output.get('evalue')}"
        for picture in pictures:
            shown += 1
            (folder / f"{stem}-{shown}.png").write_bytes(picture)
            if len(picture) > MOST_PICTURE:
                yield f"cell {number}: a picture of {len(picture)} bytes is too large to commit"
    if shown == 0:
        yield "no picture at all"


def said_by(cell):
    """Returns what a cell shows, except the bytes of pictures: text, and what each figure drew."""
    lines = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            lines.append(f"picture of {output['metadata'].get('drawn')}")
        else:
            lines += "".join(output.get("text", data.get("text/plain", ""))).splitlines()
    return lines


def committed_faults(document, notebook):
    for number, (old, new) in enumerate(zip(document["cells"], notebook.cells), 1):
        changes = difflib.unified_diff(said_by(old), said_by(new), "committed", "executed",
                                       lineterm="")
        for change in changes:
            yield f"cell {number}: {change}"


def written(notebook):
    """Returns the notebook as nbformat writes it: lists of lines, one line each."""
    import nbformat
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def check(binary, path, folder, commit):
    began = time.monotonic()
    document = json.loads(path.read_text(encoding="utf-8"))
    faults = []
    try:
        make_traces(binary, document, folder)
        made = time.monotonic()
        notebook = execute(path, folder)
        (folder / path.name).write_text(written(notebook), encoding="utf-8")
        faults += executed_faults(notebook, path.stem, folder)
        if commit and not faults:
            path.write_text(written(notebook), encoding="utf-8")
        faults += committed_faults(document, notebook) if not commit else []
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
    parser.add_argument("--commit", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    lacking = missing()
    if lacking:
        print(f"skipped: this Python has no {', '.join(lacking)}")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        # Nothing in the user's setup may decide what is drawn, and nothing may be left in the
        # user's home.
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR",
                     "MPLCONFIGDIR"):
            os.environ[name] = temporary
        startup = pathlib.Path(temporary) / "profile_default/startup"
        startup.mkdir(parents=True)
        (startup / "watch.py").write_text(STARTUP, encoding="utf-8")
        os.environ["PYTHONPATH"] = str(ROOT / "python/src")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["TWINSTEP_PROGRAM"] = str(pathlib.Path(options.binary).resolve())
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # warns on stderr otherwise
        paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
        chosen = [p for p in paths if not options.names or p.stem in options.names]
        assert chosen, "no notebook"
        binary = str(pathlib.Path(options.binary).resolve())
        results = [check(binary, path, folder, options.commit) for path in chosen]
        print(f"{len(results)} notebooks, {results.count(False)} failed")
        return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
