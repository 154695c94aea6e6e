/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give a log or an error with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT names the reader; without it the content decides. What was read is walked
 * over and exported, so that its invariants are tested, too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logs/export.h"
#include "logs/framed.h"
#include "logs/import.h"
#include "logs/rename.h"
#include "logs/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_import: broken: %s\n", what);
    abort();
}

static void look_at(const struct log *log) {
    require(log->rows > 0 && log->column_count > 0, "a log has rows and columns");
    for (size_t c = 0; c < log->column_count; c++) {
        const struct log_column *column = &log->columns[c];
        size_t values = 0;
        require(column->name >= 0 && column->name < LOG_NAMES, "names are ours");
        for (size_t i = 0; i < log->rows; i++) {
            values += (size_t)log_has(column, i);
            require(!log_has(column, i) || column->quantum[i] >= 0.0f, "quanta are not negative");
        }
        require(values > 0, "columns have values");
    }
    for (size_t i = 0; i < log->rows; i++)
        require(log->step[i] >= 0, "steps are not negative");
}

static void rename_all(const struct log *log, struct arena *arena, FILE *nowhere) {
    for (const struct log_naming *n = log_namings(); n->name != NULL; n++) {
        struct log renamed;
        enum status status = log_rename(log, n->name, arena, &renamed);
        if (status == STATUS_OK) {
            look_at(&renamed);
            status = log_export(&renamed, "jsonl", nowhere);
        }
        require(status == STATUS_OK || strlen(status_text()) > 0, "a refusal has a text");
    }
}

static void export_all(const struct log *log, struct arena *arena) {
    FILE *nowhere = fopen("/dev/null", "w");
    require(nowhere != NULL, "/dev/null opens");
    for (const struct log_export_format *f = log_export_formats(); f->name != NULL; f++) {
        const enum status status = log_export(log, f->name, nowhere);
        require(status == STATUS_OK || strlen(status_text()) > 0, "a refusal has a text");
    }
    rename_all(log, arena, nowhere);
    fclose(nowhere);
}

static void import_bytes(const uint8_t *data, size_t size, const char *format) {
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    options.format = format;
    if (log_import_bytes("fuzz", data, size, &options, &arena, &log) == STATUS_OK) {
        look_at(log);
        export_all(log, &arena);
    } else {
        require(strlen(status_text()) > 0, "an error has a text");
    }
    arena_close(&arena);
}

static void put_u32(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

/* No fuzzer guesses a checksum, so this corrects those of an event file, and its lengths. */
static void mend_records(uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + 16 <= size;) {
        const size_t room = size - at - 16, wanted = bytes[at] + 256u * (bytes[at + 1] & 3u);
        const size_t length = wanted < room ? wanted : room;
        memset(bytes + at, 0, 8);
        bytes[at] = (uint8_t)length;
        bytes[at + 1] = (uint8_t)(length >> 8);
        put_u32(bytes + at + 8, tfrecord_mask(tfrecord_crc32c(bytes + at, 8)));
        put_u32(bytes + at + 12 + length, tfrecord_mask(tfrecord_crc32c(bytes + at + 12, length)));
        at += 16 + length;
    }
}

/* Does the same for the parts of a run file of W&B or SwanLab, behind its head. */
static void mend_parts(uint8_t *bytes, size_t size) {
    for (size_t at = FRAMED_HEAD; at + 7 <= size;) {
        const size_t room = size - at - 7, wanted = bytes[at + 4] + 256u * (bytes[at + 5] & 3u);
        const size_t length = wanted < room ? wanted : room;
        bytes[at + 4] = (uint8_t)length;
        bytes[at + 5] = (uint8_t)(length >> 8);
        bytes[at + 6] &= 7;
        put_u32(bytes + at, framed_sum(bytes[at + 6], bytes + at + 7, length));
        at += 7 + length;
    }
}

static void import_mended(const uint8_t *data, size_t size, const char *format) {
    struct arena arena = ARENA_EMPTY;
    uint8_t *mended;
    require(arena_take(&arena, size, 1, "copy", &mended) == STATUS_OK, "memory");
    if (size > 0) memcpy(mended, data, size);
    if (strcmp(format, "tensorboard") == 0)
        mend_records(mended, size);
    else
        mend_parts(mended, size);
    import_bytes(mended, size, format);
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    import_bytes(data, size, format);
    if (format != NULL && (strcmp(format, "tensorboard") == 0 || strcmp(format, "wandb-run") == 0 ||
                           strcmp(format, "swanlab") == 0))
        import_mended(data, size, format);
    return 0;
}
