/* SPDX-License-Identifier: Apache-2.0
 * The dtypes of the format: their names and widths, which of them are dtypes of base/dtype.h, and
 * their values as carriers, by integer arithmetic. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoints/safetensors.h"
#include "checkpoints/strict_json.h"

struct dtype_row {
    const char *name;
    unsigned bits;
    int number; /* an enum dtype, or -1 */
};

/* Indexed by enum safetensors_dtype. */
static const struct dtype_row rows[SAFETENSORS_DTYPES] = {
    {"BOOL", 8, -1},
    {"F4", 4, -1},
    {"F6_E2M3", 6, -1},
    {"F6_E3M2", 6, -1},
    {"U8", 8, -1},
    {"I8", 8, -1},
    {"F8_E5M2", 8, DTYPE_E5M2},
    {"F8_E4M3", 8, DTYPE_E4M3},
    {"F8_E8M0", 8, -1},
    {"F8_E4M3FNUZ", 8, -1},
    {"F8_E5M2FNUZ", 8, -1},
    {"I16", 16, -1},
    {"U16", 16, -1},
    {"F16", 16, DTYPE_F16},
    {"BF16", 16, DTYPE_BF16},
    {"I32", 32, -1},
    {"U32", 32, -1},
    {"F32", 32, DTYPE_F32},
    {"C64", 64, -1},
    {"F64", 64, DTYPE_F64},
    {"I64", 64, -1},
    {"U64", 64, -1},
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype) {
    return rows[dtype].name;
}

enum safetensors_dtype safetensors_dtype_of(const char *name) {
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return (enum safetensors_dtype)i;
    return SAFETENSORS_DTYPES;
}

unsigned safetensors_dtype_bits(enum safetensors_dtype dtype) {
    return rows[dtype].bits;
}

int safetensors_dtype_number(enum safetensors_dtype dtype, enum dtype *out) {
    if (rows[dtype].number < 0) return 0;
    *out = (enum dtype)rows[dtype].number;
    return 1;
}

enum safetensors_dtype safetensors_dtype_from(enum dtype dtype) {
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].number == (int)dtype) return (enum safetensors_dtype)i;
    return SAFETENSORS_F32;
}

/* Multiplies in the order of the shape, as the format's reader does, so that an overflow before a 0
 * is an overflow. */
int safetensors_size(enum safetensors_dtype dtype, const uint64_t *shape, size_t rank,
                     uint64_t *out_count, uint64_t *out_bytes) {
    const uint64_t bits = rows[dtype].bits;
    uint64_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] != 0 && count > UINT64_MAX / shape[i]) return 0;
        count *= shape[i];
    }
    if (count > UINT64_MAX / bits || count * bits % 8 != 0) return 0;
    *out_count = count;
    *out_bytes = count * bits / 8;
    return 1;
}

void safetensors_shape_text(const struct safetensors_tensor *tensor,
                            char out[SAFETENSORS_SHAPE_TEXT]) {
    const size_t size = SAFETENSORS_SHAPE_TEXT, room = size - 32;
    size_t used = (size_t)snprintf(out, size, "%s [", rows[tensor->dtype].name);
    for (size_t i = 0; i < tensor->rank; i++) {
        if (used > room) {
            used += (size_t)snprintf(out + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i > 0 ? ", " : "",
                                 tensor->shape[i]);
    }
    snprintf(out + used, size - used, "]");
}

/* Widens an f16 number. A subnormal is shifted until its first bit is the hidden one. */
static uint32_t half_to_f32(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1Fu, fraction = half & 0x3FFu;
    if (exponent == 0x1F) return sign | 0x7F800000u | fraction << 13;
    if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
    if (fraction == 0) return sign;
    for (exponent = 113; (fraction & 0x400u) == 0; exponent--)
        fraction <<= 1;
    return sign | exponent << 23 | (fraction & 0x3FFu) << 13;
}

/* Widens an e4m3fn number. Its codes are those of f16, shifted, but for the bias (8 less), for the
 * missing infinity and for its one NaN. */
static uint32_t e4m3_to_f32(unsigned char code) {
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7Fu;
    if (magnitude == 0x7F) return sign | 0x7FC00000u;
    if (magnitude >= 8) return sign | ((magnitude << 20) + (120u << 23));
    return sign | (half_to_f32((uint16_t)(magnitude << 7)) + (magnitude == 0 ? 0 : 8u << 23));
}

static void widen(enum dtype dtype, const unsigned char *bytes, size_t count, uint32_t *out) {
    for (size_t i = 0; i < count; i++) {
        uint16_t word;
        memcpy(&word, bytes + 2 * i, sizeof word);
        out[i] = dtype == DTYPE_F16 ? half_to_f32(word) : (uint32_t)word << 16;
    }
}

/* Widens fp8 numbers; e5m2 is the upper half of f16. */
static void widen_eighths(enum dtype dtype, const unsigned char *bytes, size_t count,
                          uint32_t *out) {
    for (size_t i = 0; i < count; i++)
        out[i] =
            dtype == DTYPE_E4M3 ? e4m3_to_f32(bytes[i]) : half_to_f32((uint16_t)(bytes[i] << 8));
}

enum status safetensors_numbers(const struct safetensors_tensor *tensor, uint64_t first,
                                size_t count, void *out_carriers) {
    enum dtype dtype;
    if (!safetensors_dtype_number(tensor->dtype, &dtype))
        FAIL(STATUS_INPUT,
             "%s: tensor %s: expected numbers of F32, BF16, F16, F64, F8_E4M3 or F8_E5M2, got %s",
             tensor->path, strict_quote(tensor->name).text, rows[tensor->dtype].name);
    if (first > tensor->count || count > tensor->count - first)
        FAIL(STATUS_INTERNAL, "%s: tensor %s: elements %" PRIu64 " and %zu more of %" PRIu64,
             tensor->path, strict_quote(tensor->name).text, first, count, tensor->count);
    if (count == 0) return STATUS_OK;
    const size_t width = dtype_width(dtype);
    const unsigned char *bytes = tensor->data + first * width;
    if (width == 1)
        widen_eighths(dtype, bytes, count, (uint32_t *)out_carriers);
    else if (width == 2)
        widen(dtype, bytes, count, (uint32_t *)out_carriers);
    else
        memcpy(out_carriers, bytes, count * width);
    return STATUS_OK;
}
