/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * lr check and lr fit: exit statuses, JSON, JUnit XML, and annotations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define NUMBERS " --lr 5e-7 --schedule linear --warmup 0 --steps 5"

static const char used[] = "step,learning_rate\n1,5.00e-07\n2,4.00e-07\n3,3.00e-07\n4,2.00e-07\n"
                           "5,1.00e-07\n";
static const char next[] = "step,learning_rate\n1,4.00e-07\n2,3.00e-07\n3,2.00e-07\n4,1.00e-07\n"
                           "5,0.00e+00\n";

static json_t *json_of(int code, const char *line) {
    struct said said = helper_run(code, line);
    json_error_t error;
    json_t *json = json_loads(said.out, 0, &error);
    assert_non_null(json);
    helper_free(&said);
    return json;
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text == NULL ? "" : text;
}

static void validate_pass(void **state) {
    (void)state;
    helper_write("used.csv", used);
    json_t *json = json_of(0, "lr check used.csv --json --logged --expect hf" NUMBERS);
    assert_true(json_is_true(json_object_get(json, "pass")));
    assert_true(json_is_true(json_object_get(json, "decidable")));
    assert_true(json_is_null(json_object_get(json, "first_mismatch")));
    assert_true(json_array_size(json_object_get(json, "fits")) > 0);
    assert_string_equal(text_of(json_object_get(json, "expected"), "contract"), "hf");
    json_decref(json);
    helper_accept(0, "lr check used.csv --expect hf" NUMBERS);
}

static void validate_fail(void **state) {
    (void)state;
    helper_write("next.csv", next);
    json_t *json = json_of(1, "lr check next.csv --json --expect hf" NUMBERS);
    const json_t *first = json_object_get(json, "first_mismatch");
    assert_true(json_is_false(json_object_get(json, "pass")));
    assert_int_equal(json_integer_value(json_object_get(first, "update")), 1);
    assert_int_equal(json_integer_value(json_object_get(first, "line")), 2);
    assert_true(json_real_value(json_object_get(first, "logged")) == 4e-7);
    assert_true(json_real_value(json_object_get(first, "expected")) == 5e-7);
    assert_int_equal(json_integer_value(json_object_get(json, "mismatches")), 5);
    assert_non_null(strstr(text_of(json, "words"),
                           "fits olmo-core: every LR is one update ahead of "
                           "hf"));
    assert_string_equal(text_of(json, "bug"), "lr_ahead_by_one or log_next_lr");
    json_decref(json);
}

/* A line from 7e-4 to 0 in 30 updates, of which floor(lr * 1e7) / 1e7 is printed: as rounded
 * numbers half of them are none of it, and a warm-up or a bug was named. */
static void validate_cut_digits(void **state) {
    (void)state;
    static const char *const says[] = {("lr check cut.csv --logged --expect hf --lr 7e-4 "
                                        "--schedule linear --warmup 0 --steps 30"),
                                       "lr check cut.csv --logged --expect hf --lr 7e-4 --steps 30",
                                       "lr fit cut.csv --contract hf --steps 30"};
    helper_write("cut.csv", "step,lr\n1,0.0007000\n2,0.0006766\n3,0.0006533\n4,0.0006300\n"
                            "5,0.0006066\n6,0.0005833\n7,0.0005599\n8,0.0005366\n9,0.0005133\n"
                            "10,0.0004900\n11,0.0004666\n12,0.0004433\n13,0.0004200\n14,0.0003966\n"
                            "15,0.0003733\n16,0.0003500\n17,0.0003266\n18,0.0003033\n19,0.0002799\n"
                            "20,0.0002566\n");
    for (size_t i = 0; i < COUNT_OF(says); i++) {
        struct said said = helper_run(0, says[i]);
        assert_non_null(strstr(said.out, "note: the digits of lr are cut off and not rounded"));
        assert_non_null(strstr(said.out, "hf linear, peak 0.0007, no warm-up, total 30"));
        helper_free(&said);
    }
    struct said said = helper_run(1, "lr check cut.csv --logged --expect hf --lr 7e-4 "
                                     "--schedule cosine --warmup 0 --steps 30");
    assert_null(strstr(said.out, "cut off"));
    helper_free(&said);
    said = helper_run(0, "doctor cut.csv");
    assert_non_null(strstr(said.out, "cut off"));
    assert_non_null(strstr(said.out, "Nothing found"));
    helper_free(&said);
}

static double line_of_1000(int counter) {
    return 5e-7 * (1000 - counter) / 1000.0;
}

/* Writes 120 rows with three digits, and the same with all. */
static void write_three_digits(double (*rate)(int counter), int ahead) {
    static char few[8192], all[8192];
    size_t a = (size_t)snprintf(few, sizeof few, "step,loss,lr\n"),
           b = (size_t)snprintf(all, sizeof all, "step,loss,lr\n");
    for (int k = 1; k <= 120; k++) {
        a += (size_t)snprintf(few + a, sizeof few - a, "%d,%.6f,%.2e\n", k, 2.0 + 1.0 / k,
                              rate(k - 1 + ahead));
        b += (size_t)snprintf(all + b, sizeof all - b, "%d,%.6f,%.17g\n", k, 2.0 + 1.0 / k,
                              rate(k - 1));
    }
    helper_write("few.csv", few);
    helper_write("all.csv", all);
}

static double warm_cosine(int counter) {
    static const double pi = 0x1.921fb54442d18p+1;
    return counter < 100 ? 5e-9 * counter : 2.5e-7 * (1.0 + cos(pi * (counter - 100) / 900.0));
}

/* In 1000 updates an update moves the third digit by half a step, so LRs of one update ahead look
 * like digits that were cut off: the schedule fails all the same. And an LR that has just begun to
 * fall behind its warm-up is no constant one with cut digits. */
static void validate_ahead_is_not_cut(void **state) {
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        write_three_digits(line_of_1000, ahead);
        struct said said = helper_run(
            ahead, "lr check few.csv --expect hf --schedule linear --lr 5e-7 --steps 1000");
        assert_null(strstr(said.out, "cut off"));
        assert_int_equal(strstr(said.out, "every LR is one update ahead") != NULL, ahead);
        helper_free(&said);
        said = helper_run(ahead, "compare all.csv few.csv");
        assert_null(strstr(said.out, "cut off"));
        helper_free(&said);
    }
    write_three_digits(warm_cosine, 0);
    struct said said = helper_run(0, "compare all.csv few.csv");
    assert_null(strstr(said.out, "cut off"));
    helper_free(&said);
    said = helper_run(0, "doctor few.csv");
    assert_null(strstr(said.out, "cut off"));
    helper_free(&said);
}

/* The LRs of torch's CosineAnnealingWarmRestarts(T_0=20) in a real training of 60 updates: each
 * cycle has a counter of its own there, and transformers takes the place in a cycle out of the
 * number of cycles, which costs digits. */
static void validate_restarts(void **state) {
    (void)state;
    static const char *const cycle[] = {"0.001",
                                        "0.0009938441702975688",
                                        "0.0009755282581475768",
                                        "0.0009455032620941839",
                                        "0.0009045084971874737",
                                        "0.0008535533905932737",
                                        "0.0007938926261462366",
                                        "0.0007269952498697733",
                                        "0.0006545084971874737",
                                        "0.0005782172325201155",
                                        "0.0005",
                                        "0.0004217827674798847",
                                        "0.00034549150281252633",
                                        "0.00027300475013022663",
                                        "0.00020610737385376348",
                                        "0.00014644660940672628",
                                        "9.549150281252633e-05",
                                        "5.449673790581611e-05",
                                        "2.4471741852423235e-05",
                                        "6.15582970243117e-06"};
    static const char line[] = "lr check restarts.csv --expect hf --schedule cosine_with_restarts "
                               "--lr 1e-3 --steps 60 --warmup 0 --logged --value num_cycles=";
    static char text[8192], asked[256];
    size_t length = (size_t)snprintf(text, sizeof text, "step,learning_rate\n");
    for (size_t i = 0; i < 60; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%zu,%s\n", i + 1, cycle[i % 20]);
    helper_write("restarts.csv", text);
    snprintf(asked, sizeof asked, "%s3", line);
    helper_accept(0, asked);
    snprintf(asked, sizeof asked, "%s2", line);
    helper_accept(1, asked);
    /* A thousand ulps of this LR are no rounding. */
    char *at = strstr(text, "58,5.4496737905816");
    assert_non_null(at);
    at[17] = '4';
    helper_write("restarts.csv", text);
    snprintf(asked, sizeof asked, "%s3", line);
    helper_accept(1, asked);
}

/* A log that prints the LR that was used is one row behind what hf-4.50 prints. The training is the
 * same, and log_next_lr, which shifts the other way, must not be named. */
static void validate_behind(void **state) {
    (void)state;
    /* The finite gradient norms say that update 1 was not skipped. */
    helper_write("quiet.csv",
                 "step,learning_rate,grad_norm\n1,5e-07,1.5\n2,4e-07,1.4\n3,3e-07,1.3\n"
                 "4,2e-07,1.2\n5,1e-07,1.1\n");
    json_t *json = json_of(1, "lr check quiet.csv --json --expect hf-4.50" NUMBERS);
    assert_non_null(
        strstr(text_of(json, "words"),
               "fits hf, which trains as hf-4.50 and only logs the LR of another update: "
               "every printed LR is one update behind hf-4.50"));
    assert_true(json_is_null(json_object_get(json, "bug")));
    json_decref(json);
}

/* Settings that a console log begins with: bf16 has no loss scaler, so a column that needs a
 * skipped update has another cause; fp16 and what only looks like the setting say nothing. */
static void validate_bf16_has_no_scaler(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int bf16;
    } cases[] = {{"  bf16 ............................................ True\n", 1},
                 {"  bf16 ............................................ False\n", 0},
                 {"  fp16 ............................................ True\n", 0},
                 {"  bf16_reduce ..................................... True\n", 0},
                 {"[2025-01-01 00:00:00,000] [INFO] [config.py:1000:print]   bfloat16_enabled "
                  "............. True\n",
                  1},
                 {"bf16=True,\n", 1},
                 {"bf16=False,\n", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[4096];
        int length = snprintf(text, sizeof text, "%s", cases[i].line);
        for (int k = 1; k <= 12; k++) /* update 5 was skipped, and the row does not tell */
            length +=
                snprintf(text + length, sizeof text - (size_t)length,
                         " iteration %8d/      20 | consumed samples: %d | learning rate: %.6E "
                         "| global batch size: 8 | lm loss: 2.0E+00 |\n",
                         k, 8 * k, 1e-4 * (20.0 - k + (k >= 5)) / 20.0);
        helper_write("precision.log", text);
        helper_accept(cases[i].bf16 ? 1 : 0, "lr check precision.log --expect megatron --schedule "
                                             "linear --lr 1e-4 --warmup 0 --steps 20");
    }
}

/* Without a gradient norm the same column may be that of the expectation with update 1 skipped. */
static void validate_early_skip_is_undecided(void **state) {
    (void)state;
    helper_write("used.csv", used);
    json_t *json = json_of(3, "lr check used.csv --json --expect hf-4.50" NUMBERS);
    assert_non_null(strstr(text_of(json, "words"), "skipped: update 1"));
    assert_string_equal(text_of(json, "rival"), "hf");
    assert_non_null(strstr(text_of(json, "needs"), "gradient norm"));
    json_decref(json);
    json = json_of(0, "lr fit used.csv --json --lr 5e-7 --steps 5 --contract hf");
    assert_true(
        json_is_null(json_object_get(json_array_get(json_object_get(json, "fits"), 0), "skipped")));
    json_decref(json);
}

/* Peak, warm-up and total of the best fit are those that were expected, but it is a cosine with a
 * floor: its LRs are not those of the expected linear schedule one update later. */
static void validate_other_shape_is_no_shift(void **state) {
    (void)state;
    helper_write("shape.csv", "step,learning_rate,grad_norm\n1,5e-07,1\n2,5e-07,2\n3,4e-07,2\n"
                              "4,3e-07,2\n5,2e-07,2\n");
    json_t *json = json_of(1, "lr check shape.csv --json --expect hf-4.50" NUMBERS);
    assert_string_equal(text_of(json, "words"),
                        "fits nemo-rl-megatron cosine, peak 5e-07, no warm-up, total 5, floor 0.4 "
                        "of the peak");
    assert_true(json_is_null(json_object_get(json, "bug")));
    json_decref(json);
}

/* The trap: equal columns of LR from trainings that differ. */
static void validate_undecided(void **state) {
    (void)state;
    helper_write("next.csv", next);
    json_t *json =
        json_of(3, "lr check next.csv --json --expect olmo-core --min-lr-ratio 0" NUMBERS);
    assert_true(json_is_null(json_object_get(json, "pass")));
    assert_true(json_is_false(json_object_get(json, "decidable")));
    assert_true(strlen(text_of(json, "rival")) > 0);
    assert_non_null(strstr(text_of(json, "needs"), "no LR column"));
    json_decref(json);
    helper_accept(0, "lr check next.csv --logged --expect olmo-core --min-lr-ratio 0" NUMBERS);
    helper_write("one.csv", "step,learning_rate\n1,5e-07\n");
    helper_accept(3, "lr check one.csv --expect hf");
    helper_write("flat.csv", "step,learning_rate\n1,5e-07\n2,5e-07\n3,5e-07\n4,5e-07\n");
    helper_accept(3, "lr check flat.csv --expect hf --schedule constant");
    helper_write("none.csv", "step,loss\n1,0.5\n2,0.4\n");
    helper_accept(3, "lr check none.csv --expect hf");
}

/* The format names a framework, and another one is expected: then the log is of neither by its
 * format alone, and no rival may be left out. This LR is that of a loop which moves its scheduler
 * in front of the optimizer, so every update trains with the LR of the next. */
static void verify_another_framework_than_the_formats(void **state) {
    static const char *const shapes[] = {
        "Step %d | loss:2.5 lr:%.17g tokens_per_second_per_gpu:100 \n", /* torchtune's */
        ("step %d/5 | loss 2.500000 (+nanz)| norm 1.5000 (+nanz)| lr %.2e | 20.00 ms | 61.1%% bf16 "
         "MFU | 1234 tok/s\n"), /* llm.c's */
        "step %d/5 | loss 2.5 | lr %.6e\n" /* a script's */};
    static const int codes[] = {0, 3, 3};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        static char text[4096];
        size_t length = 0;
        for (int k = 1; k <= 5; k++)
            length += (size_t)snprintf(text + length, sizeof text - length, shapes[i], k,
                                       5e-7 * (5 - k) / 5);
        helper_write("named.txt", text);
        struct said said = helper_run(codes[i], "lr check named.txt --expect torchtune" NUMBERS);
        assert_non_null(
            strstr(said.out, codes[i] == 0 ? "pass: " : "and just as well with olmo-core"));
        helper_free(&said);
    }
}

static void validate_fit_lists_both(void **state) {
    (void)state;
    int hf = 0, olmo = 0;
    helper_write("next.csv", next);
    json_t *json = json_of(3, "lr fit next.csv --json --lr 5e-7 --steps 5 --warmup 0");
    const json_t *fits = json_object_get(json, "fits");
    for (size_t i = 0; i < json_array_size(fits); i++) {
        hf |= strcmp(text_of(json_array_get(fits, i), "contract"), "hf-4.50") == 0;
        olmo |= strcmp(text_of(json_array_get(fits, i), "contract"), "olmo-core") == 0;
    }
    assert_true(hf && olmo);
    json_decref(json);
}

/* A warm-up of 40 in the configuration and a scheduler that moves twice per update: the column is
 * that of a warm-up of 20. */
static void verify_pace_that_is_not_tested(void **state) {
    static char text[8192];
    size_t length = (size_t)snprintf(text, sizeof text, "step,learning_rate\n");
    (void)state;
    for (int k = 0; k < 60; k++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,%.17g\n", k + 1,
                                   2e-5 * (k < 20 ? (double)(2 * k) / 40.0 : 1.0));
    helper_write("twice.csv", text);
    json_t *json = json_of(0, "lr check twice.csv --json --logged --expect hf");
    assert_string_equal(text_of(json, "untested"),
                        "how often the scheduler moves, since nobody gave the warm-up (--warmup): "
                        "twice per update, with a warm-up of 40, it prints the same");
    json_decref(json);
    struct said said = helper_run(0, "lr check twice.csv --logged --expect hf");
    assert_non_null(strstr(said.out, "\nnot tested: how often the scheduler moves, since"));
    helper_free(&said);
    json = json_of(0, "lr check twice.csv --json --logged --expect hf --warmup 20");
    assert_true(json_is_null(json_object_get(json, "untested")));
    json_decref(json);
    json = json_of(1, "lr check twice.csv --json --logged --expect hf --warmup 40");
    assert_string_equal(text_of(json, "words"),
                        "fits hf constant_with_warmup, peak 2e-05, warm-up 20; or hf "
                        "constant_with_warmup, peak 2e-05, warm-up 40, counter moves 2 per update");
    assert_string_equal(text_of(json, "bug"),
                        "other_warmup or xP_scheduler or per_microbatch_stepping");
    const json_t *expected = json_object_get(json, "expected");
    assert_string_equal(text_of(expected, "schedule"), "constant_with_warmup");
    assert_true(json_real_value(json_object_get(expected, "warmup")) == 40.0);
    json_decref(json);
}

static void validate_errors(void **state) {
    (void)state;
    helper_write("used.csv", used);
    helper_refuse(2, "lr check used.csv", "--expect");
    helper_refuse(2, "lr check used.csv --expect hff", "did you mean");
    helper_refuse(2, "lr check missing.csv --expect hf", "missing.csv");
    helper_refuse(2, "lr check used.csv --expect hf --lr five", "--lr");
    helper_refuse(2, "lr check used.csv --expect hf --lr -1", "--lr: expected a finite number");
    helper_refuse(2, "lr check used.csv --expect hf --value bogus=1", "has a key \"bogus\"");
    helper_refuse(2, "lr fit used.csv --lr 0", "--lr: expected a finite number above 0, got 0");
    helper_refuse(2, "lr fit used.csv --value bogus=1", "has a key \"bogus\"");
    helper_refuse(2, "lr fit used.csv --value power=abc", "--value: power: expected a number");
    helper_refuse(2, "lr fit used.csv --schedule bogus", "no contract has a schedule \"bogus\"");
    helper_refuse(2, "lr fit used.csv --contract hf --schedule linear --value power=2",
                  "schedule linear has no parameter \"power\"");
    helper_refuse(2, "lr fit used.csv --warmup -3", "--warmup: expected from 0 to 2^53");
    helper_accept(1, "lr fit used.csv --schedule polynomial --value power=2");
}

/* Updates 6 and 7 were run again after the resume. Update 3 was run once, and before both parts. */
static void validate_skips_of_a_resumed_log(void **state) {
    (void)state;
    static const int updates[] = {1, 2, 3, 4, 5, 6, 7, 6, 7, 8, 9, 10, 11, 12};
    char text[1024] = "step,learning_rate,loss\n";
    for (size_t i = 0; i < COUNT_OF(updates); i++) {
        const int done = updates[i] - 1 - (updates[i] > 3); /* 3 was skipped, and hf holds there */
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%.17g,%d\n", updates[i],
                 1e-4 * (20 - done) / 20.0, updates[i]);
    }
    helper_write("resumed.csv", text);
    helper_accept(0, "lr check resumed.csv --expect hf --lr 1e-4 --schedule linear --warmup 0 "
                     "--steps 20 --skipped 3 --logged");
    helper_refuse(2, "lr fit resumed.csv --skipped 3,7",
                  "--skipped: update 7 may have been run twice, as the resume in line 9 of "
                  "resumed.csv falls back; ");
    helper_refuse(2, "lr fit resumed.csv --skipped 1000000",
                  "--skipped: update 1000000 lies behind the last one of resumed.csv, which is 12");
    helper_refuse(2, "lr check resumed.csv --expect hf --skipped 6", "--skipped: update 6");
}

/* Update 40 was skipped, and hf holds there; a list that says 41 is no answer beside one more hold
 * and one jump. */
static void verify_a_wrong_list_of_skips_is_told(void **state) {
    (void)state;
    static char text[8192] = "step,learning_rate,loss\n";
    for (int k = 1; k <= 100; k++) {
        const int done = k - 1 - (k > 40);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%.17g,%d\n", k,
                 done < 10 ? 1e-4 * done / 10.0 : 1e-4 * (100 - done) / 90.0, k);
    }
    helper_write("held.csv", text);
    struct said said = helper_run(0, "lr fit held.csv --contract hf --steps 100 --skipped 40");
    assert_null(strstr(said.out, "contradicts"));
    helper_free(&said);
    said = helper_run(3, "lr fit held.csv --contract hf --steps 100 --skipped 41");
    assert_non_null(strstr(said.out, "the log contradicts the skipped updates that --skipped "));
    helper_free(&said);
    /* hf comes second here, and holds elsewhere; the first fit is of a scheduler that goes on. */
    said = helper_run(3, "lr fit held.csv --schedule linear --steps 100 --skipped 60");
    assert_non_null(strstr(said.out, "remark: fits that contradict the skipped updates that "
                                     "--skipped names, as their schedule stands still or moves on "
                                     "elsewhere: 3"));
    helper_free(&said);
}

/* The LR that Aim wrote as a table is a line of 2e-7 per update, and ends before it shows more. */
static void validate_a_table_of_aim(void **state) {
    (void)state;
    struct said said = helper_run(
        0,
        "lr fit " TWINSTEP_SOURCE_DIR
        "/tests/logs/fixtures/csv/aim-learning_rate.csv --map lr_logged=value --contract hf-4.50");
    assert_non_null(strstr(said.out, "8 values"));
    assert_non_null(strstr(said.out, "still warming up at the last row: peak at least 8e-06 "
                                     "(8e-06 assumed)"));
    helper_free(&said);
}

static void validate_annotations(void **state) {
    (void)state;
    helper_write("a,b%.csv", next);
    struct said said = helper_run(1, "lr check a,b%.csv --github --expect hf" NUMBERS);
    assert_non_null(strstr(said.out, "\n::error file=a%2Cb%25.csv,line=2,title=learning rate "
                                     "differs::update 1 (line 2): 4e-07"));
    helper_free(&said);
}

static void validate_junit(void **state) {
    (void)state;
    size_t length;
    helper_write("next.csv", next);
    helper_write("used.csv", used);
    struct said said = helper_run(1, "lr check next.csv --junit f.xml --expect hf" NUMBERS);
    helper_free(&said);
    char *xml = helper_read("f.xml", &length);
    assert_non_null(strstr(xml, "tests=\"1\" failures=\"1\""));
    assert_non_null(strstr(xml, "<failure message=\"update 1 (line 2)"));
    free(xml);
    helper_accept(0, "lr check used.csv --logged --junit p.xml --expect hf" NUMBERS);
    xml = helper_read("p.xml", &length);
    assert_non_null(strstr(xml, "failures=\"0\" errors=\"0\" skipped=\"0\""));
    free(xml);
    helper_refuse(2, "lr check used.csv --junit no/such.xml --expect hf" NUMBERS, "no/such.xml");
}

/* Writes a log in which update `first` + 2 of 8 was skipped: Megatron keeps the LR there, and says
 * so in the line. */
static void write_megatron(const char *name, int first) {
    static const char *const rates[] = {"7.000000E-05", "6.000000E-05", "6.000000E-05",
                                        "5.000000E-05", "4.000000E-05", "3.000000E-05",
                                        "2.000000E-05", "1.000000E-05"};
    char text[4096];
    size_t length = 0;
    for (int i = 0; i < 8; i++)
        length += (size_t)snprintf(
            text + length, sizeof text - length,
            " iteration %d/ %d | consumed samples: %d | learning rate: %s | global batch size: 8 | "
            "lm loss: 2.%d00000E+00 | loss scale: 1.0 | number of skipped iterations: %d | number "
            "of nan iterations: 0 |\n",
            first + i, first + 7, 8 * (first + i), rates[i], 9 - i, i == 2);
    helper_write(name, text);
}

static void validate_skipped_by_the_log(void **state) {
    (void)state;
    const char *line = "lr check meg.txt --expect megatron --schedule linear --lr 8e-5 --steps 8";
    write_megatron("meg.txt", 1);
    struct said said = helper_run(0, line);
    assert_non_null(strstr(said.out, "skipped updates: 1, as the log says"));
    helper_free(&said);
    said = helper_run(1, "lr check meg.txt --expect megatron --schedule linear --lr 8e-5 --steps 8 "
                         "--skipped 5");
    assert_null(strstr(said.out, "as the log says"));
    helper_free(&said);
    /* A skip late in the log is found as well; but rows that do not begin with update 1 cannot say
     * what was skipped before them. */
    write_megatron("late.txt", 1001);
    said = helper_run(1, "lr check late.txt --expect megatron --schedule linear --lr 8e-3 --steps "
                         "1008 --warmup 0");
    assert_null(strstr(said.out, "as the log says"));
    helper_free(&said);
    said =
        helper_run(0, "lr fit late.txt --contract megatron --schedule linear --lr 0.01008 --steps "
                      "1008 --warmup 0 --skipped 1003");
    assert_non_null(strstr(said.out, "peak 0.01008"));
    helper_free(&said);
}

/* For rows without numbers of updates a fit is shown but decides nothing. With numbers the same
 * rows decide. */
static void validate_guessed_updates(void **state) {
    (void)state;
    helper_write("console.txt", "{'loss': 0.69, 'learning_rate': 5e-05, 'epoch': 0.2}\n"
                                "{'loss': 0.68, 'learning_rate': 3.75e-05, 'epoch': 0.4}\n"
                                "{'loss': 0.67, 'learning_rate': 2.5e-05, 'epoch': 0.6}\n"
                                "{'loss': 0.66, 'learning_rate': 1.25e-05, 'epoch': 0.8}\n");
    struct said said = helper_run(3, "lr fit console.txt");
    assert_non_null(strstr(said.out, "update numbers: this log prints none"));
    helper_free(&said);
    helper_write("state.json",
                 "{\"max_steps\": 4, \"log_history\": ["
                 "{\"step\": 1, \"learning_rate\": 5e-05}, {\"step\": 2, \"learning_rate\": "
                 "3.7500000000000003e-05}, {\"step\": 3, \"learning_rate\": 2.5e-05}, "
                 "{\"step\": 4, \"learning_rate\": 1.25e-05}]}");
    said = helper_run(0, "lr fit state.json");
    /* The answer comes first, and says how many others there are. */
    const char *const answer = "likeliest: hf linear, peak 5e-05, no warm-up, total 4\n  (";
    assert_int_equal(strncmp(said.out, answer, strlen(answer)), 0);
    assert_non_null(strstr(said.out, " apply others)\n"));
    assert_null(strstr(said.out, "update numbers"));
    assert_non_null(strstr(said.out, "\n  1  hf linear, peak 5e-05, no warm-up, total 4"));
    assert_null(strstr(said.out, "also that of"));
    helper_free(&said);
    /* In a file of no framework, the name is that of a habit: others print the column, too. */
    helper_write("rates.csv",
                 "step,lr\n1,5e-05\n2,3.7500000000000003e-05\n3,2.5e-05\n4,1.25e-05\n");
    said = helper_run(3, "lr fit rates.csv");
    assert_non_null(strstr(said.out,
                           "the column does not say which framework wrote it, and is also "
                           "that of: "));
    helper_free(&said);
}

/* verl prints three decimals, in which every usual LR is 0.000: nothing is refuted and nothing is
 * told. An LR of 0.1 would have been printed. */
static void validate_digits_that_tell_nothing(void **state) {
    (void)state;
    helper_write("verl.log",
                 "step:1 - actor/lr:0.000 - actor/pg_loss:0.101 - actor/grad_norm:1.5\n"
                 "step:2 - actor/lr:0.000 - actor/pg_loss:0.102 - actor/grad_norm:1.4\n"
                 "step:3 - actor/lr:0.000 - actor/pg_loss:0.103 - actor/grad_norm:1.3\n"
                 "step:4 - actor/lr:0.000 - actor/pg_loss:0.101 - actor/grad_norm:1.6\n");
    struct said said = helper_run(3, "lr fit verl.log");
    assert_non_null(strstr(said.out, "The printed digits can tell nothing: every learning rate "
                                     "prints as 0 in steps of 0.001.\n"));
    assert_null(strstr(said.out, "Nothing fits"));
    helper_free(&said);
    json_t *json = json_of(3, "lr fit verl.log --json");
    const json_t *why = json_object_get(json, "why");
    assert_int_equal(json_array_size(why), 2);
    assert_string_equal(json_string_value(json_array_get(why, 0)), "constant");
    assert_string_equal(json_string_value(json_array_get(why, 1)), "lost");
    json_decref(json);
    const char *const check =
        "lr check verl.log --expect hf --schedule linear --steps 4 --warmup 0 ";
    char line[160];
    snprintf(line, sizeof line, "%s--lr 1e-6", check);
    said = helper_run(3, line);
    helper_free(&said);
    snprintf(line, sizeof line, "%s--lr 0.1", check);
    said = helper_run(1, line);
    helper_free(&said);
}

/* A line that ends at half of its peak may be a schedule that moves at every second update: the
 * exit status is 3 until somebody says that it is the floor. */
static void validate_half_speed(void **state) {
    (void)state;
    char text[4096] = "{\"max_steps\": 40, \"log_history\": [";
    for (int k = 1; k <= 40; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s{\"step\": %d, \"learning_rate\": %.17g}", k > 1 ? ", " : "", k,
                 5e-5 * (1.0 - k / 80.0));
    strcat(text, "]}");
    helper_write("half.json", text);
    struct said said = helper_run(3, "lr fit half.json");
    assert_int_equal(strncmp(said.out, "likeliest, but undecided: ", 26), 0);
    assert_non_null(strstr(said.out, "because: fit 1 is also printed by a decay to 0"));
    assert_non_null(strstr(said.out, "every second update"));
    helper_free(&said);
}

/* Writes what transformers prints of a cosine to 0 at every `every`-th update, and at update 1. */
static void write_cosine(const char *path, int every) {
    char text[8192] = "{\"max_steps\": 100, \"log_history\": [";
    for (int k = 1; k <= 100; k++) {
        if (k > 1 && k % every != 0) continue;
        const double done = k - 1 < 10 ? 0.0 : (k - 11) / 90.0;
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s{\"step\": %d, \"learning_rate\": %.17g}", k > 1 ? ", " : "", k,
                 3e-6 * (k - 1 < 10 ? (k - 1) / 10.0
                                    : 0.5 * (1.0 + cos(3.14159265358979323846 * done))));
    }
    strcat(text, "]}");
    helper_write(path, text);
}

/* The bug of hf-4.51 is the length of its total: with the total that the log says, its column is
 * that of hf, and whoever names it is told no less than without a name. lag1 is a bug of the
 * column, which a skipped update 1 prints, too. */
static void verify_a_named_era_is_decided(void **state) {
    (void)state;
    write_cosine("era.json", 5);
    static const char *const commands[] = {"lr fit era.json", "lr fit era.json --contract hf",
                                           "lr fit era.json --contract hf-4.51"};
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        struct said said = helper_run(0, commands[i]);
        assert_int_equal(strncmp(said.out, "likeliest: hf", 13), 0);
        assert_null(strstr(said.out, "because: fit"));
        helper_free(&said);
    }
}

/* Asks about a log, under a contract, and returns whether the answer is undecided for these words.
 */
static int is_doubted(const char *log, const char *options, const char *words) {
    char line[160];
    snprintf(line, sizeof line, "lr fit %s %s", log, options);
    struct said said = helper_run(words != NULL ? 3 : 0, line);
    const int doubted = words != NULL && strstr(said.out, words) != NULL;
    helper_free(&said);
    return doubted;
}

/* A plateau and a cosine, with an update on the plateau whose gradient norm is not finite: the
 * total is 1,000 where the scheduler stood still there and 1,001 where it went on. */
static void verify_a_skip_on_a_plateau_counts(void **state) {
    (void)state;
    static char text[65536];
    const char *const words = "the log shows a skipped update while the LR stands";
    size_t length = (size_t)sprintf(text, "step,lr,grad_norm\n");
    for (int k = 1, n = 0; k <= 950; k++) {
        const double done = fmax(0.0, (n - 800) / 200.0);
        const double share = n < 100 ? n / 100.0 : 0.5 * (1.0 + cos(3.14159265358979323846 * done));
        length += (size_t)sprintf(text + length, "%d,%.17g,%s\n", k, 3e-4 * share,
                                  k == 400 ? "nan" : "1.25");
        n += k != 400;
    }
    helper_write("wsd.csv", text);
    assert_true(is_doubted("wsd.csv", "", words));
    assert_true(is_doubted("wsd.csv", "--contract hf", words));
    assert_false(is_doubted("wsd.csv", "--contract hf --steps 1000", NULL));
    assert_false(is_doubted("wsd.csv", "--contract lightning-step", NULL));
    struct said said = helper_run(3, "lr check wsd.csv --expect hf");
    assert_non_null(strstr(said.out, words));
    helper_free(&said);
    said = helper_run(0, "lr check wsd.csv --expect hf --steps 1000");
    assert_non_null(strstr(said.out, "total 1000; skipped: "));
    helper_free(&said);
    helper_accept(0, "lr check wsd.csv --expect lightning-step");
}

/* Rows of a decay of 1 - sqrt that are a half and 0.2929 of the peak: they are no drops of
 * ReduceLROnPlateau, unless somebody says that they are, or each stands for a while. */
static void verify_a_decay_is_no_drop(void **state) {
    (void)state;
    const char *const words = "does not hold the LR for two of them: a decay prints the same";
    const char *const top = "step,lr\n110,2.00000e-04\n120,2.00000e-04\n130,2.00000e-04\n"
                            "140,2.00000e-04\n150,2.00000e-04\n160,2.00000e-04\n";
    char text[512];
    snprintf(text, sizeof text, "%s170,1.00000e-04\n180,5.85786e-05\n", top);
    helper_write("decay.csv", text);
    snprintf(text, sizeof text,
             "%s170,1.00000e-04\n180,1.00000e-04\n190,5.85786e-05\n200,5.85786e-05\n", top);
    helper_write("drops.csv", text);
    assert_true(is_doubted("decay.csv", "", words));
    assert_false(is_doubted("decay.csv", "--schedule reduce_lr_on_plateau", NULL));
    assert_false(is_doubted("drops.csv", "", NULL));
    struct said said = helper_run(3, "lr check decay.csv --expect megatron");
    assert_non_null(strstr(said.out, "where it does, and a decay prints the same"));
    helper_free(&said);
}

/* A row every five updates of Megatron's WSD of 200 updates, whose end no row shows, and of another
 * one with a decay of a fifth: four skipped updates on the plateau of a total of 196, and
 * torchtitan's decay by a share, print the same. */
static void verify_a_cut_decay_leaves_the_total_open(void **state) {
    (void)state;
    static char text[65536];
    size_t length = (size_t)sprintf(text, "step,lr\n");
    for (int k = 65; k <= 198; k += 5)
        length += (size_t)sprintf(text + length, "%d,%.17g\n", k,
                                  8e-5 * (k <= 160 ? 1.0 : 2.0 * pow(0.5, (k - 160) / 40.0) - 1.0));
    helper_write("cut.csv", text);
    assert_true(is_doubted("cut.csv", "", "needs skipped updates on its plateau"));
    struct said said = helper_run(0, "doctor cut.csv");
    assert_null(strstr(said.out, "skipped_updates"));
    helper_free(&said);
    length = (size_t)sprintf(text, "step,lr\n");
    for (int k = 1; k <= 2685; k++) {
        const double done = k > 2262 ? (k - 2262) / 565.0 : 0.0;
        length += (size_t)sprintf(
            text + length, "%d,%.3e\n", k,
            2.5e-3 * (k < 20 ? k / 20.0 : 0.5 * (1.0 + cos(3.14159265358979323846 * done))));
    }
    helper_write("share.csv", text);
    assert_true(is_doubted("share.csv", "", "has a decay that is a share of a total"));
}

/* Megatron's WSD up to a row of its decay, and of transformers', whose one row inside of the
 * warm-up stands at a half: a decay of 529 updates from a peak of 0.00080001 prints three digits of
 * the one of 530 from 0.0008, and a warm-up of 48 prints the half one update sooner than the one
 * of 50. */
static void verify_a_cut_decay_has_its_own_numbers(void **state) {
    (void)state;
    static char text[65536];
    size_t length = (size_t)sprintf(text, "step,lr\n");
    for (int k = 1; k <= 5076; k += 25) {
        const double left = k <= 4770 ? 1.0 : 2.0 * pow(0.5, (k - 4770) / 530.0) - 1.0;
        length +=
            (size_t)sprintf(text + length, "%d,%.2e\n", k, 8e-4 * (k < 530 ? k / 530.0 : left));
    }
    helper_write("coarse.csv", text);
    assert_true(is_doubted("coarse.csv", "", "has a peak that nobody would type"));
    length = (size_t)sprintf(text, "step,lr\n");
    for (int k = 25; k <= 2300; k += 25) {
        const double done = fmax(0.0, (k - 2090) / 232.0);
        length += (size_t)sprintf(
            text + length, "%d,%.17g\n", k,
            4e-4 * (k < 50 ? k / 50.0 : 0.5 * (1.0 + cos(3.14159265358979323846 * done))));
    }
    helper_write("half.csv", text);
    struct said said = helper_run(3, "lr fit half.csv");
    assert_non_null(strstr(said.out, "  megatron wsd (decay=232, decay_style=cosine), peak 0.0004, "
                                     "warm-up 50, total 2322\n"));
    assert_non_null(strstr(said.out, "  hf warmup_stable_decay (decay=232), peak 0.0004, "
                                     "warm-up 48, total 2321\n"));
    helper_free(&said);
}

/* A row every 100 updates leaves 204 warm-ups at the knee, of which 195 is odd. Accelerate with
 * four processes prints what its scheduler prints that moves four times per update, with a total
 * and a warm-up four times as long. */
static void verify_odd_warmups_between_far_rows(void **state) {
    (void)state;
    char text[1024] = "step,lr\n";
    for (int k = 100; k <= 1900; k += 100)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%.3e\n", k,
                 2e-5 * (k < 195 ? k / 195.0 : (1950.0 - k) / 1755.0));
    helper_write("far.csv", text);
    struct said said = helper_run(0, "lr fit far.csv --contract accelerate --processes 4");
    assert_non_null(strstr(said.out, "accelerate linear, peak 2e-05, warm-up 195, total 1950"));
    helper_free(&said);
    said = helper_run(3, "lr check far.csv --expect accelerate --processes 4 --lr 2e-5");
    assert_non_null(
        strstr(said.out, "expected: accelerate linear, peak 2e-05, warm-up 195, total 1950\n"));
    helper_free(&said);
}

/* An answer that is undecided says which fit of the list raises the doubt, and why. */
static void verify_a_doubt_has_a_number(void **state) {
    (void)state;
    helper_write("next.csv", next);
    write_cosine("era.json", 5);
    struct said said = helper_run(3, "lr fit next.csv --lr 5e-7 --steps 5 --warmup 0");
    assert_int_equal(strncmp(said.out, "likeliest, but undecided: ", 26), 0);
    unsigned fit = 0;
    const char *const because = strstr(said.out, "because: fit ");
    assert_non_null(because);
    assert_int_equal(sscanf(because, "because: fit %u explains the rows about as simply", &fit), 1);
    char line[16];
    snprintf(line, sizeof line, "\n%3u  ", fit);
    const char *const listed = strstr(said.out, line);
    assert_true(fit > 1 && listed != NULL);
    const char *const applies = strstr(listed, "applies ");
    assert_true(applies != NULL && applies[strlen("applies ")] != 'A');
    helper_free(&said);
    json_t *json = json_of(3, "lr fit next.csv --json --lr 5e-7 --steps 5 --warmup 0");
    const json_t *const doubt = json_object_get(json, "doubt");
    assert_int_equal(json_integer_value(json_object_get(doubt, "fit")), fit);
    assert_non_null(strstr(text_of(doubt, "words"), "applies other LRs"));
    json_decref(json);
    json = json_of(0, "lr fit era.json --json");
    assert_true(json_is_null(json_object_get(json, "doubt")));
    json_decref(json);
}

/* The rows are 5 updates apart and show the next LR; a given spacing or total decides. */
static void validate_log_every(void **state) {
    (void)state;
    helper_write("every.txt", "{'loss': 0.69, 'learning_rate': 3.75e-05, 'epoch': 0.5}\n"
                              "{'loss': 0.68, 'learning_rate': 2.5e-05, 'epoch': 1.0}\n"
                              "{'loss': 0.67, 'learning_rate': 1.25e-05, 'epoch': 1.5}\n"
                              "{'loss': 0.6612, 'learning_rate': 0.0, 'epoch': 2.0}\n");
    const char *check = "lr check every.txt --logged --expect hf-4.50 --schedule linear --lr 5e-5 "
                        "--warmup 0 ";
    char line[256];
    const char *const more[] = {"", "--log-every 5", "--steps 20", "--steps 20 --log-every 10"};
    const int exits[] = {3, 0, 0, 1};
    for (size_t i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "%s%s", check, more[i]);
        struct said said = helper_run(exits[i], line);
        assert_non_null(strstr(said.out, "update numbers: this log prints none"));
        helper_free(&said);
    }
    helper_write("used.csv", used);
    struct said said = helper_run(2, "lr fit used.csv --log-every 5");
    assert_non_null(strstr(said.err, "--log-every: used.csv prints update numbers"));
    helper_free(&said);
}

/* A Trainer's console of 100 rows, one every 10 updates, whose scheduler begins anew at update 500.
 * With its total the rows are numbered as in a log of the whole run, the bug is named, and only
 * --log-every is asked for, which makes a failure of it. */
static void validate_a_bug_on_a_console(void **state) {
    (void)state;
    static char text[100 * 80];
    size_t filled = 0;
    for (int k = 10; k <= 1000; k += 10) {
        const int n = k < 500 ? k - 1 : k - 490;
        const double lr = 5e-5 * (n < 100 ? n / 100.0 : (1000.0 - n) / 900.0);
        filled += (size_t)snprintf(text + filled, sizeof text - filled,
                                   "{'loss': 0.69, 'learning_rate': %.10e, 'epoch': %.2f}\n", lr,
                                   k / 500.0);
    }
    helper_write("anew.txt", text);
    struct said said = helper_run(3, "lr check anew.txt --expect hf --steps 1000");
    assert_non_null(strstr(said.out, "a row every 10 updates, as in a log that goes up to"));
    assert_non_null(strstr(said.out, "known as: scheduler_not_restored"));
    assert_non_null(strstr(said.out, "what would decide: update numbers, which this log does not "
                                     "print: --log-every N (the Trainer's logging_steps)\n"));
    helper_free(&said);
    said = helper_run(1, "lr check anew.txt --expect hf --steps 1000 --log-every 10");
    assert_non_null(strstr(said.out, "known as: scheduler_not_restored"));
    helper_free(&said);
    said = helper_run(3, "lr check anew.txt --expect hf");
    assert_non_null(strstr(said.out, "--log-every N (the Trainer's logging_steps) or --steps T"));
    helper_free(&said);
    said = helper_run(3, "lr fit anew.txt --steps 1000");
    assert_non_null(strstr(said.out, "likeliest, but undecided: hf linear"));
    helper_free(&said);
}

/* The column 5, 4, 3, 2, 1 must not be explained as olmo-core with a floor of 0.2 that nobody asked
 * for. */
static void validate_floor_is_not_fitted(void **state) {
    (void)state;
    const char *line = "lr check used.csv --logged --expect olmo-core --schedule linear --lr 5e-7 "
                       "--steps 5";
    helper_write("used.csv", used);
    struct said said = helper_run(1, line);
    assert_non_null(strstr(said.out, "one update behind olmo-core"));
    helper_free(&said);
}

/* hf-4.50 could have logged 5, 4, 3, 2, 1 with a floor of a sixth and a peak that nobody types; hf
 * linear explains it plainly and must come first. With the training's numbers given there is
 * nothing to guess. */
static void validate_plainer_explanation(void **state) {
    (void)state;
    helper_write("plain.json", "{\"max_steps\": 5, \"log_history\": ["
                               "{\"step\": 1, \"learning_rate\": 5e-07}, "
                               "{\"step\": 2, \"learning_rate\": 4e-07}, "
                               "{\"step\": 3, \"learning_rate\": 3e-07}, "
                               "{\"step\": 4, \"learning_rate\": 2e-07}, "
                               "{\"step\": 5, \"learning_rate\": 1e-07}]}");
    struct said said = helper_run(3, "lr check plain.json --expect hf-4.50");
    assert_non_null(strstr(said.out, "hf linear, peak 5e-07, no warm-up, total 5 explains the log "
                                     "more simply and applies other LRs"));
    helper_free(&said);
    said = helper_run(0, "lr check plain.json --expect hf");
    helper_free(&said);
    said = helper_run(0, "lr check plain.json --expect hf-4.50 --logged");
    helper_free(&said);
    /* With its numbers given, the expectation may still have skipped update 1. */
    said = helper_run(3, "lr check plain.json --expect hf-4.50 --schedule linear --lr 5e-7");
    assert_non_null(strstr(said.out, "skipped: update 1, and just as well with hf"));
    helper_free(&said);
}

/* A log that ends in its warm-up shows no peak, so none is another one than the expected. */
static void validate_peak_that_was_not_reached(void **state) {
    (void)state;
    char text[512];
    size_t length = (size_t)snprintf(text, sizeof text, "{\"max_steps\": 6, \"log_history\": [");
    for (int k = 1; k <= 6; k++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%s{\"step\": %d, \"learning_rate\": %.17g}", k > 1 ? ", " : "",
                                   k, 1e-3 * (k - 1) / 10.0);
    snprintf(text + length, sizeof text - length, "]}");
    helper_write("rising.json", text);
    json_t *json = json_of(1, "lr check rising.json --expect hf --schedule linear --lr 1e-3 "
                              "--warmup 2 --steps 6 --json");
    assert_true(json_is_null(json_object_get(json, "bug")));
    assert_non_null(strstr(text_of(json, "words"), "still warming up at the last row"));
    json_decref(json);

    struct said said = helper_run(0, "lr fit rising.json --contract hf");
    assert_non_null(strstr(said.out, ", still warming up at the last row: peak at least 0.0005 ("));
    helper_free(&said);
    /* Megatron's warm-up is 0.07 * 700 = 49.00000000000001. */
    said = helper_run(0, "lr table --contract megatron --schedule linear --lr 1e-3 --steps 700 "
                         "--warmup-ratio 0.07 --count 1");
    assert_non_null(strstr(said.out, "warm-up 49 updates"));
    helper_free(&said);
    said = helper_run(1, "lr check rising.json --expect megatron --schedule linear --lr 1e-3 "
                         "--steps 700 --warmup-ratio 0.07");
    assert_non_null(strstr(said.out, "warm-up 49, total 700"));
    helper_free(&said);
}

/* A log that ends in its warm-up of 300 updates shows neither floor nor total nor the warm-up, and
 * the peak is at least what was printed: 0.00016666... is not at least 0.0001667. */
static void validate_what_a_warmup_shows(void **state) {
    (void)state;
    static char text[16384];
    size_t length = 0;
    for (int k = 1; k <= 100; k++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "{\"step\": %d, \"learning_rate\": %.17g}\n", k,
                                   5e-4 * (double)k / 300.0);
    helper_write("warmup.jsonl", text);
    struct said said = helper_run(0, "lr fit warmup.jsonl --contract hf");
    assert_non_null(
        strstr(said.out, "still warming up at the last row: peak at least 0.0001666 ("));
    assert_null(strstr(said.out, "0.0001667 ("));
    for (const char *at = said.out; (at = strstr(at, "still warming up")) != NULL; at++) {
        const char *const total = strstr(at, ", total 100"), *const end = strchr(at, '\n');
        const char *const floor = strstr(at, ", floor");
        assert_true(total == NULL || total > end);
        assert_true(floor == NULL || floor > end);
    }
    helper_free(&said);
    json_t *json = json_of(0, "lr fit warmup.jsonl --contract hf --json");
    json_t *const fit = json_array_get(json_object_get(json, "fits"), 0);
    assert_true(json_is_true(json_object_get(fit, "warmup_hidden")));
    assert_true(json_is_true(json_object_get(fit, "steps_hidden")));
    assert_true(json_is_true(json_object_get(fit, "floor_hidden")));
    json_decref(json);
}

/* Epochs that are given stand for the total, and the log's own total is not put beside them. */
static void validate_epochs_against_the_log(void **state) {
    (void)state;
    helper_write("epochs.json", "{\"max_steps\": 4, \"log_history\": ["
                                "{\"step\": 1, \"learning_rate\": 4e-05}, "
                                "{\"step\": 2, \"learning_rate\": 3e-05}, "
                                "{\"step\": 3, \"learning_rate\": 2e-05}, "
                                "{\"step\": 4, \"learning_rate\": 1e-05}]}");
    const char *const known = "lr check epochs.json --expect hf --schedule linear --lr 4e-5 "
                              "--warmup 0 --batch 2 --epochs 2 --json --dataset";
    char line[256];
    snprintf(line, sizeof line, "%s 4", known);
    json_decref(json_of(0, line));
    snprintf(line, sizeof line, "%s 6", known);
    json_t *json = json_of(1, line);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "expected"), "steps")), 6);
    json_decref(json);
}

/* Two rows are fewer than the numbers that a search has to fit, so they agree with any contract. By
 * hand: 1.3e-5 and 1e-5 lie on a line from 1.6e-5, and anywhere else; 2e-5 that falls to 0 over 100
 * updates is 1.8e-5 behind update 10 and 1.6e-5 behind update 20. */
static void validate_two_rows_need_every_number(void **state) {
    (void)state;
    static const struct {
        const char *first, *second, *options;
        int code;
    } cases[] = {
        {"1.3e-5", "1.0e-5", "--expect veomni", 3},
        {"1.3e-5", "1.0e-5", "--expect megatron --logged", 3},
        {"1.0e-5", "1.3e-5", "--expect megatron --logged", 3},
        {"1.8e-5", "1.6e-5", "--expect hf-4.50 --logged --lr 2e-5 --warmup 0 --steps 100", 3},
        {"1.8e-5", "1.6e-5", "--expect hf-4.50 --logged --lr 2e-5 --warmup 0 --schedule linear", 3},
        {"1.8e-5", "1.6e-5",
         "--expect hf-4.50 --logged --lr 2e-5 --warmup 0 --steps 100 --schedule linear", 0},
        {"1.8e-5", "1.5e-5",
         "--expect hf-4.50 --logged --lr 2e-5 --warmup 0 --steps 100 --schedule linear", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256], line[512];
        snprintf(text, sizeof text, "step,lr,grad_norm\n10,%s,1\n20,%s,1\n", cases[i].first,
                 cases[i].second);
        helper_write("two.csv", text);
        snprintf(line, sizeof line, "lr check two.csv --json %s", cases[i].options);
        json_t *json = json_of(cases[i].code, line);
        if (cases[i].code == 3) {
            const json_t *why = json_object_get(json, "why");
            assert_string_equal(json_string_value(json_array_get(why, 0)), "few");
            assert_non_null(strstr(text_of(json, "needs"), "--warmup"));
        }
        json_decref(json);
    }
}

/* 7.7e-6 and 9.1e-6: whatever explains them, the smallest LR is not above the peak. */
static void verify_no_floor_lies_above_the_peak(void **state) {
    (void)state;
    helper_write("rise.csv", "step,lr\n1,7.7e-06\n2,9.1e-06\n");
    json_t *json = json_of(3, "lr fit rise.csv --json --all");
    const json_t *fits = json_object_get(json, "fits");
    assert_true(json_array_size(fits) > 0);
    for (size_t i = 0; i < json_array_size(fits); i++) {
        const json_t *floor = json_object_get(json_array_get(fits, i), "min_lr_ratio");
        assert_false(json_is_number(floor) && json_number_value(floor) > 1.0);
    }
    json_decref(json);
}

/* Update 60 holds the LR beside the gradient norm of update 59, printed once more. DeepSpeed prints
 * so at a skip, but the number is no evidence of one: the fit names it and decides nothing. Where
 * the norm is infinite there, it does. */
static void validate_norm_that_is_printed_again(void **state) {
    (void)state;
    for (int shown = 0; shown < 2; shown++) {
        char text[8192];
        size_t length = (size_t)snprintf(text, sizeof text, "step,grad_norm,learning_rate\n");
        for (int k = 1; k <= 120; k++) {
            const int norm = k == 60 ? 59 : k, step = k > 60 ? k - 2 : k - 1;
            length += (size_t)snprintf(text + length, sizeof text - length, "%d,", k);
            length +=
                (size_t)(shown && k == 60 ? snprintf(text + length, sizeof text - length, "inf")
                                          : snprintf(text + length, sizeof text - length, "%.6f",
                                                     1.0 + 0.37 * (norm * norm % 17)));
            length += (size_t)snprintf(text + length, sizeof text - length, ",%.17g\n",
                                       5e-5 * ((120.0 - step) / 120.0));
        }
        helper_write("again.csv", text);
        struct said said = helper_run(shown ? 0 : 3, "lr fit again.csv --contract hf");
        assert_non_null(strstr(said.out, "total 120; skipped: update 60"));
        assert_int_equal(strstr(said.out, "an equal number is no evidence") == NULL, shown);
        helper_free(&said);
        said = helper_run(shown ? 0 : 3, "lr check again.csv --expect hf --logged");
        assert_int_equal(strstr(said.out, "printed once more is no evidence of a skip") == NULL,
                         shown);
        helper_free(&said);
    }
    helper_accept(0, "lr fit again.csv --contract hf --skipped 60");
}

/* A wrong option is an error for CI systems, too, and replaces no file of the command line. */
static void validate_usage_error_for_ci(void **state) {
    (void)state;
    helper_write("used.csv", used);
    size_t read;
    remove("usage.xml");
    struct said said =
        helper_run(2, "lr check used.csv --expect hf --nope --junit usage.xml --github");
    assert_non_null(strstr(said.out, "::error title=twinstep lr check::lr check: unknown option "
                                     "--nope"));
    helper_free(&said);
    char *xml = helper_read("usage.xml", &read);
    assert_non_null(strstr(xml, "errors=\"1\""));
    assert_non_null(strstr(xml, "<error message=\"lr check: unknown option --nope"));
    free(xml);
    /* Of the ranks that mpirun started, the first alone tells. */
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (int i = 0; i < 4; i++) {
        remove("usage.xml");
        setenv(names[i / 2], i % 2 == 0 ? "1" : "0", 1);
        said = helper_run(2, "lr check used.csv --expect hf --nope --junit usage.xml --github");
        unsetenv(names[i / 2]);
        assert_int_equal(helper_exists("usage.xml"), i % 2);
        assert_int_equal(strstr(said.out, "::error") != NULL, i % 2);
        assert_non_null(strstr(said.err, "unknown option --nope"));
        helper_free(&said);
    }
    helper_write("usage.xml", used);
    said = helper_run(2, "lr check usage.xml --nope --junit=usage.xml");
    helper_free(&said);
    xml = helper_read("usage.xml", &read);
    assert_string_equal(xml, used);
    free(xml);
}

/* A line to 0 whose scheduler was no longer stepped prints what a line to a floor prints, so
 * without that floor the fit decides nothing, and says both. */
static void validate_schedule_that_stands_still(void **state) {
    (void)state;
    char text[8192];
    size_t used_up = (size_t)snprintf(text, sizeof text, "step,learning_rate\n");
    for (int k = 1; k <= 200; k++) {
        const double step = k - 1 < 83 ? k - 1 : 83;
        used_up += (size_t)snprintf(text + used_up, sizeof text - used_up, "%d,%.17g\n", k,
                                    step < 10.0 ? 5e-5 * (step / 10.0)
                                                : 5e-5 * ((200.0 - step) / (200.0 - 10.0)));
    }
    helper_write("still.csv", text);
    struct said said = helper_run(3, "lr fit still.csv --contract hf");
    assert_non_null(strstr(said.out, "likeliest, but undecided: hf linear, peak 5e-05, warm-up 10, "
                                     "total 83, floor 0.6158 of the peak"));
    assert_non_null(strstr(said.out, "remark: in front of update 85 the column is that of hf "
                                     "linear, peak 5e-05, warm-up 10, total 200;"));
    helper_free(&said);
    helper_accept(0, "lr fit still.csv --contract hf --min-lr-ratio 0.61578947368421055");
    json_t *json = json_of(3, "lr fit still.csv --contract hf --json");
    const json_t *stop = json_object_get(json, "stands_still");
    assert_int_equal(json_integer_value(json_object_get(stop, "update")), 85);
    assert_true(json_is_false(json_object_get(stop, "of_known_total")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(stop, "fit"), "steps")),
                     200);
    json_decref(json);
}

/* A cosine whose loop sets lr = min(lr, 3.75e-5): no fit prints it, and the rows that are not held
 * tell all of its numbers. */
static void validate_lr_that_is_held_from_above(void **state) {
    (void)state;
    char text[8192];
    size_t used_up = (size_t)snprintf(text, sizeof text, "step,learning_rate\n");
    for (int k = 1; k <= 200; k++) {
        const double step = k - 1;
        const double lr =
            5e-5 * (step < 20.0
                        ? step / 20.0
                        : 0.5 * (1.0 + cos(3.14159265358979323846 * (step - 20.0) / 180.0)));
        used_up += (size_t)snprintf(text + used_up, sizeof text - used_up, "%d,%.17g\n", k,
                                    lr < 3.75e-5 ? lr : 3.75e-5);
    }
    helper_write("held.csv", text);
    struct said said = helper_run(1, "lr fit held.csv --contract hf --schedule cosine");
    assert_non_null(strstr(said.out, "Nothing fits."));
    assert_non_null(strstr(said.out, "highest LR, 3.75e-05, the column is that of hf cosine, peak "
                                     "5e-05, warm-up 20, total 200, which lies above that LR"));
    helper_free(&said);
    json_t *json = json_of(1, "lr fit held.csv --contract hf --schedule cosine --json");
    const json_t *held = json_object_get(json, "held");
    assert_true(json_is_true(json_object_get(held, "above")));
    assert_true(json_real_value(json_object_get(held, "level")) == 3.75e-5);
    assert_int_equal(json_integer_value(json_object_get(held, "rows")), 66);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(held, "fit"), "steps")),
                     200);
    json_decref(json);
    said = helper_run(3, "lr check held.csv --expect hf");
    assert_non_null(strstr(said.out, "total 200, whose LR is held from above at 3.75e-05"));
    helper_free(&said);
}

/* A linear schedule of 500 updates whose scheduler stopped at update 233: a line to that update,
 * with a floor that nobody typed, prints it, and a search in samples, which forgets the log's
 * total, must not take that line for the expectation. */
static void validate_a_stop_is_no_pass_in_samples(void **state) {
    (void)state;
    char text[50 * 160 + 1];
    size_t length = 0;
    for (int k = 10; k <= 500; k += 10) {
        const double step = k < 233 ? k : 233;
        length += (size_t)snprintf(
            text + length, sizeof text - length,
            " iteration %8d/     500 | consumed samples: %12d | learning rate: %.6E | global batch "
            "size: %5d | lm loss: %.6E |\n",
            k, 8 * k, step < 30 ? 1e-5 * step / 30.0 : 1e-5 * (500.0 - step) / 470.0, 8,
            2.0 + 10.0 / k);
    }
    helper_write("stops.log", text);
    struct said said = helper_run(1, "lr check stops.log --expect megatron");
    assert_non_null(strstr(said.out, "from there on the LR stands still"));
    helper_free(&said);
}

/* Updates of trainings that are wrong, or whose log leaves open whether they are, and what is said.
 * Each was passed, or the last two were failed, though nothing in the log decides. */
static double share_of(const char *how, int k) {
    const int n = k - 1;
    if (strcmp(how, "every second call") == 0) return (20.0 - n / 2) / 20.0;
    if (strcmp(how, "no call behind 7") == 0) return (21.0 - (n < 7 ? n : 7)) / 21.0;
    if (strcmp(how, "two calls") == 0) return n < 10 ? (20.0 - 2 * n) / 20.0 : 0.0;
    if (strcmp(how, "no warm-up") == 0) return 0.5 * (1.0 + cos(acos(-1.0) * n / 20.0));
    if (strcmp(how, "two more in all") == 0) return (502.0 - n) / 502.0;
    if (strcmp(how, "a call too early") == 0) return (1000.0 - 25 * k) / 990.0;
    if (strcmp(how, "twice as long") == 0) return (40.0 - n) / 40.0;
    if (strcmp(how, "rising") == 0) return n / 50.0;
    return fmod(0.37 * n, 1.0); /* no schedule */
}

static void validate_what_is_not_passed(void **state) {
    static const struct {
        const char *how, *print;
        int rows;
        const char *numbers, *words;
    } cases[] = {
        {"every second call", "%.6e", 20, "--lr 2e-5 --schedule linear --warmup 0 --steps 20",
         "a scheduler that is stepped once per several updates prints the same"},
        {"no call behind 7", "%.6e", 16, "--lr 2e-5 --schedule linear --warmup 0 --steps 21",
         "a scheduler that is no longer stepped prints the last rows, too"},
        {"two calls", "%.6e", 20, "--lr 2e-5 --schedule linear --warmup 0",
         "the log goes on behind update 10, at which the fitted schedule ends"},
        {"no warm-up", "%.6e", 20, "--lr 2e-5 --warmup 4 --steps 20", NULL},
        {"two more in all", "%.8f", 250, "--lr 1e-6 --schedule linear --warmup 0 --steps 500",
         "the same rows need no skipped update"},
        {"a call too early", "%.8e", 40, "--lr 2e-5 --schedule linear",
         "one update ahead or behind prints the same with a total beside 999"},
        {"twice as long", "%.6e", 20, "--lr 2e-5 --warmup 0 --steps 20", "nobody gave the floor"},
        {"rising", "%.3e", 25, "--lr 2e-5 --schedule cosine",
         "every printed LR lies in a warm-up that hf would print"},
        {"none", "%.6e", 25, "--lr 2e-5 --schedule cosine", "--warmup"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[16384] = "step,lr\n", line[256];
        size_t length = strlen(text);
        const double lr = strstr(cases[i].numbers, "1e-6") != NULL ? 1e-6 : 2e-5;
        for (int k = 1; k <= cases[i].rows; k++) {
            const int every = strcmp(cases[i].how, "a call too early") == 0 ? 25 : 1;
            length += (size_t)snprintf(text + length, sizeof text - length, "%d,", k * every);
            length += (size_t)snprintf(text + length, sizeof text - length, cases[i].print,
                                       lr * share_of(cases[i].how, k));
            length += (size_t)snprintf(text + length, sizeof text - length, "\n");
        }
        helper_write("wrong.csv", text);
        snprintf(line, sizeof line, "lr check wrong.csv --logged --expect hf %s", cases[i].numbers);
        struct said said = helper_run(cases[i].words == NULL ? 1 : 3, line);
        if (cases[i].words != NULL && strstr(said.out, cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].how, said.out);
        helper_free(&said);
    }
}

/* A warm-up to a peak of 4.995e-5, rounded: of one to 5e-5 the first rows would be cut off. The
 * peak that is told is one in the middle of those that print the rows. */
static void validate_rounded_digits_of_another_peak(void **state) {
    (void)state;
    char text[2048] = "step,lr\n";
    size_t length = strlen(text);
    for (int k = 1; k <= 25; k++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,%.2e\n", k,
                                   4.995e-5 * (k <= 10 ? (k - 1) / 10.0 : 1.0));
    helper_write("rounded.csv", text);
    struct said said =
        helper_run(3, "lr check rounded.csv --logged --expect hf --lr 5e-5 --schedule "
                      "constant_with_warmup --warmup 10 --steps 50");
    if (strstr(said.out, "if its digits were cut off, and with peak 4.996e-05, warm-up 10 and "
                         "total 50 if they were rounded") == NULL ||
        strstr(said.out, "what would decide: more digits") == NULL)
        fail_msg("%s", said.out);
    helper_free(&said);
}

/* ---- rows of a formula ---- */

static void write_rows(const char *name, size_t count, const int *updates, const double *rates,
                       const char *print) {
    static char text[1 << 15];
    size_t at = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
    for (size_t i = 0; i < count; i++) {
        char rate[40];
        snprintf(rate, sizeof rate, print, rates[i]);
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%.4f,%s\n", updates[i],
                               2.0 + 1.0 / updates[i], rate);
    }
    assert_true(at < sizeof text);
    helper_write(name, text);
}

/* A plateau and a decay of 12 updates, which is short beside the total that schedules are probed
 * with: the total is read off the decay. */
static void validate_a_short_decay(void **state) {
    (void)state;
    static const double pi = 0x1.921fb54442d18p+1;
    int updates[49];
    double rates[49];
    for (int i = 0; i < 49; i++) {
        updates[i] = i + 1;
        rates[i] = 1.2e-4 * (i < 38 ? 1.0 : 0.5 * (1.0 + cos(pi * (i - 38) / 12.0)));
    }
    write_rows("stable.csv", 49, updates, rates, "%.17g");
    struct said said = helper_run(0, "lr check stable.csv --logged --expect hf --lr 1.2e-4 "
                                     "--schedule warmup_stable_decay --warmup 0 --value decay=12");
    assert_non_null(strstr(said.out, "peak 0.00012, no warm-up, total 50"));
    helper_free(&said);
}

/* A line of 60 updates, of which 25 to 30 were run again behind a resume whose scheduler lost some
 * steps: a scaler may have skipped as many, and nothing in the log says so. */
static void validate_a_resume_that_lost_steps(void **state) {
    (void)state;
    for (int lost = 0; lost < 12; lost++) {
        int updates[66];
        double rates[66];
        for (int i = 0; i < 66; i++) {
            const int k = i < 30 ? i + 1 : i - 5;
            updates[i] = k;
            rates[i] = 2e-4 * (60 - (k - 1 - (i < 30 ? 0 : lost))) / 60.0;
        }
        write_rows("resumed.csv", COUNT_OF(rates), updates, rates, "%.17g");
        struct said said =
            helper_run(lost == 0 ? 0 : 3, "lr check resumed.csv --logged --expect hf --lr 2e-4 "
                                          "--schedule linear --warmup 0 --steps 60");
        assert_int_equal(strstr(said.out, "state was older than the weights") != NULL, lost > 0);
        helper_free(&said);
    }
}

/* Of the total 400 or 398 ten rows show the start, to 1e-8: as numbers whose digits were cut off
 * those of 398 agree with 400. */
static void validate_a_total_is_not_cut(void **state) {
    (void)state;
    for (int total = 398; total < 401; total += 2) {
        int updates[10];
        double rates[10];
        for (int i = 0; i < 10; i++) {
            updates[i] = i + 1;
            rates[i] = 1e-4 * (total - i) / total;
        }
        write_rows("start.csv", COUNT_OF(rates), updates, rates, "%.8f");
        struct said said =
            helper_run(total == 400 ? 0 : 3, "lr check start.csv --logged --expect hf --lr 1e-4 "
                                             "--schedule linear --warmup 0 --steps 400");
        assert_int_equal(strstr(said.out, "if its digits were cut off, and with peak") != NULL,
                         total != 400);
        helper_free(&said);
    }
}

/* Digits that were cut off, and an update that was skipped: nothing explains the rows as rounded
 * ones, and the check does not fail them. */
static void validate_cut_digits_and_skips(void **state) {
    (void)state;
    int updates[40];
    double rates[40];
    for (int i = 0; i < 40; i++) {
        updates[i] = i + 1;
        rates[i] = floor(7e6 * (97 - (i - (i > 20))) / 97.0) / 1e10;
    }
    write_rows("both.csv", COUNT_OF(rates), updates, rates, "%.10f");
    struct said said = helper_run(3, "lr check both.csv --logged --expect hf --lr 7e-4 "
                                     "--schedule linear --warmup 0 --steps 97");
    assert_non_null(strstr(said.out, "if its digits were cut off\n"));
    assert_non_null(strstr(said.out, "--skipped"));
    helper_free(&said);
}

/* Megatron's counter is samples. A scheduler that moves 8 times per update, in batches of 8, is
 * that of a total and a warm-up of as many samples as the run has updates; but the number of its
 * updates is what --steps says. */
static void validate_updates_are_no_samples(void **state) {
    (void)state;
    for (int times = 1; times < 9; times += 7) {
        int updates[87];
        double rates[87];
        for (int i = 0; i < 87; i++) {
            const int n = times * (updates[i] = i + 1);
            rates[i] = 3e-4 * (n < 5 ? n / 5.0 : n < 87 ? 0.1 + 0.9 * (87 - n) / 82.0 : 0.1);
        }
        write_rows("samples.csv", COUNT_OF(rates), updates, rates, "%.6e");
        helper_accept(times == 1 ? 0 : 1,
                      "lr check samples.csv --logged --expect megatron --lr 3e-4 "
                      "--warmup 5 --steps 87 --global-batch 8");
        helper_accept(times == 1 ? 0 : 1, "lr check samples.csv --logged --expect megatron "
                                          "--steps 87 --global-batch 8");
    }
}

/* A log that ends on the plateau in front of a decay of 40 updates: no row shows the total. */
static void validate_a_plateau_leaves_the_total_open(void **state) {
    (void)state;
    int updates[120];
    double rates[120];
    for (int i = 0; i < 120; i++) {
        updates[i] = i + 1;
        rates[i] = 1.2e-4 * (i < 4 ? 0.25 * i : 1.0);
    }
    write_rows("stable.csv", 120, updates, rates, "%.7f");
    helper_accept(3, "lr check stable.csv --logged --expect hf --lr 1.2e-4 "
                     "--schedule warmup_stable_decay --warmup 4 --value decay=40");
}

/* A log that ends in its warm-up of 40 updates, whose peak was said and nothing else. */
static void validate_a_peak_behind_the_rows(void **state) {
    (void)state;
    int updates[18];
    double rates[18];
    for (int i = 0; i < 18; i++) {
        updates[i] = i + 1;
        rates[i] = 2.5e-5 * (i / 37.0);
    }
    write_rows("rising.csv", COUNT_OF(rates), updates, rates, "%.17g");
    helper_accept(3, "lr check rising.csv --logged --expect lightning-step --lr 2.5e-5");
    helper_accept(1, "lr check rising.csv --logged --expect lightning-step --lr 1e-6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_stop_is_no_pass_in_samples),
        cmocka_unit_test(validate_pass),
        cmocka_unit_test(validate_fail),
        cmocka_unit_test(validate_behind),
        cmocka_unit_test(validate_cut_digits),
        cmocka_unit_test(validate_what_is_not_passed),
        cmocka_unit_test(validate_rounded_digits_of_another_peak),
        cmocka_unit_test(validate_ahead_is_not_cut),
        cmocka_unit_test(validate_a_short_decay),
        cmocka_unit_test(validate_a_resume_that_lost_steps),
        cmocka_unit_test(validate_a_total_is_not_cut),
        cmocka_unit_test(validate_cut_digits_and_skips),
        cmocka_unit_test(validate_updates_are_no_samples),
        cmocka_unit_test(validate_a_plateau_leaves_the_total_open),
        cmocka_unit_test(validate_a_peak_behind_the_rows),
        cmocka_unit_test(validate_restarts),
        cmocka_unit_test(validate_early_skip_is_undecided),
        cmocka_unit_test(verify_a_named_era_is_decided),
        cmocka_unit_test(verify_a_skip_on_a_plateau_counts),
        cmocka_unit_test(verify_a_decay_is_no_drop),
        cmocka_unit_test(verify_a_cut_decay_leaves_the_total_open),
        cmocka_unit_test(verify_a_cut_decay_has_its_own_numbers),
        cmocka_unit_test(verify_odd_warmups_between_far_rows),
        cmocka_unit_test(verify_a_doubt_has_a_number),
        cmocka_unit_test(validate_bf16_has_no_scaler),
        cmocka_unit_test(validate_other_shape_is_no_shift),
        cmocka_unit_test(validate_undecided),
        cmocka_unit_test(validate_two_rows_need_every_number),
        cmocka_unit_test(verify_no_floor_lies_above_the_peak),
        cmocka_unit_test(verify_another_framework_than_the_formats),
        cmocka_unit_test(validate_fit_lists_both),
        cmocka_unit_test(validate_errors),
        cmocka_unit_test(validate_skips_of_a_resumed_log),
        cmocka_unit_test(verify_a_wrong_list_of_skips_is_told),
        cmocka_unit_test(validate_a_table_of_aim),
        cmocka_unit_test(validate_annotations),
        cmocka_unit_test(validate_junit),
        cmocka_unit_test(validate_skipped_by_the_log),
        cmocka_unit_test(validate_half_speed),
        cmocka_unit_test(validate_digits_that_tell_nothing),
        cmocka_unit_test(validate_guessed_updates),
        cmocka_unit_test(validate_a_bug_on_a_console),
        cmocka_unit_test(validate_log_every),
        cmocka_unit_test(validate_floor_is_not_fitted),
        cmocka_unit_test(validate_plainer_explanation),
        cmocka_unit_test(validate_peak_that_was_not_reached),
        cmocka_unit_test(validate_what_a_warmup_shows),
        cmocka_unit_test(validate_schedule_that_stands_still),
        cmocka_unit_test(validate_lr_that_is_held_from_above),
        cmocka_unit_test(validate_norm_that_is_printed_again),
        cmocka_unit_test(verify_pace_that_is_not_tested),
        cmocka_unit_test(validate_usage_error_for_ci),
        cmocka_unit_test(validate_epochs_against_the_log),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
