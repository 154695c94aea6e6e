#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills trainings and goes on with them: the trace must be, byte for byte, that of one never killed.

    resume_kills.py BINARY [--kills N] [--only SCENARIO]... [--failing LIBRARY]

Each scenario trains once without an interruption. Then it is killed (SIGKILL) after a random time, or
before a random one of its writes (LIBRARY is tests/faults/failing.c), gone on with (`run --resume`),
killed and gone on with again, and at last left to end: with the exit status, output and bytes of the
first. That is done with states kept after every update, and without, and both with states in the
trace and without. A kill before the first update leaves nothing to go on with; it is not counted.
Another scenario, number of updates, seed, build or output in the input's place must be refused. In
mode invariant the number of threads may be another after the kill. What was finished is not trained
again, which processor time shows; and the command that an interrupted run tells is run."""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SEED = 22
HEAD = "twinstep: 1\nname: %s\nsteps: 6\n"
SMALL = "common:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 32}\n  batch: {size: 4, micro: 2}\n"
SCENARIOS = {
    # repeats of both arms, in random order of sums, with dropout and accumulation
    "noisy": (HEAD + "floor: {replicates: 3}\n" + SMALL
              + "  numerics: {mode: shuffled, order_seed: free}\n  dropout: {residual: 0.1}\n"
              "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6}}\n"),
    # three causes, so hybrids that branch off each other; clipping, and a warm-up that parts late
    "hybrids": (HEAD + SMALL + "  clip: {max_norm: 0.5}\n  dropout: {residual: 0.1}\n"
                "arms:\n  baseline: {schedule: {warmup: 2}}\n"
                "  test: {numerics: {param: bf16}, optimizer: {beta2: 0.95}, schedule: {warmup: 3}}\n"),
    # f16 with a loss scale that overflows
    "scaled": (HEAD + SMALL + "  numerics: {param: f16, master: f32}\n"
               "  scaler: {kind: dynamic, init_scale: 1e9, growth_interval: 2}\n"
               "arms:\n  baseline: {}\n  test: {optimizer: {beta1: 0.8, weight_decay: 0.1}}\n"),
    # sums whose order is a function of the shape, and sums without an order
    "shaped": (HEAD + SMALL + "  numerics: {mode: shaped}\n"
               "arms:\n  baseline: {}\n  test: {batch: {micro: 4}, optimizer: {beta2: 0.95}}\n"),
    "order-free": (HEAD + SMALL + "  numerics: {mode: order-free, threads: 2}\n"
                   "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6, beta1: 0.8}}\n"),
    # the bits of invariant on this machine; of fast and atomic nothing is promised, so they stand in no row
    "deterministic": (HEAD + SMALL + "  numerics: {mode: deterministic, threads: 2}\n"
                      "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6, beta2: 0.95}}\n"),
    # held-out rows, measured when each run ends
    "held-out": (HEAD + "eval: {from: rest, training_rows: 5}\n" + SMALL
                 + "  data: {samples: 18}\n  clip: {max_norm: 0.5}\n"
                 "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6, beta1: 0.8}}\n"),
    # repeats of hybrids, for the intervals of noisy shares
    "intervals": (HEAD + "floor: {replicates: 3}\nattribution: {replicates: 3}\n" + SMALL
                  + "  numerics: {mode: shuffled, order_seed: free}\n"
                  "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6}, schedule: {name: cosine}}\n"),
    # arms that are alike: no hybrids, and the control of all others
    "same": (HEAD + SMALL + "arms:\n  baseline: {}\n  test: {}\n"),
    # checks that a process counts for itself, so that no state is kept
    "checked": (HEAD + "record: {replay_check: 2}\n" + SMALL
                + "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6}}\n"),
    "sft": (HEAD + SMALL + "  task: sft\n  dropout: {attention: 0.1}\n"
            "arms:\n  baseline: {}\n  test: {optimizer: {eps: 1e-6}, schedule: {name: cosine}}\n"),
}


# a.jsonl in order: the arm reads 12 rows, the hybrid with the other arm's batches 24
DATA = (HEAD % "data" + "common:\n  task: sft\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 32}\n"
        "  data: {shuffle: false}\narms:\n  baseline: {data: {text: a.jsonl}, batch: {size: 2, micro: 2}}\n"
        "  test: {data: {text: b.jsonl}, batch: {size: 4, micro: 2}}\n")

# resume.* is read in the test arm alone
BLAME = ("twinstep: 1\nname: blame\nsteps: 3\n" + SMALL
         + "arms:\n  baseline: {}\n"
         "  test: {resume: {after: 2, wrong: [decay-late], weight_decay: 0.1}}\n")


class Bench:
    def __init__(self, options, folder):
        self.binary, self.folder, self.failing = options.binary, folder, options.failing
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}

    def start(self, *words, **more):
        environment = {**self.environment, **more}
        if more:
            environment["LD_PRELOAD"] = self.failing
        return subprocess.Popen([self.binary, *words], cwd=self.folder, env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def say(self, *words, **more):
        process = self.start(*words, **more)
        output, error = process.communicate(timeout=300)
        return process.returncode, output, error.decode()

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()


# states in the trace after so many updates, and how often they are kept beside it
WAYS = ((2, "0"), (0, "0"), (2, "never"), (0, "never"))


def words_of(name, way, output):
    return ["run", f"{name}.yaml", "--quiet", "--reproducible", f"--checkpoint-every={way[0]}",
            f"--keep-every={way[1]}", "-o", output]


def count_writes(bench, name, way):
    calls = bench.path("calls")
    never = f"write:{2**40}"  # which leaves allocations out
    bench.say(*words_of(name, way, "calls.h5"), TWINSTEP_FAULT_CALLS=calls, TWINSTEP_FAULT=never)
    with open(calls, encoding="utf-8") as file:
        writes = sum(line.startswith("write ") for line in file)
    os.remove(calls)
    os.remove(bench.path("calls.h5"))
    return writes


def try_once(bench, name, way, whole, limits, rng):
    """Kills until the training ends, after a time or before a write; returns how often."""
    given, kills = [], 0
    seconds, writes = limits
    for number in range(4):
        output = f"k{number}.h5"
        at_write = writes > 0 and number < 3 and rng.random() < 0.5
        more = {"TWINSTEP_FAULT": f"write:{rng.randint(1, writes)}!"} if at_write else {}
        process = bench.start(*words_of(name, way, output), *given, **more)
        if number < 3 and not at_write:
            try:
                process.communicate(timeout=rng.uniform(0.0, seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        text, error = process.communicate(timeout=300)
        if process.returncode in (0, 1, 3):
            if (process.returncode, text.replace(output.encode(), b""), bench.read(output)) != whole:
                sys.exit(f"{name}: after {kills} kills another trace, output or status than without")
            left = [file for file in os.listdir(bench.folder) if file.startswith(output) and file != output]
            if left:
                sys.exit(f"{name}: a finished run leaves {left}")
            return kills
        if process.returncode != -signal.SIGKILL:
            sys.exit(f"{name}: status {process.returncode}: {error.decode()}")
        status, _, error = bench.say("recover", f"{output}.part", "-o", f"probe{number}.h5")
        if status == 0:
            given, kills = ["--resume", f"{output}.part"], kills + 1
        elif "no update is in it" not in error and "No such file" not in error and "empty" not in error \
                and "truncated" not in error:
            sys.exit(f"{name}: {error}")
    return kills


def clean(bench):
    for name in os.listdir(bench.folder):
        if name.startswith(("k", "probe")):
            os.remove(bench.path(name))


def try_scenario(bench, name, kills, rng):
    done, writes = 0, 0
    for number, way in enumerate(WAYS):
        share, count = (kills + len(WAYS) - 1 - number) // len(WAYS), 0
        if share == 0:
            continue
        if os.path.exists(bench.path("whole.h5")):
            os.remove(bench.path("whole.h5"))
        began = time.monotonic()
        status, text, error = bench.say(*words_of(name, way, "whole.h5"))
        seconds = time.monotonic() - began
        if status not in (0, 1, 3):
            sys.exit(f"{name}: {error}")
        whole = (status, text.replace(b"whole.h5", b""), bench.read("whole.h5"))
        if bench.failing and (writes == 0 or bench.long): # elsewhere a number too large kills nothing
            writes = count_writes(bench, name, way)
        limits = (seconds, writes)
        for _ in range(3 * share):
            if count >= share:
                break
            count += try_once(bench, name, way, whole, limits, rng)
            clean(bench)
        done += count
        # what ended can be gone on with, too: nothing but the last updates is trained again
        status, text, error = bench.say(*words_of(name, way, "again.h5"), "--resume", "whole.h5")
        if (status, text.replace(b"again.h5", b""), bench.read("again.h5")) != whole or error:
            sys.exit(f"{name}: another trace, output or status from a whole one: {error}")
        os.remove(bench.path("again.h5"))
    print(f"{name:8s} {done} kills, every trace as without one", flush=True)
    return done


def refuse(bench, needle, *words):
    status, _, error = bench.say(*words)
    if status != 2 or needle not in error or os.path.exists(bench.path("r.h5")):
        sys.exit(f"{' '.join(words)}: expected status 2 and {needle!r}, got {status}: {error}")


def check_refusals(bench, name):
    run = ("run", f"{name}.yaml", "--quiet", "-o", "r.h5", "--resume", "whole.h5")
    refuse(bench, "was trained with another scenario: optimizer.beta1", *run, "--set",
           "common.optimizer.beta1=0.7")
    refuse(bench, "a trace of 6 updates, and now 5", *run, "--set", "steps=5")
    refuse(bench, "another scenario", *run, "--set", "common.seed=4")
    refuse(bench, "record.readback was true, and is false", *run, "--set", "record.readback=false")
    refuse(bench, "expected an output that is not read", *run[:4], "whole.h5", *run[5:], "--overwrite")
    os.rename(bench.path("whole.h5"), bench.path("r.h5.part"))
    refuse(bench, "is where r.h5 would be written", *run[:6], "r.h5.part", "--overwrite")
    os.rename(bench.path("r.h5.part"), bench.path("whole.h5"))
    refuse(bench, "expected a trace", *run[:6], f"{name}.yaml")
    refuse(bench, "No such file", *run[:6], "nothing.h5")
    refuse(bench, "expected one scenario", "run", "null-pair", *run[1:3], "--resume", "whole.h5")


def check_blame(bench):
    """A key that the baseline does not read holds the test arm's value there, but it is the test arm's."""
    with open(bench.path("blame.yaml"), "w", encoding="utf-8") as file:
        file.write(BLAME)
    words = ("run", "blame.yaml", "--quiet", "-o")
    status, _, error = bench.say(*words, "b.h5")
    if status != 1 or error:
        sys.exit(f"blame: {status}: {error}")
    changed = ("r.h5", "--resume", "b.h5", "--set")
    refuse(bench, "run test was trained with another scenario: resume.weight_decay: 0.1, and now "
           "resume.weight_decay: 0.3",
           *words, *changed, "arms.test.resume.weight_decay=0.3")
    # a key of a later version has no line where it has its default
    refuse(bench, "run test was trained with another scenario: resume.wrong: [decay-late], and now its default",
           *words, *changed, "arms.test.resume.wrong=[]")
    refuse(bench, "run baseline was trained with another scenario: its default, and now numerics.cuts: 2",
           *words, *changed, "common.numerics.cuts=2")
    # where the key that makes another one inert was changed, that one is named, and in its own arm
    refuse(bench, "run baseline was trained with another scenario: resume.after: 0", *words, *changed,
           "arms.baseline.resume.after=1")
    os.remove(bench.path("b.h5"))


def check_build(bench, name):
    """The same program with another build id in its note stands for one of other sources."""
    with open(bench.binary, "rb") as file:
        program = bytearray(file.read())
    note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
    at = program.find(note)
    if at < 0:
        sys.exit("the program has no build id")
    program[at + len(note)] ^= 1
    other = Bench(argparse.Namespace(binary=bench.path("other"), failing=None), bench.folder)
    with open(other.binary, "wb") as file:
        file.write(program)
    os.chmod(other.binary, 0o755)
    refuse(other, "written by another build: build_id was", "run", f"{name}.yaml", "--quiet", "-o", "r.h5", "--resume",
           "whole.h5")


def write_rows(bench, name, changed=None):
    with open(bench.path(name), "w", encoding="utf-8") as file:
        for row in range(1, 31):
            text = "otherwise" if row == changed else f"{7 * row} {name}"
            file.write(json.dumps({"prompt": f"row {row}", "completion": text}) + "\n")


def check_unkept(bench, name):
    """States that cannot be written cost nothing but themselves. (A kept file gets its name by rename, the
    trace by link.)"""
    words = words_of(name, (0, "0"), "u.h5")
    whole = (bench.say(*words)[:2], bench.read("u.h5"))
    os.remove(bench.path("u.h5"))
    status, text, error = bench.say(*words, TWINSTEP_FAULT="rename:1+")
    if ((status, text), bench.read("u.h5")) != whole or error:
        sys.exit(f"{name}: without kept states: {status}: {error}")
    os.remove(bench.path("u.h5"))
    left = [file for file in os.listdir(bench.folder) if file.startswith("u.h5")]
    if left:
        sys.exit(f"{name}: without kept states: {left} is left")


def check_data(bench):
    """A changed row that only a hybrid read, and no run reads again: nothing else could see it."""
    with open(bench.path("data.yaml"), "w", encoding="utf-8") as file:
        file.write(DATA)
    write_rows(bench, "a.jsonl")
    write_rows(bench, "b.jsonl")
    words = ("run", "data.yaml", "--quiet", "--checkpoint-every=2", "-o")
    status, _, error = bench.say(*words, "d.h5")
    if status not in (0, 1) or error:
        sys.exit(f"data: {status}: {error}")
    write_rows(bench, "a.jsonl", changed=14)
    refuse(bench, "was trained on other data", *words, "r.h5", "--resume", "d.h5")


def check_threads(bench, name):
    """Mode invariant has the same bits with any number of threads."""
    words = ("run", f"{name}.yaml", "--quiet", "--reproducible", "--set", "common.numerics.threads=3", "-o")
    ends = []
    for more in ((), ("--resume", "whole.h5")):
        status, text, error = bench.say(*words, "t.h5", *more)
        if status not in (0, 1, 3) or error:
            sys.exit(f"{name}: another number of threads: {status}: {error}")
        ends.append((status, text, bench.read("t.h5")))
        os.remove(bench.path("t.h5"))
    if ends[0] != ends[1]:
        sys.exit(f"{name}: gone on with by another number of threads, another trace, output or status")


def interrupt(bench, name, output, bytes_, *more, joined=False):
    """Interrupts a long run once its file has so many bytes; returns what it says."""
    words = (f"-o{output}",) if joined else ("-o", output)
    # with one job, since nobody asks what a second process would train meanwhile
    process = bench.start("run", f"{name}.yaml", "--quiet", *words, "--set", "steps=5000", "--jobs", "1", *more)
    part = bench.path(f"{output}.part")
    while not os.path.exists(part) or os.path.getsize(part) < bytes_:
        if process.poll() is not None:
            sys.exit(f"to be interrupted: {process.returncode}: {process.stderr.read().decode()}")
        time.sleep(0.01)
    time.sleep(0.1 if bytes_ > 0 else 0.02)
    if bytes_ > 0:
        refuse(bench, "its run still writes it (process %d)" % process.pid, "run", f"{name}.yaml", "--quiet", "-o",
               "r.h5", "--set", "steps=5000", "--resume", f"{output}.part")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    if process.returncode != 130:
        sys.exit(f"interrupted: {process.returncode}: {error.decode()}")
    return error.decode()


def check_interrupt(bench, name):
    """The file that is advised is the one that holds more: of a run that went on and was stopped at once,
    that which it went on from; and its own once it is further."""
    begun = interrupt(bench, name, "i.h5", 1 << 21)
    told(begun, "what there is is in i.h5.part", "--resume i.h5.part -o i-2.h5")
    early = interrupt(bench, name, "j.h5", 0, "--resume", "i.h5.part")
    if os.path.getsize(bench.path("j.h5.part")) >= os.path.getsize(bench.path("i.h5.part")):
        sys.exit("the run that went on is further already: nothing is shown")
    told(early, "i.h5.part holds more than j.h5.part", "--resume i.h5.part -o j-2.h5")
    late = interrupt(bench, name, "l.h5", os.path.getsize(bench.path("i.h5.part")) + (1 << 16), "--resume=i.h5.part",
                     joined=True)
    told(late, "what there is is in l.h5.part", "--resume l.h5.part -o l-2.h5")


def told(error, holder, end):
    command = error.split("This goes on with it: ")[-1].split()
    if [sum(word.startswith(begin) for word in command) for begin in ("--resume", "-o", "--output")] != [1, 1, 0] \
            or "--set" not in command or command.count("hybrids.yaml") != 1:
        sys.exit(f"interrupted: expected one --resume, one -o, and all other words: {error}")
    if f"{holder}. This goes on with it: " not in error or not error.endswith(f" {end}\n"):
        sys.exit(f"interrupted: expected {holder!r} and {end!r}: {error}")


def seconds_of_children():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def check_saved(bench, name, share):
    """Interrupts a run after about a share of it, and runs the command that it tells: the bytes are those
    of an uninterrupted run. What it took of the processor's time is printed and not judged: times are no
    result of a test."""
    words = ("run", f"{name}.yaml", "--quiet", "--reproducible", "--set", "steps=80", "-o")
    began, clock = seconds_of_children(), time.monotonic()
    whole = bench.say(*words, "w.h5")
    spent, seconds = seconds_of_children() - began, time.monotonic() - clock
    for attempt in range(8):
        process = bench.start(*words, "s.h5")
        try:
            process.communicate(timeout=share * seconds * 0.7**attempt)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        done = re.search(rb"interrupted after (\d+) of (\d+) updates", error)
        if process.returncode == 130 and done is not None:
            break
        os.remove(bench.path("s.h5" if process.returncode != 130 else "s.h5.part"))
    else:
        sys.exit(f"{name}: ends before it is interrupted")
    left = 1.0 - int(done[1]) / int(done[2])
    command = error.decode().split("This goes on with it: ")[1].strip()
    began = seconds_of_children()
    again = subprocess.run(command, shell=True, cwd=bench.folder, env=bench.environment,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    again_spent = seconds_of_children() - began
    if (again.returncode, again.stdout.replace(b"s-2.h5", b"w.h5")) != whole[:2] \
            or bench.read("s-2.h5") != bench.read("w.h5"):
        sys.exit(f"{command}: another trace, output or status: {again.stderr.decode()}")
    print(f"{name:8s} interrupted with {left:.0%} left, which took {again_spent / spent:.0%} of the time",
          flush=True)
    for file in ("w.h5", "s-2.h5", *(f for f in os.listdir(bench.folder) if f.startswith("s.h5"))):
        os.remove(bench.path(file))


def updates(bench):
    """So many that the hybrids take long enough to be interrupted."""
    return 24 if bench.long else 10


def check_models(bench, name):
    """Interrupts a run that has saved its models, and runs the command that it tells: the models and the
    trace are those of an uninterrupted run."""
    words = ("run", f"{name}.yaml", "--quiet", "--reproducible", "--set", f"steps={updates(bench)}", "--keep-every=0", "-o")
    whole = bench.say(*words, "w.h5", "--save-model=W")
    for attempt in range(20):
        process = bench.start(*words, "m.h5", "--save-model", "M")
        while process.poll() is None and not os.path.exists(bench.path("M/test/config.json")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        if process.returncode == 130:
            break
        os.remove(bench.path("m.h5"))
        shutil.rmtree(bench.path("M"))
    else:
        sys.exit(f"{name}: ends before it is interrupted behind its models")
    for arm in ("baseline", "test"):  # what goes on writes them anew
        with open(bench.path(f"M/{arm}/model.safetensors"), "wb"):
            pass
    command = error.decode().split("This goes on with it: ")[1].strip()
    again = subprocess.run(command, shell=True, cwd=bench.folder, env=bench.environment,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    if (again.returncode, again.stdout.replace(b"m-2.h5", b"w.h5")) != whole[:2] \
            or bench.read("m-2.h5") != bench.read("w.h5"):
        sys.exit(f"{command}: another trace, output or status: {again.stderr.decode()}")
    for arm in ("baseline", "test"):
        for file in sorted(os.listdir(bench.path(f"W/{arm}"))):
            if bench.read(f"M/{arm}/{file}") != bench.read(f"W/{arm}/{file}"):
                sys.exit(f"{command}: another {arm}/{file} than that of an uninterrupted run")


def check_models_told(bench, name):
    """Where no command can be told (-- ends the options), and where a write fails behind the models, it is
    said that they need --overwrite."""
    words = ("run", "--quiet", "--reproducible", "--set", f"steps={updates(bench)}", "--keep-every=0", "-o")
    told = ", with --overwrite for the models that it saved and an"
    for attempt in range(20):
        process = bench.start(*words, "x.h5", "--save-model", "X", "--", f"{name}.yaml")
        while process.poll() is None and not os.path.exists(bench.path("X/test/config.json")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        if process.returncode == 130:
            break
        os.remove(bench.path("x.h5"))
        shutil.rmtree(bench.path("X"))
    else:
        sys.exit(f"{name}: ends before it is interrupted behind its models")
    if f"--resume x.h5.part{told}other --output goes on with it" not in error.decode():
        sys.exit(f"interrupted behind its models: {error.decode()}")
    most = os.path.getsize(bench.path("w.h5")) * 9 // 10  # reached long after both arms are trained
    done = subprocess.run([bench.binary, *words, "f.h5", "--save-model=F", f"{name}.yaml"], cwd=bench.folder,
                          env=bench.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
                          restore_signals=False, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    if done.returncode != 2 or not os.path.exists(bench.path("F/test/config.json")) \
            or f"--resume f.h5.part{told} --output elsewhere goes on with it" not in done.stderr.decode():
        sys.exit(f"a write that fails behind the models: {done.returncode}: {done.stderr.decode()}")


def check_damaged(bench, name):
    """A kept file of another run, and damaged ones: refused, or the other one is taken; and another number
    of threads goes on."""
    words = words_of(name, (0, "0"), "d.h5")
    for attempt in range(20):
        process = bench.start(*words)
        kept = [bench.path(f"d.h5.part.kept-{i}") for i in (1, 2)]
        while process.poll() is None and not all(map(os.path.exists, kept)):
            time.sleep(0.002)
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            break
        os.remove(bench.path("d.h5"))
    else:
        sys.exit(f"{name}: ends before two files are kept")
    whole = bench.say(*words_of(name, (0, "0"), "u.h5"))
    # in mode invariant another number of threads goes on from kept states, too
    threads = ("--set", "common.numerics.threads=3")
    other = bench.say(*words_of(name, (0, "0"), "v.h5"), *threads)
    status, text, error = bench.say(*words_of(name, (0, "0"), "e.h5"), *threads, "--resume", "d.h5.part")
    if (status, text.replace(b"e.h5", b"v.h5")) != other[:2] or bench.read("e.h5") != bench.read("v.h5"):
        sys.exit(f"{name}: kept states and another number of threads: another trace, output or status: {error}")
    os.remove(bench.path("e.h5"))
    first = bench.read("d.h5.part.kept-1")
    for path in kept:
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        if path == kept[0]:
            status, text, _ = bench.say(*words_of(name, (0, "0"), "e.h5"), "--resume", "d.h5.part")
            if (status, text.replace(b"e.h5", b"u.h5")) != whole[:2] or bench.read("e.h5") != bench.read("u.h5"):
                sys.exit(f"{name}: one of two kept files damaged: another trace, output or status")
            os.remove(bench.path("e.h5"))
    refuse(bench, "damaged: piece", *words_of(name, (0, "0"), "r.h5"), "--resume", "d.h5.part")
    status, text, error = bench.say(*words_of(name, (0, "0"), "e.h5"), "--resume", "d.h5.part", "--verify")
    if (status, text.replace(b"e.h5", b"u.h5")) != whole[:2] or bench.read("e.h5") != bench.read("u.h5"):
        sys.exit(f"{name}: --verify: another trace, output or status: {error}")
    os.remove(kept[1])
    with open(kept[0], "wb") as file:
        file.write(first)
    # the same file beside a run with another seed
    bench.say(*words_of(name, (0, "never"), "o.h5"), "--set", "common.seed=4")
    os.rename(kept[0], bench.path("o.h5.kept-1"))
    refuse(bench, "is not of o.h5", *words_of(name, (0, "0"), "r.h5"), "--set", "common.seed=4", "--resume", "o.h5")


def check_first_keeping(bench):
    """States may take a twentieth of the time, and so may the first, of which no time is known: it is
    taken to write 250 MB a second. A slow machine keeps later, and none keeps sooner."""
    size, waited = 0, None
    kept = [bench.path(f"first.h5.part.kept-{i}") for i in (1, 2)]
    begun = time.monotonic()
    process = bench.start("run", "lr-set-before-step", "--quiet", "--set", "steps=1000", "--set",
                          "common.model.hidden=128", "--set", "common.data.samples=8", "--jobs", "1",
                          "--keep-every", "0.001", "-o", "first.h5")
    while process.poll() is None and size == 0:
        if waited is None and any(os.path.exists(path + ".part") for path in kept):
            waited = time.monotonic() - begun
        size = max((os.path.getsize(path) for path in kept if os.path.exists(path)), default=0)
        time.sleep(0.001)
    process.kill()
    process.communicate()
    if size < 1e6 or waited is None or waited < 19 * size / 250e6:
        sys.exit(f"the first {size} bytes were kept after {waited} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--kills", type=int, default=8, help="of each scenario")
    parser.add_argument("--only", choices=tuple(SCENARIOS), action="append")
    parser.add_argument("--failing", type=os.path.abspath)
    options = parser.parse_args()
    rng, total = random.Random(SEED), 0
    with tempfile.TemporaryDirectory(prefix="twinstep-resume-") as folder:
        bench = Bench(options, folder)
        bench.long = options.kills >= 20
        for name, text in SCENARIOS.items():
            with open(bench.path(f"{name}.yaml"), "w", encoding="utf-8") as file:
                file.write(text % name)
        for name in options.only or SCENARIOS:
            total += try_scenario(bench, name, options.kills, rng)
            if name == "hybrids":
                check_refusals(bench, name)
                check_threads(bench, name)
                check_build(bench, name)
                check_blame(bench)
        check_data(bench)
        if bench.failing:
            check_unkept(bench, "same")
        check_interrupt(bench, "hybrids")
        check_damaged(bench, "hybrids")
        for share in (0.3, 0.6, 0.85) if bench.long else ():  # check_models runs such a command, too
            check_saved(bench, "hybrids", share)
        check_models(bench, "hybrids")
        check_models_told(bench, "hybrids")
        check_first_keeping(bench)
    print(f"{total} kills")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
