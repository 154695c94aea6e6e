/* SPDX-License-Identifier: Apache-2.0
 * Formulas after TRL 1.16 (trl/trainer/dpo_trainer.py, _compute_loss) and open-instruct
 * (open_instruct/dpo_utils.py: dpo_loss, simpo_loss), written with sp and s instead of differences
 * of saturated numbers.
 *
 * A loss takes three steps: scores of both sides, their margin, and a function of the margin; some
 * losses are one function of both log-ratios instead. Invariant: every derivative is that of the
 * formula beside it. */
#include "model/preference.h"

#include "base/real.h"

#define LN2 0x1.62e42fefa39efp-1
#define ALPHA_MOST 80.0 /* TRL clamps alpha's exponent here in f32 */
#define ALPHA_NEAR 1e-6 /* so near to 1 TRL takes reverse-kl instead of alpha */

struct shape { /* How the arguments of a loss are made. It has one of the two functions. */
    void (*margin)(const struct config *config, double h, double *out_loss, double *out_slope);
    void (*ratios)(const struct config *config, const double ratio[2], double h,
                   struct preference_value *out);
    int per_token; /* 1: the margin is one of scores per token */
    int averaged;  /* 1: log-probs are divided by their tokens before anything else */
    int free;      /* 1: there is no reference */
};

/* -log s(x), which is sp(-x). The exponent is never positive, so nothing overflows. */
static double minus_log_sigmoid(double x) {
    if (x >= 0.0) return real_log1p_f64(real_exp_f64(-x));
    return real_log1p_f64(real_exp_f64(x)) - x;
}

static double sigmoid(double x) {
    if (x >= 0.0) return 1.0 / (1.0 + real_exp_f64(-x));
    double e = real_exp_f64(x);
    return e / (1.0 + e);
}

/* ---- functions of the margin h; slopes are d loss / d h ---- */

static void sigmoid_loss(const struct config *config, double h, double *loss, double *slope) {
    double z = config->dpo.beta * h;
    *loss = minus_log_sigmoid(z);
    *slope = -(config->dpo.beta * sigmoid(-z));
}

static void smoothed_loss(const struct config *config, double h, double *loss, double *slope) {
    double z = config->dpo.beta * h, e = config->dpo.label_smoothing;
    *loss = minus_log_sigmoid(z) * (1.0 - e) + minus_log_sigmoid(-z) * e;
    *slope = -(config->dpo.beta * (sigmoid(-z) * (1.0 - e) - sigmoid(z) * e));
}

static void robust_loss(const struct config *config, double h, double *loss, double *slope) {
    double z = config->dpo.beta * h, e = config->dpo.label_smoothing;
    double rest = 1.0 - 2.0 * e;
    *loss = (minus_log_sigmoid(z) * (1.0 - e) - minus_log_sigmoid(-z) * e) / rest;
    *slope = -(config->dpo.beta * (sigmoid(-z) * (1.0 - e) + sigmoid(z) * e) / rest);
}

/* At the kink the derivative is 0, as PyTorch's relu has it. */
static void hinge_loss(const struct config *config, double h, double *loss, double *slope) {
    double rest = 1.0 - config->dpo.beta * h;
    *loss = rest <= 0.0 ? 0.0 : rest;
    *slope = rest <= 0.0 ? 0.0 : -config->dpo.beta;
}

static void ipo_loss(const struct config *config, double h, double *loss, double *slope) {
    double gap = h - 1.0 / (2.0 * config->dpo.beta);
    *loss = gap * gap;
    *slope = 2.0 * gap;
}

/* The KL divergence of (s(z), s(-z)) from (1 - e, e). Its derivative is s(z) s(-z) (z - log((1 - e)
 * / e)). */
static void exo_loss(const struct config *config, double h, double *loss, double *slope) {
    double z = config->dpo.beta * h, e = config->dpo.label_smoothing;
    double win = sigmoid(z), lose = sigmoid(-z);
    double log_win = real_log1p_f64(-e), log_lose = real_log_f64(e);
    *loss = win * (-minus_log_sigmoid(z) - log_win) + lose * (-minus_log_sigmoid(-z) - log_lose);
    *slope = config->dpo.beta * (win * lose * (z - (log_win - log_lose)));
}

/* e^-z s(t) for t = z / tau. Its factors overflow and vanish where their product does neither, so
 * the exponents are added first. */
static double blended_exponential(double z, double t) {
    if (t >= 0.0) return real_exp_f64(-z) * sigmoid(t);
    return real_exp_f64(t - z) / (1.0 + real_exp_f64(t));
}

static void discopop_loss(const struct config *config, double h, double *loss, double *slope) {
    double z = config->dpo.beta * h, t = z / config->dpo.discopop_tau;
    double logistic = minus_log_sigmoid(z), exponential = blended_exponential(z, t);
    double to = sigmoid(t), from = sigmoid(-t);
    *loss = logistic * from + exponential;
    double turn = (exponential - logistic * to) * from / config->dpo.discopop_tau;
    *slope = config->dpo.beta * (turn - sigmoid(-z) * from - exponential);
}

/* ---- functions of both log-ratios ---- */

static void apo_zero_loss(const struct config *config, const double ratio[2], double h,
                          struct preference_value *out) {
    double beta = config->dpo.beta, c = beta * ratio[0], r = beta * ratio[1];
    (void)h;
    out->loss = sigmoid(-c) + sigmoid(r);
    out->slope[0] = -(beta * (sigmoid(c) * sigmoid(-c)));
    out->slope[1] = beta * (sigmoid(r) * sigmoid(-r));
}

static void apo_down_loss(const struct config *config, const double ratio[2], double h,
                          struct preference_value *out) {
    double beta = config->dpo.beta, c = beta * ratio[0], z = beta * h;
    double steep = sigmoid(z) * sigmoid(-z);
    out->loss = sigmoid(c) + sigmoid(-z);
    out->slope[0] = beta * (sigmoid(c) * sigmoid(-c) - steep);
    out->slope[1] = beta * steep;
}

static void nca_loss(const struct config *config, const double ratio[2], double h,
                     struct preference_value *out) {
    double beta = config->dpo.beta, c = beta * ratio[0], r = beta * ratio[1];
    (void)h;
    out->loss = minus_log_sigmoid(c) + 0.5 * minus_log_sigmoid(-c) + 0.5 * minus_log_sigmoid(-r);
    out->slope[0] = beta * (0.5 * sigmoid(c) - sigmoid(-c));
    out->slope[1] = beta * (0.5 * sigmoid(r));
}

static void bco_loss(const struct config *config, const double ratio[2], double h,
                     struct preference_value *out) {
    double beta = config->dpo.beta, c = beta * ratio[0], r = beta * ratio[1];
    (void)h;
    out->loss = minus_log_sigmoid(c) + minus_log_sigmoid(-r);
    out->slope[0] = -(beta * sigmoid(-c));
    out->slope[1] = beta * sigmoid(r);
}

static void sppo_loss(const struct config *config, const double ratio[2], double h,
                      struct preference_value *out) {
    double half = 0.5 / config->dpo.beta;
    double c = ratio[0] - half, r = ratio[1] + half;
    (void)h;
    out->loss = c * c + r * r;
    out->slope[0] = 2.0 * c;
    out->slope[1] = 2.0 * r;
}

static const struct shape shapes[DPO_LOSSES] = {
    [DPO_SIGMOID] = {.margin = sigmoid_loss},
    [DPO_CDPO] = {.margin = smoothed_loss},
    [DPO_ROBUST] = {.margin = robust_loss},
    [DPO_HINGE] = {.margin = hinge_loss},
    [DPO_IPO] = {.margin = ipo_loss, .per_token = 1},
    [DPO_IPO_SUM] = {.margin = ipo_loss},
    [DPO_NORM] = {.margin = smoothed_loss, .averaged = 1},
    [DPO_SIGMOID_NORM] = {.margin = sigmoid_loss, .per_token = 1},
    [DPO_SIMPO] = {.margin = smoothed_loss, .averaged = 1, .free = 1},
    [DPO_APO_ZERO] = {.ratios = apo_zero_loss},
    [DPO_APO_DOWN] = {.ratios = apo_down_loss},
    [DPO_EXO_PAIR] = {.margin = exo_loss},
    [DPO_NCA_PAIR] = {.ratios = nca_loss},
    [DPO_BCO_PAIR] = {.ratios = bco_loss},
    [DPO_SPPO_HARD] = {.ratios = sppo_loss},
    [DPO_DISCOPOP] = {.margin = discopop_loss},
};

/* ---- scores ---- */

static void alpha_score(double alpha, double ratio, double *score, double *slope) {
    double t = (alpha - 1.0) * ratio;
    double most = t > ALPHA_MOST ? ALPHA_MOST : t;
    *score = real_expm1_f64(most) / (alpha - 1.0);
    *slope = t > ALPHA_MOST ? 0.0 : real_exp_f64(most);
}

/* The score of a side, f'(e^ratio) - f'(1) of the divergence f, and its derivative with respect to
 * the ratio. The constant f'(1), which makes it 0 at ratio 0, cancels in the margin. */
static void score_of(const struct config *config, double ratio, double *score, double *slope) {
    double off = config->dpo.f_alpha - 1.0;
    *score = ratio;
    *slope = 1.0;
    switch ((enum dpo_divergence)config->dpo.f_divergence) {
    case DIVERGENCE_FORWARD_KL:
        *score = -real_expm1_f64(-ratio);
        *slope = real_exp_f64(-ratio);
        return;
    case DIVERGENCE_JS:
        *score = LN2 - minus_log_sigmoid(ratio);
        *slope = sigmoid(-ratio);
        return;
    case DIVERGENCE_ALPHA:
        if (off < ALPHA_NEAR && -off < ALPHA_NEAR) return;
        alpha_score(config->dpo.f_alpha, ratio, score, slope);
        return;
    case DIVERGENCE_REVERSE_KL:
    default:
        return;
    }
}

/* Returns the margin and its derivatives with respect to c and r. Differences are taken in TRL's
 * order, of the policy and of the reference each, so that equal references cancel exactly. */
static double margin_of(const struct config *config, const struct shape *shape,
                        const struct preference_pair *pair, const double count[2],
                        const double ratio[2], double out_slope[2]) {
    const double *p = pair->logp, *q = pair->reference;
    int scored = config->dpo.f_divergence != DIVERGENCE_REVERSE_KL;
    double score[2];
    for (int side = 0; side < 2; side++)
        score_of(config, ratio[side], &score[side], &out_slope[side]);
    out_slope[1] = -out_slope[1];
    if (shape->per_token || shape->averaged)
        for (int side = 0; side < 2; side++)
            out_slope[side] /= count[side];
    if (shape->free) return p[0] / count[0] - p[1] / count[1] - config->dpo.gamma_beta_ratio;
    if (shape->averaged)
        return (p[0] / count[0] - p[1] / count[1]) - (q[0] / count[0] - q[1] / count[1]);
    if (shape->per_token) return score[0] / count[0] - score[1] / count[1];
    if (scored) return score[0] - score[1];
    return (p[0] - p[1]) - (q[0] - q[1]);
}

static void log_pair(const struct config *config, const struct shape *shape,
                     const struct preference_pair *pair, const double count[2],
                     struct preference_value *out) {
    for (int side = 0; side < 2; side++) {
        double divisor = shape->averaged ? count[side] : 1.0;
        double logp = pair->logp[side] / divisor;
        double reference = shape->free ? 0.0 : pair->reference[side] / divisor;
        out->logged[side] = logp;
        out->reward[side] = config->dpo.beta * (logp - reference);
    }
}

void preference_loss(const struct config *config, const struct preference_pair *pair,
                     struct preference_value *out) {
    const struct shape *shape = &shapes[config->dpo.loss];
    double count[2], ratio[2] = {0.0, 0.0}, slope[2], steep;
    for (int side = 0; side < 2; side++) {
        count[side] = pair->count[side] == 0 ? 1.0 : (double)pair->count[side];
        if (!shape->free) ratio[side] = pair->logp[side] - pair->reference[side];
    }
    log_pair(config, shape, pair, count, out);
    double h = margin_of(config, shape, pair, count, ratio, slope);
    if (shape->ratios != NULL) {
        shape->ratios(config, ratio, h, out);
        return;
    }
    shape->margin(config, h, &out->loss, &steep);
    for (int side = 0; side < 2; side++)
        out->slope[side] = steep * slope[side];
}
