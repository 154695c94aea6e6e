/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a module that nobody agreed to must be refused with a text before
 * anything of them is loaded, and never crash.
 *
 * TWINSTEP_FUZZ_FORMAT is module-head. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "tests/fuzz/edited.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_module: broken: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct module_consent none = {0, NULL, 0};
    const char *path = edited_plain(0, data, size);
    struct module module = {NULL, NULL};
    module_ask(&none);
    require(module_open(path, "", &module) == STATUS_INPUT, "nothing is loaded without consent");
    require(strstr(status_text(), "cannot load") == NULL, "the loader is not asked");
    require(module.handle == NULL, "nothing is open after a refusal");
    require(strncmp(status_text(), path, strlen(path)) == 0, "an error names the file");
    return 0;
}
