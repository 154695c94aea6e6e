/* SPDX-License-Identifier: Apache-2.0
 * Decides for how many updates one training serves both arms, and makes the test arm of it
 * (docs/decisions/shared-arms.md).
 *
 * That the arms are alike follows from their states at the start and from their configurations
 * (experiment/inert_updates.h), never from later states that happen to be equal. The baseline alone
 * trains these updates; what is recorded of them is recorded of both, and the test arm takes over
 * the baseline's state behind the last one. Nobody would notice an error of that rule in such a
 * run, so the process that is started anew trains the test arm from its own start, and of all
 * scenarios a drawn share trains both arms, which then must have the same roots.
 *
 * Invariant: but for the attribute that says so and the words of the verdict, the trace is that of
 * two trainings. */
#include "experiment/experiment_private.h"

#include <string.h>

#include "experiment/inert_updates.h"

#define TRAINS_BOTH_OF 16 /* of so many scenarios one trains both arms although they are alike */

/* No root depends on the LR that a loop prints. One that is in the optimizer then is a part of the
 * state; one that is computed again may be of a later counter than any that the update reads. */
static int prints_alike(const struct config *a, const struct config *b) {
    return memcmp(&a->schedule, &b->schedule, sizeof a->schedule) == 0 ||
           (a->schedule.logged == LOGGED_CURRENT && b->schedule.logged == LOGGED_CURRENT);
}

static int same_names(const char *const *a, const char *const *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

/* Whether a row of one run has its place in the other: the axes have the same names. */
static int same_axes(const struct run_axes *a, const struct run_axes *b) {
    if (memcmp(&a->shape, &b->shape, sizeof a->shape) != 0 ||
        !same_names((const char *const *)a->sites, (const char *const *)b->sites, a->shape.sites) ||
        !same_names((const char *const *)a->phases, (const char *const *)b->phases,
                    a->shape.phases) ||
        !same_names(a->tensors, b->tensors, a->shape.tensors) ||
        !same_names(a->streams, b->streams, a->shape.streams) || strcmp(a->groups, b->groups) != 0)
        return 0;
    for (uint32_t i = 0; i < a->shape.consumers; i++) {
        const struct record_consumer *const x = &a->consumers[i], *const y = &b->consumers[i];
        if (strcmp(x->name, y->name) != 0 || x->stream != y->stream || x->op != y->op ||
            x->seed != y->seed)
            return 0;
    }
    return 1;
}

/* What is measured of a run beside its rows, or by it for itself, wants two runs: stored states, a
 * probe of both models, checks that an update repeats. So does an experiment without a process that
 * trains the test arm from its start. */
static int wants_two(const struct experiment *e) {
    const struct scenario_record *const record = &e->plan.scenario->record;
    return record->snapshots != 0 || record->probe_every != 0 || record->replay_check != 0 ||
           e->options->ranks != NULL || e->options->second_process == NULL;
}

static enum status find_alike(struct experiment *e, const struct run *a, const struct run *b) {
    const struct config *const x = &e->plan.runs[0].config, *const y = &e->plan.runs[1].config;
    int equal;
    if (e->plan.floor != FLOOR_EXACT || wants_two(e) || !experiment_may_move(x) ||
        !experiment_may_move(y) || !prints_alike(x, y) || !run_same_layout(a, b) ||
        !same_axes(run_axes_of(a), run_axes_of(b)))
        return STATUS_OK;
    /* A state holds what the reference says of rows that its run is going to see, which are others
     * where a restart goes on elsewhere in the data. */
    TRY(experiment_equal_states(a, b, &equal));
    if (!equal) return STATUS_OK;
    return inert_updates(x, y, e->plan.scenario->steps, run_dataset(a)->samples, &e->plan.alike);
}

/* The draw is of what the arms train, so that a scenario is answered alike on every machine. */
static int is_drawn(const struct experiment_plan *plan) {
    struct digest both;
    experiment_digest_arms(plan, "train both arms", &both);
    return both.byte[0] % TRAINS_BOTH_OF == 0;
}

enum status experiment_may_share(const struct experiment_plan *plan, uint64_t samples,
                                 uint64_t *out_updates) {
    *out_updates = 0;
    if (plan->floor != FLOOR_EXACT || is_drawn(plan)) return STATUS_OK;
    return inert_updates(&plan->runs[0].config, &plan->runs[1].config, plan->scenario->steps,
                         samples, out_updates);
}

/* Says whether the arms that an interrupted experiment goes on with had two trainings from the
 * start: its trace tells. */
static int had_two(const struct experiment *e) {
    const char *const text = trace_attribute_of(e->resume.image, "", SHARED_UPDATES_NAME);
    return text == NULL || strcmp(text, "0") == 0;
}

/* What was begun is gone on with: rows of an arm that was not trained are not held against it. */
static enum status as_before(struct experiment *e, int *out_both) {
    *out_both = had_two(e);
    if (*out_both || !e->options->both_arms) return STATUS_OK;
    FAIL(
        STATUS_INPUT,
        "%s: --both-arms: expected what the interrupted run had, in which one training serves both "
        "arms through update %s; leave the option out, or begin anew",
        e->options->resume, trace_attribute_of(e->resume.image, "", SHARED_UPDATES_NAME));
}

/* Equal texts are equal configurations, so nothing that differs can act before the last update, and
 * a test arm that was opened would be a copy of a state that nobody reads: it takes as much memory
 * as the baseline, and as long to draw. */
enum status experiment_find_one(const struct experiment *e, const struct run *a, int *out_one) {
    uint64_t updates;
    *out_one = 0;
    if (strcmp(e->plan.runs[0].text, e->plan.runs[1].text) != 0 || wants_two(e) ||
        !experiment_may_move(&e->plan.runs[0].config) || e->options->both_arms ||
        (e->resume.image != NULL && had_two(e)))
        return STATUS_OK;
    TRY(experiment_may_share(&e->plan, run_dataset(a)->samples, &updates));
    *out_one = updates == e->plan.scenario->steps;
    return STATUS_OK;
}

enum status experiment_share(struct experiment *e, const struct run *a, const struct run *b) {
    int both = e->options->both_arms || is_drawn(&e->plan);
    TRY(find_alike(e, a, b));
    if (e->resume.image != NULL) TRY(as_before(e, &both));
    e->plan.served = both ? 0 : e->plan.alike;
    return STATUS_OK;
}

/* The room is that of a parting, which has not come; the fork may hold the state before the last
 * update. */
enum status experiment_take_over(struct experiment *e, const struct run *a, struct run *b) {
    struct run_kept *const room = &e->parting.room[0];
    if (room->memory == NULL) TRY(run_kept_open(a, room));
    TRY(run_keep(a, room));
    return run_take_back(b, room);
}

enum status experiment_check_alike(const struct experiment *e, const struct record *a,
                                   const struct record *b) {
    if (a->step > e->plan.alike || record_equal_roots(a, b)) return STATUS_OK;
    FAIL(STATUS_INTERNAL,
         "update %llu of %s and %s differs, although nothing that differs between them should act "
         "before update %llu: a defect of this program, which should be reported",
         (unsigned long long)a->step, e->plan.runs[0].id, e->plan.runs[1].id,
         (unsigned long long)e->plan.alike + 1);
}
