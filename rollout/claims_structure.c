/* SPDX-License-Identifier: Apache-2.0
 * Findings that are plain from the lists: other ids, other lengths, zeros, moved positions. One
 * sequence is enough for them, since none of them can come from rounding; but where a floor has the
 * same in at least half as large a share of its sequences, it is how these files are written. */
#include <stdio.h>

#include "base/real.h"
#include "rollout/claims_private.h"

typedef const struct rollout_slice *slice_of(const struct rollout_traits *traits, int which);

static double share_of(const struct rollout_measure *measure, const struct rollout_slice *slice) {
    const double all = (double)(measure->count[COUNT_SEQUENCES] + measure->count[COUNT_EMPTY]);
    return all > 0.0 ? (double)slice->sequences / all : 0.0;
}

/* Returns 1 where the file has the finding and no floor has it as well. */
static int stands_out(const struct rollout_judgement *j, slice_of *of, int which) {
    const double share = share_of(j->measure, of(&j->measure->shape, which));
    if (share == 0.0) return 0;
    for (size_t i = 0; i < j->floor_count; i++)
        if (share_of(j->floors[i], of(&j->floors[i]->shape, which)) >= 0.5 * share) return 0;
    return 1;
}

static void measure_claim(struct rollout_judgement *j, enum rollout_cause cause,
                          const struct rollout_slice *slice) {
    j->claim[cause].strength = rollout_strength(j, slice);
    j->claim[cause].share =
        (double)slice->tokens / (double)(j->measure->count[COUNT_TOKENS] + !slice->tokens);
}

static const char *side_name(int side) {
    return side == 0 ? "engine" : "trainer";
}

static const struct rollout_slice *ids(const struct rollout_traits *t, int which) {
    (void)which;
    return &t->ids;
}
static const struct rollout_slice *shorter(const struct rollout_traits *t, int which) {
    (void)which;
    return &t->shorter;
}
static const struct rollout_slice *front(const struct rollout_traits *t, int which) {
    (void)which;
    return &t->front;
}
static const struct rollout_slice *zero_end(const struct rollout_traits *t, int which) {
    return &t->zero_end[which];
}
static const struct rollout_slice *zero_front(const struct rollout_traits *t, int which) {
    return &t->zero_front[which];
}
static const struct rollout_slice *zero_inside(const struct rollout_traits *t, int which) {
    return &t->zero_inside[which];
}
static const struct rollout_slice *zero_all(const struct rollout_traits *t, int which) {
    return &t->zero_all[which];
}
static const struct rollout_slice *shifted(const struct rollout_traits *t, int which) {
    return &t->shifted[which];
}

/* ---- one claim each ---- */

static void claim_ids(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TOKENISATION];
    const char *const *names = j->measure->facts.names;
    if (stands_out(j, ids, 0)) {
        measure_claim(j, ROLLOUT_TOKENISATION, &t->ids);
        rollout_claim_say(
            claim, ROLLOUT_NAMED,
            "%ju sequences have other token ids on both sides from some token on, the "
            "first at line %u; what stands behind it is not compared",
            (uintmax_t)t->ids.sequences, t->first_line[LINE_IDS]);
    } else if (t->both_ids == 0 || (names[ROLLOUT_TRAINER_IDS] == NULL && t->ids.sequences == 0)) {
        rollout_claim_say(claim, ROLLOUT_OPEN,
                          "needs the token ids of both sides (trainer_token_ids, or two files)");
    }
}

static void claim_truncated(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TRUNCATED];
    if (stands_out(j, shorter, 0)) {
        measure_claim(j, ROLLOUT_TRUNCATED, &t->shorter);
        rollout_claim_say(claim, ROLLOUT_NAMED,
                          "in %ju sequences one side has fewer log-probs, the first at line %u; "
                          "their beginnings are compared",
                          (uintmax_t)t->shorter.sequences, t->first_line[LINE_SHORT]);
        return;
    }
    for (int side = 0; side < 2; side++)
        if (stands_out(j, zero_end, side)) {
            measure_claim(j, ROLLOUT_TRUNCATED, &t->zero_end[side]);
            rollout_claim_say(claim, ROLLOUT_NAMED,
                              "%ju sequences end in %ju tokens whose log-prob is exactly 0 for the "
                              "%s and %.3g on average for the other side, the first at line %u: "
                              "padding that the mask counts",
                              (uintmax_t)t->zero_end[side].sequences,
                              (uintmax_t)t->zero_end[side].tokens, side_name(side),
                              (side == 0 ? 1.0 : -1.0) * t->zero_end[side].d /
                                  (double)t->zero_end[side].tokens,
                              t->first_line[LINE_ZERO]);
        }
}

/* `where` stands between the number of tokens and that of sequences. */
static void say_zeros(struct rollout_judgement *j, const struct rollout_slice *slice, int side,
                      const char *where) {
    const double other =
        (side == 0 ? 1.0 : -1.0) * slice->d / (double)(slice->tokens + !slice->tokens);
    measure_claim(j, ROLLOUT_MASKED, slice);
    rollout_claim_say(&j->claim[ROLLOUT_MASKED], ROLLOUT_NAMED,
                      "%ju tokens%s of %ju sequences have a log-prob of exactly 0 for the %s and "
                      "%.3g on average for the other side, the first at line %u: that side never "
                      "computed them, and the mask counts them",
                      (uintmax_t)slice->tokens, where, (uintmax_t)slice->sequences, side_name(side),
                      other, j->measure->shape.first_line[LINE_ZERO]);
}

static void claim_masked(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    for (int side = 0; side < 2; side++) {
        if (stands_out(j, zero_inside, side))
            say_zeros(j, &t->zero_inside[side], side, " in the middle (tool output?)");
        if (stands_out(j, zero_all, side))
            say_zeros(j, &t->zero_all[side], side, ", which is every token,");
        if (stands_out(j, zero_front, side))
            say_zeros(j, &t->zero_front[side], side, " at the beginning (the prompt?)");
    }
    if (j->claim[ROLLOUT_MASKED].state == ROLLOUT_NAMED || !stands_out(j, front, 0)) return;
    measure_claim(j, ROLLOUT_MASKED, &t->front);
    rollout_claim_say(&j->claim[ROLLOUT_MASKED], ROLLOUT_NAMED,
                      "in %ju sequences one side has log-probs of more tokens in front, the first "
                      "at line %u: one list holds the prompt; the common ends are compared",
                      (uintmax_t)t->front.sequences, t->first_line[LINE_FRONT]);
}

static const char *where_to(int lag) {
    return lag < 0 ? "before" : "behind";
}

/* Mean |d| of shifted sequences after they are moved back, in units of the floors' mean over all
 * tokens, which these are as well. NaN without a floor. */
static double left_when_moved_back(const struct rollout_judgement *j) {
    const struct rollout_slice *left = &j->measure->shape.moved_back;
    double largest = real_nan_f64();
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_slice *rest = &j->floors[i]->shape.rest;
        const double mean = rest->absolute / (double)(rest->tokens + !rest->tokens);
        if (!(mean <= largest)) largest = mean;
    }
    return left->absolute / (double)(left->tokens + !left->tokens) / largest;
}

/* Sequences whose sides lie on a line once positions are moved: another temperature besides.
 * Returns 1 where these are more than `others`, which need no line. */
static int claim_line(struct rollout_judgement *j, uint64_t others) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_SHIFTED];
    int most = 0;
    for (int i = 1; i < MEASURE_LAGS; i++)
        if (t->in_line[i] > t->in_line[most]) most = i;
    const uint64_t count = t->in_line[most];
    if (count < ROLLOUT_LEAST_SEQUENCES || 2 * count <= t->lined || count <= others) return 0;
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_traits *floor = &j->floors[i]->shape;
        if (2 * floor->in_line[most] > floor->lined) return 0;
    }
    const int lag = most - MEASURE_LAGS / 2;
    claim->strength = rollout_strength(j, &t->rest);
    claim->share = (double)t->rest.tokens / (double)j->measure->count[COUNT_TOKENS];
    j->in_line = 1;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "in %ju of %ju sequences the trainer's log-prob of the token %d %s is on a "
                      "line over the engine's, but for %.2g %% of its variance, and that of the "
                      "same token is not: positions are moved by %d. The slope is %.3g, so "
                      "something else differs, too, as a temperature does; nothing else is looked "
                      "for before positions are moved back",
                      (uintmax_t)count, (uintmax_t)t->lined, lag < 0 ? -lag : lag, where_to(lag),
                      100.0 * t->line_left[most] / (double)count, lag,
                      t->line_slope[most] / (double)count);
    return 1;
}

static void claim_shifted(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_SHIFTED];
    int most = -1;
    for (int i = 0; i < MEASURE_LAGS; i++)
        if (stands_out(j, shifted, i) &&
            (most < 0 || t->shifted[i].sequences > t->shifted[most].sequences))
            most = i;
    if (claim_line(j, most < 0 ? 0 : t->shifted[most].sequences) || most < 0) return;
    measure_claim(j, ROLLOUT_SHIFTED, &t->shifted[most]);
    const int lag = most - MEASURE_LAGS / 2;
    char left[120] = "";
    if (left_when_moved_back(j) > 2.0)
        snprintf(left, sizeof left,
                 "; moved back, they are still %.3g floors apart, so something else differs, too",
                 left_when_moved_back(j));
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "in %ju of %ju sequences the trainer's log-prob of the token %d %s fits the "
                      "engine's better by a factor of more than 4, the first at line %u: positions "
                      "are moved by %d%s",
                      (uintmax_t)t->shifted[most].sequences,
                      (uintmax_t)j->measure->count[COUNT_SEQUENCES], lag < 0 ? -lag : lag,
                      where_to(lag), t->first_line[LINE_SHIFT], lag, left);
}

void rollout_claim_structure(struct rollout_judgement *j) {
    claim_ids(j);
    claim_truncated(j);
    claim_masked(j);
    claim_shifted(j);
}
