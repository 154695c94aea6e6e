/* SPDX-License-Identifier: Apache-2.0
 * Runs the fuzz target over a committed corpus without libFuzzer: replay FOLDER [LEAST]. Each
 * folder in FOLDER is named like the format whose inputs it holds; each input is also given without
 * a format. There must be more than LEAST inputs (50 where it is not given). */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, const char *format) {
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint8_t *exact = (uint8_t *)malloc(size + (size == 0)); /* the sanitizer sees its end */
    if (exact == NULL) return -1;
    memcpy(exact, bytes, size);
    setenv("TWINSTEP_FUZZ_FORMAT", format, 1);
    LLVMFuzzerTestOneInput(exact, size);
    unsetenv("TWINSTEP_FUZZ_FORMAT");
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int replay_folder(const char *path, const char *format) {
    char name[4096];
    int count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) return 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        const int got =
            format == NULL ? replay_folder(name, entry->d_name) : replay_file(name, format);
        if (got < 0) fprintf(stderr, "%s: cannot read\n", name);
        if (got < 0) exit(1);
        count += got;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) return 2;
    const int count = replay_folder(argv[1], NULL);
    printf("%d inputs\n", count);
    return count > (argc == 3 ? atoi(argv[2]) : 50) ? 0 : 1; /* an empty corpus proves nothing */
}
