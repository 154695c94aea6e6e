/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ranks/helper_recorded.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype_bits.h"

FILE *recorded_open(const char *name) {
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/tests/golden/ranks/%s", TWINSTEP_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    long behind = 0;
    while (fgets(line, sizeof line, file) != NULL && line[0] == '#')
        behind = ftell(file);
    assert_int_equal(fseek(file, behind, SEEK_SET), 0);
    return file;
}

static uint32_t bits_of(uint32_t set) {
    uint32_t count = 0;
    for (; set != 0; set &= set - 1)
        count++;
    return count;
}

void recorded_digits(const struct grouping_run *run, uint32_t ranks, char *digits) {
    uint32_t stack[RECORDED_RANKS], depth = 0, place[RECORDED_RANKS][RECORDED_RANKS], next = 0;
    for (uint32_t i = 0; i < ranks; i++)
        for (uint32_t j = i + 1; j < ranks; j++)
            place[i][j] = next++;
    memset(digits, '?', next);
    digits[next] = '\0';
    for (uint32_t k = 0; k < run->length; k++) {
        if (run->terms[k] != GROUPING_ADD) {
            stack[depth++] = 1u << run->terms[k];
            continue;
        }
        assert_true(depth >= 2);
        const uint32_t a = stack[depth - 2], b = stack[depth - 1];
        depth--;
        stack[depth - 1] = a | b;
        for (uint32_t i = 0; i < ranks; i++)
            for (uint32_t j = i + 1; j < ranks; j++)
                if (((a >> i & 1) && (b >> j & 1)) || ((b >> i & 1) && (a >> j & 1)))
                    digits[place[i][j]] = (char)('0' + ranks - bits_of(a | b));
    }
    assert_int_equal(depth, 1);
}

void recorded_gradients(const char *name, enum dtype dtype,
                        float out[RECORDED_VECTORS][RECORDED_COUNT]) {
    static unsigned char bytes[RECORDED_COUNT * 4];
    const size_t width = dtype_width(dtype);
    FILE *file = recorded_open(name);
    for (size_t v = 0; v < RECORDED_VECTORS; v++) {
        assert_int_equal(fread(bytes, width, RECORDED_COUNT, file), RECORDED_COUNT);
        for (size_t i = 0; i < RECORDED_COUNT; i++) {
            uint64_t bits = 0;
            for (size_t k = width; k-- > 0;)
                bits = bits << 8 | bytes[i * width + k];
            dtype_set_bits(out[v], dtype, i, bits);
        }
    }
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
}

size_t recorded_differing(const float *a, const float *b) {
    size_t count = 0;
    for (size_t i = 0; i < RECORDED_COUNT; i++)
        count += memcmp(&a[i], &b[i], sizeof a[i]) != 0;
    return count;
}
