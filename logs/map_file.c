/* SPDX-License-Identifier: Apache-2.0
 * Mapping and spooling, and giving pages back by mapping them anew in the same place.
 *
 * Invariant: log_unmap leaves no descriptor and no mapping, whatever went before. */
#include "logs/map_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

#define RELEASE_STEP ((size_t)4 << 20)

static enum status copy_all(int from, FILE *to, const char *path) {
    char block[65536];
    for (;;) {
        const ssize_t got = read(from, block, sizeof block);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) FAIL(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
        if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
            FAIL(STATUS_IO, "%s: cannot write a temporary copy: %s", path, strerror(errno));
    }
    if (fflush(to) != 0)
        FAIL(STATUS_IO, "%s: cannot write a temporary copy: %s", path, strerror(errno));
    return STATUS_OK;
}

enum status log_spool_open(const char *name, FILE **out) {
    *out = tmpfile();
    if (*out == NULL)
        FAIL(STATUS_IO, "%s: cannot make a temporary copy: %s", name, strerror(errno));
    return STATUS_OK;
}

void log_spool_close(FILE *spool) {
    fclose(spool); /* the file is gone, so nothing of it can be lost */
}

/* Copies a pipe to a temporary file, since a pipe has no pages to map. */
static enum status spool(struct log_mapping *mapping, const char *path) {
    TRY(log_spool_open(path, &mapping->spool));
    TRY(copy_all(mapping->descriptor, mapping->spool, path));
    if (mapping->descriptor != STDIN_FILENO) close(mapping->descriptor);
    mapping->descriptor = fileno(mapping->spool);
    return STATUS_OK;
}

static enum status map_descriptor(struct log_mapping *mapping, const char *path) {
    struct stat info;
    if (fstat(mapping->descriptor, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) {
        TRY(spool(mapping, path));
        if (fstat(mapping->descriptor, &info) != 0)
            FAIL(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    mapping->length = (size_t)info.st_size;
    if (mapping->length == 0) return STATUS_OK;
    void *at = mmap(NULL, mapping->length, PROT_READ, MAP_PRIVATE, mapping->descriptor, 0);
    if (at == MAP_FAILED) FAIL(STATUS_IO, "%s: cannot map: %s", path, strerror(errno));
    mapping->bytes = (const unsigned char *)at;
    return STATUS_OK;
}

enum status log_map(const char *path, struct log_mapping *out) {
    const int is_input = strcmp(path, "-") == 0;
    memset(out, 0, sizeof *out);
    out->descriptor = STDIN_FILENO;
    if (!is_input) {
        struct input input;
        TRY(input_open(path, INPUT_FILE_OR_STREAM, path, "a file", &input));
        out->descriptor = input.descriptor;
    }
    const enum status status = map_descriptor(out, is_input ? "standard input" : path);
    if (status != STATUS_OK) log_unmap(out);
    return status;
}

enum status log_map_spool(FILE *spool, const char *name, struct log_mapping *out) {
    memset(out, 0, sizeof *out);
    out->spool = spool;
    out->descriptor = fileno(spool);
    enum status status = STATUS_OK;
    if (fflush(spool) != 0)
        status =
            status_fail(STATUS_IO, "%s: cannot write a temporary copy: %s", name, strerror(errno));
    if (status == STATUS_OK) status = map_descriptor(out, name);
    if (status != STATUS_OK) log_unmap(out);
    return status;
}

/* Maps the bytes before `offset` anew in the same place: they stay readable, but none of their
 * pages is in memory. RELEASE_STEP (4 MiB) keeps these calls to one in a thousand pages, so that a
 * reader may ask for every line. */
void log_map_release(struct log_mapping *mapping, size_t offset) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (offset < mapping->released + RELEASE_STEP || offset > mapping->length) return;
    const size_t end = offset / page * page, start = mapping->released;
    unsigned char *at = (unsigned char *)(size_t)(mapping->bytes + start);
    if (mmap(at, end - start, PROT_READ, MAP_PRIVATE | MAP_FIXED, mapping->descriptor,
             (off_t)start) != MAP_FAILED)
        mapping->released = end;
}

void log_unmap(struct log_mapping *mapping) {
    if (mapping->bytes != NULL) munmap((void *)(size_t)mapping->bytes, mapping->length);
    if (mapping->spool != NULL)
        fclose(mapping->spool);
    else if (mapping->descriptor > STDIN_FILENO)
        close(mapping->descriptor);
    mapping->bytes = NULL;
    mapping->spool = NULL;
    mapping->descriptor = -1;
}
