/* SPDX-License-Identifier: Apache-2.0
 * Faults for the proof of localisation: in one update of one of two equal trainings, one element of
 * one op's output is disturbed, drawn by number from everything that a watch sees.
 *
 * The finder gets two configurations and a watch that it calls without knowing what it does; the
 * label stays here and is compared with what was found. A fault after which both trainings still
 * have the same root in every update (its bit was rounded away) makes no difference: it is counted,
 * checked to have left the same parameters, and drawn again. */
#ifndef TWINSTEP_TESTS_EXPERIMENT_LOCATE_HELPER_FAULT_H
#define TWINSTEP_TESTS_EXPERIMENT_LOCATE_HELPER_FAULT_H

#include <stdint.h>

enum fault_class {
    FAULT_FORWARD = 0,
    FAULT_BACKWARD,
    FAULT_OPTIMIZER, /* clip and optimize */
    FAULT_RNG,       /* what a generator starts from */
    FAULT_DATA,
    FAULT_CLASSES
};

enum fault_change { FAULT_UP = 0, FAULT_DOWN, FAULT_SOME, FAULT_SIGN, FAULT_CHANGES };

/* The score of one class and one kind of change. `exact` counts faults whose update, phase,
 * micro-batch, layer, op and tensor are found; `element` those whose element and both values are
 * found, too. */
struct fault_score {
    uint32_t faults, found, exact, element, redrawn;
};

/* Plants `count` faults, from number `first` on, and looks for them; prints each that was missed.
 */
void helper_faults(uint64_t seed, uint32_t first, uint32_t count,
                   struct fault_score by_class[FAULT_CLASSES],
                   struct fault_score by_change[FAULT_CHANGES], struct fault_score *total);

void helper_faults_print(const struct fault_score by_class[FAULT_CLASSES],
                         const struct fault_score by_change[FAULT_CHANGES],
                         const struct fault_score *total);

#endif
