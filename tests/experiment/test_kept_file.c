/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A file of kept states gives back the pieces that were written, whatever their length, and refuses
 * a piece of which one bit is another, one under another piece's name, and a file of the version
 * before, whose digests were others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/macro.h"
#include "experiment/kept_file.h"

/* Around the sizes in which bytes are hashed: words, pieces of 4 KiB, blocks of 64 KiB. */
static const size_t lengths[] = {1, 3, 4, 4095, 4096, 4097, 65535, 65536, 65537, 3 * 65536 + 5};

static char path[64];

static unsigned char *bytes_of(size_t i) {
    unsigned char *const bytes = (unsigned char *)malloc(lengths[i]);
    assert_non_null(bytes);
    for (size_t k = 0; k < lengths[i]; k++)
        bytes[k] = (unsigned char)((k * 2654435761u + i * 97u) >> 7);
    return bytes;
}

static void write_all(void) {
    struct kept_piece pieces[COUNT_OF(lengths)];
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        snprintf(pieces[i].name, sizeof pieces[i].name, "piece %zu", i);
        pieces[i].bytes = bytes_of(i);
        pieces[i].length = lengths[i];
    }
    assert_int_equal(kept_write(path, 7, pieces, COUNT_OF(pieces)), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        free((void *)(uintptr_t)pieces[i].bytes);
}

static long find(const unsigned char *in, size_t length, const void *what, size_t size) {
    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(in + i, what, size) == 0) return (long)i;
    return -1;
}

static unsigned char *whole(size_t *out_length) {
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *out_length = (size_t)ftell(file);
    rewind(file);
    unsigned char *const bytes = (unsigned char *)malloc(*out_length);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *out_length, file), *out_length);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void write_whole(const unsigned char *bytes, size_t length) {
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void refused(const char *expected) {
    struct arena arena = ARENA_EMPTY;
    struct kept_file file;
    int there;
    assert_int_equal(kept_open(path, &arena, &file, &there), STATUS_INPUT);
    if (strstr(status_text(), expected) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", expected, status_text());
    arena_close(&arena);
}

static void verify_whole(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct kept_file file;
    int there;
    write_all();
    assert_int_equal(kept_open(path, &arena, &file, &there), STATUS_OK);
    assert_int_equal(there, 1);
    assert_int_equal(file.number, 7);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        unsigned char *const expected = bytes_of(i), *const found =
                                                         (unsigned char *)malloc(lengths[i]);
        char name[32];
        snprintf(name, sizeof name, "piece %zu", i);
        assert_int_equal(kept_copy(&file, name, found, lengths[i]), STATUS_OK);
        assert_memory_equal(found, expected, lengths[i]);
        free(found);
        free(expected);
    }
    kept_close(&file);
    arena_close(&arena);
}

/* One bit of the first, a middle and the last byte of every piece. */
static void verify_bits(void **state) {
    (void)state;
    size_t length;
    write_all();
    unsigned char *const bytes = whole(&length);
    size_t end = length;
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        end -= lengths[i];
    size_t at = end; /* of the header; pieces follow in the order of the file */
    for (size_t k = 0; k < COUNT_OF(lengths); k++) {
        const size_t places[] = {0, lengths[k] / 2, lengths[k] - 1};
        for (size_t p = 0; p < COUNT_OF(places); p++) {
            bytes[at + places[p]] ^= (unsigned char)(1u << (p * 3));
            write_whole(bytes, length);
            refused("damaged: piece \"piece ");
            refused("does not match its digest");
            bytes[at + places[p]] ^= (unsigned char)(1u << (p * 3));
        }
        at += lengths[k];
    }
    free(bytes);
}

static void verify_version(void **state) {
    (void)state;
    static const char now[] = "\"twinstep kept states\":\"2\"";
    size_t length;
    write_all();
    unsigned char *const bytes = whole(&length);
    const long at = find(bytes, length, now, sizeof now - 1);
    assert_true(at > 0);
    bytes[(size_t)at + sizeof now - 3] = '1';
    write_whole(bytes, length);
    refused("expected kept states of version 2, got 1");
    free(bytes);
}

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/kept_file.XXXXXX");
    const int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_whole),
        cmocka_unit_test(verify_bits),
        cmocka_unit_test(verify_version),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
