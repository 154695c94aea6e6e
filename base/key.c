/* SPDX-License-Identifier: Apache-2.0
 * The names of the causes, by their numbers in enum cause. */
#include "base/key.h"

static const char *const names[CAUSE_COUNT] = {
    [CAUSE_SCHEDULE] = "schedule",
    [CAUSE_OPTIMIZER] = "optimizer",
    [CAUSE_DTYPE] = "dtype",
    [CAUSE_NONDETERMINISM] = "nondeterminism",
    [CAUSE_BATCH_SHAPE] = "batch-shape",
    [CAUSE_DATA_ORDER] = "data-order",
    [CAUSE_RNG] = "rng",
    [CAUSE_NORMALISATION] = "normalisation",
    [CAUSE_REFERENCE] = "reference",
    [CAUSE_MODEL] = "model",
    [CAUSE_PARALLELISM] = "parallelism",
    [CAUSE_RESUME] = "resume",
    [CAUSE_INIT] = "init",
    [CAUSE_OBJECTIVE] = "objective",
    [CAUSE_BACKWARD] = "backward",
    [CAUSE_CORRUPTION] = "corruption",
};

const char *cause_name(enum cause cause) {
    return names[cause];
}
