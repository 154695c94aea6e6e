/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's SequentialScheduler: schedules one after the other, each with a counter of its own
 * and beginning at the rate where the one before ended. Source: OLMo-core
 * olmo_core/optim/scheduler.py of 3.0.0 (SequentialScheduler), operations in its order.
 *
 * `stages` lists them as NAME:LENGTH, each with KEY=VALUE parts ("warmup" and the parameters of
 * that schedule); the last one has no length and runs to the total, as theirs does. Lengths in the
 * list are in length_unit. Without a list there are two stages, given by the other keys. Theirs
 * asserts that the counter never passes the total; here the last stage goes on. */
#include "sched/olmo_core.h"

#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "sched/stages.h"

#define VALUES_BYTES 256
#define SHAPES                                                                                     \
    "constant, constant_with_warmup, linear, cosine, half_cosine, inverse_sqrt, "                  \
    "cosine_linear_decay, wsd, power, wsds"

struct sequential_values {
    double min_lr_ratio;
    double warmup_min_lr;
    double change;
    double second_warmup;
    double length_unit;
    int32_t first;
    int32_t second;
    char stages[STAGES_TEXT];
};

enum shape { SHAPE_CONSTANT, SHAPE_WARMUP, SHAPE_LINEAR, SHAPE_COSINE };

static const char *const shapes[] = {"constant", "constant_with_warmup", "linear", "cosine", NULL};

static const struct key_row keys[] = {
    SCHED_REAL(sequential_values, min_lr_ratio, .standard = "0.1", .high = 1,
               .help = OLMO_FLOOR_HELP),
    SCHED_REAL(sequential_values, warmup_min_lr, .standard = "0", .high = 1e6,
               .help = OLMO_WARMUP_HELP),
    SCHED_LENGTH(sequential_values, change,
                 "Counter at which the second stage begins; auto is half"),
    SCHED_ROW(KEY_REAL, sequential_values, second_warmup, .unit = "counter", .standard = "0",
              .high = 0x1p53, .help = "Warm-up of the second stage"),
    SCHED_ENUM(sequential_values, first, .standard = "constant_with_warmup", .names = shapes,
               .help = "First stage"),
    SCHED_ENUM(sequential_values, second, .standard = "linear", .names = shapes,
               .help = "Second stage"),
    STAGES_TEXT_ROW(sequential_values, stages,
                    "Any number of stages instead, as linear:100:warmup=10,cosine:300,constant"),
    STAGES_UNIT_ROW(sequential_values),
};

static const struct sequential_values *values_of(const struct sched_call *call) {
    return SCHED_VALUES(call, sequential_values);
}

/* One stage, ready to be called. */
struct stage {
    const struct sched_class *schedule;
    struct sched_call call;
    double length; /* 0: it runs to the total */
    _Alignas(8) char values[VALUES_BYTES];
};

static enum status fail_item(const char *list, const char *item) {
    FAIL(STATUS_INPUT,
         "schedule.stages: expected NAME:LENGTH:KEY=VALUE with NAME one of " SHAPES
         ", and no LENGTH in the last one, got \"%s\" in \"%s\"",
         item, list);
}

static enum status open_stage(const struct sched_call *call, const struct sched_class *schedule,
                              struct stage *out) {
    memset(out, 0, sizeof *out);
    if (schedule->values_size > sizeof out->values)
        FAIL(STATUS_INTERNAL, "schedule %s: %zu bytes of parameters", schedule->name,
             schedule->values_size);
    TRY(sched_values_standard(schedule, out->values));
    out->schedule = schedule;
    out->call = *call;
    out->call.values = out->values;
    out->call.state = NULL;
    out->call.warmup = 0.0;
    return STATUS_OK;
}

/* Sets one KEY=VALUE part of a stage; its lengths are in units of the list. */
static enum status set_value(const struct sched_call *call, const char *part, struct stage *out) {
    const double unit = values_of(call)->length_unit;
    const char *list = values_of(call)->stages;
    const size_t length = strcspn(part, "=");
    char key[STAGES_PART];
    double x;
    memcpy(key, part, length);
    key[length] = '\0';
    if (strcmp(key, "warmup") == 0) {
        TRY(stages_number("stages", list, part + length + 1, 0.0, 0x1p53, &x));
        out->call.warmup = unit * x;
        return STATUS_OK;
    }
    const struct key_row *row = sched_row(out->schedule, key);
    if (row != NULL && row->type == KEY_TEXT) return fail_item(list, part);
    const enum status status = sched_values_set(out->schedule, out->values, key, part + length + 1);
    if (status != STATUS_OK) return status_prefix(status, "schedule.stages, %s", part);
    if (row->type != KEY_REAL || strcmp(row->unit, "counter") != 0) return STATUS_OK;
    memcpy(&x, out->values + row->offset, sizeof x);
    x *= unit; /* auto is negative, and stays so */
    memcpy(out->values + row->offset, &x, sizeof x);
    return STATUS_OK;
}

/* Reads one item of the list. The warm-up of the training is that of the first stage, unless the
 * stage names one itself. */
static enum status read_item(const struct sched_call *call, const char *item, int first, int last,
                             struct stage *out) {
    const char *list = values_of(call)->stages;
    const char *at = item;
    char part[STAGES_PART];
    if (!stages_next(&at, ':', part, sizeof part)) return fail_item(list, item);
    const struct sched_class *schedule = sched_find_in("olmo-core", part);
    if (schedule == NULL || strchr(part, '.') != NULL || schedule == &sched_olmo_sequential ||
        schedule == &sched_olmo_composable)
        return fail_item(list, item);
    TRY(open_stage(call, schedule, out));
    if (first) out->call.warmup = call->warmup;
    while (at != NULL) {
        if (!stages_next(&at, ':', part, sizeof part)) return fail_item(list, item);
        if (strchr(part, '=') != NULL)
            TRY(set_value(call, part, out));
        else if (out->length > 0.0)
            return fail_item(list, item);
        else
            TRY(stages_number("stages", list, part, 1e-9, 0x1p53, &out->length));
    }
    out->length *= values_of(call)->length_unit;
    if (last != !(out->length > 0.0)) return fail_item(list, item);
    return STATUS_OK;
}

/* Sets a parameter of a stage, where the stage has it. A search calls this often, so that only a
 * value to be refused is written as text. */
static enum status set_common(const char *key, double x, struct stage *out) {
    const struct key_row *row = sched_row(out->schedule, key);
    if (row == NULL) return STATUS_OK;
    if (!(x >= row->low && x <= row->high))
        return sched_values_set(out->schedule, out->values, key, number_text_f64(x).text);
    memcpy(out->values + row->offset, &x, sizeof x);
    return STATUS_OK;
}

/* Stage i of the two that the other keys describe, where no list is given. */
static enum status read_pair(const struct sched_call *call, size_t i, struct stage *out) {
    static const struct sched_class *const classes[] = {&sched_olmo_constant,
                                                        &sched_olmo_constant_with_warmup,
                                                        &sched_olmo_linear, &sched_olmo_cosine};
    const struct sequential_values *values = values_of(call);
    const double half = sched_half_even(call->total * 0.5);
    TRY(open_stage(call, classes[i == 0 ? values->first : values->second], out));
    TRY(set_common("min_lr_ratio", values->min_lr_ratio, out));
    TRY(set_common("warmup_min_lr", values->warmup_min_lr, out));
    out->call.warmup = i == 0 ? call->warmup : values->second_warmup;
    if (i == 0) out->length = values->change >= 0.0 ? values->change : half;
    return STATUS_OK;
}

/* Reads stage i. *at walks along the list and is NULL after its last item. */
static enum status next_stage(const struct sched_call *call, size_t i, const char **at,
                              struct stage *out) {
    const char *list = values_of(call)->stages;
    char item[STAGES_TEXT];
    if (!stages_given(list)) {
        *at = i == 0 ? list : NULL;
        return read_pair(call, i, out);
    }
    stages_next(at, ',', item, sizeof item);
    return read_item(call, item, i == 0, *at == NULL, out);
}

/* The rate at counter c (_sequential_lr). With `check` every stage's own check runs, and all of
 * them are visited. A stage takes its base rate from the last rate of the one before. */
static enum status rate(const struct sched_call *call, double c, int check, double *out) {
    const char *at = values_of(call)->stages;
    double left = call->total;
    double base = call->base_lr;
    struct stage stage;
    for (size_t i = 0;; i++) {
        TRY(next_stage(call, i, &at, &stage));
        const int last = at == NULL;
        stage.call.base_lr = base;
        stage.call.total = last ? left : stage.length;
        if (check) TRY(stage.schedule->validate(&stage.call));
        if (last || (!check && c <= stage.length)) {
            if (!(left > 0.0))
                FAIL(STATUS_INPUT, "schedule.stages: they are as long as the total of %.17g",
                     call->total);
            if (!last && left < stage.length) stage.call.total = left;
            *out = stage.schedule->value(&stage.call, c);
            return STATUS_OK;
        }
        base = stage.schedule->value(&stage.call, stage.length);
        c -= stage.length;
        left -= stage.length;
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
    const struct sequential_values *values = values_of(call);
    double lr;
    TRY(olmo_check_starts(call, values->warmup_min_lr, 0.0));
    if (!stages_given(values->stages) && values->change >= call->total)
        FAIL(STATUS_INPUT, "schedule.change: expected less than the total of %.17g, got %.17g",
             call->total, values->change);
    return rate(call, call->total, 1, &lr);
}

SCHED_CLASS(sched_olmo_sequential, "olmo-core.sequential",
            "Stages, each beginning at the last rate of the one before with a counter of its own, "
            "as OLMo-core SequentialScheduler",
            SCHED_KEYS(keys, sequential_values), .value = sequential_value,
            .minimum = sequential_minimum, .validate = sequential_validate);
