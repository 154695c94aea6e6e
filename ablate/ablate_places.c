/* SPDX-License-Identifier: Apache-2.0
 * Checks every text with placeholders at the place where it stands, because what may stand there
 * differs: levels hold no factors, a list of words stands alone. */
#include "ablate/ablate_places.h"

#include <stdio.h>
#include <string.h>

#include "ablate/ablate_words.h"
#include "scenarios/suggest.h"

struct checking {
    const struct ablate_file *file;
    const struct yaml_node *node; /* whose place errors name */
    const char *key;
    int factors;    /* factors may stand here */
    int is_word;    /* it is a word of the command, which a list of words can take the place of */
    int is_read;    /* it is read when the run has ended, by whoever judges */
    uint32_t used;  /* bit i: factor i stands somewhere */
    uint32_t files; /* the same of composed files */
    int has_dir, has_version;
};

static enum status fail_unknown(const struct checking *checking, const char *name, size_t length) {
    char word[64], hint[SUGGEST_HINT_SIZE];
    struct suggestion nearest = {.word = word};
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    static const char *const built_in[] = {"dir", "seed", "gpu", "port", "run"};
    for (size_t i = 0; i < COUNT_OF(built_in); i++)
        suggest_offer(&nearest, built_in[i]);
    for (uint32_t i = 0; i < checking->file->factor_count; i++)
        suggest_offer(&nearest, checking->file->factors[i].name);
    return yaml_fail(checking->node, "%s: no factor is called {%s}%s (a brace itself is {{ or }})",
                     checking->key, word, suggest_hint(&nearest, hint));
}

static int is_called(const char *name, size_t length, const char *word) {
    return strlen(word) == length && memcmp(word, name, length) == 0;
}

/* The slot is not known any more when a run is read, here or by a worker that continues; and
 * without devices {gpu} would be an empty text. */
static enum status check_built_in(struct checking *checking, const char *name, size_t length) {
    const int gpu = is_called(name, length, "gpu");
    checking->has_dir |= is_called(name, length, "dir");
    if (checking->is_read && (gpu || is_called(name, length, "port")))
        return yaml_fail(checking->node,
                         "%s: {%.*s} is not known when a run is read: expected a path that one run "
                         "has in any slot, of {dir}, {run} and {seed}",
                         checking->key, (int)length, name);
    if (gpu && checking->file->device_count == 0)
        return yaml_fail(checking->node, "%s: {gpu} needs run.devices, which is not there",
                         checking->key);
    return STATUS_OK;
}

static enum status check_text(struct checking *checking, const char *text) {
    const struct ablate_file *const file = checking->file;
    const char *const whole = text;
    const char *piece;
    size_t length;
    for (;;) {
        const enum ablate_place place = ablate_place_next(&text, &piece, &length);
        if (place == PLACE_END) return STATUS_OK;
        if (place == PLACE_BROKEN)
            return yaml_fail(checking->node,
                             "%s: a single brace in \"%.60s\" (a brace itself is {{ or }})",
                             checking->key, whole);
        if (place == PLACE_TEXT) continue;
        if (ablate_is_built_in(piece, length)) {
            TRY(check_built_in(checking, piece, length));
            continue;
        }
        const uint32_t factor = ablate_factor_of(file, piece, length);
        const uint32_t composed = ablate_composed_of(file, piece, length);
        if (ablate_is_version(file, piece, length)) {
            checking->has_version = 1;
            continue;
        }
        if (composed < file->composed_count && checking->factors) {
            checking->files |= 1u << composed;
            continue;
        }
        if (factor == file->factor_count || !checking->factors)
            return fail_unknown(checking, piece, length);
        const struct ablate_factor *of = &file->factors[factor];
        if (!of->has_words)
            return yaml_fail(checking->node, "%s: {%s} has no words, only variables", checking->key,
                             of->name);
        if ((of->level[0].count != 1 || of->level[1].count != 1) &&
            (piece != whole + 1 || *text != '\0' || !checking->is_word))
            return yaml_fail(checking->node,
                             "%s: {%s} has a list of words, so it must be a word of its own in "
                             "the command",
                             checking->key, of->name);
        checking->used |= 1u << factor;
    }
}

static enum status check_words(struct checking *checking, const struct yaml_node *list,
                               const char *key) {
    checking->key = key;
    checking->is_word = 1;
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next) {
        checking->node = item;
        TRY(check_text(checking, item->text));
    }
    checking->is_word = 0;
    return STATUS_OK;
}

static enum status check_values(struct checking *checking, const struct yaml_node *map) {
    if (map == NULL) return STATUS_OK;
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        checking->key = child->key;
        checking->node = child;
        if (child->kind != YAML_NULL) TRY(check_text(checking, child->text));
    }
    return STATUS_OK;
}

static enum status check_levels(struct checking *checking, const struct yaml_node *factors) {
    const struct yaml_node *node = factors->first;
    for (uint32_t i = 0; i < checking->file->factor_count; i++, node = node->next) {
        const struct ablate_factor *factor = &checking->file->factors[i];
        checking->key = factor->name;
        checking->node = node;
        for (int level = 0; level < 2; level++) {
            for (size_t w = 0; w < factor->level[level].count; w++)
                TRY(check_text(checking, factor->level[level].words[w]));
            for (size_t v = 0; v < factor->variable_count; v++)
                if (factor->variables[v].value[level] != NULL)
                    TRY(check_text(checking, factor->variables[v].value[level]));
        }
    }
    return STATUS_OK;
}

#define VISIBLE "CUDA_VISIBLE_DEVICES" /* which run.devices sets for each slot */

static int has_variable(const struct ablate_variable *variables, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(variables[i].name, name) == 0) return 1;
    return 0;
}

static enum status check_factor_variables(const struct yaml_node *node,
                                          const struct ablate_file *file, uint32_t index) {
    const struct ablate_factor *const factor = &file->factors[index];
    if (file->device_count > 0 && has_variable(factor->variables, factor->variable_count, VISIBLE))
        return yaml_fail_key(node,
                             "%s: run.devices sets " VISIBLE " for each slot, so the factor would "
                             "never act; expected one of the two",
                             factor->name);
    for (uint32_t i = 0; i < index; i++)
        for (size_t v = 0; v < factor->variable_count; v++)
            if (has_variable(file->factors[i].variables, file->factors[i].variable_count,
                             factor->variables[v].name))
                return yaml_fail_key(node,
                                     "%s: factor %s sets %s, too, so one of them would never act; "
                                     "make them one factor",
                                     factor->name, file->factors[i].name,
                                     factor->variables[v].name);
    return STATUS_OK;
}

/* Refuses a variable that two places set, of which one would win and the other never act. That a
 * factor takes the place of a variable of `environment` is meant. */
static enum status check_variables(const struct yaml_node *root, const struct ablate_file *file) {
    const struct ablate_command *const commands[] = {&file->command, &file->test};
    const struct yaml_node *node = yaml_child(root, "factors");
    node = node == NULL ? NULL : node->first;
    for (uint32_t i = 0; i < file->factor_count; i++, node = node->next)
        TRY(check_factor_variables(node, file, i));
    for (int i = 0; i < 2; i++)
        if (file->device_count > 0 &&
            has_variable(commands[i]->variables, commands[i]->variable_count, VISIBLE))
            return yaml_fail_key(yaml_child(root, i == 0 ? "environment" : "test"),
                                 "environment: run.devices sets " VISIBLE " for each slot, too; "
                                 "expected one of the two");
    return STATUS_OK;
}

/* Checks every text with placeholders, and that the words of each factor stand somewhere. */
enum status ablate_places_check(const struct yaml_node *root, const struct ablate_file *file) {
    const struct yaml_node *const factors = yaml_child(root, "factors");
    const struct yaml_node *const test = yaml_child(root, "test");
    struct checking checking = {.file = file, .factors = 1};
    TRY(check_variables(root, file));
    TRY(check_words(&checking, yaml_child(root, "command"), "command"));
    TRY(check_values(&checking, yaml_child(root, "environment")));
    const uint32_t used = checking.used, files = checking.files;
    checking.factors = 0;
    if (file->version_count > 0 && !checking.has_version)
        return yaml_fail_key(yaml_child(root, "command"),
                             "command: expected {version} in it or in environment, got none");
    if (factors != NULL) TRY(check_levels(&checking, factors));
    if (test != NULL) {
        TRY(check_words(&checking, yaml_child(test, "command"), "test.command"));
        TRY(check_values(&checking, yaml_child(test, "environment")));
    }
    checking.is_read = 1;
    TRY(check_values(&checking, yaml_child(root, "read")));
    const struct yaml_node *node = factors == NULL ? NULL : factors->first;
    for (uint32_t i = 0; i < file->factor_count; i++, node = node->next)
        if (file->factors[i].has_words && (used >> i & 1u) == 0)
            return yaml_fail_key(node,
                                 "%s: {%s%s} stands nowhere in command or environment, so the "
                                 "factor would change nothing",
                                 file->factors[i].name, ablate_factor_mark(file->factors[i].name),
                                 file->factors[i].name);
    for (uint32_t i = 0; i < file->composed_count; i++)
        if ((files >> i & 1u) == 0)
            return yaml_fail(yaml_child(root, "files"),
                             "files: {%s} stands nowhere in command or environment",
                             file->files[i].name);
    for (int i = 0; i < READ_KINDS; i++) {
        if (file->read[i] == NULL) continue;
        checking.node = yaml_child(yaml_child(root, "read"), ablate_read_names[i]);
        checking.key = ablate_read_names[i];
        checking.has_dir = 0;
        TRY(check_text(&checking, file->read[i]));
        if (!checking.has_dir)
            return yaml_fail(checking.node,
                             "%s: expected a path with {dir}, the folder of the run, got one that "
                             "all runs would write",
                             checking.key);
    }
    return STATUS_OK;
}
