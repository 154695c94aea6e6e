/* SPDX-License-Identifier: Apache-2.0
 * What OLMo-core's schedules share. Private to sched/. */
#ifndef TWINSTEP_SCHED_OLMO_CORE_H
#define TWINSTEP_SCHED_OLMO_CORE_H

#include "sched/values.h"

#define OLMO_WARMUP_HELP "Learning rate where the warm-up starts"
#define OLMO_FLOOR_HELP "Share of the base rate that is left at the end (theirs: alpha_f)"

/* start + (peak - start) * c / W for c <= W; peak where W is 0. */
double olmo_warmup(const struct sched_call *call, double peak, double c, double start);

/* CosWithWarmup with the floor `eta`. */
double olmo_cosine(const struct sched_call *call, double c, double eta, double start);

/* Its own assertions: both lie under the base rate. */
TWINSTEP_MUST_USE enum status olmo_check_starts(const struct sched_call *call, double warmup_min_lr,
                                                double decay_min_lr);

#endif
