/* SPDX-License-Identifier: Apache-2.0
 * TensorBoard event files: TFRecords of the protocol buffer Event.
 *
 * Fields that are read: Event {2 step, 5 summary}, Summary {1 value}, Value {1 tag, 2 simple_value,
 * 8 tensor}, TensorProto {1 dtype, 4 tensor_content, 5 float_val, 6 double_val}
 * (tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto). Everything
 * else is passed over. simple_value is binary32: what the program held as a double was rounded to
 * it, so the quantum is its spacing. Tags "... vs samples" (Megatron) are the same values over
 * another axis and are left out, and so are hp_metric and evaluations before the first update. A
 * file that ends inside a record is still being written or was cut: what stands before is read,
 * with a note. */
#include <string.h>

#include "base/real.h"
#include "logs/lines.h"
#include "logs/protobuf.h"
#include "logs/tfrecord.h"

#define TAG_MAX 255
#define DT_FLOAT 1
#define DT_DOUBLE 2

/* EXACT, because the quanta are set below. */
static const struct log_rule rules[] = {
    {.source = "train/loss", .name = LOG_LOSS, .print = LOG_PRINT_EXACT, .windowed = 1},
    {.source = "reduced_train_loss", .name = LOG_LOSS, .print = LOG_PRINT_EXACT},
    LOG_RULES_END(LOG_PRINT_EXACT),
};

/* ---- numbers ---- */

static double float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

/* ---- scalars ---- */

struct scalar {
    struct log_span tag;
    double value, quantum;
    int has;
};

/* Reads a tensor of one float or double; any other leaves out->has at 0. Returns -1 when it is
 * malformed. */
static int read_tensor(struct proto_message m, struct scalar *out) {
    struct proto_field field;
    uint64_t type = 0;
    struct proto_message content = {NULL, NULL};
    size_t values = 0;
    int more;
    while ((more = proto_next(&m, &field)) > 0) {
        if (field.number == 1 && field.wire == PROTO_VARINT) type = field.integer;
        if ((field.number == 4 || field.number == 5 || field.number == 6) &&
            field.wire == PROTO_BYTES) { /* the raw content, or packed values */
            content = field.inside;
            values++;
        }
        if (field.number == 5 && field.wire == PROTO_32)
            out->value = float_of(field.integer), out->has = 1, values++;
        if (field.number == 6 && field.wire == PROTO_64)
            out->value = proto_double(field.integer), out->has = 1, values++;
    }
    const size_t size = type == DT_FLOAT ? 4 : type == DT_DOUBLE ? 8 : 0;
    uint64_t bits;
    if (size > 0 && content.at != NULL && (size_t)(content.end - content.at) == size &&
        proto_fixed(&content, size, &bits)) {
        out->value = size == 4 ? float_of(bits) : proto_double(bits);
        out->has = 1;
    }
    if (values != 1 || size == 0) out->has = 0;
    out->quantum = size == 4 ? log_float_spacing(out->value) : 0.0;
    return more;
}

static int read_value(struct proto_message m, struct scalar *out) {
    struct proto_field field;
    int more;
    *out = (struct scalar){{NULL, 0}, 0.0, 0.0, 0};
    while ((more = proto_next(&m, &field)) > 0) {
        if (field.number == 1 && field.wire == PROTO_BYTES) {
            out->tag = proto_text(field.inside);
        } else if (field.number == 2 && field.wire == PROTO_32) {
            out->value = float_of(field.integer);
            out->quantum = log_float_spacing(out->value);
            out->has = 1;
        } else if (field.number == 8 && field.wire == PROTO_BYTES) {
            if (read_tensor(field.inside, out) < 0) return -1;
        }
    }
    return more;
}

struct event {
    int64_t step;
    struct proto_message summary;
    int has_summary;
};

static int read_event(struct proto_message m, struct event *out) {
    struct proto_field field;
    int more;
    *out = (struct event){0, {NULL, NULL}, 0};
    while ((more = proto_next(&m, &field)) > 0) {
        if (field.number == 2 && field.wire == PROTO_VARINT) {
            memcpy(&out->step, &field.integer, sizeof out->step);
        } else if (field.number == 5 && field.wire == PROTO_BYTES) {
            out->summary = field.inside;
            out->has_summary = 1;
        }
    }
    return more;
}

static int is_wanted(const struct scalar *scalar, int64_t step) {
    const struct log_span tag = scalar->tag;
    if (!scalar->has || tag.length == 0 || tag.length > TAG_MAX) return 0;
    if (log_span_ends(tag, " vs samples") || log_span_ends(tag, " vs tokens") ||
        log_span_ends(tag, " vs steps"))
        return 0;
    if (log_span_is(tag, "hp_metric")) return 0;
    return step > 0 || (!log_span_starts(tag, "eval") && !log_span_starts(tag, "val"));
}

/* ---- the file ---- */

struct seen {     /* the last value of one tag in this file */
    int64_t step; /* INT64_MIN: none yet */
    double value;
};

struct visit {
    struct log_build *build;
    const struct log_source *source;
    struct seen *seen; /* (LOG_COLUMNS_MAX) */
    int falls; /* 1: the steps of a tag fall, or one step has two values, so the file holds a resume
                */
    int fills; /* 0: the first walk, which only looks; 1: the second, which fills rows */
    int64_t step;     /* the step of the row at hand */
    uint64_t row;     /* counts the rows that were started */
    uint64_t *in_row; /* (LOG_COLUMNS_MAX) the row that has the tag's last value */
};

/* Tells whether a tag repeats itself: trainers log an epoch twice for one step, and the same value
 * again is no second row. */
static int repeats(const struct seen *seen, const struct scalar *scalar, int64_t step) {
    const double a = seen->value, b = scalar->value;
    return seen->step == step && (a == b || (a != a && b != b));
}

static void look_at(struct visit *v, const struct scalar *scalar, size_t column, int64_t step) {
    struct seen *seen = &v->seen[column];
    if (seen->step >= step && !repeats(seen, scalar, step)) v->falls = 1;
    *seen = (struct seen){step, scalar->value};
}

static enum status fill(struct visit *v, const struct scalar *scalar, size_t column, int64_t step) {
    struct seen *seen = &v->seen[column];
    if (!v->falls) {
        TRY(log_build_row_of(v->build, step, 0, v->source->part));
    } else if (step != v->step || (v->in_row[column] == v->row && !repeats(seen, scalar, step))) {
        TRY(log_build_row(v->build, step, 0, v->source->part));
        v->step = step;
        v->row++;
    }
    v->in_row[column] = v->row;
    *seen = (struct seen){step, scalar->value};
    return log_build_value(v->build, column, scalar->value, scalar->quantum);
}

static enum status put(struct visit *v, const struct scalar *scalar, int64_t step) {
    size_t column;
    TRY(log_build_column(v->build, scalar->tag.text, scalar->tag.length, rules, &column));
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    if (v->fills) return fill(v, scalar, column, step);
    look_at(v, scalar, column, step);
    return STATUS_OK;
}

static enum status visit_event(struct visit *v, const struct tfrecord *record) {
    struct proto_message m = {record->bytes, record->bytes + record->length};
    struct event event;
    struct proto_field field;
    struct scalar scalar;
    int more = read_event(m, &event);
    if (more == 0 && event.has_summary)
        while ((more = proto_next(&event.summary, &field)) > 0) {
            if (field.number != 1 || field.wire != PROTO_BYTES) continue;
            if (read_value(field.inside, &scalar) < 0) {
                more = -1;
                break;
            }
            if (is_wanted(&scalar, event.step)) TRY(put(v, &scalar, event.step));
        }
    if (more == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: record at byte %zu: expected a TensorBoard event, got other bytes",
         v->source->name, record->offset);
}

static enum status visit_file(struct visit *v) {
    struct tfrecord record;
    enum tfrecord_end end;
    size_t at = 0;
    for (;;) {
        TRY(tfrecord_next(v->source, &at, &record, &end));
        if (end != TFRECORD_MORE) break;
        TRY(visit_event(v, &record));
        if (v->fills) log_source_release(v->source, at);
    }
    if (end == TFRECORD_CUT && v->fills)
        TRY(log_build_note(v->build,
                           "%s ends inside a record at byte %zu: it is being written or was cut",
                           v->source->name, at));
    return STATUS_OK;
}

static int claim(const struct log_source *source) {
    static const char version[] = "brain.Event:";
    const size_t reach = source->length < 64 ? source->length : 64;
    const struct log_span head = {(const char *)source->bytes, reach};
    if (source->length < 12) return 0;
    if (log_span_after(head, version).text != NULL) return 3;
    uint32_t sum = 0;
    for (int i = 3; i >= 0; i--)
        sum = sum << 8 | source->bytes[8 + i];
    return tfrecord_mask(tfrecord_crc32c(source->bytes, 8)) == sum ? 3 : 0;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct visit v = {.build = build, .source = source, .step = INT64_MIN};
    struct arena *scratch = log_build_scratch(build);
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *v.seen, "tags", &v.seen));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *v.in_row, "tags", &v.in_row));
    for (size_t i = 0; i < LOG_COLUMNS_MAX; i++)
        v.seen[i].step = INT64_MIN;
    TRY(visit_file(&v));
    v.fills = 1;
    return visit_file(&v);
}

const struct log_reader log_reader_tensorboard = {
    .step_base = INT64_MIN, .claim = claim, .read = read};
