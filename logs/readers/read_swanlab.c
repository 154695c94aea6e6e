/* SPDX-License-Identifier: Apache-2.0
 * The local file of a SwanLab run, run-ID.swanlab: records of a protocol buffer in W&B's framing,
 * of which the scalars are read.
 *
 * Fields that are read: Record {13 scalar}, ScalarRecord {1 key, 2 step, 5 value}, ScalarValue {1
 * number} (swanlab/proto of versions 0.9.8 to 0.10, whose files say version 2). A value is a
 * binary64, so it is exact. Older versions write other records, and their number in the head is
 * refused. */
#include <inttypes.h>
#include <string.h>

#include "logs/framed.h"

#define VERSION 2

static int claim(const struct log_source *source) {
    return source->length >= FRAMED_HEAD && memcmp(source->bytes, ":SWL", 4) == 0 ? 3 : 0;
}

struct scalar {
    struct log_span key;
    int64_t step;
    double value;
    int has;
};

static int read_scalar(struct proto_message message, struct scalar *out) {
    struct proto_field field, inner;
    int more;
    *out = (struct scalar){{NULL, 0}, 0, 0.0, 0};
    while ((more = proto_next(&message, &field)) > 0) {
        if (field.number == 1 && field.wire == PROTO_BYTES) out->key = proto_text(field.inside);
        if (field.number == 2 && field.wire == PROTO_VARINT)
            memcpy(&out->step, &field.integer, sizeof out->step);
        if (field.number != 5 || field.wire != PROTO_BYTES) continue;
        int good;
        out->has = 1; /* proto3 leaves a 0 out */
        while ((good = proto_next(&field.inside, &inner)) > 0)
            if (inner.number == 1 && inner.wire == PROTO_64)
                out->value = proto_double(inner.integer);
        if (good < 0) return -1;
    }
    return more;
}

static enum status put_scalar(const struct scalar *scalar, struct log_build *build,
                              const struct log_source *source) {
    size_t column;
    if (!scalar->has || scalar->key.length == 0) return STATUS_OK;
    if (scalar->step > ((int64_t)1 << 53) || scalar->step < -((int64_t)1 << 53))
        FAIL(STATUS_INPUT, "%s: expected a step within 2^53, got %" PRId64, source->name,
             scalar->step);
    TRY(log_build_column(build, scalar->key.text, scalar->key.length, log_rules_exact, &column));
    TRY(log_build_row_of(build, scalar->step, 0, source->part));
    return log_build_value(build, column, scalar->value, 0.0);
}

static enum status put_record(struct proto_message record, const struct framed *framed,
                              struct log_build *build) {
    struct proto_field field;
    struct scalar scalar;
    int more;
    while ((more = proto_next(&record, &field)) > 0) {
        if (field.number != 13 || field.wire != PROTO_BYTES) continue;
        if (read_scalar(field.inside, &scalar) < 0) {
            more = -1;
            break;
        }
        TRY(put_scalar(&scalar, build, framed->source));
    }
    if (more == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: record before byte %zu: expected a record of SwanLab, got other bytes",
         framed->source->name, framed->at);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct framed framed;
    int more;
    if (claim(source) == 0)
        FAIL(STATUS_INPUT, "%s: expected the head of a SwanLab file (:SWL), got other bytes",
             source->name);
    if (source->bytes[FRAMED_HEAD - 1] != VERSION)
        FAIL(STATUS_INPUT,
             "%s: expected version %d of SwanLab's files (0.9.8 and later), got %d; export the run "
             "as CSV",
             source->name, VERSION, source->bytes[FRAMED_HEAD - 1]);
    framed_open(&framed, source, log_build_scratch(build));
    for (;;) {
        struct proto_message record;
        TRY(framed_next(&framed, &record, &more));
        if (!more) break;
        TRY(put_record(record, &framed, build));
        log_source_release(source, framed.at);
    }
    if (framed.cut)
        TRY(log_build_note(build, "%s ends inside a record: it is being written or was cut",
                           source->name));
    return STATUS_OK;
}

const struct log_reader log_reader_swanlab = {.step_base = INT64_MIN, .claim = claim, .read = read};
