/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * doctor: what it prints, as text and as JSON, its exit status, and what it refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

/* Writes JSON rows of a DPO run whose first loss is `start`. */
static void write_log(const char *path, const char *start) {
    static char text[8192];
    size_t used = 0;
    for (int k = 1; k <= 12; k++) {
        const double margin = 0.01 * (k - 1);
        char loss[32];
        snprintf(loss, sizeof loss, "%.4f", 0.69315 - 0.004 * (k - 1));
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"step\": %d, \"loss\": %s, \"learning_rate\": %.6e, "
                                 "\"grad_norm\": %.4f, \"rewards/margins\": %.4f}\n",
                                 k, k == 1 ? start : loss, 5e-7 * (13 - k) / 12.0, 2.0 + 0.1 * k,
                                 margin);
    }
    helper_write(path, text);
}

static json_t *json_of(int code, const char *line) {
    json_error_t error;
    struct said said = helper_run(code, line);
    json_t *value = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL) fail_msg("%s: %s\n%s", line, error.text, said.out);
    assert_string_equal(said.err, "");
    helper_free(&said);
    return value;
}

static const char *text_at(const json_t *array, size_t index, const char *key) {
    const char *text = json_string_value(json_object_get(json_array_get(array, index), key));
    if (text == NULL) fail_msg("no text %s at %zu", key, index);
    return text;
}

static size_t words_of(const char *text) {
    size_t words = 0;
    for (const char *c = text; *c != '\0'; c++)
        words += *c > ' ' && (c == text || c[-1] <= ' ');
    return words;
}

/* One row with update numbers: nothing may say that there are none. */
static void validate_one_row(void **state) {
    (void)state;
    helper_write("one.csv", "step,loss\n1,nan\n");
    struct said said = helper_run(1, "doctor one.csv");
    assert_non_null(strstr(said.out, "\nLooked at update numbers, loss.\n"));
    assert_null(strstr(said.out, "prints no update numbers"));
    assert_non_null(strstr(said.out, "; fewer than 3 rows; "));
    helper_free(&said);
    helper_write("none.csv", "grad_norm,x\nnan,1\n");
    said = helper_run(1, "doctor none.csv");
    assert_non_null(strstr(said.out, "\n1 finding in 2 checks.\n"));
    assert_non_null(strstr(said.out, "\nLooked at grad_norm.\n"));
    assert_non_null(strstr(said.out, "; the log prints no update numbers; "));
    helper_free(&said);
}

/* Where nothing was found a screen says so, with what was looked at, what could not be, and that a
 * log shows no weights; no check is told twice, and --verbose lists them all. */
static void validate_healthy(void **state) {
    (void)state;
    write_log("healthy.jsonl", "0.6931");
    struct said said = helper_run(0, "doctor healthy.jsonl");
    assert_non_null(strstr(said.out, "\nNothing found in 19 checks.\n"));
    assert_non_null(
        strstr(said.out,
               "\nLooked at update numbers, loss, learning_rate, grad_norm, rewards/margins.\n"));
    assert_non_null(strstr(said.out,
                           " checks could not look: no column eval_loss, logp_chosen, "
                           "reward_chosen, reward_accuracy, lr_applied, epoch, samples, tokens; "));
    assert_non_null(strstr(said.out, "; fewer than 30 margins; "));
    assert_non_null(strstr(said.out, "\n3 need an option: --vocab N; --dtype bf16 --master none; "
                                     "--weight-decay X.\n"));
    assert_non_null(strstr(said.out, "\nA log shows what was printed: not the weights, "));
    assert_null(strstr(said.out, "Checked, nothing found"));
    assert_in_range(words_of(said.out), 1, 130);
    helper_free(&said);
    said = helper_run(0, "doctor healthy.jsonl --verbose");
    assert_non_null(strstr(said.out, "Nothing found in "));
    assert_null(strstr(said.out, "Looked at"));
    assert_non_null(strstr(said.out, "\nChecked, nothing found:\n"));
    assert_non_null(strstr(said.out, "\n  DPO loss of update 1 is ln 2\n"));
    assert_non_null(strstr(said.out, "\nCould not be checked:\n"));
    assert_non_null(strstr(said.out, "samples grow by the batch size: no column samples"));
    assert_non_null(strstr(said.out, "\nNot asked; needs:\n"));
    helper_free(&said);
}

/* verl's console prints %.3f: an LR of 1e-6 is 0.000, and nothing can be said of its schedule. */
static void validate_rates_without_digits(void **state) {
    static char text[4096];
    size_t used = 0;
    (void)state;
    for (int k = 1; k <= 12; k++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "step:%d - actor/pg_loss:0.0%02d - actor/grad_norm:0.412 - "
                                 "actor/lr:0.000 - critic/score/mean:0.120\n",
                                 k, 40 - k);
    helper_write("verl.log", text);
    struct said said = helper_run(0, "doctor verl.log");
    assert_non_null(
        strstr(said.out, "; every LR prints as 0 with steps of 0.001: too few digits; "));
    helper_free(&said);
    said = helper_run(0, "doctor verl.log --verbose");
    assert_null(strstr(said.out, "lr_unexplained"));
    assert_non_null(strstr(said.out, "LR column reads as a sound contract: every LR prints as 0 "
                                     "with steps of 0.001: too few digits"));
    assert_non_null(strstr(said.out, "LR has the digits to show a shift: every LR prints as 0"));
    helper_free(&said);
}

static void validate_finding(void **state) {
    (void)state;
    write_log("thrice.jsonl", "2.0794");
    struct said said = helper_run(1, "doctor thrice.jsonl");
    assert_non_null(strstr(said.out, "1 finding in "));
    assert_non_null(strstr(said.out, "\nloss_summed_over_ranks: likely\n"));
    assert_non_null(strstr(said.out, "evidence: update 1 (line 1): loss is 2.0794 (printed to "));
    assert_non_null(strstr(said.out, "  next: "));
    helper_free(&said);
    said = helper_run(1, "doctor thrice.jsonl --accumulate 3");
    assert_non_null(strstr(said.out, "\nnum_items_double_scale: certain\n"));
    helper_free(&said);
}

/* A trace of an sft task has log-probabilities of its labels and no pairs: its loss does not start
 * at ln 2, and no check of a preference looks. */
static void validate_no_preference(void **state) {
    (void)state;
    helper_write("sft.yaml", "twinstep: 1\nname: sft\nsteps: 2\n"
                             "common: {task: sft, batch: {size: 2, micro: 2}}\n"
                             "arms: {baseline: {}, test: {seed: 18}}\n");
    struct said said = helper_run(1, "run sft.yaml -o sft.h5");
    helper_free(&said);
    said = helper_run(0, "doctor sft.h5 --verbose");
    assert_null(strstr(said.out, "ref_batch_shape"));
    assert_non_null(strstr(said.out, "DPO loss of update 1 is ln 2: no column of rewards or of "
                                     "log-probabilities of pairs\n"));
    helper_free(&said);
}

static void validate_json(void **state) {
    (void)state;
    write_log("thrice.jsonl", "2.0794");
    json_t *object = json_of(1, "doctor thrice.jsonl --json --processes 3");
    const json_t *findings = json_object_get(object, "findings");
    assert_int_equal(json_array_size(findings), 1);
    assert_string_equal(text_at(findings, 0, "id"), "loss_summed_over_ranks");
    assert_string_equal(text_at(findings, 0, "confidence"), "certain");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(findings, 0), "line")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(findings, 0), "update")), 1);
    assert_true(json_array_size(json_object_get(json_array_get(findings, 0), "evidence")) >= 2);
    const json_t *checks = json_object_get(object, "checks");
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(checks); i++)
        found += strcmp(text_at(checks, i, "result"), "found") == 0;
    assert_int_equal(found, 1);
    json_decref(object);
}

static void validate_options(void **state) {
    (void)state;
    write_log("healthy.jsonl", "0.6931");
    struct said said = helper_run(1, "doctor healthy.jsonl --dtype bf16 --master none");
    assert_non_null(strstr(said.out, "\nbf16_update_lost: likely\n"));
    helper_free(&said);
    said = helper_run(0, "doctor healthy.jsonl --dtype bf16 --master f32");
    helper_free(&said);
    /* What is only possible is told and fails nothing. */
    said = helper_run(0, "doctor healthy.jsonl --weight-decay 0.1");
    assert_non_null(strstr(said.out, "\ndecay_underflow: possible\n"));
    helper_free(&said);
}

static void validate_nothing_checkable(void **state) {
    (void)state;
    helper_write("other.jsonl", "{\"step\": 1, \"speed\": 3.5}\n{\"step\": 2, \"speed\": 3.6}\n");
    struct said said = helper_run(3, "doctor other.jsonl");
    assert_non_null(strstr(said.out, "Nothing can be checked in this log."));
    assert_non_null(strstr(said.out, "\nCould not be checked:\n"));
    assert_null(strstr(said.out, "Looked at"));
    helper_free(&said);
}

static void validate_refusals(void **state) {
    (void)state;
    write_log("healthy.jsonl", "0.6931");
    helper_refuse(2, "doctor healthy.jsonl --dtype bf17", "--dtype: expected f32");
    helper_refuse(2, "doctor healthy.jsonl --master maybe", "--master: expected none or f32");
    helper_refuse(2, "doctor healthy.jsonl --processes 0", "--processes: expected an integer >= 1");
    helper_refuse(2, "doctor healthy.jsonl --weight-decay 2", "from 0 to 1");
    helper_refuse(2, "doctor absent.jsonl", "absent.jsonl");
    helper_refuse(2, "doctor", "doctor");
}

/* The line of a warm-up of 10 and of `total` updates to 2e-5. */
static double line(int k, int total) {
    return k < 10 ? 2e-5 * k / 10 : 2e-5 * (total - k) / (total - 10);
}

/* Writes a sound run that was resumed behind update `resume` with the total of `later` in place of
 * `total`, with a row every `every` updates up to `last`. The log says `said`; 0: it says nothing.
 */
static void write_extended(const char *path, int every, int total, int resume, int later, int last,
                           int said) {
    static char text[65536];
    size_t used = 0;
    if (said > 0)
        used +=
            (size_t)snprintf(text, sizeof text, "{\"max_steps\": %d, \"log_history\": [\n", said);
    for (int k = every; k <= last; k += every)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"step\": %d, \"loss\": %.6f, \"learning_rate\": %.17g}\n",
                                 said > 0 && k > every ? "," : "", k, 2.5 - 0.0005 * k,
                                 line(k, k <= resume ? total : later));
    if (said > 0) snprintf(text + used, sizeof text - used, "]}\n");
    helper_write(path, text);
}

/* Two totals that nobody said explain a sound column with a bug, too: that is no answer, no
 * finding and no name. */
static void verify_no_bug_of_two_free_totals(void **state) {
    (void)state;
    write_extended("free.jsonl", 10, 777, 450, 1554, 1554, 0);
    write_extended("near.json", 10, 500, 270, 750, 750, 750);
    static const char *const names[] = {"free.jsonl", "near.json"};
    for (size_t i = 0; i < 2; i++) {
        char command[128];
        snprintf(command, sizeof command, "doctor %s", names[i]);
        struct said said = helper_run(0, command);
        assert_non_null(strstr(said.out, "Nothing found"));
        assert_null(strstr(said.out, "lag1"));
        assert_null(strstr(said.out, "is sound"));
        assert_null(strstr(said.out, "  LR column reads as a sound contract\n"));
        helper_free(&said);
        snprintf(command, sizeof command, "lr fit %s", names[i]);
        said = helper_run(3, command);
        assert_null(strstr(said.out, "[lag1]"));
        helper_free(&said);
        snprintf(command, sizeof command, "lr check %s --expect hf-4.50", names[i]);
        said = helper_run(3, command);
        assert_null(strstr(said.out, "fits lag1"));
        helper_free(&said);
    }
}

/* Linear to 0 over 100 updates behind a warm-up of 17, with update 1 skipped by a loss scaler; five
 * digits are printed, the log stops at update 51 and says no total. `lag1` prints that as well. */
static void verify_no_bug_of_a_skip_at_printed_precision(void **state) {
    (void)state;
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "step,learning_rate,loss\n");
    for (int k = 1; k <= 51; k++) {
        const int done = k < 3 ? 0 : k - 2; /* the counter that update k applies */
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.4e,%.4f\n", k,
                                 5e-5 * (done < 17 ? done / 17.0 : (100 - done) / 83.0),
                                 2.5 - 0.01 * k);
    }
    helper_write("skipped.csv", text);
    struct said said = helper_run(0, "doctor skipped.csv");
    assert_non_null(strstr(said.out, "just as well as hf with update 1 skipped"));
    assert_null(strstr(said.out, "lag1: likely"));
    helper_free(&said);
    said = helper_run(3, "lr fit skipped.csv");
    assert_non_null(strstr(said.out, "likeliest, but undecided: lag1 linear"));
    assert_non_null(strstr(said.out, "because: fit 1 is a known bug, and with update 1 skipped"));
    assert_non_null(strstr(said.out, "this is also printed by hf"));
    helper_free(&said);
}

/* Where nothing fits a log that says no total, a total may be what is missing; where one is given,
 * it is not. */
static void verify_that_a_total_is_asked_for(void **state) {
    (void)state;
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "step,learning_rate\n");
    for (int k = 1; k <= 60; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.17g\n", k,
                                 1e-5 * (1.0 + k * k % 23));
    helper_write("odd.csv", text);
    for (int given = 0; given < 2; given++) {
        struct said said = helper_run(1, given ? "lr fit odd.csv --steps 80" : "lr fit odd.csv");
        assert_non_null(strstr(said.out, "Nothing fits"));
        assert_int_equal(strstr(said.out, "--steps T says the total") == NULL, given);
        assert_int_equal(
            strstr(said.out, "because: no shipped contract and schedule was found that gives these "
                             "values; the search is bounded and tried ") != NULL,
            given);
        helper_free(&said);
    }
}

/* The log shows every row of an extension: an answer where it says the total, and possible where it
 * says another or none. */
static void verify_that_an_extension_is_said(void **state) {
    (void)state;
    static const struct {
        int told, last, code, sound;
    } cases[] = {{200, 200, 0, 1}, {100, 100, 3, 0}, {0, 200, 3, 0}};
    for (size_t i = 0; i < 3; i++) {
        write_extended("said.json", 1, 100, 51, 200, cases[i].last, cases[i].told);
        struct said said = helper_run(cases[i].code, "lr fit said.json --contract hf-4.50");
        assert_non_null(strstr(said.out, "total 100; total 200 from update 52"));
        helper_free(&said);
        said = helper_run(0, "doctor said.json --verbose");
        assert_non_null(strstr(said.out, "remark schedule_total_changed"));
        assert_int_equal(strstr(said.out, "is sound") != NULL, cases[i].sound);
        assert_int_equal(strstr(said.out, "  LR column reads as a sound contract\n") != NULL,
                         cases[i].sound);
        assert_int_equal(strstr(said.out, "remark lr_unexplained") == NULL, cases[i].sound);
        /* What was tried, and what to say that would let more be tried. */
        assert_int_equal(strstr(said.out, "twinstep found no training loop and schedule") == NULL,
                         cases[i].sound);
        assert_int_equal(strstr(said.out, "tried, by a search that is bounded") == NULL,
                         cases[i].sound);
        assert_int_equal(strstr(said.out, "add --updates-per-epoch N to either") == NULL,
                         cases[i].sound);
        assert_int_equal(strstr(said.out, "twinstep lr fit LOG --steps T") != NULL,
                         cases[i].told == 0);
        assert_int_equal(strstr(said.out, "the total that the log says and others") != NULL,
                         !cases[i].sound && cases[i].told > 0);
        helper_free(&said);
        said = helper_run(0, "doctor said.json --json");
        json_t *root = json_loads(said.out, 0, NULL);
        assert_non_null(root);
        size_t at;
        json_t *remark;
        json_array_foreach(json_object_get(root, "remarks"), at,
                           remark) if (strcmp(json_string_value(json_object_get(remark, "id")),
                                              "schedule_total_changed") == 0)
            assert_string_equal(json_string_value(json_object_get(remark, "confidence")),
                                cases[i].sound ? "certain" : "possible");
        json_decref(root);
        helper_free(&said);
    }
}

/* A Trainer's console prints no update numbers: without --log-every the learning rate is not looked
 * at, and with it a scheduler that begins anew at update 500 is found. */
static void validate_rows_that_are_numbered(void **state) {
    (void)state;
    static char text[100 * 80];
    size_t used = 0;
    for (int k = 10; k <= 1000; k += 10) {
        const int n = k < 500 ? k - 1 : k - 490;
        const double lr = 5e-5 * (n < 100 ? n / 100.0 : (1000.0 - n) / 900.0);
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{'loss': 0.69%d, 'learning_rate': %.10e, 'epoch': %.2f}\n", k % 7,
                                 lr, k / 500.0);
    }
    helper_write("anew.txt", text);
    struct said said = helper_run(0, "doctor anew.txt");
    assert_non_null(strstr(said.out, "--log-every N (the Trainer's logging_steps) numbers"));
    assert_null(strstr(said.out, "scheduler_not_restored"));
    helper_free(&said);
    said = helper_run(1, "doctor anew.txt --log-every 10");
    assert_non_null(strstr(said.out, "note: update numbers: this log prints none; a row every 10 "
                                     "updates, as --log-every says"));
    assert_null(strstr(said.out, "rows are numbered from 1"));
    assert_null(strstr(said.out, "--log-every N"));
    assert_non_null(strstr(said.out, "scheduler_not_restored: likely"));
    assert_non_null(strstr(said.out, "evidence: update 500 (line 50)"));
    helper_free(&said);
    said = helper_run(2, "doctor anew.txt --log-every 0");
    assert_non_null(strstr(said.err, "--log-every: expected an integer >= 1"));
    helper_free(&said);
    said = helper_run(2, "doctor anew.txt --log-every 4294967297");
    assert_non_null(strstr(said.err, "--log-every: expected an integer up to 2^32"));
    helper_free(&said);
    helper_write("numbered.csv", "step,loss\n1,2.0\n2,1.9\n");
    said = helper_run(2, "doctor numbered.csv --log-every 10");
    assert_non_null(strstr(said.err, "--log-every: numbered.csv prints update numbers"));
    helper_free(&said);
    helper_accept(0, "doctor numbered.csv --log-every 1");
    helper_accept(3, "lr check numbered.csv --expect hf --log-every 1");
    helper_refuse(2, "lr check numbered.csv --expect hf --log-every 10", "they are not every 10");
}

/* A Trainer's fp16 run whose norm is not finite at one update: at the first one a schedule that
 * held prints what one does that went on and shows the LR used; later on it does not. */
static void validate_a_norm_that_is_not_finite(void **state) {
    (void)state;
    static char text[1 << 15];
    for (int skipped = 1; skipped <= 50; skipped += 49) {
        size_t at = (size_t)snprintf(
            text, sizeof text, "{\"global_step\": 200, \"max_steps\": 200, \"log_history\": [");
        for (int k = 1; k <= 200; k++) {
            const int s = k - 1 - (skipped > 1 && k > skipped);
            const double lr = 2e-5 * (s < 20 ? s / 20.0 : (200 - s) / 180.0);
            char norm[32];
            snprintf(norm, sizeof norm, "%.4f", 1.0 + 0.3 * (k % 7) + 0.001 * k);
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%s{\"step\": %d, \"loss\": %.4f, \"grad_norm\": %s, "
                                   "\"learning_rate\": %.17g}",
                                   k > 1 ? ", " : "", k, 2.0 + 1.0 / k, k == skipped ? "NaN" : norm,
                                   lr);
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "]}\n");
        assert_true(at < sizeof text);
        helper_write("norm.json", text);
        struct said said = helper_run(0, "doctor norm.json");
        const char *const words =
            skipped == 1
                ? "Either the LR column holds at 1 update that was skipped, as a loss "
                  "scaler does, or the schedule went on: both print these LRs."
                : "1 update was skipped, as a loss scaler does: the LR column holds there.";
        if (strstr(said.out, words) == NULL) fail_msg("%d: %s", skipped, said.out);
        helper_free(&said);
    }
}

/* A scheduler that steps in each of four micro-batches is over after a quarter of the run. Printed
 * to four digits, the 0 that it leaves may be an LR that is small; all the same it is said. */
static void validate_an_lr_of_0_for_most_of_the_run(void **state) {
    (void)state;
    static const char *const words[] = {"lr_zero_at_1/N_of_run: possible\n"
                                        "  The LR is printed as 0 from update 7 of 24 on, so it is "
                                        "less than 0.0001 there: the last "
                                        "18 updates train nothing, or next to nothing.\n",
                                        "per_microbatch_stepping: possible\n"};
    static char text[1 << 12];
    size_t at = 0;
    for (int k = 1; k <= 24; k++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{\"step\": %d, \"loss\": %.9f, \"lr\": %.4f}\n", k, 4.0 - 0.01 * k,
                               k < 7 ? 3e-3 * (6 - (k - 1)) / 6.0 : 0.0);
    assert_true(at < sizeof text);
    helper_write("zeros.jsonl", text);
    for (int told = 0; told < 2; told++) {
        struct said said =
            helper_run(0, told ? "doctor zeros.jsonl --accumulate 4" : "doctor zeros.jsonl");
        if (strstr(said.out, words[told]) == NULL || strstr(said.out, "lr_zero_last_step") != NULL)
            fail_msg("%s", said.out);
        helper_free(&said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_an_lr_of_0_for_most_of_the_run),
        cmocka_unit_test(validate_rows_that_are_numbered),
        cmocka_unit_test(validate_a_norm_that_is_not_finite),
        cmocka_unit_test(validate_one_row),
        cmocka_unit_test(validate_healthy),
        cmocka_unit_test(validate_rates_without_digits),
        cmocka_unit_test(validate_finding),
        cmocka_unit_test(validate_no_preference),
        cmocka_unit_test(validate_json),
        cmocka_unit_test(validate_options),
        cmocka_unit_test(validate_nothing_checkable),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(verify_no_bug_of_two_free_totals),
        cmocka_unit_test(verify_no_bug_of_a_skip_at_printed_precision),
        cmocka_unit_test(verify_that_a_total_is_asked_for),
        cmocka_unit_test(verify_that_an_extension_is_said)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
