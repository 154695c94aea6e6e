/* SPDX-License-Identifier: Apache-2.0
 * Keeps pieces in the order in which they come, and compares two captures in canonical order.
 * Values are kept as bits, so that NaN and signs of zero are compared as they are. */
#include "experiment/locate/locate_capture.h"

#include <string.h>

#include "kernels/distance.h"

enum status locate_capture_open(const struct locate_first *first, struct arena *arena,
                                struct locate_capture *out) {
    uint8_t *wanted;
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->key = *first->key;
    out->level = first->level;
    const struct locate_level *level = first->key->levels;
    for (uint32_t i = 0; i < first->level; i++)
        level = level->next;
    TRY(arena_take(arena, level->capacity, 1, "cells of a tensor", &wanted));
    for (uint32_t i = 0; i < level->capacity; i++)
        wanted[i] = level->cells[i].event == first->event;
    out->wanted = wanted;
    out->wanted_count = level->capacity;
    return STATUS_OK;
}

static int wants(const struct locate_capture *capture, const struct watch_view *view,
                 const struct watch_cell *cell, uint32_t level) {
    const struct locate_key *key = &capture->key;
    return level == capture->level && cell->index < capture->wanted_count &&
           capture->wanted[cell->index] && key->stage == view->stage && key->layer == view->layer &&
           watch_name_equal(key->op, view->op) && watch_name_equal(key->tensor, view->tensor);
}

enum status locate_capture_see(struct locate_capture *capture, const struct watch_view *view,
                               const struct watch_cell *cell, uint32_t level) {
    struct locate_piece *piece;
    if (!wants(capture, view, cell, level)) return STATUS_OK;
    TRY(arena_take(capture->arena, 1, sizeof *piece, "elements of a tensor", &piece));
    *piece = (struct locate_piece){.index = cell->index,
                                   .sample = cell->sample,
                                   .side = cell->side,
                                   .rows = cell->rows,
                                   .width = view->width};
    TRY(arena_take(capture->arena, cell->rows, sizeof *piece->positions, "elements of a tensor",
                   &piece->positions));
    TRY(arena_take(capture->arena, cell->rows * view->width, sizeof *piece->values,
                   "elements of a tensor", &piece->values));
    for (uint32_t r = 0; r < cell->rows; r++) {
        const void *row = watch_row(view, cell, r);
        piece->positions[r] = watch_position(view, cell, r);
        for (size_t c = 0; c < view->width; c++)
            piece->values[r * view->width + c] =
                watch_live(view, piece->positions[r], c) ? watch_bits(view, row, c) : 0;
    }
    if (capture->last == NULL)
        capture->first = piece;
    else
        capture->last->next = piece;
    capture->last = piece;
    capture->view = *view;
    capture->view.data = NULL;
    capture->view.batch = NULL;
    return STATUS_OK;
}

double locate_value(enum watch_kind kind, uint64_t bits) {
    double value;
    if (kind != WATCH_REALS) return (double)bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The grid of both sides: where the dtypes differ, f32 or f64 holds what both hold. */
static enum dtype grid_of(enum dtype a, enum dtype b) {
    if (a == b) return a;
    return a == DTYPE_F64 || b == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static int64_t ulp_of(enum watch_kind kind, enum dtype grid, uint64_t a, uint64_t b) {
    const double wide[2] = {locate_value(kind, a), locate_value(kind, b)};
    if (kind != WATCH_REALS) {
        const uint64_t distance = a > b ? a - b : b - a;
        return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
    }
    if (grid == DTYPE_F64) return distance_ulp(&wide[0], &wide[1], grid, 1);
    const float narrow[2] = {(float)wide[0], (float)wide[1]};
    return distance_ulp(&narrow[0], &narrow[1], grid, 1);
}

struct comparing {
    const struct locate_capture *a;
    struct locate_element *out;
    int found;
};

/* Whether an element comes before the one found so far, in canonical order. */
static int is_earlier(const struct locate_element *out, const struct locate_piece *piece,
                      uint32_t row, size_t column) {
    const uint64_t old = (uint64_t)out->sample * 2 + out->side;
    const uint64_t now = (uint64_t)piece->sample * 2 + piece->side;
    if (now != old) return now < old;
    if (piece->positions[row] != out->position) return piece->positions[row] < out->position;
    if (row != out->row) return row < out->row;
    return column < out->column;
}

static void add_element(struct comparing *comparing, const struct locate_piece *piece, uint32_t row,
                        size_t column, uint64_t a, uint64_t b) {
    struct locate_element *out = comparing->out;
    const enum watch_kind kind = comparing->a->view.kind;
    struct signature_position *position =
        out->positions == 0 ? NULL : &out->by_position[piece->positions[row]];
    const double x = locate_value(kind, a), y = locate_value(kind, b);
    out->elements++;
    if (position != NULL) position->squares += x * x;
    if (a == b) return;
    const int64_t ulp = ulp_of(kind, out->grid, a, b);
    if (position != NULL) {
        position->differing++;
        position->distance += (x - y) * (x - y);
    }
    out->differing++;
    if (ulp > out->ulp_most) out->ulp_most = ulp;
    if (comparing->found && !is_earlier(out, piece, row, column)) return;
    comparing->found = 1;
    out->sample = piece->sample;
    out->side = piece->side;
    out->position = piece->positions[row];
    out->row = row;
    out->column = column;
    out->a = a;
    out->b = b;
    out->ulp = ulp;
}

/* The column of `to` that names what `column` names in `from`. They differ where rows have other
 * widths: in heads of keys the stride is the longest sequence. */
static size_t column_in(const struct watch_view *from, const struct watch_view *to, size_t column) {
    if (from->inner == to->inner || from->inner == 0) return column;
    return column / from->inner * to->inner + column % from->inner;
}

static void compare_piece(struct comparing *comparing, const struct locate_piece *a,
                          const struct locate_piece *b, const struct locate_capture *other) {
    const struct watch_view *view = &comparing->a->view;
    const uint32_t rows = a->rows < b->rows ? a->rows : b->rows;
    for (uint32_t r = 0; r < rows; r++)
        for (size_t c = 0; c < a->width; c++) {
            const size_t d = column_in(view, &other->view, c);
            if (!watch_live(view, a->positions[r], c) || d >= b->width) continue;
            add_element(comparing, a, r, c, a->values[r * a->width + c],
                        b->values[r * b->width + d]);
        }
}

static uint32_t positions_of(const struct locate_capture *capture) {
    uint32_t positions = 0;
    if (capture->view.axis == WATCH_WHOLE || capture->view.axis == WATCH_SAMPLES ||
        capture->view.axis == WATCH_SEQUENCES)
        return 0;
    for (const struct locate_piece *piece = capture->first; piece != NULL; piece = piece->next)
        for (uint32_t r = 0; r < piece->rows; r++)
            if (piece->positions[r] >= positions) positions = piece->positions[r] + 1;
    return positions;
}

enum status locate_capture_compare(const struct locate_capture *a, const struct locate_capture *b,
                                   struct arena *arena, struct locate_element *out) {
    struct comparing comparing = {a, out, 0};
    memset(out, 0, sizeof *out);
    out->grid = grid_of(a->view.dtype, b->view.dtype);
    out->positions = positions_of(a);
    TRY(arena_take(arena, out->positions, sizeof *out->by_position, "positions",
                   &out->by_position));
    for (const struct locate_piece *x = a->first; x != NULL; x = x->next)
        for (const struct locate_piece *y = b->first; y != NULL; y = y->next)
            if (x->index == y->index) compare_piece(&comparing, x, y, b);
    if (!comparing.found)
        FAIL(STATUS_INTERNAL, "%s, %s: digests differ and no element does", a->key.op.text,
             a->key.tensor.text);
    return STATUS_OK;
}
