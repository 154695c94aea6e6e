/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The parts of ZeRO's vectors, against ranks that really cut, write and read arrays. */
#include "ranks/partition.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"

enum { MOST = 70, RANKS = 9, ROOM = MOST + 2 * RANKS };

/* Cuts 1 .. count into the parts of `saved` ranks as DeepSpeed does, filled up with zeros, and lets
 * each of `loading` ranks copy the part of its index into zeros of its own size. */
static void read_by_hand(uint64_t count, uint64_t saved, uint64_t loading, uint64_t *out) {
    uint64_t vector[ROOM] = {0}, files[RANKS][ROOM] = {{0}}, length = count, room = count;
    for (uint64_t i = 0; i < count; i++)
        vector[i] = i + 1;
    while (length % (2 * saved) != 0)
        length++;
    while (room % (2 * loading) != 0)
        room++;
    for (uint64_t rank = 0; rank < saved; rank++)
        for (uint64_t i = 0; i < length / saved; i++)
            files[rank][i] = vector[rank * (length / saved) + i];
    memset(out, 0, ROOM * sizeof *out);
    for (uint64_t rank = 0; rank < loading && rank < saved; rank++)
        for (uint64_t i = 0; i < room / loading && i < length / saved; i++)
            out[rank * (room / loading) + i] = files[rank][i];
}

static void corroborate_parts(void **state) {
    (void)state;
    for (uint64_t count = 1; count <= MOST; count++)
        for (uint64_t saved = 1; saved < RANKS; saved++)
            for (uint64_t loading = 1; loading < RANKS; loading++) {
                uint64_t expected[ROOM];
                read_by_hand(count, saved, loading, expected);
                for (uint64_t i = 0; i < count; i++) {
                    const uint64_t from = partition_by_index(count, saved, loading, i);
                    assert_int_equal(from == PARTITION_ZERO ? 0 : from + 1, expected[i]);
                }
            }
}

/* What trainer/restart.c moves in place: every element comes from behind it, or every one from
 * before it. */
static void verify_one_direction(void **state) {
    (void)state;
    for (uint64_t count = 1; count <= MOST; count++)
        for (uint64_t saved = 1; saved < RANKS; saved++)
            for (uint64_t loading = 1; loading < RANKS; loading++)
                for (uint64_t i = 0; i < count; i++) {
                    const uint64_t from = partition_by_index(count, saved, loading, i);
                    if (saved == loading) assert_int_equal(from, i);
                    if (from == PARTITION_ZERO) continue;
                    if (partition_part(count, saved) >= partition_part(count, loading))
                        assert_true(from >= i);
                    else
                        assert_true(from <= i);
                }
}

static void validate_parts(void **state) {
    (void)state;
    /* 10 numbers: parts of 6 for 2 ranks, of 4 for 4 */
    static const uint64_t expected[10] = {0, 1, 2, 3, PARTITION_ZERO, PARTITION_ZERO, 4, 5, 6, 7};
    assert_int_equal(partition_part(10, 2), 6);
    assert_int_equal(partition_part(10, 4), 4);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(partition_by_index(10, 4, 2, i), expected[i]);
}

/* Tensors of 7 and 9 numbers as one vector, and one of 7 rows of 3, cut by plain loops: each
 * element has the owner that the loops give it, and no other one. */
static void corroborate_ranges(void **state) {
    static const uint64_t sizes[] = {7, 9};
    (void)state;
    for (uint64_t ranks = 1; ranks < RANKS; ranks++) {
        uint64_t length = 16, share = 1;
        while (length % (2 * ranks) != 0)
            length++;
        while (share * ranks < 7)
            share++;
        for (uint64_t rank = 0; rank < ranks; rank++) {
            const struct partition_range rows = partition_rows(7, 3, ranks, rank);
            for (uint64_t e = 0; e < 21; e++)
                assert_int_equal(e >= rows.first && e < rows.end, e / 3 / share == rank);
            for (uint64_t t = 0, at = 0; t < 2; at += sizes[t++]) {
                const struct partition_range flat = partition_flat(16, ranks, rank, at, sizes[t]);
                for (uint64_t e = 0; e < sizes[t]; e++)
                    assert_int_equal(e >= flat.first && e < flat.end,
                                     (at + e) / (length / ranks) == rank);
            }
        }
    }
}

/* Sizes of 100, 70 and 10 elements with buckets of 64: the last one at 0; the middle one at 64,
 * with which the first bucket has 134 elements and is filled up to 384 for three ranks, to 256 for
 * four, as for 256; the first one there, and behind what is not written right at 134. */
static void validate_buffer(void **state) {
    (void)state;
    static const uint64_t sizes[] = {100, 70, 10};
    static const struct {
        uint64_t bucket, ranks, first;
    } cases[] = {{64, 3, 384}, {64, 4, 256}, {64, 256, 256}, {64, 6, 384}, {64, 512, 512}};
    uint64_t padded[3], packed[3];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        partition_buffer(sizes, 3, cases[i].bucket, cases[i].ranks, padded, packed);
        assert_int_equal(padded[2], 0);
        assert_int_equal(packed[2], 0);
        assert_int_equal(padded[1], 64);
        assert_int_equal(packed[1], 64);
        assert_int_equal(padded[0], cases[i].first);
        assert_int_equal(packed[0], 134);
    }
    partition_buffer(sizes, 3, 1000, 3, padded, packed); /* one bucket: nothing is stripped */
    assert_int_equal(padded[0], 192);
    assert_int_equal(packed[0], 192);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_parts), cmocka_unit_test(verify_one_direction),
        cmocka_unit_test(validate_parts), cmocka_unit_test(corroborate_ranges),
        cmocka_unit_test(validate_buffer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
