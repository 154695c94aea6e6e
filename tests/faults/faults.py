#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets one call of the C library fail at a time, and looks at what the program leaves behind.

    faults.py BINARY LIBRARY [--brief [--few N]|--whole|--stacks] [--verb NAME]... [--call NAME]...
              [--part K/N] [--show]

LIBRARY is tests/faults/failing.c. Every case is a short command. It runs once undisturbed, for
reference, and once with every call written down. Then, for each kind of call, it runs again and
again, and one call fails: the first of every stack of calling functions (--whole: every call), once
and for good. Each run must end like the reference, with equal files, equal output and its exit
status, or with exit status 2, a text on standard error, no file but those that are equal to the
reference's, OUT.part and its two files of kept states, and no folder without a file in it; a file of
--junit may hold the error. A program that HDF5 ends for want of memory may die of a signal, and may
leave the same files, no others, and the folders that it had made for more. ablate and bisect-command
train in a folder of their own, where a failing call may end one training: then they say that it
failed, or what they cannot judge for that, and the same command given again, with no call that
fails, must end like the reference out of what is there. Of the stacks of malloc a
twentieth is drawn (seed 22); --stacks takes all that no command before it had.

With --stacks the command runs once and stops at each of its stacks; a copy of the process (fork) and
of its files goes on from there with the failing call, so what comes before the call is done once.
Where the call is in a process that the command started, or while there is one, or one with threads,
the command runs anew. After every 200th stop a copy goes on with no failing call, and must
end like the reference. What a child that reads a trace does after it was forked is one stack for all
verbs (failing.c), so the first verb that has it lets it fail.

--part K/N takes every Nth of the calls that are to fail, from the Kth on (from 0), of each verb and
kind of call: a night that is too short for all of them says which it was.

--brief lets each call fail once, not for good, in the verbs that write traces and pages, and takes
three stacks (--few N) of each kind (seed 22), but all by which recover writes: it makes a trace of the same
objects as run, in a tenth of the time."""

import argparse
import concurrent.futures
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LOG = os.path.join(HERE, "..", "golden", "logs")
CALLS = ("write", "fsync", "ftruncate", "rename", "link", "unlink", "open", "mkdir", "mmap",
         "stdio", "thread", "own", "malloc")
# A small model, since arithmetic makes no call.
NARROW = tuple(word for key in ("model.layers=1", "model.hidden=16", "model.mlp=32", "batch.size=2", "batch.micro=1")
               for word in ("--set", f"common.{key}"))
WHOLE = ("run", "lr-set-before-step", "--reproducible", "--quiet", "--set", "steps=1", *NARROW)
SMALL = ("--set", "steps=1", "--set", "record.tensors=false", "--set", "record.phases=false",
         "--set", "attribution.twin=false", *NARROW)
RUN = ("run", "lr-set-before-step", "--reproducible", "--quiet", *SMALL)
JUNIT = "out.xml"
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
    "certify-states": (((*RUN, "-o", "a.h5", "--checkpoint-every=1"),), ("certify", "a.h5"), 0),
    "lr-check": ((), ("lr", "check", "log.jsonl", "--expect=hf", "--schedule=linear",
                      "--lr=1e-3", "--steps=20", f"--junit={JUNIT}", "--json"), 0),
    # 3 pairs instead of 99: each more is the same calls anew
    "noise": ((), ("noise", "lr-set-before-step", *NARROW, "--steps=1", "--repeat=1", "--pairs=3",
                   "--quiet", "--reproducible", "-o", "floor.json"), 0),
    "bisect-command": ((), ("bisect-command", "b.yaml", "--quiet"), 1),
    "ablate": ((), ("ablate", "a.yaml", "--quiet"), 1),
}
# Verbs that train in a folder and go on with it, and what they may say besides when a training failed.
CONTINUED = {"bisect-command": ("b.bisect", (b"which cannot be judged",)),
             "ablate": ("a.ablate", (b"is not known", b"which were run once, repeat"))}
TRAININGS = {
    "b.yaml": """bisect: 1
command: [sh, train.sh, "{version}", "{dir}"]
versions: [v1, v2, v3]
read: {log: "{dir}/log.jsonl"}
""",
    "train.sh": """case $1 in v3) loss=2.0;; *) loss=1.0;; esac
echo "{\\"step\\": 1, \\"loss\\": $loss}" > "$2/log.jsonl"
""",
    "a.yaml": """ablate: 1
command: [/bin/cp, "w{x}.safetensors", "{dir}/w.safetensors"]
factors:
  x: [1, 2]
read: {weights: "{dir}/w.safetensors"}
run: {slots: 1, timeout: 60}
""",
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
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120 if command[0] in CONTINUED else 900)

    def serve(self, name, folder, stops, ask, say):
        """The command with a copy of itself for each failing call. Its files and its output lie in
        `folder`, so that a copy of the process finds its own there."""
        environment = {**self.environment, "LD_PRELOAD": self.options.library,
                       "TWINSTEP_FAULT_STOPS": f"{stops},{ask},{say}"}
        with open(os.path.join(folder, "out"), "wb") as out, open(os.path.join(folder, "err"), "wb") as err:
            return subprocess.Popen([self.options.binary, *CASES[name][1]], cwd=os.path.join(folder, "files"),
                                    env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    pass_fds=(ask, say))

    def prepare(self, name, into):
        os.mkdir(into)
        before, _, _ = CASES[name]
        with open(os.path.join(into, "log.jsonl"), "w", encoding="utf-8") as file:
            file.write(ROWS)
        if name in CONTINUED:
            for path, text in TRAININGS.items():
                with open(os.path.join(into, path), "w", encoding="utf-8") as file:
                    file.write(text)
            for number in (1, 2):
                head = b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
                with open(os.path.join(into, f"w{number}.safetensors"), "wb") as file:
                    file.write(struct.pack("<Q", len(head)) + head + struct.pack("<2f", number, 1))
        for command in before:
            done = self.start(into, command)
            if done.returncode not in (0, 1):
                sys.exit(f"{name}: cannot be prepared: {done.stderr.decode()}")


def files_of(folder, but=None):
    """The bytes of each file by its name; a folder's name ends with a slash. The folder `but` is left
    out."""
    found = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != but]
        for name in folders:
            found[os.path.relpath(os.path.join(where, name), folder) + "/"] = b""
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


BRIEF = ("run", "recover", "report", "import")
# A stack that several commands have fails in the first of them.
# (Those that train in a folder of their own have processes beside them at most of their calls.)
SHORT_FIRST = ("lr-check", "import", "export", "report", "certify", "certify-states", "compare", "run",
               "recover", "save-model", "overwrite", "noise", "run-whole")
UNFINISHED = (".part", ".rebuild", ".part.kept-1", ".part.kept-2")


def chosen_calls(path, call, options, is_all, had):
    """Numbers of the calls that are to fail: one for each stack, or all. With --stacks: for each stack
    that is not among those that a command before `had`."""
    first = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, number, stack, process = line.split()
            if name == call:
                first.setdefault(number if options.whole else stack, (int(number), stack, process == "0"))
    if options.stacks:
        new = sorted(first[stack] for stack in first.keys() - had)
        had.update(first)
        return new
    numbers = sorted(number for number, _, _ in first.values())
    is_drawn = call == "malloc" and not options.whole and not options.stacks
    many = (len(numbers) + 19) // 20 if is_drawn else len(numbers)
    if options.brief and not is_all:
        many = min(options.few, many)
    return sorted(random.Random(SEED).sample(numbers, many))


def judge(call, before, reference, done, found):
    """What is wrong with the end of a run, or None."""
    status, output, files = reference
    if done.returncode == status and found == files and done.stdout == output:
        return None
    if done.returncode in (0, 1, 3):
        what = "other files" if found != files else "another output"
        return f"exit status {done.returncode} with {what}"
    is_junit_error = done.returncode == 2 and b"<error" in found.get(JUNIT, b"")
    is_ended = call == "malloc" and (done.returncode < 0 or b"a library or a module ended" in done.stderr)
    deaths = (-signal.SIGSEGV, -signal.SIGABRT) if call == "malloc" else ()
    if done.returncode not in (2, *deaths):
        return f"exit status {done.returncode}"
    if done.returncode == 2 and not done.stderr.strip():
        return "exit status 2 without a text"
    for name in sorted(set(before) | set(found)):
        if name.endswith("/"):
            holds = any(file.startswith(name) and not file.endswith("/") for file in found)
            if (name in before) != (name in found) and not holds and not is_ended:
                return f"exit status {done.returncode} and a folder {name}"
            continue
        if name.endswith(UNFINISHED) or found.get(name) == files.get(name) or (name == JUNIT and is_junit_error):
            continue
        if found.get(name) != before.get(name):
            return f"exit status {done.returncode} and a file {name}"
    return None


def end_of(name, done, folder):
    """Exit status, output and files; the output of some verbs names the folder."""
    left_out = CONTINUED[name][0] if name in CONTINUED else None
    return done.returncode, done.stdout.replace(folder.encode(), b""), files_of(folder, left_out)


def judge_continued(bench, name, call, reference, done, folder):
    """What is wrong with the end of a verb that goes on with its folder, or with what the same command
    makes of that afterwards; or None."""
    status, output, files = end_of(name, done, folder)
    if files != reference[2]:
        return f"exit status {status} with other files"
    if (status, output) != reference[:2]:
        is_told = status == 3 and b"UNTESTABLE" in output and b" failed" in output
        is_said = any(words in output for words in CONTINUED[name][1])
        is_told |= status == 1 and is_said and b" failed" in output
        # libfyaml 0.7.12 reads on where an allocation failed, and is ended by a signal
        is_told |= call == "malloc" and status in (-signal.SIGSEGV, -signal.SIGABRT)
        if not is_told and (status != 2 or not done.stderr.strip()):
            return f"exit status {status} with another output"
    again = bench.start(folder, CASES[name][1])
    if end_of(name, again, folder) != reference:
        return f"exit status {status}, and the command given again ends with {again.returncode}"
    return None


def try_one(bench, name, call, word, before, reference, stack=None):
    """With `stack` the call must have that stack, and must be met."""
    met = tempfile.mktemp(dir=bench.folder)
    more = {"TWINSTEP_FAULT_STACK": f"{stack},{met}"} if stack else {}
    folder = tempfile.mkdtemp(dir=bench.folder)
    shutil.copytree(os.path.join(bench.folder, name), folder, dirs_exist_ok=True)
    try:
        done = bench.start(folder, CASES[name][1], TWINSTEP_FAULT=f"{call}:{word}", **more)
        if stack and not (os.path.exists(met) and os.path.getsize(met)):
            return "the call was not met"
        if name in CONTINUED:
            wrong = judge_continued(bench, name, call, reference, done, folder)
        else:
            wrong = judge(call, before, reference, done, files_of(folder))
    except subprocess.TimeoutExpired:
        return "does not end"
    finally:
        shutil.rmtree(folder)
    if wrong and bench.options.show:
        wrong += f": {done.stderr.decode(errors='replace').strip()[-300:]}"
    return wrong


class Copies:
    """Copies of a process that stops where a call is to fail, and what is wrong with their ends."""
    def __init__(self, bench, name, before, reference):
        self.bench, self.name, self.before, self.reference = bench, name, before, reference
        self.folder = tempfile.mkdtemp(dir=bench.folder)
        self.heard = None

    def hear(self, word, seconds=900):
        """The number behind `word`, or else the line that came in its place."""
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.heard], [], [], seconds)
            more = os.read(self.heard, 4096) if ready else b""
            if not more:
                return None if ready else "late"
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        said, number = line.decode().split()
        return int(number) if said == word else f"{said} {number}"

    def copy(self, how):
        """Lets a copy of the process go on, and returns what is wrong with its end."""
        folder = tempfile.mkdtemp(dir=self.bench.folder)
        for where, folders, names in os.walk(self.folder):
            into = os.path.join(folder, os.path.relpath(where, self.folder))
            for name in folders:
                os.mkdir(os.path.join(into, name))
            for name in names:
                path = os.path.join(where, name)
                # what the command reads is the same file, since it may ask which file it has open
                is_same = os.path.relpath(path, os.path.join(self.folder, "files")) in self.before
                (os.link if is_same else shutil.copyfile)(path, os.path.join(into, name))
        try:
            os.write(self.asked, f"{how} {folder}\n".encode())
            process = self.hear("copy")
            status = self.hear("end", 300)
            if status == "late":
                os.kill(process, signal.SIGKILL)
                self.hear("end")
                return "does not end"
            texts = []
            for name in ("out", "err"):
                with open(os.path.join(folder, name), "rb") as file:
                    texts.append(file.read())
            done = subprocess.CompletedProcess((), os.waitstatus_to_exitcode(status), *texts)
            wrong = judge("malloc", self.before, self.reference, done, files_of(os.path.join(folder, "files")))
            if how == "0" and done.returncode != self.reference[0]:
                wrong = f"exit status {done.returncode} although no call failed"
            if wrong and self.bench.options.show:
                wrong += f": {done.stderr.decode(errors='replace').strip()[-300:]}"
            return wrong
        finally:
            shutil.rmtree(folder)

    def run(self, calls):
        """Returns words of calls with what is wrong, and those calls that need a run of their own."""
        shutil.copytree(os.path.join(self.bench.folder, self.name), os.path.join(self.folder, "files"))
        stops = os.path.join(self.bench.folder, self.name + ".stops")
        with open(stops, "w", encoding="utf-8") as file:
            file.writelines(f"{number} {stack}\n" for number, stack, _ in calls)
        asked, self.asked = os.pipe()
        self.heard, say = os.pipe()
        process, self.buffer = self.bench.serve(self.name, self.folder, stops, asked, say), b""
        os.close(asked)
        os.close(say)
        ends, alone = [], []
        for at, call in enumerate(calls):
            got = self.hear("stop")
            # A way that depends on the process (its descriptors, its environment) is another one in the
            # copied process; a run from the start must meet the call as it was written down.
            if got in (f"busy {call[0]}", f"other {call[0]}"):
                alone.append(call)
            elif got != call[0]:
                process.kill()
                sys.exit(f"{self.name}: malloc:{call[0]}: another way to it than in the run before: {got}")
            elif at % 200 == 0 and (wrong := self.copy("0")):
                process.kill()
                sys.exit(f"{self.name}: malloc:{call[0]}: a copy that goes on without a failing call: {wrong}")
            else:
                ends += [(f"{call[0]}{how.strip('1')}", self.copy(how)) for how in "1+"]
            os.write(self.asked, b"go\n")
        status = process.wait(timeout=900)
        with open(os.path.join(self.folder, "out"), "rb") as file:
            if (status, file.read(), files_of(os.path.join(self.folder, "files"))) != self.reference:
                sys.exit(f"{self.name}: its copies changed how it ends")
        os.close(self.asked)
        os.close(self.heard)
        shutil.rmtree(self.folder)
        return ends, alone


def try_case(bench, name, pool, had):
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
        ends.append(end_of(name, done, folder))
        shutil.rmtree(folder)
    if ends[0] != ends[1] or ends[0][0] != status:
        sys.exit(f"{name}: undisturbed runs do not agree, or end with {ends[0][0]}, "
                 f"not {status}: {done.stderr.decode()}")
    reference, total, bad = ends[0], 0, 0
    for call in bench.options.call or CALLS:
        numbers = chosen_calls(calls, call, bench.options, (name, call) == ("recover", "write"), had)
        numbers, ends = numbers[bench.options.part[0]::bench.options.part[1]], []
        if bench.options.stacks:
            copied = [entry for entry in numbers if entry[2]]
            alone = [entry for entry in numbers if not entry[2]]
            if copied:
                ends, more = Copies(bench, name, before, reference).run(copied)
                alone += more
            numbers = sorted(alone)
        endings = ("",) if bench.options.brief else ("", "+")
        if not bench.options.stacks:
            numbers = [(number, None, None) for number in numbers]
        stacks = [stack for _, stack, _ in numbers for _ in endings]
        words = [f"{number}{ending}" for number, _, _ in numbers for ending in endings]
        jobs = [pool.submit(try_one, bench, name, call, word, before, reference, stack)
                for word, stack in zip(words, stacks)]
        ends += [(word, job.result()) for word, job in zip(words, jobs)]
        wrong = [end for end in ends if end[1]]
        total, bad = total + len(ends), bad + len(wrong)
        if ends:
            print(f"{name:12s} {call:10s} {len(ends):6d} runs {len(wrong):5d} wrong", flush=True)
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
    parser.add_argument("--few", type=int, default=3, help="stacks of each kind that --brief takes")
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
            had = set()
            for name in options.verb or (BRIEF if options.brief else SHORT_FIRST if options.stacks else CASES):
                tried, wrong = try_case(bench, name, pool, had)
                total, bad = total + tried, bad + wrong
    finally:
        shutil.rmtree(bench.folder)
    print(f"{total} runs with a failing call, {bad} of them wrong")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
