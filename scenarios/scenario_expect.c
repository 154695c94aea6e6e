/* SPDX-License-Identifier: Apache-2.0
 * Refuses an expectation that no run could meet: of a cause in which the arms of its file do not
 * differ, of one cause twice in an order, of an update behind the last one. An expectation that
 * stands in the file is let through where --set changed the scenario, whose arms then need not be
 * those that it was written for; a run says whether it is met. */
#include "scenarios/expect_shares.h"
#include "scenarios/scenario_private.h"

/* An arm without an order seed draws one, and so another than the other arm has. */
static int draws_orders(const struct config *arm) {
    return arm->numerics.mode == MODE_SHUFFLED && arm->numerics.order_seed == KEY_WORD_UINT;
}

/* The causes in which these arms differ, a bit each. */
static enum status causes_of(const struct parsing *parsing, uint32_t *out) {
    const struct config *const a = &parsing->scenario->arms[0].config,
                               *const b = &parsing->scenario->arms[1].config;
    struct factor *factors;
    uint32_t count;
    TRY(factors_of(parsing->schema, a, b, parsing->arena, &factors, &count));
    *out = 0;
    for (uint32_t i = 0; i < count; i++)
        *out |= 1u << factors[i].cause;
    if (draws_orders(a) || draws_orders(b)) *out |= 1u << CAUSE_NONDETERMINISM;
    return STATUS_OK;
}

/* Where the key of the expectation was written; NULL: in the file, while options changed it. */
static const struct yaml_node *place_of(const struct parsing *parsing, const char *key) {
    const struct yaml_node *const node = scenario_head_node(parsing, "expect", key);
    const struct yaml_node *const section = yaml_child(parsing->documents[0], "expect");
    const int in_file = section != NULL && yaml_child(section, key) == node;
    return in_file && parsing->document_count > 1 ? NULL : node;
}

/* The node of an item of a list; of what is no list, itself. */
static const struct yaml_node *item_of(const struct yaml_node *node, uint32_t item) {
    if (node->kind != YAML_LIST) return node;
    for (node = node->first; item > 0 && node->next != NULL; item--)
        node = node->next;
    return node;
}

/* `item` is the place in a list; 0 of what is none. */
static enum status check_cause(const struct parsing *parsing, uint32_t causes, const char *key,
                               uint32_t item, enum cause cause) {
    const struct yaml_node *node = place_of(parsing, key);
    if (node == NULL || (causes >> cause & 1u) != 0) return STATUS_OK;
    return yaml_fail(item_of(node, item),
                     "expect.%s: %s cannot be a cause here: the arms have the same value of every "
                     "key of it that is read",
                     key, cause_name(cause));
}

/* A share has one place. */
static enum status check_order(const struct parsing *parsing) {
    const struct key_list *const order = &parsing->head->order;
    const struct yaml_node *const node = place_of(parsing, "order");
    for (uint32_t i = 1; i < order->count && node != NULL; i++)
        for (uint32_t k = 0; k < i; k++)
            if (order->item[k] == order->item[i])
                return yaml_fail(item_of(node, i),
                                 "expect.order: expected each cause once, got %s twice",
                                 cause_name(head_cause(order->item[i])));
    return STATUS_OK;
}

static enum status check_update(const struct parsing *parsing, const char *key, int64_t update) {
    const struct yaml_node *const node = place_of(parsing, key);
    const uint64_t steps = parsing->head->steps;
    if (node == NULL || update <= 0 || (uint64_t)update <= steps) return STATUS_OK;
    return yaml_fail(node, "expect.%s: expected an update up to steps (%ju), or 0 (any), got %jd",
                     key, (uintmax_t)steps, (intmax_t)update);
}

enum status scenario_check_expected(const struct parsing *parsing) {
    const struct head *const head = parsing->head;
    struct expected_share shares[CAUSE_COUNT];
    uint32_t count, causes;
    TRY(causes_of(parsing, &causes));
    if (head->cause >= 0) TRY(check_cause(parsing, causes, "cause", 0, head_cause(head->cause)));
    for (uint8_t i = 0; i < head->order.count; i++)
        TRY(check_cause(parsing, causes, "order", i, head_cause(head->order.item[i])));
    TRY(check_order(parsing));
    TRY(check_update(parsing, "first_step", head->first_step));
    TRY(check_update(parsing, "replicas_part", head->replicas_part));
    TRY(expect_shares_read(head->shares, shares, &count));
    for (uint32_t i = 0; i < count; i++)
        TRY(check_cause(parsing, causes, "shares", 0, shares[i].cause));
    return STATUS_OK;
}
