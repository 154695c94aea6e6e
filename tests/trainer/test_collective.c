/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The exchange of ranks that close their own gradients (law 22), against gradients that torch's DDP
 * and FSDP2 made over Gloo on three processes (tests/golden/ranks/): what each process had alone is
 * put in, and what the framework gave must come out, to the bit, for the keys that docs/RANKS.md
 * names and for no others. Orders that no recording has are held against sums written out. */
#include "trainer/collective.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype_bits.h"
#include "base/macro.h"
#include "base/real.h"
#include "model/module_order.h"
#include "tests/ranks/helper_recorded.h"
#include "tests/trainer/helper_train.h"

enum { RANKS = 3, COUNT = RECORDED_COUNT };

/* Two layers, 59 to 59 and 59 to 41: weights by rows, then biases. */
static const struct collective_tensor tensors[] = {{59, 59}, {59, 1}, {41, 59}, {41, 1}};

static float recorded[RECORDED_VECTORS][COUNT];

/* Takes the vectors from `first` on through the exchange that the words ask for. */
static void exchange(const char *words, uint64_t update, uint64_t seed, uint32_t ranks,
                     float (*gradients)[COUNT], float *out) {
    struct arena arena = ARENA_EMPTY;
    struct collective *collective;
    struct config config;
    helper_config(2, &config, "%s", words);
    assert_int_equal(config.parallel.ranks, ranks);
    assert_int_equal(
        collective_open(&config, tensors, COUNT_OF(tensors), NULL, &arena, &collective), STATUS_OK);
    assert_int_equal(collective_begin(collective, update, seed, (uint32_t)update), STATUS_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        const float *at = gradients[r];
        for (size_t t = 0; t < COUNT_OF(tensors); t++) {
            collective_put(collective, r, t, at);
            at += tensors[t].rows * tensors[t].row_length;
        }
    }
    assert_int_equal(collective_add(collective), STATUS_OK);
    for (size_t t = 0; t < COUNT_OF(tensors); t++) {
        collective_take(collective, t, out);
        out += tensors[t].rows * tensors[t].row_length;
    }
    arena_close(&arena);
}

#define COMMON "batch: {size: 6}, numerics: {mode: shaped, gradient: %s}, "
#define WORDS(parallel) COMMON "parallel: {ranks: 3, " parallel "}"

/* For each recorded vector the keys that say what the framework did, and the update. */
static const struct {
    const char *words, *sixteen; /* of f16 where it is another */
    uint64_t update;
    int vector;
} frameworks[] = {
    {WORDS("reduce: gloo"), NULL, 1, RECORDED_DDP_1},
    {WORDS("reduce: gloo"), NULL, 2, RECORDED_DDP_2},
    {WORDS("reduce: gloo, average: mul-then-div"), NULL, 1, RECORDED_DDP_1},
    {WORDS("reduce: gloo, average: mul-then-div"), NULL, 2, RECORDED_DDP_VIEWS_2},
    {WORDS("reduce: gloo, average: divide-before"), NULL, 2, RECORDED_DDP_VIEWS_2},
    {WORDS("reduce: gloo, buckets: once"), NULL, 2, RECORDED_DDP_1},
    {WORDS("reduce: gloo, average: after, buckets: fsdp2"),
     WORDS("reduce: gloo, average: split, buckets: fsdp2"), 1, RECORDED_FSDP2_1},
};

/* Keys that say something else, and must show. The last column has dtypes in which the difference
 * cannot show: multiplying and dividing agree in bf16 and f16 (docs/RANKS.md). */
static const struct {
    const char *words;
    uint64_t update;
    int vector, only_f32;
} others[] = {
    {WORDS("reduce: ring"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: linear"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: recursive"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: tree"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: nccl-ring, chunk: 2048"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: gloo, average: after"), 1, RECORDED_DDP_1, 0},
    {WORDS("reduce: gloo, average: divide-before"), 1, RECORDED_DDP_1, 1},
    {WORDS("reduce: gloo, buckets: once"), 2, RECORDED_DDP_2, 0},
    {WORDS("reduce: gloo"), 2, RECORDED_DDP_1, 0},
    {WORDS("reduce: gloo, bucket: 4000"), 2, RECORDED_DDP_2, 0},
    {WORDS("reduce: gloo, buckets: fsdp2"), 1, RECORDED_FSDP2_1, 0},
    {WORDS("reduce: gloo, average: after"), 1, RECORDED_FSDP2_1, 0},
};

static const struct {
    const char *name;
    enum dtype dtype;
} recordings[] = {{"gradients-f32.bin", DTYPE_F32},
                  {"gradients-bf16.bin", DTYPE_BF16},
                  {"gradients-f16.bin", DTYPE_F16}};

static size_t differing_from(const char *format, enum dtype dtype, uint64_t update, int vector) {
    static float out[COUNT];
    char words[256];
    snprintf(words, sizeof words, format, dtype_name(dtype)); /* NOLINT: formats of this file */
    exchange(words, update, 17, RANKS, &recorded[0], out);
    return recorded_differing(out, recorded[vector]);
}

static void corroborate_frameworks(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT_OF(recordings); d++) {
        const enum dtype dtype = recordings[d].dtype;
        recorded_gradients(recordings[d].name, dtype, recorded);
        for (size_t i = 0; i < COUNT_OF(frameworks); i++) {
            const int has_own = dtype == DTYPE_F16 && frameworks[i].sixteen != NULL;
            const char *const words = has_own ? frameworks[i].sixteen : frameworks[i].words;
            const size_t count =
                differing_from(words, dtype, frameworks[i].update, frameworks[i].vector);
            if (count > 0) fail_msg("%s, row %zu: %zu differ", dtype_name(dtype), i, count);
        }
    }
}

static void verify_other_keys_show(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT_OF(recordings); d++) {
        const enum dtype dtype = recordings[d].dtype;
        recorded_gradients(recordings[d].name, dtype, recorded);
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            const size_t count =
                differing_from(others[i].words, dtype, others[i].update, others[i].vector);
            if ((count == 0) != (others[i].only_f32 && dtype != DTYPE_F32))
                fail_msg("%s, row %zu: %zu differ", dtype_name(dtype), i, count);
        }
    }
}

/* ---- a model of transformers that DDP trained ---- */

enum { LLAMA_COUNT = 1908, LLAMA_OWNERS = 16 };

/* Takes the gradients of all ranks through the exchange that a training of this model has. */
static void exchange_llama(uint32_t ranks, const char *keys, uint64_t update,
                           float (*gradients)[LLAMA_COUNT], float *out) {
    struct arena arena = ARENA_EMPTY;
    struct collective *collective;
    struct collective_tensor shapes[LLAMA_OWNERS];
    struct param_table table;
    struct config config;
    uint32_t rows[LLAMA_OWNERS], arrival[LLAMA_OWNERS];
    helper_config(
        2, &config,
        "model: {family: llama, layers: 1, hidden: 12, heads: 2, mlp: 20, vocab: 24}, "
        "batch: {size: 6}, numerics: {mode: shaped}, parallel: {ranks: %u, reduce: gloo%s}",
        ranks, keys);
    assert_int_equal(params_open(&config, &arena, &table), STATUS_OK);
    assert_true(table.count <= LLAMA_OWNERS);
    module_order(&table, &config, rows, arrival);
    for (uint32_t i = 0; i < table.count; i++)
        shapes[i] =
            (struct collective_tensor){table.rows[rows[i]].shape[0], table.rows[rows[i]].shape[1]};
    assert_int_equal(collective_open(&config, shapes, table.count, arrival, &arena, &collective),
                     STATUS_OK);
    assert_int_equal(collective_begin(collective, update, 17, (uint32_t)update), STATUS_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        const float *at = gradients[r];
        for (size_t t = 0; t < table.count; at += table.rows[rows[t++]].count)
            collective_put(collective, r, t, at);
        assert_true(at == gradients[r] + LLAMA_COUNT);
    }
    assert_int_equal(collective_add(collective), STATUS_OK);
    for (size_t t = 0; t < table.count; out += table.rows[rows[t++]].count)
        collective_take(collective, t, out);
    arena_close(&arena);
}

static size_t llama_differing(uint32_t ranks, const char *keys, uint64_t update,
                              float (*gradients)[LLAMA_COUNT]) {
    static float out[LLAMA_COUNT];
    size_t count = 0;
    exchange_llama(ranks, keys, update, gradients, out);
    for (size_t i = 0; i < LLAMA_COUNT; i++)
        count += memcmp(&out[i], &gradients[ranks][i], sizeof out[i]) != 0;
    return count;
}

/* Two updates of AdamW on a Llama of transformers under DDP, with buckets of 2 KiB: several of them
 * from update 2 on, laid out as gradients came. With two ranks an element has one sum. The last one
 * has bf16 on the wire, by bf16_compress_hook. */
static const struct {
    const char *name, *keys;
    uint32_t ranks;
    const char *others[2]; /* must show, the second one in update 2 alone */
} llamas[] = {
    {"llama-2.bin", ", bucket: 2048", 2, {NULL, NULL}},
    {"llama-3.bin", ", bucket: 2048", 3, {", bucket: 2048, average: after", ", bucket: 4096"}},
    {"llama-3-bf16.bin",
     ", bucket: 2048, reduce_dtype: bf16, average: divide-before",
     3,
     {", bucket: 2048, reduce_dtype: bf16, average: after",
      ", bucket: 4096, reduce_dtype: bf16, average: divide-before"}},
};

static void read_llama(FILE *file, uint32_t vectors, float (*out)[LLAMA_COUNT]) {
    for (uint32_t v = 0; v < vectors; v++)
        for (size_t i = 0; i < LLAMA_COUNT; i++) {
            unsigned char byte[4];
            assert_int_equal(fread(byte, 1, 4, file), 4);
            dtype_set_bits(out[v], DTYPE_F32, i,
                           (uint64_t)byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
                               (uint64_t)byte[3] << 24);
        }
}

static void corroborate_training(void **state) {
    static float gradients[RANKS + 1][LLAMA_COUNT];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(llamas); i++) {
        const uint32_t ranks = llamas[i].ranks;
        char path[512];
        snprintf(path, sizeof path, "%s/tests/golden/ranks/%s", TWINSTEP_SOURCE_DIR,
                 llamas[i].name);
        FILE *const file = fopen(path, "rb");
        assert_non_null(file);
        for (uint64_t update = 1; update <= 2; update++) {
            read_llama(file, ranks + 1, gradients);
            assert_int_equal(llama_differing(ranks, llamas[i].keys, update, gradients), 0);
            for (size_t k = 0; k < 2 && llamas[i].others[k] != NULL; k++) {
                const size_t moved = llama_differing(ranks, llamas[i].others[k], update, gradients);
                assert_int_equal(moved > 0, k == 0 || update == 2);
            }
        }
        assert_int_equal(fgetc(file), EOF);
        assert_int_equal(fclose(file), 0);
    }
}

/* A compression hook of DDP (bf16_compress_hook) rounds the gradient to bf16, divides it, and each
 * addition is rounded, too; what comes back is stored in f32. Sums of two terms have one order. */
static void validate_wire(void **state) {
    static float out[COUNT];
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    exchange("batch: {size: 6}, numerics: {mode: shaped}, "
             "parallel: {ranks: 2, reduce: gloo, reduce_dtype: bf16, average: divide-before}",
             1, 17, 2, &recorded[0], out);
    for (size_t i = 0; i < COUNT; i++) {
        const float a = real_round_bf16_f32(recorded[0][i]),
                    b = real_round_bf16_f32(recorded[1][i]);
        const float expected =
            real_round_bf16_f32(real_round_bf16_f32(a / 2.0f) + real_round_bf16_f32(b / 2.0f));
        assert_true(out[i] == expected);
    }
    /* A wider wire: bf16 gradients are added in f32 and rounded once (FSDP2, reduce_dtype f32). */
    recorded_gradients("gradients-bf16.bin", DTYPE_BF16, recorded);
    exchange("batch: {size: 6}, numerics: {mode: shaped, gradient: bf16}, "
             "parallel: {ranks: 3, reduce: linear, reduce_dtype: f32, average: after}",
             1, 17, 3, &recorded[0], out);
    for (size_t i = 0; i < COUNT; i++) {
        const float sum = recorded[2][i] + recorded[1][i] + recorded[0][i];
        assert_true(out[i] == real_round_bf16_f32(sum / 3.0f));
    }
}

/* Five ranks by law 21's tree: neighbours, and the fifth goes up alone. Rank r has the vector r. */
static void validate_tree(void **state) {
    static float out[COUNT], g[5][COUNT];
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    for (size_t r = 0; r < 5; r++)
        memcpy(g[r], recorded[r], sizeof g[r]);
    exchange("batch: {size: 5}, numerics: {mode: shaped}, parallel: {ranks: 5, average: after}", 1,
             17, 5, g, out);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(out[i] == (((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + g[4][i]) / 5.0f);
}

/* NCCL's first tree, written out by hand: over four nodes, over two nodes of two ranks and over two
 * of three. The head of a node adds to its own number what its chain sends, which begins with the
 * last rank, and then what the heads of its children send. */
static void validate_nccl_tree(void **state) {
    static float out[COUNT], g[6][COUNT];
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    for (size_t r = 0; r < 6; r++)
        memcpy(g[r], recorded[r], sizeof g[r]);
#define TREE "numerics: {mode: shaped}, parallel: {reduce: nccl-tree, average: after, ranks: "
    exchange("batch: {size: 4}, " TREE "4}", 1, 17, 4, g, out);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(out[i] == (g[0][i] + ((g[2][i] + g[1][i]) + g[3][i])) / 4.0f);
    exchange("batch: {size: 4}, " TREE "4, node: 2}", 1, 17, 4, g, out);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(out[i] == ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) / 4.0f);
    exchange("batch: {size: 6}, " TREE "6, node: 3}", 1, 17, 6, g, out);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(out[i] ==
                    ((g[0][i] + (g[1][i] + g[2][i])) + (g[3][i] + (g[4][i] + g[5][i]))) / 6.0f);
}

#define RACING                                                                                     \
    "batch: {size: 6}, numerics: {mode: shaped}, parallel: {ranks: 3, average: after, bucket: 4, " \
    "race: next-bucket"

/* The mean of three ranks of element i, by law 21's tree. */
static float mean_of_three(size_t i) {
    return ((recorded[0][i] + recorded[1][i]) + recorded[2][i]) / 3.0f;
}

/* A bucket for each tensor, reduced from the last one to the first: each has the numbers of the
 * tensor in front of it as far as that one goes, and its own behind them; the one that is reduced
 * last is right. In update 1 of buckets that are laid out anew there is one bucket, so nothing is
 * overwritten. */
static void validate_race(void **state) {
    static const size_t first[] = {0, 3481, 3540, 5959}, count[] = {3481, 59, 2419, 41};
    static float out[COUNT], sound[COUNT];
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    exchange(RACING ", buckets: once}", 1, 17, RANKS, &recorded[0], out);
    for (size_t t = 0; t < COUNT_OF(first); t++)
        for (size_t i = 0; i < count[t]; i++) {
            const size_t from = t > 0 && i < count[t - 1] ? first[t - 1] + i : first[t] + i;
            assert_true(out[first[t] + i] == mean_of_three(from));
        }
    exchange(RACING ", buckets: rebuilt}", 2, 17, RANKS, &recorded[0], sound);
    assert_memory_equal(out, sound, sizeof out);
    exchange(RACING ", buckets: rebuilt}", 1, 17, RANKS, &recorded[0], out);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(out[i] == mean_of_three(i));
}

/* The order, of three, in which the terms of element i were added: 0, 1 or 2 for who came last;
 * -1: more than one would do. */
static int last_of(const float *out, size_t i) {
    const float a = recorded[0][i], b = recorded[1][i], c = recorded[2][i];
    const float sums[] = {(b + c) + a, (a + c) + b, (a + b) + c};
    int last = -1;
    for (int k = 0; k < 3; k++) {
        if (sums[k] / 3.0f != out[i]) continue;
        if (last >= 0) return -1;
        last = k;
    }
    return last;
}

#define ARRIVAL                                                                                    \
    "batch: {size: 6}, numerics: {mode: shuffled}, "                                               \
    "parallel: {ranks: 3, reduce: arrival, average: after, buckets: once}"

/* Every element of a block of 4096 has one order, and each rank comes last in some block; two ranks
 * have one sum. Another seed, or another update, draws anew. */
static void verify_arrival(void **state) {
    static float out[COUNT], again[COUNT];
    size_t last[3] = {0}, changed = 0;
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    for (uint64_t seed = 0; seed < 12; seed++) {
        int of_block[2] = {-1, -1};
        exchange(ARRIVAL, 1, seed, RANKS, &recorded[0], out);
        for (size_t i = 0; i < COUNT; i++) {
            const int here = last_of(out, i);
            if (here < 0) continue;
            if (of_block[i / 4096] < 0) of_block[i / 4096] = here;
            assert_int_equal(of_block[i / 4096], here);
        }
        for (size_t b = 0; b < 2; b++) {
            assert_true(of_block[b] >= 0);
            last[of_block[b]]++;
        }
        exchange(ARRIVAL, 1, seed, RANKS, &recorded[0], again);
        assert_int_equal(recorded_differing(out, again), 0);
        exchange(ARRIVAL, 2, seed, RANKS, &recorded[0], again);
        changed += recorded_differing(out, again) > 0;
    }
    assert_true(last[0] > 0 && last[1] > 0 && last[2] > 0 && changed > 0);
    exchange("batch: {size: 6}, numerics: {mode: shuffled}, parallel: {ranks: 2, reduce: arrival}",
             1, 1, 2, &recorded[0], out);
    for (uint64_t seed = 2; seed < 6; seed++) {
        exchange("batch: {size: 6}, numerics: {mode: shuffled}, "
                 "parallel: {ranks: 2, reduce: arrival}",
                 1, seed, 2, &recorded[0], again);
        assert_int_equal(recorded_differing(out, again), 0);
    }
}

/* With a power of two of ranks every way to the mean is exact, so the key moves no bit. */
static void verify_powers_of_two(void **state) {
    static const char *const averages[] = {"divide-before", "after", "mul-then-div", "reciprocal",
                                           "split"};
    static float out[COUNT], other[COUNT];
    (void)state;
    recorded_gradients("gradients-f32.bin", DTYPE_F32, recorded);
    exchange("batch: {size: 8}, numerics: {mode: shaped}, parallel: {ranks: 4, reduce: gloo}", 2, 1,
             4, &recorded[0], out);
    for (size_t i = 0; i < COUNT_OF(averages); i++) {
        char words[256];
        snprintf(words, sizeof words,
                 "batch: {size: 8}, numerics: {mode: shaped}, "
                 "parallel: {ranks: 4, reduce: gloo, average: %s}",
                 averages[i]);
        exchange(words, 2, 1, 4, &recorded[0], other);
        assert_int_equal(recorded_differing(out, other), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_frameworks), cmocka_unit_test(verify_other_keys_show),
        cmocka_unit_test(validate_wire),          cmocka_unit_test(validate_tree),
        cmocka_unit_test(validate_nccl_tree),     cmocka_unit_test(verify_arrival),
        cmocka_unit_test(verify_powers_of_two),   cmocka_unit_test(corroborate_training),
        cmocka_unit_test(validate_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
