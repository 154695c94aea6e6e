/* SPDX-License-Identifier: Apache-2.0
 * Cells by the bits of a double: exponent and the first bits of the fraction are the cell's number,
 * so no logarithm is taken. */
#include "rollout/rollout_spread.h"

#include "base/real.h"

enum status spread_open(struct rollout_spread *spread, uint32_t bits, struct arena *arena) {
    *spread = (struct rollout_spread){.bits = bits};
    return arena_take(arena, (size_t)SPREAD_OCTAVES << bits, sizeof *spread->cell, "a spread",
                      &spread->cell);
}

static size_t cells_of(const struct rollout_spread *spread) {
    return (size_t)SPREAD_OCTAVES << spread->bits;
}

static size_t cell_of(const struct rollout_spread *spread, double value) {
    const uint64_t lowest = (uint64_t)(1023 + SPREAD_LOWEST) << spread->bits;
    const uint64_t key = real_bits_f64(value) >> (52 - spread->bits);
    if (key < lowest) return 0;
    return key - lowest < cells_of(spread) ? (size_t)(key - lowest) : cells_of(spread) - 1;
}

void spread_add(struct rollout_spread *spread, double value) {
    spread->count++;
    if (value > spread->largest) spread->largest = value;
    if (value == 0.0)
        spread->zeros++;
    else
        spread->cell[cell_of(spread, value)]++;
}

/* The middle of a cell: its lower edge with half of the last bit. */
static double middle_of(const struct rollout_spread *spread, size_t cell) {
    const uint64_t lowest = (uint64_t)(1023 + SPREAD_LOWEST) << spread->bits;
    return real_from_bits_f64(((uint64_t)cell + lowest) << (52 - spread->bits) |
                              (UINT64_C(1) << (51 - spread->bits)));
}

double spread_quantile(const struct rollout_spread *spread, double q) {
    const double exact = q * (double)spread->count;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact) rank++;
    if (rank == 0) rank = 1;
    if (spread->count == 0) return real_nan_f64();
    if (rank <= spread->zeros) return 0.0;
    if (rank >= spread->count) return spread->largest;
    uint64_t seen = spread->zeros;
    for (size_t i = 0; i < cells_of(spread); i++) {
        seen += spread->cell[i];
        if (seen >= rank) {
            const double middle = middle_of(spread, i);
            return middle < spread->largest ? middle : spread->largest;
        }
    }
    return spread->largest;
}

uint64_t spread_at_least(const struct rollout_spread *spread, double value) {
    uint64_t count = 0;
    if (value <= 0.0) return spread->count;
    for (size_t i = cell_of(spread, value); i < cells_of(spread); i++)
        count += spread->cell[i];
    return count;
}

uint64_t spread_octave(const struct rollout_spread *spread, int k) {
    uint64_t count = 0;
    const size_t first = (size_t)(k - SPREAD_LOWEST) << spread->bits;
    for (size_t i = 0; i < (size_t)1 << spread->bits; i++)
        count += spread->cell[first + i];
    return count;
}

void spread_merge(struct rollout_spread *spread, const struct rollout_spread *more) {
    spread->count += more->count;
    spread->zeros += more->zeros;
    if (more->largest > spread->largest) spread->largest = more->largest;
    for (size_t i = 0; i < cells_of(spread); i++)
        spread->cell[i] += more->cell[i];
}

double spread_rank_test(const struct rollout_spread *a, const struct rollout_spread *b) {
    const double n = (double)a->count, m = (double)b->count, all = n + m;
    double below = (double)a->zeros, above = 0.0, ties = 0.0;
    if (n == 0.0 || m == 0.0) return 0.0;
    const double zeros = (double)a->zeros + (double)b->zeros;
    above = (double)b->zeros * 0.5 * (double)a->zeros;
    ties = zeros * zeros * zeros - zeros;
    for (size_t i = 0; i < cells_of(a); i++) {
        const double x = (double)a->cell[i], y = (double)b->cell[i], t = x + y;
        above += y * (below + 0.5 * x);
        below += x;
        ties += t * t * t - t;
    }
    const double variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    return variance <= 0.0 ? 0.0 : (above - 0.5 * n * m) / real_sqrt_f64(variance);
}
