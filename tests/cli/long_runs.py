#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a pair of the smallest model for many updates: memory must not grow with their number.

    long_runs.py BINARY [--updates N]

Peak memory (ru_maxrss of the process) of `run`, also with --resume, `compare`, `attribute`,
`recover`, `report`, `bisect`, `certify` and `replay` at N/4 and at N updates may differ by BOUND bytes for each
update between and by the blocks of rows that are held, and the file must grow by as many bytes an
update from N/4 to N/2 as from there to N. Before rows were read when they are asked for, `run` kept
4.8 kB of each update, `compare` 38 kB, the others 8 or 9 kB. With --updates 100000 `compare` must
stay below 150 MiB, too."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

SCENARIO = """twinstep: 1
name: long
attribution: {twin: false}
common:
  task: sft
  model: {layers: 1, hidden: 8, heads: 1, mlp: 8, vocab: 16}
  batch: {size: 1, micro: 1}
  data: {text: rows.jsonl}
  numerics: {threads: 1}
arms:
  baseline: {}
  test: {optimizer: {lr: 4e-7}}
"""
ROWS = [[(i * 5 + j * 3) % 15 + 1 for j in range(4)] for i in range(8)]
# Bytes for each update more. `run` holds HDF5's index of chunks; `compare` every column of two logs as 12 bytes.
# `report` draws 14 columns as f64, and writes what it draws.
BOUND = {"run": 1024, "compare": 1536, "attribute": 1024, "recover": 1536, "report": 1536,
         "bisect": 1024, "replay": 1024, "certify": 1024, "resume": 1536}
COMPARE_MOST = 150 << 20  # at 100,000 updates
SLACK = 1 << 20  # of the allocator
# Two blocks of rows of each run and pair that is looked at, which fill up as there are more updates.
BLOCKS = {"run": 0, "compare": 8 << 20, "attribute": 8 << 20, "recover": 8 << 20}
BLOCKS_OF_ALL = 24 << 20


class Bench:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        # The program would start itself anew without it.
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}

    def peak(self, exits, *command):
        """Runs a command that must end with one of `exits`; its peak memory in bytes."""
        with open(os.path.join(self.folder, "output"), "wb") as output:
            process = subprocess.Popen([self.binary, *command], cwd=self.folder, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in exits:
            with open(os.path.join(self.folder, "output"), encoding="utf-8") as output:
                sys.exit(f"{' '.join(command)}: exit status {process.returncode}: {output.read()}")
        return usage.ru_maxrss * 1024

    def train(self, updates):
        name = f"{updates}.h5"
        peaks = {"run": self.peak((1,), "run", "long.yaml", "--set", f"steps={updates}", "-o", name,
                                  "--quiet", "--reproducible")}
        size = os.path.getsize(os.path.join(self.folder, name))
        peaks["compare"] = self.peak((0,), "compare", name, name)
        peaks["attribute"] = self.peak((1,), "attribute", name)
        peaks["recover"] = self.peak((0,), "recover", name, "-o", "again.h5", "--overwrite")
        peaks["report"] = self.peak((0,), "report", name, "-o", "page.html", "--overwrite")
        peaks["certify"] = self.peak((0,), "certify", name)
        peaks["bisect"] = self.peak((1,), "bisect", name)
        peaks["replay"] = self.peak((0,), "replay", name)
        peaks["resume"] = self.peak((1,), "run", "long.yaml", "--set", f"steps={updates}", "-o", "on.h5",
                                    "--overwrite", "--quiet", "--reproducible", "--resume", name)
        return peaks, size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--updates", type=int, default=12000)
    options = parser.parse_args()
    few, half, many = options.updates // 4, options.updates // 2, options.updates
    wrong = []
    with tempfile.TemporaryDirectory(prefix="twinstep-long-") as folder:
        with open(os.path.join(folder, "long.yaml"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        with open(os.path.join(folder, "rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"input_ids": ids, "labels": ids}) + "\n" for ids in ROWS)
        bench = Bench(os.path.abspath(options.binary), folder)
        found = {updates: bench.train(updates) for updates in (few, half, many)}
    for verb, bound in BOUND.items():
        low, high = found[few][0][verb], found[many][0][verb]
        print(f"{verb}: {low / 2**20:.1f} MiB at {few} updates, {found[half][0][verb] / 2**20:.1f} at "
              f"{half}, {high / 2**20:.1f} at {many}: {(high - low) / (many - few):.0f} bytes an update")
        slack = SLACK + BLOCKS.get(verb, BLOCKS_OF_ALL)
        if high - low > bound * (many - few) + slack:
            wrong.append(f"{verb}: expected at most {bound} bytes an update")
    first = (found[half][1] - found[few][1]) / (half - few)
    second = (found[many][1] - found[half][1]) / (many - half)
    print(f"file: {first:.0f} bytes an update up to {half}, {second:.0f} up to {many}")
    # What HDF5 takes for a chunk and for its index it takes whole, which so few updates feel.
    if not 0.9 < second / first < 1.1:
        wrong.append("file: expected equal growth")
    if many >= 100000 and found[many][0]["compare"] > COMPARE_MOST:
        wrong.append(f"compare: expected at most {COMPARE_MOST >> 20} MiB")
    for line in wrong:
        print(f"long_runs.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
