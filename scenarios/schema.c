/* SPDX-License-Identifier: Apache-2.0
 * The schema: one row for every field of struct config. It is the one table of what a scenario may
 * say.
 *
 * Rows stand in the order of the documentation, grouped by section. A default is text and is read
 * by the code that reads a scenario. `auto` (and `none`, `free`) are special words;
 * scenarios/derive.c says which of them are derived from other keys, and how. Invariant: rows
 * neither overlap nor leave out a byte of struct config, except fields named `zero` and the values
 * of the two classes (a test holds it). */
#include "scenarios/head.h"

#include <stddef.h>

/* A row of a field whose path is its place in struct config, and one whose path is another. A
 * number has a unit ("1" for none); names, flags, texts and lists have not. */
#define NUMBER_AT(name, kind, field, ...) KEY_ROW(name, kind, struct config, field, __VA_ARGS__)
#define WORDS_AT(name, kind, field, ...) NUMBER_AT(name, kind, field, .unit = "", __VA_ARGS__)
#define NUMBER(kind, field, ...) NUMBER_AT(#field, kind, field, __VA_ARGS__)
#define WORDS(kind, field, ...) WORDS_AT(#field, kind, field, __VA_ARGS__)
#define UINT_ALL .low = 0, .high = 0x1p64
#define SMALLEST 0x1p-1022
#define BELOW_ONE 0x1.fffffffffffffp-1

static const char *const task_names[] = {"sft", "dpo", NULL};
static const char *const layout_names[] = {"separate", "concatenated", NULL};
static const char *const padding_names[] = {"longest", "packed", NULL};
static const char *const family_names[] = {"olmo2", "llama", "qwen2", "qwen3", NULL};
static const char *const switch_names[] = {"false", "true", NULL};
static const char *const rope_scaling_names[] = {"none", "llama3", "yarn", NULL};
static const char *const norm_rounding_names[] = {"before-weight", "after-weight", NULL};
static const char *const dpo_loss_names[DPO_LOSSES + 1] = {
    "sigmoid",  "cdpo",         "robust",    "hinge",    "ipo",      "ipo-sum",
    "dpo-norm", "sigmoid-norm", "simpo",     "apo-zero", "apo-down", "exo-pair",
    "nca-pair", "bco-pair",     "sppo-hard", "discopop", NULL};
static const char *const divergence_names[] = {"reverse-kl", "forward-kl", "js", "alpha", NULL};
static const char *const chat_names[] = {"none", "plain", "chatml", "llama3", "olmo", NULL};
static const char *const reference_names[] = {"cached", "live", "given", NULL};
static const char *const tail_names[] = {"drop", "keep", "keep-underscaled", "leak", NULL};
static const char *const divisor_names[] = {"update",
                                            "mean-of-means",
                                            "sum-of-means",
                                            "update-and-micros",
                                            "mean-of-ranks",
                                            "update-unshifted",
                                            "means-over-size",
                                            "micros-by-tokens",
                                            NULL};
static const char *const logged_loss_names[] = {"divided", "mean", NULL};
static const char *const decay_names[] = {"all", "matrices", "hf", "olmo-core", "named", NULL};
static const char *const clip_norm_names[] = {"squares", "norms", "flat", NULL};
static const char *const clip_dtype_names[] = {"f64", "f32", "gradient", NULL};
static const char *const clip_form_names[] = {"quotient", "reciprocal", NULL};
static const char *const clip_apply_names[] = {"always", "above", "copy", NULL};
static const char *const start_names[] = {"f0", "base", "zero", "min", NULL};
static const char *const rounding_names[] = {"ceil", "floor", "half-even", "none", NULL};
static const char *const rescaled_names[] = {"contract", "none", "total", "warmup", NULL};
static const char *const logged_names[] = {"current", "recomputed", NULL};
static const char *const skip_names[] = {"none", "nonfinite", "olmo-outlier", NULL};
static const char *const mode_names[] = {"invariant", "shuffled", "shaped",     "deterministic",
                                         "fast",      "atomic",   "order-free", NULL};
static const char *const library_names[] = {"auto", "none", "openblas", "cublas", NULL};
static const char *const workspace_names[] = {"pinned", "default", NULL};
static const char *const order_names[] = {"fixed", "free", NULL};
static const char *const allowed_names[] = {"off", "on", NULL};
static const char *const fill_names[] = {"none", "nan", NULL};
static const char *const backend_names[] = {"cpu", "cuda", NULL};
static const char *const grad_accumulate_names[] = {"wide", "storage", NULL};
static const char *const reduce_names[] = {"tree", NULL};
static const char *const isa_names[] = {"auto", "base", "v3", "v4", NULL};
static const char *const kind_names[] = {"forward", "weight", "dq", "embedding",
                                         "norm",    "loss",   NULL};
static const char *const dtype_names[] = {"f32",  "f64",  "bf16", "f16",
                                          "tf32", "e4m3", "e5m2", NULL};
static const char *const masks_names[] = {"own", "same", NULL};
static const char *const recompute_names[] = {"preserve", "redraw", NULL};
static const char *const rng_names[] = {"addressed", "torch", NULL};
static const char *const resume_names[] = {"schedule", "optimizer", "data", "rng", "scaler", NULL};
static const char *const param_rounding_names[] = {"nearest", "stochastic", NULL};
static const char *const scaler_names[] = {"none", "static", "dynamic", NULL};
/* In the order of enum dtype, which begins with these two. */
static const char *const wide_names[] = {"f32", "f64", NULL};
const char *const schema_phase_names[PHASE_TOTAL + 1] = {
    "fetch",    "forward", "backward", "reduce",   "unscale", "clip",
    "optimize", "log",     "count",    "schedule", "zero",    NULL};

static const struct key_row rows[] = {
    WORDS(KEY_ENUM, task, .standard = "dpo", .cause = CAUSE_OBJECTIVE, .names = task_names,
          .help = "What is trained: completions (sft) or preferences (dpo)"),
    NUMBER(KEY_UINT, seed, .unit = "", .standard = "17", .cause = CAUSE_RNG, UINT_ALL,
           .help = "Seed of every random stream that has no seed of its own"),

    WORDS(KEY_TEXT, data.pairs, .standard = "builtin:quiz", .cause = CAUSE_DATA_ORDER,
          .help = "Preference pairs of a dpo task: builtin:quiz or a JSONL file"),
    WORDS(KEY_TEXT, data.text, .standard = "builtin:devil", .cause = CAUSE_DATA_ORDER,
          .help = "Texts of an sft task: builtin:devil or a JSONL file"),
    NUMBER(KEY_UINT, data.samples, .unit = "samples", .standard = "all", .cause = CAUSE_DATA_ORDER,
           .low = 1, .high = 4294967294, .word = "all",
           .help = "Samples that are used, the first of the data; fewer make short epochs"),
    NUMBER(KEY_UINT, data.max_len, .unit = "tokens", .standard = "96", .cause = CAUSE_DATA_ORDER,
           .low = 2, .high = 1048576,
           .help = "Longest sequence, prompt and completion together; the rest is cut"),
    WORDS_AT("data.template", KEY_ENUM, data.chat, .standard = "none", .cause = CAUSE_DATA_ORDER,
             .names = chat_names,
             .help = "Chat template around prompts, completions and messages (docs/DATA.md); none "
                     "joins prompt and completion between <bos> and <eos>"),
    WORDS(KEY_BOOL, data.shuffle, .standard = "true", .cause = CAUSE_DATA_ORDER,
          .help =
              "Draws a new order of the samples for each epoch; false keeps the order of the file"),
    NUMBER(KEY_UINT, data.seed, .unit = "", .standard = "auto", .cause = CAUSE_DATA_ORDER, UINT_ALL,
           .word = "auto", .help = "Seed of the data stream; auto is seed"),

    NUMBER(KEY_UINT, batch.size, .unit = "samples", .standard = "8", .cause = CAUSE_BATCH_SHAPE,
           .low = 1, .high = 4194303, .help = "Samples (dpo: pairs) of one update"),
    NUMBER(KEY_UINT, batch.micro, .unit = "samples", .standard = "auto", .cause = CAUSE_BATCH_SHAPE,
           .low = 1, .high = 4194303, .word = "auto",
           .help = "Samples of one micro-batch, a divisor of batch.size; auto is batch.size"),
    WORDS(KEY_ENUM, batch.layout, .standard = "separate", .cause = CAUSE_BATCH_SHAPE,
          .names = layout_names,
          .help = "Whether chosen and rejected go through one forward each or share one"),
    WORDS(KEY_ENUM, batch.padding, .standard = "longest", .cause = CAUSE_BATCH_SHAPE,
          .names = padding_names,
          .help = "Rows padded to the longest of the micro-batch, or packed one behind the other"),
    WORDS(KEY_ENUM, batch.tail, .standard = "drop", .cause = CAUSE_NORMALISATION,
          .names = tail_names,
          .help = "Samples that do not fill an epoch's last update: dropped; kept as a smaller "
                  "update; kept, but divided by the micro-batches of a full one; or their "
                  "gradients leak into the next epoch's first update"),
    NUMBER(KEY_UINT, batch.pad, .unit = "tokens", .standard = "0", .cause = CAUSE_BATCH_SHAPE,
           .high = 1048576,
           .help = "Padded positions added to each sequence on top of batch.padding"),

    WORDS(KEY_ENUM, model.family, .standard = "olmo2", .cause = CAUSE_MODEL, .names = family_names,
          .help =
              "olmo2: norm after attention and MLP, q/k norm; llama: norm before them; qwen2: "
              "llama with biases at q, k and v; qwen3: llama with a norm of each head's q and k"),
    WORDS(KEY_TEXT, model.from, .standard = CONFIG_NO_CHECKPOINT, .cause = CAUSE_INIT,
          .help = "Folder of a checkpoint (docs/CHECKPOINTS.md): its weights are the initial ones, "
                  "its config.json sets every key of this section but norm_rounding; none: weights "
                  "are drawn"),
    WORDS(KEY_TEXT, model.from_digest, .standard = "auto", .cause = CAUSE_INIT,
          .help = "Digest of the tensors in model.from; auto is what they have, and a digest that "
                  "is written refuses other weights"),
    NUMBER(KEY_UINT, model.layers, .unit = "1", .standard = "2", .cause = CAUSE_MODEL, .low = 1,
           .high = 510, .help = "Transformer blocks"),
    NUMBER(KEY_UINT, model.hidden, .unit = "1", .standard = "64", .cause = CAUSE_MODEL, .low = 2,
           .high = 262144, .help = "Width of the residual stream"),
    NUMBER(KEY_UINT, model.heads, .unit = "1", .standard = "4", .cause = CAUSE_MODEL, .low = 1,
           .high = 1024, .help = "Query heads"),
    NUMBER(KEY_UINT, model.kv_heads, .unit = "1", .standard = "auto", .cause = CAUSE_MODEL,
           .low = 1, .high = 1024, .word = "auto",
           .help = "Key and value heads, a divisor of model.heads; auto is model.heads"),
    NUMBER(KEY_UINT, model.head_dim, .unit = "1", .standard = "auto", .cause = CAUSE_MODEL,
           .low = 2, .high = 65536, .word = "auto",
           .help = "Width of one head, even; auto is model.hidden / model.heads"),
    NUMBER(KEY_UINT, model.mlp, .unit = "1", .standard = "172", .cause = CAUSE_MODEL, .low = 1,
           .high = 1048576, .help = "Inner width of the SwiGLU"),
    NUMBER(KEY_UINT, model.vocab, .unit = "tokens", .standard = "auto", .cause = CAUSE_MODEL,
           .low = 2, .high = 2147483647, .word = "auto",
           .help = "Vocabulary; auto is 259, that of the byte tokenizer"),
    WORDS(KEY_BOOL, model.tied, .standard = "false", .cause = CAUSE_MODEL,
          .help = "The head is the embedding matrix"),
    WORDS(KEY_ENUM, model.qkv_bias, .standard = "auto", .cause = CAUSE_MODEL, .word = "auto",
          .names = switch_names,
          .help = "A bias behind the projections to q, k and v; auto is true for qwen2"),
    WORDS(KEY_ENUM, model.output_bias, .standard = "auto", .cause = CAUSE_MODEL, .word = "auto",
          .names = switch_names,
          .help = "A bias behind attention's output projection; auto is false"),
    WORDS(KEY_ENUM, model.mlp_bias, .standard = "auto", .cause = CAUSE_MODEL, .word = "auto",
          .names = switch_names, .help = "A bias behind each projection of the MLP; auto is false"),
    NUMBER(KEY_REAL, model.norm_eps, .unit = "1", .standard = "auto", .cause = CAUSE_MODEL,
           .low = SMALLEST, .high = 1, .word = "auto",
           .help = "Added to the mean square in RMSNorm; auto is 1e-6"),
    NUMBER(KEY_REAL, model.rope_theta, .unit = "1", .standard = "auto", .cause = CAUSE_MODEL,
           .low = 1, .high = 1e12, .word = "auto",
           .help = "Base of the rotary frequencies; auto is 500000 for olmo2, 10000 for llama, "
                   "1000000 for qwen2 and qwen3"),
    WORDS(KEY_ENUM, model.rope_scaling, .standard = "none", .cause = CAUSE_MODEL,
          .names = rope_scaling_names,
          .help = "How rotary frequencies are stretched for longer texts, as transformers' "
                  "modeling_rope_utils does"),
    NUMBER(KEY_REAL, model.rope_factor, .unit = "1", .standard = "8", .cause = CAUSE_MODEL,
           .low = 1, .high = 1e6, .help = "By what low frequencies are divided (llama3, yarn)"),
    NUMBER(KEY_UINT, model.rope_original_positions, .unit = "tokens", .standard = "8192",
           .cause = CAUSE_MODEL, .low = 1, .high = 1099511627776,
           .help = "Positions before the stretching (llama3, yarn)"),
    NUMBER(KEY_REAL, model.rope_low_freq_factor, .unit = "1", .standard = "1", .cause = CAUSE_MODEL,
           .low = SMALLEST, .high = 1e6,
           .help = "Of llama3: wavelengths above original positions / this are stretched fully"),
    NUMBER(KEY_REAL, model.rope_high_freq_factor, .unit = "1", .standard = "4",
           .cause = CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
           .help = "Of llama3: wavelengths below original positions / this stay"),
    NUMBER(KEY_REAL, model.rope_attention_factor, .unit = "1", .standard = "auto",
           .cause = CAUSE_MODEL, .low = SMALLEST, .high = 1e6, .word = "auto",
           .help = "Of yarn: factor on cosine and sine; auto is m(mscale) / m(mscale_all_dim), or "
                   "m(1) where one is none, with m(s) = 0.1 s ln(rope_factor) + 1"),
    NUMBER(KEY_REAL, model.rope_beta_fast, .unit = "1", .standard = "32", .cause = CAUSE_MODEL,
           .low = SMALLEST, .high = 1e6,
           .help = "Of yarn: turns within the original positions above which a frequency stays"),
    NUMBER(KEY_REAL, model.rope_beta_slow, .unit = "1", .standard = "1", .cause = CAUSE_MODEL,
           .low = SMALLEST, .high = 1e6,
           .help = "Of yarn: turns below which it is stretched fully"),
    NUMBER(KEY_REAL, model.rope_mscale, .unit = "1", .standard = "none", .cause = CAUSE_MODEL,
           .low = SMALLEST, .high = 1e6, .word = "none",
           .help = "Of yarn: see rope_attention_factor"),
    NUMBER(KEY_REAL, model.rope_mscale_all_dim, .unit = "1", .standard = "none",
           .cause = CAUSE_MODEL, .low = SMALLEST, .high = 1e6, .word = "none",
           .help = "Of yarn: see rope_attention_factor"),
    WORDS(KEY_BOOL, model.rope_truncate, .standard = "true", .cause = CAUSE_MODEL,
          .help = "Of yarn: the ends of the ramp are whole numbers"),
    WORDS(KEY_ENUM, model.norm_rounding, .standard = "auto", .cause = CAUSE_MODEL, .word = "auto",
          .names = norm_rounding_names,
          .help = "Where RMSNorm rounds to the compute dtype; auto is after-weight for olmo2, else "
                  "before-weight"),

    NUMBER(KEY_REAL, init.std, .unit = "1", .standard = "0.02", .cause = CAUSE_INIT, .high = 1e6,
           .help = "Standard deviation of the initial weights; norm weights start at 1"),
    NUMBER(KEY_UINT, init.seed, .unit = "", .standard = "auto", .cause = CAUSE_INIT, UINT_ALL,
           .word = "auto", .help = "Seed of the initial weights; auto is seed"),
    WORDS(KEY_TEXT, init.nudge, .standard = "none", .cause = CAUSE_INIT,
          .help = "Weight that starts one unit in the last place off, TENSOR or TENSOR[ELEMENT]: a "
                  "twin that shows how rounding grows"),

    WORDS(
        KEY_ENUM, dpo.loss, .standard = "sigmoid", .cause = CAUSE_OBJECTIVE,
        .names = dpo_loss_names,
        .help =
            "Form of the preference loss: TRL's (ipo and sigmoid-norm of scores per token; ipo-sum "
            "as before its pull request 1265), open-instruct's dpo (cdpo), dpo_norm and simpo"),
    NUMBER(KEY_REAL, dpo.beta, .unit = "1", .standard = "0.1", .cause = CAUSE_OBJECTIVE,
           .high = 1e6, .help = "Factor on the margin between policy and reference"),
    NUMBER(KEY_REAL, dpo.label_smoothing, .unit = "1", .standard = "0", .cause = CAUSE_OBJECTIVE,
           .high = BELOW_ONE,
           .help = "Share of pairs taken to be swapped, in the losses that know one: cdpo, robust, "
                   "dpo-norm, simpo, exo-pair"),
    NUMBER(KEY_REAL, dpo.gamma_beta_ratio, .unit = "nat", .standard = "0.3",
           .cause = CAUSE_OBJECTIVE, .low = -1e6, .high = 1e6,
           .help = "Margin per token that simpo asks for, gamma / beta"),
    NUMBER(KEY_REAL, dpo.discopop_tau, .unit = "1", .standard = "0.05", .cause = CAUSE_OBJECTIVE,
           .low = 1e-6, .high = 1e6,
           .help = "Temperature of discopop's blend of logistic and exponential loss"),
    WORDS(KEY_ENUM, dpo.f_divergence, .standard = "reverse-kl", .cause = CAUSE_OBJECTIVE,
          .names = divergence_names,
          .help = "Divergence whose derivative scores a side: TRL's f_divergence_type"),
    NUMBER(KEY_REAL, dpo.f_alpha, .unit = "1", .standard = "0.5", .cause = CAUSE_OBJECTIVE,
           .low = -1e3, .high = 1e3, .help = "Order of the alpha divergence; 1 is reverse-kl"),
    WORDS(
        KEY_ENUM, dpo.reference, .standard = "cached", .cause = CAUSE_REFERENCE,
        .names = reference_names,
        .help =
            "Reference log-probabilities from one pass before training, live at each micro-batch, "
            "or given by the rows of data.pairs (ref_chosen_logps, ref_rejected_logps)"),
    NUMBER(KEY_UINT, dpo.reference_batch, .unit = "samples", .standard = "auto",
           .cause = CAUSE_REFERENCE, .low = 1, .high = 4194303, .word = "auto",
           .help = "Pairs of one forward of the cached pass; auto is batch.micro"),
    WORDS(KEY_ENUM, dpo.reference_compute, .standard = "auto", .cause = CAUSE_REFERENCE,
          .word = "auto", .names = dtype_names,
          .help = "Compute dtype of the reference; auto is numerics.compute"),
    WORDS(KEY_ENUM, dpo.reference_layout, .standard = "auto", .cause = CAUSE_REFERENCE,
          .word = "auto", .names = layout_names,
          .help = "Layout of the reference's forward; auto is batch.layout"),

    WORDS(KEY_ENUM, loss.divisor, .standard = "update", .cause = CAUSE_NORMALISATION,
          .names = divisor_names,
          .help = "By what losses are divided: label tokens (sft) or pairs (dpo) of the update "
                  "(transformers 5, torchtitan, torchtune); each micro-batch by its own, then by "
                  "their number (transformers below 4.46, Accelerate, TRL's DPO); by its own only; "
                  "by the update's and then by the number of micro-batches; each rank by its own, "
                  "then by their number (OLMo-core); the update's with first tokens that are "
                  "labelled (transformers from 4.46 to 4.x); each micro-batch by its own, then by "
                  "batch.micro (VeOmni's DiT before its pull request 963); means of micro-batches "
                  "weighted by their tokens, metrics too (open-instruct's dpo.py)"),
    NUMBER(KEY_UINT, loss.ranks, .unit = "1", .standard = "1", .cause = CAUSE_NORMALISATION,
           .low = 1, .high = 1024,
           .help = "Data-parallel ranks of mean-of-ranks, a divisor of batch.size: each has its "
                   "share of the samples"),
    WORDS(KEY_ENUM, loss.logged, .standard = "divided", .cause = CAUSE_NORMALISATION,
          .names = logged_loss_names,
          .help =
              "The loss that is logged: what backward gets, summed over the update (transformers); "
              "or the mean over label tokens or pairs whatever backward divides by (Megatron)"),

    WORDS_AT("optimizer.name", KEY_TEXT, optimizer.which.name, .standard = "adamw",
             .cause = CAUSE_OPTIMIZER, .help = "Algorithm; its own keys are listed under its name"),
    WORDS_AT("optimizer.module", KEY_TEXT, optimizer.which.module, .standard = CONFIG_NO_MODULE,
             .cause = CAUSE_OPTIMIZER,
             .help = "Shared object that holds the optimizer (docs/PLUGINS.md); none: it is one of "
                     "those built in"),
    WORDS_AT("optimizer.module_sha256", KEY_TEXT, optimizer.which.module_sha256, .standard = "auto",
             .cause = CAUSE_OPTIMIZER,
             .help = "SHA-256 of that file; auto is what it has, and a digest that is written "
                     "refuses another file"),
    NUMBER(KEY_REAL, optimizer.lr, .unit = "1", .standard = "1e-6", .cause = CAUSE_SCHEDULE,
           .high = 1e6, .help = "Base (peak) learning rate"),
    NUMBER(KEY_REAL, optimizer.weight_decay, .unit = "1", .standard = "0", .cause = CAUSE_OPTIMIZER,
           .high = 1e6, .help = "Weight decay coefficient of the decayed group"),
    WORDS(KEY_ENUM, optimizer.decay, .standard = "all", .cause = CAUSE_OPTIMIZER,
          .names = decay_names,
          .help = "Tensors that are decayed: all; matrices (no vectors); hf: none whose name says "
                  "bias or norm (Trainer.get_decay_parameter_names); olmo-core: all but the "
                  "embeddings; named: all but those of optimizer.no_decay"),
    WORDS(KEY_TEXT, optimizer.no_decay, .standard = "norm", .cause = CAUSE_OPTIMIZER,
          .help = "For optimizer.decay named: words parted by spaces or commas; a tensor whose "
                  "name contains one is not decayed"),

    NUMBER(
        KEY_REAL, clip.max_norm, .unit = "1", .standard = "1", .cause = CAUSE_OPTIMIZER,
        .high = 1e12,
        .help =
            "Global gradient norm above which gradients are scaled down; 0 switches clipping off"),
    NUMBER(KEY_REAL, clip.eps, .unit = "1", .standard = "1e-6", .cause = CAUSE_OPTIMIZER,
           .high = 1e6,
           .help = "Added to the norm before clip.max_norm is divided by it; llm.c adds 0"),
    WORDS(KEY_ENUM, clip.norm, .standard = "squares", .cause = CAUSE_OPTIMIZER,
          .names = clip_norm_names,
          .help = "How tensors join: their sums of squares (squares), their norms, rounded, "
                  "squared again (norms: torch), or as one long vector (flat: Megatron, llm.c)"),
    WORDS(KEY_ENUM, clip.dtype, .standard = "f64", .cause = CAUSE_OPTIMIZER,
          .names = clip_dtype_names,
          .help = "Dtype of norms: f64, or f32 with sums in f32, both with a coefficient of host "
                  "numbers rounded to f32; or the gradients', for norms and coefficient (torch: "
                  "bf16 norms of bf16 gradients)"),
    WORDS(KEY_ENUM, clip.form, .standard = "quotient", .cause = CAUSE_OPTIMIZER,
          .names = clip_form_names,
          .help = "min(1, max_norm / (norm + eps)), or its reciprocal's reciprocal: 1 / ((norm + "
                  "eps) / max_norm) where that is above 1 (DeepSpeed ZeRO)"),
    WORDS(KEY_ENUM, clip.apply, .standard = "always", .cause = CAUSE_OPTIMIZER,
          .names = clip_apply_names,
          .help = "Gradients are multiplied always (torch), only by a coefficient below 1 (above: "
                  "Megatron, NeMo-RL, llm.c; a NaN norm then changes nothing), or only a copy of "
                  "them is (NeMo-RL #1158)"),
    NUMBER(KEY_UINT, clip.replicas, .unit = "1", .standard = "1", .cause = CAUSE_OPTIMIZER,
           .low = 1, .high = 1048576,
           .help = "Times that each gradient is counted in the norm; above 1 as when shards are "
                   "summed over the replicas too (VeOmni #862)"),

    WORDS_AT("schedule.name", KEY_TEXT, schedule.which.name, .standard = "linear",
             .cause = CAUSE_SCHEDULE,
             .help = "Shape of the learning rate; its own keys are listed under its name"),
    WORDS_AT("schedule.module", KEY_TEXT, schedule.which.module, .standard = CONFIG_NO_MODULE,
             .cause = CAUSE_SCHEDULE,
             .help = "Shared object that holds the schedule (docs/PLUGINS.md); none: it is one of "
                     "those built in"),
    WORDS_AT("schedule.module_sha256", KEY_TEXT, schedule.which.module_sha256, .standard = "auto",
             .cause = CAUSE_SCHEDULE,
             .help = "SHA-256 of that file; auto is what it has, and a digest that is written "
                     "refuses another file"),
    WORDS(KEY_TEXT, schedule.contract, .standard = CONFIG_NO_CONTRACT, .cause = CAUSE_SCHEDULE,
          .help = "Framework whose loop this is: the loop and the keys that its table lists follow "
                  "from it, names of schedules are its own, warm-up and total are in updates; "
                  "none: the loop is written"),
    NUMBER(KEY_UINT, schedule.processes, .unit = "1", .standard = "1", .cause = CAUSE_SCHEDULE,
           .low = 1, .high = 1e6,
           .help =
               "Data-parallel processes as a contract counts them; they act on the schedule alone"),
    WORDS(KEY_ENUM, schedule.rescaled, .standard = "contract", .cause = CAUSE_SCHEDULE,
          .names = rescaled_names,
          .help =
              "What the script turned from updates into units of the counter: what the contract "
              "does in correct use (or in its bug), nothing, only the total, only the warm-up"),
    NUMBER(KEY_UINT, schedule.updates_per_epoch, .unit = "updates", .standard = "0",
           .cause = CAUSE_SCHEDULE, .high = 0x1p53,
           .help = "Updates of one epoch, for a contract whose schedule moves once per epoch; 0: "
                   "not given"),
    NUMBER(KEY_REAL, schedule.warmup, .unit = "counter", .standard = "0", .cause = CAUSE_SCHEDULE,
           .high = 1e15, .help = "Length of the warm-up, in units of the counter"),
    NUMBER(KEY_REAL, schedule.warmup_ratio, .unit = "1", .standard = "none",
           .cause = CAUSE_SCHEDULE, .high = 1, .word = "none",
           .help = "Warm-up as a share of schedule.total, instead of schedule.warmup"),
    WORDS(KEY_ENUM, schedule.warmup_rounding, .standard = "ceil", .cause = CAUSE_SCHEDULE,
          .names = rounding_names,
          .help = "How schedule.warmup_ratio * schedule.total becomes a whole number; none: it "
                  "stays as it is"),
    NUMBER(KEY_UINT, schedule.total, .unit = "counter", .standard = "auto", .cause = CAUSE_SCHEDULE,
           .low = 1, .high = 0x1p53, .word = "auto",
           .help = "Length of the schedule, in units of the counter; auto is steps"),
    WORDS(KEY_ENUM, schedule.start, .standard = "f0", .cause = CAUSE_SCHEDULE, .names = start_names,
          .help = "Learning rate before the first schedule phase: the schedule at its origin, the "
                  "peak, zero, or the minimum"),
    NUMBER(KEY_UINT, schedule.origin, .unit = "counter", .standard = "0", .cause = CAUSE_SCHEDULE,
           .high = 0x1p53, .help = "Counter c0 at which the schedule starts"),
    NUMBER(KEY_UINT, schedule.increment, .unit = "counter/update", .standard = "1",
           .cause = CAUSE_SCHEDULE, .high = 0x1p53,
           .help = "Counter units inc that one update is worth"),
    NUMBER(KEY_INT, schedule.shift, .unit = "counter", .standard = "0", .cause = CAUSE_SCHEDULE,
           .low = -0x1p53, .high = 0x1p53,
           .help = "Offset d: the schedule phase sets f(origin + increment * n + shift)"),
    WORDS(KEY_ENUM, schedule.logged, .standard = "current", .cause = CAUSE_SCHEDULE,
          .names = logged_names,
          .help = "What the log phase prints: the rate in force, or the schedule computed again"),
    NUMBER(KEY_INT, schedule.logged_shift, .unit = "counter", .standard = "0",
           .cause = CAUSE_SCHEDULE, .low = -0x1p53, .high = 0x1p53,
           .help = "Offset of a recomputed logged rate"),

    WORDS(KEY_LIST, loop.micro, .standard = "[fetch, forward, backward]", .cause = CAUSE_SCHEDULE,
          .names = schema_phase_names, .help = "Phases of each micro-batch, in order"),
    WORDS(KEY_LIST, loop.update, .standard = "[clip, optimize, log, count, schedule, zero]",
          .cause = CAUSE_SCHEDULE, .names = schema_phase_names,
          .help = "Phases of each update after its micro-batches, in order"),
    WORDS(KEY_LIST, loop.epoch, .standard = "[]", .cause = CAUSE_SCHEDULE,
          .names = schema_phase_names, .help = "Phases at the end of each epoch"),
    WORDS(KEY_LIST, loop.eval, .standard = "[]", .cause = CAUSE_SCHEDULE,
          .names = schema_phase_names, .help = "Phases of an evaluation"),
    NUMBER(KEY_UINT, loop.eval_every, .unit = "updates", .standard = "0", .cause = CAUSE_SCHEDULE,
           .high = 1e9, .help = "Updates between two evaluations; 0 is never"),
    WORDS(
        KEY_ENUM, loop.skip, .standard = "none", .cause = CAUSE_SCHEDULE, .names = skip_names,
        .help =
            "Which updates are skipped: none; those with a gradient that is not finite; or those "
            "whose loss or gradient norm is an outlier, as OLMo-core's SkipStep optimizers judge"),
    NUMBER(KEY_UINT, loop.skip_window, .unit = "updates", .standard = "128",
           .cause = CAUSE_SCHEDULE, .low = 2, .high = 1048576,
           .help = "Updates before it that olmo-outlier compares an update with; it judges from "
                   "half of them on, and a restart forgets them"),
    NUMBER(KEY_REAL, loop.skip_sigma, .unit = "1", .standard = "6", .cause = CAUSE_SCHEDULE,
           .high = 1e6, .help = "Standard deviations above the mean that olmo-outlier tolerates"),
    WORDS(KEY_LIST, loop.on_skip, .standard = "[log, zero]", .cause = CAUSE_SCHEDULE,
          .names = schema_phase_names,
          .help = "Phases of loop.update that still run when an update is skipped; without count "
                  "and schedule the rate holds"),

    WORDS(KEY_ENUM, numerics.param, .standard = "f32", .cause = CAUSE_DTYPE, .names = dtype_names,
          .help = "Dtype of the stored parameters; fp8 (e4m3, e5m2) is for them and "
                  "numerics.gradient alone, and has no scale"),
    WORDS(KEY_ENUM, numerics.compute, .standard = "f32", .cause = CAUSE_DTYPE, .names = dtype_names,
          .help = "Dtype of activations and their gradients"),
    WORDS(KEY_ENUM, numerics.accumulate, .standard = "auto", .cause = CAUSE_DTYPE, .word = "auto",
          .names = wide_names,
          .help = "Dtype in which sums are kept; auto is f64 for f64 compute, else f32"),
    WORDS(KEY_ENUM, numerics.gradient, .standard = "auto", .cause = CAUSE_DTYPE, .word = "auto",
          .names = dtype_names,
          .help = "Dtype of the stored gradients; auto is numerics.param, or numerics.compute "
                  "where that is fp8"),
    WORDS(KEY_ENUM, numerics.optimizer, .standard = "auto", .cause = CAUSE_DTYPE, .word = "auto",
          .names = dtype_names,
          .help = "Dtype of the optimizer's slots; auto is numerics.master, or numerics.param "
                  "without masters, or f32 where that is fp8"),
    WORDS(KEY_ENUM, numerics.master, .standard = "none", .cause = CAUSE_DTYPE, .word = "none",
          .names = wide_names,
          .help = "Dtype of master weights, wider than numerics.param; none updates the parameters "
                  "themselves"),
    WORDS(KEY_ENUM, numerics.rope, .standard = "f32", .cause = CAUSE_DTYPE, .names = dtype_names,
          .help = "Dtype of the rotary table and its frequencies"),
    WORDS(KEY_ENUM, numerics.loss, .standard = "auto", .cause = CAUSE_DTYPE, .word = "auto",
          .names = dtype_names,
          .help = "Dtype of log-probabilities and loss coefficients; auto is f64 for f64 compute, "
                  "else f32"),
    WORDS(KEY_ENUM, numerics.product, .standard = "compute", .cause = CAUSE_DTYPE,
          .word = "compute", .names = dtype_names,
          .help = "Dtype that operands of matrix products are rounded to on their way in: "
                  "numerics.compute; tf32 under f32 compute is torch's allow_tf32"),
    WORDS(KEY_ENUM, numerics.softmax, .standard = "compute", .cause = CAUSE_DTYPE,
          .word = "compute", .names = dtype_names,
          .help = "Dtype of attention's scores and probabilities: numerics.compute (eager "
                  "attention); f32 under bf16 compute keeps them wide, as fused attention does"),
    WORDS(KEY_ENUM, numerics.rounding, .standard = "nearest", .cause = CAUSE_DTYPE,
          .names = param_rounding_names,
          .help = "How updated parameters below f32 without masters are rounded: to nearest after "
                  "every operation, or once, up or down by a draw, from an update made in f32"),
    WORDS(KEY_ENUM, numerics.grad_accumulate, .standard = "wide", .cause = CAUSE_DTYPE,
          .names = grad_accumulate_names,
          .help = "Gradients over micro-batches kept in the accumulation dtype (wide), or rounded "
                  "to the stored one after each"),
    WORDS(KEY_ENUM, numerics.mode, .standard = "invariant", .cause = CAUSE_NONDETERMINISM,
          .names = mode_names,
          .help = "What the kernels promise about the order of sums (docs/DETERMINISM.md)"),
    NUMBER(KEY_UINT, numerics.order_seed, .unit = "", .standard = "free",
           .cause = CAUSE_NONDETERMINISM, UINT_ALL, .word = "free",
           .help = "Seed of the order of sums in shuffled; free draws one for each run"),
    NUMBER(KEY_UINT, numerics.threads, .unit = "threads", .standard = "1",
           .cause = CAUSE_NONDETERMINISM, .low = 1, .high = 1024, .help = "Threads of the kernels"),
    WORDS(KEY_ENUM, numerics.isa, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .names = isa_names,
          .help = "Instruction set of the kernels; auto is the widest of the machine"),
    WORDS(KEY_ENUM, numerics.library, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .names = library_names,
          .help = "Linear layers in mode fast: on the CPU through OpenBLAS where it is installed "
                  "(auto), never, or surely; on numerics.backend cuda, also in mode deterministic, "
                  "through cuBLAS (auto, cublas) or never"),
    WORDS(KEY_ENUM, numerics.backend, .standard = "cpu", .cause = CAUSE_NONDETERMINISM,
          .names = backend_names,
          .help = "Who runs the ops: this program, or a module with a device (docs/CUDA.md), whose "
                  "bits are the same in mode invariant"),
    WORDS(KEY_TEXT, numerics.backend_module, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .help = "File of the module behind numerics.backend; auto is twinstep_cuda.so beside the "
                  "program"),
    WORDS(KEY_ENUM, numerics.determinism.workspace, .standard = "auto",
          .cause = CAUSE_NONDETERMINISM, .word = "auto", .names = workspace_names,
          .help = "Workspace of the device's library: one of fixed size and place (pinned), or its "
                  "own; auto is default in mode fast, else pinned"),
    WORDS(KEY_ENUM, numerics.determinism.order, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .word = "auto", .names = order_names,
          .help = "Products of the device's library: one after another on one stream (fixed), or "
                  "parts of one on several at once (free); auto is fixed"),
    WORDS(KEY_ENUM, numerics.determinism.atomics, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .word = "auto", .names = allowed_names,
          .help = "Whether a device adds with atomics: gradients of embeddings, dQ and norms, and "
                  "its library where it likes; auto is on in mode fast, else off"),
    WORDS(KEY_ENUM, numerics.determinism.split_k, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .word = "auto", .names = allowed_names,
          .help = "Whether the device's library may deal the terms of a sum to several workers; "
                  "auto is on in mode fast, else off"),
    WORDS(KEY_ENUM, numerics.determinism.fill, .standard = "auto", .cause = CAUSE_NONDETERMINISM,
          .word = "auto", .names = fill_names,
          .help = "What activations and scratch hold before each forward: what was there, or NaN "
                  "(torch.utils.deterministic.fill_uninitialized_memory); auto is nan in mode "
                  "deterministic of numerics.backend cuda, else none"),
    NUMBER(KEY_UINT, numerics.shards, .unit = "1", .standard = "1", .cause = CAUSE_PARALLELISM,
           .low = 1, .high = 1024, .help = "Shards of an update whose sums are joined by a tree"),

    NUMBER(KEY_REAL, dropout.embedding, .unit = "1", .standard = "0", .cause = CAUSE_RNG,
           .high = BELOW_ONE,
           .help = "Probability that an element of the embedding's output is dropped"),
    NUMBER(KEY_REAL, dropout.attention, .unit = "1", .standard = "0", .cause = CAUSE_RNG,
           .high = BELOW_ONE, .help = "Probability that an attention weight is dropped"),
    NUMBER(KEY_REAL, dropout.residual, .unit = "1", .standard = "0", .cause = CAUSE_RNG,
           .high = BELOW_ONE,
           .help = "Probability that an element of a branch is dropped before it joins the "
                   "residual stream"),
    NUMBER(KEY_UINT, dropout.seed, .unit = "", .standard = "auto", .cause = CAUSE_RNG, UINT_ALL,
           .word = "auto", .help = "Seed of the masks; auto is seed"),
    NUMBER(KEY_UINT, dropout.ranks, .unit = "1", .standard = "1", .cause = CAUSE_RNG, .low = 1,
           .high = 256,
           .help = "Data-parallel ranks whose seeding is imitated: each draws for its share of "
                   "batch.size"),
    WORDS(KEY_ENUM, dropout.masks, .standard = "own", .cause = CAUSE_RNG, .names = masks_names,
          .help =
              "Whether each of dropout.ranks draws masks of its own, or all draw the same ones"),
    WORDS(KEY_ENUM, dropout.recompute, .standard = "preserve", .cause = CAUSE_RNG,
          .names = recompute_names,
          .help = "Masks of layers recomputed for their backward (activation checkpointing): those "
                  "of the forward, or drawn anew"),

    WORDS(KEY_ENUM, rng.kind, .standard = "addressed", .cause = CAUSE_RNG, .names = rng_names,
          .help = "Numbers that dropout draws: by address, or as PyTorch's CUDA generator deals "
                  "them out"),
    NUMBER(KEY_UINT, rng.sms, .unit = "1", .standard = "108", .cause = CAUSE_RNG, .low = 1,
           .high = 1024,
           .help = "Multiprocessors of the imitated GPU (T4 40, L4 58, A100 108, H100 SXM 132)"),
    NUMBER(KEY_UINT, rng.threads_per_sm, .unit = "threads", .standard = "2048", .cause = CAUSE_RNG,
           .low = 256, .high = 65536,
           .help = "Resident threads of a multiprocessor of the imitated GPU (T4 1024, L4 1536)"),
    NUMBER(KEY_UINT, rng.vector, .unit = "elements", .standard = "auto", .cause = CAUSE_RNG,
           .low = 1, .high = 8, .word = "auto",
           .help = "Consecutive elements that a thread draws for: 1, 2, 4 or 8; auto is the "
                   "largest divisor of the tensor up to 4"),
    WORDS(
        KEY_TEXT, rng.data, .standard = "none", .cause = CAUSE_DATA_ORDER,
        .help =
            "What happens to the stream of batches, each before the update that it names: advance "
            "N at K (skip N updates' worth), save A at K, load A at K, seed S at K, seed S clock C "
            "at K, take ARM at K (go on from where the other arm's stream is); joined by commas"),
    WORDS(KEY_TEXT, rng.dropout, .standard = "none", .cause = CAUSE_RNG,
          .help =
              "What happens to the stream of dropout masks, as in rng.data; under rng.kind torch N "
              "and C are words of the generator's offset, and seed S starts at offset 0"),
    WORDS(KEY_TEXT, rng.rounding, .standard = "none", .cause = CAUSE_RNG,
          .help = "What happens to the stream of stochastic rounding, as in rng.data"),
    WORDS(KEY_TEXT, rng.order, .standard = "none", .cause = CAUSE_NONDETERMINISM,
          .help = "What happens to the stream of orders of sums in shuffled, as in rng.data"),

    NUMBER(
        KEY_UINT, resume.after, .unit = "updates", .standard = "0", .cause = CAUSE_RESUME, UINT_ALL,
        .help =
            "The job stops after this update and restarts from its checkpoint; 0: it never stops"),
    WORDS(KEY_LIST, resume.restores, .standard = "[schedule, optimizer, data, rng, scaler]",
          .cause = CAUSE_RESUME, .names = resume_names,
          .help = "What the restart takes from the checkpoint beside the weights; the rest is as "
                  "at step 0: counter and learning rate, moments and their step count, place in "
                  "the data, random streams, loss scale"),

    WORDS(KEY_ENUM, scaler.kind, .standard = "none", .cause = CAUSE_DTYPE, .names = scaler_names,
          .help = "Loss scale: none, held at scaler.init_scale, or grown and backed off as "
                  "torch.amp.GradScaler does"),
    NUMBER(KEY_REAL, scaler.init_scale, .unit = "1", .standard = "65536", .cause = CAUSE_DTYPE,
           .low = 1e-30, .high = 3e38, .help = "First loss scale"),
    NUMBER(
        KEY_REAL, scaler.growth_factor, .unit = "1", .standard = "2",
        .cause = CAUSE_DTYPE, .low = 1, .high = 1e6,
        .help =
            "Factor on the scale after scaler.growth_interval updates in a row without overflow"),
    NUMBER(KEY_REAL, scaler.backoff_factor, .unit = "1", .standard = "0.5", .cause = CAUSE_DTYPE,
           .low = 1e-6, .high = 1, .help = "Factor on the scale when a gradient overflowed"),
    NUMBER(KEY_UINT, scaler.growth_interval, .unit = "updates", .standard = "2000",
           .cause = CAUSE_DTYPE, .low = 1, .high = 1e9,
           .help = "Updates in a row without overflow after which the scale grows"),
    NUMBER(KEY_UINT, scaler.hysteresis, .unit = "updates", .standard = "1", .cause = CAUSE_DTYPE,
           .low = 1, .high = 1e9,
           .help = "Overflows before the scale is backed off, counted anew when it grows "
                   "(Megatron: 2); 1 is torch"),
    NUMBER(KEY_REAL, scaler.min_scale, .unit = "1", .standard = "0", .cause = CAUSE_DTYPE,
           .high = 1e38,
           .help = "Scale that is not backed off further (Megatron, DeepSpeed: 1); 0 is torch"),

    WORDS(KEY_LIST, shuffle.kinds, .standard = "[weight, dq, embedding, norm]",
          .cause = CAUSE_NONDETERMINISM, .names = kind_names,
          .help = "Kinds of sum whose order is drawn in shuffled"),
    NUMBER(KEY_UINT, shuffle.chunk, .unit = "terms", .standard = "16",
           .cause = CAUSE_NONDETERMINISM, .low = 1, .high = 1048576,
           .help = "Consecutive terms of one partial sum in shuffled"),

    WORDS(KEY_LIST, atomic.kinds, .standard = "[weight, dq, embedding, norm]",
          .cause = CAUSE_NONDETERMINISM, .names = kind_names,
          .help = "Kinds of sum that threads race on in mode atomic: forward, weight, dq, "
                  "embedding, norm, loss"),
    NUMBER(
        KEY_UINT, atomic.chunk, .unit = "terms", .standard = "16",
        .cause = CAUSE_NONDETERMINISM, .low = 1, .high = 1048576,
        .help =
            "Consecutive terms that one thread sums before it adds them to a sum that is raced on"),

    WORDS(KEY_TEXT, shaped.table, .standard = "builtin:small-batch", .cause = CAUSE_NONDETERMINISM,
          .help = "Parts into which sums are cut in mode shaped, by op and shape: "
                  "builtin:small-batch, builtin:large-batch, or rows such as weight m<=512 k>=256: "
                  "4; attention k>=64: 2; *: 1"),

    NUMBER(KEY_UINT, parallel.ranks, .unit = "1", .standard = "1", .cause = CAUSE_PARALLELISM,
           .low = 1, .high = 1024, .help = "Simulated data-parallel ranks"),
    WORDS(KEY_ENUM, parallel.reduce, .standard = "tree", .cause = CAUSE_PARALLELISM,
          .names = reduce_names, .help = "Order in which ranks' gradients are summed"),
};

const struct key_row *schema_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

const char *phase_name(enum phase phase) {
    return schema_phase_names[phase];
}

const char *family_name(int32_t family) {
    return family_names[family];
}
