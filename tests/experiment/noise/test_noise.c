/* SPDX-License-Identifier: Apache-2.0
 * labels: unit omp
 * The noise floor of trainings: invariant must be bit-equal in every stratum, a plan that cuts sums
 * by shape must not be, and a drawn order must show where it is drawn and nowhere else. Also the
 * figures of paths that differ by design, and the timing of numerics switches. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/backend_record.h"
#include "experiment/noise/noise.h"
#include "experiment/noise/noise_parts.h"
#include "experiment/noise/noise_switches.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"

#define COMMON                                                                                     \
    "task: dpo, data: {max_len: 96}, batch: {size: 4, micro: 2}, init: {std: 0.3}, "               \
    "optimizer: {lr: 1e-3}, "                                                                      \
    "model: {layers: 2, hidden: 16, heads: 2, mlp: 24}, "

enum { UPDATES = 3 };

static void measure_config(const struct config *config, struct arena *arena,
                           struct noise_table *out) {
    const struct noise_request request = {
        .config = config, .steps = UPDATES, .repeats = 2, .processors = 3};
    if (noise_measure(&request, arena, out) != STATUS_OK) fail_msg("%s", status_text());
}

static void measure(const char *words, const char *dtype, struct arena *arena,
                    struct noise_table *out) {
    struct config config;
    helper_config(UPDATES, &config, COMMON "%s", words);
    if (dtype != NULL) assert_int_equal(noise_set_dtype(&config, dtype), STATUS_OK);
    measure_config(&config, arena, out);
}

static const struct noise_row *row_of(const struct noise_table *table, enum noise_stratum stratum) {
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].stratum == stratum) return &table->rows[i];
    fail_msg("no row of %s", noise_stratum_name(stratum));
    return NULL;
}

static void expect_equal(const struct noise_table *table, enum noise_stratum stratum, int equal) {
    const struct noise_row *row = row_of(table, stratum);
    if (row->untestable[0] != '\0' || (row->figures.first == 0) != equal)
        fail_msg("%s %s: %s %ju %s", noise_stratum_name(stratum), row->variant, row->untestable,
                 (uintmax_t)row->figures.first, row->figures.first_place);
}

static void verify_invariant(void **state) {
    (void)state;
    static const char *const dtypes[] = {"f32", "bf16", "f16", "f64"};
    for (size_t d = 0; d < helper_size(1, COUNT_OF(dtypes), COUNT_OF(dtypes)); d++) {
        struct arena arena = ARENA_EMPTY;
        struct noise_table table;
        uint32_t equal = 0;
        measure("numerics: {mode: invariant}", dtypes[d], &arena, &table);
        for (uint32_t i = 0; i < table.count; i++) {
            const struct noise_row *row = &table.rows[i];
            if (row->untestable[0] != '\0' || row->stratum == NOISE_ONE_ULP) continue;
            if (row->stratum == NOISE_F64) continue;
            const struct noise_figures *figures = &row->figures;
            if (figures->first != 0)
                fail_msg("%s, %s %s: %s", dtypes[d], noise_stratum_name(row->stratum), row->variant,
                         figures->first_place);
            assert_int_equal(row->repeats, 2);
            assert_int_equal(figures->gradients_equal, figures->tensors);
            assert_int_equal(figures->updates_equal, figures->tensors);
            assert_true(figures->gradient_ulp == 0 && figures->weight_ulp == 0);
            assert_true(figures->tensor_relative == 0.0 && figures->total_relative == 0.0);
            for (int k = 0; k < UPDATES; k++)
                assert_true(figures->growth[k].share == 0.0 && figures->growth[k].loss == 0.0);
            equal++;
        }
        assert_int_equal(equal, 9); /* repeat, instance, 2 threads, 2 splits, 2 paddings, layout */
        assert_string_equal(row_of(&table, NOISE_DEVICE)->untestable, "no second device");
        assert_string_equal(row_of(&table, NOISE_PROCESS)->untestable, "no second process");
        const struct noise_row *perturbed = row_of(&table, NOISE_ONE_ULP);
        assert_int_equal(perturbed->figures.first, 1);
        assert_non_null(strstr(perturbed->figures.first_place, "forward model.layers.0"));
        assert_non_null(strstr(perturbed->variant, "norm.weight[0]"));
        assert_true(perturbed->figures.growth[0].distance > 0.0);
        arena_close(&arena);
    }
}

/* A plan that looks at the number of rows is what mode invariant must never have; the table must
 * reveal it. */
static void verify_broken_plan(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    measure("numerics: {mode: shaped}, shaped: {table: \"forward m<=200: 4; *: 1\"}", NULL, &arena,
            &table);
    expect_equal(&table, NOISE_REPEAT, 1);
    expect_equal(&table, NOISE_INSTANCE, 1);
    expect_equal(&table, NOISE_THREADS, 1);
    expect_equal(&table, NOISE_MICRO, 0);
    expect_equal(&table, NOISE_LAYOUT, 0);
    const struct noise_figures *figures = &row_of(&table, NOISE_MICRO)->figures;
    assert_int_equal(figures->first, 1);
    assert_string_equal(figures->first_place, "forward model.layers.0");
    assert_true(figures->gradients_equal < figures->tensors && figures->gradient_ulp > 0);
    assert_true(figures->total_relative > 0.0 && figures->total_relative < 1e-3);
    assert_true(figures->tensor_relative >= figures->total_relative);
    assert_true(figures->growth[UPDATES - 1].share > 0.0);
    arena_close(&arena);
}

/* A free seed means another order in another run, but not in a repeat of the same one; `kinds` says
 * in which sums. */
static void verify_shuffled(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    measure("numerics: {mode: shuffled}, shuffle: {kinds: [weight, dq], chunk: 2}", NULL, &arena,
            &table);
    expect_equal(&table, NOISE_REPEAT, 1);
    expect_equal(&table, NOISE_THREADS, 1);
    expect_equal(&table, NOISE_PADDING, 1);
    expect_equal(&table, NOISE_INSTANCE, 0);
    assert_memory_equal(row_of(&table, NOISE_INSTANCE)->figures.first_place, "gradient ", 9);
    measure("numerics: {mode: shuffled}, shuffle: {kinds: [forward], chunk: 2}", NULL, &arena,
            &table);
    expect_equal(&table, NOISE_INSTANCE, 0);
    assert_memory_equal(row_of(&table, NOISE_INSTANCE)->figures.first_place, "forward ", 8);
    measure("numerics: {mode: shuffled, order_seed: 5}, shuffle: {kinds: [weight], chunk: 2}", NULL,
            &arena, &table);
    expect_equal(&table, NOISE_INSTANCE, 1);
    arena_close(&arena);
}

/* A run's own rounding error depends on the width of its dtype, and f64 has none against itself. */
static void verify_own_error(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const char *const dtypes[] = {"f32", "f16", "bf16"};
    static const double least[] = {1e-9, 1e-6, 1e-4}, most[] = {1e-5, 1e-2, 0.3};
    struct arena arena = ARENA_EMPTY;
    struct noise_table table;
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        measure("numerics: {mode: invariant}", dtypes[d], &arena, &table);
        const struct noise_row *row = row_of(&table, NOISE_F64);
        const struct noise_figures *figures = &row->figures;
        const double own = figures->tensor_relative;
        if (row->untestable[0] != '\0' || !(own > least[d] && own < most[d]))
            fail_msg("%s: %s %g", dtypes[d], row->untestable, own);
        assert_int_equal(row->repeats, 1);
        assert_true(figures->first == 0 && figures->gradients_equal == 0);
        assert_true(figures->total_relative > 0.0 && figures->total_relative < own);
        assert_true(figures->growth[0].tensor == own);
        assert_true(figures->growth[0].grad_norm == figures->total_relative);
        assert_true(figures->growth[UPDATES - 1].share > 0.0);
        assert_true(figures->tensor_worst[0] != '\0');
    }
    measure("numerics: {mode: shuffled}", "f64", &arena, &table);
    assert_memory_equal(row_of(&table, NOISE_F64)->untestable, "numerics.param and ", 19);
    struct config config;
    helper_config(UPDATES, &config, COMMON "numerics: {param: bf16}");
    snprintf(config.init.nudge, sizeof config.init.nudge, "lm_head.weight");
    measure_config(&config, &arena, &table);
    assert_memory_equal(row_of(&table, NOISE_F64)->untestable, "init.nudge moves", 16);
    /* The start is the measured run's own: bf16 weights that stay are rounded in both. */
    snprintf(config.init.nudge, sizeof config.init.nudge, "%s", CONFIG_NO_NUDGE);
    config.optimizer.lr = 1e-30;
    measure_config(&config, &arena, &table);
    assert_true(row_of(&table, NOISE_F64)->figures.growth[UPDATES - 1].distance < 1e-20);
    arena_close(&arena);
}

/* Exact sums that are rounded once are nearer to f64 than either of two drawn orders. */
static void verify_orders(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct arena arena = ARENA_EMPTY;
    struct noise_table drawn, neutral;
    struct noise_orders orders;
    measure("numerics: {mode: shuffled}, shuffle: {chunk: 2}", NULL, &arena, &drawn);
    measure("numerics: {mode: order-free}", NULL, &arena, &neutral);
    assert_int_equal(noise_orders_measure(&drawn, &neutral, &arena, &orders), STATUS_OK);
    assert_true(orders.apart.tensor_relative > 0.0 && orders.apart.growth[0].distance > 0.0);
    for (int i = 0; i < 2; i++)
        assert_true(orders.neutral[i].tensor_relative > 0.0);
    assert_true(orders.neutral[0].tensor_relative != orders.neutral[1].tensor_relative);
    assert_true(row_of(&neutral, NOISE_F64)->figures.total_relative <
                row_of(&drawn, NOISE_F64)->figures.total_relative);
    assert_int_equal(noise_orders_measure(&neutral, &neutral, &arena, &orders), STATUS_OK);
    assert_true(orders.apart.tensor_relative == 0.0 && orders.apart.growth[1].distance == 0.0);
    arena_close(&arena);
}

static void validate_reasons(void **state) {
    (void)state;
    struct noise_variant variants[NOISE_ROWS_MAX];
    struct config config;
    helper_config(1, &config, "task: sft, batch: {size: 1}");
    const uint32_t count = noise_variants(&config, 1, 1, variants);
    assert_true(count <= NOISE_ROWS_MAX);
    const char *layout = NULL, *micro = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (variants[i].stratum == NOISE_LAYOUT) layout = variants[i].untestable;
        if (variants[i].stratum == NOISE_MICRO) micro = variants[i].untestable;
    }
    assert_string_equal(layout, "task is sft");
    assert_string_equal(micro, "batch.size is 1: there is no other split");
    assert_int_equal(noise_set_mode(&config, "quick"), STATUS_INPUT);
    assert_int_equal(noise_set_dtype(&config, "tf32"), STATUS_INPUT);
    assert_int_equal(noise_set_mode(&config, "atomic"), STATUS_OK);
    assert_int_equal(config.numerics.mode, MODE_ATOMIC);
    assert_int_equal(noise_set_dtype(&config, "bf16"), STATUS_OK);
    assert_int_equal(config.numerics.master, DTYPE_F32);
    assert_int_equal(config_validate(&config, 1), STATUS_OK);
}

/* A layout with two tensors of 3 and 1 elements, one site, two updates, in f32. */
static struct noise_layout small_layout(size_t offset[3]) {
    static const char *tensors[] = {"first", "second"};
    static const char *sites[] = {"place"};
    offset[0] = 0, offset[1] = 3, offset[2] = 4;
    struct noise_layout layout = {.steps = 2,
                                  .tensors = 2,
                                  .sites = 1,
                                  .tensor_names = tensors,
                                  .site_names = sites,
                                  .offset = offset,
                                  .gradient = DTYPE_F32,
                                  .weight = DTYPE_F32};
    layout.at_sites = sizeof(struct noise_head);
    layout.at_norms = layout.at_sites + DIGEST_BYTES;
    layout.at_gradients = layout.at_norms + 2 * sizeof(double);
    layout.at_weights = layout.at_gradients + 4 * sizeof(float);
    layout.update_bytes = layout.at_weights + 4 * sizeof(float);
    layout.bytes = 2 * layout.update_bytes;
    return layout;
}

static void put(unsigned char *at, double norm) {
    memcpy(at, &norm, sizeof norm);
}

static void validate_figures(void **state) {
    (void)state;
    size_t offset[3];
    const struct noise_layout layout = small_layout(offset);
    struct arena arena = ARENA_EMPTY;
    struct noise_figures figures;
    unsigned char *a, *b;
    assert_int_equal(arena_take(&arena, layout.bytes, 1, "a", &a), STATUS_OK);
    assert_int_equal(arena_take(&arena, layout.bytes, 1, "b", &b), STATUS_OK);
    assert_int_equal(noise_figures_open(&layout, &arena, &figures), STATUS_OK);
    noise_figures_add(&layout, a, b, &figures);
    assert_true(figures.first == 0 && figures.gradients_equal == 2 && figures.updates_equal == 2);

    unsigned char *const second = b + layout.update_bytes, *const base = a + layout.update_bytes;
    const float one = 1.0f, next = 1.0f + 3 * 0x1p-23f, two = 2.0f;
    memcpy(base + layout.at_gradients + 4, &one, sizeof one);
    memcpy(second + layout.at_gradients + 4, &next, sizeof next);
    memcpy(second + layout.at_weights + 12, &two, sizeof two);
    put(base + layout.at_norms, 2.0), put(second + layout.at_norms, 2.5);
    put(base + sizeof(double), 4.0), put(second + sizeof(double), 5.0); /* head: grad_norm */
    noise_figures_add(&layout, a, b, &figures);
    assert_int_equal(figures.first, 2);
    assert_string_equal(figures.first_place, "gradient first");
    assert_true(figures.gradients_equal == 1 && figures.updates_equal == 1);
    assert_true(figures.gradient_ulp == 3);
    assert_true(figures.tensor_relative == 0.25 && figures.total_relative == 0.25);
    assert_string_equal(figures.tensor_worst, "first");
    assert_true(figures.growth[0].distance == 0.0 && figures.growth[1].distance == 2.0);

    second[layout.at_sites] ^= 1; /* the forward comes before gradients */
    b[layout.at_gradients] ^= 1;  /* and update 1 before update 2 */
    noise_figures_add(&layout, a, b, &figures);
    assert_int_equal(figures.first, 1);
    put(second, (double)NAN); /* loss */
    noise_figures_add(&layout, a, b, &figures);
    assert_true(isinf(figures.growth[1].loss));
    arena_close(&arena);
}

#define LOOKS                                                                                      \
    18 /* at the clock of a run: 8 of each of two updates from inside, 2 around the second */
#define ROUNDS 6

/* Plays a clock on which one second passes from look to look in the first run, two in the second,
 * and so on. */
struct slowing {
    double now;
    uint32_t looks;
};

static double tick(void *clock) {
    struct slowing *slowing = (struct slowing *)clock;
    slowing->now += 1.0 + slowing->looks++ / LOOKS;
    return slowing->now;
}

/* The seconds between two looks at the clock in each run: a round goes through all switches that
 * are available, and the next round starts with the next switch. */
static void expect_paces(const struct noise_switches *all, double pace[][ROUNDS]) {
    double run = 0.0;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < all->count; i++) {
            const uint32_t at = (i + round) % all->count;
            if (all->list[at].untestable[0] == '\0') pace[at][round] = run += 1.0;
        }
}

static double middle(const double *values) {
    double sorted[ROUNDS];
    memcpy(sorted, values, sizeof sorted);
    for (int i = 1; i < ROUNDS; i++)
        for (int j = i; j > 0 && sorted[j - 1] > sorted[j]; j--) {
            const double other = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = other;
        }
    return 0.5 * (sorted[ROUNDS / 2 - 1] + sorted[ROUNDS / 2]);
}

static void expect_times(const struct noise_switch *one, const double *pace, const double *base) {
    double ratios[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        ratios[round] = pace[round] / base[round];
    const struct noise_ratio *update = &one->update, *passes = &one->passes;
    if (update->seconds != 9.0 * middle(pace) || passes->seconds != 4.0 * middle(pace) ||
        update->ratio != middle(ratios) || passes->ratio != middle(ratios))
        fail_msg("%s: %g %g %g", one->name, update->seconds, passes->seconds, update->ratio);
    assert_true(update->interval.low <= update->ratio && update->ratio <= update->interval.high);
    assert_true(update->interval.confidence >= 0.95);
}

static const struct noise_switch *switch_of(const struct noise_switches *all, const char *name) {
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->list[i].name, name) == 0) return &all->list[i];
    fail_msg("no switch %s", name);
    return NULL;
}

/* The clock is read 8 times inside an update of 2 micro-batches and once after it; forward and
 * backward read it once each. The floors must be those of the modes. */
static void validate_switches(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_switches all;
    struct config config;
    struct slowing clock = {0.0, 0};
    double pace[NOISE_SWITCHES_MAX][ROUNDS];
    helper_config(UPDATES, &config,
                  "task: dpo, data: {max_len: 80}, batch: {size: 2, micro: 1}, init: {std: 0.3}, "
                  "optimizer: {lr: 1e-3}, model: {layers: 1, hidden: 8, heads: 1, mlp: 8}, "
                  "shuffle: {chunk: 2}");
    const struct noise_request request = {.config = &config, .steps = 1, .repeats = ROUNDS};
    if (noise_switches_measure(&request, tick, &clock, &arena, &all) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_string_equal(all.list[0].name, "mode invariant");
    assert_string_equal(all.reset, ""); /* nothing was given that it could set otherwise */
    expect_paces(&all, pace);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct noise_switch *one = &all.list[i];
        if (one->untestable[0] != '\0') {
            assert_non_null(strstr(one->name, "determinism."));
            assert_string_equal(one->untestable, "numerics.backend is cpu");
            continue;
        }
        expect_times(one, pace[i], pace[one->over]);
        const int drawn = strstr(one->name, "shuffle.kinds: weight") != NULL;
        if (drawn) assert_true(one->floor.first == 1 && one->floor.gradients_equal > 0);
        const int moves = strcmp(one->name, "mode shuffled") == 0;
        if (strstr(one->name, ".kinds") == NULL) assert_int_equal(one->floor.first, moves);
    }
    assert_true(switch_of(&all, "determinism.fill: nan")->moved.first == 0);
    assert_true(switch_of(&all, "shuffle.kinds: forward")->moved.first == 1);
    assert_true(switch_of(&all, "mode order-free")->moved.first == 1);
    assert_int_equal(switch_of(&all, "atomic.kinds: dq")->config.atomic.kinds.count, 1);
    arena_close(&arena);
}

/* On a backend, a switch that selects our kernels is timed against mode invariant, which is timed
 * against cuBLAS as the keys of numerics.determinism set it. On the CPU all are timed against the
 * first. */
static void validate_switches_over(void **state) {
    (void)state;
    static struct noise_switch list[NOISE_SWITCHES_MAX];
    struct config config;
    uint32_t count;
    for (int device = 0; device < 2; device++) {
        helper_config(UPDATES, &config, COMMON "%s",
                      device ? "numerics: {backend: cuda}" : "numerics: {backend: cpu}");
        assert_int_equal(noise_switches_list(&config, 1, list, &count), STATUS_OK);
        int ours = 0;
        for (uint32_t i = 0; i < count; i++) {
            const char *const over = list[list[i].over].name;
            assert_string_equal(over, ours ? "mode invariant" : list[0].name);
            ours |= device && strcmp(list[i].name, "mode invariant") == 0;
        }
        assert_int_equal(ours, device);
    }
}

/* Where a backend cannot be opened there is nothing to time against; that is an error, and no
 * switch is called untestable then. */
static void validate_switches_refused(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct noise_switches all;
    struct config config;
    struct slowing clock = {0.0, 0};
    helper_config(UPDATES, &config, COMMON "numerics: {backend: cuda, backend_module: no.so}");
    const struct noise_request request = {.config = &config, .steps = 1, .repeats = 1};
    assert_int_equal(noise_switches_measure(&request, tick, &clock, &arena, &all), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "no.so"));
    assert_string_equal(all.list[0].name, "mode deterministic");
    struct backend_site site;
    if (backends_site("auto", &site) == STATUS_UNSUPPORTED) {
        snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "auto");
        assert_int_equal(noise_switches_measure(&request, tick, &clock, &arena, &all),
                         STATUS_UNSUPPORTED);
    }
    arena_close(&arena);
}

/* The differences of six layers double towards layer 0; one layer is bit-equal in one of two
 * tensors. */
static void validate_parts(void **state) {
    (void)state;
    static const char *names[] = {"model.embed_tokens.weight",
                                  "model.layers.0.mlp.up_proj.weight",
                                  "model.layers.0.self_attn.q_norm",
                                  "model.layers.1.mlp.up_proj.weight",
                                  "model.layers.2.mlp.up_proj.weight",
                                  "model.layers.3.mlp.up_proj.weight",
                                  "model.layers.4.mlp.up_proj.weight",
                                  "model.layers.5.mlp.up_proj.weight",
                                  "lm_head.weight"};
    struct noise_tensor tensors[] = {{9.0, 1, 1},   {0.0, 0, 0},   {0.32, 64, 1},
                                     {0.16, 32, 1}, {0.08, 16, 1}, {0.04, 8, 1},
                                     {0.02, 4, 2},  {0.01, 2, 1},  {7.0, 3, 1}};
    const struct noise_layout layout = {.tensors = COUNT_OF(names), .tensor_names = names};
    const struct noise_figures figures = {.tensor = tensors};
    struct arena arena = ARENA_EMPTY;
    struct noise_parts parts;
    assert_int_equal(noise_parts_of(&layout, &figures, &arena, &parts), STATUS_OK);
    assert_int_equal(parts.layer_count, 8); /* lm_head, 5 ... 0, embedding */
    assert_string_equal(parts.layers[0].name, "lm_head");
    assert_string_equal(parts.layers[6].name, "layer 0");
    assert_int_equal(parts.layers[6].tensors, 2);
    assert_int_equal(parts.layers[6].equal, 1);
    assert_int_equal(parts.layers[6].ulp, 64);
    assert_int_equal(parts.op_count, 4);
    assert_null(parts.no_growth);
    assert_int_equal(parts.growth.count, 6);
    assert_true(fabs(parts.growth.p - 1.0 / 720.0) < 1e-15);
    assert_true(fabs(parts.growth.factor - 2.0) < 1e-12);
    tensors[7].relative = 1.0; /* the last layer leads: 5 of 15 pairs fall */
    assert_int_equal(noise_parts_of(&layout, &figures, &arena, &parts), STATUS_OK);
    assert_true(parts.growth.p > 0.05 && fabs(parts.growth.tau - 1.0 / 3.0) < 1e-15);
    for (size_t i = 0; i < COUNT_OF(tensors); i++)
        tensors[i].relative = 0.0;
    assert_int_equal(noise_parts_of(&layout, &figures, &arena, &parts), STATUS_OK);
    assert_non_null(strstr(parts.no_growth, "values that differ"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_parts),         cmocka_unit_test(validate_switches),
        cmocka_unit_test(validate_switches_over), cmocka_unit_test(validate_switches_refused),
        cmocka_unit_test(verify_invariant),       cmocka_unit_test(verify_broken_plan),
        cmocka_unit_test(verify_shuffled),        cmocka_unit_test(verify_own_error),
        cmocka_unit_test(verify_orders),          cmocka_unit_test(validate_reasons),
        cmocka_unit_test(validate_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
