#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of docs/PLUGINS.md and compares what it prints.

    document.py --binary BIN --headers LIST.cmake [--compiler CC] [--flags "..."]

In a folder of its own, with the listed headers under include/twinstep (so a header that is missing
from the list shows here) and copies of the templates. Commands stand behind "$ "; "..." in what is
expected stands for any text, alone in a line for any lines. "cc" is the compiler given."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def matches(expected, got):
    pattern = re.escape(expected).replace(re.escape("\n...\n"), r"\n(?:.*\n)*")
    return re.fullmatch(pattern.replace(re.escape("..."), "[^\n]*"), got) is not None


def sessions(text):
    """Returns the files to write (name, text) and the commands (command, output), in the page's
    order."""
    fence = r"```\w+\n(.*?)```"
    for match in re.finditer(rf"<!-- (file|session): ([\w.]+) -->\n{fence}", text, re.S):
        kind, name, body = match.groups()
        if kind == "file":
            yield name, body, None
            continue
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M):
            yield None, command, output


def prepare(folder, headers):
    listed = re.search(r"TWINSTEP_MODULE_HEADERS\s+([^)]*)\)", headers.read_text()).group(1).split()
    for header in listed:
        target = folder / "include/twinstep" / header
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / header, target)
    for template in ("template_optim.c", "template_sched.c"):
        shutil.copy(ROOT / "tests/plugins" / template, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    binary = pathlib.Path(options.binary).resolve()
    text = (ROOT / "docs/PLUGINS.md").read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"}
    count = wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder, options.headers)
        for file, body, output in sessions(text):
            if file is not None:
                (folder / file).write_text(body, encoding="utf-8")
                continue
            command = re.sub(r"^cc ", f"{options.compiler} {options.flags} ", body)
            result = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            count += 1
            if not matches(output, result.stdout):
                wrong += 1
                print(f"$ {body}\nexpected:\n{output}got:\n{result.stdout}")
    print(f"{count} commands of docs/PLUGINS.md, {wrong} print something else")
    return 1 if wrong or count < 8 else 0


if __name__ == "__main__":
    sys.exit(main())
