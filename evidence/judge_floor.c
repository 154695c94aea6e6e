/* SPDX-License-Identifier: Apache-2.0
 * The verdict: whether the difference of the arms is larger than that of runs which are meant to
 * be the same. Invariant: without a floor the verdict is `identical` or `untestable`. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#include "base/sum.h"
#include "determinism/power.h"
#include "determinism/statistics.h"

#define FLOOR_RUNS_MAX 1000u /* more runs of an arm than that are taken for a damaged trace */

static enum status undecided(struct judging *judging, const char *reason) {
    judging->out->verdict = VERDICT_UNTESTABLE;
    judging->out->reason = reason;
    return STATUS_OK;
}

/* Ends a judgement as untestable, for a reason with numbers in it. */
#define UNDECIDED(judging, ...)                                                                    \
    do {                                                                                           \
        char *reason_;                                                                             \
        TRY(arena_format((judging)->arena, &reason_, __VA_ARGS__));                                \
        return undecided(judging, reason_);                                                        \
    } while (0)

/* Whether the optimizer or the schedule of the baseline came from a user's module, which may keep
 * a state that this program does not see (docs/PLUGINS.md). */
static int runs_module(const struct judging *judging) {
    static const char *const keys[] = {"optimizer.module_sha256", "schedule.module_sha256"};
    const char *const text = judging->run[0]->plan.configuration;
    size_t length;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (config_text_value(text, keys[i], &length) != NULL &&
            !config_text_says(text, keys[i], CONFIG_NO_MODULE))
            return 1;
    return 0;
}

/* Reads one of the two attributes of updates in which the arms are alike; neither is in a trace of
 * arms that are not. */
static enum status read_alike(const struct judging *judging, const char *name, uint64_t *out) {
    double value = 0.0;
    if (trace_attribute_of(judging->image, "", name) != NULL)
        TRY(judging_number(judging, "", name, &value));
    if (!(value >= 0.0 && value <= 0x1p53 && value == (double)(uint64_t)value))
        FAIL(STATUS_INPUT, "trace: attribute %s: expected a number of updates, got %g", name,
             value);
    *out = (uint64_t)value;
    return STATUS_OK;
}

/* Reads for how many updates the arms are alike and one training served both. */
static enum status read_shared(const struct judging *judging, struct judgement *out) {
    TRY(read_alike(judging, ALIKE_UPDATES_NAME, &out->alike));
    TRY(read_alike(judging, SHARED_UPDATES_NAME, &out->served));
    if (out->served != 0 && out->served != out->alike)
        FAIL(STATUS_INPUT, "trace: attribute %s: expected 0 or all %llu of %s, got %llu",
             SHARED_UPDATES_NAME, (unsigned long long)out->alike, ALIKE_UPDATES_NAME,
             (unsigned long long)out->served);
    for (uint64_t i = 0; i < out->updates && i < out->served; i++)
        if (!record_equal_roots(trace_row(judging->run[0], i), trace_row(judging->run[1], i)))
            FAIL(STATUS_INPUT,
                 "trace: update %llu of %s and %s differs, and by attribute %s one training was "
                 "recorded of both",
                 (unsigned long long)i + 1, out->arms[0], out->arms[1], SHARED_UPDATES_NAME);
    return STATUS_OK;
}

/* Where one training served both arms, a test arm that differs from it when it is trained from its
 * own start may show noise, or that the arms were not alike. */
static const char *why_not_exact(const struct judging *judging) {
    const int *const equal = judging->out->floor_equal;
    if (runs_module(judging))
        return "the baseline differs from its own repeat, though its mode promises equal bits: its "
               "module keeps a state of its own, or else a defect of this build or machine";
    if (judging->out->served > 0 && equal[0] != 0)
        return "the test arm, trained in a process started anew, differs from the training that is "
               "recorded of both arms: a defect of this build or machine, or arms that this "
               "program wrongly takes for alike; run it with --both-arms";
    return "the baseline differs from its own repeat, though its mode promises equal bits: a "
           "defect of this build or machine; see env";
}

static enum status judge_exact(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_array *array;
    TRY(read_shared(judging, out));
    TRY(judging_array(judging, "floor/equal", 2, 1, &array));
    for (int i = 0; array != NULL && i < 2; i++)
        if (!isnan(array->values[i])) out->floor_equal[i] = array->values[i] != 0.0;
    if (out->floor_equal[0] < 0)
        return undecided(judging,
                         "the baseline was not repeated: no floor; run the scenario to its "
                         "end");
    if (out->floor_equal[0] == 0 || out->floor_equal[1] == 0)
        return undecided(judging, why_not_exact(judging));
    if (out->served > 0 && out->floor_equal[1] < 0)
        return undecided(judging, "one training is recorded of both arms, and none of the test arm "
                                  "from its own start, which a process started anew makes: run the "
                                  "scenario to its end, or with --both-arms");
    out->floor_largest = 0.0;
    out->verdict = VERDICT_OUTSIDE_FLOOR;
    return STATUS_OK;
}

/* Says why the matrix of the distances of `m` runs cannot be tested; NULL when it can. */
static const char *unusable(const struct judging *judging, const struct trace_array *matrix,
                            size_t m) {
    const struct trace_run_plan *a = &judging->run[0]->plan, *b = &judging->run[1]->plan;
    if (a->shape.tensors != b->shape.tensors && a->shape.tensors != 0 && b->shape.tensors != 0)
        return "the arms have different parameter tables: no distance between them exists";
    if (m < 3) return "one run of each arm tells nothing of noise: raise floor.replicates";
    if (matrix == NULL || isnan(matrix->values[0]))
        return judging->image->complete
                   ? "the arms have different parameter tables: no distance between them exists"
                   : "the floor's runs are missing: run the scenario to its end";
    for (size_t i = 0; i < m * m; i++)
        if (!isfinite(matrix->values[i]))
            return "a run of the floor diverged: its distance to the others is not finite";
    return NULL;
}

/* Packs the upper triangle of the matrix as determinism/statistics.h wants it, and notes d(A,B),
 * the largest distance between two runs of one arm, and the means that labels are tested by. */
static enum status pack_distances(struct judging *judging, const struct trace_array *matrix,
                                  double **out_packed) {
    struct judgement *out = judging->out;
    size_t m = (size_t)matrix->plan.shape[0], baseline = out->floor_runs[0];
    TRY(arena_take(judging->arena, statistics_pair_count(m), sizeof **out_packed, "floor",
                   out_packed));
    double sums[2] = {0.0, 0.0};
    size_t counts[2] = {0, 0};
    out->floor_distance = matrix->values[baseline];
    out->floor_largest = 0.0;
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++) {
            const double d = matrix->values[i * m + j];
            const int inside = (i < baseline) == (j < baseline);
            (*out_packed)[statistics_pair(m, i, j)] = d;
            sums[inside] = sum_chain_terms_f64_f64(sums[inside], &d, 1);
            counts[inside]++;
            if (inside && d > out->floor_largest) out->floor_largest = d;
        }
    out->floor_between = sums[0] / (double)counts[0];
    out->floor_inside = sums[1] / (double)counts[1];
    return STATUS_OK;
}

static enum status needed_runs(struct judging *judging) {
    struct judgement *out = judging->out;
    size_t needed;
    if (out->floor == FLOOR_RANK)
        TRY(statistics_pair_needed(out->alpha, &needed));
    else
        TRY(statistics_labels_needed(out->alpha, &needed));
    UNDECIDED(
        judging,
        "%u + %u runs cannot give p <= %g (least %.3g): floor.replicates of at least %zu would",
        out->floor_runs[0], out->floor_runs[1], out->alpha, out->smallest_p, needed);
}

/* With less power than this at 3 sigma, p > alpha says too little to call two arms alike. It was
 * chosen so that a design of 5 + 5 runs, whose power is 0.78, still suffices. */
#define LEAST_POWER 0.75

/* The verdict that a p is worth, where its design could see a difference. */
static enum status decide(struct judging *judging) {
    struct judgement *out = judging->out;
    if (out->p > out->alpha && out->power < LEAST_POWER)
        UNDECIDED(judging,
                  "p = %.4g is above alpha = %g, but this design would see a 3 sigma effect only "
                  "with probability %.2f: floor.design both with 8 runs of each arm has 0.99",
                  out->p, out->alpha, out->power);
    out->verdict = out->p <= out->alpha ? VERDICT_OUTSIDE_FLOOR : VERDICT_INSIDE_FLOOR;
    return STATUS_OK;
}

static enum status test_distances(struct judging *judging, const double *packed, size_t m) {
    struct judgement *out = judging->out;
    struct statistics_p p;
    struct power power;
    uint32_t baseline = out->floor_runs[0], test = out->floor_runs[1];
    if (out->floor == FLOOR_RANK) {
        TRY(statistics_test_pair(packed, m, 0, baseline, &p));
        TRY(power_pair(baseline - 1, out->alpha, POWER_SHIFT, &power));
        out->smallest_p = statistics_pair_least(baseline - 1);
    } else {
        TRY(statistics_test_labels(packed, m, baseline, &p));
        TRY(power_labels(baseline, test, out->alpha, POWER_SHIFT, &power));
        out->smallest_p = statistics_labels_least(baseline, test);
    }
    out->p = p.p;
    out->power = power.power;
    return STATUS_OK;
}

/* Tests the last losses of the same runs in the same manner. Arms whose weights are alike may
 * still report different losses, for instance divided otherwise. No verdict rests on this test. */
static enum status test_losses(struct judging *judging, size_t m) {
    struct judgement *out = judging->out;
    const struct trace_array *losses;
    struct statistics_p p;
    double *packed;
    TRY(judging_array(judging, "floor/loss", m, 1, &losses));
    if (losses == NULL || out->floor != FLOOR_PERMUTATION) return STATUS_OK;
    TRY(arena_take(judging->arena, statistics_pair_count(m), sizeof *packed, "floor", &packed));
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++)
            packed[statistics_pair(m, i, j)] = fabs(losses->values[i] - losses->values[j]);
    const enum status status = statistics_test_labels(packed, m, out->floor_runs[0], &p);
    if (status == STATUS_OK) out->loss_p = p.p;
    return status == STATUS_UNTESTABLE ? STATUS_OK : status;
}

static enum status judge_noise(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_array *matrix;
    size_t m = (size_t)out->floor_runs[0] + out->floor_runs[1];
    TRY(judging_array(judging, "floor/distance", m, m, &matrix));
    const char *reason = unusable(judging, matrix, m);
    if (reason != NULL) return undecided(judging, reason);
    double *packed;
    TRY(pack_distances(judging, matrix, &packed));
    TRY(test_distances(judging, packed, m));
    TRY(test_losses(judging, m));
    if (out->smallest_p > out->alpha) return needed_runs(judging);
    return decide(judging);
}

/* Ranks d(A,B) among the distances of a floor file's A/A pairs, which share no run with the arms
 * or with each other. */
static enum status judge_file(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_array *matrix, *pairs = trace_array_of(judging->image, "floor/pairs");
    struct statistics_p p;
    struct power power;
    TRY(judging_array(judging, "floor/distance", 2, 2, &matrix));
    if (matrix == NULL || isnan(matrix->values[1]))
        return undecided(judging, "the arms have no distance: the trace is not whole, or their "
                                  "parameter tables differ");
    if (pairs == NULL || pairs->plan.rank != 1)
        return undecided(judging, "the floor file's pairs are missing");
    out->floor_pairs = pairs->plan.shape[0];
    out->floor_distance = matrix->values[1];
    out->floor_largest = 0.0;
    for (uint64_t i = 0; i < out->floor_pairs; i++)
        if (pairs->values[i] > out->floor_largest) out->floor_largest = pairs->values[i];
    TRY(statistics_test_distance(pairs->values, (size_t)out->floor_pairs, out->floor_distance, &p));
    TRY(power_distance((size_t)out->floor_pairs, out->alpha, POWER_SHIFT, &power));
    out->smallest_p = 1.0 / (double)(out->floor_pairs + 1);
    out->p = p.p;
    out->power = power.power;
    if (out->smallest_p > out->alpha) {
        size_t needed;
        TRY(statistics_distance_needed(out->alpha, &needed));
        UNDECIDED(
            judging,
            "%ju A/A pairs of the floor file cannot give p <= %g (least %.3g): twinstep noise "
            "--pairs %zu would",
            (uintmax_t)out->floor_pairs, out->alpha, out->smallest_p, needed);
    }
    return decide(judging);
}

enum status judge_floor(struct judging *judging) {
    struct judgement *out = judging->out;
    double steps;
    const char *kind = judging_text(judging, "floor", "kind");
    TRY(judging_number(judging, "", "steps", &steps));
    TRY(judging_number(judging, "floor", "alpha", &out->alpha));
    TRY(judging_count(judging, "floor", "runs_baseline", FLOOR_RUNS_MAX, &out->floor_runs[0]));
    TRY(judging_count(judging, "floor", "runs_test", FLOOR_RUNS_MAX, &out->floor_runs[1]));
    for (enum floor_kind k = FLOOR_EXACT; k <= FLOOR_FILE; k = (enum floor_kind)(k + 1))
        if (strcmp(kind, floor_kind_name(k)) == 0) out->floor = k;
    if ((double)out->updates < steps)
        UNDECIDED(judging, "only %ju of %.0f updates were finished by both arms",
                  (uintmax_t)out->updates, steps);
    /* A kind that is not known has no matrix of distances, so judge_noise leaves it undecided. */
    const enum status status = out->floor == FLOOR_EXACT  ? judge_exact(judging)
                               : out->floor == FLOOR_FILE ? judge_file(judging)
                                                          : judge_noise(judging);
    if (status == STATUS_UNTESTABLE) UNDECIDED(judging, "%s", status_text());
    /* Equal arms need no floor to be called identical; but where a mode promises equal bits and
     * breaks the promise, nothing that was trained is evidence. */
    int noisy = out->floor != FLOOR_EXACT;
    if (status == STATUS_OK && out->first_step < 0 &&
        (noisy || out->verdict != VERDICT_UNTESTABLE)) {
        out->verdict = VERDICT_IDENTICAL;
        out->reason = "";
    }
    return status;
}
