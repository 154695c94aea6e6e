/* SPDX-License-Identifier: Apache-2.0
 * One JSON object per row: JSONL, or a list of objects, as LLaMA-Factory, W&B, torchtune and others
 * write them.
 *
 * The tools differ in the name of the step, in what they round, and in what a step means. A last
 * line that is cut off (a log that is still being written) is left out with a note. Invariant:
 * memory does not grow with the lines, and the step column is chosen once per file. */
#include <inttypes.h>
#include <string.h>

#include "logs/json_row.h"
#include "logs/readers.h"

/* Rows from which on a W&B history is suspected to be sampled: run.history() gives 500 at most
 * unless asked for more (its default `samples`), and drops some as empty. */
#define WANDB_SAMPLED 400

/* LogCallback.on_log of LLaMA-Factory copies the learning_rate of log_history, which the Trainer
 * keeps without rounding. */
static const struct log_rule llama_factory_rules[] = {
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_DECIMALS, .decimals = 4, .windowed = 1},
    {.source = "learning_rate", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    {.source = "lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    {.source = "total_tokens", .name = LOG_TOKENS, .print = LOG_PRINT_EXACT, .cumulative = 1},
    {.source = "total_steps", .name = LOG_TOTAL_STEPS, .print = LOG_PRINT_EXACT},
    LOG_RULES_END(LOG_PRINT_JSON),
};

/* The step and the total in the rows of ms-swift's logging.jsonl: "5/100". Its last line has a
 * global_step besides, which is no row's. */
#define PROGRESS "global_step/max_steps"

static const char *const common_steps[] = {PROGRESS,
                                           "step",
                                           "global_step",
                                           "train/global_step",
                                           "training_step",
                                           "trainer/global_step",
                                           "current_steps",
                                           "iteration",
                                           "iter",
                                           "update",
                                           "steps",
                                           "_step",
                                           "data/step" /* of IBM's FileLoggingCallback */,
                                           NULL};
static const char *const wandb_steps[] = WANDB_STEPS;
static const char *const llama_factory_steps[] = {"current_steps", NULL};
static const char *const torchtune_steps[] = {"step", NULL};

/* ---- what the beginning of the file says ---- */

/* Reads the first row, for claims and for the choice of the step. Returns 0 when the source does
 * not begin with an object. */
static int first_row(const struct log_source *source, struct scan *scan, struct json_row *row) {
    scan_open(scan, source);
    if (scan_next(scan) != STATUS_OK) return 0;
    if (scan->token == SCAN_ARRAY && scan_next(scan) != STATUS_OK) return 0;
    return scan->token == SCAN_OBJECT && json_row_read(scan, row) == STATUS_OK && row->count > 0;
}

static struct log_source beginning(const struct log_source *source) {
    struct log_source part = *source;
    part.length = part.length < 65536 ? part.length : 65536;
    part.mapping = NULL;
    return part;
}

static int has(const struct json_row *row, const char *name) {
    return json_row_find(row, name) != NULL;
}

static int judge_wandb(const struct json_row *row) {
    if (!has(row, "_step")) return 0;
    return has(row, "_runtime") || has(row, "_timestamp") ? 3 : 2;
}

static int judge_llama_factory(const struct json_row *row) {
    return has(row, "current_steps") && has(row, "total_steps") ? 3 : 0;
}

static int judge_torchtune(const struct json_row *row) {
    if (!has(row, "step")) return 0;
    return has(row, "tokens_per_second_per_gpu") || has(row, "log_probs/chosen") ||
                   has(row, "peak_memory_active") || has(row, "peak_memory_alloc")
               ? 3
               : 0;
}

static int judge_generic(const struct json_row *row) {
    for (size_t i = 0; common_steps[i] != NULL; i++)
        if (has(row, common_steps[i])) return 2;
    return 1;
}

int log_dialect_claim(const struct log_source *source, const struct log_dialect *dialect) {
    struct arena arena = ARENA_EMPTY;
    struct log_source part = beginning(source);
    struct scan scan;
    struct json_row *row;
    int claim = LOG_CLAIM_FAILED;
    if (arena_take(&arena, 1, sizeof *row, "row", &row) == STATUS_OK)
        claim = first_row(&part, &scan, row) ? dialect->judge(row) : 0;
    arena_close(&arena);
    return claim;
}

/* Reads the step of a row under one name. *total is left where the row says none. */
static int step_in(const struct json_row *row, const char *name, int64_t *step, int64_t *total) {
    const struct json_cell *cell = json_row_find(row, name);
    if (strcmp(name, PROGRESS) != 0) return json_row_step(row, name, step);
    if (cell == NULL || cell->token != SCAN_STRING) return 0;
    const char *const slash = (const char *)memchr(cell->text, '/', cell->length);
    if (slash == NULL) return 0;
    const size_t length = (size_t)(slash - cell->text);
    return scan_integer(cell->text, length, step) &&
           scan_integer(slash + 1, cell->length - length - 1, total);
}

/* Returns the best name of the step that any of the first rows has; rows of an evaluation may lack
 * it. */
static const char *choose_step(const struct log_source *source, const char *const *steps,
                               struct json_row *row) {
    struct log_source part = beginning(source);
    struct scan scan;
    size_t best = 0;
    while (steps[best] != NULL)
        best++;
    if (!first_row(&part, &scan, row)) return NULL;
    for (;;) {
        int64_t step, total;
        for (size_t i = 0; i < best && steps[i] != NULL; i++)
            if (step_in(row, steps[i], &step, &total)) best = i;
        if (scan_next(&scan) != STATUS_OK || scan.token != SCAN_OBJECT ||
            json_row_read(&scan, row) != STATUS_OK)
            return steps[best];
    }
}

/* ---- rows ---- */

struct pace { /* tells whether the steps come at one stride */
    int64_t last, stride;
    size_t rows, uneven;
};

static void note_pace(struct pace *pace, int64_t step) {
    if (step == INT64_MIN) return;
    if (pace->rows > 0) {
        const int64_t stride = step - pace->last;
        if (pace->rows > 1 && stride != pace->stride) pace->uneven++;
        pace->stride = stride;
    }
    pace->last = step;
    pace->rows++;
}

static enum status note_wandb(struct log_build *build, const char *step, const struct pace *pace) {
    if (step != NULL) TRY(log_build_note_step(build, step));
    if (pace->rows >= WANDB_SAMPLED && pace->uneven > pace->rows / 10)
        TRY(log_build_note(build,
                           "%zu rows at uneven steps: run.history() samples; "
                           "scan_history() or the history artifact has all rows",
                           pace->rows));
    return STATUS_OK;
}

static enum status put_row(const struct json_row *row, const char *step_name,
                           const struct log_dialect *dialect, struct log_build *build,
                           const struct log_source *source, struct pace *pace) {
    int64_t step = INT64_MIN, total = 0;
    const int stepped = step_name != NULL && step_in(row, step_name, &step, &total);
    if (step > ((int64_t)1 << 53) || (stepped && step < -((int64_t)1 << 53)))
        FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected a step within 2^53, got %" PRId64,
             source->name, row->line, step);
    note_pace(pace, step);
    if (dialect->total != NULL && !json_row_step(row, dialect->total, &total)) total = 0;
    if (total > 0) log_build_max_steps(build, (uint64_t)total);
    TRY(log_build_row(build, step, row->line, source->part));
    return json_row_put(row, stepped ? step_name : NULL, 0, dialect->rules, build);
}

/* Forgives a value that the end of the file cuts where whole rows stand before it; else it is an
 * error. */
static enum status cut_or(enum status status, const struct scan *scan, size_t rows, uint32_t line,
                          struct log_build *build) {
    if (status == STATUS_OK || !scan->cut || rows == 0) return status;
    return log_build_note(build, "line %" PRIu32 " is cut off by the end of the file: left out",
                          line);
}

static enum status read_rows(struct scan *scan, struct json_row *row, const char *step,
                             const struct log_dialect *dialect, struct log_build *build) {
    struct pace pace = {0, 0, 0, 0};
    size_t rows = 0;
    for (;; rows++) {
        enum status status = scan_next(scan);
        const uint32_t line = scan->line;
        if (status == STATUS_OK && rows == 0 && scan->token == SCAN_ARRAY) status = scan_next(scan);
        if (status == STATUS_OK && scan->token == SCAN_ARRAY_END) status = scan_next(scan);
        if (status == STATUS_OK && scan->token == SCAN_END) break;
        if (status == STATUS_OK) status = json_row_read(scan, row);
        if (status != STATUS_OK) return cut_or(status, scan, rows, line, build);
        TRY(put_row(row, step, dialect, build, scan->source, &pace));
        log_source_release(scan->source, scan->start);
    }
    return dialect->is_wandb ? note_wandb(build, step, &pace) : STATUS_OK;
}

enum status log_dialect_read(const struct log_source *source, struct log_build *build,
                             const struct log_dialect *dialect) {
    struct json_row *row;
    struct scan scan;
    int64_t whole;
    TRY(arena_take(log_build_scratch(build), 1, sizeof *row, "row", &row));
    const char *step = log_build_step_source(build);
    if (step == NULL) step = choose_step(source, dialect->steps, row);
    const int begins = step == NULL && first_row(source, &scan, row);
    for (size_t i = 0; begins && dialect->steps[i] != NULL; i++) {
        const struct json_cell *const cell = json_row_find(row, dialect->steps[i]);
        if (cell != NULL && cell->token == SCAN_NUMBER &&
            !json_row_step(row, dialect->steps[i], &whole))
            TRY(log_build_odd_step(build, dialect->steps[i], cell->text, cell->length, row->line));
    }
    scan_open(&scan, source);
    return read_rows(&scan, row, step, dialect, build);
}

/* Whoever wrote the rows may have rounded a rate before, so no name makes a column exact. */
static const struct log_dialect generic = {
    .steps = common_steps, .rules = log_rules_json, .judge = judge_generic};
static const struct log_dialect wandb = {
    .steps = wandb_steps, .rules = log_rules_json, .judge = judge_wandb, .is_wandb = 1};
static const struct log_dialect llama_factory = {.steps = llama_factory_steps,
                                                 .rules = llama_factory_rules,
                                                 .judge = judge_llama_factory,
                                                 .total = "total_steps"};
static const struct log_dialect torchtune = {
    .steps = torchtune_steps, .rules = log_rules_json, .judge = judge_torchtune};

const struct log_reader log_reader_jsonl = {.step_base = INT64_MIN, .dialect = &generic};
const struct log_reader log_reader_wandb_jsonl = {.step_base = INT64_MIN, .dialect = &wandb};
const struct log_reader log_reader_llama_factory = {.step_base = 1, .dialect = &llama_factory};
const struct log_reader log_reader_torchtune_jsonl = {.step_base = INT64_MIN,
                                                      .dialect = &torchtune};
