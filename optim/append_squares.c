/* SPDX-License-Identifier: Apache-2.0
 * Chooses the loop of optim/cpu/squares.c for an instruction set. It holds no arithmetic; the
 * choice moves no bit. */
#include "optim/append_squares.h"

#include "kernels/op.h"

#define DECLARE(variant) void optim_squares_##variant(const void *, size_t, void *);
#define ROW(pair)                                                                                  \
    {                                                                                              \
        [ISA_AUTO] = optim_squares_##pair##_base, [ISA_BASE] = optim_squares_##pair##_base,        \
        [ISA_V3] = optim_squares_##pair##_v3, [ISA_V4] = optim_squares_##pair##_v4                 \
    }

DECLARE(f32_f32_base)
DECLARE(f32_f32_v3)
DECLARE(f32_f32_v4)
DECLARE(f32_f64_base)
DECLARE(f32_f64_v3)
DECLARE(f32_f64_v4)
DECLARE(f64_f64_base)
DECLARE(f64_f64_v3)
DECLARE(f64_f64_v4)

typedef void (*squares_function)(const void *, size_t, void *);

static const squares_function narrow[ISA_COUNT] = ROW(f32_f32);
static const squares_function mixed[ISA_COUNT] = ROW(f32_f64);
static const squares_function wide[ISA_COUNT] = ROW(f64_f64);

void optim_append_squares_f32(const float *values, size_t count, int isa,
                              struct sum_lanes_f32 *lanes) {
    narrow[isa](values, count, lanes);
}

void optim_append_squares_f32_f64(const float *values, size_t count, int isa,
                                  struct sum_lanes_f64 *lanes) {
    mixed[isa](values, count, lanes);
}

void optim_append_squares_f64(const double *values, size_t count, int isa,
                              struct sum_lanes_f64 *lanes) {
    wide[isa](values, count, lanes);
}
