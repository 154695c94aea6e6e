/* SPDX-License-Identifier: Apache-2.0
 * What the row behind the first step shows, where the rows before it agree.
 *
 * The step itself differs then, and another LR is one of many causes: another optimizer or other
 * settings of it, another gradient, another loss. A log of a DPO training can tell some of them
 * apart, since it has what the step does to the policy (log-probabilities, rewards) and what is
 * made of it (the loss). It can also tell nothing: a DPO training that starts at its reference has
 * a loss of ln 2 and rewards of 0 whatever its weights, data and dtype are. */
#include "base/macro.h"
#include "base/real.h"
#include "forensics/compare_explain.h"
#include "forensics/compare_parts.h"

#define LN2 0.69314718055994531
/* How far from ln 2 a loss counts as that of a start: bf16 has numbers 4e-3 apart there. */
#define LN2_NEAR 4e-3
/* Log-probabilities of this size are sums over a sequence. Means over its tokens are smaller, but
 * for a model that guesses worse than one of e^15 words. */
#define SUMS_FROM 15.0
/* A reward is beta times a change of a log-probability, so the gap of two rewards is beta times
 * that of the log-probabilities where beta is one. Below this share of it beta would be above 10.
 */
#define ALONE 0.1
/* How far rewards are apart at least, as a share of them, that another beta makes. */
#define BETA_LEAST 0.01
/* How much further than the rewards, or than what the printed digits leave open of log-probs, a
 * loss must be apart. -log sigma(margin) has a slope of at most 1, and that of IPO is 10 where beta
 * is 0.1; but printed rewards are means, and those of two samples may take each other back. */
#define LOSS_ALONE 20.0
/* How far the ratio of two rewards may be from that of two LRs, as a share of what that differs
 * from 1: log-probabilities do not follow a step on a straight line. A first step of AdamW at 1e-4
 * (0.035 of weights of norm 25, untrained) left up to 0.2. */
#define RATIO_NEAR 0.25
/* What a difference of two printed LRs leaves of 0, as a share of it. */
#define LEVEL 1e-3
/* Margins of a mean up to here are on the straight part of -log sigma(margin), whose bend is a
 * fortieth of them there (margin / 8 of margin / 2); the spread of pairs around their mean adds to
 * the bend, so two rows must agree. How far a ratio of slopes may be off, as a share of what it
 * differs from 1 by (both chosen). */
#define MARGIN_STRAIGHT 0.1
#define SLOPE_NEAR 0.25
#define SLOPE_ROWS 3
/* How much of its distance from ln 2 a loss in f32 leaves open at least, as printed. */
#define LN2_STEP 6e-8

struct pair_at {
    struct series_point a, b;
    double gap, digits; /* |a - b|, and what the printed digits may make of equal numbers */
};

/* Finds the pair of an update. Returns 0 when both do not have finite numbers there. */
static int find_pair(const struct compare_report *report, enum log_name name, uint64_t update,
                     struct pair_at *out) {
    const struct compare_column *const column = compare_column_of(report, name);
    if (column == NULL || column->pairs == 0) return 0;
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        out->a = compare_point(&column->side[0], i);
        out->b = compare_point(&column->side[1], j);
        if (out->a.update < update) continue;
        out->gap = real_abs_f64(out->a.value - out->b.value);
        out->digits = 0.5 * (out->a.quantum + out->b.quantum);
        return out->a.update == update && real_finite_f64(out->gap);
    }
    return 0;
}

/* Tells whether a number of a column says anything about weights, data or dtype. */
static int tells(enum log_name name, double value) {
    switch (name) {
    case LOG_LOSS:
        return !(real_abs_f64(value - LN2) <= LN2_NEAR);
    case LOG_REWARD_CHOSEN:
    case LOG_REWARD_REJECTED:
    case LOG_REWARD_MARGIN:
        return value != 0.0;
    default:
        return 1;
    }
}

int compare_start_tells(const struct compare_report *report) {
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column == NULL) continue;
        for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
            const struct series_point point = compare_point(&column->side[0], i);
            if (point.update > report->start) break;
            if (tells(*name, point.value)) return 1;
        }
    }
    return 0;
}

static int rewards_alone(const struct compare_report *report, uint64_t update) {
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    int apart = 0;
    for (size_t n = 0; n < COUNT_OF(policy); n++) {
        struct pair_at logp, reward;
        if (!find_pair(report, policy[n], update, &logp) ||
            !find_pair(report, rewards[n], update, &reward) ||
            real_abs_f64(logp.a.value) < SUMS_FROM)
            return 0;
        if (reward.gap <= reward.digits + BETA_LEAST * real_abs_f64(reward.a.value)) continue;
        if (logp.gap + logp.digits > ALONE * reward.gap) return 0;
        apart = 1;
    }
    return apart;
}

static int loss_alone(const struct compare_report *report, uint64_t update) {
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    struct pair_at loss, reward;
    double gaps = 0.0;
    if (!find_pair(report, LOG_LOSS, report->start, &loss) || tells(LOG_LOSS, loss.a.value))
        return 0;
    if (!find_pair(report, LOG_LOSS, update, &loss)) return 0;
    for (size_t n = 0; n < COUNT_OF(rewards); n++) {
        if (!find_pair(report, rewards[n], update, &reward) || reward.a.value == 0.0) return 0;
        gaps += reward.gap + reward.digits;
    }
    return loss.gap - loss.digits > LOSS_ALONE * gaps;
}

/* One row may be one that was written wrong, so the next must not agree again. */
static int stays_apart(const struct compare_report *report, enum log_name name) {
    struct pair_at next;
    return find_pair(report, name, report->start + 2, &next) && next.gap > next.digits;
}

int compare_rewards_alone(const struct compare_report *report) {
    return rewards_alone(report, report->start + 1) &&
           (stays_apart(report, LOG_REWARD_CHOSEN) || stays_apart(report, LOG_REWARD_REJECTED));
}

int compare_loss_alone(const struct compare_report *report) {
    return loss_alone(report, report->start + 1) && stays_apart(report, LOG_LOSS);
}

int compare_loss_apart(const struct compare_report *report, uint64_t update) {
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    struct pair_at loss, logp;
    double digits = 0.0;
    if (!find_pair(report, LOG_LOSS, update, &loss)) return 0;
    for (size_t n = 0; n < COUNT_OF(policy); n++) {
        if (!compare_agrees_at_start(report, policy[n]) ||
            !find_pair(report, policy[n], update, &logp))
            return 0;
        digits += logp.gap + logp.digits;
    }
    return loss.gap - loss.digits > LOSS_ALONE * digits;
}

int compare_rewards_agree(const struct compare_report *report, uint64_t update) {
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    struct pair_at reward;
    for (size_t n = 0; n < COUNT_OF(rewards); n++)
        if (!find_pair(report, rewards[n], update, &reward) || reward.gap > reward.digits) return 0;
    return 1;
}

/* How far the ratios of chosen and rejected rewards may be apart as those of one factor, as a share
 * of what they differ from 1: another beta left them apart by 1e-4 of it, and a reference that
 * follows the policy by 0.08 to 0.2. */
#define ONE_RATIO 0.02
/* How far such a ratio may move to the update behind, in the same measure. A reference that is
 * moved in each update, by 0.6 of the way, moved it by 0.2; another beta leaves it where it is. */
#define SAME_RATIO 0.1

/* Stores the ratios of chosen and rejected rewards at an update, what they differ from 1 by at most
 * and by how much the policy's log-probs leave them open. Returns 0 where one of them is not
 * there. */
static int reward_ratios(const struct compare_report *report, uint64_t update, double ratio[2],
                         double *out_away, double *out_open) {
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    double open = 0.0, away = 0.0;
    for (size_t n = 0; n < COUNT_OF(policy); n++) {
        struct pair_at logp, reward;
        if (!find_pair(report, policy[n], update, &logp) ||
            !find_pair(report, rewards[n], update, &reward) || reward.a.value == 0.0)
            return 0;
        const double size = real_abs_f64(reward.a.value);
        ratio[n] = reward.b.value / reward.a.value;
        /* a reward is beta times a log-prob, and beta is 1 at most */
        open += (logp.gap + logp.digits + reward.digits) / size;
        if (real_abs_f64(ratio[n] - 1.0) > away) away = real_abs_f64(ratio[n] - 1.0);
    }
    *out_away = away;
    *out_open = open;
    return 1;
}

int compare_rewards_scaled(const struct compare_report *report) {
    const uint64_t update = report->start + 1;
    double ratio[2], later[2], open, away, beyond, open_later;
    if (!reward_ratios(report, update, ratio, &away, &open)) return 1;
    if (!(real_abs_f64(ratio[0] - ratio[1]) <= ONE_RATIO * away + open)) return 0;
    if (!reward_ratios(report, update + 1, later, &beyond, &open_later)) return 1;
    for (size_t n = 0; n < 2; n++)
        if (real_abs_f64(later[n] - ratio[n]) > SAME_RATIO * away + open + open_later) return 0;
    return 1;
}

/* Tells whether every reward of a side is 0, over more updates than its first step. */
static int rewards_are_zero(const struct compare_report *report, size_t side) {
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    for (size_t n = 0; n < COUNT_OF(rewards); n++) {
        const struct compare_column *const column = compare_column_of(report, rewards[n]);
        if (column == NULL || column->side[side].count < 3) return 0;
        for (size_t i = 0; i < column->side[side].count; i++)
            if (compare_point(&column->side[side], i).value != 0.0) return 0;
    }
    return 1;
}

int compare_own_reference(const struct compare_report *report) {
    const int a = rewards_are_zero(report, 0), b = rewards_are_zero(report, 1);
    return a == b ? -1 : b;
}

/* Tells whether the rewards of an update are in the ratio of two LRs, B's to A's; LRs of 0 leave
 * rewards of 0. Rewards that are 0 in both logs are in no ratio. */
static int in_ratio(const struct pair_at *reward, double lr_a, double lr_b) {
    const double a = reward->a.value, b = reward->b.value;
    if (lr_a == 0.0 || lr_b == 0.0)
        return (a == 0.0) == (lr_a == 0.0) && (b == 0.0) == (lr_b == 0.0);
    const double away = real_abs_f64(lr_b / lr_a - 1.0) * real_abs_f64(a);
    return away > 0.0 && reward->digits <= RATIO_NEAR * away &&
           real_abs_f64(b - lr_b / lr_a * a) <= RATIO_NEAR * away;
}

/* Tells whether both rewards of an update are in the ratio of two LRs, one way or the other. */
static int both_in_ratio(const struct pair_at rewards[2], double x, double y) {
    return (in_ratio(&rewards[0], x, y) && in_ratio(&rewards[1], x, y)) ||
           (in_ratio(&rewards[0], y, x) && in_ratio(&rewards[1], y, x));
}

int compare_rewards_follow(const struct compare_report *report) {
    const struct compare_column *const lr = compare_column_of(report, LOG_LR_LOGGED);
    const uint64_t update = report->start + 1;
    struct pair_at first, second, rewards[2];
    if (lr == NULL || lr->class_of == COMPARE_DIFFERENT || report->lr.state == COMPARE_LR_SAME ||
        !find_pair(report, LOG_LR_LOGGED, report->start, &first) ||
        !find_pair(report, LOG_LR_LOGGED, update, &second) ||
        !find_pair(report, LOG_REWARD_CHOSEN, update, &rewards[0]) ||
        !find_pair(report, LOG_REWARD_REJECTED, update, &rewards[1]))
        return 0;
    /* The LR in front of the first printed one is on the straight line through it and the next: a
     * log may print the LR of the next update. */
    const double step = second.a.value - first.a.value, before = first.a.value - step;
    const double from = real_abs_f64(before) < LEVEL * real_abs_f64(step) ? 0.0 : before;
    return step != 0.0 && (both_in_ratio(rewards, first.a.value, second.a.value) ||
                           (from >= 0.0 && both_in_ratio(rewards, from, first.a.value)));
}

/* Log-probabilities may tell of weights and data there; what the loss is made of them does not show
 * where rewards are 0, or where nothing but the loss is shown. */
int compare_starts_at_ln2(const struct compare_report *report) {
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    struct pair_at loss, reward;
    int shown = 0;
    if (!find_pair(report, LOG_LOSS, report->start, &loss) || tells(LOG_LOSS, loss.a.value) ||
        tells(LOG_LOSS, loss.b.value))
        return 0;
    for (size_t n = 0; n < COUNT_OF(rewards); n++) {
        if (!find_pair(report, rewards[n], report->start, &reward)) continue;
        if (reward.a.value != 0.0 || reward.b.value != 0.0) return 0;
        shown = 1;
    }
    return shown || !compare_start_tells(report);
}

/* How steeply a loss leaves ln 2 with the mean of margins, 1 for -log sigma(margin) and 1 - 2 s
 * with label smoothing s; NaN where digits or a large margin hide it. */
static double slope_of(const struct series_point *loss, const struct series_point *margin) {
    const double away = loss->value - LN2, size = real_abs_f64(margin->value);
    const double step = loss->quantum > LN2_STEP ? loss->quantum : LN2_STEP;
    if (!(size > 0.0 && size <= MARGIN_STRAIGHT) || margin->quantum > LEVEL * size ||
        step > 0.05 * real_abs_f64(away))
        return real_nan_f64();
    return -2.0 * away / margin->value;
}

int compare_slopes_in_ratio(const struct compare_report *report, double factor) {
    size_t rows = 0;
    for (uint64_t k = 1; k <= SLOPE_ROWS; k++) {
        struct pair_at loss, margin;
        if (!find_pair(report, LOG_LOSS, report->start + k, &loss) ||
            !find_pair(report, LOG_REWARD_MARGIN, report->start + k, &margin))
            continue;
        const double a = slope_of(&loss.a, &margin.a), b = slope_of(&loss.b, &margin.b);
        if (a != a || b != b) continue;
        if (!(real_abs_f64(a / b - factor) <= SLOPE_NEAR * real_abs_f64(factor - 1.0))) return 0;
        rows++;
    }
    return rows >= 2;
}

int compare_scaled_alike(const struct compare_report *report, double factor) {
    static const enum log_name names[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED, LOG_REWARD_MARGIN,
                                          LOG_LOSS};
    size_t rewards = 0;
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        struct pair_at pair;
        const int is_loss = names[n] == LOG_LOSS;
        if (!find_pair(report, names[n], report->start + 1, &pair)) {
            if (is_loss) return 0;
            continue;
        }
        const double away = pair.a.value - (is_loss ? LN2 : 0.0);
        const double scaled = real_abs_f64(1.0 - 1.0 / factor) * real_abs_f64(away);
        if (scaled == 0.0 || pair.gap + pair.digits > ALONE * scaled) return 0;
        rewards += !is_loss;
    }
    return rewards > 0;
}
