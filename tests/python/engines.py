# SPDX-License-Identifier: Apache-2.0
"""Trainings by DeepSpeed, megatron-core and torchtitan for test_record_engines_torch.py, which runs
it:

    engines.py CASE,CASE... FOLDER WORLD

Each case is LIBRARY-VARIANT-HOW. The loop is the example of docs/RECORD.md, taken out of the page and
executed. HOW is `recorded`, `bare` (with a recorder that does nothing), or a fault that is planted in
the library's own settings. Every rank writes FOLDER/CASE.rankN.json: a SHA-256 of the weights and the
losses that the library itself tells, and beside it the recording.

There is no CUDA device here. DeepSpeed has an accelerator for a CPU, which takes no fp16, so the
answer to that question is replaced for fp16. megatron-core and torchtitan name CUDA as their device:
a mode of torch puts the CPU in its place, or a module torchtitan's device. What else is replaced
stands where it is."""
import contextlib
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import sys
import types
import warnings
from dataclasses import dataclass

import torch
import torch._utils
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

import twinstep

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/RECORD.md"
UPDATES, MICRO = 8, 2
PEAK, FLOOR, WARMUP = 1e-2, 1e-3, 4


def example(word):
    """The block of Python of the page that holds `word`."""
    found = [b for b in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"),
                                   re.S | re.M) if word in b]
    if len(found) != 1:
        raise AssertionError(f"{word}: in {len(found)} examples of {PAGE}")
    return found[0]


class Silent:
    """A recorder that does nothing, so that the example runs without one."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


def package(how):
    """What the example knows as `twinstep`. Each update has all digests."""
    make = (lambda *_, **__: Silent()) if how == "bare" else \
        (lambda *args, **kw: twinstep.Recorder(*args, every=1, quiet=True, **kw))
    return types.SimpleNamespace(Recorder=make)


def ids(k, shape):
    """Token ids of the rank's batch `k`."""
    drawn = torch.Generator().manual_seed(100 + k * dist.get_world_size() + dist.get_rank())
    return torch.randint(32, shape, generator=drawn)


# ---- DeepSpeed ----

class Small(torch.nn.Module):
    """A model of transformers' kind: it returns something with a loss."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(32, 8), torch.nn.Linear(8, 12),
                                       torch.nn.Linear(12, 32))

    def forward(self, ids):
        logits = self.net(ids)[:, :-1].flatten(0, 1).float()
        return types.SimpleNamespace(
            loss=torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten()))


def deepspeed_case(variant, how):
    """`variant`: stage of ZeRO, then f32, bf16 or fp16."""
    import deepspeed
    from deepspeed.accelerator.cpu_accelerator import CPU_Accelerator
    stage, dtype = variant[0], variant[1:]
    warmup = WARMUP + 2 if how == "warmup" else WARMUP
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": MICRO,
              "gradient_clipping": 0.0 if how == "noclip" else 0.1,
              "optimizer": {"type": "AdamW", "params": {"lr": PEAK, "torch_adam": True}},
              "scheduler": {"type": "WarmupLR", "params": {
                  "warmup_min_lr": 0, "warmup_max_lr": PEAK, "warmup_num_steps": warmup,
                  "warmup_type": "linear"}},
              "zero_optimization": {"stage": int(stage)}, "steps_per_print": 1000}
    if dtype != "f32":
        config[dtype] = {"enabled": True}
    if dtype == "fp16":
        CPU_Accelerator.is_fp16_supported = lambda self: True
        config["fp16"].update(initial_scale_power=20, hysteresis=1)
    torch.manual_seed(3)
    model, losses = Small(), []
    loader = [{"ids": ids(k, (2, 6))} for k in range(UPDATES * MICRO)]
    space = {"deepspeed": deepspeed, "twinstep": package(how), "model": model, "config": config,
             "loader": loader}
    model.register_forward_hook(lambda m, a, out: losses.append(float(out.loss.detach())))
    exec(example("deepspeed.initialize"), space)
    return [model], losses


# ---- megatron-core ----

class OnCpu(TorchFunctionMode):
    """The CPU in the place of CUDA, wherever megatron-core makes a tensor or asks for its type."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        found = func(*args, **kwargs)
        if func is torch.Tensor.type and isinstance(found, str):
            return found.replace("torch.", "torch.cuda.", 1)
        return found


def megatron_case(variant, how):
    """`variant`: `plain`, or `shared` with the distributed optimizer."""
    torch.cuda.current_device = lambda: torch.device("cpu")
    from megatron.core import parallel_state
    from megatron.core.distributed import (DistributedDataParallel, DistributedDataParallelConfig,
                                           finalize_model_grads)
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel import get_cuda_rng_tracker
    from megatron.core.transformer.transformer_config import TransformerConfig
    parallel_state.initialize_model_parallel(1, 1)
    get_cuda_rng_tracker().fork = lambda *_: contextlib.nullcontext()   # no dropout draws from it
    shared = variant == "shared"
    batch = 2 * MICRO * dist.get_world_size()
    with OnCpu():
        torch.manual_seed(3)
        settings = TransformerConfig(
            num_layers=1, hidden_size=16, num_attention_heads=2, use_cpu_initialization=True,
            hidden_dropout=0.0, attention_dropout=0.0, bias_dropout_fusion=False,
            masked_softmax_fusion=False, bias_activation_fusion=False,
            gradient_accumulation_fusion=False, persist_layer_norm=False)
        plain = GPTModel(settings, get_gpt_layer_local_spec(), vocab_size=32,
                         max_sequence_length=8)
        model = [DistributedDataParallel(settings, DistributedDataParallelConfig(
            use_distributed_optimizer=shared), plain)]
        optimizer = get_megatron_optimizer(OptimizerConfig(
            optimizer="adam", lr=PEAK, min_lr=FLOOR, clip_grad=0.0 if how == "noclip" else 0.1,
            use_distributed_optimizer=shared), model)
        scheduler = OptimizerParamScheduler(
            optimizer, init_lr=0.0, max_lr=PEAK, min_lr=FLOOR,
            lr_warmup_steps=(WARMUP + 2 if how == "warmup" else WARMUP) * batch,
            lr_decay_steps=2 * UPDATES * batch, lr_decay_style="cosine", start_wd=0.01, end_wd=0.01,
            wd_incr_steps=2 * UPDATES * batch, wd_incr_style="constant")
        settings.finalize_model_grads_func = finalize_model_grads
        settings.grad_scale_func = optimizer.scale_loss
        losses, batches = [], iter(range(UPDATES * MICRO))

        def forward(_, net):
            rows = ids(next(batches), (2, 8))
            mask = torch.ones(8, 8, dtype=torch.bool).triu(1)[None, None]
            found = net(rows, torch.arange(8)[None].expand(2, 8), mask, labels=rows.roll(-1, 1))

            def loss(t):
                mean = t.float().mean()
                losses.append(float(mean.detach()))
                return mean, {"lm loss": mean.detach()}
            return found, loss

        def forward_backward():
            get_forward_backward_func()(
                forward_step_func=forward, data_iterator=None, model=model,
                num_microbatches=MICRO, seq_length=8, micro_batch_size=2, forward_only=False)
        exec(example("opt_param_scheduler"), {
            "twinstep": package(how), "model": model, "optimizer": optimizer,
            "opt_param_scheduler": scheduler, "forward_backward": forward_backward,
            "train_iters": UPDATES, "global_batch_size": batch})
    return [plain], losses


# ---- torchtitan ----

class Cpu(types.ModuleType):
    """torch.cpu, with what torchtitan asks of a device's memory."""

    current_device = staticmethod(lambda: 0)
    get_device_name = staticmethod(lambda _: "cpu")
    get_device_properties = staticmethod(lambda _: types.SimpleNamespace(total_memory=1 << 30))
    reset_peak_memory_stats = empty_cache = staticmethod(lambda: None)
    memory_stats = staticmethod(lambda _: {})

    def __getattr__(self, name):
        return getattr(torch.cpu, name)


def titan_config(variant, how):
    """Llama 3 of 2 narrow layers. Attention is torch's own: flex attention has no gradient on a
    CPU."""
    import torchtitan.models.llama3 as llama
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
    from torchtitan.components.metrics import MetricsProcessor
    from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
    from torchtitan.components.tokenizer import BaseTokenizer
    from torchtitan.config import TrainingConfig
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.trainer import Trainer

    class Rows(BaseDataLoader):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            pass

        def __init__(self, config, **_):
            pass

        def __iter__(self):
            for k in range(UPDATES * MICRO):
                rows = ids(k, (2, 9))
                places = torch.arange(8).expand(2, -1).contiguous()
                yield {"input": rows[:, :-1], "positions": places}, rows[:, 1:]

        def state_dict(self):
            return {}

        def load_state_dict(self, state_dict):
            pass

    class NoTokenizer(BaseTokenizer):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):
            pass

        def __init__(self, config=None, **_):
            pass

        encode = decode = get_vocab_size = lambda self, *_, **__: 32

    def narrow(**_):
        layer = llama._build_llama3_layers(
            n_layers=2, dim=16, n_heads=2, hidden_dim=32, attn_backend="sdpa",
            rope=llama.ComplexRoPE.Config(dim=8, max_seq_len=64, theta=500000, scaling="llama"))
        return llama.Llama3Model.Config(
            dim=16, vocab_size=32, layers=layer,
            tok_embeddings=llama.Embedding.Config(num_embeddings=32, embedding_dim=16,
                                                  param_init=llama._EMBEDDING_INIT),
            norm=llama.RMSNorm.Config(normalized_shape=16, param_init=llama._NORM_INIT),
            lm_head=llama.Linear.Config(in_features=16, out_features=32,
                                        param_init=llama._output_linear_init(16)))
    llama.get_attention_config = lambda _: ScaledDotProductAttention.Config()
    llama.llama3_configs["narrow"] = narrow
    entropy = CrossEntropyLoss.Config(global_vocab_size=32)
    config = Trainer.Config(
        loss=ChunkedLossWrapper.Config(loss_fn=entropy) if variant == "chunked" else entropy,
        model_spec=llama.model_registry("narrow"), optimizer=default_adamw(lr=PEAK),
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=3, decay_ratio=0.5),
        training=TrainingConfig(
            local_batch_size=2, global_batch_size=2 * MICRO * dist.get_world_size(), seq_len=8,
            steps=UPDATES, max_norm=1e9 if how == "noclip" else 0.5, disable_cuda_graphs=True,
            mixed_precision_param="float32"),
        dataloader=Rows.Config(), tokenizer=NoTokenizer.Config(),
        metrics=MetricsProcessor.Config(log_freq=1), dump_folder="out")
    config.debug.seed = 3
    return Trainer, config


def torchtitan_case(variant, how):
    """`variant`: `whole` or `chunked`, how the loss goes backward."""
    torch._utils._get_available_device_type = lambda: "cpu"
    torch._utils._get_device_module = lambda _: Cpu("cpu")
    trainer, config = titan_config(variant, how)
    losses = []

    class Telling(trainer):
        def forward_backward_step(self, **kwargs):
            loss = super().forward_backward_step(**kwargs)
            losses.append(float(loss.detach()))
            return loss
    space = {"twinstep": package(how), "Trainer": Telling}
    exec(example("class RecordedTrainer"), space)
    made = space["RecordedTrainer"](config)
    for module in made.model_parts[0].modules():    # gloo has no product before its sum
        if hasattr(module, "set_force_sum_reduction_for_comms"):
            module.set_force_sum_reduction_for_comms(True)
    if how == "early":                              # each update takes the next one's rate
        made.lr_schedulers.step()
    made.train()
    return made.model_parts, losses


def digest_of(models):
    """A SHA-256 of all weights, whole."""
    found = hashlib.sha256()
    for name, p in sorted(pair for model in models for pair in model.named_parameters()):
        p = p.detach()
        p = p.full_tensor() if hasattr(p, "full_tensor") else p
        found.update(name.encode() + p.float().contiguous().numpy().tobytes())
    return found.hexdigest()


def work(rank, world, case, folder):
    """One rank of one case, in a folder of its own for what the example writes."""
    library, variant, how = case.split("-")
    place = pathlib.Path(folder, case)
    place.mkdir(exist_ok=True)
    os.chdir(place)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="1")      # nobody listens: see below
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{case}", rank=rank,
                            world_size=world)
    does = {"deepspeed": deepspeed_case, "megatron": megatron_case, "torchtitan": torchtitan_case}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        models, losses = does[library](variant, how)
    told = [str(w.message) for w in seen if str(w.message).startswith("twinstep")]
    (place.parent / f"{case}.rank{rank}.json").write_text(json.dumps(
        {"weights": digest_of(models), "losses": losses, "warnings": told}), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    # DeepSpeed compiles its kernels for shared memory where it finds a compiler; no folder of a
    # user's is written to.
    os.environ.update(DS_ACCELERATOR="cpu", TORCH_EXTENSIONS_DIR=os.path.join(sys.argv[2], "made"),
                      CUDA_VISIBLE_DEVICES="")
    for one in sys.argv[1].split(","):
        print(one, importlib.metadata.version(
            {"megatron": "megatron-core"}.get(one.split("-")[0], one.split("-")[0])), flush=True)
        torch.multiprocessing.spawn(work, (int(sys.argv[3]), one, sys.argv[2]),
                                    nprocs=int(sys.argv[3]))
    shutil.rmtree(os.path.join(sys.argv[2], "made"), ignore_errors=True)
