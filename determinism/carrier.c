/* SPDX-License-Identifier: Apache-2.0
 * Packs eight carriers at a time, compiled for plain x86-64 and AVX2. The scalar functions of
 * own_bits.h define the result; they also pack the tail and find out which carrier does not fit. A
 * test compares the vectors with the scalars. */
#include "determinism/carrier.h"

#include <stdint.h>
#include <string.h>

#include "determinism/own_vector.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "own-format bytes are little-endian: add the swaps before porting to a big-endian machine"
#endif

static uint32_t load_u32(const unsigned char *bytes) {
    uint32_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return bits;
}

static int pack_one(enum dtype dtype, const unsigned char *carrier, unsigned char *out) {
    int fits = 1;
    if (dtype == DTYPE_F64) {
        uint64_t bits;
        memcpy(&bits, carrier, sizeof bits);
        bits = own_bits_f64(bits);
        memcpy(out, &bits, sizeof bits);
    } else {
        const uint32_t bits = own_bits_f32(dtype, load_u32(carrier), &fits);
        const uint16_t half = (uint16_t)bits;
        const size_t width = own_width(dtype);
        if (width == sizeof bits)
            memcpy(out, &bits, sizeof bits);
        else if (width == sizeof half)
            memcpy(out, &half, sizeof half);
        else
            *out = (unsigned char)bits;
    }
    return fits;
}

typedef uint16_t halves __attribute__((vector_size(OWN_VECTOR * 2)));

static inline __attribute__((always_inline)) int any_set(const own_words *value) {
    uint32_t lanes[OWN_VECTOR];
    uint32_t any = 0;
    memcpy(lanes, value, sizeof lanes);
    for (int i = 0; i < OWN_VECTOR; i++)
        any |= lanes[i];
    return any != 0;
}

/* Packs f32 or tf32. count is a multiple of OWN_VECTOR. Returns 1 if every carrier fits. */
static inline __attribute__((always_inline)) int pack_words(const unsigned char *in, size_t count,
                                                            unsigned char *out, uint32_t spare) {
    own_words misfit = {0};
    for (size_t i = 0; i < count; i += OWN_VECTOR) {
        own_words bits;
        memcpy(&bits, in + i * 4, sizeof bits);
        OWN_CANONICAL(bits);
        misfit |= bits & spare;
        memcpy(out + i * 4, &bits, sizeof bits);
    }
    return !any_set(&misfit);
}

static inline __attribute__((always_inline)) int pack_halves(const unsigned char *in, size_t count,
                                                             unsigned char *out) {
    own_words misfit = {0};
    for (size_t i = 0; i < count; i += OWN_VECTOR) {
        own_words bits;
        memcpy(&bits, in + i * 4, sizeof bits);
        OWN_CANONICAL(bits);
        misfit |= bits & OWN_SPARE_BF16;
        const halves upper = __builtin_convertvector(bits >> 16, halves);
        memcpy(out + i * 2, &upper, sizeof upper);
    }
    return !any_set(&misfit);
}

static inline __attribute__((always_inline)) int pack_doubles(const unsigned char *in, size_t count,
                                                              unsigned char *out) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, in + i * 8, sizeof bits);
        const uint64_t nan = (uint64_t)0 - ((bits & ~(UINT64_C(1) << 63)) > OWN_INFINITE_F64);
        bits = (bits & ~nan) | (OWN_QUIET_F64 & nan);
        memcpy(out + i * 8, &bits, sizeof bits);
    }
    return 1;
}

static inline __attribute__((always_inline)) int pack_bulk(enum dtype dtype,
                                                           const unsigned char *in, size_t count,
                                                           unsigned char *out) {
    switch (dtype) {
    case DTYPE_F32:
        return pack_words(in, count, out, OWN_SPARE_F32);
    case DTYPE_TF32:
        return pack_words(in, count, out, OWN_SPARE_TF32);
    case DTYPE_BF16:
        return pack_halves(in, count, out);
    case DTYPE_F64:
        return pack_doubles(in, count, out);
    default:
        return 0;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static int bulk_avx2(enum dtype dtype, const unsigned char *in,
                                                     size_t count, unsigned char *out) {
    return pack_bulk(dtype, in, count, out);
}
#endif

static int bulk_best(enum dtype dtype, const unsigned char *in, size_t count, unsigned char *out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return bulk_avx2(dtype, in, count, out);
#endif
    return pack_bulk(dtype, in, count, out);
}

size_t carrier_pack(enum dtype dtype, const void *carriers, size_t count, void *out_bytes) {
    const unsigned char *const in = (const unsigned char *)carriers;
    unsigned char *const out = (unsigned char *)out_bytes;
    const size_t carrier = dtype_carrier(dtype);
    const size_t width = dtype_width(dtype);
    const int vectors = dtype != DTYPE_F16 && width > 1;
    const size_t bulk = vectors ? count - count % OWN_VECTOR : 0;
    const size_t done = bulk_best(dtype, in, bulk, out) ? bulk : 0;
    for (size_t i = done; i < count; i++)
        if (!pack_one(dtype, in + i * carrier, out + i * width)) return i;
    return count;
}

/* ---- numbers in two bytes ---- */

/* Lanes and their magnitudes are below 2^15, so a signed comparison gives the right answer; plain
 * x86-64 has no unsigned one. */
typedef int16_t half_signs __attribute__((vector_size(OWN_VECTOR * 2)));

static inline __attribute__((always_inline)) void fold_bulk(const unsigned char *in, size_t count,
                                                            unsigned char *out, int16_t infinite,
                                                            uint16_t quiet) {
    for (size_t i = 0; i < count; i += OWN_VECTOR) {
        halves bits;
        memcpy(&bits, in + i * 2, sizeof bits);
        const halves nan = (halves)((half_signs)(bits & 0x7FFFu) > infinite);
        bits = (bits & ~nan) | (nan & quiet);
        memcpy(out + i * 2, &bits, sizeof bits);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void fold_avx2(const unsigned char *in, size_t count,
                                                      unsigned char *out, int16_t infinite,
                                                      uint16_t quiet) {
    fold_bulk(in, count, out, infinite, quiet);
}
#endif

static void fold_best(const unsigned char *in, size_t count, unsigned char *out, int16_t infinite,
                      uint16_t quiet) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        fold_avx2(in, count, out, infinite, quiet);
        return;
    }
#endif
    fold_bulk(in, count, out, infinite, quiet);
}

void carrier_fold(enum dtype dtype, const void *values, size_t count, void *out_bytes) {
    const unsigned char *const in = (const unsigned char *)values;
    unsigned char *const out = (unsigned char *)out_bytes;
    const int16_t infinite = dtype == DTYPE_BF16 ? 0x7F80 : 0x7C00;
    const uint16_t quiet = dtype == DTYPE_BF16 ? 0x7FC0 : 0x7E00;
    const size_t bulk = count - count % OWN_VECTOR;
    fold_best(in, bulk, out, infinite, quiet);
    for (size_t i = bulk; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, in + i * sizeof bits, sizeof bits);
        if ((int)(bits & 0x7FFFu) > infinite) bits = quiet;
        memcpy(out + i * sizeof bits, &bits, sizeof bits);
    }
}
