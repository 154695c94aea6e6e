#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/foreign/folders: what trainers leave on disk beside the runs of
foreign_trainings.py, one file or folder for each way to lay it out or to be refused, and
NAME.names, the parameters' names in the order of the optimizer's groups. Needs torch (2.15.0 wrote
what is committed); CPU only. With a FOLDER as argument: the pickled shards, see sharded()."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import warnings

import torch

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "foreign" / "folders"


class Tied(torch.nn.Module):
    """Buffers between parameters, and a head that is the embedding."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4))
        self.head = torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 6)

    def forward(self, x):
        return self.head(self.b(self.a(self.embed(x))))


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)

    def forward(self, x):
        return self.embed(x)


def train(net, optimizer, updates=2):
    for k in range(updates):
        net((torch.arange(6) + k) % 6).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def names_of(net, optimizer):
    by_id = {id(p): name for name, p in net.named_parameters()}
    return [by_id[id(p)] for group in optimizer.param_groups for p in group["params"]]


def keep(name, net, optimizer, **more):
    train(net, optimizer)
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), **more}, OUT / f"{name}.pt")
    (OUT / f"{name}.names").write_text("\n".join(names_of(net, optimizer)) + "\n")


def groups(net, *tests):
    """One group for each test; a parameter is in the first that it passes."""
    made = [{"params": []} for _ in tests]
    for name, p in net.named_parameters():
        made[[test(name, p) for test in tests].index(True)]["params"].append(p)
    return made


def read_ones():
    adamw = torch.optim.AdamW
    net = Tied()
    keep("tied_buffers", net, adamw(net.parameters()))
    net = Plain()
    net.a.requires_grad_(False)
    keep("frozen_left_out", net, adamw([p for p in net.parameters() if p.requires_grad]))
    net = Plain()
    keep("embedding_apart", net, adamw(groups(net, lambda n, p: "embed" in n, lambda n, p: p.ndim > 1,
                                              lambda n, p: True)))
    net = Plain()
    keep("layer_by_layer", net, adamw(groups(net, lambda n, p: "head" in n, lambda n, p: n[0] == "b",
                                             lambda n, p: n[0] == "a", lambda n, p: True)))
    net = Plain()
    keep("backbone_head", net, adamw(groups(net, lambda n, p: "head" not in n, lambda n, p: True)))
    net = Plain()
    keep("reversed", net, adamw(list(net.parameters())[::-1]))
    net = Small()
    optimizer = adamw(net.parameters())
    train(net, optimizer)
    state = optimizer.state_dict()
    for key in ("amsgrad", "decoupled_weight_decay"):  # as before torch 2.8, and in apex
        del state["param_groups"][0][key]
    torch.save({"model": net.state_dict(), "optimizer": state}, OUT / "older_adam.pt")
    net = Small()
    optimizer = adamw(net.parameters())
    train(net, optimizer)
    torch.save({"app": {"model": net.state_dict(), "optim": optimizer.state_dict()}}, OUT / "wrapped.pt")
    (OUT / "wrapped.names").write_text("embed.weight\n")
    net = Plain()
    keep("user_objects", net, adamw(net.parameters()), args=argparse.Namespace(lr=1e-3, path=pathlib.PurePosixPath("x")),
         epoch=1, step=2)
    net = Plain()
    optimizer = adamw(net.parameters())
    train(net, optimizer)
    names = dict(net.named_parameters())
    place = {id(p): i for i, p in enumerate(names.values())}
    state = optimizer.state_dict()
    by_name = {name: state["state"][place[id(p)]] for name, p in names.items()}
    state = {"state": by_name, "param_groups": [{**state["param_groups"][0], "params": list(names)}]}
    torch.save({"model": net.state_dict(), "optim": state}, OUT / "keyed_by_name.pt")
    (OUT / "keyed_by_name.names").write_text("\n".join(names) + "\n")
    import torch.distributed.checkpoint as dcp
    shutil.rmtree(OUT / "dcp", ignore_errors=True)
    dcp.save({"model": {"w": torch.ones(2, 2)}, "optim": {"state": {"w": {k: torch.full((2, 2), 0.5)
             for k in ("exp_avg", "exp_avg_sq")}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8,
             "amsgrad": False, "params": ["w"]}]}}, checkpoint_id=OUT / "dcp", no_dist=True)
    subprocess.run([sys.executable, "-m", "torch.distributed.checkpoint.format_utils", "dcp_to_torch",
                    OUT / "dcp", OUT / "dcp_converted.pt"], check=True, capture_output=True)
    (OUT / "dcp_converted.names").write_text("w\n")


def sharded(folder):
    """A GPT-2 whose head is its embedding, in pickled shards. transformers 5 writes none any more, so
    `folder` holds an older one (pip install --target FOLDER transformers==4.51.3 wrote what is
    committed)."""
    sys.path.insert(0, folder)
    from transformers import GPT2Config, GPT2LMHeadModel
    net = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=4, n_embd=4, n_layer=1, n_head=2))
    optimizer = torch.optim.AdamW(groups(net, lambda n, p: p.ndim > 1, lambda n, p: True))
    for k in range(2):
        ids = (torch.arange(4)[None] + k) % 8
        net(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    shutil.rmtree(OUT / "shards", ignore_errors=True)
    net.save_pretrained(OUT / "shards", safe_serialization=False, max_shard_size=600)
    for extra in ("config.json", "generation_config.json"):
        (OUT / "shards" / extra).unlink()
    torch.save(optimizer.state_dict(), OUT / "shards" / "optimizer.pt")
    (OUT / "shards.names").write_text("\n".join(names_of(net, optimizer)) + "\n")


def refused_ones():
    o = torch.optim
    for name, make in {"nadam": o.NAdam, "radam": o.RAdam, "adagrad": o.Adagrad, "rmsprop": o.RMSprop}.items():
        net = Small()
        keep(f"refused_{name}", net, make(net.parameters()))
        (OUT / f"refused_{name}.names").unlink()
    net = torch.nn.Linear(4, 4, bias=False)
    muon = o.Muon(net.parameters())
    net(torch.ones(2, 4)).sum().backward()
    muon.step()
    torch.save({"model": net.state_dict(), "optimizer": muon.state_dict()}, OUT / "refused_muon.pt")
    net = Small()
    optimizer = o.AdamW(net.parameters())
    train(net, optimizer)
    state = optimizer.state_dict()
    torch.save({"model": net.state_dict(), "optimizer": [state, state]}, OUT / "refused_two.pt")
    torch.save(state, OUT / "refused_alone.pt")
    torch.save({"optimizer": state}, OUT / "refused_no_model.pt")
    torch.save({"model": net.state_dict(), "optimizer": state}, OUT / "refused_legacy.pt",
               _use_new_zipfile_serialization=False)
    for entry in state["state"].values():  # as bitsandbytes' Adam8bit names its state
        entry.clear()
        entry.update({"step": 2, "state1": torch.zeros(4, dtype=torch.uint8), "qmap1": torch.zeros(4),
                      "absmax1": torch.zeros(1)})
    torch.save({"model": net.state_dict(), "optimizer": state}, OUT / "refused_8bit.pt")
    torch.save(Plain().state_dict(), OUT / "weights_alone.pt")


def main():
    warnings.simplefilter("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    if len(sys.argv) > 1:
        sharded(sys.argv[1])
    else:
        read_ones()
        refused_ones()
    files = [f for f in OUT.rglob("*") if f.is_file()]
    print(f"{len(files)} files, {sum(f.stat().st_size for f in files)} bytes")


if __name__ == "__main__":
    main()
