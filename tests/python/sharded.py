# SPDX-License-Identifier: Apache-2.0
"""Trainings on several gloo ranks for test_record_ranks_torch.py, which runs it:

    sharded.py CASE,CASE... FOLDER WORLD

Every rank has the same rows, so that what is replicated by nobody stays equal. Each case writes
FOLDER/CASE*.h5, and rank 0 writes FOLDER/CASE.json: digests and norms of the whole tensors, which
every rank has put together with `full_tensor()`, by numpy."""
import json
import resource
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

import twinstep
from twinstep.record import digest

UPDATES = 4
LIMIT = 80_000      # bytes: a file grows beyond at its 65th update


def plain_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Linear(12, 5, bias=False),
                               torch.nn.Linear(5, 1))


def in_parts(model, mesh):
    """The first two layers as tensor parallelism has them; the third stays as it is."""
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})


def build(case, world):
    """The model as the case shards it."""
    model = plain_model()
    if case == "whole":
        return model
    if case in ("flat", "mixed"):
        mesh = init_device_mesh("cpu", (world,))
        for layer in list(model)[:1 if case == "mixed" else 3]:
            fully_shard(layer, mesh=mesh)
        return model
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("outer", "inner"))
    if case == "hsdp":
        for layer in model:
            fully_shard(layer, mesh=mesh)
        return model
    in_parts(model, mesh["inner"])
    if case == "dp_tp":
        for layer in model:
            fully_shard(layer, mesh=mesh["outer"])
    return model        # "tp": each half of the ranks has a mesh of its own


def full(t):
    return (t.full_tensor() if hasattr(t, "full_tensor") else t).detach().contiguous()


def keyed(name, t):
    t = full(t)
    return digest.close(name, "f32", tuple(t.shape),
                        digest._sum_by_numpy(t.data_ptr(), 4, 0, t.numel())).hex()


def norm(tensors):
    return float(sum(full(t).double().square().sum() for t in tensors) ** 0.5)


def step(model, optimizer, k, clip):
    torch.manual_seed(100 + k)
    model(torch.randn(8, 8)).square().mean().backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    optimizer.zero_grad()


def watched(case, folder, world):
    """A few updates, recorded and written down."""
    model = build(case, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    truth = []
    with twinstep.Recorder(model, optimizer, path=f"{folder}/{case}.h5", every=1,
                           quiet=True) as recorder:
        for k in range(UPDATES):
            said = {}
            torch.manual_seed(100 + k)
            model(torch.randn(8, 8)).square().mean().backward()
            said["gradients"] = [keyed(n, p.grad) for n, p in model.named_parameters()]
            said["norm"] = norm([p.grad for p in model.parameters()])
            # torch clips no list that has both, and none of two meshes
            if case in ("whole", "flat", "hsdp") and k % 2:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            said["taken"] = norm([p.grad for p in model.parameters()])
            optimizer.step()
            optimizer.zero_grad()
            recorder.update()
            weights = [keyed(n, p) for n, p in model.named_parameters()]
            moments = [keyed(f"{n}/{key}", optimizer.state[p][key])
                       for n, p in model.named_parameters()
                       for key in ("exp_avg", "exp_avg_sq", "step")]
            said["weights"] = weights
            said["state"] = digest.listed("state", map(bytes.fromhex, weights + moments)).hex()
            said["after"] = norm(list(model.parameters()))
            truth.append(said)
    if dist.get_rank() == 0:
        with open(f"{folder}/{case}.json", "w", encoding="utf-8") as file:
            json.dump(truth, file)


def partial(case, folder, world):
    """Clips by a norm that the loop took itself, of which each rank has that of its shard."""
    layer = plain_model()[0]
    fully_shard(layer, mesh=init_device_mesh("cpu", (world,)))
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-2)
    truth = []
    with twinstep.Recorder(layer, optimizer, path=f"{folder}/{case}.h5", every=1,
                           quiet=True) as recorder:
        for k in range(UPDATES):
            torch.manual_seed(100 + k)
            layer(torch.randn(8, 8)).square().mean().backward()
            gradients = [p.grad for p in layer.parameters()]
            total = torch.linalg.vector_norm(gradients[0])
            if not total.placements[0].is_partial():
                raise AssertionError(f"a norm of all ranks: {total.placements}")
            layer.bias.grad = None      # so that this norm is that of all gradients
            said = norm(gradients[:1])
            torch.nn.utils.clip_grads_with_norm_(layer.parameters(), 0.1, total)
            truth.append([said, norm(gradients[:1])])
            optimizer.step()
            optimizer.zero_grad()
            recorder.update()
    if dist.get_rank() == 0:
        with open(f"{folder}/{case}.json", "w", encoding="utf-8") as file:
            json.dump(truth, file)


def replicas(case, folder, world):
    """DDP on rows of each rank's own, recorded or not (\"ddp_bare\"); rank 0 writes the weights."""
    model = torch.nn.parallel.DistributedDataParallel(plain_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    recorder = None if case == "ddp_bare" else twinstep.Recorder(
        model, optimizer, path=f"{folder}/{case}.h5", every=1, quiet=True).start()
    truth = []
    for k in range(UPDATES):
        torch.manual_seed(100 + world * k + dist.get_rank())
        model(torch.randn(8, 8)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
        if recorder:
            recorder.update()
        truth.append([keyed(n, p) for n, p in model.module.named_parameters()])
    if recorder:
        recorder.close()
    if dist.get_rank() == 0:
        with open(f"{folder}/{case}.json", "w", encoding="utf-8") as file:
            json.dump(truth, file)


def leaves(case, folder, world):
    """80 updates in which the last rank's recorder ends early, by a full disk, by an error of its
    own, or because its `with` was left; and the weights at the end."""
    model = build("flat", world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    mine = dist.get_rank() == world - 1
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = None
    if case != "bare":
        if mine and case == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, old[1]))     # its writer inherits it
        recorder = twinstep.Recorder(model, optimizer, path=f"{folder}/{case}.h5", quiet=True).start()
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in range(80):
            if mine and k == 5 and case == "error":
                recorder._read_groups = None
            if mine and k == 5 and case == "left":
                recorder.close(complete=False)
                recorder = None
            step(model, optimizer, k, clip=True)
            if recorder:
                recorder.update()
        if recorder and case != "exit":
            recorder.close()
    said = [str(w.message) for w in seen if "twinstep" in str(w.message)]
    with open(f"{folder}/{case}.rank{dist.get_rank()}.json", "w", encoding="utf-8") as file:
        json.dump({"said": said, "weights": [keyed(n, p) for n, p in model.named_parameters()]},
                  file)


def others(case, folder, world):
    """Three updates of two micro-batches, of which FSDP2 holds the first one's gradients back, with
    backward passes of another model between; rank 0 writes the losses."""
    model, other = build("flat", world), plain_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    with twinstep.Recorder(model, optimizer, path=f"{folder}/{case}.h5", quiet=True) as recorder:
        for k in range(3):
            other(torch.randn(8, 8)).square().mean().backward()
            of = []
            for last in (False, True):
                for layer in model:
                    layer.set_requires_gradient_sync(last)
                loss = model(torch.randn(8, 8)).square().mean()
                loss.backward()
                of.append(float(loss.detach()))
                other(torch.randn(8, 8)).square().mean().backward()
            losses.append(sum(of))
            optimizer.step()
            optimizer.zero_grad()
            recorder.update()
    with open(f"{folder}/{case}.rank{dist.get_rank()}.json", "w", encoding="utf-8") as file:
        json.dump(losses, file)


def work(rank, world, cases, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{cases}", rank=rank,
                            world_size=world)
    for case in cases.split(","):
        does = {"others": others, "partial": partial, "ddp": replicas, "ddp_bare": replicas, **dict.fromkeys(
            ("whole", "flat", "mixed", "hsdp", "dp_tp", "tp"), watched)}.get(case, leaves)
        does(case, folder, world)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (int(sys.argv[3]), sys.argv[1], sys.argv[2]),
                                nprocs=int(sys.argv[3]))
