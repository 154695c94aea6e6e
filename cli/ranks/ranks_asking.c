/* SPDX-License-Identifier: Apache-2.0
 * Reads numbers, lists and words of the verbs of ranks. */
#include "cli/ranks/ranks_asking.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "scenarios/suggest.h"

#define EXTENT_MAX ((uint64_t)1 << 48)

enum status ranks_ask_number(const struct options *options, int key, const char *name,
                             uint64_t least, uint64_t most, uint64_t *out) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out < least || *out > most)
        FAIL(STATUS_INPUT, "%s: expected a whole number from %llu to %llu, got \"%s\"", name,
             (unsigned long long)least, (unsigned long long)most, text);
    return STATUS_OK;
}

enum status ranks_need_number(const struct options *options, int key, const char *name,
                              uint64_t least, uint64_t most, uint64_t *out) {
    if (options_value(options, key) == NULL)
        FAIL(STATUS_INPUT, "%s: expected a whole number from %llu to %llu, got nothing", name,
             (unsigned long long)least, (unsigned long long)most);
    return ranks_ask_number(options, key, name, least, most, out);
}

enum status ranks_ask_list(const struct options *options, int key, const char *name,
                           struct arena *arena, uint64_t **out, size_t *out_count) {
    const char *text = options_value(options, key);
    *out = NULL;
    *out_count = 0;
    if (text == NULL) return STATUS_OK;
    TRY(arena_take(arena, strlen(text) + 1, sizeof **out, name, out));
    for (const char *rest = text; rest != NULL;) {
        char *word;
        const size_t length = strcspn(rest, ",");
        TRY(arena_text(arena, rest, length, &word));
        if (number_parse_uint(word, &(*out)[*out_count]) != STATUS_OK)
            FAIL(STATUS_INPUT, "%s: expected whole numbers between commas, got \"%s\" in \"%s\"",
                 name, word, text);
        *out_count += 1;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return STATUS_OK;
}

/* Reads 59x59 at `word`, which it takes apart; errors show it as it was, `given`. */
static enum status read_shape(const char *name, char *word, const char *given, uint64_t *rows,
                              uint64_t *row_length) {
    const int length = (int)strcspn(given, ",");
    char *rest = word;
    *row_length = 1;
    for (int i = 0; rest != NULL; i++) {
        char *next = strchr(rest, 'x');
        uint64_t extent;
        if (next != NULL) *next++ = '\0';
        if (number_parse_uint(rest, &extent) != STATUS_OK || extent == 0 || extent > EXTENT_MAX)
            FAIL(STATUS_INPUT, "%s: expected shapes between commas, as 59x59,59, got \"%s\"", name,
                 rest);
        const int fits = i == 0 || extent <= EXTENT_MAX / *row_length;
        if (i == 0)
            *rows = extent;
        else if (fits)
            *row_length *= extent;
        if (!fits || *rows > EXTENT_MAX / *row_length)
            FAIL(STATUS_INPUT, "%s: expected at most 2^48 elements of a parameter, got %.*s", name,
                 length, given);
        rest = next;
    }
    return STATUS_OK;
}

enum status ranks_ask_shapes(const struct options *options, int key, const char *name,
                             struct arena *arena, uint64_t **out_rows, uint64_t **out_row_lengths,
                             size_t *out_count) {
    const char *text = options_value(options, key);
    *out_count = 0;
    if (text == NULL)
        FAIL(STATUS_INPUT, "%s: expected shapes between commas, as 59x59,59, got nothing", name);
    TRY(arena_take(arena, strlen(text) + 1, sizeof **out_rows, name, out_rows));
    TRY(arena_take(arena, strlen(text) + 1, sizeof **out_row_lengths, name, out_row_lengths));
    for (const char *rest = text; rest != NULL;) {
        char *word;
        const size_t length = strcspn(rest, ",");
        TRY(arena_text(arena, rest, length, &word));
        TRY(read_shape(name, word, rest, &(*out_rows)[*out_count],
                       &(*out_row_lengths)[*out_count]));
        *out_count += 1;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return STATUS_OK;
}

enum status ranks_ask_word(const struct options *options, int key, const char *name,
                           const char *const *words, size_t count, int *out) {
    const char *text = options_value(options, key);
    struct suggestion nearest = {.word = text};
    char hint[SUGGEST_HINT_SIZE], list[256];
    size_t at = 0;
    if (text == NULL) return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = (int)i;
            return STATUS_OK;
        }
        suggest_offer(&nearest, words[i]);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                               i == 0           ? ""
                               : i + 1 == count ? " or "
                                                : ", ",
                               words[i]);
    }
    FAIL(STATUS_INPUT, "%s: expected %s, got \"%s\"%s", name, list, text,
         suggest_hint(&nearest, hint));
}

enum status ranks_ask_dtype(const struct options *options, int key, enum dtype *out) {
    const char *words[DTYPE_COUNT];
    int dtype = DTYPE_F32;
    for (int i = 0; i < DTYPE_COUNT; i++)
        words[i] = dtype_name((enum dtype)i);
    TRY(ranks_ask_word(options, key, "--dtype", words, DTYPE_COUNT, &dtype));
    *out = (enum dtype)dtype;
    return STATUS_OK;
}
