/* SPDX-License-Identifier: Apache-2.0
 * A watch on a running update: whoever hangs one into a model sees what each op and each phase
 * wrote, in the order in which they wrote it. Where none hangs, an op call costs one test of a
 * pointer.
 *
 * This knows how a tensor is addressed (sample, side, position, column) and nothing of what is done
 * with it: experiment/locate makes digests, a test may disturb. What is handed out is the
 * training's own memory, or, of a tensor that only a backend's ops touch or whose numbers lie in
 * two bytes, a copy that becomes the tensor when whoever sees it is done. Invariant: a watch that
 * writes to nothing moves no bit. */
#ifndef TWINSTEP_MODEL_WATCH_H
#define TWINSTEP_MODEL_WATCH_H

#include "model/model_dropout.h"
#include "model/watch_label.h"

/* Where in an update something was written. The numbers are the order of a report where nothing
 * else gives one. */
enum watch_stage {
    WATCH_START = 0, /* parameters, masters, slots and tables before the update */
    WATCH_PHASE,     /* WATCH_PHASE + enum phase */
    WATCH_REFERENCE = WATCH_PHASE + PHASE_TOTAL, /* the forward of the reference */
    WATCH_END,                                   /* the ledger and the loss of the update */
    WATCH_STAGES
};

/* What the rows of a tensor stand for. */
enum watch_axis {
    WATCH_TOKENS = 0, /* physical rows: sequence.row + position */
    WATCH_LISTED,     /* tokens in call order, sequence after sequence */
    WATCH_LABELS,     /* labels in call order */
    WATCH_SEQUENCES,  /* one row per sequence */
    WATCH_SAMPLES,    /* one row per sample of the micro-batch */
    WATCH_POSITIONS,  /* one row per position, as in a table */
    WATCH_WHOLE       /* the rows of a parameter, or a few scalars */
};

/* What an element is. */
enum watch_kind {
    WATCH_REALS = 0, /* the carrier of `dtype` */
    WATCH_IDS,       /* uint32_t */
    WATCH_WORDS,     /* uint64_t */
    WATCH_MASK       /* uint8_t; a copy, because the mask itself is a function of its address */
};

/* How columns are named. */
enum watch_columns {
    WATCH_CHANNELS = 0,
    WATCH_HEADS, /* head, channel: `inner` channels per head */
    /* head, key: `inner` keys per head; keys behind the row's position do not exist */
    WATCH_KEYS,
    WATCH_VOCABULARY, /* entry of the vocabulary */
    WATCH_PAIRS,      /* a frequency of the rotary table */
    WATCH_MATRIX,     /* row and column of a parameter */
    WATCH_SCALARS     /* just a number */
};

struct watch_view {
    uint64_t update; /* 1-based */
    enum watch_stage stage;
    uint32_t micro; /* the micro-batch, 1-based; 0: this happens once per update */
    uint32_t layer; /* PASS_NO_LAYER outside layers */
    struct watch_name op, tensor;
    enum watch_axis axis;
    enum watch_kind kind;
    enum dtype dtype; /* the dtype of WATCH_REALS */
    int narrow; /* 1: `data` are numbers of the dtype in two bytes (base/form.h); who sees the view
                   is handed their carriers */
    enum watch_columns columns;
    uint32_t inner;
    void *data;
    size_t count;              /* elements of WATCH_WHOLE, or rows of WATCH_POSITIONS */
    size_t width;              /* elements of a row; for WATCH_WHOLE those of its last axis */
    const struct batch *batch; /* for axes by token, label, sequence or sample */
    uint32_t first_sequence, sequence_count; /* the sequences of the call */
    /* WATCH_WHOLE: how many samples of the update are summed in it; 0: it is no sum of samples */
    uint32_t covered;
    uint32_t from;      /* WATCH_WHOLE: the first sample of the update that is summed in it */
    uint32_t parameter; /* its row of the parameter table, or WATCH_NO_PARAMETER */
};
#define WATCH_NO_PARAMETER UINT32_MAX

struct watch {
    void (*see)(void *context, const struct watch_view *view);
    /* Says which views `see` is called with, before anything is copied for it: all but `data` may
     * be looked at. NULL: all views. */
    int (*wants)(void *context, const struct watch_view *view);
    void *context;
    int only_reads;         /* `see` writes nothing, so a copy need not become the tensor */
    uint64_t update;        /* the update that runs, 1-based */
    enum watch_stage stage; /* the stage that runs */
    uint32_t micro;
    struct arena arena; /* holds copies of masks */
    unsigned char *mask;
    size_t mask_bytes;
    enum status status; /* an error met while watching; it is looked at after the update */
};

/* The columns of a row. */
struct watch_shape {
    uint32_t width, inner;
    enum watch_columns columns;
};

#define WATCH_HIDDEN(pass) ((struct watch_shape){(pass)->model->C, 1, WATCH_CHANNELS})
#define WATCH_LOGITS(pass) ((struct watch_shape){(pass)->model->V, 1, WATCH_VOCABULARY})
#define WATCH_ONE ((struct watch_shape){1, 1, WATCH_SCALARS})

/* Shows a view to a watch that wants it: for whoever hung another one before it. */
void watch_hand_on(const struct watch *watch, const struct watch_view *view);

/* A view of one whole tensor or of a few scalars outside layers, at the watch's place in the
 * update. The caller fills in what is different. */
struct watch_view watch_view_of(const struct watch *watch, struct watch_name op,
                                struct watch_name tensor, void *data);
/* Shows a view that has elements. Where an op has failed there is nothing to show, and its error is
 * kept. */
void watch_show(const struct model *model, const struct watch_view *view);
/* The same for what ops have written, which the host may not be able to touch. */
void watch_show_tensor(const struct model *model, const struct watch_view *view);

/* What the model's ops call when they have written something; nothing happens without a watch. */
void watch_tokens(const struct pass *pass, uint32_t layer, enum watch_label op,
                  enum watch_label tensor, void *data, uint32_t width);
/* The same for rows of heads: `width` is that of all of them. */
void watch_heads(const struct pass *pass, uint32_t layer, enum watch_label op,
                 enum watch_label tensor, void *data, uint32_t width);
/* The label rows of the call, as head_block and head_input have them. */
void watch_labels(const struct pass *pass, enum watch_label op, enum watch_label tensor, void *data,
                  struct form form, struct watch_shape shape);
/* What a linear layer, a norm or the embedding wrote, or the gradient of its input. A pass over
 * gathered label rows, which has no list of rows, shows them by watch_labels instead. */
void watch_role_output(const struct pass *pass, uint32_t layer, enum param_role role, int backward,
                       void *data, uint32_t width);
/* The accumulator of a weight after one use of it was added; `from` is the first sample of the
 * update whose terms it holds. */
void watch_weight(const struct pass *pass, uint32_t layer, enum param_role role, void *acc,
                  uint32_t use, uint32_t from);
/* The mask of a place, and what drew it, which the watch may change. */
void watch_mask(const struct pass *pass, enum dropout_place place, uint32_t layer,
                struct dropout *dropout);

/* The name of an op by its role in the family, and by its place among dropouts. */
enum watch_label watch_role(const struct model *model, enum param_role role);
extern const enum watch_label watch_places[DROP_PLACES];

/* A cell of a view is a sequence, sample or position, or the one piece of WATCH_WHOLE. It has rows
 * of `view.width` elements, and watch_live() says which of them count. */
struct watch_cell {
    /* the cell's canonical number: sample * 2 + side, position, or samples covered */
    uint32_t index;
    uint32_t sample, side;
    uint32_t rows;
    uint32_t sequence; /* the sequence in view.batch */
    uint32_t from;     /* as in the view; cells of sums that begin elsewhere are no partners */
};

uint32_t watch_cells(const struct watch_view *view);
struct watch_cell watch_cell_of(const struct watch_view *view, uint32_t number);
/* Row `row` of a cell, and the position that it stands for. */
const void *watch_row(const struct watch_view *view, const struct watch_cell *cell, uint32_t row);
uint32_t watch_position(const struct watch_view *view, const struct watch_cell *cell, uint32_t row);
/* Whether column `column` of a row at `position` means anything. */
int watch_live(const struct watch_view *view, uint32_t position, size_t column);
/* An element as 64 bits: a real as f64 (exact; every NaN as one pattern), a number as it is. */
uint64_t watch_bits(const struct watch_view *view, const void *row, size_t column);
/* Writes the bits of elements of a row at `position` that mean something, in their order from
 * *column (below view.width) on: some of them, at most `room`. Returns how many, and leaves in
 * *column where the next call goes on; with view.width nothing is left. */
size_t watch_live_bits(const struct watch_view *view, const void *row, uint32_t position,
                       size_t *column, size_t room, uint64_t *out);
size_t watch_element(const struct watch_view *view); /* bytes */

#endif
