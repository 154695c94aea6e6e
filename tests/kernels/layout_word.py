#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BACKEND_LAYOUT (cmake/backend_layout.cmake) must change with every header that a backend's module
and the program both read. Each of these headers, as the compiler lists them, is changed by one
byte in a copy of the tree, and the number must become another one; the same headers must give
the same number.

usage: layout_word.py CMAKE CC"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "determinism", "kernels")


def read_by_both(compiler):
    """Returns the headers outside of kernels/cuda/ and tests/, since the program does not read
    those inside."""
    units = (line.split()[0] for line in (ROOT / "kernels/cuda/units.txt").read_text().splitlines())
    sources = ["tests/shim/shim_module.c",
               *(f"kernels/cuda/{name}.cu" for name in units if name != "#")]
    flags = ["-std=c11", "-include", "tests/shim/shim_port.h", "-DTWINSTEP_VARIANT=f32_f32_shim", "-DTWINSTEP_CARRIER_f32=1",
             "-DTWINSTEP_ACCUMULATOR_f32=1", "-DBACKEND_WORD=shim", "-DBACKEND_IS_shim=1",
             "-DBACKEND_LAYOUT=1", "-I.", "-x", "c", "-MM", "-MG"]
    listed = subprocess.run([compiler, *flags, *sources], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    words = {word for word in listed.split() if word.endswith((".h", ".inc"))}
    return sorted(word for word in words if not word.startswith(("kernels/cuda/", "tests/")) and "/" in word)


def layout_of(cmake, tree):
    out = tree / "word.h"
    subprocess.run([cmake, f"-DSOURCE={tree}", f"-DOUTPUT={out}", "-P",
                    str(ROOT / "cmake/backend_layout.cmake")], check=True)
    return out.read_text()


def main():
    cmake, compiler = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name in FOLDERS:
            (tree / name).mkdir()
            for header in (*ROOT.glob(f"{name}/*.h"), *ROOT.glob(f"{name}/*.inc")):
                shutil.copy(header, tree / name)
        whole = layout_of(cmake, tree)
        headers = read_by_both(compiler)
        unseen = []
        for header in headers:
            text = (tree / header).read_bytes()
            (tree / header).write_bytes(text[:-2] + b" " + text[-1:])
            if layout_of(cmake, tree) == whole:
                unseen.append(header)
            (tree / header).write_bytes(text)
        same = layout_of(cmake, tree) == whole
    print(f"{len(headers)} headers, {len(unseen)} unseen: {' '.join(unseen)}")
    return int(bool(unseen) or not same or len(headers) < 20)


if __name__ == "__main__":
    sys.exit(main())
