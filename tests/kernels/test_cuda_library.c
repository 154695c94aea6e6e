/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Linear layers of kernels/cuda/ computed by a library: its scalar twin on the host
 * (tests/shim/library_twin.c), or cuBLAS where TWINSTEP_BACKEND names a device's module. Results
 * must be near those of mode invariant, and equal where every sum is exact. Padding and unwritten
 * scratch must never be read. Each switch that leaves something free must change bits of the twin,
 * and nothing else may change them from run to run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/form.h"
#include "tests/shim/library_twin.h"
#include "tests/shim/shim_memory.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

enum { FORWARD, INPUT, WEIGHT, OPS };
static const char *const op_names[OPS] = {"linear_forward", "linear_input", "linear_weight"};

struct shape {
    uint32_t rows, N, K;
};

/* These shapes end inside tiles, slabs and parts of sums; the first has one row, one output and one
 * term. */
static const struct shape shapes[] = {{1, 1, 1}, {3, 17, 9}, {66, 5, 70}, {9, 40, 130}};
#define ROWS 300u
#define WIDTH 200u

/* One problem and the op's results in doubles. */
struct problem {
    struct bench *bench;
    const struct op_table *ops;
    struct shape shape;
    struct row_list list; /* index NULL: rows 0 .. */
    size_t physical;
    int add;
    double *x, *w, *dy, *y, *dx, *acc; /* before */
};

static const struct op_table *open_machine(struct bench *b) {
    const struct op_limits limits = {.rows = ROWS,
                                     .width = WIDTH,
                                     .length = 1,
                                     .H = 1,
                                     .G = 1,
                                     .D = 1,
                                     .threads = 1,
                                     .library = (size_t)WIDTH * WIDTH};
    return machine_open(b, &limits);
}

static double *numbers(struct bench *b, size_t count, enum dtype dtype, int exact) {
    return exact ? machine_whole(b, count, 1) : bench_draw(b, count, dtype, 1.0);
}

/* Rows: all, the listed ones of an op, or the listed ones of a call that has them all. */
enum rows { ROWS_ALL, ROWS_LISTED, ROWS_OF_CALL, ROWS_KINDS };

static struct problem problem_of(struct bench *b, const struct op_table *ops, struct shape shape,
                                 enum rows rows, int exact) {
    const enum dtype compute = b->law.compute;
    struct problem p = {.bench = b, .ops = ops, .shape = shape, .list = {NULL, shape.rows}};
    p.physical = rows == ROWS_ALL ? shape.rows : bench_physical(shape.rows);
    if (rows != ROWS_ALL) p.list = bench_rows(b, shape.rows);
    b->call.rows = rows == ROWS_OF_CALL ? (uint32_t)p.physical : 0;
    p.add = shape.K % 2 == (rows == ROWS_LISTED);
    p.x = numbers(b, p.physical * shape.K, compute, exact);
    p.w = numbers(b, (size_t)shape.N * shape.K, compute, exact);
    p.dy = numbers(b, p.physical * shape.N, compute, exact);
    p.y = numbers(b, p.physical * shape.N, compute, exact);
    p.dx = numbers(b, p.physical * shape.K, compute, exact);
    p.acc = numbers(b, (size_t)shape.N * shape.K, b->accumulate, exact);
    if (rows == ROWS_ALL) return p;
    bench_poison(p.x, shape.K, &p.list);
    bench_poison(p.dy, shape.N, &p.list);
    bench_poison(p.y, shape.N, &p.list);
    bench_poison(p.dx, shape.K, &p.list);
    return p;
}

static size_t result_count(const struct problem *p, int op) {
    return op == FORWARD ? p->physical * p->shape.N
           : op == INPUT ? p->physical * p->shape.K
                         : (size_t)p->shape.N * p->shape.K;
}

static void *run(const struct problem *p, int op, const struct library_mode *mode) {
    struct bench *const b = p->bench;
    const size_t bytes = op == WEIGHT ? b->accumulator : b->carrier;
    const struct shape s = p->shape;
    const void *const x = bench_store(b, p->x, p->physical * s.K, b->carrier);
    const void *const w = bench_store(b, p->w, (size_t)s.N * s.K, b->carrier);
    const void *const dy = bench_store(b, p->dy, p->physical * s.N, b->carrier);
    const double *const before = op == FORWARD ? p->y : op == INPUT ? p->dx : p->acc;
    void *const out = bench_store(b, before, result_count(p, op), bytes);
    const struct linear_forward_args forward = {p->list, s.N, s.K, x, w, out, NULL};
    const struct linear_input_args input = {p->list, s.N, s.K, dy, w, out, p->add};
    const struct linear_weight_args weight = {p->list, s.N, s.K, dy, x, out, 0};
    b->call.library = mode;
    if (op == FORWARD) p->ops->linear_forward(&b->call, &forward);
    if (op == INPUT) p->ops->linear_input(&b->call, &input);
    if (op == WEIGHT) p->ops->linear_weight(&b->call, &weight);
    machine_wait(b, op_names[op]);
    b->call.library = NULL;
    return out;
}

/* ---- numbers in two bytes ---- */

static uint16_t *store_short(struct bench *b, const double *values, size_t count) {
    return machine_short(b, bench_store(b, values, count, b->carrier), count, 0);
}

/* As run(), with all matrices in two bytes, by the table for these; what is returned lies in
 * carriers, or in accumulators. `bias`: of a forward, or NULL. */
static void *run_short(const struct problem *p, int op, const struct library_mode *mode,
                       const uint16_t *bias) {
    struct bench *const b = p->bench;
    const struct shape s = p->shape;
    const void *const x = store_short(b, p->x, p->physical * s.K);
    const void *const w = store_short(b, p->w, (size_t)s.N * s.K);
    const void *const dy = store_short(b, p->dy, p->physical * s.N);
    const double *const before = op == FORWARD ? p->y : op == INPUT ? p->dx : p->acc;
    const size_t count = result_count(p, op);
    void *const out = op == WEIGHT ? bench_store(b, before, count, b->accumulator)
                                   : store_short(b, before, count);
    const struct linear_forward_args forward = {p->list, s.N, s.K, x, w, out, bias};
    const struct linear_input_args input = {p->list, s.N, s.K, dy, w, out, p->add};
    const struct linear_weight_args weight = {p->list, s.N, s.K, dy, x, out, 0};
    struct op_call call = b->call;
    call.library = mode;
    call.narrow = 1;
    const struct op_table *const ops = machine_narrow(b, &call);
    if (op == FORWARD) ops->linear_forward(&call, &forward);
    if (op == INPUT) ops->linear_input(&call, &input);
    if (op == WEIGHT) ops->linear_weight(&call, &weight);
    machine_wait(b, op_names[op]);
    if (op == WEIGHT) return out;
    float *const wide = (float *)machine_take(b, count, sizeof *wide);
    form_widen(out, form_own(b->law.compute), count, wide);
    return wide;
}

static double number_at(const struct problem *p, int op, const void *memory, size_t i) {
    const size_t bytes = op == WEIGHT ? p->bench->accumulator : p->bench->carrier;
    return machine_number(memory, i, bytes);
}

/* A sum has up to 130 products of magnitude 9 at most. Their signs are random, so partial sums stay
 * far below 130 * 9 / 8 (`largest`), and the rounding errors of two orders of adding far below 64
 * accumulator ulps of it. Rounding the result adds half an ulp of the compute dtype, twice with
 * `add`; 2 * `rounding` covers the two results that are compared. */
static double bound_of(const struct problem *p, int op) {
    const double rounding = p->bench->law.compute == DTYPE_BF16  ? 0x1p-8
                            : p->bench->law.compute == DTYPE_F16 ? 0x1p-10
                            : p->bench->law.compute == DTYPE_F64 ? 0x1p-52
                            : p->bench->law.compute == DTYPE_F32 ? 0x1p-23
                                                                 : 0x1p-10;
    const double unit = p->bench->law.wide ? 0x1p-52 : 0x1p-23;
    const double largest = 130.0 * 9.0 / 8.0; /* far beyond what random signs reach */
    return largest * (64 * unit + (op == WEIGHT ? 0.0 : 2 * rounding));
}

static struct library_mode mode_of(unsigned bits) {
    return (struct library_mode){.pinned = (bits & 1) != 0,
                                 .ordered = (bits & 2) != 0,
                                 .split_k = (bits & 4) != 0,
                                 .atomics = (bits & 8) != 0,
                                 .fill = (bits & 16) != 0};
}

static const struct library_mode deterministic = {.pinned = 1, .ordered = 1};

/* Compares with mode invariant: near, or equal where `exact`. Both hold NaN where neither wrote. */
static void compare(const struct problem *p, int op, const struct library_mode *mode, int exact) {
    const void *const own = run(p, op, NULL);
    const void *const out = run(p, op, mode);
    for (size_t i = 0; i < result_count(p, op); i++) {
        const double is = number_at(p, op, out, i), due = number_at(p, op, own, i);
        if (isnan(is) && isnan(due)) continue;
        const int rounded = op == WEIGHT || law_round(is, p->bench->law.compute) == is;
        if (rounded && (exact ? is == due : fabs(is - due) <= bound_of(p, op))) continue;
        fail_msg("%s, %s of %s, %u rows, N %u, K %u, element %zu: expected %a, got %a",
                 op_names[op], p->ops->name, dtype_name(p->bench->law.compute), p->list.count,
                 p->shape.N, p->shape.K, i, due, is);
    }
}

static void compare_all(struct bench *b, int exact) {
    const struct op_table *const ops = open_machine(b);
    unsigned bits = 0;
    if (WATCHED && b->law.compute != DTYPE_F32 && b->law.compute != DTYPE_BF16) return;
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (int rows = 0; rows < ROWS_KINDS; rows++) {
            const struct problem p = problem_of(b, ops, shapes[i], (enum rows)rows, exact);
            for (int op = 0; op < OPS; op++) {
                const struct library_mode mode = mode_of(bits++ * 7);
                compare(&p, op, &mode, exact);
            }
        }
}

static void near_invariant(struct bench *b) {
    compare_all(b, 0);
}

static void exact_sums(struct bench *b) {
    compare_all(b, 1);
}

/* An op must do with matrices in two bytes what it does with carriers: the same bits on the host,
 * on a device sums that are as near, since its library may choose another algorithm. Shapes have
 * lines of whole and of broken multiples of 16 bytes, and one product that the twin lacks. */
static void assert_alike(const struct problem *p, int op, const void *due, const void *is) {
    for (size_t i = 0; i < result_count(p, op); i++) {
        const double a = number_at(p, op, due, i), b = number_at(p, op, is, i);
        if (isnan(a) && isnan(b)) continue;
        if (p->bench->backend == NULL ? a == b : fabs(a - b) <= bound_of(p, op)) continue;
        fail_msg("%s of %s in two bytes, %u rows%s, N %u, K %u, element %zu: expected %a, got %a",
                 op_names[op], dtype_name(p->bench->law.compute), p->list.count,
                 p->list.index == NULL ? "" : ", listed", p->shape.N, p->shape.K, i, a, b);
    }
}

/* A forward with a bias has the bits of the two ops that make it of carriers (law 17). */
static void compare_biased(const struct problem *p, const struct library_mode *mode) {
    struct bench *const b = p->bench;
    const size_t count = p->shape.N;
    const void *const bias = machine_numbers(b, count, 1.0);
    struct op_call call = b->call;
    call.compute = DTYPE_F32;
    call.library = mode;
    float *const y = (float *)machine_take(b, result_count(p, FORWARD), sizeof *y);
    memset(y, 0xff, result_count(p, FORWARD) * sizeof *y);
    p->ops->linear_forward(
        &call, &(struct linear_forward_args){
                   p->list, p->shape.N, p->shape.K,
                   bench_store(b, p->x, p->physical * p->shape.K, b->carrier),
                   bench_store(b, p->w, (size_t)p->shape.N * p->shape.K, b->carrier), y, NULL});
    call.compute = b->law.compute;
    p->ops->bias(&call, &(struct bias_args){p->list, p->shape.N, bias, y});
    machine_wait(b, "bias");
    float *const own = (float *)run_short(p, FORWARD, mode, machine_short(b, bias, count, 0));
    for (uint32_t r = 0; r < p->list.count; r++) {
        const size_t row = p->list.index == NULL ? r : p->list.index[r];
        for (uint32_t n = 0; n < p->shape.N; n++) {
            const size_t at = row * p->shape.N + n;
            if (b->backend == NULL ? y[at] == own[at]
                                   : fabs((double)(y[at] - own[at])) <= bound_of(p, FORWARD))
                continue;
            fail_msg("a bias in two bytes, %u rows, N %u, K %u: row %zu, column %u is %a for %a",
                     p->list.count, p->shape.N, p->shape.K, row, n, (double)own[at], (double)y[at]);
        }
    }
}

static void corroborate_near_invariant(void **state) {
    (void)state;
    bench_pairs(near_invariant);
}

static void corroborate_exact_sums(void **state) {
    (void)state;
    bench_pairs(exact_sums);
}

/* Operands may be rounded as they enter the product; every special number of the short formats is
 * among them. */
static void rounded_operands(struct bench *b) {
    static const struct op_rounding roundings[] = {
        {DTYPE_TF32, DTYPE_F32}, {DTYPE_BF16, DTYPE_F32}, {DTYPE_F16, DTYPE_F32}};
    static const double numbers_of[] = {0.0,      0x1p-24, -0x1p-24, 0x1.8p-15,        -0x1.ffcp-15,
                                        0x1p-14,  65504.0, -1.0,     0x1p-20,          0x1.4p-17,
                                        0x1p-126, 65520.0, -0.0,     (double)INFINITY, (double)NAN};
    const uint32_t count = (uint32_t)COUNT_OF(numbers_of);
    const struct shape shape = {count, 1, 1};
    if (b->law.compute != DTYPE_F32) return;
    const struct op_table *const ops = open_machine(b);
    for (size_t i = 0; i < COUNT_OF(roundings); i++) {
        b->call.rounding = &roundings[i];
        struct problem p = problem_of(b, ops, (struct shape){9, 17, 33}, ROWS_OF_CALL, 0);
        for (int op = 0; op < OPS; op++)
            compare(&p, op, &deterministic, 0);
        p = problem_of(b, ops, shape, ROWS_ALL, 1); /* one term each: sums are exact */
        memcpy(p.x, numbers_of, sizeof numbers_of);
        p.w[0] = 1.0;
        compare(&p, FORWARD, &deterministic, 1);
    }
}

static void corroborate_rounded_operands(void **state) {
    (void)state;
    bench_pairs(rounded_operands);
}

/* Tests a call whose physical rows are not the first ones of their buffers. */
static void verify_first_row(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    const struct op_table *const ops = open_machine(&b);
    struct problem p = problem_of(&b, ops, (struct shape){6, 11, 40}, ROWS_OF_CALL, 0);
    uint32_t index[6] = {4, 8, 5, 11, 7, 12};
    p.list.index = (const uint32_t *)bench_copy(&b, index, sizeof index);
    for (size_t i = 0; i < p.physical * 40; i++)
        p.x[i] = isnan(p.x[i]) ? 0.5 : p.x[i];
    bench_poison(p.x, 40, &p.list);
    b.call.first_row = 4;
    b.call.rows = 9;
    compare(&p, FORWARD, &deterministic, 0);
    bench_close(&b);
}

static int same(const struct problem *p, int op, const struct library_mode *a,
                const struct library_mode *b) {
    const size_t bytes = op == WEIGHT ? p->bench->accumulator : p->bench->carrier;
    return memcmp(run(p, op, a), run(p, op, b), result_count(p, op) * bytes) == 0;
}

/* Two runs must agree, and NaN in places that were not written must change nothing. On the twin,
 * each mechanism alone must change bits; the exception is atomics, which the twin's products do not
 * have. */
static void verify_switches(void **state) {
    (void)state;
    static const unsigned alone[] = {2, 1, 7}; /* of deterministic, 3: pinned, ordered */
    struct bench b;
    bench_open(&b, 0);
    const struct op_table *const ops = open_machine(&b);
    const struct problem p = problem_of(&b, ops, (struct shape){70, 66, 130}, ROWS_ALL, 0);
    for (int op = 0; op < OPS; op++) {
        const struct library_mode filled = mode_of(19), atomics = mode_of(11);
        assert_true(same(&p, op, &deterministic, &deterministic));
        assert_true(same(&p, op, &deterministic, &filled));
        for (size_t i = 0; i < COUNT_OF(alone) && b.backend == NULL; i++) {
            const struct library_mode mode = mode_of(alone[i]);
            if (same(&p, op, &deterministic, &mode))
                fail_msg("%s: switches %u move no bit", op_names[op], alone[i]);
            assert_true(same(&p, op, &mode, &mode));
        }
        if (b.backend == NULL) assert_true(same(&p, op, &deterministic, &atomics));
    }
    bench_close(&b);
}

/* ---- streams ---- */

enum { CHAIN = 5 };

/* Runs ops of which each reads what the one before wrote, while the products of both are on
 * different streams. A product runs on two streams, divided by rows of C; the fourth one has only
 * one. Results go to `out`; with `waits` the host waits after each op. */
static void chain(struct bench *b, const struct op_table *ops, void *const out[CHAIN],
                  const void *const in[4], int waits) {
    const struct row_list all = {NULL, 70}, few = {NULL, 5};
    const struct linear_forward_args first = {all, 66, 40, in[0], in[1], out[0], NULL};
    const struct linear_weight_args second = {all, 66, 40, out[0], in[0], out[1], 0};
    const struct linear_forward_args third = {all, 66, 40, in[0], out[1], out[2], NULL};
    const struct linear_forward_args fourth = {few, 70, 66, in[2], out[2], out[3], NULL};
    const struct linear_forward_args fifth = {all, 5, 70, in[3], out[3], out[4], NULL};
    b->call.queued = !waits;
    ops->linear_forward(&b->call, &first);
    if (waits) machine_wait(b, "first");
    ops->linear_weight(&b->call, &second);
    if (waits) machine_wait(b, "second");
    ops->linear_forward(&b->call, &third);
    if (waits) machine_wait(b, "third");
    ops->linear_forward(&b->call, &fourth);
    if (waits) machine_wait(b, "fourth");
    ops->linear_forward(&b->call, &fifth);
    machine_wait(b, "a chain of ops");
    b->call.queued = 0;
}

/* All ops are queued at once, on operands that need no packing or rounding, so that no kernel
 * stands between the products and orders them by accident. */
static void chained(struct bench *b) {
    static const size_t counts[CHAIN] = {70 * 66, 66 * 40, 70 * 66, 5 * 70, 70 * 5};
    static const size_t given[4] = {70 * 40, 66 * 40, 5 * 66, 70 * 70};
    const struct library_mode free_order = {.pinned = 1};
    const struct op_table *const ops = open_machine(b);
    const enum dtype compute = b->law.compute;
    const void *in[4];
    void *out[2][CHAIN];
    if (compute != DTYPE_F64 && (compute != DTYPE_F32 || b->law.wide)) return;
    for (size_t i = 0; i < COUNT_OF(given); i++)
        in[i] = bench_store(b, machine_whole(b, given[i], 1), given[i], b->carrier);
    b->call.library = &free_order;
    for (int waits = 0; waits < 2; waits++) {
        for (size_t i = 0; i < CHAIN; i++) {
            out[waits][i] = machine_take(b, counts[i], b->carrier);
            memset(out[waits][i], 0, counts[i] * b->carrier);
        }
        chain(b, ops, out[waits], in, waits);
    }
    b->call.library = NULL;
    for (size_t i = 0; i < CHAIN; i++)
        assert_memory_equal(out[0][i], out[1][i], counts[i] * b->carrier);
}

static void verify_chained_ops(void **state) {
    (void)state;
    bench_pairs(chained);
}

/* The twin must report a product that writes what another one on another stream reads, writes, or
 * reads itself. It must not report products that are joined, that share a stream, or that only read
 * the same memory. */
static void validate_unjoined_products(void **state) {
    static const struct {
        size_t a, b, c; /* of the second product, in `memory`; the first has 0, 64 and 128 */
        unsigned part;
        int joined, told;
    } cases[] = {{128, 192, 256, 1, 0, 1}, {192, 128, 256, 1, 0, 1}, {192, 256, 128, 1, 0, 1},
                 {192, 256, 0, 1, 0, 1},   {192, 256, 64, 1, 0, 1},  {192, 256, 135, 1, 0, 1},
                 {0, 64, 144, 1, 0, 0},    {128, 64, 256, 0, 0, 0},  {128, 64, 128, 1, 1, 0}};
    float memory[320] = {0};
    const struct library_mode mode = {.pinned = 1};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct library_product p = {.M = 4,
                                    .N = 4,
                                    .K = 4,
                                    .a_stride = 4,
                                    .b_stride = 4,
                                    .c_stride = 4,
                                    .type = DTYPE_F32,
                                    .sum = DTYPE_F32};
        p.a = memory, p.b = memory + 64, p.c = memory + 128;
        library_multiply(&mode, &p, 0);
        if (cases[i].joined) library_join();
        p.a = memory + cases[i].a, p.b = memory + cases[i].b, p.c = memory + cases[i].c;
        library_multiply(&mode, &p, cases[i].part);
        assert_int_equal(shim_error(), STATUS_OK);
        if ((library_error() != STATUS_OK) != cases[i].told) fail_msg("case %zu", i);
        assert_int_equal(library_error(), STATUS_OK);
    }
}

/* ---- scratch ---- */

static struct op_limits limits_of(uint32_t rows, uint32_t width, size_t weight, uint32_t bytes) {
    return (struct op_limits){.rows = rows,
                              .width = width,
                              .length = 1,
                              .H = 1,
                              .G = 1,
                              .D = 1,
                              .threads = 1,
                              .library = weight,
                              .library_bytes = bytes};
}

static void short_products(struct bench *b) {
    static const struct shape of_16[] = {{24, 16, 64}, {70, 40, 8}, {9, 5, LIBRARY_TWIN_LACKS}};
    static const unsigned modes[] = {3, 19, 7, 1}; /* deterministic, filled, split k, streams */
    const struct op_limits limits = limits_of(160, LIBRARY_TWIN_LACKS, 16 * LIBRARY_TWIN_LACKS, 2);
    if (!machine_is_short(b)) return;
    const struct op_table *const ops = machine_open(b, &limits);
    const size_t own = COUNT_OF(shapes), all = own + COUNT_OF(of_16);
    unsigned turn = 0;
    for (size_t i = 0; i < all; i++)
        for (int rows = 0; rows < ROWS_KINDS; rows++) {
            const struct shape shape = i < own ? shapes[i] : of_16[i - own];
            const struct problem p = problem_of(b, ops, shape, (enum rows)rows, 0);
            for (int op = 0; op < OPS; op++, turn++) {
                const struct library_mode mode = mode_of(modes[turn % COUNT_OF(modes)]);
                assert_alike(&p, op, run(&p, op, &mode), run_short(&p, op, &mode, NULL));
                if (op == FORWARD) compare_biased(&p, &mode);
            }
        }
}

static void verify_short_products(void **state) {
    (void)state;
    bench_pairs(short_products);
}

/* Scratch holds the rows of x, the head's weight, and the sums of all logits, each in the type in
 * which it is multiplied; 1 GiB at most. */
static void validate_scratch_bytes(void **state) {
    static const struct { uint32_t bytes, sums; } cases[] = {{2, 4}, {4, 4}, {8, 8}, {0, 8}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const size_t T = 16384, V = 50304, C = 768;
        const size_t each = cases[i].bytes == 0 ? 8 : cases[i].bytes;
        const struct op_limits limits = limits_of((uint32_t)T, (uint32_t)V, V * C, cases[i].bytes);
        const size_t due = T * C * each + V * C * each + T * V * cases[i].sums;
        const size_t is = library_scratch_within(&limits, SIZE_MAX, 64);
        assert_in_range(is, due, due + 16 * (2 * T + 3 * V) + 1024);
        assert_in_range(library_scratch_within(&limits, (size_t)1 << 30, 64), (size_t)1 << 30,
                        ((size_t)1 << 30) + 1024);
    }
}

enum { CANARY = 4096 };

/* Runs the problem's op with the scratch that its limits ask for; nothing behind that scratch may
 * be written. */
static void compare_within(struct problem *p, int op, const struct library_mode *mode) {
    struct bench *const b = p->bench;
    const struct shape s = p->shape;
    const enum dtype product =
        b->call.rounding == NULL ? b->law.compute : b->call.rounding->product;
    const int narrow = product == DTYPE_BF16 || product == DTYPE_F16;
    const struct op_limits limits =
        limits_of((uint32_t)p->physical, s.N > s.K ? s.N : s.K, (size_t)s.N * s.K,
                  b->law.wide ? 8
                  : narrow    ? 2
                              : 4);
    const size_t bytes = library_scratch_bytes(&limits);
    void *const scratch = b->call.scratch;
    unsigned char *const own = (unsigned char *)machine_take(b, bytes + CANARY, 1);
    memset(own, 0xff, bytes);
    memset(own + bytes, 0x5a, CANARY);
    if (b->backend == NULL) b->call.scratch = own; /* a device: what its module asks for */
    compare(p, op, mode, 1);
    b->call.scratch = scratch;
    for (size_t i = 0; i < CANARY; i++)
        if (own[bytes + i] != 0x5a)
            fail_msg("%s, %u rows, N %u, K %u: %zu bytes of scratch, byte %zu written",
                     op_names[op], s.rows, s.N, s.K, bytes, bytes + i);
}

/* Rows and columns of C are cut into several pieces, for every number pair and any kind of rows. */
static void pieces(struct bench *b) {
    static const struct shape large[] = {{130, 70, 90}, {41, 100, 33}, {5, 3, 7}};
    const struct op_table *const ops = open_machine(b);
    if (WATCHED && (b->law.wide || b->law.compute == DTYPE_F16)) return;
    for (size_t i = WATCHED; i < COUNT_OF(large); i++)
        for (int rows = 0; rows < ROWS_KINDS; rows++) {
            struct problem p = problem_of(b, ops, large[i], (enum rows)rows, 1);
            const struct library_mode mode = mode_of(rows == ROWS_LISTED ? 16 : 19);
            for (int op = 0; op < OPS; op++)
                compare_within(&p, op, &mode);
        }
}

static void corroborate_pieces(void **state) {
    (void)state;
    bench_pairs(pieces);
}

/* Operands and results that the library can use where they lie need no scratch: none of its bytes
 * may be written, except, for short operands, those of their packed form. */
static void lying(struct bench *b, enum rows rows, int add) {
    enum { BYTES = 1 << 16 };
    static const struct shape shape = {20, 30, 40};
    const struct op_table *const ops = open_machine(b);
    struct problem p = problem_of(b, ops, shape, rows, 1);
    unsigned char *const scratch = (unsigned char *)machine_take(b, BYTES, 1);
    const size_t packed = b->law.compute == DTYPE_BF16 ? 1792 + 2560 : 0;
    p.add = add;
    if (rows == ROWS_OF_CALL) { /* all of them are listed, last first */
        uint32_t index[20];
        for (uint32_t i = 0; i < 20; i++)
            index[i] = 22 - i;
        p.list.index = (const uint32_t *)bench_copy(b, index, sizeof index);
        p.x = numbers(b, p.physical * shape.K, b->law.compute, 1);
        p.dy = numbers(b, p.physical * shape.N, b->law.compute, 1);
        p.y = numbers(b, p.physical * shape.N, b->law.compute, 1);
        p.dx = numbers(b, p.physical * shape.K, b->law.compute, 1);
        bench_poison(p.x, shape.K, &p.list);
        bench_poison(p.dy, shape.N, &p.list);
        b->call.rows = 20;
        b->call.first_row = 3;
    }
    memset(scratch, 0x5a, BYTES);
    void *const before = b->call.scratch;
    for (int op = 0; op < (rows == ROWS_ALL ? OPS : WEIGHT); op++) {
        const void *const own = run(&p, op, NULL);
        b->call.scratch = scratch;
        const void *const out = run(&p, op, &deterministic);
        b->call.scratch = before;
        const size_t each = op == WEIGHT ? b->accumulator : b->carrier;
        for (size_t i = 0; i < result_count(&p, op); i++)
            if (machine_number(own, i, each) != machine_number(out, i, each))
                fail_msg("%s: element %zu", op_names[op], i);
        for (size_t i = packed; i < BYTES; i++)
            if (scratch[i] != 0x5a) fail_msg("%s: byte %zu of scratch written", op_names[op], i);
    }
}

static void verify_lying_operands_are_not_copied(void **state) {
    (void)state;
    for (size_t pair = 0; pair < BENCH_PAIRS; pair++)
        for (int rows = ROWS_ALL; rows <= ROWS_OF_CALL; rows += ROWS_OF_CALL)
            for (int add = 0; add < 2; add++) {
                struct bench b;
                bench_open(&b, pair);
                const int narrow =
                    b.law.compute == DTYPE_F32 || (b.law.compute == DTYPE_BF16 && !add);
                const int lies = b.law.compute == DTYPE_F64 || (narrow && !b.law.wide);
                if (lies) lying(&b, (enum rows)rows, add);
                bench_close(&b);
            }
}

/* Matrices in two bytes are what the library itself reads and writes: no byte of scratch may be
 * written. */
static void lying_short(struct bench *b) {
    enum { BYTES = 1 << 16 };
    static const struct shape shape = {20, 32, 40};
    if (!machine_is_short(b)) return;
    const struct op_table *const ops = open_machine(b);
    struct problem p = problem_of(b, ops, shape, ROWS_ALL, 1);
    unsigned char *const scratch = (unsigned char *)machine_take(b, BYTES, 1);
    void *const before = b->call.scratch;
    p.add = 0; /* what is added to is rounded apart from the sum */
    for (int op = 0; op < OPS; op++) {
        memset(scratch, 0x5a, BYTES);
        b->call.scratch = scratch;
        (void)run_short(&p, op, &deterministic, NULL);
        b->call.scratch = before;
        for (size_t i = 0; i < BYTES; i++)
            if (scratch[i] != 0x5a) fail_msg("%s: byte %zu of scratch written", op_names[op], i);
    }
}

static void verify_short_products_are_not_copied(void **state) {
    (void)state;
    bench_pairs(lying_short);
}

/* Under `fill: nan` every piece of scratch is filled with NaN to its last byte before it is used,
 * so that what an op leaves unwritten there reads as no number: by one launch for all pieces of an
 * op without padding. A run without the fill shows which bytes those are. */
static void filled_pieces(struct bench *b) {
    enum { BYTES = 1 << 16, PIECE = 256 };
    static const struct shape shape = {9, 7, 33}; /* one piece */
    const struct op_table *const ops = open_machine(b);
    const struct library_mode filled = mode_of(19);
    unsigned char *const scratch = (unsigned char *)machine_take(b, BYTES, 1);
    unsigned char *const seen = (unsigned char *)machine_take(b, BYTES, 1);
    void *const before = b->call.scratch;
    if (WATCHED && (b->law.wide || b->law.compute == DTYPE_F16)) return;
    for (int rows = ROWS_LISTED; rows < ROWS_KINDS; rows++) {
        const struct problem p = problem_of(b, ops, shape, (enum rows)rows, 0);
        for (int op = 0; op < OPS; op++) {
            size_t end = BYTES, gaps = 0;
            b->call.scratch = scratch;
            memset(scratch, 0x5a, BYTES);
            run(&p, op, &deterministic);
            memcpy(seen, scratch, BYTES);
            memset(scratch, 0x5a, BYTES);
            shim_count_launches("fill_kernel");
            run(&p, op, &filled);
            const uint64_t fills = shim_count_launches(NULL);
            b->call.scratch = before;
            if (b->backend == NULL && (rows == ROWS_LISTED || op == WEIGHT))
                assert_int_equal(fills, 1);
            while (end > 0 && seen[end - 1] == 0x5a)
                end--;
            end = (end + PIECE - 1) / PIECE * PIECE;
            for (size_t i = 0; i < BYTES; i++) {
                const int gap = i < end && memcmp(seen + i / 4 * 4, "ZZZZ", 4) == 0;
                const int due = i >= end ? 0x5a : gap ? 0xff : seen[i];
                gaps += (size_t)gap;
                if (scratch[i] != due)
                    fail_msg("%s: byte %zu of scratch is 0x%02x, expected 0x%02x", op_names[op], i,
                             scratch[i], due);
            }
            assert_true(gaps > 0);
        }
    }
}

static void verify_filled_pieces(void **state) {
    (void)state;
    bench_pairs(filled_pieces);
}

/* ---- operands that the op before has packed ---- */

enum { KEPT_OPS = 7, KEPT_ROWS = 13, KEPT_K = 24, KEPT_ROOM = 1 << 16 };

/* Three linear layers of one input and the gradients of their weights, as a model calls them, and a
 * fourth layer, which is wider; `kept` has the buffers that they read and those that they write. */
struct kept {
    struct bench *bench;
    const struct op_table *ops;
    struct row_list list;
    const uint32_t *rows; /* what the list holds, for the host */
    size_t physical;
    void *x, *w[4], *dy[4];
    void *out[KEPT_OPS];
    size_t bytes[KEPT_OPS];
};
static const uint32_t kept_widths[4] = {16, 8, 8, 24};

/* Writes the list into memory that the host may not read. */
static void kept_store_list(const struct kept *k, const uint32_t *rows) {
    uint32_t *const to = (uint32_t *)(uintptr_t)k->list.index;
    const struct backend *const backend = k->bench->backend;
    if (backend == NULL)
        shim_move(to, rows, KEPT_ROWS * sizeof *rows);
    else
        assert_int_equal(backend->push(to, rows, KEPT_ROWS * sizeof *rows), STATUS_OK);
}

/* Lets the list lie in such memory, as a training's lists do. */
static void kept_hide_list(struct kept *k) {
    const struct backend *const backend = k->bench->backend;
    const uint32_t *const rows = k->list.index;
    const size_t bytes = KEPT_ROWS * sizeof *rows;
    void *hidden = NULL;
    if (rows == NULL) return;
    assert_int_equal(backend == NULL ? shim_memory_take(bytes, &hidden)
                                     : backend->hidden.take(bytes, &hidden),
                     STATUS_OK);
    k->list.index = (const uint32_t *)hidden;
    kept_store_list(k, rows);
}

static void kept_close(const struct kept *k) {
    void *const hidden = (void *)(uintptr_t)k->list.index;
    if (hidden == NULL) return;
    if (k->bench->backend == NULL)
        shim_memory_give(hidden);
    else
        k->bench->backend->hidden.give(hidden);
}

static struct kept kept_of(struct bench *b, enum rows rows) {
    const struct problem p =
        problem_of(b, open_machine(b), (struct shape){KEPT_ROWS, 1, KEPT_K}, rows, 0);
    struct kept k = {
        .bench = b, .ops = p.ops, .list = p.list, .physical = p.physical, .rows = p.list.index};
    kept_hide_list(&k);
    k.x = bench_store(b, p.x, p.physical * KEPT_K, b->carrier);
    for (size_t i = 0; i < 4; i++) {
        const size_t N = kept_widths[i];
        double *const dy = numbers(b, p.physical * N, b->law.compute, 0);
        if (rows != ROWS_ALL) bench_poison(dy, N, &p.list);
        k.w[i] = bench_store(b, numbers(b, N * KEPT_K, b->law.compute, 0), N * KEPT_K, b->carrier);
        k.dy[i] = bench_store(b, dy, p.physical * N, b->carrier);
    }
    for (size_t i = 0; i < KEPT_OPS; i++) {
        const size_t N = kept_widths[i < 4 ? i : i - 4];
        k.bytes[i] = i < 4 ? p.physical * N * b->carrier : N * KEPT_K * b->accumulator;
        k.out[i] = machine_take(b, k.bytes[i], 1);
    }
    return k;
}

/* Starts op i of the seven. */
static void kept_start(const struct kept *k, size_t i) {
    if (i < 4) {
        const struct linear_forward_args args = {k->list, kept_widths[i], KEPT_K, k->x,
                                                 k->w[i], k->out[i],      NULL};
        k->ops->linear_forward(&k->bench->call, &args);
        return;
    }
    const struct linear_weight_args args = {k->list, kept_widths[i - 4], KEPT_K, k->dy[i - 4],
                                            k->x,    k->out[i],          0};
    k->ops->linear_weight(&k->bench->call, &args);
}

/* Runs the ops and returns how far they went into scratch; with `waits` the host waits behind each,
 * so that nothing is kept. */
static size_t kept_run(const struct kept *k, const struct library_mode *mode, int waits,
                       unsigned char *scratch) {
    struct bench *const b = k->bench;
    void *const before = b->call.scratch;
    size_t end = KEPT_ROOM;
    memset(scratch, 0x5a, KEPT_ROOM);
    for (size_t i = 0; i < KEPT_OPS; i++)
        memset(k->out[i], 0, k->bytes[i]);
    b->call.library = mode;
    b->call.scratch = scratch;
    b->call.queued = !waits;
    for (size_t i = 0; i < KEPT_OPS; i++)
        kept_start(k, i);
    machine_wait(b, "ops of one input");
    b->call.queued = 0;
    b->call.scratch = before;
    b->call.library = NULL;
    while (end > 0 && scratch[end - 1] == 0x5a)
        end--;
    return end;
}

/* Ops must have the same bits whether they find operands packed or not, and go no further into
 * scratch than each of them alone. The first three pack x once, and a weight each. The weight of
 * the fourth has no room in front of x, so it packs both. The gradients of weights pack x once more
 * and dy each: 10 operands, where ops that find nothing pack 14. Where x is packed in the order of
 * the list and sums go through scratch, which gives room for dy, the first gradient finds the
 * fourth layer's x. */
static void kept_operands(struct bench *b) {
    const int narrow = b->law.compute == DTYPE_BF16 || b->law.compute == DTYPE_F16;
    unsigned char *const scratch = (unsigned char *)machine_take(b, KEPT_ROOM, 1);
    if (WATCHED && (b->law.wide || b->law.compute == DTYPE_F16)) return;
    for (int rows = 0; rows < ROWS_KINDS; rows++)
        for (unsigned bits = 3; bits < 32;
             bits += 16) { /* deterministic, without the fill and with */
            const struct library_mode mode = mode_of(bits);
            const struct kept k = kept_of(b, (enum rows)rows);
            const int found = rows == ROWS_LISTED || (rows == ROWS_ALL && b->law.wide);
            const uint64_t due = found ? 9 : 10;
            void *own[KEPT_OPS];
            shim_count_launches("library_pack_kernel");
            const size_t alone = kept_run(&k, &mode, 1, scratch);
            const uint64_t packed = shim_count_launches("library_pack_kernel");
            for (size_t i = 0; i < KEPT_OPS; i++)
                own[i] = bench_copy(b, k.out[i], k.bytes[i]);
            const size_t joint = kept_run(&k, &mode, 0, scratch);
            const uint64_t packed_once = shim_count_launches(NULL);
            for (size_t i = 0; i < KEPT_OPS; i++)
                assert_memory_equal(own[i], k.out[i], k.bytes[i]);
            kept_close(&k);
            if (b->backend != NULL) continue;
            assert_in_range(joint, 0, alone);
            if (narrow && (packed != 2 * KEPT_OPS || packed_once != due))
                fail_msg("%s, rows %d: %d operands packed, %d of them with a wait behind each op",
                         dtype_name(b->law.compute), rows, (int)packed_once, (int)packed);
        }
}

static void verify_kept_operands(void **state) {
    (void)state;
    bench_pairs(kept_operands);
}

/* What comes between two ops that read the same operands. */
enum between {
    FILL_X,
    FILL_DY,
    FILL_SCRATCH,
    ADD_X,
    PUSH_X,
    COPY_X,
    OTHER_LIST,   /* at another place */
    CHANGED_LIST, /* at the same place, changed by the host, which waits first */
    OWN_RESULT,   /* the first op itself writes where it read */
    BETWEENS
};

struct copied {
    void *to;
    const void *from;
    size_t bytes;
};

static void copy_now(const void *args) {
    const struct copied *const is = (const struct copied *)args;
    memcpy(is->to, is->from, is->bytes);
}

/* Puts other numbers in the place of x, as a device's module pushes or copies. */
static void kept_move(const struct kept *k, int pushes, const void *from) {
    const struct backend *const backend = k->bench->backend;
    const struct copied is = {k->x, from, k->physical * KEPT_K * k->bench->carrier};
    enum status status = STATUS_OK;
    if (backend != NULL)
        status = pushes ? backend->push(k->x, from, is.bytes) : backend->copy(k->x, from, is.bytes);
    else if (pushes)
        shim_move(is.to, is.from, is.bytes);
    else
        shim_host(copy_now, &is, sizeof is);
    assert_int_equal(status, STATUS_OK);
}

static void kept_come_between(struct kept *k, enum between what, void *from, uint32_t *list) {
    const struct op_call *const call = &k->bench->call;
    const struct fill_args x = {k->physical * KEPT_K * k->bench->carrier, 0x3fa00000u, k->x};
    const struct fill_args dy = {k->physical * kept_widths[0] * k->bench->carrier, 0x3fa00000u,
                                 k->dy[0]};
    const struct fill_args scratch = {KEPT_ROOM, 0xffffffffu, call->scratch};
    const struct add_args twice = {k->list, KEPT_K, k->x, k->x, k->x};
    if (what == FILL_X) k->ops->fill(call, &x);
    if (what == FILL_DY) k->ops->fill(call, &dy);
    if (what == FILL_SCRATCH) k->ops->fill(call, &scratch);
    if (what == ADD_X) k->ops->add(call, &twice);
    if (what == PUSH_X || what == COPY_X) kept_move(k, what == PUSH_X, from);
    if (what == CHANGED_LIST) {
        machine_wait(k->bench, "before the list is changed");
        kept_store_list(k, list);
    }
    if (what == OTHER_LIST) k->list.index = list;
}

/* Runs an op, what comes between, and the op again with another place for its results. */
static void kept_twice(struct kept k, enum between what, int waits, void *from, uint32_t *list) {
    struct bench *const b = k.bench;
    const struct library_mode mode = mode_of(19);
    const size_t op = what == OWN_RESULT ? 3 : 4;
    void *const own = what == OWN_RESULT ? k.x : k.out[0];
    struct kept first = k;
    first.out[op] = own;
    memset(k.out[op], 0, k.bytes[op]);
    if (what != OWN_RESULT) memset(own, 0, k.bytes[0]);
    b->call.library = &mode;
    b->call.queued = 1;
    kept_start(&first, op);
    if (waits) machine_wait(b, "the first op");
    kept_come_between(&k, what, from, list);
    if (waits) machine_wait(b, "what comes between");
    kept_start(&k, op);
    machine_wait(b, "the second op");
    b->call.queued = 0;
    b->call.library = NULL;
}

/* What was packed is not used again once something may have changed what it was made of, or the
 * place where it lies: the second op must have the bits that it has after a wait, which are others
 * than those of the first. */
static void changed_operands(struct bench *b) {
    if (WATCHED && (b->law.wide || b->law.compute == DTYPE_F16)) return;
    struct kept k = kept_of(b, ROWS_LISTED);
    const size_t bytes = k.physical * KEPT_K * b->carrier;
    const size_t dy_bytes = k.physical * kept_widths[0] * b->carrier;
    void *const x = bench_copy(b, k.x, bytes), *const dy = bench_copy(b, k.dy[0], dy_bytes);
    uint32_t *const rows = (uint32_t *)bench_copy(b, k.rows, KEPT_ROWS * sizeof *rows);
    uint32_t *const list = (uint32_t *)bench_copy(b, rows, KEPT_ROWS * sizeof *list);
    double *const numbers_of_x = numbers(b, k.physical * KEPT_K, b->law.compute, 0);
    void *const from = bench_store(b, numbers_of_x, k.physical * KEPT_K, b->carrier);
    list[0] = list[1]; /* its row twice */
    k.out[0] = machine_take(b, k.bytes[4], 1);
    k.bytes[0] = k.bytes[4];
    b->call.scratch = machine_take(b, KEPT_ROOM, 1);
    for (int what = 0; what < BETWEENS; what++) {
        const size_t op = what == OWN_RESULT ? 3 : 4;
        void *due = NULL;
        for (int waits = 1; waits >= 0; waits--) {
            memcpy(k.x, x, bytes);
            memcpy(k.dy[0], dy, dy_bytes);
            kept_store_list(&k, rows);
            kept_twice(k, (enum between)what, waits, from, list);
            if (waits) due = bench_copy(b, k.out[op], k.bytes[op]);
        }
        if (memcmp(due, k.out[op], k.bytes[op]) != 0)
            fail_msg("%s, %s: what came between, %d, was not seen", k.ops->name,
                     dtype_name(b->law.compute), what);
        const void *const first = what == OWN_RESULT ? k.x : k.out[0];
        const int same_result = memcmp(first, k.out[op], k.bytes[op]) == 0;
        assert_int_equal(same_result, what == FILL_SCRATCH);
    }
    kept_close(&k);
}

static void verify_changed_operands(void **state) {
    (void)state;
    bench_pairs(changed_operands);
}

/* Where the library has no algorithm without a split of k, the whole product must have the bits of
 * mode invariant; where a split is allowed, it is the library's. The twin lacks one for sums of
 * LIBRARY_TWIN_LACKS terms. */
static void lacking(struct bench *b) {
    static const struct shape shape = {19, 5, LIBRARY_TWIN_LACKS};
    const struct library_mode filled = {.pinned = 1, .ordered = 1, .fill = 1},
                              splits = {.pinned = 1, .ordered = 1, .split_k = 1};
    const struct op_limits limits = limits_of(64, LIBRARY_TWIN_LACKS, 5 * LIBRARY_TWIN_LACKS, 8);
    if (b->backend != NULL || b->law.compute == DTYPE_F16) return;
    if (WATCHED && (b->law.compute != DTYPE_F32 || b->law.wide)) return;
    const struct op_table *const ops = machine_open(b, &limits);
    for (int rows = 0; rows < ROWS_KINDS; rows++) {
        const struct problem p = problem_of(b, ops, shape, (enum rows)rows, 0);
        assert_true(same(&p, FORWARD, &filled, NULL));
        if (b->law.compute == DTYPE_F32 && !b->law.wide)
            assert_false(same(&p, FORWARD, &splits, NULL));
        if (b->law.compute == DTYPE_F32 && !b->law.wide)
            assert_false(same(&p, WEIGHT, &filled, NULL)); /* 19 terms: it has an algorithm */
    }
}

static void verify_lacking_products(void **state) {
    (void)state;
    bench_pairs(lacking);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_near_invariant),
        cmocka_unit_test(corroborate_exact_sums),
        cmocka_unit_test(corroborate_rounded_operands),
        cmocka_unit_test(verify_first_row),
        cmocka_unit_test(verify_switches),
        cmocka_unit_test(verify_chained_ops),
        cmocka_unit_test(validate_unjoined_products),
        cmocka_unit_test(validate_scratch_bytes),
        cmocka_unit_test(corroborate_pieces),
        cmocka_unit_test(verify_lying_operands_are_not_copied),
        cmocka_unit_test(verify_lacking_products),
        cmocka_unit_test(verify_filled_pieces),
        cmocka_unit_test(verify_kept_operands),
        cmocka_unit_test(verify_short_products),
        cmocka_unit_test(verify_short_products_are_not_copied),
        cmocka_unit_test(verify_changed_operands),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
