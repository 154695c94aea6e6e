/* SPDX-License-Identifier: Apache-2.0
 * The backend "shim" as a module: the kernels of kernels/cuda/ on the host, for tests without a
 * device. Its memory comes in arenas of their own. */
#define BACKEND_WORD shim
#include "kernels/cuda/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/cuda/shim.h"

static enum status shim_open(void) {
    shim_seed(0x7d3c91e5a2f08b46u);
    return STATUS_OK;
}

static enum status shim_describe(char *text, size_t size) {
    snprintf(text, size, "the host: CUDA kernels thread by thread, for tests");
    return STATUS_OK;
}

/* The arena stands in front of the piece. */
static enum status shim_take(size_t bytes, void **out) {
    struct arena arena = ARENA_EMPTY;
    unsigned char *memory = NULL;
    TRY(arena_take(&arena, bytes + 64, 1, "shim memory", &memory));
    memcpy(memory, &arena, sizeof arena);
    *out = memory + 64;
    return STATUS_OK;
}

static void shim_give(void *memory) {
    struct arena arena;
    memcpy(&arena, (unsigned char *)memory - 64, sizeof arena);
    arena_close(&arena);
}

extern MODULE_EXPORT const struct backend twinstep_backend_v1;
const struct backend twinstep_backend_v1 = {BACKEND_STAMP,
                                                    "shim",
                                                    BACKEND_LAYOUT,
                                                    shim_open,
                                                    shim_describe,
                                                    {shim_take, shim_give},
                                                    shim_error,
                                                    tables_refuse,
                                                    tables_ops,
                                                    tables_scratch};
