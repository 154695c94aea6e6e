/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which characters and which shapes a trace of another program may name: every code point in the
 * bytes that RFC 3629 gives it, random bytes that are compared with the code points they encode,
 * and random texts of digits and commas against a parser that takes them apart first. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "determinism/foreign.h"
#include "determinism/trace/trace_look.h"
#include "tests/base/helper_draws.h"

enum { TEXTS = 200000, MOST = 24 };

/* The bytes of a code point by the table of RFC 3629, section 3. Returns their number. */
static size_t encode(uint32_t code, char out[5]) {
    memset(out, 0, 5);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned head[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80u | (code & 0x3fu));
    out[0] = (char)(head[length] | code);
    return length;
}

/* A terminal obeys the characters of C0 and C1, and DEL; surrogates are no characters. */
static int is_plain(uint32_t code) {
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && !(code >= 0xd800 && code <= 0xdfff);
}

static void verify_every_code_point(void **state) {
    (void)state;
    char text[5];
    for (uint32_t code = 0; code < 0x200000; code++) {
        const size_t length = encode(code, text);
        const size_t expected = is_plain(code) && code <= 0x10ffff ? length : 0;
        if (look_character(text) != expected)
            fail_msg("U+%04X: %zu, not %zu", (unsigned)code, look_character(text), expected);
    }
}

/* Bytes that are a character are the encoding of one, and of no other. */
static void verify_random_bytes(void **state) {
    (void)state;
    size_t taken = 0;
    for (uint32_t number = 0; number < TEXTS; number++) {
        struct draws draws = {.key = UINT64_C(0x0f5), .number = number};
        char text[6] = {0}, anew[5];
        for (size_t i = 0; i < 5; i++) /* most of them from 0x80 on */
            text[i] = (char)(draws_pick(&draws, 8) == 0 ? draws_pick(&draws, 256)
                             : i == 0                   ? 0xc0 + draws_pick(&draws, 64)
                                                        : 0x80 + draws_pick(&draws, 64));
        const size_t length = look_character(text);
        const unsigned char first = (unsigned char)text[0];
        const size_t claimed = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        uint32_t code = claimed == 1 ? first : first & (0xffu >> (claimed + 1));
        for (size_t i = 1; i < claimed; i++)
            code = code << 6 | ((unsigned char)text[i] & 0x3fu);
        const size_t needed = encode(code, anew);
        const int same = needed == claimed && memcmp(anew, text, claimed) == 0 && first < 0xf8;
        assert_int_equal(length, same && is_plain(code) && code <= 0x10ffff ? claimed : 0);
        taken += length > 0;
    }
    assert_true(taken > TEXTS / 4 && taken < TEXTS);
}

/* "64,512" taken apart at its commas; returns 0 where one of the parts is no length. */
static int shape_of(const char *text, uint64_t *shape, uint32_t room, uint32_t *rank) {
    char copy[MOST + 1], *at = copy;
    *rank = 0;
    snprintf(copy, sizeof copy, "%s", text);
    if (*copy == '\0') return 1;
    for (char *part; at != NULL; (*rank)++) {
        part = at;
        at = strchr(part, ',');
        if (at != NULL) *at++ = '\0';
        const size_t length = strlen(part);
        if (length == 0 || length > 18 || *rank == room) return 0;
        for (size_t i = 0; i < length; i++)
            if (part[i] < '0' || part[i] > '9') return 0;
        shape[*rank] = strtoull(part, NULL, 10);
    }
    return 1;
}

static void verify_shapes(void **state) {
    (void)state;
    size_t taken = 0;
    for (uint32_t number = 0; number < TEXTS; number++) {
        static const char letters[] = "0123456789,,,/:x -";
        struct draws draws = {.key = UINT64_C(0x0f6), .number = number};
        const uint32_t kinds = draws_pick(&draws, 4) == 0 ? sizeof letters - 1 : 13;
        const uint32_t length = draws_pick(&draws, MOST), room = draws_pick(&draws, 9);
        char text[MOST + 1] = {0};
        uint64_t expected[MOST], got[MOST];
        uint32_t rank, got_rank;
        for (uint32_t i = 0; i < length; i++)
            text[i] = letters[draws_pick(&draws, kinds)];
        if (draws_pick(&draws, 4) == 0) memset(text, '9', 17 + draws_pick(&draws, 3));
        const int fits = shape_of(text, expected, room, &rank);
        if (foreign_shape(text, got, room, &got_rank) != fits) fail_msg("\"%s\"", text);
        taken += (size_t)fits;
        if (!fits) continue;
        assert_int_equal(got_rank, rank);
        for (uint32_t i = 0; i < rank; i++)
            assert_true(got[i] == expected[i]);
    }
    assert_true(taken > TEXTS / 10 && taken < TEXTS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_code_point),
        cmocka_unit_test(verify_random_bytes),
        cmocka_unit_test(verify_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
