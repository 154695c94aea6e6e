# SPDX-License-Identifier: Apache-2.0
"""Checks what tests/bench/bounds.py says of a comparison, by what its runtime notes of operands that
are made up; and, where libclang's package for Python is there, what it makes of a text: which
comparisons are replaced, that the text still computes the same, and what is open of each."""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import bounds  # noqa: E402

# Operands, and what is open of `a < b`, `a <= 5` and so on where those and no others came.
CASES = [
    ("i", "<", "b", [], ["never"]),
    ("i", "<", "b", [(1, 2)], ["equal", "false"]),
    ("i", "<", "b", [(2, 1)], ["equal", "true"]),
    ("i", "<", "b", [(2, 2)], ["true"]),
    ("i", "<=", "b", [(2, 2)], ["false"]),
    ("i", ">=", "b", [(2, 2), (1, 2)], []),
    ("i", ">", "5", [(5, 5), (9, 5)], ["next"]),
    ("i", ">", "5", [(5, 5), (6, 5)], []),
    ("i", ">", "MOST", [(5, 5), (9, 5)], ["next"]),
    ("i", ">", "most", [(5, 5), (9, 5)], []),
    ("i", "<", "5", [(5, 5), (1, 5)], []),
    ("i", "<", "b", [(-1, 1), (1, 1)], []),
    ("u", "<", "b", [(2**64 - 1, 1), (1, 1)], ["true"]),
    ("u", "<=", "5", [(5, 5), (6, 5)], []),
    ("f", "<", "1.5", [("NAN", 1.5)], ["equal", "true"]),
    ("f", "<", "1.5", [("NAN", 1.5), (1.5, 1.5), (1, 1.5)], []),
    ("f", ">=", "5", [(5, 5), (4, 5)], []),
]

TEXT = """#include <stddef.h>
static const int constant = 1 < 2;
enum { SIZE = 3 > 2 ? 4 : 5 };
static int shorter(const char *a, const char *b) { return a < b; }
int f(int a, double x, size_t n, unsigned char c);
int f(int a, double x, size_t n, unsigned char c) {
    static const int inner = 1 > 2;
    int sum = constant + inner + SIZE;
    if (a < 5 && (x > 2.5 || c >= 'a')) sum += 10;
    for (size_t i = 0; i < n; i++)
        sum += (int)(n - i <= 2 /* no < */) * (a - 1 < -a);
#pragma omp parallel for
    for (int i = 0; i < 2; i++)
        sum += 0;
    char text[2];
    return shorter(text, text + 1) ? sum : -sum;
}
int main(void) { return f(4, 2.5, 3, 'a') == 15 && f(5, 9.0, 2, 0) == 5 && f(0, 3.0, 1, 0) == 16 ? 0 : 1; }
"""
REPLACED = [(4, "<", "p", ["equal", "false"]), (9, "<", "i", []), (9, ">", "f", []),
            (9, ">=", "i", ["false"]), (10, "<", "u", []), (11, "<=", "u", []),
            (11, "<", "i", ["equal"])]


def build(folder, name, text, *flags):
    (folder / f"{name}.c").write_text(text, encoding="utf-8")
    subprocess.run(["cc", *flags, f"{name}.c"], cwd=folder, check=True)


def check_notes(folder):
    calls = "".join(
        f"bound_{letter}({number}, {bounds.OPERATORS.index(operator)}, {a}{'u' * (letter == 'u')}, {b});"
        for number, (letter, operator, _, operands, _) in enumerate(CASES) for a, b in operands)
    build(folder, "calls", f"#include <math.h>\n{bounds.HEADER}int main(void) {{ {calls} return 0; }}",
          "bound.o", "-w", "-o", "calls")
    subprocess.run(["./calls"], cwd=folder, check=True)
    table = (folder / "table").read_bytes()
    for (letter, operator, right, operands, wanted), flags in zip(CASES, table):
        got = bounds.open_of(operator, letter, right, flags)
        assert got == wanted, (letter, operator, right, operands, got)


def check_text(folder):
    try:
        import clang.cindex as cindex # pylint: disable=import-outside-toplevel
        cindex.Index.create()
    except Exception: # no package, or no library of its version
        return
    system = subprocess.run(["clang", "-print-resource-dir"], check=True, capture_output=True,
                            text=True).stdout.strip()
    path = folder / "text.c"
    path.write_text(TEXT, encoding="utf-8")
    text, found = bounds.rewritten(cindex, path, [f"-I{system}/include"], 0)
    os.remove(folder / "table")
    build(folder, "new", bounds.HEADER + text, "bound.o", "-w", "-o", "new")
    subprocess.run(["./new"], cwd=folder, check=True)
    table = (folder / "table").read_bytes()
    got = [(line, operator, letter, bounds.open_of(operator, letter, right, table[number]))
           for number, (line, _, operator, letter, right) in enumerate(found)]
    got.sort(key=lambda one: one[0])
    assert got == REPLACED, got
    lines = TEXT.split("\n")
    for line, column, operator, _, _ in found:
        assert lines[line - 1][column - 1:].startswith(operator)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(folder, "bound", bounds.RUNTIME, "-c", "-DBOUNDS=65536",
              f'-DBOUNDS_TABLE="{folder / "table"}"')
        check_notes(folder)
        check_text(folder)
    for operator, right in itertools.product(bounds.OPERATORS, ("5", "b")): # all came: none is open
        assert bounds.open_of(operator, "i", right, 15) == []


if __name__ == "__main__":
    main()
