/* SPDX-License-Identifier: Apache-2.0
 * Packs an operand of a library's product: lines of numbers that lie somewhere, as carriers or in
 * two bytes, become a dense matrix of the dtype that the library multiplies. Which operands are
 * packed, and where to, is decided in library_linear.cu.
 *
 * Invariant: every number of the lines is written once; what a line has behind its last number,
 * up to the next line, is +0. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_PACK_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_PACK_H

#include "base/form.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/short.h"

#define LIBRARY_LINE 8u /* numbers of a line that a thread packs */

/* Copies lines of `width` numbers, `stride` apart, into a matrix whose lines are `pitch` apart. */
struct library_pack {
    const void *from;
    struct form form; /* how numbers lie there: in their own width, or, of any dtype, as carriers */
    size_t lines, width, stride, pitch;
    struct row_list rows; /* physical rows of the lines */
    size_t first, places; /* the physical row that is line 0 of the matrix, and how many lines that
                             has, where `placed` */
    int placed;           /* 1: listed rows stand where they are; 0: one behind another */
    enum dtype product, type;
    unsigned each; /* numbers of a thread: LIBRARY_LINE where all lines can be read and written in
                      pieces of 16 bytes; else 2 short ones, which share a store, or 1 */
    void *to;
};

GPU_INLINE int library_is_short(enum dtype type) {
    return type == DTYPE_BF16 || type == DTYPE_F16;
}

/* Whether numbers are copied as they lie: they have the library's dtype, which a product then does
 * not round. */
TWINSTEP_HD int library_copies(const struct library_pack *pack) {
    return form_is_narrow(pack->form) && pack->form.dtype == pack->type;
}

/* Number i of those that lie from `from` on. */
GPU_INLINE carrier library_load(const void *from, struct form form, size_t i) {
    return form_is_narrow(form) ? (carrier)form_get_f32(from, form, i) : ((const carrier *)from)[i];
}

struct library_place {
    size_t line, column;
};

/* Where number i of lines of `width` stands. It divides in 32 bits where it can, which is much
 * faster on a device. */
GPU_INLINE struct library_place library_place_of(size_t i, size_t width) {
    struct library_place place;
    if ((i | width) >> 31 == 0) {
        place.line = (uint32_t)i / (uint32_t)width;
        place.column = (uint32_t)i % (uint32_t)width;
    } else {
        place.line = i / width;
        place.column = i % width;
    }
    return place;
}

/* Packs LIBRARY_LINE neighbours: 16 bytes go with a load and with a store. */
GPU_INLINE void library_pack_line(const struct library_pack *args, const carrier *from, size_t at,
                                  enum dtype product) {
    carrier given[LIBRARY_LINE];
    float number[LIBRARY_LINE];
    CARRIER_NAME_(gpu_load4)(given, from);
    CARRIER_NAME_(gpu_load4)(given + 4, from + 4);
    UNROLL
    for (unsigned k = 0; k < LIBRARY_LINE; k++)
        number[k] = (float)operand(given[k], product);
    if (library_is_short(args->type)) {
        short_put8((uint16_t *)args->to + at, number, args->type);
        return;
    }
    gpu_store4_f32((float *)args->to + at, number);
    gpu_store4_f32((float *)args->to + at + 4, number + 4);
}

/* Packs one number, or two short neighbours; what follows a line is +0. */
GPU_INLINE void library_pack_few(const struct library_pack *args, const void *from, size_t at,
                                 size_t column) {
    accumulator number[2] = {0, 0};
    for (unsigned k = 0; k < args->each; k++)
        if (column + k < args->width)
            number[k] = operand(library_load(from, args->form, k), args->product);
    if (library_is_short(args->type))
        short_put((uint16_t *)args->to + at, (float)number[0], (float)number[1], args->type);
    else if (args->type == DTYPE_F64)
        ((double *)args->to)[at] = (double)number[0];
    else
        ((float *)args->to)[at] = (float)number[0];
}

KERNEL(library_pack_kernel, struct library_pack) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, each = args->each;
    if (i >= args->lines * (args->pitch / each)) return;
    const struct library_place own = library_place_of(i, args->pitch / each);
    const size_t line = own.line, column = own.column * each;
    const size_t row = list_row(&args->rows, line);
    const size_t place = args->placed ? row - args->first : line;
    if (args->placed && place >= args->places)
        return; /* it belongs to another piece; a row below `first` wraps to a large number */
    const size_t at = place * args->pitch + column;
    const void *const from = form_at(args->from, args->form, row * args->stride + column);
    if (each != LIBRARY_LINE)
        library_pack_few(args, from, at, column);
    else if (form_is_narrow(args->form))
        short_copy8((uint16_t *)args->to + at, (const uint16_t *)from);
    else if (args->product == DTYPE_BF16)
        library_pack_line(args, (const carrier *)from, at, DTYPE_BF16); /* a constant there */
    else
        library_pack_line(args, (const carrier *)from, at, args->product);
}

static size_t library_size(enum dtype type) {
    if (type == DTYPE_F64) return sizeof(double);
    return type == DTYPE_BF16 || type == DTYPE_F16 ? sizeof(uint16_t) : sizeof(float);
}

/* The distance between lines: tensor cores want what they read at multiples of 16 bytes. */
static size_t library_pitch(enum dtype type, size_t width) {
    if (library_size(type) == sizeof(uint16_t)) return (width + 7) / 8 * 8;
    return type == DTYPE_TF32 ? (width + 3) / 4 * 4 : width;
}

/* How many numbers a thread packs. */
static unsigned library_each(const struct library_pack *pack) {
    const size_t size = library_size(pack->type);
    if (pack->width % LIBRARY_LINE == 0 && pack->type != DTYPE_F64 &&
        (library_copies(pack) || !form_is_narrow(pack->form)) &&
        lines_aligned(pack->from, pack->stride * pack->form.width) &&
        lines_aligned(pack->to, pack->pitch * size))
        return LIBRARY_LINE;
    return size == sizeof(uint16_t) ? 2 : 1;
}

#endif
