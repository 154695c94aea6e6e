/* SPDX-License-Identifier: Apache-2.0
 * Runs all runs forward on the same batches, then compares them label by label. All arithmetic on
 * logits is in f64. It opens one replica and closes it; nothing is trained. */
#include "experiment/parity/parity_logits.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "experiment/parity/parity_stats.h"
#include "experiment/probe.h"

/* exp(-d) - 1 + d. Up to 2^-6, where the difference would cancel, it is the Taylor series up to d^5
 * / 120, whose next term is at most 2^-32 of the result there. */
static double excess(double d) {
    if (fabs(d) > 0x1p-6) return (real_exp_f64(-d) - 1.0) + d;
    const double cube = d * (1.0 / 6.0 - d * (1.0 / 24.0 - d / 120.0));
    return d * d * (0.5 - cube);
}

/* KL(a || b) as the sum of p (q / p - 1 - log(q / p)): p and q add up to 1, and no term is
 * negative. */
static double divergence(const struct probe_row *a, const struct probe_row *b) {
    double sum = 0.0;
    for (uint32_t v = 0; v < a->model->V; v++) {
        const double x = probe_log_prob(a, v);
        sum = real_fma_f64(real_exp_f64(x), excess(x - probe_log_prob(b, v)), sum);
    }
    return sum;
}

struct measuring {
    const struct parity *parity;
    struct parity_logits *out;
    const struct run *truth; /* high; A where there is none */
    struct run *replica;
    double *replica_kl;      /* (replicas + 1) sums of the replicas, then of low */
    struct parity_sample kl; /* KL(truth || B) by label */
    double cosine, top, direct, logits, equal;
};

static struct parity_bin *bin_of(struct parity_logits *out, uint32_t position) {
    uint32_t bin = 0;
    while (bin + 1 < PARITY_BINS && position >> bin != 0)
        bin++;
    if (bin >= out->bin_count) out->bin_count = bin + 1;
    return &out->bins[bin];
}

static uint32_t position_of(const struct run *run, uint32_t canonical) {
    const struct batch *batch = run_batch(run);
    const uint32_t label = batch->canonical_label[canonical];
    for (uint32_t s = 0; s < batch->sequence_count; s++)
        if (label - batch->label_first[s] < batch->label_length[s])
            return batch->label_row[label] - batch->sequences[s].row;
    return 0;
}

/* Adds cosine, largest difference and equal bits of two rows of logits. */
static void add_difference(struct measuring *m, const struct probe_row *a,
                           const struct probe_row *b, struct parity_bin *bin) {
    double xx = 0.0, yy = 0.0, xy = 0.0;
    for (uint32_t v = 0; v < a->model->V; v++) {
        const double x = probe_logit(a, v), y = probe_logit(b, v), apart = fabs(x - y);
        xx = real_fma_f64(x, x, xx);
        yy = real_fma_f64(y, y, yy);
        xy = real_fma_f64(x, y, xy);
        m->equal += memcmp(&x, &y, sizeof x) == 0 ? 1.0 : 0.0;
        bin->largest = parity_larger(bin->largest, apart);
    }
    const double cosine =
        xx == 0.0 && yy == 0.0 ? 1.0 : xy / (real_sqrt_f64(xx) * real_sqrt_f64(yy));
    m->logits += (double)a->model->V;
    m->cosine = parity_add(m->cosine, cosine);
    m->out->cosine_least = parity_smaller(m->out->cosine_least, cosine);
    m->out->largest = parity_larger(m->out->largest, bin->largest);
}

static enum status add_label(struct measuring *m, uint32_t i) {
    struct probe_row a, b, truth;
    TRY(probe_row_open(m->parity->run[PARITY_A], i, &a));
    TRY(probe_row_open(m->parity->run[PARITY_B], i, &b));
    TRY(probe_row_open(m->truth, i, &truth)); /* where it is A, the same row again */
    struct parity_bin *bin = bin_of(m->out, position_of(m->parity->run[PARITY_A], i));
    const double kl = divergence(&truth, &b);
    add_difference(m, &a, &b, bin);
    bin->labels++;
    bin->kl = parity_add(bin->kl, kl);
    parity_sample_add(&m->kl, kl);
    m->direct = parity_add(m->direct, divergence(&a, &b));
    m->top += a.best == b.best ? 1.0 : 0.0;
    m->out->labels++;
    return STATUS_OK;
}

/* Adds KL(truth || run) of every label to sum `at`. */
static enum status add_calibration(struct measuring *m, const struct run *run, uint32_t at) {
    for (uint32_t i = 0; i < run_batch(run)->label_count; i++) {
        struct probe_row truth, b;
        TRY(probe_row_open(m->truth, i, &truth));
        TRY(probe_row_open(run, i, &b));
        m->replica_kl[at] = parity_add(m->replica_kl[at], divergence(&truth, &b));
    }
    return STATUS_OK;
}

static enum status add_replicas(struct measuring *m, const uint32_t *samples, uint32_t count,
                                uint32_t batch) {
    const uint32_t replicas = m->parity->request->replicas;
    for (uint32_t r = 0; r < replicas; r++) {
        TRY(parity_tick(m->parity, "logits of replicas", (uint64_t)batch * replicas + r,
                        (uint64_t)m->parity->request->batches * replicas));
        TRY(parity_forward(m->replica, samples, count, m->parity->request->seed + 1000 + r));
        TRY(add_calibration(m, m->replica, r));
    }
    TRY(parity_forward(m->parity->run[PARITY_LOW], samples, count, m->parity->request->seed));
    return add_calibration(m, m->parity->run[PARITY_LOW], replicas);
}

static enum status measure_batch(struct measuring *m, uint32_t *samples, uint32_t number) {
    const struct parity *parity = m->parity;
    const uint32_t count = parity_batch_size(parity);
    parity_batch(parity, number, samples);
    TRY(parity_forward(parity->run[PARITY_A], samples, count, parity->request->seed));
    TRY(parity_forward(parity->run[PARITY_B], samples, count, parity->request->seed + 1));
    if (m->truth != parity->run[PARITY_A])
        TRY(parity_forward(parity->run[PARITY_HIGH], samples, count, 0));
    for (uint32_t i = 0; i < run_batch(parity->run[PARITY_A])->label_count; i++)
        TRY(add_label(m, i));
    return add_replicas(m, samples, count, number);
}

static void judge(struct parity_logits *out) {
    out->finding = PARITY_OUTSIDE;
    if (!isfinite(out->kl) || !isfinite(out->threshold) || isnan(out->cosine_least))
        out->why = "not finite";
    else if (!(out->kl <= out->threshold))
        out->why = "KL is above its threshold";
    else if (!(out->cosine_least >= PARITY_COSINE_LINE))
        out->why = "a cosine is below 0.95";
    else if (!(out->top > PARITY_TOP_LINE))
        out->why = "A and B agree on at most half of the likeliest tokens";
    else
        out->finding = PARITY_WITHIN;
}

static void close(struct measuring *m) {
    struct parity_logits *out = m->out;
    const double labels = (double)out->labels;
    const double line = PARITY_R_LINE * PARITY_R_LINE;
    out->cosine_mean = m->cosine / labels;
    out->top = m->top / labels;
    out->equal = m->equal / m->logits;
    out->kl_direct = m->direct / labels;
    out->kl = parity_sample_mean(&m->kl);
    out->kl_99 = parity_sample_quantile(&m->kl, 0.99);
    for (uint32_t b = 0; b < out->bin_count; b++) {
        out->bins[b].from = b == 0 ? 0 : 1u << (b - 1);
        out->bins[b].to = 1u << b;
        if (out->bins[b].labels > 0) out->bins[b].kl /= (double)out->bins[b].labels;
    }
    out->replica_least = (double)INFINITY;
    for (uint32_t r = 0; r <= out->replicas; r++) {
        const double mean = m->replica_kl[r] / labels;
        out->replica_least = parity_smaller(out->replica_least, mean);
        out->replica_largest = parity_larger(out->replica_largest, mean);
    }
    out->alpha = 1.0 / ((double)out->replicas + 2.0);
    out->threshold = line * out->replica_largest;
    judge(out);
}

static enum status measure(struct measuring *m) {
    const struct parity *parity = m->parity;
    struct arena *arena = parity->arena;
    uint32_t *samples;
    TRY(arena_take(arena, parity_batch_size(parity), sizeof *samples, "logits", &samples));
    TRY(arena_take(arena, m->out->replicas + (size_t)1, sizeof *m->replica_kl, "logits",
                   &m->replica_kl));
    TRY(parity_sample_open(
        &m->kl, (size_t)parity->request->batches * run_limits(parity->run[PARITY_A])->tokens,
        arena));
    for (uint32_t b = 0; b < parity->request->batches; b++)
        TRY(measure_batch(m, samples, b));
    close(m);
    return STATUS_OK;
}

enum status parity_measure_logits(const struct parity *parity, struct parity_logits *out) {
    struct run *replica = NULL;
    struct measuring m = {.parity = parity, .out = out, .truth = parity->run[PARITY_HIGH]};
    memset(out, 0, sizeof *out);
    out->why = "";
    out->cosine_least = 1.0;
    out->replicas = parity->request->replicas;
    if (m.truth == NULL) m.truth = parity->run[PARITY_A];
    TRY(parity_replica_open(parity, parity->request->seed, &replica));
    m.replica = replica;
    const enum status status = measure(&m);
    run_close(replica);
    return status == STATUS_OK ? parity_settle(parity) : status;
}
