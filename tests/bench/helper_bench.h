/* SPDX-License-Identifier: Apache-2.0
 * For the programs of tests/bench/ that train: a configuration from KEY=VALUE words, and how much
 * memory its training takes, known before any of it is taken. */
#ifndef TWINSTEP_TESTS_BENCH_HELPER_BENCH_H
#define TWINSTEP_TESTS_BENCH_HELPER_BENCH_H

#include "base/arena.h"
#include "data/dataset.h"
#include "scenarios/config.h"

double bench_seconds(void);

/* Inserts x into `sorted`, which has `count` numbers in ascending order. */
void bench_insert(double *sorted, size_t count, double x);

TWINSTEP_MUST_USE enum status bench_open(const char *const *overrides, size_t count,
                                         struct arena *arena, const struct config **out,
                                         struct dataset *dataset);

/* The bytes of a training: what run_open takes that grows with the model or with a micro-batch. */
struct bench_memory {
    size_t state;       /* parameters, masters, accumulators, gradients, slots */
    size_t copies;      /* parameters at the start and before an update, in the compute dtype */
    size_t activations; /* of the training and of the reference, batch lists among them */
    size_t scratch;     /* of ops, the library's operands among it */
    size_t total;
};

/* Computes the bytes of a training. It opens the backend but takes none of its memory. The device's
 * context, and what a library takes for itself, come on top. */
TWINSTEP_MUST_USE enum status bench_memory_of(const struct config *config,
                                              const struct dataset *dataset,
                                              struct bench_memory *out);

/* Writes three quarters of the device's memory, as its backend states it; 0 where it does not. */
TWINSTEP_MUST_USE enum status bench_memory_room(const struct config *config, double *out_bytes);

/* Returns STATUS_MEMORY, with the figures, where the training takes more than `most` bytes (0: no
 * bound) or than the device's room: memory of a device that is promised twice can stop the
 * device. */
TWINSTEP_MUST_USE enum status bench_memory_check(const struct config *config,
                                                 const struct dataset *dataset, double most,
                                                 struct bench_memory *out);

#endif
