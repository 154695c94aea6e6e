#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles tests/kernels/cublas_host.cpp, which holds kernels/cuda/library.cu, and a made-up cuBLAS
that multiplies in the simplest way, and runs them on the host. Skipped (77) without nvcc or
cuBLAS's headers."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/kernels"


def compiled(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default="")
    nvcc = parser.parse_args().nvcc
    if nvcc in ("", "NVCC-NOTFOUND"):
        print("no nvcc: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        fake, program = (pathlib.Path(folder) / name for name in ("libcublas.so.13", "cublas_host"))
        both = [nvcc, "-cudart", "none"]
        done = compiled(both + ["-shared", "-Xcompiler", "-fPIC", "-I", str(ROOT),
                                str(HERE / "cublas_fake.c"), "-o", str(fake)])
        if "cublas_v2.h: No such file" in done.stderr:
            print("the toolkit lacks cuBLAS's headers: skipped")
            return 77
        if done.returncode != 0:
            return 1
        for name in ("libcublasLt.so.13", "libcublas.so.12", "libcublasLt.so.12"):
            os.symlink(fake, pathlib.Path(folder) / name)
        done = compiled(both + ["-std=c++20", "-O0", "-I", str(ROOT), "-x", "c++",
                                str(HERE / "cublas_host.cpp"), "-Xlinker", "--export-dynamic",
                                "-ldl", "-o", str(program)])
        if done.returncode != 0:
            return 1
        return subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": folder}).returncode


if __name__ == "__main__":
    sys.exit(main())
