/* SPDX-License-Identifier: Apache-2.0
 * schedule.contract: which contract it is, which keys follow from it or contradict it, whose
 * schedules a name means, and the units of its numbers. Contracts are known here as data only. */
#include "scenarios/resolve_private.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/row_value.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

static enum status unknown_contract(const struct resolving *resolving, const char *name) {
    const struct schema *schema = resolving->keys->schema;
    struct fault fault = {.status = STATUS_OK};
    char hint[SYNONYM_HINT_SIZE];
    const struct synonym *synonym = synonym_of_value("schedule.contract", name);
    struct suggestion nearest = {.word = name};
    suggest_offer(&nearest, CONFIG_NO_CONTRACT);
    for (size_t i = 0; i < schema->contract_count; i++)
        suggest_offer(&nearest, schema->contracts[i].name);
    fault_set(&fault, STATUS_INPUT, "schedule.contract",
              "expected none or a contract that `twinstep list contracts` lists, got \"%s\"%s",
              name, synonym != NULL ? synonym_hint(synonym, hint) : suggest_hint(&nearest, hint));
    return resolve_report(resolving, &fault);
}

/* Writes "line 4", or the whole --set option. */
static void write_place(const struct yaml_node *node, char out[RESOLVE_PATH_SIZE]) {
    if (node->line > 0)
        snprintf(out, RESOLVE_PATH_SIZE, "line %d", node->line);
    else
        snprintf(out, RESOLVE_PATH_SIZE, "%s", node->source);
}

/* An arm gives either a contract or the keys that follow from one. */
static enum status check_implied(const struct resolving *resolving) {
    const struct schema_contract *contract = resolving->contract;
    for (size_t i = 0; i < contract->implied_count; i++) {
        char place[RESOLVE_PATH_SIZE];
        const struct schema_implied *implied = &contract->implied[i];
        const struct given *given = resolve_given(resolving, implied->path);
        if (given == NULL || given->node == NULL) continue;
        write_place(resolve_given(resolving, "schedule.contract")->node, place);
        return yaml_fail_key(given->node,
                             "%s: schedule.contract %s (%s) sets it to %s; give a contract or a "
                             "loop, not both",
                             implied->path, contract->name, place, schema_implied_text(implied));
    }
    return STATUS_OK;
}

enum status resolve_contract_choose(struct resolving *resolving) {
    size_t index = 0;
    struct fault fault = {.status = STATUS_OK};
    const char *name = resolving->config->schedule.contract;
    schema_find("schedule.contract", &index);
    TRY(resolve_read(resolving, index));
    if (!config_has_contract(resolving->config)) return STATUS_OK;
    resolving->contract = schema_contract_find(resolving->keys->schema, name);
    if (resolving->contract == NULL) return unknown_contract(resolving, name);
    /* an alias becomes the name */
    resolve_put(resolving->config->schedule.contract, CONFIG_NAME_SIZE, resolving->contract->name);
    if (resolving->contract->refusal != NULL) {
        fault_set(&fault, STATUS_UNSUPPORTED, "schedule.contract",
                  "no training here obeys contract %s: %s", name, resolving->contract->refusal);
        return resolve_report(resolving, &fault);
    }
    return check_implied(resolving);
}

enum status resolve_contract_schedule(const struct resolving *resolving) {
    const struct schema_contract *contract = resolving->contract;
    struct config_class *which = &resolving->config->schedule.which;
    struct fault fault = {.status = STATUS_OK};
    const char *bare = which->name;
    if (contract == NULL) return STATUS_OK;
    if (resolve_given(resolving, "schedule.name")->node == NULL) bare = contract->standard;
    const char *found = contract->find(contract, bare);
    if (found == NULL) {
        fault_set(&fault, STATUS_INPUT, "schedule.name",
                  "contract %s has no schedule \"%s\"; it has %s", contract->name, bare,
                  contract->schedules);
        return resolve_report(resolving, &fault);
    }
    resolve_put(which->name, sizeof which->name, found);
    return STATUS_OK;
}

enum status resolve_contract_implied(const struct resolving *resolving) {
    const struct schema_contract *contract = resolving->contract;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; contract != NULL && i < contract->implied_count; i++) {
        const struct schema_implied *implied = &contract->implied[i];
        size_t index = 0;
        if (schema_find(implied->path, &index) == NULL)
            FAIL(STATUS_INTERNAL, "contract %s implies %s, which is no row", contract->name,
                 implied->path);
        struct key_row row = rows[index];
        row.standard = implied->text;
        TRY(row_read_standard(&row, row.path, resolving->config));
    }
    return STATUS_OK;
}

enum status resolve_contract_units(const struct resolving *resolving, int warmup_given,
                                   uint64_t steps) {
    struct schema_value values[SCHEMA_VALUES_MAX];
    struct fault fault = {.status = STATUS_OK};
    size_t count = 0;
    if (resolving->contract == NULL) return STATUS_OK;
    if (warmup_given && resolving->config->schedule.warmup_ratio != KEY_WORD_REAL) {
        fault_set(&fault, STATUS_INPUT, "schedule.warmup",
                  "with a contract, expected schedule.warmup or schedule.warmup_ratio, not both");
        return resolve_report(resolving, &fault);
    }
    for (const struct class_given *given = resolving->keys->classes; given != NULL;
         given = given->next) {
        if (given->selection != SELECT_SCHEDULE || given->value.node->text == NULL ||
            selection_key(resolving->classes[SELECT_SCHEDULE], given->key) == NULL)
            continue;
        if (count == SCHEMA_VALUES_MAX) break; /* no class has as many keys */
        values[count++] = (struct schema_value){given->key, given->value.node->text};
    }
    enum status status =
        resolving->contract->resolve(resolving->contract, values, count, steps, resolving->config);
    return status == STATUS_OK ? STATUS_OK : resolve_place(resolving, SELECT_SCHEDULE, status);
}
