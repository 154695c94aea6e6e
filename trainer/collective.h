/* SPDX-License-Identifier: Apache-2.0
 * What becomes of the gradients of P ranks on their way to one: rounded to the dtype of the wire,
 * scaled, laid into messages, added in the order of a collective, taken apart and rounded to the
 * gradient's dtype (law 22 of docs/DETERMINISM.md). The keys parallel.* say how, ranks/ has the
 * arithmetic.
 *
 * It knows tensors by number and shape only, so recorded gradients of other programs pass through
 * it as those of a training do. Invariant: between two updates it carries nothing. */
#ifndef TWINSTEP_TRAINER_COLLECTIVE_H
#define TWINSTEP_TRAINER_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scenarios/config.h"

struct collective_tensor {
    uint64_t rows, row_length; /* FSDP2 cuts tensors by rows */
};

struct collective;

/* Opens the exchange of `count` tensors, in the order of Module.parameters(), whose gradients are
 * ready in the order `arrival` (NULL: from the last one to the first). `config` needs
 * parallel.ranks above 1 and dtypes that config_check accepts. STATUS_INPUT: a shape that
 * ranks/bucket.h refuses. */
TWINSTEP_MUST_USE enum status collective_open(const struct config *config,
                                              const struct collective_tensor *tensors, size_t count,
                                              const uint32_t *arrival, struct arena *arena,
                                              struct collective **out);

/* How many messages an update has, counted as in collective_begin(). Takes memory for the tensors
 * alone. */
TWINSTEP_MUST_USE enum status collective_messages(const struct config *config,
                                                  const struct collective_tensor *tensors,
                                                  size_t count, const uint32_t *arrival,
                                                  uint64_t update, struct arena *arena,
                                                  size_t *out);

/* Lays out the messages of an update, counted from 1 since the job started, because DDP lays them
 * out anew behind the first. Orders of arrival are drawn from `seed` at field `address` (law 10).
 */
TWINSTEP_MUST_USE enum status collective_begin(struct collective *collective, uint64_t update,
                                               uint64_t seed, uint32_t address);

/* Takes in the gradient of a tensor that `rank` has, in numerics.gradient. */
void collective_put(struct collective *collective, uint32_t rank, size_t tensor,
                    const float *gradient);

/* Adds what all ranks have put. */
TWINSTEP_MUST_USE enum status collective_add(struct collective *collective);

/* Writes the joined gradient of a tensor, in numerics.gradient. */
void collective_take(const struct collective *collective, size_t tensor, float *out);

#endif
