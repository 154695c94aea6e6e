/* SPDX-License-Identifier: Apache-2.0
 * Runs both models forward on the probe batch, then compares the two distributions at each label.
 * All arithmetic on logits is in f64, whatever the runs compute in. Writes to nothing but the
 * scratch of the runs. */
#include "experiment/probe.h"

#include <math.h>

#include "base/real.h"
#include "base/sum.h"
#include "experiment/pair.h"
#include "kernels/exponentials.h"
#include "model/model.h"
#include "trainer/run_pass.h"
#include "trainer/run_tensors.h"

double probe_logit(const struct probe_row *row, uint32_t token) {
    return form_get(row->logits, row->model->form, token);
}

static double add(double sum, double term) {
    return sum_chain_terms_f64_f64(sum, &term, 1);
}

/* A row of logits is read in blocks, which fit into the first-level cache. */
#define BLOCK ((uint32_t)512)

static uint32_t block_at(const struct probe_row *row, uint32_t first) {
    const uint32_t left = row->model->V - first;
    return left < BLOCK ? left : BLOCK;
}

static void read_block(const struct probe_row *row, uint32_t first, double out[BLOCK]) {
    const struct form form = row->model->form;
    const uint32_t count = block_at(row, first);
    const void *const from = (const unsigned char *)row->logits + (size_t)first * form.width;
    float carriers[BLOCK];
    if (form.dtype == DTYPE_F64) {
        form_widen(from, form, count, out);
        return;
    }
    form_widen(from, form, count, carriers);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (double)carriers[i];
}

static void find_best(struct probe_row *row) {
    double block[BLOCK];
    row->maximum = probe_logit(row, 0);
    for (uint32_t first = 0; first < row->model->V; first += BLOCK) {
        read_block(row, first, block);
        for (uint32_t i = 0; i < block_at(row, first); i++) {
            if (!(block[i] > row->maximum)) continue;
            row->maximum = block[i];
            row->best = first + i;
        }
    }
}

enum status probe_row_open(const struct run *run, uint32_t canonical, struct probe_row *out) {
    const struct model *const model = run_model(run);
    *out = (struct probe_row){.model = model, .row = run_batch(run)->canonical_label[canonical]};
    const size_t bytes = (size_t)model->V * model->form.width;
    double sum = 0.0, block[BLOCK];
    TRY(run_read(run, WINDOW_NOW, (const unsigned char *)model->logits + out->row * bytes, bytes,
                 &out->logits));
    find_best(out);
    for (uint32_t first = 0; first < model->V; first += BLOCK) {
        const uint32_t count = block_at(out, first);
        read_block(out, first, block);
        for (uint32_t i = 0; i < count; i++)
            block[i] -= out->maximum;
        exponentials(block, count);
        sum = sum_chain_terms_f64_f64(sum, block, count);
    }
    out->log_sum = real_log_f64(sum);
    return STATUS_OK;
}

double probe_log_prob(const struct probe_row *row, uint32_t token) {
    return (probe_logit(row, token) - row->maximum) - row->log_sum;
}

/* The log-probs of a block of tokens. */
static void read_log_probs(const struct probe_row *row, uint32_t first, double out[BLOCK]) {
    read_block(row, first, out);
    for (uint32_t i = 0; i < block_at(row, first); i++)
        out[i] = (out[i] - row->maximum) - row->log_sum;
}

static double divergence(const struct probe_row *a, const struct probe_row *b) {
    double sum = 0.0, share[BLOCK], gap[BLOCK], other[BLOCK];
    for (uint32_t first = 0; first < a->model->V; first += BLOCK) {
        const uint32_t count = block_at(a, first);
        read_log_probs(a, first, share);
        read_log_probs(b, first, other);
        for (uint32_t i = 0; i < count; i++)
            gap[i] = share[i] - other[i];
        exponentials(share, count);
        sum = sum_chain_products_f64_f64(sum, share, gap, count);
    }
    return sum;
}

/* Sums over the labels that were measured so far. */
struct probe_sums {
    double kl, top, error, labels;
};

static enum status add_sample(struct run *a, struct run *b, uint32_t sample,
                              struct probe_sums *sums) {
    struct run *const runs[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        run_fill_batch(runs[i], &sample, 1);
        TRY(run_forward_in_one_order(runs[i]));
    }
    for (uint32_t i = 0; i < run_batch(a)->label_count; i++) {
        struct probe_row x, y;
        TRY(probe_row_open(a, i, &x));
        TRY(probe_row_open(b, i, &y));
        const uint32_t target = run_batch(a)->label_target[x.row];
        const double gap = fabs(probe_log_prob(&x, target) - probe_log_prob(&y, target));
        sums->kl = add(sums->kl, divergence(&x, &y));
        sums->top += x.best == y.best ? 1.0 : 0.0; /* a count */
        sums->error = add(sums->error, real_exp_f64(gap));
    }
    sums->labels += (double)run_batch(a)->label_count; /* a count */
    return STATUS_OK;
}

enum status probe_measure(struct run *a, struct run *b, struct pair_record *out) {
    struct probe_sums sums = {0.0, 0.0, 0.0, 0.0};
    if (digest_compare(&run_dataset(a)->digest, &run_dataset(b)->digest) != 0 ||
        run_model(a)->V != run_model(b)->V)
        return STATUS_OK;
    for (uint32_t i = 0; i < PROBE_SAMPLES && i < run_dataset(a)->samples; i++)
        TRY(add_sample(a, b, i, &sums));
    if (!isfinite(sums.kl)) return STATUS_OK; /* logits that are not finite: no distribution */
    out->reals[PAIR_PROBE_KL] = sums.kl / sums.labels;
    out->reals[PAIR_PROBE_TOP1] = sums.top / sums.labels;
    out->reals[PAIR_PROBE_ERROR] = sums.error / sums.labels;
    return STATUS_OK;
}
