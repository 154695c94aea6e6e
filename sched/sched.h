/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules behind one vtable, built in or loaded from a module (sched_module.h).
 *
 * A schedule is a function of a counter; which counter, which offset and when it is called are the
 * loop's business (docs/decisions, "The loop is data"). It owns no memory: a recursive schedule
 * keeps `state_size` bytes in the training state. All arithmetic is double, with functions of
 * base/real.h.
 *
 * Notation (facts of the frameworks): s counter, W warm-up, T total, L base LR (the peak). */
#ifndef TWINSTEP_SCHED_SCHED_H
#define TWINSTEP_SCHED_SCHED_H

#include <stddef.h>

#include "base/key.h"
#include "base/status.h"

/* What a feedback schedule follows: one value per evaluation, in the order of time. */
struct sched_metric {
    size_t count;
    const double *at;    /* ascending; from this counter on the value has been seen */
    const double *value; /* NaN: evaluated to no number */
    double repeat;       /* calls of step() with each: 1, or P through accelerate's wrapper */
};

struct sched_call {
    size_t size;        /* sizeof(struct sched_call) */
    double base_lr;     /* L */
    double warmup;      /* W, in counter units; a double because Megatron never rounds it */
    double total;       /* T, in counter units */
    const void *values; /* the class's parameters, by its key rows */
    void *state;        /* state_size bytes of the training state, or NULL */
    const struct sched_metric *metric; /* NULL: none */
};

struct sched_class {
    size_t size;      /* sizeof(struct sched_class) */
    const char *name; /* schedule.name */
    const char *help; /* one sentence, with the source of the formula */
    const struct key_row *keys;
    size_t key_count;
    size_t values_size; /* <= CONFIG_CLASS_BYTES */
    size_t state_size;
    int feedback; /* follows sched_call.metric; validate refuses a call without one */
    /* LR at `counter`; any finite counter is legal, before 0 and past T too. */
    double (*value)(const struct sched_call *call, double counter);
    /* LR called "min" by schedule.start; what the schedule falls to. */
    double (*minimum)(const struct sched_call *call);
    /* Refuses parameter combinations by name (for instance W > T). NULL: all are fine. */
    enum status (*validate)(const struct sched_call *call);
};

/* NULL-terminated list of the built-in schedules. A bare name is Hugging Face's (family hf); those
 * of other frameworks are called "family.name". */
const struct sched_class *const *sched_classes(void);

/* By name; NULL when unknown. */
const struct sched_class *sched_find(const char *name);

/* A bare name within `family`, or a full name ("megatron.cosine", "hf.linear") of any; NULL when
 * unknown. */
const struct sched_class *sched_find_in(const char *family, const char *name);
int sched_in_family(const struct sched_class *schedule, const char *family);
/* Without the family: "cosine". */
const char *sched_bare_name(const struct sched_class *schedule);

/* The defaults of the class's rows into `values` (values_size bytes). STATUS_INTERNAL: a row's
 * default is wrong. */
TWINSTEP_MUST_USE enum status sched_values_standard(const struct sched_class *schedule,
                                                    void *values);
/* One parameter from its text. STATUS_INPUT: unknown key, with those there are; or a value outside
 * its row. */
TWINSTEP_MUST_USE enum status sched_values_set(const struct sched_class *schedule, void *values,
                                               const char *key, const char *text);
/* NULL when the class has no such row. */
const struct key_row *sched_row(const struct sched_class *schedule, const char *key);

#endif
