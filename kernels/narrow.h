/* SPDX-License-Identifier: Apache-2.0
 * The rounding of a conversion, once for the host and once for the device: NARROW(words, name,
 * type, bits) defines `name`, which rounds a number of `type` once to a dtype that is stored as a
 * float. A number that already fits the dtype stays as it is. `words` go in front of the function,
 * and `bits` is the type in the names of base/real.h. */
#ifndef TWINSTEP_KERNELS_NARROW_H
#define TWINSTEP_KERNELS_NARROW_H

#define NARROW(words, name, type, bits)                                                            \
    words float name(type x, enum dtype dtype) {                                                   \
        if (dtype == DTYPE_BF16) return real_round_bf16_##bits(x);                                 \
        if (dtype == DTYPE_F16) return real_round_f16_##bits(x);                                   \
        if (dtype == DTYPE_TF32) return real_round_tf32_##bits(x);                                 \
        if (dtype == DTYPE_E4M3) return real_round_e4m3_##bits(x);                                 \
        if (dtype == DTYPE_E5M2) return real_round_e5m2_##bits(x);                                 \
        return (float)x;                                                                           \
    }

#endif
