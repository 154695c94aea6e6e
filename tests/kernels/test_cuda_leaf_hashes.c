/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * What kernels/cuda/ computes of whole tensors for a run's record, against what the host computes
 * of the same numbers. Leaf hashes: digests and errors are the host's, for every dtype and all
 * kinds of numbers, on counts around the ends of words, lanes, rows of words and leaves. Update
 * sizes: the sums of law 2 over the host's differences. Distances between two runs: likewise.
 * Read-back: the sums of law 2 over what the host makes of an optimizer's step, for every kind of
 * direction. */
#include "tests/kernels/helper_machines.h"

#include <math.h>
#include <stdio.h>

#include "base/rule_ulp.h"
#include "base/sum.h"
#include "determinism/digest.h"
#include "determinism/philox.h"
#include "kernels/leaf_hashes.h"
#include "kernels/update_sizes.h"
#include "kernels/run_distances.h"
#include "kernels/products.h"
#include "kernels/readback_blocks.h"

#if defined(TWINSTEP_WATCHED)
#define LEAVES leaf_hashes_f32_f32_watch
#define MOVES update_sizes_f32_f32_watch
#define PAIRS run_distances_f32_f32_watch
#define READS readback_blocks_f32_f32_watch
#else
#define LEAVES leaf_hashes_f32_f32_shim
#define MOVES update_sizes_f32_f32_shim
#define PAIRS run_distances_f32_f32_shim
#define READS readback_blocks_f32_f32_shim
#endif
void LEAVES(const struct leaf_hashes_args *tensors, size_t count);
void MOVES(const struct update_sizes_args *tensors, size_t count);
void PAIRS(const struct run_distances_args *tensors, size_t count);
void READS(const struct readback_blocks_args *args, const struct readback_blocks_tensor *tensors,
           size_t count);

/* The list is longer than two launches take, so that a third one has a few tensors. */
#define LISTED 70

static void ask_leaves(const struct bench *bench, const struct leaf_hashes_args *tensors,
                       size_t count) {
    if (bench->backend == NULL)
        LEAVES(tensors, count);
    else
        bench->backend->leaf_hashes(tensors, count);
    machine_wait(bench, "leaves");
}

static void make_leaves(const struct bench *bench, enum dtype dtype, const void *values,
                        size_t count, struct leafhash_leaf *leaves) {
    ask_leaves(bench, &(struct leaf_hashes_args){form_carried(dtype), count, values, leaves}, 1);
}

/* Draws one NaN in eight, of any payload, and zeros of both signs, infinities and subnormals; the
 * other numbers are spread over the whole range of the dtype. */
static float draw_narrow(enum dtype dtype, const uint32_t word[4]) {
    const uint32_t sign = word[0] & 0x80000000u;
    const float x = real_from_bits_f32(word[0]);
    if (word[1] % 8 == 0) return real_from_bits_f32(word[0] | 0x7F800001u);
    if (word[1] % 8 == 1 && dtype != DTYPE_E4M3) return real_from_bits_f32(sign | 0x7F800000u);
    if (word[1] % 8 == 2) return real_from_bits_f32(sign);
    if (dtype == DTYPE_F32) return x;
    if (word[1] % 8 == 3 && dtype != DTYPE_BF16 && dtype != DTYPE_TF32)
        return (float)dtype_round(
            (double)(float)(word[2] % 16) * dtype_smallest(dtype) * dtype_epsilon(dtype), dtype);
    if (word[1] % 2 == 0)
        return (float)dtype_round((double)x, dtype); /* e4m3: NaN where too large */
    return (float)dtype_round((double)(float)(int32_t)word[3] * 0x1p-28, dtype);
}

static double draw_wide(const uint32_t word[4]) {
    const uint64_t bits = (uint64_t)word[0] << 32 | word[2];
    if (word[1] % 8 == 0) return real_from_bits_f64(bits | UINT64_C(0x7FF0000000000001));
    if (word[1] % 8 == 1) return real_from_bits_f64(bits & UINT64_C(0xFFF0000000000000));
    if (word[1] % 8 == 2) return real_from_bits_f64(bits & UINT64_C(0x800FFFFFFFFFFFFF));
    return real_from_bits_f64(bits);
}

/* What lies behind the tensor's numbers must not change any digest, so it is drawn too. */
static void *draw_tensor(struct bench *bench, enum dtype dtype, size_t count) {
    const size_t bytes = count * dtype_carrier(dtype);
    void *const values = machine_take(bench, bytes + 32, 1);
    memset((unsigned char *)values + bytes, 0xA5, 32);
    for (size_t i = 0; i < count; i++) {
        const struct philox_block draw =
            philox_draw((struct philox_block){{(uint32_t)i, dtype, (uint32_t)count, 0}}, SEED);
        if (dtype == DTYPE_F64)
            ((double *)values)[i] = draw_wide(draw.word);
        else
            ((float *)values)[i] = draw_narrow(dtype, draw.word);
    }
    return values;
}

static struct leafhash_leaf *take_leaves(struct bench *bench, enum dtype dtype, size_t count) {
    const size_t leaves = leaf_hashes_count(dtype, count);
    struct leafhash_leaf *const taken =
        (struct leafhash_leaf *)machine_take(bench, leaves, sizeof *taken);
    memset(taken, 0xA5, leaves * sizeof *taken);
    return taken;
}

static void digest_is_the_hosts(const struct leaf_hashes_args *of) {
    struct digest want, got;
    assert_int_equal(digest_tensor("w", of->form.dtype, 1, &of->count, of->values, &want),
                     STATUS_OK);
    if (digest_tensor_leaves("w", of->form.dtype, 1, &of->count, of->values, of->leaves, &got) !=
        STATUS_OK)
        fail_msg("%s, %zu numbers: %s", dtype_name(of->form.dtype), of->count, status_text());
    if (digest_compare(&want, &got) != 0)
        fail_msg("%s, %zu numbers: another digest than the host's", dtype_name(of->form.dtype),
                 of->count);
}

static struct leaf_hashes_args draw_leaves(struct bench *bench, enum dtype dtype, size_t count) {
    return (struct leaf_hashes_args){form_carried(dtype), count, draw_tensor(bench, dtype, count),
                                     take_leaves(bench, dtype, count)};
}

static void digests_are_equal(struct bench *bench, enum dtype dtype, size_t count) {
    const struct leaf_hashes_args args = draw_leaves(bench, dtype, count);
    ask_leaves(bench, &args, 1);
    digest_is_the_hosts(&args);
}

static void open_bench(struct bench *bench) {
    bench_open(bench, 0);
    shim_seed(SEED);
}

static void close_bench(struct bench *bench) {
    bench_close(bench);
    shim_close();
}

/* The listed tensors include empty ones, some of several leaves, and changes of dtype. */
static void corroborate_listed_leaves(void **state) {
    struct bench bench;
    struct leaf_hashes_args list[LISTED];
    (void)state;
    open_bench(&bench);
    ask_leaves(&bench, list, 0);
    for (size_t i = 0; i < LISTED; i++)
        list[i] = draw_leaves(&bench, i < 40 ? DTYPE_BF16 : (enum dtype)(i % DTYPE_COUNT),
                              i % 23 == 7 ? 3 * LEAFHASH_BLOCK / 2 + i : i * 5 % 37);
    ask_leaves(&bench, list, LISTED);
    for (size_t i = 0; i < LISTED; i++)
        digest_is_the_hosts(&list[i]);
    close_bench(&bench);
}

/* Counts of bytes around which lengths are tried: a word, a row of 32 words, the eight rows that a
 * lane reads ahead, a leaf, and a block of warps. */
static void corroborate_host(void **state) {
    static const size_t ends[] = {4, 128, 1024, 1024 + 128, LEAFHASH_BLOCK, 5 * LEAFHASH_BLOCK};
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const enum dtype dtype = (enum dtype)d;
        const size_t width = dtype_width(dtype);
        struct bench bench;
        open_bench(&bench);
        assert_int_equal(own_width(dtype), width);
        digests_are_equal(&bench, dtype, 0);
        for (size_t e = 0; e < COUNT_OF(ends); e++)
            for (size_t i = 0; i < 7; i++) /* 3 before to 3 behind */
                if (ends[e] / width + i > 3 && (ends[e] <= LEAFHASH_BLOCK || i % 3 == 1))
                    digests_are_equal(&bench, dtype, ends[e] / width + i - 3);
        close_bench(&bench);
    }
}

/* A digest depends on the shape, not on the numbers alone; and the same leaf hashes under another
 * name are another tensor's digest. */
static void verify_framing(void **state) {
    static const size_t shapes[2][2] = {{30, 41}, {41, 30}};
    struct bench bench;
    struct digest want, got[3];
    (void)state;
    open_bench(&bench);
    const size_t count = shapes[0][0] * shapes[0][1];
    const void *const values = draw_tensor(&bench, DTYPE_BF16, count);
    struct leafhash_leaf *const leaves = take_leaves(&bench, DTYPE_BF16, count);
    make_leaves(&bench, DTYPE_BF16, values, count, leaves);
    for (size_t s = 0; s < 2; s++) {
        assert_int_equal(digest_tensor("w", DTYPE_BF16, 2, shapes[s], values, &want), STATUS_OK);
        assert_int_equal(
            digest_tensor_leaves("w", DTYPE_BF16, 2, shapes[s], values, leaves, &got[s]),
            STATUS_OK);
        assert_int_equal(digest_compare(&want, &got[s]), 0);
    }
    assert_int_equal(digest_tensor_leaves("v", DTYPE_BF16, 2, shapes[0], values, leaves, &got[2]),
                     STATUS_OK);
    assert_int_not_equal(digest_compare(&got[0], &got[1]), 0);
    assert_int_not_equal(digest_compare(&got[0], &got[2]), 0);
    assert_int_equal(digest_tensor_leaves("w", DTYPE_BF16, 9, NULL, values, leaves, &want),
                     STATUS_INTERNAL);
    close_bench(&bench);
}

/* Only the lane that has number `at` reports that it is no value of the dtype, and the error is the
 * host's. */
static void misfit_is_told(struct bench *bench, enum dtype dtype, size_t count, size_t at) {
    float *const values = (float *)draw_tensor(bench, dtype, count);
    struct leafhash_leaf *const leaves = take_leaves(bench, dtype, count);
    const size_t width = dtype_width(dtype), byte = at * width;
    struct digest unused;
    char want[512];
    values[at] = 0x1.000002p0f;
    make_leaves(bench, dtype, values, count, leaves);
    for (size_t leaf = 0; leaf < leaf_hashes_count(dtype, count); leaf++)
        for (size_t lane = 0; lane < LEAFHASH_LANES; lane++)
            assert_int_equal(leaves[leaf].misfit[lane] != 0,
                             leaf == byte / LEAFHASH_BLOCK && lane == byte / 4 % LEAFHASH_LANES);
    assert_int_equal(digest_tensor("q", dtype, 1, &count, values, &unused), STATUS_INTERNAL);
    snprintf(want, sizeof want, "%s", status_text());
    assert_int_equal(digest_tensor_leaves("q", dtype, 1, &count, values, leaves, &unused),
                     STATUS_INTERNAL);
    assert_string_equal(status_text(), want);
    values[at] = 1.0f; /* the leaf hashes are wrong then */
    assert_int_equal(digest_tensor_leaves("q", dtype, 1, &count, values, leaves, &unused),
                     STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "all values of the tensor are inside"));
}

static void verify_misfits(void **state) {
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_TF32, DTYPE_E4M3, DTYPE_E5M2};
    struct bench bench;
    (void)state;
    open_bench(&bench);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        const size_t block = LEAFHASH_BLOCK / dtype_width(dtypes[d]);
        misfit_is_told(&bench, dtypes[d], 1, 0);
        misfit_is_told(&bench, dtypes[d], 1027, 5);
        misfit_is_told(&bench, dtypes[d], 1027, 1026);
        misfit_is_told(&bench, dtypes[d], block + 3, block - 1);
        misfit_is_told(&bench, dtypes[d], block + 3, block + 1);
    }
    close_bench(&bench);
}

static double number_of(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Any NaN equals any NaN; other sums are compared as bits. */
static int same_sum(double a, double b) {
    return a != a ? b != b : real_bits_f64(a) == real_bits_f64(b);
}

static void block_is_the_hosts(const struct update_sizes_args *args, size_t block) {
    double update[SUM_BLOCK], now[SUM_BLOCK], travel[SUM_BLOCK];
    const size_t first = block * SUM_BLOCK, width = dtype_carrier(args->dtype);
    const size_t left = args->count - first, count = left < SUM_BLOCK ? left : SUM_BLOCK;
    const struct update_sizes_block *const got = &args->blocks[block];
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        now[i] = number_of(args->now, args->dtype, first + i);
        update[i] = now[i] - number_of(args->before, args->dtype, first + i);
        travel[i] = now[i] - number_of(args->start, args->dtype, first + i);
        changed += memcmp((const char *)args->now + (first + i) * width,
                          (const char *)args->before + (first + i) * width, width) != 0;
    }
    if (!same_sum(got->update, sum_squares_f64_f64(update, count)) ||
        !same_sum(got->norm, sum_squares_f64_f64(now, count)) ||
        !same_sum(got->travel, sum_squares_f64_f64(travel, count)) || got->changed != changed)
        fail_msg("%s, %zu numbers: block %zu is not the host's", dtype_name(args->dtype),
                 args->count, block);
}

/* Where `count` numbers of `width` bytes begin in memory that holds one more: odd counts begin at
 * no multiple of 16 bytes, so that nobody may load four of them at a time. */
static void *shifted(const void *memory, size_t count, size_t width) {
    return (unsigned char *)(uintptr_t)memory + count % 2 * width;
}

/* With `kinds` the numbers include NaNs, infinities and zeros. */
static const void *draw_step(struct bench *bench, enum dtype dtype, size_t count, int kinds) {
    const size_t width = dtype_carrier(dtype);
    if (kinds) return shifted(draw_tensor(bench, dtype, count + 1), count, width);
    double *const drawn = bench_draw(bench, count + 1, dtype, 1.0);
    return shifted(bench_store(bench, drawn, count + 1, width), count, width);
}

/* Draws a tensor before and after an update in which one number in five stays where it was. */
static struct update_sizes_args draw_moves(struct bench *bench, enum dtype dtype, size_t count,
                                           int kinds) {
    const size_t width = dtype_carrier(dtype);
    struct update_sizes_args args = {.dtype = dtype, .count = count};
    const void *const before = draw_step(bench, dtype, count, kinds);
    unsigned char *const now =
        (unsigned char *)shifted(machine_take(bench, count + 1, width), count, width);
    memcpy(now, draw_step(bench, dtype, count, 0), count * width);
    for (size_t i = 0; i < count; i += 5)
        memcpy(now + i * width, (const unsigned char *)before + i * width, width);
    args.now = now;
    args.before = before;
    args.start = draw_step(bench, dtype, count, 0);
    args.blocks = (struct update_sizes_block *)machine_take(bench, update_sizes_blocks(count),
                                                            sizeof *args.blocks);
    memset(args.blocks, 0xA5, update_sizes_blocks(count) * sizeof *args.blocks);
    return args;
}

static void update_sizes_are_the_hosts(const struct bench *bench,
                                       const struct update_sizes_args *list, size_t count) {
    if (bench->backend == NULL)
        MOVES(list, count);
    else
        bench->backend->update_sizes(list, count);
    machine_wait(bench, "moves");
    for (size_t i = 0; i < count; i++)
        for (size_t block = 0; block < update_sizes_blocks(list[i].count); block++)
            block_is_the_hosts(&list[i], block);
}

static void one_moves(struct bench *bench, enum dtype dtype, size_t count, int kinds) {
    const struct update_sizes_args args = draw_moves(bench, dtype, count, kinds);
    update_sizes_are_the_hosts(bench, &args, 1);
}

static void corroborate_update_sizes(void **state) {
    static const size_t counts[] = {0, 1, 31, 33, 4095, 4096, 4097, 5 * 4096 + 100};
    struct bench bench;
    (void)state;
    assert_int_equal(UPDATE_SIZES_BLOCK, SUM_BLOCK);
    open_bench(&bench);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (int kinds = 0; kinds < 2; kinds++) {
            one_moves(&bench, DTYPE_F32, counts[i], kinds);
            one_moves(&bench, DTYPE_F64, counts[i], kinds);
            if (counts[i] == 33) one_moves(&bench, DTYPE_E5M2, counts[i], kinds);
        }
    close_bench(&bench);
}

static void corroborate_listed_moves(void **state) {
    struct bench bench;
    struct update_sizes_args list[LISTED];
    (void)state;
    open_bench(&bench);
    for (size_t i = 0; i < LISTED; i++)
        list[i] = draw_moves(&bench, i % 3 == 0 ? DTYPE_F64 : DTYPE_F32,
                             i % 23 == 7 ? UPDATE_SIZES_BLOCK + i : i * 5 % 37, 0);
    update_sizes_are_the_hosts(&bench, list, LISTED);
    close_bench(&bench);
}

/* ---- distances between two runs ---- */

static void pair_is_the_hosts(const struct run_distances_args *of, size_t block) {
    static double column[4][SUM_BLOCK];
    const size_t first = block * SUM_BLOCK, left = of->count - first;
    const size_t count = left < SUM_BLOCK ? left : SUM_BLOCK;
    const struct run_distances_block *const got = &of->blocks[block];
    struct run_distances_block want = {.ulp = 0};
    for (size_t i = 0; i < count; i++) {
        const double x = number_of(of->x, of->x_dtype, first + i);
        const double y = number_of(of->y, of->y_dtype, first + i);
        column[0][i] = x - y;
        column[1][i] = x - number_of(of->start, of->x_dtype, first + i);
        column[2][i] = x - number_of(of->x_old, of->x_dtype, first + i);
        column[3][i] = y - number_of(of->y_old, of->y_dtype, first + i);
        if (of->x_dtype != of->y_dtype) continue;
        const int64_t ulp = of->x_dtype == DTYPE_F64
                                ? rule_ulp_f64(x, y)
                                : rule_ulp_f32((float)x, (float)y, of->x_dtype);
        if (ulp > want.ulp) want.ulp = ulp;
        want.changed += real_bits_f64(x) != real_bits_f64(y);
    }
    for (size_t s = 0; s < RUN_DISTANCES_SUMS; s++) {
        const size_t a = s < RUN_DISTANCES_XY ? s : 2, b = s < RUN_DISTANCES_XY ? s : 3;
        want.sum[s] = products_block(column[a], column[b], count);
        if (!same_sum(got->sum[s], want.sum[s]))
            fail_msg("%s and %s, %zu numbers: sum %zu of block %zu is %a, the host's %a",
                     dtype_name(of->x_dtype), dtype_name(of->y_dtype), of->count, s, block,
                     got->sum[s], want.sum[s]);
    }
    assert_int_equal(got->changed, want.changed);
    assert_true(got->ulp == want.ulp);
}

/* One number in five is the same in both runs. With `far`, some are as far apart as numbers can
 * be. */
static struct run_distances_args draw_pairs(struct bench *bench, enum dtype x, enum dtype y,
                                            size_t count, int far) {
    struct run_distances_args of = {.x_dtype = x, .y_dtype = y, .count = count};
    unsigned char *const own = (unsigned char *)shifted(
        machine_take(bench, count + 1, dtype_carrier(y)), count, dtype_carrier(y));
    of.x = draw_step(bench, x, count, far);
    of.x_old = draw_step(bench, x, count, 0);
    of.start = draw_step(bench, x, count, 0);
    of.y_old = draw_step(bench, y, count, 0);
    memcpy(own, draw_step(bench, y, count, 0), count * dtype_carrier(y));
    for (size_t i = 0; i < count && x == y; i += 5)
        memcpy(own + i * dtype_carrier(y), (const unsigned char *)of.x + i * dtype_carrier(x),
               dtype_carrier(x));
    of.y = own;
    of.blocks = (struct run_distances_block *)machine_take(bench, run_distances_blocks(count),
                                                           sizeof *of.blocks);
    memset(of.blocks, 0xA5, run_distances_blocks(count) * sizeof *of.blocks);
    return of;
}

static void corroborate_run_distances(void **state) {
    static const enum dtype dtypes[][2] = {
        {DTYPE_F32, DTYPE_F32},   {DTYPE_F64, DTYPE_F64},   {DTYPE_F32, DTYPE_F64},
        {DTYPE_BF16, DTYPE_BF16}, {DTYPE_F16, DTYPE_F16},   {DTYPE_E4M3, DTYPE_E4M3},
        {DTYPE_E5M2, DTYPE_E5M2}, {DTYPE_TF32, DTYPE_TF32}, {DTYPE_BF16, DTYPE_F32}};
    enum { BOTH = 2 * COUNT_OF(dtypes) }; /* with numbers near each other and far apart */
    struct run_distances_args list[LISTED];
    struct bench bench;
    (void)state;
    assert_int_equal(RUN_DISTANCES_BLOCK, SUM_BLOCK);
    open_bench(&bench);
    for (size_t i = 0; i < LISTED; i++) {
        const enum dtype *const two = dtypes[i % BOTH / 2];
        const size_t count =
            i % 11 == 7 ? RUN_DISTANCES_BLOCK - 33 + 33 * (i / 11 % 3) : i * 5 % 37;
        list[i] = draw_pairs(&bench, two[0], two[1], count, i % 2 == 1);
    }
    if (bench.backend == NULL)
        PAIRS(list, LISTED);
    else
        bench.backend->run_distances(list, LISTED);
    machine_wait(&bench, "pairs");
    for (size_t i = 0; i < LISTED; i++)
        for (size_t block = 0; block < run_distances_blocks(list[i].count); block++)
            pair_is_the_hosts(&list[i], block);
    close_bench(&bench);
}

/* ---- read-back ---- */

static const struct rule_direction directions[] = {
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .decay = 0.1,
     .grad_scale = 3.0,
     .factor = 0.9,
     .correction1 = 0.19,
     .root = 0.05,
     .eps = 1e-8},
    {.kind = RULE_DIRECTION_ADAM,
     .second = 2, /* amsgrad */
     .grad_scale = 1.0,
     .factor = 1.0,
     .correction1 = 0.1,
     .root = 1.0,
     .eps = 1e-3},
    {.kind = RULE_DIRECTION_SGD, .decay = 0.1, .grad_scale = 3.0},
    {.kind = RULE_DIRECTION_SGD, .decay = 0.1, .grad_scale = 1.0, .momentum = 0.9},
    {.kind = RULE_DIRECTION_SGD, .grad_scale = 3.0, .momentum = 0.9, .nesterov = 1},
    {.kind = RULE_DIRECTION_LION,
     .decay = 0.1,
     .grad_scale = 3.0,
     .beta1 = 0.9,
     .weight1 = 0.1,
     .gradient = DTYPE_BF16,
     .working = DTYPE_F32,
     .slot = DTYPE_F16},
    {.kind = RULE_DIRECTION_LION, .is_wide = 1, .grad_scale = 1.0, .beta1 = 0.9, .weight1 = 0.1},
    /* some elements have so much slack that they are left out */
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .is_stored = 1,
     .grad_scale = 1.0,
     .factor = 1.0,
     .correction1 = 0.1,
     .root = 0.3,
     .eps = 1e-8,
     .slot = DTYPE_BF16,
     .slack = {.is_on = 1, .under_most = 1e300, .unit = 0.2, .least = 0x1p-6}},
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .decay = 0.1,
     .grad_scale = 1.0,
     .factor = 0.9,
     .correction1 = 0.1,
     .root = 0.3,
     .eps = 1e-8,
     .slack = {.is_on = 1,
               .first_unit = 0x1p-9,
               .first_least = 0x1p-12,
               .second_unit = 0x1p-9,
               .second_least = 0x1p-25,
               .under_unit = 0x1p-8,
               .under_least = 0x1p-10,
               .under_most = 0.5,
               .negligible = 0x1p-10}},
};

static double direction_of(const struct readback_blocks_args *args,
                           const struct readback_blocks_tensor *of, size_t i) {
    const struct rule_direction *const k = &args->direction;
    const double old = number_of(of->old, args->working, i);
    const double first = number_of(of->slots[0], args->slot.dtype, i);
    const double g = number_of(of->gradient, args->gradient_dtype, i);
    const double then = of->moment != NULL ? number_of(of->moment, args->slot.dtype, i) : first;
    switch (k->kind) {
    case RULE_DIRECTION_ADAM:
        return rule_direction_adam(k, first, number_of(of->slots[k->second], args->slot.dtype, i),
                                   old);
    case RULE_DIRECTION_SGD:
        return rule_direction_sgd(k, g, first, old);
    case RULE_DIRECTION_LION:
        return rule_direction_lion(k, g, then, old);
    case RULE_DIRECTION_NONE:
        break;
    }
    return (double)NAN;
}

static double slack_of(const struct readback_blocks_args *args,
                       const struct readback_blocks_tensor *of, size_t i) {
    const struct rule_direction *const k = &args->direction;
    return RULE_SLACK_OF(k, number_of(of->slots[0], args->slot.dtype, i),
                         number_of(of->slots[k->second], args->slot.dtype, i));
}

/* The terms of one block, in columns, as trainer/readback.c has them. */
struct columns {
    double u[SUM_BLOCK], p[SUM_BLOCK], d[SUM_BLOCK], e[SUM_BLOCK];
    double size_u[SUM_BLOCK], size_p[SUM_BLOCK];
    double meant[SUM_BLOCK], lost[SUM_BLOCK];
    double taken[SUM_BLOCK], error[SUM_BLOCK], one[SUM_BLOCK];
};

static void fill_columns(const struct readback_blocks_args *args,
                         const struct readback_blocks_tensor *of, size_t first, size_t count,
                         struct columns *out) {
    const int is_read = of->stride <= 1 || first / SUM_BLOCK % of->stride == of->turn;
    for (size_t i = 0; i < count; i++) {
        const double old = number_of(of->old, args->working, first + i);
        const struct rule_read_terms t =
            rule_read_terms(&args->spacing, direction_of(args, of, first + i),
                            slack_of(args, of, first + i), args->direction.slack.negligible,
                            args->decay, old, number_of(of->now, args->working, first + i));
        struct rule_taken_value taken = {0.0, 0.0};
        if (of->moment != NULL)
            taken =
                rule_taken_value(&args->taken, number_of(of->slots[0], args->slot.dtype, first + i),
                                 number_of(of->moment, args->slot.dtype, first + i), old);
        out->u[i] = is_read ? t.u : 0.0;
        out->p[i] = is_read ? t.p : 0.0;
        out->d[i] = is_read ? t.d : 0.0;
        out->e[i] = is_read ? t.e : 0.0;
        out->meant[i] = is_read ? t.meant : 0.0;
        out->lost[i] = is_read ? t.lost : 0.0;
        out->size_u[i] = real_abs_f64(out->u[i]);
        out->size_p[i] = real_abs_f64(out->p[i]);
        out->taken[i] = taken.gradient;
        out->error[i] = taken.error;
        out->one[i] = 1.0;
    }
}

static void read_is_the_hosts(const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *of, size_t block,
                              const char *what) {
    struct columns t;
    const size_t first = block * SUM_BLOCK, left = of->count - first;
    const size_t count = left < SUM_BLOCK ? left : SUM_BLOCK;
    const int is_slack = args->direction.slack.is_on;
    fill_columns(args, of, first, count, &t);
    const double want[READBACK_BLOCKS_SUMS] = {
        [READBACK_BLOCKS_UU] = products_block(t.u, t.u, count),
        [READBACK_BLOCKS_UP] = products_block(t.u, t.p, count),
        [READBACK_BLOCKS_PP] = products_block(t.p, t.p, count),
        [READBACK_BLOCKS_UD] = products_block(t.u, t.d, count),
        [READBACK_BLOCKS_PD] = products_block(t.p, t.d, count),
        [READBACK_BLOCKS_U] = products_block(t.size_u, t.one, count),
        [READBACK_BLOCKS_P] = products_block(t.size_p, t.one, count),
        [READBACK_BLOCKS_UE] = is_slack ? products_block(t.size_u, t.e, count) : 0.0,
        [READBACK_BLOCKS_PE] = is_slack ? products_block(t.size_p, t.e, count) : 0.0,
        [READBACK_BLOCKS_MEANT] = products_block(t.meant, t.one, count),
        [READBACK_BLOCKS_LOST] = products_block(t.lost, t.one, count),
        [READBACK_BLOCKS_TAKEN] = products_block(t.taken, t.taken, count),
        [READBACK_BLOCKS_TAKEN_ERROR] = products_block(t.error, t.error, count),
    };
    for (size_t s = 0; s < READBACK_BLOCKS_SUMS; s++)
        if (!same_sum(of->blocks[block].sum[s], want[s]))
            fail_msg("%s, %zu numbers: sum %zu of block %zu is %a, the host's %a", what, of->count,
                     s, block, of->blocks[block].sum[s], want[s]);
}

enum {
    READBACK_BLOCKS_PLAIN = 0,
    READBACK_BLOCKS_KINDS,
    READBACK_BLOCKS_INFINITY,
    READBACK_BLOCKS_CASES
};

static const void *end_infinite(struct bench *bench, enum dtype dtype, size_t count) {
    double *const drawn = bench_draw(bench, count, dtype, 1.0);
    drawn[count - 1] = -(double)INFINITY;
    return bench_store(bench, drawn, count, dtype_carrier(dtype));
}

/* The numbers make no sense as an optimizer's state, and need not: the arithmetic takes any
 * numbers. READBACK_BLOCKS_KINDS adds NaNs, infinities and zeros; READBACK_BLOCKS_INFINITY adds
 * them to the last moment only, so that sums come out infinite and not NaN. */
static struct readback_blocks_tensor draw_reads(struct bench *bench,
                                                const struct readback_blocks_args *args,
                                                size_t count, int numbers) {
    const int kinds = numbers == READBACK_BLOCKS_KINDS;
    const enum dtype working = args->working, others = args->slot.dtype;
    const size_t width = dtype_carrier(others);
    struct readback_blocks_tensor of = {.count = count, .turn = 1};
    of.old = draw_step(bench, working, count, kinds);
    of.now = draw_step(bench, working, count, 0);
    of.gradient = draw_step(bench, others, count, 0);
    of.slots[0] = draw_step(bench, others, count, kinds);
    if (numbers == READBACK_BLOCKS_INFINITY && count > 0)
        of.slots[0] = end_infinite(bench, others, count);
    for (size_t slot = 1; slot < READBACK_BLOCKS_SLOTS; slot++) { /* means of squares */
        double *const roots = bench_draw(bench, count, others, 1.0);
        for (size_t i = 0; i < count; i++)
            roots[i] = real_abs_f64(roots[i]);
        of.slots[slot] = bench_store(bench, roots, count, width);
    }
    of.blocks = (struct readback_blocks_block *)machine_take(bench, readback_blocks_blocks(count),
                                                             sizeof *of.blocks);
    return of;
}

static struct readback_blocks_args readback_blocks_of(enum dtype working, enum dtype others) {
    return (struct readback_blocks_args){
        .working = working,
        .gradient_dtype = others,
        .slot = form_carried(others),
        .spacing = {dtype_epsilon(working), 0x1p-126},
        .taken = {.keep = 0.9, .take = 0.1, .decay = 0.1, .unit = 0x1p-20, .least = 0x1p-149}};
}

static void readback_blocks_are_the_hosts(const struct bench *bench,
                                          const struct readback_blocks_args *args,
                                          const struct readback_blocks_tensor *list, size_t count,
                                          const char *what) {
    for (size_t i = 0; i < count; i++)
        memset(list[i].blocks, 0xA5,
               readback_blocks_blocks(list[i].count) * sizeof *list[i].blocks);
    if (bench->backend == NULL)
        READS(args, list, count);
    else
        bench->backend->readback_blocks(args, list, count);
    machine_wait(bench, what);
    for (size_t i = 0; i < count; i++)
        for (size_t block = 0; block < readback_blocks_blocks(list[i].count); block++)
            read_is_the_hosts(args, &list[i], block, what);
}

/* Tries every kind of direction, with and without the optimizer's input. */
static void one_reads(struct bench *bench, enum dtype working, enum dtype others, size_t count,
                      int numbers) {
    struct readback_blocks_args args = readback_blocks_of(working, others);
    struct readback_blocks_tensor of = draw_reads(bench, &args, count, numbers);
    for (size_t k = 0; k < 2 * COUNT_OF(directions); k++) {
        char what[64];
        snprintf(what, sizeof what, "%s, direction %zu%s", dtype_name(working), k / 2,
                 k % 2 == 0 ? "" : " and moment");
        args.direction = directions[k / 2];
        args.decay = args.direction.decay;
        of.moment = k % 2 == 0 ? NULL : of.gradient;
        for (of.stride = 0; of.stride <= 2; of.stride += 2) /* of two blocks the second alone */
            readback_blocks_are_the_hosts(bench, &args, &of, 1, what);
    }
}

static void corroborate_readback_blocks(void **state) {
    static const size_t counts[] = {0, 1, 31, 33, 4095, 4097};
    struct bench bench;
    (void)state;
    assert_int_equal(READBACK_BLOCKS_BLOCK, SUM_BLOCK);
    open_bench(&bench);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (int numbers = READBACK_BLOCKS_PLAIN; numbers < READBACK_BLOCKS_CASES; numbers++) {
            one_reads(&bench, DTYPE_F32, DTYPE_F32, counts[i], numbers);
            one_reads(&bench, DTYPE_F64, DTYPE_F32, counts[i], numbers);
            one_reads(&bench, DTYPE_BF16, DTYPE_F64, counts[i], numbers);
        }
    close_bench(&bench);
}

static void corroborate_listed_reads(void **state) {
    struct bench bench;
    struct readback_blocks_tensor list[LISTED];
    struct readback_blocks_args args = readback_blocks_of(DTYPE_F32, DTYPE_F32);
    (void)state;
    open_bench(&bench);
    args.direction = directions[0];
    for (size_t i = 0; i < LISTED; i++) {
        list[i] = draw_reads(&bench, &args, i % 23 == 7 ? READBACK_BLOCKS_BLOCK + i : i * 5 % 37,
                             READBACK_BLOCKS_PLAIN);
        if (i % 2 == 0) list[i].moment = list[i].gradient;
    }
    readback_blocks_are_the_hosts(&bench, &args, list, LISTED, "of a list");
    close_bench(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_host),
        cmocka_unit_test(verify_framing),
        cmocka_unit_test(verify_misfits),
        cmocka_unit_test(corroborate_update_sizes),
        cmocka_unit_test(corroborate_run_distances),
        cmocka_unit_test(corroborate_readback_blocks),
        cmocka_unit_test(corroborate_listed_leaves),
        cmocka_unit_test(corroborate_listed_moves),
        cmocka_unit_test(corroborate_listed_reads),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
