/* SPDX-License-Identifier: Apache-2.0
 * Forks, confines the child (confined_filter.c) and waits for it.
 *
 * The shared memory is reserved by the length of the file and is real only where it was written.
 * The head of it holds what the child says.
 *
 * Invariant: the parent reads nothing of the shared memory before the child is gone, and follows
 * nothing in it before `look` has seen it. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "base/confined.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena_private.h"
#include "base/confined_filter.h"
#include "base/macro.h"

#define MOST ((size_t)1 << 38)
#define LEAST ((size_t)1 << 20)
#define SPARE ((size_t)64 << 20)
#define EACH 256 /* for a byte of the file */
#define TEXT 2048
#define ANSWER 512           /* room for an answer */
#define PAGE ((size_t)65536) /* pages of the machine are this or smaller */

struct shared {
    int done; /* the work ended by itself, with: */
    int status;
    int denied; /* it asked for memory that it did not get */
    char text[TEXT];
    size_t used; /* bytes from the head on */
    unsigned char answer[ANSWER];
};

/* The memory that the work of this process takes from; or that is looked at. A process does one
 * such thing at a time. */
static struct {
    unsigned char *begin;
    size_t length, used;
} region;

static enum status take_shared(size_t bytes, void **out) {
    const size_t wanted = (bytes + 63) & ~(size_t)63;
    if (wanted < bytes || wanted > region.length - region.used)
        FAIL(STATUS_MEMORY,
             "asks for %zu bytes of memory on top of %zu, more than a file of its size may hold",
             bytes, region.used);
    *out = region.begin + region.used;
    region.used += wanted;
    return STATUS_OK;
}

static void give_shared(void *memory) {
    (void)memory; /* it goes with the region */
}

/* How much memory what is in a file may take. Rows of a few bytes become records of some hundred,
 * and lists grow by doubling; more than this is no trace that was meant well. */
static size_t room_for(const char *path) {
    struct stat info;
    const size_t length = stat(path, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0;
    return length > (MOST - SPARE) / EACH ? MOST : SPARE + EACH * length;
}

/* Where the system does not agree, half of it may do. */
static enum status reserve(const char *path) {
    for (size_t length = room_for(path); length >= LEAST; length /= 2) {
        void *const memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) continue;
        region.begin = (unsigned char *)memory;
        region.length = length;
        region.used = (sizeof(struct shared) + 63) & ~(size_t)63;
        return STATUS_OK;
    }
    FAIL(STATUS_MEMORY, "%s: cannot share memory with a process: %s", path, strerror(errno));
}

static void release(void) {
    munmap(region.begin, region.length);
    region.begin = NULL;
    region.length = region.used = 0;
}

int confined_holds(const void *pointer, uint64_t count, size_t size) {
    const uintptr_t at = (uintptr_t)pointer, begin = (uintptr_t)region.begin;
    if (count == 0) return 1;
    if (at < begin || at - begin > region.used) return 0;
    const size_t left = region.used - (at - begin);
    return count <= left / size && at % (size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : 1) == 0;
}

int confined_text(const char *text) {
    if (!confined_holds(text, 1, 1)) return 0;
    return memchr(text, '\0', region.used - (size_t)((const unsigned char *)text - region.begin)) !=
           NULL;
}

static size_t memory_of(const struct confined *confined) {
    return confined->memory > 0 ? confined->memory : confined_memory(confined->path);
}

static unsigned seconds_of(const struct confined *confined) {
    return confined->seconds > 0 ? confined->seconds : confined_seconds(confined->path);
}

/* In the child. A failed allocation leaves its mark in errno, and what succeeds later does not take
 * it away. */
static void note_denied(int signal) {
    struct shared *shared;
    (void)signal;
    memcpy(&shared, &region.begin, sizeof shared);
    if (errno == ENOMEM) shared->denied = 1;
}

/* A library that uses the memory that it did not get dies of it: the handler notes that, and goes
 * back to where the signal, now with its default action, comes again. */
static void watch_memory(void) {
    static const int signals[] = {SIGSEGV, SIGBUS};
    struct sigaction action = {.sa_handler = note_denied};
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
}

/* In the child. */
static void work_here(const struct confined *confined, struct shared *shared) {
    static const struct arena_source source = {.take = take_shared, .give = give_shared};
    struct arena arena = ARENA_EMPTY;
    arena.source = &source;
    confined_limit(seconds_of(confined));
    const int limited = confined_limit_memory(memory_of(confined));
    if (limited) watch_memory();
    confined_enter(confined->path);
    errno = 0;
    const enum status status = confined->work(confined->asked, &arena, shared->answer);
    if (status != STATUS_OK) {
        if (limited) note_denied(0);
        strncpy(shared->text, status_text(), TEXT - 1);
    }
    shared->status = (int)status;
    shared->used = region.used;
    shared->done = 1;
    _exit(0);
}

static enum status fail_broken(const char *path, const char *how) {
    FAIL(STATUS_INPUT, "%s: the file broke its reader: %s; it is not a trace to be trusted", path,
         how);
}

/* What became of a child that did not end by itself. */
static enum status fail_ended(const struct confined *confined, int ended, int denied) {
    const char *const path = confined->path;
    const int by = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    if (by == SIGINT || by == SIGTERM || by == SIGHUP)
        FAIL(STATUS_INTERRUPTED, "%s: interrupted while it was read", path);
    if (by == SIGXCPU)
        FAIL(STATUS_INPUT,
             "%s: the file broke its reader: %u s of processor time were not enough to read it; it "
             "is not a trace to be trusted",
             path, seconds_of(confined));
    if (by == SIGKILL)
        FAIL(STATUS_INPUT,
             "%s: the process that read it was killed, as the system does where memory runs out",
             path);
    if (denied)
        FAIL(STATUS_INPUT,
             "%s: memory ran out while it was read, of which its reader may take %zu MiB, and the "
             "reader died of it",
             path, memory_of(confined) >> 20);
    return fail_broken(path, by != 0 ? strsignal(by) : "it ended the process that read it");
}

static enum status wait_for(const char *path, pid_t child, int *out_ended) {
    while (waitpid(child, out_ended, 0) < 0)
        if (errno != EINTR) FAIL(STATUS_IO, "%s: cannot wait for its reader", path);
    return STATUS_OK;
}

/* In the parent: everything in the shared memory may be anything. */
static enum status take_over(const struct confined *confined, const struct shared *shared,
                             void *answer, size_t size) {
    char text[TEXT];
    const int status = shared->status;
    if (status != STATUS_OK) {
        memcpy(text, shared->text, sizeof text);
        text[TEXT - 1] = '\0';
        if (status < 0 || status > STATUS_INTERNAL || text[0] == '\0')
            return fail_broken(confined->path, "it said nothing");
        if (shared->denied)
            FAIL((enum status)status,
                 "%s: memory ran out while it was read, of which its reader may take %zu MiB: %s",
                 confined->path, memory_of(confined) >> 20, text);
        FAIL((enum status)status, "%s", text);
    }
    if (shared->used < sizeof *shared || shared->used > region.length)
        return fail_broken(confined->path, "its answer has no size");
    region.used = shared->used;
    memcpy(answer, shared->answer, size);
    if (!confined->look(confined->asked, answer))
        return fail_broken(confined->path, "its answer is none that a reader gives");
    return STATUS_OK;
}

/* Gives back what was reserved and not used; the rest lives on with the arena. */
static enum status keep(struct arena *arena) {
    const size_t used = (region.used + PAGE - 1) / PAGE * PAGE;
    if (used < region.length) {
        munmap(region.begin + used, region.length - used);
        region.length = used;
    }
    return arena_adopt(arena, region.begin, region.length);
}

static enum status run_apart(const struct confined *confined, void *answer, size_t size,
                             struct arena *arena) {
    struct shared *shared;
    int ended = 0;
    if (size > ANSWER) FAIL(STATUS_INTERNAL, "an answer of %zu bytes", size);
    TRY(reserve(confined->path));
    memcpy(&shared, &region.begin, sizeof shared);
    const pid_t child = fork();
    if (child == 0) work_here(confined, shared);
    enum status status =
        child < 0 ? status_fail(STATUS_IO, "%s: cannot start a process that reads it: %s",
                                confined->path, strerror(errno))
                  : wait_for(confined->path, child, &ended);
    if (status == STATUS_OK && (!WIFEXITED(ended) || !shared->done))
        status = fail_ended(confined, ended, shared->denied);
    if (status == STATUS_OK) status = take_over(confined, shared, answer, size);
    if (status == STATUS_OK) status = keep(arena);
    if (status != STATUS_OK)
        release();
    else
        region.begin = NULL;
    return status;
}

/* A fuzzer sees only what its own process does, and wants to see what breaks. */
enum status confined_run(const struct confined *confined, void *answer, size_t size,
                         struct arena *arena) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)size;
    (void)run_apart;
    return confined->work(confined->asked, arena, answer);
#else
    return run_apart(confined, answer, size, arena);
#endif
}
