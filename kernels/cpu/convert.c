/* SPDX-License-Identifier: Apache-2.0
 * Copies numbers from one dtype to another with one rounding, and fills memory. Both ends of a copy
 * have the carriers of their dtypes, which need not be the variant's; the result is the same in
 * every variant. */
#include "kernels/cpu/call.h"

#include <string.h>

#include "base/form.h"
#include "kernels/narrow.h"

NARROW(ROW_INLINE, narrow, double, f64)
NARROW(ROW_INLINE, narrow_float, float, f32)

ROW_INLINE void from_double(const double *x, void *y, size_t n, struct form to) {
    EACH for (size_t i = 0; i < n; i++) {
        if (to.dtype == DTYPE_F64)
            form_set_f64(y, i, x[i]);
        else
            form_set_f32(y, to, i, narrow(x[i], to.dtype));
    }
}

ROW_INLINE void from_float(const void *x, struct form from, void *y, size_t n, struct form to) {
    EACH for (size_t i = 0; i < n; i++) {
        const float number = form_get_f32(x, from, i);
        if (to.dtype == DTYPE_F64)
            form_set_f64(y, i, (double)number);
        else
            form_set_f32(y, to, i, narrow_float(number, to.dtype));
    }
}

static void convert_piece(const struct convert_args *args, size_t first, size_t n) {
    const struct form form = args->narrow ? form_own(args->to) : form_carried(args->to);
    const void *const x = form_at(args->source, form_carried(args->from), first);
    void *const y = form_place(args->destination, form, first);
    if (args->narrow) {
        if (args->from == DTYPE_F64)
            from_double((const double *)x, y, n, form);
        else
            from_float(x, form_carried(DTYPE_F32), y, n, form);
    } else if (args->from == DTYPE_F64) {
#define DOUBLE(d) from_double((const double *)x, y, n, form_carried(d))
        STORAGE_SWITCH(args->to, DOUBLE);
    } else {
#define FLOAT(d) from_float(x, form_carried(DTYPE_F32), y, n, form_carried(d))
        STORAGE_SWITCH(args->to, FLOAT);
    }
}

void VARIANT(convert)(const struct op_call *call, const struct convert_args *args) {
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->count))
    for (size_t first = 0; first < args->count; first += SUM_BLOCK)
        convert_piece(args, first, least(SUM_BLOCK, args->count - first));
}

/* A word of four equal bytes, as zeros and the poison NaN are, is a memset. */
static void fill_piece(unsigned char *memory, uint32_t word, size_t bytes) {
    const unsigned char byte = (unsigned char)word;
    if (word == byte * UINT32_C(0x01010101)) {
        memset(memory, byte, bytes);
        return;
    }
    const size_t whole = bytes - bytes % sizeof word;
    for (size_t at = 0; at < whole; at += sizeof word)
        memcpy(memory + at, &word, sizeof word);
    memcpy(memory + whole, &word, bytes - whole);
}

#define FILL_PIECE ((size_t)1 << 16) /* bytes, whole words */

void VARIANT(fill)(const struct op_call *call, const struct fill_args *args) {
    unsigned char *const memory = (unsigned char *)args->memory;
    const int threads = call_threads(call, args->bytes / sizeof args->word);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t first = 0; first < args->bytes; first += FILL_PIECE)
        fill_piece(memory + first, args->word, least(FILL_PIECE, args->bytes - first));
}
