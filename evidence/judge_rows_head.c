/* SPDX-License-Identifier: Apache-2.0
 * The headline of a verdict, which names the causes, and the row that says which applied LR
 * differs first. Puts what was judged into words, and computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <string.h>

static const struct trace_run *arm_run(const struct judgement *judgement, int arm) {
    return trace_run_of(judgement->image, judgement->arms[arm]);
}

/* What the trace says of the verdict under this name; "" when it says nothing. */
static const char *note(const struct judgement *judgement, const char *name) {
    const char *text = trace_attribute_of(judgement->image, "verdict", name);
    return text == NULL ? "" : text;
}

static void put_shares_in_words(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen,
            judgement->coupled ? " The causes act together (see the interactions): " : " Cause: ");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        const char *before = i == 0 ? "" : judgement->coupled || i > 1 ? ", " : "; ";
        const char *gap = i == 0 && !judgement->coupled ? "," : "";
        row_put(pen, "%s%s%s %.4g %%%s", before, cause->name, gap, 100.0 * cause->share,
                i == 0 ? " of the parameter distance" : "");
    }
    row_put(pen, judgement->cause_count == 1 ? "; nothing else differs." : ".");
}

/* So many estimated shares fit a sentence; the row of the shares has them all. */
#define ESTIMATES_IN_WORDS 3

static void put_estimates_in_words(const struct judgement *judgement, struct row_pen *pen) {
    const uint32_t last = judgement->causes[0].place[1];
    const char *whole = judgement->projection.runs > 0 ? " of the way between the arms"
                                                       : " of the parameter distance";
    if (judgement->coupled)
        row_put(pen, " The causes act together: ");
    else if (last > 1)
        row_put(pen, " Which of %u causes is the largest is not ordered: ", last);
    else
        row_put(pen, " Cause: ");
    for (uint32_t i = 0; i < judgement->cause_count && i < ESTIMATES_IN_WORDS; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        row_put(pen, "%s%s %.3g %% (",
                i == 0   ? ""
                : i == 1 ? "; "
                         : ", ",
                cause->name, 100.0 * cause->share);
        if (judgement->projection.runs > 0)
            row_put(pen, "+- %.2g)%s", 50.0 * (cause->high - cause->low), i == 0 ? whole : "");
        else
            row_put(pen, "%.3g to %.3g)%s", 100.0 * cause->low, 100.0 * cause->high,
                    i == 0 ? whole : "");
    }
    if (judgement->cause_count > ESTIMATES_IN_WORDS)
        row_put(pen, ", %u more", judgement->cause_count - ESTIMATES_IN_WORDS);
    if (judgement->sample.orders > 0)
        row_put(pen, "; estimated from %u sampled orders.", judgement->sample.orders);
    else
        row_put(pen, "; estimated from %u runs of each mixture.", judgement->projection.runs);
}

static void put_causes(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->cause_count == 0) {
        row_put(pen, " The configurations are equal: no cause can be named.");
        return;
    }
    if (judgement->attributed && judgement->total != 0.0) {
        if (judgement_is_estimated(judgement))
            put_estimates_in_words(judgement, pen);
        else
            put_shares_in_words(judgement, pen);
        return;
    }
    row_put(pen, judgement->cause_count == 1 ? " Cause: " : " What differs: ");
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        row_put(pen, "%s%s", i == 0 ? "" : ", ", judgement->causes[i].name);
    if (judgement->attributed)
        row_put(pen, "; the weights are equal at the end, so there is no distance to share out.");
    else
        row_put(pen, "; no distance between the arms could be measured, so there are no shares.");
}

void judge_row_headline(const struct judgement *judgement, struct row_pen *pen) {
    static const char *const titles[] = {"", "IDENTICAL", "INSIDE THE FLOOR", "OUTSIDE THE FLOOR",
                                         "UNTESTABLE"};
    row_add(pen, ROW_HEADLINE, "%s: %s.", judgement->name, titles[judgement->verdict]);
    switch (judgement->verdict) {
    case VERDICT_IDENTICAL:
        row_put(pen, " Parameters, slots, losses and applied LR of all %llu updates are equal.",
                (unsigned long long)judgement->updates);
        break;
    case VERDICT_INSIDE_FLOOR:
        row_put(pen,
                " No difference beyond that of repeats was detected at alpha = %g (power %.2f at 3 "
                "sigma); no cause is named.",
                judgement->alpha, judgement->power);
        break;
    case VERDICT_OUTSIDE_FLOOR:
        put_causes(judgement, pen);
        break;
    default:
        row_put(pen, " %s.", judgement->reason);
    }
}

static int same_real(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void put_readback(const double *a, const double *b, struct row_pen *pen) {
    double error = a[GROUP_LR_ERROR] > b[GROUP_LR_ERROR] ? a[GROUP_LR_ERROR] : b[GROUP_LR_ERROR];
    double gap = fabs(a[GROUP_LR_APPLIED] - b[GROUP_LR_APPLIED]);
    if (isnan(a[GROUP_LR_READBACK]) || isnan(b[GROUP_LR_READBACK])) return;
    if (!(error <= gap / 2))
        row_put(pen,
                "\nReading the LR back from the weights is untestable here: its error, "
                "%.1e, exceeds half the gap.",
                error);
    else
        row_put(pen, "\nRead back from the weights: %.6g and %.6g (+- %.1e).", a[GROUP_LR_READBACK],
                b[GROUP_LR_READBACK], error);
}

static int logged_equal(const struct judgement *judgement) {
    const struct trace_run *a = arm_run(judgement, 0), *b = arm_run(judgement, 1);
    for (uint64_t i = 0; i < judgement->updates; i++)
        if (!same_real(a->records[i].groups[0][GROUP_LR_LOGGED],
                       b->records[i].groups[0][GROUP_LR_LOGGED]))
            return 0;
    return 1;
}

void judge_row_why(const struct judgement *judgement, struct row_pen *pen) {
    const struct trace_run *a = arm_run(judgement, 0), *b = arm_run(judgement, 1);
    const char *const *arms = judgement->arms;
    uint64_t i = 0;
    while (i < judgement->updates && same_real(a->records[i].groups[0][GROUP_LR_APPLIED],
                                               b->records[i].groups[0][GROUP_LR_APPLIED]))
        i++;
    if (i == judgement->updates) return;
    const double *x = a->records[i].groups[0], *y = b->records[i].groups[0];
    const char *rule[2] = {note(judgement, "baseline_applied"), note(judgement, "test_applied")};
    row_add(pen, ROW_WHY, "update %llu applied LR %.6g in %s, %.6g in %s",
            (unsigned long long)a->records[i].step, x[GROUP_LR_APPLIED], arms[0],
            y[GROUP_LR_APPLIED], arms[1]);
    if (strcmp(rule[0], rule[1]) != 0)
        row_put(pen, ":\nupdate k uses %s in %s, %s in %s.", rule[0], arms[0], rule[1], arms[1]);
    else
        row_put(pen, ".");
    put_readback(x, y, pen);
    if (logged_equal(judgement))
        row_put(pen,
                "\nBoth log the same LR at every update (%.6g at this one): a comparison of logs "
                "cannot see this.",
                x[GROUP_LR_LOGGED]);
}
