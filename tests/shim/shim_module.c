/* SPDX-License-Identifier: Apache-2.0
 * The backend "shim" as a module: the kernels of kernels/cuda/ on the host, for tests without a
 * device. Each piece of its memory is in an arena of its own. Compiled as "watch", whose kernels
 * are watched, it reports races, and whatever a kernel touches that was not taken from here. */
#include "kernels/cuda/tables.h"

#include <string.h>

#include "base/arena.h"
#include "kernels/backend_layout.h"
#include "kernels/cuda/facts.h"
#include "tests/shim/shim.h"
#include "tests/shim/accesses.h"

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

/* Opens the shim. It is seeded once for the process: whoever opens it again continues in the order
 * that threads have by then, as on a device. */
static enum status shim_open(void) {
    static int seeded;
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

/* Takes memory in an arena of its own, which is stored in front of the piece. */
static enum status shim_take(size_t bytes, void **out) {
    struct arena arena = ARENA_EMPTY;
    unsigned char *memory = NULL;
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

/* Takes both kinds of errors, as a device's module does. */
static enum status shim_end(void) {
    const enum status kernels = shim_error();
    const enum status library = library_error();
    return kernels == STATUS_OK ? library : kernels;
}

extern MODULE_EXPORT const struct backend twinstep_backend_v1;
const struct backend twinstep_backend_v1 = {
    .stamp = BACKEND_STAMP,
    .name = BACKEND_NAME,
    .layout = BACKEND_LAYOUT,
    .open = shim_open,
    .describe = shim_describe,
    .memory = {shim_take, shim_give},
    .wait = shim_end,
    TABLE_MEMBERS,
};
