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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_parts),
                                       cmocka_unit_test(verify_one_direction),
                                       cmocka_unit_test(validate_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
