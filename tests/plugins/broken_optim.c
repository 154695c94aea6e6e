/* SPDX-License-Identifier: Apache-2.0
 * Optimizers that the loader must refuse, or whose calls must be caught: one for each value of
 * BREAK, which the build sets (the list is in tests/plugins/CMakeLists.txt). Without BREAK it is a
 * sound one. */
#define TWINSTEP_MODULE
#include "optim/optim_module.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define MXCSR_DOWN 0x2000u
#define MXCSR_FLUSH 0x8040u
#define SET_CONTROL(bits) _mm_setcsr(_mm_getcsr() | (bits))
#else
#define MXCSR_DOWN 0u
#define MXCSR_FLUSH 0u
#define SET_CONTROL(bits) ((void)(bits))
#endif

enum break_kind {
    BREAK_NOTHING,
    BREAK_TAG,
    BREAK_STAMP_VERSION,
    BREAK_STAMP_SIZE,
    BREAK_ROW_SIZE,
    BREAK_CLASS_SIZE,
    BREAK_CALL_SIZE,
    BREAK_TENSOR_SIZE,
    BREAK_GROUP_SIZE,
    BREAK_STAMP_EMPTY,
    BREAK_INEXACT,
    BREAK_FUSES,
    BREAK_DROPS,
    BREAK_SMALL,
    BREAK_NO_STEP,
    BREAK_NO_NAME,
    BREAK_BAD_NAME,
    BREAK_BUILT_IN,
    BREAK_NO_HELP,
    BREAK_SLOTS,
    BREAK_SLOT_NAMES,
    BREAK_SLOT_TWICE,
    BREAK_SLOT_UNNAMED,
    BREAK_VALUES,
    BREAK_FLAGS,
    BREAK_FLAGS_BOTH,
    BREAK_FLAGS_UNKNOWN,
    BREAK_NO_CLASSES,
    BREAK_NAME_TWICE,
    BREAK_MANY,
    BREAK_KEY_TWICE,
    BREAK_KEY_OUTSIDE,
    BREAK_KEY_OVERLAP,
    BREAK_KEY_UNALIGNED,
    BREAK_KEY_SIZE,
    BREAK_KEY_CAUSE,
    BREAK_KEY_BOUNDS,
    BREAK_KEY_NAMES,
    BREAK_KEY_NAMES_EMPTY,
    BREAK_KEY_TEXTS,
    BREAK_KEYS_MANY,
    BREAK_KEY_DOT,
    BREAK_KEY_TAKEN,
    BREAK_KEY_DEFAULT,
    BREAK_KEYS_NULL,
    BREAK_LOAD_FLUSH,
    BREAK_LOAD_ROUND,
    BREAK_STEP_ROUND,
    BREAK_STEP_FLUSH,
    BREAK_DIRECTION_ROUND,
    BREAK_STEP_FAIL,
    BREAK_STEP_MUTE,
    BREAK_STEP_STATUS,
    BREAK_STEP_ENDLESS,
    BREAK_STEP_PAST_SLOT,
    BREAK_STEP_BEFORE_PARAM,
    BREAK_STEP_GRADIENT,
    BREAK_STEP_EXIT,
    BREAK_HIDDEN_STATE
};

#if !defined(BREAK)
#define BREAK BREAK_NOTHING
#endif
#define IF(what, broken, sound) (BREAK == BREAK_##what ? (broken) : (sound))
#define SIZE(what, type) (uint32_t)(sizeof(type) - IF(what, 8, 0))

struct broken_values {
    double rate, other;
};

static const char *const names[] = {IF(KEY_NAMES_EMPTY, NULL, "one"), NULL};

static const struct key_row keys[] = {
    {IF(KEY_DOT, "ra.te", IF(KEY_TAKEN, "weight_decay", "rate")),
     IF(KEY_NAMES_EMPTY, KEY_ENUM, KEY_REAL), "1", IF(KEY_DEFAULT, "many", "1"),
     IF(KEY_CAUSE, CAUSE_DATA_ORDER, CAUSE_OPTIMIZER),
     IF(KEY_TEXTS, NULL, "Factor on the gradient"), IF(KEY_OUTSIDE, 16, IF(KEY_UNALIGNED, 4, 0)),
     IF(KEY_SIZE, 4, IF(KEY_NAMES_EMPTY, 4, 8)), IF(KEY_BOUNDS, 2, 0), IF(KEY_BOUNDS, 1, 10), NULL,
     IF(KEY_NAMES, names, IF(KEY_NAMES_EMPTY, names, NULL))},
    {IF(KEY_TWICE, "rate", "other"), KEY_REAL, "1", "1", CAUSE_OPTIMIZER, "Another factor",
     IF(KEY_OVERLAP, 0, 8), 8, 0, 10, NULL, NULL},
};

static const char *const slot_names[] = {"a", IF(SLOT_TWICE, "a", IF(SLOT_UNNAMED, "", "b")), "c",
                                         "d", "e"};

/* Runs at dlopen, before the program can check anything. */
__attribute__((constructor)) static void at_load(void) {
    if (BREAK == BREAK_LOAD_FLUSH) SET_CONTROL(MXCSR_FLUSH);
    if (BREAK == BREAK_LOAD_ROUND) SET_CONTROL(MXCSR_DOWN);
}

/* State that breaks the state law: it is in no snapshot, and a second process begins without it. */
static double hidden;

static enum status broken_step(const struct optim_call *call) {
    const struct broken_values *values = (const struct broken_values *)call->values;
    if (BREAK == BREAK_HIDDEN_STATE) hidden += 0x1p-10;
    if (BREAK == BREAK_STEP_ROUND) SET_CONTROL(MXCSR_DOWN);
    if (BREAK == BREAK_STEP_FLUSH) SET_CONTROL(MXCSR_FLUSH);
    if (BREAK == BREAK_STEP_FAIL)
        FAIL(STATUS_UNSUPPORTED, "update %u of %s is not for me", (unsigned)call->update,
             call->tensors[0].name);
    /* It sleeps, so that a test of it takes no time of a processor. A signal wakes it, and it goes
     * on. */
    for (volatile int waits = BREAK == BREAK_STEP_ENDLESS && call->update == 3; waits;)
        nanosleep(&(struct timespec){1, 0}, NULL);
    if (BREAK == BREAK_STEP_MUTE) return STATUS_INPUT;
    if (BREAK == BREAK_STEP_STATUS) return STATUS_INTERRUPTED;
    if (BREAK == BREAK_STEP_EXIT) exit(0);
    if (BREAK == BREAK_STEP_PAST_SLOT) /* one element too many, as a loop with <= does */
        optim_store(call->tensors[0].slots[0], call->tensors[0].slot_dtype, call->tensors[0].count,
                    3.0);
    if (BREAK == BREAK_STEP_BEFORE_PARAM) ((float *)call->tensors[1].param)[-1] = 2.0f;
    if (BREAK == BREAK_STEP_GRADIENT) *(float *)(uintptr_t)call->tensors[0].gradient += 1.0f;
    *call->t += 1;
    for (uint32_t k = 0; k < call->tensor_count; k++) {
        const struct optim_tensor *tensor = &call->tensors[k];
        const double lr = call->groups[tensor->group].lr * (values->rate + hidden);
        for (size_t i = 0; i < tensor->count; i++) {
            const double p = optim_load(tensor->param, tensor->param_dtype, i);
            const double g = optim_load(tensor->gradient, tensor->gradient_dtype, i);
            optim_store(tensor->param, tensor->param_dtype, i,
                        optim_round(p - lr * g, tensor->param_dtype));
        }
    }
    return STATUS_OK;
}

static enum status broken_direction(const struct optim_call *call, uint32_t index,
                                    const void *before, double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    (void)before;
    if (BREAK == BREAK_DIRECTION_ROUND) SET_CONTROL(MXCSR_DOWN);
    for (size_t i = 0; i < tensor->count; i++)
        out[i] = optim_load(tensor->gradient, tensor->gradient_dtype, i);
    return STATUS_OK;
}

#define CLASS(word)                                                                                \
    {                                                                                              \
        .size = sizeof(struct optim_class) - IF(SMALL, 8, 0), .name = (word),                      \
        .help = IF(NO_HELP, NULL, "An optimizer of the tests"), .keys = IF(KEYS_NULL, NULL, keys), \
        .key_count = IF(KEYS_MANY, 65, COUNT_OF(keys)),                                            \
        .values_size = IF(VALUES, 257, sizeof(struct broken_values)),                              \
        .slot_count = IF(SLOTS, OPTIM_SLOTS_MAX + 1, 2),                                           \
        .slot_names = IF(SLOT_NAMES, NULL, slot_names),                                            \
        .flags = IF(FLAGS, OPTIM_HOST_ONLY, OPTIM_ELEMENTWISE) |                                   \
                 IF(FLAGS_BOTH, OPTIM_NEEDS_WHOLE_TENSOR, 0) | IF(FLAGS_UNKNOWN, 64, 0),           \
        .step = IF(NO_STEP, NULL, broken_step), .direction = broken_direction                      \
    }

static const struct optim_class first =
    CLASS(IF(NO_NAME, NULL, IF(BAD_NAME, "my broken", IF(BUILT_IN, "sgd", "broken"))));
static const struct optim_class second = CLASS("broken");
static const struct optim_class others[] = {
    CLASS("b"), CLASS("c"), CLASS("d"), CLASS("e"), CLASS("f"), CLASS("g"), CLASS("h"), CLASS("i"),
    CLASS("j"), CLASS("k"), CLASS("l"), CLASS("m"), CLASS("n"), CLASS("o"), CLASS("p"), CLASS("q")};

static const struct optim_class *const classes[] = {
    IF(NO_CLASSES, NULL, &first), IF(NAME_TWICE, &second, IF(MANY, &others[0], NULL)),
    IF(MANY, &others[1], NULL),   IF(MANY, &others[2], NULL),
    IF(MANY, &others[3], NULL),   IF(MANY, &others[4], NULL),
    IF(MANY, &others[5], NULL),   IF(MANY, &others[6], NULL),
    IF(MANY, &others[7], NULL),   IF(MANY, &others[8], NULL),
    IF(MANY, &others[9], NULL),   IF(MANY, &others[10], NULL),
    IF(MANY, &others[11], NULL),  IF(MANY, &others[12], NULL),
    IF(MANY, &others[13], NULL),  IF(MANY, &others[14], NULL),
    IF(MANY, &others[15], NULL),  NULL};

static int probe(void) {
    return IF(FUSES, MODULE_FUSES, IF(DROPS, MODULE_DROPS, module_probe()));
}

extern MODULE_EXPORT const struct optim_module twinstep_optim_v1;
const struct optim_module twinstep_optim_v1 = {
    {{IF(TAG, 'T', 't'), 'w', 'i', 'n', 's', 't', 'e', 'p', ' ', 'm', 'o', 'd', 'u', 'l', 'e'},
     IF(STAMP_VERSION, 7, MODULE_VERSION),
     {SIZE(STAMP_SIZE, struct module_stamp), SIZE(ROW_SIZE, struct key_row),
      SIZE(CLASS_SIZE, struct optim_class), SIZE(CALL_SIZE, struct optim_call),
      SIZE(TENSOR_SIZE, struct optim_tensor), SIZE(GROUP_SIZE, struct optim_group)},
     IF(INEXACT, 1, 0),
     0,
     probe,
     IF(STAMP_EMPTY, NULL, MODULE_COMPILER),
     &twinstep_host},
    classes};
