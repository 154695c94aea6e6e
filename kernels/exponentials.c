/* SPDX-License-Identifier: Apache-2.0
 * Calls the function of the widest instruction set of this machine. */
#include "kernels/exponentials.h"

#include "base/isa_objects.h"
#include "kernels/cpu/exponential_pieces.h"
#include "kernels/op.h"

#define F64(isa) OBJECTS_OF(f64_f64, isa)
EXPONENTIAL_PIECES(F64(base))
EXPONENTIAL_PIECES(F64(OBJECTS_V3))
EXPONENTIAL_PIECES(F64(OBJECTS_V4))

#define FUNCTION_OF(variant) exponential_pieces_##variant
#define FUNCTION(variant) FUNCTION_OF(variant)

static exponential_pieces *const functions[ISA_COUNT] = {
    [ISA_AUTO] = FUNCTION(F64(base)),
    [ISA_BASE] = FUNCTION(F64(base)),
    [ISA_V3] = FUNCTION(F64(OBJECTS_V3)),
    [ISA_V4] = FUNCTION(F64(OBJECTS_V4)),
};

void exponentials(double *numbers, size_t count) {
    functions[backend_isa(ISA_AUTO)](numbers, count);
}
