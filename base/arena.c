/* SPDX-License-Identifier: Apache-2.0
 * Implements arenas as a list of blocks, newest first. A piece that is larger than a quarter of the
 * block size gets a block of its own: a training state is then one contiguous piece, and at most a
 * quarter of any shared block is left unused when the next piece does not fit.
 *
 * Invariant: used <= size in every block, and every byte that was handed out was zeroed by its
 * source. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#endif

#include "base/arena_private.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif
#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
/* What is mapped is searched for pointers then, as what the heap gave is. */
#define MAPPED(memory, bytes) __lsan_register_root_region(memory, bytes)
#define UNMAPPED(memory, bytes) __lsan_unregister_root_region(memory, bytes)
#define POISON(pointer, length) ASAN_POISON_MEMORY_REGION(pointer, length)
#define UNPOISON(pointer, length) ASAN_UNPOISON_MEMORY_REGION(pointer, length)
#else
#define MAPPED(memory, bytes) ((void)(memory), (void)(bytes))
#define UNMAPPED(memory, bytes) ((void)(memory), (void)(bytes))
#define POISON(pointer, length) ((void)(pointer), (void)(length))
#define UNPOISON(pointer, length) ((void)(pointer), (void)(length))
#endif

/* 64 bytes are a cache line and an AVX-512 register. A block of 64 KiB holds the hundreds of small
 * load-time objects (keys, texts, table rows) that come between two large pieces. */
#define ALIGNMENT ((size_t)64)
#define BLOCK_SIZE ((size_t)64 * 1024)

/* A huge page of x86-64, and of aarch64 with pages of 4 KiB. A block of two of them or more is
 * mapped on such a border and asks for huge pages: a training then takes hundreds of page faults
 * when it first touches its state, not tens of thousands, and its products miss fewer translations
 * of addresses. What is left behind the last whole one has small pages, so no more memory is taken
 * than was asked for. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM (2 * HUGE_PAGE)
#define ANY_PAGE ((size_t)64 << 10) /* a multiple of all small pages that Linux has here */

struct arena_block {
    struct arena_block *next;
    size_t size;   /* bytes of data, without the slack for alignment */
    size_t mapped; /* bytes that the system mapped for header and data; 0: a heap's or a source's */
    size_t used;
    unsigned char *data; /* the first aligned byte behind this header, or of `hidden` */
    void *hidden;        /* what a hidden source gave, which holds no header; NULL: it is no such */
    void *adopted;       /* arena_adopt; NULL: none */
    size_t adopted_length;
};

static size_t round_up(size_t value) {
    return (value + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static enum status block_take(const struct arena_source *source, size_t bytes, const char *what,
                              void **out) {
    *out = NULL;
    if (source != NULL)
        TRY(source->take(bytes, out));
    else
        *out = calloc(1, bytes);
    if (*out == NULL) FAIL(STATUS_MEMORY, "%s: cannot get %zu bytes of memory", what, bytes);
    return STATUS_OK;
}

/* Takes `bytes` zeroed bytes, a multiple of ANY_PAGE, at a border of huge pages; NULL: there are
 * none. The system takes what is mapped in front of the border and behind the end back. */
static void *huge_take(size_t bytes) {
    void *const all =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    const size_t front = (HUGE_PAGE - (uintptr_t)all % HUGE_PAGE) % HUGE_PAGE;
    unsigned char *const memory = (unsigned char *)all + front;
    if (front != 0) (void)munmap(all, front);
    (void)munmap(memory + bytes, HUGE_PAGE - front);
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a hint: a system without them has small pages */
    MAPPED(memory, bytes);
    return memory;
}

static enum status block_open(const struct arena_source *source, size_t size, const char *what,
                              struct arena_block **out) {
    const int hidden = source != NULL && source->hidden;
    const size_t room = ALIGNMENT + size;
    const size_t bytes = sizeof(struct arena_block) + (hidden ? 0 : room);
    size_t mapped = 0;
    void *memory = NULL, *first;
    if (source == NULL && bytes >= HUGE_FROM && bytes <= SIZE_MAX - 2 * HUGE_PAGE) {
        mapped = (bytes + ANY_PAGE - 1) / ANY_PAGE * ANY_PAGE;
        memory = huge_take(mapped);
        if (memory == NULL) mapped = 0;
    }
    if (memory == NULL) TRY(block_take(hidden ? NULL : source, bytes, what, &memory));
    struct arena_block *const block = (struct arena_block *)memory;
    block->mapped = mapped;
    first = block + 1;
    if (hidden) {
        const enum status status = block_take(source, room, what, &first);
        if (status != STATUS_OK) {
            free(memory);
            return status;
        }
        block->hidden = first;
    }
    const uintptr_t start = (uintptr_t)first;
    block->data = (unsigned char *)first + (round_up(start) - start);
    block->size = size;
    POISON(block->data, size);
    *out = block;
    return STATUS_OK;
}

static void block_close(const struct arena_source *source, struct arena_block *block) {
    UNPOISON(block->data, block->size);
    if (block->adopted != NULL) (void)munmap(block->adopted, block->adopted_length);
    if (block->hidden != NULL) source->give(block->hidden);
    if (block->mapped != 0) {
        UNMAPPED(block, block->mapped);
        (void)munmap(block, block->mapped);
    } else if (source == NULL || block->hidden != NULL) {
        free(block);
    } else {
        source->give(block);
    }
}

enum status arena_take(struct arena *arena, size_t count, size_t size, const char *what,
                       void *out_pointer) {
    if (size != 0 && count > (SIZE_MAX / 2) / size)
        FAIL(STATUS_MEMORY, "%s: %zu x %zu bytes overflow the address space", what, count, size);
    size_t wanted = count * size;
    size_t step = round_up(wanted + 1); /* leaves at least one poisoned byte behind each piece */
    struct arena_block *block = arena->head;
    if (block == NULL || block->size - block->used < step) {
        size_t block_size = step > BLOCK_SIZE / 4 ? step : BLOCK_SIZE;
        struct arena_block *fresh = NULL;
        TRY(block_open(arena->source, block_size, what, &fresh));
        if (block != NULL &&
            block_size != BLOCK_SIZE) { /* A large piece got its own block: later small pieces go on
                                           filling the old one. */
            fresh->next = block->next;
            block->next = fresh;
        } else {
            fresh->next = block;
            arena->head = fresh;
        }
        arena->total += block_size;
        block = fresh;
    }
    unsigned char *piece = block->data + block->used;
    UNPOISON(piece, wanted);
    block->used += step;
    memcpy(out_pointer, &piece, sizeof piece);
    return STATUS_OK;
}

enum status arena_grow(struct arena *arena, size_t wanted, size_t *room, size_t size,
                       const char *what, void *pointer) {
    void *old, *larger;
    size_t next = *room == 0 ? 16 : *room;
    if (wanted <= *room) return STATUS_OK;
    while (next < wanted)
        next = next > SIZE_MAX / 2 ? wanted : 2 * next;
    memcpy(&old, pointer, sizeof old);
    TRY(arena_take(arena, next, size, what, &larger));
    if (*room > 0) memcpy(larger, old, *room * size);
    memcpy(pointer, &larger, sizeof larger);
    *room = next;
    return STATUS_OK;
}

enum status arena_text(struct arena *arena, const char *bytes, size_t length, char **out_text) {
    TRY(arena_take(arena, length + 1, 1, "text", out_text));
    if (length != 0) memcpy(*out_text, bytes, length);
    return STATUS_OK;
}

enum status arena_format(struct arena *arena, char **out_text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) FAIL(STATUS_INTERNAL, "cannot format \"%s\"", format);
    TRY(arena_take(arena, (size_t)length + 1, 1, "text", out_text));
    va_start(arguments, format);
    vsnprintf(*out_text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return STATUS_OK;
}

enum status arena_adopt(struct arena *arena, void *memory, size_t length) {
    struct arena_block *block = NULL;
    TRY(block_open(arena->source, 0, "memory of another process", &block));
    block->adopted = memory;
    block->adopted_length = length;
    if (arena->head == NULL) {
        arena->head = block;
    } else { /* the head goes on being filled */
        block->next = arena->head->next;
        arena->head->next = block;
    }
    return STATUS_OK;
}

void arena_close(struct arena *arena) {
    struct arena_block *block = arena->head;
    while (block != NULL) {
        struct arena_block *next = block->next;
        block_close(arena->source, block);
        block = next;
    }
    arena->head = NULL;
    arena->total = 0;
}

static volatile int has_lacked;

void *arena_lend(size_t bytes) {
    void *const memory = malloc(bytes);
    if (memory == NULL) has_lacked = 1;
    return memory;
}

void arena_return(void *memory) {
    free(memory);
}

enum status arena_lacked(void) {
    if (has_lacked) FAIL(STATUS_MEMORY, "JSON: no memory");
    return STATUS_OK;
}
