# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own around TRL's loss and data, recorded: docs/TRL.md, sections 3 and 4."""
import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, get_scheduler, set_seed
from trl import DPOConfig, DPOTrainer, ModelConfig, ScriptArguments, TrlParser

import twinstep

parser = TrlParser((ScriptArguments, DPOConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()

model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
tokenizer = AutoTokenizer.from_pretrained(model_args.model_name_or_path)
dataset = load_dataset("json", data_files=script_args.dataset_name, split="train")
trainer = DPOTrainer(
    model=model,
    args=training_args,
    train_dataset=dataset,
    processing_class=tokenizer,
)

set_seed(training_args.seed)
loader = trainer.get_train_dataloader()
optimizer = trainer.create_optimizer()
scheduler = get_scheduler(training_args.lr_scheduler_type, optimizer, 0, training_args.max_steps)
recorder = twinstep.Recorder(model, optimizer, scheduler, config=training_args,
                             path=f"{training_args.output_dir}/run.h5").start()
model.train()
batches = iter(loader)
for update in range(training_args.max_steps):
    total = 0.0
    for _ in range(training_args.gradient_accumulation_steps):
        loss = trainer.compute_loss(model, next(batches))
        loss = loss / training_args.gradient_accumulation_steps
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), training_args.max_grad_norm)
    lr = scheduler.get_last_lr()[0]
    scheduler.step()
    optimizer.step()
    optimizer.zero_grad()
    recorder.update(lr_logged=lr)
    print({"step": update + 1, "loss": total, "grad_norm": float(norm), "learning_rate": lr})
recorder.close()
trainer.save_model(training_args.output_dir)
