/* SPDX-License-Identifier: Apache-2.0
 * What is recorded of an update besides what its phases note: norms of parameters and updates,
 * survival of stored bits, digests of the state, and the LR read back from the weights.
 * Reads the state, writes records; no bit of the training depends on it. */
#include "trainer/run_private.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "determinism/root.h"
#include "kernels/products.h"
#include "trainer/consumers.h"
#include "trainer/distance.h"
#include "trainer/plugin.h"

static size_t param_bytes(const struct run *run) {
    return run->table.elements * dtype_carrier((enum dtype)run->config.numerics.param);
}

static enum dtype working_dtype(const struct run *run) {
    return run->layout.has_master ? run->layout.master_dtype
                                  : (enum dtype)run->config.numerics.param;
}

static size_t working_offset(const struct run *run, uint32_t row) {
    const struct state_tensor *tensor = &run->layout.tensor[row];
    return run->layout.has_master ? tensor->master : tensor->param;
}

static void copy_params(const struct run *run, unsigned char *out) {
    size_t carrier = dtype_carrier((enum dtype)run->config.numerics.param);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        memcpy(out + run->packed[row] * carrier, run_param(run, row),
               run->table.rows[row].count * carrier);
    }
}

static void clear_record(struct run *run) {
    struct record *record = &run->record;
    struct record_shape shape = run->shape;
    for (size_t i = 0; i < RECORD_REALS; i++)
        record->reals[i] = (double)NAN;
    for (size_t i = 0; i < RECORD_INTEGERS; i++)
        record->integers[i] = -1;
    memset(record->digests, 0, sizeof record->digests);
    for (uint32_t g = 0; g < shape.groups; g++)
        for (size_t i = 0; i < RECORD_GROUPS; i++)
            record->groups[g][i] = (double)NAN;
    for (uint32_t t = 0; t < shape.tensors; t++)
        for (size_t i = 0; i < RECORD_TENSORS; i++)
            record->tensors[t][i] = (double)NAN;
    if (shape.tensors > 0)
        memset(record->tensor_digests, 0, shape.tensors * sizeof *record->tensor_digests);
    if (shape.phases > 0) memset(record->phases, 0, shape.phases * sizeof *record->phases);
    if (shape.sites > 0) memset(record->sites, 0, shape.sites * sizeof *record->sites);
    for (uint32_t m = 0; m < shape.micros; m++)
        for (size_t i = 0; i < RECORD_MICROS; i++)
            record->micros[m][i] = (double)NAN;
    for (uint32_t c = 0; c < shape.consumers; c++)
        record->ledger[c][LEDGER_WORDS] = -1;
}

void measure_begin(struct run *run) {
    clear_record(run);
    run->record.step = run_head(run)->done + 1;
    if (run->record.step == 1)
        memcpy(run->before, run->initial, param_bytes(run));
    else
        copy_params(run, run->before);
    digest_stream_init(&run->batch_stream, "batch");
    for (uint32_t site = 0; site < run->shape.sites; site++)
        digest_stream_init(&run->site_stream[site], "site");
    memset(&run->ledger, 0, sizeof run->ledger);
}

void measure_keep_working(struct run *run) {
    size_t carrier = dtype_carrier(working_dtype(run));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        memcpy(run->working + run->packed[row] * carrier, run_at(run, working_offset(run, row)),
               run->table.rows[row].count * carrier);
    }
}

/* Normal equations of new - old = -lr * u - c * old, each element in units of its ulp. Without
 * weight decay c = 0 and one unknown is left. `u`, `p` without a partner are sums of magnitudes:
 * the stored value was rounded once, by at most half an ulp, and roundings of equal steps inside
 * one binade are all alike, so the error bound adds them up instead of averaging them out. */
struct readback {
    double uu, up, pp, ud, pd, u, p;
};

/* Spacing of the dtype's values at x; of its smallest normal for zero and subnormals. A weight that
 * crosses zero is rounded like the larger of its two values. */
static double spacing(double x, enum dtype dtype) {
    double smallest = dtype_smallest(dtype) > 0x1p-126 ? dtype_smallest(dtype) : 0x1p-126;
    double magnitude = fabs(x) > smallest ? fabs(x) : smallest;
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits &= 0x7FF0000000000000u;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * dtype_epsilon(dtype);
}

static double value_at(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void readback_add(struct readback *sum, const struct readback *term) {
    sum->uu += term->uu;
    sum->up += term->up;
    sum->pp += term->pp;
    sum->ud += term->ud;
    sum->pd += term->pd;
    sum->u += term->u;
    sum->p += term->p;
}

/* One block's weighted direction, old value and change. */
struct readback_block {
    double u[SUM_BLOCK], p[SUM_BLOCK], d[SUM_BLOCK];
    double u_size[SUM_BLOCK], p_size[SUM_BLOCK], one[SUM_BLOCK];
};

static void readback_fill(const struct run *run, const void *old, const void *now, size_t first,
                          size_t count, double decay, struct readback_block *out) {
    enum dtype dtype = working_dtype(run);
    for (size_t i = 0; i < count; i++) {
        double before = value_at(old, dtype, first + i), after = value_at(now, dtype, first + i);
        double weight = 1.0 / spacing(fabs(before) > fabs(after) ? before : after, dtype);
        out->u[i] = (run->direction[first + i] - decay * before) * weight;
        out->p[i] = before * weight;
        out->d[i] = (after - before) * weight;
        out->u_size[i] = fabs(out->u[i]);
        out->p_size[i] = fabs(out->p[i]);
        out->one[i] = 1.0;
    }
}

static void readback_tensor(const struct run *run, uint32_t row, double decay,
                            struct readback *out) {
    const unsigned char *old = run->working + run->packed[row] * dtype_carrier(working_dtype(run));
    const void *now = run->state + working_offset(run, row);
    struct sum_blocks_f64 sums[7] = {{.count = 0}};
    struct readback_block block;
    for (size_t first = 0; first < run->table.rows[row].count; first += SUM_BLOCK) {
        size_t left = run->table.rows[row].count - first;
        size_t count = left < SUM_BLOCK ? left : SUM_BLOCK;
        readback_fill(run, old, now, first, count, decay, &block);
        sum_blocks_push_f64(&sums[0], products_block(block.u, block.u, count));
        sum_blocks_push_f64(&sums[1], products_block(block.u, block.p, count));
        sum_blocks_push_f64(&sums[2], products_block(block.p, block.p, count));
        sum_blocks_push_f64(&sums[3], products_block(block.u, block.d, count));
        sum_blocks_push_f64(&sums[4], products_block(block.p, block.d, count));
        sum_blocks_push_f64(&sums[5], products_block(block.u_size, block.one, count));
        sum_blocks_push_f64(&sums[6], products_block(block.p_size, block.one, count));
    }
    *out = (struct readback){sum_blocks_close_f64(&sums[0]), sum_blocks_close_f64(&sums[1]),
                             sum_blocks_close_f64(&sums[2]), sum_blocks_close_f64(&sums[3]),
                             sum_blocks_close_f64(&sums[4]), sum_blocks_close_f64(&sums[5]),
                             sum_blocks_close_f64(&sums[6])};
}

/* Half an ulp per rounding of the stored value (decay rounds it once more; one whole ulp where the
 * rounding is drawn), all in the sense that
 * hurts most; and the direction itself, which the optimizer rounded in a handful of operations:
 * READBACK_ROUNDINGS half units of the working dtype bound that part. */
#define READBACK_ROUNDINGS 8

static void readback_solve(const struct readback *sum, int decayed, double half, enum dtype dtype,
                           double *out_lr, double *out_error) {
    double determinant = sum->uu * sum->pp - sum->up * sum->up;
    *out_lr = (double)NAN;
    *out_error = (double)NAN;
    if (!decayed && sum->uu > 0.0) {
        *out_lr = 0.0 - sum->ud / sum->uu;
        *out_error = half * sum->u / sum->uu;
    } else if (decayed && determinant > 0.0) {
        *out_lr = 0.0 - (sum->ud * sum->pp - sum->pd * sum->up) / determinant;
        *out_error = (sum->u * sum->pp + sum->p * fabs(sum->up)) / determinant;
    }
    *out_error += fabs(*out_lr) * READBACK_ROUNDINGS * dtype_epsilon(dtype) / 2;
}

enum status measure_readback(struct run *run, const struct optim_call *call) {
    if (run->optimizer->direction == NULL) return STATUS_OK;
    enum dtype dtype = working_dtype(run);
    for (uint32_t g = 0; g < run->table.groups; g++) {
        struct readback sum = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        double decay = call->groups[g].weight_decay;
        for (uint32_t i = 0; i < run->owner_count; i++) {
            uint32_t row = run->owner[i];
            if (run->table.rows[row].group != g) continue;
            const void *old = run->working + run->packed[row] * dtype_carrier(dtype);
            TRY(plugin_direction(&run->config.optimizer.which, run->optimizer, call, i, old,
                                 run->direction));
            struct readback term;
            readback_tensor(run, row, decay, &term);
            readback_add(&sum, &term);
        }
        const int drawn = run->config.numerics.rounding == ROUNDING_STOCHASTIC;
        readback_solve(&sum, decay != 0.0, drawn ? 1.0 : 0.5, dtype,
                       &run->record.groups[g][GROUP_LR_READBACK],
                       &run->record.groups[g][GROUP_LR_ERROR]);
    }
    return STATUS_OK;
}

static void measure_params(struct run *run) {
    enum dtype dtype = (enum dtype)run->config.numerics.param;
    size_t carrier = dtype_carrier(dtype), changed = 0;
    double update = 0.0, norm = 0.0, travel = 0.0;
    struct span none = {NULL, dtype};
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        size_t count = run->table.rows[row].count;
        struct span now = {run_param(run, row), dtype};
        struct span old = {run->before + run->packed[row] * carrier, dtype};
        struct span start = {run->initial + run->packed[row] * carrier, dtype};
        double square = distance_squares(now, old, count);
        update += square;
        norm += distance_squares(now, none, count);
        travel += distance_squares(now, start, count);
        changed += distance_changed(now.values, old.values, dtype, count);
        if (run->shape.tensors > 0)
            run->record.tensors[i][TENSOR_UPDATE_NORM] = real_sqrt_f64(square);
    }
    double *reals = run->record.reals;
    reals[REAL_UPDATE_NORM] = real_sqrt_f64(update);
    reals[REAL_PARAM_NORM] = real_sqrt_f64(norm);
    reals[REAL_TRAVEL] = real_sqrt_f64(travel);
    reals[REAL_UPDATE_SURVIVAL] = (double)changed / (double)run->table.elements;
}

static enum status digest_params(struct run *run, struct digest *out_weights) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        const struct param_row *param = &run->table.rows[row];
        size_t shape[2] = {(size_t)param->shape[0], (size_t)param->shape[1]};
        TRY(digest_tensor(param->name, param->dtype, param->rank, shape, run_param(run, row),
                          &run->param_digest[row]));
        if (run->shape.tensors > 0)
            memcpy(run->record.tensor_digests[i][TENSOR_DIGEST_PARAMETER],
                   run->param_digest[row].byte, DIGEST_BYTES);
    }
    return state_weights_digest(&run->table, &run->layout, run->state, run->param_digest,
                                out_weights);
}

/* What `identical` compares. */
static void chain_root(struct run *run, const struct digest *applied) {
    struct state_head *head = run_head(run);
    root_next(&head->root, &run->record, applied, &head->root);
    memcpy(run->record.digests[DIGEST_ROOT], head->root.byte, DIGEST_BYTES);
}

static void note_optimize(struct run *run, const struct digest *applied) {
    uint8_t slot = run->axes.phase_slot[PHASE_OPTIMIZE];
    struct digest digest;
    if (slot == RUN_NO_SLOT) return;
    root_optimize(&run->record, applied, &digest);
    memcpy(run->record.phases[slot], digest.byte, DIGEST_BYTES);
}

/* Every NaN of a record has one pattern: which sign an invalid operation gives is the hardware's.
 */
static void fold_nan(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (isnan(values[i])) values[i] = (double)NAN;
}

static void fold_record(struct run *run) {
    struct record *record = &run->record;
    fold_nan(record->reals, RECORD_REALS);
    for (uint32_t g = 0; g < run->shape.groups; g++)
        fold_nan(record->groups[g], RECORD_GROUPS);
    for (uint32_t t = 0; t < run->shape.tensors; t++)
        fold_nan(record->tensors[t], RECORD_TENSORS);
    for (uint32_t m = 0; m < run->shape.micros; m++)
        fold_nan(record->micros[m], RECORD_MICROS);
}

enum status measure_end(struct run *run) {
    struct state_head *head = run_head(run);
    struct record *record = &run->record;
    record->integers[INTEGER_SKIPPED] = run->skipped;
    record->integers[INTEGER_EPOCH] = (int64_t)run->plan.epoch;
    record->integers[INTEGER_COUNTER] = (int64_t)head->n;
    record->integers[INTEGER_OPTIMIZER_T] = (int64_t)head->t;
    measure_params(run);
    fold_record(run);
    struct digest weights, applied, state, rng;
    TRY(digest_params(run, &weights));
    memcpy(record->digests[DIGEST_WEIGHTS], weights.byte, DIGEST_BYTES);
    root_applied(record, run->axes.groups, &applied);
    note_optimize(run, &applied);
    state_digest(run->state, &weights, &state);
    memcpy(record->digests[DIGEST_STATE], state.byte, DIGEST_BYTES);
    digest_ledger(&run->ledger, &rng);
    memcpy(record->digests[DIGEST_RNG], rng.byte, DIGEST_BYTES);
    consumers_count(run->axes.consumers, run->shape.consumers, &run->ledger, record->ledger);
    chain_root(run, &applied);
    return STATUS_OK;
}
