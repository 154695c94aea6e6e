/* SPDX-License-Identifier: Apache-2.0
 * The sentences about causes as a table of conditions. A comparison with NaN, which stands for a
 * figure that was not trained, is false, so that no word rests on what nobody measured. */
#include "evidence/attribution.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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
#define HALF_OF_GAP 0.5   /* a repair that leaves less closed most of the gap */
#define LEFT_MOST 0.9     /* a repair that leaves at least this closed next to nothing */
#define CAUSE_SHARE 0.9   /* of one cause, which then leaves */
#define CAUSE_LEFT 0.35   /* at most so much when it is repaired, */
#define CAUSE_OTHER 0.1   /* while every other share is below this */
#define PLACE_MARGIN 0.05 /* no slack: only made-up figures differ by exactly so much */

/* It opens half of the gap alone or more, and its repair closes next to nothing. */
static int is_enough(const struct attributed *alone, const struct attributed *left) {
    return alone->low >= ALONE_ENOUGH && left->low >= LEFT_MOST;
}

static int opens_all(const struct attributed *gap) {
    return gap->low >= ALONE_MOST;
}

int attribution_is_needed(const struct attributed *left) {
    return left->high < HALF_OF_GAP;
}

/* Its repair closes some of the gap, or it makes some of the way. */
static int takes_part(const struct attributed *share, const struct attributed *left) {
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
        count += (uint32_t)is_enough(&of->alone[i], &of->left[i]);
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

static uint32_t count_roles(const struct attribution_joint *of, uint32_t causes,
                            enum joint_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < causes; i++)
        count += of->role[i] == role;
    return count;
}

/* Where two or more open next to all of the gap, those that open half of it are no equals. */
static void choose_enough(const struct attribution *of, struct attribution_joint *out) {
    int all[CAUSE_COUNT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->causes; i++) {
        const int enough = is_enough(&of->alone[i], &of->left[i]);
        out->role[i] = enough ? JOINT_ROLE_NAMED : JOINT_ROLE_NONE;
        all[i] = enough && opens_all(&of->alone[i]);
        count += (uint32_t)all[i];
    }
    out->kind = count < 2 ? JOINT_HALF : JOINT_ALL;
    for (uint32_t i = 0; i < of->causes && count >= 2; i++)
        if (!all[i]) out->role[i] = JOINT_ROLE_NONE;
}

/* Where nothing is known of single causes, all that take part are named; where that is one of them
 * at most, all: nothing is together with itself. */
static void name_all(const struct attribution *of, struct attribution_joint *out) {
    out->kind = JOINT_OPEN;
    for (uint32_t i = 0; i < of->causes; i++)
        out->role[i] = takes_part(&of->share[i], &of->left[i]) ? JOINT_ROLE_NAMED : JOINT_ROLE_NONE;
    const int few = count_roles(out, of->causes, JOINT_ROLE_NAMED) < 2;
    for (uint32_t i = 0; i < of->causes && few; i++)
        out->role[i] = JOINT_ROLE_NAMED;
}

/* Two or more causes that are needed open the gap together where they open it without the others.
 * Where they do not, it may take any one of several others, each of which takes part. */
static void choose_together(const struct attribution *of, struct attribution_joint *out) {
    const struct attributed *core = NULL;
    for (uint32_t i = 0; i < of->causes; i++) {
        if (attribution_is_needed(&of->left[i])) {
            out->role[i] = JOINT_ROLE_NAMED;
            core = &of->joined[i];
        } else if (takes_part(&of->share[i], &of->left[i]) && opens_all(&of->joined[i])) {
            out->role[i] = JOINT_ROLE_ANY;
        }
    }
    const uint32_t needed = count_roles(out, of->causes, JOINT_ROLE_NAMED);
    const uint32_t others = count_roles(out, of->causes, JOINT_ROLE_ANY);
    if (needed >= 2 && core->low >= HALF_OF_GAP) {
        out->kind = opens_all(core) ? JOINT_ALL : JOINT_HALF;
        for (uint32_t i = 0; i < of->causes; i++)
            if (out->role[i] == JOINT_ROLE_ANY) out->role[i] = JOINT_ROLE_NONE;
    } else if (needed >= 1 && others >= 2 && core->high < HALF_OF_GAP) {
        out->kind = JOINT_ANY;
    } else {
        name_all(of, out);
    }
}

void attribution_choose_joint(const struct attribution *of, enum attribution_word word,
                              struct attribution_joint *out) {
    memset(out, 0, sizeof *out);
    if (word == WORD_EACH)
        choose_enough(of, out);
    else if (word == WORD_TOGETHER)
        choose_together(of, out);
}
