/* SPDX-License-Identifier: Apache-2.0
 * The list of built-in schedules and what they share. A new schedule is a new file and one row.
 * Invariant: names are unique. */
#include "sched/sched.h"

#include <string.h>

#include "base/real.h"
#include "sched/values.h"

static const struct sched_class *const classes[] = {&sched_constant, &sched_linear, &sched_cosine,
                                                    NULL};

const struct sched_class *const *sched_classes(void) {
    return classes;
}

const struct sched_class *sched_find(const char *name) {
    for (size_t i = 0; classes[i] != NULL; ++i)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}

double sched_clamp_counter(double counter) {
    return counter > 0.0 ? counter : 0.0;
}

static double at_least_one(double x) {
    return x > 1.0 ? x : 1.0;
}

double sched_warmup_factor(const struct sched_call *call, double counter) {
    return counter / at_least_one(call->warmup);
}

double sched_after_warmup(const struct sched_call *call, double numerator) {
    return numerator / at_least_one(call->total - call->warmup);
}

static enum status check_number(const char *name, double x) {
    if (!real_finite_f64(x) || x < 0.0)
        FAIL(STATUS_INPUT, "%s: expected a finite number >= 0, got %.17g", name, x);
    return STATUS_OK;
}

enum status sched_check_call(const struct sched_call *call) {
    if (call->size < sizeof *call)
        FAIL(STATUS_INTERNAL, "schedule call of %zu bytes, expected %zu", call->size, sizeof *call);
    TRY(check_number("optimizer.lr", call->base_lr));
    TRY(check_number("schedule.warmup", call->warmup));
    return check_number("schedule.total", call->total);
}
