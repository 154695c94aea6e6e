/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A/A pairs and the plan made of them, against trainings stepped here and against the definitions:
 * no run is in two pairs, p is at most alpha above the bound, the pairs show the power. Also which
 * floor may be used for which configuration and trace. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/power.h"
#include "experiment/noise/noise_plan.h"
#include "experiment/noise/noise_use.h"
#include "experiment/pair.h"
#include "tests/experiment/helper_experiment.h"

#define UPDATES 3
#define FLOOR_PAIRS 9
#define EFFECT_RUN                                                                                 \
    2000000u /* beyond which a plan draws its orders (experiment/noise/noise_plan.c) */
#define TWICE_RUN 3000000u

#define MODEL                                                                                      \
    "task: sft, batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, "    \
    "vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-2}"
#define FREE MODEL ", numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 2}"

/* Opens a configuration of the tests' own text. */
static void open_config(const char *words, struct config *out) {
    char text[HELPER_PATH_SIZE + 1024];
    snprintf(text, sizeof text, "%.900s, data: {text: %s}", words, helper_bench_data[TASK_SFT]);
    helper_config(UPDATES, out, "%s", text);
}

/* ---- pairs ---- */

static void open_side(const struct config *config, uint64_t run, const struct dataset *data,
                      struct run *out) {
    struct config own = *config;
    own.numerics.order_seed = noise_order_seed(config, run);
    helper_run_open(&own, data,
                    &(struct run_options){
                        .tensors = 1, .steps = UPDATES, .order_seed = own.numerics.order_seed},
                    out);
}

static double norm_by_hand(const struct record *record, uint32_t tensors) {
    double squares = 0.0;
    for (uint32_t i = 0; i < tensors; i++)
        squares += record->tensors[i][TENSOR_GRAD_NORM] * record->tensors[i][TENSOR_GRAD_NORM];
    return sqrt(squares);
}

static double distance_by_hand(const struct run *a, const struct run *b) {
    static double ends[2][8192];
    double squares = 0.0;
    assert_true(point_count(a) <= 8192);
    assert_int_equal(point_copy(a, DTYPE_F64, ends[0]), STATUS_OK);
    assert_int_equal(point_copy(b, DTYPE_F64, ends[1]), STATUS_OK);
    for (size_t i = 0; i < point_count(a); i++)
        squares += (ends[0][i] - ends[1][i]) * (ends[0][i] - ends[1][i]);
    return sqrt(squares);
}

/* Trains pair `pair`, of runs first + 2 pair and the next one. */
static void pair_by_hand(const struct config *a, const struct config *b, uint64_t run,
                         const struct dataset *data, double out[UPDATES][FLOOR_COLUMNS]) {
    struct run runs[2];
    open_side(a, run, data, &runs[0]);
    open_side(b, run + 1, data, &runs[1]);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *x = helper_step(&runs[0]), *y = helper_step(&runs[1]);
        const double g = norm_by_hand(x, runs[0].owner_count);
        out[k][FLOOR_LOSS] = fabs(x->reals[REAL_LOSS] - y->reals[REAL_LOSS]);
        out[k][FLOOR_GRAD_NORM] = fabs(g - norm_by_hand(y, runs[1].owner_count)) / g;
        out[k][FLOOR_DISTANCE] = distance_by_hand(&runs[0], &runs[1]);
    }
    for (int i = 0; i < 2; i++)
        run_close(&runs[i]);
}

struct told {
    uint64_t calls, last;
};

static void tell(void *context, const char *what, uint64_t done, uint64_t total) {
    struct told *told = (struct told *)context;
    assert_string_equal(what, "pairs");
    assert_int_equal(done, told->calls);
    told->calls++;
    told->last = total;
}

static void corroborate_pairs(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config a, b;
    struct dataset data;
    double *columns[FLOOR_COLUMNS];
    struct told told = {0, 0};
    open_config(FREE, &a);
    b = a;
    b.optimizer.lr *= 1.5;
    helper_data_open(&a, &arena, &data);
    const struct noise_request of = {
        .config = &a, .steps = UPDATES, .progress = tell, .progress_context = &told};
    const struct noise_pairs_plan plan = {&of, &b, 3, "pairs", 40};
    assert_int_equal(noise_pairs_measure(&plan, &arena, columns), STATUS_OK);
    assert_int_equal(told.calls, 4);
    assert_int_equal(told.last, 3);
    for (uint64_t i = 0; i < 3; i++) {
        double own[UPDATES][FLOOR_COLUMNS];
        pair_by_hand(&a, &b, 40 + 2 * i, &data, own);
        for (int k = 0; k < UPDATES; k++)
            for (int c = 0; c < FLOOR_COLUMNS; c++)
                assert_true(fabs(columns[c][i * UPDATES + (uint64_t)k] - own[k][c]) <=
                            1e-12 * own[k][c]);
    }
    arena_close(&arena);
}

/* Runs that blow up are infinitely far from others. */
static void validate_divergence(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config a, b;
    double *columns[FLOOR_COLUMNS];
    open_config(MODEL ", clip: {max_norm: 0}", &a);
    b = a;
    b.optimizer.lr = 1e38;
    const struct noise_request of = {.config = &a, .steps = UPDATES};
    const struct noise_pairs_plan plan = {&of, &b, 1, "pairs", 0};
    assert_int_equal(noise_pairs_measure(&plan, &arena, columns), STATUS_OK);
    assert_true(isinf(columns[FLOOR_DISTANCE][UPDATES - 1]));
    assert_true(isinf(columns[FLOOR_LOSS][UPDATES - 1]));
    arena_close(&arena);
}

/* ---- the plan ---- */

static double median(double *values, size_t count) {
    statistics_sort(values, count);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Returns the p of a distance: the share of floor pairs that are at least as far, the distance
 * itself counted. */
static double p_of(const double *floor, double distance) {
    int at_least = 1;
    for (int i = 0; i < FLOOR_PAIRS; i++)
        at_least += floor[i] >= distance;
    return (double)at_least / (FLOOR_PAIRS + 1);
}

static void at_update(const double *column, uint64_t pairs, uint64_t update, double *out) {
    for (uint64_t i = 0; i < pairs; i++)
        out[i] = column[i * UPDATES + update - 1];
}

struct planned {
    struct arena arena;
    struct config config;
    struct floor_file floor;
    double *columns[FLOOR_COLUMNS], *effect[FLOOR_COLUMNS], *twice[FLOOR_COLUMNS];
    struct noise_plan_request request;
    struct noise_plan plan;
};

static void measure_pairs(struct planned *p, double error, uint64_t pairs, uint64_t first,
                          double **columns) {
    struct config other = p->config;
    other.optimizer.lr = p->config.optimizer.lr * (1.0 + error);
    const struct noise_pairs_plan plan = {&p->request.of, &other, pairs, "", first};
    if (noise_pairs_measure(&plan, &p->arena, columns) != STATUS_OK) fail_msg("%s", status_text());
}

static void planned_open(struct planned *p, const char *words, double lr_error, double alpha,
                         double power) {
    memset(p, 0, sizeof *p);
    open_config(words, &p->config);
    p->request = (struct noise_plan_request){.of = {.config = &p->config, .steps = UPDATES},
                                             .floor = &p->floor,
                                             .lr_error = lr_error,
                                             .alpha = alpha,
                                             .power = power};
    measure_pairs(p, 0.0, FLOOR_PAIRS, NOISE_PAIRS_RUN, p->columns);
    p->floor.pairs = FLOOR_PAIRS;
    p->floor.steps = UPDATES;
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        p->floor.columns[c] = p->columns[c];
    if (noise_plan_measure(&p->request, &p->arena, &p->plan) != STATUS_OK)
        fail_msg("%s", status_text());
}

static void check_cell(struct planned *p, int column, uint64_t update) {
    const struct noise_plan_cell *cell = &p->plan.cells[column][update - 1];
    const uint64_t pairs = p->plan.pairs;
    double floor[FLOOR_PAIRS], effect[64], twice[64];
    uint64_t seen = 0;
    at_update(p->columns[column], FLOOR_PAIRS, update, floor);
    at_update(p->effect[column], pairs, update, effect);
    at_update(p->twice[column], pairs, update, twice);
    assert_true(p_of(floor, nextafter(cell->bound, (double)INFINITY)) <= p->plan.alpha);
    assert_true(p_of(floor, cell->bound) > p->plan.alpha);
    for (uint64_t i = 0; i < pairs; i++)
        seen += p_of(floor, effect[i]) <= p->plan.alpha;
    struct statistics_interval share;
    assert_int_equal(statistics_share_interval(seen, pairs, 0.9, &share), STATUS_OK);
    assert_int_equal(cell->seen, seen);
    /* the same function of the same counts, up to its rounding */
    assert_true(fabs(cell->power - share.low) < 1e-12);
    assert_true(cell->noise == median(floor, FLOOR_PAIRS));
    assert_true(cell->effect == median(effect, pairs));
    assert_true(cell->twice == median(twice, pairs));
    if (cell->effect == 0.0)
        assert_true(isinf(cell->least) && cell->shift == 0.0);
    else
        assert_true(fabs(cell->least * cell->effect - p->plan.lr_error * cell->bound) <=
                    1e-12 * cell->bound);
    if (cell->noise == 0.0) return;
    /* Two normal values of deviation s are sqrt(2) * 0.67449 * s apart in the median (0.67449 is
     * the upper quartile of the normal distribution). */
    const double scatter = cell->noise / (sqrt(2.0) * 0.6744897502);
    const double left = cell->effect * cell->effect - cell->noise * cell->noise;
    assert_true(fabs(cell->shift * scatter - (left > 0.0 ? sqrt(left) : 0.0)) <=
                1e-9 * cell->effect);
}

/* Finds by the definition the fewest runs, then the fewest updates, that have the power. */
static void check_runs(const struct noise_plan *plan) {
    size_t least;
    assert_int_equal(statistics_labels_needed(plan->alpha, &least), STATUS_OK);
    for (size_t runs = least; 2 * runs <= STATISTICS_MAX_RUNS; runs++)
        for (uint64_t k = 1; k <= plan->steps; k++) {
            const double shift = plan->cells[FLOOR_DISTANCE][k - 1].shift;
            struct power power;
            if (shift == 0.0) continue;
            assert_int_equal(power_labels(runs, runs, plan->alpha, fmin(shift, 100.0), &power),
                             STATUS_OK);
            if (power.interval.low < plan->power) continue;
            assert_int_equal(plan->runs, runs);
            assert_int_equal(plan->runs_update, k);
            return;
        }
    assert_int_equal(plan->runs, 0);
}

static void check_plan(const char *words, double lr_error, double alpha, double power,
                       uint64_t pairs) {
    struct planned p;
    planned_open(&p, words, lr_error, alpha, power);
    assert_string_equal(p.plan.untestable, "");
    assert_int_equal(p.plan.pairs, pairs);
    measure_pairs(&p, lr_error, pairs, EFFECT_RUN, p.effect);
    measure_pairs(&p, 2.0 * lr_error, pairs, TWICE_RUN, p.twice);
    for (int c = 0; c < FLOOR_COLUMNS; c++) {
        uint64_t first = 0;
        for (uint64_t k = 1; k <= UPDATES; k++) {
            check_cell(&p, c, k);
            if (first == 0 && p.plan.cells[c][k - 1].power >= power) first = k;
        }
        assert_int_equal(p.plan.update[c], first);
        print_message("%g: column %d from update %ju\n", lr_error, c, (uintmax_t)first);
    }
    check_runs(&p.plan);
    print_message("%g: %zu runs, update %ju; shifts %.3g, %.3g, %.3g\n", lr_error, p.plan.runs,
                  (uintmax_t)p.plan.runs_update, p.plan.cells[FLOOR_DISTANCE][0].shift,
                  p.plan.cells[FLOOR_DISTANCE][1].shift, p.plan.cells[FLOOR_DISTANCE][2].shift);
    arena_close(&p.arena);
}

/* Five pairs can show a power of one half, since 0.5^5 < 0.05. The errors are large, small and
 * hidden. */
static void corroborate_plan(void **state) {
    (void)state;
    check_plan(FREE, 0.5, 0.3, 0.5, 5);
    check_plan(FREE, 1e-5, 0.3, 0.5, 5);
    check_plan(FREE, 1e-7, 0.2, 0.5, 5);
}

/* A simulated power that may reach the one asked for, but need not, is not enough. */
static void verify_power_is_a_bound(void **state) {
    (void)state;
    struct planned p;
    struct power power;
    size_t least;
    planned_open(&p, FREE, 1e-7, 0.2, 0.5);
    const double shift = p.plan.cells[FLOOR_DISTANCE][0].shift;
    assert_true(shift > p.plan.cells[FLOOR_DISTANCE][1].shift);
    assert_int_equal(statistics_labels_needed(0.2, &least), STATUS_OK);
    assert_int_equal(power_labels(least, least, 0.2, shift, &power), STATUS_OK);
    p.request.power = (power.interval.low + power.interval.high) / 2;
    assert_int_equal(noise_plan_measure(&p.request, &p.arena, &p.plan), STATUS_OK);
    if (p.plan.cells[FLOOR_DISTANCE][0].shift <= shift) assert_int_not_equal(p.plan.runs, least);
    check_runs(&p.plan);
    arena_close(&p.arena);
}

/* Without noise every test must detect every error. */
static void validate_exact(void **state) {
    (void)state;
    struct planned p;
    planned_open(&p, MODEL ", schedule: {name: constant}", 1e-3, 0.2, 0.5);
    const struct noise_plan_cell *cell = &p.plan.cells[FLOOR_DISTANCE][0];
    assert_true(cell->noise == 0.0 && cell->bound == 0.0 && cell->effect > 0.0);
    assert_true(isinf(cell->shift) && cell->seen == p.plan.pairs && cell->least == 0.0);
    assert_int_equal(p.plan.update[FLOOR_DISTANCE], 1);
    assert_int_equal(p.plan.update[FLOOR_LOSS], 2); /* the first loss is of the same weights */
    assert_true(p.plan.runs > 0);
    assert_int_equal(p.plan.runs_update, 1);
    assert_true(isinf(p.plan.cells[FLOOR_LOSS][0].least));
    arena_close(&p.arena);
}

static void validate_few_and_wrong(void **state) {
    (void)state;
    struct planned p;
    planned_open(&p, FREE, 0.5, 0.1, 0.5); /* 9 pairs: p can be 1/10 */
    assert_string_equal(p.plan.untestable, "");
    p.request.alpha = 0.0999;
    assert_int_equal(noise_plan_measure(&p.request, &p.arena, &p.plan), STATUS_OK);
    assert_non_null(strstr(p.plan.untestable, "9 A/A pairs cannot give p <= 0.0999"));
    assert_non_null(strstr(p.plan.untestable, "--pairs 10 would"));
    const double wrong[][3] = {{0.5, 0.0, 0.5}, {0.5, 1.0, 0.5}, {0.5, 0.1, 0.0},
                               {0.5, 0.1, 1.0}, {0.0, 0.1, 0.5}, {1.5, 0.1, 0.5}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        p.request.lr_error = wrong[i][0];
        p.request.alpha = wrong[i][1];
        p.request.power = wrong[i][2];
        assert_int_equal(noise_plan_measure(&p.request, &p.arena, &p.plan), STATUS_INPUT);
    }
    arena_close(&p.arena);
}

/* ---- which configuration a floor belongs to ---- */

static void describe(const struct bench *bench, const struct config *config, uint64_t steps,
                     struct arena *arena, struct floor_file *out) {
    char *text;
    memset(out, 0, sizeof *out);
    assert_int_equal(config_text(bench->options.schema, config, arena, &text), STATUS_OK);
    out->configuration = text;
    out->steps = steps;
}

static void validate_use(void **state) {
    (void)state;
    struct bench bench;
    struct floor_file file;
    helper_bench_open(&bench, UPDATES, "common: {" FREE "}\narms: {a: {}, b: {}}\n");
    const struct schema *schema = bench.options.schema;
    struct config own = bench.scenario->arms[0].config, other = own;
    describe(&bench, &own, UPDATES, &bench.arena, &file);
    other.numerics.order_seed = 77;
    assert_int_equal(noise_use_check(schema, "f", &file, &own, UPDATES, &bench.arena), STATUS_OK);
    assert_int_equal(noise_use_check(schema, "f", &file, &other, UPDATES, &bench.arena), STATUS_OK);
    assert_int_equal(noise_use_check(schema, "f", &file, &own, UPDATES + 1, &bench.arena),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "holds 3 updates, 4 are needed"));
    describe(&bench, &other, UPDATES, &bench.arena, &file);
    assert_int_equal(noise_use_check(schema, "f", &file, &other, UPDATES, &bench.arena), STATUS_OK);
    other.numerics.order_seed = 78;
    assert_int_equal(noise_use_check(schema, "f", &file, &other, UPDATES, &bench.arena),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "numerics.order_seed: 77 there, 78 here"));
    helper_bench_close(&bench);
}

struct image_case {
    const char *text;
    double (*expected)(const struct trace_image *image);
};

/* Returns the distance of the arms, with which a file's pairs are compared. */
static double of_value(const struct trace_image *image) {
    return trace_array_of(image, "attribution/value")->values[1];
}

static double of_matrix(const struct trace_image *image) {
    return trace_array_of(image, "floor/distance")->values[5]; /* 5 runs of a, then b's first */
}

static double of_pair(const struct trace_image *image) {
    return image->pairs[0].records[UPDATES - 1].reals[PAIR_DISTANCE];
}

static double of_nothing(const struct trace_image *image) {
    (void)image;
    return (double)NAN;
}

static const struct image_case images[] = {
    {"common: {" MODEL "}\narms: {a: {}, b: {optimizer: {weight_decay: 0.3}}}\n", of_value},
    {"common: {" FREE "}\narms: {a: {}, b: {optimizer: {lr: 1.1e-2}}}\nfloor: {replicates: 5, "
     "design: both}\n",
     of_matrix},
    {"common: {" MODEL "}\narms: {a: {}, b: {}}\n", of_pair},
    {"common: {" MODEL ", numerics: {param: bf16, master: f32}}\narms: {a: {}, b: {}}\n",
     of_nothing},
};

static uint32_t count_arrays(const struct trace_image *image, const char *path) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < image->array_count; i++)
        count += strcmp(image->arrays[i].plan.path, path) == 0;
    return count;
}

static void validate_image(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(images); i++) {
        struct bench bench;
        struct floor_file file;
        struct trace_image *image, out;
        double columns[FLOOR_COLUMNS][2 * UPDATES];
        for (int c = 0; c < FLOOR_COLUMNS; c++)
            for (int k = 0; k < 2 * UPDATES; k++)
                columns[c][k] = 100 * c + k;
        helper_bench_open(&bench, UPDATES, images[i].text);
        helper_bench_run(&bench);
        assert_int_equal(trace_open(bench.path, &bench.arena, &image), STATUS_OK);
        describe(&bench, &bench.scenario->arms[0].config, UPDATES, &bench.arena, &file);
        file.pairs = 2;
        for (int c = 0; c < FLOOR_COLUMNS; c++)
            file.columns[c] = columns[c];
        if (noise_use_image(bench.options.schema, "f", &file, image, &bench.arena, &out) !=
            STATUS_OK)
            fail_msg("%s", status_text());
        const struct trace_array *pairs = trace_array_of(&out, "floor/pairs");
        const struct trace_array *matrix = trace_array_of(&out, "floor/distance");
        const double expected = images[i].expected(image);
        assert_int_equal(pairs->plan.shape[0], 2);
        for (int k = 0; k < 2; k++)
            assert_true(pairs->values[k] == columns[FLOOR_DISTANCE][UPDATES * (k + 1) - 1]);
        assert_int_equal(matrix->plan.shape[0], 2);
        assert_true(isnan(expected)
                        ? isnan(matrix->values[1]) && isnan(matrix->values[2])
                        : matrix->values[1] == expected && matrix->values[2] == expected);
        assert_true(matrix->values[0] == 0.0 && matrix->values[3] == 0.0);
        assert_int_equal(count_arrays(&out, "floor/distance"), 1);
        assert_string_equal(trace_attribute_of(&out, "floor", "kind"), "file");
        assert_string_equal(trace_attribute_of(&out, "floor", "runs_baseline"), "1");
        helper_bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_pairs), cmocka_unit_test(validate_divergence),
        cmocka_unit_test(corroborate_plan),  cmocka_unit_test(verify_power_is_a_bound),
        cmocka_unit_test(validate_exact),    cmocka_unit_test(validate_few_and_wrong),
        cmocka_unit_test(validate_use),      cmocka_unit_test(validate_image),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
