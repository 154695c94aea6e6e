/* SPDX-License-Identifier: Apache-2.0
 * The law by which the arms drift apart, and whether rounding alone would have taken them as far:
 * the same law for the baseline and a run that begins one unit in the last place off.
 *
 * A law is fitted from the first difference on until |a-b| is half of |a-a0|, how far the
 * baseline has come. Beyond that the arms are about as far from each other as from their start, and
 * the distance stops growing whatever its cause. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95
#define SATURATED_SHARE 0.5 /* of |a-a0|; two independent directions would end at sqrt(2) of it */
#define GROWN 2.0 /* of its distance after update 1: the perturbed run drifted by itself */

const struct trace_pair *judge_pair(const struct trace_image *image, const char *a, const char *b) {
    for (uint32_t i = 0; i < image->pair_count; i++) {
        const struct trace_pair *pair = &image->pairs[i];
        if (strcmp(pair->plan.a, a) == 0 && strcmp(pair->plan.b, b) == 0) return pair;
    }
    return NULL;
}

/* Fills j with update numbers from 1 on and d with distances above `least`, until the end of
 * growth, of each `stride` of them the first; returns how many there are with those between. */
static size_t usable(const struct trace_pair *pair, double least, size_t stride, double *j,
                     double *d, struct judged_growth *out) {
    size_t count = 0;
    for (uint64_t i = 0; i < pair->updates; i++) {
        const struct pair_record *record = trace_pair_row(pair, i);
        const double distance = record->reals[PAIR_DISTANCE];
        if (!(distance > least)) continue;
        if (!isfinite(distance) || record->reals[PAIR_DISTANCE_SHARE] >= SATURATED_SHARE) break;
        if (count == 0) out->from = record->step;
        out->to = record->step;
        if (stride > 0 && count % stride == 0) {
            j[count / stride] = (double)(record->step - out->from + 1);
            d[count / stride] = distance;
        }
        count++;
    }
    return count;
}

static enum status fit(struct judging *judging, const struct trace_pair *pair, double least,
                       struct judged_growth *out) {
    double *j, *d;
    const struct pair_record *last = trace_pair_row(pair, pair->updates - 1);
    out->end = last->reals[PAIR_DISTANCE];
    out->end_share = last->reals[PAIR_DISTANCE_SHARE];
    /* counted first, so that only those are held that the fit takes */
    const size_t count = usable(pair, least, 0, NULL, NULL, out);
    if (count < GROWTH_LEAST) return STATUS_OK;
    const size_t stride = growth_stride(count), taken = (count + stride - 1) / stride;
    TRY(arena_take(judging->arena, taken, sizeof *j, "growth", &j));
    TRY(arena_take(judging->arena, taken, sizeof *d, "growth", &d));
    (void)usable(pair, least, stride, j, d, out);
    const enum status status = growth_fit(j, d, taken, CONFIDENCE, &out->fit);
    out->known = status == STATUS_OK;
    return status == STATUS_UNTESTABLE ? STATUS_OK : status;
}

/* How far the perturbed run came at the end, besides the perturbation itself. A trace of an older
 * program has its whole distance only, which counts the perturbation in, and is of copies where
 * there are masters, so nothing is known there. */
static enum status read_response(struct judging *judging, const struct trace_pair *perturbed) {
    struct judgement *out = judging->out;
    const struct trace_array *response = trace_array_of(judging->image, RESPONSE_PATH);
    out->response = out->masters ? (double)NAN : out->perturbed.end;
    if (response == NULL) return STATUS_OK;
    if (response->plan.rank != 1 || response->plan.shape[0] < perturbed->updates)
        FAIL(STATUS_INPUT, "trace: /%s: expected a value of each update", RESPONSE_PATH);
    out->response = trace_value(response, perturbed->updates - 1);
    return STATUS_OK;
}

enum status judge_growth(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_pair *arms = judge_pair(judging->image, out->arms[0], out->arms[1]);
    const struct trace_pair *perturbed = judge_pair(judging->image, out->arms[0], "twin");
    if (arms == NULL || arms->updates == 0) return STATUS_OK;
    const double least = out->floor_largest > 0.0 ? out->floor_largest : 0.0;
    TRY(fit(judging, arms, least, &out->growth));
    if (perturbed == NULL || perturbed->updates == 0) return STATUS_OK;
    TRY(fit(judging, perturbed, 0.0, &out->perturbed));
    TRY(read_response(judging, perturbed));
    out->has_perturbed = 1;
    return STATUS_OK;
}

void judge_saturation(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_pair *perturbed = judge_pair(judging->image, out->arms[0], "twin");
    if (!out->has_perturbed) return;
    out->saturated =
        judgement_end(out) > 0.0 && rounding_explains(out->response, judgement_end(out)) &&
        out->perturbed.end >= GROWN * trace_pair_row(perturbed, 0)->reals[PAIR_DISTANCE];
}
