/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs whose LR went through binary32 and was printed in as few digits as tell it apart, as
 * numpy.float32, JAX, Rust and Java print it, or in 9: the schedule that was computed in binary64
 * must fit, and one that is another must not. The columns are computed here, with the formulas of
 * transformers' get_linear_schedule_with_warmup and get_cosine_schedule_with_warmup. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare.h"
#include "forensics/fit.h"
#include "logs/import.h"

enum { STEPS = 100, WARMUP = 10, TEXT = 1 << 14 };

enum form { SHORTEST, NINE, NINE_AND_ZEROS, FORMS };

struct column {
    int cosine;
    int steps;   /* the total of the schedule */
    double peak; /* its peak */
    int first;   /* update of the first row */
    int ulps;    /* so many numbers of binary32 further from 0 than the nearest */
    enum form form;
};

static double rate_of(const struct column *c, int counter) {
    if (counter < WARMUP) return c->peak * (double)counter / WARMUP;
    const double part = (double)(counter - WARMUP) / (c->steps - WARMUP);
    return c->peak * (c->cosine ? 0.5 * (1.0 + cos(acos(-1.0) * part)) : 1.0 - part);
}

/* The fewest digits that give the number back. */
static void put_number(float number, enum form form, char *out, size_t size) {
    int digits = form == SHORTEST ? 1 : 9;
    if (form == NINE_AND_ZEROS) {
        snprintf(out, size, "%.8e", (double)number);
        return;
    }
    do
        snprintf(out, size, "%.*g", digits, (double)number);
    while (strtof(out, NULL) != number && digits++ < 9);
}

static const struct log *log_of(const struct column *c, struct arena *arena) {
    static char text[TEXT];
    struct log_options options;
    struct log *log;
    size_t length = 0;
    for (int k = c->first; k <= STEPS; k++) {
        char rate[32];
        float number = (float)rate_of(c, k - 1);
        for (int i = 0; i < c->ulps; i++)
            number = number > 0.0f ? nextafterf(number, 1.0f) : number;
        put_number(number, c->form, rate, sizeof rate);
        length += (size_t)snprintf(text + length, TEXT - length,
                                   "{\"step\": %d, \"loss\": %.4f, \"learning_rate\": %s}\n", k,
                                   2.5 - 0.003 * k + 0.1 * sin((double)k * k), rate);
        assert_true(length < TEXT);
    }
    log_options_init(&options);
    assert_int_equal(log_import_bytes("test.jsonl", text, length, &options, arena, &log),
                     STATUS_OK);
    return log;
}

static int32_t check(const struct column *c, struct arena *arena, struct fit_set *out) {
    const struct log *log = log_of(c, arena);
    struct series series;
    struct fit_known known;
    struct fit_check answer;
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    known.request.contract = contract_find("hf");
    known.request.schedule = c->cosine ? "cosine" : "linear";
    known.request.lr = 3e-4;
    known.request.warmup = WARMUP;
    known.request.steps = STEPS;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series), STATUS_OK);
    assert_int_equal(fit_check(&series, &known, 0, arena, &answer), STATUS_OK);
    *out = answer.found;
    return answer.verdict;
}

static void verify_short_rates_fit(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (int cosine = 0; cosine < 2; cosine++)
            for (int first = 1; first < STEPS; first += 45) {
                struct arena arena = ARENA_EMPTY;
                struct fit_set found;
                struct column c = {cosine, STEPS, 3e-4, first, 0, (enum form)form};
                assert_int_equal(check(&c, &arena, &found), FIT_PASS);
                assert_true(found.count > 0 && found.fits[0].segment_count == 1);
                c.steps = STEPS + 1;
                assert_int_equal(check(&c, &arena, &found), FIT_FAIL);
                c.steps = STEPS;
                c.peak = 3e-4 * (1.0 + 1e-6);
                assert_int_equal(check(&c, &arena, &found), FIT_FAIL);
                arena_close(&arena);
            }
}

/* Two machines that compute a schedule by other orders may round it to neighbours of binary32; 1e-6
 * of a rate are 8 to 17 of them. */
static void verify_short_rates_compare(void **state) {
    (void)state;
    static const struct {
        double peak;
        int ulps, same;
    } cases[] = {{3e-4, 0, 1}, {3e-4, 1, 1}, {3e-4 * (1.0 + 1e-6), 0, 0}, {3e-4, 8, 0}};
    for (int form = 0; form < FORMS; form++)
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct arena arena = ARENA_EMPTY;
            const struct column a = {1, STEPS, 3e-4, 1, 0, (enum form)form};
            const struct column b = {1, STEPS, cases[i].peak, 1, cases[i].ulps, (enum form)form};
            const struct compare_input input[2] = {{.log = log_of(&a, &arena)},
                                                   {.log = log_of(&b, &arena)}};
            struct compare_report report;
            assert_int_equal(compare_logs(input, &arena, &report), STATUS_OK);
            assert_int_equal(report.verdict != COMPARE_VERDICT_DIFFERS, cases[i].same);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_short_rates_fit),
        cmocka_unit_test(verify_short_rates_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
