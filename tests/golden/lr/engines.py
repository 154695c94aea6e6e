# SPDX-License-Identifier: Apache-2.0
"""Cases from the engine of deepspeed 0.14.0, plain and with skipped updates.

On a CPU that release wants two Intel packages and oneCCL. Empty modules stand in for the packages, and
torch's gloo for oneCCL: one process exchanges nothing. The engine, its FP16 optimizer and its
schedulers are as released."""

import importlib.machinery
import logging
import os
import random
import sys
import types

import torch

import skips
import trainers
from golden import SEED


def load(path):
    for name in ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module._C = types.SimpleNamespace(_has_xpu=lambda: False)
        sys.modules[name] = module
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29536", RANK="0", WORLD_SIZE="1",
                      LOCAL_RANK="0", LOCAL_SIZE="1", DS_ACCELERATOR="cpu", CCL_WORKER_COUNT="1")
    sys.path.insert(0, path)
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    assert deepspeed.__version__.startswith("0.14.0")
    get_accelerator()._communication_backend_name = "gloo"
    kind = type(get_accelerator())
    kind.is_fp16_supported = lambda _: True
    kind.supported_dtypes = lambda _: [torch.float, torch.half, torch.bfloat16]
    return deepspeed


def cases(path):
    logging.disable(logging.CRITICAL)
    rng, deepspeed = random.Random(f"{SEED} deepspeed 0.14.0"), load(path)
    names = ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "linear"]
    found = [trainers.run_deepspeed(rng, deepspeed, klass, "-old") for klass in names
             for _ in range(5)]
    config = {"fp16": {"enabled": True, "initial_scale_power": 6}}
    return found + [skips.deepspeed_case(rng, deepspeed, klass, config, "-old")
                    for klass in names[1:] for _ in range(3)]
