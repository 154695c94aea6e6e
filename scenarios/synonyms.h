/* SPDX-License-Identifier: Apache-2.0
 * What other programs call a key or a value of a scenario: TrainingArguments, DPOConfig, SFTConfig,
 * torch's optimizers, config.json, Megatron-LM, open-instruct. One table; errors and
 * docs/SCENARIOS.md are made from it. No such name is accepted: whoever writes one is told ours,
 * and where unit or meaning differ, how; or that there is none, and why. */
#ifndef TWINSTEP_SCENARIOS_SYNONYMS_H
#define TWINSTEP_SCENARIOS_SYNONYMS_H

#include <stddef.h>

struct synonym {
    const char *name;  /* as the other program spells it */
    const char *key;   /* ours, as a full path: "optimizer.lr"; NULL: there is none */
    const char *value; /* `name` is a value of `key`, and this is ours; NULL: it is a key */
    const char *how;   /* what differs, to stand behind the key, or ""; or why there is none */
};

/* The table; keys first, then values. */
const struct synonym *synonyms(size_t *out_count);

/* The key that another program calls `name`; NULL when the table has no such key. */
const struct synonym *synonym_of_key(const char *name);

/* What another program calls a value of `key`; NULL when the table has no such value. */
const struct synonym *synonym_of_value(const char *key, const char *name);

/* Whether the name only says what is written, printed or uploaded, and has no key for this reason.
 */
int synonym_is_elsewhere(const struct synonym *synonym);

/* ": here it is optimizer.lr (HOW)", or ": no counterpart: WHY", or "" where `synonym` is NULL. */
#define SYNONYM_HINT_SIZE 256
const char *synonym_hint(const struct synonym *synonym, char out[SYNONYM_HINT_SIZE]);

#endif
