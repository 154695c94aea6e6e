/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Names of tensors without what wrappers of the model put before them and into them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "checkpoints/layers.h"

enum { DDP = 1, COMPILE = 2, FSDP = 4, CHECKPOINTING = 8 };

static void validate_names_without_wrappers(void **state) {
    static const struct {
        const char *name, *bare;
        unsigned wrappers;
        size_t before; /* of what stands before all of the name */
    } cases[] = {
        {"h.0.w", "h.0.w", 0, 0},
        {"module.h.0.w", "h.0.w", DDP, 7},
        {"_orig_mod.module.h.0.w", "h.0.w", DDP | COMPILE, 17},
        {"h.0._orig_mod.w", "h.0.w", COMPILE, 0},
        {"module.h._orig_mod.0.module.w", "h.0.w", DDP | COMPILE, 7},
        {"_fsdp_wrapped_module.h._checkpoint_wrapped_module.w", "h.w", FSDP | CHECKPOINTING, 21},
        {"modules.w", "modules.w", 0, 0},
        {"my_module.w", "my_module.w", 0, 0},
        {"h.module", "h.module", 0, 0},
        {"module.", "", DDP, 7},
        {"h..w.", "h..w.", 0, 0},
        {"", "", 0, 0},
    };
    char bare[80];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        memset(bare, 'x', sizeof bare);
        assert_int_equal(layer_bare_name(cases[i].name, bare), cases[i].wrappers);
        assert_string_equal(bare, cases[i].bare);
        assert_int_equal(layer_wrapper_length(cases[i].name), cases[i].before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_names_without_wrappers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
