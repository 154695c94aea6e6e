/* SPDX-License-Identifier: Apache-2.0
 * Makes one chosen call of the C library fail, as a full disk, a broken one or an exhausted memory
 * would. tests/faults/faults.py loads it into the program with LD_PRELOAD.
 *
 *   TWINSTEP_FAULT=write:5     the fifth call of write or pwrite fails, those after it work
 *   TWINSTEP_FAULT=write:5+    it fails, and all after it do
 *   TWINSTEP_FAULT=write:5!    the process is killed before it
 *   TWINSTEP_FAULT_CALLS=FILE  every call is written to FILE as "name number stack", where calls of
 *                              one stack have one number; with TWINSTEP_FAULT, every call of the
 *                              name that it has alone, which takes a fourth of the time
 *
 *   TWINSTEP_FAULT_OWN=A-B     the program's own code lies there (hexadecimal, as nm tells it)
 *
 * `own` counts only those allocations that the program's own code asked for, not the libraries that
 * are linked into it, and `malloc` all of them. `stdio` are fflush and fclose: the C library writes
 * by itself there, so the file is exchanged for /dev/full first, and what the buffer holds is lost
 * as on a full disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call {
    CALL_WRITE,
    CALL_FSYNC,
    CALL_FTRUNCATE,
    CALL_RENAME,
    CALL_LINK,
    CALL_UNLINK,
    CALL_OPEN,
    CALL_MKDIR,
    CALL_MMAP,
    CALL_STDIO,
    CALL_THREAD,
    CALL_MALLOC,
    CALL_OWN,
    CALLS
};

static const char *const names[CALLS] = {
    [CALL_WRITE] = "write",   [CALL_FSYNC] = "fsync",   [CALL_FTRUNCATE] = "ftruncate",
    [CALL_RENAME] = "rename", [CALL_LINK] = "link",     [CALL_UNLINK] = "unlink",
    [CALL_OPEN] = "open",     [CALL_MKDIR] = "mkdir",   [CALL_MMAP] = "mmap",
    [CALL_STDIO] = "stdio",   [CALL_THREAD] = "thread", [CALL_MALLOC] = "malloc",
    [CALL_OWN] = "own"};

static atomic_long counts[CALLS];
static int chosen = -1, for_good, kills, calls_file = -1;
static long chosen_count;
static uintptr_t program_begin, program_end; /* the program's own code */
static int ready;

/* A number of the calling functions, the same for all calls of one process that came the same
 * way. (FNV-1a) */
static uint64_t stack_number(void) {
    void *frames[32];
    uint64_t number = UINT64_C(14695981039346656037);
    const int depth = backtrace(frames, 32);
    for (int i = 1; i < depth; i++)
        number = (number ^ (uintptr_t)frames[i]) * UINT64_C(1099511628211);
    return number;
}

static void note(enum call call, long count) {
    static _Thread_local int within; /* what asks for the stack may allocate */
    char line[96];
    if (within) return;
    within = 1;
    const int length =
        snprintf(line, sizeof line, "%s %ld %016" PRIx64 "\n", names[call], count, stack_number());
    if (syscall(SYS_write, calls_file, line, (size_t)length) != length) _exit(98);
    within = 0;
}

/* Whether this call of `call` is the one that fails. */
static int fails(enum call call) {
    if (!ready) return 0;
    const long count = atomic_fetch_add(&counts[call], 1) + 1;
    if (calls_file >= 0 && (chosen < 0 || (int)call == chosen)) note(call, count);
    if ((int)call != chosen || count < chosen_count) return 0;
    if (kills) raise(SIGKILL);
    return for_good || count == chosen_count;
}

/* ---- set-up ---- */

/* A program into which HDF5 was linked has HDF5's code behind its own. */
static int read_own(struct dl_phdr_info *info) {
    const char *const said = getenv("TWINSTEP_FAULT_OWN");
    char *end;
    if (said == NULL) return 0;
    program_begin = info->dlpi_addr + strtoul(said, &end, 16);
    program_end = info->dlpi_addr + (*end == '-' ? strtoul(end + 1, NULL, 16) : 0);
    return 1;
}

static int find_program(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (read_own(info)) return 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
        program_begin = info->dlpi_addr + part->p_vaddr;
        program_end = program_begin + part->p_memsz;
    }
    return 1; /* the first object is the program */
}

__attribute__((constructor)) static void begin(void) {
    const char *said = getenv("TWINSTEP_FAULT");
    dl_iterate_phdr(find_program, NULL);
    for (int call = 0; said != NULL && call < CALLS; call++) {
        const size_t length = strlen(names[call]);
        if (strncmp(said, names[call], length) != 0 || said[length] != ':') continue;
        char *end;
        chosen = call;
        chosen_count = strtol(said + length + 1, &end, 10);
        for_good = *end == '+';
        kills = *end == '!';
    }
    if (said != NULL && chosen < 0) {
        fprintf(stderr, "failing: TWINSTEP_FAULT=%s names no call\n", said);
        _exit(99);
    }
    const char *path = getenv("TWINSTEP_FAULT_CALLS");
    void *frame;
    if (path != NULL) {
        (void)backtrace(&frame, 1); /* loads what it needs now */
        calls_file = openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (calls_file < 0) _exit(98);
    }
    ready = 1;
}

/* The function of that name behind this library. ISO C has no cast from void * to a function. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (next == NULL) {                                                                            \
        void *const found = dlsym(RTLD_NEXT, #name);                                               \
        memcpy(&next, &found, sizeof next);                                                        \
    }

#define FAIL_WITH(call, reason, result)                                                            \
    if (fails(call)) {                                                                             \
        errno = (reason);                                                                          \
        return (result);                                                                           \
    }

/* ---- files ---- */

/* Where the error is told no disk is full: a program that may not speak cannot say why it ends. */
/* A child that reads a stranger's file may not write (base/confined_filter.c), so its calls could
 * not be written down: here it keeps that right. It counts on from its parent's numbers. */
int prctl(int option, ...) {
    unsigned long words[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP) return 0;
    return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

ssize_t write(int handle, const void *bytes, size_t count) {
    NEXT(write)
    if (handle != STDERR_FILENO) FAIL_WITH(CALL_WRITE, EIO, -1)
    return next(handle, bytes, count);
}

ssize_t pwrite(int handle, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite)
    FAIL_WITH(CALL_WRITE, EIO, -1)
    return next(handle, bytes, count, at);
}

ssize_t pwrite64(int handle, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64)
    FAIL_WITH(CALL_WRITE, EIO, -1)
    return next(handle, bytes, count, at);
}

int fsync(int handle) {
    NEXT(fsync)
    FAIL_WITH(CALL_FSYNC, EIO, -1)
    return next(handle);
}

int fdatasync(int handle) {
    NEXT(fdatasync)
    FAIL_WITH(CALL_FSYNC, EIO, -1)
    return next(handle);
}

int ftruncate(int handle, off_t length) {
    NEXT(ftruncate)
    FAIL_WITH(CALL_FTRUNCATE, EIO, -1)
    return next(handle, length);
}

int ftruncate64(int handle, off64_t length) {
    NEXT(ftruncate64)
    FAIL_WITH(CALL_FTRUNCATE, EIO, -1)
    return next(handle, length);
}

int rename(const char *from, const char *to) {
    NEXT(rename)
    FAIL_WITH(CALL_RENAME, EIO, -1)
    return next(from, to);
}

int link(const char *from, const char *to) {
    NEXT(link)
    FAIL_WITH(CALL_LINK, EIO, -1)
    return next(from, to);
}

int unlink(const char *path) {
    NEXT(unlink)
    FAIL_WITH(CALL_UNLINK, EIO, -1)
    return next(path);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir)
    FAIL_WITH(CALL_MKDIR, ENOSPC, -1)
    return next(path, mode);
}

/* The mode is the third argument where there is one; reading one that is not there is harmless on
 * the ABIs that twinstep is built for. */
#define OPENING(name)                                                                              \
    int name(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = va_arg(rest, mode_t);                                                  \
        va_end(rest);                                                                              \
        NEXT(name)                                                                                 \
        FAIL_WITH(CALL_OPEN, EMFILE, -1)                                                           \
        return next(path, flags, mode);                                                            \
    }
OPENING(open)
OPENING(open64)

FILE *fopen(const char *path, const char *mode) {
    NEXT(fopen)
    FAIL_WITH(CALL_OPEN, EMFILE, NULL)
    return next(path, mode);
}

FILE *fdopen(int handle, const char *mode) {
    NEXT(fdopen)
    FAIL_WITH(CALL_OPEN, ENOMEM, NULL)
    return next(handle, mode);
}

static void fill_disk(FILE *file) {
    const int full = file == NULL ? -1 : openat(AT_FDCWD, "/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) return;
    dup2(full, fileno(file));
    close(full);
}

int fflush(FILE *file) {
    NEXT(fflush)
    if (fails(CALL_STDIO)) fill_disk(file);
    return next(file);
}

int fclose(FILE *file) {
    NEXT(fclose)
    if (fails(CALL_STDIO)) fill_disk(file);
    return next(file);
}

/* ---- memory and threads ---- */

void *mmap(void *where, size_t length, int access, int flags, int handle, off_t at) {
    NEXT(mmap)
    FAIL_WITH(CALL_MMAP, ENOMEM, MAP_FAILED)
    return next(where, length, access, flags, handle, at);
}

void *mmap64(void *where, size_t length, int access, int flags, int handle, off64_t at) {
    NEXT(mmap64)
    FAIL_WITH(CALL_MMAP, ENOMEM, MAP_FAILED)
    return next(where, length, access, flags, handle, at);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    NEXT(pthread_create)
    if (fails(CALL_THREAD)) return EAGAIN;
    return next(out, attributes, run, argument);
}

/* glibc's allocator under the names that dlsym does not need memory to find. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static int memory_fails(const void *caller) {
    const uintptr_t at = (uintptr_t)caller;
    const int own = at >= program_begin && at < program_end && fails(CALL_OWN);
    return fails(CALL_MALLOC) || own;
}

#define FAIL_MEMORY()                                                                              \
    if (memory_fails(__builtin_return_address(0))) {                                               \
        errno = ENOMEM;                                                                            \
        return NULL;                                                                               \
    }

void *malloc(size_t bytes) {
    FAIL_MEMORY()
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    FAIL_MEMORY()
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    FAIL_MEMORY()
    return __libc_realloc(old, bytes);
}
