/* SPDX-License-Identifier: Apache-2.0
 * What the files that read a scenario share: scenario.c reads the whole, scenario_head.c its head,
 * scenario_arms.c its arms. Private to them. Errors are STATUS_INPUT at the line of their key. */
#ifndef TWINSTEP_SCENARIOS_SCENARIO_PRIVATE_H
#define TWINSTEP_SCENARIOS_SCENARIO_PRIVATE_H

#include "scenarios/head.h"
#include "scenarios/scenario.h"
#include "scenarios/yaml.h"

struct parsing {
    struct arena *arena;
    const struct schema *schema;
    const char *label;
    struct yaml_node **documents; /* the file, then each --set */
    size_t document_count;
    struct head *head;
    struct scenario *scenario;
};

/* ---- scenario_head.c ---- */

/* Reads defaults, then the version, then the keys of all documents into parsing->head. */
TWINSTEP_MUST_USE enum status scenario_read_head(struct parsing *parsing);
TWINSTEP_MUST_USE enum status scenario_check_head(const struct parsing *parsing);
/* Moves what was read into parsing->scenario. */
TWINSTEP_MUST_USE enum status scenario_keep_head(const struct parsing *parsing);

/* Where a key of the head was written last; NULL where it was not. `section` is NULL for keys
 * outside any section. */
const struct yaml_node *scenario_head_node(const struct parsing *parsing, const char *section,
                                           const char *key);

/* Whether the text is a name: letters, digits, - and _, at least one of them, and the first no
 * -. */
int scenario_is_name(const char *text);

/* ---- scenario_arms.c ---- */

/* Names both arms and says which of them is the baseline. */
TWINSTEP_MUST_USE enum status scenario_name_arms(struct parsing *parsing);
/* Refuses a --set that names an arm which is not there. */
TWINSTEP_MUST_USE enum status scenario_check_set_arms(const struct parsing *parsing);
/* Reads both configurations, what they take from each other, and the keys without effect. */
TWINSTEP_MUST_USE enum status scenario_read_arms(struct parsing *parsing);

/* ---- scenario_expect.c ---- */

/* Refuses an expected cause in which these arms cannot differ. */
TWINSTEP_MUST_USE enum status scenario_check_expected(const struct parsing *parsing);

#endif
