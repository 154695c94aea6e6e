/* SPDX-License-Identifier: Apache-2.0
 * The sums behind a read-back, made where the tensors are: by the backend
 * (kernels/readback_blocks.h), or here by the same arithmetic (base/rule_read.h) in the blocks of
 * law 2. Private to readback.c and to run_open.c, which takes the memory. */
#ifndef TWINSTEP_TRAINER_READBACK_SUMS_H
#define TWINSTEP_TRAINER_READBACK_SUMS_H

#include "kernels/readback_blocks.h"
#include "trainer/run.h"
#include "trainer/optimizer_input.h"

/* Writes the sums of each owner's tensor to `out`, behind which there is room for the blocks of all
 * tensors where there is a backend. Sums of the direction are 0 where the optimizer tells none, and
 * those of the optimizer input are 0 where `rule` is not INPUT_FROM_MOMENT. Waits for the backend.
 */
TWINSTEP_MUST_USE enum status readback_sums(struct run *run, const struct optim_call *call,
                                            const struct optimizer_input_rule *rule,
                                            struct readback_blocks_block *out);

/* Returns 1 when the sums put the directions of one tensor after another into run->direction. They
 * do not where the optimizer tells none, nor where a backend follows the rule of the direction. */
int readback_sums_needs_direction(const struct run *run);

#endif
