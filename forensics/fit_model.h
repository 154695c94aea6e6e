/* SPDX-License-Identifier: Apache-2.0
 * One contract with one schedule and loose numbers: what the search of fits turns. Private to
 * forensics/fit*.c.
 *
 * Numbers are in updates of the contract; the model converts them to units of its counter.
 * Invariant: a model is evaluated by sched/contract.h alone, so whatever fits is what `lr table`
 * prints. */
#ifndef TWINSTEP_FORENSICS_FIT_MODEL_H
#define TWINSTEP_FORENSICS_FIT_MODEL_H

#include "forensics/fit.h"

enum fit_floor { FIT_FLOOR_NONE = 0, FIT_FLOOR_RATIO, FIT_FLOOR_ABSOLUTE };

struct fit_numbers {
    double lr, warmup, total; /* peak L, warm-up W and total T; T 0: there is none */
    double floor;             /* the lowest LR: a share of L, or an LR where `absolute` is set */
    double stride;
    uint64_t epoch; /* updates per epoch for CONTRACT_UNIT_EPOCH, else 0 */
    int absolute;
};

struct fit_model {
    const struct contract *contract;
    const char *schedule_name;
    const char *parameters;    /* "key=text" of a variant, or "" */
    struct contract_plan plan; /* the plan, with values of its own */
    struct fit_numbers now;    /* the numbers that the plan is set to */
    double unit;               /* units of the counter per update in plain use */
    double scale;              /* units of the counter per update of T */
    double warmup_scale;       /* and per update of W */
    double *floor;             /* the floor's place in the values; NULL: the schedule has none */
    int32_t floor_kind;        /* enum fit_floor */
    uint32_t function;         /* models with equal ones are one function of their numbers */
    double floor_default;      /* the default, in units of the key */
    uint8_t needs_total, needs_warmup;
    uint8_t plain_rise;  /* 1: the warm-up depends on neither the total nor the floor */
    uint8_t linear;      /* 1: the LR is proportional to L while the floor is */
    uint8_t levels;      /* 1: a floor that is L leaves nothing that falls behind the warm-up */
    uint8_t is_elder;    /* 1: an elder form of a schedule, which nobody asked for: it differs from
                            today's by the floor in its warm-up alone */
    uint8_t given_floor; /* 1: the request fixed the floor as a share of L; 2: as a value of the
                            schedule */
};

/* Lengths of a decay behind a plateau that are worth a try, in updates. */
#define FIT_DECAYS 16
/* Ends of a decay that goes on behind the last row. */
#define FIT_ENDS 8
struct fit_decays {
    char text[FIT_DECAYS][24];
    size_t count;
    struct {
        double update; /* at which the column would come to its floor */
        double floor;  /* the LR there, above 0 */
    } ends[FIT_ENDS];
    size_t end_count;
};

/* Numbers the functions of a list once, since every pass of the search asks of most pairs of
 * models: each gets the place of the first that is the same function of its numbers. fit_models()
 * has done it. */
void fit_models_number(struct fit_model *models, size_t count);

/* Makes all models of the request: its contract or every one that `known` admits, with its schedule
 * or every one. Of schedules with a plateau, each of `decays` is made with every shape. */
TWINSTEP_MUST_USE enum status fit_models(const struct contract_request *request,
                                         const struct fit_known *known,
                                         const struct fit_decays *decays, struct arena *arena,
                                         struct fit_model **out, size_t *count);
void fit_model_set(struct fit_model *model, const struct fit_numbers *numbers);
/* Each changes one of the numbers that were set, which a search does at most of its steps. */
void fit_model_set_lr(struct fit_model *model, double lr);
void fit_model_set_total(struct fit_model *model, double total);
/* Tells whether the model with these numbers is a find of its own: an elder form that prints what
 * today's does, as without a floor or a warm-up, is listed under today's name. */
int fit_model_is_listed(const struct fit_model *model, const struct fit_numbers *numbers);
/* Tells whether all values change by the same factor as L. */
static inline int fit_model_proportional(const struct fit_model *model) {
    return model->linear && (!model->now.absolute || model->now.floor == 0.0);
}
/* Returns the logged LR of update k + shift, or of update 1 where that is below 1. */
double fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);
/* Copies a model and gives the copy values of its own. */
TWINSTEP_MUST_USE enum status fit_model_copy(const struct fit_model *model, struct arena *arena,
                                             struct fit_model *out);

#endif
