/* SPDX-License-Identifier: Apache-2.0
 * The block that the shim runs, and its threads' fibres. Private to the shim's files: shim.c
 * launches, shim_blocks.c runs a block, shim_fibres.c its threads, shim_words.c what they
 * exchange. */
#ifndef TWINSTEP_TESTS_SHIM_SHIM_BLOCK_H
#define TWINSTEP_TESTS_SHIM_SHIM_BLOCK_H

#include <setjmp.h>
#include <ucontext.h>

#include "base/arena.h"
#include "tests/shim/accesses.h"
#include "tests/shim/shim.h"

#define SHIM_STACK ((size_t)256 << 10) /* bytes of a fibre's stack */
/* The bytes before shared memory and after it. Their number leaves shared memory no more aligned
 * than the 32 bytes that a device promises. */
#define SHIM_FENCE ((size_t)1024 + 32)

enum shim_state { SHIM_NEW = 0, SHIM_READY, SHIM_AT_BARRIER, SHIM_AT_WARP, SHIM_DONE };

/* AddressSanitizer follows swapcontext(), but not jumps between stacks. */
#if defined(__SANITIZE_ADDRESS__)
#define SHIM_SWAPS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHIM_SWAPS 1
#endif
#endif
#ifndef SHIM_SWAPS
#define SHIM_SWAPS 0
#endif

/* The compiler's own jumps leave out what the C library's save for other uses, which halves the
 * time of a switch. */
#if defined(__x86_64__) && !SHIM_SWAPS
#define SHIM_JUMP void *jump[5]
#else
#define SHIM_JUMP jmp_buf jump
#endif

/* The point at which a fibre, or the scheduler, goes on. */
struct shim_spot {
    ucontext_t context; /* where it begins; and where swaps are used, where it stands */
    SHIM_JUMP;
    int begun;
};

struct shim_fibre {
    struct shim_spot spot;
    void *stack;
    int made, busy;
};

/* A copy to shared memory that was started and not made yet. */
struct shim_async {
    void *to;
    const void *from;
    unsigned short size, bytes;
    unsigned group;
};

struct shim_asyncs {
    struct shim_async copy[SHIM_ASYNC]; /* the oldest first */
    unsigned count, started, group;
};

struct shim {
    struct arena arena;
    struct shim_spot scheduler;
    struct shim_fibre fibre[SHIM_THREADS];
    struct gpu gpu[SHIM_THREADS];
    unsigned char state[SHIM_THREADS];
    int line; /* line of the barrier that threads wait at */
    unsigned fibre_of[SHIM_THREADS];
    unsigned idle; /* all fibres before it are busy */
    unsigned order[SHIM_THREADS];
    uint64_t given[2][SHIM_THREADS]; /* values of shuffles, by turns */
    uint64_t gathered[2][SHIM_THREADS][SHIM_GIVEN];
    unsigned turn[SHIM_THREADS];
    struct shim_asyncs asyncs[SHIM_THREADS];
    unsigned warp_waits[SHIM_THREADS / 32];
    unsigned char warp_word[SHIM_THREADS / 32]; /* what they wait for */
    uint32_t warp_epoch[SHIM_THREADS / 32];     /* barriers of warps so far */
    unsigned threads, cursor, running, done, waits;
    int redraw;
    const int *failed; /* the host's */
    const char *name;
    shim_kernel kernel;
    const void *args;
    uint64_t draw;
    size_t shared_bytes;
    unsigned char *memory;    /* fence, shared memory, fence */
    struct watch_place place; /* of the running thread; its epoch counts the block's barriers */
};

/* Defined in shim.c: reports what is wrong in the block that runs; `what` may print two numbers. */
void shim_tell_block(const struct shim *s, const char *what, unsigned a, unsigned b);

/* Defined in shim.c: returns the block of this host thread. */
struct shim *shim_space(void);

/* Defined in shim.c: returns the next number below `bound` that the launch draws. */
unsigned shim_draw_below(uint64_t *state, unsigned bound);

/* Defined in shim_blocks.c: runs block `block` of the launch to its end or to an error. */
void shim_run_block(struct shim *s, unsigned block);

/* Defined in shim_fibres.c: runs thread `t` until it waits or ends. */
void shim_resume(struct shim *s, unsigned t);

/* Defined in shim_fibres.c: makes the running thread wait, by its state; returns when it goes
 * on. */
void shim_leave(struct shim *s);

/* Defined in shim_fibres.c: lets fibres that an error stopped inside a kernel begin anew. */
void shim_drop_fibres(struct shim *s);

#endif
