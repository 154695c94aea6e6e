/* SPDX-License-Identifier: Apache-2.0
 * One mode and dtype of a configuration: set up, then measured. What cannot be measured says why.
 */
#ifndef TWINSTEP_CLI_NOISE_CASE_H
#define TWINSTEP_CLI_NOISE_CASE_H

#include "cli/noise_report.h"

/* `config` becomes one->mode and one->dtype. Threads 0: the configuration's own, in mode atomic at
 * least 2, since threads that race need another one. STATUS_INPUT: a name that is none. */
TWINSTEP_MUST_USE enum status noise_case_set_up(const struct noise_case *one, uint64_t threads,
                                                struct config *config);

/* Fills one->table, or one->untestable. request->config is one->config. */
TWINSTEP_MUST_USE enum status noise_case_measure(const struct noise_request *request,
                                                 struct arena *arena, struct noise_case *one);

#endif
