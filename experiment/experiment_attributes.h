/* SPDX-License-Identifier: Apache-2.0
 * Collects the attributes of an experiment's trace: what was asked, planned and found in the
 * environment. Private to the experiment. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_ATTRIBUTES_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_ATTRIBUTES_H

#include "experiment/experiment.h"
#include "experiment/experiment_plan.h"

/* A list that grows; experiment_describe reserves room for all that it adds. */
struct experiment_attributes {
    struct trace_attribute *list;
    uint32_t count;
};

TWINSTEP_MUST_USE enum status experiment_describe(const struct experiment_plan *plan,
                                                  const struct experiment_options *options,
                                                  struct arena *arena,
                                                  struct experiment_attributes *out);

#endif
