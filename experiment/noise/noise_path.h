/* SPDX-License-Identifier: Apache-2.0
 * A path: what a short training leaves behind for a comparison to the bit. For every update these
 * are the loss, the digests of the forward's sites, all gradients before clipping and all weights
 * after.
 *
 * A path is one piece of memory without pointers, so that another process can hand it over. Two
 * paths have the same form when their parameter tables and dtypes are alike.
 * Invariant: figures describe the first update that differs, before which the two trainings were
 * equal to the bit; what comes later is only in the growth. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PATH_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PATH_H

#include "trainer/run.h"

struct noise_layout {
    uint64_t steps;
    uint32_t tensors, sites;
    const char **tensor_names, **site_names;
    size_t *offset; /* (tensors + 1) first element of each tensor, then their sum */
    enum dtype gradient, weight;
    const unsigned char *start; /* weights before the first update; NULL: they were not kept */
    size_t at_sites, at_norms, at_gradients, at_weights; /* byte offsets within an update */
    size_t update_bytes, bytes;
};

/* The numbers at the start of each update of a path. */
struct noise_head {
    double loss;
    double grad_norm; /* norm over all tensors, before clipping */
};

struct noise_growth {
    double loss;      /* |a - b| */
    double tensor;    /* largest |a - b| / |a| of a gradient's norm, over the tensors */
    double grad_norm; /* |a - b| / |a| */
    /* of the working weights: the masters, or the parameters where there are none */
    double distance;
    double share; /* distance / |a - a0|; NaN while a has not moved, or where a0 was not kept */
};

/* How far one tensor's gradient is apart at the first update that differs. */
struct noise_tensor {
    double relative; /* | |g| - |h| | / |g| */
    int64_t ulp;
    uint32_t differs; /* number of repeats in which at least one bit differs */
};

struct noise_figures {
    uint64_t first;        /* first update that differs; 0: all bits of all updates are equal */
    char first_place[160]; /* "forward model.layers.0...", "gradient ...", "update ..." */
    /* tensors, and how many are bit-equal at update max(first, 1) */
    uint32_t tensors, gradients_equal, updates_equal;
    int64_t gradient_ulp, weight_ulp; /* largest of that update */
    double tensor_relative;           /* largest | |g| - |h| | / |g| over tensors */
    char tensor_worst[96];
    double total_relative;       /* of the norm over all tensors */
    struct noise_growth *growth; /* (steps) */
    struct noise_tensor *tensor; /* (tensors) */
};

/* Describes the form of a run's path and copies its weights as they are now. Everything lives in
 * `arena`. STATUS_MEMORY: paths of so many updates have no size that fits. */
TWINSTEP_MUST_USE enum status noise_layout_open(const struct run *run, uint64_t steps,
                                                struct arena *arena, struct noise_layout *out);

/* The options of a run whose path is recorded. */
struct run_options noise_run_options(uint64_t steps, uint64_t order_seed);

/* Trains `run` by layout->steps updates from where it is and writes its path to `out`. */
TWINSTEP_MUST_USE enum status noise_path_take(const struct noise_layout *layout, struct run *run,
                                              const volatile int *interrupted, unsigned char *out);

/* Opens `config`, trains it, closes it; this is what a second process does. `out` lives in `arena`.
 */
TWINSTEP_MUST_USE enum status noise_path_train(const struct config *config, uint64_t steps,
                                               const volatile int *interrupted, struct arena *arena,
                                               size_t *out_size, unsigned char **out);

/* noise_figures_open makes figures without any comparison. noise_figures_add makes `into` the worse
 * of itself and of the comparison of two paths: smaller shares, larger distances, the earlier first
 * difference. */
TWINSTEP_MUST_USE enum status noise_figures_open(const struct noise_layout *layout,
                                                 struct arena *arena, struct noise_figures *out);
void noise_figures_add(const struct noise_layout *layout, const unsigned char *a,
                       const unsigned char *b, struct noise_figures *into);

/* A path and its form. */
struct noise_side {
    const struct noise_layout *layout;
    const unsigned char *path;
};

/* Compares two paths whose dtypes may differ: relative figures of update 1, and growth at every
 * update. `into` is fresh. Shares of equal tensors, ulps and the first difference have no meaning
 * across dtypes and stay 0. STATUS_INTERNAL: the paths have other tensors or other updates. */
TWINSTEP_MUST_USE enum status noise_figures_against(struct noise_side a, struct noise_side b,
                                                    struct noise_figures *into);

/* a - b|, and the same over |a|. Equal numbers, or two NaNs, are no distance apart; a number and a
 * NaN are infinitely far apart, so that no comparison loses a NaN. */
double noise_gap(double a, double b);
double noise_relative(double a, double b);

/* Distances by update and tensor, (steps, tensors): what the envelope of the perturbed run holds.
 */
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
