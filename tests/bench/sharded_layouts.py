#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/foreign/layouts: how FSDP, torch.distributed.checkpoint, DeepSpeed, Megatron,
bitsandbytes and torchao lay out what they save, each written by the library itself with one process
on a CPU. Every pair NAME-1, NAME-2 stands before and after one update of AdamW at LR 0.001.

    sharded_layouts.py [FOLDER ...]

Each FOLDER was made by `pip install --no-deps --target FOLDER` of one of deepspeed 0.19.8 (with
hjson, py-cpuinfo, msgpack, einops), megatron-core 0.16.1, bitsandbytes 0.50.2, torchao 0.18.0; what
is not there is left as it is. torch 2.15.0 and accelerate 1.15.0 wrote the rest. Megatron's save is
called with tensors of a plain model: no model of its own was trained."""

import os
import pathlib
import random
import re
import runpy
import shutil
import subprocess
import sys
import types
import warnings

warnings.simplefilter("ignore")
sys.path += sys.argv[1:]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29617", RANK="0", WORLD_SIZE="1",
                  LOCAL_RANK="0", DS_ACCELERATOR="cpu",
                  PYTHONPATH=os.pathsep.join(sys.argv[1:]))

import numpy  # noqa: E402
import torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "golden" / "foreign" / "layouts"
LR = 1e-3


def make(width=4):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Embedding(6, width), torch.nn.Linear(width, 6))


def step(net, optimizer, k=0):
    net((torch.arange(6) + k) % 6).float().square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def adamw(net):
    return torch.optim.AdamW(net.parameters(), lr=LR)


def convert(source, out):
    subprocess.run([sys.executable, "-m", "torch.distributed.checkpoint.format_utils",
                    "dcp_to_torch", source, out], check=True, capture_output=True)


def gather(source, out):
    """Runs gather.py of docs/CHECKPOINTS.md."""
    page = (ROOT / "docs" / "CHECKPOINTS.md").read_text(encoding="utf-8")
    program = re.search(r"<!-- file: gather.py -->\n```python\n(.*?)```\n", page, re.S).group(1)
    path = OUT / "gather.py"
    path.write_text(program, encoding="utf-8")
    old, sys.argv = sys.argv, ["gather.py", str(source), str(out)]
    runpy.run_path(str(path))
    sys.argv = old
    path.unlink()


def scratch(name):
    folder = OUT / "scratch" / name
    folder.parent.mkdir(exist_ok=True)
    return folder


# ---- torch ----

def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel as Wrapped, StateDictType
    net = Wrapped(make(), use_orig_params=True, device_id=torch.device("cpu"))
    optimizer = adamw(net)
    for k in range(2):
        step(net, optimizer, k)
        with Wrapped.state_dict_type(net, StateDictType.FULL_STATE_DICT):
            torch.save({"model": net.state_dict(),
                        "optimizer": Wrapped.optim_state_dict(net, optimizer)},
                       OUT / f"fsdp1_full-{k + 1}.pt")


def fsdp2():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                         get_state_dict)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    net = make()
    fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
    optimizer = adamw(net)
    for k in range(2):
        step(net, optimizer, k)
        model, states = get_state_dict(net, optimizer, options=StateDictOptions(
            full_state_dict=True, cpu_offload=True))
        torch.save({"model": model, "optimizer": states}, OUT / f"fsdp2_full-{k + 1}.pt")
        model, states = get_state_dict(net, optimizer)
        dcp.save({"model": model, "optimizer": states}, checkpoint_id=scratch(f"dcp-{k + 1}"))
        convert(scratch(f"dcp-{k + 1}"), OUT / f"dcp_converted-{k + 1}.pt")
        model, states = get_state_dict(net, optimizer, options=StateDictOptions(
            flatten_optimizer_state_dict=True))
        dcp.save({**model, **states}, checkpoint_id=scratch(f"flat-{k + 1}"))
        convert(scratch(f"flat-{k + 1}"), scratch(f"flat-{k + 1}.pt"))
        gather(scratch(f"flat-{k + 1}.pt"), OUT / f"flat_gathered-{k + 1}.pt")
    shutil.copy(scratch("flat-1.pt"), OUT / "flat.pt")
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, OUT / "dtensor.pt")
    dcp.save(get_model_state_dict(net), storage_writer=dcp.HuggingFaceStorageWriter(
        path=str(OUT / "dcp_safetensors"), save_distributed=True))


def accelerate():
    from accelerate import FullyShardedDataParallelPlugin, PartialState
    from accelerate.utils import DistributedType
    from accelerate.utils.fsdp_utils import save_fsdp_model, save_fsdp_optimizer
    from torch.distributed.fsdp import FullyShardedDataParallel as Wrapped
    PartialState(cpu=True)
    for kind in ("full", "sharded", "local"):
        folder = OUT / f"accelerate_{kind}"
        folder.mkdir(parents=True, exist_ok=True)
        plugin = FullyShardedDataParallelPlugin(fsdp_version=1,
                                                state_dict_type=f"{kind.upper()}_STATE_DICT")
        this = types.SimpleNamespace(  # Accelerator itself makes no FSDP without a GPU
            process_index=0, num_processes=1, is_fsdp2=False, is_main_process=True,
            wait_for_everyone=lambda: None, distributed_type=DistributedType.FSDP,
            state=types.SimpleNamespace(fsdp_plugin=plugin), parallelism_config=None,
            device=torch.device("cpu"))
        net = Wrapped(make(), use_orig_params=True, device_id=torch.device("cpu"))
        optimizer = adamw(net)
        step(net, optimizer)
        save_fsdp_model(plugin, this, net, str(folder))
        if kind == "full":  # shards of an optimizer look as those of weights do, and are large
            save_fsdp_optimizer(plugin, this, optimizer, net, str(folder))


def wrapped():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    ddp = torch.nn.parallel.DistributedDataParallel(make())
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.AdamW, lr=LR)
    compiled = torch.compile(make(), backend="eager")
    other = adamw(compiled)
    for k in range(2):
        step(ddp, optimizer, k)
        optimizer.consolidate_state_dict()
        torch.save({"model": ddp.state_dict(), "optimizer": optimizer.state_dict()},
                   OUT / f"zero_redundancy-{k + 1}.pt")
        step(compiled, other, k)
        torch.save({"model": compiled.state_dict(), "optimizer": other.state_dict()},
                   OUT / f"compiled-{k + 1}.pt")


def objects():
    net = make()
    optimizer = adamw(net)
    step(net, optimizer)
    torch.save(net, OUT / "whole_module.pt")
    torch.save({"model": net, "optimizer": optimizer}, OUT / "whole_objects.pt")
    torch.jit.save(torch.jit.script(net), str(OUT / "script.pt"))


# ---- others ----

def deepspeed():
    import deepspeed as library
    for stage in (0, 1, 3):
        net = make()
        config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage},
                  "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
        optimizer = torch.optim.AdamW([{"params": [net[0].weight, net[1].weight]},
                                       {"params": [net[1].bias], "weight_decay": 0.0}], lr=LR)
        engine = library.initialize(model=net, optimizer=optimizer, config=config)[0]
        for k in range(2):
            engine.backward(engine((torch.arange(6) + k) % 6).float().square().sum())
            engine.step()
            folder = scratch(f"zero{stage}")
            engine.save_checkpoint(folder, tag=f"global_step{k + 1}")
            folder /= f"global_step{k + 1}"
            if stage == 0:
                shutil.copytree(folder, OUT / f"deepspeed0-{k + 1}", dirs_exist_ok=True)
                continue
            universal = scratch(f"universal{stage}-{k + 1}")
            subprocess.run([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal",
                            "--inject_missing_state", "--input_folder", folder, "--output_folder",
                            universal], check=True, capture_output=True)
            gather(universal, OUT / f"deepspeed{stage}_gathered-{k + 1}.pt")
        if stage > 0:
            shutil.copytree(folder, OUT / f"deepspeed{stage}", dirs_exist_ok=True)
    (OUT / "universal" / "zero" / "1.bias").mkdir(parents=True, exist_ok=True)
    for name in ("mp_rank_00_model_states.pt", "zero/1.bias/fp32.pt"):
        shutil.copy(scratch("universal1-2") / name, OUT / "universal" / name)


def megatron():
    from megatron.core import dist_checkpointing
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: "cpu"
    net = make()
    optimizer = adamw(net)
    step(net, optimizer)
    sharded = dist_checkpointing.ShardedTensor.from_rank_offsets
    state = {"iteration": 1}
    for name, weight in net.named_parameters():
        state[name] = sharded(name, weight.detach())
        key = f"optimizer.state.exp_avg.{name}"
        state[key] = sharded(key, optimizer.state[weight]["exp_avg"])
    folder = OUT / "megatron" / "iter_0000001"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    here = os.getcwd()
    os.chdir(OUT)  # .metadata keeps the path as it was given
    dist_checkpointing.save(state, os.path.join("megatron", folder.name))
    os.chdir(here)
    (folder.parent / "latest_checkpointed_iteration.txt").write_text("1")
    convert(folder, OUT / "megatron_converted.pt")


def bitsandbytes():
    import bitsandbytes as library
    net = make(16)
    for name, optimizer in (
            ("bitsandbytes8", library.optim.AdamW8bit(net.parameters(), min_8bit_size=16)),
            ("bitsandbytes32", library.optim.AdamW(net.parameters()))):
        step(net, optimizer)
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()},
                   OUT / f"{name}.pt")


def torchao():
    from torchao.optim import AdamW8bit
    net = torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16)
    optimizer = AdamW8bit(net.parameters())
    net(torch.ones(2, 64, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, OUT / "torchao8.pt")


def generators():
    """States of generators as loops save them: bare, listed, in a dict; and what is none."""
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    device = torch.zeros(16, dtype=torch.uint8)
    torch.save({"model": {"w": torch.ones(2)}, "rng": torch.get_rng_state(),
                "rng_state": random.getstate(),
                "rng_states": [device, device, {"ours": torch.get_rng_state()}, 5, "none", device[:3]],
                "random_states": 17, "cuda_rng_state": device[:5],
                "torch_rng_state": {0: device, "of a dict": device},
                "numpy_rng_state": numpy.random.get_state()}, OUT / "generators.pt")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    torch.distributed.init_process_group("gloo")
    for part in (fsdp1, fsdp2, accelerate, wrapped, objects, generators, deepspeed, megatron,
                 bitsandbytes, torchao):
        try:
            part()
        except ImportError as missing:
            print(f"{part.__name__}: left as it is: {missing}")
    shutil.rmtree(OUT / "scratch", ignore_errors=True)
    files = [f for f in OUT.rglob("*") if f.is_file()]
    print(f"{len(files)} files, {sum(f.stat().st_size for f in files)} bytes")


if __name__ == "__main__":
    main()
