/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads files by stdio. The folder is removed with all that is in it, two levels
 * deep. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/checkpoints/helper_checkpoint.h"

static char folder[] = "/tmp/twinstep-checkpoints-XXXXXX";

int helper_enter(void **state) {
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static void empty(const char *path, int depth) {
    DIR *directory = opendir(path);
    if (directory == NULL) return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char inner[1024];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0 && depth > 0) {
            empty(inner, depth - 1);
            rmdir(inner);
        }
    }
    closedir(directory);
}

int helper_leave(void **state) {
    (void)state;
    empty(folder, 2);
    return chdir("/") != 0 || rmdir(folder) != 0;
}

void helper_write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail_msg("%s: cannot create", path);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void helper_write_text(const char *path, const char *text) {
    helper_write_bytes(path, text, strlen(text));
}

void helper_write_safetensors(const char *path, const char *header, size_t length) {
    const size_t header_length = strlen(header), total = 8 + header_length + length;
    unsigned char *bytes = (unsigned char *)calloc(1, total);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)header_length >> (8 * i));
    memcpy(bytes + 8, header, header_length);
    for (size_t i = 0; i < length; i++)
        bytes[8 + header_length + i] = (unsigned char)i;
    helper_write_bytes(path, bytes, total);
    free(bytes);
}

unsigned char *helper_read(const char *path, size_t *out_length) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s: cannot open", path);
    assert_int_equal(fstat(fileno(file), &info), 0);
    unsigned char *bytes = (unsigned char *)malloc((size_t)info.st_size + 1);
    assert_non_null(bytes);
    *out_length = fread(bytes, 1, (size_t)info.st_size, file);
    assert_int_equal(*out_length, info.st_size);
    fclose(file);
    return bytes;
}

void helper_require(enum status status, enum status wanted, const char *needle) {
    if (status != wanted) fail_msg("status %d, expected %d: %s", status, wanted, status_text());
    if (strstr(status_text(), needle) == NULL)
        fail_msg("expected: %s\nin: %s", needle, status_text());
}

const char *helper_metadata(const struct safetensors_file *file, const char *key) {
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}
