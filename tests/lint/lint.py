#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the tree that no compiler knows: who includes whom, which words stand where.

    lint.py [--root FOLDER]                 every rule that reads text
    lint.py --headers COMPILER [FLAG...]    each header compiled alone, as C11 and, marked, as C++17;
                                            not as C11 where a .c file of its name begins with it

Reads the folders of docs/ARCHITECTURE.md, so it needs no git. Prints FILE:LINE: rule: text and
returns 1 when a rule is broken; sizes are printed as warnings and break nothing.
test_lint.py breaks every rule once."""
import argparse
import ast
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

# A folder may include its own headers and those of the folders listed here (docs/ARCHITECTURE.md
# draws it).
LAYERS = {
    "base": [],
    "determinism": ["base"],
    "ranks": ["determinism", "base"],
    "kernels": ["determinism", "base"],
    "optim": ["kernels", "determinism", "base"],
    "checkpoints": ["determinism", "base"],
    "readback": ["optim", "kernels", "checkpoints", "determinism", "base"],
    "sched": ["base"],
    "logs": ["determinism", "base"],
    "forensics": ["logs", "sched", "determinism", "base"],
    "rollout": ["logs", "determinism", "base"],
    "dumps": ["logs", "determinism", "base"],
    "scenarios": ["determinism", "base"],
    "data": ["scenarios", "ranks", "determinism", "base"],
    "model": ["data", "kernels", "checkpoints", "scenarios", "ranks", "determinism", "base"],
    "evidence": ["scenarios", "determinism", "base"],
    "trainer": ["model", "data", "optim", "kernels", "sched", "scenarios", "checkpoints",
                "ranks", "determinism", "base"],
    "experiment": ["trainer", "evidence", "model", "data", "optim", "kernels", "sched", "scenarios",
                   "checkpoints", "ranks", "determinism", "base"],
    "report": ["evidence", "scenarios", "ranks", "determinism", "base"],
    "ablate": ["evidence", "scenarios", "checkpoints", "logs", "determinism", "base"],
    "cli": ["report", "ablate", "experiment", "trainer", "evidence", "model", "data", "forensics", "rollout", "dumps", "logs",
            "readback", "optim", "kernels", "sched", "scenarios", "checkpoints", "ranks", "determinism",
            "base"],
}
# Rooms inside a folder: each may know the files of the folder itself, which may know none of the
# rooms; and no room knows another one. Of a room in the cellar the opposite holds: all others may
# know it, and it knows no file of the folder.
ROOMS = {"experiment": ["locate", "noise", "parity"], "determinism": ["trace"], "logs": ["readers"],
         "forensics": ["doctor"], "trainer": ["plugins"],
         "cli": ["ablate", "noise", "pages", "parity", "ranks", "readback", "rollout"]}
CELLARS = ["experiment/locate", "trainer/plugins"]
# Rooms that their folder keeps to itself, with those headers that others may include.
INNER = {"determinism/trace": ["determinism/trace/hdf5_columns.h"], "logs/readers": []}
NUMERIC = ["base", "determinism", "ranks", "kernels", "optim", "sched", "logs", "forensics", "rollout", "dumps", "data", "model",
           "evidence", "trainer", "experiment", "report", "checkpoints", "readback", "ablate"]
OTHER = ["tests", "cmake", "docs", "notebooks", "python", ".ci"]

# The headers that nvcc reads, which must be C11 and C++17 at once.
SHARED_HEADERS = [
    "base/macro.h", "base/sequence.h", "base/real*.h", "base/sum*.h", "base/rule*.h", "base/dtype.h",
    "determinism/philox.h", "determinism/stream.h", "determinism/normal.h",
    "determinism/leafhash.h", "determinism/own_bits.h", "kernels/*.h",
]

FUNCTIONS = ("exp|exp2|expm1|exp10|log|log2|log10|log1p|pow|tanh|sinh|cosh|sin|cos|tan|asin|acos|"
             "atan|atan2|erf|erfc|cbrt|hypot|lgamma|tgamma")

# Each rule: name, pattern, folders in which it holds, files where it does not (glob), and why.
TOKENS = [
    ("memory", r"\b(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup|strndup|"
               r"asprintf|vasprintf|getline|getdelim|open_memstream|mmap|sbrk)\s*\(",
     list(LAYERS), ["base/arena.c"], "base/arena.c is the only memory"),
    ("libm", rf"\b({FUNCTIONS})[fl]?\s*\(", NUMERIC, [], "functions come from base/real.h"),
    ("random", r"\b(s?rand|s?random|rand_r|[dejlmn]rand48|getrandom|arc4random)\s*\(",
     list(LAYERS), [], "draws come from determinism/stream.h"),
    ("clock", r"\b(time|clock|gettimeofday|clock_gettime|localtime|gmtime|strftime)\s*\(",
     NUMERIC + ["scenarios"], [], "no result depends on the time"),
    ("date", r"\b__(DATE|TIME|TIMESTAMP)__\b", list(LAYERS) + ["tests"], [],
     "two builds of one source are the same"),
    ("qsort", r"\b(qsort|qsort_r|bsearch)\s*\(", list(LAYERS), [],
     "ties would stand in an order that the library chooses"),
    ("atomic", r"\batomic(Add|CAS|Exch|Max|Min)\b|\b_Atomic\b|\batomic_|pragma\s+omp\s+atomic|"
               r"\b__(atomic|sync)_|pragma\s+omp\b.*\breduction\b", list(LAYERS),
     ["kernels/cpu/race.h", "kernels/cuda/port.h"], "no sum takes its order from threads, but in mode atomic"),
    ("open", r"(?<![.>])\b(f?open|openat|freopen|creat)\s*\(", list(LAYERS),
     ["base/input.c", "base/publish.c", "determinism/trace/trace_path.c", "checkpoints/safetensors_write.c",
      "cli/output.c", "cli/environment.c", "ablate/ablate_claims.c", "cli/ablate/ablate_guard.c",
      "base/confined_filter.c", "*.cu", "*.h"],
     "what is not written here may be a pipe: base/input.h opens it"),
    ("process", r"(?<![.>])\b(v?fork|posix_spawnp?|exec[vl]p?e?|fexecve|wait(pid|id|3|4)|popen|pclose|system|"
                r"pipe2?|set(sid|pgid|pgrp)|prctl|ptrace)\s*\(", list(LAYERS),
     ["cli/main.c", "cli/second.c", "cli/child.c", "cli/children.c", "cli/jobs.c",
      "cli/ablate/ablate_guard.c", "base/confined.c", "base/confined_filter.c"],
     "processes are started by cli/second.c and cli/child.c, readers by base/confined.c, and commands "
     "of users by cli/ablate/ablate_guard.c"),
    ("signal", r"(?<![.>])\b(signal|sigaction|raise|kill|killpg|sigprocmask|pthread_sigmask|alarm|"
               r"setitimer|sigwait\w*)\s*\(", list(LAYERS),
     ["cli/main.c", "cli/second.c", "cli/child.c", "cli/children.c", "cli/jobs.c", "cli/pipe_write.c",
      "cli/ablate/ablate_guard.c", "base/confined.c", "ablate/ablate_claims.c"],
     "signals are main's, and of those who wait for another process"),
    ("socket", r"(?<![.>])\b(socket(pair)?|connect|bind|listen|accept4?|getaddrinfo|gethostbyname)\s*\(",
     list(LAYERS), ["cli/ablate/ablate_start.c"], "nothing here talks to a network"),
    ("locale", r"\bsetlocale\s*\(", list(LAYERS), [], "numbers read and print alike everywhere"),
    ("exit", r"\b(exit|_exit|_Exit|quick_exit|abort|at_quick_exit|atexit)\s*\(", list(LAYERS),
     ["cli/main.c", "cli/ablate/ablate_guard.c",  # a child of fork() that cannot become a command
      "cli/child.c",                               # a child of fork() that has done its work
      "base/confined.c",                           # a child of fork() that has answered
      "ranks/mpi/mpi_ranks.c"],                    # MPI_Init, where another process hangs, never returns
     "only cli/main.c ends the process"),
    ("environment", r"\b(getenv|secure_getenv|putenv|setenv)\s*\(", NUMERIC + ["scenarios"],
     ["kernels/blas.c", "kernels/cuda/library_variables.h", "kernels/cuda/library_search.h"],
     "a setting is a value of the scenario; what a library reads is refused"),
    ("dlopen", r"\b(dlopen|dlsym|dlclose)\s*\(", list(LAYERS),
     ["base/*", "kernels/cuda/library_handle.cu", "kernels/cuda/library_search.h",
      "kernels/cuda/module.cu"],
     "only base/ loads, and the module for devices"),
    ("gsl", r"\bgsl_|\bgsl/", list(LAYERS), ["determinism/*"], "GSL serves the statistics only"),
    ("hdf5", r"\bH5[A-Z]{0,2}[a-z_]\w*|\bh(id|size|ssize|err)_t\b|\bhdf5(_hl)?\.h\b", list(LAYERS),
     ["determinism/trace/*", "determinism/libraries.c"],
     "HDF5 stays inside the trace"),
    ("nettle", r"\bsha256_|\bnettle[_/]", list(LAYERS),
     ["determinism/digest.c", "determinism/libraries.c"], "SHA-256 stays inside the digest"),
    ("packers", r"\b(inflate\w*|deflate\w*|crc32|lzma_\w+|ZSTD_\w+)\b|\b(zlib|lzma|zstd)\.h\b",
     list(LAYERS), ["logs/unpack.c", "logs/framed.c", "checkpoints/torch_zip.c"],
     "packed logs are unpacked in one place; a zip needs its checksum"),
    ("sqlite", r"\bsqlite3\w*", list(LAYERS), ["logs/database.c"],
     "databases are for logs, behind logs/database.h"),
    ("yaml", r"\bfy_\w|\blibfyaml\.h\b", list(LAYERS), ["scenarios/yaml*"],
     "YAML is a tree of ours outside scenarios/yaml.c"),
    ("json", r"\bjson_(t|error_t|object|array|stringn?|integer|real|boolean|number|load|dump|u?npack|"
             r"decref|incref|typeof|is)(_\w+)?\b|\bjansson\.h\b", list(LAYERS),
     ["data/*", "evidence/*", "logs/*", "forensics/*", "checkpoints/*", "cli/*"],
     "JSON is for data rows, logs, model files and results"),
    ("openmp", r"\bomp_\w+\s*\(|\bomp\.h\b|pragma\s+omp\b", list(LAYERS), ["kernels/*", "optim/*"],
     "threads work inside one operation only"),
    ("flag", r"\bbool\b|\b_Bool\b|\bstdbool\.h\b", list(LAYERS) + ["tests"],
     ["tests/kernels/ptx_words.h"],  # .pred of PTX
     "flags are int, as the traces and the tables have them"),
    ("increment", r"; \+\+\w+\)", list(LAYERS) + ["tests"], [], "loops count with i++"),
    ("cuda", r"\bcuda[A-Z]\w*|\bcu(blas|rand)[A-Z_]\w*", list(LAYERS), ["kernels/cuda/*"],
     "CUDA is a module"),
    ("mpi", r"\bMPI_[A-Za-z]\w*|\bmpi\.h\b", list(LAYERS), ["ranks/mpi/*"],
     "MPI is a module, which moves bytes"),
]
# The documented exceptions: (file, rule, word). What these words handle belongs to the system
# library.
EXCEPTIONS = {
    ("logs/map_file.c", "memory", "mmap"):
        "a log of any length is read without a copy of it; its pages are the kernel's",
    ("base/confined.c", "memory", "mmap"): "what a process shares with the child that reads for it",
    ("checkpoints/mapped.c", "memory", "mmap"):
        "weights are read without a copy of them; their pages are the kernel's",
}

# The words are not spelled in one piece, so that this file obeys its own rules.
MACHINE = re.compile("(?<![\\w.*])/(" + "|".join(["ho" + "me", "wo" + "rk", "ro" + "ot"]) + ")/")
HOSTS = re.compile("|".join(name.replace(" ", r"\.") for name in (
    "deb debian org", "ftp debian org", "snapshot debian org", "archive ubuntu com", "pypi org",
    "pythonhosted org", "registry npmjs org", "crates io", "proxy golang org",
    "developer download nvidia com", "anaconda org")))
FAST = re.compile("-O" + "fast|-ff" + "ast-math|-use_f" + "ast_math|-funsafe-math|-ffinite-math|"
                  "-fassociative-math|-freciprocal-math|-ffp-contract=(fast|on)")

# A build file may ask for them where a test needs what they do: (file, flag).
FLAG_EXCEPTIONS = {
    ("tests/plugins/CMakeLists.txt", "-ff" + "ast-math"): "modules that must be refused",
    ("tests/plugins/CMakeLists.txt", "-ffin" + "ite-math"): "modules that must be refused",
}

C_FILES = {".c", ".h", ".inc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# What a pattern of TOKENS matches lies in one of these, but for a "(" behind a word. Each pattern is
# looked for in the distinct ones of the tree, and then in the files that have what it matched.
FRAGMENT = re.compile(r"\w+|^[ \t]*#.*|; \+\+\w+\)", re.M)


class Tree:
    """All text of the tree, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.text = {}
        for path in sorted(self.root.glob("*")) + [p for f in [*LAYERS, *OTHER]
                                                   for p in sorted((self.root / f).rglob("*"))]:
            # .git is a file in a work tree of git's, and names a folder of the machine
            if path.is_file() and path.name != ".git" and "__pycache__" not in path.parts:
                data = path.read_bytes()
                if b"\0" not in data:
                    name = path.relative_to(self.root).as_posix()
                    self.text[name] = data.decode("utf-8", "replace")
        self.code = {name: strip(text) for name, text in self.text.items() if is_c(name)}


def is_c(name):
    return pathlib.PurePath(name).suffix in C_FILES


def strip(text):
    """Returns C without comments and without the contents of strings; lines stay where they are."""
    def blank(match):
        token = match.group(0)
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + token[0]
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    lines = re.sub(pattern, blank, text, flags=re.S).split("\n")
    originals = text.split("\n")
    for i, line in enumerate(lines):  # an include's name is no string
        if re.match(r"\s*#\s*include", line):
            lines[i] = originals[i]
    return "\n".join(lines)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def folder(name):
    return name.split("/")[0] if "/" in name else ""


def rule_includes(tree):
    for name, code in tree.code.items():
        allowed = LAYERS.get(folder(name))
        for match in INCLUDE.finditer(code):
            target = match.group(1)
            line = line_of(code, match.start(1))
            if target not in tree.text:
                yield name, line, f'"{target}" is no file, seen from the root'
            elif allowed is not None and folder(target) not in [folder(name), *allowed]:
                yield name, line, f"{folder(name)}/ may not know {folder(target)}/"


def room(name):
    """Returns "experiment/noise" for a file in such a room, else ""."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[1] in ROOMS.get(parts[0], []) else ""


def rule_rooms(tree):
    for name, code in tree.code.items():
        for match in INCLUDE.finditer(code) if folder(name) in LAYERS else ():
            other = room(match.group(1))
            if (other in INNER and folder(other) != folder(name)
                    and match.group(1) not in INNER[other]):
                yield name, line_of(code, match.start(1)), f"{match.group(1)} is inside {folder(other)}/"
        if folder(name) not in ROOMS:
            continue
        for match in INCLUDE.finditer(code):
            other = room(match.group(1))
            if room(name) in CELLARS and folder(match.group(1)) == folder(name) and not other:
                yield name, line_of(code, match.start(1)), f"{room(name)}/ may not know {folder(name)}/"
            if (other and folder(other) == folder(name)
                    and other not in [room(name), *CELLARS]):
                yield name, line_of(code, match.start(1)), f"{name} may not know {other}/"


def rule_private(tree):
    """X_private.h is what the files of one folder share; only tests may include it from outside."""
    for name, code in tree.code.items():
        if folder(name) not in LAYERS:
            continue
        for match in INCLUDE.finditer(code):
            other = match.group(1)
            if other.endswith("_private.h") and other.rsplit("/", 1)[0] != name.rsplit("/", 1)[0]:
                yield name, line_of(code, match.start(1)), f'"{other}" is private to its folder'


def rule_own_header_first(tree):
    """A .c file must begin with its own header, or with a private one that begins with it."""
    def first_of(name):
        match = INCLUDE.search(tree.code.get(name, ""))
        return match.group(1) if match else ""

    for name in tree.code:
        own = name[:-2] + ".h"
        if name.endswith(".c") and own in tree.text:
            if own not in (first_of(name), first_of(first_of(name))):
                yield name, 1, f'the first include is "{own}"'


def rule_tokens(tree):
    fragments = {name: frozenset(FRAGMENT.findall(code)) for name, code in tree.code.items()}
    distinct = frozenset().union(*fragments.values())
    for rule, pattern, folders, exempt, why in TOKENS:
        expression = re.compile(pattern)
        matched = {fragment for fragment in distinct if expression.search(fragment + "(")}
        for name, code in tree.code.items():
            if folder(name) not in folders or matched.isdisjoint(fragments[name]):
                continue
            if any(pathlib.PurePath(name).match(glob) or name.startswith(glob.rstrip("*"))
                   for glob in exempt):
                continue
            for match in expression.finditer(code):
                word = re.match(r"\W*(\w+)", match.group(0)).group(1)
                if (name, rule, word) not in EXCEPTIONS:
                    yield name, line_of(code, match.start()), f"{rule}: {word}: {why}"


def rule_exceptions_are_used(tree):
    for name, rule, word in EXCEPTIONS:
        if not re.search(rf"\b{word}\s*\(", tree.code.get(name, "")):
            yield name, 1, f"the {rule} exception for {word} is not needed any more"


def rule_mutable(tree):
    """File-scope variables may not change, except the error text, the module, what a user agreed to
    load, the two streams of the process, the file that it was started from, and the flags of signals,
    of a library's failed allocation, and of main's end."""
    allowed = {("base/status.c", "text"), ("base/arena.c", "has_lacked"), ("base/module.c", "agreed"),
               ("cli/main.c", "interrupted"), ("cli/jobs.c", "end_is_asked"),
               ("cli/plain_text.c", "streams"), ("cli/main.c", "has_ended"), ("cli/program.c", "started"),
               ("kernels/cuda/library_handle.cu", "here"),
               ("kernels/cuda/library_plan.cu", "planned"), ("kernels/cuda/module.cu", "module_taken"),
               ("kernels/cuda/module.cu", "module_launch")}
    declaration = re.compile(r"^static ([^;={(\n]*?)(\w+)\s*((?:\[[^\]\n]*\])*)\s*(=|;)", re.M)
    for name, code in tree.code.items():
        if folder(name) not in LAYERS:
            continue
        for match in declaration.finditer(code):
            kind, word = match.group(1), match.group(2)
            constant = "const" in (kind.rsplit("*", 1)[1] if "*" in kind else kind)
            if not constant and (name, word) not in allowed:
                yield name, line_of(code, match.start()), f"{word} can change"


def rule_unique_names(tree):
    seen = {}
    for name in tree.code:
        other = seen.setdefault(name.rsplit("/", 1)[-1], name)
        if other != name:
            yield name, 1, f"has the name of {other}"


def rule_guard(tree):
    for name, code in tree.code.items():
        if name.endswith(".h"):
            guard = "TWINSTEP_" + re.sub(r"[/.]", "_", name).upper()
            first = re.search(r"^\s*#.*(?:\n#.*)?", code, re.M)
            expected = rf"#ifndef {guard}\n#define {guard}$"
            if not first or not re.match(expected, first.group(0).strip()):
                yield name, 1, f"its guard is {guard}"


def rule_licence(tree):
    for name, text in tree.text.items():
        suffix = pathlib.PurePath(name).suffix
        if is_c(name) or suffix in {".py", ".sh", ".cmake", ".cu"} or name.endswith(
                ("CMakeLists.txt", ".ci/run")):
            if "SPDX-License-Identifier: Apache-2.0" not in "".join(text.split("\n")[:3]):
                yield name, 1, "no SPDX line at its head"


def rule_flags(tree):
    for name, text in tree.text.items():
        if name.endswith((".cmake", "CMakeLists.txt", "CMakePresets.json", ".sh", ".ci/run")):
            for number, line in enumerate(text.split("\n"), 1):
                match = FAST.search(line.split("#")[0])
                if match and (name, match.group(0)) not in FLAG_EXCEPTIONS:
                    yield name, number, f"{match.group(0)} lets the compiler move bits"


def rule_places(tree):
    for name, text in tree.text.items():
        for number, line in enumerate(text.split("\n"), 1):
            match = MACHINE.search(line) or HOSTS.search(line)
            if match:
                yield name, number, f"{match.group(0)} is the place of one machine or a package host"


def rule_documents(tree):
    """A file that a document names, in `...` or as a link, must be there."""
    named = re.compile(r"`((?:" + "|".join([*LAYERS, *OTHER]) + r")/[\w/.-]+\.\w+)`")
    linked = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
    for name, text in tree.text.items():
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for path in named.findall(line):
                if path not in tree.text and not (tree.root / path).exists():
                    yield name, number, f"{path} is no file"
            for path in linked.findall(line):
                if not (tree.root / name).parent.joinpath(path).exists():
                    yield name, number, f"link to {path}: no such file"


def rule_typed(tree):
    """The package is typed: each function says what it takes and returns, each public one what it is."""
    for name, text in tree.text.items():
        if not (name.startswith("python/src/") and name.endswith(".py")):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        outer = {id(node) for of in nodes if isinstance(of, (ast.Module, ast.ClassDef)) for node in of.body}
        for node in nodes:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if id(node) in outer and not node.name.startswith("_") and ast.get_docstring(node) is None:
                yield name, node.lineno, f"{node.name} has no docstring"
            if isinstance(node, ast.ClassDef):
                continue
            words = node.args
            given = [*words.posonlyargs, *words.args, *words.kwonlyargs, words.vararg, words.kwarg]
            untyped = [word.arg for word in given
                       if word and word.annotation is None and word.arg not in ("self", "cls")]
            if node.returns is None:
                untyped.append("what it returns")
            if untyped:
                yield name, node.lineno, f"{node.name} has no type for {', '.join(untyped)}"


# Plans and notes that the project grew from are not in it, so nothing may cite them.
ABSENT = re.compile(r"\b(?:the )?(?:facts|design),? sections?\b|\bof the facts\b|"
                    r"\b(?:la" r"ws|des" r"ign)\.md\b")


def rule_citations(tree):
    for name, text in tree.text.items():
        for number, line in enumerate(text.split("\n"), 1):
            match = ABSENT.search(line)
            if match:
                yield name, number, f'"{match.group(0)}" is no document of this repository'


def rule_prose(tree):
    """Prose wraps at 100 columns (docs/wrap.py does it), and nothing in README.md is over 120.

    Tables, blocks of code and output, headings and comments cannot wrap, and what a link points at
    is not read: they do not count."""
    kept = re.compile(r"\s*([|>]|#+ |<!--|---|\[[^\]]+\]: )")
    for name, text in tree.text.items():
        if not name.endswith(".md"):
            continue
        fenced = False
        for number, line in enumerate(text.split("\n"), 1):
            fence = line.lstrip().startswith("```")
            fenced ^= fence
            prose = not (fenced or fence or kept.match(line))
            shown = len(re.sub(r"\]\([^)]*\)", "]", line))
            if prose and shown > 100:
                yield name, number, f"{shown} columns of prose, wrap it at 100"
            elif name == "README.md" and len(line) > 120:
                yield name, number, f"{len(line)} columns, the first page has no more than 120"


def rule_columns(tree):
    """Lines of C and of the Python package end at column 100; tables that a program made (*.inc) need
    not."""
    packaged = [name for name in tree.text if folder(name) == "python" and name.endswith(".py")]
    for name in [*tree.code, *packaged]:
        if name.endswith(".inc"):
            continue
        for number, line in enumerate(tree.text[name].split("\n"), 1):
            if len(line) > 100:
                yield name, number, f"{len(line)} columns, wrap it at 100"


def rule_broken_strings(tree):
    """clang-format breaks a string that became too long and joins nothing, which leaves words alone
    on their lines."""
    alone, string = re.compile(r'\s*"[\w.,-]{1,14} "$'), re.compile(r'.*"$')
    for name in tree.code:
        lines = tree.text[name].split("\n")
        for number in range(1, len(lines) - 1):
            if alone.match(lines[number]) and string.match(lines[number - 1]) \
                    and lines[number + 1].lstrip().startswith('"'):
                yield name, number + 1, "one word of a string on a line of its own, join the lines"


def rule_notebooks(tree):
    """A notebook must be committed as it ran: every cell of code once, in order, on a fresh kernel."""
    for name, text in tree.text.items():
        if not name.endswith(".ipynb"):
            continue
        try:
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
            counts = [(cell["id"], cell["execution_count"], cell["outputs"]) for cell in cells]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield name, 1, f"no notebook of format 4.5: {error!r}"
            continue
        for expected, (identity, count, outputs) in enumerate(counts, 1):
            if count != expected:
                yield name, 1, f"{identity} ran as number {count}, expected {expected}"
            if any(output.get("output_type") == "error" for output in outputs):
                yield name, 1, f"{identity} ended with an error"
        if not any(outputs for _, _, outputs in counts):
            yield name, 1, "no cell shows anything"


# The cases that the catalogue must hold: hypotheses of the first investigation, and known bugs.
CASES = ([f"H{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                            20, 21, 24, 25)] +
         [f"#{n}" for n in (1, 2, 3, 4, 7, 8, 11, 12, 14, 16, 19, 23, 27, 30, 36, 37, 38, 39, 41,
                            42, 45, 46, 52, 60, 61, 62, 63, 66, 67, 68)])


def expected_verdict(scenario):
    """Returns the scenario's `expect` as the catalogue's page words it."""
    found = re.search(r"^expect: *\{(.*)\}$", scenario, re.M)
    plain = re.sub(r'"[^"]*"|\[[^]]*\]', "...", found.group(1)) if found else ""
    keys = dict(part.split(": ", 1) for part in plain.split(", ")) if found else {}
    words = [keys[key] for key in ("verdict", "cause") if key in keys]
    if "first_step" in keys:
        words.append(" ".join(["update", keys["first_step"], *([keys["first_phase"].replace("-", " ")] if
                               "first_phase" in keys else [])]))
    return ", ".join(words)


def rule_catalogue(tree):
    """docs/CATALOG.md must name a scenario for each case, name every scenario, and repeat verdicts; README.md
    must count them."""
    page, folder_name = "docs/CATALOG.md", "scenarios/catalog/"
    named, cases = set(), set()
    paths = {path.split("/")[-1]: path for path in tree.text if path.startswith(folder_name)}
    for number, line in enumerate(tree.text.get(page, "").split("\n"), 1):
        for name in re.findall(r"^\|.*\[`([\w-]+)`\]", line):
            path = paths.get(f"{name}.yaml", f"{folder_name}{name}.yaml")
            named.add(path)
            if path not in tree.text:
                yield page, number, f"{path} is no file"
                continue
            cases.update(re.findall(r"^\| ([H#]\d+) \|", line))
            verdict = expected_verdict(tree.text[path])
            if not line.endswith(f"| {verdict} |"):
                yield page, number, f"{name} expects: {verdict}"
    for case in CASES if page in tree.text else []:
        if case not in cases:
            yield page, 1, f"no scenario for {case}"
    scenarios = [path for path in tree.text if path.startswith(folder_name) and path.endswith(".yaml")]
    for path in scenarios:
        if path not in named:
            yield path, 1, f"not in {page}"
    for number, line in enumerate(tree.text.get("README.md", "").split("\n"), 1):
        said = re.search(r"# (\d+) known bugs", line)
        if said and int(said.group(1)) != len(scenarios):
            yield "README.md", number, f"the catalogue has {len(scenarios)} scenarios"


def warn_sizes(tree):
    for name, code in tree.code.items():
        lines = code.split("\n")
        if len(lines) - 1 > 400:
            yield name, 1, f"{len(lines) - 1} lines, aim 120, look twice over 400"
        start = None
        for number, line in enumerate(lines, 1):
            if re.match(r"[A-Za-z_]", line) and start is None:
                start = number
            if line.startswith("}") or (start and line.endswith(";") and line[:1].strip()):
                length = number - (start or number) + 1
                if line == "}" and length > 60:
                    yield name, start, f"a function of {length} lines, aim 12, look twice over 60"
                start = None
            if not line.strip() or line.startswith("#"):
                start = start if start and line.strip() == "" and number != start else start


RULES = [rule_includes, rule_rooms, rule_private, rule_own_header_first, rule_tokens, rule_exceptions_are_used, rule_mutable,
         rule_unique_names, rule_guard, rule_licence, rule_flags, rule_places, rule_documents, rule_citations,
         rule_typed, rule_prose, rule_columns, rule_broken_strings, rule_notebooks,
         rule_catalogue]


def run_rules(root):
    tree = Tree(root)
    found = [(name, line, rule.__name__[5:], text) for rule in RULES
             for name, line, text in rule(tree)]
    return tree, found


def compile_header(root, compiler, flags, language, name):
    standard = "-std=c11" if language == "c" else "-std=c++17"
    words = ["-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"]
    if language == "c++":
        words = []  # -Wshadow there minds functions named as their struct
    variant = []
    if re.search(r"(kernels|optim)/(cpu|cuda)/|base/variant\.h|kernels/ptx_host\.h", name):
        variant = ["-DTWINSTEP_VARIANT=f32_f64_base", "-DTWINSTEP_CARRIER_f32=1",
                   "-DTWINSTEP_ACCUMULATOR_f64=1", "-DTWINSTEP_ISA_base=1", "-fopenmp"]
    if name.startswith("kernels/cuda/"):  # whose words are the shim's for a C compiler
        variant += ["-include", "tests/shim/shim_port.h"]
    if name == "kernels/cuda/library_search.h":  # which asks its C files to define it
        variant += ["-D_GNU_SOURCE"]
    source = f'#include "{name}"\n#include "{name}"\nextern int twinstep_lint;\n'
    command = [compiler, standard, "-x", language, "-fsyntax-only", "-I", str(root),
               "-D_POSIX_C_SOURCE=200809L", "-DBACKEND_LAYOUT=1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic",
               "-Wconversion", "-Wdouble-promotion", "-Wundef", "-Wwrite-strings",
               "-Wno-unused-function", "-Werror", *words, *variant, *flags, "-"]
    # The compiler looks for the quoted headers of a source on stdin in the working folder first.
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False,
                            cwd=root)
    return None if result.returncode == 0 else (name, language, result.stderr.strip())


def run_headers(root, compiler, flags):
    tree = Tree(root)
    shared = {p.relative_to(tree.root).as_posix() for g in SHARED_HEADERS for p in tree.root.glob(g)}
    # rule_own_header_first: the build compiles those with a .c file at its beginning.
    work = [("c", name) for name in tree.code
            if name.endswith(".h") and name[:-2] + ".c" not in tree.code]
    work += [("c++", name) for name in sorted(shared)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(
            lambda job: compile_header(tree.root, compiler, flags, *job), work))
    return len(work), [r for r in results if r]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--headers", metavar="COMPILER")
    options, flags = parser.parse_known_args()
    if options.headers:
        count, broken = run_headers(options.root, options.headers, flags)
        for name, language, text in broken:
            print(f"{name}:1: self-contained: as {language}:\n{text}")
        print(f"{count} headers compiled alone, {len(broken)} broken")
        return 1 if broken else 0
    tree, found = run_rules(options.root)
    for name, line, text in warn_sizes(tree):
        print(f"{name}:{line}: warning: {text}")
    for name, line, rule, text in found:
        print(f"{name}:{line}: {rule}: {text}")
    print(f"{len(tree.text)} files, {len(RULES)} rules, {len(TOKENS)} kinds of words, "
          f"{len(found)} broken")
    return 1 if found or not tree.text else 0


if __name__ == "__main__":
    sys.exit(main())
