/* SPDX-License-Identifier: Apache-2.0
 * Gradients' differences gathered by where they arose: by layer, in the order of the backward pass
 * (growth towards early layers: hypothesis 24 of the open-instruct investigation), and by op. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PARTS_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PARTS_H

#include "determinism/trend.h"
#include "experiment/noise/noise_path.h"

struct noise_part {
    char name[64]; /* "layer 3"; "self_attn.q_proj"; outside of layers the tensor's name */
    uint32_t tensors, equal; /* in every repeat */
    double relative;         /* largest, and its ulp */
    int64_t ulp;
};

/* Both lists hold every tensor once. */
struct noise_parts {
    struct noise_part *layers, *ops;
    uint32_t layer_count, op_count;
    struct trend growth;   /* of `relative` towards layer 0, by trend_test */
    const char *no_growth; /* why there is none; NULL: there is */
};
#define NOISE_PARTS_ALPHA 0.01 /* p of what is said to grow */

TWINSTEP_MUST_USE enum status noise_parts_of(const struct noise_layout *layout,
                                             const struct noise_figures *figures,
                                             struct arena *arena, struct noise_parts *out);

#endif
