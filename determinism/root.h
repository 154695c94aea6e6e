/* SPDX-License-Identifier: Apache-2.0
 * Root k of a run: one digest of the run up to and including update k, made of what update k did
 * and of root k-1. So a chain of roots can be recomputed from the columns of a trace, and two
 * chains that are equal at k are equal at every earlier update (chain.h).
 *
 * Counters and the LRs of later updates are not in it: they act only through what is. */
#ifndef TWINSTEP_DETERMINISM_ROOT_H
#define TWINSTEP_DETERMINISM_ROOT_H

#include <stdint.h>

struct digest;
struct record;

/* Computes root k from root k-1 (root 0 is 32 zero bytes) and the record's columns: digest_root
 * "root" of (root k-1, digest_batch, digest_rng, digest_weights, digest_lr, and digest_bytes "loss"
 * of the loss as f64). */
void root_next(const struct digest *previous, const struct record *record, struct digest *out_root);

/* Computes digest_lr, which hashes the lr_applied of each tensor in table order, so that two
 * groupings that apply the same LRs have equal digests. `groups` holds one digit for each tensor,
 * each below the record's number of groups. */
void root_lr(const struct record *record, const char *groups, struct digest *out);

/* Does the same with the groups of `count` tensors as numbers. */
void root_lr_groups(const struct record *record, const uint32_t *groups, uint32_t count,
                    struct digest *out);

/* Computes the digest of phase `optimize` from digest_weights and digest_lr. */
void root_optimize(const struct record *record, struct digest *out);

#endif
