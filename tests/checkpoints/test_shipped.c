/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The models in the binary: they open like a folder of a checkpoint, are the files of
 * scenarios/models, are refused when a byte is another, and a wrong name is answered with those
 * that there are. That training makes these bytes again is the nightly test builtin_models. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config.h"
#include "checkpoints/hf_tensors.h"
#include "checkpoints/shipped.h"

static void validate_files(void **state) {
    (void)state;
    size_t count = 0;
    for (const struct shipped_file *file = shipped_files; file->path != NULL; file++, count++) {
        char path[512];
        unsigned char *bytes = (unsigned char *)malloc(file->length + 1);
        assert_non_null(bytes);
        snprintf(path, sizeof path, TWINSTEP_SOURCE_DIR "/scenarios/models/%s",
                 file->path + strlen("builtin:"));
        FILE *source = fopen(path, "rb");
        assert_non_null(source);
        assert_int_equal(fread(bytes, 1, file->length + 1, source), file->length);
        assert_memory_equal(bytes, file->bytes, file->length);
        fclose(source);

        const struct shipped_file changed = {file->path, bytes, file->length};
        assert_int_equal(shipped_check(&changed), STATUS_OK);
        bytes[file->length / 2] ^= 1;
        assert_int_equal(shipped_check(&changed), STATUS_INTERNAL);
        assert_non_null(strstr(status_text(), file->path));
        const struct shipped_file renamed = {"builtin:other/config.json", file->bytes,
                                             file->length};
        assert_int_equal(shipped_check(&renamed), STATUS_INTERNAL);
        free(bytes);
    }
    assert_int_equal(count, 2);
}

static void verify_opens_as_a_folder(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct checkpoint checkpoint;
    struct hf_config config;
    assert_int_equal(checkpoint_open("builtin:base", &arena, &checkpoint), STATUS_OK);
    assert_true(checkpoint.is_folder);
    assert_int_equal(checkpoint.count, 47);
    assert_int_equal(checkpoint.bytes, 2 * 231872); /* bf16 */
    assert_int_equal(hf_config_read("builtin:base/config.json", &config), STATUS_OK);
    assert_int_equal(config.family, HF_OLMO2);
    assert_int_equal(hf_tensors_check(&config, &checkpoint, &arena), STATUS_OK);
    checkpoint_close(&checkpoint);
    assert_int_equal(checkpoint_open("builtin:base/model.safetensors", &arena, &checkpoint),
                     STATUS_INPUT);
    arena_close(&arena);
}

static void verify_unknown_names(void **state) {
    (void)state;
    static const char *const names[] = {"builtin:bas", "builtin:basement",
                                        "builtin:", "builtin:quiz"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct arena arena = ARENA_EMPTY;
        struct checkpoint checkpoint;
        struct hf_config config;
        char text[128], path[64];
        snprintf(text, sizeof text, "%s: no such model; there is builtin:base", names[i]);
        assert_int_equal(checkpoint_open(names[i], &arena, &checkpoint), STATUS_INPUT);
        assert_string_equal(status_text(), text);
        snprintf(path, sizeof path, "%s/config.json", names[i]);
        assert_int_equal(hf_config_read(path, &config), STATUS_INPUT);
        arena_close(&arena);
    }
    assert_true(shipped_is("builtin:x"));
    assert_false(shipped_is("./builtin:x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_files),
        cmocka_unit_test(verify_opens_as_a_folder),
        cmocka_unit_test(verify_unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
