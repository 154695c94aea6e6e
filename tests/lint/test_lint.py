#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks every rule of lint.py once, in a small tree of its own, and expects that it is found.

What must not be found is tested, too: comments, text in strings, and each rule's exceptions."""
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lint  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
PY = "# SPDX-License-Identifier: Apache-2.0\n"


def c(body):
    return SPDX + body


def notebook(**cell):
    ran = {"execution_count": 1, "outputs": [{"output_type": "stream"}]}
    return json.dumps({"cells": [{"cell_type": "markdown", "id": "said", "source": []},
                                 {"cell_type": "code", "id": "one", "source": [], **ran, **cell}]})


def header(guard, body=""):
    return SPDX + f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


PAIR = "[`pair`](../scenarios/catalog/pair.yaml)"
PAGE = "".join(f"| {case} | {PAIR} | identical |\n" for case in lint.CASES)

# A tree without a fault: (name, text).
CLEAN = {
    "base/thing.h": header("TWINSTEP_BASE_THING_H", "int thing(void);"),
    "base/thing.c": c('#include "base/thing.h"\nint thing(void) {\n    return 1;\n}\n'),
    "base/arena.c": c("void *take(void) {\n    return malloc(1);\n}\n"),
    "base/status.c": c("static _Thread_local char text[8];\n"),
    "kernels/cpu/row.c": c("void row(void) {\n#pragma omp parallel\n    omp_get_max_threads();\n}\n"),
    "determinism/trace/trace_rows.c": c('#include <hdf5.h>\nhid_t open_it(void) {\n'
                                  '    return H5Fopen("x", 0, 0);\n}\n'),
    "determinism/statistics.c": c("#include <gsl/gsl_cdf.h>\nint g(void) {\n"
                                  "    return gsl_cdf();\n}\n"),
    "cli/main.c": c('#include "base/thing.h"\nstatic volatile int interrupted;\n'
                    "int main(void) {\n    exit(thing());\n}\n"),
    "data/rows.h": header("TWINSTEP_DATA_ROWS_H", "int rows(void);"),
    "trainer/step.h": header("TWINSTEP_TRAINER_STEP_H", "int step(void);"),
    "trainer/run_private.h": header("TWINSTEP_TRAINER_RUN_PRIVATE_H", "int inside(void);"),
    "trainer/run.c": c('#include "trainer/run_private.h"\nint inside(void);\n'),
    "experiment/plan.c": c('#include "trainer/step.h"\nint plan(void);\n'),
    "experiment/noise/table.h": header("TWINSTEP_EXPERIMENT_NOISE_TABLE_H", "int table(void);"),
    "experiment/noise/table.c": c('#include "experiment/noise/table.h"\nint table(void);\n'),
    "trainer/said.c": c("/* malloc( qsort( exp( rand( H5Fopen gsl_cdf */\n"
                        'const char *said(void) {\n    return "exit( time( fy_parse setlocale(";\n}\n'),
    "trainer/tables.c": c("static const int counts[2] = {1, 2};\n"
                          "static const char *const names[] = {0};\n"),
    "kernels/cpu/race.h": "/* SPDX-License-Identifier: Apache-2.0\n * Adds. */\n"
                          "#ifndef TWINSTEP_KERNELS_CPU_RACE_H\n#define TWINSTEP_KERNELS_CPU_RACE_H\n"
                          "\nint add(int *p);\n/* x */\n#define NEXT(p) __atomic_fetch_add(p, 1, 0)\n"
                          "\n#endif\n",
    "checkpoints/mapped.c": c("void m(void) {\n    mmap(0, 0, 0, 0, 0, 0);\n}\n"),
    "base/confined.c": c("void s(void) {\n    mmap(0, 0, 0, 0, 0, 0);\n}\n"),
    "logs/map_file.c": c("void f(void) {\n    mmap(0, 0, 0, 0, 0, 0);\n}\n"),
    "cmake/flags.cmake": "# SPDX-License-Identifier: Apache-2.0\n# never -O" + "fast\n",
    "scenarios/catalog/pair.yaml": "name: pair\nexpect: {verdict: identical}\n",
    "docs/CATALOG.md": PAGE,
    "notebooks/read.ipynb": notebook(),
    "python/src/good.py": PY + "class _C:\n    def f(self, *a: int, **b: int) -> None:\n"
                          "        'x'\n        def g() -> None:\n            pass\n",
    "docs/wide.md": "# A heading " + "that is long " * 10 + "\n\n| a " * 40 + "|\n\n```\n" + "x " * 60 +
                    "\n```\n\n<!-- " + "y " * 60 + "-->\n[a](https://example.org/" + "z" * 100 + ")\n",
    "README.md": "build/default/bin/twinstep, tests/ho" + "me/x, `base/thing.h`, [C](cli/main.c), # 1 known bugs\n",
}

# Each break: rule, file, its text, and what the message must hold.
BREAKS = [
    ("includes", "base/up.c", c('#include "trainer/tables.h"\n'), "no file"),
    ("includes", "sched/side.c", c('#include "determinism/digest.h"\n'), "no file"),
    ("includes", "data/up.c", c('#include "trainer/step.h"\n'), "data/ may not know trainer/"),
    ("includes", "evidence/up.c", c('#include "trainer/step.h"\n'), "may not know trainer/"),
    ("includes", "trainer/up.c", c('#include "experiment/noise/table.h"\n'), "may not know"),
    ("rooms", "experiment/up.c", c('#include "experiment/noise/table.h"\n'),
     "experiment/up.c may not know experiment/noise/"),
    ("rooms", "rollout/in.c", c('#include "determinism/trace/hdf5_columns.h"\n'
                                '#include "determinism/trace/trace_private.h"\n'),
     "trace_private.h is inside determinism/"),
    ("rooms", "experiment/parity/up.c", c('#include "experiment/noise/table.h"\n'), "may not know"),
    ("rooms", "experiment/locate/up.c", c('#include "experiment/pair.h"\n'),
     "experiment/locate/ may not know experiment/"),
    ("private", "experiment/up.c", c('#include "trainer/run_private.h"\n'), "private to its folder"),
    ("own_header_first", "base/thing.c", c("#include <stdio.h>\nint thing(void);\n"), "base/thing.h"),
    ("exceptions_are_used", "logs/map_file.c", c("void f(void);\n"), "not needed"),
    ("mutable", "sched/table.c", c("static int calls;\n"), "calls"),
    ("mutable", "sched/table.c", c("static const char *name = 0;\n"), "name"),
    ("mutable", "sched/table.c", c("static unsigned rows[4] = {1};\n"), "rows"),
    ("unique_names", "cli/thing.c", c("int x(void);\n"), "base/thing.c"),
    ("guard", "base/other.h", header("TWINSTEP_OTHER_H"), "TWINSTEP_BASE_OTHER_H"),
    ("guard", "base/other.h", SPDX + "int x(void);\n", "TWINSTEP_BASE_OTHER_H"),
    ("licence", "base/bare.c", "int x(void);\n", "SPDX"),
    ("licence", "tests/lint/bare.py", "import sys\n", "SPDX"),
    ("flags", "cmake/flags.cmake", "# SPDX-License-Identifier: Apache-2.0\nset(F -O" + "fast)\n", "-O"),
    ("flags", "CMakePresets.json", '{"x": "-ff' + 'ast-math"}\n', "ast-math"),
    ("places", "docs/A.md", "see /ho" + "me/someone/x\n", "place"),
    ("places", "docs/A.md", "from pypi." + "org\n", "place"),
    ("documents", "docs/A.md", "see `base/gone.h`\n", "base/gone.h"),
    ("documents", "docs/A.md", "[see](gone.md#there)\n", "gone.md"),
    ("citations", "base/cited.c", c("/* as in fac" "ts, section 2.1 */\nint x;\n"), "no document"),
    ("citations", "docs/A.md", "see la" "ws.md, section 5\n", "no document"),
    ("typed", "python/src/a.py", PY + "def f(a, b: int) -> int:\n    'x'\n", "f has no type for a"),
    ("typed", "python/src/a.py", PY + "def _f(*, a):\n    pass\n", "a, what it returns"),
    ("typed", "python/src/a.py", PY + "class Some:\n    pass\n", "Some has no docstring"),
    ("columns", "python/a.py", PY + "a = '" + "x" * 96 + "'\n", "102 columns"),
    ("prose", "docs/A.md", "word " * 20 + "over\n", "104 columns of prose"),
    ("prose", "docs/A.md", "```\nblock\n```\n* " + "word " * 20 + "\n", "102 columns of prose"),
    ("columns", "base/wide.c", c("/* " + "x" * 98 + " */\n"), "104 columns"),
    ("broken_strings", "base/said.c",
     c('const char *const said =\n    "one two "\n    "three "\n    "four";\n'), "one word"),
    ("prose", "README.md", "```\n" + "x" * 121 + "\n```\n", "121 columns"),
    ("notebooks", "notebooks/read.ipynb", notebook(execution_count=None), "number None"),
    ("notebooks", "notebooks/read.ipynb", notebook(execution_count=3), "number 3"),
    ("notebooks", "notebooks/read.ipynb", notebook(outputs=[]), "no cell shows"),
    ("notebooks", "notebooks/read.ipynb", notebook(outputs=[{"output_type": "error"}]), "error"),
    ("notebooks", "notebooks/read.ipynb", '{"cells": [{"outputs": []', "no notebook"),
    ("notebooks", "notebooks/read.ipynb", '{"worksheets": []}', "no notebook"),
    ("catalogue", "docs/CATALOG.md", PAGE + "| [`gone`](A.md) | identical |\n", "gone.yaml is no file"),
    ("catalogue", "docs/CATALOG.md", PAGE.replace("| #37 |", "| #35 |"), "no scenario for #37"),
    ("catalogue", "docs/CATALOG.md", PAGE.replace("| identical |", "| outside-floor |", 1),
     "pair expects: identical"),
    ("catalogue", "scenarios/catalog/other.yaml", "name: other\n", "not in docs/CATALOG.md"),
    ("catalogue", "scenarios/catalog/folder/other.yaml", "name: other\n", "not in docs/CATALOG.md"),
    ("catalogue", "README.md", "suite X # 2 known bugs\n", "the catalogue has 1 scenarios"),
]
# Each kind of word: rule, file, the line.
WORDS = [
    ("memory", "trainer/w.c", "malloc(1)"), ("memory", "base/w.c", "free(p)"),
    ("memory", "cli/w.c", "strdup(p)"), ("memory", "kernels/w.c", "calloc(1, 1)"),
    ("memory", "optim/w.c", "realloc(p, 1)"), ("libm", "kernels/cpu/w.c", "expf(x)"),
    ("libm", "optim/w.c", "pow(x, y)"), ("libm", "sched/w.c", "cos(x)"),
    ("libm", "trainer/w.c", "log(x)"), ("libm", "determinism/w.c", "exp(x)"),
    ("libm", "base/w.c", "tanh(x)"), ("libm", "kernels/w.c", "sinf(x)"),
    ("random", "determinism/w.c", "rand()"), ("clock", "trainer/w.c", "time(0)"),
    ("date", "cli/w.c", "puts(__DATE__)"), ("open", "data/w.c", "open(path, O_RDONLY)"),
    ("open", "data/w.c", 'fopen(path, "rb")'),
    ("qsort", "determinism/w.c", "qsort(a, b, c, d)"),
    ("atomic", "kernels/cpu/w.c", "atomicAdd(p, x)"),
    ("atomic", "kernels/cpu/w.c", "__atomic_fetch_add(p, 1, 0)"),
    ("atomic", "kernels/cpu/w.c", "x;\n#pragma omp for reduction(+ : sum)\n"),
    ("locale", "cli/w.c", "setlocale(a, b)"), ("exit", "cli/w.c", "exit(1)"),
    ("exit", "base/w.c", "abort()"), ("environment", "kernels/w.c", "getenv(n)"),
    ("dlopen", "cli/w.c", "dlopen(n, 1)"), ("gsl", "trainer/w.c", "gsl_cdf(x)"),
    ("hdf5", "cli/w.c", "H5Fopen(n, 0, 0)"), ("hdf5", "determinism/digest.c", "H5close()"),
    ("hdf5", "trainer/w.c", "hid_t x"), ("nettle", "base/w.c", "sha256_init(x)"),
    ("packers", "data/w.c", "inflate(z, 0)"), ("sqlite", "data/w.c", "sqlite3_step(s)"),
    ("yaml", "trainer/w.c", "fy_parse(x)"), ("json", "scenarios/w.c", "json_object_get(o, k)"),
    ("json", "scenarios/w.c", "json_t *x"), ("openmp", "trainer/w.c", "omp_get_thread_num()"),
    ("openmp", "sched/w.c", "x;\n#pragma omp parallel\n"), ("cuda", "kernels/cpu/w.c", "cudaMalloc(p)"),
    ("flag", "data/w.c", "bool x"), ("flag", "tests/base/w.c", "_Bool x"),
    ("increment", "optim/w.c", "for (int i = 0; i < 2; ++i)"),
    ("process", "ablate/w.c", "posix_spawnp(p, f, a, b, v, e)"), ("process", "cli/w.c", "execv(p, a)"),
    ("process", "cli/w.c", "waitpid(p, h, 0)"), ("process", "logs/w.c", 'popen("zcat", "r")'),
    ("process", "experiment/w.c", "pipe(p)"), ("signal", "cli/w.c", "sigaction(s, a, b)"),
    ("signal", "ablate/w.c", "kill(p, 9)"), ("socket", "cli/w.c", "socket(a, b, 0)"),
    ("socket", "logs/w.c", "connect(s, a, n)"), ("mpi", "ranks/w.c", "MPI_Send(a)"),
    ("mpi", "cli/w.c", "x;\n#include <mpi.h>\n"),
]
for rule, file, line in WORDS:
    BREAKS.append(("tokens", file, c(f"void w(void) {{\n    {line};\n}}\n"), f"{rule}: "))
# Tries every pair of folders that may not include each other, with a header that exists.
for one in lint.LAYERS:
    for two in lint.LAYERS:
        if one != two and two not in lint.LAYERS[one]:
            BREAKS.append(("includes", f"{one}/from.c", c(f'#include "{two}/known.h"\n'), f"{two}/"))
HEADERS = {f"{name}/known.h": header(f"TWINSTEP_{name.upper()}_KNOWN_H") for name in lint.LAYERS}


def write(root, files):
    for name, text in files.items():
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def found_in(files):
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return lint.run_rules(root)[1]


def broken_headers(files, compiler):
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return [(name, language) for name, language, _ in lint.run_headers(root, compiler, [])[1]]


def main():
    errors = []
    spurious = found_in(CLEAN)
    if spurious:
        errors.append(f"the clean tree is not clean: {spurious}")
    for rule, name, text, part in BREAKS:
        known = {} if part in ("no file",) else {
            k: v for k, v in HEADERS.items() if part.rstrip("/") in k or k.startswith(part)}
        seen = found_in({**CLEAN, **known, name: text})
        if not any(r == rule and f == name and part in message for f, _, r, message in seen):
            errors.append(f"{rule}: not seen in {name}: {text!r}: only {seen}")
    tested = {"rule_" + rule for rule, *_ in BREAKS}
    errors += [f"{r.__name__} is never broken" for r in lint.RULES if r.__name__ not in tested]
    words = {rule for rule, *_ in WORDS}
    errors += [f"word {rule} is never broken" for rule, *_ in lint.TOKENS if rule not in words]

    compiler = sys.argv[1] if len(sys.argv) > 1 else "cc"
    bodies = {
        "base/number.h": header("TWINSTEP_BASE_NUMBER_H", "size_t no_stddef(void);"),
        "base/real.h": header("TWINSTEP_BASE_REAL_H", "static inline int *r(void *p) { return p; }"),
        "base/macro.h": header("TWINSTEP_BASE_MACRO_H", "static inline float h(double x) { return x; }"),
    }
    expected = {("base/number.h", "c"), ("base/real.h", "c++"),
                ("base/macro.h", "c"), ("base/macro.h", "c++")}
    broken = set(broken_headers({**HEADERS, **bodies}, compiler))
    broken.discard(("base/real.h", "c"))  # gcc's -Wc++-compat sees it in C too, clang's does not
    if broken != expected:
        errors.append(f"headers: expected {sorted(expected)}, found {sorted(broken)}")

    for error in errors:
        print(error)
    print(f"{len(BREAKS)} breaks and {len(bodies)} headers tried, {len(errors)} not as expected")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
