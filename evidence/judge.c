/* SPDX-License-Identifier: Apache-2.0
 * Judges a trace image: the first difference, what is odd about the runs, the floor, the causes
 * and the expectation, in this order, because each rests on those before it; words come last. */
#include "evidence/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sum.h"
#include "determinism/first.h"
#include "evidence/backend_seen.h"
#include "evidence/judge_parts.h"
#include "evidence/products_seen.h"

const char *floor_kind_name(enum floor_kind kind) {
    static const char *const names[] = {"none", "exact", "permutation", "rank", "file"};
    return names[kind];
}

const char *closure_name(enum closure closure) {
    static const char *const names[] = {"absent", "open", "exact", "within-floor"};
    return names[closure];
}

const char *expectation_name(enum expectation expectation) {
    static const char *const names[] = {"none", "met", "missed"};
    return names[expectation];
}

/* Whether the run keeps masters in another dtype than its parameters. */
static int keeps_masters(const struct trace_run *run) {
    const char *const text = run->plan.configuration;
    size_t width, own;
    const char *const master = config_text_value(text, "numerics.master", &width),
                      *const param = config_text_value(text, "numerics.param", &own);
    if (master == NULL || param == NULL || config_text_says(text, "numerics.master", "none"))
        return 0;
    return width != own || memcmp(master, param, width) != 0;
}

const char *judgement_points(const struct judgement *judgement) {
    return judgement->masters ? " of the masters" : "";
}

const char *judgement_copies(const struct judgement *judgement) {
    return judgement->masters ? " of the copies" : "";
}

double judgement_end(const struct judgement *judgement) {
    return judgement->masters ? judgement->total : judgement->growth.end;
}

static enum status open_judging(struct judging *judging) {
    struct judgement *out = judging->out;
    out->name = judging_text(judging, "", "name");
    out->arms[0] = judging_text(judging, "", "baseline");
    out->arms[1] = judging_text(judging, "", "test");
    for (int arm = 0; arm < 2; arm++) {
        judging->run[arm] = trace_run_of(judging->image, out->arms[arm]);
        if (judging->run[arm] == NULL)
            FAIL(STATUS_INPUT, "trace: it holds no run \"%s\": not written by run", out->arms[arm]);
        if (judging->run[arm]->plan.shape.groups == 0)
            FAIL(STATUS_INPUT, "trace: run \"%s\" has no parameter group: not written by run",
                 out->arms[arm]);
    }
    out->masters = keeps_masters(judging->run[0]) || keeps_masters(judging->run[1]);
    uint64_t a = judging->run[0]->updates, b = judging->run[1]->updates;
    out->updates = a < b ? a : b;
    out->seal = trace_seal_word(judging->image->seal);
    out->first_step = -1;
    out->first_phase = "";
    out->first_tensor = "";
    out->reason = "";
    out->missed = "";
    out->mixtures.unasked = "";
    out->mixtures.bound = out->mixtures.level = (double)NAN;
    out->rng_words = "";
    out->reported.column = "";
    out->image = judging->image;
    out->floor_equal[0] = out->floor_equal[1] = -1;
    out->loss_p = out->p = out->power = out->smallest_p = out->floor_distance = out->floor_largest =
        out->total = out->residual = out->travel = out->response = (double)NAN;
    out->ranked = -1;
    return STATUS_OK;
}

int judgement_differs(const struct judgement *judgement) {
    return judgement->verdict == VERDICT_OUTSIDE_FLOOR ||
           judgement->verdict == VERDICT_SAME_TRAINING ||
           judgement->verdict == VERDICT_SAME_WEIGHTS;
}

int judgement_is_estimated(const struct judgement *judgement) {
    return judgement->sample.orders > 0 || judgement->projection.runs > 0;
}

/* Intervals of orders that agree are as wide as the rounding of their sums. */
#define NO_SPREAD 1e-9

int judgement_lacks_spread(const struct judgement *judgement, uint32_t i) {
    const struct attributed *share = &judgement->causes[i].share;
    return judgement->sample.orders > 0 && share->high - share->low <= NO_SPREAD;
}

/* The cause with the largest share at a mark. */
static uint32_t largest_at(const struct judgement *judgement, uint32_t mark) {
    const double *const share = judgement->marks[mark].share;
    uint32_t largest = 0;
    for (uint32_t i = 1; i < judgement->cause_count; i++)
        if (fabs(share[i]) > fabs(share[largest])) largest = i;
    return largest;
}

const char *judgement_cause(const struct judgement *judgement) {
    if (!judgement_differs(judgement) || judgement->cause_count == 0) return "";
    const char *const first = judgement->causes[0].name;
    if (judgement->cause_count == 1) return first; /* nothing else differs */
    if (judgement->beside.is_known) return judgement->causes[judgement->beside.cause].name;
    switch (judgement->word) {
    case WORD_CAUSE:
    case WORD_SEVERAL:
        return first;
    case WORD_ROUNDING:
        if (judgement->ranked < 0) return attribution_words[WORD_ROUNDING];
        return judgement->causes[largest_at(judgement, (uint32_t)judgement->ranked)].name;
    default:
        return attribution_words[judgement->word];
    }
}

uint32_t judgement_only_acting(const struct judgement *judgement) {
    uint32_t only = judgement->cause_count, count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if (judgement->causes[i].is_idle) continue;
        only = i;
        count++;
    }
    return count == 1 ? only : judgement->cause_count;
}

const char *judgement_cause_alone(const struct judgement *judgement) {
    const uint32_t count = judgement->cause_count, only = judgement_only_acting(judgement);
    if (count < 2 || judgement->beside.is_known) return judgement_cause(judgement);
    if (judgement_differs(judgement) && judgement->word == WORD_ROUNDING && only < count)
        return judgement->causes[only].name;
    if (judgement->word == WORD_SEVERAL || judgement->word == WORD_ROUNDING)
        return judgement_differs(judgement) ? attribution_words[judgement->word] : "";
    return judgement_cause(judgement);
}

/* Phase and tensor of the first difference in update `i`: as they were seen where that update was
 * repeated under a watch, else by digests alone. */
static enum status find_place(struct judging *judging, uint64_t i) {
    struct judgement *out = judging->out;
    const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
    struct first_difference first;
    char *name;
    TRY(first_place_read(judging->image, judging->arena, &out->place));
    if (out->place.update != a->step || out->place.undecided[0] != '\0') {
        first_find(&judging->run[0]->plan, a, &judging->run[1]->plan, b, &first);
        out->first_phase = first.phase;
        out->first_tensor = first.tensor;
        out->place.update = 0;
        return STATUS_OK;
    }
    TRY(arena_format(judging->arena, &name, "%s %s", out->place.op, out->place.tensor));
    out->first_phase = out->place.phase;
    out->first_tensor = name;
    return STATUS_OK;
}

static enum status find_first(struct judging *judging) {
    judging->out->place.undecided = "";
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        if (record_equal_roots(a, b)) continue;
        judging->out->first_step = (int64_t)a->step;
        return find_place(judging, i);
    }
    return STATUS_OK;
}

/* Which arm drew other random words. That is told only where the arms differ. */
static enum status compare_rng(struct judging *judging) {
    struct judgement *out = judging->out;
    char *words;
    ledger_compare(judging->run[0], judging->run[1], &out->rng);
    if (out->first_step < 0) return STATUS_OK;
    TRY(ledger_words(&out->rng, out->arms, judging->arena, &words));
    out->rng_words = words;
    return STATUS_OK;
}

uint32_t judge_groups(const struct trace_run *a, const struct trace_run *b) {
    const uint32_t x = a->plan.shape.groups, y = b->plan.shape.groups;
    return x < y ? x : y;
}

/* Notes from which update on a loss and weights are not finite, and from which the logged LRs
 * differ. */
static void note_curves(struct judging *judging) {
    struct judgement *out = judging->out;
    for (uint64_t i = 0; i < out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        const struct record *records[2] = {a, b};
        for (int arm = 0; arm < 2; arm++) {
            if (out->diverged[arm] == 0 && !isfinite(records[arm]->reals[REAL_LOSS]))
                out->diverged[arm] = records[arm]->step;
            if (out->unbounded[arm] == 0 && !isfinite(records[arm]->reals[REAL_PARAM_NORM]))
                out->unbounded[arm] = records[arm]->step;
        }
        for (uint32_t g = 0; g < judge_groups(judging->run[0], judging->run[1]); g++) {
            double x = a->groups[g][GROUP_LR_LOGGED], y = b->groups[g][GROUP_LR_LOGGED];
            if (out->logged_step == 0 && x != y && !(isnan(x) && isnan(y)))
                out->logged_step = a->step;
        }
    }
}

/* Keeps a number that the arms report differently, unless an earlier one is kept: the first of
 * which both report a value, and the first of which one arm does not. NaN stands for none, in both
 * arms where it was not recorded, in one where its loop does not make the number. */
static void keep_reported(struct judged_report by_both[2], uint64_t update, const char *column,
                          double x, double y) {
    const int both = !isnan(x) && !isnan(y);
    if (by_both[both].update != 0 || x == y || (isnan(x) && isnan(y))) return;
    by_both[both] = (struct judged_report){.update = update, .column = column, .values = {x, y}};
}

/* Notes the first number that the arms report differently. */
static void note_reported(struct judging *judging) {
    struct judged_report by_both[2] = {{.update = 0, .column = ""}, {.update = 0, .column = ""}};
    const uint32_t groups = judge_groups(judging->run[0], judging->run[1]);
    for (uint64_t i = 0; i < judging->out->updates && by_both[1].update == 0; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        for (int real = 0; real < RECORD_REALS; real++)
            keep_reported(by_both, a->step, record_reals[real].name, a->reals[real],
                          b->reals[real]);
        for (uint32_t g = 0; g < groups; g++)
            keep_reported(by_both, a->step, record_groups[GROUP_LR_LOGGED].name,
                          a->groups[g][GROUP_LR_LOGGED], b->groups[g][GROUP_LR_LOGGED]);
    }
    judging->out->reported = by_both[by_both[1].update != 0];
}

/* Whether gradients are stored in fp8. Below its least normal number a rounding may change a
 * gradient by any factor, so what the optimizer took in proves nothing about clipping. */
static int keeps_gradients_in_fp8(const struct trace_run *run) {
    const char *const text = run->plan.configuration;
    return config_text_says(text, "numerics.gradient", dtype_name(DTYPE_E4M3)) ||
           config_text_says(text, "numerics.gradient", dtype_name(DTYPE_E5M2));
}

/* Whether the optimizer's input, as read back from the moments, is another gradient than clipping
 * left. Clipping leaves norm x coefficient; storing it may round each element by half a unit in
 * the last place, which is 2^-8 of it in bf16, the coarsest dtype but fp8; and the read-back has an
 * error of its own, which was recorded with it. */
static int took_another(const double *reals) {
    const double left = reals[REAL_GRAD_NORM] * reals[REAL_CLIP_COEF];
    const double gap = fabs(reals[REAL_GRAD_TAKEN] - left);
    return gap > reals[REAL_GRAD_TAKEN_ERROR] + 0x1p-8 * left;
}

/* Notes what an arm ran on: where that differs, the difference may be one of devices. */
static enum status note_device(struct judging *judging, int arm) {
    const struct backend_seen seen = backends_of_run(judging->image, judging->out->arms[arm]);
    char *line;
    judging->out->device[arm] = judging->out->products[arm] = "";
    if (seen.group == NULL || strcmp(seen.group, BACKENDS_OWN) == 0) return STATUS_OK;
    TRY(backends_line(&seen, judging->arena, &line));
    judging->out->device[arm] = line;
    return products_line(judging->image, judging->out->arms[arm], judging->arena,
                         &judging->out->products[arm]);
}

/* Why an update has nothing to bring to the weights; STOOD_COUNT: it has. */
static enum stood reason_to_stand(const struct record *record, uint32_t groups) {
    if (record->integers[INTEGER_SKIPPED] != 0) return STOOD_SKIPPED;
    uint32_t without = 0;
    for (uint32_t g = 0; g < groups; g++)
        without += record->groups[g][GROUP_LR_APPLIED] == 0.0;
    if (without == groups) return STOOD_LR;
    return record->reals[REAL_GRAD_NORM] == 0.0 ? STOOD_GRADIENT : STOOD_COUNT;
}

/* Adds up how many elements were to move, and how many rounding left where they were. The arrays
 * are not in traces of earlier versions. */
static enum status note_steps(struct judging *judging, int arm) {
    struct judgement *out = judging->out;
    const uint64_t steps = out->updates;
    const struct trace_array *meant = trace_array_of(judging->image, STEPS_MEANT_PATH);
    const struct trace_array *lost = trace_array_of(judging->image, STEPS_LOST_PATH);
    double sums[2] = {0.0, 0.0};
    out->meant[arm] = out->lost[arm] = (double)NAN;
    if (meant == NULL || lost == NULL) return STATUS_OK;
    const uint64_t columns = meant->plan.shape[1];
    TRY(judging_array(judging, STEPS_MEANT_PATH, 2, columns, &meant));
    TRY(judging_array(judging, STEPS_LOST_PATH, 2, columns, &lost));
    for (uint64_t i = 0; i < steps && i < columns; i++) {
        const size_t at = (size_t)arm * columns + i;
        const double terms[2] = {trace_value(meant, at), trace_value(lost, at)};
        sums[0] = sum_chain_terms_f64_f64(sums[0], &terms[0], 1);
        sums[1] = sum_chain_terms_f64_f64(sums[1], &terms[1], 1);
    }
    if (isnan(sums[0])) return STATUS_OK;
    out->meant[arm] = sums[0];
    out->lost[arm] = sums[0] > 0.0 ? sums[1] / sums[0] : 0.0;
    return STATUS_OK;
}

static void note_arm(struct judging *judging, int arm) {
    struct judgement *out = judging->out;
    const int is_told = !keeps_gradients_in_fp8(judging->run[arm]);
    double sum = 0.0;
    uint64_t moving = 0;
    for (uint64_t i = 0; i < out->updates; i++) {
        const struct record *record = trace_row(judging->run[arm], i);
        const double still = 1.0 - record->reals[REAL_UPDATE_SURVIVAL];
        const enum stood why = reason_to_stand(record, judging->run[arm]->plan.shape.groups);
        if (why == STOOD_COUNT) {
            sum = sum_chain_terms_f64_f64(sum, &still, 1);
            moving++;
        } else {
            out->stood[arm][why]++;
        }
        if (is_told && out->unclipped[arm] == 0 && took_another(record->reals))
            out->unclipped[arm] = record->step;
    }
    out->still[arm] = moving > 0 ? sum / (double)moving : (double)NAN;
}

enum status judge(const struct trace_image *image, struct arena *arena, struct judgement *out) {
    struct judging judging = {.image = image, .arena = arena, .out = out};
    memset(out, 0, sizeof *out);
    TRY(open_judging(&judging));
    TRY(find_first(&judging));
    TRY(compare_rng(&judging));
    note_curves(&judging);
    note_reported(&judging);
    for (int arm = 0; arm < 2; arm++)
        note_arm(&judging, arm);
    for (int arm = 0; arm < 2; arm++)
        TRY(note_steps(&judging, arm));
    for (int arm = 0; arm < 2; arm++)
        TRY(note_device(&judging, arm));
    out->elsewhere = judging_text(&judging, "floor", "elsewhere");
    TRY(judge_floor(&judging));
    judge_same(&judging);
    TRY(judge_growth(&judging));
    TRY(judge_causes(&judging));
    judge_saturation(&judging);
    TRY(judge_eval(&judging));
    TRY(judge_replicas(&judging));
    TRY(judge_expectation(&judging));
    TRY(judge_rows(arena, out));
    return trace_rows_status(image);
}

int judgement_exit(const struct judgement *judgement) {
    if (judgement->verdict == VERDICT_UNTESTABLE && judgement->expectation != EXPECT_MET) return 3;
    if (judgement->expectation == EXPECT_MISSED) return 1;
    if (judgement->expectation == EXPECT_MET) return 0;
    return judgement_differs(judgement);
}
