/* SPDX-License-Identifier: Apache-2.0
 * What the LRs behind a restart say of the scheduler: that they are those of before, begin anew,
 * have another peak, or are those of a counter that is ahead or behind. */
#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "forensics/group_lr.h"
#include "forensics/trajectory_parts.h"
#include "forensics/words.h"

/* How many LRs after the restart there are that BEFORE has so many updates later (`ahead`); 0 where
 * one is another. */
static size_t shifted(const struct trajectory_column *lr, int64_t ahead) {
    size_t count = 0;
    for (size_t i = 0; i < lr->count; i++) {
        const int64_t update = (int64_t)lr->pairs[i].update + ahead;
        const struct series_point *const there =
            update < 1 ? NULL : trajectory_last_at(&lr->before_rows, (uint64_t)update);
        if (there == NULL) continue;
        if (!trajectory_agrees(there, lr->pairs[i].after)) return 0;
        count++;
    }
    return count;
}

/* Whether every LR is one factor of what it was; *out is it, from the largest pair. */
static int is_scaled(const struct trajectory_column *lr, double *out) {
    const struct trajectory_pairing *largest = &lr->pairs[0];
    for (size_t i = 1; i < lr->count; i++)
        if (lr->pairs[i].before->value > largest->before->value) largest = &lr->pairs[i];
    if (lr->count < 2 || !(largest->before->value > 0.0)) return 0;
    *out = largest->after->value / largest->before->value;
    for (size_t i = 0; i < lr->count; i++) {
        const struct trajectory_pairing *const at = &lr->pairs[i];
        const double room = 0.5 * (at->after->quantum + *out * at->before->quantum) +
                            (0x1p-20 + 0.5 * (largest->after->quantum / largest->after->value +
                                              largest->before->quantum / largest->before->value)) *
                                real_abs_f64(at->after->value);
        if (!(real_abs_f64(at->after->value - *out * at->before->value) <= room)) return 0;
    }
    return 1;
}

static double largest_of(const struct series *series) {
    double largest = 0.0;
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].value > largest) largest = series->points[i].value;
    return largest;
}

/* The LRs from the first that differs on: a loaded optimizer may still apply the one it was saved
 * with, and the scheduler those behind it. */
static struct trajectory_column from_jump(const struct trajectory_column *lr) {
    struct trajectory_column out = *lr;
    while (out.count > 0 && trajectory_agrees(out.pairs[0].before, out.pairs[0].after)) {
        out.pairs++;
        out.count--;
    }
    return out;
}

/* How many LRs behind the first one are those of before; 0: one of them is not. */
static size_t alike_behind(const struct trajectory_column *lr) {
    for (size_t i = 1; i < lr->count; i++)
        if (!trajectory_agrees(lr->pairs[i].before, lr->pairs[i].after)) return 0;
    return lr->count - 1;
}

static int is_about(double value, const struct series_point *point) {
    return point != NULL && real_abs_f64(value - point->value) <=
                                0.5 * point->quantum + 1e-3 * real_abs_f64(point->value);
}

/* Rows that are looked at for a number anew. On a plateau each row of BEFORE may be AFTER's first
 * one, so that a long log would be held against itself once for each of its rows. */
#define LOOKS 4000000

/* How many updates later BEFORE has the LRs that AFTER has, in at least half of the updates of both
 * and in two: then AFTER's rows were numbered anew at the restart, as a loop does whose recorder
 * counts from 1; 0: it has them nowhere, as far as was looked. */
static int64_t numbered_anew(const struct trajectory_column *lr) {
    const struct trajectory_pairing *const first = &lr->pairs[0];
    size_t left = 1 + LOOKS / lr->count;
    for (size_t i = 0; i < lr->before.count && left > 0; i++) {
        const struct series_point *const point = &lr->before.points[i];
        if (point->update <= first->update || !trajectory_agrees(point, first->after)) continue;
        left--;
        const int64_t ahead = (int64_t)(point->update - first->update);
        const size_t alike = shifted(lr, ahead);
        if (alike >= 2 && alike >= lr->count - alike) return ahead;
    }
    return 0;
}

/* Neither log says where the restart was, and AFTER's first LR is not that of BEFORE's update of
 * the same number: so AFTER does not repeat the rows before the restart, and which updates its rows
 * stand for is open. */
static enum status say_unnumbered(struct trajectory_judging *judging) {
    const struct trajectory_pairing *const first = &judging->lr.pairs[0];
    const int64_t anew = numbered_anew(&judging->lr);
    judging->unnumbered = 1;
    if (anew > 0)
        return trajectory_say(
            judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
            "the LRs from update %" PRIu64 " of AFTER on are those of BEFORE from update %" PRIu64
            " on: its rows were numbered anew at the restart, or its counter is %" PRId64
            " ahead; number them from %" PRIu64 " on (twinstep.Recorder: first=%" PRIu64 ")",
            first->update, first->update + (uint64_t)anew, anew, first->update + (uint64_t)anew,
            first->update + (uint64_t)anew);
    return trajectory_say(
        judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
        "update %" PRIu64 " has LR %s, and had %s: both logs begin at the same update, so none "
        "says which updates AFTER's rows stand for",
        first->update, word_value(first->after->value, first->after->quantum).text,
        word_value(first->before->value, first->before->quantum).text);
}

static int is_unnumbered(const struct trajectory_judging *judging) {
    const struct trajectory_column *const lr = &judging->lr;
    return judging->out->restart == TRAJECTORY_UNKNOWN && lr->count > 0 &&
           !trajectory_agrees(lr->pairs[0].before, lr->pairs[0].after);
}

static enum status name_jump(struct trajectory_judging *judging) {
    if (is_unnumbered(judging)) return say_unnumbered(judging);
    const struct trajectory_column jumped = from_jump(&judging->lr), *const lr = &jumped;
    const struct trajectory_pairing *const first = &lr->pairs[0];
    const uint64_t done = judging->lr.pairs[0].update - 1;
    double factor;
    const struct word was = word_value(first->before->value, first->before->quantum),
                      is = word_value(first->after->value, first->after->quantum);
    if (lr->count >= 2 && shifted(lr, -(int64_t)done) >= 2)
        return trajectory_say(
            judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "scheduler_not_restored",
            "the LRs begin anew: update %" PRIu64 " has %s, as update 1 had, and had %s",
            first->update, is.text, was.text);
    if (lr->count >= 2 && shifted(lr, (int64_t)done) >= 2)
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "double_counter",
                              "the counter was added to itself: update %" PRIu64
                              " has %s, which was that of "
                              "update %" PRIu64 ", and had %s",
                              first->update, is.text, 2 * done + 1, was.text);
    if (is_scaled(lr, &factor)) {
        const double peak = largest_of(&lr->before);
        const int by_decay =
            is_about(factor * peak, trajectory_last_at(&lr->before_rows, done)) ||
            is_about(factor * peak, trajectory_last_at(&lr->before_rows, done + 1));
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                              by_decay ? "initial_lr_overwritten" : NULL,
                              "every LR is %s of what it was: %s", word_about(factor).text,
                              by_decay ? "the LR at the restart was taken for the peak"
                                       : "another peak, which is not the LR of the checkpoint");
    }
    const uint64_t was_to = judging->before->log->max_steps, is_to = judging->after->log->max_steps;
    if (was_to > 0 && is_to > 0 && was_to != is_to)
        return trajectory_say(
            judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
            "the logs say other totals, %" PRIu64 " and %" PRIu64 ", so their LRs are not "
            "to be equal: update %" PRIu64 " has %s, and had %s; twinstep lr fit tells "
            "whether the counter went on",
            was_to, is_to, first->update, is.text, was.text);
    for (int64_t ahead = 1; ahead <= (int64_t)done; ahead++)
        for (int sign = -1; sign <= 1; sign += 2)
            if (shifted(lr, sign * ahead) >= 2)
                return trajectory_say(
                    judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "lr_jump_at_resume",
                    "the counter is %" PRId64 " %s: update %" PRIu64 " has %s, and had %s", ahead,
                    sign > 0 ? "ahead" : "behind", first->update, is.text, was.text);
    if (first->update == done + 1 && alike_behind(lr) >= 2)
        return trajectory_say(
            judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
            "update %" PRIu64
            " has LR %s, and had %s, and the %zu behind it are those of before: as "
            "where the scheduler was restored and the optimizer was not, which keeps its own LR "
            "until the scheduler sets the next",
            first->update, is.text, was.text, alike_behind(lr));
    return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "lr_jump_at_resume",
                          "update %" PRIu64
                          " has LR %s, and had %s; neither a count nor a factor explains "
                          "the rows behind it",
                          first->update, is.text, was.text);
}

static enum status judge_first_group(struct trajectory_judging *judging) {
    const struct trajectory_column *const lr = &judging->lr;
    size_t equal = 0, numbers = 0;
    if (lr->count == 0)
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                              "no update after the restart has an LR in both");
    for (size_t i = 0; i < lr->count; i++) {
        equal += trajectory_agrees(lr->pairs[i].before, lr->pairs[i].after) ? 1 : 0;
        numbers += trajectory_are_numbers(&lr->pairs[i]) ? 1 : 0;
    }
    if (equal < lr->count) return name_jump(judging);
    if (numbers == 0)
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                              "no LR after the restart is a finite number");
    if (trajectory_is_constant(&lr->before))
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                              "the LR is constant: one that begins anew would be the same");
    if (numbers == 1)
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
                              "the LR of one update after the restart is that of before");
    return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
                          "the LRs of %zu updates after the restart are those of before", numbers);
}

/* A trace records every group at every update, so that a number that is missing there was NaN.
 * Returns the first update after the restart at which one log alone has a number; 0: there is none.
 */
static uint64_t first_missing(const struct trajectory_judging *judging,
                              const struct trajectory_column *lr) {
    if (strcmp(judging->before->log->format, "trace") != 0 ||
        strcmp(judging->after->log->format, "trace") != 0)
        return 0;
    for (size_t i = 0; i < judging->lr.count; i++) {
        const uint64_t update = judging->lr.pairs[i].update;
        if ((trajectory_last_at(&lr->before_rows, update) == NULL) !=
            (trajectory_last_at(&lr->after_rows, update) == NULL))
            return update;
    }
    return 0;
}

static int all_agree(const struct trajectory_column *lr) {
    for (size_t i = 0; i < lr->count; i++)
        if (!trajectory_agrees(lr->pairs[i].before, lr->pairs[i].after)) return 0;
    return 1;
}

/* Judges a further group as the first one was judged. */
static enum status judge_group(struct trajectory_judging *judging,
                               const struct trajectory_group *group) {
    struct trajectory_item *const item = &judging->out->items[TRAJECTORY_SCHEDULER];
    const struct trajectory_column first_group = judging->lr;
    const uint64_t missing = first_missing(judging, &group->lr);
    char *name;
    if (all_agree(&group->lr) && missing == 0) return STATUS_OK;
    TRY(group_name(group->number, group->lr.name, judging->arena, &name));
    if (all_agree(&group->lr)) {
        if (judging->out->differs == 0 || missing < judging->out->differs) {
            judging->out->differs = missing;
            judging->out->column = group->lr.name;
        }
        return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, NULL,
                              "%s: update %" PRIu64 " has a number in one alone", name, missing);
    }
    judging->lr = group->lr;
    TRY(name_jump(judging));
    judging->lr = first_group;
    return trajectory_say(judging, TRAJECTORY_SCHEDULER, item->state, item->bug, "%s: %s", name,
                          item->text);
}

/* Judges further groups where the first one has not said that the scheduler is lost. */
static enum status judge_groups(struct trajectory_judging *judging) {
    struct trajectory_item *const item = &judging->out->items[TRAJECTORY_SCHEDULER];
    if (is_unnumbered(judging)) return STATUS_OK;
    for (size_t i = 0; i < judging->group_count && item->state != TRAJECTORY_LOST; i++)
        TRY(judge_group(judging, &judging->groups[i]));
    if (item->state != TRAJECTORY_RESTORED || judging->alone == NULL) return STATUS_OK;
    return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
                          "in group 0 %s; one log alone has %s, of which nothing is said",
                          item->text, judging->alone);
}

enum status trajectory_judge_lr(struct trajectory_judging *judging) {
    TRY(judge_first_group(judging));
    return judge_groups(judging);
}
