/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * CSV: the state machine of RFC 4180, then Lightning's, W&B's and any other table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "logs/csv.h"
#include "tests/logs/helper_fixture.h"
#include "tests/logs/helper_logs.h"

#define N real_nan_f64()

static struct log *read_with(struct arena *arena, const char *text,
                             const struct log_options *options) {
    struct log *log = NULL;
    if (log_import_bytes("test", text, strlen(text), options, arena, &log) != STATUS_OK)
        fail_msg("%s", status_text());
    return log;
}

static void open_text(struct log_csv *csv, struct log_source *source, const char *text) {
    *source = (struct log_source){
        .name = "test", .bytes = (const unsigned char *)text, .length = strlen(text)};
    log_csv_open(csv, source, source->length);
}

static void expect_field(struct log_csv *csv, int first, const char *text, int last, int open) {
    struct log_csv_field field;
    assert_int_equal(log_csv_next(csv, first, &field), 1);
    assert_int_equal(field.text.length, strlen(text));
    assert_memory_equal(field.text.text, text, strlen(text));
    assert_int_equal(field.last, last);
    assert_int_equal(field.open, open);
}

static void validate_rfc_4180(void **state) {
    struct log_source source;
    struct log_csv csv;
    struct log_csv_field field;
    (void)state;
    open_text(&csv, &source, "a,\"b\"\"c\"\"\",\"d,\r\ne\"\r\n\n, ,\"\"\nlast");
    expect_field(&csv, 1, "a", 0, 0);
    expect_field(&csv, 0, "b\"c\"", 0, 0);
    expect_field(&csv, 0, "d,\r\ne", 1, 0);
    assert_int_equal(csv.line, 3);
    expect_field(&csv, 1, "", 0, 0);
    expect_field(&csv, 0, "", 0, 0);
    expect_field(&csv, 0, "", 1, 0);
    expect_field(&csv, 1, "last", 1, 1);
    assert_int_equal(log_csv_next(&csv, 1, &field), 0);
    assert_int_equal(csv.cut, 0);
    open_text(&csv, &source, "a\tb,c\n\"open");
    assert_int_equal(csv.separator, '\t');
    expect_field(&csv, 1, "a", 0, 0);
    expect_field(&csv, 0, "b,c", 1, 0);
    assert_int_equal(log_csv_next(&csv, 1, &field), 0);
    assert_int_equal(csv.cut, 1);
}

static struct log *read_fixture(struct arena *arena, const char *name,
                                const struct log_options *options) {
    const struct fixture f = fixture_read(arena, name);
    return read_with(arena, f.bytes, options);
}

/* Records of one step must become one row as long as they do not contradict each other. */
static void validate_lightning(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    (void)state;
    log_options_init(&options);
    const struct log *log = read_fixture(&arena, "logs/fixtures/lightning/metrics.csv", &options);
    static const int64_t steps[] = {1, 2, 3, 3};
    static const uint32_t lines[] = {2, 4, 8, 10};
    assert_string_equal(log->format, "lightning");
    assert_int_equal(log->step_base, 0);
    assert_int_equal(log->rows, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(log->step[i], steps[i]);
        assert_int_equal(log->line[i], lines[i]);
    }
    logs_expect(log, "train_loss", 0, 4.151733875274658, 0.0);
    logs_expect(log, "lr-AdamW", 1, 0.0005, 0.0); /* Lightning rounds nothing */
    logs_expect(log, "train_loss", 1, 4.25, 0.0);
    logs_expect(log, "val_loss", 1, 0.5, 0.0); /* behind the second header */
    logs_expect(log, "lr-AdamW", 2, 0.001, 0.0);
    logs_expect(log, "lr-AdamW", 3, 0.0, N);
    logs_expect(log, "train_loss", 3, 4.5, 0.0);
    assert_string_equal(log_column_of(log, LOG_LR_LOGGED)->source, "lr-AdamW");
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "train_loss");
    assert_string_equal(log_column_of(log, LOG_EVAL_LOSS)->source, "val_loss");
    arena_close(&arena);
}

/* Other programs write Lightning's header, too: who counts from 1, has the columns or the epochs of
 * the Trainer, or numbers that no repr writes is not taken for it, and where both readings stay
 * possible a note says which was taken. */
static void verify_who_counts_from_0(void **state) {
#define SAID "so step %d was read as update"
    static const struct {
        const char *text, *format;
        int64_t first, last;
        int said;
    } cases[] = {
        /* a script's own, from 1, at every update and at every tenth */
        {"epoch,step,loss,lr\n0,1,3.91,0.0003\n0,2,3.82,0.0002\n", "csv", 1, 2, 0},
        {"epoch,step,loss\n0,10,3.91\n0,20,3.82\n0,40,3.8\n", "csv", 10, 40, 0},
        /* pandas.DataFrame(trainer.state.log_history).to_csv(), from any row on */
        {"epoch,grad_norm,learning_rate,loss,step\n1.0,1.5,0.1,2.5,7\n1.0,1.5,0.1,2.5,8\n", "csv",
         7, 8, 0},
        {"epoch,loss,step,total_flos\n1.0,2.5,7,\n2.0,2.5,8,\n", "csv", 7, 8, 0},
        {"epoch,loss,step,train_runtime\n1.0,2.5,7,\n2.0,2.5,8,\n", "csv", 7, 8, 0},
        {",epoch,loss,step\n0,1.0,2.5,7\n1,2.0,2.5,8\n", "csv", 7, 8, 0},
        {"epoch,loss,step\n0.25,2.5,7\n0.5,2.5,8\n", "csv", 7, 8, 0},
        /* printf's */
        {"epoch,step,loss\n0,7,3.9100\n0,8,3.8200\n", "csv", 7, 8, 0},
        {"epoch,step,loss\n0,0,3.9100\n0,1,3.8200\n", "csv", 1, 2, 0},
        /* Lightning's: from 0, every fiftieth, and with LearningRateMonitor */
        {"epoch,step,loss\n0,0,3.91\n0,1,3.82\n", "lightning", 1, 2, 0},
        {"epoch,step,loss\n0,49,3.91\n0,99,3.82\n", "lightning", 50, 100, 0},
        {"epoch,lr-Adam,step,loss\n0,0.5,7,3.91\n0,0.5,8,3.82\n", "lightning", 8, 9, 0},
        /* rewritten by a tool that rounds: the steps are still Lightning's */
        {"epoch,step,loss\n0,49,3.9100\n0,99,3.8200\n", "lightning", 50, 100, 0},
        /* a resumed run, or another program's; one row */
        {"epoch,step,loss\n0,7,3.91\n0,8,3.82\n", "lightning", 8, 9, 7},
        {"epoch,step,loss\n0,21,3.91\n0,49,3.82\n", "lightning", 22, 50, 21},
        {"epoch,step,loss\n0,1,3.91\n", "lightning", 2, 2, 1},
        {"epoch,lr-Adam,step,loss\n0,0.5,1,3.91\n0,0.5,2,3.82\n", "lightning", 2, 3, 1},
    };
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char said[64];
        const struct log *log = logs_read(&arena, cases[i].text, NULL);
        if (strcmp(log->format, cases[i].format) != 0) fail_msg("case %zu: %s", i, log->format);
        assert_int_equal(log->step[0], cases[i].first);
        assert_int_equal(log->step[log->rows - 1], cases[i].last);
        snprintf(said, sizeof said, SAID, cases[i].said);
        if (logs_has_note(log, said) != (cases[i].said > 0)) fail_msg("case %zu: the note", i);
        if (cases[i].said == 0) continue;
        log = logs_read(&arena, cases[i].text, "lightning"); /* who says so need not be told */
        if (logs_has_note(log, said)) fail_msg("case %zu: the note", i);
    }
    const struct log *log = logs_read(&arena, cases[12].text, NULL);
    logs_expect(log, "loss", 0, 3.91, 1e-4); /* what was rounded is not exact */
    arena_close(&arena);
#undef SAID
}

static void validate_wandb_chart(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    (void)state;
    log_options_init(&options);
    const struct log *log = read_fixture(&arena, "logs/fixtures/wandb-csv/chart.csv", &options);
    assert_string_equal(log->format, "wandb-csv");
    assert_int_equal(log->rows, 3);
    assert_int_equal(log->column_count, 2); /* no __MIN, no __MAX, no other run */
    logs_expect(log, "train/loss", 1, 0.69, 1e-4);
    logs_expect(log, "train/loss", 2, 0.0, N);
    logs_expect(log, "train/learning_rate", 2, 2.5e-7, 1e-8);
    assert_true(logs_has_note(log, "\"my - run\" was read"));
    options.run = "other";
    log = read_fixture(&arena, "logs/fixtures/wandb-csv/chart.csv", &options);
    logs_expect(log, "train/loss", 1, 9.0, 0.0);
    assert_null(log_column_by_source(log, "train/learning_rate"));
    arena_close(&arena);
}

/* The training's own step must be preferred to W&B's counter of calls. */
static void validate_wandb_history(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    (void)state;
    log_options_init(&options);
    const struct log *log = read_fixture(&arena, "logs/fixtures/wandb-csv/history.csv", &options);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[0], 10);
    assert_int_equal(log->step[1], 20);
    logs_expect(log, "train/loss", 0, 0.6931471805599453, 0.0);
    assert_null(log_column_by_source(log, "_runtime"));
    log = read_with(&arena, "_step,_runtime,loss\n0,1.5,2.5\n1,1.6,2.25\n", &options);
    assert_string_equal(log->format, "wandb-csv");
    assert_int_equal(log->step_base, 0);
    assert_int_equal(log->step[1], 2);
    arena_close(&arena);
}

static void validate_any_table(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    (void)state;
    log_options_init(&options);
    options.map[0].ours = "loss";
    options.map[0].theirs = "the \"loss\"";
    options.map_count = 1;
    const struct log *log = read_fixture(&arena, "logs/fixtures/csv/quotes.csv", &options);
    assert_string_equal(log->format, "csv");
    assert_int_equal(log->rows, 3);
    assert_int_equal(log->line[1], 5);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "the \"loss\"");
    logs_expect(log, "the \"loss\"", 0, 0.6931, 1e-4);
    logs_expect(log, "lr", 0, 1e-5, 1e-5);
    assert_null(log_column_by_source(log, "comment"));
    log_options_init(&options);
    log = read_fixture(&arena, "logs/fixtures/csv/table.tsv", &options);
    assert_int_equal(log->step[0], 1);
    assert_int_equal(log->step_base, 0);
    logs_expect(log, "lr", 1, 2e-4, 1e-4);
    log = read_with(&arena, "a,b\n1,2\n3,4\n", &options); /* nothing says which is the step */
    assert_int_equal(log->step_guessed, 1);
    options.map[0].ours = "step";
    options.map[0].theirs = "a";
    options.map_count = 1;
    log = read_with(&arena, "a,b\n1,2\n3.0,4\n,5\n", &options);
    assert_int_equal(log->step[1], 3);
    assert_int_equal(log->step[2], 0);
    assert_int_equal(log->column_count, 1);
    arena_close(&arena);
}

/* Records of an evaluation that say so by a text are no rows of the training, whose loss has the
 * same name, wherever the column stands. */
static void validate_evaluations(void **state) {
    static const char *const tables[] = {
        "step,split,loss,lr\n1,train,2.5,0.1\n1,val,3.5,\n2,train,2.25,0.1\n2,test,3.25,\n",
        "step,loss,lr,Phase\n1,2.5,0.1,\n1,3.5,,Validation\n2,2.25,0.1,\n2,3.25,,dev\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = logs_read(&arena, tables[i], NULL);
        const struct log_column *const loss = log_column_of(log, LOG_LOSS), *const evaluated =
                                                                                log_column_of(
                                                                                    log,
                                                                                    LOG_EVAL_LOSS);
        assert_int_equal(log->rows, 4);
        assert_string_equal(evaluated->source, "eval/loss");
        for (size_t row = 0; row < 4; row++) {
            assert_int_equal(log_has(loss, row), row % 2 == 0);
            assert_int_equal(log_has(evaluated, row), row % 2 == 1);
        }
        assert_true(evaluated->value[1] == 3.5 && evaluated->value[3] == 3.25);
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    const struct log *log = logs_read(&arena, "step,mode,loss\n1,test,2.5\n2,test,2.25\n", NULL);
    assert_true(log_column_of(log, LOG_LOSS)->value[1] == 2.25); /* a run in a mode of its own */
    arena_close(&arena);
}

/* What Aim 3.29.1 wrote with Metric.dataframe().to_csv() of a script that tracks 2.5 / s (NaN at
 * s = 6) and 1e-6 s at step 5 s: a metric without a name of its own, beside a step and an epoch
 * that nobody gave. It is no table of Lightning, whose steps count from 0. */
static void validate_aim(void **state) {
    static const struct {
        const char *file, *ours;
        enum log_name name;
        double first;
    } files[] = {{"logs/fixtures/csv/aim-loss.csv", "loss", LOG_LOSS, 2.5},
                 {"logs/fixtures/csv/aim-learning_rate.csv", "lr_logged", LOG_LR_LOGGED, 1e-6}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log_options options;
        const struct fixture f = fixture_read(&arena, files[i].file);
        log_options_init(&options);
        options.map[0].ours = files[i].ours;
        options.map[0].theirs = "value";
        options.map_count = 1;
        const struct log *log = read_with(&arena, f.bytes, &options);
        const struct log_column *column = log_column_of(log, files[i].name);
        assert_string_equal(log->format, "csv");
        assert_int_equal(log->rows, 8);
        assert_non_null(column);
        for (size_t row = 0; row < 8; row++) {
            const double s = (double)(row + 1);
            assert_int_equal(log->step[row], 5 * (row + 1));
            if (i == 0 && row == 5) /* pandas writes a NaN as an empty cell */
                assert_false(log_has(column, row));
            else
                assert_true(column->value[row] ==
                            (i == 0 ? files[i].first / s : files[i].first * s));
        }
        arena_close(&arena);
    }
}

/* The table that a notebook shows of a Trainer (transformers utils/notebook.py), copied out of it:
 * "No log" stands where an evaluation comes before the first row of the training. */
static void validate_notebook(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "Step\tTraining Loss\tValidation Loss\n"
                                      "50\tNo log\t1.412313\n"
                                      "100\t1.310127\t1.300931\n",
                                      NULL);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 100);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "Training Loss");
    assert_string_equal(log_column_of(log, LOG_EVAL_LOSS)->source, "Validation Loss");
    logs_expect(log, "Training Loss", 0, 0.0, (double)NAN);
    logs_expect(log, "Training Loss", 1, 1.310127, 1e-6);
    logs_expect(log, "Validation Loss", 0, 1.412313, 1e-6);
    /* the bar above it, copied with it */
    log = logs_read(&arena,
                    " [ 60/60 02:00, Epoch 1/1]\r\n\r\nStep\tTraining Loss\r\n"
                    "10\t1.310127\r\n20\t1.280041\r\n",
                    NULL);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 20);
    assert_int_equal(log->line[1], 5);
    logs_expect(log, "Training Loss", 1, 1.280041, 1e-6);
    /* transformers before 5 rounded the loss to four decimals, and the table prints six */
    log = logs_read(&arena, "Step\tTraining Loss\n50\t1.310100\n100\t1.280000\n150\t0.000000\n",
                    NULL);
    logs_expect(log, "Training Loss", 0, 1.3101, 1e-4);
    logs_expect(log, "Training Loss", 1, 1.28, 1e-4);
    logs_expect(log, "Training Loss", 2, 0.0, 1e-4);
    /* detectron2's metrics.json and fairseq2's console */
    log = logs_read(&arena,
                    "{\"iteration\": 19, \"loss_cls\": 0.9, \"lr\": 0.00039962, \"total_loss\": "
                    "1.9121}\n",
                    NULL);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "total_loss");
    log = logs_read(&arena,
                    "INFO - Train Metrics (step 10) - Loss: 2.101 | Gradient Norm: 1.201\n"
                    "INFO - Train Metrics (step 20) - Loss: 2.001 | Gradient Norm: 1.101\n",
                    NULL);
    assert_string_equal(log_column_of(log, LOG_GRAD_NORM)->source, "Gradient Norm");
    arena_close(&arena);
}

static void validate_refusals(void **state) {
    static const struct {
        const char *text, *format, *words;
    } cases[] = {
        {"step,loss\n1,2\n2\n3,4\n", NULL, "test:3: expected 2 fields as in the header, got 1"},
        {"step,loss,lr,loss\n1,2,3,4\n", NULL,
         "test:1: expected each name once in the header, got \"loss\" in fields 2 and 4"},
        {"| step | loss | loss |\n|---|---|---|\n| 1 | 2 | 3 |\n| 2 | 3 | 4 |\n", NULL,
         "test:1: expected each name once in the header, got \"loss\" in columns 2 and 3"},
        {"step,loss\n1,2\n2,3,4\n", NULL, "test:3: expected 2 fields as in the header, got 3"},
        {"step,loss\n1,2\n2.5,3\n", NULL,
         "test:3: column \"step\": expected a whole step, got \"2.5\""},
        {"step,loss\n1,2\n1e300,3\n", NULL, "expected a whole step, got \"1e300\""},
        {"step,loss\n1,2\n5e18,3\n", NULL, "expected a whole step, got \"5e18\""},
        {"step;loss;lr\n1;2,505;1,00E-05\n2;1,904;9E-06\n", NULL,
         "test:2: expected a number with a decimal point in field 2, got \"2,505\""},
        {"step;loss;lr\n1;2.505;1,00E-05\n", "csv",
         "test:2: expected a number with a decimal point in field 3, got \"1,00E-05\""},
        {"step\tlr\tloss\n1\t1e-5\t1,904\n2\t1e-5\t0,904\n", NULL,
         "test:3: expected a number with a decimal point in field 3, got \"0,904\""},
        {"step,loss\nx,3\n", "csv", "test:2: column \"step\": expected a whole step, got \"x\""},
        {"step,loss\n", "csv", "expected a log with numbers, got none"},
        {"a,b\nc,d\n", NULL, "expected a log of a known format"},
        {"Hello, world\nthis is, no log\n", NULL, "expected a log of a known format"},
    };
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *text =
            logs_refuse(&arena, cases[i].text, strlen(cases[i].text), cases[i].format);
        if (strstr(text, cases[i].words) == NULL) fail_msg("case %zu: %s", i, text);
    }
    arena_close(&arena);
}

static void verify_cut_end_is_said(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, "step,loss,lr\n1,0.5,0.1\n2,0.4", NULL);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, "line 3, the last, is cut"));
    log = logs_read(&arena, "step,loss\n1,0.5\n2,0.4", NULL);
    assert_int_equal(log->rows, 2);
    assert_true(logs_has_note(log, "line 3, the last, has no line end"));
    log = logs_read(&arena, "step,loss\n1,0.5\n2,\"0.4", NULL);
    assert_int_equal(log->rows, 1);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rfc_4180),        cmocka_unit_test(validate_lightning),
        cmocka_unit_test(validate_wandb_chart),     cmocka_unit_test(validate_wandb_history),
        cmocka_unit_test(verify_who_counts_from_0), cmocka_unit_test(validate_any_table),
        cmocka_unit_test(validate_evaluations),     cmocka_unit_test(validate_aim),
        cmocka_unit_test(validate_notebook),        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(verify_cut_end_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
