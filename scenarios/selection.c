/* SPDX-License-Identifier: Apache-2.0
 * Look-ups by name. Tables are short, so walking them needs no index. */
#include "scenarios/selection.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/row_value.h"

static const char *const prefixes[SELECT_COUNT] = {"optimizer", "schedule"};

const char *selection_prefix(enum selection selection) {
    return prefixes[selection];
}

size_t selection_row(enum selection selection, const char *key) {
    char path[64];
    size_t index = 0;
    snprintf(path, sizeof path, "%s.%s", prefixes[selection], key);
    schema_find(path, &index);
    return index;
}

struct config_class *selection_of(struct config *config, enum selection selection) {
    return selection == SELECT_OPTIMIZER ? &config->optimizer.which : &config->schedule.which;
}

const struct config_class *selection_read(const struct config *config, enum selection selection) {
    return selection == SELECT_OPTIMIZER ? &config->optimizer.which : &config->schedule.which;
}

const struct schema_class *selection_find(const struct schema *schema, enum selection selection,
                                          const char *name, const char *module_sha256) {
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *here = &schema->classes[i];
        if (strcmp(here->prefix, prefixes[selection]) == 0 && strcmp(here->name, name) == 0 &&
            strcmp(here->module == NULL ? CONFIG_NO_MODULE : here->module, module_sha256) == 0)
            return here;
    }
    return NULL;
}

const struct schema_class *selection_class(const struct schema *schema, const struct config *config,
                                           enum selection selection) {
    const struct config_class *which = selection_read(config, selection);
    return selection_find(schema, selection, which->name, which->module_sha256);
}

const struct key_row *selection_key(const struct schema_class *class_of_keys, const char *key) {
    return row_find(class_of_keys->keys, class_of_keys->key_count, key);
}

const struct key_row *schema_find(const char *path, size_t *out_index) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    const struct key_row *found = row_find(rows, count, path);
    if (found != NULL && out_index != NULL) *out_index = (size_t)(found - rows);
    return found;
}

const struct schema_contract *schema_contract_find(const struct schema *schema, const char *name) {
    for (size_t i = 0; i < schema->contract_count; i++) {
        const struct schema_contract *here = &schema->contracts[i];
        if (strcmp(here->name, name) == 0) return here;
        if (here->alias != NULL && strcmp(here->alias, name) == 0) return here;
    }
    return NULL;
}

int config_has_dropout(const struct config *config) {
    return config->dropout.embedding > 0.0 || config->dropout.attention > 0.0 ||
           config->dropout.residual > 0.0;
}

int config_ranks_close(const struct config *config) {
    const int32_t mode = config->numerics.mode;
    return config->parallel.ranks > 1 && (mode == MODE_SHAPED || mode == MODE_SHUFFLED);
}

uint64_t config_dealt_shards(const struct config *config) {
    const uint64_t shards = config->numerics.shards;
    return config_ranks_close(config) || shards == 1 ? config->parallel.ranks : shards;
}

int config_parts_ranks(const struct config *config) {
    return config->parallel.ranks > 1 && config->parallel.sync == SYNC_FIRST;
}

uint32_t config_fed_ranks(const struct config *config) {
    return config->parallel.feeds == FEEDS_OWN_ON_TENSOR ? (uint32_t)config->parallel.tensor : 1;
}

int config_parts_tensor_ranks(const struct config *config) {
    const int forgets = config->parallel.tensor > 1 && config->parallel.forgets != FORGETS_NONE;
    return forgets || config_fed_ranks(config) > 1;
}

uint32_t config_copies(const struct config *config) {
    if (config_parts_tensor_ranks(config)) return (uint32_t)config->parallel.tensor;
    const int owned = config->parallel.zero != ZERO_NONE; /* of a part there is one owner */
    return config_parts_ranks(config) && !owned ? (uint32_t)config->parallel.ranks : 1;
}

int config_uses_openblas(const struct config *config) {
    return config->numerics.backend == BACKEND_CPU && config->numerics.mode == MODE_FAST &&
           config->numerics.library != LIBRARY_NONE;
}

int config_uses_cublas(const struct config *config) {
    const int32_t mode = config->numerics.mode;
    return config->numerics.backend == BACKEND_CUDA && config->numerics.library != LIBRARY_NONE &&
           (mode == MODE_FAST || mode == MODE_DETERMINISTIC);
}

int config_races(const struct config *config) {
    const int32_t mode = config->numerics.mode;
    if (mode == MODE_ATOMIC) return 1;
    if (config->numerics.backend == BACKEND_CPU) return 0;
    if (mode != MODE_FAST && mode != MODE_DETERMINISTIC) return 0;
    return config->numerics.determinism.atomics ||
           (config_uses_cublas(config) && config->numerics.determinism.order);
}

int config_has_reference(const struct config *config) {
    return config->task == TASK_DPO && config->dpo.loss != DPO_SIMPO;
}

int config_has_contract(const struct config *config) {
    return strcmp(config->schedule.contract, CONFIG_NO_CONTRACT) != 0;
}

const char *schema_implied_text(const struct schema_implied *implied) {
    return implied->shown == NULL ? implied->text : implied->shown;
}
