/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The bits of a row that a watch shows, whole rows at a time: the elements that mean something, in
 * their order, each once, of every kind, whatever room there is; of keys none behind the position.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "model/watch.h"

enum { WIDTH = 24 };

static const struct {
    const char *name;
    enum watch_kind kind;
    enum dtype dtype;
} kinds[] = {{"f32", WATCH_REALS, DTYPE_F32},   {"bf16", WATCH_REALS, DTYPE_BF16},
             {"f64", WATCH_REALS, DTYPE_F64},   {"ids", WATCH_IDS, DTYPE_F32},
             {"words", WATCH_WORDS, DTYPE_F32}, {"mask", WATCH_MASK, DTYPE_F32}};

static uint64_t bits(double value) {
    uint64_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

/* Element i of a row, and its 64 bits: every seventh real is a NaN of another pattern. */
static uint64_t put(size_t kind, void *row, size_t i) {
    static const uint64_t odd_f64 = 0xfff8000000000123u;
    static const uint32_t odd_f32 = 0xffc00123u;
    const int odd = i % 7 == 6;
    switch (kinds[kind].kind) {
    case WATCH_IDS:
        ((uint32_t *)row)[i] = 0xfffffff0u + (uint32_t)i % 16;
        return 0xfffffff0u + i % 16;
    case WATCH_WORDS:
        ((uint64_t *)row)[i] = UINT64_MAX - i;
        return UINT64_MAX - i;
    case WATCH_MASK:
        ((uint8_t *)row)[i] = (uint8_t)(200 + i);
        return 200 + i;
    case WATCH_REALS:
    default:
        break;
    }
    if (kinds[kind].dtype == DTYPE_F64) {
        ((double *)row)[i] = -1.5 * (double)i;
        if (odd) memcpy((double *)row + i, &odd_f64, sizeof odd_f64);
    } else {
        ((float *)row)[i] = -1.5f * (float)i;
        if (odd) memcpy((float *)row + i, &odd_f32, sizeof odd_f32);
    }
    return bits(odd ? (double)NAN : -1.5 * (double)i);
}

/* `inner`: columns of a block of keys; 0: columns are none of keys. */
static void check(size_t kind, uint32_t inner, uint32_t position, size_t room) {
    uint64_t row[WIDTH], due[WIDTH], got[WIDTH + 1];
    size_t count = 0, used = 0, column = 0;
    const struct watch_view view = {.kind = kinds[kind].kind,
                                    .dtype = kinds[kind].dtype,
                                    .columns = inner > 0 ? WATCH_KEYS : WATCH_CHANNELS,
                                    .inner = inner,
                                    .width = WIDTH};
    for (size_t i = 0; i < WIDTH; i++) {
        const uint64_t one = put(kind, row, i);
        if (inner == 0 || i % inner <= position) due[count++] = one;
    }
    while (column < WIDTH) {
        const size_t before = column,
                     n = watch_live_bits(&view, row, position, &column, room, got + used);
        assert_true(n <= room && column > before);
        used += n;
        assert_true(used <= count);
    }
    if (used != count || column != WIDTH || memcmp(got, due, count * sizeof *due) != 0)
        fail_msg("%s, blocks of %u, position %u, room %zu: %zu elements, due %zu", kinds[kind].name,
                 inner, position, room, used, count);
    for (size_t i = 0, live = 0; i < WIDTH; i++) {
        if (!watch_live(&view, position, i)) continue;
        assert_true(watch_bits(&view, row, i) == due[live]);
        live++;
    }
}

static void verify_rows(void **state) {
    static const uint32_t blocks[] = {0, 1, 3, 8, 24};
    (void)state;
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++)
        for (size_t b = 0; b < COUNT_OF(blocks); b++)
            for (uint32_t position = 0; position < WIDTH + 2; position++)
                for (size_t room = 1; room <= WIDTH; room++)
                    check(kind, blocks[b], position, room);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
