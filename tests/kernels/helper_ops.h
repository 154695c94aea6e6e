/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the ops share: number pairs, machines (an instruction set with a number of
 * threads), drawn buffers, gathered rows between poisoned ones, and exact comparison.
 *
 * A test works out its expectation once per number pair, in doubles, and compares every machine
 * with it. Draws come from Philox at the printed seed. */
#ifndef TWINSTEP_TESTS_KERNELS_HELPER_OPS_H
#define TWINSTEP_TESTS_KERNELS_HELPER_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernels/backend_abi.h"
#include "kernels/op.h"
#include "tests/kernels/helper_law.h"

#define SEED UINT64_C(0x7d3c91e5a2f08b46)

struct bench {
    const struct backend *backend; /* NULL: the shim that is linked in */
    struct arena arena;            /* memory of the backend, where there is one */
    struct law law;
    enum dtype accumulate;
    size_t carrier, accumulator; /* bytes of one number */
    uint64_t next;               /* next draw */
    struct op_call call;         /* for law_tile and for the ops */
    struct order order;
    unsigned char *scratch; /* reused; a call gets its end, so that an overrun leaves it */
    size_t scratch_bytes;
};

/* Returns the module that the environment variable TWINSTEP_BACKEND names, opened: "auto" is the
 * device's (twinstep_cuda.so), anything else a file. Returns NULL where none is named. Ends the
 * program with 77 (skipped) where the module or its device is missing. */
const struct backend *bench_backend(void);

/* The number pairs with which every op is tested: f32 and the short formats on both accumulators,
 * and f64. */
#define BENCH_PAIRS 7
void bench_open(struct bench *bench, size_t pair);
void bench_close(struct bench *bench);

/* Switches the call to mode `shuffled` for these kinds of sums, at an address in which every field
 * is used. */
void bench_shuffle(struct bench *bench, uint32_t kinds, uint32_t chunk, enum op_site site);

/* Goes to the next machine of this computer: sets call.threads and *out_ops. Returns 0 when all
 * were visited. The last machine is the backend, or the shim. *state starts at 0. call.scratch
 * holds exactly as many bytes as backend_scratch says for `limits`. */
int bench_machine(struct bench *bench, const struct op_limits *limits, size_t *state,
                  const struct op_table **out_ops);

/* Returns `count` doubles, all zero. */
double *bench_numbers(struct bench *bench, size_t count);

/* Draws `count` numbers of dtype, spread over [-3, 3] * scale, with many bits of the significand
 * set. */
double *bench_draw(struct bench *bench, size_t count, enum dtype dtype, double scale);
uint32_t bench_integer(struct bench *bench, uint32_t bound);
uint32_t *bench_integers(struct bench *bench, uint32_t count, uint32_t bound);

/* Returns a copy of the values as they lie in an op's memory, `size` bytes each. */
void *bench_store(struct bench *bench, const double *values, size_t count, size_t size);

/* Returns a copy of the bytes in memory that the backend sees; kernels of a device see no variable
 * of a C function. */
void *bench_copy(struct bench *bench, const void *bytes, size_t size);

/* Draws a list of `count` distinct rows, in no particular order, out of bench_physical(count). */
struct row_list bench_rows(struct bench *bench, uint32_t count);
size_t bench_physical(uint32_t count);

/* Puts NaN into the rows that are not listed, so that a read of one shows. */
void bench_poison(double *values, size_t width, const struct row_list *rows);

/* Compares bits, except that any NaN equals any NaN. Fails with `what`, the pair, the table and the
 * first element that differs. */
void bench_check(const struct bench *bench, const struct op_table *ops, const char *what,
                 const void *got, const double *want, size_t count, size_t size);

/* Returns a buffer to write to: a new copy of `before`, since machines must not see each other's
 * output. */
void *bench_output(struct bench *bench, const double *before, size_t count, size_t size);

/* Runs `test` once for each of the BENCH_PAIRS pairs. */
void bench_pairs(void (*test)(struct bench *bench));

#endif
