/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Every reader of JSON, on constructed logs in the form that the tool's source writes, cut at every
 * byte, and on hostile inputs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "tests/logs/helper_logs.h"

#define ABSENT real_nan_f64()

static const char trainer_state[] =
    "{\n  \"best_metric\": null,\n  \"epoch\": 1.0,\n  \"global_step\": 4,\n"
    "  \"log_history\": [\n"
    "    {\n      \"epoch\": 0.25,\n      \"grad_norm\": 18.41716194152832,\n"
    "      \"learning_rate\": 0.0,\n      \"loss\": 0.6931,\n      \"step\": 1,\n"
    "      \"rewards/chosen\": -0.00123456789012345\n    },\n"
    "    {\"epoch\": 0.5, \"grad_norm\": NaN, \"learning_rate\": 5e-07, \"loss\": 0.69, \"step\": "
    "2},\n"
    "    {\"epoch\": 0.5, \"eval_loss\": 0.7012345678901234, \"eval_runtime\": 1.5, \"step\": 2},\n"
    "    {\"epoch\": 0.75, \"grad_norm\": Infinity, \"learning_rate\": 2.5e-07, \"loss\": 0.5, "
    "\"step\": 3},\n"
    "    {\"epoch\": 0.5, \"learning_rate\": 5e-07, \"loss\": 0.68, \"step\": 2},\n"
    "    {\"epoch\": 1.0, \"step\": 4, \"total_flos\": 0.0, \"train_loss\": 0.69, "
    "\"train_runtime\": 3.1}\n"
    "  ],\n  \"logging_steps\": 1,\n  \"max_steps\": 4,\n  \"trial_params\": null\n}\n";

/* Rows of an evaluation that say so by a text are no rows of the training, whose loss has the same
 * name; a type "test" may be of the whole training. */
static void validate_evaluations(void **state) {
    static const char *const texts[] = {
        "\"split\": \"val\"",   "\"mode\": \"eval_step\"", "\"phase\": \"Validation\"",
        "\"subset\": \"test\"", "\"type\": \"test\"",      "\"split\": \"value\"",
        "\"mode\": \"train\"",  "\"model\": \"val\"",      "\"split\": \"evaluation-1\""};
    static const int evaluates[] = {1, 1, 1, 1, 0, 0, 0, 0, 1};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[400];
        snprintf(text, sizeof text,
                 "{\"step\": 1, \"loss\": 2.5, \"lr\": 0.1}\n"
                 "{\"step\": 1, \"loss\": 3.5, %s, \"val_acc\": 0.5}\n"
                 "{\"step\": 2, \"loss\": 2.25, \"lr\": 0.1}\n",
                 texts[i]);
        const struct log *log = logs_read(&arena, text, NULL);
        assert_int_equal(log->rows, 3);
        if (evaluates[i]) {
            logs_expect(log, "loss", 1, 0.0, ABSENT);
            logs_expect(log, "eval/loss", 1, 3.5, 0.1);
            assert_ptr_equal(log_column_of(log, LOG_EVAL_LOSS),
                             log_column_by_source(log, "eval/loss"));
        } else {
            logs_expect(log, "loss", 1, 3.5, 0.01);
            assert_null(log_column_by_source(log, "eval/loss"));
        }
        logs_expect(log, "val_acc", 1, 0.5, 0.1);
        arena_close(&arena);
    }
}

static void validate_trainer_state(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, trainer_state, NULL);
    assert_string_equal(log->format, "hf-trainer-state");
    assert_string_equal(log->title, "Hugging Face trainer_state.json");
    assert_int_equal(log->rows, 5); /* the summary is none */
    assert_int_equal(log->max_steps, 4);
    assert_int_equal(log->step_base, 1);
    logs_expect(log, "loss", 0, 0.6931, 1e-4);
    logs_expect(log, "loss", 1, 0.69, 1e-4);
    logs_expect(log, "grad_norm", 0, 18.41716194152832, 0.0);
    logs_expect(log, "grad_norm", 1, ABSENT, 0.0); /* a printed NaN */
    logs_expect(log, "grad_norm", 3, real_inf_f64(), 0.0);
    logs_expect(log, "grad_norm", 4, 0.0, ABSENT);
    logs_expect(log, "learning_rate", 1, 5e-7, 0.0);
    logs_expect(log, "rewards/chosen", 0, -0.00123456789012345, 0.0);
    logs_expect(log, "eval_loss", 2, 0.7012345678901234, 0.0);
    assert_ptr_equal(log_column_of(log, LOG_EVAL_LOSS), log_column_by_source(log, "eval_loss"));
    assert_int_equal(log_column_by_source(log, "eval_runtime")->name, LOG_OTHER);
    assert_int_equal(log_column_of(log, LOG_LOSS)->windowed, 1);
    assert_int_equal(log_column_of(log, LOG_LR_LOGGED)->windowed, 0);
    static const int64_t steps[] = {1, 2, 2, 3, 2};
    static const uint32_t parts[] = {0, 0, 0, 0, 1};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(log->step[i], steps[i]);
        assert_int_equal(log->part[i], parts[i]);
    }
    assert_int_equal(log->line[0], 6);
    assert_true(logs_has_note(log, "falls back from 3 to 2"));
    arena_close(&arena);
}

/* Files from before 4.38 have no grad_norm; windows of several updates must be reported. */
static void validate_old_trainer_state(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "\xef\xbb\xbf{\"log_history\": [\r\n{\"loss\": 0.5, \"learning_rate\": 1e-05, "
                  "\"step\": 10},\r\n{\"loss\": 0.25, \"learning_rate\": 0.0, \"step\": 20}],\r\n"
                  "\"logging_steps\": 10, \"max_steps\": 20}",
                  NULL);
    assert_int_equal(log->rows, 2);
    assert_null(log_column_of(log, LOG_GRAD_NORM));
    assert_int_equal(log->step[1], 20);
    assert_true(logs_has_note(log, "logging_steps 10"));
    logs_expect(log, "loss", 0, 0.5, 1e-4);
    arena_close(&arena);
}

/* Losses that were not rounded are reprs. */
static void validate_unrounded_loss(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "{\"log_history\": [{\"loss\": 0.6931471824645996, \"step\": 1}, {\"loss\": 0.5, "
                  "\"step\": 2}]}",
                  NULL);
    logs_expect(log, "loss", 0, 0.6931471824645996, 0.0);
    logs_expect(log, "loss", 1, 0.5, 0.0);
    arena_close(&arena);
}

struct batch {
    int epoch, step;
};

/* A log of a loop that counts the batches of each epoch. */
static const struct log *read_batches(struct arena *arena, const struct batch *batches,
                                      size_t count) {
    char text[4096];
    int length = 0;
    for (size_t i = 0; i < count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "{\"epoch\": %d, \"step\": %d, \"loss\": 2.5, \"lr\": 0.1}\n",
                           batches[i].epoch, batches[i].step);
    return logs_read(arena, text, NULL);
}

/* Three epochs of five rows, from step `first` on, `apart` apart. */
static const struct log *read_epochs(struct arena *arena, int first, int apart, int grows) {
    struct batch batches[15];
    for (int i = 0; i < 15; i++)
        batches[i] = (struct batch){grows ? i / 5 : 0, first + i % 5 * apart};
    return read_batches(arena, batches, 15);
}

/* A run that goes on from step 2 of its second epoch, whose length the ended epochs say; and where
 * these have several, nobody knows what lies in front. */
static void validate_resumed_epochs(void **state) {
    static const struct batch batches[] = {{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2},
                                           {1, 3}, {1, 2}, {1, 3}, {2, 1}, {2, 2}};
    static const struct batch uneven[] = {{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2},
                                          {2, 1}, {2, 2}, {1, 1}, {1, 2}, {2, 1}};
    static const int steps[] = {1, 2, 3, 4, 5, 6, 5, 6, 7, 8};
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = read_batches(&arena, batches, COUNT_OF(batches));
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        assert_int_equal(log->step[i], steps[i]);
        assert_int_equal(log->part[i], i >= 6);
    }
    log = read_batches(&arena, uneven, COUNT_OF(uneven));
    assert_true(log->step_guessed && log->by_epochs);
    for (size_t i = 0; i < COUNT_OF(uneven); i++)
        assert_int_equal(log->step[i], i + 1);
    /* Without a resume the lengths may differ. */
    log = read_batches(&arena, uneven, 7);
    assert_false(log->step_guessed);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(log->step[i], i + 1);
    /* An epoch that grows by two, or where no step falls, is of no such loop. */
    log = read_batches(&arena, (const struct batch[]){{0, 1}, {0, 2}, {2, 1}, {2, 2}}, 4);
    assert_int_equal(log->step[2], 1);
    log = read_batches(&arena, (const struct batch[]){{0, 1}, {0, 2}, {1, 3}, {1, 4}}, 4);
    assert_int_equal(log->step[2], 3);
    arena_close(&arena);
}

/* Steps that begin anew where the epoch is one higher are numbered on, where rows stand at each
 * step; at a distance nobody knows how many an epoch has; and where the epoch does not grow they
 * are those of several runs. */
static void validate_steps_of_epochs(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (int first = 0; first < 2; first++) {
        const struct log *const log = read_epochs(&arena, first, 1, 1);
        for (size_t i = 0; i < 15; i++) {
            assert_int_equal(log->step[i], i + 1);
            assert_int_equal(log->part[i], 0);
        }
        assert_false(log->step_guessed);
        assert_true(logs_has_note(log, "they are numbered on"));
    }
    const struct log *log = read_epochs(&arena, 10, 10, 1);
    for (size_t i = 0; i < 15; i++) {
        assert_int_equal(log->step[i], i + 1);
        assert_int_equal(log->part[i], 0);
    }
    assert_true(log->step_guessed && log->by_epochs);
    assert_true(logs_has_note(log, "no row says how many an epoch has"));
    log = read_epochs(&arena, 1, 1, 0);
    for (size_t i = 0; i < 15; i++) {
        assert_int_equal(log->step[i], i % 5 + 1);
        assert_int_equal(log->part[i], i / 5);
    }
    arena_close(&arena);
}

/* A release before 5 rounds to 4 decimals, and what some writers make of such a number has zeros or
 * nines behind these; so many others, of a row of the Trainer's own, are no rounded number. */
static void validate_what_shows_that_losses_are_not_rounded(void **state) {
    static const struct {
        const char *row;
        int is_shown;
    } rows[] = {
        {"\"loss\": 2.34567891, \"learning_rate\": 1e-3", 1},
        {"\"loss\": 2.3456789, \"learning_rate\": 1e-3", 0},
        {"\"loss\": 2.3456, \"learning_rate\": 1e-3", 0},
        {"\"loss\": 2.345600012, \"learning_rate\": 1e-3", 1},
        {"\"loss\": 2.345600001, \"learning_rate\": 1e-3", 0},
        {"\"loss\": 2.345699989, \"learning_rate\": 1e-3", 1},
        {"\"loss\": 2.345599998, \"learning_rate\": 1e-3", 0},
        {"\"loss\": 2.3450000123, \"learning_rate\": 1e-3", 1}, /* the fourth is the number's */
        {"\"loss\": 2.345678910001, \"learning_rate\": 1e-3",
         1}, /* so are those behind the eighth */
        {"\"loss\": 2.34567891e-3, \"learning_rate\": 1e-3", 0},
        {"\"loss\": 234567891, \"learning_rate\": 1e-3", 0},
        {"\"loss\": \"2.34567891\", \"learning_rate\": 1e-3", 0},
        {"\"loss\": 2.34567891", 0},
        {"\"train_loss\": 2.34567891, \"learning_rate\": 1e-3", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[256];
        snprintf(text, sizeof text,
                 "{\"log_history\": [{%s, \"step\": 1}, {\"loss\": 0.5, \"step\": 2}]}",
                 rows[i].row);
        if (logs_read(&arena, text, NULL)->logs_used != rows[i].is_shown) fail_msg("%s", text);
        arena_close(&arena);
    }
}

static const char llama_factory[] =
    "{\"current_steps\": 10, \"total_steps\": 30, \"loss\": 0.6931, \"lr\": 5e-06, \"epoch\": "
    "0.33, \"percentage\": 33.33, \"elapsed_time\": \"0:00:10\", \"total_tokens\": 20480}\n"
    "{\"current_steps\": 20, \"total_steps\": 30, \"loss\": 0.5, \"lr\": 2.5e-06, \"epoch\": 0.67, "
    "\"percentage\": 66.67, \"elapsed_time\": \"0:00:20\", \"total_tokens\": 40960}\n";

static void validate_llama_factory(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, llama_factory, NULL);
    assert_string_equal(log->format, "llama-factory");
    assert_int_equal(log->max_steps, 30);
    assert_int_equal(log->step[1], 20);
    logs_expect(log, "loss", 1, 0.5, 1e-4);
    logs_expect(log, "lr", 1, 2.5e-6, 0.0);
    logs_expect(log, "total_tokens", 1, 40960.0, 0.0);
    assert_int_equal(log_column_of(log, LOG_TOKENS)->cumulative, 1);
    assert_null(log_column_by_source(log, "elapsed_time"));
    arena_close(&arena);
}

/* The rows of ms-swift, every 5 updates, and its last line (swift/trainers/mixin.py, 3.x). */
static const char swift[] =
    "{\"loss\": 1.69, \"grad_norm\": 2.5, \"learning_rate\": 1e-05, \"epoch\": 0.05, "
    "\"global_step/max_steps\": \"5/100\", \"percentage\": \"5.00%\", \"elapsed_time\": \"10s\"}\n"
    "{\"loss\": 1.52, \"grad_norm\": 2.25, \"learning_rate\": 9e-06, \"epoch\": 0.1, "
    "\"global_step/max_steps\": \"10/100\", \"percentage\": \"10.00%\", \"elapsed_time\": "
    "\"20s\"}\n"
    "{\"eval_loss\": 1.5, \"epoch\": 0.1, \"global_step/max_steps\": \"10/100\"}\n"
    "{\"last_model_checkpoint\": \"/o/checkpoint-10\", \"best_metric\": 1.5, \"global_step\": 10, "
    "\"log_history\": [{\"loss\": 1.69, \"step\": 5}], \"memory\": 12.5}\n";

static void validate_swift(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, swift, NULL);
    assert_string_equal(log->format, "jsonl");
    assert_int_equal(log->max_steps, 100);
    assert_int_equal(log->step_guessed, 0);
    assert_int_equal(log->step[0], 5);
    assert_int_equal(log->step[1], 10);
    assert_int_equal(log->step[2], 10);
    logs_expect(log, "loss", 1, 1.52, 0.01);
    arena_close(&arena);
}

static const char wandb[] =
    "{\"_step\": 0, \"_runtime\": 1.5, \"_timestamp\": 1700000000.25, \"train/global_step\": 1, "
    "\"train/loss\": 0.6931, \"train/learning_rate\": 0}\n"
    "{\"_step\": 1, \"_runtime\": 2.5, \"_timestamp\": 1700000001.5, \"train/global_step\": 2, "
    "\"train/loss\": 0.6929, \"train/learning_rate\": 5e-07, \"train/rewards/chosen\": null}\n"
    "{\"_step\": 2, \"_runtime\": 3.5, \"_timestamp\": 1700000002.5, \"eval/loss\": 0.7}\n";

static void validate_wandb(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, wandb, NULL);
    assert_string_equal(log->format, "wandb-jsonl");
    assert_int_equal(log->rows, 3);
    assert_int_equal(log->step[0], 1);
    assert_int_equal(log->step[1], 2);
    assert_int_equal(log->step[2], 0);
    assert_ptr_equal(log_column_of(log, LOG_LOSS), log_column_by_source(log, "train/loss"));
    assert_ptr_equal(log_column_of(log, LOG_EVAL_LOSS), log_column_by_source(log, "eval/loss"));
    assert_null(log_column_by_source(log, "train/rewards/chosen")); /* it never has a value */
    logs_expect(log, "train/learning_rate", 1, 5e-7, 1e-7); /* may have been rounded before */
    assert_int_equal(log_column_by_source(log, "_step")->name, LOG_OTHER);
    const struct log *list = logs_read(
        &arena, "[{\"_step\": 0, \"_runtime\": 1, \"lr\": 1e-05}, {\"_step\": 1, \"lr\": 9e-06}]",
        NULL);
    assert_string_equal(list->format, "wandb-jsonl");
    assert_int_equal(list->step_base, 0);
    assert_int_equal(list->step[1], 2);
    assert_true(logs_has_note(list, "W&B's own counter"));
    arena_close(&arena);
}

static const char torchtune[] =
    "{\"step\": 1, \"loss\": 0.6931471824645996, \"lr\": 2e-05, \"tokens_per_second_per_gpu\": "
    "99.5, \"log_probs/chosen\": -12.5, \"rewards/accuracies\": 0.5}\n"
    "{\"step\": 2, \"loss\": 0.68, \"lr\": 1e-05, \"tokens_per_second_per_gpu\": 98.25, "
    "\"log_probs/chosen\": -12.25, \"rewards/accuracies\": 1.0}\n";

static void validate_torchtune(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, torchtune, NULL);
    assert_string_equal(log->format, "torchtune-jsonl");
    logs_expect(log, "loss", 1, 0.68, 0.0);
    assert_non_null(log_column_of(log, LOG_LOGP_CHOSEN));
    assert_non_null(log_column_of(log, LOG_REWARD_ACCURACY));
    arena_close(&arena);
}

static const char megatron[] =
    "{\"lm loss\": {\"start_step\": 1, \"end_step\": 10, \"step_interval\": 5, \"values\": {\"1\": "
    "10.85865, \"6\": 10.8585}}, \"num-zeros\": {\"values\": {\"1\": 1234.0, \"6\": \"nan\"}, "
    "\"start_step\": 1, \"end_step\": 10, \"step_interval\": 5}}";
static const char megatron_old[] =
    "{\"lm loss\": {\"values\": [10.85, 10.84, 10.8], \"start_step\": 0, \"end_step\": 30, "
    "\"step_interval\": 10}}";

static void validate_megatron_golden(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, megatron, NULL);
    assert_string_equal(log->format, "megatron-golden");
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 6);
    logs_expect(log, "lm loss", 1, 10.8585, 1e-5);
    logs_expect(log, "num-zeros", 1, ABSENT, 0.0);
    assert_non_null(log_column_of(log, LOG_LOSS));
    const struct log *old = logs_read(&arena, megatron_old, NULL);
    assert_string_equal(old->format, "megatron-golden");
    assert_int_equal(old->rows, 3);
    assert_int_equal(old->step[0], 1); /* a list counts what TensorBoard held from 0 */
    assert_int_equal(old->step[2], 21);
    logs_expect(old, "lm loss", 2, 10.8, 1e-2);
    arena_close(&arena);
}

static const char nemo_rl[] =
    "{\"train/loss\": {\"2\": 3.5, \"1\": 3.4000000953674316}, \"train/accuracy\": {\"1\": 0.5}, "
    "\"train/lr\": {\"1\": 0.0, \"2\": 1e-06}}";

static void validate_nemo_rl(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, nemo_rl, NULL);
    assert_string_equal(log->format, "nemo-rl");
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[0], 1);                              /* sorted */
    logs_expect(log, "train/loss", 0, 3.4000000953674316, 0x1p-22); /* binary32 at 2 to 4 */
    logs_expect(log, "train/loss", 1, 3.5, 0x1p-22);
    logs_expect(log, "train/accuracy", 0, 0.5, 0.1); /* rounded by somebody, for all that shows */
    logs_expect(log, "train/accuracy", 1, 0.0, ABSENT);
    assert_int_equal(log_column_by_source(log, "train/accuracy")->name, LOG_REWARD_ACCURACY);
    assert_int_equal(log_column_by_source(log, "train/lr")->name, LOG_LR_LOGGED);
    /* 0.1 + 0.2 is no binary32, so the column did not come out of TensorBoard */
    const struct log *other =
        logs_read(&arena, "{\"train/loss\": {\"1\": 0.30000000000000004, \"2\": 0.25}}", "nemo-rl");
    logs_expect(other, "train/loss", 1, 0.25, 0.0);
    arena_close(&arena);
}

/* numpy.float32 of 5e-7, 4.9e-7 and of two losses. Of the LR that is the rounding of a schedule's
 * number; the loss is the number that was computed. */
static void validate_rates_in_binary32(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(
        &arena,
        "{\"step\": 1, \"learning_rate\": 4.999999987376214e-07, \"loss\": 2.299999952316284}\n"
        "{\"step\": 2, \"learning_rate\": 4.899999908047903e-07, \"loss\": 2.200000047683716}\n",
        NULL);
    logs_expect(log, "learning_rate", 0, 4.999999987376214e-07, 0x1p-44); /* 2^-21 to 2^-20 */
    logs_expect(log, "learning_rate", 1, 4.899999908047903e-07, 0x1p-44);
    logs_expect(log, "loss", 0, 2.299999952316284, 0.0);
    const struct log *wide = logs_read(
        &arena,
        "{\"step\": 1, \"learning_rate\": 4.999999987376214e-07, \"loss\": 2.299999952316284}\n"
        "{\"step\": 2, \"learning_rate\": 4.900000000000001e-07, \"loss\": 2.200000047683716}\n",
        NULL);
    logs_expect(wide, "learning_rate", 0, 4.999999987376214e-07, 0.0);
    /* The Trainer logs the number of a tensor; where one rate is no binary32, none was. */
    static const char *const state_texts[] = {
        "{\"log_history\": [{\"step\": 1, \"learning_rate\": 0.0, \"loss\": 2.3},"
        "{\"step\": 2, \"learning_rate\": 4.999999987376214e-07, \"loss\": 2.2}]}",
        "{\"log_history\": [{\"step\": 1, \"learning_rate\": 4.9e-07, \"loss\": 2.3},"
        "{\"step\": 2, \"learning_rate\": 4.999999987376214e-07, \"loss\": 2.2}]}"};
    for (size_t i = 0; i < COUNT_OF(state_texts); i++) {
        const struct log *saved = logs_read(&arena, state_texts[i], "hf-trainer-state");
        logs_expect(saved, "learning_rate", 0, i == 0 ? 0.0 : 4.9e-07, 0.0);
        logs_expect(saved, "learning_rate", 1, 4.999999987376214e-07, i == 0 ? 0x1p-44 : 0.0);
    }
    arena_close(&arena);
}

/* str(numpy.float32(x)) of numpy 1.24 for x =
 * 3e-5, 2.3666666666666668e-4, 3.3333333333333335e-5, 9.8e-4 and 9.876543e-4, and "%.9g" of the
 * second. The cells are those of binary32: 2^-36 and 2^-33 by its 24 bits. An 8th digit of 3e-5
 * with twice the way from the text to the binary32 is more than its cell, 2^-39. */
static void validate_short_rates_in_binary32(void **state) {
    static const struct {
        const char *text, *format, *column;
        double value[2], quantum[2];
    } cases[] = {
        {"{\"step\": 1, \"learning_rate\": 3e-05}\n"
         "{\"step\": 2, \"learning_rate\": 0.00023666666}\n",
         "jsonl",
         "learning_rate",
         {3e-05, 0.00023666665947530419},
         {1e-11, 0x1p-36}},
        {"{\"step\": 1, \"learning_rate\": 3e-05}\n"
         "{\"step\": 2, \"learning_rate\": 3.3333334e-05}\n",
         "jsonl",
         "learning_rate",
         {2.9999999242136255e-05, 3.333333370392211e-05},
         {1e-12 + 2.0 * (3e-05 - 2.9999999242136255e-05), 0x1p-38}},
        /* 7 digits suffice between 2^-10 and 0.001, where they are finer than the cell. */
        {"step,lr\n1,0.00098\n2,0.0009876543\n",
         "csv",
         "lr",
         {0.0009800000116229057, 0.0009876543190330267},
         {1e-10 + 2.0 * (0.0009800000116229057 - 0.00098),
          1e-10 + 2.0 * (0.0009876543190330267 - 0.0009876543)}},
        {"step: 1 lr: 0.000236666659\nstep: 2 lr: 0.000236666659\n",
         "key-value",
         "lr",
         {0.00023666665947530419, 0.00023666665947530419},
         {0x1p-36, 0x1p-36}},
        /* "%.8e" of it, with a zero that no repr writes, beside one of 1e-3
         * (0.0010000000474974513).
         */
        {"step: 1 lr: 2.36666659e-04\nstep: 2 lr: 1.00000005e-03\n"
         "step: 3 lr: 6.10351562e-05\nstep: 4 lr: 9.76562500e-04\n",
         "key-value",
         "lr",
         {0.00023666665947530419, 0.0010000000474974513},
         {0x1p-36, 0x1p-33}},
        /* A row that no binary32 prints so: doubles in 9 digits. */
        {"step: 1 lr: 0.000236666659\nstep: 2 lr: 0.000236666667\n",
         "key-value",
         "lr",
         {0.000236666659, 0.000236666667},
         {1e-12, 1e-12}},
        /* Megatron's "%.6E" of doubles. */
        {"step: 1 lr: 9.876543E-04\nstep: 2 lr: 9.800000E-04\n",
         "key-value",
         "lr",
         {9.876543E-04, 9.8E-04},
         {1e-10, 1e-10}},
        /* 8 digits where the last one is coarser than the cell and the text's rounding beside it:
           the text stays. */
        {"step: 1 lr: 1.0000003e-07\nstep: 2 lr: 1.0000008e-07\n",
         "key-value",
         "lr",
         {1.0000003e-07, 1.0000008e-07},
         {1e-14, 1e-14}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = logs_read(&arena, cases[i].text, cases[i].format);
        for (size_t row = 0; row < 2; row++)
            logs_expect(log, cases[i].column, row, cases[i].value[row], cases[i].quantum[row]);
        assert_int_equal(logs_has_note(log, "float32"), i < 5);
        arena_close(&arena);
    }
}

/* 8 digits of a double that a binary32 prints, too, of which the last digit is nearly as coarse as
 * the cell: the quantum holds what either may have been. */
static void verify_short_rates_hold_doubles(void **state) {
    static const double at[] = {1.1e-08, 1.7e-7, 2.1e-6, 1.3e-5, 1.01e-4, 1.4e-4, 1.9e-3};
    (void)state;
    for (size_t i = 0; i < 700; i++) {
        struct arena arena = ARENA_EMPTY;
        char text[80];
        const double rate = at[i / 100] * (1.0 + (double)(i % 100) * 1.0000019073486328e-3);
        const int digits = 7 + (int)(i % 3);
        snprintf(text, sizeof text, "{\"step\": 1, \"learning_rate\": %.*g}\n", digits, rate);
        const struct log_column *column =
            log_column_of(logs_read(&arena, text, "jsonl"), LOG_LR_LOGGED);
        assert_true(fabs(column->value[0] - rate) <= 0.5 * (double)column->quantum[0]);
        const float narrow = (float)rate; /* the same where it went through binary32, and is told */
        snprintf(text, sizeof text, "{\"step\": 1, \"learning_rate\": %.*g}\n", digits,
                 (double)narrow);
        column = log_column_of(logs_read(&arena, text, "jsonl"), LOG_LR_LOGGED);
        if ((float)strtod(strchr(strchr(text, ':') + 1, ':') + 1, NULL) == narrow)
            assert_true(fabs(column->value[0] - rate) <= 0.5 * (double)column->quantum[0]);
        arena_close(&arena);
    }
}

static const char olmo[] = "{\"train/CE loss\": 2.345, \"optim/total grad norm\": 0.52, "
                           "\"optim/LR (group 0)\": 5e-07, \"throughput/device/TPS\": 1234.5}\n";

static void validate_olmo_metrics(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    (void)state;
    log_options_init(&options);
    assert_int_equal(
        log_import_bytes("run/metrics_step120.json", olmo, sizeof olmo - 1, &options, &arena, &log),
        STATUS_OK);
    assert_string_equal(log->format, "olmo-core-metrics");
    assert_int_equal(log->step[0], 120);
    assert_non_null(log_column_of(log, LOG_LOSS));
    assert_non_null(log_column_of(log, LOG_GRAD_NORM));
    assert_non_null(log_column_of(log, LOG_LR_LOGGED));
    log = logs_read(&arena, olmo, NULL);
    assert_string_equal(log->format, "olmo-core-metrics");
    assert_int_equal(log->step_guessed, 1);
    arena_close(&arena);
}

static const char generic[] =
    "{\"k\": 0, \"x\": {\"my loss\": 0.5, \"deep\": {\"er\": 1}}, \"ok\": "
    "true, \"tags\": [1, {\"a\": 2}], \"who\": \"me\"}\n\n"
    "{\"k\": 1, \"x\": {\"my loss\": 0.25}, \"ok\": false}\n";

static void validate_generic_with_map(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    (void)state;
    log_options_init(&options);
    options.map_count = 2;
    options.map[0].ours = "loss";
    options.map[0].theirs = "x/my loss";
    options.map[1].ours = "step";
    options.map[1].theirs = "k";
    assert_int_equal(log_import_bytes("test", generic, sizeof generic - 1, &options, &arena, &log),
                     STATUS_OK);
    assert_string_equal(log->format, "jsonl");
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step_base, 0);
    assert_int_equal(log->step[1], 2);
    assert_int_equal(log->line[1], 3);
    assert_ptr_equal(log_column_of(log, LOG_LOSS), log_column_by_source(log, "x/my loss"));
    logs_expect(log, "x/deep/er", 0, 1.0, 0.0);
    logs_expect(log, "ok", 0, 1.0, 0.0);
    logs_expect(log, "ok", 1, 0.0, 0.0);
    assert_null(log_column_by_source(log, "tags"));
    options.map[0].theirs = "x/my los";
    assert_int_equal(log_import_bytes("test", generic, sizeof generic - 1, &options, &arena, &log),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "\"x/my loss\""));
    options.map[0].ours = "lss";
    assert_int_equal(log_import_bytes("test", generic, sizeof generic - 1, &options, &arena, &log),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "--map lss="));
    arena_close(&arena);
}

static void verify_step_base(void **state) {
    static const char text[] = "{\"step\": 0, \"loss\": 0.5}\n{\"step\": 1, \"loss\": 0.25}\n";
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    (void)state;
    log_options_init(&options);
    options.step_base = 1;
    assert_int_equal(log_import_bytes("test", text, sizeof text - 1, &options, &arena, &log),
                     STATUS_OK);
    assert_int_equal(log->step[0], 0);
    assert_int_equal(log->step[1], 1);
    options.step_base = -3;
    assert_int_equal(log_import_bytes("test", text, sizeof text - 1, &options, &arena, &log),
                     STATUS_OK);
    assert_int_equal(log->step[0], 4);
    options.step_base = INT64_MAX;
    assert_int_equal(log_import_bytes("test", text, sizeof text - 1, &options, &arena, &log),
                     STATUS_INPUT);
    arena_close(&arena);
}

/* ---- damage ---- */

static void verify_cut_at_every_byte(void **state) {
    (void)state;
    static const struct {
        const char *format, *text;
        int whole_only; /* nothing but the whole file is a log */
    } cases[] = {
        {"hf-trainer-state", trainer_state, 1},
        {"llama-factory", llama_factory, 0},
        {"wandb-jsonl", wandb, 0},
        {"torchtune-jsonl", torchtune, 0},
        {"megatron-golden", megatron, 1},
        {"megatron-golden", megatron_old, 1},
        {"nemo-rl", nemo_rl, 1},
        {"olmo-core-metrics", olmo, 1},
        {"jsonl", generic, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t length = strlen(cases[i].text);
        const size_t logs = logs_cut(cases[i].text, length, cases[i].format);
        logs_cut(cases[i].text, length, NULL);
        if (cases[i].whole_only)
            assert_true(logs <= 2); /* with and without the line end */
        else
            assert_true(logs > length / 4);
    }
}

/* A log that is being written ends inside a line. */
static void verify_that_a_cut_line_is_left_out(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena, "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"lo", NULL);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, "line 2 is cut off"));
    assert_non_null(strstr(logs_refuse(&arena, "{\"step\": 1, \"lo", 14, "jsonl"), "test:1:15"));
    arena_close(&arena);
}

/* pandas and JavaScript write NaN as null. A loss that is null now and then is as good as absent.
 */
static void verify_a_loss_without_numbers_is_said(void **state) {
    static const char note[] = "it names the loss, and no row has a number there";
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "{\"step\": 1, \"loss\": null, \"lr\": 0.1}\n"
                                      "{\"step\": 2, \"loss\": null, \"lr\": 0.2}\n",
                                      NULL);
    assert_int_equal(log->rows, 2);
    assert_true(logs_has_note(log, note));
    log = logs_read(&arena,
                    "{\"step\": 1, \"loss\": null, \"lr\": 0.1}\n"
                    "{\"step\": 2, \"loss\": 0.5, \"lr\": 0.2}\n",
                    NULL);
    assert_false(logs_has_note(log, note));
    /* The last row of a Trainer has train_runtime and no loss; these have a loss, though null. */
    log = logs_read(&arena,
                    "{\"log_history\": [{\"step\": 1, \"loss\": null, \"learning_rate\": 0.1, "
                    "\"train_runtime\": 1.5}], \"max_steps\": 1}",
                    NULL);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, note));
    log = logs_read(&arena, "step,loss,lr\n1,,0.1\n2,,0.2\n", NULL);
    assert_true(logs_has_note(log, note));
    log = logs_read(&arena, "step,grad_norm,lr\n1,,0.1\n2,,0.2\n", NULL);
    assert_false(logs_has_note(log, note));
    arena_close(&arena);
}

/* From 2^53 on binary64 has every second whole number, then every fourth: one that it does not have
 * has the distance of its neighbours for a quantum, and a note says so. */
static void verify_whole_numbers_beyond_2_53(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "{\"step\": 1, \"loss\": 2.5, \"num_tokens\": 9007199254740994}\n"
                  "{\"step\": 2, \"loss\": 2.5, \"num_tokens\": 9007199254740995}\n"
                  "{\"step\": 3, \"loss\": 2.5, \"num_tokens\": 36028797018963969}\n"
                  "{\"step\": 4, \"loss\": 2.5, \"num_tokens\": 36028797018963976}\n",
                  NULL);
    logs_expect(log, "num_tokens", 0, 9007199254740994.0, 0.0);
    logs_expect(log, "num_tokens", 1, 9007199254740996.0, 2.0);
    logs_expect(log, "num_tokens", 2, 36028797018963968.0, 8.0);
    logs_expect(log, "num_tokens", 3, 36028797018963976.0, 0.0);
    /* 995 may be what is read as 996, and is not 994 */
    assert_int_equal(log_compare(9007199254740996.0, 2.0, 9007199254740996.0, 0.0), LOG_WITHIN);
    assert_int_equal(log_compare(9007199254740996.0, 2.0, 9007199254740994.0, 0.0), LOG_DIFFERENT);
    assert_int_equal(log_compare(9007199254740996.0, 2.0, 9007199254740998.0, 2.0), LOG_WITHIN);
    assert_true(logs_has_note(log, "num_tokens has 2 whole numbers above 2^53 that binary64 does "
                                   "not hold"));
    arena_close(&arena);
}

/* A step that is there and no whole number is not said to be missing. */
static void verify_steps_that_are_not_whole(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(
        &arena, "{\"step\": 1.5, \"loss\": 2.5}\n{\"step\": 2.5, \"loss\": 2.25}\n", NULL);
    assert_int_equal(log->step[1], 2);
    assert_true(logs_has_note(log, "its step is \"step\": 1.5 in line 1, which is no whole number: "
                                   "rows are numbered from 1"));
    assert_false(logs_has_note(log, "it prints no step"));
    log = logs_read(&arena, "{\"step\": \"a\", \"loss\": 2.5}\n", NULL);
    assert_true(logs_has_note(log, "it prints no step"));
    log = logs_read(&arena, "{\"step\": 1.0, \"loss\": 2.5}\n", NULL);
    assert_int_equal(log->note_count, 0);
    arena_close(&arena);
}

static void verify_places_of_errors(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    static const struct {
        const char *format, *text, *error;
    } cases[] = {
        {"jsonl", "{\"a\": 1}\n{\"a\": x1}\n", "test:2:7: expected a value, got \"x1}\""},
        {"jsonl", "{\"a\": 1}\n{\"a\" 1}\n", "test:2:6: expected ':', got \"1}\""},
        {"jsonl", "{\"a\": 1,}\n", "test:1:9: expected a name in double quotes, got \"}\""},
        {"jsonl", "{\"a\": 1 \"b\": 2}\n", "test:1:9: expected ',' or '}', got"},
        {"jsonl", "{\"a\": 1}\n17\n", "test:2:1: expected an object"},
        {"jsonl", "{\"a\": 01x}", "test:1:7: expected a value"},
        {"jsonl", "{\"a\": 1e999}", "test:1: column \"a\": expected a number, got \"1e999\""},
        {"jsonl", "{\"a\\q\": 1}", "test:1:5: expected one of"},
        {"jsonl", "{\"a\n\": 1}", "test:1:4: expected '\"' at the end of the string"},
        {"jsonl", "{\"a\": \"\\ud8\"}", "four hex digits"},
        {"jsonl", "{\"step\": 99999999999999999, \"a\": 1}", "a step within 2^53"},
        {"hf-trainer-state", "{\"log_history\": 5}", "test:1:17: expected a list"},
        {"hf-trainer-state", "{\"log_history\": [5]}", "test:1:18: expected an object"},
        {"hf-trainer-state", "{\"a\": 1}", "log_history"},
        {"hf-trainer-state", "{\"log_history\": [{\"loss\": 1.5, \"step\": 1}]} {",
         "expected the end"},
        {"hf-trainer-state", "{\"log_history\": []}", "expected a log with numbers, got none"},
        {"nemo-rl", "{\"a\": {\"x\": 1}}", "test:1:8: expected a step"},
        {"nemo-rl", "{\"a\": {\"1\": \"x\"}}", "expected a number"},
        {"nemo-rl", "{\"_step\": {\"0\": 5}, \"loss\": {\"0\": 1.5}}", "a column \"_step\""},
        {"megatron-golden", "{\"a\": {\"step_interval\": 0, \"values\": []}}", "whole number of"},
        {"no-format", "{\"a\": 1}", "expected a format of logs (trace, hf-trainer-state"},
        {NULL, "\x1f\x8b\x08rest", "packed byte 4: the file is damaged"},
        {NULL, "PAR1xxxx", "Parquet"},
        {NULL, "neither one nor the other", "twinstep list formats"},
        {NULL, "", "empty file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text =
            logs_refuse(&arena, cases[i].text, strlen(cases[i].text), cases[i].format);
        if (strstr(text, cases[i].error) == NULL)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].error, text);
    }
    arena_close(&arena);
}

static void verify_deep_nesting(void **state) {
    struct arena arena = ARENA_EMPTY;
    char *text;
    (void)state;
    const size_t depth = 100000;
    assert_int_equal(arena_take(&arena, depth + 8, 1, "deep", &text), STATUS_OK);
    memcpy(text, "{\"a\": ", 6);
    memset(text + 6, '[', depth);
    assert_non_null(strstr(logs_refuse(&arena, text, depth + 6, "jsonl"), "at most 64 brackets"));
    memset(text, '[', depth);
    logs_refuse(&arena, text, depth, NULL);
    for (size_t inside = 62; inside <= 64; inside++) { /* beside the row's own bracket */
        char row[256] = "{\"b\": 1.5, \"a\": ";
        size_t used = strlen(row);
        memset(row + used, '[', inside);
        memset(row + used + inside, ']', inside);
        strcpy(row + used + 2 * inside, "}");
        if (inside < 64)
            logs_expect(logs_read(&arena, row, "jsonl"), "b", 0, 1.5, 0.1);
        else
            logs_refuse(&arena, row, strlen(row), "jsonl");
    }
    arena_close(&arena);
}

/* NUL, broken UTF-8, long names, a name given twice, and other names for one of ours. */
static void verify_strange_names(void **state) {
    static const char nul[] = "{\"step\": 1, \"a\0b\": 2}",
                      bad[] = "{\"step\":1,\"x\xff\xc3\":2,\"\\u0000y\":3,"
                              "\"\\ud83d\\ude00\":4}";
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    (void)state;
    log_options_init(&options);
    assert_int_equal(log_import_bytes("test", nul, sizeof nul - 1, &options, &arena, &log),
                     STATUS_INPUT); /* a raw control byte is no JSON */
    assert_int_equal(log_import_bytes("test", bad, sizeof bad - 1, &options, &arena, &log),
                     STATUS_OK);
    logs_expect(log, "x??", 0, 2.0, 0.0);
    logs_expect(log, "?y", 0, 3.0, 0.0);
    logs_expect(log, "\xf0\x9f\x98\x80", 0, 4.0, 0.0);
    log =
        logs_read(&arena, "{\"step\": 1, \"loss\": 1.5, \"loss\": 2.5, \"train_loss\": 3.5}", NULL);
    logs_expect(log, "loss", 0, 2.5, 0.1);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "loss");
    log = logs_read(&arena, "{\"step\": 1, \"step\": 5, \"loss\": 1.5}", NULL);
    assert_int_equal(log->step[0], 5);
    log = logs_read(&arena, "{\"step\": 1, \"train_loss\": 3.5, \"loss\": 2.5}", NULL);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "loss"); /* the better name */
    assert_int_equal(log_column_by_source(log, "train_loss")->name, LOG_OTHER);
    arena_close(&arena);
}

/* Texts longer than any buffer, with and without escapes, as names and as values. */
static void verify_long_texts(void **state) {
    struct arena arena = ARENA_EMPTY;
    char text[5000], name[256];
    (void)state;
    for (int escaped = 0; escaped < 2; escaped++) {
        memset(text, 'n', sizeof text);
        memcpy(text, "{\"", 2);
        if (escaped) memcpy(text + 2, "\\n", 2);
        memcpy(text + 2000, "\": 1.5, \"s\": \"", 14);
        if (escaped) memcpy(text + 2014, "\\u0041", 6);
        strcpy(text + 4000, "\"}");
        memset(name, 'n', sizeof name - 1);
        if (escaped) name[0] = '?';
        name[255] = '\0';
        logs_expect(logs_read(&arena, text, "jsonl"), name, 0, 1.5, 0.1);
    }
    arena_close(&arena);
}

/* A new name in every row must not ask for rows times names of memory. */
static void verify_many_names(void **state) {
    struct arena arena = ARENA_EMPTY;
    char *text;
    size_t used = 0, room = 6000 * 64;
    (void)state;
    assert_int_equal(arena_take(&arena, room, 1, "text", &text), STATUS_OK);
    for (int i = 0; i < 6000; i++)
        used += (size_t)snprintf(text + used, room - used,
                                 "{\"step\": %d, \"loss\": 1.5, \"n%d\": 1}\n", i + 1, i);
    struct arena own = ARENA_EMPTY;
    const struct log *log = logs_read(&own, text, NULL);
    assert_int_equal(log->rows, 6000);
    assert_true(log->column_count * log->rows <= 16 * 12000 + ((size_t)1 << 22));
    assert_true(own.total < (size_t)80 << 20);
    assert_true(logs_has_note(log, "rare columns were left out"));
    assert_true(logs_has_note(log, "only the first 4096 columns"));
    logs_expect(log, "loss", 5999, 1.5, 0.1);
    arena_close(&own);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_evaluations),
        cmocka_unit_test(validate_trainer_state),
        cmocka_unit_test(validate_old_trainer_state),
        cmocka_unit_test(validate_unrounded_loss),
        cmocka_unit_test(validate_steps_of_epochs),
        cmocka_unit_test(validate_resumed_epochs),
        cmocka_unit_test(validate_what_shows_that_losses_are_not_rounded),
        cmocka_unit_test(validate_llama_factory),
        cmocka_unit_test(validate_swift),
        cmocka_unit_test(validate_wandb),
        cmocka_unit_test(validate_torchtune),
        cmocka_unit_test(validate_megatron_golden),
        cmocka_unit_test(validate_nemo_rl),
        cmocka_unit_test(validate_rates_in_binary32),
        cmocka_unit_test(validate_short_rates_in_binary32),
        cmocka_unit_test(verify_short_rates_hold_doubles),
        cmocka_unit_test(validate_olmo_metrics),
        cmocka_unit_test(validate_generic_with_map),
        cmocka_unit_test(verify_step_base),
        cmocka_unit_test(verify_cut_at_every_byte),
        cmocka_unit_test(verify_that_a_cut_line_is_left_out),
        cmocka_unit_test(verify_a_loss_without_numbers_is_said),
        cmocka_unit_test(verify_whole_numbers_beyond_2_53),
        cmocka_unit_test(verify_steps_that_are_not_whole),
        cmocka_unit_test(verify_places_of_errors),
        cmocka_unit_test(verify_deep_nesting),
        cmocka_unit_test(verify_strange_names),
        cmocka_unit_test(verify_long_texts),
        cmocka_unit_test(verify_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
