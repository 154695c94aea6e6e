/* SPDX-License-Identifier: Apache-2.0
 * Which value of its schedule an update applied. The optimizer's file before the update holds f at
 * the scheduler's count then, the file after it f at the count now; the applied LR is one of the
 * two or none. Nothing is said where the bar holds both. */
#include <math.h>

#include "readback/update_private.h"

enum { OPEN = 0, EARLIER, LATER, NEITHER };

static int holds(const struct rate *rate, double value) {
    return value >= rate->low && value <= rate->high;
}

/* Which of the two values a group applied. */
static int applied_by(const struct judging *in, uint32_t g) {
    const struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    const struct rate *const lr = &group->reading.lr;
    const int is_first = holds(lr, settings->promised), is_next = holds(lr, settings->next);
    /* A bound holds 0, and many other rates. */
    if (lr->state != RATE_READ && !(lr->state == RATE_AT_MOST && settings->promised == 0.0))
        return OPEN;
    if (settings->is_hand_set || settings->promised == settings->next ||
        group->verdict == UPDATE_UNDECIDED)
        return OPEN;
    if (is_first && is_next)
        return group->replayed == 1 ? EARLIER : group->replayed == 2 ? LATER : OPEN;
    return is_first ? EARLIER : is_next ? LATER : NEITHER;
}

/* Which of them the log has. Logs have the LR of the first group, as a rule. */
static int logged_by(const struct judging *in) {
    const struct step_group *const settings = &in->step->groups[0];
    const double logged = in->out->groups[0].logged;
    const double slack = 1e-6 * fabs(logged) + update_log_slack(in->said, 0);
    const int is_first = fabs(logged - settings->promised) <= slack;
    const int is_next = fabs(logged - settings->next) <= slack;
    if (is_first == is_next) return OPEN;
    return is_first ? EARLIER : LATER;
}

/* Why the files alone leave it open; NULL: they do not. */
static const char *open_by_files(const struct judging *in) {
    const struct update_said *const said = in->said;
    const double moved = said->scheduler_counted - said->scheduler_before;
    if (!(said->scheduler_counted >= 0.0) || !(said->scheduler_before >= 0.0))
        return "no scheduler's file counts the updates before and after";
    if (moved == 0.0) return "the scheduler did not move in this update";
    if (moved != 1.0 && moved != said->processes)
        return "the scheduler moved by another number than one update is worth";
    if (!(in->out->update >= 1.0)) return "nobody says which update it is";
    return NULL;
}

void update_read_schedule(const struct judging *in, struct update_schedule *out) {
    int which = OPEN, is_alike = 1, is_moving = 0;
    *out = (struct update_schedule){.applied = (double)NAN, .logged = (double)NAN};
    out->stride = in->said->scheduler_counted - in->said->scheduler_before;
    for (uint32_t g = 0; g < in->step->group_count; g++) {
        const int by = applied_by(in, g);
        is_moving |= in->step->groups[g].promised != in->step->groups[g].next;
        if (by == OPEN) continue;
        is_alike &= which == OPEN || by == which;
        which = by;
    }
    out->why = open_by_files(in);
    if (out->why != NULL) return;
    if (in->step->group_count == 0)
        out->why = "the optimizer's file, which the step is read with, is missing";
    else if (!is_moving)
        out->why = "the schedule has one LR before and after the update";
    else if (!is_alike)
        out->why = "the groups applied their schedules at unlike counts";
    else if (which == OPEN)
        out->why = "the LR that was applied is not known well enough to tell the schedule's two "
                   "values apart";
    else if (which == NEITHER)
        out->why = "the LR that was applied is neither of the two that the files hold";
    if (out->why != NULL) return;
    out->applied = which == EARLIER ? in->said->scheduler_before : in->said->scheduler_counted;
    which = logged_by(in);
    if (which == EARLIER) out->logged = in->said->scheduler_before;
    if (which == LATER) out->logged = in->said->scheduler_counted;
}
