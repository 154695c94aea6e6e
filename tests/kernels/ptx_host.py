#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes PTX as C: each kernel that nvcc made becomes a function that tests/shim/shim.c can run,
instruction by instruction, so that not the source alone but also what nvcc made of it is
compared with the CPU's bits.

    ptx_host.py --variant f32_f32_ptx --out ops.c ops.ptx

A kernel `name` becomes ptx_name_VARIANT(gpu, arguments, bytes). Registers become variables, and
blocks become labels; tests/kernels/ptx_words.h has what is not one operation of C. What an
instruction does is said by NVIDIA's PTX ISA. Whatever is not known here is refused with its line,
and nothing is guessed. Arithmetic that leaves the choice of rounding or fusing to ptxas (add.f32
without .rn) is refused as well, except with --open. `--plant KERNEL OLD NEW` writes NEW for the
first OLD in the kernel's PTX, which is a fault to be found. `--refusals` shows that what is not
known is refused."""
import argparse
import pathlib
import re
import sys

WIDTH = {"pred": 1, "f32": 32, "f64": 64}
WIDTH.update({sign + str(width): width for sign in "usb" for width in (8, 16, 32, 64)})
SPECIAL = {"%tid.x": "gpu->thread", "%ntid.x": "gpu->threads", "%ctaid.x": "gpu->block"}
SPACES = ("global", "shared", "local", "param")
INTEGER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
           "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
INSTRUCTION = re.compile(r"^(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)(?:\s+(.*))?$", re.S)
# Lines that may stand in front of a kernel's body, beside its instructions.
HEADS = (r"\.version \d+\.\d+", r"\.target sm_\d+", r"\.address_size 64", r"\.weak", r"\.visible",
         r"\.extern \.shared \.align \d+ \.b8 gpu_shared_bytes\[\]")


class Refused(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Refused(why)


def is_float(kind):
    return kind in ("f32", "f64")


def unsigned(kind):
    return "u" + str(WIDTH[kind])


def signed(kind):
    return "s" + str(WIDTH[kind])


def split(text):
    """Splits operands at commas outside of braces and brackets."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()] if part.strip() else parts


class Kernel:
    """One .entry; `text` is what lies between its braces."""

    def __init__(self, arguments, name, head, text, line):
        self.open = arguments.open
        self.variant = arguments.variant
        self.name, self.line = name, line
        self.registers = {}  # name -> its declared type
        self.used = {}
        self.local = None    # (symbol, bytes)
        self.code = []
        params = re.findall(r"\.param \.align \d+ \.b8 ([\w$]+)\[(\d+)\]", head)
        need(len(params) == 1 and head.count(".param") == 1, "one struct of arguments is expected")
        self.param, self.param_bytes = params[0][0], int(params[0][1])
        rest = re.sub(r"\.param[^,)]*|\.minnctapersm \d+|[\s()]", "", head)
        bound = re.fullmatch(r"(?:\.maxntid(\d+),1,1)?", rest)
        need(bound, f"words at a kernel's head: {rest}")
        self.threads = int(bound.group(1) or 1024)
        for number, statement in self.statements(text):
            self.number = number
            try:
                self.take(statement)
            except Refused as why:
                raise Refused(f"{name}, line {number}: {why}: {statement}") from None

    def statements(self, text):
        """Yields (line, statement or label) of the body."""
        number = self.line
        for piece in re.split(r"((?:;|\$\w+:))", text):
            if piece.startswith("$"):
                yield number, piece
            elif piece.strip(" \t\n;"):
                before = len(piece) - len(piece.lstrip())
                yield number + piece[:before].count("\n"), piece.strip()
            number += piece.count("\n")

    # ---- operands ----

    def register(self, word):
        match = re.fullmatch(r"%([A-Za-z]+)\d*", word)
        need(match and match.group(1) in self.registers, f"unknown register {word}")
        kind = self.registers[match.group(1)]
        name = word[1:] + "_"  # f32 is a type
        self.used[name] = kind
        return name, kind

    def read(self, word, kind, wider=False):
        """Returns the C expression of operand `word` as `kind`; b counts as u. With `wider` its
        register may be wider."""
        plain = kind.replace("b", "u") if kind[0] == "b" else kind
        if re.fullmatch(r"-?\d+U?|-?0[xX][0-9a-fA-F]+U?", word):
            need(not is_float(kind), f"{word} as {kind}")
            value = int(word.rstrip("U"), 0)
            if kind == "pred":
                need(value in (0, 1, -1), f"{word} as {kind}")
                return str(abs(value))
            width = WIDTH[kind]
            need(-(1 << (width - 1)) <= value < 1 << width, f"{word} as {kind}")
            return f"(({plain}){value % (1 << width):#x}u)"
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", word):
            need(WIDTH[kind] == 32, f"{word} as {kind}")
            bits = f"0x{word[2:]}u"
            return f"f32_of_u32({bits})" if is_float(kind) else f"(({plain}){bits})"
        if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", word):
            need(WIDTH[kind] == 64, f"{word} as {kind}")
            bits = f"0x{word[2:]}u"
            return f"f64_of_u64({bits})" if is_float(kind) else f"(({plain}){bits})"
        if word in SPECIAL:
            need(kind in ("u32", "b32"), f"{word} as {kind}")
            return SPECIAL[word]
        if word == self.param or word == "gpu_shared_bytes" or (self.local and word == self.local[0]):
            need(kind in ("u64", "b64", "u32", "b32"), f"{word} as {kind}")
            return f"({unsigned(kind)})0"
        name, own = self.register(word)
        if kind == "pred" or own == "pred":
            need(kind == own, f"{word}, which is {own}, as {kind}")
            return name
        if is_float(kind):
            need(WIDTH[own] == WIDTH[kind], f"{word}, which is {own}, as {kind}")
            return name if own == kind else f"{kind}_of_{unsigned(kind)}({name})"
        if is_float(own):
            need(WIDTH[own] == WIDTH[kind], f"{word}, which is {own}, as {kind}")
            name = f"{unsigned(own)}_of_{own}({name})"
        need(WIDTH[own] == WIDTH[kind] or wider and WIDTH[own] > WIDTH[kind],
             f"{word}, which is {own}, as {kind}")
        return name if plain == unsigned(own) and not is_float(own) else f"({plain})({name})"

    def result(self, word, kind, value):
        """Returns the C statement that gives register `word` a result of arithmetic, whose NaN is
        any NaN."""
        return self.write(word, kind, f"any_nan_{kind}({value})" if is_float(kind) else value)

    def write(self, word, kind, value, wider=False):
        """Returns the C statement that gives register `word` a value of type `kind`."""
        name, own = self.register(word)
        if kind == "pred" or own == "pred":
            need(kind == own, f"{word}, which is {own}, from {kind}")
            return f"{name} = {value};"
        if is_float(kind) or is_float(own):
            need(WIDTH[own] == WIDTH[kind], f"{word}, which is {own}, from {kind}")
            if is_float(own):
                return f"{name} = {value if own == kind else f'{own}_of_{unsigned(own)}({value})'};"
            return f"{name} = {unsigned(own)}_of_{kind}({value});"
        need(WIDTH[own] == WIDTH[kind] or wider and WIDTH[own] > WIDTH[kind],
             f"{word}, which is {own}, from {kind}")
        if kind[0] == "s" and WIDTH[own] > WIDTH[kind]:
            return f"{name} = ({unsigned(own)})({signed(own)})({kind})({value});"
        return f"{name} = ({unsigned(own)})({unsigned(kind)})({value});"

    def address_width(self, base, space):
        """Returns the width of an address; offsets into spaces other than global memory may have 32
        bits."""
        if not base.startswith("%") or WIDTH[self.register(base)[1]] == 64:
            return 64
        need(space in ("shared", "local", "param"), "an address of 32 bits")
        return 32

    def place(self, word, space, kind, count):
        """Returns (C pointer to the first byte) of [address], which is `count` numbers wide."""
        match = re.fullmatch(r"\[([^\]+]+)(?:\+(-?\d+))?\]", word)
        need(match, f"an address: {word}")
        offset = int(match.group(2) or 0)
        base = match.group(1).strip()
        width = self.address_width(base, space)
        address = f"(u{width})({self.read(base, f'u{width}')} + {offset % (1 << width):#x}u)"
        need(count in (1, 2, 4), "as many numbers")
        size = WIDTH[kind] // 8 * count
        if space == "param":
            return f"(ptx_{space} + ptx_within({address}, {size}, {self.param_bytes}))"
        if space == "local":
            need(self.local, "no local memory is declared")
            return f"(ptx_{space} + ptx_within({address}, {size}, {self.local[1]}))"
        if space == "shared":
            return f"((unsigned char *)gpu->shared + ptx_aligned({address}, {size}))"
        return f"((unsigned char *)(uintptr_t)ptx_aligned({address}, {size}))"

    # ---- statements ----

    def take(self, statement):
        if statement.startswith("$"):
            self.code.append(f"{statement[1:]};")
            return
        if statement.startswith("."):
            self.directive(statement)
            return
        match = INSTRUCTION.match(statement)
        need(match, "not an instruction")
        negated, guard, opcode, operands = match.groups()
        words = opcode.split(".")
        handler = getattr(self, "op_" + words[0], None)
        need(handler, "an opcode that is not known")
        made = handler(words[1:], split(operands or ""))
        need(made is not None, "a form of the opcode that is not known")
        if guard:
            made = f"if ({negated}{self.read(guard, 'pred')}) {{ {made} }}"
        self.code.append(made)

    def directive(self, statement):
        register = re.fullmatch(r"\.reg \.(\w+)\s+%(\w+?)(?:<\d+>)?", statement)
        local = re.fullmatch(r"\.local \.align (\d+) \.b8\s+([\w$]+)\[(\d+)\]", statement)
        if register:
            need(register.group(1) in WIDTH, "a register's type")
            self.registers[register.group(2)] = register.group(1)
        elif local:
            need(self.local is None and int(local.group(1)) <= 16, "local memory")
            self.local = (local.group(2), int(local.group(3)))
        else:
            need(re.fullmatch(r'\.pragma "(nounroll|used_bytes_mask \d+)"', statement),
                 "a directive that is not known")

    # ---- arithmetic ----

    def rounded(self, words):
        """Returns the type of float arithmetic that rounds to nearest, once, whatever ptxas
        prefers."""
        if len(words) == 2 and words[0] == "rn" and is_float(words[1]):
            return words[1]
        if self.open and len(words) == 1 and is_float(words[0]):
            return words[0]
        return None

    def integer(self, words, widths=(16, 32, 64)):
        if len(words) == 1 and words[0] in WIDTH and words[0][0] in "us":
            return words[0] if WIDTH[words[0]] in widths else None
        return None

    def binary(self, words, operands, sign):
        kind = self.rounded(words)
        if kind is None:
            kind = self.integer(words)
            kind = kind and unsigned(kind)  # of both signs the same bits
        if kind is None or len(operands) != 3:
            return None
        to, a, b = operands
        return self.result(to, kind, f"{self.read(a, kind)} {sign} {self.read(b, kind)}")

    def op_add(self, words, operands):
        return self.binary(words, operands, "+")

    def op_sub(self, words, operands):
        return self.binary(words, operands, "-")

    def op_mul(self, words, operands):
        if words == ["lo", "s16"] or words == ["lo", "u16"]:
            to, *factors = operands  # in C their product would be an int, which may be too narrow
            a, b = (f"(u32){self.read(factor, 'u16')}" for factor in factors)
            return self.write(to, "u16", f"{a} * {b}")
        if words[0] == "lo":
            return self.binary(words[1:], operands, "*") if self.integer(words[1:], (32, 64)) else None
        if words[0] != "wide":
            return self.binary(words, operands, "*") if self.rounded(words) else None
        kind = self.integer(words[1:], (16, 32))
        if kind is None:
            return None
        wide = kind[0] + str(2 * WIDTH[kind])
        to, a, b = operands
        return self.write(to, wide, f"({wide}){self.read(a, kind)} * ({wide}){self.read(b, kind)}")

    def op_mad(self, words, operands):
        if words[0] != "lo" or not self.integer(words[1:], (32, 64)):
            return None
        kind = unsigned(words[1])
        to, a, b, c = operands
        return self.write(to, kind, f"{self.read(a, kind)} * {self.read(b, kind)} + {self.read(c, kind)}")

    def op_fma(self, words, operands):
        if len(words) != 2 or words[0] != "rn" or not is_float(words[1]):
            return None
        kind = words[1]
        function = "__builtin_fmaf" if kind == "f32" else "__builtin_fma"
        return self.result(operands[0], kind,
                           f"{function}({', '.join(self.read(x, kind) for x in operands[1:])})")

    def op_div(self, words, operands):
        kind = self.integer(words, (32, 64))
        to, a, b = operands
        if kind and kind[0] == "u":
            return self.write(to, kind, f"div_{kind}({self.read(a, kind)}, {self.read(b, kind)})")
        if len(words) == 2 and words[0] == "rn" and is_float(words[1]):
            return self.binary(words, operands, "/")
        return None

    def op_rem(self, words, operands):
        kind = self.integer(words, (32, 64))
        to, a, b = operands
        if kind and kind[0] == "u":
            return self.write(to, kind, f"rem_{kind}({self.read(a, kind)}, {self.read(b, kind)})")
        return None

    def op_rcp(self, words, operands):
        if len(words) != 2 or words[0] != "rn" or not is_float(words[1]):
            return None
        one = "1.0f" if words[1] == "f32" else "1.0"
        return self.result(operands[0], words[1], f"{one} / {self.read(operands[1], words[1])}")

    def op_sqrt(self, words, operands):
        if len(words) != 2 or words[0] != "rn" or not is_float(words[1]):
            return None
        function = "__builtin_sqrtf" if words[1] == "f32" else "__builtin_sqrt"
        return self.result(operands[0], words[1], f"{function}({self.read(operands[1], words[1])})")

    def op_neg(self, words, operands):
        to, a = operands
        if words in (["f32"], ["f64"]):
            return self.write(to, words[0], f"-{self.read(a, words[0])}")
        kind = self.integer(words)
        return kind and self.write(to, unsigned(kind), f"0u - {self.read(a, unsigned(kind))}")

    def op_abs(self, words, operands):
        if words not in (["f32"], ["f64"]):
            return None
        function = "__builtin_fabsf" if words[0] == "f32" else "__builtin_fabs"
        return self.write(operands[0], words[0], f"{function}({self.read(operands[1], words[0])})")

    def order(self, words, operands, sign):
        kind = self.integer(words)
        if kind is None:
            return None
        to, a, b = operands[0], self.read(operands[1], kind), self.read(operands[2], kind)
        return self.write(to, kind, f"{a} {sign} {b} ? {a} : {b}")

    def op_min(self, words, operands):
        return self.order(words, operands, "<")

    def op_max(self, words, operands):
        return self.order(words, operands, ">")

    # ---- bits ----

    def logic(self, words, operands, sign):
        if words not in (["pred"], ["b16"], ["b32"], ["b64"]):
            return None
        to, a, b = operands
        return self.write(to, words[0], f"{self.read(a, words[0])} {sign} {self.read(b, words[0])}")

    def op_and(self, words, operands):
        return self.logic(words, operands, "&")

    def op_or(self, words, operands):
        return self.logic(words, operands, "|")

    def op_xor(self, words, operands):
        return self.logic(words, operands, "^")

    def op_not(self, words, operands):
        if words not in (["pred"], ["b16"], ["b32"], ["b64"]):
            return None
        return self.write(operands[0], words[0],
                          f"{'!' if words == ['pred'] else '~'}{self.read(operands[1], words[0])}")

    def op_shl(self, words, operands):
        if words not in (["b16"], ["b32"], ["b64"]):
            return None
        to, a, n = operands
        return self.write(to, words[0],
                          f"shl_{words[0]}({self.read(a, words[0])}, {self.read(n, 'u32')})")

    def op_shr(self, words, operands):
        if len(words) != 1 or words[0] not in WIDTH or WIDTH[words[0]] < 16:
            return None
        kind = words[0].replace("b", "u")
        to, a, n = operands
        return self.write(to, unsigned(kind),
                          f"shr_{kind}({self.read(a, unsigned(kind))}, {self.read(n, 'u32')})")

    def op_prmt(self, words, operands):
        if words != ["b32"]:
            return None
        return self.write(operands[0], "b32",
                          f"prmt_b32({', '.join(self.read(x, 'b32') for x in operands[1:])})")

    def op_bfi(self, words, operands):
        if words not in (["b32"], ["b64"]):
            return None
        to, a, b, first, length = operands
        return self.write(to, words[0],
                          f"bfi_{words[0]}({self.read(a, words[0])}, {self.read(b, words[0])}, "
                          f"{self.read(first, 'u32')}, {self.read(length, 'u32')})")

    # ---- choices, moves, conversions ----

    def op_setp(self, words, operands):
        if len(words) != 2 or words[1] not in WIDTH or "|" in operands[0]:
            return None
        how, kind = words
        a, b = self.read(operands[1], kind), self.read(operands[2], kind)
        if not is_float(kind):
            need(how in INTEGER and (kind[0] != "b" or how in ("eq", "ne")), "a comparison")
            return self.write(operands[0], "pred", f"{a} {INTEGER[how]} {b}")
        if how in ("num", "nan"):
            return self.write(operands[0], "pred",
                              f"{'!' * (how == 'num')}__builtin_isunordered({a}, {b})")
        if how.endswith("u") and how[:-1] in ("eq", "ne", "lt", "le", "gt", "ge"):
            return self.write(operands[0], "pred",
                              f"__builtin_isunordered({a}, {b}) || {a} {INTEGER[how[:-1]]} {b}")
        need(how in ("eq", "ne", "lt", "le", "gt", "ge"), "a comparison")
        ordered = f"!__builtin_isunordered({a}, {b}) && " if how == "ne" else ""
        return self.write(operands[0], "pred", f"{ordered}{a} {INTEGER[how]} {b}")

    def op_selp(self, words, operands):
        if len(words) != 1 or WIDTH.get(words[0], 0) < 16:
            return None
        to, a, b, by = operands
        return self.write(to, words[0], f"{self.read(by, 'pred')} ? {self.read(a, words[0])} : "
                                        f"{self.read(b, words[0])}")

    def op_mov(self, words, operands):
        if len(words) != 1 or words[0] not in WIDTH or WIDTH[words[0]] == 8:
            return None
        kind, (to, value) = words[0], operands
        if to.startswith("{"):
            low, high = split(to[1:-1])
            need(kind == "b64", "halves of another width")
            whole = self.read(value, "b64")
            return (f"{{ const u64 whole = {whole}; {self.write(low, 'b32', '(u32)whole')} "
                    f"{self.write(high, 'b32', '(u32)(whole >> 32)')} }}")
        if value.startswith("{"):
            low, high = split(value[1:-1])
            need(kind == "b64", "halves of another width")
            return self.write(to, kind, f"(u64){self.read(high, 'b32')} << 32 | {self.read(low, 'b32')}")
        return self.write(to, kind, self.read(value, kind))

    def op_cvt(self, words, operands):
        to, value = operands
        rounding = words[0] if words[0] in ("rn", "rzi") else None
        kinds = words[1:] if rounding else words
        if len(kinds) != 2 or any(kind not in WIDTH or kind[0] == "b" for kind in kinds):
            return None
        made, own = kinds
        given = self.read(value, own, wider=True)
        if is_float(own) and not is_float(made):
            need((rounding, made, own) == ("rzi", "u64", "f64"), "a conversion")
            return self.write(to, made, f"cvt_rzi_u64_f64({given})")
        exact = not is_float(made) or (made, own) == ("f64", "f32")
        need((rounding is None) == exact and made != own, "a conversion")
        if is_float(made):
            return self.result(to, made, f"({made}){given}")
        return self.write(to, made, f"({made}){given}", wider=True)

    # ---- memory ----

    def op_cvta(self, words, operands):
        to, address = operands
        outward = words[0] != "to"
        space, width = words[-2:]
        if space not in SPACES or width != "u64" or len(words) != 2 + (not outward):
            return None
        base = {"global": "0u", "shared": "(u64)(uintptr_t)gpu->shared"}.get(
            space, f"(u64)(uintptr_t)ptx_{space}")
        need(space != "local" or self.local, "no local memory is declared")
        return self.write(to, "u64", f"{self.read(address, 'u64')} {'+' if outward else '-'} {base}")

    def access(self, words):
        """Returns (space, kind, count) of ld and st."""
        space = words[0] if words[0] in SPACES else "generic"
        rest = words[space != "generic":]
        count = int(rest[0][1:]) if rest[0] in ("v2", "v4") else 1
        rest = rest[count > 1:]
        need(len(rest) == 1 and rest[0] in WIDTH and rest[0] != "pred", "a form of an access")
        return space, rest[0].replace("b", "u"), count

    def op_ld(self, words, operands):
        space, kind, count = self.access(words)
        names = split(operands[0][1:-1]) if operands[0].startswith("{") else [operands[0]]
        need(len(names) == count and len(operands) == 2, "as many registers as numbers")
        step = WIDTH[kind] // 8
        values = [self.write(name, kind, f"ld_{kind}(at + {i * step})", wider=True)
                  for i, name in enumerate(names)]
        place = self.place(operands[1], space, kind, count)
        return f"{{ const unsigned char *const at = {place}; {' '.join(values)} }}"

    def op_st(self, words, operands):
        space, kind, count = self.access(words)
        need(space != "param", "the arguments are written")
        names = split(operands[1][1:-1]) if operands[1].startswith("{") else [operands[1]]
        need(len(names) == count and len(operands) == 2, "as many registers as numbers")
        step = WIDTH[kind] // 8
        writes = [f"st_{kind}(at + {i * step}, {self.read(name, kind, wider=True)});"
                  for i, name in enumerate(names)]
        place = self.place(operands[0], space, kind, count)
        return f"{{ unsigned char *const at = {place}; {' '.join(writes)} }}"

    def op_atom(self, words, operands):
        if words[:2] != ["global", "add"] or words[2:] not in (["f32"], ["f64"], ["u32"]):
            return None
        to, place, term = operands
        at = self.place(place, "global", words[2], 1)
        return self.write(to, words[2],
                          f"atom_global_add_{words[2]}(gpu, {at}, {self.read(term, words[2])})")

    def op_red(self, words, operands):
        """An atomic whose result nobody uses (nvcc 12 has it, nvcc 13 writes atom)."""
        if words[:2] != ["global", "add"] or words[2:] not in (["f32"], ["f64"], ["u32"]):
            return None
        at = self.place(operands[0], "global", words[2], 1)
        return f"(void)atom_global_add_{words[2]}(gpu, {at}, {self.read(operands[1], words[2])});"

    def op_cp(self, words, operands):
        """A copy to shared memory that no register waits for, of which the last operand says how many
        bytes are read; the end of a group of them; the wait for all but some groups."""
        if words == ["async", "commit_group"] and not operands:
            return "shim_async_commit(gpu);"
        if words == ["async", "wait_group"] and re.fullmatch(r"\d+", operands[0]):
            return f"shim_async_wait(gpu, {operands[0]}u);"
        sizes = {"cg": ("16",), "ca": ("4", "8", "16")}.get(words[1] if len(words) == 4 else "", ())
        if words[:1] + words[2:] != ["async", "shared", "global"] or operands[2] not in sizes:
            return None
        to, memory, size, *read = operands
        need(len(read) < 2, "a form of the copy")
        place = self.place(to, "shared", "u32", 1)
        some = self.read(read[0], "u32") if read else f"{size}u"
        return (f"{{ const u32 bytes = {some}; shim_async(gpu, {place}, "
                f"{self.place(memory, 'global', 'u32', 1)}, {size}u, bytes); }}")

    # ---- branches, and what threads do together ----

    def op_bra(self, words, operands):
        if words not in ([], ["uni"]) or not operands[0].startswith("$"):
            return None
        return f"goto {operands[0][1:]};"

    def op_ret(self, words, operands):
        return None if words or operands else "return;"

    def op_bar(self, words, operands):
        if words == ["sync"] and operands == ["0"]:
            return f"shim_barrier(gpu, {self.number});"
        if words == ["warp", "sync"] and operands == ["-1"]:
            return "shim_warp_barrier(gpu);"
        return None

    def op_shfl(self, words, operands):
        if words != ["sync", "bfly", "b32"]:
            return None
        to, *found = operands[0].split("|")
        given = ", ".join(self.read(word, "u32") for word in operands[1:])
        inside = "".join(f" {self.write(name, 'pred', '1')}" for name in found)
        return f"{self.write(to, 'u32', f'shfl_bfly(gpu, {given})')}{inside}"

    # ---- the whole function ----

    def text(self):
        mangled = re.fullmatch(r"_ZL?(\d+)(\w+)", self.name)
        need(mangled, f"a kernel's name: {self.name}")
        name = mangled.group(2)[:int(mangled.group(1))]
        lines = [f"void ptx_{name}_{self.variant}(struct gpu *gpu, const void *given, size_t bytes);",
                 f"void ptx_{name}_{self.variant}(struct gpu *gpu, const void *given, size_t bytes) {{",
                 "const unsigned char *const ptx_param = (const unsigned char *)given;",
                 f"if (!ptx_begins(gpu, bytes, {self.param_bytes}, {self.threads})) return;"]
        if self.local:
            lines.append(f"_Alignas(16) unsigned char ptx_local[{self.local[1]}];")
        for kind in sorted(set(self.used.values())):
            names = sorted(name for name, own in self.used.items() if own == kind)
            lines.append(f"{'pred' if kind == 'pred' else kind if is_float(kind) else unsigned(kind)} "
                         f"{', '.join(names)};")
        return "\n".join([*lines, *self.code, "}"])


def kernels(arguments, ptx):
    """Returns the text of each kernel; whatever stands between kernels must be known, too."""
    ptx = re.sub(r"//[^\n]*", "", ptx)
    at = 0
    for entry in ENTRY.finditer(ptx):
        between = ptx[at:entry.start()]
        for word in HEADS:
            between = re.sub(word, "", between)
        need(not between.strip(" \t\n;"), f"between kernels: {between.strip()}")
        begin, at = ptx.index("{", entry.end()), ptx.index("\n}", entry.end()) + 2
        text = ptx[begin + 1:at - 2]
        for kernel, old, new in arguments.plant:
            if kernel in entry.group(1):
                need(old in text, f"nothing to plant in {kernel}: no {old}")
                text = text.replace(old, new, 1)
        line = ptx[:begin].count("\n") + 1
        yield entry.group(1), ptx[entry.end():begin], text, line
    need(not ptx[at:].strip(), f"behind the kernels: {ptx[at:].strip()[:80]}")


def translate(arguments, ptx):
    made = ["/* Made of PTX. */", '#include "tests/kernels/ptx_words.h"']
    names = []
    for name, head, text, line in kernels(arguments, ptx):
        names.append(name)
        made.append(Kernel(arguments, name, head, text, line).text())
    for kernel, _, _ in arguments.plant:
        need(any(kernel in name for name in names), f"no kernel {kernel} to plant in")
    return "\n".join(made) + "\n"


TINY = """.version 9.0
.target sm_90
.address_size 64
.extern .shared .align 32 .b8 gpu_shared_bytes[];
.entry _Z4tiny3job(
\t.param .align 8 .b8 tiny_param_0[16]
)HEAD
{
\t.reg .pred \t%p<9>;
\t.reg .b16 \t%rs<9>;
\t.reg .b32 \t%r<9>;
\t.reg .f32 \t%f<9>;
\t.reg .b64 \t%rd<9>;
\t.reg .f64 \t%fd<9>;
BODY
\tret;
}
"""
# Statements with the reason for which each must be refused; None where it must be let through.
TRIED = (
    ("add.rn.f32 \t%f1, %f2, %f3;", None),
    ("mad.lo.s32 \t%r1, %r2, -5, %r3;", None),
    ("mul.lo.s16 \t%rs1, %rs2, 12;", None),
    ("@!%p1 bra \t$L__1;\n$L__1:", None),
    ("ld.shared.v2.f64 \t{%fd1, %fd2}, [%r1+-16];", None),
    ("add.f32 \t%f1, %f2, %f3;", "a form of the opcode"),
    ("mul.f64 \t%fd1, %fd2, %fd3;", "a form of the opcode"),
    ("add.rz.f32 \t%f1, %f2, %f3;", "a form of the opcode"),
    ("add.rn.ftz.f32 \t%f1, %f2, %f3;", "a form of the opcode"),
    ("fma.rn.sat.f32 \t%f1, %f2, %f3, %f4;", "a form of the opcode"),
    ("div.approx.f32 \t%f1, %f2, %f3;", "a form of the opcode"),
    ("ex2.approx.f32 \t%f1, %f2;", "an opcode that is not known"),
    ("cvt.rz.f32.f64 \t%f1, %fd2;", "a form of the opcode"),
    ("cvt.rni.s32.f32 \t%r1, %f2;", "a form of the opcode"),
    ("cvt.f32.f64 \t%f1, %fd2;", "a conversion"),
    ("div.s32 \t%r1, %r2, %r3;", "a form of the opcode"),
    ("min.f32 \t%f1, %f2, %f3;", "a form of the opcode"),
    ("setp.lt.and.f32 \t%p1, %f2, %f3, %p4;", "a form of the opcode"),
    ("setp.lt.b32 \t%p1, %r2, %r3;", "a comparison"),
    ("mov.u32 \t%r1, %laneid;", "unknown register"),
    ("mov.u32 \t%r1, %f2;", None),
    ("mov.u32 \t%r1, %rd2;", "%rd2, which is b64, as u32"),
    ("mov.u64 \t%r1, 5;", "%r1, which is b32, from u64"),
    ("cvt.u16.u32 \t%r1, %rd2;", None),
    ("ld.global.u8 \t%r1, [%rd2];", None),
    ("st.global.u8 \t[%rd2], %r1;", None),
    ("ld.global.u64 \t%r1, [%rd2];", "%r1, which is b32, from u64"),
    ("add.s64 \t%rd1, %r2, %rd3;", "%r2, which is b32, as u64"),
    ("ld.global.f32 \t%f1, [%r2];", "an address of 32 bits"),
    ("ld.local.f32 \t%f1, [%rd2];", "no local memory"),
    ("ld.volatile.global.f32 \t%f1, [%rd2];", "a form of an access"),
    ("ld.global.v8.f32 \t%f1, [%rd2];", "a form of an access"),
    ("st.param.f32 \t[%rd2], %f1;", "the arguments are written"),
    ("atom.global.cas.b32 \t%r1, [%rd2], %r3, %r4;", "a form of the opcode"),
    ("red.global.add.f32 \t[%rd2], %f1;", None),
    ("red.shared.add.f32 \t[%rd2], %f1;", "a form of the opcode"),
    ("membar.gl;", "an opcode that is not known"),
    ("cp.async.cg.shared.global \t[%r1], [%rd2], 16, %r3;", None),
    ("cp.async.ca.shared.global \t[%r1+4], [%rd2], 4;", None),
    ("cp.async.wait_group \t1;\n\tcp.async.commit_group;", None),
    ("cp.async.cg.shared.global \t[%r1], [%rd2], 4;", "a form of the opcode"),
    ("cp.async.cg.shared.global.L2::128B \t[%r1], [%rd2], 16;", "a form of the opcode"),
    ("cp.async.wait_all;", "a form of the opcode"),
    ("bar.sync \t1;", "a form of the opcode"),
    ("bar.warp.sync \t15;", "a form of the opcode"),
    ("shfl.sync.down.b32 \t%r1|%p1, %r2, %r3, %r4, %r5;", "a form of the opcode"),
    ("call.uni f, (%r1);", "an opcode that is not known"),
    (".shared .align 4 .b8 \town[16];", "a directive"),
    (".reg .b128 \t%q<2>;", "a register's type"),
    ("{", "not an instruction"),
)


def try_refusals(arguments):
    missed = 0
    cases = [("", body, why) for body, why in TRIED]
    cases += [(".maxntid 256, 1, 1", "", None), (".maxntid 256, 2, 1", "", "a kernel's head"),
              (".reqntid 256, 1, 1", "", "a kernel's head")]
    for head, body, why in cases:
        ptx = TINY.replace("HEAD", head).replace("BODY", "\t" + body)
        try:
            translate(arguments, ptx)
            said = None
        except Refused as refused:
            said = str(refused)
        right = said is None if why is None else said is not None and why in said
        print("right " if right else "WRONG ", (head + body).strip(), ":", said)
        missed += not right
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptx", nargs="?", type=pathlib.Path)
    parser.add_argument("--variant", default="f32_f32_ptx")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--plant", nargs=3, action="append", default=[])
    parser.add_argument("--refusals", action="store_true")
    arguments = parser.parse_args()
    if arguments.refusals:
        sys.exit(1 if try_refusals(arguments) else 0)
    try:
        arguments.out.write_text(translate(arguments, arguments.ptx.read_text()))
    except Refused as why:
        sys.exit(f"{arguments.ptx}: {why}")


if __name__ == "__main__":
    main()
