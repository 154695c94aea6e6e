/* SPDX-License-Identifier: Apache-2.0
 * The sums behind a read-back, made where the tensors are: by the backend (kernels/reads.h), or
 * here by the same arithmetic (base/rule_read.h) and blocks of law 2. Private to readback.c and to
 * run.c, which takes the memory. */
#ifndef TWINSTEP_TRAINER_READBACK_SUMS_H
#define TWINSTEP_TRAINER_READBACK_SUMS_H

#include "kernels/reads.h"
#include "trainer/run.h"
#include "trainer/optimizer_input.h"

/* out: of each owner's tensor, then room for the blocks of all where there is a backend. Sums of
 * the direction are 0 where the optimizer tells none, those of what was taken in where `rule` is
 * not INPUT_FROM_MOMENT. Waits for the backend. */
TWINSTEP_MUST_USE enum status readback_sums(struct run *run, const struct optim_call *call,
                                            const struct optimizer_input_rule *rule,
                                            struct reads_block *out);

/* Whether they put the directions of one tensor after another into run->direction: not where the
 * optimizer tells none, nor where a backend follows their rule. */
int readback_sums_needs_direction(const struct run *run);

#endif
