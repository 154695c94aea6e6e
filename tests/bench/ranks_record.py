#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what real libraries do with the terms of several ranks: tests/golden/ranks/.

    ranks_record.py mpi OUT          groupings of Open MPI; needs mpicc and mpirun
    ranks_record.py gloo OUT         groupings of Gloo; needs torch
    ranks_record.py buckets OUT      which tensors DDP puts into which bucket; needs torch
    ranks_record.py gradients OUT    gradients of DDP and FSDP2, in bits; needs torch
    ranks_record.py deals OUT        samples of DistributedSampler and Accelerate; needs both
    ranks_record.py arrivals OUT     in which order gradients of transformers' models are ready
    ranks_record.py llama OUT        two updates of a small Llama under DDP; both need transformers
    ranks_record.py tensor OUT       an MLP under torch's tensor parallelism, in bits; needs torch
    ranks_record.py forgets OUT      norms whose gradients tensor-parallel ranks do not sum
    ranks_record.py fed OUT          ranks of one tensor-parallel group with other samples each
    ranks_record.py differ OUT       counts the numbers in which recorded gradients differ

Everything runs on processors of one machine, so neither a GPU nor a network is needed. OUT is the
folder that the files go to; docs/RANKS.md says what is in them. Not a test: run by hand, and the
tests of tests/ranks/ hold ranks/ against what is committed."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

COUNTS = [1, 3, 7, 50, 1000, 6000, 40001]
MPI = [("allreduce", number) for number in (1, 3, 4, 5, 6)] + [("reduce_scatter", 2),
                                                               ("reduce_scatter", 3),
                                                               ("reduce_scatter", 4)]


def write(path, about, lines):
    text = "".join(f"# {line}\n" for line in about) + "".join(f"{line}\n" for line in lines)
    path.write_text(text)
    print(f"{path}: {len(text)} bytes", file=sys.stderr)


# ---- Open MPI ----

def mpi_environment():
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1"}


def record_mpi(out):
    version = subprocess.run(["mpirun", "--version"], check=True, capture_output=True, text=True)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mpi_order"
        source = pathlib.Path(__file__).with_name("mpi_order.c")
        subprocess.run(["mpicc", "-std=c11", "-O1", "-o", program, source], check=True)
        for collective, number in MPI:
            for ranks in range(2, 9):
                command = ["mpirun", "-n", str(ranks), "--oversubscribe",
                           "--mca", "mpi_yield_when_idle", "1",
                           "--mca", "coll_tuned_use_dynamic_rules", "1",
                           "--mca", f"coll_tuned_{collective}_algorithm", str(number),
                           program, collective, *map(str, COUNTS)]
                done = subprocess.run(command, check=True, capture_output=True, text=True,
                                      env=mpi_environment(), timeout=600)
                lines += [f"{collective} {number} 4 {line}" for line in done.stdout.split("\n")
                          if line]
    write(out / "open-mpi.txt",
          [version.stdout.split("\n")[0] + ", coll_tuned_COLLECTIVE_algorithm forced to NUMBER",
           "COLLECTIVE NUMBER WIDTH RANKS COUNT START END DIGITS: docs/RANKS.md"], lines)


# ---- torch.distributed over Gloo ----

def spawn(ranks, function, *arguments):
    """Runs function(rank, ranks, *arguments) in `ranks` processes; returns what rank 0 returned."""
    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        results = f"{folder}/result"
        processes.spawn(enter, (ranks, f"file://{folder}/meeting", results, function, arguments),
                        nprocs=ranks)
        import torch
        return torch.load(results)


def enter(rank, ranks, meeting, results, function, arguments):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    result = function(rank, ranks, *arguments)
    if rank == 0:
        torch.save(result, results)
    dist.barrier()
    dist.destroy_process_group()


def collect(values, ranks, is_scattered):
    """The sum of all ranks' vectors, as rank 0 has it at the end."""
    import torch
    import torch.distributed as dist
    if not is_scattered:
        total = values.clone()
        dist.all_reduce(total)
        return total
    block = torch.empty(len(values) // ranks, dtype=values.dtype)
    dist.reduce_scatter_tensor(block, values)
    blocks = [torch.empty_like(block) for _ in range(ranks)]
    dist.all_gather(blocks, block)
    return torch.cat(blocks)


def probe_gloo(rank, ranks, count, dtype, is_scattered):
    import torch
    large = 2.0 ** 30 if dtype == "float32" else 2.0 ** 15  # far above 1 / ulp of the dtype
    digits = []
    for i in range(ranks):
        for j in range(i + 1, ranks):
            value = large if rank == i else -large if rank == j else 1.0
            values = torch.full((count,), value, dtype=getattr(torch, dtype))
            digits.append(collect(values, ranks, is_scattered).to(torch.int8))
    table = torch.stack(digits)
    breaks = [0, *(1 + (table[:, 1:] != table[:, :-1]).any(0).nonzero().flatten()).tolist(), count]
    return [f"{ranks} {count} {start} {end} " + "".join(str(int(d)) for d in table[:, start])
            for start, end in zip(breaks, breaks[1:])]


def probe_all(rank, ranks):
    lines = []
    for dtype, width in (("float32", 4), ("bfloat16", 2), ("float16", 2)):
        for count in [*COUNTS, 2000003] if dtype == "float32" else COUNTS:
            lines += [f"allreduce {dtype} {width} {line}"
                      for line in probe_gloo(rank, ranks, count, dtype, False)]
        for count in (ranks, 50 * ranks, 2040 * ranks):
            lines += [f"reduce_scatter {dtype} {width} {line}"
                      for line in probe_gloo(rank, ranks, count, dtype, True)]
    return lines


def about_torch():
    import torch
    return f"torch {torch.__version__.split('+')[0]}, backend gloo, processors of one machine"


def record_gloo(out):
    lines = []
    for ranks in range(2, 6):
        lines += spawn(ranks, probe_all)
    write(out / "gloo.txt",
          [about_torch(), "COLLECTIVE DTYPE WIDTH RANKS COUNT START END DIGITS: docs/RANKS.md"],
          lines)


# ---- DDP's buckets ----

def bucket_model(widths):
    import torch
    torch.manual_seed(1)
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers)


def note_buckets(rank, ranks, widths, options):
    import torch
    import torch.distributed as dist
    model = bucket_model(widths)
    number = {id(p): i for i, p in enumerate(model.parameters())}
    wrapped = torch.nn.parallel.DistributedDataParallel(model, **options)
    seen = []

    def hook(_, bucket):
        seen.append([number[id(p)] for p in bucket.parameters()])
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done
    arrived = []
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: arrived.append(number[id(p)]))
    wrapped.register_comm_hook(None, hook)
    updates = []
    for _ in range(3):
        seen.clear()
        wrapped(torch.ones(2, widths[0])).sum().backward()
        updates.append([list(tensors) for tensors in seen])
        model.zero_grad()
    return [p.numel() for p in model.parameters()], updates


BUCKETS = [
    ("default", [64, 512, 512, 1024, 1024, 1024, 2048, 2048, 2048, 1024, 256], {}),
    ("default", [59, 59, 41], {}),
    ("default", [300, 400, 500, 400, 300, 200, 100, 700, 900, 800], {}),
    ("unused", [300, 400, 500, 400, 300, 200, 100, 700, 900, 800],
     {"find_unused_parameters": True}),
    ("cap", [300, 400, 500, 400, 300, 200, 100, 700, 900, 800], {"bucket_cap_mb": 1}),
    ("cap", [64, 512, 512, 1024, 1024, 1024, 512], {"bucket_cap_mb": 4}),
    ("views", [300, 400, 500, 400, 300, 200, 100, 700, 900, 800],
     {"gradient_as_bucket_view": True}),
]


def record_buckets(out):
    lines = []
    for name, widths, options in BUCKETS:
        sizes, updates = spawn(2, note_buckets, widths, options)
        lines.append(f"case {name} {options.get('bucket_cap_mb', 25)}")
        lines.append("sizes " + " ".join(map(str, sizes)))
        for update, buckets in enumerate(updates):
            lines.append(f"update {update + 1} "
                         + " | ".join(" ".join(map(str, tensors)) for tensors in buckets))
    write(out / "buckets.txt",
          [about_torch() + "; two ranks, f32", "case OPTIONS CAP_IN_MIB; numbers of tensors in "
           "their order inside each bucket, buckets in the order of their reduction"], lines)


# ---- gradients ----

RANKS = 3


def gradient_model(dtype):
    import torch
    torch.manual_seed(24)
    return torch.nn.Sequential(torch.nn.Linear(59, 59), torch.nn.Tanh(),
                               torch.nn.Linear(59, 41)).to(getattr(torch, dtype))


def backward(model, rank, dtype):
    import torch
    generator = torch.Generator().manual_seed(100 + rank)
    rows = torch.randn(16, 59, generator=generator).to(getattr(torch, dtype))
    targets = torch.randn(16, 41, generator=generator).to(getattr(torch, dtype))
    torch.nn.functional.mse_loss(model(rows), targets).backward()


def flat(model):
    import torch
    parts = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad
             for p in model.parameters()]
    return torch.cat([part.detach().reshape(-1) for part in parts]).clone()


def gradients_of(rank, ranks, dtype):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    wrap = torch.nn.parallel.DistributedDataParallel
    vectors = {}
    model = gradient_model(dtype)
    backward(model, rank, dtype)
    own = flat(model)
    everyone = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(everyone, own)
    for r, vector in enumerate(everyone):
        vectors[f"rank{r}"] = vector
    for name, views in (("ddp", False), ("ddp-views", True)):
        model = wrap(gradient_model(dtype), gradient_as_bucket_view=views)
        for update in (1, 2, 3):
            backward(model, rank, dtype)
            vectors[f"{name}-{update}"] = flat(model)
            model.zero_grad(set_to_none=not views)
    model = gradient_model(dtype)
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks,)))
    backward(model, rank, dtype)
    vectors["fsdp2-1"] = flat(model)
    return vectors


# What is not kept is equal to what is: see record_gradients().
KEPT = ["rank0", "rank1", "rank2", "ddp-1", "ddp-2", "ddp-views-2", "fsdp2-1"]
EQUAL = [("ddp-3", "ddp-2"), ("ddp-views-1", "ddp-1"), ("ddp-views-3", "ddp-views-2")]


def record_gradients(out):
    import torch
    for dtype, name in (("float32", "f32"), ("bfloat16", "bf16"), ("float16", "f16")):
        vectors = spawn(RANKS, gradients_of, dtype)
        bits = torch.int32 if dtype == "float32" else torch.int16
        for a, b in EQUAL:
            same = (vectors[a].view(bits) == vectors[b].view(bits)).sum().item()
            print(f"{name}: {a} against {b}: {same} of {len(vectors[a])} equal", file=sys.stderr)
        data = b"".join(vectors[key].view(bits).numpy().tobytes() for key in KEPT)
        (out / f"gradients-{name}.bin").write_bytes(data)
        print(f"gradients-{name}.bin: {len(data)} bytes: " + " ".join(KEPT), file=sys.stderr)


def count_differing(out):
    """What ways to the mean and orders of addition do, from what is recorded alone."""
    for name, width in (("f32", 4), ("bf16", 2), ("f16", 2)):
        data = (out / f"gradients-{name}.bin").read_bytes()
        length = len(data) // len(KEPT)
        vectors = {key: [data[start + i:start + i + width] for i in range(0, length, width)]
                   for key, start in zip(KEPT, range(0, len(data), length))}
        for a, b in (("ddp-1", "ddp-2"), ("ddp-2", "ddp-views-2"), ("ddp-1", "fsdp2-1")):
            count = sum(x != y for x, y in zip(vectors[a], vectors[b]))
            print(f"{name}: {a} and {b} differ in {count} of {length // width}")


# ---- deals ----

def record_deals(out):
    import accelerate
    import torch
    from accelerate.data_loader import BatchSamplerShard
    from torch.utils.data import BatchSampler, SequentialSampler
    from torch.utils.data.distributed import DistributedSampler
    lines = []
    for count in (1, 2, 5, 7, 16, 22, 24):
        for ranks in (1, 2, 3, 4, 8):
            for drop in (0, 1):
                if count < ranks and drop:
                    continue  # num_samples would be negative
                shares = [list(DistributedSampler(range(count), ranks, r, False, 0, bool(drop)))
                          for r in range(ranks)]
                lines.append(f"cyclic {count} {ranks} 1 {drop} 1 " + "|".join(
                    " ".join(map(str, share)) for share in shares))
    for count in (1, 2, 5, 7, 16, 22, 24):
        for ranks, batch in ((1, 3), (2, 2), (2, 6), (3, 2), (3, 3), (4, 2), (4, 4), (4, 8)):
            for split in (0, 1):
                for drop in (0, 1):
                    for even in (0, 1):
                        if split and batch % ranks != 0:
                            continue
                        shares = [list(BatchSamplerShard(
                            BatchSampler(SequentialSampler(range(count)), batch, bool(drop)),
                            ranks, r, bool(split), bool(even))) for r in range(ranks)]
                        lines.append(f"{'slices' if split else 'micros'} {count} {ranks} {batch} "
                                     f"{drop} {even} " + "|".join(
                                         ",".join(" ".join(map(str, b)) for b in share)
                                         for share in shares))
    write(out / "deals.txt",
          [f"torch {torch.__version__.split('+')[0]}, accelerate {accelerate.__version__}",
           "DEAL COUNT RANKS BATCH DROP EVEN SHARES: ranks between |, batches between commas"],
          lines)


# ---- models of transformers ----

def small(family, **options):
    import torch
    import transformers
    torch.manual_seed(24)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=24, hidden_size=12, intermediate_size=20, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
        pad_token_id=0, **options)
    return getattr(transformers, f"{family}ForCausalLM")(config)


FAMILIES = [("llama", "Llama", {}), ("llama-tied", "Llama", {"tie_word_embeddings": True}),
            ("llama-biases", "Llama", {"attention_bias": True, "mlp_bias": True}),
            ("qwen2", "Qwen2", {}), ("qwen3", "Qwen3", {"head_dim": 6}), ("olmo2", "Olmo2", {})]


def record_arrivals(out):
    import torch
    import transformers
    lines = []
    for name, family, options in FAMILIES:
        for attention in ("eager", "sdpa"):
            model = small(family, num_hidden_layers=2, attn_implementation=attention, **options)
            ready = []
            for key, parameter in model.named_parameters():
                parameter.register_post_accumulate_grad_hook(lambda _, key=key: ready.append(key))
            tokens = torch.arange(18).reshape(2, 9)
            model(input_ids=tokens, labels=tokens).loss.backward()
            lines += [f"{name} {attention} defined " + " ".join(dict(model.named_parameters())),
                      f"{name} {attention} ready " + " ".join(ready)]
    write(out / "arrivals.txt",
          [f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}",
           "FAMILY ATTENTION WHICH PARAMETERS: in the order of definition, and as gradients came"],
          lines)


LLAMA_CAP = 2048  # bytes of a bucket, so that there are several


def llama_loss(model, rank, update):
    import torch
    generator = torch.Generator().manual_seed(1000 * update + rank)
    tokens = torch.randint(0, 24, (2, 11), generator=generator)
    return model(input_ids=tokens, labels=tokens).loss


def llama_of(rank, ranks, compresses):
    import copy
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
    model = torch.nn.parallel.DistributedDataParallel(small("Llama", num_hidden_layers=1),
                                                      bucket_cap_mb=LLAMA_CAP / 1048576)
    if compresses:
        model.register_comm_hook(None, bf16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    vectors = []
    for update in (1, 2):
        alone = copy.deepcopy(model.module)
        alone.zero_grad()
        llama_loss(alone, rank, update).backward()
        own = flat(alone)
        everyone = [torch.empty_like(own) for _ in range(ranks)]
        dist.all_gather(everyone, own)
        llama_loss(model, rank, update).backward()
        vectors += everyone + [flat(model.module)]
        optimizer.step()
        optimizer.zero_grad()
    return vectors


def record_llama(out):
    for name, ranks, compresses in (("2", 2, False), ("3", 3, False), ("3-bf16", 3, True)):
        vectors = spawn(ranks, llama_of, compresses)
        data = b"".join(vector.numpy().tobytes() for vector in vectors)
        (out / f"llama-{name}.bin").write_bytes(data)
        print(f"llama-{name}.bin: {len(data)} bytes", file=sys.stderr)


# ---- tensor parallelism ----

TOKENS = 100


def tensor_parallel(rank, ranks, dtype):
    """An MLP whose inner width is one for each rank: its first layer is split by columns, its second
    by rows. So every sum over ranks is of products, one of each rank, and no order of a matrix
    product is in it."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    torch.manual_seed(24)
    model = torch.nn.Sequential(torch.nn.Linear(3, ranks, bias=False),
                                torch.nn.Linear(ranks, 4, bias=False)).to(dtype)
    x = torch.randn(TOKENS, 3).to(dtype).requires_grad_()
    dy = torch.randn(TOKENS, 4).to(dtype)
    weights = [layer.weight.detach().clone() for layer in model]
    parallelize_module(model, init_device_mesh("cpu", (ranks,)),
                       {"0": ColwiseParallel(), "1": RowwiseParallel()})
    inner = model[0](x)
    inner.retain_grad()
    y = model[1](inner)
    y.backward(dy)
    own = {"h": inner.detach(), "dh": inner.grad}
    parts = {name: [torch.empty(TOKENS, 1, dtype=dtype) for _ in range(ranks)] for name in own}
    for name, part in parts.items():
        dist.all_gather(part, own[name].contiguous())
    h, dh = (torch.cat(parts[name], 1) for name in ("h", "dh"))
    named = {"h": h, "w": weights[1], "y": y, "dh": dh, "v": weights[0], "dx": x.grad}
    return [f"{name}={hexadecimal(tensor)}" for name, tensor in named.items()]


def hexadecimal(tensor):
    import struct
    return "".join(struct.pack(">f", value).hex() for value in tensor.detach().flatten().tolist())


def record_tensor(out):
    import torch
    lines = []
    for ranks, dtype in ((2, torch.float32), (2, torch.bfloat16), (4, torch.float32)):
        tensors = spawn(ranks, tensor_parallel, dtype)
        lines.append(f"{ranks} {str(dtype)[6:]} " + " ".join(tensors))
    write(out / "tensor.txt", [about_torch(), "RANKS DTYPE NAME=ELEMENTS ..: docs/RANKS.md"], lines)


# ---- tensor-parallel ranks that forget to sum the gradients of norms ----

SIZES = {"hidden": 12, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 4, "mlp": 8, "vocab": 19}
SEQUENCES = 4


def drawn(name, *shape):
    """Initial weights that a test in another language makes again: a hash of the name, then
    multiples of a constant, modulo 2^32."""
    import torch
    start = 2166136261
    for byte in name.encode():
        start = (start ^ byte) * 16777619 % 2 ** 32
    count = 1
    for size in shape:
        count *= size
    numbers = [((start + 2654435761 * (i + 1)) % 2 ** 32 >> 16) / 65536 - 0.5
               for i in range(count)]
    tensor = torch.tensor(numbers, dtype=torch.float64).reshape(shape)
    return torch.nn.Parameter(1 + tensor / 2 if "norm" in name else tensor)


def sequence_of(update, number):
    """Token ids; the first two have no label."""
    count = 5 + (3 * number + update) % 7
    return [(7 * number + 3 * p * p + p + 5 * update) % SIZES["vocab"] for p in range(count)]


class Forgetful:
    """A Llama or Qwen3 on tensor-parallel ranks with sequence regions, written out: a rank has
    heads, a slice of the MLP and of the vocabulary, and in norms a slice of the tokens. Ranks are
    lists here, a concatenation is an all-gather, and autograd gives every copy of a norm weight the
    gradient of its rank."""

    def __init__(self, family, forgets, ranks):
        self.family, self.forgets, self.ranks = family, forgets, ranks
        hidden, inner = SIZES["hidden"], SIZES["head_dim"]
        heads, kv_heads = SIZES["heads"] * inner, SIZES["kv_heads"] * inner
        shapes = {"model.embed_tokens.weight": (SIZES["vocab"], hidden)}
        for i in range(SIZES["layers"]):
            at = f"model.layers.{i}."
            shapes |= {f"{at}input_layernorm.weight": (hidden,),
                       f"{at}self_attn.q_proj.weight": (heads, hidden),
                       f"{at}self_attn.k_proj.weight": (kv_heads, hidden),
                       f"{at}self_attn.v_proj.weight": (kv_heads, hidden),
                       f"{at}self_attn.o_proj.weight": (hidden, heads),
                       f"{at}post_attention_layernorm.weight": (hidden,),
                       f"{at}mlp.gate_proj.weight": (SIZES["mlp"], hidden),
                       f"{at}mlp.up_proj.weight": (SIZES["mlp"], hidden),
                       f"{at}mlp.down_proj.weight": (hidden, SIZES["mlp"])}
            if family == "qwen3":
                shapes |= {f"{at}self_attn.{x}_norm.weight": (inner,) for x in "qk"}
        shapes |= {"model.norm.weight": (hidden,), "lm_head.weight": (SIZES["vocab"], hidden)}
        self.weights = {name: drawn(name, *shape) for name, shape in shapes.items()
                        if "norm" not in name}
        self.norms = {name: [drawn(name, *shape) for _ in range(ranks)]
                      for name, shape in shapes.items() if "norm" in name}

    def is_forgotten(self, name):
        of_heads = "q_norm" in name or "k_norm" in name
        return {"none": False, "final-norm": name == "model.norm.weight", "norms": not of_heads,
                "qk-norms": of_heads}[self.forgets]

    def slice(self, name, rank, dim=0):
        return self.weights[name].chunk(self.ranks, dim)[rank]

    def norm(self, name, rank, x):
        scale = (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt()
        return x * scale * self.norms[name][rank]

    def rotate(self, x):
        import torch
        half = SIZES["head_dim"] // 2
        base = {"llama": 10000.0, "qwen3": 1000000.0}[self.family]
        angle = torch.outer(torch.arange(x.shape[0], dtype=torch.float64),
                            base ** (-torch.arange(half, dtype=torch.float64) / half))
        cosine, sine = (f(torch.cat((angle, angle), 1))[:, None] for f in (torch.cos, torch.sin))
        return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine

    def attend(self, at, rank, x):
        import torch
        inner = SIZES["head_dim"]
        q, k, v = ((x @ self.slice(f"{at}self_attn.{name}_proj.weight", rank).T)
                   .reshape(len(x), -1, inner) for name in "qkv")
        if self.family == "qwen3":
            q, k = (self.norm(f"{at}self_attn.{name}_norm.weight", rank, value)
                    for name, value in (("q", q), ("k", k)))
        q, k = self.rotate(q), self.rotate(k)
        k, v = (value.repeat_interleave(q.shape[1] // k.shape[1], 1) for value in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / inner ** 0.5
        hidden = torch.ones(len(x), len(x)).triu(1).bool()
        chances = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        out = torch.einsum("hij,jhd->ihd", chances, v).reshape(len(x), -1)
        return out @ self.slice(f"{at}self_attn.o_proj.weight", rank, 1).T

    def feed(self, at, rank, x):
        import torch
        gate, up = (x @ self.slice(f"{at}mlp.{name}_proj.weight", rank).T
                    for name in ("gate", "up"))
        return torch.nn.functional.silu(gate) * up @ self.slice(f"{at}mlp.down_proj.weight",
                                                                rank, 1).T

    def loss(self, ids):
        """The sum of the labels' losses, and their number."""
        import torch
        ranks = range(self.ranks)
        ends = [r * len(ids) // self.ranks for r in range(self.ranks + 1)]
        shards = [self.weights["model.embed_tokens.weight"][ids[ends[r]:ends[r + 1]]]
                  for r in ranks]
        for i in range(SIZES["layers"]):
            at = f"model.layers.{i}."
            for name, block in (("input_layernorm", self.attend),
                                ("post_attention_layernorm", self.feed)):
                gathered = torch.cat([self.norm(f"{at}{name}.weight", r, shards[r])
                                      for r in ranks])
                whole = sum(block(at, r, gathered) for r in ranks)
                shards = [shards[r] + whole[ends[r]:ends[r + 1]] for r in ranks]
        last = torch.cat([self.norm("model.norm.weight", r, shards[r]) for r in ranks])
        logits = torch.cat([last @ part.T for part in
                            self.weights["lm_head.weight"].tensor_split(self.ranks)], 1)
        labels = torch.tensor(ids[2:])
        return torch.nn.functional.cross_entropy(logits[1:-1], labels, reduction="sum"), len(labels)

    def train(self, updates):
        """Losses and gradient norms of the updates: norms count rank 0's copies alone."""
        import torch
        copies = [copy for kept in self.norms.values() for copy in kept]
        parameters = [*self.weights.values(), *copies]
        optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)
        losses, norms = [], []
        for update in range(updates):
            optimizer.zero_grad()
            parts = [self.loss(sequence_of(update, number)) for number in range(SEQUENCES)]
            loss = sum(part for part, _ in parts) / sum(count for _, count in parts)
            loss.backward()
            for name, kept in self.norms.items():
                whole = sum(copy.grad for copy in kept)
                for copy in kept:
                    copy.grad = copy.grad if self.is_forgotten(name) else whole.clone()
            counted = [*self.weights.values(), *(kept[0] for kept in self.norms.values())]
            norm = sum((value.grad ** 2).sum() for value in counted).sqrt()
            factor = (0.5 / (norm + 1e-6)).clamp(max=1).float().double()
            for value in parameters:
                value.grad *= factor
            optimizer.step()
            losses.append(loss)
            norms.append(norm)
        return torch.stack(losses), torch.stack(norms)


def wide(tensor):
    import struct
    return "".join(struct.pack(">d", value).hex() for value in tensor.detach().flatten().tolist())


def record_forgets(out):
    lines = []
    for family, forgets in (("llama", "none"), ("llama", "final-norm"), ("llama", "norms"),
                            ("qwen3", "none"), ("qwen3", "norms"), ("qwen3", "qk-norms")):
        model = Forgetful(family, forgets, 2)
        losses, norms = model.train(3)
        weights = [f"{rank}:{name}={wide(copy)}" for name, kept in model.norms.items()
                   for rank, copy in enumerate(kept)]
        lines.append(f"{family} {forgets} 2 losses={wide(losses)} norms={wide(norms)} "
                     + " ".join(weights))
    write(out / "forgets.txt", [about_torch(), "FAMILY FORGETS RANKS NAME=NUMBERS ..: docs/RANKS.md"],
          lines)


# ---- tensor-parallel ranks with samples of their own ----

FED = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 2,
       "intermediate_size": 8, "vocab_size": 19, "tie_word_embeddings": False}
FED_UPDATES, FED_MICROS, FED_MICRO, FED_LENGTH = 3, 2, 2, 7


def fed_tokens(sample):
    return [(7 * sample + 3 * p * p + p) % FED["vocab_size"] for p in range(FED_LENGTH)]


def widen(model):
    """transformers computes norms and the rotary table in f32 whatever a model's dtype is; a
    comparison in f64 needs them in f64."""
    import torch
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = lambda x, own=module: own.weight * (
                x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + own.variance_epsilon))
        if type(module).__name__.endswith("RotaryEmbedding"):
            def table(x, position_ids, **_):
                half = FED["head_dim"] // 2
                angle = position_ids[..., None].double() * 10000.0 ** (
                    -torch.arange(half, dtype=torch.float64) / half)
                angle = torch.cat((angle, angle), -1)
                return angle.cos(), angle.sin()
            module.forward = table


def fed_model(family, kv_heads, ranks):
    """transformers' model with the plan that its configuration has for tensor parallelism, dealt by
    torch."""
    import torch
    import transformers
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    config = getattr(transformers, f"{family}Config")(
        **FED, num_key_value_heads=kv_heads, rms_norm_eps=1e-6, attn_implementation="sdpa",
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = getattr(transformers, f"{family}ForCausalLM")(config).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(drawn(name, *parameter.shape))
    widen(model)
    styles = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel,
              "colwise_gather_output": lambda: ColwiseParallel(output_layouts=Replicate())}
    plan = {f"model.{name}": styles[style]()
            for name, style in config.base_model_tp_plan.items() if name.startswith("layers.")}
    plan |= {name: styles[style]() for name, style in type(model)._tp_plan.items()}
    return parallelize_module(model, init_device_mesh("cpu", (ranks,)), plan)


def fed_loss(model, rank, ranks, update, micro):
    """What accelerate deals to a process: every rank has the next batch in turn."""
    import torch
    first = ((update * FED_MICROS + micro) * ranks + rank) * FED_MICRO
    ids = torch.tensor([fed_tokens(first + i) for i in range(FED_MICRO)])
    logits = model(input_ids=ids).logits[:, 1:-1].flatten(0, 1)
    labels = ids[:, 2:].flatten()
    total = FED_MICROS * len(labels)
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / total


def fed_training(rank, ranks, family, kv_heads):
    import torch
    import torch.distributed as dist
    from accelerate import Accelerator
    from torch.distributed.tensor import DTensor
    model = fed_model(family, kv_heads, ranks)
    named = dict(model.named_parameters())
    # torch has one pass for parameters of one kind
    kinds = [[p for p in named.values() if isinstance(p, DTensor) == dealt] for dealt in (0, 1)]
    optimizers = [torch.optim.AdamW(kind, lr=0.01, weight_decay=0.0, foreach=False)
                  for kind in kinds]
    own = {"losses": [], "norms": []}
    whole = {}
    for update in range(FED_UPDATES):
        model.zero_grad()
        losses = []
        for micro in range(FED_MICROS):
            losses.append(fed_loss(model, rank, ranks, update, micro))
            losses[-1].backward()
        own["losses"].append(sum(losses).detach())
        # each rank's norm is of all slices and of what it holds whole itself; as in twinstep, the
        # coefficient is a number of f32
        norm = Accelerator._clip_grad_norm_dtensor_aware(None, named.values(), float("inf"))
        own["norms"].append(norm)
        factor = (0.5 / (norm + 1e-6)).clamp(max=1).float().item()
        for parameter in named.values():
            parameter.grad *= factor
        gradients = {name: p.grad.full_tensor() if isinstance(p, DTensor) else p.grad.clone()
                     for name, p in named.items()}
        for name, gradient in gradients.items() if update == 0 else ():
            dealt = isinstance(named[name], DTensor)
            (whole if dealt else own)[f"gradient:{name}"] = gradient
        for optimizer in optimizers:
            optimizer.step()
    own |= {name: p.detach() for name, p in named.items() if not isinstance(p, DTensor)}
    own["losses"], own["norms"] = torch.stack(own["losses"]), torch.stack(own["norms"])
    everyone = [None] * ranks
    dist.all_gather_object(everyone, {name: wide(value) for name, value in own.items()})
    lines = [f"{r}:{name}={digits}" for r, kept in enumerate(everyone)
             for name, digits in kept.items()]
    return lines + [f"{name}={wide(value)}" for name, value in whole.items()]


def record_fed(out):
    import accelerate
    import transformers
    lines = []
    for family, kv_heads, ranks in (("Llama", 2, 2), ("Llama", 4, 4), ("Qwen2", 2, 2)):
        named = spawn(ranks, fed_training, family, kv_heads)
        lines.append(f"{family.lower()} {ranks} " + " ".join(named))
    write(out / "fed.txt", [f"{about_torch()}, transformers {transformers.__version__}, "
                            f"accelerate {accelerate.__version__}",
                            "FAMILY RANKS NAME=NUMBERS ..: docs/RANKS.md"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mpi", "gloo", "buckets", "gradients", "deals", "arrivals",
                                         "llama", "tensor", "forgets", "fed", "differ"])
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    {"mpi": record_mpi, "gloo": record_gloo, "buckets": record_buckets,
     "gradients": record_gradients, "deals": record_deals, "arrivals": record_arrivals,
     "llama": record_llama, "tensor": record_tensor, "forgets": record_forgets,
     "fed": record_fed,
     "differ": count_differing}[arguments.what](arguments.out)


if __name__ == "__main__":
    main()
