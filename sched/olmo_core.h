/* SPDX-License-Identifier: Apache-2.0
 * What OLMo-core's schedules share: two help texts, the warm-up, the cosine and a check. Private to
 * sched/. Source: OLMo-core olmo_core/optim/scheduler.py at fa6c5014c (3.0.0). */
#ifndef TWINSTEP_SCHED_OLMO_CORE_H
#define TWINSTEP_SCHED_OLMO_CORE_H

#include "sched/values.h"

#define OLMO_WARMUP_HELP "Learning rate where the warm-up starts"
#define OLMO_FLOOR_HELP "Share of the base rate that is left at the end (theirs: alpha_f)"

/* The rate start + (peak - start) * c / W in the warm-up, for c <= W; `peak` where W is 0
 * (_linear_warmup). */
double olmo_warmup(const struct sched_call *call, double peak, double c, double start);

/* CosWithWarmup with the floor `eta`: warm-up, then eta + (L - eta) (1 + cos(pi p)) / 2, then
 * eta. */
double olmo_cosine(const struct sched_call *call, double c, double eta, double start);

/* Refuses what OLMo-core's own assertions refuse: both rates must lie under the base rate. */
TWINSTEP_MUST_USE enum status olmo_check_starts(const struct sched_call *call, double warmup_min_lr,
                                                double decay_min_lr);

#endif
