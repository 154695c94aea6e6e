/* SPDX-License-Identifier: Apache-2.0
 * With which numbers an update was made: those of the file before it, if what changes them runs
 * after the step as torch's schedulers do, or those of the file after it, if a loop sets them
 * before each step. They differ where betas, momentum or the decay follow a schedule. */
#include <math.h>

#include "readback/update_private.h"

static int holds(const struct rate *rate, double value) {
    return rate->state == RATE_READ && value >= rate->low && value <= rate->high;
}

static int is_alike(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static int has_numbers_of(const struct step_group *a, const struct step_group *b) {
    return is_alike(a->beta1, b->beta1) && is_alike(a->beta2, b->beta2) &&
           is_alike(a->eps, b->eps) && is_alike(a->momentum, b->momentum) &&
           is_alike(a->dampening, b->dampening);
}

static struct rate_reading read_with(const struct judging *in, uint32_t g,
                                     const struct step_group *numbers) {
    struct rate_reading out;
    rate_read(in->step, (struct rate_scope){.group = g, .only = STEP_NO_GROUP, .instead = numbers},
              in->room, &out);
    return out;
}

static void settle_group(const struct judging *in, uint32_t g) {
    struct step_group *const group = &in->settings[g];
    const struct step_group earlier = in->step->earlier[g], later = *group;
    if (has_numbers_of(&earlier, &later) && is_alike(earlier.decay, later.decay)) return;
    struct rate_reading reading = read_with(in, g, &earlier);
    *group = earlier;
    if (!has_numbers_of(&earlier, &later) && !holds(&reading.lr, group->promised)) {
        const struct rate_reading other = read_with(in, g, &later);
        if (holds(&other.lr, group->promised) || holds(&other.lr, group->next)) {
            *group = later;
            reading = other;
        }
    }
    const double read = reading.decay.value;
    const int is_later =
        reading.decay.state == RATE_READ && fabs(read - later.decay) < fabs(read - earlier.decay);
    group->decay = is_later ? later.decay : earlier.decay;
}

/* So many elements without a direction are no chance. */
#define INERT_LEAST 16

/* From 2.6 on torch writes whether the decay is decoupled; before, Adam and AdamW left the same
 * file. In wide moments elements without another gradient than the decay's tell it. */
static void settle_coupling(const struct judging *in, uint32_t g) {
    struct step_group *const group = &in->settings[g];
    struct input_coupled found;
    if (!group->is_unsaid || !(group->decay > 0.0)) return;
    const struct rate_reading reading = read_with(in, g, NULL);
    if (reading.inert >= INERT_LEAST)
        group->is_unsaid = 0; /* a decay inside would have moved them */
    if (!group->is_unsaid || (reading.state != DTYPE_F32 && reading.state != DTYPE_F64)) return;
    if (holds(&reading.decay, group->decay)) {
        group->is_unsaid = 0;
        return;
    }
    input_coupled_read(in->step, g, group->decay, in->room, &found);
    if (!input_is_coupled(&found)) return;
    group->decoupled = group->is_unsaid = 0;
}

void update_settle(struct judging *in) {
    for (uint32_t g = 0; g < in->step->group_count; g++) {
        if (in->step->earlier != NULL) settle_group(in, g);
        settle_coupling(in, g);
    }
}
