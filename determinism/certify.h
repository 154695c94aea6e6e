/* SPDX-License-Identifier: Apache-2.0
 * Checks the chain of a recorded run against its own columns, and names what was changed.
 *
 * Every root is recomputed from the recorded root before it and the columns it hashes (root.h).
 * Where it does not fit, the columns that the trace holds twice tell which one is wrong:
 * digest_batch is also phase fetch, digest_rng follows from the ledger, digest_lr from lr_applied,
 * digest_weights and digest_lr make phase optimize; sites make phase forward, gradients phase
 * backward. What is held once is found by exclusion. Detects change, not forgery: who changes a
 * column can compute the whole chain anew; the last root, kept elsewhere, tells then. */
#ifndef TWINSTEP_DETERMINISM_CERTIFY_H
#define TWINSTEP_DETERMINISM_CERTIFY_H

#include "determinism/digest.h"
#include "determinism/trace.h"

enum certify_state {
    CERTIFY_SOUND = 0,
    CERTIFY_BROKEN,
    CERTIFY_UNTESTABLE /* no update, or a trace of an earlier twinstep, without digest_weights */
};

struct certificate {
    enum certify_state state;
    uint64_t first, updates; /* first update recorded; how many */
    struct digest root;      /* after the last one, as recorded; zero without updates */
    uint64_t checked;        /* roots that were recomputed */
    int start_known;         /* 0: a run that forked from one that the trace does not hold up to
                                there: the root of its first update was not recomputed */
    uint64_t broken;         /* first update that does not fit; 0: none */
    const char *column;      /* what was changed there: "digest_weights", or several, "or" between;
                                "" unknown */
    const char *why;         /* how that is known, one clause */
};

/* The chain of `run`, of `image`. */
void certify_run(const struct trace_image *image, const struct trace_run *run,
                 struct certificate *out);

#endif
