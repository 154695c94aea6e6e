/* SPDX-License-Identifier: Apache-2.0
 * A table of places by address, open, whose cells belong to one launch: those of another are empty.
 * The names with two underscores are the compiler's (gcc's and clang's ThreadSanitizer). */
#include "kernels/cuda/accesses.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

#define CELLS ((size_t)1 << 20)
#define RANGES 1024u
#define MANY UINT32_MAX

struct who {
    uint32_t block, epoch, warp_epoch, thread; /* thread MANY: several of this epoch */
    int there, atomic;
};

struct cell {
    uintptr_t place;
    uint32_t launch;
    struct who write, read;
    int blocks_read; /* by several blocks */
};

struct range {
    uintptr_t first, end;
};

struct watching {
    struct arena arena;
    struct cell *cell;
    size_t used;
    uint32_t launch;
    struct range range[RANGES];
    size_t ranges;
    int closed; /* only ranges are allowed */
};

static _Thread_local struct watching *watching;

enum status watch_open(void) {
    struct arena arena = ARENA_EMPTY;
    struct watching *fresh = NULL;
    if (watching != NULL) return STATUS_OK;
    TRY(arena_take(&arena, 1, sizeof *fresh, "watch", &fresh));
    const enum status status =
        arena_take(&arena, CELLS, sizeof *fresh->cell, "watch", &fresh->cell);
    fresh->arena = arena;
    if (status != STATUS_OK) arena_close(&arena);
    if (status == STATUS_OK) watching = fresh;
    return status;
}

void watch_close(void) {
    if (watching == NULL) return;
    struct arena arena = watching->arena;
    watching = NULL;
    arena_close(&arena);
}

void watch_memory(const void *memory, size_t bytes) {
    if (watching == NULL) return;
    if (watching->ranges == RANGES) {
        shim_tell("watch: more pieces of memory than it can remember");
        return;
    }
    watching->range[watching->ranges++] =
        (struct range){(uintptr_t)memory, (uintptr_t)memory + bytes};
    watching->closed = 1;
}

void watch_forget(const void *memory) {
    for (size_t i = 0; watching != NULL && i < watching->ranges; i++)
        if (watching->range[i].first == (uintptr_t)memory)
            watching->range[i--] = watching->range[--watching->ranges];
}

static int is_within(const void *memory, const unsigned char *first, size_t bytes) {
    return (uintptr_t)memory - (uintptr_t)first < bytes;
}

static int is_seen(const void *memory) {
    for (size_t i = 0; i < watching->ranges; i++)
        if ((uintptr_t)memory >= watching->range[i].first &&
            (uintptr_t)memory < watching->range[i].end)
            return 1;
    return !watching->closed;
}

static struct cell *cell_of(uintptr_t place, const struct watch_place *now) {
    size_t at = (size_t)((uint64_t)(place >> 2) * 0x9e3779b97f4a7c15u >> 40) % CELLS;
    if (watching->launch != now->launch) watching->used = 0;
    watching->launch = now->launch;
    for (;; at = (at + 1) % CELLS) {
        struct cell *const cell = &watching->cell[at];
        if (cell->launch == now->launch && cell->place == place) return cell;
        if (cell->launch == now->launch) continue;
        if (watching->used >= CELLS / 2) return NULL;
        watching->used++;
        *cell = (struct cell){.place = place, .launch = now->launch};
        return cell;
    }
}

/* Whether a barrier lies between what `who` did and now. */
static int is_before(const struct who *who, const struct watch_place *now) {
    if (!who->there || (who->block == now->block && who->thread == now->thread)) return 1;
    if (who->block != now->block) return 0;
    if (who->epoch != now->epoch) return 1;
    return who->thread != MANY && who->thread / 32 == now->thread / 32 &&
           who->warp_epoch != now->warp_epoch;
}

static void tell_race(const struct who *who, const struct watch_place *now, const char *what) {
    char text[200];
    char other[32] = "several threads";
    if (who->thread != MANY) snprintf(other, sizeof other, "thread %u", who->thread);
    snprintf(text, sizeof text,
             "%s of block %u and thread %u touch one place (%s) with no barrier "
             "between them",
             other, who->block, now->thread, what);
    shim_tell(text);
}

static void note_read(struct cell *cell, const struct watch_place *now, const struct who *own) {
    struct who *const read = &cell->read;
    if (read->there && read->block != now->block) cell->blocks_read = 1;
    const int same = read->there && read->block == now->block && read->epoch == now->epoch &&
                     read->thread != now->thread;
    *read = *own;
    if (same) read->thread = MANY;
}

static void look(uintptr_t place, int writes, int atomic, const struct watch_place *now) {
    const int shared = is_within((const void *)place, now->shared, now->shared_bytes);
    const struct who own = {now->block, now->epoch, now->warp_epoch, now->thread, 1, atomic};
    struct cell *const cell = cell_of(place, now);
    if (cell == NULL) {
        shim_tell("watch: a launch touches more places than it can remember");
        return;
    }
    if (shared && cell->write.there && cell->write.block != now->block)
        *cell = (struct cell){.place = place, .launch = now->launch}; /* poisoned anew */
    if (shared && !writes && !cell->write.there)
        shim_tell("reads shared memory that its block has not written");
    if (!is_before(&cell->write, now) && !(atomic && cell->write.atomic))
        tell_race(&cell->write, now, writes ? "both write" : "the first writes");
    if (!writes) {
        note_read(cell, now, &own);
        return;
    }
    if (cell->blocks_read || !is_before(&cell->read, now))
        tell_race(&cell->read, now, "the second writes");
    cell->write = own;
}

static void touch(const void *memory, size_t bytes, int writes, int atomic) {
    struct watch_place now;
    if (watching == NULL || !shim_place(&now)) return;
    if (is_within(memory, now.stack, now.stack_bytes)) return;
    if (is_within(memory, now.args, now.args_bytes) && !writes) return;
    if (is_within(memory, now.gpu, now.gpu_bytes) && !writes) return;
    if (is_within(memory, now.shared - now.fence, now.fence) ||
        is_within(memory, now.shared + now.shared_bytes, now.fence))
        shim_tell("touches what lies outside its shared memory");
    else if (!is_within(memory, now.shared, now.shared_bytes) && !is_seen(memory))
        shim_tell("touches memory that a device does not see");
    for (uintptr_t place = (uintptr_t)memory & ~(uintptr_t)3; place < (uintptr_t)memory + bytes;
         place += 4)
        look(place, writes, atomic, &now);
}

void watch_atomic(const void *memory, size_t bytes) {
    touch(memory, bytes, 1, 1);
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
