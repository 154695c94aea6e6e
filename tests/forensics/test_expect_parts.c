/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How the expectation of a check is made: which numbers are settled before anything is compared,
 * which are said to be nobody's, what each missing number becomes, and which rows do not agree, for
 * random requests, logs and best fits. The contract answers here with numbers of the test, and what
 * it is asked is held against a second computation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_parts.h"
#include "sched/contract.h"
#define contract_resolve asked_resolve
#define fit_logged asked_logged
#define fit_describe asked_describe
#define fit_counts_refute asked_counts
#define fit_check_settle tested_settle
#define fit_check_lacks_metric tested_lacks
#define fit_check_expect tested_expect
#define fit_check_scale tested_scale
static enum status asked_resolve(const struct contract_request *r, struct arena *a,
                                 struct contract_plan *plan);
static double asked_logged(const struct fit *fit, size_t point, uint64_t update);
static enum status asked_describe(const struct fit *fit, struct arena *a, const char **text);
static int asked_counts(const struct fit *fit, const struct fit_known *k, const struct series *s,
                        double scale, struct fit_refuted *refuted);
int tested_lacks(const struct fit_known *k);
double tested_scale(const struct series *s);
enum status tested_settle(const struct series *s, struct fit_known *k, struct arena *a,
                          struct fit_check *o);
enum status tested_expect(const struct series *s, const struct fit_known *k,
                          const struct fit *skipping, struct arena *a, struct fit_check *o);
#include "forensics/fit_check_expect.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 6, CASES = 12000, MOST = 4 };

static struct draws draws;
static struct arena arena;
static struct series_point points[ROWS + 1];
static struct series series;
static struct fit_known known;
static struct fit_check out;
static struct contract contract;
static struct fit fits[3], skipping; /* the first is the best */
#define best fits[0]
static struct fit_samples samples[3];
static struct fit_skip skip = {.first = 2, .last = 2, .count = 1};
static const struct fit_part part = {.point = 1};
static double logged[ROWS];

/* What the contract is asked, in order, and what it answers of a counter unit. */
static struct contract_request asked[MOST];
static size_t asked_count;
static double units;
static int counted, refutes;

#define UNKNOWN ((double)NAN)

static int same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void answer(const struct contract_request *r, struct contract_plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->contract = r->contract;
    plan->schedule = sched_find("linear");
    plan->steps = r->steps > 0 ? r->steps : (uint64_t)(r->epochs * 10.0);
    plan->warmup_updates = 5.5;
    plan->call.warmup =
        units * (isnan(r->warmup_ratio) ? r->warmup : floor(r->warmup_ratio * (double)plan->steps));
    if (isnan(r->warmup) && isnan(r->warmup_ratio)) plan->call.warmup = 0.0;
    plan->skipped = r->skipped;
    plan->skipped_count = r->skipped_count;
}

static enum status asked_resolve(const struct contract_request *r, struct arena *a,
                                 struct contract_plan *plan) {
    assert_true(a == &arena && asked_count < MOST);
    asked[asked_count++] = *r;
    answer(r, plan);
    return STATUS_OK;
}

static double asked_logged(const struct fit *fit, size_t point, uint64_t update) {
    assert_ptr_equal(fit, out.expected);
    assert_true(point < series.count && update == points[point].update);
    return logged[point];
}

static enum status asked_describe(const struct fit *fit, struct arena *a, const char **text) {
    assert_true(a == &arena && fit == out.expected && text == &fit->text);
    *text = "described";
    return STATUS_OK;
}

static int asked_counts(const struct fit *fit, const struct fit_known *k, const struct series *s,
                        double scale, struct fit_refuted *refuted) {
    assert_true(fit == out.expected && k == &known && s == &series);
    assert_true(scale == tested_scale(&series));
    counted++;
    *refuted = (struct fit_refuted){.point = 3, .skipped = 2, .expected = 0.25};
    return refutes;
}

/* ---- random cases ---- */

static double one_of(const double *from, size_t size) {
    return from[draws_pick(&draws, (uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

static const char *const names[] = {"linear", "cosine", "reduce_lr_on_plateau", "none"};

static void draw_request(void) {
    struct contract_request *const r = &known.request;
    fit_known_init(&known);
    contract = (struct contract){.name = "made", .default_schedule = "constant"};
    contract.family = seldom(3) ? "megatron" : "hf";
    contract.unit = seldom(3) ? CONTRACT_UNIT_SAMPLE : CONTRACT_UNIT_UPDATE;
    contract.logged = seldom(4) ? CONTRACT_LOGGED_USED : CONTRACT_LOGGED_NEXT;
    contract.epoch_rule = (int32_t)draws_pick(&draws, 4);
    r->contract = &contract;
    r->schedule = seldom(3) ? NULL : names[draws_pick(&draws, COUNT_OF(names))];
    r->lr = ONE_OF(UNKNOWN, 3e-4);
    r->warmup = ONE_OF(UNKNOWN, UNKNOWN, 4.0, 0.0);
    r->warmup_ratio = isnan(r->warmup) ? ONE_OF(UNKNOWN, 0.25, 0.5) : UNKNOWN;
    r->steps = (uint64_t)ONE_OF(0, 0, 50, 1, 7);
    r->epochs = r->steps > 0 ? 0.0 : ONE_OF(0, 0, 1, 3.5);
    r->tokens = (uint64_t)ONE_OF(0, 1, 5);
    r->updates_per_epoch = (uint64_t)ONE_OF(0, 1, 8);
    r->dataset = (uint64_t)ONE_OF(0, 0, 100);
    r->min_lr_ratio = ONE_OF(UNKNOWN, 0.1);
    r->metric_count = draws_pick(&draws, 2);
    known.run_steps = (uint64_t)ONE_OF(0, 0, 60, 1);
    known.samples = seldom(3) ? &samples[0] : NULL;
    known.counts_hold = seldom(2);
    units = ONE_OF(0.0, 1.0, 4.0);
}

static void draw_rows(void) {
    series = (struct series){points, draws_pick(&draws, ROWS + 1)};
    for (size_t i = 0; i <= ROWS; i++) {
        points[i] = (struct series_point){.update = 3 + i * (1 + draws_pick(&draws, 4)), .row = i};
        points[i].value = ONE_OF(1e-4, 2e-4, 0.0, -3e-4, 1.0, UNKNOWN, (double)INFINITY);
        if (!seldom(3)) points[i].value = 1e-4 * (double)(1 + draws_pick(&draws, 4));
        points[i].quantum = ONE_OF(0.0, 1e-5);
        if (i < ROWS) logged[i] = seldom(4) ? 7e-4 : points[i].value;
    }
}

static void draw_fits(void) {
    for (size_t i = 0; i < COUNT_OF(samples); i++)
        samples[i] = (struct fit_samples){.total = 4000.0 + (double)i};
    static const char *const classes[] = {"olmo-core.linear", "cosine", "polynomial",
                                          "megatron.cosine", "constant_with_warmup"};
    memset(fits, 0, sizeof fits);
    for (size_t i = 0; i < COUNT_OF(fits); i++) {
        fits[i].schedule = sched_find(classes[draws_pick(&draws, COUNT_OF(classes))]);
        assert_non_null(fits[i].schedule);
        fits[i].takes_warmup = seldom(3) ? 0 : 1;
    }
    best.lr = 5e-4;
    best.steps = (uint64_t)ONE_OF(0, 1, 80);
    best.warmup = ONE_OF(0, 3.4, 3.6, 79, 80, 81, 49, 50, 1e6);
    best.epoch_updates = (uint64_t)ONE_OF(0, 1, 12);
    best.in_samples = seldom(3) ? 1 : 0;
    best.samples = seldom(2) ? &samples[1] : NULL;
    skipping = (struct fit){.skips = &skip, .skip_count = seldom(2) ? 1 : 0, .parts = &part};
    skipping.part_count = seldom(2) ? 1 : 0;
    skipping.simplicity = 0.5;
    skipping.samples = seldom(2) ? &samples[2] : NULL;
    static const uint64_t at[] = {2};
    skipping.plan.skipped = at;
    skipping.plan.skipped_count = 1;
    memset(&out, 0, sizeof out);
    out.found = (struct fit_set){.series = &series, .fits = fits, .last = 44};
    out.found.count = seldom(4) ? 0 : 1 + draws_pick(&draws, 3);
    refutes = seldom(2);
    asked_count = 0;
    counted = 0;
}

static void draw_case(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0xe59e), .number = number};
    arena_close(&arena);
    draw_request();
    draw_rows();
    draw_fits();
}

/* ---- what is wanted ---- */

static void require_request(uint32_t number, const struct contract_request *is,
                            const struct contract_request *as) {
    if (is->contract != as->contract || is->schedule != as->schedule || !same(is->lr, as->lr) ||
        !same(is->warmup, as->warmup) || !same(is->warmup_ratio, as->warmup_ratio) ||
        is->steps != as->steps || is->epochs != as->epochs || is->tokens != as->tokens ||
        is->updates_per_epoch != as->updates_per_epoch || is->dataset != as->dataset ||
        !same(is->min_lr_ratio, as->min_lr_ratio) || is->skipped != as->skipped ||
        is->skipped_count != as->skipped_count || is->metric_count != as->metric_count)
        fail_msg("case %u: lr %g, warm-up %g or %g, steps %ju, epochs %g, tokens %ju for %g, %g or "
                 "%g, %ju, %g, %ju",
                 number, is->lr, is->warmup, is->warmup_ratio, (uintmax_t)is->steps, is->epochs,
                 (uintmax_t)is->tokens, as->lr, as->warmup, as->warmup_ratio, (uintmax_t)as->steps,
                 as->epochs, (uintmax_t)as->tokens);
}

static int is_feedback(const struct contract_request *r) {
    return r->schedule != NULL && strcmp(contract.family, "hf") == 0 &&
           strcmp(r->schedule, "reduce_lr_on_plateau") == 0;
}

/* Whether the numbers are samples, of which the log says how they were counted. */
static int in_samples(void) {
    return known.samples != NULL && contract.unit == CONTRACT_UNIT_SAMPLE &&
           contract.logged == CONTRACT_LOGGED_NEXT;
}

static int no_warmup(const struct contract_request *r) {
    return isnan(r->warmup) && isnan(r->warmup_ratio);
}

static void corroborate_settling(void **state) {
    (void)state;
    size_t ratios = 0, derived = 0, feedback = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct contract_request want[MOST], r;
        struct contract_plan plan, probe;
        size_t count = 0;
        uint32_t nobody = 0, log = 0;
        draw_case(number);
        r = known.request;
        assert_int_equal(tested_lacks(&known) != 0, is_feedback(&r) && r.metric_count == 0);
        if (is_feedback(&r)) {
            feedback++;
            if (no_warmup(&r)) r.warmup = 0.0;
            for (size_t i = 0; i < series.count && known.run_steps == 0; i++)
                r.steps = points[i].update > r.steps ? points[i].update : r.steps;
        }
        if (isnan(r.lr)) nobody |= FIT_OF_LR;
        if (no_warmup(&r)) nobody |= FIT_OF_WARMUP;
        if (r.schedule == NULL) nobody |= FIT_OF_SCHEDULE;
        if (r.schedule == NULL && isnan(r.min_lr_ratio)) nobody |= FIT_OF_FLOOR;
        if (r.steps == 0 && r.epochs == 0.0) {
            if (known.run_steps > 0) log = FIT_OF_STEPS;
            if (known.run_steps == 0) nobody |= FIT_OF_STEPS;
            r.steps = known.run_steps;
        } else if (r.steps == 0 && contract.epoch_rule != CONTRACT_EPOCH_UNSHARDED) {
            want[count] = r;
            if (isnan(r.lr)) want[count].lr = 1.0;
            if (no_warmup(&r)) want[count].warmup = 0.0;
            if (r.tokens == 0) want[count].tokens = 1;
            answer(&want[count++], &plan);
            r.steps = plan.steps;
            r.epochs = 0.0;
            derived++;
        }
        if (!isnan(r.warmup_ratio) && r.steps > 0) {
            want[count] = r;
            if (isnan(r.lr)) want[count].lr = 1.0;
            if (r.updates_per_epoch == 0) want[count].updates_per_epoch = 1;
            if (r.tokens == 0) want[count].tokens = 1;
            want[count + 1] = want[count];
            want[count + 1].warmup = 1.0;
            want[count + 1].warmup_ratio = UNKNOWN;
            answer(&want[count], &plan);
            answer(&want[count + 1], &probe);
            count += 2;
            r.warmup_ratio = UNKNOWN;
            r.warmup = units == 0.0 ? 5.5 : plan.call.warmup / probe.call.warmup;
            ratios++;
        }
        out.fitted = 32;
        out.from_log = 64; /* what was said before stays */
        assert_int_equal(tested_settle(&series, &known, &arena, &out), STATUS_OK);
        require_request(number, &known.request, &r);
        assert_int_equal(out.fitted, nobody | 32u);
        assert_int_equal(out.from_log, log | 64u);
        assert_int_equal(asked_count, count);
        for (size_t i = 0; i < count; i++)
            require_request(number, &asked[i], &want[i]);
    }
    assert_true(ratios > 500 && derived > 500 && feedback > 500);
}

/* The request with all that was missing. */
static void want_complete(struct contract_request *r, double scale) {
    const struct fit *const fit =
        out.found.count == 0 || (best.in_samples && known.samples == NULL) ? NULL : &best;
    if (r->schedule == NULL && r->warmup > 0.0) { /* the first of the family that takes one */
        for (size_t i = fit == NULL ? 0 : out.found.count; i-- > 0;) {
            const char *const bare = sched_bare_name(fits[i].schedule);
            if (fits[i].takes_warmup && sched_find_in(contract.family, bare) == fits[i].schedule)
                r->schedule = bare;
        }
        if (r->schedule == NULL) r->schedule = contract.default_schedule;
    }
    if (r->schedule == NULL) {
        const char *const bare = fit == NULL ? "none" : sched_bare_name(best.schedule);
        r->schedule =
            sched_find_in(contract.family, bare) == NULL ? contract.default_schedule : bare;
    }
    if (isnan(r->lr)) r->lr = fit == NULL ? scale : 5e-4;
    if (r->steps == 0 && r->epochs == 0.0) {
        r->steps = fit != NULL && fit->steps > 0 ? fit->steps : 44;
        if (in_samples()) r->steps = 4000;
        if (known.run_steps > 0) r->steps = known.run_steps;
    }
    if (no_warmup(r)) {
        r->warmup = fit == NULL ? 0.0 : floor(best.warmup + 0.5);
        if (r->steps > 0 && r->warmup >= (double)r->steps) r->warmup = 0.0;
    }
    if (r->updates_per_epoch == 0 && r->dataset == 0)
        r->updates_per_epoch = fit == NULL || best.epoch_updates == 0 ? 1 : best.epoch_updates;
    if (r->tokens == 0) r->tokens = 1;
}

static double want_scale(void) {
    double scale = 0.0;
    for (size_t i = series.count; i-- > 0;)
        if (isfinite(points[i].value)) scale = fmax(scale, fabs(points[i].value));
    return scale == 0.0 ? 1.0 : scale;
}

static void corroborate_expectations(void **state) {
    (void)state;
    size_t agree = 0, refuted = 0, skipped = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
        const int with = seldom(2), all = seldom(3);
        const double scale = want_scale();
        for (size_t i = 0; i < series.count && all; i++)
            logged[i] = points[i].value;
        assert_true(tested_scale(&series) == scale);
        struct contract_request r = known.request;
        want_complete(&r, scale);
        if (with && skipping.skip_count + skipping.part_count > 0) {
            r.skipped = skipping.plan.skipped;
            r.skipped_count = 1;
        }
        const size_t before = with ? 0 : draws_pick(&draws, 2);
        out.bad_points = before;
        assert_int_equal(tested_expect(&series, &known, with ? &skipping : NULL, &arena, &out),
                         STATUS_OK);
        assert_int_equal(asked_count, 1);
        require_request(number, &asked[0], &r);
        const struct fit *const fit = out.expected;
        assert_true(fit->contract == &contract && fit->schedule == sched_find("linear"));
        assert_true(fit->schedule_name == r.schedule && fit->lr == r.lr && fit->warmup == 5.5);
        assert_true(fit->steps == fit->plan.steps && same(fit->floor_ratio, r.min_lr_ratio));
        assert_true(fit->stride == 1.0 && fit->segment_count == 1);
        assert_true(fit->segments[0].scale == 1.0 && fit->segments[0].event == FIT_PLAIN);
        assert_string_equal(fit->parameters, "");
        assert_string_equal(fit->text, "described");
        const int by_samples = in_samples();
        assert_int_equal(fit->in_samples, by_samples);
        const struct fit_samples *const of = !by_samples                        ? NULL
                                             : with && skipping.samples != NULL ? &samples[2]
                                             : out.found.count > 0 && best.samples != NULL
                                                 ? &samples[1]
                                                 : &samples[0];
        assert_ptr_equal(fit->samples, of);
        assert_ptr_equal(fit->skips, with ? &skip : NULL);
        assert_int_equal(fit->skip_count, with ? skipping.skip_count : 0);
        assert_ptr_equal(fit->parts, with ? &part : NULL);
        assert_int_equal(fit->part_count, with ? skipping.part_count : 0);
        assert_true(fit->simplicity == (with ? 0.5 : 0.0));
        size_t bad = before, first = 0;
        double expected = 0.0;
        for (size_t i = 0; i < series.count; i++) {
            if (fit_matches(&points[i], logged[i], scale, NULL)) continue;
            if (bad == 0) first = i, expected = logged[i];
            bad++;
        }
        const int asks = bad == 0 && known.counts_hold;
        assert_int_equal(counted, asks);
        if (asks && refutes) bad = 1, first = 3, expected = 0.25;
        assert_int_equal(out.bad_points, bad);
        assert_int_equal(out.first, first);
        assert_true(same(out.first_expected, expected));
        agree += bad == 0;
        refuted += asks && refutes;
        skipped += r.skipped_count;
    }
    assert_true(agree > 500 && refuted > 200 && skipped > 500);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_settling),
        cmocka_unit_test(corroborate_expectations),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
