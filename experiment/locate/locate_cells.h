/* SPDX-License-Identifier: Apache-2.0
 * Keeps the digests of one watched update, one per tensor and (sample, side), in the order in which
 * the update wrote them, and finds the first in which two updates differ.
 *
 * A cell is named by stage, layer, operation, tensor and by its logical address, never by physical
 * rows, micro-batches or calls; so updates of other layouts and splits compare cell by cell. Weight
 * gradients are named by how many samples are in them: those at which both arms stop are compared.
 * It keeps digests and no tensor; a capture (locate_capture.h) keeps one. Invariant: equal cells
 * have equal bits of value; a digest reads a value as f64, whatever its dtype. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CELLS_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CELLS_H

#include "model/watch.h"

#define LOCATE_BUFFER 4096

struct locate_cell {
    uint8_t digest[16];
    uint32_t event; /* place in the update, counted from 1; 0: not written */
    uint32_t micro;
    uint32_t from; /* watch_cell.from */
};

/* The cells that an update writes for the n-th time; the list of levels begins with the first. */
struct locate_level {
    struct locate_cell *cells; /* (capacity) by watch_cell.index */
    size_t capacity;
    struct locate_level *next;
};

struct locate_key {
    enum watch_stage stage;
    uint32_t layer;
    struct watch_name op, tensor;
    enum watch_axis axis;
    enum watch_kind kind;
    enum dtype dtype;
    uint32_t parameter;
    /* elements of a parameter's tensor, or of a row of any other; 0: they depend on the layout */
    size_t extent;
    uint32_t event; /* the first event that wrote it */
    struct locate_level *levels;
};

struct locate_capture;

struct locate_cells {
    struct arena *arena;
    struct locate_key *keys; /* (capacity) in the order of their first events */
    uint32_t count;
    size_t capacity;
    uint32_t last; /* index of the last view's key */
    uint32_t events;
    struct locate_capture *capture; /* where cells are also kept; NULL: nowhere */
    enum status status;             /* failure of memory; looked at after the update */
    uint64_t buffer[LOCATE_BUFFER];
};

void locate_cells_open(struct arena *arena, struct locate_cells *out);

/* Is a watch's `see`; the context is a struct locate_cells. */
void locate_cells_see(void *context, const struct watch_view *view);

/* The key of the same tensor; NULL: the update wrote no such tensor. */
const struct locate_key *locate_cells_key(const struct locate_cells *cells,
                                          const struct locate_key *like);

/* The cell of a key at a level; NULL: it was never written. */
const struct locate_cell *locate_cells_at(const struct locate_key *key, uint32_t level,
                                          uint32_t index);

enum locate_structure {
    LOCATE_SAME = 0,
    LOCATE_ONLY_A, /* A writes a tensor, or a part of one, that B does not */
    LOCATE_ONLY_B,
    LOCATE_SHAPE /* both write a tensor, which has another shape in each */
};

/* The first value that differs, and the first cell that only one side has, or tensor whose shapes
 * differ, of which no values are compared. */
struct locate_first {
    const struct locate_key *key; /* key of A; NULL: no cell that both wrote differs */
    uint32_t level, index, event; /* level, cell and event of it in A */
    enum locate_structure structure;
    const struct locate_key *only;  /* key of the side that has it; NULL without `structure` */
    const struct locate_key *other; /* of LOCATE_SHAPE: the key of B; `only` is that of A */
    uint32_t only_index;            /* index of its first cell, or 0 */
    /* place in A: its own, or, for LOCATE_ONLY_B, right behind which it is missing */
    uint32_t only_event;
};

/* Finds the first difference in A's order. */
void locate_cells_first(const struct locate_cells *a, const struct locate_cells *b,
                        struct locate_first *out);

/* Whether what only one of them writes comes before any value that differs. */
int locate_structure_first(const struct locate_first *first);

/* Whether two passes over one update wrote the same cells. */
int locate_cells_equal(const struct locate_cells *a, const struct locate_cells *b);

#endif
