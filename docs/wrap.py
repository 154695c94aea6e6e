#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wraps the prose of Markdown pages at 100 columns, as rule_prose of tests/lint/lint.py demands.

    docs/wrap.py FILE...

Tables, fenced blocks, headings and comments stay as they are, and so does every word: a page that
would change otherwise is an error. A span of code is kept on one line where it is short."""
import pathlib
import re
import sys

WIDTH = 100
ITEM = re.compile(r"(\s*)([*+-]|\d+[.)])\s+")
# What would begin a list, a heading, a quotation, a table or a block at the head of a line.
MARKER = re.compile(r"([*+-]|#.*|\d+[.)]|>.*|\|.*|=+|-+|<!--.*|```.*)$")
KEPT = re.compile(r"\s*([|>]|#+ |<!--|---|\[[^\]]+\]: )")


def words_of(text):
    words, word = [], ""
    for token in re.findall(r"`+[^`]*`+|\s+|[^\s`]+|`", text):
        if token.isspace():
            words += [word] if word else []
            word = ""
        elif token.startswith("`") and len(token) > 70:
            *begun, last = (word + token).split()
            words += begun
            word = last
        else:
            word += token
    return words + [word] if word else words


def filled(words, first, rest):
    """Lines of the words; no line but the first begins with what Markdown reads as a marker."""
    lines, line = [], first + words[0]
    for i, word in enumerate(words[1:], 1):
        width = len(line) + 1 + len(word)
        for following in words[i + 1:]:
            if not MARKER.match(following):
                break
            width += 1 + len(following)
        if width <= WIDTH or MARKER.match(word):
            line += " " + word
        else:
            lines.append(line)
            line = rest + word
    return lines + [line]


def wrapped(text):
    lines, words, first, rest, fenced = [], [], "", "", False

    def close():
        if words:
            lines.extend(filled(words_of(" ".join(words)), first, rest))
            words.clear()

    for line in text.split("\n"):
        item = ITEM.match(line)
        fence = line.strip().startswith("```")
        if fenced or fence or not line.strip() or KEPT.match(line):
            close()
            lines.append(line)
            fenced ^= fence
            continue
        if item:
            close()
            first, rest = item.group(0), " " * len(item.group(0))
            line = line[len(first):]
        elif not words or line.startswith(("*Code*", "*Test")):
            close()
            first = rest = re.match(r"\s*", line).group(0)
        words.append(line.strip())
    close()
    return "\n".join(lines)


def main():
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        old = path.read_text(encoding="utf-8")
        new = wrapped(old)
        if old.split() != new.split():
            sys.exit(f"{name}: the words would change")
        if old != new:
            path.write_text(new, encoding="utf-8")
            print(f"{name}: wrapped")


if __name__ == "__main__":
    main()
