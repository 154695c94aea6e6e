#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many lines the program has that are neither comment nor blank (docs/decisions/size.md).

    code_lines.py [REVISION]...

Counts C and CUDA (.c, .h, .cu) outside tests/ and docs/, by folder, in each revision; HEAD by default."""
import collections
import re
import subprocess
import sys

# A text or a character, which is kept, or a comment.
PART = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|/\*.*?\*/', re.S)


def without_comments(text):
    return PART.sub(lambda part: part.group() if part.group()[0] in "\"'" else " ", text)


def git(*words, given=b""):
    return subprocess.run(["git", *words], input=given, check=True, capture_output=True).stdout


def texts(revision):
    """Name and text of each file that counts."""
    names = [name for name in git("ls-tree", "-r", "--name-only", revision).decode().split("\n")
             if name.endswith((".c", ".h", ".cu")) and not name.startswith(("tests/", "docs/"))]
    found = git("cat-file", "--batch", given="".join(f"{revision}:{name}\n" for name in names).encode())
    at = 0
    for name in names:
        end = found.index(b"\n", at)
        size = int(found[at:end].split()[2])
        at = end + size + 2
        yield name, found[end + 1:end + 1 + size].decode()


def main():
    for revision in sys.argv[1:] or ["HEAD"]:
        lines = collections.Counter()
        for name, text in texts(revision):
            lines[name.split("/")[0]] += sum(bool(line.strip())
                                             for line in without_comments(text).split("\n"))
        print(f"{revision}: {sum(lines.values())}")
        for name, count in lines.most_common():
            print(f"  {name:12s} {count:6d}")


if __name__ == "__main__":
    main()
