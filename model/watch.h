/* SPDX-License-Identifier: Apache-2.0
 * A watch on a running update: whoever hangs one into a model sees what each op and each phase
 * wrote, in the order in which they wrote it. Where no watch hangs, an op call costs one test of a
 * pointer.
 *
 * Knows how a tensor is addressed (sample, side, position, column) and nothing of what is done with
 * it: locate.c digests, a test may disturb. What is handed out is the training's own memory.
 * Invariant: a watch that writes to nothing moves no bit. */
#ifndef TWINSTEP_MODEL_WATCH_H
#define TWINSTEP_MODEL_WATCH_H

#include "model/model_dropout.h"

/* Where in an update; the order is that of the report where nothing else orders. */
enum watch_stage {
    WATCH_START = 0, /* parameters, masters, slots and tables before the update */
    WATCH_PHASE,     /* WATCH_PHASE + enum phase */
    WATCH_REFERENCE = WATCH_PHASE + PHASE_TOTAL, /* forward of the reference */
    WATCH_END,                                   /* ledger and loss of the update */
    WATCH_STAGES
};

/* What the rows of a tensor stand for. */
enum watch_axis {
    WATCH_TOKENS = 0, /* physical rows: sequence.row + position */
    WATCH_LISTED,     /* tokens in call order, sequence after sequence */
    WATCH_LABELS,     /* labels in call order */
    WATCH_SEQUENCES,  /* one row per sequence */
    WATCH_SAMPLES,    /* one row per sample of the micro-batch */
    WATCH_POSITIONS,  /* a table by position */
    WATCH_WHOLE       /* a parameter's shape, or a few scalars */
};

/* What an element is. */
enum watch_kind {
    WATCH_REALS = 0, /* the carrier of `dtype` */
    WATCH_IDS,       /* uint32_t */
    WATCH_WORDS,     /* uint64_t */
    WATCH_MASK       /* uint8_t; a copy, the mask itself is a function of its address */
};

/* How columns are named. */
enum watch_columns {
    WATCH_CHANNELS = 0,
    WATCH_HEADS, /* head, channel: `inner` channels per head */
    WATCH_KEYS,  /* head, key: `inner` keys per head, those after the row's position are none */
    WATCH_VOCABULARY, /* entry of the vocabulary */
    WATCH_PAIRS,      /* frequency of the rotary table */
    WATCH_MATRIX,     /* parameter: row, column */
    WATCH_SCALARS     /* numbered */
};

struct watch_view {
    uint64_t update; /* 1-based */
    enum watch_stage stage;
    uint32_t micro;          /* micro-batch, 1-based; 0: once per update */
    uint32_t layer;          /* PASS_NO_LAYER outside layers */
    const char *op, *tensor; /* static, or a parameter's name */
    enum watch_axis axis;
    enum watch_kind kind;
    enum dtype dtype; /* of WATCH_REALS */
    enum watch_columns columns;
    uint32_t inner;
    void *data;
    size_t count;              /* WATCH_WHOLE: elements; WATCH_POSITIONS: rows */
    size_t width;              /* elements of a row; of WATCH_WHOLE: of its last axis */
    const struct batch *batch; /* by token, label, sequence or sample */
    uint32_t first_sequence, sequence_count; /* of the call */
    uint32_t covered; /* WATCH_WHOLE: samples of the update that are in it; 0: not a sum of them */
    uint32_t parameter; /* row of the parameter table, or WATCH_NO_PARAMETER */
};
#define WATCH_NO_PARAMETER UINT32_MAX

struct watch {
    void (*see)(void *context, const struct watch_view *view);
    void *context;
    uint64_t update;        /* that runs */
    enum watch_stage stage; /* that runs */
    uint32_t micro;
    struct arena arena; /* scratch of masks */
    unsigned char *mask;
    size_t mask_bytes;
    enum status status; /* of the scratch; looked at after the update */
};

/* Columns of a token's row. */
struct watch_shape {
    uint32_t width, inner;
    enum watch_columns columns;
};

#define WATCH_HIDDEN(pass) ((struct watch_shape){(pass)->model->C, 1, WATCH_CHANNELS})
#define WATCH_LOGITS(pass) ((struct watch_shape){(pass)->model->V, 1, WATCH_VOCABULARY})
#define WATCH_ONE ((struct watch_shape){1, 1, WATCH_SCALARS})

/* The model's ops, called where a watch hangs. */
void watch_see_tokens(const struct pass *pass, uint32_t layer, const char *op, const char *tensor,
                      void *data, struct watch_shape shape);
void watch_see_role(const struct pass *pass, uint32_t layer, enum param_role role, int backward,
                    void *data, uint32_t width);
void watch_see_labels(const struct pass *pass, const char *op, const char *tensor, void *data,
                      enum dtype dtype, struct watch_shape shape);
void watch_see_weight(const struct pass *pass, uint32_t layer, enum param_role role, void *acc,
                      uint32_t use);
void watch_see_mask(const struct pass *pass, enum dropout_place place, uint32_t layer,
                    struct dropout *dropout);

/* Name of an op by its role in the family, and by its place among dropouts. */
const char *watch_role(const struct model *model, enum param_role role);
extern const char *const watch_places[DROP_PLACES];

static inline void watch_tokens(const struct pass *pass, uint32_t layer, const char *op,
                                const char *tensor, void *data, uint32_t width) {
    if (pass->model->watch == NULL) return;
    watch_see_tokens(pass, layer, op, tensor, data, (struct watch_shape){width, 1, WATCH_CHANNELS});
}

/* Label rows of the call, as head_block and head_input have them. */
static inline void watch_labels(const struct pass *pass, const char *op, const char *tensor,
                                void *data, enum dtype dtype, struct watch_shape shape) {
    if (pass->model->watch == NULL) return;
    watch_see_labels(pass, op, tensor, data, dtype, shape);
}

static inline void watch_heads(const struct pass *pass, uint32_t layer, const char *op,
                               const char *tensor, void *data, uint32_t width) {
    if (pass->model->watch == NULL) return;
    watch_see_tokens(pass, layer, op, tensor, data,
                     (struct watch_shape){width, pass->model->D, WATCH_HEADS});
}

/* What a linear layer, a norm or the embedding wrote, or the gradient of its input. */
static inline void watch_role_output(const struct pass *pass, uint32_t layer, enum param_role role,
                                     int backward, void *data, uint32_t width) {
    if (pass->model->watch == NULL) return;
    watch_see_role(pass, layer, role, backward, data, width);
}

/* Walks the cells of a view: one per sequence, sample or position, or the one piece. A cell has
 * rows; a row has `view.width` elements, of which watch_live() tells those that count. */
struct watch_cell {
    uint32_t index; /* of the cell, canonical: sample * 2 + side, position, or samples covered */
    uint32_t sample, side;
    uint32_t rows;
    uint32_t sequence; /* in view.batch */
};

uint32_t watch_cells(const struct watch_view *view);
struct watch_cell watch_cell_of(const struct watch_view *view, uint32_t number);
/* Row `row` of a cell, and the position that it stands for. */
const void *watch_row(const struct watch_view *view, const struct watch_cell *cell, uint32_t row);
uint32_t watch_position(const struct watch_view *view, const struct watch_cell *cell, uint32_t row);
/* Whether column `column` of a row at `position` means anything. */
int watch_live(const struct watch_view *view, uint32_t position, size_t column);
/* Element as 64 bits: a real as f64 (exact, NaN as one pattern), a number as it is. */
uint64_t watch_bits(const struct watch_view *view, const void *row, size_t column);
size_t watch_element(const struct watch_view *view); /* bytes */

#endif
