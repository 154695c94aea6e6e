/* SPDX-License-Identifier: Apache-2.0
 * Runs both models forward on the probe batch, then compares the two distributions at each label.
 * All arithmetic on logits is in f64, whatever the runs compute in. Writes to nothing but the
 * scratch of the runs. */
#include "experiment/probe.h"

#include <math.h>

#include "base/real.h"
#include "base/sum.h"
#include "model/model.h"
#include "trainer/run_pass.h"

/* The logits of one label row, in f64, with the two numbers that turn them into log-probabilities.
 */
struct row_view {
    const struct model *model;
    size_t row;
    double maximum, log_sum;
};

static double element(const void *values, enum dtype dtype, size_t at) {
    return dtype == DTYPE_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

static double logit(const struct row_view *view, uint32_t v) {
    return element(view->model->logits, view->model->compute, view->row * view->model->V + v);
}

static uint32_t best(const struct row_view *view) {
    uint32_t found = 0;
    for (uint32_t v = 1; v < view->model->V; v++)
        if (logit(view, v) > logit(view, found)) found = v;
    return found;
}

static double add(double sum, double term) {
    return sum_chain_terms_f64_f64(sum, &term, 1);
}

/* Computes the maximum and the sum again in f64, because those that the forward pass kept are
 * rounded to its accumulation dtype. */
static struct row_view open_row(const struct run *run, uint32_t canonical) {
    struct row_view view = {run_model(run), run_batch(run)->canonical_label[canonical], 0.0, 0.0};
    double sum = 0.0;
    view.maximum = logit(&view, best(&view));
    for (uint32_t v = 0; v < run_model(run)->V; v++)
        sum = add(sum, real_exp_f64(logit(&view, v) - view.maximum));
    view.log_sum = real_log_f64(sum);
    return view;
}

static double log_prob(const struct row_view *view, uint32_t v) {
    return (logit(view, v) - view->maximum) - view->log_sum;
}

static double divergence(const struct row_view *a, const struct row_view *b) {
    double sum = 0.0;
    for (uint32_t v = 0; v < a->model->V; v++) {
        const double x = log_prob(a, v), share = real_exp_f64(x), gap = x - log_prob(b, v);
        sum = sum_chain_products_f64_f64(sum, &share, &gap, 1);
    }
    return sum;
}

void probe_measure(struct run *a, struct run *b, struct pair_record *out) {
    struct run *const runs[2] = {a, b};
    if (digest_compare(&run_dataset(a)->digest, &run_dataset(b)->digest) != 0 ||
        run_model(a)->V != run_model(b)->V)
        return;
    uint32_t count = run_limits(a)->samples < run_limits(b)->samples ? run_limits(a)->samples
                                                                     : run_limits(b)->samples;
    for (int i = 0; i < 2; i++) {
        run_fill_probe(runs[i], count);
        run_forward_as_trained(runs[i]);
    }
    double kl = 0.0, top = 0.0, error = 0.0, labels = (double)run_batch(a)->label_count;
    for (uint32_t i = 0; i < run_batch(a)->label_count; i++) {
        struct row_view x = open_row(a, i), y = open_row(b, i);
        uint32_t target = run_batch(a)->label_target[x.row];
        kl = add(kl, divergence(&x, &y));
        top += best(&x) == best(&y) ? 1.0 : 0.0; /* a count */
        error = add(error, real_exp_f64(fabs(log_prob(&x, target) - log_prob(&y, target))));
    }
    if (!isfinite(kl)) return; /* logits that are not finite form no distribution */
    out->reals[PAIR_PROBE_KL] = kl / labels;
    out->reals[PAIR_PROBE_TOP1] = top / labels;
    out->reals[PAIR_PROBE_ERROR] = error / labels;
}
