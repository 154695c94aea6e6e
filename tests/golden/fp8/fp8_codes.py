# SPDX-License-Identifier: Apache-2.0
"""Writes codes.txt: all that torch's casts to float8_e4m3fn and float8_e5m2 do.

    python fp8_codes.py > codes.txt        (torch 2.15; some minutes of one core)

A cast is a staircase: for each code of a number without sign, the first f32 bit pattern that gives
it says everything, once it is known that codes rise with the bits, that the sign is passed on, and
that every NaN is the code 7f. To know that, all 2^32 patterns are cast here; see README.md."""

import sys

import torch

CHUNK = 1 << 22
INFINITE = 0x7F800000


def cast(first, dtype, sign):
    bits = torch.arange(first, first + CHUNK, dtype=torch.int64).to(torch.int32)
    signed = bits | torch.tensor(-(1 << 31) if sign else 0, dtype=torch.int32)
    return bits, signed.view(torch.float32).to(dtype).view(torch.uint8)


def firsts(dtype):
    found, last = {}, -1
    for at in range(0, 1 << 31, CHUNK):
        bits, codes = cast(at, dtype, 0)
        _, negative = cast(at, dtype, 1)
        numbers = bits <= INFINITE
        assert (codes[~numbers] == 0x7F).all()
        assert ((negative & 0x7F)[~numbers] == 0x7F).all()
        assert (negative[numbers] == codes[numbers] + 0x80).all()
        steps = codes[numbers].to(torch.int16)
        if len(steps) == 0:
            continue
        rises = steps.diff(prepend=torch.tensor([last], dtype=torch.int16))
        assert (rises >= 0).all()
        last = int(steps[-1])
        for place in rises.nonzero().flatten().tolist():
            found[int(steps[place])] = at + place
    return found


def main():
    torch.set_num_threads(2)
    print(f"# fp8_codes.py, torch {torch.__version__}: code, f32 bits of its value, first f32 bits cast to it")
    for name, dtype in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        found = firsts(dtype)
        for code in range(128):
            value = torch.tensor([code], dtype=torch.uint8).view(dtype).float()
            bits = value.view(torch.int32).item() & 0xFFFFFFFF
            text = "nan" if value.isnan().item() else f"{bits:08x}"
            print(name, f"{code:02x}", text, f"{found[code]:08x}" if code in found else "-")
    return 0


if __name__ == "__main__":
    sys.exit(main())
