/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Every divisor of the loss against another that it must equal to the bit, or be a power of two of;
 * windows that an epoch does not fill, against the updates of which they are made; and the promises
 * of mode invariant, which both must keep. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"

/* `factor` times the gradient norm and loss of `other` must give those of `divisor`. */
static const struct factor_case {
    const char *divisor, *other;
    double factor;
} factors[] = {
    {"sum-of-means", "mean-of-means", 4.0},   /* the division by a is dropped */
    {"update-and-micros", "update", 0.25},    /* divided by a once too often */
    {"mean-of-ranks, ranks: 1", "update", 1}, /* one rank has all tokens */
    {"mean-of-ranks, ranks: 4", "mean-of-means", 1},
    {"means-over-size", "sum-of-means", 0.5}, /* batch.micro is 2 */
    {"means-over-size", "mean-of-means", 2},  /* of 4 micro-batches */
};

static const char *const tasks[] = {"sft", "dpo"};

static void corroborate_factors(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tasks); t++)
        for (size_t i = 0; i < COUNT_OF(factors); i++) {
            double norm[2], loss[2];
            for (int d = 0; d < 2; d++) {
                struct helper_small bench;
                helper_small_open(&bench, 20,
                                  "task: %s, batch: {size: 8, micro: 2}, loss: {divisor: %s}",
                                  tasks[t], d == 0 ? factors[i].divisor : factors[i].other);
                const struct record *record = helper_step(&bench.run);
                norm[d] = record->reals[REAL_GRAD_NORM];
                loss[d] = record->reals[REAL_LOSS];
                helper_small_close(&bench);
            }
            print_message("%s %-24s norm %.9g of %.9g, loss %.9g of %.9g\n", tasks[t],
                          factors[i].divisor, norm[0], norm[1], loss[0], loss[1]);
            assert_true(norm[1] > 0.0);
            assert_true(norm[0] == factors[i].factor * norm[1]);
            /* the losses of four micro-batches are divided before or after they are added */
            assert_true(fabs(loss[0] - factors[i].factor * loss[1]) <= 8 * 0x1p-53 * loss[0]);
        }
}

/* ---- divisors by what they count, computed here from the data ---- */

enum { KNOWN_PAIRS = 8, KNOWN_MICRO = 2 };

/* The first loss, with weights that training has not changed, is known: for SFT from the log-probs
 * that `update` with micro-batches of one sample records, for DPO as ln 2 times what the divisor
 * leaves. */
struct known {
    double term[KNOWN_PAIRS];   /* -log-prob of sample s, in the order of the update */
    double labels[KNOWN_PAIRS]; /* label tokens */
    double tokens[KNOWN_PAIRS]; /* of both sides */
    double opens;
    double all;
};

static void known_open(const char *task, struct known *out) {
    struct helper_small bench;
    memset(out, 0, sizeof *out);
    helper_small_open(&bench, 20, "task: %s, batch: {size: 8, micro: 1}", task);
    const struct record *record = helper_step(&bench.run);
    const struct sampler_plan *plan = &bench.run.plan;
    for (uint32_t s = 0; s < KNOWN_PAIRS; s++) {
        const uint32_t sides = bench.dataset.sides;
        out->labels[s] = record->micros[s][MICRO_TOKENS];
        out->all += out->labels[s];
        for (uint32_t side = 0; side < sides; side++) {
            out->tokens[s] += dataset_side(&bench.dataset, plan->sample[s], side)->length;
            out->opens += bench.dataset.opens[plan->sample[s] * sides + side];
        }
    }
    const double divisor = strcmp(task, "sft") == 0 ? out->all : KNOWN_PAIRS;
    for (uint32_t s = 0; s < KNOWN_PAIRS; s++)
        out->term[s] = record->micros[s][MICRO_LOSS] * divisor;
    helper_small_close(&bench);
}

static double loss_of(const char *task, const char *words) {
    struct helper_small bench;
    helper_small_open(&bench, 20, "task: %s, batch: {size: 8, micro: 2}, loss: {%s}", task, words);
    const double loss = helper_step(&bench.run)->reals[REAL_LOSS];
    helper_small_close(&bench);
    return loss;
}

static double by_tokens(const struct known *known, int sft) {
    double loss = 0.0, all = 0.0;
    for (uint32_t s = 0; s < KNOWN_PAIRS; s++)
        all += known->tokens[s];
    for (uint32_t s = 0; s < KNOWN_PAIRS; s += KNOWN_MICRO) {
        const double items = sft ? known->labels[s] + known->labels[s + 1] : KNOWN_MICRO;
        const double weight = (known->tokens[s] + known->tokens[s + 1]) / all;
        loss += weight * (known->term[s] + known->term[s + 1]) / items;
    }
    return loss;
}

static void validate_known_divisors(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        struct known known;
        double sum = 0.0;
        const int sft = strcmp(tasks[t], "sft") == 0;
        known_open(tasks[t], &known);
        for (uint32_t s = 0; s < KNOWN_PAIRS; s++)
            sum += known.term[s];
        const double items = sft ? known.all : KNOWN_PAIRS;
        const struct {
            const char *words;
            double loss;
        } cases[] = {
            {"divisor: update", sum / items},
            {"divisor: update-unshifted", sum / (items + (sft ? known.opens : 0))},
            {"divisor: micros-by-tokens", by_tokens(&known, sft)},
            {"divisor: sum-of-means, logged: mean", sum / items},
            {"divisor: mean-of-means, logged: mean", sum / items},
            {"divisor: micros-by-tokens, logged: mean", sum / items},
            {"divisor: mean-of-ranks, ranks: 2, logged: mean", sum / items},
            {"divisor: update-and-micros, logged: mean", sum / items},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            const double loss = loss_of(tasks[t], cases[i].words);
            print_message("%s %-46s %.9g\n", tasks[t], cases[i].words, loss);
            /* f64 sums of eight terms, in two orders, with one quotient each */
            assert_true(fabs(loss - cases[i].loss) <= 1e-14 * cases[i].loss);
        }
    }
}

/* transformers 4.46 also counts labels that its loss, being shifted, never reads: the first of each
 * sequence. Plain text labels that token, a completion does not. */
static void validate_unshifted(void **state) {
    (void)state;
    static const struct {
        const char *text, *form;
        uint32_t opens;
    } rows[] = {
        {"{\"text\": \"abcdefg\"}\n{\"text\": \"hi\"}\n", "plain", 2},
        {"{\"prompt\": \"ab\", \"completion\": \"cdefg\"}\n{\"prompt\": \"h\", \"completion\": "
         "\"i\"}\n",
         "completion", 0},
        {"{\"input_ids\": [1, 2, 3, 4], \"labels\": [1, 2, 3, 4]}\n"
         "{\"input_ids\": [5, 6, 7], \"labels\": [-100, 6, 7]}\n",
         "ids", 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char path[HELPER_PATH_SIZE];
        double loss[2];
        uint64_t labels = 0, opens = 0;
        helper_file_write(rows[i].text, strlen(rows[i].text), path);
        for (int d = 0; d < 2; d++) {
            struct helper_small bench = {.arena = ARENA_EMPTY};
            helper_config(4, &bench.config,
                          "task: sft, data: {text: %s}, batch: {size: 2}, loss: {divisor: %s}, "
                          "model: {layers: 1, hidden: 16, heads: 2, mlp: 20}",
                          path, d == 0 ? "update" : "update-unshifted");
            helper_data_open(&bench.config, &bench.arena, &bench.dataset);
            helper_run_open(&bench.config, &bench.dataset, &(struct run_options){.steps = 1},
                            &bench.run);
            loss[d] = helper_step(&bench.run)->reals[REAL_LOSS];
            labels = bench.run.plan.labels;
            opens = bench.run.plan.opens;
            helper_small_close(&bench);
        }
        remove(path);
        print_message("%s: %u of %u first tokens labelled, loss %.9g and %.9g\n", rows[i].form,
                      (unsigned)opens, 2u, loss[0], loss[1]);
        assert_int_equal(opens, rows[i].opens);
        const double expected = loss[0] * (double)labels / (double)(labels + opens);
        /* one product and one quotient more than the loss itself */
        assert_true(fabs(loss[1] - expected) <= 1e-15 * expected * 4);
    }
}

/* The choice of what is logged may change no weight. */
static void verify_logged_moves_nothing(void **state) {
    (void)state;
    static const char *const known_divisors[] = {"sum-of-means", "micros-by-tokens",
                                                 "mean-of-ranks, ranks: 2"};
    for (size_t i = 0; i < COUNT_OF(known_divisors); i++) {
        struct helper_outcome outcomes[2];
        double loss[2];
        for (int d = 0; d < 2; d++) {
            struct helper_small bench;
            helper_small_open(&bench, 20,
                              "task: sft, batch: {size: 8, micro: 2}, loss: {divisor: %s%s}",
                              known_divisors[i], d == 0 ? "" : ", logged: mean");
            helper_outcome_of(&bench.run, 3, &outcomes[d]);
            loss[d] = bench.run.record.reals[REAL_LOSS];
            helper_small_close(&bench);
        }
        assert_true(digest_compare(&outcomes[0].params, &outcomes[1].params) == 0);
        assert_true(digest_compare(&outcomes[0].gradients, &outcomes[1].gradients) == 0);
        assert_true(loss[0] != loss[1]);
    }
}

/* The metrics of open-instruct's dpo.py weight micro-batches by their tokens; with micro-batches of
 * one pair they weight pairs. */
static void validate_weighted_metrics(void **state) {
    (void)state;
    double logp[KNOWN_PAIRS], tokens[KNOWN_PAIRS], expected = 0.0, all = 0.0;
    struct helper_small bench;
    helper_small_open(&bench, 20, "batch: {size: 8, micro: 1}, loss: {divisor: micros-by-tokens}");
    const double got = helper_step(&bench.run)->reals[REAL_LOGP_CHOSEN];
    const struct sampler_plan plan = bench.run.plan;
    uint32_t sample[KNOWN_PAIRS];
    memcpy(sample, plan.sample, sizeof sample);
    for (uint32_t s = 0; s < KNOWN_PAIRS; s++)
        tokens[s] = (double)plan.micro[s].tokens;
    helper_small_close(&bench);
    for (uint32_t s = 0; s < KNOWN_PAIRS; s++) { /* the same pair alone, in its place in the file */
        helper_small_open(&bench, 20, "batch: {size: 1, micro: 1}, data: {shuffle: false}");
        while (bench.run.plan.samples == 0 || bench.run.plan.sample[0] != sample[s]) {
            state_head_of(bench.run.state.host)->sampler = (struct sampler_state){0, sample[s]};
            logp[s] = helper_step(&bench.run)->reals[REAL_LOGP_CHOSEN];
        }
        helper_small_close(&bench);
        expected += logp[s] * tokens[s];
        all += tokens[s];
    }
    print_message("logps/chosen %.9g, of pairs %.9g\n", got, expected / all);
    /* weighted sums of a few log-probs in f64, in two orders */
    assert_true(fabs(got - expected / all) <= 1e-14 * fabs(got));
}

/* DPO cannot show the bug, since ranks have equally many pairs; SFT can, since they have unequal
 * tokens. */
static void verify_ranks(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        struct helper_outcome outcomes[2];
        for (int d = 0; d < 2; d++) {
            struct helper_small bench;
            helper_small_open(&bench, 20,
                              "task: %s, batch: {size: 8, micro: 4}, loss: {divisor: %s}", tasks[t],
                              d == 0 ? "update" : "mean-of-ranks, ranks: 2");
            helper_outcome_of(&bench.run, 3, &outcomes[d]);
            helper_small_close(&bench);
        }
        const int equal = digest_compare(&outcomes[0].params, &outcomes[1].params) == 0;
        assert_int_equal(equal, t == 1);
    }
}

/* The gradient of an underscaled short window, over that of one divided by its own micro-batches,
 * is r / a: here 2 / 4 and 3 / 4. The quotient of the coefficients is then rounded. */
static void verify_underscaled(void **state) {
    (void)state;
    static const struct {
        uint32_t samples;
        double ratio, slack;
    } cases[] = {{20, 0.5, 0.0}, {22, 0.75, 1e-6}};
    for (size_t t = 0; t < COUNT_OF(tasks); t++)
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            double norm[2][4], loss[2][4];
            for (int d = 0; d < 2; d++) {
                struct helper_small bench;
                helper_small_open(&bench, cases[i].samples,
                                  "task: %s, batch: {size: 8, micro: 2, tail: %s}, "
                                  "loss: {divisor: mean-of-means}, optimizer: {lr: 0}",
                                  tasks[t], d == 0 ? "keep" : "keep-underscaled");
                for (int k = 0; k < 4; k++) {
                    const struct record *record = helper_step(&bench.run);
                    norm[d][k] = record->reals[REAL_GRAD_NORM];
                    loss[d][k] = record->reals[REAL_LOSS];
                    assert_int_equal(record->integers[INTEGER_EPOCH], k / 3);
                }
                helper_small_close(&bench);
            }
            for (int k = 0; k < 4; k++) {
                const double ratio = k == 2 ? cases[i].ratio : 1.0;
                const double slack = k == 2 ? cases[i].slack : 0.0;
                assert_true(fabs(norm[1][k] / norm[0][k] - ratio) <= slack);
                /* both losses are the same sum, divided by another number */
                assert_true(fabs(loss[1][k] / loss[0][k] - ratio) <= 1e-15);
            }
        }
}

static const char *const divisors[] = {"update", "mean-of-means", "sum-of-means",
                                       "update-and-micros"};

/* Finds the change that one update from the initial weights makes, at a place in the data. */
static size_t change_at(const char *task, const char *divisor, const char *tail,
                        struct sampler_state at, double *out, double *out_loss) {
    struct helper_small bench;
    helper_small_open(
        &bench, 22,
        "task: %s, batch: {size: 8, micro: 2, tail: %s}, loss: {divisor: %s}, "
        "optimizer: {name: sgd, lr: 1}, schedule: {name: constant}, clip: {max_norm: 0}, "
        "numerics: {param: f64, compute: f64, accumulate: f64}",
        task, tail, divisor);
    state_head_of(bench.run.state.host)->sampler = at;
    *out_loss = helper_step(&bench.run)->reals[REAL_LOSS];
    size_t count = 0;
    for (uint32_t i = 0; i < bench.run.owner_count; i++) {
        const uint32_t row = bench.run.owner[i];
        const size_t carrier = sizeof(double);
        for (size_t k = 0; k < bench.run.table.rows[row].count; k++) {
            double before, after;
            memcpy(&before, bench.run.initial + (bench.run.packed[row] + k) * carrier, carrier);
            memcpy(&after, bench.run.state.host + bench.run.layout.tensor[row].param + k * carrier,
                   carrier);
            out[count++] = after - before;
        }
    }
    helper_small_close(&bench);
    return count;
}

enum { ELEMENTS = 8192 };

/* What leaks into the next update is the gradient of the epoch's rest, divided as by a loop that
 * takes its window for a full one. Where no number of micro-batches enters the divisor, it is the
 * gradient of a rest that is kept. */
static void corroborate_leak(void **state) {
    (void)state;
    static double leaked[ELEMENTS], rest[ELEMENTS], first[ELEMENTS];
    for (size_t t = 0; t < COUNT_OF(tasks); t++)
        for (size_t d = 0; d < COUNT_OF(divisors); d++) {
            const char *short_tail = d % 2 == 1 ? "keep-underscaled" : "keep";
            double loss[3], largest = 0.0, worst = 0.0;
            size_t count = change_at(tasks[t], divisors[d], "leak", (struct sampler_state){1, 0},
                                     leaked, &loss[0]);
            assert_true(count <= ELEMENTS);
            change_at(tasks[t], divisors[d], short_tail, (struct sampler_state){0, 2}, rest,
                      &loss[1]);
            change_at(tasks[t], divisors[d], "drop", (struct sampler_state){1, 0}, first, &loss[2]);
            for (size_t i = 0; i < count; i++) {
                const double gap = fabs(leaked[i] - (rest[i] + first[i]));
                if (gap > worst) worst = gap;
                if (fabs(rest[i]) > largest) largest = fabs(rest[i]);
            }
            print_message("%s %-18s rest %.3g, gap %.3g, loss %.9g + %.9g\n", tasks[t], divisors[d],
                          largest, worst, loss[1], loss[2]);
            assert_true(largest > 1e-4);
            assert_true(worst <= 1e-14); /* roundings of weights below 2 */
            assert_true(fabs(loss[0] - (loss[1] + loss[2])) <= 1e-14 * loss[0]);
        }
}

/* With `logged: mean` the terms of a leaked window count in the update that logs them. */
static void validate_logged_leak(void **state) {
    (void)state;
    static const char *const logged[] = {"divisor: update", "divisor: sum-of-means, logged: mean"};
    double loss[2], expected = 0.0;
    for (int d = 0; d < 2; d++) {
        struct helper_small bench;
        helper_small_open(
            &bench, 22,
            "task: sft, batch: {size: 8, micro: 2, tail: leak}, loss: {%s}, optimizer: {lr: "
            "0}",
            logged[d]);
        for (int k = 0; k < 3; k++) /* two updates of the first epoch; then the leaked one */
            loss[d] = helper_step(&bench.run)->reals[REAL_LOSS];
        const struct sampler_plan *plan = &bench.run.plan;
        assert_true(plan->leaked.labels > 0);
        if (d == 0) {
            double shares[2] = {0.0, 0.0};
            for (uint32_t m = 0; m < plan->micros; m++)
                shares[m >= plan->leaked.micros] += bench.run.record.micros[m][MICRO_LOSS];
            const double leaked = (double)plan->leaked.labels, own = (double)plan->labels;
            expected = (shares[0] * leaked + shares[1] * own) / (leaked + own);
            assert_true(fabs(loss[0] - (shares[0] + shares[1])) <= 1e-14 * loss[0]);
        }
        helper_small_close(&bench);
    }
    print_message("logged %.9g, of all terms %.9g\n", loss[1], expected);
    assert_true(fabs(loss[1] - expected) <= 1e-14 * expected);
}

static void outcome_of(struct helper_outcome *out, uint32_t samples, const char *words) {
    struct helper_small bench;
    helper_small_open(&bench, samples, "%s", words);
    helper_outcome_of(&bench.run, 7, out);
    helper_small_close(&bench);
}

/* `zero` at the end of an epoch repairs the leak. A rest with as many micro-batches as an update is
 * an update. */
static const struct equal_case {
    uint32_t samples;
    const char *a, *b;
    int equal;
} equals[] = {
    {22, "batch: {size: 8, micro: 2, tail: drop}",
     "batch: {size: 8, micro: 2, tail: leak}, loop: {epoch: [zero]}", 1},
    {22, "batch: {size: 8, micro: 2, tail: drop}, loop: {epoch: [count]}",
     "batch: {size: 8, micro: 2, tail: leak}, loop: {epoch: [zero, count]}", 1},
    {22, "batch: {size: 8, micro: 2, tail: drop}", "batch: {size: 8, micro: 2, tail: leak}", 0},
    {22, "batch: {size: 8, micro: 2, tail: drop}", "batch: {size: 8, micro: 2, tail: keep}", 0},
    {23, "batch: {size: 8, micro: 2, tail: keep}", "batch: {size: 8, micro: 2, tail: leak}", 1},
    {24, "batch: {size: 8, micro: 2, tail: drop}", "batch: {size: 8, micro: 2, tail: leak}", 1},
    {24, "batch: {size: 8, micro: 2, tail: drop}", "batch: {size: 8, micro: 2, tail: keep}", 1},
};

static void corroborate_tails(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tasks); t++)
        for (size_t i = 0; i < COUNT_OF(equals); i++) {
            char words[512];
            struct helper_outcome outcomes[2];
            for (int side = 0; side < 2; side++) {
                snprintf(words, sizeof words,
                         "task: %s, optimizer: {lr: 1e-2}, dropout: {residual: 0.1}, %s", tasks[t],
                         side == 0 ? equals[i].a : equals[i].b);
                outcome_of(&outcomes[side], equals[i].samples, words);
            }
            assert_int_equal(digest_compare(&outcomes[0].params, &outcomes[1].params) == 0,
                             equals[i].equal);
        }
}

/* Divisors in which micro-batches do not occur keep mode invariant's promise in a short update,
 * too; the others keep it for layout, padding and threads. */
static const struct {
    const char *words;
    const char *splits[4];
} invariants[] = {
    {"batch: {size: 8, %s, tail: keep}, loss: {divisor: update}",
     {"micro: 8", "micro: 4, layout: concatenated", "micro: 2, pad: 7", "micro: 1"}},
    {"batch: {size: 8, %s}, loss: {divisor: mean-of-ranks, ranks: 2}",
     {"micro: 8", "micro: 4, layout: concatenated", "micro: 2, pad: 7", "micro: 1"}},
    {"batch: {size: 8, micro: 2, %s, tail: leak}, loss: {divisor: update}",
     {"pad: 0", "layout: concatenated", "pad: 7", "padding: packed"}},
    {"batch: {size: 8, micro: 2, %s, tail: keep-underscaled}, loss: {divisor: mean-of-means}",
     {"pad: 0", "layout: concatenated", "pad: 7", "padding: packed"}},
    {"batch: {size: 8, micro: 2, %s, tail: leak}, loss: {divisor: sum-of-means}",
     {"pad: 0", "layout: concatenated", "pad: 7", "padding: packed"}},
};

static void verify_invariance(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    for (size_t t = 0; t < COUNT_OF(tasks); t++)
        for (size_t i = 0; i < COUNT_OF(invariants); i++) {
            struct helper_outcome first, other;
            for (size_t s = 0; s < COUNT_OF(invariants[i].splits); s++) {
                char words[512] = "", split[256];
                const char *percent = strchr(invariants[i].words, '%');
                const char *shape = invariants[i].splits[s];
                if (t == 0 && strstr(shape, "concatenated") != NULL) shape = "pad: 3";
                if (strncmp(shape, "pad: 3", 6) == 0 && i < 2) shape = "micro: 4, pad: 3";
                snprintf(split, sizeof split, "%.*s%s%s", (int)(percent - invariants[i].words),
                         invariants[i].words, shape, percent + 2);
                snprintf(words, sizeof words,
                         "task: %s, optimizer: {lr: 1e-2}, dropout: {residual: 0.1}, %s", tasks[t],
                         split);
                outcome_of(s == 0 ? &first : &other, 22, words);
                if (s == 0) continue;
                const char *gap = helper_outcome_gap(&first, &other);
                if (gap != NULL) print_error("%s: %s differs\n", words, gap);
                assert_null(gap);
            }
        }
}

/* Forks in the middle of an epoch, and at its end, where the leaked window is still to be used. */
static void verify_snapshot(void **state) {
    (void)state;
    static const char *const tails[] = {"keep", "leak"};
    for (size_t i = 0; i < COUNT_OF(tails); i++)
        for (int at = 1; at <= 4; at++) {
            struct helper_small whole, forked;
            helper_small_open(
                &whole, 22,
                "task: sft, batch: {size: 8, micro: 2, tail: %s}, optimizer: {lr: 1e-2}, "
                "dropout: {residual: 0.1}",
                tails[i]);
            helper_small_open(
                &forked, 22,
                "task: sft, batch: {size: 8, micro: 2, tail: %s}, optimizer: {lr: 1e-2}, "
                "dropout: {residual: 0.1}",
                tails[i]);
            unsigned char *kept;
            assert_int_equal(arena_take(&forked.arena, whole.run.layout.bytes, 1, "test", &kept),
                             STATUS_OK);
            for (int k = 0; k < at; k++)
                helper_step(&whole.run);
            assert_int_equal(run_snapshot(&whole.run, kept), STATUS_OK);
            assert_int_equal(run_restore(&forked.run, kept), STATUS_OK);
            for (int k = at; k < 8; k++) {
                helper_step(&whole.run);
                helper_step(&forked.run);
            }
            assert_memory_equal(run_state_host(&whole.run), run_state_host(&forked.run),
                                whole.run.layout.bytes);
            helper_small_close(&whole);
            helper_small_close(&forked);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_factors),       cmocka_unit_test(validate_known_divisors),
        cmocka_unit_test(validate_unshifted),        cmocka_unit_test(verify_logged_moves_nothing),
        cmocka_unit_test(validate_weighted_metrics), cmocka_unit_test(verify_ranks),
        cmocka_unit_test(verify_underscaled),        cmocka_unit_test(corroborate_leak),
        cmocka_unit_test(validate_logged_leak),      cmocka_unit_test(corroborate_tails),
        cmocka_unit_test(verify_invariance),         cmocka_unit_test(verify_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
