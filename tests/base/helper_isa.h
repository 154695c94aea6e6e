/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets that a test goes through. In a build with one set of objects for all of them
 * (base/isa_objects.h) a second one would be the same test again. */
#ifndef TWINSTEP_TESTS_BASE_HELPER_ISA_H
#define TWINSTEP_TESTS_BASE_HELPER_ISA_H

#include "kernels/op.h"

#ifdef TWINSTEP_ONE_ISA
#define HELPER_ISA_SETS 1
#else
#define HELPER_ISA_SETS 3
#endif

static inline int helper_has_own_objects(enum isa isa) {
    return HELPER_ISA_SETS > 1 || isa == ISA_BASE;
}

#endif
