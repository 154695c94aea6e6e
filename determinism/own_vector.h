/* SPDX-License-Identifier: Apache-2.0
 * own_canonical_f32 (determinism/own_bits.h) of eight or sixteen words at once, for the packing of
 * carriers and for leaf hashes. */
#ifndef TWINSTEP_DETERMINISM_OWN_VECTOR_H
#define TWINSTEP_DETERMINISM_OWN_VECTOR_H

#include "determinism/own_bits.h"

#define OWN_VECTOR 8
typedef uint32_t own_words __attribute__((vector_size(OWN_VECTOR * sizeof(uint32_t))));
typedef int32_t own_signs __attribute__((vector_size(OWN_VECTOR * sizeof(int32_t))));
typedef uint32_t own_words_wide __attribute__((vector_size(2 * OWN_VECTOR * sizeof(uint32_t))));
typedef int32_t own_signs_wide __attribute__((vector_size(2 * OWN_VECTOR * sizeof(int32_t))));

/* Replaces each NaN by the canonical one. Magnitudes are below 2^31, so a signed comparison gives
 * the right answer; plain x86-64 has no unsigned one. It is a macro, because the calling convention
 * of a function that takes vectors by value depends on the instruction set. */
#define OWN_CANONICAL(words) OWN_CANONICAL_OF(own_words, own_signs, words)
#define OWN_CANONICAL_OF(type, signs, words)                                                       \
    do {                                                                                           \
        const type nan_ = (type)((signs)((words)&0x7FFFFFFFu) > (int32_t)OWN_INFINITE_F32);        \
        (words) = ((words) & ~nan_) | (nan_ & OWN_QUIET_F32);                                      \
    } while (0)

#endif
