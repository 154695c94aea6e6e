/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How texts are found in the global heap of a file: heaps of random objects, of which one length,
 * number or signature may be wrong, against a second reading of the format. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define reader_spend given_spend
#include "determinism/trace/trace_heap.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { BYTES = 640, OBJECTS = 6, BEGINS = 24, CASES = 3000 };

static struct arena arena;
static struct reader reader;
static FILE *file;
static uint8_t bytes[BYTES];
static size_t count;
static uint32_t numbers[OBJECTS];
static uint64_t lengths[OBJECTS], places[OBJECTS];

static uint64_t spent;

enum status given_spend(struct reader *of, uint64_t items, uint64_t each, const char *what) {
    assert_ptr_equal(of, &reader);
    assert_string_equal(what, "attribute \"writer\"");
    spent += items * each;
    return STATUS_OK;
}

static void put(size_t at, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++)
        bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(uint64_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)bytes[at + i] << 8 * i;
    return value;
}

/* Writes a heap of `objects` objects behind some bytes of the file, which it ends. */
static void make_heap(struct draws *draws, size_t objects) {
    memset(bytes, 0xee, sizeof bytes);
    memcpy(bytes + BEGINS, "GCOL\1\0\0\0", 8);
    size_t at = BEGINS + 16;
    for (size_t i = 0; i < objects; i++) {
        numbers[i] = (uint32_t)(i + 1 + 300 * draws_pick(draws, 2));
        lengths[i] = draws_pick(draws, 40);
        places[i] = at + 16;
        put(at, numbers[i], 2);
        put(at + 8, lengths[i], 8);
        for (size_t b = 0; b < lengths[i]; b++)
            bytes[at + 16 + b] = (uint8_t)('a' + (i + b) % 26);
        at += 16 + (lengths[i] + 7) / 8 * 8;
    }
    if (draws_pick(draws, 2) == 0) { /* free space is object 0 */
        put(at, 0, 8);
        put(at + 8, 16, 8);
        at += 16;
    }
    put(BEGINS + 8, at - BEGINS, 8);
    count = at;
}

static void write_file(void) {
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(ftruncate(fileno(file), (off_t)count), 0);
}

static struct heap open_heap(void) {
    reader.file.name = "a.h5";
    reader.arena = &arena;
    return (struct heap){.reader = &reader,
                         .what = "attribute \"writer\"",
                         .handle = fileno(file),
                         .file_bytes = count,
                         .looks = 1000};
}

/* Reads the format anew: objects follow each other, each with its bytes inside of the heap, up to
 * its end, to free space, or to one that does not fit. Returns the place; 0: it is not there. */
static uint64_t find_again(uint32_t wanted, uint64_t *out_bytes) {
    if (memcmp(bytes + BEGINS, "GCOL\1", 5) != 0) return 0;
    const uint64_t length = get(BEGINS + 8, 8);
    if (length > count - BEGINS) return 0;
    for (uint64_t at = 16; at + 16 <= length;) {
        const uint64_t of = get(BEGINS + at + 8, 8);
        const uint64_t number_of = get(BEGINS + at, 2);
        if (number_of == 0 || of > length - at - 16) return 0;
        if (number_of == wanted) {
            *out_bytes = of;
            return BEGINS + at + 16;
        }
        at += 16 + (of + 7) / 8 * 8;
    }
    return 0;
}

static void corroborate_objects(void **state) {
    (void)state;
    size_t refused = 0;
    for (uint32_t number_of_case = 0; number_of_case < CASES; number_of_case++) {
        struct draws draws = {.key = UINT64_C(0x4ea9), .number = number_of_case};
        const size_t objects = 1 + draws_pick(&draws, OBJECTS);
        make_heap(&draws, objects);
        const size_t at = draws_pick(&draws, (uint32_t)objects);
        switch (draws_pick(&draws, 8)) { /* one thing that is wrong */
        case 0:
            put(places[at] - 8, lengths[at] + draws_pick(&draws, 64), 8);
            break;
        case 1:
            put(places[at] - 16, draws_pick(&draws, 2) == 0 ? 0 : 399, 2);
            break;
        case 2:
            put(BEGINS + 8, get(BEGINS + 8, 8) - 33 + draws_pick(&draws, 66), 8);
            break;
        case 3:
            bytes[BEGINS + draws_pick(&draws, 8)] ^= 4;
            break;
        case 4:
            put(places[at] - 8, UINT64_MAX - draws_pick(&draws, 40), 8);
            break;
        default:
            break;
        }
        write_file();
        struct heap heap = open_heap();
        for (size_t n = 0; n < 3 * objects; n++) { /* in any order, and some that are not there */
            const uint32_t wanted = draws_pick(&draws, 8) == 0
                                        ? draws_pick(&draws, 400)
                                        : numbers[draws_pick(&draws, (uint32_t)objects)];
            uint64_t place = 0, of = 0, expected_of = 0;
            if (wanted == 0) continue;
            const uint64_t expected = find_again(wanted, &expected_of);
            const enum status status = find(&heap, BEGINS, wanted, &place, &of);
            assert_int_equal(status, expected > 0 ? STATUS_OK : STATUS_INPUT);
            if (expected == 0) {
                assert_string_equal(status_text(), "a.h5: damaged: attribute \"writer\": its text "
                                                   "is not where it should be");
                refused++;
                continue;
            }
            assert_int_equal(of, expected_of);
            assert_int_equal(place, expected);
        }
    }
    assert_true(refused > CASES / 4);
}

/* What is read lies in the file, to its last byte. */
static void validate_peeks(void **state) {
    (void)state;
    struct draws draws = {.key = 1};
    uint8_t out[BYTES];
    make_heap(&draws, 2);
    write_file();
    const struct heap heap = open_heap();
    for (uint64_t at = count - 3; at < count + 3; at++)
        for (size_t of = 0; of < 5; of++) {
            const int is = at + of <= count;
            assert_int_equal(peek(&heap, at, of, out), is ? STATUS_OK : STATUS_INPUT);
            if (is) assert_memory_equal(out, bytes + at, of);
        }
    assert_int_equal(peek(&heap, UINT64_MAX, 1, out), STATUS_INPUT);
    assert_int_equal(peek(&heap, UINT64_MAX, SIZE_MAX, out), STATUS_INPUT);
    struct heap longer = heap; /* a file that was cut meanwhile */
    longer.file_bytes = count + 8;
    assert_int_equal(peek(&longer, count - 2, 4, out), STATUS_INPUT);
    longer.handle = -1;
    assert_int_equal(peek(&longer, 0, 4, out), STATUS_IO);
}

/* Each object that is looked at counts, and a text costs no more looks than those behind the last
 * one. */
static void validate_looks(void **state) {
    (void)state;
    struct draws draws = {.key = 2};
    uint64_t at, of;
    make_heap(&draws, OBJECTS);
    write_file();
    for (size_t i = 0; i < OBJECTS; i++)
        for (uint64_t looks = 0; looks < OBJECTS + 1; looks++) {
            struct heap heap = open_heap();
            heap.looks = looks;
            assert_int_equal(find(&heap, BEGINS, numbers[i], &at, &of),
                             looks > i ? STATUS_OK : STATUS_INPUT);
        }
    struct heap heap = open_heap();
    heap.looks = OBJECTS;
    for (size_t i = 0; i < OBJECTS; i++)
        assert_int_equal(find(&heap, BEGINS, numbers[i], &at, &of), STATUS_OK);
    assert_int_equal(heap.looks, 0);
    heap.looks = 0;
    assert_int_equal(find(&heap, BEGINS, numbers[0], &at, &of), STATUS_INPUT);
}

static void validate_texts(void **state) {
    (void)state;
    struct draws draws = {.key = 3};
    make_heap(&draws, OBJECTS);
    write_file();
    for (size_t i = 0; i < OBJECTS; i++)
        for (uint64_t more = 0; more < 3; more++) {
            struct heap heap = open_heap();
            uint8_t reference[REFERENCE_BYTES] = {0};
            const char *text = NULL;
            const uint64_t length = lengths[i] + more - 1;
            if (lengths[i] + more == 0) continue;
            for (size_t b = 0; b < 4; b++) {
                reference[b] = (uint8_t)(length >> 8 * b);
                reference[12 + b] = (uint8_t)(numbers[i] >> 8 * b);
            }
            reference[4] = BEGINS;
            spent = 0;
            const enum status status = read_one(&heap, reference, &text);
            assert_int_equal(status, more < 2 || length == 0 ? STATUS_OK : STATUS_INPUT);
            if (status != STATUS_OK) continue;
            assert_int_equal(spent, length);
            assert_int_equal(strlen(text), length);
            assert_memory_equal(text, bytes + places[i], length);
        }
}

static int open_file(void **state) {
    (void)state;
    file = tmpfile();
    return file == NULL;
}

static int close_file(void **state) {
    (void)state;
    arena_close(&arena);
    return fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_objects),
        cmocka_unit_test(validate_peeks),
        cmocka_unit_test(validate_looks),
        cmocka_unit_test(validate_texts),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
