/* SPDX-License-Identifier: Apache-2.0
 * Writes a file: makes a plan (order and places), the header as text and the data block by block,
 * under a live name in the same folder; base/publish gives it its name.
 *
 * Invariant: a failure leaves neither the file nor the live name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "checkpoints/order.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/strict_json.h"
#include "determinism/carrier.h"

#define BLOCK 16384 /* elements at a time */
#define LIVE_NAMES 100

struct header {
    char *text; /* NULL while the length is measured */
    size_t used, size;
};

static void put(struct header *header, const char *format, ...) TWINSTEP_PRINTF(2, 3);
static void put(struct header *header, const char *format, ...) {
    char *const to = header->text == NULL ? NULL : header->text + header->used;
    va_list arguments;
    va_start(arguments, format);
    header->used +=
        (size_t)vsnprintf(to, to == NULL ? 0 : header->size - header->used, format, arguments);
    va_end(arguments);
}

/* Escapes what JSON demands and nothing else, as the format's own serializer does. */
static void put_string(struct header *header, const char *text) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    put(header, "\"");
    while (*text != '\0') {
        size_t length = 0;
        while ((unsigned char)text[length] >= 0x20 && strchr(from, text[length]) == NULL)
            length++;
        put(header, "%.*s", (int)length, text);
        text += length;
        if (*text == '\0') break;
        const char *found = strchr(from, *text);
        if (found != NULL)
            put(header, "\\%c", to[found - from]);
        else
            put(header, "\\u%04x", (unsigned)(unsigned char)*text);
        text++;
    }
    put(header, "\"");
}

struct writing {
    const char *path;
    char *live;
    int overwrite;
    const struct safetensors_source **sources; /* in the order of the file */
    size_t count;
    const struct safetensors_pair *metadata;
    size_t metadata_count;
    struct arena arena;
    FILE *file;
};

static uint64_t count_of(const struct safetensors_source *source, uint64_t *out_bytes) {
    uint64_t count = 0;
    *out_bytes = 0;
    (void)safetensors_size(source->dtype, source->shape, source->rank, &count, out_bytes);
    return count;
}

static void put_metadata(struct header *header, const struct writing *writing) {
    put(header, "\"__metadata__\":{");
    for (size_t i = 0; i < writing->metadata_count; i++) {
        if (i > 0) put(header, ",");
        put_string(header, writing->metadata[i].key);
        put(header, ":");
        put_string(header, writing->metadata[i].value);
    }
    put(header, "}");
}

static void put_tensor(struct header *header, const struct safetensors_source *source,
                       uint64_t begin, uint64_t end) {
    put_string(header, source->name);
    put(header, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype_name(source->dtype));
    for (size_t i = 0; i < source->rank; i++)
        put(header, "%s%" PRIu64, i > 0 ? "," : "", source->shape[i]);
    put(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
}

static void put_header(struct header *header, const struct writing *writing) {
    uint64_t at = 0, bytes;
    put(header, "{");
    if (writing->metadata_count > 0) put_metadata(header, writing);
    for (size_t i = 0; i < writing->count; i++) {
        if (i > 0 || writing->metadata_count > 0) put(header, ",");
        count_of(writing->sources[i], &bytes);
        put_tensor(header, writing->sources[i], at, at + bytes);
        at += bytes;
    }
    put(header, "}");
    while (header->used % 8 != 0)
        put(header, " ");
}

static int is_utf8(const char *text) {
    json_t *value = json_string(text);
    const int is = value != NULL;
    json_decref(value);
    return is;
}

static enum status check_source(const struct writing *writing,
                                const struct safetensors_source *source, uint64_t *total) {
    uint64_t count, bytes;
    enum dtype dtype;
    if (!is_utf8(source->name) || strcmp(source->name, "__metadata__") == 0)
        FAIL(STATUS_INPUT, "%s: tensor %s: expected a name in UTF-8, not __metadata__",
             writing->path, strict_quote(source->name).text);
    if (!safetensors_size(source->dtype, source->shape, source->rank, &count, &bytes) ||
        bytes > UINT64_MAX - *total)
        FAIL(STATUS_INPUT, "%s: tensor %s: its shape overflows, or makes no whole bytes",
             writing->path, strict_quote(source->name).text);
    if (source->bytes == NULL && !safetensors_dtype_number(source->dtype, &dtype))
        FAIL(STATUS_INTERNAL, "%s: tensor %s: %s has no carriers", writing->path,
             strict_quote(source->name).text, safetensors_dtype_name(source->dtype));
    *total += bytes;
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct safetensors_source *)a)->name,
                  ((const struct safetensors_source *)b)->name);
}

static int compare_dtypes(const void *a, const void *b) {
    return (int)((const struct safetensors_source *)b)->dtype -
           (int)((const struct safetensors_source *)a)->dtype;
}

/* Sorts by name, then, stably, by falling dtype: widest alignment first. */
static enum status plan(struct writing *writing, const struct safetensors_source *sources) {
    const void **sorted;
    uint64_t total = 0;
    TRY(arena_take(&writing->arena, writing->count, sizeof *sorted, "tensors", &sorted));
    TRY(arena_take(&writing->arena, writing->count, sizeof *writing->sources, "tensors",
                   &writing->sources));
    for (size_t i = 0; i < writing->count; i++) {
        TRY(check_source(writing, &sources[i], &total));
        sorted[i] = &sources[i];
    }
    TRY(order_pointers(sorted, writing->count, compare_names, &writing->arena));
    for (size_t i = 1; i < writing->count; i++)
        if (compare_names(sorted[i - 1], sorted[i]) == 0)
            FAIL(STATUS_INPUT, "%s: tensor %s: expected once, got twice", writing->path,
                 strict_quote(((const struct safetensors_source *)sorted[i])->name).text);
    TRY(order_pointers(sorted, writing->count, compare_dtypes, &writing->arena));
    for (size_t i = 0; i < writing->count; i++)
        writing->sources[i] = (const struct safetensors_source *)sorted[i];
    return STATUS_OK;
}

static enum status write_bytes(struct writing *writing, const void *bytes, size_t length) {
    if (length == 0 || fwrite(bytes, 1, length, writing->file) == length) return STATUS_OK;
    FAIL(STATUS_IO, "%s: cannot write: %s", writing->live, strerror(errno));
}

static enum status write_header(struct writing *writing) {
    struct header header = {NULL, 0, 0};
    unsigned char length[8];
    put_header(&header, writing);
    if (header.used > SAFETENSORS_HEADER_LIMIT)
        FAIL(STATUS_INPUT, "%s: expected a header of at most %u bytes, got %zu", writing->path,
             SAFETENSORS_HEADER_LIMIT, header.used);
    header.size = header.used + 1;
    TRY(arena_take(&writing->arena, header.size, 1, "header", &header.text));
    header.used = 0;
    put_header(&header, writing);
    for (size_t i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header.used >> (8 * i));
    TRY(write_bytes(writing, length, sizeof length));
    return write_bytes(writing, header.text, header.used);
}

static enum status write_carriers(struct writing *writing, const struct safetensors_source *source,
                                  unsigned char *block) {
    enum dtype dtype = DTYPE_F32;
    uint64_t bytes;
    const uint64_t count = count_of(source, &bytes);
    (void)safetensors_dtype_number(source->dtype, &dtype);
    const unsigned char *from = (const unsigned char *)source->carriers;
    for (uint64_t at = 0; at < count; at += BLOCK) {
        const size_t size = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
        const size_t fits = carrier_pack(dtype, from + at * dtype_carrier(dtype), size, block);
        if (fits != size)
            FAIL(STATUS_INPUT, "%s: tensor %s: expected values of %s, got another at %" PRIu64,
                 writing->path, strict_quote(source->name).text, dtype_name(dtype), at + fits);
        TRY(write_bytes(writing, block, size * dtype_width(dtype)));
    }
    return STATUS_OK;
}

static enum status write_all(struct writing *writing) {
    unsigned char *block;
    uint64_t bytes;
    TRY(arena_take(&writing->arena, BLOCK, 8, "block", &block));
    TRY(write_header(writing));
    for (size_t i = 0; i < writing->count; i++) {
        const struct safetensors_source *source = writing->sources[i];
        count_of(source, &bytes);
        if (source->bytes != NULL)
            TRY(write_bytes(writing, source->bytes, (size_t)bytes));
        else
            TRY(write_carriers(writing, source, block));
    }
    return STATUS_OK;
}

/* Opens PATH.part, or PATH.part2, ... if others exist. */
static enum status open_live(struct writing *writing) {
    struct stat info;
    if (!writing->overwrite && lstat(writing->path, &info) == 0)
        FAIL(STATUS_IO, "%s: exists, and is left alone", writing->path);
    for (int i = 1; i <= LIVE_NAMES; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "%d", i);
        TRY(arena_format(&writing->arena, &writing->live, "%s.part%s", writing->path, number));
        const int handle = open(writing->live, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (handle < 0 && errno == EEXIST) continue;
        if (handle < 0) FAIL(STATUS_IO, "%s: cannot create: %s", writing->live, strerror(errno));
        writing->file = fdopen(handle, "wb");
        if (writing->file != NULL) return STATUS_OK;
        const int reason = errno;
        close(handle);
        unlink(writing->live);
        FAIL(STATUS_IO, "%s: cannot create: %s", writing->live, strerror(reason));
    }
    FAIL(STATUS_IO, "%s: exists, and so do 99 more like it: remove what killed runs left",
         writing->live);
}

static enum status close_live(struct writing *writing, enum status status) {
    const int bad = fclose(writing->file);
    const int reason = errno;
    if (status == STATUS_OK && bad != 0)
        status = status_fail(STATUS_IO, "%s: cannot write: %s", writing->live, strerror(reason));
    if (status == STATUS_OK) status = publish_settle(writing->live);
    if (status == STATUS_OK) return publish_name(writing->live, writing->path, writing->overwrite);
    unlink(writing->live);
    return status;
}

enum status safetensors_write(const char *path, int overwrite,
                              const struct safetensors_source *sources, size_t count,
                              const struct safetensors_pair *metadata, size_t metadata_count) {
    struct writing writing = {.path = path,
                              .overwrite = overwrite,
                              .count = count,
                              .metadata = metadata,
                              .metadata_count = metadata_count,
                              .arena = ARENA_EMPTY};
    enum status status = plan(&writing, sources);
    if (status == STATUS_OK) status = open_live(&writing);
    if (status == STATUS_OK) status = close_live(&writing, write_all(&writing));
    arena_close(&writing.arena);
    return status;
}
