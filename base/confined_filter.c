/* SPDX-License-Identifier: Apache-2.0
 * The rights of a process that reads a stranger's file: Landlock for paths, seccomp for system
 * calls. Both are asked for by number and struct, so that no library is needed and old headers do.
 *
 * The filter names what is allowed; any other call fails with EPERM, as it would without rights,
 * so a newer C library that tries something else first goes on. Memory is mapped without files and
 * never executable; files are opened for reading. Sanitizers call the system in ways of their own,
 * so a build with them has the process and no filter. */
#define _GNU_SOURCE /* syscall */
#include "base/confined_filter.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/confined.h"

/* HDF5 walks some damaged lists for ever. A trace of 1.7 MB is read in 0.05 s, so a second for each
 * megabyte, and 60 more, are enough on any machine. */
unsigned confined_seconds(const char *path) {
    struct stat info;
    return 60 + (stat(path, &info) == 0 ? (unsigned)(info.st_size >> 20) : 0);
}

/* Who outlives the signal is killed 5 seconds later. */
void confined_limit(unsigned seconds) {
    const struct rlimit limit = {seconds, (rlim_t)seconds + 5};
    (void)setrlimit(RLIMIT_CPU, &limit);
}

/* HDF5 takes 4 MiB for a trace of 2 MB, and 13 MiB for one of 217 MB (attribute), so this is twenty
 * times what a trace needs. One chunk may be as long as the file. */
size_t confined_memory(const char *path) {
    struct stat info;
    const size_t length = stat(path, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0;
    return ((size_t)256 << 20) + length;
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#ifdef __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u /* calls of the x32 ABI, which have the same architecture */
#else
#define MACHINE AUDIT_ARCH_AARCH64
#define X32_BIT 0x80000000u
#endif

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n)) /* its lower half */
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(at))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define IF_CALL(call, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(call), 0, (skip))
#define ALLOW_CALL(call) IF_CALL(call, 1), ALLOW
/* A call that is allowed where none of these bits of an argument is set. */
#define ALLOW_WITHOUT(call, argument, bits)                                                        \
    IF_CALL(call, 4), LOAD(ARGUMENT(argument)),                                                    \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 0, 1), DENY, ALLOW

#define NOT_READING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)

static const struct sock_filter rules[] = {
    LOAD(offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
    DENY,
    LOAD(NUMBER),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    DENY,
    ALLOW_CALL(__NR_pread64),
    ALLOW_CALL(__NR_read),
    ALLOW_CALL(__NR_lseek),
    ALLOW_CALL(__NR_fstat),
    ALLOW_CALL(__NR_newfstatat),
    ALLOW_CALL(__NR_readlinkat),
    ALLOW_CALL(__NR_getcwd),
    ALLOW_CALL(__NR_close),
    ALLOW_CALL(__NR_flock),
    ALLOW_CALL(__NR_brk),
    ALLOW_CALL(__NR_munmap),
    ALLOW_CALL(__NR_mremap),
    ALLOW_CALL(__NR_madvise),
    ALLOW_CALL(__NR_futex),
    ALLOW_CALL(__NR_nanosleep),
    ALLOW_CALL(__NR_clock_nanosleep),
    ALLOW_CALL(__NR_clock_gettime),
    ALLOW_CALL(__NR_gettimeofday),
    ALLOW_CALL(__NR_sysinfo),
    ALLOW_CALL(__NR_rt_sigreturn),
    ALLOW_CALL(__NR_rt_sigprocmask),
    ALLOW_CALL(__NR_restart_syscall),
    ALLOW_CALL(__NR_exit),
    ALLOW_CALL(__NR_exit_group),
#ifdef __NR_stat
    ALLOW_CALL(__NR_stat),
    ALLOW_CALL(__NR_lstat),
    ALLOW_CALL(__NR_readlink),
#endif
    ALLOW_WITHOUT(__NR_openat, 2, NOT_READING),
    ALLOW_WITHOUT(__NR_mprotect, 2, PROT_EXEC),
    /* what is asked of a descriptor, and of its lock; nothing is sent to an owner */
    IF_CALL(__NR_fcntl, 6),
    LOAD(ARGUMENT(1)),
    IF_CALL(F_GETFD, 1),
    ALLOW,
    IF_CALL(F_GETFL, 1),
    ALLOW,
    DENY,
    /* memory without a file: (flags & MAP_ANONYMOUS) and not (protection & PROT_EXEC) */
    IF_CALL(__NR_mmap, 6),
    LOAD(ARGUMENT(2)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0),
    LOAD(ARGUMENT(3)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
    ALLOW,
    DENY,
    DENY,
};

/* Landlock as its first version is (Linux 5.13): headers of that time need not be there. */
#define LANDLOCK_CREATE 444
#define LANDLOCK_ADD 445
#define LANDLOCK_RESTRICT 446
#define LANDLOCK_PATH_BENEATH 1
#define LANDLOCK_READ_FILE ((uint64_t)1 << 2)
#define LANDLOCK_READ_DIR ((uint64_t)1 << 3)
#define LANDLOCK_ALL (((uint64_t)1 << 13) - 1)

struct landlock_rules {
    uint64_t handled;
};
struct landlock_path {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static int has_landlock(void) {
    return syscall(LANDLOCK_CREATE, NULL, (size_t)0, 1) >= 1;
}

static void keep_path(const char *path) {
    const struct landlock_rules all = {LANDLOCK_ALL};
    struct landlock_path file = {LANDLOCK_READ_FILE, open(path, O_PATH | O_CLOEXEC)};
    struct stat info;
    const long ruleset = syscall(LANDLOCK_CREATE, &all, sizeof all, 0);
    if (file.parent >= 0 && fstat(file.parent, &info) == 0 && S_ISDIR(info.st_mode))
        file.allowed = LANDLOCK_READ_DIR; /* it is opened and refused */
    if (ruleset >= 0 && file.parent >= 0 &&
        syscall(LANDLOCK_ADD, (int)ruleset, LANDLOCK_PATH_BENEATH, &file, 0) == 0)
        (void)syscall(LANDLOCK_RESTRICT, (int)ruleset, 0);
    if (ruleset >= 0) close((int)ruleset);
    if (file.parent >= 0) close(file.parent);
}

static int has_seccomp(void) {
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

/* The kernel counts private memory that can be written, with or without a heap (RLIMIT_DATA, Linux
 * 4.7), and statm tells how many pages of it there are. RLIMIT_AS would count the room that is
 * shared with the parent, which is reserved by the length of the file and hardly filled. */
int confined_limit_memory(size_t bytes) {
    char text[128] = "";
    unsigned long long pages;
    struct rlimit limit;
    const int file = SANITIZED ? -1 : open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (got <= 0 || sscanf(text, "%*u %*u %*u %*u %*u %llu", &pages) != 1) return 0;
    const rlim_t wanted = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur <= wanted) return 0;
    limit.rlim_cur = limit.rlim_max = wanted;
    return setrlimit(RLIMIT_DATA, &limit) == 0;
}

void confined_enter(const char *path) {
    const struct rlimit no_core = {0, 0};
    const struct sock_fprog program = {COUNT_OF(rules), (struct sock_filter *)(uintptr_t)rules};
    (void)setrlimit(RLIMIT_CORE, &no_core); /* a crash here is an answer */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (SANITIZED || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
    if (has_landlock()) keep_path(path);
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

const char *confined_by(void) {
    if (SANITIZED || !has_seccomp()) return "a process of its own";
    return has_landlock() ? "a process of its own, seccomp, Landlock"
                          : "a process of its own, seccomp";
}

#else

int confined_limit_memory(size_t bytes) {
    (void)bytes;
    return 0;
}

void confined_enter(const char *path) {
    const struct rlimit no_core = {0, 0};
    (void)path;
    (void)setrlimit(RLIMIT_CORE, &no_core);
}

const char *confined_by(void) {
    return "a process of its own";
}

#endif
