#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/BADINPUT.md: each command ends as its row says, and each test that it names exists.

    bad_input.py BINARY [--tests BUILD]

A row has a class, a command (may be empty), the exit status, a part of the text, and the test: a
file, and where one is named, the function in it. A text must stand in that file, too, however its
lines are broken, since it is that test which holds it for more than one input. The function must be
called, and with --tests a test of ctest in that build folder must run the file."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROW = re.compile(r"^\| (?P<class>[^|]+) \| (?P<command>`[^|]+`)? ?\| (?P<status>\d) \| (?P<text>`[^|]+`)? ?"
                 r"\| `(?P<file>[^`]+)`(?: `(?P<function>\w+)`)? \|$")


def source_of(path):
    """A test's text with strings that C or Python would join in one piece, without escapes."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.sub(r'"\s*f?"', "", file.read().replace('\\"', "\0")).replace("\0", '"')


def tests_of(build):
    """Commands of every test that ctest has, in one text, and their names."""
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                          check=True)
    tests = json.loads(done.stdout)["tests"]
    return "\n".join(" ".join(test.get("command", ())) for test in tests), {test["name"] for test in tests}


def is_run(path, tests):
    """Whether a test runs the file: a program of C by its name, a script by its path."""
    commands, names = tests
    name, kind = os.path.splitext(os.path.basename(path))
    return name in names if kind == ".c" else f"/{path}" in commands


def fault_of(row, binary, folder, tests):
    """What is wrong with a row; None if nothing is."""
    command, text = (row[key][1:-1] if row[key] else "" for key in ("command", "text"))
    path = os.path.join(ROOT, row["file"])
    if not os.path.isfile(path):
        return f"{row['file']} is no file"
    source = source_of(path)
    if row["function"] and not re.search(rf"\b(void|def) {row['function']}\(", source):
        return f"{row['file']} has no {row['function']}"
    if row["function"] and len(re.findall(rf"\b{row['function']}\b", source)) < 2:
        return f"{row['file']} does not call {row['function']}"
    if tests and not is_run(row["file"], tests):
        return f"no test of ctest runs {row['file']}"
    if text and text not in source:
        return f"{row['file']} does not say {text!r}"
    if not command:
        return None
    done = subprocess.run(["sh", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PATH": f"{os.path.dirname(binary)}:{os.environ['PATH']}"})
    if done.returncode != int(row["status"]) or text not in done.stderr or not done.stderr:
        return f"exit status {done.returncode}, {done.stderr!r}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--tests", metavar="BUILD")
    options = parser.parse_args()
    binary, tests = options.binary, tests_of(options.tests) if options.tests else None
    wrong = count = commands = 0
    with tempfile.TemporaryDirectory(prefix="twinstep-bad-") as top:
        trace = os.path.join(top, "t.h5")
        subprocess.run([binary, "run", "null-pair", "--set", "steps=1", "--quiet", "-o", trace],
                       stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(ROOT, "docs", "BADINPUT.md"), encoding="utf-8") as page:
            lines = [line.rstrip("\n") for line in page if line.startswith("| ")][1:]
        for line in lines:
            row = ROW.match(line)
            folder = tempfile.mkdtemp(dir=top)
            shutil.copy(trace, folder)
            fault = "not a row of this page" if row is None else fault_of(row, binary, folder, tests)
            count += 1
            commands += row is not None and bool(row["command"])
            wrong += fault is not None
            if fault is not None:
                print(f"bad_input.py: {line[:60]}: {fault}", file=sys.stderr)
    print(f"{count} classes, {commands} commands, {wrong} wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
