/* SPDX-License-Identifier: Apache-2.0
 * JSON files that hold one series behind the other, or a single row:
 * Megatron golden values {"lm loss": {"start_step", "end_step", "step_interval", "values": {"1": x}
 * or [x]}}, of which older ones end in {"iteration_timing_avg": x}; NeMo-RL's dump of TensorBoard
 * {tag: {step: x}}; OLMo-core's metrics.json and metrics_step{N}.json {tag: x}, whose step only the
 * file name says.
 * Invariant: a series may come in any order of steps; rows are sorted by step at the end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "logs/json_row.h"
#include "logs/readers.h"

/* NeMo-RL's accuracy is that of the preference pairs. TensorBoard keeps binary32, which Python
 * writes with all the digits of a binary64: exact for what was kept, and not for what was logged.
 */
static const struct log_rule nemo_rl_rules[] = {
    {.source = "train/accuracy", .name = LOG_REWARD_ACCURACY, .print = LOG_PRINT_FLOAT},
    LOG_RULES_END(LOG_PRINT_FLOAT),
};

static int64_t step_limit(void) {
    return (int64_t)1 << 53;
}

/* Reads the name at hand as a step: "12". */
static enum status read_step(struct scan *scan, int64_t *out) {
    if (scan_integer(scan->text, scan->length, out) && *out >= -step_limit() &&
        *out <= step_limit())
        return STATUS_OK;
    return scan_fail(scan, "a step as the name of a value");
}

/* Puts the number at hand, which may be a string ("nan"). A null is no cell. */
static enum status put_number(struct scan *scan, int64_t step, size_t column,
                              struct log_build *build) {
    struct log_number number;
    if (scan->token == SCAN_NULL) return STATUS_OK;
    if (scan->token != SCAN_NUMBER &&
        !(scan->token == SCAN_STRING && log_number_read(scan->text, scan->length, &number)))
        return scan_fail(scan, "a number");
    TRY(log_build_row_of(build, step, scan->line, scan->source->part));
    return log_build_text(build, column, scan->text, scan->length);
}

/* Reads {"1": 10.5, "2": 10.4}; the token at hand is its '{'. */
static enum status read_steps(struct scan *scan, size_t column, struct log_build *build) {
    for (;;) {
        int64_t step;
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) return STATUS_OK;
        TRY(read_step(scan, &step));
        TRY(scan_next(scan));
        TRY(put_number(scan, step, column, build));
        log_source_release(scan->source, scan->start);
    }
}

static enum status open_object(struct scan *scan, const struct log_source *source) {
    scan_open(scan, source);
    TRY(scan_next(scan));
    return scan_expect(scan, SCAN_OBJECT);
}

static enum status read_end(struct scan *scan) {
    TRY(scan_next(scan));
    return scan_expect(scan, SCAN_END);
}

/* A DataFrame of W&B's history by columns looks the same, but its inner names count rows. */
static enum status refuse_table(struct scan *scan) {
    FAIL(STATUS_INPUT,
         "%s:%" PRIu32
         ": expected series by step, got a column \"_step\", as W&B's history has it, "
         "by rows: to_json(FILE, orient=\"records\", lines=True) writes what can be read",
         scan->source->name, scan->line);
}

/* Reads one object whose keys are columns; `read_column` reads the value of each from its brace on.
 */
static enum status read_columns(const struct log_source *source, struct log_build *build,
                                const struct log_rule *rules,
                                enum status (*read_column)(struct scan *scan, size_t column,
                                                           struct log_build *build)) {
    struct scan scan;
    size_t single = 0;
    TRY(open_object(&scan, source));
    for (;;) {
        size_t column;
        TRY(scan_next(&scan));
        if (scan.token == SCAN_OBJECT_END) break;
        if (scan_is(&scan, "_step")) return refuse_table(&scan);
        TRY(log_build_column(build, scan.text, scan.length, rules, &column));
        TRY(scan_next(&scan));
        if (scan.token == SCAN_NUMBER) {
            single++;
            continue;
        }
        TRY(scan_expect(&scan, SCAN_OBJECT));
        TRY(read_column(&scan, column, build));
    }
    if (single > 0)
        TRY(log_build_note(build, "left out as no series: %zu single numbers of the whole run",
                           single));
    return read_end(&scan);
}

/* ---- NeMo-RL ---- */

static enum status read_nemo_rl(const struct log_source *source, struct log_build *build) {
    return read_columns(source, build, nemo_rl_rules, read_steps);
}

/* ---- Megatron golden values ---- */

struct golden {              /* one metric */
    int64_t start, interval; /* of a list: places in what TensorBoard held, counted from 0 */
    struct scan values; /* stands at the bracket of the values, which are read when the rest of the
                           metric is known */
    int has_values;
};

/* Megatron cut the list out of TensorBoard's as values[start::interval], and the first event is
 * that of iteration 1: the file of its test gpt3_345m mcore_tp1_pp2 has 10.83377 at start_step 0 as
 * a list, and 10.83373 under "1" as the object that came after it. */
static enum status read_list(struct scan *scan, const struct golden *golden, size_t column,
                             struct log_build *build) {
    int64_t step = golden->start + 1;
    for (;; step += golden->interval) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_ARRAY_END) return STATUS_OK;
        if (step > step_limit()) return scan_fail(scan, "a step within 2^53");
        TRY(put_number(scan, step, column, build));
    }
}

static enum status read_golden_number(struct scan *scan, int64_t least, int64_t *out) {
    TRY(scan_next(scan));
    if (scan->token != SCAN_NUMBER || !scan_integer(scan->text, scan->length, out) ||
        *out < least || *out > step_limit())
        return scan_fail(scan, "a whole number of steps");
    return STATUS_OK;
}

/* Reads one metric from its '{' on. The values are read last, because start_step and step_interval
 * may stand behind them. */
static enum status read_golden(struct scan *scan, size_t column, struct log_build *build) {
    struct golden golden = {.start = 0, .interval = 1};
    for (;;) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) break;
        if (scan_is(scan, "start_step")) {
            TRY(read_golden_number(scan, 0, &golden.start));
        } else if (scan_is(scan, "step_interval")) {
            TRY(read_golden_number(scan, 1, &golden.interval));
        } else if (scan_is(scan, "values")) {
            TRY(scan_next(scan));
            if (scan->token != SCAN_OBJECT && scan->token != SCAN_ARRAY)
                return scan_fail(scan, "the values as an object or a list");
            golden.values = *scan;
            golden.has_values = 1;
            TRY(scan_skip(scan));
        } else {
            TRY(scan_next(scan));
            TRY(scan_skip(scan));
        }
    }
    if (!golden.has_values) return STATUS_OK;
    return golden.values.token == SCAN_OBJECT ? read_steps(&golden.values, column, build)
                                              : read_list(&golden.values, &golden, column, build);
}

static enum status read_megatron(const struct log_source *source, struct log_build *build) {
    return read_columns(source, build, log_rules_json, read_golden);
}

/* ---- OLMo-core ---- */

/* "metrics_step120.json" in a path or a name. */
static int step_in_name(const char *path, int64_t *out) {
    static const char prefix[] = "metrics_step";
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return 0;
    name += sizeof prefix - 1;
    return scan_integer(name, strcspn(name, "."), out) && *out >= 0 && *out <= step_limit();
}

static enum status read_olmo(const struct log_source *source, struct log_build *build) {
    struct scan scan;
    struct json_row *row;
    int64_t step = 0;
    const char *step_name = log_build_step_source(build);
    TRY(arena_take(log_build_scratch(build), 1, sizeof *row, "row", &row));
    scan_open(&scan, source);
    TRY(scan_next(&scan));
    TRY(json_row_read(&scan, row));
    if (step_name == NULL) step_name = "step";
    if (!json_row_step(row, step_name, &step) && !step_in_name(source->name, &step)) {
        TRY(log_build_row(build, INT64_MIN, row->line, 0));
    } else {
        if (step > step_limit() || step < -step_limit())
            return scan_fail(&scan, "a step within 2^53");
        TRY(log_build_row_of(build, step, row->line, 0));
    }
    /* exact: OLMo-core's MetricSaver dumps what it has and rounds nothing */
    TRY(json_row_put(row, step_name, 0, log_rules_exact, build));
    return read_end(&scan);
}

/* ---- claims ---- */

/* What stands first in the object, down to the second level. */
struct beginning {
    struct log_source part; /* the beginning of the source, which the scanner reads */
    struct scan scan;
    char name[SCAN_TEXT + 1];
    int inner_is_object, inner_is_number;
    int64_t inner_step; /* the name of the first value inside, as a step; -1: it is none */
    int has_start_step, has_values;
};

static int look(const struct log_source *source, struct beginning *out) {
    struct scan *scan = &out->scan;
    memset(out, 0, sizeof *out);
    out->part = *source;
    out->part.length = source->length < 65536 ? source->length : 65536;
    out->inner_step = -1;
    if (open_object(scan, &out->part) != STATUS_OK || scan_next(scan) != STATUS_OK ||
        scan->token != SCAN_KEY)
        return 0;
    const size_t kept = scan->length < SCAN_TEXT ? scan->length : SCAN_TEXT;
    memcpy(out->name, scan->text, kept);
    if (scan_next(scan) != STATUS_OK) return 0;
    out->inner_is_number = scan->token == SCAN_NUMBER;
    out->inner_is_object = scan->token == SCAN_OBJECT;
    if (!out->inner_is_object) return 1;
    while (scan_next(scan) == STATUS_OK && scan->token == SCAN_KEY) {
        out->has_start_step |= scan_is(scan, "start_step") || scan_is(scan, "step_interval");
        out->has_values |= scan_is(scan, "values");
        if (out->inner_step < 0 && !scan_integer(scan->text, scan->length, &out->inner_step))
            out->inner_step = -1;
        if (scan_next(scan) != STATUS_OK) break;
        if (out->inner_step >= 0) {
            out->inner_is_number = scan->token == SCAN_NUMBER || scan->token == SCAN_STRING;
            break;
        }
        if (scan_skip(scan) != STATUS_OK) break;
    }
    return 1;
}

static int claim_megatron(const struct log_source *source) {
    struct beginning found;
    return look(source, &found) && found.has_start_step && found.has_values ? 3 : 0;
}

static int claim_nemo_rl(const struct log_source *source) {
    struct beginning found;
    if (!look(source, &found) || found.inner_step < 0 || !found.inner_is_number) return 0;
    return 3;
}

/* Tells whether the object at hand is all that the source holds. */
static int is_alone(struct scan *scan) {
    while (scan->depth > 0)
        if (scan_next(scan) != STATUS_OK) return 0;
    return read_end(scan) == STATUS_OK;
}

/* Claims files whose tags begin with one of OLMo-core's words. */
static int claim_olmo(const struct log_source *source) {
    static const char *const words[] = {"train/", "optim/", "throughput/",
                                        "eval/",  "data/",  "system/"};
    struct beginning found;
    int64_t step;
    if (!look(source, &found) || !found.inner_is_number) return 0;
    if (found.inner_is_object) return 0;
    if (step_in_name(source->name, &step)) return 3;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strncmp(found.name, words[i], strlen(words[i])) == 0)
            return is_alone(&found.scan) ? 2 : 0;
    return 0;
}

const struct log_reader log_reader_megatron_golden = {
    .step_base = 1, .claim = claim_megatron, .read = read_megatron};
const struct log_reader log_reader_nemo_rl = {
    .step_base = INT64_MIN, .claim = claim_nemo_rl, .read = read_nemo_rl};
const struct log_reader log_reader_olmo_metrics = {
    .step_base = 1, .claim = claim_olmo, .read = read_olmo};
