/* SPDX-License-Identifier: Apache-2.0
 * What a short training leaves behind for a comparison to the bit: of every update the loss, the
 * digests of the forward's sites, all gradients before clipping and all weights after.
 *
 * A path is one piece of memory without pointers, so that another process can hand it over. Two
 * paths have the same form when their parameter tables and dtypes are alike.
 * Invariant: figures are those of the first update that differs, before which the two trainings
 * were equal to the bit; what comes later is only in the growth. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PATH_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PATH_H

#include "trainer/run.h"

struct noise_layout {
    uint64_t steps;
    uint32_t tensors, sites;
    const char **tensor_names, **site_names;
    size_t *offset; /* (tensors + 1) first element of each tensor */
    enum dtype gradient, weight;
    const unsigned char *start; /* weights before the first update; NULL: not kept */
    size_t at_sites, at_norms, at_gradients, at_weights; /* bytes from the start of an update */
    size_t update_bytes, bytes;
};

/* Of one update of a path. */
struct noise_head {
    double loss;
    double grad_norm; /* over all tensors, before clipping */
};

struct noise_growth {
    double loss;      /* |a - b| */
    double tensor;    /* largest |a - b| / |a| of a gradient's norm over tensors */
    double grad_norm; /* |a - b| / |a| */
    double distance;  /* of the working weights: masters, or parameters without them */
    double share;     /* distance / |a - a0|; NaN while a has not moved, or a0 was not kept */
};

/* Of one tensor's gradient, at the first update that differs. */
struct noise_tensor {
    double relative; /* | |g| - |h| | / |g| */
    int64_t ulp;
    uint32_t differs; /* repeats in which a bit did */
};

struct noise_figures {
    uint64_t first;        /* update; 0: all bits of all updates are equal */
    char first_place[160]; /* "forward model.layers.0...", "gradient ...", "update ..." */
    uint32_t tensors, gradients_equal, updates_equal; /* of update max(first, 1) */
    int64_t gradient_ulp, weight_ulp;                 /* largest, of that update */
    double tensor_relative;                           /* largest | |g| - |h| | / |g| over tensors */
    char tensor_worst[96];
    double total_relative;       /* of the norm over all tensors */
    struct noise_growth *growth; /* (steps) */
    struct noise_tensor *tensor; /* (tensors) */
};

/* The form of a run's path, and its weights as they are now. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_layout_open(const struct run *run, uint64_t steps,
                                                struct arena *arena, struct noise_layout *out);

/* Options of a run whose path is taken. */
struct run_options noise_run_options(uint64_t steps, uint64_t order_seed);

/* Steps a run `layout->steps` updates from where it is. */
TWINSTEP_MUST_USE enum status noise_path_take(const struct noise_layout *layout, struct run *run,
                                              const volatile int *interrupted, unsigned char *out);

/* Opens `config`, steps it, closes it. What a second process does. */
TWINSTEP_MUST_USE enum status noise_path_train(const struct config *config, uint64_t steps,
                                               const volatile int *interrupted, struct arena *arena,
                                               size_t *out_size, unsigned char **out);

/* Makes `into` the worse of itself and of the comparison of two paths: smaller shares, larger
 * distances, the earlier first difference. A fresh `into` comes from noise_figures_open. */
TWINSTEP_MUST_USE enum status noise_figures_open(const struct noise_layout *layout,
                                                 struct arena *arena, struct noise_figures *out);
void noise_figures_add(const struct noise_layout *layout, const unsigned char *a,
                       const unsigned char *b, struct noise_figures *into);

/* A path and its form. */
struct noise_side {
    const struct noise_layout *layout;
    const unsigned char *path;
};

/* Two paths whose dtypes may differ: relative figures of update 1, growth of every update; `into`
 * is fresh. Shares of equal tensors, ulps and the first difference are of one dtype and stay 0.
 * STATUS_INTERNAL: other tensors, other updates. */
TWINSTEP_MUST_USE enum status noise_figures_against(struct noise_side a, struct noise_side b,
                                                    struct noise_figures *into);

/* |a - b|: equal numbers, or two NaNs, are no distance apart; a number and a NaN infinitely far.
 * Relative: over |a|. */
double noise_gap(double a, double b);
double noise_relative(double a, double b);

/* The same by update and tensor, (steps, tensors): what the twin's envelope holds. */
struct noise_perturbed {
    double *gradient; /* | |g| - |h| | / |g| */
    double *distance; /* |a - b| of the weights */
};
TWINSTEP_MUST_USE enum status noise_perturbed_of(const struct noise_layout *layout,
                                                 const unsigned char *a, const unsigned char *b,
                                                 struct arena *arena, struct noise_perturbed *out);

struct noise_head noise_head_of(const struct noise_layout *layout, const unsigned char *path,
                                uint64_t update);

#endif
