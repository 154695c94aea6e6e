/* SPDX-License-Identifier: Apache-2.0
 * Reads an ablation's YAML by tables of keys. Unknown keys, values of another kind, placeholders
 * that nothing fills and factors that act on nothing are errors with their place. */
#include "ablate/ablate_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ablate/ablate_words.h"
#include "base/number.h"
#include "scenarios/suggest.h"
#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

const char *const ablate_read_names[READ_KINDS] = {"weights", "log", "trace", "bytes"};

#define RUNS_MOST 10 /* of an arm: determinism/statistics.h enumerates 10 + 10 */
#define SLOTS_MOST 64
#define WORDS_MOST 10000

static enum status expect(const struct yaml_node *node, const char *key, const char *what) {
    char got[YAML_TEXT_SIZE];
    return yaml_fail(node, "%s: expected %s, got %s", key, what, yaml_describe(node, got));
}

static int is_scalar(const struct yaml_node *node) {
    return node->kind == YAML_PLAIN || node->kind == YAML_QUOTED;
}

static enum status expect_text(const struct yaml_node *node, const char *key, const char *what) {
    if (is_scalar(node)) return STATUS_OK;
    if (node->kind == YAML_MAP)
        return yaml_fail(node, "%s: expected %s, got a map (a placeholder needs quotes: \"{dir}\")",
                         key, what);
    return expect(node, key, what);
}

/* Refuses a key that `names`, up to a NULL, do not hold. */
static enum status check_keys(const struct yaml_node *map, const char *section,
                              const char *const *names) {
    char hint[SUGGEST_HINT_SIZE];
    if (map->kind != YAML_MAP)
        return expect(map, section[0] == '\0' ? "ablation" : section, "a map");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        struct suggestion nearest = {.word = child->key};
        size_t i = 0;
        for (; names[i] != NULL && strcmp(names[i], child->key) != 0; i++)
            suggest_offer(&nearest, names[i]);
        if (names[i] == NULL)
            return yaml_fail_key(child, "%s%sunknown key %s%s", section,
                                 section[0] == '\0' ? "" : ": ", child->key,
                                 suggest_hint(&nearest, hint));
    }
    return STATUS_OK;
}

/* ---- lists ---- */

static enum status read_words(const struct yaml_node *list, const char *key, struct arena *arena,
                              struct ablate_words *out) {
    const char **words;
    size_t count = 0;
    if (list->kind != YAML_LIST) return expect(list, key, "a list of words (no shell splits it)");
    if (list->count > WORDS_MOST) return yaml_fail(list, "%s: more than %d words", key, WORDS_MOST);
    TRY(arena_take(arena, list->count, sizeof *words, "words", &words));
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next) {
        TRY(expect_text(item, key, "a word"));
        words[count++] = item->text;
    }
    *out = (struct ablate_words){count, words};
    return STATUS_OK;
}

static int is_variable_name(const char *name) {
    return name[0] != '\0' && strchr(name, '=') == NULL;
}

static enum status read_environment(const struct yaml_node *map, const char *key,
                                    struct arena *arena, struct ablate_command *out) {
    struct ablate_variable *variables;
    if (map->kind != YAML_MAP) return expect(map, key, "a map of variables");
    TRY(arena_take(arena, map->count, sizeof *variables, "environment", &variables));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (!is_variable_name(child->key))
            return yaml_fail_key(child, "%s: no variable has the name \"%s\"", key, child->key);
        if (child->kind != YAML_NULL)
            TRY(expect_text(child, child->key, "a text, or nothing to take it away"));
        variables[out->variable_count++] = (struct ablate_variable){
            child->key, {child->kind == YAML_NULL ? NULL : child->text, NULL}};
    }
    out->variables = variables;
    return STATUS_OK;
}

static enum status read_command(const struct yaml_node *list, const char *key, struct arena *arena,
                                struct ablate_command *out) {
    TRY(read_words(list, key, arena, &out->words));
    if (out->words.count == 0 || out->words.words[0][0] == '\0')
        return yaml_fail(list, "%s: expected the name of a program, got nothing", key);
    return STATUS_OK;
}

/* ---- factors ---- */

static enum status check_two(const struct yaml_node *list, const char *name) {
    if (list->kind != YAML_LIST || list->count != 2)
        return expect(list, name, "a list of two: the baseline's, then the test arm's");
    return STATUS_OK;
}

static enum status read_level(const struct yaml_node *node, const char *name, struct arena *arena,
                              struct ablate_words *out) {
    if (node->kind == YAML_LIST) return read_words(node, name, arena, out);
    TRY(expect_text(node, name, "a word or a list of words"));
    const char **word;
    TRY(arena_take(arena, 1, sizeof *word, "a word", &word));
    *word = node->text;
    *out = (struct ablate_words){1, word};
    return STATUS_OK;
}

static int same_words(const struct ablate_words *a, const struct ablate_words *b) {
    if (a->count != b->count) return 0;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->words[i], b->words[i]) != 0) return 0;
    return 1;
}

static enum status read_levels(const struct yaml_node *list, struct arena *arena,
                               struct ablate_factor *out) {
    TRY(check_two(list, out->name));
    TRY(read_level(list->first, out->name, arena, &out->level[0]));
    TRY(read_level(list->last, out->name, arena, &out->level[1]));
    out->has_words = 1;
    if (same_words(&out->level[0], &out->level[1]))
        return yaml_fail(list, "%s: both levels are the same", out->name);
    return STATUS_OK;
}

static enum status read_variables(const struct yaml_node *map, struct arena *arena,
                                  struct ablate_factor *out) {
    struct ablate_variable *variables;
    if (map->kind != YAML_MAP || map->count == 0)
        return expect(map, out->name, "a map of variables");
    TRY(arena_take(arena, map->count, sizeof *variables, "variables", &variables));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        struct ablate_variable *variable = &variables[out->variable_count++];
        if (!is_variable_name(child->key))
            return yaml_fail_key(child, "%s: no variable has the name \"%s\"", out->name,
                                 child->key);
        TRY(check_two(child, child->key));
        variable->name = child->key;
        const struct yaml_node *level = child->first;
        for (int i = 0; i < 2; i++, level = level->next) {
            if (level->kind != YAML_NULL)
                TRY(expect_text(level, child->key, "a text, or null to take it away"));
            variable->value[i] = level->kind == YAML_NULL ? NULL : level->text;
        }
        const char *const a = variable->value[0], *const b = variable->value[1];
        if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0))
            return yaml_fail(child, "%s: both levels are the same", child->key);
    }
    out->variables = variables;
    return STATUS_OK;
}

static int is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-./";
    const size_t length = strlen(name);
    return length > 0 && length < ABLATE_NAME_MAX && name[strspn(name, letters)] == '\0';
}

static enum status read_leaves(const struct yaml_node *map, const struct ablate_file *file,
                               struct arena *arena, struct ablate_factor *out) {
    struct ablate_leaf *leaves;
    size_t count = 0;
    if (map->kind != YAML_MAP || map->count == 0)
        return expect(map, out->name, "leaves: {FILE: [LEAF, ...]}");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next)
        count += child->count;
    TRY(arena_take(arena, count, sizeof *leaves, "leaves", &leaves));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        const uint32_t composed = ablate_composed_of(file, child->key, strlen(child->key));
        if (composed == file->composed_count)
            return yaml_fail_key(child, "%s: no entry of files is called %s", out->name,
                                 child->key);
        if (child->kind != YAML_LIST || child->count == 0)
            return expect(child, child->key, "a list of leaves");
        for (const struct yaml_node *item = child->first; item != NULL; item = item->next) {
            TRY(expect_text(item, child->key, "a leaf: its keys with dots between them"));
            leaves[out->leaf_count++] = (struct ablate_leaf){composed, item->text};
        }
    }
    out->leaves = leaves;
    return STATUS_OK;
}

static enum status read_files(const struct yaml_node *map, struct ablate_file *out) {
    if (map == NULL) return STATUS_OK;
    if (map->kind != YAML_MAP) return expect(map, "files", "a map: NAME: [BASELINE, TEST]");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (out->composed_count == ABLATE_FILES_MAX)
            return yaml_fail_key(child, "files: more than %d", ABLATE_FILES_MAX);
        if (!is_name(child->key) || ablate_is_built_in(child->key, strlen(child->key)) ||
            strchr(child->key, '/') != NULL)
            return yaml_fail_key(child, "files: no file can be called \"%s\"", child->key);
        TRY(check_two(child, child->key));
        TRY(expect_text(child->first, child->key, "a path"));
        TRY(expect_text(child->last, child->key, "a path"));
        out->files[out->composed_count++] =
            (struct ablate_composed){child->key, {child->first->text, child->last->text}};
    }
    return STATUS_OK;
}

static enum status read_factor(const struct yaml_node *node, const struct ablate_file *file,
                               struct arena *arena, struct ablate_factor *out) {
    static const char *const keys[] = {"words", "env", "leaves", NULL};
    out->name = node->key;
    if (!is_name(node->key))
        return yaml_fail_key(node,
                             "factors: expected a name of letters, digits and _-./, at most %d "
                             "bytes, got \"%s\"",
                             ABLATE_NAME_MAX - 1, node->key);
    if (ablate_is_built_in(node->key, strlen(node->key)))
        return yaml_fail_key(node, "factors: {%s} is built in; give the factor another name",
                             node->key);
    if (ablate_composed_of(file, node->key, strlen(node->key)) < file->composed_count)
        return yaml_fail_key(node, "factors: %s is the name of a file, too", node->key);
    if (node->kind == YAML_LIST) return read_levels(node, arena, out);
    TRY(check_keys(node, node->key, keys));
    const struct yaml_node *words = yaml_child(node, "words"), *env = yaml_child(node, "env");
    const struct yaml_node *leaves = yaml_child(node, "leaves");
    if (words != NULL) TRY(read_levels(words, arena, out));
    if (env != NULL) TRY(read_variables(env, arena, out));
    if (leaves != NULL) TRY(read_leaves(leaves, file, arena, out));
    if (words == NULL && env == NULL && leaves == NULL)
        return expect(node, node->key, "[BASELINE, TEST], or a map with words, env or leaves");
    return STATUS_OK;
}

static enum status read_factors(const struct yaml_node *map, struct arena *arena,
                                struct ablate_file *out) {
    if (map->kind != YAML_MAP || map->count == 0)
        return expect(map, "factors", "a map of at least one factor");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (out->factor_count == ABLATE_FACTORS_MAX)
            return yaml_fail_key(child, "factors: more than %d; join some", ABLATE_FACTORS_MAX);
        TRY(read_factor(child, out, arena, &out->factors[out->factor_count]));
        out->factor_count++;
    }
    return STATUS_OK;
}

/* ---- numbers ---- */

static enum status read_uint(const struct yaml_node *map, const char *key, uint64_t least,
                             uint64_t most, uint64_t *out) {
    const struct yaml_node *node = yaml_child(map, key);
    char what[96];
    if (node == NULL) return STATUS_OK;
    snprintf(what, sizeof what, "a whole number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    if (node->kind != YAML_PLAIN || number_parse_uint(node->text, out) != STATUS_OK ||
        *out < least || *out > most)
        return expect(node, key, what);
    return STATUS_OK;
}

static enum status read_real(const struct yaml_node *map, const char *key, double least,
                             double most, const char *what, double *out) {
    const struct yaml_node *node = yaml_child(map, key);
    if (node == NULL) return STATUS_OK;
    if (node->kind != YAML_PLAIN ||
        number_parse_real(node->text, NUMBER_FINITE, out) != STATUS_OK ||
        !(*out > least && *out < most))
        return expect(node, key, what);
    return STATUS_OK;
}

static enum status read_floor(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"runs", "noisy", "mixtures", "alpha", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(check_keys(map, "floor", keys));
    TRY(read_uint(map, "runs", 2, RUNS_MOST, &out->floor_runs));
    TRY(read_uint(map, "noisy", 2, RUNS_MOST, &out->noisy_runs));
    TRY(read_uint(map, "mixtures", 1, RUNS_MOST, &out->noisy_mixtures));
    TRY(read_real(map, "alpha", 0.0, 1.0, "a number between 0 and 1", &out->alpha));
    if (out->noisy_runs < out->floor_runs) {
        const struct yaml_node *noisy = yaml_child(map, "noisy");
        if (noisy != NULL)
            return yaml_fail(noisy, "noisy: expected no fewer than floor.runs (%llu), got %llu",
                             (unsigned long long)out->floor_runs,
                             (unsigned long long)out->noisy_runs);
        out->noisy_runs = out->floor_runs;
    }
    return STATUS_OK;
}

static enum status read_run(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"slots", "devices", "timeout", "port", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(check_keys(map, "run", keys));
    const struct yaml_node *devices = yaml_child(map, "devices");
    if (devices != NULL) {
        if (devices->kind != YAML_LIST || devices->count == 0 ||
            devices->count > ABLATE_DEVICES_MAX)
            return expect(devices, "devices", "a list of 1 to 64 devices, one for each slot");
        for (const struct yaml_node *item = devices->first; item != NULL; item = item->next) {
            TRY(expect_text(item, "devices", "a device as CUDA_VISIBLE_DEVICES has it"));
            out->devices[out->device_count++] = item->text;
        }
        out->slots = out->device_count;
    }
    TRY(read_uint(map, "slots", 1, SLOTS_MOST, &out->slots));
    if (out->device_count > 0 && out->slots > out->device_count)
        return yaml_fail(yaml_child(map, "slots"),
                         "slots: expected no more than the %zu devices, got %llu: a device serves "
                         "one slot",
                         out->device_count, (unsigned long long)out->slots);
    TRY(read_uint(map, "port", 1024, 65535 - SLOTS_MOST, &out->port));
    return read_real(map, "timeout", 0.0, 1e9, "a number of seconds above 0", &out->timeout);
}

static enum status read_reads(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"weights", "log", "trace", "bytes", NULL};
    TRY(check_keys(map, "read", keys));
    for (int i = 0; i < READ_KINDS; i++) {
        const struct yaml_node *node = yaml_child(map, ablate_read_names[i]);
        if (node == NULL) continue;
        TRY(expect_text(node, ablate_read_names[i], "a path"));
        out->read[i] = node->text;
    }
    if (map->count == 0)
        return yaml_fail(map, "read: expected at least one of weights, log, trace, bytes");
    return STATUS_OK;
}

/* ---- placeholders ---- */

struct checking {
    const struct ablate_file *file;
    const struct yaml_node *node; /* whose place errors name */
    const char *key;
    int factors;    /* factors may stand here */
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
            checking->has_dir |= length == 3 && memcmp(piece, "dir", 3) == 0;
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
            (piece != whole + 1 || *text != '\0' || strcmp(checking->key, "command") != 0))
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
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next) {
        checking->node = item;
        TRY(check_text(checking, item->text));
    }
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

/* Checks every text with placeholders, and that the words of each factor stand somewhere. */
static enum status check_places(const struct yaml_node *root, const struct ablate_file *file) {
    const struct yaml_node *const factors = yaml_child(root, "factors");
    const struct yaml_node *const test = yaml_child(root, "test");
    struct checking checking = {.file = file, .factors = 1};
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
    TRY(check_values(&checking, yaml_child(root, "read")));
    const struct yaml_node *node = factors == NULL ? NULL : factors->first;
    for (uint32_t i = 0; i < file->factor_count; i++, node = node->next)
        if (file->factors[i].has_words && (used >> i & 1u) == 0)
            return yaml_fail_key(node,
                                 "%s: {%s} stands nowhere in command or environment, so the factor "
                                 "would change nothing",
                                 file->factors[i].name, file->factors[i].name);
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

/* ---- the file ---- */

static enum status read_head(const struct yaml_node *root, const char *word, struct arena *arena,
                             struct ablate_file *out) {
    const struct yaml_node *version = yaml_child(root, word), *name = yaml_child(root, "name");
    uint64_t number = 0;
    if (version == NULL)
        return yaml_fail(root, "%s: expected %s: %d, the version of the format, got nothing", word,
                         word, ABLATE_VERSION);
    if (version->kind != YAML_PLAIN || number_parse_uint(version->text, &number) != STATUS_OK ||
        number != ABLATE_VERSION)
        return expect(version, word, "1, the version of the format");
    if (name != NULL) {
        TRY(expect_text(name, "name", "a name"));
        if (name->text[0] == '\0' || strchr(name->text, '/') != NULL)
            return expect(name, "name", "a name without /, of which the folder's is made");
        out->name = name->text;
        return STATUS_OK;
    }
    const char *slash = strrchr(out->path, '/');
    const char *stem = slash == NULL ? out->path : slash + 1;
    const char *dot = strrchr(stem, '.');
    char *text;
    TRY(arena_text(arena, stem, dot == NULL || dot == stem ? strlen(stem) : (size_t)(dot - stem),
                   &text));
    out->name = text;
    return STATUS_OK;
}

static enum status read_test(const struct yaml_node *map, struct arena *arena,
                             struct ablate_file *out) {
    static const char *const keys[] = {"command", "environment", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(check_keys(map, "test", keys));
    const struct yaml_node *command = yaml_child(map, "command");
    const struct yaml_node *environment = yaml_child(map, "environment");
    if (command == NULL)
        return yaml_fail(map, "test: expected command, the test arm's own, got none");
    TRY(read_command(command, "test.command", arena, &out->test));
    if (environment != NULL)
        TRY(read_environment(environment, "test.environment", arena, &out->test));
    out->has_test = 1;
    return STATUS_OK;
}

static enum status read_mixtures(const struct yaml_node *node, struct ablate_file *out) {
    if (node == NULL) return STATUS_OK;
    if (is_scalar(node) && (strcmp(node->text, "all") == 0 || strcmp(node->text, "single") == 0)) {
        out->single = node->text[0] == 's';
        return STATUS_OK;
    }
    return expect(node, "mixtures", "all or single");
}

static enum status read_root(const struct yaml_node *root, struct arena *arena,
                             struct ablate_file *out) {
    static const char *const keys[] = {"ablate",   "name",  "command", "environment", "test",
                                       "factors",  "read",  "floor",   "run",         "seed",
                                       "mixtures", "files", NULL};
    static const char *const needed[] = {"command", "factors", "read"};
    TRY(check_keys(root, "", keys));
    TRY(read_head(root, "ablate", arena, out));
    for (size_t i = 0; i < COUNT_OF(needed); i++)
        if (yaml_child(root, needed[i]) == NULL)
            return yaml_fail(root, "%s: expected, but not there", needed[i]);
    const struct yaml_node *environment = yaml_child(root, "environment");
    TRY(read_command(yaml_child(root, "command"), "command", arena, &out->command));
    if (environment != NULL)
        TRY(read_environment(environment, "environment", arena, &out->command));
    TRY(read_files(yaml_child(root, "files"), out));
    TRY(read_factors(yaml_child(root, "factors"), arena, out));
    TRY(read_test(yaml_child(root, "test"), arena, out));
    TRY(read_reads(yaml_child(root, "read"), out));
    TRY(read_floor(yaml_child(root, "floor"), out));
    TRY(read_run(yaml_child(root, "run"), out));
    TRY(read_mixtures(yaml_child(root, "mixtures"), out));
    TRY(read_uint(root, "seed", 0, INT64_MAX, &out->seed));
    return check_places(root, out);
}

/* One version a line; empty lines and those that begin with # do not count. */
static enum status read_version_lines(const struct yaml_node *node, struct arena *arena,
                                      const char **versions, size_t *count) {
    char *text;
    size_t length;
    TRY(textfile_read(arena, node->text, ABLATE_BYTES_MAX, &text, &length));
    for (char *line = text; *line != '\0';) {
        char *const end = line + strcspn(line, "\n");
        const int last = *end == '\0';
        *end = '\0';
        if (line[0] != '\0' && line[0] != '#') {
            if (*count == ABLATE_VERSIONS_MAX)
                return yaml_fail(node, "versions: more than %d in %s", ABLATE_VERSIONS_MAX,
                                 node->text);
            versions[(*count)++] = line;
        }
        line = last ? end : end + 1;
    }
    return STATUS_OK;
}

static enum status read_versions(const struct yaml_node *node, struct arena *arena,
                                 struct ablate_file *out) {
    const char **versions;
    TRY(arena_take(arena, ABLATE_VERSIONS_MAX, sizeof *versions, "versions", &versions));
    if (node->kind == YAML_LIST) {
        for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
            TRY(expect_text(item, "versions", "a version"));
            if (out->version_count == ABLATE_VERSIONS_MAX)
                return yaml_fail(node, "versions: more than %d", ABLATE_VERSIONS_MAX);
            versions[out->version_count++] = item->text;
        }
    } else {
        TRY(expect_text(node, "versions", "a list, or a file with one a line"));
        TRY(read_version_lines(node, arena, versions, &out->version_count));
    }
    if (out->version_count < 2)
        return yaml_fail(node, "versions: expected two at least, the good one first, got %zu",
                         out->version_count);
    out->versions = versions;
    return STATUS_OK;
}

static enum status read_bisect(const struct yaml_node *root, struct arena *arena,
                               struct ablate_file *out) {
    static const char *const keys[] = {"bisect", "name",  "command", "environment", "versions",
                                       "read",   "floor", "run",     "seed",        NULL};
    static const char *const needed[] = {"command", "versions", "read"};
    TRY(check_keys(root, "", keys));
    TRY(read_head(root, "bisect", arena, out));
    for (size_t i = 0; i < COUNT_OF(needed); i++)
        if (yaml_child(root, needed[i]) == NULL)
            return yaml_fail(root, "%s: expected, but not there", needed[i]);
    const struct yaml_node *environment = yaml_child(root, "environment");
    TRY(read_command(yaml_child(root, "command"), "command", arena, &out->command));
    if (environment != NULL)
        TRY(read_environment(environment, "environment", arena, &out->command));
    TRY(read_versions(yaml_child(root, "versions"), arena, out));
    TRY(read_reads(yaml_child(root, "read"), out));
    TRY(read_floor(yaml_child(root, "floor"), out));
    TRY(read_run(yaml_child(root, "run"), out));
    TRY(read_uint(root, "seed", 0, INT64_MAX, &out->seed));
    return check_places(root, out);
}

static void set_defaults(const char *path, struct ablate_file *out) {
    memset(out, 0, sizeof *out);
    out->path = path;
    out->floor_runs = 2;
    out->noisy_runs = 5; /* the least of which the labels reach 0.01: 2 / C(10, 5) */
    out->noisy_mixtures = 3;
    out->alpha = 0.01;
    out->slots = 1;
    out->port = 29500; /* that of torchrun */
    out->timeout = INFINITY;
}

enum status bisect_file_read(const char *path, struct arena *arena, struct ablate_file *out) {
    struct yaml_node *root;
    char *text;
    size_t length;
    set_defaults(path, out);
    TRY(textfile_read(arena, path, ABLATE_BYTES_MAX, &text, &length));
    TRY(yaml_parse(arena, path, 1, text, length, &root));
    return read_bisect(root, arena, out);
}

enum status ablate_file_parse(const char *path, const char *text, size_t length,
                              struct arena *arena, struct ablate_file *out) {
    struct yaml_node *root;
    set_defaults(path, out);
    TRY(yaml_parse(arena, path, 1, text, length, &root));
    return read_root(root, arena, out);
}

enum status ablate_file_read(const char *path, struct arena *arena, struct ablate_file *out) {
    char *text;
    size_t length;
    TRY(textfile_read(arena, path, ABLATE_BYTES_MAX, &text, &length));
    return ablate_file_parse(path, text, length, arena, out);
}
