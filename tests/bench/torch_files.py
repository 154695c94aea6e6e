#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that torch.save writes, and what torch.load reads in them.

    python3 tests/bench/torch_files.py FOLDER          writes FOLDER/*.pt and FOLDER/*.txt, 100 of each
    python3 tests/bench/torch_files.py --commit        writes tests/golden/foreign/torch anew: the small ones
    python3 tests/bench/torch_files.py FOLDER FILE...  copies FILEs there instead, with what torch.load reads
    build/strict/bin/test_torch_golden FOLDER          reads each FILE.pt and compares with FILE.txt

A .txt has a line for each value: its way, its kind, and what it is; a tensor's elements are
hashed in row-major order. Needs torch (2.15.0 wrote what is committed); CPU only."""

import hashlib
import pathlib
import random
import shutil
import struct
import sys
import warnings

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
          torch.bool: "BOOL", torch.complex64: "C64", torch.uint16: "U16", torch.uint32: "U32",
          torch.uint64: "U64", torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}


def shown(data):
    return "".join(chr(b) if 0x20 < b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in data)


def leaf(value):
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"bool {int(value)}"
    if type(value) is int:
        if -2**63 <= value < 2**63:
            return f"int {value}"
        return "big " + shown(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if type(value) is float:
        return "float " + struct.pack(">d", value).hex()
    if type(value) is str:
        return "text " + shown(value.encode())
    if type(value) is bytes:
        return "bytes " + shown(value)
    if isinstance(value, torch.Tensor):
        rows = value.detach().contiguous().clone()
        data = bytes(rows.untyped_storage()) if rows.numel() else b""
        shape = ", ".join(map(str, value.shape))
        return f"tensor {DTYPES[value.dtype]} [{shape}] {hashlib.sha256(data).hexdigest()}"
    return "opaque"


def lines(value, way=""):
    if isinstance(value, dict):
        yield f"{way} dict {len(value)}"
        for key, inner in value.items():
            step = f"[{key}]" if type(key) is int else f".{key}" if type(key) is str else ".?"
            yield from lines(inner, way + step)
    elif isinstance(value, (list, tuple)):
        yield f"{way} {'list' if isinstance(value, list) else 'tuple'} {len(value)}"
        for i, inner in enumerate(value):
            yield from lines(inner, f"{way}[{i}]")
    else:
        yield f"{way} {leaf(value)}"


def model(dtype=torch.float32, width=6):
    torch.manual_seed(1)
    made = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.LayerNorm(width), torch.nn.Linear(width, 3))
    return made.to(dtype)


def trained(make, dtype=torch.float32, updates=3):
    net = model(dtype)
    optimizer = make(net)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (k + 1))
    for _ in range(updates):
        net(torch.randn(5, 4, dtype=dtype)).float().square().sum().backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return net, optimizer, scheduler


def groups(net):
    return [{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0}]


def optimizers():
    o = torch.optim
    makers = {
        "adamw": lambda n: o.AdamW(groups(n), lr=1e-3), "adam": lambda n: o.Adam(n.parameters(), weight_decay=0.01),
        "amsgrad": lambda n: o.AdamW(n.parameters(), amsgrad=True),
        "fused": lambda n: o.AdamW(n.parameters(), fused=True),
        "tensor_lr": lambda n: o.AdamW(n.parameters(), lr=torch.tensor(1e-3)),
        "sgd": lambda n: o.SGD(n.parameters(), lr=0.1), "momentum": lambda n: o.SGD(n.parameters(), lr=0.1, momentum=0.9),
        "nesterov": lambda n: o.SGD(n.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        "rmsprop": lambda n: o.RMSprop(n.parameters(), centered=True, momentum=0.5),
        "adagrad": lambda n: o.Adagrad(n.parameters()), "adadelta": lambda n: o.Adadelta(n.parameters()),
        "adamax": lambda n: o.Adamax(n.parameters()), "nadam": lambda n: o.NAdam(n.parameters()),
        "radam": lambda n: o.RAdam(n.parameters()), "asgd": lambda n: o.ASGD(n.parameters()),
        "rprop": lambda n: o.Rprop(n.parameters()), "adafactor": lambda n: o.Adafactor(n.parameters()),
        "named": lambda n: o.AdamW(list(n.named_parameters()), lr=1e-3)}
    for name, make in makers.items():
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            if name == "fused" and dtype == torch.bfloat16:
                continue
            net, optimizer, scheduler = trained(make, dtype)
            tail = str(dtype).split(".")[1]
            yield f"optimizer_{name}_{tail}", optimizer.state_dict()
            if name in ("adamw", "momentum", "named"):
                yield f"plain_{name}_{tail}", {"model": net.state_dict(), "optimizer": optimizer.state_dict(),
                                              "scheduler": scheduler.state_dict(), "step": 3, "loss": 0.5}


def schedulers():
    s = torch.optim.lr_scheduler
    for name, make in {
            "lambda": lambda o: s.LambdaLR(o, lambda k: 0.5), "cosine": lambda o: s.CosineAnnealingLR(o, 10),
            "linear": lambda o: s.LinearLR(o), "onecycle": lambda o: s.OneCycleLR(o, 0.1, total_steps=9),
            "plateau": lambda o: s.ReduceLROnPlateau(o), "multistep": lambda o: s.MultiStepLR(o, [2, 5]),
            "sequential": lambda o: s.SequentialLR(o, [s.LinearLR(o), s.ExponentialLR(o, 0.9)], [3])}.items():
        optimizer = torch.optim.SGD(model().parameters(), lr=0.1, momentum=0.9)
        scheduler = make(optimizer)
        for i in range(4):
            optimizer.step()
            scheduler.step(*([1.0] if name == "plateau" else []))
        yield f"scheduler_{name}", scheduler.state_dict()


def tensors():
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) - 7.5
    for dtype, name in DTYPES.items():
        data = torch.arange(8, dtype=torch.uint8)
        yield f"dtype_{name.lower()}", {"t": (data % 2 == 0) if dtype == torch.bool else data.repeat(3).view(dtype)}
    yield "views", {"whole": base, "transposed": base.transpose(0, 2), "row": base[1], "column": base[:, 1],
                    "every": base[:, ::2, 1::2], "expanded": base[0, 0, :1].expand(3, 4), "scalar": base[1, 2, 3],
                    "none": base[:0], "rank0": torch.tensor(2.5), "permuted": base.permute(1, 2, 0)}
    tied = torch.nn.Parameter(torch.ones(3, 2))
    yield "tied", {"embedding": tied, "head": tied, "again": tied.data[1:]}
    yield "parameter", torch.nn.Parameter(torch.full((2, 2), 0.1))
    yield "tensor", torch.full((3,), 0.1)


def containers():
    yield "numbers", [0, 1, 255, 256, 65535, 65536, 2**31 - 1, -1, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, -2**63 - 1,
                      2**64, 2**100, 0.1, -0.0, float("inf"), 5e-324, True, False, None]
    yield "texts", {"": "", "a b": "\\", "\u00e9": "\u20ac\U0001f600\n", "bytes": b"\x00\xff\x80abc", "none": b""}
    shared = (0.9, 0.999)
    yield "shared", {"a": shared, "b": [shared, shared], "c": {"d": shared}}
    yield "long", {"list": list(range(2500)), "dict": {f"k{i}": i for i in range(2500)}, "tuple": tuple(range(9))}
    deep = "leaf"
    for i in range(40):
        deep = [deep] if i % 2 else {"in": deep}
    yield "deep", deep
    yield "keys", {1: "one", "1": "text", -5: "minus", 2**40: "large", None: "none", 0.5: "half", (1, 2): "pair"}
    yield "torch_things", {"dtype": torch.float32, "size": torch.Size([2, 3]), "device": torch.device("cpu"),
                           "set": {3}, "complex": 1 + 2j}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    yield "scaler", scaler.state_dict() or {"scale": 4096.0}
    yield "empty", {}


def generators():
    random.seed(3)
    numpy.random.seed(3)
    torch.manual_seed(3)
    yield "rng_state", {"python": random.getstate(), "numpy": numpy.random.get_state(), "cpu": torch.get_rng_state()}
    yield "numpy_scalars", {"best": numpy.float64(0.25), "count": numpy.int64(3), "array": numpy.arange(6).reshape(2, 3)}


SMALL = ["optimizer_adamw_float32", "optimizer_amsgrad_bfloat16", "optimizer_momentum_float32", "optimizer_sgd_float32",
         "optimizer_named_float32", "optimizer_adafactor_float32", "optimizer_tensor_lr_float32", "plain_adamw_float32",
         "plain_momentum_bfloat16", "plain_named_float64", "scheduler_lambda", "scheduler_sequential",
         "dtype_bf16", "dtype_f16", "dtype_f8_e4m3", "dtype_c64", "views", "tied", "parameter", "tensor", "numbers",
         "texts", "shared", "deep", "keys", "torch_things", "empty", "rng_state", "numpy_scalars"]


def main():
    warnings.simplefilter("ignore")
    commit = sys.argv[1:] == ["--commit"]
    folder = HERE.parent / "golden" / "foreign" / "torch" if commit else pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for i, path in enumerate(sys.argv[2:]):
        shutil.copy(path, folder / f"{i}.pt")
        loaded = torch.load(path, weights_only=False)
        (folder / f"{i}.txt").write_text("\n".join(lines(loaded)) + "\n")
    if sys.argv[2:]:
        print(f"{len(sys.argv) - 2} files in {folder}")
        return
    for part in (optimizers, schedulers, tensors, containers, generators):
        for name, value in part():
            if commit and name not in SMALL:
                continue
            torch.save(value, folder / f"{name}.pt")
            loaded = torch.load(folder / f"{name}.pt", weights_only=False)
            (folder / f"{name}.txt").write_text("\n".join(lines(loaded)) + "\n")
            count += 1
    print(f"{count} files, {sum(f.stat().st_size for f in folder.iterdir())} bytes in {folder}")


if __name__ == "__main__":
    main()
