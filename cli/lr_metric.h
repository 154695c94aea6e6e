/* SPDX-License-Identifier: Apache-2.0
 * The metric of a feedback schedule, from the command line. */
#ifndef TWINSTEP_CLI_LR_METRIC_H
#define TWINSTEP_CLI_LR_METRIC_H

#include "cli/options.h"
#include "sched/contract.h"

/* `text`: values between commas (each may be UPDATE:VALUE; alone, the i-th stands after update
 * i * every), or FILE or FILE:COLUMN of any log that import reads; without a column eval_loss, else
 * the loss. STATUS_INPUT: a word that is no number, or a file without such a column. */
TWINSTEP_MUST_USE enum status lr_metric_read(const char *text, uint64_t every, struct arena *arena,
                                             struct contract_request *out);

#endif
