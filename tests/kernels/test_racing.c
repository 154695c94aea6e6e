/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Sums on which threads race (law 14). Nobody can say which order came, so these claims are tested:
 * sums that are exact in any order have the bits of mode invariant, other sums lie within the
 * rounding bound, one thread adds chunks in ascending order, and a kind that is switched off keeps
 * its bits. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/sum.h"
#include "kernels/racing_sum.h"
#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_ops.h"

enum { WEIGHT, EMBEDDING, NORM, SQUARE, FORWARD, INPUT, DQ, PV, EXPONENTIALS, OPS };
enum { T = 75, N = 67, K = 70, V = 3, LENGTH = 70, D = 66, SQUARES = 5 * 4096 + 17 };
#define ROWS ((size_t)2 * T + 1) /* bench_physical(T) */

static const char *const names[OPS] = {"weight", "embedding", "norm", "square",      "forward",
                                       "input",  "dq",        "pv",   "exponentials"};
static const uint32_t kinds[OPS] = {SUM_WEIGHT, SUM_EMBEDDING, SUM_NORM,
                                    SUM_NORM,   SUM_FORWARD,   SUM_FORWARD,
                                    SUM_DQ,     SUM_FORWARD,   SUM_FORWARD};

/* One set of values serves all ops: activations of T listed rows, and a sequence of LENGTH rows. */
struct values {
    struct row_list rows;
    double *dy, *x, *acc, *squares, *rstd, *attention[4];
    uint32_t ids[T];
};

static size_t results_of(int op) {
    static const size_t counts[OPS] = {[WEIGHT] = (size_t)N * K,
                                       [EMBEDDING] = (size_t)V * N,
                                       [NORM] = N,
                                       [SQUARE] = 1,
                                       [FORWARD] = ROWS * N,
                                       [INPUT] = ROWS * K,
                                       [PV] = (size_t)LENGTH * 2 * D,
                                       [EXPONENTIALS] = T,
                                       [DQ] = (size_t)LENGTH * 2 * D};
    return counts[op];
}

static size_t result_bytes(const struct bench *b, int op) {
    if (op == SQUARE) return sizeof(double);
    return op < FORWARD || op == EXPONENTIALS ? b->accumulator : b->carrier;
}

/* Draws small integers, whose partial sums are all exact. */
static double *integers(struct bench *b, size_t count) {
    double *out = bench_numbers(b, count);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)bench_integer(b, 7) - 3.0;
    return out;
}

static double *drawn(struct bench *b, size_t count, enum dtype dtype, int exact) {
    return exact ? integers(b, count) : bench_draw(b, count, dtype, 1.0);
}

static struct values draw(struct bench *b, int exact) {
    const size_t rows = bench_physical(T);
    const enum dtype compute = b->law.compute;
    struct values v = {.rows = bench_rows(b, T)};
    v.dy = drawn(b, rows * N, compute, exact);
    v.x = drawn(b, rows * (K > N ? K : N), compute, exact);
    v.acc = drawn(b, (size_t)N * K, compute, exact); /* weights, too */
    v.squares = drawn(b, SQUARES, compute, exact);
    v.rstd = bench_numbers(b, rows);
    for (size_t i = 0; i < rows; i++)
        v.rstd[i] = exact ? 1.0 : law_round(0.7 + 0.01 * (double)i, b->accumulate);
    for (int i = 0; i < 4; i++)
        v.attention[i] = drawn(b, (size_t)LENGTH * 2 * D, compute, exact);
    for (uint32_t i = 0; i < T; i++)
        v.ids[i] = bench_integer(b, 16) == 0 ? 2 : bench_integer(b, 2);
    return v;
}

static void run_attention(struct bench *b, const struct op_table *ops, const struct values *v,
                          void *dq, void *pv) {
    static const struct sequence sequences[2] = {{0, LENGTH - 12, 0, 0}, {LENGTH - 12, 12, 1, 0}};
    const size_t count = (size_t)LENGTH * 2 * D;
    void *in[4];
    for (int i = 0; i < 4; i++)
        in[i] = bench_store(b, v->attention[i], count, b->carrier);
    ops->attention_forward(&b->call,
                           &(struct attention_forward_args){sequences, 2, 2, 2, D, 0.125, in[0],
                                                            in[1], in[2], pv, NULL, NULL});
    void *const dk = bench_store(b, v->attention[0], count, b->carrier);
    void *const dv = bench_store(b, v->attention[0], count, b->carrier);
    ops->attention_backward(
        &b->call, &(struct attention_backward_args){sequences, 2, 2, 2, D, 0.125, in[0], in[1],
                                                    in[2], in[3], dq, dk, dv, NULL, NULL, NULL});
}

/* Runs the op on a fresh copy of the values that it accumulates onto. */
static void *run(struct bench *b, const struct op_table *ops, const struct values *v, int op) {
    const size_t rows = bench_physical(T);
    const size_t bytes = result_bytes(b, op);
    const double *const before = op == FORWARD ? v->dy : op == INPUT ? v->x : v->acc;
    void *const out =
        bench_store(b, op == DQ || op == PV ? v->attention[0] : before, results_of(op), bytes);
    void *const dy = bench_store(b, v->dy, rows * N, b->carrier);
    void *const x = bench_store(b, v->x, rows * (K > N ? K : N), b->carrier);
    void *const rstd = bench_store(b, v->rstd, rows, b->accumulator);
    const enum dtype stored = b->law.compute;
    if (op == WEIGHT)
        ops->linear_weight(&b->call, &(struct linear_weight_args){v->rows, N, K, dy, x, out, 0});
    if (op == EMBEDDING)
        ops->embedding_weight(&b->call,
                              &(struct embedding_weight_args){v->rows, V, N, v->ids, dy, out});
    if (op == NORM)
        ops->norm_weight(&b->call,
                         &(struct norm_weight_args){v->rows, N, NORM_ROUND_AFTER_WEIGHT, dy, x,
                                                    rstd, out, NORM_BACKWARD_FUSED, NULL, 0.0});
    if (op == SQUARE)
        ops->square(&b->call, &(struct square_args){SQUARES, stored,
                                                    bench_store(b, v->squares, SQUARES, b->carrier),
                                                    (double *)out});
    void *const weight = bench_store(b, v->acc, (size_t)N * K, b->carrier);
    if (op == FORWARD)
        ops->linear_forward(&b->call,
                            &(struct linear_forward_args){v->rows, N, K, x, weight, out, NULL});
    if (op == INPUT)
        ops->linear_input(&b->call, &(struct linear_input_args){v->rows, N, K, dy, weight, out, 0});
    if (op == EXPONENTIALS) {
        const struct logprob_forward_args args = {T,
                                                  K,
                                                  b->law.wide ? DTYPE_F64 : DTYPE_F32,
                                                  v->ids,
                                                  x,
                                                  bench_store(b, v->acc, T, b->accumulator),
                                                  out,
                                                  bench_numbers(b, T)};
        ops->logprob_forward(&b->call, &args);
    }
    void *const other = bench_store(b, v->attention[0], (size_t)LENGTH * 2 * D, b->carrier);
    if (op == DQ) run_attention(b, ops, v, out, other);
    if (op == PV) run_attention(b, ops, v, other, out);
    return out;
}

/* Machine `index` is an instruction set with 1 to 4 threads; returns 0 where this computer lacks
 * it. A sanitizer looks at one with 3 threads. */
enum { MACHINES = 3 * 4 };
#define MACHINE_STEP helper_size(MACHINES, 1, 1)
#define FIRST_MACHINE helper_size(2, 0, 0)

static int open_machine(struct bench *b, size_t index, const struct op_table **ops) {
    const struct op_limits limits = {.rows = T,
                                     .width = K,
                                     .length = LENGTH,
                                     .H = 2,
                                     .G = 2,
                                     .D = D,
                                     .threads = 1 + (int)(index % 4)};
    size_t bytes;
    const enum isa isa = (enum isa)(ISA_BASE + index / 4);
    if (!helper_has_own_objects(isa)) return 0;
    if (backend_ops(isa, b->law.compute, b->accumulate, ops) != STATUS_OK) return 0;
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    if (b->scratch == NULL) {
        struct op_limits most = limits;
        size_t all;
        most.threads = 4;
        assert_int_equal(backend_scratch(&most, &all), STATUS_OK);
        all = (all + 63) / 64 * 64;
        b->scratch = (unsigned char *)bench_numbers(b, all / sizeof(double));
        b->scratch_bytes = all;
        memset(b->scratch, 0xff, all);
    }
    b->call.threads = limits.threads;
    b->call.scratch = b->scratch + b->scratch_bytes - (bytes + 63) / 64 * 64;
    return 1;
}

static double stored(const void *memory, size_t i, size_t bytes) {
    return bytes == sizeof(double) ? ((const double *)memory)[i]
                                   : (double)((const float *)memory)[i];
}

static const uint32_t chunks[] = {1, 16, 33, 1u << 20};

/* ---- sums that are exact have the same bits in any order ---- */

static void exact_sums(struct bench *b) {
    const struct values v = draw(b, 1);
    const struct op_table *ops = NULL;
    if (b->law.compute == DTYPE_F16) return; /* f16 is as tf32 and bf16 */
    for (size_t m = FIRST_MACHINE; m < MACHINES; m += MACHINE_STEP) {
        if (!open_machine(b, m, &ops)) continue;
        for (int op = 0; op < DQ; op++) {
            b->call.racing = NULL;
            const size_t bytes = result_bytes(b, op);
            void *const want = run(b, ops, &v, op);
            for (size_t c = 0; c < COUNT_OF(chunks); c++) {
                const struct racing racing = {kinds[op], chunks[c]};
                b->call.racing = &racing;
                void *const got = run(b, ops, &v, op);
                if (memcmp(got, want, results_of(op) * bytes) != 0)
                    fail_msg("%s, %s, chunk %u, %d threads", names[op], ops->name, chunks[c],
                             b->call.threads);
            }
        }
    }
}

static void verify_exact_sums(void **state) {
    (void)state;
    bench_pairs(exact_sums);
}

/* Thousands of additions go to one number; none may be lost and none may come twice. */
static void verify_no_addition_is_lost(void **state) {
    (void)state;
    enum { TERMS = 20000 };
    static float ones[TERMS];
    struct bench b;
    const struct op_table *ops;
    const struct racing racing = {SUM_WEIGHT, 1};
    bench_open(&b, 0);
    for (size_t i = 0; i < TERMS; i++)
        ones[i] = 1.0f;
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_F32, &ops), STATUS_OK);
    const struct op_limits limits = {
        .rows = TERMS, .width = 1, .length = 1, .H = 1, .G = 1, .D = 2, .threads = 4};
    size_t bytes;
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    b.call.scratch = bench_numbers(&b, bytes / sizeof(double) + 1);
    b.call.racing = &racing;
    for (int threads = 1; threads <= 4; threads++) {
        float sum = 3.0f;
        b.call.threads = threads;
        ops->linear_weight(&b.call,
                           &(struct linear_weight_args){{NULL, TERMS}, 1, 1, ones, ones, &sum, 0});
        assert_true(sum == 3.0f + TERMS);
    }
    bench_close(&b);
}

/* ---- the rounding bound ---- */

static void all_positive(struct values *v) {
    for (size_t i = 0; i < bench_physical(T) * N; i++)
        v->dy[i] = fabs(v->dy[i]);
    for (size_t i = 0; i < bench_physical(T) * K; i++)
        v->x[i] = fabs(v->x[i]);
    for (size_t i = 0; i < (size_t)N * K; i++)
        v->acc[i] = fabs(v->acc[i]);
}

/* Bounds the sum of magnitudes of dQ's terms. By law 6, |dS| <= scale * P * (|dP| + |D|), where the
 * P of a row sum to about 1 (1.1 allows for their rounding), and |dP| and |D| are at most D
 * products of the largest |dout| and |v|. */
static double dq_magnitude(const struct values *v) {
    double dout = 0.0, most = 0.0, key = 0.0;
    for (size_t j = 0; j < (size_t)LENGTH * 2 * D; j++) {
        key = fmax(key, fabs(v->attention[1][j]));
        most = fmax(most, fabs(v->attention[2][j]));
        dout = fmax(dout, fabs(v->attention[3][j]));
    }
    return 0.125 * 2.0 * (double)D * dout * most * key * 1.1;
}

/* Bounds the sum of magnitudes of P * v: the P of a row sum to about 1, which 1.1 allows for. */
static double pv_magnitude(const struct values *v) {
    double most = 0.0;
    for (size_t j = 0; j < (size_t)LENGTH * 2 * D; j++)
        most = fmax(most, fabs(v->attention[2][j]));
    return 1.1 * most;
}

static double half_ulp(enum dtype dtype) {
    if (dtype == DTYPE_F64) return 0x1p-53;
    if (dtype == DTYPE_F32) return 0x1p-24;
    return dtype == DTYPE_BF16 ? 0x1p-8 : 0x1p-11;
}

static void bounds(struct bench *b) {
    const struct op_table *ops = NULL;
    const double unit = b->law.wide ? 0x1p-53 : 0x1p-24;
    struct values v = draw(b, 0);
    const double keys = dq_magnitude(&v);
    const double values = pv_magnitude(&v);
    for (size_t m = FIRST_MACHINE; m < MACHINES; m += MACHINE_STEP) {
        if (!open_machine(b, m, &ops)) continue;
        for (int op = 0; op < OPS; op++) {
            const size_t bytes = result_bytes(b, op);
            const double terms = op == SQUARE ? SQUARES : SQUARES / 256;
            const struct racing racing = {kinds[op], 16};
            b->call.racing = NULL;
            void *const want = run(b, ops, &v, op);
            struct values positive = v;
            positive.dy = bench_numbers(b, bench_physical(T) * N);
            positive.x = bench_numbers(b, bench_physical(T) * K);
            positive.acc = bench_numbers(b, (size_t)N * K);
            memcpy(positive.dy, v.dy, bench_physical(T) * N * sizeof(double));
            memcpy(positive.x, v.x, bench_physical(T) * K * sizeof(double));
            memcpy(positive.acc, v.acc, (size_t)N * K * sizeof(double));
            all_positive(&positive);
            void *const sums = run(b, ops, &positive, op);
            b->call.racing = &racing;
            void *const got = run(b, ops, &v, op);
            for (size_t i = 0; i < results_of(op); i++) {
                const double is = stored(got, i, bytes), due = stored(want, i, bytes);
                const double sum_unit = op == SQUARE ? 0x1p-53 : unit;
                double most = 2.0 * (terms + 2.0) * sum_unit *
                              (op == DQ   ? keys
                               : op == PV ? values
                                          : fabs(stored(sums, i, bytes)));
                if (op >= FORWARD && op != EXPONENTIALS)
                    most += 2.0 * fabs(due) * half_ulp(b->law.compute);
                if (!(fabs(is - due) <= most))
                    fail_msg("%s, %s, %d threads, element %zu: %a and %a, more than %g apart",
                             names[op], ops->name, b->call.threads, i, is, due, most);
            }
        }
    }
}

static void verify_rounding_bound(void **state) {
    (void)state;
    bench_pairs(bounds);
}

/* ---- one thread follows the law as written ---- */

static double chunk_sums(struct bench *b, double start, const double *a, const double *c, size_t n,
                         size_t chunk) {
    double sum = start;
    for (size_t first = 0; first < n; first += chunk) {
        const size_t count = n - first < chunk ? n - first : chunk;
        sum = law_add(&b->law, sum, law_chain(&b->law, 0.0, a + first, 1, c + first, 1, count));
    }
    return sum;
}

/* Collects the terms a * c of element i of the op's result, and returns how many they are. */
static size_t terms_of(struct bench *b, const struct values *v, int op, size_t i, double *a,
                       double *c) {
    size_t n = 0;
    for (uint32_t t = 0; t < T; t++) {
        const size_t row = v->rows.index[t];
        if (op == EMBEDDING && v->ids[t] != i / N) continue;
        a[n] = v->dy[row * N + (op == WEIGHT ? i / K : i % N)];
        c[n] = op == EMBEDDING ? 1.0
               : op == WEIGHT  ? v->x[row * K + i % K]
                               : law_round(law_mul(&b->law, v->x[row * N + i], v->rstd[row]),
                                          b->law.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
        n++;
    }
    return n;
}

/* Forward and input gradients are rounded once, after the chunks of an output's terms were
 * added. */
static void one_thread_rounded(struct bench *b, const struct op_table *ops, const struct values *v,
                               int op) {
    const struct racing racing = {SUM_FORWARD, 16};
    const size_t width = op == FORWARD ? N : K, terms = op == FORWARD ? K : N;
    double *const want = bench_numbers(b, results_of(op));
    double a[K], c[K];
    memcpy(want, op == FORWARD ? v->dy : v->x, results_of(op) * sizeof *want);
    for (size_t t = 0; t < T; t++)
        for (size_t j = 0; j < width; j++) {
            const size_t row = v->rows.index[t];
            for (size_t k = 0; k < terms; k++) {
                a[k] = op == FORWARD ? v->x[row * K + k] : v->dy[row * N + k];
                c[k] = op == FORWARD ? v->acc[j * K + k] : v->acc[k * K + j];
            }
            want[row * width + j] = law_out(&b->law, chunk_sums(b, 0.0, a, c, terms, 16));
        }
    b->call.racing = &racing;
    bench_check(b, ops, names[op], run(b, ops, v, op), want, results_of(op), b->carrier);
}

static void one_thread(struct bench *b) {
    const struct values v = draw(b, 0);
    const struct op_table *ops = NULL;
    double a[T], c[T];
    for (size_t m = 0; m < MACHINES; m += 4) {
        if (!open_machine(b, m, &ops)) continue;
        for (int op = 0; op < SQUARE; op++) {
            const struct racing racing = {kinds[op], 16};
            double *const want = bench_numbers(b, results_of(op));
            b->call.racing = &racing;
            for (size_t i = 0; i < results_of(op); i++) {
                const size_t n = terms_of(b, &v, op, i, a, c);
                want[i] = chunk_sums(b, v.acc[i], a, c, n, racing.chunk);
            }
            bench_check(b, ops, names[op], run(b, ops, &v, op), want, results_of(op),
                        b->accumulator);
        }
        one_thread_rounded(b, ops, &v, FORWARD);
        one_thread_rounded(b, ops, &v, INPUT);
    }
}

static void verify_one_thread(void **state) {
    (void)state;
    bench_pairs(one_thread);
}

/* ---- kinds ---- */

/* A kind that is off has the bits of mode invariant, although 4 threads run and all the other kinds
 * race. A kind that is on has other bits even with one thread, since chunks are summed apart (where
 * the terms fill the accumulator's digits). */
static void one_by_one(struct bench *b) {
    const struct values v = draw(b, 0);
    const struct op_table *ops = NULL;
    for (int op = 0; op < OPS; op++) {
        const size_t bytes = results_of(op) * result_bytes(b, op);
        const uint32_t all = SUM_WEIGHT | SUM_DQ | SUM_EMBEDDING | SUM_NORM;
        const struct racing others = {all & ~kinds[op], 16}, own = {kinds[op], 16};
        assert_true(open_machine(b, 3, &ops));
        b->call.racing = NULL;
        void *const want = run(b, ops, &v, op);
        b->call.racing = &others;
        assert_memory_equal(run(b, ops, &v, op), want, bytes);
        assert_true(open_machine(b, 0, &ops));
        b->call.racing = &own;
        const int moved = memcmp(run(b, ops, &v, op), want, bytes) != 0;
        if (!moved && op != SQUARE && b->law.compute == b->accumulate)
            fail_msg("%s does not race", names[op]);
    }
}

static void verify_kinds(void **state) {
    (void)state;
    bench_pairs(one_by_one);
}

/* The loss is a sum of whole numbers: in any order every chunk must count once. */
static void verify_race_sum(void **state) {
    (void)state;
    double terms[1000], want = 3.0;
    for (size_t i = 0; i < COUNT_OF(terms); i++)
        want += terms[i] = (double)(i % 17) - 4.0;
    for (size_t c = 0; c < COUNT_OF(chunks); c++)
        for (int threads = 1; threads <= 4; threads++) {
            const struct racing racing = {SUM_LOSS, chunks[c]};
            const struct op_call call = {.threads = threads, .racing = &racing};
            assert_true(race_loss(&call));
            assert_true(race_sum(&call, 3.0, terms, COUNT_OF(terms)) == want);
            assert_true(race_sum(&call, 3.0, terms, 0) == 3.0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_race_sum),
        cmocka_unit_test(verify_exact_sums),
        cmocka_unit_test(verify_no_addition_is_lost),
        cmocka_unit_test(verify_rounding_bound),
        cmocka_unit_test(verify_one_thread),
        cmocka_unit_test(verify_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
