/* SPDX-License-Identifier: Apache-2.0
 * What the number formats do to steps of the printed LR: updates that are rounded away, and decay
 * that is quantised. This is arithmetic only and says what to expect, not what was seen. Reports of
 * both: meta-pytorch/torchtune#2254 (updates at 6e-7), Nerogar/OneTrainer#996 (decay).
 * docs/FORENSICS.md lists the checks.
 *
 * Invariant: nothing is said of a format that was not given. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

static double half_spacing(double value, enum dtype dtype) {
    return dtype_spacing(value, dtype) / 2;
}

/* Returns the least power of two from which on a step of size `lr` is rounded away, because half a
 * spacing there is more than the step (bf16: 2^8 lr, up to a binade). 0: the step is lost
 * everywhere, as spacings end at a least one. */
static double frozen_from(double lr, enum dtype dtype) {
    double binade = 0x1p-126;
    if (lr <= half_spacing(0.0, dtype)) return 0.0;
    while (lr > half_spacing(binade, dtype) && binade < 0x1p126)
        binade *= 2.0;
    return binade;
}

static enum status frozen_weights(struct doctor *doctor) {
    const struct doctor_options *options = doctor->options;
    const double peak = series_largest(&doctor->lr);
    if (!options->dtype_given || !options->master_none)
        return doctor_not_asked(doctor, "--dtype bf16 --master none");
    if (!(peak > 0.0)) return doctor_untestable(doctor, "no LR above 0");
    const enum dtype dtype = (enum dtype)options->dtype;
    const double from = frozen_from(peak, dtype);
    if (dtype == DTYPE_F64 || dtype == DTYPE_TF32 || from > 1.0) return STATUS_OK;
    size_t row = 0;
    while (!(doctor->lr.points[row].value >= peak))
        row++;
    TRY(doctor_found(doctor, "bf16_update_lost", from <= 0.0625 ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     doctor->lr.points[row].row,
                     "Weights in %s without a copy of higher precision: at the peak LR a step of "
                     "about one LR is rounded away for every weight%s%s%s%s.",
                     dtype_name(dtype), from > 0.0 ? " of magnitude " : "",
                     from > 0.0 ? word_about(from).text : "", from > 0.0 ? " or more" : "",
                     from == 0.0      ? ", of any magnitude"
                     : from <= 0.0625 ? ", which is most weights"
                                      : ", norm weights (1.0) among them"));
    TRY(doctor_evidence_lr(doctor, &doctor->lr.points[row]));
    TRY(doctor_evidence(doctor, "half a spacing of %s at %s is %s, more than the step",
                        dtype_name(dtype), word_about(from).text,
                        word_about(half_spacing(from, dtype)).text));
    return doctor_explain(
        doctor, "Adam's steps are about one LR, seldom much larger; the rounding is to nearest",
        "Keep float32 masters or round stochastically; count weights whose bits change "
        "in one update.");
}

/* ---- decay ---- */

/* Returns what the factor (1 - lr wd) in binary32 really takes away. */
static double decay_applied(double wanted) {
    return 1.0 - (double)(float)(1.0 - wanted);
}

static enum status decay(struct doctor *doctor) {
    const double wd = doctor->options->weight_decay;
    const struct series *lr = &doctor->lr;
    size_t none = 0, off = 0;
    const struct series_point *worst = NULL;
    if (!(wd > 0.0)) return doctor_not_asked(doctor, "--weight-decay X");
    for (size_t i = 0; i < lr->count; i++) {
        const double wanted = lr->points[i].value * wd;
        if (!(wanted > 0.0)) continue;
        const double ratio = decay_applied(wanted) / wanted;
        none += ratio <= 0.0;
        off += ratio < 0.9 || ratio > 1.1;
        if ((ratio < 0.9 || ratio > 1.1) && (worst == NULL || lr->points[i].value > worst->value))
            worst = &lr->points[i];
    }
    if (worst == NULL) return STATUS_OK;
    const double wanted = worst->value * wd;
    TRY(doctor_found(doctor, "decay_underflow", DOCTOR_POSSIBLE, worst->row,
                     "Weight decay by a float32 factor 1 - lr wd is off by over a tenth in %zu "
                     "rows, and nothing at all in %zu of them.",
                     off, none));
    TRY(doctor_evidence_lr(doctor, worst));
    TRY(doctor_evidence(doctor, "wanted lr wd = %s, applied %s (a multiple of 2^-24)",
                        word_about(wanted).text, word_about(decay_applied(wanted)).text));
    return doctor_explain(
        doctor,
        "holds for optimizers that multiply by the factor in float32 (torch, single and "
        "foreach); fused and folded forms round otherwise",
        "Two implementations of AdamW part here by a bias, not by noise: compare with "
        "the same form, or with decay 0.");
}

const struct doctor_check doctor_number_checks[] = {
    {"bf16_update_lost",
     "steps of the LR survive the weights' format",
     {LOG_LR_LOGGED},
     frozen_weights},
    {"decay_underflow", "decay survives a float32 factor", {LOG_LR_LOGGED}, decay},
    {NULL, NULL, {LOG_OTHER}, NULL}};
