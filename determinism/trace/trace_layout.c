/* SPDX-License-Identifier: Apache-2.0
 * Turns the column tables of record.h into places in a record and in a packed row. Phases and
 * activation sites have one column each, `digest`, for which record.h has no table. */
#include "determinism/digest.h"
#include "determinism/trace/hdf5_layout.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(member) offsetof(struct record_shape, member)

const struct layout_axis_name layout_axes[LAYOUT_AXES] = {
    [AXIS_NONE] = {"", "step", "update, 1-based", 0},
    [AXIS_GROUP] = {"", "group", "parameter group, table order", LENGTH(groups)},
    [AXIS_TENSOR] = {"tensors", "tensor", "trainable tensor, table order", LENGTH(tensors)},
    [AXIS_PHASE] = {"phases", "phase", "phase of the loop, loop order", LENGTH(phases)},
    [AXIS_SITE] = {"sites", "site", "activation site, forward order", LENGTH(sites)},
    [AXIS_MICRO] = {"micro", "micro", "micro-batch of the update", LENGTH(micros)},
    [AXIS_CONSUMER] = {"ledger", "consumer", "consumer of random words", LENGTH(consumers)},
    [AXIS_STREAM] = {"streams", "stream", "random stream", LENGTH(streams)},
    [AXIS_RANK] = {"ranks", "rank", "data-parallel rank", LENGTH(ranks)},
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

/* A table of columns that lie side by side in each entry of an array of the record, or in the
 * record itself. */
struct family {
    const struct record_column *texts;
    uint32_t count;
    enum layout_kind kind;
    size_t offset; /* offset of the first column in an entry */
    enum layout_axis axis;
    size_t array, stride; /* of a record's array, as in struct layout_column */
    const char *prefix;   /* NULL: none */
};

#define IN_RECORD(texts, count, kind, member)                                                      \
    { texts, count, kind, offsetof(struct record, member), AXIS_NONE, 0, 0, NULL }
#define IN_PAIR(texts, count, kind, member, prefix)                                                \
    { texts, count, kind, offsetof(struct pair_record, member), AXIS_NONE, 0, 0, prefix }
#define IN_ARRAY(texts, count, kind, member, axis)                                                 \
    {                                                                                              \
        texts, count, kind, 0, axis, offsetof(struct record, member),                              \
            sizeof(*((struct record *)0)->member), NULL                                            \
    }

static const struct family run_families[] = {
    IN_RECORD(record_reals, RECORD_REALS, KIND_REAL, reals),
    IN_RECORD(record_integers, RECORD_INTEGERS, KIND_INTEGER, integers),
    IN_RECORD(record_digests, RECORD_DIGESTS, KIND_DIGEST, digests),
    IN_ARRAY(record_groups, RECORD_GROUPS, KIND_REAL, groups, AXIS_GROUP),
    IN_ARRAY(record_tensors, RECORD_TENSORS, KIND_REAL, tensors, AXIS_TENSOR),
    IN_ARRAY(record_tensor_digests, RECORD_TENSOR_DIGESTS, KIND_DIGEST, tensor_digests,
             AXIS_TENSOR),
    IN_ARRAY(phase_digest, 1, KIND_DIGEST, phases, AXIS_PHASE),
    IN_ARRAY(record_phases, RECORD_PHASES, KIND_INTEGER, phase_places, AXIS_PHASE),
    IN_ARRAY(site_digest, 1, KIND_DIGEST, sites, AXIS_SITE),
    IN_ARRAY(record_micros, RECORD_MICROS, KIND_REAL, micros, AXIS_MICRO),
    IN_ARRAY(record_ledgers, RECORD_LEDGERS, KIND_INTEGER, ledger, AXIS_CONSUMER),
    IN_ARRAY(record_places, RECORD_PLACES, KIND_INTEGER, places, AXIS_STREAM),
    IN_ARRAY(record_rank_digests, RECORD_RANK_DIGESTS, KIND_DIGEST, rank_digests, AXIS_RANK),
    IN_ARRAY(record_ranks, RECORD_RANKS, KIND_INTEGER, ranks, AXIS_RANK),
};

static const struct family pair_families[] = {
    IN_PAIR(record_reals, RECORD_REALS, KIND_REAL, gaps, "gap_"),
    IN_PAIR(record_pairs, RECORD_PAIRS, KIND_REAL, reals, NULL),
    IN_PAIR(record_pair_integers, RECORD_PAIR_INTEGERS, KIND_INTEGER, integers, NULL),
};

uint32_t layout_axis_length(const struct record_shape *shape, enum layout_axis axis) {
    uint32_t length = 1;
    if (axis != AXIS_NONE)
        memcpy(&length, (const char *)shape + layout_axes[axis].length, sizeof length);
    return length;
}

static void add_family(struct layout *layout, const struct family *family, uint32_t length) {
    const size_t cell = family->kind == KIND_DIGEST ? RECORD_DIGEST_BYTES : sizeof(double);
    for (uint32_t i = 0; i < family->count && length != 0; i++) {
        struct layout_column *column = &layout->columns[layout->count++];
        column->text = &family->texts[i];
        column->prefix = family->prefix == NULL ? "" : family->prefix;
        column->array = family->array;
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

/* Our own loop has its order of phases in its configuration, so it records no places. */
void layout_init_run(struct layout *layout, const struct record_shape *shape, int foreign) {
    layout->count = 0;
    layout->row_bytes = sizeof(uint64_t);
    for (size_t i = 0; i < COUNT_OF(run_families); i++)
        if (foreign || run_families[i].texts != record_phases)
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

/* The first entry that holds the column, or NULL if the record lacks the array. Only layout_unpack
 * writes a record through it. */
static void *entries_of(const struct layout_column *column, const void *record) {
    void *entries = (void *)(uintptr_t)record;
    if (column->array != 0) memcpy(&entries, (const char *)record + column->array, sizeof entries);
    return entries;
}

enum status layout_pack(const struct layout *layout, const void *record, uint8_t *row) {
    memcpy(row, record, sizeof(uint64_t)); /* `step` is the first member of both kinds of record */
    for (uint32_t c = 0; c < layout->count; c++) {
        const struct layout_column *column = &layout->columns[c];
        const uint8_t *from = (const uint8_t *)entries_of(column, record);
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
    uint8_t *to = (uint8_t *)entries_of(column, record) + column->offset;
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
