/* SPDX-License-Identifier: Apache-2.0
 * Puts the figures of causes into one word: which sentence about them is true.
 *
 * Notation: A is the baseline's end point, and d_S = theta_S - A is the displacement of the hybrid
 * that has the factors S of the test arm; N is all of them, so d_N is the difference of the arms
 * and D = |d_N|. For each cause c there are three figures (docs/ATTRIBUTION.md):
 *   share  the Shapley value of <d_S, d_N> / D^2: how much of the way from one arm to the other the
 *          cause makes, on average over the orders in which causes may enter. It has a sign, and it
 *          does not change when the arms change places.
 *   left   |d_(N without c)| / D: the gap that is left when the test arm is repaired in c alone.
 *   alone  |d_c| / D: the gap that c alone opens.
 * Left is no complement of share: displacements (1, 0) and (-1, 0.01) have shares 0 and 1, yet
 * either repair alone leaves a hundred times the gap.
 *
 * The file knows neither traces nor trainings. Invariant: a word about estimates is used only where
 * the intervals lie wholly on its side of the threshold. */
#ifndef TWINSTEP_EVIDENCE_ATTRIBUTION_H
#define TWINSTEP_EVIDENCE_ATTRIBUTION_H

#include <stdint.h>

#include "base/key.h"

/* A figure and the interval that it lies in; both ends are the value where it is exact. NaN: it was
 * not trained. */
struct attributed {
    double value, low, high;
};

/* A set S of causes, bit i for cause i, and |d_S| / D, the gap that it opens. */
struct attribution_set {
    uint32_t mask;
    struct attributed size;
};

struct attribution {
    uint32_t causes;    /* by falling |share| */
    double distance;    /* D */
    double largest_low; /* of the largest |d_S| that was trained, the lower end of its interval */
    int moved;          /* a hybrid's weights differed from the baseline's after some update */
    /* |theta_P - A| of the run P that begins one unit in the last place off, over all elements but
     * that one; NaN: there is none */
    double response;
    struct attributed share[CAUSE_COUNT], left[CAUSE_COUNT], alone[CAUSE_COUNT];
    /* Of the sets that were trained, in any order. attribution_choose_joint,
     * attribution_choose_beside and attribution_is_idle read them. */
    const struct attribution_set *sets;
    uint32_t set_count;
};

/* The sentences about causes, in the order in which they are tried: the first that is true is told.
 * Thresholds: docs/decisions/words.md. */
enum attribution_word {
    WORD_NONE = 0, /* nothing was attributed, or a share that an order needs is unknown */
    WORD_EQUAL,    /* D = 0, and no hybrid ever moved */
    WORD_CANCEL,   /* cancel exactly: D = 0, but a hybrid moved */
    WORD_ROUNDING, /* no larger than rounding: the perturbed run went at least half as far */
    WORD_NEARLY,   /* nearly cancel: a hybrid went more than ten times as far */
    WORD_OPPOSE,   /* oppose each other: a repair widens the gap, or a share is negative */
    WORD_TOGETHER, /* only together: none opens the gap alone, a repair closes some of it */
    WORD_EACH,     /* each enough by itself: two or more open it alone and no repair closes it */
    WORD_CAUSE,    /* one cause: it makes the way, and its repair closes the gap */
    WORD_SEVERAL,  /* several, in the order of their shares */
    WORD_OPEN,     /* several, of which none is known to be the first */
    WORD_COUNT
};
extern const char *const attribution_words[WORD_COUNT]; /* "none", "equal", "cancel-exactly", ... */

/* From this share of the arms' distance on, the perturbed run's distance explains it as well; up to
 * the second one, causes can still be ranked. */
#define ROUNDING_EXPLAINS 0.5
#define ROUNDING_SPARES 0.1

/* Of the arms' distance: a hybrid that went farther than this makes percentages of it meaningless.
 */
#define NEARLY_FACTOR 10.0

/* Shares that are this near to each other have no order: they agree in the digits that are printed,
 * thousandths of a percent, and rounding in runs of f32 leaves 1e-8 to 1e-6 between shares that a
 * formula has equal. */
#define SHARE_TIE 1e-5

/* Whether a share stands before another one for certain, in the order of falling |share|: its
 * interval of |share| lies above the other's by more than SHARE_TIE. */
int share_is_before(const struct attributed *share, const struct attributed *other);

/* Whether a share is known to be exactly 0. */
int share_is_none(const struct attributed *share);

/* Whether the perturbed run's response is large enough to explain a gap. */
int rounding_explains(double response, double gap);

/* The sentence that these figures bear. */
enum attribution_word attribution_word(const struct attribution *attribution);

/* The same where the arms are not known to differ: `distance` is the most that D may be, figures of
 * `left` are lengths like it and not parts of it, and there is nothing else but `largest_low`. The
 * word is one of WORD_NEARLY and WORD_OPPOSE where it holds for every D from 0 to that, or
 * WORD_NONE. */
enum attribution_word attribution_word_within(const struct attribution *attribution);

/* Whether a cause is known to do nothing: its share is exactly 0, and of the sets that were trained
 * it changes the size of none, by whatever set it enters. A list of causes leaves it out. */
int attribution_is_idle(const struct attribution *attribution, uint32_t cause);

/* What WORD_TOGETHER and WORD_EACH say of the causes that they name. */
enum joint_kind {
    JOINT_ALL,  /* those named open next to all of the gap: together, or each by itself */
    JOINT_HALF, /* they open half of it or more */
    JOINT_ANY,  /* together: those that are needed, with any one of those of JOINT_ROLE_ANY, of
                   which there are two or more where the others are OTHERS_SHUT */
    JOINT_OPEN  /* together: which of those that take part are needed was not seen */
};
enum joint_role { JOINT_ROLE_NONE = 0, JOINT_ROLE_NAMED, JOINT_ROLE_ANY };

/* What the mixtures open that lack one of those that are named, or all of JOINT_ROLE_ANY. */
enum joint_others {
    OTHERS_SHUT = 0,  /* of those that were trained, none opens half of the gap: "only together" */
    OTHERS_HALF,      /* one opens half of it or more */
    OTHERS_ALL,       /* one opens next to all of it */
    OTHERS_UNTRAINED, /* the one that lacks JOINT_ROLE_ANY and nothing else was not trained */
    OTHERS_UNKNOWN    /* noise covers what one opens */
};

struct attribution_joint {
    enum joint_kind kind;
    enum joint_role role[CAUSE_COUNT];
    enum joint_others others; /* WORD_TOGETHER, not of JOINT_OPEN */
    int partial;              /* WORD_TOGETHER: not every mixture was trained */
    int blocked; /* a mixture with those that are named leaves the gap shut all the same */
    struct attributed
        rest;           /* WORD_EACH: what repairing all leaves that are named; NaN: untrained */
    int rest_is_little; /* for certain */
};

/* Chooses the causes that the sentence of `word`, one of these two, may name, and what it may say
 * of other mixtures. None is named as needed that another one can replace, nor as enough for half
 * where two are enough for all. Shares decide nothing here: a cause whose share is small may be one
 * of those that open the gap. The rest has JOINT_ROLE_NONE, as all have where the word is another.
 */
void attribution_choose_joint(const struct attribution *attribution, enum attribution_word word,
                              struct attribution_joint *out);

/* One cause that makes the gap, beside others that cancel: repairing it alone closes the gap, alone
 * it opens the gap, and the others go farther alone than all of them together. */
struct attribution_beside {
    int is_known;
    uint32_t cause;   /* the one */
    uint32_t cancels; /* bit i for cause i: those that cancel beside it, two or more */
    int exactly;      /* together these lead nowhere, and not only nearly so */
};

/* Finds it where the word is that causes nearly cancel or oppose each other, which is true of the
 * others then and says nothing of the one repair that matters. */
void attribution_choose_beside(const struct attribution *attribution, enum attribution_word word,
                               struct attribution_beside *out);

/* Whether a repair leaves next to nothing of the gap, for certain. */
int attribution_closes(const struct attributed *left);

#endif
