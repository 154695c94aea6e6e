/* SPDX-License-Identifier: Apache-2.0
 * Makes factors of the units of two command lines (ablate_align.h) that are not alike in both, and
 * a template in which each stands where its line has it. What has no partner in the other line is a
 * factor, too. The order of options and keys does not count; where it matters after all, closure
 * stays open. */
#include "ablate/ablate_two.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate/ablate_align.h"
#include "ablate/ablate_batch.h"
#include "ablate/ablate_leaves.h"
#include "ablate/ablate_pen.h"
#include "ablate/ablate_words.h"
#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

#define DIR "{dir}"
#define BATCH "effective_batch" /* the factor of the settings that make one */
#define FACTORS_MOST 200 /* that are listed; more than 16 must be joined before they are run */

enum status ablate_split(const char *label, const char *line, struct arena *arena,
                         struct ablate_words *out) {
    static const char shell[] = "$`|&;<>()*?[]#~!";
    const char **words = NULL;
    size_t room = 0, count = 0, used = 0;
    char *text;
    char quote = '\0';
    int open = 0; /* a word has begun, which may be empty */
    TRY(arena_take(arena, 2 * strlen(line) + 2, 1, "a command", &text));
    for (const char *at = line;; at++) {
        if (*at == '\0' || (quote == '\0' && strchr(" \t\n", *at) != NULL)) {
            if (*at == '\0' && quote != '\0')
                FAIL(STATUS_INPUT, "%s: a quote %c that nothing closes", label, quote);
            if (open) {
                char *word;
                TRY(arena_text(arena, text, used, &word));
                TRY(arena_grow(arena, count + 1, &room, sizeof *words, "a command", &words));
                words[count++] = word;
            }
            used = 0;
            open = 0;
            if (*at == '\0') break;
            continue;
        }
        if (*at == '\\' && at[1] == '\n' && quote != '\'') {
            at++; /* the line goes on, within a word, too */
            continue;
        }
        open = 1;
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == quote) {
            quote = '\0';
        } else if (*at == '\\' && quote != '\'') {
            const int kept = quote == '"' && strchr("\"\\$`", at[1]) == NULL;
            if (at[1] == '\0') FAIL(STATUS_INPUT, "%s: a backslash at its end", label);
            if (kept) text[used++] = '\\';
            text[used++] = *++at;
        } else if ((quote == '\0' && strchr(shell, *at) != NULL) ||
                   (quote == '"' && (*at == '$' || *at == '`'))) {
            FAIL(STATUS_INPUT,
                 "%s: %c at character %zu: no shell reads this line; put it in single quotes if it "
                 "is meant, or write a script",
                 label, *at, (size_t)(at - line) + 1);
        } else {
            text[used++] = *at;
        }
    }
    *out = (struct ablate_words){count, words};
    return STATUS_OK;
}

/* ---- lines ---- */

struct line {
    struct align_line aligned;     /* the command's own words */
    struct ablate_words variables; /* "NAME=VALUE" before the command */
};

static int is_assignment(const char *word) {
    const size_t name =
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return name > 0 && word[name] == '=' && !(word[0] >= '0' && word[0] <= '9');
}

static enum status read_line(const char *label, const char *text, struct arena *arena,
                             struct line *out) {
    struct ablate_words all;
    memset(out, 0, sizeof *out);
    TRY(ablate_split(label, text, arena, &all));
    size_t variables = 0;
    while (variables < all.count && is_assignment(all.words[variables]))
        variables++;
    if (variables == all.count) FAIL(STATUS_INPUT, "%s: expected a command, got none", label);
    out->variables = (struct ablate_words){variables, all.words};
    out->aligned.words = (struct ablate_words){all.count - variables, all.words + variables};
    return STATUS_OK;
}

/* ---- the text ---- */

struct making {
    struct arena *arena;
    struct line lines[2];
    struct ablate_pen command, factors, files, notes;
    const char *names[FACTORS_MOST];
    const char *const *read; /* (READ_KINDS) what a run leaves, as it was given */
    uint32_t factor_count, file_count;
};

/* Doubles the braces of a user's word that are no placeholder of ours. */
static enum status escape(const char *word, struct arena *arena, char **out) {
    char *text;
    size_t used = 0;
    TRY(arena_take(arena, 2 * strlen(word) + 1, 1, "a word", &text));
    while (*word != '\0') {
        const size_t inside = *word == '{' ? strcspn(word + 1, "{}") : 0;
        if (*word == '{' && word[1 + inside] == '}' && ablate_is_built_in(word + 1, inside)) {
            memcpy(text + used, word, inside + 2);
            used += inside + 2;
            word += inside + 2;
            continue;
        }
        if (*word == '{' || *word == '}') text[used++] = *word;
        text[used++] = *word++;
    }
    text[used] = '\0';
    *out = text;
    return STATUS_OK;
}

static enum status quote_word(const char *word, struct arena *arena, char **out) {
    char *escaped;
    TRY(escape(word, arena, &escaped));
    return leaves_quote(escaped, arena, out);
}

/* ["a", "b"] */
static enum status quote_words(const char *const *words, size_t count, struct arena *arena,
                               char **out) {
    TRY(arena_format(arena, out, "["));
    for (size_t i = 0; i < count; i++) {
        char *quoted;
        TRY(quote_word(words[i], arena, &quoted));
        TRY(arena_format(arena, out, "%s%s%s", *out, i == 0 ? "" : ", ", quoted));
    }
    return arena_format(arena, out, "%s]", *out);
}

/* Says whether it is "file" and a number, as composed files are called here. */
static int is_file_name(const char *name) {
    return strncmp(name, "file", 4) == 0 && name[4] != '\0' &&
           name[4 + strspn(name + 4, "0123456789")] == '\0';
}

/* Makes a name of letters, digits and _-. that no factor has yet. */
static enum status name_factor(struct making *making, const char *from, char **out) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    char name[ABLATE_NAME_MAX - 4], tried[ABLATE_NAME_MAX + 8];
    while (*from == '-')
        from++;
    const size_t length = strlen(from);
    from += length < sizeof name ? 0 : length - (sizeof name - 1);
    snprintf(name, sizeof name, "%s", from[0] == '\0' ? "word" : from);
    for (char *c = name; *c != '\0'; c++)
        if (strchr(letters, *c) == NULL) *c = '_';
    snprintf(tried, sizeof tried, "%s", name);
    for (int n = 2;; n++) {
        int taken = is_file_name(tried);
        for (uint32_t i = 0; i < making->factor_count; i++)
            taken |= strcmp(making->names[i], tried) == 0;
        if (!taken) break;
        snprintf(tried, sizeof tried, "%s-%d", name, n);
    }
    if (making->factor_count == FACTORS_MOST)
        FAIL(STATUS_INPUT, "ablate: more than %d differences between the commands", FACTORS_MOST);
    TRY(arena_format(making->arena, out, "%s", tried));
    making->names[making->factor_count++] = *out;
    return STATUS_OK;
}

static enum status add_factor(struct making *making, const char *from, const char *levels,
                              char **out_name) {
    char *line;
    TRY(name_factor(making, from, out_name));
    TRY(arena_format(making->arena, &line, "  %s: %s\n", *out_name, levels));
    return ablate_put_text(&making->factors, line);
}

/* Says that the arms write to different places, both in {dir} or one of them. */
static enum status note_folder(struct making *making, const char *factor) {
    char *line;
    TRY(arena_format(making->arena, &line,
                     "# %s holds {dir}: the arms write to different places, and a run is read in "
                     "one; give both the same path\n",
                     factor));
    return ablate_put_text(&making->notes, line);
}

/* Puts a word of the template behind those before it. */
static enum status add_word(struct making *making, const char *quoted) {
    if (making->command.text[0] != '\0') TRY(ablate_put_text(&making->command, ", "));
    return ablate_put_text(&making->command, quoted);
}

/* ---- files ---- */

static int ends_in(const char *word, const char *end) {
    const size_t length = strlen(word), tail = strlen(end);
    return length > tail && strcmp(word + length - tail, end) == 0;
}

/* Says whether a word looks like a file of settings. */
static int is_settings(const char *word) {
    return ends_in(word, ".yaml") || ends_in(word, ".yml") || ends_in(word, ".json") ||
           ends_in(word, ".toml");
}

/* Says whether there is no such file; of one that a run would make, in {dir}, it is not asked. */
static int is_missing(const char *path) {
    struct stat found;
    return strchr(path, '{') == NULL && stat(path, &found) != 0 && errno == ENOENT;
}

/* Refuses two files of settings of which one is not there, since they cannot be compared. */
static enum status check_settings(const char *a, const char *b) {
    const int lacks[2] = {is_settings(a) && is_missing(a), is_settings(b) && is_missing(b)};
    char folder[4096];
    if (!lacks[0] && !lacks[1]) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "ablate: %s%s%s: not there, seen from %s, where the commands would be started, so the two "
         "cannot be compared; a file that a run writes belongs into {dir}",
         lacks[0] ? a : b, lacks[0] && lacks[1] ? " and " : "", lacks[0] && lacks[1] ? b : "",
         getcwd(folder, sizeof folder) == NULL ? "here" : folder);
}

static int same_bytes(const char *a, const char *b, struct arena *arena) {
    char *x, *y;
    size_t m, n;
    return textfile_read(arena, a, (size_t)4 << 20, &x, &m) == STATUS_OK &&
           textfile_read(arena, b, (size_t)4 << 20, &y, &n) == STATUS_OK && m == n &&
           memcmp(x, y, m) == 0;
}

static const char *text_of(const struct yaml_node *node) {
    return node != NULL && node->kind == YAML_PLAIN ? node->text : NULL;
}

/* Says whether a path holds these folders or files as whole parts of it. */
static int is_part_of(const char *path, const char *part) {
    const size_t length = strlen(part);
    for (const char *at = path; length > 0 && (at = strstr(at, part)) != NULL; at++)
        if ((at == path || at[-1] == '/') && (at[length] == '\0' || at[length] == '/')) return 1;
    return 0;
}

/* Says whether a leaf that differs is where a run writes, by its key, by a value that begins as
 * "out" does, or by a value that stands in what is read. */
static int is_output(const struct making *making, const char *path, const struct leaf_values *of) {
    static const char *const keys[] = {
        "output_dir", "output_path", "output_folder", "out_dir",     "outdir",         "save_dir",
        "save_path",  "save_folder", "run_dir",       "dump_folder", "checkpoint_dir", "ckpt_dir",
        "log_dir",    "logging_dir", "results_dir",   "work_dir",    "workdir",        "out"};
    const char *const dot = strrchr(path, '.'), *const key = dot == NULL ? path : dot + 1;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0) return 1;
    for (int arm = 0; arm < 2; arm++) {
        const struct yaml_node *const node = of->of[arm];
        if (node == NULL || (node->kind != YAML_PLAIN && node->kind != YAML_QUOTED)) continue;
        const char *const value = strncmp(node->text, "./", 2) == 0 ? node->text + 2 : node->text;
        if (strncmp(value, "out", 3) == 0 && strchr("-_./0123456789p", value[3]) != NULL) return 1;
        for (int i = 0; i < READ_KINDS; i++)
            if (making->read[i] != NULL && is_part_of(making->read[i], value)) return 1;
    }
    return 0;
}

/* Says of such a leaf what to do, since a run that does not write to {dir} leaves nothing there. */
static enum status note_output(struct making *making, const struct leaves *leaves, size_t l) {
    char *line;
    TRY(arena_format(
        making->arena, &line,
        "# %s of %s and %s looks like the folder that a run writes to, and is no cause: "
        "have the script take it from the command line (output_dir=sys.argv[2]), give "
        "{dir} there in both commands, and delete it from both files\n",
        leaves->differ[l], leaves->paths[0], leaves->paths[1]));
    return ablate_put_text(&making->notes, line);
}

/* Makes a factor of each leaf, and one of those that make the same batch in both files. */
static enum status add_leaves(struct making *making, const struct leaves *leaves,
                              const char *file) {
    struct batch_setting *settings;
    struct batch found;
    char *levels, *leaf, *name, *note, *batch = NULL;
    TRY(arena_take(making->arena, leaves->count, sizeof *settings, "leaves", &settings));
    for (size_t l = 0; l < leaves->count; l++)
        settings[l] = (struct batch_setting){
            .name = leaves->differ[l],
            .values = {text_of(leaves->values[l].of[0]), text_of(leaves->values[l].of[1])}};
    TRY(ablate_find_batch(settings, leaves->count, making->arena, &found));
    if (found.names != NULL) {
        TRY(ablate_note_batch(&found, NULL, making->arena, &note));
        TRY(ablate_put_text(&making->notes, note));
    }
    for (size_t l = 0; l < leaves->count; l++) {
        if (!settings[l].joins) continue;
        TRY(leaves_quote(leaves->differ[l], making->arena, &leaf));
        TRY(arena_format(making->arena, &batch, "%s%s%s", batch == NULL ? "" : batch,
                         batch == NULL ? "" : ", ", leaf));
    }
    for (size_t l = 0; l < leaves->count; l++) {
        if (settings[l].joins && batch == NULL) continue; /* it stands where the first one is */
        if (is_output(making, leaves->differ[l], &leaves->values[l]))
            TRY(note_output(making, leaves, l));
        TRY(leaves_quote(leaves->differ[l], making->arena, &leaf));
        TRY(arena_format(making->arena, &levels, "{leaves: {%s: [%s]}}", file,
                         settings[l].joins ? batch : leaf));
        TRY(add_factor(making, settings[l].joins ? BATCH : leaves->differ[l], levels, &name));
        if (settings[l].joins) batch = NULL;
    }
    return STATUS_OK;
}

/* Makes factors of the leaves of two files. *out_name is the placeholder; NULL if they are to be
 * taken whole, and then a comment says why. */
static enum status add_files(struct making *making, const char *a, const char *b, char **out_name) {
    struct leaves leaves;
    char *line, *qa, *qb;
    *out_name = NULL;
    TRY(check_settings(a, b));
    if (same_bytes(a, b, making->arena)) return STATUS_OK;
    const enum status status = leaves_read(a, b, making->arena, &leaves);
    if (status == STATUS_MEMORY) return status;
    if (status != STATUS_OK || leaves.count == 0 || making->file_count == ABLATE_FILES_MAX) {
        /* a word need not name a file, and of one that does not there is nothing to say */
        char *text;
        size_t length;
        char *why;
        TRY(arena_format(making->arena, &why, "%s", status == STATUS_OK ? "" : status_text()));
        if (textfile_read(making->arena, a, (size_t)1 << 30, &text, &length) != STATUS_OK)
            return STATUS_OK;
        for (char *c = why; *c != '\0'; c++)
            if (*c == '\n') *c = ' ';
        TRY(arena_format(making->arena, &line, "# %s and %s are one factor: %s\n", a, b,
                         why[0] == '\0' ? "their leaves do not differ" : why));
        return ablate_put_text(&making->notes, line);
    }
    making->file_count++;
    TRY(arena_format(making->arena, out_name, "file%u", making->file_count));
    TRY(leaves_quote(a, making->arena, &qa));
    TRY(leaves_quote(b, making->arena, &qb));
    TRY(arena_format(making->arena, &line, "%s%s: [%s, %s]",
                     making->files.text[0] == '\0' ? "" : ", ", *out_name, qa, qb));
    TRY(ablate_put_text(&making->files, line));
    return add_leaves(making, &leaves, *out_name);
}

/* ---- units against units ---- */

/* Compares two words of which each line has one: "--lr=1" and "optim.lr=1" keep their heads, files
 * may be taken by leaves. `inner`: a key that is joined to an option is part of the head. */
static enum status add_pair(struct making *making, const char *name, int inner, const char *a,
                            const char *b) {
    char *head, *qa, *qb, *levels, *factor, *word, *quoted;
    size_t kept = align_head(a, inner);
    if (kept != align_head(b, inner) || memcmp(a, b, kept) != 0) kept = 0;
    TRY(arena_text(making->arena, a, kept, &head));
    TRY(add_files(making, a + kept, b + kept, &factor));
    if (factor == NULL) {
        TRY(quote_word(a + kept, making->arena, &qa));
        TRY(quote_word(b + kept, making->arena, &qb));
        TRY(arena_format(making->arena, &levels, "[%s, %s]", qa, qb));
        TRY(add_factor(making, name, levels, &factor));
        if (strstr(a + kept, DIR) != NULL || strstr(b + kept, DIR) != NULL)
            TRY(note_folder(making, factor));
    }
    TRY(escape(head, making->arena, &head));
    TRY(arena_format(making->arena, &word, "%s{%s%s}", head, ablate_factor_mark(factor), factor));
    TRY(leaves_quote(word, making->arena, &quoted));
    return add_word(making, quoted);
}

static enum status add_lists(struct making *making, const char *name, const char *const *a,
                             size_t a_count, const char *const *b, size_t b_count) {
    char *qa, *qb, *levels, *factor, *word, *quoted;
    TRY(quote_words(a, a_count, making->arena, &qa));
    TRY(quote_words(b, b_count, making->arena, &qb));
    TRY(arena_format(making->arena, &levels, "[%s, %s]", qa, qb));
    TRY(add_factor(making, name, levels, &factor));
    /* a path that only one arm has is beside the one that both have */
    if (a_count > 0 && b_count > 0 && strstr(levels, DIR) != NULL) TRY(note_folder(making, factor));
    TRY(arena_format(making->arena, &word, "{%s%s}", ablate_factor_mark(factor), factor));
    TRY(leaves_quote(word, making->arena, &quoted));
    return add_word(making, quoted);
}

static enum status add_plain(struct making *making, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *quoted;
        TRY(quote_word(words[i], making->arena, &quoted));
        TRY(add_word(making, quoted));
    }
    return STATUS_OK;
}

static int is_script(const char *word) {
    return ends_in(word, ".py") || ends_in(word, ".sh");
}

/* What a factor of a unit is called: as its option or its key, or, of words that stand for
 * themselves, what verdicts call the cause. */
static const char *name_of(const struct making *making, int side, const struct align_unit *unit) {
    const struct align_line *const line = &making->lines[side].aligned;
    if (unit->shown[0] != '\0') return unit->shown;
    if (unit->from == 0) return "program";
    if (unit->partner == ALIGN_NONE) return "word";
    const struct align_line *const other = &making->lines[1 - side].aligned;
    return is_script(line->words.words[unit->from]) &&
                   is_script(other->words.words[other->units[unit->partner].from])
               ? "script"
               : "word";
}

/* Words with which both lists begin and end stay in the template: of values of an option in which
 * one list is longer, only what differs is a factor, and a word behind them that is no value of it
 * is not moved. */
static enum status compare_lists(struct making *making, const char *name, const char *const *a,
                                 size_t a_count, const char *const *b, size_t b_count) {
    const size_t most = a_count < b_count ? a_count : b_count;
    size_t front = 0, back = 0;
    while (front < most && strcmp(a[front], b[front]) == 0)
        front++;
    while (front + back < most && strcmp(a[a_count - 1 - back], b[b_count - 1 - back]) == 0)
        back++;
    TRY(add_plain(making, a, front));
    TRY(add_lists(making, name, a + front, a_count - front - back, b + front,
                  b_count - front - back));
    return add_plain(making, a + a_count - back, back);
}

static enum status compare_units(struct making *making, const struct align_unit *a,
                                 const struct align_unit *b) {
    const char *const *x = making->lines[0].aligned.words.words + a->from;
    const char *const *y = making->lines[1].aligned.words.words + b->from;
    const char *const name = name_of(making, 0, a);
    if (a->count != b->count) return compare_lists(making, name, x, a->count, y, b->count);
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(x[i], y[i]) == 0)
            TRY(add_plain(making, x + i, 1));
        else
            TRY(add_pair(making, name, strcmp(a->name, a->shown) != 0, x[i], y[i]));
    }
    return STATUS_OK;
}

/* Says of an option and of what sets a key behind it that they are taken for one. */
static enum status note_keys(struct making *making, const struct ablate_words *words,
                             const struct align_unit *unit) {
    char *line;
    TRY(arena_format(making->arena, &line,
                     "# %s is taken for the value of %s; if it stands for itself, make a factor of "
                     "each\n",
                     words->words[unit->from + 1], words->words[unit->from]));
    return ablate_put_text(&making->notes, line);
}

static enum status add_alone(struct making *making, int side, const struct align_unit *unit) {
    const struct ablate_words *const words = &making->lines[side].aligned.words;
    const char *const *const from = words->words + unit->from;
    const char *const name = name_of(making, side, unit);
    if (unit->holds_keys) TRY(note_keys(making, words, unit));
    return side == 0 ? add_lists(making, name, from, unit->count, NULL, 0)
                     : add_lists(making, name, NULL, 0, from, unit->count);
}

/* Adds the units that only the second line has and that would stand here. */
static enum status add_others(struct making *making, size_t here) {
    const struct align_line *const line = &making->lines[1].aligned;
    for (size_t u = 0; u < line->count; u++)
        if (line->units[u].partner == ALIGN_NONE && !line->units[u].gone &&
            line->units[u].before == here)
            TRY(add_alone(making, 1, &line->units[u]));
    return STATUS_OK;
}

/* How many words of a unit are a setting of the batch, which has one value: "--batch_size 4 {dir}"
 * is a unit of three words, since both lines may mean two values by it. */
static size_t own_words(const struct align_unit *unit) {
    return unit->count > 2 && ablate_is_of_batch(unit->shown) ? 2 : unit->count;
}

/* The value of an option or of a key, where a unit has one; NULL: it has another number. */
static const char *unit_value(const struct ablate_words *words, const struct align_unit *unit,
                              int inner) {
    const size_t count = own_words(unit);
    const char *const last = words->words[unit->from + count - 1];
    const size_t head = align_head(last, inner);
    if (unit->shown[0] == '\0' || count > 2) return NULL;
    return head > 0 ? last + head : count == 2 ? last : NULL;
}

/* Says whether two units have the same words behind their own ones. */
static int same_behind(const struct align_line lines[2], const struct align_unit *a,
                       const struct align_unit *b) {
    const size_t own = own_words(a);
    if (own != own_words(b) || a->count != b->count) return a->count == own && b->count == own;
    for (size_t i = own; i < a->count; i++)
        if (strcmp(lines[0].words.words[a->from + i], lines[1].words.words[b->from + i]) != 0)
            return 0;
    return 1;
}

/* The number of processes that a launcher's words ask for: "torchrun --nproc_per_node 2". Python
 * itself is one process. NULL: they do not say it, or twice. */
static const char *launched(const struct ablate_words *words, const struct align_unit *unit,
                            const char **out_name) {
    const char *value = NULL;
    for (size_t i = unit->from; i < unit->from + unit->count; i++) {
        const char *const word = words->words[i];
        const size_t head = align_head(word, 0);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
        if (!align_is_option(word) || !ablate_is_processes(name)) continue;
        if (value != NULL) return NULL;
        value = head > 0                           ? word + head
                : i + 1 < unit->from + unit->count ? words->words[i + 1]
                                                   : "";
        *out_name = word;
    }
    return value == NULL && unit->count == 1 && strncmp(words->words[unit->from], "python", 6) == 0
               ? "1"
               : value;
}

/* Two launchers are one unit, in which their numbers of processes stand. */
static enum status set_launchers(struct making *making, const struct align_line lines[2],
                                 struct batch_setting *out) {
    const struct align_unit *const a = &lines[0].units[0];
    const char *option = NULL, *values[2];
    char *name;
    if (a->from != 0 || a->name[0] != '\0' || a->partner != 0) return STATUS_OK;
    for (int side = 0; side < 2; side++)
        values[side] = launched(&lines[side].words, &lines[side].units[0], &option);
    if (option == NULL || values[0] == NULL || values[1] == NULL ||
        strcmp(values[0], values[1]) == 0)
        return STATUS_OK;
    TRY(arena_text(making->arena, option, strcspn(option, "="), &name));
    *out = (struct batch_setting){.name = name, .values = {values[0], values[1]}};
    return STATUS_OK;
}

/* Finds a word between the first and the last of the units of a line that would be one factor,
 * which stands for itself, so that no option can be moved from one side of it to the other: behind
 * a script stand the script's options, before it its launcher's. NULL: there is none. */
static const char *word_between(const struct align_line lines[2], int side,
                                const struct batch_setting *settings) {
    const struct align_line *const line = &lines[side];
    const char *found = NULL, *behind = NULL;
    int begun = 0;
    for (size_t u = 0; u < line->count; u++) {
        const struct align_unit *const unit = &line->units[u];
        const size_t first = side == 0 ? u : unit->partner;
        if (unit->gone) continue;
        const int joins = first != ALIGN_NONE && settings[first].joins;
        if (joins && found == NULL) found = behind;
        begun |= joins;
        if (!begun || behind != NULL) continue;
        const char *const *const words = line->words.words + unit->from;
        if (joins && unit->count > own_words(unit)) behind = words[own_words(unit)];
        if (joins) continue;
        for (size_t i = 0; i < unit->count && behind == NULL; i++) {
            const int runs = strcmp(words[0], "-m") == 0 || strcmp(words[0], "--module") == 0;
            if (unit->name[0] == '\0' || is_script(words[i]) || (runs && i == 1) ||
                strcmp(words[i], "--") == 0)
                behind = words[i];
        }
    }
    return found;
}

/* Finds options that make the same batch in both lines, and puts them side by side into one factor.
 * (lines[0].count) *out says which. */
static enum status find_batch(struct making *making, const struct align_line lines[2],
                              struct batch_setting **out) {
    struct batch_setting *settings;
    struct batch found;
    char *note;
    TRY(arena_take(making->arena, lines[0].count, sizeof *settings, "options", &settings));
    *out = settings;
    for (size_t u = 0; u < lines[0].count; u++) {
        const struct align_unit *const a = &lines[0].units[u];
        settings[u].name = ""; /* of no role */
        if (a->gone || a->partner == ALIGN_NONE) continue;
        const struct align_unit *const b = &lines[1].units[a->partner];
        const int inner = strcmp(a->name, a->shown) != 0;
        const char *const values[2] = {unit_value(&lines[0].words, a, inner),
                                       unit_value(&lines[1].words, b, inner)};
        if (values[0] == NULL || values[1] == NULL || strcmp(values[0], values[1]) == 0 ||
            !same_behind(lines, a, b))
            continue;
        settings[u] = (struct batch_setting){.name = a->shown, .values = {values[0], values[1]}};
    }
    TRY(set_launchers(making, lines, &settings[0]));
    TRY(ablate_find_batch(settings, lines[0].count, making->arena, &found));
    if (found.names == NULL) return STATUS_OK;
    const char *between = word_between(lines, 0, settings);
    if (between == NULL) between = word_between(lines, 1, settings);
    TRY(ablate_note_batch(&found, between, making->arena, &note));
    for (size_t u = 0; u < lines[0].count && between != NULL; u++)
        settings[u].joins = 0;
    return ablate_put_text(&making->notes, note);
}

/* Adds all units of the batch as one factor. */
static enum status add_batch(struct making *making, const struct align_line lines[2],
                             const struct batch_setting *settings) {
    const char **words[2];
    size_t counts[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        TRY(arena_take(making->arena, lines[side].words.count, sizeof *words[side], "words",
                       &words[side]));
        for (size_t u = 0; u < lines[0].count; u++) {
            if (!settings[u].joins) continue;
            const struct align_unit *const unit =
                side == 0 ? &lines[0].units[u] : &lines[1].units[lines[0].units[u].partner];
            for (size_t w = 0; w < own_words(unit); w++)
                words[side][counts[side]++] = lines[side].words.words[unit->from + w];
        }
    }
    return add_lists(making, BATCH, words[0], counts[0], words[1], counts[1]);
}

static enum status compare_lines(struct making *making) {
    struct batch_setting *settings;
    int is_added = 0;
    struct align_line lines[2] = {making->lines[0].aligned, making->lines[1].aligned};
    TRY(ablate_align(lines, making->arena));
    for (int side = 0; side < 2; side++)
        making->lines[side].aligned = lines[side];
    TRY(find_batch(making, lines, &settings));
    for (size_t u = 0; u < lines[0].count; u++) {
        const struct align_unit *const unit = &lines[0].units[u];
        TRY(add_others(making, u));
        if (unit->gone) continue;
        if (settings[u].joins) {
            const size_t own = own_words(unit);
            if (!is_added) TRY(add_batch(making, lines, settings));
            is_added = 1;
            TRY(add_plain(making, lines[0].words.words + unit->from + own, unit->count - own));
            continue;
        }
        if (unit->partner == ALIGN_NONE)
            TRY(add_alone(making, 0, unit));
        else
            TRY(compare_units(making, unit, &lines[1].units[unit->partner]));
    }
    return add_others(making, lines[0].count);
}

/* ---- variables ---- */

static const char *value_of(const struct ablate_words *variables, const char *entry) {
    const size_t name = strcspn(entry, "=") + 1;
    const char *value = NULL; /* the last of two of one name counts */
    for (size_t i = 0; i < variables->count; i++)
        if (strncmp(variables->words[i], entry, name) == 0) value = variables->words[i] + name;
    return value;
}

static enum status quote_value(const char *value, struct arena *arena, char **out) {
    return value == NULL ? arena_format(arena, out, "null") : quote_word(value, arena, out);
}

/* Adds what both lines set alike to *environment, and factors of the rest. */
static enum status compare_variables(struct making *making, struct ablate_pen *environment) {
    for (int side = 0; side < 2; side++) {
        const struct ablate_words *mine = &making->lines[side].variables;
        for (size_t i = 0; i < mine->count; i++) {
            const char *entry = mine->words[i];
            const char *a = value_of(&making->lines[0].variables, entry);
            const char *b = value_of(&making->lines[1].variables, entry);
            char *name, *qa, *qb, *text, *factor;
            int again = side == 1 && a != NULL; /* the first line has told it */
            for (size_t j = 0; j < i; j++)
                again |= strncmp(mine->words[j], entry, strcspn(entry, "=") + 1) == 0;
            if (again) continue;
            TRY(arena_text(making->arena, entry, strcspn(entry, "="), &name));
            TRY(quote_value(a, making->arena, &qa));
            TRY(quote_value(b, making->arena, &qb));
            if (a != NULL && b != NULL && strcmp(a, b) == 0) {
                TRY(arena_format(making->arena, &text, "%s%s: %s",
                                 environment->text[0] == '\0' ? "" : ", ", name, qa));
                TRY(ablate_put_text(environment, text));
                continue;
            }
            TRY(arena_format(making->arena, &text, "{env: {%s: [%s, %s]}}", name, qa, qb));
            TRY(add_factor(making, name, text, &factor));
            if (a != NULL && b != NULL && (strstr(a, DIR) != NULL || strstr(b, DIR) != NULL))
                TRY(note_folder(making, factor));
        }
    }
    return STATUS_OK;
}

/* ---- the file ---- */

static enum status add_test(struct making *making, struct ablate_pen *out) {
    const struct line *bad = &making->lines[1];
    char *words, *line;
    TRY(quote_words(bad->aligned.words.words, bad->aligned.words.count, making->arena, &words));
    TRY(arena_format(making->arena, &line, "test:\n  command: %s\n", words));
    TRY(ablate_put_text(out, line));
    const char *before = "  environment: {";
    for (size_t i = 0; i < bad->variables.count; i++) {
        const char *entry = bad->variables.words[i];
        char *quoted;
        if (value_of(&bad->variables, entry) != entry + strcspn(entry, "=") + 1) continue;
        TRY(quote_word(entry + strcspn(entry, "=") + 1, making->arena, &quoted));
        TRY(arena_format(making->arena, &line, "%s%.*s: %s", before, (int)strcspn(entry, "="),
                         entry, quoted));
        TRY(ablate_put_text(out, line));
        before = ", ";
    }
    return bad->variables.count > 0 ? ablate_put_text(out, "}\n") : STATUS_OK;
}

static enum status add_read(const struct ablate_two *two, struct ablate_pen *out) {
    int first = 1;
    TRY(ablate_put_text(out, "read: {"));
    for (int i = 0; i < READ_KINDS; i++) {
        char *quoted, *line;
        if (two->read[i] == NULL) continue;
        TRY(leaves_quote(two->read[i], out->arena, &quoted));
        TRY(arena_format(out->arena, &line, "%s%s: %s", first ? "" : ", ", ablate_read_names[i],
                         quoted));
        TRY(ablate_put_text(out, line));
        first = 0;
    }
    return ablate_put_text(out, "}\n");
}

static enum status write_all(struct making *making, const struct ablate_two *two,
                             const struct ablate_pen *environment, char **out) {
    struct ablate_pen pen = {.arena = making->arena};
    char *name, *line;
    TRY(ablate_put_text(&pen, making->notes.text));
    TRY(leaves_quote(two->name, making->arena, &name));
    TRY(arena_format(making->arena, &line, "ablate: 1\nname: %s\ncommand: [%s]\n", name,
                     making->command.text));
    TRY(ablate_put_text(&pen, line));
    if (environment->text[0] != '\0') {
        TRY(arena_format(making->arena, &line, "environment: {%s}\n", environment->text));
        TRY(ablate_put_text(&pen, line));
    }
    if (making->files.text[0] != '\0') {
        TRY(arena_format(making->arena, &line, "files: {%s}\n", making->files.text));
        TRY(ablate_put_text(&pen, line));
    }
    TRY(arena_format(making->arena, &line, "factors:\n%s", making->factors.text));
    TRY(ablate_put_text(&pen, line));
    TRY(add_test(making, &pen));
    TRY(add_read(two, &pen));
    if (two->slots > 0) {
        TRY(arena_format(making->arena, &line, "run: {slots: %llu}\n",
                         (unsigned long long)two->slots));
        TRY(ablate_put_text(&pen, line));
    }
    *out = pen.text;
    return STATUS_OK;
}

static int names_folder(const struct ablate_words *words) {
    for (size_t i = 0; i < words->count; i++)
        if (strstr(words->words[i], DIR) != NULL) return 1;
    return 0;
}

static int has_word(const struct ablate_words *words, const char *word) {
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->words[i], word) == 0) return 1;
    return 0;
}

/* Notes a command that is not told where to write: all of its runs would fail, or be one. */
static enum status look_for_folder(struct making *making) {
    for (int i = 0; i < 2; i++) {
        char *line;
        if (names_folder(&making->lines[i].aligned.words) ||
            names_folder(&making->lines[i].variables))
            continue;
        TRY(arena_format(making->arena, &line,
                         "# {dir} stands nowhere in %s: it is the folder that a run writes to, and "
                         "what is read lies there\n",
                         i == 0 ? "--good" : "--bad"));
        TRY(ablate_put_text(&making->notes, line));
    }
    return STATUS_OK;
}

/* Notes the words that look like files and are none here: the commands would fail, or the folder is
 * another one than is meant. */
static enum status look_for_files(struct making *making) {
    char folder[4096], *line, *names = NULL;
    for (int side = 0; side < 2; side++) {
        const struct ablate_words *const words = &making->lines[side].aligned.words;
        for (size_t i = 0; i < words->count; i++) {
            const char *const word = words->words[i] + align_head(words->words[i], 1);
            if (!(is_settings(word) || is_script(word)) || !is_missing(word)) continue;
            if (side == 1 && has_word(&making->lines[0].aligned.words, words->words[i])) continue;
            TRY(arena_format(making->arena, &names, "%s%s%s", names == NULL ? "" : names,
                             names == NULL ? "" : ", ", word));
        }
    }
    if (names == NULL) return STATUS_OK;
    TRY(arena_format(making->arena, &line,
                     "# not there, seen from %s, where the commands would be started: %s\n",
                     getcwd(folder, sizeof folder) == NULL ? "here" : folder, names));
    for (char *c = line; c[1] != '\0'; c++)
        if (*c == '\n') *c = ' ';
    return ablate_put_text(&making->notes, line);
}

/* Says whether both lines have the same words in one order. */
static int same_order(const struct making *making) {
    const struct ablate_words *const a = &making->lines[0].aligned.words;
    const struct ablate_words *const b = &making->lines[1].aligned.words;
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->words[i], b->words[i]) != 0) return 0;
    return a->count == b->count;
}

enum status ablate_two_write(const struct ablate_two *two, struct arena *arena, char **out_text) {
    struct making *making;
    struct ablate_pen environment = {.arena = arena};
    TRY(arena_take(arena, 1, sizeof *making, "an ablation", &making));
    making->arena = arena;
    making->read = two->read;
    struct ablate_pen *const pens[] = {&making->command, &making->factors, &making->files,
                                       &making->notes, &environment};
    for (size_t i = 0; i < COUNT_OF(pens); i++) {
        pens[i]->arena = arena;
        TRY(ablate_put_text(pens[i], ""));
    }
    TRY(read_line("--good", two->good, arena, &making->lines[0]));
    TRY(read_line("--bad", two->bad, arena, &making->lines[1]));
    TRY(compare_variables(making, &environment));
    TRY(compare_lines(making));
    if (making->factor_count == 0)
        FAIL(STATUS_INPUT, "ablate: --good and --bad differ in no word, variable or leaf%s",
             same_order(making)
                 ? ""
                 : "; what differs is the order of words, of which no factor is made");
    TRY(look_for_folder(making));
    TRY(look_for_files(making));
    return write_all(making, two, &environment, out_text);
}
