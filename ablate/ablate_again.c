/* SPDX-License-Identifier: Apache-2.0
 * Second runs of hybrids over an exact floor. That repeats of the arms are equal says nothing of a
 * kernel that only a hybrid chooses, and one run that does not repeat makes any share. So what the
 * answer hangs on is run once more: all factors, the first factor alone and all but it, and what
 * went farthest. Where the arms are equal, it hangs on what differs from the baseline. */
#include <string.h>

#include "ablate/ablate_private.h"

static int is_complete(const struct judging *judging) {
    for (uint32_t i = 0; i < judging->plan->run_count; i++)
        if (judging->plan->runs[i].stage == ABLATE_HYBRIDS &&
            ablate_is_asked(judging, judging->plan->runs[i].mask) &&
            judging->results[i].state == ABLATE_ABSENT)
            return 0;
    return 1;
}

/* What failed is not run again for this. */
static void pick(struct judging *judging, uint32_t mask) {
    struct ablate_verdict *out = judging->out;
    if (mask == 0 || ablate_hybrid_of(judging, mask) == NULL) return;
    for (uint32_t i = 0; i < out->again_count; i++)
        if (out->again[i] == mask) return;
    out->again[out->again_count++] = mask;
}

/* Over equal arms: that factors cancel is said of hybrids that differ from the baseline, so these
 * are run once more, in the order in which they were run. */
static void pick_apart(struct judging *judging) {
    const struct ablate_left *const base = ablate_left_of(judging, 0, 0, 1);
    for (uint32_t i = 0; i < judging->plan->run_count; i++) {
        const struct ablate_run *const run = &judging->plan->runs[i];
        if (run->stage != ABLATE_HYBRIDS || judging->out->again_count == ABLATE_AGAIN_MOST)
            continue;
        const struct ablate_left *const left = ablate_hybrid_of(judging, run->mask);
        if (left != NULL && ablate_differ(judging, left, base) != 0) pick(judging, run->mask);
    }
}

/* Returns the factor of which the headline speaks first: where only equality is known, one whose
 * repair makes the arms equal. */
static uint32_t first_factor(const struct ablate_verdict *verdict) {
    uint32_t i = 0;
    if (!(verdict->full > 0.0))
        while (i < verdict->factor_count && verdict->factors[i].left_equal != 1)
            i++;
    return verdict->factors[i < verdict->factor_count ? i : 0].factor;
}

static int depends_on(const struct judging *judging, uint32_t factor, uint32_t mask, int alone) {
    const uint32_t self = 1u << factor;
    return mask == (alone ? self : judging->full & ~self);
}

/* Takes back what a hybrid that does not repeat has said. If its command is that of test, the
 * floor of the arms does not hold either. */
static enum status withdraw(struct judging *judging, uint32_t mask, unsigned differ) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_run *run = ablate_run_of(judging, ABLATE_NO_ARM, mask, 1);
    const struct ablate_run *second = ablate_run_of(judging, ABLATE_NO_ARM, mask, 2);
    const char *const places[2] = {ablate_result_of(judging, run)->place,
                                   ablate_result_of(judging, second)->place};
    char kinds[ABLATE_KINDS_TEXT], *text;
    int rerun;
    TRY(arena_format(judging->arena, &text,
                     "%s differs from %s in %s, although the same command was run", second->id,
                     run->id, ablate_kinds_text(differ, kinds)));
    if (strcmp(places[0], places[1]) != 0)
        TRY(arena_format(judging->arena, &text, "%s, on %s and on %s", text, places[1], places[0]));
    ablate_take_shares(judging, text);
    out->doubt = text;
    for (uint32_t i = 0; i < out->factor_count; i++) {
        struct ablate_judged *of = &out->factors[i];
        of->inert = 0;
        if (depends_on(judging, of->factor, mask, 1)) {
            of->alone_equal = -1;
            of->loss_alone = ABLATE_UNKNOWN;
        }
        if (depends_on(judging, of->factor, mask, 0)) {
            of->left_equal = -1;
            of->loss_left = ABLATE_UNKNOWN;
        }
    }
    if (mask != judging->full) return STATUS_OK;
    out->loss_gap = out->open = ABLATE_UNKNOWN;
    TRY(ablate_is_rerun(judging, &rerun));
    if (!rerun) return ablate_doubt_closure(judging, "%s", text);
    out->closure = ABLATE_CLOSURE_RERUN_DIFFERS;
    return ablate_refuse(judging, "%s; it is that of test, so the floor does not hold", text);
}

enum status ablate_judge_again(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    if (out->floor != ABLATE_FLOOR_EXACT || out->kind == ABLATE_UNTESTABLE) return STATUS_OK;
    if (out->asks_cancel) {
        if (is_complete(judging)) pick_apart(judging);
    } else if (is_complete(judging)) {
        const uint32_t first = 1u << first_factor(out);
        pick(judging, judging->full);
        pick(judging, judging->full & ~first);
        pick(judging, first);
        pick(judging, judging->farthest);
    }
    for (uint32_t i = 1; i < judging->plan->mask_count; i++) {
        const uint32_t mask = judging->plan->masks[i];
        const struct ablate_left *a = ablate_hybrid_of(judging, mask);
        const struct ablate_left *b = ablate_left_of(judging, ABLATE_NO_ARM, mask, 2);
        if (a == NULL) continue;
        const unsigned differ = b == NULL ? 0 : ablate_differ(judging, a, b);
        out->once += b == NULL;
        if (differ != 0) TRY(withdraw(judging, mask, differ));
    }
    return STATUS_OK;
}
