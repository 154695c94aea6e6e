/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a log says of skipped updates before its LR is looked at: how many there were at least and
 * at most, by row. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "tests/forensics/helper_scene.h"

enum { ROWS = 60 };

static const struct fit_evidence *evidence_of(struct patient *p, struct fit_known *known) {
    fit_known_init(known);
    assert_int_equal(fit_known_from_log(known, p->log, &p->arena), STATUS_OK);
    return &known->skips;
}

static void begin(struct patient *p) {
    memset(p, 0, sizeof *p);
    p->log = helper_dpo(&p->arena);
    assert_int_equal(p->log->rows, ROWS);
}

/* A column of zeros says that nothing was skipped, which no column does not. */
static void validate_a_column_of_zeros(void **state) {
    (void)state;
    struct patient p;
    struct fit_known known;
    begin(&p);
    for (size_t row = 0; row < ROWS; row++)
        scene_put(&p, LOG_SKIPPED, row, 0.0);
    const struct fit_evidence *skips = evidence_of(&p, &known);
    assert_int_equal(skips->shown, 0);
    assert_non_null(skips->most);
    for (size_t row = 0; row < ROWS; row++)
        assert_true(skips->least[row] == 0 && skips->most[row] == 0);
    arena_close(&p.arena);
    begin(&p);
    skips = evidence_of(&p, &known);
    assert_int_equal(skips->shown, 0);
    assert_null(skips->most);
    arena_close(&p.arena);
}

/* A loss scale of 1 throughout is that of a training without a scaler. */
static void validate_a_scale_of_one(void **state) {
    (void)state;
    for (int scaled = 0; scaled < 2; scaled++) {
        struct patient p;
        struct fit_known known;
        begin(&p);
        for (size_t row = 0; row < ROWS; row++)
            scene_put(&p, LOG_LOSS_SCALE, row, scaled && row == 7 ? 2.0 : 1.0);
        const struct fit_evidence *skips = evidence_of(&p, &known);
        assert_true((skips->most != NULL) == !scaled);
        assert_int_equal(skips->shown, scaled); /* the scale fell once */
        arena_close(&p.arena);
    }
}

/* A log that says bf16 has no scaler either, so only a norm that is not finite shows a skip. */
static void validate_a_log_of_bf16(void **state) {
    (void)state;
    struct patient p;
    struct fit_known known;
    begin(&p);
    p.log->bf16 = 1;
    scene_put(&p, LOG_GRAD_NORM, 4, (double)INFINITY);
    const struct fit_evidence *skips = evidence_of(&p, &known);
    assert_int_equal(skips->shown, 1);
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(skips->most[row], row == 4);
    arena_close(&p.arena);
}

/* A gradient norm that is not finite is that of a skipped update. */
static void validate_a_norm_that_is_not_finite(void **state) {
    (void)state;
    struct patient p;
    struct fit_known known;
    begin(&p);
    scene_put(&p, LOG_GRAD_NORM, 4, (double)INFINITY);
    scene_put(&p, LOG_GRAD_NORM, 9, (double)INFINITY);
    const struct fit_evidence *skips = evidence_of(&p, &known);
    assert_int_equal(skips->shown, 2);
    for (size_t row = 0; row < ROWS; row++)
        assert_true(skips->least[row] == (row == 4 || row == 9) && skips->most[row] == UINT32_MAX);
    arena_close(&p.arena);
}

/* A running count of skipped updates, of a run that goes on from update 3 as its second part: what
 * was skipped in the first update behind the resume is what the count grew by since update 3, and
 * not since the update of the same number that the first part had, nor since its last one. A resume
 * that begins in front of all rows has no row before, so the whole count is its own. */
static void validate_a_count_over_a_resume(void **state) {
    (void)state;
    static const struct {
        size_t row;           /* of the resume */
        int64_t update;       /* with which it begins */
        double before, again; /* the count at the update of that number, in either part */
        uint32_t least;       /* skipped in the first row of the second part */
    } cases[] = {
        {6, 4, 1.0, 1.0, 1}, {6, 4, 1.0, 0.0, 0}, {6, 4, 0.0, 2.0, 2},
        {6, 1, 0.0, 1.0, 1}, {6, 7, 0.0, 2.0, 1}, {6, 6, 1.0, 1.0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct patient p;
        struct fit_known known;
        begin(&p);
        for (size_t row = 0; row < ROWS; row++)
            scene_put(&p, LOG_SKIPPED, row,
                      row < 3              ? 0.0
                      : row < cases[i].row ? (row == 3 ? cases[i].before : 1.0)
                                           : cases[i].again);
        for (size_t c = 0; c < p.log->column_count; c++)
            if (p.log->columns[c].name == LOG_SKIPPED) p.log->columns[c].cumulative = 1;
        helper_resume(p.log, cases[i].row, cases[i].update);
        const struct fit_evidence *skips = evidence_of(&p, &known);
        assert_non_null(skips->least);
        if (skips->least[cases[i].row] != cases[i].least)
            fail_msg("case %zu: %u", i, skips->least[cases[i].row]);
        arena_close(&p.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_column_of_zeros),
        cmocka_unit_test(validate_a_scale_of_one),
        cmocka_unit_test(validate_a_log_of_bf16),
        cmocka_unit_test(validate_a_norm_that_is_not_finite),
        cmocka_unit_test(validate_a_count_over_a_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
