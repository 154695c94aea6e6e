/* SPDX-License-Identifier: Apache-2.0
 * One launch over several tensors: its blocks (or its warps) are those of the tensors, one tensor
 * behind the other, and each finds its own by bisection.
 *
 * The list travels with the kernel's arguments, so nobody waits for memory that holds it.
 * Invariant: a block sees its number within its tensor, as if the tensor were alone. */
#ifndef TWINSTEP_KERNELS_CUDA_LIST_H
#define TWINSTEP_KERNELS_CUDA_LIST_H

#include <string.h>

#include "kernels/cuda/launch.h"

#define LIST_TENSORS 32u             /* tensors of one launch, at most */
#define LIST_ARGS ((size_t)4u << 10) /* bytes of a kernel's arguments that every device takes */

struct list {
    size_t end[LIST_TENSORS]; /* the blocks of a tensor and of those in front of it */
    size_t count;
};

/* A block's tensor, and its number there. */
struct list_place {
    size_t tensor, block;
};

#if defined(__cplusplus)
#define LIST_FITS(job) static_assert(sizeof(job) <= LIST_ARGS, "too many tensors for a launch")
#else
#define LIST_FITS(job) _Static_assert(sizeof(job) <= LIST_ARGS, "too many tensors for a launch")
#endif

/* Makes the list empty and clears the rest of its job. */
#define LIST_OPEN(job) memset((job), 0, sizeof *(job))

static inline size_t list_blocks(const struct list *list) {
    return list->count == 0 ? 0 : list->end[list->count - 1];
}

static inline void list_add(struct list *list, size_t blocks) {
    const size_t before = list_blocks(list);
    list->end[list->count++] = before + blocks;
}

/* Starts `kernel`, whose warps have the blocks, for as many tensors at a time as a job holds. The
 * job's `type` is {struct list list; ... is[LIST_TENSORS]}; blocks(count) is how many blocks a
 * tensor has. */
#define LIST_LAUNCH(kernel, type, tensors, many, blocks)                                           \
    do {                                                                                           \
        type job;                                                                                  \
        LIST_FITS(job);                                                                            \
        for (size_t i = 0; i < (many);) {                                                          \
            LIST_OPEN(&job);                                                                       \
            for (; i < (many) && job.list.count < LIST_TENSORS; i++) {                             \
                job.is[job.list.count] = (tensors)[i];                                             \
                list_add(&job.list, blocks((tensors)[i].count));                                   \
            }                                                                                      \
            LAUNCH_ROWS(kernel, list_blocks(&job.list), &job);                                     \
        }                                                                                          \
    } while (0)

/* Finds the tensor of a block; returns 0 where the launch has no such block. */
GPU_INLINE int list_find(const struct list *list, size_t block, struct list_place *out) {
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (list->end[middle] > block)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == list->count) return 0;
    out->tensor = low;
    out->block = block - (low == 0 ? 0 : list->end[low - 1]);
    return 1;
}

/* The same for a warp, where warps have the blocks. */
GPU_INLINE int list_find_row(GPU_PARAM const struct list *list, struct list_place *out) {
    return list_find(list, (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP, out);
}

#endif
