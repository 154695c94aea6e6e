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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_tensors),
                                       cmocka_unit_test(validate_processes),
                                       cmocka_unit_test(validate_common_roots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
