/* SPDX-License-Identifier: Apache-2.0
 * Which part of a flat vector of the optimizer's numbers, or of a tensor, each of P ranks owns
 * (ZeRO), and what is read where that was cut for another P.
 *
 * The layout is that of DeepSpeed's stages 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py at
 * commit 02aa38c3, __init__): the numbers of one parameter group lie one behind the other, are
 * filled up with zeros to a multiple of nccl_start_alignment_factor (2) times P, and are cut into P
 * equal parts. What is read follows _load_legacy_checkpoint and _get_padded_tensor of that file,
 * without the check in engine.py that refuses another P, and without copy_ refusing a longer part.
 */
#ifndef TWINSTEP_RANKS_PARTITION_H
#define TWINSTEP_RANKS_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#define PARTITION_ALIGNMENT 2
#define PARTITION_PARAMETER 64
#define PARTITION_BUCKET 128
#define PARTITION_ZERO UINT64_MAX /* no element: a zero */

/* Elements of one rank's part of `count` elements, what fills it up included. 1 to 2^20 ranks. */
uint64_t partition_part(uint64_t count, uint64_t ranks);

/* The element of the vector that stands at place `index` < count where `saved` ranks each wrote
 * their part and `loading` ranks each read the part of their own index: its beginning where it is
 * longer than theirs, else it and zeros behind it. Ranks for which there is no part have zeros. */
uint64_t partition_by_index(uint64_t count, uint64_t saved, uint64_t loading, uint64_t index);

/* Elements of a tensor: from `first` up to `end`; none where they are equal. */
struct partition_range {
    uint64_t first, end;
};

/* What rank `rank` owns of a tensor of `size` elements that begins at element `at` of a vector of
 * `count`, where that is cut as above: elements rank * partition_part() and on of the vector. */
struct partition_range partition_flat(uint64_t count, uint64_t ranks, uint64_t rank, uint64_t at,
                                      uint64_t size);

/* What rank `rank` owns of a tensor of `rows` rows of `width` elements where FSDP2 cuts it
 * (torch.chunk along dimension 0, by _chunk_with_empty in
 * torch/distributed/fsdp/_fully_shard/_fsdp_common.py of torch 2.15): ceil(rows / ranks) rows each,
 * so that the last ranks may have fewer, or none. */
struct partition_range partition_rows(uint64_t rows, uint64_t width, uint64_t ranks, uint64_t rank);

/* Where parameters begin in Megatron's buffer (param_and_grad_buffer.py), which goes from the last
 * to the first: each at a multiple of 64 elements; a bucket ends behind the one with which it has
 * `bucket` elements, and is filled up to a multiple of 128 and of `ranks`. out_padded has the
 * places in the buffer, out_packed those without what fills up the ends of buckets, where
 * get_parameter_state_dp_zero writes them. Sizes are in the order of parameters; at most 2^48 in
 * all, bucket at least 1, 1 to 2^20 ranks. */
void partition_buffer(const uint64_t *sizes, size_t count, uint64_t bucket, uint64_t ranks,
                      uint64_t *out_padded, uint64_t *out_packed);

#endif
