/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets that a test goes through. In a build where two of them share one set of objects
 * (base/isa_objects.h) the second one would be the same test again. */
#ifndef TWINSTEP_TESTS_BASE_HELPER_ISA_H
#define TWINSTEP_TESTS_BASE_HELPER_ISA_H

#include "base/isa_objects.h"
#include "kernels/op.h"

#ifdef TWINSTEP_ONE_ISA
#define HELPER_ISA_SETS 1
#elif defined(TWINSTEP_WIDEST)
#define HELPER_ISA_SETS 2
#else
#define HELPER_ISA_SETS 3
#endif

/* The set whose objects serve a set: HELPER_SET_base is the word for ISA_BASE, and so on. */
enum { HELPER_SET_base = ISA_BASE, HELPER_SET_v3 = ISA_V3, HELPER_SET_v4 = ISA_V4 };
static inline enum isa helper_objects_of(enum isa isa) {
    if (isa == ISA_V3) return (enum isa)OBJECTS_OF(HELPER_SET, OBJECTS_V3);
    if (isa == ISA_V4) return (enum isa)OBJECTS_OF(HELPER_SET, OBJECTS_V4);
    return isa;
}

static inline int helper_has_own_objects(enum isa isa) {
    return helper_objects_of(isa) == isa && (HELPER_ISA_SETS > 1 || isa == ISA_BASE);
}

#endif
