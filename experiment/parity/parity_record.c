/* SPDX-License-Identifier: Apache-2.0
 * The watch of parity: finds the tensor that an operation wrote, keeps or measures it, and puts the
 * recorded values back. Sums are f64 chains by fma in the order in which rows are written.
 * Invariant: only a pass that keeps changes `low` or `high`. */
#include "experiment/parity/parity_record.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "experiment/pair.h"
#include "trainer/run_pass.h"

/* 2^16: 40 tensors per layer for 1638 layers; more would be a fault of the watch */
#define TENSORS_MAX 65536u

static void overwrite(const struct watch_view *view, const void *row, size_t column, double value) {
    unsigned char *at = (unsigned char *)view->data +
                        (size_t)((const unsigned char *)row - (const unsigned char *)view->data);
    const double rounded = dtype_round(value, view->dtype);
    if (view->dtype == DTYPE_F64)
        ((double *)(void *)at)[column] = rounded;
    else
        ((float *)(void *)at)[column] = (float)rounded;
}

static int is_same(const struct parity_tensor *tensor, const struct watch_view *view) {
    return tensor->stage == view->stage && tensor->layer == view->layer &&
           watch_name_equal(tensor->op, view->op) && watch_name_equal(tensor->tensor, view->tensor);
}

/* Events come in the same order in every pass, so the tensor after the last one is looked at first.
 */
static struct parity_tensor *find(struct parity_record *record, const struct watch_view *view) {
    for (uint32_t i = 0; i < record->count; i++) {
        const uint32_t at = (record->cursor + i) % record->count;
        if (!is_same(&record->tensors[at], view)) continue;
        record->cursor = at + 1;
        return &record->tensors[at];
    }
    return NULL;
}

static size_t rows_of(const struct parity_record *record, const struct watch_view *view) {
    if (view->axis == WATCH_TOKENS) return record->token_count;
    if (view->axis == WATCH_LABELS) return record->label_count;
    return view->width == 0 ? 0 : view->count / view->width;
}

static enum status add(struct parity_record *record, const struct watch_view *view,
                       struct parity_tensor **out) {
    if (record->count == TENSORS_MAX)
        FAIL(STATUS_UNSUPPORTED, "components: more than %u tensors", TENSORS_MAX);
    TRY(arena_grow(record->arena, record->count + (size_t)1, &record->room, sizeof *record->tensors,
                   "components", &record->tensors));
    struct parity_tensor *tensor = &record->tensors[record->count];
    *tensor = (struct parity_tensor){.stage = view->stage,
                                     .layer = view->layer,
                                     .op = view->op,
                                     .tensor = view->tensor,
                                     .axis = view->axis,
                                     .rows = rows_of(record, view),
                                     .width = view->width};
    const size_t count = tensor->rows * tensor->width;
    TRY(arena_take(record->arena, count, sizeof(double), "components", &tensor->low));
    TRY(arena_take(record->arena, count, sizeof(double), "components", &tensor->high));
    record->count++;
    *out = tensor;
    return STATUS_OK;
}

/* Whether this output is set back to the recorded one, so that the next operation reads that. */
static int is_set_back(const struct parity_record *record, const struct watch_view *view) {
    const int forward = view->stage == WATCH_PHASE + PHASE_FORWARD;
    if (view->axis == WATCH_WHOLE || record->level == PARITY_WHOLE) return 0;
    if (record->level == PARITY_OPS) return 1;
    if (!forward) return 0;
    if (view->op.label == LABEL_EMBED_TOKENS) return 1;
    if (view->op.label != LABEL_RESIDUAL) return 0;
    return record->level == PARITY_PARTS || view->tensor.label == LABEL_AFTER_MLP;
}

static size_t first_row(const struct parity_record *record, const struct watch_view *view,
                        const struct watch_cell *cell) {
    if (view->axis == WATCH_TOKENS) return record->token_base[cell->index];
    if (view->axis == WATCH_LABELS) return record->label_base[cell->index];
    return 0;
}

/* The root mean square of l - h over a row. */
static double spread_of(const double *low, const double *high, size_t width) {
    double sum = 0.0;
    for (size_t c = 0; c < width; c++)
        sum = real_fma_f64(low[c] - high[c], low[c] - high[c], sum);
    return real_sqrt_f64(sum / (double)width);
}

static void hold_row(const struct parity_record *record, struct parity_tensor *tensor,
                     const struct watch_view *view, const void *row, size_t at) {
    struct parity_sums *sums = &tensor->sums;
    const double *low = tensor->low + at * tensor->width, *high = tensor->high + at * tensor->width;
    const double spread = spread_of(low, high, tensor->width);
    for (size_t c = 0; c < tensor->width; c++) {
        const double t = element_get(row, view->dtype, c), apart = t - high[c];
        const double unit = spread + record->unit * fabs(high[c]);
        parity_sums_add(sums, t, low[c], high[c]);

        if (apart == 0.0) continue;
        const double sparse = fabs(apart) / unit; /* infinite where nothing rounds */
        if (isnan(sums->sparse) || sparse <= sums->sparse) continue;
        sums->sparse = sparse;
        sums->worst_row = (uint32_t)at;
        sums->worst_column = c;
    }
}

static void see_row(struct parity_record *record, struct parity_tensor *tensor,
                    const struct watch_view *view, const void *row, size_t at) {
    double *keep = record->doing == PARITY_KEEP_LOW    ? tensor->low
                   : record->doing == PARITY_KEEP_HIGH ? tensor->high
                                                       : NULL;
    for (size_t c = 0; keep != NULL && c < view->width; c++)
        keep[at * tensor->width + c] = element_get(row, view->dtype, c);
    if (keep == NULL) hold_row(record, tensor, view, row, at);
    if (record->doing == PARITY_KEEP_LOW || !is_set_back(record, view)) return;
    for (size_t c = 0; c < tensor->width; c++)
        overwrite(view, row, c, tensor->low[at * tensor->width + c]);
}

static int is_known(const struct watch_view *view) {
    return view->kind == WATCH_REALS && view->data != NULL && view->width > 0 &&
           (view->axis == WATCH_TOKENS || view->axis == WATCH_LABELS || view->axis == WATCH_WHOLE);
}

static enum status see_view(struct parity_record *record, const struct watch_view *view) {
    struct parity_tensor *tensor = find(record, view);
    if (!is_known(view)) return STATUS_OK;
    /* a tensor that only B has */
    if (tensor == NULL && record->doing != PARITY_KEEP_LOW) return STATUS_OK;
    if (tensor == NULL) TRY(add(record, view, &tensor));
    if (tensor->width != view->width) return STATUS_OK;
    tensor->seen = 1;
    for (uint32_t i = 0; i < watch_cells(view); i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        for (uint32_t r = 0; r < cell.rows; r++)
            see_row(record, tensor, view, watch_row(view, &cell, r),
                    first_row(record, view, &cell) + r);
    }
    return STATUS_OK;
}

static void see(void *context, const struct watch_view *view) {
    struct parity_record *record = (struct parity_record *)context;
    if (record->status == STATUS_OK) record->status = see_view(record, view);
}

/* Numbers the rows in canonical order: by sample, chosen before rejected, by position. */
static enum status open_bases(struct parity_record *record, const struct batch *batch) {
    const size_t count = 2 * (size_t)batch->sample_count;
    TRY(arena_take(record->arena, count, sizeof(uint32_t), "components", &record->token_base));
    TRY(arena_take(record->arena, count, sizeof(uint32_t), "components", &record->label_base));
    record->base_count = (uint32_t)count;
    memset(record->token_base, 0xFF, count * sizeof *record->token_base);
    memset(record->label_base, 0xFF, count * sizeof *record->label_base);
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        const uint32_t s = batch->canonical_sequence[i];
        const uint32_t at = 2 * batch->sequences[s].sample + batch->sequences[s].side;
        record->token_base[at] = record->token_count;
        record->label_base[at] = record->label_count;
        record->token_count += batch->sequences[s].length;
        record->label_count += batch->label_length[s];
    }
    return STATUS_OK;
}

enum status parity_record_open(struct parity_record *record, const struct run *run,
                               struct arena *arena) {
    memset(record, 0, sizeof *record);
    record->arena = arena;
    record->unit = dtype_epsilon(run_model(run)->compute);
    record->watch.see = see;
    record->watch.context = record;
    return open_bases(record, run_batch(run));
}

enum status parity_record_pass(struct parity_record *record, struct run *run,
                               enum parity_recording doing, enum parity_level level,
                               uint64_t order_seed) {
    record->doing = doing;
    record->level = level;
    record->cursor = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        memset(&record->tensors[i].sums, 0, sizeof record->tensors[i].sums);
        record->tensors[i].seen = 0;
    }
    record->watch.stage = (enum watch_stage)(WATCH_PHASE + PHASE_FORWARD);
    enum status status = run_forward(run, order_seed, 0, &record->watch);
    record->watch.stage = (enum watch_stage)(WATCH_PHASE + PHASE_BACKWARD);
    if (status == STATUS_OK && (level == PARITY_OPS || level == PARITY_WHOLE))
        status = run_backward(run, &record->watch);
    arena_close(&record->watch.arena);
    TRY(status);
    if (record->watch.status != STATUS_OK) return record->watch.status;
    return record->status;
}

void parity_record_place(const struct parity_record *record, const struct parity_tensor *tensor,
                         uint32_t row, uint32_t *out_sequence, uint32_t *out_within) {
    const uint32_t *base = tensor->axis == WATCH_LABELS ? record->label_base : record->token_base;
    *out_sequence = UINT32_MAX;
    *out_within = row;
    if (tensor->axis == WATCH_WHOLE) return;
    for (uint32_t i = 0; i < record->base_count; i++) {
        /* bases ascend, so a later sequence overwrites an earlier one */
        if (base[i] > row) continue;
        *out_sequence = i;
        *out_within = row - base[i];
    }
}

void parity_sums_add(struct parity_sums *sums, double t, double l, double h) {
    sums->target = real_fma_f64(t - h, t - h, sums->target);
    sums->baseline = real_fma_f64(l - h, l - h, sums->baseline);
    sums->scale = real_fma_f64(h, h, sums->scale);
    sums->along = real_fma_f64(t - h, h, sums->along);
    sums->elements++;
    sums->equal += memcmp(&t, &l, sizeof t) == 0;
    sums->broken += !isfinite(t) && isfinite(l) && isfinite(h);
}

double parity_sums_ratio(const struct parity_sums *sums) {
    if (sums->elements == 0) return (double)NAN;
    if (sums->target == 0.0) return 0.0;
    const double eps = 0x1p-52 * real_sqrt_f64(sums->scale);
    return real_sqrt_f64(sums->target) / (real_sqrt_f64(sums->baseline) + eps);
}
