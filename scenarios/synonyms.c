/* SPDX-License-Identifier: Apache-2.0
 * The table of other programs' names. Every target must be a key of the schema, of the head or of a
 * class, and every value one that the key takes (tests/trainer/test_synonyms.c walks the table). */
#include "scenarios/synonyms.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"

#define COUNTER "in updates, unless schedule.increment is not 1"
#define MICRO "samples of one micro-batch; batch.size is the samples of an update"
#define SAMPLES "samples of one update: per device x accumulation x processes"
#define AT_HEAD "at the head of the file, for both arms alike"
#define CUT "only the whole sequence is cut, at its end"

static const struct synonym table[] = {
    /* transformers.TrainingArguments and Trainer */
    {"learning_rate", "optimizer.lr", NULL, ""},
    {"max_steps", "steps", NULL, "at the head of the file"},
    {"num_train_epochs", "steps", NULL,
     "at the head of the file, in updates: epochs x samples / batch.size"},
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
    {"bf16", "numerics.compute", NULL,
     "bf16: true is compute: bf16 with param: f32, which is autocast"},
    {"fp16", "numerics.compute", NULL, "fp16: true is compute: f16 with scaler.kind: dynamic"},
    {"tf32", "numerics.product", NULL, "tf32: true is product: tf32"},
    {"torch_dtype", "numerics.param", NULL, "the dtype of the weights; bfloat16 is bf16"},
    {"data_seed", "data.seed", NULL, ""},
    {"dataloader_drop_last", "batch.tail", NULL,
     "batch.tail is about an update, not a batch: drop or keep"},
    {"gradient_checkpointing", "dropout.recompute", NULL,
     "recomputing moves no bit but those of dropout masks"},
    {"full_determinism", "numerics.mode", NULL, "true is mode: deterministic"},
    {"average_tokens_across_devices", "loss.divisor", NULL,
     "true is divisor: update, false is mean-of-ranks with loss.ranks"},
    {"label_smoothing_factor", "dpo.label_smoothing", NULL,
     "of preferences; cross-entropy has no smoothing here"},
    {"save_steps", "record.snapshots", NULL, ""},
    {"num_processes", "schedule.processes", NULL, "they act on the schedule alone"},
    {"world_size", "loss.ranks", NULL, "of the loss's mean; the schedule's are schedule.processes"},
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
    {"olmo", "schedule.contract", "olmo-core", ""},
    {"open-instruct", "schedule.contract", "open-instruct-dpo", ""},
    {"nemo-rl", "schedule.contract", "nemo-rl-dtensor", "or nemo-rl-megatron"},
    {"adamw_torch", "optimizer.name", "adamw", ""},
    {"adamw_torch_fused", "optimizer.name", "adamw", "with optimizer.variant: torch-fused"},
    {"adamw_hf", "optimizer.name", "adamw", "with optimizer.variant: hf-legacy"},
    {"adamw_apex_fused", "optimizer.name", "adamw", "with optimizer.variant: apex"},
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

const char *synonym_hint(const struct synonym *synonym, char out[SYNONYM_HINT_SIZE]) {
    if (synonym == NULL) return "";
    const int has_how = synonym->how[0] != '\0';
    snprintf(out, SYNONYM_HINT_SIZE, ": here it is %s%s%s%s",
             synonym->value == NULL ? synonym->key : synonym->value, has_how ? " (" : "",
             synonym->how, has_how ? ")" : "");
    return out;
}
