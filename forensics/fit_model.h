/* SPDX-License-Identifier: Apache-2.0
 * One contract with one schedule and loose numbers: what the search of fits turns.
 *
 * Numbers are in updates of the contract; the model converts to counter units. Private to
 * forensics/fit*.c. Invariant: a model is evaluated by sched/contract.h only, so whatever fits is
 * what `lr table` prints. */
#ifndef TWINSTEP_FORENSICS_FIT_MODEL_H
#define TWINSTEP_FORENSICS_FIT_MODEL_H

#include "forensics/fit.h"

enum fit_floor { FIT_FLOOR_NONE = 0, FIT_FLOOR_RATIO, FIT_FLOOR_ABSOLUTE };

struct fit_numbers {
    double lr, warmup, total; /* L, W, T; T 0: none */
    double floor;             /* lowest LR: share of L, or an LR where `absolute` */
    double stride;
    uint64_t epoch; /* updates per epoch, CONTRACT_UNIT_EPOCH; else 0 */
    int absolute;
};

struct fit_model {
    const struct contract *contract;
    const char *schedule_name;
    const char *parameters;    /* "key=text" of a variant, "" */
    struct contract_plan plan; /* with its own values */
    struct fit_numbers now;    /* what the plan is set to */
    double unit;               /* counter units of one update in plain use */
    double scale;              /* counter units of one update of T */
    double warmup_scale;       /* ... and of W */
    double *floor;             /* in the values; NULL: none */
    int32_t floor_kind;        /* enum fit_floor */
    double floor_default;      /* in units of the key */
    uint8_t needs_total, needs_warmup;
    uint8_t plain_rise;  /* the warm-up depends on neither total nor floor */
    uint8_t linear;      /* proportional to L while the floor is */
    uint8_t given_floor; /* the request fixed it */
};

/* Lengths of a decay behind a plateau that are worth a try, in updates. */
#define FIT_DECAYS 8
struct fit_decays {
    char text[FIT_DECAYS][24];
    size_t count;
};

/* All models of the request: its contract or every one that `known` admits, its schedule or every
 * one; of schedules with a plateau, each of `decays` with every shape. */
TWINSTEP_MUST_USE enum status fit_models(const struct contract_request *request,
                                         const struct fit_known *known,
                                         const struct fit_decays *decays, struct arena *arena,
                                         struct fit_model **out, size_t *count);
void fit_model_set(struct fit_model *model, const struct fit_numbers *numbers);
/* Values change by the same factor as L. */
int fit_model_proportional(const struct fit_model *model);
/* Logged LR of update k + shift, which is update 1 where that is less. */
double fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);
/* Copy with values of its own. */
TWINSTEP_MUST_USE enum status fit_model_copy(const struct fit_model *model, struct arena *arena,
                                             struct fit_model *out);

#endif
