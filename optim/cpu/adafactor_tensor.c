/* SPDX-License-Identifier: Apache-2.0
 * One step of Adafactor on a whole tensor, in one thread. The arithmetic of an element is
 * base/rule_optim.h; this file has the order of sums.
 *
 * Sums over a row, over the row statistics and over all elements (row-major) are law 2 in f64; a
 * sum over a column is one f64 chain down the rows. Each is rounded once to the working type, then
 * divided. Nothing is kept between passes over the tensor: elements of the update are computed
 * again, so no memory of its size is needed. */
#include "optim/cpu/range.h"

#include "base/sum.h"

/* What the passes share. */
struct pass {
    const struct step_range *range; /* the whole tensor */
    const struct optim_tensor *tensor;
    enum dtype param;
    struct form slot;
    size_t rows, columns;
    carrier eps1, beta2, weight2;
    carrier row_mean; /* the mean of the row statistics */
    struct range_block block;
};

static size_t shorter(size_t left, size_t limit) {
    return left < limit ? left : limit;
}

static void store_one(void *values, struct form form, size_t index, carrier value) {
    range_store(&value, values, form, index, 1);
}

static carrier load_one(const void *values, struct form form, size_t index) {
    return (carrier)form_get(values, form, index);
}

static carrier mean_of(double sum, size_t count) {
    return (carrier)sum / (carrier)count;
}

/* The root mean square from a sum of squares, as Adafactor._rms has it: tensor.norm(2) /
 * (tensor.numel() ** 0.5). */
static carrier rms_of(double squares, size_t count) {
    return (carrier)real_sqrt_f64(squares) / (carrier)real_sqrt_f64((double)count);
}

static void append_squares(struct sum_lanes_f64 *sum, const carrier *values, size_t count) {
    double wide[RANGE_BLOCK];
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i];
    sum_lanes_append_products_f64_f64(sum, wide, wide, count);
}

static carrier rms_of_param(struct pass *pass) {
    const size_t total = pass->tensor->count;
    struct sum_lanes_f64 sum;
    sum_lanes_open_f64(&sum);
    for (size_t first = 0; first < total; first += RANGE_BLOCK) {
        const size_t count = shorter(total - first, RANGE_BLOCK);
        range_load(pass->block.p, step_working(pass->range), form_carried(pass->param), first,
                   count);
        append_squares(&sum, pass->block.p, count);
    }
    return rms_of(sum_lanes_close_f64(&sum), total);
}

static void fold_rows(struct pass *pass) {
    void *slot = pass->tensor->slots[0];
    double wide[RANGE_BLOCK];
    for (size_t row = 0; row < pass->rows; row++) {
        struct sum_lanes_f64 sum;
        sum_lanes_open_f64(&sum);
        for (size_t first = 0; first < pass->columns; first += RANGE_BLOCK) {
            const size_t count = shorter(pass->columns - first, RANGE_BLOCK);
            range_load_gradient(pass->block.g, pass->range, row * pass->columns + first, count);
            for (size_t i = 0; i < count; i++)
                wide[i] = (double)rule_adafactor_square(pass->block.g[i], pass->eps1);
            sum_lanes_append_terms_f64_f64(&sum, wide, count);
        }
        const carrier mean = mean_of(sum_lanes_close_f64(&sum), pass->columns);
        store_one(slot, pass->slot, row,
                  rule_adafactor_mean(load_one(slot, pass->slot, row), mean, pass->beta2,
                                      pass->weight2, pass->slot.dtype));
    }
}

static void fold_columns(struct pass *pass) {
    void *slot = pass->tensor->slots[1];
    double chain[RANGE_BLOCK];
    for (size_t first = 0; first < pass->columns; first += RANGE_BLOCK) {
        const size_t count = shorter(pass->columns - first, RANGE_BLOCK);
        for (size_t i = 0; i < count; i++)
            chain[i] = 0.0;
        for (size_t row = 0; row < pass->rows; row++) {
            range_load_gradient(pass->block.g, pass->range, row * pass->columns + first, count);
            for (size_t i = 0; i < count; i++)
                chain[i] = chain[i] + (double)rule_adafactor_square(pass->block.g[i], pass->eps1);
        }
        range_load(pass->block.p, slot, pass->slot, first, count);
        for (size_t i = 0; i < count; i++)
            pass->block.p[i] = rule_adafactor_mean(pass->block.p[i], mean_of(chain[i], pass->rows),
                                                   pass->beta2, pass->weight2, pass->slot.dtype);
        range_store(pass->block.p, slot, pass->slot, first, count);
    }
}

static void fold_elements(struct pass *pass) {
    void *slot = pass->tensor->slots[2];
    const size_t total = pass->tensor->count;
    for (size_t first = 0; first < total; first += RANGE_BLOCK) {
        const size_t count = shorter(total - first, RANGE_BLOCK);
        range_load_gradient(pass->block.g, pass->range, first, count);
        range_load(pass->block.p, slot, pass->slot, first, count);
        for (size_t i = 0; i < count; i++) {
            const carrier square = rule_adafactor_square(pass->block.g[i], pass->eps1);
            pass->block.p[i] = rule_adafactor_mean(pass->block.p[i], square, pass->beta2,
                                                   pass->weight2, pass->slot.dtype);
        }
        range_store(pass->block.p, slot, pass->slot, first, count);
    }
}

static carrier mean_of_rows(struct pass *pass) {
    struct sum_lanes_f64 sum;
    sum_lanes_open_f64(&sum);
    for (size_t row = 0; row < pass->rows; row++)
        sum_lanes_term_f64(&sum, (double)load_one(pass->tensor->slots[0], pass->slot, row));
    return mean_of(sum_lanes_close_f64(&sum), pass->rows);
}

/* Makes elements first .. first+count-1 of one row of the update, before it is clipped, in block.g.
 */
static void update_piece(struct pass *pass, size_t row, size_t first, size_t count) {
    carrier *g = pass->block.g;
    carrier *second = pass->block.slot[0];
    range_load_gradient(g, pass->range, row * pass->columns + first, count);
    if (pass->tensor->rank < 2) {
        range_load(second, pass->tensor->slots[2], pass->slot, first, count);
        for (size_t i = 0; i < count; i++)
            g[i] = rule_rsqrt(second[i]) * g[i];
        return;
    }
    const carrier row_factor =
        rule_rsqrt(load_one(pass->tensor->slots[0], pass->slot, row) / pass->row_mean);
    range_load(second, pass->tensor->slots[1], pass->slot, first, count);
    for (size_t i = 0; i < count; i++)
        g[i] = (row_factor * rule_rsqrt(second[i])) * g[i];
}

static carrier rms_of_update(struct pass *pass) {
    struct sum_lanes_f64 sum;
    sum_lanes_open_f64(&sum);
    for (size_t row = 0; row < pass->rows; row++)
        for (size_t first = 0; first < pass->columns; first += RANGE_BLOCK) {
            const size_t count = shorter(pass->columns - first, RANGE_BLOCK);
            update_piece(pass, row, first, count);
            append_squares(&sum, pass->block.g, count);
        }
    return rms_of(sum_lanes_close_f64(&sum), pass->tensor->count);
}

/* The numbers with which an element of the update is divided, multiplied, averaged and decayed. */
struct ending {
    carrier divisor, lr, beta1, weight1, minus_decay;
    int averaged;
};

static void end_piece(struct pass *pass, const struct ending *ending, size_t row, size_t first,
                      size_t count) {
    struct range_block *block = &pass->block;
    const size_t at = row * pass->columns + first;
    update_piece(pass, row, first, count);
    range_load(block->p, step_working(pass->range), form_carried(pass->param), at, count);
    if (ending->averaged) range_load(block->slot[1], pass->tensor->slots[3], pass->slot, at, count);
    for (size_t i = 0; i < count; i++) {
        carrier update = (block->g[i] / ending->divisor) * ending->lr;
        if (ending->averaged) {
            const carrier old = rule_store(block->slot[1][i] * ending->beta1, pass->slot.dtype);
            update = rule_store(old + ending->weight1 * update, pass->slot.dtype);
            block->slot[1][i] = update;
        }
        const carrier p = rule_adafactor_param(block->p[i], update, ending->minus_decay);
        block->p[i] = rule_store(p, pass->param);
    }
    if (ending->averaged)
        range_store(block->slot[1], pass->tensor->slots[3], pass->slot, at, count);
    range_store_param(block, block->p, pass->range, at, count);
}

void VARIANT(optim_adafactor_tensor)(const struct optim_tensor *tensor,
                                     const struct step_range *range,
                                     const struct optim_adafactor_scalars *s) {
    struct pass pass;
    if (tensor->count == 0) return;
    pass.range = range;
    pass.tensor = tensor;
    pass.param = step_working_dtype(range);
    pass.slot = range->slot;
    pass.rows = tensor->rank < 2 ? 1 : (size_t)tensor->shape[0];
    pass.columns = tensor->count / pass.rows;
    pass.eps1 = (carrier)s->eps1;
    pass.beta2 = (carrier)s->beta2;
    pass.weight2 = (carrier)(1.0 - s->beta2);
    pass.row_mean = (carrier)1;
    double lr = s->lr;
    if (s->scale_parameter) { /* the scale is max(eps2, RMS): a Python float, or an f32 tensor,
                                 which the rate joins in f32 */
        const carrier rms = rms_of_param(&pass);
        lr = rms > (carrier)s->eps2 ? (double)(rms * (carrier)s->lr) : s->eps2 * s->lr;
    }
    if (tensor->rank < 2) {
        fold_elements(&pass);
    } else {
        fold_rows(&pass);
        fold_columns(&pass);
        pass.row_mean = mean_of_rows(&pass);
    }
    const carrier rms = rms_of_update(&pass) / (carrier)s->clip_threshold;
    const struct ending ending = {rms > (carrier)1 || rms != rms ? rms : (carrier)1,
                                  (carrier)lr,
                                  (carrier)s->beta1,
                                  (carrier)(1.0 - s->beta1),
                                  (carrier)(0.0 - s->weight_decay * lr),
                                  s->averaged};
    for (size_t row = 0; row < pass.rows; row++)
        for (size_t first = 0; first < pass.columns; first += RANGE_BLOCK)
            end_piece(&pass, &ending, row, first, shorter(pass.columns - first, RANGE_BLOCK));
}
