/* SPDX-License-Identifier: Apache-2.0
 * Whether the LR that an update applied is the one that was promised to it, and if not, which other
 * one it is: the next update's, an earlier one's, or the promised one times what a wrong count of
 * Adam does to a step. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/macro.h"
#include "readback/replayed.h"
#include "readback/update_private.h"

/* A bar whose half is wider than this share of the LR decides nothing by holding the promise: it
 * might hold half of it or twice as much, too. */
#define RESOLVED 0.25

static double bar_of(const struct rate *rate) {
    return (rate->high - rate->low) / 2;
}

/* Two learning rates that are nearer than this to each other, relatively, train alike for all that
 * a schedule is meant to do; which of them was applied is remarked on, but leaves nothing
 * undecided. */
#define IMMATERIAL 1e-5

/* Another form of the same rule (a decay after the step takes off 1 - lr * decay, an eps of another
 * size) shifts an LR by no more than this; a slip of a schedule that is as small is one update of a
 * slow schedule, which is looked for. */
#define FORM 1e-3
/* The same of narrow weights, where stochastic rounding shifts the votes as well. */
#define FORM_NARROW 0.05

static int holds(const struct rate *rate, double value) {
    return value >= rate->low && value <= rate->high;
}

/* Another LR that the applied one may be, in words. */
struct other {
    double rate;
    char words[160];
};

/* The others that lie inside the bar; the first two are told. */
struct others {
    const struct rate *rate;
    double promised;
    struct other held[2];
    size_t count;
};

static void try_other(struct others *others, double rate, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);
static void try_other(struct others *others, double rate, const char *format, ...) {
    va_list arguments;
    if (others->count == COUNT_OF(others->held) || rate == others->promised) return;
    if (!holds(others->rate, rate)) return;
    struct other *const other = &others->held[others->count++];
    other->rate = rate;
    va_start(arguments, format);
    vsnprintf(other->words, sizeof other->words, format, arguments);
    va_end(arguments);
}

/* The log's rows, those of nearby updates first. */
static void try_log(struct others *others, const struct judging *in) {
    const struct update_said *const said = in->said;
    for (double away = 1.0; away <= 3.0; away++) {
        for (size_t i = 0; i < said->log_count; i++) {
            const double apart = said->log[i].update - in->out->update;
            if (fabs(apart) != away) continue;
            try_other(others, said->log[i].lr, "what the log has for update %.0f, %.0f %s",
                      said->log[i].update, away, apart > 0.0 ? "ahead" : "behind");
        }
    }
}

/* A wrong count t + j sizes the step by s(t + j) instead of s(t) (direction_size). */
static void try_counts(struct others *others, const struct step_group *group, double updates) {
    static const struct {
        double away;
        const char *words;
    } offsets[] = {{1.0, "one ahead"}, {-1.0, "one behind"}, {2.0, "two ahead"}};
    if (group->rule != STEP_RULE_ADAM || !(updates >= 1.0)) return;
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        if (updates + offsets[i].away < 1.0) continue;
        const double ratio =
            direction_size(group, updates + offsets[i].away) / direction_size(group, updates);
        try_other(others, others->promised * ratio,
                  "%.3f of the promised one, which is what Adam's count %s does to update %.0f",
                  ratio, offsets[i].words, updates);
    }
}

static void try_multiples(struct others *others) {
    for (int k = 2; k <= 64; k++) {
        try_other(others, others->promised * k, "%d times the promised one", k);
        try_other(others, others->promised / k,
                  "the promised one divided by %d, or the weights are an average (EMA, SWA)", k);
    }
}

static void try_others(const struct judging *in, uint32_t g, struct others *out) {
    const struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    try_other(out, settings->next,
              "what %s holds for the next update: the scheduler ran before the optimizer",
              in->said->after);
    try_other(out, settings->initial,
              "the schedule's peak (initial_lr), with which it begins anew");
    if (g == 0) try_log(out, in);
    try_counts(out, settings, group->most);
    if (out->promised > 0.0) try_multiples(out);
}

/* ---- the sentence ---- */

static const char *method_text(const struct rate_reading *reading, char out[160]) {
    if (reading->lr.method == RATE_VOTES)
        snprintf(out, 160, "%.2f %% of its weights agree", 100.0 * reading->agreeing);
    else
        snprintf(out, 160, "residual %.2f ulp", reading->residual);
    return out;
}

static enum status say_rate(struct judging *in, struct update_group *group) {
    const struct rate *const lr = &group->reading.lr;
    const double bar = bar_of(lr);
    char method[160], *text;
    if (lr->state == RATE_UNKNOWN)
        TRY(arena_format(in->arena, &text, "cannot be read: %s", lr->why));
    else if (lr->state == RATE_UNEXPLAINED)
        TRY(arena_format(in->arena, &text,
                         "cannot be read: no LR explains how the weights moved "
                         "(%s)",
                         method_text(&group->reading, method)));
    else if (lr->state == RATE_AT_LEAST)
        TRY(arena_format(in->arena, &text,
                         "at least %s (Adafactor's direction needs the gradient, "
                         "which no checkpoint holds; its size has a bound)",
                         update_number(lr->low, 0.0).text));
    else if (lr->state == RATE_AT_MOST)
        TRY(arena_format(in->arena, &text, "unreadable, at most %s",
                         update_number(fmax(fabs(lr->low), fabs(lr->high)), 0.0).text));
    else
        TRY(arena_format(in->arena, &text, "%s +- %s (%s)", update_number(lr->value, bar).text,
                         update_bar(bar).text, method_text(&group->reading, method)));
    group->lr_text = text;
    return STATUS_OK;
}

/* The decay was divided by this LR, so it goes with it; what the weights shrank by stays. */
static enum status forget_rate(struct judging *in, struct update_group *group, const char *why) {
    group->reading.lr = group->reading.decay = (struct rate){.why = why};
    return say_rate(in, group);
}

/* `who` promised another LR than was applied. */
static enum status find_broken(struct judging *in, uint32_t g, const char *who, double promised) {
    const struct update_group *const group = &in->out->groups[g];
    const struct rate *const lr = &group->reading.lr;
    struct others others = {.rate = lr, .promised = promised};
    const int is_bound = lr->state != RATE_READ;
    const double value = lr->state == RATE_AT_LEAST ? lr->low
                         : is_bound                 ? fmax(fabs(lr->low), fabs(lr->high))
                                                    : lr->value;
    const double bar = is_bound ? 0.0 : bar_of(lr);
    if (!is_bound) try_others(in, g, &others);
    return update_find(in, UPDATE_LR, 0, g, "%s %s, and %s%s was applied%s%s%s%s", who,
                       update_number(promised, 0.0).text,
                       lr->state == RATE_AT_MOST    ? "at most "
                       : lr->state == RATE_AT_LEAST ? "at least "
                                                    : "",
                       update_number(value, bar).text, others.count > 0 ? "; it is " : "",
                       others.count > 0 ? others.held[0].words : "",
                       others.count > 1 ? ", or " : "",
                       others.count > 1 ? others.held[1].words : "");
}

/* The log's LR of this update. One that prints the next update's LR is not wrong: plain loops that
 * log after scheduler.step() do, and so did transformers' Trainer up to 4.50. */
static enum status compare_log(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const struct rate *const lr = &group->reading.lr;
    const double logged = group->logged, next = in->step->groups[g].next;
    const double slack = 1e-6 * fabs(logged) + update_log_slack(in->said, 0);
    if (!(slack >= 0.0) || lr->state != RATE_READ || group->verdict == UPDATE_BROKEN ||
        (logged + slack >= lr->low && logged - slack <= lr->high))
        return STATUS_OK;
    if (fabs(logged - next) <= slack && group->verdict == UPDATE_KEPT)
        return update_find(in, UPDATE_LR, 1, g,
                           "the log has %s for this update, which is the LR of the next one: it "
                           "was read after the scheduler ran",
                           update_number(logged, 0.0).text);
    for (uint32_t i = 0; i < in->step->group_count; i++) /* another group's LR is no wrong one */
        if (fabs(logged - in->step->groups[i].promised) <= slack) return STATUS_OK;
    if (fabs(logged - lr->value) <= FORM * fabs(logged) || in->step->groups[g].is_other_class)
        return STATUS_OK;
    group->verdict = UPDATE_BROKEN;
    return find_broken(in, g, "the log has", logged);
}

/* Files without a count: an LR that is not the promised one may be the promised one under another
 * count. Then neither is known. */
static enum status find_assumed(struct judging *in, uint32_t g, int *out_found) {
    struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    struct others others = {.rate = &group->reading.lr, .promised = settings->promised};
    *out_found = 0;
    if (!group->is_assumed || group->reading.lr.state != RATE_READ) return STATUS_OK;
    try_counts(&others, settings, group->most);
    if (others.count == 0) return STATUS_OK;
    *out_found = 1;
    TRY(update_find(
        in, UPDATE_COUNT, 0, g,
        "%s promised %s; with Adam's count at %.0f, which no file holds, %s was applied: "
        "%s",
        in->said->before, update_number(settings->promised, 0.0).text, group->most,
        update_number(group->reading.lr.value, bar_of(&group->reading.lr)).text,
        others.held[0].words));
    return forget_rate(in, group, "its size hangs on Adam's count, which no file holds");
}

/* ---- what is no evidence ---- */

/* Why a reading beside the promised LR says nothing about the LR; NULL: it does. */
static const char *doubt_of(const struct judging *in, uint32_t g) {
    const struct rate *const lr = &in->out->groups[g].reading.lr;
    const struct step_group *const settings = &in->step->groups[g];
    if (lr->state == RATE_READ && lr->high < 0.0)
        return "the weights moved against the direction of their state: another order of names, or "
               "another rule than the files say";
    if (in->step->is_ambiguous && (lr->method == RATE_VOTES || lr->method == RATE_COPIES))
        return "it would not be the promised one, but the names of these weights are a guess among "
               "tensors of equal shapes: give them by --names FILE";
    if (settings->is_other_class && !holds(lr, settings->next))
        return "the state explains how the weights moved, but with another LR than the promised "
               "one, and the group's keys are not those of torch's class: a rule that sizes its "
               "steps (RAdam, LAMB, BertAdam) leaves the same";
    return NULL;
}

static int is_form(const struct judging *in, uint32_t g) {
    const struct rate *const lr = &in->out->groups[g].reading.lr;
    const double promised = in->step->groups[g].promised;
    struct others others = {.rate = lr, .promised = promised};
    const double form = lr->method == RATE_LEAST_SQUARES ? FORM : FORM_NARROW;
    if (lr->state != RATE_READ || !(fabs(lr->value - promised) <= form * fabs(promised))) return 0;
    try_others(in, g, &others);
    return others.count == 0;
}

/* Takes an accusation back that rests on too little. */
static enum status weigh(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const char *const why = doubt_of(in, g);
    if (why != NULL) {
        group->verdict = UPDATE_UNDECIDED;
        return forget_rate(in, group, why);
    }
    if (!is_form(in, g)) return STATUS_OK;
    group->verdict = UPDATE_UNDECIDED;
    return update_find(
        in, UPDATE_LR, 1, g,
        "%s promised %s; the LR that explains the movement is beside it by %s of "
        "it: another form of the rule does so (a decay after the step, another "
        "place of eps; stochastic rounding)",
        in->said->before, update_number(in->step->groups[g].promised, 0.0).text,
        update_bar(fabs(group->reading.lr.value / in->step->groups[g].promised - 1.0)).text);
}

static enum update_verdict verdict_of(const struct rate *lr, double promised) {
    if (lr->state == RATE_UNKNOWN || lr->state == RATE_UNEXPLAINED || !(fabs(promised) >= 0.0))
        return UPDATE_UNDECIDED;
    if (!holds(lr, promised)) return UPDATE_BROKEN;
    if (promised == 0.0) return UPDATE_KEPT;
    const int is_resolved =
        lr->state == RATE_READ && lr->high - lr->low <= 2 * RESOLVED * fabs(lr->value);
    return is_resolved ? UPDATE_KEPT : UPDATE_UNDECIDED;
}

/* The bar holds the promised LR and that of the next update. Made once more with each, the update
 * tells which it was, unless the steps of both round alike. */
static enum status tell_apart(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    const struct replayed kept = replayed_with(in->step, g, settings->promised, in->room);
    const struct replayed ahead = replayed_with(in->step, g, settings->next, in->room);
    const int which = group->replayed = replayed_which(kept, ahead);
    if (which == 1) group->verdict = UPDATE_KEPT;
    if (which == 2) group->verdict = UPDATE_BROKEN;
    if (which == 2)
        return update_find(
            in, UPDATE_LR, 0, g,
            "%s promised %s, and %s was applied, which %s holds for the next update: "
            "both lie inside the bar, but made once more, %" PRIu64 " of %" PRIu64
            " weights come out to the bit with it, and %" PRIu64 " with the promised one",
            in->said->before, update_number(settings->promised, 0.0).text,
            update_number(settings->next, 0.0).text, in->said->after, ahead.equal, ahead.moved,
            kept.equal);
    if (which == 1 || group->verdict != UPDATE_KEPT) return STATUS_OK;
    if (fabs(settings->next - settings->promised) > IMMATERIAL * fabs(settings->promised))
        group->verdict = UPDATE_UNDECIDED;
    return update_find(in, UPDATE_LR, 1, g,
                       "the bar holds the next update's LR, %s, as well: an LR that is one update "
                       "ahead would not be seen",
                       update_number(settings->next, 0.0).text);
}

enum status update_judge_rate(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    const struct rate *const lr = &group->reading.lr;
    char promised_by[256];
    snprintf(promised_by, sizeof promised_by, "%s promised", in->said->before);
    TRY(say_rate(in, group));
    /* A loop that sets the LR before each step leaves the applied one in the file after it. */
    if (settings->is_hand_set && lr->state == RATE_READ && !holds(lr, settings->promised) &&
        holds(lr, settings->next))
        in->settings[g].promised = settings->next;
    group->verdict = verdict_of(lr, settings->promised);
    int is_found = 0;
    if (group->verdict == UPDATE_BROKEN) TRY(weigh(in, g));
    if (group->verdict == UPDATE_BROKEN) TRY(find_assumed(in, g, &is_found));
    if (group->verdict == UPDATE_BROKEN && !is_found)
        TRY(find_broken(in, g, promised_by, settings->promised));
    if (group->verdict != UPDATE_BROKEN && settings->next != settings->promised &&
        holds(lr, settings->promised) && holds(lr, settings->next))
        TRY(tell_apart(in, g));
    if (lr->state == RATE_UNEXPLAINED)
        TRY(update_find(in, UPDATE_UNEXPLAINED, 1, g,
                        "no LR explains how the weights of this group moved: another rule, other "
                        "numbers or another order of names than the files say"));
    return compare_log(in, g);
}
