/* SPDX-License-Identifier: Apache-2.0
 * The row that says what another step count behind Adam's bias corrections did to an update, and
 * shows it in the weights. It stands where the counts in the trace explain the sizes of two updates
 * that began alike, and nowhere else. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "scenarios/scenario.h"

/* The sizes of two updates point at a count if they miss it by at most this part of the way to the
 * next count. Eps makes updates of small gradients smaller, by 1e-3 of all in the catalogue's. */
#define MISS_OF_WAY 0.1
/* What the cosine of the two updates may lack of 1: eps and the rounding of weights turn them by
 * 1e-4 in f32. */
#define COSINE_LACK 1e-3

struct count_case {
    const struct trace_run *run[2];
    double beta[2];
    uint64_t index; /* of the first update that moved the weights apart */
};

/* Reads beta1 and beta2 if both arms step by Adam with the same ones. */
static int read_betas(struct count_case *c) {
    static const char *const keys[] = {"optimizer.name", "optimizer.beta1", "optimizer.beta2"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        size_t length[2] = {0, 0};
        const char *const a = config_text_value(c->run[0]->plan.configuration, keys[i], &length[0]);
        const char *const b = config_text_value(c->run[1]->plan.configuration, keys[i], &length[1]);
        if (a == NULL || b == NULL || length[0] != length[1] || memcmp(a, b, length[0]) != 0)
            return 0;
        if (i == 0 && strncmp(a, "adam", 4) != 0) return 0;
        char value[32];
        snprintf(value, sizeof value, "%.*s", (int)length[0], a);
        if (i > 0 && number_parse_real(value, 0, &c->beta[i - 1]) != STATUS_OK) return 0;
    }
    return 1;
}

/* The count that the update's bias corrections used: that of the optimizer's state, or 1 where it
 * never counts. */
static double count_of(const struct count_case *c, int arm) {
    const int64_t t = trace_row(c->run[arm], c->index)->integers[INTEGER_OPTIMIZER_T];
    return t < 1 ? 1.0 : (double)t;
}

/* What the corrections of a count make of a step from given moments, eps aside:
 * sqrt(1 - beta2^t) / (1 - beta1^t). */
static double size_of_count(const struct count_case *c, double t) {
    double one_less[2];
    for (int i = 0; i < 2; i++)
        one_less[i] = c->beta[i] > 0.0 ? 1.0 - real_exp_f64(t * real_log_f64(c->beta[i])) : 1.0;
    return real_sqrt_f64(one_less[1]) / one_less[0];
}

/* Finds the first update that parted the weights, if counts parted no later and no LR did. */
static int find_update(const struct judgement *judgement, struct count_case *c) {
    const struct trace_image *const image = judgement->image;
    if (image->pair_count == 0) return 0;
    const struct trace_pair *const pair = &image->pairs[0];
    for (c->index = 0; c->index < judgement->updates && c->index < pair->updates; c->index++) {
        for (uint32_t g = 0; g < judge_groups(c->run[0], c->run[1]); g++)
            if (!(trace_row(c->run[0], c->index)->groups[g][GROUP_LR_APPLIED] ==
                  trace_row(c->run[1], c->index)->groups[g][GROUP_LR_APPLIED]))
                return 0;
        if (trace_pair_row(pair, c->index)->reals[PAIR_DISTANCE] > 0.0)
            return count_of(c, 0) != count_of(c, 1);
    }
    return 0;
}

/* The size of test's update with count `t` over that of baseline's with its own. */
static double ratio_of_count(const struct count_case *c, double t) {
    return size_of_count(c, t) / size_of_count(c, count_of(c, 0));
}

/* Whether a ratio that was measured is that of test's count and of no count beside it. */
static int points_at_count(const struct count_case *c, double ratio) {
    const double t = count_of(c, 1), expected = ratio_of_count(c, t);
    const double up = fabs(ratio_of_count(c, t + 1.0) - expected);
    const double down = t > 1.0 ? fabs(ratio_of_count(c, t - 1.0) - expected) : up;
    return fabs(ratio - expected) <= MISS_OF_WAY * (down < up ? down : up);
}

/* Says the counts of both arms, and whether they stay one apart. */
static void put_counts(const struct judgement *judgement, const struct count_case *c,
                       struct row_pen *pen) {
    int64_t ahead = 1;
    for (uint64_t i = 0; i < judgement->updates && ahead == 1; i++)
        ahead = trace_row(c->run[1], i)->integers[INTEGER_OPTIMIZER_T] -
                trace_row(c->run[0], i)->integers[INTEGER_OPTIMIZER_T];
    for (int arm = 0; arm < 2; arm++) {
        const int64_t first = trace_row(c->run[arm], 0)->integers[INTEGER_OPTIMIZER_T];
        const uint64_t end = judgement->updates - 1;
        row_put(pen, "%s %lld to %lld in %s", arm == 0 ? "" : ",", (long long)first,
                (long long)trace_row(c->run[arm], end)->integers[INTEGER_OPTIMIZER_T],
                judgement->arms[arm]);
    }
    row_put(pen, ahead == 1 ? ": one ahead." : ".");
}

void judge_row_count(const struct judgement *judgement, struct row_pen *pen) {
    struct count_case c = {.run = {trace_run_of(judgement->image, judgement->arms[0]),
                                   trace_run_of(judgement->image, judgement->arms[1])}};
    if (!read_betas(&c) || !find_update(judgement, &c)) return;
    const double *const pair = trace_pair_row(&judgement->image->pairs[0], c.index)->reals;
    if (!points_at_count(&c, pair[PAIR_UPDATE_RATIO]) ||
        !(pair[PAIR_UPDATE_COSINE] >= 1.0 - COSINE_LACK))
        return;
    const double t[2] = {count_of(&c, 0), count_of(&c, 1)};
    row_add(pen, ROW_WHY,
            "update %llu moved the weights of %s %.4g times as far as those of %s, in the same "
            "direction:\nAdam corrected its moments with count %g in place of %g, which makes a "
            "step %.4g of its size\nwith beta1 %g and beta2 %g, eps aside. The optimizer counts",
            (unsigned long long)trace_row(c.run[0], c.index)->step, judgement->arms[1],
            pair[PAIR_UPDATE_RATIO], judgement->arms[0], t[1], t[0], ratio_of_count(&c, t[1]),
            c.beta[0], c.beta[1]);
    put_counts(judgement, &c, pen);
}
