/* SPDX-License-Identifier: Apache-2.0
 * The noise floors of a built-in ladder of models, one line per model, mode and dtype.
 *
 * The ladder is the product of families, tasks, depths and widths. Nothing is printed here: each
 * case is shown to the caller while it is in memory, and only the worst figures of its strata are
 * kept. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_MODELS_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_MODELS_H

#include "experiment/noise/noise_report.h"
#include "scenarios/scenario.h"

#define NOISE_MODELS 24 /* 2 families x 2 tasks x 3 depths x 2 widths */

/* A model as it was built, which is not the ladder's where an override says otherwise. */
struct noise_model {
    const char *family, *task;
    unsigned layers, hidden;
};

/* The worst variant of a stratum. */
struct noise_models_cell {
    uint32_t measured, apart; /* the number of variants measured, and of those that differ */
    uint32_t tensors, equal;  /* the number of gradients, and of bit-equal ones */
    double tensor, total;     /* largest relative difference of a norm: of one tensor, of all */
};

struct noise_models_line {
    struct noise_model model;
    const char *mode, *dtype;
    char reset[NOISE_REASON_SIZE];      /* as in struct noise_case */
    char untestable[NOISE_REASON_SIZE]; /* "" when the case was measured */
    struct noise_models_cell cells[NOISE_STRATA];
};

struct noise_models_request {
    struct noise_request of; /* without a configuration; its progress counts cases */
    const struct schema *schema;
    const char *const *sets; /* overrides, "key=value" */
    size_t set_count;
    struct noise_words words;
    uint64_t threads; /* as in noise_case_set_up */
    /* Shown every case when it is measured; NULL: nobody is. What `one` points to ends with the
     * call. */
    void (*measured)(void *context, const struct noise_model *model, const struct noise_case *one);
    void *context;
};

struct noise_models {
    struct noise_models_line *lines;
    uint32_t count;
    struct backend_seen device; /* what the last model ran on */
    const char *device_line;
};

/* Everything that is kept lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_models_measure(const struct noise_models_request *request,
                                                   struct arena *arena, struct noise_models *out);

/* The number of variants, over all lines, that are bit-equal and that are apart; the strata one-ulp
 * and f64, which are meant to differ, are not counted. */
struct noise_counts noise_models_count(const struct noise_models *models);

#endif
