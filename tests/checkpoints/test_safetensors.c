/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The reading of one safetensors file: what the format allows, every rule broken once, files that
 * are no safetensors, and values of each number format. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "checkpoints/safetensors.h"
#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_find.h"

#define ONE(name, shape, offsets)                                                                  \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static enum status open_once(const char *path) {
    struct arena arena = ARENA_EMPTY;
    struct safetensors_file file;
    const enum status status = safetensors_open(path, &arena, &file);
    if (status == STATUS_OK) safetensors_close(&file);
    arena_close(&arena);
    return status;
}

static void validate_contents(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct safetensors_file file;
    helper_write_safetensors(
        "a",
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[6,30]},"
        "\"__metadata__\":{\"format\":\"pt\",\"z\":\"\"}," ONE("a", "[6]", "[0,6]") "," ONE(
            "none", "[4,0]", "[6,6]") "," ONE("scalar", "[]", "[30,31]") "}   ",
        31);
    assert_int_equal(safetensors_open("a", &arena, &file), STATUS_OK);
    assert_int_equal(file.count, 4);
    assert_string_equal(file.tensors[0]->name, "a");
    const struct safetensors_tensor *b = helper_find(&file, "b");
    assert_non_null(b);
    assert_int_equal(b->dtype, SAFETENSORS_F32);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->count, 6);
    assert_int_equal(b->data[0], 6);
    assert_int_equal(b->data[23], 29);
    assert_int_equal(helper_find(&file, "scalar")->count, 1);
    assert_int_equal(helper_find(&file, "scalar")->data[0], 30);
    assert_int_equal(helper_find(&file, "none")->count, 0);
    assert_null(helper_find(&file, "bb"));
    assert_int_equal(file.metadata_count, 2);
    assert_string_equal(helper_metadata(&file, "format"), "pt");
    assert_null(helper_metadata(&file, "x"));
    safetensors_close(&file);
    arena_close(&arena);
}

/* Headers that must be accepted, with how many bytes of data they have. */
static void validate_accepted(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t length;
    } cases[] = {
        {"{}", 0},
        {"{}                              ", 0},
        {"{\"__metadata__\":{}}", 0},
        {"{" ONE("", "[1]", "[0,1]") "}", 1},
        {"{" ONE("a", "[0]", "[0,0]") "," ONE("b", "[0,7]", "[0,0]") "}", 0},
        {"{" ONE("e", "[0,9223372036854775807,4]", "[0,0]") "}", 0},
        {"{\"f\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[0,3]}}", 3},
        {"{" ONE("a", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1},
        {"{" ONE("b", "[1]", "[1,2]") "," ONE("a", "[1]", "[0,1]") "}", 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        helper_write_safetensors("ok", cases[i].header, cases[i].length);
        if (open_once("ok") != STATUS_OK) fail_msg("%s: %s", cases[i].header, status_text());
    }
}

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t length;
        const char *needle;
    } cases[] = {
        {"[]", 0, "expected the header to begin with {"},
        {" {}", 0, "expected the header to begin with {"},
        {"{", 0, "expected JSON"},
        {"{} {}", 0, "expected JSON"},
        {"{\"a\":\"\xff\"}", 0, "expected JSON"},
        {"{" ONE("a\\u0000b", "[1]", "[0,1]") "}", 1, "NUL"},
        {"{" ONE("a", "[1]", "[0,1]") "," ONE("a", "[1]", "[0,1]") "}", 1, "duplicate"},
        {"{" ONE("a", "[1]", "[0,1]") "," ONE("\\u0061", "[1]", "[1,2]") "}", 2, "duplicate"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "duplicate"},
        {"{\"__metadata__\":[]}", 0, "__metadata__: expected an object of strings, got an array"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "\"k\": expected a string, got an integer"},
        {"{\"a\":1}", 0, "\"a\": expected an object of dtype, shape"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "the key dtype, which is missing"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "the key shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "the key data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"scale\":2}}", 1,
         "only, got \"scale\""},
        {"{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "dtype: expected a string"},
        {"{\"a\":{\"dtype\":\"u8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "got \"u8\""},
        {"{" ONE("a", "1", "[0,1]") "}", 1, "shape: expected an array, got an integer"},
        {"{" ONE("a", "[-1]", "[0,1]") "}", 1, "got a negative integer at place 1"},
        {"{" ONE("a", "[1.0]", "[0,1]") "}", 1, "got a real number at place 1"},
        {"{" ONE("a", "[true]", "[0,1]") "}", 1, "got true"},
        {"{" ONE("a", "[1]", "[0]") "}", 1, "data_offsets: expected two whole numbers"},
        {"{" ONE("a", "[1]", "[0,1,2]") "}", 1, "data_offsets: expected two whole numbers"},
        {"{" ONE("a", "[1]", "[-1,0]") "}", 1, "data_offsets: expected two whole numbers"},
        {"{" ONE("a", "[1]", "{}") "}", 1, "got an object"},
        {"{" ONE("a", "[1]", "[1,0]") "}", 1, "expected begin before end, got 1 and 0"},
        {"{" ONE("a", "[2]", "[0,2]") "}", 1, "an end inside the 1 bytes of data, got 2"},
        {"{" ONE("a", "[1]", "[0,9223372036854775807]") "}", 1, "got 9223372036854775807"},
        {"{" ONE("a", "[1]", "[0,9223372036854775808]") "}", 1, "expected JSON"},
        {"{" ONE("a", "[2]", "[0,1]") "}", 1, "expected 2 bytes for U8 [2], got 1"},
        {"{" ONE("a", "[1]", "[0,2]") "}", 2, "expected 1 bytes for U8 [1], got 2"},
        {"{" ONE("a", "[4294967296,4294967296]", "[0,1]") "}", 1, "below 2^64"},
        {"{" ONE("a", "[4294967296,4294967296,0]", "[0,0]") "}", 0, "below 2^64"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
         "below 2^64"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
         "whole number of bytes"},
        {"{" ONE("a", "[1]", "[1,2]") "}", 2, "expected a begin of 0, got 1"},
        {"{" ONE("a", "[1]", "[0,1]") "," ONE("b", "[1]", "[2,3]") "}", 3,
         "\"b\": data_offsets: expected a begin of 1, got 2"},
        {"{" ONE("a", "[2]", "[0,2]") "," ONE("b", "[2]", "[1,3]") "}", 3,
         "it overlaps tensor \"a\""},
        {"{" ONE("a", "[2]", "[0,2]") "," ONE("b", "[2]", "[0,2]") "}", 2, "it overlaps tensor"},
        {"{" ONE("a", "[2]", "[0,2]") "," ONE("b", "[0]", "[1,1]") "}", 2, "it overlaps tensor"},
        {"{" ONE("a", "[1]", "[0,1]") "}", 2, "expected 1 bytes of data, got 2"},
        {"{}", 1, "expected 0 bytes of data, got 1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        helper_write_safetensors("bad", cases[i].header, cases[i].length);
        const enum status status = open_once("bad");
        if (status == STATUS_OK) fail_msg("accepted: %s", cases[i].header);
        helper_require(status, STATUS_INPUT, cases[i].needle);
        helper_require(status, STATUS_INPUT, "bad: ");
    }
}

/* The NUL byte itself, not its escape. */
static void validate_raw_nul(void **state) {
    (void)state;
    const char header[] = "{\"a\0b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    unsigned char bytes[8 + sizeof header] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header); /* the last byte is the datum */
    helper_write_bytes("nul", bytes, sizeof bytes);
    helper_require(open_once("nul"), STATUS_INPUT, "expected JSON");
}

static void validate_lengths(void **state) {
    (void)state;
    static const struct {
        unsigned char bytes[12];
        size_t length;
        const char *needle;
    } cases[] = {
        {{0}, 0, "got 0 bytes"},
        {{2, 0, 0, 0, 0, 0, 0}, 7, "got 7 bytes"},
        {{0, 0, 0, 0, 0, 0, 0, 0}, 8, "got a header of 0 bytes"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "expected a header of 3 bytes, but only 2"},
        {{0, 0xE1, 0xF5, 0x05, 0, 0, 0, 0, '{', '}'}, 10, "expected a header of 100000000 bytes"},
        {{1, 0xE1, 0xF5, 0x05, 0, 0, 0, 0, '{', '}'}, 10, "got a length of 100000001"},
        {{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, '{', '}'}, 10, "18446744073709551615"},
        {{'P', 'K', 3, 4, 20, 0, 0, 0, 8, 8}, 10, "is this a safetensors file?"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        helper_write_bytes("short", cases[i].bytes, cases[i].length);
        helper_require(open_once("short"), STATUS_INPUT, cases[i].needle);
    }
}

/* Wherever a file is cut, it must be refused. */
static void verify_every_cut(void **state) {
    (void)state;
    size_t length;
    helper_write_safetensors("whole", "{" ONE("a", "[9]", "[0,9]") "}", 9);
    assert_int_equal(open_once("whole"), STATUS_OK);
    unsigned char *bytes = helper_read("whole", &length);
    for (size_t cut = 0; cut < length; cut++) {
        helper_write_bytes("cut", bytes, cut);
        helper_require(open_once("cut"), STATUS_INPUT, "cut: ");
    }
    free(bytes);
}

static void validate_no_files(void **state) {
    (void)state;
    helper_require(open_once("nowhere"), STATUS_IO, "nowhere: cannot open: No such file");
    assert_int_equal(mkdir("folder", 0777), 0);
    helper_require(open_once("folder"), STATUS_INPUT, "expected a regular file, got a folder");
    assert_int_equal(mkfifo("pipe", 0666), 0);
    helper_require(open_once("pipe"), STATUS_INPUT, "expected a regular file, got a named pipe");
    helper_require(open_once("/dev/null"), STATUS_INPUT, "expected a regular file, got a device");
    helper_write_safetensors("secret", "{}", 0);
    assert_int_equal(chmod("secret", 0), 0);
    if (geteuid() != 0) helper_require(open_once("secret"), STATUS_IO, "Permission denied");
}

/* 1.5, -2, the smallest subnormal, infinity, and a NaN with payload and sign must be read, at an
 * odd address. */
static void validate_numbers(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        size_t width;
        uint64_t stored[5], carried[5];
    } cases[] = {
        {"F32",
         4,
         {0x3FC00000, 0xC0000000, 1, 0x7F800000, 0xFFC12345},
         {0x3FC00000, 0xC0000000, 1, 0x7F800000, 0xFFC12345}},
        {"BF16",
         2,
         {0x3FC0, 0xC000, 1, 0x7F80, 0xFFC1},
         {0x3FC00000, 0xC0000000, 0x10000, 0x7F800000, 0xFFC10000}},
        {"F16",
         2,
         {0x3E00, 0xC000, 1, 0x7C00, 0xFE01},
         {0x3FC00000, 0xC0000000, 0x33800000, 0x7F800000, 0xFFC02000}},
        {"F8_E4M3", /* has no infinity: its largest number */
         1,
         {0x3C, 0xC0, 1, 0x7E, 0xFF},
         {0x3FC00000, 0xC0000000, 0x3B000000, 0x43E00000, 0xFFC00000}},
        {"F8_E5M2",
         1,
         {0x3E, 0xC0, 1, 0x7C, 0xFE},
         {0x3FC00000, 0xC0000000, 0x37800000, 0x7F800000, 0xFFC00000}},
        {"F64",
         8,
         {0x3FF8000000000000, 0xC000000000000000, 1, 0x7FF0000000000000, 0xFFF8000000000001},
         {0x3FF8000000000000, 0xC000000000000000, 1, 0x7FF0000000000000, 0xFFF8000000000001}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char header[256];
        struct arena arena = ARENA_EMPTY;
        struct safetensors_file file;
        const size_t width = cases[i].width, carrier = width == 8 ? 8 : 4;
        unsigned char out[40], bytes[300] = {0};
        const int used =
            snprintf(header, sizeof header,
                     "{\"x\":{\"dtype\":\"%s\",\"shape\":[5],\"data_offsets\":[1,%zu]}, " ONE(
                         "o", "[1]", "[0,1]") "}",
                     cases[i].dtype, 1 + 5 * width);
        bytes[0] = (unsigned char)used;
        memcpy(bytes + 8, header, (size_t)used);
        for (size_t k = 0; k < 5; k++)
            memcpy(bytes + 9 + used + k * width, &cases[i].stored[k], width);
        helper_write_bytes("n", bytes, 9 + (size_t)used + 5 * width);
        assert_int_equal(safetensors_open("n", &arena, &file), STATUS_OK);
        const struct safetensors_tensor *x = helper_find(&file, "x");
        assert_int_equal(safetensors_numbers(x, 1, 4, out), STATUS_OK);
        for (size_t k = 0; k < 4; k++)
            assert_memory_equal(out + k * carrier, &cases[i].carried[k + 1], carrier);
        assert_int_equal(safetensors_numbers(x, 0, 1, out), STATUS_OK);
        assert_memory_equal(out, &cases[i].carried[0], carrier);
        helper_require(safetensors_numbers(x, 2, 4, out), STATUS_INTERNAL, "tensor \"x\"");
        helper_require(safetensors_numbers(helper_find(&file, "o"), 0, 1, out), STATUS_INPUT,
                       "expected numbers of F32, BF16, F16, F64, F8_E4M3 or F8_E5M2, got U8");
        safetensors_close(&file);
        arena_close(&arena);
    }
}

/* A name must never reach a terminal unescaped. */
static void validate_escaped_names(void **state) {
    (void)state;
    helper_write_safetensors("esc", "{" ONE("a\\u001b[2J\\n", "[1]", "[1,2]") "}", 2);
    helper_require(open_once("esc"), STATUS_INPUT, "tensor \"a\\x1b[2J\\x0a\": ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_contents),      cmocka_unit_test(validate_accepted),
        cmocka_unit_test(validate_refusals),      cmocka_unit_test(validate_raw_nul),
        cmocka_unit_test(validate_lengths),       cmocka_unit_test(verify_every_cut),
        cmocka_unit_test(validate_no_files),      cmocka_unit_test(validate_numbers),
        cmocka_unit_test(validate_escaped_names),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
