/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Where two records of one update differ first, told by phase and tensor, and why an update has no
 * root: each over records that are made here by hand, with digests that are a byte repeated. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "determinism/certify.h"
#include "determinism/first.h"
#include "determinism/trace.h"

static const char *const phases[] = {"fetch", "forward", "backward", "reduce", "optimize"};
static const char *const shuffled[] = {"optimize", "zero", "forward", "backward", "fetch"};
static const char *const sites[] = {"embedding", "norm", "logp"};
static const char *const tensors[] = {"first", "middle", "last"};
enum { PHASES = 5, SITES = 3, TENSORS = 3 };
enum {
    BATCH = 100,
    LR,
    LOSS,
    LOST,
    GRADIENT = 200,
    PARAMETER = 300,
    SITE = 400
}; /* what is changed */

struct side {
    struct trace_run_plan plan;
    struct record record;
};

static void put(uint8_t *digest, uint8_t byte) {
    memset(digest, byte, RECORD_DIGEST_BYTES);
}

static void side_open(struct side *side, struct arena *arena) {
    struct record *made;
    memset(side, 0, sizeof *side);
    side->plan.shape =
        (struct record_shape){.groups = 1, .tensors = TENSORS, .phases = PHASES, .sites = SITES};
    side->plan.phases = phases;
    side->plan.sites = sites;
    side->plan.tensors = tensors;
    assert_int_equal(arena_take(arena, 1, sizeof *made, "record", &made), STATUS_OK);
    assert_int_equal(record_take(arena, &side->plan.shape, 1, made), STATUS_OK);
    side->record = *made;
    for (int i = 0; i < PHASES; i++)
        put(side->record.phases[i], 1);
    for (int i = 0; i < SITES; i++)
        put(side->record.sites[i], 1);
    for (int i = 0; i < TENSORS; i++)
        for (int d = 0; d < RECORD_TENSOR_DIGESTS; d++)
            put(side->record.tensor_digests[i][d], 1);
    for (int i = 0; i < RECORD_DIGESTS; i++)
        put(side->record.digests[i], 1);
}

static void change(struct side *side, int what) {
    if (what < 0) return;
    if (what < BATCH)
        put(side->record.phases[what], 2);
    else if (what == BATCH)
        put(side->record.digests[DIGEST_BATCH], 2);
    else if (what == LR)
        put(side->record.digests[DIGEST_LR], 2);
    else if (what == LOSS || what == LOST)
        side->record.reals[REAL_LOSS] = what == LOSS ? -1.0 : (double)NAN;
    else if (what < PARAMETER)
        put(side->record.tensor_digests[what - GRADIENT][TENSOR_DIGEST_GRADIENT], 2);
    else if (what < SITE)
        put(side->record.tensor_digests[what - PARAMETER][TENSOR_DIGEST_PARAMETER], 2);
    else
        put(side->record.sites[what - SITE], 2);
}

#define NO (-1)

static void validate_first_differences(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int what[3];         /* phases by their index, and the words above */
        int foreign, absent; /* absent: the phase of which the other side has no digest */
        const char *const *others;
        const char *phase, *tensor;
    } cases[] = {
        {"nothing", {NO, NO, NO}, 0, NO, phases, "", ""},
        {"data", {0, 2, GRADIENT}, 0, NO, phases, "fetch", ""},
        {"an activation", {1, SITE + 2, SITE + 1}, 0, NO, phases, "forward", "norm"},
        {"an activation that nobody names", {1, NO, NO}, 0, NO, phases, "forward", ""},
        {"gradients, the last tensor first",
         {2, GRADIENT, GRADIENT + 1},
         0,
         NO,
         phases,
         "backward",
         "middle"},
        {"gradients that are joined", {3, GRADIENT + 2, GRADIENT}, 0, NO, phases, "reduce", "last"},
        {"weights", {4, PARAMETER + 2, PARAMETER + 1}, 0, NO, phases, "optimize", "middle"},
        {"weights whose gradients differ", {4, GRADIENT, NO}, 0, NO, phases, "optimize", ""},
        {"a phase of which one side has no digest",
         {1, 4, PARAMETER},
         0,
         1,
         phases,
         "optimize",
         "first"},
        {"the order is that of the first", {4, 0, NO}, 0, NO, shuffled, "fetch", ""},
        {"no phases, ours", {BATCH, GRADIENT, NO}, 0, NO, phases, "", ""},
        {"another's data", {BATCH, GRADIENT, NO}, 1, NO, phases, "fetch", ""},
        {"another's loss", {LOSS, GRADIENT, PARAMETER}, 1, NO, phases, "forward", ""},
        {"another's data and loss", {LOSS, BATCH, NO}, 1, NO, phases, "fetch", ""},
        {"a loss that one does not have", {LOST, LR, NO}, 1, NO, phases, "optimize", ""},
        {"another's gradients",
         {GRADIENT, GRADIENT + 2, PARAMETER},
         1,
         NO,
         phases,
         "backward",
         "last"},
        {"another's weights",
         {PARAMETER + 1, PARAMETER + 2, LR},
         1,
         NO,
         phases,
         "optimize",
         "middle"},
        {"another's LR", {LR, NO, NO}, 1, NO, phases, "optimize", ""},
        {"another's nothing", {NO, NO, NO}, 1, NO, phases, "", ""},
        {"another's phase", {1, GRADIENT, NO}, 1, NO, phases, "forward", ""},
    };
    static const struct trace_foreign foreign = {.digest = "leaf 1", .world = 1};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct side a, b;
        struct first_difference first;
        side_open(&a, &arena);
        side_open(&b, &arena);
        b.plan.phases = cases[i].others;
        if (cases[i].foreign) a.plan.foreign = b.plan.foreign = &foreign;
        for (size_t w = 0; w < COUNT_OF(cases[i].what); w++)
            change(&b, cases[i].what[w]);
        if (cases[i].absent != NO) put(b.record.phases[cases[i].absent], 0);
        first_find(&a.plan, &a.record, &b.plan, &b.record, &first);
        if (strcmp(first.phase, cases[i].phase) != 0 || strcmp(first.tensor, cases[i].tensor) != 0)
            fail_msg("%s: %s, %s", cases[i].name, first.phase, first.tensor);
        if (cases[i].foreign) { /* the two may change places */
            first_find(&b.plan, &b.record, &a.plan, &a.record, &first);
            assert_string_equal(first.phase, cases[i].phase);
            assert_string_equal(first.tensor, cases[i].tensor);
        }
        a.plan.foreign = NULL; /* what a program wrote is looked at where both are another's */
        if (cases[i].foreign && cases[i].what[0] != 1) {
            first_find(&a.plan, &a.record, &b.plan, &b.record, &first);
            assert_string_equal(first.phase, "");
        }
        arena_close(&arena);
    }
}

/* 32 zero bytes are no digest: what one of two foreign runs did not take does not differ. */
static void verify_a_digest_that_was_not_taken_does_not_differ(void **state) {
    (void)state;
    static const struct trace_foreign foreign = {.digest = "leaf 1", .world = 1};
    for (int turned = 0; turned < 2; turned++) {
        struct arena arena = ARENA_EMPTY;
        struct side sides[2], *const a = &sides[turned], *const b = &sides[1 - turned];
        struct first_difference first;
        side_open(a, &arena);
        side_open(b, &arena);
        a->plan.foreign = b->plan.foreign = &foreign;
        put(b->record.digests[DIGEST_BATCH], 0);
        for (int t = 0; t < TENSORS; t++)
            put(b->record.tensor_digests[t][TENSOR_DIGEST_GRADIENT], 0);
        put(b->record.tensor_digests[0][TENSOR_DIGEST_PARAMETER], 0);
        first_find(&sides[0].plan, &sides[0].record, &sides[1].plan, &sides[1].record, &first);
        assert_string_equal(first.phase, "");
        change(b, PARAMETER + 1);
        first_find(&sides[0].plan, &sides[0].record, &sides[1].plan, &sides[1].record, &first);
        assert_string_equal(first.phase, "optimize");
        assert_string_equal(first.tensor, "middle");
        arena_close(&arena);
    }
}

/* A run of which one side has fewer tensors and sites is compared as far as both go. */
static void verify_the_shorter_side_counts(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct side a, b;
    struct first_difference first;
    side_open(&a, &arena);
    side_open(&b, &arena);
    change(&b, 2);
    change(&b, GRADIENT);
    change(&b, GRADIENT + 2);
    b.plan.shape.tensors = 2;
    first_find(&a.plan, &a.record, &b.plan, &b.record, &first);
    assert_string_equal(first.tensor, "first");
    first_find(&b.plan, &b.record, &a.plan, &a.record, &first);
    assert_string_equal(first.tensor, "first");
    change(&b, 1);
    change(&b, SITE + 2);
    b.plan.shape.sites = 2;
    first_find(&a.plan, &a.record, &b.plan, &b.record, &first);
    assert_string_equal(first.phase, "forward");
    assert_string_equal(first.tensor, "");
    arena_close(&arena);
}

/* ---- why there is no root ---- */

static void validate_what_a_root_lacks(void **state) {
    (void)state;
    enum { ROOT, NO_LR, NO_WEIGHT, NO_TENSORS, NO_GROUPS };
    static const struct {
        int what;
        const char *text;
    } cases[] = {
        {ROOT, ""},
        {NO_LR,
         "update 5 has no lr_applied[0], and its row does not say that it was skipped: there "
         "is no root of it"},
        {NO_WEIGHT, "update 5 has no tensors/digest_parameter of \"middle\": there is no root of "
                    "it"},
        {NO_TENSORS, "the run has no tensors/digest_parameter, so its updates have no roots"},
        {NO_GROUPS, "the run has no tensors/group, so its updates have no roots"},
    };
    static const uint32_t groups[TENSORS] = {0, 0, 0};
    struct trace_foreign foreign = {.digest = "leaf 1", .world = 1, .groups = groups};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct side side;
        char text[CERTIFY_WHY];
        side_open(&side, &arena);
        foreign.groups = cases[i].what == NO_GROUPS ? NULL : groups;
        side.plan.foreign = &foreign;
        side.record.step = 5;
        side.record.groups[0][GROUP_LR_APPLIED] = cases[i].what == NO_LR ? (double)NAN : 0.5;
        put(side.record.digests[DIGEST_WEIGHTS], 0);
        put(side.record.digests[DIGEST_LR], 0);
        if (cases[i].what != ROOT) put(side.record.digests[DIGEST_ROOT], 0);
        if (cases[i].what == NO_WEIGHT)
            put(side.record.tensor_digests[1][TENSOR_DIGEST_PARAMETER], 0);
        if (cases[i].what == NO_TENSORS) side.plan.shape.tensors = 0;
        const struct trace_run run = {.plan = side.plan, .updates = 1, .records = &side.record};
        certify_lack(&run, text);
        if (strcmp(text, cases[i].text) != 0) fail_msg("case %zu: %s", i, text);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_first_differences),
        cmocka_unit_test(verify_a_digest_that_was_not_taken_does_not_differ),
        cmocka_unit_test(verify_the_shorter_side_counts),
        cmocka_unit_test(validate_what_a_root_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
