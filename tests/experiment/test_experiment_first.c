/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * What `run` says differs first. The places were written down before any case was run, from what
 * each key changes; and the finder of `bisect`, which trains the pair by itself, names the same.
 * Besides, what is said where no update can be repeated, and of traces that hold no place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/experiment_plan.h"
#include "experiment/locate/locate_words.h"
#include "tests/experiment/helper_experiment.h"

/* A gradient norm far below what clips, so that clipping differs in no case. */
#define COMMON                                                                                     \
    "common: {batch: {size: 4, micro: 2}, model: {layers: 2, hidden: 16, heads: 2, mlp: 20, "      \
    "vocab: 31}, init: {std: 0.1}, clip: {max_norm: 0}, optimizer: {lr: 1e-3}, "                   \
    "numerics: {mode: shaped}, shaped: {table: \"*: 1\"}}\n"                                       \
    "attribution: {twin: false}\n"
#define ARMS(test) "arms: {baseline: {}, test: {" test "}}\n"
#define EMBEDDING "model.embed_tokens.weight"

static const struct place_case {
    const char *name, *text;
    uint64_t steps, update;
    const char *words;
} cases[] = {
    /* The reference scores the first micro-batch in another dtype; nothing before reads it. */
    {"reference dtype", ARMS("dpo: {reference_compute: bf16}"), 1, 1,
     "forward, micro-batch 1, reference log-probs of both sides"},
    /* The weight is off before the first update. */
    {"nudge", ARMS("init: {nudge: \"model.layers.1.mlp.up_proj.weight[3]\"}"), 1, 1,
     "before the update, model.layers.1.mlp.up_proj.weight parameter"},
    /* Equal weights and reference: every log-prob is equal, and the derivative is -beta / 2. */
    {"beta", ARMS("dpo: {beta: 0.2}"), 1, 1, "forward, micro-batch 1, loss coefficient"},
    {"loss divisor", ARMS("loss: {divisor: sum-of-means}"), 1, 1,
     "forward, micro-batch 1, loss coefficient"},
    {"LR", ARMS("optimizer: {lr: 2e-3}"), 3, 1, "optimize, " EMBEDDING " LR applied"},
    /* A linear decay over 5 or over 50 updates after one of warm-up: f(0) and f(1) agree, f(2)
     * differs, set after update 2 and applied by update 3. */
    {"schedule",
     "arms: {baseline: {schedule: {name: linear, warmup: 1, total: 5}}, "
     "test: {schedule: {name: linear, warmup: 1, total: 50}}}\n",
     3, 3, "optimize, " EMBEDDING " LR applied"},
    /* AdamW's decay follows the LR and is what it reads next; embeddings are decayed. */
    {"decay", ARMS("optimizer: {weight_decay: 0.1}"), 1, 1, "optimize, " EMBEDDING " weight decay"},
    {"data order", ARMS("data: {seed: 99}"), 1, 1, "fetch, micro-batch 1, data tokens"},
    /* The last layer is the first that the backward reaches, and in it the product of the head. */
    {"kernel of weight gradients", ARMS("shaped: {table: \"weight: 2; *: 1\"}"), 1, 1,
     "backward, micro-batch 1, lm_head weight gradient"},
    /* The reference scores a micro-batch before the policy does, with the same kernels. */
    {"kernel of forwards", ARMS("shaped: {table: \"forward: 2; *: 1\"}"), 1, 1,
     "forward, micro-batch 1, reference log-probs of both sides"},
    {"kernel of forwards, no reference",
     "arms: {baseline: {task: sft}, test: {task: sft, shaped: {table: \"forward: 2; *: 1\"}}}\n", 1,
     1, "forward, micro-batch 1, layer 0, q_proj output"},
    {"bit of a weight",
     ARMS("fault: {update: 2, phase: before-the-update, op: lm_head.weight, tensor: parameter, "
          "bit: 20}"),
     2, 2, "before the update, lm_head.weight parameter"},
    {"bit of an activation",
     ARMS("fault: {update: 2, micro: 2, layer: 0, op: swiglu, element: 3, bit: 30}"), 2, 2,
     "forward, micro-batch 2, layer 0, swiglu output"},
    {"bit of a moment",
     ARMS("fault: {update: 1, phase: optimize, op: lm_head.weight, tensor: exp_avg, bit: 30}"), 2,
     1, "optimize, lm_head.weight exp_avg"},
    {"dropout", ARMS("dropout: {attention: 0.1}"), 1, 1,
     "forward, micro-batch 1, layer 0, attention output"},
};

/* The first line of the row `first`. */
static void check_row(const struct judgement *j, const char *words) {
    for (uint32_t i = 0; i < j->row_count; i++)
        if (j->rows[i].kind == ROW_FIRST) {
            if (strstr(j->rows[i].text, words) == NULL) fail_msg("%s: %s", words, j->rows[i].text);
            return;
        }
    fail_msg("no row says what differs first");
}

/* What the finder of `bisect` says of the arms, from trainings of its own. */
static void check_finder(struct bench *bench, const struct place_case *c) {
    struct experiment_plan plan;
    struct locate_result found;
    struct locate_request request = {.steps = c->steps};
    assert_int_equal(
        experiment_plan_open(bench->options.schema, bench->scenario, &bench->arena, &plan),
        STATUS_OK);
    for (int s = 0; s < 2; s++)
        request.sides[s] =
            (struct locate_side){.name = plan.runs[s].id, .config = &plan.runs[s].config};
    assert_int_equal(locate_first_difference(&request, &bench->arena, &found), STATUS_OK);
    assert_null(found.undecided);
    assert_int_equal(found.update, bench->judgement.place.update);
    assert_string_equal(locate_place(found.first.key, found.micro).text,
                        bench->judgement.place.words);
}

static void validate_places(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct place_case *c = &cases[i];
        struct bench bench;
        char text[2048];
        snprintf(text, sizeof text, COMMON "%s", c->text);
        helper_bench_open(&bench, c->steps, text);
        helper_bench_run(&bench);
        const struct judgement *j = &bench.judgement;
        print_message("%s: %s%s\n", c->name, j->place.words, j->place.undecided);
        assert_int_equal(j->first_step, c->update);
        assert_int_equal(j->place.update, c->update);
        assert_string_equal(j->place.words, c->words);
        assert_true(j->first_phase[0] != '\0' && j->first_tensor[0] != '\0');
        check_row(j, c->words);
        check_finder(&bench, c);
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* What only one arm writes is told before the values that differ. Where none does, because the LR
 * is 0 and no weight moves, it is the place. */
static void validate_structure(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *phase, *tensor, *further;
    } at[] = {
        {"lr: 1e-3", "optimize", EMBEDDING " exp_avg",
         "; the first value that differs, optimize, " EMBEDDING " exp_avg"},
        {"name: sgd, lr: 0", "before the update", EMBEDDING " master", ""},
    };
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        struct bench bench;
        char text[2048], words[512];
        snprintf(text, sizeof text,
                 COMMON "arms: {baseline: {optimizer: {%s}, numerics: {param: bf16}}, test: "
                        "{optimizer: {%s}, numerics: {param: bf16, master: f32}}}\n",
                 at[i].optimizer, at[i].optimizer);
        snprintf(words, sizeof words,
                 "update 1, only test has before the update, " EMBEDDING " master%s",
                 at[i].further);
        helper_bench_open(&bench, 1, text);
        helper_bench_run(&bench);
        check_row(&bench.judgement, words);
        assert_string_equal(bench.judgement.first_phase, at[i].phase);
        assert_string_equal(bench.judgement.first_tensor, at[i].tensor);
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* A tensor that has another shape in each arm is told, and none of its values is compared. */
static void validate_shapes(void **state) {
    (void)state;
    static const struct place_case cases_of_shapes[] = {
        {"hidden", ARMS("model: {hidden: 24}"), 1, 1,
         "forward, micro-batch 1, reference log-probs of both sides"},
        /* q, k, v, norms and residuals are as wide as the model; the MLP is not */
        {"hidden, no reference",
         "arms: {baseline: {task: sft}, test: {task: sft, model: {hidden: 24}}}\n", 1, 1,
         "forward, micro-batch 1, layer 0, gate_proj output"},
    };
    for (size_t i = 0; i < COUNT_OF(cases_of_shapes); i++) {
        const struct place_case *c = &cases_of_shapes[i];
        struct bench bench;
        char text[2048];
        snprintf(text, sizeof text, COMMON "%s", c->text);
        helper_bench_open(&bench, 1, text);
        helper_bench_run(&bench);
        check_row(&bench.judgement, "update 1, before the update, " EMBEDDING
                                    " exp_avg has 496 elements in baseline, 744 in test; the first "
                                    "value that differs, ");
        check_row(&bench.judgement, c->words);
        check_finder(&bench, c);
        assert_int_equal(bench.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* Threads that race repeat no update: digests alone say where the arms parted, and so the row says.
 */
static void validate_racing_arms(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 1,
                      COMMON "floor: {design: baseline, replicates: 2, alpha: 0.5}\n" ARMS(
                          "numerics: {mode: atomic, threads: 2}, dpo: {beta: 0.2}"));
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->first_step, 1);
    assert_int_equal(j->place.update, 0);
    assert_string_equal(j->first_phase, "backward");
    check_row(j, "by digests of phases alone");
    check_row(j, "numerics.mode atomic: threads race");
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* Traces of earlier versions have no place, and a text that is none is refused. */
static void validate_traces_without_a_place(void **state) {
    (void)state;
    struct bench bench;
    struct judgement j;
    helper_bench_open(&bench, 1, COMMON ARMS("dpo: {beta: 0.2}"));
    helper_bench_run(&bench);
    /* Read from the file, since the image of a run leaves numbers of each update in it. */
    struct trace_image *read;
    assert_int_equal(trace_open(bench.path, &bench.arena, &read), STATUS_OK);
    struct trace_image image = *read;
    assert_non_null(trace_text_of(&image, FIRST_PLACE_PATH));
    image.text_count = 0;
    assert_int_equal(judge(&image, &bench.arena, &j), STATUS_OK);
    assert_int_equal(j.first_step, 1);
    assert_string_equal(j.first_phase, "backward");
    check_row(&j, "update 1, phase backward, lm_head.weight\nby digests of phases alone");
    struct trace_text wrong[] = {{FIRST_PLACE_PATH, "update: one\n", 12},
                                 {FIRST_PLACE_PATH, "update: 1\nlayer: -1\n", 20},
                                 {FIRST_PLACE_PATH,
                                  "update: 1e30\nmicro_batch: 0\nlayer: -1\n"
                                  "phase: \nop: \ntensor: \nwords: \n"
                                  "structure: \nundecided: \n",
                                  0}};
    image.text_count = 1;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        wrong[i].length = strlen(wrong[i].text);
        image.texts = &wrong[i];
        assert_int_equal(judge(&image, &bench.arena, &j), STATUS_INPUT);
        assert_non_null(strstr(status_text(), FIRST_PLACE_PATH));
    }
    helper_bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_places),
        cmocka_unit_test(validate_structure),
        cmocka_unit_test(validate_shapes),
        cmocka_unit_test(validate_racing_arms),
        cmocka_unit_test(validate_traces_without_a_place),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
