#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many of the catalogue's bugs of ranks does VeOmni's gate for parallel layouts see?

    veomni_gate.py BINARY                    rewrite the table of docs/measurements/veomni.md
    veomni_gate.py BINARY --check            compare; exit status 1: differs, 77: no h5py

The gate is torch.testing.assert_close with rtol = atol = 0.1 (tests/e2e/test_e2e_parallel.py), here
|a - b| <= 0.1 + 0.1 |b| with b of the sound arm, on what both arms report as loss and as gradient
norm; it runs two updates. A cell of the table is the largest |a - b| over what is allowed, so the
gate fires above 1; NaN fires. Drawn orders of sums get fixed seeds, so the figures are those of
every machine."""
import argparse
import difflib
import math
import pathlib
import subprocess
import sys
import tempfile
import textwrap

try:
    import h5py
except ImportError:
    print("needs python3-h5py")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measurements" / "veomni.md"
BEGIN, END = "<!-- gate -->\n", "<!-- end of gate -->\n"
TOLERANCE, UPDATES = 0.1, 2
CHEAP = ["attribution.twin=false", "attribution.replicates=0"]
DRAWN = ["arms.baseline.numerics.order_seed=1", "arms.test.numerics.order_seed=2"]

BUGS = [
    "ranks-divide-by-own-tokens", "loss-summed-over-ranks", "tensor-ranks-in-loss", "ranks-step-one-schedule",
    "ranks-draw-same-masks", "ranks-draw-the-same-rows", "tensor-ranks-draw-own", "tensor-ranks-draw-the-same",
    "tensor-ranks-forget-final-norm", "tensor-ranks-forget-norms", "tensor-ranks-forget-qk-norms",
    "joined-at-first-micro-batch", "last-micro-batch-alone", "ranks-clip-own-shards", "ranks-counted-in-norm",
    "ranks-average-their-norms", "tensor-ranks-count-norms-each", "ranks-adam-count-ahead", "ranks-bucket-overwritten",
    "ranks-repeat-one-order", "ranks-pad-the-epoch", "ranks-fed-the-same", "ranks-resume-without-data",
    "shards-of-another-world", "moments-read-past-padding", "veomni-3-resume-without-moments",
    "rank-0-logs-its-loss"]
SOUND = [
    "ranks-same-bits", "veomni-2-ranks", "veomni-2-tensor", "veomni-2-ranks-and-tensor", "veomni-3-training",
    "veomni-3-resume", "veomni-2-fsdp2", "tensor-parallel-sums", "ranks-bf16-on-wire", "ranks-bucket-size",
    "ranks-buckets-rebuilt", "ranks-bucket-views", "ranks-tree-of-nccl", "ranks-arrival"]


def scenario_of(name):
    folder = ROOT / "scenarios" / "catalog"
    return folder / ("veomni" if name.startswith("veomni-") else "") / f"{name}.yaml"


def arms_of(text):
    """The names of both arms, in the order of the file."""
    lines = text[text.index("\narms:\n") + len("\narms:\n"):].splitlines()
    return [line.split(":")[0].strip() for line in lines if line.startswith("  ")][:2]


def over(sound, other):
    """The largest |a - b| in units of what the gate allows; NaN beside a number is infinitely far."""
    shares = [0.0]
    for b, a in zip(sound, other):
        share = abs(a - b) / (TOLERANCE + TOLERANCE * abs(b))
        shares.append(math.inf if math.isnan(share) else share)
    return max(shares)


def measure(binary, folder, name):
    """The verdict, and of two updates and of all: the shares of loss and of norm."""
    path = scenario_of(name)
    text = path.read_text(encoding="utf-8")
    trace = folder / "trace.h5"
    words = [binary, "run", str(path), "-o", str(trace), "--overwrite", "--quiet"]
    for setting in CHEAP + (DRAWN if "order_seed: free" in text else []):
        words += ["--set", setting]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(words)}\n{result.stdout}{result.stderr}")
    verdict = result.stdout.split(": ", 1)[1].split(".", 1)[0].lower()
    with h5py.File(trace) as file:
        columns = [{column: file[f"runs/{arm}/steps/{column}"][()] for column in ("loss", "grad_norm")}
                   for arm in arms_of(text)]
    return verdict, [[over(columns[0][column][:last], columns[1][column][:last]) for column in ("loss", "grad_norm")]
                     for last in (UPDATES, None)]


def figure(share):
    return "0" if share == 0.0 else "inf" if math.isinf(share) else f"{share:.2g}"


def table(binary, folder, names):
    lines = ["| scenario | twinstep | loss, 2 updates | norm, 2 updates | loss, all | norm, all | the gate |",
             "|---|---|---:|---:|---:|---:|---|"]
    said, moved, seen, later = 0, 0, 0, 0
    for name in names:
        verdict, (two, every) = measure(binary, folder, name)
        fires = "sees it" if max(two) > 1.0 else "sees it later" if max(every) > 1.0 else "passes"
        said += verdict in ("outside the floor", "same training")
        moved += max(two) > 0.0
        seen += fires == "sees it"
        later += fires == "sees it later"
        cells = " | ".join(figure(share) for share in (*two, *every))
        lines.append(f"| `{name}` | {verdict} | {cells} | {fires} |")
    lines += ["", textwrap.fill(
        f"Of {len(names)} pairs twinstep tells {said} apart. In two updates {moved} differ at all in loss or norm, and "
        f"the gate sees {seen}; in all updates it sees {later} more.", 100)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    binary = str(options.binary.resolve())
    with tempfile.TemporaryDirectory() as folder:
        tables = [table(binary, pathlib.Path(folder), names) for names in (BUGS, SOUND)]
    old = PAGE.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    new = head + BEGIN + "\nBugs:\n\n" + tables[0] + "\nNo mistake:\n\n" + tables[1] + "\n" + END + tail
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), PAGE.name, "measured"))
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
