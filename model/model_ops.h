/* SPDX-License-Identifier: Apache-2.0
 * How forward.c and backward.c address an op: which rows, which weight, which site and layer.
 * Private to the model. It holds no arithmetic. Invariant: whatever leads from a role to an op is
 * here, so that forward and backward cannot disagree about it. */
#ifndef TWINSTEP_MODEL_MODEL_OPS_H
#define TWINSTEP_MODEL_MODEL_OPS_H

#include "data/batch.h"
#include "model/model.h"

#define PASS_NO_LAYER UINT32_MAX

/* One forward call of a batch, or its backward. */
struct pass {
    struct model *model;
    const struct model_weights *weights;
    const struct batch *batch;
    const struct batch_call *part;
    struct row_list rows; /* the call's tokens without padding, in call order */
    uint32_t side;
};

struct pass pass_open(struct model *model, const struct model_weights *weights,
                      const struct batch *batch, uint32_t call, uint32_t side_offset);

/* The op_call of a site; `layer` is the layer's index or PASS_NO_LAYER. */
struct op_call pass_call(const struct pass *pass, enum op_site site, uint32_t layer);

const void *pass_weight(const struct pass *pass, enum param_role role, uint32_t layer);

/* Gives the output and input width of a matrix role; of a norm role the width is out_n. */
void pass_widths(const struct model *model, enum param_role role, uint32_t *out_n, uint32_t *out_k);
enum op_site pass_site(enum param_role role);

/* The parts of a sum (law 23) whose terms run along the input, or the output, of a matrix of this
 * role: numerics.cuts where tensor parallelism splits that width, else 1. The loss sums along the
 * head's output. */
uint32_t pass_cuts_of_input(const struct model *model, enum param_role role);
uint32_t pass_cuts_of_output(const struct model *model, enum param_role role);

/* The parts of a norm's sums over a row. */
uint32_t pass_cuts_of_norm(const struct model *model, enum param_role role);

/* Numbers the heads of the batch's rows for pass_norm_rows(), in call order (`canonical` 0) or in
 * canonical order. No op that reads the numbers of before may still be queued. */
void pass_list_heads(struct model *model, const struct batch *batch, int canonical);

/* The rows that a norm of this role visits, and their width: rows of the pass, or their heads. With
 * `canonical`: all rows of the batch in that order. */
struct row_list pass_norm_rows(const struct pass *pass, enum param_role role, int canonical,
                               uint32_t *out_c);

/* How many ranks hold the weight of a norm apart: 1 where there is one weight. */
uint32_t pass_ranks(const struct model *model, enum param_role role);

/* Those rows of `all` (pass_norm_rows) in which a rank applies the norm, in the order of `all`. The
 * next call overwrites the list. */
struct row_list pass_rows_of_rank(const struct pass *pass, enum param_role role, uint32_t rank,
                                  struct row_list all);

/* The weight of a norm on a rank; and the sums of its gradient on a rank other than 0. */
const void *pass_weight_of_rank(const struct pass *pass, enum param_role role, uint32_t layer,
                                uint32_t rank);
void *pass_sums_of_rank(const struct pass *pass, enum param_role role, uint32_t layer,
                        uint32_t rank);

/* Where tensor-parallel ranks have samples of their own (batch.fed_ranks), a matrix of one of the
 * dealt widths has of each rank the slice that it computes, and elsewhere what nobody has. A
 * product over that width is over the slices of all ranks, whatever tokens they are of, and all
 * ranks get it: pass_join_slices gives each rank's row the slices of the others' rows at its place.
 * A weight's gradient is of a rank's own rows alone: pass_keep_slices makes the others' slices +0,
 * so that they add nothing to it. Both do nothing for a batch that is one rank's. They touch memory
 * that ops see, so there is no device. */
enum fed_rows { FED_TOKENS, FED_LABELS };
void pass_join_slices(const struct pass *pass, enum fed_rows rows, void *matrix, uint32_t width);
void pass_keep_slices(const struct pass *pass, enum fed_rows rows, void *matrix, uint32_t width);

/* Takes memory for the rows of ranks; and tells who has which token of a batch. */
TWINSTEP_MUST_USE enum status model_open_ranks(struct model *model,
                                               const struct batch_limits *limits,
                                               struct arena *arena);
void model_deal_rows(struct model *model, const struct batch *batch);

/* The bias of a matrix; NULL: it has none. */
const void *pass_bias(const struct pass *pass, enum param_role role, uint32_t layer);

/* A linear layer, with its bias where it has one. */
void pass_linear(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
                 void *y);
void pass_norm(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
               void *y, void *rstd);
void pass_rotary(const struct pass *pass, uint32_t layer, void *x, uint32_t heads, int inverse);
/* Copies rows of width C. What ops wrote is copied by ops, because it may lie on a device. */
void pass_copy(const struct pass *pass, const void *from, void *to);
/* Adds on the rows of the call, width C. */
void pass_add(const struct pass *pass, uint32_t layer, const void *a, const void *b, void *y);

/* What takes the place of attention's forward: it reads layer[i].q, k and v of the pass's rows and
 * writes layer[i].att. Generation token by token uses it to keep keys and values of earlier
 * tokens. */
struct attend {
    void (*run)(void *context, const struct pass *pass, uint32_t layer);
    void *context;
};

/* forward.c: runs layer i of the call, from layer[i].x to the next layer's x. */
void pass_layer(const struct pass *pass, uint32_t i);

/* Index into tables by layer; parameters outside layers stand in layer 0. */
static inline uint32_t layer_index(uint32_t layer) {
    return layer == PASS_NO_LAYER ? 0 : layer;
}

/* The address of row `row` in a matrix with `width` elements of `element` bytes. */
static inline unsigned char *row_of(void *matrix, size_t row, size_t width, size_t element) {
    return (unsigned char *)matrix + row * width * element;
}

#endif
