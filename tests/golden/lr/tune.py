# SPDX-License-Identifier: Apache-2.0
"""Cases from torchtune's own full_finetune_single_device recipe, on a CPU with a tiny model.

Model, rows, tokenizer and metric logger are components that the recipe's configuration names; only
reading and writing of checkpoints is left out. Total, windows, steps and the log are the recipe's."""

import importlib.util
import logging
import random

import torch

from golden import SEED, Case, random_lr
from loops import with_values

LOGGED = {}


def model():
    from torchtune.models.llama2 import llama2

    return llama2(vocab_size=16, num_layers=1, num_heads=2, num_kv_heads=2, embed_dim=8,
                  max_seq_len=16)


class Words:
    pad_id = 0


def rows(tokenizer, count):
    generator = torch.Generator().manual_seed(1)
    return [{"tokens": row.tolist(), "labels": row.tolist()}
            for row in torch.randint(1, 16, (count, 6), generator=generator)]


class Log:
    def log_config(self, config):
        pass

    def log_dict(self, payload, step):
        LOGGED[step] = payload["lr"]

    def close(self):
        pass


def recipe_of(path):
    spec = importlib.util.spec_from_file_location("full_finetune", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Recipe(module.FullFinetuneRecipeSingleDevice):
        def load_checkpoint(self, cfg_checkpointer):
            torch.manual_seed(1)
            return {"model": model().state_dict()}

        def save_checkpoint(self, epoch):
            pass

    return Recipe


def run(rng, recipe):
    from omegaconf import OmegaConf

    lr, accumulate, batch = random_lr(rng), rng.choice([1, 2, 3, 4]), rng.randint(1, 3)
    batches = rng.randint(accumulate, 14)
    count, epochs = batches * batch - rng.randint(0, batch - 1), rng.randint(1, 4)
    warmup = rng.randint(0, max(0, batches // accumulate * epochs // 3))
    values = {"num_cycles": rng.choice([0.25, 1.0])} if rng.random() < 0.3 else {}
    config = OmegaConf.create({
        "device": "cpu", "dtype": "fp32", "seed": 1, "output_dir": "out", "epochs": epochs,
        "batch_size": batch, "gradient_accumulation_steps": accumulate, "shuffle": False,
        "max_steps_per_epoch": None, "resume_from_checkpoint": False, "compile": False,
        "optimizer_in_bwd": False, "enable_activation_checkpointing": False,
        "enable_activation_offloading": False, "clip_grad_norm": 1.0, "log_every_n_steps": 1,
        "checkpointer": {}, "model": {"_component_": "tune.model"},
        "tokenizer": {"_component_": "tune.Words"},
        "dataset": {"_component_": "tune.rows", "count": count},
        "metric_logger": {"_component_": "tune.Log"},
        "loss": {"_component_": "torch.nn.CrossEntropyLoss"},
        "optimizer": {"_component_": "torch.optim.AdamW", "lr": lr},
        "lr_scheduler": {"num_warmup_steps": warmup, **values, "_component_":
                         "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup"}})
    made, applied = recipe(cfg=config), {}
    import tune

    tune.LOGGED.clear()  # the recipe imports this file by its name
    made.setup(cfg=config)

    def before(optimizer, *_):
        applied[len(applied) + 1] = optimizer.param_groups[0]["lr"]

    made._optimizer.register_step_pre_hook(before)
    made.train()
    assert sorted(applied) == sorted(tune.LOGGED), (applied, tune.LOGGED)
    options = {"lr": lr, "warmup": warmup, "dataset": count, "epochs": float(epochs),
               "batch": batch, "accumulate": accumulate}
    return Case("torchtune", "cosine", "full_finetune_single_device",
                with_values(options, values), applied, dict(tune.LOGGED))


def cases(path, count=16):
    logging.disable(logging.CRITICAL)
    rng, recipe = random.Random(f"{SEED} torchtune recipe"), recipe_of(path)
    return [run(rng, recipe) for _ in range(count)]
