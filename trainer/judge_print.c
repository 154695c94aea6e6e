/* SPDX-License-Identifier: Apache-2.0
 * A judgement in words. Prints what was recorded; computes nothing new. */
#include "trainer/judge_parts.h"

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

static void print_exact_floor(const struct judgement *judgement, FILE *out) {
    static const char *const words[] = {"not run", "differs", "bit-equal"};
    if (judgement->floor_equal[0] == 1 && judgement->floor_equal[1] == 1)
        fprintf(out, "exact: %s repeated in this process and in a second one, bit-equal\n",
                judgement->arms[0]);
    else
        fprintf(out, "exact expected: %s repeated in this process: %s; in a second one: %s\n",
                judgement->arms[0], words[judgement->floor_equal[0] + 1],
                words[judgement->floor_equal[1] + 1]);
}

static void print_devices(const struct judgement *judgement, FILE *out) {
    const char *const *device = judgement->device;
    if (device[0][0] == '\0' && device[1][0] == '\0') return;
    if (strcmp(device[0], device[1]) == 0) {
        fprintf(out, "  device   %s\n", device[0]);
        return;
    }
    for (int arm = 0; arm < 2; arm++)
        fprintf(out, "  %-8s %s: %s\n", arm == 0 ? "devices" : "", judgement->arms[arm],
                device[arm][0] == '\0' ? "cpu" : device[arm]);
}

static void print_products(const struct judgement *judgement, FILE *out) {
    const char *const *products = judgement->products;
    if (strcmp(products[0], products[1]) == 0) {
        if (products[0][0] != '\0') fprintf(out, "  library  both arms: %s\n", products[0]);
        return;
    }
    for (int arm = 0; arm < 2; arm++)
        if (products[arm][0] != '\0')
            fprintf(out, "  library  %s: %s\n", judgement->arms[arm], products[arm]);
}

static void print_floor(const struct judgement *judgement, FILE *out) {
    if (judgement->elsewhere[0] != '\0')
        fprintf(out, "  note     the floor file was measured elsewhere: %s\n",
                judgement->elsewhere);
    fprintf(out, "  floor    ");
    if (judgement->floor == FLOOR_EXACT) {
        print_exact_floor(judgement, out);
        return;
    }
    if (judgement->floor == FLOOR_NONE || isnan(judgement->p)) {
        fprintf(out, "not measured\n");
        return;
    }
    if (judgement->floor == FLOOR_FILE)
        fprintf(out,
                "from a file: rank among %ju A/A pairs measured before: d(A,B) %.4g, largest of "
                "theirs %.4g\n",
                (uintmax_t)judgement->floor_pairs, judgement->floor_distance,
                judgement->floor_largest);
    else
        fprintf(
            out,
            "%s of %u + %u runs, each with its own order of sums: d(A,B) %.4g, largest d inside an "
            "arm %.4g\n",
            judgement->floor == FLOOR_RANK ? "rank among the pairs" : "label permutation",
            judgement->floor_runs[0], judgement->floor_runs[1], judgement->floor_distance,
            judgement->floor_largest);
    fprintf(out, "           p = %.4g (least possible %.4g), alpha = %g, power at 3 sigma %.2f\n",
            judgement->p, judgement->smallest_p, judgement->alpha, judgement->power);
    if (isnan(judgement->loss_p)) return;
    fprintf(out, "           the last losses of these runs, tested alike: p = %.4g%s\n",
            judgement->loss_p,
            judgement->loss_p <= judgement->alpha && judgement->p > judgement->alpha
                ? ": the arms report different losses though their weights are alike"
                : "");
}

static void print_mask(const struct judgement *judgement, uint32_t mask, FILE *out) {
    int first = 1;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if ((mask >> i & 1u) == 0) continue;
        fprintf(out, "%s%s", first ? "" : " x ", judgement->causes[i].name);
        first = 0;
    }
}

static void print_place(const struct judged_cause *cause, FILE *out) {
    if (cause->place[0] == cause->place[1])
        fprintf(out, "place %u", cause->place[0]);
    else
        fprintf(out, "place %u to %u, not ordered", cause->place[0], cause->place[1]);
}

/* What the intervals are of, and what they are not. */
static void print_sample(const struct judgement *judgement, FILE *out) {
    const struct judged_sample *sample = &judgement->sample;
    fprintf(out,
            "           estimated from %u sampled orders of entry, %u of them reverses of the "
            "others: %u mixtures",
            sample->orders, sample->orders / 2, sample->mixtures);
    if (sample->shared > 0)
        fprintf(out, ", %u of them determined like another run and not trained again",
                sample->shared);
    fprintf(out,
            "\n           intervals: all together at alpha = %g, Student's t over %u pairs of "
            "orders (nominal); the error of\n           sampling orders only%s\n",
            sample->alpha, sample->orders / 2,
            judgement->floor == FLOOR_EXACT ? "" : ", the noise of runs is not in them");
}

static void print_sampled_shares(const struct judgement *judgement, FILE *out) {
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        fprintf(out, "           %-16s %8.3f %%   %8.3f to %8.3f   ", cause->name,
                100.0 * cause->share, 100.0 * cause->low, 100.0 * cause->high);
        if (isnan(cause->alone))
            fprintf(out, "alone not trained   ");
        else
            fprintf(out, "alone %-11.6g   ", cause->alone);
        print_place(cause, out);
        fprintf(out, "\n");
    }
    print_sample(judgement, out);
}

/* The largest ones; equal ones by mask. Nothing is left of what causes without effect have. */
#define INTERACTIONS_SHOWN 6

static void print_interactions(const struct judgement *judgement, FILE *out) {
    uint32_t shown = 0, left_out = 0, done = 0;
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++)
        left_out += (mask & (mask - 1)) != 0 && judgement->dividends[mask] != 0.0;
    while (shown < INTERACTIONS_SHOWN && left_out > 0) {
        uint32_t best = 0;
        for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++)
            if ((mask & (mask - 1)) != 0 && (done >> mask & 1u) == 0 &&
                fabs(judgement->dividends[mask]) >
                    (best == 0 ? 0.0 : fabs(judgement->dividends[best])))
                best = mask;
        fprintf(out, "           interaction %+.6g: ", judgement->dividends[best]);
        print_mask(judgement, best, out);
        fprintf(out, "\n");
        done |= 1u << best;
        shown++;
        left_out--;
    }
    if (left_out > 0) fprintf(out, "           %u smaller interactions: --json\n", left_out);
}

static void print_shares(const struct judgement *judgement, FILE *out) {
    if (!judgement->attributed || judgement->cause_count < 2) return;
    if (judgement->way.runs > 0) {
        judge_print_way(judgement, out);
        return;
    }
    fprintf(out, "  shares   of |a-b| = %.6g; what the parts add up to differs by %.1e\n",
            judgement->total, judgement->residual);
    if (judgement->sample.orders > 0) {
        if (judgement->total != 0.0) print_sampled_shares(judgement, out);
        return;
    }
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        fprintf(out, "           %-16s %8.3f %%   alone %.6g\n", judgement->causes[i].name,
                100.0 * judgement->causes[i].share, judgement->causes[i].alone);
    print_interactions(judgement, out);
}

/* Runs that differ from their own repeats cannot close bit for bit. */
static void print_noisy_closure(const struct judgement *judgement, FILE *out) {
    const struct judged_closure *noise = &judgement->closure_noise;
    const char *a = judgement->arms[0], *b = judgement->arms[1];
    fprintf(out, "  closure  %s: %s with every difference of %s ", closure_name(judgement->closure),
            a, b);
    if (noise->alpha == 0.0)
        fprintf(out, "does not equal it\n");
    else if (noise->runs == 0)
        fprintf(out,
                "is %.4g from it, repeats of %s up to %.4g from each other (by chance beyond that "
                "in %.2g at most)\n",
                noise->mean, a, noise->farthest, noise->alpha);
    else
        fprintf(out,
                "is %.4g from its runs on average, a repeat of it up to %.4g from the others (by "
                "chance the farthest of %u in %.2g)\n",
                noise->mean, noise->farthest, noise->runs, noise->alpha);
}

static void print_closure(const struct judgement *judgement, FILE *out) {
    if (!judgement->attributed || isnan(judgement->total) || judgement->total == 0.0) return;
    if (judgement->closure != CLOSURE_EXACT) {
        print_noisy_closure(judgement, out);
        return;
    }
    fprintf(out, "  closure  exact: %s with %s's ", judgement->arms[0], judgement->arms[1]);
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : ", ", judgement->causes[i].name);
    if (judgement->closure_from > 0)
        fprintf(out, ", forked before update %llu,", (unsigned long long)judgement->closure_from);
    else
        fprintf(out, ", trained from its own start,");
    fprintf(out, " equals %s, bit for bit, through update %llu\n", judgement->arms[1],
            (unsigned long long)judgement->updates);
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
    print_devices(judgement, out);
    print_products(judgement, out);
    print_floor(judgement, out);
    if (judgement->verdict == VERDICT_OUTSIDE_FLOOR) {
        print_shares(judgement, out);
        judge_print_measures(judgement, out);
        judge_print_growth(judgement, out);
        print_closure(judgement, out);
        judge_print_untested(judgement, out);
    }
    print_expectation(judgement, out);
    print_table(judgement, out);
}
