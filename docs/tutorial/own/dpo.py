# SPDX-License-Identifier: Apache-2.0
"""DPO as TRL's documentation writes it, recorded: docs/TRL.md, sections 3 and 4."""
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
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
    callbacks=[twinstep.TwinstepCallback(f"{training_args.output_dir}/run.h5")],
)
trainer.train()
trainer.save_model(training_args.output_dir)
