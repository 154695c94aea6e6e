/* SPDX-License-Identifier: Apache-2.0
 * Opens with O_NONBLOCK, so that a pipe without a writer is opened at once, and looks at what came
 * by the descriptor, since a name may stand for another thing a moment later.
 *
 * Invariant: what is handed out blocks, as every reader expects; a refusal leaves nothing open. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NAMELESS_PIPES 0x50495045 /* f_type of pipes that pipe() made: PIPEFS_MAGIC of Linux */

static const char *kind_of(mode_t mode) {
    if (S_ISREG(mode)) return "a file";
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a named pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

static int is_nameless_pipe(int descriptor, mode_t mode) {
    struct statfs where;
    return S_ISFIFO(mode) && fstatfs(descriptor, &where) == 0 && where.f_type == NAMELESS_PIPES;
}

static enum status look(struct input *input, enum input_kinds kinds, const char *label,
                        const char *expected) {
    struct stat info;
    if (fstat(input->descriptor, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot read: %s", label, strerror(errno));
    if (S_ISREG(info.st_mode)) {
        input->length = (uint64_t)info.st_size;
        return STATUS_OK;
    }
    input->is_stream = is_nameless_pipe(input->descriptor, info.st_mode);
    if (!input->is_stream || kinds != INPUT_FILE_OR_STREAM)
        FAIL(STATUS_INPUT, "%s: expected %s, got %s", label, expected,
             input->is_stream ? "a pipe" : kind_of(info.st_mode));
    const int flags = fcntl(input->descriptor, F_GETFL);
    if (flags < 0 || fcntl(input->descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0)
        FAIL(STATUS_IO, "%s: cannot read: %s", label, strerror(errno));
    return STATUS_OK;
}

/* open() of a socket fails without saying that it is one. */
static enum status fail_open(const char *path, const char *label, const char *expected) {
    const int reason = errno;
    struct stat info;
    if (reason == ENXIO && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        FAIL(STATUS_INPUT, "%s: expected %s, got %s", label, expected, kind_of(info.st_mode));
    FAIL(STATUS_IO, "%s: cannot open: %s", label, strerror(reason));
}

enum status input_open(const char *path, enum input_kinds kinds, const char *label,
                       const char *expected, struct input *out) {
    *out = (struct input){.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (out->descriptor < 0) return fail_open(path, label, expected);
    const enum status status = look(out, kinds, label, expected);
    if (status != STATUS_OK) close(out->descriptor);
    return status;
}

enum status input_open_stream(const char *path, enum input_kinds kinds, const char *label,
                              const char *expected, FILE **out_stream, struct input *out) {
    TRY(input_open(path, kinds, label, expected, out));
    *out_stream = fdopen(out->descriptor, "rb");
    if (*out_stream != NULL) return STATUS_OK;
    const int reason = errno;
    close(out->descriptor);
    FAIL(STATUS_IO, "%s: cannot open: %s", label, strerror(reason));
}

enum status input_try(const char *path, const char *expected) {
    struct input input;
    TRY(input_open(path, INPUT_FILE, path, expected, &input));
    close(input.descriptor);
    return STATUS_OK;
}
