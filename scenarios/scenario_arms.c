/* SPDX-License-Identifier: Apache-2.0
 * The arms of a scenario: each is read by the schema's rows, then settled with the other one. The
 * layers of an arm are common, common by --set, the arm, and the arm by --set. */
#include "scenarios/scenario_private.h"

#include <string.h>

#include "scenarios/inert.h"
#include "scenarios/resolve.h"
#include "scenarios/stream_course.h"

static enum status check_arm(const struct yaml_node *arm) {
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = arm->key};
    if (!scenario_is_name(arm->key) || strlen(arm->key) >= CONFIG_NAME_SIZE)
        return yaml_fail_key(arm, "arms: expected a name of letters, digits, - and _, got %s",
                             yaml_describe(&word, got));
    if (arm->kind != YAML_MAP && arm->kind != YAML_NULL)
        return yaml_fail(arm, "arms.%s: expected a map, got %s", arm->key, yaml_describe(arm, got));
    return STATUS_OK;
}

/* An arm called baseline is the baseline wherever it stands; otherwise the first one is. */
enum status scenario_name_arms(struct parsing *parsing) {
    struct scenario_arm *arms = parsing->scenario->arms;
    const struct yaml_node *map = yaml_child(parsing->documents[0], "arms");
    if (map == NULL || map->kind == YAML_NULL) {
        memcpy(arms[0].name, "baseline", 8);
        memcpy(arms[1].name, "test", 4);
        return STATUS_OK;
    }
    if (map->count != 2) return yaml_fail_key(map, "arms: expected two arms, got %u", map->count);
    for (const struct yaml_node *arm = map->first; arm != NULL; arm = arm->next)
        TRY(check_arm(arm));
    int turned = strcmp(map->last->key, "baseline") == 0;
    const struct yaml_node *in_order[2] = {turned ? map->last : map->first,
                                           turned ? map->first : map->last};
    for (int i = 0; i < 2; i++)
        memcpy(arms[i].name, in_order[i]->key, strlen(in_order[i]->key));
    return STATUS_OK;
}

/* Otherwise `--set arms.tset.x=1` would be taken for an arm of its own and change nothing. */
enum status scenario_check_set_arms(const struct parsing *parsing) {
    const struct scenario_arm *arms = parsing->scenario->arms;
    for (size_t d = 1; d < parsing->document_count; d++) {
        const struct yaml_node *map = yaml_child(parsing->documents[d], "arms");
        if (map == NULL) continue;
        for (const struct yaml_node *arm = map->first; arm != NULL; arm = arm->next) {
            if (strcmp(arm->key, arms[0].name) != 0 && strcmp(arm->key, arms[1].name) != 0)
                return yaml_fail_key(arm, "arms.%.64s: no such arm; there are %s and %s", arm->key,
                                     arms[0].name, arms[1].name);
            TRY(check_arm(arm));
        }
    }
    return STATUS_OK;
}

static void keep_loop_lines(const struct arm_keys *keys, int lines[5]) {
    static const char *const paths[5] = {"loop.micro", "loop.update", "loop.epoch", "loop.eval",
                                         "loop.on_skip"};
    for (int i = 0; i < 5; i++) {
        size_t index = 0;
        schema_find(paths[i], &index);
        const struct yaml_node *node = keys->rows[index].node;
        lines[i] = node == NULL ? 0 : node->line;
    }
}

static void keep_data_place(const struct arm_keys *keys, enum task task, int place[2]) {
    size_t index = 0;
    schema_find(task == TASK_SFT ? "data.text" : "data.pairs", &index);
    const struct yaml_node *node = keys->rows[index].node;
    place[0] = node == NULL ? 0 : node->line;
    place[1] = node == NULL ? 0 : node->column;
}

static enum status read_arm(struct parsing *parsing, int index, struct arm_keys *keys) {
    struct scenario_arm *arm = &parsing->scenario->arms[index];
    TRY(arm_keys_open(keys, parsing->schema, parsing->arena));
    for (size_t d = 0; d < parsing->document_count; d++) {
        const struct yaml_node *common = yaml_child(parsing->documents[d], "common");
        if (common != NULL)
            TRY(arm_keys_collect(keys, common, d == 0 ? LAYER_COMMON : LAYER_COMMON_SET));
    }
    for (size_t d = 0; d < parsing->document_count; d++) {
        const struct yaml_node *arms = yaml_child(parsing->documents[d], "arms");
        const struct yaml_node *own = arms == NULL ? NULL : yaml_child(arms, arm->name);
        if (own != NULL) TRY(arm_keys_collect(keys, own, d == 0 ? LAYER_ARM : LAYER_ARM_SET));
    }
    keep_loop_lines(keys, parsing->scenario->loop_line[index]);
    TRY(arm_resolve(keys, parsing->label, arm->name, parsing->scenario->steps, &arm->config));
    keep_data_place(keys, (enum task)arm->config.task, parsing->scenario->data_place[index]);
    return STATUS_OK;
}

static enum status note_inert(const struct parsing *parsing, const char *key, const char *why,
                              const char *arm) {
    struct scenario *const scenario = parsing->scenario;
    char *line;
    TRY(arena_format(parsing->arena, &line, "%s: %s has no effect here: %s",
                     arm == NULL ? "both arms" : arm, key, why));
    scenario->inert[scenario->inert_count++] = (struct scenario_inert){key, why, arm, line};
    return STATUS_OK;
}

/* Lists the keys without effect, before they are settled: which keys are inert does not change, but
 * parallel.draws is inert by its word, and holds another one afterwards. */
static enum status keep_inert(const struct parsing *parsing, const struct arm_keys keys[2]) {
    struct scenario *scenario = parsing->scenario;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    TRY(arena_take(parsing->arena, 2 * count, sizeof *scenario->inert, "inert keys",
                   &scenario->inert));
    for (size_t i = 0; i < count; i++) {
        const char *why[2];
        int common[2];
        for (int arm = 0; arm < 2; arm++) {
            const struct given *given = &keys[arm].rows[i];
            int written = given->node != NULL;
            why[arm] = inert_reason(&scenario->arms[arm].config, rows[i].path);
            common[arm] = written && given->layer < LAYER_ARM;
            if (written && !common[arm] && why[arm] != NULL)
                TRY(note_inert(parsing, rows[i].path, why[arm], scenario->arms[arm].name));
        }
        if ((common[0] || common[1]) && why[0] != NULL && why[1] != NULL)
            TRY(note_inert(parsing, rows[i].path, why[common[0] ? 0 : 1],
                           common[0] && common[1] ? NULL : scenario->arms[common[0] ? 0 : 1].name));
    }
    return STATUS_OK;
}

/* Replaces what rng.* takes from the other arm by numbers; then each arm's streams are checked. */
static enum status settle_streams(const struct parsing *parsing, const struct arm_keys keys[2]) {
    struct scenario_arm *arms = parsing->scenario->arms;
    struct config *const configs[2] = {&arms[0].config, &arms[1].config};
    const char *const names[2] = {arms[0].name, arms[1].name};
    struct fault fault = {.status = STATUS_OK};
    int arm = 0;
    if (stream_settle(configs, names, &fault, &arm) != STATUS_OK)
        return arm_report(&keys[arm], parsing->label, names[arm], &fault);
    for (arm = 0; arm < 2; arm++)
        if (stream_check(configs[arm], parsing->scenario->steps, &fault) != STATUS_OK)
            return arm_report(&keys[arm], parsing->label, names[arm], &fault);
    return STATUS_OK;
}

/* A contract's loop has phase reduce where ranks train. Where they do so in one arm, the other
 * arm's contract gets it, too: with one rank it changes nothing, and the loops of the arms do not
 * differ by a phase that no key asked for. */
static void settle_reduce(struct config *a, struct config *b) {
    if (a->parallel.ranks <= 1 && b->parallel.ranks <= 1) return;
    config_add_reduce(a);
    config_add_reduce(b);
}

/* Settles what the arms do not read, which takes what was written for each. */
static enum status settle_inert(const struct parsing *parsing, const struct arm_keys keys[2]) {
    struct scenario_arm *const arms = parsing->scenario->arms;
    unsigned char *written[2];
    size_t count = 0;
    (void)schema_rows(&count);
    for (int arm = 0; arm < 2; arm++) {
        TRY(arena_take(parsing->arena, count, 1, "written keys", &written[arm]));
        for (size_t i = 0; i < count; i++)
            written[arm][i] = keys[arm].rows[i].node != NULL;
    }
    const unsigned char *const both[2] = {written[0], written[1]};
    return inert_settle(&arms[0].config, &arms[1].config, both);
}

enum status scenario_read_arms(struct parsing *parsing) {
    struct scenario_arm *arms = parsing->scenario->arms;
    struct arm_keys keys[2];
    for (int i = 0; i < 2; i++)
        TRY(read_arm(parsing, i, &keys[i]));
    settle_reduce(&arms[0].config, &arms[1].config);
    TRY(settle_streams(parsing, keys));
    TRY(keep_inert(parsing, keys));
    return settle_inert(parsing, keys);
}
