/* SPDX-License-Identifier: Apache-2.0
 * Least squares from weights and slots to learning rate, weight decay and gradient scale, each with
 * a bound of its error from rounding. */
#include "trainer/readback.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "kernels/products.h"
#include "trainer/plugin.h"
#include "trainer/run_private.h"
#include "trainer/taken.h"

static size_t working_offset(const struct run *run, uint32_t row) {
    const struct state_tensor *tensor = &run->layout.tensor[row];
    return run->layout.has_master ? tensor->master : tensor->param;
}

static int has_moment(const struct run *run) {
    return run->optimizer->moment != NULL && run->optimizer->slot_count > 0;
}

enum status readback_open(struct run *run) {
    size_t carrier = dtype_carrier(taken_working(run));
    TRY(arena_take(&run->arena, run->table.elements, carrier, "last weights", &run->working));
    if (!has_moment(run)) return STATUS_OK;
    carrier = dtype_carrier(run->layout.slot_dtype);
    return arena_take(&run->arena, run->table.elements, carrier, "last moments", &run->moment);
}

void readback_keep(struct run *run) {
    const size_t carrier = dtype_carrier(taken_working(run));
    const size_t slot = dtype_carrier(run->layout.slot_dtype);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        const struct state_tensor *tensor = &run->layout.tensor[row];
        memcpy(run->working + run->packed[row] * carrier, run_at(run, working_offset(run, row)),
               run->table.rows[row].count * carrier);
        if (run->moment != NULL && tensor->slot_count[0] == run->table.rows[row].count)
            memcpy(run->moment + run->packed[row] * slot, run_at(run, tensor->slot[0]),
                   run->table.rows[row].count * slot);
    }
}

/* Normal equations of new - old = -lr * u - c * old, each element in units of its ulp. Without
 * weight decay c = 0 and one unknown is left. `u`, `p` without a partner are sums of magnitudes:
 * the stored value was rounded once, by at most half an ulp, and roundings of equal steps inside
 * one binade are all alike, so the error bound adds them up instead of averaging them out. */
struct readback {
    double uu, up, pp, ud, pd, u, p;
};

/* Of zero and subnormals that of 2^-126 at least. A weight that crosses zero is rounded like the
 * larger of its two values. */
static double spacing(double x, enum dtype dtype) {
    return dtype_spacing(fabs(x) > 0x1p-126 ? x : 0x1p-126, dtype);
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
    enum dtype dtype = taken_working(run);
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
    const unsigned char *old = run->working + run->packed[row] * dtype_carrier(taken_working(run));
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
 * rounding is drawn), all in the sense that hurts most; and the direction itself, which the
 * optimizer rounded in a handful of operations: TAKEN_ROUNDINGS half units of the working dtype
 * bound that part. */
struct answer {
    double lr, lr_error, decay, decay_error;
};

static void solve_rate(const struct readback *sum, double half, struct answer *out) {
    if (!(sum->uu > 0.0)) return;
    out->lr = 0.0 - sum->ud / sum->uu;
    out->lr_error = half * sum->u / sum->uu;
}

/* Both unknowns: what moves along u is the rate, what moves along the weights the decay. */
static void solve_both(const struct readback *sum, double half, struct answer *out) {
    const double determinant = sum->uu * sum->pp - sum->up * sum->up;
    if (!(determinant > 0.0)) return;
    const double rounding = 2.0 * half; /* decay rounds once more */
    out->lr = 0.0 - (sum->ud * sum->pp - sum->pd * sum->up) / determinant;
    out->lr_error = rounding * (sum->u * sum->pp + sum->p * fabs(sum->up)) / determinant;
    const double c = 0.0 - (sum->pd * sum->uu - sum->ud * sum->up) / determinant;
    const double c_error = rounding * (sum->p * sum->uu + sum->u * fabs(sum->up)) / determinant;
    if (!(fabs(out->lr) > out->lr_error)) return;
    out->decay = c / out->lr;
    out->decay_error = (c_error + fabs(out->decay) * out->lr_error) / fabs(out->lr);
}

/* The rate with the decay that is configured: one unknown where there is none. */
static struct answer solve(const struct readback *sum, int decayed, double half, enum dtype dtype) {
    struct answer both = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    struct answer out = both;
    solve_both(sum, half, &both);
    if (decayed)
        out = both;
    else
        solve_rate(sum, half, &out);
    out.decay = both.decay;
    out.decay_error = both.decay_error;
    out.lr_error += fabs(out.lr) * TAKEN_ROUNDINGS * dtype_epsilon(dtype) / 2;
    out.decay_error += fabs(out.decay) * TAKEN_ROUNDINGS * dtype_epsilon(dtype) / 2;
    return out;
}

static enum status read_group(struct run *run, const struct optim_call *call, uint32_t group) {
    const enum dtype dtype = taken_working(run);
    const double decay = call->groups[group].weight_decay;
    struct readback sum = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        if (run->table.rows[row].group != group) continue;
        const void *old = run->working + run->packed[row] * dtype_carrier(dtype);
        TRY(plugin_direction(&run->config.optimizer.which, run->optimizer, call, i, old,
                             run->direction));
        struct readback term;
        readback_tensor(run, row, decay, &term);
        readback_add(&sum, &term);
    }
    const int drawn = run->config.numerics.rounding == ROUNDING_STOCHASTIC;
    const struct answer answer = solve(&sum, decay != 0.0, drawn ? 1.0 : 0.5, dtype);
    double *const out = run->record.groups[group];
    out[GROUP_LR_READBACK] = answer.lr;
    out[GROUP_LR_ERROR] = answer.lr_error;
    if (!(run->optimizer->flags & OPTIM_DECOUPLED)) return STATUS_OK;
    out[GROUP_WD_READBACK] = answer.decay;
    out[GROUP_WD_ERROR] = answer.decay_error;
    return STATUS_OK;
}

static enum status read_taken(struct run *run, const struct optim_call *call) {
    struct taken_rule rule;
    double squares = 0.0, errors = 0.0, gradient[SUM_BLOCK], error[SUM_BLOCK];
    if (call->found_inf) return STATUS_OK;
    TRY(taken_rule_of(run, &rule));
    if (rule.source != TAKEN_MOMENT) return STATUS_OK;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        struct sum_blocks_f64 sums[2] = {{.count = 0}, {.count = 0}};
        for (size_t first = 0; first < run->table.rows[row].count; first += SUM_BLOCK) {
            const size_t left = run->table.rows[row].count - first;
            const size_t count = left < SUM_BLOCK ? left : SUM_BLOCK;
            taken_values(run, &rule, row, first, count, gradient, error);
            sum_blocks_push_f64(&sums[0], products_block(gradient, gradient, count));
            sum_blocks_push_f64(&sums[1], products_block(error, error, count));
        }
        squares += sum_blocks_close_f64(&sums[0]);
        errors += sum_blocks_close_f64(&sums[1]);
    }
    run->record.reals[REAL_GRAD_TAKEN] = real_sqrt_f64(squares);
    run->record.reals[REAL_GRAD_TAKEN_ERROR] = real_sqrt_f64(errors);
    return STATUS_OK;
}

enum status readback_measure(struct run *run, const struct optim_call *call) {
    TRY(read_taken(run, call));
    if (run->optimizer->direction == NULL) return STATUS_OK;
    for (uint32_t g = 0; g < run->table.groups; g++)
        TRY(read_group(run, call, g));
    return STATUS_OK;
}
