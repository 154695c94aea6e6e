/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What two recordings say of weights before the first update, of the batch, and of the step of the
 * update in which they part, of records made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_recorded.c" /* for the parts, which no other file asks for */

enum { UPDATES = 3, TENSORS = 3, PHASES = 3 };
enum phase { CLIP, OPTIMIZE, ZERO };

static const char *const phase_names[PHASES] = {"clip", "optimize", "zero"};
static const char *const tensor_names[TENSORS] = {"a", "b", "c"};

struct side {
    struct trace_run run;
    struct trace_foreign foreign;
    struct record records[UPDATES];
    int64_t places[UPDATES][PHASES][RECORD_PHASES];
    double groups[UPDATES][2][RECORD_GROUPS];
    const char *initial[TENSORS];
};

static struct side sides[2];
static struct arena arena;
static struct compare_recorded known;

/* Two recordings of one training, which clips to 0.5 where its norm is 2. */
static void open_sides(void) {
    memset(sides, 0, sizeof sides);
    for (size_t s = 0; s < 2; s++) {
        struct side *const of = &sides[s];
        of->run.plan.configuration = "optimizer.0: AdamW\nfrozen: 12\n";
        of->run.plan.shape =
            (struct record_shape){.phases = PHASES, .tensors = TENSORS, .groups = 2};
        of->run.plan.phases = phase_names;
        of->run.plan.tensors = tensor_names;
        of->run.plan.foreign = &of->foreign;
        of->run.records = of->records;
        of->run.updates = UPDATES;
        of->foreign.initial = of->initial;
        for (size_t t = 0; t < TENSORS; t++)
            of->initial[t] = "11";
        for (size_t i = 0; i < UPDATES; i++) {
            struct record *const record = &of->records[i];
            record->step = i + 1;
            record->phase_places = of->places[i];
            record->groups = of->groups[i];
            for (int p = 0; p < PHASES; p++)
                of->places[i][p][PHASE_PLACE] = p;
            record->reals[REAL_GRAD_NORM] = 2.0;
            record->reals[REAL_CLIP_COEF] = 0.25;
            record->integers[INTEGER_OPTIMIZER_T] = (int64_t)i + 1;
            memset(record->digests[DIGEST_BATCH], 7, RECORD_DIGEST_BYTES);
            for (size_t g = 0; g < 2; g++)
                of->groups[i][g][GROUP_WD_APPLIED] = 0.1;
        }
    }
}

static void hold(uint64_t first) {
    assert_int_equal(compare_recordings(&sides[0].run, &sides[1].run, first, &arena, &known),
                     STATUS_OK);
}

static void validate_weights(void **state) {
    (void)state;
    open_sides();
    hold(1);
    assert_int_equal(known.weights, COMPARE_ALIKE);
    assert_int_equal(known.frozen, COMPARE_ALIKE);
    assert_int_equal(known.begins, 1);
    assert_string_equal(known.tensor, "");
    sides[1].initial[1] = sides[1].initial[2] = "22";
    hold(0); /* also where nothing else differs */
    assert_int_equal(known.weights, COMPARE_APART);
    assert_int_equal(known.tensors, 2);
    assert_string_equal(known.tensor, "b");
    sides[0].initial[1] = sides[0].initial[2] = ""; /* what was not taken tells nothing */
    hold(1);
    assert_int_equal(known.weights, COMPARE_UNKNOWN);
    sides[1].initial[0] = "22";
    hold(1);
    assert_int_equal(known.weights, COMPARE_APART);
    assert_string_equal(known.tensor, "a");
    for (size_t s = 0; s < 2; s++) {
        open_sides();
        sides[s].foreign.initial = NULL; /* a recording of before */
        hold(1);
        assert_int_equal(known.weights, COMPARE_UNKNOWN);
        open_sides();
        sides[s].initial[0] = "22";
        for (size_t i = 0; i < UPDATES; i++) /* one goes on from a checkpoint */
            sides[s].records[i].step += 4;
        hold(1);
        assert_int_equal(known.weights, COMPARE_UNKNOWN);
        assert_int_equal(known.begins, 0);
        open_sides();
        sides[s].run.updates = 0;
        hold(0);
        assert_int_equal(known.weights, COMPARE_UNKNOWN);
        assert_string_equal(known.step, "");
    }
    static const struct {
        const char *line[2];
        int32_t frozen;
    } lines[] = {
        {{"frozen: 1\n", "frozen: 1\n"}, COMPARE_ALIKE},
        {{"frozen: 1\n", "frozen: 2\n"}, COMPARE_APART},
        {{"frozen: 1\n", "x: 2\n"}, COMPARE_UNKNOWN},
        {{"x: 1\n", "x: 2\n"}, COMPARE_ALIKE}, /* none is frozen */
        {{"frozen: 1\nnot_recorded: b\n", "frozen: 1\n"}, COMPARE_UNKNOWN},
        {{"frozen: 1\nnot_recorded: b\n", "frozen: 1\nnot_recorded: b\n"}, COMPARE_UNKNOWN},
        {{"frozen: 1\nnot_recorded: b\n", "frozen: 1\nnot_recorded: c\n"}, COMPARE_UNKNOWN}};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        open_sides();
        for (size_t s = 0; s < 2; s++)
            sides[s].run.plan.configuration = lines[i].line[s];
        hold(1);
        if (known.frozen != lines[i].frozen) fail_msg("line %zu", i);
    }
}

static void validate_batches(void **state) {
    (void)state;
    for (size_t from = 0; from < UPDATES; from++)
        for (uint64_t first = 1; first <= UPDATES; first++) {
            open_sides();
            for (size_t i = from; i < UPDATES; i++)
                sides[1].records[i].digests[DIGEST_BATCH][31] = 1;
            hold(first);
            assert_int_equal(known.batch_update, from + 1);
            assert_int_equal(known.batch, first > from ? COMPARE_APART : COMPARE_ALIKE);
            memset(sides[0].records[first - 1].digests[DIGEST_BATCH], 0, RECORD_DIGEST_BYTES);
            hold(first);
            assert_int_equal(known.batch, COMPARE_UNKNOWN);
        }
}

#define NONE ((double)NAN)

/* Each row is one update of both: coefficient, norm and the place of clip, where optimize is 1. */
static void validate_clipping(void **state) {
    (void)state;
    static const struct {
        struct {
            double coefficient, norm;
            int64_t place;
        } of[2];
        const char *words;
    } cases[] = {{{{0.25, 2.0, 0}, {0.25, 2.0, 0}}, ""},
                 {{{0.25, 2.0, 0}, {NONE, 2.0, -1}}, "clipping (to 0.5 in A, none in B)"},
                 {{{0.25, 2.0, 0}, {NONE, NONE, -1}}, "clipping (to 0.5 in A, none in B)"},
                 {{{0.25, 2.0, 0}, {NONE, 2.0, 2}},
                  "clipping (to 0.5 in A, none in B)"},  /* behind the step */
                 {{{0.25, 2.0, 0}, {NONE, 2.0, 0}}, ""}, /* it clips, and nobody knows to what */
                 {{{1.0, 2.0, 0}, {NONE, 2.0, -1}}, ""}, /* neither is moved */
                 {{{0.9999999, 2.0, 0}, {NONE, 2.0, -1}}, ""},
                 {{{0.25, 2.0, 0}, {0.5, 2.0, 0}}, "clipping (to 0.5 in A, to 1 in B)"},
                 {{{0.25, 2.0, 0}, {0.2, 2.5, 0}}, ""}, /* one limit, of other norms */
                 {{{0.25, 2.0, 0}, {0.25, 2.001, 0}}, ""},
                 {{{0.25, 2.0, 0}, {0.25, 2.003, 0}}, "clipping (to 0.5 in A, to 0.5008 in B)"},
                 {{{0.25, 2.0, 0}, {1.0, 2.0, 0}}, "clipping (to 0.5 in A, not at this norm in B)"},
                 {{{0.25, 2.0, 0}, {1.0, 0.4, 0}}, ""}, /* its norm is below that limit */
                 {{{0.25, NONE, 0}, {0.25, NONE, 0}}, ""},
                 {{{0.25, NONE, 0}, {0.5, 2.0, 0}}, "clipping (by 0.25 in A, to 1 in B)"},
                 {{{0.25, NONE, 0}, {1.0, 2.0, 0}}, ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t turned = 0; turned < 2; turned++) {
            open_sides();
            for (size_t s = 0; s < 2; s++) {
                struct side *const of = &sides[turned ? 1 - s : s];
                of->records[0].reals[REAL_CLIP_COEF] = cases[i].of[s].coefficient;
                of->records[0].reals[REAL_GRAD_NORM] = cases[i].of[s].norm;
                of->places[0][CLIP][PHASE_PLACE] = cases[i].of[s].place;
                of->places[0][OPTIMIZE][PHASE_PLACE] = 1;
            }
            hold(1);
            if ((known.step[0] == '\0') != (cases[i].words[0] == '\0')) fail_msg("case %zu", i);
            if (!turned) assert_string_equal(known.step, cases[i].words);
            assert_string_equal(known.later, "");
        }
    open_sides(); /* a run that names no such phase says nothing */
    sides[1].run.plan.shape.phases = 0;
    for (size_t i = 0; i < UPDATES; i++)
        sides[1].records[i].reals[REAL_CLIP_COEF] = NONE;
    hold(1);
    assert_string_equal(known.step, "");
}

static void validate_steps(void **state) {
    (void)state;
    open_sides();
    sides[1].groups[0][1][GROUP_WD_APPLIED] = 0.2;
    hold(1);
    assert_string_equal(known.step, "weight decay (0.1 in A, 0.2 in B)");
    sides[1].records[0].integers[INTEGER_OPTIMIZER_T] = 5;
    sides[1].records[0].reals[REAL_CLIP_COEF] = 0.5;
    hold(1);
    assert_string_equal(known.step,
                        "clipping (to 0.5 in A, to 1 in B), weight decay (0.1 in A, 0.2 "
                        "in B), the optimizer's count of updates (1 in A, 5 in B)");
    hold(2); /* what lies before the first difference, or behind it, is not of its step */
    assert_string_equal(known.step, "");
    for (size_t s = 0; s < 2; s++) {
        open_sides();
        sides[s].groups[0][1][GROUP_WD_APPLIED] = NONE;
        sides[s].records[0].integers[INTEGER_OPTIMIZER_T] = -1;
        hold(1);
        assert_string_equal(known.step, "");
    }
    open_sides();
    sides[1].records[2].reals[REAL_CLIP_COEF] = 0.5;
    hold(1);
    assert_string_equal(known.step, "");
    assert_string_equal(known.later, "clipping (to 0.5 in A, to 1 in B) from update 3 on");
    assert_int_equal(known.later_update, 3);
}

/* The first update with other states of generators, and the first with other counts. */
static void validate_first(void **state) {
    (void)state;
    for (size_t from = 0; from < UPDATES; from++)
        for (uint64_t first = 0; first <= UPDATES; first++) {
            open_sides();
            for (size_t i = from; i < UPDATES; i++) {
                memset(sides[0].records[i].digests[DIGEST_RNG], 3, RECORD_DIGEST_BYTES);
                memset(sides[1].records[i].digests[DIGEST_RNG], 4, RECORD_DIGEST_BYTES);
                sides[1].records[i].integers[INTEGER_OPTIMIZER_T] = 9;
            }
            hold(first);
            assert_int_equal(known.rng_update, from + 1);
            assert_int_equal(known.count_update, from + 1);
            assert_int_equal(known.count[0], from + 1);
            assert_int_equal(known.count[1], 9);
            for (size_t i = 0; i < UPDATES; i++) { /* what was not recorded is no other one */
                memset(sides[1].records[i].digests[DIGEST_RNG], 0, RECORD_DIGEST_BYTES);
                sides[1].records[i].integers[INTEGER_OPTIMIZER_T] = -1;
            }
            hold(first);
            assert_int_equal(known.rng_update, 0);
            assert_int_equal(known.count_update, 0);
        }
}

/* States that stand still are those of a run that stopped drawing. */
static void validate_stops(void **state) {
    (void)state;
    static const uint8_t draws[][2][UPDATES] = {
        {{1, 2, 3}, {1, 2, 2}}, {{1, 2, 2}, {1, 2, 3}}, /* B stops, and A */
        {{1, 2, 3}, {1, 2, 4}}, {{1, 1, 2}, {1, 1, 1}}, /* both draw; both had not drawn */
        {{1, 2, 3}, {2, 2, 2}}, {{1, 2, 3}, {1, 1, 1}}, /* they parted before */
        {{1, 2, 2}, {1, 2, 2}}};
    static const int32_t stops[] = {2, 1, 0, 0, 0, 0, 0};
    for (size_t c = 0; c < COUNT_OF(draws); c++) {
        open_sides();
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < UPDATES; i++)
                memset(sides[s].records[i].digests[DIGEST_RNG], draws[c][s][i],
                       RECORD_DIGEST_BYTES);
        hold(1);
        if (known.stops != stops[c]) fail_msg("case %zu", c);
        if (stops[c] == 0) continue;
        sides[0].records[1].step = sides[0].records[0].step; /* the row before is another update */
        hold(1);
        assert_int_equal(known.stops, 0);
    }
}

/* What the count grows by, in each update. */
static void validate_strides(void **state) {
    (void)state;
    for (size_t s = 0; s < 2; s++)
        for (int how = 0; how < 6; how++) {
            open_sides();
            for (size_t i = 0; i < UPDATES; i++)
                sides[s].records[i].integers[INTEGER_OPTIMIZER_T] = 1 + 2 * (int64_t)i;
            if (how == 1) sides[s].records[2].integers[INTEGER_OPTIMIZER_T] = 4; /* by 1 once */
            if (how == 2) sides[s].records[0].integers[INTEGER_OPTIMIZER_T] = -1;
            if (how == 3) sides[s].records[2].step = 4;
            if (how == 4) sides[s].run.updates = 2;
            if (how == 5) /* it stands still */
                for (size_t i = 0; i < UPDATES; i++)
                    sides[s].records[i].integers[INTEGER_OPTIMIZER_T] = 1;
            hold(1);
            assert_int_equal(known.strides[s], how == 0 ? 2 : 0);
            assert_int_equal(known.strides[1 - s], 1);
        }
}

static void validate_parts(void **state) {
    (void)state;
    static const enum record_digest digests[] = {DIGEST_BATCH, DIGEST_RNG, DIGEST_WEIGHTS,
                                                 DIGEST_LR};
    static const char *const names[] = {"batch", "rng", "weights", "lr", "loss"};
    for (unsigned parts = 0; parts < 32; parts++) {
        open_sides();
        struct record *const record = &sides[1].records[0];
        for (unsigned i = 0; i < 4; i++)
            if (parts >> i & 1u) record->digests[digests[i]][i] ^= 9;
        memset(sides[0].records[1].digests[DIGEST_BATCH], 0, RECORD_DIGEST_BYTES);
        assert_int_equal(compare_root_parts(&sides[0].records[1], record) & 1u, 0);
        assert_int_equal(compare_root_parts(record, &sides[0].records[1]) & 1u, 0);
        if (parts >> 4 & 1u) record->reals[REAL_LOSS] = -0.0; /* by its bits */
        assert_int_equal(compare_root_parts(&sides[0].records[0], record), parts);
    }
    for (unsigned i = 0; i < COMPARE_PARTS; i++)
        assert_string_equal(compare_part_names[i], names[i]);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

/* Each threshold to the last bit: thousandths of a limit of 1000 are whole numbers. */
static void validate_edges_of_limits(void **state) {
    (void)state;
    static const struct {
        double of[2][2]; /* coefficient and norm */
        int apart;
    } cases[] = {{{{0.5, 2000.0}, {0.5, 1998.0}}, 0},
                 {{{0.5, 2000.0}, {0.5, 1997.9999}}, 1},
                 {{{1e-3, NONE}, {0.0, NONE}}, 0},
                 {{{1.0001e-3, NONE}, {0.0, NONE}}, 1},
                 {{{0.5, 2000.0}, {1.0, (1.0 + 1e-3) * 1000.0}}, 0},
                 {{{0.5, 2000.0}, {1.0, 1001.001}}, 1},
                 {{{1.0 - 1e-5, 2.0}, {1.0, 9.0}}, 0}, /* it clips nothing */
                 {{{1.0 - 2e-5, 2.0}, {1.0, 9.0}}, 1}};
    assert_true(1e-3 * 1000.0 == 1.0);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t turned = 0; turned < 2; turned++) {
            open_sides();
            for (size_t s = 0; s < 2; s++) {
                struct record *const record = &sides[turned ? 1 - s : s].records[0];
                record->reals[REAL_CLIP_COEF] = cases[i].of[s][0];
                record->reals[REAL_GRAD_NORM] = cases[i].of[s][1];
            }
            hold(1);
            if ((known.step[0] != '\0') != cases[i].apart) fail_msg("case %zu", i);
        }
    struct record *const record = &sides[0].records[0];
    record->reals[REAL_GRAD_NORM] = 2.0;
    record->reals[REAL_CLIP_COEF] = 1.0 - 1e-5;
    assert_true(isnan(clipping_of(&sides[0].run, record).limit));
    record->reals[REAL_CLIP_COEF] = nextafter(1.0 - 1e-5, 0.0);
    assert_true(clipping_of(&sides[0].run, record).limit == 2.0 * nextafter(1.0 - 1e-5, 0.0));
    /* Places of clip and step; INT64_MIN is a phase that was not seen or has no name. */
    record->reals[REAL_CLIP_COEF] = NONE;
    static const int64_t places[] = {INT64_MIN, -1, 0, 1, 2};
    for (size_t c = 0; c < COUNT_OF(places); c++)
        for (size_t o = 0; o < COUNT_OF(places); o++) {
            sides[0].places[0][CLIP][PHASE_PLACE] = places[c];
            sides[0].places[0][OPTIMIZE][PHASE_PLACE] = places[o];
            const int none = c == 1 || (c >= 2 && o >= 2 && c > o);
            const struct clipping of = clipping_of(&sides[0].run, record);
            assert_true(of.none == none && of.known == none);
        }
}

/* Counts that begin at 0, groups that one side lacks, and rows without enough in front of them. */
static void validate_edges_of_counts(void **state) {
    (void)state;
    open_sides();
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < UPDATES; i++)
            sides[s].records[i].integers[INTEGER_OPTIMIZER_T] = (int64_t)(i + s);
    hold(1);
    assert_string_equal(known.step, "the optimizer's count of updates (0 in A, 1 in B)");
    assert_true(known.strides[0] == 1 && known.strides[1] == 1);
    assert_true(known.count_update == 1 && known.count[0] == 0 && known.count[1] == 1);
    for (size_t s = 0; s < 2; s++) {
        open_sides();
        sides[1].groups[0][1][GROUP_WD_APPLIED] = 0.2;
        sides[s].run.plan.shape.groups = 1;
        hold(1);
        assert_string_equal(known.step, "");
    }
    open_sides();
    for (size_t i = 0; i < UPDATES; i++)
        for (size_t s = 0; s < 2; s++)
            memset(sides[s].records[i].digests[DIGEST_RNG], i == 2 && s == 0 ? 2 : (int)i + 1,
                   RECORD_DIGEST_BYTES);
    assert_int_equal(who_stops(&sides[0].run, 2, &sides[1].run, 2), 1);
    for (uint64_t row = 0; row < 2; row++) {
        assert_int_equal(who_stops(&sides[0].run, row, &sides[1].run, 2), 0);
        assert_int_equal(who_stops(&sides[0].run, 2, &sides[1].run, row), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_edges_of_limits), cmocka_unit_test(validate_edges_of_counts),
        cmocka_unit_test(validate_weights),         cmocka_unit_test(validate_batches),
        cmocka_unit_test(validate_clipping),        cmocka_unit_test(validate_steps),
        cmocka_unit_test(validate_parts),           cmocka_unit_test(validate_first),
        cmocka_unit_test(validate_stops),           cmocka_unit_test(validate_strides),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
