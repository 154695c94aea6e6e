/* SPDX-License-Identifier: Apache-2.0
 * The schema: one row for every field of struct config. It is the one table of what a scenario may
 * say.
 *
 * Rows stand in the order of the documentation, grouped by section. A default is text and is read
 * by the code that reads a scenario. `auto` (and `none`, `free`) are special words;
 * scenarios/derive.c says which of them are derived from other keys, and how. Invariant: rows
 * neither overlap nor leave out a byte of struct config, except fields named `zero` and the values
 * of the two classes (a test holds it). */
#include "scenarios/scenario.h"

#include <stddef.h>

#define AT(field) offsetof(struct config, field), sizeof(((struct config *)0)->field)
#define UINT_ALL 0.0, 0x1p64
#define NO_BOUNDS 0.0, 0.0
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
static const char *const phase_names[PHASE_TOTAL + 1] = {
    "fetch",    "forward", "backward", "reduce",   "unscale", "clip",
    "optimize", "log",     "count",    "schedule", "zero",    NULL};

static const struct key_row rows[] = {
    {"task", KEY_ENUM, "", "dpo", CAUSE_OBJECTIVE,
     "What is trained: completions (sft) or preferences (dpo)", AT(task), NO_BOUNDS, NULL,
     task_names},
    {"seed", KEY_UINT, "", "17", CAUSE_RNG,
     "Seed of every random stream that has no seed of its own", AT(seed), UINT_ALL, NULL, NULL},

    {"data.pairs", KEY_TEXT, "", "builtin:quiz", CAUSE_DATA_ORDER,
     "Preference pairs of a dpo task: builtin:quiz or a JSONL file", AT(data.pairs), NO_BOUNDS,
     NULL, NULL},
    {"data.text", KEY_TEXT, "", "builtin:devil", CAUSE_DATA_ORDER,
     "Texts of an sft task: builtin:devil or a JSONL file", AT(data.text), NO_BOUNDS, NULL, NULL},
    {"data.samples", KEY_UINT, "samples", "all", CAUSE_DATA_ORDER,
     "Samples that are used, the first of the data; fewer make short epochs", AT(data.samples), 1,
     4294967294, "all", NULL},
    {"data.max_len", KEY_UINT, "tokens", "96", CAUSE_DATA_ORDER,
     "Longest sequence, prompt and completion together; the rest is cut", AT(data.max_len), 2,
     1048576, NULL, NULL},
    {"data.template", KEY_ENUM, "", "none", CAUSE_DATA_ORDER,
     "Chat template around prompts, completions and messages (docs/DATA.md); none joins prompt and "
     "completion between <bos> and <eos>",
     AT(data.chat), NO_BOUNDS, NULL, chat_names},
    {"data.shuffle", KEY_BOOL, "", "true", CAUSE_DATA_ORDER,
     "Draws a new order of the samples for each epoch; false keeps the order of the file",
     AT(data.shuffle), NO_BOUNDS, NULL, NULL},
    {"data.seed", KEY_UINT, "", "auto", CAUSE_DATA_ORDER, "Seed of the data stream; auto is seed",
     AT(data.seed), UINT_ALL, "auto", NULL},

    {"batch.size", KEY_UINT, "samples", "8", CAUSE_BATCH_SHAPE,
     "Samples (dpo: pairs) of one update", AT(batch.size), 1, 4194303, NULL, NULL},
    {"batch.micro", KEY_UINT, "samples", "auto", CAUSE_BATCH_SHAPE,
     "Samples of one micro-batch, a divisor of batch.size; auto is batch.size", AT(batch.micro), 1,
     4194303, "auto", NULL},
    {"batch.layout", KEY_ENUM, "", "separate", CAUSE_BATCH_SHAPE,
     "Whether chosen and rejected go through one forward each or share one", AT(batch.layout),
     NO_BOUNDS, NULL, layout_names},
    {"batch.padding", KEY_ENUM, "", "longest", CAUSE_BATCH_SHAPE,
     "Rows padded to the longest of the micro-batch, or packed one behind the other",
     AT(batch.padding), NO_BOUNDS, NULL, padding_names},
    {"batch.tail", KEY_ENUM, "", "drop", CAUSE_NORMALISATION,
     "Samples that do not fill an epoch's last update: dropped; kept as a smaller update; kept, "
     "but "
     "divided by the micro-batches of a full one; or their gradients leak into the next epoch's "
     "first update",
     AT(batch.tail), NO_BOUNDS, NULL, tail_names},
    {"batch.pad", KEY_UINT, "tokens", "0", CAUSE_BATCH_SHAPE,
     "Padded positions added to each sequence on top of batch.padding", AT(batch.pad), 0, 1048576,
     NULL, NULL},

    {"model.family", KEY_ENUM, "", "olmo2", CAUSE_MODEL,
     "olmo2: norm after attention and MLP, q/k norm; llama: norm before them; qwen2: llama with "
     "biases at q, k and v; qwen3: llama with a norm of each head's q and k",
     AT(model.family), NO_BOUNDS, NULL, family_names},
    {"model.from", KEY_TEXT, "", CONFIG_NO_CHECKPOINT, CAUSE_INIT,
     "Folder of a checkpoint (docs/CHECKPOINTS.md): its weights are the initial ones, its "
     "config.json sets every key of this section but norm_rounding; none: weights are drawn",
     AT(model.from), NO_BOUNDS, NULL, NULL},
    {"model.from_digest", KEY_TEXT, "", "auto", CAUSE_INIT,
     "Digest of the tensors in model.from; auto is what they have, and a digest that is written "
     "refuses other weights",
     AT(model.from_digest), NO_BOUNDS, NULL, NULL},
    {"model.layers", KEY_UINT, "1", "2", CAUSE_MODEL, "Transformer blocks", AT(model.layers), 1,
     510, NULL, NULL},
    {"model.hidden", KEY_UINT, "1", "64", CAUSE_MODEL, "Width of the residual stream",
     AT(model.hidden), 2, 262144, NULL, NULL},
    {"model.heads", KEY_UINT, "1", "4", CAUSE_MODEL, "Query heads", AT(model.heads), 1, 1024, NULL,
     NULL},
    {"model.kv_heads", KEY_UINT, "1", "auto", CAUSE_MODEL,
     "Key and value heads, a divisor of model.heads; auto is model.heads", AT(model.kv_heads), 1,
     1024, "auto", NULL},
    {"model.head_dim", KEY_UINT, "1", "auto", CAUSE_MODEL,
     "Width of one head, even; auto is model.hidden / model.heads", AT(model.head_dim), 2, 65536,
     "auto", NULL},
    {"model.mlp", KEY_UINT, "1", "172", CAUSE_MODEL, "Inner width of the SwiGLU", AT(model.mlp), 1,
     1048576, NULL, NULL},
    {"model.vocab", KEY_UINT, "tokens", "auto", CAUSE_MODEL,
     "Vocabulary; auto is 259, that of the byte tokenizer", AT(model.vocab), 2, 2147483647, "auto",
     NULL},
    {"model.tied", KEY_BOOL, "", "false", CAUSE_MODEL, "The head is the embedding matrix",
     AT(model.tied), NO_BOUNDS, NULL, NULL},
    {"model.qkv_bias", KEY_ENUM, "", "auto", CAUSE_MODEL,
     "A bias behind the projections to q, k and v; auto is true for qwen2", AT(model.qkv_bias),
     NO_BOUNDS, "auto", switch_names},
    {"model.output_bias", KEY_ENUM, "", "auto", CAUSE_MODEL,
     "A bias behind attention's output projection; auto is false", AT(model.output_bias), NO_BOUNDS,
     "auto", switch_names},
    {"model.mlp_bias", KEY_ENUM, "", "auto", CAUSE_MODEL,
     "A bias behind each projection of the MLP; auto is false", AT(model.mlp_bias), NO_BOUNDS,
     "auto", switch_names},
    {"model.norm_eps", KEY_REAL, "1", "auto", CAUSE_MODEL,
     "Added to the mean square in RMSNorm; auto is 1e-6", AT(model.norm_eps), SMALLEST, 1, "auto",
     NULL},
    {"model.rope_theta", KEY_REAL, "1", "auto", CAUSE_MODEL,
     "Base of the rotary frequencies; auto is 500000 for olmo2, 10000 for llama, 1000000 for qwen2 "
     "and qwen3",
     AT(model.rope_theta), 1, 1e12, "auto", NULL},
    {"model.rope_scaling", KEY_ENUM, "", "none", CAUSE_MODEL,
     "How rotary frequencies are stretched for longer texts, as transformers' modeling_rope_utils "
     "does",
     AT(model.rope_scaling), NO_BOUNDS, NULL, rope_scaling_names},
    {"model.rope_factor", KEY_REAL, "1", "8", CAUSE_MODEL,
     "By what low frequencies are divided (llama3, yarn)", AT(model.rope_factor), 1, 1e6, NULL,
     NULL},
    {"model.rope_original_positions", KEY_UINT, "tokens", "8192", CAUSE_MODEL,
     "Positions before the stretching (llama3, yarn)", AT(model.rope_original_positions), 1,
     1099511627776, NULL, NULL},
    {"model.rope_low_freq_factor", KEY_REAL, "1", "1", CAUSE_MODEL,
     "Of llama3: wavelengths above original positions / this are stretched fully",
     AT(model.rope_low_freq_factor), SMALLEST, 1e6, NULL, NULL},
    {"model.rope_high_freq_factor", KEY_REAL, "1", "4", CAUSE_MODEL,
     "Of llama3: wavelengths below original positions / this stay", AT(model.rope_high_freq_factor),
     SMALLEST, 1e6, NULL, NULL},
    {"model.rope_attention_factor", KEY_REAL, "1", "auto", CAUSE_MODEL,
     "Of yarn: factor on cosine and sine; auto is m(mscale) / m(mscale_all_dim), or m(1) where one "
     "is none, with m(s) = 0.1 s ln(rope_factor) + 1",
     AT(model.rope_attention_factor), SMALLEST, 1e6, "auto", NULL},
    {"model.rope_beta_fast", KEY_REAL, "1", "32", CAUSE_MODEL,
     "Of yarn: turns within the original positions above which a frequency stays",
     AT(model.rope_beta_fast), SMALLEST, 1e6, NULL, NULL},
    {"model.rope_beta_slow", KEY_REAL, "1", "1", CAUSE_MODEL,
     "Of yarn: turns below which it is stretched fully", AT(model.rope_beta_slow), SMALLEST, 1e6,
     NULL, NULL},
    {"model.rope_mscale", KEY_REAL, "1", "none", CAUSE_MODEL, "Of yarn: see rope_attention_factor",
     AT(model.rope_mscale), SMALLEST, 1e6, "none", NULL},
    {"model.rope_mscale_all_dim", KEY_REAL, "1", "none", CAUSE_MODEL,
     "Of yarn: see rope_attention_factor", AT(model.rope_mscale_all_dim), SMALLEST, 1e6, "none",
     NULL},
    {"model.rope_truncate", KEY_BOOL, "", "true", CAUSE_MODEL,
     "Of yarn: the ends of the ramp are whole numbers", AT(model.rope_truncate), NO_BOUNDS, NULL,
     NULL},
    {"model.norm_rounding", KEY_ENUM, "", "auto", CAUSE_MODEL,
     "Where RMSNorm rounds to the compute dtype; auto is after-weight for olmo2, else "
     "before-weight",
     AT(model.norm_rounding), NO_BOUNDS, "auto", norm_rounding_names},

    {"init.std", KEY_REAL, "1", "0.02", CAUSE_INIT,
     "Standard deviation of the initial weights; norm weights start at 1", AT(init.std), 0, 1e6,
     NULL, NULL},
    {"init.seed", KEY_UINT, "", "auto", CAUSE_INIT, "Seed of the initial weights; auto is seed",
     AT(init.seed), UINT_ALL, "auto", NULL},
    {"init.nudge", KEY_TEXT, "", "none", CAUSE_INIT,
     "Weight that starts one unit in the last place off, TENSOR or TENSOR[ELEMENT]: a twin that "
     "shows "
     "how rounding grows",
     AT(init.nudge), NO_BOUNDS, NULL, NULL},

    {"dpo.loss", KEY_ENUM, "", "sigmoid", CAUSE_OBJECTIVE,
     "Form of the preference loss: TRL's (ipo and sigmoid-norm of scores per token; ipo-sum as "
     "before its pull request 1265), open-instruct's dpo (cdpo), dpo_norm and simpo",
     AT(dpo.loss), NO_BOUNDS, NULL, dpo_loss_names},
    {"dpo.beta", KEY_REAL, "1", "0.1", CAUSE_OBJECTIVE,
     "Factor on the margin between policy and reference", AT(dpo.beta), 0, 1e6, NULL, NULL},
    {"dpo.label_smoothing", KEY_REAL, "1", "0", CAUSE_OBJECTIVE,
     "Share of pairs taken to be swapped, in the losses that know one: cdpo, robust, dpo-norm, "
     "simpo, exo-pair",
     AT(dpo.label_smoothing), 0, BELOW_ONE, NULL, NULL},
    {"dpo.gamma_beta_ratio", KEY_REAL, "nat", "0.3", CAUSE_OBJECTIVE,
     "Margin per token that simpo asks for, gamma / beta", AT(dpo.gamma_beta_ratio), -1e6, 1e6,
     NULL, NULL},
    {"dpo.discopop_tau", KEY_REAL, "1", "0.05", CAUSE_OBJECTIVE,
     "Temperature of discopop's blend of logistic and exponential loss", AT(dpo.discopop_tau), 1e-6,
     1e6, NULL, NULL},
    {"dpo.f_divergence", KEY_ENUM, "", "reverse-kl", CAUSE_OBJECTIVE,
     "Divergence whose derivative scores a side: TRL's f_divergence_type", AT(dpo.f_divergence),
     NO_BOUNDS, NULL, divergence_names},
    {"dpo.f_alpha", KEY_REAL, "1", "0.5", CAUSE_OBJECTIVE,
     "Order of the alpha divergence; 1 is reverse-kl", AT(dpo.f_alpha), -1e3, 1e3, NULL, NULL},
    {"dpo.reference", KEY_ENUM, "", "cached", CAUSE_REFERENCE,
     "Reference log-probabilities from one pass before training, live at each micro-batch, or "
     "given "
     "by the rows of data.pairs (ref_chosen_logps, ref_rejected_logps)",
     AT(dpo.reference), NO_BOUNDS, NULL, reference_names},
    {"dpo.reference_batch", KEY_UINT, "samples", "auto", CAUSE_REFERENCE,
     "Pairs of one forward of the cached pass; auto is batch.micro", AT(dpo.reference_batch), 1,
     4194303, "auto", NULL},
    {"dpo.reference_compute", KEY_ENUM, "", "auto", CAUSE_REFERENCE,
     "Compute dtype of the reference; auto is numerics.compute", AT(dpo.reference_compute),
     NO_BOUNDS, "auto", dtype_names},
    {"dpo.reference_layout", KEY_ENUM, "", "auto", CAUSE_REFERENCE,
     "Layout of the reference's forward; auto is batch.layout", AT(dpo.reference_layout), NO_BOUNDS,
     "auto", layout_names},

    {"loss.divisor", KEY_ENUM, "", "update", CAUSE_NORMALISATION,
     "By what losses are divided: label tokens (sft) or pairs (dpo) of the update (transformers 5, "
     "torchtitan, torchtune); each micro-batch by its own, then by their number (transformers "
     "below 4.46, Accelerate, TRL's DPO); by its own only; by the update's and then by the number "
     "of micro-batches; each rank by its own, then by their number (OLMo-core); the update's with "
     "first tokens that are labelled (transformers from 4.46 to 4.x); each micro-batch by its own, "
     "then by batch.micro (VeOmni's DiT before its pull request 963); means of micro-batches "
     "weighted by their tokens, metrics too (open-instruct's dpo.py)",
     AT(loss.divisor), NO_BOUNDS, NULL, divisor_names},
    {"loss.ranks", KEY_UINT, "1", "1", CAUSE_NORMALISATION,
     "Data-parallel ranks of mean-of-ranks, a divisor of batch.size: each has its share of the "
     "samples",
     AT(loss.ranks), 1, 1024, NULL, NULL},
    {"loss.logged", KEY_ENUM, "", "divided", CAUSE_NORMALISATION,
     "The loss that is logged: what backward gets, summed over the update (transformers); or the "
     "mean over label tokens or pairs whatever backward divides by (Megatron)",
     AT(loss.logged), NO_BOUNDS, NULL, logged_loss_names},

    {"optimizer.name", KEY_TEXT, "", "adamw", CAUSE_OPTIMIZER,
     "Algorithm; its own keys are listed under its name", AT(optimizer.which.name), NO_BOUNDS, NULL,
     NULL},
    {"optimizer.module", KEY_TEXT, "", CONFIG_NO_MODULE, CAUSE_OPTIMIZER,
     "Shared object that holds the optimizer (docs/PLUGINS.md); none: it is one of those built in",
     AT(optimizer.which.module), NO_BOUNDS, NULL, NULL},
    {"optimizer.module_sha256", KEY_TEXT, "", "auto", CAUSE_OPTIMIZER,
     "SHA-256 of that file; auto is what it has, and a digest that is written refuses another file",
     AT(optimizer.which.module_sha256), NO_BOUNDS, NULL, NULL},
    {"optimizer.lr", KEY_REAL, "1", "1e-6", CAUSE_SCHEDULE, "Base (peak) learning rate",
     AT(optimizer.lr), 0, 1e6, NULL, NULL},
    {"optimizer.weight_decay", KEY_REAL, "1", "0", CAUSE_OPTIMIZER,
     "Weight decay coefficient of the decayed group", AT(optimizer.weight_decay), 0, 1e6, NULL,
     NULL},
    {"optimizer.decay", KEY_ENUM, "", "all", CAUSE_OPTIMIZER,
     "Tensors that are decayed: all; matrices (no vectors); hf: none whose name says bias or norm "
     "(Trainer.get_decay_parameter_names); olmo-core: all but the embeddings; named: all but those "
     "of optimizer.no_decay",
     AT(optimizer.decay), NO_BOUNDS, NULL, decay_names},
    {"optimizer.no_decay", KEY_TEXT, "", "norm", CAUSE_OPTIMIZER,
     "For optimizer.decay named: words parted by spaces or commas; a tensor whose name contains "
     "one is not decayed",
     AT(optimizer.no_decay), NO_BOUNDS, NULL, NULL},

    {"clip.max_norm", KEY_REAL, "1", "1", CAUSE_OPTIMIZER,
     "Global gradient norm above which gradients are scaled down; 0 switches clipping off",
     AT(clip.max_norm), 0, 1e12, NULL, NULL},
    {"clip.eps", KEY_REAL, "1", "1e-6", CAUSE_OPTIMIZER,
     "Added to the norm before clip.max_norm is divided by it; llm.c adds 0", AT(clip.eps), 0, 1e6,
     NULL, NULL},
    {"clip.norm", KEY_ENUM, "", "squares", CAUSE_OPTIMIZER,
     "How tensors join: their sums of squares (squares), their norms, rounded, squared again "
     "(norms: torch), or as one long vector (flat: Megatron, llm.c)",
     AT(clip.norm), NO_BOUNDS, NULL, clip_norm_names},
    {"clip.dtype", KEY_ENUM, "", "f64", CAUSE_OPTIMIZER,
     "Dtype of norms: f64, or f32 with sums in f32, both with a coefficient of host numbers "
     "rounded "
     "to f32; or the gradients', for norms and coefficient (torch: bf16 norms of bf16 gradients)",
     AT(clip.dtype), NO_BOUNDS, NULL, clip_dtype_names},
    {"clip.form", KEY_ENUM, "", "quotient", CAUSE_OPTIMIZER,
     "min(1, max_norm / (norm + eps)), or its reciprocal's reciprocal: 1 / ((norm + eps) / "
     "max_norm) where that is above 1 (DeepSpeed ZeRO)",
     AT(clip.form), NO_BOUNDS, NULL, clip_form_names},
    {"clip.apply", KEY_ENUM, "", "always", CAUSE_OPTIMIZER,
     "Gradients are multiplied always (torch), only by a coefficient below 1 (above: Megatron, "
     "NeMo-RL, llm.c; a NaN norm then changes nothing), or only a copy of them is (NeMo-RL #1158)",
     AT(clip.apply), NO_BOUNDS, NULL, clip_apply_names},
    {"clip.replicas", KEY_UINT, "1", "1", CAUSE_OPTIMIZER,
     "Times that each gradient is counted in the norm; above 1 as when shards are summed over the "
     "replicas too (VeOmni #862)",
     AT(clip.replicas), 1, 1048576, NULL, NULL},

    {"schedule.name", KEY_TEXT, "", "linear", CAUSE_SCHEDULE,
     "Shape of the learning rate; its own keys are listed under its name", AT(schedule.which.name),
     NO_BOUNDS, NULL, NULL},
    {"schedule.module", KEY_TEXT, "", CONFIG_NO_MODULE, CAUSE_SCHEDULE,
     "Shared object that holds the schedule (docs/PLUGINS.md); none: it is one of those built in",
     AT(schedule.which.module), NO_BOUNDS, NULL, NULL},
    {"schedule.module_sha256", KEY_TEXT, "", "auto", CAUSE_SCHEDULE,
     "SHA-256 of that file; auto is what it has, and a digest that is written refuses another file",
     AT(schedule.which.module_sha256), NO_BOUNDS, NULL, NULL},
    {"schedule.contract", KEY_TEXT, "", CONFIG_NO_CONTRACT, CAUSE_SCHEDULE,
     "Framework whose loop this is: the loop and the keys that its table lists follow from it, "
     "names of schedules are its own, warm-up and total are in updates; none: the loop is written",
     AT(schedule.contract), NO_BOUNDS, NULL, NULL},
    {"schedule.processes", KEY_UINT, "1", "1", CAUSE_SCHEDULE,
     "Data-parallel processes as a contract counts them; they act on the schedule alone",
     AT(schedule.processes), 1, 1e6, NULL, NULL},
    {"schedule.rescaled", KEY_ENUM, "", "contract", CAUSE_SCHEDULE,
     "What the script turned from updates into units of the counter: what the contract does in "
     "correct use (or in its bug), nothing, only the total, only the warm-up",
     AT(schedule.rescaled), NO_BOUNDS, NULL, rescaled_names},
    {"schedule.updates_per_epoch", KEY_UINT, "updates", "0", CAUSE_SCHEDULE,
     "Updates of one epoch, for a contract whose schedule moves once per epoch; 0: not given",
     AT(schedule.updates_per_epoch), 0, 0x1p53, NULL, NULL},
    {"schedule.warmup", KEY_REAL, "counter", "0", CAUSE_SCHEDULE,
     "Length of the warm-up, in units of the counter", AT(schedule.warmup), 0, 1e15, NULL, NULL},
    {"schedule.warmup_ratio", KEY_REAL, "1", "none", CAUSE_SCHEDULE,
     "Warm-up as a share of schedule.total, instead of schedule.warmup", AT(schedule.warmup_ratio),
     0, 1, "none", NULL},
    {"schedule.warmup_rounding", KEY_ENUM, "", "ceil", CAUSE_SCHEDULE,
     "How schedule.warmup_ratio * schedule.total becomes a whole number; none: it stays as it is",
     AT(schedule.warmup_rounding), NO_BOUNDS, NULL, rounding_names},
    {"schedule.total", KEY_UINT, "counter", "auto", CAUSE_SCHEDULE,
     "Length of the schedule, in units of the counter; auto is steps", AT(schedule.total), 1,
     0x1p53, "auto", NULL},
    {"schedule.start", KEY_ENUM, "", "f0", CAUSE_SCHEDULE,
     "Learning rate before the first schedule phase: the schedule at its origin, the peak, zero, "
     "or "
     "the minimum",
     AT(schedule.start), NO_BOUNDS, NULL, start_names},
    {"schedule.origin", KEY_UINT, "counter", "0", CAUSE_SCHEDULE,
     "Counter c0 at which the schedule starts", AT(schedule.origin), 0, 0x1p53, NULL, NULL},
    {"schedule.increment", KEY_UINT, "counter/update", "1", CAUSE_SCHEDULE,
     "Counter units inc that one update is worth", AT(schedule.increment), 0, 0x1p53, NULL, NULL},
    {"schedule.shift", KEY_INT, "counter", "0", CAUSE_SCHEDULE,
     "Offset d: the schedule phase sets f(origin + increment * n + shift)", AT(schedule.shift),
     -0x1p53, 0x1p53, NULL, NULL},
    {"schedule.logged", KEY_ENUM, "", "current", CAUSE_SCHEDULE,
     "What the log phase prints: the rate in force, or the schedule computed again",
     AT(schedule.logged), NO_BOUNDS, NULL, logged_names},
    {"schedule.logged_shift", KEY_INT, "counter", "0", CAUSE_SCHEDULE,
     "Offset of a recomputed logged rate", AT(schedule.logged_shift), -0x1p53, 0x1p53, NULL, NULL},

    {"loop.micro", KEY_LIST, "", "[fetch, forward, backward]", CAUSE_SCHEDULE,
     "Phases of each micro-batch, in order", AT(loop.micro), NO_BOUNDS, NULL, phase_names},
    {"loop.update", KEY_LIST, "", "[clip, optimize, log, count, schedule, zero]", CAUSE_SCHEDULE,
     "Phases of each update after its micro-batches, in order", AT(loop.update), NO_BOUNDS, NULL,
     phase_names},
    {"loop.epoch", KEY_LIST, "", "[]", CAUSE_SCHEDULE, "Phases at the end of each epoch",
     AT(loop.epoch), NO_BOUNDS, NULL, phase_names},
    {"loop.eval", KEY_LIST, "", "[]", CAUSE_SCHEDULE, "Phases of an evaluation", AT(loop.eval),
     NO_BOUNDS, NULL, phase_names},
    {"loop.eval_every", KEY_UINT, "updates", "0", CAUSE_SCHEDULE,
     "Updates between two evaluations; 0 is never", AT(loop.eval_every), 0, 1e9, NULL, NULL},
    {"loop.skip", KEY_ENUM, "", "none", CAUSE_SCHEDULE,
     "Which updates are skipped: none; those with a gradient that is not finite; or those whose "
     "loss "
     "or gradient norm is an outlier, as OLMo-core's SkipStep optimizers judge",
     AT(loop.skip), NO_BOUNDS, NULL, skip_names},
    {"loop.skip_window", KEY_UINT, "updates", "128", CAUSE_SCHEDULE,
     "Updates before it that olmo-outlier compares an update with; it judges from half of them on, "
     "and a restart forgets them",
     AT(loop.skip_window), 2, 1048576, NULL, NULL},
    {"loop.skip_sigma", KEY_REAL, "1", "6", CAUSE_SCHEDULE,
     "Standard deviations above the mean that olmo-outlier tolerates", AT(loop.skip_sigma), 0, 1e6,
     NULL, NULL},
    {"loop.on_skip", KEY_LIST, "", "[log, zero]", CAUSE_SCHEDULE,
     "Phases of loop.update that still run when an update is skipped; without count and schedule "
     "the "
     "rate holds",
     AT(loop.on_skip), NO_BOUNDS, NULL, phase_names},

    {"numerics.param", KEY_ENUM, "", "f32", CAUSE_DTYPE,
     "Dtype of the stored parameters; fp8 (e4m3, e5m2) is for them and numerics.gradient alone, "
     "and has no scale",
     AT(numerics.param), NO_BOUNDS, NULL, dtype_names},
    {"numerics.compute", KEY_ENUM, "", "f32", CAUSE_DTYPE,
     "Dtype of activations and their gradients", AT(numerics.compute), NO_BOUNDS, NULL,
     dtype_names},
    {"numerics.accumulate", KEY_ENUM, "", "auto", CAUSE_DTYPE,
     "Dtype in which sums are kept; auto is f64 for f64 compute, else f32", AT(numerics.accumulate),
     NO_BOUNDS, "auto", wide_names},
    {"numerics.gradient", KEY_ENUM, "", "auto", CAUSE_DTYPE,
     "Dtype of the stored gradients; auto is numerics.param, or numerics.compute where that is fp8",
     AT(numerics.gradient), NO_BOUNDS, "auto", dtype_names},
    {"numerics.optimizer", KEY_ENUM, "", "auto", CAUSE_DTYPE,
     "Dtype of the optimizer's slots; auto is numerics.master, or numerics.param without masters, "
     "or "
     "f32 where that is fp8",
     AT(numerics.optimizer), NO_BOUNDS, "auto", dtype_names},
    {"numerics.master", KEY_ENUM, "", "none", CAUSE_DTYPE,
     "Dtype of master weights, wider than numerics.param; none updates the parameters themselves",
     AT(numerics.master), NO_BOUNDS, "none", wide_names},
    {"numerics.rope", KEY_ENUM, "", "f32", CAUSE_DTYPE,
     "Dtype of the rotary table and its frequencies", AT(numerics.rope), NO_BOUNDS, NULL,
     dtype_names},
    {"numerics.loss", KEY_ENUM, "", "auto", CAUSE_DTYPE,
     "Dtype of log-probabilities and loss coefficients; auto is f64 for f64 compute, else f32",
     AT(numerics.loss), NO_BOUNDS, "auto", dtype_names},
    {"numerics.product", KEY_ENUM, "", "compute", CAUSE_DTYPE,
     "Dtype that operands of matrix products are rounded to on their way in: numerics.compute; "
     "tf32 "
     "under f32 compute is torch's allow_tf32",
     AT(numerics.product), NO_BOUNDS, "compute", dtype_names},
    {"numerics.softmax", KEY_ENUM, "", "compute", CAUSE_DTYPE,
     "Dtype of attention's scores and probabilities: numerics.compute (eager attention); f32 under "
     "bf16 compute keeps them wide, as fused attention does",
     AT(numerics.softmax), NO_BOUNDS, "compute", dtype_names},
    {"numerics.rounding", KEY_ENUM, "", "nearest", CAUSE_DTYPE,
     "How updated parameters below f32 without masters are rounded: to nearest after every "
     "operation, or once, up or down by a draw, from an update made in f32",
     AT(numerics.rounding), NO_BOUNDS, NULL, param_rounding_names},
    {"numerics.grad_accumulate", KEY_ENUM, "", "wide", CAUSE_DTYPE,
     "Gradients over micro-batches kept in the accumulation dtype (wide), or rounded to the stored "
     "one after each",
     AT(numerics.grad_accumulate), NO_BOUNDS, NULL, grad_accumulate_names},
    {"numerics.mode", KEY_ENUM, "", "invariant", CAUSE_NONDETERMINISM,
     "What the kernels promise about the order of sums (docs/DETERMINISM.md)", AT(numerics.mode),
     NO_BOUNDS, NULL, mode_names},
    {"numerics.order_seed", KEY_UINT, "", "free", CAUSE_NONDETERMINISM,
     "Seed of the order of sums in shuffled; free draws one for each run", AT(numerics.order_seed),
     UINT_ALL, "free", NULL},
    {"numerics.threads", KEY_UINT, "threads", "1", CAUSE_NONDETERMINISM, "Threads of the kernels",
     AT(numerics.threads), 1, 1024, NULL, NULL},
    {"numerics.isa", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Instruction set of the kernels; auto is the widest of the machine", AT(numerics.isa),
     NO_BOUNDS, NULL, isa_names},
    {"numerics.library", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Linear layers in mode fast: on the CPU through OpenBLAS where it is installed (auto), never, "
     "or surely; on numerics.backend cuda, also in mode deterministic, through cuBLAS (auto, "
     "cublas) or never",
     AT(numerics.library), NO_BOUNDS, NULL, library_names},
    {"numerics.backend", KEY_ENUM, "", "cpu", CAUSE_NONDETERMINISM,
     "Who runs the ops: this program, or a module with a device (docs/CUDA.md), whose bits are the "
     "same in mode invariant",
     AT(numerics.backend), NO_BOUNDS, NULL, backend_names},
    {"numerics.backend_module", KEY_TEXT, "", "auto", CAUSE_NONDETERMINISM,
     "File of the module behind numerics.backend; auto is twinstep_cuda.so beside the program",
     AT(numerics.backend_module), NO_BOUNDS, NULL, NULL},
    {"numerics.determinism.workspace", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Workspace of the device's library: one of fixed size and place (pinned), or its own; auto is "
     "default in mode fast, else pinned",
     AT(numerics.determinism.workspace), NO_BOUNDS, "auto", workspace_names},
    {"numerics.determinism.order", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Products of the device's library: one after another on one stream (fixed), or parts of one "
     "on several at once (free); auto is fixed",
     AT(numerics.determinism.order), NO_BOUNDS, "auto", order_names},
    {"numerics.determinism.atomics", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Whether a device adds with atomics: gradients of embeddings, dQ and norms, and its library "
     "where it likes; auto is on in mode fast, else off",
     AT(numerics.determinism.atomics), NO_BOUNDS, "auto", allowed_names},
    {"numerics.determinism.split_k", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "Whether the device's library may deal the terms of a sum to several workers; auto is on in "
     "mode fast, else off",
     AT(numerics.determinism.split_k), NO_BOUNDS, "auto", allowed_names},
    {"numerics.determinism.fill", KEY_ENUM, "", "auto", CAUSE_NONDETERMINISM,
     "What activations and scratch hold before each forward: what was there, or NaN "
     "(torch.utils.deterministic.fill_uninitialized_memory); auto is nan in mode deterministic of "
     "numerics.backend cuda, else none",
     AT(numerics.determinism.fill), NO_BOUNDS, "auto", fill_names},
    {"numerics.shards", KEY_UINT, "1", "1", CAUSE_PARALLELISM,
     "Shards of an update whose sums are joined by a tree", AT(numerics.shards), 1, 1024, NULL,
     NULL},

    {"dropout.embedding", KEY_REAL, "1", "0", CAUSE_RNG,
     "Probability that an element of the embedding's output is dropped", AT(dropout.embedding), 0,
     BELOW_ONE, NULL, NULL},
    {"dropout.attention", KEY_REAL, "1", "0", CAUSE_RNG,
     "Probability that an attention weight is dropped", AT(dropout.attention), 0, BELOW_ONE, NULL,
     NULL},
    {"dropout.residual", KEY_REAL, "1", "0", CAUSE_RNG,
     "Probability that an element of a branch is dropped before it joins the residual stream",
     AT(dropout.residual), 0, BELOW_ONE, NULL, NULL},
    {"dropout.seed", KEY_UINT, "", "auto", CAUSE_RNG, "Seed of the masks; auto is seed",
     AT(dropout.seed), UINT_ALL, "auto", NULL},
    {"dropout.ranks", KEY_UINT, "1", "1", CAUSE_RNG,
     "Data-parallel ranks whose seeding is imitated: each draws for its share of batch.size",
     AT(dropout.ranks), 1, 256, NULL, NULL},
    {"dropout.masks", KEY_ENUM, "", "own", CAUSE_RNG,
     "Whether each of dropout.ranks draws masks of its own, or all draw the same ones",
     AT(dropout.masks), NO_BOUNDS, NULL, masks_names},
    {"dropout.recompute", KEY_ENUM, "", "preserve", CAUSE_RNG,
     "Masks of layers recomputed for their backward (activation checkpointing): those of the "
     "forward, or drawn anew",
     AT(dropout.recompute), NO_BOUNDS, NULL, recompute_names},

    {"rng.kind", KEY_ENUM, "", "addressed", CAUSE_RNG,
     "Numbers that dropout draws: by address, or as PyTorch's CUDA generator deals them out",
     AT(rng.kind), NO_BOUNDS, NULL, rng_names},
    {"rng.sms", KEY_UINT, "1", "108", CAUSE_RNG,
     "Multiprocessors of the imitated GPU (T4 40, L4 58, A100 108, H100 SXM 132)", AT(rng.sms), 1,
     1024, NULL, NULL},
    {"rng.threads_per_sm", KEY_UINT, "threads", "2048", CAUSE_RNG,
     "Resident threads of a multiprocessor of the imitated GPU (T4 1024, L4 1536)",
     AT(rng.threads_per_sm), 256, 65536, NULL, NULL},
    {"rng.vector", KEY_UINT, "elements", "auto", CAUSE_RNG,
     "Consecutive elements that a thread draws for: 1, 2, 4 or 8; auto is the largest divisor of "
     "the tensor up to 4",
     AT(rng.vector), 1, 8, "auto", NULL},
    {"rng.data", KEY_TEXT, "", "none", CAUSE_DATA_ORDER,
     "What happens to the stream of batches, each before the update that it names: advance N at K "
     "(skip N updates' worth), save A at K, load A at K, seed S at K, seed S clock C at K, take "
     "ARM "
     "at K (go on from where the other arm's stream is); joined by commas",
     AT(rng.data), NO_BOUNDS, NULL, NULL},
    {"rng.dropout", KEY_TEXT, "", "none", CAUSE_RNG,
     "What happens to the stream of dropout masks, as in rng.data; under rng.kind torch N and C "
     "are "
     "words of the generator's offset, and seed S starts at offset 0",
     AT(rng.dropout), NO_BOUNDS, NULL, NULL},
    {"rng.rounding", KEY_TEXT, "", "none", CAUSE_RNG,
     "What happens to the stream of stochastic rounding, as in rng.data", AT(rng.rounding),
     NO_BOUNDS, NULL, NULL},
    {"rng.order", KEY_TEXT, "", "none", CAUSE_NONDETERMINISM,
     "What happens to the stream of orders of sums in shuffled, as in rng.data", AT(rng.order),
     NO_BOUNDS, NULL, NULL},

    {"resume.after", KEY_UINT, "updates", "0", CAUSE_RESUME,
     "The job stops after this update and restarts from its checkpoint; 0: it never stops",
     AT(resume.after), UINT_ALL, NULL, NULL},
    {"resume.restores", KEY_LIST, "", "[schedule, optimizer, data, rng, scaler]", CAUSE_RESUME,
     "What the restart takes from the checkpoint beside the weights; the rest is as at step 0: "
     "counter and learning rate, moments and their step count, place in the data, random streams, "
     "loss scale",
     AT(resume.restores), NO_BOUNDS, NULL, resume_names},

    {"scaler.kind", KEY_ENUM, "", "none", CAUSE_DTYPE,
     "Loss scale: none, held at scaler.init_scale, or grown and backed off as torch.amp.GradScaler "
     "does",
     AT(scaler.kind), NO_BOUNDS, NULL, scaler_names},
    {"scaler.init_scale", KEY_REAL, "1", "65536", CAUSE_DTYPE, "First loss scale",
     AT(scaler.init_scale), 1e-30, 3e38, NULL, NULL},
    {"scaler.growth_factor", KEY_REAL, "1", "2", CAUSE_DTYPE,
     "Factor on the scale after scaler.growth_interval updates in a row without overflow",
     AT(scaler.growth_factor), 1, 1e6, NULL, NULL},
    {"scaler.backoff_factor", KEY_REAL, "1", "0.5", CAUSE_DTYPE,
     "Factor on the scale when a gradient overflowed", AT(scaler.backoff_factor), 1e-6, 1, NULL,
     NULL},
    {"scaler.growth_interval", KEY_UINT, "updates", "2000", CAUSE_DTYPE,
     "Updates in a row without overflow after which the scale grows", AT(scaler.growth_interval), 1,
     1e9, NULL, NULL},
    {"scaler.hysteresis", KEY_UINT, "updates", "1", CAUSE_DTYPE,
     "Overflows before the scale is backed off, counted anew when it grows (Megatron: 2); 1 is "
     "torch",
     AT(scaler.hysteresis), 1, 1e9, NULL, NULL},
    {"scaler.min_scale", KEY_REAL, "1", "0", CAUSE_DTYPE,
     "Scale that is not backed off further (Megatron, DeepSpeed: 1); 0 is torch",
     AT(scaler.min_scale), 0, 1e38, NULL, NULL},

    {"shuffle.kinds", KEY_LIST, "", "[weight, dq, embedding, norm]", CAUSE_NONDETERMINISM,
     "Kinds of sum whose order is drawn in shuffled", AT(shuffle.kinds), NO_BOUNDS, NULL,
     kind_names},
    {"shuffle.chunk", KEY_UINT, "terms", "16", CAUSE_NONDETERMINISM,
     "Consecutive terms of one partial sum in shuffled", AT(shuffle.chunk), 1, 1048576, NULL, NULL},

    {"atomic.kinds", KEY_LIST, "", "[weight, dq, embedding, norm]", CAUSE_NONDETERMINISM,
     "Kinds of sum that threads race on in mode atomic: forward, weight, dq, embedding, norm, loss",
     AT(atomic.kinds), NO_BOUNDS, NULL, kind_names},
    {"atomic.chunk", KEY_UINT, "terms", "16", CAUSE_NONDETERMINISM,
     "Consecutive terms that one thread sums before it adds them to a sum that is raced on",
     AT(atomic.chunk), 1, 1048576, NULL, NULL},

    {"shaped.table", KEY_TEXT, "", "builtin:small-batch", CAUSE_NONDETERMINISM,
     "Parts into which sums are cut in mode shaped, by op and shape: builtin:small-batch, "
     "builtin:large-batch, or rows such as weight m<=512 k>=256: 4; attention k>=64: 2; *: 1",
     AT(shaped.table), NO_BOUNDS, NULL, NULL},

    {"parallel.ranks", KEY_UINT, "1", "1", CAUSE_PARALLELISM, "Simulated data-parallel ranks",
     AT(parallel.ranks), 1, 1024, NULL, NULL},
    {"parallel.reduce", KEY_ENUM, "", "tree", CAUSE_PARALLELISM,
     "Order in which ranks' gradients are summed", AT(parallel.reduce), NO_BOUNDS, NULL,
     reduce_names},
};

const struct key_row *schema_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

const char *phase_name(enum phase phase) {
    return phase_names[phase];
}

const char *family_name(int32_t family) {
    return family_names[family];
}
