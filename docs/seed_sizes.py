#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the hypotheses of seed 001 come to here, and writes it beside what was found there.

    docs/seed_sizes.py [--binary build/default/bin/twinstep]     rewrite the table of docs/CATALOG.md
    docs/seed_sizes.py --check --binary B                        compare; 1: differs, 77: no h5py

A row of HYPOTHESES names the scenario that is run, says whether it is run on builtin:base, and has a
function that reads its figure out of the trace. Drawn orders of sums get fixed seeds, so every
figure is that of every machine."""
import argparse
import concurrent.futures
import difflib
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("needs python3-h5py")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "CATALOG.md"
BEGIN, END = "<!-- sizes -->\n", "<!-- end of sizes -->\n"
NONE = "no size"

# A scenario "on the base" is run with these.
BASE = ["common.model.from=builtin:base", "common.data.pairs=builtin:devil",
        "common.data.max_len=640", "common.batch.size=2", "common.numerics.param=bf16",
        "common.numerics.master=f32", "common.numerics.compute=bf16"]
IN_F32 = ["common.numerics.param=f32", "common.numerics.master=none", "common.numerics.compute=f32"]
DRAWN = ["arms.baseline.numerics.order_seed=1", "arms.test.numerics.order_seed=2"]
CHEAP = ["attribution.twin=false", "attribution.replicates=0"]
CHEAP_NOISY = CHEAP + ["floor.replicates=2"]


class Pair:
    """Both arms of a trace: columns by name, update 1 first."""

    def __init__(self, path, arms):
        with h5py.File(path) as file:
            self.arms = [{name: column[()] for name, column in file[f"runs/{arm}/steps"].items()
                          if isinstance(column, h5py.Dataset)} |
                         {"gradients": file[f"runs/{arm}/steps/tensors/grad_norm"][()],
                          "digests": file[f"runs/{arm}/steps/tensors/digest_gradient"][()]}
                         for arm in arms]
            self.names = [name.decode() for name in
                          file[f"runs/{arms[0]}/steps/tensors/tensor"][()]]

    def gap(self, column, update=1):
        a, b = (float(arm[column].reshape(len(arm["loss"]), -1)[update - 1][0])
                for arm in self.arms)
        return abs(b - a)

    def equal_gradients(self):
        a, b = (arm["digests"][0] for arm in self.arms)
        return (a == b).all(axis=1)

    def widest_gradient(self):
        a, b = (arm["gradients"][0] for arm in self.arms)
        return max(abs(y - x) / x for x, y in zip(a, b) if x > 0.0)


def number(value):
    return "0" if value == 0.0 else f"{value:.2g}"


def percent(value):
    return f"{number(100 * value)} %"


def logps(pair, update=1):
    chosen, rejected = pair.gap("logp_chosen", update), pair.gap("logp_rejected", update)
    return f"{number(chosen)} and {number(rejected)} nat"


def first_update(pair):
    return f"loss {number(pair.gap('loss'))}, log-probs {logps(pair)}"


def second_update(pair):
    return f"loss {number(pair.gap('loss', 2))}, log-probs {logps(pair, 2)}"


def off_ln2(pair):
    return " and ".join(number(abs(float(arm["loss"][0]) - math.log(2.0))) for arm in pair.arms)


def norm_gap(pair):
    return percent(pair.gap("grad_norm") / float(pair.arms[0]["grad_norm"][0]))


def gradients(pair):
    equal = pair.equal_gradients()
    if equal.all():
        return f"all {len(equal)} gradients equal"
    return (f"{equal.sum()} of {len(equal)} gradients equal, "
            f"up to {percent(pair.widest_gradient())} apart")


def all_of_update(pair):
    return f"{first_update(pair)}; {gradients(pair)}"


def gradients_and_norm(pair):
    return f"{gradients(pair)}; total norms {norm_gap(pair)}"


def largest_loss_gap(pair):
    gaps = abs(pair.arms[1]["loss"] - pair.arms[0]["loss"])
    return (f"loss of update 2 {number(gaps[1])}, largest {number(gaps.max())}, "
            f"mean {number(gaps.mean())}")


def rates(pair):
    a, b = (arm["lr_applied"].reshape(len(arm["loss"]), -1)[:, 0] for arm in pair.arms)
    return f"LR of update {len(a)}: {a[-1]:.4g} for {b[-1]:.4g}"


def ladder(pair):
    """Whether gradients are equal, by layer from the last to the first."""
    equal, out = pair.equal_gradients(), []
    layers = sorted({int(name.split(".")[2]) for name in pair.names if ".layers." in name})
    for layer in reversed(layers):
        of = [bool(same) for same, name in zip(equal, pair.names) if f".layers.{layer}." in name]
        out.append(f"{sum(of)} of {len(of)}")
    return (f"layers {layers[-1]} to 0: {', '.join(out)} gradients equal, "
            f"up to {percent(pair.widest_gradient())} apart")


# Hypothesis, what is measured, what it was there, scenario, on the base?, settings, figure, remark.
HYPOTHESES = [
    ("H1", "loss of update 1 less ln 2, both arms", NONE, "reference-batch-shape", 0, [], off_ln2,
     "there only said to be unequal"),
    ("H2", "log-probs of update 1", "0: same indices", "data-order", 0, [], logps,
     "ours does change the order"),
    ("H3", "update 1", NONE, "concatenated-forward-shapes", 0, [], first_update, "see H7"),
    ("H4", "update 1, gradients", "0", "packed-attention", 1, [], all_of_update,
     ""),
    ("H5", "gradient norms of update 1", "5.7 % (251.35 and 265.74, in H6)",
     "norm-rounds-elsewhere", 0, [], norm_gap, "ours differ in one rounding, theirs in all code"),
    ("H6", "update 1, gradients", "0", "rope-frequencies-elsewhere", 1, [], all_of_update,
     ""),
    ("H7", "log-probs of update 1", "0.054 and 0.778 nat", "concatenated-forward-shapes", 0, [],
     logps, "our sums have 64 to 172 terms, theirs 2,048 to 8,192"),
    ("H8", "update 1", "loss 0, log-probs 0.21 and 0.11 nat", "matched-model-other-table", 0,
     ["common.numerics.compute=bf16"], first_update, "in bf16; the scenario's f32 ranks causes"),
    ("H9", "log-probs of update 1", "0.14 and 0.10 nat", "norm-rounds-elsewhere", 0, [], logps, ""),
    ("H10", "loss of update 1", NONE, "logps-diverge-at-later-positions", 0, [],
     lambda pair: f"loss {number(pair.gap('loss'))}", "there a look at single positions"),
    ("H11", "update 1, gradients", "0", "unpad-without-padding", 1, [], all_of_update,
     ""),
    ("H12", "update 1", "0 within a run; 0.2 nat a token between two models",
     "same-node-same-process", 1, [], first_update, "one model on one machine; the two: H15"),
    ("H13", "update 1, gradients", "0", "packed-attention", 1, [], all_of_update,
     ""),
    ("H14", "update 1", "0", "same-node-same-process", 1, [], first_update, ""),
    ("H15", "update 1", "loss 0, log-probs 0.10 to 0.21 nat (in H8 and H9)",
     "rope-table-trained-model", 0, [], first_update, ""),
    ("H15", "update 2", "loss 1.69e-3 (in H8)", "rope-table-trained-model", 0, [], second_update,
     "the loss is made by rounding of activations, see the next row"),
    ("H15", "update 2, activations in f32", "", "rope-table-trained-model", 0,
     ["common.numerics.compute=f32"], second_update, ""),
    ("H15", "the same in a drawn model in f32, update 1", "", "rope-table-bf16", 0, [],
     first_update, "nothing to see without a trained model"),
    ("H16", "rates", "276 updates for 5", "max-steps-ignored", 0, [], rates,
     "total 276 for 5, as there"),
    ("H17", "update 2, order and kernel", "loss 6.75e-2, log-probs 1.14 and 0.391 nat",
     "h17-order-and-kernel", 1, ["common.batch.size=8"], second_update,
     "our LR is 2e-5, theirs 5e-7; 64 seeds: measurements/seed-001.md"),
    ("H17", "update 2, kernel only", "loss 2.32e-2, log-probs 0.80 and 0.304 nat",
     "h17-kernel-only", 1, ["common.batch.size=8"], second_update, "as above"),
    ("H18", "gradient norms of update 1, forwards equal", "0.078 %", "h17-kernel-only", 1,
     ["common.batch.size=8"], norm_gap, "gradients summed in bf16, over 8 micro-batches or 4"),
    ("H18", "the same, by attention's formula", "", "equal-forward-other-gradients", 1,
     ["common.numerics.mode=invariant"], norm_gap, "eager against flash, deterministic kernels"),
    ("H19", "gradients of update 1", "29 of 179 equal, up to 1.39 % apart; total norms 0.0078 %",
     "kernel-order", 1, DRAWN, gradients_and_norm, "f32 sums in another order, rounded once"),
    ("H20", "gradients of update 1", NONE, "hub-kernel-norm", 1, [], gradients_and_norm,
     "left open there"),
    ("H21", "gradients of update 1", "12 of 179 equal, up to 1.47 % apart", "kernel-order", 1,
     DRAWN, gradients, "as above"),
    ("H22", "", NONE, None, 0, [], None, "arguments were compared, not numbers: H14"),
    ("H23", "", NONE, None, 0, [], None, "arguments were compared, not numbers: H13"),
    ("H24", "gradients of update 1, by layer", "layer 15 equal, 14 to 0 growing up to 0.011",
     "flash-backward-dq", 1, DRAWN + IN_F32, ladder,
     "in f32; theirs are gradients at activations, absolute"),
    ("H25", "losses", "update 2 6.4e-2, largest 0.14, mean 0.032", "lr-first-step-peak", 1, [],
     largest_loss_gap, "6 updates; ours move 231,872 weights, theirs 1.5e9"),
]


def arms_of(text):
    """The names of both arms, in the order of the file."""
    lines = text[text.index("\narms:\n") + len("\narms:\n"):].splitlines()
    return [line.split(":")[0].strip() for line in lines if line.startswith("  ")][:2]


def measure(binary, folder, number_, row):
    _, _, _, name, on_base, settings, figure, _ = row
    if name is None:
        return ""
    scenario = ROOT / "scenarios" / "catalog" / f"{name}.yaml"
    cheap = CHEAP_NOISY if "order_seed" in scenario.read_text(encoding="utf-8") else CHEAP
    trace = folder / f"{number_}.h5"
    words = [binary, "run", str(scenario), "-o", str(trace), "--quiet"]
    for setting in (BASE if on_base else []) + settings + cheap:
        words += ["--set", setting]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1, 3):
        raise SystemExit(f"{row[0]}: {' '.join(words)}\n{result.stdout}{result.stderr}")
    return figure(Pair(trace, arms_of(scenario.read_text(encoding="utf-8"))))


def table(binary):
    lines = ["| | measured | there | here | scenario | why they differ, or cannot be compared |",
             "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        cells = list(pool.map(lambda pair: measure(binary, pathlib.Path(folder), *pair),
                              enumerate(HYPOTHESES)))
    for row, here in zip(HYPOTHESES, cells):
        scenario = "" if row[3] is None else f"`{row[3]}`" + (", on the base" if row[4] else "")
        lines.append(f"| {row[0]} | {row[1]} | {row[2]} | {here} | {scenario} | {row[7]} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(ROOT / "build" / "default" / "bin" / "twinstep"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    new = head + BEGIN + table(str(pathlib.Path(options.binary).resolve())) + END + tail
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True),
                                               "docs/CATALOG.md", "measured"))
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
