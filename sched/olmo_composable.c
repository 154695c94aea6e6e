/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's ComposableScheduler: linear or cosine stages of their own lengths, one after the
 * other, then the last rate for ever; and a decay that overrides them from some counter on. Neither
 * the total nor a warm-up plays a part. Source: OLMo-core olmo_core/optim/scheduler.py of 3.0.0
 * (ComposableScheduler, OverrideDecay, _interpolate_lr), operations in its order.
 *
 * A stage is SHAPE:LENGTH:END or SHAPE:LENGTH:START:END. START and END are shares of L (theirs:
 * end_lr_fraction) or, after "=", rates (end_lr); without START a stage begins where the one before
 * ended, the first one at L. "constant:LENGTH" stays there. The override is
 * SHAPE:START:LENGTH:END. */
#include "sched/olmo_core.h"

#include <string.h>

#include "base/real.h"
#include "sched/stages.h"

#define OVERRIDE_TEXT 40

struct composable_values {
    double length_unit;
    char stages[STAGES_TEXT];
    char override_decay[OVERRIDE_TEXT];
};

static const struct key_row keys[] = {
    STAGES_TEXT_ROW(composable_values, stages,
                    "Stages, as linear:1000:0:1,cosine:5000:0.1: shape, length, start, end"),
    STAGES_TEXT_ROW(composable_values, override_decay,
                    "Decay instead of them, as linear:4000:500:0: shape, start, length, end"),
    STAGES_UNIT_ROW(composable_values),
};

static const struct composable_values *values_of(const struct sched_call *call) {
    return SCHED_VALUES(call, composable_values);
}

/* One stage in absolute numbers: `length` counters from `start` on, from rate `from` to `to`. */
struct piece {
    int cosine;
    double start, length, from, to;
};

static double interpolate(const struct piece *p, double c) {
    if (p->cosine)
        return p->to + (p->from - p->to) * (1.0 + sched_cos(SCHED_PI * c / p->length)) / 2.0;
    return p->from + (p->to - p->from) * c / p->length;
}

static enum status read_rate(const char *key, const char *list, const char *word, double base,
                             double *out) {
    const int is_rate = word[0] == '=';
    TRY(stages_number(key, list, word + is_rate, 0.0, 1e6, out));
    if (!is_rate) *out = base * *out;
    return STATUS_OK;
}

/* Splits an item into its words; those after the last are "". */
static enum status split(const char *key, const char *list, const char *item,
                         char words[4][STAGES_PART]) {
    const char *at = item;
    memset(words, 0, 4 * sizeof words[0]);
    for (size_t i = 0; i < 4 && at != NULL; i++)
        if (!stages_next(&at, ':', words[i], STAGES_PART)) break;
    const int shaped = strcmp(words[0], "linear") == 0 || strcmp(words[0], "cosine") == 0 ||
                       strcmp(words[0], "constant") == 0;
    if (at == NULL && shaped && words[1][0] != '\0') return STATUS_OK;
    FAIL(STATUS_INPUT,
         "schedule.%s: expected linear, cosine or constant, then numbers between colons, got "
         "\"%s\" in \"%s\"",
         key, item, list);
}

/* Reads one stage, which begins at rate `before` unless it says otherwise. */
static enum status read_piece(const struct sched_call *call, const char *item, double before,
                              struct piece *out) {
    char words[4][STAGES_PART];
    const char *list = values_of(call)->stages;
    TRY(split("stages", list, item, words));
    const int constant = strcmp(words[0], "constant") == 0;
    const char *end = words[3][0] != '\0' ? words[3] : words[2];
    const char *start = words[3][0] != '\0' ? words[2] : "";
    if (constant != (end[0] == '\0'))
        FAIL(STATUS_INPUT, "schedule.stages: expected %s, got \"%s\" in \"%s\"",
             constant ? "constant:LENGTH" : "SHAPE:LENGTH:END or SHAPE:LENGTH:START:END", item,
             list);
    out->cosine = strcmp(words[0], "cosine") == 0;
    TRY(stages_number("stages", list, words[1], 1e-9, 0x1p53, &out->length));
    out->length *= values_of(call)->length_unit;
    out->from = out->to = before;
    if (end[0] != '\0') TRY(read_rate("stages", list, end, call->base_lr, &out->to));
    if (start[0] != '\0') TRY(read_rate("stages", list, start, call->base_lr, &out->from));
    return STATUS_OK;
}

/* The rate of the stages alone at counter c (_main_schedule_lr). */
static enum status main_rate(const struct sched_call *call, double c, double *out) {
    char item[STAGES_TEXT];
    struct piece piece = {0};
    *out = call->base_lr;
    for (const char *at = values_of(call)->stages; at != NULL;) {
        stages_next(&at, ',', item, sizeof item);
        piece.start += piece.length;
        TRY(read_piece(call, item, *out, &piece));
        if (c < piece.start + piece.length) {
            *out = interpolate(&piece, c - piece.start);
            return STATUS_OK;
        }
        *out = piece.to;
    }
    return STATUS_OK;
}

static enum status read_override(const struct sched_call *call, struct piece *out) {
    char words[4][STAGES_PART];
    const char *list = values_of(call)->override_decay;
    TRY(split("override_decay", list, list, words));
    if (words[3][0] == '\0' || strcmp(words[0], "constant") == 0)
        FAIL(STATUS_INPUT,
             "schedule.override_decay: expected linear or cosine:START:LENGTH:END, got \"%s\"",
             list);
    out->cosine = strcmp(words[0], "cosine") == 0;
    TRY(stages_number("override_decay", list, words[1], 0.0, 0x1p53, &out->start));
    TRY(stages_number("override_decay", list, words[2], 1e-9, 0x1p53, &out->length));
    out->start *= values_of(call)->length_unit;
    out->length *= values_of(call)->length_unit;
    TRY(read_rate("override_decay", list, words[3], call->base_lr, &out->to));
    return main_rate(call, out->start, &out->from);
}

static enum status rate(const struct sched_call *call, double c, double *out) {
    struct piece piece;
    if (!stages_given(values_of(call)->override_decay)) return main_rate(call, c, out);
    TRY(read_override(call, &piece));
    if (c < piece.start) return main_rate(call, c, out);
    *out = c - piece.start < piece.length ? interpolate(&piece, c - piece.start) : piece.to;
    return STATUS_OK;
}

static double composable_value(const struct sched_call *call, double counter) {
    double lr;
    const enum status status = rate(call, sched_clamp_counter(counter), &lr);
    return status == STATUS_OK ? lr : real_nan_f64();
}

static double composable_minimum(const struct sched_call *call) {
    return composable_value(call, 0x1p1000);
}

static enum status composable_validate(const struct sched_call *call) {
    double lr;
    TRY(sched_check_call(call));
    if (!stages_given(values_of(call)->stages))
        FAIL(STATUS_INPUT, "schedule.stages: expected stages, as linear:1000:0:1,cosine:5000:0.1 "
                           "(shape, length, start, end); got none");
    TRY(main_rate(call, 0x1p1000, &lr));
    return rate(call, 0x1p1000, &lr);
}

SCHED_CLASS(sched_olmo_composable, "olmo-core.composable",
            "Linear and cosine stages one after the other, whatever the total is, then the last "
            "rate, as OLMo-core ComposableScheduler",
            SCHED_KEYS(keys, composable_values), .value = composable_value,
            .minimum = composable_minimum, .validate = composable_validate);
