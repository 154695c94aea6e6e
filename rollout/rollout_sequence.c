/* SPDX-License-Identifier: Apache-2.0
 * Lists that keep their room from one sequence to the next, and the alignment of both sides. */
#include "rollout/rollout_sequence.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"

/* Fields that have one element a token, or one for all. */
static const enum rollout_field by_token[] = {
    ROLLOUT_ENGINE,   ROLLOUT_TRAINER, ROLLOUT_TOKENS,  ROLLOUT_TRAINER_IDS, ROLLOUT_MASK,
    ROLLOUT_POSITION, ROLLOUT_VERSION, ROLLOUT_EXPERTS, ROLLOUT_EXPERTS_HERE};
static const char *const words[ROLLOUT_FIELDS] = {"rollout log-probs",
                                                  "trainer log-probs",
                                                  "token ids",
                                                  "the trainer's token ids",
                                                  "mask",
                                                  "positions",
                                                  "weight versions",
                                                  "",
                                                  "experts",
                                                  "the trainer's experts",
                                                  "",
                                                  "",
                                                  "",
                                                  "",
                                                  ""};

void rollout_sequence_clear(struct rollout_sequence *sequence) {
    for (int i = 0; i < ROLLOUT_FIELDS; i++)
        sequence->list[i].count = 0, sequence->list[i].given = 0;
    sequence->id[0] = '\0';
    sequence->length[0] = sequence->length[1] = sequence->count = 0;
    sequence->shapes = 0;
    sequence->padded = sequence->odd_reward = 0;
}

enum status rollout_list_add(struct rollout_list *list, struct arena *arena, double value) {
    TRY(arena_grow(arena, list->count + 1, &list->room, sizeof *list->value, "a list",
                   &list->value));
    list->value[list->count++] = value;
    return STATUS_OK;
}

/* ---- alignment ---- */

/* Leaves elements first ... first + count - 1. */
static void keep(struct rollout_list *list, size_t first, size_t count) {
    if (list->given != 1) return;
    list->count = count;
    if (count > 0) memmove(list->value, list->value + first, count * sizeof *list->value);
}

/* Mean |d| where element i of one list is compared with element i + shift of the other. */
static double apart(const double *a, const double *b, size_t count) {
    struct sum_lanes_f64 sum;
    size_t finite = 0;
    sum_lanes_open_f64(&sum);
    for (size_t i = 0; i < count; i++) {
        const double d = real_abs_f64(a[i] - b[i]);
        if (!real_finite_f64(d)) continue;
        sum_lanes_term_f64(&sum, d);
        finite++;
    }
    return finite == 0 ? 0.0 : sum_lanes_close_f64(&sum) / (double)finite;
}

/* Both sides have other numbers of log-probs. Either one ends earlier, or one begins earlier with
 * the prompt; which of them is what lies nearer. Without any difference to go by (both equal) it
 * is the first. */
static void align_sides(struct rollout_sequence *s) {
    struct rollout_list *a = &s->list[ROLLOUT_ENGINE], *b = &s->list[ROLLOUT_TRAINER];
    const size_t n = a->count < b->count ? a->count : b->count;
    const size_t skip[2] = {a->count - n, b->count - n};
    if (skip[0] + skip[1] == 0) return;
    if (n == 0) { /* one side has nothing, and perhaps no memory */
        s->shapes |= SHAPE_SHORT;
        a->count = b->count = 0;
        return;
    }
    const double front = apart(a->value, b->value, n);
    const double back = apart(a->value + skip[0], b->value + skip[1], n);
    s->shapes |= back < front ? SHAPE_FRONT : SHAPE_SHORT;
    keep(a, back < front ? skip[0] : 0, n);
    keep(b, back < front ? skip[1] : 0, n);
}

/* Both sides have ids of their own. They are compared from the first token on where that fits, else
 * one side's are behind the prompt of the other. */
static void align_ids(struct rollout_sequence *s) {
    struct rollout_list *a = &s->list[ROLLOUT_TOKENS], *b = &s->list[ROLLOUT_TRAINER_IDS];
    const size_t n = a->count < b->count ? a->count : b->count;
    if (a->given != 1 || b->given != 1) return;
    s->shapes |= SHAPE_BOTH;
    size_t equal = 0;
    while (equal < n && a->value[equal] == b->value[equal])
        equal++;
    if (equal == n || n == 0) return;
    const size_t skip[2] = {a->count - n, b->count - n};
    if (skip[0] + skip[1] > 0 &&
        memcmp(a->value + skip[0], b->value + skip[1], n * sizeof *a->value) == 0)
        return;
    const size_t prompt = a->count > s->length[0] ? a->count - s->length[0] : 0;
    s->shapes |= SHAPE_IDS;
    s->count = equal > prompt ? equal - prompt : 0;
}

static enum status fit(struct rollout_sequence *s, enum rollout_field field, size_t longest) {
    struct rollout_list *list = &s->list[field];
    if (list->given != 1 || list->count == s->count) return STATUS_OK;
    if (field == ROLLOUT_VERSION && list->count < s->count) {
        /* One for the whole sequence, or one for each turn, whose tokens nobody tells. */
        list->given = list->count == 1 ? 2 : 0;
        return STATUS_OK;
    }
    if (list->count < s->count)
        FAIL(STATUS_INPUT, "%s:%u: expected %s for each of %zu log-probs, got %zu", s->file,
             s->line, words[field], s->count, list->count);
    /* What is longer than the longer side has the prompt in front; what is not ends as it does. */
    const size_t front = list->count > longest ? list->count - longest : 0;
    const size_t ahead = (s->shapes & SHAPE_FRONT) != 0 && list->count - front > s->count
                             ? list->count - front - s->count
                             : 0;
    keep(list, front + ahead, s->count);
    return STATUS_OK;
}

enum status rollout_align(struct rollout_sequence *s) {
    for (int side = 0; side < 2; side++)
        s->length[side] = s->list[side].count;
    const size_t longest = s->length[0] > s->length[1] ? s->length[0] : s->length[1];
    s->count = SIZE_MAX;
    align_ids(s);
    const size_t equal_ids = s->count;
    if ((s->shapes & SHAPE_IDS) == 0) align_sides(s);
    s->count = s->list[0].count < s->list[1].count ? s->list[0].count : s->list[1].count;
    if (equal_ids < s->count) s->count = equal_ids;
    for (size_t i = 0; i < COUNT_OF(by_token); i++)
        TRY(fit(s, by_token[i], longest));
    return STATUS_OK;
}
