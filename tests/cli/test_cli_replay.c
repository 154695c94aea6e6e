/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * twinstep replay: runs of every kind must come back to the bit; of a trace whose data changed
 * none is trained; what cannot be replayed must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define SMALL                                                                                      \
    "  data: {max_len: 96}\n  batch: {size: 4, micro: 2}\n"                                        \
    "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"

/* Records a trace, whatever the verdict. */
static void record(const char *scenario, const char *trace) {
    const char *const words[] = {"run", scenario, "-o", trace, "--overwrite", NULL};
    struct said said = helper_say(words, NULL);
    if (said.code == 2 || said.code > 3) fail_msg("%s", said.err);
    helper_free(&said);
}

static void replays(const char *name, const char *common, const char *test) {
    char text[1024];
    snprintf(text, sizeof text,
             "twinstep: 1\nname: %s\nsteps: 3\ncommon:\n" SMALL "%sarms: {baseline: {}, test: "
             "{%s}}\nfloor: {replicates: 1, design: both}\n",
             name, common, test);
    if (strstr(common, "mode: shuffled") == NULL) *strstr(text, "floor:") = '\0';
    helper_write("s.yaml", text);
    record("s.yaml", "s.h5");
    struct said said = helper_run(0, "replay s.h5");
    if (strstr(said.out, "test: 3 updates replayed, bit-equal to the record") == NULL)
        fail_msg("%s: %s", name, said.out);
    helper_free(&said);
}

static void verify_equal(void **state) {
    (void)state;
    replays("plain", "", "optimizer: {lr: 1e-3}");
    replays("contract", "  schedule: {contract: hf, name: cosine, warmup: 1}\n",
            "schedule: {contract: olmo-core, name: linear, warmup: 0}");
    replays("dropout", "  dropout: {attention: 0.1, residual: 0.2}\n",
            "rng: {kind: torch, sms: 1, threads_per_sm: 256}");
    replays("dtypes",
            "  numerics: {param: bf16, master: f32, compute: bf16}\n  clip: {max_norm: 0.1}\n",
            "numerics: {softmax: f32}");
    replays("scaled",
            "  numerics: {compute: f16}\n  loop: {skip: nonfinite, update: [unscale, clip, "
            "optimize, log, count, schedule, zero]}\n",
            "scaler: {kind: dynamic, init_scale: 65536}");
    replays("shaped", "", "numerics: {mode: shaped}");
    replays("noisy", "  numerics: {mode: shuffled}\n  shuffle: {chunk: 4}\n", "seed: 3");
}

/* A record in which a bit flipped: with the flip it comes back, without it the record parts from
 * the training at that update, and baseline's does not. */
static void validate_flip(void **state) {
    (void)state;
    replays("flipped", "",
            "fault: {update: 2, phase: optimize, op: lm_head.weight, tensor: parameter, bit: 30}");
    struct said said = helper_run(1, "replay s.h5 --without-fault --github --junit r.xml");
    assert_non_null(strstr(said.out, "\n::error file=s.h5,title=replay::"));
    char *xml = helper_read("r.xml", NULL);
    if (strstr(xml, "name=\"test\"><failure message=\"update_norm of update 2 differs from the "
                    "record\"/>") == NULL)
        fail_msg("%s", xml);
    free(xml);
    assert_non_null(strstr(said.out, "baseline: 3 updates replayed, bit-equal to the record"));
    assert_non_null(strstr(said.out, "test: differs from the record at update 2: "));
    helper_free(&said);
    said = helper_run(1, "replay s.h5 --without-fault --json");
    assert_non_null(strstr(said.out, "\"equal\": false"));
    assert_non_null(strstr(said.out, "\"first\": 2"));
    helper_free(&said);
}

/* record.replay_check says of each arm what its updates left when they ran again, in the verdict's
 * text and in its JSON; where it was not asked for, nothing is said. */
static void validate_check(void **state) {
    static const char baseline[] =
        "baseline: forward and backward of 3 updates ran again with the same bits";
    static const char test[] =
        "test: forward and backward of update 2 left other bits when they ran again, in the "
        "gradient of lm_head.weight; of 3 checked updates 1 did";
    (void)state;
    replays("checked", "",
            "fault: {update: 2, phase: backward, op: lm_head, tensor: weight gradient, bit: 30}");
    struct said said = helper_run(1, "attribute s.h5");
    assert_null(strstr(said.out, "ran again"));
    helper_free(&said);
    const char *const words[] = {"run", "s.yaml", "--set",  "record.replay_check=1",
                                 "-o",  "s.h5",   "--json", "--overwrite",
                                 NULL};
    said = helper_say(words, NULL);
    assert_int_equal(said.code, 1);
    assert_non_null(strstr(said.out, baseline));
    assert_non_null(strstr(said.out, test));
    helper_free(&said);
    said = helper_run(1, "attribute s.h5");
    assert_non_null(strstr(said.out, baseline));
    assert_non_null(strstr(said.out, test));
    helper_free(&said);
}

static void write_pairs(const char *word) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"prompt\": \"a\", \"chosen\": \"%s\", \"rejected\": \"c\"}\n"
             "{\"prompt\": \"d\", \"chosen\": \"e\", \"rejected\": \"f\"}\n",
             word);
    helper_write("pairs.jsonl", text);
}

/* Data that changed are told before anything is trained, and no run is shown: neither those before
 * the one that reads them, nor as JSON. */
static void validate_other_data(void **state) {
    (void)state;
    static const char told[] =
        "d.h5: run baseline was trained on other data: what pairs.jsonl holds had digest ";
    write_pairs("b");
    helper_write("d.yaml", "twinstep: 1\nname: d\nsteps: 2\ncommon:\n"
                           "  data: {pairs: pairs.jsonl, max_len: 16}\n  batch: {size: 2}\n"
                           "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
                           "arms: {baseline: {}, test: {optimizer: {lr: 1e-3}}}\n");
    helper_write("e.yaml",
                 "twinstep: 1\nname: e\nsteps: 2\ncommon:\n"
                 "  data: {max_len: 96}\n  batch: {size: 2}\n"
                 "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
                 "arms: {baseline: {}, test: {data: {pairs: pairs.jsonl, max_len: 16}}}\n");
    record("d.yaml", "d.h5");
    record("e.yaml", "e.h5");
    helper_accept(0, "replay d.h5");
    helper_accept(1, "bisect d.h5");
    helper_accept(0, "replay e.h5");
    write_pairs("x");
    static const char *const refused[] = {"replay d.h5", "replay d.h5 --json",
                                          "replay d.h5 --run baseline --divisor 1", "bisect d.h5",
                                          "bisect d.h5 --json"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct said said = helper_run(2, refused[i]);
        assert_string_equal(said.out, "");
        assert_non_null(strstr(said.err, told));
        helper_free(&said);
    }
    struct said said = helper_run(2, "replay e.h5");
    assert_string_equal(said.out, "");
    assert_non_null(strstr(said.err, "e.h5: run test was trained on other data: what pairs.jsonl"));
    helper_free(&said);
    helper_accept(0, "replay e.h5 --run baseline");
    write_pairs("b");
    helper_accept(0, "replay d.h5");
}

/* A run whose threads raced is not replayed. The other arm is, and so is a run in mode atomic with
 * one thread, which has nobody to race with. */
static void validate_races(void **state) {
    (void)state;
    helper_write("r.yaml", "twinstep: 1\nname: r\nsteps: 2\nfloor: {replicates: 1}\n"
                           "common:\n" SMALL "arms: {alone: {numerics: {mode: atomic}}, "
                           "raced: {numerics: {mode: atomic, threads: 2}}}\n");
    record("r.yaml", "r.h5");
    struct said said = helper_run(3, "replay r.h5 --run raced");
    assert_non_null(strstr(said.err, "run raced: numerics.mode atomic: its threads raced"));
    helper_free(&said);
    said = helper_run(3, "replay r.h5");
    assert_non_null(strstr(said.out, "alone: 2 updates replayed, bit-equal"));
    assert_non_null(strstr(said.out, "not replayed: run raced: numerics.mode atomic: its threads"));
    helper_free(&said);
    said = helper_run(3, "replay r.h5 --json");
    assert_non_null(strstr(said.out, "\"equal\": null"));
    helper_free(&said);
    said = helper_run(0, "replay r.h5 --run alone");
    helper_free(&said);
}

/* The update has two micro-batches, of 2 and 5 label tokens. */
static void validate_divisor(void **state) {
    (void)state;
    helper_write("two.jsonl", "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n"
                              "{\"input_ids\": [4, 5, 6, 7, 8, 9], "
                              "\"labels\": [-100, 5, 6, 7, 8, 9]}\n");
    helper_write("v.yaml", "twinstep: 1\nname: v\nsteps: 2\ncommon:\n  task: sft\n"
                           "  data: {text: two.jsonl, max_len: 16, shuffle: false}\n"
                           "  batch: {size: 2, micro: 1}\n"
                           "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24, vocab: 31}\n"
                           "arms: {baseline: {}, test: {loss: {divisor: sum-of-means}}}\n");
    record("v.yaml", "v.h5");
    struct said said = helper_run(0, "replay v.h5 --run test --divisor 2");
    assert_non_null(strstr(said.out, "test: 2 updates replayed"));
    assert_non_null(strstr(said.out, "micro-batch 1: divided by 2 +- "));
    assert_non_null(strstr(said.out, " (its own 2 label tokens)"));
    assert_non_null(strstr(said.out, "micro-batch 2: divided by 5 +- "));
    assert_non_null(strstr(said.out, "one divisor for the update would be 7\n"));
    assert_non_null(
        strstr(said.out, "loss.divisor that explains it: sum-of-means, means-over-size\n"));
    helper_free(&said);
    said = helper_run(0, "replay v.h5 --run baseline --divisor 1 --json");
    assert_non_null(strstr(said.out, "\"items\": 5"));
    assert_non_null(strstr(said.out, "\"kind\": \"update\""));
    helper_free(&said);
    said = helper_run(2, "replay v.h5 --divisor 1");
    assert_non_null(strstr(said.err, "--divisor: expected --run RUN with it"));
    helper_free(&said);
    said = helper_run(2, "replay v.h5 --run test --divisor 2 --to 1");
    assert_non_null(strstr(said.err, "run test: --divisor: expected an update from 1 to 1, got 2"));
    helper_free(&said);
    said = helper_run(2, "replay v.h5 --run test --divisor 9");
    assert_non_null(strstr(said.err, "run test: expected an update from 1 to 2, got 9"));
    helper_free(&said);
}

static void validate_errors(void **state) {
    (void)state;
    struct said said = helper_run(2, "replay d.h5 --run nobody");
    assert_non_null(strstr(said.err, "--run: expected one of baseline, test"));
    helper_free(&said);
    said = helper_run(2, "replay d.h5 --run test --to 9");
    assert_non_null(strstr(said.err, "run test: expected an update from 1 to 2, got 9"));
    helper_free(&said);
    said = helper_run(2, "replay d.h5 --to x");
    assert_non_null(strstr(said.err, "--to: expected an update, got \"x\""));
    helper_free(&said);
    helper_write("log.csv", "step,loss\n1,0.5\n2,0.4\n");
    said = helper_run(0, "import log.csv -o log.h5 --overwrite");
    helper_free(&said);
    said = helper_run(2, "replay log.h5");
    assert_non_null(strstr(said.err, "holds no run with a configuration"));
    helper_free(&said);
    said = helper_run(2, "replay log.csv");
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_flip),   cmocka_unit_test(validate_check),
        cmocka_unit_test(verify_equal),    cmocka_unit_test(validate_other_data),
        cmocka_unit_test(validate_races),  cmocka_unit_test(validate_divisor),
        cmocka_unit_test(validate_errors),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
