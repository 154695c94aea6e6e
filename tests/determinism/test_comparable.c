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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
