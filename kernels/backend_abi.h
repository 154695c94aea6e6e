/* SPDX-License-Identifier: Apache-2.0
 * What a backend in a module and this program tell each other (docs/CUDA.md): symbol
 * twinstep_backend_v1, an object that begins with a module_stamp (base/module_abi.h).
 *
 * The program asks `refuses` before it runs anything, takes all memory that ops see from `memory`,
 * and asks `wait` whether what ran went well. An op's work is done when it returns, as on the CPU;
 * of a queued call, when `wait` returns.
 * Invariant: a table of mode invariant gives the CPU's bits (docs/DETERMINISM.md). */
#ifndef TWINSTEP_KERNELS_BACKEND_ABI_H
#define TWINSTEP_KERNELS_BACKEND_ABI_H

#include "base/arena.h"
#include "base/module_abi.h"
#include "kernels/leaves.h"
#include "kernels/moves.h"
#include "kernels/op.h"
#include "kernels/pairs.h"
#include "kernels/reads.h"
#include "kernels/squares.h"
#include "kernels/step.h"

/* What the ops run on, one thing at a time: {"device", "NVIDIA H100 80GB HBM3"}. Names are words of
 * a-z, 0-9 and _; of one module every name comes once. "device" is always there and first. */
struct backend_fact {
    char name[32];
    char text[120];    /* never empty; what cannot be found out is left out */
    int32_t momentary; /* 1: what it is now and may be something else later (clocks) */
};
#define BACKEND_FACTS_MAX 32

struct backend {
    struct module_stamp stamp;
    const char *name; /* "cuda", "shim" */
    uint64_t layout;  /* BACKEND_LAYOUT (kernels/backend_layout.h) */
    /* STATUS_UNSUPPORTED, with one line that says what is missing: no driver, no device. */
    enum status (*open)(void);
    /* After open: fills at most BACKEND_FACTS_MAX. */
    enum status (*describe)(struct backend_fact *facts, uint32_t *out_count);
    /* Memory that ops and the host both see. */
    struct arena_source memory;
    /* Until all ops are done; the first thing that went wrong since the last call. */
    enum status (*wait)(void);
    /* What of the call its tables do not have, as a scenario calls it; NULL: nothing. */
    const char *(*refuses)(const struct op_call *call);
    /* As backend_ops() and backend_scratch() of kernels/op.h. */
    enum status (*ops)(enum dtype compute, enum dtype accumulate, const struct op_table **out);
    enum status (*scratch)(const struct op_limits *limits, size_t *out_bytes);
    /* Of `count` tensors, behind all ops that were called; done when `wait` returns. The lists may
     * go when the call returns. */
    void (*leaves)(const struct leaves_args *tensors, size_t count);
    void (*moves)(const struct moves_args *tensors, size_t count);
    /* An optimizer's step, of working type f32 and f64, behind all ops that were called; done when
     * `wait` returns. */
    const struct step_table *steps[2];
    /* What such a step did, as `moves`. */
    void (*reads)(const struct reads_args *args, const struct reads_tensor *tensors, size_t count);
    /* Of gradients, as `moves`. */
    void (*squares)(const struct squares_args *vectors, size_t count);
    /* Of tensors of two runs of this backend, as `moves`. */
    void (*pairs)(const struct pairs_args *tensors, size_t count);
};

#endif
