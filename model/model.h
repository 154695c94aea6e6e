/* SPDX-License-Identifier: Apache-2.0
 * The model: activation buffers, forward to label log-probs, backward to gradient accumulators.
 *
 * Decoder-only transformers of four families (OLMo-2; Llama, Qwen2, Qwen3), written out op by op.
 * It reads weights through a pointer per parameter row and never changes them; it knows no loss
 * (the caller gives one coefficient per label), no optimizer and no data set. Everything here is
 * scratch: nothing carries from one micro-batch to the next. Invariant: outputs depend on weights
 * and real tokens only; buffers may be poisoned before each forward (model_poison) without moving a
 * bit.
 *
 * Legend: C hidden, Q heads*D, K kv_heads*D, M mlp, V vocabulary, R physical rows, L label rows. */
#ifndef TWINSTEP_MODEL_MODEL_H
#define TWINSTEP_MODEL_MODEL_H

#include "base/splits.h"
#include "data/batch.h"
#include "determinism/digest.h"
#include "determinism/stream.h"
#include "kernels/blas.h"
#include "kernels/op.h"
#include "model/digests.h"
#include "model/params.h"

/* What a layer keeps from forward for backward. Matrices of the compute carrier, (R, width). */
struct layer_buffers {
    void *x;               /* (R, C) residual stream entering the layer */
    void *a;               /* (R, C) input_layernorm(x); OLMo-2: x itself */
    void *q_line;          /* (R, Q) OLMo-2, Qwen3: q_proj output before its norm; others: unused */
    void *k_line;          /* (R, K) */
    void *q;               /* (R, Q) rotated */
    void *k;               /* (R, K) rotated */
    void *v;               /* (R, K) */
    void *att;             /* (R, Q) */
    void *o;               /* (R, C) o_proj output */
    void *h;               /* (R, C) residual stream after attention */
    void *b;               /* (R, C) post_attention_layernorm(h); OLMo-2: h itself */
    void *gate;            /* (R, M) */
    void *up;              /* (R, M) */
    void *act;             /* (R, M) */
    void *down;            /* (R, C) */
    void *rstd_a, *rstd_b; /* (R) accumulation dtype */
    void *rstd_q, *rstd_k; /* (R); Qwen3: (R, heads), (R, kv_heads) */
};

/* Gradients of one layer; reused by every layer. (R, width) */
struct layer_gradients {
    void *stream;          /* (R, C) with respect to the layer's output, then to its input */
    void *h;               /* (R, C) with respect to h */
    void *branch_a;        /* (R, C) with respect to a dropped attention branch */
    void *branch_b;        /* (R, C) with respect to a dropped MLP branch */
    void *b;               /* (R, C) with respect to b (MLP input), before the residual */
    void *down;            /* (R, C) */
    void *gate, *up, *act; /* (R, M) */
    void *o;               /* (R, C) */
    void *att;             /* (R, Q) */
    void *q, *q_line;      /* (R, Q) */
    void *k, *k_line;      /* (R, K) */
    void *v;               /* (R, K) */
    void *a;               /* (R, C) */
};

struct backend; /* kernels/backend_abi.h */
struct watch;   /* model/watch.h */
struct attend;  /* model/model_ops.h */

/* Rows of heads, by token and head: row r of width heads * D has rows r * heads + h of width D. */
struct head_rows {
    uint32_t *q, *k; /* (tokens, H), (tokens, G) */
};

struct model {
    const struct config *config;
    const struct param_table *table;
    const struct op_table *ops;
    const struct backend *backend; /* that has them; NULL: this program */
    enum dtype compute, accumulate, loss;
    size_t carrier, accumulator; /* bytes of one element */
    uint32_t C, Q, K, M, V, H, G, D, layers;
    double scale;                  /* 1 / sqrt(D) */
    int post_norm;                 /* OLMo-2: norms behind attention and MLP, not before them */
    int qk_norm;                   /* OLMo-2, Qwen3 */
    int head_norm;                 /* Qwen3: it is over each head */
    struct head_rows head_rows[2]; /* call order, canonical order; head_norm only */
    uint32_t *numbers;             /* (labels) 0, 1, 2, ... */
    void *ones;                    /* (R) 1.0; where there are biases */
    struct order order;
    int shuffled;
    struct op_rounding rounding;
    struct splits splits;          /* mode shaped */
    struct racing racing;          /* mode atomic */
    struct blas blas;              /* mode fast, where there is a library */
    struct library_mode library;   /* modes fast and deterministic of a device */
    struct library_count products; /* that `library` was asked for, since the model was opened */
    int dropping;                  /* dropout acts: training, not evaluation nor the reference */
    int redrawn;                   /* the masks of a layer were drawn anew for its backward */
    uint64_t drop_seed;            /* of the masks, as the training state has it */
    uint32_t drop_update;          /* and their address */
    uint64_t rng_offset;           /* of PyTorch's generator; the training state carries it */
    uint64_t *drop_offset;         /* (layers + 1, places, calls) offset that a forward used */
    struct stream_ledger *ledger;  /* who drew what; NULL: nobody asks */
    struct watch *watch;           /* sees what ops write; NULL: nobody */
    const struct attend *attend;   /* stands for attention's forward; NULL: the op */
    struct op_call call;           /* template: compute, threads, order, scratch; queued or not */

    struct layer_buffers *layer; /* (layers) */
    struct layer_gradients gradient;
    void *last;    /* (R, C) residual stream leaving the last layer */
    void *label_x; /* (L, C) its label rows, in call order */
    void *label_h; /* (L, C) after the final norm */
    void *label_rstd;
    void *label_dh, *label_dx; /* (L, C) */
    void *logits;              /* (L, V) */
    void *maximum, *sum;       /* (L) accumulation dtype */
    double *logp;              /* (L) log-prob of each label, call order */
    void *cosine, *sine;       /* (positions, D / 2) rounded to the compute dtype */
    unsigned char *buffers;    /* everything above that forward writes, as one piece */
    size_t buffer_bytes;
    size_t scratch_bytes; /* of call.scratch */
    size_t fill_bytes;    /* of it that model_fill fills; what a device's library has is its own */
};

/* Weights of the model by parameter row, in the compute carrier. Tied rows repeat the owner's. */
struct model_weights {
    const void *const *row;
};

/* Accumulators by parameter row: [row][use], accumulation dtype. */
struct model_gradients {
    void *(*row)[2];
};

TWINSTEP_MUST_USE enum status model_open(const struct config *config,
                                         const struct param_table *table,
                                         const struct batch_limits *limits, struct arena *arena,
                                         struct model *out);

/* From here on the model's ops are the backend's; `arena` gives memory that it sees, and everything
 * the model has came from such memory. NULL: nothing changes. STATUS_UNSUPPORTED names what the
 * backend lacks. */
TWINSTEP_MUST_USE enum status model_use_backend(struct model *model, const struct backend *backend,
                                                const struct batch_limits *limits,
                                                struct arena *arena);

/* Until all ops of the model are done. Where call.queued is set, the host waits before it reads
 * what they write, and before it writes what they read; what went wrong in them is told here. */
TWINSTEP_MUST_USE enum status model_wait(const struct model *model);

/* memory = the word over and over, by an op: memory that ops see, at a multiple of 4 bytes. */
void model_set(const struct model *model, void *memory, size_t bytes, uint32_t word);

/* Address of the order of sums from here on (mode shuffled): update and order seed. */
void model_set_order(struct model *model, uint64_t seed, uint32_t update);

/* Fills every buffer that forward writes with NaN. */
void model_poison(struct model *model);

/* numerics.determinism.fill: nothing, or NaN in all that ops write before it is read, by the
 * model's ops, as model_poison. Scratch, too, but what only a device's library has of it: operands
 * and sums are filled there when they are taken, before each product. */
void model_fill(const struct model *model);

/* Fills model->logp for the batch. `side_offset` is 0, or 2 for a reference pass (stream side). */
void model_forward(struct model *model, const struct model_weights *weights,
                   const struct batch *batch, uint32_t side_offset);

/* Continues the accumulators with the gradient of sum_i -coefficient[i] * logp[i] (coefficient in
 * call order of labels, already rounded to the loss dtype). Must follow model_forward on the same
 * batch; overwrites the logits. */
void model_backward(struct model *model, const struct model_weights *weights,
                    const struct batch *batch, const double *coefficient,
                    const struct model_gradients *gradients);

/* Activation sites with a digest: embedding output, each layer's output, label log-probs. */
uint32_t model_site_count(const struct config *config);
TWINSTEP_MUST_USE enum status model_site_name(const struct config *config, uint32_t site,
                                              struct arena *arena, char **out);

/* One sequence's real tokens at a site, after model_forward: what a digest of it is made of. */
struct digest_job model_site_job(const struct model *model, const struct batch *batch,
                                 uint32_t sequence, uint32_t site);

#endif
