/* SPDX-License-Identifier: Apache-2.0
 * Resolves an arm in this order: contract, choice of classes, defaults, written values, what the
 * contract implies, derivation, the contract's units, bounds of derived values, checks across keys.
 * Every step knows the place of the value that it complains about. */
#include "scenarios/resolve.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/inert.h"
#include "scenarios/resolve_private.h"
#include "scenarios/row_value.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

/* Appends a name to "a, b, c"; names that no longer fit become "and others". */
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
    const struct synonym *synonym = synonym_of_value(path, name);
    char known[256] = "", hint[SYNONYM_HINT_SIZE];
    for (size_t i = 0; i < schema->class_count; i++) {
        if (strcmp(schema->classes[i].prefix, prefix) != 0) continue;
        const char *candidate = schema->classes[i].name;
        const char *held = schema->classes[i].module;
        if (strcmp(held == NULL ? CONFIG_NO_MODULE : held, which->module_sha256) != 0) continue;
        join_name(known, sizeof known, candidate);
        suggest_offer(&nearest, candidate);
    }
    const int built_in = strcmp(which->module, CONFIG_NO_MODULE) == 0;
    fault_set(&fault, STATUS_INPUT, path, "expected one of %s%s%.200s, got \"%s\"%s", known,
              built_in ? "" : " in ", built_in ? "" : which->module, name,
              synonym != NULL ? synonym_hint(synonym, hint) : suggest_hint(&nearest, hint));
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
    size_t index = selection_row(selection, "name");
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
        /* these were read and translated before */
        int chosen = strcmp(rows[i].path, "schedule.contract") == 0;
        for (int s = 0; s < SELECT_COUNT; s++)
            chosen |= i == selection_row((enum selection)s, "name") ||
                      i == selection_row((enum selection)s, "module") ||
                      i == selection_row((enum selection)s, "module_sha256");
        if (!chosen) TRY(resolve_read(resolving, i));
    }
    return STATUS_OK;
}

/* The class that was chosen when this value's layer was written; NULL where a later layer chose
 * another. */
static const struct schema_class *class_below(const struct resolving *resolving,
                                              enum selection selection, const struct given *value) {
    const struct given *choice = &resolving->keys->rows[selection_row(selection, "name")];
    const struct given *contract = resolve_given(resolving, "schedule.contract");
    const struct given *module = &resolving->keys->rows[selection_row(selection, "module")];
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

/* Reads a written key of a class. A key of a class that a later layer replaced is dropped with its
 * class. */
static enum status fill_class_given(struct resolving *resolving, const struct class_given *given) {
    const struct schema_class *chosen = resolving->classes[given->selection];
    const struct key_row *row = selection_key(chosen, given->key);
    if (row == NULL) {
        const int known =
            resolve_any_class_has(resolving->keys->schema, (int)given->selection, given->key);
        const int gone = class_below(resolving, given->selection, &given->value) == NULL;
        /* a module that a later layer replaced was not loaded, and the key may have been its */
        if (!known && !(gone && resolving->keys->modules[given->selection]))
            return resolve_unknown_key(resolving->keys, selection_prefix(given->selection),
                                       given->value.node);
        return gone ? STATUS_OK : wrong_class(resolving, given);
    }
    char path[RESOLVE_PATH_SIZE];
    snprintf(path, sizeof path, "%s.%s", selection_prefix(given->selection), given->key);
    return row_read(row, path, given->value.node,
                    selection_of(resolving->config, given->selection)->values);
}

static enum status check_class(const struct resolving *resolving, enum selection selection) {
    const struct schema_class *chosen = resolving->classes[selection];
    if (chosen->validate == NULL) return STATUS_OK;
    enum status status = chosen->validate(resolving->config);
    return status == STATUS_OK ? STATUS_OK : resolve_place(resolving, selection, status);
}

/* schedule.warmup and schedule.warmup_ratio say the same thing, so the later layer counts. Returns
 * whether schedule.warmup was given and still holds. */
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

/* Ranks that train are counted once: a number of ranks that is written for the loss or for the
 * schedule, and that is read, must be theirs. It imitates ranks where one trains. */
static enum status check_ranks(const struct resolving *resolving) {
    const struct config *const config = resolving->config;
    const struct {
        const char *path;
        uint64_t count;
    } counts[] = {{"loss.ranks", config->loss.ranks},
                  {"schedule.processes", config->schedule.processes}};
    for (size_t i = 0; i < COUNT_OF(counts) && config->parallel.ranks > 1; i++) {
        struct fault fault = {.status = STATUS_OK};
        if (resolve_given(resolving, counts[i].path)->node == NULL ||
            inert_reason(config, counts[i].path) != NULL ||
            counts[i].count == config->parallel.ranks)
            continue;
        fault_set(&fault, STATUS_INPUT, counts[i].path,
                  "%ju contradicts parallel.ranks %ju, which train; leave it out, or write auto",
                  (uintmax_t)counts[i].count, (uintmax_t)config->parallel.ranks);
        return resolve_report(resolving, &fault);
    }
    return STATUS_OK;
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
    TRY(check_ranks(&resolving));
    TRY(resolve_contract_units(&resolving, warmup_given, steps));
    TRY(check_derived(&resolving));
    if (config_check(out, steps, &fault) != STATUS_OK) return resolve_report(&resolving, &fault);
    for (int s = 0; s < SELECT_COUNT; s++)
        TRY(check_class(&resolving, (enum selection)s));
    if (keys->schema->check == NULL) return STATUS_OK;
    const enum status status = keys->schema->check(out, &fault);
    return fault.path == NULL ? status : resolve_report(&resolving, &fault);
}
