/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory whole
 * Verdicts that are easily worded too strongly: arms that only look different, floors that cannot
 * decide, causes that act only together, trainings that diverged, and traces whose parts do not fit
 * together. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence/judge_json.h"
#include "experiment/experiment.h"
#include "trainer/schema_classes.h"
#include "tests/base/helper_size.h"

#define HEAD                                                                                       \
    "twinstep: 1\nname: t\nsteps: 3\ncommon:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: "    \
    "24}\n"                                                                                        \
    "  batch: {size: 4, micro: 2}\n  optimizer: {lr: 1e-3}\n"

#define SIX                                                                                        \
    "arms: {baseline: {}, test: {optimizer: {lr: 2e-3, weight_decay: 0.1}, clip: {max_norm: "      \
    "0.1}, "                                                                                       \
    "numerics: {rope: bf16}, data: {shuffle: false}, init: {std: 0.03}, dpo: {beta: 0.2}}}\n"

/* Thrice the LR against twice the gradient: of the way, the schedule makes three parts and the
 * divisor minus two. */
#define OPPOSING                                                                                   \
    HEAD "  clip: {max_norm: 0}\n  schedule: {name: constant}\narms: {baseline: {optimizer: "      \
         "{name: sgd, lr: 1e-3}}, test: {optimizer: {name: sgd, lr: 3.3333e-4}, loss: {divisor: "  \
         "sum-of-means}}}\n"

/* bf16 loses every update of so small an LR, and SGD without momentum forgets its gradient. */
#define FORGETS                                                                                    \
    HEAD "  clip: {max_norm: 0}\n  numerics: {param: bf16, master: none}\narms: {baseline: "       \
         "{optimizer: {name: sgd, lr: 1e-12}}, test: {optimizer: {name: sgd, lr: 1e-12}, loss: "   \
         "{divisor: sum-of-means}}}\n"

struct trial {
    struct arena arena;
    struct judgement judgement;
    char path[64];
    char *words, *json;
};

static enum status same_process(void *context, const struct config *config, uint64_t steps,
                                struct digest *out_root) {
    (void)context;
    return experiment_rerun(config, steps, out_root);
}

static char *printed(const struct judgement *judgement,
                     void (*print)(const struct judgement *, FILE *)) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    print(judgement, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void print_json(const struct judgement *judgement, FILE *out) {
    assert_int_equal(judgement_print_json(judgement, out), STATUS_OK);
}

static void trial_open(struct trial *trial, const char *text) {
    const struct schema *schema = NULL;
    struct scenario *scenario = NULL;
    static int opened;
    memset(trial, 0, sizeof *trial);
    snprintf(trial->path, sizeof trial->path, "/tmp/twinstep-judge-%ld-%d.h5", (long)getpid(),
             opened++);
    if (schema_with_classes(&trial->arena, &schema) != STATUS_OK ||
        scenario_parse(&trial->arena, schema, "t", text, strlen(text), NULL, 0, &scenario) !=
            STATUS_OK)
        fail_msg("%s", status_text());
    struct experiment_options options = {.path = trial->path,
                                         .overwrite = 1,
                                         .reproducible = 1,
                                         .schema = schema,
                                         .scenario = scenario,
                                         .second_process = same_process};
    if (experiment_run(&options, &trial->arena, &trial->judgement) != STATUS_OK)
        fail_msg("%s", status_text());
    trial->words = printed(&trial->judgement, judgement_print);
    trial->json = printed(&trial->judgement, print_json);
}

static void trial_close(struct trial *trial) {
    unlink(trial->path);
    free(trial->words);
    free(trial->json);
    arena_close(&trial->arena);
}

/* Trials that tests share which only read them: a faultless one, and one of so many factors that
 * its shares are sampled: in 4 orders, and nightly in the 12 that are the default, which trains
 * three times as many hybrids and takes half of this program's time. */
static struct trial plain, sampled;

static int open_shared(void **state) {
    (void)state;
    trial_open(&plain, HEAD "arms: {baseline: {}, test: {optimizer: {lr: 2e-3}}}\n");
    trial_open(&sampled, helper_size(0, 0, 1) ? HEAD SIX : HEAD SIX "attribution: {orders: 4}\n");
    return 0;
}

static int close_shared(void **state) {
    (void)state;
    trial_close(&plain);
    trial_close(&sampled);
    return 0;
}

/* One scenario, its verdict, and words that must stand in the report (behind '!': that must
 * not). */
static const struct {
    const char *text;
    enum verdict verdict;
    const char *words[4];
} cases[] = {
    /* another grouping, another counter, another LR for an update that never comes: trained alike
     */
    {HEAD "arms: {baseline: {}, test: {optimizer: {decay: matrices}}}\n",
     VERDICT_IDENTICAL,
     {"optimizer.decay: all -> matrices", "!Cause"}},
    {HEAD
     "  schedule: {name: constant}\narms: {baseline: {}, test: {loop: {update: [clip, optimize, "
     "log, count, count, schedule, zero]}}}\n",
     VERDICT_IDENTICAL,
     {"!Cause"}},
    /* only the printed LR differs */
    {HEAD "arms: {baseline: {}, test: {loop: {update: [clip, optimize, count, schedule, log, "
          "zero]}}}\n",
     VERDICT_SAME_TRAINING,
     {"First reported otherwise: lr_logged of update 1, ",
      "a comparison of logs would raise a false alarm", "Cause: schedule."}},
    /* noise, and no distance between the arms */
    {HEAD "  numerics: {mode: shuffled}\narms: {baseline: {}, test: {model: {hidden: 32}}}\n",
     VERDICT_UNTESTABLE,
     {"different", "!Cause"}},
    /* a design that cannot see anything must not call the arms alike */
    {HEAD
     "  numerics: {mode: shuffled}\narms: {baseline: {}, test: {optimizer: {lr: 1.00001e-3}}}\n"
     "floor: {design: baseline}\n",
     VERDICT_UNTESTABLE,
     {"8 runs of each arm", "!no difference beyond"}},
    {HEAD "  numerics: {mode: shuffled}\narms: {baseline: {}, test: {}}\nfloor: {replicates: 1}\n",
     VERDICT_UNTESTABLE,
     {"raise floor.replicates", "!run the scenario to its end"}},
    /* more factors than all hybrids are trained of */
    {HEAD SIX, VERDICT_OUTSIDE_FLOOR, {" sampled orders", "not ordered", "!interaction", "!-nan"}},
    /* neither changes a bit alone */
    {HEAD
     "arms: {baseline: {batch: {micro: 4}}, test: {batch: {micro: 1}, numerics: {gradient: bf16, "
     "grad_accumulate: storage}}}\n",
     VERDICT_OUTSIDE_FLOOR,
     {"interaction"}},
    /* no loss has a gradient with beta 0, so the LRs move nothing yet */
    {HEAD "  dpo: {beta: 0}\narms: {baseline: {}, test: {optimizer: {lr: 2e-3}}}\n",
     VERDICT_SAME_WEIGHTS,
     {"t: SAME WEIGHTS SO FAR.", "from update 1 on", "Cause: schedule.",
      "in test the gradient was 0 in 3 of 3"}},
    /* only the number that is printed differs */
    {HEAD "  loss: {divisor: sum-of-means}\narms: {baseline: {}, test: {loss: {logged: mean}}}\n",
     VERDICT_SAME_TRAINING,
     {"t: SAME TRAINING. It trains identically and reports differently",
      "First reported otherwise: loss of update 1, ", "Cause: normalisation.", "!closure  open"}},
    /* LR 0 moves no weight, but the moments take other gradients in */
    {HEAD "  schedule: {name: constant}\n  clip: {max_norm: 0}\narms: {baseline: {optimizer: {lr: "
          "0}}, test: {optimizer: {lr: 0}, loss: {divisor: sum-of-means}}}\n",
     VERDICT_SAME_WEIGHTS,
     {"may reach a weight later", "Cause: normalisation.", "in test the applied LR was 0 in 3 of 3",
      "!coarse"}},
    /* a master in f32 takes in what the weights in bf16 cannot hold; without it that is lost */
    {HEAD "arms: {baseline: {optimizer: {lr: 1e-6}, numerics: {param: bf16, master: f32}}, test: "
          "{optimizer: {lr: 1e-6}, numerics: {param: bf16, master: none}}}\n",
     VERDICT_OUTSIDE_FLOOR,
     {"in baseline an update leaves 9", "their masters take it in", "in test rounding took back 9",
      "its weights are too coarse for them, and an LR that is wrong hardly shows"}},
    /* a drawn rounding loses as many steps, and none on average */
    {HEAD "arms: {baseline: {optimizer: {lr: 1e-6}, numerics: {param: bf16}}, test: {optimizer: "
          "{lr: 1e-6}, numerics: {param: bf16, rounding: stochastic}}}\n",
     VERDICT_OUTSIDE_FLOOR,
     {"in baseline rounding took back 9", "in test rounding took back 9",
      "it is drawn, and moves the others by as much more"}},
    /* the same without a state that could remember them */
    {HEAD "  clip: {max_norm: 0}\narms: {baseline: {optimizer: {name: sgd, lr: 0}}, test: "
          "{optimizer: {name: sgd, lr: 0}, loss: {divisor: sum-of-means}}}\n",
     VERDICT_SAME_WEIGHTS,
     {"Cause: normalisation."}},
    /* half the LR and twice the gradient: powers of two, so SGD rounds nothing otherwise */
    {HEAD
     "  clip: {max_norm: 0}\n  schedule: {name: constant}\narms: {baseline: {optimizer: {name: "
     "sgd, lr: 2e-3}}, test: {optimizer: {name: sgd, lr: 1e-3}, loss: {divisor: "
     "sum-of-means}}}\n",
     VERDICT_SAME_WEIGHTS,
     {"The causes cancel exactly", "of the way trained: normalisation 0.9", "!Cause:", "!nan"}},
    {FORGETS, VERDICT_SAME_WEIGHTS, {"Cause: normalisation."}},
    /* a power of two on the loss that is taken out again, without a state that could remember it */
    {HEAD "  clip: {max_norm: 0}\n  schedule: {name: constant}\n"
          "  loop: {update: [unscale, clip, optimize, count, schedule, log, zero], skip: "
          "nonfinite}\narms: {baseline: {optimizer: {name: sgd}}, test: {optimizer: {name: sgd}, "
          "scaler: "
          "{kind: static, init_scale: 1024}}}\n",
     VERDICT_IDENTICAL,
     {"t: IDENTICAL", "first loss_scale of update 1"}},
    {OPPOSING,
     VERDICT_OUTSIDE_FLOOR,
     {"Causes oppose each other", "schedule +", "normalisation -", "!Cause:"}},
    {HEAD "  numerics: {param: bf16}\narms: {baseline: {}, test: {numerics: {threads: 2}}}\n",
     VERDICT_IDENTICAL,
     {"t: IDENTICAL"}},
};

static void validate_words(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(4, 1, 1)) {
        const int shared = strcmp(cases[i].text, HEAD SIX) == 0;
        struct trial own;
        if (!shared) trial_open(&own, cases[i].text);
        const struct trial *trial = shared ? &sampled : &own;
        if (trial->judgement.verdict != cases[i].verdict)
            fail_msg("case %zu: verdict %s\n%s", i, verdict_name(trial->judgement.verdict),
                     trial->words);
        for (size_t w = 0; w < 4 && cases[i].words[w] != NULL; w++) {
            const char *word = cases[i].words[w];
            int wanted = word[0] != '!';
            if ((strstr(trial->words, wanted ? word : word + 1) != NULL) != wanted)
                fail_msg("case %zu: \"%s\" in\n%s", i, word, trial->words);
        }
        assert_null(strstr(trial->words, "-nan"));
        if (!shared) trial_close(&own);
    }
}

/* Puts `by` in the place of `what` in a run's configuration. */
static void rewrite(struct trace_run *run, const char *what, const char *by, struct arena *arena) {
    const char *const text = run->plan.configuration, *const at = strstr(text, what);
    char *to;
    if (at == NULL) fail_msg("no %s in\n%s", what, text);
    assert_int_equal(
        arena_format(arena, &to, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what)),
        STATUS_OK);
    run->plan.configuration = to;
}

/* An optimizer of a module may keep no state, and Adafactor's without a mean is the same for many
 * gradients: those that differ are forgiven neither. Adafactor with a mean keeps the sum. */
static void verify_who_remembers_gradients(void **state) {
    (void)state;
    static const struct {
        const char *name, *key, *value;
        uint64_t forgets; /* from which update on; 0: the state would show another gradient */
    } rows[] = {{"optimizer.name: mine", "optimizer.module_sha256: none",
                 "optimizer.module_sha256: 0123", 1},
                {"optimizer.name: adafactor", "optimizer.momentum: 0", "optimizer.beta1: none", 1},
                {"optimizer.name: adafactor", "optimizer.momentum: 0", "optimizer.beta1: 0.9", 0}};
    struct trial trial;
    trial_open(&trial, FORGETS);
    assert_int_equal(trial.judgement.verdict, VERDICT_SAME_WEIGHTS);
    assert_int_equal(trial.judgement.state_step, 1);
    for (size_t k = 0; k < COUNT_OF(rows); k++) {
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        struct judgement judgement;
        assert_int_equal(trace_open(trial.path, &arena, &image), STATUS_OK);
        for (uint32_t i = 0; i < image->run_count; i++) {
            rewrite(&image->runs[i], "optimizer.name: sgd", rows[k].name, &arena);
            rewrite(&image->runs[i], rows[k].key, rows[k].value, &arena);
        }
        assert_int_equal(judge(image, &arena, &judgement), STATUS_OK);
        assert_int_equal(judgement.verdict, VERDICT_SAME_WEIGHTS); /* the divisors differ */
        assert_int_equal(judgement.state_step, rows[k].forgets);
        arena_close(&arena);
    }
    trial_close(&trial);
}

/* What is said of a short run, held against the same pair trained longer: only what is called the
 * same training stays so, and what parts later was called the same weights so far. */
static void corroborate_by_longer_runs(void **state) {
    (void)state;
#define SIZED(steps) "twinstep: 1\nname: t\nsteps: " steps "\n" SMALL
#define SMALL                                                                                      \
    "common:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n  batch: {size: 4, micro: 2}\n"
/* hf-4.50 logs the LR that the next update applies: of totals 10 and 7, update 7's is the first
 * that differs, and update 6 logs it. */
#define TAIL                                                                                       \
    "  schedule: {contract: hf-4.50, name: linear, warmup: 5}\n  optimizer: {lr: 1e-3}\n"          \
    "arms: {baseline: {schedule: {total: 10}}, test: {schedule: {total: 7}}}\n"
#define WARM                                                                                       \
    "  schedule: {contract: hf-4.50, warmup: 2, total: 9}\n"                                       \
    "arms: {baseline: {optimizer: {lr: 1e-3}}, test: {optimizer: {lr: 2e-3}}}\n"
/* The scale halves with each update that overflows: some are skipped before one is not. */
#define SCALED(arms)                                                                               \
    "  schedule: {name: constant}\n  numerics: {compute: f16}\n"                                   \
    "  scaler: {kind: dynamic, init_scale: 1e6}\n  optimizer: {lr: 1e-3}\n"                        \
    "  loop: {skip: nonfinite, on_skip: [log, zero], update: [unscale, clip, optimize, log, "      \
    "count, schedule, zero]}\n" arms
#define SKIP SCALED("arms: {baseline: {}, test: {optimizer: {lr: 2e-3}}}\n")
#define SCALE SCALED("arms: {baseline: {}, test: {scaler: {init_scale: 1.5e6}}}\n")
#define MOVED                                                                                      \
    "  optimizer: {lr: 1e-3}\narms: {baseline: {schedule: {contract: hf-4.50}}, test: {schedule: " \
    "{contract: hf-4.51}}}\n"
#define LOGGED                                                                                     \
    "  loss: {divisor: sum-of-means}\n  optimizer: {lr: 1e-3}\n"                                   \
    "arms: {baseline: {}, test: {loss: {logged: mean}}}\n"
    static const struct {
        const char *text[2]; /* short, long */
        enum verdict verdict[2];
        const char *said; /* of the short run */
    } pairs[] = {
        {{SIZED("6") TAIL, SIZED("7") TAIL},
         {VERDICT_SAME_WEIGHTS, VERDICT_OUTSIDE_FLOOR},
         "lr_logged of update 6, 0.0008 in baseline, 0.0005 in test"},
        {{SIZED("1") WARM, SIZED("2") WARM},
         {VERDICT_SAME_WEIGHTS, VERDICT_OUTSIDE_FLOOR},
         "lr_logged of update 1, 0.0005 in baseline, 0.001 in test"},
        {{SIZED("2") SKIP, SIZED("12") SKIP},
         {VERDICT_SAME_WEIGHTS, VERDICT_OUTSIDE_FLOOR},
         "lr_logged of update 1, 0.001 in baseline, 0.002 in test"},
        {{SIZED("2") SCALE, SIZED("12") SCALE},
         {VERDICT_SAME_WEIGHTS, VERDICT_OUTSIDE_FLOOR},
         "Weights, optimizer state and applied LR are equal after each of 2 updates, but from "
         "update 1 "
         "on, gradients that both arms skipped are not known to be, and what differs may reach a "
         "weight later."},
        {{SIZED("2") MOVED, SIZED("9") MOVED},
         {VERDICT_SAME_TRAINING, VERDICT_SAME_TRAINING},
         "lr_logged of update 1, 0.0005 in baseline, 0.001 in test"},
        {{SIZED("2") LOGGED, SIZED("9") LOGGED},
         {VERDICT_SAME_TRAINING, VERDICT_SAME_TRAINING},
         "loss of update 1, "},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        for (int k = 0; k < 2; k++) {
            struct trial trial;
            trial_open(&trial, pairs[i].text[k]);
            if (trial.judgement.verdict != pairs[i].verdict[k] ||
                (k == 0 && strstr(trial.words, pairs[i].said) == NULL))
                fail_msg("pair %zu, run %d: %s", i, k, trial.words);
            const int alarm = strstr(trial.words, "would raise a false alarm") != NULL;
            if (alarm && trial.judgement.verdict != VERDICT_SAME_TRAINING)
                fail_msg("pair %zu, run %d: %s", i, k, trial.words);
            trial_close(&trial);
        }
    }
}

static void verify_expected_word(void **state) {
    (void)state;
    static const struct {
        const char *word;
        enum expectation expectation;
    } expected[] = {{"oppose", EXPECT_MET}, {"cause", EXPECT_MISSED}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct trial trial;
        char text[1024];
        snprintf(text, sizeof text, OPPOSING "expect: {word: %s}\n", expected[i].word);
        trial_open(&trial, text);
        assert_int_equal(trial.judgement.expectation, expected[i].expectation);
        assert_int_equal(judgement_exit(&trial.judgement),
                         expected[i].expectation == EXPECT_MISSED);
        if (expected[i].expectation == EXPECT_MISSED)
            assert_non_null(strstr(trial.judgement.missed, "oppose"));
        trial_close(&trial);
    }
}

/* Hides an array from the judge, or renames it. */
static struct trace_array *rename_array(struct trace_image *image, const char *from,
                                        const char *to) {
    struct trace_array *array = (struct trace_array *)(uintptr_t)trace_array_of(image, from);
    assert_non_null(array);
    array->plan.path = to;
    return array;
}

/* Programs before this one recorded the way of the last update only; their traces have the same
 * shares by it. One that holds distances alone is shared out by these, and says so. */
static void verify_older_traces(void **state) {
    (void)state;
    struct trial trial;
    struct trace_image *image;
    struct judgement judgement;
    struct arena arena = ARENA_EMPTY;
    trial_open(&trial, OPPOSING);
    assert_int_equal(trace_open(trial.path, &arena, &image), STATUS_OK);
    struct trace_array *way = rename_array(image, "attribution/way_at", "attribution/way");
    way->values += (way->plan.shape[0] - 1) * way->plan.shape[1];
    way->plan.shape[0] = way->plan.shape[1];
    way->plan.rank = 1;
    assert_int_equal(trial.judgement.mark_count, 3); /* its own trace has all three updates */
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(trial.judgement.marks[i].update, i + 1);
    assert_int_equal(judge(image, &arena, &judgement), STATUS_OK);
    assert_int_equal(judgement.word, WORD_OPPOSE);
    assert_false(judgement.by_distance);
    assert_int_equal(judgement.mark_count, 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(judgement.causes[i].share.value == trial.judgement.causes[i].share.value);
    assert_string_equal(judgement.rows[0].text, trial.judgement.rows[0].text);
    assert_non_null(strstr(judgement.rows[0].text, "Of the way from"));

    rename_array(image, "attribution/way", "attribution/none");
    assert_int_equal(judge(image, &arena, &judgement), STATUS_OK);
    assert_true(judgement.by_distance);
    assert_true(judgement.causes[0].share.value > 0.0 && judgement.causes[1].share.value > 0.0);
    assert_non_null(strstr(judgement.rows[0].text, "Of the distance from"));
    assert_null(strstr(judgement.rows[0].text, "the way"));
    char *words = printed(&judgement, judgement_print);
    assert_non_null(strstr(words, "the trace holds no projections"));
    free(words);
    arena_close(&arena);
    trial_close(&trial);
}

/* Programs before this one did not record which steps rounding took back. Weights that stay may
 * then have no gradient or be too coarse; with a master that takes the update in, they are fine. */
static void verify_older_traces_leave_coarseness_open(void **state) {
    (void)state;
    struct trial trial;
    struct trace_image *image;
    struct judgement judgement;
    struct arena arena = ARENA_EMPTY;
    trial_open(&trial, HEAD
               "arms: {baseline: {optimizer: {lr: 1e-6}, numerics: {param: bf16, master: "
               "f32}}, test: {optimizer: {lr: 1e-6}, numerics: {param: bf16, master: none}}}\n");
    assert_null(strstr(trial.words, "gradients are 0"));
    assert_int_equal(trace_open(trial.path, &arena, &image), STATUS_OK);
    rename_array(image, STEPS_LOST_PATH, "steps/none");
    assert_int_equal(judge(image, &arena, &judgement), STATUS_OK);
    assert_true(isnan(judgement.lost[0]) && isnan(judgement.lost[1]));
    char *words = printed(&judgement, judgement_print);
    static const char *const said[] = {
        "in baseline an update leaves 9", "stored weights as they are; their masters take it in",
        "in test an update leaves 9",
        ("their gradients are 0 (rows of tokens that did not occur), or they are too coarse for "
         "it; where they are too coarse, an LR that is wrong hardly shows")};
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (strstr(words, said[i]) == NULL) fail_msg("expected: %s\nin: %s", said[i], words);
    assert_null(strstr(words, "rounding took back"));
    free(words);
    arena_close(&arena);
    trial_close(&trial);
}

/* The table has each figure in percent, and half the width of its interval beside it; and it says
 * of how many orders. */
static void verify_table_shows_the_figures(void **state) {
    (void)state;
    uint32_t intervals = 0;
    assert_non_null(strstr(sampled.words, helper_size(0, 0, 1)
                                              ? "estimated from 12 sampled orders"
                                              : "estimated from 4 sampled orders"));
    for (uint32_t i = 0; i < sampled.judgement.cause_count; i++) {
        const struct judged_cause *const cause = &sampled.judgement.causes[i];
        const struct attributed *const of[] = {&cause->share, &cause->left, &cause->alone};
        char line[256], half[3][32];
        /* Four orders may agree on a share, which then has no interval, and the table says so. */
        if (judgement_lacks_spread(&sampled.judgement, i)) {
            assert_int_equal(helper_size(0, 0, 1), 0);
            snprintf(line, sizeof line,
                     "%-16s %9.3f %% %9.3f %% %9.3f %%   no spread seen in 4 orders; ", cause->name,
                     100.0 * of[0]->value, 100.0 * of[1]->value, 100.0 * of[2]->value);
            if (strstr(sampled.words, line) == NULL) fail_msg("no %s in\n%s", line, sampled.words);
            continue;
        }
        for (size_t f = 0; f < 3; f++)
            snprintf(half[f], sizeof half[f], "%.2g", 100.0 * (of[f]->high - of[f]->low) / 2.0);
        snprintf(line, sizeof line, "%-16s %9.3f %% %9.3f %% %9.3f %%   +- %s, +- %s, +- %s; ",
                 cause->name, 100.0 * of[0]->value, 100.0 * of[1]->value, 100.0 * of[2]->value,
                 half[0], half[1], half[2]);
        if (strstr(sampled.words, line) == NULL) fail_msg("no %s in\n%s", line, sampled.words);
        intervals++;
    }
    assert_true(intervals > 1);
}

/* Every member of the verdict's object stands in the page that says what it means. */
static void verify_json_is_documented(void **state) {
    (void)state;
    static const struct trial *const trials[] = {&plain, &sampled};
    static char page[1 << 18];
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/docs/JSON.md", "rb");
    assert_non_null(file);
    const size_t length = fread(page, 1, sizeof page - 1, file);
    assert_true(length > 0 && length < sizeof page - 1);
    fclose(file);
    const char *const section = strstr(page, "\n## `judgement`\n");
    assert_non_null(section);
    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        const char *name;
        json_t *value, *object = judgement_json(&trials[i]->judgement);
        assert_non_null(object);
        json_object_foreach(object, name, value) {
            char named[64];
            int is_in_a_row = 0;
            snprintf(named, sizeof named, "`%s`", name);
            for (const char *at = strstr(section, "\n| member |"); at != NULL && at[1] == '|';
                 at = strchr(at + 1, '\n')) {
                const char *const cell = strchr(at + 2, '|'), *const found = strstr(at, named);
                is_in_a_row |= found != NULL && found < cell;
            }
            if (!is_in_a_row) fail_msg("docs/JSON.md has no row of %s", named);
        }
        json_decref(object);
    }
}

/* The place of a first difference that nobody watched is unknown, whatever its fields hold. */
static void verify_json_of_a_place(void **state) {
    (void)state;
    static struct judgement copy;
    copy = plain.judgement;
    copy.first_step = 1;
    for (int watched = 0; watched < 2; watched++) {
        copy.place.update = watched ? 1 : 0;
        copy.place.micro = 2;
        copy.place.layer = 3;
        copy.place.structure = "a phase";
        json_t *const object = judgement_json(&copy);
        const json_t *const first = json_object_get(object, "first");
        assert_int_equal(json_is_integer(json_object_get(first, "micro_batch")), watched);
        assert_int_equal(json_is_integer(json_object_get(first, "layer")), watched);
        assert_int_equal(json_is_string(json_object_get(first, "structure")), watched);
        assert_string_equal(json_string_value(json_object_get(first, "by")),
                            watched ? "watch" : "digests");
        json_decref(object);
    }
    copy.place.layer = -1;
    json_t *const object = judgement_json(&copy);
    assert_true(json_is_null(json_object_get(json_object_get(object, "first"), "layer")));
    json_decref(object);
}

/* A law is told where one was fitted, and only there. */
static void verify_json_of_a_growth(void **state) {
    (void)state;
    static struct judgement copy;
    copy = plain.judgement;
    for (int known = 0; known < 2; known++) {
        copy.growth.known = known;
        copy.growth.from = 2;
        copy.growth.to = 9;
        json_t *const object = judgement_json(&copy);
        const json_t *const arms = json_object_get(json_object_get(object, "growth"), "arms");
        assert_non_null(arms);
        assert_int_equal(json_is_string(json_object_get(arms, "law")), known);
        assert_int_equal(json_is_array(json_object_get(arms, "updates")), known);
        json_decref(object);
    }
}

/* Where rounding hides the last update, the cause is the largest at the one that was ranked. */
static void verify_cause_of_a_mark(void **state) {
    (void)state;
    static struct judgement copy;
    copy = sampled.judgement;
    copy.word = WORD_ROUNDING;
    copy.ranked = 0;
    copy.cause_count = COUNT_OF(copy.marks[0].share); /* of more causes no mark is shared out */
    assert_true(judgement_differs(&copy) && copy.cause_count > 2);
    for (uint32_t largest = 0; largest < copy.cause_count; largest++) {
        for (uint32_t i = 0; i < copy.cause_count; i++)
            copy.marks[0].share[i] = i == largest ? -0.5 : 0.25;
        assert_string_equal(judgement_cause(&copy), copy.causes[largest].name);
    }
    copy.ranked = -1;
    assert_string_equal(judgement_cause(&copy), "no-larger-than-rounding");
}

/* SGD with an LR of 1e6: the logits overflow in update 3. */
static void verify_divergence_is_told(void **state) {
    (void)state;
    struct trial trial;
    trial_open(&trial, HEAD "  clip: {max_norm: 0}\n"
                            "arms: {baseline: {}, test: {optimizer: {name: sgd, lr: 1e6}}}\n");
    assert_int_equal(trial.judgement.diverged[0], 0);
    assert_int_equal(trial.judgement.diverged[1], 3);
    assert_non_null(strstr(trial.words, "the loss of test is not finite from update 3 on"));
    assert_null(strstr(trial.words, "100 %"));
    assert_null(strstr(trial.json, "nan"));
    trial_close(&trial);
}

/* A copy of the image whose array `path` has another shape must be refused; nothing may be read
 * beyond its end. */
static void verify_forged_arrays_are_refused(void **state) {
    (void)state;
    static const char *const paths[] = {"floor/equal", "attribution/value", "attribution/closure"};
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    assert_int_equal(trace_open(plain.path, &arena, &image), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        uint32_t k = 0;
        while (k < image->array_count && strcmp(image->arrays[k].plan.path, paths[i]) != 0)
            k++;
        assert_true(k < image->array_count);
        uint64_t *const shape = image->arrays[k].plan.shape;
        const uint64_t right = shape[0];
        assert_in_range(right, 1, 5);
        for (uint64_t rows = 0; rows < 6; rows++) {
            struct judgement judgement;
            shape[0] = rows;
            const enum status status = judge(image, &arena, &judgement);
            assert_int_equal(status, rows == right ? STATUS_OK : STATUS_INPUT);
        }
        shape[0] = right;
    }
    arena_close(&arena);
}

/* Sampled shares with shapes, masks and orders that do not fit together, and with a missing value,
 * must be refused. */
static void verify_forged_orders_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *path;
        double value; /* of the array's second number; 0.5: added to it; NaN: a row less;
                         -inf: two rows */
        enum status status;
    } forgeries[] = {
        {"attribution/mask", 0.5, STATUS_INPUT},
        {"attribution/mask", -1.0, STATUS_INPUT},
        {"attribution/mask", 64.0, STATUS_INPUT},
        {"attribution/mask", 1e30, STATUS_INPUT},
        {"attribution/mask", 0.0, STATUS_INPUT},
        {"attribution/mask", (double)NAN, STATUS_INPUT},
        {"attribution/order", 0.5, STATUS_INPUT},
        {"attribution/order", -(double)INFINITY, STATUS_INPUT},
        {"attribution/order", 6.0, STATUS_INPUT},
        {"attribution/order", -1.0, STATUS_INPUT},
        {"attribution/order", 1e30, STATUS_INPUT},
        {"attribution/order", (double)NAN, STATUS_INPUT},
        {"attribution/value", (double)NAN, STATUS_INPUT},
        {"attribution/value", (double)INFINITY, STATUS_OK}, /* a hybrid diverged: no shares */
    };
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    assert_int_equal(trace_open(sampled.path, &arena, &image), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(forgeries); i += helper_size(4, 1, 1)) {
        struct judgement judgement;
        uint32_t k = 0;
        while (k < image->array_count && strcmp(image->arrays[k].plan.path, forgeries[i].path) != 0)
            k++;
        assert_true(k < image->array_count);
        struct trace_array *const array = &image->arrays[k];
        double *const values = (double *)(uintptr_t)array->values;
        const double right = values[1];
        const uint64_t rows = array->plan.shape[0];
        double second = forgeries[i].value;
        if (second == 0.5) second += right; /* else another whole number */
        if (isnan(second))
            array->plan.shape[0]--;
        else if (second == -(double)INFINITY)
            array->plan.shape[0] = 2;
        else
            values[1] = second;
        enum status status = judge(image, &arena, &judgement);
        if (status != forgeries[i].status) fail_msg("case %zu: %d", i, (int)status);
        assert_true(status != STATUS_OK || !judgement.attributed);
        values[1] = right;
        array->plan.shape[0] = rows;
    }
    arena_close(&arena);
}

static void verify_forged_counts_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"-1", "7", "1e30", "nan", "0.5", "x", ""};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct trace_image *image;
        struct judgement judgement;
        struct arena arena = ARENA_EMPTY;
        assert_int_equal(trace_open(plain.path, &arena, &image), STATUS_OK);
        for (uint32_t k = 0; k < image->attribute_count; k++)
            if (strcmp(image->attributes[k].name, "factors") == 0)
                image->attributes[k].text = bad[i];
        enum status status = judge(image, &arena, &judgement);
        /* 7 is a possible number of factors: then there are no shares */
        if (strcmp(bad[i], "7") == 0)
            assert_true(status == STATUS_OK && !judgement.attributed);
        else
            assert_int_equal(status, STATUS_INPUT);
        arena_close(&arena);
    }
}

/* The text consists of the rows and nothing else: a label in columns 3 to 10, and each line from
 * column 12 on. */
static void verify_text_is_the_rows(void **state) {
    (void)state;
    char *text = NULL;
    size_t length = 0;
    const struct judgement *judgement = &plain.judgement;
    FILE *stream = open_memstream(&text, &length);
    for (uint32_t i = 0; i < judgement->row_count; i++) {
        const struct judged_row *row = &judgement->rows[i];
        assert_int_equal(row->kind == ROW_HEADLINE, i == 0);
        assert_int_equal(row->kind == ROW_UPDATES, i + 1 == judgement->row_count);
        assert_int_equal(row->label[0] == '\0', i == 0);
        assert_true(strlen(row->label) <= 8 && row->text[0] != '\0');
        if (i > 0) fprintf(stream, "  %-8s ", row->label);
        for (const char *c = row->text; *c != '\0'; c++) {
            fputc(*c, stream);
            if (*c == '\n') fprintf(stream, "%*s", row->kind == ROW_UPDATES ? 2 : 11, "");
        }
        fputc('\n', stream);
    }
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(plain.words, text);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),
        cmocka_unit_test(verify_text_is_the_rows),
        cmocka_unit_test(verify_who_remembers_gradients),
        cmocka_unit_test(corroborate_by_longer_runs),
        cmocka_unit_test(verify_expected_word),
        cmocka_unit_test(verify_older_traces),
        cmocka_unit_test(verify_older_traces_leave_coarseness_open),
        cmocka_unit_test(verify_table_shows_the_figures),
        cmocka_unit_test(verify_json_is_documented),
        cmocka_unit_test(verify_json_of_a_place),
        cmocka_unit_test(verify_json_of_a_growth),
        cmocka_unit_test(verify_cause_of_a_mark),
        cmocka_unit_test(verify_divergence_is_told),
        cmocka_unit_test(verify_forged_arrays_are_refused),
        cmocka_unit_test(verify_forged_orders_are_refused),
        cmocka_unit_test(verify_forged_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, open_shared, close_shared);
}
