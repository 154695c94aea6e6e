/* SPDX-License-Identifier: Apache-2.0
 * The backend "shim" as a module: the kernels of kernels/cuda/ on the host, for tests without a
 * device. Each piece of the memory that the host sees, too, is in an arena of its own; tensors' is
 * closed to the host (shim_memory.h). Compiled as "watch", whose kernels are watched, it reports
 * races, and whatever a kernel touches that was not taken from here.
 *
 * TWINSTEP_SHIM_FAILS="open 1 100" makes a call fail as CUDA's calls do: the first open (or take,
 * wait, pull, push or copy), and every later one, with CUDA's error 100, in the words of the module
 * for devices; "once 7 719" the seventh call of any kind and no other. */
#if defined(BACKEND_CARRIED) /* the same numbers, in carriers alone */
#define TABLES_NARROW NULL
#endif
#include "kernels/cuda/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/backend_layout.h"
#include "kernels/cuda/facts.h"
#include "kernels/cuda/trouble.h"
#include "tests/shim/accesses.h"
#include "tests/shim/shim.h"
#include "tests/shim/shim_memory.h"

#if defined(BACKEND_IS_watch)
#define BACKEND_NAME "watch"
#else
#define BACKEND_NAME "shim"
#endif

#if defined(BACKEND_LACKS) /* to be refused: no loop of an optimizer is there */
static const struct step_table lacking = {{NULL}};
#undef STEPS
#define STEPS(pair) lacking
#endif

/* Calls that fail on purpose, and how often each was made. */
enum shim_call {
    SHIM_OPEN,
    SHIM_TAKE,
    SHIM_WAIT,
    SHIM_PULL,
    SHIM_PUSH,
    SHIM_COPY,
    SHIM_ANY, /* counts all of them */
    SHIM_CALLS
};

/* The error that this call ends with; 0: none. */
static int shim_fails(enum shim_call call) {
    static const char *const names[SHIM_CALLS] = {"open", "take", "wait", "pull",
                                                  "push", "copy", "once"};
    static unsigned long made[SHIM_CALLS];
    const char *const plan = getenv("TWINSTEP_SHIM_FAILS");
    unsigned long first = 0;
    char name[8] = "";
    int error = 0;
    made[call]++;
    made[SHIM_ANY]++;
    if (plan == NULL || sscanf(plan, "%7s %lu %d", name, &first, &error) != 3) return 0;
    if (strcmp(name, names[SHIM_ANY]) == 0) return made[SHIM_ANY] == first ? error : 0;
    return strcmp(name, names[call]) == 0 && made[call] >= first ? error : 0;
}

/* What the shim says where a device's runtime has words of its own. */
#define SHIM_WORDS "an error made up by the shim"

/* Opens the shim. It is seeded once for the process: whoever opens it again continues in the order
 * that threads have by then, as on a device. */
static enum status shim_open(void) {
    static int seeded;
    const int error = shim_fails(SHIM_OPEN);
    if (error != 0)
        return trouble_no_device(error, SHIM_WORDS, "no driver, no runtime", variable_devices());
    if (!seeded) shim_seed(0x7d3c91e5a2f08b46u);
    seeded = 1;
#if defined(BACKEND_IS_watch)
    TRY(watch_open());
    watch_memory(NULL, 0);
    return STATUS_OK;
#else
    return STATUS_OK;
#endif
}

static enum status shim_describe(struct backend_fact *list, uint32_t *out_count) {
    struct facts facts = {list, 0};
    facts_add(&facts, "device", "the host: CUDA kernels thread by thread, for tests");
    variables_add(&facts);
    *out_count = facts.count;
    return STATUS_OK;
}

static enum status shim_may_take(size_t bytes) {
    const int error = shim_fails(SHIM_TAKE);
    if (error == TROUBLE_MEMORY)
        return trouble_no_room(bytes, (size_t)3 << 29, (size_t)8 << 30, (size_t)4 << 30);
    return error == 0 ? STATUS_OK : trouble_fail("memory of the device", error, SHIM_WORDS);
}

static enum status shim_take_hidden(size_t bytes, void **out) {
    TRY(shim_may_take(bytes));
    TRY(shim_memory_take(bytes, out));
    watch_memory(*out, bytes);
    return STATUS_OK;
}

static void shim_give_hidden(void *memory) {
    shim_wait(); /* what is queued may still use it */
    watch_forget(memory);
    shim_memory_give(memory);
}

/* Takes memory in an arena of its own, which is stored in front of the piece. */
static enum status shim_take(size_t bytes, void **out) {
    struct arena arena = ARENA_EMPTY;
    unsigned char *memory = NULL;
    TRY(shim_may_take(bytes));
    TRY(arena_take(&arena, bytes + 64, 1, "shim memory", &memory));
    memcpy(memory, &arena, sizeof arena);
    *out = memory + 64;
    watch_memory(*out, bytes);
    return STATUS_OK;
}

static void shim_give(void *memory) {
    struct arena arena;
    shim_wait(); /* what is queued may still use it */
    watch_forget(memory);
    memcpy(&arena, (unsigned char *)memory - 64, sizeof arena);
    arena_close(&arena);
}

/* Waits, and takes both kinds of errors, as a device's module does. */
static enum status shim_told(void) {
    const enum status kernels = shim_error();
    const enum status library = library_error();
    return kernels == STATUS_OK ? library : kernels;
}

static enum status shim_end(void) {
    const enum status told = shim_told();
    const int error = shim_fails(SHIM_WAIT);
    return error == 0 ? told : trouble_fail("a kernel", error, SHIM_WORDS);
}

/* As a device's module does, it tells here what went wrong before. */
static enum status shim_moved(enum shim_call call, const char *what, void *to, const void *from,
                              size_t bytes) {
    const int error = shim_fails(call);
    if (error != 0) return trouble_fail(what, error, SHIM_WORDS);
    TRY(shim_told());
    shim_move(to, from, bytes);
    return STATUS_OK;
}

static enum status shim_pull(void *to, const void *from, size_t bytes) {
    return shim_moved(SHIM_PULL, "a copy to the host", to, from, bytes);
}

static enum status shim_push(void *to, const void *from, size_t bytes) {
    return shim_moved(SHIM_PUSH, "a copy to the device", to, from, bytes);
}

struct copied {
    void *to;
    const void *from;
    size_t bytes;
};

static void copy_now(const void *args) {
    const struct copied *const is = (const struct copied *)args;
    memcpy(is->to, is->from, is->bytes);
}

static enum status shim_copy(void *to, const void *from, size_t bytes) {
    const struct copied is = {to, from, bytes};
    const int error = shim_fails(SHIM_COPY);
    if (error != 0) return trouble_fail("a copy on the device", error, SHIM_WORDS);
    if (bytes > 0) shim_host(copy_now, &is, sizeof is);
    return STATUS_OK;
}

extern MODULE_EXPORT const struct backend twinstep_backend_v1;
const struct backend twinstep_backend_v1 = {
    .stamp = BACKEND_STAMP,
    .name = BACKEND_NAME,
    .layout = BACKEND_LAYOUT,
    .open = shim_open,
    .describe = shim_describe,
    .memory = {shim_take, shim_give, 0},
    .hidden = {shim_take_hidden, shim_give_hidden, 1},
    .pull = shim_pull,
    .push = shim_push,
    .copy = shim_copy,
    .wait = shim_end,
    TABLE_MEMBERS,
};
