/* SPDX-License-Identifier: Apache-2.0
 * labels: cli whole
 * Columns that are one update late or early, or towards a total that is one update longer, asked
 * with more and more of what is true: none passes by numbers that nobody would type, and the same
 * trainings in time do. The schedules are written out here after transformers 4.52
 * optimization.py (_get_linear_schedule_with_warmup_lr_lambda,
 * _get_cosine_schedule_with_warmup_lr_lambda) and Megatron-LM core 0.12
 * optimizer_param_scheduler.py (OptimizerParamScheduler.get_lr). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

enum form { STATE, JSONL, MEGATRON, TABLE };

struct column {
    double peak, floor; /* the floor as an LR */
    int warmup, total;  /* of the schedule */
    int cosine;
    int shift; /* the counter at update k is k + shift: -1 is Trainer's, 0 is what Megatron prints
                */
    int rows, every;
};

static double share(const struct column *c, int counter) {
    const int n = counter < 0 ? 0 : counter;
    if (n < c->warmup) return (double)n / c->warmup * c->peak;
    double left = (double)(c->total - n) / (c->total - c->warmup);
    if (left < 0.0) left = 0.0;
    if (c->cosine) left = 0.5 * (1.0 + cos(3.14159265358979323846 * (1.0 - left)));
    return c->floor + (c->peak - c->floor) * left;
}

/* Writes the column; `said` is the total that the log states, and `print` the format of an LR. */
static void write_log(const char *name, enum form form, const struct column *c, int said,
                      const char *print) {
    static char text[1 << 18];
    size_t at = 0;
#define PUT(...) at += (size_t)snprintf(text + at, sizeof text - at, __VA_ARGS__)
    if (form == STATE)
        PUT("{\"global_step\": %d, \"max_steps\": %d, \"log_history\": [", c->rows, said);
    if (form == TABLE) PUT("step,loss,learning_rate\n");
    for (int k = c->every; k <= c->rows; k += c->every) {
        char lr[40];
        snprintf(lr, sizeof lr, print, share(c, k + c->shift));
        const double loss = 2.0 + 1.0 / k;
        if (form == STATE)
            PUT("%s{\"loss\": %.4f, \"learning_rate\": %s, \"step\": %d}", k > c->every ? ", " : "",
                loss, lr, k);
        else if (form == JSONL)
            PUT("{\"step\": %d, \"loss\": %.4f, \"lr\": %s}\n", k, loss, lr);
        else if (form == TABLE)
            PUT("%d,%.4f,%s\n", k, loss, lr);
        else
            PUT(" [2024-04-06 02:59:36] iteration %8d/%8d | consumed samples: %12d | elapsed time "
                "per iteration (ms): 5444.9 | learning rate: %s | global batch size: %5d | lm "
                "loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations: "
                "%3d | number of nan iterations: %3d |\n",
                k, said, 64 * k, lr, 64, loss, 1.0 + 0.001 * k, 0, 0);
    }
    if (form == STATE) PUT("]}\n");
#undef PUT
    assert_true(at < sizeof text);
    helper_write(name, text);
}

/* Runs a command, and wants its line "what would decide" to hold a text where one is given. */
static void ask(int code, const char *line, const char *needs) {
    struct said said = helper_run(code, line);
    const char *const decide = strstr(said.out, "what would decide: ");
    if (needs != NULL && (decide == NULL || strstr(decide, needs) == NULL))
        fail_msg("%s: %s", line, said.out);
    helper_free(&said);
}

static const struct {
    struct column column;
    enum form form;
    const char *print, *ask, *needs;
} late[] = {
    /* One late: polynomial decay from 5.85e-4 with a warm-up of 4 prints it. */
    {{6e-4, 0.0, 0, 120, 0, -2, 120, 5},
     STATE,
     "%.17g",
     "lr check late --expect hf",
     "--schedule and --lr: lag1 linear, peak 0.0006"},
    {{6e-4, 0.0, 0, 120, 0, -2, 120, 5},
     STATE,
     "%.17g",
     "lr check late --expect hf --steps 120",
     "lag1 linear, peak 0.0006"},
    /* Floors of 0.1067 and 0.1075. */
    {{6e-4, 6e-5, 0, 120, 0, -1, 120, 5},
     MEGATRON,
     "%.6E",
     "lr check late --expect megatron",
     "nemo-rl-megatron linear, peak 0.0006"},
    {{6e-4, 6e-5, 0, 120, 0, -1, 120, 1},
     MEGATRON,
     "%.6E",
     "lr check late --expect megatron --lr 6e-4",
     "--schedule, with its floor where it has one: nemo-rl-megatron linear, peak 0.0006"},
    /* A warm-up and a total of one update more, in samples. */
    {{6e-4, 6e-5, 0, 120, 1, -1, 120, 1},
     MEGATRON,
     "%.17g",
     "lr check late --expect megatron",
     "--lr-decay-samples of the training as --steps: nemo-rl-megatron cosine, peak 0.0006"},
    {{2e-5, 2e-6, 0, 300, 1, -1, 300, 5},
     MEGATRON,
     "%.17g",
     "lr check late --expect megatron --lr 2e-5",
     "--lr-decay-samples of the training as --steps: nemo-rl-megatron cosine, peak 2e-05"},
    /* A plateau of one update in front of a line or a cosine. */
    {{6e-4, 0.0, 0, 120, 0, -2, 120, 1},
     JSONL,
     "%.17g",
     "lr check late --expect hf",
     "lag1 linear, peak 0.0006, no warm-up, total 120 explains the log more simply, as a "
     "scheduler that is one update late"},
    {{2e-5, 0.0, 0, 300, 1, -2, 300, 1},
     JSONL,
     "%.17g",
     "lr check late --expect hf --lr 2e-5",
     "lag1 cosine, peak 2e-05, no warm-up, total 300"},
    /* One early: a schedule named after a floor, without one. */
    {{1e-4, 0.0, 10, 250, 1, 0, 250, 1}, STATE, "%.17g", "lr check late --expect hf", NULL},
    {{1e-4, 0.0, 10, 250, 1, 0, 250, 1},
     STATE,
     "%.17g",
     "lr check late --expect hf --lr 1e-4",
     "hf-4.50 cosine, peak 0.0001"},
    {{1e-4, 0.0, 10, 250, 1, 0, 250, 5},
     STATE,
     "%.17g",
     "lr check late --expect hf --lr 1e-4 --steps 250",
     "hf-4.50 cosine, peak 0.0001"},
    /* A total of one update more is a floor of 0.01 with the log's own. */
    {{3e-4, 0.0, 1, 101, 0, -1, 100, 1},
     STATE,
     "%.17g",
     "lr check late --expect hf --lr 3e-4 --steps 100",
     "a line to 0 with a total of 101, and not 100, prints the same"},
};

static void validate_no_odd_number_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        const struct column *const c = &late[i].column;
        write_log("late", late[i].form, c, c->rows, late[i].print);
        ask(3, late[i].ask, late[i].needs);
        /* In time it passes, whatever was told. The log of Trainer is of one that logs the LR used.
         */
        struct column sound = *c;
        sound.shift = late[i].form == MEGATRON ? 0 : -1;
        sound.total = c->rows;
        write_log("late", late[i].form, &sound, c->rows, late[i].print);
        if (late[i].form != JSONL) ask(0, late[i].ask, NULL);
    }
}

/* Told the schedule, what is early and what is too long still fails. */
static void validate_a_told_schedule_fails(void **state) {
    (void)state;
    static const struct column early = {1e-4, 0.0, 10, 250, 1, 0, 250, 1};
    static const struct column longer = {3e-4, 0.0, 1, 101, 0, -1, 100, 1};
    write_log("early", STATE, &early, 250, "%.17g");
    ask(1, "lr check early --expect hf --lr 1e-4 --steps 250 --schedule cosine", NULL);
    write_log("longer", STATE, &longer, 100, "%.17g");
    ask(1, "lr check longer --expect hf --lr 3e-4 --steps 100 --schedule linear", NULL);
}

/* A schedule that is told without its floor: its default prints other LRs, and that is no bug. */
static void validate_an_assumed_default(void **state) {
    (void)state;
    static const struct column floored = {2e-4, 2e-5, 10, 173, 1, -1, 173, 1};
    static const char told[] = "lr check floor --expect hf --lr 2e-4 --warmup 10 --steps 173";
    char line[200];
    write_log("floor", STATE, &floored, 173, "%.17g");
    snprintf(line, sizeof line, "%s --schedule cosine_with_min_lr", told);
    ask(3, line,
        "--min-lr-ratio or --value: assumed were the defaults of the schedule, which print other "
        "LRs; hf cosine_with_min_lr, peak 0.0002, warm-up 10, total 173, floor 0.1 of the peak "
        "prints these");
    snprintf(line, sizeof line, "%s --schedule cosine_with_min_lr --min-lr-ratio 0.1", told);
    ask(0, line, NULL);
    snprintf(line, sizeof line, "%s --schedule cosine_with_min_lr --min-lr-ratio 0.2", told);
    ask(1, line, NULL);
    snprintf(line, sizeof line, "%s --schedule cosine", told); /* transformers' has no floor */
    ask(1, line, NULL);
}

/* A scheduler that is one update late is no skipped update 1, where nothing shows one. */
static void validate_fit_of_a_late_scheduler(void **state) {
    (void)state;
    static const struct column columns[] = {{5e-5, 0.0, 15, 150, 0, -2, 150, 1},
                                            {3e-4, 0.0, 0, 120, 1, -2, 120, 5},
                                            {2e-5, 0.0, 0, 300, 0, -2, 300, 5}};
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        write_log("fit", i == 0 ? TABLE : STATE, &columns[i], columns[i].rows, "%.17g");
        struct said said = helper_run(3, "lr fit fit");
        assert_non_null(strstr(said.out, "one update late"));
        assert_non_null(strstr(said.out, "skipped: "));
        helper_free(&said);
    }
}

/* Megatron's cosine one update late: a warm-up of one update and a total of one more, in samples,
 * print it, and no row lies behind that total. Where the log's own total is the one that fits, or a
 * round number of samples does, the answer stays. */
static void validate_fit_of_odd_samples(void **state) {
    (void)state;
    static const struct column late_one = {6e-4, 6e-5, 0, 120, 1, -1, 120, 1};
    static const struct column in_time = {6e-4, 6e-5, 0, 120, 1, 0, 120, 1};
    static const struct column longer = {6e-4, 6e-5, 0, 125, 1, 0, 120, 1};
    write_log("fit", MEGATRON, &late_one, 120, "%.17g");
    struct said said = helper_run(3, "lr fit fit");
    assert_non_null(strstr(said.out, "total 7744 samples"));
    assert_non_null(strstr(said.out, "ends at a number of samples that nobody said"));
    helper_free(&said);
    for (int i = 0; i < 2; i++) {
        write_log("fit", MEGATRON, i == 0 ? &in_time : &longer, 120, "%.17g");
        said = helper_run(0, "lr fit fit");
        helper_free(&said);
    }
}

/* "%.4g" writes no exponent from 1e-4 up, and a digit less behind the point in each decade. */
static void validate_significant_digits(void **state) {
    (void)state;
    static const char *const prints[] = {"%.4g", "%.3g"};
    static const struct column columns[] = {{5e-3, 2e-4, 20, 200, 0, 0, 199, 1},
                                            {0.3, 0.01, 20, 200, 1, 0, 199, 1}};
    char line[200];
    for (size_t i = 0; i < COUNT_OF(prints); i++)
        for (size_t c = 0; c < COUNT_OF(columns); c++) {
            write_log("digits.csv", TABLE, &columns[c], 200, prints[i]);
            snprintf(line, sizeof line,
                     "lr check digits.csv --logged --expect megatron --lr %g --warmup 20 --steps "
                     "200 --schedule %s --min-lr-ratio %.17g",
                     columns[c].peak, columns[c].cosine ? "cosine" : "linear",
                     columns[c].floor / columns[c].peak);
            ask(0, line, NULL);
        }
}

/* What was rounded to four decimals is finer where it is larger, and a difference of the fourth one
 * stays one. */
static void validate_rounded_decimals(void **state) {
    (void)state;
    char text[2][4096];
    for (int which = 0; which < 2; which++) {
        size_t at = (size_t)snprintf(text[which], sizeof text[which], "step,grad_norm\n");
        for (int k = 1; k <= 60; k++)
            at += (size_t)snprintf(text[which] + at, sizeof text[which] - at, "%d,%.*f\n", k,
                                   k % 10 == 0 ? 3 : 4,
                                   0.6123 + 0.0137 * k + (which == 1 && k == 55 ? 0.0002 : 0.0));
    }
    helper_write("a.csv", text[0]);
    helper_write("b.csv", text[1]);
    struct said said = helper_run(1, "compare a.csv b.csv");
    assert_non_null(strstr(said.out, "grad_norm"));
    assert_non_null(strstr(said.out, "update 55: 1.3658"));
    helper_free(&said);
}

/* A healthy cosine of Megatron whose floor of 0.01 no row reaches and nobody gave: other contracts
 * print it with the same numbers, and a search for those of Megatron that misses its floor is no
 * failure of the training. */
static void verify_numbers_of_another(void **state) {
    (void)state;
    static const struct column healthy = {4e-6, 4e-8, 527, 5261, 1, 0, 5200, 100};
    write_log("borrowed.csv", TABLE, &healthy, 0, "%.5e");
    ask(3, "lr check borrowed.csv --expect megatron", "both log the same at every update");
    ask(3,
        "lr check borrowed.csv --expect megatron --lr 4e-6 --warmup 527 --steps 5261 "
        "--schedule cosine --min-lr-ratio 0.01",
        "both log the same at every update");
}

/* Floors of no list, as shares and as LRs, of every row and of every tenth: found, and passed in
 * time. What is late, early, or one update shorter than its total passes with none of them. */
static const struct {
    struct column column;
    const char *print, *floor;
} floored[] = {
    {{2e-4, 1.4e-5, 10, 173, 1, -1, 173, 1}, "%.17g", "floor 0.07 of the peak"},
    {{2e-4, 3e-5, 0, 173, 1, -1, 173, 1}, "%.17g", "floor 0.15 of the peak"},
    {{3e-5, 2.1e-6, 40, 800, 1, -1, 800, 10}, "%.17g", "floor 0.07 of the peak"},
    {{3e-5, 1.23e-6, 40, 800, 1, -1, 800, 10}, "%.17g", "floor 0.041 of the peak"},
    {{7e-5, 1.23e-6, 0, 300, 1, -1, 300, 10}, "%.17g", "floor 0.01757 of the peak"},
    {{3e-4, 4.5e-5, 0, 173, 1, -1, 173, 10}, "%.5e", "floor 0.15 of the peak"},
};

static void validate_floors_of_no_list(void **state) {
    (void)state;
    char line[200];
    for (size_t i = 0; i < COUNT_OF(floored); i++) {
        const struct column *const c = &floored[i].column;
        const enum form form = strcmp(floored[i].print, "%.17g") == 0 ? STATE : JSONL;
        write_log("floor", form, c, c->rows, floored[i].print);
        struct said said = form == STATE ? helper_run(0, "lr fit floor")
                                         : helper_run(3, "lr fit floor --steps 173");
        if (strstr(said.out, floored[i].floor) == NULL)
            fail_msg("%s: %s", floored[i].floor, said.out);
        helper_free(&said);
        if (form != STATE) continue;
        ask(0, "lr check floor --expect hf", NULL);
        snprintf(line, sizeof line,
                 "lr check floor --expect hf --lr %g --warmup %d --steps %d --schedule "
                 "cosine_with_min_lr",
                 c->peak, c->warmup, c->total);
        ask(3, line, floored[i].floor);
    }
}

/* The default run asks each column, each mistake and each number of words, and of these three a
 * third of all combinations. */
static void validate_no_solved_floor_passes(void **state) {
    (void)state;
    static const struct { int shift, total; } wrong[] = {{-2, 0}, {0, 0}, {-1, -1}};
    for (size_t i = 0; i < COUNT_OF(floored); i++)
        for (size_t w = 0; w < COUNT_OF(wrong); w++) {
            struct column c = floored[i].column;
            c.shift = wrong[w].shift;
            c.total += wrong[w].total;
            const enum form form = strcmp(floored[i].print, "%.17g") == 0 ? STATE : JSONL;
            write_log("floor", form, &c, c.rows, floored[i].print);
            for (size_t t = 0; t < 4; t++) {
                if ((i + w + t) % helper_size(3, 3, 1) != 0) continue;
                char lr[32], steps[32], warmup[32];
                snprintf(lr, sizeof lr, "%g", c.peak);
                snprintf(steps, sizeof steps, "%d", c.rows);
                snprintf(warmup, sizeof warmup, "%d", c.warmup);
                const char *words[] = {"lr", "check",   "floor", "--expect", "hf",   "--lr",
                                       lr,   "--steps", steps,   "--warmup", warmup, NULL};
                words[5 + 2 * t] = NULL;
                struct said said = helper_say(words, NULL);
                if (said.code == 0)
                    fail_msg("column %zu, shift %d, told %zu: %s", i, c.shift, t, said.out);
                helper_free(&said);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_numbers_of_another),
        cmocka_unit_test(validate_no_odd_number_passes),
        cmocka_unit_test(validate_a_told_schedule_fails),
        cmocka_unit_test(validate_an_assumed_default),
        cmocka_unit_test(validate_fit_of_a_late_scheduler),
        cmocka_unit_test(validate_floors_of_no_list),
        cmocka_unit_test(validate_no_solved_floor_passes),
        cmocka_unit_test(validate_fit_of_odd_samples),
        cmocka_unit_test(validate_significant_digits),
        cmocka_unit_test(validate_rounded_decimals),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
