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
#define GROWN 2.0 /* of its response after update 1: the perturbed run drifted by itself */

/* Distances of a pair of runs by update: `measured`, or where that is NULL what the pair holds. */
struct distances {
    const struct trace_pair *pair;
    const struct trace_array *measured;
};

static double distance_at(const struct distances *of, uint64_t i) {
    return of->measured != NULL ? trace_value(of->measured, i)
                                : trace_pair_row(of->pair, i)->reals[PAIR_DISTANCE];
}

const struct trace_pair *judge_pair(const struct trace_image *image, const char *a, const char *b) {
    for (uint32_t i = 0; i < image->pair_count; i++) {
        const struct trace_pair *pair = &image->pairs[i];
        if (strcmp(pair->plan.a, a) == 0 && strcmp(pair->plan.b, b) == 0) return pair;
    }
    return NULL;
}

/* Fills j with update numbers from 1 on and d with distances above `least`, until the end of
 * growth, of each `stride` of them the first; returns how many there are with those between. */
static size_t usable(const struct distances *of, double least, size_t stride, double *j, double *d,
                     struct judged_growth *out) {
    size_t count = 0;
    for (uint64_t i = 0; i < of->pair->updates; i++) {
        const struct pair_record *record = trace_pair_row(of->pair, i);
        const double distance = distance_at(of, i);
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

static enum status fit(struct judging *judging, const struct distances *of, double least,
                       struct judged_growth *out) {
    double *j, *d;
    const struct pair_record *last = trace_pair_row(of->pair, of->pair->updates - 1);
    out->end = distance_at(of, of->pair->updates - 1);
    out->end_share = last->reals[PAIR_DISTANCE_SHARE];
    /* counted first, so that only those are held that the fit takes */
    const size_t count = usable(of, least, 0, NULL, NULL, out);
    if (count < GROWTH_LEAST) return STATUS_OK;
    const size_t stride = growth_stride(count), taken = (count + stride - 1) / stride;
    TRY(arena_take(judging->arena, taken, sizeof *j, "growth", &j));
    TRY(arena_take(judging->arena, taken, sizeof *d, "growth", &d));
    (void)usable(of, least, stride, j, d, out);
    const enum status status = growth_fit(j, d, taken, CONFIDENCE, &out->fit);
    out->known = status == STATUS_OK;
    return status == STATUS_UNTESTABLE ? STATUS_OK : status;
}

/* How far the perturbed run came in each update, besides the perturbation itself: its law and its
 * end are of that, since a perturbation that stays as it is would hide any drift below it. A trace
 * of an older program has its whole distance only, which counts the perturbation in, and is of
 * copies where there are masters, so nothing is known of the end there. */
static enum status judge_perturbed(struct judging *judging, const struct trace_pair *perturbed) {
    struct judgement *out = judging->out;
    const struct distances of = {perturbed, trace_array_of(judging->image, RESPONSE_PATH)};
    if (of.measured != NULL &&
        (of.measured->plan.rank != 1 || of.measured->plan.shape[0] < perturbed->updates))
        FAIL(STATUS_INPUT, "trace: /%s: expected a value of each update", RESPONSE_PATH);
    TRY(fit(judging, &of, 0.0, &out->perturbed));
    out->response = out->masters && of.measured == NULL ? (double)NAN : out->perturbed.end;
    out->response_first = distance_at(&of, 0);
    out->has_perturbed = 1;
    return STATUS_OK;
}

enum status judge_growth(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_pair *arms = judge_pair(judging->image, out->arms[0], out->arms[1]);
    const struct trace_pair *perturbed = judge_pair(judging->image, out->arms[0], "twin");
    if (arms == NULL || arms->updates == 0) return STATUS_OK;
    const double least = out->floor_largest > 0.0 ? out->floor_largest : 0.0;
    const struct distances of = {arms, NULL};
    TRY(fit(judging, &of, least, &out->growth));
    return perturbed == NULL || perturbed->updates == 0 ? STATUS_OK
                                                        : judge_perturbed(judging, perturbed);
}

void judge_saturation(struct judging *judging) {
    struct judgement *out = judging->out;
    if (!out->has_perturbed) return;
    out->saturated = judgement_end(out) > 0.0 &&
                     rounding_explains(out->response, judgement_end(out)) &&
                     out->perturbed.end >= GROWN * out->response_first;
}
