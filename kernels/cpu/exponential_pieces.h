/* SPDX-License-Identifier: Apache-2.0
 * The function of kernels/exponentials.h, one for each instruction set. */
#ifndef TWINSTEP_KERNELS_CPU_EXPONENTIAL_PIECES_H
#define TWINSTEP_KERNELS_CPU_EXPONENTIAL_PIECES_H

#include <stddef.h>

typedef void exponential_pieces(double *numbers, size_t count);

#define EXPONENTIAL_PIECES_OF(variant) exponential_pieces exponential_pieces_##variant;
#define EXPONENTIAL_PIECES(variant) EXPONENTIAL_PIECES_OF(variant)

#if defined(TWINSTEP_VARIANT)
EXPONENTIAL_PIECES(TWINSTEP_VARIANT)
#endif

#endif
