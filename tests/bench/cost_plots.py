#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what grows with a training's size and writes docs/measurements/cost.md and cost.svg.

    cost_plots.py --build BUILD [--rounds N] [--only AXIS]... [--write FOLDER]

BUILD is a build folder with bin/twinstep and bin/bench_train. Along each axis one number of a small
model changes and all others stay. A round is every point of every axis once, and the next round has
them in the opposite order, so that what else the machine does reaches all of them; printed are the
median of the rounds, the least and the most. Of layers, width, length, vocabulary and batch it is
the time of an update, without records and with all that `twinstep run` records; of updates,
factors and scenarios the time of a whole command, from its start to its end. The growth is the
exponent between two neighbouring points: 1 is twice the time for twice the size. --write makes the
page and the figure in FOLDER (docs/measurements); without it the page goes to stdout and nothing is
drawn. Needs matplotlib for the figure."""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

BASE = {"layers": 2, "hidden": 128, "length": 128, "vocab": 2048, "batch": 4}
UPDATES = 6         # of which bench_train times all but the first
HEAD, WIDER = 32, 2.6875        # channels of a head; of the MLP, for each of the model

# axis: what it is called, its points
MODEL_AXES = {"layers": ("layers", (1, 2, 4, 8, 16)),
              "width": ("hidden", (64, 128, 256, 512)),
              "length": ("length", (32, 64, 128, 256, 512, 1024)),
              "vocabulary": ("vocab", (512, 2048, 8192, 32768)),
              "batch": ("batch", (1, 2, 4, 8, 16))}
# whole commands: seconds
COMMAND_AXES = {"updates": (5, 10, 20, 40, 80), "factors": (0, 1, 2, 3, 4),
                "scenarios": (1, 2, 4, 8, 16)}
AXES = {**{name: points for name, (_, points) in MODEL_AXES.items()}, **COMMAND_AXES}
ROWS = {"--one": "nothing recorded", "--recorded": "recorded"}
SECONDS = "whole command"
FACTORS = (("optimizer", "{lr: 0.0011}"), ("loss", "{divisor: sum-of-means}"),
           ("clip", "{max_norm: 0.1}"), ("data", "{shuffle: false}"))

SCENARIO = """twinstep: 1
name: {name}
steps: {updates}
common:
  task: sft
  data: {{text: builtin:devil, max_len: 640, shuffle: true}}
  batch: {{size: 4, micro: 2}}
  optimizer: {{lr: 0.001}}
arms:
  baseline: {{}}
  test: {{{test}}}
{expect}"""


def run(words, **more):
    """The output of a command that has a result; its seconds by the clock."""
    began = time.monotonic()
    done = subprocess.run([str(w) for w in words], check=False, text=True, capture_output=True,
                          **more)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"cost_plots.py: {' '.join(map(str, words))}\nended with status "
                 f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - began


class Machine:
    """A build, and a folder for its inputs and outputs."""

    def __init__(self, build, folder):
        self.program = (build / "bin/twinstep").resolve()
        self.trainer = (build / "bin/bench_train").resolve()
        self.folder = folder

    def rows(self, vocab, length, batch):
        """Rows of token ids, all of one length, so that nothing is padded."""
        path = self.folder / f"rows-{vocab}-{length}-{batch}.jsonl"
        if not path.exists():
            draw = random.Random(17)
            rows = [[draw.randrange(vocab) for _ in range(length)] for _ in range(batch)]
            path.write_text("".join(json.dumps({"input_ids": r, "labels": r}) + "\n" for r in rows))
        return path

    def update(self, how, **shape):
        """Milliseconds of an update."""
        s = {**BASE, **shape}
        words = [f"task=sft", f"data.text={self.rows(s['vocab'], s['length'], s['batch'])}",
                 f"data.max_len={s['length']}", f"batch.size={s['batch']}",
                 f"model.layers={s['layers']}", f"model.hidden={s['hidden']}",
                 f"model.heads={s['hidden'] // HEAD}", f"model.mlp={int(s['hidden'] * WIDER)}",
                 f"model.vocab={s['vocab']}"]
        out, _ = run([self.trainer, how, "cost", UPDATES, 0, 0, *(f"common.{w}" for w in words)],
                     env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        return 1000 * float(out.split("\t")[3])

    def scenario(self, name, updates, factors, expect=""):
        """The path of a scenario whose arms differ in so many things."""
        path = self.folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(SCENARIO.format(name=path.stem, updates=updates, expect=expect, test=", ".join(
            f"{key}: {value}" for key, value in FACTORS[:factors])))
        return path

    def pair(self, updates, factors):
        """Seconds of `twinstep run`."""
        path = self.scenario("pair", updates, factors)
        return run([self.program, "run", path, "--quiet", "--overwrite", "-o",
                    self.folder / "pair.h5"])[1]

    def suite(self, count):
        """Seconds of `twinstep suite`."""
        for i in range(count):
            self.scenario(f"suite-{count}/s{i}", 10, 1, "expect: {verdict: outside-floor}\n")
        return run([self.program, "suite", self.folder / f"suite-{count}"])[1]

    def measure(self, axis, point):
        """The figures of a point, by row."""
        if axis in MODEL_AXES:
            return {row: self.update(how, **{MODEL_AXES[axis][0]: point})
                    for how, row in ROWS.items()}
        if axis == "scenarios":
            return {SECONDS: self.suite(point)}
        return {SECONDS: self.pair(point, 1) if axis == "updates" else self.pair(20, point)}


def rounds_of(machine, axes, rounds):
    """All figures: {axis: {point: {row: [one for each round]}}}."""
    places = [(axis, point) for axis in axes for point in AXES[axis]]
    found = {axis: {point: {} for point in AXES[axis]} for axis in axes}
    for n in range(rounds):
        for axis, point in places if n % 2 == 0 else reversed(places):
            for row, figure in machine.measure(axis, point).items():
                found[axis][point].setdefault(row, []).append(figure)
            print(f"round {n + 1} of {rounds}: {axis} {point}", file=sys.stderr)
    return found


def growth(before, now):
    """The exponent between two points (size, figure); none where a size is 0."""
    (a, x), (b, y) = before, now
    return "" if a == 0 else f"{math.log(y / x) / math.log(b / a):.2f}"


def table(axis, points):
    """The lines of one axis."""
    unit = "ms an update" if axis in MODEL_AXES else "s"
    rows = list(next(iter(points.values())))
    lines = [f"| {axis} | " + " | ".join(f"{row}, {unit} | growth" for row in rows) + " |",
             "|---:|" + "---:|---:|" * len(rows)]
    before = {}
    for point, figures in points.items():
        cells = []
        for row in rows:
            middle = statistics.median(figures[row])
            cells += [f"{middle:.3g} ({min(figures[row]):.3g} to {max(figures[row]):.3g})",
                      growth(before[row], (point, middle)) if row in before else ""]
            before[row] = point, middle
        lines.append(f"| {point} | " + " | ".join(cells) + " |")
    return lines


def draw(found, path):
    """The figure: a panel for each axis, both scales logarithmic where no size is 0."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "twinstep", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot
    across = min(4, len(found))
    figure, panels = pyplot.subplots(-(-len(found) // across), across, squeeze=False,
                                     figsize=(2.6 * across, 2.4 * -(-len(found) // across)))
    for panel in panels.flat[len(found):]:
        panel.set_visible(False)
    for panel, (axis, points) in zip(panels.flat, found.items()):
        for row in next(iter(points.values())):
            middles = [statistics.median(figures[row]) for figures in points.values()]
            least = [m - min(f[row]) for m, f in zip(middles, points.values())]
            most = [max(f[row]) - m for m, f in zip(middles, points.values())]
            panel.errorbar(list(points), middles, [least, most], marker=".", label=row, lw=1)
        if min(points) > 0:
            panel.set_xscale("log", base=2)
            panel.set_yscale("log", base=2)
        for scale in (panel.xaxis, panel.yaxis):
            scale.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_xlabel(axis)
        panel.set_ylabel("ms an update" if axis in MODEL_AXES else "s, whole command")
        panel.grid(alpha=0.3)
    panels.flat[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def page(found, machine, command, rounds):
    """The text of the page."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    commit = run(["git", "rev-parse", "--short=8", "HEAD"])[0].strip()
    env = json.loads(run([machine.program, "env", "--json"])[0])
    shape = ", ".join(f"{key} {value}" for key, value in BASE.items())
    lines = [
        "# What a training costs, by its size", "",
        f"Written by `{command}`. What is measured, and in which order, its first lines say. Medians "
        f"of {rounds} rounds, the least and the most in parentheses. SFT in f32, mode `invariant`, "
        f"one thread a run; where nothing else is said {shape}. Growth is the exponent from the "
        "point above: 1 is twice the time for twice the size.", "",
        f"{datetime.date.today()}, commit {commit}, {cpu}, kernels {env['isa']}, "
        f"{env['usable_cores']} cores, {platform.system()} {platform.release()}, {env['compiler']}.",
        "", "![Cost by size](cost.svg)", ""]
    for axis, points in found.items():
        lines += [f"## {axis.capitalize()}", "", *table(axis, points), ""]
    return "\n".join(lines)


def main():
    """Measures, prints, draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=AXES, help="this axis; may be repeated")
    parser.add_argument("--write", type=pathlib.Path)
    asked = parser.parse_args()
    axes = asked.only or list(AXES)
    with tempfile.TemporaryDirectory() as name:
        machine = Machine(asked.build, pathlib.Path(name))
        found = rounds_of(machine, axes, asked.rounds)
        command = "tests/bench/cost_plots.py " + " ".join(sys.argv[1:])
        text = page(found, machine, command, asked.rounds)
    if asked.write is None:
        print(text)
        return 0
    (asked.write / "cost.md").write_text(text)
    draw(found, asked.write / "cost.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
