/* SPDX-License-Identifier: Apache-2.0
 * Keeps the mappings in a list and sets their protection, all of them at a time. */
#include "tests/shim/shim_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"

#define PIECES 4096u

struct piece {
    struct arena arena; /* holds nothing else */
    void *memory;       /* whole pages of it */
    size_t bytes;
};

static struct piece pieces[PIECES];
static unsigned count, opened;

/* A page whose protection cannot be set would let a host's touch pass unseen. */
static void protect(const struct piece *piece, int how) {
    if (mprotect(piece->memory, piece->bytes, how) != 0) abort();
}

static void protect_all(int how) {
    for (unsigned i = 0; i < count; i++)
        protect(&pieces[i], how);
}

void shim_memory_open(void) {
    if (opened++ == 0) protect_all(PROT_READ | PROT_WRITE);
}

void shim_memory_close(void) {
    if (--opened == 0) protect_all(PROT_NONE);
}

enum status shim_memory_take(size_t bytes, void **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + page - 1) / page * page;
    struct piece piece = {.arena = ARENA_EMPTY, .bytes = whole};
    unsigned char *memory;
    if (count == PIECES) FAIL(STATUS_MEMORY, "shim: expected at most %u pieces of memory", PIECES);
    TRY(arena_take(&piece.arena, whole + page, 1, "shim memory", &memory));
    memory += (page - (uintptr_t)memory % page) % page;
    piece.memory = memory;
    pieces[count++] = piece;
    if (opened == 0) protect(&piece, PROT_NONE);
    *out = memory;
    return STATUS_OK;
}

void shim_memory_give(void *memory) {
    for (unsigned i = count; i-- > 0;) {
        if (pieces[i].memory != memory) continue;
        protect(&pieces[i], PROT_READ | PROT_WRITE);
        arena_close(&pieces[i].arena);
        pieces[i] = pieces[--count];
        return;
    }
}
