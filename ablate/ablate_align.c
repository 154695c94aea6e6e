/* SPDX-License-Identifier: Apache-2.0
 * First the words that stand for themselves are told from values of options, by the longest common
 * subsequence of those that can be either; then what is left is cut into units, and units of one
 * name are paired. A value that both lines have behind the same option is no such word, so equal
 * numbers of two options are never taken for one word. */
#include "ablate/ablate_align.h"

#include <string.h>

#include "base/number.h"

int align_is_option(const char *word) {
    const char second = word[0] == '-' ? word[1] : '\0';
    return second != '\0' && !(second >= '0' && second <= '9') && second != '.';
}

/* Finds the key of what Hydra and OmegaConf call an override: "key=value" with "+" or "++" before
 * it, or "~key". Returns the key's length and sets *out_key to its begin; 0: the word is none.
 * "torch==2.1" asks for a version. */
static size_t key_of(const char *word, const char **out_key) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                 "0123456789./@-[]";
    const int taken_out = word[0] == '~';
    const size_t before = taken_out ? 1 : strspn(word, "+");
    const char *const key = word + before;
    *out_key = key;
    if (before > 2 || key[0] == '\0' || strchr(letters, key[0]) == NULL) return 0;
    const size_t length = strspn(key, inside);
    if (key[length] == '\0') return taken_out ? length : 0;
    return key[length] == '=' && key[length + 1] != '=' ? length : 0;
}

static int is_key(const char *word) {
    const char *key;
    return key_of(word, &key) > 0;
}

static int is_number(const char *word) {
    double number;
    return number_parse_real(word, NUMBER_SPECIAL | NUMBER_HEX, &number) == STATUS_OK;
}

/* "-l0.1" is option -l with its value. Of "-lr" nobody can tell, so the value must be a number. */
static int is_short_joined(const char *word) {
    return word[0] == '-' && word[1] != '-' && align_is_option(word) && is_number(word + 2);
}

size_t align_head(const char *word, int inner) {
    const char *equals = strchr(word, '='), *key;
    if (is_short_joined(word)) return 2;
    if (equals == NULL) return 0;
    if (!align_is_option(word)) return is_key(word) ? (size_t)(equals - word) + 1 : 0;
    const size_t head = (size_t)(equals - word) + 1;
    const size_t length = inner ? key_of(word + head, &key) : 0;
    if (length == 0 || key[length] != '=') return head;
    return (size_t)(key + length - word) + 1;
}

/* ---- words ---- */

enum word_kind { WORD_PLAIN = 0, WORD_OPTION, WORD_JOINED, WORD_KEY };

/* What a plain word is known to be. */
enum word_place {
    PLACE_FREE = 0, /* no option stands before it: it stands for itself */
    PLACE_EXCESS,   /* behind more values than the option has elsewhere */
    PLACE_FIRST,    /* the first behind an option that stands nowhere else */
    PLACE_VALUE     /* the option's */
};

struct word {
    enum word_kind kind;
    enum word_place place;
    size_t head;    /* the option whose value it may be, or ALIGN_NONE */
    size_t number;  /* of it among those behind the option, from 0 */
    size_t partner; /* the equal word of the other line, where both stand for themselves */
    int held;       /* of what sets a key: the option before it keeps it as its value */
    int paired;     /* it and the option before it are one unit: "--set a=1" */
};

struct text {
    const struct ablate_words *words;
    struct word *word;
};

/* The length of an option's name, without what "=" joins to it, or nothing does: "-l0.1". */
static size_t name_length(const char *option) {
    return is_short_joined(option) ? 2 : strcspn(option, "=");
}

static int is_named(const struct text *text, size_t at, const char *option) {
    const enum word_kind kind = text->word[at].kind;
    const char *const word = text->words->words[at];
    return (kind == WORD_OPTION || kind == WORD_JOINED) &&
           name_length(word) == name_length(option) &&
           memcmp(word, option, name_length(option)) == 0;
}

static void look(struct text *text) {
    size_t head = ALIGN_NONE, number = 0;
    for (size_t i = 0; i < text->words->count; i++) {
        const char *const word = text->words->words[i];
        struct word *const of = &text->word[i];
        *of = (struct word){.head = ALIGN_NONE, .partner = ALIGN_NONE};
        if (align_is_option(word)) {
            of->kind = name_length(word) == strlen(word) ? WORD_OPTION : WORD_JOINED;
            head = of->kind == WORD_OPTION && strcmp(word, "--") != 0 ? i : ALIGN_NONE;
            number = 0;
        } else if (is_key(word)) {
            of->kind = WORD_KEY;
            head = ALIGN_NONE;
        } else if (head != ALIGN_NONE) {
            of->head = head;
            of->number = number++;
        }
    }
}

/* How many words an option has that may be its values. */
static size_t run_of(const struct text *text, size_t option) {
    size_t length = 0;
    if (option + 1 < text->words->count && text->word[option + 1].held) return 1;
    while (option + 1 + length < text->words->count &&
           text->word[option + 1 + length].head == option)
        length++;
    return length;
}

/* ---- keys ---- */

static int is_directly_behind_option(const struct text *text, size_t at) {
    return at > 0 && text->word[at - 1].kind == WORD_OPTION;
}

/* Says whether a line sets this key. */
static int sets_key(const struct text *text, const char *key, size_t length) {
    for (size_t i = 0; i < text->words->count; i++) {
        const char *other;
        if (text->word[i].kind == WORD_KEY && key_of(text->words->words[i], &other) == length &&
            memcmp(key, other, length) == 0)
            return 1;
    }
    return 0;
}

/* How a line uses an option: how often, how often what sets a key stands directly behind it or is
 * joined to it, and how often it has another value. */
struct use {
    size_t count, keys, values;
};

static struct use use_of(const struct text *text, const char *option) {
    struct use use = {0, 0, 0};
    for (size_t i = 0; i < text->words->count; i++) {
        if (!is_named(text, i, option)) continue;
        const char *const word = text->words->words[i];
        const int joined = text->word[i].kind == WORD_JOINED;
        const int key = joined ? is_key(word + align_head(word, 0))
                               : i + 1 < text->words->count && text->word[i + 1].kind == WORD_KEY;
        use.count++;
        use.keys += (size_t)key;
        use.values += !key && (joined || run_of(text, i) > 0);
    }
    return use;
}

/* Says whether an option is one that is given once for each key: "--set a=1 --set b=2". */
static int takes_keys(const struct text texts[2], const char *option) {
    const struct use a = use_of(&texts[0], option), b = use_of(&texts[1], option);
    return (a.count > 1 || b.count > 1) && a.keys == a.count && b.keys == b.count;
}

/* Says whether a line sets a key without an option before it, as the programs that take keys do. */
static int sets_bare_keys(const struct text *text) {
    for (size_t i = 0; i < text->words->count; i++)
        if (text->word[i].kind == WORD_KEY && !is_directly_behind_option(text, i)) return 1;
    return 0;
}

/* A key that only this line sets, directly behind an option, may be the option's value, as in
 * "--model_args dtype=bf16", and then neither can stand without the other. It is one where the
 * option has values elsewhere, and none where it stands elsewhere without one; else where no key
 * stands bare in either line. */
static int may_be_value(const struct text texts[2], int side, size_t at) {
    const struct text *mine = &texts[side], *theirs = &texts[1 - side];
    const char *const option = mine->words->words[at - 1], *key;
    const size_t length = key_of(mine->words->words[at], &key);
    const struct use own = use_of(mine, option), other = use_of(theirs, option);
    if (sets_key(theirs, key, length)) return 0;
    if (own.keys + own.values < own.count || other.keys + other.values < other.count) return 0;
    return own.values + other.values > 0 ||
           !(sets_bare_keys(&texts[0]) || sets_bare_keys(&texts[1]));
}

static void join_keys(const struct text texts[2]) {
    for (int side = 0; side < 2; side++)
        for (size_t i = 1; i < texts[side].words->count; i++) {
            if (texts[side].word[i].kind != WORD_KEY || !is_directly_behind_option(&texts[side], i))
                continue;
            if (takes_keys(texts, texts[side].words->words[i - 1]))
                texts[side].word[i].paired = 1;
            else
                texts[side].word[i].held = may_be_value(texts, side, i);
        }
}

/* ---- values ---- */

/* Counts how often an option stands in both lines, and says how many values it has at least. */
static size_t occurrences(const struct text texts[2], const char *option, size_t *out_least) {
    size_t count = 0;
    *out_least = SIZE_MAX;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < texts[side].words->count; i++) {
            if (!is_named(&texts[side], i, option)) continue;
            const size_t run =
                texts[side].word[i].kind == WORD_JOINED ? 1 : run_of(&texts[side], i);
            if (run < *out_least) *out_least = run;
            count++;
        }
    return count;
}

static void place_words(const struct text texts[2]) {
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < texts[side].words->count; i++) {
            size_t least;
            if (texts[side].word[i].kind != WORD_OPTION) continue;
            const size_t run = run_of(&texts[side], i);
            const size_t count = occurrences(texts, texts[side].words->words[i], &least);
            for (size_t n = 0; n < run; n++)
                texts[side].word[i + 1 + n].place = count > 1
                                                        ? (n < least ? PLACE_VALUE : PLACE_EXCESS)
                                                    : n == 0 ? PLACE_FIRST
                                                             : PLACE_EXCESS;
        }
}

/* ---- words that stand for themselves ---- */

/* A value is one of its option's, but for one behind others that stands for itself in the other
 * line. Two numbers, each behind an option that only its line has, are values: "--nodes 2" and
 * "--seed 2". */
static int can_be_one(const struct text texts[2], size_t i, size_t j) {
    const struct word *const of[2] = {&texts[0].word[i], &texts[1].word[j]};
    const char *const word = texts[0].words->words[i];
    if (of[0]->kind != WORD_PLAIN || of[1]->kind != WORD_PLAIN ||
        strcmp(word, texts[1].words->words[j]) != 0)
        return 0;
    for (int side = 0; side < 2; side++)
        if (of[side]->place == PLACE_VALUE &&
            (of[side]->number == 0 || of[1 - side]->place != PLACE_FREE || is_number(word)))
            return 0;
    return !(of[0]->place == PLACE_FIRST && of[1]->place == PLACE_FIRST && is_number(word));
}

static enum status find_anchors(const struct text texts[2], struct arena *arena) {
    const size_t m = texts[0].words->count, n = texts[1].words->count, row = n + 1;
    uint16_t *longest; /* from word i of the first and word j of the second line on */
    TRY(arena_take(arena, (m + 1) * row, sizeof *longest, "words of commands", &longest));
    for (size_t i = m; i > 0; i--)
        for (size_t j = n; j > 0; j--) {
            const uint16_t *const below = &longest[i * row + j];
            const uint16_t *const right = &longest[(i - 1) * row + j];
            uint16_t best = below[-1] > right[0] ? below[-1] : right[0];
            if (below[0] >= best && can_be_one(texts, i - 1, j - 1))
                best = (uint16_t)(below[0] + 1);
            longest[(i - 1) * row + j - 1] = best;
        }
    for (size_t i = 0, j = 0; i < m && j < n;) {
        const uint16_t here = longest[i * row + j];
        if (can_be_one(texts, i, j) && here == longest[(i + 1) * row + j + 1] + 1) {
            texts[0].word[i].partner = j;
            texts[1].word[j].partner = i;
            i++;
            j++;
        } else if (here == longest[(i + 1) * row + j]) {
            i++;
        } else {
            j++;
        }
    }
    return STATUS_OK;
}

/* Whatever stands behind a word that stands for itself is no value either. */
static void free_words(const struct text *text) {
    size_t freed = ALIGN_NONE;
    for (size_t i = 0; i < text->words->count; i++) {
        struct word *of = &text->word[i];
        if (of->kind != WORD_PLAIN || of->head == ALIGN_NONE) continue;
        if (of->partner != ALIGN_NONE) freed = of->head;
        if (of->head == freed) of->head = ALIGN_NONE;
    }
}

/* ---- units ---- */

/* Names a unit that sets a key; behind an option that is given once for each key, by both. */
static enum status name_key(const char *option, size_t option_length, const char *word,
                            struct arena *arena, struct align_unit *out) {
    const char *key;
    char *name, *shown;
    const size_t length = key_of(word, &key);
    TRY(arena_text(arena, key, length, &shown));
    TRY(arena_format(arena, &name, "%.*s%s%s", (int)option_length, option,
                     option_length > 0 ? " " : "", shown));
    out->name = name;
    out->shown = shown;
    return STATUS_OK;
}

static enum status name_unit(const struct text texts[2], int side, size_t at, struct arena *arena,
                             struct align_unit *out) {
    const struct text *text = &texts[side];
    const char *const word = text->words->words[at];
    const size_t length = name_length(word);
    char *name;
    switch (text->word[at].kind) {
    case WORD_PLAIN:
        return STATUS_OK;
    case WORD_KEY:
        return name_key("", 0, word, arena, out);
    case WORD_JOINED:
        if (takes_keys(texts, word))
            return name_key(word, length, word + align_head(word, 0), arena, out);
        break;
    default:
        break;
    }
    TRY(arena_text(arena, word, length, &name));
    out->name = out->shown = name;
    return STATUS_OK;
}

static enum status cut(const struct text texts[2], int side, struct arena *arena,
                       struct align_line *out) {
    const struct text *text = &texts[side];
    TRY(arena_take(arena, text->words->count + 1, sizeof *out->units, "options", &out->units));
    for (size_t i = 0; i < text->words->count; i++) {
        const struct word *of = &text->word[i];
        struct align_unit *last = out->count == 0 ? NULL : &out->units[out->count - 1];
        if (last != NULL && (of->held || of->paired || of->head != ALIGN_NONE)) {
            last->count++;
            last->holds_keys |= of->held;
            const char *const option = text->words->words[i - 1];
            if (of->paired)
                TRY(name_key(option, strlen(option), text->words->words[i], arena, last));
            continue;
        }
        const int adheres = last != NULL && of->partner != ALIGN_NONE && of->place == PLACE_FIRST;
        if (adheres) last->adheres = 1;
        struct align_unit *unit = &out->units[out->count++];
        *unit = (struct align_unit){.name = "",
                                    .shown = "",
                                    .from = i,
                                    .count = 1,
                                    .partner = ALIGN_NONE,
                                    .before = ALIGN_NONE,
                                    .anchor = of->partner != ALIGN_NONE};
        TRY(name_unit(texts, side, i, arena, unit));
    }
    for (size_t u = 1; u < out->count; u++)
        out->units[u].segment = out->units[u - 1].segment + (size_t)out->units[u - 1].anchor;
    return STATUS_OK;
}

/* ---- pairs ---- */

static void pair(struct align_line lines[2], size_t a, size_t b) {
    lines[0].units[a].partner = b;
    lines[1].units[b].partner = a;
}

/* Anchors are as many in both lines, in one order. */
static void pair_anchors(struct align_line lines[2]) {
    size_t b = 0;
    for (size_t a = 0; a < lines[0].count; a++) {
        if (!lines[0].units[a].anchor) continue;
        while (!lines[1].units[b].anchor)
            b++;
        pair(lines, a, b++);
    }
}

/* An option of one line alone whose value may be the anchor behind it. */
static int is_at_anchor(const struct align_unit *unit) {
    return unit->adheres && unit->partner == ALIGN_NONE && !unit->gone;
}

/* Two options of which each may have the same anchor as its value take one another's place. */
static void pair_adhering(struct align_line lines[2]) {
    for (size_t a = 1; a < lines[0].count; a++) {
        const size_t b = lines[0].units[a].partner;
        if (lines[0].units[a].anchor && b > 0 && is_at_anchor(&lines[0].units[a - 1]) &&
            is_at_anchor(&lines[1].units[b - 1]))
            pair(lines, a - 1, b - 1);
    }
}

static int same_unit(const struct align_line lines[2], size_t a, size_t b) {
    const struct align_unit *x = &lines[0].units[a], *y = &lines[1].units[b];
    if (x->count != y->count) return 0;
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(lines[0].words.words[x->from + i], lines[1].words.words[y->from + i]) != 0)
            return 0;
    return 1;
}

/* The units of a line with this name that have no partner yet. */
static size_t list_named(const struct align_line *line, const char *name, size_t *out) {
    size_t count = 0;
    for (size_t u = 0; u < line->count; u++)
        if (line->units[u].partner == ALIGN_NONE && strcmp(line->units[u].name, name) == 0)
            out[count++] = u;
    return count;
}

/* What two units of one name are worth as a pair: any pair more than all that is said of others,
 * then one between the same anchors, then an equal one. */
static uint64_t worth(const struct align_line lines[2], size_t a, size_t b) {
    const int near = lines[0].units[a].segment == lines[1].units[b].segment;
    return ((uint64_t)1 << 40) + ((uint64_t)near << 20) + (uint64_t)same_unit(lines, a, b);
}

/* Pairs units of one name in their order: as many as can be, and of these the best. */
static enum status pair_named(struct align_line lines[2], const char *name, size_t *first,
                              size_t *second, struct arena *arena) {
    const size_t m = list_named(&lines[0], name, first), n = list_named(&lines[1], name, second);
    const size_t row = n + 1;
    uint64_t *best;
    if (m == 0 || n == 0) return STATUS_OK;
    TRY(arena_take(arena, (m + 1) * row, sizeof *best, "options", &best));
    for (size_t i = m; i > 0; i--)
        for (size_t j = n; j > 0; j--) {
            const uint64_t taken = best[i * row + j] + worth(lines, first[i - 1], second[j - 1]);
            const uint64_t a = best[i * row + j - 1], b = best[(i - 1) * row + j];
            best[(i - 1) * row + j - 1] = taken >= a && taken >= b ? taken : a > b ? a : b;
        }
    for (size_t i = 0, j = 0; i < m && j < n;) {
        const uint64_t here = best[i * row + j];
        if (here == best[(i + 1) * row + j + 1] + worth(lines, first[i], second[j]))
            pair(lines, first[i++], second[j++]);
        else if (here == best[(i + 1) * row + j])
            i++;
        else
            j++;
    }
    return STATUS_OK;
}

static enum status pair_names(struct align_line lines[2], struct arena *arena) {
    size_t *first, *second;
    TRY(arena_take(arena, lines[0].count + 1, sizeof *first, "options", &first));
    TRY(arena_take(arena, lines[1].count + 1, sizeof *second, "options", &second));
    for (size_t u = 0; u < lines[0].count; u++) {
        const struct align_unit *unit = &lines[0].units[u];
        if (unit->name[0] != '\0' && unit->partner == ALIGN_NONE)
            TRY(pair_named(lines, unit->name, first, second, arena));
    }
    return STATUS_OK;
}

/* ---- words between anchors ---- */

/* The words for themselves of a segment, without partners. */
struct between {
    size_t first, count;
    int together; /* nothing stands between them */
};

static struct between between_of(const struct align_line *line, size_t segment) {
    struct between out = {ALIGN_NONE, 0, 1};
    for (size_t u = 0; u < line->count; u++) {
        const struct align_unit *unit = &line->units[u];
        if (unit->segment != segment || unit->name[0] != '\0' || unit->partner != ALIGN_NONE ||
            unit->gone)
            continue;
        if (out.first == ALIGN_NONE) out.first = u;
        out.together &= u == out.first + out.count;
        out.count++;
    }
    return out;
}

/* Makes one unit of the units [first, end). */
static void join(struct align_line *line, size_t first, size_t end) {
    for (size_t u = first + 1; u < end; u++) {
        line->units[first].count += line->units[u].count;
        line->units[u].count = 0;
        line->units[u].gone = 1;
    }
}

static size_t next_between(const struct align_line *line, size_t segment, size_t from) {
    size_t u = from;
    while (line->units[u].segment != segment || line->units[u].name[0] != '\0' ||
           line->units[u].partner != ALIGN_NONE || line->units[u].gone)
        u++;
    return u;
}

/* As many words in both lines take one another's place in their order; others do so together, if
 * they stand together. */
static void pair_between(struct align_line lines[2], size_t segment) {
    const struct between a = between_of(&lines[0], segment), b = between_of(&lines[1], segment);
    if (a.count == 0 || b.count == 0) return;
    if (a.count != b.count && a.together && b.together) {
        join(&lines[0], a.first, a.first + a.count);
        join(&lines[1], b.first, b.first + b.count);
        pair(lines, a.first, b.first);
        return;
    }
    size_t i = a.first, j = b.first;
    for (size_t left = a.count < b.count ? a.count : b.count; left > 0; left--) {
        i = next_between(&lines[0], segment, i);
        j = next_between(&lines[1], segment, j);
        pair(lines, i, j);
    }
}

/* What stands before the first anchor; ALIGN_NONE: there is no anchor. */
static size_t before_anchors(const struct align_line *line) {
    for (size_t u = 0; u < line->count; u++)
        if (line->units[u].anchor) return u;
    return ALIGN_NONE;
}

/* Options of two launchers ("torchrun --nproc 2", "accelerate launch") are not each other's, and go
 * with neither program but their own: where no option before the first anchor is in both lines, all
 * that stands there is one unit. */
static void join_launchers(struct align_line lines[2]) {
    const size_t ends[2] = {before_anchors(&lines[0]), before_anchors(&lines[1])};
    if (ends[0] == ALIGN_NONE || (ends[0] == 0 && ends[1] == 0)) return;
    for (int side = 0; side < 2; side++)
        for (size_t u = 0; u < ends[side]; u++)
            if (lines[side].units[u].partner != ALIGN_NONE) return;
    for (int side = 0; side < 2; side++)
        if (ends[side] > 0) join(&lines[side], 0, ends[side]);
    if (ends[0] > 0 && ends[1] > 0) pair(lines, 0, 0);
}

/* Finds where a unit that only the second line has would stand in the first: before the unit that
 * follows it, if that stands between the same anchors. An option of the first line that may have
 * the anchor as its value stays at it. */
static void place_unit(struct align_line lines[2], size_t u) {
    const struct align_unit *const units = lines[1].units;
    size_t at = lines[0].count;
    for (size_t v = u + 1; v < lines[1].count; v++) {
        if (units[v].partner == ALIGN_NONE) continue;
        at = units[v].partner;
        if (lines[0].units[at].segment == units[u].segment) break;
        at = lines[0].count;
    }
    const int is_last = at == 0 || at == lines[0].count || !lines[0].units[at].anchor;
    if (!is_last && !units[u].adheres && is_at_anchor(&lines[0].units[at - 1])) at--;
    lines[1].units[u].before = at;
}

enum status ablate_align(struct align_line lines[2], struct arena *arena) {
    struct text texts[2];
    for (int side = 0; side < 2; side++) {
        struct text *text = &texts[side];
        text->words = &lines[side].words;
        if (text->words->count > ALIGN_WORDS_MAX)
            FAIL(STATUS_INPUT, "%s: more than %d words", side == 0 ? "--good" : "--bad",
                 ALIGN_WORDS_MAX);
        TRY(arena_take(arena, text->words->count, sizeof *text->word, "words", &text->word));
        look(text);
    }
    join_keys(texts);
    place_words(texts);
    TRY(find_anchors(texts, arena));
    for (int side = 0; side < 2; side++)
        free_words(&texts[side]);
    for (int side = 0; side < 2; side++)
        TRY(cut(texts, side, arena, &lines[side]));
    pair_anchors(lines);
    TRY(pair_names(lines, arena));
    join_launchers(lines);
    pair_adhering(lines);
    for (size_t segment = 0; segment <= lines[0].count; segment++)
        pair_between(lines, segment);
    for (size_t u = 0; u < lines[1].count; u++)
        if (lines[1].units[u].partner == ALIGN_NONE && !lines[1].units[u].gone)
            place_unit(lines, u);
    return STATUS_OK;
}
