/* SPDX-License-Identifier: Apache-2.0
 * Where an element of a gradient stands in the vector that a collective reduces. Its place decides
 * its grouping (ranks/grouping.h), so it has to be known before the grouping is.
 *
 * DistributedDataParallel (DDP) lays gradients of one dtype one behind another into buckets, each
 * reduced by one all-reduce. It does so twice: before update 1, and after it once more, in the
 * order in which the gradients of update 1 arrived; so an element's place changes between updates 1
 * and 2 and then stays. fully_shard (FSDP2) lays the gradients of one group of parameters into one
 * vector of P equal parts, one for each rank.
 *
 * Gradients of several dtypes or devices are buckets of their own in DDP: call once for each. */
#ifndef TWINSTEP_RANKS_BUCKET_H
#define TWINSTEP_RANKS_BUCKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define BUCKET_FIRST_BYTES ((uint64_t)1 << 20) /* _DEFAULT_FIRST_BUCKET_BYTES of torch */
#define BUCKET_CAP_BYTES ((uint64_t)25 << 20)  /* bucket_cap_mb=None */

struct bucket_call {
    const uint64_t *sizes;   /* elements of each tensor, in the order of Module.parameters() */
    const uint32_t *arrival; /* the tensors in the order in which their gradients were ready; NULL:
                              * from the last one to the first, as in a chain of layers */
    size_t count;            /* tensors */
    uint32_t width;          /* bytes of an element */
    uint64_t first, cap;     /* bytes; a bucket_cap_mb of the user's is both */
    int finds_unused;        /* find_unused_parameters=True without static_graph */
};

struct bucket_place {
    uint32_t bucket; /* in the order in which buckets are reduced */
    uint64_t offset; /* the tensor's first element in it */
};

/* Fills places[count] and the first *out_buckets of lengths[count], in elements, for update 1 or,
 * with update > 1, for every later one. STATUS_INPUT: no tensors, a tensor without elements, a
 * limit of 0, or an order of arrival that is no permutation. `scratch` has room for `count` words.
 */
TWINSTEP_MUST_USE enum status bucket_ddp(const struct bucket_call *call, uint64_t update,
                                         uint32_t *scratch, struct bucket_place *places,
                                         uint64_t *lengths, size_t *out_buckets);

/* One group of parameters of fully_shard: tensor t has rows[t] rows of row_lengths[t] elements, and
 * is cut by rows into P parts of ceil(rows / P), the last ones shorter or empty and filled up. */
struct bucket_group {
    const uint64_t *rows, *row_lengths;
    size_t count;
    uint32_t ranks;
};

/* STATUS_INPUT: no tensors, one without elements, more than 2^48 elements with the filling, or
 * ranks out of 1 to 1024. The functions below are for a group that passed. */
TWINSTEP_MUST_USE enum status bucket_group_check(const struct bucket_group *group);

/* Elements of one rank's part of a tensor, filling included. */
uint64_t bucket_group_part(const struct bucket_group *group, size_t tensor);

/* Elements of the vector that reduce_scatter takes, filling included. */
uint64_t bucket_group_length(const struct bucket_group *group);

/* The place of an element of a tensor in that vector. */
uint64_t bucket_group_place(const struct bucket_group *group, size_t tensor, uint64_t element);

#endif
