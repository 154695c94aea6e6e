/* SPDX-License-Identifier: Apache-2.0
 * Whether a generator's state goes on from an earlier one: torch's CPU generator, numpy's
 * RandomState and Python's random, which are all MT19937, and CUDA's Philox, which is a seed and an
 * offset. */
#ifndef TWINSTEP_READBACK_GENERATORS_H
#define TWINSTEP_READBACK_GENERATORS_H

#include "checkpoints/training_folder.h"

enum generator_state {
    GENERATOR_UNKNOWN = 0, /* no state that is known here */
    GENERATOR_EQUAL,       /* not one number was drawn in between */
    GENERATOR_CONTINUED,   /* `drawn` numbers were drawn */
    GENERATOR_ANEW,        /* the later state does not follow from the earlier, but is what `drawn`
                              numbers after seeding with `seed` leave */
    GENERATOR_OTHER        /* it follows from neither */
};

struct generator_step {
    enum generator_state state;
    uint64_t drawn; /* 32-bit numbers of MT19937; multiples of 4 offsets of Philox as they are */
    uint64_t seed;
};

/* States further apart than this many new keys of 624 numbers are not looked for: 20 million
 * numbers, which takes a tenth of a second. An update that draws more is told as GENERATOR_OTHER.
 */
#define GENERATOR_KEYS ((uint64_t)1 << 15)

struct generator_step generator_compare(const struct training_generator *earlier,
                                        const struct training_generator *later);

#endif
