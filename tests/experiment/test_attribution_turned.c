/* SPDX-License-Identifier: Apache-2.0
 * labels: repro whole
 * Shares of noisy arms must not depend on how a pair is told. Drawn pairs in mode `shuffled` are
 * judged as they are, with arms and keys by other names and in another order, with a key more that
 * does nothing, and with the arms exchanged. Names, and a key that both arms have, leave every seed
 * of the orders as it was, so all figures must be the same to the bit. Where one arm alone has the
 * key, or the arms change places, other orders are drawn, and the intervals of the two verdicts
 * must meet. test_attribution_word.c and interventions.py hold the same of exact arms. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "base/macro.h"
#include "determinism/philox.h"
#include "tests/base/helper_size.h"
#include "tests/experiment/helper_experiment.h"

enum { STEPS = 1, PAIRS = 12, USUAL = 2, SANITIZED = 1, CAUSES = 2 };

/* ---- pairs ---- */

/* What the test arm can have of its own: a section, and the same keys in another order. */
static const struct difference {
    const char *cause, *there, *back;
} differences[] = {
    {"schedule", "optimizer: {lr: 1.3e-2, eps: 1e-8}", "optimizer: {eps: 1e-8, lr: 1.3e-2}"},
    {"optimizer", "clip: {max_norm: 2e-2, eps: 1e-3}", "clip: {eps: 1e-3, max_norm: 2e-2}"},
    {"init", "init: {std: 0.11, seed: 5}", "init: {seed: 5, std: 0.11}"},
    {"normalisation", "loss: {divisor: sum-of-means}", "loss: {divisor: sum-of-means}"},
    {"data-order", "data: {shuffle: false, seed: 9}", "data: {seed: 9, shuffle: false}"},
    {"rng", "dropout: {seed: 3, residual: 0.1}", "dropout: {residual: 0.1, seed: 3}"},
};

/* Keys that do nothing: the length of a schedule that is constant, a bound that no gradient
 * reaches, and threads, on which no bit depends. The first of another cause is taken. */
static const struct inert {
    const char *cause, *before, *after;
} inert[] = {
    {"schedule", "total: 50", "total: 77"},
    {"optimizer", "max_norm: 1e5", "max_norm: 1e6"},
    {"nondeterminism", "threads: 1", "threads: 2"},
};
static const char *const inert_sections[] = {"schedule", "clip", "numerics"};

enum turn { AS_DRAWN = 0, RENAMED, EXCHANGED, INERT_IN_BOTH, INERT_IN_TEST, FORMS };
static const char *const form_names[FORMS] = {
    "as drawn", "renamed", "exchanged", "a key more in both arms", "a key more in the test arm"};

struct pair {
    const struct difference *of[CAUSES];
    size_t inert;
};

static uint32_t draw_below(uint32_t pair, uint32_t n, uint32_t bound) {
    const struct philox_block at = {{pair, n, 0u, 18u}};
    return (uint32_t)(((uint64_t)philox_draw(at, 20261126u).word[0] * bound) >> 32);
}

static struct pair draw_pair(uint32_t number) {
    struct pair pair = {.inert = 0};
    const uint32_t first = draw_below(number, 0, COUNT_OF(differences)),
                   other = draw_below(number, 1, COUNT_OF(differences) - 1);
    pair.of[0] = &differences[first];
    pair.of[1] = &differences[other + (other >= first)];
    while (strcmp(inert[pair.inert].cause, pair.of[0]->cause) == 0 ||
           strcmp(inert[pair.inert].cause, pair.of[1]->cause) == 0)
        pair.inert++;
    return pair;
}

/* Writes the scenario of a pair in one of its forms. */
static void write_pair(const struct pair *pair, enum turn form, char *out, size_t size) {
    const char *told[COUNT_OF(inert)], *own = "", *names[2] = {"baseline", "test"};
    char arms[2][512];
    for (size_t i = 0; i < COUNT_OF(inert); i++)
        told[i] = form == INERT_IN_BOTH && i == pair->inert ? inert[i].after : inert[i].before;
    char more[64];
    snprintf(more, sizeof more, ", %s: {%s}", inert_sections[pair->inert],
             inert[pair->inert].after);
    if (form == INERT_IN_TEST) own = more;
    snprintf(arms[0], sizeof arms[0], "{}");
    snprintf(arms[1], sizeof arms[1], "{%s, %s%s}",
             form == RENAMED ? pair->of[1]->back : pair->of[0]->there,
             form == RENAMED ? pair->of[0]->back : pair->of[1]->there, own);
    if (form == RENAMED) names[0] = "zeta", names[1] = "alpha";
    const int length = snprintf(
        out, size,
        "common: {batch: {size: 4, micro: 2, pad: 4}, model: {layers: 1, hidden: 8, heads: 2, "
        "mlp: 12, vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-2}, dropout: {residual: 0.05}, "
        "dpo: {reference_compute: f32}, numerics: {mode: shuffled, order_seed: free, %s}, "
        "shuffle: {chunk: 2}, schedule: {name: constant, %s}, clip: {%s}}\n"
        "record: {tensors: false, phases: false, readback: false}\nfloor: {replicates: 4, alpha: "
        "0.05}\nattribution: {replicates: 3}\n"
        "arms:\n  %s: %s\n  %s: %s\n",
        told[2], told[0], told[1], names[0], arms[form == EXCHANGED], names[1],
        arms[form != EXCHANGED]);
    assert_true(length > 0 && (size_t)length < size);
}

/* ---- what must be the same ---- */

static const struct judged_cause *cause_of(const struct judgement *judgement, const char *name) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (strcmp(judgement->causes[i].name, name) == 0) return &judgement->causes[i];
    return NULL;
}

static int same(const struct attributed *a, const struct attributed *b) {
    return a->value == b->value && a->low == b->low && a->high == b->high;
}

/* By how much intervals may miss each other, or a share 0. Nominal intervals of 95 % miss at times,
 * most of all where few runs happened to round alike and left one without a width. A mean of runs
 * lies no farther from one of them than the floor's largest distance L of two runs that are meant
 * to be the same. So <d_S, d_N> / D^2 is off by L / D through d_S and by as much through d_N, to
 * first order in L / D. That is what the judge takes for the half-width of a share where hybrids
 * have no repeats (judge_shares.c); a miss by more is none of noise. */
static double slack_of(const struct judgement *judgement) {
    return 2.0 * judgement->floor_largest / judgement->total;
}

/* The gap between two intervals; 0 where they meet. */
static double gap(const struct attributed *a, const struct attributed *b) {
    return fmax(0.0, fmax(a->low - b->high, b->low - a->high));
}

struct count {
    uint32_t pairs, same, met;
    uint32_t intervals; /* of the shares that had to meet */
    uint32_t apart;     /* those that do not meet without the slack */
    double farthest;    /* the largest gap of these, of the slack */
};

/* Counts how two intervals lie; whether they meet but for the slack. */
static int meet(const struct attributed *a, const struct attributed *b, double slack,
                struct count *count) {
    const double between = gap(a, b);
    count->apart += between > 0.0;
    count->farthest = fmax(count->farthest, between / slack);
    return between <= slack;
}

static void compare(const struct judgement *drawn, const struct judgement *turned, enum turn form,
                    const char *text, struct count *count) {
    assert_int_equal(drawn->verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(turned->verdict, drawn->verdict);
    assert_true(drawn->attributed && turned->attributed && drawn->projection.runs > 0);
    const double slack = fmax(slack_of(drawn), slack_of(turned));
    assert_true(slack > 0.0 && slack < 1e-3); /* far below any share that changes a sentence */
    const int exact = form == RENAMED || form == INERT_IN_BOTH;
    if (exact && turned->cause_count != drawn->cause_count)
        fail_msg("%s: %u causes became %u\n%s", form_names[form], drawn->cause_count,
                 turned->cause_count, text);
    for (uint32_t i = 0; i < drawn->cause_count; i++) {
        const struct judged_cause *a = &drawn->causes[i], *b = cause_of(turned, a->name);
        assert_non_null(b);
        count->intervals += !exact;
        if (exact ? same(&a->share, &b->share) && same(&a->left, &b->left) &&
                        same(&a->alone, &b->alone)
                  : meet(&a->share, &b->share, slack, count))
            continue;
        fail_msg("%s: the share of %s was %.9f, %.9f to %.9f, and is %.9f, %.9f to %.9f\n%s",
                 form_names[form], a->name, a->share.value, a->share.low, a->share.high,
                 b->share.value, b->share.low, b->share.high, text);
    }
    /* A cause that was not there before does nothing. */
    for (uint32_t i = 0; i < turned->cause_count; i++) {
        const struct judged_cause *b = &turned->causes[i];
        static const struct attributed nothing = {0.0, 0.0, 0.0};
        if (cause_of(drawn, b->name) == NULL && !meet(&b->share, &nothing, slack, count))
            fail_msg("%s: %s, which does nothing, has the share %.9f, %.9f to %.9f\n%s",
                     form_names[form], b->name, b->share.value, b->share.low, b->share.high, text);
    }
    if (exact)
        count->same++;
    else
        count->met++;
}

static void verify_shares_however_a_pair_is_told(void **state) {
    (void)state;
    struct count count = {.pairs = (uint32_t)helper_size(SANITIZED, USUAL, PAIRS)};
    for (uint32_t p = 0; p < count.pairs; p++) {
        const struct pair pair = draw_pair(p);
        struct bench bench[2];
        char text[2048];
        for (int f = AS_DRAWN; f < FORMS; f++) {
            const enum turn form = (enum turn)f;
            /* The default run turns each pair in one way: one of which nothing moves, one of which
             * new orders are drawn. */
            if (form != AS_DRAWN && count.pairs < PAIRS && p % (FORMS - 1) != (uint32_t)f - 1)
                continue;
            struct bench *const at = &bench[form != AS_DRAWN];
            write_pair(&pair, form, text, sizeof text);
            helper_bench_open(at, STEPS, text);
            helper_bench_run(at);
            assert_int_equal(unlink(at->path), 0);
            if (form == AS_DRAWN) continue;
            compare(&bench[0].judgement, &at->judgement, form, text, &count);
            helper_bench_close(at);
        }
        helper_bench_close(&bench[0]);
    }
    print_message(
        "%u pairs: %u verdicts equal to the bit; %u of which all %u intervals meet, %u of "
        "them with a slack of noise, %.2g of it at most\n",
        count.pairs, count.same, count.met, count.intervals, count.apart, count.farthest);
    assert_int_equal(count.same + count.met, count.pairs * (count.pairs < PAIRS ? 1 : FORMS - 1));
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_shares_however_a_pair_is_told),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
