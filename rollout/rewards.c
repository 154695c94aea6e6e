/* SPDX-License-Identifier: Apache-2.0
 * The reward of a sequence, and the two means of it.
 *
 * Rewards and mean d are taken less those of the first sequence, and weights over its weight, less
 * 1: no mean depends on that, equal rewards give a difference of exactly 0, and small d lose no
 * digits. */
#include "rollout/rewards.h"

#include "base/real.h"
#include "rollout/measure_private.h"

const char *const rollout_reward_slices[SLICE_REWARDS] = {"below 0", "0", "between 0 and 1",
                                                          "1 and above"};

/* Of a list that is the sum, whatever the mask says: the reward belongs to the whole sequence. NaN:
 * there is none. */
static double reward_of(const struct rollout_list *list) {
    struct sum_lanes_f64 sum;
    if (list->given == 0 || list->count == 0) return real_nan_f64();
    sum_lanes_open_f64(&sum);
    for (size_t i = 0; i < list->count; i++)
        sum_lanes_term_f64(&sum, list->value[i]);
    return sum_lanes_close_f64(&sum);
}

static void add(struct rollout_work *work, enum rollout_sum sum, double value) {
    sum_lanes_term_f64(&work->sum[sum], value);
}

static size_t slice_of(double reward) {
    if (reward < 0.0) return 0;
    if (reward == 0.0) return 1;
    return reward < 1.0 ? 2 : 3;
}

/* As in all weights. */
static double held(double sum) {
    return sum < -ROLLOUT_BOUND ? -ROLLOUT_BOUND : sum > ROLLOUT_BOUND ? ROLLOUT_BOUND : sum;
}

void rollout_reward_add(struct rollout_work *work, double sum, double mean) {
    struct rollout_measure *out = work->out;
    const double reward = reward_of(&work->sequence.list[ROLLOUT_REWARD]);
    if (!real_finite_f64(reward)) {
        out->count[COUNT_NO_REWARD]++;
        out->count[COUNT_ODD_REWARDS] += work->sequence.odd_reward != 0;
        return;
    }
    if (out->count[COUNT_REWARDS]++ == 0) {
        out->first_reward = reward;
        out->first_lean = mean;
        out->first_sum = held(sum);
    }
    const double r = reward - out->first_reward, lean = mean - out->first_lean;
    const double apart = held(sum) - out->first_sum, v = rollout_k3(apart) + apart;
    add(work, TOTAL_REWARD, r);
    add(work, TOTAL_REWARD_SQUARE, r * r);
    add(work, TOTAL_REWARD_LEAN, lean);
    add(work, TOTAL_REWARD_LEAN_SQUARE, lean * lean);
    add(work, TOTAL_REWARD_PRODUCT, r * lean);
    add(work, TOTAL_REWARD_V, v);
    add(work, TOTAL_REWARD_V_SQUARE, v * v);
    add(work, TOTAL_REWARD_VR, v * r);
    add(work, TOTAL_REWARD_VRR, v * r * r);
    add(work, TOTAL_REWARD_VVR, v * v * r);
    add(work, TOTAL_REWARD_VVRR, v * v * r * r);
    struct rollout_slice *slice = &out->reward[slice_of(reward)];
    slice->sequences++;
    for (size_t i = 0; i < work->count; i++)
        rollout_slice_add(slice, &work->token[i], rollout_k3(work->token[i].d));
}

/* ---- figures ---- */

/* Reward i moves the difference by b (r - t) / n to first order, where b = (v - mean v) / mean w
 * and t is the trainer's mean. These add up to the difference, which is taken off their squares. */
static double error_of(const double *sum, double n, double t, double difference) {
    const double v = sum[TOTAL_REWARD_V] / n, w = 1.0 + v;
    const double square = sum[TOTAL_REWARD_VVRR] - 2.0 * t * sum[TOTAL_REWARD_VVR] +
                          t * t * sum[TOTAL_REWARD_V_SQUARE];
    const double single =
        sum[TOTAL_REWARD_VRR] - 2.0 * t * sum[TOTAL_REWARD_VR] + t * t * sum[TOTAL_REWARD_V];
    const double plain = sum[TOTAL_REWARD_SQUARE] - 2.0 * t * sum[TOTAL_REWARD] + n * t * t;
    const double spread =
        (square - 2.0 * v * single + v * v * plain) / (w * w) - n * difference * difference;
    if (n < 2.0) return real_nan_f64();
    return spread > 0.0 ? real_sqrt_f64(spread / (n * (n - 1.0))) : 0.0;
}

static double correlation_of(const double *sum, double n) {
    const double r = sum[TOTAL_REWARD] / n, lean = sum[TOTAL_REWARD_LEAN] / n;
    const double rr = sum[TOTAL_REWARD_SQUARE] / n - r * r;
    const double ll = sum[TOTAL_REWARD_LEAN_SQUARE] / n - lean * lean;
    if (n < REWARDS_CORRELATED || !(rr > 0.0) || !(ll > 0.0)) return real_nan_f64();
    const double value = (sum[TOTAL_REWARD_PRODUCT] / n - r * lean) / real_sqrt_f64(rr * ll);
    return value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value;
}

int rollout_rewards_of(const struct rollout_measure *measure, struct rollout_rewards *out) {
    const double *const sum = measure->sum;
    const double n = (double)measure->count[COUNT_REWARDS];
    if (n == 0.0) return 0;
    const double mean = sum[TOTAL_REWARD] / n, v = sum[TOTAL_REWARD_V] / n;
    const double weights = n * (1.0 + v);
    const double squares = n + 2.0 * sum[TOTAL_REWARD_V] + sum[TOTAL_REWARD_V_SQUARE];
    out->difference = (sum[TOTAL_REWARD_VR] - v * sum[TOTAL_REWARD]) / weights;
    out->mean = measure->first_reward + mean;
    out->trainer_mean = measure->first_reward + (mean + out->difference);
    out->error = error_of(sum, n, mean + out->difference, out->difference);
    out->ess = weights * weights / (n * squares);
    out->correlation = correlation_of(sum, n);
    return 1;
}
