/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Packed logs: what the libraries pack is read as what was packed; damage, early ends and bombs. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "logs/import.h"

#define ROOM ((size_t)1 << 20)

static const char text[] = "step:  1  loss:  8.04910  grad_norm:  1.2345\n"
                           "step:  2  loss:  8.03910  grad_norm:  1.2245\n"
                           "step:  3  loss:  8.02910  grad_norm:  1.2145\n";

static size_t pack_gzip(const void *bytes, size_t length, unsigned char *out) {
    z_stream z;
    memset(&z, 0, sizeof z);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)(size_t)bytes;
    z.avail_in = (uInt)length;
    z.next_out = out;
    z.avail_out = (uInt)ROOM;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return ROOM - z.avail_out;
}

static size_t pack_xz(const void *bytes, size_t length, unsigned char *out) {
    size_t used = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)bytes,
                                             length, out, &used, ROOM),
                     LZMA_OK);
    return used;
}

static size_t pack_zstd(const void *bytes, size_t length, unsigned char *out) {
    ZSTD_CCtx *z = ZSTD_createCCtx();
    assert_non_null(z);
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    const size_t used = ZSTD_compress2(z, out, ROOM, bytes, length);
    ZSTD_freeCCtx(z);
    assert_false(ZSTD_isError(used));
    return used;
}

static const struct {
    const char *name;
    size_t (*pack)(const void *bytes, size_t length, unsigned char *out);
} packers[] = {{"gzip", pack_gzip}, {"xz", pack_xz}, {"zstd", pack_zstd}};

static unsigned char packed[2 * ROOM];

/* Reads exactly these bytes from memory of their own, so that the sanitizer sees their end. */
static enum status read_bytes(struct arena *arena, const void *bytes, size_t length,
                              struct log **out) {
    struct log_options options;
    char *copy;
    log_options_init(&options);
    assert_int_equal(arena_take(arena, length, 1, "bytes", &copy), STATUS_OK);
    if (length > 0) memcpy(copy, bytes, length);
    return log_import_bytes("test", copy, length, &options, arena, out);
}

static void check_rows(const void *bytes, size_t length, size_t rows, const char *note) {
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    if (read_bytes(&arena, bytes, length, &log) != STATUS_OK) fail_msg("%s", status_text());
    assert_string_equal(log->format, "torchtitan");
    assert_int_equal(log->rows, rows);
    for (size_t i = 0; i < rows; i++)
        logs_expect(log, "loss", i, i % 3 == 0 ? 8.0491 : i % 3 == 1 ? 8.0391 : 8.0291, 1e-5);
    if (note != NULL) assert_true(logs_has_note(log, note));
    arena_close(&arena);
}

static void check_refusal(const void *bytes, size_t length, const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    assert_int_equal(read_bytes(&arena, bytes, length, &log), STATUS_INPUT);
    if (strstr(status_text(), words) == NULL)
        fail_msg("expected \"%s\", got %s", words, status_text());
    arena_close(&arena);
}

static void validate_what_the_libraries_pack(void **state) {
    (void)state;
    for (size_t p = 0; p < COUNT_OF(packers); p++) {
        size_t length = packers[p].pack(text, sizeof text - 1, packed);
        check_rows(packed, length, 3, NULL);
        length += packers[p].pack(text, sizeof text - 1, packed + length); /* "cat a.gz b.gz" */
        check_rows(packed, length, 6, "the step falls back from 3 to 1");
    }
}

static void validate_zeros_behind_gzip(void **state) {
    (void)state;
    const size_t length = pack_gzip(text, sizeof text - 1, packed);
    memset(packed + length, 0, 512);
    check_rows(packed, length + 512, 3, NULL);
    packed[length + 100] = 'x';
    check_refusal(packed, length + 512, "at packed byte");
}

/* Rows whose text repeats unpack only near the end, so the long log is of lines that differ. */
static void verify_every_early_end(void **state) {
    static char lines[400000]; /* several blocks of zstd */
    size_t used = 0;
    (void)state;
    for (unsigned i = 1; used + 100 < sizeof lines; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used,
                                 "step:  %u  loss:  %u.%05u  grad_norm:  1.2345\n", i,
                                 i * 7919u % 13, i * 104729u % 100000);
    for (size_t p = 0; p < COUNT_OF(packers); p++) {
        const size_t length = packers[p].pack(lines, used, packed);
        size_t logs = 0;
        for (size_t end = 0; end < length; end += length / 40) {
            struct arena arena = ARENA_EMPTY;
            struct log *log;
            if (read_bytes(&arena, packed, end, &log) == STATUS_OK) {
                logs++;
                assert_true(logs_has_note(log, "ends inside its packed data"));
            } else {
                assert_non_null(strstr(status_text(), "expected"));
            }
            arena_close(&arena);
        }
        if (logs < 8) fail_msg("%s: no early end gave rows", packers[p].name);
    }
}

/* Each byte is changed once: that is an error or, where the byte means nothing, the same log. */
static void verify_damage(void **state) {
    (void)state;
    for (size_t p = 0; p < COUNT_OF(packers); p++) {
        const size_t length = packers[p].pack(text, sizeof text - 1, packed);
        size_t errors = 0;
        for (size_t i = 0; i < length; i++) {
            struct arena arena = ARENA_EMPTY;
            struct log *log;
            packed[i] ^= 0x55;
            const enum status status = read_bytes(&arena, packed, length, &log);
            if (status != STATUS_OK) assert_true(strlen(status_text()) > 10);
            errors += status != STATUS_OK;
            packed[i] ^= 0x55;
            arena_close(&arena);
        }
        assert_true(errors + 16 > length); /* gzip's head has bytes that no reader looks at */
    }
}

static void verify_bombs(void **state) {
    static unsigned char zeros[(size_t)66 << 20];
    (void)state;
    for (size_t p = 0; p < COUNT_OF(packers); p++) {
        const size_t length = packers[p].pack(zeros, sizeof zeros, packed);
        check_refusal(packed, length, "that unpacks to more than 64 MiB");
    }
}

/* A format that is one value cannot be read in part, and the error says whose fault that is. */
static void validate_cut_json(void **state) {
    static const char json[] = "{\"best_metric\": null, \"global_step\": 2, \"log_history\": "
                               "[{\"loss\": 2.5, \"step\": 1}, "
                               "{\"loss\": 2.25, \"step\": 2}]}";
    (void)state;
    const size_t length = pack_gzip(json, sizeof json - 1, packed);
    check_refusal(packed, length - 14,
                  "ends inside its packed data, as one that is being written "
                  "or was cut: ");
}

static void validate_packed_twice_or_empty(void **state) {
    static unsigned char once[ROOM];
    (void)state;
    for (size_t p = 0; p < COUNT_OF(packers); p++) {
        size_t length = packers[p].pack(text, sizeof text - 1, once);
        check_refusal(packed, packers[p].pack(once, length, packed), "again; unpack it once");
        check_refusal(packed, packers[p].pack("", 0, packed), "got an empty file");
        check_refusal(packed, 6, "that ends before its first byte");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_the_libraries_pack),
        cmocka_unit_test(validate_zeros_behind_gzip),
        cmocka_unit_test(verify_every_early_end),
        cmocka_unit_test(verify_damage),
        cmocka_unit_test(verify_bombs),
        cmocka_unit_test(validate_cut_json),
        cmocka_unit_test(validate_packed_twice_or_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
