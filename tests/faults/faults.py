#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets one call of the C library fail at a time, and looks at what the program leaves behind.

    faults.py BINARY LIBRARY [--brief|--whole|--stacks] [--verb NAME]... [--call NAME]...
              [--part K/N] [--show]

LIBRARY is tests/faults/failing.c. Every case is a short command. It runs once undisturbed, for
reference, and once with every call written down. Then, for each kind of call, it runs again and
again, and one call fails: the first of every stack of calling functions (--whole: every call), once
and for good. Each run must end like the reference, with equal files, equal output and its exit
status, or with exit status 2, a text on standard error, and no file but those that are equal to the
reference's, OUT.part and its two files of kept states. A program that dies in HDF5 for want of
memory may die of a signal, and may leave the same files, no others. Of the stacks of malloc a
twentieth is drawn (seed 22); --stacks takes all.

--part K/N takes every Nth of the calls that are to fail, from the Kth on (from 0), of each verb and
kind of call: a night that is too short for all of them says which it was.

--brief lets each call fail once, not for good, in the verbs that write traces and pages, and takes
six stacks of each kind (seed 22), but all by which recover writes: it makes a trace of the same
objects as run, in a tenth of the time."""

import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LOG = os.path.join(HERE, "..", "golden", "logs")
CALLS = ("write", "fsync", "ftruncate", "rename", "link", "unlink", "open", "mkdir", "mmap",
         "stdio", "thread", "own", "malloc")
WHOLE = ("run", "lr-set-before-step", "--reproducible", "--quiet", "--set", "steps=1")
# A small model, since arithmetic makes no call.
NARROW = ("--set", "common.model.hidden=16", "--set", "common.model.mlp=32")
SMALL = ("--set", "steps=1", "--set", "record.tensors=false", "--set", "record.phases=false",
         "--set", "attribution.twin=false", *NARROW)
RUN = ("run", "lr-set-before-step", "--reproducible", "--quiet", *SMALL)
# name: (commands before it, which nothing disturbs; the command; exit status of the reference)
CASES = {
    "run": ((), (*RUN, "-o", "a.h5"), 0),
    "run-whole": ((), ("run", "lr-set-before-step", "--reproducible", "--quiet", *NARROW, "--set",
                       "steps=2", "--checkpoint-every=1", "--keep-every=0", "--set",
                       "common.numerics.threads=2", "-o", "a.h5"), 0),
    "overwrite": (((*RUN, "--set", "steps=2", "-o", "a.h5"),),
                  (*RUN, "-o", "a.h5", "--overwrite"), 0),
    "save-model": ((), (*RUN, "-o", "a.h5", "--save-model=models"), 0),
    "recover": (((*WHOLE, "-o", "a.h5"),), ("recover", "a.h5", "-o", "b.h5"), 0),
    "report": (((*RUN, "-o", "a.h5"),), ("report", "a.h5", "-o", "a.html"), 0),
    "export": (((*RUN, "-o", "a.h5"),), ("export", "a.h5", "--to", "csv", "-o", "a.csv"), 0),
    "import": ((), ("import", "log.jsonl", "-o", "log.h5"), 0),
    "compare": (((*RUN, "-o", "a.h5"), (*RUN, "--set", "common.seed=3", "-o", "b.h5")),
                ("compare", "a.h5", "b.h5"), 1),
    "certify": (((*RUN, "-o", "a.h5"), ("recover", "a.h5", "-o", "b.h5")),
                ("certify", "a.h5", "b.h5"), 0),
    "lr-check": ((), ("lr", "check", "log.jsonl", "--expect=hf", "--schedule=linear",
                      "--lr=1e-3", "--steps=20", "--junit=out.xml", "--json"), 0),
    # 3 pairs instead of 99: each more is the same calls anew
    "noise": ((), ("noise", "lr-set-before-step", *NARROW, "--steps=1", "--repeat=1", "--pairs=3",
                   "--quiet", "--reproducible", "-o", "floor.json"), 0),
}
ROWS = "".join('{"step": %d, "loss": %.4f, "learning_rate": %.10g}\n'
               % (step, 2.0 - 0.01 * step, 1e-3 * (1.0 - (step - 1) / 20.0))
               for step in range(1, 21))
SEED = 22


def own_code(binary):
    """Where the program's own functions lie, "A-B" in hexadecimal. HDF5's lie behind them where it is
    linked into the program (cmake/dependencies.cmake); else all is the program's."""
    lines = subprocess.run(["nm", "-n", binary], capture_output=True, text=True, check=True).stdout
    code = [(name, int(at, 16)) for at, kind, name in (line.rsplit(None, 2) for line in lines.splitlines()
                                                       if len(line.split()) == 3) if kind in "tT"]
    begin = dict(code)["main"]
    end = min((at for name, at in code if at > begin and name.startswith("H5")), default=None)
    where = dict(code)["arena_take"]
    if not begin < where < (end or where + 1):
        sys.exit(f"faults.py: {binary}: its own code does not lie in front of HDF5's")
    return f"{begin:x}-{end or max(at for _, at in code):x}"


def part_of(text):
    """K/N as (K, N)."""
    first, every = map(int, text.split("/"))
    if not 0 <= first < every:
        raise argparse.ArgumentTypeError(f"expected K/N with 0 <= K < N, got {text}")
    return first, every


class Bench:
    def __init__(self, options):
        self.options = options
        self.own = own_code(options.binary)
        self.folder = tempfile.mkdtemp(prefix="twinstep-faults-")
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("TWINSTEP_")}
        # The program starts itself anew without it; sanitizers want to be loaded first.
        self.environment["OMP_WAIT_POLICY"] = "passive"

    def start(self, folder, command, **more):
        environment = {**self.environment, **more}
        if more:
            environment["TWINSTEP_FAULT_OWN"] = self.own
            environment["LD_PRELOAD"] = self.options.library
        return subprocess.run([self.options.binary, *command], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=900)

    def prepare(self, name, into):
        os.mkdir(into)
        before, _, _ = CASES[name]
        with open(os.path.join(into, "log.jsonl"), "w", encoding="utf-8") as file:
            file.write(ROWS)
        for command in before:
            done = self.start(into, command)
            if done.returncode not in (0, 1):
                sys.exit(f"{name}: cannot be prepared: {done.stderr.decode()}")


def files_of(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


BRIEF = ("run", "recover", "report", "import")
UNFINISHED = (".part", ".rebuild", ".part.kept-1", ".part.kept-2")
FEW = 6  # of the stacks of a kind that --brief takes, but for what recover writes


def chosen_calls(path, call, options, is_all):
    """Numbers of the calls that are to fail: one for each stack, or all."""
    first = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, number, stack = line.split()
            if name == call:
                first.setdefault(number if options.whole else stack, int(number))
    numbers = sorted(first.values())
    is_drawn = call == "malloc" and not options.whole and not options.stacks
    many = (len(numbers) + 19) // 20 if is_drawn else len(numbers)
    if options.brief and not is_all:
        many = min(FEW, many)
    return sorted(random.Random(SEED).sample(numbers, many))


def judge(call, before, reference, done, found):
    """What is wrong with the end of a run, or None."""
    status, output, files = reference
    if done.returncode == status and found == files and done.stdout == output:
        return None
    if done.returncode in (0, 1, 3):
        what = "other files" if found != files else "another output"
        return f"exit status {done.returncode} with {what}"
    deaths = (-signal.SIGSEGV, -signal.SIGABRT) if call == "malloc" else ()
    if done.returncode not in (2, *deaths):
        return f"exit status {done.returncode}"
    if done.returncode == 2 and not done.stderr.strip():
        return "exit status 2 without a text"
    for name in sorted(set(before) | set(found)):
        if name.endswith(UNFINISHED) or found.get(name) == files.get(name):
            continue
        if found.get(name) != before.get(name):
            return f"exit status {done.returncode} and a file {name}"
    return None


def try_one(bench, name, call, word, before, reference):
    folder = tempfile.mkdtemp(dir=bench.folder)
    shutil.copytree(os.path.join(bench.folder, name), folder, dirs_exist_ok=True)
    try:
        done = bench.start(folder, CASES[name][1], TWINSTEP_FAULT=f"{call}:{word}")
        wrong = judge(call, before, reference, done, files_of(folder))
    except subprocess.TimeoutExpired:
        return "does not end"
    finally:
        shutil.rmtree(folder)
    if wrong and bench.options.show:
        wrong += f": {done.stderr.decode(errors='replace').strip()[-300:]}"
    return wrong


def try_case(bench, name, pool):
    """Returns how many runs there were and how many of them were wrong."""
    _, command, status = CASES[name]
    prepared = os.path.join(bench.folder, name)
    bench.prepare(name, prepared)
    before = files_of(prepared)
    ends = []
    calls = os.path.join(bench.folder, name + ".calls")
    for more in ({}, {"TWINSTEP_FAULT_CALLS": calls}):
        folder = tempfile.mkdtemp(dir=bench.folder)
        shutil.copytree(prepared, folder, dirs_exist_ok=True)
        done = bench.start(folder, command, **more)
        ends.append((done.returncode, done.stdout, files_of(folder)))
        shutil.rmtree(folder)
    if ends[0] != ends[1] or ends[0][0] != status:
        sys.exit(f"{name}: undisturbed runs do not agree, or end with {ends[0][0]}, "
                 f"not {status}: {done.stderr.decode()}")
    total = bad = 0
    for call in bench.options.call or CALLS:
        numbers = chosen_calls(calls, call, bench.options, (name, call) == ("recover", "write"))
        numbers = numbers[bench.options.part[0]::bench.options.part[1]]
        endings = ("",) if bench.options.brief else ("", "+")
        words = [f"{number}{ending}" for number in numbers for ending in endings]
        jobs = [pool.submit(try_one, bench, name, call, word, before, ends[0]) for word in words]
        wrong = [(word, job.result()) for word, job in zip(words, jobs) if job.result()]
        total, bad = total + len(words), bad + len(wrong)
        if words:
            print(f"{name:12s} {call:10s} {len(words):6d} runs {len(wrong):5d} wrong", flush=True)
        for word, what in wrong[:None if bench.options.show else 5]:
            print(f"  {call}:{word}: {what}")
    return total, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--verb", action="append", choices=tuple(CASES))
    parser.add_argument("--call", action="append", choices=CALLS)
    parser.add_argument("--part", type=part_of, default=(0, 1), metavar="K/N")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for file in (options.binary, options.library):
        if not os.path.isfile(file):
            sys.exit(f"faults.py: {file}: no such file")
    bench = Bench(options)
    total = bad = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for name in options.verb or (BRIEF if options.brief else CASES):
                tried, wrong = try_case(bench, name, pool)
                total, bad = total + tried, bad + wrong
    finally:
        shutil.rmtree(bench.folder)
    print(f"{total} runs with a failing call, {bad} of them wrong")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
