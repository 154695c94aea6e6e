/* SPDX-License-Identifier: Apache-2.0
 * A step that somebody sees: functions that are called before and behind each piece of a tensor, by
 * the thread that steps it, while the piece is in this processor's caches.
 *
 * Only the built-in classes whose elements stand alone (OPTIM_ELEMENTWISE) call them, and only
 * where the call has no tables of a backend. Whoever looks reads the tensors and writes none of
 * them, so no bit of a step depends on being seen. */
#ifndef TWINSTEP_OPTIM_SEEN_H
#define TWINSTEP_OPTIM_SEEN_H

#include "optim/optim.h"

/* Numbers first .. first+count-1 of tensor `tensor` of the call. `thread`, below call.threads, is
 * the one that calls, so that each can have a place of its own. */
typedef void optim_see(void *context, uint32_t thread, uint32_t tensor, size_t first, size_t count);

struct optim_seen_call {
    struct optim_call call; /* its size is that of this struct: by this a step knows */
    size_t piece; /* elements of a piece, but for a tensor's last one; a multiple of 8192 */
    /* Called once, by the thread that steps, when *t is that of the step and nothing else has
     * moved. */
    void (*begin)(void *context, const struct optim_call *call);
    optim_see *before, *after;
    void *context;
    int *seen; /* is set to 1 once every element of the call was stepped and seen */
};

/* Returns the call with what looks at it, or NULL where nobody does. */
static inline const struct optim_seen_call *optim_seen(const struct optim_call *call) {
    if (call->size != sizeof(struct optim_seen_call)) return NULL;
    return (const struct optim_seen_call *)(const void *)call;
}

#endif
