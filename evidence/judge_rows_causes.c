/* SPDX-License-Identifier: Apache-2.0
 * More about the causes in words: their parts of other measures, their shares over time, how the
 * distance grew, and what was not tested. Computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>

#include "base/real.h"

/* Each measure in a line: the gap of the arms, and what it is with one cause alone and with one
 * cause repaired; and whether the measure ranks causes in another way. */
static void put_measures(const struct judgement *judgement, struct row_pen *pen) {
    for (uint32_t m = 0; m < judgement->measure_count; m++) {
        const struct judged_measure *measure = &judgement->measures[m];
        row_put(pen, "\n%s %.4g", measure->words, measure->whole);
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            row_put(pen, "%s %s alone %.4g, repaired %.4g", i == 0 ? ":" : ";",
                    judgement->causes[i].name, measure->alone[i], measure->without[i]);
        if (measure->ranks_otherwise) row_put(pen, " (this measure ranks the causes otherwise)");
    }
}

static void put_acted(const struct judgement *judgement, struct row_pen *pen) {
    row_add(pen, ROW_WHEN, "alone, ");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        row_put(pen, "%s%s acts ", i == 0 ? "" : "; ", cause->name);
        if (cause->acted > 0)
            row_put(pen, "from update %lld on", (long long)cause->acted);
        else
            row_put(pen, cause->acted == 0 ? "in no update" : "from an update that was not seen");
    }
}

static void put_marks(const struct judgement *judgement, struct row_pen *pen) {
    for (uint32_t m = 0; m < judgement->mark_count; m++) {
        const struct judged_mark *mark = &judgement->marks[m];
        row_put(pen, "\nupdate %-6llu |a-b|%s = %-11.5g", (unsigned long long)mark->update,
                judgement_points(judgement), mark->whole);
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            row_put(pen, " %s %.4g %%", judgement->causes[i].name, 100.0 * mark->share[i]);
    }
}

void judge_row_measures(const struct judgement *judgement, struct row_pen *pen) {
    if (!judgement->attributed || judgement->cause_count < 2 || judgement->mark_count == 0) return;
    /* Where runs are noisy these are figures of single runs, and the noise is in every one. */
    if (judgement->floor != FLOOR_EXACT) return;
    put_measures(judgement, pen);
    put_acted(judgement, pen);
    put_marks(judgement, pen);
}

enum status judgement_law(const struct growth *fit, struct arena *arena, char **out) {
    const struct growth_slope *power = &fit->power, *rate = &fit->rate;
    switch (fit->law) {
    case GROWTH_CONSTANT:
        return arena_format(arena, out, "stays the same");
    case GROWTH_POWER:
        return arena_format(arena, out, "grows like k^%.3g [%.3g, %.3g]", power->value, power->low,
                            power->high);
    case GROWTH_EXPONENTIAL:
        return arena_format(arena, out, "is multiplied by %.4g [%.4g, %.4g] in each update",
                            real_exp_f64(rate->value), real_exp_f64(rate->low),
                            real_exp_f64(rate->high));
    default:
        return arena_format(
            arena, out,
            "grows like k^%.3g [%.3g, %.3g] or by %.4g in each update, which fit about alike",
            power->value, power->low, power->high, real_exp_f64(rate->value));
    }
}

static void put_growth(const char *what, const struct judged_growth *growth, struct row_pen *pen) {
    char *law = NULL;
    if (pen->status == STATUS_OK) pen->status = judgement_law(&growth->fit, pen->arena, &law);
    if (pen->status != STATUS_OK) return;
    row_put(pen, "%s %s over updates %llu to %llu (95 %%, nominal)", what, law,
            (unsigned long long)growth->from, (unsigned long long)growth->to);
}

void judge_row_growth(const struct judgement *judgement, struct row_pen *pen) {
    const double end = judgement_end(judgement);
    if (!(end > 0.0)) return;
    if (judgement->growth.known && judgement->growth.end > 0.0) {
        row_add(pen, ROW_GROWTH, "|a-b|%s", judgement_copies(judgement));
        put_growth("", &judgement->growth, pen);
    }
    if (!judgement->has_perturbed || isnan(judgement->response)) return;
    row_add(pen, ROW_PERTURBED,
            "one weight of %s one unit in the last place off moves the others by %.3g of |a-b|%s",
            judgement->arms[0], judgement->response / end, judgement_points(judgement));
    if (judgement->perturbed.known) put_growth(", and", &judgement->perturbed, pen);
    if (judgement->saturated)
        row_put(pen, "\nsaturated: rounding alone takes the arms this far apart by now, so the end "
                     "says little of causes; see earlier updates");
}

/* From this share of unchanged weights on a note says so. It was chosen, not derived: where nine of
 * ten weights stay, the distance of the arms is hardly made by their LRs. */
#define MOSTLY_STILL 0.9

/* From this share of lost steps on a note says so. It was chosen, not derived: an f32 weight loses
 * one in some thousands, where its gradient nearly vanishes, and that says nothing of a training.
 */
#define LOST_TOLD 0.1

/* Whether the trace tells which elements were to move; then says where rounding took that back, in
 * the copy that the optimizer moves. */
static int put_lost(const struct judgement *judgement, int arm, const char *configuration,
                    int has_master, struct row_pen *pen) {
    if (isnan(judgement->lost[arm])) return 0;
    if (judgement->lost[arm] < LOST_TOLD) return 1;
    row_add(pen, ROW_NOTE,
            "in %s rounding took back %.4g %% of the steps that the optimizer meant for single "
            "elements, %.0f of %.0f that were read back: ",
            judgement->arms[arm], 100.0 * judgement->lost[arm],
            judgement->lost[arm] * judgement->meant[arm], judgement->meant[arm]);
    if (config_text_says(configuration, "numerics.rounding", "stochastic"))
        row_put(pen, "it is drawn, and moves the others by as much more");
    else
        row_put(pen, "its %s are too coarse for them%s", has_master ? "masters" : "weights",
                judgement->lost[arm] > MOSTLY_STILL ? ", and an LR that is wrong hardly shows"
                                                    : "");
    return 1;
}

/* Says what it means that stored weights keep their bits: nothing where a master takes the update;
 * otherwise an element's gradient is 0, or the weight is too coarse, which traces of earlier
 * versions do not tell apart. */
static void put_still(const struct judgement *judgement, int arm, struct row_pen *pen) {
    const char *const text =
        trace_run_of(judgement->image, judgement->arms[arm])->plan.configuration;
    const double percent = 100.0 * judgement->still[arm];
    const int has_master = !config_text_says(text, "numerics.master", "none");
    const int is_told = put_lost(judgement, arm, text, has_master, pen);
    if (!(judgement->still[arm] > MOSTLY_STILL) || (is_told && !has_master)) return;
    if (is_told && judgement->lost[arm] >= LOST_TOLD) return;
    if (!has_master)
        row_add(
            pen, ROW_NOTE,
            "in %s an update leaves %.4g %% of the weights as they are: their gradients are 0 "
            "(rows of tokens that did not occur), or they are too coarse for it; where they are "
            "too coarse, an LR that is wrong hardly shows",
            judgement->arms[arm], percent);
    else
        row_add(pen, ROW_NOTE,
                "in %s an update leaves %.4g %% of the stored weights as they are; their masters "
                "take it in, so nothing of it is lost",
                judgement->arms[arm], percent);
}

static const char *const stood_words[STOOD_COUNT] = {
    [STOOD_SKIPPED] = "the optimizer made no step",
    [STOOD_LR] = "the applied LR was 0",
    [STOOD_GRADIENT] = "the gradient was 0",
};

/* Notes where an arm's updates do not reach its weights, or its moments are not of the clipped
 * gradient. */
void judge_row_arm(const struct judgement *judgement, int arm, struct row_pen *pen) {
    put_still(judgement, arm, pen);
    for (int why = 0; why < STOOD_COUNT; why++)
        if (judgement->stood[arm][why] > 0)
            row_add(pen, ROW_NOTE, "in %s %s in %llu of %llu updates", judgement->arms[arm],
                    stood_words[why], (unsigned long long)judgement->stood[arm][why],
                    (unsigned long long)judgement->updates);
    const uint64_t step = judgement->unclipped[arm];
    if (step == 0) return;
    const struct trace_run *run = trace_run_of(judgement->image, judgement->arms[arm]);
    const double *reals = trace_row(run, step - 1)->reals;
    row_add(pen, ROW_NOTE,
            "update %llu of %s: clipping says norm %.4g x %.4g, the moments took in a "
            "gradient of norm %.4g",
            (unsigned long long)step, judgement->arms[arm], reals[REAL_GRAD_NORM],
            reals[REAL_CLIP_COEF], reals[REAL_GRAD_TAKEN]);
}

/* Says what the verdict does not rest on, and what would tell. */
void judge_row_untested(const struct judgement *judgement, struct row_pen *pen) {
    static const char *const elsewhere =
        "other seeds and data (--set common.seed=N), another machine (replay there)";
    if (judgement->verdict == VERDICT_IDENTICAL) {
        row_add(pen, ROW_UNTESTED,
                "later updates, in which what differs may act (--set steps=N), %s", elsewhere);
        return;
    }
    row_add(pen, ROW_UNTESTED, "%s", elsewhere);
    if (judgement->floor == FLOOR_EXACT && judgement->floor_equal[1] < 0)
        row_put(pen, ", a second process");
    if (judgement->floor != FLOOR_EXACT && judgement->cause_count > 1 &&
        judgement->projection.runs == 0)
        row_put(pen, ",\nthe noise of the shares%s%s",
                judgement->projection.reason != NULL && judgement->projection.reason[0] != '\0'
                    ? ": "
                    : "",
                judgement->projection.reason == NULL ? "" : judgement->projection.reason);
}
