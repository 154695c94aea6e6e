#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds ablate/ablate_toml.c against Python's tomllib: which documents are valid, what they hold,
what is written of them, and what mixed files of two of them hold.

    toml_truth.py --binary TOML_LINES [--documents N] [--seed S] [--show]

Documents are drawn: valid ones by a grammar with few keys, so that they meet again, and the same
with single bytes changed, of which most are invalid. Those of CASES are written by hand after the
examples of toml.io/en/v1.0.0. Exit status 77 without tomllib (Python before 3.11)."""
import argparse
import collections
import json
import random
import re
import subprocess
import sys

try:
    import tomllib
except ImportError:
    print("left out: no tomllib")
    sys.exit(77)

CASES = """
a = 1
a.b = 2
---
a.b = 1
a = 2
---
[a]
[a]
---
[a.b]
x = 1
[a]
y = 2
---
[a]
b.c = 1
[a.b]
---
[a]
b.c = 1
[a.b.d]
---
[a]
b.c.d = 1
[a.b.c]
---
[a.b.c]
z = 9
[a]
b.c.t = 1
---
[a.b.c]
z = 9
[a]
b.t = 1
---
a = []
[[a]]
---
a = [{b = 1}]
[a.c]
---
[[a]]
[a]
---
[a]
[[a]]
---
[[a]]
x = 1
[a.b]
y = 1
[[a]]
[a.b]
y = 2
---
[[a.b]]
[a]
b.c = 1
---
[[a]]
[[a.b]]
c = 1
[[a.b]]
[a.b.d]
---
a = {b = 1}
a.c = 2
---
a = {b = {c = 1}, b.d = 2}
---
a = {b.c = 1, b.d = 2}
[a.b.e]
---
a = {b.c = 1, b.d = 2, b.c = 3}
---
a = {b = 1,}
---
a = {b = 1
}
---
a = {b = [1,
 2, # of a list
 ], c = 3}
---
a = [1, "b", {c = 1979-05-27}, [[]], [[1,],],]
---
a = [1,,2]
---
a = [,]
---
"a.b" = 1
'c"d' = 2
"" = 3
"\\u00e9 \\U0001F600" = 4
---
"""r'''
a = """
two \
   lines """""
b = \'\'\'
raw \n '' \'\'\'\'\'
c = """ " "" \" \t \\ \u00e9 \U0001F600 \

   joined"""
---
a = """x""""""
---
a = "x\
y"
---
a = "\ud800"
---
a = "\U00110000"
---
a = "\e"
---
a = "\x41"
---
a = "open
---
a = """open
---
a = 'x
---
a = \'\'\'x''
---
a = 1_000
b = 0xDEAD_beef
c = 0o755
d = 0b1_0
e = +99
f = -0
g = 0
---
a = 01
---
a = 1__0
---
a = _1
---
a = 1_
---
a = 0x
---
a = +0x1
---
a = 0X1
---
a = 3.14
b = -0.0
c = 5e+22
d = 6.626e-34
e = 9_224_617.445_991
f = inf
g = -nan
h = 1e06
---
a = .7
---
a = 7.
---
a = 3.e+20
---
a = 1e
---
a = 1._0
---
a = Inf
---
a = 1979-05-27T07:32:00Z
b = 1979-05-27 00:32:00.999999-07:00
c = 1979-05-27t07:32:00z
d = 1979-05-27
e = 07:32:00.5
f = 2000-02-29
---
a = 1900-02-29
---
a = 1979-13-01
---
a = 1979-04-31
---
a = 24:00:00
---
a = 07:32
---
a = 07:32:00Z
---
a = 1979-05-27 
---
a = 1979-05-27 07
---
a = 1979-05-27  07:32:00
---
a = 1979-05-27T07:32:00+24:00
---
a = true
b = false
---
a = True
---
a = truefalse
---
a = 1 b = 2
---
a =
---
a
---
= 1
---
a = 1 # a comment
# another
---
[ a . "b" . 'c' ] # spaces
 d . e = 1
---
[a
---
[]
---
[[a]
---
[ [a] ]
---
[a]]
---
a. = 1
---
.a = 1
---
a..b = 1
---
a = = 1
---
a = {}
b = { }
---
a = {
}
---
a = "\u0000"
'''


class Draw:
    """Documents by a grammar."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, share):
        return self.random.random() < share

    def blank(self):
        return self.one("", "", " ", "\t", "  ")

    def newline(self):
        return self.one("\n", "\n", "\n", "\r\n")

    def key_part(self):
        return self.one("a", "b", "c", "lr", "d-e", "f_1", "1", "on", '"a"', "'b'", '"x y"', '""', '"q\\"\\u00e9"', "'é'")

    def key(self):
        dot = self.blank() + "." + self.blank()
        return dot.join(self.key_part() for _ in range(self.one(1, 1, 1, 2, 3)))

    def text(self, lines):
        pieces = ["a", "lr 0.1", "é", "\\n", '\\"', "\\\\", "\\u20AC", "\\U0001f600", "#", "'", "\t", "\\t", "=", "[x]"]
        pieces += ['"', '""', "\n", "\r\n", "\\\n  \n ", "\\  \n"] if lines else []
        body = "".join(self.one(*pieces) for _ in range(self.random.randrange(5)))
        return re.sub('"""+$', "", re.sub('"""+', '"x', body)) if lines else body

    def raw(self, lines):
        pieces = ["a", "\\n", '"', "é", "#", "\t"] + (["'", "\n", "\r\n"] if lines else [])
        return re.sub("'''+", "'", "".join(self.one(*pieces) for _ in range(self.random.randrange(5))))

    def number(self):
        r = self.random
        digits = str(r.randrange(1, 10 ** r.randrange(1, 9)))
        if len(digits) > 3 and self.maybe(0.3):
            digits = digits[:-3] + "_" + digits[-3:]
        kind = r.randrange(9)
        if kind < 3:
            return self.one("", "-", "+") + digits
        if kind == 3:
            return self.one("0", "-0", "+0", "0x1F", "0xdead_beef", "0o17", "0b1_01", "inf", "-inf", "+nan", "nan")
        fraction = "." + str(r.randrange(1000)) if self.maybe(0.7) or kind > 6 else ""
        exponent = self.one("e", "E") + self.one("", "+", "-") + str(r.randrange(40)) if not fraction or self.maybe(0.4) else ""
        return self.one("", "-") + digits + fraction + exponent

    def moment(self):
        r = self.random
        date = f"{r.randrange(1900, 2100)}-{r.randrange(1, 13):02}-{r.randrange(1, 30):02}"
        clock = f"{r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}" + self.one("", "", ".5", ".123456789")
        return self.one(date, clock, date + self.one("T", "t", " ") + clock + self.one("", "Z", "z", "+05:30", "-23:59"))

    def value(self, depth=0):
        kind = self.random.randrange(12 if depth < 3 else 9)
        if kind < 3:
            return self.number()
        if kind == 3:
            return self.one("true", "false")
        if kind == 4:
            return self.moment()
        if kind < 7:
            return self.one(f'"{self.text(False)}"', f"'{self.raw(False)}'")
        if kind < 9:
            return self.one(f'"""{self.text(True)}"""', f"\'\'\'{self.raw(True)}\'\'\'")
        if kind < 11:
            return self.array(depth)
        pairs = [f"{self.blank()}{self.key()}{self.blank()}={self.blank()}{self.value(depth + 1)}{self.blank()}"
                 for _ in range(self.random.randrange(3))]
        return "{" + ",".join(pairs) + self.blank() + "}"

    def array(self, depth):
        def gap():
            return self.one("", "", " ", self.newline(), " # of a list, ]" + self.newline())
        body = "".join(gap() + self.value(depth + 1) + gap() + "," for _ in range(self.random.randrange(4)))
        return "[" + (body if self.maybe(0.4) else body.removesuffix(",")) + gap() + "]"

    def line(self):
        kind = self.random.randrange(12)
        if kind == 0:
            return self.blank() + self.one("", "# a comment = [", "#")
        if kind < 3:
            return f"{self.blank()}[{self.blank()}{self.key()}{self.blank()}]"
        if kind == 3:
            return f"[[{self.blank()}{self.key()}]]"
        end = self.one("", "", " # why")
        return f"{self.blank()}{self.key()}{self.blank()}={self.blank()}{self.value()}{self.blank()}{end}"

    def document(self):
        text = "".join(self.line() + self.newline() for _ in range(self.random.randrange(1, 7)))
        return text if self.maybe(0.8) else text.rstrip("\r\n")

    def changed(self, text):
        at = self.random.randrange(len(text) + 1)
        byte = self.one(*"\"'[]{}=.,#_-+:\\ \n\rTZzeEx01a")
        return self.one(text[:at] + byte + text[at:], text[:at] + text[at + 1:], text[:at] + byte + text[at + 1:])

    def other_values(self, text):
        """The same lines, of which some have another value, some are missing, and some are new."""
        lines = []
        for line in text.split("\n"):
            found = re.match(r"^([^#\[{\"'=]*)=[^\[{\"'#]*$", line)
            if found and self.maybe(0.5):
                line = f"{found[1]}= {self.value()}"
            if not self.maybe(0.1):
                lines.append(line)
            if self.maybe(0.1):
                lines.append(self.line())
        return "\n".join(lines)


def truth_of(text):
    """What tomllib says: the value, or None for an invalid document."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def same(a, b):
    """Equality with types, in which nan is nan, and -0.0 is not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


def unordered(value):
    """The value with the keys of all tables in one order."""
    if isinstance(value, dict):
        return {k: unordered(value[k]) for k in sorted(value)}
    return [unordered(v) for v in value] if isinstance(value, list) else value


def decoded(tree):
    """The value of a printed tree; texts of numbers and dates are read by tomllib."""
    if isinstance(tree, dict):
        return {k: decoded(v) for k, v in tree.items()}
    if tree[0] == "l":
        return [decoded(v) for v in tree[1:]]
    return tree[1] if tree[0] == "q" else tomllib.loads("x = " + tree[1])["x"]


NOT_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "nan", "inf", ""}


def path_of(above, key):
    word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key) and key.lower() not in NOT_WORDS
    escaped = re.sub("[\0-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}",
                     key.replace("\\", "\\\\").replace('"', '\\"'))
    return (above + "." if above else "") + (key if word else f'"{escaped}"')


def leaves_of(a, b, above=""):
    """(path, in a, in b) of all that may be leaves, in the order of the files."""
    for key, x in a.items():
        path = path_of(above, key)
        if isinstance(x, dict) and isinstance(b.get(key), dict):
            yield from leaves_of(x, b[key], path)
        else:
            yield path, x, b.get(key)
    for key, y in b.items():
        if key not in a:
            yield path_of(above, key), None, y


def mixed(a, b, taken, above=""):
    out = {}
    for key in [*a, *(k for k in b if k not in a)]:
        path = path_of(above, key)
        if isinstance(a.get(key), dict) and isinstance(b.get(key), dict):
            out[key] = mixed(a[key], b[key], taken, path)
            continue
        of = b if path in taken else a
        if key in of:
            out[key] = of[key]
    return out


def ask(binary, frames):
    given = b"".join(" ".join(str(len(d)) for d in some).encode() + b"\n" + b"".join(some) for some in frames)
    done = subprocess.run([binary], input=given, capture_output=True, check=False)
    lines = done.stdout.decode().splitlines()
    if done.returncode != 0 or len(lines) != len(frames):
        sys.exit(f"{binary}: status {done.returncode}, {len(lines)} of {len(frames)} answers; {done.stderr.decode()}")
    return [json.loads(line) for line in lines]


def check_one(text, answer):
    """What is wrong with an answer, or None; and the kind of the document."""
    truth = truth_of(text)
    if "error" in answer:
        if not re.match(r"one\.toml:\d+(:\d+)?: error: .", answer["error"]):
            return "an error without a place", "error"
        if "U+0000" in answer["error"]:     # which is told to be refused
            return None, "U+0000"
        return ("tomllib reads it" if truth is not None else None), "invalid"
    if truth is None:
        return "tomllib does not read it", "valid"
    if not same(decoded(answer["tree"]), truth):
        return "another value", "valid"
    if not same(unordered(tomllib.loads(answer["written"])), unordered(truth)):
        return f"what is written has another value:\n{answer['written']}", "valid"
    return None, "valid"


def check_two(first, second, answer):
    a, b = tomllib.loads(first), tomllib.loads(second)
    if "error" in answer:
        return "an error"
    differ = answer["leaves"]
    seen = {path: (x, y) for path, x, y in leaves_of(a, b)}
    if [p for p in seen if p in differ] != differ:
        return "other leaves, or in another order"
    if any(not same(unordered(x), unordered(y)) for p, (x, y) in seen.items() if p not in differ):
        return "a leaf that differs is missing"
    for name, taken in (("all", differ), ("odd", differ[1::2])):
        if not same(unordered(tomllib.loads(answer[name])), unordered(mixed(a, b, set(taken)))):
            return f"{name}: a mixed file with another value:\n{answer[name]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--show", action="store_true", help="also print every error text")
    options = parser.parse_args()
    draw = Draw(options.seed)
    texts = CASES.replace("\\'", "'").strip("\n").split("\n---\n")
    cases = len(texts)
    for _ in range(options.documents // 3):
        texts.append(draw.document())
        texts += [draw.changed(texts[-1]) for _ in range(2)]
    wrong, kinds = [], collections.Counter()
    for text, answer in zip(texts, ask(options.binary, [[t.encode()] for t in texts])):
        problem, kind = check_one(text, answer)
        kinds[kind] += 1
        if problem:
            wrong.append(f"{problem}: {text!r}: {answer.get('error', '')}")
        if options.show and "error" in answer:
            print(answer["error"])
    pairs = [(t, other) for t in texts if truth_of(t) is not None
             for other in [draw.other_values(t)] if truth_of(other) is not None]
    moved = 0
    for (first, second), answer in zip(pairs, ask(options.binary, [[a.encode(), b.encode()] for a, b in pairs])):
        problem = None if "U+0000" in answer.get("error", "") else check_two(first, second, answer)
        moved += len(answer.get("leaves", [])) > 0
        if problem:
            wrong.append(f"{problem}: {first!r} and {second!r}")
    print(f"{cases} cases and {len(texts) - cases} drawn documents: {dict(kinds)}; {len(pairs)} pairs, {moved} that differ")
    for line in wrong[:20]:
        print(line)
    if min(kinds["valid"], kinds["invalid"], moved) < 200:
        wrong.append("too few of a kind, which would prove little")
        print(wrong[-1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
