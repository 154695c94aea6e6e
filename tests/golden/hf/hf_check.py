# SPDX-License-Identifier: Apache-2.0
"""Makes the goldens again and compares them with those committed: python hf_check.py

The exit status is 0 where they agree, 1 where they do not, 77 where the libraries of
requirements.txt are missing. Inputs (configurations, weights, data, scenarios) must be the same
bytes. What the libraries computed may differ by the rounding of another CPU's kernels, within the
limits of tests/model/test_hf_parity.c; in bf16 a loss may be a few units in the last place off, and
weights are not compared."""

import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 1e-5
BF16 = 2.0 ** -6  # of a loss: four units in the last place


def installed():
    with open(os.path.join(HERE, "requirements.txt"), encoding="utf-8") as file:
        wanted = dict(line.split("==") for line in file.read().split())
    for name, version in wanted.items():
        try:
            if importlib.metadata.version(name).split("+")[0] != version:
                return False
        except importlib.metadata.PackageNotFoundError:
            return False
    return True


class Comparison:
    def __init__(self):
        self.wrong, self.same, self.other = [], 0, 0

    def expect(self, what, gap, limit):
        if not gap <= limit:
            self.wrong.append(f"{what}: {gap:g}, expected at most {limit:g}")

    def inputs(self, name, a, b):
        with open(a, "rb") as one, open(b, "rb") as two:
            if one.read() != two.read():
                self.wrong.append(f"{name}: other bytes")

    def lists(self, what, a, b, limit):
        """Returns the largest gap of numbers, or lists of them; above 1 it is relative."""
        if isinstance(a, list):
            if len(a) != len(b):
                self.wrong.append(f"{what}: {len(b)} entries, expected {len(a)}")
            for one, two in zip(a, b):
                self.lists(what, one, two, limit)
        else:
            self.expect(what, abs(a - b), limit * max(1, abs(a)))

    def logs(self, model, a, b):
        for group in ("batches", "runs"):
            for entry, values in a[group].items():
                for key, numbers in values.items():
                    if isinstance(numbers, str):
                        if numbers != b[group][entry][key]:
                            self.wrong.append(f"{model} {entry} {key}: {b[group][entry][key]}")
                        continue
                    limit = 0 if key in ("applied", "learning_rate") else LIMIT
                    if entry.endswith("bf16"):
                        if key != "loss":
                            continue
                        limit = BF16
                    self.lists(f"{model} {entry} {key}", numbers, b[group][entry][key], limit)

    def tensors(self, model, a, b, start):
        """Compares gradients by tensor, and weights by the distance that a run went."""
        gaps, ways = {}, {}
        if set(a) != set(b):
            self.wrong.append(f"{model}: other tensors")
            return
        for name in a:
            label, tensor = name.split("/", 1)
            if a[name].equal(b[name]):
                self.same += 1
            else:
                self.other += 1
            if label.endswith("bf16"):
                continue
            gap = (a[name].double() - b[name].double()).norm().item()
            if label in ("sft", "dpo"):
                self.expect(name, gap, LIMIT * max(a[name].double().norm().item(), 1e-6))
            else:
                gaps[label] = math.hypot(gaps.get(label, 0), gap)
                way = (a[name].double() - start[tensor].double()).norm().item()
                ways[label] = math.hypot(ways.get(label, 0), way)
        for label, gap in gaps.items():
            self.expect(f"{model} {label}: weights", gap, LIMIT * ways[label])


def compare(out):
    from safetensors.torch import load_file

    result = Comparison()
    for folder, _, files in os.walk(out):
        for file in files:
            name = os.path.relpath(os.path.join(folder, file), out)
            if not file.startswith("golden."):
                result.inputs(name, os.path.join(HERE, name), os.path.join(out, name))
    models = [name for name in sorted(os.listdir(out)) if os.path.isdir(os.path.join(out, name))]
    for model in models:
        logs = []
        for root in (HERE, out):
            with open(os.path.join(root, model, "golden.json"), encoding="utf-8") as file:
                logs.append(json.load(file))
        result.logs(model, *logs)
        file = os.path.join(model, "golden.safetensors")
        result.tensors(model, load_file(os.path.join(HERE, file)),
                       load_file(os.path.join(out, file)),
                       load_file(os.path.join(out, model, "model.safetensors")))
    return result, models


def main():
    if not installed():
        return 77
    with tempfile.TemporaryDirectory() as out:
        made = subprocess.run([sys.executable, os.path.join(HERE, "generate.py"), out],
                              capture_output=True, text=True)
        if made.returncode != 0:
            print(made.stderr[-2000:])
            return 1
        result, models = compare(out)
    for line in result.wrong:
        print(line)
    print(f"{len(models)} models: {result.same} tensors bit-equal, {result.other} not")
    return 1 if result.wrong or not models else 0


if __name__ == "__main__":
    sys.exit(main())
