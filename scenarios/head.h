/* SPDX-License-Identifier: Apache-2.0
 * What a scenario says about itself, outside its arms: name, steps, record, floor, eval, expect.
 * Its rows are like those of the schema, over a struct that only the parser holds. */
#ifndef TWINSTEP_SCENARIOS_HEAD_H
#define TWINSTEP_SCENARIOS_HEAD_H

#include "scenarios/scenario.h"

#define SCENARIO_VERSION 1

struct head {
    uint64_t version, steps;
    char name[CONFIG_NAME_SIZE];
    char about[8192];
    char source[2048];
    struct scenario_record record;
    struct scenario_floor floor; /* but for the file */
    struct scenario_attribution attribution;
    struct scenario_eval eval;
    int32_t verdict, word;
    int32_t cause; /* an index of head_cause(), or KEY_WORD_ENUM for any */
    int64_t first_step, replicas_part;
    int32_t first_phase;
    char first_tensor[256];
    char shares[512];      /* expect_shares.h */
    struct key_list order; /* of indices of head_cause() */
};

/* The names of enum phase, NULL-terminated (schema.c). */
extern const char *const schema_phase_names[PHASE_TOTAL + 1];
/* The stages of an update in the order of stage_name(), as a key's value; NULL-terminated. */
extern const char *const schema_stage_names[PHASE_TOTAL + 4];

/* The cause at an index of expect.cause and expect.order. */
enum cause head_cause(int32_t word);

/* The text of expect.word; NULL: any. */
const char *head_word(int32_t word);

/* The rows of struct head, with the path as a file spells it ("floor.alpha"). Their cause means
 * nothing, because no key of the head differs between arms. */
const struct key_row *head_rows(size_t *out_count);

#endif
