/* SPDX-License-Identifier: Apache-2.0
 * Finds the first difference of two trainings: update, phase, operation, tensor, element, ulp.
 *
 * The update is found by chained roots: recorded ones by bisection (determinism/chain.h), otherwise
 * by training both side by side. Then both go back to the state before it (a stored one, or trained
 * to) and train it twice more under a watch: once for digests of every operation's outputs, and
 * once to keep the one tensor that differs first. All tensors are never dumped.
 * Invariant: what is reported was seen in both of two passes; else the result is `undecided`. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_H

#include "determinism/trace.h"
#include "experiment/locate/locate_capture.h"
#include "experiment/locate/signature.h"
#include "trainer/run_tensors.h"

struct locate_side {
    const char *name;            /* "baseline", or "a.h5: baseline" */
    const struct config *config; /* with its order seed resolved */
    const char *path;            /* path of the trace; NULL: nothing is recorded */
    const struct trace_run *recorded;
};

struct locate_progress {
    uint64_t done, total; /* updates of both sides; `total` is an upper bound */
};

struct locate_request {
    struct locate_side sides[2]; /* both of them recorded, or neither */
    uint64_t steps;              /* updates that are compared */
    /* May be NULL; sees every view of that side before it is digested, so that tests can disturb it
     * there. */
    struct watch *before[2];
    const volatile int *interrupted;                                         /* may be NULL */
    void (*progress)(void *context, const struct locate_progress *progress); /* may be NULL */
    void *context;
};

struct locate_result {
    uint64_t steps;  /* updates that were compared */
    uint64_t update; /* the first update that differs; 0: none does */
    int recorded;
    uint32_t comparisons; /* comparisons of roots that it took to find it */
    /* updates trained to find it and to reach it; those under a watch come on top */
    uint64_t trained[2];
    /* the update after which the stored state used was taken; only with `stored` */
    uint64_t restored[2];
    int stored[2];         /* a stored state was used */
    const char *undecided; /* why there is no answer; NULL: there is one */
    struct locate_first first;
    uint32_t micro;         /* micro-batch of A; 0: written once per update */
    int value;              /* `element` is filled in */
    struct watch_view view; /* view of the tensor, without its memory */
    enum dtype dtype[2];
    struct locate_element element;
    uint32_t sides;     /* sides of a sample: 1, or 2 for chosen and rejected */
    uint64_t events[2]; /* number of outputs that were watched */
    struct signature signature;
    double lr[2]; /* LR of group 0 that the update applied */
    /* row of the data set that element.sample is in each; only with `has_data` */
    uint64_t data_row[2];
    int has_data;
};

/* Locates the first difference of request->sides. Everything in `out` lives in `arena`. That no
 * difference is found, or that there is no answer, is no error. */
TWINSTEP_MUST_USE enum status locate_first_difference(const struct locate_request *request,
                                                      struct arena *arena,
                                                      struct locate_result *out);

/* One update of two runs that are open: the states before it, and the roots that it must end in. */
struct locate_update {
    struct run *runs[2];
    const struct run_kept *states[2];
    const uint8_t *roots[2];
    uint64_t update;
};

/* Locates the first difference within one update of request->sides, watching it once; the tensor is
 * named and its elements are not compared. The result is `undecided` unless both end in their
 * roots. The runs are left somewhere in their training. Everything in `out` lives in `arena`. */
TWINSTEP_MUST_USE enum status locate_in_update(const struct locate_request *request,
                                               const struct locate_update *at, struct arena *arena,
                                               struct locate_result *out);

#endif
