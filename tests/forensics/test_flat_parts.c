/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The parts of the search that refutes a schedule which falls for a column that stands still. The
 * share of the peak that a row prints is computed a second time, from the lines of
 * transformers/optimization.py; the bounds of a block must hold every share inside of it, and be
 * met at its corners. Each condition is met from both sides, and the work is counted to its end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_flat.c" /* for its parts, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"

static struct series_point points[80];
static struct series series;
static struct fit_segment segment;
static struct arena arena;
static struct fit_known known;
static struct fit expected;
static struct fit_check check;

/* A line of hf over 40 updates that was asked for, of whose warm-up nothing is known, over twelve
 * rows of one part. */
static void open_scene(const char *contract, const char *schedule) {
    const struct contract_request request = helper_fit_request(contract, schedule, 2e-4, 3.0, 40);
    segment = (struct fit_segment){.scale = 1.0};
    helper_fit_make(&expected, &arena, &request, &segment);
    fit_known_init(&known);
    known.request = request;
    memset(&check, 0, sizeof check);
    check.expected = &expected;
    check.fitted = FIT_OF_WARMUP;
    series = (struct series){points, 12};
    for (size_t i = 0; i < COUNT_OF(points); i++)
        points[i] = (struct series_point){.update = 2 * i + 1, .row = i, .value = 1e-4};
}

#define BOUNDED(change, is)                                                                        \
    do {                                                                                           \
        open_scene("hf", "linear");                                                                \
        change;                                                                                    \
        if (is_bounded(&series, &known, &check) != (is))                                           \
            fail_msg("line %d: %s", __LINE__, #change);                                            \
        arena_close(&arena);                                                                       \
    } while (0)

static void validate_what_is_bounded(void **state) {
    (void)state;
    static const struct fit_samples *const samples =
        (const struct fit_samples *)(const void *)points; /* only whether there are some counts */
    static const struct {
        const char *contract, *schedule;
        double lr;
        int is;
    } schedules[] = {
        {"hf", "linear", (double)NAN, 1},       {"hf", "cosine", (double)NAN, 1},
        {"hf", "polynomial", (double)NAN, 0},   {"hf", "constant_with_warmup", (double)NAN, 0},
        {"hf", "inverse_sqrt", (double)NAN, 0}, {"olmo-core", "linear", (double)NAN, 1},
        {"megatron", "cosine", (double)NAN, 1}, {"veomni", "cosine", 2e-4, 1},
        {"veomni", "cosine", (double)NAN, 0},   {"veomni", "linear", (double)NAN, 0},
    };
    for (size_t i = 0; i < COUNT_OF(schedules); i++) {
        open_scene(schedules[i].contract, schedules[i].schedule);
        known.request.lr = schedules[i].lr;
        if (is_bounded(&series, &known, &check) != schedules[i].is)
            fail_msg("%s %s", schedules[i].contract, schedules[i].schedule);
        arena_close(&arena);
    }
    BOUNDED((void)0, 1);
    BOUNDED(check.expected = NULL, 0);
    BOUNDED(check.fitted |= FIT_OF_SCHEDULE, 0);
    BOUNDED(check.fitted |= FIT_OF_FLOOR, 0);
    BOUNDED(check.fitted |= FIT_OF_STEPS | FIT_OF_LR, 1);
    BOUNDED(known.request.value_count = 1, 0);
    BOUNDED(known.growing = 1, 1); /* which says nothing where updates are counted */
    BOUNDED(points[11].part = 1, 0);
    BOUNDED(points[12].part = 1, 1);
    BOUNDED(points[0].part = 1, 0);
    BOUNDED(points[1].update = 1, 0);
    BOUNDED(points[11].update = points[10].update, 0);
    BOUNDED(points[11].update = points[10].update + 1, 1);
    BOUNDED(series.count = 1, 1);
    for (int growing = 0; growing < 2; growing++)
        for (int counted = 0; counted < 2; counted++) {
            open_scene("megatron", "cosine");
            known.growing = growing;
            known.samples = counted ? samples : NULL;
            const int is_samples = known.request.contract->unit == CONTRACT_UNIT_SAMPLE;
            assert_int_equal(is_bounded(&series, &known, &check),
                             !is_samples || (!growing && !counted));
            arena_close(&arena);
        }
}

static void validate_how_many_were_skipped(void **state) {
    (void)state;
    /* 24 and a 500th of the updates, at most 1,000, unless the log shows more (docs/LR.md). */
    static const struct {
        const char *contract;
        uint64_t last, shown;
        int quiet, counted;
        uint64_t lag;
    } cases[] = {
        {"hf", 23, 0, 0, 0, 24},
        {"hf", 23, 24, 0, 0, 24},
        {"hf", 23, 25, 0, 0, 25},
        {"hf", 23, 5, 0, 0, 24},
        {"hf", 23, 5, 1, 0, 5},
        {"hf", 23, 5, 0, 1, 5},
        {"hf", 23, 0, 1, 0, 0},
        {"deepspeed-cosine", 23, 5, 1, 0,
         24}, /* it prints the norm before in place of an infinite one */
        {"deepspeed-cosine", 23, 5, 0, 1, 5},
        {"lightning-step", 23, 5, 0, 0, 0},
        {"lightning-step", 23, 5, 1, 1, 0},
        {"hf", 10000000, 0, 0, 0, 1000},
        {"hf", 10000000, 1001, 0, 0, 1001},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_scene("hf", "linear");
        known.request.contract = contract_find(cases[i].contract);
        assert_non_null(known.request.contract);
        points[11].update = cases[i].last;
        known.skips.shown = cases[i].shown;
        known.skips.quiet = cases[i].quiet;
        if (cases[i].counted) known.skips.counted = FIT_COUNTED_EXACTLY;
        const uint64_t lag = lag_of(&series, &known);
        if (lag != cases[i].lag) fail_msg("case %zu: %d", i, (int)lag);
        arena_close(&arena);
    }
}

static struct flat flat_of(const char *contract, const char *schedule) {
    open_scene(contract, schedule);
    struct flat flat = {.probe = expected, .unit = 1.0, .left = 1000000, .rounding = ROUNDING};
    flat.peak_high = real_inf_f64();
    return flat;
}

/* transformers' get_linear_schedule_with_warmup and get_cosine_schedule_with_warmup. */
static double second(int cosine, double n, double warmup, double total) {
    if (n < warmup) return n / (warmup > 1.0 ? warmup : 1.0);
    const double rest = total - warmup > 1.0 ? total - warmup : 1.0;
    if (!cosine) return total - n > 0.0 ? (total - n) / rest : 0.0;
    const double share = 0.5 * (1.0 + cos(3.14159265358979323846 * (n - warmup) / rest));
    return share > 0.0 ? share : 0.0;
}

static void corroborate_shares(void **state) {
    (void)state;
    /* Which counter a row of update k has: hf prints the LR of the update behind it. */
    static const struct {
        const char *contract;
        double behind;
    } contracts[] = {{"hf-4.50", 0.0}, {"hf", -1.0}};
    for (size_t c = 0; c < COUNT_OF(contracts); c++)
        for (int cosine = 0; cosine < 2; cosine++) {
            struct flat flat = flat_of(contracts[c].contract, cosine ? "cosine" : "linear");
            for (uint32_t i = 0; i < 300; i++) {
                struct draws draws = {.key = 5120, .number = i};
                const double warmup = (double)draws_pick(&draws, 20) / 2.0;
                const double total = (double)(draws_pick(&draws, 40) + 1);
                const uint64_t update = 1 + draws_pick(&draws, 44);
                const double used = total > warmup ? total : warmup;
                const double n = (double)update + contracts[c].behind;
                const double share = share_at(&flat, warmup, total, update);
                if (n < used && fabs(share - second(cosine, n, warmup, used)) > 1e-12)
                    fail_msg("%s, %d, draw %u: %.17g, update %d of %g and %g",
                             contracts[c].contract, cosine, i, share, (int)update, warmup, total);
                assert_true(flat.probe.plan.call.total == used);
                assert_true(flat.probe.plan.warmup_updates == warmup);
                /* Update 0 prints what update 1 is to apply. */
                assert_true(
                    share_at(&flat, warmup, total, 0) == second(cosine, 0.0, warmup, used) ||
                    fabs(share_at(&flat, warmup, total, 0) - second(cosine, 0.0, warmup, used)) <
                        1e-12);
            }
            arena_close(&arena);
        }
    struct flat flat = flat_of("hf", "linear");
    flat.left = 2;
    for (size_t left = 2; left < 3; left--) {
        assert_true(flat.left == left);
        (void)share_at(&flat, 3.0, 40.0, 5);
        if (left == 0) break;
    }
    assert_true(flat.left == 0);
    flat.unit = 4.0;
    (void)share_at(&flat, 8.0, 40.0, 5);
    assert_true(flat.probe.plan.warmup_updates == 2.0);
    arena_close(&arena);
}

/* Every share of a schedule in a block lies in its bounds, and each bound is a share of one of its
 * corners, or the peak. */
static void verify_bounds_of_blocks(void **state) {
    (void)state;
    size_t peaks = 0, others = 0;
    for (uint32_t i = 0; i < 400; i++) {
        struct draws draws = {.key = 5121, .number = i};
        const int cosine = (int)draws_pick(&draws, 2);
        struct flat flat = flat_of("hf-4.50", cosine ? "cosine" : "linear");
        struct block block;
        block.warmup[0] = SHORTEST + (double)draws_pick(&draws, 12);
        block.warmup[1] = block.warmup[0] + (double)draws_pick(&draws, 5);
        block.total[0] = 30.0 + (double)draws_pick(&draws, 20);
        block.total[1] = block.total[0] + (double)draws_pick(&draws, 30);
        const uint64_t update = draws_pick(&draws, 28);
        const uint64_t least = draws_pick(&draws, 4), most = least + draws_pick(&draws, 4);
        const struct shares of = shares_of(&flat, &block, update, least, most);
        double low = 2.0, high = 0.0;
        for (uint64_t lag = least; lag <= most; lag++)
            for (int w = 0; w <= 32; w++)
                for (int t = 0; t <= 4; t++) {
                    const double warmup =
                        block.warmup[0] + (block.warmup[1] - block.warmup[0]) * w / 32.0;
                    const double total =
                        block.total[0] + (block.total[1] - block.total[0]) * t / 4.0;
                    const double n = update > lag ? (double)(update - lag) : 0.0;
                    const double share = second(cosine, n, warmup, total);
                    if (share < low) low = share;
                    if (share > high) high = share;
                }
        if (of.low > low + 1e-12 || of.high < high - 1e-12)
            fail_msg("draw %u: [%.9g, %.9g] in [%.9g, %.9g]", i, low, high, of.low, of.high);
        /* The bounds are no wider than the corners ask for, where the peak is not among them. */
        if (fabs(of.low - low) > 1e-9) fail_msg("draw %u: from %.9g, not %.9g", i, of.low, low);
        if (of.high == 1.0) {
            peaks++;
        } else {
            others++;
            if (fabs(of.high - high) > 1e-9) fail_msg("draw %u: %.9g, not %.9g", i, of.high, high);
        }
        arena_close(&arena);
    }
    assert_true(peaks > 40 && others > 40);
}

static void validate_rows_and_halves(void **state) {
    (void)state;
    struct flat flat = flat_of("hf", "linear");
    struct block block = {.warmup = {2.0, 4.0}, .total = {40.0, 90.0}}, other;
    /* Rows 33 at most, the first and the last among them, evenly. */
    series.count = 3;
    pick_rows(&flat, &series);
    assert_true(flat.count == 3 && flat.rows[1] == &points[1] && flat.rows[2] == &points[2]);
    series.count = 33;
    pick_rows(&flat, &series);
    assert_true(flat.count == 33 && flat.rows[17] == &points[17]);
    series.count = 65;
    pick_rows(&flat, &series);
    assert_true(flat.count == 33 && flat.rows[0] == &points[0] && flat.rows[1] == &points[2] &&
                flat.rows[32] == &points[64]);
    /* A warm-up is halved down to a quarter of an update, then a total down to a hundredth. */
    assert_int_equal(halve(&flat, &block, &other), 1);
    assert_true(block.warmup[0] == 2.0 && block.warmup[1] == 3.0 && other.warmup[0] == 3.0 &&
                other.warmup[1] == 4.0);
    assert_true(other.total[0] == 40.0 && other.total[1] == 90.0 && block.total[1] == 90.0);
    block.warmup[1] = 2.25;
    assert_int_equal(halve(&flat, &block, &other), 1);
    assert_true(block.warmup[1] == 2.25 && block.total[0] == 40.0 && block.total[1] == 60.0 &&
                other.total[0] == 60.0 && other.total[1] == 90.0);
    block.total[1] = 40.4;
    assert_int_equal(halve(&flat, &block, &other), 0);
    block.total[1] = 40.5;
    assert_int_equal(halve(&flat, &block, &other), 1);
    block = (struct block){.warmup = {2.0, 2.5}, .total = {40.0, 40.0}};
    flat.unit = 2.0;
    assert_int_equal(halve(&flat, &block, &other), 0);
    block.warmup[1] = 2.75;
    assert_int_equal(halve(&flat, &block, &other), 1);
    /* A row lies behind where the update after it is past the shortest schedule. */
    flat.unit = 2.0;
    flat.rows[0] = &points[0];
    for (uint64_t update = 18; update < 22; update++) {
        points[0].update = update;
        block.total[0] = 40.0;
        assert_int_equal(is_behind(&flat, &block, 0), update > 19);
    }
    /* A peak that no row shows is between two of them in `meets_peak`: two updates about it. */
    flat.unit = 1.0;
    block = (struct block){.warmup = {8.0, 10.0}, .total = {40.0, 40.0}};
    for (uint64_t n = 1; n < 20; n++) {
        const int meets = meets_peak(&flat, &block, n, n);
        if (n < 6 || n > 12) assert_int_equal(meets, 0);
        if (n > 8 && n < 12) assert_int_equal(meets, 1); /* hf prints a counter of n - 1 */
    }
    arena_close(&arena);
}

/* Rows that stand still, of a line of 40 updates without a floor: which peaks print them. */
static void validate_what_follows(void **state) {
    (void)state;
    struct flat flat = flat_of("hf-4.50", "linear");
    const struct block block = {.warmup = {0.0, 0.0}, .total = {40.0, 40.0}};
    flat.count = 3;
    for (size_t i = 0; i < 3; i++) {
        points[i] = (struct series_point){.update = 10 + i, .row = i, .value = 0.75, .quantum = 0};
        flat.rows[i] = &points[i];
    }
    /* Counters 10, 11, 12 leave 30, 29, 28 of 40, and each row wants 30 of its peak: the rows are
       one another's neighbours where 0, 1 and 2 updates were skipped, with a peak of 30 / 32 where
       2, 3 and 4 were. With a larger one the first would stand before itself. */
    for (flat.lag = 0; flat.lag < 6; flat.lag++) {
        assert_int_equal(follows(&flat, &block, 1.0, 1.0), flat.lag >= 2);
        assert_int_equal(follows(&flat, &block, 0.9375, 0.9375), flat.lag >= 4);
        assert_int_equal(follows(&flat, &block, 30.0 / 29.0, 30.0 / 29.0), 0);
    }
    /* Cells of a 40th hold both neighbours. */
    flat.lag = 0;
    for (size_t i = 0; i < 3; i++) {
        points[i].value = 0.725;
        points[i].quantum = 0.05;
    }
    assert_int_equal(follows(&flat, &block, 1.0, 1.0), 1);
    assert_int_equal(follows(&flat, &block, 0.99, 0.99), 0);
    assert_int_equal(follows(&flat, &block, 1.01, 1.01), 0);
    assert_int_equal(refutes_peaks(&flat, &block, 0.99, 1.01, HALVINGS), 0);
    assert_int_equal(refutes_peaks(&flat, &block, 0.5, 0.99, HALVINGS), 1);
    assert_int_equal(refutes_peaks(&flat, &block, 1.05, 2.0, HALVINGS), 1);
    /* [0.5, 2] holds 1, so no halves refute it; [0.95, 0.99] are refuted at once. */
    assert_int_equal(refutes_peaks(&flat, &block, 0.5, 2.0, 0), 0);
    flat.left = 0;
    assert_int_equal(refutes_peaks(&flat, &block, 0.5, 0.99, HALVINGS), 1);
    /* Two rows of which one wants a peak of 1 and the other one of 1.2: [0.5, 2] holds both, and of
       its halves, [1, 2], [1, 1.41] and [1, 1.19], the third is the first that does not. */
    flat.count = 2;
    points[0].value = 0.75;
    points[1].value = 1.2 * 0.725;
    points[0].quantum = points[1].quantum = 1e-6;
    for (int halvings = 0; halvings < 6; halvings++) {
        flat.left = 1000000;
        assert_int_equal(refutes_peaks(&flat, &block, 0.5, 2.0, halvings), halvings >= 3);
        flat.left = 4; /* and nothing without evaluations */
        assert_int_equal(refutes_peaks(&flat, &block, 0.5, 2.0, halvings), 0);
    }
    arena_close(&arena);
}

/* Two updates as high as each other about a peak between them, of which no row shows the peak. */
static void validate_a_peak_between_equal_rows(void **state) {
    (void)state;
    struct flat flat = flat_of("hf-4.50", "linear");
    const struct block block = {.warmup = {2.5, 2.5}, .total = {5.0, 5.0}};
    assert_true(share_at(&flat, 2.5, 5.0, 2) == 0.8 && share_at(&flat, 2.5, 5.0, 3) == 0.8);
    for (uint64_t n = 0; n < 6; n++)
        assert_int_equal(meets_peak(&flat, &block, n, n), n == 2 || n == 3);
    assert_int_equal(meets_peak(&flat, &block, 0, 3), 1);
    assert_int_equal(meets_peak(&flat, &block, 2, 5), 1);
    assert_int_equal(meets_peak(&flat, &block, 0, 1), 0);
    assert_int_equal(meets_peak(&flat, &block, 4, 5), 0);
    arena_close(&arena);
}

/* Three rows that print one LR exactly: no total that reaches the last of them explains those, and
 * shorter ones are not asked, wherever the row before it stands. */
static void validate_totals_from_the_last_row_on(void **state) {
    (void)state;
    for (size_t count = 2; count < 4; count++)
        for (uint64_t last = 4; last < 2000; last = 5 * last + 80) {
            uint64_t skipped = 99;
            open_scene("hf", "linear");
            check.fitted = FIT_OF_WARMUP | FIT_OF_STEPS | FIT_OF_LR;
            known.skips.counted = FIT_COUNTED_EXACTLY;
            series.count = count;
            points[1].update = 2;
            points[2].update = last;
            assert_int_equal(fit_check_refutes_flat(&series, &known, &check, &skipped), count > 2);
            if (count > 2) assert_int_equal(skipped, 0);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_is_bounded),
        cmocka_unit_test(validate_how_many_were_skipped),
        cmocka_unit_test(corroborate_shares),
        cmocka_unit_test(verify_bounds_of_blocks),
        cmocka_unit_test(validate_rows_and_halves),
        cmocka_unit_test(validate_what_follows),
        cmocka_unit_test(validate_a_peak_between_equal_rows),
        cmocka_unit_test(validate_totals_from_the_last_row_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
