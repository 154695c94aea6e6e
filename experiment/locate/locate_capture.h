/* SPDX-License-Identifier: Apache-2.0
 * The second pass: of both updates the one tensor that differs first is kept, and compared element
 * by element.
 *
 * Invariant: elements are matched by (sample, side, position, column), never by place in memory. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CAPTURE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CAPTURE_H

#include "experiment/locate/locate_cells.h"

/* One cell's elements. */
struct locate_piece {
    uint32_t index, sample, side;
    uint32_t rows;
    size_t width;
    uint32_t *positions; /* (rows) */
    uint64_t *values;    /* (rows, width), as watch_bits */
    struct locate_piece *next;
};

struct locate_capture {
    struct arena *arena;
    struct locate_key key; /* which tensor */
    uint32_t level;        /* written for the which-th time */
    const uint8_t *wanted; /* (wanted_count) by cell index */
    uint32_t wanted_count;
    struct locate_piece *first, *last;
    struct watch_view view; /* of the pieces; its data and batch are gone */
};

/* Cells that A wrote in the same op call as the first that differs. */
TWINSTEP_MUST_USE enum status locate_capture_open(const struct locate_first *first,
                                                  struct arena *arena, struct locate_capture *out);

/* locate_cells.c: keeps the cell, if it is wanted. */
TWINSTEP_MUST_USE enum status locate_capture_see(struct locate_capture *capture,
                                                 const struct watch_view *view,
                                                 const struct watch_cell *cell, uint32_t level);

/* How far apart two captures are at one position, over columns and sequences. */
struct locate_position {
    uint64_t elements, differing;
    double squares;  /* of A's values */
    double distance; /* sum of (a - b)^2 */
};

struct locate_element {
    /* the first that differs, by sample, side, position, column */
    uint32_t sample, side, position, row;
    size_t column;
    uint64_t a, b;   /* as watch_bits */
    int64_t ulp;     /* of the grid; INT64_MAX: a NaN; 0: the sign of a zero */
    enum dtype grid; /* both sides' dtype; f64 or f32 where they differ */
    /* of all elements that both sides have */
    uint64_t elements, differing;
    int64_t ulp_most;
    uint32_t positions; /* 0: the tensor has none */
    struct locate_position *by_position;
};

/* STATUS_INTERNAL when nothing differs. */
TWINSTEP_MUST_USE enum status locate_capture_compare(const struct locate_capture *a,
                                                     const struct locate_capture *b,
                                                     struct arena *arena,
                                                     struct locate_element *out);

/* The value of watch_bits as a number. */
double locate_value(enum watch_kind kind, uint64_t bits);

#endif
