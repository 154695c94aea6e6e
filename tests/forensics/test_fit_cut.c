/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs that were copied before their run had ended, with skipped updates, of which nobody says the
 * total: a stretch between two skipped updates gives it. They must be named as skipped, and not as
 * a schedule that was held; the expectation that they hold must not fail; and where the log begins
 * behind its warm-up, the doctor must not count updates that nothing shows. The columns are
 * computed here, with the formulas of transformers' get_linear_schedule_with_warmup and
 * get_cosine_schedule_with_warmup, and a counter that stands still at a skipped update, as
 * accelerate's scheduler.py has it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "logs/import.h"

enum { STEPS = 100, WARMUP = 10, LAST = 95, TEXT = 1 << 14, LATE = 31 };

/* What a log says of its gradient norms. */
enum norms { NONE, SHOWS, FINITE };

struct cut {
    int skipped[2];
    enum norms norms;
    int first;         /* update of the first row */
    int32_t verdict;   /* of `lr check --expect hf` */
    const char *reads; /* what the first fit says of its events */
};

static double rate_of(int cosine, int counter) {
    if (counter < WARMUP) return 3e-4 * (double)counter / WARMUP;
    const double part = (double)(counter - WARMUP) / (STEPS - WARMUP);
    return 3e-4 * (cosine ? 0.5 * (1.0 + cos(acos(-1.0) * part)) : 1.0 - part);
}

static int is_skipped(const struct cut *cut, int update) {
    return update == cut->skipped[0] || update == cut->skipped[1];
}

static const struct log *log_of(const struct cut *cut, int cosine, struct arena *arena) {
    static char text[TEXT];
    struct log_options options;
    struct log *log;
    size_t length = 0;
    for (int k = 1, counter = 0; k <= LAST; counter += !is_skipped(cut, k), k++) {
        char norm[40] = "";
        const double finite = 1.0 + 0.3 * sin(7.0 * k);
        if (k < cut->first) continue;
        if (cut->norms == SHOWS && is_skipped(cut, k))
            snprintf(norm, sizeof norm, "\"grad_norm\": NaN, ");
        else if (cut->norms != NONE)
            snprintf(norm, sizeof norm, "\"grad_norm\": %.4f, ", finite);
        length += (size_t)snprintf(text + length, TEXT - length,
                                   "{\"step\": %d, \"loss\": %.4f, %s\"learning_rate\": %.17g}\n",
                                   k, 2.5 - 0.003 * k + 0.1 * sin((double)k * k), norm,
                                   rate_of(cosine, counter));
        assert_true(length < TEXT);
    }
    log_options_init(&options);
    assert_int_equal(log_import_bytes("test.jsonl", text, length, &options, arena, &log),
                     STATUS_OK);
    return log;
}

static struct fit_known fit_log(const struct log *log, struct arena *arena, struct fit_set *out) {
    static struct series series;
    struct fit_known known;
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, arena, out), STATUS_OK);
    return known;
}

static const char *remark_of(const struct doctor_report *report, const char *name) {
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++)
        if (strcmp(report->findings[i].id, name) == 0) return report->findings[i].words;
    return "";
}

static void validate_one(const struct cut *cut, int cosine) {
    struct arena arena = ARENA_EMPTY;
    const struct log *log = log_of(cut, cosine, &arena);
    struct fit_set set;
    struct fit_check check;
    struct fit_known known = fit_log(log, &arena, &set);
    if (cut->reads == NULL) {
        assert_int_equal(set.count, 0);
    } else {
        assert_true(set.count > 0);
        if (strstr(set.fits[0].text, cut->reads) == NULL || set.fits[0].steps != STEPS)
            fail_msg("%s: expected %s, got %s", cosine ? "cosine" : "linear", cut->reads,
                     set.fits[0].text);
    }
    known.request.contract = contract_find("hf");
    assert_int_equal(fit_check(set.series, &known, 0, &arena, &check), STATUS_OK);
    if (check.verdict != cut->verdict) fail_msg("verdict %d: %s", check.verdict, check.words);
    arena_close(&arena);
}

static void validate_logs_cut_off(void **state) {
    (void)state;
    static const struct cut cuts[] = {
        {{60, 63}, SHOWS, 1, FIT_PASS, "skipped: update 60, update 63"},
        {{5, 60}, SHOWS, 1, FIT_PASS, "skipped: update 5, update 60"},
        {{5, 7}, SHOWS, 1, FIT_PASS, "skipped: update 5, update 7"},
        {{60, 63}, NONE, 1, FIT_PASS, "skipped: update 60, update 63"},
        {{5, 60}, NONE, 1, FIT_PASS, "skipped: update 5, update 60"},
        /* The norms are finite, so nothing was skipped where the schedule was held. */
        {{60, 63}, FINITE, 1, FIT_FAIL, "held 1 time at update 61; held 1 time at update 64"}};
    for (size_t c = 0; c < COUNT_OF(cuts); c++)
        for (int cosine = 0; cosine < 2; cosine++)
            validate_one(&cuts[c], cosine);
}

/* No row shows the warm-up, so with a total and a warm-up that are five less the rows of the first
 * log need five more skipped updates in front of them, and those of the second one need seven. */
static void validate_what_the_doctor_counts(void **state) {
    (void)state;
    static const struct {
        struct cut cut;
        const char *says; /* "": nothing */
    } cases[] = {
        {{{60, 63}, NONE, LATE, 0, NULL}, "holds at 2 updates"},
        {{{60, 63}, SHOWS, LATE, 0, NULL}, "2 updates were skipped"},
        {{{5, 60}, SHOWS, LATE, 0, NULL}, "1 update was skipped"},
        {{{5, 7}, NONE, LATE, 0, NULL}, ""},
        {{{5, 60}, NONE, 1, 0, NULL}, "holds at 2 updates"},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (int cosine = 0; cosine < 2; cosine++) {
            struct arena arena = ARENA_EMPTY;
            struct doctor_options options;
            struct doctor_report report;
            struct fit_set set;
            const struct log *log = log_of(&cases[c].cut, cosine, &arena);
            fit_log(log, &arena, &set);
            doctor_options_init(&options);
            assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
            const char *const got = remark_of(&report, "skipped_updates");
            if (cases[c].says[0] == '\0' ? got[0] != '\0' : strstr(got, cases[c].says) == NULL)
                fail_msg("case %zu: expected \"%s\", got \"%s\"", c, cases[c].says, got);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_logs_cut_off),
        cmocka_unit_test(validate_what_the_doctor_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
