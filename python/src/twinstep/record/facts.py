# SPDX-License-Identifier: Apache-2.0
"""What is true of a training as a whole, as lines `key: value`, and the generators' states.

Host, time and paths are left out, so two runs that are meant to be the same have the same lines."""
from __future__ import annotations

import os
import platform
import random
import sys
from hashlib import sha256
from typing import Any, Iterable, Mapping

import torch

VARIABLES = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS",
             "MKL_NUM_THREADS", "MKL_CBWR", "PYTHONHASHSEED", "TORCH_BLAS_PREFER_CUBLASLT",
             "NCCL_ALGO", "NCCL_PROTO", "CUDA_LAUNCH_BLOCKING")


def environment(devices: Iterable[torch.device]) -> dict[str, str]:
    """Versions, flags of determinism and facts of the devices: `env.torch`, ..."""
    b = torch.backends
    facts: dict[str, Any] = {
        "torch": torch.__version__, "python": platform.python_version(),
        "cuda": torch.version.cuda, "cudnn": None, "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": b.cudnn.benchmark, "cudnn_deterministic": b.cudnn.deterministic,
        "cudnn_tf32": b.cudnn.allow_tf32, "tf32": b.cuda.matmul.allow_tf32,
        "bf16_reduced": b.cuda.matmul.allow_bf16_reduced_precision_reduction,
        "cpu": b.cpu.get_cpu_capability(), "machine": platform.machine()}
    for name in ("transformers", "trl", "accelerate", "lightning", "deepspeed"):
        if name in sys.modules:
            facts[name] = getattr(sys.modules[name], "__version__", None)
    for i, device in enumerate(sorted({d for d in devices if d.type == "cuda"}, key=str)):
        of = torch.cuda.get_device_properties(device)
        facts[f"device.{i}"] = f"{of.name}, {of.major}.{of.minor}, {of.multi_processor_count} SMs"
        facts["cudnn"] = b.cudnn.version()
    facts.update({name: os.environ[name] for name in VARIABLES if name in os.environ})
    return {f"env.{key}": str(value) for key, value in facts.items() if value is not None}


def optimizers(every: Iterable[torch.optim.Optimizer]) -> dict[str, str]:
    """Class and settings of each group but the learning rate, which is a column."""
    lines = {}
    for i, optimizer in enumerate(every):
        lines[f"optimizer.{i}"] = type(optimizer).__name__
        for g, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if key in ("params", "lr") or isinstance(value, torch.Tensor):
                    continue
                lines[f"optimizer.{i}.{g}.{key}"] = str(value)
    return lines


def lines(facts: Mapping[str, Any]) -> str:
    """`key: value` lines. A line break or a colon at a key's end would make other lines of it."""
    def clean(word: Any) -> str:
        """The printable characters of a word on one line."""
        return " ".join("".join(c if c.isprintable() else " " for c in str(word)).split())
    return "".join(f"{clean(k).replace(':', '.')}: {clean(v)}\n" for k, v in facts.items())


def generators(devices: Iterable[torch.device]) -> dict[str, bytes]:
    """32 bytes of the state of each generator: Python's, numpy's, torch's, the devices'."""
    raw = {"python": repr(random.getstate()).encode(),
           "torch": bytes(torch.get_rng_state().numpy().data)}
    if "numpy" in sys.modules:
        kind, words, *rest = sys.modules["numpy"].random.get_state()
        raw["numpy"] = words.tobytes() + repr((kind, rest)).encode()
    for device in sorted({d for d in devices if d.type == "cuda"}, key=str):
        raw[str(device)] = bytes(torch.cuda.get_rng_state(device).numpy().data)
    return {name: sha256(state).digest() for name, state in raw.items()}


def moved(start: Mapping[str, bytes], now: Mapping[str, bytes]) -> bytes:
    """32 bytes of the states of those generators that drew since `start`. One that nobody uses is
    often not seeded, so it would differ between runs and mean nothing."""
    whole = sha256()
    for name in sorted(now):
        if now[name] != start.get(name):
            whole.update(name.encode() + now[name])
    return whole.digest()
