/* SPDX-License-Identifier: Apache-2.0
 * Holds the hybrid of all factors against the test arm. What the two prove together depends on
 * where the test arm's command comes from: if it is the user's own second command, a difference is
 * something that is in no factor; if it is the same command, a difference is a run that does not
 * repeat, and then the floor was wrong. */
#include <math.h>
#include <string.h>

#include "ablate/ablate_private.h"
#include "base/real.h"

/* ---- whose command it is ---- */

/* How much of the test arm's command the hybrid of all factors has. */
enum likeness { COMMANDS_DIFFER, COMMANDS_DIFFER_IN_PLACE, COMMANDS_ALIKE };

static enum status command_of(struct judging *judging, int arm, const char *const *files,
                              struct ablate_command *out) {
    const struct ablate_run run = {.arm = arm, .mask = judging->full};
    const struct ablate_values values = {judging->full, "{dir}",  "{run}", "{gpu}",
                                         "{port}",      "{seed}", files};
    return ablate_command_of(judging->plan, &run, &values, judging->arena, out);
}

/* The last entry of a name counts, as it does where variables are set. */
static const struct ablate_variable *find_variable(const struct ablate_command *of,
                                                   const char *name) {
    for (size_t v = of->variable_count; v > 0; v--)
        if (strcmp(of->variables[v - 1].name, name) == 0) return &of->variables[v - 1];
    return NULL;
}

static int holds_variables(const struct ablate_command *of, const struct ablate_command *in) {
    for (size_t v = 0; v < of->variable_count; v++) {
        const struct ablate_variable *a = find_variable(of, of->variables[v].name);
        const struct ablate_variable *b = find_variable(in, of->variables[v].name);
        if (b == NULL || (a->value[0] == NULL) != (b->value[0] == NULL)) return 0;
        if (a->value[0] != NULL && strcmp(a->value[0], b->value[0]) != 0) return 0;
    }
    return 1;
}

static int same_words(const struct ablate_words *a, const struct ablate_words *b) {
    if (a->count != b->count) return 0;
    for (size_t w = 0; w < a->count; w++)
        if (strcmp(a->words[w], b->words[w]) != 0) return 0;
    return 1;
}

/* A composed file with all leaves of the second one holds what that holds, at another place. */
static enum status compare_commands(struct judging *judging, enum likeness *out) {
    const struct ablate_file *file = judging->plan->file;
    struct ablate_command hybrid, test;
    const char **second;
    *out = COMMANDS_ALIKE;
    if (!file->has_test) return STATUS_OK;
    TRY(arena_take(judging->arena, file->composed_count, sizeof *second, "files", &second));
    for (uint32_t i = 0; i < file->composed_count; i++)
        second[i] = file->files[i].paths[1];
    TRY(command_of(judging, ABLATE_NO_ARM, second, &hybrid));
    TRY(command_of(judging, 1, second, &test));
    if (!same_words(&hybrid.words, &test.words) || !holds_variables(&hybrid, &test) ||
        !holds_variables(&test, &hybrid))
        *out = COMMANDS_DIFFER;
    else if (file->composed_count > 0)
        *out = COMMANDS_DIFFER_IN_PLACE;
    return STATUS_OK;
}

enum status ablate_is_rerun(struct judging *judging, int *out) {
    enum likeness likeness;
    TRY(compare_commands(judging, &likeness));
    *out = likeness != COMMANDS_DIFFER;
    return STATUS_OK;
}

/* ---- closure ---- */

enum status ablate_doubt_closure(struct judging *judging, const char *reason, const char *what) {
    char *text;
    TRY(arena_format(judging->arena, &text, reason, what));
    judging->out->closure = ABLATE_CLOSURE_UNTESTABLE;
    judging->out->closure_reason = text;
    return STATUS_OK;
}

static enum status open_closure(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    enum likeness likeness;
    if (judging->full_elsewhere) {
        static const char *const reason = "all factors were run where no arm was, so that a "
                                          "difference of machines or devices would look the same";
        ablate_take_shares(judging, reason);
        return ablate_doubt_closure(judging, "%s", reason);
    }
    TRY(compare_commands(judging, &likeness));
    if (likeness == COMMANDS_DIFFER) {
        out->closure = ABLATE_CLOSURE_OPEN;
        return STATUS_OK;
    }
    out->closure = ABLATE_CLOSURE_RERUN_DIFFERS;
    ablate_take_shares(judging, "the floor does not hold");
    const char *const key = out->floor == ABLATE_FLOOR_EXACT ? "runs" : "noisy";
    char *chance, *end;
    TRY(arena_format(judging->arena, &chance, "%s", ""));
    if (!isnan(out->closure_p))
        TRY(arena_format(judging->arena, &chance,
                         " (p = %.4g: chance alone does that in no more than such a share of "
                         "ablations)",
                         out->closure_p));
    if (likeness == COMMANDS_DIFFER_IN_PLACE) {
        TRY(arena_format(judging->arena, &end,
                         "%s: runs depend on where that file lies, or the floor does not hold "
                         "(raise floor.%s)",
                         chance, key));
        return ablate_refuse(judging,
                             "baseline with every factor of test has the command of test but for "
                             "the place of its mixed file, and came out otherwise%s",
                             end);
    }
    TRY(arena_format(judging->arena, &end, "%s, so the floor does not hold: raise floor.%s", chance,
                     key));
    return ablate_refuse(judging,
                         judging->plan->file->has_test
                             ? "baseline with every factor of test has the command of test, word "
                               "for word, and came out otherwise than the repeats of test%s"
                             : "the rerun of test came out otherwise than its repeats%s",
                         end);
}

static enum status closed(struct judging *judging, enum ablate_closure own) {
    judging->out->closure = judging->plan->file->has_test ? own : ABLATE_CLOSURE_RERUN;
    return STATUS_OK;
}

static enum status close_exact(struct judging *judging, const struct ablate_left *all) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_left *const runs[2] = {all, ablate_left_of(judging, 1, 0, 1)};
    static const char *const names[2] = {"the hybrid of all factors", "test"};
    struct ablate_pair pair = {0, 1, 1, 0.0};
    struct ablate_shape shape;
    if (ablate_differ(judging, runs[0], runs[1]) == 0) {
        out->open = 0.0;
        return closed(judging, ABLATE_CLOSURE_EXACT);
    }
    if (out->has_distance) {
        const enum status status = ablate_measure(judging, runs, names, 2, &pair, 1, &shape);
        if (status != STATUS_OK && status != STATUS_UNTESTABLE) return status;
        if (status == STATUS_OK && isfinite(pair.value)) out->open = real_sqrt_f64(pair.value);
    }
    return open_closure(judging);
}

/* Compares the runs of the full hybrid with those of test as the arms were compared, with the same
 * alpha: a closure that holds is called open in no more than that share of ablations. */
static enum status close_noisy(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const uint64_t most = judging->plan->file->noisy_runs;
    struct ablate_groups groups = {.count = 0};
    for (uint32_t i = 1; i <= most; i++) {
        const struct ablate_run *run = ablate_run_of(judging, ABLATE_NO_ARM, judging->full, i);
        if (run != NULL && ablate_result_of(judging, run)->state == ABLATE_ABSENT)
            return STATUS_OK; /* it is still to be run */
    }
    ablate_groups_add(judging, ABLATE_NO_ARM, judging->full, most, &groups);
    groups.first = out->closure_runs = groups.count;
    if (groups.count == 0) return STATUS_OK;
    ablate_groups_add(judging, 1, 0, out->floor_runs, &groups);
    const enum status status = ablate_groups_compare(judging, &groups);
    if (status == STATUS_UNTESTABLE)
        return ablate_doubt_closure(judging, "its runs have no distance: %s", status_text());
    if (status != STATUS_OK) return status;
    out->closure_p = groups.p;
    out->closure_least = groups.least;
    out->closure_shift = groups.shift;
    out->open = groups.nearest;
    if (groups.p <= out->alpha) return open_closure(judging);
    if (groups.least > out->alpha)
        return ablate_doubt_closure(
            judging, "so few runs of all factors cannot decide: raise floor.noisy%s", "");
    return closed(judging, ABLATE_CLOSURE_WITHIN);
}

enum status ablate_judge_closure(struct judging *judging) {
    const struct ablate_left *all = ablate_hybrid_of(judging, judging->full);
    if (judging->out->floor == ABLATE_FLOOR_NOISY) return close_noisy(judging);
    return all == NULL ? STATUS_OK : close_exact(judging, all);
}
