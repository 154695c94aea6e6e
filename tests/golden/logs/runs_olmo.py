# SPDX-License-Identifier: Apache-2.0
"""Runs OLMo-core's own Trainer on a CPU with a tiny model; its console and metrics files are the
fixture."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tiny  # noqa: E402

RUNS = {
    "olmo-core-linear": dict(schedule="linear", lr=1e-3, steps=15, warmup=3,
                             values={"min_lr_ratio": 0.0}),
    "olmo-core-linear-cold": dict(schedule="linear", lr=5e-7, steps=5, warmup=0,
                                  values={"min_lr_ratio": 0.0}),
    "olmo-core-cosine": dict(schedule="cosine", lr=1e-3, steps=20, warmup_ratio=0.12),
    "olmo-core-wsd": dict(schedule="wsd", lr=1e-3, steps=20, warmup=4, values={"decay": 5}),
}


def scheduler_of(run):
    from olmo_core.optim import scheduler

    name = {"linear": "LinearWithWarmup", "cosine": "CosWithWarmup", "wsd": "WSD"}[run["schedule"]]
    arguments = {}
    for key, value in run.get("values", {}).items():
        arguments[{"min_lr_ratio": "alpha_f"}.get(key, key)] = value
    if "decay" in arguments:
        arguments["decay_fraction"] = None
    key = "warmup" if "warmup" in run else "warmup_fraction"
    arguments[key] = run.get("warmup", run.get("warmup_ratio"))
    return getattr(scheduler, name)(**arguments)


def main():
    name = sys.argv[1]
    run = RUNS[name]
    import numpy
    from olmo_core.data import (NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig)
    from olmo_core.nn.transformer import TransformerConfig
    from olmo_core.optim import AdamWConfig
    from olmo_core.train import (Duration, TrainerConfig, prepare_training_environment,
                                 teardown_training_environment)
    from olmo_core.train.callbacks import ConsoleLoggerCallback, MetricSaverCallback
    from olmo_core.train.train_module import TransformerTrainModuleConfig

    prepare_training_environment(seed=7, backend=None)
    words = TokenizerConfig(vocab_size=64, eos_token_id=2, pad_token_id=0)
    tokens = numpy.random.default_rng(1).integers(3, 40, 40000).astype(numpy.uint8)
    tokens.tofile("tokens.npy")
    model = TransformerConfig.llama_like(vocab_size=64, d_model=16, n_layers=1, n_heads=2).build(
        init_device="cpu")
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=64, max_sequence_length=32, optim=AdamWConfig(lr=run["lr"]),
        scheduler=scheduler_of(run), max_grad_norm=1.0).build(model)
    truth = tiny.Truth()
    truth.watch(module.optim)
    dataset = NumpyFSLDatasetConfig(paths=["tokens.npy"], sequence_length=32, tokenizer=words,
                                    work_dir="work").build()
    loader = NumpyDataLoaderConfig(global_batch_size=128, seed=7, work_dir="work").build(dataset)
    trainer = (
        TrainerConfig(save_folder="out", work_dir="work", save_overwrite=True,
                      max_duration=Duration.steps(run["steps"]), metrics_collect_interval=1,
                      no_checkpoints=True)
        .with_callback("console", ConsoleLoggerCallback(log_interval=1, metrics_log_interval=1))
        .with_callback("metrics", MetricSaverCallback(save_interval=5))
        .build(module, loader))
    trainer.fit()
    teardown_training_environment()
    # OLMo-core's dry run steps nothing, so every entry of `applied` must be an update.
    assert len(truth.applied) == run["steps"], truth.applied
    from runs import facts

    truth.write("truth.json", **facts(
        name, run, "olmo-core", "runs_olmo.py " + name, total=run["steps"], first=1,
        versions=tiny.versions("torch", "ai2-olmo-core")))


if __name__ == "__main__":
    main()
