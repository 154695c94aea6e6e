# SPDX-License-Identifier: Apache-2.0
"""How often are equal arms told apart on a machine whose other work comes and goes, by the order in
which their runs are made? Prints a row per order; a table of docs/measurements/planted-causes.md.

    turns.py SEQUENCES [--clock] [--load PROCESSES] [--seed S] [--check]

A sequence is 12 runs of one function: an update of a linear layer whose gradient is added by
threads that race (tests/python/racing.c), or, with --clock, how long eight equal pieces of work took
(logarithms), which hangs on the machine more than any training does. Nothing distinguishes two arms in it, so labels are given
afterwards: of the same 12 runs in time, six are the baseline's, in the fixed order of plans before
turns were drawn, in drawn orders as ablate/ablate_plan.c has them (two of each, then four of each),
and in orders drawn from all. Each labelling is judged by all 924 relabelings at alpha = 1 %: the
test of determinism/statistics.h, computed here by numpy. --check holds that against the program: the
same runs are given to twinstep.ablate. Between two runs pass up to 0.05 s, as a process takes to
start. With --load so many processes count beside it, which all begin and stop at moments drawn from
0.1 to 3 s."""
import argparse
import contextlib
import ctypes
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
EACH = 6
ROWS, OUT, IN = 12, 16, 16
FIXED = [arm for i in range(1, EACH + 1) for arm in ((0, 1) if i % 2 else (1, 0))]
MASKS = numpy.array([[i in chosen for i in range(2 * EACH)]
                     for chosen in itertools.combinations(range(2 * EACH), EACH)], float)


def racing(folder):
    """One run: its weights, as f64."""
    library = pathlib.Path(folder, "libracing.so")
    subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-pthread", "-o", library,
                    ROOT / "tests/python/racing.c"], check=True)
    call = ctypes.CDLL(str(library)).weight_gradient
    call.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t] * 3 + [ctypes.c_int]
    draw = numpy.random.default_rng(7)
    first = draw.standard_normal((OUT, IN), "f4") / 4
    batches = [(draw.standard_normal((ROWS, IN), "f4"), draw.standard_normal((ROWS, OUT), "f4")) for _ in range(1)]

    def run():
        weights = first.copy()
        for x, y in batches:
            dy = numpy.ascontiguousarray((x @ weights.T - y) / ROWS)
            dw = numpy.empty_like(weights)
            if call(dy.ctypes.data, x.ctypes.data, dw.ctypes.data, ROWS, OUT, IN, 0):
                raise RuntimeError("no threads")
            weights -= numpy.float32(0.1) * dw
        return weights.astype("f8").ravel()
    return run


def clock():
    """One run: how long eight equal pieces of work took."""
    numbers = numpy.ones(20_000)
    marks = [time.perf_counter()]
    for _ in range(8):
        for _ in range(5):
            numpy.sqrt(numbers).sum()
        marks.append(time.perf_counter())
    return numpy.log(numpy.diff(marks))


@contextlib.contextmanager
def load(count):
    """Lets `count` processes count, and stop, together, at moments that nobody knows."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    ended = threading.Event()

    def switch():
        draw, on = random.Random(7), True
        while not ended.wait(draw.uniform(0.1, 3.0)):
            on = not on
            for other in others:
                other.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for other in others:
            other.kill()
            other.wait()


def chance(runs, labels):
    """p of the labels: the share of relabelings whose energy distance is as large."""
    points = numpy.array(runs)
    distances = numpy.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))

    def energy(one):
        other = 1 - one
        between = numpy.einsum("mi,ij,mj->m", one, distances, other)
        within = (numpy.einsum("mi,ij,mj->m", one, distances, one)
                  + numpy.einsum("mi,ij,mj->m", other, distances, other))
        return (2 * between - within) / EACH ** 2
    all_of = energy(MASKS)
    mine = energy(numpy.array([labels], float))[0]
    return float((all_of >= mine - distances.sum() * 2.0 ** -40).mean())


def drawn(draw):
    """Two runs of each arm in any order, then four of each in any order."""
    ends = []
    for each in (2, EACH - 2):
        part = [0, 1] * each
        draw.shuffle(part)
        ends += part
    return ends


def by_program(runs, labels):
    """p of the same runs and labels by twinstep.ablate."""
    import twinstep
    of = {arm: iter([r for r, label in zip(runs, labels) if label == arm]) for arm in (0, 1)}
    seen = []

    def run(arm):
        seen.append(arm)
        return {"w": runs[0] if len(seen) == 1 else next(of[arm])}     # the first call shows what is left
    return twinstep.ablate(run, {"arm": (0, 1)}, noisy=EACH).raw["floor"]["p"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sequences", type=int)
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    draw, wait = random.Random(2 * asked.seed), random.Random(2 * asked.seed + 1)
    found = {"fixed turns": [], "two and two, then four and four, drawn": [], "six and six, drawn": []}
    loads, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        run = clock if asked.clock else racing(folder)
        with load(asked.load):
            for _ in range(asked.sequences):
                runs = []
                for _ in range(2 * EACH):
                    time.sleep(wait.uniform(0.0, 0.05))
                    runs.append(run())
                loads.append(os.getloadavg()[0])
                labels = {"fixed turns": FIXED, "two and two, then four and four, drawn": drawn(draw),
                          "six and six, drawn": draw.sample(FIXED, 2 * EACH)}
                for name, some in labels.items():
                    found[name].append(chance(runs, some))
                if asked.check and any(r.tobytes() != runs[0].tobytes() for r in runs):
                    for name, some in labels.items():
                        said = by_program(runs, some)
                        if said is not None:        # None where two of each arm were equal
                            compared += 1
                            assert abs(said - found[name][-1]) < 1e-12, (name, said, found[name][-1])
    if asked.check:
        print(f"{compared} p were those of the program")
    for name, chances in found.items():
        print(f"| {name} | {asked.load} | {min(loads):.0f} to {max(loads):.0f} | {len(chances)} | "
              + " | ".join(str(sum(p <= most for p in chances)) for most in (0.01, 0.05, 0.1, 0.5)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
