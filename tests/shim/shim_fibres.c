/* SPDX-License-Identifier: Apache-2.0
 * Fibres are made when a thread waits for the first time: threads that never wait run one after
 * another on one fibre. A fibre has a stack from the arena. setcontext() enters it; jumps change
 * between fibres, since they leave the signals alone and cost a tenth. A thread that waits jumps to
 * the next one of the drawn order; the scheduler draws orders and gives fibres. */
#include "tests/shim/shim_block.h"

/* The tops of two stacks are shifted against each other by these steps. Stacks lie at equal
 * distances, so that without the shift the tops of all threads' stacks would compete for one set of
 * the caches. */
#define STACK_STEP ((size_t)17 * 64)
#define STACK_STEPS 64u

#if defined(__x86_64__) && !SHIM_SWAPS
#define JUMP_SET(jump) __builtin_setjmp(jump)
#define JUMP_GO(jump) __builtin_longjmp(jump, 1)
#else
#define JUMP_SET(jump) setjmp(jump)
#define JUMP_GO(jump) longjmp(jump, 1)
#endif

__attribute__((noinline)) static void change(struct shim_spot *from, struct shim_spot *to) {
#if SHIM_SWAPS
    swapcontext(&from->context, &to->context);
#else
    if (JUMP_SET(from->jump) != 0) return;
    if (to->begun) JUMP_GO(to->jump);
    to->begun = 1;
    setcontext(&to->context);
#endif
}

/* Finds where to go on when a thread waits: at the next thread that can. Only a thread that has not
 * begun needs a turn of the scheduler, which gives it a fibre. */
static struct shim_spot *next_spot(struct shim *s) {
    while (!s->redraw && !*s->failed && s->cursor < s->threads) {
        const unsigned t = s->order[s->cursor];
        if (s->state[t] == SHIM_NEW) break;
        s->cursor++;
        if (s->state[t] != SHIM_READY) continue;
        s->running = t;
        return &s->fibre[s->fibre_of[t]].spot;
    }
    return &s->scheduler;
}

void shim_leave(struct shim *s) {
    struct shim_fibre *const fibre = &s->fibre[s->fibre_of[s->running]];
    change(&fibre->spot, next_spot(s));
}

/* Takes the thread behind the cursor if it has not begun: it needs no fibre of its own yet. */
static int take_next_new(struct shim *s) {
    if (*s->failed || s->redraw || s->cursor >= s->threads) return 0;
    if (s->state[s->order[s->cursor]] != SHIM_NEW) return 0;
    const unsigned own = s->fibre_of[s->running];
    s->running = s->order[s->cursor++];
    s->fibre_of[s->running] = own;
    return 1;
}

static void fibre_main(void) {
    struct shim *const s = shim_space();
    for (;;) {
        do {
            s->state[s->running] = SHIM_READY;
            s->kernel(&s->gpu[s->running], s->args);
            s->state[s->running] = SHIM_DONE;
            s->done++;
        } while (take_next_new(s));
        const unsigned f = s->fibre_of[s->running];
        s->fibre[f].busy = 0;
        if (f < s->idle) s->idle = f;
        shim_leave(s);
    }
}

static int make_fibre(struct shim *s, struct shim_fibre *fibre) {
    if (fibre->stack == NULL &&
        arena_take(&s->arena, SHIM_STACK, 1, "shim stack", &fibre->stack) != STATUS_OK)
        return 0;
    ucontext_t *const context = &fibre->spot.context;
    if (getcontext(context) != 0) return 0;
    context->uc_stack.ss_sp = fibre->stack;
    context->uc_stack.ss_size = SHIM_STACK - (size_t)(fibre - s->fibre) % STACK_STEPS * STACK_STEP;
    context->uc_link = NULL;
    makecontext(context, fibre_main, 0);
    fibre->made = 1;
    fibre->spot.begun = 0;
    return 1;
}

void shim_resume(struct shim *s, unsigned t) {
    if (s->state[t] == SHIM_NEW) {
        unsigned f = s->idle;
        while (s->fibre[f].busy)
            f++;
        s->idle = f + 1;
        if (!s->fibre[f].made && !make_fibre(s, &s->fibre[f])) {
            shim_tell_block(s, "shim: no memory for a fibre", 0, 0);
            return;
        }
        s->fibre[f].busy = 1;
        s->fibre_of[t] = f;
    }
    s->running = t;
    s->scheduler.begun = 1;
    change(&s->scheduler, &s->fibre[s->fibre_of[t]].spot);
}

void shim_drop_fibres(struct shim *s) {
    for (unsigned f = 0; f < SHIM_THREADS; f++)
        s->fibre[f].made = s->fibre[f].busy = 0;
    s->idle = 0;
}
