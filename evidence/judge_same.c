/* SPDX-License-Identifier: Apache-2.0
 * Arms that differ exactly may still train alike: the two verdicts between identical and outside.
 *
 * `same-training`: weights, optimizer state and applied LR have the same bits after every update,
 * and what differs can reach none of them however long the run is (judge_reports.c). So are arms
 * whose roots are equal and whose logs are not: roots have the loss and the applied LR, but neither
 * the logged LR nor the gradient norm. A number that only one arm's loop makes is no such
 * difference. `same-weights`: the weights have the same bits, and a later update may tell the arms
 * apart. Either what differs may reach a weight, as a schedule whose LR has been logged and not yet
 * applied; or the optimizer's state, its masters or, where an update can drop a gradient without a
 * trace, the gradient or what clipping multiplied it by differ already. Roots have no gradient, so
 * these may be equal there, too. It goes by digests, that factor and the configurations. A trace
 * without digests, and arms whose runs repeat with noise, keep the verdict that they have. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

static int equal_digests(const struct record *a, const struct record *b, enum record_digest which) {
    return memcmp(a->digests[which], b->digests[which], RECORD_DIGEST_BYTES) == 0;
}

/* Whether every parameter of both arms has the same bits after this update: no digest is missing,
 * and none differs. */
static int equal_parameters(const struct judging *judging, const struct record *a,
                            const struct record *b) {
    const struct record_shape *x = &judging->run[0]->plan.shape, *y = &judging->run[1]->plan.shape;
    if (x->tensors == 0 || x->tensors != y->tensors) return 0;
    for (uint32_t i = 0; i < x->tensors; i++)
        if (memcmp(a->tensor_digests[i][TENSOR_DIGEST_PARAMETER],
                   b->tensor_digests[i][TENSOR_DIGEST_PARAMETER], RECORD_DIGEST_BYTES) != 0)
            return 0;
    return 1;
}

/* What the stored gradients of an update were multiplied by: 1 where the loop has no scaler. */
static double loss_scale(const struct record *record) {
    return isnan(record->reals[REAL_LOSS_SCALE]) ? 1.0 : record->reals[REAL_LOSS_SCALE];
}

/* Whether the gradients of a tensor are the same one, taken out of their loss scales. The digest is
 * of a gradient that still holds its scale, which no update reads. So where scales differ, norms
 * are compared instead, each over its scale: of two powers of two they have the same bits where the
 * gradients have, and of another scale rounding sets the gradients apart, too. What overflowed is
 * not known to be the same. */
static int equal_gradient(const struct record *a, const struct record *b, uint32_t tensor) {
    const double scales[2] = {loss_scale(a), loss_scale(b)};
    const double norm = a->tensors[tensor][TENSOR_GRAD_NORM] / scales[0];
    if (scales[0] != scales[1])
        return isfinite(norm) && norm == b->tensors[tensor][TENSOR_GRAD_NORM] / scales[1];
    return memcmp(a->tensor_digests[tensor][TENSOR_DIGEST_GRADIENT],
                  b->tensor_digests[tensor][TENSOR_DIGEST_GRADIENT], RECORD_DIGEST_BYTES) == 0;
}

static int equal_gradients(const struct judging *judging, const struct record *a,
                           const struct record *b) {
    const struct record_shape *x = &judging->run[0]->plan.shape;
    for (uint32_t i = 0; i < x->tensors; i++)
        if (!equal_gradient(a, b, i)) return 0;
    return x->tensors > 0;
}

/* Whether the optimizer's state holds the gradients that it took in, as moments and momentum do: a
 * gradient that differs then shows in a digest. A trace says of an optimizer its name and its keys,
 * and classes are not known here, so it is the name that is asked: of those built in, SGD without
 * momentum has no state, and Adafactor without a mean keeps sums of squares over rows and columns,
 * which are the same for many gradients. A module may keep what it likes, or nothing. */
static int remembers_gradients(const struct judging *judging) {
    const char *const text = judging->run[0]->plan.configuration;
    size_t length;
    if (config_text_value(text, "optimizer.module_sha256", &length) != NULL &&
        !config_text_says(text, "optimizer.module_sha256", CONFIG_NO_MODULE))
        return 0;
    if (config_text_says(text, "optimizer.name", "adafactor"))
        return !config_text_says(text, "optimizer.beta1", "none");
    return !config_text_says(text, "optimizer.name", "sgd") ||
           !config_text_says(text, "optimizer.momentum", "0");
}

/* Whether an update may have dropped a gradient without a trace in weights and state: the optimizer
 * did not run, a group's LR was 0, or rounding lost the update of an optimizer without state. */
static int may_forget(const struct judging *judging, const struct record *record) {
    if (record->integers[INTEGER_SKIPPED] != 0 || !remembers_gradients(judging)) return 1;
    for (uint32_t g = 0; g < judging->run[0]->plan.shape.groups; g++)
        if (record->groups[g][GROUP_LR_APPLIED] == 0.0) return 1;
    return 0;
}

/* What clipping multiplied the gradient by that the optimizer took in: 1 where the loop has no
 * clipping before the optimizer, or only computes the factor, as clip.apply `copy` does. */
static double taken_factor(const struct trace_run *run, const struct record *record) {
    const char *const text = run->plan.configuration;
    size_t length = 0, clip = 0, optimize = 0;
    const char *const update = config_text_value(text, "loop.update", &length);
    if (isnan(record->reals[REAL_CLIP_COEF]) || record->integers[INTEGER_SKIPPED] != 0 ||
        config_text_says(text, "clip.apply", "copy"))
        return 1.0;
    if (update == NULL) return record->reals[REAL_CLIP_COEF];
    while (clip < length && strncmp(update + clip, "clip", 4) != 0)
        clip++;
    while (optimize < length && strncmp(update + optimize, "optimize", 8) != 0)
        optimize++;
    return clip < optimize ? record->reals[REAL_CLIP_COEF] : 1.0;
}

/* Whether this update lost a gradient that was not the same one in both arms. */
static int forgot_another(const struct judging *judging, const struct record *a,
                          const struct record *b) {
    return may_forget(judging, a) &&
           (!equal_gradients(judging, a, b) ||
            taken_factor(judging->run[0], a) != taken_factor(judging->run[1], b));
}

/* The first step at which arms with equal roots lost gradients that differ; 0: none is known. */
static uint64_t first_forgotten(const struct judging *judging) {
    const uint32_t tensors = judging->run[0]->plan.shape.tensors;
    if (tensors == 0 || tensors != judging->run[1]->plan.shape.tensors) return 0;
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        if (forgot_another(judging, a, b)) return a->step;
    }
    return 0;
}

/* Whether the arms' states and LRs are equal after every update, and the gradients that differ are
 * those of updates that both arms skipped: no optimizer took them in. */
static int only_skipped(const struct judging *judging) {
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        const int both = a->integers[INTEGER_SKIPPED] == 1 && b->integers[INTEGER_SKIPPED] == 1;
        if (!equal_digests(a, b, DIGEST_WEIGHTS) || !equal_digests(a, b, DIGEST_LR) ||
            (!both && forgot_another(judging, a, b)))
            return 0;
    }
    return 1;
}

/* Whether repeats of the arms differ in nothing: they were compared, or all pairs of a floor file
 * are 0 apart. */
static int is_exact(const struct judgement *judgement) {
    return judgement->floor == FLOOR_EXACT ||
           (judgement->floor == FLOOR_FILE && judgement->floor_pairs > 0 &&
            judgement->floor_largest == 0.0);
}

/* Whether both arms report a number that is not the same one. */
static int reports_differ(const struct judged_report *reported) {
    return reported->update != 0 && !isnan(reported->values[0]) && !isnan(reported->values[1]);
}

void judge_same(struct judging *judging) {
    struct judgement *const out = judging->out;
    out->only_reported = judge_only_reported(judging);
    if (out->verdict == VERDICT_IDENTICAL && is_exact(out)) {
        out->state_step = first_forgotten(judging);
        out->state_skipped = out->state_step != 0 && only_skipped(judging);
        if (out->state_step != 0)
            out->verdict = VERDICT_SAME_WEIGHTS;
        else if (reports_differ(&out->reported))
            out->verdict = out->only_reported ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS;
        return;
    }
    /* A distance of 0 is inside the floor of any file, or untestable for its want of power. */
    const int ranked = out->floor == FLOOR_FILE && !isnan(out->p);
    if ((out->verdict != VERDICT_OUTSIDE_FLOOR && !ranked) || !is_exact(out) || out->updates == 0)
        return;
    for (uint64_t i = 0; i < out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        const int state = equal_digests(a, b, DIGEST_WEIGHTS);
        if (!state && !equal_parameters(judging, a, b)) return;
        if (out->state_step == 0 &&
            (!state || !equal_digests(a, b, DIGEST_LR) || forgot_another(judging, a, b)))
            out->state_step = a->step;
    }
    out->state_skipped = out->state_step != 0 && only_skipped(judging);
    out->verdict =
        out->state_step == 0 && out->only_reported ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS;
    out->reason = "";
}
