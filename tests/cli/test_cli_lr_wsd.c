/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * The two forms of transformers' warmup_stable_decay: of each, healthy logs of a Trainer that shows
 * the LR of this update and of the next one are found and pass, and the other form fails and is
 * named. The forms are written out here after optimization.py (_get_wsd_scheduler_lambda) of
 * 4.48.3, whose warm-up rises from 0, and of 4.49.0, whose warm-up rises from the floor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

struct training {
    int elder;
    double peak, floor; /* the floor as a share */
    int warmup, decay, total, every;
    int next; /* 1: a row shows the LR of the next update, as up to 4.50 */
};

static double rate(const struct training *t, int s) {
    const int stable = t->total - t->warmup - t->decay;
    double factor = 0.0;
    if (s < t->warmup) {
        factor = (double)s / t->warmup;
        return t->peak * (t->elder ? factor : factor * (1.0 - t->floor) + t->floor);
    }
    if (s < t->warmup + stable) return t->peak;
    if (s < t->total)
        factor = 0.5 * (1.0 + cos(3.14159265358979323846 * (s - t->warmup - stable) / t->decay));
    return t->peak * (factor * (1.0 - t->floor) + t->floor);
}

static void write_log(const char *name, const struct training *t) {
    static char text[1 << 17];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "{\"global_step\": %d, \"max_steps\": %d, \"log_history\": [",
                                 t->total, t->total);
    for (int k = t->every; k <= t->total; k += t->every)
        at +=
            (size_t)snprintf(text + at, sizeof text - at,
                             "%s{\"loss\": %.4f, \"learning_rate\": %.17g, \"step\": %d}",
                             k > t->every ? ", " : "", 2.0 + 1.0 / k, rate(t, k - 1 + t->next), k);
    at += (size_t)snprintf(text + at, sizeof text - at, "]}\n");
    assert_true(at < sizeof text);
    helper_write(name, text);
}

static void ask(int code, const char *line, const char *words) {
    struct said said = helper_run(code, line);
    if (strstr(said.out, words) == NULL) fail_msg("%s: expected %s in %s", line, words, said.out);
    helper_free(&said);
}

static const char *name_of(int elder) {
    return elder ? "warmup_stable_decay_old" : "warmup_stable_decay";
}

static void validate_both_forms(void **state) {
    (void)state;
    static const struct training trainings[] = {
        {0, 3e-4, 0.1, 50, 100, 500, 1, 0},
        {0, 3e-4, 0.1, 50, 100, 500, 1, 1},
        {0, 2e-4, 0.07, 40, 160, 800, 10, 0},
        {0, 2e-4, 0.25, 30, 60, 300, 5, 1},
    };
    char line[300], words[100];
    for (size_t i = 0; i < 2 * COUNT_OF(trainings); i++) {
        struct training t = trainings[i / 2];
        t.elder = i % 2 != 0;
        const char *const contract = t.next ? "hf-4.50" : "hf";
        write_log("log", &t);
        snprintf(words, sizeof words, "likeliest: %s %s (decay=%d)", contract, name_of(t.elder),
                 t.decay);
        ask(0, "lr fit log", words);
        snprintf(line, sizeof line, "lr check log --expect %s", contract);
        ask(0, line, name_of(t.elder));
        const int at = snprintf(line, sizeof line,
                                "lr check log --expect %s --lr %g --warmup %d --steps %d --value "
                                "decay=%d --min-lr-ratio %g --schedule ",
                                contract, t.peak, t.warmup, t.total, t.decay, t.floor);
        snprintf(line + at, sizeof line - (size_t)at, "%s", name_of(t.elder));
        ask(0, line, "pass: ");
        snprintf(line + at, sizeof line - (size_t)at, "%s", name_of(!t.elder));
        snprintf(words, sizeof words, "FAIL: fits %s %s (decay=%d)", contract, name_of(t.elder),
                 t.decay);
        ask(1, line, words);
    }
}

/* Without a floor, or without a warm-up, both are one column, which has today's name. */
static void validate_one_column(void **state) {
    (void)state;
    static const struct training trainings[] = {{1, 3e-4, 0.0, 50, 100, 500, 1, 0},
                                                {1, 3e-4, 0.1, 0, 60, 300, 1, 0}};
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        write_log("log", &trainings[i]);
        struct said said = helper_run(0, "lr fit log");
        assert_non_null(strstr(said.out, "likeliest: hf warmup_stable_decay (decay="));
        assert_null(strstr(said.out, "  hf warmup_stable_decay_old (decay="));
        helper_free(&said);
    }
    ask(0,
        "lr check log --expect hf --lr 3e-4 --warmup 0 --steps 300 --value decay=60 "
        "--min-lr-ratio 0.1 --schedule warmup_stable_decay_old",
        "pass: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_both_forms),
        cmocka_unit_test(validate_one_column),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
