/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Every reader of console lines, on the constructed logs of tests/logs/fixtures: which it claims,
 * and its steps, values and quanta. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "tests/logs/helper_fixture.h"
#include "tests/logs/helper_logs.h"

#define N real_nan_f64()
#define INF real_inf_f64()
#define ROWS_MAX 5

struct cell {
    const char *source;
    int row;
    double value, quantum; /* quantum NaN: the row has no value */
};

struct expected { /* rows and cells end with zeros */
    const char *file, *format;
    int64_t base;
    uint64_t max_steps;
    size_t rows;
    int64_t step[ROWS_MAX];
    uint32_t line[ROWS_MAX];
    const char *named[4]; /* sources of loss, learning rate, gradient norm, evaluation */
    struct cell cells[16];
};

static const struct expected table[] = {
    {"hf-console/v4.txt",
     "hf-console",
     1,
     0,
     3,
     {1, 2, 3},
     {3, 4, 6},
     {"loss", "learning_rate", "grad_norm", NULL},
     {{"loss", 0, 0.6931, 1e-4},
      {"loss", 1, 0.7, 1e-4},
      {"grad_norm", 0, 18.41716194152832, 0},
      {"learning_rate", 1, 5e-7, 0},
      {"learning_rate", 0, 0.0, 0},
      {"rewards/chosen", 2, 0.25, 1e-10},
      {"rewards/accuracies", 2, 1.0, 0.1},
      {"epoch", 1, 0.5, 0.01},
      {"logps/chosen", 1, -883.0, 0}}},
    {"hf-console/v5.txt",
     "hf-console",
     1,
     0,
     3,
     {1, 2, 3},
     {1, 2, 4},
     {"loss", "learning_rate", "grad_norm", NULL},
     {{"loss", 0, 0.6931, 1e-4},
      {"loss", 1, 0.7, 1e-4},
      {"grad_norm", 1, 12.0, 1e-2},
      {"learning_rate", 0, 0.0, 0},
      {"learning_rate", 1, 2e-5, 1e-8},
      {"learning_rate", 2, 1.987e-5, 1e-8},
      {"num_tokens", 1, 12000.0, 10.0},
      {"epoch", 0, 0.05, 1e-5}}},
    {"megatron/core.txt",
     "megatron",
     1,
     100,
     2,
     {1, 2},
     {2, 4},
     {"lm loss", "learning rate", "grad norm", NULL},
     {{"lm loss", 0, 12.19037, 1e-5},
      {"learning rate", 0, 0.0, 0},
      {"learning rate", 1, 3.900183e-7, 1e-13},
      {"grad norm", 0, 18.417, 1e-3},
      {"consumed samples", 1, 16, 0},
      {"loss scale", 1, 0.5, 0.1},
      {"number of skipped iterations", 1, 1, 0},
      {"params norm", 0, 100.125, 1e-3}}},
    {"megatron/old.txt",
     "megatron",
     1,
     500,
     2,
     {10, 20},
     {1, 2},
     {"lm loss", "learning rate", NULL, NULL},
     {{"lm loss", 0, 7.123456, 1e-6},
      {"learning rate", 1, 1.499e-4, 1e-7},
      {"loss scale", 0, 4294967296.0, 0.1},
      {"number of skipped iterations", 0, 3, 0}}},
    {"nemo/sft.txt",
     "nemo",
     0,
     100,
     3,
     {1, 2, 3},
     {2, 3, 4},
     {"reduced_train_loss", "lr", NULL, NULL},
     {{"lr", 0, 0.0, 0},
      {"lr", 1, 2e-5, 1e-8},
      {"reduced_train_loss", 0, 14.66, 1e-2},
      {"reduced_train_loss", 1, 1.3, 1e-3},
      {"reduced_train_loss", 2, 12.0, 1e-2},
      {"consumed_samples", 2, 12.0, 0},
      {"global_batch_size", 0, 4.0, 0}}},
    {"torchtitan/colours.txt",
     "torchtitan",
     1,
     0,
     3,
     {1, 2, 10},
     {2, 4, 5},
     {"loss", NULL, "grad_norm", NULL},
     {{"loss", 0, 8.0491, 1e-5},
      {"grad_norm", 1, 0.5, 1e-4},
      {"tps", 0, 12345.0, 1.0},
      {"mfu", 0, 0.39, 0.01}}},
    {"torchtitan/plain.txt",
     "torchtitan",
     1,
     0,
     2,
     {1, 2},
     {1, 2},
     {"loss", NULL, NULL, NULL},
     {{"loss", 1, 7.9, 1e-4}}},
    {"torchtitan-golden/two.txt",
     "torchtitan-golden",
     1,
     0,
     3,
     {1, 2, 3},
     {1, 2, 3},
     {"loss", NULL, NULL, NULL},
     {{"loss", 0, 8.049097061157227, 0}, {"loss", 1, 7.7, 0}}},
    {"torchtitan-golden/three.txt",
     "torchtitan-golden",
     1,
     0,
     2,
     {10, 20},
     {2, 3},
     {"loss", NULL, "grad_norm", NULL},
     {{"loss", 1, 7.7, 1e-3}, {"grad_norm", 1, 0.5, 1e-4}}},
    {"torchtune/log.txt",
     "torchtune",
     1,
     0,
     4,
     {1, 2, 3, 3},
     {1, 2, 3, 5},
     {"loss", "lr", NULL, NULL},
     {{"loss", 0, 0.6931471824645996, 0},
      {"lr", 1, 1.9e-5, 0},
      {"lr", 2, 1.8e-5, 0},
      {"loss", 3, 0.25, 0},
      {"log_probs/chosen", 0, -262.6011047363281, 0}}},
    {"olmo-core/console.txt",
     "olmo-core",
     1,
     1200,
     2,
     {1, 3},
     {1, 13},
     {"train/CE loss", "optim/LR (group 0)", "optim/total grad norm", NULL},
     {{"train/CE loss", 0, 2.345, 1e-3},
      {"optim/LR (group 0)", 0, 0.0, 0},
      {"optim/LR (group 0)", 1, 5e-7, 1e-9},
      {"throughput/device/TPS", 0, 12345.0, 2.0},
      {"optim/total grad norm", 1, 1.2345678901234567e-5, 0},
      {"train/PPL", 0, 10.43, 0.01},
      {"throughput/device/flopsPS", 0, 1.772e9, 1e6},
      {"optim/step skipped", 0, 0.0, 0},
      {"optim/step skipped", 1, 5e-5, 0}}},
    {"open-instruct/log.txt",
     "open-instruct",
     1,
     0,
     3,
     {1, 2, 3},
     {2, 3, 4},
     {"Loss", "LR", NULL, "Val Loss"},
     {{"Loss", 0, 0.6931471824645996, 0},
      {"LR", 1, 5e-7, 0},
      {"Aux Loss", 1, 0.0123, 0},
      {"TPS", 1, 1234.5, 0},
      {"Val Loss", 2, 0.5, 0},
      {"Time", 2, 0.25, 0}}},
    {"llmc/main.log",
     "llmc",
     0,
     0,
     3,
     {1, 2, 3},
     {3, 4, 5},
     {"trl", "lr", "norm", "tel"},
     {{"trl", 0, 11.0123, 1e-4},
      {"lr", 0, 1e-6, 1e-6},
      {"norm", 1, 14.2, 1e-2},
      {"tel", 0, 11.0152, 1e-4},
      {"eval", 0, 0.2514, 1e-4}}},
    {"llmc-console/cuda.txt",
     "llmc-console",
     1,
     18865,
     2,
     {1, 2},
     {3, 4},
     {"loss", "lr", "norm", NULL},
     {{"loss", 0, 11.009876, 1e-6}, {"lr", 1, 8.57e-7, 1e-9}, {"norm", 1, 14.2, 1e-4}}},
    {"llmc-console/python.txt",
     "llmc-console",
     1,
     50,
     2,
     {1, 2},
     {2, 3},
     {"train loss", "lr", "norm", NULL},
     {{"train loss", 1, 4.059707, 1e-6}, {"lr", 0, 1e-4, 1e-6}}},
    {"deepspeed/log.txt",
     "deepspeed",
     1,
     0,
     3,
     {10, 20, 30},
     {1, 3, 4},
     {NULL, "lr", NULL, NULL},
     {{"lr", 0, 1e-5, 0}, {"lr", 1, 1.5e-5, 0}, {"lr", 2, 1.25e-5, 0}, {"skipped", 2, 3.0, 0}}},
    {"verl/digits.txt",
     "verl",
     1,
     0,
     3,
     {0, 1, 2},
     {1, 2, 3},
     {"actor/pg_loss", "actor/lr", "actor/grad_norm", NULL},
     {{"actor/lr", 1, 0.0, 1e-3},
      {"actor/pg_loss", 2, -0.01, 1e-3},
      {"val-core/openai/gsm8k/acc/mean@1", 0, 0.508, 1e-3},
      {"critic/score/mean", 1, -0.906, 1e-3}}},
    {"verl/repr.txt",
     "verl",
     1,
     0,
     2,
     {1, 2},
     {1, 2},
     {"actor/pg_loss", "actor/lr", "actor/grad_norm", NULL},
     {{"actor/lr", 1, 1e-6, 0},
      {"actor/pg_loss", 0, 0.0012345678901234567, 0},
      {"actor/grad_norm", 0, 0.02, 0}}},
    {"verl/units.txt",
     "verl",
     1,
     0,
     2,
     {3, 4},
     {1, 2},
     {"actor/pg_loss", "actor/lr(1e-4)", NULL, NULL},
     {{"actor/lr(1e-4)", 0, 0.005 * 1e-4, 1e-3 * 1e-4},
      {"reward_model/grad_norm", 0, 5.092, 1e-3}}},
    {"nemo-rl-console/dpo.txt",
     "nemo-rl-console",
     1,
     0,
     3,
     {1, 2, 3},
     {8, 21, 26},
     {"loss", NULL, NULL, NULL},
     {{"loss", 0, 0.6931, 1e-4}, {"loss", 2, 0.6605, 1e-4}, {"accuracy", 1, 1.0, 1e-4}}},
    {"nemo-rl-console/grpo.txt",
     "nemo-rl-console",
     1,
     5,
     2,
     {1, 2},
     {4, 16},
     {"Loss", NULL, NULL, NULL},
     {{"Loss", 0, -0.0012, 1e-4},
      {"Avg Reward", 1, 0.3125, 1e-4},
      {"Mean Generation Length", 0, 512.125, 1e-4}}},
    {"composer/epochs.txt",
     "composer",
     1,
     0,
     3,
     {1, 2, 3},
     {7, 17, 25},
     {"loss/train/total", "lr-DecoupledAdamW/group0", "l2_norm/grad/global", NULL},
     {{"loss/train/total", 0, 10.9476, 1e-4},
      {"loss/train/total", 2, 8.0, 1e-4},
      {"lr-DecoupledAdamW/group0", 2, 6e-4, 1e-4},
      {"lr-DecoupledAdamW/group1", 0, 1e-3, 1e-4},
      {"l2_norm/grad/global", 0, 2.5, 1e-4}}},
    {"composer/tokens.txt",
     "composer",
     1,
     0,
     2,
     {1, 5},
     {1, 9},
     {"loss/train/total", "lr-DecoupledLionW/group0", NULL, NULL},
     {{"loss/train/total", 1, 9.25, 1e-4}, {"time/batch", 1, 4.0, 1.0}}},
    {"table/card.md",
     "table",
     1,
     0,
     3,
     {250, 500, 1000},
     {13, 14, 16},
     {"Training Loss", NULL, NULL, "Validation Loss"},
     {{"Training Loss", 1, 1.125, 1e-4},
      {"Training Loss", 2, 0.9375, 1e-4},
      {"Validation Loss", 0, 1.25, 1e-4},
      {"Wer", 2, 40.25, 1e-2}}},
    {"table/boxes.txt",
     "table",
     1,
     0,
     3,
     {1, 2, 3},
     {5, 6, 11},
     {"loss", "lr", NULL, NULL},
     {{"loss", 1, 2.25, 1e-4}, {"lr", 1, 1e-5, 1e-7}, {"Loss", 2, 2.125, 1e-3}}},
    {"table/names.md",
     "table",
     1,
     0,
     2,
     {10, 20},
     {3, 4},
     {"Loss", NULL, NULL, NULL},
     {{"Loss", 0, 2.5, 1e-4}, {"Loss", 1, 2.25, 1e-4}}},
};

static struct log *read_fixture(struct arena *arena, const char *file) {
    char *name;
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    assert_int_equal(arena_format(arena, &name, "logs/fixtures/%s", file), STATUS_OK);
    const struct fixture f = fixture_read(arena, name);
    if (log_import(f.path, &options, arena, &log) != STATUS_OK) fail_msg("%s", status_text());
    return log;
}

static void check_named(const struct log *log, enum log_name name, const char *source) {
    const struct log_column *column = log_column_of(log, name);
    if (source == NULL) {
        if (column != NULL) fail_msg("%s: expected no %s", log->path, log_names[name].name);
    } else {
        if (column == NULL) fail_msg("%s: no %s", log->path, log_names[name].name);
        assert_string_equal(column->source, source);
    }
}

static void validate_fixtures(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct expected *e = &table[i];
        struct arena arena = ARENA_EMPTY;
        const struct log *log = read_fixture(&arena, e->file);
        print_message("%s\n", e->file);
        assert_string_equal(log->format, e->format);
        assert_int_equal(log->step_base, e->base);
        assert_int_equal(log->max_steps, e->max_steps);
        assert_int_equal(log->rows, e->rows);
        assert_int_equal(log->step_guessed, strcmp(e->format, "hf-console") == 0);
        for (size_t r = 0; r < e->rows; r++) {
            assert_int_equal(log->step[r], e->step[r]);
            assert_int_equal(log->line[r], e->line[r]);
        }
        check_named(log, LOG_LOSS, e->named[0]);
        check_named(log, LOG_LR_LOGGED, e->named[1]);
        check_named(log, LOG_GRAD_NORM, e->named[2]);
        check_named(log, LOG_EVAL_LOSS, e->named[3]);
        for (const struct cell *c = e->cells; c < e->cells + COUNT_OF(e->cells) && c->source; c++)
            logs_expect(log, c->source, (size_t)c->row, c->value, c->quantum);
        arena_close(&arena);
    }
}

#define DICT(loss) "{'loss': '" loss "', 'learning_rate': '0.001', 'epoch': '1'}\n"
#define EVAL "{'eval_loss': '4.153', 'eval_runtime': '0.0262', 'epoch': '0.3333'}\n"
#define BAR(count) "\r  8%|8  | " count " [00:00<00:03, 16.57it/s]"
#define CLEAR "\r                             \r"

/* The Trainer's dicts, whose updates the bar behind each says, as transformers 5.24 and tqdm 4.70
 * wrote them to a file: the bar in front of a dict is an older one, and evaluations have bars and
 * dicts of their own. */
static const struct {
    const char *text;
    uint64_t total; /* 0: bars number no rows */
    size_t rows;
    int64_t step[4];
} barred[] = {
    {BAR("0/60") CLEAR DICT("4") BAR("1/60") BAR("4/60") CLEAR DICT("3") BAR("7/60"),
     60,
     2,
     {1, 7}},
    {CLEAR DICT("4") BAR("20/60") "\n" BAR("0/8") CLEAR EVAL BAR("20/60") BAR("8/8") CLEAR DICT("3")
         BAR("40/60") EVAL,
     60,
     2,
     {20, 40}},
    {DICT("4") " 8%|8 | 5/60 [a]\n" DICT("3") " 8%|8 | 10/60 [a]\n" DICT("2"), 60, 3, {5, 10, 15}},
    /* a last row without a bar, whose distance no others tell */
    {DICT("4") BAR("5/60") "\n" DICT("2"), 0, 2, {1, 2}},
    {DICT("4") BAR("1/60") "\n" DICT("3") BAR("7/60") "\n" DICT("2") BAR("14/60") "\n" DICT("1"),
     0,
     4,
     {1, 2, 3, 4}},
    /* it would lie behind the total */
    {DICT("4") BAR("5/60") "\n" DICT("3") BAR("10/60") "\n" DICT("2"), 60, 3, {5, 10, 15}},
    {DICT("4") BAR("5/12") "\n" DICT("3") BAR("10/12") "\n" DICT("2"), 0, 3, {1, 2, 3}},
    /* a row in the middle without one, another total, a count that stands or falls, or is none */
    {DICT("4") BAR("5/60") "\n" DICT("3") DICT("2") BAR("15/60"), 0, 3, {1, 2, 3}},
    {DICT("4") BAR("5/60") "\n" DICT("3") BAR("10/61"), 0, 2, {1, 2}},
    {DICT("4") BAR("5/60") "\n" DICT("3") BAR("5/60"), 0, 2, {1, 2}},
    {DICT("4") BAR("5/60") "\n" DICT("3") BAR("4/60"), 0, 2, {1, 2}},
    {DICT("4") BAR("0/60") "\n" DICT("3") BAR("5/60"), 0, 2, {1, 2}},
    {DICT("4") BAR("5/60") "\n" DICT("3") BAR("61/60"), 0, 2, {1, 2}},
    {DICT("4") DICT("3"), 0, 2, {1, 2}},
};

static void validate_bars(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(barred); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = logs_read(&arena, barred[i].text, NULL);
        print_message("%zu\n", i);
        assert_string_equal(log->format, "hf-console");
        assert_int_equal(log->rows, barred[i].rows);
        assert_int_equal(log->max_steps, barred[i].total);
        assert_int_equal(log->step_guessed, barred[i].total == 0);
        assert_int_equal(logs_has_note(log, "those of the progress bar"), barred[i].total > 0);
        for (size_t r = 0; r < log->rows; r++)
            assert_int_equal(log->step[r], barred[i].step[r]);
        arena_close(&arena);
    }
}

/* What the table cannot express: absent cells, NaN and infinity, notes, flags. */
static void validate_special_values(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = read_fixture(&arena, "hf-console/v4.txt");
    logs_expect(log, "grad_norm", 1, N, 0.0);
    logs_expect(log, "grad_norm", 2, INF, 0.0);
    assert_null(log_column_by_source(log, "eval_loss"));
    assert_null(log_column_by_source(log, "train_runtime"));
    assert_int_equal(log_column_of(log, LOG_LOSS)->windowed, 1);
    assert_true(logs_has_note(log, "prints no step"));
    log = read_fixture(&arena, "hf-console/v5.txt");
    logs_expect(log, "loss", 2, N, 0.0);
    logs_expect(log, "grad_norm", 2, INF, 0.0);
    log = logs_read(&arena, "{'loss': 0.5, 'learning_rate': 0.1, 'epoch': 1}\n", NULL);
    logs_expect(log, "loss", 0, 0.5, 1e-4); /* rounded before, whatever is left of it */
    log = logs_read(&arena,
                    "INFO config {'a': 1, 'loss': 'sum'}\nINFO {'learning_rate': 'auto'}\n"
                    "{'loss': 0.5, 'learning_rate': 0.1, 'epoch': 1}\n",
                    NULL);
    assert_int_equal(log->rows, 1); /* options whose names are those of values are no row */
    logs_expect(log, "loss", 0, 0.5, 1e-4);
    log = logs_read(&arena, "{'loss': 'nan', 'learning_rate': '0.1', 'epoch': '1'}\n", NULL);
    logs_expect(log, "loss", 0, N, 0.0);
    log = read_fixture(&arena, "olmo-core/console.txt");
    assert_null(log_column_by_source(log, "other/metric")); /* its block had ended */
    log = read_fixture(&arena, "megatron/core.txt");
    logs_expect(log, "lm loss", 1, 0.0, N);
    logs_expect(log, "grad norm", 1, N, 0.0);
    assert_true(logs_has_note(log, "1 rows of other ranks than 7"));
    log = read_fixture(&arena, "verl/units.txt");
    logs_expect(log, "critic/kl", 0, N, 0.0);
    log = read_fixture(&arena, "nemo-rl-console/dpo.txt");
    logs_expect(log, "sft_loss", 1, 0.0,
                N); /* nothing is carried over, and no validation is read */
    assert_null(log_column_by_source(log, "Validation loss"));
    assert_null(log_column_by_source(log, "Training FLOPS"));
    log = read_fixture(&arena, "nemo-rl-console/grpo.txt");
    logs_expect(log, "Loss", 1, N, 0.0);
    log = read_fixture(&arena, "composer/epochs.txt");
    logs_expect(log, "loss/train/total", 1, N, 0.0);
    assert_null(log_column_by_source(log, "metrics/eval/LanguageCrossEntropy"));
    log = read_fixture(&arena, "composer/tokens.txt");
    assert_true(logs_has_note(log, "blocks that do not say their update were left out: 1"));
    assert_true(logs_has_note(log, "1 rows of other ranks than 0"));
    log = read_fixture(&arena, "table/card.md");
    logs_expect(log, "Training Loss", 0, 0.0, N); /* "No log" */
    logs_expect(log, "Wer", 1, N, 0.0);
    assert_null(log_column_by_source(log, "Value")); /* a table without steps */
    assert_true(logs_has_note(log, "left out: 1, the first is line 15"));
    log = logs_read(&arena,
                    "| Step | `Loss` |\n|---|---|\n| 10 | 2.5 |\n| 20 | tbd |\n| __30__ | *2* |\n",
                    NULL);
    assert_int_equal(log->rows, 2);
    logs_expect(log, "Loss", 1, 2.0, 1.0);
    assert_true(logs_has_note(log, "left out: 1, the first is line 4"));
    log = read_fixture(&arena, "table/boxes.txt");
    assert_true(logs_has_note(log, "2 tables"));
    log = read_fixture(&arena, "nemo/sft.txt");
    logs_expect(log, "consumed_samples", 0, 0.0, N);
    log = read_fixture(&arena, "torchtitan/colours.txt");
    logs_expect(log, "grad_norm", 2, N, 0.0);
    logs_expect(log, "mfu", 1, 0.0, N);
    assert_null(log_column_by_source(log, "memory"));
    log = read_fixture(&arena, "torchtitan-golden/three.txt");
    assert_false(logs_has_note(log, "have no names"));
    log = read_fixture(&arena, "torchtitan-golden/two.txt");
    assert_true(logs_has_note(log, "its columns have no names: the second is read as the loss"));
    log = read_fixture(&arena, "torchtune/log.txt");
    logs_expect(log, "log_probs/chosen", 1, N, 0.0);
    logs_expect(log, "lr", 3, 0.0, N);
    log = read_fixture(&arena, "llmc/main.log");
    logs_expect(log, "tel", 1, 0.0, N);
    logs_expect(log, "trl", 2, N, 0.0);
    logs_expect(log, "norm", 2, INF, 0.0);
    log = read_fixture(&arena, "deepspeed/log.txt");
    assert_int_equal(log_column_of(log, LOG_SKIPPED)->cumulative, 1);
    arena_close(&arena);
}

/* In a live file, what the end may have cut must be reported or left out, and never be read as a
 * number with more digits. */
static void verify_cut_ends_are_said(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(
        &arena, " iteration 1/ 9 | learning rate: 1.0E-07 | lm loss: 2.5E+00 | grad norm: 18.4",
        NULL);
    assert_null(log_column_by_source(log, "grad norm"));
    logs_expect(log, "lm loss", 0, 2.5, 0.1);
    assert_false(logs_has_note(log, "no line end")); /* nothing cut was taken */
    log = logs_read(&arena, "step=3, skipped=0, lr=[1e-05], mom=[(0.", NULL);
    logs_expect(log, "lr", 0, 1e-5, 0.0);
    assert_false(logs_has_note(log, "no line end"));
    log = logs_read(&arena, "Step 1 | loss:0.5 lr:2e-05\nStep 2 | loss:0.25 lr:1e-0", NULL);
    assert_true(logs_has_note(log, "line 2, the last, has no line end"));
    log =
        logs_read(&arena, "{'loss': 1.5, 'learning_rate': 0.1}\n{'loss': 1.25, 'learning_r", NULL);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, "line 2: a dict does not end"));
    arena_close(&arena);
}

/* What stands behind a tear belongs to another row, or is a part of a number: it must not be read,
 * and it must be said. */
static void verify_torn_lines_are_said(void **state) {
    static const char whole[] = " iteration 1/ 9 | learning rate: 1.0E-07 | lm loss: 2.5E+00 |\n";
    static const struct {
        const char *lines;
        uint64_t rows, second; /* the number of rows, and the update of the second one */
        double rate, loss;     /* in the second row; -1: none */
        const char *note;      /* NULL: nothing is torn */
    } cases[] = {
        /* another process ends the line inside a number */
        {" iteration 2/ 9 | lm loss: 2.4E+00 | learning rate: 2.0\n", 2, 2, -1, 2.4,
         "1, the first"},
        /* two rows in one line, and the rest of the first one in the next line */
        {" iteration 2/ 9 | learning rate: 2.0E-07 | lm loss: 2.4 iteration 3/ 9 | learning rate: "
         "3.0E-07 | lm loss: 2.3E+00 |\nE+00 | grad norm: 1.5 |\n",
         2, 2, 2e-7, -1, "2, the first"},
        /* a head that is torn, and the rest of its row behind a line end */
        {" iterat\n iteration 2[time] iteration 3/ 9 | learning rate: 3.0E-07 | lm loss: 2.3E+00 "
         "|\n",
         2, 3, 3e-7, 2.3, "1, the first"},
        {"ion 2/ 9 | learning rate: 2.0E-07 | lm loss: 2.4E+00 |\n"
         " iteration 3/ 9 | learning rate: 3.0E-07 | lm loss: 2.3E+00 |\n",
         2, 3, 3e-7, 2.3, "1, the first"},
        /* whole lines, and lines of a validation */
        {" iteration 2/ 9 | learning rate: 2.0E-07 | lm loss: 2.4E+00 |  \n"
         " validation loss at iteration 2 | lm loss value: 2.4E+00 | lm loss PPL: 1.1E+01 |\n",
         2, 2, 2e-7, 2.4, NULL},
    };
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", whole, cases[i].lines);
        const struct log *log = logs_read(&arena, text, NULL);
        if (log->rows != cases[i].rows) fail_msg("case %zu: %zu rows", i, (size_t)log->rows);
        assert_int_equal(log->step[1], cases[i].second);
        logs_expect(log, "learning rate", 1, cases[i].rate, cases[i].rate < 0 ? N : 1e-8);
        logs_expect(log, "lm loss", 1, cases[i].loss, cases[i].loss < 0 ? N : 0.1);
        if (cases[i].note == NULL)
            assert_false(logs_has_note(log, "torn lines"));
        else
            assert_true(logs_has_note(log, cases[i].note));
    }
    arena_close(&arena);
}

/* LLaMA-Factory's callback logs what the Trainer prints as well, in fewer digits: two lines of one
 * update must not be two updates, and equal lines of one printer must stay two. */
static void verify_callbacks_print_again(void **state) {
    static const char callback[] =
        "[INFO|2025-05-01 10:00:00] llamafactory.train.callbacks:143 >> ";
    static const char printed[] = "{'loss': 2.5, 'grad_norm': 1.2512345678901234, 'learning_rate': "
                                  "4.938441702975689e-05, 'epoch': 0.1}\n";
    static const char logged[] =
        "{'loss': 2.5000, 'learning_rate': 4.9384e-05, 'epoch': 0.10, 'throughput': 12.50}\n";
    static const char next[] =
        "{'loss': 2.5000, 'learning_rate': 4.9385e-05, 'epoch': 0.10, 'throughput': 13.50}\n";
    struct arena arena = ARENA_EMPTY;
    char text[1024];
    (void)state;
    for (int first = 0; first < 2; first++) {
        snprintf(text, sizeof text, "%s%s%s%s%s%s", first ? callback : printed,
                 first ? logged : callback, first ? printed : logged, printed, callback, logged);
        const struct log *log = logs_read(&arena, text, NULL);
        assert_int_equal(log->rows, 2);
        logs_expect(log, "learning_rate", 0, 4.938441702975689e-05, 0.0);
        logs_expect(log, "throughput", 0, 12.5, 1e-2);
        logs_expect(log, "grad_norm", 1, 1.2512345678901234, 0.0);
        assert_true(logs_has_note(log, "which count once: 2"));
    }
    snprintf(text, sizeof text, "%s%s%s%s%s%s", printed, printed, callback, next, callback, next);
    const struct log *log = logs_read(&arena, text, NULL);
    assert_int_equal(log->rows, 4); /* another LR, and one printer alone */
    assert_false(logs_has_note(log, "count once"));
    arena_close(&arena);
}

/* The resumed run prints its steps again. */
static void validate_resume(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      " iteration 1/ 9 | learning rate: 1.0E-07 |\n"
                                      " iteration 2/ 9 | learning rate: 2.0E-07 |\n"
                                      " iteration 2/ 9 | learning rate: 1.0E-07 |\n"
                                      " iteration 1/ 9 | learning rate: 2.0E-07 |\n",
                                      NULL);
    static const uint32_t parts[] = {0, 0, 0, 1};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(log->part[i], parts[i]);
    assert_true(logs_has_note(log, "from 2 to 1 in line 4: where the log began, so another run"));
    log = logs_read(&arena,
                    " iteration 1/ 9 | learning rate: 1.0E-07 |\n"
                    " iteration 3/ 9 | learning rate: 2.0E-07 |\n"
                    " iteration 2/ 9 | learning rate: 1.0E-07 |\n",
                    NULL);
    assert_true(logs_has_note(log, "from 3 to 2 in line 3: a resumed run"));
    arena_close(&arena);
}

static void validate_refusals(void **state) {
    static const struct {
        const char *text, *format, *words;
    } cases[] = {
        {"1 8.5\n2 x\n", "torchtitan-golden", "test:2: expected \"STEP LOSS\""},
        {"nothing here\n", "megatron", "expected a log with numbers, got none"},
        {"{'eval_loss': 0.5}\n", "hf-console", "expected a log with numbers, got none"},
        {"{'eval_loss': 0.5, 'epoch': 1.0}\n", NULL, "got none (read as hf-console)"},
        {"{'train_runtime': 0.5, 'epoch': 1.0}\n", NULL, "got none (read as hf-console)"},
        {"2 8.5\n1 7.5\n", NULL, "expected a log of a known format"},
        {"", NULL, "empty file"},
        {"hello\nworld\n", NULL, "expected a log of a known format"},
        {"Step 99999999999999999999 | loss:1\n", "torchtune", "expected a log with numbers"},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_fixtures),
        cmocka_unit_test(validate_bars),
        cmocka_unit_test(validate_special_values),
        cmocka_unit_test(verify_cut_ends_are_said),
        cmocka_unit_test(validate_resume),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(verify_torn_lines_are_said),
        cmocka_unit_test(verify_callbacks_print_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
