/* SPDX-License-Identifier: Apache-2.0
 * Clipping by the global gradient norm, as the frameworks do it (facts, section 4).
 *
 * The default is torch.nn.utils.clip_grad_norm_ with an f64 norm (law 7): norm = sqrt of an f64
 * chain, in table order, of each tensor's sum of squares (law 2, f64); coefficient =
 * f32(min(1, max_norm / (norm + 1e-6))); every gradient is multiplied by it, by 1 too, and the
 * product is rounded to gradient storage. The caller's list holds a tied tensor once. */
#ifndef TWINSTEP_OPTIM_CLIP_H
#define TWINSTEP_OPTIM_CLIP_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/squares.h"

struct op_call;  /* kernels/op_call.h */
struct op_table; /* kernels/op.h */

/* What the norm is the root of. Names of clip.norm. */
enum clip_norm {
    CLIP_SQUARES = 0, /* the chain of the tensors' sums of squares */
    CLIP_NORMS, /* the chain of squares of the tensors' rounded norms: torch's norm of norms */
    CLIP_FLAT   /* one sum of squares over all gradients as one vector: Megatron, llm.c */
};

/* Where norms are rounded to. f64 alone sums in f64 whatever the storage; the others sum in f32
 * (f64 gradients: f64), as opmath does. Names of clip.dtype. */
enum clip_dtype {
    CLIP_F64 = 0, /* the coefficient is computed in f64, then rounded to f32 */
    CLIP_F32,     /* likewise, from an f32 norm: host numbers, as in Megatron */
    CLIP_GRADIENT /* torch's tensors of the gradients' dtype: bf16 norms of bf16 gradients, and max
                     / tensor is the tensor's reciprocal, rounded, times max */
};

/* Names of clip.form. */
enum clip_form {
    CLIP_QUOTIENT = 0, /* max_norm / (norm + eps), at most 1 */
    CLIP_RECIPROCAL    /* 1 / ((norm + eps) / max_norm) where that is above 1: DeepSpeed's ZeRO */
};

/* Names of clip.apply. */
enum clip_apply {
    CLIP_ALWAYS = 0, /* multiplies by 1 too, and by NaN */
    CLIP_ABOVE,      /* only by a coefficient below 1: Megatron with Apex, NeMo-RL, llm.c */
    CLIP_COPY        /* scales copies, gradients stay as they are: NeMo-RL #1158 */
};

struct clip_rule {
    double max_norm; /* 0: measures only */
    double eps;
    uint64_t replicas; /* how often each gradient is counted: norm * sqrt(replicas) */
    enum clip_norm norm;
    enum clip_dtype dtype;
    enum clip_form form;
    enum clip_apply apply;
};

/* Law 7. */
struct clip_rule clip_rule_torch(double max_norm);

struct clip_tensor {
    void *gradient; /* carrier of `storage`, closed (law 4) */
    size_t count;
    enum dtype storage;
    const double *blocks; /* of its squares, made by clip_ask; NULL: this call's own */
};

struct clip_call {
    const struct op_table *ops; /* of this backend; any pair will do */
    const struct op_call *call; /* threads, order, scratch; site, layer and side are set here */
    const struct clip_tensor *tensors;
    size_t tensor_count;
    struct clip_rule rule;
    const double *flat;      /* of all gradients as one vector, by clip_ask; NULL: as above */
    int isa;                 /* enum isa, resolved, of what `ops` does not do; moves no bit */
    double *out_tensor_norm; /* (tensor_count) norm of each tensor before clipping, or NULL; of
                                flat, in the same dtype but by itself */
};

struct clip_result {
    double norm;        /* before clipping, of all replicas */
    double coefficient; /* 1 when max_norm is 0; with CLIP_COPY what the copies were scaled by */
};

/* What is asked of a backend and what it answers. */
struct clip_room {
    struct squares_args *asked;   /* (tensor_count + 1) */
    struct squares_piece *pieces; /* (tensor_count); of the backend's memory */
    double *blocks; /* squares_blocks() of each tensor and of all together; likewise */
};

/* Where gradients lie in a backend's memory: asks for the sums of squares that the rule needs, by
 * blocks of law 2, all of them in one call, and says so
 * in `tensors`, which are clip->tensors, and in `clip`. Who calls waits for the backend before
 * clip_gradients. Drawn, racing and free orders stay with the ops. */
void clip_ask(struct clip_call *clip, struct clip_tensor *tensors,
              void (*squares)(const struct squares_args *, size_t), const struct clip_room *room);

/* Blocks of the squares of `count` numbers, as law 2 joins them; narrow: sums are f32's. */
double clip_join(const double *blocks, size_t count, int narrow);

/* A norm that is not finite gives a coefficient of 0 or NaN, as in torch; nothing is refused. The
 * order of mode shuffled acts on squares and norms in f64 only. */
void clip_gradients(const struct clip_call *clip, struct clip_result *out_result);

/* The coefficient alone: the rule at a norm, with gradients of `storage`. */
double clip_coefficient(const struct clip_rule *rule, double norm, enum dtype storage);

#endif
