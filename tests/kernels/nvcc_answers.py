#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks made-up compilers what cmake/nvcc.cmake asks nvcc: a missing header of cuBLAS must end the
configuration with the names of the packages, and an architecture that nvcc does not know must end
it with the list of those that it knows. Of the code that nvcc is told to make, a device of each
capability behind the first architecture must be able to run some. The made-up nvcc preprocesses
with the C compiler."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVCC = """#!/bin/sh
case $1 in
--list-gpu-arch) printf 'compute_%s\\n' {known} ;;
-E) exec {cc} -E -x c -nostdinc -I{headers} "$2" ;;
esac
"""
# compute_90 is the newest of CUDA 12.4; 12.8 lists 100 and 120 beside it.
OLD, WITH_BLACKWELL = "75 80 90", "75 80 86 90 100 103 120"
BOTH = ("cublas_v2.h", "cublasLt.h")
# Those of devices that there are, by NVIDIA's table of compute capabilities; 87 is a Tegra.
CAPABILITIES = (80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
TEGRA = (87,)
# (what nvcc lists, headers that it finds, TWINSTEP_CUDA_ARCHITECTURES), (exit status, text)
CASES = (
    ((WITH_BLACKWELL, BOTH, "auto"), (0, "code for 80;90;100;120")),
    ((OLD, BOTH, "auto"), (0, "code for 80;90 told")),
    ((WITH_BLACKWELL, BOTH, "100;90"), (0, "code for 90;100 told")),
    ((WITH_BLACKWELL, BOTH, "120;80"), (0, "code for 80;120 told")),
    ((OLD, BOTH, "90;100"), (1, "(75, 80, 90), got 100")),
    ((OLD, BOTH, "hopper"), (1, "got hopper")),
    ((OLD, (), "auto"), (1, "libcublas-dev-13-0")),
    ((OLD, BOTH[:1], "auto"), (1, "cublasLt.h) where")),
    ((OLD, BOTH[1:], "auto"), (1, "needed at run time only")),
    (("", BOTH, "auto"), (1, "expected a list of architectures")),
)


def has_code(capability, machine, ptx):
    """Tells whether a device runs one of the architectures of `machine`, which is so for later devices
    of the same first digit and for no Tegra but its own, or compiles one of `ptx`."""
    exact = capability in TEGRA
    return any(capability == own or (not exact and capability // 10 == own // 10 and capability > own)
               for own in machine) or any(own <= capability for own in ptx)


def lacking(said):
    """Returns the capabilities behind the first architecture for which there is no code."""
    machine, ptx = ([int(number) for number in re.findall(rf"code={word}_(\d+)", said)]
                    for word in ("sm", "compute"))
    return [each for each in CAPABILITIES if each >= min(machine) and not has_code(each, machine, ptx)]


def ask(arguments, case, folder):
    known, headers, architectures = case
    (folder / "include").mkdir()
    for name in headers:
        (folder / "include" / name).touch()
    nvcc = folder / "nvcc"
    nvcc.write_text(NVCC.format(known=known, cc=arguments.cc, headers=folder / "include"))
    nvcc.chmod(0o755)
    return subprocess.run(
        [arguments.cmake, f"-DNVCC={nvcc}", f"-DFOLDER={folder}",
         f"-DARCHITECTURES={architectures}", "-P", str(ROOT / "cmake/nvcc.cmake")],
        capture_output=True, text=True, env={**os.environ, "CPATH": ""})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc")
    arguments = parser.parse_args()
    wrong = 0
    for case, (status, text) in CASES:
        with tempfile.TemporaryDirectory() as name:
            done = ask(arguments, case, pathlib.Path(name))
        said = " ".join(done.stderr.split()) + "\n"  # CMake breaks its lines
        if done.returncode != status or text not in said:
            print(f"{case}: expected {status}, {text!r}; got {done.returncode}, {said}")
            wrong += 1
        elif status == 0 and lacking(said):
            print(f"{case}: no code for devices of {lacking(said)}: {said}")
            wrong += 1
    print(f"{len(CASES)} made-up compilers, {wrong} answers wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
