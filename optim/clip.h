/* SPDX-License-Identifier: Apache-2.0
 * Clipping by the global gradient norm, as the frameworks do it: torch
 * (torch/nn/utils/clip_grad.py), Megatron (megatron/core/optimizer/clip_grads.py), DeepSpeed
 * (runtime/utils.py and the ZeRO optimizers), NeMo-RL and llm.c (llmc/global_norm.cuh).
 *
 * The default is torch.nn.utils.clip_grad_norm_ with an f64 norm (law 7): norm = sqrt of an f64
 * chain, in table order, of each tensor's sum of squares (law 2, f64); coefficient = f32(min(1,
 * max_norm / (norm + 1e-6))); every gradient is multiplied by it, by 1 too, and the product is
 * rounded to gradient storage. The caller's list holds a tied tensor once. */
#ifndef TWINSTEP_OPTIM_CLIP_H
#define TWINSTEP_OPTIM_CLIP_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/squares.h"

struct op_call;  /* kernels/op_call.h */
struct op_table; /* kernels/op.h */

/* What the norm is the square root of, by the names of clip.norm. */
enum clip_norm {
    CLIP_SQUARES = 0, /* the chain of the tensors' sums of squares */
    CLIP_NORMS, /* the chain of squares of the tensors' rounded norms: torch's norm of norms */
    CLIP_FLAT   /* one sum of squares over all gradients as one vector: Megatron, llm.c */
};

/* What norms are rounded to, by the names of clip.dtype. Only f64 sums in f64 whatever the storage
 * is; the other two sum in f32 (f64 gradients in f64), as PyTorch's working type does. */
enum clip_dtype {
    CLIP_F64 = 0, /* the coefficient is computed in f64, then rounded to f32 */
    CLIP_F32,     /* the same from an f32 norm: a number of the host, as in Megatron */
    CLIP_GRADIENT /* tensors of the gradients' dtype, as in torch: bf16 norms of bf16 gradients, and
                     max / tensor is the tensor's reciprocal, rounded, times max */
};

/* How the coefficient is formed, by the names of clip.form. */
enum clip_form {
    CLIP_QUOTIENT = 0, /* max_norm / (norm + eps), at most 1 */
    CLIP_RECIPROCAL    /* 1 / ((norm + eps) / max_norm) where that is above 1: DeepSpeed's ZeRO */
};

/* When gradients are multiplied by the coefficient, by the names of clip.apply. */
enum clip_apply {
    CLIP_ALWAYS = 0, /* always, by NaN, too; by 1 as well, which leaves them as they are */
    CLIP_ABOVE,      /* only by a coefficient below 1: Megatron with Apex, NeMo-RL, llm.c */
    CLIP_COPY /* copies are scaled and the gradients stay as they are: the bug of NeMo-RL #1158 */
};

struct clip_rule {
    double max_norm; /* 0: the norm is measured and nothing is scaled */
    double eps;
    uint64_t replicas; /* how often each gradient is counted, as where shards and replicas are
                          confused: the norm is multiplied by sqrt(replicas) */
    enum clip_norm norm;
    enum clip_dtype dtype;
    enum clip_form form;
    enum clip_apply apply;
};

struct clip_tensor {
    void *gradient; /* (count) carriers of `storage`, closed (law 4); scaled in place */
    size_t count;
    enum dtype storage;
    const double *blocks; /* sums of its squares by blocks, which clip_ask had a backend make, or
                             the caller made; NULL: clip_gradients makes its own */
};

struct clip_call {
    const struct op_table
        *ops; /* the ops of the backend that has the gradients; any number pair will do */
    const struct op_call *call; /* threads, order and scratch; the fields site, layer and side are
                                   set by clip_gradients */
    const struct clip_tensor *tensors;
    size_t tensor_count;
    struct clip_rule rule;
    const double
        *flat; /* the same as clip_tensor.blocks for all gradients as one vector; NULL: likewise */
    int isa;   /* enum isa, already resolved, for the sums that `ops` has no op for; moves no bit */
    double
        *out_tensor_norm; /* (tensor_count) the norm of each tensor before clipping, or NULL. With
                             CLIP_FLAT too it is each tensor's own, in the dtype of the rule */
};

struct clip_result {
    double norm;        /* the global norm before clipping, replicas counted */
    double coefficient; /* 1 when max_norm is 0; with CLIP_COPY that of the copies */
};

/* Memory for what clip_ask asks of a backend and for its answers. */
struct clip_room {
    struct squares_args *asked;   /* (tensor_count + 1) */
    struct squares_piece *pieces; /* (tensor_count), in the backend's memory */
    double
        *blocks; /* squares_blocks() of each tensor and of all together, in the backend's memory */
};

/* Where the gradients lie in a backend's memory, asks the backend for all sums of squares that the
 * rule needs, by blocks of law 2 and in one call, and notes in `tensors` (which are clip->tensors)
 * and in `clip` where they will be. The caller waits for the backend before it calls
 * clip_gradients. In modes shuffled, atomic and order-free nothing is asked: there the ops make the
 * sums. */
void clip_ask(struct clip_call *clip, struct clip_tensor *tensors,
              void (*squares)(const struct squares_args *, size_t), const struct clip_room *room);

/* The sum of the squares of block `block` of law 2, in the type of the rule's sums: of tensor
 * `index`, or with CLIP_FLAT of all gradients as one vector. For who makes the blocks apart and
 * hands them to clip_gradients (clip_tensor.blocks, clip_call.flat); in modes shuffled, atomic and
 * order-free sums have no such blocks. */
double clip_block(const struct clip_call *clip, size_t index, size_t block);

/* Whether a tensor's sum is joined from sums in f64 of its blocks of law 2, which the caller may
 * hand in where it has them (clip_tensor.blocks). It asks for the storage of the first tensor. */
int clip_joins_blocks(const struct clip_call *clip);

/* Joins the sums of the blocks of `count` squares as law 2 does. `narrow`: the sums are in f32. */
double clip_join(const double *blocks, size_t count, int narrow);

/* Measures and clips. A norm that is not finite gives a coefficient of 0 or NaN, as in torch;
 * nothing is refused. Mode shuffled draws orders only for squares and norms in f64. */
void clip_gradients(const struct clip_call *clip, struct clip_result *out_result);

/* Whether the rule multiplies gradients by a coefficient that it gave, and that changes them. */
int clip_applies(const struct clip_rule *rule, double coefficient);

/* The coefficient that the rule gives for a norm of gradients stored as `storage`. */
double clip_coefficient(const struct clip_rule *rule, double norm, enum dtype storage);

#endif
