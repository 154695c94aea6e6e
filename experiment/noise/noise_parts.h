/* SPDX-License-Identifier: Apache-2.0
 * Gathers the differences of gradients by where they arose: by layer, in the order of the backward
 * pass, and by operation. It answers whether differences grow towards the first layers, which
 * hypothesis 24 of the open-instruct investigation says they do (docs/NOISE.md). Measures nothing
 * itself. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PARTS_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PARTS_H

#include "determinism/trend.h"
#include "experiment/noise/noise_path.h"

struct noise_part {
    char name[64]; /* "layer 3" or "self_attn.q_proj"; outside of layers, the tensor's name */
    uint32_t tensors, equal; /* tensors in it, and those that are equal in every repeat */
    double relative;         /* the largest of its tensors, and the largest ulp */
    int64_t ulp;
};

/* Both lists hold every tensor exactly once. */
struct noise_parts {
    struct noise_part *layers, *ops;
    uint32_t layer_count, op_count;
    struct trend growth;   /* whether `relative` grows towards layer 0, by trend_test */
    const char *no_growth; /* why there is no answer about growth; NULL: there is one */
};
#define NOISE_PARTS_ALPHA 0.01 /* p up to which the report says that differences grow */

TWINSTEP_MUST_USE enum status noise_parts_of(const struct noise_layout *layout,
                                             const struct noise_figures *figures,
                                             struct arena *arena, struct noise_parts *out);

#endif
