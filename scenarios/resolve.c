/* SPDX-License-Identifier: Apache-2.0
 * Order of resolution: contract, class selection, defaults, written values, what the contract
 * implies, derivation, the contract's units, bounds of derived values, checks across keys. Every
 * step knows the place of the value it complains about. */
#include "scenarios/resolve.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/resolve_private.h"
#include "scenarios/row_value.h"
#include "scenarios/suggest.h"

enum status arm_keys_open(struct arm_keys *keys, const struct schema *schema, struct arena *arena) {
    size_t count = 0;
    schema_rows(&count);
    keys->schema = schema;
    keys->arena = arena;
    keys->classes = NULL;
    keys->last_class = NULL;
    memset(keys->modules, 0, sizeof keys->modules);
    return arena_take(arena, count, sizeof *keys->rows, "the keys of an arm", &keys->rows);
}

/* Whether rows stand below `path`. */
static int is_section(const char *path) {
    size_t count = 0;
    size_t length = strlen(path);
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strncmp(rows[i].path, path, length) == 0 && rows[i].path[length] == '.') return 1;
    return 0;
}

/* The selection whose classes have keys below section `prefix`; -1. */
static int section_selection(const char *prefix) {
    for (int s = 0; s < SELECT_COUNT; s++)
        if (strcmp(selection_prefix((enum selection)s), prefix) == 0) return s;
    return -1;
}

static int any_class_has(const struct schema *schema, int selection, const char *key) {
    for (size_t i = 0; i < schema->class_count; i++)
        if (strcmp(schema->classes[i].prefix, selection_prefix((enum selection)selection)) == 0 &&
            selection_key(&schema->classes[i], key) != NULL)
            return 1;
    return 0;
}

static const char *last_word(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot == NULL ? path : dot + 1;
}

/* Siblings by distance; else the same word in another section. */
static void suggest_key(const struct schema *schema, const char *section, const char *word,
                        char out[RESOLVE_PATH_SIZE]) {
    size_t count = 0;
    size_t length = strlen(section);
    const struct key_row *rows = schema_rows(&count);
    struct suggestion nearest = {.word = word};
    char siblings[128][64];
    for (size_t i = 0; i < count && i < COUNT_OF(siblings); i++) {
        if (strncmp(rows[i].path, section, length) != 0) continue;
        const char *rest = rows[i].path + length;
        if (length != 0 && *rest++ != '.') continue;
        snprintf(siblings[i], sizeof siblings[i], "%.*s", (int)strcspn(rest, "."), rest);
        suggest_offer(&nearest, siblings[i]);
    }
    int selection = section_selection(section);
    for (size_t i = 0; selection >= 0 && i < schema->class_count; i++)
        if (strcmp(schema->classes[i].prefix, section) == 0)
            for (size_t k = 0; k < schema->classes[i].key_count; k++)
                suggest_offer(&nearest, schema->classes[i].keys[k].path);
    out[0] = '\0';
    if (nearest.best != NULL) {
        snprintf(out, RESOLVE_PATH_SIZE, "; did you mean %s%s%s?", section, length == 0 ? "" : ".",
                 nearest.best);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(last_word(rows[i].path), word) == 0) {
            snprintf(out, RESOLVE_PATH_SIZE, "; did you mean %s?", rows[i].path);
            return;
        }
}

static enum status unknown_key(const struct arm_keys *keys, const char *section,
                               const struct yaml_node *node) {
    char hint[RESOLVE_PATH_SIZE];
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = node->key};
    if (strchr(node->key, '.') != NULL)
        return yaml_fail_key(node, "unknown key %s; sections are maps, not dots",
                             yaml_describe(&word, got));
    suggest_key(keys->schema, section, node->key, hint);
    if (section[0] != '\0')
        return yaml_fail_key(node, "%s: unknown key %s%s", section, yaml_describe(&word, got),
                             hint);
    return yaml_fail_key(node, "unknown key %s%s", yaml_describe(&word, got), hint);
}

static enum status collect_class(struct arm_keys *keys, int selection, const struct yaml_node *node,
                                 int layer) {
    struct class_given *fresh = NULL;
    TRY(arena_take(keys->arena, 1, sizeof *fresh, "a class's key", &fresh));
    fresh->key = node->key;
    fresh->selection = (enum selection)selection;
    fresh->value = (struct given){node, layer};
    if (keys->last_class == NULL)
        keys->classes = fresh;
    else
        keys->last_class->next = fresh;
    keys->last_class = fresh;
    return STATUS_OK;
}

static enum status collect(struct arm_keys *keys, const struct yaml_node *map, const char *section,
                           int layer);

static enum status collect_one(struct arm_keys *keys, const struct yaml_node *node,
                               const char *section, int layer) {
    char path[RESOLVE_PATH_SIZE];
    size_t index = 0;
    if (strlen(node->key) > 64 || strchr(node->key, '.') != NULL)
        return unknown_key(keys, section, node);
    snprintf(path, sizeof path, "%s%s%s", section, section[0] == '\0' ? "" : ".", node->key);
    int selection = section_selection(section);
    if (schema_find(path, &index) != NULL) {
        keys->rows[index] = (struct given){node, layer};
        if (selection >= 0 && index == selection_module_row((enum selection)selection))
            keys->modules[selection] = 1;
        return STATUS_OK;
    }
    /* which keys there are is known when modules are loaded */
    if (selection >= 0) return collect_class(keys, selection, node, layer);
    if (!is_section(path)) return unknown_key(keys, section, node);
    if (node->kind == YAML_NULL) return STATUS_OK;
    char got[YAML_TEXT_SIZE];
    if (node->kind != YAML_MAP)
        return yaml_fail(node, "%s: expected a map of keys, got %s", path,
                         yaml_describe(node, got));
    return collect(keys, node, path, layer);
}

static enum status collect(struct arm_keys *keys, const struct yaml_node *map, const char *section,
                           int layer) {
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next)
        TRY(collect_one(keys, child, section, layer));
    return STATUS_OK;
}

enum status arm_keys_collect(struct arm_keys *keys, const struct yaml_node *map, int layer) {
    return collect(keys, map, "", layer);
}

/* Where a key that was not written got its value from, or what else a check reads. */
static const struct {
    const char *path;
    const char *from[6];
} origins[] = {
    {"model.head_dim", {"model.heads", "model.hidden"}},
    {"model.kv_heads", {"model.heads"}},
    {"model.rope_theta", {"model.rope_scaling"}},
    {"model.rope_factor", {"model.rope_scaling"}},
    {"batch.micro", {"batch.size"}},
    {"dpo.reference_batch", {"batch.micro", "batch.size"}},
    {"dpo.reference_compute", {"numerics.compute", "numerics.accumulate"}},
    {"numerics.accumulate", {"numerics.compute"}},
    {"numerics.gradient", {"numerics.param"}},
    {"numerics.optimizer", {"numerics.master", "numerics.param"}},
    {"numerics.loss", {"numerics.compute"}},
    {"numerics.determinism.workspace", {"numerics.mode"}},
    {"numerics.determinism.order", {"numerics.mode"}},
    {"numerics.determinism.atomics", {"numerics.mode"}},
    {"numerics.determinism.split_k", {"numerics.mode"}},
    {"numerics.determinism.fill", {"numerics.mode", "numerics.backend"}},
    {"schedule.increment",
     {"schedule.shift", "schedule.origin", "schedule.logged_shift", "schedule.processes",
      "schedule.contract"}},
    {"schedule.warmup", {"schedule.warmup_ratio", "schedule.contract"}},
    {"schedule.total", {"schedule.contract"}},
    {"schedule.updates_per_epoch", {"schedule.contract"}},
    {"schedule.name", {"schedule.contract"}},
};

const struct given *resolve_given(const struct resolving *resolving, const char *path) {
    size_t index = 0;
    return schema_find(path, &index) == NULL ? NULL : &resolving->keys->rows[index];
}

/* The key of the latest layer among those that a value came from; NULL. */
static const char *find_origin(const struct resolving *resolving, const char *path) {
    const char *best = NULL;
    int layer = -1;
    for (size_t i = 0; i < COUNT_OF(origins); i++) {
        if (strcmp(origins[i].path, path) != 0) continue;
        for (size_t k = 0; k < COUNT_OF(origins[i].from) && origins[i].from[k] != NULL; k++) {
            const struct given *given = resolve_given(resolving, origins[i].from[k]);
            if (given->node == NULL || given->layer <= layer) continue;
            best = origins[i].from[k];
            layer = given->layer;
        }
    }
    return best;
}

/* A fault at the place where its key was written, or one that its value came from; or in the name
 * of the arm. Keeps the fault's status, not that of yaml_fail. */
enum status resolve_report(const struct resolving *resolving, const struct fault *fault) {
    const struct given *given = resolve_given(resolving, fault->path);
    if (given != NULL && given->node != NULL) {
        (void)yaml_fail(given->node, "%s: %s", fault->path, fault->text);
        return fault->status;
    }
    const char *origin = find_origin(resolving, fault->path);
    if (origin == NULL)
        return status_fail(fault->status, "%s: error: arm %s: %s: %s", resolving->label,
                           resolving->arm, fault->path, fault->text);
    (void)yaml_fail(resolve_given(resolving, origin)->node, "%s: %s: %s", origin, fault->path,
                    fault->text);
    return fault->status;
}

enum status arm_report(const struct arm_keys *keys, const char *label, const char *arm,
                       const struct fault *fault) {
    const struct resolving resolving = {.keys = keys, .label = label, .arm = arm};
    return resolve_report(&resolving, fault);
}

/* "a, b, c"; names that no longer fit become "and others". */
static void join_name(char *out, size_t size, const char *name) {
    static const char others[] = " and others";
    size_t used = strlen(out);
    if (used >= sizeof others && strcmp(out + used + 1 - sizeof others, others) == 0) return;
    if (used + strlen(name) + sizeof ", " + sizeof others > size)
        snprintf(out + used, size - used, "%s", others);
    else
        snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", name);
}

static enum status unknown_class(const struct resolving *resolving, enum selection selection,
                                 const char *path, const char *name) {
    const struct schema *schema = resolving->keys->schema;
    const char *prefix = selection_prefix(selection);
    struct fault fault = {.status = STATUS_OK};
    const struct config_class *which = selection_read(resolving->config, selection);
    struct suggestion nearest = {.word = name};
    char known[256] = "";
    for (size_t i = 0; i < schema->class_count; i++) {
        if (strcmp(schema->classes[i].prefix, prefix) != 0) continue;
        const char *candidate = schema->classes[i].name;
        const char *held = schema->classes[i].module;
        if (strcmp(held == NULL ? CONFIG_NO_MODULE : held, which->module_sha256) != 0) continue;
        join_name(known, sizeof known, candidate);
        suggest_offer(&nearest, candidate);
    }
    const int built_in = strcmp(which->module, CONFIG_NO_MODULE) == 0;
    fault_set(&fault, STATUS_INPUT, path, "expected one of %s%s%.200s, got \"%s\"%s%s%s", known,
              built_in ? "" : " in ", built_in ? "" : which->module, name,
              nearest.best == NULL ? "" : "; did you mean ",
              nearest.best == NULL ? "" : nearest.best, nearest.best == NULL ? "" : "?");
    return resolve_report(resolving, &fault);
}

enum status resolve_read(const struct resolving *resolving, size_t index) {
    size_t count = 0;
    const struct key_row *row = &schema_rows(&count)[index];
    const struct given *given = &resolving->keys->rows[index];
    if (given->node == NULL) return row_read_standard(row, row->path, resolving->config);
    return row_read(row, row->path, given->node, resolving->config);
}

static enum status choose_class(struct resolving *resolving, enum selection selection) {
    size_t count = 0;
    size_t index = selection_row(selection);
    const struct key_row *row = &schema_rows(&count)[index];
    TRY(resolve_read(resolving, index));
    TRY(resolve_module(resolving, selection));
    if (selection == SELECT_SCHEDULE) TRY(resolve_contract_schedule(resolving));
    const char *name = selection_read(resolving->config, selection)->name;
    const struct schema_class *chosen =
        selection_class(resolving->keys->schema, resolving->config, selection);
    if (chosen == NULL) return unknown_class(resolving, selection, row->path, name);
    resolving->classes[selection] = chosen;
    return STATUS_OK;
}

static int fits_values(const struct key_row *row) {
    return row->size <= CONFIG_CLASS_BYTES && row->offset <= CONFIG_CLASS_BYTES - row->size;
}

static enum status fill_class_standards(struct resolving *resolving, enum selection selection) {
    const struct schema_class *chosen = resolving->classes[selection];
    void *values = selection_of(resolving->config, selection)->values;
    for (size_t i = 0; i < chosen->key_count; i++) {
        const struct key_row *row = &chosen->keys[i];
        if (!fits_values(row))
            FAIL(STATUS_INTERNAL, "%s %s: key %s lies outside its %d bytes", chosen->prefix,
                 chosen->name, row->path, CONFIG_CLASS_BYTES);
        TRY(row_read_standard(row, row->path, values));
    }
    return STATUS_OK;
}

static enum status fill_rows(struct resolving *resolving) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++) {
        /* these are read and translated already */
        int chosen = strcmp(rows[i].path, "schedule.contract") == 0;
        for (int s = 0; s < SELECT_COUNT; s++)
            chosen |= i == selection_row((enum selection)s) ||
                      i == selection_module_row((enum selection)s) ||
                      i == selection_digest_row((enum selection)s);
        if (!chosen) TRY(resolve_read(resolving, i));
    }
    return STATUS_OK;
}

/* The class that was chosen when `layer` was written: a later layer may have chosen another. */
static const struct schema_class *class_below(const struct resolving *resolving,
                                              enum selection selection, const struct given *value) {
    const struct given *choice = &resolving->keys->rows[selection_row(selection)];
    const struct given *contract = resolve_given(resolving, "schedule.contract");
    const struct given *module = &resolving->keys->rows[selection_module_row(selection)];
    int replaced = (choice->node != NULL && choice->layer > value->layer) ||
                   (module->node != NULL && module->layer > value->layer);
    if (selection == SELECT_SCHEDULE && contract->node != NULL && contract->layer > value->layer)
        replaced = 1;
    return replaced ? NULL : resolving->classes[selection];
}

static enum status wrong_class(const struct resolving *resolving, const struct class_given *given) {
    const struct schema *schema = resolving->keys->schema;
    const char *prefix = selection_prefix(given->selection);
    char owners[256] = "";
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *owner = &schema->classes[i];
        if (strcmp(owner->prefix, prefix) != 0 || selection_key(owner, given->key) == NULL)
            continue;
        join_name(owners, sizeof owners, owner->name);
    }
    return yaml_fail_key(given->value.node, "%s.%s belongs to %s; %s.name is %s in arm %s", prefix,
                         given->key, owners, prefix,
                         selection_read(resolving->config, given->selection)->name, resolving->arm);
}

/* A key of a class that a later layer replaced goes with its class. */
static enum status fill_class_given(struct resolving *resolving, const struct class_given *given) {
    const struct schema_class *chosen = resolving->classes[given->selection];
    const struct key_row *row = selection_key(chosen, given->key);
    if (row == NULL) {
        const int known = any_class_has(resolving->keys->schema, (int)given->selection, given->key);
        const int gone = class_below(resolving, given->selection, &given->value) == NULL;
        /* a module that a later layer replaced was not loaded: the key may have been its */
        if (!known && !(gone && resolving->keys->modules[given->selection]))
            return unknown_key(resolving->keys, selection_prefix(given->selection),
                               given->value.node);
        return gone ? STATUS_OK : wrong_class(resolving, given);
    }
    char path[RESOLVE_PATH_SIZE];
    snprintf(path, sizeof path, "%s.%s", selection_prefix(given->selection), given->key);
    return row_read(row, path, given->value.node,
                    selection_of(resolving->config, given->selection)->values);
}

/* The key that a class complains about, else the last one written in its section; NULL. */
static const struct yaml_node *class_node(const struct resolving *resolving,
                                          enum selection selection, const char *text) {
    const char *prefix = selection_prefix(selection);
    size_t length = strlen(prefix);
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    const struct yaml_node *any = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct yaml_node *node = resolving->keys->rows[i].node;
        size_t size = strlen(rows[i].path);
        if (node == NULL) continue;
        if (strncmp(text, rows[i].path, size) == 0 && text[size] == ':') return node;
        if (strncmp(rows[i].path, prefix, length) == 0 && rows[i].path[length] == '.') any = node;
    }
    const struct yaml_node *named = NULL;
    for (const struct class_given *given = resolving->keys->classes; given != NULL;
         given = given->next) {
        size_t size = strlen(given->key);
        if (given->selection != selection ||
            selection_key(resolving->classes[selection], given->key) == NULL)
            continue;
        any = given->value.node;
        if (strncmp(text, prefix, length) == 0 && text[length] == '.' &&
            strncmp(text + length + 1, given->key, size) == 0 && text[length + 1 + size] == ':')
            named = any;
    }
    return named != NULL ? named : any;
}

/* An error of a class or a contract at the line of its key. */
enum status resolve_place(const struct resolving *resolving, enum selection selection,
                          enum status status) {
    char text[512];
    snprintf(text, sizeof text, "%s", status_text());
    const struct yaml_node *node = class_node(resolving, selection, text);
    if (node == NULL)
        return status_prefix(status, "%s: error: arm %s", resolving->label, resolving->arm);
    (void)yaml_fail(node, "%s", text);
    return status;
}

static enum status check_class(const struct resolving *resolving, enum selection selection) {
    const struct schema_class *chosen = resolving->classes[selection];
    if (chosen->validate == NULL) return STATUS_OK;
    enum status status = chosen->validate(resolving->config);
    return status == STATUS_OK ? STATUS_OK : resolve_place(resolving, selection, status);
}

/* schedule.warmup and schedule.warmup_ratio say the same thing: the later layer counts. */
static int settle_warmup(struct resolving *resolving) {
    size_t warmup = 0;
    size_t ratio = 0;
    schema_find("schedule.warmup", &warmup);
    schema_find("schedule.warmup_ratio", &ratio);
    const struct given *by_count = &resolving->keys->rows[warmup];
    const struct given *by_ratio = &resolving->keys->rows[ratio];
    if (by_count->node == NULL) return 0;
    if (by_ratio->node == NULL || by_ratio->layer == by_count->layer) return 1;
    if (by_ratio->layer > by_count->layer) {
        if (resolving->config->schedule.warmup_ratio != KEY_WORD_REAL) return 0;
    } else {
        resolving->config->schedule.warmup_ratio = KEY_WORD_REAL;
    }
    return 1;
}

static enum status check_derived(const struct resolving *resolving) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (row_in_bounds(&rows[i], resolving->config)) continue;
        char expected[ROW_EXPECTED_SIZE];
        char *value = NULL;
        struct fault fault = {.status = STATUS_OK};
        TRY(row_text(&rows[i], resolving->config, resolving->keys->arena, &value));
        fault_set(&fault, STATUS_INPUT, rows[i].path,
                  "expected %s, got %s, derived from other keys", row_limits(&rows[i], expected),
                  value);
        return resolve_report(resolving, &fault);
    }
    return STATUS_OK;
}

enum status arm_resolve(const struct arm_keys *keys, const char *label, const char *arm,
                        uint64_t steps, struct config *out) {
    struct resolving resolving = {.keys = keys, .label = label, .arm = arm, .config = out};
    struct fault fault = {.status = STATUS_OK};
    memset(out, 0, sizeof *out);
    TRY(resolve_contract_choose(&resolving));
    for (int s = 0; s < SELECT_COUNT; s++) {
        TRY(choose_class(&resolving, (enum selection)s));
        TRY(fill_class_standards(&resolving, (enum selection)s));
    }
    TRY(fill_rows(&resolving));
    TRY(resolve_contract_implied(&resolving));
    TRY(resolve_checkpoint(&resolving));
    for (const struct class_given *given = keys->classes; given != NULL; given = given->next)
        TRY(fill_class_given(&resolving, given));
    int warmup_given = settle_warmup(&resolving);
    if (config_derive(out, steps, warmup_given, &fault) != STATUS_OK)
        return resolve_report(&resolving, &fault);
    TRY(resolve_contract_units(&resolving, warmup_given, steps));
    TRY(check_derived(&resolving));
    if (config_check(out, steps, &fault) != STATUS_OK) return resolve_report(&resolving, &fault);
    for (int s = 0; s < SELECT_COUNT; s++)
        TRY(check_class(&resolving, (enum selection)s));
    return STATUS_OK;
}
