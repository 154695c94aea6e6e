/* SPDX-License-Identifier: Apache-2.0
 * Keeps the baseline's end points at marks and measures every hybrid against them. Nothing is
 * trained here, and what was not measured stays NaN. The values of a mark are (marks, count),
 * hybrids running fastest. */
#include "experiment/hybrid_values.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "experiment/pair.h"
#include "kernels/distance.h"

#define POINTS_LEAST_BYTES ((size_t)256 << 20)
#define PROBE_SHARE 4 /* of the bytes that points may have, as many for the baseline's logits */

/* Lists all marks: the powers of two below `steps`, then `steps`. */
static uint32_t all_marks(uint64_t steps, double *mark) {
    uint32_t count = 0;
    for (uint64_t at = 1; at < steps && count < HYBRID_MARKS - 1; at *= 2)
        mark[count++] = (double)at;
    mark[count++] = (double)steps;
    return count;
}

static size_t points_room(const struct run *baseline) {
    const size_t run_bytes = run_memory(baseline);
    return run_bytes > POINTS_LEAST_BYTES ? run_bytes : POINTS_LEAST_BYTES;
}

/* Keeps as many of the last marks as points of both arms fit beside the runs, and always the end,
 * which alone is asked for where there are no hybrids. In f64 the points may take as much memory as
 * one run does; below POINTS_LEAST_BYTES nobody is asked to save. Where they are f32 there are as
 * many, so that a pair of another dtype has the same marks. */
static void choose_marks(struct hybrid_values *hybrids, const struct experiment_plan *plan,
                         const struct run *baseline) {
    const size_t room = points_room(baseline);
    const size_t fits =
        hybrids->elements == 0 ? HYBRID_MARKS : room / (2 * sizeof(double)) / hybrids->elements;
    double mark[HYBRID_MARKS];
    const uint32_t count = all_marks(plan->scenario->steps, mark);
    const uint32_t most = plan->attributable ? count : 1;
    const uint32_t kept = fits >= most ? most : fits < 1 ? 1 : (uint32_t)fits;
    hybrids->marks = kept;
    memcpy(hybrids->mark, mark + (count - kept), kept * sizeof *mark);
}

static size_t point_bytes(const struct hybrid_values *hybrids) {
    return hybrids->elements * dtype_carrier(hybrids->dtype);
}

struct hybrid_values_size hybrid_values_size(const struct experiment_plan *plan,
                                             const struct run *baseline, size_t elements) {
    struct hybrid_values of = {.elements = elements, .dtype = plan->point_dtype};
    const uint64_t point = point_bytes(&of), count = plan->hybrid_count;
    choose_marks(&of, plan, baseline);
    return (struct hybrid_values_size){
        .mark = 2 * point,
        .points = of.marks * 2 * point,
        .values = (HYBRID_GAMES * of.marks + 3) * count * sizeof(double),
        .scratch = point,
        .probe = probe_kept_bytes(baseline, points_room(baseline) / PROBE_SHARE)};
}

/* Its memory is the system's, and costs nothing, until a point is written. */
static enum status take_point(const struct hybrid_values *hybrids, struct arena *arena,
                              void **out) {
    return arena_take(arena, point_bytes(hybrids), 1, "points of hybrids", out);
}

static enum status take(struct arena *arena, size_t count, double fill, double **out) {
    TRY(arena_take(arena, count, sizeof **out, "values of hybrids", out));
    for (size_t i = 0; i < count; i++)
        (*out)[i] = fill;
    return STATUS_OK;
}

enum status hybrid_values_open(const struct experiment_plan *plan, const struct run *baseline,
                               size_t elements, struct arena *arena, struct hybrid_values *out) {
    memset(out, 0, sizeof *out);
    out->count = plan->hybrid_count > 0 ? plan->hybrid_count : 1;
    out->elements = elements;
    out->dtype = plan->point_dtype;
    out->tensors = plan->runs[0].axes.shape.tensors;
    choose_marks(out, plan, baseline);
    out->probe_most = points_room(baseline) / PROBE_SHARE;
    for (uint32_t m = 0; m < out->marks; m++) {
        TRY(take_point(out, arena, &out->point[m]));
        TRY(take_point(out, arena, &out->test_point[m]));
    }
    TRY(take_point(out, arena, &out->scratch));
    const size_t cells = (size_t)out->marks * out->count;
    for (uint32_t game = 0; game < HYBRID_GAMES; game++) {
        TRY(take(arena, cells, (double)NAN, &out->at[game]));
        for (uint32_t m = 0; m < out->marks; m++)
            out->at[game][(size_t)m * out->count] = 0.0;
    }
    TRY(take(arena, out->count, (double)NAN, &out->kl));
    TRY(take(arena, out->count, 0.0, &out->first));
    TRY(take(arena, out->count, 0.0, &out->moved));
    out->kl[0] = 0.0;
    return STATUS_OK;
}

/* The index of the mark at `step`, or hybrids->marks where there is none. */
static uint32_t mark_at(const struct hybrid_values *hybrids, uint64_t step) {
    uint32_t m = 0;
    while (m < hybrids->marks && hybrids->mark[m] != (double)step)
        m++;
    return m;
}

int hybrid_values_wants(const struct hybrid_values *hybrids, uint64_t step) {
    return mark_at(hybrids, step) != hybrids->marks;
}

enum status hybrid_values_arms(struct hybrid_values *hybrids, const struct run *baseline,
                               const struct run *test, uint64_t step) {
    const uint32_t m = mark_at(hybrids, step);
    if (m == hybrids->marks || hybrids->elements == 0) return STATUS_OK;
    TRY(point_copy(baseline, hybrids->dtype, hybrids->point[m]));
    return point_copy(test, hybrids->dtype, hybrids->test_point[m]);
}

/* (theta_S - theta_baseline) . (theta_test - theta_baseline) / |theta_test - theta_baseline| at a
 * mark, of the point in scratch; 0 where the arms are in one point. The test arm is the last
 * hybrid, and its distance is noted before any other's. */
static double along(const struct hybrid_values *hybrids, uint32_t m) {
    const enum dtype dtype = hybrids->dtype;
    const struct span start = {hybrids->point[m], dtype}, test = {hybrids->test_point[m], dtype};
    const struct span end = {hybrids->scratch, dtype};
    const double length =
        hybrids->at[HYBRID_DISTANCE][(size_t)m * hybrids->count + hybrids->count - 1];
    if (length == 0.0) return 0.0;
    return distance_product(end, start, test, start, hybrids->elements) / length;
}

/* Whether both runs have the same weights after this update. Where digests of tensors are not
 * recorded, the optimizer's slots must be the same, too. */
static int equal_weights(const struct hybrid_values *hybrids, const struct record *a,
                         const struct record *b) {
    if (memcmp(a->digests[DIGEST_WEIGHTS], b->digests[DIGEST_WEIGHTS], RECORD_DIGEST_BYTES) == 0)
        return 1;
    for (uint32_t i = 0; i < hybrids->tensors; i++)
        if (memcmp(a->tensor_digests[i][TENSOR_DIGEST_PARAMETER],
                   b->tensor_digests[i][TENSOR_DIGEST_PARAMETER], RECORD_DIGEST_BYTES) != 0)
            return 0;
    return hybrids->tensors > 0;
}

void hybrid_values_record(struct hybrid_values *hybrids, uint32_t hybrid,
                          const struct record *record, const struct record *like) {
    const uint32_t m = mark_at(hybrids, record->step);
    if (hybrids->first[hybrid] == 0.0 && !record_equal_roots(record, like))
        hybrids->first[hybrid] = (double)record->step;
    if (hybrids->moved[hybrid] == 0.0 && !equal_weights(hybrids, record, like))
        hybrids->moved[hybrid] = (double)record->step;
    if (m == hybrids->marks) return;
    const size_t cell = (size_t)m * hybrids->count + hybrid;
    hybrids->at[HYBRID_LOSS][cell] = record->reals[REAL_LOSS] - like->reals[REAL_LOSS];
    hybrids->at[HYBRID_MARGIN][cell] =
        record->reals[REAL_REWARD_MARGIN] - like->reals[REAL_REWARD_MARGIN];
}

enum status hybrid_values_weights(struct hybrid_values *hybrids, uint32_t hybrid,
                                  const struct run *run, uint64_t step) {
    const uint32_t m = mark_at(hybrids, step);
    if (m == hybrids->marks || hybrids->elements == 0) return STATUS_OK;
    const size_t cell = (size_t)m * hybrids->count + hybrid;
    TRY(point_copy(run, hybrids->dtype, hybrids->scratch));
    hybrids->at[HYBRID_DISTANCE][cell] =
        point_distance(hybrids->point[m], hybrids->scratch, hybrids->dtype, hybrids->elements);
    hybrids->at[HYBRID_WAY][cell] = along(hybrids, m);
    return STATUS_OK;
}

/* Masters may have moved where the weights that are made of them have not. */
static void note_moved(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t m) {
    const double distance = hybrids->at[HYBRID_DISTANCE][(size_t)m * hybrids->count + hybrid];
    if (hybrids->elements == 0 || distance == 0.0) return;
    if (hybrids->moved[hybrid] == 0.0 || hybrids->moved[hybrid] > hybrids->mark[m])
        hybrids->moved[hybrid] = hybrids->mark[m];
}

enum status hybrid_values_note(struct hybrid_values *hybrids, uint32_t hybrid,
                               const struct run *run, const struct record *record,
                               const struct record *like) {
    const uint32_t m = mark_at(hybrids, record->step);
    hybrid_values_record(hybrids, hybrid, record, like);
    TRY(hybrid_values_weights(hybrids, hybrid, run, record->step));
    if (m < hybrids->marks) note_moved(hybrids, hybrid, m);
    return STATUS_OK;
}

/* Distances and ways of all marks, then the KL divergence. */
uint32_t hybrid_values_points(const struct hybrid_values *hybrids) {
    return 2 * hybrids->marks + 1;
}

void hybrid_values_give(const struct hybrid_values *hybrids, uint32_t hybrid, double *out) {
    for (uint32_t m = 0; m < hybrids->marks; m++) {
        const size_t cell = (size_t)m * hybrids->count + hybrid;
        out[2 * m] = hybrids->at[HYBRID_DISTANCE][cell];
        out[2 * m + 1] = hybrids->at[HYBRID_WAY][cell];
    }
    out[2 * hybrids->marks] = hybrids->kl[hybrid];
}

void hybrid_values_take(struct hybrid_values *hybrids, uint32_t hybrid, uint64_t first,
                        const double *points) {
    for (uint32_t m = 0; m < hybrids->marks; m++) {
        const size_t cell = (size_t)m * hybrids->count + hybrid;
        if (hybrids->mark[m] < (double)first) continue;
        hybrids->at[HYBRID_DISTANCE][cell] = points[2 * m];
        hybrids->at[HYBRID_WAY][cell] = points[2 * m + 1];
        note_moved(hybrids, hybrid, m);
    }
    hybrids->kl[hybrid] = points[2 * hybrids->marks];
}

enum status hybrid_values_keep(struct hybrid_values *hybrids, struct run *baseline,
                               struct arena *arena) {
    return probe_keep(baseline, hybrids->probe_most, arena, &hybrids->probe);
}

enum status hybrid_values_end(struct hybrid_values *hybrids, uint32_t hybrid, struct run *baseline,
                              struct run *run) {
    if (hybrids->elements == 0 || baseline == NULL) return STATUS_OK;
    struct pair_record pair = {.reals = {0.0}};
    pair.reals[PAIR_PROBE_KL] = (double)NAN;
    TRY(probe_measure_kept(&hybrids->probe, baseline, run, &pair));
    hybrids->kl[hybrid] = pair.reals[PAIR_PROBE_KL];
    return STATUS_OK;
}

void hybrid_values_share(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t from,
                         uint64_t shared) {
    for (uint32_t m = 0; m < hybrids->marks && hybrids->mark[m] <= (double)shared; m++)
        for (uint32_t game = 0; game < HYBRID_GAMES; game++) {
            double *const row = hybrids->at[game] + (size_t)m * hybrids->count;
            row[hybrid] = row[from];
        }
    if (hybrids->first[from] <= (double)shared) hybrids->first[hybrid] = hybrids->first[from];
    if (hybrids->moved[from] <= (double)shared) hybrids->moved[hybrid] = hybrids->moved[from];
}

void hybrid_values_copy(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t same) {
    hybrid_values_share(hybrids, hybrid, same, UINT64_MAX);
    hybrids->kl[hybrid] = hybrids->kl[same];
}

/* The arrays with a row for each mark come first, in the order of enum hybrid_game. */
enum { ARRAY_KL = HYBRID_GAMES, ARRAY_FIRST, ARRAY_MOVED, ARRAY_MARK };

static const char *const paths[][3] = {
    [HYBRID_DISTANCE] = {"attribution/distance_at", "1",
                         "|theta_S - theta_baseline| by mark and hybrid"},
    [HYBRID_WAY] = {"attribution/way_at", "1",
                    "(theta_S - theta_baseline) along theta_test - theta_baseline, by mark"},
    [HYBRID_LOSS] = {"attribution/loss_at", "nat",
                     "loss of the hybrid - loss of the baseline, by mark"},
    [HYBRID_MARGIN] = {"attribution/margin_at", "1",
                       "reward margin of the hybrid - that of the baseline, by mark"},
    [ARRAY_KL] = {"attribution/probe_kl", "nat",
                  "KL(baseline || hybrid) on the probe batch, at the end"},
    [ARRAY_FIRST] = {"attribution/first_update", "updates",
                     "first update whose root differs; 0 none"},
    [ARRAY_MOVED] = {"attribution/first_weights", "updates",
                     "first update whose weights differ; 0 none"},
    [ARRAY_MARK] = {"attribution/mark", "updates", "updates of the marks"},
};

void hybrid_values_plan(const struct experiment_plan *plan, struct trace_array_plan *list,
                        uint32_t *count) {
    double mark[HYBRID_MARKS];
    const uint64_t marks = all_marks(plan->scenario->steps, mark), width = plan->hybrid_count;
    for (uint32_t i = 0; i <= ARRAY_MARK; i++) {
        const int by_mark = i < HYBRID_GAMES;
        list[(*count)++] = experiment_array(paths[i][0], by_mark || i == ARRAY_MARK ? marks : width,
                                            by_mark ? width : 0, paths[i][1], paths[i][2]);
    }
}

/* Puts rows by mark into the array of all planned marks; those that memory left out stay NaN. */
static enum status put_rows(const struct hybrid_values *hybrids, struct experiment_trace *output,
                            uint32_t which, const double *values, uint32_t width) {
    double *rows;
    double mark[HYBRID_MARKS];
    const uint64_t steps = (uint64_t)hybrids->mark[hybrids->marks - 1];
    const uint32_t all = all_marks(steps, mark), left_out = all - hybrids->marks;
    TRY(take(output->arena, (size_t)all * width, (double)NAN, &rows));
    memcpy(rows + (size_t)left_out * width, values,
           (size_t)hybrids->marks * width * sizeof *values);
    return experiment_trace_array(output, paths[which][0], rows);
}

enum status hybrid_values_put(const struct hybrid_values *hybrids,
                              struct experiment_trace *output) {
    for (uint32_t game = 0; game < HYBRID_GAMES; game++)
        TRY(put_rows(hybrids, output, game, hybrids->at[game], hybrids->count));
    TRY(put_rows(hybrids, output, ARRAY_MARK, hybrids->mark, 1));
    TRY(experiment_trace_array(output, paths[ARRAY_KL][0], hybrids->kl));
    TRY(experiment_trace_array(output, paths[ARRAY_MOVED][0], hybrids->moved));
    return experiment_trace_array(output, paths[ARRAY_FIRST][0], hybrids->first);
}
