# SPDX-License-Identifier: Apache-2.0
"""`twinstep tokenize`: rows of text or messages become rows of token ids, as TRL makes them, by the
model's own tokenizer and chat template. The work is docs/pretokenise.py's (docs/DATA.md), which
a wheel carries beside this file; it runs as a process of this Python, which has transformers."""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CARRIED = "_pretokenise.py"     # as twinstep_build.py names it


class NotTokenized(ValueError):
    """A row or the tokenizer cannot be used; the text names the line."""


def script() -> pathlib.Path:
    """The script: that of the wheel, else of the checkout. Raises FileNotFoundError."""
    here = pathlib.Path(__file__)
    for place in (here.with_name(CARRIED), here.parents[3] / "docs" / "pretokenise.py"):
        if place.is_file():
            return place
    raise FileNotFoundError(f"{here.with_name(CARRIED)}: this package came without it")


def tokenize(model: str | os.PathLike[str],
             rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]], *,
             output: str | os.PathLike[str] | None = None,
             overwrite: bool = False) -> list[dict[str, Any]]:
    """Returns the rows as token ids (docs/DATA.md has their forms), and writes them to `output`.

    `rows` is a JSONL file or the rows themselves, all of one form; `model` a folder with
    tokenizer.json or a name that transformers knows. Raises NotTokenized, with the line, and
    FileExistsError; then nothing is written."""
    if output is not None and os.path.exists(output) and not overwrite:
        raise FileExistsError(f"{output} exists: give another name, or overwrite")
    if isinstance(rows, (str, os.PathLike)):
        given = pathlib.Path(rows).read_bytes()
    else:
        given = "".join(json.dumps(dict(row)) + "\n" for row in rows).encode()
    done = subprocess.run([sys.executable, str(script()), os.fspath(model)], input=given,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            "it ended without a word"]
        raise NotTokenized(words[-1].removeprefix("pretokenise.py: "))
    if output is not None:
        _write(pathlib.Path(output), done.stdout, overwrite)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _write(place: pathlib.Path, raw: bytes, overwrite: bool) -> None:
    part = place.with_name(f"{place.name}.part{os.getpid()}")
    try:
        part.write_bytes(raw)
        if overwrite:
            os.replace(part, place)
        else:
            os.link(part, place)        # unlike a rename, a link overwrites nothing
    finally:
        part.unlink(missing_ok=True)


def main(words: Sequence[str]) -> int:
    """`twinstep tokenize`. Returns 0, or 2 where a row or the tokenizer cannot be used."""
    parser = argparse.ArgumentParser(prog="twinstep tokenize", description=(
        "Makes rows of token ids of rows of text or messages, as TRL does, by the model's own "
        "tokenizer and chat template. It needs transformers."),
        epilog="Nothing is written unless every row is good. Exit status: 0 written; 2 error.")
    parser.add_argument("model", metavar="MODEL", help="folder with tokenizer.json, or a name")
    parser.add_argument("rows", metavar="ROWS.jsonl", help="prompt, chosen, rejected; chosen, "
                        "rejected; prompt, completion; messages; or text")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="JSONL of ids to write")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    asked = parser.parse_args(words)
    try:
        made = tokenize(asked.model, asked.rows, output=asked.output, overwrite=asked.overwrite)
    except (OSError, NotTokenized) as error:
        print(f"twinstep: error: {error}", file=sys.stderr)
        return 2
    print(f"{asked.output}: {len(made)} row{'s' if len(made) != 1 else ''} of token ids "
          f"(twinstep data show {asked.output})")
    return 0
