/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The cells and captures that localisation compares, on views made by hand: what counts as first,
 * what only one side writes, which element of many comes first, and in which grid ulps are
 * counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment/locate/locate_capture.h"

enum { WIDTH = 4, TOKENS = 3, ROWS = 16 };

/* A batch of two samples of two sides with three tokens each, in any rows. */
struct layout {
    struct batch batch;
    struct sequence sequences[4];
    float values[ROWS][WIDTH];
};

static void lay_out(struct layout *out, const uint32_t rows[4], const uint32_t order[4]) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < 4; i++)
        out->sequences[i] = (struct sequence){
            .row = rows[i], .length = TOKENS, .sample = order[i] / 2, .side = order[i] % 2};
    out->batch = (struct batch){.sequences = out->sequences, .sequence_count = 4};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t p = 0; p < TOKENS; p++)
            for (uint32_t c = 0; c < WIDTH; c++)
                out->values[rows[i] + p][c] = (float)(order[i] * 100 + p * 10 + c);
}

static float *at(struct layout *layout, uint32_t sample, uint32_t side, uint32_t position) {
    for (uint32_t i = 0; i < 4; i++)
        if (layout->sequences[i].sample == sample && layout->sequences[i].side == side)
            return layout->values[layout->sequences[i].row + position];
    fail();
    return NULL;
}

static struct watch_view tokens_view(struct layout *layout, const char *tensor) {
    return (struct watch_view){.update = 1,
                               .stage = (enum watch_stage)(WATCH_PHASE + (int)PHASE_FORWARD),
                               .micro = 1,
                               .layer = 0,
                               .op = watch_own("op"),
                               .tensor = watch_own(tensor),
                               .axis = WATCH_TOKENS,
                               .columns = WATCH_HEADS,
                               .inner = 2,
                               .width = WIDTH,
                               .data = layout->values,
                               .batch = &layout->batch,
                               .sequence_count = 4,
                               .parameter = WATCH_NO_PARAMETER};
}

static struct watch_view whole_view(double *values, size_t count, const char *tensor,
                                    uint32_t covered) {
    return (struct watch_view){.update = 1,
                               .stage = (enum watch_stage)(WATCH_PHASE + (int)PHASE_BACKWARD),
                               .layer = PASS_NO_LAYER,
                               .op = watch_own("op"),
                               .tensor = watch_own(tensor),
                               .axis = WATCH_WHOLE,
                               .columns = WATCH_SCALARS,
                               .dtype = DTYPE_F64,
                               .data = values,
                               .count = count,
                               .width = count,
                               .covered = covered,
                               .parameter = WATCH_NO_PARAMETER};
}

static const uint32_t rows_a[4] = {0, 3, 6, 9}, order_a[4] = {0, 2, 1, 3};
static const uint32_t rows_b[4] = {1, 4, 8, 12}, order_b[4] = {0, 1, 2, 3};

struct sides {
    struct arena arena;
    struct locate_cells cells[2];
};

static void open_sides(struct sides *sides) {
    sides->arena = (struct arena)ARENA_EMPTY;
    for (int s = 0; s < 2; s++)
        locate_cells_open(&sides->arena, &sides->cells[s]);
}

static void see(struct locate_cells *cells, const struct watch_view *view) {
    locate_cells_see(cells, view);
    assert_int_equal(cells->status, STATUS_OK);
}

/* Compares both layouts once more while keeping the tensor that differs first. */
static void compare(struct sides *sides, struct layout *a, struct layout *b,
                    struct locate_element *out) {
    struct locate_first first;
    struct locate_capture captures[2];
    struct layout *layouts[2] = {a, b};
    for (int s = 0; s < 2; s++) {
        const struct watch_view view = tokens_view(layouts[s], "t");
        see(&sides->cells[s], &view);
    }
    locate_cells_first(&sides->cells[0], &sides->cells[1], &first);
    assert_non_null(first.key);
    for (int s = 0; s < 2; s++) {
        struct locate_cells again;
        const struct watch_view view = tokens_view(layouts[s], "t");
        locate_cells_open(&sides->arena, &again);
        assert_int_equal(locate_capture_open(&first, &sides->arena, &captures[s]), STATUS_OK);
        again.capture = &captures[s];
        see(&again, &view);
    }
    assert_int_equal(locate_capture_compare(&captures[0], &captures[1], &sides->arena, out),
                     STATUS_OK);
}

static void validate_layouts(void **state) {
    (void)state;
    struct sides sides;
    struct layout a, b;
    struct locate_first first;
    open_sides(&sides);
    lay_out(&a, rows_a, order_a);
    lay_out(&b, rows_b, order_b);
    const struct watch_view views[2] = {tokens_view(&a, "t"), tokens_view(&b, "t")};
    see(&sides.cells[0], &views[0]);
    see(&sides.cells[1], &views[1]);
    locate_cells_first(&sides.cells[0], &sides.cells[1], &first);
    assert_null(first.key);
    assert_int_equal(first.structure, LOCATE_SAME);
    arena_close(&sides.arena);
}

static void validate_first_element(void **state) {
    (void)state;
    static const struct {
        uint32_t sample, side, position, column;
    } faults[] = {/* the last one is the first in canonical order */
                  {1, 1, 2, 3}, {1, 1, 2, 1}, {1, 0, 2, 1}, {0, 1, 2, 0},
                  {0, 1, 1, 3}, {0, 0, 2, 2}, {0, 0, 1, 3}, {0, 0, 1, 1}};
    struct layout a, b;
    lay_out(&a, rows_a, order_a);
    lay_out(&b, rows_b, order_b);
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct sides sides;
        struct locate_element element;
        open_sides(&sides);
        float *value = at(&b, faults[i].sample, faults[i].side, faults[i].position);
        value[faults[i].column] = nextafterf(value[faults[i].column], INFINITY);
        compare(&sides, &a, &b, &element);
        assert_int_equal(element.sample, faults[i].sample);
        assert_int_equal(element.side, faults[i].side);
        assert_int_equal(element.position, faults[i].position);
        assert_int_equal(element.column, faults[i].column);
        assert_int_equal(element.differing, i + 1);
        assert_int_equal(element.elements, 4 * TOKENS * WIDTH);
        assert_int_equal(element.ulp, 1);
        assert_int_equal(element.ulp_most, 1);
        assert_int_equal(element.positions, TOKENS);
        assert_int_equal(element.by_position[0].differing, 0);
        arena_close(&sides.arena);
    }
}

static void validate_values(void **state) {
    (void)state;
    static const struct {
        float a, b;
        int64_t ulp;
    } rows[] = {{1.0f, 0x1.000004p0f, 2},
                {0.0f, -0.0f, 0},
                {1.0f, -1.0f, 2130706432},
                {1.0f, NAN, INT64_MAX},
                {0x1p-149f, -0x1p-149f, 2}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sides sides;
        struct layout a, b;
        struct locate_element element;
        lay_out(&a, rows_a, order_a);
        lay_out(&b, rows_b, order_b);
        open_sides(&sides);
        at(&a, 1, 0, 2)[3] = rows[i].a;
        at(&b, 1, 0, 2)[3] = rows[i].b;
        compare(&sides, &a, &b, &element);
        assert_true(element.ulp == rows[i].ulp);
        assert_int_equal(element.differing, 1);
        assert_true(locate_value(WATCH_REALS, element.a) == (double)rows[i].a);
        arena_close(&sides.arena);
    }
}

/* NaNs of any bits count as one value. */
static void validate_nan(void **state) {
    (void)state;
    struct sides sides;
    struct locate_first first;
    double a = (double)NAN, b = -(double)NAN;
    const struct watch_view views[2] = {whole_view(&a, 1, "t", 0), whole_view(&b, 1, "t", 0)};
    open_sides(&sides);
    see(&sides.cells[0], &views[0]);
    see(&sides.cells[1], &views[1]);
    locate_cells_first(&sides.cells[0], &sides.cells[1], &first);
    assert_null(first.key);
    arena_close(&sides.arena);
}

/* Writes the tensors of a side in order: a letter is a tensor, "x3" one that covers 3 samples,
 * "x3-" one that covers the last of them alone, and an upper-case letter the same tensor with
 * another value. */
static void write_all(struct locate_cells *cells, const char *letters) {
    static const char *const names[] = {"a", "b", "c", "d"};
    for (const char *letter = letters; *letter != '\0'; letter++) {
        const int upper = *letter >= 'A' && *letter <= 'Z';
        const int which = upper ? *letter - 'A' : *letter - 'a';
        uint32_t covered = 0;
        if (letter[1] >= '0' && letter[1] <= '9') covered = (uint32_t)(letter[1] - '0');
        double value = upper ? 2.0 : 1.0;
        struct watch_view view = whole_view(&value, 1, names[which], covered);
        if (covered > 0) letter++;
        if (letter[1] == '-') {
            view.from = covered - 1;
            letter++;
        }
        see(cells, &view);
    }
}

static void validate_first(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *value, *only; /* tensors; NULL: none */
        enum locate_structure structure;
        int structure_first;
    } rows[] = {
        {"abc", "abc", NULL, NULL, LOCATE_SAME, 0},
        {"abc", "aBC", "b", NULL, LOCATE_SAME, 0},
        {"abc", "CBa", "b", NULL, LOCATE_SAME, 0}, /* in A's order */
        {"abc", "ab", NULL, "c", LOCATE_ONLY_A, 1},
        {"ab", "abc", NULL, "c", LOCATE_ONLY_B, 1},
        {"abc", "aB", "b", "c", LOCATE_ONLY_A, 0},
        {"abc", "aC", "c", "b", LOCATE_ONLY_A, 1},
        {"ac", "aBC", "c", "b", LOCATE_ONLY_B, 1},
        {"ac", "AbC", "a", "b", LOCATE_ONLY_B, 0},
        {"aa", "aA", "a", NULL, LOCATE_SAME, 0}, /* written twice, the second time apart */
        {"aa", "a", NULL, "a", LOCATE_ONLY_A, 1},
        {"a", "aa", NULL, "a", LOCATE_ONLY_B, 1},
        {"a2a4", "a1a2a3a4", NULL, NULL, LOCATE_SAME, 0}, /* sums of samples, split otherwise */
        {"a2a4", "a1A2a3A4", "a", NULL, LOCATE_SAME, 0},
        {"a4", "a1A4", "a", NULL, LOCATE_SAME, 0},
        {"a2a4b", "a2A4-B", "b", NULL, LOCATE_SAME, 0}, /* sums that begin elsewhere: shards */
        {"a2a4-", "a2A4-", "a", NULL, LOCATE_SAME, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sides sides;
        struct locate_first first;
        open_sides(&sides);
        write_all(&sides.cells[0], rows[i].a);
        write_all(&sides.cells[1], rows[i].b);
        locate_cells_first(&sides.cells[0], &sides.cells[1], &first);
        const char *value = first.key == NULL ? "" : first.key->tensor.text;
        const char *only = first.structure == LOCATE_SAME ? "" : first.only->tensor.text;
        if (strcmp(value, rows[i].value == NULL ? "" : rows[i].value) != 0 ||
            strcmp(only, rows[i].only == NULL ? "" : rows[i].only) != 0 ||
            first.structure != rows[i].structure ||
            locate_structure_first(&first) != rows[i].structure_first)
            fail_msg("%s against %s: \"%s\", only \"%s\" %d %d", rows[i].a, rows[i].b, value, only,
                     (int)first.structure, locate_structure_first(&first));
        assert_int_equal(locate_cells_equal(&sides.cells[0], &sides.cells[1]),
                         strcmp(rows[i].a, rows[i].b) == 0);
        arena_close(&sides.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_layouts), cmocka_unit_test(validate_first_element),
        cmocka_unit_test(validate_values),  cmocka_unit_test(validate_nan),
        cmocka_unit_test(validate_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
