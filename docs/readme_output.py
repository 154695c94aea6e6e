#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that documents show, and puts what they print under them.

    docs/readme_output.py [--binary build/default/bin/twinstep] [--tests LOG] [PAGE...]  rewrite
    docs/readme_output.py --check --binary B [PAGE...]                     compare; 1: differs

In README.md and every page under docs/, the block between "<!-- output -->" and "<!-- end -->" is
what the block of `sh` before it prints, its commands run by a shell with `twinstep` on the path and
in a folder of the page's own, in the order of the page. Comments in the page say what else is
needed; the reader does not see them:

    <!-- output: status 1, lines 7 -->     the last command ends with 1 (default 0); 7 lines are shown
    <!-- output: lines 3-9 -->             lines 3 to 9 are shown, "..." for what is left out
    <!-- output: of COMMAND -->            COMMAND is run instead of the block before
    <!-- files: PATH... -->                these files and folders of the repository are there
    <!-- file: NAME -->                    the block after it is written to NAME
    <!-- run: COMMAND -->                  run, with nothing shown
    <!-- output: test -->                  the summary of a log of `sh bootstrap.sh test` (--tests);
                                           its seconds are one machine's, so --check leaves it out

docs/SCENARIOS.md is what `twinstep keys --markdown` prints, all of it; outputs of commands in that
are run, too, so a difference there is mended in the program."""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PART = re.compile(r"<!-- (?P<word>files|file|run|output)(?:: (?P<what>[^\n]*?))? -->\n"
                  r"|```(?P<kind>\w*)\n(?P<block>.*?)^```\n", re.S | re.M)
SHOWN = re.compile(r"```\n(.*?)^```\n<!-- end -->", re.S | re.M)


class Page:
    """One page, its folder, and the text so far."""

    def __init__(self, path, binary, summary):
        self.path, self.summary = path, summary
        self.name = path.relative_to(ROOT).as_posix()
        self.old = path.read_text(encoding="utf-8")
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name) / "here"
        self.folder.mkdir()
        tools = pathlib.Path(self.temporary.name) / "bin"
        tools.mkdir()
        (tools / "twinstep").symlink_to(binary)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C"}

    def fail(self, position, text):
        line = self.old.count("\n", 0, position) + 1
        raise SystemExit(f"{self.name}:{line}: {text}")

    def run(self, position, command, status=0):
        result = subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.environment,
                                capture_output=True, text=True, check=False, timeout=300)
        if result.returncode != status:
            self.fail(position, f"expected exit status {status}, got {result.returncode}: "
                                f"{command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def shown(self, position, what, block):
        """The output that stands under a block, as the words of its comment say."""
        options, _, command = what.partition("of ")
        status = re.search(r"status (\d+)", options)
        lines = re.search(r"lines (?:(\d+)-)?(\d+)", options)
        output = self.run(position, command or block, int(status.group(1)) if status else 0)
        rows = output.splitlines(keepends=True)
        if not lines:
            return output
        first, last = int(lines.group(1) or 1), int(lines.group(2))
        before = ["...\n"] if first > 1 else []
        after = ["...\n"] if last < len(rows) else []
        return "".join([*before, *rows[first - 1:last], *after])

    def rewritten(self):
        text, position, block, name = [], 0, None, None
        while (part := PART.search(self.old, position)) is not None:
            word, what = part.group("word"), part.group("what") or ""
            text.append(self.old[position:part.end()])
            position = part.end()
            if word is None:
                block = part.group("block")
                if name:
                    (self.folder / name).write_text(block, encoding="utf-8")
                    name = None
            elif word == "files":
                for path in what.split():
                    source = ROOT / path
                    if source.is_dir():
                        (self.folder / path).symlink_to(source)
                    else:
                        shutil.copy(source, self.folder)
            elif word == "file":
                name = what
            elif word == "run":
                self.run(part.start(), what)
            else:
                old = SHOWN.match(self.old, position)
                if old is None:
                    self.fail(position, "expected a block and <!-- end --> after <!-- output -->")
                new = self.summary if what == "test" else self.shown(part.start(), what, block)
                text.append(old.group(0) if new is None else f"```\n{new}```\n<!-- end -->")
                position = old.end()
        return "".join(text) + self.old[position:]


def summary_of(log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    found = re.findall(r"^Summary, .*\n(?:  .*\n)+", text, flags=re.M)
    if not found:
        sys.exit(f"{log}: no summary in it")
    return found[-1]


def new_text(path, binary, summary):
    page = Page(path, binary, summary)
    try:
        if page.name == "docs/SCENARIOS.md":
            page.old = page.run(0, "twinstep keys --markdown")
        return page.rewritten()
    finally:
        page.temporary.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=ROOT / "build/default/bin/twinstep")
    parser.add_argument("--tests", metavar="LOG")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    binary = pathlib.Path(options.binary).resolve()
    summary = summary_of(options.tests) if options.tests else None
    pages = [path.resolve() for path in options.pages] or [ROOT / "README.md",
                                                            *sorted((ROOT / "docs").rglob("*.md"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda path: new_text(path, binary, summary), pages))

    differ = False
    for path, new in zip(pages, texts):
        old = path.read_text(encoding="utf-8")
        if old == new:
            continue
        differ = True
        name = path.relative_to(ROOT).as_posix()
        if options.check:
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), f"{name} (committed)", f"{name} (real)"))
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{name}: rewritten")
    return 1 if differ and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
