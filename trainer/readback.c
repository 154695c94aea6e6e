/* SPDX-License-Identifier: Apache-2.0
 * Least squares from weights and slots to learning rate, weight decay and gradient scale, each with
 * a bound of its error from rounding. The sums behind them are made where the tensors are
 * (kernels/readback_blocks.h), all tensors of a group at once. The directions of an optimizer that
 * is no rule of one element (Adafactor, a class of a module) are asked for here, one tensor after
 * another, and summed by the same arithmetic (base/rule_read.h) in the blocks of law 2. */
#include "trainer/readback.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "trainer/run_private.h"
#include "trainer/optimizer_input.h"
#include "trainer/measure_step.h"
#include "base/element.h"
#include "base/sum.h"
#include "kernels/backend_abi.h"
#include "kernels/evidence.h"
#include "model/backends.h"
#include "kernels/products.h"
#include "optim/direction.h"
#include "optim/read_rate.h"
#include "optim/slot.h"
#include "trainer/plugins/plugin.h"

/* Whether the optimizer's direction is a rule of one element. Elsewhere the class puts the
 * directions of one tensor after another into run->direction. */
static int is_ruled(const struct run *run) {
    return optim_has_direction_rule(run->optimizer);
}

/* Whether the weights that a step works on are those with which the update began: there is no
 * master, and no step came before it in the update. */
static int starts_from_params(const struct run *run) {
    const struct config *const config = &run->config;
    const uint64_t steps = loop_runs_per_update(config, PHASE_OPTIMIZE) +
                           loop_count(config, LOOP_EPOCH, PHASE_OPTIMIZE) +
                           loop_count(config, LOOP_EVAL, PHASE_OPTIMIZE);
    return !run->layout.has_master && steps == 1;
}

static int has_moment(const struct run *run) {
    return run->optimizer->moment != NULL && run->optimizer->slot_count > 0;
}

/* Takes room for what a step overwrites. A step that reads itself back needs a piece of the first
 * moments and of the weights at a time, which stays in the caches of the thread that steps it;
 * where it is not seen (found_inf), nobody asks what it took in, and the weights are kept whole. */
static enum status open_kept(struct run *run) {
    struct arena *const arena = arena_hidden(&run->arena);
    const size_t carrier = dtype_carrier(optimizer_working_dtype(run));
    const size_t slot = run->layout.slots.width, piece = measure_step_piece(run);
    run->working = run->before;
    if (!starts_from_params(run))
        TRY(arena_take(arena, run->table.elements, carrier, "last weights", &run->working));
    if (!has_moment(run)) return STATUS_OK;
    if (piece == 0 || !is_ruled(run))
        return arena_take(arena, run->table.elements, slot, "last moments", &run->moment);
    if (run->working != run->before)
        TRY(arena_take(&run->arena, run->config.numerics.threads, piece * carrier, "read-back",
                       &run->working_pieces));
    return arena_take(&run->arena, run->config.numerics.threads, piece * slot, "read-back",
                      &run->moment_pieces);
}

enum status readback_open(struct run *run) {
    size_t blocks = 0, largest = 0;
    for (uint32_t i = 0; i < run->table.count; i++)
        if (run->table.rows[i].count > largest) largest = run->table.rows[i].count;
    TRY(open_kept(run));
    if (is_ruled(run)) {
        for (uint32_t i = 0; i < run->owner_count; i++)
            blocks += readback_blocks_blocks(run->table.rows[run->owner[i]].count);
        TRY(arena_take(&run->arena, run->owner_count, sizeof *run->readback_blocks_asked,
                       "read-back", &run->readback_blocks_asked));
    }
    TRY(arena_take(&run->arena, run->owner_count + blocks, sizeof *run->reads, "read-back",
                   &run->reads));
    if (run->optimizer->direction == NULL || is_ruled(run)) return STATUS_OK;
    return arena_take(&run->arena, largest, sizeof(double), "direction", &run->direction);
}

/* Numbers in two bytes are none that an op converts, so the backend copies their bytes, queued like
 * an op. */
static enum status keep_moment(const struct run *run, const struct run_span *span) {
    const struct form form = run->layout.slots;
    const void *const from = run_at(run, run->layout.tensor[span->row].slot[0]);
    void *const to = form_place(run->moment, form, run->packed[span->row]);
    if (form_is_narrow(form))
        return backends_copy(run->backend, to, from, span->count * form.width);
    measure_keep(run, form.dtype, from, span->count, to);
    return STATUS_OK;
}

enum status readback_keep(struct run *run) {
    const size_t carrier = dtype_carrier(optimizer_working_dtype(run));
    RUN_EACH_SPAN(run, span) {
        const size_t count = run->table.rows[span.row].count;
        if (run->working != run->before)
            measure_keep(run, optimizer_working_dtype(run), optimizer_weights_now(run, span.row),
                         span.count, run->working + run->packed[span.row] * carrier);
        if (run->moment != NULL && run->layout.tensor[span.row].slot_count[0] == count)
            TRY(keep_moment(run, &span));
    }
    return STATUS_OK;
}

_Static_assert(READBACK_BLOCKS_BLOCK == SUM_BLOCK, "blocks of reads are those of law 2");

/* Returns the spacing rule of a dtype. Zero and subnormals have the spacing of 2^-126 at least, so
 * that no term is divided by a spacing of zero. */
static struct rule_spacing spacing_of(enum dtype dtype) {
    const double smallest = dtype_smallest(dtype);
    return (struct rule_spacing){dtype_epsilon(dtype), smallest > 0x1p-126 ? smallest : 0x1p-126};
}

static void close_sums(struct sum_blocks_f64 sums[READBACK_BLOCKS_SUMS],
                       struct readback_blocks_block *out) {
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
        out->sum[s] = sum_blocks_close_f64(&sums[s]);
}

/* ---- directions of a class ---- */

/* One block's weighted direction u, old value p and change d, the magnitudes of u and p, and ones.
 * The optimizer input and its error bound use u and p, too, when the others are done with them. */
struct block {
    double u[SUM_BLOCK], p[SUM_BLOCK], d[SUM_BLOCK];
    double u_size[SUM_BLOCK], p_size[SUM_BLOCK], one[SUM_BLOCK];
    double meant, lost; /* numbers of elements */
};

static void fill_terms(const struct run *run, const struct optimizer_places *at, size_t first,
                       size_t count, double decay, struct block *out) {
    const enum dtype dtype = optimizer_working_dtype(run);
    const struct rule_spacing spacing = spacing_of(dtype);
    out->meant = out->lost = 0.0;
    for (size_t i = 0; i < count; i++) {
        const struct rule_read_terms terms = rule_read_terms(
            &spacing, run->direction[first + i], 0.0, 0.0, decay,
            element_get(at->old, dtype, first + i), element_get(at->now, dtype, first + i));
        out->u[i] = terms.u;
        out->p[i] = terms.p;
        out->d[i] = terms.d;
        out->u_size[i] = fabs(terms.u);
        out->p_size[i] = fabs(terms.p);
        out->one[i] = 1.0;
        out->meant += terms.meant;
        out->lost += terms.lost;
    }
}

static void push_terms(const struct block *block, size_t count, struct sum_blocks_f64 *sums) {
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_UU], products_block(block->u, block->u, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_UP], products_block(block->u, block->p, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_PP], products_block(block->p, block->p, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_UD], products_block(block->u, block->d, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_PD], products_block(block->p, block->d, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_U], products_block(block->u_size, block->one, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_P], products_block(block->p_size, block->one, count));
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_MEANT], block->meant);
    sum_blocks_push_f64(&sums[READBACK_BLOCKS_LOST], block->lost);
}

static enum status sum_tensor(struct run *run, const struct optim_call *call, uint32_t index,
                              const struct optimizer_input_rule *rule,
                              struct readback_blocks_block *out) {
    const uint32_t row = run->owner[index];
    const size_t total = run->table.rows[row].count;
    const double decay = call->groups[run->table.rows[row].group].weight_decay;
    const int directed = run->optimizer->direction != NULL;
    struct sum_blocks_f64 sums[READBACK_BLOCKS_SUMS] = {{.count = 0}};
    struct optimizer_places at;
    struct block block;
    TRY(optimizer_input_places(run, rule, row, &at));
    if (directed)
        TRY(plugin_direction(&run->config.optimizer.which, run->optimizer, call, index, at.old,
                             run->direction));
    for (size_t first = 0; first < total; first += SUM_BLOCK) {
        const size_t left = total - first, count = left < SUM_BLOCK ? left : SUM_BLOCK;
        if (directed) {
            fill_terms(run, &at, first, count, decay, &block);
            push_terms(&block, count, sums);
        }
        if (rule->source != INPUT_FROM_MOMENT) continue;
        optimizer_input_values(run, rule, &at, first, count, block.u, block.p);
        sum_blocks_push_f64(&sums[READBACK_BLOCKS_TAKEN], products_block(block.u, block.u, count));
        sum_blocks_push_f64(&sums[READBACK_BLOCKS_TAKEN_ERROR],
                            products_block(block.p, block.p, count));
    }
    close_sums(sums, out);
    return STATUS_OK;
}

/* ---- a rule of one element ---- */

/* Returns the arguments that all tensors of a group share. Every tensor has the same dtypes. */
static struct readback_blocks_args args_of(const struct run *run, const struct optim_call *call,
                                           uint32_t index,
                                           const struct optimizer_input_rule *rule) {
    const struct optim_tensor *const tensor = &call->tensors[index];
    const enum dtype working = optimizer_working_dtype(run);
    struct readback_blocks_args args = {
        .working = working,
        .gradient_dtype = tensor->gradient_dtype,
        .slot = optim_slot_form(tensor),
        .direction = optim_direction_rule(run->optimizer, call, index),
        .spacing = spacing_of(working),
        .decay = call->groups[tensor->group].weight_decay,
    };
    if (rule->source == INPUT_FROM_MOMENT) {
        args.taken = optimizer_input_scalars(run, rule, run->owner[index]);
        if (args.direction.slack.taken_unit > args.taken.unit)
            args.taken.unit = args.direction.slack.taken_unit;
    }
    return args;
}

static struct readback_blocks_tensor tensor_of(const struct run *run, const struct optim_call *call,
                                               uint32_t index,
                                               const struct optimizer_input_rule *rule) {
    const struct optim_tensor *const tensor = &call->tensors[index];
    const uint32_t row = run->owner[index];
    struct readback_blocks_tensor out = {
        .count = tensor->count,
        .old = optimizer_weights_before(run, row),
        .now = optimizer_weights_now(run, row),
        .gradient = tensor->gradient,
    };
    for (int slot = 0; slot < READBACK_BLOCKS_SLOTS; slot++)
        out.slots[slot] = tensor->slots[slot];
    if (rule->source == INPUT_FROM_MOMENT && run->moment != NULL)
        out.moment = form_at(run->moment, run->layout.slots, run->packed[row]);
    if (run->options.readback == READBACK_ALL) return out;
    /* Both arms of a pair read the same blocks, and no tensor's first ones are read alone. */
    out.stride = readback_blocks_stride(readback_blocks_blocks(tensor->count));
    out.turn = (uint32_t)((run->record.step + row) % out.stride);
    return out;
}

/* Asks for the tensors of one group. `blocks` has room for the tensors of all groups in their
 * order, so those of the others are passed over. */
static void ask_group(struct run *run, const struct optim_call *call, uint32_t group,
                      const struct optimizer_input_rule *rule,
                      struct readback_blocks_block *blocks) {
    struct readback_blocks_args args = {.decay = 0.0};
    size_t asked = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct optim_tensor *const tensor = &call->tensors[i];
        if (tensor->group == group) {
            args = args_of(run, call, i, rule);
            run->readback_blocks_asked[asked] = tensor_of(run, call, i, rule);
            run->readback_blocks_asked[asked++].blocks = blocks;
        }
        blocks += readback_blocks_blocks(tensor->count);
    }
    if (asked > 0)
        backends_readback_blocks(run->backend, run->model.call.threads, &args,
                                 run->readback_blocks_asked, asked);
}

static void join(const struct readback_blocks_block *blocks, size_t count,
                 struct readback_blocks_block *out) {
    struct sum_blocks_f64 sums[READBACK_BLOCKS_SUMS] = {{.count = 0}};
    for (size_t i = 0; i < count; i++)
        for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
            sum_blocks_push_f64(&sums[s], blocks[i].sum[s]);
    close_sums(sums, out);
}

/* Joins the blocks of all owners, which lie behind their sums. */
static void join_all(const struct run *run, const struct optim_call *call,
                     struct readback_blocks_block *out) {
    const struct readback_blocks_block *blocks = out + run->owner_count;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t count = readback_blocks_blocks(call->tensors[i].count);
        join(blocks, count, &out[i]);
        blocks += count;
    }
}

static enum status ask_all(struct run *run, const struct optim_call *call,
                           const struct optimizer_input_rule *rule,
                           struct readback_blocks_block *out) {
    for (uint32_t g = 0; g < call->group_count; g++)
        ask_group(run, call, g, rule, out + run->owner_count);
    TRY(model_wait(&run->model));
    join_all(run, call, out);
    return STATUS_OK;
}

/* Writes the sums of each owner's tensor to `out`, behind which there is room for the blocks of all
 * tensors where the direction is a rule. Sums of the direction are 0 where the optimizer tells
 * none, and those of the optimizer input are 0 where `rule` is not INPUT_FROM_MOMENT. */
static enum status sum_all(struct run *run, const struct optim_call *call,
                           const struct optimizer_input_rule *rule,
                           struct readback_blocks_block *out) {
    if (is_ruled(run)) return ask_all(run, call, rule, out);
    TRY(model_wait(&run->model));
    for (uint32_t i = 0; i < run->owner_count; i++)
        TRY(sum_tensor(run, call, i, rule, &out[i]));
    return STATUS_OK;
}

static void add_sums(struct readback_blocks_block *to, const struct readback_blocks_block *term) {
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
        to->sum[s] += term->sum[s];
}

/* Roundings of half a unit each with which a direction is made again: at most those of Adafactor,
 * two roots, means and quotients. They count where the step itself is in f64, too. Every optimizer
 * has the same number, so that a class of a module is told the bound of a built-in one that steps
 * alike. */
#define AGAIN_ROUNDINGS 12

/* What the step's numbers may be off by: half an ulp for each rounding of the stored value (a whole
 * ulp where the rounding is drawn), what the optimizer rounded in the direction itself,
 * INPUT_ROUNDINGS half units of the working dtype, and what it rounded in numbers of the whole
 * step. Elements bring along what the rounding of slots leaves open. */
static struct read_rate_bounds bounds_of(const struct run *run, const struct rule_slack *slack) {
    const int drawn = run->config.numerics.rounding == ROUNDING_STOCHASTIC;
    const enum dtype working = optimizer_working_dtype(run);
    const int again = working == DTYPE_F64 ? AGAIN_ROUNDINGS : 0;
    const double unit = (INPUT_ROUNDINGS + again) * dtype_epsilon(working) / 2;
    return (struct read_rate_bounds){.half = drawn ? 1.0 : 0.5,
                                     .unit = unit + slack->lr_unit,
                                     .least = slack->lr_least,
                                     .shrink = slack->shrink_least};
}

static void read_group(struct run *run, const struct optim_call *call, uint32_t group) {
    const double decay = call->groups[group].weight_decay;
    struct readback_blocks_block sum = {{0.0}};
    struct rule_slack slack = {.is_on = 0}; /* that of all tensors of a group */
    for (uint32_t i = 0; i < run->owner_count; i++) {
        if (run->table.rows[run->owner[i]].group != group) continue;
        add_sums(&sum, &run->reads[i]);
        slack = optim_direction_rule(run->optimizer, call, i).slack;
    }
    const struct read_rate_bounds bounds = bounds_of(run, &slack);
    struct read_rate answer;
    read_rate_solve(&sum, decay != 0.0, &bounds, &answer);
    double *const out = run->record.groups[group];
    if (!call->found_inf && out[GROUP_LR_APPLIED] != 0.0) {
        run->steps.meant += sum.sum[READBACK_BLOCKS_MEANT];
        run->steps.lost += sum.sum[READBACK_BLOCKS_LOST];
    }
    out[GROUP_LR_READBACK] = answer.lr;
    out[GROUP_LR_ERROR] = answer.lr_error;
    if (!(run->optimizer->flags & OPTIM_DECOUPLED)) return;
    out[GROUP_WD_READBACK] = answer.decay;
    out[GROUP_WD_ERROR] = answer.decay_error;
}

static void read_taken(struct run *run) {
    struct readback_blocks_block sum = {{0.0}};
    for (uint32_t i = 0; i < run->owner_count; i++)
        add_sums(&sum, &run->reads[i]);
    run->record.reals[REAL_GRAD_TAKEN] = real_sqrt_f64(sum.sum[READBACK_BLOCKS_TAKEN]);
    run->record.reals[REAL_GRAD_TAKEN_ERROR] = real_sqrt_f64(sum.sum[READBACK_BLOCKS_TAKEN_ERROR]);
}

/* ---- a step that is seen ---- */

enum status readback_see(struct run *run, const struct optim_call *call,
                         struct readback_step *out) {
    struct readback_blocks_block *blocks = run->reads + run->owner_count;
    out->is_read = is_ruled(run);
    TRY(optimizer_input_rule_of(run, &out->rule));
    for (uint32_t i = 0; i < run->owner_count && out->is_read; i++) {
        out->args[call->tensors[i].group] = args_of(run, call, i, &out->rule);
        run->readback_blocks_asked[i] = tensor_of(run, call, i, &out->rule);
        run->readback_blocks_asked[i].blocks = blocks;
        blocks += readback_blocks_blocks(call->tensors[i].count);
    }
    return STATUS_OK;
}

static unsigned char *moment_piece(const struct run *run, uint32_t thread) {
    return run->moment_pieces + thread * measure_step_piece(run) * run->layout.slots.width;
}

static unsigned char *working_piece(const struct run *run, uint32_t thread) {
    const size_t carrier = dtype_carrier(optimizer_working_dtype(run));
    return run->working_pieces + thread * measure_step_piece(run) * carrier;
}

static const void *places_from(const void *values, struct form form, size_t first) {
    return values == NULL ? NULL : form_at(values, form, first);
}

void readback_keep_piece(const struct run *run, uint32_t thread, uint32_t index, size_t first,
                         size_t count) {
    const struct state_tensor *const tensor = &run->layout.tensor[run->owner[index]];
    const struct form working = form_carried(optimizer_working_dtype(run)),
                      slot = run->layout.slots;
    if (run->working != run->before)
        memcpy(run->working_pieces != NULL
                   ? working_piece(run, thread)
                   : form_place(run->working, working, run->packed[run->owner[index]] + first),
               form_at(optimizer_weights_now(run, run->owner[index]), working, first),
               count * working.width);
    if (run->moment_pieces != NULL && tensor->slot_count[0] > 0)
        memcpy(moment_piece(run, thread), form_at(run_at(run, tensor->slot[0]), slot, first),
               count * slot.width);
}

/* The piece as a tensor of its own, whose first moments of before, and whose weights of before
 * where the update does not keep them, are those that this thread has kept. */
static struct readback_blocks_tensor piece_of(const struct run *run,
                                              const struct readback_step *step, uint32_t thread,
                                              uint32_t index, size_t first, size_t count) {
    const struct readback_blocks_tensor *const whole = &run->readback_blocks_asked[index];
    const struct readback_blocks_args *const args =
        &step->args[run->table.rows[run->owner[index]].group];
    const struct form working = form_carried(args->working);
    const size_t block = first / READBACK_BLOCKS_BLOCK;
    struct readback_blocks_tensor piece = {
        .count = count,
        .old = run->working_pieces != NULL ? working_piece(run, thread)
                                           : form_at(whole->old, working, first),
        .now = form_at(whole->now, working, first),
        .gradient = places_from(whole->gradient, form_carried(args->gradient_dtype), first),
        .moment = step->rule.source == INPUT_FROM_MOMENT ? moment_piece(run, thread) : NULL,
        .stride = whole->stride,
        .blocks = whole->blocks + block,
    };
    for (int slot = 0; slot < READBACK_BLOCKS_SLOTS; slot++)
        piece.slots[slot] = places_from(whole->slots[slot], args->slot, first);
    if (whole->stride > 1)
        piece.turn =
            (whole->turn + whole->stride - (uint32_t)(block % whole->stride)) % whole->stride;
    return piece;
}

void readback_piece(const struct run *run, const struct readback_step *step, uint32_t thread,
                    uint32_t index, size_t first, size_t count, const struct ahead *next) {
    if (!step->is_read) return;
    const struct readback_blocks_tensor piece = piece_of(run, step, thread, index, first, count);
    evidence_readback_blocks_of(&step->args[run->table.rows[run->owner[index]].group], &piece, 0,
                                count, next);
}

enum status readback_measure(struct run *run, const struct optim_call *call,
                             const struct readback_step *step) {
    struct optimizer_input_rule rule = {INPUT_UNKNOWN, 0.0, 1.0};
    if (step != NULL && step->is_read) {
        rule = step->rule;
        join_all(run, call, run->reads);
    } else {
        if (!call->found_inf) TRY(optimizer_input_rule_of(run, &rule));
        TRY(sum_all(run, call, &rule, run->reads));
    }
    if (rule.source == INPUT_FROM_MOMENT) read_taken(run);
    for (uint32_t g = 0; g < run->table.groups && run->optimizer->direction != NULL; g++)
        read_group(run, call, g);
    return STATUS_OK;
}
