/* SPDX-License-Identifier: Apache-2.0
 * Turns the numbers of one training into a plan: the schedule, and total and warm-up in counter
 * units. Errors name the option of the command line.
 *
 * The total goes from batches of a process over updates per epoch, by the contract's rule, to
 * ceil(epochs * that), as Hugging Face's Trainer.set_initial_training_values has it. The warm-up is
 * rule(T * ratio), taken in counter units where both lengths are rescaled. docs/LR.md has the rules
 * of every framework. */
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "sched/contract.h"
#include "sched/values.h"

#define COUNT_MAX 0x1p53

/* A real of a request that is not given is NaN. */
static int given(double x) {
    return x == x;
}

static uint64_t or_one(uint64_t count) {
    return count == 0 ? 1 : count;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return a / b + (uint64_t)(a % b != 0);
}

static uint64_t divide(uint64_t a, uint64_t b, int up) {
    return up ? divide_up(a, b) : a / b;
}

static enum status check_request(const struct contract_request *r) {
    if (r->contract == NULL) FAIL(STATUS_INPUT, "--contract: expected a name, got none");
    if (!real_finite_f64(r->lr) || !(r->lr > 0.0))
        FAIL(STATUS_INPUT, "--lr: expected a finite number above 0, got %s",
             given(r->lr) ? number_text_f64(r->lr).text : "none");
    if (given(r->warmup) && given(r->warmup_ratio))
        FAIL(STATUS_INPUT, "--warmup and --warmup-ratio: expected one of them, got both");
    if (given(r->warmup) && !(r->warmup >= 0.0 && r->warmup <= COUNT_MAX))
        FAIL(STATUS_INPUT, "--warmup: expected from 0 to 2^53 updates, got %s",
             number_text_f64(r->warmup).text);
    if (given(r->warmup_ratio) && !(r->warmup_ratio >= 0.0 && r->warmup_ratio <= 1.0))
        FAIL(STATUS_INPUT, "--warmup-ratio: expected a number from 0 to 1, got %s",
             number_text_f64(r->warmup_ratio).text);
    if (given(r->min_lr_ratio) && !(r->min_lr_ratio >= 0.0 && r->min_lr_ratio <= 1.0))
        FAIL(STATUS_INPUT, "--min-lr-ratio: expected a number from 0 to 1, got %s",
             number_text_f64(r->min_lr_ratio).text);
    for (size_t i = 0; i < r->skipped_count; i++)
        if (r->skipped[i] == 0 || (i > 0 && r->skipped[i] <= r->skipped[i - 1]))
            FAIL(STATUS_INPUT, "--skipped: expected updates from 1 on in ascending order, got %llu",
                 (unsigned long long)r->skipped[i]);
    return STATUS_OK;
}

/* A warm-up is a whole number of updates, except where a framework counts smaller units or keeps a
 * fraction. */
static enum status check_whole(const struct contract_request *r) {
    if (r->contract->warmup_rule == CONTRACT_ROUND_NONE) return STATUS_OK;
    if (r->contract->unit != CONTRACT_UNIT_UPDATE) return STATUS_OK;
    if (!given(r->warmup) || sched_floor(r->warmup) == r->warmup) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "--warmup: %s counts whole updates, got %s; a share of the total is --warmup-ratio",
         r->contract->name, number_text_f64(r->warmup).text);
}

/* Updates of one epoch. A short last batch counts unless the loader drops it, and processes get
 * equal shares; without `sharded` the batches of all processes count together. */
static uint64_t updates_of_epoch(const struct contract_request *r, int sharded) {
    const int up = !(r->drop_last || r->contract->drop_last);
    const uint64_t a = or_one(r->accumulate);
    uint64_t batches = divide(r->dataset, or_one(r->batch), up);
    uint64_t updates;
    if (sharded) batches = divide(batches, or_one(r->processes), up);
    updates = divide(batches, a, r->contract->epoch_rule != CONTRACT_EPOCH_FLOOR);
    return updates == 0 && sharded ? 1 : updates;
}

static enum status check_dataset(const struct contract_request *r) {
    if (r->contract->epoch_rule == CONTRACT_EPOCH_NONE)
        FAIL(STATUS_INPUT,
             "--steps: expected the number of updates; %s has no rule that derives it from a "
             "dataset",
             r->contract->name);
    if (r->dataset == 0)
        FAIL(STATUS_INPUT, "--steps: expected the number of updates, or --dataset, --epochs and "
                           "--batch to derive it; got none");
    if ((double)r->dataset > COUNT_MAX)
        FAIL(STATUS_INPUT, "--dataset: expected at most 2^53 rows, got %llu",
             (unsigned long long)r->dataset);
    if (!(r->epochs > 0.0 && r->epochs <= 1e9))
        FAIL(STATUS_INPUT, "--epochs: expected a number above 0 and at most 1e9, got %s",
             r->epochs == 0.0 ? "none" : number_text_f64(r->epochs).text);
    if (r->batch == 0) FAIL(STATUS_INPUT, "--batch: expected rows per process, got none");
    return STATUS_OK;
}

/* The total in updates, and in counter units where the contract derives that on its own, else 0. */
static enum status total_of(const struct contract_request *r, uint64_t *out_steps,
                            double *out_units) {
    double updates = (double)r->steps;
    *out_units = 0.0;
    if (r->steps != 0 && r->epochs != 0.0)
        FAIL(STATUS_INPUT, "--steps and --epochs: expected one of them, got both");
    if (r->steps == 0) {
        TRY(check_dataset(r));
        updates = sched_ceil(r->epochs * (double)updates_of_epoch(r, 1));
        if (r->contract->epoch_rule == CONTRACT_EPOCH_UNSHARDED)
            *out_units = sched_ceil(r->epochs * (double)updates_of_epoch(r, 0));
    }
    if (!(updates >= 1.0 && updates <= COUNT_MAX))
        FAIL(STATUS_INPUT, "--steps: expected from 1 to 2^53 updates, got %s",
             number_text_f64(updates).text);
    *out_steps = (uint64_t)updates;
    return STATUS_OK;
}

static uint64_t samples_of_update(const struct contract_request *r) {
    if (r->global_batch != 0) return r->global_batch;
    return or_one(r->batch) * or_one(r->accumulate) * or_one(r->processes);
}

static enum status increment_of(const struct contract_request *r, struct contract_plan *plan) {
    plan->increment = 1.0;
    switch (r->contract->unit) {
    case CONTRACT_UNIT_PROCESS:
        plan->increment = (double)or_one(r->processes);
        break;
    case CONTRACT_UNIT_MICRO:
        plan->increment = (double)or_one(r->accumulate);
        break;
    case CONTRACT_UNIT_SAMPLE:
        plan->increment = (double)samples_of_update(r);
        break;
    case CONTRACT_UNIT_TOKEN:
        if (r->tokens == 0)
            FAIL(STATUS_INPUT, "--tokens: %s counts tokens; expected tokens per update, got none",
                 r->contract->name);
        plan->increment = (double)r->tokens;
        break;
    case CONTRACT_UNIT_EPOCH:
        plan->updates_per_epoch = r->updates_per_epoch;
        if (r->updates_per_epoch == 0) {
            if (r->dataset == 0)
                FAIL(STATUS_INPUT,
                     "--updates-per-epoch: %s counts epochs; expected updates per epoch, or "
                     "--dataset and --batch to derive them; got none",
                     r->contract->name);
            plan->updates_per_epoch = updates_of_epoch(r, 1);
        }
        plan->increment = 1.0 / (double)plan->updates_per_epoch;
        break;
    default:
        break;
    }
    return STATUS_OK;
}

static int32_t rescaled_of(const struct contract_request *r) {
    if (r->rescaled != CONTRACT_RESCALED_DEFAULT) return r->rescaled;
    if (r->contract->unit == CONTRACT_UNIT_MICRO) return CONTRACT_RESCALED_NONE;
    if (r->contract->unit == CONTRACT_UNIT_PROCESS && !r->contract->scaled)
        return CONTRACT_RESCALED_NONE;
    return CONTRACT_RESCALED_BOTH;
}

/* Converts a length in updates to counter units. */
static double in_units(const struct contract_plan *plan, double updates) {
    if (plan->contract->unit == CONTRACT_UNIT_EPOCH)
        return updates / (double)plan->updates_per_epoch;
    return updates * plan->increment;
}

static double rounded(int32_t rule, double x) {
    switch (rule) {
    case CONTRACT_ROUND_FLOOR:
        return sched_floor(x);
    case CONTRACT_ROUND_CEIL:
        return sched_ceil(x);
    case CONTRACT_ROUND_HALF_EVEN:
        return sched_half_even(x);
    default:
        return x;
    }
}

static double warmup_of(const struct contract_request *r, const struct contract_plan *plan,
                        int32_t rescaled) {
    const int scales = rescaled == CONTRACT_RESCALED_BOTH || rescaled == CONTRACT_RESCALED_WARMUP;
    const int32_t rule = r->contract->warmup_rule;
    double updates = given(r->warmup) ? r->warmup : 0.0;
    if (given(r->warmup_ratio)) {
        if (rescaled == CONTRACT_RESCALED_BOTH)
            return rounded(rule, plan->call.total * r->warmup_ratio);
        updates = rounded(rule, (double)plan->steps * r->warmup_ratio);
    }
    return scales ? in_units(plan, updates) : updates;
}

static double capped(int32_t cap, double warmup, double total) {
    if (cap == CONTRACT_CAP_TOTAL && warmup > total) return total;
    if (cap == CONTRACT_CAP_BELOW && warmup >= total) return total - 1.0;
    return warmup;
}

static enum status lengths_of(const struct contract_request *r, struct contract_plan *plan) {
    const int32_t rescaled = rescaled_of(r);
    const int scales = rescaled == CONTRACT_RESCALED_BOTH || rescaled == CONTRACT_RESCALED_TOTAL;
    double units;
    TRY(total_of(r, &plan->steps, &units));
    TRY(increment_of(r, plan));
    plan->call.total = (double)plan->steps;
    if (scales) plan->call.total = units > 0.0 ? units : in_units(plan, plan->call.total);
    if (scales && r->contract->unit == CONTRACT_UNIT_EPOCH)
        plan->call.total = sched_ceil(plan->call.total);
    if (!(plan->call.total <= COUNT_MAX))
        FAIL(STATUS_INPUT, "--steps: expected at most 2^53 counter units, got %s",
             number_text_f64(plan->call.total).text);
    plan->call.warmup = warmup_of(r, plan, rescaled);
    plan->call.warmup = capped(r->contract->cap, plan->call.warmup, plan->call.total);
    plan->warmup_updates = plan->call.warmup / in_units(plan, 1.0);
    return STATUS_OK;
}

static enum status fail_schedule(const struct contract *contract, const char *name) {
    char names[320] = "";
    const struct sched_class *const *classes = sched_classes();
    for (size_t i = 0; classes[i] != NULL; i++) {
        if (!sched_in_family(classes[i], contract->family)) continue;
        sched_join(names, sizeof names, sched_bare_name(classes[i]));
    }
    FAIL(STATUS_INPUT, "--schedule: %s (family %s) has no schedule \"%s\"; expected one of %s",
         contract->name, contract->family, name, names);
}

/* Applies --min-lr-ratio. The others are rates, not shares, so the ratio is multiplied by L for
 * them. */
static enum status set_floor(const struct contract_request *r, const struct contract_plan *plan,
                             void *values) {
    static const char *const rates[] = {"min_lr", "lr_end", "warmup_min_lr"};
    const double m = r->min_lr_ratio;
    if (!given(m)) return STATUS_OK;
    if (sched_row(plan->schedule, "min_lr_ratio") != NULL)
        return sched_values_set(plan->schedule, values, "min_lr_ratio", number_text_f64(m).text);
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        if (sched_row(plan->schedule, rates[i]) != NULL)
            return sched_values_set(plan->schedule, values, rates[i],
                                    number_text_f64(m * r->lr).text);
    if (m == 0.0) return STATUS_OK;
    FAIL(STATUS_INPUT, "--min-lr-ratio: schedule %s has no floor", plan->schedule->name);
}

static void scale_lengths(const struct contract_request *r, const struct contract_plan *plan,
                          char *values) {
    const int32_t rescaled = rescaled_of(r);
    if (rescaled != CONTRACT_RESCALED_BOTH && rescaled != CONTRACT_RESCALED_TOTAL) return;
    for (size_t i = 0; i < plan->schedule->key_count; i++) {
        const struct key_row *row = &plan->schedule->keys[i];
        double x;
        if (row->type != KEY_REAL || strcmp(row->unit, "counter") != 0) continue;
        memcpy(&x, values + row->offset, sizeof x);
        if (x > 0.0) x = in_units(plan, x);
        memcpy(values + row->offset, &x, sizeof x);
    }
}

static enum status set_values(const struct contract_request *r, struct arena *arena,
                              struct contract_plan *plan) {
    char *values;
    const char *const *preset = r->contract->preset;
    TRY(arena_take(arena, 1, plan->schedule->values_size, "schedule parameters", &values));
    TRY(sched_values_standard(plan->schedule, values));
    if (preset[0] != NULL && strcmp(preset[0], plan->schedule->name) == 0)
        TRY(sched_values_set(plan->schedule, values, preset[1], preset[2]));
    TRY(set_floor(r, plan, values));
    for (size_t i = 0; i < r->value_count; i++) {
        enum status status =
            sched_values_set(plan->schedule, values, r->values[i].key, r->values[i].text);
        if (status != STATUS_OK) return status_prefix(status, "--value");
    }
    scale_lengths(r, plan, values);
    plan->call.values = values;
    return STATUS_OK;
}

/* The number of updates up to `update` that move the counter. */
static double counted_to(const struct contract_request *r, uint64_t update) {
    uint64_t skipped = 0;
    if (r->contract->on_skip == CONTRACT_SKIP_HOLD)
        while (skipped < r->skipped_count && r->skipped[skipped] <= update)
            skipped++;
    return (double)(update - skipped);
}

/* Sets the values of the metric, each with the counter from which on update k + 1 sees it.
 * accelerate's AcceleratedScheduler.step hands each value over P times. */
static enum status set_metric(const struct contract_request *r, struct arena *arena,
                              struct contract_plan *plan) {
    struct sched_metric *metric;
    double *at;
    if (!plan->schedule->feedback || r->metric_count == 0) return STATUS_OK;
    if (r->contract->offset != 0 || r->contract->start != CONTRACT_START_F0)
        FAIL(STATUS_INPUT,
             "--schedule: %s follows an evaluation after the update; %s sets the LR another way",
             plan->schedule->name, r->contract->name);
    TRY(arena_take(arena, 1, sizeof *metric, "metric", &metric));
    TRY(arena_take(arena, r->metric_count, sizeof *at, "metric", &at));
    for (size_t i = 0; i < r->metric_count; i++) {
        const uint64_t update = r->metric_update[i];
        if (update == 0 || (i > 0 && update < r->metric_update[i - 1]))
            FAIL(STATUS_INPUT,
                 "--metric: expected updates from 1 on in ascending order, got %llu after %llu",
                 (unsigned long long)update,
                 (unsigned long long)(i > 0 ? r->metric_update[i - 1] : 0));
        at[i] = counted_to(r, update) * plan->increment;
        if (r->contract->unit == CONTRACT_UNIT_EPOCH)
            at[i] = sched_floor(counted_to(r, update) / (double)plan->updates_per_epoch);
    }
    *metric = (struct sched_metric){r->metric_count, at, r->metric_value, 1.0};
    if (r->contract->unit == CONTRACT_UNIT_PROCESS) metric->repeat = (double)or_one(r->processes);
    plan->call.metric = metric;
    return STATUS_OK;
}

/* Refuses a skipped update past the end. A total that counts epochs (because it was not rescaled)
 * ends after that many epochs of updates. */
static enum status check_skipped_end(const struct contract_request *r,
                                     const struct contract_plan *plan) {
    if (r->skipped_count == 0) return STATUS_OK;
    const uint64_t last = r->skipped[r->skipped_count - 1];
    const int epochs =
        r->contract->unit == CONTRACT_UNIT_EPOCH && r->rescaled == CONTRACT_RESCALED_NONE;
    const uint64_t scale = epochs ? plan->updates_per_epoch : 1;
    if ((last - 1) / scale < plan->steps) return STATUS_OK;
    FAIL(STATUS_INPUT, "--skipped: expected updates up to the total of %llu%s, got %llu",
         (unsigned long long)plan->steps, epochs ? " epochs" : "", (unsigned long long)last);
}

enum status contract_resolve(const struct contract_request *request, struct arena *arena,
                             struct contract_plan *out) {
    struct contract_plan plan = {.contract = request->contract};
    TRY(check_request(request));
    TRY(check_whole(request));
    const char *name =
        request->schedule == NULL ? request->contract->default_schedule : request->schedule;
    plan.schedule = sched_find_in(request->contract->family, name);
    if (plan.schedule == NULL) return fail_schedule(request->contract, name);
    plan.call.size = sizeof plan.call;
    plan.call.base_lr = request->lr;
    TRY(lengths_of(request, &plan));
    /* transformers' get_scheduler("constant") ignores the warm-up; the class that a scenario names
     * has one. */
    if (plan.schedule == &sched_constant) plan.call.warmup = plan.warmup_updates = 0.0;
    TRY(set_values(request, arena, &plan));
    TRY(set_metric(request, arena, &plan));
    TRY(arena_take(arena, 1, plan.schedule->state_size, "schedule state", &plan.call.state));
    enum status status = STATUS_OK;
    if (plan.schedule->validate != NULL) status = plan.schedule->validate(&plan.call);
    if (status != STATUS_OK)
        return status_prefix(status, "%s, schedule %s", request->contract->name,
                             plan.schedule->name);
    TRY(check_skipped_end(request, &plan));
    plan.skipped = request->skipped;
    plan.skipped_count = request->skipped_count;
    *out = plan;
    return STATUS_OK;
}
