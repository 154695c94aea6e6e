#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles tests/kernels/curand.cu and runs it, on the host or, with --device, on a device: it
compares cuRAND's device functions with ours. Skipped (77) without nvcc, cuRAND's headers or a
device."""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def has_device():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 \
        and count.value > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--device", action="store_true")
    arguments = parser.parse_args()
    if arguments.nvcc in ("", "NVCC-NOTFOUND"):
        print("no nvcc: skipped")
        return 77
    if arguments.device and not has_device():
        print("no device: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "curand"
        done = subprocess.run(
            [arguments.nvcc, "-std=c++20", "-O1", "-gencode", "arch=compute_80,code=compute_80",
             "-I", str(ROOT), str(ROOT / "tests/kernels/curand.cu"), "-o", str(program)],
            capture_output=True, text=True)
        if "curand_kernel.h: No such file" in done.stderr:
            print("the toolkit lacks cuRAND's headers: skipped")
            return 77
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            return 1
        return subprocess.run([program, "device" if arguments.device else "host"]).returncode


if __name__ == "__main__":
    sys.exit(main())
