/* SPDX-License-Identifier: Apache-2.0
 * Makes temporary files under TMPDIR, or under /tmp. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/data/helper_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/tokenizer.h"

void helper_file_write(const char *bytes, size_t length, char out_path[HELPER_PATH_SIZE]) {
    const char *folder = getenv("TMPDIR");
    snprintf(out_path, HELPER_PATH_SIZE, "%s/twinstep-test-XXXXXX",
             folder != NULL ? folder : "/tmp");
    int handle = mkstemp(out_path);
    assert_true(handle >= 0);
    assert_int_equal(write(handle, bytes, length), length);
    assert_int_equal(close(handle), 0);
}

enum status helper_jsonl_open(enum task task, const char *text, uint64_t max_len,
                              struct arena *arena, struct dataset *out_dataset) {
    char path[HELPER_PATH_SIZE];
    helper_file_write(text, strlen(text), path);
    const struct dataset_options options = {
        .task = task, .source = path, .max_len = max_len, .vocab = TOKENIZER_VOCAB};
    enum status status = dataset_open(&options, arena, out_dataset);
    unlink(path);
    return status;
}
