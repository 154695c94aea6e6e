/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which updates the arrays of an experiment that was killed lack: those whose rows are there and
 * whose numbers are not. Numbers that there cannot be are not lacking. And the last number of a
 * random array, of one row or several, that has room for more updates than there are, or for fewer.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "evidence/series_seen.c" /* for last numbers, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/evidence/helper_image.h"

#define UPDATES 6 /* of which rows are there; 8 are planned */
#define PLANNED 8

struct numbers {
    double steps[2 * PLANNED], response[PLANNED];
};

/* A killed experiment whose arrays have numbers up to these updates. */
static void open_killed(struct helper_image *of, struct numbers *numbers, uint64_t steps,
                        uint64_t response) {
    helper_image_open(of, UPDATES);
    of->image.complete = 0;
    of->image.pair_count = 2;
    for (uint64_t i = 0; i < PLANNED; i++) {
        numbers->steps[i] = numbers->steps[PLANNED + i] = i < steps ? 3.0 : (double)NAN;
        numbers->response[i] = i < response ? 0.5 : (double)NAN;
    }
    helper_image_put(of, STEPS_MEANT_PATH, 2, PLANNED, numbers->steps);
    helper_image_put(of, STEPS_LOST_PATH, 2, PLANNED, numbers->steps);
    helper_image_put(of, RESPONSE_PATH, PLANNED, 1, numbers->response);
}

/* What is read back of the LR, of both arms. */
static void read_back(struct helper_image *of, double lr) {
    for (uint32_t run = 0; run < 2; run++)
        for (uint64_t i = 0; i < UPDATES; i++)
            of->runs[run].records[i].groups[0][GROUP_LR_READBACK] = lr;
}

static uint32_t lacking(const struct helper_image *of, struct series_lack out[SERIES_LACKS]) {
    uint32_t count;
    assert_int_equal(series_lacking(&of->image, out, &count), STATUS_OK);
    return count;
}

static void require(const struct series_lack *lack, const char *path, uint64_t first) {
    assert_string_equal(lack->path, path);
    assert_int_equal(lack->first, first);
    assert_int_equal(lack->last, UPDATES);
}

static void validate_lacking_updates(void **state) {
    (void)state;
    struct helper_image of;
    struct numbers numbers;
    struct series_lack lacks[SERIES_LACKS];
    open_killed(&of, &numbers, 4, 5);
    read_back(&of, 1e-3);
    assert_int_equal(lacking(&of, lacks), 3);
    require(&lacks[0], STEPS_MEANT_PATH, 5);
    require(&lacks[1], STEPS_LOST_PATH, 5);
    require(&lacks[2], RESPONSE_PATH, 6);

    of.image.complete = 1;
    assert_int_equal(lacking(&of, lacks), 0);
    helper_image_close(&of);
}

/* A row of one arm alone does not hide that the other one has more. */
static void validate_arms_of_two_lengths(void **state) {
    (void)state;
    struct helper_image of;
    struct numbers numbers;
    struct series_lack lacks[SERIES_LACKS];
    open_killed(&of, &numbers, 4, UPDATES);
    read_back(&of, 1e-3);
    of.runs[1].updates = 4;
    assert_int_equal(lacking(&of, lacks), 2);
    require(&lacks[0], STEPS_MEANT_PATH, 5);
    helper_image_close(&of);
}

/* Nothing was written yet: of a training whose steps are counted all updates are lacking, of
 * another one none is. */
static void validate_nothing_written(void **state) {
    (void)state;
    struct helper_image of;
    struct numbers numbers;
    struct series_lack lacks[SERIES_LACKS];
    open_killed(&of, &numbers, 0, 0);
    read_back(&of, (double)NAN);
    assert_int_equal(lacking(&of, lacks), 1);
    require(&lacks[0], RESPONSE_PATH, 1);
    read_back(&of, 1e-3);
    assert_int_equal(lacking(&of, lacks), 3);
    require(&lacks[0], STEPS_MEANT_PATH, 1);

    of.pairs[1].records[UPDATES - 1].reals[PAIR_DISTANCE] = (double)NAN; /* it went out of range */
    assert_int_equal(lacking(&of, lacks), 2);
    helper_image_close(&of);
}

/* All that there is was written. */
static void validate_nothing_lacks(void **state) {
    (void)state;
    struct helper_image of;
    struct numbers numbers;
    struct series_lack lacks[SERIES_LACKS];
    open_killed(&of, &numbers, UPDATES, UPDATES);
    read_back(&of, 1e-3);
    assert_int_equal(lacking(&of, lacks), 0);
    helper_image_close(&of);
}

static void corroborate_last_numbers(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 4000; number++) {
        struct draws draws = {.key = UINT64_C(0x5e1e), .number = number};
        double values[3 * PLANNED];
        struct series_lack lacks[2];
        const uint64_t rows = 1 + draws_pick(&draws, 3), columns = 1 + draws_pick(&draws, PLANNED);
        const uint64_t updates = draws_pick(&draws, PLANNED + 3);
        const uint32_t rare = 1 + draws_pick(&draws, 12);
        const int flat = rows == 1 && draws_pick(&draws, 2) == 0;
        uint64_t last = 0;
        for (uint64_t i = 0; i < rows * columns; i++) {
            values[i] = draws_pick(&draws, rare) == 0 ? 0.0 : (double)NAN;
            const uint64_t update = i % columns + 1;
            if (!isnan(values[i]) && update > last && update <= updates) last = update;
        }
        struct trace_array array = {.plan = {.path = "a/b", .rank = flat ? 1 : 2},
                                    .values = values};
        array.plan.shape[0] = flat ? columns : rows;
        array.plan.shape[1] = flat ? 1 : columns;
        if (last_number(&array, updates) != last)
            fail_msg("case %u: not %ju", number, (uintmax_t)last);
        const struct trace_image image = {.arrays = &array, .array_count = 1};
        uint32_t count = 1;
        note(&image, "a/b", updates, lacks, &count);
        note(&image, "a/c", updates, lacks, &count);
        assert_int_equal(count, last < updates ? 2 : 1);
        if (count == 1) continue;
        assert_string_equal(lacks[1].path, "a/b");
        assert_true(lacks[1].first == last + 1 && lacks[1].last == updates);
    }
}

/* Any group of any update is enough. */
static void validate_read_back(void **state) {
    (void)state;
    double groups[3][2][RECORD_GROUPS];
    struct record records[3];
    struct trace_run run = {.records = records, .updates = 3};
    run.plan.shape.groups = 2;
    for (int at = -1; at < 6; at++) {
        for (int i = 0; i < 3; i++) {
            records[i] = (struct record){.groups = groups[i]};
            for (int g = 0; g < 2; g++)
                groups[i][g][GROUP_LR_READBACK] = 2 * i + g == at ? 0.0 : (double)NAN;
        }
        assert_int_equal(reads_back(&run), at >= 0);
        run.plan.shape.groups = 1;
        assert_int_equal(reads_back(&run), at >= 0 && at % 2 == 0);
        run.plan.shape.groups = 2;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lacking_updates), cmocka_unit_test(validate_arms_of_two_lengths),
        cmocka_unit_test(validate_nothing_written), cmocka_unit_test(validate_nothing_lacks),
        cmocka_unit_test(corroborate_last_numbers), cmocka_unit_test(validate_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
