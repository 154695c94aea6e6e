/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory omp
 * Attention, forward and backward, must equal law 6 computed one number at a time, invariant and
 * shuffled: with several sequences and poisoned rows between them, with grouped heads, and with
 * lengths across the edges of blocks. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/dropout.h"
#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"
#include "tests/base/helper_size.h"

#define MOST 100 /* longest sequence here */

struct heads {
    uint32_t H, G, D;
};

struct attention {
    struct heads h;
    struct sequence *sequences; /* at most 3 */
    uint32_t count;
    size_t physical, query_numbers, key_numbers;
    double scale;
    const struct dropout *dropout;     /* NULL: none */
    int flash;                         /* the backward is that of flash attention */
    double *q, *k, *v, *dout, *before; /* before: what outputs hold */
    double *dout_stored;               /* dout before it is rounded as an operand */
    double *out, *dq, *dk, *dv;        /* expected */
};

/* The probabilities and score gradients of one head of one sequence, indexed [query][key]. */
static double P[MOST][MOST];
static double operand_P[MOST][MOST]; /* as they enter products */
static double dS[MOST][MOST];

static double score(const struct bench *b, double x) {
    const struct op_rounding *rounding = b->call.rounding;
    return law_round(x, rounding == NULL ? b->law.compute : rounding->score);
}

static double operand(const struct bench *b, double x) {
    const struct op_rounding *rounding = b->call.rounding;
    return rounding == NULL || rounding->product == DTYPE_F32 ? x : law_round(x, rounding->product);
}

/* Law 12: the mask of a query says which keys are kept; kept values are scaled, the others are
 * 0. */
static void drop(const struct bench *b, const struct attention *a, const struct sequence *s,
                 uint32_t head, uint32_t query, const double *from, double *to) {
    uint8_t kept[MOST];
    if (a->dropout == NULL) {
        memcpy(to, from, (query + 1) * sizeof *to);
        return;
    }
    const double scale = law_div(&b->law, 1.0, law_acc(&b->law, a->dropout->keep));
    dropout_attention(a->dropout, s, a->h.H, head, query, query + 1, kept);
    for (uint32_t j = 0; j <= query; j++)
        to[j] = kept[j] ? score(b, law_mul(&b->law, from[j], scale)) : 0.0;
}

static int drawn(const struct bench *b, enum sum_kind kind) {
    return b->call.order != NULL && (b->call.order->kinds & (uint32_t)kind) != 0;
}

/* `flash`: from the log-sum-exp, as flash attention's backward makes them. */
static void expect_probabilities(struct bench *b, const struct attention *a,
                                 const struct sequence *s, size_t counted, uint32_t head,
                                 int flash) {
    const struct law *const law = &b->law;
    const size_t D = a->h.D;
    const size_t H = a->h.H;
    const size_t G = a->h.G;
    const size_t g = head / (H / G);
    /* The scale is rounded to the carrier before it is used. */
    const double scale = law_round(a->scale, b->carrier == sizeof(double) ? DTYPE_F64 : DTYPE_F32);
    for (size_t i = 0; i < s->length; i++) {
        const struct law_tile tile = {&b->call, 3, (counted + i) / 64, head / 64};
        double maximum = -(double)INFINITY;
        double scores[MOST], e[MOST];
        for (size_t j = 0; j <= i; j++) {
            const double *const q = a->q + ((s->row + i) * H + head) * D;
            const double *const k = a->k + ((s->row + j) * G + g) * D;
            const double chain = score(b, law_chain(law, 0.0, q, 1, k, 1, D));
            scores[j] = score(b, law_mul(law, chain, scale));
            maximum = fmax(maximum, scores[j]);
        }
        for (size_t j = 0; j <= i; j++)
            e[j] = law_exp(law, law_sub(law, scores[j], maximum));
        const double sum = drawn(b, SUM_FORWARD) ? law_shuffled(law, &tile, e, 1, NULL, 0, i + 1)
                                                 : law_lanes(law, e, NULL, i + 1);
        const double log_sum_exp = law_add(law, maximum, law_log(law, sum));
        for (size_t j = 0; j <= i; j++)
            P[i][j] = score(b, flash ? law_exp(law, law_sub(law, scores[j], log_sum_exp))
                                     : law_div(law, e[j], sum));
        drop(b, a, s, head, (uint32_t)i, P[i], operand_P[i]);
        for (size_t j = 0; j <= i; j++)
            operand_P[i][j] = operand(b, operand_P[i][j]);
    }
}

/* Sums over keys 0 .. query, one column after the other. */
static double over_keys(struct bench *b, const struct law_tile *tile, enum sum_kind kind,
                        const double *weights, const double *rows, size_t line, size_t keys) {
    if (drawn(b, kind)) return law_shuffled(&b->law, tile, weights, 1, rows, line, keys);
    return law_chain(&b->law, 0.0, weights, 1, rows, line, keys);
}

static void expect_output(struct bench *b, struct attention *a, const struct sequence *s,
                          size_t counted, uint32_t head) {
    const size_t D = a->h.D, H = a->h.H, G = a->h.G;
    const double *const v = a->v + (s->row * G + head / (H / G)) * D;
    expect_probabilities(b, a, s, counted, head, 0);
    for (size_t i = 0; i < s->length; i++) {
        for (size_t d = 0; d < D; d++) {
            const struct law_tile tile = {&b->call, PASS_FORWARD, (counted + i) / 64,
                                          (head * D + d) / 64};
            a->out[((s->row + i) * H + head) * D + d] = law_out(
                &b->law, over_keys(b, &tile, SUM_FORWARD, operand_P[i], v + d, G * D, i + 1));
        }
    }
}

static void expect_head(struct bench *b, struct attention *a, const struct sequence *s,
                        size_t counted, uint32_t head) {
    const struct law *const law = &b->law;
    const size_t D = a->h.D;
    const size_t H = a->h.H;
    const size_t G = a->h.G;
    const size_t g = head / (H / G);
    const double *const k = a->k + (s->row * G + g) * D;
    const double *const v = a->v + (s->row * G + g) * D;
    const double scale = law_round(a->scale, b->carrier == sizeof(double) ? DTYPE_F64 : DTYPE_F32);
    expect_output(b, a, s, counted, head);
    if (a->flash) expect_probabilities(b, a, s, counted, head, 1);
    for (size_t i = 0; i < s->length; i++) {
        const size_t at = ((s->row + i) * H + head) * D;
        double dP[MOST];
        for (size_t j = 0; j <= i; j++)
            dP[j] = score(b, law_chain(law, 0.0, a->dout + at, 1, v + j * G * D, 1, D));
        drop(b, a, s, head, (uint32_t)i, dP, dP);
        const double Dsum = a->flash ? law_lanes(law, a->dout_stored + at, a->out + at, D)
                                     : law_lanes(law, P[i], dP, i + 1);
        for (size_t j = 0; j <= i; j++) {
            const double inner = score(b, law_mul(law, P[i][j], law_sub(law, dP[j], Dsum)));
            dS[i][j] = operand(b, score(b, law_mul(law, inner, scale)));
        }
        for (size_t d = 0; d < D; d++) {
            const struct law_tile tile = {&b->call, PASS_INPUT, (counted + i) / 64,
                                          (head * D + d) / 64};
            a->dq[at + d] = law_out(law, over_keys(b, &tile, SUM_DQ, dS[i], k + d, G * D, i + 1));
        }
    }
}

/* dK and dV are chains over (head, query), not rounded between heads. */
static void expect_keys(struct bench *b, struct attention *a, const struct sequence *s,
                        uint32_t head, double *dk, double *dv) {
    const struct law *const law = &b->law;
    const size_t D = a->h.D;
    for (size_t j = 0; j < s->length; j++) {
        for (size_t d = 0; d < D; d++) {
            for (size_t i = j; i < s->length; i++) {
                const size_t at = ((s->row + i) * a->h.H + head) * D + d;
                dk[j * D + d] = law_fma(law, dS[i][j], a->q[at], dk[j * D + d]);
                dv[j * D + d] = law_fma(law, operand_P[i][j], a->dout[at], dv[j * D + d]);
            }
        }
    }
}

static void expect_sequence(struct bench *b, struct attention *a, const struct sequence *s,
                            size_t counted) {
    const size_t D = a->h.D;
    for (uint32_t g = 0; g < a->h.G; g++) {
        double *const dk = bench_numbers(b, s->length * D);
        double *const dv = bench_numbers(b, s->length * D);
        const uint32_t group = a->h.H / a->h.G;
        for (uint32_t head = g * group; head < (g + 1) * group; head++) {
            expect_head(b, a, s, counted, head);
            expect_keys(b, a, s, head, dk, dv);
        }
        for (size_t j = 0; j < s->length; j++) {
            for (size_t d = 0; d < D; d++) {
                const size_t at = ((s->row + j) * a->h.G + g) * D + d;
                a->dk[at] = law_out(&b->law, dk[j * D + d]);
                a->dv[at] = law_out(&b->law, dv[j * D + d]);
            }
        }
    }
}

static double *copied(struct bench *b, const double *from, size_t count) {
    double *const copy = bench_numbers(b, count);
    memcpy(copy, from, count * sizeof *copy);
    return copy;
}

/* Rows that belong to no sequence hold NaN. */
static void poison_gaps(const struct attention *a, double *values, size_t width) {
    for (size_t row = 0; row < a->physical; row++) {
        int real = 0;
        for (uint32_t i = 0; i < a->count; i++)
            real |= row >= a->sequences[i].row &&
                    row < (size_t)a->sequences[i].row + a->sequences[i].length;
        for (size_t c = 0; !real && c < width; c++)
            values[row * width + c] = (double)NAN;
    }
}

static const struct dropout *dropout_now; /* used by the next pose() */
static int flash_now;                     /* likewise */

static struct attention pose(struct bench *b, struct heads h, const uint32_t *lengths,
                             uint32_t count) {
    struct attention a = {
        .h = h, .dropout = dropout_now, .count = count, .scale = 1.0 / sqrt((double)h.D)};
    a.flash = flash_now;
    const enum dtype dtype = b->law.compute;
    a.sequences = (struct sequence *)bench_numbers(b, 3 * sizeof(struct sequence));
    for (uint32_t i = 0; i < count; i++) {
        a.sequences[i] = (struct sequence){(uint32_t)a.physical + 2, lengths[i], i, 0};
        a.physical += lengths[i] + 3;
    }
    a.query_numbers = a.physical * h.H * h.D;
    a.key_numbers = a.physical * h.G * h.D;
    a.q = bench_draw(b, a.query_numbers, dtype, 1.0);
    a.k = bench_draw(b, a.key_numbers, dtype, 1.0);
    a.v = bench_draw(b, a.key_numbers, dtype, 1.0);
    a.dout = bench_draw(b, a.query_numbers, dtype, 1.0);
    a.before = bench_draw(b, a.query_numbers, dtype, 1.0);
    a.out = copied(b, a.before, a.query_numbers);
    a.dq = copied(b, a.before, a.query_numbers);
    a.dk = copied(b, a.before, a.key_numbers);
    a.dv = copied(b, a.before, a.key_numbers);
    poison_gaps(&a, a.q, (size_t)h.H * h.D);
    poison_gaps(&a, a.dout, (size_t)h.H * h.D);
    a.dout_stored = copied(b, a.dout, a.query_numbers);
    poison_gaps(&a, a.k, (size_t)h.G * h.D);
    poison_gaps(&a, a.v, (size_t)h.G * h.D);
    return a;
}

static void round_operands(const struct bench *b, double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = operand(b, values[i]);
}

static void check(struct bench *b, struct heads h, const uint32_t *lengths, uint32_t count) {
    struct attention a = pose(b, h, lengths, count);
    const struct op_table *ops = NULL;
    struct op_limits limits = {
        (uint32_t)a.physical, 0, h.H * h.D, 0, h.H, h.G, h.D, 0, 0, 0, 0, 0, 0};
    size_t counted = 0;
    const size_t states = a.physical * h.H * 2;
    int keeps = 0; /* every other machine keeps maximum and sum in the forward */
    void *const q = bench_store(b, a.q, a.query_numbers, b->carrier);
    void *const k = bench_store(b, a.k, a.key_numbers, b->carrier);
    void *const v = bench_store(b, a.v, a.key_numbers, b->carrier);
    void *const dout = bench_store(b, a.dout, a.query_numbers, b->carrier);
    round_operands(b, a.q, a.query_numbers);
    round_operands(b, a.k, a.key_numbers);
    round_operands(b, a.v, a.key_numbers);
    round_operands(b, a.dout, a.query_numbers);
    for (uint32_t i = 0; i < count; i++) {
        expect_sequence(b, &a, &a.sequences[i], counted);
        counted += lengths[i];
        limits.length = lengths[i] > limits.length ? lengths[i] : limits.length;
    }
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const out = bench_output(b, a.before, a.query_numbers, b->carrier);
        void *const dq = bench_output(b, a.before, a.query_numbers, b->carrier);
        void *const dk = bench_output(b, a.before, a.key_numbers, b->carrier);
        void *const dv = bench_output(b, a.before, a.key_numbers, b->carrier);
        void *const kept = (keeps = !keeps)
                               ? bench_store(b, bench_numbers(b, states), states, b->accumulator)
                               : NULL;
        ops->attention_forward(&b->call, &(struct attention_forward_args){a.sequences, count, h.H,
                                                                          h.G, h.D, a.scale, q, k,
                                                                          v, out, a.dropout, kept});
        ops->attention_backward(
            &b->call, &(struct attention_backward_args){a.sequences, count, h.H, h.G, h.D, a.scale,
                                                        q, k, v, dout, dq, dk, dv, a.dropout,
                                                        a.flash ? out : NULL, kept});
        bench_check(b, ops, "attention", out, a.out, a.query_numbers, b->carrier);
        bench_check(b, ops, "dq", dq, a.dq, a.query_numbers, b->carrier);
        bench_check(b, ops, "dk", dk, a.dk, a.key_numbers, b->carrier);
        bench_check(b, ops, "dv", dv, a.dv, a.key_numbers, b->carrier);
    }
}

static void canonical(struct bench *b) {
    check(b, (struct heads){1, 1, 1}, (const uint32_t[]){1}, 1);
    check(b, (struct heads){4, 2, 16}, (const uint32_t[]){37, 5, 66}, 3);
    check(b, (struct heads){2, 2, 6}, (const uint32_t[]){32, 33}, 2);
    check(b, (struct heads){3, 1, 40}, (const uint32_t[]){20, 9}, 2);
}

static void verify_attention(void **state) {
    (void)state;
    bench_pairs(canonical);
}

static void shuffled(struct bench *b);
static void rounded(struct bench *b);
static void dropped(struct bench *b);

static void verify_flash(void **state) {
    static void (*const cases[])(struct bench * b) = {canonical, shuffled, rounded, dropped};
    (void)state;
    flash_now = 1;
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(3, 1, 1))
        bench_pairs(cases[i]);
    flash_now = 0;
}

/* Heads of 40 columns lie across tiles of 64, and the second sequence starts inside a tile of
 * rows. */
static void shuffled(struct bench *b) {
    const struct heads h = {4, 2, 40};
    bench_shuffle(b, SUM_FORWARD | SUM_DQ, 5, SITE_ATTENTION);
    check(b, h, (const uint32_t[]){30, 50}, 2);
    bench_shuffle(b, SUM_DQ, 2, SITE_ATTENTION);
    check(b, (struct heads){2, 1, 16}, (const uint32_t[]){40}, 1);
    bench_shuffle(b, SUM_FORWARD, 16, SITE_ATTENTION);
    check(b, (struct heads){1, 1, 8}, (const uint32_t[]){MOST}, 1);
}

static void verify_attention_shuffled(void **state) {
    (void)state;
    bench_pairs(shuffled);
}

/* Law 11: tf32 operands under f32, with scores that stay wide or are narrower than everything
 * else. */
static void rounded(struct bench *b) {
    static const enum dtype products[] = {DTYPE_TF32, DTYPE_BF16, DTYPE_F16};
    static const enum dtype scores[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    if (b->law.compute == DTYPE_F64) return;
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        const struct op_rounding rounding = {
            b->law.compute == DTYPE_F32 ? products[i] : b->law.compute, scores[i]};
        b->call.rounding = &rounding;
        check(b, (struct heads){4, 2, 16}, (const uint32_t[]){37, 5, 66}, 3);
        bench_shuffle(b, SUM_FORWARD | SUM_DQ, 5, SITE_ATTENTION);
        check(b, (struct heads){3, 1, 10}, (const uint32_t[]){20, 9}, 2);
        b->call.order = NULL;
    }
    b->call.rounding = NULL;
}

static void verify_attention_rounded(void **state) {
    (void)state;
    bench_pairs(rounded);
}

static void dropped(struct bench *b) {
    static const struct dropout third = {
        .keep = 1.0 - 0.3, .seed = 5, .op = 60, .layer = 1, .update = 3};
    dropout_now = &third;
    check(b, (struct heads){4, 2, 16}, (const uint32_t[]){37, 5, 66}, 3);
    bench_shuffle(b, SUM_FORWARD | SUM_DQ, 5, SITE_ATTENTION);
    check(b, (struct heads){3, 1, 10}, (const uint32_t[]){20, 9}, 2);
    b->call.order = NULL;
    dropout_now = NULL;
}

static void verify_attention_dropped(void **state) {
    (void)state;
    bench_pairs(dropped);
}

/* The first token sees only itself, so its output is its value. With equal keys every weight is 1 /
 * (i + 1): the outputs are running means, which are exact where i + 1 is a power of two. */
static void validate_means(void **state) {
    (void)state;
    struct bench b;
    const struct op_table *ops = NULL;
    const struct op_limits limits = {4, 0, 2, 4, 1, 1, 2, 0, 0, 0, 0, 0, 0};
    const struct sequence sequence = {0, 4, 0, 0};
    bench_open(&b, 0);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        static const double queries[] = {1.0, 2.0, 0.5, -3.0, 2.0, 2.0, 1.0, 0.25};
        static const double keys[] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
        static const double values[] = {4.0, -1.0, 6.0, 3.0, 1.0, 0.0, 5.0, 2.0};
        const void *const q = bench_store(&b, queries, 8, sizeof(float));
        const void *const k = bench_store(&b, keys, 8, sizeof(float));
        const void *const v = bench_store(&b, values, 8, sizeof(float));
        const struct sequence *const one =
            (struct sequence *)bench_copy(&b, &sequence, sizeof sequence);
        float *const out = (float *)bench_numbers(&b, 4);
        ops->attention_forward(&b.call, &(struct attention_forward_args){one, 1, 1, 1, 2, 0.5, q, k,
                                                                         v, out, NULL, NULL});
        assert_true(out[0] == 4.0f && out[1] == -1.0f);
        assert_true(out[2] == 5.0f && out[3] == 1.0f);
        assert_true(out[6] == 4.0f && out[7] == 1.0f);
    }
    bench_close(&b);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_attention),         cmocka_unit_test(verify_attention_shuffled),
        cmocka_unit_test(verify_attention_rounded), cmocka_unit_test(verify_attention_dropped),
        cmocka_unit_test(validate_means),           cmocka_unit_test(verify_flash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
