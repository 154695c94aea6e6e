/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules behind one table of functions, either built in or loaded from a module
 * (sched_module.h).
 *
 * A schedule is a function from a counter to a learning rate. Which counter it is, by how much it
 * is shifted and when the schedule is called are decided by the training loop (docs/decisions, "The
 * loop is data"). A schedule owns no memory: one that computes each rate from the one before keeps
 * `state_size` bytes in the training state. All arithmetic is done in double, with the functions of
 * base/real.h.
 *
 * Notation: s is the counter, W the length of the warm-up, T the total, L the base rate, which is
 * also the peak. */
#ifndef TWINSTEP_SCHED_SCHED_H
#define TWINSTEP_SCHED_SCHED_H

#include <stddef.h>

#include "base/key.h"
#include "base/status.h"

/* What a feedback schedule follows: one value for each evaluation, in the order of time. */
struct sched_metric {
    size_t count;
    const double *at;    /* ascending: the counter from which on the value has been seen */
    const double *value; /* NaN where the evaluation gave no number */
    double repeat;       /* how often step() is called with each value: once, or P times through
                            accelerate's wrapper */
};

struct sched_call {
    size_t size;        /* sizeof(struct sched_call) */
    double base_lr;     /* L */
    double warmup;      /* W, in counter units; a double, because Megatron never rounds it */
    double total;       /* T, in counter units */
    const void *values; /* the parameters of the class, laid out by its key rows */
    void *state; /* state_size bytes of the training state, or NULL for a call that keeps nothing */
    const struct sched_metric *metric; /* NULL where nothing is evaluated */
};

struct sched_class {
    size_t size;      /* sizeof(struct sched_class), by which a module's build is recognised */
    const char *name; /* the value of schedule.name */
    const char *help; /* one sentence without full stop, with the formula's source */
    const struct key_row *keys;
    size_t key_count;
    size_t values_size; /* at most CONFIG_CLASS_BYTES */
    size_t state_size;
    int feedback; /* 1: it follows sched_call.metric, and validate refuses a call without one */
    /* The learning rate at `counter`. Every finite counter is legal, also below 0 and past T. */
    double (*value)(const struct sched_call *call, double counter);
    /* The rate that schedule.start calls "min": what the schedule falls to. */
    double (*minimum)(const struct sched_call *call);
    /* Refuses combinations of parameters (for instance W > T) with STATUS_INPUT and the name of the
     * key. NULL: every combination is fine. */
    enum status (*validate)(const struct sched_call *call);
};

/* The built-in schedules, in a NULL-terminated list. A bare name is one of Hugging Face (family
 * hf); the schedules of other frameworks are called "family.name". */
const struct sched_class *const *sched_classes(void);

/* The built-in schedule of this name; NULL when there is none. */
const struct sched_class *sched_find(const char *name);

/* The schedule that a bare name means within `family`, or that a full name ("megatron.cosine",
 * "hf.linear") means anywhere; NULL when there is none. */
const struct sched_class *sched_find_in(const char *family, const char *name);
/* Whether the schedule belongs to `family`; one with a bare name belongs to hf. */
int sched_in_family(const struct sched_class *schedule, const char *family);
/* The name without its family: "cosine" for "megatron.cosine". */
const char *sched_bare_name(const struct sched_class *schedule);

/* Writes the default of each of the class's rows into `values`, which has values_size bytes.
 * STATUS_INTERNAL says that a row's default is wrong. */
TWINSTEP_MUST_USE enum status sched_values_standard(const struct sched_class *schedule,
                                                    void *values);
/* Reads one parameter from its text into `values`. STATUS_INPUT for a key that the class does not
 * have, with those that it has, and for a value outside the bounds of its row. */
TWINSTEP_MUST_USE enum status sched_values_set(const struct sched_class *schedule, void *values,
                                               const char *key, const char *text);
/* The class's row of this key; NULL when it has none. */
const struct key_row *sched_row(const struct sched_class *schedule, const char *key);

#endif
