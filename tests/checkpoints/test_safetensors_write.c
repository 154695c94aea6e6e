/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The writing of safetensors: the bytes of a small file, round trips to the byte, what is refused,
 * and that a failure leaves nothing behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "base/macro.h"
#include "checkpoints/safetensors.h"
#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_find.h"

static const uint64_t shape_2x3[] = {2, 3}, shape_5[] = {5}, shape_0[] = {0, 4};
static const unsigned char bytes[48] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xFF, 0xFF, 0xFF};

static const struct safetensors_pair format[] = {{"format", "pt"}};

/* The bytes that the format's own serializer (0.8.0) wrote. */
static void validate_bytes(void **state) {
    (void)state;
    static const char expected[] =
        "\xd0\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"\\u0001\"},\"\":{\"dtype\":\"U8\",\"shape\":["
        "1],\"data_offsets\":[0,1]},\"a\\\"\\\\\\n\\u0001\x7f\xc3\xa9\xf0\x9f\x98\x80/"
        "\":{\"dtype\":"
        "\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[2,3]}}  \0\0\0";
    static const uint64_t one[] = {1};
    static const unsigned char zero[1] = {0};
    const struct safetensors_source sources[] = {
        {"a\"\\\n\x01\x7f\xc3\xa9\xf0\x9f\x98\x80/", SAFETENSORS_U8, 1, one, zero, NULL},
        {"b", SAFETENSORS_U8, 1, one, zero, NULL},
        {"", SAFETENSORS_U8, 1, one, zero, NULL}};
    const struct safetensors_pair pair = {"k", "\x01"};
    size_t length;
    assert_int_equal(safetensors_write("w", 0, sources, 3, &pair, 1), STATUS_OK);
    unsigned char *got = helper_read("w", &length);
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(got, expected, length);
    free(got);
}

static void validate_order(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct safetensors_file file;
    const struct safetensors_source sources[] = {
        {"z", SAFETENSORS_U8, 1, shape_5, bytes, NULL},
        {"y", SAFETENSORS_F32, 2, shape_2x3, bytes, NULL},
        {"n", SAFETENSORS_F16, 2, shape_0, bytes, NULL},
        {"a", SAFETENSORS_U8, 1, shape_5, bytes + 1, NULL},
        {"b", SAFETENSORS_BF16, 1, shape_5, bytes, NULL},
        {"s", SAFETENSORS_F64, 0, NULL, bytes, NULL},
        {"x", SAFETENSORS_F32, 2, shape_2x3, bytes + 2, NULL}};
    static const struct {
        const char *name;
        uint64_t begin;
    } expected[] = {{"s", 0}, {"x", 8}, {"y", 32}, {"b", 56}, {"n", 66}, {"a", 66}, {"z", 71}};
    assert_int_equal(safetensors_write("o", 0, sources, 7, format, 1), STATUS_OK);
    assert_int_equal(safetensors_open("o", &arena, &file), STATUS_OK);
    assert_int_equal((size_t)(file.tensors[0]->data - file.mapped.bytes) % 2, 0);
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_int_equal(helper_find(&file, expected[i].name)->begin, expected[i].begin);
    const size_t header = file.mapped.bytes[0] + 256u * file.mapped.bytes[1];
    assert_int_equal(header % 8, 0);
    assert_memory_equal(helper_find(&file, "x")->data, bytes + 2, 24);
    assert_memory_equal(helper_find(&file, "a")->data, bytes + 1, 5);
    safetensors_close(&file);
    arena_close(&arena);
}

/* Load, save, load, save must give the same bytes in both files, whatever the dtypes and
 * patterns. */
static void verify_round_trip(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct safetensors_source sources[SAFETENSORS_DTYPES], again[SAFETENSORS_DTYPES];
    struct safetensors_file file;
    static unsigned char data[8 * 64];
    static const uint64_t shape[] = {4, 16};
    char names[SAFETENSORS_DTYPES][8];
    size_t first_length, second_length;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 151 + i / 7);
    for (size_t i = 0; i < SAFETENSORS_DTYPES; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", (i * 5) % SAFETENSORS_DTYPES);
        sources[i] =
            (struct safetensors_source){names[i], (enum safetensors_dtype)i, 2, shape, data, NULL};
    }
    assert_int_equal(safetensors_write("r1", 0, sources, SAFETENSORS_DTYPES, format, 1), STATUS_OK);
    assert_int_equal(safetensors_open("r1", &arena, &file), STATUS_OK);
    assert_int_equal(file.count, SAFETENSORS_DTYPES);
    for (size_t i = 0; i < file.count; i++)
        again[i] = (struct safetensors_source){file.tensors[i]->name, file.tensors[i]->dtype,
                                               file.tensors[i]->rank, file.tensors[i]->shape,
                                               file.tensors[i]->data, NULL};
    assert_int_equal(
        safetensors_write("r2", 0, again, file.count, file.metadata, file.metadata_count),
        STATUS_OK);
    safetensors_close(&file);
    unsigned char *first = helper_read("r1", &first_length);
    unsigned char *second = helper_read("r2", &second_length);
    assert_int_equal(first_length, second_length);
    assert_memory_equal(first, second, first_length);
    free(first);
    free(second);
    arena_close(&arena);
}

/* Every BF16 and F16 value, and a walk through F32, must survive as carriers out of a file and into
 * a file. */
static void verify_carriers(void **state) {
    (void)state;
    static const enum safetensors_dtype dtypes[] = {SAFETENSORS_BF16, SAFETENSORS_F16,
                                                    SAFETENSORS_F32, SAFETENSORS_F64};
    static const uint64_t shape[] = {65536};
    static unsigned char stored[8 * 65536];
    static double carriers[65536];
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        struct arena arena = ARENA_EMPTY;
        struct safetensors_file file;
        const size_t width = safetensors_dtype_bits(dtypes[d]) / 8;
        size_t nans = 0, differ = 0;
        for (size_t i = 0; i < 65536; i++) {
            const uint64_t bits = width == 2 ? i : i * UINT64_C(0x9E3779B97F4A7C15);
            memcpy(stored + i * width, &bits, width);
        }
        const struct safetensors_source in = {"x", dtypes[d], 1, shape, stored, NULL};
        assert_int_equal(safetensors_write("c1", 1, &in, 1, NULL, 0), STATUS_OK);
        assert_int_equal(safetensors_open("c1", &arena, &file), STATUS_OK);
        assert_int_equal(safetensors_numbers(file.tensors[0], 0, 65536, carriers), STATUS_OK);
        safetensors_close(&file);
        const struct safetensors_source out = {"x", dtypes[d], 1, shape, NULL, carriers};
        assert_int_equal(safetensors_write("c2", 1, &out, 1, NULL, 0), STATUS_OK);
        assert_int_equal(safetensors_open("c2", &arena, &file), STATUS_OK);
        for (size_t i = 0; i < 65536; i++) {
            double value = carriers[i];
            if (width < 8) value = (double)((const float *)(const void *)carriers)[i];
            nans += value != value;
            differ += value == value &&
                      memcmp(file.tensors[0]->data + i * width, stored + i * width, width) != 0;
        }
        assert_int_equal(differ, 0);
        if (width == 2) assert_int_equal(nans, d == 0 ? 2 * 127 : 2 * 1023);
        safetensors_close(&file);
        arena_close(&arena);
    }
}

static void validate_refusals(void **state) {
    (void)state;
    static const uint64_t huge[] = {UINT64_MAX, 2}, three[] = {3};
    static const float third = 0x1.555556p-2f;
    static const uint64_t one[] = {1};
    static const struct {
        struct safetensors_source source;
        const char *needle;
    } cases[] = {
        {{"__metadata__", SAFETENSORS_U8, 1, shape_5, bytes, NULL}, "not __metadata__"},
        {{"a\xff", SAFETENSORS_U8, 1, shape_5, bytes, NULL}, "expected a name in UTF-8"},
        {{"a", SAFETENSORS_U8, 2, huge, bytes, NULL}, "its shape overflows"},
        {{"a", SAFETENSORS_F4, 1, three, bytes, NULL}, "makes no whole bytes"},
        {{"b", SAFETENSORS_U8, 1, shape_5, bytes, NULL}, "\"b\": expected once, got twice"},
        {{"a", SAFETENSORS_BF16, 1, one, NULL, &third},
         "expected values of bf16, got another at 0"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct safetensors_source two[2] = {cases[i].source,
                                            {"b", SAFETENSORS_U8, 1, shape_5, bytes, NULL}};
        helper_require(safetensors_write("no", 0, two, 2, NULL, 0), STATUS_INPUT, cases[i].needle);
        assert_int_equal(access("no", F_OK), -1);
        assert_int_equal(access("no.part", F_OK), -1);
    }
}

static void validate_whole_or_nothing(void **state) {
    (void)state;
    const struct safetensors_source source = {"b", SAFETENSORS_U8, 1, shape_5, bytes, NULL};
    static unsigned char large[100000];
    static const uint64_t large_shape[] = {sizeof large};
    const struct safetensors_source big = {"b", SAFETENSORS_U8, 1, large_shape, large, NULL};
    const struct rlimit small = {50000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    size_t length;
    helper_write_text("there", "old");
    helper_write_text("there.part", "another's");
    helper_require(safetensors_write("there", 0, &source, 1, NULL, 0), STATUS_IO,
                   "there: exists, and is left alone");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const enum status status = safetensors_write("there", 1, &big, 1, NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    helper_require(status, STATUS_IO, "there.part2: cannot write: ");
    assert_int_equal(access("there.part2", F_OK), -1);
    unsigned char *old = helper_read("there", &length);
    assert_memory_equal(old, "old", 3);
    free(old);
    assert_int_equal(safetensors_write("there", 1, &big, 1, NULL, 0), STATUS_OK);
    old = helper_read("there.part", &length);
    assert_memory_equal(old, "another's", 9);
    free(old);
    helper_require(safetensors_write("nowhere/x", 1, &source, 1, NULL, 0), STATUS_IO,
                   "nowhere/x.part: cannot create");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_bytes),    cmocka_unit_test(validate_order),
        cmocka_unit_test(verify_round_trip), cmocka_unit_test(verify_carriers),
        cmocka_unit_test(validate_refusals), cmocka_unit_test(validate_whole_or_nothing),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
