/* SPDX-License-Identifier: Apache-2.0
 * The table of keys that other keys make inert.
 *
 * What an inert key holds is decided for both arms at once. One that neither arm reads is reset:
 * else a derived value would bring the difference of its origin back. One that a single arm reads
 * keeps what each arm has, so that a key that was written for that arm alone is a difference, of
 * its own cause, and one that was written for both is none. */
#include "scenarios/inert.h"

#include <string.h>

#include "scenarios/row_value.h"
#include "scenarios/selection.h"
#include "scenarios/stream_course.h"

/* READ_IF defines without_NAME: NULL where `condition` holds, so that the key is read, else the
 * reason why it is not. With READ_IF_ALSO the key `other` must be read as well. Each ends in a
 * declaration, which takes the semicolon. */
#define READ_IF(name, condition, reason)                                                           \
    static const char *without_##name(const struct config *config) {                               \
        return (condition) ? NULL : (reason);                                                      \
    }                                                                                              \
    static const char *without_##name(const struct config *config)
#define READ_IF_ALSO(name, other, condition, reason)                                               \
    static const char *without_##name(const struct config *config) {                               \
        const char *const first = without_##other(config);                                         \
        return first != NULL || (condition) ? first : (reason);                                    \
    }                                                                                              \
    static const char *without_##name(const struct config *config)

READ_IF(dpo, config->task == TASK_DPO, "task is sft");
READ_IF(sft, config->task == TASK_SFT, "task is dpo");
READ_IF_ALSO(free, dpo, config_has_reference(config), "dpo.loss is simpo");

static const char *without_cached(const struct config *config) {
    const char *reason = without_free(config);
    if (reason != NULL) return reason;
    if (config->dpo.reference == REFERENCE_CACHED) return NULL;
    return config->dpo.reference == REFERENCE_LIVE ? "dpo.reference is live"
                                                   : "dpo.reference is given";
}

READ_IF_ALSO(reference, free, config->dpo.reference != REFERENCE_GIVEN, "dpo.reference is given");
/* Two dtypes that act as f32 where what they would round is made of f32 numbers; they are inert by
 * their word, and f32 is read. Terms of a log-prob and its product with a coefficient are numbers
 * of numerics.accumulate; angle, cosine and sine are f32 numbers (law 6) unless the pass computes
 * in f64, as that of a reference may. */
READ_IF(wide_sums, config->numerics.loss != DTYPE_F64 || config->numerics.accumulate == DTYPE_F64,
        "f64 acts as f32 where numerics.accumulate is f32");
READ_IF(wide_table,
        config->numerics.rope != DTYPE_F64 || config->numerics.compute == DTYPE_F64 ||
            (without_reference(config) == NULL && config->dpo.reference_compute == DTYPE_F64),
        "f64 acts as f32 where numerics.compute is not f64");

static const char *without_smoothing(const struct config *config) {
    if (config->task != TASK_DPO) return "task is sft";
    switch ((enum dpo_loss)config->dpo.loss) {
    case DPO_CDPO:
    case DPO_ROBUST:
    case DPO_NORM:
    case DPO_SIMPO:
    case DPO_EXO_PAIR:
        return NULL;
    default:
        return "dpo.loss does not smooth labels";
    }
}

READ_IF_ALSO(simpo, dpo, config->dpo.loss == DPO_SIMPO, "dpo.loss is not simpo");
READ_IF_ALSO(discopop, dpo, config->dpo.loss == DPO_DISCOPOP, "dpo.loss is not discopop");
READ_IF_ALSO(alpha, dpo, config->dpo.f_divergence == DIVERGENCE_ALPHA,
             "dpo.f_divergence is not alpha");

/* The embedded pairs draw their rejected answers from the data seed, too, so it matters there even
 * without shuffling. */
static const char *without_deal(const struct config *config) {
    if (config->parallel.ranks <= 1) return "parallel.ranks is 1";
    return config->parallel.deal == DEALS_BLOCKS ? "parallel.deal is blocks" : NULL;
}

static const char *without_shuffle(const struct config *config) {
    return config->data.shuffle ? NULL : "data.shuffle is false";
}

static const char *without_draw(const struct config *config) {
    if (config->data.shuffle) return NULL;
    if (config->task == TASK_DPO && strncmp(config->data.pairs, "builtin:", 8) == 0) return NULL;
    return "data.shuffle is false";
}

static int names_clip(const struct key_list *list) {
    return memchr(list->item, PHASE_CLIP, list->count) != NULL;
}

static const char *without_clip(const struct config *config) {
    if (names_clip(&config->loop.micro) || names_clip(&config->loop.update) ||
        names_clip(&config->loop.epoch) ||
        (config->loop.eval_every != 0 && names_clip(&config->loop.eval)))
        return NULL;
    return "the loop has no clip";
}

READ_IF_ALSO(max_norm, clip, config->clip.max_norm > 0.0, "clip.max_norm is 0");
READ_IF(named, config->optimizer.decay == DECAY_NAMED, "optimizer.decay is not named");
READ_IF(contract, config_has_contract(config), "schedule.contract is none");
READ_IF(ratio, config->schedule.warmup_ratio != KEY_WORD_REAL, "schedule.warmup_ratio is none");
READ_IF(recomputed, config->schedule.logged == LOGGED_RECOMPUTED, "schedule.logged is current");
READ_IF(eval, config->loop.eval_every != 0, "loop.eval_every is 0");
READ_IF(outlier, config->loop.skip == SKIP_OLMO_OUTLIER, "loop.skip is not olmo-outlier");
READ_IF(skip, config->loop.skip != SKIP_NONE, "loop.skip is none");
READ_IF(mean_of_ranks, config->loss.divisor == DIVISOR_MEAN_OF_RANKS,
        "loss.divisor is not mean-of-ranks");
READ_IF(dropout, config_has_dropout(config), "dropout is 0 everywhere");
READ_IF_ALSO(ranks, dropout, config->rng.kind != RNG_TORCH, "rng.kind is torch");
READ_IF_ALSO(torch, dropout, config->rng.kind == RNG_TORCH, "rng.kind is addressed");
READ_IF(stochastic, config->numerics.rounding == ROUNDING_STOCHASTIC,
        "numerics.rounding is nearest");
READ_IF(several_ranks, config->parallel.ranks > 1, "parallel.ranks is 1");
READ_IF(tensor_ranks, config->parallel.tensor > 1, "parallel.tensor is 1");
/* A rank has whole parts of numerics.cuts, so only bugs read the number of ranks. */
READ_IF(tensor_bugs,
        config->parallel.scale != SCALE_NONE || config->parallel.forgets != FORGETS_NONE ||
            config->parallel.draws != DRAWS_WHOLE || config->parallel.counts != COUNTS_ONCE ||
            config->parallel.feeds == FEEDS_OWN_ON_TENSOR,
        "parallel.scale and parallel.forgets are none, parallel.draws is whole, parallel.counts "
        "is once, and parallel.feeds is not own-on-tensor");
READ_IF_ALSO(counting_ranks, clip, config->parallel.tensor > 1, "parallel.tensor is 1");
READ_IF(any_ranks, config->parallel.tensor > 1 || config->parallel.ranks > 1,
        "parallel.tensor and parallel.ranks are 1");

static const char *without_drawing_ranks(const struct config *config) {
    const int32_t draws = config->parallel.draws;
    const int of_tensor = draws == DRAWS_OWN || draws == DRAWS_SAME;
    const char *const reason = without_any_ranks(config);
    if (reason != NULL) return reason;
    if (of_tensor && config->parallel.tensor == 1)
        return "parallel.tensor is 1, and own and same are of tensor-parallel ranks: same-rows is "
               "the bug of data-parallel ones";
    return strcmp(config->model.from, CONFIG_NO_CHECKPOINT) == 0 ? NULL : "model.from has weights";
}

/* `same` is of data-parallel ranks, own-on-tensor of tensor-parallel ones, `own` of both. */
static const char *without_fed_ranks(const struct config *config) {
    const int32_t feeds = config->parallel.feeds;
    if (feeds == FEEDS_OWN_ON_TENSOR) return without_tensor_ranks(config);
    if (feeds == FEEDS_OWN && config->parallel.tensor > 1) return NULL;
    return without_several_ranks(config);
}

READ_IF_ALSO(shared_clip, clip, config->parallel.ranks > 1, "parallel.ranks is 1");
READ_IF(restart, config->resume.after != 0, "resume.after is 0");
READ_IF_ALSO(shards, restart,
             resume_errs(config, RESUME_SHARDS_BY_INDEX) ||
                 resume_errs(config, RESUME_PADDED_OFFSETS),
             "resume.wrong has neither shards-by-index nor padded-offsets");
READ_IF_ALSO(buffer, restart, resume_errs(config, RESUME_PADDED_OFFSETS),
             "resume.wrong has no padded-offsets");
READ_IF_ALSO(late_decay, restart, resume_errs(config, RESUME_DECAY_LATE),
             "resume.wrong has no decay-late");
READ_IF(fault, config->fault.update != 0, "fault.update is 0");
READ_IF(scaler, config->scaler.kind != SCALER_NONE, "scaler.kind is none");
READ_IF(dynamic, config->scaler.kind == SCALER_DYNAMIC, "scaler.kind is not dynamic");
READ_IF(shuffled, config->numerics.mode == MODE_SHUFFLED, "numerics.mode is not shuffled");
READ_IF(atomic, config->numerics.mode == MODE_ATOMIC, "numerics.mode is not atomic");
READ_IF(shaped, config->numerics.mode == MODE_SHAPED, "numerics.mode is not shaped");
READ_IF(several, config->parallel.ranks > 1, "parallel.ranks is 1");
READ_IF_ALSO(closed, several, config_ranks_close(config),
             "numerics.mode is neither shaped nor shuffled");
READ_IF_ALSO(ddp, closed, config->parallel.buckets != BUCKETS_FSDP2, "parallel.buckets is fsdp2");
READ_IF_ALSO(chunks, closed, config->parallel.reduce == REDUCE_NCCL_RING,
             "parallel.reduce is not nccl-ring");
READ_IF_ALSO(nodes, closed, config->parallel.reduce == REDUCE_NCCL_TREE,
             "parallel.reduce is not nccl-tree");
READ_IF(backend, config->numerics.backend == BACKEND_CUDA, "numerics.backend is cpu");
READ_IF(free_mode,
        config->numerics.mode == MODE_FAST || config->numerics.mode == MODE_DETERMINISTIC,
        "numerics.mode is neither fast nor deterministic");

static const char *without_library(const struct config *config) {
    if (config->numerics.backend == BACKEND_CUDA) return without_free_mode(config);
    return config->numerics.mode == MODE_FAST ? NULL : "numerics.mode is not fast";
}

static const char *without_device_mode(const struct config *config) {
    return config->numerics.backend == BACKEND_CUDA ? without_free_mode(config)
                                                    : "numerics.backend is cpu";
}

READ_IF_ALSO(device_library, device_mode, config->numerics.library != LIBRARY_NONE,
             "numerics.library is none");
READ_IF(draw_of_weights, strcmp(config->model.from, CONFIG_NO_CHECKPOINT) == 0,
        "model.from gives the weights");
READ_IF(rope_scaling, config->model.rope_scaling != ROPE_PLAIN, "model.rope_scaling is none");
READ_IF(llama3, config->model.rope_scaling == ROPE_LLAMA3, "model.rope_scaling is not llama3");
READ_IF(yarn, config->model.rope_scaling == ROPE_YARN, "model.rope_scaling is not yarn");

/* A reason looks only at keys that are no rows of this table, or at the key that makes those inert;
 * so the order of the rows does not matter. That of parallel.draws looks at its own value, too. */
static const struct inert_key {
    const char *path;
    const char *(*reason)(const struct config *config);
    const char *standard; /* instead of a default that is derived; NULL: the row's default */
} table[] = {
    {"data.pairs", without_dpo, NULL},
    {"data.text", without_sft, NULL},
    {"data.seed", without_draw, "17"},
    {"data.epoch_seed", without_shuffle, NULL},
    {"batch.layout", without_dpo, NULL},
    {"model.rope_factor", without_rope_scaling, NULL},
    {"model.rope_original_positions", without_rope_scaling, NULL},
    {"model.rope_low_freq_factor", without_llama3, NULL},
    {"model.rope_high_freq_factor", without_llama3, NULL},
    {"model.rope_attention_factor", without_yarn, "1"},
    {"model.rope_beta_fast", without_yarn, NULL},
    {"model.rope_beta_slow", without_yarn, NULL},
    {"model.rope_mscale", without_yarn, NULL},
    {"model.rope_mscale_all_dim", without_yarn, NULL},
    {"model.rope_truncate", without_yarn, NULL},
    {"init.std", without_draw_of_weights, NULL},
    {"init.seed", without_draw_of_weights, "17"},
    {"dpo.loss", without_dpo, NULL},
    {"dpo.beta", without_dpo, NULL},
    {"dpo.label_smoothing", without_smoothing, NULL},
    {"dpo.gamma_beta_ratio", without_simpo, NULL},
    {"dpo.discopop_tau", without_discopop, NULL},
    {"dpo.f_divergence", without_dpo, NULL},
    {"dpo.f_alpha", without_alpha, NULL},
    {"dpo.reference", without_free, NULL},
    {"dpo.reference_batch", without_cached, "8"},
    {"dpo.reference_compute", without_reference, "f32"},
    {"dpo.reference_layout", without_reference, "separate"},
    {"loss.ranks", without_mean_of_ranks, "1"},
    {"optimizer.no_decay", without_named, NULL},
    {"clip.max_norm", without_clip, NULL},
    {"clip.eps", without_max_norm, NULL},
    {"clip.norm", without_clip, NULL},
    {"clip.dtype", without_clip, NULL},
    {"clip.form", without_max_norm, NULL},
    {"clip.apply", without_max_norm, NULL},
    {"clip.replicas", without_clip, NULL},
    {"clip.over", without_shared_clip, NULL},
    {"schedule.processes", without_contract, "1"},
    {"schedule.rescaled", without_contract, NULL},
    {"schedule.updates_per_epoch", without_contract, NULL},
    {"schedule.warmup_rounding", without_ratio, NULL},
    {"schedule.logged_shift", without_recomputed, NULL},
    {"loop.eval", without_eval, NULL},
    {"loop.on_skip", without_skip, NULL},
    {"loop.skip_window", without_outlier, NULL},
    {"loop.skip_sigma", without_outlier, NULL},
    {"dropout.seed", without_dropout, "17"},
    {"parallel.sync", without_several_ranks, NULL},
    {"parallel.keeps", without_several_ranks, NULL},
    {"parallel.logged", without_several_ranks, NULL},
    {"parallel.feeds", without_fed_ranks, NULL},
    {"parallel.zero", without_several_ranks, NULL},
    {"parallel.deal", without_several_ranks, NULL},
    {"parallel.uneven", without_deal, NULL},
    {"parallel.scale", without_tensor_ranks, NULL},
    {"parallel.forgets", without_tensor_ranks, NULL},
    {"parallel.draws", without_drawing_ranks, NULL},
    {"parallel.counts", without_counting_ranks, NULL},
    {"parallel.tensor", without_tensor_bugs, NULL},
    {"dropout.ranks", without_ranks, NULL},
    {"dropout.masks", without_ranks, NULL},
    {"dropout.recompute", without_dropout, NULL},
    {"rng.kind", without_dropout, NULL},
    {"rng.sms", without_torch, NULL},
    {"rng.threads_per_sm", without_torch, NULL},
    {"rng.vector", without_torch, NULL},
    {"rng.dropout", without_dropout, NULL},
    {"rng.rounding", without_stochastic, NULL},
    {"rng.order", without_shuffled, NULL},
    {"resume.restores", without_restart, NULL},
    {"resume.wrong", without_restart, NULL},
    {"resume.ranks", without_shards, "1"},
    {"resume.bucket", without_buffer, NULL},
    {"resume.weight_decay", without_late_decay, "0"},
    {"fault.phase", without_fault, NULL},
    {"fault.micro", without_fault, NULL},
    {"fault.layer", without_fault, NULL},
    {"fault.op", without_fault, NULL},
    {"fault.tensor", without_fault, NULL},
    {"fault.element", without_fault, NULL},
    {"fault.bit", without_fault, NULL},
    {"scaler.init_scale", without_scaler, NULL},
    {"scaler.growth_factor", without_dynamic, NULL},
    {"scaler.backoff_factor", without_dynamic, NULL},
    {"scaler.growth_interval", without_dynamic, NULL},
    {"scaler.hysteresis", without_dynamic, NULL},
    {"scaler.min_scale", without_dynamic, NULL},
    {"numerics.rope", without_wide_table, NULL},
    {"numerics.loss", without_wide_sums, "f32"},
    {"numerics.order_seed", without_shuffled, NULL},
    {"shuffle.kinds", without_shuffled, NULL},
    {"shuffle.chunk", without_shuffled, NULL},
    {"atomic.kinds", without_atomic, NULL},
    {"atomic.chunk", without_atomic, NULL},
    {"shaped.table", without_shaped, NULL},
    {"numerics.library", without_library, NULL},
    {"numerics.determinism.workspace", without_device_library, "pinned"},
    {"numerics.determinism.order", without_device_library, "fixed"},
    {"numerics.determinism.atomics", without_device_mode, "off"},
    {"numerics.determinism.split_k", without_device_library, "off"},
    {"numerics.backend_module", without_backend, NULL},
    {"parallel.reduce", without_closed, NULL},
    {"parallel.reduce_dtype", without_closed, NULL},
    {"parallel.average", without_closed, NULL},
    {"parallel.buckets", without_closed, NULL},
    {"parallel.bucket", without_ddp, NULL},
    {"parallel.race", without_ddp, NULL},
    {"parallel.chunk", without_chunks, NULL},
    {"parallel.node", without_nodes, NULL},
};

const char *inert_reason(const struct config *config, const char *path) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].path, path) == 0) return table[i].reason(config);
    return NULL;
}

/* The keys of section `fault` are reset each in its own arm: the one that makes them inert has
 * their cause, so they are always swapped together with it. Either configuration may be NULL. */
static enum status reset_alone(const struct key_row *row, struct config *a, struct config *b) {
    if (a != NULL) TRY(row_read_standard(row, row->path, a));
    return b == NULL ? STATUS_OK : row_read_standard(row, row->path, b);
}

/* Whether a default of the key is nothing that an arm could train with: data that nobody chose, and
 * a module that is not there. */
static int is_source(const struct key_row *row) {
    static const char *const sources[] = {"data.pairs", "data.text", "numerics.backend_module"};
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (strcmp(row->path, sources[i]) == 0) return 1;
    return 0;
}

/* Arm `from` reads the key, and `to` does not read the value that it has. Were the other value read
 * there, `to` would train with what nobody wrote for it: it keeps the default instead. */
static enum status follow(const struct inert_key *key, const struct key_row *row, struct config *to,
                          const struct config *from) {
    row_copy(row, to, from);
    return key->reason(to) != NULL ? STATUS_OK : row_read_standard(row, row->path, to);
}

/* Keeps what was written for an arm that does not read it, but for a word that is inert by itself
 * (parallel.draws): such an arm would read the default, and trains with that. */
static enum status keep_written(const struct inert_key *key, const struct key_row *row,
                                struct config *arm) {
    struct config trial = *arm;
    TRY(row_read_standard(row, row->path, &trial));
    return key->reason(&trial) != NULL ? STATUS_OK : row_read_standard(row, row->path, arm);
}

/* Whether the arm's course of a random stream takes what another arm has ("take test at 3"), which
 * only an arm that draws from the stream can follow. */
static int takes_course(const struct config *config, const char *path) {
    const char *const course = strcmp(path, "rng.dropout") == 0    ? config->rng.dropout
                               : strcmp(path, "rng.rounding") == 0 ? config->rng.rounding
                               : strcmp(path, "rng.order") == 0    ? config->rng.order
                                                                   : "";
    return strstr(course, "take ") != NULL;
}

/* One arm alone, `reader`, reads the key of row `index`. What the other one has is its own where it
 * was written there; a default is, too, but one that is derived from other keys is no more than
 * that of the reader. Keys about a restart are of one cause with what makes them inert, and are
 * told by what the reader has (scenarios/factor.c). */
static enum status settle_alone(const struct inert_key *key, const struct key_row *row,
                                struct config *const arms[2], int reader,
                                const unsigned char *const written[2], size_t index) {
    const int is_derived = key->standard != NULL;
    if (written == NULL || row_equal(row, arms[0], arms[1])) return STATUS_OK;
    const int is_own = written[!reader][index];
    if (row->cause != CAUSE_RESUME) {
        if (is_own && !takes_course(arms[!reader], row->path))
            return keep_written(key, row, arms[!reader]);
        if (!is_own && !is_source(row) && (!is_derived || written[reader][index])) return STATUS_OK;
    }
    return follow(key, row, arms[!reader], arms[reader]);
}

static enum status settle_one(const struct inert_key *key, struct config *const arms[2],
                              const unsigned char *const written[2]) {
    size_t index = 0;
    const struct key_row *found = schema_find(key->path, &index);
    int inert[2];
    for (int i = 0; i < 2; i++)
        inert[i] = key->reason(arms[i]) != NULL;
    if (found == NULL) FAIL(STATUS_INTERNAL, "inert key %s is no row", key->path);
    struct key_row row = *found;
    if (!inert[0] && !inert[1]) return STATUS_OK;
    if (row.cause == CAUSE_CORRUPTION)
        return reset_alone(&row, inert[0] ? arms[0] : NULL, inert[1] ? arms[1] : NULL);
    if (key->standard != NULL) row.standard = key->standard;
    if (!inert[0] || !inert[1]) return settle_alone(key, &row, arms, inert[0], written, index);
    TRY(row_read_standard(&row, row.path, arms[1]));
    row_copy(&row, arms[0], arms[1]);
    return STATUS_OK;
}

enum status inert_settle(struct config *a, struct config *b,
                         const unsigned char *const written[2]) {
    struct config *const arms[2] = {a, b};
    for (size_t i = 0; i < COUNT_OF(table); i++)
        TRY(settle_one(&table[i], arms, written));
    return STATUS_OK;
}
