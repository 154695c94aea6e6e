/* SPDX-License-Identifier: Apache-2.0
 * Finds embedded files. Invariant: no byte of a model is given out unless the file has the SHA-256
 * that is written here, beside the name: so bits that a scenario starts from cannot change without
 * a change of this file, which a reader sees. */
#include "checkpoints/shipped.h"

#include <stdio.h>
#include <string.h>

#include "determinism/digest.h"

#define PREFIX "builtin:"

static const struct {
    const char *path, *sha256;
} recorded[] = {
    {"builtin:base/config.json",
     "408015b9a7281f3ca1d735e1d90ae4e53ff0c03994a64f13fa74cff83c9b1852"},
    {"builtin:base/model.safetensors",
     "ba45d9fccb5b48bb67f5d9beb14097c80b4a945d4c9c0305d9776a836792e8d2"},
};

int shipped_is(const char *path) {
    return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0;
}

/* Whether `path` is that of the file or of its folder. */
static int is_of(const struct shipped_file *file, const char *path) {
    const size_t length = strlen(path);
    return strncmp(file->path, path, length) == 0 &&
           (file->path[length] == '\0' || file->path[length] == '/');
}

static enum status fail_unknown(const char *path) {
    char names[256] = "";
    size_t used = 0;
    const char *last = "";
    for (const struct shipped_file *file = shipped_files; file->path != NULL; file++) {
        const size_t length = strcspn(file->path, "/");
        if (strncmp(last, file->path, length + 1) == 0) continue;
        last = file->path;
        const int put = snprintf(names + used, sizeof names - used, "%s%.*s", used == 0 ? "" : ", ",
                                 (int)length, file->path);
        used += put > 0 && (size_t)put < sizeof names - used ? (size_t)put : 0;
    }
    FAIL(STATUS_INPUT, "%s: no such model; there is %s", path, names);
}

enum status shipped_check(const struct shipped_file *file) {
    struct digest digest;
    char hex[DIGEST_HEX];
    digest_sha256(file->bytes, file->length, &digest);
    digest_hex(&digest, hex);
    for (size_t i = 0; i < COUNT_OF(recorded); i++)
        if (strcmp(recorded[i].path, file->path) == 0 && strcmp(recorded[i].sha256, hex) == 0)
            return STATUS_OK;
    FAIL(STATUS_INTERNAL, "%s: its bytes have SHA-256 %s, expected the one that is recorded",
         file->path, hex);
}

enum status shipped_find(const char *path, const struct shipped_file **out) {
    for (*out = shipped_files; (*out)->path != NULL; (*out)++)
        if (is_of(*out, path)) return shipped_check(*out);
    return fail_unknown(path);
}
