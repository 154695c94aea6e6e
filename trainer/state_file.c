/* SPDX-License-Identifier: Apache-2.0
 * Walks the narrow numbers of a state in the order in which trainer/state.c places them, so that
 * what lies between two pieces can be copied as one. The form is that of a state whose numbers all
 * lie in carriers: where memory has two bytes, only the zeros behind a piece, up to the next
 * multiple of 64, are other ones. */
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

/* Numbers that lie side by side and are narrow in files. */
struct piece {
    const char *tensor;
    size_t at, count; /* at: the offset into the state */
    size_t carried;   /* the offset where all numbers lie in carriers */
    struct form form; /* in the state */
};

/* Returns 0 where the row has no numbers of the kind that files have in two bytes. */
static int piece_of(const struct place *place, struct piece *out) {
    const struct state_layout *const layout = place->layout;
    const struct param_row *const row = &place->table->rows[place->row];
    const struct state_tensor *const tensor = &layout->tensor[place->row];
    const struct state_tensor *const carried = &state_carried(layout)->tensor[place->row];
    *out = (struct piece){row->name, tensor->param, row->count, carried->param,
                          form_carried(row->dtype)};
    if (row->tied_to >= 0 || (place->kind != KIND_PARAM && !row->trainable)) return 0;
    if (place->kind == KIND_GRADIENT) {
        out->at = tensor->gradient;
        out->carried = carried->gradient;
        out->form = form_carried(layout->gradient_dtype);
    } else if (place->kind >= KIND_SLOT) {
        out->at = tensor->slot[place->kind - KIND_SLOT];
        out->carried = carried->slot[place->kind - KIND_SLOT];
        out->count = tensor->slot_count[place->kind - KIND_SLOT];
        out->form = layout->slots;
    }
    return out->count > 0 && dtype_width(out->form.dtype) == sizeof(uint16_t);
}

/* A copy has the parts of struct state_replicas one behind the other. */
static size_t in_copy(const struct place *place, const struct state_replicas *replicas, size_t at) {
    const int part = place->kind >= KIND_SLOT;
    const size_t start = replicas->first + (place->copy - 1) * replicas->bytes +
                         (part ? replicas->piece[0].bytes : 0);
    return start + (at - replicas->piece[part].at);
}

/* Moves on to the next narrow numbers. Returns 0 where there are none. */
static int next_piece(struct place *place, struct piece *out) {
    const struct state_layout *const layout = place->layout;
    for (; place->copy <= layout->replicas.copies; place->copy++, place->kind = 0) {
        for (; place->kind < KINDS; place->kind++, place->row = 0) {
            for (; place->row < place->table->count; place->row++) {
                if (!piece_of(place, out)) continue;
                if (place->copy > 0) {
                    out->at = in_copy(place, &layout->replicas, out->at);
                    out->carried = in_copy(place, &state_carried(layout)->replicas, out->carried);
                }
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

/* Where the walk stands behind a piece, in the state and in one whose numbers lie in carriers.
 * Behind a piece in two bytes the zeros up to the next multiple of 64 have been passed, which are
 * not equally many in both. */
struct behind {
    size_t state, carried;
    size_t state_zeros, carried_zeros; /* that were passed */
};

static size_t padding(size_t at) {
    return (0 - at) % 64;
}

static struct behind behind_piece(const struct piece *piece) {
    struct behind out = {.state = piece->at + piece->count * piece->form.width,
                         .carried =
                             piece->carried + piece->count * dtype_carrier(piece->form.dtype)};
    if (!form_is_narrow(piece->form)) return out;
    out.state_zeros = padding(out.state);
    out.carried_zeros = padding(out.carried);
    out.state += out.state_zeros;
    out.carried += out.carried_zeros;
    return out;
}

size_t state_file_bytes(const struct param_table *table, const struct state_layout *layout) {
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    size_t saved = 0;
    while (next_piece(&place, &piece))
        saved += piece.count * (dtype_carrier(piece.form.dtype) - sizeof(uint16_t));
    return state_carried(layout)->bytes - saved;
}

static enum status make_piece(const struct piece *piece, const unsigned char *state,
                              unsigned char *out) {
    const enum dtype dtype = piece->form.dtype;
    if (form_is_narrow(piece->form)) {
        memcpy(out, state + piece->at, piece->count * sizeof(uint16_t));
        return STATUS_OK;
    }
    const size_t fits = carrier_pack(dtype, state + piece->at, piece->count, out);
    if (fits < piece->count)
        FAIL(STATUS_INTERNAL,
             "state of %s: number %zu behind byte %zu is none of %s: the operation that wrote it "
             "did not round",
             piece->tensor, fits, piece->at, dtype_name(dtype));
    keep_nan(dtype, state + piece->at, piece->count, out);
    return STATUS_OK;
}

/* Copies what lies between `from` and an offset of the carried layout. Returns its end in the file.
 */
static unsigned char *make_between(const unsigned char *state, struct behind from, size_t carried,
                                   unsigned char *out) {
    memset(out, 0, from.carried_zeros);
    memcpy(out + from.carried_zeros, state + from.state, carried - from.carried);
    return out + from.carried_zeros + (carried - from.carried);
}

enum status state_file_make(const struct param_table *table, const struct state_layout *layout,
                            const unsigned char *state, unsigned char *out) {
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    struct behind done = {.state = 0};
    while (next_piece(&place, &piece)) {
        out = make_between(state, done, piece.carried, out);
        TRY(make_piece(&piece, state, out));
        out += piece.count * sizeof(uint16_t);
        done = behind_piece(&piece);
    }
    (void)make_between(state, done, state_carried(layout)->bytes, out);
    return STATUS_OK;
}

static void read_piece(const struct piece *piece, const unsigned char *bytes,
                       unsigned char *out_state) {
    if (form_is_narrow(piece->form)) {
        memcpy(out_state + piece->at, bytes, piece->count * sizeof(uint16_t));
        return;
    }
    for (size_t i = 0; i < piece->count; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        if (!put_nan(piece->form.dtype, bits, out_state + piece->at, i))
            dtype_set_bits(out_state + piece->at, piece->form.dtype, i, bits);
    }
}

static const unsigned char *read_between(const unsigned char *bytes, struct behind from,
                                         size_t carried, unsigned char *out_state) {
    memset(out_state + from.state - from.state_zeros, 0, from.state_zeros);
    memcpy(out_state + from.state, bytes + from.carried_zeros, carried - from.carried);
    return bytes + from.carried_zeros + (carried - from.carried);
}

void state_file_read(const struct param_table *table, const struct state_layout *layout,
                     const unsigned char *bytes, unsigned char *out_state) {
    const size_t carried = state_carried(layout)->bytes;
    struct place place = {.table = table, .layout = layout};
    struct piece piece;
    struct behind done = {.state = 0};
    while (next_piece(&place, &piece)) {
        bytes = read_between(bytes, done, piece.carried, out_state);
        read_piece(&piece, bytes, out_state);
        bytes += piece.count * sizeof(uint16_t);
        done = behind_piece(&piece);
    }
    (void)read_between(bytes, done, carried, out_state);
    const size_t end = done.state + (carried - done.carried);
    memset(out_state + end, 0, layout->bytes - end);
}
