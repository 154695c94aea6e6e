/* SPDX-License-Identifier: Apache-2.0
 * Pairs the rows of both logs by update, then asks part by part. Where a log has an update several
 * times, the last row counts. */
#include "forensics/trajectory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/real.h"
#include "determinism/statistics.h"
#include "forensics/group_lr.h"
#include "forensics/series.h"
#include "forensics/words.h"

const char *const trajectory_part_names[TRAJECTORY_PARTS] = {"scheduler", "data", "generators",
                                                             "weights", "optimizer"};
const char *const trajectory_state_names[3] = {"restored", "lost", "untold"};

/* Two batches differ in their losses about as much as rows of a log that follow each other do, and
 * kernels that sum in another order by far less: a tenth was chosen, and held against trainings in
 * docs/measurements/resume.md. */
#define NOISE_SHARE 0.1
#define VARIATION_ROWS 4

/* One column at one update in both logs. */
struct pairing {
    uint64_t update;
    const struct series_point *before, *after;
};

struct column {
    const char *name; /* as AFTER spells it */
    struct series before, after;
    struct pairing *pairs; /* after the restart, ascending */
    size_t count;
};

/* The LR of a further parameter group in both logs. */
struct group {
    uint32_t number;
    struct column lr;
};

struct judging {
    const struct trajectory_side *before, *after;
    struct arena *arena;
    struct trajectory *out;
    struct column lr, loss, norm, tokens;
    struct group *groups;
    size_t group_count;
    const char *alone; /* the LR column of a further group that one log alone has; NULL: none */
    double variation;  /* the median change of the loss from row to row; 0: too few rows */
    int windowed;      /* a row of the loss is a mean over several updates */
};

static enum status say(struct judging *judging, enum trajectory_part part,
                       enum trajectory_state state, const char *bug, const char *format, ...)
    TWINSTEP_PRINTF(5, 6);
static enum status say(struct judging *judging, enum trajectory_part part,
                       enum trajectory_state state, const char *bug, const char *format, ...) {
    char room[512], *text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(room, sizeof room, format, arguments);
    va_end(arguments);
    TRY(arena_format(judging->arena, &text, "%s", room));
    judging->out->items[part] = (struct trajectory_item){state, text, bug};
    return STATUS_OK;
}

/* ---- columns ---- */

static const struct series_point *last_at(const struct series *series, uint64_t update) {
    for (size_t i = series->count; i-- > 0;)
        if (series->points[i].update == update) return &series->points[i];
    return NULL;
}

static enum status open_column(struct judging *judging, enum log_name name, struct column *out) {
    const struct log_column *const before = log_column_of(judging->before->log, name),
                                   *const after = log_column_of(judging->after->log, name);
    out->name = after != NULL ? after->source : log_names[name].name;
    TRY(series_of(judging->before->log, before, judging->arena, &out->before));
    return series_of(judging->after->log, after, judging->arena, &out->after);
}

/* The applied LR where both logs have it, else the logged one. */
static enum status open_lr(struct judging *judging) {
    TRY(open_column(judging, LOG_LR_APPLIED, &judging->lr));
    if (judging->lr.before.count > 0 && judging->lr.after.count > 0) return STATUS_OK;
    return open_column(judging, LOG_LR_LOGGED, &judging->lr);
}

static int is_last(const struct series *series, size_t i) {
    return last_at(series, series->points[i].update) == &series->points[i];
}

static enum status pair(struct judging *judging, struct column *column) {
    const struct series *const after = &column->after;
    TRY(arena_take(judging->arena, after->count, sizeof *column->pairs, "rows", &column->pairs));
    for (size_t i = 0; i < after->count; i++) {
        const uint64_t update = after->points[i].update;
        const struct series_point *const before = last_at(&column->before, update);
        if (before == NULL || !is_last(after, i)) continue;
        if (judging->out->restart != TRAJECTORY_UNKNOWN && update <= judging->out->restart)
            continue;
        column->pairs[column->count++] = (struct pairing){update, before, &after->points[i]};
    }
    return STATUS_OK;
}

/* Opens the LRs of further parameter groups, of the kind (applied or logged) that `lr` is of. */
static enum status open_groups(struct judging *judging) {
    const struct log *const before = judging->before->log, *const after = judging->after->log;
    const int applied = log_column_of(before, LOG_LR_APPLIED) != NULL &&
                        log_column_of(after, LOG_LR_APPLIED) != NULL;
    struct group_lr *found;
    size_t count;
    TRY(group_lrs(before, after, judging->arena, &found, &count));
    TRY(arena_take(judging->arena, count, sizeof *judging->groups, "groups", &judging->groups));
    for (size_t i = 0; i < count; i++) {
        struct group *const group = &judging->groups[judging->group_count];
        if ((found[i].name == LOG_LR_APPLIED) != applied) continue;
        if (found[i].column[0] == NULL || found[i].column[1] == NULL) {
            if (judging->alone == NULL) judging->alone = found[i].source;
            continue;
        }
        *group = (struct group){.number = found[i].group, .lr.name = found[i].source};
        TRY(series_of(before, found[i].column[0], judging->arena, &group->lr.before));
        TRY(series_of(after, found[i].column[1], judging->arena, &group->lr.after));
        TRY(pair(judging, &group->lr));
        judging->group_count++;
    }
    return STATUS_OK;
}

static const struct pairing *pair_at(const struct column *column, uint64_t update) {
    for (size_t i = 0; i < column->count; i++)
        if (column->pairs[i].update == update) return &column->pairs[i];
    return NULL;
}

static double gap_of(const struct pairing *pair) {
    return real_abs_f64(pair->after->value - pair->before->value);
}

static int agrees(const struct series_point *a, const struct series_point *b) {
    return log_compare(a->value, a->quantum, b->value, b->quantum) != LOG_DIFFERENT;
}

/* NaN and infinity are what every broken run prints, so that they prove nothing of a restart. */
static int are_numbers(const struct pairing *pair) {
    return real_finite_f64(pair->before->value) && real_finite_f64(pair->after->value);
}

/* Whether an update has one LR in both logs, in every parameter group; what is not in both does not
 * speak against it. */
static int same_lrs(const struct judging *judging, uint64_t update) {
    const struct pairing *at = pair_at(&judging->lr, update);
    if (at != NULL && !agrees(at->before, at->after)) return 0;
    for (size_t i = 0; i < judging->group_count; i++) {
        at = pair_at(&judging->groups[i].lr, update);
        if (at != NULL && !agrees(at->before, at->after)) return 0;
    }
    return 1;
}

static enum status find_variation(struct judging *judging) {
    const struct series *const loss = &judging->loss.before;
    double *changes;
    size_t count = 0;
    TRY(arena_take(judging->arena, loss->count, sizeof *changes, "rows", &changes));
    for (size_t i = 1; i < loss->count; i++) {
        const double change = real_abs_f64(loss->points[i].value - loss->points[i - 1].value);
        if (real_finite_f64(change)) changes[count++] = change;
    }
    judging->variation = 0.0;
    if (count < VARIATION_ROWS) return STATUS_OK;
    statistics_sort(changes, count);
    judging->variation = changes[count / 2];
    return STATUS_OK;
}

/* Whole numbers that were printed whole are known exactly. */
static int agree_counts(const struct pairing *pair) {
    if (!series_coarser(pair->before->quantum, 1.0) && !series_coarser(pair->after->quantum, 1.0))
        return gap_of(pair) < 1.0;
    return agrees(pair->before, pair->after);
}

/* Whether the losses of an update are those of one batch, draw and weights, up to noise. */
static int is_alike(const struct judging *judging, const struct pairing *pair) {
    return agrees(pair->before, pair->after) || gap_of(pair) <= NOISE_SHARE * judging->variation;
}

static void note_first(struct judging *judging, const struct column *column,
                       int (*is_same)(const struct judging *judging, const struct pairing *pair)) {
    struct trajectory *const out = judging->out;
    for (size_t i = 0; i < column->count; i++) {
        const struct pairing *const at = &column->pairs[i];
        if (is_same(judging, at) || (out->differs != 0 && at->update >= out->differs)) continue;
        out->differs = at->update;
        out->column = column->name;
    }
}

/* ---- the scheduler ---- */

static int is_constant(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (!agrees(&series->points[i], &series->points[0])) return 0;
    return 1;
}

/* How many LRs after the restart there are that BEFORE has so many updates later (`ahead`); 0 where
 * one is another. */
static size_t shifted(const struct column *lr, int64_t ahead) {
    size_t count = 0;
    for (size_t i = 0; i < lr->count; i++) {
        const int64_t update = (int64_t)lr->pairs[i].update + ahead;
        const struct series_point *const there =
            update < 1 ? NULL : last_at(&lr->before, (uint64_t)update);
        if (there == NULL) continue;
        if (!agrees(there, lr->pairs[i].after)) return 0;
        count++;
    }
    return count;
}

/* Whether every LR is one factor of what it was; *out is it, from the largest pair. */
static int is_scaled(const struct column *lr, double *out) {
    const struct pairing *largest = &lr->pairs[0];
    for (size_t i = 1; i < lr->count; i++)
        if (lr->pairs[i].before->value > largest->before->value) largest = &lr->pairs[i];
    if (lr->count < 2 || !(largest->before->value > 0.0)) return 0;
    *out = largest->after->value / largest->before->value;
    for (size_t i = 0; i < lr->count; i++) {
        const struct pairing *const at = &lr->pairs[i];
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
static struct column from_jump(const struct column *lr) {
    struct column out = *lr;
    while (out.count > 0 && agrees(out.pairs[0].before, out.pairs[0].after)) {
        out.pairs++;
        out.count--;
    }
    return out;
}

static int is_about(double value, const struct series_point *point) {
    return point != NULL && real_abs_f64(value - point->value) <=
                                0.5 * point->quantum + 1e-3 * real_abs_f64(point->value);
}

static enum status name_jump(struct judging *judging) {
    const struct column jumped = from_jump(&judging->lr), *const lr = &jumped;
    const struct pairing *const first = &lr->pairs[0];
    const uint64_t done = judging->lr.pairs[0].update - 1;
    double factor;
    const struct word was = word_value(first->before->value, first->before->quantum),
                      is = word_value(first->after->value, first->after->quantum);
    if (lr->count >= 2 && shifted(lr, -(int64_t)done) >= 2)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "scheduler_not_restored",
                   "the LRs begin anew: update %" PRIu64 " has %s, as update 1 had, and had %s",
                   first->update, is.text, was.text);
    if (lr->count >= 2 && shifted(lr, (int64_t)done) >= 2)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "double_counter",
                   "the counter was added to itself: update %" PRIu64 " has %s, which was that of "
                   "update %" PRIu64 ", and had %s",
                   first->update, is.text, 2 * done + 1, was.text);
    if (is_scaled(lr, &factor)) {
        const double peak = largest_of(&lr->before);
        const int by_decay = is_about(factor * peak, last_at(&lr->before, done)) ||
                             is_about(factor * peak, last_at(&lr->before, done + 1));
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                   by_decay ? "initial_lr_overwritten" : NULL, "every LR is %s of what it was: %s",
                   word_about(factor).text,
                   by_decay ? "the LR at the restart was taken for the peak"
                            : "another peak, which is not the LR of the checkpoint");
    }
    const uint64_t was_to = judging->before->log->max_steps, is_to = judging->after->log->max_steps;
    if (was_to > 0 && is_to > 0 && was_to != is_to)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                   "the logs say other totals, %" PRIu64 " and %" PRIu64 ", so their LRs are not "
                   "to be equal: update %" PRIu64 " has %s, and had %s; twinstep lr fit tells "
                   "whether the counter went on",
                   was_to, is_to, first->update, is.text, was.text);
    for (int64_t ahead = 1; ahead <= (int64_t)done; ahead++)
        for (int sign = -1; sign <= 1; sign += 2)
            if (shifted(lr, sign * ahead) >= 2)
                return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "lr_jump_at_resume",
                           "the counter is %" PRId64 " %s: update %" PRIu64 " has %s, and had %s",
                           ahead, sign > 0 ? "ahead" : "behind", first->update, is.text, was.text);
    return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "lr_jump_at_resume",
               "update %" PRIu64 " has LR %s, and had %s; neither a count nor a factor explains "
               "the rows behind it",
               first->update, is.text, was.text);
}

static enum status judge_scheduler(struct judging *judging) {
    const struct column *const lr = &judging->lr;
    size_t equal = 0, numbers = 0;
    if (lr->count == 0)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                   "no update after the restart has an LR in both");
    for (size_t i = 0; i < lr->count; i++) {
        equal += agrees(lr->pairs[i].before, lr->pairs[i].after) ? 1 : 0;
        numbers += are_numbers(&lr->pairs[i]) ? 1 : 0;
    }
    if (equal < lr->count) return name_jump(judging);
    if (numbers == 0)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                   "no LR after the restart is a finite number");
    if (is_constant(&lr->before))
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, NULL,
                   "the LR is constant: one that begins anew would be the same");
    if (numbers == 1)
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
                   "the LR of one update after the restart is that of before");
    return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
               "the LRs of %zu updates after the restart are those of before", numbers);
}

/* A trace records every group at every update, so that a number that is missing there was NaN.
 * Returns the first update after the restart at which one log alone has a number; 0: there is none.
 */
static uint64_t first_missing(const struct judging *judging, const struct column *lr) {
    if (strcmp(judging->before->log->format, "trace") != 0 ||
        strcmp(judging->after->log->format, "trace") != 0)
        return 0;
    for (size_t i = 0; i < judging->lr.count; i++) {
        const uint64_t update = judging->lr.pairs[i].update;
        if ((last_at(&lr->before, update) == NULL) != (last_at(&lr->after, update) == NULL))
            return update;
    }
    return 0;
}

static int all_agree(const struct column *lr) {
    for (size_t i = 0; i < lr->count; i++)
        if (!agrees(lr->pairs[i].before, lr->pairs[i].after)) return 0;
    return 1;
}

/* Judges a further group as the first one was judged. */
static enum status judge_group(struct judging *judging, const struct group *group) {
    struct trajectory_item *const item = &judging->out->items[TRAJECTORY_SCHEDULER];
    const struct column first_group = judging->lr;
    const uint64_t missing = first_missing(judging, &group->lr);
    if (all_agree(&group->lr) && missing == 0) return STATUS_OK;
    if (all_agree(&group->lr)) {
        if (judging->out->differs == 0 || missing < judging->out->differs) {
            judging->out->differs = missing;
            judging->out->column = group->lr.name;
        }
        return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, NULL,
                   "group %" PRIu32 " (%s): update %" PRIu64 " has a number in one alone",
                   group->number, group->lr.name, missing);
    }
    judging->lr = group->lr;
    TRY(name_jump(judging));
    judging->lr = first_group;
    return say(judging, TRAJECTORY_SCHEDULER, item->state, item->bug, "group %" PRIu32 " (%s): %s",
               group->number, group->lr.name, item->text);
}

/* Judges further groups where the first one has not said that the scheduler is lost. */
static enum status judge_groups(struct judging *judging) {
    struct trajectory_item *const item = &judging->out->items[TRAJECTORY_SCHEDULER];
    for (size_t i = 0; i < judging->group_count && item->state != TRAJECTORY_LOST; i++)
        TRY(judge_group(judging, &judging->groups[i]));
    if (item->state != TRAJECTORY_RESTORED || judging->alone == NULL) return STATUS_OK;
    return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
               "in group 0 %s; one log alone has %s, of which nothing is said", item->text,
               judging->alone);
}

/* ---- the first update after the restart, by its loss ---- */

static enum status say_all(struct judging *judging, const char *why) {
    for (int part = TRAJECTORY_DATA; part <= TRAJECTORY_OPTIMIZER; part++)
        TRY(say(judging, (enum trajectory_part)part, TRAJECTORY_UNTOLD, NULL, "%s", why));
    return STATUS_OK;
}

/* Whether batches are of different sizes at all, so that equal sizes say something. */
static int sizes_vary(const struct judging *judging) {
    const struct series *const tokens = &judging->tokens.before;
    const struct log_column *const column = log_column_of(judging->before->log, LOG_TOKENS);
    if (!column->cumulative) return !is_constant(tokens);
    for (size_t i = 2; i < tokens->count; i++)
        if (tokens->points[i].value - tokens->points[i - 1].value !=
            tokens->points[1].value - tokens->points[0].value)
            return 1;
    return 0;
}

static int is_same_number(const struct judging *judging, const struct pairing *pair) {
    (void)judging;
    return agrees(pair->before, pair->after);
}

static int is_same_count(const struct judging *judging, const struct pairing *pair) {
    (void)judging;
    return agree_counts(pair);
}

/* The first update whose batches are of another size. */
static const struct pairing *other_tokens(const struct judging *judging) {
    for (size_t i = 0; i < judging->tokens.count; i++)
        if (!agree_counts(&judging->tokens.pairs[i])) return &judging->tokens.pairs[i];
    return NULL;
}

static enum status say_tokens(struct judging *judging, const struct pairing *other) {
    return say(judging, TRAJECTORY_DATA, TRAJECTORY_LOST, NULL,
               "column %s has %s at update %" PRIu64 ", and had %s: another batch",
               judging->tokens.name, word_number(other->after->value).text, other->update,
               word_number(other->before->value).text);
}

/* Another loss in the first update: batch, draws or weights. */
static enum status judge_apart(struct judging *judging, const struct pairing *first) {
    static const char which[] = "batch, random draws or weights are not those of before; ";
    const struct pairing *const other = other_tokens(judging);
    const int counted = judging->tokens.count > 0 && sizes_vary(judging);
    const struct word times =
        word_about(judging->variation > 0.0 ? gap_of(first) / judging->variation : 0.0);
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64 " is %s, and was %s, %s times the usual change "
                     "from row to row: %s",
                     first->update, word_number(first->after->value).text,
                     word_number(first->before->value).text, times.text, which));
    TRY(say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
            "its first step is not that of before, whatever it restored"));
    TRY(say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, NULL,
            "%stwinstep readback on the two checkpoints tells", text));
    if (other != NULL && other->update == first->update) {
        TRY(say_tokens(judging, other));
        return say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                   "the batch is another one already");
    }
    TRY(say(judging, TRAJECTORY_GENERATORS, counted ? TRAJECTORY_LOST : TRAJECTORY_UNTOLD, NULL,
            "%s%s", text,
            counted ? "the batch has as many tokens: likely other masks of dropout"
                    : "a column of tokens, or traces of both, would tell"));
    return say(judging, TRAJECTORY_DATA, counted ? TRAJECTORY_RESTORED : TRAJECTORY_UNTOLD, NULL,
               "%s%s", counted ? "" : text,
               counted ? "as many tokens in every update after the restart"
                       : "a column of tokens, or traces of both, would tell");
}

static enum status judge_optimizer(struct judging *judging, const struct pairing *begun) {
    const uint64_t first = begun->update;
    const struct pairing *const next = pair_at(&judging->loss, first + 1);
    const struct pairing *const norm = pair_at(&judging->norm, first + 1);
    const int same_lr = same_lrs(judging, first);
    const struct pairing *const other = other_tokens(judging);
    const int same_batch = other == NULL || other->update > first + 1;
    if (next == NULL)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                   "update %" PRIu64 ", which would show what the first step did, is not in both",
                   first + 1);
    if (!same_lr || !same_batch)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                   "its first step would show in update %" PRIu64 ", but for %s", next->update,
                   same_lr ? "the batch there, which is another one"
                           : "the LR that it was made at");
    if (!are_numbers(next))
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                   "the loss of update %" PRIu64 ", which would show what the first step did, is "
                   "%s, and was %s",
                   next->update, word_number(next->after->value).text,
                   word_number(next->before->value).text);
    if (is_alike(judging, next) && !agrees(next->before, next->after))
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                   "the losses of update %" PRIu64
                   " are %s times the usual change apart: noise of kernels, or a step that was too "
                   "small to show in a loss; twinstep readback on two checkpoints tells",
                   next->update, word_about(gap_of(next) / judging->variation).text);
    if (is_alike(judging, next))
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, NULL,
                   "the loss of update %" PRIu64 " is %s, and was %s: the first step was that of "
                   "before%s",
                   next->update, word_number(next->after->value).text,
                   word_number(next->before->value).text,
                   norm != NULL && are_numbers(norm) && agrees(norm->before, norm->after)
                       ? ", and so is its gradient norm"
                       : "");
    if (!agrees(begun->before, begun->after))
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                   "the loss of update %" PRIu64
                   " is another one: moments, their count or masters, "
                   "or other masks of dropout in update %" PRIu64,
                   next->update, first);
    return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
               "the loss of update %" PRIu64 " is %s, and was %s, %s times the usual change from "
               "row to row, although update %" PRIu64 " saw the same batch and weights at the same "
               "LR: moments, their count or masters",
               next->update, word_number(next->after->value).text,
               word_number(next->before->value).text,
               word_about(gap_of(next) / judging->variation).text, first);
}

/* A first loss that is no finite number says nothing of its update; the tokens of a batch do. */
static enum status judge_no_number(struct judging *judging, const struct pairing *first) {
    const struct pairing *const other = other_tokens(judging);
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64 " is %s, and was %s: one that is not finite "
                     "tells nothing of what was restored",
                     first->update, word_number(first->after->value).text,
                     word_number(first->before->value).text));
    TRY(say_all(judging, text));
    return other != NULL ? say_tokens(judging, other) : STATUS_OK;
}

static enum status judge_forward(struct judging *judging) {
    const uint64_t restart = judging->out->restart;
    const struct pairing *const other = other_tokens(judging);
    if (restart == TRAJECTORY_UNKNOWN)
        return say_all(judging,
                       judging->out->differs == 0
                           ? "all rows agree, and neither log says where the restart was: say "
                             "--restart UPDATE"
                           : "both logs begin at the same update, so none says where the restart "
                             "was: say --restart UPDATE");
    const struct pairing *const first = pair_at(&judging->loss, restart + 1);
    if (first == NULL)
        return say_all(judging, "the first update after the restart has no loss in both");
    if (judging->variation == 0.0)
        return say_all(judging, "too few rows before to know how much a loss changes from row to "
                                "row");
    if (judging->windowed)
        return say_all(judging, "a row of the loss is a mean over several updates: log every "
                                "update (logging_steps 1)");
    if (!are_numbers(first)) return judge_no_number(judging, first);
    if (!is_alike(judging, first)) return judge_apart(judging, first);
    TRY(other != NULL
            ? say_tokens(judging, other)
            : say(judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
                  "the loss of update %" PRIu64 " is %s, and was %s: the batch is that of before",
                  first->update, word_number(first->after->value).text,
                  word_number(first->before->value).text));
    if (agrees(first->before, first->after))
        TRY(say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
                "as the data: what update %" PRIu64
                " drew is what it drew before, if it drew anything",
                first->update));
    else
        TRY(say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                "the losses of update %" PRIu64
                " are %s times the usual change apart: noise of kernels, or other masks of dropout",
                first->update, word_about(gap_of(first) / judging->variation).text));
    if (agrees(first->before, first->after))
        TRY(say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, NULL,
                "as the data: other weights would give another loss"));
    else
        TRY(say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, NULL,
                "weights that were rounded on the way would show as little: twinstep readback on "
                "the two checkpoints tells"));
    return judge_optimizer(judging, first);
}

/* ---- by digests ---- */

/* Updates increase from row to row. */
static const struct record *row_of(const struct trace_run *run, uint64_t update) {
    uint64_t low = 0, high = run->updates;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (trace_row(run, middle)->step < update)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == run->updates) return NULL;
    const struct record *const row = trace_row(run, low);
    return row->step == update ? row : NULL;
}

static int is_recorded(const struct record *record, int column) {
    for (size_t i = 0; i < RECORD_DIGEST_BYTES; i++)
        if (record->digests[column][i] != 0) return 1;
    return 0;
}

/* 1: equal, 0: not, -1: not recorded on both sides. */
static int equal_digest(const struct record *a, const struct record *b, int column) {
    if (!is_recorded(a, column) || !is_recorded(b, column)) return -1;
    return memcmp(a->digests[column], b->digests[column], RECORD_DIGEST_BYTES) == 0;
}

static enum status judge_data_digests(struct judging *judging, uint64_t first) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    uint64_t seen = 0;
    for (uint64_t i = 0; i < b->updates; i++) {
        const struct record *const y = trace_row(b, i), *const x = row_of(a, y->step);
        if (x == NULL || y->step < first) continue;
        const int equal = equal_digest(x, y, DIGEST_BATCH);
        if (equal < 0) return STATUS_OK;
        if (!equal)
            return say(judging, TRAJECTORY_DATA, TRAJECTORY_LOST, NULL,
                       "the batch of update %" PRIu64 " is another one%s", y->step,
                       seen > 0 ? ", those between the restart and it are not" : "");
        seen++;
    }
    if (seen == 1)
        return say(judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
                   "the batch of one update after the restart is that of before");
    return say(judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
               "the batches of %" PRIu64 " updates after the restart are those of before", seen);
}

/* Where streams are recorded their places before the update tell, and else the loss of a batch that
 * is the same. */
static enum status judge_stream_places(struct judging *judging, const struct record *x,
                                       const struct record *y) {
    const struct trace_run_plan *const a = &judging->before->run->plan, *const b = &judging->after
                                                                                        ->run->plan;
    if (a->shape.streams != b->shape.streams) return STATUS_OK;
    uint32_t seen = 0;
    for (uint32_t s = 0; s < b->shape.streams; s++) {
        if (strcmp(b->streams[s], "data") == 0) continue;
        if (memcmp(&x->places[s], &y->places[s], sizeof x->places[s]) != 0)
            return say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_LOST, NULL,
                       "stream %s stands elsewhere before update %" PRIu64, b->streams[s], y->step);
        seen++;
    }
    return say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
               seen > 0 ? "its streams stand before update %" PRIu64 " where they stood"
                        : "nothing was drawn for update %" PRIu64,
               y->step);
}

static int is_lost(const struct judging *judging, enum trajectory_part part) {
    return judging->out->items[part].state == TRAJECTORY_LOST;
}

/* The weight decay is the scheduler's where it has a schedule (Megatron-LM). Returns the group
 * whose decay in `y` is another one than in `x`, or -1. */
static int other_decay(const struct judging *judging, const struct record *x,
                       const struct record *y) {
    const uint32_t a = judging->before->run->plan.shape.groups,
                   b = judging->after->run->plan.shape.groups;
    for (uint32_t g = 0; g < a && g < b; g++) {
        const double was = x->groups[g][GROUP_WD_APPLIED], is = y->groups[g][GROUP_WD_APPLIED];
        if (was == was && is == is && was != is) return (int)g;
    }
    return -1;
}

static enum status judge_decay(struct judging *judging, const struct record *x,
                               const struct record *y) {
    const int group = other_decay(judging, x, y);
    if (group < 0 || is_lost(judging, TRAJECTORY_SCHEDULER)) return STATUS_OK;
    const double was = x->groups[group][GROUP_WD_APPLIED], is = y->groups[group][GROUP_WD_APPLIED];
    const uint64_t first = y->step;
    const struct record *const then = row_of(judging->before->run, first + 1),
                               *const now = row_of(judging->after->run, first + 1);
    const int once = then != NULL && now != NULL && other_decay(judging, then, now) < 0;
    char later[64] = "";
    if (once) snprintf(later, sizeof later, "; update %" PRIu64 " as before", first + 1);
    return say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, once ? "stale_wd_on_resume" : NULL,
               "update %" PRIu64 " decayed weights by %s, and by %s before%s", first,
               word_number(is).text, word_number(was).text, later);
}

/* Whether a line of the run's configuration is "KEY: VALUE", both given in `line`. */
static int says(const struct trace_run *run, const char *line) {
    const size_t length = strlen(line);
    for (const char *at = run->plan.configuration; (at = strstr(at, line)) != NULL; at++)
        if ((at == run->plan.configuration || at[-1] == '\n') &&
            (at[length] == '\n' || at[length] == '\0'))
            return 1;
    return 0;
}

/* The unit of the weights' last place, relative, where the recorded digests are of the copy that
 * the optimizer moves and another count gives another step of every tensor; 0.0: not so, or not
 * known. Weights that have masters, and coarse ones, may round two steps to the same bits. */
static double exact_unit(const struct trace_run *run) {
    if (run->plan.foreign != NULL || !says(run, "numerics.master: none") ||
        !says(run, "optimizer.name: adamw") || !says(run, "optimizer.bias_correction: true") ||
        !says(run, "optimizer.t: counted"))
        return 0.0;
    return says(run, "numerics.param: f32")   ? 0x1p-23
           : says(run, "numerics.param: f64") ? 0x1p-52
                                              : 0.0;
}

/* A count that begins anew changes a step by a large part of itself (with betas of 0.9 and 0.999
 * from update 5 by 84 %; by less than 1 % near update 105 alone). Where some element was moved by
 * more than so many units, rounding does not hide that. */
#define UNITS 2.0

/* Whether the optimizer's own step of tensor `t`, without the decay, moved some element by more
 * than UNITS: all weights together are at least as long as the tensor. */
static int is_plain(const struct record *y, uint32_t t, int group, double unit) {
    const double *const reals = y->groups[group], length = y->reals[REAL_PARAM_NORM];
    const double decay = real_abs_f64(reals[GROUP_LR_APPLIED] * reals[GROUP_WD_APPLIED]) * length;
    return y->tensors[t][TENSOR_UPDATE_NORM] - decay > UNITS * unit * length;
}

/* How many tensors have other bits after the step of an update, and how many that it moved have the
 * same (`alike`); those that it did not move say nothing. Of `plain` ones of the latter the bits
 * show that the count is right. `in_front`: in every parameter group those that are alike stand in
 * front of the others. */
struct steps {
    uint32_t alike, other, plain;
    int in_front;
};

static struct steps compare_steps(const struct judging *judging, const struct record *x,
                                  const struct record *y) {
    const struct trace_run_plan *const a = &judging->before->run->plan, *const b = &judging->after
                                                                                        ->run->plan;
    const double was_unit = exact_unit(judging->before->run),
                 is_unit = exact_unit(judging->after->run);
    const double unit = was_unit > 0.0 && is_unit > 0.0 ? is_unit : 0.0;
    const int grouped = strlen(b->groups) == b->shape.tensors;
    struct steps steps = {.in_front = 1};
    int has_other[10] = {0};
    if (a->shape.tensors != b->shape.tensors) return steps;
    for (uint32_t t = 0; t < b->shape.tensors; t++) {
        const int group =
            grouped && b->groups[t] >= '0' && b->groups[t] <= '9' ? b->groups[t] - '0' : 0;
        const int equal =
            memcmp(x->tensor_digests[t][TENSOR_DIGEST_PARAMETER],
                   y->tensor_digests[t][TENSOR_DIGEST_PARAMETER], RECORD_DIGEST_BYTES) == 0;
        if (!equal) steps.other++;
        if (!equal) has_other[group] = 1;
        if (!equal || !(y->tensors[t][TENSOR_UPDATE_NORM] > 0.0)) continue;
        steps.alike++;
        if (has_other[group]) steps.in_front = 0;
        if (unit > 0.0 && (uint32_t)group < b->shape.groups && is_plain(y, t, group, unit))
            steps.plain++;
    }
    return steps;
}

/* The optimizer's part where the first step is another one from the same loss, LR and decay. Lost
 * moments or a lost count change every tensor's step. What is read by index of shards that another
 * number of ranks wrote (resume.wrong shards-by-index) stays in place for the first rank's part
 * alone, which is the beginning of each parameter group; one tensor is no beginning. */
static enum status judge_other_step(struct judging *judging, const struct record *x,
                                    const struct record *y) {
    const struct steps steps = compare_steps(judging, x, y);
    if (steps.other == 0)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                   "another step of update %" PRIu64 " from the same loss at the same LR: "
                   "moments, their count or masters%s",
                   y->step,
                   judging->after->run->plan.shape.tensors > 0
                       ? ""
                       : ", which traces with record.tensors would tell apart further");
    if (steps.alike == 0)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                   "another step of update %" PRIu64 " from the same loss at the same LR, of every "
                   "tensor that it moved (%" PRIu32 "): moments, their count or masters",
                   y->step, steps.other);
    if (steps.plain == 0)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                   "another step of update %" PRIu64 " from the same loss at the same LR: it moved "
                   "%" PRIu32 " tensors otherwise, and %" PRIu32 " that it moved have the digest "
                   "of before; rounding to the weights' dtype can hide another step, so this does "
                   "not tell moments, their count and masters apart",
                   y->step, steps.other, steps.alike);
    return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
               "another step of update %" PRIu64 " from the same loss at the same LR: it moved "
               "%" PRIu32 " tensors otherwise and %" PRIu32
               " as before, so the count is right, and "
               "moments are not%s",
               y->step, steps.other, steps.alike,
               steps.in_front && steps.alike > 1
                   ? ", behind the latter in each parameter group, as where each rank reads the "
                     "shard of its own index although another number of ranks wrote them"
                   : "");
}

static enum status judge_weight_digests(struct judging *judging, const struct record *x,
                                        const struct record *y) {
    const struct trajectory_item *const items = judging->out->items;
    const int inputs = items[TRAJECTORY_DATA].state == TRAJECTORY_RESTORED &&
                       items[TRAJECTORY_GENERATORS].state == TRAJECTORY_RESTORED;
    const int loss = x->reals[REAL_LOSS] == y->reals[REAL_LOSS];
    const struct pairing *const lr = pair_at(&judging->lr, y->step);
    const int same_lr = lr != NULL && same_lrs(judging, y->step);
    const int after = equal_digest(x, y, DIGEST_WEIGHTS);
    if (loss)
        TRY(say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, NULL,
                "the loss of update %" PRIu64 " is that of before, to the last bit", y->step));
    else if (inputs)
        TRY(say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_LOST, NULL,
                "update %" PRIu64 " has another loss of the same batch and draws", y->step));
    else if (is_lost(judging, TRAJECTORY_DATA) || is_lost(judging, TRAJECTORY_GENERATORS))
        for (int part = TRAJECTORY_WEIGHTS; part <= TRAJECTORY_OPTIMIZER; part++)
            TRY(say(judging, (enum trajectory_part)part, TRAJECTORY_UNTOLD, NULL,
                    "update %" PRIu64 " has another batch or other draws, which hide it", y->step));
    if (after < 0 || !loss) return STATUS_OK;
    if (after)
        return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, NULL,
                   "weights, moments and count after update %" PRIu64 " are those of before",
                   y->step);
    if (same_lr && other_decay(judging, x, y) < 0) return judge_other_step(judging, x, y);
    return say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
               "the step of update %" PRIu64 " differs, which the %s may explain", y->step,
               same_lr ? "weight decay" : "LR");
}

/* Weights of another digest are no continuation, however small the difference is: the first update
 * after the restart (of all, where it is not known) whose weights, moments or count differ. */
static void note_first_digest(struct judging *judging) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    struct trajectory *const out = judging->out;
    for (uint64_t i = 0; i < b->updates; i++) {
        const struct record *const y = trace_row(b, i);
        if (out->differs != 0 && y->step >= out->differs) return;
        if (out->restart != TRAJECTORY_UNKNOWN && y->step <= out->restart) continue;
        const struct record *const x = row_of(a, y->step);
        if (x == NULL || equal_digest(x, y, DIGEST_WEIGHTS) != 0) continue;
        out->differs = y->step;
        out->column = "digest_weights";
        return;
    }
}

static enum status judge_digests(struct judging *judging) {
    const uint64_t first = judging->out->restart + 1;
    if (judging->before->run == NULL || judging->after->run == NULL) return STATUS_OK;
    note_first_digest(judging);
    if (judging->out->restart == TRAJECTORY_UNKNOWN) return STATUS_OK;
    const struct record *const x = row_of(judging->before->run, first), *const y = row_of(
                                                                            judging->after->run,
                                                                            first);
    if (x == NULL || y == NULL) return STATUS_OK;
    TRY(judge_data_digests(judging, first));
    TRY(judge_stream_places(judging, x, y));
    TRY(judge_decay(judging, x, y));
    return judge_weight_digests(judging, x, y);
}

/* ---- all ---- */

static uint64_t first_update(const struct log *log) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] > 0 && (uint64_t)log->step[i] < first) first = (uint64_t)log->step[i];
    return first;
}

/* Whether the loss at the restart is a mean over more than one update in either log. */
static int is_windowed(const struct judging *judging) {
    const struct trajectory_side *const sides[] = {judging->before, judging->after};
    const struct series *const losses[] = {&judging->loss.before, &judging->loss.after};
    for (int i = 0; i < 2; i++) {
        const struct log_column *const column = log_column_of(sides[i]->log, LOG_LOSS);
        if (column == NULL || !column->windowed) continue;
        for (size_t j = 1; j < losses[i]->count; j++)
            if (losses[i]->points[j].update > losses[i]->points[j - 1].update + 1) return 1;
    }
    return 0;
}

enum status trajectory_judge(const struct trajectory_side *before,
                             const struct trajectory_side *after, uint64_t restart,
                             struct arena *arena, struct trajectory *out) {
    struct judging judging = {.before = before, .after = after, .arena = arena, .out = out};
    struct column *const columns[] = {&judging.lr, &judging.loss, &judging.norm, &judging.tokens};
    const uint64_t begins = first_update(after->log);
    *out = (struct trajectory){.restart = restart};
    if (restart == TRAJECTORY_UNKNOWN && begins != UINT64_MAX && begins > first_update(before->log))
        out->restart = begins - 1;
    TRY(open_lr(&judging));
    TRY(open_column(&judging, LOG_LOSS, &judging.loss));
    TRY(open_column(&judging, LOG_GRAD_NORM, &judging.norm));
    TRY(open_column(&judging, LOG_TOKENS, &judging.tokens));
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        TRY(pair(&judging, columns[i]));
    TRY(open_groups(&judging));
    TRY(find_variation(&judging));
    judging.windowed = is_windowed(&judging);
    out->rows = judging.loss.count > judging.lr.count ? judging.loss.count : judging.lr.count;
    note_first(&judging, &judging.lr, is_same_number);
    for (size_t i = 0; i < judging.group_count; i++)
        note_first(&judging, &judging.groups[i].lr, is_same_number);
    note_first(&judging, &judging.tokens, is_same_count);
    note_first(&judging, &judging.loss, is_alike);
    TRY(judge_scheduler(&judging));
    TRY(judge_groups(&judging));
    TRY(judge_forward(&judging));
    return judge_digests(&judging);
}
