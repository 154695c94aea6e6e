/* SPDX-License-Identifier: Apache-2.0
 * What mixtures of causes do where the arms lie inside the floor of noisy runs.
 *
 * Causes that cancel leave arms that nothing tells apart. In exact runs |a-b| = 0 says so; here the
 * arms' distance D is only known to be at most `bound`. So each mixture S (a set of causes, neither
 * none nor all) is held against the baseline as the arms were: its runs against as many of the
 * baseline, labels permuted, at alpha over the number of mixtures, so that one of them is called
 * different by chance in no more than alpha of such verdicts (Bonferroni). How far it goes, |d_S|,
 * is estimated with the noise of runs taken out (determinism/projection.h).
 *
 * A word about the causes holds only where it does for every D from 0 to the bound. Shares do not:
 * the way from one arm to the other has no direction that is known. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "determinism/projection.h"
#include "determinism/statistics.h"

#define CONFIDENCE 0.95

static enum status unasked(struct judging *judging, const char *reason) {
    judging->out->mixtures.unasked = reason;
    return STATUS_OK;
}

/* Why the trace holds no repeats of mixtures. */
static const char *without_repeats(const struct judgement *out) {
    if (out->floor == FLOOR_FILE)
        return "a floor file stands for repeats, so no mixture was repeated; without it they are";
    if (out->floor != FLOOR_PERMUTATION)
        return "mixtures are repeated where both arms are (floor.design: both)";
    if (out->cause_count > JUDGE_FACTORS_MAX) return "of more than 5 causes no mixture is repeated";
    return "no mixture was repeated (attribution.replicates: 5 or more)";
}

/* The p of mixture `mask` against the baseline. */
static enum status test_mixture(const struct judging *judging, const double *gram, uint32_t runs,
                                uint32_t mask, double *out) {
    const size_t n = runs, all = (size_t)runs << judging->out->cause_count;
    double packed[STATISTICS_MAX_RUNS * (STATISTICS_MAX_RUNS - 1) / 2];
    struct statistics_p p;
    for (size_t i = 0; i < 2 * n; i++)
        for (size_t j = i + 1; j < 2 * n; j++) {
            const size_t a = i < n ? i : mask * n + i - n, b = j < n ? j : mask * n + j - n;
            const double square =
                (gram[a * all + a] - gram[a * all + b]) - (gram[a * all + b] - gram[b * all + b]);
            packed[statistics_pair(2 * n, i, j)] = square > 0.0 ? real_sqrt_f64(square) : 0.0;
        }
    TRY(statistics_test_labels(packed, 2 * n, n, &p));
    *out = p.p;
    return STATUS_OK;
}

/* Whether so few runs can tell any mixture apart. Where not, says how many could. */
static enum status check_runs(struct judging *judging, uint32_t runs) {
    struct judged_mixtures *const to = &judging->out->mixtures;
    size_t needed;
    char *text;
    if (statistics_labels_least(runs, runs) <= to->level) return STATUS_OK;
    TRY(statistics_labels_needed(to->level, &needed));
    TRY(arena_format(judging->arena, &text,
                     "%u runs of each of %u mixtures cannot tell one from the baseline at alpha = "
                     "%g for all together (attribution.replicates and floor.replicates of at "
                     "least %zu would)",
                     runs, to->count, judging->out->alpha, needed));
    return unasked(judging, text);
}

static enum attribution_word word_of(const struct judgement *judgement) {
    const struct judged_mixtures *const of = &judgement->mixtures;
    struct attribution figures = {
        .causes = judgement->cause_count, .distance = of->bound, .largest_low = of->farthest_low};
    if (of->beyond == 0) return WORD_NONE;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (of->without[i].is_beyond) figures.left[i] = of->without[i].size;
    return attribution_word_within(&figures);
}

static enum status test_mixtures(struct judging *judging, const double *gram, uint32_t runs) {
    struct judged_mixtures *const to = &judging->out->mixtures;
    const uint32_t causes = judging->out->cause_count, full = (1u << causes) - 1;
    struct projection_sizes sizes;
    TRY(projection_sizes(causes, runs, gram, CONFIDENCE, judging->arena, &sizes));
    to->bound = sizes.high[full];
    for (uint32_t mask = 1; mask < full; mask++) {
        struct judged_mixture one = {.size = {sizes.size[mask], sizes.low[mask], sizes.high[mask]}};
        TRY(test_mixture(judging, gram, runs, mask, &one.p));
        one.is_beyond = one.p <= to->level;
        to->beyond += (uint32_t)one.is_beyond;
        if (one.is_beyond && one.size.low > to->farthest_low) {
            to->farthest_low = one.size.low;
            to->farthest = mask;
        }
        for (uint32_t i = 0; i < causes; i++) {
            if (mask == 1u << i) to->alone[i] = one;
            if (mask == (full & ~(1u << i))) to->without[i] = one;
        }
    }
    to->runs = runs;
    to->confidence = CONFIDENCE;
    judging->out->word = word_of(judging->out);
    return STATUS_OK;
}

enum status judge_mixtures(struct judging *judging) {
    struct judgement *const out = judging->out;
    const struct trace_array *gram;
    uint32_t runs = 0;
    if (out->verdict != VERDICT_INSIDE_FLOOR || out->cause_count < 2) return STATUS_OK;
    if (out->cause_count > JUDGE_FACTORS_MAX ||
        trace_array_of(judging->image, "attribution/gram") == NULL)
        return unasked(judging, without_repeats(out));
    TRY(judging_count(judging, "attribution", "replicates", STATISTICS_MAX_RUNS / 2, &runs));
    const uint64_t size = (uint64_t)runs << out->cause_count;
    TRY(judging_array(judging, "attribution/gram", size, size, &gram));
    out->mixtures.count = (1u << out->cause_count) - 2;
    out->mixtures.level = out->alpha / out->mixtures.count;
    TRY(check_runs(judging, runs));
    if (out->mixtures.unasked[0] != '\0') return STATUS_OK;
    const enum status status = test_mixtures(judging, gram->values, runs);
    if (status != STATUS_UNTESTABLE) return status;
    char *text;
    TRY(arena_format(judging->arena, &text, "%s", status_text()));
    return unasked(judging, text);
}
