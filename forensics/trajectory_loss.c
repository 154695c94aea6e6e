/* SPDX-License-Identifier: Apache-2.0
 * What losses, norms and counts of tokens behind a restart say of data, random draws, weights and
 * optimizer: the first update has seen the first three, and the one behind it the optimizer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "forensics/trajectory_parts.h"
#include "forensics/words.h"

static enum status say_all(struct trajectory_judging *judging, const char *why) {
    for (int part = TRAJECTORY_DATA; part <= TRAJECTORY_OPTIMIZER; part++)
        TRY(trajectory_say(judging, (enum trajectory_part)part, TRAJECTORY_UNTOLD, NULL, "%s",
                           why));
    return STATUS_OK;
}

/* Whether batches are of different sizes at all, so that equal sizes say something. */
static int sizes_vary(const struct trajectory_judging *judging) {
    const struct series *const tokens = &judging->tokens.before;
    const struct log_column *const column = log_column_of(judging->before->log, LOG_TOKENS);
    if (!column->cumulative) return !trajectory_is_constant(tokens);
    for (size_t i = 2; i < tokens->count; i++)
        if (tokens->points[i].value - tokens->points[i - 1].value !=
            tokens->points[1].value - tokens->points[0].value)
            return 1;
    return 0;
}

static int sizes_counted(const struct trajectory_judging *judging) {
    return judging->tokens.count > 0 && sizes_vary(judging);
}

/* The first update whose batches are of another size. */
static const struct trajectory_pairing *other_tokens(const struct trajectory_judging *judging) {
    for (size_t i = 0; i < judging->tokens.count; i++)
        if (!trajectory_agree_counts(&judging->tokens.pairs[i])) return &judging->tokens.pairs[i];
    return NULL;
}

static enum status say_tokens(struct trajectory_judging *judging,
                              const struct trajectory_pairing *other) {
    return trajectory_say(judging, TRAJECTORY_DATA, TRAJECTORY_LOST, NULL,
                          "column %s has %s at update %" PRIu64 ", and had %s: another batch",
                          judging->tokens.name, word_number(other->after->value).text,
                          other->update, word_number(other->before->value).text);
}

/* Whether BEFORE has a row of the update in front of that one, so that rows are of single updates
 * and it may be the first behind the restart. */
static int follows_row(const struct trajectory_judging *judging, uint64_t update) {
    const struct series *const before = &judging->loss.before;
    for (size_t i = 0; i < before->count; i++)
        if (before->points[i].update + 1 == update) return 1;
    return update == 1;
}

/* Another loss in the first row behind a restart that may be some updates before it: whatever the
 * updates between did. */
static enum status judge_far(struct trajectory_judging *judging,
                             const struct trajectory_pairing *first) {
    const struct trajectory_pairing *const other = other_tokens(judging);
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64
                     " is another one, and rows stand some updates apart: the restart may be some "
                     "updates before it, and so may what differs; log every update "
                     "(logging_steps 1), or say --restart UPDATE",
                     first->update));
    TRY(say_all(judging, text));
    return other != NULL && other->update == first->update ? say_tokens(judging, other) : STATUS_OK;
}

/* Another loss in the first update: batch, draws or weights. */
static enum status judge_apart(struct trajectory_judging *judging,
                               const struct trajectory_pairing *first) {
    static const char which[] = "batch, random draws or weights are not those of before; ";
    const struct trajectory_pairing *const other = other_tokens(judging);
    const int counted = sizes_counted(judging);
    const struct word times = word_about(trajectory_gap(first) / judging->variation);
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64 " is %s, and was %s, %s times the usual change "
                     "from row to row: %s",
                     first->update, word_number(first->after->value).text,
                     word_number(first->before->value).text, times.text, which));
    TRY(trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                       "its first step is not that of before, whatever it restored"));
    TRY(trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, NULL,
                       "%stwinstep readback on the two checkpoints tells", text));
    if (other != NULL && other->update == first->update) {
        TRY(say_tokens(judging, other));
        return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                              "the batch is another one already");
    }
    TRY(trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL, "%s%s", text,
                       counted ? "the batch has as many tokens, so other masks of dropout, or "
                                 "other weights"
                               : "a column of tokens, or traces of both, would tell"));
    return trajectory_say(judging, TRAJECTORY_DATA,
                          counted ? TRAJECTORY_RESTORED : TRAJECTORY_UNTOLD, NULL, "%s%s",
                          counted ? "" : text,
                          counted ? "as many tokens in every update after the restart"
                                  : "a column of tokens, or traces of both, would tell");
}

/* Another loss in the second update alone: the first step, or what the second update saw. A batch
 * whose count of tokens is that of before is none of it where batches differ in that. */
static enum status judge_second(struct trajectory_judging *judging, uint64_t first,
                                const struct trajectory_pairing *next) {
    const int counted =
        sizes_counted(judging) && trajectory_pair_at(&judging->tokens, next->update) != NULL;
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64 " is %s, and was %s, %s times the usual change "
                     "from row to row, behind an update %" PRIu64 " that is that of before: ",
                     next->update, word_number(next->after->value).text,
                     word_number(next->before->value).text,
                     word_about(trajectory_gap(next) / judging->variation).text, first));
    if (!counted)
        TRY(trajectory_say(judging, TRAJECTORY_DATA, TRAJECTORY_UNTOLD, NULL,
                           "%sanother batch in update %" PRIu64
                           " fits, and so do other random draws or another first step",
                           text, next->update));
    TRY(trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                       "%sother random draws in update %" PRIu64
                       " fit (dropout), and so does %sanother first step",
                       text, next->update, counted ? "" : "another batch or "));
    return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                          "%sanother first step fits (moments, their count, masters or a setting), "
                          "and so do %sother random draws in update %" PRIu64
                          "; twinstep readback on two checkpoints, or traces of both, would tell",
                          text, counted ? "" : "another batch or ", next->update);
}

static enum status judge_optimizer(struct trajectory_judging *judging,
                                   const struct trajectory_pairing *begun) {
    const uint64_t first = begun->update;
    const struct trajectory_pairing *const next = trajectory_pair_at(&judging->loss, first + 1);
    const struct trajectory_pairing *const norm = trajectory_pair_at(&judging->norm, first + 1);
    const int same_lr = trajectory_same_lrs(judging, first);
    const struct trajectory_pairing *const other = other_tokens(judging);
    const int same_batch = other == NULL || other->update > first + 1;
    if (next == NULL)
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                              "update %" PRIu64
                              ", which would show what the first step did, is not in both",
                              first + 1);
    if (!same_lr || !same_batch)
        return trajectory_say(
            judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
            "its first step would show in update %" PRIu64 ", but for %s", next->update,
            same_lr ? "the batch there, which is another one" : "the LR that it was made at");
    if (!trajectory_are_numbers(next))
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                              "the loss of update %" PRIu64
                              ", which would show what the first step did, is "
                              "%s, and was %s",
                              next->update, word_number(next->after->value).text,
                              word_number(next->before->value).text);
    if (trajectory_is_alike(judging, next) && !trajectory_agrees(next->before, next->after))
        return trajectory_say(
            judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
            "the losses of update %" PRIu64
            " are %s times the usual change apart: noise of kernels, or a step that was too "
            "small to show in a loss; twinstep readback on two checkpoints tells",
            next->update, word_about(trajectory_gap(next) / judging->variation).text);
    if (trajectory_is_alike(judging, next))
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, NULL,
                              "the loss of update %" PRIu64
                              " is %s, and was %s: the first step was that of "
                              "before%s",
                              next->update, word_number(next->after->value).text,
                              word_number(next->before->value).text,
                              norm != NULL && trajectory_are_numbers(norm) &&
                                      trajectory_agrees(norm->before, norm->after)
                                  ? ", and so is its gradient norm"
                                  : "");
    if (!trajectory_agrees(begun->before, begun->after))
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                              "the loss of update %" PRIu64
                              " is another one: moments, their count or masters, "
                              "or other masks of dropout in update %" PRIu64,
                              next->update, first);
    return judge_second(judging, first, next);
}

/* A first loss that is no finite number says nothing of its update; the tokens of a batch do. */
static enum status judge_no_number(struct trajectory_judging *judging,
                                   const struct trajectory_pairing *first) {
    const struct trajectory_pairing *const other = other_tokens(judging);
    char *text;
    TRY(arena_format(judging->arena, &text,
                     "the loss of update %" PRIu64 " is %s, and was %s: one that is not finite "
                     "tells nothing of what was restored",
                     first->update, word_number(first->after->value).text,
                     word_number(first->before->value).text));
    TRY(say_all(judging, text));
    return other != NULL ? say_tokens(judging, other) : STATUS_OK;
}

enum status trajectory_judge_loss(struct trajectory_judging *judging) {
    const uint64_t restart = judging->out->restart;
    const struct trajectory_pairing *const other = other_tokens(judging);
    if (restart == TRAJECTORY_UNKNOWN)
        return say_all(judging,
                       judging->out->differs == 0
                           ? "all rows agree, and neither log says where the restart was: say "
                             "--restart UPDATE"
                           : "both logs begin at the same update, so none says where the restart "
                             "was: say --restart UPDATE");
    const struct trajectory_pairing *const first = trajectory_pair_at(&judging->loss, restart + 1);
    if (first == NULL)
        return say_all(judging, "the first update after the restart has no loss in both");
    if (judging->variation == 0.0)
        return say_all(judging, "too few rows before to know how much a loss changes from row to "
                                "row");
    if (judging->windowed)
        return say_all(judging, "a row of the loss is a mean over several updates: log every "
                                "update (logging_steps 1)");
    if (!trajectory_are_numbers(first)) return judge_no_number(judging, first);
    if (!trajectory_is_alike(judging, first))
        return follows_row(judging, first->update) ? judge_apart(judging, first)
                                                   : judge_far(judging, first);
    TRY(other != NULL ? say_tokens(judging, other)
                      : trajectory_say(judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
                                       "the loss of update %" PRIu64
                                       " is %s, and was %s: the batch is that of before",
                                       first->update, word_number(first->after->value).text,
                                       word_number(first->before->value).text));
    if (trajectory_agrees(first->before, first->after))
        TRY(trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
                           "as the data: what update %" PRIu64
                           " drew is what it drew before, if it drew anything",
                           first->update));
    else
        TRY(trajectory_say(
            judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
            "the losses of update %" PRIu64
            " are %s times the usual change apart: noise of kernels, or other masks of dropout",
            first->update, word_about(trajectory_gap(first) / judging->variation).text));
    if (trajectory_agrees(first->before, first->after))
        TRY(trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, NULL,
                           "as the data: other weights would give another loss"));
    else
        TRY(trajectory_say(
            judging, TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, NULL,
            "weights that were rounded on the way would show as little: twinstep readback on "
            "the two checkpoints tells"));
    return judge_optimizer(judging, first);
}
