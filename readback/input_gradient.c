/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of an element is rule_taken_value's, which the read-back of our own trainings
 * uses, too. */
#include "readback/input_gradient.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "base/rule_read.h"
#include "base/sum.h"
#include "kernels/products.h"

/* Bounds the roundings between a gradient and the stored moment, in half units of the moment's
 * dtype, as generously as trainer/optimizer_input.h does. */
#define INPUT_ROUNDINGS 8

/* Returns `keep` and `take` of m = keep m' + take g, a tensor's first moment. torch's SGD starts
 * its buffer with the gradient itself (torch/optim/sgd.py:_single_tensor_sgd). */
static struct rule_taken rule_of(const struct step_group *group, const struct step_tensor *tensor,
                                 double beta1) {
    const double unit = dtype_epsilon(tensor->first.dtype) / 2;
    struct rule_taken out = {.unit = INPUT_ROUNDINGS * unit};
    if (group->rule == STEP_RULE_SGD) {
        const int is_first = tensor->first_before.bytes == NULL;
        out.keep = is_first ? 0.0 : group->momentum;
        out.take = is_first ? 1.0 : 1.0 - group->dampening;
    } else {
        out.keep = group->rule == STEP_RULE_LION ? group->beta2 : beta1;
        out.take = 1.0 - out.keep;
    }
    /* Below the smallest normal number each rounding of the moment, three at most, is as large as
     * half the smallest number. */
    out.least = 2.0 * dtype_spacing(0.0, tensor->first.dtype) / fabs(out.take);
    return out;
}

static int is_told(const struct step_group *group, const struct step_tensor *tensor) {
    return tensor->first.bytes != NULL && tensor->has_before && group->rule != STEP_RULE_ADAFACTOR;
}

/* The largest relative error of a weight before the update: weights that are narrower than their
 * moments may be copies of wider ones, which the optimizer read. */
static double error_of_copies(const struct step_tensor *tensor) {
    const int is_copied = dtype_width(tensor->old.dtype) < dtype_width(tensor->first.dtype);
    return is_copied ? dtype_epsilon(tensor->old.dtype) / 2 : 0.0;
}

/* One block's gradients and their errors, in u and error of the block. */
static void fill_gradients(const struct step_group *group, const struct step_tensor *tensor,
                           double beta1, double decay, uint64_t first, size_t count,
                           struct direction_block *out) {
    struct rule_taken rule = rule_of(group, tensor, beta1);
    const double copied = fabs(decay) * error_of_copies(tensor);
    rule.decay = decay;
    out->count = count;
    stored_get(&tensor->old, first, count, out->old);
    stored_get(&tensor->first, first, count, out->state[0]);
    stored_get(&tensor->first_before, first, count, out->state[1]);
    for (size_t i = 0; i < count; i++) {
        const struct rule_taken_value value =
            rule_taken_value(&rule, out->state[0][i], out->state[1][i], out->old[i]);
        out->u[i] = value.gradient;
        out->error[i] = value.error + copied * fabs(out->old[i]);
    }
}

typedef void input_visit(const struct step_tensor *tensor, uint64_t first,
                         struct direction_block *block, void *context);

/* All blocks of a tensor, with the gradient that the decay inside it is taken out of. */
static void each_block(const struct step_group *group, const struct step_tensor *tensor,
                       double beta1, double decay, struct direction_block *block,
                       input_visit *visit, void *context) {
    for (uint64_t first = 0; first < tensor->count; first += READBACK_BLOCK) {
        const uint64_t left = tensor->count - first;
        const size_t count = left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK;
        fill_gradients(group, tensor, beta1, decay, first, count, block);
        visit(tensor, first, block, context);
        direction_passed(block);
    }
}

/* Puts the start of an empty state in the place of what the file before the update holds. */
static void forget(struct step_tensor *tensor) {
    tensor->first_before.bytes = tensor->second_before.bytes = NULL;
    tensor->has_before = 1;
}

/* Whether the count did not go on from that of the file before. */
static int has_fallen(const struct step_tensor *tensor) {
    return tensor->updates <= tensor->updates_before && !tensor->is_left_out;
}

/* ---- betas ---- */

/* An element says something about the betas if its error bound is at most this share of what the
 * gradient adds to v. */
#define BETAS_TELLING 0.1
#define BETAS_LEAST 16 /* elements that say something */
/* Roundings to the spacing of subnormal numbers: a gradient of 1e-20 leaves no more digits in v. */
#define BETAS_SUBNORMAL 4.0

struct betas_fit {
    struct sum_blocks_f64 sums[3]; /* x x, x z, z z */
    double *x, *z;                 /* [READBACK_BLOCK] */
    double beta2;
    uint64_t elements;
};

/* What is left of v = beta2 v' + (1 - beta2) g^2, and how it changes with beta2: z and x = v' -
 * g^2, in units of the error that z has: that of the square, and two roundings of v. */
static void add_betas(const struct step_tensor *tensor, uint64_t first,
                      struct direction_block *block, void *context) {
    struct betas_fit *const fit = (struct betas_fit *)context;
    const double rounding = 2.0 * dtype_epsilon(tensor->second.dtype), take = 1.0 - fit->beta2;
    const double least = dtype_spacing(0.0, tensor->second.dtype);
    double *const v = block->state[0], *const then = block->state[1];
    size_t count = 0;
    stored_get(&tensor->second, first, block->count, v);
    stored_get(&tensor->second_before, first, block->count, then);
    for (size_t i = 0; i < block->count; i++) {
        const double g = block->u[i], square = g * g;
        const double error =
            take * 2.0 * fabs(g) * block->error[i] + rounding * v[i] + BETAS_SUBNORMAL * least;
        if (!(error < BETAS_TELLING * take * square)) continue;
        fit->x[count] = (then[i] - square) / error;
        fit->z[count++] = (v[i] - fit->beta2 * then[i] - take * square) / error;
    }
    fit->elements += count;
    sum_blocks_push_f64(&fit->sums[0], products_block(fit->x, fit->x, count));
    sum_blocks_push_f64(&fit->sums[1], products_block(fit->x, fit->z, count));
    sum_blocks_push_f64(&fit->sums[2], products_block(fit->z, fit->z, count));
}

struct betas_answer {
    double scatter; /* root mean square of z */
    double better;  /* the beta2 that least squares would take instead */
    uint64_t elements;
};

/* With `is_anew` the moments before the update are taken for 0, whatever the file before it holds.
 */
static struct betas_answer try_betas(const struct step *step, uint32_t group, double beta1,
                                     double beta2, int is_anew, struct rate_room *room) {
    struct betas_fit fit = {.x = room->terms.u, .z = room->terms.p, .beta2 = beta2};
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        struct step_tensor tensor = step->tensors[i];
        if (is_anew) forget(&tensor);
        if (tensor.group != group || tensor.second.bytes == NULL || !tensor.has_before ||
            tensor.is_left_out)
            continue;
        each_block(&step->groups[group], &tensor, beta1, 0.0, &room->block, add_betas, &fit);
    }
    const double xx = sum_blocks_close_f64(&fit.sums[0]), xz = sum_blocks_close_f64(&fit.sums[1]);
    const double zz = sum_blocks_close_f64(&fit.sums[2]);
    return (struct betas_answer){real_sqrt_f64(zz / (double)fit.elements), beta2 + xz / xx,
                                 fit.elements};
}

/* Trainings use these first betas. */
static const double tried[] = {0.9, 0.95, 0.8, 0.99, 0.98, 0.85, 0.5, 0.0};

static int is_first(const struct step *step, uint32_t group) {
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (step->tensors[i].group == group && step->tensors[i].first_before.bytes != NULL)
            return 0;
    return 1;
}

/* Looks for the beta2 that goes with a beta1: two steps of least squares, since the first one's
 * errors are those of the beta2 it began with. */
static void try_first_beta(const struct step *step, uint32_t group, double beta1,
                           struct rate_room *room, struct input_betas *out) {
    struct betas_answer answer = {.better = step->groups[group].beta2};
    for (int i = 0; i < 3; i++) {
        const double beta2 = answer.better;
        answer = try_betas(step, group, beta1, beta2, 0, room);
        if (answer.elements < BETAS_LEAST || !(answer.better > 0.0 && answer.better < 1.0)) return;
        if (!(answer.scatter <= 1.0)) continue;
        out->state = INPUT_BETAS_OTHER;
        out->beta1 = beta1;
        out->beta2 = beta2;
        return;
    }
}

/* Whether a restart took the count of one of the group's tensors back. */
static int is_counted_anew(const struct step *step, uint32_t group) {
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (step->tensors[i].group == group && has_fallen(&step->tensors[i])) return 1;
    return 0;
}

/* Moments that began from 0 have v = (1 - beta2) g^2 in every element, so all of them tell, in bf16
 * as well. It is asked only where the moments before do not lead to those after, or where the count
 * says that they need not. */
static void try_anew(const struct step *step, uint32_t group, struct rate_room *room,
                     struct input_betas *out) {
    const struct betas_answer anew = try_betas(step, group, out->beta1, out->beta2, 1, room);
    if (anew.elements < BETAS_LEAST || !(anew.scatter <= 1.0)) return;
    out->state = INPUT_BETAS_ANEW;
    out->elements = anew.elements;
}

/* After the first update v is a multiple of m^2, whichever betas made it, so they are not looked
 * for: only their one relation is tested. */
void input_betas_read(const struct step *step, uint32_t group, struct rate_room *room,
                      struct input_betas *out) {
    const struct step_group *const settings = &step->groups[group];
    *out = (struct input_betas){.beta1 = settings->beta1, .beta2 = settings->beta2};
    if (settings->rule != STEP_RULE_ADAM) return;
    const struct betas_answer given =
        try_betas(step, group, settings->beta1, settings->beta2, 0, room);
    if (given.elements >= BETAS_LEAST) {
        out->elements = given.elements;
        out->state = given.scatter <= 1.0 ? INPUT_BETAS_AGREE : INPUT_BETAS_NONE;
    }
    if (out->state == INPUT_BETAS_AGREE || is_first(step, group)) return;
    if (out->state == INPUT_BETAS_NONE || is_counted_anew(step, group))
        try_anew(step, group, room, out);
    if (out->state != INPUT_BETAS_NONE) return;
    try_first_beta(step, group, settings->beta1, room, out);
    for (size_t i = 0; i < COUNT_OF(tried) && out->state == INPUT_BETAS_NONE; i++)
        try_first_beta(step, group, tried[i], room, out);
}

/* ---- the norm ---- */

static void add_norm(const struct step_tensor *tensor, uint64_t first,
                     struct direction_block *block, void *context) {
    struct sum_blocks_f64 *const sums = (struct sum_blocks_f64 *)context;
    (void)tensor, (void)first;
    sum_blocks_push_f64(&sums[0], products_block(block->u, block->u, block->count));
    sum_blocks_push_f64(&sums[1], products_block(block->error, block->error, block->count));
}

/* What keeps the moments before the update from telling the gradient; NULL: nothing does. A rule
 * without a second moment has nothing to test its first one with. */
static const char *why_untold(const struct step_group *group, const struct step_tensor *tensor,
                              const struct input_betas *betas) {
    if (group->rule == STEP_RULE_ADAFACTOR)
        return "Adafactor's first moment is a mean of updates, not of gradients";
    if (tensor->first.bytes == NULL)
        return "the state after the update lacks the first moment of a tensor that had one before";
    if (!tensor->has_before) return "the optimizer's state before the update is needed";
    if (betas->state == INPUT_BETAS_NONE)
        return "the moments follow neither from those before the update nor from none, so it began "
               "from others, which no file holds";
    if (betas->state == INPUT_BETAS_UNKNOWN && has_fallen(tensor))
        return "the optimizer's count began anew, and its moments are too few or too narrow to "
               "show whether they did";
    return NULL;
}

/* The norm is that of the gradient after clipping and before the decay: torch clips it before the
 * decay enters it, so the decay is taken out. One tensor whose gradient is not told is enough for
 * the norm not to be known, since it goes over all of them. Tensors that the update left out, and
 * those without a first moment before and after it (plain SGD's), have no part in it. */
void input_norm_read(const struct step *step, const struct input_betas *betas,
                     struct rate_room *room, struct input_norm *out) {
    struct sum_blocks_f64 sums[2] = {{.count = 0}};
    int all_left_out = 1, any_left_out = 0;
    *out = (struct input_norm){.is_known = 0};
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        struct step_tensor tensor = step->tensors[i];
        if (tensor.group == STEP_NO_GROUP) continue;
        any_left_out |= tensor.is_left_out != 0;
        if (tensor.is_left_out) continue;
        all_left_out = 0;
        const struct step_group *const group = &step->groups[tensor.group];
        const struct input_betas *const found = &betas[tensor.group];
        if (tensor.first.bytes == NULL && tensor.first_before.bytes == NULL) continue;
        if (found->state == INPUT_BETAS_ANEW) forget(&tensor);
        const char *const why = why_untold(group, &tensor, found);
        if (why != NULL) {
            *out = (struct input_norm){.why = why};
            return;
        }
        each_block(group, &tensor, found->beta1, group->decoupled ? 0.0 : group->decay,
                   &room->block, add_norm, sums);
        out->is_known = 1;
    }
    if (!out->is_known) {
        out->why = !any_left_out  ? "no tensor has a first moment"
                   : all_left_out ? "the update left all tensors out"
                                  : "no tensor that the update changed has a first moment";
        return;
    }
    out->norm = real_sqrt_f64(sum_blocks_close_f64(&sums[0]));
    out->error = real_sqrt_f64(sum_blocks_close_f64(&sums[1]));
}

/* ---- two gradients ---- */

/* The tensor as its update found it; NULL in `*out_why`: its gradient is told. */
static struct step_tensor found_by(const struct input_side *side, uint32_t i,
                                   const char **out_why) {
    struct step_tensor out = side->step->tensors[i];
    *out_why = "the optimizer does not know it, or left it out";
    if (out.group == STEP_NO_GROUP || out.is_left_out || out.first.bytes == NULL) return out;
    const struct input_betas *const betas = &side->betas[out.group];
    if (betas->state == INPUT_BETAS_ANEW) forget(&out);
    *out_why = why_untold(&side->step->groups[out.group], &out, betas);
    return out;
}

static void fill_side(const struct input_side *side, const struct step_tensor *tensor,
                      uint64_t first, struct direction_block *out) {
    const struct step_group *const group = &side->step->groups[tensor->group];
    const uint64_t left = tensor->count - first;
    fill_gradients(group, tensor, side->betas[tensor->group].beta1,
                   group->decoupled ? 0.0 : group->decay, first,
                   left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK, out);
    direction_passed(out);
}

enum { SUM_APART = 0, SUM_ERROR, SUM_A, SUM_B, SUMS };

static void add_apart(const struct input_side *a, const struct step_tensor *in_a,
                      const struct input_side *b, const struct step_tensor *in_b,
                      struct rate_room *room, struct sum_blocks_f64 sums[SUMS]) {
    struct direction_block *const x = &room->block, *const y = &room->other;
    for (uint64_t first = 0; first < in_a->count; first += READBACK_BLOCK) {
        fill_side(a, in_a, first, x);
        fill_side(b, in_b, first, y);
        const size_t n = x->count;
        sum_blocks_push_f64(&sums[SUM_A], products_block(x->u, x->u, n));
        sum_blocks_push_f64(&sums[SUM_B], products_block(y->u, y->u, n));
        for (size_t i = 0; i < n; i++) {
            x->u[i] -= y->u[i];
            x->error[i] += y->error[i];
        }
        sum_blocks_push_f64(&sums[SUM_APART], products_block(x->u, x->u, n));
        sum_blocks_push_f64(&sums[SUM_ERROR], products_block(x->error, x->error, n));
    }
}

void input_apart_read(const struct input_side *a, const struct input_side *b,
                      struct rate_room *room, struct input_apart *out) {
    struct sum_blocks_f64 sums[SUMS] = {{.count = 0}};
    const char *of_a_why = NULL, *of_b_why = NULL;
    *out = (struct input_apart){.is_known = 0};
    for (uint32_t i = 0; i < a->step->tensor_count; i++) {
        const char *why_a, *why_b;
        const struct step_tensor in_a = found_by(a, i, &why_a);
        if (why_a != NULL) of_a_why = why_a;
        for (uint32_t k = 0; k < b->step->tensor_count && why_a == NULL; k++) {
            const struct step_tensor in_b = found_by(b, k, &why_b);
            if (in_a.count != in_b.count || strcmp(in_a.name, in_b.name) != 0) continue;
            if (why_b != NULL) of_b_why = why_b;
            if (why_b != NULL) continue;
            add_apart(a, &in_a, b, &in_b, room, sums);
            out->is_known = 1;
            break;
        }
    }
    if (!out->is_known) {
        out->is_of_second = of_b_why != NULL;
        out->why = of_b_why != NULL   ? of_b_why
                   : of_a_why != NULL ? of_a_why
                                      : "they have no tensor of one name and size";
        return;
    }
    out->apart = real_sqrt_f64(sum_blocks_close_f64(&sums[SUM_APART]));
    out->error = real_sqrt_f64(sum_blocks_close_f64(&sums[SUM_ERROR]));
    const double of_a = real_sqrt_f64(sum_blocks_close_f64(&sums[SUM_A]));
    const double of_b = real_sqrt_f64(sum_blocks_close_f64(&sums[SUM_B]));
    out->norm = of_a > of_b ? of_a : of_b;
}

/* ---- a decay in the gradient ---- */

struct coupled {
    double decay;
    struct input_coupled *out;
};

static void add_coupled(const struct step_tensor *tensor, uint64_t first,
                        struct direction_block *block, void *context) {
    const struct coupled *const asked = (const struct coupled *)context;
    const double copied = error_of_copies(tensor);
    (void)first;
    for (size_t i = 0; i < block->count; i++) {
        const double inside = asked->decay * block->old[i];
        const double error = block->error[i] + copied * fabs(inside);
        if (!(fabs(inside) > 8.0 * error)) continue; /* it cannot tell */
        asked->out->elements++;
        asked->out->coupled += (uint64_t)(fabs(block->u[i] - inside) <= error);
    }
}

void input_coupled_read(const struct step *step, uint32_t group, double decay,
                        struct rate_room *room, struct input_coupled *out) {
    struct coupled asked = {decay, out};
    const struct step_group *const settings = &step->groups[group];
    *out = (struct input_coupled){0, 0};
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        const struct step_tensor *const tensor = &step->tensors[i];
        if (tensor->group != group || !is_told(settings, tensor)) continue;
        each_block(settings, tensor, settings->beta1, 0.0, &room->block, add_coupled, &asked);
    }
}

int input_is_coupled(const struct input_coupled *coupled) {
    return coupled->coupled >= 16 && coupled->coupled * 100 >= coupled->elements;
}
