# SPDX-License-Identifier: Apache-2.0
"""Checks which functions tests/bench/functions_drawn.py finds, on a text that is made up: those with
a body and no other thing in braces; and that a draw is even over functions and ever the same one."""
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import functions_drawn  # noqa: E402

TEXT = r"""#define TWICE(x) \
    do {         \
        x;       \
    } while (0)
#define BEGIN {
/* int no(void) { */
int declared(int a);
static const char brace[] = "{ \" {", other = '{';
struct point {
    int (*call)(int);
};
static const struct point points[SIZE(2)] = {{NULL}, {NULL}}, *one = &(struct point){NULL};
extern "C" {
int plain(int a) {
    if (a == 2) {
        return '}';
    }
    return a;
}
}
static inline const struct point *pointed(
    const struct point *p, int (*call)(int)) {
    return p; // }
}
void VARIANT(scale)(float *y) {
}
KERNEL(add, const float *x) {
}
enum kind { KIND };
int plain(int a) {
    return TWICE(a);
}
"""
WANTED = [("plain", 14, 19), ("pointed", 21, 24), ("VARIANT(scale)", 25, 26),
          ("KERNEL(add)", 27, 28), ("plain", 30, 32)]


def refused(text):
    try:
        functions_drawn.functions_of("made-up.c", text)
    except SystemExit as said:
        return str(said)
    return None


def main():
    found = functions_drawn.functions_of("made-up.c", TEXT)
    assert found == WANTED, f"expected {WANTED}, got {found}"
    assert "made-up.c: expected as many" in refused("int f(void) {\n")
    assert "made-up.c: a brace that closes nothing, line 2" in refused("\n}\n")
    # 90 functions of one file and one in each of ten others: nine of ten draws are of the first,
    # 720 of 800 with a standard deviation of sqrt(800 * 0.9 * 0.1) = 8.5
    files = [("large.c", "".join(f"int f{i}(void) {{\n}}\n" for i in range(90)))]
    files += [(f"small{i}.c", "int g(void) {\n}\n") for i in range(10)]
    large = 0
    for seed in range(80):
        rows, among = functions_drawn.drawn(files, seed, 10)
        assert among == 100 and len({row[:2] for row in rows}) == 10
        assert rows == functions_drawn.drawn(files[::-1], seed, 10)[0]
        large += sum(row[0] == "large.c" for row in rows)
    assert 680 <= large <= 760, large
    wrong = subprocess.run([sys.executable, functions_drawn.__file__, "--revision", "no-such-revision"],
                           cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
    assert wrong.returncode == 2 and "--revision no-such-revision: " in wrong.stderr, wrong
    # SHA-256 of "1\nsmall3.c\ng 1", as sha256sum prints it
    assert functions_drawn.order(1, "small3.c", "g 1").hex().startswith("c27ccc49")


if __name__ == "__main__":
    main()
