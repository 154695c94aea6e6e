# SPDX-License-Identifier: Apache-2.0
"""Writes the scenario files, which are the goldens' trainings in twinstep's words."""

import os

HEAD = """\
# Written by generate.py: the trainings behind golden.json.
twinstep: 1
name: hf-{name}-{part}
about: {about}
source: {source}
steps: 20
common:
  task: {task}
  model: {{from: .}}
  data: {{{data}, max_len: 24, shuffle: false{samples}}}
  batch: {{size: 4, micro: 2, layout: concatenated, tail: keep}}
"""
TASK = {
    "sft": ("text: ../texts.jsonl", "transformers.Trainer 5.23.0", ""),
    "dpo": ("pairs: ../pairs.jsonl", "trl.DPOTrainer 1.16.0",
            "  loss: {divisor: mean-of-means}  # each micro-batch by its pairs, then by their number\n"),
}
EXPECT = {"dpo": "expect: {verdict: identical}\n"}
SAMPLES = {"dpo-sgd": 21}  # an epoch ends with a window of one micro-batch of one pair
SHARED = """\
  schedule: {{contract: hf, name: linear, warmup: 3}}
  clip: {{max_norm: {clip}, norm: norms, dtype: f32}}
"""
ADAMW = "name: adamw, variant: torch-cpu, decay: hf"
FUSED = "name: adamw, variant: torch-fused, decay: hf"
SGD = "name: sgd, variant: torch-cpu, decay: hf"
# each part: task, what it shows, lines of common, arms
PARTS = {
    "sft": ("sft", "a checkpoint of transformers trained on texts, by AdamW and by SGD", [], {
        "adamw": f"optimizer: {{{ADAMW}, lr: 3e-3, weight_decay: 0.1}}",
        "sgd": f"optimizer: {{{SGD}, momentum: 0.9, lr: 0.1, weight_decay: 0.01}}"}),
    "sft-default": ("sft", "what Trainer takes unless told otherwise, fused AdamW, as a CPU's kernel "
                    "rounds it and as CUDA's does", [], {
                        "cpu": f"optimizer: {{{ADAMW}, lr: 3e-3, weight_decay: 0.1}}",
                        "cuda": f"optimizer: {{{FUSED}, lr: 3e-3, weight_decay: 0.1}}"}),
    "dpo": ("dpo", "DPO with the reference beside the policy, and from a pass before training",
            [f"optimizer: {{{ADAMW}, lr: 2e-3, weight_decay: 0.05}}"],
            {"live": "dpo: {reference: live}", "cached": "dpo: {reference: cached}"}),
    "dpo-sgd": ("dpo", "DPO by SGD, in f32 and in f64",
                [f"optimizer: {{{SGD}, lr: 0.2, weight_decay: 0.01}}", "dpo: {reference: live}"],
                {"f32": "", "f64": "numerics: {param: f64, compute: f64}"}),
    "sft-bf16": ("sft", "a model loaded in bf16 and trained without masters",
                 [f"optimizer: {{{ADAMW}, lr: 3e-3, weight_decay: 0.1}}"],
                 {"bf16": "numerics: {param: bf16, compute: bf16, softmax: f32, "
                          "grad_accumulate: storage}, clip: {dtype: gradient}",
                  "f64": "numerics: {param: f64, compute: f64}"}),
    "dpo-bf16": ("dpo", "DPO in mixed precision, f32 weights and bf16 products",
                 [f"optimizer: {{{ADAMW}, lr: 2e-3, weight_decay: 0.05}}",
                  "dpo: {reference: live}"],
                 {"mixed": "numerics: {param: f32, compute: f32, product: bf16}",
                  "f64": "numerics: {param: f64, compute: f64}"}),
}


def write(out, name, clip, bf16):
    for part, (task, about, lines, arms) in PARTS.items():
        if part.endswith("bf16") and not bf16:
            continue
        data, source, more = TASK[task]
        samples = f", samples: {SAMPLES[part]}" if part in SAMPLES else ""
        text = HEAD.format(name=name, part=part, about=about, source=source, task=task, data=data,
                           samples=samples)
        text += more + SHARED.format(clip=clip[task])
        text += "".join(f"  {line}\n" for line in lines) + "arms:\n"
        text += "".join(f"  {arm}: {{{words}}}\n" for arm, words in arms.items())
        text += EXPECT.get(part, "")
        with open(os.path.join(out, name, part + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)
