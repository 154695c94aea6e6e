/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Figures of causes that can be worked out on paper: after one update of SGD every set of causes
 * has moved the weights by a multiple of the gradient g and a multiple of the first weights, so
 * shares and gaps follow from a few ratios.
 *
 * Taken from the program are g and the first weights alone, out of one plain training; none of its
 * hybrids is used. The words were written down before the cases were run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment/pair.h"
#include "tests/experiment/helper_experiment.h"

#define LR 0.5
#define CLIP_EPS 1e-6 /* clip.eps */
#define NO_BOUND 0.0
#define POINTS 4096

/* What an arm's update is made of: it subtracts rate * LR * (gradient * g, clipped to a norm of
 * bound * |g|, + decay * first weights). */
struct update {
    double rate, gradient, bound, decay;
};

/* A cause for each of these that differs; optimizer has bound and decay. */
static const char *const names[] = {"schedule", "normalisation", "optimizer"};
enum { CAUSES = 3 };

/* How the gradient of the test arm becomes another multiple of the baseline's: `micro` of `size`
 * pairs make a micro-batch, and this is the divisor. */
struct batches {
    int size, micro;
    const char *divisor;
};
static const struct batches doubled = {4, 2, "sum-of-means"}, trebled = {6, 2, "sum-of-means"},
                            fourfold = {4, 1, "sum-of-means"}, halved = {4, 2, "update-and-micros"};

static const struct paper {
    const char *what;
    const struct batches *batches;
    struct update a, b;
    enum attribution_word word;
    const char *first; /* the cause that is named; NULL: the word names none */
} cases[] = {
    /* LR x a and gradient x b, and so LR x ab in the end */
    {"1/3 and 2", &doubled, {1, 1, 0, 0}, {1.0 / 3, 2, 0, 0}, WORD_OPPOSE, NULL},
    {"0.3 and 2", &doubled, {1, 1, 0, 0}, {0.3, 2, 0, 0}, WORD_OPPOSE, NULL},
    {"0.25 and 2", &doubled, {1, 1, 0, 0}, {0.25, 2, 0, 0}, WORD_OPPOSE, NULL},
    {"0.75 and 2", &doubled, {1, 1, 0, 0}, {0.75, 2, 0, 0}, WORD_OPPOSE, NULL},
    {"0.5 and 3", &trebled, {1, 1, 0, 0}, {0.5, 3, 0, 0}, WORD_OPPOSE, NULL},
    {"1.5 and 2", &doubled, {1, 1, 0, 0}, {1.5, 2, 0, 0}, WORD_SEVERAL, "normalisation"},
    {"1.5 and 4", &fourfold, {1, 1, 0, 0}, {1.5, 4, 0, 0}, WORD_SEVERAL, "normalisation"},
    {"0.4 and 0.5", &halved, {1, 1, 0, 0}, {0.4, 0.5, 0, 0}, WORD_SEVERAL, "schedule"},
    {"1.02 and 2", &doubled, {1, 1, 0, 0}, {1.02, 2, 0, 0}, WORD_CAUSE, "normalisation"},
    {"0.4999 and 2", &doubled, {1, 1, 0, 0}, {0.4999, 2, 0, 0}, WORD_NEARLY, NULL},
    {"0.5 and 2", &doubled, {1, 1, 0, 0}, {0.5, 2, 0, 0}, WORD_CANCEL, NULL},
    {"0.25 and 4", &fourfold, {1, 1, 0, 0}, {0.25, 4, 0, 0}, WORD_CANCEL, NULL},
    /* a bound that is not reached changes nothing of that */
    {"inactive clip", &doubled, {1, 1, 3, 0}, {0.75, 2, 3, 0}, WORD_OPPOSE, NULL},
    /* one that always is leaves the LR alone; one in between halves what the divisor does */
    {"active clip", &doubled, {1, 1, 0.5, 0}, {0.75, 2, 0.5, 0}, WORD_CAUSE, "schedule"},
    {"clip of one arm's gradient",
     &doubled,
     {1, 1, 1.5, 0},
     {1.02, 2, 1.5, 0},
     WORD_CAUSE,
     "normalisation"},
    /* a bound as a cause takes part of the gradient away */
    {"LR and bound", &doubled, {1, 1, 0, 0}, {1.8, 1, 0.5, 0}, WORD_OPPOSE, NULL},
    {"LR twice, bound on it", &doubled, {1, 1, 0, 0}, {2.02, 1, 0.5, 0}, WORD_NEARLY, NULL},
    {"divisor against bound", &doubled, {1, 1, 0, 0}, {1, 2, 1.25, 0}, WORD_OPPOSE, NULL},
    /* decay moves along the weights, not along the gradient */
    {"LR and decay", &doubled, {1, 1, 0, 0}, {3, 1, 0, 1e-5}, WORD_CAUSE, "schedule"},
    {"decay and LR", &doubled, {1, 1, 0, 0}, {1.001, 1, 0, 0.1}, WORD_CAUSE, "optimizer"},
    {"LR, divisor, decay",
     &doubled,
     {1, 1, 0, 0.01},
     {1.5, 2, 0, 0},
     WORD_SEVERAL,
     "normalisation"},
};

/* ---- one plain training: g, the first weights, and what rounding does ---- */

struct plain {
    double start[POINTS], gradient[POINTS];
    size_t count;
    double norm;     /* |g| */
    double product;  /* g . first weights */
    double weights;  /* |first weights| */
    double rounding; /* one unit in the last place of every weight that moved, as one vector */
};
static struct plain plain;

static double dot(const double *x, const double *y, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Trains the baseline of an experiment without bound and decay by hand. */
static void train_plain(const struct bench *bench) {
    static double end[POINTS];
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    struct config config = bench->scenario->arms[0].config;
    config.clip.max_norm = 0.0;
    config.optimizer.weight_decay = 0.0;
    helper_data_open(&config, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 1}, &run);
    plain.count = point_count(&run);
    assert_true(plain.count <= POINTS);
    assert_int_equal(point_copy(&run, DTYPE_F64, plain.start), STATUS_OK);
    (void)helper_step(&run);
    assert_int_equal(point_copy(&run, DTYPE_F64, end), STATUS_OK);
    run_close(&run);
    arena_close(&arena);
    plain.rounding = 0.0;
    for (size_t i = 0; i < plain.count; i++) {
        const float size = fabsf((float)plain.start[i]);
        const double unit = (double)(nextafterf(size, INFINITY) - size);
        plain.gradient[i] = (plain.start[i] - end[i]) / LR;
        if (plain.gradient[i] != 0.0) plain.rounding += unit * unit;
    }
    plain.rounding = sqrt(plain.rounding);
    plain.norm = sqrt(dot(plain.gradient, plain.gradient, plain.count));
    plain.product = dot(plain.gradient, plain.start, plain.count);
    plain.weights = sqrt(dot(plain.start, plain.start, plain.count));
}

/* ---- paper ---- */

/* A multiple of g and one of the first weights. */
struct move {
    double g, weights;
};

static double product(struct move x, struct move y) {
    return x.g * y.g * plain.norm * plain.norm +
           (x.g * y.weights + x.weights * y.g) * plain.product +
           x.weights * y.weights * plain.weights * plain.weights;
}

static double size_of(struct move x) {
    return sqrt(product(x, x));
}

static struct move move_of(const struct update *u) {
    double gradient = u->gradient;
    if (u->bound != NO_BOUND && gradient > u->bound)
        gradient *= u->bound * plain.norm / (gradient * plain.norm + CLIP_EPS);
    return (struct move){-u->rate * LR * gradient, -u->rate * LR * u->decay};
}

/* The baseline's update with these causes of the test arm. */
static struct move displacement(const struct paper *c, uint32_t causes) {
    const struct update *const from[2] = {&c->a, &c->b};
    const struct update mixed = {.rate = from[causes & 1u]->rate,
                                 .gradient = from[causes >> 1 & 1u]->gradient,
                                 .bound = from[causes >> 2 & 1u]->bound,
                                 .decay = from[causes >> 2 & 1u]->decay};
    const struct move x = move_of(&mixed), start = move_of(&c->a);
    return (struct move){x.g - start.g, x.weights - start.weights};
}

/* Whether a cause differs between the arms. */
static int differs(const struct paper *c, int cause) {
    if (cause == 0) return c->a.rate != c->b.rate;
    if (cause == 1) return c->a.gradient != c->b.gradient;
    return c->a.bound != c->b.bound || c->a.decay != c->b.decay;
}

/* The share of a cause: what it adds to the displacement along the whole, on average over the six
 * orders in which the three may enter. One that does not differ adds nothing in any. */
static double share_of(const struct paper *c, int cause) {
    static const int orders[6][CAUSES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const struct move whole = displacement(c, 7);
    double sum = 0.0;
    for (int o = 0; o < 6; o++) {
        uint32_t before = 0;
        for (int p = 0; orders[o][p] != cause; p++)
            before |= 1u << orders[o][p];
        sum += product(displacement(c, before | 1u << cause), whole) -
               product(displacement(c, before), whole);
    }
    return sum / 6.0 / product(whole, whole);
}

/* The formulas of LR x a with gradient x b, where nothing else acts. */
static void check_formulas(const struct paper *c) {
    const double a = c->b.rate, b = c->b.gradient, slack = 1e-12 * fabs(1.0 / (a * b - 1.0));
    assert_true(fabs(share_of(c, 0) - (a - 1) * (1 + b) / (2 * (a * b - 1))) <= slack);
    assert_true(fabs(size_of(displacement(c, 6)) / size_of(displacement(c, 7)) -
                     fabs(b - 1) / fabs(a * b - 1)) <= slack);
}

/* ---- the program ---- */

static size_t put(char *text, size_t used, const char *format, ...) TWINSTEP_PRINTF(3, 4);
static size_t put(char *text, size_t used, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text + used, 2048 - used, format, list);
    va_end(list);
    assert_true(length >= 0 && used + (size_t)length < 2048);
    return used + (size_t)length;
}

static size_t put_arm(char *text, size_t used, const char *name, const struct update *u,
                      const char *divisor) {
    return put(text, used,
               "  %s: {optimizer: {lr: %.17g, weight_decay: %.17g}, clip: {max_norm: %.17g}, "
               "loss: {divisor: %s}}\n",
               name, LR * u->rate, u->decay, u->bound * plain.norm,
               u->gradient == 1.0 ? "update" : divisor);
}

static void open_case(struct bench *bench, const struct paper *c) {
    char text[2048];
    size_t used = put(text, 0,
                      "common: {batch: {size: %d, micro: %d}, model: {layers: 1, hidden: 8, heads: "
                      "2, mlp: 12, vocab: 31}, init: {std: 0.1}, dpo: {beta: 1}, optimizer: {name: "
                      "sgd}, schedule: {name: constant}}\narms:\n",
                      c->batches->size, c->batches->micro);
    used = put_arm(text, used, "baseline", &c->a, c->batches->divisor);
    (void)put_arm(text, used, "test", &c->b, c->batches->divisor);
    helper_bench_open(bench, 1, text);
}

static void expect(const struct paper *c, const char *cause, const char *what, double got,
                   double wanted, double tolerance) {
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%s: %s of %s: expected %.9g +- %.2g, got %.9g", c->what, what, cause, wanted,
                 tolerance, got);
}

/* Weights are f32: each end point is off by half a unit in the last place of each weight that
 * moved, so a displacement, which has two ends, is off by `rounding` r at most. A gap |d_S| / D,
 * with |d_S| up to M D, changes by (1 + M) r / D, and <d_S, d_N> / D^2 by (1 + 3 M) r / D, because
 * d_N stands in it three times; a share is a difference of two such. The gradient of paper is that
 * of one plain training, which has the same error: that doubles each of them. */
static void check_figures(const struct paper *c, const struct judgement *j) {
    const double whole = size_of(displacement(c, 7)), unit = plain.rounding / whole;
    double most = 1.0;
    for (uint32_t causes = 1; causes < 7; causes++)
        if (size_of(displacement(c, causes)) > most * whole)
            most = size_of(displacement(c, causes)) / whole;
    const double gap = 2 * (1 + most) * unit, share = 4 * (1 + 3 * most) * unit;
    expect(c, "all causes", "distance, over itself", j->total / whole, 1.0, 2 * (1 + most) * unit);
    if (most < 5.0) assert_true(share < 0.01); /* the test is sharp where nothing cancels */
    for (int cause = 0; cause < CAUSES; cause++) {
        const struct judged_cause *judged = NULL;
        for (uint32_t i = 0; i < j->cause_count; i++)
            if (strcmp(j->causes[i].name, names[cause]) == 0) judged = &j->causes[i];
        assert_int_equal(judged != NULL, differs(c, cause));
        if (judged == NULL) continue;
        expect(c, names[cause], "share", judged->share.value, share_of(c, cause), share);
        expect(c, names[cause], "left", judged->left.value,
               size_of(displacement(c, 7u & ~(1u << cause))) / whole, gap);
        expect(c, names[cause], "alone", judged->alone.value,
               size_of(displacement(c, 1u << cause)) / whole, gap);
    }
}

static void validate_one_update(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct paper *c = &cases[i];
        struct bench bench;
        open_case(&bench, c); /* for its data and batches: bounds are in units of |g| */
        train_plain(&bench);
        helper_bench_close(&bench);
        open_case(&bench, c);
        helper_bench_run(&bench);
        const struct judgement *j = &bench.judgement;
        if (j->word != c->word)
            fail_msg("%s: expected %s, got %s", c->what, attribution_words[c->word],
                     attribution_words[j->word]);
        if (c->first != NULL) assert_string_equal(judgement_cause(j), c->first);
        if (c->word == WORD_CANCEL) {
            assert_true(j->total == 0.0);
        } else {
            check_figures(c, j);
            if (c->b.bound == NO_BOUND && c->a.decay == 0.0 && c->b.decay == 0.0) check_formulas(c);
        }
        helper_bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_one_update),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
