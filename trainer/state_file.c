/* SPDX-License-Identifier: Apache-2.0
 * Walks the narrow numbers of a state in the order in which trainer/state.c places them, so that
 * what lies between two pieces can be copied as one. */
#include "trainer/state_file.h"

#include <string.h>

#include "base/dtype_bits.h"
#include "determinism/carrier.h"

/* The kinds of numbers that may be narrow, in the order of their places. */
enum kind { KIND_PARAM, KIND_GRADIENT, KIND_SLOT, KINDS = KIND_SLOT + OPTIM_SLOTS_MAX };

/* Where the walk is: copy 0 is the state's own, the others are those of ranks. */
struct place {
    const struct param_table *table;
    const struct state_layout *layout;
    uint32_t copy, row;
    int kind;
};

/* Narrow numbers that lie side by side. */
struct piece {
    const char *tensor;
    size_t at, count; /* at: the offset into the state */
    enum dtype dtype;
};

/* Returns 0 where the row has no narrow numbers of the kind. */
static int piece_of(const struct place *place, struct piece *out) {
    const struct state_layout *const layout = place->layout;
    const struct param_row *const row = &place->table->rows[place->row];
    const struct state_tensor *const tensor = &layout->tensor[place->row];
    *out = (struct piece){row->name, tensor->param, row->count, row->dtype};
    if (row->tied_to >= 0 || (place->kind != KIND_PARAM && !row->trainable)) return 0;
    if (place->kind == KIND_GRADIENT) {
        out->at = tensor->gradient;
        out->dtype = layout->gradient_dtype;
    } else if (place->kind >= KIND_SLOT) {
        out->at = tensor->slot[place->kind - KIND_SLOT];
        out->count = tensor->slot_count[place->kind - KIND_SLOT];
        out->dtype = layout->slot_dtype;
    }
    return out->count > 0 && dtype_width(out->dtype) == sizeof(uint16_t);
}

/* A copy has the parts of struct state_replicas one behind the other. */
static size_t in_copy(const struct place *place, size_t at) {
    const struct state_replicas *const replicas = &place->layout->replicas;
    const int part = place->kind >= KIND_SLOT;
    const size_t start = replicas->first + (place->copy - 1) * replicas->bytes +
                         (part ? replicas->piece[0].bytes : 0);
    return start + (at - replicas->piece[part].at);
}

/* Moves on to the next narrow numbers. Returns 0 where there are none. */
static int next_piece(struct place *place, struct piece *out) {
    for (; place->copy <= place->layout->replicas.copies; place->copy++, place->kind = 0) {
        for (; place->kind < KINDS; place->kind++, place->row = 0) {
            for (; place->row < place->table->count; place->row++) {
                if (!piece_of(place, out)) continue;
                if (place->copy > 0) out->at = in_copy(place, out->at);
                place->row++;
                return 1;
            }
        }
    }
    return 0;
}

/* The file keeps the sign and the fraction of a NaN, which digests fold into one pattern: a
 * training that goes on from the state counts and flips bits of numbers as they are. A NaN whose
 * fraction does not end within the dtype's, which no operation makes of numbers of that dtype,
 * comes back as the pattern of the digests. f16 has 13 fraction bits less than its carrier, an f32,
 * and bf16 has 16. */
static unsigned lost_bits(enum dtype dtype) {
    return dtype == DTYPE_F16 ? 13 : 16;
}

static int is_nan(uint32_t carrier) {
    return (carrier & 0x7fffffffu) > 0x7f800000u;
}

static void keep_nan(enum dtype dtype, const unsigned char *carriers, size_t count,
                     unsigned char *out) {
    const unsigned lost = lost_bits(dtype);
    for (size_t i = 0; i < count; i++) {
        uint32_t carrier;
        memcpy(&carrier, carriers + i * sizeof carrier, sizeof carrier);
        if (!is_nan(carrier) || (carrier & ((1u << lost) - 1)) != 0) continue;
        const uint32_t exponent = dtype == DTYPE_F16 ? 0x7c00u : 0x7f80u;
        const uint16_t bits =
            (uint16_t)((carrier >> 31) << 15 | exponent | (carrier & 0x7fffffu) >> lost);
        memcpy(out + i * sizeof bits, &bits, sizeof bits);
    }
}

/* Writes carrier `index` where the bits are those of a NaN, and returns whether they are. */
static int put_nan(enum dtype dtype, uint16_t bits, unsigned char *out_carriers, size_t index) {
    const unsigned lost = lost_bits(dtype);
    const uint32_t fraction = (dtype == DTYPE_F16 ? bits & 0x3ffu : bits & 0x7fu);
    const uint32_t exponent = dtype == DTYPE_F16 ? 0x7c00u : 0x7f80u;
    if ((bits & exponent) != exponent || fraction == 0) return 0;
    const uint32_t carrier = (uint32_t)(bits >> 15) << 31 | 0x7f800000u | fraction << lost;
    memcpy(out_carriers + index * sizeof carrier, &carrier, sizeof carrier);
    return 1;
}

size_t state_file_bytes(const struct param_table *table, const struct state_layout *layout) {
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    size_t saved = 0;
    while (next_piece(&place, &piece))
        saved += piece.count * (dtype_carrier(piece.dtype) - sizeof(uint16_t));
    return layout->bytes - saved;
}

enum status state_file_make(const struct param_table *table, const struct state_layout *layout,
                            const unsigned char *state, unsigned char *out) {
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    size_t done = 0; /* bytes of the state that are written */
    while (next_piece(&place, &piece)) {
        memcpy(out, state + done, piece.at - done);
        out += piece.at - done;
        const size_t fits = carrier_pack(piece.dtype, state + piece.at, piece.count, out);
        if (fits < piece.count)
            FAIL(STATUS_INTERNAL,
                 "state of %s: number %zu behind byte %zu is none of %s: the operation that wrote "
                 "it did not round",
                 piece.tensor, fits, piece.at, dtype_name(piece.dtype));
        keep_nan(piece.dtype, state + piece.at, piece.count, out);
        out += piece.count * sizeof(uint16_t);
        done = piece.at + piece.count * dtype_carrier(piece.dtype);
    }
    memcpy(out, state + done, layout->bytes - done);
    return STATUS_OK;
}

void state_file_read(const struct param_table *table, const struct state_layout *layout,
                     const unsigned char *bytes, unsigned char *out_state) {
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    size_t done = 0; /* bytes of the state that are there */
    while (next_piece(&place, &piece)) {
        memcpy(out_state + done, bytes, piece.at - done);
        bytes += piece.at - done;
        for (size_t i = 0; i < piece.count; i++, bytes += sizeof(uint16_t)) {
            uint16_t bits;
            memcpy(&bits, bytes, sizeof bits);
            if (!put_nan(piece.dtype, bits, out_state + piece.at, i))
                dtype_set_bits(out_state + piece.at, piece.dtype, i, bits);
        }
        done = piece.at + piece.count * dtype_carrier(piece.dtype);
    }
    memcpy(out_state + done, bytes, layout->bytes - done);
}
