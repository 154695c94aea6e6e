/* SPDX-License-Identifier: Apache-2.0
 * What `check` found out about a scenario without training it. cmd_check.c gathers it;
 * check_print.c prints it as text and as JSON. */
#ifndef TWINSTEP_CLI_CHECK_H
#define TWINSTEP_CLI_CHECK_H

#include <jansson.h>
#include <stdio.h>

#include "data/dataset.h"
#include "experiment/experiment_plan.h"
#include "experiment/held_out.h"
#include "scenarios/scenario.h"
#include "trainer/loop.h"

/* Notes: what the numerics of a configuration do not promise, or do without effect. */
#define NOTES_MAX 16
struct notes {
    const char *text[NOTES_MAX]; /* one sentence each, without its full stop */
    uint32_t count;
};

/* `dataset` is asked for its longest sequence, which bounds the lengths of sums; `steps` are the
 * updates of the training. */
TWINSTEP_MUST_USE enum status notes_of(const struct config *config, const struct dataset *dataset,
                                       uint64_t steps, struct arena *arena, struct notes *out);

struct check_arm {
    const struct scenario_arm *arm;
    const struct dataset *dataset;
    uint64_t tensors;    /* entries of the parameter table; tied tensors count once */
    uint64_t parameters; /* elements of these tensors */
    uint64_t state_bytes;
    struct loop_words words;
    struct loop_hazard hazards[LOOP_HAZARD_KINDS];
    size_t hazard_count;
    struct notes notes;
    struct notes warnings; /* about the weights that the arm starts from */
};

struct check {
    const struct scenario *scenario;
    const struct schema *schema;
    struct experiment_plan plan;
    struct factor *factors;
    uint32_t factor_count;
    struct check_arm arms[2];
    struct dataset datasets[2]; /* the second is unused if both arms read the same data */
    struct held_out held_out;   /* count 0: nothing is measured after training */
    const char *held_out_rows, *held_out_seen;
    uint64_t shared; /* updates in which one training may serve both arms */
};

/* Returns the number of trainings of the experiment: the planned runs and the one in a second
 * process. */
uint32_t check_trainings(const struct check *check);

void check_print(const struct check *check, FILE *out);
json_t *check_json(const struct check *check); /* NULL if there is no memory */

#endif
