/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Sums in the order of a collective: gradients of a real model under torch's DDP and FSDP2 over
 * Gloo, with three ranks, in f32, bf16 and f16, reproduced from what each rank had alone, to the
 * bit. */
#include "ranks/join.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype_bits.h"
#include "base/macro.h"
#include "ranks/bucket.h"
#include "tests/ranks/helper_recorded.h"

#define RANKS 3
#define COUNT RECORDED_COUNT
#define ROOM 6200

/* Two layers, 59 to 59 and 59 to 41: weights by rows, then biases. */
static const uint64_t sizes[] = {3481, 59, 2419, 41}, rows[] = {59, 59, 41, 41},
                      row_lengths[] = {59, 1, 59, 1};
#define TENSORS COUNT_OF(sizes)

static float recorded[RECORDED_VECTORS][COUNT];

/* Lays the gradients of all ranks out at `places`, adds them as Gloo does, and takes the sum apart
 * again. */
static void reduce(enum dtype dtype, enum join_mean mean, const uint64_t *places, uint64_t length,
                   float *out) {
    static float laid[RANKS][ROOM], sum[ROOM];
    const float *vectors[RANKS];
    const struct grouping_call call = {.algorithm = GROUPING_GLOO,
                                       .ranks = RANKS,
                                       .count = length,
                                       .width = (uint32_t)dtype_width(dtype)};
    assert_true(length <= ROOM);
    memset(laid, 0, sizeof laid);
    for (size_t r = 0; r < RANKS; r++) {
        for (size_t i = 0; i < COUNT; i++)
            laid[r][places[i]] = recorded[0 + r][i];
        join_scale_first(mean, RANKS, dtype, laid[r], length, laid[r]);
        vectors[r] = laid[r];
    }
    assert_int_equal(join_vectors(&call, dtype, vectors, sum), STATUS_OK);
    join_scale_last(mean, RANKS, dtype, sum, length);
    for (size_t i = 0; i < COUNT; i++)
        out[i] = sum[places[i]];
}

static void reduce_ddp(enum dtype dtype, enum join_mean mean, uint64_t update, float *out) {
    const struct bucket_call call = {.sizes = sizes,
                                     .count = TENSORS,
                                     .width = (uint32_t)dtype_width(dtype),
                                     .first = BUCKET_FIRST_BYTES,
                                     .cap = BUCKET_CAP_BYTES};
    static uint64_t places[COUNT];
    struct bucket_place tensors[TENSORS];
    uint32_t scratch[TENSORS];
    uint64_t lengths[TENSORS], element = 0;
    size_t buckets;
    assert_int_equal(bucket_ddp(&call, update, scratch, tensors, lengths, &buckets), STATUS_OK);
    assert_int_equal(buckets, 1); /* 24 KB */
    for (size_t t = 0; t < TENSORS; t++)
        for (uint64_t i = 0; i < sizes[t]; i++)
            places[element++] = tensors[t].offset + i;
    reduce(dtype, mean, places, lengths[0], out);
}

static void reduce_fsdp2(enum dtype dtype, enum join_mean mean, float *out) {
    const struct bucket_group group = {rows, row_lengths, TENSORS, RANKS};
    static uint64_t places[COUNT];
    uint64_t element = 0;
    for (size_t t = 0; t < TENSORS; t++)
        for (uint64_t i = 0; i < sizes[t]; i++)
            places[element++] = bucket_group_place(&group, t, i);
    reduce(dtype, mean, places, bucket_group_length(&group), out);
}

/* Whether two ways to the mean have different bits by arithmetic. Of a divisor the power of two is
 * exact where no number is subnormal, and f16 alone has such numbers here. A number of 8 or 11 bits
 * over 3 is never so near to the middle of two neighbours that the error of 1/3 in f32 would
 * matter. */
static int are_told_apart(enum dtype dtype, int a, int b) {
    const int least = a < b ? a : b, most = a < b ? b : a;
    if (least == JOIN_MULTIPLY_FIRST && most == JOIN_DIVIDE_FIRST) return dtype == DTYPE_F32;
    if (least == JOIN_DIVIDE_LAST && most == JOIN_SPLIT) return dtype == DTYPE_F16;
    return a != b;
}

/* Every way to the mean is tried, and only the framework's own may give its bits. */
static void expect_only(enum join_mean expected, enum dtype dtype, int vector, uint64_t update) {
    static float out[COUNT];
    for (int mean = JOIN_MULTIPLY_FIRST; mean <= JOIN_SPLIT; mean++) {
        if (mean == JOIN_RECIPROCAL) continue; /* in f32 that of DDP, and recorded nowhere */
        if (vector == RECORDED_FSDP2_1)
            reduce_fsdp2(dtype, (enum join_mean)mean, out);
        else
            reduce_ddp(dtype, (enum join_mean)mean, update, out);
        const size_t count = recorded_differing(out, recorded[vector]);
        const int is_own = !are_told_apart(dtype, mean, (int)expected);
        if ((count == 0) != is_own)
            fail_msg("%s, vector %d, mean %d: %zu of %d differ", dtype_name(dtype), vector, mean,
                     count, COUNT);
    }
}

static void corroborate_gradients(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum dtype dtype;
        enum join_mean fsdp2;
    } cases[] = {{"gradients-f32.bin", DTYPE_F32, JOIN_DIVIDE_LAST},
                 {"gradients-bf16.bin", DTYPE_BF16, JOIN_DIVIDE_LAST},
                 {"gradients-f16.bin", DTYPE_F16, JOIN_SPLIT}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static float out[COUNT];
        recorded_gradients(cases[i].name, cases[i].dtype, recorded);
        expect_only(JOIN_MULTIPLY_FIRST, cases[i].dtype, RECORDED_DDP_1, 1);
        expect_only(JOIN_MULTIPLY_FIRST, cases[i].dtype, RECORDED_DDP_2, 2);
        expect_only(JOIN_DIVIDE_FIRST, cases[i].dtype, RECORDED_DDP_VIEWS_2, 2);
        expect_only(cases[i].fsdp2, cases[i].dtype, RECORDED_FSDP2_1, 1);
        /* The buckets of update 1 do not give the bits of update 2. */
        reduce_ddp(cases[i].dtype, JOIN_MULTIPLY_FIRST, 1, out);
        assert_true(recorded_differing(out, recorded[RECORDED_DDP_2]) > 0);
    }
}

/* The figures of docs/RANKS.md: DDP at updates 1 and 2, then copied against living in its buckets,
 * then against FSDP2. */
static void validate_figures(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum dtype dtype;
        size_t buckets, views, fsdp2;
    } cases[] = {{"gradients-f32.bin", DTYPE_F32, 1689, 2522, 3556},
                 {"gradients-bf16.bin", DTYPE_BF16, 1864, 0, 3325},
                 {"gradients-f16.bin", DTYPE_F16, 1862, 0, 3357}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        recorded_gradients(cases[i].name, cases[i].dtype, recorded);
        assert_int_equal(recorded_differing(recorded[RECORDED_DDP_1], recorded[RECORDED_DDP_2]),
                         cases[i].buckets);
        assert_int_equal(
            recorded_differing(recorded[RECORDED_DDP_2], recorded[RECORDED_DDP_VIEWS_2]),
            cases[i].views);
        assert_int_equal(recorded_differing(recorded[RECORDED_DDP_1], recorded[RECORDED_FSDP2_1]),
                         cases[i].fsdp2);
    }
}

/* In bf16, 1 + 2^-8 is a tie that goes to 1, twice; added to each other first,
 * the two small terms are not lost. */
static void validate_rounding_for_each_addition(void **state) {
    (void)state;
    static const float one = 1.0f, small = 0x1p-8f;
    const float *const vectors[] = {&one, &small, &small};
    const struct grouping_call forwards = {GROUPING_RING,         3,   1, 2, 0, 0, 0, 0, 0,
                                           GROUPING_PATTERN_TREE, NULL};
    const struct grouping_call backwards = {GROUPING_LINEAR,       3,   1, 2, 0, 0, 0, 0, 0,
                                            GROUPING_PATTERN_TREE, NULL};
    float out;
    assert_int_equal(join_vectors(&forwards, DTYPE_BF16, vectors, &out), STATUS_OK);
    assert_true(out == 1.0f);
    assert_int_equal(join_vectors(&backwards, DTYPE_BF16, vectors, &out), STATUS_OK);
    assert_true(out == 1.0f + 0x1p-7f);
}

/* With a power of two of ranks every way to the mean is exact; with three, 1/3 is not. */
static void validate_means(void **state) {
    (void)state;
    for (int mean = JOIN_MULTIPLY_FIRST; mean <= JOIN_SPLIT; mean++) {
        float value = 3.0f;
        join_scale_first((enum join_mean)mean, 4, DTYPE_F32, &value, 1, &value);
        join_scale_last((enum join_mean)mean, 4, DTYPE_F32, &value, 1);
        assert_true(value == 0.75f);
    }
    float value = 5.0f;
    join_scale_first(JOIN_MULTIPLY_FIRST, 3, DTYPE_F32, &value, 1, &value);
    assert_true(value == 5.0f * (1.0f / 3.0f));
    value = 5.0f;
    join_scale_first(JOIN_DIVIDE_FIRST, 3, DTYPE_F32, &value, 1, &value);
    assert_true(value == 5.0f / 3.0f);
    /* 1/3 in bf16 is 0.333984375, and 5 times that 213.75 / 128; 5/3 is 213.33 / 128. */
    value = 5.0f;
    join_scale_first(JOIN_RECIPROCAL, 3, DTYPE_BF16, &value, 1, &value);
    assert_true(value == 214.0f / 128);
    value = 5.0f;
    join_scale_first(JOIN_MULTIPLY_FIRST, 3, DTYPE_BF16, &value, 1, &value);
    assert_true(value == 213.0f / 128);
    value = 5.0f;
    join_scale_first(JOIN_RECIPROCAL, 3, DTYPE_F32, &value, 1, &value);
    assert_true(value == 5.0f * (1.0f / 3.0f));
    /* FSDP2: 12 ranks divide by 4 first and by 3 last. */
    value = 1.0f;
    join_scale_first(JOIN_SPLIT, 12, DTYPE_F16, &value, 1, &value);
    assert_true(value == 0.25f);
}

static void verify_refusals(void **state) {
    (void)state;
    static const float zero[1] = {0};
    const float *const vectors[] = {zero, zero};
    struct grouping_call call = {.algorithm = GROUPING_LINEAR, .ranks = 2, .count = 1, .width = 4};
    struct grouping_run run = {0, 1, 3, {0, GROUPING_ADD, 1}};
    float out;
    assert_int_equal(join_vectors(&call, DTYPE_F64, vectors, &out), STATUS_INPUT);
    assert_string_equal(status_text(), "dtype of the wire: expected f32, bf16 or f16, got f64");
    assert_int_equal(join_vectors(&call, DTYPE_BF16, vectors, &out), STATUS_INPUT);
    assert_string_equal(status_text(), "width: expected 2 bytes for bf16, got 4");
    call.ranks = 0;
    assert_int_equal(join_vectors(&call, DTYPE_F32, vectors, &out), STATUS_INPUT);
    assert_int_equal(join_run(&run, 2, DTYPE_F32, vectors, &out), STATUS_INTERNAL);
    run = (struct grouping_run){0, 1, 2, {0, 1}};
    assert_int_equal(join_run(&run, 2, DTYPE_F32, vectors, &out), STATUS_INTERNAL);
    run = (struct grouping_run){0, 1, 1, {2}};
    assert_int_equal(join_run(&run, 2, DTYPE_F32, vectors, &out), STATUS_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_gradients),
        cmocka_unit_test(validate_figures),
        cmocka_unit_test(validate_rounding_for_each_addition),
        cmocka_unit_test(validate_means),
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
