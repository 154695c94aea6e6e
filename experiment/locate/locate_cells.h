/* SPDX-License-Identifier: Apache-2.0
 * The digests of one watched update: one per tensor and (sample, side), in the order in which the
 * update wrote them; and the first of them in which two updates differ.
 *
 * A cell is named by stage, layer, op, tensor and by its logical address, never by physical rows,
 * micro-batches or calls; so updates of other layouts and splits compare cell by cell. Weight
 * gradients are named by how many samples are in them: those at which both arms stop compare.
 * Keeps digests and no tensor; a capture (locate_capture.h) keeps one.
 * Invariant: equal cells, equal bits of value; a digest reads a value as f64, whatever its dtype.
 */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CELLS_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_CELLS_H

#include "model/watch.h"

#define LOCATE_BUFFER 4096

struct locate_cell {
    uint8_t digest[16];
    uint32_t event; /* 1-based place in the update; 0: not written */
    uint32_t micro;
};

/* The n-th time that an update writes its cells. */
struct locate_level {
    struct locate_cell *cells; /* (capacity) by watch_cell.index */
    uint32_t capacity;
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
    uint32_t event; /* first one */
    struct locate_level *levels;
};

struct locate_capture;

struct locate_cells {
    struct arena *arena;
    struct locate_key *keys; /* (capacity), by first event */
    uint32_t count, capacity;
    uint32_t last; /* key of the last view */
    uint32_t events;
    struct locate_capture *capture; /* NULL: none */
    enum status status;             /* of memory; looked at after the update */
    uint64_t buffer[LOCATE_BUFFER];
};

void locate_cells_open(struct arena *arena, struct locate_cells *out);

/* A watch's `see`; context is a struct locate_cells. */
void locate_cells_see(void *context, const struct watch_view *view);

/* NULL: the update wrote no such tensor. */
const struct locate_key *locate_cells_key(const struct locate_cells *cells,
                                          const struct locate_key *like);

/* NULL: never written. */
const struct locate_cell *locate_cells_at(const struct locate_key *key, uint32_t level,
                                          uint32_t index);

enum locate_structure {
    LOCATE_SAME = 0,
    LOCATE_ONLY_A, /* A writes a tensor, or a part of it, that B does not */
    LOCATE_ONLY_B
};

/* What differs first. */
struct locate_first {
    const struct locate_key *key; /* of A; NULL: no cell that both wrote differs */
    uint32_t level, index, event; /* of A */
    enum locate_structure structure;
    const struct locate_key *only; /* of the side that has it; NULL without `structure` */
    uint32_t only_index;           /* its first cell, or 0 */
    uint32_t only_event;           /* place in A: at it, or right after it for LOCATE_ONLY_B */
};

/* In A's order. */
void locate_cells_first(const struct locate_cells *a, const struct locate_cells *b,
                        struct locate_first *out);

/* Whether what one of them alone writes comes before any value that differs. */
int locate_structure_first(const struct locate_first *first);

/* Whether two passes over one update wrote the same. */
int locate_cells_equal(const struct locate_cells *a, const struct locate_cells *b);

#endif
