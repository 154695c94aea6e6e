/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Files of torch.save, read value for value and bit for bit as torch.load reads them: those that
 * torch 2.15.0 wrote are committed with what it read (tests/bench/torch_files.py). With a folder as
 * argument, all files there, in which users' own objects may stand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_torch.h"

static enum torch_names names = TORCH_STRICT;
static const char *folder = TWINSTEP_SOURCE_DIR "/tests/golden/foreign/torch";

static void compare_file(const char *stem) {
    struct arena arena = ARENA_EMPTY;
    struct torch_file file;
    char path[1024], *listed = NULL;
    size_t length, wanted_length;
    snprintf(path, sizeof path, "%s/%s.pt", folder, stem);
    if (torch_file_open(path, names, &arena, &file) != STATUS_OK) fail_msg("%s", status_text());
    FILE *out = open_memstream(&listed, &length);
    assert_non_null(out);
    helper_torch_list(&file, out);
    assert_int_equal(fclose(out), 0);
    torch_file_close(&file);
    arena_close(&arena);
    snprintf(path, sizeof path, "%s/%s.txt", folder, stem);
    unsigned char *wanted = helper_read(path, &wanted_length);
    for (size_t i = 0; i <= length && i <= wanted_length; i++)
        if (i == length || i == wanted_length || (unsigned char)listed[i] != wanted[i]) {
            if (length == wanted_length && i == length) break;
            fail_msg("%s: other than torch.load from byte %zu on:\n%.300s\n", path, i,
                     listed + (i > 100 ? i - 100 : 0));
        }
    free(wanted);
    free(listed);
}

static void corroborate_torch_load(void **state) {
    (void)state;
    size_t count = 0;
    DIR *directory = opendir(folder);
    if (directory == NULL) fail_msg("%s: cannot open", folder);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char stem[256];
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 3, ".pt") != 0) continue;
        snprintf(stem, sizeof stem, "%.*s", (int)(length - 3), entry->d_name);
        compare_file(stem);
        count++;
    }
    closedir(directory);
    print_message("%zu files as torch.load reads them\n", count);
    assert_true(count >= 25);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_torch_load)};
    if (argc > 1) names = TORCH_OPAQUE_NAMES;
    if (argc > 1) folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
