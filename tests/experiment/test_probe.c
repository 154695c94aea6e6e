/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The probe of two runs is a function of their weights. How a run cuts its batches, orders its data
 * or seeds the order of its sums moves no bit of it, a row that is read in blocks has the numbers
 * that one has which is read one by one, what is kept of a run serves as the run does, and a cause
 * that acts in no update gets 0 of the KL divergence, exactly. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "experiment/probe.h"
#include "model/model.h"
#include "tests/experiment/helper_experiment.h"
#include "trainer/run_pass.h"

#define SIZES                                                                                      \
    "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 31}, init: {std: 0.3}, "             \
    "optimizer: {lr: 1e-3}"

/* Two runs before their first update, of other initial weights; the second with the keys `b`. */
static struct pair_record measured(const char *mode, const char *b) {
    struct bench bench;
    struct arena arena = ARENA_EMPTY;
    struct pair_record record = {.reals = {0.0}};
    char text[1024];
    snprintf(text, sizeof text,
             "common: {%s, data: {samples: 11}, shuffle: {kinds: [forward], chunk: 4}}\n"
             "arms: {baseline: {numerics: {mode: %s}}, test: {init: {seed: 2}, numerics: {mode: "
             "%s}%s}}\n",
             SIZES, mode, mode, b);
    helper_bench_open(&bench, 2, text);
    struct dataset data[2];
    struct run runs[2];
    for (int arm = 0; arm < 2; arm++) {
        const struct config *const config = &bench.scenario->arms[arm].config;
        helper_data_open(config, &arena, &data[arm]);
        helper_run_open(config, &data[arm],
                        &(struct run_options){.steps = 2, .order_seed = 5 + (uint64_t)(*b != '\0')},
                        &runs[arm]);
    }
    assert_int_equal(probe_measure(&runs[0], &runs[1], &record), STATUS_OK);
    assert_true(record.reals[PAIR_PROBE_KL] > 1e-4);
    for (int arm = 0; arm < 2; arm++)
        run_close(&runs[arm]);
    helper_bench_close(&bench);
    arena_close(&arena);
    return record;
}

static void verify_batches(void **state) {
    (void)state;
    static const char *const modes[] = {"invariant", "shuffled", "deterministic", "shaped"};
    static const char *const keys[] = {
        ", batch: {micro: 1}",
        ", batch: {size: 6, micro: 3}",
        ", batch: {size: 11}",
        ", data: {shuffle: false}",
        ", data: {epoch_seed: first}",
        ", batch: {pad: 3}",
        /* they change what the pass of one sample is, and with it the orders that shuffled draws */
        ", batch: {layout: concatenated}",
        ", batch: {padding: packed, micro: 2}",
    };
    enum { OF_ALL_MODES = COUNT_OF(keys) - 2 };
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        const struct pair_record plain = measured(modes[m], "");
        const int draws = strcmp(modes[m], "shuffled") == 0;
        for (size_t i = 0; i < (draws ? OF_ALL_MODES : COUNT_OF(keys)); i++) {
            const struct pair_record other = measured(modes[m], keys[i]);
            for (int real = PAIR_PROBE_KL; real <= PAIR_PROBE_ERROR; real++)
                if (plain.reals[real] != other.reals[real])
                    fail_msg("mode %s%s: column %d is %.17g, not %.17g", modes[m], keys[i], real,
                             other.reals[real], plain.reals[real]);
        }
    }
}

static uint32_t index_of(const struct judgement *judgement, const char *name) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (strcmp(judgement->causes[i].name, name) == 0) return i;
    fail_msg("no cause %s", name);
    return 0;
}

/* By every measure, an idle cause makes nothing, and others make what they make without it. */
static void check_idle(const struct judgement *x, const struct judgement *y, const char *text) {
    const uint32_t idle = index_of(y, "batch-shape");
    assert_int_equal(y->causes[idle].acted, 0);
    assert_int_equal(x->measure_count, y->measure_count);
    for (uint32_t m = 0; m < y->measure_count; m++) {
        const struct judged_measure *const a = &x->measures[m], *const b = &y->measures[m];
        if (b->whole == 0.0 || b->whole != a->whole || b->alone[idle] != 0.0 ||
            b->value[idle] != 0.0 || b->without[idle] != b->whole ||
            a->ranks_otherwise != b->ranks_otherwise)
            fail_msg("%s of %s: %s", b->name, text, y->rows[0].text);
        for (uint32_t i = 0; i < x->cause_count; i++) {
            const uint32_t j = index_of(y, x->causes[i].name);
            if (b->alone[j] != a->alone[i] || b->without[j] != a->without[i])
                fail_msg("%s of %s: %s", b->name, text, x->causes[i].name);
        }
    }
}

/* The same pair with and without another micro-batch, which acts in no update. */
static void corroborate_idle_cause(void **state) {
    (void)state;
    static const char *const tasks[] = {"sft", "dpo"};
    static const char *const tests[] = {"", ", batch: {micro: 1}", ", batch: {micro: 2, pad: 1}",
                                        ", batch: {micro: 4, padding: packed}"};
    static struct judgement judged[COUNT_OF(tests)]; /* its numbers outlive the trace */
    for (size_t task = 0; task < COUNT_OF(tasks); task++) {
        for (size_t t = 0; t < COUNT_OF(tests); t++) {
            struct bench bench;
            char text[1024];
            snprintf(text, sizeof text,
                     "common: {task: %s, " SIZES "}\narms: {baseline: {}, test: {optimizer: {lr: "
                     "2e-3, weight_decay: 0.5}%s}}\n",
                     tasks[task], tests[t]);
            helper_bench_open(&bench, 3, text);
            helper_bench_run(&bench);
            judged[t] = bench.judgement;
            if (t > 0) check_idle(&judged[0], &judged[t], text);
            helper_bench_close(&bench);
        }
    }
}

/* What probe.h says of a row, one number at a time; of equal logits the first is the likeliest. */
static void check_row(const struct probe_row *row) {
    uint32_t best = 0;
    double sum = 0.0;
    for (uint32_t v = 1; v < row->model->V; v++)
        if (probe_logit(row, v) > probe_logit(row, best)) best = v;
    for (uint32_t v = 0; v < row->model->V; v++)
        sum += real_exp_f64(probe_logit(row, v) - probe_logit(row, best));
    assert_int_equal(row->best, best);
    assert_true(row->maximum == probe_logit(row, best));
    assert_true(row->log_sum == real_log_f64(sum));
}

static double divergence(const struct probe_row *a, const struct probe_row *b) {
    double sum = 0.0;
    for (uint32_t v = 0; v < a->model->V; v++) {
        const double x = (probe_logit(a, v) - a->maximum) - a->log_sum;
        const double y = (probe_logit(b, v) - b->maximum) - b->log_sum;
        sum = real_fma_f64(real_exp_f64(x), x - y, sum);
    }
    return sum;
}

/* KL and agreement of two runs, label by label, where the vocabulary takes several blocks of what
 * the probe reads at once, the last of them a part. */
static void corroborate_long_rows(void **state) {
    (void)state;
    static const char *const dtypes[] = {"f32", "bf16", "f64"};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        struct bench bench;
        struct arena arena = ARENA_EMPTY;
        struct pair_record record = {.reals = {0.0}};
        struct dataset data[2];
        struct run runs[2];
        double kl = 0.0, top = 0.0, labels = 0.0;
        char text[1024];
        snprintf(text, sizeof text,
                 "common: {model: {layers: 1, hidden: 8, heads: 1, mlp: 8, vocab: 1101}, init: "
                 "{std: 0.3}, data: {samples: 9}, numerics: {param: %s, compute: %s, accumulate: "
                 "%s}}\narms: {baseline: {}, test: {init: {seed: 2}}}\n",
                 dtypes[d], dtypes[d], strcmp(dtypes[d], "f64") == 0 ? "f64" : "f32");
        helper_bench_open(&bench, 1, text);
        for (int arm = 0; arm < 2; arm++) {
            const struct config *const config = &bench.scenario->arms[arm].config;
            helper_data_open(config, &arena, &data[arm]);
            helper_run_open(config, &data[arm], &(struct run_options){.steps = 1}, &runs[arm]);
        }
        assert_int_equal(probe_measure(&runs[0], &runs[1], &record), STATUS_OK);
        for (uint32_t sample = 0; sample < PROBE_SAMPLES; sample++) {
            for (int arm = 0; arm < 2; arm++) {
                run_fill_batch(&runs[arm], &sample, 1);
                assert_int_equal(run_forward_in_one_order(&runs[arm]), STATUS_OK);
            }
            const uint32_t count = run_batch(&runs[0])->label_count;
            for (uint32_t i = 0; i < count; i++) {
                struct probe_row x, y;
                assert_int_equal(probe_row_open(&runs[0], i, &x), STATUS_OK);
                assert_int_equal(probe_row_open(&runs[1], i, &y), STATUS_OK);
                check_row(&x);
                check_row(&y);
                kl += divergence(&x, &y);
                top += x.best == y.best ? 1.0 : 0.0;
            }
            labels += (double)count;
        }
        assert_true(record.reals[PAIR_PROBE_KL] == kl / labels && kl > 0.0);
        assert_true(record.reals[PAIR_PROBE_TOP1] == top / labels);
        for (int arm = 0; arm < 2; arm++)
            run_close(&runs[arm]);
        helper_bench_close(&bench);
        arena_close(&arena);
    }
}

/* Room for the rows of the first samples and one byte less. */
static size_t room_of(const struct run *run, uint32_t samples) {
    const struct dataset *const data = run_dataset(run);
    size_t labels = 0;
    for (uint32_t i = 0; i < samples * data->sides; i++)
        labels += data->sequence[i].labels;
    return labels *
           ((size_t)run_model(run)->V * run_model(run)->form.width + sizeof(struct probe_row));
}

/* A probe against what was kept of a run is the probe against the run, however many samples are
 * kept, and whichever of the two it is. */
static void corroborate_kept(void **state) {
    (void)state;
    static const char *const keys[] = {"task: sft", "task: dpo",
                                       "numerics: {param: bf16, compute: bf16}"};
    for (size_t k = 0; k < COUNT_OF(keys); k++) {
        struct bench bench;
        struct arena arena = ARENA_EMPTY;
        struct dataset data[2];
        struct run runs[2];
        struct pair_record plain[2], moved, kept_of;
        char text[1024];
        snprintf(text, sizeof text,
                 "common: {%s, " SIZES ", data: {samples: 9}}\n"
                 "arms: {baseline: {}, test: {init: {seed: 2}}}\n",
                 keys[k]);
        helper_bench_open(&bench, 2, text);
        for (int arm = 0; arm < 2; arm++) {
            const struct config *const config = &bench.scenario->arms[arm].config;
            helper_data_open(config, &arena, &data[arm]);
            helper_run_open(config, &data[arm], &(struct run_options){.steps = 2}, &runs[arm]);
        }
        for (int arm = 0; arm < 2; arm++)
            assert_int_equal(probe_measure(&runs[arm], &runs[1 - arm], &plain[arm]), STATUS_OK);
        assert_true(plain[0].reals[PAIR_PROBE_KL] != plain[1].reals[PAIR_PROBE_KL]);
        for (uint32_t samples = 0; samples <= PROBE_SAMPLES + 1; samples++)
            for (int arm = 0; arm < 2; arm++) {
                const uint32_t most = samples < PROBE_SAMPLES ? samples : PROBE_SAMPLES;
                struct probe_kept kept;
                for (int less = 0; less < 2; less++) {
                    const size_t room = room_of(&runs[arm], samples) - (less && samples > 0);
                    const uint32_t fits =
                        less && samples > 0 && samples <= PROBE_SAMPLES ? most - 1 : most;
                    assert_int_equal(probe_keep(&runs[arm], room, &arena, &kept), STATUS_OK);
                    assert_int_equal(kept.samples, fits);
                    assert_int_equal(probe_kept_bytes(&runs[arm], room), room_of(&runs[arm], fits));
                    assert_int_equal(
                        probe_measure_kept(&kept, &runs[arm], &runs[1 - arm], &kept_of), STATUS_OK);
                    for (int real = PAIR_PROBE_KL; real <= PAIR_PROBE_ERROR; real++)
                        assert_true(kept_of.reals[real] == plain[arm].reals[real]);
                }
            }
        /* what is kept is of the weights that were there, and the run is not asked again */
        struct probe_kept kept;
        const struct record *record;
        assert_int_equal(probe_keep(&runs[0], room_of(&runs[0], PROBE_SAMPLES), &arena, &kept),
                         STATUS_OK);
        assert_int_equal(run_step(&runs[0], &record), STATUS_OK);
        assert_int_equal(probe_measure(&runs[0], &runs[1], &moved), STATUS_OK);
        assert_int_equal(probe_measure_kept(&kept, &runs[0], &runs[1], &kept_of), STATUS_OK);
        assert_true(moved.reals[PAIR_PROBE_KL] != plain[0].reals[PAIR_PROBE_KL]);
        assert_true(kept_of.reals[PAIR_PROBE_KL] == plain[0].reals[PAIR_PROBE_KL]);
        for (int arm = 0; arm < 2; arm++)
            run_close(&runs[arm]);
        helper_bench_close(&bench);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_kept),
        cmocka_unit_test(verify_batches),
        cmocka_unit_test(corroborate_long_rows),
        cmocka_unit_test(corroborate_idle_cause),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
