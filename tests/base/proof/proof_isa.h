/* SPDX-License-Identifier: Apache-2.0
 * Words for the files that are compiled once per instruction set, TWINSTEP_PROOF_ISA. */
#ifndef TWINSTEP_TESTS_BASE_PROOF_PROOF_ISA_H
#define TWINSTEP_TESTS_BASE_PROOF_PROOF_ISA_H

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* A call that stays in a loop keeps the loop from being vectorised, which takes three times as
 * long. */
#define INLINE static inline __attribute__((always_inline))

#endif
