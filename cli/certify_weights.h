/* SPDX-License-Identifier: Apache-2.0
 * `twinstep certify TRACE --at K --weights FOLDER`: are these the weights that the run had after
 * update K? */
#ifndef TWINSTEP_CLI_CERTIFY_WEIGHTS_H
#define TWINSTEP_CLI_CERTIFY_WEIGHTS_H

#include "base/arena.h"
#include "cli/certify_print.h"

/* Computes the digest of every tensor in the folder or file anew, in the kind that the run
 * recorded, holds them against those after update K, which `at` says, and prints what is not equal;
 * *out_words counts the tensors.
 * The exit status is 0 if all are equal, 1 if one is not, 3 if all that the folder has are equal
 * and it lacks some. */
TWINSTEP_MUST_USE enum status certify_weights(const struct certify_side *side, const char *at,
                                              const char *folder, int as_json, struct arena *arena,
                                              char **out_words, int *out_exit);

#endif
