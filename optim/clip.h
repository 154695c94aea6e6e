/* SPDX-License-Identifier: Apache-2.0
 * Clipping by the global gradient norm, as torch.nn.utils.clip_grad_norm_ (law 7).
 *
 * norm = sqrt of an f64 chain, in table order, of each tensor's sum of squares (law 2, f64);
 * coefficient = f32(min(1, max_norm / (norm + 1e-6))); every gradient is multiplied by it, by 1
 * too, and the product is rounded to gradient storage. The caller's list holds a tied tensor once.
 */
#ifndef TWINSTEP_OPTIM_CLIP_H
#define TWINSTEP_OPTIM_CLIP_H

#include <stddef.h>

#include "kernels/op.h"

struct clip_tensor {
    void *gradient; /* carrier of `storage`, closed (law 4) */
    size_t count;
    enum dtype storage;
};

struct clip_call {
    const struct op_table *ops; /* of this backend; any pair will do */
    const struct op_call *call; /* threads, order, scratch; site, layer and side are set here */
    const struct clip_tensor *tensors;
    size_t tensor_count;
    double max_norm;         /* 0: measures only */
    double *out_tensor_norm; /* (tensor_count) norm of each tensor before clipping, or NULL */
};

struct clip_result {
    double norm;        /* before clipping */
    double coefficient; /* an f32 value; 1 when max_norm is 0 */
};

/* A norm that is not finite gives a coefficient of 0 or NaN, as in torch; nothing is refused. */
void clip_gradients(const struct clip_call *clip, struct clip_result *out_result);

#endif
