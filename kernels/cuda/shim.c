/* SPDX-License-Identifier: Apache-2.0
 * Fibres are made when a thread waits for the first time: threads that never wait run one after
 * another on one fibre. A fibre has a stack from the arena; setcontext() enters it, jumps change
 * between fibres, since they leave the signals alone and cost a tenth. A thread that waits jumps to
 * the next one of the drawn order; the scheduler draws orders and gives fibres. */
#include "kernels/cuda/shim_queue.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "base/arena.h"
#include "kernels/cuda/accesses.h"

#define STACK_BYTES ((size_t)256 << 10)
/* Stacks lie at equal distances: without steps, what threads have on top of theirs would meet in
 * one set of the caches. */
#define STACK_STEP ((size_t)17 * 64)
#define STACK_STEPS 64u
#define FENCE ((size_t)1024)
#define FENCE_BYTE 0xa5

enum state { NEW = 0, READY, AT_BARRIER, AT_WARP, DONE };

/* AddressSanitizer follows swapcontext(), not jumps between stacks. */
#if defined(__SANITIZE_ADDRESS__)
#define SWAPS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWAPS 1
#endif
#endif
#ifndef SWAPS
#define SWAPS 0
#endif

/* The compiler's own jumps keep what the C library's do for others out of the way: half the time.
 */
#if defined(__x86_64__) && !SWAPS
#define JUMP void *jump[5]
#define JUMP_SET(jump) __builtin_setjmp(jump)
#define JUMP_GO(jump) __builtin_longjmp(jump, 1)
#else
#define JUMP jmp_buf jump
#define JUMP_SET(jump) setjmp(jump)
#define JUMP_GO(jump) longjmp(jump, 1)
#endif

/* Where a fibre, or the scheduler, goes on. */
struct spot {
    ucontext_t context; /* where it begins; with SWAPS, where it stands */
    JUMP;
    int begun;
};

struct fibre {
    struct spot spot;
    void *stack;
    int made, busy;
};

/* The block that runs. */
struct shim {
    struct arena arena;
    struct spot scheduler;
    struct fibre fibre[SHIM_THREADS];
    struct gpu gpu[SHIM_THREADS];
    unsigned char state[SHIM_THREADS];
    int line; /* of the barrier that threads wait at */
    unsigned fibre_of[SHIM_THREADS];
    unsigned idle; /* all fibres before it are busy */
    unsigned order[SHIM_THREADS];
    uint64_t given[2][SHIM_THREADS]; /* values of shuffles, by turns */
    unsigned turn[SHIM_THREADS];
    unsigned warp_waits[SHIM_THREADS / 32];
    uint32_t epoch, warp_epoch[SHIM_THREADS / 32]; /* barriers so far */
    int inside;                                    /* a thread of the kernel runs */
    unsigned threads, cursor, running, done, waits;
    int redraw;
    const int *failed; /* the host's */
    const char *name;
    shim_kernel kernel;
    const void *args;
    size_t args_bytes;
    uint64_t draw;
    size_t shared_bytes;
    unsigned char *memory; /* fence, shared memory, fence */
};

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

static void tell_of(const struct shim *s, const char *what, unsigned a, unsigned b) {
    char text[400];
    char detail[256];
    snprintf(detail, sizeof detail, what, a, b);
    snprintf(text, sizeof text, "kernel %s, block %u: %s", s->name, s->gpu[0].block, detail);
    tell(text);
}

void shim_tell(const char *what) {
    if (here.space == NULL)
        tell(what);
    else
        tell_of(here.space, what, 0, 0);
}

int shim_place(struct watch_place *out) {
    const struct shim *const s = here.space;
    if (s == NULL || !s->inside || here.failed) return 0;
    const unsigned t = s->running;
    *out = (struct watch_place){
        .launch = (uint32_t)here.count,
        .block = s->gpu[t].block,
        .epoch = s->epoch,
        .warp_epoch = s->warp_epoch[t / 32],
        .thread = t,
        .stack = (const unsigned char *)s->fibre[s->fibre_of[t]].stack,
        .stack_bytes = STACK_BYTES,
        .shared = s->memory + FENCE,
        .shared_bytes = s->shared_bytes,
        .fence = FENCE,
        .args = (const unsigned char *)s->args,
        .args_bytes = s->args_bytes,
        .gpu = (const unsigned char *)&s->gpu[t],
        .gpu_bytes = sizeof s->gpu[t],
    };
    return 1;
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

static unsigned draw_below(uint64_t *state, unsigned bound) {
    return (unsigned)((next_draw(state) >> 32) * bound >> 32);
}

static void draw_order(struct shim *s) {
    for (unsigned i = 0; i < s->threads; i++) {
        const unsigned at = draw_below(&s->draw, i + 1);
        s->order[i] = s->order[at];
        s->order[at] = i;
    }
    s->redraw = 0;
    s->cursor = 0;
}

/* ---- fibres ---- */

__attribute__((noinline)) static void change(struct spot *from, struct spot *to) {
#if SWAPS
    swapcontext(&from->context, &to->context);
#else
    if (JUMP_SET(from->jump) != 0) return;
    if (to->begun) JUMP_GO(to->jump);
    to->begun = 1;
    setcontext(&to->context);
#endif
}

/* Where it goes on when a thread waits: at the next one that can go on, without a turn of the
 * scheduler, which a thread that has not begun needs for a fibre. */
static struct spot *next_spot(struct shim *s) {
    while (!s->redraw && !*s->failed && s->cursor < s->threads) {
        const unsigned t = s->order[s->cursor];
        if (s->state[t] == NEW) break;
        s->cursor++;
        if (s->state[t] != READY) continue;
        s->running = t;
        return &s->fibre[s->fibre_of[t]].spot;
    }
    return &s->scheduler;
}

static void leave(struct shim *s) {
    struct fibre *const fibre = &s->fibre[s->fibre_of[s->running]];
    s->inside = 0;
    change(&fibre->spot, next_spot(s));
    s->inside = s->state[s->running] == READY;
}

/* The thread behind the cursor, where it has not begun: it needs no fibre of its own yet. */
static int take_next_new(struct shim *s) {
    if (*s->failed || s->redraw || s->cursor >= s->threads) return 0;
    if (s->state[s->order[s->cursor]] != NEW) return 0;
    const unsigned own = s->fibre_of[s->running];
    s->running = s->order[s->cursor++];
    s->fibre_of[s->running] = own;
    return 1;
}

static void fibre_main(void) {
    struct shim *const s = here.space;
    for (;;) {
        do {
            s->state[s->running] = READY;
            s->inside = 1;
            s->kernel(&s->gpu[s->running], s->args);
            s->inside = 0;
            s->state[s->running] = DONE;
            s->done++;
        } while (take_next_new(s));
        const unsigned f = s->fibre_of[s->running];
        s->fibre[f].busy = 0;
        if (f < s->idle) s->idle = f;
        leave(s);
    }
}

static int make_fibre(struct shim *s, struct fibre *fibre) {
    if (fibre->stack == NULL &&
        arena_take(&s->arena, STACK_BYTES, 1, "shim stack", &fibre->stack) != STATUS_OK)
        return 0;
    ucontext_t *const context = &fibre->spot.context;
    if (getcontext(context) != 0) return 0;
    context->uc_stack.ss_sp = fibre->stack;
    context->uc_stack.ss_size = STACK_BYTES - (size_t)(fibre - s->fibre) % STACK_STEPS * STACK_STEP;
    context->uc_link = NULL;
    makecontext(context, fibre_main, 0);
    fibre->made = 1;
    fibre->spot.begun = 0;
    return 1;
}

/* Runs thread `t` until it waits or ends. */
static void resume(struct shim *s, unsigned t) {
    if (s->state[t] == NEW) {
        unsigned f = s->idle;
        while (s->fibre[f].busy)
            f++;
        s->idle = f + 1;
        if (!s->fibre[f].made && !make_fibre(s, &s->fibre[f])) {
            tell("shim: no memory for a fibre");
            return;
        }
        s->fibre[f].busy = 1;
        s->fibre_of[t] = f;
    }
    s->running = t;
    s->scheduler.begun = 1;
    change(&s->scheduler, &s->fibre[s->fibre_of[t]].spot);
}

/* ---- barriers ---- */

void shim_barrier(struct gpu *gpu, int line) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    if (s->waits > 0 && s->line != line) {
        tell_of(s, "threads wait at different barriers, of lines %u and %u", (unsigned)s->line,
                (unsigned)line);
        leave(s);
    }
    s->state[t] = AT_BARRIER;
    s->line = line;
    if (++s->waits == s->threads) {
        memset(s->state, READY, s->threads);
        s->waits = 0;
        s->redraw = 1;
        s->epoch++;
    }
    leave(s);
}

void shim_warp_barrier(struct gpu *gpu) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    const unsigned warp = t / 32;
    s->state[t] = AT_WARP;
    if (++s->warp_waits[warp] == 32) {
        memset(s->state + (size_t)warp * 32, READY, 32);
        s->warp_waits[warp] = 0;
        s->warp_epoch[warp]++;
    }
    leave(s);
}

/* Values stand until the warp has met once more: two turns do. */
static uint64_t exchange(struct gpu *gpu, uint64_t bits, unsigned mask) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    uint64_t *const given = s->given[s->turn[t]++ & 1];
    given[t] = bits;
    shim_warp_barrier(gpu);
    return given[t ^ mask];
}

float shim_shuffle_f32(struct gpu *gpu, float value, unsigned mask) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (uint32_t)exchange(gpu, bits, mask % 32);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

double shim_shuffle_f64(struct gpu *gpu, double value, unsigned mask) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = exchange(gpu, bits, mask % 32);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Threads of the shim never run at one time. */
float shim_atomic_f32(struct gpu *gpu, float *sum, float term) {
    const float before = *sum;
    (void)gpu;
    watch_atomic(sum, sizeof *sum);
    *sum = before + term;
    return before;
}

double shim_atomic_f64(struct gpu *gpu, double *sum, double term) {
    const double before = *sum;
    (void)gpu;
    watch_atomic(sum, sizeof *sum);
    *sum = before + term;
    return before;
}

uint32_t shim_atomic_u32(struct gpu *gpu, uint32_t *sum, uint32_t term) {
    const uint32_t before = *sum;
    (void)gpu;
    watch_atomic(sum, sizeof *sum);
    *sum = before + term;
    return before;
}

/* ---- blocks ---- */

static void tell_why_stuck(struct shim *s) {
    for (unsigned w = 0; w < s->threads / 32; w++)
        if (s->warp_waits[w] != 0) {
            tell_of(s, "%u lanes of warp %u wait for the others, which wait elsewhere or have left",
                    s->warp_waits[w], w);
            return;
        }
    tell_of(s, "%u threads wait at the barrier of line %u, the others have left", s->waits,
            (unsigned)s->line);
}

static int is_whole(const unsigned char *fence) {
    return fence[0] == FENCE_BYTE && memcmp(fence, fence + 1, FENCE - 1) == 0;
}

static void check_fences(struct shim *s) {
    if (is_whole(s->memory) && is_whole(s->memory + FENCE + s->shared_bytes)) return;
    tell_of(s, "wrote outside its %u bytes of shared memory, %u bytes away at most",
            (unsigned)s->shared_bytes, (unsigned)FENCE);
}

static void open_block(struct shim *s, unsigned block) {
    for (unsigned t = 0; t < s->threads; t++)
        s->gpu[t] = (struct gpu){t, s->threads, block, s->memory + FENCE, s};
    memset(s->state, NEW, s->threads);
    memset(s->turn, 0, s->threads * sizeof s->turn[0]);
    memset(s->warp_waits, 0, sizeof s->warp_waits);
    memset(s->memory, FENCE_BYTE, FENCE);
    memset(s->memory + FENCE, 0xff, s->shared_bytes);
    memset(s->memory + FENCE + s->shared_bytes, FENCE_BYTE, FENCE);
    s->done = s->waits = 0;
    s->inside = 0;
    s->epoch++;
}

static void run_block(struct shim *s, unsigned block) {
    open_block(s, block);
    while (s->done < s->threads && !*s->failed) {
        int moved = 0;
        draw_order(s);
        while (s->cursor < s->threads && !s->redraw && !*s->failed) {
            const unsigned t = s->order[s->cursor++];
            if (s->state[t] != NEW && s->state[t] != READY) continue;
            resume(s, t);
            moved = 1;
        }
        if (!moved) tell_why_stuck(s);
    }
    if (!*s->failed) check_fences(s);
}

/* ---- launches ---- */

static enum status open_space(void) {
    struct arena arena = ARENA_EMPTY;
    struct shim *space = NULL;
    TRY(arena_take(&arena, 1, sizeof *space, "shim", &space));
    const enum status status =
        arena_take(&arena, SHIM_SHARED + 2 * FENCE, 1, "shim", &space->memory);
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

/* Whole grids are drawn one block at a time: a step that has no factor in common with the number of
 * blocks visits each once. */
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

static int launch_is_possible(const struct shim_work *work) {
    const size_t grid = work->grid, bytes = work->shared_bytes;
    const unsigned block = work->block;
    char text[256];
    if (block >= 32 && block <= SHIM_THREADS && block % 32 == 0 && bytes <= SHIM_SHARED &&
        grid < (size_t)1 << 31)
        return 1;
    snprintf(text, sizeof text,
             "expected blocks of whole warps, at most %u threads and %zu bytes of shared "
             "memory, and fewer than 2^31 of them, got %zu of %u threads and %zu bytes",
             SHIM_THREADS, SHIM_SHARED, grid, block, bytes);
    shim_tell_of(work, text);
    return 0;
}

void shim_run(const struct shim_work *work, const void *args) {
    const size_t grid = work->grid;
    if (here.failed || !args_fit(work)) return;
    if (work->kernel == NULL) {
        work->host(args);
        return;
    }
    if (!launch_is_possible(work)) return;
    if (here.space == NULL && open_space() != STATUS_OK) {
        shim_tell_of(work, "no memory for a block");
        return;
    }
    struct shim *const s = here.space;
    s->name = work->name;
    s->kernel = work->kernel;
    s->args = args;
    s->args_bytes = work->args_bytes;
    here.count++;
    s->threads = work->block;
    s->shared_bytes = (work->shared_bytes + 15) / 16 * 16;
    s->failed = &here.failed;
    s->draw = work->draw;
    const size_t step = stride_of(grid, &s->draw);
    size_t at = (size_t)(next_draw(&s->draw) % grid);
    for (size_t i = 0; i < grid && !here.failed; i++, at = (at + step) % grid)
        run_block(s, (unsigned)at);
    for (unsigned f = 0; here.failed && f < SHIM_THREADS; f++) /* they stopped somewhere inside */
        s->fibre[f].made = s->fibre[f].busy = 0;
    if (here.failed) s->idle = 0;
}
