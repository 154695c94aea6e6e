/* SPDX-License-Identifier: Apache-2.0
 * The head of a scenario: everything outside `common` and `arms`, read by the rows of head.c. */
#include "scenarios/scenario_private.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/expect_shares.h"
#include "scenarios/row_value.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

static const struct key_row *head_find(const char *path) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    return row_find(rows, count, path);
}

static int is_head_section(const char *key) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    return row_is_section(rows, count, key);
}

static int is_arm_key(const char *key) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    return row_find(rows, count, key) != NULL || row_is_section(rows, count, key);
}

static enum status unknown_head_key(const struct yaml_node *node, const char *section) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    const int is_top = section[0] == '\0';
    struct suggestion nearest = {.word = node->key};
    char kept[SUGGEST_WORD_SIZE], got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = node->key};
    if (synonym_of_key(node->key) != NULL) {
        char hint[SYNONYM_HINT_SIZE];
        return yaml_fail_key(node, "unknown key %s%s", yaml_describe(&word, got),
                             synonym_hint(synonym_of_key(node->key), hint));
    }
    suggest_offer_keys(&nearest, rows, count, section, kept);
    if (is_top) {
        suggest_offer(&nearest, "common");
        suggest_offer(&nearest, "arms");
        if (nearest.best == NULL && is_arm_key(node->key))
            return yaml_fail_key(node, "unknown key %s; it belongs under common or under an arm",
                                 yaml_describe(&word, got));
    }
    if (nearest.best == NULL)
        return yaml_fail_key(node, "%s%sunknown key %s", section, is_top ? "" : ": ",
                             yaml_describe(&word, got));
    return yaml_fail_key(node, "%s%sunknown key %s; did you mean %s%s%s?", section,
                         is_top ? "" : ": ", yaml_describe(&word, got), section, is_top ? "" : ".",
                         nearest.best);
}

static enum status read_head_section(struct parsing *parsing, const struct yaml_node *section) {
    char got[YAML_TEXT_SIZE];
    if (section->kind == YAML_NULL) return STATUS_OK;
    if (section->kind != YAML_MAP)
        return yaml_fail(section, "%s: expected a map of keys, got %s", section->key,
                         yaml_describe(section, got));
    for (const struct yaml_node *child = section->first; child != NULL; child = child->next) {
        char path[128];
        snprintf(path, sizeof path, "%.60s.%.60s", section->key, child->key);
        const struct key_row *row = strlen(child->key) > 60 ? NULL : head_find(path);
        if (row == NULL) return unknown_head_key(child, section->key);
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

/* Checked before anything else, because in a newer format keys may mean something else. */
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

enum status scenario_read_head(struct parsing *parsing) {
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    for (size_t i = 0; i < count; i++)
        TRY(row_read_standard(&rows[i], rows[i].path, parsing->head));
    TRY(check_version(parsing));
    for (size_t d = 0; d < parsing->document_count; d++)
        for (const struct yaml_node *node = parsing->documents[d]->first; node != NULL;
             node = node->next)
            TRY(read_head_key(parsing, node));
    if (parsing->head->version > SCENARIO_VERSION) /* by --set twinstep=2 */
        FAIL(STATUS_INPUT, "%s: error: twinstep: this program reads version %d", parsing->label,
             SCENARIO_VERSION);
    return STATUS_OK;
}

int scenario_is_name(const char *text) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return text[0] != '\0' && text[0] != '-' && strspn(text, inside) == strlen(text);
}

/* The file's base name without its suffix, in which `-` replaces what is not allowed in a name;
 * "stdin" for the label of standard input. */
static void name_from_path(const char *path, char out[CONFIG_NAME_SIZE]) {
    if (strcmp(path, "<stdin>") == 0) path = "stdin";
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(base, '.');
    size_t length = dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base);
    if (length >= CONFIG_NAME_SIZE) length = CONFIG_NAME_SIZE - 1;
    memset(out, 0, CONFIG_NAME_SIZE);
    for (size_t i = 0; i < length; i++) {
        char one[2] = {base[i], '\0'};
        out[i] = scenario_is_name(one) || (i > 0 && base[i] == '-') ? base[i] : i == 0 ? 'x' : '-';
    }
    if (length == 0) memcpy(out, "scenario", 8);
}

const struct yaml_node *scenario_head_node(const struct parsing *parsing, const char *section,
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

static enum status check_shares(const struct parsing *parsing) {
    struct expected_share shares[CAUSE_COUNT];
    uint32_t count;
    const struct yaml_node *node = scenario_head_node(parsing, "expect", "shares");
    if (expect_shares_read(parsing->head->shares, shares, &count) != STATUS_OK)
        return yaml_fail(node, "expect.shares: %s", status_text());
    return STATUS_OK;
}

enum status scenario_check_head(const struct parsing *parsing) {
    const struct head *head = parsing->head;
    if (head->name[0] != '\0' && !scenario_is_name(head->name)) {
        char got[YAML_TEXT_SIZE];
        const struct yaml_node *node = scenario_head_node(parsing, NULL, "name");
        return yaml_fail(node, "name: expected letters, digits, - and _, got %s",
                         yaml_describe(node, got));
    }
    TRY(check_shares(parsing));
    static const char *const firsts[] = {"cause",      "shares",      "order",
                                         "first_step", "first_phase", "first_tensor"};
    if (head->verdict != VERDICT_IDENTICAL) return STATUS_OK;
    if (head->cause == KEY_WORD_ENUM && head->first_step == 0 &&
        head->first_phase == KEY_WORD_ENUM && head->first_tensor[0] == '\0' &&
        head->shares[0] == '\0' && head->order.count == 0)
        return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        const struct yaml_node *node = scenario_head_node(parsing, "expect", firsts[i]);
        if (node == NULL) continue;
        return yaml_fail_key(node,
                             "expect.%s: two identical arms have no first difference and no "
                             "cause (expect.verdict is identical)",
                             firsts[i]);
    }
    return STATUS_OK;
}

/* Keeps a text without the white space at its end, which block texts have. */
static enum status keep_text(struct arena *arena, const char *text, const char **out) {
    size_t length = strlen(text);
    char *copy = NULL;
    while (length != 0 && strchr(" \t\n", text[length - 1]) != NULL)
        length--;
    TRY(arena_text(arena, text, length, &copy));
    *out = copy;
    return STATUS_OK;
}

enum status scenario_keep_head(const struct parsing *parsing) {
    const struct head *head = parsing->head;
    struct scenario *scenario = parsing->scenario;
    TRY(keep_text(parsing->arena, head->about, &scenario->about));
    TRY(keep_text(parsing->arena, head->source, &scenario->source));
    if (head->name[0] != '\0')
        memcpy(scenario->name, head->name, sizeof scenario->name);
    else
        name_from_path(parsing->label, scenario->name);
    scenario->steps = head->steps;
    scenario->record = head->record;
    scenario->floor = head->floor;
    scenario->attribution = head->attribution;
    scenario->eval = head->eval;
    scenario->expect.verdict = head->verdict;
    scenario->expect.cause = head->cause < 0 ? -1 : (int32_t)head_cause(head->cause);
    scenario->expect.word = head_word(head->word);
    scenario->expect.first_step = head->first_step;
    scenario->expect.replicas_part = head->replicas_part;
    if (head->shares[0] != '\0')
        TRY(keep_text(parsing->arena, head->shares, &scenario->expect.shares));
    for (uint8_t i = 0; i < head->order.count; i++) {
        const char *const before = scenario->expect.order;
        char *order;
        TRY(arena_format(parsing->arena, &order, "%s%s%s", before == NULL ? "" : before,
                         before == NULL ? "" : ", ", cause_name(head_cause(head->order.item[i]))));
        scenario->expect.order = order;
    }
    if (head->first_phase >= 0)
        scenario->expect.first_phase = stage_name((uint32_t)head->first_phase);
    if (head->first_tensor[0] == '\0') return STATUS_OK;
    return keep_text(parsing->arena, head->first_tensor, &scenario->expect.first_tensor);
}
