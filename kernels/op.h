/* SPDX-License-Identifier: Apache-2.0
 * The operations a training is made of: argument structs and the table a backend fills.
 *
 * kernels/cpu/ and (later) kernels/cuda/ mirror each other op by op: same names, same structs, same
 * arithmetic headers. An op knows nothing of models, losses or optimizers. It reads and writes only
 * what its arguments point to and allocates nothing: scratch comes with the call.
 *
 * Buffers are row-major matrices in the carrier of their dtype (base/dtype.h). Activations have one
 * row per physical position; ops visit only the rows they are given, so padding is never read.
 * Legend: T rows of the call, C hidden width, N output width, K input width, V vocabulary, H query
 * heads, G key/value heads, D head width, L label rows.
 *
 * Invariant (docs/DETERMINISM.md, laws 1 to 6): in mode `invariant` an output depends on the values
 * and the canonical order of its terms alone, never on threads, tiles, strides or other rows. */
#ifndef TWINSTEP_KERNELS_OP_H
#define TWINSTEP_KERNELS_OP_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/sequence.h"
#include "base/status.h"

/* Physical rows in the order of the call. Weight-gradient ops get them in canonical order
 * (sample, chosen before rejected, position); for the others the order moves no bit. */
struct row_list {
    const uint32_t *index; /* NULL: rows 0 .. count-1 */
    uint32_t count;
};

/* The kinds of sum that `shuffled` and `atomic` switch one by one. */
enum sum_kind {
    SUM_FORWARD = 1,   /* linear layers and attention, forward and input gradients; softmax sums */
    SUM_WEIGHT = 2,    /* weight gradients of linear layers */
    SUM_DQ = 4,        /* attention backward: dQ over keys */
    SUM_EMBEDDING = 8, /* embedding gradient (scatter over tokens) */
    SUM_NORM = 16,     /* norm-weight gradients, and the global gradient norm over chunks */
    SUM_LOSS = 32      /* loss over positions and samples */
};

/* The order of sums in `shuffled` (law 9): chunks of `chunk` consecutive terms, each a chain from
 * +0, joined in a permutation drawn from the order stream at (op, layer, sample, side, update,
 * 64 x 64 output tile). */
struct order {
    uint64_t seed;
    uint32_t kinds;  /* bits of sum_kind that are shuffled; the others stay canonical */
    uint32_t chunk;  /* terms per chunk, >= 1; default 16 */
    uint32_t update; /* update counter of the draw */
    uint32_t sample; /* first sample of the micro-batch, counted in the update */
};

/* What races in `atomic` (law 14): threads take chunks of `chunk` consecutive terms, each a chain
 * from +0, as they come, and add them to the shared sum with relaxed atomics. */
struct racing {
    uint32_t kinds; /* bits of sum_kind that race */
    uint32_t chunk; /* terms per chunk, >= 1; default 16 */
};

/* Products of linear ops that were to go through a library, and those it had no allowed way for:
 * the kernel of mode invariant computed them. Counted on the host, when an op is called. */
struct library_count {
    uint64_t products, ours;
    uint64_t first[3]; /* M, N and K of the first of ours */
};

/* What modes `fast` and `deterministic` of a device leave to its library, linear layers, and what
 * the library may do there: numerics.determinism.*, one mechanism each. What a mode leaves free is
 * what its results may hang on besides the values. */
struct library_mode {
    int pinned;  /* workspace of one size at one place; else the library's own */
    int ordered; /* one stream; else several work at once */
    int split_k; /* a sum's terms may be dealt to several workers whose sums are joined */
    int atomics; /* atomics are allowed (own kernels: op_call.racing) */
    int fill;    /* scratch is all NaN before it is written */
    struct library_count *count; /* goes up with each op; NULL: nobody asks */
};

/* Which instance of an op this is: field `op` (9 bits) of a stream address is site * 4 + pass. */
enum op_pass { PASS_FORWARD = 0, PASS_INPUT = 1, PASS_WEIGHT = 2 };
enum op_site {
    SITE_NONE = 0,
    SITE_EMBEDDING,
    SITE_Q_PROJ,
    SITE_K_PROJ,
    SITE_V_PROJ,
    SITE_O_PROJ,
    SITE_GATE_PROJ,
    SITE_UP_PROJ,
    SITE_DOWN_PROJ,
    SITE_HEAD,
    SITE_Q_NORM,
    SITE_K_NORM,
    SITE_NORM_A, /* input_layernorm, or OLMo-2's post_attention_layernorm */
    SITE_NORM_B, /* Llama's post_attention_layernorm, or post_feedforward_layernorm */
    SITE_NORM_FINAL,
    SITE_ATTENTION,
    SITE_LOSS,
    SITE_GRADIENT_NORM,
    SITE_Q_BIAS, /* gradients of biases are sums of their own */
    SITE_K_BIAS,
    SITE_V_BIAS,
    SITE_O_BIAS,
    SITE_GATE_BIAS,
    SITE_UP_BIAS,
    SITE_DOWN_BIAS,
    SITE_COUNT
};

/* Roundings inside products and attention other than `compute` (law 6, law 11). */
struct op_rounding {
    /* Operands of linear layers' and attention's products are rounded to it on the way in: tf32 (as
     * cvt.rna.tf32.f32), bf16 or f16; any other dtype leaves them as they are. */
    enum dtype product;
    /* Attention's scores, probabilities and their gradients are rounded to it, until they enter a
     * product. Its carrier is that of `compute`. */
    enum dtype score;
};

/* What every op gets. Plain data; the caller owns everything. */
struct op_call {
    enum dtype compute;                 /* outputs are rounded to it */
    int threads;                        /* >= 1; moves no bit */
    const struct order *order;          /* NULL: mode invariant */
    const struct op_rounding *rounding; /* NULL: operands and scores are of `compute` */
    const struct splits *splits; /* mode shaped (base/splits.h); NULL: no contraction is cut */
    const struct racing *racing; /* mode atomic; NULL: no sum races */
    const struct blas *blas;     /* linear layers through a library (kernels/blas.h); NULL: ours */
    const struct library_mode *library; /* the same on a device; NULL: ours */
    int order_free; /* law 16: sums are exact; accumulators of weights are struct exact_sum */
    /* 1: the op may still be running when it returns, in order behind those called before it; who
     * reads on the host what ops write, or writes what they read, waits first (the backend's
     * wait()). The CPU's ops are done when they return. */
    int queued;
    uint32_t rows, first_row; /* physical rows of the forward call; 0: not known */
    uint32_t length;          /* rows of each of its sequences, padding included; 0: not known */
    enum op_site site;
    uint32_t layer; /* 0 none, else layer + 1 */
    uint32_t side;  /* 0 chosen, only, or both; 1 rejected (separate forwards) */
    void *scratch;  /* backend_scratch() bytes */
};

/* y[r,:] = round(x[r,:] . w^T), one fma chain per output over k ascending (law 1).
 * x (.., K), w (N, K), y (.., N). Rows of x and y are the listed ones. */
struct linear_forward_args {
    struct row_list rows;
    uint32_t N, K;
    const void *x, *w;
    void *y;
};

/* y[r,:] = round(y[r,:] + b): the bias of a linear layer, behind its finished chain (law 17). */
struct bias_args {
    struct row_list rows;
    uint32_t C;
    const void *b; /* (C) */
    void *y;       /* (.., C), of the carrier: not yet rounded to `compute` */
};

/* dx[r,:] = round(dy[r,:] . w), chain over n ascending. With `add`: dx = round(dx + round(chain)),
 * which is how several linear layers on one input join (law 1). */
struct linear_input_args {
    struct row_list rows;
    uint32_t N, K;
    const void *dy, *w;
    void *dx;
    int add;
};

/* acc[n,k] = fma(dy[r,n], x[r,k], acc[n,k]) over rows in list order; continues the chain that acc
 * holds (law 3). acc (N, K) in the accumulation dtype, not rounded. */
struct linear_weight_args {
    struct row_list rows;
    uint32_t N, K;
    const void *dy, *x;
    void *acc;
};

/* x[r,:] = table[ids[i],:] for the i-th listed row r. */
struct embedding_forward_args {
    struct row_list rows;
    uint32_t C;
    const uint32_t *ids; /* (rows.count), each < V (checked by the caller) */
    const void *table;   /* (V, C) */
    void *x;
};

/* acc[ids[i],:] += dx[r,:] over rows in list order: one chain of adds per table element. */
struct embedding_weight_args {
    struct row_list rows;
    uint32_t V, C;
    const uint32_t *ids;
    const void *dx;
    void *acc; /* (V, C), accumulation dtype */
};

/* Where RMSNorm rounds: Llama rounds x * rstd before the weight, OLMo-2 only after it. */
enum norm_rounding { NORM_ROUND_BEFORE_WEIGHT = 0, NORM_ROUND_AFTER_WEIGHT = 1 };

/* rstd = 1 / sqrt(sum(x^2) / C + eps), law 2 sum; y = rmsnorm(x) * w as base/rule.h says.
 * rstd (physical rows) in the accumulation dtype; written. */
struct norm_forward_args {
    struct row_list rows;
    uint32_t C;
    double eps;
    enum norm_rounding rounding;
    const void *x, *w;
    void *y, *rstd;
};

/* dx from dy; `add`: dx = round(dx + result). dx may be dy when `add` is 0. */
struct norm_input_args {
    struct row_list rows;
    uint32_t C;
    enum norm_rounding rounding;
    const void *dy, *x, *w, *rstd;
    void *dx;
    int add;
};

/* acc[c] = fma(dy[r,c], xhat[r,c], acc[c]) over rows in list order (law 1). */
struct norm_weight_args {
    struct row_list rows;
    uint32_t C;
    enum norm_rounding rounding;
    const void *dy, *x, *rstd;
    void *acc; /* (C) */
};

/* Rotate-half rotary embedding in place: x (.., heads * D); angle row = position[i] of the i-th
 * listed row. cosine, sine (positions, D / 2), already rounded to the compute dtype. `inverse`
 * applies the transpose (the backward). mul, mul, add with a rounding each (law 6). */
struct rotary_args {
    struct row_list rows;
    uint32_t heads, D;
    const uint32_t *position;
    const void *cosine, *sine;
    void *x;
    int inverse;
};

/* Which elements are kept, and with what probability: kernels/dropout.h. */
struct dropout;

/* y[r,:] = x[r,:] / keep where kept, +0 elsewhere, for the tokens of the sequences (law 12). Its
 * backward is itself. y may be x. */
struct dropout_args {
    const struct sequence *sequences;
    uint32_t count;
    uint32_t C;
    const struct dropout *dropout;
    const void *x;
    void *y;
};

/* Causal grouped-query attention inside each sequence (law 6). q (.., H*D), k and v (.., G*D),
 * out (.., H*D). Query head h reads key/value head h / (H / G). */
struct attention_forward_args {
    const struct sequence *sequences;
    uint32_t count;
    uint32_t H, G, D;
    double scale; /* 1 / sqrt(D) rounded to the compute carrier by the op */
    const void *q, *k, *v;
    void *out;
    const struct dropout *dropout; /* of the probabilities; NULL: none */
};

/* Recomputes the probabilities (same bits), writes dq, dk, dv. dq may not alias q. */
struct attention_backward_args {
    const struct sequence *sequences;
    uint32_t count;
    uint32_t H, G, D;
    double scale;
    const void *q, *k, *v, *dout;
    void *dq, *dk, *dv;
    const struct dropout *dropout; /* that of the forward */
};

/* out = round(silu(gate) rounded * up). gate, up, out (.., C). */
struct swiglu_forward_args {
    struct row_list rows;
    uint32_t C;
    const void *gate, *up;
    void *out;
};

/* dgate and dup from dout; may overwrite nothing it reads. */
struct swiglu_backward_args {
    struct row_list rows;
    uint32_t C;
    const void *gate, *up, *dout;
    void *dgate, *dup;
};

/* y[r,:] = round(a[r,:] + b[r,:]); y may be a or b. */
struct add_args {
    struct row_list rows;
    uint32_t C;
    const void *a, *b;
    void *y;
};

/* Log-probability of one target per label row: rows 0 .. L-1 of logits (L, V).
 * maximum, sum (L, accumulation dtype): row max and law-2 sum of exp(z - max), kept for backward.
 * logp (L): (z_y - max) - log(sum), rounded to `loss`, as double. */
struct logprob_forward_args {
    uint32_t L, V;
    enum dtype loss;
    const uint32_t *target;
    const void *logits;
    void *maximum, *sum;
    double *logp;
};

/* logits <- round((exp(z - max) / sum - [v == target]) * coefficient[row]) in place (law 5).
 * coefficient (L): dLoss / dlogp negated is NOT applied here: dlogit = (p - onehot) * coefficient,
 * so coefficient = -dLoss/dlogp, divisor included, already rounded to the loss dtype. */
struct logprob_backward_args {
    uint32_t L, V;
    enum dtype loss;
    const uint32_t *target;
    const double *coefficient;
    const void *maximum, *sum;
    void *logits;
};

/* Closing a gradient (law 4): gradient = round_storage(acc[0] + acc[1] + ...), use order. */
struct close_args {
    size_t count;
    uint32_t uses; /* 1 or 2 */
    const void *acc[2];
    enum dtype storage;
    void *gradient; /* carrier of storage */
};

/* result = sum of squares of `count` stored values, law 2, f64. Done when it returns, even where
 * the call is queued: `result` may be the host's own. */
struct square_args {
    size_t count;
    enum dtype storage;
    const void *values;
    double *result;
};

/* values = round_storage(values * factor); factor is a f32 value (law 7). */
struct scale_args {
    size_t count;
    enum dtype storage;
    double factor;
    void *values;
};

/* destination = source rounded to another dtype, carriers converted. Used for compute copies of
 * weights, for masters, and for accumulators that restart from a stored gradient. */
struct convert_args {
    size_t count;
    enum dtype from, to;
    const void *source;
    void *destination;
};

/* memory = the word over and over, from its first byte on; `memory` lies at a multiple of 4. */
struct fill_args {
    size_t bytes;
    uint32_t word;
    void *memory;
};

/* One table per (carrier, accumulator) pair of an instruction set. */
struct op_table {
    const char *name; /* "f32_f32_v4", ... */
    void (*linear_forward)(const struct op_call *, const struct linear_forward_args *);
    void (*bias)(const struct op_call *, const struct bias_args *);
    void (*linear_input)(const struct op_call *, const struct linear_input_args *);
    void (*linear_weight)(const struct op_call *, const struct linear_weight_args *);
    void (*embedding_forward)(const struct op_call *, const struct embedding_forward_args *);
    void (*embedding_weight)(const struct op_call *, const struct embedding_weight_args *);
    void (*norm_forward)(const struct op_call *, const struct norm_forward_args *);
    void (*norm_input)(const struct op_call *, const struct norm_input_args *);
    void (*norm_weight)(const struct op_call *, const struct norm_weight_args *);
    void (*rotary)(const struct op_call *, const struct rotary_args *);
    void (*attention_forward)(const struct op_call *, const struct attention_forward_args *);
    void (*attention_backward)(const struct op_call *, const struct attention_backward_args *);
    void (*dropout)(const struct op_call *, const struct dropout_args *);
    void (*swiglu_forward)(const struct op_call *, const struct swiglu_forward_args *);
    void (*swiglu_backward)(const struct op_call *, const struct swiglu_backward_args *);
    void (*add)(const struct op_call *, const struct add_args *);
    void (*logprob_forward)(const struct op_call *, const struct logprob_forward_args *);
    void (*logprob_backward)(const struct op_call *, const struct logprob_backward_args *);
    void (*close)(const struct op_call *, const struct close_args *);
    void (*square)(const struct op_call *, const struct square_args *);
    void (*scale)(const struct op_call *, const struct scale_args *);
    void (*convert)(const struct op_call *, const struct convert_args *);
    void (*fill)(const struct op_call *, const struct fill_args *);
};

/* Instruction sets of the CPU backend; ISA_AUTO takes the widest this machine has. */
enum isa { ISA_AUTO = 0, ISA_BASE, ISA_V3, ISA_V4, ISA_COUNT };

/* "auto", "base", "v3", "v4". */
const char *isa_name(enum isa isa);

/* What ISA_AUTO means on this machine; any other value as it is. */
enum isa backend_isa(enum isa isa);

/* The table for a compute and an accumulation dtype. STATUS_UNSUPPORTED when this machine lacks the
 * instruction set asked for, STATUS_INPUT for f64 compute with f32 accumulation. */
TWINSTEP_MUST_USE enum status backend_ops(enum isa isa, enum dtype compute, enum dtype accumulate,
                                          const struct op_table **out);

/* Largest problem of a run; fixes the size of op_call.scratch. */
struct op_limits {
    uint32_t rows;   /* most rows of one call */
    uint32_t norms;  /* most rows of one norm; 0: as rows */
    uint32_t width;  /* widest of C, N, K, V */
    uint32_t length; /* longest sequence */
    uint32_t H, G, D;
    int threads;
    size_t library; /* elements of the largest weight that may go through a library; 0: none does */
    int order_free; /* calls may be order_free */
    uint32_t library_bytes; /* of a number that a library multiplies: 2, 4 or 8; 0: not known */
};

/* Bytes of scratch that every op of the backend is content with, for any pair. */
TWINSTEP_MUST_USE enum status backend_scratch(const struct op_limits *limits, size_t *out_bytes);

#endif
