/* SPDX-License-Identifier: Apache-2.0
 * Decides which signature a first difference has. The signatures are tried one after another and
 * the first that fits is named. Every threshold is derived at its function from dtypes, lengths and
 * numbers of roundings. */
#include "experiment/locate/signature.h"

#include <math.h>
#include <string.h>

#include "base/real.h"

/* Sums of squares are kept in f64. A residual is a difference of such sums, so what is below the
 * square root of their resolution, 2^-26, is their own rounding. */
#define SUMS_RESOLVE 0x1p-26

const char *signature_name(enum signature_kind kind) {
    static const char *const names[SIGNATURE_KINDS] = {
        [SIGNATURE_NONE] = "no known signature",
        [SIGNATURE_BACKWARD_ORDER] = "backward-order",
        [SIGNATURE_ROPE_TABLE] = "rope-table",
        [SIGNATURE_ONE_TENSOR] = "one-tensor",
        [SIGNATURE_CONSTANT_RATIO] = "constant-ratio",
        [SIGNATURE_LR_RATIO] = "lr-ratio",
    };
    return names[kind];
}

static double at_least(double value, double least) {
    return value > least ? value : least;
}

/* |b - r a| */
static double residual_of(const struct signature_sums *sums, double ratio) {
    const double square = sums->bb - 2.0 * ratio * sums->ab + ratio * ratio * sums->aa;
    return square > 0.0 ? real_sqrt_f64(square) : 0.0;
}

enum which_sums { SUMS_GRADIENT, SUMS_TAKEN, SUMS_UPDATE };

static const struct signature_sums *sums_of(const struct signature_tensor *tensor,
                                            enum which_sums which) {
    if (which == SUMS_GRADIENT) return &tensor->gradient;
    return which == SUMS_TAKEN ? &tensor->taken : &tensor->update;
}

/* 1: all tensors are measured and equal; 0: some differ; -1: not all are measured. */
static int all_equal(const struct signature_input *input, enum which_sums which) {
    int equal = 1;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_sums *sums = sums_of(&input->tensors[i], which);
        if (!sums->measured) return -1;
        if (sums->dd != 0.0) equal = 0;
    }
    return equal;
}

/* The ratio b / a over all tensors, by least squares; NaN where a is zero. */
static double common_ratio(const struct signature_input *input, enum which_sums which) {
    double ab = 0.0, aa = 0.0;
    for (uint32_t i = 0; i < input->count; i++) {
        ab += sums_of(&input->tensors[i], which)->ab;
        aa += sums_of(&input->tensors[i], which)->aa;
    }
    return aa > 0.0 ? ab / aa : (double)NAN;
}

/* Whether every tensor's gradient in B is one ratio times that in A, but for `threshold` relative
 * to its norm. At least two tensors must have a gradient, since one always fits. */
static int constant_ratio(const struct signature_input *input, enum which_sums which,
                          double threshold, struct signature *out) {
    const double ratio = common_ratio(input, which);
    double worst = 0.0;
    uint32_t told = 0; /* tensors that have a gradient at all */
    if (!isfinite(ratio) || !(ratio > 0.0) || !(fabs(ratio - 1.0) > threshold)) return 0;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_sums *sums = sums_of(&input->tensors[i], which);
        if (!(sums->bb > 0.0) && !(sums->aa > 0.0)) continue;
        const double residual = residual_of(sums, ratio) / real_sqrt_f64(sums->bb);
        if (!(residual <= threshold)) return 0;
        worst = at_least(worst, residual);
        told++;
    }
    if (told < 2) return 0;
    *out = (struct signature){.kind = SIGNATURE_CONSTANT_RATIO,
                              .ratio = ratio,
                              .residual = worst,
                              .threshold = threshold,
                              .where = which == SUMS_TAKEN ? "gradients that optimize takes"
                                                           : "gradients"};
    return 1;
}

/* The threshold before clipping: each result went through at most `roundings` roundings, each by
 * half an ulp relative to it. After it: clipping and unscaling round each of the two stored
 * gradients once. */
static int any_constant_ratio(const struct signature_input *input, struct signature *out) {
    const int equal = all_equal(input, SUMS_GRADIENT);
    if (!input->forward_equal || equal < 0) return 0;
    if (!equal)
        return constant_ratio(input, SUMS_GRADIENT,
                              at_least(input->roundings * input->unit, SUMS_RESOLVE), out);
    if (all_equal(input, SUMS_TAKEN) != 0) return 0;
    return constant_ratio(input, SUMS_TAKEN, at_least(4.0 * input->gradient_unit, SUMS_RESOLVE),
                          out);
}

/* The relative distance of the gradients that arrive at a layer's output. down_proj's gradient is
 * that gradient times activations that are equal here, so it shows whether what came from above
 * was. */
static int layer_distance(const struct signature_input *input, uint32_t layer, double *out) {
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_tensor *tensor = &input->tensors[i];
        if (tensor->role != ROLE_DOWN || tensor->layer != layer || !tensor->gradient.measured)
            continue;
        if (!(tensor->gradient.aa > 0.0)) return 0;
        *out = real_sqrt_f64(tensor->gradient.dd / tensor->gradient.aa);
        return 1;
    }
    return 0;
}

/* The gradient is exact where the last layer's output gets it and differs most at the first layer,
 * with more pairs of layers that grow towards the first than pairs that shrink. And it differs by
 * no more than another order of sums can cause: `terms` - 1 additions and `roundings` roundings in
 * every layer, in both runs. */
static int backward_order(const struct signature_input *input, struct signature *out) {
    if (!input->forward_equal || !input->backward_first || input->layers < 2) return 0;
    double first = 0.0, above = 0.0;
    int64_t growing = 0;
    for (uint32_t layer = 0; layer < input->layers; layer++) {
        double here = 0.0;
        if (!layer_distance(input, layer, &here)) return 0;
        if (layer == 0) first = here;
        if (here > first) return 0;
        for (uint32_t below = 0; below < layer; below++) {
            double other = 0.0;
            if (!layer_distance(input, below, &other)) return 0;
            growing += (other > here) - (other < here);
        }
        above = here;
    }
    const double threshold = 2.0 * (double)input->layers *
                             ((double)input->terms + (double)input->roundings) * input->unit;
    if (above != 0.0 || !(first > 0.0) || growing <= 0 || first > threshold) return 0;
    *out = (struct signature){
        .kind = SIGNATURE_BACKWARD_ORDER, .residual = first, .threshold = threshold};
    return 1;
}

static double position_distance(const struct signature_position *position) {
    return position->squares > 0.0 ? real_sqrt_f64(position->distance / position->squares) : 0.0;
}

/* Kendall's sum over pairs of positions is held against its standard deviation without any trend,
 * sqrt(n (n - 1) (2 n + 5) / 18): three of them are one chance in 740. That many take 7 positions.
 */
static int rope_table(const struct signature_input *input, struct signature *out) {
    if (!input->rotary_first || input->position_count < 8 || input->positions[0].differing != 0)
        return 0;
    double growing = 0.0;
    const double n = (double)(input->position_count - 1);
    for (uint32_t p = 1; p < input->position_count; p++)
        for (uint32_t q = 1; q < p; q++) {
            const double here = position_distance(&input->positions[p]);
            const double before = position_distance(&input->positions[q]);
            growing += (double)((here > before) - (here < before));
        }
    const double deviation = real_sqrt_f64(n * (n - 1.0) * (2.0 * n + 5.0) / 18.0);
    if (!(growing > 3.0 * deviation)) return 0;
    *out = (struct signature){
        .kind = SIGNATURE_ROPE_TABLE, .residual = growing / deviation, .threshold = 3.0};
    return 1;
}

/* The gradients have to be known as equal. What the optimizer took in is seen only where it ran, so
 * it must only not be known to differ. */
static int equal_into_optimizer(const struct signature_input *input) {
    return input->forward_equal && all_equal(input, SUMS_GRADIENT) == 1 &&
           all_equal(input, SUMS_TAKEN) != 0;
}

/* What rounding does to an update: both were rounded into weights, at most twice each (decay, then
 * the step), by half an ulp of the weight. */
static double update_rounding(const struct signature_input *input,
                              const struct signature_tensor *tensor, double ratio) {
    return 2.0 * input->weight_unit * real_sqrt_f64(tensor->weight) * (1.0 + fabs(ratio)) +
           SUMS_RESOLVE * real_sqrt_f64(tensor->update.bb);
}

/* The ratio b / a by least squares, each tensor in units of its weights; infinite where A does not
 * move. */
static double update_ratio(const struct signature_input *input) {
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_tensor *tensor = &input->tensors[i];
        if (!(tensor->weight > 0.0)) continue;
        ab += tensor->update.ab / tensor->weight;
        aa += tensor->update.aa / tensor->weight;
        bb += tensor->update.bb / tensor->weight;
    }
    if (aa > 0.0) return ab / aa;
    return bb > 0.0 ? (double)INFINITY : (double)NAN;
}

/* By how much b misses r a in the worst tensor, as a share of what rounding can do. */
static double worst_residual(const struct signature_input *input, double ratio) {
    double worst = 0.0;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_tensor *tensor = &input->tensors[i];
        const double rounded = update_rounding(input, tensor, ratio);
        const double residual = residual_of(&tensor->update, ratio);
        if (residual > 0.0) worst = at_least(worst, residual / rounded);
    }
    return worst;
}

/* Whether the updates rule out the ratio `other`: some tensor misses it by more than rounding can
 * do. */
static int ratio_differs(const struct signature_input *input, double other) {
    return worst_residual(input, other) > 1.0;
}

static int slots_equal(const struct signature_input *input) {
    for (uint32_t i = 0; i < input->count; i++)
        if (!input->tensors[i].slots_equal) return 0;
    return 1;
}

static int lr_ratio(const struct signature_input *input, struct signature *out) {
    if (!equal_into_optimizer(input) || all_equal(input, SUMS_UPDATE) != 0) return 0;
    const double ratio = update_ratio(input);
    if (isnan(ratio) || !slots_equal(input)) return 0;
    /* A does not move because its LR is 0, and B moves by its own. */
    if (isinf(ratio) && (input->lr[0] != 0.0 || !(input->lr[1] != 0.0))) return 0;
    if (isinf(ratio)) {
        *out = (struct signature){.kind = SIGNATURE_LR_RATIO,
                                  .ratio = ratio,
                                  .threshold = 1.0,
                                  .lr_ratio = ratio,
                                  .by_lr = 1};
        return 1;
    }
    const double worst = worst_residual(input, ratio);
    if (!(worst <= 1.0) || !ratio_differs(input, 1.0)) return 0;
    const double lrs = input->lr[1] / input->lr[0];
    *out = (struct signature){.kind = SIGNATURE_LR_RATIO,
                              .ratio = ratio,
                              .residual = worst,
                              .threshold = 1.0,
                              .lr_ratio = lrs,
                              .by_lr = isfinite(lrs) && !ratio_differs(input, lrs)};
    return 1;
}

/* One tensor is apart, or all tensors of one decay group are and none of the other is. */
static int one_tensor(const struct signature_input *input, struct signature *out) {
    if (!equal_into_optimizer(input)) return 0;
    uint32_t apart = 0, last = 0, in_group[2] = {0, 0}, of_group[2] = {0, 0};
    for (uint32_t i = 0; i < input->count; i++) {
        const struct signature_tensor *tensor = &input->tensors[i];
        const uint32_t group = tensor->group != 0;
        of_group[group]++;
        if (tensor->slots_equal && tensor->weights_equal) continue;
        apart++;
        in_group[group]++;
        last = i;
    }
    const uint32_t group = in_group[1] > 0;
    const int whole = input->groups == 2 && in_group[group] == of_group[group] &&
                      in_group[!group] == 0 && of_group[!group] > 0;
    if (apart == 0 || (apart > 1 && !whole)) return 0;
    if (apart == 1 && input->count == 1) return 0;
    *out = (struct signature){.kind = SIGNATURE_ONE_TENSOR,
                              .where = apart == 1 ? input->tensors[last].name : NULL,
                              .group = group};
    return 1;
}

void signature_recognise(const struct signature_input *input, struct signature *out) {
    memset(out, 0, sizeof *out);
    if (rope_table(input, out) || any_constant_ratio(input, out) || backward_order(input, out) ||
        lr_ratio(input, out) || one_tensor(input, out))
        return;
}
