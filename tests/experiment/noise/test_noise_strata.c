/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Each stratum's own rules: with which configurations it is measured, which orders it draws, what
 * it compares and keeps, and why it cannot be measured. Every figure of two paths is checked by
 * hand. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/noise/noise.h"
#include "optim/clip.h"
#include "tests/trainer/helper_train.h"

#define MODEL                                                                                      \
    "task: sft, batch: {size: 4, micro: 2}, data: {samples: 8, max_len: 48}, init: {std: 0.1}, "   \
    "model: {layers: 1, hidden: 16, heads: 2, mlp: 20}, optimizer: {lr: 1e-2}"
#define FREE MODEL ", numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 2}"
#define PAIRS                                                                                      \
    "task: dpo, batch: {size: 8, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20}"

/* ---- what is measured ---- */

static void validate_exactness(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int exact, drawn;
    } cases[] = {{MODEL, 1, 0},
                 {MODEL ", numerics: {mode: atomic}", 0, 0},
                 {FREE, 0, 1},
                 {MODEL ", numerics: {mode: shuffled, order_seed: 3}", 1, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        helper_config(2, &config, "%s", cases[i].words);
        assert_int_equal(noise_is_exact(&config), cases[i].exact);
        const uint64_t first = noise_order_seed(&config, 0), second = noise_order_seed(&config, 1);
        assert_int_equal(first != second, cases[i].drawn);
        if (i == 3) assert_int_equal(first, 3);
    }
}

struct expected_variant {
    enum noise_stratum stratum;
    const char *name, *untestable;
    uint64_t threads, micro, pad;
    int32_t padding, layout;
};

static void check_variants(const char *words, uint64_t processors,
                           const struct expected_variant *expected, size_t count) {
    struct noise_variant variants[NOISE_ROWS_MAX];
    struct config config;
    helper_config(2, &config, "%s", words);
    const uint32_t found = noise_variants(&config, 2, processors, variants);
    size_t e = 0;
    for (uint32_t i = 0; i < found; i++) {
        const struct noise_variant *v = &variants[i];
        if (v->stratum < NOISE_THREADS || v->stratum > NOISE_LAYOUT) continue;
        assert_true(e < count);
        assert_int_equal(v->stratum, expected[e].stratum);
        assert_string_equal(v->name, expected[e].name);
        if (expected[e].untestable != NULL) {
            if (strstr(v->untestable, expected[e].untestable) == NULL)
                fail_msg("%s: %s", words, v->untestable);
            e++;
            continue;
        }
        assert_string_equal(v->untestable, "");
        assert_int_equal(v->config.numerics.threads, expected[e].threads);
        assert_int_equal(v->config.batch.micro, expected[e].micro);
        assert_int_equal(v->config.batch.pad, expected[e].pad);
        assert_int_equal(v->config.batch.padding, expected[e].padding);
        assert_int_equal(v->config.batch.layout, expected[e].layout);
        e++;
    }
    assert_int_equal(e, count);
    assert_int_equal(variants[found - 1].stratum, NOISE_DEVICE);
}

static void validate_variants(void **state) {
    (void)state;
    static const struct expected_variant of_pairs[] = {
        {NOISE_THREADS, "1 instead of 2", NULL, 1, 2, 0, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_THREADS, "4 instead of 2", NULL, 4, 2, 0, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_MICRO, "8 of 8 instead of 2", NULL, 2, 8, 0, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_MICRO, "4 of 8 instead of 2", NULL, 2, 4, 0, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_MICRO, "1 of 8 instead of 2", NULL, 2, 1, 0, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_PADDING, "5 more positions", NULL, 2, 2, 5, PADDING_LONGEST, LAYOUT_SEPARATE},
        {NOISE_PADDING, "packed instead of longest", NULL, 2, 2, 0, PADDING_PACKED,
         LAYOUT_SEPARATE},
        {NOISE_LAYOUT, "concatenated instead of separate", NULL, 2, 2, 0, PADDING_LONGEST,
         LAYOUT_CONCATENATED},
    };
    static const struct expected_variant of_packed[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 1, 0, PADDING_PACKED, LAYOUT_CONCATENATED},
        {NOISE_MICRO, "", "batch.size is 1", 0, 0, 0, 0, 0},
        {NOISE_PADDING, "5 more positions", NULL, 1, 1, 5, PADDING_PACKED, LAYOUT_CONCATENATED},
        {NOISE_PADDING, "longest instead of packed", NULL, 1, 1, 0, PADDING_LONGEST,
         LAYOUT_CONCATENATED},
        {NOISE_LAYOUT, "separate instead of concatenated", NULL, 1, 1, 0, PADDING_PACKED,
         LAYOUT_SEPARATE},
    };
    static const struct expected_variant of_dropout[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 2, 0, 0, 0},
        {NOISE_MICRO, "4 of 4 instead of 2", NULL, 1, 4, 0, 0, 0},
        {NOISE_MICRO, "1 of 4 instead of 2", NULL, 1, 1, 0, 0, 0},
        {NOISE_PADDING, "5 more positions", NULL, 1, 2, 5, 0, 0},
        {NOISE_PADDING, "packed instead of longest", "rng.kind: torch draws", 0, 0, 0, 0, 0},
        {NOISE_LAYOUT, "", "task is sft", 0, 0, 0, 0, 0},
    };
    check_variants(PAIRS ", numerics: {threads: 2}", 4, of_pairs, COUNT_OF(of_pairs));
    check_variants("task: dpo, batch: {size: 1, padding: packed, layout: concatenated}", 2,
                   of_packed, COUNT_OF(of_packed));
    check_variants(MODEL ", dropout: {attention: 0.1}, rng: {kind: torch}", 1, of_dropout,
                   COUNT_OF(of_dropout));
}

/* Another split would deal other samples to tensor-parallel ranks that have their own. */
static void validate_variants_of_fed_ranks(void **state) {
    (void)state;
    static const struct expected_variant of_fed[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 2, 0, 0, 0},
        {NOISE_MICRO, "", "parallel.feeds own-on-tensor deals whole micro-batches", 0, 0, 0, 0, 0},
        {NOISE_PADDING, "5 more positions", NULL, 1, 2, 5, 0, 0},
        {NOISE_PADDING, "packed instead of longest", NULL, 1, 2, 0, PADDING_PACKED, 0},
        {NOISE_LAYOUT, "", "task is sft", 0, 0, 0, 0, 0}};
    check_variants("task: sft, batch: {size: 4, micro: 2}, model: {family: llama, tied: false}, "
                   "numerics: {cuts: 2}, parallel: {tensor: 2, feeds: own-on-tensor}",
                   1, of_fed, COUNT_OF(of_fed));
}

/* Micro-batches are cut from a rank's share of the batch: by law 21 four shards on three ranks give
 * rank 2 two shards, so 3 of 6 samples, and in mode shaped each of three ranks has 2 of 6. */
static void validate_variants_of_ranks(void **state) {
    (void)state;
#define OTHERS(micro_)                                                                             \
    {NOISE_PADDING, "5 more positions", NULL, 1, micro_, 5, 0, 0},                                 \
        {NOISE_PADDING, "packed instead of longest", NULL, 1, micro_, 0, PADDING_PACKED, 0}, {     \
        NOISE_LAYOUT, "", "task is sft", 0, 0, 0, 0, 0                                             \
    }
    static const struct expected_variant of_whole_share[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 2, 0, 0, 0},
        {NOISE_MICRO, "1 of a rank's 2 instead of 2", NULL, 1, 1, 0, 0, 0},
        OTHERS(2)};
    static const struct expected_variant of_more_than_share[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 6, 0, 0, 0},
        {NOISE_MICRO, "1 of a rank's 2 instead of 2", NULL, 1, 1, 0, 0, 0},
        OTHERS(6)};
    static const struct expected_variant of_four[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 2, 0, 0, 0},
        {NOISE_MICRO, "4 of a rank's 4 instead of 2", NULL, 1, 4, 0, 0, 0},
        {NOISE_MICRO, "1 of a rank's 4 instead of 2", NULL, 1, 1, 0, 0, 0},
        OTHERS(2)};
    static const struct expected_variant of_one[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 1, 0, 0, 0},
        {NOISE_MICRO, "", "no rank has more than 1 sample", 0, 0, 0, 0, 0},
        OTHERS(1)};
    static const struct expected_variant of_shards[] = {
        {NOISE_THREADS, "2 instead of 1", NULL, 2, 2, 0, 0, 0},
        {NOISE_MICRO, "3 of a rank's 3 instead of 2", NULL, 1, 3, 0, 0, 0},
        {NOISE_MICRO, "1 of a rank's 3 instead of 2", NULL, 1, 1, 0, 0, 0},
        OTHERS(2)};
    static const struct {
        const char *words;
        const struct expected_variant *expected;
        size_t count;
    } cases[] = {
        {"batch: {size: 6, micro: 2}, numerics: {mode: shaped}", of_whole_share,
         COUNT_OF(of_whole_share)},
        {"batch: {size: 6, micro: 6}, numerics: {mode: shaped}", of_more_than_share,
         COUNT_OF(of_more_than_share)},
        {"batch: {size: 12, micro: 2}, numerics: {mode: shaped}", of_four, COUNT_OF(of_four)},
        {"batch: {size: 3, micro: 1}, numerics: {mode: shaped}", of_one, COUNT_OF(of_one)},
        {"batch: {size: 6, micro: 2}, numerics: {shards: 4}", of_shards, COUNT_OF(of_shards)}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char words[256];
        snprintf(words, sizeof words,
                 "task: sft, parallel: {ranks: 3}, loop: {update: [reduce, clip, optimize, log, "
                 "count, schedule, zero]}, %s",
                 cases[i].words);
        check_variants(words, 1, cases[i].expected, cases[i].count);
    }
#undef OTHERS
}

/* Ranks that close their own gradients exchange no f64; those that join shards keep their twin. */
static void validate_f64_of_ranks(void **state) {
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        struct noise_variant variants[NOISE_ROWS_MAX];
        struct config config;
        helper_config(2, &config,
                      "task: sft, batch: {size: 6, micro: 2}, parallel: {ranks: 3}, loop: {update: "
                      "[reduce, clip, optimize, log, count, schedule, zero]}, numerics: {%s}",
                      closes ? "mode: shaped" : "shards: 4");
        const uint32_t found = noise_variants(&config, 2, 1, variants);
        const char *reason = NULL;
        for (uint32_t i = 0; i < found; i++)
            if (variants[i].stratum == NOISE_F64) reason = variants[i].untestable;
        assert_non_null(reason);
        if (closes)
            assert_non_null(strstr(reason, "they have no f64 twin; parallel.ranks 1 has one"));
        else
            assert_string_equal(reason, "");
    }
}

static void validate_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum dtype own, wide;
        int32_t master;
    } cases[] = {{"f32", DTYPE_F32, DTYPE_F32, CONFIG_MASTER_NONE},
                 {"bf16", DTYPE_BF16, DTYPE_F32, DTYPE_F32},
                 {"f16", DTYPE_F16, DTYPE_F32, DTYPE_F32},
                 {"f64", DTYPE_F64, DTYPE_F64, CONFIG_MASTER_NONE}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config c;
        helper_config(2, &c,
                      PAIRS ", numerics: {param: bf16, product: bf16, rounding: stochastic}");
        c.numerics.softmax = DTYPE_BF16;
        assert_int_equal(noise_set_dtype(&c, cases[i].name), STATUS_OK);
        const int32_t own = (int32_t)cases[i].own, wide = (int32_t)cases[i].wide;
        assert_true(c.numerics.param == own && c.numerics.compute == own);
        assert_true(c.numerics.gradient == own && c.dpo.reference_compute == own);
        assert_true(c.numerics.accumulate == wide && c.numerics.optimizer == wide);
        assert_true(c.numerics.loss == wide && c.numerics.master == cases[i].master);
        assert_true(c.numerics.product == CONFIG_AS_COMPUTE);
        assert_true(c.numerics.softmax == CONFIG_AS_COMPUTE);
        assert_int_equal(c.numerics.rounding, ROUNDING_NEAREST);
    }
    struct config c;
    helper_config(2, &c, FREE);
    assert_int_equal(noise_set_f64(&c), STATUS_OK);
    assert_int_equal(c.numerics.mode, MODE_INVARIANT);
    assert_int_equal(c.numerics.rope, DTYPE_F64);
    assert_int_equal(c.clip.dtype, CLIP_GRADIENT);
    assert_int_equal(config_validate(&c, 2), STATUS_OK);
}

/* ---- strata of a training ---- */

struct other {
    uint64_t seeds[8], count;
    enum status refuses; /* what the process returns; STATUS_OK: a path */
};

static enum status other_process(void *context, const struct config *config, uint64_t steps,
                                 unsigned char *out_path, size_t size) {
    struct other *other = (struct other *)context;
    struct arena arena = ARENA_EMPTY;
    unsigned char *path;
    size_t bytes;
    if (other->refuses != STATUS_OK) FAIL(other->refuses, "no such process");
    other->seeds[other->count++] = config->numerics.order_seed;
    const enum status status = noise_path_train(config, steps, NULL, &arena, &bytes, &path);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(bytes, size);
    memcpy(out_path, path, size);
    arena_close(&arena);
    return status;
}

static const struct noise_row *row_of(const struct noise_table *table, enum noise_stratum stratum) {
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].stratum == stratum) return &table->rows[i];
    fail_msg("no row of %s", noise_stratum_name(stratum));
    return NULL;
}

static enum status measure(const struct config *config, uint64_t resolved, struct other *other,
                           struct arena *arena, struct noise_table *out) {
    const struct noise_request request = {.config = config,
                                          .steps = 2,
                                          .resolved = resolved,
                                          .repeats = 2,
                                          .processors = 1,
                                          .process = other == NULL ? NULL : other_process,
                                          .context = other};
    return noise_measure(&request, arena, out);
}

/* Processes and instances must draw orders of their own, no two alike, and the first instance is
 * kept. */
static void verify_drawn_orders(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config config, drawn;
    struct noise_table table;
    struct noise_figures figures;
    struct other other = {.count = 0};
    unsigned char *path;
    size_t bytes;
    helper_config(2, &config, FREE);
    assert_int_equal(measure(&config, 0, &other, &arena, &table), STATUS_OK);
    assert_int_equal(other.count, 2);
    assert_true(other.seeds[0] != other.seeds[1]);
    for (uint64_t run = 0; run < 3; run++) /* the baseline and two instances */
        for (uint64_t i = 0; i < 2; i++)
            assert_true(other.seeds[i] != noise_order_seed(&config, run));
    drawn = config;
    for (uint64_t run = 0; run < 2; run++) {
        drawn.numerics.order_seed = noise_order_seed(&config, run);
        assert_int_equal(noise_path_train(&drawn, 2, NULL, &arena, &bytes, &path), STATUS_OK);
        assert_int_equal(bytes, table.layout.bytes);
        assert_memory_equal(run == 0 ? table.path : table.instance, path, bytes);
    }
    const struct noise_row *row = row_of(&table, NOISE_INSTANCE);
    assert_int_equal(row->repeats, 2);
    assert_int_equal(noise_figures_open(&table.layout, &arena, &figures), STATUS_OK);
    noise_figures_add(&table.layout, table.path, table.instance, &figures);
    struct noise_orders orders;
    assert_int_equal(noise_orders_measure(&table, &table, &arena, &orders), STATUS_OK);
    for (int k = 0; k < 2; k++) {
        assert_true(orders.apart.growth[k].distance == figures.growth[k].distance);
        assert_true(orders.neutral[0].growth[k].distance == 0.0);
        assert_true(orders.neutral[1].growth[k].distance == figures.growth[k].distance);
        assert_true(row->figures.growth[k].distance >= figures.growth[k].distance);
    }
    arena_close(&arena);
}

#define RANKS                                                                                      \
    "task: sft, data: {samples: 8, max_len: 48}, init: {std: 0.1}, optimizer: {lr: 1e-2}, model: " \
    "{layers: 1, hidden: 16, heads: 2, mlp: 20}, loop: {update: [reduce, clip, optimize, log, "    \
    "count, schedule, zero]}, "

/* By paper: two terms have one sum whatever comes first; of three ranks tree, recursive and halving
 * add (0 + 1) + 2, linear (2 + 1) + 0, ring and gloo other groupings in other blocks; and where
 * ranks join shards, laws 21 and 5 leave no bit to their number. A bug that reads it has no such
 * row. */
static void verify_ranks(void **state) {
    static const struct {
        const char *words;
        uint32_t rows;
        const char *equal; /* the names that are bit-equal, "*" for all; */
        const char *untestable;
    } cases[] = {
        {"batch: {size: 6, micro: 1}, numerics: {mode: shaped}, parallel: {ranks: 2}", 6, "*", ""},
        {"batch: {size: 6, micro: 1}, numerics: {mode: shaped}, parallel: {ranks: 3}", 6,
         "recursive instead of tree, halving instead of tree, buckets once instead of rebuilt", ""},
        {"batch: {size: 6, micro: 1}, numerics: {mode: shaped}, parallel: {ranks: 3, race: "
         "next-bucket}",
         1, "",
         "parallel.race puts wrong numbers into buckets where an update has several, and moves "
         "nothing where it has one: "},
        {"batch: {size: 6, micro: 1}, numerics: {shards: 4}, parallel: {ranks: 3}", 2,
         "1 instead of 3, of 4 shards, 4 instead of 3, of 4 shards", ""},
        {"batch: {size: 6, micro: 1}, parallel: {ranks: 3}", 1, "1 instead of 3", ""},
        {"batch: {size: 6, micro: 1}, numerics: {shards: 2}", 1, "2 instead of 1, of 2 shards", ""},
        {"batch: {size: 6, micro: 1}, numerics: {shards: 4}, parallel: {ranks: 2, feeds: same}", 1,
         "", "parallel.feeds reads the number of ranks"},
        {"batch: {size: 8, micro: 1}, numerics: {shards: 4}, parallel: {ranks: 2, deal: cyclic}", 1,
         "", "parallel.deal reads the number of ranks"},
        {"batch: {size: 6, micro: 1}, numerics: {shards: 4}, parallel: {ranks: 2}, resume: {after: "
         "1, wrong: [shards-by-index], ranks: 1}",
         1, "", "resume.wrong reads the number of ranks"},
        {"batch: {size: 6, micro: 1}, numerics: {shards: 2}, loss: {divisor: mean-of-means}", 1, "",
         "loss.divisor reads the number of ranks"},
        {"batch: {size: 6, micro: 1}", 0, "", ""},
    };
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct arena arena = ARENA_EMPTY;
        struct noise_table table;
        struct other other = {.count = 0};
        struct config config;
        uint32_t rows = 0;
        helper_config(2, &config, RANKS "%s", cases[c].words);
        assert_int_equal(measure(&config, 0, &other, &arena, &table), STATUS_OK);
        for (uint32_t i = 0; i < table.count; i++) {
            const struct noise_row *const row = &table.rows[i];
            if (row->stratum != NOISE_RANKS) continue;
            const int equal =
                strcmp(cases[c].equal, "*") == 0 || strstr(cases[c].equal, row->variant) != NULL;
            rows++;
            assert_int_equal(row->untestable[0] != '\0', cases[c].untestable[0] != '\0');
            if (strstr(row->untestable, cases[c].untestable) == NULL)
                fail_msg("%s: %s", cases[c].words, row->untestable);
            if (row->untestable[0] == '\0' && (row->figures.first == 0) != equal)
                fail_msg("%s, %s: first apart in update %u", cases[c].words, row->variant,
                         (unsigned)row->figures.first);
        }
        assert_int_equal(rows, cases[c].rows);
        arena_close(&arena);
    }
}

/* Where there are no figures the reason must be given; any other error is the caller's. */
static void validate_process(void **state) {
    (void)state;
    static const enum status excuses[] = {STATUS_UNTESTABLE, STATUS_UNSUPPORTED};
    struct config config;
    helper_config(2, &config, MODEL);
    for (size_t i = 0; i < COUNT_OF(excuses); i++) {
        struct arena arena = ARENA_EMPTY;
        struct noise_table table;
        struct other other = {.refuses = excuses[i]};
        assert_int_equal(measure(&config, 0, &other, &arena, &table), STATUS_OK);
        assert_string_equal(row_of(&table, NOISE_PROCESS)->untestable, "no such process");
        assert_int_equal(row_of(&table, NOISE_PROCESS)->repeats, 0);
        assert_string_equal(row_of(&table, NOISE_DEVICE)->untestable, "no second device");
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    struct other other = {.refuses = STATUS_IO};
    assert_int_equal(measure(&config, 0, &other, &arena, &table), STATUS_IO);
    arena_close(&arena);
}

/* Keys may name updates beyond those that are trained. */
static void verify_resolved(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    struct config config;
    helper_config(8, &config, MODEL ", resume: {after: 5}");
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_INPUT);
    assert_int_equal(measure(&config, 8, NULL, &arena, &table), STATUS_OK);
    assert_string_equal(row_of(&table, NOISE_MICRO)->untestable, "");
    arena_close(&arena);
}

/* The perturbed run is trained once where bits repeat, and as often as asked where they do not; its
 * envelope must add up. */
static void verify_twin(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    struct config config;
    helper_config(2, &config, MODEL);
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_OK);
    const struct noise_row *row = row_of(&table, NOISE_ONE_ULP);
    assert_int_equal(row->repeats, 1);
    assert_non_null(table.perturbed.gradient);
    for (int k = 0; k < 2; k++) {
        double squares = 0.0, largest = 0.0;
        for (uint32_t i = 0; i < table.layout.tensors; i++) {
            const size_t at = (size_t)k * table.layout.tensors + i;
            squares += table.perturbed.distance[at] * table.perturbed.distance[at];
            if (table.perturbed.gradient[at] > largest) largest = table.perturbed.gradient[at];
        }
        const double whole = row->figures.growth[k].distance;
        /* the sum of squares over tensors, added in another order: some half ulps of f64 */
        assert_true(whole > 0.0 && fabs(sqrt(squares) - whole) < 1e-12 * whole);
        assert_true(largest == row->figures.growth[k].tensor);
    }
    config.numerics.mode = MODE_ATOMIC;
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_OK);
    assert_int_equal(row_of(&table, NOISE_ONE_ULP)->repeats, 2);
    arena_close(&arena);
}

static void validate_no_twin(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    struct config config;
    helper_config(2, &config, MODEL);
    snprintf(config.init.nudge, sizeof config.init.nudge, "lm_head.weight");
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_OK);
    assert_non_null(strstr(row_of(&table, NOISE_ONE_ULP)->untestable, "init.nudge is set"));
    helper_config(2, &config, MODEL);
    config.init.std = 0.0; /* no weight reaches the loss */
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_OK);
    assert_non_null(strstr(row_of(&table, NOISE_ONE_ULP)->untestable, "changes the forward"));
    assert_null(table.perturbed.gradient);
    arena_close(&arena);
}

/* Errors are relative to how far the measured run moved: bf16 weights that stay leave nothing to
 * compare. */
static void validate_own_error(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    struct config config;
    helper_config(2, &config, MODEL ", numerics: {param: bf16}");
    config.optimizer.lr = 1e-10;
    assert_int_equal(measure(&config, 0, NULL, &arena, &table), STATUS_OK);
    const struct noise_growth *growth = &row_of(&table, NOISE_F64)->figures.growth[1];
    assert_true(growth->distance > 0.0 && isnan(growth->share));
    arena_close(&arena);
}

/* ---- paths ---- */

/* Holds heads, norms and working weights of a path against a run, update by update. */
static void corroborate_path(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset data;
    struct noise_layout layout;
    struct run run;
    unsigned char *path;
    size_t bytes;
    helper_config(2, &config, MODEL ", numerics: {param: bf16, compute: bf16, master: f32}");
    assert_int_equal(noise_path_train(&config, 2, NULL, &arena, &bytes, &path), STATUS_OK);
    helper_data_open(&config, &arena, &data);
    const struct run_options options = noise_run_options(2, 0);
    helper_run_open(&config, &data, &options, &run);
    assert_int_equal(noise_layout_open(&run, 2, &arena, &layout), STATUS_OK);
    assert_int_equal(layout.bytes, bytes);
    assert_int_equal(layout.weight, DTYPE_F32);
    assert_int_equal(layout.gradient, DTYPE_BF16);
    for (uint64_t k = 1; k <= 2; k++) {
        const struct record *record = helper_step(&run);
        const struct noise_head head = noise_head_of(&layout, path, k);
        const unsigned char *const update = path + (k - 1) * layout.update_bytes;
        double squares = 0.0;
        for (uint32_t i = 0; i < layout.tensors; i++) {
            const size_t master = run.layout.tensor[run.owner[i]].master;
            double norm;
            memcpy(&norm, update + layout.at_norms + 8 * i, sizeof norm);
            squares += norm * norm;
            assert_true(norm == record->tensors[i][TENSOR_GRAD_NORM]);
            assert_memory_equal(update + layout.at_weights + 4 * layout.offset[i],
                                run.state.host + master,
                                4 * (layout.offset[i + 1] - layout.offset[i]));
        }
        assert_true(head.loss == record->reals[REAL_LOSS]);
        /* the same tensor norms, joined in f64 in another order */
        assert_true(fabs(head.grad_norm - sqrt(squares)) < 1e-14 * head.grad_norm);
        assert_true(fabs(head.grad_norm - record->reals[REAL_GRAD_NORM]) < 1e-6);
    }
    run_close(&run);
    arena_close(&arena);
}

/* A layout with two tensors of 3 and 1 elements, two sites, three updates, in f32; all weights
 * begin at 1. */
struct small {
    struct arena arena;
    struct noise_layout layout;
    struct noise_figures figures;
    size_t offset[3];
    float start[4];
    unsigned char *a, *b;
};

static void small_open(struct small *s) {
    static const char *tensors[] = {"first", "second"}, *sites[] = {"near", "far"};
    memset(s, 0, sizeof *s);
    s->offset[1] = 3, s->offset[2] = 4;
    for (int i = 0; i < 4; i++)
        s->start[i] = 1.0f;
    s->layout = (struct noise_layout){.steps = 3,
                                      .tensors = 2,
                                      .sites = 2,
                                      .tensor_names = tensors,
                                      .site_names = sites,
                                      .offset = s->offset,
                                      .gradient = DTYPE_F32,
                                      .weight = DTYPE_F32,
                                      .start = (const unsigned char *)s->start};
    struct noise_layout *l = &s->layout;
    l->at_sites = sizeof(struct noise_head);
    l->at_norms = l->at_sites + 2 * DIGEST_BYTES;
    l->at_gradients = l->at_norms + 2 * sizeof(double);
    l->at_weights = l->at_gradients + 4 * sizeof(float);
    l->update_bytes = l->at_weights + 4 * sizeof(float);
    l->bytes = 3 * l->update_bytes;
    assert_int_equal(arena_take(&s->arena, l->bytes, 1, "a", &s->a), STATUS_OK);
    assert_int_equal(arena_take(&s->arena, l->bytes, 1, "b", &s->b), STATUS_OK);
    assert_int_equal(noise_figures_open(l, &s->arena, &s->figures), STATUS_OK);
    for (int k = 0; k < 3; k++)
        for (int side = 0; side < 2; side++)
            memcpy((side == 0 ? s->a : s->b) + (size_t)k * l->update_bytes + l->at_weights,
                   s->start, sizeof s->start);
}

static void put_real(struct small *s, unsigned char *side, int update, size_t at, double value) {
    memcpy(side + (size_t)(update - 1) * s->layout.update_bytes + at, &value, sizeof value);
}

static void put_float(struct small *s, unsigned char *side, int update, size_t at, float value) {
    memcpy(side + (size_t)(update - 1) * s->layout.update_bytes + at, &value, sizeof value);
}

static const struct noise_figures *compare(struct small *s) {
    noise_figures_add(&s->layout, s->a, s->b, &s->figures);
    return &s->figures;
}

static void validate_gaps(void **state) {
    (void)state;
    const double nan = (double)NAN, inf = (double)INFINITY;
    static const struct {
        double a, b, gap, relative;
    } cases[] = {{2, 3, 1, 0.5}, {4, 3, 1, 0.25}, {-2, 2, 4, 2}, {0, 0, 0, 0}, {-0.0, 0, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(noise_gap(cases[i].a, cases[i].b) == cases[i].gap);
        assert_true(noise_relative(cases[i].a, cases[i].b) == cases[i].relative);
    }
    assert_true(noise_gap(nan, nan) == 0.0 && noise_gap(inf, inf) == 0.0);
    assert_true(isinf(noise_gap(nan, 1)) && isinf(noise_gap(1, nan)) && isinf(noise_gap(inf, 1)));
    assert_true(isinf(noise_relative(0, 1)) && isinf(noise_relative(nan, 1)));
    assert_true(isinf(noise_relative(inf, 1)) && noise_relative(nan, nan) == 0.0);
}

/* Places are ordered as an update computes: forward, gradients from the last tensor on, weights,
 * loss. */
static void validate_place(void **state) {
    (void)state;
    struct small s;
    small_open(&s);
    const struct noise_layout *l = &s.layout;
    put_real(&s, s.b, 3, 0, 7.0);
    assert_string_equal(compare(&s)->first_place, "loss");
    assert_int_equal(s.figures.first, 3);
    put_float(&s, s.b, 2, l->at_weights, 2.0f);
    put_float(&s, s.b, 2, l->at_weights + 12, 2.0f);
    assert_string_equal(compare(&s)->first_place, "update first");
    assert_int_equal(s.figures.first, 2);
    arena_close(&s.arena);
    small_open(&s);
    put_float(&s, s.b, 2, l->at_weights, 2.0f);
    put_float(&s, s.b, 2, l->at_gradients, 1.0f);
    put_float(&s, s.b, 2, l->at_gradients + 12, 1.0f);
    assert_string_equal(compare(&s)->first_place, "gradient second");
    arena_close(&s.arena);
    small_open(&s);
    put_float(&s, s.b, 2, l->at_gradients, 1.0f);
    s.b[l->update_bytes + l->at_sites + DIGEST_BYTES] = 1;
    assert_string_equal(compare(&s)->first_place, "forward far");
    arena_close(&s.arena);
    small_open(&s);
    s.b[l->update_bytes + l->at_sites] = s.b[l->update_bytes + l->at_sites + DIGEST_BYTES] = 1;
    assert_string_equal(compare(&s)->first_place, "forward near");
    arena_close(&s.arena);
}

/* Of several comparisons the worst figure counts, each at its own first difference; later updates
 * can only make it worse. */
static void validate_worst(void **state) {
    (void)state;
    struct small s;
    small_open(&s);
    const struct noise_layout *l = &s.layout;
    const float ulp = 0x1p-23f;
    for (int k = 1; k <= 3; k++)
        for (int i = 0; i < 4; i++) {
            put_float(&s, s.a, k, l->at_gradients + 4 * (size_t)i, 1.0f);
            put_float(&s, s.b, k, l->at_gradients + 4 * (size_t)i, 1.0f);
        }
    for (int side = 0; side < 2; side++)
        for (int k = 1; k <= 3; k++) {
            put_real(&s, side == 0 ? s.a : s.b, k, 8, 4.0);
            put_real(&s, side == 0 ? s.a : s.b, k, l->at_norms, 2.0);
            put_real(&s, side == 0 ? s.a : s.b, k, l->at_norms + 8, 2.0);
        }
    put_float(&s, s.b, 2, l->at_gradients, 1.0f + 9 * ulp);
    put_float(&s, s.b, 2, l->at_gradients + 12, 1.0f + 5 * ulp);
    put_float(&s, s.b, 2, l->at_weights, 1.0f + 3 * ulp);
    put_float(&s, s.b, 3, l->at_gradients, 1.0f + 99 * ulp);
    put_real(&s, s.b, 2, l->at_norms, 3.0);
    put_real(&s, s.b, 2, l->at_norms + 8, 2.5);
    put_real(&s, s.b, 2, 8, 5.0);
    put_real(&s, s.b, 3, l->at_norms, 8.0);
    put_real(&s, s.b, 3, 8, 8.0);
    const struct noise_figures *f = compare(&s);
    assert_true(f->first == 2 && f->gradient_ulp == 9 && f->weight_ulp == 3);
    assert_true(f->gradients_equal == 0 && f->updates_equal == 1);
    assert_true(f->tensor_relative == 0.5 && f->total_relative == 0.25);
    assert_string_equal(f->tensor_worst, "first");
    assert_true(f->growth[1].tensor == 0.5 && f->growth[2].tensor == 3.0);
    assert_true(f->growth[1].grad_norm == 0.25 && f->growth[2].grad_norm == 1.0);
    /* a better comparison later changes nothing; one that differs earlier becomes the first */
    memcpy(s.b, s.a, l->bytes);
    put_float(&s, s.b, 3, l->at_gradients, 1.0f + 2 * ulp);
    put_real(&s, s.b, 3, l->at_norms + 8, 2.25);
    f = compare(&s);
    assert_true(f->first == 2 && f->gradient_ulp == 9 && f->weight_ulp == 3);
    assert_true(f->gradients_equal == 0 && f->updates_equal == 1 && f->tensor_relative == 0.5);
    assert_true(f->growth[2].tensor == 3.0 && f->total_relative == 0.25);
    put_float(&s, s.b, 1, l->at_weights, 1.5f);
    f = compare(&s);
    assert_true(f->first == 1 && f->gradients_equal == 0 && f->updates_equal == 1);
    assert_string_equal(f->first_place, "update first");
    arena_close(&s.arena);
}

/* The share is |a - b| over |a - a0|: unknown before a has moved, 0 where nothing differs. */
static void validate_share(void **state) {
    (void)state;
    struct small s;
    small_open(&s);
    const struct noise_layout *l = &s.layout;
    put_float(&s, s.b, 2, l->at_weights, 4.0f); /* a is where it began */
    put_float(&s, s.a, 3, l->at_weights, 5.0f); /* 4 from the start, 3 from b */
    put_float(&s, s.b, 3, l->at_weights, 8.0f);
    const struct noise_figures *f = compare(&s);
    assert_true(f->growth[0].share == 0.0 && isnan(f->growth[1].share));
    assert_true(f->growth[1].distance == 3.0 && f->growth[2].distance == 3.0);
    assert_true(f->growth[2].share == 0.75);
    put_float(&s, s.b, 3, l->at_weights, (float)NAN);
    f = compare(&s);
    assert_true(isinf(f->growth[2].distance) && isinf(f->growth[2].share));
    arena_close(&s.arena);
}

/* Against another dtype there are figures of update 1, and no bits are compared. */
static void validate_against(void **state) {
    (void)state;
    struct small s, other;
    small_open(&s);
    small_open(&other);
    const struct noise_layout *l = &s.layout;
    for (int k = 1; k <= 3; k++)
        for (int i = 0; i < 2; i++) {
            put_real(&s, s.a, k, l->at_norms + 8 * (size_t)i, 2.0);
            put_real(&s, s.b, k, l->at_norms + 8 * (size_t)i, 2.0 + (i == 1 ? 0.5 : 0.25) * k);
        }
    put_real(&s, s.a, 1, 8, 4.0), put_real(&s, s.b, 1, 8, 5.0);
    put_real(&s, s.a, 3, 8, 4.0), put_real(&s, s.b, 3, 8, 8.0);
    const struct noise_side a = {l, s.a}, b = {l, s.b};
    assert_int_equal(noise_figures_against(a, b, &s.figures), STATUS_OK);
    assert_true(s.figures.gradients_equal == 0 && s.figures.updates_equal == 0);
    assert_true(s.figures.tensor_relative == 0.25 && s.figures.total_relative == 0.25);
    assert_string_equal(s.figures.tensor_worst, "second");
    assert_true(s.figures.growth[2].tensor == 0.75 && s.figures.growth[2].grad_norm == 1.0);
    other.layout.steps = 2;
    assert_int_equal(
        noise_figures_against(a, (struct noise_side){&other.layout, other.a}, &s.figures),
        STATUS_INTERNAL);
    arena_close(&s.arena);
    arena_close(&other.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_exactness),
        cmocka_unit_test(validate_variants),
        cmocka_unit_test(validate_variants_of_ranks),
        cmocka_unit_test(validate_variants_of_fed_ranks),
        cmocka_unit_test(validate_f64_of_ranks),
        cmocka_unit_test(validate_dtypes),
        cmocka_unit_test(verify_drawn_orders),
        cmocka_unit_test(verify_ranks),
        cmocka_unit_test(validate_process),
        cmocka_unit_test(verify_resolved),
        cmocka_unit_test(verify_twin),
        cmocka_unit_test(validate_no_twin),
        cmocka_unit_test(validate_own_error),
        cmocka_unit_test(corroborate_path),
        cmocka_unit_test(validate_gaps),
        cmocka_unit_test(validate_place),
        cmocka_unit_test(validate_worst),
        cmocka_unit_test(validate_share),
        cmocka_unit_test(validate_against),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
