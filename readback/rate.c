/* SPDX-License-Identifier: Apache-2.0
 * Sums are those of law 2, in f64, joined over the tensors of a group in their order. */
#include "readback/rate.h"

#include <math.h>

#include "base/real.h"
#include "base/sum.h"
#include "kernels/products.h"
#include "optim/read_rate.h"

/* So many intervals are kept; of more, the narrower half stays. Each takes 24 bytes, twice. */
#define VOTES_ROOM ((size_t)1 << 19)

/* Elements that may disagree at the edge of the most voted interval: one in 2000. A thin interval
 * would else be one that a few elements, whose u carries one rounding more than its bound says,
 * push aside by a few units of the fifth digit. */
#define LENIENT 2000

/* What the votes' interval is padded by where the roundings of torch's loops were made again: those
 * of the factor lr / (1 - beta1^t) and of 1 - lr * weight_decay, both in f32, move it in the fifth
 * digit. */
#define TORCH_PADDING 1e-4

enum status rate_room_open(struct arena *arena, struct rate_room **out) {
    TRY(arena_take(arena, 1, sizeof **out, "read-back", out));
    return votes_open(&(*out)->votes, VOTES_ROOM, arena);
}

/* ---- the walk over elements ---- */

/* Is called for each block of each tensor of a scope whose direction is known. */
typedef void block_visit(const struct step_tensor *tensor, const struct direction_block *block,
                         void *context);

static void walk(const struct step *step, struct rate_scope scope,
                 enum direction_arithmetic arithmetic, struct direction_block *block,
                 block_visit *visit, void *context) {
    const struct step_group *const group =
        scope.instead != NULL ? scope.instead : &step->groups[scope.group];
    const char *why;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        const struct step_tensor *const tensor = &step->tensors[i];
        if (tensor->group != scope.group || (scope.only != STEP_NO_GROUP && scope.only != i))
            continue;
        if (!direction_is_known(group, tensor, &why)) continue;
        for (uint64_t first = 0; first < tensor->count; first += READBACK_BLOCK) {
            const uint64_t left = tensor->count - first;
            direction_fill(group, tensor, arithmetic, tensor->updates + scope.ahead, first,
                           left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK, block);
            for (size_t e = 0; scope.is_rounded && e < block->count; e++)
                block->old[e] = dtype_round(block->old[e], scope.rounded);
            visit(tensor, block, context);
            direction_passed(block);
        }
    }
}

/* ---- least squares ---- */

struct squares {
    struct sum_blocks_f64 sums[READBACK_BLOCKS_SUMS];
    struct rate_terms *terms;
    struct rate_reading *reading; /* counts elements, too */
    double lr, shrink;
};

static struct rule_spacing spacing_of(enum dtype dtype) {
    const double smallest = dtype_smallest(dtype);
    return (struct rule_spacing){dtype_epsilon(dtype), smallest > 0x1p-126 ? smallest : 0x1p-126};
}

/* Whether elements bring along how far their directions may be off: where the state keeps fewer
 * digits than the weights, roundings of the state are the larger part of the error, and where it is
 * f16, numbers may be too small to have a relative bound. Elsewhere one bound serves all. */
static int has_slack(enum dtype weights, enum dtype state) {
    return state == DTYPE_F16 || dtype_epsilon(state) > dtype_epsilon(weights);
}

static void fill_terms(const struct step_tensor *tensor, const struct direction_block *block,
                       struct rate_terms *out) {
    const struct rule_spacing spacing = spacing_of(tensor->now.dtype);
    const int is_slack = has_slack(tensor->now.dtype, tensor->first.dtype);
    for (size_t i = 0; i < block->count; i++) {
        const struct rule_read_terms terms =
            rule_read_terms(&spacing, block->u[i], is_slack ? block->error[i] : 0.0, 0.0, 0.0,
                            block->old[i], block->now[i]);
        out->u[i] = terms.u;
        out->p[i] = terms.p;
        out->d[i] = terms.d;
        out->e[i] = terms.e;
        out->u_size[i] = fabs(terms.u);
        out->p_size[i] = fabs(terms.p);
        out->one[i] = 1.0;
    }
}

/* Whether the decay alone moves an element: its direction is 0, and surely so. */
static int is_inert(const struct direction_block *block, size_t i) {
    return block->u[i] == 0.0 && block->error[i] == 0.0 && block->old[i] != 0.0;
}

static void count_elements(const struct direction_block *block, struct rate_reading *reading) {
    reading->elements += block->count;
    for (size_t i = 0; i < block->count; i++) {
        const int moved = block->now[i] != block->old[i];
        reading->moved += (uint64_t)moved;
        reading->lost += (uint64_t)(!moved && block->u[i] != 0.0);
        if (!is_inert(block, i)) continue;
        reading->inert++;
        reading->inert_moved += (uint64_t)moved;
    }
}

static void add_squares(const struct step_tensor *tensor, const struct direction_block *block,
                        void *context) {
    struct squares *const to = (struct squares *)context;
    struct rate_terms *const t = to->terms;
    const size_t n = block->count;
    count_elements(block, to->reading);
    to->reading->weights = tensor->now.dtype;
    to->reading->state = tensor->first.dtype;
    fill_terms(tensor, block, t);
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UU], products_block(t->u, t->u, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UP], products_block(t->u, t->p, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_PP], products_block(t->p, t->p, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UD], products_block(t->u, t->d, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_PD], products_block(t->p, t->d, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_U], products_block(t->u_size, t->one, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_P], products_block(t->p_size, t->one, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UE], products_block(t->u_size, t->e, n));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_PE], products_block(t->p_size, t->e, n));
}

/* Squares of what is left, in ulp, and of what roundings of the state may leave of an LR of 1. */
static void add_residual(const struct step_tensor *tensor, const struct direction_block *block,
                         void *context) {
    struct squares *const to = (struct squares *)context;
    struct rate_terms *const t = to->terms;
    fill_terms(tensor, block, t);
    for (size_t i = 0; i < block->count; i++)
        t->d[i] += to->lr * t->u[i] + to->shrink * t->p[i];
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UU], products_block(t->d, t->d, block->count));
    sum_blocks_push_f64(&to->sums[READBACK_BLOCKS_UE], products_block(t->e, t->e, block->count));
}

/* Sums over all blocks of a scope. They are joined as law 2 joins blocks. */
static void close_sums(struct squares *squares, struct readback_blocks_block *out) {
    for (int i = 0; i < READBACK_BLOCKS_SUMS; i++)
        out->sum[i] = sum_blocks_close_f64(&squares->sums[i]);
}

/* The root mean square of what lr and c leave of the changes, in ulp, less what the state's
 * roundings may leave. Least squares leave no more than the truth does, and that leaves no more
 * than both kinds of rounding, whose root mean squares add up. */
static double residual_of(const struct step *step, struct rate_scope scope, double lr,
                          double shrink, uint64_t elements, struct rate_room *room) {
    struct squares squares = {.terms = &room->terms, .lr = lr, .shrink = shrink};
    struct readback_blocks_block sums;
    if (elements == 0 || !(fabs(lr) >= 0.0)) return (double)NAN;
    walk(step, scope, DIRECTION_WIDE, &room->block, add_residual, &squares);
    close_sums(&squares, &sums);
    const double left = real_sqrt_f64(sums.sum[READBACK_BLOCKS_UU] / (double)elements);
    const double open = real_sqrt_f64(sums.sum[READBACK_BLOCKS_UE] / (double)elements);
    return left > fabs(lr) * open ? left - fabs(lr) * open : left - left;
}

double rate_residual_line(enum dtype weights) {
    return weights == DTYPE_F64 ? RATE_RESIDUAL_LINE_F64 : RATE_RESIDUAL_LINE;
}

static struct rate with_error(double value, double error, enum rate_method method) {
    struct rate out = {RATE_UNKNOWN, method, value, value - error, value + error, NULL};
    if (!(error >= 0.0)) return out;
    out.state = fabs(value) > error ? RATE_READ : RATE_AT_MOST;
    return out;
}

/* Least squares with one unknown where no decay is configured, else with two. Where one does not
 * explain the changes and two do, a decay acted that nobody configured. */
static void read_squares(const struct step *step, struct rate_scope scope, enum rate_method method,
                         const struct readback_blocks_block *sums, struct rate_room *room,
                         struct rate_reading *out) {
    const struct step_group *const group = &step->groups[scope.group];
    const int is_slack = has_slack(out->weights, out->state);
    const struct read_rate_bounds bounds = {.half = method == RATE_COPIES ? 1.0 : 0.5,
                                            .unit = is_slack ? 0.0
                                                             : 6.0 * dtype_epsilon(out->state) / 2};
    /* Weights of 0, as LoRA's second matrix is at its first update, have nothing to decay. */
    int decayed = group->decoupled && group->decay != 0.0 && sums->sum[READBACK_BLOCKS_PP] > 0.0;
    const double line = rate_residual_line(out->weights);
    struct read_rate answer;
    for (;;) {
        read_rate_solve(sums, decayed, &bounds, &answer);
        out->residual =
            residual_of(step, scope, answer.lr, decayed ? answer.shrink : 0.0, out->elements, room);
        if (decayed || !(out->residual > line) || !(sums->sum[READBACK_BLOCKS_PP] > 0.0)) break;
        decayed = out->needs_decay = 1;
    }
    out->lr = with_error(answer.lr, answer.lr_error, method);
    out->decay = with_error(answer.decay, answer.decay_error, method);
    if (out->residual > line) out->lr.state = out->decay.state = RATE_UNEXPLAINED;
}

/* ---- votes ---- */

struct ballot {
    struct votes *votes;
    enum direction_arithmetic arithmetic;
    double decay, shrink; /* of the group; the share of a weight that is taken off */
    struct votes_answer answer;
    uint64_t moved, moved_agreeing;
};

/* The interval of learning rates that bring an element from `base` to where it is. */
static struct stored_interval rates_of(const struct ballot *ballot,
                                       const struct step_tensor *tensor,
                                       const struct direction_block *block, size_t i) {
    const struct stored_interval at = stored_interval(tensor->now.dtype, block->now[i]);
    const double u = block->u[i], relative = block->error[i] / fabs(u);
    double base = block->old[i] * (1.0 - ballot->shrink);
    if (ballot->arithmetic == DIRECTION_TORCH) base = dtype_round(base, tensor->now.dtype);
    struct stored_interval out = {(base - at.high) / u, (base - at.low) / u};
    if (u < 0.0) out = (struct stored_interval){out.high, out.low};
    out.low -= fabs(out.low) * relative;
    out.high += fabs(out.high) * relative;
    return out;
}

static void add_votes(const struct step_tensor *tensor, const struct direction_block *block,
                      void *context) {
    const struct ballot *const ballot = (const struct ballot *)context;
    for (size_t i = 0; i < block->count; i++) {
        if (block->u[i] == 0.0) continue;
        const struct stored_interval rates = rates_of(ballot, tensor, block, i);
        votes_add(ballot->votes, rates.low, rates.high);
    }
}

/* Counts the elements that moved, and those of them that agree with the answer. Elements that stay
 * agree with almost anything, so the share of all says little where few move. */
static void count_moved(const struct step_tensor *tensor, const struct direction_block *block,
                        void *context) {
    struct ballot *const ballot = (struct ballot *)context;
    for (size_t i = 0; i < block->count; i++) {
        if (block->u[i] == 0.0 || block->now[i] == block->old[i]) continue;
        const struct stored_interval rates = rates_of(ballot, tensor, block, i);
        ballot->moved++;
        ballot->moved_agreeing +=
            (uint64_t)(rates.low <= ballot->answer.high && rates.high >= ballot->answer.low);
    }
}

/* With a decay the votes are counted twice: the share that it takes off is 1 - f32(1 - lr * decay),
 * which needs the rate. */
static void vote(const struct step *step, struct rate_scope scope, struct rate_room *room,
                 struct ballot *ballot) {
    for (int pass = 0; pass < (ballot->decay != 0.0 ? 2 : 1); pass++) {
        votes_clear(ballot->votes);
        walk(step, scope, ballot->arithmetic, &room->block, add_votes, ballot);
        ballot->answer = votes_count(ballot->votes, ballot->votes->count / LENIENT);
        const double lr = (ballot->answer.low + ballot->answer.high) / 2;
        if (pass == 0 && fabs(lr) <= 1.0)
            ballot->shrink = 1.0 - (double)(float)(1.0 - lr * ballot->decay);
    }
    walk(step, scope, ballot->arithmetic, &room->block, count_moved, ballot);
}

static double share_of(uint64_t part, uint64_t all) {
    return all > 0 ? (double)part / (double)all : 1.0;
}

/* The smaller of two shares: of all elements, and of those that moved. */
static double agreeing(const struct ballot *ballot) {
    const double all = share_of(ballot->answer.for_it, ballot->answer.count);
    const double moved = share_of(ballot->moved_agreeing, ballot->moved);
    return all < moved ? all : moved;
}

static struct rate elected(const struct votes_answer *answer, double padding,
                           enum rate_method method) {
    const double low = answer->low - fabs(answer->low) * padding;
    const double high = answer->high + fabs(answer->high) * padding;
    struct rate out = with_error((low + high) / 2, (high - low) / 2, method);
    out.low = low;
    out.high = high;
    return out;
}

static void read_votes(const struct step *step, struct rate_scope scope, struct rate_room *room,
                       struct rate_reading *out) {
    const struct step_group *const group = &step->groups[scope.group];
    const double decay = group->decoupled ? group->decay : 0.0;
    struct ballot wide = {.votes = &room->votes, .arithmetic = DIRECTION_WIDE, .decay = decay};
    struct ballot torch = wide;
    torch.arithmetic = DIRECTION_TORCH;
    vote(step, scope, room, &wide);
    vote(step, scope, room, &torch);
    out->torch_loops = group->rule == STEP_RULE_ADAM && agreeing(&torch) >= agreeing(&wide);
    const struct ballot *const chosen = out->torch_loops ? &torch : &wide;
    out->agreeing = agreeing(chosen);
    out->lr = elected(&chosen->answer, out->torch_loops ? TORCH_PADDING : 0.0, RATE_VOTES);
    if (chosen->answer.count == 0) out->lr.state = RATE_UNKNOWN;
    if (out->agreeing < RATE_AGREEING_LINE) out->lr.state = RATE_UNEXPLAINED;
}

/* ---- decay of inert elements ---- */

struct inert {
    struct votes *votes;
    int is_copied; /* the old weight was rounded from a wider one, too */
};

static void add_inert(const struct step_tensor *tensor, const struct direction_block *block,
                      void *context) {
    const struct inert *const to = (const struct inert *)context;
    for (size_t i = 0; i < block->count; i++) {
        const double old = block->old[i];
        if (!is_inert(block, i)) continue;
        const struct stored_interval at = stored_interval(tensor->now.dtype, block->now[i]);
        const struct stored_interval was = to->is_copied ? stored_interval(tensor->now.dtype, old)
                                                         : (struct stored_interval){old, old};
        const double a = 1.0 - at.high / was.low, b = 1.0 - at.low / was.high;
        votes_add(to->votes, a < b ? a : b, a < b ? b : a);
    }
}

/* An inert element moves by the decay alone, so it tells c without the rate, the count and eps. */
static void read_inert(const struct step *step, struct rate_scope scope, struct rate_room *room,
                       struct rate_reading *out) {
    out->shrink = (struct rate){.state = RATE_UNKNOWN, .method = RATE_INERT};
    if (out->inert == 0) return;
    votes_clear(&room->votes);
    struct inert inert = {&room->votes, out->lr.method == RATE_COPIES};
    walk(step, scope, DIRECTION_WIDE, &room->block, add_inert, &inert);
    const struct votes_answer answer = votes_count(&room->votes, room->votes.count / LENIENT);
    out->shrink = elected(&answer, 0.0, RATE_INERT);
    if (share_of(answer.for_it, answer.count) < RATE_AGREEING_LINE)
        out->shrink.state = RATE_UNEXPLAINED;
    if (out->shrink.state != RATE_READ || out->lr.state != RATE_READ || !(out->lr.low > 0.0))
        return;
    out->decay = with_error(0.0, 0.0, RATE_INERT);
    out->decay.low = out->shrink.low / out->lr.high;
    out->decay.high = out->shrink.high / out->lr.low;
    out->decay.value = (out->decay.low + out->decay.high) / 2;
    out->decay.state = RATE_READ;
}

/* ---- Adafactor ---- */

/* Sums of squares of a tensor's change and of its old weights. */
static void square_sums(const struct step_tensor *tensor, struct rate_room *room, double *out_moved,
                        double *out_old) {
    struct sum_blocks_f64 moved = {.count = 0}, old = {.count = 0};
    struct direction_block *const block = &room->block;
    for (uint64_t first = 0; first < tensor->count; first += READBACK_BLOCK) {
        const uint64_t left = tensor->count - first;
        const size_t count = left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK;
        block->count = count;
        stored_get(&tensor->old, first, count, block->old);
        stored_get(&tensor->now, first, count, block->now);
        direction_passed(block);
        for (size_t i = 0; i < count; i++)
            block->u[i] = block->now[i] - block->old[i];
        sum_blocks_push_f64(&moved, products_block(block->u, block->u, count));
        sum_blocks_push_f64(&old, products_block(block->old, block->old, count));
    }
    *out_moved = sum_blocks_close_f64(&moved);
    *out_old = sum_blocks_close_f64(&old);
}

/* An update has a root mean square of 1 at most before it is scaled by lr and max(eps2, rms(old)),
 * and the decay adds lr * weight_decay * old: the largest change of any tensor bounds lr from
 * below. Rounding is taken off: half an ulp of each element. Source: torch 2.15,
 * torch/optim/_adafactor.py, _single_tensor_adafactor; transformers' Adafactor is the same with
 * scale_parameter. */
static void read_bound(const struct step *step, struct rate_scope scope, struct rate_room *room,
                       struct rate_reading *out) {
    const struct step_group *const group = &step->groups[scope.group];
    double low = 0.0;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        const struct step_tensor *const tensor = &step->tensors[i];
        double moved, old;
        if (tensor->group != scope.group || (scope.only != STEP_NO_GROUP && scope.only != i))
            continue;
        if (tensor->first.bytes != NULL) {
            out->lr.why = "with beta1 Adafactor's step is an average over earlier updates, and the "
                          "LR of each is inside it";
            return;
        }
        square_sums(tensor, room, &moved, &old);
        const double n = (double)tensor->count, rms = real_sqrt_f64(old / n);
        const double scale = !group->is_scaled ? 1.0 : group->eps2 > rms ? group->eps2 : rms;
        const double rounded = dtype_epsilon(tensor->now.dtype) * rms;
        const double bound =
            (real_sqrt_f64(moved / n) - rounded) /
            (scale * group->largest_step + (group->decay > 0.0 ? group->decay * rms : 0.0));
        if (bound > low) low = bound;
    }
    if (!(low > 0.0)) return;
    out->lr = (struct rate){RATE_AT_LEAST, RATE_BOUND, low, low, (double)INFINITY, NULL};
}

/* ---- all of it ---- */

static const char *why_unknown(const struct step *step, struct rate_scope scope) {
    const char *why = "it has no tensor";
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (step->tensors[i].group == scope.group &&
            (scope.only == STEP_NO_GROUP || scope.only == i))
            (void)direction_is_known(&step->groups[scope.group], &step->tensors[i], &why);
    return why;
}

static void sum_squares(const struct step *step, struct rate_scope scope, struct rate_room *room,
                        struct rate_reading *reading, struct readback_blocks_block *out) {
    struct squares squares = {.terms = &room->terms, .reading = reading};
    walk(step, scope, DIRECTION_WIDE, &room->block, add_squares, &squares);
    close_sums(&squares, out);
}

double rate_residual(const struct step *step, struct rate_scope scope, struct rate_room *room) {
    struct rate_reading reading = {.elements = 0};
    struct readback_blocks_block sums;
    struct read_rate answer;
    sum_squares(step, scope, room, &reading, &sums);
    const int decayed = sums.sum[READBACK_BLOCKS_PP] > 0.0;            /* weights of 0 cannot */
    sums.sum[READBACK_BLOCKS_UE] = sums.sum[READBACK_BLOCKS_PE] = 0.0; /* no bound is asked for */
    read_rate_solve(&sums, decayed, &(struct read_rate_bounds){.half = 0.5}, &answer);
    return residual_of(step, scope, answer.lr, decayed ? answer.shrink : 0.0, reading.elements,
                       room);
}

/* The powers of the betas are rounded once for all elements, and 1 - beta^t magnifies that error at
 * small counts: to 1e-4 of the LR at the first update where they are computed in f32, as Adam's
 * capturable form does. */
static void widen_by_count(const struct step *step, struct rate_scope scope, struct rate *lr) {
    const struct step_group *const group =
        scope.instead != NULL ? scope.instead : &step->groups[scope.group];
    const double unit = group->is_capturable ? 0x1p-24 : 0x1p-53;
    double widest = 0.0;
    for (uint32_t i = 0; i < step->tensor_count && group->rule == STEP_RULE_ADAM; i++) {
        const struct step_tensor *const tensor = &step->tensors[i];
        const double updates = tensor->updates + scope.ahead;
        if (tensor->group != scope.group || !(updates >= 1.0)) continue;
        const double p1 = real_pow_f64(group->beta1, updates);
        const double p2 = real_pow_f64(group->beta2, updates);
        const double error =
            unit * (1.0 + updates) * (p1 / (1.0 - p1) + p2 / (1.0 - p2) / 2) + 4.0 * unit;
        if (error > widest) widest = error;
    }
    if (lr->state != RATE_READ && lr->state != RATE_AT_MOST) return;
    lr->low -= widest * fabs(lr->low);
    lr->high += widest * fabs(lr->high);
}

/* Weights that are narrower than the state were either rounded from masters that no file holds, or
 * are all there is. An element of a copy moves by a whole ulp although its update was a fraction of
 * one; where weights lie on the grid that cannot be, so the votes of elements that moved decide. */
void rate_read(const struct step *step, struct rate_scope scope, struct rate_room *room,
               struct rate_reading *out) {
    struct readback_blocks_block sums;
    *out = (struct rate_reading){.residual = (double)NAN, .agreeing = (double)NAN};
    sum_squares(step, scope, room, out, &sums);
    if (out->elements == 0) {
        out->lr.why = out->decay.why = out->shrink.why = why_unknown(step, scope);
        if (step->groups[scope.group].rule == STEP_RULE_ADAFACTOR)
            read_bound(step, scope, room, out);
        return;
    }
    if (!(sums.sum[READBACK_BLOCKS_UU] > 0.0)) {
        out->lr.why = out->decay.why = sums.sum[READBACK_BLOCKS_UU] == 0.0
                                           ? "no gradient has reached it: its moments are 0"
                                           : "its weights or moments hold NaN or infinity";
        read_inert(step, scope, room, out);
        return;
    }
    const int is_narrow = out->weights == DTYPE_BF16 || out->weights == DTYPE_F16;
    if (is_narrow) read_votes(step, scope, room, out);
    if (!is_narrow || (out->lr.state == RATE_UNEXPLAINED && out->state != out->weights))
        read_squares(step, scope, is_narrow ? RATE_COPIES : RATE_LEAST_SQUARES, &sums, room, out);
    widen_by_count(step, scope, &out->lr);
    if (out->lr.state == RATE_UNKNOWN && out->lr.why == NULL)
        out->lr.why = out->decay.why =
            sums.sum[READBACK_BLOCKS_UD] - sums.sum[READBACK_BLOCKS_UD] == 0.0
                ? "its elements do not tell LR and decay apart"
                : "its weights or moments hold NaN or infinity";
    read_inert(step, scope, room, out);
}
