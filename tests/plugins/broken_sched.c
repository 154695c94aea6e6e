/* SPDX-License-Identifier: Apache-2.0
 * Schedules that the loader must refuse, or whose calls must be caught: one for each value of
 * BREAK, which the build sets (the list is in tests/plugins/CMakeLists.txt). Without BREAK it is a
 * sound one. */
#define TWINSTEP_MODULE
#include "sched/sched_module.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum break_kind {
    BREAK_NOTHING,
    BREAK_NO_VALUE,
    BREAK_NO_MINIMUM,
    BREAK_STATE,
    BREAK_FEEDBACK,
    BREAK_VALUES,
    BREAK_BUILT_IN,
    BREAK_DOTTED,
    BREAK_KEY_CAUSE,
    BREAK_SMALL,
    BREAK_NO_HELP,
    BREAK_NO_CLASSES,
    BREAK_NAME_TWICE,
    BREAK_MANY,
    BREAK_NAN,
    BREAK_VALUE_ROUND
};

#if !defined(BREAK)
#define BREAK BREAK_NOTHING
#endif
#define IF(what, broken, sound) (BREAK == BREAK_##what ? (broken) : (sound))

static const struct key_row keys[] = {
    {"share", KEY_REAL, "1", "1", IF(KEY_CAUSE, CAUSE_OPTIMIZER, CAUSE_SCHEDULE),
     "Factor on the base rate", 0, sizeof(double), 0, 10, NULL, NULL},
};

static double broken_value(const struct sched_call *call, double counter) {
    const double share = *(const double *)call->values;
#if defined(__x86_64__)
    if (BREAK == BREAK_VALUE_ROUND) _mm_setcsr(_mm_getcsr() | 0x2000u);
#endif
    return BREAK == BREAK_NAN && counter > 1.0 ? real_nan_f64() : call->base_lr * share;
}

static double broken_minimum(const struct sched_call *call) {
    return call->base_lr;
}

#define CLASS(word)                                                                                \
    {                                                                                              \
        .size = sizeof(struct sched_class) + IF(SMALL, 8, 0), .name = (word),                      \
        .help = IF(NO_HELP, "", "A schedule of the tests"), .keys = keys,                          \
        .key_count = COUNT_OF(keys), .values_size = IF(VALUES, 257, sizeof(double)),               \
        .state_size = IF(STATE, SCHED_MODULE_STATE_MAX + 1, 0), .feedback = IF(FEEDBACK, 1, 0),    \
        .value = IF(NO_VALUE, NULL, broken_value), .minimum = IF(NO_MINIMUM, NULL, broken_minimum) \
    }

static const struct sched_class broken =
    CLASS(IF(BUILT_IN, "cosine", IF(DOTTED, "my.broken", "broken")));
static const struct sched_class others[] = {
    CLASS("b"), CLASS("c"), CLASS("d"), CLASS("e"), CLASS("f"), CLASS("g"), CLASS("h"), CLASS("i"),
    CLASS("j"), CLASS("k"), CLASS("l"), CLASS("m"), CLASS("n"), CLASS("o"), CLASS("p"), CLASS("q")};

static const struct sched_class *const classes[] = {
    IF(NO_CLASSES, NULL, &broken), IF(NAME_TWICE, &broken, IF(MANY, &others[0], NULL)),
    IF(MANY, &others[1], NULL),    IF(MANY, &others[2], NULL),
    IF(MANY, &others[3], NULL),    IF(MANY, &others[4], NULL),
    IF(MANY, &others[5], NULL),    IF(MANY, &others[6], NULL),
    IF(MANY, &others[7], NULL),    IF(MANY, &others[8], NULL),
    IF(MANY, &others[9], NULL),    IF(MANY, &others[10], NULL),
    IF(MANY, &others[11], NULL),   IF(MANY, &others[12], NULL),
    IF(MANY, &others[13], NULL),   IF(MANY, &others[14], NULL),
    IF(MANY, &others[15], NULL),   NULL};
SCHED_MODULE(classes);
