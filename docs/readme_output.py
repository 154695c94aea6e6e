#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Output that documents show, taken from real runs.

    docs/readme_output.py [--binary build/default/bin/twinstep] [--tests LOG]   rewrite
    docs/readme_output.py --check --binary B                                    compare; 1: differs

README.md and the pages in PAGES: the text between "<!-- output: NAME -->" and "<!-- end -->" is what
the command of that name in COMMANDS (PAGES) prints, which is the same everywhere. "output: test" is the
summary of a log of `sh bootstrap.sh test` (its seconds are one machine's, so --check leaves it out).
docs/SCENARIOS.md: what `twinstep keys --markdown` prints."""
import argparse
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOGS = ROOT / "tests/golden/logs"
# What the commands find in their folder: the name there, and the committed log that it is a copy of.
FILES = {
    "trainer_state.json": LOGS / "hf5/dpo-linear-cold/trainer_state.json",
    "console.txt": LOGS / "hf446/hf-linear/console.txt",
    "nan.json": LOGS / "hf5/hf-nan/trainer_state.json",
    "a.json": LOGS / "hf446/hf-linear/trainer_state.json",
    "b.json": LOGS / "hf5/hf-linear/trainer_state.json",
}

# Name of the block: words, exit status, lines shown (None: all).
COMMANDS = {
    "demo": (["demo", "--quiet"], 0, None),
    "lr-check": (["lr", "check", "trainer_state.json", "--expect", "olmo-core", "--schedule", "linear", "--lr",
                  "5e-7", "--steps", "5"], 1, 7),
    "lr-compare": (["lr", "compare", "open-instruct-tune-cache", "open-instruct-dpo", "--lr", "5e-7",
                    "--steps", "5"], 1, None),
}
# The same for pages under docs/.
PAGES = {
    "NOISE.md": {
        "noise-ops": (["noise", "--ops", "--modes", "invariant,shaped large-batch", "--dtypes",
                       "f32", "--threads", "2"], 1, None),
    },
    "LOGS.md": {
        "import-console": (["import", "console.txt"], 0, None),
    },
    "FORENSICS.md": {
        "doctor-nan": (["doctor", "nan.json"], 1, 14),
        "compare-versions": (["compare", "a.json", "b.json"], 1, None),
    },
}


def run(binary, words, status=0, lines=None):
    with tempfile.TemporaryDirectory() as folder:
        for name, log in FILES.items():
            shutil.copy(log, pathlib.Path(folder) / name)
        result = subprocess.run([binary, *words], cwd=folder, capture_output=True, text=True,
                                check=False)
    if result.returncode != status:
        sys.exit(f"{binary} {' '.join(words)}: expected exit status {status}, got "
                 f"{result.returncode}: {result.stderr}")
    shown = result.stdout.splitlines(keepends=True)
    return "".join(shown if lines is None else [*shown[:lines], "...\n"])


def with_block(text, name, output, page="README.md"):
    pattern = rf"(<!-- output: {name} -->\n```\n).*?(```\n<!-- end -->)"
    new, count = re.subn(pattern, lambda m: m.group(1) + output + m.group(2), text, flags=re.S)
    if count != 1:
        sys.exit(f"{page}: expected one block \"output: {name}\", found {count}")
    return new


def summary_of(log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    found = re.findall(r"^Summary, .*\n(?:  .*\n)+", text, flags=re.M)
    if not found:
        sys.exit(f"{log}: no summary in it")
    return found[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=ROOT / "build/default/bin/twinstep")
    parser.add_argument("--tests", metavar="LOG")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())

    readme, scenarios = ROOT / "README.md", ROOT / "docs/SCENARIOS.md"
    text = readme.read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        text = with_block(text, name, run(binary, *command))
    if options.tests:
        text = with_block(text, "test", summary_of(options.tests))
    wanted = {readme: text, scenarios: run(binary, ["keys", "--markdown"])}
    for page, commands in PAGES.items():
        path = ROOT / "docs" / page
        wanted[path] = path.read_text(encoding="utf-8")
        for name, command in commands.items():
            wanted[path] = with_block(wanted[path], name, run(binary, *command), page)

    differ = False
    for path, new in wanted.items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
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
