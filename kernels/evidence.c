/* SPDX-License-Identifier: Apache-2.0
 * Deals the blocks of all tensors of a call to threads: one parallel region, in which each thread
 * meets every tensor and takes its share of the blocks. */
#include "kernels/evidence.h"

#include <string.h>

#include "base/isa_objects.h"
#include "determinism/carrier.h"
#include "kernels/cpu/evidence_blocks.h"
#include "kernels/op.h"

#define F64(isa) OBJECTS_OF(f64_f64, isa)
EVIDENCE_BLOCKS(F64(base))
EVIDENCE_BLOCKS(F64(OBJECTS_V3))
EVIDENCE_BLOCKS(F64(OBJECTS_V4))

struct block_functions {
    evidence_update_block *update;
    evidence_distance_block *distance;
    evidence_read_block *read;
    evidence_squares_block *squares;
};

#define FUNCTIONS_OF(variant)                                                                      \
    {                                                                                              \
        .update = evidence_update_block_##variant, .distance = evidence_distance_block_##variant,  \
        .read = evidence_read_block_##variant, .squares = evidence_squares_block_##variant         \
    }
#define FUNCTIONS(variant) FUNCTIONS_OF(variant)

static const struct block_functions functions[ISA_COUNT] = {
    [ISA_AUTO] = FUNCTIONS(F64(base)),
    [ISA_BASE] = FUNCTIONS(F64(base)),
    [ISA_V3] = FUNCTIONS(F64(OBJECTS_V3)),
    [ISA_V4] = FUNCTIONS(F64(OBJECTS_V4)),
};

/* Numbers below which waking threads costs more than it saves. */
#define SMALL ((size_t)1 << 15)

static int threads_for(int threads, size_t numbers) {
    return numbers < SMALL ? 1 : threads;
}

/* Returns the numbers of all tensors of a call. */
#define TOTAL_OF(type)                                                                             \
    static size_t total_of_##type(const struct type *tensors, size_t count) {                      \
        size_t total = 0;                                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            total += tensors[i].count;                                                             \
        return total;                                                                              \
    }
TOTAL_OF(leaf_hashes_args)
TOTAL_OF(update_sizes_args)
TOTAL_OF(readback_blocks_tensor)
TOTAL_OF(run_distances_args)
TOTAL_OF(squares_args)

static size_t block_length(size_t total, size_t first, size_t block) {
    return total - first < block ? total - first : block;
}

/* In functions with `threads`, these share out the blocks of each tensor and do not wait for each
 * other at its end: a block writes a place of its own, and whoever called joins them. Those that
 * end in _of do some blocks of one tensor, on the thread that calls. */

void evidence_update_sizes(int threads, const struct update_sizes_args *tensors, size_t count) {
    evidence_update_block *const block = functions[backend_isa(ISA_AUTO)].update;
    const int team = threads_for(threads, total_of_update_sizes_args(tensors, count));
#pragma omp parallel num_threads(team)
    for (size_t i = 0; i < count; i++) {
        const struct update_sizes_args *const is = &tensors[i];
        const size_t blocks = update_sizes_blocks(is->count);
#pragma omp for schedule(static) nowait
        for (size_t b = 0; b < blocks; b++)
            block(is, b * UPDATE_SIZES_BLOCK,
                  block_length(is->count, b * UPDATE_SIZES_BLOCK, UPDATE_SIZES_BLOCK), &ahead_none,
                  &is->blocks[b]);
    }
}

void evidence_update_sizes_of(const struct update_sizes_args *tensor, size_t first, size_t count,
                              const struct ahead *next) {
    evidence_update_block *const block = functions[backend_isa(ISA_AUTO)].update;
    for (size_t at = first; at < first + count; at += UPDATE_SIZES_BLOCK) {
        const struct ahead here = ahead_after(next, (at - first) * sizeof(float));
        block(tensor, at, block_length(first + count, at, UPDATE_SIZES_BLOCK), &here,
              &tensor->blocks[at / UPDATE_SIZES_BLOCK]);
    }
}

void evidence_run_distances(int threads, const struct run_distances_args *tensors, size_t count) {
    evidence_distance_block *const block = functions[backend_isa(ISA_AUTO)].distance;
    const int team = threads_for(threads, total_of_run_distances_args(tensors, count));
#pragma omp parallel num_threads(team)
    for (size_t i = 0; i < count; i++) {
        const struct run_distances_args *const is = &tensors[i];
        const size_t blocks = run_distances_blocks(is->count);
#pragma omp for schedule(static) nowait
        for (size_t b = 0; b < blocks; b++)
            block(is, b * RUN_DISTANCES_BLOCK,
                  block_length(is->count, b * RUN_DISTANCES_BLOCK, RUN_DISTANCES_BLOCK),
                  &is->blocks[b]);
    }
}

void evidence_readback_blocks(int threads, const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count) {
    evidence_read_block *const block = functions[backend_isa(ISA_AUTO)].read;
    const int team = threads_for(threads, total_of_readback_blocks_tensor(tensors, count));
#pragma omp parallel num_threads(team)
    for (size_t i = 0; i < count; i++) {
        const struct readback_blocks_tensor *const is = &tensors[i];
        const size_t blocks = readback_blocks_blocks(is->count);
#pragma omp for schedule(static) nowait
        for (size_t b = 0; b < blocks; b++)
            block(args, is, b * READBACK_BLOCKS_BLOCK,
                  block_length(is->count, b * READBACK_BLOCKS_BLOCK, READBACK_BLOCKS_BLOCK),
                  &ahead_none, &is->blocks[b]);
    }
}

void evidence_readback_blocks_of(const struct readback_blocks_args *args,
                                 const struct readback_blocks_tensor *tensor, size_t first,
                                 size_t count, const struct ahead *next) {
    evidence_read_block *const block = functions[backend_isa(ISA_AUTO)].read;
    for (size_t at = first; at < first + count; at += READBACK_BLOCKS_BLOCK) {
        const struct ahead here = ahead_after(next, (at - first) * sizeof(float));
        block(args, tensor, at, block_length(first + count, at, READBACK_BLOCKS_BLOCK), &here,
              &tensor->blocks[at / READBACK_BLOCKS_BLOCK]);
    }
}

void evidence_squares(int threads, const struct squares_args *tensors, size_t count) {
    evidence_squares_block *const block = functions[backend_isa(ISA_AUTO)].squares;
    const int team = threads_for(threads, total_of_squares_args(tensors, count));
#pragma omp parallel num_threads(team)
    for (size_t i = 0; i < count; i++) {
        const struct squares_args *const is = &tensors[i];
        const size_t blocks = squares_blocks(is->count);
#pragma omp for schedule(static) nowait
        for (size_t b = 0; b < blocks; b++)
            is->blocks[b] = block(is, b * SQUARES_BLOCK,
                                  block_length(is->count, b * SQUARES_BLOCK, SQUARES_BLOCK));
    }
}

void evidence_squares_of(const struct squares_args *tensor, size_t first, size_t count) {
    evidence_squares_block *const block = functions[backend_isa(ISA_AUTO)].squares;
    for (size_t at = first; at < first + count; at += SQUARES_BLOCK)
        tensor->blocks[at / SQUARES_BLOCK] =
            block(tensor, at, block_length(first + count, at, SQUARES_BLOCK));
}

/* ---- leaf hashes ---- */

#define PIECE_BYTES ((size_t)4096) /* own-format bytes on their way, in the first-level cache */

/* Adds numbers to a leaf as their own-format bytes. Returns 0 at a number that its dtype cannot
 * hold, which only a carrier is. */
static int absorb_packed(struct form form, const unsigned char *from, size_t count,
                         struct leafhash *hash) {
    const size_t width = own_width(form.dtype);
    uint32_t piece[PIECE_BYTES / sizeof(uint32_t)];
    for (size_t done = 0, some; done < count; done += some) {
        some = block_length(count, done, PIECE_BYTES / width);
        const size_t bytes = some * width;
        if (form_is_narrow(form))
            carrier_fold(form.dtype, from, some, piece);
        else if (carrier_pack(form.dtype, from, some, piece) < some)
            return 0;
        memset((unsigned char *)piece + bytes, 0, (0 - bytes) % sizeof(uint32_t));
        leafhash_absorb(hash, piece, bytes);
        from += some * form.width;
    }
    return 1;
}

/* Writes leaf `index` of a tensor. Numbers of f32 are hashed where they lie. */
static void write_leaf(const struct leaf_hashes_args *is, size_t index, const struct ahead *next) {
    const size_t per_leaf = LEAFHASH_BLOCK / own_width(is->form.dtype);
    const size_t first = index * per_leaf, count = block_length(is->count, first, per_leaf);
    const unsigned char *const from = (const unsigned char *)form_at(is->values, is->form, first);
    struct leafhash_leaf *const out = &is->leaves[index];
    struct leafhash hash;
    leafhash_init(&hash);
    memset(out->misfit, 0, sizeof out->misfit);
    if (is->form.dtype == DTYPE_F32)
        leafhash_absorb_f32(&hash, (const float *)is->values + first, count, next);
    else if (!absorb_packed(is->form, from, count, &hash))
        out->misfit[0] = 1; /* whoever asked says which number it is, and wants no hash */
    for (size_t lane = 0; lane < LEAFHASH_LANES; lane++)
        out->lane[lane] =
            leafhash_end((struct leafhash_lane){hash.first[lane], hash.second[lane]}, hash.length);
}

void evidence_leaf_hashes(int threads, const struct leaf_hashes_args *tensors, size_t count) {
    const int team = threads_for(threads, total_of_leaf_hashes_args(tensors, count));
#pragma omp parallel num_threads(team)
    for (size_t i = 0; i < count; i++) {
        const struct leaf_hashes_args *const is = &tensors[i];
        const size_t leaves = leaf_hashes_count(is->form.dtype, is->count);
#pragma omp for schedule(static) nowait
        for (size_t leaf = 0; leaf < leaves; leaf++)
            write_leaf(is, leaf, &ahead_none);
    }
}

/* The bytes of leaf hashes below which waking threads costs more than it saves. SHA-256 takes about
 * 16 us for so many. */
#define SMALL_HASHED ((size_t)1 << 14)

void evidence_digests(int threads, struct digest_leaves *tensors, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t numbers = 1;
        for (size_t d = 0; d < tensors[i].rank; d++)
            numbers *= tensors[i].shape[d];
        bytes += leaf_hashes_count(tensors[i].dtype, numbers) * LEAFHASH_BYTES;
    }
    const int team = bytes < SMALL_HASHED ? 1 : threads;
#pragma omp parallel for schedule(dynamic) num_threads(team)
    for (size_t i = 0; i < count; i++)
        digest_of_leaves(&tensors[i]);
}

void evidence_leaf_hashes_of(const struct leaf_hashes_args *tensor, size_t first, size_t count,
                             const struct ahead *next) {
    const size_t per_leaf = LEAFHASH_BLOCK / own_width(tensor->form.dtype);
    for (size_t at = first; at < first + count; at += per_leaf) {
        const struct ahead here = ahead_after(next, (at - first) * sizeof(float));
        write_leaf(tensor, at / per_leaf, &here);
    }
}
