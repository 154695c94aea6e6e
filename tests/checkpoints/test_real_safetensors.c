/* SPDX-License-Identifier: Apache-2.0
 * labels: real short
 * What we write must be read by the real safetensors library, value for value. The test is skipped
 * where python3 does not have it; TWINSTEP_PYTHON names another interpreter. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/macro.h"
#include "checkpoints/safetensors.h"
#include "tests/checkpoints/helper_checkpoint.h"

static int read_back(const char *file, char *out, size_t size) {
    char command[1024];
    const char *python = getenv("TWINSTEP_PYTHON");
    snprintf(command, sizeof command,
             "%s " TWINSTEP_SOURCE_DIR "/tests/checkpoints/real_safetensors.py %s",
             python == NULL ? "python3" : python, file);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t length = fread(out, 1, size - 1, pipe);
    out[length] = '\0';
    const int code = pclose(pipe);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void corroborate_reading(void **state) {
    (void)state;
    static const uint64_t shape[] = {1, 3}, none[] = {0, 4};
    static const unsigned char bytes[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const float carriers[] = {1.0f, -2.5f, 0x1p-24f};
    const struct safetensors_source sources[] = {
        {"x.weight", SAFETENSORS_F32, 2, shape, bytes, NULL},
        {"y \"\\/", SAFETENSORS_F16, 2, shape, NULL, carriers},
        {"none", SAFETENSORS_F64, 2, none, bytes, NULL},
        {"scalar", SAFETENSORS_I64, 0, NULL, bytes, NULL},
        {"bf", SAFETENSORS_BF16, 2, shape, bytes, NULL}};
    const struct safetensors_pair metadata[] = {{"format", "pt"}, {"by", "twinstep"}};
    char out[4096];
    assert_int_equal(safetensors_write("x.safetensors", 0, sources, 5, metadata, 2), STATUS_OK);
    const int code = read_back("x.safetensors", out, sizeof out);
    if (code == 77) skip();
    assert_int_equal(code, 0);
    assert_string_equal(out, "metadata by twinstep\n"
                             "metadata format pt\n"
                             "bf BF16 [1, 3] 010203040506\n"
                             "none F64 [0, 4] \n"
                             "scalar I64 [] 0102030405060708\n"
                             "x.weight F32 [1, 3] 0102030405060708090a0b0c\n"
                             "y \"\\/ F16 [1, 3] 003c00c10100\n");
}

/* A file that the library must refuse, which shows that the test can fail. */
static void corroborate_refusal(void **state) {
    (void)state;
    char out[4096];
    helper_write_safetensors("bad.safetensors",
                             "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2);
    const int code = read_back("bad.safetensors", out, sizeof out);
    if (code == 77) skip();
    assert_int_not_equal(code, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_reading),
                                       cmocka_unit_test(corroborate_refusal)};
    char out[64];
    if (read_back("", out, sizeof out) == 77) return 77;
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
