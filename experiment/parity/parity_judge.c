/* SPDX-License-Identifier: Apache-2.0
 * Turns the figures of components into bands, findings and sums over layers. It measures nothing.
 * Invariant: a comparison with NaN is never within. */
#include <math.h>
#include <string.h>

#include "experiment/parity/parity_components.h"
#include "model/model_ops.h"

#define OVER_LINE 0.8
#define SPARSE_LINE 3.0  /* times the largest of low and its replicas; chosen here */
#define SPARSE_LEAST 1.0 /* the least that counts as theirs, in units of rounding */

const char *const parity_component_names[PARITY_COMPONENTS] = {
    "norm", "embedding",      "linear", "rope",  "attention", "activation", "residual",
    "loss", "attention part", "MLP",    "block", "whole",     "tensor"};
const char *const parity_side_names[PARITY_SIDES] = {"output", "input gradient", "weight gradient",
                                                     "first update"};

/* An R of many times A's rounding may still be rounding, to fewer bits. By its size, an error below
 * 2^-7, the spacing of bf16, cannot be told from that. */
const char *parity_row_words(const struct parity_component_row *row) {
    static const char *const words[PARITY_BANDS] = {
        [PARITY_BAND_EXACT] = "every bit",
        [PARITY_BAND_OVER] = "rounds less than A",
        [PARITY_BAND_SAME] = "as rounding has it",
        [PARITY_BAND_POSSIBLE] = "possible fault: a multiplier, or where it rounds",
        [PARITY_BAND_LIKELY] = "likely fault",
        [PARITY_BAND_MISSING] = "part of the algorithm is missing",
        [PARITY_BAND_WRONG] = "another computation"};
    if (row->not_finite) return row->broken > 0 ? "not finite" : "not finite in A";
    if (row->band >= PARITY_BAND_POSSIBLE && row->explained > 0.5) return "a factor on the whole";
    if (row->band >= PARITY_BAND_LIKELY && row->relative < 0x1p-7)
        return "rounds to fewer bits, or a small term differs";
    return words[row->band];
}

static enum parity_band band_of(double ratio, double equal) {
    if (!(ratio < 100.0)) return PARITY_BAND_WRONG;
    if (ratio >= 10.0) return PARITY_BAND_MISSING;
    if (ratio >= 3.0) return PARITY_BAND_LIKELY;
    if (ratio >= PARITY_R_LINE) return PARITY_BAND_POSSIBLE;
    if (equal >= 1.0) return PARITY_BAND_EXACT;
    return ratio < OVER_LINE ? PARITY_BAND_OVER : PARITY_BAND_SAME;
}

/* Whether an operation has no freedom to round: a look-up, or one addition. */
static int is_exact_op(const struct parity_component_row *row) {
    return row->level == PARITY_OPS && row->side == PARITY_OUTPUT &&
           (row->component == PARITY_EMBEDDING || row->component == PARITY_RESIDUAL);
}

/* The lowest band that is a finding. End to end, B's roundings are not low's: R of a tensor of few
 * elements spreads by itself, and Adam's first update is a sign times the LR, so that a few
 * gradients near 0 decide. */
static enum parity_band least_band(const struct parity_component_row *row) {
    if (row->component == PARITY_TENSOR && row->side == PARITY_UPDATE) return PARITY_BANDS;
    if (row->component == PARITY_TENSOR || row->side == PARITY_UPDATE) return PARITY_BAND_LIKELY;
    return PARITY_BAND_POSSIBLE;
}

/* Judges a row. A single element is judged only where inputs are the same and its row has a scale,
 * because elsewhere its error has nothing to be held against. An R of replicas above 1 means that
 * low's own error was small by luck, and R is then held against theirs. */
static void judge_row(struct parity_component_row *row) {
    row->median = parity_sample_quantile(&row->ratio, 0.5);
    row->high = parity_sample_quantile(&row->ratio, 0.95);
    row->most = parity_sample_quantile(&row->ratio, 1.0);
    row->replica_high = parity_sample_quantile(&row->replica, 0.95);
    row->equal = row->equal > 1.0 - 1e-12 ? 1.0 : row->equal;
    const double own = row->replica_high > 1.0 ? row->replica_high : 1.0;
    row->band = row->not_finite ? PARITY_BAND_WRONG : band_of(row->median / own, row->equal);
    const double line =
        SPARSE_LINE * (row->replica_sparse > SPARSE_LEAST ? row->replica_sparse : SPARSE_LEAST);
    row->sparse_stands_out = row->level == PARITY_OPS && !row->vector && !(row->sparse <= line);
    row->not_exact = is_exact_op(row) && row->equal < 1.0;
    const enum parity_band least = least_band(row);
    const int outside =
        row->band >= least || row->sparse_stands_out || row->not_exact || row->not_finite;
    row->finding = outside ? PARITY_OUTSIDE : PARITY_WITHIN;
}

static int is_worse(const struct parity_component_row *row,
                    const struct parity_component_row *than) {
    if (than == NULL) return 1;
    if (row->not_finite != than->not_finite) return row->not_finite;
    return !isnan(than->median) && !(row->median <= than->median);
}

static void add_to_sum(struct parity_component_sum *sum, const struct parity_component_row *row) {
    sum->rows++;
    sum->outside += row->finding == PARITY_OUTSIDE;
    sum->equal += row->equal;
    if (is_worse(row, sum->worst)) sum->worst = row;
    const struct parity_component_row *sparse = sum->worst_sparse;
    if (sparse == NULL || (!isnan(sparse->sparse) && !(row->sparse <= sparse->sparse)))
        sum->worst_sparse = row;
}

/* Tells whether R of the residual stream, with its own inputs, stays above the line from some layer
 * on (a step) or falls below it again (a spike). */
static void judge_shape(struct parity_components *out) {
    int above = 0, fell = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        const struct parity_component_row *row = &out->rows[i];
        if (row->level != PARITY_WHOLE || row->side != PARITY_OUTPUT || row->layer == PASS_NO_LAYER)
            continue;
        const int over = row->band >= PARITY_BAND_POSSIBLE;
        if (over && !above) out->shape_layer = row->layer;
        above |= over;
        fell |= above && !over;
    }
    if (above) out->shape = fell ? PARITY_SPIKE : PARITY_STEP;
}

void parity_judge_components(struct parity_components *out, int same_dtype) {
    out->finding = PARITY_WITHIN;
    for (uint32_t i = 0; i < out->count; i++) {
        struct parity_component_row *row = &out->rows[i];
        judge_row(row);
        add_to_sum(&out->sums[row->component][row->side], row);
        if (row->finding == PARITY_OUTSIDE) out->finding = PARITY_OUTSIDE;
    }
    for (int c = 0; c < PARITY_COMPONENTS; c++)
        for (int s = 0; s < PARITY_SIDES; s++)
            if (out->sums[c][s].rows > 0) out->sums[c][s].equal /= (double)out->sums[c][s].rows;
    judge_shape(out);
    if (same_dtype && out->rope.apart > 0) out->finding = PARITY_OUTSIDE;
}
