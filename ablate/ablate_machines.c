/* SPDX-License-Identifier: Apache-2.0
 * Where runs were made: a difference of machines or devices looks like a difference of whatever
 * else differs between them. A place is what `done` says of a run: machine and device. */
#include <string.h>

#include "ablate/ablate_private.h"

/* ---- arms ---- */

/* Returns 1 if an arm's finished runs were all at one place; *out_first is the first of them. */
static int is_one_place(const struct judging *judging, int arm, const char **out_first) {
    *out_first = NULL;
    for (uint32_t i = 0; i < judging->plan->run_count; i++) {
        const struct ablate_result *result = &judging->results[i];
        if (judging->plan->runs[i].arm != arm || result->state != ABLATE_DONE) continue;
        if (*out_first == NULL) *out_first = result->place;
        if (strcmp(*out_first, result->place) != 0) return 0;
    }
    return 1;
}

static int ran_at(const struct judging *judging, int arm, const char *place) {
    for (uint32_t i = 0; i < judging->plan->run_count; i++)
        if (judging->plan->runs[i].arm == arm && judging->results[i].state == ABLATE_DONE &&
            strcmp(judging->results[i].place, place) == 0)
            return 1;
    return 0;
}

/* Where all runs of one arm were on a device, or a machine, that no run of the other arm was on, a
 * difference of these would look like one of the arms. */
enum status ablate_check_arms_places(struct judging *judging) {
    for (int arm = 0; arm < 2; arm++) {
        const char *place;
        if (!is_one_place(judging, arm, &place) || ran_at(judging, !arm, place)) continue;
        char *text;
        TRY(arena_format(judging->arena, &text,
                         "the arms differ, but %s was run on %s only, and %s never: a difference "
                         "of machines or devices would look the same (--slots 1, or more "
                         "floor.runs)",
                         arm == 0 ? "baseline" : "test", place, arm == 0 ? "test" : "baseline"));
        judging->out->kind = ABLATE_UNTESTABLE;
        judging->out->reason = text;
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* ---- hybrids ---- */

static int is_arm(const struct judging *judging, uint32_t i) {
    return judging->plan->runs[i].arm != ABLATE_NO_ARM;
}

/* Marks the places that are known to make no difference: those of the arms, and those where a run
 * left what a run of the same factors left at such a place. */
static void mark_known(const struct judging *judging, unsigned char *known) {
    const uint32_t count = judging->plan->run_count;
    const struct ablate_result *results = judging->results;
    for (uint32_t i = 0; i < count; i++)
        known[i] = (unsigned char)(is_arm(judging, i) && results[i].state == ABLATE_DONE);
    int more = 1;
    while (more) {
        more = 0;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < count && !known[i] && results[i].state == ABLATE_DONE; j++) {
                if (!known[j]) continue;
                if (strcmp(results[i].place, results[j].place) == 0 ||
                    (judging->plan->runs[i].mask == judging->plan->runs[j].mask &&
                     ablate_differ(judging, &results[i].left, &results[j].left) == 0))
                    known[i] = (unsigned char)(more = 1);
            }
    }
}

enum status ablate_check_places(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_run *const full = ablate_run_of(judging, ABLATE_NO_ARM, judging->full, 1);
    unsigned char *known;
    char *text;
    TRY(arena_take(judging->arena, judging->plan->run_count, 1, "places", &known));
    mark_known(judging, known);
    for (uint32_t i = 0; i < judging->plan->run_count; i++) {
        const struct ablate_run *run = &judging->plan->runs[i];
        if (known[i] || judging->results[i].state != ABLATE_DONE) continue;
        if (run == full) judging->full_elsewhere = 1;
        if (out->elsewhere++ > 0) continue;
        TRY(arena_format(judging->arena, &text, "%s on %s", run->id, judging->results[i].place));
        out->elsewhere_first = text;
    }
    return STATUS_OK;
}
