#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a device can start every kernel of twinstep_cuda.so: the registers of a block's
threads (64 Ki an SM, given to warps in units of 256), its threads (those that its launch bounds
promise), and its shared memory (99 KiB for its own and what a launch asks for, which is what every
device of the architectures gives: LIMITS_SHARED).

What a kernel uses is read by cuobjdump from the built module, for each architecture. How it is
launched is read from the source: the C compiler expands every LAUNCH, and its arguments are
counted. Both tools are needed, and a module no older than the kernels, but no device; skipped (77)
without. `--planted` breaks each rule, and needs nothing."""
import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

import built_module

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTERS, WARP_UNIT, WARP, THREADS, SHARED = 65536, 256, 32, 1024, 99 << 10
# bytes of a block that cuobjdump counts and are the system's
RESERVED = {"sm_80": 0, "sm_90": 1024, "sm_100": 1024, "sm_120": 1024}
HEAD_MAX = 128  # TENSOR_HEAD_MAX: the widest head, where shared memory hangs on it
BOUNDED = re.compile(r"^(?:KERNEL_BY|STAGED)\((\w+), [^,]+, (\w+), ", re.M)
FUNCTION = re.compile(r"^ Function _Z(\d+)(\w+):$")
USED = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")

Launch = collections.namedtuple("Launch", "threads shared bound")  # the most of each; bound: or 0


def call_of(text, start):
    """Returns the arguments of a call whose bracket opens at `start`."""
    depth, parts = 0, [""]
    for letter in text[start + 1:]:
        if letter == ")" and depth == 0:
            return parts
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    raise ValueError("a call without an end")


def count(arguments, source, pair):
    """Returns {kernel: Launch} of one unit: what the compiler makes of its launches' arguments."""
    carrier, accumulator = pair.split("_")
    bounds = {name: threads for path in sorted((ROOT / "kernels/cuda").glob("*.[ch]*"))
              for name, threads in BOUNDED.findall(path.read_text())}
    unit = f'#include "kernels/cuda/{source}.cu"\n' + "".join(
        f"bounded({name}, {threads})\n" for name, threads in bounds.items())
    done = subprocess.run(
        [arguments.cc, "-E", "-P", "-I", str(ROOT), "-include",
         str(ROOT / "tests/shim/shim_port.h"), f"-DTWINSTEP_VARIANT={pair}_x",
         f"-DTWINSTEP_CARRIER_{carrier}=1", f"-DTWINSTEP_ACCUMULATOR_{accumulator}=1", "-x", "c",
         "-"], input=unit, capture_output=True, text=True, check=True)
    written = done.stdout
    local = re.search(r"const size_t bytes = ([^;]+);", written)
    lines, launched = [], set()
    for found in re.finditer(r"\bshim_launch(\()\"(\w+)\"", written):
        _, _, _, threads, shared, *_ = call_of(written, found.start(1))
        launched.add(found.group(2))
        if re.fullmatch(r"\s*\(size_t\)\(bytes\)", shared):
            shared = local.group(1)
        lines.append(f'    printf("{found.group(2)} %zu %zu 0\\n", (size_t)({threads}), '
                     f"(size_t)({shared}));")
    for found in re.finditer(r"\bbounded(\()(\w+), ", written):
        threads = call_of(written, found.start(1))[1]
        if found.group(2) in launched:
            lines.append(f'    printf("{found.group(2)} 0 0 %zu\\n", (size_t)({threads}));')
    return tally(run_counts(arguments, lines, {"f32": "float", "f64": "double"}[accumulator]))


def run_counts(arguments, lines, accumulator):
    program = "\n".join(
        ["#include <stdint.h>", "#include <stdio.h>", f"typedef {accumulator} accumulator;",
         "struct job { size_t D; };", "int main(void) {",
         f"    const struct job given = {{{HEAD_MAX}}}, *const job = &given;", "    (void)job;",
         *lines, "    return 0;", "}", ""])
    with tempfile.TemporaryDirectory() as folder:
        built = pathlib.Path(folder) / "count"
        subprocess.run([arguments.cc, "-x", "c", "-", "-o", str(built)], input=program, text=True,
                       check=True)
        return subprocess.run([str(built)], capture_output=True, text=True, check=True).stdout


def tally(text):
    launches = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        before = launches.get(name, Launch(0, 0, 0))
        launches[name] = Launch(*(max(int(n), b) for n, b in zip(numbers, before)))
    return launches


def used(text):
    """Returns [(architecture, kernel, registers, shared memory of its own)] as cuobjdump prints
    them."""
    rows, architecture, name = [], "", ""
    for line in text.splitlines():
        if line.startswith("arch = "):
            architecture = line.split()[-1]
        found = FUNCTION.match(line)
        if found:
            name = found.group(2)[:int(found.group(1))]
        found = USED.search(line)
        if found and architecture in RESERVED:
            rows.append((architecture, name, int(found.group(1)),
                         int(found.group(3)) - RESERVED[architecture]))
    return rows


def registers_of(threads, registers):
    """Returns the registers of a block: each warp has a multiple of 256 of them."""
    warps = -(-threads // WARP)
    return warps * -(-registers * WARP // WARP_UNIT) * WARP_UNIT


def judge(launches, rows):
    found = []
    for architecture, name, registers, shared in rows:
        launch = launches.get(name)
        if launch is None or launch.threads == 0:
            found.append(f"{architecture} {name}: nobody launches it")
            continue
        block = registers_of(launch.threads, registers)
        if launch.threads > THREADS:
            found.append(f"{architecture} {name}: {launch.threads} threads of a block")
        if block > REGISTERS:
            found.append(f"{architecture} {name}: {launch.threads} threads of {registers} registers")
        if launch.bound != 0 and launch.threads > launch.bound:
            found.append(f"{architecture} {name}: {launch.threads} threads, its bound is {launch.bound}")
        if shared + launch.shared > SHARED:
            found.append(f"{architecture} {name}: {shared} + {launch.shared} bytes of shared memory")
    for architecture in sorted({where for where, *_ in rows}):
        there = {name for where, name, _, _ in rows if where == architecture}
        found += [f"{architecture} {name}: not in the module" for name in sorted(launches.keys() - there)]
    return found


def units():
    """Returns (source, number pair) of each file of the module that has kernels."""
    for line in (ROOT / "kernels/cuda/units.txt").read_text().splitlines():
        source, *pairs = line.split()
        if source != "#" and pairs != ["-"]:
            yield from ((source, pair) for pair in pairs)


def check(arguments, modules):
    launches = {}
    for source, pair in units():
        for name, launch in count(arguments, source, pair).items():
            before = launches.get(name, Launch(0, 0, 0))
            launches[name] = Launch(*map(max, launch, before))
    done = subprocess.run([arguments.cuobjdump, "--dump-resource-usage", str(modules[0])],
                          capture_output=True, text=True, check=True)
    rows = used(done.stdout)
    found = judge(launches, rows)
    most = max(rows, key=lambda row: registers_of(launches[row[1]].threads, row[2])
               if row[1] in launches else 0)
    print(f"{len(rows)} kernels, {len(launches)} launched; most registers of a block: {most[1]} "
          f"({most[0]}), {registers_of(launches[most[1]].threads, most[2])} of {REGISTERS}")
    for text in found:
        print("   ", text)
    return len(found) + (len(rows) < 150) + (len(launches) < 50)


def both(name, registers, shared):
    return [(architecture, name, registers, shared) for architecture in RESERVED]


PLANTED = (
    ({"k": Launch(256, 0, 0)}, both("k", 255, 0), None),  # 65536: just fits
    ({"k": Launch(256, 0, 256)}, both("k", 256, 1024), None),
    ({"k": Launch(288, 0, 0)}, both("k", 255, 0), "288 threads of 255 registers"),
    ({"k": Launch(1024, 0, 0)}, both("k", 65, 0), "1024 threads of 65 registers"),
    ({"k": Launch(1056, 0, 0)}, both("k", 8, 0), "1056 threads of a block"),
    ({"k": Launch(256, 0, 128)}, both("k", 32, 0), "its bound is 128"),
    ({"k": Launch(256, 99 << 10, 0)}, both("k", 32, 4), "4 + 101376 bytes"),
    ({}, both("k", 32, 0), "nobody launches it"),
    ({"k": Launch(256, 0, 0), "l": Launch(32, 0, 0)}, both("k", 32, 0), "l: not in the module"),
)


def plant():
    missed = 0
    for launches, rows, text in PLANTED:
        found = judge(launches, rows)
        hit = not found if text is None else any(text in line for line in found)
        print("found " if hit else "MISSED", text, found)
        missed += not hit
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    built_module.run(parser, check, plant)


if __name__ == "__main__":
    main()
