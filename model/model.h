/* SPDX-License-Identifier: Apache-2.0
 * The model: activation buffers, forward to label log-probs, backward to gradient accumulators.
 *
 * Decoder-only transformers of four families (OLMo-2; Llama, Qwen2, Qwen3), written out op by op.
 * It reads weights through one pointer per parameter row and never changes them. It knows no loss
 * (the caller gives one coefficient per label), no optimizer and no data set. Everything here is
 * scratch: nothing carries from one micro-batch to the next. Invariant: outputs depend on weights
 * and real tokens only; buffers may be poisoned before each forward (model_poison) without moving a
 * bit.
 *
 * Legend: C hidden width, Q heads*D, K kv_heads*D, M width of the MLP, V vocabulary, R physical
 * rows, L label rows. */
#ifndef TWINSTEP_MODEL_MODEL_H
#define TWINSTEP_MODEL_MODEL_H

#include "base/form.h"
#include "base/splits.h"
#include "kernels/blas.h"
#include "kernels/op_call.h"
#include "model/params.h"

/* What a layer keeps from its forward for its backward: matrices of model.form, (R, width). */
struct layer_buffers {
    void *x; /* (R, C) the residual stream that enters the layer */
    void *a; /* (R, C) input_layernorm(x); OLMo-2: x itself */
    /* (R, Q) q_proj's output before its norm, in OLMo-2 and Qwen3; unused in others */
    void *q_line;
    void *k_line;          /* (R, K) */
    void *q;               /* (R, Q) after rotation */
    void *k;               /* (R, K) after rotation */
    void *v;               /* (R, K) */
    void *att;             /* (R, Q) */
    void *o;               /* (R, C) o_proj's output */
    void *h;               /* (R, C) the residual stream after attention */
    void *b;               /* (R, C) post_attention_layernorm(h); OLMo-2: h itself */
    void *gate;            /* (R, M) */
    void *up;              /* (R, M) */
    void *act;             /* (R, M) */
    void *down;            /* (R, C) */
    void *rstd_a, *rstd_b; /* (R) accumulation dtype */
    void *rstd_q, *rstd_k; /* (R); Qwen3: (R, heads), (R, kv_heads) */
    void *att_state;       /* (R, heads, 2) attention_forward_args.state, accumulation dtype */
};

/* Gradients of one layer, which every layer uses again. (R, width), likewise. */
struct layer_gradients {
    void *stream;   /* (R, C) with respect to the layer's output; later to its input */
    void *h;        /* (R, C) with respect to h */
    void *branch_a; /* (R, C) with respect to a dropped attention branch */
    void *branch_b; /* (R, C) with respect to a dropped MLP branch */
    void *b;        /* (R, C) with respect to b, the MLP's input, before the residual joins */
    void *down;     /* (R, C) */
    void *gate, *up, *act; /* (R, M) */
    void *o;               /* (R, C) */
    void *att;             /* (R, Q) */
    void *q, *q_line;      /* (R, Q) */
    void *k, *k_line;      /* (R, K) */
    void *v;               /* (R, K) */
    void *a;               /* (R, C) */
};

struct backend;  /* kernels/backend_abi.h */
struct op_table; /* kernels/op.h */
struct batch;    /* data/batch.h */
struct batch_limits;
struct stream_ledger; /* determinism/stream.h */
struct digest_job;    /* model/digests.h */
struct watch;         /* model/watch.h */
struct attend;        /* model/model_ops.h */

/* Rows of heads, by token and head: row r of width heads * D is rows r * heads + h of width D. A
 * norm over each head (Qwen3) is then an ordinary norm of more rows. */
struct head_rows {
    uint32_t *q, *k; /* (tokens, H), (tokens, G) */
};

/* What tensor-parallel ranks hold apart (norms by parallel.forgets; with samples of their own all
 * that a rank has whole, the embedding too): a weight and the sums of its gradient, of which each
 * rank has those of its own rows. By rank and row of the table, (count, table.count); rank 0 has
 * the weights and accumulators that a pass is given, and NULL here. */
struct model_ranks {
    uint32_t count;
    const void **weight; /* in model.form */
    void **sums;         /* in the accumulation dtype */
};

struct model {
    const struct config *config;
    const struct param_table *table;
    const struct op_table *ops;
    const struct op_table *carried; /* the same for matrices in carriers, whatever the form */
    const struct backend *backend;  /* has these ops; NULL: this program has them */
    enum dtype compute, accumulate, loss;
    /* How activations, their gradients, weights and angles lie in memory: in carriers, or in two
     * bytes where the backend has ops for these (docs/decisions/carriers.md). */
    struct form form;
    size_t accumulator; /* bytes of one element of a sum */
    uint32_t C, Q, K, M, V, H, G, D, layers;
    double scale;  /* 1 / sqrt(D) */
    int post_norm; /* 1: norms stand behind attention and MLP, not before them (OLMo-2) */
    int qk_norm;   /* 1: q and k are normalized (OLMo-2, Qwen3) */
    int head_norm; /* 1: that norm is over each head (Qwen3) */
    /* Rows of heads in call order and in canonical order, for head_norm: as the host lists them,
     * and as ops see them, which is the same where there is no hidden memory. */
    struct head_rows head_rows[2], seen_head_rows[2];
    uint32_t *seen_lists; /* the batch's lists for ops; NULL: they see the batch's own */
    size_t seen_bytes;
    double *seen_coefficients; /* the loss's for ops; NULL: they see those that the host wrote */
    enum status lost;          /* of the last copy of lists; model_wait tells it */
    uint32_t *numbers;         /* (labels) 0, 1, 2, ...: ids that make a lookup a copy of rows */
    void *ones; /* (R) 1.0, where there are biases: their gradient is a product with it */
    struct order order;
    int shuffled;
    struct op_rounding rounding;
    struct splits splits;          /* of mode shaped */
    struct racing racing;          /* of mode atomic */
    struct blas blas;              /* of mode fast, where there is a library */
    struct library_mode library;   /* of modes fast and deterministic on a device */
    struct library_count products; /* products asked of `library` since the model was opened */
    struct bf16_tiles bf16;        /* tiles of products of bf16 numbers on the CPU, likewise */
    int dropping; /* 1: dropout acts, as in training; not in evaluation, nor in the reference */
    int redrawn;  /* 1: a layer's masks were drawn again for its backward (recompute) */
    uint64_t drop_seed;    /* draws the masks; the state of the training has it */
    uint32_t drop_update;  /* part of the masks' addresses */
    uint64_t rng_offset;   /* offset of PyTorch's generator; the state of the training carries it */
    uint64_t *drop_offset; /* (layers + 1, places, calls) the offset that each forward used */
    struct stream_ledger *ledger;    /* is told who drew how much; NULL: nobody asks */
    struct watch *watch;             /* sees what ops write; NULL: nobody watches */
    const struct attend *attend;     /* takes the place of attention's forward; NULL: the op runs */
    const struct model_ranks *ranks; /* NULL: there is one weight of each norm */
    uint32_t *rank_of_row;           /* (R) who has the token of a row; only with ranks */
    uint32_t *rows_of_rank;          /* (tokens, or tokens * heads) of one rank in one op */
    /* the template of every call: dtype, threads, order, scratch, queued or not */
    struct op_call call;

    struct layer_buffers *layer; /* (layers) */
    struct layer_gradients gradient;
    void *last;    /* (R, C) the residual stream that leaves the last layer */
    void *label_x; /* (L, C) label rows of `last`, in call order */
    void *label_h; /* (L, C) the same after the final norm */
    void *label_rstd;
    void *label_dh, *label_dx; /* (L, C) */
    void *logits;              /* (L, V) */
    void *maximum, *sum;       /* (L) of logprob_forward, accumulation dtype */
    double *logp; /* (L) the log-prob of each label, in call order; the host reads it */
    size_t logp_bytes;
    void *cosine, *sine;    /* (positions, D / 2) rounded to the compute dtype */
    unsigned char *buffers; /* all of the above that forward writes but logp, as one piece */
    size_t buffer_bytes;
    size_t scratch_bytes; /* size of call.scratch */
    /* how much of it model_fill fills; a device's library fills its own part */
    size_t fill_bytes;
};

/* Weights by parameter row, in model.form. A tied row repeats its owner's pointer. */
struct model_weights {
    const void *const *row;
};

/* A part of a micro-batch whose terms continue one chain of each sum: consecutive entries of the
 * batch's canonical lists. */
struct model_part {
    uint32_t first_token, tokens;
    uint32_t first_label, labels;
    uint32_t from; /* the first sample of the update whose terms the chains hold, then */
};

/* The parts of a micro-batch, in canonical order, which hold all of it. `begin` is asked once for
 * each part, in order, and for each use of each parameter, behind the ops of the part before it. It
 * returns the accumulator that the part continues. */
struct model_parts {
    uint32_t count;
    const struct model_part *part;
    void *(*begin)(void *context, uint32_t part, uint32_t row, uint32_t use);
    void *context;
};

/* Accumulators by parameter row and use, in the accumulation dtype. */
struct model_gradients {
    void *(*row)[2];
    const struct model_parts *parts; /* NULL: all terms continue the chains that `row` holds */
    int opens; /* without parts; 1: of matrices and biases they begin chains at +0 instead */
};

/* Opens a model whose ops are those of `backend`, or this program's own where it is NULL. `arena`
 * gives memory that the backend sees; what only ops touch (activations, scratch, tables) comes from
 * arena_hidden(arena), and the host reads it through a window (model/backends.h).
 * STATUS_UNSUPPORTED names what the backend lacks. */
TWINSTEP_MUST_USE enum status model_open(const struct config *config,
                                         const struct param_table *table,
                                         const struct backend *backend,
                                         const struct batch_limits *limits, struct arena *arena,
                                         struct model *out);

/* Waits until all ops of the model are done, and returns what went wrong in them. Where call.queued
 * is set, the host waits before it reads what ops write, and before it writes what they read. */
TWINSTEP_MUST_USE enum status model_wait(const struct model *model);

/* Brings the lists of a batch, or the rows of its heads, to where ops read them, behind the ops
 * that were called: before the first op of a pass. model_seen is then the place of a list for ops.
 */
void model_see_batch(struct model *model, const struct batch *batch);
/* The same for the coefficients of `count` labels; returns their place for ops. */
const double *model_see_coefficients(struct model *model, const double *coefficient, size_t count);
void model_see_heads(struct model *model, size_t tokens, int canonical);
const uint32_t *model_seen(const struct model *model, const struct batch *batch,
                           const uint32_t *list);

/* Whether tensor-parallel ranks hold the weight of this role apart. */
int model_holds_apart(const struct config *config, enum param_role role);

/* Whether a tensor-parallel rank holds the tensor of this role whole: norms of the residual stream
 * or of each head, and biases of row-parallel layers. All others are slices. */
int model_holds_whole(const struct config *config, enum param_role role);

/* Where the slice of rank `rank` of `ranks` begins in a width: slices are equal, and where ranks do
 * not divide it the last ones are shorter, as torch cuts; the width for rank `ranks`. */
size_t model_slice_at(uint64_t width, uint64_t ranks, uint64_t rank);

/* Fills memory that ops see with a word over and over, by an op. It begins at a multiple of 4
 * bytes. */
void model_set(const struct model *model, void *memory, size_t bytes, uint32_t word);

/* Sets the address of the order of sums from here on (mode shuffled): its seed and the update. */
void model_set_order(struct model *model, uint64_t seed, uint32_t update);

/* Fills every buffer that forward writes with NaN. */
void model_poison(struct model *model);

/* Does what numerics.determinism.fill asks for: nothing, or NaN in what embedding and attention
 * write, or in all that ops write before it is read, scratch included. The scratch of a device's
 * library is then filled when an operand or a sum is taken there, before each product. */
void model_fill(const struct model *model);

/* Fills model->logp for the batch. `side_offset` is 0, or 2 for a pass of the reference, whose
 * sides have numbers of their own in addresses (law 10). */
void model_forward(struct model *model, const struct model_weights *weights,
                   const struct batch *batch, uint32_t side_offset);

/* Continues the accumulators with the gradient of sum_i -coefficient[i] * logp[i]; coefficients are
 * in call order of labels and already rounded to the loss dtype. It must follow model_forward on
 * the same batch, and it overwrites the logits. */
void model_backward(struct model *model, const struct model_weights *weights,
                    const struct batch *batch, const double *coefficient,
                    const struct model_gradients *gradients);

/* Sites of activations that get a digest: the embedding's output, each layer's output, and the
 * label log-probs. */
uint32_t model_site_count(const struct config *config);
TWINSTEP_MUST_USE enum status model_site_name(const struct config *config, uint32_t site,
                                              struct arena *arena, char **out);

/* The digest of one sequence's real tokens at a site, as a job; valid after model_forward. */
struct digest_job model_site_job(const struct model *model, const struct batch *batch,
                                 uint32_t sequence, uint32_t site);

#endif
