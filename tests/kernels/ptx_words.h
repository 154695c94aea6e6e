/* SPDX-License-Identifier: Apache-2.0
 * The PTX instructions that are not one operation of C, as functions for the C that
 * tests/kernels/ptx_host.py writes. NVIDIA's PTX ISA says what each does. Barriers, shuffles and
 * atomics are the shim's.
 *
 * State spaces: an address of shared, local or parameter memory is an offset until cvta makes it
 * generic, so that an access in the wrong space does not find what it looks for. Invariant: a
 * result is what the ISA says, bit for bit. The one exception is NaN of arithmetic, whose bits the
 * ISA leaves open: any_nan_f32() and any_nan_f64() make them differ from the host's. Where the ISA
 * leaves a result open, or a device would stop, the shim reports it. */
#ifndef TWINSTEP_TESTS_KERNELS_PTX_WORDS_H
#define TWINSTEP_TESTS_KERNELS_PTX_WORDS_H

#include <stdint.h>
#include <string.h>

#include "tests/shim/accesses.h"
#include "tests/shim/shim.h"

typedef _Bool pred;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define PTX_INLINE static inline __attribute__((always_inline))

/* ---- bits ---- */

#define PTX_BITS(to, from)                                                                         \
    PTX_INLINE to to##_of_##from(from x) {                                                         \
        to y;                                                                                      \
        _Static_assert(sizeof x == sizeof y, "bits move to a type as wide");                       \
        memcpy(&y, &x, sizeof y);                                                                  \
        return y;                                                                                  \
    }
PTX_BITS(u32, f32)
PTX_BITS(f32, u32)
PTX_BITS(u64, f64)
PTX_BITS(f64, u64)

/* ---- NaN ---- */

/* The ISA: "Single-precision instructions return an unspecified NaN for all NaN inputs". The NaN
 * made here differs from the host's, so that whatever depends on its bits shows. Payloads of
 * doubles are kept; a NaN that arithmetic makes of other numbers is a different one. */
PTX_INLINE f32 any_nan_f32(f32 x) {
    return x != x ? f32_of_u32(0x7fffffffu) : x;
}
#if !defined(PTX_NAN64)
#define PTX_NAN64 0x7fffffffffffffffu
#endif
PTX_INLINE f64 any_nan_f64(f64 x) {
    return x != x ? f64_of_u64(PTX_NAN64) : x;
}

/* ---- memory ---- */

/* A device stops at an address that is not a multiple of the size of the access. */
PTX_INLINE u64 ptx_aligned(u64 address, u64 bytes) {
    if ((address & (bytes - 1)) != 0) shim_tell("an address is no multiple of the access's bytes");
    return address;
}

PTX_INLINE u64 ptx_within(u64 offset, u64 bytes, u64 all) {
    if (offset <= all && bytes <= all - offset) return ptx_aligned(offset, bytes);
    shim_tell("an access outside of a thread's own memory or of the kernel's arguments");
    return 0;
}

/* Reports a launch for which the kernel was not compiled: arguments of another size, or too many
 * threads. */
PTX_INLINE int ptx_begins(struct gpu *gpu, u64 bytes, u64 expected, u32 threads) {
    if (bytes != expected) shim_tell("the host and nvcc disagree on the size of the arguments");
    if (gpu->threads > threads) shim_tell("more threads than the kernel was compiled for");
    return bytes == expected && gpu->threads <= threads;
}

#define PTX_MEMORY(type)                                                                           \
    PTX_INLINE type ld_##type(const void *at) {                                                    \
        type x;                                                                                    \
        memcpy(&x, at, sizeof x);                                                                  \
        return x;                                                                                  \
    }                                                                                              \
    PTX_INLINE void st_##type(void *at, type x) {                                                  \
        memcpy(at, &x, sizeof x);                                                                  \
    }
PTX_MEMORY(u8)
PTX_MEMORY(s8)
PTX_MEMORY(u16)
PTX_MEMORY(s16)
PTX_MEMORY(u32)
PTX_MEMORY(s32)
PTX_MEMORY(u64)
PTX_MEMORY(s64)
PTX_MEMORY(f32)
PTX_MEMORY(f64)

/* ---- integers ---- */

/* Shift amounts beyond the width count as the width, unlike C's, which are undefined. */
#define PTX_SHIFTS(width)                                                                          \
    PTX_INLINE u##width shl_b##width(u##width a, u32 n) {                                          \
        return n < width ? (u##width)(a << n) : 0;                                                 \
    }                                                                                              \
    PTX_INLINE u##width shr_u##width(u##width a, u32 n) {                                          \
        return n < width ? (u##width)(a >> n) : 0;                                                 \
    }                                                                                              \
    PTX_INLINE u##width shr_s##width(u##width a, u32 n) {                                          \
        return (u##width)((s##width)a >> (n < width ? n : width - 1));                             \
    }
PTX_SHIFTS(16)
PTX_SHIFTS(32)
PTX_SHIFTS(64)

/* The ISA calls a division by zero "an unspecified, machine-specific value". nvcc moves divisions
 * ahead of the source's conditions, so they do happen, and no result may depend on what comes
 * out. */
#define PTX_DIVISION(width)                                                                        \
    PTX_INLINE u##width div_u##width(u##width a, u##width b) {                                     \
        return b == 0 ? (u##width)0x5c5c5c5c5c5c5c5cu : a / b;                                     \
    }                                                                                              \
    PTX_INLINE u##width rem_u##width(u##width a, u##width b) {                                     \
        return b == 0 ? (u##width)0x5c5c5c5c5c5c5c5cu : a % b;                                     \
    }
PTX_DIVISION(32)
PTX_DIVISION(64)

/* Picks four bytes out of the eight of b:a. Bit 3 of a choice takes the byte's sign, eight
 * times. */
PTX_INLINE u32 prmt_b32(u32 a, u32 b, u32 choices) {
    const u64 bytes = (u64)b << 32 | a;
    u32 made = 0;
    for (u32 i = 0; i < 4; i++) {
        const u32 choice = choices >> (4 * i) & 15u;
        u32 byte = (u32)(bytes >> (8 * (choice & 7u))) & 255u;
        if (choice & 8u) byte = byte & 128u ? 255u : 0u;
        made |= byte << (8 * i);
    }
    return made;
}

/* Returns b with the lowest `length` bits of a inserted at bit `first`. */
PTX_INLINE u64 bfi_b64(u64 a, u64 b, u32 first, u32 length) {
    first &= 255u;
    length &= 255u;
    for (u32 i = 0; i < length && first + i < 64; i++) {
        const u64 bit = (u64)1 << (first + i);
        b = a >> i & 1u ? b | bit : b & ~bit;
    }
    return b;
}

PTX_INLINE u32 bfi_b32(u32 a, u32 b, u32 first, u32 length) {
    first &= 255u;
    return first < 32 ? (u32)bfi_b64(a, b, first, length) : b;
}

/* ---- conversions ---- */

/* Truncates towards zero and saturates at the ends of u64; NaN gives the highest bit alone. */
PTX_INLINE u64 cvt_rzi_u64_f64(f64 x) {
    if (x != x) return (u64)1 << 63;
    if (!(x > 0.0)) return 0;
    return x < 0x1p64 ? (u64)x : ~(u64)0;
}

/* ---- what the threads of a block do together ---- */

/* shfl.sync.bfly, for whole warps and without a clamp: the only form that nvcc makes of the
 * kernels. */
PTX_INLINE u32 shfl_bfly(struct gpu *gpu, u32 a, u32 mask, u32 clamp, u32 members) {
    if (clamp != 31u || members != ~(u32)0 || mask > 31u)
        shim_tell("a shuffle within parts of a warp");
    return u32_of_f32(shim_shuffle_f32(gpu, f32_of_u32(a), mask));
}

/* atom.global.add.f32 flushes subnormal terms and sums to zeros of their sign. */
__attribute__((no_sanitize("thread"))) static inline f32 ptx_flush(f32 x) {
    const f32 least = 0x1p-126f;
    return x > -least && x < least ? __builtin_copysignf(0.0f, x) : x;
}

/* The shim's atomic tells the access watcher of this access; the store below must not count as
 * another one, hence no_sanitize. */
__attribute__((noinline, unused, no_sanitize("thread"))) static f32 atom_global_add_f32(
    struct gpu *gpu, void *at, f32 term) {
    const f32 before = shim_atomic_f32(gpu, (f32 *)at, 0.0f);
    const f32 sum = ptx_flush(ptx_flush(before) + ptx_flush(term));
    memcpy(at, &sum, sizeof sum);
    return before;
}

PTX_INLINE f64 atom_global_add_f64(struct gpu *gpu, void *at, f64 term) {
    return shim_atomic_f64(gpu, (f64 *)at, term);
}

PTX_INLINE u32 atom_global_add_u32(struct gpu *gpu, void *at, u32 term) {
    return shim_atomic_u32(gpu, (u32 *)at, term);
}

#endif
