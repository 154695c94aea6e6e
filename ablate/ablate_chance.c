/* SPDX-License-Identifier: Apache-2.0
 * What so few equal runs leave to chance. Repeats that are equal bit for bit make a floor exact,
 * and a difference over it is one; but commands that take one of two results as a coin falls leave
 * equal repeats, too, and now and then in both arms. So a verdict outside of an exact floor needs
 * as many runs as make that rarer than alpha, whatever the coin, and where a hybrid has shown that
 * commands do not repeat it needs the relabelings of the arms, as noise does. */
#include "ablate/ablate_chance.h"

#include "ablate/ablate_private.h"

#define COINS 1000 /* of which the worst is taken; the maximum is flat, so these are enough */
#define MISSED 0.05

static double power(double base, uint32_t exponent) {
    double product = 1.0;
    for (uint32_t i = 0; i < exponent; i++)
        product *= base;
    return product;
}

/* With q for the one result and 1 - q for the other: all runs of the one command are this and all
 * of the other that, or the reverse, and the two runs of each pair are alike. */
double ablate_chance(uint32_t baseline, uint32_t test, uint32_t pairs) {
    double worst = 0.0;
    for (int i = 1; 2 * i <= COINS; i++) {
        const double q = (double)i / COINS, r = 1.0 - q;
        const double apart =
            power(q, baseline) * power(r, test) + power(r, baseline) * power(q, test);
        const double of = apart * power(q * q + r * r, pairs);
        if (of > worst) worst = of;
    }
    return worst;
}

double ablate_missed_rate(uint32_t runs) {
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (power(1.0 - middle, runs) >= MISSED)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The runs of all factors that left what test left, since these are runs of test in all but name,
 * and the other hybrids with two equal runs. Returns 0 where a hybrid is still to be run. */
static int count_hybrids(const struct judging *judging, uint32_t *full, uint32_t *pairs) {
    const struct ablate_verdict *const out = judging->out;
    const int closed = out->closure == ABLATE_CLOSURE_EXACT || out->closure == ABLATE_CLOSURE_RERUN;
    *full = *pairs = 0;
    for (uint32_t i = 0; i < judging->plan->run_count; i++) {
        const struct ablate_run *const run = &judging->plan->runs[i];
        const enum ablate_state state = judging->results[i].state;
        if (run->arm != ABLATE_NO_ARM) continue;
        if (ablate_wants(judging->plan, out, run) && state == ABLATE_ABSENT) return 0;
        if (state != ABLATE_DONE || run->replicate > 2) continue;
        if (run->mask == judging->full && closed)
            (*full)++;
        else if (run->replicate == 2)
            (*pairs)++;
    }
    return 1;
}

/* Commands do not repeat: the arms have no more to show for it than their own runs, all of them. */
static enum status judge_doubted(struct judging *judging) {
    struct ablate_verdict *const out = judging->out;
    const uint32_t most = (uint32_t)judging->plan->file->noisy_runs;
    out->confirm = most;
    if (out->floor_runs < most)
        return ablate_refuse(judging,
                             "%s, so the floor is not exact, and more runs of the arms "
                             "are missing",
                             out->doubt);
    if (out->kind == ABLATE_INSIDE) return STATUS_OK; /* nothing is said of a difference */
    out->chance = statistics_labels_least(most, most);
    if (out->chance <= out->alpha) return STATUS_OK;
    return ablate_refuse(judging,
                         "%s, so the floor is not exact, and so few runs of the arms "
                         "cannot decide: raise floor.noisy",
                         out->doubt);
}

enum status ablate_judge_chance(struct judging *judging) {
    struct ablate_verdict *const out = judging->out;
    const uint64_t most = judging->plan->file->noisy_runs;
    uint32_t full, pairs;
    if (out->floor != ABLATE_FLOOR_EXACT || out->kind == ABLATE_UNTESTABLE) return STATUS_OK;
    if (out->doubt[0] != '\0') return judge_doubted(judging);
    if (out->kind != ABLATE_OUTSIDE || !count_hybrids(judging, &full, &pairs)) return STATUS_OK;
    uint32_t runs = out->floor_runs;
    out->chance = ablate_chance(runs, runs + full, pairs);
    while (runs < most && ablate_chance(runs, runs + full, pairs) > out->alpha)
        runs++;
    out->confirm = runs;
    return STATUS_OK;
}
