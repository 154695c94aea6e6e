/* SPDX-License-Identifier: Apache-2.0
 * Decides what is wrong with an access, by what its place remembers (tests/shim/shadow.h), and
 * keeps the pieces of memory that a device sees, sorted by address.
 *
 * The functions with two underscores are those that gcc and clang call for ThreadSanitizer. */
#include "tests/shim/accesses.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "tests/shim/shadow.h"

#define PIECES_FIRST ((size_t)64)

struct piece {
    uintptr_t first, end;
};

struct watching {
    struct arena arena;
    struct shadow shadow;
    struct piece *piece; /* (pieces), by address; no two overlap */
    size_t pieces, room;
    int closed;              /* 1: nothing but these pieces may be touched */
    struct watch_place *now; /* NULL: no kernel runs */
};

static _Thread_local struct watching *watching;

enum status watch_open(void) {
    struct arena arena = ARENA_EMPTY;
    struct watching *fresh = NULL;
    if (watching != NULL) return STATUS_OK;
    TRY(arena_take(&arena, 1, sizeof *fresh, "watch", &fresh));
    fresh->arena = arena;
    watching = fresh;
    return STATUS_OK;
}

void watch_close(void) {
    if (watching == NULL) return;
    struct arena arena = watching->arena;
    shadow_close(&watching->shadow);
    watching = NULL;
    arena_close(&arena);
}

void watch_launch(struct watch_place *place) {
    if (watching != NULL) watching->now = place;
}

/* ---- what a device sees ---- */

/* Counts the pieces that begin at or before `address`. */
static size_t count_before(uintptr_t address) {
    size_t low = 0, high = watching->pieces;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (watching->piece[middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(void) {
    const size_t room = watching->room == 0 ? PIECES_FIRST : 2 * watching->room;
    struct piece *more = NULL;
    if (watching->pieces < watching->room) return 1;
    if (arena_take(&watching->arena, room, sizeof *more, "watch", &more) != STATUS_OK) return 0;
    if (watching->pieces > 0) memcpy(more, watching->piece, watching->pieces * sizeof *more);
    watching->piece = more;
    watching->room = room;
    return 1;
}

void watch_memory(const void *memory, size_t bytes) {
    if (watching == NULL) return;
    watching->closed = 1;
    if (bytes == 0) return;
    if (!make_room()) {
        shim_tell("watch: no memory for the pieces of memory that a device sees");
        return;
    }
    const size_t at = count_before((uintptr_t)memory);
    struct piece *const piece = &watching->piece[at];
    memmove(piece + 1, piece, (watching->pieces++ - at) * sizeof *piece);
    *piece = (struct piece){(uintptr_t)memory, (uintptr_t)memory + bytes};
}

void watch_forget(const void *memory) {
    if (watching == NULL) return;
    const size_t before = count_before((uintptr_t)memory);
    if (before == 0) return;
    struct piece *const piece = &watching->piece[before - 1];
    if (piece->first != (uintptr_t)memory) return;
    memmove(piece, piece + 1, (watching->pieces-- - before) * sizeof *piece);
}

static int is_within(const void *memory, const unsigned char *first, size_t bytes) {
    return (uintptr_t)memory - (uintptr_t)first < bytes;
}

static int is_seen(const void *memory, size_t bytes) {
    if (!watching->closed) return 1;
    const size_t before = count_before((uintptr_t)memory);
    return before > 0 && (uintptr_t)memory + bytes <= watching->piece[before - 1].end;
}

/* ---- who was there ---- */

/* Tells whether a barrier lies between what `who` did and now. */
static int is_before(const struct shadow_who *who, const struct shadow_who *now) {
    if (!who->there || (who->block == now->block && who->thread == now->thread)) return 1;
    if (who->block != now->block) return 0;
    if (who->epoch != now->epoch) return 1;
    return who->thread != SHADOW_MANY && who->thread / 32 == now->thread / 32 &&
           who->warp_epoch != now->warp_epoch;
}

static void tell_race(const struct shadow_who *who, const struct shadow_who *now,
                      const char *what) {
    char text[200];
    char other[32] = "several threads";
    if (who->thread != SHADOW_MANY) snprintf(other, sizeof other, "thread %u", who->thread);
    snprintf(text, sizeof text,
             "%s of block %u and thread %u touch one place (%s) with no barrier "
             "between them",
             other, who->block, now->thread, what);
    shim_tell(text);
}

static void note_read(struct shadow_who *read, const struct shadow_who *own) {
    const struct shadow_who before = *read;
    *read = *own;
    if (!before.there) return;
    if (before.block != own->block || before.flag) read->flag = 1;
    if (before.block == own->block && before.epoch == own->epoch && before.thread != own->thread)
        read->thread = SHADOW_MANY;
}

static void look(uintptr_t place, int writes, int atomic, const struct watch_place *now) {
    const int shared = is_within((const void *)place, now->shared, now->shared_bytes);
    const uint32_t warp_epoch = now->warp_epochs[now->thread / 32];
    const struct shadow_who own = {
        now->block, now->epoch, warp_epoch, (uint16_t)now->thread, 1, (uint8_t)(writes && atomic)};
    struct shadow_cell *const cell = shadow_find(&watching->shadow, place, now->launch);
    if (cell == NULL) {
        shim_tell("watch: no memory to remember all places that a launch touches");
        return;
    }
    if (shared && cell->write.there && cell->write.block != now->block)
        *cell = (struct shadow_cell){0}; /* fresh in each block: nobody has written it */
    if (shared && !writes && !cell->write.there)
        shim_tell("reads shared memory that its block has not written");
    if (!is_before(&cell->write, &own) && !(atomic && cell->write.flag))
        tell_race(&cell->write, &own, writes ? "both write" : "the first writes");
    if (!writes) {
        note_read(&cell->read, &own);
        return;
    }
    if (cell->read.flag || !is_before(&cell->read, &own))
        tell_race(&cell->read, &own, "the second writes");
    cell->write = own;
}

static void touch(const void *memory, size_t bytes, int writes, int atomic) {
    struct watch_place *const now = watching == NULL ? NULL : watching->now;
    if (now == NULL || *now->failed) return;
    if (now->thread != *now->running) shim_place(now);
    if (is_within(memory, now->stack, now->stack_bytes)) return;
    if (is_within(memory, now->args, now->args_bytes) && !writes) return;
    if (is_within(memory, now->gpu, now->gpu_bytes) && !writes) return;
    if (is_within(memory, now->shared - now->fence, now->fence) ||
        is_within(memory, now->shared + now->shared_bytes, now->fence))
        shim_tell("touches what lies outside its shared memory");
    else if (!is_within(memory, now->shared, now->shared_bytes) && !is_seen(memory, bytes))
        shim_tell("touches memory that a device does not see");
    for (uintptr_t place = (uintptr_t)memory / SHADOW_PLACE * SHADOW_PLACE;
         place < (uintptr_t)memory + bytes; place += SHADOW_PLACE)
        look(place, writes, atomic, now);
}

void watch_atomic(const void *memory, size_t bytes) {
    touch(memory, bytes, 1, 1);
}

void watch_copy(const void *from, size_t bytes, const void *to, size_t size) {
    if (bytes > 0) touch(from, bytes, 0, 0);
    touch(to, size, 1, 0);
}

/* ---- what the compiler calls, where the sanitizer's own library does not ---- */

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && !defined(__SANITIZE_THREAD__)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_init(void) {
}
void __tsan_func_entry(void *caller) {
    (void)caller;
}
void __tsan_func_exit(void) {
}

#define ACCESS(name, bytes)                                                                        \
    void __tsan_read##name(void *memory);                                                          \
    void __tsan_write##name(void *memory);                                                         \
    void __tsan_read##name(void *memory) {                                                         \
        touch(memory, bytes, 0, 0);                                                                \
    }                                                                                              \
    void __tsan_write##name(void *memory) {                                                        \
        touch(memory, bytes, 1, 0);                                                                \
    }
#define UNALIGNED(name, bytes)                                                                     \
    void __tsan_unaligned_read##name(void *memory);                                                \
    void __tsan_unaligned_write##name(void *memory);                                               \
    void __tsan_unaligned_read##name(void *memory) {                                               \
        touch(memory, bytes, 0, 0);                                                                \
    }                                                                                              \
    void __tsan_unaligned_write##name(void *memory) {                                              \
        touch(memory, bytes, 1, 0);                                                                \
    }
ACCESS(1, 1)
ACCESS(2, 2)
ACCESS(4, 4)
ACCESS(8, 8)
ACCESS(16, 16)
UNALIGNED(2, 2)
UNALIGNED(4, 4)
UNALIGNED(8, 8)
UNALIGNED(16, 16)

void __tsan_read_range(void *memory, unsigned long bytes);
void __tsan_write_range(void *memory, unsigned long bytes);
void *__tsan_memcpy(void *to, const void *from, unsigned long bytes);
void *__tsan_memset(void *to, int byte, unsigned long bytes);
void __tsan_read_range(void *memory, unsigned long bytes) {
    touch(memory, bytes, 0, 0);
}
void __tsan_write_range(void *memory, unsigned long bytes) {
    touch(memory, bytes, 1, 0);
}
void *__tsan_memcpy(void *to, const void *from, unsigned long bytes) {
    touch(from, bytes, 0, 0);
    touch(to, bytes, 1, 0);
    return memcpy(to, from, bytes);
}
void *__tsan_memset(void *to, int byte, unsigned long bytes) {
    touch(to, bytes, 1, 0);
    return memset(to, byte, bytes);
}

#endif
