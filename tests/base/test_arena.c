/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Arenas: pieces must be zeroed, aligned and apart; sizes that overflow must be refused; a source
 * of one's own must have its refusals reported as they are, and get all its blocks back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"

static size_t room, taken, given, last_bytes;

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
    static const struct arena_source source = {take, give, 0};
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

/* Bytes of address space that the process has (proc(5), statm: pages, first number). */
static size_t address_space(void) {
    FILE *const file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Blocks of some MiB, which come in huge pages, are zeroed to their last byte, keep what is written
 * into them, and go back to the system whole: 20 rounds of 96 MiB leave nothing behind. */
static void verify_large_blocks(void **state) {
    (void)state;
    static const size_t mib[] = {3, 4, 5, 63, 21};
    size_t before = 0;
    for (int round = 0; round < 20; round++) {
        struct arena arena = ARENA_EMPTY;
        unsigned char *piece[sizeof mib / sizeof *mib];
        for (size_t i = 0; i < sizeof mib / sizeof *mib; i++) {
            const size_t last = (mib[i] << 20) + i;
            assert_int_equal(arena_take(&arena, last + 1, 1, "state", &piece[i]), STATUS_OK);
            assert_int_equal((uintptr_t)piece[i] % 64, 0);
            for (size_t b = 0; b < last; b += 4096)
                assert_int_equal(piece[i][b], 0);
            assert_int_equal(piece[i][last], 0);
            memset(piece[i], (int)i + 1, round == 0 ? last + 1 : 4096);
            piece[i][last] = (unsigned char)(i + 1);
        }
        for (size_t i = 0; i < sizeof mib / sizeof *mib; i++)
            assert_true(piece[i][0] == i + 1 && piece[i][(mib[i] << 20) + i] == i + 1);
        arena_close(&arena);
        if (round == 0) before = address_space();
    }
    assert_true(address_space() < before + ((size_t)128 << 20));
}

/* ---- memory that the host must not touch ---- */

/* Whole pages, which nobody may read or write. */
static enum status take_closed(size_t bytes, void **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    if (bytes > room) FAIL(STATUS_INTERNAL, "device: %zu bytes of room", room);
    if (posix_memalign(out, page, whole) != 0) FAIL(STATUS_MEMORY, "device: none");
    memset(*out, 0, whole);
    assert_int_equal(mprotect(*out, whole, PROT_NONE), 0);
    last_bytes = whole;
    taken++;
    return STATUS_OK;
}

static void give_closed(void *memory) {
    assert_int_equal(mprotect(memory, last_bytes, PROT_READ | PROT_WRITE), 0);
    give(memory);
}

/* An arena of a hidden source hands its pieces out aligned, apart and zeroed, keeps its own books
 * elsewhere, and gives all back, also where the source refuses; who is given an arena of the other
 * kind finds it beside that one. */
static void verify_hidden(void **state) {
    (void)state;
    static const struct arena_source source = {take_closed, give_closed, 1};
    struct arena arena = ARENA_EMPTY, hidden = ARENA_EMPTY;
    unsigned char *a, *b, *c;
    assert_ptr_equal(arena_hidden(&arena), &arena);
    arena.hidden = &hidden;
    assert_ptr_equal(arena_hidden(&arena), &hidden);
    room = 1 << 20;
    taken = given = 0;
    hidden.source = &source;
    assert_int_equal(arena_take(&hidden, 100, 1, "tensor", &a), STATUS_OK);
    assert_int_equal(arena_take(&hidden, 100, 1, "tensor", &b), STATUS_OK);
    assert_true(b >= a + 100 && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
    assert_int_equal(arena_take(&hidden, 1 << 21, 1, "tensor", &c), STATUS_INTERNAL);
    assert_int_equal(taken, 1);
    const uintptr_t page = (uintptr_t)a & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    assert_int_equal(mprotect((void *)page, last_bytes, PROT_READ), 0);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(a[i] | b[i], 0);
    arena_close(&hidden);
    assert_int_equal(given, 1);
    assert_null(hidden.head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_hidden),       cmocka_unit_test(verify_pieces),
        cmocka_unit_test(verify_large_blocks), cmocka_unit_test(verify_growth),
        cmocka_unit_test(validate_overflow),   cmocka_unit_test(validate_source)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
