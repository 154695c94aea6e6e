/* SPDX-License-Identifier: Apache-2.0
 * The parts of the distance by cause, what causes make together, and whether they are all of the
 * difference, in words. Computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>

static void put_mask(const struct judgement *judgement, uint32_t mask, struct row_pen *pen) {
    int first = 1;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if ((mask >> i & 1u) == 0) continue;
        row_put(pen, "%s%s", first ? "" : " x ", judgement->causes[i].name);
        first = 0;
    }
}

static void put_place(const struct judged_cause *cause, struct row_pen *pen) {
    if (cause->place[0] == cause->place[1])
        row_put(pen, "place %u", cause->place[0]);
    else
        row_put(pen, "place %u to %u, not ordered", cause->place[0], cause->place[1]);
}

/* Says which error the intervals of sampled shares hold, and which they do not. */
static void put_sample(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_sample *sample = &judgement->sample;
    row_put(pen,
            "\nestimated from %u sampled orders of entry, %u of them reverses of the "
            "others: %u hybrids",
            sample->orders, sample->orders / 2, sample->hybrids);
    if (sample->shared > 0)
        row_put(pen, ", %u of them determined like another run and not trained again",
                sample->shared);
    row_put(pen,
            "\nintervals: all together at alpha = %g, Student's t over %u pairs of "
            "orders (nominal); the error of\nsampling orders%s",
            sample->alpha, sample->orders / 2,
            judgement->floor == FLOOR_EXACT ? "" : " and the noise of runs");
}

/* The rest of up to 26 interactions is in the JSON. */
#define INTERACTIONS_SHOWN 6

/* The largest interactions, in order of falling size, equal ones by mask. Those that are exactly 0,
 * which causes without an effect have, are no interactions. */
static void put_interactions(const struct judgement *judgement, struct row_pen *pen) {
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
        row_put(pen, "\ninteraction %+.4g %%: ", 100.0 * judgement->dividends[best]);
        put_mask(judgement, best, pen);
        done |= 1u << best;
        shown++;
        left_out--;
    }
    if (left_out > 0) row_put(pen, "\n%u smaller interactions: --json", left_out);
}

/* A figure in a column of 9 characters; "-" where it was not trained. */
static void put_column(double value, struct row_pen *pen) {
    if (isnan(value))
        row_put(pen, " %9s  ", "-");
    else
        row_put(pen, " %9.3f %%", 100.0 * value);
}

/* One line for each cause: its share, the gap that its repair leaves, and the gap that it opens
 * alone; and under these, where they are estimates, their intervals. */
static void put_table(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, "\n%-16s %11s %11s %11s", "", "share", "left", "alone");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        const struct attributed *const figures[] = {&cause->share, &cause->left, &cause->alone};
        row_put(pen, "\n%-16s", cause->name);
        for (size_t f = 0; f < COUNT_OF(figures); f++)
            put_column(figures[f]->value, pen);
        if (judgement_lacks_spread(judgement, i)) {
            row_put(pen, "   no spread seen in %u orders; ", judgement->sample.orders);
            put_place(cause, pen);
            continue;
        }
        if (!(cause->share.high > cause->share.low)) continue;
        row_put(pen, "   +- %.2g, +- %.2g, +- %.2g; ",
                50.0 * (cause->share.high - cause->share.low),
                50.0 * (cause->left.high - cause->left.low),
                50.0 * (cause->alone.high - cause->alone.low));
        put_place(cause, pen);
    }
}

/* What the intervals rest on. */
static void put_intervals(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->projection.runs > 0)
        row_put(pen,
                "\n%u runs of each hybrid, each with its own order of sums; intervals at %g %%: "
                "jackknife over runs, Student's t",
                judgement->projection.runs, 100.0 * judgement->projection.confidence);
    else if (judgement->floor != FLOOR_EXACT && judgement->cause_count > 1)
        row_put(pen,
                "\none run of each hybrid; intervals hold what repeats differ by, %.3g at most, "
                "over |a-b|",
                judgement->floor_largest);
    if (judgement->sample.orders > 0) put_sample(judgement, pen);
}

void judge_row_shares(const struct judgement *judgement, struct row_pen *pen) {
    if (!judgement->attributed || judgement->cause_count < 2 || !(judgement->total > 0.0)) return;
    row_add(pen, ROW_SHARES, "of %s from %s to %s, |a-b|%s = %.6g%s",
            judgement->by_distance ? "the distance" : "the way", judgement->arms[0],
            judgement->arms[1], judgement_points(judgement), judgement->total,
            judgement->projection.runs > 0 ? " with the noise of runs taken out" : "");
    if (judgement->by_distance)
        row_put(pen, "; the trace holds no projections:\nshares are of the distance, which has "
                     "no sign, so causes that oppose each other do not show");
    put_table(judgement, pen);
    put_intervals(judgement, pen);
    if (!judgement_is_estimated(judgement)) put_interactions(judgement, pen);
}

/* Where runs differ from their own repeats, closure bit for bit cannot be asked for. */
static void put_noisy_closure(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_closure *noise = &judgement->closure_noise;
    const char *a = judgement->arms[0], *b = judgement->arms[1];
    row_add(pen, ROW_CLOSURE, "%s: %s with every difference of %s ",
            closure_name(judgement->closure), a, b);
    if (noise->alpha == 0.0)
        row_put(pen, "does not equal it");
    else if (noise->runs == 0)
        row_put(pen,
                "is %.4g from it, repeats of %s up to %.4g from each other (by chance beyond that "
                "in %.2g at most)",
                noise->mean, a, noise->farthest, noise->alpha);
    else
        row_put(pen,
                "is %.4g from its runs on average, a repeat of it up to %.4g from the others (by "
                "chance the farthest of %u in %.2g)",
                noise->mean, noise->farthest, noise->runs, noise->alpha);
}

void judge_row_closure(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->closure == CLOSURE_ABSENT) return;
    if (judgement->closure != CLOSURE_EXACT) {
        put_noisy_closure(judgement, pen);
        return;
    }
    row_add(pen, ROW_CLOSURE, "exact: %s with %s's ", judgement->arms[0], judgement->arms[1]);
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        row_put(pen, "%s%s", i == 0 ? "" : ", ", judgement->causes[i].name);
    if (judgement->closure_from > 0)
        row_put(pen, ", forked before update %llu,", (unsigned long long)judgement->closure_from);
    else
        row_put(pen, ", trained from its own start,");
    row_put(pen, " equals %s, bit for bit, through update %llu", judgement->arms[1],
            (unsigned long long)judgement->updates);
}
