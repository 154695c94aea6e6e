/* SPDX-License-Identifier: Apache-2.0
 * The parts of the distance by cause, what they leave over, and whether they close. Prints what
 * was judged; computes nothing new. */
#include "evidence/judge_parts.h"

#include <math.h>

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

void judge_print_shares(const struct judgement *judgement, FILE *out) {
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

void judge_print_closure(const struct judgement *judgement, FILE *out) {
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
