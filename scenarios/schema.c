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

#include <string.h>

#include "scenarios/rows.h"
#include "scenarios/selection.h"

#define OWNER struct config
#define UINT_ALL .low = 0, .high = 0x1p64
#define SMALLEST 0x1p-1022
#define BELOW_ONE 0x1.fffffffffffffp-1

static const char *const layout_names[] = {"separate", "concatenated", NULL};
static const char *const family_names[] = {"olmo2", "llama", "qwen2", "qwen3", NULL};
static const char *const switch_names[] = {"false", "true", NULL};
static const char *const dpo_loss_names[DPO_LOSSES + 1] = {
    "sigmoid",  "cdpo",         "robust",    "hinge",    "ipo",      "ipo-sum",
    "dpo-norm", "sigmoid-norm", "simpo",     "apo-zero", "apo-down", "exo-pair",
    "nca-pair", "bco-pair",     "sppo-hard", "discopop", NULL};
static const char *const allowed_names[] = {"off", "on", NULL};
static const char *const kind_names[] = {"forward", "weight", "dq", "embedding",
                                         "norm",    "loss",   NULL};
static const char *const dtype_names[] = {"f32",  "f64",  "bf16", "f16",
                                          "tf32", "e4m3", "e5m2", NULL};
/* In the order of enum dtype, which begins with these two. */
static const char *const wide_names[] = {"f32", "f64", NULL};
#define PHASE_NAMES                                                                                \
    "fetch", "forward", "backward", "reduce", "unscale", "clip", "optimize", "log", "count",       \
        "schedule", "zero"

const char *const schema_phase_names[PHASE_TOTAL + 1] = {PHASE_NAMES, NULL};
const char *const schema_stage_names[PHASE_TOTAL + 4] = {
    "before-the-update", PHASE_NAMES, "forward-of-the-reference", "end-of-the-update", NULL};

static const struct key_row rows[] = {
    ENUM(task, "dpo", CAUSE_OBJECTIVE, NAMES("sft", "dpo"),
         .help = "What is trained: completions (sft) or preferences (dpo)"),
    UINT(seed, "", "17", CAUSE_RNG, UINT_ALL,
         .help = "Seed of every random stream that has no seed of its own"),

    TEXT(data.pairs, "builtin:quiz", CAUSE_DATA_ORDER,
         .help = "Preference pairs of a dpo task: builtin:quiz or a JSONL file"),
    TEXT(data.text, "builtin:devil", CAUSE_DATA_ORDER,
         .help = "Texts of an sft task: builtin:devil, builtin:devil-text (its prompts have a "
                 "loss, too) or a JSONL file"),
    UINT(data.samples, "samples", "all", CAUSE_DATA_ORDER, .low = 1, .high = 4294967294,
         .word = "all",
         .help = "Samples that are used, the first of the data; fewer make short epochs"),
    UINT(data.max_len, "tokens", "96", CAUSE_DATA_ORDER, .low = 2, .high = 1048576,
         .help = "Longest sequence, prompt and completion together; the rest is cut"),
    ENUM(data.no_label, "error", CAUSE_DATA_ORDER, NAMES("error", "drop"),
         .help = "Rows in which data.max_len leaves nothing with a loss: an error, or dropped, as "
                 "TRL drops them; the rows that are dropped are counted and told"),
    ENUM_AT("data.template", data.chat, "none", CAUSE_DATA_ORDER,
            NAMES("none", "plain", "chatml", "llama3", "olmo"),
            .help = "Chat template around prompts, completions and messages (docs/DATA.md); none "
                    "joins prompt and completion between <bos> and <eos>"),
    BOOL(data.shuffle, "true", CAUSE_DATA_ORDER,
         .help =
             "Draws a new order of the samples for each epoch; false keeps the order of the file"),
    UINT(data.seed, "", "auto", CAUSE_DATA_ORDER, UINT_ALL, .word = "auto",
         .help = "Seed of the data stream; auto is seed"),
    ENUM(data.epoch_seed, "own", CAUSE_DATA_ORDER, NAMES("own", "first"),
         .help = "What an epoch's order is drawn from: numbers of its own; or those of the first "
                 "epoch, a bug, as where nobody calls set_epoch of DistributedSampler, and every "
                 "epoch has one order"),

    UINT(batch.size, "samples", "8", CAUSE_BATCH_SHAPE, .low = 1, .high = 4194303,
         .help = "Samples (dpo: pairs) of one update"),
    UINT(batch.micro, "samples", "auto", CAUSE_BATCH_SHAPE, .low = 1, .high = 4194303,
         .word = "auto",
         .help = "Samples of one micro-batch, a divisor of batch.size; auto is batch.size"),
    ENUM(batch.layout, "separate", CAUSE_BATCH_SHAPE, layout_names,
         .help = "Whether chosen and rejected go through one forward each or share one"),
    ENUM(batch.padding, "longest", CAUSE_BATCH_SHAPE, NAMES("longest", "packed"),
         .help = "Rows padded to the longest of the micro-batch, or packed one behind the other"),
    ENUM(batch.tail, "drop", CAUSE_NORMALISATION, NAMES("drop", "keep", "keep-underscaled", "leak"),
         .help = "Samples that do not fill an epoch's last update: dropped; kept as a smaller "
                 "update; kept, but divided by the micro-batches of a full one; or their gradients "
                 "leak into the next epoch's first update"),
    UINT(batch.pad, "tokens", "0", CAUSE_BATCH_SHAPE, .high = 1048576,
         .help = "Padded positions added to each sequence on top of batch.padding"),

    ENUM(model.family, "olmo2", CAUSE_MODEL, family_names,
         .help =
             "olmo2: norm after attention and MLP, q/k norm; llama: norm before them; qwen2: llama "
             "with biases at q, k and v; qwen3: llama with a norm of each head's q and k"),
    TEXT(model.from, CONFIG_NO_CHECKPOINT, CAUSE_INIT,
         .help = "Folder of a checkpoint (docs/CHECKPOINTS.md), or builtin:base, a small model "
                 "that was trained on builtin:devil: its weights are the initial ones, its "
                 "config.json sets every key of this section but norm_rounding; none: weights are "
                 "drawn"),
    TEXT(model.from_digest, "auto", CAUSE_INIT,
         .help = "Digest of the tensors in model.from; auto is what they have, and a digest that "
                 "is written refuses other weights"),
    UINT(model.layers, "1", "2", CAUSE_MODEL, .low = 1, .high = 510, .help = "Transformer blocks"),
    UINT(model.hidden, "1", "64", CAUSE_MODEL, .low = 2, .high = 262144,
         .help = "Width of the residual stream"),
    UINT(model.heads, "1", "4", CAUSE_MODEL, .low = 1, .high = 1024, .help = "Query heads"),
    UINT(model.kv_heads, "1", "auto", CAUSE_MODEL, .low = 1, .high = 1024, .word = "auto",
         .help = "Key and value heads, a divisor of model.heads; auto is model.heads"),
    UINT(model.head_dim, "1", "auto", CAUSE_MODEL, .low = 2, .high = 65536, .word = "auto",
         .help = "Width of one head, even; auto is model.hidden / model.heads"),
    UINT(model.mlp, "1", "172", CAUSE_MODEL, .low = 1, .high = 1048576,
         .help = "Inner width of the SwiGLU"),
    UINT(model.vocab, "tokens", "auto", CAUSE_MODEL, .low = 2, .high = 2147483647, .word = "auto",
         .help = "Vocabulary; auto is 259, that of the byte tokenizer"),
    BOOL(model.tied, "false", CAUSE_MODEL, .help = "The head is the embedding matrix"),
    ENUM(model.qkv_bias, "auto", CAUSE_MODEL, switch_names, .word = "auto",
         .help = "A bias behind the projections to q, k and v; auto is true for qwen2"),
    ENUM(model.output_bias, "auto", CAUSE_MODEL, switch_names, .word = "auto",
         .help = "A bias behind attention's output projection; auto is false"),
    ENUM(model.mlp_bias, "auto", CAUSE_MODEL, switch_names, .word = "auto",
         .help = "A bias behind each projection of the MLP; auto is false"),
    REAL(model.norm_eps, "1", "auto", CAUSE_MODEL, .low = SMALLEST, .high = 1, .word = "auto",
         .help = "Added to the mean square in RMSNorm; auto is 1e-6"),
    REAL(model.rope_theta, "1", "auto", CAUSE_MODEL, .low = 1, .high = 1e12, .word = "auto",
         .help = "Base of the rotary frequencies; auto is 500000 for olmo2, 10000 for llama, "
                 "1000000 for qwen2 and qwen3"),
    ENUM(model.rope_scaling, "none", CAUSE_MODEL, NAMES("none", "llama3", "yarn"),
         .help = "How rotary frequencies are stretched for longer texts, as transformers' "
                 "modeling_rope_utils does"),
    REAL(model.rope_factor, "1", "8", CAUSE_MODEL, .low = 1, .high = 1e6,
         .help = "By what low frequencies are divided (llama3, yarn)"),
    UINT(model.rope_original_positions, "tokens", "8192", CAUSE_MODEL, .low = 1,
         .high = 1099511627776, .help = "Positions before the stretching (llama3, yarn)"),
    REAL(model.rope_low_freq_factor, "1", "1", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .help = "Of llama3: wavelengths above original positions / this are stretched fully"),
    REAL(model.rope_high_freq_factor, "1", "4", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .help = "Of llama3: wavelengths below original positions / this stay"),
    REAL(model.rope_attention_factor, "1", "auto", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .word = "auto",
         .help = "Of yarn: factor on cosine and sine; auto is m(mscale) / m(mscale_all_dim), or "
                 "m(1) where one is none, with m(s) = 0.1 s ln(rope_factor) + 1"),
    REAL(model.rope_beta_fast, "1", "32", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .help = "Of yarn: turns within the original positions above which a frequency stays"),
    REAL(model.rope_beta_slow, "1", "1", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .help = "Of yarn: turns below which it is stretched fully"),
    REAL(model.rope_mscale, "1", "none", CAUSE_MODEL, .low = SMALLEST, .high = 1e6, .word = "none",
         .help = "Of yarn: see rope_attention_factor"),
    REAL(model.rope_mscale_all_dim, "1", "none", CAUSE_MODEL, .low = SMALLEST, .high = 1e6,
         .word = "none", .help = "Of yarn: see rope_attention_factor"),
    BOOL(model.rope_truncate, "true", CAUSE_MODEL,
         .help = "Of yarn: the ends of the ramp are whole numbers"),
    ENUM(model.norm_rounding, "auto", CAUSE_MODEL, NAMES("before-weight", "after-weight"),
         .word = "auto",
         .help = "Where RMSNorm rounds to the compute dtype; auto is after-weight for olmo2, else "
                 "before-weight"),

    REAL(init.std, "1", "0.02", CAUSE_INIT, .high = 1e6,
         .help = "Standard deviation of the initial weights; norm weights start at 1"),
    UINT(init.seed, "", "auto", CAUSE_INIT, UINT_ALL, .word = "auto",
         .help = "Seed of the initial weights; auto is seed"),
    TEXT(init.nudge, "none", CAUSE_INIT,
         .help = "Weight that starts one unit in the last place off, TENSOR or TENSOR[ELEMENT]: a "
                 "twin that shows how rounding grows"),

    ENUM(
        dpo.loss, "sigmoid", CAUSE_OBJECTIVE, dpo_loss_names,
        .help =
            "Form of the preference loss: TRL's (ipo and sigmoid-norm of scores per token; ipo-sum "
            "as before its pull request 1265), open-instruct's dpo (cdpo), dpo_norm and simpo"),
    REAL(dpo.beta, "1", "0.1", CAUSE_OBJECTIVE, .high = 1e6,
         .help = "Factor on the margin between policy and reference"),
    REAL(dpo.label_smoothing, "1", "0", CAUSE_OBJECTIVE, .high = BELOW_ONE,
         .help = "Share of pairs taken to be swapped, in the losses that know one: cdpo, robust, "
                 "dpo-norm, simpo, exo-pair"),
    REAL(dpo.gamma_beta_ratio, "nat", "0.3", CAUSE_OBJECTIVE, .low = -1e6, .high = 1e6,
         .help = "Margin per token that simpo asks for, gamma / beta"),
    REAL(dpo.discopop_tau, "1", "0.05", CAUSE_OBJECTIVE, .low = 1e-6, .high = 1e6,
         .help = "Temperature of discopop's blend of logistic and exponential loss"),
    ENUM(dpo.f_divergence, "reverse-kl", CAUSE_OBJECTIVE,
         NAMES("reverse-kl", "forward-kl", "js", "alpha"),
         .help = "Divergence whose derivative scores a side: TRL's f_divergence_type"),
    REAL(dpo.f_alpha, "1", "0.5", CAUSE_OBJECTIVE, .low = -1e3, .high = 1e3,
         .help = "Order of the alpha divergence; 1 is reverse-kl"),
    ENUM(dpo.reference, "cached", CAUSE_REFERENCE, NAMES("cached", "live", "given"),
         .help =
             "Reference log-probabilities from one pass before training, live at each micro-batch, "
             "or given by the rows of data.pairs (ref_chosen_logps, ref_rejected_logps)"),
    UINT(dpo.reference_batch, "samples", "auto", CAUSE_REFERENCE, .low = 1, .high = 4194303,
         .word = "auto", .help = "Pairs of one forward of the cached pass; auto is batch.micro"),
    ENUM(dpo.reference_compute, "auto", CAUSE_REFERENCE, dtype_names, .word = "auto",
         .help = "Compute dtype of the reference; auto is numerics.compute"),
    ENUM(dpo.reference_layout, "auto", CAUSE_REFERENCE, layout_names, .word = "auto",
         .help = "Layout of the reference's forward; auto is batch.layout"),

    ENUM(loss.divisor, "update", CAUSE_NORMALISATION,
         NAMES("update", "mean-of-means", "sum-of-means", "update-and-micros", "mean-of-ranks",
               "update-unshifted", "means-over-size", "micros-by-tokens"),
         .help = "By what losses are divided: label tokens (sft) or pairs (dpo) of the update "
                 "(transformers 5, torchtitan, torchtune); each micro-batch by its own, then by "
                 "their number (transformers below 4.46, Accelerate, TRL's DPO); by its own only; "
                 "by the update's and then by the number of micro-batches; each rank by its own, "
                 "then by their number (OLMo-core); the update's with first tokens that are "
                 "labelled (transformers from 4.46 to 4.x); each micro-batch by its own, then by "
                 "batch.micro (VeOmni's DiT before its pull request 963); means of micro-batches "
                 "weighted by their tokens, metrics too (open-instruct's dpo.py)"),
    UINT(loss.ranks, "1", "auto", CAUSE_NORMALISATION, .low = 1, .high = 1024, .word = "auto",
         .help = "Data-parallel ranks of mean-of-ranks, a divisor of batch.size: each has its "
                 "share of the samples; auto is parallel.ranks, and with one rank another number "
                 "imitates the loss of so many"),
    ENUM(loss.logged, "divided", CAUSE_NORMALISATION, NAMES("divided", "mean"),
         .help =
             "The loss that is logged: what backward gets, summed over the update (transformers); "
             "or the mean over label tokens or pairs whatever backward divides by (Megatron)"),

    TEXT_AT("optimizer.name", optimizer.which.name, "adamw", CAUSE_OPTIMIZER,
            .help = "Algorithm; its own keys are listed under its name"),
    TEXT_AT("optimizer.module", optimizer.which.module, CONFIG_NO_MODULE, CAUSE_OPTIMIZER,
            .help = "Shared object that holds the optimizer (docs/PLUGINS.md); none: it is one of "
                    "those built in"),
    TEXT_AT("optimizer.module_sha256", optimizer.which.module_sha256, "auto", CAUSE_OPTIMIZER,
            .help = "SHA-256 of that file; auto is what it has, and a digest that is written "
                    "refuses another file"),
    REAL(optimizer.lr, "1", "1e-6", CAUSE_SCHEDULE, .high = 1e6,
         .help = "Base (peak) learning rate"),
    REAL(optimizer.weight_decay, "1", "0", CAUSE_OPTIMIZER, .high = 1e6,
         .help = "Weight decay coefficient of the decayed group"),
    ENUM(optimizer.decay, "all", CAUSE_OPTIMIZER,
         NAMES("all", "matrices", "hf", "olmo-core", "named"),
         .help = "Tensors that are decayed: all; matrices (no vectors); hf: none whose name says "
                 "bias or norm (Trainer.get_decay_parameter_names); olmo-core: all but the "
                 "embeddings; named: all but those of optimizer.no_decay"),
    TEXT(optimizer.no_decay, "norm", CAUSE_OPTIMIZER,
         .help = "For optimizer.decay named: words parted by spaces or commas; a tensor whose name "
                 "contains one is not decayed"),

    REAL(clip.max_norm, "1", "1", CAUSE_OPTIMIZER, .high = 1e12,
         .help =
             "Global gradient norm above which gradients are scaled down; 0 switches clipping off"),
    REAL(clip.eps, "1", "1e-6", CAUSE_OPTIMIZER, .high = 1e6,
         .help = "Added to the norm before clip.max_norm is divided by it; llm.c adds 0"),
    ENUM(clip.norm, "squares", CAUSE_OPTIMIZER, NAMES("squares", "norms", "flat"),
         .help = "How tensors join: their sums of squares (squares), their norms, rounded, squared "
                 "again (norms: torch), or as one long vector (flat: Megatron, llm.c)"),
    ENUM(clip.dtype, "f64", CAUSE_OPTIMIZER, NAMES("f64", "f32", "gradient"),
         .help = "Dtype of norms: f64, or f32 with sums in f32, both with a coefficient of host "
                 "numbers rounded to f32; or the gradients', for norms and coefficient (torch: "
                 "bf16 norms of bf16 gradients)"),
    ENUM(clip.form, "quotient", CAUSE_OPTIMIZER, NAMES("quotient", "reciprocal"),
         .help = "min(1, max_norm / (norm + eps)), or its reciprocal's reciprocal: 1 / ((norm + "
                 "eps) / max_norm) where that is above 1 (DeepSpeed ZeRO)"),
    ENUM(clip.apply, "always", CAUSE_OPTIMIZER, NAMES("always", "above", "copy"),
         .help = "Gradients are multiplied always (torch), only by a coefficient below 1 (above: "
                 "Megatron, NeMo-RL, llm.c; a NaN norm then changes nothing), or only a copy of "
                 "them is (NeMo-RL #1158)"),
    ENUM(
        clip.over, "global", CAUSE_OPTIMIZER, NAMES("global", "local", "averaged"),
        .help =
            "What the norm is of: all gradients, or, a bug where ranks own shards of them (ZeRO-3, "
            "FSDP), the shard of each rank, which that rank clips alone: of a tensor the "
            "rows/ranks rows, rounded up, that FSDP2 gives it; the norm of rank 0 is logged. Or, "
            "another bug, all ranks clip by the mean of the norms of these shards"),
    UINT(clip.replicas, "1", "1", CAUSE_OPTIMIZER, .low = 1, .high = 1048576,
         .help = "Times that each gradient is counted in the norm; above 1 as when shards are "
                 "summed over the replicas too (VeOmni #862)"),

    TEXT_AT("schedule.name", schedule.which.name, "linear", CAUSE_SCHEDULE,
            .help = "Shape of the learning rate; its own keys are listed under its name"),
    TEXT_AT("schedule.module", schedule.which.module, CONFIG_NO_MODULE, CAUSE_SCHEDULE,
            .help = "Shared object that holds the schedule (docs/PLUGINS.md); none: it is one of "
                    "those built in"),
    TEXT_AT("schedule.module_sha256", schedule.which.module_sha256, "auto", CAUSE_SCHEDULE,
            .help = "SHA-256 of that file; auto is what it has, and a digest that is written "
                    "refuses another file"),
    TEXT(schedule.contract, CONFIG_NO_CONTRACT, CAUSE_SCHEDULE,
         .help = "Framework whose loop this is: the loop and the keys that its table lists follow "
                 "from it, names of schedules are its own, warm-up and total are in updates; none: "
                 "the loop is written"),
    UINT(schedule.processes, "1", "auto", CAUSE_SCHEDULE, .low = 1, .high = 1e6, .word = "auto",
         .help = "Data-parallel processes as a contract counts them; auto is parallel.ranks, and "
                 "with one rank another number acts on the schedule alone"),
    ENUM(schedule.rescaled, "contract", CAUSE_SCHEDULE,
         NAMES("contract", "none", "total", "warmup"),
         .help = "What the script turned from updates into units of the counter: what the contract "
                 "does in correct use (or in its bug), nothing, only the total, only the warm-up"),
    UINT(schedule.updates_per_epoch, "updates", "0", CAUSE_SCHEDULE, .high = 0x1p53,
         .help = "Updates of one epoch, for a contract whose schedule moves once per epoch; 0: not "
                 "given"),
    REAL(schedule.warmup, "counter", "0", CAUSE_SCHEDULE, .high = 1e15,
         .help = "Length of the warm-up, in units of the counter"),
    REAL(schedule.warmup_ratio, "1", "none", CAUSE_SCHEDULE, .high = 1, .word = "none",
         .help = "Warm-up as a share of schedule.total, instead of schedule.warmup"),
    ENUM(schedule.warmup_rounding, "ceil", CAUSE_SCHEDULE,
         NAMES("ceil", "floor", "half-even", "none"),
         .help = "How schedule.warmup_ratio * schedule.total becomes a whole number; none: it "
                 "stays as it is"),
    UINT(schedule.total, "counter", "auto", CAUSE_SCHEDULE, .low = 1, .high = 0x1p53,
         .word = "auto", .help = "Length of the schedule, in units of the counter; auto is steps"),
    ENUM(schedule.start, "f0", CAUSE_SCHEDULE, NAMES("f0", "base", "zero", "min"),
         .help = "Learning rate before the first schedule phase: the schedule at its origin, the "
                 "peak, zero, or the minimum"),
    UINT(schedule.origin, "counter", "0", CAUSE_SCHEDULE, .high = 0x1p53,
         .help = "Counter c0 at which the schedule starts"),
    UINT(schedule.increment, "counter/update", "1", CAUSE_SCHEDULE, .high = 0x1p53,
         .help = "Counter units inc that one update is worth"),
    INT(schedule.shift, "counter", "0", CAUSE_SCHEDULE, .low = -0x1p53, .high = 0x1p53,
        .help = "Offset d: the schedule phase sets f(origin + increment * n + shift)"),
    ENUM(schedule.logged, "current", CAUSE_SCHEDULE, NAMES("current", "recomputed"),
         .help = "What the log phase prints: the rate in force, or the schedule computed again"),
    INT(schedule.logged_shift, "counter", "0", CAUSE_SCHEDULE, .low = -0x1p53, .high = 0x1p53,
        .help = "Offset of a recomputed logged rate"),

    LIST(loop.micro, "[fetch, forward, backward]", CAUSE_SCHEDULE, schema_phase_names,
         .help = "Phases of each micro-batch, in order"),
    LIST(loop.update, "[clip, optimize, log, count, schedule, zero]", CAUSE_SCHEDULE,
         schema_phase_names, .help = "Phases of each update after its micro-batches, in order"),
    LIST(loop.epoch, "[]", CAUSE_SCHEDULE, schema_phase_names,
         .help = "Phases at the end of each epoch"),
    LIST(loop.eval, "[]", CAUSE_SCHEDULE, schema_phase_names, .help = "Phases of an evaluation"),
    UINT(loop.eval_every, "updates", "0", CAUSE_SCHEDULE, .high = 1e9,
         .help = "Updates between two evaluations; 0 is never"),
    ENUM(loop.skip, "none", CAUSE_SCHEDULE, NAMES("none", "nonfinite", "olmo-outlier"),
         .help =
             "Which updates are skipped: none; those with a gradient that is not finite; or those "
             "whose loss or gradient norm is an outlier, as OLMo-core's SkipStep optimizers judge"),
    UINT(loop.skip_window, "updates", "128", CAUSE_SCHEDULE, .low = 2, .high = 1048576,
         .help = "Updates before it that olmo-outlier compares an update with; it judges from half "
                 "of them on, and a restart forgets them"),
    REAL(loop.skip_sigma, "1", "6", CAUSE_SCHEDULE, .high = 1e6,
         .help = "Standard deviations above the mean that olmo-outlier tolerates"),
    LIST(loop.on_skip, "[log, zero]", CAUSE_SCHEDULE, schema_phase_names,
         .help = "Phases of loop.update that still run when an update is skipped; without count "
                 "and schedule the rate holds"),

    ENUM(numerics.param, "f32", CAUSE_DTYPE, dtype_names,
         .help = "Dtype of the stored parameters; fp8 (e4m3, e5m2) is for them and "
                 "numerics.gradient alone, and has no scale"),
    ENUM(numerics.compute, "f32", CAUSE_DTYPE, dtype_names,
         .help = "Dtype of activations and their gradients"),
    ENUM(numerics.accumulate, "auto", CAUSE_DTYPE, wide_names, .word = "auto",
         .help = "Dtype in which sums are kept; auto is f64 for f64 compute, else f32"),
    ENUM(numerics.gradient, "auto", CAUSE_DTYPE, dtype_names, .word = "auto",
         .help = "Dtype of the stored gradients; auto is numerics.param, or numerics.compute where "
                 "that is fp8"),
    ENUM(numerics.optimizer, "auto", CAUSE_DTYPE, dtype_names, .word = "auto",
         .help = "Dtype of the optimizer's slots; auto is numerics.master, or numerics.param "
                 "without masters, or f32 where that is fp8"),
    ENUM(numerics.master, "none", CAUSE_DTYPE, wide_names, .word = "none",
         .help = "Dtype of master weights, wider than numerics.param; none updates the parameters "
                 "themselves"),
    ENUM(numerics.rope, "f32", CAUSE_DTYPE, dtype_names,
         .help = "Dtype of the rotary table and its frequencies; f64 acts as f32 where "
                 "numerics.compute is not f64"),
    ENUM(numerics.loss, "auto", CAUSE_DTYPE, dtype_names, .word = "auto",
         .help = "Dtype of log-probabilities and loss coefficients; auto is f64 for f64 compute, "
                 "else f32; f64 acts as f32 where numerics.accumulate is f32"),
    ENUM(numerics.product, "compute", CAUSE_DTYPE, dtype_names, .word = "compute",
         .help = "Dtype that operands of matrix products are rounded to on their way in: "
                 "numerics.compute; tf32 under f32 compute is torch's allow_tf32"),
    ENUM(numerics.softmax, "compute", CAUSE_DTYPE, dtype_names, .word = "compute",
         .help = "Dtype of attention's scores and probabilities: numerics.compute (eager "
                 "attention); f32 under bf16 compute keeps them wide, as fused attention does"),
    ENUM(numerics.rounding, "nearest", CAUSE_DTYPE, NAMES("nearest", "stochastic"),
         .help = "How updated parameters below f32 without masters are rounded: to nearest after "
                 "every operation, or once, up or down by a draw, from an update made in f32"),
    ENUM(numerics.grad_accumulate, "wide", CAUSE_DTYPE, NAMES("wide", "storage"),
         .help = "Gradients over micro-batches kept in the accumulation dtype (wide), or rounded "
                 "to the stored one after each"),
    ENUM(numerics.mode, "invariant", CAUSE_NONDETERMINISM,
         NAMES("invariant", "shuffled", "shaped", "deterministic", "fast", "atomic", "order-free"),
         .help = "What the kernels promise about the order of sums (docs/DETERMINISM.md)"),
    UINT(numerics.order_seed, "", "free", CAUSE_NONDETERMINISM, UINT_ALL, .word = "free",
         .help = "Seed of the order of sums in shuffled; free draws one for each run"),
    UINT(numerics.threads, "threads", "1", CAUSE_NONDETERMINISM, .low = 1, .high = 1024,
         .help = "Threads of the kernels"),
    ENUM(numerics.isa, "auto", CAUSE_NONDETERMINISM, NAMES("auto", "base", "v3", "v4", "v4-bf16"),
         .help = "Instruction set of the kernels; auto is the widest of the machine. v4-bf16 is v4 "
                 "whose products of bf16 numbers go by vdpbf16ps, which auto does on AMD's "
                 "processors"),
    ENUM(numerics.library, "auto", CAUSE_NONDETERMINISM,
         NAMES("auto", "none", "openblas", "cublas"),
         .help = "Linear layers in mode fast: on the CPU through OpenBLAS where it is installed "
                 "(auto), never, or surely; on numerics.backend cuda, also in mode deterministic, "
                 "through cuBLAS (auto, cublas) or never"),
    ENUM(numerics.backend, "cpu", CAUSE_NONDETERMINISM, NAMES("cpu", "cuda"),
         .help = "Who runs the ops: this program, or a module with a device (docs/CUDA.md), whose "
                 "bits are the same in mode invariant"),
    TEXT(numerics.backend_module, "auto", CAUSE_NONDETERMINISM,
         .help = "File of the module behind numerics.backend; auto is twinstep_cuda.so beside the "
                 "program"),
    ENUM(numerics.determinism.workspace, "auto", CAUSE_NONDETERMINISM, NAMES("pinned", "default"),
         .word = "auto",
         .help = "Workspace of the device's library: one of fixed size and place (pinned), or its "
                 "own; auto is default in mode fast, else pinned"),
    ENUM(numerics.determinism.order, "auto", CAUSE_NONDETERMINISM, NAMES("fixed", "free"),
         .word = "auto",
         .help = "Products of the device's library: one after another on one stream (fixed), or "
                 "parts of one on several at once (free); auto is fixed"),
    ENUM(numerics.determinism.atomics, "auto", CAUSE_NONDETERMINISM, allowed_names, .word = "auto",
         .help = "Whether a device adds with atomics: gradients of queries (dQ), and its library "
                 "where it likes; auto is on in mode fast, else off"),
    ENUM(numerics.determinism.split_k, "auto", CAUSE_NONDETERMINISM, allowed_names, .word = "auto",
         .help = "Whether the device's library may deal the terms of a sum to several workers, "
                 "which repeats its bits; auto is on in modes fast and deterministic, else off"),
    ENUM(numerics.determinism.fill, "auto", CAUSE_NONDETERMINISM, NAMES("none", "nan", "torch"),
         .word = "auto",
         .help = "What activations and scratch hold before each forward: what was there; NaN; or "
                 "NaN where torch.utils.deterministic.fill_uninitialized_memory puts it, in what "
                 "embedding and attention write; auto is torch in mode deterministic of "
                 "numerics.backend cuda, else none"),
    ENUM(numerics.backward.norm, "fused", CAUSE_BACKWARD,
         NAMES("fused", "autograd", "memory-efficient"),
         .help = "Formula of RMSNorm's gradient, with equal forwards: one kernel (torch's "
                 "_fused_rms_norm, Apex), autograd through pow, mean, rsqrt and mul "
                 "(transformers' modules), or from the rounded output (Apex, "
                 "memory_efficient=True)"),
    ENUM(numerics.backward.attention, "softmax", CAUSE_BACKWARD, NAMES("softmax", "flash"),
         .help = "Formula of attention's gradient, with equal forwards: probabilities e / sum and "
                 "the sum of P dP over keys (eager), or exp(score - logsumexp) and dout . out "
                 "(FlashAttention-2)"),
    ENUM(numerics.backward.cross_entropy, "fused", CAUSE_BACKWARD, NAMES("fused", "two-step"),
         .help = "Formula of the logits' gradient, with equal forwards: from e / sum "
                 "(Liger, Megatron), or from the exponential of the rounded log-probability "
                 "(log_softmax, then nll_loss)"),
    UINT(
        numerics.shards, "1", "1", CAUSE_PARALLELISM, .low = 1, .high = 256,
        .help =
            "Shards of an update, a power of two: each sum over tokens that makes a gradient "
            "is one chain per shard, and a balanced tree joins them, so with a divisor that counts "
            "neither ranks nor micro-batches the bits do not depend on parallel.ranks"),
    UINT(numerics.cuts, "1", "1", CAUSE_PARALLELISM, .low = 1, .high = 8,
         .help =
             "Parts, a power of two, of each sum that tensor parallelism would split over heads, "
             "the MLP's width or the vocabulary: a sum for each part, joined by a balanced "
             "tree, so what tensor parallelism alone would change (docs/RANKS.md)"),

    REAL(dropout.embedding, "1", "0", CAUSE_RNG, .high = BELOW_ONE,
         .help = "Probability that an element of the embedding's output is dropped"),
    REAL(dropout.attention, "1", "0", CAUSE_RNG, .high = BELOW_ONE,
         .help = "Probability that an attention weight is dropped"),
    REAL(dropout.residual, "1", "0", CAUSE_RNG, .high = BELOW_ONE,
         .help = "Probability that an element of a branch is dropped before it joins the residual "
                 "stream"),
    UINT(dropout.seed, "", "auto", CAUSE_RNG, UINT_ALL, .word = "auto",
         .help = "Seed of the masks; auto is seed"),
    UINT(dropout.ranks, "1", "1", CAUSE_RNG, .low = 1, .high = 256,
         .help = "Data-parallel ranks whose seeding is imitated: each draws for its share of "
                 "batch.size"),
    ENUM(dropout.masks, "own", CAUSE_RNG, NAMES("own", "same"),
         .help = "Whether each of dropout.ranks draws masks of its own, or all draw the same ones"),
    ENUM(dropout.recompute, "preserve", CAUSE_RNG, NAMES("preserve", "redraw"),
         .help = "Masks of layers recomputed for their backward (activation checkpointing): those "
                 "of the forward, or drawn anew"),

    ENUM(rng.kind, "addressed", CAUSE_RNG, NAMES("addressed", "torch"),
         .help = "Numbers that dropout draws: by address, or as PyTorch's CUDA generator deals "
                 "them out"),
    UINT(rng.sms, "1", "108", CAUSE_RNG, .low = 1, .high = 1024,
         .help = "Multiprocessors of the imitated GPU (T4 40, L4 58, A100 108, H100 SXM 132)"),
    UINT(rng.threads_per_sm, "threads", "2048", CAUSE_RNG, .low = 256, .high = 65536,
         .help = "Resident threads of a multiprocessor of the imitated GPU (T4 1024, L4 1536)"),
    UINT(rng.vector, "elements", "auto", CAUSE_RNG, .low = 1, .high = 8, .word = "auto",
         .help = "Consecutive elements that a thread draws for: 1, 2, 4 or 8; auto is the largest "
                 "divisor of the tensor up to 4"),
    TEXT(rng.data, "none", CAUSE_DATA_ORDER,
         .help =
             "What happens to the stream of batches, each before the update that it names: advance "
             "N at K (skip N updates' worth), save A at K, load A at K, seed S at K (another seed; "
             "the clock, which counts the updates that were drawn for, goes on), seed S clock C at "
             "K (from that clock on: 0 begins anew, as seeding does), take ARM at K (go on from "
             "where the other arm's stream is); joined by commas"),
    TEXT(rng.dropout, "none", CAUSE_RNG,
         .help =
             "What happens to the stream of dropout masks, as in rng.data; under rng.kind torch N "
             "and C are words of the generator's offset, and seed S starts at offset 0"),
    TEXT(rng.rounding, "none", CAUSE_RNG,
         .help = "What happens to the stream of stochastic rounding, as in rng.data"),
    TEXT(rng.order, "none", CAUSE_NONDETERMINISM,
         .help = "What happens to the stream of orders of sums in shuffled, as in rng.data"),

    UINT(resume.after, "updates", "0", CAUSE_RESUME, UINT_ALL,
         .help =
             "The job stops after this update and restarts from its checkpoint; 0: it never stops"),
    LIST(resume.restores, "[schedule, optimizer, data, rng, scaler]", CAUSE_RESUME,
         NAMES("schedule", "optimizer", "data", "rng", "scaler"),
         .help = "What the restart takes from the checkpoint beside the weights; the rest is as at "
                 "step 0: counter and learning rate, moments and their step count, place in the "
                 "data, random streams, loss scale"),
    LIST(resume.wrong, "[]", CAUSE_RESUME,
         NAMES("peak-overwritten", "counter-doubled", "masters-bf16", "batch-peeked",
               "epoch-shifted", "skip-every-epoch", "rng-before-skip", "shards-by-index",
               "decay-late", "padded-offsets"),
         .help = "What the restart gets wrong of what it restores: takes the checkpoint's learning "
                 "rate for the peak; adds the counter to itself; holds masters in bf16; reads one "
                 "batch ahead; counts the epoch on by one; skips the batches that the epoch of the "
                 "checkpoint had behind it in every later epoch, too; restores the streams of "
                 "dropout and rounding before it skips these, each of which draws once; lets each "
                 "rank read the optimizer's shard of its own index, although resume.ranks ranks "
                 "wrote them; decays by resume.weight_decay in its first update; reads moments and "
                 "masters at offsets that count what fills up Megatron's buckets, out of numbers "
                 "without it"),
    UINT(resume.ranks, "1", "auto", CAUSE_RESUME, .low = 1, .high = 256, .word = "auto",
         .help = "Ranks that wrote the checkpoint's shards of moments and masters, for "
                 "resume.wrong shards-by-index and padded-offsets; auto is parallel.ranks, those "
                 "that read them"),
    UINT(resume.bucket, "elements", "40000000", CAUSE_RESUME, .low = 1, .high = 0x1p48,
         .help = "Elements at which a bucket of Megatron's buffer is full, for resume.wrong "
                 "padded-offsets (--ddp-bucket-size)"),
    REAL(resume.weight_decay, "1", "auto", CAUSE_RESUME, .high = 1e6, .word = "auto",
         .help = "Weight decay that the job is restarted with, for resume.wrong decay-late; the "
                 "checkpoint's, optimizer.weight_decay, holds from the second update on; auto is "
                 "the checkpoint's"),

    UINT(fault.update, "updates", "0", CAUSE_CORRUPTION, UINT_ALL,
         .help = "Update in which one bit flips (docs/CORRUPTION.md); 0: none does"),
    ENUM(fault.phase, "forward", CAUSE_CORRUPTION,
         NAMES("before-the-update", "forward", "backward", "unscale", "clip", "optimize"),
         .help = "Where in the update: behind the op of this phase that writes the tensor, or "
                 "before the first phase"),
    UINT(fault.micro, "1", "1", CAUSE_CORRUPTION, .low = 1, .high = 4294967294,
         .help = "Micro-batch of the update, from 1, where the op runs in each"),
    UINT(fault.layer, "1", "none", CAUSE_CORRUPTION, .high = 509, .word = "none",
         .help = "Layer of the op, from 0; none for ops outside layers and for tensors that are "
                 "named in full"),
    TEXT(fault.op, CONFIG_NO_OP, CAUSE_CORRUPTION,
         .help = "Op as bisect prints it (q_proj, attention, log_softmax), or the full name of a "
                 "parameter; a wrong one is answered with those that there are"),
    TEXT(fault.tensor, "output", CAUSE_CORRUPTION,
         .help = "What the op wrote, as bisect prints it (output, dQ, weight gradient), or a kind "
                 "of stored tensor (parameter, master, exp_avg, gradient)"),
    UINT(fault.element, "1", "0", CAUSE_CORRUPTION, UINT_ALL,
         .help = "Element of the tensor, from 0, row-major; of an activation without padding, "
                 "sample after sample of the micro-batch, chosen before rejected"),
    UINT(fault.bit, "1", "0", CAUSE_CORRUPTION, .high = 63,
         .help = "Bit of the number as it is stored, from 0, the lowest of the mantissa; the "
                 "highest (15 of bf16, 31 of f32) is the sign"),

    ENUM(scaler.kind, "none", CAUSE_DTYPE, NAMES("none", "static", "dynamic"),
         .help = "Loss scale: none, held at scaler.init_scale, or grown and backed off as "
                 "torch.amp.GradScaler does"),
    REAL(scaler.init_scale, "1", "65536", CAUSE_DTYPE, .low = 1e-30, .high = 3e38,
         .help = "First loss scale"),
    REAL(scaler.growth_factor, "1", "2", CAUSE_DTYPE, .low = 1, .high = 1e6,
         .help =
             "Factor on the scale after scaler.growth_interval updates in a row without overflow"),
    REAL(scaler.backoff_factor, "1", "0.5", CAUSE_DTYPE, .low = 1e-6, .high = 1,
         .help = "Factor on the scale when a gradient overflowed"),
    UINT(scaler.growth_interval, "updates", "2000", CAUSE_DTYPE, .low = 1, .high = 1e9,
         .help = "Updates in a row without overflow after which the scale grows"),
    UINT(scaler.hysteresis, "updates", "1", CAUSE_DTYPE, .low = 1, .high = 1e9,
         .help = "Overflows before the scale is backed off, counted anew when it grows (Megatron: "
                 "2); 1 is torch"),
    REAL(scaler.min_scale, "1", "0", CAUSE_DTYPE, .high = 1e38,
         .help = "Scale that is not backed off further (Megatron, DeepSpeed: 1); 0 is torch"),

    LIST(shuffle.kinds, "[weight, dq, embedding, norm]", CAUSE_NONDETERMINISM, kind_names,
         .help = "Kinds of sum whose order is drawn in shuffled"),
    UINT(shuffle.chunk, "terms", "16", CAUSE_NONDETERMINISM, .low = 1, .high = 1048576,
         .help = "Consecutive terms of one partial sum in shuffled"),

    LIST(atomic.kinds, "[weight, dq, embedding, norm]", CAUSE_NONDETERMINISM, kind_names,
         .help = "Kinds of sum that threads race on in mode atomic: forward, weight, dq, "
                 "embedding, norm, loss"),
    UINT(
        atomic.chunk, "terms", "16", CAUSE_NONDETERMINISM, .low = 1, .high = 1048576,
        .help =
            "Consecutive terms that one thread sums before it adds them to a sum that is raced on"),

    TEXT(shaped.table, "builtin:small-batch", CAUSE_NONDETERMINISM,
         .help = "Parts into which sums are cut in mode shaped, by op and shape: "
                 "builtin:small-batch, builtin:large-batch, or rows such as weight m<=512 k>=256: "
                 "4; attention k>=64: 2; *: 1"),

    UINT(parallel.ranks, "1", "1", CAUSE_PARALLELISM, .low = 1, .high = 256,
         .help =
             "Data-parallel ranks, simulated in one process or, with run --ranks mpi, a process "
             "each; each has micro-batches of its own; phase reduce, the first of loop.update, "
             "joins what they have: sums of "
             "shards (at most numerics.shards ranks, or any number of one shard, whose chain each "
             "goes on with), or in modes shaped and shuffled rounded gradients, as frameworks do "
             "(docs/RANKS.md)"),
    ENUM(parallel.reduce, "tree", CAUSE_PARALLELISM,
         NAMES("tree", "linear", "recursive", "ring", "ring-scatter", "halving", "gloo",
               "nccl-ring", "nccl-ring-scatter", "nccl-tree", "arrival"),
         .help =
             "Order in which an element's terms of the ranks are added in modes shaped and "
             "shuffled: a tree over ranks, that of a collective (docs/RANKS.md), or arrival, which "
             "shuffled draws; other modes join shards, by their tree"),
    ENUM(parallel.reduce_dtype, "auto", CAUSE_PARALLELISM, NAMES("f32", "bf16", "f16"),
         .word = "auto",
         .help = "Dtype on the wire, to which gradients, their scaling and each "
                 "addition are rounded in modes shaped and shuffled; auto is numerics.gradient"),
    ENUM(parallel.average, "before", CAUSE_NORMALISATION,
         NAMES("before", "divide-before", "after", "mul-then-div", "reciprocal", "split"),
         .help = "Where the mean over ranks is made in modes shaped and shuffled: each gradient "
                 "times 1/P (DDP), or divided by P; the sum divided by P (FSDP2 over Gloo); before "
                 "in update 1, then divide-before (DDP whose gradients live in buckets); times 1/P "
                 "in the dtype of the wire (FSDP2 over NCCL); by parts before and after (FSDP2 in "
                 "f16)"),
    ENUM(parallel.buckets, "rebuilt", CAUSE_PARALLELISM, NAMES("rebuilt", "once", "fsdp2"),
         .help = "Messages of gradients in modes shaped and shuffled: DDP's, one in update 1, then "
                 "laid out anew by parallel.bucket, last tensor first; those of "
                 "find_unused_parameters, which stay; or one of FSDP2 with a part for each rank"),
    UINT(parallel.bucket, "bytes", "auto", CAUSE_PARALLELISM, .low = 1, .high = 0x1p48,
         .word = "auto",
         .help = "Bytes at which a bucket of DDP is full (bucket_cap_mb); auto is 1 MiB for the "
                 "first one and 25 MiB for others"),
    UINT(parallel.chunk, "bytes", "0", CAUSE_PARALLELISM, .high = 0x1p40,
         .help = "Bytes of a chunk in NCCL's ring all-reduce, of one channel: chunkBytes of its "
                 "trace; parallel.reduce nccl-ring needs it"),
    UINT(parallel.node, "1", "1", CAUSE_PARALLELISM, .low = 1, .high = 256,
         .help =
             "Ranks of a node, a divisor of parallel.ranks; parallel.reduce nccl-tree alone reads "
             "it: NCCL's tree all-reduce of one channel, with a chain inside a node. 1 is a node "
             "for each rank; write 8 for machines of 8 GPUs"),
    ENUM(parallel.sync, "every", CAUSE_PARALLELISM, NAMES("every", "first"),
         .help = "Micro-batches of a rank whose gradients are joined over ranks; first is a bug: "
                 "those of the others stay with their rank, undivided by the number of ranks, and "
                 "replicas part"),
    ENUM(parallel.logged, "mean", CAUSE_NORMALISATION, NAMES("mean", "rank0", "sum"),
         .help = "Loss that is logged: the mean over ranks, the loss of rank 0 alone, or the sum "
                 "over ranks; each rank's loss is its share of the update's times the number of "
                 "ranks"),
    ENUM(parallel.feeds, "own", CAUSE_DATA_ORDER, NAMES("own", "same", "own-on-tensor"),
         .help = "Samples of a data-parallel rank: its own, or those of rank 0, a bug, as where a "
                 "loader is not told its rank. own-on-tensor is a bug of tensor-parallel ranks: "
                 "each has other samples, batch.size of them an update, so sums over ranks add "
                 "numbers of unlike tokens"),
    ENUM(parallel.deal, "blocks", CAUSE_DATA_ORDER, NAMES("blocks", "cyclic", "micros"),
         .help =
             "Samples of a rank: a block of the update's; or as torch's DistributedSampler "
             "deals an epoch's order, one sample to each rank in turn, or as Accelerate does, a "
             "batch of batch.micro to each rank in turn"),
    ENUM(parallel.uneven, "drop", CAUSE_DATA_ORDER, NAMES("drop", "pad"),
         .help = "Last samples of an epoch that do not give each rank one more sample (cyclic) or "
                 "batch (micros): left out; or filled up from the start of the epoch's order, so "
                 "that some count twice, which is the default of both frameworks"),
    ENUM(parallel.keeps, "all", CAUSE_PARALLELISM, NAMES("all", "last"),
         .help = "Micro-batches of a rank whose gradients are kept until ranks are joined; last is "
                 "a bug: gradients are wiped between micro-batches"),
    ENUM(parallel.race, "none", CAUSE_PARALLELISM, NAMES("none", "next-bucket"),
         .help = "What a bucket of DDP holds when it is reduced in modes shaped and shuffled: its "
                 "gradients; or, a bug, those of the bucket behind it as far as that one goes, as "
                 "where a buffer is filled anew before its reduction has read it. The last bucket "
                 "is right, so one bucket moves nothing"),
    UINT(parallel.zero, "1", "0", CAUSE_PARALLELISM, .high = 3,
         .help = "Stage of ZeRO in modes invariant, deterministic and order-free, which moves no "
                 "bit but where clip.over has a norm of a rank's part: 0, every rank has all; 1, a "
                 "rank steps a part of masters and optimizer "
                 "slots, as DeepSpeed cuts them; 2, it joins that part of the gradient alone, too; "
                 "3, it has rows of every tensor, weights too, as FSDP2 does, and a forward "
                 "gathers them"),
    UINT(parallel.tensor, "1", "1", CAUSE_PARALLELISM, .low = 1, .high = 8,
         .help =
             "Tensor-parallel ranks of each data-parallel one, a divisor of numerics.cuts: each "
             "has equally many of the parts of a sum, so their number moves no bit; "
             "parallel.scale counts them, parallel.forgets parts them, parallel.draws lets them "
             "draw, and parallel.feeds gives them other samples"),
    ENUM(parallel.scale, "none", CAUSE_NORMALISATION, NAMES("none", "world"),
         .help = "A factor on the loss that nothing takes out again; world is a bug: the mean over "
                 "data-parallel ranks is undone with the number of all ranks, so losses and "
                 "gradients are parallel.tensor times too large"),
    ENUM(parallel.forgets, "none", CAUSE_PARALLELISM,
         NAMES("none", "final-norm", "norms", "qk-norms"),
         .help = "Norm weights whose gradients tensor-parallel ranks do not sum, a bug: each rank "
                 "steps its copy by its own rows alone, and replicas part. Of the final norm, or "
                 "all norms of the residual stream (a rank has a slice of each sequence's tokens), "
                 "or of each head's q and k (a rank has heads)"),
    ENUM(parallel.draws, "whole", CAUSE_INIT, NAMES("whole", "own", "same", "same-rows"),
         .help =
             "Initial weights of tensor-parallel ranks: slices of what one process draws; or "
             "each rank draws its slices from numbers of its own, so that weights depend on "
             "parallel.tensor; or, a bug, all ranks draw the same numbers, and slices are "
             "equal. same-rows is that bug with data-parallel ranks that own rows/ranks rows of "
             "each matrix, rounded up, as FSDP2 shards it"),
    ENUM(parallel.counts, "once", CAUSE_OPTIMIZER, NAMES("once", "each"),
         .help = "How often a tensor that tensor-parallel ranks hold whole, such as a norm weight, "
                 "counts in the gradient norm: once; or on each rank, a bug, where squares are "
                 "summed over ranks as though all were slices"),
};

const struct key_row *schema_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

int schema_is_later(const struct key_row *row) {
    const int of_ranks = strncmp(row->path, "parallel.", strlen("parallel.")) == 0;
    if (of_ranks && strcmp(row->path, "parallel.ranks") != 0)
        return strcmp(row->path, "parallel.reduce") != 0;
    const int of_resume = strncmp(row->path, "resume.", strlen("resume.")) == 0;
    if (of_resume && strcmp(row->path, "resume.after") != 0)
        return strcmp(row->path, "resume.restores") != 0;
    if (strcmp(row->path, "data.epoch_seed") == 0) return 1;
    return row->cause == CAUSE_CORRUPTION || strcmp(row->path, "clip.over") == 0 ||
           strcmp(row->path, "numerics.cuts") == 0;
}

const char *phase_name(enum phase phase) {
    return schema_phase_names[phase];
}

const char *stage_name(uint32_t stage) {
    static const char *const words[PHASE_TOTAL + 3] = {
        "before the update", PHASE_NAMES, "forward of the reference", "end of the update"};
    return words[stage];
}

const char *family_name(int32_t family) {
    return family_names[family];
}
