/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Arenas: pieces must be zeroed, aligned and apart; sizes that overflow must be refused; a source
 * of one's own must have its refusals reported as they are, and get all its blocks back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static size_t room, taken, given;

static enum status take(size_t bytes, void **out) {
    if (bytes > room) FAIL(STATUS_INTERNAL, "device: %zu bytes of room", room);
    *out = calloc(1, bytes);
    taken++;
    return *out == NULL ? status_fail(STATUS_MEMORY, "device: none") : STATUS_OK;
}

static void give(void *memory) {
    free(memory);
    given++;
}

static void verify_pieces(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 16384, 16385, 1 << 20, 3};
    struct arena arena = ARENA_EMPTY;
    unsigned char *piece[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(arena_take(&arena, sizes[i], 1, "piece", &piece[i]), STATUS_OK);
        assert_int_equal((uintptr_t)piece[i] % 64, 0);
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(piece[i][b], 0);
        memset(piece[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(piece[i][b], i + 1);
    assert_true(arena.total >= 1 << 20);
    arena_close(&arena);
    assert_int_equal(arena.total, 0);
}

static void verify_growth(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    uint64_t *list = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(arena_grow(&arena, i + 1, &capacity, sizeof *list, "list", &list),
                         STATUS_OK);
        assert_true(capacity > i && capacity < 2 * i + 17);
        assert_int_equal(list[i], 0);
        list[i] = i + 7;
    }
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(list[i], i + 7);
    assert_int_equal(arena_grow(&arena, 1000, &capacity, sizeof *list, "list", &list), STATUS_OK);
    assert_int_equal(capacity, 1024);
    assert_int_equal(list[99], 106);
    assert_int_equal(arena_grow(&arena, SIZE_MAX / 2 + 1, &capacity, 16, "list", &list),
                     STATUS_MEMORY);
    assert_int_equal(capacity, 1024);
    arena_close(&arena);
}

static void validate_overflow(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    void *piece;
    assert_int_equal(arena_take(&arena, SIZE_MAX / 4, 8, "logits", &piece), STATUS_MEMORY);
    assert_non_null(strstr(status_text(), "logits: "));
    assert_int_equal(arena_take(&arena, SIZE_MAX / 4, 1, "logits", &piece), STATUS_MEMORY);
    assert_non_null(strstr(status_text(), "logits: cannot get "));
    arena_close(&arena);
}

static void validate_source(void **state) {
    (void)state;
    static const struct arena_source source = {take, give};
    struct arena arena = ARENA_EMPTY;
    void *piece;
    room = 1 << 20;
    taken = given = 0;
    arena.source = &source;
    for (int i = 0; i < 9; i++)
        assert_int_equal(arena_take(&arena, 60000, 1, "weights", &piece), STATUS_OK);
    assert_int_equal(arena_take(&arena, 1 << 21, 1, "weights", &piece), STATUS_INTERNAL);
    assert_string_equal(status_text(), "device: 1048576 bytes of room");
    assert_int_equal(arena_take(&arena, 60000, 1, "weights", &piece), STATUS_OK);
    arena_close(&arena);
    assert_int_equal(taken, 10);
    assert_int_equal(given, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_pieces), cmocka_unit_test(verify_growth),
        cmocka_unit_test(validate_overflow), cmocka_unit_test(validate_source)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
