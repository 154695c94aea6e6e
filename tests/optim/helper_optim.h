/* SPDX-License-Identifier: Apache-2.0
 * Tensors for the optimizer tests, filled from Philox, the dtypes to try, and rounding written a
 * second time, slowly. */
#ifndef TWINSTEP_TESTS_OPTIM_HELPER_OPTIM_H
#define TWINSTEP_TESTS_OPTIM_HELPER_OPTIM_H

#include "kernels/op.h"
#include "optim/optim.h"

#define HELPER_COUNT 20011 /* three pieces of work, no multiple of anything */

/* The buffers of one tensor, wide enough for either carrier. */
struct helper_tensor {
    struct optim_tensor tensor;
    double param[HELPER_COUNT];
    double master[HELPER_COUNT];
    double gradient[HELPER_COUNT];
    double slot[OPTIM_SLOTS_MAX][HELPER_COUNT];
    double before[HELPER_COUNT]; /* copy of the working values: helper_keep */
};

struct helper_dtypes {
    enum dtype param, gradient, slot;
    int master; /* enum dtype, or -1 */
};

/* The first two are f32 and f64. A slow test may stop after the first HELPER_CASES_USUAL. */
#define HELPER_CASES_USUAL 7
#define HELPER_CASES 12
struct helper_case {
    const char *name;
    struct helper_dtypes dtypes;
};
extern const struct helper_case helper_cases[HELPER_CASES];

/* Fills parameters with numbers around 0.05 and slots with 0. The same seed gives the same
 * values. */
void helper_open(struct helper_tensor *tensor, size_t count, struct helper_dtypes dtypes,
                 uint64_t seed);

/* Fills the gradients of step t with numbers around 0.01. */
void helper_gradient(struct helper_tensor *tensor, uint64_t seed, uint64_t t);

/* Copies the working values to `before`. */
void helper_keep(struct helper_tensor *tensor);

/* Returns a call over tensors[0 .. count-1] with one thread and the base instruction set. */
struct optim_call helper_call(const struct optim_tensor *tensors, uint32_t count,
                              const struct optim_group *groups, uint32_t group_count, uint64_t *t,
                              const void *values);

double helper_get(const void *values, enum dtype dtype, size_t index);
void helper_set(void *values, enum dtype dtype, size_t index, double value);

/* Returns a class with some keys set in a scenario's words (name, value, ...; NULL ends them): its
 * parameters, not yet checked. */
#define HELPER_VALUES 256
const struct optim_class *helper_values(const char *name, const char *const *keys, size_t count,
                                        unsigned char values[HELPER_VALUES]);

/* Returns the nearest number of the dtype, ties to even, by frexp and rint; it shares nothing with
 * base/real.h. */
double helper_round(double x, enum dtype dtype);

/* Tells whether this machine runs the instruction set. */
int helper_has_isa(enum isa isa);

/* Tells whether all that training carries on is equal, bit for bit, except that any NaN equals any
 * other. */
int helper_same(const struct helper_tensor *a, const struct helper_tensor *b);

#endif
