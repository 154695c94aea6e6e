/* SPDX-License-Identifier: Apache-2.0
 * Factors that only make sense together, over an exact floor: two or three that cancel beside a
 * cause, and two of which neither does anything without the other. Shares deal out what such
 * factors do one by one, so that a pair that cancels has large ones, and the headline would call
 * both causes. What cancels exactly is found by equality of hybrids alone, so it holds of what has
 * no distance as well. What nearly cancels, as twice the micro-batch with half of the accumulation
 * does but for rounding, is found by the distances of weights: of a loss, which is one number, two
 * changes of it can be of one size and opposite by coincidence, and of thousands of weights not. */
#include "ablate/ablate_private.h"

/* Whether two hybrids are equal; -1: one of them was not run. */
static int is_equal(const struct judging *judging, uint32_t a, uint32_t b) {
    const struct ablate_left *const x = ablate_hybrid_of(judging, a);
    const struct ablate_left *const y = ablate_hybrid_of(judging, b);
    if (x == NULL || y == NULL) return -1;
    return ablate_differ(judging, x, y) == 0;
}

/* How far the hybrid of these factors is from the baseline, or (`takes_out`) that of all but these
 * from all factors; NaN: it is not known. */
static double moves_of(const struct judging *judging, uint32_t mask, int takes_out) {
    const uint32_t place = ablate_place_of(judging, takes_out ? judging->full & ~mask : mask);
    if (!(judging->out->full > 0.0) || place == judging->plan->mask_count) return ABLATE_UNKNOWN;
    return takes_out ? judging->rest[place] : judging->size[place];
}

static void add(struct judging *judging, uint32_t mask, enum ablate_link how, uint32_t pairs,
                int nearly) {
    struct ablate_verdict *const out = judging->out;
    if (out->linked_count == ABLATE_LINKED_MOST) return;
    out->linked[out->linked_count++] =
        (struct ablate_linked){.mask = mask,
                               .how = how,
                               .pairs = pairs,
                               .nearly = nearly,
                               .moves_base = moves_of(judging, mask, 0) / out->full,
                               .moves_test = moves_of(judging, mask, 1) / out->full};
}

static int holds_linked(const struct judging *judging, uint32_t mask) {
    for (uint32_t i = 0; i < judging->out->linked_count; i++)
        if ((judging->out->linked[i].mask & ~mask) == 0) return 1;
    return 0;
}

/* Whether some of these factors lead away from `from`, whichever some: put in where `takes_out` is
 * 0, else taken out of it. All of them lead back. */
static int cancels(const struct judging *judging, uint32_t from, uint32_t mask, int takes_out) {
    for (uint32_t some = (mask - 1) & mask; some != 0; some = (some - 1) & mask)
        if (is_equal(judging, from, takes_out ? from & ~some : from | some) != 0) return 0;
    return is_equal(judging, from, takes_out ? from & ~mask : from | mask) == 1;
}

/* The same by distances: 1, 0, or -1 where a hybrid was not run. Some of them count that go a part
 * of ABLATE_CANCELS of the way to all factors: what goes less skews no share by more. */
static int nearly_cancels(const struct judging *judging, uint32_t mask, int takes_out) {
    const double together = moves_of(judging, mask, takes_out);
    if (judging->out->by_loss || isnan(together)) return -1;
    for (uint32_t some = (mask - 1) & mask; some != 0; some = (some - 1) & mask) {
        const double moves = moves_of(judging, some, takes_out);
        if (isnan(moves)) return -1;
        if (moves < ABLATE_CANCELS * judging->out->full || together > ABLATE_CANCELS * moves)
            return 0;
    }
    return 1;
}

static enum ablate_link link_of(int base, int test) {
    return base && test ? ABLATE_CANCEL : base ? ABLATE_CANCEL_IN_BASELINE : ABLATE_CANCEL_IN_TEST;
}

/* The baseline with all of these is what it is without, or test without them what it is with them,
 * though some of them alone are not. Where one of the two holds exactly and the other nearly, they
 * nearly cancel. */
static void look_for_cancelling(struct judging *judging, uint32_t mask) {
    const uint32_t rest = judging->full & ~mask;
    if (rest == 0 || holds_linked(judging, mask)) return;
    const int base = cancels(judging, 0, mask, 0);
    const int test = cancels(judging, judging->full, mask, 1);
    const int near_base = nearly_cancels(judging, mask, 0);
    const int near_test = nearly_cancels(judging, mask, 1);
    if (near_base != 0 && near_test != 0 && near_base + near_test > -2 && !(base && test))
        add(judging, mask, link_of(near_base == 1, near_test == 1), 0, 1);
    else if (base || test)
        add(judging, mask, link_of(base, test), 0, 0);
}

/* Whether a factor changes every hybrid that has `other`, and none that has not; *pairs gets how
 * many of the second kind there are. */
static int needs(const struct judging *judging, uint32_t self, uint32_t other, uint32_t *pairs) {
    uint32_t moved = 0, still = 0;
    for (uint32_t i = 0; i < judging->plan->mask_count; i++) {
        const uint32_t mask = judging->plan->masks[i];
        if ((mask & self) != 0) continue;
        const int equal = is_equal(judging, mask, mask | self);
        if (equal == ((mask & other) != 0)) return 0;
        if (equal < 0) continue;
        if (equal)
            still++;
        else
            moved++;
    }
    *pairs += still;
    return moved > 0 && still > 0;
}

enum status ablate_judge_linked(struct judging *judging) {
    const struct ablate_verdict *const out = judging->out;
    const uint32_t factors = judging->plan->file->factor_count;
    if (out->floor != ABLATE_FLOOR_EXACT || out->kind != ABLATE_OUTSIDE || out->doubt[0] != '\0' ||
        factors < 3)
        return STATUS_OK;
    for (uint32_t i = 0; i < factors; i++)
        for (uint32_t j = i + 1; j < factors; j++) {
            uint32_t pairs = 0;
            if (needs(judging, 1u << i, 1u << j, &pairs) &&
                needs(judging, 1u << j, 1u << i, &pairs))
                add(judging, 1u << i | 1u << j, ABLATE_TOGETHER, pairs, 0);
            look_for_cancelling(judging, 1u << i | 1u << j);
        }
    for (uint32_t i = 0; i < factors; i++)
        for (uint32_t j = i + 1; j < factors; j++)
            for (uint32_t k = j + 1; k < factors; k++)
                look_for_cancelling(judging, 1u << i | 1u << j | 1u << k);
    return ablate_join(judging);
}
