/* SPDX-License-Identifier: Apache-2.0
 * Opens what a path names, has the reader chosen, and lets it read.
 *
 * Invariant: whatever happens, files are closed and the memory of the building is returned. */
#include "logs/import.h"

#include <string.h>

#include "logs/choose.h"
#include "logs/folder.h"
#include "logs/json_row.h"
#include "logs/lines.h"
#include "logs/unpack.h"

void log_options_init(struct log_options *options) {
    memset(options, 0, sizeof *options);
    options->step_base = INT64_MIN;
}

void log_source_release(const struct log_source *source, size_t offset) {
    if (source->mapping == NULL) return;
    const size_t before = (size_t)(source->bytes - source->mapping->bytes);
    log_map_release(source->mapping, before + offset);
}

/* ---- which reader ---- */

#define FORMAT(symbol, name, title) {name, title},
#define READER(symbol, name, title) {name, &log_reader_##symbol},

const struct log_format *log_formats(void) {
    static const struct log_format formats[] = {LOG_READERS(FORMAT){NULL, NULL}};
    return formats;
}

const struct log_reader_row *log_readers(void) {
    static const struct log_reader_row readers[] = {LOG_READERS(READER){NULL, NULL}};
    return readers;
}

int log_reader_claim(const struct log_reader *reader, const struct log_source *source) {
    if (reader->claim != NULL) return reader->claim(source);
    return reader->grammar != NULL ? log_lines_claim(source, reader->grammar)
                                   : log_dialect_claim(source, reader->dialect);
}

static enum status read_with(const struct log_reader *reader, const struct log_source *source,
                             struct log_build *build) {
    if (reader->read != NULL) return reader->read(source, build);
    return reader->grammar != NULL ? log_lines_read(source, build, reader->grammar)
                                   : log_dialect_read(source, build, reader->dialect);
}

/* ---- reading ---- */

/* Programs on Windows put a byte order mark (U+FEFF) before UTF-8; it is no part of the log. */
static struct log_source without_mark(struct log_source source) {
    if (source.length >= 3 && memcmp(source.bytes, "\xef\xbb\xbf", 3) == 0) {
        source.bytes += 3;
        source.length -= 3;
    }
    return source;
}

struct files { /* of one log */
    struct log_source *sources;
    struct log_mapping *unpacked; /* what packed sources were unpacked to */
    int *cut;                     /* 1: the packed source ends early */
    size_t count;
};

static enum status read_files(const struct files *files, const char *name,
                              const struct log_options *options, struct arena *arena,
                              struct log **out) {
    const struct log_reader_row *row = NULL;
    struct log_build *build;
    size_t first = 0;
    while (first + 1 < files->count && files->sources[first].length == 0)
        first++;
    TRY(log_choose_reader(&files->sources[first], options, &row));
    enum status status = log_build_open(name, row->name, options, arena, &build);
    for (size_t i = 0; i < files->count && status == STATUS_OK; i++) {
        status = read_with(row->reader, &files->sources[i], build);
        if (status == STATUS_OK && files->cut[i])
            status = log_build_note(build,
                                    "%s ends inside its packed data: it is being written or was "
                                    "cut",
                                    files->sources[i].name);
        else if (files->cut[i])
            status = status_prefix(status,
                                   "%s ends inside its packed data, as one that is being "
                                   "written or was cut",
                                   files->sources[i].name);
    }
    if (status == STATUS_OK) status = log_build_finish(build, row->reader->step_base, out);
    log_build_close(build);
    return status;
}

static enum status unpack_all(const struct files *files) {
    static const unsigned char none[1] = {0};
    for (size_t i = 0; i < files->count; i++) {
        struct log_source *source = &files->sources[i];
        struct log_mapping *mapping = &files->unpacked[i];
        if (log_packed(source) == NULL) continue;
        TRY(log_unpack(source, mapping, &files->cut[i]));
        if (files->cut[i] && mapping->length == 0)
            FAIL(STATUS_INPUT, "%s: expected a log, got %s that ends before its first byte",
                 source->name, log_packed(source));
        source->bytes = mapping->bytes == NULL ? none : mapping->bytes;
        source->length = mapping->length;
        source->mapping = mapping->bytes == NULL ? NULL : mapping;
        source->path = NULL; /* who opens a file by its path would get the packed one */
        if (log_packed(source) != NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected a log in what was unpacked, got %s again; unpack it once",
                 source->name, log_packed(source));
        *source = without_mark(*source);
    }
    return STATUS_OK;
}

static enum status read_all(struct log_source *sources, size_t count, const char *name,
                            const struct log_options *options, struct arena *arena,
                            struct log **out) {
    struct files files = {.sources = sources, .count = count};
    TRY(arena_take(arena, count, sizeof *files.unpacked, "files of a log", &files.unpacked));
    TRY(arena_take(arena, count, sizeof *files.cut, "files of a log", &files.cut));
    enum status status = unpack_all(&files);
    if (status == STATUS_OK) status = read_files(&files, name, options, arena, out);
    for (size_t i = 0; i < count; i++)
        if (files.unpacked[i].spool != NULL) log_unmap(&files.unpacked[i]);
    return status;
}

enum status log_import_bytes(const char *name, const void *bytes, size_t length,
                             const struct log_options *options, struct arena *arena,
                             struct log **out) {
    static const unsigned char none[1] = {0};
    char *kept;
    struct log_source source = {
        .name = name,
        .bytes = length == 0 ? none : (const unsigned char *)bytes,
        .length = length,
    };
    TRY(arena_text(arena, name, strlen(name), &kept));
    source.name = kept;
    source = without_mark(source);
    return read_all(&source, 1, kept, options, arena, out);
}

static enum status map_all(const struct log_files *files, struct log_mapping *mappings,
                           struct log_source *sources) {
    static const unsigned char none[1] = {0};
    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->paths[i];
        const int is_input = strcmp(path, "-") == 0;
        TRY(log_map(path, &mappings[i]));
        sources[i] = without_mark((struct log_source){
            .name = is_input ? "standard input" : path,
            .bytes = mappings[i].bytes == NULL ? none : mappings[i].bytes,
            .length = mappings[i].length,
            .part = (uint32_t)i,
            .series = files->series == NULL ? NULL : files->series[i],
            .path = is_input ? NULL : path,
            .mapping = mappings[i].bytes == NULL ? NULL : &mappings[i],
        });
    }
    return STATUS_OK;
}

enum status log_import(const char *path, const struct log_options *options, struct arena *arena,
                       struct log **out) {
    struct log_files files;
    struct log_mapping *mappings;
    struct log_source *sources;
    TRY(log_files_of(path, arena, &files));
    TRY(arena_take(arena, files.count, sizeof *mappings, "files of a log", &mappings));
    TRY(arena_take(arena, files.count, sizeof *sources, "files of a log", &sources));
    enum status status = map_all(&files, mappings, sources);
    if (status == STATUS_OK)
        status = read_all(sources, files.count, strcmp(path, "-") == 0 ? "standard input" : path,
                          options, arena, out);
    for (size_t i = 0; i < files.count; i++)
        if (mappings[i].descriptor != 0 || mappings[i].bytes != NULL) log_unmap(&mappings[i]);
    return status;
}
