/* SPDX-License-Identifier: Apache-2.0
 * Answers what a resolved contract says of update k; contract_plan.c resolves it. Invariant:
 * contract_columns and single evaluations give the same bits.
 *
 * A search for a schedule evaluates a plan by the million, so the steps of one evaluation are
 * `inline`: gcc makes calls of them otherwise, which take a tenth of a search. */
#include "sched/contract.h"

#include <string.h>

#include "base/real.h"

void contract_request_init(struct contract_request *request) {
    memset(request, 0, sizeof *request);
    request->lr = real_nan_f64();
    request->warmup = real_nan_f64();
    request->warmup_ratio = real_nan_f64();
    request->min_lr_ratio = real_nan_f64();
}

static double start_of(const struct contract_plan *plan) {
    switch (plan->contract->start) {
    case CONTRACT_START_BASE:
        return plan->call.base_lr;
    case CONTRACT_START_ZERO:
        return 0.0;
    case CONTRACT_START_MIN:
        return plan->schedule->minimum(&plan->call);
    default:
        return plan->schedule->value(&plan->call, 0.0);
    }
}

/* The rate in force after `counted` counted updates. */
static inline double in_force(const struct contract_plan *plan, uint64_t counted) {
    const struct contract *contract = plan->contract;
    if (counted == 0 && contract->start != CONTRACT_START_NONE) return start_of(plan);
    if (contract->unit == CONTRACT_UNIT_EPOCH)
        return plan->schedule->value(&plan->call, (double)(counted / plan->updates_per_epoch) +
                                                      (double)contract->offset);
    return plan->schedule->value(&plan->call,
                                 plan->increment * ((double)counted + (double)contract->offset));
}

static inline double applied_after(const struct contract_plan *plan, uint64_t k, uint64_t counted) {
    if (plan->contract->past_end == CONTRACT_PAST_ABORT && k > plan->steps) return real_nan_f64();
    return in_force(plan, counted);
}

static inline int holds(const struct contract_plan *plan) {
    return plan->contract->on_skip == CONTRACT_SKIP_HOLD;
}

/* The number of counted updates before update k. */
static inline uint64_t counted_before(const struct contract_plan *plan, uint64_t k) {
    size_t low = 0, high = plan->skipped_count; /* how many of the skipped updates lie before k */
    if (!holds(plan)) return k - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (plan->skipped[middle] < k)
            low = middle + 1;
        else
            high = middle;
    }
    return k - 1 - low;
}

static inline double applied(const struct contract_plan *plan, uint64_t k) {
    return applied_after(plan, k, counted_before(plan, k));
}

double contract_applied(const struct contract_plan *plan, uint64_t k) {
    return applied(plan, k);
}

static int logs_next(const struct contract_plan *plan) {
    return plan->contract->logged == CONTRACT_LOGGED_NEXT && !plan->schedule->feedback;
}

double contract_logged(const struct contract_plan *plan, uint64_t k) {
    if (logs_next(plan)) ++k;
    return applied(plan, k);
}

void contract_columns(const struct contract_plan *plan, uint64_t count, double *applied,
                      double *logged) {
    const int next = logs_next(plan);
    const uint64_t last = count + (uint64_t)(next && logged != NULL);
    size_t skipped = 0;
    for (uint64_t k = 1; k <= last; k++) {
        while (holds(plan) && skipped < plan->skipped_count && plan->skipped[skipped] < k)
            skipped++;
        const double lr = applied_after(plan, k, k - 1 - skipped);
        if (applied != NULL && k <= count) applied[k - 1] = lr;
        if (logged != NULL && !next) logged[k - 1] = lr;
        if (logged != NULL && next && k > 1) logged[k - 2] = lr;
    }
}
