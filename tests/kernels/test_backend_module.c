/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A faulty backend module is refused, with the text expected, before anything in it runs. The same
 * module without the fault is accepted, which shows that the fault is the reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "kernels/backend_module.h"

static const struct {
    const char *file, *text; /* text: the refusal's; NULL: accepted */
} cases[] = {
    {"shim", NULL},
    {"layout", "built with other headers than this program"},
    {"lacking", "its backend has no f32 loop of optimizers for adam"},
};

static void verify_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[4096];
        const struct backend *backend = NULL;
        snprintf(path, sizeof path, "%s/twinstep_backend_%s.so", TWINSTEP_BACKENDS, cases[i].file);
        const enum status status = backend_module_open(path, &backend);
        if (cases[i].text == NULL) {
            assert_int_equal(status, STATUS_OK);
            assert_string_equal(backend->name, cases[i].file);
        } else {
            assert_int_equal(status, STATUS_INPUT);
            if (strstr(status_text(), cases[i].text) == NULL) fail_msg("%s", status_text());
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
