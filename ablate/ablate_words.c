/* SPDX-License-Identifier: Apache-2.0
 * Puts values in place of placeholders. A level's own text may hold the built-in placeholders and
 * no factor's, so that an expansion ends. */
#include "ablate/ablate_words.h"

#include <string.h>

#include "ablate/ablate_pen.h"

static const char *const built_in[] = {"dir", "seed", "gpu", "port", "run"};

enum ablate_place ablate_place_next(const char **text, const char **piece, size_t *length) {
    const char *const at = *text;
    if (*at == '\0') return PLACE_END;
    *piece = at;
    if ((at[0] == '{' || at[0] == '}') && at[1] == at[0]) {
        *length = 1;
        *text = at + 2;
        return PLACE_TEXT;
    }
    if (*at == '}') return PLACE_BROKEN;
    if (*at != '{') {
        *length = strcspn(at, "{}");
        *text = at + *length;
        return PLACE_TEXT;
    }
    const size_t inside = strcspn(at + 1, "{}");
    if (at[1 + inside] != '}') return PLACE_BROKEN;
    *piece = at + 1;
    *length = inside;
    *text = at + 2 + inside;
    return PLACE_NAME;
}

uint32_t ablate_factor_of(const struct ablate_file *file, const char *name, size_t length) {
    const size_t mark = sizeof ABLATE_FACTOR_MARK - 1;
    uint32_t i = 0;
    if (length > mark && memcmp(name, ABLATE_FACTOR_MARK, mark) == 0) {
        name += mark;
        length -= mark;
    } else if (ablate_is_built_in(name, length)) {
        return file->factor_count;
    }
    while (i < file->factor_count && (strlen(file->factors[i].name) != length ||
                                      memcmp(file->factors[i].name, name, length) != 0))
        i++;
    return i;
}

uint32_t ablate_composed_of(const struct ablate_file *file, const char *name, size_t length) {
    uint32_t i = 0;
    while (i < file->composed_count && (strlen(file->files[i].name) != length ||
                                        memcmp(file->files[i].name, name, length) != 0))
        i++;
    return i;
}

int ablate_is_version(const struct ablate_file *file, const char *name, size_t length) {
    return file->version_count > 0 && length == 7 && memcmp(name, "version", 7) == 0;
}

int ablate_is_built_in(const char *name, size_t length) {
    for (size_t i = 0; i < COUNT_OF(built_in); i++)
        if (strlen(built_in[i]) == length && memcmp(built_in[i], name, length) == 0) return 1;
    return 0;
}

const char *ablate_factor_mark(const char *name) {
    return ablate_is_built_in(name, strlen(name)) ? ABLATE_FACTOR_MARK : "";
}

static const char *built_in_value(const struct ablate_values *values, const char *name) {
    switch (name[0]) {
    case 'd':
        return values->dir;
    case 's':
        return values->seed;
    case 'g':
        return values->gpu;
    case 'p':
        return values->port;
    default:
        return values->run;
    }
}

enum status ablate_shown(const struct ablate_words *words, struct arena *arena,
                         struct ablate_words *out) {
    const char **list;
    TRY(arena_take(arena, words->count, sizeof *list, "words", &list));
    for (size_t i = 0; i < words->count; i++) {
        const char *text = words->words[i];
        char *shown;
        size_t used = 0;
        TRY(arena_take(arena, strlen(text) + 1, 1, "a word", &shown));
        for (; *text != '\0'; text++) {
            shown[used++] = *text;
            if ((*text == '{' || *text == '}') && text[1] == *text) text++;
        }
        list[i] = shown;
    }
    *out = (struct ablate_words){words->count, list};
    return STATUS_OK;
}

static enum status expand(const struct ablate_file *file, const char *text,
                          const struct ablate_values *values, int depth, struct ablate_pen *pen) {
    const char *piece;
    size_t length;
    for (;;) {
        const enum ablate_place place = ablate_place_next(&text, &piece, &length);
        if (place == PLACE_END) return STATUS_OK;
        if (place == PLACE_BROKEN)
            FAIL(STATUS_INTERNAL, "a placeholder that was not checked: %s", text);
        if (place == PLACE_TEXT) {
            TRY(ablate_put(pen, piece, length));
            continue;
        }
        const uint32_t factor = ablate_factor_of(file, piece, length);
        if (ablate_is_version(file, piece, length)) {
            const char *version = file->versions[values->mask];
            TRY(ablate_put(pen, version, strlen(version)));
        } else if (factor == file->factor_count) {
            const uint32_t composed = ablate_composed_of(file, piece, length);
            const char *value = composed < file->composed_count ? values->files[composed]
                                                                : built_in_value(values, piece);
            TRY(ablate_put(pen, value, strlen(value)));
        } else if (depth == 0) {
            const int level = (int)(values->mask >> factor & 1u);
            TRY(expand(file, file->factors[factor].level[level].words[0], values, 1, pen));
        }
    }
}

enum status ablate_expand(const struct ablate_file *file, const char *text,
                          const struct ablate_values *values, struct arena *arena, char **out) {
    struct ablate_pen pen = {.arena = arena};
    TRY(ablate_put(&pen, "", 0));
    TRY(expand(file, text, values, 0, &pen));
    *out = pen.text;
    return STATUS_OK;
}

/* Finds the factor that a word consists of, whose level may have any number of words; else
 * factor_count.
 */
static uint32_t whole_factor(const struct ablate_file *file, const char *word) {
    const char *piece, *rest = word;
    size_t length;
    if (ablate_place_next(&rest, &piece, &length) != PLACE_NAME || *rest != '\0')
        return file->factor_count;
    return ablate_factor_of(file, piece, length);
}

enum status ablate_expand_words(const struct ablate_file *file, const struct ablate_words *words,
                                const struct ablate_values *values, struct arena *arena,
                                struct ablate_words *out) {
    const char **list = NULL;
    size_t room = 0, count = 0;
    for (size_t i = 0; i < words->count; i++) {
        const uint32_t factor = whole_factor(file, words->words[i]);
        struct ablate_words one = {1, &words->words[i]};
        if (factor < file->factor_count)
            one = file->factors[factor].level[values->mask >> factor & 1u];
        TRY(arena_grow(arena, count + one.count + 1, &room, sizeof *list, "a command", &list));
        for (size_t w = 0; w < one.count; w++) {
            char *text;
            TRY(ablate_expand(file, one.words[w], values, arena, &text));
            list[count++] = text;
        }
    }
    *out = (struct ablate_words){count, list};
    return STATUS_OK;
}

static int is_plain(const char *word) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_@%+=:,./-";
    return word[0] != '\0' && word[strspn(word, safe)] == '\0';
}

enum status ablate_quote(const struct ablate_words *words, struct arena *arena, char **out) {
    struct ablate_pen pen = {.arena = arena};
    TRY(ablate_put(&pen, "", 0));
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->words[i];
        if (i > 0) TRY(ablate_put(&pen, " ", 1));
        if (is_plain(word)) {
            TRY(ablate_put(&pen, word, strlen(word)));
            continue;
        }
        TRY(ablate_put(&pen, "'", 1));
        for (; *word != '\0'; word++) {
            if (*word == '\'')
                TRY(ablate_put(&pen, "'\\''", 4));
            else
                TRY(ablate_put(&pen, word, 1));
        }
        TRY(ablate_put(&pen, "'", 1));
    }
    *out = pen.text;
    return STATUS_OK;
}
