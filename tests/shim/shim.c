/* SPDX-License-Identifier: Apache-2.0
 * Runs a launch: checks whether a device would take it, runs its blocks one after another in a
 * drawn order, and keeps the first thing that went wrong. All state of the shim that belongs to a
 * host thread is here. */
#include "tests/shim/shim_queue.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda/limits.h"
#include "tests/shim/shim_block.h"

struct shim_host {
    uint64_t count; /* launches of this thread so far */
    int failed;
    char error[512];
    struct shim *space;
};

static _Thread_local struct shim_host here;

/* ---- errors and draws ---- */

static void tell(const char *text) {
    if (here.failed) return;
    here.failed = 1;
    snprintf(here.error, sizeof here.error, "%s", text);
}

void shim_tell_block(const struct shim *s, const char *what, unsigned a, unsigned b) {
    char text[400];
    char detail[256];
    snprintf(detail, sizeof detail, what, a, b);
    snprintf(text, sizeof text, "kernel %s, block %u: %s", s->name, s->place.block, detail);
    tell(text);
}

void shim_tell(const char *what) {
    if (here.space == NULL)
        tell(what);
    else
        shim_tell_block(here.space, what, 0, 0);
}

struct shim *shim_space(void) {
    return here.space;
}

void shim_place(struct watch_place *place) {
    const struct shim *const s = here.space;
    place->thread = s->running;
    place->stack = (const unsigned char *)s->fibre[s->fibre_of[s->running]].stack;
    place->gpu = (const unsigned char *)&s->gpu[s->running];
}

enum status shim_take_error(void) {
    if (!here.failed) return STATUS_OK;
    here.failed = 0;
    FAIL(STATUS_INTERNAL, "%s", here.error);
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next_draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned shim_draw_below(uint64_t *state, unsigned bound) {
    return (unsigned)((next_draw(state) >> 32) * bound >> 32);
}

/* ---- memory ---- */

static enum status open_space(void) {
    struct arena arena = ARENA_EMPTY;
    struct shim *space = NULL;
    TRY(arena_take(&arena, 1, sizeof *space, "shim", &space));
    const enum status status =
        arena_take(&arena, LIMITS_SHARED + 2 * SHIM_FENCE, 1, "shim", &space->memory);
    space->arena = arena;
    if (status != STATUS_OK) arena_close(&arena);
    if (status == STATUS_OK) here.space = space;
    return status;
}

void shim_close_fibres(void) {
    if (here.space == NULL) return;
    struct arena arena = here.space->arena;
    here.space = NULL;
    arena_close(&arena);
}

/* ---- launches ---- */

void shim_tell_of(const struct shim_work *work, const char *what) {
    char text[400];
    if (work->kernel != NULL)
        snprintf(text, sizeof text, "kernel %s: %s", work->name, what);
    else
        snprintf(text, sizeof text, "a function of the host: %s", what);
    tell(text);
}

static int args_fit(const struct shim_work *work) {
    char text[128];
    if (work->args_bytes <= SHIM_ARGS) return 1;
    snprintf(text, sizeof text, "expected %zu bytes of arguments at most, got %zu", SHIM_ARGS,
             work->args_bytes);
    shim_tell_of(work, text);
    return 0;
}

static int is_refused(const struct shim_work *work) {
    char text[LIMITS_TEXT];
    int refused = limits_refuse(work->grid, work->block, work->shared_bytes, text);
    if (!refused && work->block % 32 != 0) {
        snprintf(text, sizeof text, "expected blocks of whole warps, got %u threads", work->block);
        refused = 1;
    }
    if (refused) shim_tell_of(work, text);
    return refused;
}

/* A step for walking the grid. Blocks are visited at this distance from one another, modulo their
 * number: a step that has no factor in common with it visits each block once, without a table of
 * the order. */
static size_t stride_of(size_t grid, uint64_t *draw) {
    for (;;) {
        const size_t step = 1 + (size_t)(next_draw(draw) % grid);
        size_t a = step, b = grid;
        while (b != 0) {
            const size_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return step;
    }
}

static void open_launch(struct shim *s, const struct shim_work *work, const void *args) {
    here.count++;
    s->name = work->name;
    s->kernel = work->kernel;
    s->args = args;
    s->threads = work->block;
    s->shared_bytes = work->shared_bytes;
    s->failed = &here.failed;
    s->draw = work->draw;
    s->place = (struct watch_place){
        .launch = (uint32_t)here.count,
        .epoch = s->place.epoch,
        .running = &s->running,
        .warp_epochs = s->warp_epoch,
        .failed = &here.failed,
        .stack_bytes = SHIM_STACK,
        .shared = s->memory + SHIM_FENCE,
        .shared_bytes = s->shared_bytes,
        .fence = SHIM_FENCE,
        .args = (const unsigned char *)args,
        .args_bytes = work->args_bytes,
        .gpu_bytes = sizeof s->gpu[0],
    };
}

static void run_blocks(struct shim *s, size_t grid) {
    const size_t step = stride_of(grid, &s->draw);
    size_t at = (size_t)(next_draw(&s->draw) % grid);
    for (size_t i = 0; i < grid && !here.failed; i++, at = (at + step) % grid)
        shim_run_block(s, (unsigned)at);
    if (here.failed) shim_drop_fibres(s); /* they stopped somewhere inside */
}

void shim_run(const struct shim_work *work, const void *args) {
    if (here.failed || !args_fit(work)) return;
    if (work->kernel == NULL) {
        work->host(args);
        return;
    }
    if (is_refused(work)) return;
    if (here.space == NULL && open_space() != STATUS_OK) {
        shim_tell_of(work, "no memory for a block");
        return;
    }
    open_launch(here.space, work, args);
    watch_launch(&here.space->place);
    run_blocks(here.space, work->grid);
    watch_launch(NULL);
}
