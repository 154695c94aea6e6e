/* SPDX-License-Identifier: Apache-2.0
 * Runs both models forward on the probe batch, then compares the two distributions at each label.
 * All arithmetic on logits is in f64, whatever the runs compute in. Writes to nothing but the
 * scratch of the runs. */
#include "experiment/probe.h"

#include <math.h>
#include <string.h>

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

/* Whether a block may hold a number above `than`: looked at in lanes, since few blocks do. */
static int rises(const double *block, uint32_t count, double than) {
    enum { LANES = 16 };
    double most[LANES];
    int risen = 0;
    for (uint32_t lane = 0; lane < LANES; lane++)
        most[lane] = than;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            most[lane] = block[i + lane] > most[lane] ? block[i + lane] : most[lane];
    for (; i < count; i++)
        most[0] = block[i] > most[0] ? block[i] : most[0];
    for (uint32_t lane = 0; lane < LANES; lane++)
        risen |= most[lane] > than;
    return risen;
}

static void find_best(struct probe_row *row) {
    double block[BLOCK];
    row->maximum = probe_logit(row, 0);
    for (uint32_t first = 0; first < row->model->V; first += BLOCK) {
        const uint32_t count = block_at(row, first);
        read_block(row, first, block);
        if (!rises(block, count, row->maximum)) continue;
        for (uint32_t i = 0; i < count; i++) {
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

static enum status forward(struct run *run, uint32_t sample) {
    run_fill_batch(run, &sample, 1);
    return run_forward_in_one_order(run);
}

/* Adds the label `i` of the sample that both batches hold. */
static enum status add_label(const struct probe_row *x, const struct run *a, const struct run *b,
                             uint32_t i, struct probe_sums *sums) {
    struct probe_row y;
    TRY(probe_row_open(b, i, &y));
    const uint32_t target = run_batch(a)->label_target[x->row];
    const double gap = fabs(probe_log_prob(x, target) - probe_log_prob(&y, target));
    sums->kl = add(sums->kl, divergence(x, &y));
    sums->top += x->best == y.best ? 1.0 : 0.0; /* a count */
    sums->error = add(sums->error, real_exp_f64(gap));
    return STATUS_OK;
}

/* `kept`: the rows of `a`, or NULL where it has to be asked. */
static enum status add_sample(const struct probe_row *kept, struct run *a, struct run *b,
                              uint32_t sample, struct probe_sums *sums) {
    if (kept == NULL)
        TRY(forward(a, sample));
    else
        run_fill_batch(a, &sample, 1);
    TRY(forward(b, sample));
    const uint32_t count = run_batch(a)->label_count;
    for (uint32_t i = 0; i < count; i++) {
        struct probe_row x;
        if (kept == NULL) TRY(probe_row_open(a, i, &x));
        TRY(add_label(kept == NULL ? &x : &kept[i], a, b, i, sums));
    }
    sums->labels += (double)count; /* a count */
    return STATUS_OK;
}

enum status probe_measure_kept(const struct probe_kept *kept, struct run *a, struct run *b,
                               struct pair_record *out) {
    const struct probe_row *row = kept->row;
    struct probe_sums sums = {0.0, 0.0, 0.0, 0.0};
    if (digest_compare(&run_dataset(a)->digest, &run_dataset(b)->digest) != 0 ||
        run_model(a)->V != run_model(b)->V)
        return STATUS_OK;
    for (uint32_t i = 0; i < PROBE_SAMPLES && i < run_dataset(a)->samples; i++) {
        TRY(add_sample(i < kept->samples ? row : NULL, a, b, i, &sums));
        if (i < kept->samples) row += run_batch(a)->label_count;
    }
    if (!isfinite(sums.kl)) return STATUS_OK; /* logits that are not finite: no distribution */
    out->reals[PAIR_PROBE_KL] = sums.kl / sums.labels;
    out->reals[PAIR_PROBE_TOP1] = sums.top / sums.labels;
    out->reals[PAIR_PROBE_ERROR] = sums.error / sums.labels;
    return STATUS_OK;
}

enum status probe_measure(struct run *a, struct run *b, struct pair_record *out) {
    return probe_measure_kept(&(struct probe_kept){0, NULL}, a, b, out);
}

/* ---- what is kept of one run ---- */

static size_t row_bytes(const struct run *run) {
    return (size_t)run_model(run)->V * run_model(run)->form.width;
}

static uint32_t labels_of(const struct dataset *dataset, uint32_t sample) {
    uint32_t labels = 0;
    for (uint32_t side = 0; side < dataset->sides; side++)
        labels += dataset_side(dataset, sample, side)->labels;
    return labels;
}

/* As many samples as need no more bytes than `most`, and their labels. */
static uint32_t fitting(const struct run *run, size_t most, uint32_t *out_labels) {
    const struct dataset *const dataset = run_dataset(run);
    const size_t each = row_bytes(run) + sizeof(struct probe_row);
    uint32_t samples = 0;
    *out_labels = 0;
    while (samples < PROBE_SAMPLES && samples < dataset->samples) {
        const uint32_t labels = *out_labels + labels_of(dataset, samples);
        if (labels > most / each) break;
        *out_labels = labels;
        samples++;
    }
    return samples;
}

size_t probe_kept_bytes(const struct run *run, size_t most) {
    uint32_t labels;
    (void)fitting(run, most, &labels);
    return labels * (row_bytes(run) + sizeof(struct probe_row));
}

/* A row that stays when another one is opened. */
static enum status keep_row(const struct run *run, uint32_t i, unsigned char *logits,
                            struct probe_row *out) {
    TRY(probe_row_open(run, i, out));
    memcpy(logits, out->logits, row_bytes(run));
    out->logits = logits;
    return STATUS_OK;
}

enum status probe_keep(struct run *run, size_t most, struct arena *arena, struct probe_kept *out) {
    uint32_t labels, kept = 0;
    unsigned char *logits;
    out->samples = fitting(run, most, &labels);
    TRY(arena_take(arena, labels, sizeof *out->row, "probe", &out->row));
    TRY(arena_take(arena, labels, row_bytes(run), "probe", &logits));
    for (uint32_t sample = 0; sample < out->samples; sample++) {
        TRY(forward(run, sample));
        for (uint32_t i = 0; i < run_batch(run)->label_count; i++, kept++)
            TRY(keep_row(run, i, logits + kept * row_bytes(run), &out->row[kept]));
    }
    return STATUS_OK;
}
