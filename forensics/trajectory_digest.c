/* SPDX-License-Identifier: Apache-2.0
 * What the digests that two traces of runs recorded say of data, random streams, weights, decay and
 * the step of the optimizer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "determinism/comparable.h"
#include "forensics/trajectory_parts.h"
#include "forensics/words.h"

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

static enum status judge_data_digests(struct trajectory_judging *judging, uint64_t first) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    uint64_t seen = 0;
    for (uint64_t i = 0; i < b->updates; i++) {
        const struct record *const y = trace_row(b, i), *const x = row_of(a, y->step);
        if (x == NULL || y->step < first) continue;
        const int equal = trajectory_equal_digest(x, y, DIGEST_BATCH);
        if (equal < 0) return STATUS_OK;
        if (!equal)
            return trajectory_say(judging, TRAJECTORY_DATA, TRAJECTORY_LOST, NULL,
                                  "the batch of update %" PRIu64 " is another one%s", y->step,
                                  seen > 0 ? ", those between the restart and it are not" : "");
        seen++;
    }
    if (seen == 1)
        return trajectory_say(judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
                              "the batch of one update after the restart is that of before");
    return trajectory_say(
        judging, TRAJECTORY_DATA, TRAJECTORY_RESTORED, NULL,
        "the batches of %" PRIu64 " updates after the restart are those of before", seen);
}

/* Where streams are recorded their places before the update tell, and else the loss of a batch that
 * is the same. */
static enum status judge_stream_places(struct trajectory_judging *judging, const struct record *x,
                                       const struct record *y) {
    const struct trace_run_plan *const a = &judging->before->run->plan, *const b = &judging->after
                                                                                        ->run->plan;
    if (a->shape.streams != b->shape.streams) return STATUS_OK;
    uint32_t seen = 0;
    for (uint32_t s = 0; s < b->shape.streams; s++) {
        if (strcmp(b->streams[s], "data") == 0) continue;
        if (memcmp(&x->places[s], &y->places[s], sizeof x->places[s]) != 0)
            return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_LOST, NULL,
                                  "stream %s stands elsewhere before update %" PRIu64,
                                  b->streams[s], y->step);
        seen++;
    }
    return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
                          seen > 0 ? "its streams stand before update %" PRIu64 " where they stood"
                                   : "nothing was drawn for update %" PRIu64,
                          y->step);
}

static int is_lost(const struct trajectory_judging *judging, enum trajectory_part part) {
    return judging->out->items[part].state == TRAJECTORY_LOST;
}

/* The weight decay is the scheduler's where it has a schedule (Megatron-LM). Returns the group
 * whose decay in `y` is another one than in `x`, or -1. */
static int other_decay(const struct trajectory_judging *judging, const struct record *x,
                       const struct record *y) {
    const uint32_t a = judging->before->run->plan.shape.groups,
                   b = judging->after->run->plan.shape.groups;
    for (uint32_t g = 0; g < a && g < b; g++) {
        const double was = x->groups[g][GROUP_WD_APPLIED], is = y->groups[g][GROUP_WD_APPLIED];
        if (was == was && is == is && was != is) return (int)g;
    }
    return -1;
}

static enum status judge_decay(struct trajectory_judging *judging, const struct record *x,
                               const struct record *y) {
    const int group = other_decay(judging, x, y);
    if (group < 0 || is_lost(judging, TRAJECTORY_SCHEDULER)) return STATUS_OK;
    const double was = x->groups[group][GROUP_WD_APPLIED], is = y->groups[group][GROUP_WD_APPLIED];
    const uint64_t first = y->step;
    const struct record *const then = row_of(judging->before->run, first + 1),
                               *const now = row_of(judging->after->run, first + 1);
    const int once = then != NULL && now != NULL && other_decay(judging, then, now) < 0;
    /* A decay that somebody set anew is no schedule's. */
    if (!once && judging->out->settings != NULL &&
        strstr(judging->out->settings, "weight_decay") != NULL)
        return STATUS_OK;
    char later[64] = "";
    if (once) snprintf(later, sizeof later, "; update %" PRIu64 " as before", first + 1);
    return trajectory_say(judging, TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                          once ? "stale_wd_on_resume" : NULL,
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

static struct steps compare_steps(const struct trajectory_judging *judging, const struct record *x,
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
static enum status judge_other_step(struct trajectory_judging *judging, const struct record *x,
                                    const struct record *y) {
    const struct steps steps = compare_steps(judging, x, y);
    if (steps.other == 0)
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                              "another step of update %" PRIu64
                              " from the same loss at the same LR: "
                              "moments, their count or masters%s",
                              y->step,
                              judging->after->run->plan.shape.tensors > 0
                                  ? ""
                                  : ", which traces with record.tensors would tell apart further");
    if (steps.alike == 0)
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                              "another step of update %" PRIu64
                              " from the same loss at the same LR, of every "
                              "tensor that it moved (%" PRIu32 "): moments, their count or masters",
                              y->step, steps.other);
    if (steps.plain == 0)
        return trajectory_say(
            judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
            "another step of update %" PRIu64 " from the same loss at the same LR: it moved "
            "%" PRIu32 " tensors otherwise, and %" PRIu32 " that it moved have the digest "
            "of before; rounding to the weights' dtype can hide another step, so this does "
            "not tell moments, their count and masters apart",
            y->step, steps.other, steps.alike);
    return trajectory_say(
        judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
        "another step of update %" PRIu64 " from the same loss at the same LR: it moved "
        "%" PRIu32 " tensors otherwise and %" PRIu32 " as before, so the count is right, and "
        "moments are not%s",
        y->step, steps.other, steps.alike,
        steps.in_front && steps.alike > 1
            ? ", behind the latter in each parameter group, as where each rank reads the "
              "shard of its own index although another number of ranks wrote them"
            : "");
}

/* Whether some group applied an LR other than 0, or none says which: a recording's digest_weights
 * is of the weights alone, which an LR of 0 leaves as they are whatever the moments hold. */
static int could_move(const struct trace_run *run, const struct record *row) {
    for (uint32_t g = 0; g < run->plan.shape.groups; g++)
        if (row->groups[g][GROUP_LR_APPLIED] != 0.0) return 1;
    return run->plan.shape.groups == 0;
}

/* The first update from `first` on whose step shows in the weights, where those of all updates up
 * to it are those of before; NULL: there is none. */
static const struct record *alike_step(const struct trajectory_judging *judging, uint64_t first) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    for (uint64_t update = first;; update++) {
        const struct record *const x = row_of(a, update), *const y = row_of(b, update);
        if (x == NULL || y == NULL || trajectory_equal_digest(x, y, DIGEST_WEIGHTS) != 1)
            return NULL;
        if (could_move(b, y)) return y;
    }
}

static enum status judge_alike_step(struct trajectory_judging *judging, uint64_t first) {
    const struct record *step;
    if (judging->after->run->plan.foreign == NULL)
        return trajectory_say(
            judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, NULL,
            "weights, moments and count after update %" PRIu64 " are those of before", first);
    step = alike_step(judging, first);
    if (step == NULL)
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                              "the LR of update %" PRIu64
                              " was 0, so its weights tell nothing, and no later update is in both "
                              "with the weights of before",
                              first);
    return trajectory_say(
        judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, NULL,
        "the weights after update %" PRIu64 " are those of before: so was the step", step->step);
}

static enum status judge_weight_digests(struct trajectory_judging *judging, const struct record *x,
                                        const struct record *y) {
    const struct trajectory_item *const items = judging->out->items;
    const int inputs = items[TRAJECTORY_DATA].state == TRAJECTORY_RESTORED &&
                       items[TRAJECTORY_GENERATORS].state == TRAJECTORY_RESTORED;
    const int loss = x->reals[REAL_LOSS] == y->reals[REAL_LOSS];
    const struct trajectory_pairing *const lr = trajectory_pair_at(&judging->lr, y->step);
    const int same_lr = lr != NULL && trajectory_same_lrs(judging, y->step);
    const int after = trajectory_equal_digest(x, y, DIGEST_WEIGHTS);
    if (loss)
        TRY(trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, NULL,
                           "the loss of update %" PRIu64 " is that of before, to the last bit",
                           y->step));
    else if (inputs)
        TRY(trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_LOST, NULL,
                           "update %" PRIu64 " has another loss of the same batch and draws",
                           y->step));
    else if (is_lost(judging, TRAJECTORY_DATA) || is_lost(judging, TRAJECTORY_GENERATORS))
        for (int part = TRAJECTORY_WEIGHTS; part <= TRAJECTORY_OPTIMIZER; part++)
            TRY(trajectory_say(judging, (enum trajectory_part)part, TRAJECTORY_UNTOLD, NULL,
                               "update %" PRIu64 " has another batch or other draws, which hide it",
                               y->step));
    if (after < 0 || !loss) return STATUS_OK;
    if (after) return judge_alike_step(judging, y->step);
    if (same_lr && judging->out->settings != NULL)
        return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                              "the step of update %" PRIu64
                              " differs, which the settings that were changed may explain",
                              y->step);
    if (same_lr && other_decay(judging, x, y) < 0) return judge_other_step(judging, x, y);
    return trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, NULL,
                          "the step of update %" PRIu64 " differs, which the %s may explain",
                          y->step, same_lr ? "weight decay" : "LR");
}

static int is_hex_of(const char *text, const uint8_t *digest) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < RECORD_DIGEST_BYTES; i++)
        if (text[2 * i] != digits[digest[i] >> 4] || text[2 * i + 1] != digits[digest[i] & 15])
            return 0;
    return 1;
}

/* The weights that AFTER began with against those that BEFORE had at the restart, which no batch
 * and no draw can hide: 1: the same, 0: not, with the first tensor that differs, -1: not recorded.
 * Weights that are not trained have no part in it. */
static int same_beginning(const struct trajectory_judging *judging, uint64_t first,
                          uint32_t *out_tensor) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    const struct record *const then = first > 1 ? row_of(a, first - 1) : NULL;
    const struct trace_foreign *const of = b->plan.foreign;
    char unlike[COMPARABLE_WHY];
    if (then == NULL || of == NULL || of->initial == NULL || a->plan.foreign == NULL ||
        b->updates == 0 || trace_row(b, 0)->step != first || runs_unlike(a, b, unlike) ||
        strcmp(of->digest, a->plan.foreign->digest) != 0)
        return -1;
    for (uint32_t t = 0; t < b->plan.shape.tensors; t++) {
        const uint8_t *const digest = then->tensor_digests[t][TENSOR_DIGEST_PARAMETER];
        if (of->initial[t][0] == '\0' || !record_has_digest(digest)) return -1;
        if (is_hex_of(of->initial[t], digest)) continue;
        *out_tensor = t;
        return 0;
    }
    return 1;
}

static enum status judge_beginning(struct trajectory_judging *judging, uint64_t first) {
    uint32_t tensor = 0;
    const int same = same_beginning(judging, first, &tensor);
    if (same < 0) return STATUS_OK;
    if (same == 0)
        return trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_LOST, NULL,
                              "those before update %" PRIu64 " are not those after update %" PRIu64
                              " of before, by their "
                              "digests, first %.200s",
                              first, first - 1, judging->after->run->plan.tensors[tensor]);
    return trajectory_say(judging, TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, NULL,
                          "those before update %" PRIu64 " are those after update %" PRIu64
                          " of before, by their digests",
                          first, first - 1);
}

/* The optimizer's count before a row's update; -1: not known. */
static int64_t count_before(const struct record *row) {
    const int64_t count = row->integers[INTEGER_OPTIMIZER_T];
    return count < 0 ? -1 : count - (row->integers[INTEGER_SKIPPED] == 1 ? 0 : 1);
}

/* Whether the LR of the first update after the restart is another one, in some group, and those
 * behind it are those of before in all: the scheduler went on, and what it had not set yet is the
 * optimizer's own. */
static int is_first_lr_alone(const struct trajectory_judging *judging, uint64_t first) {
    if (judging->lr.count < 2 || trajectory_same_lrs(judging, first)) return 0;
    for (size_t i = 0; i < judging->lr.count; i++) {
        const uint64_t update = judging->lr.pairs[i].update;
        if (update != first && !trajectory_same_lrs(judging, update)) return 0;
    }
    return 1;
}

/* An optimizer that counts otherwise than before was not restored, whatever LR it was given. */
static enum status judge_count(struct trajectory_judging *judging, const struct record *x,
                               const struct record *y) {
    const int64_t was = count_before(x), is = count_before(y);
    const int unknown =
        x->integers[INTEGER_SKIPPED] < 0 || y->integers[INTEGER_SKIPPED] < 0; /* may explain 1 */
    if (was < 0 || is < 0 || was == is || (unknown && (was - is == 1 || is - was == 1)))
        return STATUS_OK;
    TRY(trajectory_say(judging, TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, NULL,
                       "its count (optimizer_t) is %" PRId64 " after update %" PRIu64
                       ", and was %" PRId64 "%s",
                       y->integers[INTEGER_OPTIMIZER_T], y->step, x->integers[INTEGER_OPTIMIZER_T],
                       is == 0 ? ": it began anew" : ""));
    if (is != 0 || !is_first_lr_alone(judging, y->step)) return STATUS_OK;
    return trajectory_say(
        judging, TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED, NULL,
        "the LRs behind update %" PRIu64 " are those of before; that of update %" PRIu64
        " is not, as of an optimizer that was not restored and has its own until the scheduler "
        "sets the next",
        y->step, y->step);
}

/* Weights of another digest are no continuation, however small the difference is: the first update
 * after the restart (of all, where it is not known) whose weights, moments or count differ. */
static void note_first_digest(struct trajectory_judging *judging) {
    const struct trace_run *const a = judging->before->run, *const b = judging->after->run;
    struct trajectory *const out = judging->out;
    for (uint64_t i = 0; i < b->updates; i++) {
        const struct record *const y = trace_row(b, i);
        if (out->differs != 0 && y->step >= out->differs) return;
        if (out->restart != TRAJECTORY_UNKNOWN && y->step <= out->restart) continue;
        const struct record *const x = row_of(a, y->step);
        if (x == NULL || trajectory_equal_digest(x, y, DIGEST_WEIGHTS) != 0) continue;
        out->differs = y->step;
        out->column = "digest_weights";
        return;
    }
}

/* A row may be used until two others of its run were asked for (trace_row), and batches ask for
 * all: so each judgement gets the first update's rows anew. */
static enum status judge_first(struct trajectory_judging *judging, uint64_t first,
                               enum status (*judge)(struct trajectory_judging *,
                                                    const struct record *, const struct record *)) {
    const struct record *const x = row_of(judging->before->run, first);
    const struct record *const y = row_of(judging->after->run, first);
    return judge(judging, x, y);
}

/* Rows of foreign runs are all in memory, so that those of an update may be kept. */
static enum status judge_draws(struct trajectory_judging *judging, const struct record *x,
                               const struct record *y) {
    const int of_others[] = {judging->before->run->plan.foreign != NULL,
                             judging->after->run->plan.foreign != NULL};
    uint32_t tensor;
    if (of_others[0] != of_others[1]) return STATUS_OK;
    if (!of_others[0]) return judge_stream_places(judging, x, y);
    return trajectory_judge_states(judging, x, y, same_beginning(judging, y->step, &tensor));
}

enum status trajectory_judge_digests(struct trajectory_judging *judging) {
    const uint64_t first = judging->out->restart + 1;
    if (judging->before->run == NULL || judging->after->run == NULL) return STATUS_OK;
    note_first_digest(judging);
    if (judging->out->restart == TRAJECTORY_UNKNOWN) return STATUS_OK;
    if (row_of(judging->before->run, first) == NULL || row_of(judging->after->run, first) == NULL)
        return STATUS_OK;
    TRY(judge_data_digests(judging, first));
    TRY(judge_first(judging, first, judge_draws));
    TRY(judge_first(judging, first, trajectory_note_settings));
    TRY(judge_first(judging, first, judge_decay));
    TRY(judge_first(judging, first, judge_weight_digests));
    TRY(judge_beginning(judging, first));
    return judge_first(judging, first, judge_count);
}
