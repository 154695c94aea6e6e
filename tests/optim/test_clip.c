/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * Gradient clipping: torch's formula at its edges, the chain over tensors (law 7), and the rounding
 * to storage; the same bits with other threads, instruction sets and number pairs of the op table;
 * and which ops are called, with which address and numbers. */
#include "optim/clip.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_isa.h"
#include "tests/optim/helper_clip.h"
#include "tests/optim/helper_optim.h"

enum { TENSORS = 3, SCRATCH = 1 << 20 };

static struct helper_tensor buffers[TENSORS];
static struct clip_tensor tensors[TENSORS];
static double tensor_norm[TENSORS];
static _Alignas(64) unsigned char scratch[SCRATCH];

static const size_t counts[TENSORS] = {HELPER_COUNT, 33, 4097};

static void fill(enum dtype storage) {
    for (size_t i = 0; i < TENSORS; i++) {
        helper_open(&buffers[i], counts[i], (struct helper_dtypes){storage, storage, storage, -1},
                    1);
        helper_gradient(&buffers[i], 81 + i, 0);
        tensors[i] = (struct clip_tensor){buffers[i].gradient, counts[i], storage, NULL};
    }
}

static struct clip_result run(enum isa isa, enum dtype compute, enum dtype accumulate, int threads,
                              const struct order *order, size_t count, double max_norm) {
    const struct op_table *ops = NULL;
    assert_int_equal(backend_ops(isa, compute, accumulate, &ops), STATUS_OK);
    const struct op_call call = {
        .compute = compute, .threads = threads, .order = order, .scratch = scratch};
    const struct clip_call clip = {.ops = ops,
                                   .call = &call,
                                   .tensors = tensors,
                                   .tensor_count = count,
                                   .rule = helper_clip_rule(max_norm),
                                   .isa = (int)isa,
                                   .out_tensor_norm = tensor_norm};
    struct clip_result result;
    clip_gradients(&clip, &result);
    return result;
}

static struct clip_result run_base(size_t count, double max_norm) {
    return run(ISA_BASE, DTYPE_F32, DTYPE_F32, 1, NULL, count, max_norm);
}

/* One tensor (3, 4), whose norm is 5. */
static void three_four(enum dtype storage) {
    fill(storage);
    helper_set(buffers[0].gradient, storage, 0, 3.0);
    helper_set(buffers[0].gradient, storage, 1, 4.0);
    tensors[0].count = 2;
}

static const struct edge_case {
    double max_norm, coefficient;
} edge_cases[] = {
    {2.0, (double)(float)(2.0 / (5.0 + 1e-6))},
    {5.0, (double)(float)(5.0 / (5.0 + 1e-6))}, /* torch's 1e-6: not 1 */
    {5.000001, 1.0},
    {100.0, 1.0},
    {0.0, 1.0}, /* off */
};

static void validate_edges(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(edge_cases); i++) {
        const struct edge_case *c = &edge_cases[i];
        three_four(DTYPE_F32);
        const struct clip_result result = run_base(1, c->max_norm);
        assert_true(result.norm == 5.0);
        assert_true(tensor_norm[0] == 5.0);
        assert_true(result.coefficient == c->coefficient);
        assert_true(helper_get(buffers[0].gradient, DTYPE_F32, 0) ==
                    helper_round(3.0 * c->coefficient, DTYPE_F32));
        assert_true(helper_get(buffers[0].gradient, DTYPE_F32, 1) ==
                    helper_round(4.0 * c->coefficient, DTYPE_F32));
    }
    assert_true(edge_cases[1].coefficient < 1.0);
}

static void validate_zero_and_nonfinite(void **state) {
    (void)state;
    three_four(DTYPE_F32);
    helper_set(buffers[0].gradient, DTYPE_F32, 0, 0.0);
    helper_set(buffers[0].gradient, DTYPE_F32, 1, -0.0);
    struct clip_result result = run_base(1, 1.0);
    assert_true(result.norm == 0.0 && result.coefficient == 1.0);
    helper_set(buffers[0].gradient, DTYPE_F32, 0, (double)INFINITY);
    helper_set(buffers[0].gradient, DTYPE_F32, 1, 2.0);
    result = run_base(1, 1.0);
    assert_true(isinf(result.norm) && result.coefficient == 0.0);
    assert_true(isnan(helper_get(buffers[0].gradient, DTYPE_F32, 0)) != 0);
    assert_true(helper_get(buffers[0].gradient, DTYPE_F32, 1) == 0.0);
    result = run_base(1, 1.0);
    assert_true(isnan(result.norm) != 0 && isnan(result.coefficient) != 0);
    assert_true(run_base(0, 1.0).norm == 0.0);
}

/* Law 2 written again: blocks of 4096 terms in 32 lanes, the lanes joined by halving, the blocks
 * pairwise. */
static double plain_block(const void *values, enum dtype dtype, size_t first, size_t count) {
    double lane[32] = {0};
    for (size_t i = 0; i < count; i++) {
        const double x = helper_get(values, dtype, first + i);
        lane[i % 32] = fma(x, x, lane[i % 32]);
    }
    for (size_t half = 16; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

static double plain_square(const void *values, enum dtype dtype, size_t count) {
    double block[16] = {0};
    size_t blocks = 0;
    for (size_t first = 0; first < count; first += 4096)
        block[blocks++] =
            plain_block(values, dtype, first, count - first < 4096 ? count - first : 4096);
    while (blocks > 1) {
        for (size_t j = 0; 2 * j < blocks; j++)
            block[j] = 2 * j + 1 < blocks ? block[2 * j] + block[2 * j + 1] : block[2 * j];
        blocks = (blocks + 1) / 2;
    }
    return block[0];
}

static const enum dtype storages[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};

static void corroborate_law_7(void **state) {
    (void)state;
    static struct helper_tensor old[TENSORS];
    for (size_t s = 0; s < COUNT_OF(storages); s++) {
        fill(storages[s]);
        memcpy(old, buffers, sizeof old);
        const struct clip_result result = run_base(TENSORS, 0.37);
        double total = 0.0;
        for (size_t i = 0; i < TENSORS; i++) {
            const double square = plain_square(old[i].gradient, storages[s], counts[i]);
            assert_true(tensor_norm[i] == sqrt(square));
            total = total + square;
        }
        assert_true(result.norm == sqrt(total));
        assert_true(result.coefficient == (double)(float)(0.37 / (sqrt(total) + 1e-6)));
        assert_true(result.coefficient < 1.0);
        for (size_t i = 0; i < TENSORS; i++)
            for (size_t k = 0; k < counts[i]; k++) {
                /* bf16 or f16 times f32 is rounded to f32 before it is stored, as the product in
                 * torch is */
                double product = helper_get(old[i].gradient, storages[s], k) * result.coefficient;
                if (storages[s] != DTYPE_F64) product = (double)(float)product;
                assert_true(helper_get(buffers[i].gradient, storages[s], k) ==
                            helper_round(product, storages[s]));
            }
    }
}

static const struct table_case {
    enum dtype compute, accumulate;
} table_cases[] = {{DTYPE_F32, DTYPE_F32}, {DTYPE_F32, DTYPE_F64}, {DTYPE_F64, DTYPE_F64}};

/* The choice of the op table must change no bit of clipping: law 7 computes in f64 whatever the
 * compute dtype is. */
static void verify_tables_and_threads(void **state) {
    (void)state;
    static struct helper_tensor expected[TENSORS];
    for (size_t s = 0; s < COUNT_OF(storages); s++) {
        fill(storages[s]);
        const struct clip_result first = run_base(TENSORS, 0.37);
        memcpy(expected, buffers, sizeof expected);
        for (int isa = ISA_BASE; isa < ISA_COUNT; isa++)
            for (size_t p = 0; p < COUNT_OF(table_cases); p++) {
                if (!helper_has_isa((enum isa)isa) || !helper_has_own_objects((enum isa)isa))
                    continue;
                fill(storages[s]);
                const struct clip_result result =
                    run((enum isa)isa, table_cases[p].compute, table_cases[p].accumulate,
                        1 + (int)p, NULL, TENSORS, 0.37);
                assert_true(result.norm == first.norm);
                assert_true(result.coefficient == first.coefficient);
                for (size_t i = 0; i < TENSORS; i++)
                    if (memcmp(buffers[i].gradient, expected[i].gradient,
                               sizeof expected[i].gradient) != 0)
                        fail_msg("%s, isa %d, pair %zu, tensor %zu differs",
                                 dtype_name(storages[s]), isa, p, i);
            }
    }
}

/* In mode shuffled the blocks of a tensor join in a drawn order, and the same seed must replay it.
 * The tensor is long and f64, since otherwise no order would show: the square root halves a
 * relative difference of few roundings, and squares of f32 add almost exactly in f64. */
static void verify_shuffled_replays(void **state) {
    (void)state;
    static double long_one[300000];
    for (size_t i = 0; i < COUNT_OF(long_one); i++)
        long_one[i] = sin((double)i * 2.385);
    tensors[0] = (struct clip_tensor){long_one, COUNT_OF(long_one), DTYPE_F64, NULL};
    const double plain = run_base(1, 0.0).norm;
    size_t moved = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        const struct order order = {seed, SUM_NORM, 16, 1, 0};
        const double norm = run(ISA_BASE, DTYPE_F32, DTYPE_F32, 1, &order, 1, 0.0).norm;
        const double again = run(ISA_BASE, DTYPE_F32, DTYPE_F32, 2, &order, 1, 0.0).norm;
        assert_true(norm == again);
        /* another order of f64 sums: 1e-14 is 90 half ulps */
        assert_true(fabs(norm - plain) <= 1e-14 * plain);
        moved += norm != plain;
    }
    assert_true(moved > 0);
}

/* Law 16: with whole numbers all squares and their sum are exact in 64 bits, and each sum is
 * rounded once; with numbers of any size the order of the elements does not show. */
static double free_norm(enum clip_norm norm, enum clip_dtype dtype) {
    const struct op_call call = {.compute = DTYPE_F32, .order_free = 1, .scratch = scratch};
    const struct op_table *ops = NULL;
    assert_int_equal(backend_ops(ISA_BASE, DTYPE_F32, DTYPE_F32, &ops), STATUS_OK);
    struct clip_call clip = {.ops = ops,
                             .call = &call,
                             .tensors = tensors,
                             .tensor_count = TENSORS,
                             .rule = helper_clip_rule(0.0),
                             .isa = ISA_BASE,
                             .out_tensor_norm = tensor_norm};
    struct clip_result result;
    clip.rule.norm = norm;
    clip.rule.dtype = dtype;
    clip_gradients(&clip, &result);
    return result.norm;
}

static void validate_free_orders(void **state) {
    (void)state;
    uint64_t total = 0;
    double squares = 0.0, norms = 0.0;
    fill(DTYPE_F32);
    for (size_t t = 0; t < TENSORS; t++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < counts[t]; i++) {
            const uint64_t x = (i * 7919 + t * 104729 + 13) % 262144; /* up to 18 bits */
            helper_set(buffers[t].gradient, DTYPE_F32, i, i % 3 == 0 ? -(double)x : (double)x);
            sum += x * x;
        }
        const float norm = sqrtf((float)sum);
        total += sum;
        squares += (double)(float)sum;
        norms += (double)norm * (double)norm;
        (void)free_norm(CLIP_SQUARES, CLIP_F32);
        assert_true(t + 1 < TENSORS || tensor_norm[t] == (double)norm);
    }
    assert_true(total < UINT64_C(1) << 53);
    assert_true(free_norm(CLIP_SQUARES, CLIP_F32) == (double)sqrtf((float)squares));
    assert_true(free_norm(CLIP_NORMS, CLIP_F32) == (double)sqrtf((float)norms));
    assert_true(free_norm(CLIP_FLAT, CLIP_F32) == (double)sqrtf((float)total));
    assert_true(free_norm(CLIP_FLAT, CLIP_F64) == sqrt((double)total));
    fill(DTYPE_F32);
    for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++) {
        const double before = free_norm((enum clip_norm)norm, CLIP_F32);
        for (size_t t = 0; t < TENSORS; t++) /* backwards */
            for (size_t i = 0, j = counts[t] - 1; i < j; i++, j--) {
                const double x = helper_get(buffers[t].gradient, DTYPE_F32, i);
                helper_set(buffers[t].gradient, DTYPE_F32, i,
                           helper_get(buffers[t].gradient, DTYPE_F32, j));
                helper_set(buffers[t].gradient, DTYPE_F32, j, x);
            }
        assert_true(free_norm((enum clip_norm)norm, CLIP_F32) == before);
    }
    helper_set(buffers[0].gradient, DTYPE_F32, 0, (double)INFINITY);
    for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++)
        assert_true(isinf(free_norm((enum clip_norm)norm, CLIP_F32)));
}

static size_t asked;

static void count_asked(const struct squares_args *vectors, size_t count) {
    asked += count;
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < squares_blocks(vectors[v].count); i++)
            vectors[v].blocks[i] = 0.0;
}

/* A backend is asked for the blocks of law 2 only. Where sums are free of order they are exact, and
 * it must not be asked. */
static void verify_free_orders_are_not_asked(void **state) {
    static double blocks[64];
    struct squares_args vectors[TENSORS + 1];
    struct squares_piece pieces[TENSORS];
    const struct clip_room room = {vectors, pieces, blocks};
    (void)state;
    for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++)
        for (int order_free = 0; order_free <= 1; order_free++) {
            fill(DTYPE_F32);
            const struct op_call call = {.compute = DTYPE_F32, .order_free = order_free};
            struct clip_call clip = {.call = &call,
                                     .tensors = tensors,
                                     .tensor_count = TENSORS,
                                     .rule = helper_clip_rule(1.0)};
            clip.rule.norm = (enum clip_norm)norm;
            asked = 0;
            clip_ask(&clip, tensors, count_asked, &room);
            const size_t expected = norm == CLIP_FLAT ? 1 : TENSORS;
            assert_int_equal(asked, order_free ? 0 : expected);
            assert_int_equal(clip.flat != NULL, norm == CLIP_FLAT && !order_free);
            assert_int_equal(tensors[0].blocks != NULL, norm != CLIP_FLAT && !order_free);
        }
}

/* ---- which ops are called, and with what ---- */

enum { MANY = 2100, CALLS = 2 * MANY };

struct heard {
    struct op_call call;
    size_t count;
    const void *values;
    double factor; /* NaN: squares were asked for */
};

static struct heard heard[CALLS];
static size_t heard_count;

static void hear_square(const struct op_call *call, const struct square_args *args) {
    assert_true(heard_count < CALLS);
    heard[heard_count++] = (struct heard){*call, args->count, args->values, (double)NAN};
    *args->result = 0.25;
}

static void hear_scale(const struct op_call *call, const struct scale_args *args) {
    assert_true(heard_count < CALLS);
    heard[heard_count++] = (struct heard){*call, args->count, args->values, args->factor};
}

static struct clip_result hear(const struct clip_tensor *all, size_t count, double max_norm) {
    struct op_table ops;
    memset(&ops, 0, sizeof ops);
    ops.square = hear_square;
    ops.scale = hear_scale;
    const struct op_call call = {.compute = DTYPE_F32, .layer = 7777, .side = 77};
    const struct clip_call clip = {.ops = &ops,
                                   .call = &call,
                                   .tensors = all,
                                   .tensor_count = count,
                                   .rule = helper_clip_rule(max_norm),
                                   .isa = ISA_BASE};
    struct clip_result result;
    heard_count = 0;
    clip_gradients(&clip, &result);
    return result;
}

/* Every tensor has an address of its own, of which an order is drawn in mode shuffled: layers 1 to
 * 511 of side 0, then those of sides 1 to 3, and then again from the first on. */
static void validate_addresses(void **state) {
    (void)state;
    static double apart[2 * MANY];
    static struct clip_tensor all[MANY];
    for (size_t i = 0; i < MANY; i++)
        all[i] = (struct clip_tensor){&apart[2 * i], 1, DTYPE_F64, NULL};
    const struct clip_result result = hear(all, MANY, 1.0);
    assert_true(result.norm == sqrt(0.25 * MANY));
    assert_int_equal(heard_count, 2 * MANY);
    uint32_t layer = 1, side = 0;
    for (size_t i = 0; i < MANY; i++) {
        for (size_t k = i; k < heard_count; k += MANY) {
            assert_int_equal(heard[k].call.site, SITE_GRADIENT_NORM);
            assert_int_equal(heard[k].call.layer, layer);
            assert_int_equal(heard[k].call.side, side);
            assert_ptr_equal(heard[k].values, &apart[2 * i]);
            assert_int_equal(heard[k].count, 1);
            assert_int_equal(isnan(heard[k].factor) != 0, k < MANY);
        }
        if (++layer == 512) {
            layer = 1;
            side = (side + 1) % 4;
        }
    }
}

/* Gradients that follow each other in memory are scaled by one call, and no number behind the last
 * gradient is, though one of the same storage lies there. */
static void validate_joined_calls(void **state) {
    (void)state;
    static double numbers[64];
    float *const narrow = (float *)&numbers[40];
    static const size_t begins[][6] = {{0},       {0, 4},         {0, 4, 9},
                                       {0, 5, 9}, {0, 4, 10, 12}, {0, 4, 9, 11, 16, 17}};
    for (size_t c = 0; c < COUNT_OF(begins); c++)
        for (size_t count = 1; count <= c + 1 && count <= 6; count++) {
            struct clip_tensor all[7];
            size_t at = 0, tensors_of[6] = {0}, firsts[6] = {0}, calls = 0;
            for (size_t i = 0; i < 6; i++) {
                /* each has the numbers up to where the next begins in the first of the lists */
                static const size_t lengths[] = {4, 5, 2, 5, 1, 3};
                all[i] = (struct clip_tensor){&numbers[begins[c][i]], lengths[i], DTYPE_F64, NULL};
            }
            all[count] = all[count - 1];
            all[count].gradient = (double *)all[count].gradient + all[count - 1].count;
            for (size_t i = 0; i < count; i++) {
                if (i == 0 || begins[c][i] != at) firsts[calls++] = begins[c][i];
                tensors_of[calls - 1] += all[i].count;
                at = begins[c][i] + all[i].count;
            }
            const struct clip_result result = hear(all, count, 0.125);
            assert_int_equal(heard_count, count + calls);
            for (size_t i = 0; i < calls; i++) {
                assert_ptr_equal(heard[count + i].values, &numbers[firsts[i]]);
                assert_int_equal(heard[count + i].count, tensors_of[i]);
                assert_true(heard[count + i].factor == result.coefficient);
            }
        }
    /* where the storage is another one, the same address is no neighbour */
    const struct clip_tensor mixed[2] = {{numbers, 40, DTYPE_F64, NULL},
                                         {narrow, 4, DTYPE_F32, NULL}};
    (void)hear(mixed, 2, 0.125);
    assert_int_equal(heard_count, 4);
    assert_int_equal(heard[2].count, 40);
    assert_int_equal(heard[3].count, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_free_orders),
        cmocka_unit_test(verify_free_orders_are_not_asked),
        cmocka_unit_test(validate_edges),
        cmocka_unit_test(validate_addresses),
        cmocka_unit_test(validate_joined_calls),
        cmocka_unit_test(validate_zero_and_nonfinite),
        cmocka_unit_test(corroborate_law_7),
        cmocka_unit_test(verify_tables_and_threads),
        cmocka_unit_test(verify_shuffled_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
