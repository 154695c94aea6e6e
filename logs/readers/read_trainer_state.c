/* SPDX-License-Identifier: Apache-2.0
 * Hugging Face trainer_state.json, with the rows of TRL.
 *
 * The Trainer rounds the loss to 4 decimals and keeps everything else as Python's repr
 * (transformers/trainer.py::_maybe_log_save_evaluate). Older files have no grad_norm, and files of
 * version 5 may hold numbers as strings of 4 significant digits. The loss and TRL's metrics are
 * means since the last row. The summary at the end (train_runtime) is no row. Invariant: a file
 * that ends early is an error, since its history may miss the end.
 *
 * Which release wrote it shows in the fields of the state, which all of them dump whole
 * (transformers/trainer_callback.py::TrainerState.save_to_json): best_global_step is one since
 * 4.50.0, and since 4.51.0 the LR that was used is logged, before that of the next update
 * (trainer.py::_maybe_log_save_evaluate; wheels of 4.30.2, 4.36.2, 4.41.0, 4.49.0, 4.50.0, 4.50.3,
 * 4.51.0, 4.52.4 and 4.57.1 were looked at). A loss that is not rounded is one of version 5, which
 * logs the LR that was used. */
#include <string.h>

#include "base/macro.h"
#include "logs/json_row.h"
#include "logs/readers.h"

#define STRING_DIGITS 4

static const struct log_rule rules[] = {
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_DECIMALS, .decimals = 4, .windowed = 1},
    {.source = "learning_rate", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    {.source = "grad_norm", .name = LOG_GRAD_NORM, .print = LOG_PRINT_EXACT},
    {.source = "epoch", .name = LOG_EPOCH, .print = LOG_PRINT_JSON},
    {.source = "num_tokens", .name = LOG_TOKENS, .print = LOG_PRINT_EXACT, .cumulative = 1},
    {.source = "num_input_tokens_seen",
     .name = LOG_TOKENS,
     .print = LOG_PRINT_EXACT,
     .cumulative = 1},
    {.source = "eval_loss", .name = LOG_EVAL_LOSS, .print = LOG_PRINT_EXACT},
    {.source = "*", .name = LOG_NAMES, .print = LOG_PRINT_EXACT, .windowed = 1},
    {.source = NULL},
};

/* Moves behind the string that begins at `at`, or to the end. */
static size_t behind_string(const char *bytes, size_t at, size_t length) {
    for (at++; at < length && bytes[at] != '"'; at++)
        at += bytes[at] == '\\';
    return at < length ? at + 1 : length;
}

/* The list is one of the first object's own: the last line of ms-swift's logging.jsonl has such a
 * list as well. */
static int claim(const struct log_source *source) {
    static const char key[] = "\"log_history\"";
    const size_t length = source->length < 65536 ? source->length : 65536;
    const char *bytes = (const char *)source->bytes;
    size_t at = 0, depth = 0;
    while (at < length &&
           (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r' || bytes[at] == '\t'))
        at++;
    if (at == length || bytes[at] != '{') return 0;
    while (at < length) {
        const char c = bytes[at];
        if (c == '"' && depth == 1 && at + sizeof key - 1 <= length &&
            memcmp(bytes + at, key, sizeof key - 1) == 0)
            return 3;
        if (c == '"') {
            at = behind_string(bytes, at, length);
            continue;
        }
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0) return 0;
        at++;
    }
    return 0;
}

static int is_summary(const struct json_row *row) {
    return json_row_find(row, "train_runtime") != NULL && json_row_find(row, "loss") == NULL &&
           !row->blank_loss;
}

/* Tells whether the row is one of the Trainer's own and its loss has more decimals than the 4 to
 * which every release before version 5 rounds it. Zeros or nines behind these are what some writers
 * make of a rounded number: 2.3456000000000001. */
static int is_unrounded(const struct json_row *row) {
    const struct json_cell *loss = json_row_find(row, "loss");
    size_t decimals = 0, zeros = 0, nines = 0, at = 0;
    if (loss == NULL || loss->token != SCAN_NUMBER || json_row_find(row, "learning_rate") == NULL)
        return 0;
    while (at < loss->length && loss->text[at] != '.')
        at++;
    for (at++; at < loss->length && loss->text[at] >= '0' && loss->text[at] <= '9'; at++) {
        const int counts = ++decimals > 4 && decimals <= 8;
        zeros += counts && loss->text[at] == '0';
        nines += counts && loss->text[at] == '9';
    }
    return at >= loss->length && decimals >= 8 && zeros < 4 && nines < 4;
}

static enum status read_history(struct scan *scan, struct json_row *row, struct log_build *build) {
    const struct log_source *source = scan->source;
    TRY(scan_next(scan));
    TRY(scan_expect(scan, SCAN_ARRAY));
    for (;;) {
        int64_t step = INT64_MIN;
        TRY(scan_next(scan));
        if (scan->token == SCAN_ARRAY_END) return STATUS_OK;
        TRY(json_row_read(scan, row));
        if (is_summary(row)) continue;
        if (is_unrounded(row)) log_build_logs_used(build);
        json_row_step(row, "step", &step);
        TRY(log_build_row(build, step, row->line, source->part));
        TRY(json_row_put(row, "step", STRING_DIGITS, rules, build));
        log_source_release(source, scan->at);
    }
}

/* Fields that every release dumps, without which it is no whole state, and the one of newer ones.
 */
static const char *const fields[] = {"best_metric", "best_model_checkpoint",
                                     "is_world_process_zero", "total_flos", "best_global_step"};
enum { FIELDS_OF_ALL = 4 };

/* Reads one setting beside the history: "max_steps": 30, "logging_steps": 10 and the like. Bit i of
 * *seen is set where it is fields[i]. */
static enum status read_setting(struct scan *scan, struct log_build *build, unsigned *seen) {
    int64_t number = 0;
    for (unsigned i = 0; i < COUNT_OF(fields); i++)
        if (scan_is(scan, fields[i])) *seen |= 1u << i;
    const int is_total = scan_is(scan, "max_steps"), is_window = scan_is(scan, "logging_steps");
    TRY(scan_next(scan));
    if (scan->token == SCAN_NUMBER) {
        const int whole = scan_integer(scan->text, scan->length, &number);
        if (is_total && whole && number > 0) log_build_max_steps(build, (uint64_t)number);
        if (is_window && whole && number > 1)
            TRY(log_build_note(build,
                               "logging_steps %d: loss is the mean of the updates since the "
                               "last row, learning_rate and grad_norm are of one update",
                               (int)(number < 1000000000 ? number : 1000000000)));
    }
    return scan_skip(scan);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct scan scan;
    struct json_row *row;
    unsigned seen = 0;
    int found = 0;
    TRY(arena_take(log_build_scratch(build), 1, sizeof *row, "row", &row));
    scan_open(&scan, source);
    TRY(scan_next(&scan));
    TRY(scan_expect(&scan, SCAN_OBJECT));
    for (;;) {
        TRY(scan_next(&scan));
        if (scan.token == SCAN_OBJECT_END) break;
        if (scan_is(&scan, "log_history")) {
            TRY(read_history(&scan, row, build));
            found = 1;
        } else {
            TRY(read_setting(&scan, build, &seen));
        }
    }
    if (seen == (1u << FIELDS_OF_ALL) - 1) {
        log_build_logs_next(build);
        TRY(log_build_note(build, "without a field best_global_step it was written by transformers "
                                  "before 4.50, which log the learning rate of the next update"));
    }
    if (!found) return scan_fail(&scan, "a list \"log_history\" before the end");
    TRY(scan_next(&scan));
    return scan_expect(&scan, SCAN_END);
}

const struct log_reader log_reader_trainer_state = {.step_base = 1, .claim = claim, .read = read};
