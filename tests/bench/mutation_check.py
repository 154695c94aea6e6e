# SPDX-License-Identifier: Apache-2.0
"""Checks which tokens tests/bench/mutation.py changes, on a text that is made up: none in comments,
strings, characters and lines of the preprocessor, and each rule's own ones everywhere else. It
takes a second."""
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutation  # noqa: E402

TEXT = r"""#define MORE(x) ((x) + 1) /* 1 + 1 */
/* a < b
 * && 2 */
static const char *name = "a < b + 1 \" < 3", plus = '+';
int f(int a, double b) { // a - b
    for (a = 0; a < 5; a++)
        if (a == 2 && !b) continue;
    return a->b * 1.5 + 0x1p-3 - 0xffu;
}
"""
WANTED = [
    (4, "*", "/"), # a pointer: the compiler refuses it
    (6, "0", "1"), (6, "<", "<="), (6, "<", ">"), (6, "5", "6"), (6, "5", "0"), (6, "++", "--"),
    (7, "==", "!="), (7, "2", "3"), (7, "2", "0"), (7, "&&", "||"), (7, "!", ""),
    (7, "continue", "break"),
    (8, "*", "/"), (8, "1.5", "(2 * 1.5)"), (8, "+", "-"), (8, "0x1p-3", "(2 * 0x1p-3)"),
    (8, "-", "+"),
]


def main():
    found = mutation.mutants_of(pathlib.Path("made-up.c"), TEXT)
    got = [(line, old, new) for _, line, _, _, old, new in found]
    assert got == WANTED, f"expected {WANTED}, got {got}"
    for _, line, column, start, old, _ in found:
        assert TEXT[start:start + len(old)] == old
        assert TEXT.split("\n")[line - 1][column - 1:].startswith(old)
    low, high = mutation.interval(95, 100)
    assert 88.8 < low < 88.9 and 97.8 < high < 97.9, (low, high) # Wilson 1927, as R's prop.test gives
    script = mutation.__file__
    lists = [subprocess.run([sys.executable, script, "--list", "--seed", seed, "--count", "50"],
                            check=True, capture_output=True, text=True).stdout
             for seed in ("1", "1", "2")]
    assert lists[0] == lists[1] != lists[2] and lists[0].count("\n") == 50
    wrong = subprocess.run([sys.executable, script, "--list", "no/such/folder"], check=False,
                           capture_output=True, text=True)
    assert wrong.returncode != 0 and "no such file" in wrong.stderr, wrong


if __name__ == "__main__":
    main()
