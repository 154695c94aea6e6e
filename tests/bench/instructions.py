#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of six small pieces of work and holds them against those of a file.

    instructions.py --binary TWINSTEP --trainer BENCH_TRAIN [--counts FILE] [--write]

Time says little on a machine that others use, too; how many instructions a program executes is the
same on a full machine and on an idle one, and moves where work was added or an optimisation was
lost. What it does not see is what memory costs, and how wide the machine is. Valgrind (cachegrind
without caches) counts them; of its processor the program takes the kernels for AVX2. The counts
belong to one compiler and one C library, whose versions the file names: with others, without
valgrind and without AVX2 nothing is compared (exit status 77).

Each count must be within 3 % of its own in the file; one below it fails as well, so that what was
gained is written down (--write) and cannot be lost again unseen. Exit status 1 if one is not.

    sft       40 updates of SFT in f32, mode invariant, with all that `twinstep run` records
    dpo       20 of DPO, with the reference model's log-probs
    bf16      40 of SFT in bf16
    shuffled  40 of SFT in mode shuffled
    fit       `lr fit` of 10,000 rows
    doctor    `doctor` of 2,000 rows with losses and gradient norms

The trainings go by bench_train: `run` asks a second process, which is started from /proc/self/exe,
and that is valgrind's own program there."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

COUNTS = pathlib.Path(__file__).resolve().parents[1] / "golden" / "instructions.json"
LIMIT = 0.03
NOT_HERE = 77

SHAPE = ("data.max_len=48", "batch.size=2", "model.layers=1", "model.hidden=32", "model.heads=2",
         "model.mlp=64")
TRAININGS = {"sft": (40, "task=sft", "data.text=rows.jsonl"),       # updates, and keys of the arm
             "dpo": (20, "task=dpo", "data.pairs=pairs.jsonl"),
             "bf16": (40, "task=sft", "data.text=rows.jsonl", "numerics.compute=bf16"),
             "shuffled": (40, "task=sft", "data.text=rows.jsonl", "numerics.mode=shuffled")}


def write_inputs(folder):
    """Data and logs, by formulas alone."""
    rows = [{"prompt": f"question {i}: ", "completion": "word " * (3 + i % 3)} for i in range(8)]
    pairs = [{"prompt": f"question {i}: ", "chosen": "word " * 3, "rejected": "other " * 2}
             for i in range(8)]
    for name, some in (("rows.jsonl", rows), ("pairs.jsonl", pairs)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in some))
    rates = [1e-3 * (k / 500 if k < 500 else (10000 - k) / 9500) for k in range(10000)]
    (folder / "fit.csv").write_text("step,lr\n" + "".join(
        f"{k + 1},{rate!r}\n" for k, rate in enumerate(rates)))
    (folder / "doctor.jsonl").write_text("".join(json.dumps({
        "step": k + 1, "learning_rate": rates[5 * k],
        "loss": round(2.5 - k / 2000 + k * 7 % 11 / 50, 4),
        "grad_norm": round(1.0 + k * 5 % 13 / 40, 4)}) + "\n" for k in range(2000)))


def commands(program, trainer):
    """The words of each case."""
    trainings = {name: [trainer, "--recorded", name, str(updates), "0", "0",
                        *(f"common.{key}" for key in (*SHAPE, *keys))]
                 for name, (updates, *keys) in TRAININGS.items()}
    return {**trainings, "fit": [program, "lr", "fit", "fit.csv"],
            "doctor": [program, "doctor", "doctor.jsonl"]}


def count(words, folder):
    """How many instructions a command takes. It must have a result, whatever that is."""
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *words],
        cwd=folder, check=False, capture_output=True, text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"})       # or the program starts itself anew
    told = re.search(r"I +refs: +([0-9,]+)", done.stderr)
    if told is None or done.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n"
                         f"{done.stdout}{done.stderr}")
    return int(told[1].replace(",", ""))


def build_of(program):
    """What the counts belong to."""
    said = json.loads(subprocess.run([program, "env", "--json"], check=True, capture_output=True,
                                     text=True).stdout)
    return {"compiler": said["compiler"], "build_type": said["build_type"],
            "glibc": " ".join(platform.libc_ver())}


def compare(here, kept):
    """Prints each count beside the one of the file; whether all are within the limit."""
    good = True
    for name, number in here.items():
        before = kept.get(name)
        change = None if before is None else number / before - 1
        held = change is not None and abs(change) <= LIMIT
        good = good and held
        told = "not in the file" if change is None else f"{100 * change:+.2f} %"
        print(f"{name:10} {number:>15,} {told:>16}{'' if held else '   MORE THAN 3 %'}")
    missing = sorted(set(kept) - set(here))
    if missing:
        print(f"not counted: {', '.join(missing)}")
    return good and not missing


def main():
    """Counts and compares, or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath)
    parser.add_argument("--counts", type=pathlib.Path, default=COUNTS)
    parser.add_argument("--write", action="store_true", help="make the file of what is counted now")
    asked = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("left out: no valgrind")
        return NOT_HERE
    if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text():
        print("left out: the processor has no AVX2")
        return NOT_HERE
    build = build_of(asked.binary)
    kept = {} if asked.write else json.loads(asked.counts.read_text())
    if not asked.write and kept["build"] != build:
        print(f"left out: counts are of {kept['build']}, and this is {build}")
        return NOT_HERE
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cases = commands(asked.binary, asked.trainer)
            here = dict(zip(cases, pool.map(lambda words: count(words, folder), cases.values())))
    if asked.write:
        asked.counts.write_text(json.dumps({"build": build, "counts": here}, indent=2) + "\n")
    return 0 if compare(here, here if asked.write else kept["counts"]) else 1


if __name__ == "__main__":
    sys.exit(main())
