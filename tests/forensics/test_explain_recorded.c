/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What draws, another loop and the digests of two recordings explain.
 * Each condition by itself, each threshold from both sides, of columns made by hand whose first
 * step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_recorded.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

/* ---- draws ---- */

static void validate_draws(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t of_seed, of_words;
    } streams[] = {{"init", CAUSE_INIT, CAUSE_MODEL},
                   {"init/embed", CAUSE_INIT, CAUSE_MODEL},
                   {"ini", CAUSE_RNG, CAUSE_RNG},
                   {"data", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"data/pairs", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"dat", CAUSE_RNG, CAUSE_RNG},
                   {"rounding", CAUSE_RNG, CAUSE_DTYPE},
                   {"rounding/param", CAUSE_RNG, CAUSE_DTYPE},
                   {"roundin", CAUSE_RNG, CAUSE_RNG},
                   {"dropout/attention", CAUSE_RNG, CAUSE_RNG}};
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(stream_cause(streams[i].name, 0), streams[i].of_seed);
        assert_int_equal(stream_cause(streams[i].name, 1), streams[i].of_words);
        for (uint64_t update = 4; update < 8; update++)
            for (int how = 0; how < 4; how++) {
                hand_open();
                hand_part(hand_add(LOG_LOSS, 1.0), 6, 0.5);
                if (how & 1) {
                    hand_report.rng.found = 1;
                    hand_report.rng.update = update;
                    hand_report.rng.consumer = streams[i].name;
                }
                if (how & 2) {
                    hand_report.rng.place.stream = streams[i].name;
                    hand_report.rng.place.update = update;
                }
                const int told = how != 0 && update <= 6;
                assert_int_equal(compare_explain_draws(&hand_report), told);
                assert_int_equal(hand_report.cause, !told     ? -7
                                                    : how & 1 ? streams[i].of_words
                                                              : streams[i].of_seed);
                hand_report.order_count = 0; /* no column differs */
                assert_int_equal(compare_explain_draws(&hand_report), how != 0);
            }
    }
}

/* ---- loops ---- */

static void open_loop(void) {
    hand_open();
    hand_part(hand_add(LOG_GRAD_NORM, 2.0), 5, 2.0);
    hand_part(hand_add(LOG_LOSS, 10.0), 6, 0.5);
    hand_report.loop = (struct compare_loop){.kind = COMPARE_LOOP_KEEPS, .side = 1, .update = 4};
}
#define LOOPS(expected)                                                                            \
    IS(compare_loops_part(&hand_report, hand_column(LOG_GRAD_NORM)), expected, open_loop)
static void validate_loops(void **state) {
    (void)state;
    open_loop();
    LOOPS(1);
    hand_report.loop.kind = COMPARE_LOOP_ALIKE;
    LOOPS(0);
    assert_false(compare_loops_part(&hand_report, NULL));
    for (uint64_t update = 2; update < 7; update++) { /* it acts on the next gradient */
        hand_report.loop.update = update;
        LOOPS(update == 4);
        hand_report.loop.update = update; /* and what is cleared on this one, or on the next loss */
        hand_report.loop.kind = COMPARE_LOOP_CLEARS;
        LOOPS(update == 5);
        hand_report.loop.update = update;
        hand_report.loop.kind = COMPARE_LOOP_CLEARS;
        hand_column(LOG_GRAD_NORM)->class_of = COMPARE_EQUAL;
        IS(compare_loops_part(&hand_report, hand_column(LOG_LOSS)), update == 5, open_loop);
    }
    hand_column(LOG_LOSS)->first_update = 5; /* the forward pass of that update differs, too */
    LOOPS(0);
    for (uint64_t root = 4; root < 7; root++) {
        hand_report.root_update = root;
        LOOPS(root == 5);
    }
    for (uint64_t first = 4; first < 7; first++) {
        hand_part(hand_add(LOG_TOKENS, 1.0), first, 1.0);
        LOOPS(first > 5);
        hand_part(hand_add(LOG_LR_LOGGED, 1.0), first, 1.0);
        LOOPS(first >= 5);
        hand_group.column.first_update = first;
        hand_report.lr.group_first = &hand_group;
        LOOPS(first >= 5);
    }
    /* Norms before and behind unscale_ are apart by the loss scale. */
    for (int how = 0; how < 7; how++) {
        hand_report.loop =
            (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
        struct compare_column *const norm = hand_column(LOG_GRAD_NORM);
        norm->first[0].value = 2.0;
        norm->first[1].value = 2048.0;
        if (how != 1) hand_add(LOG_LOSS_SCALE, 1.0);
        for (size_t s = 0; how != 1 && s < 2; s++)
            for (size_t i = 0; i < HAND_ROWS; i++)
                hand_points[2][s][i].value = s == 1 && i == 4 ? 1024.0 : 64.0;
        if (how == 2) norm->first[1].value *= 1.0049;
        if (how == 3) norm->first[1].value *= 1.0051;
        if (how == 4) norm->first[1].value *= 0.9949;
        if (how == 5) hand_points[2][1][4].update = 40;
        if (how == 6) hand_report.loop.side = 0;
        LOOPS(how == 0 || how == 2);
    }
    /* 5 of 1000 is as much as the two may drift apart, and no less. */
    for (int beyond = 0; beyond < 2; beyond++)
        for (int below = 0; below < 2; below++) {
            hand_report.loop =
                (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
            hand_add(LOG_LOSS_SCALE, 1.0);
            hand_points[2][1][4].value = 1000.0;
            hand_column(LOG_GRAD_NORM)->first[0].value = 1.0;
            hand_column(LOG_GRAD_NORM)->first[1].value =
                below ? 995.0 + 0x1p-30 * !beyond : 1005.0 - 0x1p-30 * !beyond;
            assert_true(COMPARE_RATIO_DRIFT * 1000.0 == 5.0);
            assert_int_equal(norms_scaled(&hand_report, 5), !beyond);
            open_loop();
        }
    hand_report.loop = (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
    for (int beyond = -1; beyond <= 1; beyond++) { /* half a hundredth of 200 is 1, and no more */
        struct compare_column *const norm = hand_column(LOG_GRAD_NORM);
        hand_add(LOG_LOSS_SCALE, 1.0);
        hand_points[2][1][4].value = 200.0;
        norm->first[0].value = 1.0;
        norm->first[1].value = 201.0 + beyond * 0x1p-40;
        assert_int_equal(norms_scaled(&hand_report, 5), beyond < 0);
        norm->first[1].value = 199.0 - beyond * 0x1p-40;
        assert_int_equal(norms_scaled(&hand_report, 5), beyond < 0);
        open_loop();
        hand_report.loop.side = 1;
    }
    for (size_t row = 0; row < HAND_ROWS; row += HAND_ROWS - 1) { /* its first row, and its last */
        const uint64_t update = row + 1;
        struct compare_column *const norm = hand_column(LOG_GRAD_NORM);
        hand_add(LOG_LOSS_SCALE, 1.0);
        hand_points[2][1][row].value = 1024.0;
        norm->first_update = update;
        norm->first[0].value = 2.0;
        norm->first[1].value = 2048.0;
        assert_true(norms_scaled(&hand_report, update));
        hand_columns[2].side[1].count = row; /* where it has none of that update */
        assert_false(norms_scaled(&hand_report, update));
        open_loop();
        hand_report.loop.side = 1;
    }
    hand_column(LOG_GRAD_NORM)->pairs = 0; /* where they were not both recorded */
    assert_true(norms_scaled(&hand_report, 5));
    open_loop();
    hand_column(LOG_GRAD_NORM)->pairs = 1; /* one pair is recorded, and there is no loss scale */
    assert_false(norms_scaled(&hand_report, 5));
    open_loop();
    assert_false(norms_scaled(&hand_report, 4));
    for (int32_t kind = COMPARE_LOOP_KEEPS; kind <= COMPARE_LOOP_SCALED; kind++)
        for (int32_t side = 0; side < 2; side++) {
            hand_report.loop.kind = kind;
            hand_report.loop.side = side;
            compare_explain_loops(&hand_report);
            assert_int_equal(hand_report.cause, CAUSE_SCHEDULE);
            assert_non_null(strstr(hand_report.meaning, side == 0 ? "A c" : "B c"));
            assert_non_null(
                strstr(hand_report.next, kind == COMPARE_LOOP_SCALED ? "unscale_" : "zero_grad"));
        }
}

/* ---- two recordings ---- */

/* Two recordings that began alike and part in update 3, of which the loss differs from `first` on.
 */
static void open_recorded(uint64_t first) {
    hand_open();
    hand_report.recorded = 1;
    hand_report.roots = HAND_ROWS;
    hand_report.root_update = HAND_START;
    hand_report.where = (struct first_difference){"", ""};
    hand_report.orders = "";
    hand_report.known = (struct compare_recorded){.weights = COMPARE_ALIKE,
                                                  .frozen = COMPARE_ALIKE,
                                                  .batch = COMPARE_ALIKE,
                                                  .tensor = "",
                                                  .step = "",
                                                  .later = "",
                                                  .begins = 1};
    hand_add(LOG_LR_APPLIED, 1.0);
    hand_add(LOG_SKIPPED, 0.0);
    struct compare_column *const loss = hand_add(LOG_LOSS, 10.0);
    if (first > 0) hand_part(loss, first, 0.01);
}

static void explain_recorded(void) {
    assert_int_equal(compare_explain(&hand_report, &hand_arena), STATUS_OK);
}

static void require(int32_t cause, const char *words) {
    if (hand_report.cause != cause || strstr(hand_report.meaning, words) == NULL)
        fail_msg("cause %d: %s", (int)hand_report.cause, hand_report.meaning);
}

/* Generators that part alone are the cause, and one of several where anything else differs. */
static void validate_generators(void **state) {
    (void)state;
    static const char *const rivals[] = {"later batches",
                                         "LRs",
                                         "settings (configurations, above)",
                                         "the order of the loop",
                                         "skipped updates",
                                         "clipping (to 1 in A, none in B) from update 4 on"};
    open_recorded(0);
    hand_report.order_count = 0;
    hand_report.root_parts = 1u << COMPARE_PART_RNG;
    hand_report.settings_apart = 1; /* an evaluation is a setting of a trainer */
    explain_recorded();
    require(CAUSE_RNG, "No column shows that anything followed from it.");
    for (int rival = -1; rival < 6; rival++) {
        open_recorded(HAND_START + 1);
        hand_report.root_parts = 1u << COMPARE_PART_RNG;
        if (rival == 0) hand_report.known.batch_update = 4;
        if (rival == 1) hand_part(hand_column(LOG_LR_APPLIED), 5, 0.1);
        if (rival == 2) hand_report.settings_apart = 1;
        if (rival == 3) hand_report.orders = "update 1: A x, y; B y, x";
        if (rival == 4) hand_part(hand_column(LOG_SKIPPED), 6, 1.0);
        if (rival == 5) hand_report.known.later = rivals[5];
        explain_recorded();
        if (rival < 0) {
            require(CAUSE_RNG, "and what is drawn behind it, as dropout, is other numbers in both");
            continue;
        }
        require(-1, "But more differs: ");
        require(-1, rivals[rival]);
    }
    for (unsigned part = 0; part < COMPARE_PARTS; part++) { /* with another part it is none alone */
        open_recorded(HAND_START + 1);
        hand_report.root_parts = 1u << COMPARE_PART_RNG | 1u << part;
        assert_int_equal(compare_generators_part(&hand_report, hand_column(LOG_LOSS)),
                         part == COMPARE_PART_RNG);
    }
    open_recorded(HAND_START); /* the loss of that update was computed before they moved */
    hand_report.root_parts = 1u << COMPARE_PART_RNG;
    assert_false(compare_generators_part(&hand_report, hand_column(LOG_LOSS)));
}

/* Other weights are the cause where nothing else is recorded otherwise before the first step. */
static void validate_beginnings(void **state) {
    (void)state;
    static const char *const others[] = {"So do the batch of update 1: which",
                                         "the states of random generators: which",
                                         "the LR: which",
                                         "settings (configurations, above): which",
                                         "settings of the optimizer (configurations",
                                         "clipping (to 1 in A, none in B): which"};
    for (int other = -1; other < 6; other++) {
        open_recorded(1);
        hand_report.root_update = 1;
        hand_report.root_parts = 1u << COMPARE_PART_WEIGHTS | 1u << COMPARE_PART_LOSS;
        hand_report.known.weights = COMPARE_APART;
        if (other == 0) hand_report.known.batch = COMPARE_APART;
        if (other == 1) hand_report.root_parts |= 1u << COMPARE_PART_RNG;
        if (other == 2) hand_part(hand_column(LOG_LR_APPLIED), HAND_START, 0.1);
        if (other == 3) hand_report.settings_apart = 1;
        if (other == 4) hand_report.settings_apart = hand_report.optimizers_apart = 1;
        if (other == 5) hand_report.known.step = "clipping (to 1 in A, none in B)";
        explain_recorded();
        require(other < 0 ? CAUSE_INIT : -1,
                other < 0 ? "no later column can be read before they are equal" : others[other]);
    }
    open_recorded(1);
    hand_part(hand_column(LOG_LR_APPLIED), HAND_START + 1, 0.1); /* behind the first step */
    hand_report.known.frozen = COMPARE_APART;
    explain_recorded();
    require(CAUSE_INIT, ": those that are not trained (frozen, above)");
    open_recorded(1);
    hand_report.unlike = 1;
    hand_report.known.weights = COMPARE_APART;
    explain_recorded();
    assert_int_not_equal(hand_report.cause, CAUSE_INIT);
}

/* Two recordings that part in the step of update 3, from the same gradient; loss parts two updates
 * later. */
static void open_step(void) {
    open_recorded(HAND_START + 2);
    hand_report.where.phase = "optimize";
    hand_report.root_parts = 1u << COMPARE_PART_WEIGHTS;
    hand_report.same_gradient = 1;
}
#define STEP_PARTS(expected)                                                                       \
    IS(compare_step_parts(&hand_report, hand_column(LOG_LOSS)), expected, open_step)

static void validate_a_step_of_one_gradient(void **state) {
    (void)state;
    open_step();
    STEP_PARTS(1);
    hand_report.recorded = 0;
    STEP_PARTS(0);
    hand_report.root_update = 0;
    STEP_PARTS(0);
    hand_report.where.phase = "backward";
    STEP_PARTS(0);
    for (unsigned part = 0; part < COMPARE_PARTS; part++) {
        hand_report.root_parts |= 1u << part;
        STEP_PARTS(part == COMPARE_PART_RNG || part == COMPARE_PART_WEIGHTS);
    }
    for (uint64_t first = HAND_START; first < HAND_START + 4; first++)
        for (int same = 0; same < 2; same++) { /* an unknown gradient shows in the next update */
            hand_column(LOG_LOSS)->first_update = first;
            hand_report.same_gradient = same;
            STEP_PARTS(first > HAND_START + (same ? 0 : 1));
        }
    assert_true(compare_step_parts(&hand_report, NULL)); /* no loss shows it */
    hand_report.same_gradient = 0;
    assert_false(compare_step_parts(&hand_report, NULL));
    for (int how = 0; how < 8; how++) {
        open_step();
        if (how == 1 || how == 2) hand_report.optimizers_apart = 1;
        if (how == 2 || how == 3) hand_report.kernels_apart = 1;
        if (how == 4) hand_report.same_gradient = 0;
        if (how == 5) hand_part(hand_column(LOG_LR_APPLIED), 5, 0.1);
        if (how == 6) hand_report.known.step = "clipping (to 1 in A, none in B)";
        if (how >= 6) /* clipping that differs later, too, is that of the step */
            hand_report.known.later = "clipping (to 1 in A, none in B) from update 4 on";
        if (how == 1) hand_report.settings_apart = 1; /* which they are a part of */
        explain_recorded();
        static const char *const said[] = {
            "is another one (its class or arithmetic, decay, clipping, another kernel), or weights",
            "is another one, whose settings differ (configurations, above). Loss and gradient norm "
            "show it from update 5 on.",
            "whose settings and kernels differ (configurations, above)",
            "made by another kernel (fused, foreach: configurations, above), which rounds",
            "Batch, loss and LR of update 3 are the same, by their digests, and the weights behind "
            "its step are not (roots, above): its gradient, of which no digest was taken there",
            "Later more differs: LRs. Which of it",
            "Of that update's step the recordings say: clipping (to 1 in A, none in B).",
            "Later more differs: clipping (to 1 in A, none in B) from update 4 on."};
        require(how == 4 || how == 5 || how == 7 ? -1 : CAUSE_OPTIMIZER, said[how]);
        assert_int_equal(strstr(hand_report.next, "Step with the same kernel") != NULL, how == 3);
    }
}

/* Counts that grow by other numbers in each update say that one loop steps more often. */
static void validate_strides(void **state) {
    (void)state;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            const int told = a > 0 && b > 0 && a != b;
            open_step();
            hand_report.known.strides[0] = a;
            hand_report.known.strides[1] = b;
            explain_recorded();
            require(told ? CAUSE_SCHEDULE : CAUSE_OPTIMIZER,
                    !told ? "the optimizer's step is another one"
                    : a > b
                        ? "A's optimizer counts 2 steps in each update and B's 1: A steps more"
                        : "B's optimizer counts 2 steps in each update and A's 1: B steps more");
        }
}

/* A norm that agrees in many digits speaks for the gradient that has no digest, behind the first
 * step; the loss shows the step in the next update. */
static void validate_a_norm_that_agrees(void **state) {
    (void)state;
    for (int how = 0; how < 5; how++) {
        open_step();
        if (how != 1) hand_add(LOG_GRAD_NORM, 2.0);
        hand_report.same_gradient = 0;
        hand_report.root_update = how == 2 ? HAND_START : HAND_START + 1;
        hand_column(LOG_LOSS)->first_update = hand_report.root_update + 1;
        if (how == 3) hand_part(hand_column(LOG_GRAD_NORM), hand_report.root_update, 1e-9);
        for (size_t i = 0; how == 4 && i < HAND_ROWS; i++)
            hand_points[hand_column(LOG_GRAD_NORM) - hand_columns][0][i].quantum = 0.01;
        assert_int_equal(compare_step_parts(&hand_report, hand_column(LOG_LOSS)), how == 0);
        if (how > 0) continue;
        explain_recorded();
        require(-1, "the norm of its gradient is the same in all digits, and the optimizer's step");
    }
}

/* Two recordings whose loss and generators part in update 4, of which the batch is the same. */
static void open_draws(void) {
    open_recorded(HAND_START + 1);
    hand_report.root_update = HAND_START + 1;
    hand_report.where.phase = "forward";
    hand_report.root_parts =
        1u << COMPARE_PART_WEIGHTS | 1u << COMPARE_PART_LOSS | 1u << COMPARE_PART_RNG;
}
#define DRAWS_PART(expected)                                                                       \
    IS(compare_draws_part(&hand_report, hand_column(LOG_LOSS)), expected, open_draws)

static void validate_later_draws(void **state) {
    (void)state;
    open_draws();
    DRAWS_PART(1);
    assert_false(compare_draws_part(&hand_report, NULL));
    hand_report.recorded = 0;
    DRAWS_PART(0);
    hand_report.known.begins = 0;
    DRAWS_PART(0);
    hand_report.known.begins = HAND_START + 1; /* the first update of both: weights are not known */
    DRAWS_PART(0);
    hand_report.start = HAND_START + 1;
    DRAWS_PART(0);
    hand_report.known.batch = COMPARE_UNKNOWN;
    DRAWS_PART(0);
    hand_report.root_parts &= ~(1u << COMPARE_PART_RNG);
    DRAWS_PART(0);
    hand_report.root_parts &= ~(1u << COMPARE_PART_LOSS);
    DRAWS_PART(0);
    hand_report.root_update = HAND_START;
    DRAWS_PART(0);
    hand_part(hand_add(LOG_GRAD_NORM, 1.0), HAND_START + 1, 0.1);
    assert_false(compare_draws_part(&hand_report, hand_column(LOG_GRAD_NORM)));
    for (int settings = 0; settings < 2; settings++) {
        open_draws();
        hand_report.settings_apart = settings;
        explain_recorded();
        require(CAUSE_RNG, "Both are equal bit for bit up to update 3, by their digests, and the "
                           "batch of update 4 is the same.");
        assert_int_equal(strstr(hand_report.meaning, "See whether a setting") != NULL, settings);
    }
}

/* Labels are among the tensors that a model is given, and a setting that changes them is named. */
static void validate_labels(void **state) {
    (void)state;
    static const char *const said[] = {"other labels (another loss mask, or labels that one",
                                       "labels that one run alone gives to the model"};
    for (int how = 0; how < 4; how++) {
        open_recorded(0);
        hand_part(hand_column(LOG_LOSS), HAND_START, how % 2 == 0 ? 0.3 : 0.001);
        hand_report.where.phase = "fetch";
        hand_report.known.batch = COMPARE_APART;
        if (how >= 2) hand_report.labels_key = "args.completion_only_loss";
        explain_recorded();
        require(-1, said[how % 2]);
        const char *const named =
            "The configurations differ in args.completion_only_loss (above), which changes by "
            "itself what labels the model is given: the rows may be the same.";
        assert_int_equal(strstr(hand_report.meaning, named) != NULL, how >= 2);
        assert_non_null(strstr(hand_report.meaning, "more calls of the model in one"));
        assert_int_equal(strcmp(hand_report.next, "Make args.completion_only_loss equal and compare"
                                                  " again.") == 0,
                         how >= 2);
    }
}

/* A gap in the forward pass of equal weights and tensors is one of the computation. */
static void validate_computation(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        open_recorded(0);
        hand_part(hand_column(LOG_LOSS), HAND_START, how == 1 ? 0.3 : 0.001);
        if (how == 2) hand_report.root_parts = 1u << COMPARE_PART_RNG | 1u << COMPARE_PART_LOSS;
        if (how == 3) hand_report.known.weights = COMPARE_UNKNOWN;
        if (how == 4) hand_report.known.frozen = COMPARE_UNKNOWN;
        if (how == 5) hand_report.known.batch = COMPARE_UNKNOWN;
        if (how == 6) hand_report.root_update = HAND_START - 1;
        if (how == 7) hand_report.recorded = 0;
        if (how == 7) hand_report.roots = 0;
        explain_recorded();
        enum cause causes[COMPARE_CAUSES];
        const size_t count = compare_causes(&hand_report, causes);
        if (how == 1)
            require(-1, "by more than rounding usually makes");
        else if (how == 2)
            require(-1, "so do the states of random generators behind it");
        else
            require(CAUSE_DTYPE, how == 0
                                     ? "(autocast), kernels, or a loss of nearly the same value"
                                     : "if weights, data and loss are the same.");
        /* Of what draws, recordings tell, and logs do not. */
        assert_int_equal(count, how == 1 || how == 2 ? 0 : how == 7 ? 5 : 4);
        if (how == 7) assert_int_equal(causes[4], CAUSE_RNG);
        if (count > 0) assert_int_equal(causes[3], CAUSE_NORMALISATION);
        if (count > 0) assert_int_equal(causes[2], how == 0 ? CAUSE_OBJECTIVE : CAUSE_BATCH_SHAPE);
    }
}

/* An LR is no cause alone where more of its step was recorded otherwise. */
static void validate_steps(void **state) {
    (void)state;
    static const char step[] = "clipping (to 1 in A, none in B)";
    for (int how = 0; how < 4; how++) {
        open_recorded(HAND_START + 1);
        hand_report.where.phase = "optimize";
        hand_part(hand_column(LOG_LR_APPLIED), HAND_START, 0.1);
        hand_report.lr.state = COMPARE_LR_DIFFERENT;
        if (how == 1) hand_report.known.step = step;
        if (how == 2) hand_report.known.later = "clipping (to 1 in A, none in B) from update 5 on";
        if (how == 3) hand_report.unlike = 1;
        explain_recorded();
        if (how == 0) require(CAUSE_SCHEDULE, "another LR: the schedule.");
        if (how == 1) require(-1, "by what was recorded: clipping (to 1 in A, none in B). Which");
        if (how == 2)
            require(CAUSE_SCHEDULE, "Later clipping (to 1 in A, none in B) from update 5");
        if (how == 3) assert_null(strstr(hand_report.meaning, "clipping (to"));
    }
    open_recorded(HAND_START + 1); /* at equal LRs it is said, and the cause stays */
    hand_report.where.phase = "optimize";
    hand_report.known.step = step;
    hand_add(LOG_LR_LOGGED, 1.0);
    hand_report.lr.state = COMPARE_LR_SAME;
    explain_recorded();
    require(CAUSE_OPTIMIZER, "Of that update's step the recordings say: clipping (to 1 in A, none");
}

/* Weights, batch and loss of update 3 are equal, and its gradient norm is not: no other weights or
 * data may be offered. Where one of the digests is missing, they are. */
static void validate_a_gradient_of_equal_weights(void **state) {
    static const char equal[] = "The weights before update 1 and the tensors that the model is "
                                "given are the same, by their digests, and so is the loss; its "
                                "gradient differs";
    (void)state;
    for (int which = 0; which < 4; which++) {
        open_recorded(0);
        hand_part(hand_add(LOG_GRAD_NORM, 1.0), HAND_START, 2.0);
        if (which == 1) hand_report.known.weights = COMPARE_UNKNOWN;
        if (which == 2) hand_report.known.batch = COMPARE_UNKNOWN;
        if (which == 3) hand_report.known.frozen = COMPARE_UNKNOWN;
        explain_recorded();
        if ((strstr(hand_report.meaning, equal) != NULL) != (which == 0))
            fail_msg("%d: %s", which, hand_report.meaning);
        assert_int_equal(hand_report.cause, -1);
    }
}

/* One run stops drawing where the roots part. */
static void validate_stops(void **state) {
    (void)state;
    for (int32_t stops = 0; stops < 3; stops++)
        for (int how = 0; how < 4; how++) {
            open_draws();
            hand_report.known.stops = stops;
            hand_report.known.rng_update = how == 1 ? HAND_START : HAND_START + 1;
            if (how == 2) hand_report.settings_apart = 1;
            if (how == 3) { /* before the loss shows it */
                hand_column(LOG_LOSS)->first_update = HAND_START + 2;
                hand_report.root_parts = 1u << COMPARE_PART_RNG;
                hand_report.where.phase = "";
            }
            explain_recorded();
            const int told = stops > 0 && how != 1 && how != 2;
            assert_int_equal(hand_report.cause, CAUSE_RNG);
            assert_int_equal(strstr(hand_report.meaning, "A draws nothing") != NULL,
                             told && stops == 1);
            assert_int_equal(strstr(hand_report.meaning, "B draws nothing") != NULL,
                             told && stops == 2);
        }
}

/* ---- a loss that parts between two steps ---- */

static void open_between(void) {
    hand_open();
    hand_part(hand_add(LOG_LOSS, 10.0), 6, 0.5);
    hand_part(hand_add(LOG_GRAD_NORM, 2.0), 6, 0.1);
    hand_report.recorded = 1;
    hand_report.roots = 12;
    hand_report.root_update = 6;
    hand_report.root_parts = 1u << COMPARE_PART_LOSS | 1u << COMPARE_PART_WEIGHTS;
    hand_report.where.phase = "forward";
    hand_report.known.begins = 1;
    hand_report.known.batch = COMPARE_ALIKE;
    hand_report.known.step = hand_report.known.later = "";
}
#define BETWEEN(expected)                                                                          \
    IS(compare_loss_parts(&hand_report, hand_column(LOG_LOSS)), expected, open_between)
static void validate_loss_parts(void **state) {
    (void)state;
    open_between();
    BETWEEN(1);
    hand_report.recorded = 0;
    BETWEEN(0);
    hand_report.unlike = 1;
    BETWEEN(0);
    hand_report.root_update = 5; /* the step before it differs */
    BETWEEN(0);
    hand_report.known.begins = 0;
    BETWEEN(0);
    hand_report.known.begins = 6; /* no step is recorded before it */
    BETWEEN(0);
    hand_report.start = 6;
    BETWEEN(0);
    hand_report.known.batch = COMPARE_UNKNOWN;
    BETWEEN(0);
    hand_report.root_parts |= 1u << COMPARE_PART_RNG;
    BETWEEN(0);
    hand_report.root_parts = 1u << COMPARE_PART_WEIGHTS;
    BETWEEN(0);
    hand_report.where.phase = "fetch";
    BETWEEN(0);
    assert_false(compare_loss_parts(&hand_report, hand_column(LOG_GRAD_NORM)));
    assert_false(compare_loss_parts(&hand_report, NULL));
    for (int moves = 0; moves < 2; moves++) {
        open_between();
        hand_report.reference_apart = moves;
        assert_int_equal(compare_explain_loss(&hand_report, &hand_arena), STATUS_OK);
        assert_int_equal(hand_report.cause, moves ? CAUSE_REFERENCE : -1);
        assert_int_equal(strstr(hand_report.meaning, "sync_ref_model") != NULL, moves);
        assert_non_null(strstr(hand_report.meaning, "behind the step of update 5"));
    }
}

/* ---- the first update, one root, and none ---- */

static void validate_first_roots(void **state) {
    (void)state;
    for (uint64_t roots = 0; roots < 3; roots++)
        for (uint64_t root = 0; root < 6; root++)
            for (int how = 0; how < 3; how++) {
                hand_open();
                struct compare_column *const loss = hand_add(LOG_LOSS, 1.0);
                hand_part(loss, 4, 0.5);
                hand_report.recorded = how != 1;
                hand_report.roots = roots;
                hand_report.root_update = root;
                hand_report.root_parts = 1u << COMPARE_PART_RNG;
                hand_report.where.phase = how == 2 ? "forward" : "fetch";
                const int there = how == 0 && roots > 0 && root > 0;
                assert_int_equal(compare_parts_in(&hand_report, "fetch"),
                                 there && root <= HAND_START);
                assert_int_equal(compare_batches_part(&hand_report, loss), there && root <= 4);
                assert_int_equal(compare_root_differs(&hand_report, COMPARE_PART_RNG), root > 0);
                assert_false(compare_root_differs(&hand_report, COMPARE_PART_LR));
            }
}

static void validate_first_unseen(void **state) {
    (void)state;
    for (uint64_t update = 0; update < 4; update++)
        for (uint64_t differs = 1; differs < 4; differs++)
            for (uint64_t root = 0; root < 4; root++)
                for (int how = 0; how < 3; how++) {
                    int out = -1;
                    hand_open();
                    struct compare_column *const loss = hand_add(LOG_LOSS, 1.0);
                    hand_part(loss, differs, 0.5);
                    hand_report.recorded = how != 1;
                    hand_report.unlike = how == 2;
                    hand_report.root_update = root;
                    hand_report.unseen = (struct compare_unseen){.update = update, .updates = 1};
                    assert_int_equal(
                        compare_explain_unseen_forward(&hand_report, loss, &hand_arena, &out),
                        STATUS_OK);
                    assert_int_equal(out, how == 0 && update > 0 && update == differs &&
                                              (root == 0 || root == update));
                }
}

static void validate_norms_behind_the_start(void **state) {
    (void)state;
    for (uint64_t root = 1; root < HAND_ROWS; root++)
        for (uint64_t differs = 1; differs < HAND_ROWS; differs++) {
            hand_open();
            struct compare_column *const norm = hand_add(LOG_GRAD_NORM, 2.0);
            hand_report.root_update = root;
            assert_int_equal(norm_agrees(&hand_report), root > HAND_START);
            hand_part(norm, differs, 0.5);
            assert_int_equal(norm_agrees(&hand_report), root > HAND_START && differs > root);
        }
}

/* Batches that differ from update 1 on, and the LR of a parameter group alone. */
static void validate_rivals_of_the_first_update(void **state) {
    (void)state;
    for (uint64_t batch = 0; batch < 3; batch++) {
        char *text;
        hand_open();
        hand_report.orders = hand_report.known.later = "";
        hand_report.known.batch_update = batch;
        assert_int_equal(list_rivals(&hand_report, 0, &hand_arena, &text), STATUS_OK);
        assert_string_equal(text, batch > 0 ? "later batches" : "");
    }
    for (uint64_t differs = 1; differs < 6; differs++) {
        char *text;
        hand_open();
        hand_report.known.step = "";
        hand_report.lr.group_first = &hand_group;
        hand_group.column.first_update = differs;
        assert_int_equal(list_others(&hand_report, &hand_arena, &text), STATUS_OK);
        assert_string_equal(text, differs <= HAND_START ? "the LR" : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_first_roots),
                                       cmocka_unit_test(validate_first_unseen),
                                       cmocka_unit_test(validate_norms_behind_the_start),
                                       cmocka_unit_test(validate_rivals_of_the_first_update),
                                       cmocka_unit_test(validate_loss_parts),
                                       cmocka_unit_test(validate_stops),
                                       cmocka_unit_test(validate_strides),
                                       cmocka_unit_test(validate_a_norm_that_agrees),
                                       cmocka_unit_test(validate_a_gradient_of_equal_weights),
                                       cmocka_unit_test(validate_generators),
                                       cmocka_unit_test(validate_beginnings),
                                       cmocka_unit_test(validate_computation),
                                       cmocka_unit_test(validate_labels),
                                       cmocka_unit_test(validate_a_step_of_one_gradient),
                                       cmocka_unit_test(validate_later_draws),
                                       cmocka_unit_test(validate_steps),
                                       cmocka_unit_test(validate_draws),
                                       cmocka_unit_test(validate_loops)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
