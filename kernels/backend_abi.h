/* SPDX-License-Identifier: Apache-2.0
 * What a backend in a module and this program tell each other (docs/CUDA.md): symbol
 * twinstep_backend_v1, an object that begins with a module_stamp (base/module_abi.h).
 *
 * The program asks `refuses` before it runs anything, takes all memory that ops see from `memory`
 * and `hidden`, and asks `wait` whether what ran went well. An op's work is done when it returns,
 * as on the CPU; of a queued call, when `wait` returns. Invariant: a table of mode invariant gives
 * the CPU's bits (docs/DETERMINISM.md). */
#ifndef TWINSTEP_KERNELS_BACKEND_ABI_H
#define TWINSTEP_KERNELS_BACKEND_ABI_H

#include "base/arena.h"
#include "base/module_abi.h"
#include "kernels/leaf_hashes.h"
#include "kernels/update_sizes.h"
#include "kernels/op.h"
#include "kernels/run_distances.h"
#include "kernels/readback_blocks.h"
#include "kernels/squares.h"
#include "kernels/step.h"

/* One fact of what the ops run on, as {"device", "NVIDIA H100 80GB HBM3"}. Names are words of a-z,
 * 0-9 and _, and each comes once in a module. "device" is always there and is the first. */
struct backend_fact {
    char name[32];
    char text[120];    /* never empty: what cannot be found out is left out of the list */
    int32_t momentary; /* 1: it holds now and may be something else later (clocks) */
};
#define BACKEND_FACTS_MAX 32

struct backend {
    struct module_stamp stamp;
    const char *name; /* "cuda", or what a test's module is called */
    uint64_t layout;  /* BACKEND_LAYOUT (kernels/backend_layout.h) */
    /* 1: where a state has slots of bf16 or f16, their numbers come in two bytes (base/form.h); 0:
     * in carriers. */
    int32_t takes_narrow;
    /* Called once, before everything else. STATUS_UNSUPPORTED, with one line that says what is
     * missing: no driver, no device. */
    enum status (*open)(void);
    /* May be called after open(). Fills in at most BACKEND_FACTS_MAX facts. */
    enum status (*describe)(struct backend_fact *facts, uint32_t *out_count);
    /* Memory that ops and the host both see: lists, and results that the host reads. It is near the
     * host, and far for ops. */
    struct arena_source memory;
    /* Memory that ops alone see: tensors. Of the host only the next three functions touch it; each
     * comes in its turn behind all ops that were called, and takes places in either memory and any
     * of the host's own. What pull and push were given may be touched again when they return; copy
     * is queued as an op is, and reads no memory of the host's own. */
    struct arena_source hidden;
    enum status (*pull)(void *to, const void *from, size_t bytes); /* to the host */
    enum status (*push)(void *to, const void *from, size_t bytes); /* from the host */
    enum status (*copy)(void *to, const void *from, size_t bytes);
    /* Waits until all ops are done. Returns the first thing that went wrong since the last call. */
    enum status (*wait)(void);
    /* Names what of the call its tables do not have, as a scenario calls it; NULL: nothing is
     * missing. */
    const char *(*refuses)(const struct op_call *call);
    /* As backend_ops() and backend_scratch() of kernels/op.h, for this backend. */
    enum status (*ops)(enum dtype compute, enum dtype accumulate, const struct op_table **out);
    /* The table for calls like this one that say `narrow` (op_call.h), with sums in `accumulate`.
     * It gives the bits of the one above. Returns NULL where such calls must have carriers; the
     * pointer itself may be NULL, too. */
    const struct op_table *(*narrow_ops)(const struct op_call *call, enum dtype accumulate);
    enum status (*scratch)(const struct op_limits *limits, size_t *out_bytes);
    /* The leaf hashes of `count` tensors, and how far tensors moved, behind all ops that were
     * called. They are done when `wait` returns; the lists may go when the call returns. */
    void (*leaf_hashes)(const struct leaf_hashes_args *tensors, size_t count);
    void (*update_sizes)(const struct update_sizes_args *tensors, size_t count);
    /* The loops of an optimizer's step, for working type f32 and f64. They run behind all ops that
     * were called and are done when `wait` returns. No loop may be NULL. */
    const struct step_table *steps[2];
    /* What such a step did to tensors, under the same terms as `leaves`. */
    void (*readback_blocks)(const struct readback_blocks_args *args,
                            const struct readback_blocks_tensor *tensors, size_t count);
    /* Sums of squares of gradients, likewise. */
    void (*squares)(const struct squares_args *vectors, size_t count);
    /* Distances between tensors of two runs of this backend, likewise. */
    void (*run_distances)(const struct run_distances_args *tensors, size_t count);
};

#endif
