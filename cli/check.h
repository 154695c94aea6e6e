/* SPDX-License-Identifier: Apache-2.0
 * What `check` found out about a scenario without training: gathered by cmd_check.c, printed as
 * text and as JSON by check_print.c and check_json.c. */
#ifndef TWINSTEP_CLI_CHECK_H
#define TWINSTEP_CLI_CHECK_H

#include <jansson.h>
#include <stdio.h>

#include "cli/check_notes.h"
#include "data/dataset.h"
#include "experiment/experiment_plan.h"
#include "scenarios/scenario.h"
#include "trainer/loop.h"

struct check_arm {
    const struct scenario_arm *arm;
    const struct dataset *dataset;
    uint64_t tensors;    /* of the parameter table, tied ones once */
    uint64_t parameters; /* elements of them */
    uint64_t state_bytes;
    struct loop_words words;
    struct loop_hazard hazards[LOOP_HAZARD_KINDS];
    size_t hazard_count;
    struct notes notes;
    struct notes warnings; /* of the weights that it starts from */
};

struct check {
    const struct scenario *scenario;
    const struct schema *schema;
    struct experiment_plan plan;
    struct factor *factors;
    uint32_t factor_count;
    struct check_arm arms[2];
    struct dataset datasets[2]; /* the second is unused where both arms read the same */
};

/* Trainings of the experiment: planned runs, and the one in a second process. */
uint32_t check_trainings(const struct check *check);

void check_print(const struct check *check, FILE *out);
json_t *check_json(const struct check *check); /* NULL: no memory */

#endif
