/* SPDX-License-Identifier: Apache-2.0
 * The table of other projects' figures.
 *
 * Commits: NeMo-RL 7ea279ab (2026-08-22), verl b178a3cd (2026-01-29), slime 624b824a (2026-08-21),
 * TRL f2cd5771 (2026-07-24), AReaL 4aef98d8 (2026-05-21). */
#include "rollout/metrics.h"

#include "base/real.h"

static double tokens(const struct rollout_measure *m) {
    return (double)m->count[COUNT_TOKENS];
}

static double sequences(const struct rollout_measure *m) {
    return (double)m->count[COUNT_SEQUENCES];
}

#define MEAN(name, of)                                                                             \
    static double name(const struct rollout_measure *m) {                                          \
        return m->sum[of] / tokens(m);                                                             \
    }
#define SEQ_MEAN(name, of)                                                                         \
    static double name(const struct rollout_measure *m) {                                          \
        return m->sum[of] / sequences(m);                                                          \
    }
#define SHARE(name, counted, of)                                                                   \
    static double name(const struct rollout_measure *m) {                                          \
        return (double)m->count[counted] / of(m);                                                  \
    }
#define FIELD(name, field)                                                                         \
    static double name(const struct rollout_measure *m) {                                          \
        return m->field;                                                                           \
    }

MEAN(mean_factor, TOTAL_FACTOR)
MEAN(mean_k3_engine, TOTAL_K3_ENGINE)
MEAN(mean_k3_trainer, TOTAL_K3_TRAINER)
MEAN(mean_js, TOTAL_JS)
MEAN(mean_weight, TOTAL_WEIGHT)
MEAN(mean_d, TOTAL_D)
MEAN(mean_absolute, TOTAL_ABSOLUTE)
MEAN(mean_weight_apart, TOTAL_WEIGHT_APART)
MEAN(mean_apart_p, TOTAL_APART_P)
SEQ_MEAN(seq_factor, TOTAL_SEQ_MEAN_FACTOR)
SEQ_MEAN(seq_absolute, TOTAL_SEQ_MEAN_ABSOLUTE)
SEQ_MEAN(seq_weight, TOTAL_SEQ_WEIGHT)
SEQ_MEAN(trainer_ppl, TOTAL_SEQ_TRAINER_PPL)
SEQ_MEAN(engine_ppl, TOTAL_SEQ_ENGINE_PPL)
SEQ_MEAN(trainer_log_ppl, TOTAL_SEQ_TRAINER_LOG_PPL)
SEQ_MEAN(engine_log_ppl, TOTAL_SEQ_ENGINE_LOG_PPL)
SEQ_MEAN(ppl_ratio, TOTAL_SEQ_PPL_RATIO)
SEQ_MEAN(log_ppl_abs_diff, TOTAL_SEQ_MEAN_D_ABSOLUTE)
SEQ_MEAN(seq_clip, TOTAL_SEQ_CLIP)
SHARE(over_2, COUNT_W_OVER_2, tokens)
SHARE(under_half, COUNT_W_UNDER_HALF, tokens)
SHARE(over_5, COUNT_W_OVER_5, tokens)
SHARE(veto, COUNT_VETO, tokens)
SHARE(seq_veto, COUNT_SEQ_VETO, sequences)
SHARE(seq_over_2, COUNT_SEQ_OVER_2, sequences)
SHARE(seq_under_half, COUNT_SEQ_UNDER_HALF, sequences)
SHARE(seq_over_3, COUNT_SEQ_OVER_3, sequences)
SHARE(seq_geometric, COUNT_SEQ_GEOMETRIC, sequences)
FIELD(weight_most, weight_most)
FIELD(weight_least, weight_least)
FIELD(seq_weight_most, seq_weight_most)
FIELD(seq_weight_least, seq_weight_least)
FIELD(seq_factor_most, seq_factor_most)
FIELD(seq_factor_least, seq_factor_least)
FIELD(seq_d_most, seq_d_most)
FIELD(seq_d_least, seq_d_least)
FIELD(apart_p_most, apart_p_most)
FIELD(size_most, size.largest)

static double minus_mean_d(const struct rollout_measure *m) {
    return -mean_d(m);
}

static double log_ppl_diff(const struct rollout_measure *m) {
    return -m->sum[TOTAL_SEQ_MEAN_D] / sequences(m);
}

static double outside_half_5(const struct rollout_measure *m) {
    return (double)(m->count[COUNT_W_OVER_5] + m->count[COUNT_W_UNDER_HALF]) / tokens(m);
}

static double outside_half_2(const struct rollout_measure *m) {
    return (double)(m->count[COUNT_W_OVER_2] + m->count[COUNT_W_UNDER_HALF]) / tokens(m);
}

static double chi2_token(const struct rollout_measure *m) {
    return m->sum[TOTAL_WEIGHT_SQUARE] / tokens(m) - 1.0;
}

static double chi2_seq(const struct rollout_measure *m) {
    return m->sum[TOTAL_SEQ_WEIGHT_SQUARE] / sequences(m) - 1.0;
}

static double held_std(const struct rollout_measure *m) {
    const double mean = m->sum[TOTAL_WEIGHT_HELD] / tokens(m);
    const double variance = m->sum[TOTAL_WEIGHT_HELD_SQUARE] / tokens(m) - mean * mean;
    return variance > 0.0 ? real_sqrt_f64(variance) : 0.0;
}

static double held_ess(const struct rollout_measure *m) {
    const double less = m->sum[TOTAL_WEIGHT_HELD] / tokens(m), mean = 1.0 + less;
    const double squares = m->sum[TOTAL_WEIGHT_HELD_SQUARE] / tokens(m);
    return mean * mean / (1.0 + 2.0 * less + squares);
}

static double apart_p_std(const struct rollout_measure *m) {
    const double n = tokens(m), mean = m->sum[TOTAL_APART_P] / n;
    const double variance = (m->sum[TOTAL_APART_P_SQUARE] - n * mean * mean) / (n - 1.0);
    return n < 2.0 ? real_nan_f64() : variance > 0.0 ? real_sqrt_f64(variance) : 0.0;
}

static double pearson(const struct rollout_measure *m) {
    const double n = tokens(m), p = m->sum[TOTAL_TRAINER_P] / n, q = m->sum[TOTAL_ENGINE_P] / n;
    const double pp = m->sum[TOTAL_TRAINER_P_SQUARE] / n - p * p;
    const double qq = m->sum[TOTAL_ENGINE_P_SQUARE] / n - q * q;
    const double pq = m->sum[TOTAL_PRODUCT_P] / n - p * q;
    return pp > 0.0 && qq > 0.0 ? pq / real_sqrt_f64(pp * qq) : real_nan_f64();
}

double rollout_ess_tokens(const struct rollout_measure *m) {
    const double sum = m->sum[TOTAL_WEIGHT];
    return sum * sum / (tokens(m) * m->sum[TOTAL_WEIGHT_SQUARE]);
}

double rollout_ess_sequences(const struct rollout_measure *m) {
    const double sum = m->sum[TOTAL_SEQ_WEIGHT];
    return sum * sum / (sequences(m) * m->sum[TOTAL_SEQ_WEIGHT_SQUARE]);
}

#define NEMO "nemo_rl/algorithms/loss/loss_functions.py:ClippedPGLossFn@7ea279ab"
#define NEMO_SEQ "nemo_rl/algorithms/grpo.py:compute_and_apply_seq_logprob_error_masking@7ea279ab"
#define VERL "verl/trainer/ppo/rollout_corr_helper.py:compute_offpolicy_metrics@b178a3cd"
#define VERL_IS "verl/trainer/ppo/rollout_corr_helper.py:compute_is_metrics@b178a3cd"
#define VERL_DEBUG "verl/utils/debug/metrics.py:calculate_debug_metrics@b178a3cd"
#define SLIME "slime/backends/megatron_utils/loss.py:policy_loss_function@624b824a"
#define SLIME_TIS "slime/backends/megatron_utils/loss.py:vanilla_tis_function@624b824a"
#define SLIME_MIS "examples/train_infer_mismatch_helper/mis.py:compute_mis_weights@624b824a"
#define TRL "trl/trainer/grpo_trainer.py:_generate_and_score_completions@f2cd5771"
#define AREAL "areal/utils/functional/functional.py:ppo_actor_loss_fn@4aef98d8"

const struct rollout_metric rollout_metrics[] = {
    {"nemo_rl", "token_mult_prob_error", NEMO, "mean exp|d|", mean_factor},
    {"nemo_rl", "gen_kl_error", NEMO, "mean w - 1 - d", mean_k3_engine},
    {"nemo_rl", "policy_kl_error", NEMO, "mean 1/w - 1 + d", mean_k3_trainer},
    {"nemo_rl", "js_divergence_error", NEMO, "mean of the k3 of p and of q against (p + q) / 2",
     mean_js},
    {"nemo_rl", "sampling_importance_ratio", NEMO, "mean w", mean_weight},
    {"nemo_rl", "is_oob_ratio (icepop, 0.5 to 5)", NEMO, "share of w < 0.5 or w > 5",
     outside_half_5},
    {"nemo_rl", "is_oob_ratio (seq-mask-tis, 0.999 to 1.002)", NEMO,
     "share of sequences with exp(mean d) outside", seq_geometric},
    {"nemo_rl", "mean_seq_mult_prob_error", NEMO_SEQ, "mean over sequences of mean exp|d|",
     seq_factor},
    {"nemo_rl", "max_seq_mult_prob_error", NEMO_SEQ, "the largest of them", seq_factor_most},
    {"nemo_rl", "min_seq_mult_prob_error", NEMO_SEQ, "the smallest", seq_factor_least},
    {"verl", "rollout_corr/kl", VERL, "mean -d", minus_mean_d},
    {"verl", "rollout_corr/k3_kl", VERL, "mean w - 1 - d", mean_k3_engine},
    {"verl", "rollout_corr/training_ppl", VERL, "mean over sequences of exp(-mean log p)",
     trainer_ppl},
    {"verl", "rollout_corr/training_log_ppl", VERL, "mean over sequences of -mean log p",
     trainer_log_ppl},
    {"verl", "rollout_corr/rollout_ppl", VERL, "mean over sequences of exp(-mean log q)",
     engine_ppl},
    {"verl", "rollout_corr/rollout_log_ppl", VERL, "mean over sequences of -mean log q",
     engine_log_ppl},
    {"verl", "rollout_corr/log_ppl_diff", VERL, "mean over sequences of -mean d", log_ppl_diff},
    {"verl", "rollout_corr/log_ppl_abs_diff", VERL, "mean over sequences of |mean d|",
     log_ppl_abs_diff},
    {"verl", "rollout_corr/log_ppl_diff_max", VERL, "the largest -mean d", seq_d_most},
    {"verl", "rollout_corr/log_ppl_diff_min", VERL, "the smallest", seq_d_least},
    {"verl", "rollout_corr/ppl_ratio", VERL, "mean over sequences of exp(-mean d)", ppl_ratio},
    {"verl", "rollout_corr/chi2_token", VERL, "mean w^2, less 1", chi2_token},
    {"verl", "rollout_corr/chi2_seq", VERL, "mean over sequences of exp(sum d)^2, less 1",
     chi2_seq},
    {"verl", "rollout_corr/rollout_is_mean (token)", VERL_IS, "mean w", mean_weight},
    {"verl", "rollout_corr/rollout_is_max (token)", VERL_IS, "the largest w", weight_most},
    {"verl", "rollout_corr/rollout_is_min (token)", VERL_IS, "the smallest w", weight_least},
    {"verl", "rollout_corr/rollout_is_std (token, 2)", VERL_IS, "deviation of w held to [1/2, 2]",
     held_std},
    {"verl", "rollout_corr/rollout_is_eff_sample_size (token, 2)", VERL_IS,
     "(mean)^2 / mean of squares of w held to [1/2, 2]", held_ess},
    {"verl", "rollout_corr/rollout_is_ratio_fraction_high (token, 2)", VERL_IS, "share of w > 2",
     over_2},
    {"verl", "rollout_corr/rollout_is_ratio_fraction_low (token, 2)", VERL_IS, "share of w < 1/2",
     under_half},
    {"verl", "rollout_corr/rollout_is_max (sequence)", VERL_IS, "the largest exp(sum d)",
     seq_weight_most},
    {"verl", "rollout_corr/rollout_is_min (sequence)", VERL_IS, "the smallest exp(sum d)",
     seq_weight_least},
    {"verl", "rollout_corr/rollout_is_ratio_fraction_high (sequence, 2)", VERL_IS,
     "share of sequences with exp(sum d) > 2", seq_over_2},
    {"verl", "rollout_corr/rollout_is_ratio_fraction_low (sequence, 2)", VERL_IS,
     "share of sequences with exp(sum d) < 1/2", seq_under_half},
    {"verl", "training/rollout_probs_diff_max", VERL_DEBUG, "the largest |p - q|", apart_p_most},
    {"verl", "training/rollout_probs_diff_mean", VERL_DEBUG, "mean |p - q|", mean_apart_p},
    {"verl", "training/rollout_probs_diff_std", VERL_DEBUG, "deviation of |p - q|, n - 1",
     apart_p_std},
    {"verl", "training/rollout_actor_probs_pearson_corr", VERL_DEBUG, "correlation of p and q",
     pearson},
    {"slime", "train_rollout_logprob_abs_diff", SLIME, "mean over sequences of mean |d|",
     seq_absolute},
    {"slime", "tis (per token)", SLIME_TIS, "mean w", mean_weight},
    {"slime", "tis_abs (per token)", SLIME_TIS, "mean |w - 1|", mean_weight_apart},
    {"slime", "tis_clipfrac (0 to 2)", SLIME_TIS, "mean over sequences of the share of w > 2",
     seq_clip},
    {"slime", "tis_truncate_fraction (2, per token)", SLIME_MIS, "share of w > 2", over_2},
    {"slime", "tis_mask_fraction (0.5 to 2, per token)", SLIME_MIS, "share of w < 0.5 or w > 2",
     outside_half_2},
    {"slime", "rs_catastrophic_token_fraction (1e-4, per token)", SLIME_MIS, "share of w < 1e-4",
     veto},
    {"slime", "rs_catastrophic_seq_fraction (1e-4)", SLIME_MIS,
     "share of sequences with a token of w < 1e-4", seq_veto},
    {"trl", "sampling/sampling_logp_difference/mean", TRL, "mean |d|", mean_absolute},
    {"trl", "sampling/sampling_logp_difference/max", TRL, "the largest |d|", size_most},
    {"trl", "sampling/importance_sampling_ratio/mean (sequence, unclipped)", TRL,
     "mean over sequences of exp(sum d)", seq_weight},
    {"trl", "masked by sequence_mask (C_max 3)", TRL, "share of sequences with exp(sum d) > 3",
     seq_over_3},
    {"areal", "behave_approx_kl (nothing masked)", AREAL, "mean d", mean_d},
    {"areal", "behave_imp_weight (nothing masked)", AREAL, "mean w", mean_weight},
    {"areal", "masked by rejection_sampling (token ratio, 5)", AREAL, "share of w > 5", over_5},
    {NULL, NULL, NULL, NULL, NULL}};
