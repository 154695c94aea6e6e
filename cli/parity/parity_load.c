/* SPDX-License-Identifier: Apache-2.0
 * Finds what A and B are. Overrides act on B alone; a key that does not begin with "common." or
 * "arms." is one of B's arm. */
#include "cli/parity/parity_asking.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoints/shipped.h"
#include "cli/load.h"

struct loading {
    struct cli *cli;
    const struct options *options;
    const char *steps; /* as digits; NULL: the sides keep their own */
    struct arena *arena;
};

#define LABEL "parity" /* the file name in errors about a text that the user never wrote */

static int is_folder(const char *word) {
    struct stat info;
    return shipped_is(word) || (stat(word, &info) == 0 && S_ISDIR(info.st_mode));
}

/* Writes the overrides in full: a key that begins with neither "common." nor "arms." gets `prefix`.
 * With `prefix` NULL no override holds, only `steps`. */
static enum status full_keys(struct loading *loading, const char *prefix, struct options *out) {
    const struct options *options = loading->options;
    char *steps;
    *out = (struct options){0};
    TRY(arena_take(loading->arena, options->set_count + 1, sizeof *out->sets, "options",
                   &out->sets));
    for (size_t i = 0; prefix != NULL && i < options->set_count; i++) {
        const char *set = options->sets[i];
        char *text;
        const int full = strncmp(set, "common.", 7) == 0 || strncmp(set, "arms.", 5) == 0;
        TRY(arena_format(loading->arena, &text, "%s%s", full ? "" : prefix, set));
        out->sets[out->set_count++] = text;
    }
    if (loading->steps == NULL) return STATUS_OK;
    TRY(arena_format(loading->arena, &steps, "steps=%s", loading->steps));
    out->sets[out->set_count++] = steps;
    return STATUS_OK;
}

static enum status find_arm(const struct scenario *scenario, const char *name,
                            const struct scenario_arm **out) {
    for (int i = 0; i < 2; i++) {
        *out = &scenario->arms[i];
        if (strcmp((*out)->name, name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "parity: %s: expected arm %s or %s, got \"%s\"", scenario->name,
         scenario->arms[0].name, scenario->arms[1].name, name);
}

/* Quotes a path for YAML: a single quote inside single quotes is written twice. */
static enum status quote(struct arena *arena, const char *path, char **out) {
    const size_t length = strlen(path);
    size_t at = 0;
    char *text;
    TRY(arena_take(arena, 2 * length + 3, 1, "path", &text));
    text[at++] = '\'';
    for (size_t i = 0; i < length; i++) {
        if (path[i] == '\'') text[at++] = '\'';
        text[at++] = path[i];
    }
    text[at] = '\'';
    *out = text;
    return STATUS_OK;
}

/* Removes file and line from an error in a text that the user never wrote. */
static enum status drop_place(enum status status) {
    char text[2048];
    snprintf(text, sizeof text, "%s", status_text());
    const char *mark = " error: ", *at = strstr(text, mark);
    if (at == NULL || strncmp(text, LABEL ":", sizeof LABEL) != 0) return status;
    return status_fail(status, "parity: %s", at + strlen(mark));
}

/* Makes up a training around a checkpoint, since a configuration describes one. Its data are the
 * built-in ones. */
static enum status load_folder(struct loading *loading, const char *word, int overridden,
                               struct parity_word *out) {
    struct options options;
    struct scenario *scenario;
    char *path, *text;
    TRY(full_keys(loading, overridden ? "common." : NULL, &options));
    TRY(quote(loading->arena, word, &path));
    TRY(arena_format(loading->arena, &text,
                     "twinstep: 1\nname: checkpoint\nsteps: 8\ncommon:\n  task: sft\n"
                     "  model: {from: %s}\narms: {baseline: {}, test: {}}\n",
                     path));
    const enum status status =
        scenario_parse(loading->arena, loading->cli->schema, LABEL, text, strlen(text),
                       options.sets, options.set_count, &scenario);
    if (status != STATUS_OK) return drop_place(status);
    *out = (struct parity_word){
        .name = word, .folder = word, .scenario = scenario, .arm = &scenario->arms[0]};
    return STATUS_OK;
}

/* Splits "PATH:ARM"; a word that names a file or folder as it is has no arm, whatever colons it
 * holds. */
static enum status split(struct loading *loading, const char *word, char **out_path,
                         const char **out_arm) {
    struct stat info;
    const char *colon = strrchr(word, ':');
    *out_arm = NULL;
    if (colon == NULL || stat(word, &info) == 0)
        return arena_text(loading->arena, word, strlen(word), out_path);
    *out_arm = colon + 1;
    return arena_text(loading->arena, word, (size_t)(colon - word), out_path);
}

static int ends_in(const char *word, const char *end) {
    const size_t length = strlen(word), tail = strlen(end);
    return length >= tail && strcmp(word + length - tail, end) == 0;
}

/* Refuses a folder with an arm behind it, and a file out of a checkpoint in the place of its
 * folder. */
static enum status check_path(const char *word, const char *path, const char *arm) {
    if (arm != NULL && is_folder(path))
        FAIL(STATUS_INPUT, "parity: %s: a folder has no arms; expected %s alone", word, path);
    if (ends_in(path, ".safetensors") || ends_in(path, "config.json"))
        FAIL(STATUS_INPUT,
             "parity: %s: expected a scenario or the folder of a checkpoint, got a file of one",
             word);
    return STATUS_OK;
}

/* Loads one word; arm `standard` is taken if the word names none. */
static enum status load_word(struct loading *loading, const char *word, int standard,
                             int overridden, struct parity_word *out) {
    struct options options;
    struct scenario *scenario;
    const char *arm;
    char *path, *prefix, *name;
    if (is_folder(word)) return load_folder(loading, word, overridden, out);
    TRY(split(loading, word, &path, &arm));
    TRY(check_path(word, path, arm));
    TRY(full_keys(loading, NULL, &options));
    TRY(load_scenario(loading->cli, loading->arena, path, &options, &scenario));
    if (arm == NULL) arm = scenario->arms[standard].name;
    if (overridden) {
        TRY(arena_format(loading->arena, &prefix, "arms.%s.", arm));
        TRY(full_keys(loading, prefix, &options));
        TRY(load_scenario(loading->cli, loading->arena, path, &options, &scenario));
    }
    TRY(arena_format(loading->arena, &name, "%s:%s", path, arm));
    *out = (struct parity_word){.name = name, .path = path, .scenario = scenario};
    return find_arm(scenario, arm, &out->arm);
}

enum status parity_load(struct cli *cli, const struct options *options, const char *steps,
                        struct arena *arena, struct parity_words *out) {
    struct loading loading = {cli, options, steps, arena};
    const char *a = options->arguments[0];
    const int alone = options->argument_count == 1;
    const int overridden = options->set_count > 0;
    memset(out, 0, sizeof *out);
    TRY(load_word(&loading, a, 0, 0, &out->side[0]));
    const int whole = out->side[0].folder == NULL && strcmp(out->side[0].name, a) != 0;
    if (alone && !whole && !overridden)
        FAIL(STATUS_INPUT, "parity: %s: expected B, or --set for what B does in another way", a);
    return load_word(&loading, alone ? a : options->arguments[1], alone && whole ? 1 : 0,
                     overridden, &out->side[1]);
}
