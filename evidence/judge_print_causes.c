/* SPDX-License-Identifier: Apache-2.0
 * The causes in more words: by other measures, over time, under noise; how the distance grew.
 * Prints what was judged; computes nothing new. */
#include "evidence/judge_parts.h"

#include "base/real.h"

void judge_print_way(const struct judgement *judgement, FILE *out) {
    fprintf(out,
            "  shares   of the way from %s to %s, |way| = %.6g with the noise of runs taken out\n",
            judgement->arms[0], judgement->arms[1], judgement->total);
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        fprintf(out, "           %-16s %8.3f %%   +- %-9.2g place %u", cause->name,
                100.0 * cause->share, 50.0 * (cause->high - cause->low), cause->place[0]);
        if (cause->place[1] != cause->place[0])
            fprintf(out, " to %u, not ordered", cause->place[1]);
        fprintf(out, "\n");
    }
    fprintf(
        out,
        "           %u runs of each mixture, each with its own order of sums; intervals at %g %%: "
        "jackknife over runs, Student's t\n",
        judgement->way.runs, 100.0 * judgement->way.confidence);
}

/* By which measure the parts are what: one line each, whole parts first. */
static void print_measures(const struct judgement *judgement, FILE *out) {
    for (uint32_t m = 0; m < judgement->measure_count; m++) {
        const struct judged_measure *measure = &judgement->measures[m];
        fprintf(out, "           %s %.4g: ", measure->words, measure->whole);
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            fprintf(out, "%s%s %.4g", i == 0 ? "" : ", ", judgement->causes[i].name,
                    measure->value[i]);
        fprintf(out, "\n");
    }
}

static void print_acted(const struct judgement *judgement, FILE *out) {
    fprintf(out, "  when     alone, ");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        fprintf(out, "%s%s acts ", i == 0 ? "" : "; ", cause->name);
        if (cause->acted > 0)
            fprintf(out, "from update %lld on", (long long)cause->acted);
        else
            fprintf(out, cause->acted == 0 ? "in no update" : "from an update that was not seen");
    }
    fprintf(out, "\n");
}

static void print_marks(const struct judgement *judgement, FILE *out) {
    for (uint32_t m = 0; m < judgement->mark_count; m++) {
        const struct judged_mark *mark = &judgement->marks[m];
        fprintf(out, "           update %-6llu |a-b| = %-11.5g", (unsigned long long)mark->update,
                mark->whole);
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            fprintf(out, " %s %.4g %%", judgement->causes[i].name, 100.0 * mark->share[i]);
        fprintf(out, "\n");
    }
}

void judge_print_measures(const struct judgement *judgement, FILE *out) {
    if (!judgement->attributed || judgement->cause_count < 2 || judgement->mark_count == 0) return;
    if (judgement->floor != FLOOR_EXACT) return; /* single runs: their noise is in every figure */
    print_measures(judgement, out);
    print_acted(judgement, out);
    print_marks(judgement, out);
}

static void print_law(const struct growth *fit, FILE *out) {
    switch (fit->law) {
    case GROWTH_CONSTANT:
        fprintf(out, "stays the same");
        return;
    case GROWTH_POWER:
        fprintf(out, "grows like k^%.3g [%.3g, %.3g]", fit->power.value, fit->power.low,
                fit->power.high);
        return;
    case GROWTH_EXPONENTIAL:
        fprintf(out, "is multiplied by %.4g [%.4g, %.4g] in each update",
                real_exp_f64(fit->rate.value), real_exp_f64(fit->rate.low),
                real_exp_f64(fit->rate.high));
        return;
    default:
        fprintf(out,
                "grows like k^%.3g [%.3g, %.3g] or by %.4g in each update, which fit about alike",
                fit->power.value, fit->power.low, fit->power.high, real_exp_f64(fit->rate.value));
    }
}

static void print_growth(const char *what, const struct judged_growth *growth, FILE *out) {
    fprintf(out, "%s ", what);
    print_law(&growth->fit, out);
    fprintf(out, " over updates %llu to %llu (95 %%, nominal)\n", (unsigned long long)growth->from,
            (unsigned long long)growth->to);
}

void judge_print_growth(const struct judgement *judgement, FILE *out) {
    if (!(judgement->growth.end > 0.0)) return;
    if (judgement->growth.known) print_growth("  growth   |a-b|", &judgement->growth, out);
    if (!judgement->has_twin) return;
    fprintf(out,
            "  twin     one weight of %s one unit in the last place off: %.3g of |a-b| at the end",
            judgement->arms[0], judgement->twin.end / judgement->growth.end);
    if (judgement->twin.known)
        print_growth(", and", &judgement->twin, out);
    else
        fprintf(out, "\n");
    if (judgement->saturated)
        fprintf(out,
                "           saturated: rounding alone takes the arms this far apart by now, so "
                "the end says little of causes; see earlier updates\n");
}

#define MOSTLY_STILL 0.9

/* What of an arm's updates reached its weights and moments. */
void judge_print_arm(const struct judgement *judgement, int arm, FILE *out) {
    const double still = judgement->still[arm];
    if (still > MOSTLY_STILL)
        fprintf(
            out,
            "  note     in %s an update leaves %.4g %% of the weights as they are: they are too "
            "coarse for it, and an LR that is wrong hardly shows\n",
            judgement->arms[arm], 100.0 * still);
    const uint64_t step = judgement->unclipped[arm];
    if (step == 0) return;
    const struct trace_run *run = trace_run_of(judgement->image, judgement->arms[arm]);
    const double *reals = run->records[step - 1].reals;
    fprintf(out,
            "  note     update %llu of %s: clipping says norm %.4g x %.4g, the moments took in a "
            "gradient of norm %.4g\n",
            (unsigned long long)step, judgement->arms[arm], reals[REAL_GRAD_NORM],
            reals[REAL_CLIP_COEF], reals[REAL_GRAD_TAKEN]);
}

/* What the verdict does not rest on, and what would tell. */
void judge_print_untested(const struct judgement *judgement, FILE *out) {
    fprintf(
        out,
        "  untested other seeds and data (--set common.seed=N), another machine (replay there)");
    if (judgement->floor == FLOOR_EXACT && judgement->floor_equal[1] < 0)
        fprintf(out, ", a second process");
    if (judgement->floor != FLOOR_EXACT && judgement->cause_count > 1 && judgement->way.runs == 0)
        fprintf(out, ",\n           the noise of the shares%s%s",
                judgement->way.reason != NULL && judgement->way.reason[0] != '\0' ? ": " : "",
                judgement->way.reason == NULL ? "" : judgement->way.reason);
    fprintf(out, "\n");
}
