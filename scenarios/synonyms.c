/* SPDX-License-Identifier: Apache-2.0
 * The table of other programs' names. Every target must be a key of the schema, of the head or of a
 * class, and every value one that the key takes; every field of TrainingArguments, DPOConfig and
 * SFTConfig has a row (tests/trainer/test_synonyms.c walks the table). */
#include "scenarios/synonyms.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"

#define COUNTER "in updates, unless schedule.increment is not 1"
#define MICRO "samples of one micro-batch; batch.size is the samples of an update"
#define SAMPLES "samples of one update: per device x accumulation x processes"
#define EPOCHS "at the head of the file, in updates: epochs x samples / batch.size"
#define AUTOCAST "compute: bf16 with param: f32, which is autocast"
#define AT_HEAD "at the head of the file, for both arms alike"
#define BITSANDBYTES_LION                                                                          \
    "of bitsandbytes, whose kernel rounds otherwise and adds weight_decay to the gradient"
#define ADAPTERS "every parameter is trained (no LoRA, no adapters)"
#define PADDED "what is padded has no label and moves no bit"
#define CUT "only the whole sequence is cut, at its end"
#define REDRAWN "recomputing moves no bit but those of dropout masks"

/* A name without a key here, and why: the second half of ": no counterpart: WHY". */
#define NO_KEY(name, why)                                                                          \
    { (name), NULL, NULL, (why) }
static const char elsewhere[] = "it says what is written, printed or uploaded, which moves no bit";
#define BATCHES "batches are made in the process that trains, so nothing is loaded beside it"
#define DURING "nothing is evaluated during a training; eval measures the last weights once"
#define PRECISE "eval measures in f64, whatever the arms train in (docs/EVAL.md)"
#define RANKS "ranks are parallel.ranks, which this program starts itself"
#define CONTEXT "no ranks share a sequence's attention (context parallelism)"
#define PIPELINE "no ranks have layers of their own (pipeline parallelism)"
#define EXPERTS "no model here has experts, so none are dealt to ranks"
#define REGIONS "norms of slices of the tokens move no bit; parallel.forgets is the bug of them"
#define ZERO "a stage: 0, 1, 2 or 3; moves no bit in mode invariant"
#define PARTS "a divisor of numerics.cuts, which cut the sums"
#define DATA_RANKS "in mode invariant at most numerics.shards, or any number of one shard"
#define CHANNELS "parallel.reduce nccl-ring and nccl-tree have one channel (twinstep ranks order)"
#define FSDP "buckets: fsdp2 adds as it does in mode shaped; parallel.zero 3 owns rows so"
#define COMPILED "no compiler rewrites the operations; docs/DETERMINISM.md says how each one rounds"
#define COLUMNS "the columns of a row have the names of docs/DATA.md"
#define OVERLAP "overlap itself moves no bit; next-bucket is its bug"
#define MEMORY "it saves memory and moves no bit"
#define FIXED "the reference stays the initial model"
#define RECORDED "every update is recorded"

static const struct synonym table[] = {
    /* transformers.TrainingArguments and Trainer */
    {"learning_rate", "optimizer.lr", NULL, ""},
    {"max_steps", "steps", NULL, "at the head of the file"},
    {"num_train_epochs", "steps", NULL, EPOCHS},
    {"warmup_steps", "schedule.warmup", NULL, COUNTER},
    {"warmup_ratio", "schedule.warmup_ratio", NULL, ""},
    {"lr_scheduler_type", "schedule.name", NULL, ""},
    {"lr_scheduler_kwargs", "schedule.name", NULL,
     "what they hold stands beside it, such as schedule.min_lr_ratio"},
    {"gradient_accumulation_steps", "batch.micro", NULL,
     "batch.size / batch.micro is the number of steps"},
    {"per_device_train_batch_size", "batch.micro", NULL, MICRO},
    {"train_batch_size", "batch.size", NULL, SAMPLES},
    {"max_grad_norm", "clip.max_norm", NULL, ""},
    {"weight_decay", "optimizer.weight_decay", NULL, ""},
    {"optim", "optimizer.name", NULL, "adamw_torch is adamw"},
    {"adam_beta1", "optimizer.beta1", NULL, ""},
    {"adam_beta2", "optimizer.beta2", NULL, ""},
    {"adam_epsilon", "optimizer.eps", NULL, ""},
    {"bf16", "numerics.compute", NULL, "bf16: true is " AUTOCAST},
    {"fp16", "numerics.compute", NULL, "fp16: true is compute: f16 with scaler.kind: dynamic"},
    {"tf32", "numerics.product", NULL, "tf32: true is product: tf32"},
    {"torch_dtype", "numerics.param", NULL, "the dtype of the weights; bfloat16 is bf16"},
    {"data_seed", "data.seed", NULL, ""},
    {"dataloader_drop_last", "batch.tail", NULL,
     "batch.tail is about an update, not a batch: drop or keep"},
    {"gradient_checkpointing", "dropout.recompute", NULL, REDRAWN},
    {"full_determinism", "numerics.mode", NULL, "true is mode: deterministic"},
    {"average_tokens_across_devices", "loss.divisor", NULL,
     "true is divisor: update, false is mean-of-ranks with loss.ranks"},
    {"label_smoothing_factor", "dpo.label_smoothing", NULL,
     "of preferences; cross-entropy has no smoothing here"},
    {"save_steps", "record.snapshots", NULL, ""},
    {"activation_checkpointing", "dropout.recompute", NULL, REDRAWN},
    {"gradient_checkpointing_kwargs", "dropout.recompute", NULL,
     "preserve_rng_state: false is recompute: redraw"},
    {"activation_checkpointing_kwargs", "dropout.recompute", NULL,
     "preserve_rng_state: false is recompute: redraw"},
    {"resume_from_checkpoint", "resume.after", NULL,
     "the update after which the job stops and restarts"},
    {"ignore_data_skip", "resume.restores", NULL, "true is a list without data"},
    {"train_sampling_strategy", "data.shuffle", NULL,
     "random is true, sequential is false; nothing groups by length"},
    {"optim_args", "optimizer.name", NULL,
     "what they hold stands beside it, such as optimizer.eps"},
    {"deepspeed", "schedule.contract", NULL,
     "what it does to a schedule, such as deepspeed-warmup; its ZeRO is parallel.zero"},
    {"use_liger_kernel", "numerics.backward.cross_entropy", NULL,
     "fused is the formula of its loss; its other kernels have no counterpart"},
    {"use_cpu", "numerics.backend", NULL, "true is backend: cpu"},
    {"accelerator_config", "parallel.deal", NULL,
     "micros is Accelerate's, split_batches or not; even_batches is parallel.uneven"},
    NO_KEY("auto_find_batch_size", "batch.size and batch.micro are fixed before the training"),
    NO_KEY("do_train", "the verb says what is done; run trains"),
    NO_KEY("do_predict", "the verb says what is done, and none predicts"),
    NO_KEY("label_names", COLUMNS),
    NO_KEY("remove_unused_columns", COLUMNS),
    NO_KEY("length_column_name", "nothing groups rows by length"),
    NO_KEY("group_by_length", "nothing groups rows by length"),
    NO_KEY("liger_kernel_config",
           "of Liger's kernels the loss alone has a key, numerics.backward.cross_entropy"),
    NO_KEY("neftune_noise_alpha", "no noise is added to embeddings"),
    NO_KEY("optim_target_modules", "one optimizer trains every parameter"),
    NO_KEY("restore_callback_states_from_checkpoint", "there are no callbacks"),
    NO_KEY("use_cache", "no keys and values are kept from one forward to the next"),
    NO_KEY("torch_empty_cache_steps", MEMORY),
    NO_KEY("torch_compile", COMPILED),
    NO_KEY("torch_compile_backend", COMPILED),
    NO_KEY("torch_compile_mode", COMPILED),
    NO_KEY("dataloader_in_order", BATCHES),
    NO_KEY("dataloader_multiprocessing_context", BATCHES),
    NO_KEY("dataloader_num_workers", BATCHES),
    NO_KEY("dataloader_persistent_workers", BATCHES),
    NO_KEY("dataloader_pin_memory", BATCHES),
    NO_KEY("dataloader_prefetch_factor", BATCHES),
    NO_KEY("dataset_num_proc", BATCHES),
    {"ddp_backend", "parallel.reduce", NULL,
     "the order in which its collective adds, such as gloo or nccl-ring"},
    {"ddp_bucket_cap_mb", "parallel.bucket", NULL, "in bytes: MiB x 1048576"},
    {"ddp_find_unused_parameters", "parallel.buckets", NULL,
     "true is buckets: once, false is rebuilt"},
    {"bucket_cap_mb", "parallel.bucket", NULL, "in bytes: MiB x 1048576"},
    {"find_unused_parameters", "parallel.buckets", NULL, "true is buckets: once, false is rebuilt"},
    NO_KEY("gradient_as_bucket_view", MEMORY),
    NO_KEY("contiguous_gradients", MEMORY),
    {"reduce_bucket_size", "parallel.bucket", NULL, "in bytes; DeepSpeed counts elements"},
    {"overlap_comm", "parallel.race", NULL, OVERLAP},
    {"overlap_grad_reduce", "parallel.race", NULL, OVERLAP},
    {"fsdp", "parallel.buckets", NULL, FSDP},
    {"fsdp_config", "parallel.buckets", NULL, FSDP},
    {"parallelism_config", "parallel.ranks", NULL,
     "dp is parallel.ranks, tp parallel.tensor; cp, sp and pp have no counterpart"},
    NO_KEY("local_rank", RANKS),
    NO_KEY("ddp_broadcast_buffers", "no model here has buffers that a training changes"),
    NO_KEY("ddp_static_graph", RANKS),
    NO_KEY("ddp_timeout", RANKS),
    NO_KEY("batch_eval_metrics", DURING),
    NO_KEY("eval_accumulation_steps", DURING),
    NO_KEY("eval_delay", DURING),
    NO_KEY("eval_do_concat_batches", DURING),
    NO_KEY("eval_on_start", DURING),
    NO_KEY("eval_steps", DURING),
    NO_KEY("eval_use_gather_object", DURING),
    NO_KEY("include_for_metrics", DURING),
    NO_KEY("prediction_loss_only", DURING),
    NO_KEY("load_best_model_at_end", DURING),
    NO_KEY("metric_for_best_model", DURING),
    NO_KEY("greater_is_better", DURING),
    NO_KEY("eval_packing", DURING),
    NO_KEY("bf16_full_eval", PRECISE),
    NO_KEY("fp16_full_eval", PRECISE),
    NO_KEY("logging_steps", RECORDED),
    NO_KEY("logging_strategy", RECORDED),
    NO_KEY("logging_first_step", RECORDED),
    NO_KEY("include_num_input_tokens_seen", RECORDED),
    NO_KEY("logging_nan_inf_filter", "a logged loss that is not finite stays what it is"),
    NO_KEY("output_dir", elsewhere),
    NO_KEY("run_name", elsewhere),
    NO_KEY("project", elsewhere),
    NO_KEY("report_to", elsewhere),
    NO_KEY("debug", elsewhere),
    NO_KEY("disable_tqdm", elsewhere),
    NO_KEY("log_level", elsewhere),
    NO_KEY("log_level_replica", elsewhere),
    NO_KEY("log_on_each_node", elsewhere),
    NO_KEY("skip_memory_metrics", elsewhere),
    NO_KEY("save_strategy", elsewhere),
    NO_KEY("save_total_limit", elsewhere),
    NO_KEY("save_only_model", elsewhere),
    NO_KEY("save_on_each_node", elsewhere),
    NO_KEY("enable_jit_checkpoint", elsewhere),
    NO_KEY("push_to_hub", elsewhere),
    NO_KEY("hub_model_id", elsewhere),
    NO_KEY("hub_token", elsewhere),
    NO_KEY("hub_private_repo", elsewhere),
    NO_KEY("hub_strategy", elsewhere),
    NO_KEY("hub_always_push", elsewhere),
    NO_KEY("hub_revision", elsewhere),
    NO_KEY("trackio_space_id", elsewhere),
    NO_KEY("trackio_bucket_id", elsewhere),
    NO_KEY("trackio_static_space_id", elsewhere),
    {"num_processes", "schedule.processes", NULL, "auto is parallel.ranks, the ranks that train"},
    {"world_size", "parallel.ranks", NULL,
     "at most numerics.shards where they are several; loss.ranks and schedule.processes follow it"},
    /* ranks: Accelerate, Megatron-LM, torchtitan, verl, VeOmni, DeepSpeed, and short */
    {"tp_size", "parallel.tensor", NULL, PARTS},
    {"tensor_model_parallel_size", "parallel.tensor", NULL, PARTS},
    {"tensor_parallel_size", "parallel.tensor", NULL, PARTS},
    {"tensor_parallel_degree", "parallel.tensor", NULL, PARTS},
    {"tp", "parallel.tensor", NULL, PARTS},
    {"dp", "parallel.ranks", NULL, DATA_RANKS},
    {"dp_size", "parallel.ranks", NULL, DATA_RANKS},
    {"dp_replicate_size", "parallel.ranks", NULL, DATA_RANKS},
    {"dp_shard_size", "parallel.ranks", NULL, DATA_RANKS},
    {"data_parallel_size", "parallel.ranks", NULL, DATA_RANKS},
    {"data_parallel_replicate_degree", "parallel.ranks", NULL, DATA_RANKS},
    {"data_parallel_shard_degree", "parallel.ranks", NULL, DATA_RANKS},
    NO_KEY("cp", CONTEXT),
    NO_KEY("cp_size", CONTEXT),
    NO_KEY("context", CONTEXT),
    NO_KEY("context_parallel_size", CONTEXT),
    NO_KEY("context_parallel_degree", CONTEXT),
    NO_KEY("sp_size", CONTEXT),
    NO_KEY("sp_ulysses_degree", CONTEXT),
    NO_KEY("sequence_parallel_size", CONTEXT),
    NO_KEY("ulysses_size", CONTEXT),
    NO_KEY("ulysses_sequence_parallel_size", CONTEXT),
    NO_KEY("pp", PIPELINE),
    NO_KEY("pp_size", PIPELINE),
    NO_KEY("pipeline", PIPELINE),
    NO_KEY("pipeline_parallel_size", PIPELINE),
    NO_KEY("pipeline_parallel_degree", PIPELINE),
    NO_KEY("pipeline_model_parallel_size", PIPELINE),
    NO_KEY("virtual_pipeline_model_parallel_size", PIPELINE),
    NO_KEY("ep", EXPERTS),
    NO_KEY("ep_size", EXPERTS),
    NO_KEY("expert", EXPERTS),
    NO_KEY("expert_parallel_size", EXPERTS),
    NO_KEY("expert_parallel_degree", EXPERTS),
    NO_KEY("expert_model_parallel_size", EXPERTS),
    NO_KEY("expert_tensor_parallel_size", EXPERTS),
    NO_KEY("sequence_parallel", REGIONS),
    NO_KEY("sequence_regions", REGIONS),
    {"zero", "parallel.zero", NULL, ZERO},
    {"zero_stage", "parallel.zero", NULL, ZERO},
    {"zero_optimization", "parallel.zero", NULL, "its stage: 0, 1, 2 or 3"},
    {"sharding_strategy", "parallel.zero", NULL,
     "FULL_SHARD is 3, SHARD_GRAD_OP 2, NO_SHARD 0; hybrids have no counterpart"},
    {"fsdp_mode", "parallel.buckets", NULL,
     "fsdp2 lays gradients out so, rebuilt is ddp; of modes shaped, shuffled"},
    {"use_distributed_optimizer", "parallel.zero", NULL,
     "true is 1, though Megatron cuts elsewhere; moves no bit"},
    NO_KEY("channels", CHANNELS),
    NO_KEY("nccl_max_nchannels", CHANNELS),
    NO_KEY("nccl_min_nchannels", CHANNELS),
    /* TRL: DPOConfig, SFTConfig, CPOConfig */
    {"beta", "dpo.beta", NULL, ""},
    {"loss_type", "dpo.loss", NULL, "with - for _: exo-pair"},
    {"label_smoothing", "dpo.label_smoothing", NULL, ""},
    {"f_divergence_type", "dpo.f_divergence", NULL, "with - for _: reverse-kl"},
    {"f_alpha_divergence_coef", "dpo.f_alpha", NULL, ""},
    {"discopop_tau", "dpo.discopop_tau", NULL, ""},
    {"simpo_gamma", "dpo.gamma_beta_ratio", NULL, "simpo_gamma / beta"},
    {"max_length", "data.max_len", NULL, "prompt and completion together"},
    {"max_seq_length", "data.max_len", NULL, ""},
    {"max_prompt_length", "data.max_len", NULL, CUT},
    {"max_completion_length", "data.max_len", NULL, CUT},
    {"truncation_mode", "data.max_len", NULL, "always keep_start"},
    {"padding_free", "batch.padding", NULL, "true is padding: packed"},
    {"packing", "batch.padding", NULL, "true is padding: packed, without cutting samples"},
    {"precompute_ref_log_probs", "dpo.reference", NULL, "true is cached, false is live"},
    {"precompute_ref_batch_size", "dpo.reference_batch", NULL, ""},
    {"chat_template", "data.template", NULL, "one of those that are built in"},
    {"model_init_kwargs", "numerics.param", NULL, "their dtype; the others have no counterpart"},
    {"disable_dropout", "dropout.residual", NULL,
     "true is 0 for this and the others of dropout, which is the default"},
    {"pad_to_multiple_of", "batch.pad", NULL, "positions that are added, whatever the length is"},
    {"chat_template_path", "data.template", NULL, "one of those that are built in"},
    {"dataset_text_field", "data.text", NULL, "a row's column is called text"},
    {"completion_only_loss", "data.text", NULL,
     "of rows with prompt and completion the completion alone has a loss"},
    {"assistant_only_loss", "data.text", NULL,
     "of rows with messages the turns of the assistant alone have a loss"},
    {"shuffle_dataset", "data.shuffle", NULL, "an order is drawn for each epoch"},
    {"packing_strategy", "batch.padding", NULL, "packed puts whole samples one behind the other"},
    NO_KEY("trust_remote_code", "no code of a model's folder is run"),
    NO_KEY("router_aux_loss_coef", "no model here has experts"),
    NO_KEY("loss_weights", "one loss is trained, no sum of several"),
    NO_KEY("ld_alpha", "every token of a response weighs the same"),
    NO_KEY("rpo_alpha", "no term of the chosen response's likelihood is added to the loss"),
    NO_KEY("reference_free", "every loss but simpo has a reference"),
    NO_KEY("use_weighting", "every pair weighs the same"),
    NO_KEY("sync_ref_model", FIXED),
    NO_KEY("ref_model_mixup_alpha", FIXED),
    NO_KEY("ref_model_sync_steps", FIXED),
    NO_KEY("activation_offloading", MEMORY),
    NO_KEY("pad_token", "positions that are padded are masked, whatever token they hold"),
    NO_KEY("eos_token", "the end of a text is the tokenizer's (docs/DATA.md)"),
    NO_KEY("dataset_kwargs", "rows are read as docs/DATA.md says, with no preparation before"),
    {"ref_model", "dpo.reference", NULL, "the reference is the initial model"},
    {"dataset", "data.pairs", NULL, "data.text in task sft"},
    {"train_dataset", "data.pairs", NULL, "data.text in task sft"},
    {"dataset_name", "data.pairs", NULL, "a JSONL file; data.text in task sft"},
    /* torch.optim, torch.optim.lr_scheduler, torch.amp.GradScaler */
    {"lr", "optimizer.lr", NULL, ""},
    {"betas", "optimizer.beta1", NULL, "and optimizer.beta2"},
    {"eps", "optimizer.eps", NULL, "of the optimizer; that of the norms is model.norm_eps"},
    {"num_warmup_steps", "schedule.warmup", NULL, COUNTER},
    {"num_training_steps", "schedule.total", NULL, COUNTER},
    {"T_max", "schedule.total", NULL, COUNTER},
    {"eta_min", "schedule.min_lr", NULL, ""},
    {"init_scale", "scaler.init_scale", NULL, ""},
    {"growth_interval", "scaler.growth_interval", NULL, ""},
    /* config.json of a model */
    {"model_name_or_path", "model.from", NULL, "a folder with safetensors"},
    {"model_type", "model.family", NULL, ""},
    {"hidden_size", "model.hidden", NULL, ""},
    {"num_hidden_layers", "model.layers", NULL, ""},
    {"num_attention_heads", "model.heads", NULL, ""},
    {"num_key_value_heads", "model.kv_heads", NULL, ""},
    {"intermediate_size", "model.mlp", NULL, ""},
    {"vocab_size", "model.vocab", NULL, ""},
    {"tie_word_embeddings", "model.tied", NULL, ""},
    {"rms_norm_eps", "model.norm_eps", NULL, ""},
    {"attention_bias", "model.qkv_bias", NULL, "and model.output_bias"},
    {"initializer_range", "init.std", NULL, ""},
    {"attention_dropout", "dropout.attention", NULL, ""},
    {"attn_pdrop", "dropout.attention", NULL, ""},
    {"resid_pdrop", "dropout.residual", NULL, ""},
    {"embd_pdrop", "dropout.embedding", NULL, ""},
    /* Megatron-LM, open-instruct */
    {"global_batch_size", "batch.size", NULL, ""},
    {"micro_batch_size", "batch.micro", NULL, MICRO},
    {"train_iters", "steps", NULL, "at the head of the file"},
    {"max_train_steps", "steps", NULL, "at the head of the file"},
    {"lr_warmup_iters", "schedule.warmup", NULL, COUNTER},
    {"lr_decay_iters", "schedule.total", NULL, COUNTER},
    {"lr_decay_style", "schedule.name", NULL, "megatron.cosine and so on"},
    {"clip_grad", "clip.max_norm", NULL, ""},
    {"clip_grad_norm", "clip.max_norm", NULL, ""},
    {"seq_length", "data.max_len", NULL, ""},
    {"init_method_std", "init.std", NULL, ""},
    {"initial_loss_scale", "scaler.init_scale", NULL, ""},
    {"dpo_beta", "dpo.beta", NULL, ""},
    {"dpo_loss_type", "dpo.loss", NULL, "with - for _: dpo-norm"},
    {"max_train_samples", "data.samples", NULL, ""},
    {"eval_dataset", "eval.from", NULL, AT_HEAD},
    {"do_eval", "eval.from", NULL, AT_HEAD},
    {"eval_strategy", "eval.from", NULL, "at the head of the file; after the last update only"},
    {"evaluation_strategy", "eval.from", NULL,
     "at the head of the file; after the last update only"},
    {"max_eval_samples", "eval.rows", NULL, AT_HEAD},
    /* names of older releases of transformers and TRL */
    {"per_gpu_train_batch_size", "batch.micro", NULL, MICRO},
    {"per_gpu_eval_batch_size", "batch.micro", NULL, "no bit of what eval measures depends on it"},
    {"adafactor", "optimizer.name", NULL, "true is name: adafactor"},
    {"no_cuda", "numerics.backend", NULL, "true is backend: cpu"},
    {"fp16_opt_level", "numerics.compute", NULL,
     "of apex; f16 with scaler.kind: dynamic is autocast"},
    {"half_precision_backend", "numerics.compute", NULL,
     "of apex or torch; f16 with scaler.kind: dynamic is autocast"},
    NO_KEY("overwrite_output_dir", elsewhere),
    NO_KEY("logging_dir", elsewhere),
    NO_KEY("save_safetensors", elsewhere),
    NO_KEY("generate_during_eval", DURING),
    NO_KEY("ref_model_init_kwargs", FIXED),
    NO_KEY("force_use_ref_model", FIXED),
    NO_KEY("model_adapter_name", ADAPTERS),
    NO_KEY("ref_adapter_name", ADAPTERS),
    NO_KEY("peft_config", ADAPTERS),
    NO_KEY("label_pad_token_id", PADDED),
    NO_KEY("padding_value", PADDED),
    NO_KEY("is_encoder_decoder", "every model here is a decoder"),
    {"use_liger_loss", "numerics.backward.cross_entropy", NULL, "fused is the formula of its loss"},
    {"use_liger", "numerics.backward.cross_entropy", NULL,
     "fused is the formula of its loss; its other kernels have no counterpart"},

    /* what plain loops, Lightning, Accelerate and configurations of DeepSpeed call things */
    {"batch_size", "batch.size", NULL, SAMPLES},
    {"epochs", "steps", NULL, EPOCHS},
    {"num_epochs", "steps", NULL, EPOCHS},
    {"max_epochs", "steps", NULL, EPOCHS},
    {"wd", "optimizer.weight_decay", NULL, ""},
    {"accumulate_grad_batches", "batch.micro", NULL,
     "batch.size / batch.micro is the number of micro-batches"},
    {"gradient_clipping", "clip.max_norm", NULL, ""},
    {"gradient_clip_val", "clip.max_norm", NULL, ""},
    {"grad_clip", "clip.max_norm", NULL, ""},
    NO_KEY("gradient_clip_algorithm", "clip.max_norm is of the norm; no gradient is cut by value"),
    {"split_batches", "parallel.deal", NULL, "micros is Accelerate's, split_batches or not"},
    {"precision", "numerics.compute", NULL, "bf16-mixed is " AUTOCAST},
    {"mixed_precision", "numerics.compute", NULL, "bf16 is " AUTOCAST},
    {"attn_implementation", "numerics.backward.attention", NULL,
     "flash is the backward of FlashAttention; of the forward modes say how sums are ordered"},
    NO_KEY("tokenizer", "rows are ids, which docs/pretokenise.py makes; text is trained as bytes"),
    {"per_device_eval_batch_size", "batch.micro", NULL,
     "no bit of what eval measures depends on it"},
    {"concatenated_forward", "batch.layout", NULL, "true is layout: concatenated"},

    /* values */
    {"huggingface", "schedule.contract", "hf", ""},
    {"hugging-face", "schedule.contract", "hf", ""},
    {"transformers", "schedule.contract", "hf", ""},
    {"trainer", "schedule.contract", "hf", ""},
    {"pytorch", "schedule.contract", "hf", "scheduler.step() after optimizer.step(), as usual"},
    {"torch", "schedule.contract", "hf", "scheduler.step() after optimizer.step(), as usual"},
    {"lightning", "schedule.contract", "lightning-step", "interval=\"epoch\" is lightning-epoch"},
    {"pytorch-lightning", "schedule.contract", "lightning-step",
     "interval=\"epoch\" is lightning-epoch"},
    {"deepspeed", "schedule.contract", "deepspeed-torch",
     "with a scheduler of torch; its own are deepspeed-warmup and deepspeed-cosine"},
    {"megatron-lm", "schedule.contract", "megatron", ""},
    {"axolotl", "schedule.contract", "hf", "it trains by transformers' Trainer"},
    {"llama-factory", "schedule.contract", "hf", "it trains by transformers' Trainer"},
    {"llamafactory", "schedule.contract", "hf", "it trains by transformers' Trainer"},
    {"unsloth", "schedule.contract", "hf", "it trains by transformers' Trainer"},
    {"olmo", "schedule.contract", "olmo-core", ""},
    {"open-instruct", "schedule.contract", "open-instruct-dpo", ""},
    {"nemo-rl", "schedule.contract", "nemo-rl-dtensor", "or nemo-rl-megatron"},
    {"adamw_torch", "optimizer.name", "adamw", ""},
    {"adamw_torch_fused", "optimizer.name", "adamw", "with optimizer.variant: torch-fused"},
    {"adamw_hf", "optimizer.name", "adamw", "with optimizer.variant: hf-legacy"},
    {"adamw_apex_fused", "optimizer.name", "adamw", "with optimizer.variant: apex"},
    {"lion_32bit", "optimizer.name", "lion", BITSANDBYTES_LION},
    {"paged_lion_32bit", "optimizer.name", "lion", BITSANDBYTES_LION},
    {"js_divergence", "dpo.f_divergence", "js", ""},
    {"alpha_divergence", "dpo.f_divergence", "alpha", ""},
    {"warmup_linear", "schedule.name", "linear", ""},
    {"bfloat16", "numerics.compute", "bf16", ""},
    {"float16", "numerics.compute", "f16", ""},
    {"half", "numerics.compute", "f16", ""},
    {"float32", "numerics.compute", "f32", ""},
    {"float64", "numerics.compute", "f64", ""},
    {"double", "numerics.compute", "f64", ""},
    {"step", "loop.update", "optimize", ""},
    {"optimizer_step", "loop.update", "optimize", ""},
    {"lr_scheduler_step", "loop.update", "scheduler_step", ""},
    {"lr_step", "loop.update", "scheduler_step", ""},
    {"zero_grad", "loop.update", "zero", ""},
    {"clip_grad_norm", "loop.update", "clip", ""},
    {"clip_grad_norm_", "loop.update", "clip", ""},
    {"all_reduce", "loop.update", "reduce", ""},
};

const struct synonym *synonyms(size_t *out_count) {
    *out_count = COUNT_OF(table);
    return table;
}

const struct synonym *synonym_of_key(const char *name) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (table[i].value == NULL && strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* Whether both keys take the same words: dtypes, or phases. */
static int is_alike(const char *key, const char *other) {
    static const char *const sections[] = {"numerics.", "loop."};
    for (size_t i = 0; i < COUNT_OF(sections); i++) {
        const size_t length = strlen(sections[i]);
        if (strncmp(key, sections[i], length) == 0 && strncmp(other, sections[i], length) == 0)
            return 1;
    }
    return strcmp(key, other) == 0;
}

const struct synonym *synonym_of_value(const char *key, const char *name) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (table[i].value != NULL && strcmp(table[i].name, name) == 0 &&
            is_alike(table[i].key, key))
            return &table[i];
    return NULL;
}

int synonym_is_elsewhere(const struct synonym *synonym) {
    return synonym->how == elsewhere;
}

const char *synonym_hint(const struct synonym *synonym, char out[SYNONYM_HINT_SIZE]) {
    if (synonym == NULL) return "";
    const int has_how = synonym->how[0] != '\0';
    if (synonym->key == NULL) {
        snprintf(out, SYNONYM_HINT_SIZE, ": no counterpart: %s", synonym->how);
        return out;
    }
    snprintf(out, SYNONYM_HINT_SIZE, ": here it is %s%s%s%s",
             synonym->value == NULL ? synonym->key : synonym->value, has_how ? " (" : "",
             synonym->how, has_how ? ")" : "");
    return out;
}
