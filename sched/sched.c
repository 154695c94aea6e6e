/* SPDX-License-Identifier: Apache-2.0
 * Finds the built-in schedules by name (their list is SCHED_CLASSES in sched/values.h), and has the
 * warm-up and checks that they share. Invariant: names are unique. A bare name is Hugging Face's;
 * the others are called "family.name". */
#include "sched/sched.h"

#include <string.h>

#include "base/real.h"
#include "sched/values.h"

#define ROW(name) &sched_##name
static const struct sched_class *const classes[] = {SCHED_CLASSES(ROW), NULL};

const struct sched_class *const *sched_classes(void) {
    return classes;
}

const struct sched_class *sched_find(const char *name) {
    for (size_t i = 0; classes[i] != NULL; i++)
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    return NULL;
}

int sched_in_family(const struct sched_class *schedule, const char *family) {
    const char *dot = strchr(schedule->name, '.');
    if (dot == NULL) return strcmp(family, "hf") == 0;
    const size_t length = (size_t)(dot - schedule->name);
    return strlen(family) == length && strncmp(schedule->name, family, length) == 0;
}

const char *sched_bare_name(const struct sched_class *schedule) {
    const char *dot = strchr(schedule->name, '.');
    return dot == NULL ? schedule->name : dot + 1;
}

const struct sched_class *sched_find_in(const char *family, const char *name) {
    if (strncmp(name, "hf.", 3) == 0) return sched_find_in("hf", name + 3);
    if (strchr(name, '.') != NULL) return sched_find(name);
    for (size_t i = 0; classes[i] != NULL; i++)
        if (sched_in_family(classes[i], family) && strcmp(sched_bare_name(classes[i]), name) == 0)
            return classes[i];
    return NULL;
}

double sched_base_rate(const struct sched_call *call) {
    return call->base_lr;
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

enum status sched_check_at_most_base(const struct sched_call *call, const char *key, double rate) {
    TRY(sched_check_call(call));
    if (rate <= call->base_lr) return STATUS_OK;
    FAIL(STATUS_INPUT, "schedule.%s: expected at most the base rate %.17g, got %.17g", key,
         call->base_lr, rate);
}
