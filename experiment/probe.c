/* SPDX-License-Identifier: Apache-2.0
 * Runs both models forward on the probe batch, then compares the two distributions at each label.
 * All arithmetic on logits is in f64, whatever the runs compute in. Writes to nothing but the
 * scratch of the runs. */
#include "experiment/probe.h"

#include <math.h>

#include "base/real.h"
#include "base/sum.h"
#include "experiment/pair.h"
#include "model/model.h"
#include "trainer/run_pass.h"
#include "trainer/run_tensors.h"

double probe_logit(const struct probe_row *row, uint32_t token) {
    return element_get(row->logits, row->model->compute, token);
}

static double add(double sum, double term) {
    return sum_chain_terms_f64_f64(sum, &term, 1);
}

enum status probe_row_open(const struct run *run, uint32_t canonical, struct probe_row *out) {
    const struct model *const model = run_model(run);
    *out = (struct probe_row){.model = model, .row = run_batch(run)->canonical_label[canonical]};
    const size_t bytes = (size_t)model->V * model->carrier;
    double sum = 0.0;
    TRY(run_read(run, WINDOW_NOW, (const unsigned char *)model->logits + out->row * bytes, bytes,
                 &out->logits));
    for (uint32_t v = 1; v < model->V; v++)
        if (probe_logit(out, v) > probe_logit(out, out->best)) out->best = v;
    out->maximum = probe_logit(out, out->best);
    for (uint32_t v = 0; v < model->V; v++)
        sum = add(sum, real_exp_f64(probe_logit(out, v) - out->maximum));
    out->log_sum = real_log_f64(sum);
    return STATUS_OK;
}

double probe_log_prob(const struct probe_row *row, uint32_t token) {
    return (probe_logit(row, token) - row->maximum) - row->log_sum;
}

static double divergence(const struct probe_row *a, const struct probe_row *b) {
    double sum = 0.0;
    for (uint32_t v = 0; v < a->model->V; v++) {
        const double x = probe_log_prob(a, v), share = real_exp_f64(x),
                     gap = x - probe_log_prob(b, v);
        sum = sum_chain_products_f64_f64(sum, &share, &gap, 1);
    }
    return sum;
}

enum status probe_measure(struct run *a, struct run *b, struct pair_record *out) {
    struct run *const runs[2] = {a, b};
    if (digest_compare(&run_dataset(a)->digest, &run_dataset(b)->digest) != 0 ||
        run_model(a)->V != run_model(b)->V)
        return STATUS_OK;
    uint32_t count = run_limits(a)->samples < run_limits(b)->samples ? run_limits(a)->samples
                                                                     : run_limits(b)->samples;
    for (int i = 0; i < 2; i++) {
        run_fill_probe(runs[i], count);
        TRY(run_forward_as_trained(runs[i]));
    }
    double kl = 0.0, top = 0.0, error = 0.0, labels = (double)run_batch(a)->label_count;
    for (uint32_t i = 0; i < run_batch(a)->label_count; i++) {
        struct probe_row x, y;
        TRY(probe_row_open(a, i, &x));
        TRY(probe_row_open(b, i, &y));
        uint32_t target = run_batch(a)->label_target[x.row];
        kl = add(kl, divergence(&x, &y));
        top += x.best == y.best ? 1.0 : 0.0; /* a count */
        error =
            add(error, real_exp_f64(fabs(probe_log_prob(&x, target) - probe_log_prob(&y, target))));
    }
    if (!isfinite(kl)) return STATUS_OK; /* logits that are not finite form no distribution */
    out->reals[PAIR_PROBE_KL] = kl / labels;
    out->reals[PAIR_PROBE_TOP1] = top / labels;
    out->reals[PAIR_PROBE_ERROR] = error / labels;
    return STATUS_OK;
}
