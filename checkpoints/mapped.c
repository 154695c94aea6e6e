/* SPDX-License-Identifier: Apache-2.0
 * Maps a file that base/input.h opens.
 *
 * Invariant: no descriptor outlives mapped_open. */
#include "checkpoints/mapped.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/input.h"
#include "checkpoints/shipped.h"

static enum status map_input(const struct input *input, const char *path, struct mapped *out) {
    if (input->length == 0) return STATUS_OK;
    void *at = mmap(NULL, (size_t)input->length, PROT_READ, MAP_PRIVATE, input->descriptor, 0);
    if (at == MAP_FAILED) FAIL(STATUS_IO, "%s: cannot map: %s", path, strerror(errno));
    out->bytes = (const unsigned char *)at;
    out->length = (size_t)input->length;
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
    struct input input;
    TRY(input_open(path, INPUT_FILE, path, "a regular file", &input));
    const enum status status = map_input(&input, path, out);
    close(input.descriptor);
    return status;
}

void mapped_close(struct mapped *mapped) {
    if (mapped->bytes != NULL && !mapped->shipped)
        munmap((void *)(size_t)mapped->bytes, mapped->length);
    memset(mapped, 0, sizeof *mapped);
}
