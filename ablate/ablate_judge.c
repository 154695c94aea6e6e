/* SPDX-License-Identifier: Apache-2.0
 * The judgement of the floor and of the arms; ablate_shares.c has the hybrids, ablate_closure.c
 * what all factors together prove. */
#include "ablate/ablate_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ablate/ablate_private.h"
#include "base/real.h"
#include "determinism/projection.h"

const char *const ablate_closure_names[] = {
    [ABLATE_CLOSURE_ABSENT] = "absent",         [ABLATE_CLOSURE_EXACT] = "exact",
    [ABLATE_CLOSURE_WITHIN] = "within",         [ABLATE_CLOSURE_OPEN] = "open",
    [ABLATE_CLOSURE_RERUN] = "rerun-equal",     [ABLATE_CLOSURE_RERUN_DIFFERS] = "rerun-differs",
    [ABLATE_CLOSURE_UNTESTABLE] = "untestable",
};

/* ---- results ---- */

enum status ablate_results_open(const struct ablate_folder *folder, struct arena *arena,
                                struct ablate_result **out) {
    const struct ablate_plan *plan = folder->plan;
    struct ablate_result *results;
    TRY(arena_take(arena, plan->run_count, sizeof *results, "runs", &results));
    *out = results;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const char *digests[READ_KINDS];
        char *dir, *reason;
        results[i].reason = results[i].place = "";
        TRY(ablate_folder_state(folder, &plan->runs[i], arena, &results[i].state));
        if (results[i].state == ABLATE_FAILED) {
            TRY(ablate_folder_reason(folder, &plan->runs[i], arena, &reason));
            results[i].reason = reason;
        }
        if (results[i].state != ABLATE_DONE) continue;
        TRY(ablate_folder_path(folder, &plan->runs[i], "out", arena, &dir));
        TRY(ablate_left_open(plan->file, &plan->runs[i], dir, arena, &results[i].left));
        TRY(ablate_folder_digests(folder, &plan->runs[i], arena, digests, &results[i].place));
        for (int k = 0; k < READ_KINDS; k++) {
            int same;
            TRY(ablate_left_is(&results[i].left, (enum ablate_read)k, digests[k], arena, &same));
            if (same) continue;
            FAIL(STATUS_INPUT,
                 "%s: its %s were changed after the run ended, or a version of twinstep recorded "
                 "them that reads them otherwise; the plan can be run in another folder (--output)",
                 dir, ablate_read_names[k]);
        }
    }
    return STATUS_OK;
}

void ablate_results_close(const struct ablate_plan *plan, struct ablate_result *results) {
    for (uint32_t i = 0; results != NULL && i < plan->run_count; i++)
        ablate_left_close(&results[i].left);
}

const struct ablate_run *ablate_run_of(const struct judging *judging, int arm, uint32_t mask,
                                       uint32_t replicate) {
    if (arm == ABLATE_NO_ARM && mask == 0) arm = 0;
    for (uint32_t i = 0; i < judging->plan->run_count; i++) {
        const struct ablate_run *run = &judging->plan->runs[i];
        if (run->arm == arm && (arm != ABLATE_NO_ARM || run->mask == mask) &&
            run->replicate == replicate)
            return run;
    }
    return NULL;
}

const struct ablate_result *ablate_result_of(const struct judging *judging,
                                             const struct ablate_run *run) {
    return &judging->results[run - judging->plan->runs];
}

const struct ablate_left *ablate_left_of(const struct judging *judging, int arm, uint32_t mask,
                                         uint32_t replicate) {
    const struct ablate_run *run = ablate_run_of(judging, arm, mask, replicate);
    if (run == NULL) return NULL;
    const struct ablate_result *result = ablate_result_of(judging, run);
    return result->state == ABLATE_DONE ? &result->left : NULL;
}

const struct ablate_left *ablate_hybrid_of(const struct judging *judging, uint32_t mask) {
    return ablate_left_of(judging, ABLATE_NO_ARM, mask, 1);
}

int ablate_is_asked(const struct judging *judging, uint32_t mask) {
    return !(judging->out->asks_cancel && ablate_is_between(judging->plan, mask));
}

unsigned ablate_differ(const struct judging *judging, const struct ablate_left *a,
                       const struct ablate_left *b) {
    return ablate_left_differ(a, b, judging->out->reads);
}

const char *ablate_kinds_text(unsigned kinds, char out[ABLATE_KINDS_TEXT]) {
    size_t used = 0;
    out[0] = '\0';
    for (int kind = 0; kind < READ_KINDS; kind++) {
        const unsigned rest = kinds >> kind;
        if ((rest & 1u) == 0) continue;
        const char *const between = used == 0 ? "" : rest == 1u ? " and " : ", ";
        used += (size_t)snprintf(out + used, ABLATE_KINDS_TEXT - used, "%s%s", between,
                                 ablate_read_names[kind]);
    }
    return out;
}

/* ---- floor ---- */

static uint32_t done_of(const struct judging *judging, int arm, uint64_t most) {
    uint32_t count = 0;
    while (count < most && ablate_left_of(judging, arm, 0, count + 1) != NULL)
        count++;
    return count;
}

/* Looks in which kinds a run of an arm differs from its first one. */
static void look_for_noise(const struct judging *judging, const uint32_t runs[2]) {
    struct ablate_verdict *out = judging->out;
    for (int arm = 0; arm < 2; arm++) {
        out->noise_of[arm] = 0;
        for (uint32_t i = 2; i <= runs[arm]; i++)
            out->noise_of[arm] |= ablate_differ(judging, ablate_left_of(judging, arm, 0, 1),
                                                ablate_left_of(judging, arm, 0, i));
    }
    out->noise = out->noise_of[0] | out->noise_of[1];
}

enum status ablate_measure(struct judging *judging, const struct ablate_left *const *runs,
                           const char *const *names, uint32_t count, struct ablate_pair *pairs,
                           size_t pair_count, struct ablate_shape *shape) {
    if (!judging->out->by_loss)
        return ablate_products(runs, names, count, 0, &judging->out->common, pairs, pair_count,
                               judging->arena, shape);
    *shape = (struct ablate_shape){.broken = count};
    const int64_t step = judging->out->step;
    for (size_t p = 0; p < pair_count; p++) {
        const double a = ablate_loss_at(runs[pairs[p].i], step);
        const double b = ablate_loss_at(runs[pairs[p].j], step);
        const double origin = ablate_loss_at(runs[0], step);
        pairs[p].value = pairs[p].difference ? (a - b) * (a - b) : (a - origin) * (b - origin);
    }
    for (uint32_t r = 0; r < count; r++)
        if (!isfinite(ablate_loss_at(runs[r], step)) && shape->broken == count) {
            shape->broken = r;
            shape->broken_tensor = "the loss";
        }
    return STATUS_OK;
}

static int as_long(const struct ablate_left *a, const struct ablate_left *b) {
    return a->rows == b->rows && a->step[a->rows - 1] == b->step[b->rows - 1];
}

/* Says of the runs that are done which left how many losses, in the order of the plan; nothing
 * where all left as many. A run with fewer ended early, or logs otherwise, and nothing is compared
 * with what others have more. */
static enum status tell_lengths(struct judging *judging) {
    const struct ablate_plan *const plan = judging->plan;
    const struct ablate_result *const results = judging->results;
    uint32_t groups = 0;
    char *text;
    TRY(arena_format(judging->arena, &text, "%s", ""));
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct ablate_left *const left = &results[i].left;
        uint32_t others = 0;
        int is_first = 1;
        if (results[i].state != ABLATE_DONE || left->rows == 0) continue;
        for (uint32_t j = 0; j < plan->run_count; j++) {
            if (j == i || results[j].state != ABLATE_DONE || results[j].left.rows == 0 ||
                !as_long(left, &results[j].left))
                continue;
            is_first = is_first && j > i;
            others++;
        }
        if (!is_first) continue;
        TRY(arena_format(judging->arena, &text, "%s%s%s", text, groups++ == 0 ? "" : "; ",
                         plan->runs[i].id));
        if (others > 0) TRY(arena_format(judging->arena, &text, "%s and %u more", text, others));
        TRY(arena_format(judging->arena, &text, "%s left %zu loss%s, up to update %lld", text,
                         left->rows, left->rows == 1 ? "" : "es",
                         (long long)left->step[left->rows - 1]));
    }
    if (groups > 1) judging->out->lengths = text;
    return STATUS_OK;
}

/* Chooses what end points are. Losses are those of the last update that all runs of the arms have,
 * so that what is run later moves no verdict about the arms. */
static enum status choose_measure(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_file *file = judging->plan->file;
    const struct ablate_left **runs;
    uint32_t count = 0;
    static const enum ablate_read order[] = {READ_WEIGHTS, READ_TRACE, READ_BYTES, READ_LOG};
    for (size_t i = COUNT_OF(order); i > 0; i--) {
        if (file->read[order[i - 1]] == NULL) continue;
        out->measure = order[i - 1];
        out->reads |= 1u << order[i - 1];
    }
    out->has_distance = file->read[READ_WEIGHTS] != NULL;
    if (file->read[READ_LOG] == NULL && file->read[READ_TRACE] == NULL) return STATUS_OK;
    TRY(arena_take(judging->arena, judging->plan->run_count, sizeof *runs, "runs", &runs));
    for (uint32_t i = 0; i < judging->plan->run_count; i++)
        if (judging->results[i].state == ABLATE_DONE && judging->plan->runs[i].arm != ABLATE_NO_ARM)
            runs[count++] = &judging->results[i].left;
    out->step = ablate_common_step(runs, count);
    if (out->step > 0 && !out->has_distance) out->has_distance = out->by_loss = 1;
    return tell_lengths(judging);
}

enum status ablate_refuse(struct judging *judging, const char *reason, const char *what) {
    char *text;
    TRY(arena_format(judging->arena, &text, reason, what));
    judging->out->kind = ABLATE_UNTESTABLE;
    judging->out->reason = text;
    return STATUS_OK;
}

void ablate_groups_add(const struct judging *judging, int arm, uint32_t mask, uint64_t runs,
                       struct ablate_groups *out) {
    for (uint32_t i = 1; i <= runs && out->count < STATISTICS_MAX_RUNS; i++) {
        const struct ablate_left *left = ablate_left_of(judging, arm, mask, i);
        if (left == NULL) continue;
        out->names[out->count] = ablate_run_of(judging, arm, mask, i)->id;
        out->runs[out->count++] = left;
    }
}

/* Fills in what the distances say beside p. The shift: a shift moves no distance within a group,
 * and none between them by more than its length. Once every distance between the groups exceeds
 * every one within them, no other relabeling of two groups of equal size has as large a statistic,
 * because it exchanges distances of the one kind for as many of the other. */
static void describe_groups(const double *distances, struct ablate_groups *groups) {
    double widest = 0.0;
    groups->repeats = 0.0;
    groups->nearest = ABLATE_UNKNOWN;
    for (uint32_t i = 0; i < groups->count; i++)
        for (uint32_t j = i + 1; j < groups->count; j++) {
            const double distance = distances[statistics_pair(groups->count, i, j)];
            const int within = (i < groups->first) == (j < groups->first);
            if (within && distance > groups->repeats) groups->repeats = distance;
            if (!within && distance > widest) widest = distance;
            if (!within && !(groups->nearest <= distance)) groups->nearest = distance;
        }
    groups->heads = distances[statistics_pair(groups->count, 0, groups->first)];
    groups->shift = 2 * groups->first == groups->count ? groups->repeats + widest : ABLATE_UNKNOWN;
}

enum status ablate_groups_compare(struct judging *judging, struct ablate_groups *groups) {
    const uint32_t count = groups->count;
    const size_t pair_count = statistics_pair_count(count);
    struct ablate_pair *pairs;
    struct statistics_p p;
    double *distances;
    TRY(arena_take(judging->arena, pair_count, sizeof *pairs, "distances", &pairs));
    TRY(arena_take(judging->arena, pair_count, sizeof *distances, "distances", &distances));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            pairs[statistics_pair(count, i, j)] = (struct ablate_pair){i, j, 1, 0.0};
    TRY(ablate_measure(judging, groups->runs, groups->names, count, pairs, pair_count,
                       &groups->shape));
    if (groups->shape.broken < count)
        FAIL(STATUS_UNTESTABLE, "%s of %s is not finite", groups->shape.broken_tensor,
             groups->names[groups->shape.broken]);
    for (size_t i = 0; i < pair_count; i++) {
        distances[i] = real_sqrt_f64(pairs[i].value);
        if (!isfinite(distances[i]))
            FAIL(STATUS_UNTESTABLE, "a distance of them is beyond the range of f64");
    }
    describe_groups(distances, groups);
    groups->least = statistics_labels_least(groups->first, count - groups->first);
    TRY(statistics_test_labels(distances, count, groups->first, &p));
    groups->p = p.p;
    return STATUS_OK;
}

/* ---- tensors ---- */

/* Looks which tensors the arms have both. */
static enum status compare_names(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_left *a = ablate_left_of(judging, 0, 0, 1);
    const struct ablate_left *b = ablate_left_of(judging, 1, 0, 1);
    if ((out->reads >> READ_WEIGHTS & 1u) == 0) return STATUS_OK;
    out->wrappers[0] = a->wrappers;
    out->wrappers[1] = b->wrappers;
    TRY(ablate_names_common(&a->weights, &b->weights, judging->arena, &out->common));
    out->common_equal = ablate_names_equal(&a->weights, &b->weights, &out->common);
    return STATUS_OK;
}

static int differ_in_names(const struct ablate_verdict *verdict) {
    return verdict->common.only_count[0] + verdict->common.only_count[1] > 0;
}

static int repeats_have_names(const struct judging *judging, uint32_t runs) {
    for (int arm = 0; arm < 2; arm++)
        for (uint32_t i = 2; i <= runs; i++)
            if (!ablate_names_same(&ablate_left_of(judging, arm, 0, 1)->weights,
                                   &ablate_left_of(judging, arm, 0, i)->weights))
                return 0;
    return 1;
}

/* ---- noise ---- */

static enum status judge_noisy(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const uint64_t wanted = judging->plan->file->noisy_runs;
    out->floor = ABLATE_FLOOR_NOISY;
    out->wants[ABLATE_ARMS_NOISE] = 1;
    char kinds[ABLATE_KINDS_TEXT];
    if (!out->has_distance)
        return ablate_refuse(
            judging,
            "runs differ from their repeats in %s, and only equality is known: give "
            "weights or a log in read",
            ablate_kinds_text(out->noise, kinds));
    const uint32_t a = done_of(judging, 0, wanted), b = done_of(judging, 1, wanted);
    const uint32_t runs = a < b ? a : b;
    if (runs < wanted)
        return ablate_refuse(judging, "runs differ from their repeats, and more of them are %s",
                             "missing");
    struct ablate_groups groups = {.count = 0};
    ablate_groups_add(judging, 0, 0, runs, &groups);
    groups.first = groups.count;
    ablate_groups_add(judging, 1, 0, runs, &groups);
    out->floor_runs = runs;
    look_for_noise(judging, (const uint32_t[2]){runs, runs});
    const enum status status = ablate_groups_compare(judging, &groups);
    if (status == STATUS_UNTESTABLE) {
        out->has_distance = 0;
        return ablate_refuse(judging, "runs differ from their repeats, and have no distance: %s",
                             status_text());
    }
    if (status != STATUS_OK) return status;
    out->shape = groups.shape;
    out->p = groups.p;
    out->least = groups.least;
    out->repeats = groups.repeats;
    out->nearest = groups.nearest;
    out->distance = groups.heads;
    out->shift = groups.shift;
    if (out->p > out->alpha && out->least > out->alpha)
        return ablate_refuse(judging,
                             "runs differ from their repeats, and so few of them cannot decide: "
                             "raise floor.noisy%s",
                             "");
    /* what differs between the arms and never between repeats needs no distance */
    const int steady = (out->differ & ~out->noise) != 0 ||
                       (differ_in_names(out) && repeats_have_names(judging, runs));
    out->kind = out->p <= out->alpha || steady ? ABLATE_OUTSIDE : ABLATE_INSIDE;
    return STATUS_OK;
}

enum status ablate_explain_zero(struct judging *judging, const struct ablate_left *a,
                                const struct ablate_left *b, unsigned differ, const char *who,
                                const char **out) {
    const struct ablate_verdict *verdict = judging->out;
    char kinds[ABLATE_KINDS_TEXT], *text;
    ablate_kinds_text(differ, kinds);
    if (verdict->by_loss)
        TRY(arena_format(judging->arena, &text,
                         "%s differ in %s, and the loss of update %lld, the last that both arms "
                         "have, is equal, so it has no parts",
                         who, kinds, (long long)verdict->step));
    else if ((differ >> READ_WEIGHTS & 1u) == 0)
        TRY(arena_format(judging->arena, &text,
                         "%s differ in %s and left equal weights, so there is no distance that "
                         "could have parts",
                         who, kinds));
    else if (ablate_names_equal(&a->weights, &b->weights, &verdict->common))
        TRY(arena_format(judging->arena, &text,
                         "the tensors that both arms left are equal in %s, so there is no distance "
                         "that could have parts",
                         who));
    else
        TRY(arena_format(judging->arena, &text,
                         "the weights of %s differ and have distance 0: they differ %sin signs of "
                         "zeros, or by so little that its square is 0 in f64",
                         who,
                         verdict->shape.others > 0
                             ? "in tensors of integers, of which only equality counts, or "
                             : ""));
    *out = text;
    return STATUS_OK;
}

/* Measures the squared distance of the arms' first runs, in *square. */
static enum status measure_ends(struct judging *judging, struct ablate_shape *shape,
                                double *square) {
    const struct ablate_left *const runs[2] = {ablate_left_of(judging, 0, 0, 1),
                                               ablate_left_of(judging, 1, 0, 1)};
    struct ablate_pair pair = {0, 1, 1, 0.0};
    const enum status status = ablate_measure(
        judging, runs, (const char *const[]){"baseline", "test"}, 2, &pair, 1, shape);
    *square = pair.value;
    return status;
}

/* Measures the distance of the arms, where their floor is exact and they differ. Where there is
 * none, or it is 0 although they differ, only equality is judged. */
static enum status measure_arms(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    static const char *const names[2] = {"baseline", "test"};
    double square;
    char *text;
    if (!out->has_distance) return STATUS_OK;
    const enum status status = measure_ends(judging, &out->shape, &square);
    if (status != STATUS_OK && status != STATUS_UNTESTABLE) return status;
    out->distance = real_sqrt_f64(square);
    if (status == STATUS_OK && out->shape.broken == 2 && isfinite(out->distance)) {
        if (out->distance > 0.0) return STATUS_OK;
        out->has_distance = 0;
        return ablate_explain_zero(judging, ablate_left_of(judging, 0, 0, 1),
                                   ablate_left_of(judging, 1, 0, 1), out->differ,
                                   "baseline and test", &out->no_shares);
    }
    out->has_distance = 0;
    out->distance = ABLATE_UNKNOWN;
    if (status == STATUS_UNTESTABLE)
        TRY(arena_format(judging->arena, &text, "end points have no distance: %s", status_text()));
    else if (out->shape.broken < 2)
        TRY(arena_format(judging->arena, &text,
                         "end points have no distance: %s of %s is not finite",
                         out->shape.broken_tensor, names[out->shape.broken]));
    else
        TRY(arena_format(judging->arena, &text,
                         "end points have no distance: its square is beyond the range of f64"));
    out->no_shares = text;
    return STATUS_OK;
}

/* Equal arms that end in something that is no number are equal because both broke, whatever differs
 * between them. */
static enum status judge_equal(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    struct ablate_shape shape;
    double square;
    out->distance = out->has_distance ? 0.0 : ABLATE_UNKNOWN;
    if (!out->has_distance) return STATUS_OK;
    const enum status status = measure_ends(judging, &shape, &square);
    if (status == STATUS_UNTESTABLE) return STATUS_OK; /* tensors without numbers */
    TRY(status);
    if (shape.broken == 2) return STATUS_OK;
    out->has_distance = 0;
    out->distance = ABLATE_UNKNOWN;
    return ablate_refuse(judging,
                         "baseline and test are equal, and %s of both is not finite: trainings "
                         "that broke say nothing of what differs between them",
                         shape.broken_tensor);
}

static enum status judge_floor(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const uint64_t wanted = judging->plan->file->floor_runs;
    const uint64_t most = judging->plan->file->noisy_runs; /* a run that is there counts */
    const uint32_t a = done_of(judging, 0, most), b = done_of(judging, 1, most);
    out->wants[ABLATE_ARMS] = 1;
    out->floor_runs = a < b ? a : b;
    if (out->floor_runs < wanted) {
        for (uint32_t i = 0; i < judging->plan->run_count; i++)
            if (judging->plan->runs[i].arm != ABLATE_NO_ARM &&
                judging->results[i].state == ABLATE_FAILED)
                return ablate_refuse(judging, "%s failed", judging->plan->runs[i].id);
        return ablate_refuse(judging, "runs of the %s are missing",
                             a < wanted ? "baseline" : "test arm");
    }
    out->differ =
        ablate_differ(judging, ablate_left_of(judging, 0, 0, 1), ablate_left_of(judging, 1, 0, 1));
    look_for_noise(judging, (const uint32_t[2]){a, b});
    TRY(compare_names(judging));
    if (out->noise != 0) return judge_noisy(judging);
    out->floor = ABLATE_FLOOR_EXACT;
    out->kind = out->differ == 0 ? ABLATE_INSIDE : ABLATE_OUTSIDE;
    return out->kind == ABLATE_INSIDE ? judge_equal(judging) : measure_arms(judging);
}

/* ---- all of it ---- */

enum status ablate_judge(const struct ablate_plan *plan, const struct ablate_result *results,
                         struct arena *arena, struct ablate_verdict *out) {
    struct judging judging = {.plan = plan,
                              .results = results,
                              .arena = arena,
                              .out = out,
                              .full = (1u << plan->file->factor_count) - 1,
                              .farthest = (1u << plan->file->factor_count) - 1};
    *out = (struct ablate_verdict){.reason = "",
                                   .p = ABLATE_UNKNOWN,
                                   .least = ABLATE_UNKNOWN,
                                   .alpha = plan->file->alpha,
                                   .repeats = ABLATE_UNKNOWN,
                                   .nearest = ABLATE_UNKNOWN,
                                   .chance = ABLATE_UNKNOWN,
                                   .doubt = "",
                                   .shift = ABLATE_UNKNOWN,
                                   .distance = ABLATE_UNKNOWN,
                                   .full = ABLATE_UNKNOWN,
                                   .no_shares = "",
                                   .lengths = "",
                                   .closure_reason = "",
                                   .elsewhere_first = "",
                                   .open = ABLATE_UNKNOWN,
                                   .closure_p = ABLATE_UNKNOWN,
                                   .closure_least = ABLATE_UNKNOWN,
                                   .closure_shift = ABLATE_UNKNOWN,
                                   .loss_gap = ABLATE_UNKNOWN,
                                   .residual = ABLATE_UNKNOWN,
                                   .confidence = ABLATE_UNKNOWN,
                                   .first = {0, "", ""}};
    TRY(choose_measure(&judging));
    TRY(judge_floor(&judging));
    if (out->kind == ABLATE_UNTESTABLE && out->floor == ABLATE_FLOOR_OPEN) return STATUS_OK;
    if (out->floor == ABLATE_FLOOR_EXACT) /* over a noisy one, repeats part as well */
        ablate_find_first(ablate_left_of(&judging, 0, 0, 1), ablate_left_of(&judging, 1, 0, 1),
                          &out->first);
    if (out->kind == ABLATE_OUTSIDE) TRY(ablate_check_arms_places(&judging));
    out->asks_cancel = out->kind == ABLATE_INSIDE && out->floor == ABLATE_FLOOR_EXACT &&
                       ablate_plan_if_equal(plan) > 0;
    if ((out->kind != ABLATE_OUTSIDE && !out->asks_cancel) || plan->file->version_count > 0)
        return STATUS_OK;
    const int noisy = out->floor == ABLATE_FLOOR_NOISY;
    /* without shares to come, noisy hybrids would cost and tell nothing */
    const int sharing = !plan->file->single && plan->file->factor_count <= PROJECTION_FACTORS_MAX;
    out->wants[ABLATE_HYBRIDS] = !noisy || sharing;
    out->wants[ABLATE_HYBRIDS_NOISE] = noisy && sharing;
    TRY(ablate_judge_hybrids(&judging));
    TRY(ablate_check_places(&judging));
    TRY(ablate_judge_closure(&judging));
    TRY(ablate_judge_again(&judging));
    TRY(ablate_judge_linked(&judging));
    return ablate_judge_chance(&judging);
}

int ablate_wants(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                 const struct ablate_run *run) {
    int again = 0;
    const int skips =
        verdict->asks_cancel && run->stage == ABLATE_HYBRIDS && ablate_is_between(plan, run->mask);
    for (uint32_t i = 0; i < verdict->again_count; i++)
        again |= verdict->again[i] == run->mask;
    return (verdict->wants[run->stage] && !skips) ||
           (run->arm != ABLATE_NO_ARM && run->replicate <= verdict->confirm) ||
           (again && run->arm == ABLATE_NO_ARM && run->replicate == 2);
}
