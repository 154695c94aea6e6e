/* SPDX-License-Identifier: Apache-2.0
 * A judgement in words. Prints what was recorded; computes nothing new. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#define ROWS_SHOWN 10

static const struct trace_run *arm_run(const struct judgement *judgement, int arm) {
    return trace_run_of(judgement->image, judgement->arms[arm]);
}

static const char *note(const struct judgement *judgement, const char *path, const char *name) {
    const char *text = trace_attribute_of(judgement->image, path, name);
    return text == NULL ? "" : text;
}

static void print_shares_in_words(const struct judgement *judgement, FILE *out) {
    fprintf(out,
            judgement->coupled ? " The causes act together (see the interactions): " : " Cause: ");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        const char *before = i == 0 ? "" : judgement->coupled || i > 1 ? ", " : "; ";
        const char *gap = i == 0 && !judgement->coupled ? "," : "";
        fprintf(out, "%s%s%s %.4g %%%s", before, cause->name, gap, 100.0 * cause->share,
                i == 0 ? " of the parameter distance" : "");
    }
    fprintf(out, judgement->cause_count == 1 ? "; nothing else differs.\n" : ".\n");
}

/* Sampled: as many shares as fit a sentence; the table below has them all. */
#define SAMPLED_IN_WORDS 3

static void print_sampled_in_words(const struct judgement *judgement, FILE *out) {
    const uint32_t last = judgement->causes[0].place[1];
    const char *whole =
        judgement->way.runs > 0 ? " of the way between the arms" : " of the parameter distance";
    if (judgement->coupled)
        fprintf(out, " The causes act together: ");
    else if (last > 1)
        fprintf(out, " Which of %u causes is the largest is not ordered: ", last);
    else
        fprintf(out, " Cause: ");
    for (uint32_t i = 0; i < judgement->cause_count && i < SAMPLED_IN_WORDS; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        fprintf(out, "%s%s %.3g %% (",
                i == 0   ? ""
                : i == 1 ? "; "
                         : ", ",
                cause->name, 100.0 * cause->share);
        if (judgement->way.runs > 0)
            fprintf(out, "+- %.2g)%s", 50.0 * (cause->high - cause->low), i == 0 ? whole : "");
        else
            fprintf(out, "%.3g to %.3g)%s", 100.0 * cause->low, 100.0 * cause->high,
                    i == 0 ? whole : "");
    }
    if (judgement->cause_count > SAMPLED_IN_WORDS)
        fprintf(out, ", %u more", judgement->cause_count - SAMPLED_IN_WORDS);
    if (judgement->sample.orders > 0)
        fprintf(out, "; estimated from %u sampled orders.\n", judgement->sample.orders);
    else
        fprintf(out, "; estimated from %u runs of each mixture.\n", judgement->way.runs);
}

static void print_causes(const struct judgement *judgement, FILE *out) {
    if (judgement->cause_count == 0) {
        fprintf(out, " The configurations are equal: no cause can be named.\n");
        return;
    }
    if (judgement->attributed && judgement->total != 0.0) {
        if (judgement->sample.orders > 0 || judgement->way.runs > 0)
            print_sampled_in_words(judgement, out);
        else
            print_shares_in_words(judgement, out);
        return;
    }
    fprintf(out, judgement->cause_count == 1 ? " Cause: " : " What differs: ");
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : ", ", judgement->causes[i].name);
    if (judgement->attributed)
        fprintf(out, "; the weights are equal at the end, so there is no distance to share out.\n");
    else
        fprintf(out, "; no distance between the arms could be measured, so there are no shares.\n");
}

static void print_head(const struct judgement *judgement, FILE *out) {
    static const char *const titles[] = {"", "IDENTICAL", "INSIDE THE FLOOR", "OUTSIDE THE FLOOR",
                                         "UNTESTABLE"};
    fprintf(out, "%s: %s.", judgement->name, titles[judgement->verdict]);
    switch (judgement->verdict) {
    case VERDICT_IDENTICAL:
        fprintf(out, " Parameters, slots, losses and applied LR of all %llu updates are equal.\n",
                (unsigned long long)judgement->updates);
        break;
    case VERDICT_INSIDE_FLOOR:
        fprintf(out,
                " No difference beyond that of repeats was detected at alpha = %g (power %.2f at 3 "
                "sigma); no cause is named.\n",
                judgement->alpha, judgement->power);
        break;
    case VERDICT_OUTSIDE_FLOOR:
        print_causes(judgement, out);
        break;
    default:
        fprintf(out, " %s.\n", judgement->reason);
    }
}

static int same_real(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void print_readback(const double *a, const double *b, FILE *out) {
    double error = a[GROUP_LR_ERROR] > b[GROUP_LR_ERROR] ? a[GROUP_LR_ERROR] : b[GROUP_LR_ERROR];
    double gap = fabs(a[GROUP_LR_APPLIED] - b[GROUP_LR_APPLIED]);
    if (isnan(a[GROUP_LR_READBACK]) || isnan(b[GROUP_LR_READBACK])) return;
    if (!(error <= gap / 2))
        fprintf(out,
                "           Reading the LR back from the weights is untestable here: its error, "
                "%.1e, exceeds half the gap.\n",
                error);
    else
        fprintf(out, "           Read back from the weights: %.6g and %.6g (+- %.1e).\n",
                a[GROUP_LR_READBACK], b[GROUP_LR_READBACK], error);
}

static int logged_equal(const struct judgement *judgement) {
    const struct trace_run *a = arm_run(judgement, 0), *b = arm_run(judgement, 1);
    for (uint64_t i = 0; i < judgement->updates; i++)
        if (!same_real(a->records[i].groups[0][GROUP_LR_LOGGED],
                       b->records[i].groups[0][GROUP_LR_LOGGED]))
            return 0;
    return 1;
}

/* First update whose applied LR differs; 0 when none does. */
static int print_lr(const struct judgement *judgement, FILE *out) {
    const struct trace_run *a = arm_run(judgement, 0), *b = arm_run(judgement, 1);
    for (uint64_t i = 0; i < judgement->updates; i++) {
        const double *x = a->records[i].groups[0], *y = b->records[i].groups[0];
        if (same_real(x[GROUP_LR_APPLIED], y[GROUP_LR_APPLIED])) continue;
        fprintf(out, "  why      update %llu applied LR %.6g in %s, %.6g in %s",
                (unsigned long long)a->records[i].step, x[GROUP_LR_APPLIED], judgement->arms[0],
                y[GROUP_LR_APPLIED], judgement->arms[1]);
        const char *rule[2] = {note(judgement, "verdict", "baseline_applied"),
                               note(judgement, "verdict", "test_applied")};
        if (strcmp(rule[0], rule[1]) != 0)
            fprintf(out, ":\n           update k uses %s in %s, %s in %s.\n", rule[0],
                    judgement->arms[0], rule[1], judgement->arms[1]);
        else
            fprintf(out, ".\n");
        print_readback(x, y, out);
        if (logged_equal(judgement))
            fprintf(out,
                    "           Both log the same LR at every update (%.6g at this one): a "
                    "comparison of logs cannot see this.\n",
                    x[GROUP_LR_LOGGED]);
        return 1;
    }
    return 0;
}

static void print_keys(const char *label, const char *keys, FILE *out) {
    while (*keys != '\0') {
        size_t length = strcspn(keys, "\n");
        fprintf(out, "  %-8s %.*s\n", label, (int)length, keys);
        keys += length + (keys[length] == '\n');
        label = "";
    }
}

static void print_differences(const struct judgement *judgement, FILE *out) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        print_keys(i == 0 ? "differs" : "", judgement->causes[i].keys, out);
    print_keys("note", note(judgement, "attribution", "notes"), out);
    print_keys("note", note(judgement, "", "inert"), out);
}

static void print_notes(const struct judgement *judgement, FILE *out) {
    for (int arm = 0; arm < 2; arm++)
        if (judgement->diverged[arm] != 0)
            fprintf(out, "  note     the loss of %s is not finite from update %llu on\n",
                    judgement->arms[arm], (unsigned long long)judgement->diverged[arm]);
    for (int arm = 0; arm < 2; arm++)
        judge_print_arm(judgement, arm, out);
    if (judgement->verdict == VERDICT_IDENTICAL && judgement->logged_step != 0)
        fprintf(out,
                "  note     the logged LRs differ from update %llu on, the applied ones never: a "
                "comparison of logs would raise a false alarm\n",
                (unsigned long long)judgement->logged_step);
}

static void print_first(const struct judgement *judgement, FILE *out) {
    if (judgement->first_step < 0) return;
    fprintf(out, "  first    update %lld", (long long)judgement->first_step);
    if (judgement->first_phase[0] != '\0')
        fprintf(out, ", phase %s", judgement->first_phase);
    else
        fprintf(out, ", in a phase that only one arm runs or that was not recorded");
    if (judgement->first_tensor[0] != '\0') fprintf(out, ", %s", judgement->first_tensor);
    fprintf(out, "\n");
}

static void print_rng(const struct judgement *judgement, FILE *out) {
    if (judgement->rng_words[0] != '\0') fprintf(out, "  rng      %s\n", judgement->rng_words);
}

/* Six decimals where they fit their column. */
static void print_loss(double loss, FILE *out) {
    fprintf(out, fabs(loss) < 100.0 ? "%-9.6f " : "%-9.4g ", loss);
}

static void print_row(const struct judgement *judgement, uint64_t i, FILE *out) {
    const struct record *a = &arm_run(judgement, 0)->records[i];
    const struct record *b = &arm_run(judgement, 1)->records[i];
    double share = (double)NAN;
    if (judgement->image->pair_count > 0 && i < judgement->image->pairs[0].updates)
        share = judgement->image->pairs[0].records[i].reals[PAIR_DISTANCE_SHARE];
    fprintf(out, "  %6llu   %-10.4g %-10.4g ", (unsigned long long)a->step,
            a->groups[0][GROUP_LR_APPLIED], b->groups[0][GROUP_LR_APPLIED]);
    print_loss(a->reals[REAL_LOSS], out);
    print_loss(b->reals[REAL_LOSS], out);
    fprintf(out, "%-9.4g %-9.4g ", a->reals[REAL_GRAD_NORM], b->reals[REAL_GRAD_NORM]);
    if (isnan(share))
        fprintf(out, "-\n");
    else
        fprintf(out, "%.3g\n", share);
}

static void print_table(const struct judgement *judgement, FILE *out) {
    if (judgement->updates == 0) return;
    fprintf(out, "  update   %-21s %-19s %-19s %s\n", "LR applied", "loss", "grad norm",
            "|a-b|/|a-a0|");
    for (uint64_t i = 0; i < judgement->updates; i++) {
        if (judgement->updates > ROWS_SHOWN && i == ROWS_SHOWN - 3) {
            fprintf(out, "     ...\n");
            i = judgement->updates - 3;
        }
        print_row(judgement, i, out);
    }
}

static void print_expectation(const struct judgement *judgement, FILE *out) {
    if (judgement->expectation == EXPECT_NONE) return;
    fprintf(out, "  expected %s", expectation_name(judgement->expectation));
    if (judgement->expectation == EXPECT_MISSED) fprintf(out, ": %s", judgement->missed);
    fprintf(out, "\n");
}

void judgement_print(const struct judgement *judgement, FILE *out) {
    print_head(judgement, out);
    if (judgement->verdict == VERDICT_OUTSIDE_FLOOR) print_lr(judgement, out);
    print_differences(judgement, out);
    print_notes(judgement, out);
    print_first(judgement, out);
    print_rng(judgement, out);
    judge_print_devices(judgement, out);
    judge_print_products(judgement, out);
    judge_print_floor(judgement, out);
    if (judgement->verdict == VERDICT_OUTSIDE_FLOOR) {
        judge_print_shares(judgement, out);
        judge_print_measures(judgement, out);
        judge_print_growth(judgement, out);
        judge_print_closure(judgement, out);
        judge_print_untested(judgement, out);
    }
    print_expectation(judgement, out);
    print_table(judgement, out);
}
