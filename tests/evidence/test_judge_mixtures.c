/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is said of mixtures of causes inside a noisy floor: which runs are held against which, by
 * distances of random points; which mixtures go beyond repeats, how far the farthest goes, and what
 * stands beside each cause; and why nothing is asked, by the whole text. The statistics themselves
 * answer here as each case says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/projection.h"
#include "determinism/statistics.h"
#include "evidence/judge_parts.h"
#define projection_sizes(...) given_sizes(__VA_ARGS__)
#define statistics_test_labels given_labels
#define attribution_word_within given_word
#define trace_array_of given_array_of
#define judging_count given_count
#define judging_array given_array
static enum status given_sizes(uint32_t factors, size_t n, const double *gram, double confidence,
                               struct arena *a, struct projection_sizes *out);
static enum status given_labels(const double *distances, size_t runs, size_t baseline,
                                struct statistics_p *out);
static enum attribution_word given_word(const struct attribution *figures);
static const struct trace_array *given_array_of(const struct trace_image *image, const char *path);
static enum status given_count(const struct judging *judging, const char *path, const char *name,
                               uint32_t most, uint32_t *out);
static enum status given_array(const struct judging *judging, const char *path, uint64_t rows,
                               uint64_t columns, const struct trace_array **out);
#include "evidence/judge_mixtures.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { CASES = 600, WIDTH = 3, MASKS = 32, RUNS = 10, MOST = MASKS * RUNS };

static struct draws draws;
static struct arena arena;
static struct judgement judgement;
static struct judging judging;
static struct projection_sizes sizes;
static double points[MOST][WIDTH], gram[MOST * MOST], p_of[MASKS];
static struct trace_array array;
static uint32_t causes, runs, asked;
static int is_there, off_a, off_b; /* two runs whose products were rounded: they are one point */
static enum status sizes_status;
static enum attribution_word word;
static struct attribution figures;

static enum status given_sizes(uint32_t factors, size_t n, const double *g, double confidence,
                               struct arena *a, struct projection_sizes *out) {
    assert_true(factors == causes && n == runs && g == gram && confidence == 0.95 && a == &arena);
    *out = sizes;
    if (sizes_status == STATUS_UNTESTABLE) FAIL(STATUS_UNTESTABLE, "runs: a number is not finite");
    return sizes_status;
}

static enum status given_labels(const double *distances, size_t count, size_t baseline,
                                struct statistics_p *out) {
    const uint32_t mask = ++asked;
    assert_true(count == 2 * runs && baseline == runs);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            const size_t a = j < runs ? j : mask * runs + j - runs;
            const size_t b = i < runs ? i : mask * runs + i - runs;
            double square = 0.0;
            for (size_t d = 0; d < WIDTH; d++)
                square += (points[a][d] - points[b][d]) * (points[a][d] - points[b][d]);
            if ((int)a == off_a && (int)b == off_b) square = 0.0;
            const double is = distances[statistics_pair(count, i, j)];
            if (fabs(is - sqrt(square)) > 1e-6)
                fail_msg("mixture %u: %zu to %zu are %g for %g", mask, a, b, is, sqrt(square));
        }
    *out = (struct statistics_p){.p = p_of[mask], .total = 1};
    return STATUS_OK;
}

static enum attribution_word given_word(const struct attribution *of) {
    figures = *of;
    return word;
}

static const struct trace_array *given_array_of(const struct trace_image *image, const char *path) {
    assert_null(image);
    assert_string_equal(path, "attribution/gram");
    return is_there ? &array : NULL;
}

static enum status given_count(const struct judging *of, const char *path, const char *name,
                               uint32_t most, uint32_t *out) {
    assert_ptr_equal(of, &judging);
    assert_string_equal(path, "attribution");
    assert_string_equal(name, "replicates");
    assert_int_equal(most, 10);
    *out = runs;
    return STATUS_OK;
}

static enum status given_array(const struct judging *of, const char *path, uint64_t rows,
                               uint64_t columns, const struct trace_array **out) {
    assert_ptr_equal(of, &judging);
    assert_string_equal(path, "attribution/gram");
    assert_true(rows == (uint64_t)runs << causes && columns == rows);
    *out = &array;
    return STATUS_OK;
}

static double uniform(void) {
    return (double)draws_pick(&draws, 1000) / 1000.0;
}

static void open_case(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x317e), .number = number};
    arena_close(&arena);
    memset(&judgement, 0, sizeof judgement);
    judgement.mixtures.unasked = "";
    judgement.verdict = VERDICT_INSIDE_FLOOR;
    judgement.floor = FLOOR_PERMUTATION;
    judgement.alpha = 0.01 * (double)(1 + draws_pick(&draws, 5));
    judging = (struct judging){.arena = &arena, .out = &judgement};
    causes = 2 + draws_pick(&draws, number % 16 == 0 ? 4 : 2);
    runs = number % 16 == 0 ? 5 : 3 + draws_pick(&draws, 8);
    judgement.cause_count = causes;
    if (draws_pick(&draws, 4) == 0) /* the least that so few runs can tell apart */
        judgement.alpha = statistics_labels_least(runs, runs) * (double)((1u << causes) - 2);
    is_there = 1;
    asked = 0;
    off_a = off_b = -1;
    sizes_status = STATUS_OK;
    word = (enum attribution_word)draws_pick(&draws, WORD_COUNT);
    memset(&figures, 0xff, sizeof figures);
}

static void draw_runs(void) {
    const size_t all = (size_t)runs << causes;
    const double level = judgement.alpha / ((1u << causes) - 2);
    for (size_t r = 0; r < all; r++)
        for (size_t d = 0; d < WIDTH; d++)
            points[r][d] = uniform();
    memcpy(points[runs], points[0], sizeof points[0]);
    for (size_t a = 0; a < all; a++)
        for (size_t b = 0; b < all; b++) {
            double *const sum = &gram[a * all + b];
            *sum = 0.0;
            for (size_t d = 0; d < WIDTH; d++)
                *sum += points[a][d] * points[b][d];
        }
    if (draws_pick(&draws, 2) == 0) { /* products that rounding made larger than both lengths */
        off_a = 1;
        off_b = (int)runs + 1;
        gram[1 * all + runs + 1] = gram[(runs + 1) * all + 1] = 9.0;
    }
    array.values = gram;
    for (uint32_t mask = 0; mask < 1u << causes; mask++) {
        static const double beside[] = {0.25, 1.0, 1.0000001, 0.9999999, 4.0};
        p_of[mask] = level * beside[draws_pick(&draws, COUNT_OF(beside))];
        sizes.low[mask] = (double)draws_pick(&draws, 4) / 4.0;
        sizes.size[mask] = sizes.low[mask] + uniform();
        sizes.high[mask] = sizes.size[mask] + uniform();
    }
}

static void require_mixture(const struct judged_mixture *is, uint32_t mask) {
    assert_true(is->p == p_of[mask] && is->size.value == sizes.size[mask]);
    assert_true(is->size.low == sizes.low[mask] && is->size.high == sizes.high[mask]);
    assert_int_equal(is->is_beyond != 0, p_of[mask] <= judgement.mixtures.level);
}

static void corroborate_mixtures(void **state) {
    (void)state;
    size_t beyond_all = 0, none = 0, few = 0, untestable = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        char want[400];
        size_t needed;
        open_case(number);
        draw_runs();
        if (draws_pick(&draws, 8) == 0) sizes_status = STATUS_UNTESTABLE;
        const uint32_t full = (1u << causes) - 1, count = full - 1;
        const double level = judgement.alpha / (double)count;
        const struct judged_mixtures *const is = &judgement.mixtures;
        assert_int_equal(judge_mixtures(&judging), STATUS_OK);
        assert_int_equal(is->count, count);
        assert_true(is->level == level);
        if (statistics_labels_least(runs, runs) > level) {
            assert_int_equal(statistics_labels_needed(level, &needed), STATUS_OK);
            snprintf(want, sizeof want,
                     "%u runs of each of %u mixtures cannot tell one from the baseline at alpha = "
                     "%g for all together (attribution.replicates and floor.replicates of at least "
                     "%zu would)",
                     runs, count, judgement.alpha, needed);
            assert_string_equal(is->unasked, want);
            assert_true(asked == 0 && is->runs == 0);
            few++;
            continue;
        }
        if (sizes_status != STATUS_OK) {
            assert_string_equal(is->unasked, "runs: a number is not finite");
            untestable++;
            continue;
        }
        assert_string_equal(is->unasked, "");
        assert_true(asked == count && is->runs == runs && is->confidence == 0.95);
        assert_true(is->bound == sizes.high[full]);
        uint32_t beyond = 0, farthest = 0;
        double low = 0.0;
        for (uint32_t mask = 1; mask < full; mask++) {
            if (p_of[mask] > level) continue;
            beyond++;
            if (sizes.low[mask] > low) low = sizes.low[mask], farthest = mask;
        }
        assert_true(is->beyond == beyond && is->farthest == farthest && is->farthest_low == low);
        for (uint32_t c = 0; c < causes; c++) {
            require_mixture(&is->alone[c], 1u << c);
            require_mixture(&is->without[c], full - (1u << c));
        }
        assert_int_equal(judgement.word, beyond == 0 ? WORD_NONE : word);
        none += beyond == 0;
        beyond_all += beyond;
        if (beyond == 0) continue;
        assert_true(figures.causes == causes && figures.distance == is->bound);
        assert_true(figures.largest_low == low);
        for (uint32_t c = 0; c < causes; c++) {
            const struct judged_mixture *const without = &is->without[c];
            const int told = without->is_beyond;
            assert_true(figures.left[c].value == (told ? without->size.value : 0.0));
            assert_true(figures.left[c].low == (told ? without->size.low : 0.0));
            assert_true(figures.left[c].high == (told ? without->size.high : 0.0));
        }
    }
    assert_true(beyond_all > 200 && none > 3 && few > 30 && untestable > 10);
}

static void require_unasked(const char *text) {
    assert_int_equal(judge_mixtures(&judging), STATUS_OK);
    assert_string_equal(judgement.mixtures.unasked, text);
    assert_true(asked == 0 && judgement.mixtures.count == 0);
}

static void validate_what_is_not_asked(void **state) {
    (void)state;
    static const enum floor_kind floors[] = {FLOOR_FILE, FLOOR_RANK, FLOOR_EXACT};
    static const enum verdict verdicts[] = {VERDICT_IDENTICAL, VERDICT_OUTSIDE_FLOOR,
                                            VERDICT_UNTESTABLE};
    for (size_t v = 0; v < COUNT_OF(verdicts); v++) {
        open_case(0);
        judgement.verdict = verdicts[v];
        is_there = 0;
        require_unasked("");
    }
    for (uint32_t c = 0; c <= 6; c++)
        for (size_t f = 0; f <= COUNT_OF(floors); f++) {
            open_case(0);
            is_there = 0;
            causes = judgement.cause_count = c;
            if (f < COUNT_OF(floors)) judgement.floor = floors[f];
            require_unasked(
                c < 2    ? ""
                : f == 0 ? "a floor file stands for repeats, so no mixture was repeated; without "
                           "it they are"
                : f < COUNT_OF(floors)
                    ? "mixtures are repeated where both arms are (floor.design: both)"
                : c == 6 ? "of more than 5 causes no mixture is repeated"
                         : "no mixture was repeated (attribution.replicates: 5 or more)");
        }
    open_case(0); /* also where the trace has products of them */
    causes = judgement.cause_count = 6;
    require_unasked("of more than 5 causes no mixture is repeated");
    open_case(0);
    causes = judgement.cause_count = 2;
    runs = 10;
    judgement.alpha = 0.05;
    draw_runs();
    sizes_status = STATUS_MEMORY;
    assert_int_equal(judge_mixtures(&judging), STATUS_MEMORY);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_mixtures),
        cmocka_unit_test(validate_what_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
