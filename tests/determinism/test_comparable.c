/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Two foreign runs whose digests are, and are not, of the same tensors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "determinism/comparable.h"
#include "determinism/digest.h"
#include "determinism/root.h"
#include "determinism/trace.h"

#define TENSORS 3

static void expect_refusal(const char *const tensors[TENSORS], const char *const dtypes[TENSORS],
                           const char *const shapes[TENSORS], uint32_t count, const char *text) {
    static const char *const names[TENSORS] = {"a", "b", "c"};
    static const char *const f32[TENSORS] = {"f32", "f32", "f32"};
    static const char *const sizes[TENSORS] = {"2", "3", "4"};
    struct trace_foreign of[2] = {
        {.digest = "leaf 1", .world = 1, .causes = "", .dtypes = f32, .shapes = sizes},
        {.digest = "leaf 1", .world = 1, .causes = "", .dtypes = dtypes, .shapes = shapes}};
    struct trace_run run[2];
    uint64_t roots;
    memset(run, 0, sizeof run);
    run[0].plan.tensors = names;
    run[1].plan.tensors = tensors;
    for (int i = 0; i < 2; i++) {
        run[i].plan.foreign = &of[i];
        run[i].plan.shape.tensors = i == 0 ? TENSORS : count;
    }
    const enum status status = runs_comparable(&run[0], &run[1], &roots);
    assert_int_equal(status, text == NULL ? STATUS_OK : STATUS_INPUT);
    if (text != NULL && strstr(status_text(), text) == NULL) fail_msg("%s", status_text());
}

static void validate_tensors(void **state) {
    (void)state;
    static const char *const names[TENSORS] = {"a", "b", "c"}, *const last[TENSORS] = {"a", "b",
                                                                                       "x"};
    static const char *const f32[TENSORS] = {"f32", "f32", "f32"}, *const bf16[TENSORS] = {
                                                                       "f32", "f32", "bf16"};
    static const char *const sizes[TENSORS] = {"2", "3", "4"}, *const other[TENSORS] = {"2", "5",
                                                                                        "4"};
    expect_refusal(names, f32, sizes, TENSORS, NULL);
    expect_refusal(last, f32, sizes, TENSORS, "tensor 2 is \"c\" in A and \"x\" in B");
    expect_refusal(names, bf16, sizes, TENSORS, "tensor \"c\" is f32 [4] in A and bf16 [4] in B");
    expect_refusal(names, f32, other, TENSORS, "tensor \"b\" is f32 [3] in A and f32 [5] in B");
    expect_refusal(names, f32, sizes, 2, "A has 3 tensors and B 2: \"c\" is in A alone");
}

/* Which kinds and processes of digests can be compared. */
static void validate_processes(void **state) {
    (void)state;
    static const struct {
        struct {
            const char *digest;
            int64_t rank, world;
        } of[2];
        const char *text;
    } cases[] = {
        {{{"leaf 1", 0, 1}, {"leaf 1", 0, 1}}, ""},
        {{{"leaf 1", 1, 2}, {"leaf 1", 1, 2}}, ""},
        {{{"leaf 1", 0, 2}, {"leaf 1", 1, 2}},
         "A is of process 0 and B of process 1: expected the same one"},
        {{{"keyed 1", 0, 2}, {"keyed 1", 1, 2}},
         "A is of process 0 and B of process 1: expected the same one"},
        {{{"keyed 1", 0, 1}, {"keyed 1", 1, 2}}, ""},
        {{{"leaf 1", 0, 1}, {"leaf 1", 0, 2}},
         "A is of 1 processes and B of 2: digests \"leaf 1\" of shards do not add up, \"keyed 1\" "
         "do"},
        {{{"leaf 1", 0, 1}, {"keyed 1", 0, 1}},
         "A has digests of kind \"leaf 1\" and B of kind \"keyed 1\": digests of unlike kinds "
         "cannot be compared"},
        {{{"", 0, 1}, {"keyed 1", 3, 4}}, ""}, /* no digests: nothing that could be unlike */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trace_foreign of[2];
        struct trace_run run[2];
        uint64_t roots;
        memset(run, 0, sizeof run);
        for (int k = 0; k < 2; k++) {
            of[k] = (struct trace_foreign){.digest = cases[i].of[k].digest,
                                           .rank = cases[i].of[k].rank,
                                           .world = cases[i].of[k].world,
                                           .causes = ""};
            run[k].plan.foreign = &of[k];
        }
        const enum status status = runs_comparable(&run[0], &run[1], &roots);
        assert_int_equal(status, cases[i].text[0] == '\0' ? STATUS_OK : STATUS_INPUT);
        if (status != STATUS_OK) assert_string_equal(status_text(), cases[i].text);
    }
}

/* Roots that both runs have for an update: of steps 2, 3, 5, 6 and 1, 3, 4, 5, 6 those of 3 and 6,
 * since one lacks that of 5. A run of ours and a foreign one have none. */
static void validate_common_roots(void **state) {
    (void)state;
    static struct record left[4], right[5];
    static const uint64_t steps[2][5] = {{2, 3, 5, 6}, {1, 3, 4, 5, 6}};
    struct trace_run run[2];
    struct trace_foreign foreign = {.digest = "", .causes = ""};
    uint64_t roots;
    memset(run, 0, sizeof run);
    for (int i = 0; i < 5; i++) {
        if (i < 4) left[i].step = steps[0][i];
        if (i < 4) left[i].digests[DIGEST_ROOT][RECORD_DIGEST_BYTES - 1] = 1;
        right[i].step = steps[1][i];
        right[i].digests[DIGEST_ROOT][0] = i == 3 ? 0 : 1;
    }
    run[0].records = left;
    run[0].updates = 4;
    run[1].records = right;
    run[1].updates = 5;
    assert_int_equal(runs_comparable(&run[0], &run[1], &roots), STATUS_OK);
    assert_int_equal(roots, 2);
    assert_int_equal(runs_comparable(&run[1], &run[0], &roots), STATUS_OK);
    assert_int_equal(roots, 2);
    run[1].updates = 4;
    assert_int_equal(runs_comparable(&run[0], &run[1], &roots), STATUS_OK);
    assert_int_equal(roots, 1);
    run[0].plan.foreign = &foreign;
    assert_int_equal(runs_comparable(&run[0], &run[1], &roots), STATUS_OK);
    assert_int_equal(roots, 0);
}

/* Two runs of one training, whose rows the cases below change. */
enum { ROWS = 4 };
static struct record rows[2][ROWS];
static struct trace_run pair[2];
static struct trace_foreign others = {.digest = "leaf 1", .causes = "", .world = 1};

static void make_roots(void) {
    for (int i = 0; i < 2; i++) {
        struct digest root = {{0}};
        for (uint64_t k = 0; k < pair[i].updates; k++) {
            root_next(&root, &rows[i][k], &root);
            memcpy(rows[i][k].digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
        }
    }
}

static void open_pair(void) {
    memset(rows, 0, sizeof rows);
    memset(pair, 0, sizeof pair);
    for (int i = 0; i < 2; i++) {
        pair[i].plan.foreign = &others;
        pair[i].records = rows[i];
        pair[i].updates = ROWS;
        for (uint64_t k = 0; k < ROWS; k++) {
            rows[i][k].step = k + 1;
            rows[i][k].digests[DIGEST_BATCH][3] = (uint8_t)(k + 1);
            rows[i][k].digests[DIGEST_WEIGHTS][0] = (uint8_t)(k + 5);
            rows[i][k].reals[REAL_LOSS] = (double)k;
        }
    }
}

static void drop_batch(int i, uint64_t update) {
    memset(rows[i][update - 1].digests[DIGEST_BATCH], 0, RECORD_DIGEST_BYTES);
}

static void expect_apart(uint64_t first, uint64_t updates, const char *words) {
    char text[COMPARABLE_WHY];
    struct batch_gap gap;
    make_roots();
    assert_int_equal(runs_first_apart(&pair[0], &pair[1], &gap), first);
    assert_int_equal(gap.updates, updates);
    batch_gap_words(&gap, text);
    assert_string_equal(text, words);
}

/* A batch that one of the two did not record is no other batch: it counts in neither root, and what
 * else differs does. */
static void validate_batches_that_were_not_recorded(void **state) {
    (void)state;
    open_pair();
    expect_apart(0, 0, "");
    rows[1][2].digests[DIGEST_BATCH][3] = 9;
    expect_apart(3, 0, "");
    drop_batch(0, 2); /* an earlier gap does not hide the later batch */
    expect_apart(3, 1, "update 2: A recorded none");
    drop_batch(0, 3);
    expect_apart(0, 2, "2 updates, the first of them update 2, where A recorded none");
    rows[1][3].digests[DIGEST_WEIGHTS][9] = 1;
    expect_apart(4, 2, "2 updates, the first of them update 2, where A recorded none");
    rows[1][1].digests[DIGEST_RNG][0] = 1; /* in an update of the gap itself */
    expect_apart(2, 2, "2 updates, the first of them update 2, where A recorded none");
    rows[0][0].reals[REAL_LOSS] = 7.0; /* in front of the gap */
    expect_apart(1, 2, "2 updates, the first of them update 2, where A recorded none");
    open_pair();
    drop_batch(0, 2); /* neither has it: nothing to hold back */
    drop_batch(1, 2);
    expect_apart(0, 0, "");
    drop_batch(1, 4);
    expect_apart(0, 1, "update 4: B recorded none");
    pair[1].plan.foreign = NULL; /* a trace of twinstep has the digest of every batch */
    expect_apart(4, 0, "");
}

/* Rows that one run has alone are a part of its chain, and a run that lacks a root has no chain. */
static void validate_rows_of_one_run(void **state) {
    (void)state;
    struct batch_gap gap;
    open_pair();
    drop_batch(1, 3);
    pair[0].updates = 3; /* ends early */
    expect_apart(0, 1, "update 3: B recorded none");
    open_pair();
    drop_batch(1, 4);
    memmove(&rows[0][1], &rows[0][2], 2 * sizeof rows[0][0]); /* A has no row of update 2 */
    pair[0].updates = 3;
    expect_apart(3, 1, "update 4: B recorded none");
    open_pair();
    drop_batch(1, 2);
    rows[1][3].digests[DIGEST_WEIGHTS][9] = 1;
    make_roots();
    memset(rows[1][2].digests[DIGEST_ROOT], 0, RECORD_DIGEST_BYTES);
    assert_int_equal(runs_first_apart(&pair[0], &pair[1], &gap), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_tensors),
                                       cmocka_unit_test(validate_processes),
                                       cmocka_unit_test(validate_common_roots),
                                       cmocka_unit_test(validate_batches_that_were_not_recorded),
                                       cmocka_unit_test(validate_rows_of_one_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
