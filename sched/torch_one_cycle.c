/* SPDX-License-Identifier: Apache-2.0
 * torch's OneCycleLR: up from L / div_factor to L, then down to a floor, in two phases or three.
 * Source: PyTorch torch/optim/lr_scheduler.py of 2.15.0 (OneCycleLR), operations in its order; its
 * momentum is no learning rate and is left out.
 *
 * Its phases end at T - 1, so f(T) lies one step past the floor: a cosine turns up again, a line
 * goes below. f(T) is the last value there is. At the next call torch raises "Tried to step T+1
 * times", and accelerate, which looks at the count of calls first, makes no call any more. So f(c)
 * is f(T) here for c > T: the dead tail. */
#include "sched/values.h"

enum anneal { ANNEAL_COS, ANNEAL_LINEAR };

static const char *const anneals[] = {"cos", "linear", NULL};

struct cycle_values {
    double pct_start;
    double div_factor;
    double final_div_factor;
    int32_t anneal_strategy;
    uint8_t three_phase;
};

static const struct key_row keys[] = {
    SCHED_REAL(cycle_values, pct_start, .standard = "0.3", .high = 1,
               .help = "Share of the total that rises"),
    SCHED_ENUM(cycle_values, anneal_strategy, .standard = "cos", .names = anneals,
               .help = "Shape of every phase"),
    SCHED_ROW(KEY_BOOL, cycle_values, three_phase, .unit = "", .standard = "false",
              .help = "Fall back to the start as steeply as it rose, then to the floor"),
    SCHED_REAL(cycle_values, div_factor, .standard = "25", .low = 1e-6, .high = 1e12,
               .help = "Starts at L / div_factor"),
    SCHED_REAL(cycle_values, final_div_factor, .standard = "1e4", .low = 1e-6, .high = 1e12,
               .help = "Ends at L / div_factor / final_div_factor"),
};

static const struct cycle_values *values_of(const struct sched_call *call) {
    return SCHED_VALUES(call, cycle_values);
}

struct phase {
    double end, from, to;
};

static size_t phases_of(const struct sched_call *call, struct phase out[3]) {
    const struct cycle_values *values = values_of(call);
    const double start = call->base_lr / values->div_factor;
    const double floor = start / values->final_div_factor;
    out[0] = (struct phase){values->pct_start * call->total - 1.0, start, call->base_lr};
    if (!values->three_phase) {
        out[1] = (struct phase){call->total - 1.0, call->base_lr, floor};
        return 2;
    }
    out[1] = (struct phase){2.0 * values->pct_start * call->total - 2.0, call->base_lr, start};
    out[2] = (struct phase){call->total - 1.0, start, floor};
    return 3;
}

static double cycle_value(const struct sched_call *call, double counter) {
    struct phase phases[3];
    const size_t count = phases_of(call, phases);
    const double clamped = sched_clamp_counter(counter);
    const double c = clamped < call->total ? clamped : call->total;
    double begin = 0.0;
    size_t i = 0;
    for (; i + 1 < count && c > phases[i].end; i++)
        begin = phases[i].end;
    const double pct = (c - begin) / (phases[i].end - begin);
    if (values_of(call)->anneal_strategy == ANNEAL_LINEAR)
        return (phases[i].to - phases[i].from) * pct + phases[i].from;
    return phases[i].to + (phases[i].from - phases[i].to) / 2.0 * (sched_cos_pi(pct) + 1.0);
}

static double cycle_minimum(const struct sched_call *call) {
    struct phase phases[3];
    return phases[phases_of(call, phases) - 1].to;
}

/* Refuses what makes torch divide by zero: a first phase that ends at 0, or a last one that has no
 * length. */
static enum status cycle_validate(const struct sched_call *call) {
    struct phase phases[3];
    TRY(sched_check_call(call));
    if (!(call->total >= 1.0))
        FAIL(STATUS_INPUT, "schedule.total: expected at least 1, got %.17g", call->total);
    const size_t count = phases_of(call, phases);
    if (phases[0].end != 0.0 && phases[count - 2].end != call->total - 1.0 && call->total > 0.0)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "schedule.pct_start: OneCycleLR divides by zero for %.17g of a total of %.17g",
         values_of(call)->pct_start, call->total);
}

SCHED_CLASS(sched_torch_one_cycle, "torch.one_cycle",
            "From L / div_factor up to L and down to a floor, as torch OneCycleLR; past the total "
            "its last value is held, where torch raises and accelerate stops stepping",
            SCHED_KEYS(keys, cycle_values), .value = cycle_value, .minimum = cycle_minimum,
            .validate = cycle_validate);
