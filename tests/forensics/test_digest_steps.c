/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the digests of two first steps say of the optimizer: which tensors are alike, which of them
 * show that the count is right, and whether those stand in front in each parameter group; once more
 * for random digests, and each condition of an exact unit by itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/trajectory_digest.c" /* for the counts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { TENSORS = 9, GROUPS = 10, CASES = 20000 };

#define EXACT                                                                                      \
    "numerics.master: none\noptimizer.name: adamw\noptimizer.bias_correction: true\n"              \
    "optimizer.t: counted\n"

struct side {
    struct trace_run run;
    struct record record;
    double groups[GROUPS][RECORD_GROUPS];
    double tensors[TENSORS][RECORD_TENSORS];
    uint8_t digests[TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
};

static struct side sides[2];
static struct trajectory_side logs[2];
static struct trajectory_judging judging;

static void open_sides(const char *groups) {
    memset(sides, 0, sizeof sides);
    memset(logs, 0, sizeof logs);
    memset(&judging, 0, sizeof judging);
    for (size_t s = 0; s < 2; s++) {
        struct side *const side = &sides[s];
        side->run.plan.groups = groups;
        side->run.plan.configuration = EXACT "numerics.param: f32\n";
        side->run.plan.shape.tensors = TENSORS;
        side->run.plan.shape.groups = GROUPS;
        side->record.groups = side->groups;
        side->record.tensors = side->tensors;
        side->record.tensor_digests = side->digests;
        side->record.reals[REAL_PARAM_NORM] = 4.0;
        logs[s].run = &side->run;
    }
    judging.before = &logs[0];
    judging.after = &logs[1];
}

static void corroborate_steps(void **state) {
    (void)state;
    uint32_t in_front = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xd19e57), .number = number};
        char groups[TENSORS + 2] = "";
        const uint32_t length = TENSORS + (draws_pick(&draws, 8) == 0 ? 1 : 0);
        const uint32_t kinds = 1 + draws_pick(&draws, GROUPS);
        for (uint32_t t = 0; t < length;
             t++) /* from the last groups down, and some that are none */
            groups[t] = draws_pick(&draws, 12) == 0 ? (draws_pick(&draws, 2) == 0 ? '/' : ':')
                                                    : (char)('9' - draws_pick(&draws, kinds));
        open_sides(groups);
        const uint32_t known = 1 + draws_pick(&draws, GROUPS);
        sides[1].run.plan.shape.groups = known;
        for (uint32_t g = 0; g < GROUPS; g++) {
            sides[1].groups[g][GROUP_LR_APPLIED] = 0.25 * draws_pick(&draws, 2);
            sides[1].groups[g][GROUP_WD_APPLIED] = 0x1p-20;
        }
        uint32_t alike = 0, other = 0, plain = 0;
        int front = 1, seen[GROUPS] = {0};
        for (uint32_t t = 0; t < TENSORS; t++) {
            /* With an LR of 0.25 decay alone moves 0x1p-20; two units of 4.0 are 0x1p-20, too. */
            static const double norms[] = {0.0,     0x1p-21,   0x1p-20, 0x1.8p-20,
                                           0x1p-19, 0x1.8p-19, 0x1p-10};
            const int equal = draws_pick(&draws, 2) == 0;
            const double norm = norms[draws_pick(&draws, COUNT_OF(norms))];
            sides[1].tensors[t][TENSOR_UPDATE_NORM] = norm;
            sides[1].digests[t][TENSOR_DIGEST_PARAMETER][t] = equal ? 0 : 1;
            const int digit = groups[t] >= '0' && groups[t] <= '9';
            const uint32_t group = length == TENSORS && digit ? (uint32_t)(groups[t] - '0') : 0;
            if (!equal) {
                other++;
                seen[group] = 1;
            } else if (norm > 0.0) {
                const double decay = sides[1].groups[group][GROUP_LR_APPLIED] * 0x1p-20 * 4.0;
                alike++;
                if (seen[group]) front = 0;
                if (group < known && norm - decay > 2.0 * 0x1p-23 * 4.0) plain++;
            }
        }
        struct steps found = compare_steps(&judging, &sides[0].record, &sides[1].record);
        assert_int_equal(found.alike, alike);
        assert_int_equal(found.other, other);
        assert_int_equal(found.plain, plain);
        assert_int_equal(found.in_front, front);
        in_front += (uint32_t)front;
        sides[number % 2].run.plan.configuration = EXACT "numerics.param: bf16\n";
        found = compare_steps(&judging, &sides[0].record, &sides[1].record);
        assert_int_equal(found.alike, alike);
        assert_int_equal(found.plain, 0);  /* coarse weights of either show no count */
        sides[0].run.plan.shape.tensors++; /* other tensors are not compared */
        found = compare_steps(&judging, &sides[0].record, &sides[1].record);
        assert_true(found.alike == 0 && found.other == 0 && found.in_front == 1);
    }
    assert_true(in_front > CASES / 10 && in_front < CASES - CASES / 10);
}

static void validate_exact_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double unit;
    } cases[] = {
        {EXACT "numerics.param: f32\n", 0x1p-23},
        {EXACT "numerics.param: f64\n", 0x1p-52},
        {EXACT "numerics.param: bf16\n", 0.0},
        {EXACT "numerics.param: f32", 0x1p-23}, /* the last line needs no end */
        {EXACT "numerics.param: f320\n", 0.0},
        {EXACT "xnumerics.param: f32\n", 0.0},
        {"numerics.param: f32\n" EXACT, 0x1p-23},
        {EXACT, 0.0},
        {"numerics.master: f32\noptimizer.name: adamw\noptimizer.bias_correction: true\n"
         "optimizer.t: counted\nnumerics.param: f32\n",
         0.0},
        {"numerics.master: none\noptimizer.name: lion\noptimizer.bias_correction: true\n"
         "optimizer.t: counted\nnumerics.param: f32\n",
         0.0},
        {"numerics.master: none\noptimizer.name: adamw\noptimizer.bias_correction: false\n"
         "optimizer.t: counted\nnumerics.param: f32\n",
         0.0},
        {"numerics.master: none\noptimizer.name: adamw\noptimizer.bias_correction: true\n"
         "optimizer.t: never\nnumerics.param: f32\n",
         0.0},
    };
    struct trace_foreign foreign = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_sides("");
        sides[0].run.plan.configuration = cases[i].text;
        assert_true(exact_unit(&sides[0].run) == cases[i].unit);
        sides[0].run.plan.foreign = &foreign;
        assert_true(exact_unit(&sides[0].run) == 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_steps),
        cmocka_unit_test(validate_exact_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
