/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes the machines, buffers and draws that helper_ops.h declares. */
#include "tests/kernels/helper_ops.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "determinism/stream.h"
#include "kernels/backend_module.h"
#include "kernels/cuda/kernels_cuda.h"
#include "tests/base/helper_isa.h"
#include "tests/shim/shim.h"

static const struct {
    enum dtype compute, accumulate;
} pairs[BENCH_PAIRS] = {
    {DTYPE_F32, DTYPE_F32},  {DTYPE_F32, DTYPE_F64}, {DTYPE_BF16, DTYPE_F32},
    {DTYPE_BF16, DTYPE_F64}, {DTYPE_F16, DTYPE_F32}, {DTYPE_TF32, DTYPE_F32},
    {DTYPE_F64, DTYPE_F64},
};

const struct backend *bench_backend(void) {
    const char *const path = getenv("TWINSTEP_BACKEND");
    const struct backend *backend = NULL;
    if (path == NULL) return NULL;
    const enum status status = backend_module_open(path, &backend);
    if (status == STATUS_UNSUPPORTED) {
        fprintf(stderr, "skipped: %s\n", status_text());
        _exit(77);
    }
    if (status != STATUS_OK) fail_msg("TWINSTEP_BACKEND: %s", status_text());
    return backend;
}

void bench_open(struct bench *bench, size_t pair) {
    memset(bench, 0, sizeof *bench);
    bench->backend = bench_backend();
    if (bench->backend != NULL) bench->arena.source = &bench->backend->memory;
    bench->law.compute = pairs[pair].compute;
    bench->law.wide = pairs[pair].accumulate == DTYPE_F64;
    bench->accumulate = pairs[pair].accumulate;
    bench->carrier = dtype_carrier(pairs[pair].compute);
    bench->accumulator = dtype_carrier(pairs[pair].accumulate);
    bench->next = (uint64_t)pair << 40;
    bench->call.compute = pairs[pair].compute;
}

void bench_close(struct bench *bench) {
    arena_close(&bench->arena);
}

void bench_shuffle(struct bench *bench, uint32_t kinds, uint32_t chunk, enum op_site site) {
    bench->order = (struct order){SEED ^ 0x55u, kinds, chunk, 3 + chunk, 1234567};
    bench->call.order = &bench->order;
    bench->call.site = site;
    bench->call.layer = 301;
    bench->call.side = 1;
}

static void *take(struct bench *bench, size_t count, size_t size) {
    void *piece = NULL;
    assert_int_equal(arena_take(&bench->arena, count, size, "test", &piece), STATUS_OK);
    return piece;
}

/* Scratch begins full of NaN, since no op may count on zeros. */
static void *scratch_of(struct bench *bench, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (bytes > bench->scratch_bytes) {
        bench->scratch = (unsigned char *)take(bench, bytes, 1);
        bench->scratch_bytes = bytes;
        memset(bench->scratch, 0xff, bytes);
    }
    return bench->scratch + (bench->scratch_bytes - bytes);
}

extern const struct op_table op_table_f32_f32_shim, op_table_f32_f64_shim, op_table_f64_f64_shim;

/* Fibres are slow under AddressSanitizer and unknown to ThreadSanitizer. In those builds the shim
 * is left out here; test_cuda_ops and test_shim still run it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WITHOUT_SHIM 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WITHOUT_SHIM 1
#endif
#endif
#ifndef WITHOUT_SHIM
#define WITHOUT_SHIM 0
#endif

/* The kernels of kernels/cuda/ in the shim, with their threads run in an order that `seed`
 * fixes. */
static int shim_machine(struct bench *bench, const struct op_limits *limits, uint64_t seed,
                        const struct op_table **out_ops) {
    if (WITHOUT_SHIM || cuda_refuses(&bench->call) != NULL) return 0;
    *out_ops = bench->law.compute == DTYPE_F64 ? &op_table_f64_f64_shim
               : bench->law.wide               ? &op_table_f32_f64_shim
                                               : &op_table_f32_f32_shim;
    bench->call.threads = 1;
    bench->call.scratch = scratch_of(bench, cuda_scratch_bytes(limits));
    shim_seed(seed);
    return 1;
}

/* A named module takes the shim's place, with the table that it has for this pair. */
static int module_machine(struct bench *bench, const struct op_limits *limits,
                          const struct op_table **out_ops) {
    const struct backend *const backend = bench->backend;
    size_t bytes = 0;
    if (backend->refuses(&bench->call) != NULL) return 0;
    if (backend->ops(bench->law.compute, bench->accumulate, out_ops) != STATUS_OK ||
        backend->scratch(limits, &bytes) != STATUS_OK)
        fail_msg("%s", status_text());
    bench->call.threads = 1;
    bench->call.scratch = scratch_of(bench, bytes);
    return 1;
}

int bench_machine(struct bench *bench, const struct op_limits *limits, size_t *state,
                  const struct op_table **out_ops) {
    static const int threads[] = {1, 2};
    const struct backend *const backend = bench->backend;
    if (!(WITHOUT_SHIM && backend == NULL) &&
        (backend == NULL ? shim_error() : backend->wait()) != STATUS_OK)
        fail_msg("%s", status_text());
    for (; *state < 3 * COUNT_OF(threads);) {
        const size_t at = (*state)++;
        const enum isa isa = (enum isa)(ISA_BASE + at / COUNT_OF(threads));
        if (!helper_has_own_objects(isa)) continue;
        if (backend_ops(isa, bench->law.compute, bench->accumulate, out_ops) != STATUS_OK) continue;
        struct op_limits own = *limits;
        size_t bytes = 0;
        own.threads = threads[at % COUNT_OF(threads)];
        assert_int_equal(backend_scratch(&own, &bytes), STATUS_OK);
        bench->call.threads = own.threads;
        bench->call.scratch = scratch_of(bench, bytes);
        return 1;
    }
    if ((*state)++ > 3 * COUNT_OF(threads)) return 0;
    if (backend != NULL) return module_machine(bench, limits, out_ops);
    return shim_machine(bench, limits, SEED ^ bench->next, out_ops);
}

double *bench_numbers(struct bench *bench, size_t count) {
    return (double *)take(bench, count, sizeof(double));
}

static uint32_t word(struct bench *bench) {
    const struct stream_site site = {{{0, 0, 0x7e57u, 0}}};
    return stream_word(SEED, site, bench->next++);
}

double *bench_draw(struct bench *bench, size_t count, enum dtype dtype, double scale) {
    double *const values = bench_numbers(bench, count);
    for (size_t i = 0; i < count; i++) {
        const double uniform = stream_uniform(word(bench)) - stream_uniform(word(bench)) +
                               0x1p-30 * stream_uniform(word(bench));
        values[i] = law_round(3.0 * scale * uniform, dtype);
    }
    return values;
}

uint32_t bench_integer(struct bench *bench, uint32_t bound) {
    return (uint32_t)(((uint64_t)word(bench) * bound) >> 32);
}

uint32_t *bench_integers(struct bench *bench, uint32_t count, uint32_t bound) {
    uint32_t *const integers = (uint32_t *)take(bench, count, sizeof *integers);
    for (uint32_t i = 0; i < count; i++)
        integers[i] = bench_integer(bench, bound);
    return integers;
}

void *bench_store(struct bench *bench, const double *values, size_t count, size_t size) {
    void *const memory = take(bench, count, size);
    for (size_t i = 0; i < count; i++) {
        if (size == sizeof(double))
            ((double *)memory)[i] = values[i];
        else
            ((float *)memory)[i] = (float)values[i];
    }
    return memory;
}

void *bench_copy(struct bench *bench, const void *bytes, size_t size) {
    void *const memory = take(bench, size, 1);
    memcpy(memory, bytes, size);
    return memory;
}

void *bench_output(struct bench *bench, const double *before, size_t count, size_t size) {
    return bench_store(bench, before, count, size);
}

size_t bench_physical(uint32_t count) {
    return (size_t)count * 2 + 1;
}

struct row_list bench_rows(struct bench *bench, uint32_t count) {
    const uint32_t physical = (uint32_t)bench_physical(count);
    uint32_t *const index = (uint32_t *)take(bench, physical, sizeof *index);
    for (uint32_t i = 0; i < physical; i++) {
        const uint32_t at = bench_integer(bench, i + 1);
        index[i] = index[at];
        index[at] = i;
    }
    return (struct row_list){index, count};
}

void bench_poison(double *values, size_t width, const struct row_list *rows) {
    for (size_t row = 0; row < bench_physical(rows->count); row++) {
        int listed = 0;
        for (uint32_t i = 0; i < rows->count; i++)
            listed |= rows->index[i] == row;
        for (size_t c = 0; !listed && c < width; c++)
            values[row * width + c] = (double)NAN;
    }
}

static double stored(const void *memory, size_t i, size_t size) {
    if (size == sizeof(double)) return ((const double *)memory)[i];
    return (double)((const float *)memory)[i];
}

void bench_check(const struct bench *bench, const struct op_table *ops, const char *what,
                 const void *got, const double *want, size_t count, size_t size) {
    if (bench->backend != NULL && bench->backend->wait() != STATUS_OK)
        fail_msg("%s: %s", what, status_text());
    for (size_t i = 0; i < count; i++) {
        const double is = stored(got, i, size);
        const double due = want[i];
        if (isnan(is) && isnan(due)) continue;
        if (is == due && signbit(is) == signbit(due)) continue;
        fail_msg("%s, %s of %s, %d threads, element %zu of %zu: expected %a, got %a (seed %llx)",
                 what, ops->name, dtype_name(bench->law.compute), bench->call.threads, i, count,
                 due, is, (unsigned long long)SEED);
    }
}

void bench_pairs(void (*test)(struct bench *bench)) {
    print_message("seed %llx\n", (unsigned long long)SEED);
    for (size_t pair = 0; pair < BENCH_PAIRS; pair++) {
        struct bench bench;
        bench_open(&bench, pair);
        test(&bench);
        bench_close(&bench);
    }
}
