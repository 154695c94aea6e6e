/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit short
 * A training in bf16 whose linear layers go by vdpbf16ps must be the training without it, bit for
 * bit, and must really go by it: forward, both gradients, DPO's reference, modes invariant and
 * deterministic. Skipped where the machine has no such instruction. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

enum { UPDATES = 4 };

static struct bf16_tiles train(const char *task, const char *numerics, const char *isa,
                               struct helper_outcome *out) {
    struct helper_small small;
    helper_small_open(&small, 12, "task: %s, batch: {size: 4, micro: 2}, numerics: {%s, isa: %s}",
                      task, numerics, isa);
    helper_outcome_of(&small.run, UPDATES, out);
    const struct bf16_tiles tiles = small.run.model.bf16;
    helper_small_close(&small);
    return tiles;
}

static void verify_same_training(void **state) {
    (void)state;
    if (!backend_bf16(ISA_V4_BF16)) skip();
    static const char *const tasks[] = {"sft", "dpo"};
    static const char *const numerics[] = {
        "compute: bf16", "compute: bf16, param: bf16, master: f32, mode: deterministic, threads: 2",
        "product: bf16"};
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        for (size_t n = 0; n < COUNT_OF(numerics); n++) {
            struct helper_outcome by_fma, by_pairs;
            const struct bf16_tiles none = train(tasks[t], numerics[n], "v4", &by_fma);
            const struct bf16_tiles some = train(tasks[t], numerics[n], "v4-bf16", &by_pairs);
            const char *const gap = helper_outcome_gap(&by_fma, &by_pairs);
            if (gap != NULL) fail_msg("%s, %s: %s", tasks[t], numerics[n], gap);
            assert_true(none.tiles == 0 && some.tiles > 0);
            print_message("%s, %s: %ju of %ju tiles by fma\n", tasks[t], numerics[n],
                          (uintmax_t)some.by_fma, (uintmax_t)some.tiles);
            assert_true(some.by_fma < some.tiles / 2);
        }
    }
}

/* Without bf16 numbers there is nothing to look at. */
static void verify_f32_untouched(void **state) {
    (void)state;
    if (!backend_bf16(ISA_V4_BF16)) skip();
    struct helper_outcome out;
    const struct bf16_tiles tiles = train("sft", "compute: f32", "v4-bf16", &out);
    assert_true(tiles.tiles == 0 && tiles.by_fma == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_same_training),
        cmocka_unit_test(verify_f32_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
