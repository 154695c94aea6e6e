/* SPDX-License-Identifier: Apache-2.0
 * Which elements dropout keeps (law 12). Integer work and one comparison per element; the scaling
 * of what is kept is the ops' own.
 *
 * Addressed: the word of (seed, stream dropout, update, op, layer, rank, sample, side, element), so
 * neither layout, padding nor a split moves a mask. Torch: the word that PyTorch's CUDA kernels
 * would give to the element of the tensor as it lies in memory, padding counted
 * (determinism/torch_rng.h). Invariant: a mask is a function of its site alone; drawing it a second
 * time gives it again. */
#ifndef TWINSTEP_KERNELS_DROPOUT_H
#define TWINSTEP_KERNELS_DROPOUT_H

#include <stdint.h>

#include "base/sequence.h"
#include "base/status.h"

enum dropout_map { DROPOUT_ADDRESSED = 0, DROPOUT_TORCH };

struct dropout {
    enum dropout_map map;
    double keep; /* 1 - rate, in (0, 1) */
    uint64_t seed;
    /* of DROPOUT_ADDRESSED */
    uint32_t op, layer, update; /* fields of the address; layer 0 means none */
    uint32_t rank_samples;      /* samples of one emulated rank; 0: ranks are not emulated */
    int same_masks;             /* every emulated rank draws as rank 0 */
    /* torch */
    uint64_t offset;    /* offset of the generator before this launch */
    uint64_t threads;   /* torch_threads() of the launch */
    uint32_t vector;    /* elements per thread: 1, 2, 4, 8 */
    uint32_t first_row; /* physical row at which the call's tensor starts */
    uint32_t length;    /* rows of each sequence, padding included */
};

/* The largest of each address field that a run will ask for; checked once, at load. */
struct dropout_extent {
    uint64_t layers, samples, ranks, positions, channels, heads;
};

/* STATUS_INPUT names the address field that such a run would overflow. */
TWINSTEP_MUST_USE enum status dropout_check(const struct dropout_extent *extent);

/* The mask of row `position` of a sequence with C channels: out[c] is 1 where the element is kept,
 * else 0. */
void dropout_activation(const struct dropout *dropout, const struct sequence *sequence,
                        uint32_t position, uint32_t C, uint8_t *out);

/* The mask of keys 0 .. count-1 of one query and head; the call has H heads. */
void dropout_attention(const struct dropout *dropout, const struct sequence *sequence, uint32_t H,
                       uint32_t head, uint32_t query, uint32_t count, uint8_t *out);

#endif
