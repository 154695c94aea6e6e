/* SPDX-License-Identifier: Apache-2.0
 * Two machines that solve one problem: the CPU's kernels, and those of kernels/cuda/. The latter
 * run in the shim, in the shim with every access watched (programs compiled with TWINSTEP_WATCHED),
 * or in the module that TWINSTEP_BACKEND names. What is run and how results are compared is left to
 * the test program.
 *
 * Invariant: each machine gets exactly the scratch that it asks for under the given limits, and
 * that scratch begins full of NaN. */
#ifndef TWINSTEP_TESTS_KERNELS_HELPER_MACHINES_H
#define TWINSTEP_TESTS_KERNELS_HELPER_MACHINES_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/form.h"
#include "base/splits.h"
#include "tests/shim/accesses.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/library.h"
#include "tests/shim/shim.h"
#include "tests/kernels/helper_ops.h"

/* SLOW programs make do with fewer cases: there each access is looked at, or each fibre is
 * expensive. */
#if defined(TWINSTEP_WATCHED)
#define WATCHED 1
#define TABLE(pair) op_table_##pair##_watch
#else
#define WATCHED 0
#define TABLE(pair) op_table_##pair##_shim
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SLOW 1
#else
#define SLOW WATCHED
#endif
extern const struct op_table TABLE(f32_f32), TABLE(f32_f64), TABLE(f64_f64);
extern const struct op_table TABLE(bf16_f32), TABLE(f16_f32);

/* Sets of number pairs (indices of helper_ops.h, as bits): the two ends, f32 and f64; one pair for
 * each table of ops; these and bf16; these and the short formats on f32 sums; all pairs. */
#define RUN_DISTANCES_ENDS 0x41u
#define RUN_DISTANCES_TABLES 0x43u
#define RUN_DISTANCES_BF16 0x47u
#define RUN_DISTANCES_NARROW 0x57u
#define RUN_DISTANCES_ALL 0x7fu

/* Index 0 is the CPU, index 1 the machine of kernels/cuda/. The fields `order` to `splits` are
 * storage for a test whose calls point there. */
struct machines {
    struct bench bench;
    const struct op_table *ops[2];
    struct op_call call[2];
    struct order order;
    struct racing racing;
    struct splits splits;
    uint32_t rounds; /* seeds of the shim so far */
    size_t pair;
};

/* Opens what the whole program needs; where it returns 0, `main` must fail. */
static inline int machines_ready(void) {
#if defined(TWINSTEP_WATCHED)
    return watch_open() == STATUS_OK;
#else
    return 1;
#endif
}

static inline void *machine_take(struct bench *bench, size_t count, size_t size) {
    void *piece = NULL;
    assert_int_equal(arena_take(&bench->arena, count, size, "test", &piece), STATUS_OK);
    return piece;
}

/* Returns the table of kernels/cuda/ for the pair. bench->call gets that table's scratch and one
 * thread. */
static inline const struct op_table *machine_open(struct bench *bench,
                                                  const struct op_limits *limits) {
    const struct op_table *ops = bench->law.compute == DTYPE_F64 ? &TABLE(f64_f64)
                                 : bench->law.wide               ? &TABLE(f32_f64)
                                                                 : &TABLE(f32_f32);
    size_t bytes = cuda_scratch_bytes(limits);
    if (limits->library != 0 && library_scratch_bytes(limits) > bytes)
        bytes = library_scratch_bytes(limits);
    if (bench->backend != NULL &&
        (bench->backend->ops(bench->law.compute, bench->accumulate, &ops) != STATUS_OK ||
         bench->backend->scratch(limits, &bytes) != STATUS_OK))
        fail_msg("%s", status_text());
    bench->call.threads = 1;
    bench->call.scratch = machine_take(bench, bytes, 1);
    memset(bench->call.scratch, 0xff, bytes);
    return ops;
}

/* Whether the pair has numbers that can lie in two bytes. */
static inline int machine_is_short(const struct bench *bench) {
    return !bench->law.wide &&
           (bench->law.compute == DTYPE_BF16 || bench->law.compute == DTYPE_F16);
}

/* Returns the table of kernels/cuda/ for calls like this one with numbers in two bytes. */
static inline const struct op_table *machine_narrow(const struct bench *bench,
                                                    const struct op_call *call) {
    const struct op_table *const own =
        bench->law.compute == DTYPE_BF16 ? &TABLE(bf16_f32) : &TABLE(f16_f32);
    const struct backend *const backend = bench->backend;
    const struct op_table *const ops =
        backend == NULL ? own : backend->narrow_ops(call, bench->accumulate);
    assert_non_null(ops);
    return ops;
}

/* The same numbers as `values`, carriers of the compute dtype, in two bytes each; with `shift` they
 * begin so many numbers behind a multiple of 64 bytes. */
static inline uint16_t *machine_short(struct bench *bench, const void *values, size_t count,
                                      size_t shift) {
    uint16_t *const out = (uint16_t *)machine_take(bench, count + shift, sizeof *out) + shift;
    form_narrow(values, form_own(bench->law.compute), count, out);
    return out;
}

/* Waits, and fails the test with `what` if a kernel went wrong since the last wait. */
static inline void machine_wait(const struct bench *bench, const char *what) {
    if ((bench->backend == NULL ? shim_error() : bench->backend->wait()) != STATUS_OK ||
        (bench->backend == NULL && library_error() != STATUS_OK))
        fail_msg("%s: %s", what, status_text());
}

/* Draws numbers of the compute dtype, stored as kernels read them. */
static inline void *machine_numbers(struct bench *bench, size_t count, double scale) {
    double *const drawn = bench_draw(bench, count, bench->law.compute, scale);
    return bench_store(bench, drawn, count, bench->carrier);
}

/* Draws whole numbers from -bound to bound; they are so small that their sums are exact in every
 * dtype. */
static inline double *machine_whole(struct bench *bench, size_t count, uint32_t bound) {
    double *const numbers = bench_numbers(bench, count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (double)bench_integer(bench, 2 * bound + 1) - bound;
    return numbers;
}

/* Returns number i of `memory`, whose numbers have `size` bytes each. */
static inline double machine_number(const void *memory, size_t i, size_t size) {
    return size == sizeof(float) ? (double)((const float *)memory)[i] : ((const double *)memory)[i];
}

static inline void machines_open(struct machines *m, size_t pair, const struct op_limits *limits) {
    size_t bytes = 0;
    memset(m, 0, sizeof *m);
    m->pair = pair;
    bench_open(&m->bench, pair);
    m->ops[1] = machine_open(&m->bench, limits);
    m->bench.call.layer = 301; /* where orders are drawn: every field is used */
    m->bench.call.side = 1;
    m->call[0] = m->call[1] = m->bench.call;
    assert_int_equal(backend_ops(ISA_BASE, m->bench.law.compute, m->bench.accumulate, &m->ops[0]),
                     STATUS_OK);
    assert_int_equal(backend_scratch(limits, &bytes), STATUS_OK);
    m->call[0].scratch = machine_take(&m->bench, bytes, 1);
    memset(m->call[0].scratch, 0xff, bytes);
    m->order = (struct order){.seed = SEED, .update = 6, .sample = 9};
}

/* Also true where the module that is named is the one that watches every access. */
static inline int machines_slow(void) {
    const struct backend *const backend = bench_backend();
    return SLOW || (backend != NULL && strcmp(backend->name, "watch") == 0);
}

/* Runs `test` for the pairs of `fast`, or for those of `slow` where the machine is slow. */
static inline void machines_pairs(const struct op_limits *limits, unsigned fast, unsigned slow,
                                  void (*test)(struct machines *m)) {
    const unsigned pairs = machines_slow() ? slow : fast;
    for (size_t pair = 0; pair < BENCH_PAIRS; pair++) {
        struct machines m;
        if ((pairs >> pair & 1) == 0) continue;
        machines_open(&m, pair, limits);
        test(&m);
        bench_close(&m.bench);
    }
    shim_close();
}

#endif
