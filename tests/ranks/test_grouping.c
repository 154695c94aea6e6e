/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The groupings of collectives: against recordings of Open MPI and Gloo for every element, and
 * those of NCCL, of which there are no recordings here, against a walk of its ring step by step and
 * against the trees that its source draws. */
#include "ranks/grouping.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/ranks/helper_recorded.h"

struct line {
    char collective[16], kind[16]; /* the number of Open MPI's algorithm, or the dtype of Gloo's */
    unsigned width, ranks;
    unsigned long long count, start, end;
    char digits[RECORDED_DIGITS];
};

static int read_line(FILE *file, struct line *line) {
    return fscanf(file, "%15s %15s %u %u %llu %llu %llu %36s", line->collective, line->kind,
                  &line->width, &line->ranks, &line->count, &line->start, &line->end,
                  line->digits) == 8;
}

/* Holds all elements of a recorded run against the grouping. One holds for all elements of its
 * run, which is asked once more at its last one. */
static void expect_recorded(const struct grouping_call *call, const struct line *line) {
    struct grouping_run run, last;
    char digits[RECORDED_DIGITS];
    for (uint64_t element = line->start; element < line->end; element = run.end) {
        grouping_of(call, element, &run);
        assert_true(run.start <= element && element < run.end && run.end <= line->count);
        assert_int_equal(run.length, 2 * line->ranks - 1);
        recorded_digits(&run, line->ranks, digits);
        if (strcmp(digits, line->digits) != 0)
            fail_msg("%s %s, %u ranks, %llu elements, element %llu: expected %s, got %s",
                     line->collective, line->kind, line->ranks, line->count,
                     (unsigned long long)element, line->digits, digits);
        grouping_of(call, run.end - 1, &last);
        assert_int_equal(last.start, run.start);
        assert_int_equal(last.end, run.end);
        assert_memory_equal(last.terms, run.terms, run.length * sizeof run.terms[0]);
    }
}

static struct grouping_call call_of(const struct line *line, enum grouping_algorithm algorithm) {
    return (struct grouping_call){
        .algorithm = algorithm, .ranks = line->ranks, .count = line->count, .width = line->width};
}

static void corroborate_open_mpi(void **state) {
    (void)state;
    FILE *file = recorded_open("open-mpi.txt");
    struct line line;
    unsigned long long elements = 0, used[GROUPING_COUNT] = {0};
    while (read_line(file, &line)) {
        enum grouping_algorithm algorithm;
        assert_int_equal(grouping_of_open_mpi(
                             strcmp(line.collective, "allreduce") == 0 ? GROUPING_ALL_REDUCE
                                                                       : GROUPING_REDUCE_SCATTER,
                             (uint32_t)atoi(line.kind), line.ranks, line.count, &algorithm),
                         STATUS_OK);
        const struct grouping_call call = call_of(&line, algorithm);
        assert_int_equal(grouping_check(&call), STATUS_OK);
        expect_recorded(&call, &line);
        elements += line.end - line.start;
        used[algorithm] += line.end - line.start;
    }
    assert_true(feof(file));
    fclose(file);
    /* Eight algorithms, seven numbers of ranks, 47,062 elements each. */
    assert_int_equal(elements, 8 * 7 * 47062);
    for (int algorithm = GROUPING_LINEAR; algorithm <= GROUPING_HALVING; algorithm++)
        assert_true(used[algorithm] > 0);
}

static void corroborate_gloo(void **state) {
    (void)state;
    FILE *file = recorded_open("gloo.txt");
    struct line line;
    unsigned long long elements = 0;
    while (read_line(file, &line)) {
        const struct grouping_call call = call_of(&line, GROUPING_GLOO);
        assert_int_equal(grouping_check(&call), STATUS_OK);
        expect_recorded(&call, &line);
        elements += line.end - line.start;
    }
    assert_true(feof(file));
    fclose(file);
    /* All-reduce: three dtypes, P = 2 to 5, 47,062 elements each, and 2,000,003 in f32. Then
     * reduce_scatter: P + 50 P + 2040 P elements. */
    assert_int_equal(elements, 3 * 4 * 47062 + 4 * 2000003 + 3 * 2091 * (2 + 3 + 4 + 5));
}

/* ---- NCCL ---- */

/* Walks ring steps as all_reduce.h:runRing describes them: in step 0 position r sends its chunk
 * r-1, in step s it adds its term to the chunk that came and sends that on. Writes to `came` the
 * positions in the order in which their terms came to `chunk`. */
static void walk_ring(uint32_t ranks, uint32_t chunk, uint32_t *came) {
    uint32_t holder = 0;
    for (uint32_t position = 0; position < ranks; position++)
        if ((position + ranks - 1) % ranks == chunk) holder = position;
    for (uint32_t step = 0; step < ranks; step++) {
        came[step] = holder;
        holder = (holder + 1) % ranks;
    }
}

static void expect_chain(const struct grouping_run *run, const uint32_t *came, uint32_t ranks) {
    assert_int_equal(run->terms[0], came[0]);
    for (uint32_t i = 1; i < ranks; i++) {
        assert_int_equal(run->terms[2 * i - 1], came[i]);
        assert_int_equal(run->terms[2 * i], GROUPING_ADD);
    }
}

/* Three parts, of 1000, 600 and 400 f32 elements, in chunks of 64: with P = 3 loops of 192, and the
 * last loop of the first part divides 1000 mod 192 = 40 into chunks of 14, made 16; that of the
 * second 24 into 8, that of the third 16 into 6, made 8. */
static void verify_ring_of_nccl(void **state) {
    (void)state;
    const struct grouping_call call = {.algorithm = GROUPING_NCCL_RING,
                                       .ranks = 3,
                                       .count = 2000,
                                       .width = 4,
                                       .part_first = 1000,
                                       .part = 600,
                                       .chunk = 256};
    static const struct {
        uint64_t element, start, end;
        uint32_t chunk;
    } cases[] = {{0, 0, 64, 0},         {64, 64, 128, 1},      {191, 128, 192, 2},
                 {192, 192, 256, 0},    {959, 896, 960, 2},    {960, 960, 976, 0},
                 {991, 976, 992, 1},    {999, 992, 1000, 2},   {1000, 1000, 1064, 0},
                 {1576, 1576, 1584, 0}, {1599, 1592, 1600, 2}, {1600, 1600, 1664, 0},
                 {1984, 1984, 1992, 0}, {1999, 1992, 2000, 1}};
    struct grouping_run run;
    uint32_t came[3];
    assert_int_equal(grouping_check(&call), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        grouping_of(&call, cases[i].element, &run);
        assert_int_equal(run.start, cases[i].start);
        assert_int_equal(run.end, cases[i].end);
        walk_ring(3, cases[i].chunk, came);
        expect_chain(&run, came, 3);
    }
}

/* What a rank keeps of reduce_scatter comes round the ring to it: walked for each block. */
static void verify_ring_scatter_of_nccl(void **state) {
    (void)state;
    static const uint16_t places[] = {0, 3, 1, 4, 2};
    struct grouping_call call = {.algorithm = GROUPING_NCCL_RING_SCATTER,
                                 .ranks = 5,
                                 .count = 50,
                                 .width = 2,
                                 .places = places};
    assert_int_equal(grouping_check(&call), STATUS_OK);
    for (uint32_t position = 0; position < 5; position++) {
        const uint32_t owner = places[position];
        struct grouping_run run;
        uint32_t came[5];
        grouping_of(&call, 10 * owner + 7, &run);
        assert_int_equal(run.start, 10 * owner);
        assert_int_equal(run.end, 10 * owner + 10);
        walk_ring(5, position, came);
        for (size_t i = 0; i < 5; i++)
            came[i] = places[came[i]];
        assert_int_equal(came[4], owner);
        expect_chain(&run, came, 5);
    }
    call.count = 51;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(status_text(), "count: expected a multiple of 5 for nccl-ring-scatter, "
                                       "whose blocks are equal, got 51");
}

/* Positions of the ring are ranks only where the topology says so. */
static void verify_places(void **state) {
    (void)state;
    static const uint16_t places[] = {0, 3, 1, 2}, twice[] = {0, 3, 3, 2}, above[] = {0, 4, 1, 2};
    struct grouping_call call = {.algorithm = GROUPING_NCCL_RING,
                                 .ranks = 4,
                                 .count = 16,
                                 .width = 4,
                                 .part_first = 16,
                                 .chunk = 16,
                                 .places = places};
    static const uint32_t came[] = {3, 1, 2, 0};
    struct grouping_run run;
    assert_int_equal(grouping_check(&call), STATUS_OK);
    grouping_of(&call, 0, &run);
    expect_chain(&run, came, 4);
    call.places = twice;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(status_text(), "places: expected every rank once, got 3 twice");
    call.places = above;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(status_text(), "places: expected ranks from 0 to 3, got 4");
}

#define ROOT 255

/* The parent of each node in the trees that comments of NCCL's trees.cc draw: one of 14 nodes, and
 * the second ones of 12 nodes (mirrored) and of 13 (shifted). */
static const struct {
    uint32_t nodes;
    int is_second;
    unsigned char parent[14];
} drawn[] = {
    {14, 0, {ROOT, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}},
    {12, 1, {1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, ROOT}},
    {13, 1, {9, ROOT, 3, 5, 3, 9, 7, 5, 7, 1, 11, 0, 11}},
};

static struct grouping_call tree_call(uint32_t ranks, uint32_t node,
                                      enum grouping_pattern pattern) {
    return (struct grouping_call){.algorithm = GROUPING_NCCL_TREE,
                                  .ranks = ranks,
                                  .count = 100,
                                  .width = 4,
                                  .part_first = 50,
                                  .part = 50,
                                  .channels = 2,
                                  .node = node,
                                  .pattern = pattern};
}

/* With one rank a node, what is added hangs on the node to whose sum it is added. */
static void verify_trees_drawn(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(drawn); i++) {
        const struct grouping_call call = tree_call(drawn[i].nodes, 1, GROUPING_PATTERN_TREE);
        unsigned char parent[14], stack[14];
        struct grouping_run run;
        size_t depth = 0;
        memset(parent, ROOT, sizeof parent);
        assert_int_equal(grouping_check(&call), STATUS_OK);
        grouping_of(&call, drawn[i].is_second ? 50 : 49, &run);
        assert_int_equal(run.start, drawn[i].is_second ? 50 : 0);
        for (uint32_t k = 0; k < run.length; k++) {
            if (run.terms[k] != GROUPING_ADD) {
                stack[depth++] = (unsigned char)run.terms[k];
                continue;
            }
            depth--;
            parent[stack[depth]] = stack[depth - 1];
        }
        assert_int_equal(depth, 1);
        assert_memory_equal(parent, drawn[i].parent, drawn[i].nodes);
    }
}

/* Two nodes of three ranks: 3, 4 and 5 make the chain that rank 3 sends to a rank of node 0. With
 * four nodes of two ranks, node 2 hangs on node 0 as its only, second child, and has 1 and 3. */
static void verify_chains_of_nodes(void **state) {
    (void)state;
    enum { A = GROUPING_ADD };
    static const struct {
        uint32_t ranks, node;
        enum grouping_pattern pattern;
        uint16_t terms[15];
    } cases[] = {
        {6, 3, GROUPING_PATTERN_TREE, {2, 1, A, 0, A, 5, 4, A, 3, A, A}},
        {6, 3, GROUPING_PATTERN_BALANCED, {2, 1, A, 0, A, 5, 4, A, 3, A, A}},
        {6, 3, GROUPING_PATTERN_SPLIT, {2, 1, A, 5, 4, A, 3, A, A, 0, A}},
        {8, 2, GROUPING_PATTERN_BALANCED, {1, 0, A, 5, 3, 2, A, A, 4, A, 7, 6, A, A, A}},
        {4, 4, GROUPING_PATTERN_TREE, {3, 2, A, 1, A, 0, A}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct grouping_call call =
            tree_call(cases[i].ranks, cases[i].node, cases[i].pattern);
        struct grouping_run run;
        assert_int_equal(grouping_check(&call), STATUS_OK);
        grouping_of(&call, 0, &run);
        assert_int_equal(run.length, 2 * cases[i].ranks - 1);
        assert_memory_equal(run.terms, cases[i].terms, run.length * sizeof run.terms[0]);
    }
}

/* ---- all of them ---- */

/* The sum of numbers that hardly two orders of addition round alike, over the grouping. */
static float sum_of(const struct grouping_run *run, uint32_t seed) {
    float stack[GROUPING_DEPTH];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < run->length; i++) {
        if (run->terms[i] == GROUPING_ADD) {
            stack[depth - 2] = stack[depth - 2] + stack[depth - 1];
            depth--;
            continue;
        }
        const uint32_t mixed = (run->terms[i] * 2654435761u + seed * 40503u) ^ (seed << 7);
        stack[depth++] = (float)(mixed % 16777213u) / 4096.0f - 1024.0f;
    }
    return stack[0];
}

/* Both trees over one node or two are the same sum: a + b is b + a to the bit. So there a channel
 * moves no bit, and a scenario's one channel has the bits of any number of them. */
static void verify_channels_of_few_nodes(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= 6; nodes++) {
        uint32_t differ = 0;
        for (uint32_t node = 1; node <= 8; node++) {
            const struct grouping_call call = tree_call(nodes * node, node, GROUPING_PATTERN_TREE);
            struct grouping_run first, second;
            assert_int_equal(grouping_check(&call), STATUS_OK);
            grouping_of(&call, 49, &first);
            grouping_of(&call, 50, &second);
            for (uint32_t seed = 0; seed < 50; seed++)
                differ += sum_of(&first, seed) != sum_of(&second, seed);
        }
        assert_int_equal(differ > 0, nodes > 2);
    }
}

static void validate_texts(void **state) {
    (void)state;
    static const struct {
        enum grouping_algorithm algorithm;
        uint32_t ranks;
        const char *text;
    } cases[] = {{GROUPING_LINEAR, 4, "3 + 2 + 1 + 0"},
                 {GROUPING_RING, 1, "0"},
                 {GROUPING_RECURSIVE, 5, "0 + 1 + 2 + (3 + 4)"},
                 {GROUPING_RECURSIVE, 7, "0 + 1 + (2 + 3) + (4 + 5 + 6)"},
                 {GROUPING_HALVING, 8, "0 + 4 + (2 + 6) + (1 + 5 + (3 + 7))"}};
    char text[GROUPING_TEXT];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct grouping_call call = {
            .algorithm = cases[i].algorithm, .ranks = cases[i].ranks, .count = 1, .width = 4};
        struct grouping_run run;
        grouping_of(&call, 0, &run);
        grouping_text(&run, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void verify_names(void **state) {
    (void)state;
    for (int i = 0; i < GROUPING_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(grouping_name((enum grouping_algorithm)i),
                                    grouping_name((enum grouping_algorithm)k));
}

/* Each rank once, P - 1 additions, never more results than a stack of GROUPING_DEPTH holds; and
 * runs that tile the vector. */
static void verify_grouping(const struct grouping_call *call) {
    struct grouping_run run;
    uint64_t element = 0;
    assert_int_equal(grouping_check(call), STATUS_OK);
    while (element < call->count) {
        unsigned char seen[GROUPING_RANKS] = {0};
        uint32_t depth = 0, ranks = 0;
        grouping_of(call, element, &run);
        assert_int_equal(run.start, element);
        assert_true(run.end > element && run.end <= call->count);
        assert_int_equal(run.length, 2 * call->ranks - 1);
        for (uint32_t k = 0; k < run.length; k++) {
            if (run.terms[k] == GROUPING_ADD) {
                assert_true(depth >= 2);
                depth--;
                continue;
            }
            assert_true(run.terms[k] < call->ranks && !seen[run.terms[k]]);
            seen[run.terms[k]] = 1;
            ranks++;
            assert_true(++depth <= GROUPING_DEPTH);
        }
        assert_int_equal(depth, 1);
        assert_int_equal(ranks, call->ranks);
        element = run.end;
    }
}

static void verify_groupings(void **state) {
    (void)state;
    static const uint32_t ranks[] = {1, 2, 3, 6, 17, 64, 255, 1000, 1024};
    static const uint64_t counts[] = {1, 2, 1023, 70001};
    for (int algorithm = 0; algorithm < GROUPING_COUNT; algorithm++)
        for (size_t i = 0; i < COUNT_OF(ranks); i++)
            for (size_t j = 0; j < COUNT_OF(counts); j++) {
                struct grouping_call call =
                    tree_call(ranks[i], ranks[i] % 4 == 0 ? 4 : 1, (enum grouping_pattern)(j % 3));
                call.algorithm = (enum grouping_algorithm)algorithm;
                call.count = counts[j];
                if (algorithm == GROUPING_NCCL_RING_SCATTER) call.count *= ranks[i];
                call.part_first = 30000;
                call.part = 20000;
                call.channels = 4;
                call.chunk = 512;
                verify_grouping(&call);
            }
}

/* Elements of a part that would wrap where a part begins are refused; the largest are not. */
static void verify_large_parts(void **state) {
    (void)state;
    const uint64_t most = (uint64_t)1 << 48;
    struct grouping_call call = tree_call(3, 1, GROUPING_PATTERN_TREE);
    for (int i = 0; i < 2; i++) {
        call.algorithm = i == 0 ? GROUPING_NCCL_RING : GROUPING_NCCL_TREE;
        call.chunk = 16;
        call.part_first = 5;
        call.part = UINT64_MAX;
        assert_int_equal(grouping_check(&call), STATUS_INPUT);
        assert_string_equal(status_text(), "parts: expected at most 2^48 elements of a channel, "
                                           "got 5 and 18446744073709551615");
        call.part = most + 1;
        assert_int_equal(grouping_check(&call), STATUS_INPUT);
        call.part = most;
        verify_grouping(&call);
        call.part_first = most + 1;
        assert_int_equal(grouping_check(&call), STATUS_INPUT);
        assert_string_equal(status_text(), "parts: expected at most 2^48 elements of a channel, "
                                           "got 281474976710657 and 281474976710656");
        call.part_first = most;
        verify_grouping(&call);
    }
}

static void verify_refusals(void **state) {
    (void)state;
    struct grouping_call good = tree_call(6, 3, GROUPING_PATTERN_TREE), call;
    static const struct {
        const char *text;
        size_t member;
        uint64_t value;
    } cases[] = {
        {"ranks: expected 1 to 1024, got 0", offsetof(struct grouping_call, ranks), 0},
        {"ranks: expected 1 to 1024, got 1025", offsetof(struct grouping_call, ranks), 1025},
        {"width: expected 1, 2, 4 or 8 bytes, got 3", offsetof(struct grouping_call, width), 3},
        {"node: expected the ranks of a node for nccl-tree, a divisor of 6, got 4",
         offsetof(struct grouping_call, node), 4},
        {"channels: expected an even number for nccl-tree, because half of them use the second "
         "tree, and no fewer than the 2 parts; got 3",
         offsetof(struct grouping_call, channels), 3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint32_t value = (uint32_t)cases[i].value;
        call = good;
        memcpy((char *)&call + cases[i].member, &value, sizeof value);
        assert_int_equal(grouping_check(&call), STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].text);
    }
    call = good;
    call.count = 0;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(status_text(), "count: expected 1 to 2^48 elements, got 0");
    call = good;
    call.part = 0;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(
        status_text(), "parts: expected the elements of the first channel and of each further one "
                       "for nccl-tree, as NCCL's trace prints them as countLo and countMid, got 50 "
                       "and 0 of 100");
    call = good;
    call.algorithm = GROUPING_NCCL_RING;
    call.chunk = 40;
    assert_int_equal(grouping_check(&call), STATUS_INPUT);
    assert_string_equal(status_text(), "chunk: expected a multiple of 16 bytes for nccl-ring, as "
                                       "NCCL's trace prints it as chunkBytes, got 40");
    enum grouping_algorithm algorithm;
    assert_int_equal(grouping_of_open_mpi(GROUPING_ALL_REDUCE, 2, 4, 8, &algorithm), STATUS_INPUT);
    assert_string_equal(status_text(), "coll_tuned_allreduce_algorithm: expected 1, 3, 4, 5 or 6, "
                                       "whose groupings are known, got 2");
    assert_int_equal(grouping_of_open_mpi(GROUPING_REDUCE_SCATTER, 5, 4, 8, &algorithm),
                     STATUS_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_open_mpi),   cmocka_unit_test(corroborate_gloo),
        cmocka_unit_test(verify_ring_of_nccl),    cmocka_unit_test(verify_ring_scatter_of_nccl),
        cmocka_unit_test(verify_places),          cmocka_unit_test(verify_trees_drawn),
        cmocka_unit_test(verify_chains_of_nodes), cmocka_unit_test(verify_channels_of_few_nodes),
        cmocka_unit_test(validate_texts),         cmocka_unit_test(verify_names),
        cmocka_unit_test(verify_groupings),       cmocka_unit_test(verify_large_parts),
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
