/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What one of two loops does otherwise, by the places of their phases: once more for random places,
 * of runs whose updates are not all the same and of which either may end first. Behind the last row
 * of each run lies one that would be told, were it read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/compare.h"
#include "forensics/compare_foreign.h"
#include "tests/base/helper_draws.h"

enum { UPDATES = 4, PHASES = 5, CASES = 60000 };
enum phase { BACKWARD, UNSCALE, CLIP, OPTIMIZE, ZERO };

static const char *const phases[PHASES] = {"backward", "unscale", "clip", "optimize", "zero"};

struct loop {
    struct trace_run run;
    struct record records[UPDATES + 1];
    int64_t places[UPDATES + 1][PHASES][RECORD_PHASES];
    const char *names[PHASES];
    int named[PHASES]; /* where a phase stands among the names; -1: nowhere */
};

/* Places are of runs of other programs. */
static const struct trace_foreign foreign = {.digest = ""};

static void make_loop(struct loop *of, struct draws *draws) {
    memset(of, 0, sizeof *of);
    for (int p = 0; p < PHASES; p++) {
        of->named[p] = -1;
        if (draws_pick(draws, 8) == 0) continue;
        of->named[p] = (int)of->run.plan.shape.phases;
        of->names[of->run.plan.shape.phases++] = phases[p];
    }
    of->run.plan.foreign = &foreign;
    of->run.plan.phases = of->names;
    of->run.records = of->records;
    of->run.updates = draws_pick(draws, UPDATES + 1);
    uint64_t step = draws_pick(draws, 2);
    for (size_t i = 0; i <= UPDATES; i++) {
        step += draws_pick(draws, 6) == 0 ? 2 : 1;
        of->records[i].step = step;
        of->records[i].phase_places = of->places[i];
        for (uint32_t p = 0; p < PHASES; p++) {
            of->places[i][p][PHASE_PLACE] = (int64_t)draws_pick(draws, 6) - 1;
            for (uint32_t q = 0; q < p; q++) /* two phases never begin at one place */
                while (of->places[i][p][PHASE_PLACE] >= 0 &&
                       of->places[i][p][PHASE_PLACE] == of->places[i][q][PHASE_PLACE])
                    of->places[i][p][PHASE_PLACE] += 6;
        }
    }
}

/* -2: no such phase; -1: it did not run in this update. */
static int64_t place(const struct loop *of, size_t i, enum phase phase) {
    return of->named[phase] < 0 ? -2 : of->places[i][of->named[phase]][PHASE_PLACE];
}

/* 1: the loop does it; 0: it does not; -1: nobody knows. */
static int does_it(const struct loop *of, size_t i, int32_t kind) {
    const int64_t backward = place(of, i, BACKWARD), step = place(of, i, OPTIMIZE);
    if (backward < 0 || step < 0) return -1;
    if (kind == COMPARE_LOOP_SCALED) {
        const int64_t clip = place(of, i, CLIP), unscale = place(of, i, UNSCALE);
        if (clip < 0 || unscale < 0) return -1;
        return clip < unscale;
    }
    const int64_t zero = place(of, i, ZERO);
    if (kind == COMPARE_LOOP_CLEARS) {
        if (of->named[ZERO] < 0) return -1;
        return zero > backward && zero < step;
    }
    if (i + 1 >= of->run.updates || of->named[ZERO] < 0) return -1;
    const int64_t next = place(of, i + 1, BACKWARD), before = place(of, i + 1, ZERO);
    if (next < 0) return -1;
    if (zero > backward) return 0;
    return before >= 0 && before < next ? 0 : 1;
}

static void corroborate_loops(void **state) {
    (void)state;
    uint32_t met[4] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x100b5), .number = number};
        struct loop loops[2];
        make_loop(&loops[0], &draws);
        make_loop(&loops[1], &draws);
        struct compare_loop expected = {COMPARE_LOOP_ALIKE, 0, 0};
        for (size_t i = 0; i < loops[0].run.updates && expected.kind == COMPARE_LOOP_ALIKE; i++)
            for (size_t j = 0; j < loops[1].run.updates; j++) {
                if (loops[0].records[i].step != loops[1].records[j].step) continue;
                for (int32_t kind = COMPARE_LOOP_KEEPS; kind <= COMPARE_LOOP_SCALED; kind++) {
                    const int a = does_it(&loops[0], i, kind), b = does_it(&loops[1], j, kind);
                    if (a < 0 || b < 0 || a == b || expected.kind != COMPARE_LOOP_ALIKE) continue;
                    expected =
                        (struct compare_loop){kind, a == 1 ? 0 : 1, loops[0].records[i].step};
                }
            }
        const struct compare_loop found = compare_loops(&loops[0].run, &loops[1].run);
        assert_int_equal(found.kind, expected.kind);
        assert_int_equal(found.side, expected.side);
        assert_int_equal(found.update, expected.update);
        met[found.kind]++;
    }
    for (size_t kind = 0; kind < COUNT_OF(met); kind++)
        assert_true(met[kind] > CASES / 100);
}

/* Where one of two recordings has no forward call in training: of places that are written out,
 * since the rule is short. Each letter is an update: f forward and backward, b backward alone, .
 * neither.
 */
static void validate_unseen_forward_calls(void **state) {
    (void)state;
    enum { ROWS = 5 };
    static const char *const names[2] = {"backward", "forward"};
    static const struct {
        const char *a, *b;
        struct compare_unseen expected;
    } cases[] = {
        {"fffff", "fffff", {0, 0, 0, 0}}, {"bbbbb", "bbbbb", {0, 0, 0, 0}},
        {"fffff", "ffbbb", {3, 3, 1, 0}}, {"ffbbf", "fffff", {3, 2, 0, 0}},
        {"bbbbb", "fffff", {1, 5, 0, 1}}, {"fffff", "b", {1, 1, 1, 1}},
        {"fffff", "..bbb", {3, 3, 1, 1}}, /* no backward pass: nothing is known */
        {"fbfff", "ffbbb", {2, 1, 0, 0}}, /* what the other one lacks later is not counted */
        {"..fff", "fffff", {0, 0, 0, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trace_run runs[2];
        struct record rows[2][ROWS];
        int64_t places[2][ROWS][2][RECORD_PHASES];
        memset(runs, 0, sizeof runs);
        memset(rows, 0, sizeof rows);
        memset(places, 0, sizeof places);
        for (int s = 0; s < 2; s++) {
            const char *const text = s == 0 ? cases[i].a : cases[i].b;
            runs[s].plan.phases = names;
            runs[s].plan.shape.phases = 2;
            runs[s].records = rows[s];
            runs[s].updates = strlen(text);
            for (size_t k = 0; k < strlen(text); k++) {
                rows[s][k].step = k + 1;
                rows[s][k].phase_places = places[s][k];
                places[s][k][0][PHASE_PLACE] = text[k] == '.' ? -1 : 1;
                places[s][k][1][PHASE_PLACE] = text[k] == 'f' ? 0 : -1;
            }
        }
        const struct compare_unseen found = compare_unseen_of(&runs[0], &runs[1]);
        if (found.update != cases[i].expected.update ||
            found.updates != cases[i].expected.updates || found.side != cases[i].expected.side ||
            found.never != cases[i].expected.never)
            fail_msg("case %zu: %d %d %d %d", i, (int)found.update, (int)found.updates, found.side,
                     found.never);
        runs[1].plan.shape.phases = 1; /* a run that names no forward phase says nothing */
        assert_int_equal(compare_unseen_of(&runs[0], &runs[1]).update, 0);
        assert_int_equal(compare_unseen_of(&runs[1], &runs[0]).update, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_loops),
        cmocka_unit_test(validate_unseen_forward_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
