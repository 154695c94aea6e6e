/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Initial weights of ranks (parallel.draws): every number of every matrix against
 * the counter of law 10 packed by hand, the slice's own element and the rank in it; slices that are
 * equal, and numbers of ranks that leave other weights. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/element.h"
#include "determinism/normal.h"
#include "determinism/philox.h"
#include "model/params.h"
#include "tests/trainer/helper_train.h"

enum { NUMBERS_MOST = 1024, VOCAB = 21, SEED = 7 };

static void open_table(const char *draws, unsigned tensor, struct config *config,
                       struct arena *arena, struct param_table *out) {
    helper_config(1, config,
                  "init: {seed: 7, std: 0.3}, model: {family: qwen3, layers: 2, hidden: 12, heads: "
                  "8, kv_heads: 4, head_dim: 2, mlp: 8, vocab: 21, tied: false}, numerics: {param: "
                  "bf16, cuts: 4}, parallel: {tensor: %u, draws: %s}",
                  tensor, draws);
    *arena = (struct arena)ARENA_EMPTY;
    assert_int_equal(params_open(config, arena, out), STATUS_OK);
}

/* The number that a stream has for an element: fields op, layer, rank, side and stream in word 2,
 * and initialisation is stream 0 in update 0. */
static double due(const struct param_row *row, uint32_t rank, uint32_t element) {
    const int in_layer = row->role != ROLE_EMBEDDING && row->role != ROLE_HEAD;
    const uint32_t layer = in_layer ? row->layer + 1 : 0;
    const struct philox_block counter = {
        {element / 4, 0, (uint32_t)row->role | layer << 9 | rank << 18, 0}};
    const uint32_t word = philox_draw(counter, SEED).word[element % 4];
    return dtype_round(0.3 * normal_from_word(word), DTYPE_BF16);
}

/* Data-parallel ranks: P owners of ceil(rows / P) rows each, all of which draw what rank 0 does. */
static void validate_rows(void **state) {
    static const unsigned counts[] = {1, 2, 3, 4};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct config config;
        struct arena arena;
        struct param_table table;
        open_table("whole", 1, &config, &arena, &table);
        config.parallel.draws = DRAWS_SAME_ROWS;
        config.parallel.ranks = counts[i];
        for (uint32_t r = 0; r < table.count; r++) {
            unsigned char values[NUMBERS_MOST * sizeof(uint16_t)];
            const struct param_row *const row = &table.rows[r];
            assert_int_equal(params_init(&config, &table, r, values), STATUS_OK);
            if (row->rank == 1) continue;
            const uint32_t columns = (uint32_t)row->shape[1];
            const uint32_t share = ((uint32_t)row->shape[0] + counts[i] - 1) / counts[i];
            for (uint32_t e = 0; e < row->count; e++)
                if (element_get(values, DTYPE_BF16, e) != due(row, 0, e % (share * columns)))
                    fail_msg("%s, %u ranks: number %u", row->name, counts[i], e);
        }
        arena_close(&arena);
    }
}

/* Where a rank's slice begins along the side of a matrix that ranks share. */
static uint32_t begin_of(uint32_t rank, uint32_t ranks, uint64_t width) {
    return (uint32_t)(rank * width / ranks);
}

static void check_row(const struct param_row *row, const void *values, uint32_t ranks, int same) {
    const int by_columns =
        strstr(row->name, "o_proj") != NULL || strstr(row->name, "down_proj") != NULL;
    for (uint32_t y = 0; y < row->shape[0]; y++)
        for (uint32_t x = 0; x < row->shape[1]; x++) {
            const uint64_t width = row->shape[by_columns];
            const uint32_t along = by_columns ? x : y;
            uint32_t rank = 0;
            while (begin_of(rank + 1, ranks, width) <= along)
                rank++;
            const uint32_t first = begin_of(rank, ranks, width);
            const uint32_t columns =
                by_columns ? begin_of(rank + 1, ranks, width) - first : (uint32_t)row->shape[1];
            const uint32_t element =
                by_columns ? y * columns + (x - first) : (y - first) * columns + x;
            const double got = element_get(values, DTYPE_BF16, y * (size_t)row->shape[1] + x);
            if (got != due(row, same ? 0 : rank, element))
                fail_msg("%s, %u ranks: number (%u, %u)", row->name, ranks, y, x);
        }
}

static void validate_draws(void **state) {
    static const struct {
        const char *draws;
        uint32_t tensor, ranks; /* that draw */
        int same;
    } cases[] = {{"whole", 4, 1, 0}, {"own", 1, 1, 0},  {"own", 2, 2, 0},
                 {"own", 4, 4, 0},   {"same", 2, 2, 1}, {"same", 4, 4, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        struct arena arena;
        struct param_table table;
        size_t matrices = 0;
        open_table(cases[i].draws, cases[i].tensor, &config, &arena, &table);
        for (uint32_t r = 0; r < table.count; r++) {
            unsigned char values[NUMBERS_MOST * sizeof(uint16_t)];
            const struct param_row *const row = &table.rows[r];
            assert_true(row->count <= NUMBERS_MOST);
            assert_int_equal(params_init(&config, &table, r, values), STATUS_OK);
            if (row->rank == 1) {
                for (size_t e = 0; e < row->count; e++)
                    assert_true(element_get(values, DTYPE_BF16, e) == 1.0);
                continue;
            }
            check_row(row, values, cases[i].ranks, cases[i].same);
            matrices++;
        }
        assert_int_equal(matrices, 2 * 7 + 2);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_draws),
        cmocka_unit_test(validate_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
