/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as the FILE of an ablation or as its two command lines must give runs
 * whose commands can be made, or an error with a text, never a crash and never an endless search.
 *
 * TWINSTEP_FUZZ_FORMAT is ablate-file, ablate-lines (--good, a NUL, and --bad) or ablate-toml (two
 * documents with a NUL between them); without it all are tried. Nothing is run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/ablate_leaves.h"
#include "ablate/ablate_plan.h"
#include "ablate/ablate_toml.h"
#include "ablate/ablate_two.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_ablate: broken: %s\n%s\n", what, status_text());
    abort();
}

/* Commands, variables and paths of a run with the factors of `mask`. */
static void make_run(const struct ablate_file *file, uint32_t mask, int arm, struct arena *arena) {
    static const char *const files[ABLATE_FILES_MAX] = {"f", "f", "f", "f", "f", "f", "f", "f"};
    const struct ablate_plan plan = {.file = file};
    const struct ablate_run run = {.mask = mask, .arm = arm};
    const struct ablate_values values = {mask, "/d", "run", "0", "1", "2", files};
    struct ablate_command command;
    char *text;
    require(ablate_command_of(&plan, &run, &values, arena, &command) == STATUS_OK,
            "the command of a file that was read can be made");
    require(command.words.count > 0 || file->command.words.count == 1, "a command has a program");
    for (size_t i = 0; i < command.words.count; i++)
        require(command.words.words[i] != NULL, "each word is a text");
    for (int i = 0; i < READ_KINDS; i++) {
        if (file->read[i] == NULL) continue;
        require(ablate_expand(file, file->read[i], &values, arena, &text) == STATUS_OK &&
                    strstr(text, "/d") != NULL,
                "what is read lies in the run's folder");
    }
}

static void read_file(const char *text, size_t length) {
    struct arena arena = ARENA_EMPTY;
    struct ablate_file *file;
    if (arena_take(&arena, 1, sizeof *file, "a file", &file) != STATUS_OK) return;
    if (ablate_file_parse("fuzz", text, length, &arena, file) != STATUS_OK) {
        require(strncmp(status_text(), "fuzz:", 5) == 0, "an error names the source");
    } else {
        const uint32_t full = (1u << file->factor_count) - 1;
        for (uint32_t i = 0; i < file->factor_count; i++)
            make_run(file, 1u << i, ABLATE_NO_ARM, &arena);
        make_run(file, 0, 0, &arena);
        make_run(file, full, 1, &arena);
    }
    arena_close(&arena);
}

/* Quoting the words of a line for a shell and splitting that gives the words. */
static void split_again(const char *line, struct arena *arena) {
    struct ablate_words words, again;
    char *quoted;
    if (ablate_split("fuzz", line, arena, &words) != STATUS_OK) return;
    require(ablate_quote(&words, arena, &quoted) == STATUS_OK &&
                ablate_split("fuzz", quoted, arena, &again) == STATUS_OK &&
                again.count == words.count,
            "a quoted line can be split");
    for (size_t i = 0; i < words.count; i++)
        require(strcmp(words.words[i], again.words[i]) == 0, "quoting keeps words");
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The command with all factors of `mask`, as it was given, holds these words; in their order, or
 * in another one. */
static void require_words(const struct ablate_file *file, uint32_t mask, const char *const *words,
                          size_t count, int in_order, struct arena *arena) {
    const struct ablate_values values = {mask, "{dir}", "{run}", "{gpu}", "{port}", "{seed}", NULL};
    struct ablate_words made;
    const char **sorted[2];
    require(ablate_expand_words(file, &file->command.words, &values, arena, &made) == STATUS_OK,
            "the words of a command can be made");
    require(made.count == count, "a command has the words of its line");
    for (int i = 0; i < 2; i++) {
        require(arena_take(arena, count, sizeof **sorted, "words", &sorted[i]) == STATUS_OK,
                "memory");
        for (size_t w = 0; w < count; w++)
            sorted[i][w] = i == 0 ? words[w] : made.words[w];
        if (!in_order) qsort(sorted[i], count, sizeof **sorted, compare_texts);
    }
    for (size_t w = 0; w < count; w++)
        require(strcmp(sorted[0][w], sorted[1][w]) == 0, "a command has the words of its line");
}

/* Without factors the template is the first line, word for word; with all, it has the words of the
 * second. */
static void require_lines(const struct ablate_file *file, const char *good, struct arena *arena) {
    struct ablate_words first;
    if (file->composed_count > 0) return;
    require(ablate_split("fuzz", good, arena, &first) == STATUS_OK, "a line was split");
    const struct ablate_values values = {0, "{dir}", "{run}", "{gpu}", "{port}", "{seed}", NULL};
    struct ablate_words made;
    require(ablate_expand_words(file, &file->command.words, &values, arena, &made) == STATUS_OK &&
                made.count <= first.count,
            "the words of a command can be made");
    require_words(file, 0, first.words + (first.count - made.count), made.count, 1, arena);
    require(ablate_expand_words(file, &file->test.words, &values, arena, &made) == STATUS_OK,
            "the words of test can be made");
    require_words(file, (1u << file->factor_count) - 1, made.words, made.count, 0, arena);
}

/* The file that was made of two lines. */
static void read_made(const char *text, const char *good, struct arena *arena) {
    struct ablate_file *file;
    if (arena_take(arena, 1, sizeof *file, "a file", &file) != STATUS_OK) return;
    if (ablate_file_parse("fuzz", text, strlen(text), arena, file) == STATUS_OK)
        require_lines(file, good, arena);
    else
        require(strncmp(status_text(), "fuzz:", 5) == 0, "what is to be mended has a place");
}

static void read_lines(const char *good, const char *bad) {
    struct arena arena = ARENA_EMPTY;
    const struct ablate_two two = {
        .good = good, .bad = bad, .name = "fuzz", .read = {[READ_BYTES] = "{dir}/x"}};
    char *text;
    split_again(good, &arena);
    split_again(bad, &arena);
    if (ablate_two_write(&two, &arena, &text) != STATUS_OK)
        require(status_text()[0] != '\0', "an error has a text");
    else
        read_made(text, good, &arena);
    arena_close(&arena);
}

/* Where two documents differ: nowhere, if the second one is what was written of the first. */
static size_t differences(const char *first, const char *second, struct arena *arena,
                          struct leaves *out) {
    *out = (struct leaves){.paths = {"fuzz", "fuzz"},
                           .kind = LEAVES_TOML,
                           .bytes = {first, second},
                           .lengths = {strlen(first), strlen(second)}};
    require(leaves_parse(arena, out) == STATUS_OK, "what is written can be read");
    return out->count;
}

static void read_toml(const char *first, const char *second) {
    struct arena arena = ARENA_EMPTY;
    const char *const texts[] = {first, second};
    struct leaves leaves, again;
    unsigned char *taken;
    const char *mixed;
    size_t length;
    int valid = 0;
    for (int i = 0; i < 2; i++) {
        struct ablate_pen pen = {.arena = &arena};
        struct toml_node *root;
        if (toml_parse(&arena, "fuzz", texts[i], strlen(texts[i]), &root) != STATUS_OK) {
            require(strncmp(status_text(), "fuzz:", 5) == 0, "an error names the source");
            continue;
        }
        valid++;
        require(toml_write(&pen, &root->node) == STATUS_OK &&
                    differences(texts[i], pen.text, &arena, &leaves) == 0,
                "what is written is what was read");
    }
    if (valid == 2 && differences(first, second, &arena, &leaves) > 0) {
        require(arena_take(&arena, leaves.count, 1, "leaves", &taken) == STATUS_OK, "memory");
        for (size_t l = 0; l < leaves.count; l += 2)
            taken[l] = 1;
        require(leaves_compose(&leaves, taken, &arena, &mixed, &length) == STATUS_OK &&
                    length == strlen(mixed) &&
                    differences(mixed, second, &arena, &again) == leaves.count / 2,
                "a mixed file differs in what was not taken");
        memset(taken, 1, leaves.count);
        require(leaves_compose(&leaves, taken, &arena, &mixed, &length) == STATUS_OK &&
                    differences(mixed, second, &arena, &again) == 0,
                "the first file with all leaves of the second holds what the second holds");
    }
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    char *text = (char *)malloc(size + 2);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    if (format == NULL || strcmp(format, "ablate-file") == 0) read_file(text, size);
    if (format == NULL || strcmp(format, "ablate-lines") == 0)
        read_lines(text, text + strlen(text) + 1);
    if (format == NULL || strcmp(format, "ablate-toml") == 0)
        read_toml(text, text + strlen(text) + 1);
    free(text);
    return 0;
}
