/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Initial weights of ranks (parallel.draws): every number of every matrix against
 * the counter of law 10 packed by hand, the slice's own element and the rank in it; slices that are
 * equal, and numbers of ranks that leave other weights. And kernels/draws.h against
 * normal_from_word() number by number, for every dtype, instruction set and number of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/element.h"
#include "base/isa_objects.h"
#include "determinism/normal.h"
#include "determinism/philox.h"
#include "kernels/cpu/draw_pieces.h"
#include "kernels/op.h"
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

#define F64(isa) OBJECTS_OF(f64_f64, isa)
DRAW_PIECES(F64(base))
DRAW_PIECES(F64(OBJECTS_V3))
DRAW_PIECES(F64(OBJECTS_V4))
#define PIECE_OF(variant) draw_piece_##variant
#define PIECE(variant) PIECE_OF(variant)

/* A block of 67 x 71 in a matrix of 69 x 73: pieces begin and end within rows. */
enum { HEIGHT = 69, WIDTH = 73, BLOCK_ROWS = 67, BLOCK_COLUMNS = 71, BEFORE = 1 };

static const double untouched = -77.0; /* a number of every dtype but fp8, and none that is drawn */

static void check_block(const struct draws_args *args, const char *who) {
    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < WIDTH; x++) {
            const double got = element_get(args->values, args->dtype, y * WIDTH + x);
            const int in =
                y >= BEFORE && y < BEFORE + BLOCK_ROWS && x >= BEFORE && x < BEFORE + BLOCK_COLUMNS;
            const size_t element = (y - BEFORE) * BLOCK_COLUMNS + (x - BEFORE);
            const double want = !in ? untouched
                                    : dtype_round(args->std * normal_from_word(stream_word(
                                                                  args->seed, args->site, element)),
                                                  args->dtype);
            if (got != want)
                fail_msg("%s, %s, number (%zu, %zu): %a, due %a", who, dtype_name(args->dtype), y,
                         x, got, want);
        }
}

static void corroborate_normals(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_BF16, DTYPE_F16,
                                        DTYPE_E4M3, DTYPE_E5M2, DTYPE_F64};
    static const struct {
        const char *name;
        enum isa isa;
        draw_piece *piece;
    } sets[] = {{"base", ISA_BASE, PIECE(F64(base))},
                {"v3", ISA_V3, PIECE(F64(OBJECTS_V3))},
                {"v4", ISA_V4, PIECE(F64(OBJECTS_V4))}};
    static double values[HEIGHT * WIDTH];
    const struct stream_address address = {.stream = STREAM_INIT, .layer = 2, .op = 5};
    struct draws_args args = {.seed = UINT64_C(0x123456789ABCDEF),
                              .std = 0.7,
                              .width = WIDTH,
                              .row = BEFORE,
                              .rows = BLOCK_ROWS,
                              .column = BEFORE,
                              .columns = BLOCK_COLUMNS,
                              .values = values};
    const size_t total = (size_t)BLOCK_ROWS * BLOCK_COLUMNS;
    const struct op_table *unused;
    int met = 0;
    (void)state;
    assert_int_equal(stream_pack(&address, &args.site), STATUS_OK);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        args.dtype = dtypes[d];
        for (size_t i = 0; i < COUNT_OF(sets); i++) {
            if (backend_ops(sets[i].isa, DTYPE_F32, DTYPE_F32, &unused) != STATUS_OK) continue;
            for (size_t at = 0; at < (size_t)HEIGHT * WIDTH; at++)
                element_set(values, args.dtype, at, untouched);
            for (size_t first = 0; first < total; first += DRAW_PIECE)
                sets[i].piece(&args, first,
                              total - first < DRAW_PIECE ? total - first : DRAW_PIECE);
            check_block(&args, sets[i].name);
            met++;
        }
    }
    assert_true(met > 0);
}

/* A matrix that several threads share, far more numbers than any piece, and elements of which each
 * range of normal_quantile() but the far one has many. No word has the far one: 0 is the nearest.
 */
static void verify_threads(void **state) {
    enum { ROWS = 301, COLUMNS = 997 };
    static float values[2][ROWS * COLUMNS];
    const struct stream_address address = {.stream = STREAM_INIT, .op = 1};
    struct draws_args args = {.seed = SEED,
                              .std = 1.0,
                              .dtype = DTYPE_F32,
                              .width = COLUMNS,
                              .rows = ROWS,
                              .columns = COLUMNS};
    size_t tails = 0;
    (void)state;
    assert_true(real_sqrt_f64(-real_log_f64(stream_uniform(0))) <= 5.0);
    assert_int_equal(stream_pack(&address, &args.site), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        args.values = values[i];
        draws_normal(1 + 2 * i, &args);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    for (size_t e = 0; e < COUNT_OF(values[0]); e++) {
        const uint32_t word = stream_word(SEED, args.site, e);
        tails += real_abs_f64(stream_uniform(word) - 0.5) > 0.425;
        assert_true(values[0][e] == (float)normal_from_word(word));
    }
    assert_in_range(tails, 40000, 50000); /* 15 % of 300,097 */
}

/* Seeds whose standard deviation is 0 draw the same bits, as torch's normal_ does: a product of 0
 * and a number below it is -0, and the mean of 0 that is added makes it +0. */
static void validate_zeros(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F64};
    static double values[100], zeros[100];
    const struct stream_address address = {.stream = STREAM_INIT, .op = 1};
    struct draws_args args = {
        .seed = SEED, .width = 10, .rows = 10, .columns = 10, .values = values};
    size_t below = 0;
    (void)state;
    assert_int_equal(stream_pack(&address, &args.site), STATUS_OK);
    for (size_t e = 0; e < 100; e++)
        below += normal_from_word(stream_word(SEED, args.site, e)) < 0.0;
    assert_true(below > 0);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        args.dtype = dtypes[d];
        memset(values, 0xff, sizeof values);
        draws_normal(1, &args);
        assert_memory_equal(values, zeros, 100 * dtype_carrier(args.dtype));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_zeros), cmocka_unit_test(validate_draws),
        cmocka_unit_test(validate_rows),  cmocka_unit_test(corroborate_normals),
        cmocka_unit_test(verify_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
