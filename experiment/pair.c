/* SPDX-License-Identifier: Apache-2.0
 * Compares two runs after an update, on the backend that has both, or else by the threads of this
 * program. Both give the same bits: within a tensor sums follow law 2 (docs/DETERMINISM.md), and
 * tensors are added in an f64 chain in table order. A missing comparison is NaN or -1, never 0. */
#include "experiment/pair.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "kernels/distance.h"
#include "model/backends.h"
#include "trainer/run_tensors.h"

_Static_assert(RUN_DISTANCES_BLOCK == SUM_BLOCK, "blocks of pairs are those of law 2");

int pair_comparable(const struct run *a, const struct run *b) {
    if (run_table(a)->count != run_table(b)->count) return 0;
    for (uint32_t i = 0; i < run_table(a)->count; i++) {
        const struct param_row *x = &run_table(a)->rows[i], *y = &run_table(b)->rows[i];
        if (strcmp(x->name, y->name) != 0 || x->shape[0] != y->shape[0] ||
            x->shape[1] != y->shape[1] || x->tied_to != y->tied_to)
            return 0;
    }
    return 1;
}

static struct span span_now(const struct run *run, uint32_t row) {
    return (struct span){run_param(run, row), run_table(run)->rows[row].dtype};
}

/* ---- a tensor ---- */

static struct run_distances_args run_distances_of(const struct run *a, const struct run *b,
                                                  uint32_t row) {
    const struct span x = span_now(a, row), y = span_now(b, row);
    return (struct run_distances_args){.x_dtype = x.dtype,
                                       .y_dtype = y.dtype,
                                       .count = run_table(a)->rows[row].count,
                                       .x = x.values,
                                       .x_old = run_param_before(a, row),
                                       .start = run_param_initial(a, row),
                                       .y = y.values,
                                       .y_old = run_param_before(b, row)};
}

/* Joins the blocks of a tensor in the order of law 2. */
static struct run_distances_block join_pairs(const struct run_distances_block *blocks,
                                             size_t count) {
    struct sum_blocks_f64 sums[RUN_DISTANCES_SUMS] = {{.count = 0}};
    struct run_distances_block out = {.ulp = 0};
    for (size_t i = 0; i < count; i++) {
        for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
            sum_blocks_push_f64(&sums[s], blocks[i].sum[s]);
        out.changed += blocks[i].changed;
        if (blocks[i].ulp > out.ulp) out.ulp = blocks[i].ulp;
    }
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        out.sum[s] = sum_blocks_close_f64(&sums[s]);
    return out;
}

enum status pair_open(const struct run *a, const struct run *b, struct pair_room *out) {
    size_t blocks = 0;
    *out = (struct pair_room){.backend = run_backend(a) == run_backend(b) ? run_backend(a) : NULL};
    if (!pair_comparable(a, b)) return STATUS_OK;
    backends_memory(out->backend, &out->arena, NULL);
    for (uint32_t i = 0; i < run_owner_count(a); i++)
        blocks += run_distances_blocks(run_table(a)->rows[run_owners(a)[i]].count);
    enum status status =
        arena_take(&out->arena, run_owner_count(a), sizeof *out->asked, "pair", &out->asked);
    if (status == STATUS_OK)
        status = arena_take(&out->arena, blocks, sizeof *out->blocks, "pair", &out->blocks);
    if (status != STATUS_OK) pair_close(out);
    return status;
}

void pair_close(struct pair_room *room) {
    arena_close(&room->arena);
    room->backend = NULL;
}

/* Where no one backend has both runs, the host measures what it reads of them: a tensor at a time,
 * since it sees no more of a device at once. */
static enum status measure_apart(const struct run *a, const struct run *b,
                                 struct run_distances_args *asked) {
    const size_t x = asked->count * dtype_carrier(asked->x_dtype);
    const size_t y = asked->count * dtype_carrier(asked->y_dtype);
    TRY(run_read(a, WINDOW_NOW, asked->x, x, &asked->x));
    TRY(run_read(a, WINDOW_OLD, asked->x_old, x, &asked->x_old));
    TRY(run_read(a, WINDOW_THEN, asked->start, x, &asked->start));
    TRY(run_read(b, WINDOW_NOW, asked->y, y, &asked->y));
    TRY(run_read(b, WINDOW_OLD, asked->y_old, y, &asked->y_old));
    backends_run_distances(NULL, (int)run_config(a)->numerics.threads, asked, 1);
    return STATUS_OK;
}

static enum status ask_all(const struct run *a, const struct run *b, const struct pair_room *room) {
    struct run_distances_block *blocks = room->blocks;
    const int apart = room->backend == NULL && (run_backend(a) != NULL || run_backend(b) != NULL);
    for (uint32_t i = 0; i < run_owner_count(a); i++) {
        room->asked[i] = run_distances_of(a, b, run_owners(a)[i]);
        room->asked[i].blocks = blocks;
        blocks += run_distances_blocks(room->asked[i].count);
        if (apart) TRY(measure_apart(a, b, &room->asked[i]));
    }
    if (apart) return STATUS_OK;
    backends_run_distances(room->backend, (int)run_config(a)->numerics.threads, room->asked,
                           run_owner_count(a));
    return backends_wait(room->backend);
}

/* ---- all tensors ---- */

static void note_tensor(const struct run_distances_block *of, uint32_t index, int same,
                        struct pair_record *out) {
    int64_t *const integers = out->integers;
    if (same ? of->changed == 0 : of->sum[RUN_DISTANCES_GAP] == 0.0) return;
    if (integers[PAIR_TENSORS_DIFFERING]++ == 0) integers[PAIR_FIRST_TENSOR] = (int64_t)index;
    if (same && of->ulp > integers[PAIR_MAX_ULP]) integers[PAIR_MAX_ULP] = of->ulp;
}

static void measure_tensors(const struct run *a, const struct run *b, const struct pair_room *room,
                            struct pair_record *out, double sum[RUN_DISTANCES_SUMS]) {
    const int same = run_config(a)->numerics.param == run_config(b)->numerics.param;
    const struct run_distances_block *blocks = room->blocks;
    out->integers[PAIR_TENSORS_DIFFERING] = 0;
    out->integers[PAIR_FIRST_TENSOR] = -1;
    out->integers[PAIR_MAX_ULP] = same ? 0 : -1;
    for (uint32_t i = 0; i < run_owner_count(a); i++) {
        const size_t count = run_distances_blocks(room->asked[i].count);
        const struct run_distances_block of = join_pairs(blocks, count);
        blocks += count;
        note_tensor(&of, i, same, out);
        for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
            sum[s] += of.sum[s];
    }
}

static void measure_vectors(const double sum[RUN_DISTANCES_SUMS], double *reals) {
    const double gap = sum[RUN_DISTANCES_GAP], travel = sum[RUN_DISTANCES_TRAVEL];
    const double aa = sum[RUN_DISTANCES_XX], bb = sum[RUN_DISTANCES_YY], ab = sum[RUN_DISTANCES_XY];
    reals[PAIR_DISTANCE] = real_sqrt_f64(gap);
    if (travel > 0.0) reals[PAIR_DISTANCE_SHARE] = real_sqrt_f64(gap) / real_sqrt_f64(travel);
    if (gap == 0.0) reals[PAIR_DISTANCE_SHARE] = 0.0;
    if (aa > 0.0) reals[PAIR_UPDATE_RATIO] = real_sqrt_f64(bb) / real_sqrt_f64(aa);
    if (aa > 0.0 && bb > 0.0)
        reals[PAIR_UPDATE_COSINE] = ab / (real_sqrt_f64(aa) * real_sqrt_f64(bb));
}

/* Gives every NaN one pattern, whatever pattern the hardware made of an invalid operation. */
static double fold(double value) {
    return isnan(value) ? (double)NAN : value;
}

enum status pair_measure(const struct run *a, const struct run *b, const struct pair_room *room,
                         struct pair_record *out) {
    double sum[RUN_DISTANCES_SUMS] = {0.0};
    out->step = run_record(a)->step;
    for (size_t i = 0; i < RECORD_REALS; i++)
        out->gaps[i] = fold(run_record(a)->reals[i] - run_record(b)->reals[i]);
    for (size_t i = 0; i < RECORD_PAIRS; i++)
        out->reals[i] = (double)NAN;
    for (size_t i = 0; i < RECORD_PAIR_INTEGERS; i++)
        out->integers[i] = -1;
    if (!pair_comparable(a, b)) return STATUS_OK;
    TRY(ask_all(a, b, room));
    measure_tensors(a, b, room, out, sum);
    measure_vectors(sum, out->reals);
    for (size_t i = 0; i < RECORD_PAIRS; i++)
        out->reals[i] = fold(out->reals[i]);
    return STATUS_OK;
}

static int keeps_f64(const struct config *config) {
    return config->numerics.param == DTYPE_F64 || config->numerics.master == DTYPE_F64;
}

enum dtype point_dtype(const struct config *a, const struct config *b) {
    return keeps_f64(a) || keeps_f64(b) ? DTYPE_F64 : DTYPE_F32;
}

size_t point_count(const struct run *run) {
    return run_table(run)->elements;
}

/* The values of a tensor that count as the run's point, for the host: the master where there is
 * one. */
static enum status point_span(const struct run *run, uint32_t row, struct span *out) {
    const struct state_layout *layout = run_layout(run);
    out->dtype = layout->has_master ? layout->master_dtype : run_table(run)->rows[row].dtype;
    return run_read_weight(run, WINDOW_NOW, row, &out->values);
}

enum status point_copy(const struct run *run, enum dtype dtype, void *out) {
    const size_t size = dtype_carrier(dtype);
    unsigned char *to = (unsigned char *)out;
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const uint32_t row = run_owners(run)[i];
        const size_t count = run_table(run)->rows[row].count;
        struct span span;
        TRY(point_span(run, row, &span));
        if (dtype_carrier(span.dtype) > size)
            FAIL(STATUS_INTERNAL, "a point in %s has no room for weights in %s", dtype_name(dtype),
                 dtype_name(span.dtype));
        if (dtype_carrier(span.dtype) == size)
            memcpy(to, span.values, count * size);
        else
            for (size_t j = 0; j < count; j++)
                ((double *)(void *)to)[j] = element_get(span.values, span.dtype, j);
        to += count * size;
    }
    return STATUS_OK;
}

double point_distance(const void *a, const void *b, enum dtype dtype, size_t count) {
    struct span x = {a, dtype}, y = {b, dtype};
    return real_sqrt_f64(distance_squares(x, y, count));
}

/* The values of a span from element `from` on. */
static struct span span_from(struct span span, size_t from) {
    const size_t size = span.dtype == DTYPE_F64 ? sizeof(double) : sizeof(float);
    return (struct span){(const unsigned char *)span.values + from * size, span.dtype};
}

enum status point_distance_but(const struct run *a, const struct run *b, uint32_t row,
                               size_t element, double *out) {
    double sum = 0.0;
    for (uint32_t i = 0; i < run_owner_count(a); i++) {
        const uint32_t at = run_owners(a)[i];
        const size_t count = run_table(a)->rows[at].count;
        struct span x, y;
        TRY(point_span(a, at, &x));
        TRY(point_span(b, at, &y));
        const size_t before = at == row ? element : count;
        double squares = distance_squares(x, y, before);
        sum = sum_chain_terms_f64_f64(sum, &squares, 1);
        if (at != row) continue;
        squares = distance_squares(span_from(x, element + 1), span_from(y, element + 1),
                                   count - element - 1);
        sum = sum_chain_terms_f64_f64(sum, &squares, 1);
    }
    *out = real_sqrt_f64(sum);
    return STATUS_OK;
}
