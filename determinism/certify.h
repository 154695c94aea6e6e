/* SPDX-License-Identifier: Apache-2.0
 * Checks the chain of a recorded run against its own columns, and names what was changed.
 *
 * Every root is recomputed from the recorded root before it and from the columns that it hashes
 * (root.h). If it does not fit, the columns that the trace holds twice tell which one is wrong:
 * digest_batch is also the digest of phase fetch, digest_rng follows from the ledger, digest_lr
 * follows from lr_applied, digest_weights and digest_lr make the digest of phase optimize,
 * activations make that of phase forward, and gradients that of phase backward. A column that is
 * held once is found by exclusion. The check detects change, not forgery: whoever changes a column
 * can compute the whole chain anew, and then only the last root, kept elsewhere, tells. */
#ifndef TWINSTEP_DETERMINISM_CERTIFY_H
#define TWINSTEP_DETERMINISM_CERTIFY_H

#include "determinism/digest.h"

struct trace_image;
struct trace_run;

enum certify_state {
    CERTIFY_SOUND = 0,
    CERTIFY_BROKEN,
    /* there is no update, an earlier twinstep wrote the trace, without digest_weights, or a row
     * that another program wrote lacks what its root is made of */
    CERTIFY_UNTESTABLE
};

#define CERTIFY_WHY 320

struct certificate {
    enum certify_state state;
    uint64_t first, updates; /* the first recorded update, and how many there are */
    struct digest root;      /* the root after the last update, as recorded; zero without updates */
    uint64_t checked;        /* number of roots that were recomputed */
    /* 0 if the run forked from one that the trace does not hold up to there; then the root of its
     * first update was not recomputed */
    int start_known;
    uint64_t broken; /* the first update that does not fit; 0 if all do */
    /* what was changed there: "digest_weights", or several names joined by "or"; "" if unknown */
    const char *column;
    char why[CERTIFY_WHY]; /* how that is known, or why there is no chain, in one clause */
};

/* Checks the chain of `run`, which belongs to `image`. */
void certify_run(const struct trace_image *image, const struct trace_run *run,
                 struct certificate *out);

/* Says which update of a foreign run has no root, and for want of what, as a clause; "" where every
 * update has one. */
void certify_lack(const struct trace_run *run, char out_text[CERTIFY_WHY]);

#endif
