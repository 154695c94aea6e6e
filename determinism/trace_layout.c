/* SPDX-License-Identifier: Apache-2.0
 * Turns the column tables of record.h into places in a record and in a packed row. Phases and
 * activation sites have one column each, `digest`, for which record.h has no table. */
#include "determinism/hdf5_layout.h"

#include <stdio.h>
#include <string.h>

const struct layout_axis_name layout_axes[LAYOUT_AXES] = {
    [AXIS_NONE] = {"", "step", "update, 1-based"},
    [AXIS_GROUP] = {"", "group", "parameter group, table order"},
    [AXIS_TENSOR] = {"tensors", "tensor", "trainable tensor, table order"},
    [AXIS_PHASE] = {"phases", "phase", "phase of the loop, loop order"},
    [AXIS_SITE] = {"sites", "site", "activation site, forward order"},
    [AXIS_MICRO] = {"micro", "micro", "micro-batch of the update"},
    [AXIS_CONSUMER] = {"ledger", "consumer", "consumer of random words"},
    [AXIS_STREAM] = {"streams", "stream", "random stream"},
};

const struct layout_fixed layout_fixed[LAYOUT_FIXED] = {
    {"ledger/stream", "1", "number of the consumer's stream",
     offsetof(struct record_consumer, stream)},
    {"ledger/op", "1", "number of the consumer in its stream",
     offsetof(struct record_consumer, op)},
    {"ledger/seed", "1", "seed of the consumer's stream", offsetof(struct record_consumer, seed)},
    {"ledger/initial", "words", "random words drawn before the first update",
     offsetof(struct record_consumer, initial)},
};

static const struct record_column phase_digest[1] = {
    {"digest", "1", "digest of what the phase wrote"}};
static const struct record_column site_digest[1] = {{"digest", "1", "digest of the activation"}};

static const struct record_column step_text = {"step", "1", "update, 1-based"};
static const struct record_column check_text = {"check", "1", "digest of the row, all columns"};
const struct layout_column layout_step = {
    .text = &step_text, .prefix = "", .kind = KIND_INTEGER, .length = 1, .cell = sizeof(int64_t)};
const struct layout_column layout_check = {.text = &check_text,
                                           .prefix = "",
                                           .kind = KIND_DIGEST,
                                           .length = 1,
                                           .cell = RECORD_DIGEST_BYTES};

/* A table of columns that lie side by side in each entry of a source. */
struct family {
    const struct record_column *texts;
    uint32_t count;
    const char *prefix;
    enum layout_source source;
    enum layout_axis axis;
    enum layout_kind kind;
    size_t stride;
    size_t offset; /* offset of the first column in an entry */
};

#define FIELD(member) offsetof(struct record, member)
#define PAIR_FIELD(member) offsetof(struct pair_record, member)
#define STRIDE(member) sizeof(*((struct record *)0)->member)

static const struct family run_families[] = {
    {record_reals, RECORD_REALS, "", SOURCE_RECORD, AXIS_NONE, KIND_REAL, 0, FIELD(reals)},
    {record_integers, RECORD_INTEGERS, "", SOURCE_RECORD, AXIS_NONE, KIND_INTEGER, 0,
     FIELD(integers)},
    {record_digests, RECORD_DIGESTS, "", SOURCE_RECORD, AXIS_NONE, KIND_DIGEST, 0, FIELD(digests)},
    {record_groups, RECORD_GROUPS, "", SOURCE_GROUPS, AXIS_GROUP, KIND_REAL, STRIDE(groups), 0},
    {record_tensors, RECORD_TENSORS, "", SOURCE_TENSORS, AXIS_TENSOR, KIND_REAL, STRIDE(tensors),
     0},
    {record_tensor_digests, RECORD_TENSOR_DIGESTS, "", SOURCE_TENSOR_DIGESTS, AXIS_TENSOR,
     KIND_DIGEST, STRIDE(tensor_digests), 0},
    {phase_digest, 1, "", SOURCE_PHASES, AXIS_PHASE, KIND_DIGEST, STRIDE(phases), 0},
    {site_digest, 1, "", SOURCE_SITES, AXIS_SITE, KIND_DIGEST, STRIDE(sites), 0},
    {record_micros, RECORD_MICROS, "", SOURCE_MICROS, AXIS_MICRO, KIND_REAL, STRIDE(micros), 0},
    {record_ledgers, RECORD_LEDGERS, "", SOURCE_LEDGER, AXIS_CONSUMER, KIND_INTEGER, STRIDE(ledger),
     0},
    {record_places, RECORD_PLACES, "", SOURCE_PLACES, AXIS_STREAM, KIND_INTEGER, STRIDE(places), 0},
};

static const struct family pair_families[] = {
    {record_reals, RECORD_REALS, "gap_", SOURCE_PAIR, AXIS_NONE, KIND_REAL, 0, PAIR_FIELD(gaps)},
    {record_pairs, RECORD_PAIRS, "", SOURCE_PAIR, AXIS_NONE, KIND_REAL, 0, PAIR_FIELD(reals)},
    {record_pair_integers, RECORD_PAIR_INTEGERS, "", SOURCE_PAIR, AXIS_NONE, KIND_INTEGER, 0,
     PAIR_FIELD(integers)},
};

uint32_t layout_axis_length(const struct record_shape *shape, enum layout_axis axis) {
    switch (axis) {
    case AXIS_GROUP:
        return shape->groups;
    case AXIS_TENSOR:
        return shape->tensors;
    case AXIS_PHASE:
        return shape->phases;
    case AXIS_SITE:
        return shape->sites;
    case AXIS_MICRO:
        return shape->micros;
    case AXIS_CONSUMER:
        return shape->consumers;
    case AXIS_STREAM:
        return shape->streams;
    case AXIS_NONE:
    case LAYOUT_AXES:
        break;
    }
    return 1;
}

static void add_family(struct layout *layout, const struct family *family, uint32_t length) {
    const size_t cell = family->kind == KIND_DIGEST ? RECORD_DIGEST_BYTES : sizeof(double);
    for (uint32_t i = 0; i < family->count && length != 0; i++) {
        struct layout_column *column = &layout->columns[layout->count++];
        column->text = &family->texts[i];
        column->prefix = family->prefix;
        column->source = family->source;
        column->axis = family->axis;
        column->kind = family->kind;
        column->length = length;
        column->stride = family->stride;
        column->offset = family->offset + i * cell;
        column->cell = cell;
        column->at = layout->row_bytes;
        layout->row_bytes += cell * length;
    }
}

void layout_init_run(struct layout *layout, const struct record_shape *shape) {
    layout->count = 0;
    layout->row_bytes = sizeof(uint64_t);
    for (size_t i = 0; i < COUNT_OF(run_families); i++)
        add_family(layout, &run_families[i], layout_axis_length(shape, run_families[i].axis));
}

void layout_init_pair(struct layout *layout) {
    layout->count = 0;
    layout->row_bytes = sizeof(uint64_t);
    for (size_t i = 0; i < COUNT_OF(pair_families); i++)
        add_family(layout, &pair_families[i], 1);
}

const void *layout_fill(enum layout_kind kind) {
    static const uint64_t not_a_number = 0x7ff8000000000000u; /* the bits of the quiet NaN */
    static const int64_t minus_one = -1;
    static const uint8_t zero[RECORD_DIGEST_BYTES] = {0};
    if (kind == KIND_REAL) return &not_a_number;
    return kind == KIND_INTEGER ? (const void *)&minus_one : (const void *)zero;
}

void layout_drop(struct layout *layout, uint32_t index) {
    const size_t bytes = layout->columns[index].cell * layout->columns[index].length;
    layout->count--;
    for (uint32_t c = index; c < layout->count; c++) {
        layout->columns[c] = layout->columns[c + 1];
        layout->columns[c].at -= bytes;
    }
    layout->row_bytes -= bytes;
}

void layout_name(const struct layout_column *column, char out_name[LAYOUT_NAME]) {
    const char *folder = layout_axes[column->axis].folder;
    snprintf(out_name, LAYOUT_NAME, "%s%s%s%s", folder, folder[0] == '\0' ? "" : "/",
             column->prefix, column->text->name);
}

/* The first entry of a column's source. Only layout_unpack writes a record through it. */
static void *source_of(enum layout_source source, const void *record) {
    const struct record *run = (const struct record *)record;
    switch (source) {
    case SOURCE_RECORD:
        return (void *)(uintptr_t)run;
    case SOURCE_GROUPS:
        return run->groups;
    case SOURCE_TENSORS:
        return run->tensors;
    case SOURCE_TENSOR_DIGESTS:
        return run->tensor_digests;
    case SOURCE_PHASES:
        return run->phases;
    case SOURCE_SITES:
        return run->sites;
    case SOURCE_MICROS:
        return run->micros;
    case SOURCE_LEDGER:
        return run->ledger;
    case SOURCE_PLACES:
        return run->places;
    case SOURCE_PAIR:
        break;
    }
    return (void *)(uintptr_t)record;
}

enum status layout_pack(const struct layout *layout, const void *record, uint8_t *row) {
    memcpy(row, record, sizeof(uint64_t)); /* `step` is the first member of both kinds of record */
    for (uint32_t c = 0; c < layout->count; c++) {
        const struct layout_column *column = &layout->columns[c];
        const uint8_t *from = (const uint8_t *)source_of(column->source, record);
        if (from == NULL)
            FAIL(STATUS_INTERNAL, "record: no array for column %s%s", column->prefix,
                 column->text->name);
        uint8_t *to = row + column->at;
        for (uint32_t i = 0; i < column->length; i++, to += column->cell)
            memcpy(to, from + i * column->stride + column->offset, column->cell);
    }
    return STATUS_OK;
}

void layout_unpack(const struct layout_column *column, const uint8_t *cells, void *record) {
    uint8_t *to = (uint8_t *)source_of(column->source, record) + column->offset;
    for (uint32_t i = 0; i < column->length; i++)
        memcpy(to + i * column->stride, cells + i * column->cell, column->cell);
}

void layout_state_digest(uint64_t step, const void *bytes, size_t length, struct digest *out) {
    uint8_t row[8 + DIGEST_BYTES];
    struct digest state;
    digest_sha256(bytes, length, &state);
    for (int i = 0; i < 8; i++)
        row[i] = (uint8_t)(step >> (8 * i));
    memcpy(row + 8, state.byte, sizeof state.byte);
    digest_sha256(row, sizeof row, out);
}

_Static_assert(offsetof(struct record, step) == 0, "layout_pack reads the step there");
_Static_assert(offsetof(struct pair_record, step) == 0, "layout_pack reads the step there");
