#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws functions of the program, each as likely as any other whatever the size of its file, for a
reader who gets the file alone and explains them.

    functions_drawn.py [--seed N] [--count N] [--revision R] [--text]

Reads C and CUDA (.c, .h, .cu) outside tests/ and docs/ as committed in a revision, HEAD by default.
Prints `FILE:FIRST-LAST NAME` of each; with --text also the file's text up to the function's end. A
function that only a macro's expansion defines is none of the file's text and cannot be drawn. The
order is that of SHA-256 over seed, file and function: the same everywhere, and a function added to
the tree moves at most one out of the draw. functions_drawn_check.py holds what is found."""
import argparse
import hashlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import code_lines  # noqa: E402

# What is not code, as blanks of the same length: a line of the preprocessor with those that continue
# it, then texts, characters and comments.
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
NAME = re.compile(r"(\w+)\s*\Z")


def blank(part):
    return re.sub(r"[^\n]", " ", part.group())


def code_of(text):
    """The text without comments, texts and directives; every character stays at its place."""
    return DIRECTIVE.sub(blank, code_lines.PART.sub(blank, text))


def last_group(head):
    """Where the last pair of parentheses of a declaration's head begins."""
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        depth += (head[at] == ")") - (head[at] == "(")
        if depth == 0:
            return at
    return None


def name_of(head):
    """The name of the function that a head before `{` declares, or None: it declares no function.
    The name is a word, or what a macro makes of one: VARIANT(close_sums) of
    `VARIANT(close_sums)(int count)`, KERNEL(add) of `KERNEL(add, int count)`."""
    head = head.rstrip()
    if not head.endswith(")"):
        return None
    group = last_group(head)
    before = head[:group].rstrip()
    made = ""
    if before.endswith(")"):
        group = last_group(before)
        made = "".join(before[group:].split())
        before = before[:group]
    word = NAME.search(before)
    if word is None:
        return None
    if not made and word.group(1).isupper():
        made = "(" + re.split(r"[,)]", head[group + 1:])[0].strip() + ")"
    return word.group(1) + made


def functions_of(path, text):
    """Name, first and last line of every function that the text defines, in its order. A text whose
    braces do not pair, as two heads behind #if and #else with one body, is refused."""
    code = code_of(text)
    found, opened, begin = [], [], 0
    for token in re.finditer(r"[{};]", code):
        at, mark = token.start(), token.group()
        if mark == "{":
            head = code[begin:at]
            name = None if any(opened) else name_of(head)
            first = begin + len(head) - len(head.lstrip())
            # the braces of extern "C" enclose declarations, and nothing is inside of another thing
            inside = head.split() != ["extern"]
            opened.append((name, first) if inside else None)
        elif mark == "}":
            if not opened:
                raise SystemExit(f"{path}: a brace that closes nothing, line "
                                 f"{code.count(chr(10), 0, at) + 1}")
            thing = opened.pop()
            if thing and thing[0]:
                found.append((thing[0], code.count("\n", 0, thing[1]) + 1,
                              code.count("\n", 0, at) + 1))
        begin = at + 1
    if opened:
        raise SystemExit(f"{path}: expected as many braces that close as braces that open")
    return found


def order(seed, path, name):
    return hashlib.sha256(f"{seed}\n{path}\n{name}".encode()).digest()


def drawn(files, seed, count):
    """From (path, text) of files: path, name, first line, last line of count functions, and of how
    many. A name that stands twice in a file, for two builds of it, is told apart by its turn."""
    everything = []
    for path, text in files:
        turns = {}
        for name, first, last in functions_of(path, text):
            turns[name] = turns.get(name, 0) + 1
            key = order(seed, path, f"{name} {turns[name]}")
            everything.append((key, path, name, first, last))
    everything.sort()
    return [row[1:] for row in everything[:count]], len(everything)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--revision", default="HEAD")
    parser.add_argument("--text", action="store_true", help="with the file up to the function's end")
    said = parser.parse_args()
    if said.count < 1:
        parser.error(f"--count: expected at least 1, got {said.count}")
    try:
        files = dict(code_lines.texts(said.revision))
    except subprocess.CalledProcessError as failed:
        parser.error(f"--revision {said.revision}: {failed.stderr.decode().strip()}")
    rows, among = drawn(files.items(), said.seed, said.count)
    if len(rows) < said.count:
        parser.error(f"--count: expected at most {among}, the functions there are, got {said.count}")
    print(f"{len(rows)} of {among} functions, seed {said.seed}, {said.revision}")
    for path, name, first, last in rows:
        print(f"{path}:{first}-{last} {name}")
        if said.text:
            print("".join(f"    {line}\n" for line in files[path].split("\n")[:last]))


if __name__ == "__main__":
    main()
