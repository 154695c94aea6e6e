/* SPDX-License-Identifier: Apache-2.0
 * kernels/exponentials.h, per instruction set. Numbers are f64, so only the f64 pair has a use for
 * it. */
#include "kernels/cpu/exponential_pieces.h"

#include "base/real.h"
#include "base/variant.h"
#include "kernels/cpu/call.h"

#ifdef TWINSTEP_CARRIER_f64
void VARIANT(exponential_pieces)(double *numbers, size_t count) {
    EACH for (size_t i = 0; i < count; i++) {
        numbers[i] = real_exp_f64(numbers[i]);
    }
}
#else
typedef int VARIANT(exponential_pieces_unused); /* a translation unit is not empty */
#endif
