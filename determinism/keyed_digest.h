/* SPDX-License-Identifier: Apache-2.0
 * The order-free keyed digest "keyed 1" (docs/FOREIGN.md): a tensor's elements, mixed with their
 * indices, are summed modulo 2^64, so any chunks, threads or shards give the same sum and a device
 * computes it in one pass.
 *
 * Element i of the row-major global tensor goes in as a word w, its own-format bits (little-endian)
 * extended by zeros to 32 bits; an element of 8 bytes is two words, the low one with index 2i and
 * the high one with 2i + 1. For less than 2^32 words (i, w) decides its term and its term decides
 * (i, w), so one changed element and two swapped ones always change a term, and the sums agree by
 * a chance of 2^-64. It detects change, not forgery. NaNs count by their bits, unlike in
 * digest_tensor. digest_keyed makes the digest of a sum. Nothing here keeps state or allocates. */
#ifndef TWINSTEP_DETERMINISM_KEYED_DIGEST_H
#define TWINSTEP_DETERMINISM_KEYED_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of one element of a dtype that "keyed 1" knows, or 0: bool, u8, i8, e4m3, e5m2, u16,
 * i16, f16, bf16, u32, i32, f32, u64, i64, f64. */
size_t keyed_width(const char *dtype);

/* The sum over `count` elements of `width` bytes (1, 2, 4 or 8), which are elements `first` and on
 * of the tensor. The sums of shards add up, modulo 2^64, to that of the whole. `elements` need not
 * be aligned. */
uint64_t keyed_sum(const void *elements, size_t width, uint64_t first, uint64_t count);

#endif
