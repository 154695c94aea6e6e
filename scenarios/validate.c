/* SPDX-License-Identifier: Apache-2.0
 * Checks what spans several keys, for arms at load and for hybrids, and refuses values that are
 * known by name but not available in this version. Bounds of single keys belong to the rows;
 * whether the order of a loop is legal is the trainer's business. */
#include <string.h>

#include "base/number.h"
#include "base/splits.h"
#include "scenarios/fault.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/stream_course.h"

/* Refuses the configuration for the value at `path`, with a text, where the condition holds. */
#define REFUSE_IF(condition, path, ...)                                                            \
    do {                                                                                           \
        if (condition) return fault_set(fault, STATUS_INPUT, path, __VA_ARGS__);                   \
    } while (0)

static int is_fp8(int32_t dtype) {
    return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2;
}

static enum status check_dtypes(const struct config *config, struct fault *fault) {
    const struct {
        const char *path;
        int32_t dtype;
        int stored; /* 1: numbers are stored in it, not computed */
    } uses[] = {
        {"numerics.param", config->numerics.param, 1},
        {"numerics.compute", config->numerics.compute, 0},
        {"numerics.accumulate", config->numerics.accumulate, 0},
        {"numerics.gradient", config->numerics.gradient, 1},
        {"numerics.optimizer", config->numerics.optimizer, 0},
        {"numerics.rope", config->numerics.rope, 0},
        {"numerics.loss", config->numerics.loss, 0},
        {"dpo.reference_compute", config->dpo.reference_compute, 0},
    };
    /* The last one is inert without a reference, and inert keys are not checked. */
    size_t count = COUNT_OF(uses) - !config_has_reference(config);
    for (size_t i = 0; i < count; i++) {
        if (is_fp8(uses[i].dtype) && !uses[i].stored)
            return fault_set(fault, STATUS_UNSUPPORTED, uses[i].path,
                             "%s is not available here: fp8 is a format of stored weights and "
                             "gradients (numerics.param, numerics.gradient); what else is kept or "
                             "multiplied in fp8 has scales, which this version does not have; "
                             "expected f32, f64, bf16 or f16",
                             dtype_name((enum dtype)uses[i].dtype));
        if (uses[i].dtype == DTYPE_TF32)
            return fault_set(fault, STATUS_INPUT, uses[i].path,
                             "expected f32, f64, bf16 or f16, got tf32: it is a format of "
                             "operands, not of stored numbers (torch's allow_tf32 is "
                             "numerics.compute: f32 with numerics.product: tf32)");
    }
    return STATUS_OK;
}

static enum status check_products(const struct config *config, struct fault *fault) {
    int32_t compute = config->numerics.compute;
    int32_t product = config->numerics.product;
    int32_t softmax = config->numerics.softmax;
    if (is_fp8(product))
        return fault_set(fault, STATUS_UNSUPPORTED, "numerics.product",
                         "%s is not available here: operands of fp8 products have a scale per "
                         "tensor, which this version does not have; expected compute, tf32, bf16 "
                         "or f16",
                         dtype_name((enum dtype)product));
    int narrower = product == DTYPE_TF32 || product == DTYPE_BF16 || product == DTYPE_F16;
    REFUSE_IF(product != CONFIG_AS_COMPUTE && !(compute == DTYPE_F32 && narrower),
              "numerics.product",
              "expected compute, or tf32, bf16 or f16 under f32 numerics.compute, got "
              "%s under %s",
              dtype_name((enum dtype)product), dtype_name((enum dtype)compute));
    int carried =
        compute == DTYPE_F64 || softmax == DTYPE_F64 || softmax == DTYPE_TF32 || is_fp8(softmax);
    REFUSE_IF(softmax != CONFIG_AS_COMPUTE && carried, "numerics.softmax",
              "expected compute, or f32, bf16 or f16 under numerics.compute other than "
              "f64, got %s under %s",
              dtype_name((enum dtype)softmax), dtype_name((enum dtype)compute));
    return STATUS_OK;
}

/* Log-probs that are given need no pass of a reference, so its dtype does not act. */
static int computes_reference(const struct config *config) {
    return config_has_reference(config) && config->dpo.reference != REFERENCE_GIVEN;
}

/* Law 16 of docs/DETERMINISM.md: products of two f32 numbers are exact in f64, those of f64 numbers
 * are not. */
static enum status check_order_free(const struct config *config, struct fault *fault) {
    const int reference = computes_reference(config) && config->dpo.reference_compute == DTYPE_F64;
    if (config->numerics.mode != MODE_ORDER_FREE) return STATUS_OK;
    REFUSE_IF(config->numerics.compute == DTYPE_F64, "numerics.compute",
              "mode order-free needs products that f64 holds exactly: expected f32, "
              "bf16 or f16, got f64");
    REFUSE_IF(reference, "dpo.reference_compute",
              "mode order-free needs products that f64 holds exactly: expected f32, "
              "bf16 or f16, got f64");
    REFUSE_IF(config->numerics.gradient == DTYPE_F64, "numerics.gradient",
              "mode order-free sums squares that f64 holds exactly: expected f32, bf16 "
              "or f16, got f64");
    return STATUS_OK;
}

static enum status check_backend(const struct config *config, struct fault *fault) {
    const int on_device = config->numerics.backend == BACKEND_CUDA;
    const int32_t other = on_device ? LIBRARY_OPENBLAS : LIBRARY_CUBLAS;
    const int acts = config_uses_openblas(config) || config_uses_cublas(config);
    REFUSE_IF(acts && config->numerics.library == other, "numerics.library",
              "numerics.backend %s has no %s: expected auto, none or %s",
              on_device ? "cuda" : "cpu", on_device ? "openblas" : "cublas",
              on_device ? "cublas" : "openblas");
    if (!on_device || config->numerics.mode != MODE_ORDER_FREE) return STATUS_OK;
    return fault_set(fault, STATUS_UNSUPPORTED, "numerics.mode",
                     "order-free is not available on numerics.backend cuda");
}

static enum status check_rounding(const struct config *config, struct fault *fault) {
    int32_t param = config->numerics.param;
    if (config->numerics.rounding != ROUNDING_STOCHASTIC) return STATUS_OK;
    REFUSE_IF(param != DTYPE_BF16 && param != DTYPE_F16 && !is_fp8(param), "numerics.rounding",
              "stochastic needs numerics.param bf16, f16, e4m3 or e5m2, got %s",
              dtype_name((enum dtype)param));
    REFUSE_IF(config->numerics.master != CONFIG_MASTER_NONE, "numerics.rounding",
              "stochastic needs numerics.master none, got %s: a master keeps what "
              "rounding would draw for",
              dtype_name((enum dtype)config->numerics.master));
    return STATUS_OK;
}

static enum status check_dtype_pairs(const struct config *config, struct fault *fault) {
    int32_t accumulate = config->numerics.accumulate;
    REFUSE_IF(config->numerics.compute == DTYPE_F64 && accumulate != DTYPE_F64,
              "numerics.accumulate", "f64 compute needs f64 accumulation, got %s",
              dtype_name((enum dtype)accumulate));
    REFUSE_IF(computes_reference(config) && config->dpo.reference_compute == DTYPE_F64 &&
                  accumulate != DTYPE_F64,
              "dpo.reference_compute", "f64 compute needs f64 numerics.accumulate, got %s",
              dtype_name((enum dtype)accumulate));
    TRY(check_order_free(config, fault));
    TRY(check_products(config, fault));
    TRY(check_rounding(config, fault));
    TRY(check_backend(config, fault));
    int32_t master = config->numerics.master;
    int32_t param = config->numerics.param;
    if (master == CONFIG_MASTER_NONE) return STATUS_OK;
    REFUSE_IF(dtype_width((enum dtype)master) <= dtype_width((enum dtype)param), "numerics.master",
              "expected none or a dtype wider than numerics.param (%s), got %s",
              dtype_name((enum dtype)param), dtype_name((enum dtype)master));
    return STATUS_OK;
}

static enum status check_rope(const struct config *config, struct fault *fault) {
    const double fast = config->model.rope_beta_fast, slow = config->model.rope_beta_slow;
    REFUSE_IF(config->model.rope_scaling == ROPE_LLAMA3 &&
                  !(config->model.rope_high_freq_factor > config->model.rope_low_freq_factor),
              "model.rope_high_freq_factor",
              "expected more than model.rope_low_freq_factor (%g), got %g",
              config->model.rope_low_freq_factor, config->model.rope_high_freq_factor);
    if (config->model.rope_scaling != ROPE_YARN) return STATUS_OK;
    REFUSE_IF(!(config->model.rope_theta > 1.0), "model.rope_theta",
              "expected more than 1 with model.rope_scaling yarn, got %g",
              config->model.rope_theta);
    REFUSE_IF(!(fast > slow), "model.rope_beta_fast",
              "expected more than model.rope_beta_slow (%g), got %g", slow, fast);
    return STATUS_OK;
}

static enum status check_model(const struct config *config, struct fault *fault) {
    uint64_t heads = config->model.heads;
    REFUSE_IF(heads % config->model.kv_heads != 0, "model.kv_heads",
              "expected a divisor of model.heads (%ju), got %ju", (uintmax_t)heads,
              (uintmax_t)config->model.kv_heads);
    REFUSE_IF(config->model.head_dim % 2 != 0, "model.head_dim",
              "expected an even number (rotary pairs), got %ju", (uintmax_t)config->model.head_dim);
    return check_rope(config, fault);
}

static enum status check_batch(const struct config *config, struct fault *fault) {
    REFUSE_IF(config->batch.size % config->batch.micro != 0, "batch.micro",
              "expected a divisor of batch.size (%ju), got %ju", (uintmax_t)config->batch.size,
              (uintmax_t)config->batch.micro);
    return STATUS_OK;
}

/* The losses for which TRL's DPOTrainer takes an f-divergence. A divergence other than reverse-kl
 * adds a constant to every reward, which cancels only in a margin. */
static int knows_divergences(int32_t loss) {
    return loss == DPO_SIGMOID || loss == DPO_SIGMOID_NORM || loss == DPO_HINGE ||
           loss == DPO_IPO || loss == DPO_EXO_PAIR || loss == DPO_ROBUST || loss == DPO_DISCOPOP;
}

static enum status check_preference(const struct config *config, struct fault *fault) {
    int32_t loss = config->dpo.loss;
    double smoothing = config->dpo.label_smoothing;
    if (config->task != TASK_DPO) return STATUS_OK;
    REFUSE_IF(config->dpo.f_divergence != DIVERGENCE_REVERSE_KL && !knows_divergences(loss),
              "dpo.f_divergence",
              "expected reverse-kl, or another with dpo.loss sigmoid, sigmoid-norm, "
              "hinge, ipo, exo-pair, robust or discopop: what a divergence adds to "
              "every reward cancels in a margin only");
    REFUSE_IF(loss == DPO_ROBUST && smoothing >= 0.5, "dpo.label_smoothing",
              "expected less than 0.5 with dpo.loss robust, which divides by 1 - 2 "
              "label_smoothing, got %s",
              number_text_f64(smoothing).text);
    REFUSE_IF(loss == DPO_EXO_PAIR && smoothing == 0.0, "dpo.label_smoothing",
              "expected more than 0 with dpo.loss exo-pair, which takes its logarithm "
              "(the paper's value is 1e-3), got 0");
    REFUSE_IF((loss == DPO_IPO || loss == DPO_IPO_SUM || loss == DPO_SPPO_HARD) &&
                  config->dpo.beta == 0.0,
              "dpo.beta",
              "expected more than 0 with dpo.loss ipo, ipo-sum and sppo-hard, whose "
              "target is 1 / (2 beta), got 0");
    return STATUS_OK;
}

/* The embedded pairs carry no log-probabilities. */
static enum status check_reference(const struct config *config, struct fault *fault) {
    if (!config_has_reference(config) || config->dpo.reference != REFERENCE_GIVEN) return STATUS_OK;
    REFUSE_IF(strncmp(config->data.pairs, "builtin:", 8) == 0, "dpo.reference",
              "given is read from the rows of a file; expected data.pairs to name one, "
              "got %s",
              config->data.pairs);
    return STATUS_OK;
}

static int divides_by_micros(int32_t divisor) {
    return divisor == DIVISOR_MEAN_OF_MEANS || divisor == DIVISOR_UPDATE_AND_MICROS;
}

static enum status check_loss(const struct config *config, struct fault *fault) {
    int32_t divisor = config->loss.divisor, tail = config->batch.tail;
    REFUSE_IF(tail == TAIL_KEEP_UNDERSCALED && !divides_by_micros(divisor), "batch.tail",
              "keep-underscaled divides by the micro-batches of a full update; expected "
              "loss.divisor mean-of-means or update-and-micros, which divide by "
              "their number");
    if (divisor != DIVISOR_MEAN_OF_RANKS) return STATUS_OK;
    REFUSE_IF(config->batch.size % config->loss.ranks != 0, "loss.ranks",
              "expected a divisor of batch.size (%ju), got %ju", (uintmax_t)config->batch.size,
              (uintmax_t)config->loss.ranks);
    REFUSE_IF(tail != TAIL_DROP, "batch.tail",
              "expected drop with loss.divisor mean-of-ranks: samples that do not fill "
              "an update do not fill its ranks");
    return STATUS_OK;
}

static enum status check_dropout(const struct config *config, struct fault *fault) {
    if (!config_has_dropout(config)) return STATUS_OK;
    REFUSE_IF(config->rng.kind == RNG_ADDRESSED && config->batch.size % config->dropout.ranks != 0,
              "dropout.ranks", "expected a divisor of batch.size (%ju), got %ju",
              (uintmax_t)config->batch.size, (uintmax_t)config->dropout.ranks);
    if (config->rng.kind != RNG_TORCH) return STATUS_OK;
    uint64_t vector = config->rng.vector;
    REFUSE_IF(vector != KEY_WORD_UINT && (vector & (vector - 1)) != 0, "rng.vector",
              "expected 1, 2, 4 or 8, got %ju", (uintmax_t)vector);
    REFUSE_IF(config->batch.padding == PADDING_PACKED && config->dropout.attention > 0.0,
              "rng.kind",
              "torch draws attention's masks for padded sequences; expected "
              "batch.padding: longest, or dropout.attention: 0");
    return STATUS_OK;
}

/* Law 21 of docs/DETERMINISM.md: shards are chains of law 1 or exact sums, whose joins have one
 * order. Other modes order the sums of each call themselves. */
static int takes_shards(int32_t mode) {
    return mode == MODE_INVARIANT || mode == MODE_DETERMINISTIC || mode == MODE_ORDER_FREE;
}

static enum status check_shards(const struct config *config, struct fault *fault) {
    const uint64_t shards = config->numerics.shards;
    const int32_t mode = config->numerics.mode;
    REFUSE_IF((shards & (shards - 1)) != 0, "numerics.shards",
              "expected a power of two, of which a balanced tree is made, got %ju",
              (uintmax_t)shards);
    if (shards <= 1) return STATUS_OK;
    if (!takes_shards(mode))
        return fault_set(fault, STATUS_UNSUPPORTED, "numerics.shards",
                         "%ju is not available in numerics.mode %s, which orders sums in its own "
                         "way; expected mode invariant, deterministic or order-free, or one shard",
                         (uintmax_t)shards, schema_find("numerics.mode", NULL)->names[mode]);
    if (config->numerics.backend == BACKEND_CUDA)
        return fault_set(fault, STATUS_UNSUPPORTED, "numerics.shards",
                         "%ju is not available on numerics.backend cuda; available there: 1",
                         (uintmax_t)shards);
    REFUSE_IF(config->numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE,
              "numerics.grad_accumulate",
              "storage rounds the gradient after each micro-batch, but shards are joined before "
              "it is rounded; expected wide with numerics.shards %ju",
              (uintmax_t)shards);
    REFUSE_IF(config->batch.tail == TAIL_LEAK, "batch.tail",
              "leak puts samples of two epochs into one update, and only those of one are dealt "
              "to shards; expected drop, keep or keep-underscaled with numerics.shards %ju",
              (uintmax_t)shards);
    return STATUS_OK;
}

/* Law 23 of docs/DETERMINISM.md: parts are of whole heads and of equal widths, as the slices of
 * tensor parallelism are. The vocabulary need not be divided: frameworks pad it, and padded rows
 * would be parameters that take part in the softmax. */
static enum status check_cuts(const struct config *config, struct fault *fault) {
    const uint64_t cuts = config->numerics.cuts;
    const int32_t mode = config->numerics.mode;
    REFUSE_IF((cuts & (cuts - 1)) != 0, "numerics.cuts", "expected 1, 2, 4 or 8, got %ju",
              (uintmax_t)cuts);
    const uint64_t ranks = config->parallel.tensor;
    REFUSE_IF(ranks > 8 || (ranks & (ranks - 1)) != 0, "parallel.tensor",
              "expected 1, 2, 4 or 8, got %ju", (uintmax_t)ranks);
    REFUSE_IF(
        cuts % ranks != 0, "parallel.tensor",
        "expected a divisor of numerics.cuts (%ju), got %ju: a rank has whole parts, and bits "
        "depend on their number alone; set numerics.cuts to %ju or more, too",
        (uintmax_t)cuts, (uintmax_t)ranks, (uintmax_t)ranks);
    if (cuts <= 1) return STATUS_OK;
    if (!takes_shards(mode))
        return fault_set(fault, STATUS_UNSUPPORTED, "numerics.cuts",
                         "%ju is not available in numerics.mode %s, which orders sums in its own "
                         "way; expected mode invariant, deterministic or order-free, or 1",
                         (uintmax_t)cuts, schema_find("numerics.mode", NULL)->names[mode]);
    if (config->numerics.backend == BACKEND_CUDA)
        return fault_set(fault, STATUS_UNSUPPORTED, "numerics.cuts",
                         "%ju is not available on numerics.backend cuda; available there: 1",
                         (uintmax_t)cuts);
    REFUSE_IF(config->model.kv_heads % cuts != 0, "numerics.cuts",
              "expected a divisor of model.kv_heads (%ju), got %ju: a part has whole heads, and "
              "key and value heads are not held twice",
              (uintmax_t)config->model.kv_heads, (uintmax_t)cuts);
    REFUSE_IF(config->model.mlp % cuts != 0, "numerics.cuts",
              "expected a divisor of model.mlp (%ju), got %ju: parts have equal widths",
              (uintmax_t)config->model.mlp, (uintmax_t)cuts);
    REFUSE_IF(config->model.vocab < cuts, "numerics.cuts",
              "expected at most model.vocab (%ju), got %ju: a part would have no token",
              (uintmax_t)config->model.vocab, (uintmax_t)cuts);
    return STATUS_OK;
}

/* The smallest power of two that is at least `count`. */
static uint64_t power_above(uint64_t count) {
    uint64_t power = 1;
    while (power < count)
        power *= 2;
    return power;
}

/* The first sample of a rank, the end for rank P: ceil(floor(rank V / P) n / V), as law 21 of
 * docs/DETERMINISM.md deals them. ranks/tree.h has it too, but this folder may not know that one;
 * tests/trainer/test_shards.c holds the two together. */
static uint64_t rank_first_sample(const struct config *config, uint64_t rank) {
    const uint64_t shards = config_dealt_shards(config);
    const uint64_t shard = rank * shards / config->parallel.ranks;
    return (shard * config->batch.size + shards - 1) / shards;
}

/* More samples than ranks are not enough: of 8 shards and 5 ranks, rank 2 has shard 3 alone, and of
 * 6 samples none belongs to it. */
static enum status check_shares(const struct config *config, struct fault *fault) {
    for (uint64_t r = 0; r < config->parallel.ranks; r++)
        REFUSE_IF(rank_first_sample(config, r) == rank_first_sample(config, r + 1),
                  "parallel.ranks",
                  "expected ranks that all have samples, as a divisor of numerics.shards (%ju) "
                  "gives, got %ju: none of the %ju samples of batch.size belongs to the shards of "
                  "rank %ju",
                  (uintmax_t)config->numerics.shards, (uintmax_t)config->parallel.ranks,
                  (uintmax_t)config->batch.size, (uintmax_t)r);
    return STATUS_OK;
}

/* A rank's loss is P times its share of the update's, so that the mean over ranks is the update's
 * (law 22). A divisor that sums over micro-batches, or divides a second time by their number, has
 * no such share: frameworks count the micro-batches of a rank there. */
static int has_share(int32_t divisor) {
    return divisor == DIVISOR_UPDATE || divisor == DIVISOR_UPDATE_UNSHIFTED ||
           divisor == DIVISOR_MEAN_OF_MEANS || divisor == DIVISOR_MEAN_OF_RANKS ||
           divisor == DIVISOR_MICROS_BY_TOKENS;
}

static enum status check_messages(const struct config *config, struct fault *fault) {
    const int32_t reduce = config->parallel.reduce, gradient = config->numerics.gradient;
    const char *const name = schema_find("parallel.reduce", NULL)->names[reduce];
    const uint64_t chunk = config->parallel.chunk;
    REFUSE_IF(gradient != DTYPE_F32 && gradient != DTYPE_BF16 && gradient != DTYPE_F16,
              "numerics.gradient", "expected f32, bf16 or f16, which ranks exchange, got %s",
              dtype_name((enum dtype)gradient));
    REFUSE_IF(reduce == REDUCE_ARRIVAL && config->numerics.mode != MODE_SHUFFLED, "parallel.reduce",
              "arrival has no order of its own, so one is drawn: expected numerics.mode shuffled");
    REFUSE_IF(
        reduce == REDUCE_NCCL_RING && (chunk == 0 || chunk % 16 != 0), "parallel.chunk",
        "expected the bytes of a chunk, a multiple of 16, with parallel.reduce nccl-ring (NCCL "
        "takes them from the machine and prints them with NCCL_DEBUG=TRACE), got %ju",
        (uintmax_t)chunk);
    REFUSE_IF(reduce == REDUCE_NCCL_TREE && config->parallel.ranks % config->parallel.node != 0,
              "parallel.node",
              "expected a divisor of parallel.ranks (%ju) with parallel.reduce nccl-tree, whose "
              "nodes have equally many, got %ju",
              (uintmax_t)config->parallel.ranks, (uintmax_t)config->parallel.node);
    const int scatters = reduce == REDUCE_RING_SCATTER || reduce == REDUCE_NCCL_RING_SCATTER;
    REFUSE_IF(
        scatters && config->parallel.buckets != BUCKETS_FSDP2, "parallel.buckets",
        "expected fsdp2 with parallel.reduce %s, a reduce-scatter: buckets of DDP have no part "
        "for each rank",
        name);
    return STATUS_OK;
}

/* Bugs of ranks are simulated where ranks join sums of shards, and nowhere else. */
static enum status check_no_bug(const struct config *config, const char *where,
                                struct fault *fault) {
    REFUSE_IF(config->parallel.sync != SYNC_EVERY, "parallel.sync", "expected every %s", where);
    REFUSE_IF(config->parallel.keeps != KEEPS_ALL, "parallel.keeps", "expected all %s", where);
    REFUSE_IF(config->parallel.logged != RANKS_LOG_MEAN, "parallel.logged", "expected mean %s",
              where);
    REFUSE_IF(config->parallel.feeds != FEEDS_OWN, "parallel.feeds", "expected own %s", where);
    return STATUS_OK;
}

/* Ranks that close their own gradients, as frameworks' do. */
static enum status check_closed(const struct config *config, struct fault *fault) {
    static const char where[] =
        "with several ranks in modes shaped and shuffled; the bug is simulated in mode invariant";
    const uint64_t ranks = config->parallel.ranks;
    REFUSE_IF(
        config->batch.size % ranks != 0, "parallel.ranks",
        "expected a divisor of batch.size (%ju) in modes shaped and shuffled, whose ranks have "
        "equal shares, got %ju",
        (uintmax_t)config->batch.size, (uintmax_t)ranks);
    if (config->numerics.backend == BACKEND_CUDA)
        return fault_set(fault, STATUS_UNSUPPORTED, "parallel.ranks",
                         "%ju is not available on numerics.backend cuda; available there: 1",
                         (uintmax_t)ranks);
    if (config->fault.update != 0)
        return fault_set(
            fault, STATUS_UNSUPPORTED, "fault.update",
            "a flipped bit is not available with parallel.ranks %ju in modes shaped and "
            "shuffled, where each rank has a gradient of its own",
            (uintmax_t)ranks);
    REFUSE_IF(!has_share(config->loss.divisor), "loss.divisor",
              "%s has no share of one rank: expected update, update-unshifted, mean-of-means, "
              "mean-of-ranks or micros-by-tokens with parallel.ranks %ju in modes shaped and "
              "shuffled, which take the mean over ranks",
              schema_find("loss.divisor", NULL)->names[config->loss.divisor], (uintmax_t)ranks);
    TRY(check_no_bug(config, where, fault));
    REFUSE_IF(config->clip.over != OVER_GLOBAL, "clip.over", "expected global %s", where);
    REFUSE_IF(config->parallel.zero != ZERO_NONE, "parallel.zero",
              "expected 0 with several ranks in modes shaped and shuffled: the norm that a "
              "framework makes of parts is a sum by ranks, whose order is not simulated (buckets: "
              "fsdp2 adds gradients as FSDP2 does)");
    return check_messages(config, fault);
}

/* What is kept once while ranks hold copies of their own, whatever parts them. */
static enum status check_copies(const struct config *config, const char *bug, struct fault *fault) {
    const struct key_list *const update = &config->loop.update;
    REFUSE_IF(memchr(update->item, PHASE_ZERO, update->count) == NULL, "loop.update",
              "expected zero in it with %s, whose ranks begin each update with gradients that are "
              "clear",
              bug);
    REFUSE_IF(config->loop.skip != SKIP_NONE, "loop.skip",
              "expected none with %s: ranks with gradients of their own would decide apart", bug);
    REFUSE_IF(config->scaler.kind == SCALER_DYNAMIC, "scaler.kind",
              "expected none or static with %s: ranks with gradients of their own would have loss "
              "scales of their own",
              bug);
    REFUSE_IF(config->resume.after != 0, "resume.after",
              "expected 0 with %s: one checkpoint ends what parts ranks, and that is not simulated",
              bug);
    REFUSE_IF(config->fault.update != 0, "fault.update",
              "expected 0 with %s: a fault has no key for the rank whose bit flips", bug);
    return STATUS_OK;
}

/* Ranks whose gradients are not joined part, and then each would decide by itself what is kept once
 * here: whether an update is skipped, and the loss scale. */
static enum status check_sync(const struct config *config, struct fault *fault) {
    if (config->parallel.sync != SYNC_FIRST) return STATUS_OK;
    REFUSE_IF(config->parallel.keeps == KEEPS_LAST, "parallel.keeps",
              "expected all with parallel.sync first: a gradient that is joined and then wiped is "
              "no case that is simulated");
    REFUSE_IF(
        config->parallel.zero > ZERO_SLOTS, "parallel.zero",
        "expected 0 or 1 with parallel.sync first, got %ju: DeepSpeed's no_sync refuses stages "
        "that cut the gradient",
        (uintmax_t)config->parallel.zero);
    REFUSE_IF(
        config->clip.over != OVER_GLOBAL, "clip.over",
        "expected global with parallel.sync first: %s is of ranks that own shards, first of ranks "
        "that hold replicas",
        schema_find("clip.over", NULL)->names[config->clip.over]);
    return check_copies(config, "parallel.sync first", fault);
}

/* Whether a phase of list `micro` meets the gradient. */
static int meets_gradient(const struct key_list *micro) {
    static const enum phase met[] = {PHASE_REDUCE, PHASE_UNSCALE, PHASE_CLIP, PHASE_OPTIMIZE,
                                     PHASE_ZERO};
    for (size_t i = 0; i < COUNT_OF(met); i++)
        if (memchr(micro->item, (int)met[i], micro->count) != NULL) return 1;
    return 0;
}

/* Tensor-parallel ranks with samples of their own, whose streams are those of a Llama or Qwen2 that
 * transformers deals (docs/RANKS.md): what that plan does to other layers is another model. */
static enum status check_fed_ranks(const struct config *config, const char *bug,
                                   struct fault *fault) {
    const int32_t family = config->model.family;
    REFUSE_IF(config->parallel.forgets != FORGETS_NONE, "parallel.forgets",
              "expected none with %s, whose ranks part by all that they hold whole", bug);
    REFUSE_IF(
        config->task != TASK_SFT, "task",
        "expected sft with %s: a reference's forward would be of other samples, too, and that "
        "is not simulated",
        bug);
    REFUSE_IF(family != FAMILY_LLAMA && family != FAMILY_QWEN2, "model.family",
              "expected llama or qwen2 with %s: norms of q and k are over widths that ranks share, "
              "and that is not simulated, got %s",
              bug, schema_find("model.family", NULL)->names[family]);
    REFUSE_IF(
        config->model.tied, "model.tied",
        "expected false with %s: the head is cut into slices, the embedding is whole on every "
        "rank",
        bug);
    REFUSE_IF(config->model.output_bias || config->model.mlp_bias,
              config->model.output_bias ? "model.output_bias" : "model.mlp_bias",
              "expected false with %s: a bias behind a sum over ranks is not simulated", bug);
    REFUSE_IF(config_has_dropout(config),
              config->dropout.embedding > 0.0   ? "dropout.embedding"
              : config->dropout.attention > 0.0 ? "dropout.attention"
                                                : "dropout.residual",
              "expected 0 everywhere with %s: masks of ranks are not simulated", bug);
    REFUSE_IF(config->batch.tail != TAIL_DROP, "batch.tail", "expected drop with %s", bug);
    REFUSE_IF(config->loss.divisor == DIVISOR_MEAN_OF_RANKS, "loss.divisor",
              "expected another word than mean-of-ranks with %s", bug);
    return STATUS_OK;
}

/* Tensor-parallel ranks that hold weights apart: their sums are those of one process, whole and
 * closed once in an update. */
static enum status check_parted(const struct config *config, struct fault *fault) {
    static const char *const bugs[] = {
        [FORGETS_FINAL_NORM] = "parallel.forgets final-norm",
        [FORGETS_NORMS] = "parallel.forgets norms",
        [FORGETS_QK_NORMS] = "parallel.forgets qk-norms",
    };
    const int32_t forgets = config->parallel.forgets;
    const int fed = config_fed_ranks(config) > 1;
    const char *const bug = fed ? "parallel.feeds own-on-tensor" : bugs[forgets];
    if (!config_parts_tensor_ranks(config)) return STATUS_OK;
    if (fed) TRY(check_fed_ranks(config, bug, fault));
    REFUSE_IF(forgets == FORGETS_QK_NORMS && config->model.family != FAMILY_QWEN3,
              "parallel.forgets",
              "expected another word than qk-norms with model.family %s: it is of norms over each "
              "head, whose one weight all heads share (qwen3)",
              schema_find("model.family", NULL)->names[config->model.family]);
    REFUSE_IF(config->parallel.ranks > 1, "parallel.ranks",
              "expected 1 with %s, which is simulated for the tensor-parallel ranks of one "
              "data-parallel rank, got %ju",
              bug, (uintmax_t)config->parallel.ranks);
    REFUSE_IF(config->numerics.shards > 1, "numerics.shards",
              "expected 1 with %s, whose ranks have a chain each for what they hold apart, got %ju",
              bug, (uintmax_t)config->numerics.shards);
    REFUSE_IF(config->numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE,
              "numerics.grad_accumulate",
              "expected wide with %s, whose ranks close their gradients once in an update", bug);
    REFUSE_IF(meets_gradient(&config->loop.micro), "loop.micro",
              "expected fetch, forward and backward alone with %s, whose ranks close their "
              "gradients once in an update",
              bug);
    REFUSE_IF(config->batch.tail == TAIL_LEAK, "batch.tail",
              "expected drop, keep or keep-underscaled with %s", bug);
    REFUSE_IF(config->parallel.counts == COUNTS_EACH, "parallel.counts",
              "expected once with %s: what the ranks hold of a norm differs there", bug);
    return check_copies(config, bug, fault);
}

/* Ranks of one shard, each of which goes on with the chains of the rank before it. */
static enum status check_relay(const struct config *config, struct fault *fault) {
    const uint64_t ranks = config->parallel.ranks;
    if (config->numerics.shards > 1) return STATUS_OK;
    if (config->numerics.backend == BACKEND_CUDA)
        return fault_set(fault, STATUS_UNSUPPORTED, "parallel.ranks",
                         "%ju is not available on numerics.backend cuda; available there: 1",
                         (uintmax_t)ranks);
    REFUSE_IF(config->numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE,
              "numerics.grad_accumulate",
              "storage rounds the gradient after each micro-batch, so bits would depend on the "
              "number of ranks; expected wide with parallel.ranks %ju",
              (uintmax_t)ranks);
    return check_no_bug(config,
                        "with several ranks of one shard, which have no sums of their own; the "
                        "bug is simulated with at least as many numerics.shards as ranks",
                        fault);
}

/* Ranks that join sums of shards. */
static enum status check_shards_of_ranks(const struct config *config, struct fault *fault) {
    const uint64_t ranks = config->parallel.ranks, shards = config->numerics.shards;
    const int divides = config->loss.divisor == DIVISOR_MEAN_OF_RANKS && config->loss.ranks > 1;
    REFUSE_IF(!takes_shards(config->numerics.mode), "parallel.ranks",
              "expected 1 in numerics.mode %s, got %ju: several ranks are in modes invariant, "
              "deterministic and order-free, where they join shards, and in shaped and shuffled, "
              "where each closes a gradient of its own",
              schema_find("numerics.mode", NULL)->names[config->numerics.mode], (uintmax_t)ranks);
    REFUSE_IF(ranks > shards && shards > 1, "parallel.ranks",
              "expected at most numerics.shards (%ju), got %ju: a rank has the samples of whole "
              "shards, and bits depend on shards alone; set numerics.shards to %ju or a larger "
              "power of two, in both arms if they are to agree",
              (uintmax_t)shards, (uintmax_t)ranks, (uintmax_t)power_above(ranks));
    TRY(check_relay(config, fault));
    REFUSE_IF(ranks > config->batch.size, "parallel.ranks",
              "expected at most batch.size (%ju), got %ju: a rank without samples",
              (uintmax_t)config->batch.size, (uintmax_t)ranks);
    TRY(check_shares(config, fault));
    REFUSE_IF(divides && config_dealt_shards(config) % ranks != 0, "parallel.ranks",
              "expected a divisor of numerics.shards (%ju) with loss.divisor mean-of-ranks, whose "
              "ranks have equal shares, got %ju",
              (uintmax_t)shards, (uintmax_t)ranks);
    TRY(check_sync(config, fault));
    REFUSE_IF(config->clip.over == OVER_LOCAL && config->loop.skip == SKIP_OLMO_OUTLIER,
              "loop.skip",
              "expected another rule than olmo-outlier with clip.over local: ranks with norms of "
              "their own would decide apart");
    return STATUS_OK;
}

/* Whole rounds give each rank as many samples as every other one; a block of an update that is not
 * full may be empty. */
static enum status check_deal(const struct config *config, struct fault *fault) {
    const uint64_t ranks = config->parallel.ranks, size = config->batch.size;
    const uint64_t shards = config_dealt_shards(config);
    const int32_t tail = config->batch.tail;
    if (config->parallel.deal == DEALS_BLOCKS) {
        REFUSE_IF(tail != TAIL_DROP, "batch.tail",
                  "expected drop with parallel.ranks %ju and parallel.deal blocks: an update that "
                  "is not full would leave ranks without their share",
                  (uintmax_t)ranks);
        return STATUS_OK;
    }
    const char *const deal = schema_find("parallel.deal", NULL)->names[config->parallel.deal];
    REFUSE_IF(shards % ranks != 0, "parallel.ranks",
              "expected a divisor of numerics.shards (%ju) with parallel.deal %s, which deals "
              "equal shares, got %ju",
              (uintmax_t)shards, deal, (uintmax_t)ranks);
    REFUSE_IF(size % ranks != 0, "parallel.ranks",
              "expected a divisor of batch.size (%ju) with parallel.deal %s, which deals equal "
              "shares, got %ju",
              (uintmax_t)size, deal, (uintmax_t)ranks);
    REFUSE_IF(config->parallel.deal == DEALS_MICROS && size / ranks % config->batch.micro != 0,
              "batch.micro",
              "expected a divisor of the %ju samples that a rank has of an update with "
              "parallel.deal micros, which deals whole batches, got %ju",
              (uintmax_t)(size / ranks), (uintmax_t)config->batch.micro);
    REFUSE_IF(tail != TAIL_DROP && tail != TAIL_KEEP, "batch.tail",
              "expected drop or keep with parallel.ranks %ju", (uintmax_t)ranks);
    return STATUS_OK;
}

static enum status check_parallel(const struct config *config, struct fault *fault) {
    const uint64_t ranks = config->parallel.ranks;
    TRY(check_shards(config, fault));
    TRY(check_cuts(config, fault));
    REFUSE_IF(config->parallel.draws == DRAWS_SAME_ROWS && config->parallel.tensor > 1,
              "parallel.draws",
              "expected whole, own or same with parallel.tensor %ju: rows of slices are not "
              "simulated",
              (uintmax_t)config->parallel.tensor);
    TRY(check_parted(config, fault));
    REFUSE_IF(config->parallel.counts == COUNTS_EACH && config->parallel.tensor > 1 &&
                  config->parallel.ranks > 1 && config->clip.over != OVER_GLOBAL,
              "clip.over",
              "expected global with parallel.counts each: one bug of the norm at a time");
    if (ranks <= 1) return STATUS_OK;
    if (config_ranks_close(config))
        TRY(check_closed(config, fault));
    else
        TRY(check_shards_of_ranks(config, fault));
    TRY(check_deal(config, fault));
    REFUSE_IF(config_has_dropout(config) && config->rng.kind == RNG_TORCH, "rng.kind",
              "expected addressed with parallel.ranks %ju: torch's generator draws for the "
              "micro-batches of one process, one after the other",
              (uintmax_t)ranks);
    return STATUS_OK;
}

static uint32_t list_count(const struct key_list *list, int item) {
    uint32_t count = 0;
    for (uint8_t i = 0; i < list->count; i++)
        count += list->item[i] == item;
    return count;
}

static enum status check_loop(const struct config *config, struct fault *fault) {
    static const enum phase once[] = {PHASE_FETCH, PHASE_FORWARD, PHASE_BACKWARD};
    const struct {
        const char *path;
        const struct key_list *list;
    } others[] = {
        {"loop.update", &config->loop.update},
        {"loop.epoch", &config->loop.epoch},
        {"loop.eval", &config->loop.eval},
        {"loop.on_skip", &config->loop.on_skip},
    };
    for (size_t i = 0; i < COUNT_OF(once); i++) {
        uint32_t count = list_count(&config->loop.micro, (int)once[i]);
        if (count != 1)
            return fault_set(fault, STATUS_INPUT, "loop.micro", "expected %s once, got it %u times",
                             phase_name(once[i]), count);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (list_count(others[i].list, PHASE_FETCH) != 0)
            return fault_set(fault, STATUS_INPUT, others[i].path,
                             "fetch belongs to loop.micro and stands there once");
    return STATUS_OK;
}

static enum status check_kinds(const struct key_list *kinds, const char *path,
                               struct fault *fault) {
    for (uint8_t i = 0; i < kinds->count; i++)
        if (list_count(kinds, kinds->item[i]) != 1)
            return fault_set(fault, STATUS_INPUT, path, "an entry is given twice");
    return STATUS_OK;
}

static enum status check_shaped(const struct config *config, struct fault *fault) {
    struct splits splits;
    if (config->numerics.mode != MODE_SHAPED) return STATUS_OK;
    if (splits_parse(config->shaped.table, &splits) == STATUS_OK) return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, "shaped.table", "%s", status_text());
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? (uint64_t)(-value) : (uint64_t)value;
}

/* Schedules get the counter as a double, so every counter of the run must be exact in one. */
static enum status check_counter(const struct config *config, uint64_t steps, struct fault *fault) {
    const uint64_t exact = (uint64_t)1 << 53;
    uint64_t increment = config->schedule.increment;
    int64_t shift = config->schedule.shift;
    int64_t logged_shift =
        config->schedule.logged == LOGGED_RECOMPUTED ? config->schedule.logged_shift : 0;
    uint64_t rest = exact - config->schedule.origin;
    uint64_t largest =
        magnitude(shift) > magnitude(logged_shift) ? magnitude(shift) : magnitude(logged_shift);
    REFUSE_IF(largest > rest || (steps != 0 && increment > (rest - largest) / steps),
              "schedule.increment", "the counter of %ju updates passes 2^53", (uintmax_t)steps);
    return STATUS_OK;
}

static enum status check_fault(const struct config *config, uint64_t steps, struct fault *fault) {
    REFUSE_IF(config->fault.update > steps, "fault.update",
              "expected 0 (none) or an update up to steps (%ju), got %ju", (uintmax_t)steps,
              (uintmax_t)config->fault.update);
    return STATUS_OK;
}

enum status config_check(const struct config *config, uint64_t steps, struct fault *fault) {
    TRY(check_dtypes(config, fault));
    TRY(check_dtype_pairs(config, fault));
    TRY(check_model(config, fault));
    TRY(check_batch(config, fault));
    TRY(check_preference(config, fault));
    TRY(check_loss(config, fault));
    TRY(check_reference(config, fault));
    TRY(check_dropout(config, fault));
    TRY(check_parallel(config, fault));
    TRY(check_loop(config, fault));
    TRY(check_kinds(&config->shuffle.kinds, "shuffle.kinds", fault));
    TRY(check_kinds(&config->atomic.kinds, "atomic.kinds", fault));
    TRY(check_shaped(config, fault));
    TRY(stream_check(config, steps, fault));
    TRY(check_fault(config, steps, fault));
    return check_counter(config, steps, fault);
}

enum status config_validate(const struct config *config, uint64_t steps) {
    struct fault fault = {.status = STATUS_OK};
    enum status status = config_check(config, steps, &fault);
    if (status == STATUS_OK) return STATUS_OK;
    FAIL(status, "%s: %s", fault.path, fault.text);
}
