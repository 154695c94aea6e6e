/* SPDX-License-Identifier: Apache-2.0
 * Whether a digest of two rows is one, and what the states of generators that another program
 * recorded (digest_rng) say of a restart. Such a digest is of the states after an update, of those
 * generators that drew since its recording began (docs/FOREIGN.md), so equal digests are equal
 * states, and unequal ones need not be unequal states of what both used: a generator that drew
 * early in BEFORE alone makes them unequal, too. Invariant: unequal digests alone are never called
 * lost. */
#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "forensics/trajectory_parts.h"
#include "forensics/words.h"

int trajectory_equal_digest(const struct record *a, const struct record *b, int column) {
    if (!record_has_digest(a->digests[column]) || !record_has_digest(b->digests[column])) return -1;
    return memcmp(a->digests[column], b->digests[column], RECORD_DIGEST_BYTES) == 0;
}

/* SHA-256 of nothing: no generator drew since the recording began. */
static int is_of_none(const uint8_t *digest) {
    static const uint8_t none[RECORD_DIGEST_BYTES] = {
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
        0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
        0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};
    return memcmp(digest, none, sizeof none) == 0;
}

static const uint8_t *state_of(const struct record *row) {
    return row->digests[DIGEST_RNG];
}

/* Rows that are held against each other: on a long log whose states stay, each of BEFORE's rows
 * would else be held against all of AFTER's. */
#define LOOKS 256

/* How many updates (up to LOOKS) from index `from` of AFTER on have the states that BEFORE's rows
 * from index `row` on have; `*out_moved`: one of those states is another than the one in front of
 * it. */
static uint64_t run_alike(const struct trace_run *before, uint64_t row,
                          const struct trace_run *after, uint64_t from, int *out_moved) {
    uint64_t alike = 0;
    *out_moved = 0;
    while (alike < LOOKS && row + alike < before->updates && from + alike < after->updates) {
        const uint8_t *const there = state_of(trace_row(before, row + alike));
        if (memcmp(there, state_of(trace_row(after, from + alike)), RECORD_DIGEST_BYTES) != 0)
            break;
        if (alike > 0 &&
            memcmp(there, state_of(trace_row(before, row + alike - 1)), RECORD_DIGEST_BYTES) != 0)
            *out_moved = 1;
        alike++;
    }
    return alike;
}

static uint64_t index_of(const struct trace_run *run, uint64_t update) {
    uint64_t index = 0;
    while (index < run->updates && trace_row(run, index)->step != update)
        index++;
    return index;
}

/* Looks for AFTER's states among those of other updates of BEFORE. One row alone may be equal by a
 * generator that rarely draws, so the rows behind it, or another loss, must say the same. */
static enum status judge_elsewhere(struct trajectory_judging *judging, const struct record *x,
                                   const struct record *y, int *out_told) {
    const struct trace_run *const before = judging->before->run, *const after = judging->after->run;
    const uint64_t from = index_of(after, y->step);
    *out_told = 1;
    for (uint64_t row = 0; row < before->updates; row++) {
        const uint64_t update = trace_row(before, row)->step;
        int moved;
        const uint64_t alike = run_alike(before, row, after, from, &moved);
        if (alike == 0) continue;
        if (!moved && x->reals[REAL_LOSS] == y->reals[REAL_LOSS]) continue;
        return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_LOST, NULL,
                              "%s: after update %" PRIu64
                              " they stand where they stood after update %" PRIu64
                              " (digest_rng)%s",
                              row == 0 ? "they began anew" : "they do not go on", y->step, update,
                              alike > 1 ? ", and so on in the updates behind it" : "");
    }
    *out_told = 0;
    return STATUS_OK;
}

/* Noise of kernels moves a loss by less: RESTART_LOSS of readback/restored.c. */
#define OTHER_LOSS 1e-3

static enum status judge_apart(struct trajectory_judging *judging, const struct record *x,
                               const struct record *y, int same_batch, int same_weights) {
    const double was = x->reals[REAL_LOSS], is = y->reals[REAL_LOSS];
    const char *why;
    if (is_of_none(state_of(y)))
        why = "none drew from the beginning of AFTER's recording to the end of that update, so "
              "where they stand was not recorded";
    else if (is_of_none(state_of(x)))
        why = "none drew in BEFORE up to there, and in AFTER one did, or was set behind the "
              "beginning of the recording";
    else if (same_batch == 0)
        why = "the batch is another one already, which may have drawn otherwise";
    else if (was == is)
        why = "the loss is that of before to the last bit, so this update used none that stands "
              "elsewhere; one that drew in one recording alone would look like it";
    else if (same_batch > 0 && same_weights > 0 &&
             real_abs_f64(was - is) > OTHER_LOSS * real_abs_f64(was))
        return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_LOST, NULL,
                              "after update %" PRIu64
                              " they stand elsewhere than they stood (digest_rng), and the loss is "
                              "%s, and was %s, of the same batch and weights",
                              y->step, word_number(is).text, word_number(was).text);
    else
        why = "they were not restored, or one drew in one recording alone";
    return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                          "after update %" PRIu64
                          " the states differ from those of before (digest_rng): %s",
                          y->step, why);
}

enum status trajectory_judge_states(struct trajectory_judging *judging, const struct record *x,
                                    const struct record *y, int same_weights) {
    const int equal = trajectory_equal_digest(x, y, DIGEST_RNG);
    int told = 0;
    if (equal < 0)
        return judging->out->items[TRAJECTORY_GENERATORS].state != TRAJECTORY_RESTORED
                   ? STATUS_OK
                   : trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, NULL,
                                    "their states were not recorded in both (digest_rng); the "
                                    "loss of update %" PRIu64 " is that of before",
                                    y->step);
    if (equal && is_of_none(state_of(y)))
        return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
                              "none drew in either recording up to update %" PRIu64, y->step);
    if (equal)
        return trajectory_say(judging, TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, NULL,
                              "those that drew stand after update %" PRIu64
                              " where they stood (digest_rng)",
                              y->step);
    if (!is_of_none(state_of(y))) TRY(judge_elsewhere(judging, x, y, &told));
    if (told) return STATUS_OK;
    return judge_apart(judging, x, y, trajectory_equal_digest(x, y, DIGEST_BATCH), same_weights);
}
