/* SPDX-License-Identifier: Apache-2.0
 * Runs a block from its first thread to its last: fresh shared memory, drawn orders, and a check of
 * the fences and threads that it leaves behind. Invariant: every order comes from the launch's
 * draws. */
#include <string.h>

#include "tests/shim/shim_block.h"

#define FENCE_BYTE 0xa5

static void draw_order(struct shim *s) {
    for (unsigned i = 0; i < s->threads; i++) {
        const unsigned at = shim_draw_below(&s->draw, i + 1);
        s->order[i] = s->order[at];
        s->order[at] = i;
    }
    s->redraw = 0;
    s->cursor = 0;
}

static void tell_why_stuck(struct shim *s) {
    for (unsigned w = 0; w < s->threads / 32; w++)
        if (s->warp_waits[w] != 0) {
            shim_tell_block(
                s, "%u lanes of warp %u wait for the others, which wait elsewhere or have left",
                s->warp_waits[w], w);
            return;
        }
    shim_tell_block(s, "%u threads wait at the barrier of line %u, the others have left", s->waits,
                    (unsigned)s->line);
}

static int is_whole(const unsigned char *fence) {
    return fence[0] == FENCE_BYTE && memcmp(fence, fence + 1, SHIM_FENCE - 1) == 0;
}

static void check_fences(struct shim *s) {
    if (is_whole(s->memory) && is_whole(s->memory + SHIM_FENCE + s->shared_bytes)) return;
    shim_tell_block(s, "wrote outside its %u bytes of shared memory, %u bytes away at most",
                    (unsigned)s->shared_bytes, (unsigned)SHIM_FENCE);
}

/* A wait that is left out shows only where somebody reads what was copied; what nobody waits for
 * shows here. */
static void check_copies(struct shim *s) {
    for (unsigned t = 0; t < s->threads; t++) {
        if (s->asyncs[t].count == 0) continue;
        shim_tell_block(
            s, "thread %u ended without a wait for its copies (%u of them) to shared memory", t,
            s->asyncs[t].count);
        return;
    }
}

static void open_block(struct shim *s, unsigned block) {
    unsigned char *const shared = s->memory + SHIM_FENCE;
    for (unsigned t = 0; t < s->threads; t++) {
        s->gpu[t] = (struct gpu){t, s->threads, block, shared, s};
        s->asyncs[t].count = s->asyncs[t].started = s->asyncs[t].group = 0;
    }
    memset(s->state, SHIM_NEW, s->threads);
    memset(s->turn, 0, s->threads * sizeof s->turn[0]);
    memset(s->warp_waits, 0, sizeof s->warp_waits);
    memset(s->memory, FENCE_BYTE, SHIM_FENCE);
    memset(shared, 0xff, s->shared_bytes);
    memset(shared + s->shared_bytes, FENCE_BYTE, SHIM_FENCE);
    s->done = s->waits = 0;
    s->place.block = block;
    s->place.thread = SHIM_THREADS; /* nobody yet */
    s->place.epoch++;
}

void shim_run_block(struct shim *s, unsigned block) {
    open_block(s, block);
    while (s->done < s->threads && !*s->failed) {
        int moved = 0;
        draw_order(s);
        while (s->cursor < s->threads && !s->redraw && !*s->failed) {
            const unsigned t = s->order[s->cursor++];
            if (s->state[t] != SHIM_NEW && s->state[t] != SHIM_READY) continue;
            shim_resume(s, t);
            moved = 1;
        }
        if (!moved) tell_why_stuck(s);
    }
    if (!*s->failed) check_copies(s);
    if (!*s->failed) check_fences(s);
}
