/* SPDX-License-Identifier: Apache-2.0
 * The operations a training is made of: argument structs and the table a backend fills.
 *
 * kernels/cpu/ and kernels/cuda/ mirror each other op by op: same names, same structs, same
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
#include "kernels/op_call.h"

/* y[r,:] = round(x[r,:] . w^T), one fma chain per output over k ascending (law 1).
 * x (.., K), w (N, K), y (.., N). Rows of x and y are the listed ones. */
struct linear_forward_args {
    struct row_list rows;
    uint32_t N, K;
    const void *x, *w;
    void *y;
    /* (N) the bias of a call with op_call.narrow, whose y cannot hold a chain before it is added:
     * y = round(chain rounded to its carrier + b), as the next op has it. NULL: there is none. */
    const void *b;
};

/* y[r,:] = round(y[r,:] + b): adds the bias of a linear layer to its finished chains (law 17). */
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
 * holds (law 3), or with `opens` begins it at +0, whatever acc holds. acc (N, K) in the
 * accumulation dtype, not rounded. */
struct linear_weight_args {
    struct row_list rows;
    uint32_t N, K;
    const void *dy, *x;
    void *acc;
    int opens;
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

/* Where RMSNorm rounds: Llama rounds x * rstd before the weight, OLMo-2 only after it
 * (transformers, LlamaRMSNorm and Olmo2RMSNorm). */
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

/* What the backward of RMSNorm is computed from (numerics.backward.norm). Forward and limits are
 * the same; roundings differ. */
enum norm_backward {
    NORM_BACKWARD_FUSED = 0, /* x and rstd, in one formula (rule_norm_grad) */
    NORM_BACKWARD_AUTOGRAD,  /* x and rstd, operation by operation (rule_norm_grad_autograd) */
    NORM_BACKWARD_OUTPUT     /* the output as it was rounded, and rstd (rule_norm_hat_of_output) */
};

/* dx from dy; `add`: dx = round(dx + result). dx may be dy when `add` is 0. NORM_BACKWARD_OUTPUT
 * makes the output again, with the forward's bits. */
struct norm_input_args {
    struct row_list rows;
    uint32_t C;
    enum norm_rounding rounding;
    const void *dy, *x, *w, *rstd;
    void *dx;
    int add;
    enum norm_backward formula;
    double eps; /* read by NORM_BACKWARD_OUTPUT alone */
};

/* acc[c] = fma(dy[r,c], xhat[r,c], acc[c]) over rows in list order (law 1). */
struct norm_weight_args {
    struct row_list rows;
    uint32_t C;
    enum norm_rounding rounding;
    const void *dy, *x, *rstd;
    void *acc; /* (C) */
    enum norm_backward formula;
    const void *w; /* like eps read by NORM_BACKWARD_OUTPUT alone */
    double eps;
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
    /* (physical rows, H, 2), accumulation dtype: the largest score of each query and head, and the
     * sum of its exponentials, kept for the backward; NULL: they are not kept. A device's kernels
     * on tensor cores keep nothing and read nothing. */
    void *state;
};

/* Recomputes the probabilities (the same bits as in the forward) and writes dq, dk and dv. With
 * `state`, what the forward kept under the same call, only maximum and sum are not made again,
 * which moves no bit. dq may not alias q. With `out`, what the forward wrote, as flash attention
 * does: the probabilities are exp(score - log-sum-exp), and a row's D is dout . out (law 6). */
struct attention_backward_args {
    const struct sequence *sequences;
    uint32_t count;
    uint32_t H, G, D;
    double scale;
    const void *q, *k, *v, *dout;
    void *dq, *dk, *dv;
    const struct dropout *dropout; /* that of the forward */
    const void *out;               /* NULL: D is the sum of P dP over keys */
    const void *state;             /* NULL: they are made again */
};

/* out = round(silu(gate) rounded * up). gate, up, out (.., C). */
struct swiglu_forward_args {
    struct row_list rows;
    uint32_t C;
    const void *gate, *up;
    void *out;
};

/* Writes dgate and dup, the gradients of the forward's inputs, from dout. They may not alias what
 * the op reads. */
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
 * so coefficient = -dLoss/dlogp, divisor included, already rounded to the loss dtype. `two_step`:
 * p = exp(log-probability), which was rounded to `loss`. */
struct logprob_backward_args {
    uint32_t L, V;
    enum dtype loss;
    const uint32_t *target;
    const double *coefficient;
    const void *maximum, *sum;
    void *logits;
    int two_step;
};

/* Closing a gradient (law 4): gradient = round_storage(acc[0] + acc[1] + ...), use order. */
struct close_args {
    size_t count;
    uint32_t uses; /* 1 or 2 */
    const void *acc[2];
    enum dtype storage;
    void *gradient; /* carrier of storage */
};

/* result = sum of squares of `count` stored values, by law 2, in f64. It is there when the op
 * returns, even where the call is queued, since `result` may be the host's own memory. */
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
    int narrow; /* 1: destination gets numbers of bf16 or f16 in two bytes (base/form.h) */
};

/* Writes the word over and over, from its first byte on; `memory` lies at a multiple of 4. */
struct fill_args {
    size_t bytes;
    uint32_t word;
    void *memory;
};

/* Every op, as ROW(name, with); `with` is handed on. This is the only list: the members of a table,
 * the declarations of the CPU's functions and the tables of the CPU and of devices are made from
 * it, so that a backend without one of them does not compile. */
#define OP_LIST(ROW, with)                                                                         \
    ROW(linear_forward, with)                                                                      \
    ROW(bias, with)                                                                                \
    ROW(linear_input, with)                                                                        \
    ROW(linear_weight, with)                                                                       \
    ROW(embedding_forward, with)                                                                   \
    ROW(embedding_weight, with)                                                                    \
    ROW(norm_forward, with)                                                                        \
    ROW(norm_input, with)                                                                          \
    ROW(norm_weight, with)                                                                         \
    ROW(rotary, with)                                                                              \
    ROW(attention_forward, with)                                                                   \
    ROW(attention_backward, with)                                                                  \
    ROW(dropout, with)                                                                             \
    ROW(swiglu_forward, with)                                                                      \
    ROW(swiglu_backward, with)                                                                     \
    ROW(add, with)                                                                                 \
    ROW(logprob_forward, with)                                                                     \
    ROW(logprob_backward, with)                                                                    \
    ROW(close, with)                                                                               \
    ROW(square, with)                                                                              \
    ROW(scale, with)                                                                               \
    ROW(convert, with)                                                                             \
    ROW(fill, with)

/* The functions of one (carrier, accumulator) pair of an instruction set, or of a device: for each
 * op of the list a member of its name. */
#define OP_MEMBER_(op, with) void (*op)(const struct op_call *, const struct op##_args *);
struct op_table {
    const char *name; /* "f32_f32_v4", ... */
    OP_LIST(OP_MEMBER_, )
};

/* Instruction sets of the CPU backend; ISA_AUTO takes the widest this machine has. ISA_V4_BF16 is
 * ISA_V4 with vdpbf16ps for products of bf16 numbers. */
enum isa { ISA_AUTO = 0, ISA_BASE, ISA_V3, ISA_V4, ISA_V4_BF16, ISA_COUNT };

/* "auto", "base", "v3", "v4", "v4-bf16". */
const char *isa_name(enum isa isa);

/* The set whose objects serve: what ISA_AUTO means on this machine, ISA_V4 for ISA_V4_BF16, any
 * other as it is. */
enum isa backend_isa(enum isa isa);

/* Whether products of bf16 numbers go by vdpbf16ps (op_call.bf16): with ISA_V4_BF16 where the
 * machine has it, and with ISA_AUTO where it is known to be faster than fma besides. Tries the
 * instruction, which takes some 0.1 ms. */
int backend_bf16(enum isa isa);

/* The table for a compute and an accumulation dtype. STATUS_UNSUPPORTED when this machine lacks the
 * instruction set asked for, STATUS_INPUT for f64 compute with f32 accumulation. */
TWINSTEP_MUST_USE enum status backend_ops(enum isa isa, enum dtype compute, enum dtype accumulate,
                                          const struct op_table **out);

/* The largest problem of a run, which fixes the size of op_call.scratch. */
struct op_limits {
    uint32_t rows;   /* most rows of one call */
    uint32_t norms;  /* most rows of one norm; 0: as rows */
    uint32_t width;  /* widest of C, N, K, V */
    uint32_t length; /* longest sequence */
    uint32_t H, G, D;
    int threads;
    size_t library; /* elements of the largest weight that may go through a library; 0: none may */
    int order_free; /* calls may be order_free */
    uint32_t cuts;  /* the most parts of a sum that op_call.cuts asks for; 0: as 1 */
    int dq_stays;   /* no call races on dQ, so that attention needs no room for its sums */
    uint32_t
        library_bytes; /* bytes of a number that the library multiplies: 2, 4 or 8; 0: not known */
};

/* Bytes of scratch that are enough for every op of the CPU's backend and every number pair.
 * STATUS_INPUT: no threads, or heads or sequences beyond what attention can have. */
TWINSTEP_MUST_USE enum status backend_scratch(const struct op_limits *limits, size_t *out_bytes);

#endif
