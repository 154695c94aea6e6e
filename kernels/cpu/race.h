/* SPDX-License-Identifier: Apache-2.0
 * Sums that threads race on (law 14): an addition to a shared number, and who may race.
 *
 * An addition reads the sum, adds in its own type, and stores the result where nobody stored
 * another in between; else it tries again. Relaxed: only the number itself is shared, and the join
 * of the threads publishes it. Invariant: each addition happens exactly once; what races is their
 * order alone. */
#ifndef TWINSTEP_KERNELS_CPU_RACE_H
#define TWINSTEP_KERNELS_CPU_RACE_H

#include <stdatomic.h>

#include "kernels/read_call.h"

/* The compiler's generic forms of C11's atomic_compare_exchange_weak_explicit: they take memory
 * that is a plain number before and after the race. A comparison is of bits, so a NaN ends it, too.
 */
static inline void race_add_f32(float *sum, float term) {
    float seen, next;
    __atomic_load(sum, &seen, __ATOMIC_RELAXED);
    do {
        next = seen + term;
    } while (!__atomic_compare_exchange(sum, &seen, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void race_add_f64(double *sum, double term) {
    double seen, next;
    __atomic_load(sum, &seen, __ATOMIC_RELAXED);
    do {
        next = seen + term;
    } while (!__atomic_compare_exchange(sum, &seen, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "an addition takes no lock");

/* Hands out 0, 1, 2, ..., each once, to whoever comes. */
static inline size_t race_take(size_t *next) {
    return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
}

/* How many threads race: all of the call's where there are several pieces. Small sums race, too,
 * else the mode would have no effect on them. */
static inline int race_threads(const struct op_call *call, size_t pieces) {
    return pieces < 2 || call->threads < 1 ? 1 : call->threads;
}

#if defined(TWINSTEP_VARIANT)
#include "base/variant.h"

/* Adds a chunk's sums to shared ones, from the first number to the last or from the last to the
 * first. Threads that go both ways cross somewhere, and where they do shows in the order of their
 * additions. */
static inline void race_add_both_ways(accumulator *sum, const accumulator *terms, size_t count,
                                      int back) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = back ? count - 1 - i : i;
        ACC_NAME_(race_add)(sum + at, terms[at]);
    }
}

static inline void race_add(accumulator *sum, const accumulator *terms, size_t count) {
    for (size_t i = 0; i < count; i++)
        ACC_NAME_(race_add)(sum + i, terms[i]);
}
#endif

#endif
