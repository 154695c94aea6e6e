#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arms of which one training is recorded for as long as nothing that differs between them acts.

    alike.py BINARY [--whole]

The trace must be that of `run --both-arms`, which trains both arms, but for the attribute that says
how many updates are shared, the seal and the verdict's words: every other attribute and every number
is compared, bit for bit. Expected shares stand in CASES, written down from what the keys mean. An
interruption in the shared updates, and behind them, is gone on with to the same bytes.
--whole: the same of every scenario of the catalogue, as large as it stands there; without, models are small."""

import argparse
import os
import subprocess
import sys
import tempfile
import time

# a reader's lock would keep the program from creating a trace anew
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"

import h5py
import numpy

import circumstances

# the updates that both arms have in common, of how many, and the scenario; LATER: with --whole alone
CASES = (
    (5, 5, "one configuration", ["null-pair"]),
    (4, 8, "a restart after update 4", ["scheduler-not-restored"]),
    (3, 5, "an evaluation after update 4", ["evaluation-draws-base-seed"]),
    (0, 6, "a restart that goes on with other rows, which the reference has seen", ["resume-batch-peeked"]),
    (0, 5, "another learning rate", ["null-pair", "--set", "arms.test.optimizer.lr=2e-6"]),
    (2, 5, "a loss scale that may grow after update 3",
     ["null-pair", "--set", "common.scaler.kind=dynamic", "--set", "arms.test.scaler.growth_interval=3"]),
    (0, 5, "a printed LR of a later counter", ["null-pair", "--set", "arms.test.schedule.logged=recomputed",
                                                "--set", "arms.test.schedule.logged_shift=1"]),
    (0, 5, "states are stored", ["null-pair", "--set", "record.snapshots=2"]),
    (0, 5, "sums in drawn orders", ["null-pair", "--set", "common.numerics.mode=shuffled", "--set",
                                    "common.numerics.order_seed=free", "--set", "expect.verdict=none",
                                    "--set", "floor.replicates=2"]),
)
LATER = (
    (2, 6, "a flipped bit in update 3", ["bit-flip-in-weight"]),
    (3, 8, "another floor of a cosine with its end at update 4", ["cosine-floor-mismatch"]),
    (1, 5, "the tail of an epoch", ["partial-window-underscaled"]),
    (5, 5, "a loss scale that could grow behind the end",
     ["null-pair", "--set", "common.scaler.kind=dynamic", "--set", "arms.test.scaler.growth_interval=100"]),
    (0, 5, "the models are probed", ["null-pair", "--set", "record.probe_every=1"]),
    (0, 5, "updates are checked", ["null-pair", "--set", "record.replay_check=1"]),
)
UNLIKE = {("/", "shared_updates"), ("/seal", ""), ("/verdict/text", ""), ("/verdict/json", "")}
REFERENCES = {"REFERENCE_LIST", "DIMENSION_LIST"}  # where in this file an axis lies
SMALL = [word for key in ("steps=1", "common.model.layers=1", "common.model.hidden=16", "common.model.heads=1",
                          "common.model.mlp=16", "common.batch.size=1", "common.batch.micro=1", "record.tensors=false")
         for word in ("--set", key)]
MODEL = [word for key in ("layers=1", "hidden=32", "heads=2", "mlp=64") for word in ("--set", f"common.model.{key}")]
LONG = [*MODEL, "--set", "steps=40", *(word for key in ("schedule.total=40", "batch.size=2", "batch.micro=2")
                                       for word in ("--set", f"common.{key}"))]


def same(a, b):
    a, b = numpy.asarray(a), numpy.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and (
        numpy.array_equal(a, b) if a.dtype.kind == "O" else a.tobytes() == b.tobytes())


def unlike(first, second):
    """Names of what two traces do not have in common: (object, attribute or "")."""
    found = set()
    with h5py.File(first) as a, h5py.File(second) as b:
        names = [["/"], ["/"]]
        a.visit(lambda name: names[0].append("/" + name))
        b.visit(lambda name: names[1].append("/" + name))
        found |= {(name, "") for name in set(names[0]) ^ set(names[1])}
        for name in set(names[0]) & set(names[1]):
            x, y = a[name], b[name]
            for key in (set(x.attrs) | set(y.attrs)) - REFERENCES:
                if key not in x.attrs or key not in y.attrs or not same(x.attrs[key], y.attrs[key]):
                    found.add((name, key))
            if isinstance(x, h5py.Dataset) and not same(x[()], y[()]):
                found.add((name, ""))
    return found


def shares(path):
    with h5py.File(path) as file:
        return tuple(int(file.attrs.get(name, 0)) for name in ("alike_updates", "shared_updates", "steps"))


class Bench(circumstances.Bench):
    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *words):
        return subprocess.Popen([self.options.binary, "run", *words, "--quiet", "--overwrite", "--reproducible"],
                                cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate()
        return process.returncode, out, err

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def compare(self, name, words):
        """Trains a scenario with and without; gives what the first trace shares, or None."""
        one = self.run(*words, "-o", "one.h5")
        both = self.run(*words, "--both-arms", "-o", "both.h5")
        self.expect(f"{name}: exit status {one[0]} and {both[0]}: {one[2]}{both[2]}",
                    one[0] == both[0] and one[0] in (0, 1, 3))
        if one[0] not in (0, 1, 3):
            return None
        found = unlike(self.path("one.h5"), self.path("both.h5"))
        alike, shared, steps = shares(self.path("one.h5"))
        self.expect(f"{name}: {sorted(found - UNLIKE)} differ", not found - UNLIKE)
        self.expect(f"{name}: not shared, and yet {sorted(found)} differ", shared > 0 or not found)
        self.expect(f"{name}: --both-arms shares", shares(self.path("both.h5")) == (alike, 0, steps))
        self.expect(f"{name}: shared {shared} of {alike}", shared in (0, alike))
        said = (" so one training is recorded of both" in one[1], "; both were trained all the same" in both[1])
        self.expect(f"{name}: the words say {said}", said == (shared > 0, alike > 0))
        return alike, shared, steps


def expected(bench, cases, model):
    for shared, steps, name, words in cases:
        got = bench.compare(name, [*words, *model])
        bench.expect(f"{name}: shares {got}, expected {shared} of {steps}",
                     got is None or got[1:] == (shared, steps))


def drawn(bench):
    """A sixteenth of scenarios trains both, and the words and the trace say it: of 12 seeds some do,
    and not 5, which the binomial law makes 0.05 %."""
    count = 0
    for seed in range(12):
        code, out, err = bench.run("null-pair", "--set", f"common.seed={seed}", *SMALL, "-o", "drawn.h5")
        alike, shared, _ = shares(bench.path("drawn.h5"))
        bench.expect(f"seed {seed}: {code}, {alike}, {err}", code == 0 and alike == 1)
        bench.expect(f"seed {seed}: {out}", (shared == 0) == ("both were trained all the same" in out))
        count += shared == 0
    bench.expect(f"{count} of 12 scenarios trained both arms", 1 <= count < 5)


def saved(bench):
    """Models of two equal arms, and what they are worth on held-out rows, are those of two trainings."""
    words = ("null-pair", *MODEL, "--set", "eval.from=builtin:quiz", "--set", "eval.rows=20")
    texts = []
    for name, more in (("one", ()), ("two", ("--both-arms",))):
        code, out, err = bench.run(*words, *more, "--save-model", name, "-o", f"{name}.h5")
        bench.expect(f"saved, {name}: {code}, {err}", code == 0)
        texts.append([line for line in out.splitlines() if line.startswith("  eval")])
    bench.expect(f"saved: {texts}", texts[0] == texts[1] != [])
    files = {arm: [bench.bytes(f"{name}/{arm}/model.safetensors") for name in ("one", "two")]
             for arm in ("baseline", "test")}
    bench.expect("saved: weights", len({weights for found in files.values() for weights in found}) == 1)


def stopped(bench, name, words, after):
    """Stops at some update behind `after`, goes on, and holds the bytes against a run to the end. Opening the
    live trace costs as much as several updates, so it waits in between."""
    live = bench.path("stopped.h5.part")
    if os.path.exists(live):
        os.unlink(live)
    process = bench.start(*words, "--keep-every", "0", "-o", "stopped.h5")
    for _ in range(2000):
        if process.poll() is not None or recorded(live) > after:
            break
        time.sleep(0.01)
    process.send_signal(2)
    _, err = process.communicate()
    at = recorded(live)
    bench.expect(f"{name}: {process.returncode}, {err}", process.returncode == 130)
    if process.returncode != 130:
        return
    code, _, err = bench.run(*words, "--resume", "stopped.h5.part", "-o", "on.h5")
    whole = bench.run(*words, "-o", "whole.h5")
    bench.expect(f"{name}: gone on with from update {at}: {code}, {whole[0]}, {err}", code == whole[0])
    bench.expect(f"{name}: gone on with from update {at}: other bytes", bench.bytes("on.h5") == bench.bytes("whole.h5"))
    code, _, err = bench.run(*words, "--both-arms", "--resume", "stopped.h5.part", "-o", "on.h5")
    bench.expect(f"{name}: --both-arms on the way: {code}, {err}",
                 code == 2 and "--both-arms: expected what the interrupted run had" in err)


def recorded(path):
    """Updates of the test arm in a live trace."""
    try:
        with h5py.File(path, "r", libver="latest", swmr=True) as file:
            return len(file["runs/test/steps/step"])
    except (OSError, KeyError, RuntimeError):
        return -1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        if options.whole:
            listed = subprocess.run([options.binary, "list", "scenarios"], capture_output=True, text=True, check=True)
            expected(bench, LATER, [])
            names = [line.split()[0] for line in listed.stdout.splitlines() if line.startswith("  ")]
            got = {name: bench.compare(name, [name]) for name in names}
            shared = [name for name, of in got.items() if of and of[1] > 0]
            bench.expect(f"of {len(names)} scenarios {shared} share", len(names) > 150 and len(shared) >= 15)
        else:
            expected(bench, CASES, MODEL)
            drawn(bench)
            saved(bench)
            stopped(bench, "in shared updates", ["null-pair", *LONG], 3)
            stopped(bench, "before a restart", ["scheduler-not-restored", *LONG, "--set", "common.resume.after=30"], 3)
            stopped(bench, "behind a restart", ["scheduler-not-restored", *LONG, "--set", "common.resume.after=5"], 20)
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
