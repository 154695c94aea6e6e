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

/* Root 0 is 32 zero bytes. Of the record's columns: root k = digest_root "root" of (root k-1,
 * digest_batch, digest_rng, digest_weights, digest_lr, digest_bytes "loss" of the loss as f64). */
void root_next(const struct digest *previous, const struct record *record, struct digest *out_root);

/* digest_lr: of the lr_applied that each tensor had, in table order, so that two groupings that
 * apply the same LR are alike. `groups`: one digit per tensor, each below the record's groups. */
void root_lr(const struct record *record, const char *groups, struct digest *out);

/* What phase `optimize` leaves as its digest: of digest_weights and digest_lr. */
void root_optimize(const struct record *record, struct digest *out);

#endif
