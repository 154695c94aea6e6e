/* SPDX-License-Identifier: Apache-2.0
 * A scenario from its text: the head by its own rows, each arm by the schema's. The file and every
 * --set are documents of the same form; later ones win.
 * Layers of an arm: common, common by --set, the arm, the arm by --set. */
#include "scenarios/scenario.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "determinism/statistics.h"
#include "scenarios/head.h"
#include "scenarios/inert.h"
#include "scenarios/override.h"
#include "scenarios/resolve.h"
#include "scenarios/row_value.h"
#include "scenarios/stream_course.h"
#include "scenarios/suggest.h"
#include "scenarios/textfile.h"

struct parsing {
    struct arena *arena;
    const struct schema *schema;
    const char *label;
    struct yaml_node **documents; /* the file, then each --set */
    size_t document_count;
    struct head *head;
    struct scenario *scenario;
};

static const struct key_row *head_find(const char *path) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].path, path) == 0) return &rows[i];
    return NULL;
}

static int is_head_section(const char *key) {
    size_t count = 0;
    size_t length = strlen(key);
    const struct key_row *rows = head_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strncmp(rows[i].path, key, length) == 0 && rows[i].path[length] == '.') return 1;
    return 0;
}

static int is_arm_key(const char *key) {
    size_t count = 0;
    size_t length = strlen(key);
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strncmp(rows[i].path, key, length) == 0 &&
            (rows[i].path[length] == '.' || rows[i].path[length] == '\0'))
            return 1;
    return 0;
}

static enum status unknown_head_key(const struct yaml_node *node, const char *section) {
    size_t count = 0;
    size_t length = strlen(section);
    const struct key_row *rows = head_rows(&count);
    struct suggestion nearest = {.word = node->key};
    char words[64][64];
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = node->key};
    for (size_t i = 0; i < count && i < COUNT_OF(words); i++) {
        if (strncmp(rows[i].path, section, length) != 0) continue;
        const char *rest = rows[i].path + length;
        snprintf(words[i], sizeof words[i], "%.*s", (int)strcspn(rest, "."), rest);
        suggest_offer(&nearest, words[i]);
    }
    if (length == 0) {
        suggest_offer(&nearest, "common");
        suggest_offer(&nearest, "arms");
        if (nearest.best == NULL && is_arm_key(node->key))
            return yaml_fail_key(node, "unknown key %s; it belongs under common or under an arm",
                                 yaml_describe(&word, got));
    }
    return yaml_fail_key(node, "%.*s%sunknown key %s%s%s%s%s", length == 0 ? 0 : (int)length - 1,
                         section, length == 0 ? "" : ": ", yaml_describe(&word, got),
                         nearest.best == NULL ? "" : "; did you mean ",
                         nearest.best == NULL ? "" : section,
                         nearest.best == NULL ? "" : nearest.best, nearest.best == NULL ? "" : "?");
}

static enum status read_head_section(struct parsing *parsing, const struct yaml_node *section) {
    char got[YAML_TEXT_SIZE];
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%.60s.", section->key);
    if (section->kind == YAML_NULL) return STATUS_OK;
    if (section->kind != YAML_MAP)
        return yaml_fail(section, "%s: expected a map of keys, got %s", section->key,
                         yaml_describe(section, got));
    for (const struct yaml_node *child = section->first; child != NULL; child = child->next) {
        char path[128];
        snprintf(path, sizeof path, "%s%.60s", prefix, child->key);
        const struct key_row *row = strlen(child->key) > 60 ? NULL : head_find(path);
        if (row == NULL) return unknown_head_key(child, prefix);
        TRY(row_read(row, row->path, child, parsing->head));
    }
    return STATUS_OK;
}

static enum status read_head_key(struct parsing *parsing, const struct yaml_node *node) {
    if (strcmp(node->key, "common") == 0 || strcmp(node->key, "arms") == 0) {
        char got[YAML_TEXT_SIZE];
        if (node->kind == YAML_MAP || node->kind == YAML_NULL) return STATUS_OK;
        return yaml_fail(node, "%s: expected a map, got %s", node->key, yaml_describe(node, got));
    }
    const struct key_row *row = strchr(node->key, '.') == NULL ? head_find(node->key) : NULL;
    if (row != NULL) return row_read(row, row->path, node, parsing->head);
    if (is_head_section(node->key)) return read_head_section(parsing, node);
    return unknown_head_key(node, "");
}

/* Before anything else: a newer format may mean other keys. */
static enum status check_version(const struct parsing *parsing) {
    const struct yaml_node *file = parsing->documents[0];
    char got[YAML_TEXT_SIZE];
    uint64_t version = 0;
    if (file->kind == YAML_NULL)
        FAIL(STATUS_INPUT, "%s: error: the file is empty; expected a map with twinstep: 1",
             parsing->label);
    if (file->kind != YAML_MAP)
        return yaml_fail(file, "expected a map with twinstep: 1, got %s", yaml_describe(file, got));
    const struct yaml_node *node = yaml_child(file, "twinstep");
    if (node == NULL)
        FAIL(STATUS_INPUT, "%s: error: twinstep: expected the version of the format (twinstep: 1)",
             parsing->label);
    TRY(row_read(head_find("twinstep"), "twinstep", node, parsing->head));
    version = parsing->head->version;
    if (version > SCENARIO_VERSION)
        return yaml_fail(node, "twinstep: %ju is newer than this program, which reads version %d",
                         (uintmax_t)version, SCENARIO_VERSION);
    return STATUS_OK;
}

static enum status read_head(struct parsing *parsing) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    for (size_t i = 0; i < count; i++)
        TRY(row_read_standard(&rows[i], rows[i].path, parsing->head));
    TRY(check_version(parsing));
    for (size_t d = 0; d < parsing->document_count; d++)
        for (const struct yaml_node *node = parsing->documents[d]->first; node != NULL;
             node = node->next)
            TRY(read_head_key(parsing, node));
    if (parsing->head->version > SCENARIO_VERSION) /* --set twinstep=2 */
        FAIL(STATUS_INPUT, "%s: error: twinstep: this program reads version %d", parsing->label,
             SCENARIO_VERSION);
    return STATUS_OK;
}

static int is_name(const char *text) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return text[0] != '\0' && text[0] != '-' && strspn(text, inside) == strlen(text);
}

/* The file's base name without suffix, other characters turned into `-`. */
static void name_from_path(const char *path, char out[CONFIG_NAME_SIZE]) {
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(base, '.');
    size_t length = dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base);
    if (length >= CONFIG_NAME_SIZE) length = CONFIG_NAME_SIZE - 1;
    memset(out, 0, CONFIG_NAME_SIZE);
    for (size_t i = 0; i < length; i++) {
        char one[2] = {base[i], '\0'};
        out[i] = is_name(one) || (i > 0 && base[i] == '-') ? base[i] : i == 0 ? 'x' : '-';
    }
    if (length == 0) memcpy(out, "scenario", 8);
}

static const struct yaml_node *head_node(const struct parsing *parsing, const char *section,
                                         const char *key) {
    const struct yaml_node *found = NULL;
    for (size_t d = 0; d < parsing->document_count; d++) {
        const struct yaml_node *map = parsing->documents[d];
        if (section != NULL) map = yaml_child(map, section);
        const struct yaml_node *node = map == NULL ? NULL : yaml_child(map, key);
        if (node != NULL) found = node;
    }
    return found;
}

static enum status check_head(const struct parsing *parsing) {
    const struct head *head = parsing->head;
    if (head->name[0] != '\0' && !is_name(head->name)) {
        char got[YAML_TEXT_SIZE];
        const struct yaml_node *node = head_node(parsing, NULL, "name");
        return yaml_fail(node, "name: expected letters, digits, - and _, got %s",
                         yaml_describe(node, got));
    }
    static const char *const firsts[] = {"cause", "first_step", "first_phase", "first_tensor"};
    if (head->verdict != VERDICT_IDENTICAL) return STATUS_OK;
    if (head->cause == KEY_WORD_ENUM && head->first_step == 0 &&
        head->first_phase == KEY_WORD_ENUM && head->first_tensor[0] == '\0')
        return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        const struct yaml_node *node = head_node(parsing, "expect", firsts[i]);
        if (node == NULL) continue;
        return yaml_fail_key(node,
                             "expect.%s: two identical arms have no first difference and no "
                             "cause (expect.verdict is identical)",
                             firsts[i]);
    }
    return STATUS_OK;
}

/* Text without white space at its end, as block texts have it. */
static enum status keep_text(struct arena *arena, const char *text, const char **out) {
    size_t length = strlen(text);
    char *copy = NULL;
    while (length != 0 && strchr(" \t\n", text[length - 1]) != NULL)
        length--;
    TRY(arena_text(arena, text, length, &copy));
    *out = copy;
    return STATUS_OK;
}

static enum status keep_head(const struct parsing *parsing) {
    const struct head *head = parsing->head;
    struct scenario *scenario = parsing->scenario;
    TRY(keep_text(parsing->arena, head->about, &scenario->about));
    TRY(keep_text(parsing->arena, head->source, &scenario->source));
    if (head->name[0] != '\0')
        memcpy(scenario->name, head->name, sizeof scenario->name);
    else
        name_from_path(parsing->label, scenario->name);
    scenario->steps = head->steps;
    scenario->record.probe_every = head->probe_every;
    scenario->record.snapshots = head->snapshots;
    scenario->record.readback = head->readback;
    scenario->record.tensors = head->tensors;
    scenario->record.phases = head->phases;
    scenario->floor.design = head->design;
    scenario->floor.replicates = head->replicates;
    scenario->floor.alpha = head->alpha;
    scenario->attribution.orders = head->orders;
    scenario->attribution.replicates = head->mixture_runs;
    scenario->attribution.twin = head->twin;
    scenario->expect.verdict = head->verdict;
    scenario->expect.cause = head->cause;
    scenario->expect.first_step = head->first_step;
    scenario->expect.first_phase = head->first_phase;
    if (head->first_tensor[0] == '\0') return STATUS_OK;
    return keep_text(parsing->arena, head->first_tensor, &scenario->expect.first_tensor);
}

static enum status check_arm(const struct yaml_node *arm) {
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = arm->key};
    if (!is_name(arm->key) || strlen(arm->key) >= CONFIG_NAME_SIZE)
        return yaml_fail_key(arm, "arms: expected a name of letters, digits, - and _, got %s",
                             yaml_describe(&word, got));
    if (arm->kind != YAML_MAP && arm->kind != YAML_NULL)
        return yaml_fail(arm, "arms.%s: expected a map, got %s", arm->key, yaml_describe(arm, got));
    return STATUS_OK;
}

/* An arm called baseline is the baseline wherever it stands; else the first one is. */
static enum status name_arms(struct parsing *parsing) {
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

/* `--set arms.tset.x=1` names no arm. */
static enum status check_set_arms(const struct parsing *parsing) {
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
    return arm_resolve(keys, parsing->label, arm->name, parsing->scenario->steps, &arm->config);
}

static void note_inert(struct scenario *scenario, const char *key, const char *why,
                       const char *arm) {
    scenario->inert[scenario->inert_count++] = (struct scenario_inert){key, why, arm};
}

/* Before inert keys are settled or after: which are inert does not change. */
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
                note_inert(scenario, rows[i].path, why[arm], scenario->arms[arm].name);
        }
        if ((common[0] || common[1]) && why[0] != NULL && why[1] != NULL)
            note_inert(scenario, rows[i].path, why[common[0] ? 0 : 1],
                       common[0] && common[1] ? NULL : scenario->arms[common[0] ? 0 : 1].name);
    }
    return STATUS_OK;
}

/* What rng.* takes from the other arm, as numbers; then the streams are checked as they are. */
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

static enum status read_arms(struct parsing *parsing) {
    struct scenario_arm *arms = parsing->scenario->arms;
    struct arm_keys keys[2];
    for (int i = 0; i < 2; i++)
        TRY(read_arm(parsing, i, &keys[i]));
    TRY(settle_streams(parsing, keys));
    TRY(keep_inert(parsing, keys));
    return inert_settle(&arms[0].config, &arms[1].config);
}

/* Else repeats are equal, and alpha is not used: the same order of sums in both arms, or none drawn
 * and nothing that races. */
static int is_noisy(const struct config *a, const struct config *b) {
    if (config_races(a) || config_races(b)) return 1;
    if (a->numerics.mode != MODE_SHUFFLED && b->numerics.mode != MODE_SHUFFLED) return 0;
    return a->numerics.mode != b->numerics.mode || a->numerics.order_seed == KEY_WORD_UINT ||
           stream_orders_differ(a, b);
}

/* What the floor's tests can enumerate. The arms are resolved. */
static enum status check_floor(const struct parsing *parsing) {
    const struct scenario *scenario = parsing->scenario;
    const struct yaml_node *node = head_node(parsing, "floor", "replicates");
    int alone = scenario->floor.design == FLOOR_BASELINE;
    size_t most = alone ? FLOOR_REPEATS_MAX : STATISTICS_MAX_RUNS / 2;
    size_t needed = 0;
    if (scenario->floor.replicates != KEY_WORD_UINT) {
        if (scenario->floor.replicates <= most) return STATUS_OK;
        return yaml_fail(node,
                         "floor.replicates: expected at most %zu runs of each arm, got %ju; "
                         "floor.design: baseline takes up to %d",
                         most, (uintmax_t)scenario->floor.replicates, FLOOR_REPEATS_MAX);
    }
    if (!is_noisy(&scenario->arms[0].config, &scenario->arms[1].config)) return STATUS_OK;
    TRY(alone ? statistics_pair_needed(scenario->floor.alpha, &needed)
              : statistics_labels_needed(scenario->floor.alpha, &needed));
    if (needed <= most) return STATUS_OK;
    return yaml_fail(head_node(parsing, "floor", "alpha"),
                     "floor.alpha: %s needs %zu runs of %s, more than %zu; raise it",
                     number_text_f64(scenario->floor.alpha).text, needed,
                     alone ? "the baseline" : "each arm", most);
}

static enum status check_orders(const struct parsing *parsing) {
    const uint64_t orders = parsing->scenario->attribution.orders;
    if (orders == KEY_WORD_UINT || orders % 2 == 0) return STATUS_OK;
    return yaml_fail(head_node(parsing, "attribution", "orders"),
                     "attribution.orders: expected an even number, because each order is taken "
                     "with its reverse, got %ju",
                     (uintmax_t)orders);
}

static enum status parse_documents(struct parsing *parsing, const char *text, size_t length,
                                   const char *const *overrides, size_t override_count) {
    parsing->document_count = override_count + 1;
    TRY(arena_take(parsing->arena, parsing->document_count, sizeof *parsing->documents,
                   "the options", &parsing->documents));
    TRY(yaml_parse(parsing->arena, parsing->label, 1, text, length, &parsing->documents[0]));
    for (size_t i = 0; i < override_count; i++)
        TRY(override_parse(parsing->arena, overrides[i], &parsing->documents[i + 1]));
    return STATUS_OK;
}

/* The overrides as given, one per line. */
static enum status keep_overrides(struct arena *arena, const char *const *overrides, size_t count,
                                  const char **out) {
    char *text;
    TRY(arena_format(arena, &text, "%s", ""));
    for (size_t i = 0; i < count; i++)
        TRY(arena_format(arena, &text, "%s%s\n", text, overrides[i]));
    *out = text;
    return STATUS_OK;
}

enum status scenario_parse(struct arena *arena, const struct schema *schema, const char *label,
                           const char *text, size_t length, const char *const *overrides,
                           size_t override_count, struct scenario **out) {
    struct parsing parsing = {.arena = arena, .schema = schema, .label = label};
    TRY(arena_take(arena, 1, sizeof *parsing.scenario, "a scenario", &parsing.scenario));
    TRY(arena_take(arena, 1, sizeof *parsing.head, "a scenario", &parsing.head));
    TRY(parse_documents(&parsing, text, length, overrides, override_count));
    TRY(read_head(&parsing));
    TRY(check_head(&parsing));
    TRY(keep_head(&parsing));
    TRY(name_arms(&parsing));
    TRY(check_set_arms(&parsing));
    TRY(read_arms(&parsing));
    TRY(check_floor(&parsing));
    TRY(check_orders(&parsing));
    char *copy = NULL;
    TRY(arena_text(arena, text, length, &copy));
    parsing.scenario->text = copy;
    parsing.scenario->text_length = length;
    parsing.scenario->path = "";
    TRY(keep_overrides(arena, overrides, override_count, &parsing.scenario->overrides));
    *out = parsing.scenario;
    return STATUS_OK;
}

enum status scenario_open(struct arena *arena, const struct schema *schema, const char *path,
                          const char *const *overrides, size_t override_count,
                          struct scenario **out) {
    char *text = NULL;
    char *kept = NULL;
    size_t length = 0;
    TRY(textfile_read(arena, path, YAML_BYTES_MAX, &text, &length));
    TRY(arena_format(arena, &kept, "%s", strcmp(path, "-") == 0 ? "<stdin>" : path));
    TRY(scenario_parse(arena, schema, kept, text, length, overrides, override_count, out));
    (*out)->path = kept;
    return STATUS_OK;
}
