/* SPDX-License-Identifier: Apache-2.0
 * The local file of a W&B run, run-ID.wandb, as `wandb` writes it beside the upload, and instead of
 * it when offline: records of a protocol buffer, of which the history is read.
 *
 * Fields that are read: Record {2 history}, HistoryRecord {1 item, 2 step}, HistoryItem {1 key, 2
 * nested_key, 16 value_json}, HistoryStep {1 num} (wandb/proto/wandb_internal.proto). A value is
 * JSON, so a number is the shortest repr of what the program logged. Every row is there: nothing is
 * sampled. Histograms, images and texts are no numbers and are left out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "logs/framed.h"
#include "logs/json_row.h"
#include "logs/lines.h"

static const char *const steps[] = WANDB_STEPS;

/* Rows that are looked at to choose the step. */
#define ROWS_LOOKED_AT 1000

static int is_head(const struct log_source *source) {
    return source->length >= FRAMED_HEAD && memcmp(source->bytes, ":W&B", 4) == 0;
}

static int claim(const struct log_source *source) {
    return is_head(source) ? 3 : 0;
}

/* Keeps a text in the row; NULL when there is no room. */
static char *keep(struct json_row *row, struct log_span text) {
    if (text.length > JSON_ROW_TEXT - row->used) {
        row->cut = 1;
        return NULL;
    }
    char *kept = row->text + row->used;
    if (text.length > 0) memcpy(kept, text.text, text.length);
    row->used += text.length;
    return kept;
}

/* Adds a cell to the row where the JSON is a number or a truth. */
static void add_cell(struct json_row *row, struct log_span name, struct log_span json) {
    struct log_number number;
    const int is_true = log_span_is(json, "true"), is_false = log_span_is(json, "false");
    if (name.length == 0 || row->count == JSON_ROW_CELLS) return;
    if (is_true || is_false) json = (struct log_span){is_true ? "1" : "0", 1};
    if (!log_number_read(json.text, json.length, &number)) return;
    const char *kept_name = keep(row, name), *kept_json = keep(row, json);
    if (kept_name == NULL || kept_json == NULL) return;
    row->cells[row->count++] = (struct json_cell){kept_name, name.length, kept_json, json.length,
                                                  is_true    ? SCAN_TRUE
                                                  : is_false ? SCAN_FALSE
                                                             : SCAN_NUMBER};
}

/* Reads an item. The keys of a dict inside a dict are joined with a slash, as in a row of JSON. */
static int read_item(struct proto_message item, struct json_row *row) {
    char joined[512];
    size_t length = 0;
    struct log_span name = {NULL, 0}, json = {NULL, 0};
    struct proto_field field;
    int more, parts = 0;
    while ((more = proto_next(&item, &field)) > 0) {
        const struct log_span text = proto_text(field.inside);
        if (field.wire != PROTO_BYTES) continue;
        if (field.number == 1 && text.length > 0) name = text;
        if (field.number == 16) json = text;
        if (field.number != 2 || length + text.length + 1 > sizeof joined) continue;
        if (parts++ > 0) joined[length++] = '/';
        if (text.length > 0) memcpy(joined + length, text.text, text.length);
        length += text.length;
    }
    if (parts > 0) name = (struct log_span){joined, length};
    add_cell(row, name, json);
    return more;
}

static int read_step(struct proto_message message, int64_t *out) {
    struct proto_field field;
    int more;
    *out = 0; /* proto3 leaves a 0 out */
    while ((more = proto_next(&message, &field)) > 0)
        if (field.number == 1 && field.wire == PROTO_VARINT)
            memcpy(out, &field.integer, sizeof *out);
    return more;
}

/* Reads a history record. Old versions of wandb write _step only beside the items. */
static int read_history(struct proto_message history, struct json_row *row) {
    static const struct log_span step_name = {"_step", 5};
    struct proto_field field;
    int64_t step = -1;
    int more;
    row->count = row->used = 0;
    row->cut = 0;
    while ((more = proto_next(&history, &field)) > 0) {
        if (field.wire != PROTO_BYTES) continue;
        if (field.number == 1 && read_item(field.inside, row) < 0) return -1;
        if (field.number == 2 && read_step(field.inside, &step) < 0) return -1;
    }
    if (step >= 0 && json_row_find(row, "_step") == NULL) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, step);
        add_cell(row, step_name, (struct log_span){text, strlen(text)});
    }
    return more;
}

/* Reads on to the next row of the history; *more 0 at the end of the file. */
static enum status next_row(struct framed *framed, struct json_row *row, int *more) {
    struct proto_message record;
    struct proto_field field;
    for (;;) {
        TRY(framed_next(framed, &record, more));
        if (!*more) return STATUS_OK;
        int found = 0, good;
        while ((good = proto_next(&record, &field)) > 0) {
            if (field.number != 2 || field.wire != PROTO_BYTES) continue;
            found = 1;
            if (read_history(field.inside, row) < 0) good = -1;
            if (good < 0) break;
        }
        if (good < 0)
            FAIL(STATUS_INPUT,
                 "%s: record before byte %zu: expected a record of W&B, got other "
                 "bytes",
                 framed->source->name, framed->at);
        if (found && row->count > 0) return STATUS_OK;
    }
}

/* Sets *out to the best name of a step that any of the first rows has. */
static enum status choose_step(const struct log_source *source, struct log_build *build,
                               struct json_row *row, const char **out) {
    struct framed framed;
    size_t best = COUNT_OF(steps) - 1;
    int more = 1;
    *out = log_build_step_source(build);
    if (*out != NULL) return STATUS_OK;
    framed_open(&framed, source, log_build_scratch(build));
    for (size_t rows = 0; rows < ROWS_LOOKED_AT && best > 0; rows++) {
        int64_t step;
        TRY(next_row(&framed, row, &more));
        if (!more) break;
        for (size_t i = 0; i < best; i++)
            if (json_row_step(row, steps[i], &step)) best = i;
    }
    *out = steps[best];
    return STATUS_OK;
}

static enum status put_row(const struct json_row *row, const char *step_name,
                           struct log_build *build, const struct log_source *source) {
    int64_t step = INT64_MIN;
    const int stepped = step_name != NULL && json_row_step(row, step_name, &step);
    if (stepped && (step > ((int64_t)1 << 53) || step < -((int64_t)1 << 53)))
        FAIL(STATUS_INPUT, "%s: expected a step within 2^53, got %" PRId64, source->name, step);
    TRY(log_build_row(build, step, 0, source->part));
    return json_row_put(row, stepped ? step_name : NULL, 0, log_rules_json, build);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct framed framed;
    struct json_row *row;
    const char *step;
    int more;
    TRY(arena_take(log_build_scratch(build), 1, sizeof *row, "row", &row));
    if (!is_head(source))
        FAIL(STATUS_INPUT, "%s: expected the head of a W&B file (:W&B), got other bytes",
             source->name);
    TRY(choose_step(source, build, row, &step));
    framed_open(&framed, source, log_build_scratch(build));
    for (;;) {
        TRY(next_row(&framed, row, &more));
        if (!more) break;
        TRY(put_row(row, step, build, source));
        log_source_release(source, framed.at);
    }
    if (step != NULL) TRY(log_build_note_step(build, step));
    if (framed.cut)
        TRY(log_build_note(build, "%s ends inside a record: it is being written or was cut",
                           source->name));
    return STATUS_OK;
}

const struct log_reader log_reader_wandb_run = {
    .step_base = INT64_MIN, .claim = claim, .read = read};
