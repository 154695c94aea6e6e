/* SPDX-License-Identifier: Apache-2.0
 * Monte Carlo with addressed draws: trial t takes elements t * MOST_RUNS ... of one site under a
 * fixed seed. Every trial runs the very test whose power is asked for. */
#include "determinism/power.h"

#include "base/real.h"
#include "determinism/normal.h"
#include "determinism/stream.h"

#define MOST_RUNS 64
#define MOST_PAIRS (MOST_RUNS * (MOST_RUNS - 1) / 2)
/* 2000 trials give the power with an error of at most 2.2 points at 95 %. A label test of many runs
 * is slow, but it gets 40 trials at least; the printed interval shows their 15 points. */
#define MOST_TRIALS 2000
#define LEAST_TRIALS 40
#define WORK 2e8 /* additions that one call may spend: about a second, which a verdict can wait */
#define SEED UINT64_C(0x706F776572) /* "power" */

struct experiment {
    size_t runs;
    size_t baseline; /* number of runs that are not shifted; they come first */
    double shift;
    struct stream_site site;
};

static enum status open_experiment(size_t baseline, size_t test, double shift,
                                   struct experiment *out) {
    const struct stream_address address = {.stream = STREAM_DATA,
                                           .last_element = MOST_TRIALS * MOST_RUNS};
    out->runs = baseline + test;
    out->baseline = baseline;
    out->shift = shift;
    return stream_pack(&address, &out->site);
}

static void draw_distances(const struct experiment *experiment, uint64_t trial, double *distances) {
    uint32_t words[MOST_RUNS];
    double runs[MOST_RUNS];
    stream_words(SEED, experiment->site, trial * MOST_RUNS, experiment->runs, words);
    for (size_t i = 0; i < experiment->runs; i++) {
        const double shift = i < experiment->baseline ? 0.0 : experiment->shift;
        runs[i] = normal_from_word(words[i]) + shift;
        for (size_t j = 0; j < i; j++)
            distances[statistics_pair(experiment->runs, j, i)] = real_abs_f64(runs[i] - runs[j]);
    }
}

static enum status close_power(uint64_t seen, uint64_t trials, struct power *out) {
    out->trials = trials;
    out->power = (double)seen / (double)trials;
    return statistics_share_interval(seen, trials, 0.95, &out->interval);
}

static enum status check_alpha(double alpha) {
    if (alpha > 0.0 && alpha < 1.0) return STATUS_OK;
    FAIL(STATUS_INPUT, "alpha is %.17g, expected a number between 0 and 1", alpha);
}

enum status power_pair(size_t replicates, double alpha, double shift, struct power *out) {
    TRY(check_alpha(alpha));
    if (replicates > MOST_RUNS - 2) {
        FAIL(STATUS_INPUT, "power of the pair test: %zu replicates, expected at most %d",
             replicates, MOST_RUNS - 2);
    }
    struct experiment experiment;
    TRY(open_experiment(replicates + 1, 1, shift, &experiment));
    uint64_t seen = 0;
    for (uint64_t trial = 0; trial < MOST_TRIALS; trial++) {
        double distances[MOST_PAIRS];
        struct statistics_p test;
        draw_distances(&experiment, trial, distances);
        TRY(statistics_test_pair(distances, experiment.runs, 0, replicates + 1, &test));
        seen += test.p <= alpha;
    }
    return close_power(seen, MOST_TRIALS, out);
}

#define MOST_INDEPENDENT 100000

/* The distance of two fresh runs, of which the second is shifted. */
static double draw_pair(struct stream_site site, uint64_t first, double shift) {
    uint32_t words[2];
    stream_words(SEED, site, first, 2, words);
    return real_abs_f64(normal_from_word(words[0]) - normal_from_word(words[1]) - shift);
}

enum status power_distance(size_t pairs, double alpha, double shift, struct power *out) {
    TRY(check_alpha(alpha));
    if (pairs < 1 || pairs > MOST_INDEPENDENT)
        FAIL(STATUS_INPUT, "power of the test of one distance: %zu pairs, expected 1 to %d", pairs,
             MOST_INDEPENDENT);
    const uint64_t words = 2 * (uint64_t)pairs + 2;
    const struct stream_address address = {.stream = STREAM_DATA,
                                           .last_element = MOST_TRIALS * words};
    const double affordable = WORK / 4 / (double)words;
    const uint64_t trials = affordable < MOST_TRIALS ? (uint64_t)affordable : MOST_TRIALS;
    struct stream_site site;
    TRY(stream_pack(&address, &site));
    uint64_t seen = 0;
    for (uint64_t trial = 0; trial < trials; trial++) {
        const double d = draw_pair(site, trial * words, shift);
        uint64_t as_large = 1;
        for (size_t i = 1; i <= pairs; i++)
            as_large += draw_pair(site, trial * words + 2 * i, 0.0) >= d;
        seen += (double)as_large / (double)(pairs + 1) <= alpha;
    }
    return close_power(seen, trials, out);
}

/* As many trials as the work allows; each costs relabelings times pairs. The least p of a test is
 * one over the number of its different relabelings. */
static uint64_t count_trials(size_t baseline, size_t test) {
    const double relabelings = 1.0 / statistics_labels_least(baseline, test);
    const double trials = WORK / (relabelings * (double)statistics_pair_count(baseline + test));
    if (trials >= (double)MOST_TRIALS) return MOST_TRIALS;
    return trials <= (double)LEAST_TRIALS ? LEAST_TRIALS : (uint64_t)trials;
}

enum status power_labels(size_t baseline, size_t test, double alpha, double shift,
                         struct power *out) {
    TRY(check_alpha(alpha));
    if (baseline > STATISTICS_MAX_RUNS || test > STATISTICS_MAX_RUNS) {
        FAIL(STATUS_UNSUPPORTED,
             "power of the label test: %zu and %zu runs, expected at most %d "
             "in all",
             baseline, test, STATISTICS_MAX_RUNS);
    }
    struct experiment experiment;
    TRY(open_experiment(baseline, test, shift, &experiment));
    const uint64_t trials = count_trials(baseline, test);
    uint64_t seen = 0;
    for (uint64_t trial = 0; trial < trials; trial++) {
        double distances[MOST_PAIRS];
        struct statistics_p result;
        draw_distances(&experiment, trial, distances);
        TRY(statistics_test_labels(distances, experiment.runs, baseline, &result));
        seen += result.p <= alpha;
    }
    return close_power(seen, trials, out);
}
