/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory whole
 * compare: text, Markdown, JSON, and exit statuses; and the trap of equal LR columns, at the
 * command line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

#define REAL TWINSTEP_SOURCE_DIR "/tests/golden/logs/"

/* Writes the column that hf-4.50 and olmo-core both print for linear, T = 12, without warm-up. The
 * losses differ by `apart` from update 2 on. */
static void write_log(const char *path, double apart) {
    static char text[8192];
    size_t used = 0;
    for (int k = 1; k <= 12; k++)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "{\"step\": %d, \"loss\": %.6f, \"learning_rate\": %.17g, \"grad_norm\": %.4f}\n", k,
            2.5 - 0.01 * k + (k > 1 ? apart : 0.0), 5e-7 * (12 - k) / 12.0, 2.0 + 0.1 * k);
    helper_write(path, text);
}

static void validate_equal(void **state) {
    (void)state;
    write_log("a.jsonl", 0.0);
    struct said said = helper_run(0, "compare a.jsonl a.jsonl --contract-a olmo-core "
                                     "--contract-b olmo-core");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    assert_non_null(strstr(said.out, "The applied LRs agree under olmo-core for A"));
    assert_null(strstr(said.out, "noise floor"));
    helper_free(&said);
}

/* One training (a warm-up of 10 updates as the log of 1 + ln does it, then a constant) as two tools
 * log it: every 5 updates in full, and every 25 with three digits, where no row shows the warm-up.
 */
static void verify_one_training_in_two_logs(void **state) {
    (void)state;
    for (int tool = 0; tool < 2; tool++) {
        static char text[4096];
        size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
        for (int k = 1; k <= 150; k += tool ? 25 : 5) {
            const double share = k < 2 ? 0.0 : k < 11 ? log(k - 1.0) / log(10.0) : 1.0;
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     tool ? "%d,%.4f,%.2e\n" : "%d,%.4f,%.17g\n", k, 2.0 + 1.0 / k,
                                     0.0015 * share);
        }
        helper_write(tool ? "sparse.csv" : "dense.csv", text);
    }
    struct said said = helper_run(0, "compare dense.csv sparse.csv");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    helper_free(&said);
    helper_accept(0, "compare sparse.csv dense.csv");
}

/* Writes a log of a line from 2e-4 at update 12 to 0 at update 120 whose scheduler stands still at
 * one skipped update. */
static void write_skipped(const char *path, int skipped, int every) {
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
    for (int k = every; k <= 120; k += every) {
        const int n = k - 1 - (skipped < k);
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.4f,%.17g\n", k,
                                 2.0 + 1.0 / k, 2e-4 * (n < 12 ? n / 12.0 : (120 - n) / 108.0));
    }
    helper_write(path, text);
}

/* Rows that are apart show between which updates one was skipped, and not which. So logs of one
 * training at other rows leave room for one course, and logs of trainings that skipped others do
 * not. */
static void verify_skips_between_rows(void **state) {
    (void)state;
    write_skipped("each.csv", 51, 1);
    write_skipped("fifth.csv", 51, 5);
    write_skipped("fourth.csv", 51, 4);
    write_skipped("late.csv", 54, 1);
    struct said said = helper_run(0, "compare each.csv fifth.csv");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    helper_free(&said);
    said = helper_run(0, "compare each.csv fifth.csv --contract-a hf --contract-b hf");
    assert_non_null(strstr(said.out, "The applied LRs agree under hf for A and hf for B"));
    assert_non_null(
        strstr(said.out, "Which updates of a range were skipped, the rows leave open."));
    helper_free(&said);
    helper_accept(0, "compare fifth.csv fourth.csv");
    said = helper_run(1, "compare late.csv fourth.csv");
    assert_non_null(strstr(said.out, "differ from update 52 on"));
    helper_free(&said);
}

/* An inverse square root from Megatron as two tools log it, of which six updates were skipped: the
 * second one has three rows, which another peak and a floor print, too. The rows of both together
 * have one explanation. */
static void verify_one_explanation_of_both(void **state) {
    (void)state;
    for (int tool = 0; tool < 2; tool++) {
        static char text[4096];
        size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
        for (int k = 400; k <= 1100; k += tool ? 250 : 50) {
            const int n = k < 816 ? k : k - 6;
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     tool ? "%d,%.4f,%.3e\n" : "%d,%.4f,%.5e\n", k, 2.0 + 1.0 / k,
                                     0.003 * sqrt(100.0) / sqrt(n));
        }
        helper_write(tool ? "sparse.csv" : "dense.csv", text);
    }
    struct said said = helper_run(0, "compare dense.csv sparse.csv");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    helper_free(&said);
    if (helper_size(0, 0, 1)) helper_accept(0, "compare sparse.csv dense.csv");
}

/* A line of transformers' polynomial from 4e-5 at update 43 to 1e-7 at update 4213, whose rows
 * begin in its middle, as two tools log it. So few digits have more explanations than a search
 * lists. */
static void verify_open_explanations(void **state) {
    (void)state;
    for (int tool = 0; tool < 2; tool++) {
        static char text[16384];
        size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
        for (int k = 1430; k <= 4213; k += tool ? 50 : 10)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     tool ? "%d,%.4f,%.5e\n" : "%d,%.4f,%.3e\n", k, 2.0 + 1.0 / k,
                                     (4e-5 - 1e-7) * (1.0 - (k - 1 - 43) / 4170.0) + 1e-7);
        helper_write(tool ? "sparse.csv" : "dense.csv", text);
    }
    struct said said = helper_run(0, "compare dense.csv sparse.csv");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    assert_null(strstr(said.out, "    A: "));
    helper_free(&said);
    if (!helper_size(0, 0, 1)) return;
    said = helper_run(0, "compare dense.csv sparse.csv --json");
    assert_non_null(strstr(said.out, "\"untestable\""));
    helper_free(&said);
}

/* Writes one training, from update `first` to `last` every `every` updates. */
static void write_rows(const char *name, double (*lr)(int update), int first, int last, int every,
                       const char *format) {
    static char text[131072];
    size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
    for (int k = first; k <= last; k += every) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.4f,", k, 2.0 + 1.0 / k);
        used += (size_t)snprintf(text + used, sizeof text - used, format, lr(k));
    }
    helper_write(name, text);
}

/* Another such line, of which neither log needs a break: each has more explanations than a search
 * lists. */
static double line_of_few_digits(int k) {
    return (5e-4 - 1e-7) * (1.0 - (k - 1 - 100) / 4302.0) + 1e-7;
}
static void verify_more_than_are_listed(void **state) {
    (void)state;
    write_rows("dense.csv", line_of_few_digits, 1746, 4185, 2, "%.3e\n");
    write_rows("sparse.csv", line_of_few_digits, 1746, 4185, 10, "%.5e\n");
    helper_accept(0, "compare dense.csv sparse.csv");
}

/* A line of Accelerate whose rows begin in its decay, and of which three updates were skipped: the
 * sparse log by itself is one with four skipped updates and another peak, and the rows of both are
 * that with three. */
static double skipped_line(int k) {
    const int n = k - (k >= 2290) - (k >= 2605) - (k >= 3497);
    return 8e-4 * ((4300 - n) / 4100.0);
}
static void verify_skips_of_both(void **state) {
    (void)state;
    write_rows("dense.csv", skipped_line, 1958, 4300, 2, "%.17g\n");
    write_rows("sparse.csv", skipped_line, 1958, 4300, 4, "%.3e\n");
    helper_accept(0, "compare dense.csv sparse.csv");
}

/* A cosine with one restart (transformers' cosine_with_restarts) of which update 36 was skipped, as
 * two tools log it: each is explained by a cosine whose counter goes back where no resume is. */
static void verify_hidden_breaks(void **state) {
    (void)state;
    for (int tool = 0; tool < 2; tool++) {
        static char text[65536];
        size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
        for (int k = 2; k <= 2084; k += tool ? 10 : 2) {
            const double n = k < 36 ? k : k - 1;
            const double part = fmod(2.0 * (n - 30.0) / 2970.0, 1.0);
            const double share = n < 30 ? n / 30.0 : 0.5 * (1.0 + cos(3.141592653589793 * part));
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     tool ? "%d,%.4f,%.17g\n" : "%d,%.4f,%.3e\n", k, 2.0 + 1.0 / k,
                                     2.5e-6 * share);
        }
        helper_write(tool ? "sparse.csv" : "dense.csv", text);
    }
    struct said said = helper_run(0, "compare dense.csv sparse.csv");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    helper_free(&said);
}

/* One printed column of two frameworks, each known by the form of its log: transformers 4.50 prints
 * the LR of the next update, OLMo-core that of the update at hand. An explanation of the one log
 * prints the other, too, and is none of it, since that framework did not write it. */
static void verify_frameworks_of_the_logs(void **state) {
    static char hf[16384], olmo[16384];
    size_t a = (size_t)snprintf(hf, sizeof hf,
                                "{\"global_step\": 100, \"max_steps\": 100, \"log_history\": [");
    size_t b = 0;
    (void)state;
    for (int k = 1; k <= 100; k++) {
        const double lr = 0.4 * (k < 30 ? k / 30.0 : (100 - k) / 70.0);
        a += (size_t)snprintf(hf + a, sizeof hf - a,
                              "%s{\"step\": %d, \"learning_rate\": %.17g, \"loss\": %.4f}",
                              k > 1 ? ",\n" : "", k, lr, 2.0 + 1.0 / k);
        b += (size_t)snprintf(olmo + b, sizeof olmo - b,
                              "2026-11-21 06:17:34.065\thost:0\tolmo_core.train.callbacks."
                              "console_logger:71\tINFO\t[step=%d/100,epoch=1]\n"
                              "    train/CE loss=%.4f\n    optim/LR (group 0)=%.4f\n",
                              k, 2.0 + 1.0 / k, lr);
    }
    snprintf(hf + a, sizeof hf - a, "]}\n");
    helper_write("trainer_state.json", hf);
    helper_write("olmo.txt", olmo);
    struct said said = helper_run(1, "compare trainer_state.json olmo.txt");
    assert_non_null(strstr(said.out,
                           "LR: The logged LR columns agree, but under hf-4.50 for A and olmo-core "
                           "for B the applied LRs differ by one update: update k of A applies what "
                           "update k-1 of B applies"));
    helper_free(&said);
}

static void validate_trap(void **state) {
    (void)state;
    write_log("a.jsonl", 0.0);
    write_log("b.jsonl", 0.001);
    struct said said = helper_run(1, "compare a.jsonl b.jsonl --contract-a hf-4.50 "
                                     "--contract-b olmo-core");
    assert_non_null(strstr(said.out, "differs: "));
    assert_non_null(strstr(said.out,
                           "LR: The logged LR columns agree, but under hf-4.50 for A and olmo-core "
                           "for B the applied LRs differ by one update: update k of A applies what "
                           "update k-1 of B applies"));
    assert_non_null(strstr(said.out, "Order of first differences: loss at 2"));
    assert_non_null(strstr(said.out, "Points to: schedule"));
    assert_non_null(strstr(said.out, "No noise floor was measured"));
    helper_free(&said);
    said = helper_run(1, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "state them with --contract-a"));
    helper_free(&said);
}

/* Rows of evaluations stand beside the row of their update and replace nothing; of rows that do,
 * one is said to be one. */
static void validate_rows_that_stand_twice(void **state) {
    (void)state;
    static const char *const rows[] = {
        "{\"step\": 1, \"epoch\": 0.5, \"loss\": 2.5}\n",
        "{\"step\": 2, \"epoch\": 1.0, \"loss\": 2.4}\n",
        "{\"step\": 2, \"epoch\": 1.0, \"eval_loss\": 2.6}\n",
        "{\"step\": 3, \"epoch\": 1.5, \"loss\": 2.3}\n",
        "{\"step\": 3, \"epoch\": 1.5, \"loss\": 2.2}\n",
    };
    static const struct {
        unsigned rows;
        const char *said;
    } cases[] = {{0xb, ")\n"}, /* each update once */
                 {0xf, "; 1 evaluation row was joined to the row of the same update\n"},
                 {0x1f, "; 1 row repeated, the later one counts; 1 evaluation row was joined"},
                 {0x1b, "; 1 row repeated, the later one counts\n"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024] = "";
        for (size_t r = 0; r < COUNT_OF(rows); r++)
            if (cases[i].rows >> r & 1u) strcat(text, rows[r]);
        helper_write("twice.jsonl", text);
        struct said said = helper_run(0, "compare twice.jsonl twice.jsonl");
        char *const end = strchr(said.out, '\n');
        assert_non_null(end);
        end[1] = '\0';
        if (strstr(said.out, cases[i].said) == NULL) fail_msg("%s", said.out);
        helper_free(&said);
    }
}

/* Columns that have no name of ours are compared by nobody: they are told, once each, whichever log
 * has them, and the verdict does not speak of them. */
static void validate_columns_left_out(void **state) {
    (void)state;
    helper_write("a.csv", "step,loss,foo,g1\n1,2.5,1,1\n2,2.4,1,1\n3,2.3,1,1\n");
    helper_write("b.csv", "step,loss,foo\n1,2.5,1\n2,2.4,1\n3,2.3,9\n");
    helper_write("c.csv", "step,loss,g6,g5,g4,g3,g2,g1\n1,2.5,1,1,1,1,1,1\n3,2.3,1,1,1,1,1,1\n");
    struct said said = helper_run(0, "compare a.csv b.csv");
    assert_non_null(
        strstr(said.out, ": every compared column agrees within its printed precision"));
    assert_non_null(
        strstr(said.out, "\nNot compared, since twinstep knows no such column: foo, g1\n"));
    helper_free(&said);
    said = helper_run(0, "compare b.csv c.csv --markdown");
    assert_non_null(strstr(
        said.out,
        "\n- Not compared, since twinstep knows no such column: foo, g6, g5, g4, g3 and 2 more\n"));
    helper_free(&said);
    said = helper_run(0, "compare a.csv b.csv --json");
    json_t *root = json_loads(said.out, 0, NULL), *names = json_object_get(root, "not_compared");
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "foo");
    assert_string_equal(json_string_value(json_array_get(names, 1)), "g1");
    json_decref(root);
    helper_free(&said);
    write_log("a.jsonl", 0.0);
    said = helper_run(0, "compare a.jsonl a.jsonl");
    assert_null(strstr(said.out, "Not compared"));
    helper_free(&said);
}

static size_t lines_of(const char *text) {
    size_t lines = 0;
    for (; *text != 0; text++)
        lines += *text == '\n';
    return lines;
}

static void validate_markdown(void **state) {
    (void)state;
    write_log("a.jsonl", 0.0);
    write_log("b.jsonl", 0.001);
    struct said said = helper_run(1, "compare a.jsonl b.jsonl --markdown");
    assert_non_null(strstr(said.out, "**differs**: "));
    assert_non_null(strstr(said.out, "\n| column | class | pairs | first | A | B |\n"));
    assert_non_null(strstr(said.out, "\n| loss | different | 12 | 2 | "));
    assert_true(lines_of(said.out) <= 25);
    helper_free(&said);
    said = helper_run(0, "compare " REAL "hf446/dpo-linear/trainer_state.json " REAL
                         "hf446/dpo-linear/events.out.tfevents.1.host --markdown");
    assert_true(lines_of(said.out) <= 25);
    assert_null(strstr(said.out, REAL)); /* no path of the writer's machine */
    helper_free(&said);
    helper_write("null.jsonl", "{\"step\": 1, \"loss\": null, \"grad_norm\": 2.1}\n"
                               "{\"step\": 2, \"loss\": null, \"grad_norm\": 2.2}\n");
    said = helper_run(3, "compare a.jsonl null.jsonl --markdown");
    assert_non_null(strstr(said.out, "B names the loss and has no number of it"));
    assert_non_null(strstr(said.out, "  - note: it names the loss, and no row has a number there"));
    helper_free(&said);
}

/* A loss that both logs have as means over other windows is in both, and was not compared. */
static void validate_not_compared(void **state) {
    (void)state;
    static const char row[] = "{\"step\": %d, \"loss\": 0.5, \"grad_norm\": 1.25, "
                              "\"learning_rate\": %.9g}";
    for (int every = 5; every <= 10; every += 5) {
        FILE *const out = fopen(every == 5 ? "five.json" : "ten.json", "w");
        assert_non_null(out);
        fprintf(out, "{\"global_step\": 60, \"logging_steps\": %d, \"log_history\": [", every);
        for (int step = every; step <= 60; step += every) {
            fprintf(out, row, step, 1e-3 * (60 - step + every) / 60.0);
            fputs(step < 60 ? "," : "]}", out);
        }
        assert_int_equal(fclose(out), 0);
    }
    struct said said = helper_run(1, "compare five.json ten.json --markdown");
    assert_non_null(strstr(said.out, "\nNot compared: loss (means over different windows).\n"));
    assert_non_null(strstr(said.out, " that were compared only LRs differ; other columns "));
    assert_true(lines_of(said.out) <= 25);
    helper_free(&said);
    said = helper_run(1, "compare five.json ten.json --json");
    json_t *const object = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    const json_t *const loss = json_array_get(json_object_get(object, "columns"), 0);
    assert_string_equal(json_string_value(json_object_get(loss, "column")), "loss");
    assert_string_equal(json_string_value(json_object_get(loss, "class")), "not compared");
    json_decref(object);
    helper_free(&said);
}

static void validate_json(void **state) {
    (void)state;
    json_error_t error;
    write_log("a.jsonl", 0.0);
    write_log("b.jsonl", 0.001);
    struct said said = helper_run(1, "compare a.jsonl b.jsonl --json");
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) fail_msg("%s\n%s", error.text, said.out);
    assert_string_equal(json_string_value(json_object_get(object, "verdict")), "differs");
    assert_true(json_is_null(json_object_get(object, "cause")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(object, "order"), 0)),
                        "loss");
    const json_t *lr = json_object_get(object, "lr");
    assert_string_equal(json_string_value(json_object_get(lr, "state")), "untestable");
    assert_true(json_is_null(json_object_get(object, "floor")));
    json_decref(object);
    helper_free(&said);
}

/* The skipped updates of both explanations must be data, as lr fit prints them. */
static void validate_json_skips(void **state) {
    (void)state;
    json_error_t error;
    for (size_t s = 0; s < 2; s++) {
        FILE *file = fopen(s == 0 ? "a.jsonl" : "b.jsonl", "w");
        assert_non_null(file);
        for (int k = 1; k <= 60; k++)
            fprintf(file, "{\"step\": %d, \"lr\": %.17g}\n", k,
                    5e-7 * (61.0 - k + (s == 1 && k > 20 ? 1.0 : 0.0)) / 60.0);
        fclose(file);
    }
    struct said said = helper_run(1, "compare a.jsonl b.jsonl --contract-a hf --contract-b hf "
                                     "--json");
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) fail_msg("%s\n%s", error.text, said.out);
    const json_t *lr = json_object_get(object, "lr");
    assert_true(json_is_true(json_object_get(lr, "only_skips_differ")));
    assert_true(json_is_null(json_object_get(lr, "skipped_a")));
    const json_t *skipped = json_object_get(lr, "skipped_b");
    assert_int_equal(json_array_size(skipped), 1);
    const json_t *range = json_array_get(skipped, 0);
    assert_int_equal(json_integer_value(json_object_get(range, "first")), 20);
    assert_int_equal(json_integer_value(json_object_get(range, "last")), 20);
    assert_int_equal(json_integer_value(json_object_get(range, "updates")), 1);
    assert_true(json_is_null(json_object_get(object, "cause")));
    json_decref(object);
    helper_free(&said);
}

static void write_batches(const char *path, int apart, int epochs) {
    static char text[8192];
    size_t used = 0;
    for (int k = 0; k < 20; k++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"epoch\": %d, \"step\": %d, \"loss\": %.4f}\n", k / 5,
                                 apart * (epochs ? k % 5 : k), 2.0 - 0.01 * k);
    helper_write(path, text);
}

/* Batches of each epoch, two apart: of which update each is nobody knows, so that nothing of
 * another log can be held against them. */
static void validate_batches_of_epochs(void **state) {
    (void)state;
    write_batches("a.jsonl", 1, 0);
    write_batches("b.jsonl", 1, 1);
    struct said said = helper_run(0, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "they are numbered on"));
    helper_free(&said);
    write_batches("b.jsonl", 2, 1);
    said = helper_run(3, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "the steps of one begin anew in each epoch, of unknown"));
    helper_free(&said);
    said = helper_run(0, "compare b.jsonl b.jsonl");
    helper_free(&said);
}

/* Writes a log of DPO whose loss is apart from the first update on, to either side, by what a
 * summation of two micro-batches moves it in bf16, and varies by far more from row to row. */
static void write_rounded(const char *path, double apart) {
    static char text[8192];
    size_t used = 0;
    for (int k = 1; k <= 20; k++) {
        const double gap = k % 3 == 2 ? -apart : apart;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"step\": %d, \"loss\": %.9f, \"learning_rate\": %.17g, "
                                 "\"grad_norm\": %.6f}\n",
                                 k, 0.6 - 0.02 * (k % 4) - 0.005 * k + gap, 5e-7 * (20 - k) / 20.0,
                                 2.0 + 0.1 * (k % 5) + gap);
    }
    helper_write(path, text);
}

/* What a small gap in the forward pass does not tell apart is named, in words and as data: whoever
 * reads `cause` alone in CI would take the first of them for the one. */
static void validate_causes(void **state) {
    (void)state;
    static const char *const names[] = {"dtype", "nondeterminism", "batch-shape", "normalisation",
                                        "rng"};
    write_rounded("a.jsonl", 0.0);
    write_rounded("b.jsonl", 3e-6); /* 5e-6 of the loss: what f32 may make */
    struct said said = helper_run(1, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "\nPoints to: dtype, or kernels or batch shape\n"));
    helper_free(&said);
    write_rounded("b.jsonl", 3e-5);
    said = helper_run(1, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "if weights, data and loss are the same."));
    assert_non_null(strstr(said.out, "\nPoints to: dtype, or kernels or batch shape or "
                                     "normalisation or dropout\n"));
    helper_free(&said);
    said = helper_run(1, "compare a.jsonl b.jsonl --json");
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "cause")), names[0]);
    const json_t *causes = json_object_get(object, "causes");
    assert_int_equal(json_array_size(causes), COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_string_equal(json_string_value(json_array_get(causes, i)), names[i]);
    assert_true(json_is_null(json_object_get(object, "initial_weights"))); /* these are logs */
    assert_int_equal(json_array_size(json_object_get(object, "root_parts")), 0);
    json_decref(object);
    helper_free(&said);
    write_log("a.jsonl", 0.0); /* one cause, and none */
    write_log("b.jsonl", 0.001);
    said =
        helper_run(1, "compare a.jsonl b.jsonl --contract-a hf-4.50 --contract-b olmo-core --json");
    object = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    causes = json_object_get(object, "causes");
    assert_int_equal(json_array_size(causes), 1);
    assert_string_equal(json_string_value(json_array_get(causes, 0)), "schedule");
    json_decref(object);
    helper_free(&said);
    said = helper_run(1, "compare a.jsonl b.jsonl --json");
    object = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_null(json_object_get(object, "cause")));
    assert_int_equal(json_array_size(json_object_get(object, "causes")), 0);
    json_decref(object);
    helper_free(&said);
}

static void validate_untestable(void **state) {
    (void)state;
    helper_write("a.jsonl", "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": 2.4}\n");
    helper_write("b.jsonl", "{\"step\": 7, \"loss\": 2.5}\n{\"step\": 8, \"loss\": 2.4}\n");
    struct said said = helper_run(3, "compare a.jsonl b.jsonl");
    assert_non_null(strstr(said.out, "untestable: no column has one update in both logs"));
    helper_free(&said);
}

#define SCENARIO                                                                                   \
    "twinstep: 1\nname: d\nsteps: 2\ncommon:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: "    \
    "24}\n"                                                                                        \
    "  batch: {size: 2, micro: 2}\narms:\n"

static void record(const char *path, const char *arms) {
    char command[128];
    helper_write("d.yaml", arms);
    snprintf(command, sizeof command, "run d.yaml -o %s --overwrite", path);
    struct said said = helper_run(1, command);
    helper_free(&said);
}

/* Between two traces the ledger must name the consumer, also where nothing but the seed differs. */
static void validate_ledger(void **state) {
    (void)state;
    json_error_t error;
    record("plain.h5", SCENARIO "  baseline: {}\n  test: {dropout: {residual: 0.1}}\n");
    record("seed.h5", SCENARIO "  baseline: {dropout: {residual: 0.1, seed: 5}}\n  test: {}\n");
    struct said said = helper_run(1, "compare plain.h5 plain.h5 --run-b test");
    assert_non_null(
        strstr(said.out, "RNG: update 1: dropout/branch-attention drew 0 words in A, "));
    assert_non_null(strstr(said.out, " in B (and 1 other consumer)\n"));
    assert_non_null(strstr(said.out, "\nRoots differ from update 1 on: phase "));
    assert_non_null(strstr(said.out, "Points to: rng\n"));
    helper_free(&said);
    said = helper_run(1, "compare plain.h5 seed.h5 --run-a test --json");
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) fail_msg("%s\n%s", error.text, said.out);
    const json_t *rng = json_object_get(object, "rng");
    const json_t *seed = json_array_get(json_object_get(rng, "seeds"), 0);
    assert_string_equal(json_string_value(json_object_get(seed, "stream")), "dropout");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(seed, "seed"), 1)), 5);
    assert_null(json_object_get(rng, "update"));
    assert_string_equal(json_string_value(json_object_get(object, "cause")), "rng");
    json_decref(object);
    helper_free(&said);
    said = helper_run(0, "compare plain.h5 seed.h5 --run-b test --markdown");
    assert_null(strstr(said.out, "RNG"));
    helper_free(&said);
}

/* A restart that loses a stream draws as many words as before but from another place, which must be
 * shown. */
static void validate_place(void **state) {
    (void)state;
    record("resume.h5", SCENARIO
           "  baseline: {dropout: {residual: 0.1}, resume: {after: 1}}\n"
           "  test: {dropout: {residual: 0.1}, resume: {after: 1, restores: [schedule, optimizer, "
           "data, scaler]}}\n");
    struct said said = helper_run(1, "compare resume.h5 resume.h5 --run-b test");
    assert_non_null(strstr(said.out, "RNG: every consumer drew equally many words; stream dropout "
                                     "stands at seed 17, clock 1 in A and at seed 17, clock 0 in B "
                                     "before update 2\n"));
    assert_non_null(strstr(said.out, "A random stream stands elsewhere no later than the runs "
                                     "parted"));
    helper_free(&said);
}

/* The format that one side is told must not be asked of the other: a table of Lightning's numbers
 * its updates from 0, and reads the same updates under its own format alone. */
static void validate_formats(void **state) {
    (void)state;
    helper_write("sides.jsonl", "{\"step\": 7, \"loss\": 2.5}\n{\"step\": 8, \"loss\": 2.25}\n");
    helper_write("sides.csv", "epoch,step,loss\n0,7,2.5\n0,8,2.25\n");
    struct said said = helper_run(1, "compare sides.jsonl sides.csv");
    assert_non_null(strstr(said.out, "so step 7 was read as update 8; if another program wrote it "
                                     "and counts from 1, --format csv reads"));
    helper_free(&said);
    said = helper_run(0, "compare sides.jsonl sides.csv --format-b csv");
    assert_non_null(strstr(said.out, "B: sides.csv (CSV or TSV"));
    assert_null(strstr(said.out, "note: "));
    helper_free(&said);
    helper_accept(0, "compare sides.csv sides.jsonl --format-a csv --format jsonl");
    said = helper_run(2, "compare sides.jsonl sides.csv --format-b cvs");
    assert_non_null(strstr(said.err, "--format-b: expected a format of logs, got \"cvs\"; did you "
                                     "mean csv?"));
    helper_free(&said);
}

static void validate_refusals(void **state) {
    (void)state;
    write_log("a.jsonl", 0.0);
    helper_refuse(2, "compare a.jsonl a.jsonl --contract-a nobody", "no contract \"nobody\"");
    helper_refuse(2, "compare a.jsonl", "compare");
    helper_refuse(2, "compare a.jsonl absent.jsonl", "absent.jsonl");
}

/* Writes 60 rows whose loss and gradient norm are null from `from` on, as pandas and JavaScript
 * write NaN, as JSON rows or as a table with empty cells. */
static void write_diverged(const char *path, int from, int table) {
    static char text[16384];
    size_t used = 0;
    if (table) used = (size_t)snprintf(text, sizeof text, "step,loss,grad_norm,learning_rate\n");
    for (int k = 1; k <= 60; k++) {
        const double lr = 2e-5 * (k <= 5 ? (k - 1) / 5.0 : (61 - k) / 55.0);
        char loss[32] = "null", norm[32] = "null";
        if (table) loss[0] = norm[0] = 0;
        if (k < from) snprintf(loss, sizeof loss, "%.4f", 2.5 - 0.003 * k);
        if (k < from) snprintf(norm, sizeof norm, "%.4f", 1.1 + 0.01 * (k % 5));
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 table ? "%d,%s,%s,%.17g\n"
                                       : "{\"step\": %d, \"loss\": %s, \"grad_norm\": %s, "
                                         "\"learning_rate\": %.17g}\n",
                                 k, loss, norm, lr);
    }
    helper_write(path, text);
}

/* The logs agree in every number that both have, and one run has none from update 31 on. */
static void verify_an_end_in_the_middle_is_not_equal(void **state) {
    (void)state;
    static const char *const names[] = {"diverged.jsonl", "diverged.csv"};
    write_diverged("sound.jsonl", 61, 0);
    write_diverged("none.jsonl", 1, 0);
    for (int table = 0; table < 2; table++) {
        char command[128];
        write_diverged(names[table], 31, table);
        snprintf(command, sizeof command, "compare sound.jsonl %s", names[table]);
        struct said said = helper_run(3, command);
        assert_non_null(strstr(said.out, "from update 31 on B has no number of loss"));
        assert_non_null(strstr(said.out, "note: loss has no number from update 31 on"));
        helper_free(&said);
        snprintf(command, sizeof command, "compare %s sound.jsonl --json", names[table]);
        said = helper_run(3, command);
        assert_non_null(strstr(said.out, "from update 31 on A has no number of loss"));
        assert_non_null(strstr(said.out, "\"loss has no number from update 31 on"));
        helper_free(&said);
        snprintf(command, sizeof command, "doctor %s", names[table]);
        said = helper_run(0, command);
        assert_non_null(strstr(said.out, "note: loss has no number from update 31 on"));
        helper_free(&said);
    }
    struct said said = helper_run(0, "doctor sound.jsonl");
    assert_null(strstr(said.out, "has no number"));
    helper_free(&said);
    said = helper_run(0, "compare sound.jsonl sound.jsonl");
    helper_free(&said);
    const char *const words[] = {"compare", "sound.jsonl", "none.jsonl", NULL};
    said = helper_say(words, NULL);
    assert_non_null(strstr(said.out, "note: it names the loss, and no row has a number there"));
    helper_free(&said);
}

/* Two trainings of which one stopped early are equal only where somebody asks for the rows of both.
 */
static void validate_common(void **state) {
    (void)state;
    write_log("whole.jsonl", 0.0);
    struct said whole = helper_run(0, "export whole.jsonl --to jsonl");
    char *end = whole.out;
    for (int row = 0; row < 7 && end != NULL; row++)
        end = strchr(end, '\n') != NULL ? strchr(end, '\n') + 1 : NULL;
    assert_non_null(end);
    *end = '\0';
    helper_write("stopped.jsonl", whole.out);
    helper_free(&whole);
    struct said said = helper_run(3, "compare whole.jsonl stopped.jsonl");
    assert_non_null(strstr(said.out, "untestable: every compared column agrees"));
    assert_non_null(strstr(said.out, "but B ends at update 7 and A goes on to 12: "));
    helper_free(&said);
    said = helper_run(3, "compare stopped.jsonl whole.jsonl --json");
    assert_non_null(strstr(said.out, "\"ended\": \"A ends at update 7 and B goes on to 12\""));
    helper_free(&said);
    said = helper_run(0, "compare whole.jsonl stopped.jsonl --common");
    assert_non_null(strstr(said.out, "equal-within-precision: "));
    assert_non_null(strstr(said.out, "; B ends at update 7 and A goes on to 12, and only updates "
                                     "of both were asked for (--common)"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_equal),
                                       cmocka_unit_test(verify_one_training_in_two_logs),
                                       cmocka_unit_test(verify_skips_between_rows),
                                       cmocka_unit_test(verify_one_explanation_of_both),
                                       cmocka_unit_test(verify_open_explanations),
                                       cmocka_unit_test(verify_hidden_breaks),
                                       cmocka_unit_test(verify_more_than_are_listed),
                                       cmocka_unit_test(verify_skips_of_both),
                                       cmocka_unit_test(verify_frameworks_of_the_logs),
                                       cmocka_unit_test(validate_trap),
                                       cmocka_unit_test(validate_rows_that_stand_twice),
                                       cmocka_unit_test(validate_columns_left_out),
                                       cmocka_unit_test(validate_markdown),
                                       cmocka_unit_test(validate_not_compared),
                                       cmocka_unit_test(validate_json),
                                       cmocka_unit_test(validate_json_skips),
                                       cmocka_unit_test(validate_batches_of_epochs),
                                       cmocka_unit_test(validate_causes),
                                       cmocka_unit_test(validate_untestable),
                                       cmocka_unit_test(validate_ledger),
                                       cmocka_unit_test(validate_place),
                                       cmocka_unit_test(validate_formats),
                                       cmocka_unit_test(validate_refusals),
                                       cmocka_unit_test(verify_an_end_in_the_middle_is_not_equal),
                                       cmocka_unit_test(validate_common)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
