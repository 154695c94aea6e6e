# SPDX-License-Identifier: Apache-2.0
"""Measures how far runs of one PyTorch training are apart on the device that is here.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/gpu_floor.py FOLDER [--runs N] [--device cpu]
    TWINSTEP_TORCH_VENV/bin/python tests/bench/gpu_floor.py FOLDER --noise [--device cpu]
    TWINSTEP_TORCH_VENV/bin/python tests/bench/gpu_floor.py FOLDER --cost [--profile] [--device cpu]

It needs torch and twinstep (the wheel, or PYTHONPATH and TWINSTEP_PROGRAM), and no network: the
training is a decoder in plain torch, of random weights, on random tokens. Words for its kinds:

    f32          all of it in f32, TF32 off
    tf32         the same with matmul precision `high`: TF32 on a device that has it
    bf16         weights, gradients and moments in bf16
    f32-rows     f32, and the embedding is read by index_select, whose gradient is an index_add:
                 atomics, where a device adds rows by them
    bf16-rows    the same in bf16

The first form trains each kind --runs times with torch's deterministic algorithms off and on, each
run in a process of its own, all at the same time, with twinstep.Recorder; the program compares each
with the first one, and one table says what it found. The first process of a setting also trains
without the recorder, to see whether that has the same bits, and counts the times that the host
waits for the device (torch.cuda.set_sync_debug_mode) for two numbers of tensors. --noise asks
twinstep.noise about f32-rows and leaves FOLDER/floor.h5. --cost is the recorder's share of a
training of 117 M weights and 512 tokens, and what the device takes for the digests of all weights;
--profile lists the recorder's dearest functions, by a profiler, which makes them dearer. stderr
says how far it is. Exit status 0, or 2 where a
process failed."""
import argparse
import cProfile
import dataclasses
import hashlib
import json
import os
import pathlib
import platform
import pstats
import statistics
import subprocess
import sys
import time
import warnings

import torch

import twinstep
from twinstep.record import keyed_torch

KINDS = ("f32", "tf32", "bf16", "f32-rows", "bf16-rows")
MODES = ("off", "on")
WORKSPACE = ":4096:8"       # what cuBLAS needs to be deterministic, as torch's own message says


class Rows(torch.nn.Module):
    """An embedding that is read by index_select."""

    def __init__(self, embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, ids):
        return self.weight.index_select(0, ids.reshape(-1)).reshape(*ids.shape, -1)


class Norm(torch.nn.Module):
    """Root mean square normalisation, in f32."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class Block(torch.nn.Module):
    """Attention by scaled_dot_product_attention, and SwiGLU."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width, bias=False)
                                          for _ in range(4))
        self.gate, self.up = (torch.nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        y = self.first(x)
        heads = [f(y).unflatten(-1, (-1, 64)).transpose(1, 2) for f in (self.q, self.k, self.v)]
        y = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


class Decoder(torch.nn.Module):
    """A decoder that returns the loss of the next tokens."""

    def __init__(self, layers, width, vocabulary, by_rows):
        super().__init__()
        embedding = torch.nn.Embedding(vocabulary, width)
        self.embed = Rows(embedding) if by_rows else embedding
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = Norm(width)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        x = self.head(self.norm(x)).float()
        return torch.nn.functional.cross_entropy(x[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@dataclasses.dataclass(frozen=True)
class Plan:
    """Builds the training of one kind, the same each time: model, optimizer, and the step."""
    kind: str
    device: str
    layers: int
    width: int
    vocabulary: int
    rows: int
    tokens: int
    updates: int

    def __call__(self):
        torch.set_float32_matmul_precision("high" if self.kind == "tf32" else "highest")
        torch.manual_seed(3)
        model = Decoder(self.layers, self.width, self.vocabulary, self.kind.endswith("rows"))
        dtype = torch.bfloat16 if self.kind.startswith("bf16") else torch.float32
        model = model.to(self.device, dtype).train()
        # Few tokens are frequent and many are rare, so that rows of the embedding are met again.
        place = torch.rand(self.updates, self.rows, self.tokens).pow(3)
        ids = (place * self.vocabulary).long().to(self.device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def step(k):
            loss = model(ids[k])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            return loss
        return model, optimizer, step


def left(model, optimizer):
    """A digest of all weights and moments."""
    whole = hashlib.sha256()
    for name, p in model.named_parameters():
        tensors = [p, *(t for _, t in sorted(optimizer.state[p].items()))]
        for t in tensors:
            whole.update(name.encode())
            whole.update(t.detach().reshape(-1).view(torch.uint8).cpu().numpy())
    return whole.hexdigest()


def train(build, path=None):
    """All updates, recorded into `path` if it is given; what was left."""
    model, optimizer, step = build()
    if path is None:
        for k in range(build.updates):
            step(k)
    else:
        with twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True,
                               config={"kind": build.kind}) as recorder:
            for k in range(build.updates):
                step(k)
                recorder.update()
    return left(model, optimizer)


def waits(build, path):
    """How many times the host waits for the device in an update, without the recorder and with it,
    and the number of tensors. The first update, which also begins the file, is not counted."""
    model, optimizer, step = build()
    found = {"tensors": len(list(model.parameters()))}
    for name in ("without", "with"):
        recorder = None
        if name == "with":
            recorder = twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True).start()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for k in range(build.updates):
                if k == 1:
                    torch.cuda.set_sync_debug_mode("warn")
                step(k)
                if recorder is not None:
                    recorder.update()
            torch.cuda.set_sync_debug_mode("default")
        if recorder is not None:
            recorder.close()
        count = sum("synchronizing" in str(w.message) for w in told)
        found[name] = count / (build.updates - 1)
    return found


def child(given):
    """One run of every kind in this process; the first run also answers what one process can."""
    folder, began = pathlib.Path(given.folder), time.perf_counter()
    if given.mode == "on":
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    said = {}
    for kind in KINDS:
        build = sized(given, kind)
        name = f"{kind}-{given.mode}-{given.run}"
        try:
            said[kind] = {"left": train(build, folder / f"{name}.h5")}
            if given.run == 1:
                said[kind]["plain"] = train(build)
        except RuntimeError as error:       # an op without a deterministic way
            said[kind] = {"error": str(error).strip().splitlines()[0]}
        tell(f"{kind}, deterministic {given.mode}, run {given.run}: "
             f"{time.perf_counter() - began:.0f} s")
    if given.run == 1 and given.device == "cuda":
        for times in (1, 3):
            build = dataclasses.replace(sized(given, "f32"), layers=times * given.layers, updates=4)
            said[f"waits {times}"] = waits(build, folder / f"waits-{given.mode}-{times}.h5")
    (folder / f"{given.mode}-{given.run}.json").write_text(json.dumps(said))


def sized(given, kind):
    """The training that the options describe."""
    return Plan(kind, given.device, given.layers, given.width, given.vocabulary, given.rows,
                 given.tokens, given.updates)


def begin(given, mode, run):
    """Starts the process of one run."""
    words = [sys.executable, __file__, given.folder, "--device", given.device, "--mode", mode,
             "--run", str(run)]
    for name in ("layers", "width", "vocabulary", "rows", "tokens", "updates"):
        words += [f"--{name}", str(getattr(given, name))]
    environment = dict(os.environ)
    if mode == "on":
        environment.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)
    return subprocess.Popen(words, env=environment)


def train_all(given):
    """All runs. What each one said, by setting; None where a process failed."""
    children = {(mode, run): begin(given, mode, run) for mode in MODES
                for run in range(1, given.runs + 1)}
    failed = {of: c.returncode for of, c in children.items() if c.wait() != 0}
    for (mode, run), status in failed.items():
        tell(f"error: run {run} with deterministic {mode} ended with status {status}")
    if failed:
        return None
    return {mode: [json.loads((pathlib.Path(given.folder) / f"{mode}-{run}.json").read_text())
                   for run in range(1, given.runs + 1)] for mode in MODES}


def tell(words):
    """Says on stderr what has been done."""
    print(f"gpu_floor: {words}", file=sys.stderr, flush=True)


def judge(given, mode, kind, said):
    """One row of the table: what the program says of run 1 and each other one."""
    first = said[0][kind]
    wrong = [s[kind]["error"] for s in said if "error" in s[kind]]
    if wrong:
        return [kind, mode, f"untestable: {wrong[0][:120]}"]
    folder = pathlib.Path(given.folder)
    try:
        found = [twinstep.compare(folder / f"{kind}-{mode}-1.h5",
                                  folder / f"{kind}-{mode}-{run}.h5")
                 for run in range(2, given.runs + 1)]
    except twinstep.ProgramError as error:      # a recording that stopped, with a warning above
        return [kind, mode, f"untestable: {str(error).splitlines()[0]}"]
    parted = [f.raw for f in found if f.raw["root_update"] is not None]
    same = "same bits" if first["left"] == first["plain"] else "other bits"
    if not parted:
        word = f"bit-equal, {len(found)} of {len(found)}"
        return [kind, mode, word, "-", "0", "0", same]
    place = min(parted, key=lambda raw: raw["root_update"])
    far = [max((c.get("largest_relative", 0.0) for raw in parted for c in raw["columns"]
                if c["column"] == name), default=0.0) for name in ("loss", "grad_norm")]
    return [kind, mode, f"differ, {len(parted)} of {len(found)}",
            f"{place['root_update']}: {place['root_phase']} {place['root_tensor']}",
            *(f"{x:.1e}" for x in far), "untestable" if same == "other bits" else same]


def device_words(device):
    """What the runs were made on."""
    where = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU"
    return (f"{where}, torch {torch.__version__}, twinstep {twinstep.__version__}, Python "
            f"{platform.python_version()}")


def table(given):
    """Trains, judges and prints. The exit status."""
    began = time.perf_counter()
    print(device_words(given.device), flush=True)
    print(f"a decoder of {given.layers} layers, {given.width} wide, {given.vocabulary} tokens; "
          f"{given.updates} updates of {given.rows} x {given.tokens} tokens; {given.runs} runs of "
          "each kind, in processes of their own, each compared with the first", flush=True)
    lines = [["weights", "deterministic", "runs", "first difference", "loss, relative", "norm, relative",
              "with and without the recorder"]]
    counted = []
    of_modes = train_all(given)
    if of_modes is None:
        return 2
    for mode, said in of_modes.items():
        lines += [judge(given, mode, kind, said) for kind in KINDS]
        counted += [(mode, said[0][f"waits {times}"]) for times in (1, 3)
                    if f"waits {times}" in said[0]]
    widths = [max(len(line[i]) for line in lines if len(line) > 3) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())
    for mode, count in counted:
        print(f"deterministic {mode}, f32: the host waits {count['without']:g} times an update "
              f"without the recorder and {count['with']:g} times with it ({count['tensors']} "
              "tensors)")
    if not counted:
        print("times that the host waits for the device: untestable without CUDA")
    print(f"{time.perf_counter() - began:.0f} s in all")
    return 0


def cost(given):
    """The recorder's share of the wall time of a training of 117 M weights, by turns."""
    build = Plan("f32", given.device, 12, 768, 16384, 1, 512, 1)
    model, optimizer, step = build()

    def block(recorder, waits=False):
        if given.device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(16):
            step(0)
            if recorder is not None:
                recorder.update()
            if waits:
                torch.cuda.synchronize()
        if given.device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / 16

    print(device_words(given.device), flush=True)
    block(None)
    plain, waited, recorded, own = [], [], [], []
    for turn in range(5):
        plain.append(block(None))
        waited.append(block(None, waits=given.device == "cuda"))
        with twinstep.Recorder(model, optimizer, quiet=True,
                               path=pathlib.Path(given.folder) / f"cost-{turn}.h5") as recorder:
            block(recorder)                 # the first one begins the file
            recorder.seconds = 0.0
            recorded.append(block(recorder))
            own.append(recorder.seconds / 16)
        tell(f"block {turn + 1} of 5")
    weights = sum(p.numel() for p in model.parameters())
    words = [f"{1e3 * statistics.median(x):.2f} ms ({1e3 * min(x):.2f} to {1e3 * max(x):.2f})"
            for x in (plain, recorded, own, waited)]
    print(f"{weights} weights in f32, 512 tokens, the recorder's defaults; medians of 5 blocks of "
          "16 updates, least and most")
    print(f"an update without the recorder {words[0]}, with it {words[1]}; in its hooks {words[2]}")
    print(f"an update without it, and a wait for the device at its end: {words[3]}")
    print(f"share of the wall time: {statistics.median(recorded) / statistics.median(plain) - 1:+.1%}")
    print(f"digests of all weights, on the device: {summed(model)}")
    if given.profile:
        profiler = cProfile.Profile()
        with twinstep.Recorder(model, optimizer, quiet=True,
                               path=pathlib.Path(given.folder) / "cost-profile.h5") as recorder:
            block(recorder)
            profiler.runcall(block, recorder)
        pstats.Stats(profiler).sort_stats("cumulative").print_stats("twinstep", 40)
    return 0


def summed(model):
    """How long the device takes to sum the digests of all weights, in words."""
    weights = [p for p in model.parameters()]
    steady = keyed_torch.Steady()
    if weights[0].device.type != "cuda" or steady.sums(weights) is None:
        return "not by a kernel of ours (none on a CPU; on a GPU, NVRTC is not there or differs)"
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        steady.sums(weights)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    size = sum(p.numel() * p.element_size() for p in weights)
    return (f"{statistics.median(times):.3f} ms by one kernel ({min(times):.3f} to {max(times):.3f}), "
            f"{size / min(times) / 1e6:.0f} GB/s")


def main():
    """Reads the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--profile", action="store_true")
    for name, value in (("layers", 4), ("width", 256), ("vocabulary", 4096), ("rows", 8),
                        ("tokens", 256), ("updates", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.runs < 2 or given.updates < 1 or given.width % 64:
        parser.error("--runs: at least 2; --updates: at least 1; --width: a multiple of 64")
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here: --device cpu")
    pathlib.Path(given.folder).mkdir(parents=True, exist_ok=True)
    if given.mode is not None:
        child(given)
        return 0
    if given.cost:
        return cost(given)
    if given.noise:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)
        build = dataclasses.replace(sized(given, "f32-rows"), updates=min(given.updates, 4))
        print(device_words(given.device), flush=True)
        print(twinstep.noise(build, updates=build.updates, repeats=2,
                             output=pathlib.Path(given.folder) / "floor.h5"))
        return 0
    return table(given)


if __name__ == "__main__":
    sys.exit(main())
