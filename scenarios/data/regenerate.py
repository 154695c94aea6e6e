#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds quiz.tsv and devil.tsv from two Debian packages and compares them with PROVENANCE.md.

    apt-get download bsdgames dict-devil
    python3 scenarios/data/regenerate.py bsdgames_*.deb dict-devil_*.deb [--write]

Each package must have the SHA-256 recorded in PROVENANCE.md. Without --write the two files are
built in memory and compared with the record; with it they are written beside this script.
Rows are `table TAB question TAB answer`; in a field, \\n is a line break and \\\\ a backslash.
"""
import gzip
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
QUIZ = "./usr/share/games/bsdgames/quiz/"
DICT = "./usr/share/dictd/devil."

# (table, quiz file, question column, answer column, question)
TABLES = [
    ("africa", "africa", 0, 1, "What is the capital of {}?"),
    ("america", "america", 0, 1, "What is the capital of {}?"),
    ("asia", "asia", 0, 1, "What is the capital of {}?"),
    ("europe", "europe", 0, 1, "What is the capital of {}?"),
    ("province", "province", 0, 1, "What is the capital of {}?"),
    ("midearth", "midearth", 0, 1, "What is the capital of {}?"),
    ("state.capital", "state", 0, 1, "What is the capital of {}?"),
    ("state.abbreviation", "state", 0, 2, "What is the abbreviation of {}?"),
    ("state.flower", "state", 0, 3, "What is the flower of {}?"),
    ("areas", "areas", 0, 1, "Which region has the area code {}?"),
    ("pres.vice", "pres", 0, 2, "Who was vice president under {}?"),
    ("pres.successor", "pres", 0, 3, "Who was president after {}?"),
    ("sov.successor", "sov", 0, 2, "Who reigned after {}?"),
    ("inca", "inca", 0, 1, "Which Inca came after {}?"),
    ("elements.symbol", "elements", 0, 3, "Which element has the symbol {}?"),
    ("elements.number", "elements", 1, 3, "Which element has the number {}?"),
    ("collectives", "collectives", 0, 1, "What is a group of {} called?"),
    ("babies", "babies", 0, 1, "Which animal was once a {}?"),
    ("posneg", "posneg", 0, 1, "What is the opposite of {}?"),
    ("flowers", "flowers", 0, 1, "What does this flower mean: {}?"),
    ("locomotive", "locomotive", 0, 1, "What is a {} locomotive called?"),
    ("chinese", "chinese", 0, 1, "Which year follows the year of the {}?"),
    ("latin", "latin", 0, 1, "What does {} mean?"),
    ("morse", "morse", 0, 1, "What is {} in Morse code?"),
    ("bard.work", "bard", 0, 2, 'Which play has "{}"?'),
    ("bard.next", "bard", 0, 1, 'What follows "{}"?'),
    ("arith", "arith", 0, 1, "Fill in: {}"),
    ("mult", "mult", 0, 1, "What is {}?"),
    ("ucc", "ucc", 0, 1, "What does section {} of the UCC cover?"),
]

# Patterns whose longest reading is a slip of the pattern, not a name.
READINGS = {
    "Wash{ ington}": "Washington",
    "{J{oe{seph}} }{R{obinette} }{Biden}{{,} J{unio}r}": "Joseph Robinette Biden, Junior",
}
# "gok" is the quiz author's "God only knows"; presidents without a vice president have "None".
NO_ANSWER = re.compile(r"gok|None\b")


def split_top(text, mark):
    """Splits at `mark` outside brackets; a backslash quotes the next character."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] in "[{":
            depth += 1
        elif text[i] in "]}":
            depth -= 1
        elif text[i] == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
        i += 1
    return parts + [text[start:]]


def readings(pattern):
    """One text per top-level alternative: inner groups take their first alternative, optional
    parts are kept (dropping them would turn `Conn{ecticut}` into `Conn`)."""
    return [" ".join(expand(part).split()) for part in split_top(pattern, "|")]


def choose(group):
    """The first alternative without an overstruck accent (a mark, a backspace, a letter)."""
    parts = [expand(part) for part in split_top(group, "|")]
    return next((part for part in parts if "\b" not in part), parts[0])


def expand(pattern):
    out, i = [], 0
    while i < len(pattern):
        if pattern[i] == "\\":
            i += 1
            out.append(pattern[i])
        elif pattern[i] in "[{":
            depth, start = 1, i + 1
            while depth:
                i += 1
                depth += (pattern[i] in "[{") - (pattern[i] in "]}")
            out.append(choose(pattern[start:i]))
        else:
            out.append(pattern[i])
        i += 1
    return "".join(out)


def quiz_lines(text):
    joined = text.replace("\\\n", "")
    return [split_top(line, ":") for line in joined.split("\n") if line]


def quiz_table(text, question, answer, template):
    """Unique questions whose other accepted answers are no other row's answer, so that every other
    row's answer is wrong for this question."""
    rows = []
    for fields in quiz_lines(text):
        if len(fields) <= max(question, answer) or not fields[question] or not fields[answer]:
            continue
        asked = readings(READINGS.get(fields[question], fields[question]))[0]
        answers = readings(READINGS.get(fields[answer], fields[answer]))
        if not NO_ANSWER.match(answers[0]):
            rows.append((template.format(asked), answers))
    first = {}
    for asked, answers in rows:
        first.setdefault(asked, answers)
    also = {}
    for asked, answers in rows:
        also.setdefault(asked, set()).update(answers)
    given = {answers[0] for answers in first.values()}
    return [(asked, answers[0]) for asked, answers in first.items()
            if not (also[asked] - {answers[0]}) & given]


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def dict_number(text):
    value = 0
    for digit in text:
        value = value * 64 + DIGITS.index(digit)
    return value


def dict_entries(index, text):
    spans = set()
    for line in index.splitlines():
        word, start, length = line.split("\t")
        if not word.startswith("00"):
            spans.add((dict_number(start), dict_number(length)))
    entries = [text[start:start + length] for start, length in sorted(spans)]
    return [entry for entry in entries if not OMITTED.search(entry)]


# Entries that hold a racial slur are left out.
OMITTED = re.compile(r"\bnigger|\bnegro|shebrew", re.I)

# "WORD, n." or, without a word class, "WORD.  [Latin]" before two blanks or a blank line; the
# article about a letter starts with the letter.
CLASS = re.compile(r"([A-Z][^\n]{1,40}?,? (?:n|v|adj|adv|v\.[it]|n\.pl|pp|p\.p|x)\.)\s+")
HEAD = re.compile(r"([^\n]{1,60}?[.?)\]])(?:  +|\n+)(?=\S|   )", re.S)
LETTER = re.compile(r"([A-Z],?) +")


def devil_row(entry):
    body = "\n".join(line.rstrip() for line in entry.split("\n")).strip("\n")
    match = LETTER.match(body) or CLASS.match(body) or HEAD.match(body)
    if match is None or not re.match(r"[A-Z]", body):
        raise SystemExit("no head word: %r" % body[:80])
    return match.group(1), body[match.end():].strip("\n")


def escape(text):
    if re.search(r"[^\n\x20-\x7e]", text):
        raise SystemExit("unexpected character in %r" % text)
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def package_files(path):
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=io.BytesIO(tar.stdout)) as archive:
        return {item.name: archive.extractfile(item).read()
                for item in archive if item.isfile()}


def build(packages):
    files = {}
    for package in packages:
        files.update(package_files(package))
    rows = []
    for table, name, question, answer, template in TABLES:
        text = files[QUIZ + name].decode("utf-8")
        rows += [(table, *row) for row in quiz_table(text, question, answer, template)]
    index = files[DICT + "index"].decode("ascii")
    text = gzip.decompress(files[DICT + "dict.dz"]).decode("ascii")
    first = {}
    for entry in dict_entries(index, text):
        first.setdefault(*devil_row(entry))  # two words have two entries
    devil = [("devil", *row) for row in first.items()]
    return {name: "".join("\t".join(map(escape, row)) + "\n" for row in table).encode("ascii")
            for name, table in (("quiz.tsv", rows), ("devil.tsv", devil))}


def main():
    packages = [argument for argument in sys.argv[1:] if argument != "--write"]
    if len(packages) != 2:
        raise SystemExit(__doc__)
    record = dict(reversed(line.split("  ")) for line in
                  re.findall(r"^[0-9a-f]{64}  \S+$", (HERE / "PROVENANCE.md").read_text(), re.M))
    for package in packages:
        digest = hashlib.sha256(pathlib.Path(package).read_bytes()).hexdigest()
        if digest not in record.values():
            raise SystemExit("%s: SHA-256 %s is not in PROVENANCE.md" % (package, digest))
    status = 0
    for name, data in build(packages).items():
        digest = hashlib.sha256(data).hexdigest()
        same = record.get(name) == digest
        status |= not same
        print("%s  %s  %s" % (digest, name, "as recorded" if same else "NOT as recorded"))
        if "--write" in sys.argv:
            (HERE / name).write_bytes(data)
    return status


if __name__ == "__main__":
    sys.exit(main())
