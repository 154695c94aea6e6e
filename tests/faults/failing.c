/* SPDX-License-Identifier: Apache-2.0
 * Makes one chosen call of the C library fail, as a full disk, a broken one or an exhausted memory
 * would. tests/faults/faults.py loads it into the program with LD_PRELOAD.
 *
 *   TWINSTEP_FAULT=write:5     the fifth call of write or pwrite fails, those after it work
 *   TWINSTEP_FAULT=write:5+    it fails, and all after it do
 *   TWINSTEP_FAULT=write:5!    the process is killed before it
 *   TWINSTEP_FAULT_CALLS=FILE  every call is written to FILE as "name number stack process", where
 *                              calls of one stack have one number, in every run, and process is 0
 *                              for the first one of the command and 1 for those that it starts;
 *                              with TWINSTEP_FAULT, every call of the name that it has alone, which
 *                              takes a fourth of the time
 *   TWINSTEP_FAULT_STOPS=FILE,IN,OUT   the first process stops at each call of malloc that FILE has
 *                              as "number stack", in the order of numbers, says so on descriptor
 * OUT and does what IN says: see serve()
 *   TWINSTEP_FAULT_STACK=S,FILE  the call fails only if its stack has the number S, since children
 *                              have the same numbers of calls; then FILE gets a byte, and `for
 * good` is meant for its process
 *
 *   TWINSTEP_FAULT_OWN=A-B     the program's own code lies there (hexadecimal, as nm tells it)
 *
 * `own` counts only those allocations that the program's own code asked for, not the libraries that
 * are linked into it, and `malloc` all of them. `stdio` are fflush and fclose: the C library writes
 * by itself there, so the file is exchanged for /dev/full first, and what the buffer holds is lost
 * as on a full disk. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ftw.h>
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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
static uint64_t chosen_stack;
static int met_file = -1;
static uintptr_t program_begin, program_end; /* the program's own code */
static int ready;

/* ---- stacks ---- */

#define DEEPEST 96
#define OBJECTS 128

static struct { uintptr_t begin, end, base; } objects[OBJECTS];
static int object_count;
static int depth_at_fork; /* of the functions that called fork(), which a child did not come by */
static pid_t first_process;

static int add_object(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum && object_count < OBJECTS; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
        objects[object_count].begin = info->dlpi_addr + part->p_vaddr;
        objects[object_count].end = objects[object_count].begin + part->p_memsz;
        objects[object_count++].base = info->dlpi_addr;
    }
    return 0;
}

/* Where the code of a frame lies in its object, which is the same in every process. */
static uint64_t place_of(uintptr_t at) {
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < object_count; i++)
            if (at >= objects[i].begin && at < objects[i].end)
                return (uint64_t)i << 48 | (at - objects[i].base);
        object_count = 0; /* one that was opened since */
        dl_iterate_phdr(add_object, NULL);
    }
    return 0;
}

/* A number of the calling functions, the same for all calls that came the same way. In a child the
 * way begins where it was forked: what it does after that is a function of what it reads, whichever
 * verb wants it. (FNV-1a) */
static uint64_t stack_number(void) {
    void *frames[DEEPEST];
    uint64_t number = UINT64_C(14695981039346656037);
    const int depth = backtrace(frames, DEEPEST) - depth_at_fork;
    const uint64_t here = place_of((uintptr_t)frames[0]) >> 48;
    for (int i = 1; i < depth; i++) {
        const uint64_t place = place_of((uintptr_t)frames[i]);
        if (place >> 48 != here) number = (number ^ place) * UINT64_C(1099511628211);
    }
    return number;
}

static _Thread_local int within; /* what asks for the stack may allocate */

static void note(enum call call, long count) {
    char line[96];
    if (within) return;
    within = 1;
    const int length = snprintf(line, sizeof line, "%s %ld %016" PRIx64 " %d\n", names[call], count,
                                stack_number(), getpid() != first_process);
    if (syscall(SYS_write, calls_file, line, (size_t)length) != length) _exit(98);
    within = 0;
}

/* ---- one process for many failing calls ---- */

#define ASKED 1024

static const char *stops; /* what is left of the list */
static int ask_from = -1, say_to = -1;
static long next_stop;
static uint64_t next_stack;
static char root[ASKED]; /* the folder above the working folder, in which all files are */

static void say(const char *what, long number) {
    char line[96];
    const int length = snprintf(line, sizeof line, "%s %ld\n", what, number);
    if (syscall(SYS_write, say_to, line, (size_t)length) != length) _exit(98);
}

static void hear(char line[ASKED]) {
    for (size_t i = 0; i + 1 < ASKED; i++) {
        if (read(ask_from, line + i, 1) != 1) _exit(98);
        line[i + 1] = '\0';
        if (line[i] != '\n') continue;
        line[i] = '\0';
        return;
    }
    _exit(98);
}

/* The list is in memory, since a copy that ends would move the place in a file that it shares. */
static void open_stops(const char *path) {
    const int file = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    const off_t length = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    char *const text = length < 0 ? NULL : calloc(1, (size_t)length + 1);
    if (text == NULL || pread(file, text, (size_t)length, 0) != length) _exit(98);
    close(file);
    stops = text;
}

static void read_stop(void) {
    char *end;
    next_stop = strtol(stops, &end, 10);
    next_stack = strtoull(end, &end, 16);
    stops = end;
}

/* Memory that the parent shares with nobody any more, as the image that a child left, is the
 * parent's own: a copy of the process needs a copy of it. */
static void copy_shared_memory(void) {
    char line[ASKED], access[8], name[64];
    unsigned long begin, end;
    FILE *const maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) _exit(96);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %63s", &begin, &end, access, name) != 4) continue;
        if (access[3] != 's' || strcmp(name, "/dev/zero") != 0) continue;
        void *const copy =
            mmap(NULL, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy == MAP_FAILED) _exit(96);
        memcpy(copy, (void *)begin, end - begin); /* NOLINT */
        if (mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) ==
            MAP_FAILED) /* NOLINT */
            _exit(96);
    }
    fclose(maps);
}

/* Files that a copy of the process has a copy of, by their inodes. The program remembers which file
 * it writes, to see whether another process replaces it. */
static struct { ino_t copy, original; } same_files[256];
static int same_count;

static void seem_the_original(ino_t *inode) {
    for (int i = 0; i < same_count; i++)
        if (*inode == same_files[i].copy) {
            *inode = same_files[i].original;
            return;
        }
}

static const char *other_root;

static int add_same_file(const char *path, const struct stat *was, int kind, struct FTW *where) {
    char other[2 * ASKED];
    struct stat is;
    (void)where;
    snprintf(other, sizeof other, "%s%s", other_root, path + strlen(root));
    if (kind != FTW_F || stat(other, &is) != 0 || is.st_ino == was->st_ino) return 0;
    if (same_count == sizeof same_files / sizeof *same_files) _exit(96);
    same_files[same_count].copy = is.st_ino;
    same_files[same_count++].original = was->st_ino;
    return 0;
}

/* Every open file of the old root is opened anew in the other one, at the same place. */
static void move_files(const char *to) {
    char link[64], from[ASKED], path[2 * ASKED];
    const size_t length = strlen(root);
    other_root = to;
    if (nftw(root, add_same_file, 8, FTW_PHYS) != 0) _exit(96);
    for (int handle = 0; handle < 256; handle++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
        const ssize_t got = readlink(link, from, sizeof from - 1);
        if (got < 0) continue;
        from[got] = '\0';
        if (strncmp(from, root, length) != 0 || from[length] != '/') continue;
        snprintf(path, sizeof path, "%s%s", to, from + length);
        const int flags = fcntl(handle, F_GETFL), closes = fcntl(handle, F_GETFD);
        const off_t at = lseek(handle, 0, SEEK_CUR);
        const int other = openat(AT_FDCWD, path, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
        if (other < 0 || dup3(other, handle, closes & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) _exit(96);
        close(other);
        if (at >= 0 && lseek(handle, at, SEEK_SET) != at) _exit(96);
    }
    snprintf(path, sizeof path, "%s/files", to);
    if (chdir(path) != 0) _exit(96);
}

/* In a copy of the process: its call number `count` fails, once ("1") or for good ("+"), or none
 * does ("0"). What it starts counts for itself, as what any run with TWINSTEP_FAULT starts. */
static void go_on_in(const char *to, char how, long count) {
    char word[64];
    copy_shared_memory();
    move_files(to);
    if (how == '0') return;
    chosen = CALL_MALLOC;
    chosen_count = count;
    for_good = how == '+';
    snprintf(word, sizeof word, "malloc:%ld%s", count, for_good ? "+" : "");
    if (setenv("TWINSTEP_FAULT", word, 1) != 0) _exit(96);
}

static int count_threads(void) {
    int threads = 0;
    DIR *const tasks = opendir("/proc/self/task");
    if (tasks == NULL) _exit(96);
    while (readdir(tasks) != NULL)
        threads++;
    closedir(tasks);
    return threads - 2; /* . and .. */
}

/* Whether the process shares something with another one that a copy would take from it: threads, or
 * a child with its pipes. */
static int is_alone(void) {
    siginfo_t info;
    return count_threads() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
}

/* Says "stop N" and hears "1 FOLDER", "+ FOLDER" or "0 FOLDER", the answer to which is a copy of
 * the process that goes on in FOLDER, a copy of the files, and "end S", its status of waitpid; or
 * "go". "other N": the call came another way than in the run that was written down. "busy N": the
 * process cannot be copied. */
static void serve(long count) {
    char line[ASKED];
    ready = 0;
    within = 1;
    say(stack_number() != next_stack ? "other" : is_alone() ? "stop" : "busy", count);
    for (hear(line); strcmp(line, "go") != 0; hear(line)) {
        const pid_t copy = fork();
        if (copy < 0) _exit(98);
        if (copy == 0) {
            go_on_in(line + 2, line[0], count);
            next_stop = 0;
            within = 0;
            ready = 1;
            return;
        }
        int status = 0;
        say("copy", (long)copy);
        if (waitpid(copy, &status, 0) != copy) _exit(98);
        say("end", status);
    }
    read_stop();
    within = 0;
    ready = 1;
}

/* Whether this is the call with the chosen number and stack, or one after it in its process. */
static int meets(long count) {
    static int is_met;
    if (is_met || within) return is_met && for_good && !within;
    if (count != chosen_count) return 0;
    within = 1;
    is_met = stack_number() == chosen_stack;
    if (is_met && syscall(SYS_write, met_file, "!", (size_t)1) != 1) _exit(98);
    within = 0;
    return is_met;
}

/* Whether this call of `call` is the one that fails. */
static int fails(enum call call) {
    if (!ready) return 0;
    const long count = atomic_fetch_add(&counts[call], 1) + 1;
    if (calls_file >= 0 && (chosen < 0 || (int)call == chosen)) note(call, count);
    if (call == CALL_MALLOC && count == next_stop && getpid() == first_process) serve(count);
    if (chosen_stack != 0 && (int)call == chosen) return meets(count);
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
    const char *const stack = getenv("TWINSTEP_FAULT_STACK");
    const char *path = getenv("TWINSTEP_FAULT_CALLS"), *served = getenv("TWINSTEP_FAULT_STOPS");
    const char *first = getenv("TWINSTEP_FAULT_FIRST");
    char text[ASKED];
    void *frame;
    snprintf(text, sizeof text, "%d", (int)getpid());
    first_process = first == NULL ? getpid() : (pid_t)strtol(first, NULL, 10);
    if (first == NULL && setenv("TWINSTEP_FAULT_FIRST", text, 1) != 0) _exit(98);
    if (stack != NULL) {
        char *end;
        (void)backtrace(&frame, 1);
        chosen_stack = strtoull(stack, &end, 16);
        met_file = openat(AT_FDCWD, end + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (met_file < 0) _exit(98);
    }
    if (served != NULL && first_process == getpid()) {
        if (sscanf(served, "%1023[^,],%d,%d", text, &ask_from, &say_to) != 3) _exit(98);
        open_stops(text);
        if (getcwd(root, sizeof root) == NULL) _exit(98);
        *strrchr(root, '/') = '\0';
        (void)backtrace(&frame, 1);
        read_stop();
    }
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

#define ASKING(name, arguments, words)                                                             \
    int name arguments {                                                                           \
        NEXT(name)                                                                                 \
        const int result = next words;                                                             \
        if (result == 0 && same_count > 0) seem_the_original(&info->st_ino);                       \
        return result;                                                                             \
    }
ASKING(stat, (const char *path, struct stat *info), (path, info))
ASKING(lstat, (const char *path, struct stat *info), (path, info))
ASKING(fstat, (int handle, struct stat *info), (handle, info))
ASKING(stat64, (const char *path, struct stat64 *info), (path, info))
ASKING(lstat64, (const char *path, struct stat64 *info), (path, info))
ASKING(fstat64, (int handle, struct stat64 *info), (handle, info))

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

/* Time stands still, for a run keeps states every few seconds, and would on a slow machine or at a
 * stop, with other calls than before. */
int clock_gettime(clockid_t clock, struct timespec *out) {
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, out);
    *out = (struct timespec){1000, 0};
    return 0;
}

/* A child that reads a trace may work for a minute (base/confined_filter.c), and HDF5 1.10.8 loops
 * for ever in H5Fclose after some failures: 5 seconds are enough to see it. */
int setrlimit(__rlimit_resource_t kind, const struct rlimit *wanted) {
    struct rlimit limit = *wanted;
    NEXT(setrlimit)
    if (kind == RLIMIT_CPU && limit.rlim_cur > 5) limit.rlim_cur = 5;
    return next(kind, &limit);
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

pid_t fork(void) {
    void *frames[DEEPEST];
    NEXT(fork)
    const int was = within;
    within = 1;
    const int depth = calls_file < 0 && chosen_stack == 0
                          ? 0
                          : backtrace(frames, DEEPEST) - 2; /* but this and its caller */
    within = was;
    const pid_t child = next();
    if (child == 0) depth_at_fork = depth;
    return child;
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
