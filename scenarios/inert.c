/* SPDX-License-Identifier: Apache-2.0
 * The table of keys that other keys make inert.
 *
 * What an inert key holds is decided for both arms at once. Were it reset in its own arm only, a
 * key that was written for both would differ where one arm does not read it, and a hybrid that
 * reads it again would train with a value that nobody wrote. */
#include "scenarios/inert.h"

#include <string.h>

#include "scenarios/row_value.h"
#include "scenarios/selection.h"

static const char *without_dpo(const struct config *config) {
    return config->task == TASK_DPO ? NULL : "task is sft";
}

static const char *without_sft(const struct config *config) {
    return config->task == TASK_SFT ? NULL : "task is dpo";
}

static const char *without_free(const struct config *config) {
    if (config->task != TASK_DPO) return "task is sft";
    return config_has_reference(config) ? NULL : "dpo.loss is simpo";
}

static const char *without_cached(const struct config *config) {
    const char *reason = without_free(config);
    if (reason != NULL) return reason;
    if (config->dpo.reference == REFERENCE_CACHED) return NULL;
    return config->dpo.reference == REFERENCE_LIVE ? "dpo.reference is live"
                                                   : "dpo.reference is given";
}

static const char *without_reference(const struct config *config) {
    const char *reason = without_free(config);
    if (reason != NULL) return reason;
    return config->dpo.reference == REFERENCE_GIVEN ? "dpo.reference is given" : NULL;
}

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

static const char *without_simpo(const struct config *config) {
    if (config->task != TASK_DPO) return "task is sft";
    return config->dpo.loss == DPO_SIMPO ? NULL : "dpo.loss is not simpo";
}

static const char *without_discopop(const struct config *config) {
    if (config->task != TASK_DPO) return "task is sft";
    return config->dpo.loss == DPO_DISCOPOP ? NULL : "dpo.loss is not discopop";
}

static const char *without_alpha(const struct config *config) {
    if (config->task != TASK_DPO) return "task is sft";
    return config->dpo.f_divergence == DIVERGENCE_ALPHA ? NULL : "dpo.f_divergence is not alpha";
}

/* The embedded pairs draw their rejected answers from the data seed, too, so it matters there even
 * without shuffling. */
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

static const char *without_max_norm(const struct config *config) {
    const char *reason = without_clip(config);
    return reason != NULL || config->clip.max_norm > 0.0 ? reason : "clip.max_norm is 0";
}

static const char *without_named(const struct config *config) {
    return config->optimizer.decay == DECAY_NAMED ? NULL : "optimizer.decay is not named";
}

static const char *without_contract(const struct config *config) {
    return config_has_contract(config) ? NULL : "schedule.contract is none";
}

static const char *without_ratio(const struct config *config) {
    return config->schedule.warmup_ratio == KEY_WORD_REAL ? "schedule.warmup_ratio is none" : NULL;
}

static const char *without_recomputed(const struct config *config) {
    return config->schedule.logged == LOGGED_RECOMPUTED ? NULL : "schedule.logged is current";
}

static const char *without_eval(const struct config *config) {
    return config->loop.eval_every == 0 ? "loop.eval_every is 0" : NULL;
}

static const char *without_outlier(const struct config *config) {
    return config->loop.skip == SKIP_OLMO_OUTLIER ? NULL : "loop.skip is not olmo-outlier";
}

static const char *without_skip(const struct config *config) {
    return config->loop.skip == SKIP_NONE ? "loop.skip is none" : NULL;
}

static const char *without_mean_of_ranks(const struct config *config) {
    return config->loss.divisor == DIVISOR_MEAN_OF_RANKS ? NULL
                                                         : "loss.divisor is not mean-of-ranks";
}

static const char *without_dropout(const struct config *config) {
    return config_has_dropout(config) ? NULL : "dropout is 0 everywhere";
}

static const char *without_ranks(const struct config *config) {
    if (!config_has_dropout(config)) return "dropout is 0 everywhere";
    if (config->rng.kind == RNG_TORCH) return "rng.kind is torch";
    return NULL;
}

static const char *without_torch(const struct config *config) {
    if (!config_has_dropout(config)) return "dropout is 0 everywhere";
    return config->rng.kind == RNG_TORCH ? NULL : "rng.kind is addressed";
}

static const char *without_stochastic(const struct config *config) {
    return config->numerics.rounding == ROUNDING_STOCHASTIC ? NULL : "numerics.rounding is nearest";
}

static const char *without_restart(const struct config *config) {
    return config->resume.after == 0 ? "resume.after is 0" : NULL;
}

static const char *without_scaler(const struct config *config) {
    return config->scaler.kind == SCALER_NONE ? "scaler.kind is none" : NULL;
}

static const char *without_dynamic(const struct config *config) {
    return config->scaler.kind == SCALER_DYNAMIC ? NULL : "scaler.kind is not dynamic";
}

static const char *without_shuffled(const struct config *config) {
    return config->numerics.mode == MODE_SHUFFLED ? NULL : "numerics.mode is not shuffled";
}

static const char *without_atomic(const struct config *config) {
    return config->numerics.mode == MODE_ATOMIC ? NULL : "numerics.mode is not atomic";
}

static const char *without_shaped(const struct config *config) {
    return config->numerics.mode == MODE_SHAPED ? NULL : "numerics.mode is not shaped";
}

static const char *without_backend(const struct config *config) {
    return config->numerics.backend == BACKEND_CUDA ? NULL : "numerics.backend is cpu";
}

static const char *without_free_mode(const struct config *config) {
    const int32_t mode = config->numerics.mode;
    if (mode == MODE_FAST || mode == MODE_DETERMINISTIC) return NULL;
    return "numerics.mode is neither fast nor deterministic";
}

static const char *without_library(const struct config *config) {
    if (config->numerics.backend == BACKEND_CUDA) return without_free_mode(config);
    return config->numerics.mode == MODE_FAST ? NULL : "numerics.mode is not fast";
}

static const char *without_device_mode(const struct config *config) {
    return config->numerics.backend == BACKEND_CUDA ? without_free_mode(config)
                                                    : "numerics.backend is cpu";
}

static const char *without_device_library(const struct config *config) {
    const char *const reason = without_device_mode(config);
    if (reason != NULL) return reason;
    return config->numerics.library == LIBRARY_NONE ? "numerics.library is none" : NULL;
}

static const char *without_draw_of_weights(const struct config *config) {
    return strcmp(config->model.from, CONFIG_NO_CHECKPOINT) == 0 ? NULL
                                                                 : "model.from gives the weights";
}

static const char *without_rope_scaling(const struct config *config) {
    return config->model.rope_scaling == ROPE_PLAIN ? "model.rope_scaling is none" : NULL;
}

static const char *without_llama3(const struct config *config) {
    return config->model.rope_scaling == ROPE_LLAMA3 ? NULL : "model.rope_scaling is not llama3";
}

static const char *without_yarn(const struct config *config) {
    return config->model.rope_scaling == ROPE_YARN ? NULL : "model.rope_scaling is not yarn";
}

/* A reason looks only at keys that are no rows of this table, or at the key that makes those inert;
 * so the order of the rows does not matter. */
static const struct silenced {
    const char *path;
    const char *(*reason)(const struct config *config);
    const char *standard; /* instead of a default that is derived; NULL: the row's default */
} table[] = {
    {"data.pairs", without_dpo, NULL},
    {"data.text", without_sft, NULL},
    {"data.seed", without_draw, "17"},
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
    {"loss.ranks", without_mean_of_ranks, NULL},
    {"optimizer.no_decay", without_named, NULL},
    {"clip.max_norm", without_clip, NULL},
    {"clip.eps", without_max_norm, NULL},
    {"clip.norm", without_clip, NULL},
    {"clip.dtype", without_clip, NULL},
    {"clip.form", without_max_norm, NULL},
    {"clip.apply", without_max_norm, NULL},
    {"clip.replicas", without_clip, NULL},
    {"schedule.processes", without_contract, NULL},
    {"schedule.rescaled", without_contract, NULL},
    {"schedule.updates_per_epoch", without_contract, NULL},
    {"schedule.warmup_rounding", without_ratio, NULL},
    {"schedule.logged_shift", without_recomputed, NULL},
    {"loop.eval", without_eval, NULL},
    {"loop.on_skip", without_skip, NULL},
    {"loop.skip_window", without_outlier, NULL},
    {"loop.skip_sigma", without_outlier, NULL},
    {"dropout.seed", without_dropout, "17"},
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
    {"scaler.init_scale", without_scaler, NULL},
    {"scaler.growth_factor", without_dynamic, NULL},
    {"scaler.backoff_factor", without_dynamic, NULL},
    {"scaler.growth_interval", without_dynamic, NULL},
    {"scaler.hysteresis", without_dynamic, NULL},
    {"scaler.min_scale", without_dynamic, NULL},
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
};

const char *inert_reason(const struct config *config, const char *path) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].path, path) == 0) return table[i].reason(config);
    return NULL;
}

static enum status settle_one(const struct silenced *silenced, struct config *a, struct config *b) {
    const struct key_row *found = schema_find(silenced->path, NULL);
    int inert_a = silenced->reason(a) != NULL;
    int inert_b = silenced->reason(b) != NULL;
    if (found == NULL) FAIL(STATUS_INTERNAL, "inert key %s is no row", silenced->path);
    struct key_row row = *found;
    if (!inert_a && !inert_b) return STATUS_OK;
    if (!inert_a) {
        row_copy(&row, b, a);
        return STATUS_OK;
    }
    if (inert_b) {
        if (silenced->standard != NULL) row.standard = silenced->standard;
        TRY(row_read_standard(&row, row.path, b));
    }
    row_copy(&row, a, b);
    return STATUS_OK;
}

enum status inert_settle(struct config *a, struct config *b) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        TRY(settle_one(&table[i], a, b));
    return STATUS_OK;
}
