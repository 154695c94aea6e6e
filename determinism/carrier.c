/* SPDX-License-Identifier: Apache-2.0
 * Packing in vectors of eight, compiled for plain x86-64 and AVX2; the scalar functions define the
 * result, serve the tail and find a misfit. A test holds the vectors to the scalars. */
#include "determinism/carrier.h"

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "own-format bytes are little-endian: add the swaps before porting to a big-endian machine"
#endif

#define QUIET_F32 0x7FC00000u
#define QUIET_F64 UINT64_C(0x7FF8000000000000)
#define INFINITE_F32 0x7F800000u
#define INFINITE_F64 UINT64_C(0x7FF0000000000000)

/* The low bits that a value of the dtype leaves zero in its carrier. */
#define SPARE_F32 0u
#define SPARE_TF32 0x1FFFu
#define SPARE_BF16 0xFFFFu

static uint32_t load_u32(const unsigned char *bytes) {
    uint32_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return bits;
}

static uint32_t canonical_f32(uint32_t bits) {
    return (bits & 0x7FFFFFFFu) > INFINITE_F32 ? QUIET_F32 : bits;
}

/* A format of at most 16 bits whose quantum f32 has as a normal number. */
struct narrow {
    uint32_t fraction;  /* bits of it */
    uint32_t below;     /* f32's exponent field of the least normal number, less 1 */
    uint32_t magnitude; /* bits but the sign */
    uint32_t largest, nan;
    uint32_t infinite; /* 0: has none */
};

static const struct narrow f16 = {10, 112, 15, 0x7BFF, 0x7E00, 0x7C00};
static const struct narrow e4m3 = {3, 120, 7, 0x7E, 0x7F, 0};
static const struct narrow e5m2 = {2, 112, 7, 0x7B, 0x7F, 0x7C};

/* binary32 to the format where that is exact; *fits says whether it was. */
static uint32_t narrow_from_f32(const struct narrow *format, uint32_t bits, int *fits) {
    bits = canonical_f32(bits);
    const uint32_t sign = (bits >> 31) << format->magnitude;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t exponent = magnitude >> 23;
    const uint32_t quantum = format->below + 1 - format->fraction; /* as an exponent field */
    *fits = 1;
    if (magnitude == 0) return sign;
    if (magnitude > INFINITE_F32) return format->nan;
    *fits = format->infinite != 0;
    if (magnitude == INFINITE_F32) return sign | format->infinite;
    *fits = 0;
    if (exponent < quantum) return 0;
    const uint32_t normal = exponent > format->below; /* in the format */
    const uint32_t shift = 23 - format->fraction + (normal ? 0 : format->below + 1 - exponent);
    const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t code =
        normal ? (magnitude - (format->below << 23)) >> shift : significand >> shift;
    *fits = (significand & ((1u << shift) - 1u)) == 0 && code <= format->largest;
    return sign | code;
}

static int pack_one(enum dtype dtype, const unsigned char *carrier, unsigned char *out) {
    int fits = 1;
    if (dtype == DTYPE_F64) {
        uint64_t bits;
        memcpy(&bits, carrier, sizeof bits);
        if ((bits & ~(UINT64_C(1) << 63)) > INFINITE_F64) bits = QUIET_F64;
        memcpy(out, &bits, sizeof bits);
    } else if (dtype == DTYPE_F16) {
        const uint16_t half = (uint16_t)narrow_from_f32(&f16, load_u32(carrier), &fits);
        memcpy(out, &half, sizeof half);
    } else if (dtype == DTYPE_E4M3) {
        *out = (unsigned char)narrow_from_f32(&e4m3, load_u32(carrier), &fits);
    } else if (dtype == DTYPE_E5M2) {
        *out = (unsigned char)narrow_from_f32(&e5m2, load_u32(carrier), &fits);
    } else {
        const uint32_t bits = canonical_f32(load_u32(carrier));
        const uint32_t spare = dtype == DTYPE_BF16   ? SPARE_BF16
                               : dtype == DTYPE_TF32 ? SPARE_TF32
                                                     : SPARE_F32;
        const uint16_t upper = (uint16_t)(bits >> 16);
        fits = (bits & spare) == 0;
        if (dtype == DTYPE_BF16) {
            memcpy(out, &upper, sizeof upper);
        } else {
            memcpy(out, &bits, sizeof bits);
        }
    }
    return fits;
}

#define VECTOR 8
typedef uint32_t words __attribute__((vector_size(VECTOR * 4)));
typedef int32_t signs __attribute__((vector_size(VECTOR * 4)));
typedef uint16_t halves __attribute__((vector_size(VECTOR * 2)));

/* Magnitudes are below 2^31, so that a signed comparison serves: plain x86-64 has no other. */
#define CANONICAL(bits)                                                                            \
    do {                                                                                           \
        const words nan_ = (words)((signs)((bits)&0x7FFFFFFFu) > (int32_t)INFINITE_F32);           \
        (bits) = ((bits) & ~nan_) | (nan_ & QUIET_F32);                                            \
    } while (0)

static inline __attribute__((always_inline)) int any_set(const words *value) {
    uint32_t lanes[VECTOR];
    uint32_t any = 0;
    memcpy(lanes, value, sizeof lanes);
    for (int i = 0; i < VECTOR; i++)
        any |= lanes[i];
    return any != 0;
}

/* count is a multiple of VECTOR; 1 when every carrier fits. */
static inline __attribute__((always_inline)) int pack_words(const unsigned char *in, size_t count,
                                                            unsigned char *out, uint32_t spare) {
    words misfit = {0};
    for (size_t i = 0; i < count; i += VECTOR) {
        words bits;
        memcpy(&bits, in + i * 4, sizeof bits);
        CANONICAL(bits);
        misfit |= bits & spare;
        memcpy(out + i * 4, &bits, sizeof bits);
    }
    return !any_set(&misfit);
}

static inline __attribute__((always_inline)) int pack_halves(const unsigned char *in, size_t count,
                                                             unsigned char *out) {
    words misfit = {0};
    for (size_t i = 0; i < count; i += VECTOR) {
        words bits;
        memcpy(&bits, in + i * 4, sizeof bits);
        CANONICAL(bits);
        misfit |= bits & SPARE_BF16;
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
        const uint64_t nan = (uint64_t)0 - ((bits & ~(UINT64_C(1) << 63)) > INFINITE_F64);
        bits = (bits & ~nan) | (QUIET_F64 & nan);
        memcpy(out + i * 8, &bits, sizeof bits);
    }
    return 1;
}

static inline __attribute__((always_inline)) int pack_bulk(enum dtype dtype,
                                                           const unsigned char *in, size_t count,
                                                           unsigned char *out) {
    switch (dtype) {
    case DTYPE_F32:
        return pack_words(in, count, out, SPARE_F32);
    case DTYPE_TF32:
        return pack_words(in, count, out, SPARE_TF32);
    case DTYPE_BF16:
        return pack_halves(in, count, out);
    case DTYPE_F64:
        return pack_doubles(in, count, out);
    default:
        return 0;
    }
}

static int bulk_plain(enum dtype dtype, const unsigned char *in, size_t count, unsigned char *out) {
    return pack_bulk(dtype, in, count, out);
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
    return bulk_plain(dtype, in, count, out);
}

size_t carrier_pack(enum dtype dtype, const void *carriers, size_t count, void *out_bytes) {
    const unsigned char *const in = (const unsigned char *)carriers;
    unsigned char *const out = (unsigned char *)out_bytes;
    const size_t carrier = dtype_carrier(dtype);
    const size_t width = dtype_width(dtype);
    const int vectors = dtype != DTYPE_F16 && width > 1;
    const size_t bulk = vectors ? count - count % VECTOR : 0;
    const size_t done = bulk_best(dtype, in, bulk, out) ? bulk : 0;
    for (size_t i = done; i < count; i++)
        if (!pack_one(dtype, in + i * carrier, out + i * width)) return i;
    return count;
}
