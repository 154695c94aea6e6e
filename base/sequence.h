/* SPDX-License-Identifier: Apache-2.0
 * Where the tokens of one sequence lie in the buffers of a micro-batch.
 *
 * The data side lays sequences out in rows, and kernels visit them; this struct is what the two
 * have in common, so that neither has to know the other. nvcc reads this header, too. */
#ifndef TWINSTEP_BASE_SEQUENCE_H
#define TWINSTEP_BASE_SEQUENCE_H

#include <stdint.h>

/* A sequence's real tokens are physical rows row .. row + length - 1 of every activation buffer. */
struct sequence {
    uint32_t row;
    uint32_t length; /* in tokens, padding not counted */
    uint32_t sample; /* in the update */
    uint32_t side;   /* 0 chosen or only, 1 rejected */
};

#endif
