/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * PyTorch's own schedulers, found in columns that PyTorch printed
 * (tests/golden/forensics/torch_schedulers.txt, written by tests/bench/torch_schedulers.py): the
 * stages and numbers that made a column must be named and no others, under the loop that printed
 * it, and none where the numbers are such as nobody types or the scheduler is another one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forensics/fit_search.h"
#include "tests/forensics/helper_fit.h"

enum { MOST = 256, LINE = 1 << 13 };

struct column {
    char contract[16], stages[256];
    struct series_point points[MOST];
    size_t count;
};

static struct arena arena;
static FILE *file;

static int next_column(struct column *out) {
    static char line[LINE];
    if (fgets(line, sizeof line, file) == NULL) return 0;
    assert_non_null(strchr(line, '\n'));
    const char *word = strtok(line, " \n");
    snprintf(out->contract, sizeof out->contract, "%s", word);
    snprintf(out->stages, sizeof out->stages, "%s", strtok(NULL, " \n"));
    out->count = 0;
    while ((word = strtok(NULL, " \n")) != NULL) {
        assert_true(out->count < MOST);
        out->points[out->count] = (struct series_point){
            .update = out->count + 1, .row = out->count, .value = strtod(word, NULL)};
        out->count++;
    }
    return 1;
}

static int open_file(void **state) {
    (void)state;
    file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/forensics/torch_schedulers.txt", "r");
    return file == NULL ? -1 : 0;
}

static int close_file(void **state) {
    (void)state;
    arena_close(&arena);
    return fclose(file);
}

static struct series series;

/* Finds as a search does that has found nothing else. */
static void find(const struct column *column, const struct fit_known *known, struct fit_set *out) {
    series = (struct series){column->points, column->count};
    const struct fit_search search = {.series = &series,
                                      .known = known,
                                      .arena = &arena,
                                      .scale = fit_scale(series.points, series.count),
                                      .last = column->count};
    arena_close(&arena);
    *out = (struct fit_set){.series = &series};
    assert_int_equal(fit_torch(&search, out), STATUS_OK);
}

/* Returns the first fit of the list that is one of torch's own schedulers, or NULL. */
static const struct fit *torch_of(const struct fit_set *set) {
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->fits[i].schedule_name, "torch.sequential") == 0) return &set->fits[i];
    return NULL;
}

/* The warm-up of one loop is a line that the other loop prints one update earlier or later, so from
 * another share: 0.1 over 5 updates is 0.28 over 4. Tells whether that is one that somebody types:
 * a decimal of three digits, or one over a whole number. Computing the share takes three roundings
 * of f64, which leaves a typed one below 1e-15 off and the inverse of one below 1e-14 (it is at
 * most 20 here); of the shares that nobody types the nearest is 2e-6 off. The bounds lie between.
 */
static int has_other_reading(const struct column *column) {
    int length;
    double start;
    char text[32];
    if (sscanf(column->stages, "linear:%d:start_factor=%lf", &length, &start) != 2) return 0;
    const double step = (1.0 - start) / length;
    const double other = strcmp(column->contract, "hf") == 0 ? start - step : start + step;
    snprintf(text, sizeof text, "%.2e", other);
    return other > 1e-12 && (fabs(strtod(text, NULL) - other) < 1e-12 ||
                             fabs(1.0 / other - rint(1.0 / other)) < 1e-9);
}

static void validate_columns(void **state) {
    (void)state;
    static struct column column;
    size_t found = 0, none = 0;
    rewind(file);
    while (next_column(&column)) {
        struct fit_known known;
        struct fit_set set;
        char wanted[300];
        fit_known_init(&known);
        find(&column, &known, &set);
        const struct fit *const fit = torch_of(&set);
        if (strcmp(column.contract, "-") == 0) {
            none++;
            if (fit != NULL) fail_msg("%s", fit->text);
            continue;
        }
        found++;
        snprintf(wanted, sizeof wanted, "stages=%s", column.stages);
        if (fit == NULL) fail_msg("%s: not found, %zu others", wanted, set.count);
        assert_ptr_equal(fit, &set.fits[0]);
        assert_string_equal(fit->parameters, wanted);
        assert_string_equal(fit->contract->name, column.contract);
        assert_int_equal(set.count, 1 + (size_t)has_other_reading(&column));
        if (set.count == 2) continue;
        /* of the other loop, or under another schedule, it is not asked for */
        known.request.contract = contract_find(column.contract[2] == '-' ? "hf" : "hf-4.50");
        find(&column, &known, &set);
        assert_null(torch_of(&set));
    }
    assert_int_equal(found, 26);
    assert_int_equal(none, 15);
}

/* A value that is off by more than rounding, anywhere, is no torch's. */
static void verify_that_each_row_counts(void **state) {
    (void)state;
    static struct column column;
    rewind(file);
    assert_true(next_column(&column));
    for (size_t i = 0; i < column.count; i++) {
        struct fit_known known;
        struct fit_set set;
        const double kept = column.points[i].value;
        fit_known_init(&known);
        column.points[i].value *= 1.0 + 0x1p-40;
        find(&column, &known, &set);
        assert_null(torch_of(&set));
        column.points[i].value = kept;
    }
}

/* Columns that are rounded, or too short, leave the numbers open. */
static void verify_what_leaves_it_open(void **state) {
    (void)state;
    static struct column column;
    struct fit_known known;
    struct fit_set set;
    rewind(file);
    assert_true(next_column(&column));
    fit_known_init(&known);
    for (size_t count = 6; count < 20; count++) {
        struct column part = column;
        part.count = count;
        find(&part, &known, &set);
        /* the peak is row 7; behind it stand five rows from row 12 on */
        assert_int_equal(torch_of(&set) != NULL, count >= 12);
    }
    for (int coarse = 0; coarse < 2; coarse++) {
        for (size_t i = 0; i < column.count; i++)
            column.points[i].quantum = coarse ? 4.1e-10 : 3.9e-10;
        find(&column, &known, &set);
        assert_int_equal(torch_of(&set) != NULL, !coarse);
    }
}

/* Without a warm-up the peak is the first row, and eight rows are asked for. */
static void verify_the_least_rows(void **state) {
    (void)state;
    static struct column column;
    struct fit_known known;
    struct fit_set set;
    rewind(file);
    do
        assert_true(next_column(&column));
    while (strcmp(column.stages, "exponential:gamma=0.95") != 0);
    fit_known_init(&known);
    for (size_t count = 6; count < 11; count++) {
        struct column part = column;
        part.count = count;
        find(&part, &known, &set);
        assert_int_equal(torch_of(&set) != NULL, count >= 8);
    }
    /* the updates in front of the first row may have had more */
    for (size_t i = 0; i < column.count; i++)
        column.points[i].update++;
    find(&column, &known, &set);
    assert_null(torch_of(&set));
}

/* The peak is shown only where the updates beside it have rows. */
static void verify_rows_beside_the_peak(void **state) {
    (void)state;
    static struct column column;
    struct fit_known known;
    struct fit_set set;
    rewind(file);
    assert_true(next_column(&column));
    fit_known_init(&known);
    for (size_t gone = 1; gone < 12; gone++) { /* the peak is row 7 */
        struct column part = column;
        memmove(&part.points[gone], &part.points[gone + 1],
                (--part.count - gone) * sizeof *part.points);
        find(&part, &known, &set);
        assert_int_equal(torch_of(&set) != NULL, gone != 5 && gone != 6 && gone != 7);
    }
}

/* Who asks for something else than torch's own numbers, from a plain loop, is not answered. */
static void verify_what_is_known(void **state) {
    (void)state;
    static struct column column;
    static const char *const of_hf[] = {"olmo-core", "hf", NULL};
    static const char *const of_others[] = {"olmo-core", "hf-4.50", NULL};
    struct fit_known known;
    struct fit_set set;
    rewind(file);
    assert_true(next_column(&column));
    for (int asked = 0; asked < 9; asked++) {
        uint64_t skipped = 3;
        fit_known_init(&known);
        if (asked == 1) known.request.schedule = "torch.sequential";
        if (asked == 2) known.possible = of_hf;
        if (asked == 3) known.possible = of_others;
        if (asked == 4) known.request.schedule = "cosine";
        if (asked == 5) known.plain = 1;
        if (asked == 6) known.samples = (const struct fit_samples *)(const void *)&skipped;
        if (asked == 7) known.request.value_count = 1;
        if (asked == 8) {
            known.request.skipped = &skipped;
            known.request.skipped_count = 1;
        }
        find(&column, &known, &set);
        assert_int_equal(torch_of(&set) != NULL, asked < 3);
    }
    /* nor where something else explains the column */
    struct fit other = {.schedule_name = "cosine"};
    const struct fit_search search = {.series = &series, .known = &known, .arena = &arena};
    set = (struct fit_set){.series = &series, .fits = &other, .count = 1};
    fit_known_init(&known);
    assert_int_equal(fit_torch(&search, &set), STATUS_OK);
    assert_ptr_equal(set.fits, &other);
    assert_int_equal(set.count, 1);
}

/* The whole search asks for torch's own schedulers where it has found nothing else, and two that
 * apply other LRs leave it open which was applied. */
static void validate_searches(void **state) {
    (void)state;
    static struct column column;
    struct fit_known known;
    struct fit_set set;
    fit_known_init(&known);
    rewind(file);
    for (size_t n = 0; n < 2; n++) {
        assert_true(next_column(&column));
        series = (struct series){column.points, column.count};
        arena_close(&arena);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_int_equal(set.count, n + 1);
        assert_string_equal(set.fits[0].contract->name, column.contract);
        assert_non_null(strstr(set.fits[0].parameters, column.stages));
        assert_int_equal(set.why, n == 0 ? 0 : FIT_WHY_APPLIED);
    }
    /* what explains a column already stays alone */
    for (size_t i = 0; i < column.count; i++)
        column.points[i].value = (double)(column.count - i) * 1e-6;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_null(torch_of(&set));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_columns),
        cmocka_unit_test(validate_searches),
        cmocka_unit_test(verify_that_each_row_counts),
        cmocka_unit_test(verify_what_leaves_it_open),
        cmocka_unit_test(verify_the_least_rows),
        cmocka_unit_test(verify_rows_beside_the_peak),
        cmocka_unit_test(verify_what_is_known),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
