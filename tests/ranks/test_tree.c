/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The walk over shards against the tree written out as a recursion. Sums are stood in for by a
 * function of two words that neither commutes nor associates, so any other order or grouping gives
 * another word. */
#include "ranks/tree.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"

#define NOTHING UINT64_MAX /* of a node without samples */

static uint64_t leaf(uint32_t shard) {
    return (uint64_t)shard * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static uint64_t join(uint64_t left, uint64_t right) {
    uint64_t word = left * UINT64_C(0xbf58476d1ce4e5b9) + (right ^ UINT64_C(0x94d049bb133111eb));
    word ^= word >> 29;
    return word * UINT64_C(0xd6e8feb86659fd93);
}

/* The law: a node is the join of its halves, and of one half that is there alone it is that half.
 */
static uint64_t law(const uint8_t *present, uint32_t first, uint32_t count) {
    if (count == 1) return present[first] ? leaf(first) : NOTHING;
    const uint64_t left = law(present, first, count / 2);
    const uint64_t right = law(present, first + count / 2, count / 2);
    if (left == NOTHING) return right;
    return right == NOTHING ? left : join(left, right);
}

struct bench {
    struct tree tree;
    uint64_t slot[TREE_NODES_MAX];
    uint32_t most, slots;
};

static void apply(struct bench *bench, const struct tree_join *joins, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(joins[i].left < joins[i].right && joins[i].right < bench->slots);
        bench->slot[joins[i].left] = join(bench->slot[joins[i].left], bench->slot[joins[i].right]);
    }
}

/* The subtrees, as large as they come, that cover shards first to end - 1 of those that have
 * samples: how many of them have any. */
static uint32_t cover(const uint8_t *present, uint32_t first, uint32_t end, uint32_t at,
                      uint32_t count) {
    uint32_t has = 0;
    if (at >= end || at + count <= first) return 0;
    if (at >= first && at + count <= end) {
        for (uint32_t s = at; s < at + count; s++)
            has |= present[s];
        return has;
    }
    return cover(present, first, end, at, count / 2) +
           cover(present, first, end, at + count / 2, count / 2);
}

static void walk(const uint8_t *present, uint32_t shards, uint32_t ranks, uint64_t samples) {
    static struct bench bench;
    struct tree *const tree = &bench.tree;
    struct tree_join joins[TREE_NODES_MAX];
    uint32_t pieces = 0;
    bench.most = 0;
    bench.slots = tree_slots(shards, ranks, samples);
    tree_open(tree, shards, ranks);
    for (uint32_t s = 0; s < shards; s++) {
        if (!present[s]) continue;
        const size_t count = tree_enter(tree, s, joins);
        assert_true(count <= TREE_LEVELS_MAX);
        apply(&bench, joins, count);
        assert_true(s >= tree->first && s < tree->end && tree->slot[tree->count - 1] < bench.slots);
        bench.slot[tree->slot[tree->count - 1]] = leaf(s);
        if (tree->count > bench.most) bench.most = tree->count;
    }
    apply(&bench, joins, tree_leave(tree, joins));
    for (uint32_t r = 0; r < ranks; r++)
        pieces += cover(present, tree_first_shard(r, shards, ranks),
                        tree_first_shard(r + 1, shards, ranks), 0, shards);
    assert_int_equal(tree->count, pieces);
    apply(&bench, joins, tree_reduce(tree, joins));
    assert_int_equal(tree->count, 1);
    assert_int_equal(tree->slot[0], 0);
    if (bench.slot[0] != law(present, 0, shards))
        fail_msg("%u shards, %u ranks, %llu samples", shards, ranks, (unsigned long long)samples);
}

/* Every number of ranks, and every number of samples up to one that fills all shards. */
static void verify_walk(void **state) {
    static const uint32_t counts[] = {1, 2, 4, 8, 16, 32};
    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (uint32_t ranks = 1; ranks <= counts[c]; ranks++)
            for (uint64_t samples = 1; samples <= counts[c] + 1; samples++) {
                uint8_t present[TREE_SHARDS_MAX] = {0};
                for (uint64_t i = 0; i < samples; i++)
                    present[tree_shard_of(i, samples, counts[c])] = 1;
                walk(present, counts[c], ranks, samples);
            }
}

/* Any set of shards that holds the first one; 2^7 of them. */
static void verify_any_absence(void **state) {
    (void)state;
    for (uint32_t set = 1; set < 256; set += 2)
        for (uint32_t ranks = 1; ranks <= 8; ranks++) {
            uint8_t present[TREE_SHARDS_MAX] = {0};
            uint64_t samples = 0;
            for (uint32_t s = 0; s < 8; s++) {
                present[s] = set >> s & 1;
                samples += present[s];
            }
            walk(present, 8, ranks, samples);
        }
}

/* The case that a prototype counted: 256 shards, 203 samples, so 53 shards are absent; of 3 ranks
 * the first sends 4 pieces. */
static void validate_large(void **state) {
    struct tree tree;
    struct tree_join joins[TREE_LEVELS_MAX];
    uint8_t present[TREE_SHARDS_MAX] = {0};
    uint32_t absent = 0;
    (void)state;
    for (uint64_t i = 0; i < 203; i++)
        present[tree_shard_of(i, 203, 256)] = 1;
    for (uint32_t s = 0; s < 256; s++)
        absent += !present[s];
    assert_int_equal(absent, 53);
    for (uint32_t ranks = 1; ranks <= 256; ranks += ranks < 9 ? 1 : 31)
        walk(present, 256, ranks, 203);
    tree_open(&tree, 256, 3);
    for (uint32_t s = 0; s < tree.end; s++)
        if (present[s]) tree_enter(&tree, s, joins);
    tree_leave(&tree, joins);
    assert_int_equal(tree.count, 4);
}

static void validate_slots(void **state) {
    (void)state;
    assert_int_equal(tree_slots(1, 1, 100), 1);
    assert_int_equal(tree_slots(8, 1, 100), 4);
    assert_int_equal(tree_slots(256, 1, 1000), 9);
    assert_int_equal(tree_slots(256, 1, 3), 3);
    assert_int_equal(tree_slots(8, 8, 8), 8);
    assert_int_equal(tree_slots(8, 4, 8),
                     5); /* three pieces of ranks, and two shards of the last */
}

/* Shards are consecutive, and the first sample of each is the first that tree_shard_of gives it. */
static void verify_shares(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= TREE_SHARDS_MAX; shards *= 2)
        for (uint64_t samples = 1; samples < 300; samples += 1 + samples / 20) {
            for (uint64_t i = 0; i < samples; i++) {
                const uint32_t shard = tree_shard_of(i, samples, shards);
                assert_true(shard < shards);
                assert_true(tree_first_sample(shard, samples, shards) <= i);
                assert_true(tree_first_sample(shard + 1, samples, shards) > i);
            }
            assert_int_equal(tree_first_sample(shards, samples, shards), samples);
        }
}

/* Of 4 shards three ranks have 1, 1 and 2, so 2, 2 and 4 of 8 samples. */
static void validate_micros(void **state) {
    static const uint64_t of_rank[2][3] = {{2, 2, 4}, {1, 1, 2}};
    (void)state;
    for (uint32_t micro = 1; micro <= 2; micro++) {
        for (uint32_t r = 0; r < 3; r++)
            assert_int_equal(tree_rank_micros(r, 8, micro, 4, 3), of_rank[micro - 1][r]);
        assert_int_equal(tree_micros(8, micro, 4, 3), micro == 1 ? 8 : 4);
    }
    assert_int_equal(tree_rank_micros(2, 8, 3, 4, 3), 2);
    assert_int_equal(tree_rank_micros(2, 6, 1, 8, 5), 0);
    assert_true(tree_micros(UINT64_MAX, 2, 0, 1) == UINT64_MAX / 2 + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_walk),    cmocka_unit_test(verify_any_absence),
        cmocka_unit_test(validate_large), cmocka_unit_test(validate_slots),
        cmocka_unit_test(verify_shares),  cmocka_unit_test(validate_micros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
