#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles tests/kernels/launches.cu and runs it: launches that no device takes must be reported.
It needs nvcc but no device; skipped (77) without nvcc."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default="")
    arguments = parser.parse_args()
    if arguments.nvcc in ("", "NVCC-NOTFOUND"):
        print("no nvcc: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "launches"
        done = subprocess.run(
            [arguments.nvcc, "-std=c++20", "-O1", "-gencode", "arch=compute_80,code=compute_80",
             "-I", str(ROOT), str(ROOT / "tests/kernels/launches.cu"), "-o", str(program)],
            capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            return 1
        return subprocess.run([program]).returncode


if __name__ == "__main__":
    sys.exit(main())
