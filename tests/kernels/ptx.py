#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the PTX of the invariant kernels. What nvcc makes of kernels/cuda/ops.cu may hold no
approximate instruction, none that flushes subnormals, no fused product that the source does not
name, and no sum or product without a rounding of its own, which ptxas could fuse. When the
source's own fma is renamed to an undefined function, no fma may be left. The kernels as they are
are compiled for the older architecture, those with renamed fma for the newer one, so that
between them all pairs are read. Atomic instructions may stand only in kernels whose names hold
`atomic`. Tensor cores must be used in every kernel of kernels/cuda/tensor_attention.cu that has
operands, and in no other file's; their loads name shared memory. The files of the module that have no kernels are compiled, too.

It needs nvcc but no device; skipped (77) without nvcc. `--planted` compiles kernels that break each
rule, and passes when each is found."""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# {source: its number pairs}, as kernels/cuda/units.txt lists them.
UNITS = {source: pairs for source, *pairs in
         (line.split() for line in (ROOT / "kernels/cuda/units.txt").read_text().splitlines()
          if not line.startswith("#"))}
PAIRS = UNITS["ops"]
AS_THEY_ARE = (PAIRS[0], PAIRS[2])
RENAMED = (PAIRS[0], PAIRS[1])  # each kernel of both, and the wide tiles, which only one has
# The files beside ops.cu. Each of their kernels has a line of its own that begins with
# ...KERNEL(name, or is a row of a list in the file or in kernels/step.h: LIST(..._KERNEL).
SINGLE = tuple((source, pair) for source, pairs in UNITS.items() for pair in pairs
               if pair != "-" and source not in ("ops", "tensor_attention"))
HOST = tuple(source for source, pairs in UNITS.items() if pairs == ["-"])
KERNEL = re.compile(r"^\w*KERNEL\(\w+", re.M)
LISTED = re.compile(r"^(\w+)\(\w+_KERNEL\)$", re.M)
# Opcodes (the first word of a line) that no invariant kernel may hold. div, rcp and sqrt round once
# as .rn; a conversion to or from integers may have any rounding, one between floats .rn or none.
FORBIDDEN = (
    (re.compile(r"\.approx|\.full\b"), "an approximation"),
    (re.compile(r"^(ex2|lg2|sin|cos|tanh|rsqrt)\b"), "a function of the hardware"),
    (re.compile(r"\.ftz\b"), "flushes subnormals"),
    (re.compile(r"^(div|rcp|sqrt|add|sub|mul|fma)(\.(rz|rm|rp))\.f(32|64)"), "rounds otherwise"),
    (re.compile(r"^(div|rcp|sqrt|add|sub|mul)\.f(32|64)"), "has no rounding of its own"),
    (re.compile(r"^cvt\.(rz|rm|rp)(\.\w+)*\.(f32|f16|bf16|e4m3x2|e5m2x2)\.f(32|64)$"),
     "rounds otherwise"),
    (re.compile(r"^(mma|wmma|wgmma)\."), "is a tensor core's"),
)
ATOMIC = re.compile(r"^(atom|red)\.")
FUSED = re.compile(r"^(fma|mad)\.\w*\.?(rn\.)?f(32|64)|^fma\.")
OPCODE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s", re.M)
# .visible .entry NAME(  or  .func (results) NAME(
FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")

PLANTED = (
    ("*x = *x * x[1] + x[2];", ["--fmad=true"], "a fused product that the source does not name"),
    ("*x = *x / x[1];", ["--prec-div=false"], "an approximation"),
    ("*x = __fsqrt_rn(*x) + *x;", ["--ftz=true"], "flushes subnormals"),
    ("*x = __expf(*x);", [], "an approximation"),
    ("*x = __fadd_rz(*x, x[1]);", [], "rounds otherwise"),
    ("*x = *x - x[1];", ["--fmad=true"], "has no rounding of its own"),
    ('asm("{.reg .b16 h; cvt.rz.bf16.f32 h, %1; mov.b32 %0, {h, h};}" : "=f"(*x) : "f"(x[1]));',
     [], "rounds otherwise"),
    ("atomicAdd(x, x[1]);", [], "is atomic"),
    ("x[1] = atomicAdd(x, x[1]);", [], "is atomic"),
)
# This kernel stands beside each planted one and must be let through.
LET_THROUGH = "__global__ void planted_atomic(float *x) { atomicAdd(x, x[1]); }\n"


def compile_ptx(arguments, source, flags, extra, arch="compute_90"):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ptx"
        command = [arguments.nvcc, "-ptx", "-arch=" + arch, "-I", str(ROOT), *flags,
                   *extra, str(source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return out.read_text()


def compile_host(arguments, flags, source):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.nvcc, "-c", "-arch=compute_90", "-I", str(ROOT),
                   "-DBACKEND_LAYOUT=1", *flags, str(ROOT / f"kernels/cuda/{source}.cu"), "-o",
                   str(pathlib.Path(folder) / "out.o")]
        done = subprocess.run(command, capture_output=True, text=True)
    print(f"{source}.cu: {'compiles' if done.returncode == 0 else done.stderr}")
    return int(done.returncode != 0)


def opcodes(ptx):
    body = re.sub(r"([;{}])", r"\1\n", re.sub(r"//[^\n]*", "", ptx))  # asm has its own lines
    return OPCODE.findall(body)


def functions(ptx):
    """Returns (name, text) of each kernel and function; the body of one ends where the next begins."""
    starts = [(found.group(1), found.start()) for found in FUNCTION.finditer(ptx)]
    ends = [start for _, start in starts[1:]] + [len(ptx)]
    return [(name, ptx[start:end]) for (name, start), end in zip(starts, ends)]


def findings(ptx, named):
    """With `named` the source's own fused products stand there under their own name, and are
    allowed."""
    found = []
    for name, text in functions(ptx):
        for opcode in opcodes(text):
            found += [f"{opcode} {why} ({name})" for rule, why in FORBIDDEN if rule.search(opcode)]
            if ATOMIC.search(opcode) and "atomic" not in name:
                found.append(f"{opcode} is atomic ({name})")
            if not named and FUSED.search(opcode):
                found.append(f"{opcode} is a fused product that the source does not name ({name})")
    return found


def compile_pair(arguments, flags, pair, extra, source="ops", arch="compute_90"):
    carrier, accumulator = pair.split("_")
    defined = [f"-DTWINSTEP_VARIANT={pair}_cuda",
               f"-DTWINSTEP_CARRIER_{carrier}=1", f"-DTWINSTEP_ACCUMULATOR_{accumulator}=1"]
    return compile_ptx(arguments, ROOT / f"kernels/cuda/{source}.cu", flags, [*defined, *extra], arch)


def report(name, ptx, named):
    found = findings(ptx, named)
    fused = sum(bool(FUSED.search(opcode)) for opcode in opcodes(ptx))
    atomic = sum(bool(ATOMIC.search(opcode)) for opcode in opcodes(ptx))
    kernels = len(re.findall(r"\.entry\s", ptx))
    print(f"{name}: {kernels} kernels, {len(opcodes(ptx))} instructions, {fused} fma, "
          f"{atomic} atomics in kernels so named, {len(found)} findings")
    for text in sorted(set(found)):
        print("   ", text)
    return len(found) + (kernels < 22) + ((fused == 0) == named) + (atomic == 0)


def report_tensor(ptx):
    found = [text for text in findings(ptx, True)
             if "tensor core" not in text and not text.startswith("ex2.approx.ftz.f32 ")]
    kernels = [(name, text) for name, text in functions(ptx)
               if re.search(r"tensor_(forward|queries|dkv|atomic)_b?f16", name)]
    found += [f"no tensor core ({name})" for name, text in kernels
              if not any(opcode.startswith("mma.sync") for opcode in opcodes(text))]
    found += [f"no copy without a register ({name})" for name, text in kernels
              if not any(opcode.startswith("cp.async") for opcode in opcodes(text))]
    found += [f"{opcode} names no address space ({name})" for name, text in kernels
              for opcode in opcodes(text) if re.match(r"(ldmatrix)\.(?!.*\.shared\b)", opcode)]
    print(f"tensor_attention.cu: {len(kernels)} kernels with operands, {len(found)} findings")
    for text in sorted(set(found)):
        print("   ", text)
    return len(found) + (len(kernels) != 16)


def kernels_of(source):
    """How many kernels the source of a file names."""
    text = (ROOT / f"kernels/cuda/{source}.cu").read_text()
    lists = text + (ROOT / "kernels/step.h").read_text()
    rows = [re.search(rf"#define {name}\(ROW\)(.*\\\n(?:.*\\\n)*.*)", lists)[1].count("ROW(")
            for name in LISTED.findall(text)]
    return len(KERNEL.findall(text)) + sum(rows)


def report_single(source, pair, ptx):
    """The kernels' fma is renamed here, so that none may be left."""
    found = findings(ptx, False)
    kernels = kernels_of(source)
    entries = len(re.findall(r"\.entry\s", ptx))
    print(f"{source}.cu, {pair}: {entries} kernels, {len(opcodes(ptx))} instructions, "
          f"{len(found)} findings")
    for text in sorted(set(found)):
        print("   ", text)
    return len(found) + (entries != kernels or kernels == 0)


def check(arguments, flags):
    """Checks all pairs; those with renamed fma show that each fma is one of the source's."""
    renamed = ["-D__fmaf_rn=named_fma_f32", "-D__fma_rn=named_fma_f64"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        others = [pool.submit(compile_pair, arguments, flags, pair, renamed) for pair in RENAMED]
        made = list(pool.map(lambda pair: compile_pair(arguments, flags, pair, [],
                                                       arch="compute_80"), AS_THEY_ARE))
        tensor = pool.submit(compile_pair, arguments, flags, PAIRS[0], [], "tensor_attention")
        single = [pool.submit(compile_pair, arguments, flags, pair, renamed, source)
                  for source, pair in SINGLE]
        host = list(pool.map(lambda source: compile_host(arguments, flags, source), HOST))
    bad = sum(host) + sum(report(pair, ptx, True) for pair, ptx in zip(AS_THEY_ARE, made))
    bad += report_tensor(tensor.result())
    bad += sum(report_single(*row, ptx.result()) for row, ptx in zip(SINGLE, single))
    return bad + sum(report(pair + ", the source's fma renamed", ptx.result(), False)
                     for pair, ptx in zip(RENAMED, others))


def plant(arguments, flags):
    missed = 0
    for body, extra, why in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "planted.cu"
            source.write_text("__global__ void planted(float *x) { " + body + " }\n" + LET_THROUGH)
            changed = [flag for flag in flags
                       if not any(flag.split("=")[0] == e.split("=")[0] for e in extra)]
            found = findings(compile_ptx(arguments, source, changed, extra), False)
        hit = any(why in text for text in found) and not any("planted_atomic" in t for t in found)
        print(("found  " if hit else "MISSED ") + body, extra, sorted(set(found)))
        missed += not hit
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[])
    arguments = parser.parse_args()
    if arguments.nvcc in ("", "NVCC-NOTFOUND"):
        print("no nvcc: skipped")
        sys.exit(77)
    sys.exit(1 if (plant if arguments.planted else check)(arguments, arguments.flags) else 0)


if __name__ == "__main__":
    main()
