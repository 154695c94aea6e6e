/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Preference losses: their values against TRL and open-instruct and against a computation with 1200
 * digits (tests/golden/losses), their derivatives against differences, their first losses against
 * known values, and a step of plain gradient descent, which must lower the loss by what the
 * gradient's norm says. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "model/preference.h"
#include "scenarios/scenario.h"
#include "tests/trainer/helper_train.h"

static const char *const divergences[] = {"reverse-kl", "forward-kl", "js", "alpha"};
static const char *const names[DPO_LOSSES] = {"sigmoid",  "cdpo",     "robust",    "hinge",
                                              "ipo",      "ipo-sum",  "dpo-norm",  "sigmoid-norm",
                                              "simpo",    "apo-zero", "apo-down",  "exo-pair",
                                              "nca-pair", "bco-pair", "sppo-hard", "discopop"};

static int knows_divergences(int32_t loss) {
    return loss == DPO_SIGMOID || loss == DPO_ROBUST || loss == DPO_HINGE || loss == DPO_IPO ||
           loss == DPO_SIGMOID_NORM || loss == DPO_EXO_PAIR || loss == DPO_DISCOPOP;
}

/* ---- the golden tables ---- */

struct golden {
    struct config config;
    struct preference_pair pair;
    double real[3], within[3], exact[3], scale[3], reward[2], logged[2];
};

static double next_number(char **at) {
    char *end;
    double value = strtod(*at, &end);
    assert_true(end != *at && (*end == ',' || *end == '\n'));
    *at = end + 1;
    return value;
}

static void next_numbers(char **at, double *out, int count) {
    for (int i = 0; i < count; i++)
        out[i] = next_number(at);
}

static void read_row(char *line, int32_t loss, struct golden *out) {
    char *at = strchr(line, ',');
    memset(out, 0, sizeof *out);
    assert_non_null(at);
    *at++ = '\0';
    out->config.task = TASK_DPO;
    out->config.dpo.loss = loss;
    out->config.dpo.f_divergence = -1;
    for (int32_t i = 0; i < (int32_t)COUNT_OF(divergences); i++)
        if (strcmp(line, divergences[i]) == 0) out->config.dpo.f_divergence = i;
    assert_true(out->config.dpo.f_divergence >= 0);
    out->config.dpo.f_alpha = next_number(&at);
    out->config.dpo.beta = next_number(&at);
    out->config.dpo.label_smoothing = next_number(&at);
    out->config.dpo.gamma_beta_ratio = next_number(&at);
    out->config.dpo.discopop_tau = next_number(&at);
    next_numbers(&at, out->pair.logp, 2);
    next_numbers(&at, out->pair.reference, 2);
    for (int side = 0; side < 2; side++)
        out->pair.count[side] = (uint32_t)next_number(&at);
    next_numbers(&at, out->real, 3);
    next_numbers(&at, out->within, 3);
    next_numbers(&at, out->exact, 3);
    next_numbers(&at, out->scale, 3);
    next_numbers(&at, out->reward, 2);
    next_numbers(&at, out->logged, 2);
    assert_true(*at == '\0');
}

static int is_near(double a, double b, double bound) {
    return a == b || fabs(a - b) <= bound;
}

struct tally {
    double worst;     /* of |ours - exact| / scale */
    int rows, unlike; /* values that the real code does not give as a number */
};

/* Where the exact loss overflows, or the e^-u of forward-kl does, inf - inf or inf * 0 may come
 * out. */
static void check_value(double ours, const struct golden *row, int which, struct tally *tally) {
    const double exact = row->exact[which], real = row->real[which];
    const double bound = 1e-13 * row->scale[which] + 1e-300;
    if (!isfinite(real)) {
        tally->unlike++;
        if (row->config.dpo.f_divergence == DIVERGENCE_FORWARD_KL || !isfinite(row->exact[0]))
            assert_true(isnan(ours) || is_near(ours, exact, bound) || ours == real);
        else
            assert_true(is_near(ours, exact, bound));
        return;
    }
    const double error = fabs(ours - exact) / row->scale[which];
    if (error > tally->worst) tally->worst = error;
    if (!is_near(ours, exact, bound) || !is_near(ours, real, row->within[which]))
        print_error("value %d: ours %.17g, exact %.17g, real %.17g within %.3g\n", which, ours,
                    exact, real, row->within[which]);
    assert_true(is_near(ours, exact, bound));
    assert_true(is_near(ours, real, row->within[which]));
}

static void check_row(const struct golden *row, struct tally *tally) {
    struct preference_value value;
    const double single = row->config.dpo.f_divergence == DIVERGENCE_ALPHA ? 0x1p-23 : 0x1p-51;
    preference_loss(&row->config, &row->pair, &value);
    check_value(value.loss, row, 0, tally);
    for (int side = 0; side < 2; side++) {
        check_value(value.slope[side], row, 1 + side, tally);
        assert_true(
            is_near(value.reward[side], row->reward[side], single * fabs(row->reward[side])));
        assert_true(
            is_near(value.logged[side], row->logged[side], single * fabs(row->logged[side])));
    }
    tally->rows++;
}

static void corroborate_real_code(void **state) {
    (void)state;
    for (int32_t loss = 0; loss < DPO_LOSSES; loss++) {
        char path[512], line[1024];
        struct tally tally = {0};
        snprintf(path, sizeof path, TWINSTEP_SOURCE_DIR "/tests/golden/losses/%s.csv", names[loss]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        while (fgets(line, sizeof line, file) != NULL) {
            static struct golden row;
            read_row(line, loss, &row);
            check_row(&row, &tally);
        }
        fclose(file);
        print_message("%-13s %3d rows, worst %.2g of the terms, %d not finite in the real code\n",
                      names[loss], tally.rows, tally.worst, tally.unlike);
        assert_true(tally.rows >= 40);
    }
}

/* ---- derivatives ---- */

static double loss_at(const struct config *config, struct preference_pair pair, int side,
                      double by) {
    struct preference_value value;
    pair.logp[side] += by;
    preference_loss(config, &pair, &value);
    return value.loss;
}

static void corroborate_differences(void **state) {
    (void)state;
    static struct config config;
    const double step = 0x1p-13;
    uint32_t checked = 0;
    config.task = TASK_DPO;
    config.dpo.gamma_beta_ratio = 0.3;
    config.dpo.label_smoothing = 0.1;
    config.dpo.discopop_tau = 0.5;
    config.dpo.f_alpha = 0.5;
    for (uint32_t i = 0; i < 2000; i++) {
        config.dpo.loss = (int32_t)(i % DPO_LOSSES);
        config.dpo.f_divergence = (int32_t)(i / DPO_LOSSES % 4);
        config.dpo.beta = 0.1 + 0.01 * (i % 37);
        if (config.dpo.f_divergence != 0 && !knows_divergences(config.dpo.loss)) continue;
        const double u = (double)(i % 41) / 8 - 2.5, v = (double)(i % 53) / 8 - 3.2;
        struct preference_pair pair = {{u - 7, v - 9}, {-7, -9}, {1 + i % 7, 1 + i % 5}};
        struct preference_value value;
        preference_loss(&config, &pair, &value);
        for (int side = 0; side < 2; side++) {
            const double up = loss_at(&config, pair, side, step);
            const double down = loss_at(&config, pair, side, -step);
            const double slope = (up - down) / (2 * step);
            const double right = (up - value.loss) / step, left = (value.loss - down) / step;
            if (config.dpo.loss == DPO_HINGE && fabs(right - left) > 1e-2) continue; /* the kink */
            const double bound = 1e-6 * (1 + fabs(slope) + fabs(value.loss));
            if (fabs(slope - value.slope[side]) > bound)
                print_error("%s %s: %.9g of differences, %.9g\n", names[config.dpo.loss],
                            divergences[config.dpo.f_divergence], slope, value.slope[side]);
            assert_true(fabs(slope - value.slope[side]) <= bound);
            checked++;
        }
    }
    assert_true(checked > 2200);
}

/* ---- in a run ---- */

#define LN2 0x1.62e42fefa39efp-1

/* The losses for a policy and reference of equal bits, beta 0.1, label smoothing 0.1; simpo has no
 * reference. */
static const double first_losses[DPO_LOSSES] = {
    [DPO_SIGMOID] = LN2,
    [DPO_CDPO] = LN2,
    [DPO_ROBUST] = LN2,
    [DPO_HINGE] = 1.0,
    [DPO_IPO] = 25.0,
    [DPO_IPO_SUM] = 25.0,
    [DPO_NORM] = LN2,
    [DPO_SIGMOID_NORM] = LN2,
    [DPO_APO_ZERO] = 1.0,
    [DPO_APO_DOWN] = 1.0,
    [DPO_EXO_PAIR] = 0.51082562376599072, /* log(1/2) - log(0.09) / 2 */
    [DPO_NCA_PAIR] = 2 * LN2,
    [DPO_BCO_PAIR] = 2 * LN2,
    [DPO_SPPO_HARD] = 50.0,
    [DPO_DISCOPOP] = 0.5 * LN2 + 0.5,
};

static void validate_first_loss(void **state) {
    (void)state;
    for (int32_t loss = 0; loss < DPO_LOSSES; loss++) {
        struct helper_small bench;
        helper_small_open(&bench, 8,
                          "dpo: {loss: %s, label_smoothing: 0.1}, batch: {size: 4, micro: 2}",
                          names[loss]);
        const struct record *record = helper_step(&bench.run);
        if (loss != DPO_SIMPO) {
            assert_true(fabs(record->reals[REAL_LOSS] - first_losses[loss]) <=
                        4 * 0x1p-53 * first_losses[loss]);
            assert_true(record->reals[REAL_REWARD_MARGIN] == 0.0);
        } else {
            assert_true(record->reals[REAL_REWARD_CHOSEN] < 0.0);
        }
        helper_small_close(&bench);
    }
}

/* Only simpo and dpo-norm log their log-probs per token. */
static void verify_logged(void **state) {
    (void)state;
    double logp[DPO_LOSSES];
    for (int32_t loss = 0; loss < DPO_LOSSES; loss++) {
        struct helper_small bench;
        helper_small_open(&bench, 8,
                          "dpo: {loss: %s, label_smoothing: 0.1}, batch: {size: 4, micro: 4}",
                          names[loss]);
        logp[loss] = helper_step(&bench.run)->reals[REAL_LOGP_CHOSEN];
        helper_small_close(&bench);
        const int per_token = loss == DPO_NORM || loss == DPO_SIMPO;
        assert_int_equal(logp[loss] == logp[0], !per_token);
    }
    assert_true(logp[DPO_NORM] == logp[DPO_SIMPO] && logp[DPO_NORM] > logp[0]);
}

/* From the third to the fourth update on one batch in f64, the loss must fall by lr |g|^2, to first
 * order. */
static void verify_descent(void **state) {
    (void)state;
    for (int32_t loss = 0; loss < DPO_LOSSES; loss++)
        for (size_t f = 0; f < COUNT_OF(divergences); f++) {
            static const double lr = 1e-6;
            struct helper_small bench;
            if (f > 0 && !knows_divergences(loss)) continue;
            helper_small_open(
                &bench, 4,
                "dpo: {loss: %s, label_smoothing: 0.1, f_divergence: %s}, batch: {size: 4, "
                "micro: 2}, optimizer: {name: sgd, lr: %g}, schedule: {name: constant}, "
                "clip: {max_norm: 0}, numerics: {param: f64, compute: f64, accumulate: f64}",
                names[loss], divergences[f], lr);
            double last = 0.0, norm = 0.0;
            for (int k = 0; k < 3; k++) {
                const struct record *record = helper_step(&bench.run);
                last = record->reals[REAL_LOSS];
                norm = record->reals[REAL_GRAD_NORM];
            }
            const double fall = last - helper_step(&bench.run)->reals[REAL_LOSS];
            const double expected = lr * norm * norm;
            if (!(fabs(fall - expected) <= 1e-2 * expected))
                print_error("%s %s: falls by %.9g, lr |g|^2 %.9g\n", names[loss], divergences[f],
                            fall, expected);
            /* at an LR of 1e-6 the term of second order is below one percent */
            assert_true(expected > 0.0 && fabs(fall - expected) <= 1e-2 * expected);
            helper_small_close(&bench);
        }
}

/* simpo must have no forward of a reference, no room for one in the state, and none of its keys. */
static void verify_simpo_is_free(void **state) {
    (void)state;
    static const char *const references[] = {"cached", "live"};
    for (size_t i = 0; i < COUNT_OF(references); i++) {
        struct helper_small bench;
        helper_small_open(&bench, 8, "dpo: {loss: simpo, reference: %s}", references[i]);
        assert_false(config_has_reference(&bench.config));
        assert_null(bench.run.reference);
        assert_true(bench.run.layout.reference == 0);
        assert_true(helper_step(&bench.run)->reals[REAL_GRAD_NORM] > 0.0);
        helper_small_close(&bench);
    }
}

/* Law 3 must hold for all losses. */
static void verify_invariance(void **state) {
    (void)state;
    static const char *const splits[] = {"micro: 8", "micro: 4, layout: concatenated",
                                         "micro: 2, pad: 7", "micro: 1, padding: packed"};
    for (int32_t loss = 0; loss < DPO_LOSSES; loss++) {
        struct helper_outcome first, other;
        for (size_t s = 0; s < COUNT_OF(splits); s++) {
            struct helper_small bench;
            helper_small_open(&bench, 20,
                              "dpo: {loss: %s, label_smoothing: 0.1}, batch: {size: 8, %s}, "
                              "optimizer: {lr: 1e-2}",
                              names[loss], splits[s]);
            helper_outcome_of(&bench.run, 3, s == 0 ? &first : &other);
            helper_small_close(&bench);
            if (s > 0) assert_null(helper_outcome_gap(&first, &other));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_real_code), cmocka_unit_test(corroborate_differences),
        cmocka_unit_test(validate_first_loss),   cmocka_unit_test(verify_logged),
        cmocka_unit_test(verify_descent),        cmocka_unit_test(verify_simpo_is_free),
        cmocka_unit_test(verify_invariance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
