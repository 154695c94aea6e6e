/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Attention on tensor cores (kernels/cuda/tensor_attention.cu) against the kernels of mode
 * invariant: forward and backward, dQ alone in its block and racing, heads and sequences that end
 * inside tiles, and dropout. It runs on the scalar twin of the cores on the host
 * (kernels/cuda/tensor.h), or on the device that TWINSTEP_BACKEND names.
 *
 * The bounds are fractions of the largest result of a tensor. The two kernels round P and dS to the
 * operands' dtype at other places and add in another order, so that they may differ by about two
 * half ulps of that dtype: 2^-8 each for bf16, 2^-11 for f16. The bounds allow four half ulps
 * (2^-6, 2^-9), and two (2^-7) where only operands are bf16 and results stay f32. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/dropout.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

#define SHAPES (WATCHED ? 4 : COUNT_OF(shapes))

#define PAIR_F32 0u /* of helper_ops: f32, bf16 and f16 on f32 sums */
#define PAIR_BF16 2u
#define PAIR_F16 4u

static const struct library_mode mode = {.pinned = 1, .ordered = 1};
static const struct racing racing = {SUM_DQ, 16};

/* Lengths of sequences with one row between them; a 0 ends the list. */
static const struct shape {
    uint32_t H, G, D;
    uint32_t length[4];
} shapes[] = {
    {1, 1, 16, {1, 31, 0}}, {4, 2, 48, {33, 2, 32, 0}}, {2, 1, 64, {70, 0}},
    {1, 1, 128, {40, 0}},   {2, 1, 96, {130, 0}},       {1, 1, 64, {257, 0}},
};

enum { OUT, DQ, DK, DV, RESULTS };
static const char *const result_names[RESULTS] = {"out", "dq", "dk", "dv"};

struct problem {
    struct bench bench;
    const struct op_table *ops;
    const struct shape *shape;
    struct sequence sequences[4];
    uint32_t count, rows;
    double *q, *k, *v, *dout;
    void *result[RESULTS];
    int drops, flash; /* flash: the backward gets what the forward stored */
};

/* Rows that belong to no sequence hold NaN. */
static double *drawn(struct problem *p, uint32_t width, double scale) {
    double *const values =
        bench_draw(&p->bench, (size_t)p->rows * width, p->bench.law.compute, scale);
    for (uint32_t row = 0, i = 0; row < p->rows; row++) {
        while (i < p->count && row >= p->sequences[i].row + p->sequences[i].length)
            i++;
        const int inside = i < p->count && row >= p->sequences[i].row;
        for (uint32_t c = 0; c < width && !inside; c++)
            values[(size_t)row * width + c] = (double)NAN;
    }
    return values;
}

static void open_problem(struct problem *p, size_t pair, const struct shape *shape) {
    struct op_limits limits = {.width = 512, .H = shape->H, .G = shape->G, .D = shape->D};
    memset(p, 0, sizeof *p);
    bench_open(&p->bench, pair);
    p->bench.next += shape->D;
    p->shape = shape;
    p->rows = 1;
    for (; p->count < 4 && shape->length[p->count] != 0; p->count++) {
        p->sequences[p->count] = (struct sequence){p->rows, shape->length[p->count], p->count, 0};
        p->rows += shape->length[p->count] + 1;
    }
    limits.rows = limits.length = p->rows;
    limits.threads = 1;
    limits.library = 512;
    p->ops = machine_open(&p->bench, &limits);
    p->q = drawn(p, shape->H * shape->D, 0.6);
    p->k = drawn(p, shape->G * shape->D, 0.6);
    p->v = drawn(p, shape->G * shape->D, 1.0);
    p->dout = drawn(p, shape->H * shape->D, 1.0);
}

static void *stored(struct problem *p, const double *values, uint32_t width) {
    return bench_store(&p->bench, values, (size_t)p->rows * width, p->bench.carrier);
}

static const struct dropout masks = {.map = DROPOUT_ADDRESSED, .keep = 0.8, .seed = SEED, .op = 5};

/* Runs both directions, into results that were 7 everywhere. */
static void run(struct problem *p, const struct library_mode *library, int races) {
    const struct dropout *const dropout = p->drops ? &masks : NULL;
    const struct shape *const s = p->shape;
    const uint32_t widths[RESULTS] = {s->H * s->D, s->H * s->D, s->G * s->D, s->G * s->D};
    const void *const sequences = bench_copy(&p->bench, p->sequences, sizeof p->sequences);
    struct op_call *const call = &p->bench.call;
    for (int i = 0; i < RESULTS; i++) {
        double *const before = bench_numbers(&p->bench, (size_t)p->rows * widths[i]);
        for (size_t k = 0; k < (size_t)p->rows * widths[i]; k++)
            before[k] = 7.0;
        p->result[i] = stored(p, before, widths[i]);
    }
    const double scale = 1.0 / sqrt((double)s->D);
    const struct attention_forward_args forward = {
        .sequences = (const struct sequence *)sequences,
        .count = p->count,
        .H = s->H,
        .G = s->G,
        .D = s->D,
        .scale = scale,
        .q = stored(p, p->q, widths[OUT]),
        .k = stored(p, p->k, widths[DK]),
        .v = stored(p, p->v, widths[DV]),
        .out = p->result[OUT],
        .dropout = dropout,
    };
    const struct attention_backward_args backward = {
        .sequences = forward.sequences,
        .count = p->count,
        .H = s->H,
        .G = s->G,
        .D = s->D,
        .scale = scale,
        .q = forward.q,
        .k = forward.k,
        .v = forward.v,
        .dout = stored(p, p->dout, widths[DQ]),
        .dq = p->result[DQ],
        .dk = p->result[DK],
        .dv = p->result[DV],
        .out = p->flash ? p->result[OUT] : NULL,
        .dropout = dropout,
    };
    call->library = library;
    call->racing = races ? &racing : NULL;
    p->ops->attention_forward(call, &forward);
    p->ops->attention_backward(call, &backward);
    machine_wait(&p->bench, p->ops->name);
    call->library = NULL;
    call->racing = NULL;
}

/* Every result must lie within `bound` of the largest one; every row of no sequence must be
 * untouched. */
static void compare(const struct problem *p, void *const own[RESULTS], double bound) {
    const struct shape *const s = p->shape;
    for (int i = 0; i < RESULTS; i++) {
        const uint32_t width = (i == OUT || i == DQ ? s->H : s->G) * s->D;
        const size_t count = (size_t)p->rows * width;
        const float *const is = (const float *)p->result[i], *const due = (const float *)own[i];
        double most = 0.0;
        for (size_t k = 0; k < count; k++)
            if (due[k] != 7.0f) most = fmax(most, fabs((double)due[k]));
        for (size_t k = 0; k < count; k++) {
            const double gap = fabs((double)is[k] - (double)due[k]);
            if (!(gap <= bound * most) || (due[k] == 7.0f && is[k] != 7.0f))
                fail_msg("%s, %s, H %u, G %u, D %u, row %zu: expected %a, got %a", result_names[i],
                         dtype_name(p->bench.law.compute), s->H, s->G, s->D, k / width,
                         (double)due[k], (double)is[k]);
        }
    }
}

static int same(void *const a[RESULTS], void *const b[RESULTS], const struct problem *p) {
    const struct shape *const s = p->shape;
    int equal = 1;
    for (int i = 0; i < RESULTS; i++)
        equal &= memcmp(a[i], b[i], (size_t)p->rows * (i < DK ? s->H : s->G) * s->D * 4) == 0;
    return equal;
}

/* The tensor kernels must be near those of mode invariant, and must not be those kernels: their
 * bits differ once a sequence is longer than one tile of 32. */
static void test_shape(size_t pair, const struct shape *shape, const struct op_rounding *rounding,
                       int flash, double bound) {
    struct problem p;
    void *own[RESULTS], *first[RESULTS];
    open_problem(&p, pair, shape);
    p.bench.call.rounding = rounding;
    p.drops = shape == &shapes[1];
    p.flash = flash;
    run(&p, NULL, 0);
    memcpy(own, p.result, sizeof own);
    run(&p, &mode, 0);
    compare(&p, own, bound);
    if (shape->length[0] > 32) assert_false(same(own, p.result, &p));
    memcpy(first, p.result, sizeof first);
    shim_seed(SEED + shape->D);
    run(&p, &mode, 0);
    assert_true(same(first, p.result, &p)); /* in whatever order blocks and threads came */
    run(&p, &mode, 1);
    compare(&p, own, bound);
    bench_close(&p.bench);
}

static void corroborate_bf16(void **state) {
    static const struct op_rounding eager = {DTYPE_BF16, DTYPE_BF16},
                                    wide = {DTYPE_BF16, DTYPE_F32};
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        test_shape(PAIR_BF16, &shapes[i], i % 2 == 0 ? &wide : &eager, i == 2, 0x1p-6);
    if (!WATCHED)
        test_shape(PAIR_F32, &shapes[1], &wide, 0, 0x1p-7); /* f32 whose operands are bf16 */
}

static void corroborate_f16(void **state) {
    static const struct op_rounding wide = {DTYPE_F16, DTYPE_F32};
    (void)state;
    if (WATCHED) return;
    for (size_t i = 0; i < SHAPES; i++)
        test_shape(PAIR_F16, &shapes[i], i % 2 == 0 ? NULL : &wide, i % 3 == 0, 0x1p-9);
}

/* Calls for which there are no tensor cores (f32, tf32) or no tensor kernel (odd head widths) must
 * have the bits of mode invariant. */
static void verify_others_untouched(void **state) {
    static const struct shape odd = {1, 1, 24, {40, 0}}, long_head = {1, 1, 144, {20, 0}};
    static const struct op_rounding tf32 = {DTYPE_TF32, DTYPE_F32};
    static const struct {
        size_t pair;
        const struct shape *shape;
        const struct op_rounding *rounding;
    } cases[] = {{PAIR_F32, &shapes[1], NULL},
                 {PAIR_F32, &shapes[1], &tf32},
                 {PAIR_BF16, &odd, NULL},
                 {PAIR_BF16, &long_head, NULL}};
    (void)state;
    if (WATCHED) return;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct problem p;
        void *own[RESULTS];
        open_problem(&p, cases[i].pair, cases[i].shape);
        p.bench.call.rounding = cases[i].rounding;
        run(&p, NULL, 0);
        memcpy(own, p.result, sizeof own);
        run(&p, &mode, 0);
        assert_true(same(own, p.result, &p));
        bench_close(&p.bench);
    }
}

/* Makes scores that are not finite out of operands that are: where a row of q has `at` in column c,
 * keys that have at or -at there overflow the score to an infinity. Two such columns of opposite
 * sign cancel in the step of a tensor core, which rounds neither product. */
enum { LESS_FIRST, LESS_SOME, LESS_ALL, MORE_ONE, MORE_EARLY, SPECIALS };

static void make_special(struct problem *p, double at, int finite) {
    const uint32_t D = p->shape->D;
    for (uint32_t i = 0; i < p->sequences[0].length; i++) {
        double *const q = p->q + (size_t)(p->sequences[0].row + i) * D;
        double *const k = p->k + (size_t)(p->sequences[0].row + i) * D;
        const uint32_t kind = finite ? (i + 2) % 3 : i % (SPECIALS + 2);
        for (uint32_t c = 0; c <= SPECIALS; c++)
            q[c] = k[c] = 0.0;
        if (kind < SPECIALS && (!finite || kind != LESS_ALL)) q[kind] = at;
        k[LESS_FIRST] = i == 0 ? -at : 0.0;
        k[LESS_SOME] = i % 3 == 0 || i == 33 ? -at : 0.0;
        k[LESS_ALL] = -at;
        k[MORE_ONE] = i == 2 ? at : 0.0;
        k[MORE_EARLY] = i == 1 ? at : 0.0;
    }
}

/* A result must be NaN where law 6 gives NaN, and else lie within `bound` of its column's largest.
 * dQ of the columns that make the special scores is what remains of sums that cancel, so there it
 * only has to be finite. */
static void compare_special(const struct problem *p, void *const own[RESULTS], double bound) {
    const uint32_t width = p->shape->D;
    for (int i = 0; i < RESULTS; i++)
        for (uint32_t c = 0; c < width; c++) {
            const float *const is = (const float *)p->result[i], *const due = (const float *)own[i];
            double most = 0.0;
            for (size_t at = c; at < (size_t)p->rows * width; at += width)
                if (isfinite(due[at])) most = fmax(most, fabs((double)due[at]));
            for (size_t at = c; at < (size_t)p->rows * width; at += width) {
                const double gap = fabs((double)is[at] - (double)due[at]);
                if ((isnan(is[at]) && isnan(due[at])) || is[at] == due[at]) continue;
                if (i == DQ && c <= SPECIALS && isfinite(is[at]) && isfinite(due[at])) continue;
                if (!(gap <= bound * most))
                    fail_msg("%s, %s, row %zu, column %u: expected %a, got %a", result_names[i],
                             dtype_name(p->bench.law.compute), at / width, c, (double)due[at],
                             (double)is[at]);
            }
        }
}

/* Compares with the CPU. With `finite`, all rows are such that law 6 makes their results finite;
 * without, some results are NaN. */
static void test_special(size_t pair, double at, int finite, double bound) {
    static const struct shape shape = {1, 1, 16, {70, 0}};
    const struct op_limits limits = {72, 72, 16, 72, 1, 1, 16, 1, 0, 0, 0, 0, 0};
    struct problem p;
    void *own[RESULTS];
    size_t bytes = 0, numbers = 0;
    open_problem(&p, pair, &shape);
    make_special(&p, at, finite);
    const struct op_table *const ops = p.ops;
    void *const scratch = p.bench.call.scratch;
    assert_int_equal(backend_ops(ISA_BASE, p.bench.law.compute, p.bench.accumulate, &p.ops), 0);
    assert_int_equal(backend_scratch(&limits, &bytes), 0);
    p.bench.call.scratch = machine_take(&p.bench, bytes, 1);
    run(&p, NULL, 0);
    memcpy(own, p.result, sizeof own);
    p.ops = ops;
    p.bench.call.scratch = scratch;
    run(&p, &mode, 0);
    compare_special(&p, own, bound);
    run(&p, &mode, 1);
    compare_special(&p, own, bound);
    for (size_t i = 0; i < (size_t)p.rows * shape.D; i++)
        numbers += isfinite(((const float *)own[OUT])[i]) != 0;
    assert_true(finite ? numbers == (size_t)p.rows * shape.D : numbers < 60 * shape.D);
    bench_close(&p.bench);
}

static void corroborate_special_scores(void **state) {
    (void)state;
    for (int finite = 0; finite < 2 && !WATCHED; finite++) {
        test_special(PAIR_BF16, 0x1p70, finite, 0x1p-6);
        test_special(PAIR_F16, 0x1p15, finite, 0x1p-9); /* scores of f16: infinite when rounded */
    }
}

/* A chain of law 6 has an infinity where two products are larger than f32 and cancel; a core must
 * not, whatever it makes of the small terms beside them. */
static void verify_cancelling_products(void **state) {
    static const struct shape shape = {1, 1, 16, {70, 0}};
    struct problem p;
    size_t numbers = 0;
    (void)state;
    if (WATCHED) return;
    open_problem(&p, PAIR_BF16, &shape);
    for (uint32_t i = 0; i < shape.length[0]; i++) {
        double *const q = p.q + (size_t)(p.sequences[0].row + i) * shape.D;
        double *const k = p.k + (size_t)(p.sequences[0].row + i) * shape.D;
        q[4] = q[5] = 0x1p70;
        k[4] = i == 1 ? 0x1p70 : 0.0;
        k[5] = i == 1 ? -0x1p70 : 0.0;
    }
    run(&p, &mode, 0);
    for (size_t i = 0; i < (size_t)p.rows * shape.D; i++)
        numbers += isfinite(((const float *)p.result[OUT])[i]) != 0;
    assert_int_equal(numbers, (size_t)p.rows * shape.D);
    bench_close(&p.bench);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_bf16),           cmocka_unit_test(corroborate_f16),
        cmocka_unit_test(verify_others_untouched),    cmocka_unit_test(corroborate_special_scores),
        cmocka_unit_test(verify_cancelling_products),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
