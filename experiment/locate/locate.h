/* SPDX-License-Identifier: Apache-2.0
 * The first difference of two trainings: update, phase, op, tensor, element, ulp.
 *
 * The update is found by chained roots: recorded ones by bisection (determinism/chain.h), otherwise
 * by training both side by side. Then both go back to the state before it (a stored one, or trained
 * to) and run it twice more under a watch: once for digests of every op's outputs, once to keep the
 * one tensor that differs first. No dump of all tensors is ever made.
 * Invariant: what is reported was seen in both of two passes; else the result is `undecided`. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_H

#include "determinism/trace.h"
#include "experiment/locate/locate_capture.h"
#include "experiment/locate/signature.h"
#include "trainer/run.h"

struct locate_side {
    const char *name;            /* "baseline", or "a.h5: baseline" */
    const struct config *config; /* order seed resolved */
    const char *path;            /* of the trace; NULL: nothing is recorded */
    const struct trace_run *recorded;
};

struct locate_progress {
    uint64_t done, total; /* updates of both sides; total is an upper bound */
};

struct locate_request {
    struct locate_side sides[2]; /* both recorded, or neither */
    uint64_t steps;              /* updates that are looked at */
    /* May be NULL: sees every view of that side before it is digested (tests disturb there). */
    struct watch *before[2];
    const volatile int *interrupted;                                         /* may be NULL */
    void (*progress)(void *context, const struct locate_progress *progress); /* may be NULL */
    void *context;
};

struct locate_result {
    uint64_t steps;  /* updates that were looked at */
    uint64_t update; /* the first that differs; 0: none */
    int recorded;
    uint32_t comparisons;  /* of roots, to find it */
    uint64_t trained[2];   /* updates, to find it and to reach it; the watched ones besides */
    uint64_t restored[2];  /* stored state of which update; meaningful with `stored` */
    int stored[2];         /* a stored state was used */
    const char *undecided; /* NULL, or why there is no answer */
    struct locate_first first;
    uint32_t micro;         /* of A; 0: once per update */
    int value;              /* `element` is there */
    struct watch_view view; /* of the tensor, without memory */
    enum dtype dtype[2];
    struct locate_element element;
    uint32_t sides;     /* of a sample: 1, or 2 chosen and rejected */
    uint64_t events[2]; /* outputs that were watched */
    struct signature signature;
    double lr[2];         /* applied in the update, group 0 */
    uint64_t data_row[2]; /* of the data set, of element.sample in each; with `has_data` */
    int has_data;
};

/* Everything of `out` lives in `arena`. */
TWINSTEP_MUST_USE enum status locate_first_difference(const struct locate_request *request,
                                                      struct arena *arena,
                                                      struct locate_result *out);

#endif
