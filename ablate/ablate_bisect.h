/* SPDX-License-Identifier: Apache-2.0
 * The search of bisect-command: of versions in an order, the first that is outside the floor of the
 * first one, found by halving. Judges pairs as an ablation judges its arms (ablate_judge.h).
 *
 * What is found is a pair of neighbours, one inside and the next outside, and both were run. It is
 * the only such pair if what went out stays out; that is not tested. Where so few equal runs could
 * be chance (ablate_chance.h), the two are run again until that is rarer than alpha. */
#ifndef TWINSTEP_ABLATE_ABLATE_BISECT_H
#define TWINSTEP_ABLATE_ABLATE_BISECT_H

#include "ablate/ablate_judge.h"

struct bisect_probe {
    size_t version;                /* its index */
    struct ablate_verdict verdict; /* against the first version */
};

struct bisect_verdict {
    int ready;                     /* 0: runs are missing that were not tried; `wanted` has them */
    enum ablate_verdict_kind kind; /* ABLATE_OUTSIDE: found; ABLATE_INSIDE: the last is inside */
    const char *reason;            /* of ABLATE_UNTESTABLE, else "" */
    size_t inside, outside;        /* the last that is inside, the first that is outside */
    size_t open;   /* versions between these two that cannot be judged; 0: they are neighbours */
    double chance; /* of what was found over exact floors, as in struct ablate_verdict; else NaN */
    struct bisect_probe *probes; /* in the order in which they were judged */
    size_t probe_count;
};

/* Judges what is there and marks the runs that the next step needs. */
TWINSTEP_MUST_USE enum status bisect_judge(const struct ablate_plan *plan,
                                           const struct ablate_result *results, struct arena *arena,
                                           unsigned char *wanted, struct bisect_verdict *out);

#endif
