/* SPDX-License-Identifier: Apache-2.0
 * Whether the weight decay acted as it is configured: on the weights, through the gradient, or not
 * at all, because rounding swallowed it.
 *
 * A kernel multiplies a weight by 1 - lr * weight_decay, rounded to f32 (a multiple of 2^-24 below
 * 1). At small rates that factor is 1, or twice as far from it as asked; both are what the
 * configuration does, so neither is a fault. Source: torch 2.15, torch/optim/adam.py,
 * _single_tensor_adam: param.mul_(1 - lr * weight_decay). */
#include <inttypes.h>
#include <math.h>

#include "readback/update_private.h"

/* An exact lr * decay is rounded once more when it meets the weight: the most voted shrinkage may
 * lie so far beside it, relatively. */
#define EXACT_SHARE 1e-4

/* What there is to say of one group's decay. */
struct decay {
    struct judging *in;
    uint32_t g;
    struct update_group *group;
    double asked; /* weight_decay */
    const struct rate *read;
    char *text;
};

static int holds(const struct rate *rate, double value) {
    return value >= rate->low && value <= rate->high;
}

static double bar_of(const struct rate *rate) {
    return (rate->high - rate->low) / 2;
}

/* c as f32 rounds it, with the promised LR or, where that was not kept, the applied one. */
static double rate_asked(const struct decay *d) {
    const struct rate *const lr = &d->group->reading.lr;
    const double promised = d->in->step->groups[d->g].promised;
    return lr->state == RATE_READ && !holds(lr, promised) ? lr->value : promised;
}

/* Weights of f64 have a factor of f64. */
static double shrink_asked(const struct decay *d) {
    const double exact = rate_asked(d) * d->asked;
    return d->group->reading.weights == DTYPE_F64 ? exact : 1.0 - (double)(float)(1.0 - exact);
}

/* Kernels of devices subtract lr * decay * weight instead, whose factor is not rounded to a
 * multiple of 2^-24. */
static int is_asked(const struct decay *d) {
    const struct rate *const shrink = &d->group->reading.shrink;
    const double rounded = shrink_asked(d), exact = rate_asked(d) * d->asked;
    return holds(shrink, rounded) || (shrink->low <= exact && exact <= shrink->high) ||
           (shrink->state == RATE_READ && fabs(shrink->value - exact) <= EXACT_SHARE * exact);
}

/* What the configured decay acts as. */
static double decay_rounded(const struct decay *d) {
    return rate_asked(d) > 0.0 ? shrink_asked(d) / rate_asked(d) : d->asked;
}

/* Elements without a direction, which only the decay can move. */
static enum status judge_inert(struct decay *d) {
    const struct rate_reading *const reading = &d->group->reading;
    const double asked = shrink_asked(d);
    if (is_asked(d) && reading->inert_moved > 0) {
        if (d->read->state == RATE_READ)
            return arena_format(d->in->arena, &d->text,
                                reading->weights == DTYPE_F64 ? "%s +- %s, %s configured"
                                                              : "%s +- %s, as f32 rounds %s",
                                update_number(d->read->value, bar_of(d->read)).text,
                                update_bar(bar_of(d->read)).text, number_text_f64(d->asked).text);
        return arena_format(d->in->arena, &d->text,
                            "%s acted: %" PRIu64 " of %" PRIu64
                            " elements without a gradient moved as it moves them",
                            number_text_f64(d->asked).text, reading->inert_moved, reading->inert);
    }
    if (reading->inert_moved == 0 && holds(&reading->shrink, asked)) {
        TRY(arena_format(d->in->arena, &d->text, "%s configured, and none acted",
                         number_text_f64(d->asked).text));
        return update_find(d->in, UPDATE_DECAY_ROUNDED, 1, d->g,
                           "a decay of %s is configured and no weight decayed: 0 of %" PRIu64
                           " elements without a gradient moved, because 1 - lr * decay is rounded "
                           "away in %s",
                           number_text_f64(d->asked).text, reading->inert,
                           dtype_name(reading->weights));
    }
    TRY(arena_format(d->in->arena, &d->text, "%s of the weights, %s configured",
                     update_number(reading->shrink.value, bar_of(&reading->shrink)).text,
                     number_text_f64(d->asked).text));
    return update_find(d->in, UPDATE_DECAY, 0, d->g,
                       "elements without a gradient shrank by %s (+- %s) of their size, and the "
                       "configured decay of %s would take off %s",
                       update_number(reading->shrink.value, bar_of(&reading->shrink)).text,
                       update_bar(bar_of(&reading->shrink)).text, number_text_f64(d->asked).text,
                       update_number(asked, 0.0).text);
}

static enum status find_coupled(struct decay *d) {
    const struct input_coupled *const coupled = &d->group->coupled;
    TRY(arena_format(d->in->arena, &d->text, "%s went through the gradient",
                     number_text_f64(d->asked).text));
    return update_find(d->in, UPDATE_COUPLED, 0, d->g,
                       "the decay of %s did not act on the weights; it went through the gradient, "
                       "as in torch.optim.Adam: for %" PRIu64 " of %" PRIu64
                       " elements the gradient "
                       "is %s times the weight and nothing else",
                       number_text_f64(d->asked).text, coupled->coupled, coupled->elements,
                       number_text_f64(d->asked).text);
}

/* The decay of the least squares, which all elements tell together. */
static enum status judge_fit(struct decay *d) {
    const struct rate *const read = d->read;
    if (read->state == RATE_UNKNOWN || read->state == RATE_UNEXPLAINED)
        return arena_format(d->in->arena, &d->text, "%s configured; it cannot be read",
                            number_text_f64(d->asked).text);
    /* Below half a unit of every weight's last place, so no way to compute it moves one. */
    if (decay_rounded(d) == 0.0 && holds(read, 0.0)) {
        TRY(arena_format(d->in->arena, &d->text, "%s configured, and none can act",
                         number_text_f64(d->asked).text));
        return update_find(d->in, UPDATE_DECAY_ROUNDED, 1, d->g,
                           "a decay of %s is configured and cannot act at this LR: 1 - lr * decay "
                           "is 1 in f32; what the weights show is between %s and %s",
                           number_text_f64(d->asked).text,
                           update_number(read->low, bar_of(read)).text,
                           update_number(read->high, bar_of(read)).text);
    }
    if (!holds(read, d->asked) && !holds(read, decay_rounded(d))) {
        if (input_is_coupled(&d->group->coupled)) return find_coupled(d);
        TRY(arena_format(d->in->arena, &d->text, "%s +- %s, %s configured",
                         update_number(read->value, bar_of(read)).text,
                         update_bar(bar_of(read)).text, number_text_f64(d->asked).text));
        return update_find(d->in, UPDATE_DECAY, 0, d->g,
                           "a decay of %s +- %s acted on the weights, and %s is configured",
                           update_number(read->value, bar_of(read)).text,
                           update_bar(bar_of(read)).text, number_text_f64(d->asked).text);
    }
    if (read->state == RATE_READ && bar_of(read) < 0.5 * fabs(d->asked))
        return arena_format(d->in->arena, &d->text, "%s +- %s, %s configured",
                            update_number(read->value, bar_of(read)).text,
                            update_bar(bar_of(read)).text, number_text_f64(d->asked).text);
    return arena_format(d->in->arena, &d->text, "%s configured; unreadable, between %s and %s",
                        number_text_f64(d->asked).text, update_number(read->low, bar_of(read)).text,
                        update_number(read->high, bar_of(read)).text);
}

static enum status judge_none(struct decay *d) {
    const struct rate_reading *const reading = &d->group->reading;
    const int acted = reading->needs_decay && d->read->state == RATE_READ;
    const int shrank = reading->shrink.state == RATE_READ && reading->inert_moved > 0;
    if (!acted && !shrank)
        return arena_format(d->in->arena, &d->text, "none configured, none seen");
    TRY(arena_format(d->in->arena, &d->text, "%s +- %s, none configured",
                     update_number(d->read->value, bar_of(d->read)).text,
                     update_bar(bar_of(d->read)).text));
    return update_find(d->in, UPDATE_DECAY, 0, d->g,
                       "a decay of %s +- %s acted on this group, whose weight_decay is 0",
                       update_number(d->read->value, bar_of(d->read)).text,
                       update_bar(bar_of(d->read)).text);
}

/* torch.optim.Adam and SGD do this by design, so it is no fault; but who meant AdamW wants to know.
 */
static enum status judge_gradient_decay(struct decay *d) {
    const struct input_coupled *const coupled = &d->group->coupled;
    if (d->in->step->groups[d->g].rule == STEP_RULE_ADAM && isnan(d->in->said->expected.decoupled))
        TRY(update_find(d->in, UPDATE_COUPLED, 1, d->g,
                        "the decay of %s goes through the gradient and Adam's moments: this is "
                        "torch.optim.Adam (or decoupled_weight_decay=False), not AdamW",
                        number_text_f64(d->asked).text));
    if (coupled->coupled == 0)
        return arena_format(d->in->arena, &d->text, "%s configured, through the gradient",
                            number_text_f64(d->asked).text);
    return arena_format(d->in->arena, &d->text,
                        "%s configured, through the gradient: %" PRIu64
                        " elements have no other gradient",
                        number_text_f64(d->asked).text, coupled->coupled);
}

static enum status judge(struct decay *d) {
    const struct step_group *const settings = &d->in->step->groups[d->g];
    const struct rate_reading *const reading = &d->group->reading;
    if (reading->elements == 0)
        return arena_format(d->in->arena, &d->text, "cannot be read: %s", reading->decay.why);
    if (!(d->asked > 0.0)) return judge_none(d);
    if (!settings->decoupled) return judge_gradient_decay(d);
    if (reading->shrink.state == RATE_READ || reading->shrink.state == RATE_AT_MOST)
        return judge_inert(d);
    return judge_fit(d);
}

/* Most trainers leave biases and norms out (transformers' Trainer does); a loop that hands all
 * parameters to one group does not. */
static enum status remark_vectors(struct decay *d) {
    uint32_t count = 0;
    const char *name = "";
    for (uint32_t i = 0; i < d->in->step->tensor_count; i++) {
        const struct step_tensor *const tensor = &d->in->step->tensors[i];
        if (tensor->group != d->g || !tensor->is_vector) continue;
        if (count++ == 0) name = tensor->name;
    }
    if (count == 0) return STATUS_OK;
    return update_find(d->in, UPDATE_DECAY, 1, d->g,
                       "the decay of %s acts on %" PRIu32 " %s of one axis, too (%s%s): biases and "
                       "norms, which most trainers leave out",
                       number_text_f64(d->asked).text, count, count == 1 ? "tensor" : "tensors",
                       name, count > 1 ? ", ..." : "");
}

enum status update_judge_decay(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    struct decay d = {.in = in,
                      .g = g,
                      .group = group,
                      .asked = in->step->groups[g].decay,
                      .read = &group->reading.decay};
    TRY(judge(&d));
    group->decay_text = d.text;
    group->decay_rounded = (double)NAN;
    if (d.asked > 0.0 && in->step->groups[g].decoupled && rate_asked(&d) > 0.0 &&
        group->reading.elements > 0)
        group->decay_rounded = decay_rounded(&d);
    return d.asked > 0.0 && group->reading.elements > 0 ? remark_vectors(&d) : STATUS_OK;
}
