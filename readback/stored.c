/* SPDX-License-Identifier: Apache-2.0
 * Widths are those of the dtype itself (dtype_width), not of its carrier. */
#include "readback/stored.h"

#include <math.h>
#include <string.h>

#include "base/real_basic.h"

static double of_bf16(uint16_t bits) {
    return (double)real_from_bits_f32((uint32_t)bits << 16);
}

/* Subnormal numbers are multiples of 2^-24; an exponent of 31 marks infinities and NaNs. */
static double of_f16(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = (bits >> 10) & 31u;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) return (sign != 0 ? -0x1p-24 : 0x1p-24) * (double)fraction;
    const uint32_t biased = exponent == 31 ? 255u : exponent + 112u;
    return (double)real_from_bits_f32(sign | biased << 23 | fraction << 13);
}

static void get_halves(const struct stored *numbers, uint64_t first, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, numbers->bytes + (first + i) * sizeof bits, sizeof bits);
        out[i] = numbers->dtype == DTYPE_BF16 ? of_bf16(bits) : of_f16(bits);
    }
}

void stored_get(const struct stored *numbers, uint64_t first, size_t count, double *out) {
    if (numbers->bytes == NULL) {
        memset(out, 0, count * sizeof *out);
    } else if (numbers->dtype == DTYPE_F64) {
        memcpy(out, numbers->bytes + first * sizeof *out, count * sizeof *out);
    } else if (numbers->dtype == DTYPE_F32) {
        for (size_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, numbers->bytes + (first + i) * sizeof value, sizeof value);
            out[i] = (double)value;
        }
    } else {
        get_halves(numbers, first, count, out);
    }
}

/* dtype_spacing() is the distance to the next number away from zero, and counts a subnormal as the
 * smallest normal number, whose spacing it shares. Towards zero the distance is half of that for a
 * power of two, unless the number below is spaced alike. */
struct stored_interval stored_interval(enum dtype dtype, double value) {
    const double size = fabs(value), up = dtype_spacing(size, dtype);
    const int is_power = (real_bits_f64(size) & UINT64_C(0x000fffffffffffff)) == 0;
    const double down = is_power && size > dtype_smallest(dtype) ? up / 2 : up;
    struct stored_interval out = {size - down / 2, size + up / 2};
    if (signbit(value)) out = (struct stored_interval){-out.high, -out.low};
    return out;
}
