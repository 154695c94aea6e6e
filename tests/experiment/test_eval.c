/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The rows of eval.*: that measuring them moves no bit of a training, which rows they are, what a
 * gap is called, and what is refused. Whether the figures are true is eval_truth.py's question. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "evidence/eval_seen.h"
#include "tests/base/helper_size.h"
#include "tests/experiment/helper_experiment.h"
#include "trainer/schema_classes.h"

#define MODEL                                                                                      \
    "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 31}, init: {std: 0.3}, "             \
    "batch: {size: 4, micro: 2}, optimizer: {lr: 1e-2}"
#define REST "eval: {from: rest, training_rows: 5}\n"
#define FASTER "arms: {baseline: {}, test: {optimizer: {lr: 3e-2}}}\n"
#define SLOWER "arms: {baseline: {optimizer: {lr: 3e-2}}, test: {optimizer: {lr: 1e-2}}}\n"

static const struct trace_array *array_of(const struct bench *bench, const char *path) {
    const struct trace_array *array = trace_array_of(bench->judgement.image, path);
    if (array == NULL) fail_msg("no array %s", path);
    return array;
}

/* ---- interruptions ---- */

static int always(void *context) {
    (void)context;
    return 1;
}

static int never(void *context) {
    (void)context;
    return 0;
}

static void ignore(void *context) {
    (void)context;
}

/* Stopped behind the last update of both arms, an experiment says which updates are lost: those of
 * the last step, before which states were kept, or all, where none were. */
static void verify_what_an_interruption_costs(void **state) {
    static const struct {
        const char *text;
        int (*keep)(void *);
        const char *told;
    } cases[] = {
        {REST "common: {data: {samples: 18}, " MODEL "}\n" FASTER, always,
         "interrupted after 6 of 15 updates, while held-out rows were measured; no state was kept "
         "after the last 2 of these, which are trained again"},
        {"common: {" MODEL "}\n" FASTER, always,
         "interrupted after 6 of 15 updates, while the first difference was looked for; no state "
         "was kept after the last 2 of these, which are trained again"},
        {"common: {" MODEL "}\n" FASTER, never,
         "interrupted after 6 of 15 updates, while the first difference was looked for; no state "
         "was kept after the last 6 of these, which are trained again"},
        {"common: {" MODEL "}\n" FASTER, NULL,
         "interrupted after 6 of 15 updates, while the first difference was looked for"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        helper_bench_open(&bench, 3, cases[i].text);
        bench.stop_after = 3;
        bench.options.keep_now = cases[i].keep;
        bench.options.kept = ignore;
        assert_int_equal(experiment_run(&bench.options, &bench.arena, &bench.judgement),
                         STATUS_INTERRUPTED);
        assert_string_equal(status_text(), cases[i].told);
        for (int file = 1; file <= 2; file++) {
            char path[HELPER_BENCH_PATH + 64];
            snprintf(path, sizeof path, "%s.kept-%d", bench.part, file);
            unlink(path);
        }
        helper_bench_close(&bench);
    }
}

/* ---- trainings ---- */

static const char *const modes[] = {
    "numerics: {mode: invariant}, dropout: {residual: 0.3, attention: 0.1}",
    "numerics: {mode: shuffled, order_seed: 7}, rng: {kind: torch}, dropout: {embedding: 0.2}",
    "numerics: {mode: shuffled}, task: sft, dropout: {residual: 0.1}",
    "numerics: {param: bf16, rounding: stochastic}, dpo: {reference: live}",
};

/* Trainings, the repeats included, end with the same bits whether or not they are measured. */
static void verify_training_is_left_alone(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct bench bench[2];
        struct arena arena[2] = {ARENA_EMPTY, ARENA_EMPTY};
        struct trace_image *image[2];
        char text[2048];
        for (int with = 0; with < 2; with++) {
            snprintf(text, sizeof text,
                     "%scommon: {data: {samples: 18}, %s, %s}\n"
                     "attribution: {replicates: 0}\nfloor: {replicates: 2, alpha: 0.4}\n" FASTER,
                     with ? REST : "", MODEL, modes[i]);
            helper_bench_open(&bench[with], 2, text);
            helper_bench_run(&bench[with]);
            assert_int_equal(trace_open(bench[with].path, &arena[with], &image[with]), STATUS_OK);
            assert_int_equal(unlink(bench[with].path), 0);
        }
        assert_int_equal(image[0]->run_count, image[1]->run_count);
        for (uint32_t r = 0; r < image[0]->run_count; r++) {
            const struct trace_run *a = &image[0]->runs[r], *b = &image[1]->runs[r];
            assert_int_equal(a->updates, b->updates);
            for (uint64_t k = 0; k < a->updates; k++) {
                assert_memory_equal(a->records[k].digests, b->records[k].digests,
                                    sizeof a->records[k].digests);
                assert_memory_equal(a->records[k].reals, b->records[k].reals,
                                    sizeof a->records[k].reals);
            }
        }
        assert_int_equal(bench[0].judgement.eval.set_count, 0);
        assert_int_equal(bench[1].judgement.eval.set_count, 2);
        for (int with = 0; with < 2; with++) {
            arena_close(&arena[with]);
            helper_bench_close(&bench[with]);
        }
    }
}

/* ---- rows ---- */

/* 3 updates of 4 of the first 18 rows: 12 rows are trained on, of which the first 5 are measured,
 * and rows 19 to 24 are held out. */
static void verify_rows(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 3,
                      REST "common: {data: {samples: 18, shuffle: false}, " MODEL "}\n" FASTER);
    helper_bench_run(&bench);
    const struct trace_array *held_out = array_of(&bench, "eval/held_out_line");
    const struct trace_array *trained = array_of(&bench, "eval/training_line");
    assert_int_equal(held_out->plan.shape[0], 6);
    assert_int_equal(trained->plan.shape[0], 5);
    for (int i = 0; i < 6; i++)
        assert_true(held_out->values[i] == 19 + i);
    for (int i = 0; i < 5; i++)
        assert_true(trained->values[i] == 1 + i);
    assert_int_equal(bench.judgement.eval.sets[0].rows, 6);
    assert_int_equal(bench.judgement.eval.sets[1].rows, 5);
    const struct judged_eval_measure *loss = &bench.judgement.eval.sets[0].measures[EVAL_LOSS];
    assert_true(loss->response > 0.0 && loss->response < fabs(loss->gap) && loss->floor == 0.0);
    assert_int_equal(loss->pairs, 1);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* An arm that skips two updates' worth of samples trains on rows 9 to 16 where the baseline trains
 * on 1 to 12: rows 9 to 12 are common. One that trains on other texts has none in common. */
static void verify_rows_of_both_arms(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(
        &bench, 2,
        "eval: {from: rest, rows: 2}\ncommon: {data: {samples: 18, shuffle: false}, " MODEL
        "}\narms: {baseline: {batch: {size: 6, micro: 6}}, "
        "test: {rng: {data: advance 2 at 1}}}\n");
    helper_bench_run(&bench);
    const struct trace_array *trained = array_of(&bench, "eval/training_line");
    assert_int_equal(trained->plan.shape[0], 18);
    for (int i = 0; i < 4; i++)
        assert_true(trained->values[i] == 9 + i);
    assert_true(isnan(trained->values[4]));
    assert_int_equal(bench.judgement.eval.sets[0].rows, 2);
    assert_int_equal(bench.judgement.eval.sets[1].rows, 4);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
    char text[HELPER_PATH_SIZE + 1024];
    snprintf(text, sizeof text,
             "eval: {from: %s}\ncommon: {" MODEL "}\narms: {baseline: {}, test: {task: sft}}\n",
             helper_bench_data[TASK_DPO]);
    helper_bench_open(&bench, 2, text);
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.eval.sets[0].rows, 24);
    assert_int_equal(bench.judgement.eval.sets[1].rows, 0);
    assert_non_null(strstr(bench.judgement.eval.seen, "24 of 24 held-out rows"));
    assert_non_null(strstr(bench.judgement.eval.as_baseline, "task"));
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* ---- words ---- */

/* The arms exchanged: gaps change their sign and nothing else, and worse is better. */
static void verify_arms_exchanged(void **state) {
    (void)state;
    struct bench bench[2];
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, REST "common: {data: {samples: 18}, " MODEL "}\n%s",
                 i == 0 ? FASTER : SLOWER);
        helper_bench_open(&bench[i], 4, text);
        helper_bench_run(&bench[i]);
        assert_int_equal(unlink(bench[i].path), 0);
    }
    uint32_t sides[2] = {0, 0};
    for (int s = 0; s < 2; s++)
        for (int m = 0; m < EVAL_COLUMNS; m++) {
            const struct judged_eval_measure *a = &bench[0].judgement.eval.sets[s].measures[m],
                                             *b = &bench[1].judgement.eval.sets[s].measures[m];
            assert_true(a->gap == -b->gap && a->start[0] == b->start[1]);
            assert_int_equal(a->word, b->word);
            assert_int_equal(eval_side(a), -eval_side(b));
            if (a->word == EVAL_BEYOND && eval_side(a) != 0) sides[eval_side(a) > 0]++;
        }
    assert_true(sides[0] + sides[1] >= 4);
    for (int i = 0; i < 2; i++)
        helper_bench_close(&bench[i]);
}

/* Values put in the place of those that were measured, and what the gap is then called: paper. */
static const struct word_case {
    double baseline, test;
    double spread[2]; /* run i of an arm's repeats is off by i * spread */
    double around;    /* what the test arm's repeats lie around; 0: the test arm */
    double perturbed; /* of an exact floor */
    enum eval_word noisy, exact;
} word_cases[] = {
    {0.5, 0.5, {0.01, 0.01}, 0, 0.5, EVAL_EQUAL, EVAL_EQUAL},
    {0.5, 0.6, {0.001, 0.001}, 0, 0.5 + 1e-6, EVAL_BEYOND, EVAL_BEYOND},
    {0.6, 0.5, {0.001, 0.001}, 0, 0.6 - 1e-6, EVAL_BEYOND, EVAL_BEYOND},
    /* the arms' runs do not overlap, but two of one arm are 0.004 apart */
    {0.5, 0.503, {-0.001, 0.001}, 0, 0.502, EVAL_WITHIN, EVAL_ROUNDING},
    /* no two runs of an arm are 0.1 apart, but those of both arms are mixed */
    {0.5, 0.6, {0.001, 0.001}, 0.5005, 0.5, EVAL_WITHIN, EVAL_BEYOND},
    {0.5, 0.6, {0.001, 0.001}, 0, 0.44, EVAL_BEYOND, EVAL_ROUNDING},
    {0.5, 0.6, {0.001, 0.001}, 0, 0.46, EVAL_BEYOND, EVAL_BEYOND},
    /* half of the least number is no 0 that a perturbed run without any gap would reach */
    {0.0, 0x1p-1074, {0, 0}, 0, 0.0, EVAL_BEYOND, EVAL_BEYOND},
    {0.5, (double)NAN, {0.001, 0.001}, 0, 0.5, EVAL_BROKEN, EVAL_BROKEN},
    {(double)INFINITY, 0.5, {0, 0}, 0, 0.5, EVAL_BROKEN, EVAL_BROKEN},
};

/* Writes the values of a case over the loss on held-out rows; repeats are told by their ids. */
static void plant(const struct trace_image *image, const struct word_case *c, double *values) {
    uint32_t repeat[2] = {0, 0};
    for (uint32_t r = 0; r < image->run_count; r++) {
        const struct trace_run_plan *plan = &image->runs[r].plan;
        const int arm = strcmp(plan->arm, "test") == 0;
        const int repeated = strncmp(plan->id, "floor-test", 10) == 0 ||
                             strncmp(plan->id, "floor-baseline", 14) == 0;
        double *out = values + (size_t)r * EVAL_VALUES + EVAL_LOSS;
        *out = arm ? c->test : c->baseline;
        if (strcmp(plan->id, "twin") == 0) *out = c->perturbed;
        if (arm && repeated && c->around > 0.0) *out = c->around;
        if (repeated) *out += c->spread[arm] * ++repeat[arm];
    }
}

/* Judges a trace again with other values. */
static void judge_planted(const struct bench *bench, const struct word_case *c,
                          struct judgement *out, struct arena *arena) {
    /* Read from the file, since the image of a run leaves numbers of each update in it. */
    struct trace_image *read;
    assert_int_equal(trace_open(bench->path, arena, &read), STATUS_OK);
    struct trace_image image = *read;
    struct trace_array *arrays;
    double *values;
    assert_int_equal(arena_take(arena, image.array_count, sizeof *arrays, "test", &arrays),
                     STATUS_OK);
    memcpy(arrays, image.arrays, image.array_count * sizeof *arrays);
    image.arrays = arrays;
    for (uint32_t i = 0; i < image.array_count; i++) {
        if (strcmp(arrays[i].plan.path, "eval/held_out") != 0) continue;
        const size_t count = (size_t)(arrays[i].plan.shape[0] * arrays[i].plan.shape[1]);
        assert_int_equal(arena_take(arena, count, sizeof *values, "test", &values), STATUS_OK);
        memcpy(values, arrays[i].values, count * sizeof *values);
        plant(&image, c, values);
        arrays[i].values = values;
    }
    assert_int_equal(judge(&image, arena, out), STATUS_OK);
}

static void check_words(const char *text, int exact) {
    struct bench bench;
    helper_bench_open(&bench, 2, text);
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.floor, exact ? FLOOR_EXACT : FLOOR_PERMUTATION);
    assert_int_equal(bench.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    for (size_t i = 0; i < COUNT_OF(word_cases); i++) {
        const struct word_case *c = &word_cases[i];
        struct arena arena = ARENA_EMPTY;
        struct judgement again;
        judge_planted(&bench, c, &again, &arena);
        const struct judged_eval_measure *of = &again.eval.sets[0].measures[EVAL_LOSS];
        if (of->word != (exact ? c->exact : c->noisy))
            fail_msg("case %zu, exact %d: %s", i, exact, eval_word_name(of->word));
        if (of->word == EVAL_BEYOND)
            assert_int_equal(eval_side(of), c->test > c->baseline ? -1 : 1);
        arena_close(&arena);
    }
    helper_bench_close(&bench);
}

static void verify_words(void **state) {
    (void)state;
    check_words(REST "common: {data: {samples: 18}, " MODEL "}\n" FASTER, 1);
    check_words(REST "common: {numerics: {mode: shuffled}, data: {samples: 18}, " MODEL "}\n"
                     "attribution: {replicates: 0}\nfloor: {replicates: 5}\n" FASTER,
                0);
}

/* Where rounding explains the distance of the weights it explains any gap, also one that the
 * perturbed run happens not to show. */
static void verify_rounding_explains(void **state) {
    (void)state;
    struct bench bench;
    struct arena arena = ARENA_EMPTY;
    struct judgement again;
    helper_bench_open(&bench, 3,
                      REST "common: {data: {samples: 18}, " MODEL "}\narms: {baseline: {}, "
                           "test: {numerics: {mode: shaped}, shaped: {table: '*: 2'}}}\n");
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.word, WORD_ROUNDING);
    judge_planted(&bench, &word_cases[1], &again, &arena);
    assert_int_equal(again.eval.sets[0].measures[EVAL_LOSS].word, EVAL_ROUNDING);
    arena_close(&arena);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* The noise of repeats is never called worse: equal arms under shuffled orders, over seeds. Nor is
 * any gap, where the weights lie inside the floor. */
static void verify_noise_is_not_worse(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    for (int seed = 1; seed <= 2; seed++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text,
                 REST "common: {seed: %d, numerics: {mode: shuffled}, data: {samples: 18}, " MODEL
                      "}\nfloor: {replicates: 5}\narms: {baseline: {}, test: {}}\n",
                 seed);
        helper_bench_open(&bench, 3, text);
        helper_bench_run(&bench);
        for (uint32_t s = 0; s < bench.judgement.eval.set_count; s++)
            for (uint32_t m = 0; m < bench.judgement.eval.sets[s].count; m++)
                assert_int_not_equal(bench.judgement.eval.sets[s].measures[m].word, EVAL_BEYOND);
        struct arena arena = ARENA_EMPTY;
        struct judgement again;
        assert_int_equal(bench.judgement.verdict, VERDICT_INSIDE_FLOOR);
        judge_planted(&bench, &word_cases[1], &again, &arena);
        assert_int_equal(again.eval.sets[0].measures[EVAL_LOSS].word, EVAL_WITHIN);
        arena_close(&arena);
        helper_bench_close(&bench);
    }
}

/* Without a floor nobody says worse: a second process that lies, or arms that have no distance. */
static void verify_no_floor(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    helper_bench_open(&bench, 2, REST "common: {data: {samples: 18}, " MODEL "}\n" FASTER);
    bench.lie = 1;
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.eval.sets[0].measures[EVAL_LOSS].word, EVAL_UNTESTABLE);
    helper_bench_close(&bench);
    helper_bench_open(&bench, 2,
                      REST "common: {numerics: {mode: shuffled}, data: {samples: 18}, " MODEL
                           "}\narms: {baseline: {}, test: {model: {hidden: 32}}}\n");
    helper_bench_run(&bench);
    const struct judged_eval_measure *of = &bench.judgement.eval.sets[0].measures[EVAL_LOSS];
    assert_int_equal(of->word, EVAL_UNTESTABLE);
    assert_true(isfinite(of->end[0]) && isfinite(of->end[1]) && of->end[0] != of->end[1]);
    assert_int_equal(of->pairs, 0);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* An arm that did not move has the reference's weights, so that all its rewards are equal.
 * Whichever arm that is, nothing is said of accuracy; the other arm has no ties. */
static void verify_ties(void **state) {
    (void)state;
    for (int still = 0; still < 2; still++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text,
                 REST "common: {data: {samples: 18}, " MODEL
                      "}\narms: {baseline: {%s}, test: {%s}}\n",
                 still == 0 ? "optimizer: {lr: 0}" : "", still == 1 ? "optimizer: {lr: 0}" : "");
        helper_bench_open(&bench, 4, text);
        helper_bench_run(&bench);
        for (uint32_t s = 0; s < 2; s++) {
            const struct judged_eval_set *const set = &bench.judgement.eval.sets[s];
            const struct judged_eval_measure *const of = &set->measures[EVAL_ACCURACY];
            assert_true(of->start[0] == 0.0 && of->start[1] == 0.0 && of->gap != 0.0);
            assert_true(of->ties[still] == (double)set->rows && of->ties[!still] == 0.0);
            assert_int_equal(of->word, EVAL_TIED);
            assert_int_equal(set->measures[EVAL_LOSS].word, EVAL_BEYOND);
        }
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* An arm whose weights are no numbers has no figure that is one, not even a share of pairs. */
static void verify_diverged(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 2,
                      REST "common: {data: {samples: 18}, " MODEL "}\narms: {baseline: {}, "
                           "test: {optimizer: {lr: 1e6}, numerics: {param: f16, compute: f16}}}\n");
    helper_bench_run(&bench);
    for (int m = 0; m < EVAL_COLUMNS; m++) {
        const struct judged_eval_measure *of = &bench.judgement.eval.sets[0].measures[m];
        assert_true(isfinite(of->end[0]) && isnan(of->end[1]));
        assert_int_equal(of->word, EVAL_BROKEN);
    }
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* ---- refusals ---- */

static const struct {
    const char *text, *words;
} refusals[] = {
    {"eval: {rows: 3}\n" FASTER, "case.yaml:4:8: error: eval.rows: expected eval.from beside it"},
    {"eval: {from: rest}\n" FASTER, "case.yaml:4:14: error: eval.from: rest is what data.samples"},
    {"eval: {from: ''}\n" FASTER, "case.yaml:4:14: error: eval.from: expected text"},
    {"eval: {from: rest, rows: 0}\ncommon: {data: {samples: 18}}\n" FASTER, "eval.rows: expected"},
    {"eval: {from: rest}\ncommon: {data: {samples: 18}}\n"
     "arms: {baseline: {}, test: {task: sft}}\n",
     "expects arms that read the same data"},
    {"eval: {from: rest}\ncommon: {data: {samples: 18}}\n"
     "arms: {baseline: {}, test: {model: {vocab: 300}}}\n",
     "expected arms of one vocabulary, got model.vocab 259 and 300"},
    {"common: {eval: {from: rest}}\n" FASTER, "at the head of the file, for both arms alike"},
    {"eval: {form: rest}\n" FASTER, "did you mean eval.from?"},
};

static void verify_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct schema *schema;
        struct scenario *scenario;
        char text[1024];
        const int length =
            snprintf(text, sizeof text, "twinstep: 1\nname: case\nsteps: 2\n%s", refusals[i].text);
        assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
        assert_int_equal(
            scenario_parse(&arena, schema, "case.yaml", text, (size_t)length, NULL, 0, &scenario),
            STATUS_INPUT);
        if (strstr(status_text(), refusals[i].words) == NULL)
            fail_msg("case %zu: %s", i, status_text());
        arena_close(&arena);
    }
}

/* Data that cannot be measured are refused before a trace is begun. */
static const struct {
    const char *eval, *data, *words;
} broken[] = {
    {"from: rest", "samples: 24", "behind those that the arms train on, got none"},
    {"from: rest, rows: 7", "samples: 18", "expected at most the 6 rows that"},
    {"from: /nonexistent.jsonl", "samples: 18", "eval.from: /nonexistent.jsonl"},
    {"from: 'builtin:quiz'", "samples: 18", "eval.from: "},
};

static void verify_broken_data(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text, "eval: {%s}\ncommon: {data: {%s}, " MODEL "}\n" FASTER,
                 broken[i].eval, broken[i].data);
        helper_bench_open(&bench, 2, text);
        const enum status status = experiment_run(&bench.options, &bench.arena, &bench.judgement);
        assert_true(status == STATUS_INPUT || status == STATUS_IO);
        if (strstr(status_text(), broken[i].words) == NULL)
            fail_msg("case %zu: %s", i, status_text());
        assert_int_not_equal(access(bench.part, F_OK), 0);
        helper_bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_what_an_interruption_costs),
        cmocka_unit_test(verify_training_is_left_alone),
        cmocka_unit_test(verify_rows),
        cmocka_unit_test(verify_rows_of_both_arms),
        cmocka_unit_test(verify_arms_exchanged),
        cmocka_unit_test(verify_rounding_explains),
        cmocka_unit_test(verify_words),
        cmocka_unit_test(verify_noise_is_not_worse),
        cmocka_unit_test(verify_no_floor),
        cmocka_unit_test(verify_ties),
        cmocka_unit_test(verify_diverged),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(verify_broken_data),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
