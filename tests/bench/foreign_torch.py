#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training written as a trace with the functions of docs/FOREIGN.md, and what twinstep says.

    foreign_torch.py BINARY        needs torch, h5py, numpy and safetensors; 77 without them

Three trainings each in f32 and bf16 (AdamW, two groups, clipping, linear decay): twice the same, and
once with the scheduler before the optimizer, under an equal printed column. The same ones must be
equal in another process, the other must part at update 1 in phase optimize, its LR must fail `lr
check`, and the weights that safetensors wrote after update 7 must have the recorded digests."""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
    import torch
    from safetensors.torch import save_file
except ImportError as error:
    print(f"left out: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPDATES, PEAK = 20, 5e-4


def functions_of_page(folder):
    page = (ROOT / "docs/FOREIGN.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- file: record.py -->\n```python\n(.*?)```\n", page, re.S).group(1)
    (folder / "record.py").write_text(block, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("record", folder / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bits(tensor):
    whole = torch.int16 if tensor.element_size() == 2 else torch.int32
    return tensor.detach().contiguous().view(whole).numpy().reshape(tuple(tensor.shape))


def train(path, dtype, ahead, page):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    word = {torch.float32: "f32", torch.bfloat16: "bf16"}[dtype]
    model = torch.nn.Sequential(torch.nn.Embedding(64, 16), torch.nn.Linear(16, 32), torch.nn.Tanh(),
                                torch.nn.Linear(32, 64)).to(dtype)
    named = dict(model.named_parameters())
    groups = [[n for n, p in named.items() if p.ndim > 1], [n for n, p in named.items() if p.ndim < 2]]
    optimizer = torch.optim.AdamW([{"params": [named[n] for n in names], "weight_decay": decay}
                                   for names, decay in zip(groups, (0.1, 0.0))], lr=PEAK)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: max(0.0, 1 - k / UPDATES))
    columns = {name: [] for name in ("loss", "grad_norm", "lr_applied", "lr_logged", "digest_batch",
                                     "tensors/digest_gradient", "tensors/digest_parameter")}
    for k in range(UPDATES):
        tokens = torch.randint(0, 64, (4, 9))
        logits = model(tokens[:, :-1]).float().reshape(-1, 64)
        loss = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        columns["tensors/digest_gradient"].append(
            [page.keyed(n, word, bits(p.grad)) for n, p in named.items()])
        columns["grad_norm"].append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        if ahead:
            schedule.step()
        columns["lr_applied"].append([g["lr"] for g in optimizer.param_groups])
        optimizer.step()
        if not ahead:
            schedule.step()
        columns["loss"].append(loss.item())
        columns["lr_logged"].append([PEAK * (1 - k / UPDATES)] * 2)
        columns["digest_batch"].append(
            np.frombuffer(page.sha256(tokens.numpy().tobytes()).digest(), "u1"))
        columns["tensors/digest_parameter"].append(
            [page.keyed(n, word, bits(p)) for n, p in named.items()])
        if k == 6:
            save_file({n: p.detach().clone() for n, p in named.items()}, f"{path}.safetensors")
    with h5py.File(path, "w", libver=("v110", "v110")) as f:
        f.attrs["twinstep_trace"], f.attrs["kind"] = np.int64(2), "foreign"
        f.attrs["writer"], f.attrs["writer_version"] = "torch", str(torch.__version__)
        f.create_group("runs/main").attrs["digest"] = "keyed 1"
        steps = f.create_group("runs/main/steps")
        steps["group"] = np.arange(2)
        steps["tensors/tensor"], steps["tensors/dtype"] = list(named), [word] * len(named)
        steps["tensors/shape"] = [",".join(map(str, p.shape)) for p in named.values()]
        steps["tensors/group"] = np.array([int(n in groups[1]) for n in named], "<u4")
        for name, values in columns.items():
            steps[name] = np.array(values)
        steps["step"] = np.arange(1, UPDATES + 1)
        f["complete"] = np.int64(1)


def main():
    if len(sys.argv) == 5: # one training, in a process of its own
        folder = pathlib.Path(sys.argv[2]).parent
        train(sys.argv[2], getattr(torch, sys.argv[3]), sys.argv[4] == "ahead",
              functions_of_page(folder))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def expect(status, text, *words):
            result = subprocess.run([sys.argv[1], *words], cwd=folder, capture_output=True, text=True,
                                    check=False)
            if result.returncode != status or text not in result.stdout:
                raise SystemExit(f"{words}: expected {status} and {text!r}, got {result.returncode}: "
                                 f"{result.stdout}{result.stderr}")

        for dtype in ("float32", "bfloat16"):
            for run, order in (("a", "as-is"), ("again", "as-is"), ("b", "ahead")):
                subprocess.run([sys.executable, __file__, "-", folder / f"{run}.h5", dtype, order],
                               check=True)
            expect(0, "5 tensors in 2 groups", "import", "--check", "a.h5")
            expect(0, "equal through update 20", "certify", "a.h5", "again.h5")
            expect(1, "differs from update 1 on (5 comparisons of 20 roots)\n  phase    optimize",
                   "certify", "a.h5", "b.h5")
            expect(0, "5 tensors equal, 0 differ", "certify", "a.h5", "--at", "7", "--weights",
                   "a.h5.safetensors")
            expect(0, "so does every one of the 20", "lr", "check", "a.h5", "--expect", "hf")
            expect(1, "update 1 applied 0.000475, where hf applies 0.0005", "lr", "check", "b.h5",
                   "--expect", "hf")
            expect(0, "exact: their roots are equal", "floor", "a.h5", "again.h5")
            print(f"{dtype}: as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
