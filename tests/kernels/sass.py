#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code of every kernel of the built module and compares what its speed hangs on
with tests/kernels/sass.txt: nothing may be worse than what stands there. No device is needed, and
no time is measured.

Of each kernel, for each architecture of the module: loads inside of loops of which ptxas does not
know the address space (LD in place of LDG or LDS; one that is outside of every loop costs a thread
once), and local memory (LDL and STL: spills, and arrays that no register holds). A kernel that the
table does not name has neither.

Of the kernels that multiply in f32 or on tensor cores (linear layers and attention) besides: loads
of a tensor core's matrix (LDSM), loads of 128 bits, copies to shared memory that no register waits
for (cp.async is LDGSTS; UBLKCP and UTMALDG are the bulk copies), and the per cent of products (HMMA
or FFMA) among the instructions of the hottest loop: of the loops that hold products the one inside
most others, and of several such the one with most products. Each of them must be in the table.

A loop is a branch backwards. Of a kernel that is compiled for several number pairs the worst
counts, but for the products in f32, which are counted by themselves.

cuobjdump reads the built module, which must be no older than the kernels; skipped (77) without.
`--write` prints the table of what it sees; `--planted` breaks each rule, and needs no tool."""
import argparse
import collections
import pathlib
import re
import subprocess

import built_module

TABLE = pathlib.Path(__file__).with_name("sass.txt")
MULTIPLIES = re.compile(r"(tensor_(forward|queries|dkv|atomic)|attention_|linear_)\w*$")
FUNCTION = re.compile(r"Function : _Z(\d+)(\w+)")
ARCHITECTURE = re.compile(r"^\s*code for (sm_\d+)")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
PRODUCTS = ("HMMA", "FFMA", "DFMA")  # a kernel has the first of these of which it has most
SHARE_SLACK = 1  # per cent: one counter more in a loop is no finding

# What is counted: whether more of it is worse, or less.
WORSE_WHEN_MORE = ("generic", "local")
WORSE_WHEN_LESS = ("ldsm", "wide", "copies", "share")
Counts = collections.namedtuple("Counts", WORSE_WHEN_MORE + WORSE_WHEN_LESS)
Memory = collections.namedtuple("Memory", WORSE_WHEN_MORE)  # of the kernels that do not multiply
GENERIC = r"LD(\.|$)"
OPCODES = {"local": r"(LDL|STL)\b", "ldsm": r"LDSM",
           "wide": r"LD[GS]\..*\b128\b", "copies": r"LDGSTS|UBLKCP|UTMALDG"}


def listings(lines):
    """Yields (architecture, kernel, [(address, opcode, operands)]) of what cuobjdump -sass prints."""
    architecture, name, code = "", "", []
    for line in lines:
        instruction = INSTRUCTION.match(line)
        if instruction:
            code.append((int(instruction[1], 16), instruction[2], instruction[3]))
            continue
        begins, where = FUNCTION.search(line), ARCHITECTURE.match(line)
        if (begins or where) and name:
            yield architecture, name, code
            name = ""
        if where:
            architecture = where[1]
        if begins:
            name, code = begins[2][:int(begins[1])], []
    if name:
        yield architecture, name, code


def loops(code):
    """Returns [(first, last)] of the loops: indices of a branch's target and of the branch."""
    places = {address: i for i, (address, _, _) in enumerate(code)}
    found = []
    for i, (_, opcode, operands) in enumerate(code):
        target = re.search(r"0x([0-9a-f]+)", operands) if opcode.startswith("BRA") else None
        first = places.get(int(target[1], 16)) if target else None
        if first is not None and first <= i:
            found.append((first, i))
    return found


def share_of(code, product):
    """Returns the per cent of products in the hottest loop; 0 where no loop has any."""
    at = [opcode.startswith(product) for _, opcode, _ in code]
    every = set(loops(code))
    hot = [(sum(a <= first and last <= b for a, b in every), sum(at[first:last + 1]),
            first - last) for first, last in every if any(at[first:last + 1])]
    if not hot:
        return 0
    _, made, length = max(hot)
    return 100 * made // (1 - length)


def generic_of(code):
    """Returns how many generic loads lie inside of loops."""
    inside = {i for first, last in loops(code) for i in range(first, last + 1)}
    return sum(bool(re.match(GENERIC, code[i][1])) for i in inside)


def count(code):
    """Returns (the opcode of the kernel's products or None, Counts)."""
    opcodes = [opcode for _, opcode, _ in code]
    made = {word: sum(opcode.startswith(word) for opcode in opcodes) for word in PRODUCTS}
    product = "HMMA" if made["HMMA"] else max(made, key=made.get)
    number = {name: sum(bool(re.match(pattern, opcode)) for opcode in opcodes)
              for name, pattern in OPCODES.items()}
    return (product if made[product] else None,
            Counts(generic=generic_of(code), **number, share=share_of(code, product)))


def seen_in(lines):
    """Returns {(architecture, kernel, kind): Counts or Memory}. The kind is Counts for kernels with
    products in f32 or on tensor cores, Memory for all others; a kernel of several number pairs may
    be of both."""
    seen = {}
    for architecture, name, code in listings(lines):
        product, counts = count(code)
        multiplies = MULTIPLIES.match(name) and not re.search(r"_(clear|round)$", name)
        if multiplies and product in ("HMMA", "FFMA"):
            seen[architecture, name, Counts] = counts
            continue
        key = architecture, name, Memory
        before = seen.get(key, Memory(0, 0))
        seen[key] = Memory(*(max(getattr(counts, field), getattr(before, field))
                             for field in Memory._fields))
    return seen


def read_table(text):
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    kinds = {len(kind._fields): kind for kind in (Counts, Memory)}
    return {(architecture, name, kinds[len(numbers)]): kinds[len(numbers)](*map(int, numbers))
            for architecture, name, *numbers in rows}


def write(seen):
    for kind in (Counts, Memory):
        print("# architecture kernel " + " ".join(kind._fields))
        for key in sorted(seen, key=lambda key: (int(key[0][3:]), key[1])):
            if key[2] is kind and (kind is Counts or any(seen[key])):
                print(*key[:2], *seen[key])


def judge(expected, seen):
    """Returns (what is worse, what is better), a line each."""
    worse, better = [], []
    architectures = {architecture for architecture, _, _ in seen}
    keys = seen.keys() | {key for key in expected if key[0] in architectures}
    for key in sorted(keys, key=lambda key: (key[0], key[1], key[2].__name__)):
        architecture, kernel, kind = key
        name = f"{architecture} {kernel}"
        if kind is Memory and (architecture, kernel, Counts) in seen:
            name += " with f64 sums"
        if key not in seen or (key not in expected and kind is Counts):
            worse.append(f"{name}: not in {'the table' if key in seen else 'the module'}")
            continue
        for field in kind._fields:
            now = getattr(seen[key], field)
            then = getattr(expected.get(key, Memory(0, 0)), field)
            slack = SHARE_SLACK if field == "share" else 0
            sign = 1 if field in WORSE_WHEN_MORE else -1
            if sign * (now - then) > slack:
                worse.append(f"{name}: {field} {then} -> {now}")
            elif sign * (now - then) < -slack:
                better.append(f"{name}: {field} {then} -> {now}")
    return worse, better


def check(arguments, modules):
    seen = {}
    for module in modules:
        done = subprocess.run([arguments.cuobjdump, "-sass", str(module)], capture_output=True,
                              text=True, check=True)
        seen.update(seen_in(done.stdout.splitlines()))
    if arguments.write:
        write(seen)
        return 0
    worse, better = judge(read_table(TABLE.read_text()), seen)
    architectures = {architecture for architecture, _, _ in seen}
    multiply = sum(kind is Counts for _, _, kind in seen)
    print(f"{len({key[:2] for key in seen})} kernels of {len(architectures)} architectures, "
          f"{multiply} that multiply, {len(worse)} findings")
    for text in worse:
        print("    worse:", text)
    for text in better:
        print("    better, so the table may say it:", text)
    return len(worse) + (multiply == 0)


# A listing as cuobjdump prints it: a loop of four instructions in one of eight; and a kernel of
# another kind, twice, as of two number pairs, with a generic load in front of its loop.
LISTING = """
\tcode for sm_90
\t\tFunction : _Z19tensor_queries_bf164args
        /*0000*/                   LDG.E.128 R1, [R2] ;   /* 0x00 */
        /*0010*/                   LDSM.16.M88.4 R4, [R8] ;
                                                          /* 0x00 */
        /*0020*/                   HMMA.16816.F32.BF16 R4, R4, R4, R4 ;
        /*0030*/              @!P0 IADD3 R1, R1, 0x1, RZ ;
        /*0040*/               @P0 BRA 0x10 ;
        /*0050*/                   LDGSTS.E.BYPASS.128 [R1], [R2] ;
        /*0060*/                   HMMA.16816.F32.BF16 R4, R4, R4, R4 ;
        /*0070*/              @!P0 BRA 0x0 ;
        /*0080*/                   EXIT ;
\t\tFunction : _Z14squares_kernel11squares_job
        /*0000*/                   LD.E.64 R1, [R2] ;
        /*0010*/                   LDG.E R1, [R4] ;
        /*0020*/                   STL [R1], R2 ;
        /*0030*/               @P0 BRA 0x10 ;
        /*0040*/                   EXIT ;
\t\tFunction : _Z14squares_kernel11squares_job
        /*0000*/                   LDG.E.64 R1, [R4] ;
        /*0010*/               @P0 BRA 0x0 ;
"""
SEEN = {("sm_90", "tensor_queries_bf16", Counts):
        Counts(generic=0, local=0, ldsm=1, wide=1, copies=1, share=25),
        ("sm_90", "squares_kernel", Memory): Memory(generic=0, local=1)}
# (what is put in the place of what in the listing, the finding or None)
PLANTED = (
    ("", "", None),
    ("IADD3 R1, R1, 0x1", "LDS.128 R1, [R2]", None),  # better is no finding
    ("IADD3 R1, R1, 0x1", "LD.E R1, [R2]", "generic 0 -> 1"),
    ("EXIT", "LD.E R1, [R2]", None),  # behind the loops
    ("LDG.E R1, [R4]", "LD.E R1, [R4]", "squares_kernel: generic 0 -> 1"),
    ("LDG.E.64 R1, [R4]", "LD.E.64 R1, [R4]", "squares_kernel: generic 0 -> 1"),
    ("LDG.E.64 R1, [R4]", "STL [R1], R2", None),  # the worst of the two is not worse
    ("LDG.E R1, [R4]", "LDL R1, [R4]", "squares_kernel: local 1 -> 2"),
    ("Z14squares", "Z14squarez", "squarez_kernel: local 0 -> 1"),
    ("Z14squares", "Z14squarez", "squares_kernel: not in the module"),
    ("IADD3 R1, R1, 0x1", "STL [R1], R2", "local 0 -> 1"),
    ("IADD3 R1, R1, 0x1", "LDL.LU R1, [R2]", "local 0 -> 1"),
    ("LDSM.16.M88.4", "LDS", "ldsm 1 -> 0"),
    ("LDG.E.128", "LDG.E.64", "wide 1 -> 0"),
    ("LDGSTS.E.BYPASS.128", "STS.128", "copies 1 -> 0"),
    ("@P0 BRA 0x10", "@P0 EXIT", None),  # the outer loop has the same share
    ("@P0 BRA 0x10", "@P0 BRA 0x0", "share 25 -> 20"),
    ("tensor_queries_bf16", "tensor_queries__f16", "not in the table"),
)


def plant():
    missed = int(seen_in(LISTING.splitlines()) != SEEN)
    for old, new, text in PLANTED:
        worse, _ = judge(SEEN, seen_in(LISTING.replace(old, new).splitlines()))
        hit = not worse if text is None else any(text in line for line in worse)
        print("found " if hit else "MISSED", text, worse)
        missed += not hit
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="of all files that --module names")
    built_module.run(parser, check, plant)


if __name__ == "__main__":
    main()
