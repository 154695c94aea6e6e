#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps of ops of real PyTorch, with one change planted, and what `twinstep ops` says of them.

    op_dumps.py make [--all] FOLDER     trains one step per case and writes dumps and truth.json
    op_dumps.py judge --binary B FOLDER [--markdown]

`make` needs torch and transformers (2.15.0 and 5.23.0 wrote what is committed in
tests/golden/foreign/ops; CPU only). Each dump is made in a process of its own: a forward and a
backward pass of a tiny Qwen2, Llama or GPT-2 under DebugMode. A planted case changes one module's
arithmetic; `module` in truth.json is where, written before any program read the dumps. With --all
it makes the whole acceptance: 20 planted changes, 20 pairs that are meant to be equal, the five
cases of the rule of births, and noise. Without it only what is committed.

`judge` needs Python alone. It holds the answers against what was planted, and every birth against
the rule written out once more."""

import argparse
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys

ROOTS = {"qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM", "gpt2": "GPT2LMHeadModel"}

# architecture, kind of change, module (below the root), argument. Each is one op's arithmetic.
PLANTED = [
    ("qwen2", "split_k", "model.layers.1.mlp.down_proj"),
    ("qwen2", "scale_ulp", "model.layers.1.self_attn"),
    ("qwen2", "norm_eps", "model.layers.1.post_attention_layernorm"),
    ("qwen2", "act_by_hand", "model.layers.0.mlp.act_fn"),
    ("qwen2", "in_double", "model.layers.1.self_attn.q_proj"),
    ("qwen2", "rope_double", "model.rotary_emb"),
    ("qwen2", "extra_op", "model.layers.0.mlp"),
    ("llama", "split_k", "model.layers.0.self_attn.o_proj"),
    ("llama", "norm_by_sqrt", "model.norm"),
    ("llama", "cast_bf16", "model.layers.1.mlp.gate_proj"),
    ("llama", "extra_op", "model.embed_tokens"),
    ("llama", "scale_ulp", "model.layers.0.self_attn"),
    ("llama", "in_double", "lm_head"),
    ("llama", "norm_eps", "model.layers.0.input_layernorm"),
    ("gpt2", "gelu_erf", "transformer.h.0.mlp.act"),
    ("gpt2", "conv_split", "transformer.h.1.mlp.c_proj"),
    ("gpt2", "conv_double", "transformer.h.0.attn.c_attn"),
    ("gpt2", "layer_norm_by_hand", "transformer.h.1.ln_2"),
    ("gpt2", "norm_eps", "transformer.ln_f"),
    ("gpt2", "extra_op", "transformer.wpe"),
]
COMMITTED = {("qwen2", k, m) for a, k, m in PLANTED if a == "qwen2"} | {
    PLANTED[8], PLANTED[9], PLANTED[14], PLANTED[15], PLANTED[17]}


# ---- making ----

def model_of(arch, attention):
    import torch
    import transformers as tf

    torch.manual_seed(0)
    if arch == "gpt2":
        config = tf.GPT2Config(vocab_size=48, n_positions=16, n_embd=16, n_layer=2, n_head=2,
                               bos_token_id=1, eos_token_id=2,
                               resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                               attn_implementation=attention)
        return tf.GPT2LMHeadModel(config)
    config = (tf.Qwen2Config if arch == "qwen2" else tf.LlamaConfig)(
        vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, attn_implementation=attention)
    return (tf.Qwen2ForCausalLM if arch == "qwen2" else tf.LlamaForCausalLM)(config)


def plant(model, kind, name):
    import torch
    F = torch.nn.functional
    module = model.get_submodule(name)
    before = module.forward
    up = 1 + 2.0 ** -23

    def split_k(x):
        half = x.shape[-1] // 2
        y = x[..., :half] @ module.weight[:, :half].T + x[..., half:] @ module.weight[:, half:].T
        return y if module.bias is None else y + module.bias

    def conv_split(x):  # GPT-2's Conv1D: weight is [in, out]
        half = x.shape[-1] // 2
        return x[..., :half] @ module.weight[:half] + x[..., half:] @ module.weight[half:] + module.bias

    def in_double(x):
        bias = None if module.bias is None else module.bias.double()
        return F.linear(x.double(), module.weight.double(), bias).float()

    def rope_double(x, *args, **kwargs):
        position = (args[0] if args else kwargs["position_ids"]).double()
        angle = position[:, :, None] * module.inv_freq.double()
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)

    def layer_norm_by_hand(x):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + module.eps) * module.weight + module.bias

    forwards = {
        "split_k": split_k, "conv_split": conv_split, "in_double": in_double,
        "rope_double": rope_double, "layer_norm_by_hand": layer_norm_by_hand,
        "act_by_hand": lambda x: x * torch.sigmoid(x),
        "gelu_erf": lambda x: F.gelu(x),
        "conv_double": lambda x: (
            x.double() @ module.weight.double() + module.bias.double()).float(),
        "norm_by_sqrt": lambda x: module.weight * (
            x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + module.variance_epsilon)),
        "cast_bf16": lambda x: before(x).bfloat16().float(),
        "extra_op": lambda *a, **k: before(*a, **k) * up,
    }
    if kind == "scale_ulp":
        one = torch.tensor(module.scaling, dtype=torch.float32)
        module.scaling = torch.nextafter(one, one + 1).item()
    elif kind == "norm_eps":
        member = "eps" if hasattr(module, "eps") else "variance_epsilon"
        setattr(module, member, 2 * getattr(module, member))
    elif kind == "weight_ulp":
        with torch.no_grad():
            flat = module.weight.view(-1)
            flat[5] = torch.nextafter(flat[5], flat[5] + 1)
    elif kind == "dropout":
        module.p = 0.3
    else:
        module.forward = forwards[kind]


def dump(spec, path):
    """Runs one case in this process."""
    import torch
    from torch.utils._debug_mode import DebugMode

    torch.set_num_threads(1)
    model = model_of(spec["arch"], spec.get("attention", "sdpa")).train()
    ids = torch.randint(0, 48, (1, 6), generator=torch.Generator().manual_seed(spec.get("seed", 0)))
    for kind, name in spec.get("plant", []):
        plant(model, kind, name)
    torch.manual_seed(1000 + spec.get("again", 0))  # what is not meant to be equal draws dropout
    hashes = spec.get("hashes", ["norm", "hash_tensor"])
    with DebugMode(record_nn_module=True) as mode, DebugMode.log_tensor_hashes(
            hash_fn=hashes, hash_inputs=True):
        model(input_ids=ids, labels=ids).loss.backward()
    plain = path.with_suffix("")
    DebugMode.save_logs(mode.logs, plain)
    path.write_bytes(lzma.compress(plain.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    plain.unlink()


def cases_of(everything):
    """Yields (name, spec of A, spec of B, specs of floors, truth)."""
    for arch, kind, name in PLANTED:
        if everything or (arch, kind, name) in COMMITTED:
            yield (f"planted {arch} {kind} {name}", {"arch": arch},
                   {"arch": arch, "plant": [[kind, name]]}, [],
                   {"exit": 1, "kind": "birth", "module": f"{ROOTS[arch]}.{name}"})
    qwen = {"arch": "qwen2"}
    eager = dict(qwen, attention="eager")
    place = ROOTS["qwen2"] + ".model.layers."
    weight = "model.layers.1.mlp.up_proj"
    yield "case again", qwen, dict(qwen, again=1), [], {"exit": 0}
    yield "case eager", qwen, eager, [], {"exit": 1, "kind": "birth", "module": place + "0.self_attn"}
    yield "case sdpa", eager, qwen, [], {"exit": 1, "kind": "birth", "module": place + "0.self_attn"}
    yield ("case weight", qwen, dict(qwen, plant=[["weight_ulp", weight]]), [],
           {"exit": 1, "kind": "outside", "module": f"{ROOTS['qwen2']}.{weight}"})
    drop = [["dropout", "transformer.h.1.attn.resid_dropout"]]
    noisy = [{"arch": "gpt2", "plant": drop, "again": i} for i in range(4)]
    yield "noise with floors", noisy[0], noisy[1], noisy[2:], {"exit": 3}
    yield ("noise without a floor", noisy[0], noisy[1], [],
           {"exit": 1, "kind": "birth", "module": ROOTS["gpt2"] + "." + drop[0][1]})
    both = {"arch": "gpt2", "plant": [["gelu_erf", "transformer.h.0.mlp.act"]] + drop,
            "again": 4}
    yield ("noise behind a change", noisy[0], both, noisy[2:],
           {"exit": 1, "kind": "birth", "module": ROOTS["gpt2"] + ".transformer.h.0.mlp.act"})
    if not everything:
        return
    for i in range(20):
        spec = {"arch": list(ROOTS)[i % 3], "seed": i}
        if i % 4 == 3:
            spec["attention"] = "eager"
        if i % 5 == 4:
            spec["hashes"] = ["norm"]
        yield f"again {i + 1}", spec, dict(spec, again=1), [], {"exit": 0}


def file_of(spec):
    words = [spec["arch"]]
    words += [f"{kind}-{name}" for kind, name in spec.get("plant", [])]
    words += [f"{key}-{spec[key]}" for key in ("attention", "seed", "again") if key in spec]
    words += ["norm"] * ("hashes" in spec)
    return "_".join(words) + ".json.xz"


def in_own_process(spec, path):
    """A fork of a process that has loaded torch and run no op of it yet."""
    child = os.fork()
    if child == 0:
        try:
            dump(spec, path)
        finally:
            os._exit(0 if path.exists() else 1)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{path}: could not be made")


def make(folder, everything):
    import torch
    import transformers

    import torch.distributed.tensor  # DebugMode needs it: once here, not in each process
    from torch.utils import _debug_mode  # noqa: F401
    for arch in ROOTS:
        getattr(transformers, ROOTS[arch])
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, a, b, floors, truth in cases_of(everything):
        for spec in [a, b, *floors]:
            path = folder / file_of(spec)
            if not path.exists():
                in_own_process(spec, path)
        rows.append({"name": name, "a": file_of(a), "b": file_of(b),
                     "floors": [file_of(x) for x in floors], **truth})
    head = {"made by": "tests/bench/op_dumps.py", "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__, "cases": rows}
    (folder / "truth.json").write_text(json.dumps(head, indent=1) + "\n")


# ---- the rule once more ----

MOVES = set("""view _unsafe_view reshape t transpose permute unsqueeze squeeze expand slice select split
alias detach clone contiguous copy_ _to_copy lift_fresh cat stack unbind""".split())
WIDER = {("f32", "f64"), ("bf16", "f32"), ("i32", "i64"), ("b8", "f32")}
WRITES = {"copy_", "fill_", "zero_", "bernoulli_", "normal_"}
TENSOR = re.compile(r"(?<![A-Za-z0-9_])t: ([a-z0-9]+)(\[[^\]]*\])")


def leaves(tree):
    if tree["type"] in ("scalar", "nonfinite_float"):
        return [] if tree["value"] is None else [tree["value"]]
    return [x for item in tree["items"] for x in leaves(item[1] if tree["type"] == "dict" else item)]


def rows_of(path):
    """(entry, op, inputs, outputs), a value being (dtype, shape, hashes)."""
    for entry, call in enumerate(json.loads(lzma.open(path).read())["logs"], 1):
        if call["type"] != "op" or call["log"] is None:
            continue
        log = {name: leaves(tree) for name, tree in call["log"]["items"]}
        sides = []
        for name, text in (("input_hash", call["args_str"] + call["kwargs_str"]),
                           ("hash", call["output_str"] or "")):
            tensors, hashes = TENSOR.findall(text), log.get(name, [])
            each = len(hashes) // len(tensors) if tensors else 0
            sides.append([(*t, *hashes[i * each:(i + 1) * each]) for i, t in enumerate(tensors)]
                         if hashes else [])
        yield entry, call["op_name"].split("::")[1].split(".")[0], *sides


def births_of(rows, others):
    clean = {value for _, _, inputs, outputs in others for value in inputs + outputs}
    for entry, op, inputs, outputs in rows:
        if not all(value in clean for value in inputs[op in WRITES:]):
            continue
        new = [value for value in outputs if value not in clean]
        source = inputs[-1][0] if op == "copy_" else inputs[0][0] if inputs else None
        if op in MOVES and (source == outputs[0][0] or (source, outputs[0][0]) in WIDER):
            clean.update(new)
        elif new:
            yield entry


# ---- judging ----

def judge_one(binary, folder, case):
    words = [binary, "ops", folder / case["a"], folder / case["b"], "--json"]
    for floor in case["floors"]:
        words += ["--floor", folder / floor]
    done = subprocess.run(words, capture_output=True, text=True)
    said = json.loads(done.stdout) if done.stdout else {}
    wrong = []
    if done.returncode != case["exit"]:
        wrong.append(f"exit {done.returncode}, not {case['exit']} {done.stderr.strip()}")
    first = said.get("first") or {}
    if first.get("kind") != case.get("kind"):
        wrong.append(f"first is {first.get('kind')}, not {case.get('kind')}")
    if "module" in case:
        module = first.get("module") or ""
        if module != case["module"] and not module.startswith(case["module"] + "."):
            wrong.append(f"first is in {module}, not {case['module']}")
    rows = [list(rows_of(folder / case[side])) for side in "ab"]
    for side, own, other in ((0, *rows), (1, *rows[::-1])):
        told = sorted(e["entry"] for e in said.get("events", []) + said.get("noise", [])
                if e["kind"] == "birth" and e["in"] == "ab"[side])
        if told != list(births_of(own, other)):
            wrong.append(f"births of {'ab'[side]} at {told}, by the rule at "
                         f"{list(births_of(own, other))}")
    if case["exit"] == 0 and said.get("events"):
        wrong.append(f"{len(said['events'])} births or values where there are none")
    return said, wrong


def judge(binary, folder, markdown):
    truth = json.loads((folder / "truth.json").read_text())
    failed = 0
    if markdown:
        print("| case | ops | first | births A, B | inherited | exit |\n|---|---|---|---|---|---|")
    for case in truth["cases"]:
        said, wrong = judge_one(binary, folder, case)
        failed += bool(wrong)
        for line in wrong:
            print(f"FAIL {case['name']}: {line}", file=sys.stderr)
        if markdown:
            first = said.get("first") or {}
            shown = f"`{first['op']}` in `{first['module']}`" if first else "none"
            print(f"| {case['name']} | {said['a']['ops']}, {said['b']['ops']} | {shown} | "
                  f"{said['a']['births']}, {said['b']['births']} | {said['inherited']} | "
                  f"{case['exit']} |")
    print(f"{len(truth['cases'])} cases, {failed} failed", file=sys.stderr)
    return 1 if failed or len(truth["cases"]) < 15 else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "judge"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--binary")
    parser.add_argument("--markdown", action="store_true")
    words = parser.parse_args()
    if words.what == "make":
        make(words.folder, words.all)
        return 0
    return judge(words.binary, words.folder, words.markdown)


if __name__ == "__main__":
    sys.exit(main())
