/* SPDX-License-Identifier: Apache-2.0
 * The second pass over an update: keeps, of both updates, the one tensor that differs first, and
 * compares it element by element. Invariant: elements are matched by (sample, side, position,
 * column), never by their place in memory. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CAPTURE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CAPTURE_H

#include "experiment/locate/locate_cells.h"
#include "experiment/locate/signature.h"

/* The elements of one cell. */
struct locate_piece {
    uint32_t index, sample, side;
    uint32_t rows;
    size_t width;
    uint32_t *positions; /* (rows) */
    uint64_t *values;    /* (rows, width) as watch_bits gives them */
    struct locate_piece *next;
};

struct locate_capture {
    struct arena *arena;
    struct locate_key key; /* the tensor that is kept */
    uint32_t level;        /* how many times the update has written the cell before */
    const uint8_t *wanted; /* (wanted_count) by cell index, whether the cell is kept */
    size_t wanted_count;
    struct locate_piece *first, *last;
    struct watch_view view; /* view of the pieces; its data and batch are gone */
};

/* Asks for the cells that A wrote in the same call of the operation as the first that differs. */
TWINSTEP_MUST_USE enum status locate_capture_open(const struct locate_first *first,
                                                  struct arena *arena, struct locate_capture *out);

/* Called by locate_cells.c for every cell of every view: keeps the cell if it is wanted. */
TWINSTEP_MUST_USE enum status locate_capture_see(struct locate_capture *capture,
                                                 const struct watch_view *view,
                                                 const struct watch_cell *cell, uint32_t level);

struct locate_element {
    /* The first element that differs, in the order sample, side, position, row, column. */
    uint32_t sample, side, position, row;
    size_t column;
    uint64_t a, b; /* as watch_bits gives them */
    /* in ulps of `grid`; INT64_MAX: one is a NaN; 0: only the sign of a zero differs */
    int64_t ulp;
    enum dtype grid; /* the dtype of both sides; f64 or f32 where they differ */
    /* Over all elements that both sides have. */
    uint64_t elements, differing;
    int64_t ulp_most;
    uint32_t positions;                     /* number of positions; 0: the tensor has none */
    struct signature_position *by_position; /* (positions) over columns and sequences */
};

/* Compares two captures of one tensor. STATUS_INTERNAL: nothing differs, although the digests did.
 */
TWINSTEP_MUST_USE enum status locate_capture_compare(const struct locate_capture *a,
                                                     const struct locate_capture *b,
                                                     struct arena *arena,
                                                     struct locate_element *out);

/* The value that watch_bits encoded, as a number. */
double locate_value(enum watch_kind kind, uint64_t bits);

#endif
