/* SPDX-License-Identifier: Apache-2.0
 * The call of an operation: what every op is given besides its own arguments.
 *
 * The rows that it visits, the order of its sums, its roundings, what a library may do, and which
 * instance of an op it is. It is apart from kernels/op.h because a model keeps a call by value,
 * while only who runs ops needs their arguments. Plain data; the caller owns everything.
 * Invariant: a call moves bits through its mode (order, splits, racing, library) and its dtypes
 * alone. */
#ifndef TWINSTEP_KERNELS_OP_CALL_H
#define TWINSTEP_KERNELS_OP_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

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

/* Counts the products of linear ops that were to go through a library, and those among them that
 * the library had no allowed way for, so that the kernel of mode invariant computed them. They are
 * counted on the host, when an op is called. */
struct library_count {
    uint64_t products, ours;
    uint64_t first[3]; /* M, N and K of the first of ours */
};

/* What modes `fast` and `deterministic` of a device leave to its library (linear layers), and what
 * the library may do there: one mechanism each, by the keys numerics.determinism.*. Whatever a mode
 * leaves free, results may depend on beside the values. */
struct library_mode {
    int pinned;  /* the library's workspace has one size and one place; else it is the library's own
                  */
    int ordered; /* products come one after another on one stream; else several streams work at once
                  */
    int split_k; /* the terms of a sum may be dealt to several workers, whose sums are joined */
    int atomics; /* the library may use atomics (for our own kernels, op_call.racing says so) */
    int fill;    /* scratch is filled with NaN before it is written, to show who reads what nobody
                    wrote */
    struct library_count *count; /* counters that go up with each op; NULL: nobody asks */
};

/* Counts the tiles of linear ops' products of bf16 numbers on the CPU: some rows and columns of
 * outputs over a block of terms each. They went by the instruction for pairs of bf16 numbers, but
 * for those in which it might not have given the bits of law 1. */
struct bf16_tiles {
    uint64_t tiles, by_fma;
};

/* Which pass of which op this is. In a stream's address the field `op` (9 bits) is site * 4 + pass.
 */
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
    /* The operands of the products of linear layers and attention are rounded to this dtype on the
     * way in: tf32 (as cvt.rna.tf32.f32), bf16 or f16. Any other dtype leaves them as they are. */
    enum dtype product;
    /* Attention's scores, probabilities and their gradients are rounded to it, until they enter a
     * product. Its carrier is that of `compute`. */
    enum dtype score;
};

/* What every op gets beside its own arguments. Plain data; the caller owns everything. */
struct op_call {
    enum dtype compute;                 /* outputs are rounded to it */
    int threads;                        /* >= 1; moves no bit */
    const struct order *order;          /* NULL: mode invariant */
    const struct op_rounding *rounding; /* NULL: operands and scores are of `compute` */
    const struct splits *splits; /* mode shaped (base/splits.h); NULL: no contraction is cut */
    /* Law 23: the sums of this call, products of a linear layer that are no weight's gradient or
     * sums along a row, are of this many parts, a power of two up to 8 and at most their terms.
     * 0 or 1: they are whole. */
    uint32_t cuts;
    const struct racing *racing; /* mode atomic; NULL: no sum races */
    const struct blas *blas;     /* linear layers through a library (kernels/blas.h); NULL: ours */
    const struct library_mode *library; /* the same on a device; NULL: ours */
    /* Products of bf16 numbers may go by vdpbf16ps, which moves no bit, and are counted here: only
     * where backend_bf16() says so. NULL: by fma */
    struct bf16_tiles *bf16;
    int order_free; /* law 16: sums are exact, and accumulators of weights are struct exact_sum */
    /* 1: the op may still be running when it returns, in order behind those called before it. Who
     * reads on the host what ops write, or writes what they read, waits first (the backend's
     * wait()). The CPU's ops are always done when they return. */
    int queued;
    /* 1: numbers of `compute` that the op is given (activations, their gradients, weights, biases,
     * angles) lie in two bytes (base/form.h). Only in a backend's table for them (narrow_ops). */
    int narrow;
    uint32_t rows, first_row; /* physical rows of the forward call; 0: not known */
    uint32_t length;          /* rows of each of its sequences, padding included; 0: not known */
    enum op_site site;
    uint32_t layer; /* 0 none, else layer + 1 */
    uint32_t side;  /* 0 chosen, only, or both; 1 rejected (separate forwards) */
    void *scratch;  /* backend_scratch() bytes */
};

#endif
