/* SPDX-License-Identifier: Apache-2.0
 * The names of a trace: OUT when it is finished, OUT.part while it is written.
 *
 * The live file is created exclusively and never truncated in place. With `overwrite` an old one is
 * unlinked first, so a writer that still holds it cannot mix its bytes with ours, and finds out at
 * the end that the name is no longer its own. OUT appears by link (or by rename, where it may be
 * replaced): whole, or not at all. */
#include "determinism/trace/hdf5_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"

static enum status refuse(const char *path, const char *action) {
    return status_fail(STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static enum status check_target(const struct trace *trace) {
    struct stat info;
    if (lstat(trace->target, &info) != 0)
        return errno == ENOENT ? STATUS_OK : refuse(trace->target, "look up");
    /* A link may be replaced where it names a file, or nothing; /dev/stdout names neither. */
    if (S_ISLNK(info.st_mode) && stat(trace->target, &info) != 0) info.st_mode = S_IFREG;
    if (!S_ISREG(info.st_mode))
        FAIL(STATUS_IO, "%s: exists and is not a regular file", trace->target);
    if (!trace->overwrite)
        FAIL(STATUS_IO, "%s: exists; choose another name, or ask to overwrite it (--overwrite)",
             trace->target);
    return STATUS_OK;
}

/* The mark of a live writer: a lock on a byte that no file has. HDF5 itself locks by flock, and
 * lets go of it when live readers may come. A lock dies with its process. */
static struct flock writer_lock(void) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
}

void trace_mark_written(const struct trace *trace) {
    struct flock lock = writer_lock();
    int *handle;
    if (H5Fget_vfd_handle(trace->file.id, H5P_DEFAULT, (void **)&handle) >= 0)
        (void)fcntl(*handle, F_SETLK, &lock); /* file systems without locks work, too */
}

int trace_is_written(const char *path, long *out_process) {
    struct flock lock = writer_lock();
    const int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int written = handle >= 0 && fcntl(handle, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (handle >= 0) close(handle);
    *out_process = written && lock.l_pid > 0 ? (long)lock.l_pid : 0;
    return written;
}

/* A second writer would take the name, and what lies beside the file, from one that goes on. To
 * overwrite is to ask for what is left of a run, and not for one that lives. */
static enum status refuse_second_writer(const char *live) {
    long process;
    if (!trace_is_written(live, &process)) return STATUS_OK;
    if (process == 0)
        FAIL(STATUS_IO, "%s: another process writes it now: choose another name, or end that run",
             live);
    FAIL(STATUS_IO, "%s: process %ld writes it now: choose another name, or end that run", live,
         process);
}

/* Whether the live name is free, or may be made so. */
static enum status check_live_name(const struct trace *trace, int *out_there) {
    struct stat info;
    const char *live = trace->file.name;
    *out_there = lstat(live, &info) == 0;
    if (!*out_there) return errno == ENOENT ? STATUS_OK : refuse(live, "look up");
    if (!S_ISREG(info.st_mode)) FAIL(STATUS_IO, "%s: exists and is not a regular file", live);
    TRY(refuse_second_writer(live));
    if (!trace->overwrite)
        FAIL(STATUS_IO,
             "%s: exists: a run that is writing it now, or one that was killed. If no run is "
             "writing it, \"twinstep recover %s\" saves its updates; remove it afterwards, with "
             "its .kept-1 and .kept-2, or ask to overwrite it",
             live, live);
    return STATUS_OK;
}

static enum status clear_live_name(const struct trace *trace) {
    int there;
    TRY(check_live_name(trace, &there));
    return !there || unlink(trace->file.name) == 0 ? STATUS_OK : refuse(trace->file.name, "remove");
}

enum status trace_try(const char *path, int overwrite, struct arena *arena) {
    struct trace trace = {.target = path, .overwrite = overwrite};
    char *live;
    int there;
    TRY(arena_format(arena, &live, "%s.part", path));
    trace.file.name = live;
    TRY(check_target(&trace));
    return check_live_name(&trace, &there);
}

enum status trace_claim(struct trace *trace) {
    TRY(check_target(trace));
    TRY(clear_live_name(trace));
    const int handle = open(trace->file.name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (handle < 0) return refuse(trace->file.name, "create");
    struct stat info;
    const int known = fstat(handle, &info);
    close(handle);
    if (known != 0) return refuse(trace->file.name, "look up");
    trace->device = info.st_dev;
    trace->inode = info.st_ino;
    return STATUS_OK;
}

static int is_ours(const struct trace *trace, const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && info.st_dev == trace->device && info.st_ino == trace->inode;
}

static int still_ours(const struct trace *trace) {
    return is_ours(trace, trace->file.name);
}

void trace_unclaim(const struct trace *trace) {
    if (still_ours(trace)) unlink(trace->file.name);
}

void trace_discard(const struct trace *trace) {
    if (trace->run_count == 0) trace_unclaim(trace);
}

enum status trace_refuse_replaced(const struct trace *trace) {
    if (still_ours(trace)) return STATUS_OK;
    FAIL(STATUS_IO, "%s: was removed or replaced by another process during the run",
         trace->file.name);
}

enum status trace_publish(const struct trace *trace) {
    const char *live = trace->file.name;
    TRY(trace_refuse_replaced(trace));
    const enum status status = publish_settle(live);
    if (status != STATUS_OK) {
        trace_discard(trace);
        return status;
    }
    TRY(publish_name(live, trace->target, trace->overwrite));
    if (is_ours(trace, trace->target)) return STATUS_OK;
    /* between the question and the naming another process put its file in the place of ours */
    if (!trace->overwrite) unlink(trace->target);
    FAIL(STATUS_IO,
         "%s: was replaced by another process when the run had ended: its trace is lost, and what "
         "has this name is not of this run",
         live);
}
