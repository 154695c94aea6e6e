/* SPDX-License-Identifier: Apache-2.0
 * torch's SequentialLR over its own schedulers. Each begins at L with a counter of its own when the
 * one before has had its steps, and computes each rate from the one before, as torch does. Source:
 * PyTorch torch/optim/lr_scheduler.py of 2.15.0 (SequentialLR, ConstantLR, LinearLR, ExponentialLR,
 * StepLR, PolynomialLR, CosineAnnealingLR), operations in its order.
 *
 * `stages` lists them as NAME:LENGTH with KEY=VALUE parts; the last one has no length and goes on.
 * The total matters only for the last stage's t_max. Three schedulers cannot be stages here:
 * OneCycleLR (it overwrites the optimizer's initial rate), LambdaLR and MultiStepLR. */
#include <string.h>

#include "base/real.h"
#include "sched/stages.h"

/* Steps are whole. Beyond this many steps of one stage its recursion is not followed any further,
 * and the rate stays: chosen so that one call far out costs a million steps at most. */
#define LIMIT 0x1p20

struct sequential_values {
    double length_unit;
    char stages[STAGES_TEXT];
};

static const struct key_row keys[] = {
    STAGES_TEXT_ROW(
        sequential_values, stages,
        "Stages, as "
        "linear:20:start_factor=0.1:total_iters=20,cosine:500:t_max=500,constant:factor=0.1"),
    STAGES_UNIT_ROW(sequential_values),
};

static const struct sequential_values *values_of(const struct sched_call *call) {
    return SCHED_VALUES(call, sequential_values);
}

enum shape {
    SHAPE_CONSTANT,
    SHAPE_LINEAR,
    SHAPE_EXPONENTIAL,
    SHAPE_STEP,
    SHAPE_POLY,
    SHAPE_COSINE
};

static const char *const names[] = {"constant", "linear",     "exponential",
                                    "step",     "polynomial", "cosine"};

enum part {
    PART_FACTOR,
    PART_TOTAL_ITERS,
    PART_START,
    PART_END,
    PART_GAMMA,
    PART_STEP_SIZE,
    PART_POWER,
    PART_T_MAX,
    PART_MIN_LR,
    PARTS
};

/* The parameters that a stage may name. Defaults are torch's; 0 of step_size and t_max stands for
 * "not given". */
static const struct part_row {
    const char *name;
    double standard, low, high;
    unsigned shapes; /* one bit for each enum shape that has it */
    int counts;      /* 1: it is a length, in length_unit */
} parts[PARTS] = {
    [PART_FACTOR] = {"factor", 1.0 / 3.0, 1e-12, 1.0, 1u << SHAPE_CONSTANT, 0},
    [PART_TOTAL_ITERS] = {"total_iters", 5.0, 1.0, 0x1p53,
                          1u << SHAPE_CONSTANT | 1u << SHAPE_LINEAR | 1u << SHAPE_POLY, 1},
    [PART_START] = {"start_factor", 1.0 / 3.0, 1e-12, 1.0, 1u << SHAPE_LINEAR, 0},
    [PART_END] = {"end_factor", 1.0, 0.0, 1.0, 1u << SHAPE_LINEAR, 0},
    [PART_GAMMA] = {"gamma", 0.1, 0.0, 10.0, 1u << SHAPE_EXPONENTIAL | 1u << SHAPE_STEP, 0},
    [PART_STEP_SIZE] = {"step_size", 0.0, 1.0, 0x1p53, 1u << SHAPE_STEP, 1},
    [PART_POWER] = {"power", 1.0, 0.0, 1000.0, 1u << SHAPE_POLY, 0},
    [PART_T_MAX] = {"t_max", 0.0, 1.0, 0x1p53, 1u << SHAPE_COSINE, 1},
    [PART_MIN_LR] = {"min_lr", 0.0, 0.0, 1e6, 1u << SHAPE_COSINE, 0},
};

struct stage {
    int32_t shape;
    int first;
    double length; /* 0: it goes on to the end */
    double base;
    double part[PARTS];
};

static enum status fail_item(const char *list, const char *item) {
    FAIL(STATUS_INPUT,
         "schedule.stages: expected NAME:LENGTH:KEY=VALUE with NAME one of constant, linear, "
         "exponential, step, polynomial, cosine, and no LENGTH in the last one, got \"%s\" in "
         "\"%s\"",
         item, list);
}

static enum status set_part(const struct sched_call *call, const char *word, struct stage *out) {
    const char *list = values_of(call)->stages;
    const size_t length = strcspn(word, "=");
    for (size_t i = 0; i < PARTS; i++) {
        const struct part_row *row = &parts[i];
        if (strlen(row->name) != length || strncmp(row->name, word, length) != 0) continue;
        if ((row->shapes & 1u << out->shape) == 0) break;
        TRY(stages_number("stages", list, word + length + 1, row->low, row->high, &out->part[i]));
        if (row->counts) out->part[i] *= values_of(call)->length_unit;
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "schedule.stages: %s has no parameter \"%.*s\", in \"%s\"",
         names[out->shape], (int)length, word, list);
}

static enum status read_stage(const struct sched_call *call, const char **list_at, double begin,
                              struct stage *out) {
    const char *list = values_of(call)->stages;
    char item[STAGES_TEXT], word[STAGES_PART];
    memset(out, 0, sizeof *out);
    out->first = *list_at == list;
    out->base = call->base_lr;
    stages_next(list_at, ',', item, sizeof item);
    const char *at = item;
    if (!stages_next(&at, ':', word, sizeof word)) return fail_item(list, item);
    for (out->shape = 0; out->shape < (int32_t)(sizeof names / sizeof names[0]); out->shape++)
        if (strcmp(names[out->shape], word) == 0) break;
    if (out->shape == (int32_t)(sizeof names / sizeof names[0])) return fail_item(list, item);
    for (size_t i = 0; i < PARTS; i++)
        out->part[i] = parts[i].standard;
    while (at != NULL) {
        if (!stages_next(&at, ':', word, sizeof word)) return fail_item(list, item);
        if (strchr(word, '=') != NULL)
            TRY(set_part(call, word, out));
        else if (out->length > 0.0)
            return fail_item(list, item);
        else
            TRY(stages_number("stages", list, word, 1.0, 0x1p53, &out->length));
    }
    out->length *= values_of(call)->length_unit;
    if ((*list_at != NULL) != (out->length > 0.0)) return fail_item(list, item);
    if (out->shape == SHAPE_STEP && !(out->part[PART_STEP_SIZE] > 0.0))
        FAIL(STATUS_INPUT, "schedule.stages: expected step_size=N, got \"%s\" in \"%s\"", item,
             list);
    if (!(out->part[PART_T_MAX] > 0.0))
        out->part[PART_T_MAX] = out->length > 0.0 ? out->length : call->total - begin;
    if (out->shape == SHAPE_COSINE && !(out->part[PART_T_MAX] >= 1.0))
        FAIL(STATUS_INPUT, "schedule.stages: expected t_max=N, got \"%s\" in \"%s\"", item, list);
    if (out->shape == SHAPE_COSINE && !(out->part[PART_MIN_LR] <= out->base))
        FAIL(STATUS_INPUT, "schedule.stages: expected min_lr of at most %.17g, got \"%s\"",
             out->base, item);
    return STATUS_OK;
}

/* The rate at counter 0 of a stage. SequentialLR begins every later stage by step(0), for which
 * torch asks the closed form. */
static double begin_of(const struct stage *stage) {
    const double eta = stage->part[PART_MIN_LR];
    if (stage->shape == SHAPE_CONSTANT) return stage->base * stage->part[PART_FACTOR];
    if (stage->shape == SHAPE_LINEAR) return stage->base * stage->part[PART_START];
    if (stage->shape == SHAPE_COSINE && !stage->first)
        return eta + (stage->base - eta) * (1.0 + 1.0) / 2.0;
    return stage->base;
}

static double linear_step(const struct stage *stage, double t, double lr) {
    const double start = stage->part[PART_START];
    const double rise = stage->part[PART_END] - start;
    if (t > stage->part[PART_TOTAL_ITERS]) return lr;
    return lr * (1.0 + rise / (stage->part[PART_TOTAL_ITERS] * start + (t - 1.0) * rise));
}

/* PolynomialLR.get_lr: at the last step the share is 0, which ends at 0, but for a power of 0, by
 * which nothing moves (0.0**0 is 1). */
static double poly_step(const struct stage *stage, double t, double lr) {
    const double total = stage->part[PART_TOTAL_ITERS];
    if (t > total) return lr;
    const double share = (1.0 - t / total) / (1.0 - (t - 1.0) / total);
    return lr * sched_pow(share, stage->part[PART_POWER]);
}

static double cosine_step(const struct stage *stage, double t, double lr) {
    const double total = stage->part[PART_T_MAX];
    const double eta = stage->part[PART_MIN_LR];
    const double waves = (t - 1.0 - total) / (2.0 * total);
    if (waves >= 0.0 && sched_floor(waves) == waves)
        return lr + (stage->base - eta) * (1.0 - sched_cos(SCHED_PI / total)) / 2.0;
    return (1.0 + sched_cos(SCHED_PI * t / total)) /
               (1.0 + sched_cos(SCHED_PI * (t - 1.0) / total)) * (lr - eta) +
           eta;
}

static double step_of(const struct stage *stage, double t, double lr) {
    const double turns = t / stage->part[PART_STEP_SIZE];
    switch (stage->shape) {
    case SHAPE_CONSTANT:
        return t == stage->part[PART_TOTAL_ITERS] ? lr * (1.0 / stage->part[PART_FACTOR]) : lr;
    case SHAPE_LINEAR:
        return linear_step(stage, t, lr);
    case SHAPE_EXPONENTIAL:
        return lr * stage->part[PART_GAMMA];
    case SHAPE_STEP:
        return sched_floor(turns) == turns ? lr * stage->part[PART_GAMMA] : lr;
    case SHAPE_POLY:
        return poly_step(stage, t, lr);
    default:
        return cosine_step(stage, t, lr);
    }
}

/* Where the recursion stands, and for which numbers. All zero means that it has not begun. It only
 * saves time. */
struct sequential_state {
    struct sequential_values values;
    double base, total, begin; /* the counter at which the stage begins */
    double t, lr;              /* the step within the stage, and its rate */
};

static int continues(const struct sequential_state *at, const struct sched_call *call, double begin,
                     double t) {
    return at->base == call->base_lr && at->total == call->total && at->begin == begin &&
           at->t > 0.0 && at->t <= t && memcmp(&at->values, call->values, sizeof at->values) == 0;
}

static double follow(const struct sched_call *call, const struct stage *stage, double begin,
                     double s) {
    struct sequential_state *kept = (struct sequential_state *)call->state;
    const double last = s < LIMIT ? s : LIMIT;
    double t = 0.0;
    double lr = begin_of(stage);
    if (kept != NULL && continues(kept, call, begin, last)) {
        t = kept->t;
        lr = kept->lr;
    }
    for (; t + 1.0 <= last; t += 1.0)
        lr = step_of(stage, t + 1.0, lr);
    if (kept != NULL) {
        kept->values = *values_of(call);
        kept->base = call->base_lr;
        kept->total = call->total;
        kept->begin = begin;
        kept->t = t;
        kept->lr = lr;
    }
    return lr;
}

static enum status rate(const struct sched_call *call, double c, int check, double *out) {
    struct stage stage;
    double begin = 0.0;
    for (const char *at = values_of(call)->stages;;) {
        TRY(read_stage(call, &at, begin, &stage));
        const int here = at == NULL || c < begin + stage.length;
        if (here) *out = check ? 0.0 : follow(call, &stage, begin, c - begin);
        if (at == NULL || (here && !check)) return STATUS_OK;
        begin += stage.length;
    }
}

static double sequential_value(const struct sched_call *call, double counter) {
    double lr;
    const enum status status = rate(call, sched_clamp_counter(counter), 0, &lr);
    return status == STATUS_OK ? lr : real_nan_f64();
}

static double sequential_minimum(const struct sched_call *call) {
    return sequential_value(call, call->total);
}

static enum status sequential_validate(const struct sched_call *call) {
    double lr;
    TRY(sched_check_call(call));
    if (!stages_given(values_of(call)->stages))
        FAIL(STATUS_INPUT,
             "schedule.stages: expected stages, as linear:20:start_factor=0.1:total_iters=20,"
             "cosine:500:t_max=500,constant:factor=0.1; got none");
    return rate(call, 0.0, 1, &lr);
}

SCHED_CLASS(sched_torch_sequential, "torch.sequential",
            "torch schedulers one after the other, each from L with a counter of its own, as torch "
            "SequentialLR; it has no warm-up",
            SCHED_KEYS(keys, sequential_values), .state_size = sizeof(struct sequential_state),
            .value = sequential_value, .minimum = sequential_minimum,
            .validate = sequential_validate);
