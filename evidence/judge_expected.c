/* SPDX-License-Identifier: Apache-2.0
 * Holds a judgement against the scenario's `expect` block: each key that is given must be met, and
 * each that is not is told with what came.
 *
 * An expectation is met by what the verdict says, and never by a figure that it withholds: shares
 * and their order by a verdict that shows shares, and nothing at all by an untestable one, unless
 * that is the verdict that was expected. */
#include "evidence/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "evidence/judge_parts.h"
#include "scenarios/expect_shares.h"

/* Whether the verdict is untestable although another one was expected, or none. What was seen of
 * such arms may be noise or a defect, so it meets nothing. */
static int is_undecided(const struct judging *judging) {
    return judging->out->verdict == VERDICT_UNTESTABLE &&
           strcmp(judging_text(judging, "verdict", "expect_verdict"),
                  verdict_name(VERDICT_UNTESTABLE)) != 0;
}

/* Notes one expectation and, where it does not hold, what came in its place. */
static enum status expect_that(struct judging *judging, const char *what, const char *wanted,
                               const char *came, int holds) {
    struct judgement *out = judging->out;
    char *text;
    if (out->expectation == EXPECT_NONE) out->expectation = EXPECT_MET;
    if (holds && !is_undecided(judging)) return STATUS_OK;
    out->expectation = EXPECT_MISSED;
    TRY(arena_format(judging->arena, &text, "%s%sexpected %s %s, got %s%s", out->missed,
                     out->missed[0] == '\0' ? "" : "; ", what, wanted,
                     came[0] == '\0' ? "none" : came,
                     holds ? ", but the verdict is untestable" : ""));
    out->missed = text;
    return STATUS_OK;
}

/* The same of a text; "" expects nothing. */
static enum status expect_text(struct judging *judging, const char *what, const char *wanted,
                               const char *came) {
    if (wanted[0] == '\0') return STATUS_OK;
    return expect_that(judging, what, wanted, came, strcmp(wanted, came) == 0);
}

/* Whether the verdict shows shares. Hybrids are also trained of arms that nothing tells apart, and
 * their figures are noise there, or parts of no distance. */
static int shows_shares(const struct judgement *judgement) {
    return judgement->verdict == VERDICT_OUTSIDE_FLOOR && judgement->attributed &&
           judgement->total > 0.0;
}

/* The share of a cause that acts by itself; NaN: none is shown, or it was not trained. */
static double share_of(const struct judgement *judgement, const char *cause) {
    for (uint32_t i = 0; i < judgement->cause_count && shows_shares(judgement); i++)
        if (strcmp(judgement->causes[i].name, cause) == 0) return judgement->causes[i].share.value;
    return (double)NAN;
}

/* Whether a share is as far from the expected one as the tolerance allows; both ends count as
 * inside. Three numbers written in decimal digits, their difference, and the share itself, a sum of
 * binary64, are rounded: without the slack 0.3 +- 0.1 would exclude 0.4. */
static int is_share_met(const struct expected_share *expected, double came) {
    return fabs(came - expected->share) <= expected->tolerance + EXPECT_SHARE_SLACK;
}

static enum status expect_shares(struct judging *judging) {
    struct expected_share shares[CAUSE_COUNT];
    uint32_t count;
    TRY(expect_shares_read(judging_text(judging, "verdict", "expect_shares"), shares, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *const cause = cause_name(shares[i].cause);
        const double came = share_of(judging->out, cause);
        char what[96], text[32] = "";
        snprintf(what, sizeof what, "share of %s", cause);
        if (!isnan(came))
            snprintf(text, sizeof text, shares[i].tolerance < 1e-5 ? "%.10g" : "%.6g", came);
        TRY(expect_that(judging, what, shares[i].text, text, is_share_met(&shares[i], came)));
    }
    return STATUS_OK;
}

/* Whether the cause at this place stands in front of the next one for certain; the last one has
 * none behind it. */
static int is_ordered(const struct judgement *judgement, uint32_t at) {
    return at + 1 >= judgement->cause_count ||
           judgement->causes[at].place[1] < judgement->causes[at + 1].place[0];
}

/* As many causes as were expected, the largest share first, and those behind the last of them that
 * may stand in its place. "and" joins two that have no order, as in the headline. */
static enum status expect_order(struct judging *judging) {
    const struct judgement *out = judging->out;
    const char *const wanted = judging_text(judging, "verdict", "expect_order");
    char *came;
    uint32_t left = 1;
    TRY(arena_format(judging->arena, &came, "%s", ""));
    for (const char *at = wanted; *at != '\0'; at++)
        left += *at == ',';
    for (uint32_t i = 0; i < out->cause_count && shows_shares(out); i++) {
        const int joins = i > 0 && !is_ordered(out, i - 1);
        if (i >= left && !joins) break;
        TRY(arena_format(judging->arena, &came, "%s%s%s", came,
                         i == 0  ? ""
                         : joins ? " and "
                                 : ", ",
                         out->causes[i].name));
    }
    return expect_text(judging, "order", wanted, came);
}

/* The update at which the replicas of the test arm part. */
static enum status expect_parting(struct judging *judging) {
    const uint64_t update = judging->out->parting[1].update;
    char came[32] = "";
    if (update != 0) snprintf(came, sizeof came, "%llu", (unsigned long long)update);
    return expect_text(judging, "replicas to part at update",
                       judging_text(judging, "verdict", "expect_replicas_part"), came);
}

enum status judge_expectation(struct judging *judging) {
    struct judgement *out = judging->out;
    double step;
    TRY(judging_number(judging, "verdict", "expect_first_step", &step));
    char wanted[32] = "", came[32] = "";
    if (step >= 1) snprintf(wanted, sizeof wanted, "%.0f", step);
    if (out->first_step >= 0) snprintf(came, sizeof came, "%lld", (long long)out->first_step);
    TRY(expect_text(judging, "verdict", judging_text(judging, "verdict", "expect_verdict"),
                    verdict_name(out->verdict)));
    TRY(expect_text(judging, "cause", judging_text(judging, "verdict", "expect_cause"),
                    judgement_cause_alone(out)));
    TRY(expect_shares(judging));
    TRY(expect_order(judging));
    TRY(expect_text(judging, "word", judging_text(judging, "verdict", "expect_word"),
                    attribution_words[out->word]));
    TRY(expect_text(judging, "first step", wanted, came));
    TRY(expect_parting(judging));
    TRY(expect_text(judging, "first phase", judging_text(judging, "verdict", "expect_first_phase"),
                    out->first_phase));
    return expect_text(judging, "first tensor",
                       judging_text(judging, "verdict", "expect_first_tensor"), out->first_tensor);
}
