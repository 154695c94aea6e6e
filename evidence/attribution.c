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

/* The interval of |share|, which begins at 0 where the share's own holds 0. */
static struct attributed size_of_share(const struct attributed *share) {
    const double a = fabs(share->low), b = fabs(share->high);
    const double low = share->low * share->high <= 0.0 ? 0.0 : a > b ? b : a;
    return (struct attributed){fabs(share->value), low, a > b ? a : b};
}

int share_is_before(const struct attributed *share, const struct attributed *other) {
    return size_of_share(other).high < size_of_share(share).low - SHARE_TIE;
}

#define OPPOSE_LEFT 1.1     /* a repair that leaves more than this widened the gap */
#define OPPOSE_SHARE (-0.1) /* a share below this leads away from the test arm */
#define ALONE_LITTLE 0.1
#define ALONE_MOST 0.9
#define HALF_OF_GAP 0.5   /* "most of the gap": what opens so much, and what leaves less */
#define LEFT_MOST 0.9     /* a repair that leaves at least this closed next to nothing */
#define CAUSE_SHARE 0.9   /* of one cause, which then leaves */
#define CAUSE_LEFT 0.35   /* at most so much when it is repaired, */
#define CAUSE_OTHER 0.1   /* while every other share is below this */
#define PLACE_MARGIN 0.05 /* no slack: only made-up figures differ by exactly so much */

/* It opens half of the gap alone or more, and its repair closes next to nothing. */
static int is_enough(const struct attributed *alone, const struct attributed *left) {
    return alone->low >= HALF_OF_GAP && left->low >= LEFT_MOST;
}

static int opens_all(const struct attributed *gap) {
    return gap->low >= ALONE_MOST;
}

/* Its repair closes most of the gap. */
static int is_needed(const struct attributed *left) {
    return left->high < HALF_OF_GAP;
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

enum attribution_word attribution_word_within(const struct attribution *of) {
    if (nearly_cancel(of)) return WORD_NEARLY;
    for (uint32_t i = 0; i < of->causes; i++)
        if (of->left[i].low > OPPOSE_LEFT * of->distance) return WORD_OPPOSE;
    return WORD_NONE;
}

/* ---- whom a joint sentence names, and what it may say of them ---- */

static uint32_t count_of(uint32_t mask) {
    uint32_t count = 0;
    for (; mask != 0; mask &= mask - 1)
        count++;
    return count;
}

static uint32_t full_of(const struct attribution *of) {
    return (1u << of->causes) - 1;
}

/* The gap that a set of causes opens; NULL: it was not trained. */
static const struct attributed *size_of(const struct attribution *of, uint32_t mask) {
    static const struct attributed nothing = {0.0, 0.0, 0.0}, whole = {1.0, 1.0, 1.0};
    if (mask == 0) return &nothing;
    if (mask == full_of(of)) return &whole;
    for (uint32_t i = 0; i < of->set_count; i++)
        if (of->sets[i].mask == mask && !isnan(of->sets[i].size.value)) return &of->sets[i].size;
    return NULL;
}

static int is_partial(const struct attribution *of) {
    uint32_t known = 0;
    for (uint32_t i = 0; i < of->set_count; i++)
        known += of->sets[i].mask != 0 && of->sets[i].mask != full_of(of) &&
                 !isnan(of->sets[i].size.value);
    return known < full_of(of) - 1;
}

/* Entering a set, it changed the gap by what is not little. */
static int takes_part(const struct attribution *of, uint32_t cause) {
    const uint32_t self = 1u << cause;
    const double alone = of->alone[cause].value, left = of->left[cause].value;
    if (alone >= ALONE_LITTLE || fabs(1.0 - left) >= ALONE_LITTLE) return 1;
    for (uint32_t i = 0; i < of->set_count; i++) {
        const uint32_t without = of->sets[i].mask & ~self;
        const struct attributed *const a = size_of(of, without), *const b =
                                                                     size_of(of, without | self);
        if (a != NULL && b != NULL && fabs(a->value - b->value) >= ALONE_LITTLE) return 1;
    }
    return 0;
}

int share_is_none(const struct attributed *share) {
    return share->low == 0.0 && share->high == 0.0;
}

static int is_exactly(const struct attributed *a, const struct attributed *b) {
    return a->low == a->high && b->low == b->high && a->value == b->value;
}

int attribution_is_idle(const struct attribution *of, uint32_t cause) {
    const uint32_t self = 1u << cause;
    if (!share_is_none(&of->share[cause])) return 0;
    for (uint32_t i = 0; i < of->set_count; i++) {
        const uint32_t without = of->sets[i].mask & ~self;
        const struct attributed *const a = size_of(of, without), *const b =
                                                                     size_of(of, without | self);
        if (a != NULL && b != NULL && !is_exactly(a, b)) return 0;
    }
    return of->left[cause].value == 1.0 && of->alone[cause].value == 0.0;
}

static void give_role(const struct attribution *of, uint32_t mask, enum joint_role role,
                      struct attribution_joint *out) {
    for (uint32_t i = 0; i < of->causes; i++)
        if ((mask >> i & 1u) != 0) out->role[i] = role;
}

/* A mixture is meant where it has all of `core` and, where there are some, one of `any`. Of those
 * that were trained: whether a meant one leaves the gap shut, and what the others open. */
static void look_at_others(const struct attribution *of, uint32_t core, uint32_t any,
                           struct attribution_joint *out) {
    int all = 0, half = 0, unclear = 0;
    for (uint32_t i = 0; i < of->set_count; i++) {
        const uint32_t mask = of->sets[i].mask;
        const struct attributed *const size = size_of(of, mask);
        if (mask == full_of(of) || size == NULL) continue;
        if ((mask & core) == core && (any == 0 || (mask & any) != 0)) {
            out->blocked |= size->high < HALF_OF_GAP;
            continue;
        }
        all |= opens_all(size);
        half |= size->low >= HALF_OF_GAP;
        unclear |= !(size->high < HALF_OF_GAP);
    }
    out->others = all                                       ? OTHERS_ALL
                  : half                                    ? OTHERS_HALF
                  : size_of(of, full_of(of) & ~any) == NULL ? OTHERS_UNTRAINED
                  : unclear                                 ? OTHERS_UNKNOWN
                                                            : OTHERS_SHUT;
}

/* Where two or more open next to all of the gap, those that open half of it are no equals. */
static void choose_enough(const struct attribution *of, struct attribution_joint *out) {
    uint32_t half = 0, all = 0;
    for (uint32_t i = 0; i < of->causes; i++) {
        if (!is_enough(&of->alone[i], &of->left[i])) continue;
        half |= 1u << i;
        if (opens_all(&of->alone[i])) all |= 1u << i;
    }
    out->kind = count_of(all) < 2 ? JOINT_HALF : JOINT_ALL;
    const uint32_t named = out->kind == JOINT_ALL ? all : half;
    give_role(of, named, JOINT_ROLE_NAMED, out);
    const struct attributed *const rest = size_of(of, full_of(of) & ~named);
    if (rest != NULL) out->rest = *rest;
    out->rest_is_little = rest != NULL && rest->high < ALONE_LITTLE;
    for (uint32_t i = 0; i < of->set_count; i++)
        out->blocked |= (of->sets[i].mask & named) != 0 && of->sets[i].size.high < HALF_OF_GAP;
}

/* Where nothing is known of single causes, all that are seen to take part are named; where mixtures
 * were left out, or that is one of them at most, all: nothing is together with itself. */
static void name_all(const struct attribution *of, struct attribution_joint *out) {
    uint32_t named = 0;
    out->kind = JOINT_OPEN;
    for (uint32_t i = 0; i < of->causes; i++)
        if (takes_part(of, i)) named |= 1u << i;
    if (out->partial || count_of(named) < 2) named = full_of(of);
    give_role(of, named, JOINT_ROLE_NAMED, out);
}

/* Two or more causes that are needed open the gap together where they open it without the others.
 * Where they do not, it may take any one of several others. */
static void choose_together(const struct attribution *of, struct attribution_joint *out) {
    uint32_t needed = 0, any = 0;
    out->partial = is_partial(of);
    for (uint32_t i = 0; i < of->causes; i++)
        if (is_needed(&of->left[i])) needed |= 1u << i;
    const struct attributed *const core = size_of(of, needed);
    const int shut = core != NULL && core->high < HALF_OF_GAP;
    for (uint32_t i = 0; i < of->causes && shut; i++) {
        const struct attributed *const joined = size_of(of, needed | 1u << i);
        if (joined != NULL && opens_all(joined)) any |= 1u << i;
    }
    if (needed != 0 && shut && any != 0)
        out->kind = JOINT_ANY;
    else if (count_of(needed) >= 2 && core != NULL && core->low >= HALF_OF_GAP)
        out->kind = opens_all(core) ? JOINT_ALL : JOINT_HALF;
    else {
        name_all(of, out);
        return;
    }
    give_role(of, needed, JOINT_ROLE_NAMED, out);
    give_role(of, any, JOINT_ROLE_ANY, out);
    look_at_others(of, needed, any, out);
}

void attribution_choose_joint(const struct attribution *of, enum attribution_word word,
                              struct attribution_joint *out) {
    memset(out, 0, sizeof *out);
    out->rest = (struct attributed){(double)NAN, (double)NAN, (double)NAN};
    if (word == WORD_EACH)
        choose_enough(of, out);
    else if (word == WORD_TOGETHER)
        choose_together(of, out);
}

/* ---- one cause beside others that cancel ---- */

int attribution_closes(const struct attributed *left) {
    return left->high < ALONE_LITTLE;
}

/* The one cause whose repair closes the gap and that opens it alone; -1: none, or several. */
static int32_t only_repair(const struct attribution *of) {
    int32_t only = -1;
    for (uint32_t i = 0; i < of->causes; i++) {
        if (!attribution_closes(&of->left[i])) continue;
        if (only >= 0) return -1;
        only = (int32_t)i;
    }
    if (only < 0 || !opens_all(&of->alone[only]) || !(of->alone[only].high <= OPPOSE_LEFT))
        return -1;
    return only;
}

/* Those that go farther alone than all others together, where two or more do; all others together
 * go less than ALONE_LITTLE, or the only repair would not close the gap. A third one that takes
 * no part in it is not named: the set of those that are named has to lead back by itself, unless
 * that was not trained. */
void attribution_choose_beside(const struct attribution *of, enum attribution_word word,
                               struct attribution_beside *out) {
    memset(out, 0, sizeof *out);
    if (word != WORD_NEARLY && word != WORD_OPPOSE) return;
    const int32_t only = only_repair(of);
    if (only < 0) return;
    const struct attributed *const rest = &of->left[only];
    uint32_t moving = 0;
    for (uint32_t i = 0; i < of->causes; i++)
        if (i != (uint32_t)only && of->alone[i].low >= ALONE_LITTLE) moving |= 1u << i;
    if (count_of(moving) < 2) return;
    const uint32_t others = full_of(of) & ~(1u << only);
    const struct attributed *together = size_of(of, moving);
    if (together == NULL || !attribution_closes(together)) {
        moving = others;
        together = rest;
    }
    *out = (struct attribution_beside){.is_known = 1,
                                       .cause = (uint32_t)only,
                                       .cancels = moving,
                                       .exactly = together->low == 0.0 && together->high == 0.0};
}
