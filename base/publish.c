/* SPDX-License-Identifier: Apache-2.0
 * Makes a file durable with fsync and names it with link or rename.
 *
 * Invariant: `target` is never removed, and never replaced without `overwrite`. File systems that
 * cannot make hard links are the exception: there the file is looked for and then renamed, and a
 * file that another process creates between these two calls would be replaced. */
#include "base/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

static enum status refuse(const char *path, const char *action) {
    return status_fail(STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

enum status publish_settle(const char *live) {
    TRY(arena_lacked()); /* a text may lack a part */
    const int handle = open(live, O_RDONLY | O_CLOEXEC);
    if (handle < 0) return refuse(live, "open");
    int bad;
    do
        bad = fsync(handle); /* a signal may come while a disk works */
    while (bad != 0 && errno == EINTR);
    const int reason = errno;
    close(handle);
    errno = reason;
    return bad == 0 || reason == EINVAL || reason == ENOTSUP ? STATUS_OK
                                                             : refuse(live, "write to disk");
}

static enum status name_exclusively(const char *live, const char *target) {
    if (link(live, target) == 0) return unlink(live) == 0 ? STATUS_OK : refuse(live, "remove");
    const int reason = errno;
    struct stat info;
    if (reason == EEXIST || lstat(target, &info) == 0)
        FAIL(STATUS_IO, "%s: came to exist meanwhile and is left alone; what was written is in %s",
             target, live);
    return rename(live, target) == 0 ? STATUS_OK : refuse(target, "create");
}

enum status publish_name(const char *live, const char *target, int overwrite) {
    if (!overwrite) return name_exclusively(live, target);
    if (rename(live, target) == 0) return STATUS_OK;
    FAIL(STATUS_IO, "%s: cannot replace: %s; what was written is in %s", target, strerror(errno),
         live);
}

static enum status publish(const char *live, const char *target, int overwrite, mode_t mode,
                           const void *bytes, size_t length) {
    const int handle = open(live, O_CREAT | O_TRUNC | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode);
    if (handle < 0) return refuse(live, "create");
    const ssize_t written = write(handle, bytes, length);
    const int reason = errno;
    if (close(handle) != 0 || written != (ssize_t)length) {
        unlink(live);
        errno = reason;
        return refuse(target, "write");
    }
    TRY(publish_settle(live));
    return publish_name(live, target, overwrite);
}

enum status publish_bytes(const char *live, const char *target, int overwrite, const void *bytes,
                          size_t length) {
    return publish(live, target, overwrite, 0666, bytes, length);
}

enum status publish_own_bytes(const char *live, const char *target, int overwrite,
                              const void *bytes, size_t length) {
    return publish(live, target, overwrite, 0644, bytes, length);
}
