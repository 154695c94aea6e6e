/* SPDX-License-Identifier: Apache-2.0
 * Gaps of runs, update by update. */
#include "forensics/repeats.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/comparable.h"
#include "determinism/digest.h"
#include "determinism/statistics.h"

static enum status check_run(const struct repeats *repeats, uint32_t index) {
    const struct trace_run *run = repeats->runs[index], *first = repeats->runs[0];
    const char *path = repeats->paths[index];
    uint64_t roots;
    if (run->updates == 0) FAIL(STATUS_INPUT, "%s: expected updates, got none", path);
    for (uint64_t i = 0; i < run->updates; i++)
        if (run->records[i].step != i + 1)
            FAIL(STATUS_INPUT, "%s: expected updates 1, 2, ..., got update %ju in row %ju", path,
                 (uintmax_t)run->records[i].step, (uintmax_t)i + 1);
    if (strcmp(run->plan.configuration, first->plan.configuration) != 0)
        FAIL(STATUS_INPUT,
             "%s: expected the configuration of %s, got another one: a floor is of "
             "runs that are meant to be the same",
             path, repeats->paths[0]);
    const enum status status = runs_comparable(first, run, &roots);
    return status == STATUS_OK
               ? status
               : status_prefix(status, "%s (A) and %s (B)", repeats->paths[0], path);
}

static double loss_of(const struct trace_run *run, uint64_t row) {
    return run->records[row].reals[REAL_LOSS];
}

static double norm_of(const struct trace_run *run, uint64_t row) {
    return run->records[row].reals[REAL_GRAD_NORM];
}

/* A gap as floor files have it; both NaN is none, and one NaN is an infinite one. */
static double gap_of(double a, double b, int relative) {
    if (isnan(a) && isnan(b)) return 0.0;
    if (isnan(a) || isnan(b)) return (double)INFINITY;
    const double gap = a == b ? 0.0 : fabs(a - b);
    return !relative || gap == 0.0 ? gap : gap / fabs(a);
}

static int has_root(const struct record *record) {
    return record_has_digest(record->digests[DIGEST_ROOT]);
}

/* Looks where a run parts from the first one; `exact` and `equal` fall where it does. */
static void hold(const struct repeats *repeats, uint32_t index, struct repeats_found *out) {
    const struct trace_run *a = repeats->runs[0], *b = repeats->runs[index];
    struct batch_gap gap; /* a batch that one of them did not record tells nothing */
    const uint64_t apart = runs_first_apart(a, b, &gap);
    if (gap.updates > out->gap) out->gap = gap.updates;
    for (uint64_t i = 0; i < out->updates; i++) {
        const struct record *x = &a->records[i], *y = &b->records[i];
        const int roots = has_root(x) && has_root(y);
        const int alike =
            gap.updates == 0 ? record_equal_roots(x, y) : apart == 0 || x->step < apart;
        const int same = memcmp(&x->reals[REAL_LOSS], &y->reals[REAL_LOSS], sizeof(double)) == 0 &&
                         gap_of(norm_of(a, i), norm_of(b, i), 0) == 0.0;
        out->equal = out->equal && same;
        out->exact = out->exact && roots && alike;
        if ((same && (!roots || alike)) || out->other != 0) continue;
        out->other = index;
        out->update = i + 1;
        if (roots) first_find(&a->plan, x, &b->plan, y, &out->where);
    }
}

static int records_norms(const struct repeats *repeats, uint64_t updates) {
    for (uint32_t r = 0; r < repeats->count; r++)
        for (uint64_t i = 0; i < updates; i++)
            if (!isnan(norm_of(repeats->runs[r], i))) return 1;
    return 0;
}

static enum status fill_pairs(const struct repeats *repeats, enum floor_column column,
                              struct arena *arena, struct repeats_found *out,
                              struct floor_file *file) {
    double *gaps;
    TRY(arena_take(arena, file->pairs * file->steps, sizeof *gaps, "floor", &gaps));
    out->largest[column] = 0.0;
    for (uint64_t p = 0; p < file->pairs; p++)
        for (uint64_t i = 0; i < file->steps; i++) {
            const struct trace_run *a = repeats->runs[2 * p], *b = repeats->runs[2 * p + 1];
            const double gap = column == FLOOR_LOSS ? gap_of(loss_of(a, i), loss_of(b, i), 0)
                                                    : gap_of(norm_of(a, i), norm_of(b, i), 1);
            gaps[p * file->steps + i] = gap;
            if (gap <= out->largest[column]) continue;
            out->largest[column] = gap;
            out->largest_at[column] = i + 1;
        }
    file->columns[column] = gaps;
    return STATUS_OK;
}

static enum status fill_file(const struct repeats *repeats, struct arena *arena,
                             struct repeats_found *out, struct floor_file *file) {
    const struct trace_run_plan *plan = &repeats->runs[0]->plan;
    struct digest digest;
    char *hex, *protocol;
    memset(file, 0, sizeof *file);
    TRY(arena_take(arena, DIGEST_HEX, 1, "digest", &hex));
    digest_sha256(plan->configuration, strlen(plan->configuration), &digest);
    digest_hex(&digest, hex);
    TRY(arena_format(arena, &protocol,
                     "%u runs of another program, recorded by it; a pair is two of "
                     "them, and no run is in two pairs",
                     repeats->count));
    file->scenario = repeats->writer;
    file->writer = repeats->writer;
    file->arm = plan->id;
    file->text = "";
    file->configuration = plan->configuration;
    file->determines = hex;
    file->protocol = protocol;
    file->twin.weight = "";
    file->exact = out->exact;
    file->steps = out->updates;
    file->pairs = repeats->count / 2;
    TRY(fill_pairs(repeats, FLOOR_LOSS, arena, out, file));
    if (!records_norms(repeats, out->updates)) return STATUS_OK;
    return fill_pairs(repeats, FLOOR_GRAD_NORM, arena, out, file);
}

enum status repeats_measure(const struct repeats *repeats, struct arena *arena,
                            struct repeats_found *out, struct floor_file *file) {
    *out = (struct repeats_found){
        .updates = UINT64_MAX, .exact = 1, .equal = 1, .where = {.phase = "", .tensor = ""}};
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        out->largest[c] = (double)NAN;
    if (repeats->count < 2)
        FAIL(STATUS_INPUT, "floor: expected at least two runs, got %u", repeats->count);
    for (uint32_t i = 0; i < repeats->count; i++) {
        TRY(check_run(repeats, i));
        if (repeats->runs[i]->updates < out->updates) out->updates = repeats->runs[i]->updates;
    }
    for (uint32_t i = 1; i < repeats->count; i++)
        hold(repeats, i, out);
    return fill_file(repeats, arena, out, file);
}

static double apart(const struct trace_run *a, const struct trace_run *b, uint64_t updates) {
    double sum = 0.0;
    for (uint64_t i = 0; i < updates; i++) {
        const double gap = loss_of(a, i) - loss_of(b, i);
        sum += gap * gap;
    }
    return sqrt(sum / (double)updates);
}

enum status repeats_against(const struct repeats *a, const struct repeats *b, struct arena *arena,
                            double *out_p, double *out_least) {
    const size_t runs = (size_t)a->count + b->count;
    const struct trace_run **all;
    struct statistics_p p;
    double *distances;
    uint64_t updates = UINT64_MAX;
    TRY(arena_take(arena, runs, sizeof *all, "runs", &all));
    TRY(arena_take(arena, statistics_pair_count(runs), sizeof *distances, "runs", &distances));
    for (size_t i = 0; i < runs; i++) {
        all[i] = i < a->count ? a->runs[i] : b->runs[i - a->count];
        if (all[i]->updates < updates) updates = all[i]->updates;
    }
    for (size_t i = 0; i < runs; i++)
        for (size_t j = i + 1; j < runs; j++)
            distances[statistics_pair(runs, i, j)] = apart(all[i], all[j], updates);
    TRY(statistics_test_labels(distances, runs, a->count, &p));
    *out_p = p.p;
    *out_least = statistics_labels_least(a->count, b->count);
    return STATUS_OK;
}
