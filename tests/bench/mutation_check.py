# SPDX-License-Identifier: Apache-2.0
"""Checks which tokens tests/bench/mutation.py changes, on a text that is made up: none in comments,
strings, characters and lines of the preprocessor, and each rule's own ones everywhere else; which
tests execute a line, by a map that is made up; that a child's lines are counted although it ends by
_exit(); and that a test is asked which includes a source under other names, so that its program
defines nothing that the source's object does. It takes a second."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

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

# made-up.c has functions in lines 3 to 9 and 12 to 20; nothing of the second one ran.
MAP = [{"made-up.c": [[[3, 0], [5, 2], [6, 0], [9, 0], [12, 0], [14, 0]], [[3, 9], [12, 20]]]},
       ["test_a", 3.0, {"made-up.c": [[3, 5, 6, 9], [[5, 1]]]}],
       ["test_b", 1.0, {"made-up.c": [[3, 9], []]}], ["test_c", 2.0, {}], ["test_d", 4.0, None]]
EXECUTING = {3: "ab", 4: "ab", 5: "a", 6: "a", 8: "a", 9: "ab", 10: "ab", 14: "", 20: ""}

FILTER = """#include <unistd.h>
void confined_enter(const char *path);
void confined_enter(const char *path) { (void)path, _exit(3); }
"""
CHILD = """#include <sys/wait.h>
#include <unistd.h>
void confined_enter(const char *path);
int main(void) {
    int ended = 1;
    if (fork() == 0) {
        confined_enter("");
        _exit(0); /* line 8 */
    }
    wait(&ended);
    return ended;
}
"""


def check_coverage(folder):
    kept = folder / "map"
    kept.write_text("".join(json.dumps(line) + "\n" for line in MAP), encoding="utf-8")
    coverage = mutation.Coverage(kept)
    for line, wanted in EXECUTING.items():
        got = "".join(name[-1] for name in coverage.executing("made-up.c", line))
        assert got == wanted, (line, got, wanted)
    assert list(coverage.uncovered("made-up.c")) == [
        (5, "branch 0 of 2 not taken"), (12, "not executed"), (14, "not executed")]
    assert coverage.seconds == {"test_a": 3.0, "test_b": 1.0, "test_c": 2.0}
    seconds = {"a": 3.0, "b": 1.0, "c": 2.0}
    assert mutation.up_to(["a", "b", "c"], seconds, 3.0) == ["b", "c"]
    assert mutation.up_to(["a", "b", "c"], seconds, 6.0) == ["b", "c", "a"]
    assert mutation.up_to(["a"], seconds, 2.0) == []
    if not shutil.which("gcov") or not shutil.which("gcc"):
        return
    (folder / "child.c").write_text(CHILD, encoding="utf-8")
    (folder / "filter.c").write_text(FILTER, encoding="utf-8")
    (folder / "ends.c").write_text(mutation.ENDS, encoding="utf-8")
    for command in (["gcc", "-c", "ends.c", "filter.c"], ["gcc", "--coverage", "-O0", "-c", "child.c"],
                    ["gcc", "child.o", "filter.o", "ends.o", *mutation.ENDS_LINKED, "-o", "child"], ["./child"]):
        subprocess.run(command, cwd=folder, check=True)
    told = subprocess.run(["gcov", "--json-format", "--stdout", "child.gcda"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    lines = {line["line_number"]: line["count"] for line in json.loads(told)["files"][0]["lines"]}
    assert lines[8] == 1, lines


def check_holding(folder):
    path = pathlib.Path("forensics/made.c")
    (folder / "renamed.c").write_text('#define f tested_f\n#include "forensics/made.c"\n',
                                      encoding="utf-8")
    (folder / "other.c").write_text("/* forensics/made.c */\n", encoding="utf-8")
    work = object.__new__(mutation.Work)
    work.folder, work.command = folder, {}
    work.test_programs = ["test_renamed", "test_other"]
    work.test_sources = {"test_renamed": pathlib.Path("renamed.c"),
                         "test_other": pathlib.Path("other.c")}
    work.folders = {"forensics": work.test_programs}
    assert work.holds(path, "test_renamed") and not work.holds_object(path, "test_renamed")
    assert not work.holds(path, "test_other")
    assert work.near(path) == [[], ["test_renamed"]], work.near(path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_coverage(pathlib.Path(folder))
        check_holding(pathlib.Path(folder))
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
    for words, said in ((["no/such/folder"], "no/such/folder: no such file or folder"),
                        (["--upto", "5"], "--upto and --uncovered go with --covered"),
                        (["--count", "0"], "--count: expected at least 1, got 0"),
                        (["--count", "-3"], "--count: expected at least 1, got -3"),
                        (["--from", "0"], "--from: expected at least 1, got 0"),
                        (["--jobs", "0"], "--jobs: expected at least 1, got 0")):
        wrong = subprocess.run([sys.executable, script, "--list", *words], check=False,
                               capture_output=True, text=True)
        assert wrong.returncode == 2 and said in wrong.stderr and not wrong.stdout, wrong


if __name__ == "__main__":
    main()
