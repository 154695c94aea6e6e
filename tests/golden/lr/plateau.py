# SPDX-License-Identifier: Apache-2.0
"""Writes plateau.json next to this script: the trainer_state of a real transformers.Trainer with
lr_scheduler_type="reduce_lr_on_plateau", patience 1, factor 0.5, an evaluation every 4 updates.
python plateau.py; environment as in README.md."""

import os
import tempfile

import torch
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        out = self.layer(x).squeeze(-1)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}


class Data(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 4, generator=generator)
        self.y = self.x.sum(1) + torch.randn(count, generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=80, per_device_train_batch_size=4, learning_rate=0.05,
            lr_scheduler_type="reduce_lr_on_plateau",
            lr_scheduler_kwargs={"patience": 1, "factor": 0.5}, logging_steps=1,
            eval_strategy="steps", eval_steps=4, save_strategy="no", report_to=[], use_cpu=True,
            disable_tqdm=True, metric_for_best_model="loss")
        trainer = Trainer(Model(), arguments, train_dataset=Data(200, 1), eval_dataset=Data(40, 2))
        trainer.train()
    here = os.path.dirname(os.path.abspath(__file__))
    trainer.state.save_to_json(os.path.join(here, "plateau.json"))


if __name__ == "__main__":
    main()
