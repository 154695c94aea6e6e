/* SPDX-License-Identifier: Apache-2.0
 * Asks part by part whether what was logged after a restart goes on from before. */
#include "forensics/trajectory.h"

#include <stdarg.h>
#include <stdio.h>

#include "forensics/trajectory_parts.h"

const char *const trajectory_part_names[TRAJECTORY_PARTS] = {"scheduler", "data", "generators",
                                                             "weights", "optimizer"};
const char *const trajectory_state_names[3] = {"restored", "lost", "untold"};

enum status trajectory_say(struct trajectory_judging *judging, enum trajectory_part part,
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

static void note_first(struct trajectory_judging *judging, const struct trajectory_column *column,
                       int (*is_same)(const struct trajectory_judging *judging,
                                      const struct trajectory_pairing *pair)) {
    struct trajectory *const out = judging->out;
    for (size_t i = 0; i < column->count; i++) {
        const struct trajectory_pairing *const at = &column->pairs[i];
        if (is_same(judging, at) || (out->differs != 0 && at->update >= out->differs)) continue;
        out->differs = at->update;
        out->column = column->name;
    }
}

static int is_same_number(const struct trajectory_judging *judging,
                          const struct trajectory_pairing *pair) {
    (void)judging;
    return trajectory_agrees(pair->before, pair->after);
}

static int is_same_count(const struct trajectory_judging *judging,
                         const struct trajectory_pairing *pair) {
    (void)judging;
    return trajectory_agree_counts(pair);
}

static uint64_t first_update(const struct log *log) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] > 0 && (uint64_t)log->step[i] < first) first = (uint64_t)log->step[i];
    return first;
}

enum status trajectory_judge(const struct trajectory_side *before,
                             const struct trajectory_side *after, uint64_t restart,
                             struct arena *arena, struct trajectory *out) {
    struct trajectory_judging judging = {
        .before = before, .after = after, .arena = arena, .out = out};
    const uint64_t begins = first_update(after->log);
    *out = (struct trajectory){.restart = restart};
    if (restart == TRAJECTORY_UNKNOWN && begins != UINT64_MAX && begins > first_update(before->log))
        out->restart = begins - 1;
    TRY(trajectory_open(&judging));
    out->rows = judging.loss.count > judging.lr.count ? judging.loss.count : judging.lr.count;
    note_first(&judging, &judging.lr, is_same_number);
    for (size_t i = 0; i < judging.group_count; i++)
        note_first(&judging, &judging.groups[i].lr, is_same_number);
    note_first(&judging, &judging.tokens, is_same_count);
    note_first(&judging, &judging.loss, trajectory_is_alike);
    TRY(trajectory_judge_lr(&judging));
    TRY(trajectory_judge_loss(&judging));
    TRY(trajectory_judge_digests(&judging));
    if (judging.unnumbered) {
        out->differs = 0;
        out->column = NULL;
    }
    return STATUS_OK;
}
