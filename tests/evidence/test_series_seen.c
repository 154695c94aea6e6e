/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which updates the arrays of an experiment that was killed lack: those whose rows are there and
 * whose numbers are not. Numbers that there cannot be are not lacking. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "evidence/series_seen.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lacking_updates), cmocka_unit_test(validate_arms_of_two_lengths),
        cmocka_unit_test(validate_nothing_written), cmocka_unit_test(validate_nothing_lacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
