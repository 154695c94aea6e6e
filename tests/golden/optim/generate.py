# SPDX-License-Identifier: Apache-2.0
"""Writes vectors.txt: what the real optimizers and clip_grad_norm_ leave behind. See README.md.

    python generate.py OPTIMIZATION_PY > vectors.txt

OPTIMIZATION_PY is transformers/optimization.py of transformers 4.46.3, the last line of releases
with its own AdamW."""

import ast
import sys
import typing
from importlib.metadata import version

import numpy
import torch
import transformers
from olmo_core.optim import Lion, SkipStepAdamW, SkipStepLion
from transformers.optimization import Adafactor

COUNT, STEPS = 32, 6
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}


def mix(stream, index):
    """Returns 32 bits for an address; tests/optim/test_optim_real.c has the same function."""
    x = (stream * 0x9E3779B9 + index * 0x85EBCA6B) & 0xFFFFFFFF
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ x >> 16


def draw(stream, count, dtype, exponent):
    values = [((mix(stream, i) >> 8) - 2**23) * 2.0**exponent for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).to(DTYPES[dtype])


def hexadecimal(tensor):
    kind = "<u8" if tensor.dtype == torch.float64 else "<u4"
    wide = tensor if tensor.dtype == torch.float64 else tensor.float()
    digits = 16 if tensor.dtype == torch.float64 else 8
    flat = wide.detach().reshape(-1).numpy().view(kind)
    nans = numpy.isnan(wide.detach().reshape(-1).numpy())
    return "".join("n" * digits if nan else f"{int(x):0{digits}x}" for x, nan in zip(flat, nans))


def correct_root(self):
    """Returns IEEE's square root: torch's comes from MKL, which misses it for one f32 in six."""
    if self.dtype == torch.bfloat16:
        return REAL_ROOT(self)
    return torch.from_numpy(numpy.asarray(numpy.sqrt(self.detach().numpy())))


REAL_ROOT = torch.Tensor.sqrt


def legacy_adamw(path):
    """Loads the class alone, since its module wants another release of everything."""
    with open(path, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "AdamW"]
    names = {"Optimizer": torch.optim.Optimizer, "torch": torch, "nn": torch.nn,
             "math": __import__("math"), "warnings": __import__("warnings"),
             "require_version": lambda *_: None, **vars(typing)}
    exec(compile(ast.Module(found, []), path, "exec"), names)  # pylint: disable=exec-used
    return lambda *a, **k: names["AdamW"](*a, no_deprecation_warning=True, **k)


def run(make, dtype, rows, lr, skip=None, scale=1.0, before_step=None):
    shape = (rows, COUNT // rows) if rows > 1 else (COUNT,)
    p = torch.nn.Parameter(draw(1, COUNT, dtype, -27).reshape(shape))
    optimizer = make([p], lr)
    for t in range(STEPS):
        p.grad = (draw(t + 2, COUNT, dtype, -29) * scale).reshape(shape)
        if t == skip:
            p.grad.view(-1)[5] = float("nan")
        if before_step:
            before_step(optimizer, t == skip)
        optimizer.step()
    return p, optimizer.state[p]


def emit(name, optimizer, dtype, lr, weight_decay, words, check, make, slots, rows=1, **more):
    torch.Tensor.sqrt = correct_root
    try:
        p, state = run(make, dtype, rows, lr, **more)
    finally:
        torch.Tensor.sqrt = REAL_ROOT
    parts = [optimizer, f"by={name}", f"dtype={dtype}", f"rows={rows}", f"lr={lr!r}",
             f"weight_decay={weight_decay!r}", check]
    if more.get("skip") is not None:
        parts.append(f"skip={more['skip']}")
    if more.get("scale", 1.0) != 1.0:
        parts.append(f"scale={more['scale']!r}")
    parts += words + [f"p={hexadecimal(p)}"]
    parts += [f"slot{i}={hexadecimal(state[s])}" for i, s in enumerate(slots) if s in state]
    print(" ".join(parts))


MOMENTS = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]


def adam_cases():
    for cls, optimizer in ((torch.optim.AdamW, "adamw"), (torch.optim.Adam, "adam")):
        for dtype in DTYPES:
            for wd, amsgrad, beta1 in ((0.1, False, 0.9), (0.0, True, 0.4)):
                lr = 1e-2 if dtype == "bf16" else 1e-3
                check = "within=2e-16" if dtype == "f64" else "exact"  # pow differs by an ulp
                options = {"weight_decay": wd, "amsgrad": amsgrad, "betas": (beta1, 0.999)}
                emit(f"torch.optim.{cls.__name__}", optimizer, dtype, lr, wd,
                     ["variant=torch-cpu", f"beta1={beta1}", f"amsgrad={str(amsgrad).lower()}"],
                     check, lambda p, lr: cls(p, lr, foreach=False, **options), MOMENTS)


def torch_variant_cases():
    module = sys.modules[torch.optim.Adam.__module__]
    module._get_capturable_supported_devices = lambda *_, **__: ["cpu"]
    for cls, optimizer in ((torch.optim.AdamW, "adamw"), (torch.optim.Adam, "adam")):
        for amsgrad in (False, True):
            eps = 1e-3 if amsgrad else 1e-8
            options = {"weight_decay": 0.1, "amsgrad": amsgrad, "eps": eps}
            word = f"amsgrad={str(amsgrad).lower()} eps={eps!r}"
            name = f"torch.optim.{cls.__name__}"
            emit(name + "(capturable)", optimizer, "f64", 1e-3, 0.1,
                 ["variant=torch-capturable", word], "within=1e-14",
                 lambda p, lr: cls(p, lr, foreach=False, capturable=True, **options), MOMENTS)
            emit(name + "(capturable)", optimizer, "f32", 1e-3, 0.1,
                 ["variant=torch-capturable", word], "within=3e-7",
                 lambda p, lr: cls(p, lr, foreach=False, capturable=True, **options), MOMENTS)
            emit(name + "(fused)", optimizer, "f64", 1e-3, 0.1, ["variant=torch-fused", word],
                 "within=1e-14", lambda p, lr: cls(p, lr, fused=True, **options), MOMENTS)

    def scaler(optimizer, overflow):
        optimizer.grad_scale = torch.tensor(8.0)
        optimizer.found_inf = torch.tensor(1.0 if overflow else 0.0)

    emit("torch.optim.AdamW(fused,GradScaler)", "adamw", "f64", 1e-3, 0.1, ["variant=torch-fused"],
         "within=1e-14", lambda p, lr: torch.optim.AdamW(p, lr, fused=True, weight_decay=0.1),
         MOMENTS, skip=3, scale=8.0, before_step=scaler)


def olmo_cases():
    def factor(optimizer, skipped):
        optimizer.get_step_factor = lambda: torch.tensor(0.0 if skipped else 1.0)

    for foreach in (False, True):
        variant = "olmo-skip-step-foreach" if foreach else "olmo-skip-step"
        for dtype, check in (("f64", "within=1e-14"), ("f32", "within=3e-7")):
            for fixed, skip in ((True, None), (False, None), (True, 3)):
                emit("olmo_core.optim.SkipStepAdamW", "adamw", dtype, 1e-3, 0.1,
                     [f"variant={variant}", f"t={'counted' if fixed else 'frozen'}"], check,
                     lambda p, lr: SkipStepAdamW(p, lr, weight_decay=0.1, foreach=foreach,
                                                 step_increment_bugfix=fixed),
                     MOMENTS, skip=skip, before_step=factor)
    for dtype in DTYPES:
        lr = 1e-3 if dtype == "bf16" else 1e-4
        emit("olmo_core.optim.Lion", "lion", dtype, lr, 0.1, ["variant=torch-cpu"], "exact",
             lambda p, lr: Lion(p, lr, weight_decay=0.1), MOMENTS)
        emit("olmo_core.optim.SkipStepLion", "lion", dtype, lr, 0.1,
             ["variant=torch-cpu", "on_nonfinite=zero", "beta2=0.95"], "exact",
             lambda p, lr: SkipStepLion(p, lr, weight_decay=0.1, betas=(0.9, 0.95)), MOMENTS,
             skip=3, before_step=factor)


def sgd_cases():
    for dtype in DTYPES:
        for mu, damp, nesterov, wd in ((0.0, 0.0, False, 0.1), (0.9, 0.3, False, 0.1),
                                       (0.9, 0.0, True, 0.01)):
            emit("torch.optim.SGD", "sgd", dtype, 0.03, wd,
                 ["variant=torch-cpu", f"momentum={mu}", f"dampening={damp}",
                  f"nesterov={str(nesterov).lower()}"], "exact",
                 lambda p, lr: torch.optim.SGD(p, lr, mu, damp, wd, nesterov, foreach=False),
                 ["momentum_buffer"] if mu else [])


def adafactor_cases():
    slots = ["exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq", "exp_avg"]
    for dtype, check in (("f64", "within=1e-13"), ("f32", "within=1e-6"), ("bf16", "within=4e-3")):
        for rows in (1, 4):
            for relative, scale, warm, beta1, wd in (
                    (False, False, False, None, 0.1), (False, True, False, 0.9, 0.1),
                    (True, True, True, None, 0.0), (True, False, False, None, 0.1)):
                options = {"relative_step": relative, "scale_parameter": scale,
                           "warmup_init": warm, "beta1": beta1, "weight_decay": wd}
                words = [f"{k}={str(v).lower()}" for k, v in options.items() if k != "weight_decay"]
                emit("transformers.optimization.Adafactor", "adafactor", dtype, 1e-2, wd, words,
                     check,
                     lambda p, lr: Adafactor(p, lr=None if relative else lr, **options),
                     slots if dtype != "bf16" else [], rows=rows)


def legacy_cases(path):
    make = legacy_adamw(path)
    for dtype, check in (("f64", "within=1e-14"), ("f32", "within=3e-7")):
        for correct in (True, False):
            emit("transformers.AdamW-4.46.3", "adamw", dtype, 1e-3, 0.1,
                 ["variant=hf-legacy", f"bias_correction={str(correct).lower()}"], check,
                 lambda p, lr: make(p, lr=lr, weight_decay=0.1, eps=1e-8, correct_bias=correct),
                 MOMENTS)


def clip_cases():
    for dtype in DTYPES:
        for maximum in (0.01, 0.05, 1.0):
            parameters = []
            for i, count in enumerate((32, 7, 100)):
                p = torch.nn.Parameter(draw(20 + i, count, dtype, -27))
                p.grad = draw(30 + i, count, dtype, -29)
                parameters.append(p)
            norm = torch.nn.utils.clip_grad_norm_(parameters, maximum, foreach=False)
            assert norm.dtype == DTYPES[dtype]
            print(f"clip by=torch.nn.utils.clip_grad_norm_ dtype={dtype} max_norm={maximum!r} "
                  f"norm={hexadecimal(norm)} p={hexadecimal(parameters[0].grad)}")


def main():
    torch.set_num_threads(1)
    print("# twinstep optimizer vectors 1")
    print(f"# torch {torch.__version__.split('+')[0]} on {torch.backends.cpu.get_cpu_capability()},"
          f" transformers {transformers.__version__}, ai2-olmo-core {version('ai2-olmo-core')}")
    adam_cases()
    torch_variant_cases()
    olmo_cases()
    sgd_cases()
    adafactor_cases()
    legacy_cases(sys.argv[1])
    clip_cases()


if __name__ == "__main__":
    main()
