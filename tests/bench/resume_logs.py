#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with transformers' Trainer, resumes rightly and with a slip, and asks resume-check.

    resume_logs.py --binary TWINSTEP [--folder FOLDER] [--keep FOLDER] [--markdown]

Every training has 12 updates of a model of a few thousand random weights, logs each of them and
saves after update 6; that is the run which was not interrupted. Each case copies the checkpoint of
update 6, takes a file of it away, rounds the weights or changes an argument, and goes on. Then
`twinstep resume-check` gets both trainer_state.json and --restart 6, and nothing else. A training
that --folder already holds is not made again; --keep copies the logs and the truth to where
tests/cli/resume_check_logs.py reads them. It needs transformers and accelerate, one thread of a CPU,
and no network."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")

UPDATES, SAVED = 12, 6


def remove(*names):
    def change(folder):
        for name in names:
            os.remove(os.path.join(folder, name))
    return change


def round_weights(folder):
    import torch
    from safetensors.torch import load_file, save_file
    path = os.path.join(folder, "model.safetensors")
    save_file({name: value.to(torch.bfloat16).to(value.dtype) for name, value in load_file(path).items()},
              path, metadata={"format": "pt"})


def change_peak(folder):
    """What a scheduler that is made anew around the loaded optimizer does."""
    import torch
    path = os.path.join(folder, "scheduler.pt")
    state = torch.load(path)
    state["base_lrs"] = list(state["_last_lr"])
    torch.save(state, path)


def double_counter(folder):
    import torch
    path = os.path.join(folder, "scheduler.pt")
    state = torch.load(path)
    state["last_epoch"] *= 2
    torch.save(state, path)


def lose_moments(folder):
    """Zero moments and count in a file that is there, so that the scheduler is loaded with it."""
    import torch
    path = os.path.join(folder, "optimizer.pt")
    state = torch.load(path)
    state["state"] = {}
    torch.save(state, path)


# name: dropout, what is done to the checkpoint, arguments of the resumed run, what is not restored
CASES = {
    "right": (0.0, None, {}, ()),
    "right, dropout": (0.1, None, {}, ()),
    "scheduler.pt gone": (0.0, remove("scheduler.pt"), {}, ("scheduler", "optimizer")),
    "optimizer.pt gone": (0.0, remove("optimizer.pt"), {}, ("scheduler", "optimizer")),
    "moments empty": (0.0, lose_moments, {}, ("optimizer",)),
    "rng_state.pth gone, dropout": (0.1, remove("rng_state.pth"), {}, ("generators",)),
    "rng_state.pth gone, no dropout": (0.0, remove("rng_state.pth"), {}, ()),
    "base_lrs from the last LR": (0.0, change_peak, {}, ("scheduler",)),
    "last_epoch doubled": (0.0, double_counter, {}, ("scheduler",)),
    "another learning_rate": (0.0, None, {"learning_rate": 3e-3}, ()),
    "ignore_data_skip": (0.0, None, {"ignore_data_skip": True}, ("data",)),
    "another data_seed": (0.0, None, {"data_seed": 9}, ("data",)),
    "weights rounded to bf16": (0.0, round_weights, {}, ("weights",)),
}


def make(folder, dropout, resume=None, **changed):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
    torch.set_num_threads(1)
    set_seed(7)
    generator = torch.Generator().manual_seed(11)
    rows = []
    for _ in range(96):
        length = int(torch.randint(6, 17, (1,), generator=generator))
        rows.append(torch.randint(1, 64, (length,), generator=generator))

    def collate(batch):
        longest = max(len(row) for row in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        for i, row in enumerate(batch):
            ids[i, :len(row)] = row
        mask = (torch.arange(longest)[None] < torch.tensor([len(row) for row in batch])[:, None]).long()
        return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}

    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=dropout,
                        embd_pdrop=dropout, attn_pdrop=dropout, bos_token_id=0, eos_token_id=0)
    arguments = dict(output_dir=folder, max_steps=UPDATES, per_device_train_batch_size=4, learning_rate=2e-3,
                     warmup_steps=2, logging_steps=1, save_steps=SAVED, use_cpu=True, report_to=[],
                     include_num_input_tokens_seen="non_padding", disable_tqdm=True, seed=7)
    arguments.update(changed)
    trainer = Trainer(GPT2LMHeadModel(config), TrainingArguments(**arguments), train_dataset=rows,
                      data_collator=collate)
    trainer.train(resume_from_checkpoint=resume)
    trainer.save_state()
    return os.path.join(folder, "trainer_state.json")


def in_child(*arguments):
    """A training in a process of its own, which has the libraries already: whatever else is global begins
    anew."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            folder, dropout, resume, changed = arguments
            make(folder, dropout, resume, **changed)
            code = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{arguments}: the training failed")


def keep(folder, whole, place, short, lost):
    path = os.path.join(folder, "truth.json")
    truth = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            truth = json.load(file)
    before = f"{os.path.basename(whole)}.json"
    shutil.copyfile(os.path.join(whole, "trainer_state.json"), os.path.join(folder, before))
    shutil.copyfile(os.path.join(place, "trainer_state.json"), os.path.join(folder, f"{short}.json"))
    truth[short] = {"before": before, "restart": SAVED, "lost": list(lost)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(truth, file, indent=1)
        file.write("\n")


def try_case(options, folder, name):
    dropout, change, arguments, lost = CASES[name]
    short = name.replace(" ", "-").replace(",", "")
    whole, place = os.path.join(folder, f"whole-{dropout}"), os.path.join(folder, short)
    if not os.path.exists(whole):
        in_child(whole, dropout, None, {})
    if not os.path.exists(os.path.join(place, "trainer_state.json")):
        checkpoint = os.path.join(place, f"checkpoint-{SAVED}")
        shutil.copytree(os.path.join(whole, f"checkpoint-{SAVED}"), checkpoint)
        if change:
            change(checkpoint)
        in_child(place, dropout, checkpoint, arguments)
    if options.keep:
        keep(options.keep, whole, place, short, lost)
    done = subprocess.run([options.binary, "resume-check", os.path.join(whole, "trainer_state.json"),
                           os.path.join(place, "trainer_state.json"), "--restart", str(SAVED), "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{name}: {done.stderr}")
    answer = json.loads(done.stdout)
    said = {state: [part for part, item in answer["parts"].items() if item["state"] == state]
            for state in ("lost", "untold")}
    bug = next((item["bug"] for item in answer["parts"].values() if item["bug"]), None)
    wrong = [part for part in said["lost"] if part not in lost]
    missed = [part for part in lost if part not in said["lost"] + said["untold"]]
    return {"case": name, "lost": lost, "exit": done.returncode, "said": said, "bug": bug,
            "wrong": wrong, "missed": missed, "answer": answer}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=os.path.abspath)
    parser.add_argument("--folder")
    parser.add_argument("--keep")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", action="append", choices=tuple(CASES))
    options = parser.parse_args()
    import safetensors.torch  # noqa: F401
    import transformers  # noqa: F401
    from transformers import GPT2LMHeadModel, Trainer  # noqa: F401
    results = []
    with tempfile.TemporaryDirectory(prefix="twinstep-resume-") as temporary:
        folder = options.folder or temporary
        for name in options.only or CASES:
            result = try_case(options, folder, name)
            results.append(result)
            if not options.markdown:
                print(json.dumps(result["answer"], indent=1), flush=True)
            print("| {} | {} | {} | {} | {} | {} |".format(
                name, ", ".join(result["lost"]) or "nothing", result["exit"],
                ", ".join(result["said"]["lost"]) or "", ", ".join(result["said"]["untold"]) or "",
                f"`{result['bug']}`" if result["bug"] else ""), flush=True)
    # a right restart, or one that shows nothing, exits 0 and no other does; no part is called lost that was not
    bad = [r["case"] for r in results
           if r["wrong"] or r["missed"] or (r["exit"] == 0) != (not r["lost"])]
    print(f"{len(results) - len(bad)} of {len(results)} as planted" + (f", not: {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
