/* SPDX-License-Identifier: Apache-2.0
 * Keeps the mappings in a list and sets their protection, all of them at a time. That is done twice
 * for each time the host waits, so small pieces lie beside each other in slabs, which are protected
 * as one. A slab goes when none of its pieces is left. With the address sanitizer each piece is a
 * mapping of its own, with what it watches around it. */
#include "tests/shim/shim_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"

#define SLABS 4096u
#ifdef __SANITIZE_ADDRESS__
#define SLAB_BYTES 0
#else
#define SLAB_BYTES ((size_t)1 << 19)
#endif

struct slab {
    struct arena arena;    /* holds nothing else */
    unsigned char *memory; /* whole pages of it */
    size_t bytes, used, pieces;
};

static struct slab slabs[SLABS];
static unsigned count, opened;

/* A page whose protection cannot be set would let a host's touch pass unseen. */
static void protect(const struct slab *slab, int how) {
    if (mprotect(slab->memory, slab->bytes, how) != 0) abort();
}

static void protect_all(int how) {
    for (unsigned i = 0; i < count; i++)
        protect(&slabs[i], how);
}

void shim_memory_open(void) {
    if (opened++ == 0) protect_all(PROT_READ | PROT_WRITE);
}

void shim_memory_close(void) {
    if (--opened == 0) protect_all(PROT_NONE);
}

/* Adds a slab of so many bytes, whole pages. */
static enum status add(size_t bytes, size_t page) {
    struct slab slab = {.arena = ARENA_EMPTY, .bytes = bytes};
    if (count == SLABS) FAIL(STATUS_MEMORY, "shim: expected at most %u slabs of memory", SLABS);
    TRY(arena_take(&slab.arena, bytes + page, 1, "shim memory", &slab.memory));
    slab.memory += (page - (uintptr_t)slab.memory % page) % page;
    slabs[count++] = slab;
    if (opened == 0) protect(&slab, PROT_NONE);
    return STATUS_OK;
}

enum status shim_memory_take(size_t bytes, void **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + (bytes == 0) + page - 1) / page * page;
    unsigned i = 0;
    while (i < count && slabs[i].bytes - slabs[i].used < whole)
        i++;
    if (i == count) TRY(add(whole > SLAB_BYTES ? whole : SLAB_BYTES, page));
    *out = slabs[i].memory + slabs[i].used;
    slabs[i].used += whole;
    slabs[i].pieces++;
    return STATUS_OK;
}

void shim_memory_give(void *memory) {
    for (unsigned i = count; i-- > 0;) {
        struct slab *const slab = &slabs[i];
        const uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)slab->memory;
        if (at < begin || at >= begin + slab->used) continue;
        if (--slab->pieces > 0) return;
        protect(slab, PROT_READ | PROT_WRITE);
        arena_close(&slab->arena);
        *slab = slabs[--count];
        return;
    }
}
