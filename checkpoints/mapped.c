/* SPDX-License-Identifier: Apache-2.0
 * Maps a file with open, fstat and mmap.
 *
 * Invariant: no descriptor outlives mapped_open. */
#include "checkpoints/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoints/shipped.h"

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

static enum status map_descriptor(int descriptor, const char *path, struct mapped *out) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        FAIL(STATUS_INPUT, "%s: expected a regular file, got %s", path, kind_of(info.st_mode));
    if (info.st_size == 0) return STATUS_OK;
    void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (at == MAP_FAILED) FAIL(STATUS_IO, "%s: cannot map: %s", path, strerror(errno));
    out->bytes = (const unsigned char *)at;
    out->length = (size_t)info.st_size;
    return STATUS_OK;
}

static enum status open_shipped(const char *path, struct mapped *out) {
    const struct shipped_file *file;
    TRY(shipped_find(path, &file));
    *out = (struct mapped){file->bytes, file->length, 1};
    return STATUS_OK;
}

enum status mapped_open(const char *path, struct mapped *out) {
    memset(out, 0, sizeof *out);
    if (shipped_is(path)) return open_shipped(path, out);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) FAIL(STATUS_IO, "%s: cannot open: %s", path, strerror(errno));
    const enum status status = map_descriptor(descriptor, path, out);
    close(descriptor);
    return status;
}

void mapped_close(struct mapped *mapped) {
    if (mapped->bytes != NULL && !mapped->shipped)
        munmap((void *)(size_t)mapped->bytes, mapped->length);
    memset(mapped, 0, sizeof *mapped);
}
