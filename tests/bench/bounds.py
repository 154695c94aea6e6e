#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the comparisons (<, <=, >, >=) whose threshold no test meets, or that only ever go one way.

    bounds.py make WORK                 a copy of the build in which each comparison is noted
    ctest --test-dir WORK/build ...     any tests; what they note adds up
    bounds.py list WORK [PATH...]       what is open: FILE:LINE:COLUMN OPERATOR [WHAT] SOURCE LINE
    bounds.py count WORK                the same as counts for each folder
    bounds.py forget WORK               begins anew

Where two operands were never equal, `<` made `<=` (or `<` of the next whole number) is a change that
surely lives (tests/bench/mutation.py), so this finds at once what a sample of changes finds one by
one. It does not tell whether a test would notice a comparison that was met, nor whether a change
would make a difference. WHAT is one or more of
    equal       the operands were never equal
    true, false it never was that
    next        `<=` or `>` of a whole constant: the next larger number was never there
    never       no test came there (a test that was not run may)
The files of mutation.py's places are read by libclang (Debian: python3-clang-14; its version must be
that of the package), and each comparison in a function is replaced by a call; those in arguments of
macros, in constants and in loops of OpenMP are left out. The tree is not touched: the compiler is
started by a script that hands it the copies, also where a test includes one. Each process maps one
table of a byte for each comparison, so that those which are killed count, too. Every comparison of
numbers that reaches the call is made on its common type, or on f64, which holds each f32."""
import argparse
import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutation  # noqa: E402

ROOT = mutation.ROOT
OPERATORS = ["<", "<=", ">", ">="]
EQUAL, ABOVE, LESS, MORE, NEITHER = 1, 2, 4, 8, 16 # ABOVE: larger by one; NEITHER: one is NaN

HEADER = """int bound_i(unsigned id, int op, long a, long b);
int bound_u(unsigned id, int op, unsigned long a, unsigned long b);
int bound_f(unsigned id, int op, double a, double b);
int bound_p(unsigned id, int op, const volatile void *a, const volatile void *b);
"""
RUNTIME = HEADER.replace("int bound", '__attribute__((visibility("hidden"))) int bound') + """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char none[BOUNDS], *table = none;
__attribute__((constructor(101))) static void begin(void) {
    const int file = open(BOUNDS_TABLE, O_RDWR | O_CREAT, 0666);
    if (file < 0) return;
    void *at = ftruncate(file, BOUNDS) == 0
                   ? mmap(0, BOUNDS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (at != MAP_FAILED) table = at;
    close(file);
}
static void note(unsigned id, int flags) {
    if ((table[id] & flags) != flags)
        __atomic_fetch_or(&table[id], (unsigned char)flags, __ATOMIC_RELAXED);
}
#define HOLD(letter, type, above)                                                      \\
    int bound_##letter(unsigned id, int op, type a, type b) {                          \\
        note(id, (a == b ? 1 : a < b ? 4 : a > b ? 8 : 16) | (a > b && (above) ? 2 : 0)); \\
        return op == 0 ? a < b : op == 1 ? a <= b : op == 2 ? a > b : a >= b;          \\
    }
HOLD(i, long, (unsigned long)a - (unsigned long)b == 1)
HOLD(u, unsigned long, a - b == 1)
HOLD(f, double, 0)
HOLD(p, const volatile void *, 0)
"""
LAUNCHER = """#!/bin/sh
# Hands the compiler the copy of a source file that has one, and to tests those that they include.
for last; do :; done
case "$last" in
ROOT/*.c) ;;
*) exec $CCACHE "$@";;
esac
new=WORK/tree${last#ROOT}
[ -f "$new" ] || new=$last
compiler=$1; shift
n=$#; i=1
for word; do shift; [ $i = $n ] && word=$new; set -- "$@" "$word"; i=$((i + 1)); done
exec $CCACHE "$compiler" -IWORK/tree -include WORK/bound.h "$@" -w -Wno-error
"""


def rewritten(cindex, path, arguments, first):
    """The text of a file with its comparisons replaced, and each of these, with numbers from `first`:
    (line, column, operator, letter of its type, text of the right operand)."""
    kinds, types = cindex.CursorKind, cindex.TypeKind
    letters = {types.FLOAT: "f", types.DOUBLE: "f", types.POINTER: "p", types.ENUM: "u",
               **{kind: "u" for kind in (types.UCHAR, types.USHORT, types.UINT, types.ULONG,
                                         types.ULONGLONG)},
               **{kind: "i" for kind in (types.BOOL, types.CHAR_S, types.SCHAR, types.SHORT,
                                         types.INT, types.LONG, types.LONGLONG)}}
    unit = cindex.Index.create().parse(str(path), args=arguments)
    broken = [str(one) for one in unit.diagnostics if one.severity >= cindex.Diagnostic.Error]
    if broken:
        sys.exit(f"bounds: {broken[0]}")
    data = path.read_bytes()
    found, edits = [], []

    def compare(cursor, left, right):
        begin, end = left.extent.end.offset, right.extent.start.offset
        between = data[begin:end].decode()
        operator = re.sub(r"/\*.*?\*/|\s", "", between, flags=re.S)
        letter = letters.get(left.type.get_canonical().kind)
        if operator not in OPERATORS or letter is None or \
                letter != letters.get(right.type.get_canonical().kind):
            return
        at = begin + between.index(operator)
        cast = "" if letter in "pf" else f"({left.type.get_canonical().spelling})"
        number = first + len(found)
        found.append((data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at), operator, letter,
                      data[end:right.extent.end.offset].decode()))
        # where several stand at one place: closings, the operator, and openings from the outside in
        edits.append((left.extent.start.offset, 2, -cursor.extent.end.offset, 0,
                      f"bound_{letter}({number}, {OPERATORS.index(operator)}, {cast}("))
        edits.append((at, 1, 0, len(operator), f"), {cast}("))
        edits.append((right.extent.end.offset, 0, 0, 0, "))"))

    def walk(cursor, inside):
        place = cursor.location.file
        if place is not None and place.name != str(path):
            return
        if cursor.kind in (kinds.ENUM_DECL, kinds.STATIC_ASSERT):
            return
        inside &= not (cursor.kind == kinds.VAR_DECL and
                       cursor.storage_class == cindex.StorageClass.STATIC)
        children = list(cursor.get_children())
        if cursor.kind == kinds.FOR_STMT and re.search(
                rb"#\s*pragma omp[^\n]*(\\\n[^\n]*)*\s*$", data[:cursor.extent.start.offset]):
            children = children[-1:] # OpenMP reads the loop's head itself
        if cursor.kind == kinds.BINARY_OPERATOR and inside and len(children) == 2:
            compare(cursor, *children)
        for child in children:
            walk(child, inside or cursor.kind == kinds.COMPOUND_STMT)

    walk(unit.cursor, 0)
    pieces, done = [], 0
    for at, _, _, length, text in sorted(edits):
        pieces += [data[done:at].decode(), text]
        done = at + length
    return "".join(pieces) + data[done:].decode(), found


def make(work):
    import clang.cindex as cindex # pylint: disable=import-outside-toplevel
    build = work / "build"
    work.mkdir(parents=True, exist_ok=True)
    launcher = work / "launcher.sh"
    launcher.write_text(LAUNCHER.replace("ROOT", str(ROOT)).replace("WORK", str(work)).replace(
        "$CCACHE", shutil.which("ccache") or ""), encoding="utf-8")
    launcher.chmod(0o755)
    (work / "bound.h").write_text(HEADER, encoding="utf-8")
    linked = [f"-DCMAKE_{kind}_LINKER_FLAGS={work / 'bound.o'}" for kind in ("EXE", "SHARED", "MODULE")]
    (work / "bound.c").write_text(RUNTIME, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-fPIC", "-c", "-DBOUNDS=65536", f'-DBOUNDS_TABLE="{work / "table"}"',
                    "bound.c"], cwd=work, check=True)
    subprocess.run(["cmake", "--preset", "strict", "-B", build, *linked,
                    f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}"], cwd=ROOT, check=True)
    commands = {one["file"]: shlex.split(one["command"]) for one in
                json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))}
    system = subprocess.run(["clang", "-print-resource-dir"], check=True, capture_output=True,
                            text=True).stdout.strip() # where stddef.h is
    comparisons = []
    for path in mutation.sources(mutation.PLACES):
        words = commands.get(str(path), [])
        arguments = [word for before, word in zip([""] + words, words) if before == "-isystem" or
                     word.startswith(("-I", "-D", "-std", "-isystem"))]
        text, found = rewritten(cindex, path, arguments + [f"-I{system}/include"], len(comparisons))
        comparisons += [(str(path.relative_to(ROOT)), *one) for one in found]
        target = work / "tree" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    (work / "comparisons.json").write_text(json.dumps(comparisons), encoding="utf-8")
    subprocess.run(["cmake", "--build", build], check=True)


def open_of(operator, letter, right, flags):
    """What of a comparison is open, in words."""
    if not flags:
        return ["never"]
    words = [] if flags & EQUAL else ["equal"]
    is_true = {"<": LESS, "<=": LESS | EQUAL, ">": MORE, ">=": MORE | EQUAL}[operator]
    words += [] if flags & is_true else ["true"]
    words += [] if flags & (31 & ~ABOVE & ~is_true) else ["false"]
    if letter in "iu" and operator in ("<=", ">") and not flags & ABOVE and \
            re.fullmatch(r"\d+[uUlL]*|[A-Z_0-9]+", right):
        words.append("next")
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "list", "count", "forget"])
    parser.add_argument("work", type=pathlib.Path, metavar="WORK")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    if arguments.verb == "make":
        make(work)
        return
    if arguments.verb == "forget":
        (work / "table").unlink(missing_ok=True)
        return
    table = (work / "table").read_bytes()
    counts = collections.defaultdict(collections.Counter)
    for number, (path, line, column, operator, letter, right) in enumerate(
            json.loads((work / "comparisons.json").read_text(encoding="utf-8"))):
        words = open_of(operator, letter, right, table[number])
        counts[path.split("/")[0]].update(words + ["all"] + (["open"] if words else []))
        if arguments.verb == "list" and words and path.startswith(tuple(arguments.paths or [""])):
            text = (ROOT / path).read_text(encoding="utf-8").splitlines()[line - 1].strip()
            print(f"{path}:{line}:{column} {operator} [{', '.join(words)}] {text}")
    if arguments.verb == "count":
        for folder, count in sorted(counts.items()):
            print(folder, ", ".join(f"{count[word]} {word}" for word in (
                "all", "open", "equal", "true", "false", "next", "never")))


if __name__ == "__main__":
    main()
