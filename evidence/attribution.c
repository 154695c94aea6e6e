/* SPDX-License-Identifier: Apache-2.0
 * The sentences about causes as a table of conditions. A comparison with NaN, which stands for a
 * figure that was not trained, is false, so that no word rests on what nobody measured. */
#include "evidence/attribution.h"

#include <math.h>
#include <stddef.h>

const char *const attribution_words[WORD_COUNT] = {
    [WORD_NONE] = "none",
    [WORD_EQUAL] = "equal",
    [WORD_CANCEL] = "cancel-exactly",
    [WORD_ROUNDING] = "no-larger-than-rounding",
    [WORD_NEARLY] = "nearly-cancel",
    [WORD_OPPOSE] = "oppose",
    [WORD_TOGETHER] = "only-together",
    [WORD_EACH] = "each-enough",
    [WORD_CAUSE] = "cause",
    [WORD_SEVERAL] = "several",
    [WORD_OPEN] = "first-place-open",
};

/* Half of the smallest number would round to 0, which any response reaches. */
int rounding_explains(double response, double gap) {
    return response / ROUNDING_EXPLAINS >= gap;
}

#define NEARLY_FACTOR 10.0  /* of D: a hybrid that went so far makes percentages meaningless */
#define OPPOSE_LEFT 1.1     /* a repair that leaves more than this widened the gap */
#define OPPOSE_SHARE (-0.1) /* a share below this leads away from the test arm */
#define ALONE_LITTLE 0.1
#define ALONE_ENOUGH 0.5
#define ALONE_MOST 0.9
#define LEFT_HALF 0.5     /* a repair that leaves less closed most of the gap */
#define LEFT_MOST 0.9     /* a repair that leaves at least this closed next to nothing */
#define CAUSE_SHARE 0.9   /* of one cause, which then leaves */
#define CAUSE_LEFT 0.35   /* at most so much when it is repaired, */
#define CAUSE_OTHER 0.1   /* while every other share is below this */
#define PLACE_MARGIN 0.05 /* no slack: only made-up figures differ by exactly so much */

int attribution_is_enough(const struct attributed *alone, const struct attributed *left) {
    return alone->low >= ALONE_ENOUGH && left->low >= LEFT_MOST;
}

int attribution_opens_all(const struct attributed *alone) {
    return alone->low >= ALONE_MOST;
}

int attribution_is_needed(const struct attributed *left) {
    return left->high < LEFT_HALF;
}

int attribution_takes_part(const struct attributed *share, const struct attributed *left) {
    return left->high < LEFT_MOST || !(fabs(share->value) < CAUSE_OTHER);
}

static int nearly_cancel(const struct attribution *of) {
    return of->largest_low > NEARLY_FACTOR * of->distance;
}

static int oppose(const struct attribution *of) {
    for (uint32_t i = 0; i < of->causes; i++)
        if (of->left[i].low > OPPOSE_LEFT || of->share[i].high < OPPOSE_SHARE) return 1;
    return 0;
}

static int only_together(const struct attribution *of) {
    int closes = 0;
    for (uint32_t i = 0; i < of->causes; i++) {
        if (!(of->alone[i].high < ALONE_LITTLE)) return 0;
        closes |= of->left[i].high < LEFT_MOST;
    }
    return closes;
}

static int each_enough(const struct attribution *of) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->causes; i++)
        count += (uint32_t)attribution_is_enough(&of->alone[i], &of->left[i]);
    return count >= 2;
}

static int one_cause(const struct attribution *of) {
    if (!(of->share[0].low >= CAUSE_SHARE && of->left[0].high <= CAUSE_LEFT)) return 0;
    for (uint32_t i = 1; i < of->causes; i++)
        if (!(of->share[i].high < CAUSE_OTHER)) return 0;
    return 1;
}

/* The words that come after this one put causes in an order, which needs every share. */
static int share_is_missing(const struct attribution *of) {
    for (uint32_t i = 0; i < of->causes; i++)
        if (isnan(of->share[i].value)) return 1;
    return 0;
}

/* The first place is open where the first share does not stand above all others for certain, or
 * another repair leaves less. The negation is true of NaN, so shares have to be known here. */
static int first_is_open(const struct attribution *of) {
    for (uint32_t i = 1; i < of->causes; i++)
        if (!(of->share[i].high < of->share[0].low - SHARE_TIE) ||
            of->left[i].value < of->left[0].value - PLACE_MARGIN)
            return 1;
    return 0;
}

enum attribution_word attribution_word(const struct attribution *of) {
    static const struct {
        enum attribution_word word;
        int (*holds)(const struct attribution *of);
    } rules[] = {
        {WORD_NEARLY, nearly_cancel}, {WORD_OPPOSE, oppose},   {WORD_TOGETHER, only_together},
        {WORD_EACH, each_enough},     {WORD_CAUSE, one_cause}, {WORD_NONE, share_is_missing},
        {WORD_OPEN, first_is_open},
    };
    if (of->causes == 0 || !(of->distance >= 0.0 && isfinite(of->distance))) return WORD_NONE;
    if (of->distance == 0.0) return of->moved ? WORD_CANCEL : WORD_EQUAL;
    if (rounding_explains(of->response, of->distance)) return WORD_ROUNDING;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].holds(of)) return rules[i].word;
    return WORD_SEVERAL;
}
