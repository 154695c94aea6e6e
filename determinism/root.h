/* SPDX-License-Identifier: Apache-2.0
 * Root k of a run: one digest of the run up to and with update k, over what update k did and root
 * k-1. So a chain can be recomputed from the columns of a trace, and two chains that are equal at k
 * are equal at every earlier update (chain.h).
 *
 * Counters and the LR of later updates are not in it: they act only through what is. */
#ifndef TWINSTEP_DETERMINISM_ROOT_H
#define TWINSTEP_DETERMINISM_ROOT_H

#include "determinism/digest.h"
#include "determinism/record.h"

/* Root 0 is 32 zero bytes. With the columns digest_batch, digest_rng, digest_weights and loss of
 * the record, and `applied` (below): root k = SHA-256 list "root" of (root k-1, batch, rng,
 * weights, applied, digest_bytes "loss" of the loss as f64). */
void root_next(const struct digest *previous, const struct record *record,
               const struct digest *applied, struct digest *out_root);

/* Digest of the LR that each tensor's update used, in table order: two groupings that apply the
 * same LR are alike. `groups`: one digit per tensor. */
void root_applied(const struct record *record, const char *groups, struct digest *out);

/* What phase `optimize` leaves as its digest. */
void root_optimize(const struct record *record, const struct digest *applied, struct digest *out);

#endif
