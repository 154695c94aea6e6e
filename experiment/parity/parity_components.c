/* SPDX-License-Identifier: Apache-2.0
 * Runs the four runs over the batches, level by level, and collects R of every tensor into rows.
 * What the rows mean is judged in parity_judge.c. Weights of the runs are restored at the end.
 * Invariant: the rows of a level are in the order of its tensors, in every batch. */
#include "experiment/parity/parity_components.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "experiment/pair.h"
#include "experiment/parity/parity_measuring.h"
#include "trainer/run_pass.h"
#include "trainer/run_tensors.h"

#define REPLICAS_MOST 4u /* replicas of each batch; a bound, since batches multiply them */

/* ---- what a tensor is ---- */

static enum parity_component component_of(const struct parity_tensor *tensor) {
    switch (tensor->op.label) {
    case LABEL_EMBED_TOKENS:
        return PARITY_EMBEDDING;
    case LABEL_ROTARY:
        return PARITY_ROPE;
    case LABEL_ATTENTION:
        return PARITY_ATTENTION;
    case LABEL_SWIGLU:
        return PARITY_ACTIVATION;
    case LABEL_RESIDUAL:
        return PARITY_RESIDUAL;
    case LABEL_LOG_SOFTMAX:
        return PARITY_LOSS;
    case LABEL_Q_NORM:
    case LABEL_K_NORM:
    case LABEL_INPUT_NORM:
    case LABEL_POST_ATTENTION_NORM:
    case LABEL_POST_MLP_NORM:
    case LABEL_NORM:
        return PARITY_NORM;
    default:
        return PARITY_LINEAR;
    }
}

static enum parity_side side_of(const struct parity_tensor *tensor) {
    if (tensor->axis == WATCH_WHOLE) return PARITY_WEIGHT_GRADIENT;
    return tensor->stage == WATCH_PHASE + PHASE_FORWARD ? PARITY_OUTPUT : PARITY_INPUT_GRADIENT;
}

static int is_stream(const struct parity_tensor *tensor, enum watch_label which) {
    return tensor->op.label == LABEL_RESIDUAL && tensor->tensor.label == which;
}

/* Whether a level compares this tensor, and as which component. The branch of an attention or an
 * MLP is what was written right before it was added to the stream, so the next tensor tells. */
static int is_of_level(const struct parity_record *record, uint32_t i, enum parity_level level,
                       enum parity_component *out) {
    const struct parity_tensor *tensor = &record->tensors[i];
    const struct parity_tensor *next = i + 1 < record->count ? &record->tensors[i + 1] : NULL;
    const int forward = side_of(tensor) == PARITY_OUTPUT;
    *out = component_of(tensor);
    switch (level) {
    case PARITY_OPS:
        return 1;
    case PARITY_PARTS:
        if (next == NULL || !forward || next->layer != tensor->layer) return 0;
        *out = is_stream(next, LABEL_AFTER_ATTENTION) ? PARITY_ATTENTION_PART : PARITY_MLP;
        return is_stream(next, LABEL_AFTER_ATTENTION) || is_stream(next, LABEL_AFTER_MLP);
    case PARITY_BLOCKS:
        *out = PARITY_BLOCK;
        return forward && is_stream(tensor, LABEL_AFTER_MLP);
    case PARITY_WHOLE:
    default:
        *out = forward ? PARITY_MODEL : PARITY_TENSOR;
        if (!forward) return side_of(tensor) == PARITY_WEIGHT_GRADIENT;
        return is_stream(tensor, LABEL_AFTER_MLP) || tensor->tensor.label == LABEL_LOGITS;
    }
}

/* ---- rows ---- */

enum status parity_add_row(struct parity_measuring *m, const struct parity_component_row *like) {
    struct parity_components *all = m->out;
    TRY(arena_grow(m->parity->arena, all->count + (size_t)1, &m->room, sizeof *all->rows,
                   "components", &all->rows));
    struct parity_component_row *const row = &all->rows[all->count++];
    *row = *like;
    TRY(parity_sample_open(&row->ratio, all->batches, m->parity->arena));
    return parity_sample_open(&row->replica, (size_t)all->batches * all->replicas,
                              m->parity->arena);
}

static enum status make_row(struct parity_measuring *m, const struct parity_tensor *tensor,
                            enum parity_level level, enum parity_component component) {
    const struct parity_component_row row = {.level = level,
                                             .component = component,
                                             .side = side_of(tensor),
                                             .layer = tensor->layer,
                                             .op = tensor->op.text,
                                             .tensor = tensor->tensor.text,
                                             .vector =
                                                 tensor->axis == WATCH_WHOLE && tensor->width <= 1};
    return parity_add_row(m, &row);
}

/* Keeps the batch with the largest relative error. A factor on everything leaves an error along h,
 * which rounding and most faults do not; hence the share that it explains. */
static void add_relative(struct parity_component_row *row, const struct parity_sums *sums) {
    const int nothing = sums->target == 0.0 || (sums->scale == 0.0 && !isnan(sums->target));
    const double relative = nothing ? 0.0 : real_sqrt_f64(sums->target / sums->scale);
    if (isnan(row->relative) || relative <= row->relative) return;
    row->relative = relative;
    row->factor = 1.0 + sums->along / sums->scale;
    row->explained = sums->along * sums->along / (sums->scale * sums->target);
}

/* A NaN in one batch of many must not hide behind a median, so not_finite notes it. */
void parity_add_ratio(struct parity_component_row *row, const struct parity_sums *sums) {
    const double ratio = parity_sums_ratio(sums);
    parity_sample_add(&row->ratio, ratio);
    add_relative(row, sums);
    row->elements += sums->elements;
    row->apart += sums->elements - sums->equal;
    row->broken += sums->broken;
    row->not_finite |= sums->broken > 0 || (sums->elements > 0 && isnan(ratio));
}

static void add_target(const struct parity_measuring *m, struct parity_component_row *row,
                       const struct parity_sums *sums) {
    parity_add_ratio(row, sums);
    row->equal += sums->elements == 0
                      ? 0.0
                      : (double)sums->equal / (double)sums->elements / (double)m->out->batches;
    if (isnan(row->sparse) || sums->sparse <= row->sparse) return;
    row->sparse = sums->sparse;
    row->worst_column = sums->worst_column;
    row->worst_batch = m->batch;
}

enum passing { OF_TARGET, OF_REPLICA, OF_LOW };

void parity_pool(struct parity_sums *all, const struct parity_sums *sums) {
    all->target = parity_add(all->target, sums->target);
    all->baseline = parity_add(all->baseline, sums->baseline);
    all->scale = parity_add(all->scale, sums->scale);
    all->along = parity_add(all->along, sums->along);
    all->elements += sums->elements;
    all->equal += sums->equal;
    all->broken += sums->broken;
}

static void add(const struct parity_measuring *m, struct parity_component_row *row,
                const struct parity_sums *sums, enum passing passing) {
    if (passing == OF_TARGET) {
        add_target(m, row, sums);
        return;
    }
    if (passing == OF_REPLICA) parity_sample_add(&row->replica, parity_sums_ratio(sums));
    if (sums->sparse > row->replica_sparse) row->replica_sparse = sums->sparse;
}

/* Adds one pass to the rows of its level, in the order of its tensors; where gradients are compared
 * end to end, a row of all of them follows. */
static void collect(const struct parity_measuring *m, const struct parity_record *record,
                    enum parity_level level, uint32_t first_row, enum passing passing) {
    struct parity_sums all = {0};
    uint32_t at = first_row;
    for (uint32_t i = 0; i < record->count; i++) {
        const struct parity_sums *sums = &record->tensors[i].sums;
        enum parity_component component;
        if (!is_of_level(record, i, level, &component)) continue;
        if (component == PARITY_TENSOR) parity_pool(&all, sums);
        add(m, &m->out->rows[at], sums, passing);
        if (passing == OF_TARGET && m->out->rows[at].worst_batch == m->batch)
            parity_record_place(record, &record->tensors[i], sums->worst_row,
                                &m->out->rows[at].worst_sequence, &m->out->rows[at].worst_within);
        at++;
    }
    if (level == PARITY_WHOLE) add(m, &m->out->rows[at], &all, passing);
}

enum status parity_make_pool(struct parity_measuring *m, enum parity_side side,
                             const char *tensor) {
    const struct parity_component_row row = {.level = PARITY_WHOLE,
                                             .component = PARITY_MODEL,
                                             .side = side,
                                             .layer = PASS_NO_LAYER,
                                             .op = "all tensors",
                                             .tensor = tensor};
    return parity_add_row(m, &row);
}

/* Finds the rows of a level; the first batch appends them. */
static enum status open_level(struct parity_measuring *m, const struct parity_record *record,
                              enum parity_level level) {
    for (uint32_t i = 0; i < record->count; i++) {
        enum parity_component component;
        if (!is_of_level(record, i, level, &component)) continue;
        if (m->batch == 0) TRY(make_row(m, &record->tensors[i], level, component));
        m->cursor++;
    }
    if (level != PARITY_WHOLE) return STATUS_OK;
    m->cursor++;
    return m->batch == 0 ? parity_make_pool(m, PARITY_WEIGHT_GRADIENT, "weight gradients")
                         : STATUS_OK;
}

/* ---- passes ---- */

static enum status run_level(struct parity_measuring *m, struct parity_record *record,
                             enum parity_level level) {
    const struct parity *parity = m->parity;
    const uint64_t seed = parity->request->seed;
    const uint32_t first_row = m->cursor;
    TRY(open_level(m, record, level));
    TRY(parity_record_pass(record, parity->run[PARITY_HIGH], PARITY_KEEP_HIGH, level, 0));
    TRY(parity_record_pass(record, parity->run[PARITY_B], PARITY_HOLD, level, seed + PARITY_B));
    collect(m, record, level, first_row, OF_TARGET);
    TRY(parity_record_pass(record, parity->run[PARITY_LOW], PARITY_HOLD, level, seed + PARITY_LOW));
    collect(m, record, level, first_row, OF_LOW);
    for (uint32_t r = 0; r < m->out->replicas; r++) {
        TRY(parity_record_pass(record, m->replica, PARITY_HOLD, level, seed + 1000 + r));
        collect(m, record, level, first_row, OF_REPLICA);
    }
    return STATUS_OK;
}

static enum status run_levels(struct parity_measuring *m, struct arena *arena) {
    const struct parity *parity = m->parity;
    struct parity_record record;
    const uint32_t count = parity_batch_size(parity);
    parity_batch(parity, m->batch, m->samples);
    for (int who = PARITY_B; who < PARITY_RUNS; who++)
        run_fill_batch(parity->run[who], m->samples, count);
    run_fill_batch(m->replica, m->samples, count);
    TRY(parity_record_open(&record, parity->run[PARITY_LOW], arena));
    TRY(parity_record_pass(&record, parity->run[PARITY_LOW], PARITY_KEEP_LOW, PARITY_WHOLE,
                           parity->request->seed + PARITY_LOW));
    m->cursor = 0;
    for (int level = 0; level < PARITY_LEVELS; level++) {
        TRY(parity_tick(parity, "components", (uint64_t)m->batch * PARITY_LEVELS + (uint64_t)level,
                        (uint64_t)m->out->batches * PARITY_LEVELS));
        TRY(run_level(m, &record, (enum parity_level)level));
    }
    return STATUS_OK;
}

/* ---- what is compared once ---- */

static enum status compare_rope(const struct run *low, const struct run *b,
                                struct parity_rope *out) {
    const size_t half = run_model(low)->D / 2;
    const uint32_t length = run_limits(low)->length < run_limits(b)->length
                                ? run_limits(low)->length
                                : run_limits(b)->length;
    const struct model *const x_of = run_model(low), *const y_of = run_model(b);
    const size_t x_bytes = length * half * x_of->form.width,
                 y_bytes = length * half * y_of->form.width;
    const void *xs[2], *ys[2];
    TRY(run_read(low, WINDOW_NOW, x_of->cosine, x_bytes, &xs[0]));
    TRY(run_read(low, WINDOW_OLD, x_of->sine, x_bytes, &xs[1]));
    TRY(run_read(b, WINDOW_NOW, y_of->cosine, y_bytes, &ys[0]));
    TRY(run_read(b, WINDOW_OLD, y_of->sine, y_bytes, &ys[1]));
    for (size_t at = 0; at < length * half; at++)
        for (int which = 0; which < 2; which++) {
            const double x = form_get(xs[which], x_of->form, at);
            const double y = form_get(ys[which], y_of->form, at);
            out->entries++;
            if (memcmp(&x, &y, sizeof x) == 0) continue;
            if (out->apart++ == 0) {
                out->position = (uint32_t)(at / half);
                out->pair = (uint32_t)(at % half);
            }
            out->largest = parity_larger(out->largest, fabs(x - y));
        }
    return STATUS_OK;
}

/* ---- all ---- */

static const char *untestable(const struct parity *parity) {
    if (parity->no_high != NULL) return parity->no_high;
    if (parity->shapes_differ) return "A and B have models of other shapes";
    for (int who = 0; who < PARITY_RUNS; who++)
        if (run_model(parity->run[who])->call.order_free)
            return "mode order-free keeps sums that are no tensors";
    return NULL;
}

static enum status measure(struct parity_measuring *m) {
    const struct parity *parity = m->parity;
    TRY(arena_take(parity->arena, parity_batch_size(parity), sizeof *m->samples, "components",
                   &m->samples));
    TRY(compare_rope(parity->run[PARITY_LOW], parity->run[PARITY_B], &m->out->rope));
    for (m->batch = 0; m->batch < m->out->batches; m->batch++) {
        struct arena arena = ARENA_EMPTY;
        const enum status status = run_levels(m, &arena);
        arena_close(&arena);
        TRY(status);
    }
    return parity_compare_updates(m);
}

/* Measures, then takes back the updates that moved the weights of B, low and high. */
static enum status measure_and_restore(struct parity_measuring *m) {
    const struct parity *parity = m->parity;
    unsigned char *state[PARITY_RUNS];
    for (int who = PARITY_B; who < PARITY_RUNS; who++) {
        TRY(arena_take(parity->arena, run_layout(parity->run[who])->bytes, 1, "snapshot",
                       &state[who]));
        TRY(run_snapshot(parity->run[who], state[who]));
    }
    TRY(measure(m));
    for (int who = PARITY_B; who < PARITY_RUNS; who++)
        TRY(run_restore(parity->run[who], state[who]));
    return STATUS_OK;
}

enum status parity_measure_components(const struct parity *parity, struct parity_components *out) {
    struct parity_measuring m = {.parity = parity, .out = out};
    memset(out, 0, sizeof *out);
    out->batches = parity->request->batches;
    out->replicas = parity->request->replicas;
    if (out->replicas > REPLICAS_MOST) out->replicas = REPLICAS_MOST;
    out->untestable = untestable(parity);
    out->finding = PARITY_UNTESTABLE;
    if (out->untestable != NULL) return STATUS_OK;
    TRY(parity_replica_open(parity, parity->request->seed, &m.replica));
    const enum status status = measure_and_restore(&m);
    run_close(m.replica);
    TRY(status);
    TRY(parity_settle(parity));
    parity_judge_components(out, parity->config[PARITY_B].numerics.compute ==
                                     parity->config[PARITY_LOW].numerics.compute);
    return STATUS_OK;
}
