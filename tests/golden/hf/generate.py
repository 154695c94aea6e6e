# SPDX-License-Identifier: Apache-2.0
"""Writes what transformers' Trainer and TRL's DPOTrainer make of tiny checkpoints: python
generate.py [OUT]

It uses one thread of a CPU and no shuffling. Every number is what the library computed or logged:
nothing is computed here but the shapes that files need. README.md says what the files hold."""

import json
import os
import socket
import sys
import tempfile

socket.gethostname = lambda: "host"
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  WANDB_DISABLED="true", TQDM_DISABLE="1", OMP_NUM_THREADS="1",
                  MKL_NUM_THREADS="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1",
                  HF_HUB_DISABLE_TELEMETRY="1", ATEN_CPU_CAPABILITY="avx2")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import datasets  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import hf_data  # noqa: E402
import hf_models  # noqa: E402
import hf_scenarios  # noqa: E402

STEPS = 20
BATCH = 4  # rows of the single batch whose gradient is kept
# each run: the model's dtype, then what its trainer is given beyond ARGUMENTS
SFT = {
    "sft-adamw": ("float32", dict(optim="adamw_torch", learning_rate=3e-3, weight_decay=0.1)),
    "sft-default": ("float32", dict(learning_rate=3e-3, weight_decay=0.1)),  # fused AdamW
    "sft-sgd": ("float32", dict(optim="sgd", optim_args="momentum=0.9", learning_rate=0.1,
                                weight_decay=0.01)),
}
SFT_BF16 = {"sft-adamw-bf16": ("bfloat16", SFT["sft-adamw"][1])}
DPO_WORDS = dict(optim="adamw_torch", learning_rate=2e-3, weight_decay=0.05,
                 max_length=hf_data.LONGEST)
DPO = {
    "dpo-live": ("float32", dict(bf16=False, **DPO_WORDS)),
    "dpo-cached": ("float32", dict(bf16=False, precompute_ref_log_probs=True, **DPO_WORDS)),
    "dpo-sgd": ("float32", dict(bf16=False, max_length=hf_data.LONGEST, optim="sgd",
                                learning_rate=0.2, weight_decay=0.01)),
}
DPO_BF16 = {"dpo-live-bf16": ("float32", dict(bf16=True, **DPO_WORDS))}
BF16 = ("llama", "olmo2", "qwen2", "qwen3")  # one of every family has runs in bf16
CLIP = {"sft": 1.6, "dpo": 1.3}
METRICS = ("loss", "grad_norm", "learning_rate", "rewards/chosen", "rewards/rejected",
           "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected")


def arguments(folder, task, words):
    cls = trl.DPOConfig if task == "dpo" else transformers.TrainingArguments
    return cls(output_dir=folder, per_device_train_batch_size=2, gradient_accumulation_steps=2,
               max_steps=STEPS, warmup_steps=3, lr_scheduler_type="linear",
               max_grad_norm=CLIP[task], train_sampling_strategy="sequential", logging_steps=1,
               report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, seed=1,
               remove_unused_columns=task == "dpo", dataloader_pin_memory=False, **words)


def collate(rows):
    """Pads rows on the right to the longest."""
    longest = max(len(row["input_ids"]) for row in rows)

    def padded(name, filler):
        return torch.tensor([row[name] + [filler] * (longest - len(row[name])) for row in rows])

    mask = [{"mask": [1] * len(row["input_ids"])} for row in rows]
    return {"input_ids": padded("input_ids", 0), "labels": padded("labels", -100),
            "attention_mask": torch.tensor([m["mask"] + [0] * (longest - len(m["mask"]))
                                            for m in mask])}


class Truth(transformers.TrainerCallback):
    """Notes the LR of the groups at every optimizer step, and the rows of every batch."""

    def __init__(self):
        self.lr = []

    def watch(self, optimizer):
        optimizer.register_step_pre_hook(
            lambda opt, args, kwargs: self.lr.append([group["lr"] for group in opt.param_groups]))

    def on_train_begin(self, args, state, control, optimizer=None, **rest):
        self.watch(getattr(optimizer, "optimizer", optimizer))


def sft_trainer(folder, dtype, words, rows, out):
    return transformers.Trainer(model=hf_models.load(folder, getattr(torch, dtype)),
                                args=arguments(out, "sft", words), data_collator=collate,
                                train_dataset=datasets.Dataset.from_list(rows))


def dpo_trainer(folder, dtype, words, rows, out):
    words = dict(model_init_kwargs={"dtype": dtype}, **words)
    return trl.DPOTrainer(model=folder, args=arguments(out, "dpo", words),
                          train_dataset=datasets.Dataset.from_list(rows),
                          processing_class=hf_data.tokenizer())


def same_weights(label, ends, tensors):
    """Returns the other one of live and cached, where it ended with the same bits."""
    if label == "dpo-cached" and all(end.equal(tensors[f"dpo-live/{name}"])
                                     for name, end in ends.items()):
        return "dpo-live"
    return None


def run(make, folder, dtype, words, rows, label, tensors):
    """Runs one training; its final weights go to `tensors`."""
    with tempfile.TemporaryDirectory() as out:
        trainer = make(folder, dtype, words, rows, out)
        truth = Truth()
        trainer.add_callback(truth)
        trainer.train()
    history = [row for row in trainer.state.log_history if "loss" in row]
    assert len(history) == STEPS
    ends = {name: end.detach().clone() for name, end in trainer.model.named_parameters()}
    same = same_weights(label, ends, tensors)
    if not same:
        tensors.update({f"{label}/{name}": end for name, end in ends.items()})
    log = {name: [row[name] for row in history] for name in METRICS if name in history[0]}
    assert all(len(set(rates)) == 1 for rates in truth.lr)
    rows = trainer.train_dataset
    if "ref_chosen_logps" in rows.column_names:
        log["references"] = [[row["ref_chosen_logps"], row["ref_rejected_logps"]] for row in rows]
    return {"optimizer": str(trainer.args.optim.value), "weights": same or label,
            "applied": [rates[0] for rates in truth.lr], **log}


def gradients(model, label, tensors):
    for name, parameter in model.named_parameters():
        tensors[f"{label}/{name}"] = parameter.grad.detach().clone()
        parameter.grad = None


def labelled(logps, labels):
    """Returns the log-probs of the labelled positions of every row."""
    return [row[mask].tolist() for row, mask in zip(logps.float(), labels[:, 1:] != -100)]


def sft_batch(folder, dtype, rows, label, tensors):
    """Computes one batch, with the loss that the model itself takes: the mean over its labels."""
    model = hf_models.load(folder, getattr(torch, dtype))
    model.train()
    inputs = collate(rows[:BATCH])
    out = model(**inputs)
    out.loss.backward()
    logps = torch.log_softmax(out.logits.detach().float(), -1)[:, :-1]
    chosen = logps.gather(-1, inputs["labels"][:, 1:].clamp(min=0)[..., None])[..., 0]
    gradients(model, label, tensors)
    return {"loss": out.loss.item(), "logps": labelled(chosen, inputs["labels"])}


def dpo_batch(folder, dtype, words, rows, label, tensors):
    """Computes one batch through the trainer's own loss: chosen rows, then rejected ones."""
    with tempfile.TemporaryDirectory() as out:
        trainer = dpo_trainer(folder, dtype, words, rows, out)
        model = trainer.model
        model.train()
        inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(BATCH)])
        with trainer.compute_loss_context_manager(), trainer.accelerator.autocast():
            loss = trainer._compute_loss(model, inputs, False)
            labels = inputs["input_ids"].masked_fill(inputs["completion_mask"] == 0, -100)
            with torch.no_grad():
                logps = model(input_ids=inputs["input_ids"], labels=labels, fused_lm_head=True,
                              attention_mask=inputs["attention_mask"]).log_probs
        loss.backward()
        gradients(model, label, tensors)
    return {"loss": loss.item(), "logps": labelled(logps, labels)}


def write_rows(path, rows, keys):
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({key: row[key] for key in keys}) + "\n")


def golden(out, name, texts, pairs):
    folder = os.path.join(out, name)
    hf_models.save(name, folder)
    tensors, runs = {}, {}
    batches = {"sft": sft_batch(folder, "float32", texts, "sft", tensors),
               "dpo": dpo_batch(folder, "float32", DPO["dpo-live"][1], pairs, "dpo", tensors)}
    if name in BF16:
        batches["sft-bf16"] = sft_batch(folder, "bfloat16", texts, "sft-bf16", tensors)
        batches["dpo-bf16"] = dpo_batch(folder, "float32", DPO_BF16["dpo-live-bf16"][1], pairs,
                                        "dpo-bf16", tensors)
    for label, (dtype, words) in {**SFT, **(SFT_BF16 if name in BF16 else {})}.items():
        runs[label] = run(sft_trainer, folder, dtype, words, texts, label, tensors)
    for label, (dtype, words) in {**DPO, **(DPO_BF16 if name in BF16 else {})}.items():
        rows = pairs[:hf_scenarios.SAMPLES.get(label)]
        runs[label] = run(dpo_trainer, folder, dtype, words, rows, label, tensors)
    save_file(tensors, os.path.join(folder, "golden.safetensors"))
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        file.write(text({"model": name, "batches": batches, "runs": runs}) + "\n")


def text(value, depth=0):
    """Writes JSON with each list of numbers on one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    inner = ",\n".join("  " * (depth + 1) + json.dumps(key) + ": " + text(entry, depth + 1)
                       for key, entry in value.items())
    return "{\n" + inner + "\n" + "  " * depth + "}"


def tokenized(out, pairs):
    """Returns the ids that TRL makes of the pairs, its end of sequence included."""
    folder = os.path.join(out, "llama")
    hf_models.save("llama", folder)
    with tempfile.TemporaryDirectory() as scratch:
        words = dict(bf16=False, max_length=hf_data.LONGEST)
        trainer = dpo_trainer(folder, "float32", words, pairs, scratch)
        return [dict(row) for row in trainer.train_dataset]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else HERE
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    texts, pairs = hf_data.texts(), hf_data.pairs()
    os.makedirs(out, exist_ok=True)
    write_rows(os.path.join(out, "texts.jsonl"), texts, ("input_ids", "labels"))
    write_rows(os.path.join(out, "pairs.jsonl"), tokenized(out, pairs),
               ("prompt_ids", "chosen_ids", "rejected_ids"))
    for name in hf_models.MODELS:
        golden(out, name, texts, pairs)
        hf_scenarios.write(out, name, CLIP, name in BF16)


if __name__ == "__main__":
    main()
