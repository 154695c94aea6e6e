/* SPDX-License-Identifier: Apache-2.0
 * Another machine than this one: how much disk is free, on which file system a file lies, what
 * files below /proc and /sys say, and what time it is. tests/cli/room.py and
 * tests/cli/circumstances.py load it into the program with LD_PRELOAD.
 *
 *   TWINSTEP_MACHINE_FREE=N    every file system has N bytes free
 *   TWINSTEP_MACHINE_BLOCKS=N  every file system has N blocks in all
 *   TWINSTEP_MACHINE_TYPE=N    every regular file lies on a file system of this f_type
 *   TWINSTEP_MACHINE_LOCKS=N   flock fails with errno N
 *   TWINSTEP_MACHINE_ROOT=F    what lies below /proc and /sys is read from folder F
 *   TWINSTEP_MACHINE_CORES=N   this process may run on N processors, of the 64 that there are
 *   TWINSTEP_MACHINE_BUSY=N    /proc/loadavg is /proc/loadavg.busy of F the first N times
 *   TWINSTEP_MACHINE_BACK=N    the clocks of the day run backwards: N seconds at each question
 *   TWINSTEP_MACHINE_SWAP=F    another process: before a name ending in .part gets its final name,
 *                              file F is put in its place, once
 *
 * It also measures: with TWINSTEP_MACHINE_FOLDER=F it writes into TWINSTEP_MACHINE_PEAK (a file
 * elsewhere) how many bytes the files below F had when they were most. It looks before each name is
 * given or taken away, when a file that replaces another one is there beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static long long number_of(const char *name) {
    const char *text = getenv(name);
    return text == NULL ? -1 : atoll(text);
}

int statvfs(const char *path, struct statvfs *out) {
    int (*real)(const char *, struct statvfs *) =
        (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    const int bad = real(path, out);
    const long long has = number_of("TWINSTEP_MACHINE_FREE");
    if (bad == 0 && has >= 0) {
        out->f_frsize = 1;
        out->f_bavail = (fsblkcnt_t)has;
    }
    const long long blocks = number_of("TWINSTEP_MACHINE_BLOCKS");
    if (bad == 0 && blocks >= 0) out->f_blocks = (fsblkcnt_t)blocks;
    return bad;
}

int fstatfs(int file, struct statfs *out) {
    int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
    const int bad = real(file, out);
    const long long type = number_of("TWINSTEP_MACHINE_TYPE");
    if (bad == 0 && type >= 0 && out->f_type != 0x50495045) out->f_type = (__fsword_t)type;
    return bad;
}

int flock(int file, int operation) {
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    const long long reason = number_of("TWINSTEP_MACHINE_LOCKS");
    if (reason > 0) errno = (int)reason;
    return reason > 0 ? -1 : real(file, operation);
}

int statfs(const char *path, struct statfs *out) {
    int (*real)(const char *, struct statfs *) =
        (int (*)(const char *, struct statfs *))dlsym(RTLD_NEXT, "statfs");
    const int bad = real(path, out);
    const long long type = number_of("TWINSTEP_MACHINE_TYPE");
    if (bad == 0 && type >= 0) out->f_type = (__fsword_t)type;
    return bad;
}

static _Atomic long long load_readings;

int open(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    const char *root = getenv("TWINSTEP_MACHINE_ROOT");
    char other[8192];
    mode_t mode = 0;
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    if (root != NULL && (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0)) {
        const int is_busy = strcmp(path, "/proc/loadavg") == 0 &&
                            ++load_readings <= number_of("TWINSTEP_MACHINE_BUSY");
        snprintf(other, sizeof other, "%s%s%s", root, path, is_busy ? ".busy" : "");
        path = other;
    }
    return real(path, flags, mode);
}

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *out) {
    int (*real)(pid_t, size_t, cpu_set_t *) =
        (int (*)(pid_t, size_t, cpu_set_t *))dlsym(RTLD_NEXT, "sched_getaffinity");
    const int bad = real(process, bytes, out);
    const long long cores = number_of("TWINSTEP_MACHINE_CORES");
    if (bad == 0 && cores > 0) CPU_ZERO_S(bytes, out);
    for (int i = 0; bad == 0 && i < cores; i++)
        CPU_SET_S(i, bytes, out);
    return bad;
}

long sysconf(int name) {
    long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    const int asks = name == _SC_NPROCESSORS_ONLN && number_of("TWINSTEP_MACHINE_CORES") > 0;
    return asks ? 64 : real(name);
}

static _Atomic long long asked;

int clock_gettime(clockid_t clock, struct timespec *out) {
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int bad = real(clock, out);
    const long long back = number_of("TWINSTEP_MACHINE_BACK");
    if (bad == 0 && back > 0 && clock == CLOCK_REALTIME) out->tv_sec -= back * ++asked;
    return bad;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) *out = now.tv_sec;
    return now.tv_sec;
}

static double bytes_now, bytes_most;

/* A file of two names, which a trace is for a moment, counts once. */
static int add_file(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)path, (void)where;
    if (kind == FTW_F) bytes_now += (double)info->st_size / (double)info->st_nlink;
    return 0;
}

static void look_at_folder(void) {
    const char *folder = getenv("TWINSTEP_MACHINE_FOLDER"), *path = getenv("TWINSTEP_MACHINE_PEAK");
    FILE *out;
    if (folder == NULL || path == NULL) return;
    bytes_now = 0.0;
    if (nftw(folder, add_file, 8, FTW_PHYS) != 0 || bytes_now <= bytes_most) return;
    bytes_most = bytes_now;
    if ((out = fopen(path, "w")) == NULL) return;
    fprintf(out, "%.0f\n", bytes_most);
    fclose(out);
}

static void swap(const char *name) {
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    const char *other = getenv("TWINSTEP_MACHINE_SWAP");
    const size_t length = strlen(name);
    if (other != NULL && length > 8 && strcmp(name + length - 8, ".h5.part") == 0)
        (void)real(other, name); /* fails the second time */
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    look_at_folder();
    swap(from);
    return real(from, to);
}

int link(const char *from, const char *to) {
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link");
    look_at_folder();
    swap(from);
    return real(from, to);
}

int unlink(const char *path) {
    int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    look_at_folder();
    return real(path);
}
