/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's WSDS: periods that each end in a decay, after one warm-up.
 *
 * Source: OLMo-core olmo_core/optim/scheduler.py of 3.0.0 (WSDS), operations in its order. Periods
 * are equally long, or the list `periods` gives the length of each and `peaks` the share of L that
 * each reaches. Past the last period the rate stays at decay_min_lr, whatever the total is. A
 * warm-up ratio is a share of the total here; theirs (warmup_fraction) is one of the first
 * period. */
#include "sched/olmo_core.h"

#include "base/real.h"
#include "sched/stages.h"

#define PERIODS 32
#define PERIODS_TEXT 96

struct period_values {
    double period;
    double decay;
    double decay_ratio;
    double decay_min_lr;
    double warmup_min_lr;
    double length_unit;
    char periods[PERIODS_TEXT];
    char peaks[PERIODS_TEXT];
};

static const struct key_row period_keys[] = {
    SCHED_LENGTH(period_values, period, "Length of each period; auto is the total: one period"),
    SCHED_LENGTH(period_values, decay, "Decay at the end of each period; auto by decay_ratio"),
    SCHED_REAL(period_values, decay_ratio, .standard = "0.1", .high = 1,
               .help =
                   "Decay as a share of the period, rounded half to even (theirs: decay_fraction)"),
    SCHED_REAL(period_values, decay_min_lr, .standard = "0", .high = 1e6,
               .help = "Learning rate at a period's end"),
    SCHED_REAL(period_values, warmup_min_lr, .standard = "0", .high = 1e6,
               .help = OLMO_WARMUP_HELP),
    STAGES_TEXT_ROW(period_values, periods,
                    "Lengths of unequal periods, as 1000,2000,500 (theirs: period_lengths)"),
    STAGES_TEXT_ROW(period_values, peaks,
                    "Share of L that each of them reaches (theirs: period_lr_multipliers)"),
    STAGES_UNIT_ROW(period_values),
};

static double period_of(const struct sched_call *call) {
    const double period = SCHED_VALUES(call, period_values)->period;
    return period > 0.0 ? period : call->total;
}

static double decay_of(const struct sched_call *call) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    return sched_length(values->decay, period_of(call), values->decay_ratio);
}

/* The number of whole periods in the total, at least one. */
static double periods_of(const struct sched_call *call) {
    return sched_at_least_one(sched_floor(call->total / period_of(call)));
}

struct period_list {
    size_t count;
    double length[PERIODS], peak[PERIODS];
};

static enum status read_list(const struct sched_call *call, struct period_list *out) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    size_t peaks;
    TRY(stages_numbers("periods", values->periods, 1e-9, out->length, PERIODS, &out->count));
    for (size_t i = 0; i < out->count; i++) {
        out->length[i] *= values->length_unit;
        out->peak[i] = 1.0;
    }
    if (!stages_given(values->peaks)) return STATUS_OK;
    TRY(stages_numbers("peaks", values->peaks, 1e-9, out->peak, PERIODS, &peaks));
    if (peaks != out->count)
        FAIL(STATUS_INPUT, "schedule.peaks: expected as many as there are periods, %zu, got %zu",
             out->count, peaks);
    return STATUS_OK;
}

static double decay_in(const struct sched_call *call, const struct period_list *list, size_t i) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    return sched_length(values->decay, list->length[i], values->decay_ratio);
}

/* The rate at c where periods are listed. The counter at which a period ends still belongs to it.
 * The warm-up is part of the first period. */
static double list_value(const struct sched_call *call, const struct period_list *list, double c) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    const double low = values->decay_min_lr;
    const double first = call->base_lr * list->peak[0];
    double begin = 0.0, length = list->length[0] - call->warmup;
    size_t i = 0;
    if (c < call->warmup) return olmo_warmup(call, first, c, values->warmup_min_lr);
    c -= call->warmup;
    for (; c > begin + length && i + 1 < list->count; i++) {
        begin += length;
        length = list->length[i + 1];
    }
    if (i + 1 == list->count && c >= begin + length) return low;
    const double peak = call->base_lr * list->peak[i];
    const double decay = decay_in(call, list, i);
    const double stable = length - decay;
    if (c - begin < stable) return peak;
    return low + (peak - low) * (decay - (c - begin - stable)) / decay;
}

/* The rate where periods are equally long. A period holds the counters start < c <= end, so its
 * decay ends at its last counter. */
static double period_value(const struct sched_call *call, double counter) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    const double c = sched_clamp_counter(counter);
    struct period_list list;
    if (stages_given(values->periods))
        return read_list(call, &list) == STATUS_OK ? list_value(call, &list, c) : real_nan_f64();
    const double period = period_of(call);
    const double decay = decay_of(call);
    if (c < call->warmup) return olmo_warmup(call, call->base_lr, c, values->warmup_min_lr);
    if (c >= periods_of(call) * period) return values->decay_min_lr;
    const double end = sched_at_least_one(sched_ceil(c / period)) * period;
    const double left = end - c;
    if (left > decay) return call->base_lr;
    return values->decay_min_lr + (call->base_lr - values->decay_min_lr) * left / decay;
}

SCHED_MINIMUM_RATE(period_minimum, period_values, decay_min_lr)

static enum status list_validate(const struct sched_call *call) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    struct period_list list;
    TRY(read_list(call, &list));
    if (values->period > 0.0)
        FAIL(STATUS_INPUT, "schedule.period and schedule.periods: expected one of them, got both");
    for (size_t i = 0; i < list.count; i++) {
        const double decay = decay_in(call, &list, i);
        const double rise = i == 0 ? call->warmup : 0.0;
        struct sched_call peak = *call;
        peak.base_lr = call->base_lr * list.peak[i];
        TRY(olmo_check_starts(&peak, values->warmup_min_lr, values->decay_min_lr));
        if (!(decay > 0.0))
            FAIL(STATUS_INPUT, "schedule.decay: expected above 0, got %.17g in period %zu", decay,
                 i + 1);
        if (!(rise + decay <= list.length[i]))
            FAIL(STATUS_INPUT,
                 "schedule.periods: warm-up %.17g and decay %.17g exceed period %zu of %.17g", rise,
                 decay, i + 1, list.length[i]);
    }
    return STATUS_OK;
}

static enum status period_validate(const struct sched_call *call) {
    const struct period_values *values = SCHED_VALUES(call, period_values);
    TRY(olmo_check_starts(call, values->warmup_min_lr, values->decay_min_lr));
    if (stages_given(values->periods)) return list_validate(call);
    if (stages_given(values->peaks))
        FAIL(STATUS_INPUT, "schedule.peaks: expected schedule.periods with it, got none");
    if (!(decay_of(call) > 0.0))
        FAIL(STATUS_INPUT, "schedule.decay: expected above 0, got %.17g", decay_of(call));
    if (!(call->warmup + decay_of(call) <= period_of(call)))
        FAIL(STATUS_INPUT,
             "schedule.period: warm-up %.17g and decay %.17g exceed the first period of %.17g",
             call->warmup, decay_of(call), period_of(call));
    return STATUS_OK;
}

SCHED_CLASS(sched_olmo_wsds, "olmo-core.wsds",
            "Periods of L with a linear decay at the end of each, equal or listed, after one "
            "linear warm-up, as OLMo-core WSDS",
            SCHED_KEYS(period_keys, period_values), .value = period_value,
            .minimum = period_minimum, .validate = period_validate);
