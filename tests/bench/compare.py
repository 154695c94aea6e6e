#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times updates of twinstep beside the same ones in PyTorch, in turns, and writes
docs/measurements/peers.md.

    compare.py --build BUILD --venv VENV [--rounds N] [--only WORD]... [--threads N] [--write PAGE]

BUILD is a build folder in which `ninja bench_train bench_peak` was run, VENV an environment with
torch and transformers (tests/python/make_torch_venv.sh makes one). A round is every row once, each
in a process of its own, and the next round has them in the opposite order, so what else the machine
does reaches all of them; a row's figure of a round is the median of its updates. Printed are the
median, least and most of the rounds, and the median of the ratios to PyTorch in f32 of the same
round, which is the figure to quote. The peak of the machine's cores is measured in each round, too.
--only takes the models whose name begins so; without --write the page goes to stdout.

MKL, by which PyTorch multiplies, takes its widest kernels by itself on Intel's processors only. On
others there are two rows in f32: as installed, and with a library loaded before it that answers MKL
that this is such a processor. Where both are, ratios are to the second, whose name has the kernels
that MKL says it takes. A peer that counts other parameters, tokens or labels ends the comparison."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MKL_LIBRARY = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"

# name: task, layers, hidden, heads, mlp, vocabulary, sequences, their length, updates timed a round
MODELS = {"small": ("sft", 4, 256, 4, 688, 8192, 4, 256, 7),
          "small-dpo": ("dpo", 4, 256, 4, 688, 8192, 4, 256, 7),
          "gpt2s": ("sft", 12, 768, 12, 2048, 50257, 4, 64, 3)}

# row: how bench_train is called, and the keys that are not those of all. Without evidence there is
# no root and no norm; "f32" has what every trace has, and "recorded" what `twinstep run` records.
BF16 = ("numerics.param=bf16", "numerics.compute=bf16", "numerics.master=f32")
OURS = {"twinstep f32, no evidence": ("--bare", ()),
        "twinstep f32": ("--one", ()),
        "twinstep f32, recorded": ("--recorded", ()),
        "twinstep bf16, no evidence": ("--bare", BF16),
        "twinstep bf16": ("--one", BF16)}
WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
PLAIN, HALF = "PyTorch f32, as installed", "PyTorch bf16 autocast"


def wide_row(mkl):
    """The row in f32 that ratios are to, by what MKL says of its kernels."""
    kernels = re.findall(r"AVX[-\w]*", mkl)
    return f"PyTorch f32, MKL {kernels[0]}" if kernels else "PyTorch f32, unnamed kernels"


def write_rows(path, task, vocab, sequences, length):
    """Rows of one length, so that nobody pads; every token of SFT has a loss, and of DPO those
    behind the prompt, a quarter of the length."""
    draw = random.Random(17)

    def ids(count):
        return [draw.randrange(vocab) for _ in range(count)]
    with open(path, "w") as out:
        for _ in range(sequences if task == "sft" else sequences // 2):
            if task == "sft":
                row = ids(length)
                row = {"input_ids": row, "labels": row}
            else:
                row = {"prompt_ids": ids(length // 4), "chosen_ids": ids(length - length // 4),
                       "rejected_ids": ids(length - length // 4)}
            out.write(json.dumps(row) + "\n")


def run(command, environment=None):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        sys.exit(f"compare.py: {' '.join(str(word) for word in command)}\n"
                 f"ended with status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


class Machine:
    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        cpu = pathlib.Path("/proc/cpuinfo").read_text()
        self.cpu = re.search(r"model name\s*: (.*)", cpu).group(1)
        self.intel = "GenuineIntel" in cpu
        library = self.folder / "mkl.so"
        run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", self.text("mkl.c", MKL_LIBRARY)])
        self.wide = {"LD_PRELOAD": str(library)}
        told = run([args.venv / "bin/python", "-c", "import torch, transformers; a = torch.ones(64, 64);"
                    "print(torch.__version__, transformers.__version__); a @ a"],
                   {**self.wide, "MKL_VERBOSE": "1"}).stdout
        self.versions = next(line for line in told.splitlines() if not line.startswith("MKL")).split()
        # "... architecture NAME OF THE KERNELS, Lnx 2.60GHz lp64 gnu_thread"
        found = re.search(r"architecture (.*?)(?:, Lnx .*)?$", told, re.M)
        self.mkl = found.group(1) if found else "MKL names none: another library multiplies"
        self.base = wide_row(self.mkl)
        self.peers = [] if self.intel else [(PLAIN, {})]
        self.peers += [(self.base, self.wide), (HALF, self.wide)]

    def text(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def data(self, name):
        task, _, _, _, _, vocab, sequences, length, _ = MODELS[name]
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            write_rows(path, task, vocab, sequences, length)
        return path

    def peak(self):
        lines = run([self.args.build / "bin/bench_peak", self.args.threads]).stdout.splitlines()
        return {(kind, int(threads)): float(rate)
                for kind, threads, rate in (line.split("\t") for line in lines)}

    def ours(self, name, how, extra):
        """Shape (parameters, tokens, labels), seconds of an update, GiB."""
        task, layers, hidden, heads, mlp, vocab, sequences, length, updates = MODELS[name]
        size = sequences if task == "sft" else sequences // 2
        words = [f"task={task}", f"data.{'text' if task == 'sft' else 'pairs'}={self.data(name)}",
                 f"data.max_len={length}", f"batch.size={size}", f"batch.micro={size}",
                 "model.family=llama", f"model.layers={layers}", f"model.hidden={hidden}",
                 f"model.heads={heads}", f"model.mlp={mlp}", f"model.vocab={vocab}",
                 "model.tied=true", "clip.max_norm=1", "optimizer.lr=5e-7",
                 f"numerics.threads={self.args.threads}", *extra]
        if task == "dpo":
            words.append("batch.layout=concatenated")
        # threads wait as in the program on a machine with processors to spare (cli/main.c)
        line = run([self.args.build / "bin/bench_train", how, "ours", updates + 1, 0, 0,
                    *(f"common.{word}" for word in words)],
                   {} if "OMP_WAIT_POLICY" in os.environ else WAITING).stdout
        _, parameters, tokens, median, _, labels, _, _, gib = line.rstrip("\n").split("\t")
        return (int(parameters), int(tokens), int(labels)), float(median), float(gib)

    def theirs(self, name, row, environment):
        task, layers, hidden, heads, mlp, vocab, _, _, updates = MODELS[name]
        line = run([self.args.venv / "bin/python", HERE / "compare_peer.py", task, updates,
                    self.data(name), layers, hidden, heads, mlp, vocab, self.args.threads,
                    *(["--bf16"] if row == HALF else [])], environment).stdout
        parameters, tokens, labels, median, gib = line.split("\t")
        return (int(parameters), int(tokens), int(labels)), float(median), float(gib)

    def rows(self):
        return [row for row, _ in self.peers] + list(OURS)

    def row(self, name, row):
        if row in OURS:
            return self.ours(name, *OURS[row])
        return self.theirs(name, row, dict(self.peers)[row])


def measure(machine, names, rounds):
    """Per model and row the seconds of each round, and the most GiB; shapes; the peaks of rounds."""
    seconds, memory, shapes, peaks = {}, {}, {}, []
    todo = [(name, row) for name in names for row in machine.rows()]
    for i in range(rounds):
        peaks.append(machine.peak())
        for name, row in todo if i % 2 == 0 else reversed(todo):
            print(f"round {i + 1} of {rounds}: {name}, {row}", file=sys.stderr)
            shape, median, gib = machine.row(name, row)
            if shapes.setdefault(name, shape) != shape:
                sys.exit(f"compare.py: {name}, {row} trains another model or other rows: parameters, "
                         f"tokens, labels are {shape}, those of the rows before it {shapes[name]}")
            seconds.setdefault((name, row), []).append(median)
            memory[name, row] = max(gib, memory.get((name, row), 0.0))
    return seconds, memory, shapes, peaks


def operations(name, shape):
    """10^9 operations of an update's products: 6 for each weight of a linear layer and row, and
    causal attention's six products over half of the keys."""
    _, layers, hidden, _, mlp, vocab, _, length, _ = MODELS[name]
    _, tokens, labels = shape
    linear = tokens * layers * (4 * hidden * hidden + 3 * hidden * mlp) + labels * hidden * vocab
    return 1e-9 * (6 * linear + 6 * layers * hidden * length * tokens)


def spread(values, form):
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def page(machine, names, rounds, measured):
    seconds, memory, shapes, peaks = measured
    args = machine.args
    commit = run(["git", "-C", HERE, "describe", "--always", "--dirty"]).stdout.strip()
    yield f"""# Updates beside PyTorch on the CPU

Written by `tests/bench/compare.py --build {args.build} --venv VENV --rounds {rounds} --write
docs/measurements/peers.md` after `ninja -C {args.build} bench_train bench_peak`. What is measured,
and in which order, its first lines say. Milliseconds of an update: median of {rounds} rounds, least
and most in parentheses. The ratio is the median of the rounds' own ratios to "{machine.base}"; below
1 is faster. Before a time counts, both sides must count the same parameters, tokens and labels; their
losses and gradients are not compared. Memory is the process's most for PyTorch, and what the training takes for twinstep.

{datetime.date.today()}, commit {commit}, {machine.cpu}, {len(os.sched_getaffinity(0))} cores, {args.threads} threads,
Linux {platform.release()}; torch {machine.versions[0]}, transformers {machine.versions[1]}.
MKL's kernels, by its own word: {machine.mkl}.
"""
    if machine.intel:
        yield "This is Intel's processor, so PyTorch as installed is the same row, and not run twice.\n"
    yield "Peak of the cores in the same rounds, GFLOP/s: " + "; ".join(
        f"{kind}, {threads} thread{'s' if threads > 1 else ''} "
        + spread([peak[kind, threads] for peak in peaks], lambda x: f"{x:.0f}")
        for kind, threads in peaks[0]) + ".\n"
    for name in names:
        task, layers, hidden, heads, mlp, vocab, sequences, length, updates = MODELS[name]
        parameters, tokens, labels = shapes[name]
        work = operations(name, shapes[name])
        yield f"""## {name}

{task.upper()}, {layers} layers, hidden {hidden}, {heads} heads, mlp {mlp}, vocabulary {vocab}, head tied to the embedding:
{parameters / 1e6:.2f} M parameters. {sequences} sequences of {length} tokens an update, {labels} labels; {updates} updates a round.
Products of an update: {work:.1f} GFLOP.

| | ms an update | ratio | share of f32 peak | GiB |
|---|---:|---:|---:|---:|"""
        base = seconds[name, machine.base]
        for row in machine.rows():
            own = seconds[name, row]
            ratio = statistics.median(a / b for a, b in zip(own, base))
            share = statistics.median(
                work / own[i] / peaks[i]["fma-f32", args.threads] for i in range(rounds))
            yield (f"| {row} | {spread(own, lambda x: f'{1e3 * x:.0f}')} | {ratio:.2f} | "
                   f"{100 * share:.0f} % | {memory[name, row]:.2f} |")
        yield ""


def main():
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--build", type=pathlib.Path, required=True)
    words.add_argument("--venv", type=pathlib.Path, required=True)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--threads", type=int, default=2)
    words.add_argument("--only", action="append", default=[], metavar="WORD")
    words.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    args = words.parse_args()
    args.venv = args.venv.absolute()  # a link to the interpreter, which must keep its name
    names = [name for name in MODELS if not args.only or name.startswith(tuple(args.only))]
    if args.rounds < 1 or args.threads < 1 or not names:
        words.error(f"--rounds and --threads are 1 or more, --only begins one of {', '.join(MODELS)}")
    for path in (args.build / "bin/bench_train", args.build / "bin/bench_peak",
                 args.venv / "bin/python"):
        if not path.exists():
            words.error(f"{path}: no such program (see the first lines of this script)")
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(args, folder)
        measured = measure(machine, names, args.rounds)
        text = "\n".join(page(machine, names, args.rounds, measured))
    if args.write:
        args.write.write_text(text)
        run([sys.executable, HERE.parents[1] / "docs/wrap.py", args.write])
    else:
        print(text)


if __name__ == "__main__":
    main()
