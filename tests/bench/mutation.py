#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one token of the program at a time and asks whether a test of the default run notices.

    mutation.py [--seed N] [--count N] [--from N] [--minutes M] [--near | --held]
                [--also TEST...] [--longest SECONDS] [--costs FILE] [--jobs N] [--work FOLDER]
                [--build FOLDER] [--out FILE]
                [--covered FILE [--upto SECONDS]] [PATH...]
    mutation.py --uncovered --covered FILE [PATH...]        what no test executes: lines, branches
    mutation.py --list [--seed N] [--count N] [PATH...]     only shows which tokens would change
    mutation.py --at FILE:LINE:COLUMN=TEXT [--at ...]       tries these
    mutation.py --together --at ... --at ...                all at once, then each that a test noticed

PATH is a source file or a folder; without any, those that decide what a verdict says: optim, sched,
determinism, the loop of trainer, evidence and forensics. The tokens are drawn evenly from all that
a rule below can change, by the seed alone. The tree is never touched: the folder of --work (default
build/mutation) holds a copy, configured with the preset `strict` and built once. With --build, a
folder that is built already (preset strict, this tree) takes the place of the copy: its programs are
exchanged while a mutant is asked and put back afterwards, and nobody else may use it meanwhile.

A mutant is told as
    invalid     it does not compile, which a user would see at once
    equivalent  the compiler makes the same code of it (trivial compiler equivalence: Papadakis,
                Jia, Harman, Le Traon, ICSE 2015)
    killed      a test failed twice, or took 20 times its processor time and 10 s; which one is told.
                "build" is a warning, since every warning is an error
    SURVIVED    every test of the default run passed; with --covered, of those that execute the line
    uncovered   with --covered: no test executes the line
Survivors are read by a person: some change nothing that anyone can see, the others need a test.
The tests of the same name run first, then those of the same folder, then those of other folders
that hold the changed object or start the program, each from the shortest to the longest, then all
others; with --near the last two are left out, with --held the last; --also names tests that a mutant
meets after those, whatever they take. Programs are linked again with
the changed object before the libraries, which so lend no other of its name, and stand in the build
folder while the mutant is asked: that takes tenths of a second where ninja takes many. Tests are
started as ctest would start them, without ctest, whose start takes longer than most of them. What
else is built of the sources (modules, sanitized copies) stays as it is. A mutant takes from some seconds
(killed near) to the whole default run (survived). --together spares most of the latter: mutants
that the near tests let live are put into one tree for one whole run, and each of them alone meets
the tests that failed there. With --covered, each test runs once with the files to be changed built
for gcov, and a mutant meets, from the shortest to the longest, the tests that execute its line, be
it in the test or in a program that the test starts: up to the first that fails, or up to --upto
SECONDS. FILE keeps what executes what, lines and branches, and the processor time of each test; a
test that fails there or takes more than --longest is left out. --uncovered only lists the lines and
branches that none of them executes. A child that ends by _exit() is counted (the call is wrapped
in these programs, and the filter that forbids such a child to write is left out); a process that is
killed is not, so "uncovered" may be a line of one. Before anything is broken, the tests in question
must pass; with --costs, what ctest noted of them when they last ran in another build of the tree
stands for that, and with --covered the run for gcov does."""
import argparse
import bisect
import concurrent.futures
import functools
import itertools
import json
import math
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ["optim", "sched", "determinism", "evidence", "forensics",
          *(f"trainer/{name}.c" for name in ("loop", "loop_walk", "loop_hazard", "run", "run_pass",
                                             "phases", "phases_update", "readback", "measure",
                                             "measure_step"))]

# Everything that must not change comes first, so that no rule below sees the inside of it.
TOKEN = re.compile(r"""
    (?P<skip> /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
            | ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<number> (?:0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)? | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]* )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<sign> <<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!&|^~?:;,.(){}\[\]] )
""", re.X | re.S | re.M)
SIGNS = {
    "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="],
    "!=": ["=="], "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"],
    "%": ["*"], "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "++": ["--"],
    "--": ["++"], "&": ["|"], "|": ["&"], "^": ["|"], "<<": [">>"], ">>": ["<<"], "!": [""],
}
WORDS = {"break": ["continue"], "continue": ["break"]}


def other_numbers(text):
    """One more, and 0 where it is not; twice a real that is not whole."""
    digits = re.match(r"(\d+)([uUlL]*)$", text)
    if digits:
        value, suffix = int(digits[1]), digits[2]
        return [f"{value + 1}{suffix}"] + ([f"0{suffix}"] if value > 1 else [])
    bare = text.rstrip("lLfF") if text[:2] not in ("0x", "0X") else text
    try:
        value = float.fromhex(bare) if bare[:2] in ("0x", "0X") else float(bare)
    except ValueError: # a hexadecimal number with a suffix
        return []
    return [f"(2 * {text})"] if value else ["1.0"]


def mutants_of(path, text):
    """Each (line, column, offset, old, new) of a source text; line and column count from 1."""
    found = []
    for token in TOKEN.finditer(text):
        old = token[0]
        if token["sign"]:
            news = SIGNS.get(old, [])
        elif token["word"]:
            news = WORDS.get(old, [])
        else:
            news = other_numbers(old) if token["number"] else []
        start = token.start()
        line = text.count("\n", 0, start) + 1 if news else 0
        for new in news:
            found.append((path, line, start - text.rfind("\n", 0, start), start, old, new))
    return found


def refuse(text):
    """Ends as argparse ends for an argument that it refuses."""
    print(f"mutation: {text}", file=sys.stderr)
    sys.exit(2)


def sources(paths):
    for path in paths:
        full = ROOT / path
        if not full.exists():
            refuse(f"{path}: no such file or folder, from {ROOT}")
        yield from sorted(full.rglob("*.c")) if full.is_dir() else [full]


def draw(paths, seed, count):
    everything = []
    for path in sources(paths):
        everything += mutants_of(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    chosen = random.Random(seed)
    chosen.shuffle(everything)
    return everything[:count], len(everything)


# Counts are written where a process ends by _exit(), too, and a child that reads for others may write.
ENDS = """
#include <stdint.h>
void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
void __wrap_confined_enter(const char *path);
void __wrap__exit(int status) {
    __gcov_dump();
    __real__exit(status);
}
void __wrap_confined_enter(const char *path) {
    (void)path;
}
"""
ENDS_LINKED = ["--coverage", "-Wl,--wrap=_exit", "-Wl,--wrap=confined_enter"]


class Coverage:
    """Which tests execute which lines of some files, as a file of JSON keeps it: in the first line,
    for each source, the lines that hold code with how many branches each has, and the first and last
    line of each function; then for each test its processor time, the lines of each source that it
    ran, and the branches that it took. A test that failed or took too long has null there."""

    def __init__(self, file):
        first, *others = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        self.files = first
        self.known = {name for name, *_ in others}
        self.seconds = {name: seconds for name, seconds, ran in others if ran is not None}
        self.tests = {name: {path: set(lines) for path, (lines, _) in ran.items()}
                      for name, _, ran in others if ran is not None}
        self.branches = {}
        for _, _, ran in others:
            for path, (_, branches) in (ran or {}).items():
                self.branches.setdefault(path, set()).update(map(tuple, branches))

    def uncovered(self, path):
        """Each line of a source that no test executes, and each branch of a line that is executed."""
        held, _ = self.files[str(path)]
        ran = set().union(*(lines.get(str(path), ()) for lines in self.tests.values()))
        for line, count in held:
            if line not in ran:
                yield line, "not executed"
                continue
            missed = [i for i in range(count) if (line, i) not in self.branches.get(str(path), ())]
            if missed:
                yield line, f"branch {', '.join(map(str, missed))} of {count} not taken"

    def executing(self, path, line):
        """The tests that execute a line. A line without code of its own, as the second of an
        expression has none, goes with the one before it in its function; outside of functions every
        test counts that executes something of the file."""
        if str(path) not in self.files:
            sys.exit(f"mutation: --covered: the file says nothing of {path}")
        held, functions = self.files[str(path)]
        if not any(first <= line <= last for first, last in functions):
            return [name for name, lines in self.tests.items() if lines.get(str(path))]
        line = max(one for one, _ in held if one <= line) # a function's first line holds code
        return [name for name, lines in self.tests.items() if line in lines.get(str(path), ())]


def words_of(path):
    return set(re.split(r"[_.]", path.stem)) | {path.stem}


class Work:
    """A built copy of the tree, in which one file at a time is another one."""

    def __init__(self, folder, jobs, build):
        self.folder, self.build = (folder, folder / "build" / "strict") if build is None else (ROOT, build)
        self.changed = folder / "changed" # sources with a token changed, or unchanged again
        shutil.rmtree(self.changed, ignore_errors=True) # those of a run before may be of another tree
        self.width, self.jobs = jobs, f"-j{jobs}"
        self.seconds, self.codes = {}, {}
        if build is None:
            self.copy()
        self.put_back() # what a run that was ended by force left
        if build is None:
            self.call("ninja", self.jobs, "-C", str(self.build), check=True)
        commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.command = {pathlib.Path(one["file"]): one for one in reversed(commands)}
        tests = json.loads(self.call("ctest", "--test-dir", str(self.build), "-LE", "nightly",
                                     "--show-only=json-v1", check=True).stdout)["tests"]
        self.tests = [test["name"] for test in tests if "command" in test] # as far as it is built
        self.how = {test["name"]: test for test in tests}
        folders = {}
        for test in (self.folder / "tests").glob("*/test_*.c"):
            folders.setdefault(test.parent.name, set()).add(test.stem)
        self.folders = folders
        self.test_sources = {test.stem: test.relative_to(self.folder)
                             for test in (self.folder / "tests").rglob("test_*.c")}
        # those of the dependency rule (border_*) hold whole libraries, and nothing is to replace there
        self.test_programs = [name for name in self.tests if name.startswith("test_") and
                              (self.build / "bin" / name).exists()]

    def copy(self):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                                capture_output=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            source, target = ROOT / name, self.folder / name
            if not source.exists() or (target.exists() and
                                       target.read_bytes() == source.read_bytes()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target) # with a new date, so that ninja sees it
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.call("cmake", "--preset", "strict", *launcher, check=True)

    def call(self, *command, check=False):
        done = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, check=False)
        if check and done.returncode != 0:
            sys.exit(f"mutation: {shlex.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def compile(self, path, output, *flags):
        """Makes an object of a file without debug information; whether the compiler takes it."""
        one = self.command.get(self.folder / path)
        if one is None:
            return False
        command = shlex.split(one["command"])
        command = command[command.index("ccache") + 1:] if "ccache" in command else command
        command[command.index("-o") + 1] = str(output)
        source = self.changed / path
        if not source.exists():
            self.write({path: (self.folder / path).read_text(encoding="utf-8")})
        command[command.index("-c") + 1] = str(source)
        command.insert(1, f"-I{self.changed}") # a test may include the source
        for flag in ("-MD", "-MT", "-MF"):
            if flag in command:
                at = command.index(flag)
                del command[at:at + (1 if flag == "-MD" else 2)]
        return subprocess.run([*command, "-g0", *flags], cwd=one["directory"], capture_output=True,
                              check=False).returncode == 0

    def code(self, path):
        """What the compiler makes of a file; None: an error."""
        with tempfile.NamedTemporaryFile(suffix=".o") as output:
            taken = self.compile(path, output.name, "-w")
            return pathlib.Path(output.name).read_bytes() if taken else None

    @functools.lru_cache(maxsize=None)
    def symbols(self, file):
        """What an object or a program defines for others."""
        lines = self.call("nm", "-g", "--defined-only", str(file), check=True).stdout.split("\n")
        return frozenset(line.split()[-1] for line in lines if line)

    def is_able(self, path, name):
        """Whether a test program holds the object of a source, or starts a program that does."""
        return name in self.test_programs and (name.startswith("test_cli_") or self.holds(path, name))

    def holds(self, path, name):
        """Whether a test program holds a source's code itself: as its object, or since a test of it
        includes the source, be it under other names."""
        return self.holds_object(path, name) or name in self.including(path)

    @functools.lru_cache(maxsize=None)
    def holds_object(self, path, name):
        """Whether a test program defines what the object of a source does."""
        one = self.command.get(self.folder / path)
        if one is None or name not in self.test_programs:
            return False
        words = shlex.split(one["command"])
        built = self.symbols(pathlib.Path(one["directory"]) / words[words.index("-o") + 1])
        return bool(built & self.symbols(self.build / "bin" / name))

    @functools.lru_cache(maxsize=None)
    def including(self, path):
        """The test programs that include a source, and so hold a copy that no link replaces."""
        return [name for name in self.test_programs if name in self.test_sources and
                f'#include "{path}"' in
                (self.folder / self.test_sources[name]).read_text(encoding="utf-8")]

    def near(self, path):
        """Those of the same name, and the others of the same folder; no other program is looked at."""
        named = [name for name in self.test_programs
                 if words_of(path) & words_of(pathlib.Path(name[5:]))]
        same = [name for name in self.test_programs
                if name in self.folders.get(path.parts[0], ()) and name not in named]
        return [[name for name in names if self.is_able(path, name)] for names in (named, same)]

    def stages(self, path, which):
        """Lists of tests: near ones, those of other folders that hold the object, and the others."""
        lists = self.near(path)
        able = [name for name in self.test_programs if which > 0 and self.is_able(path, name)]
        for more in ([], able, self.tests)[1:which + 1]:
            lists.append([name for name in more if not any(name in names for names in lists)])
        return lists

    @functools.lru_cache(maxsize=None)
    def link_command(self, program):
        told = self.call("ninja", "-C", str(self.build), "-t", "commands", "-s", f"bin/{program}",
                         check=True).stdout
        return shlex.split(told.replace(": && ", "").replace(" && :", ""))

    def object_of(self, path):
        """Where the changed object of a source is made."""
        return str(self.build / ("mutant-" + "-".join(path.parts) + ".o"))

    def link(self, program, paths, more=()):
        """Puts a program with changed objects in its own place; the old one is kept beside it."""
        target = self.build / "bin" / program
        aside = target.with_name(program + ".kept")
        if aside.exists():
            return
        command = list(self.link_command(program))
        for path in paths:
            words = shlex.split(self.command[self.folder / path]["command"])
            kept = words[words.index("-o") + 1]
            if kept in command:
                command[command.index(kept)] = self.object_of(path)
            elif program not in self.test_programs or self.holds_object(path, program):
                command.insert(command.index("-o"), self.object_of(path))
            if program in self.including(path):
                self.put_changed_test(program, command)
        command += ["-Wl,-z,muldefs", *more]
        target.rename(aside)
        done = subprocess.run(command, cwd=self.build, capture_output=True, text=True, check=False)
        if done.returncode != 0: # what compiles can be linked, or this script is wrong
            self.put_back()
            sys.exit(f"mutation: {shlex.join(command)}: {done.stderr[-2000:]}")

    def put_changed_test(self, program, command):
        """Compiles a test anew that includes the changed source, and has it linked."""
        source = self.test_sources[program]
        if not self.compile(source, self.object_of(source), "-w"):
            sys.exit(f"mutation: {source} cannot be built with what it includes")
        words = shlex.split(self.command[self.folder / source]["command"])
        kept = words[words.index("-o") + 1]
        if kept in command: # else it includes two sources, and the first has put it there
            command[command.index(kept)] = self.object_of(source)

    def put_back(self):
        for aside in (self.build / "bin").glob("*.kept"):
            aside.replace(aside.with_suffix(""))

    def link_all(self, names, paths, more=()):
        """Links the programs of these tests that hold one of the objects, and the program itself
        where one of the tests may start it."""
        starts = any(name not in self.test_programs or name.startswith("test_cli_")
                     for name in names)
        holding = {name: [path for path in paths if self.holds(path, name)] for name in names}
        if starts:
            self.link("twinstep", paths, more)
        for name, of in holding.items():
            if of:
                self.link(name, of, more)

    def gcov(self, paths, folder, suffix):
        """What gcov says of the files by what lies in a folder: of each the lines with how often they
        ran and how often each of their branches was taken, and the functions."""
        objects = {folder / pathlib.Path(self.object_of(path)).with_suffix(suffix).name: str(path)
                   for path in paths}
        objects = {file: path for file, path in objects.items() if file.exists()}
        if not objects:
            return
        told = self.call("gcov", "--json-format", "--branch-probabilities", "--stdout", *map(str, objects), check=True).stdout
        for line, path in zip(told.splitlines(), objects.values()):
            for file in json.loads(line)["files"]: # the source, and headers with code
                if file["file"].endswith(path):
                    counts = {}
                    for one in file["lines"]: # a line of two functions stands there twice
                        count, taken = counts.get(one["line_number"], (0, []))
                        counts[one["line_number"]] = (count + one["count"], taken + [
                            branch["count"] for branch in one["branches"]])
                    yield path, counts, sorted((one["start_line"], one["end_line"])
                                               for one in file["functions"])

    def covered(self, names, paths, file, longest, also):
        """Runs each test with these files built for gcov, unless FILE says what came of it."""
        if file.exists():
            done = Coverage(file).known
            names = [name for name in names if name not in done]
        if names or not file.exists():
            ends = self.build / "mutant-ends.c"
            ends.write_text(ENDS, encoding="utf-8")
            self.call("cc", "-c", str(ends), "-o", str(ends.with_suffix(".o")), check=True)
            with concurrent.futures.ThreadPoolExecutor(self.width) as pool:
                taken = pool.map(lambda path: self.compile(path, self.object_of(path), "-w", "-O0",
                                                           "--coverage"), paths)
                for path in [path for path, one in zip(paths, taken) if not one]:
                    sys.exit(f"mutation: {path} cannot be built for gcov")
            try:
                self.link_all(names, paths, [str(ends.with_suffix(".o")), *ENDS_LINKED])
                self.run_covered(names, paths, file, longest, also)
            finally:
                self.put_back()
        coverage = Coverage(file)
        self.seconds.update(coverage.seconds)
        return coverage

    def run_covered(self, names, paths, file, longest, also):
        if not file.exists():
            told = {path: [[(line, len(taken)) for line, (_, taken) in sorted(counts.items())], functions]
                    for path, counts, functions in self.gcov(paths, self.build, ".gcno")}
            file.write_text(json.dumps(told) + "\n", encoding="utf-8")
        names = sorted(names, key=lambda name: self.seconds.get(name, 0.0))
        with concurrent.futures.ThreadPoolExecutor(self.width) as pool:
            for name, ran in zip(names, pool.map(functools.partial(self.ran, paths, longest, also), names)):
                with file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps([name, *ran]) + "\n")

    def ran(self, paths, longest, also, name):
        """The processor time of a test, and the lines and branches of the files that it executes: its
        counts lie in a folder of its own."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            most = 3600.0 if name in also else longest
            code, seconds = self.start(name, most, GCOV_PREFIX=folder, GCOV_PREFIX_STRIP="99")
            if code != 0 or seconds > most:
                return seconds, None
            for path in paths:
                notes = pathlib.Path(self.object_of(path)).with_suffix(".gcno")
                (place / notes.name).symlink_to(notes)
            return seconds, {
                path: (sorted(line for line, (count, _) in counts.items() if count > 0),
                       [(line, i) for line, (_, taken) in counts.items()
                        for i, count in enumerate(taken) if count > 0])
                for path, counts, _ in self.gcov(paths, place, ".gcda")}

    def start(self, name, seconds, **variables):
        """Runs a test as ctest would; returns its exit status and its processor time, of which each
        of its processes has so many seconds and no more."""
        test = self.how[name]
        properties = {one["name"]: one["value"] for one in test["properties"]}
        limit = max(1, math.ceil(min(seconds, 3600.0)))
        process = subprocess.Popen(
            ["sh", "-c", 'ulimit -t "$0"; exec "$@"', str(limit), *test["command"]],
            cwd=properties.get("WORKING_DIRECTORY", self.build), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", [])),
                 **variables})
        endless = threading.Timer(60 + 20 * limit, os.killpg, (process.pid, signal.SIGKILL))
        endless.start() # for what waits and uses no time
        _, status, usage = os.wait4(process.pid, 0)
        endless.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        passed = process.returncode == properties.get("SKIP_RETURN_CODE", 77)
        return 0 if passed else process.returncode, usage.ru_utime + usage.ru_stime

    def unfit(self, names, limits):
        """Which of these tests fail, or take more than so many seconds of processor time."""
        with concurrent.futures.ThreadPoolExecutor(self.width) as pool:
            ran = list(pool.map(self.start, names, limits))
        for name, (_, seconds) in zip(names, ran):
            self.seconds.setdefault(name, seconds) # what the unbroken tree took
        return [name for name, (code, _) in zip(names, ran) if code != 0]

    def failing(self, names):
        """What fails once may be due to a busy machine; it must fail alone, too."""
        limits = {name: 10 + 20 * self.seconds[name] for name in names}
        return [name for name in self.unfit(names, limits.values())
                if self.unfit([name], [limits[name]])]

    def must_pass(self, names, costs):
        """Runs the tests on the unbroken tree; those with a known cost have passed there before."""
        self.seconds.update(costs)
        names = [name for name in names if name not in costs]
        failed = self.unfit(names, itertools.repeat(3600.0))
        if failed:
            sys.exit(f"mutation: fails on the unbroken tree: {' '.join(failed)}")

    def noticed(self, names, path):
        """The first of these tests that fails, from the shortest on; "" when none does."""
        names = sorted(names, key=lambda name: self.seconds[name])
        several = []
        while names: # the first alone, then twice as many each time: most mutants die early
            several = names[:max(self.width, 2 * len(several))]
            self.link_all(several, [path])
            failed = self.failing(several)
            if failed:
                return failed[0]
            names = names[len(several):]
        return ""

    def change(self, mutants):
        """Writes the files with these tokens changed; returns what stood there."""
        before = {mutant[0]: (self.folder / mutant[0]).read_text(encoding="utf-8") for mutant in mutants}
        after = dict(before)
        for path, _, _, start, old, new in sorted(mutants, key=lambda mutant: -mutant[3]):
            assert after[path][start:start + len(old)] == old
            after[path] = after[path][:start] + new + after[path][start + len(old):]
        self.write(after)
        return before

    def write(self, texts):
        for path, text in texts.items():
            target = self.changed / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def tried(self, mutant, lists):
        path = mutant[0]
        if path not in self.codes:
            self.codes[path] = self.code(path)
        before = self.change([mutant])
        try:
            if not self.compile(path, self.object_of(path)):
                return ("invalid", "") if self.code(path) is None else ("killed", "build")
            if pathlib.Path(self.object_of(path)).read_bytes() == self.codes[path]:
                return "equivalent", ""
            for names in lists:
                failed = self.noticed(names, path)
                if failed:
                    return "killed", failed
            return ("SURVIVED" if any(lists) else "uncovered"), ""
        finally:
            self.write(before)
            self.put_back()

    def together(self, mutants, names):
        """Those of the tests that fail with all of these tokens changed."""
        before = self.change(mutants)
        try:
            if not all(self.compile(path, self.object_of(path)) for path in before):
                sys.exit("mutation: --together: they cannot be built in one tree")
            self.link_all(names, list(before))
            return self.failing(names)
        finally:
            self.write(before)
            self.put_back()


def interval(hits, count):
    """Wilson's interval of a share, at 95 %."""
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count**2))**0.5
    return 100 * (middle - half), 100 * (middle + half)


def costs_of(file):
    """Seconds of the tests that passed, as ctest keeps them: NAME RUNS SECONDS, and behind a line of
    three dashes the names of those that failed."""
    passed, failed = file.read_text(encoding="utf-8").split("---")
    return {name: float(seconds) for name, _, seconds in map(str.split, passed.strip().split("\n"))
            if name not in failed.split()}


def up_to(names, seconds, upto):
    """The shortest of the tests, as many as take so many seconds together."""
    names = sorted(names, key=lambda name: seconds[name])
    sums = list(itertools.accumulate(seconds[name] for name in names))
    return names[:bisect.bisect_right(sums, upto)]


def one_at(place):
    found = re.fullmatch(r"(.+\.c):(\d+):(\d+)=(.*)", place)
    if not found:
        sys.exit(f"mutation: --at: expected FILE:LINE:COLUMN=TEXT, got {place}")
    path, line, column, new = pathlib.Path(found[1]), int(found[2]), int(found[3]), found[4]
    text = (ROOT / path).read_text(encoding="utf-8")
    for token in TOKEN.finditer(text):
        start = token.start()
        if (text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)) == (line, column):
            return path, line, column, start, token[0], new
    sys.exit(f"mutation: --at: no token begins at {path}:{line}:{column}")


def list_uncovered(coverage, paths):
    for path in itertools.chain(*([one] if one.is_file() else sorted(one.rglob("*.c"))
                                  for one in (ROOT / name for name in paths))):
        path = path.relative_to(ROOT)
        if str(path) not in coverage.files:
            continue
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for line, why in coverage.uncovered(path):
            print(f"{path}:{line}: {why}: {text[line - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=PLACES, metavar="PATH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--minutes", type=float, help="begin no mutant after so many")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER",
                        help="a folder built of this tree, to be used in place of a copy")
    parser.add_argument("--out", type=pathlib.Path, help="append a line for each mutant")
    parser.add_argument("--list", action="store_true")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--near", action="store_const", dest="which", const=0, default=2,
                       help="leave out tests of other folders")
    which.add_argument("--held", action="store_const", dest="which", const=1,
                       help="only tests that hold the changed object, or start the program")
    parser.add_argument("--also", nargs="+", default=[], metavar="TEST",
                        help="ask these after the others")
    parser.add_argument("--longest", type=float, help="leave out tests of more seconds",
                        default=float("inf"), metavar="SECONDS")
    parser.add_argument("--costs", type=pathlib.Path, metavar="FILE",
                        help="CTestCostData.txt of this tree: tests that passed there do not run first")
    parser.add_argument("--covered", type=pathlib.Path, metavar="FILE",
                        help="only tests that execute the line; FILE keeps which these are")
    parser.add_argument("--uncovered", action="store_true",
                        help="--covered: list what no test executes, and try nothing")
    parser.add_argument("--upto", type=float, default=float("inf"), metavar="SECONDS",
                        help="--covered: no more of the tests of a mutant than take so long")
    parser.add_argument("--from", type=int, default=1, dest="first", metavar="NUMBER",
                        help="go on with this mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--at", action="append", metavar="FILE:LINE:COLUMN=TEXT")
    parser.add_argument("--together", action="store_true", help="--at: break all of them at once")
    arguments = parser.parse_args()
    if (arguments.upto < float("inf") or arguments.uncovered) and not arguments.covered:
        parser.error("--upto and --uncovered go with --covered")
    if arguments.uncovered:
        list_uncovered(Coverage(arguments.covered), arguments.paths)
        return
    for name in ("count", "first", "jobs"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{'from' if name == 'first' else name}: expected at least 1, got "
                         f"{getattr(arguments, name)}")
    chosen, everything = draw(arguments.paths, arguments.seed, arguments.count)
    if arguments.at:
        chosen = [one_at(place) for place in arguments.at]
    if arguments.list:
        for path, line, column, _, old, new in chosen:
            print(f"{path}:{line}:{column}\t{old}\t{new}")
        return
    print(f"mutation: {len(chosen)} of {everything}, seed {arguments.seed}", flush=True)
    work = Work(arguments.work.resolve(), arguments.jobs,
                arguments.build and arguments.build.resolve())
    stages = {path: work.stages(path, arguments.which) for path in {mutant[0] for mutant in chosen}}
    unknown = [name for name in arguments.also if name not in work.tests]
    if unknown:
        refuse(f"--also: the default run has no test {' '.join(unknown)}")
    names = sorted(set(itertools.chain(arguments.also, *itertools.chain(*stages.values()))))
    costs = costs_of(arguments.costs) if arguments.costs else {}
    coverage = None
    if arguments.covered:
        paths = sorted({path.relative_to(ROOT) for path in sources(arguments.paths)} | set(stages))
        paths = [path for path in paths if work.folder / path in work.command]
        work.seconds.update(costs)
        names = [name for name in names if not name.startswith("border_") and
                 (work.seconds.get(name, 0.0) <= arguments.longest or name in arguments.also) and
                 (name not in work.test_programs or any(work.is_able(path, name) for path in paths))]
        coverage = work.covered(names, paths, arguments.covered, arguments.longest, arguments.also)
        names = list(coverage.tests)
        stages = {path: [[name for name in names_of if name in coverage.tests]
                         for names_of in lists] for path, lists in stages.items()}
    else:
        work.must_pass(names, costs)
    if arguments.together:
        names = [name for name in names if work.seconds[name] <= arguments.longest]
        failed = work.together(chosen, names)
        print(f"together: {' '.join(failed) or 'no test fails'}", flush=True)
        stages = dict.fromkeys(stages, [failed])
    stages = {path: [[name for name in names if work.seconds[name] <= arguments.longest]
                     for names in lists] for path, lists in stages.items()}
    for lists in stages.values():
        lists.append([name for name in arguments.also if not any(name in names for names in lists)])
    begin, count = time.monotonic(), dict.fromkeys(
        ("invalid", "equivalent", "killed", "SURVIVED", "uncovered"), 0)
    for number in itertools.count(arguments.first):
        if number > len(chosen) or (arguments.minutes and
                                    time.monotonic() - begin > 60 * arguments.minutes):
            break
        path, line, column, _, old, new = mutant = chosen[number - 1]
        start = time.monotonic()
        lists = stages[path]
        if coverage:
            names = [name for name in dict.fromkeys(coverage.executing(path, line) +
                                                    work.including(path)) # its copy is not counted
                     if name in coverage.tests and
                     (work.seconds[name] <= arguments.longest or name in arguments.also)]
            lists = [up_to(names, work.seconds, arguments.upto)]
        outcome, test = work.tried(mutant, lists)
        if coverage and outcome == "SURVIVED":
            test = f"{len(lists[0])} of {len(names)} tests"
        count[outcome] += 1
        told = (f"{number}\t{path}:{line}:{column}\t{old} -> {new or 'nothing'}\t{outcome}\t{test}\t"
                f"{time.monotonic() - start:.0f} s")
        print(told, flush=True)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(told + "\n")
    print(", ".join(f"{number} {name}" for name, number in count.items()))
    asked = count["killed"] + count["SURVIVED"] + count["uncovered"]
    if asked:
        low, high = interval(count["killed"], asked)
        print(f"killed: {100 * count['killed'] / asked:.1f} % of {asked} that change the code "
              f"({low:.1f} to {high:.1f} %, 95 %)")


if __name__ == "__main__":
    main()
