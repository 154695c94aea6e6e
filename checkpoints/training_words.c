/* SPDX-License-Identifier: Apache-2.0
 * A file of names, numbers of a group by key, and the words that stand for the enums. */
#include "checkpoints/training_folder.h"

#include "checkpoints/mapped.h"

#include <string.h>

int training_group_number(const struct training_group *group, const char *key, double *out) {
    for (size_t i = 0; i < group->number_count; i++)
        if (strcmp(group->numbers[i].key, key) == 0) {
            *out = group->numbers[i].value;
            return 1;
        }
    return 0;
}

static enum status split_names(const char *path, const struct mapped *file, struct arena *arena,
                               struct training_given_names *out) {
    const char *at = (const char *)file->bytes;
    const char **names = NULL;
    size_t left = file->length, room = 0;
    while (left > 0) {
        const char *end = (const char *)memchr(at, '\n', left);
        const size_t line = end == NULL ? left : (size_t)(end - at);
        const size_t length = line > 0 && at[line - 1] == '\r' ? line - 1 : line;
        char *copy;
        if (memchr(at, '\0', line) != NULL)
            FAIL(STATUS_INPUT, "%s: expected a text with one name to a line, got a NUL", path);
        if (length > 0 && at[0] != '#') {
            TRY(arena_text(arena, at, length, &copy));
            TRY(arena_grow(arena, out->count + 1, &room, sizeof *names, "names", &names));
            names[out->count++] = copy;
        }
        at += end == NULL ? line : line + 1;
        left -= end == NULL ? line : line + 1;
    }
    out->names = names;
    return STATUS_OK;
}

enum status training_names_read(const char *path, struct arena *arena,
                                struct training_given_names *out) {
    struct mapped file;
    char *copy;
    memset(out, 0, sizeof *out);
    TRY(arena_text(arena, path, strlen(path), &copy));
    out->path = copy;
    TRY(mapped_open(path, &file));
    const enum status status = split_names(path, &file, arena, out);
    mapped_close(&file);
    return status;
}

const char *training_kind_name(enum training_kind kind) {
    static const char *const names[TRAINING_KINDS] = {"huggingface", "accelerate", "lightning",
                                                      "torch",       "folder",     "weights"};
    return names[kind];
}

const char *training_rule_name(enum training_rule rule) {
    static const char *const names[TRAINING_RULES] = {"adam", "amsgrad", "sgd", "lion",
                                                      "adafactor"};
    return names[rule];
}

const char *training_names_name(enum training_names names) {
    static const char *const all[TRAINING_NAMES_KINDS] = {"none",    "given",      "stored",
                                                          "modules", "state dict", "shapes"};
    return all[names];
}
