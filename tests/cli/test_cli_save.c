/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * run --save-model must write what model.from reads: the saved arm continues as a training of its
 * own, and two saved arms compare tensor by tensor. What cannot be saved must be refused before
 * anything trains. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void validate_both_arms(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    struct said said = helper_run(1, "run s.yaml -o s.h5 --save-model=saved --quiet");
    helper_free(&said);
    assert_true(helper_exists("saved/baseline/config.json"));
    assert_true(helper_exists("saved/test/model.safetensors"));
    said = helper_run(1, "parity weights saved/baseline saved/test");
    require_in(said.out, "model.embed_tokens.weight");
    helper_free(&said);
    /* relative paths begin at the scenario's folder */
    helper_write("saved/on.yaml", "twinstep: 1\nname: on\nabout: x\nsteps: 2\n"
                                  "common: {model: {from: baseline}}\n"
                                  "arms: {baseline: {}, test: {model: {from: test}}}\n");
    said = helper_run(1, "run saved/on.yaml -o on.h5 --quiet");
    require_in(said.out, "Cause: init (the initial weights); nothing else");
    require_in(said.out, "model.from: saved/baseline -> saved/test");
    helper_free(&said);
    said = helper_run(0, "replay on.h5");
    require_in(said.out, "test: 2 updates replayed, bit-equal to the record");
    helper_free(&said);
}

static void require_in_file(const char *path, const char *needle) {
    size_t length;
    char *const text = helper_read(path, &length);
    require_in(text, needle);
    free(text);
}

/* A model of bytes gets a tokenizer of bytes, with which it is still trained on text; one without a
 * vocabulary of its own gets a file that says so; one that began from a folder gets its files, and
 * keeps none that were there before. */
static void validate_tokenizer_files(void **state) {
    (void)state;
    helper_write("b.yaml",
                 "twinstep: 1\nsteps: 1\ncommon: {task: sft, data: {text: builtin:devil}}\n"
                 "arms: {baseline: {}, test: {}}\n");
    struct said said = helper_run(0, "run b.yaml -o b.h5 --save-model=test=bytes --quiet");
    helper_free(&said);
    require_in_file("bytes/tokenizer.json", "\"\\u0120\": 32,");
    require_in_file("bytes/tokenizer.json",
                    "\"\\u0143\": 173,"); /* the soft hyphen is the last that has no print */
    require_in_file("bytes/tokenizer.json", "\"\\u00FF\": 255");
    helper_write("c.yaml", "twinstep: 1\nsteps: 1\ncommon: {task: sft, model: {from: bytes}, data: "
                           "{text: builtin:devil}}\narms: {baseline: {}, test: {}}\n");
    helper_accept(0, "check c.yaml");
    helper_write("bytes/tokenizer.json", "{\"x\": 1}");
    helper_write("bytes/merges.txt", "a b\n");
    helper_refuse(2, "check c.yaml", "model.from bytes has a tokenizer (tokenizer.json)");
    helper_write("ids.jsonl", "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2, 3]}\n");
    helper_write("d.yaml",
                 "twinstep: 1\nsteps: 1\ncommon: {task: sft, model: {from: bytes}, data: "
                 "{text: ids.jsonl}, batch: {size: 1}}\narms: {baseline: {}, test: {}}\n");
    assert_int_equal(mkdir("own", 0777), 0);
    helper_write("own/vocab.json", "{}");
    said = helper_run(0, "run d.yaml -o d.h5 --save-model=test=own --overwrite --quiet");
    helper_free(&said);
    require_in_file("own/tokenizer.json", "{\"x\": 1}");
    require_in_file("own/merges.txt", "a b\n");
    assert_false(helper_exists("own/vocab.json"));
    helper_write("e.yaml",
                 "twinstep: 1\nsteps: 1\ncommon: {task: sft, model: {vocab: 40}, data: "
                 "{text: ids.jsonl}, batch: {size: 1}}\narms: {baseline: {}, test: {}}\n");
    said = helper_run(0, "run e.yaml -o e.h5 --save-model=test=none --quiet");
    helper_free(&said);
    assert_false(helper_exists("none/tokenizer.json"));
    require_in_file("none/tokenizer_config.json", "PreTrainedTokenizerFast");
}

/* A folder with a tokenizer knows other ids than bytes, so text is refused with what to run. */
static void validate_text_for_a_tokenizer(void **state) {
    (void)state;
    static const char *const files[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};
    static const char *const verbs[] = {"run t.yaml -o t.h5", "check t.yaml", "data show t.yaml",
                                        "bisect t.yaml"};
    helper_scenario("s.yaml", "", "", "");
    helper_accept(0, "run s.yaml -o tok.h5 --save-model=test=tok --quiet");
    helper_write("rows.jsonl", "{\"text\": \"to be\"}\n{\"text\": \"or not\"}\n");
    helper_write("ids.jsonl", "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2, 3]}\n"
                              "{\"input_ids\": [4, 2, 3], \"labels\": [4, 2, 3]}\n");
    helper_write("t.yaml", "twinstep: 1\nsteps: 1\ncommon: {task: sft, data: {text: rows.jsonl}, "
                           "batch: {size: 2}}\narms: {baseline: {}, test: {model: {from: tok}}}\n");
    helper_accept(0, "check t.yaml");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[64], error[512], line[128];
        snprintf(path, sizeof path, "tok/%s", files[i]);
        helper_write(path, "{}");
        snprintf(
            error, sizeof error,
            "data.text: rows.jsonl is text, which is trained as bytes here, but model.from tok "
            "has a tokenizer (%s), so the model knows other ids; make ids: python3 "
            "docs/pretokenise.py tok < rows.jsonl > ids.jsonl; then data.text: ids.jsonl",
            files[i]);
        for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++)
            helper_refuse(2, verbs[v], error);
        snprintf(line, sizeof line, "check t.yaml --set common.data.text=builtin:devil");
        helper_refuse(2, line, "data.text: builtin:devil is text");
        helper_accept(0, "check t.yaml --set common.data.text=ids.jsonl");
        assert_int_equal(remove(path), 0);
    }
    assert_false(helper_exists("t.h5"));
}

/* Counts of bytes would send whoever has long prompts to data.max_len, which is of ids. */
static void validate_long_text_for_a_tokenizer(void **state) {
    (void)state;
    static const char *const verbs[] = {"run l.yaml -o l.h5", "check l.yaml", "data show l.yaml"};
    helper_scenario("s.yaml", "", "", "");
    helper_accept(0, "run s.yaml -o long.h5 --save-model=test=long --quiet");
    helper_write("long.jsonl", "{\"prompt\": \"a prompt of more than twenty bytes\", "
                               "\"completion\": \" b\"}\n");
    helper_write("l.yaml", "twinstep: 1\nsteps: 1\ncommon: {task: sft, data: {text: long.jsonl, "
                           "max_len: 20}, batch: {size: 1}, model: {from: long}}\n"
                           "arms: {baseline: {}, test: {}}\n");
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++)
        helper_refuse(2, verbs[v], "raise data.max_len");
    helper_write("long/tokenizer.json", "{}");
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++)
        helper_refuse(2, verbs[v], "data.text: long.jsonl is text, which is trained as bytes here");
    assert_int_equal(remove("long/tokenizer.json"), 0);
}

/* The saved weights are those after the last update; without an update they are the initial
 * ones. */
static void validate_one_arm(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.0}");
    struct said said = helper_run(1, "run s.yaml -o one.h5 --save-model=test=one --quiet");
    helper_free(&said);
    assert_true(helper_exists("one/config.json"));
    said = helper_run(1, "run s.yaml -o one.h5 --overwrite --save-model=test=two --quiet "
                         "--set=steps=1");
    helper_free(&said);
    assert_true(helper_same_bytes("one/model.safetensors", "two/model.safetensors"));
    assert_true(helper_same_bytes("one/config.json", "two/config.json"));
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=one --quiet",
                  "one/model.safetensors: it is there already");
    assert_false(helper_exists("x.h5"));
    said = helper_run(1, "run s.yaml -o one.h5 --overwrite --save-model=test=one --quiet");
    helper_free(&said);
}

/* What a writer of shards left that was cut off before its index is a model, too. */
static void validate_shards_alone(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    assert_int_equal(mkdir("cut", 0777), 0);
    helper_write("cut/model-00001-of-00002.safetensors", "cut off");
    helper_refuse(2, "run s.yaml -o cut.h5 --save-model=test=cut --quiet",
                  "cut/model-00001-of-00002.safetensors: it is there already");
    assert_false(helper_exists("cut.h5"));
    assert_int_equal(remove("cut/model-00001-of-00002.safetensors"), 0);
    helper_write("cut/model-00001-of-00002.safetensors.md", "no shard");
    helper_write("cut/model-1-of-2", "no shard");
    struct said said = helper_run(1, "run s.yaml -o cut.h5 --save-model=test=cut --quiet");
    helper_free(&said);
    assert_true(helper_exists("cut/model.safetensors"));
}

static void validate_refusals(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=", "expected FOLDER or ARM=FOLDER");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=", "expected FOLDER or ARM=FOLDER");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=third=f", "there are baseline and test");
    helper_refuse(2, "run s.yaml s.yaml --save-model=f", "expected one scenario, got 2");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=s.yaml", "made in s.yaml/: Not a directory");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=s.yaml", "s.yaml, which is none");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=no/such/",
                  "cannot be made in no/: No such");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=f --set=common.model.mlp_bias=true",
                  "the class of olmo2 models has no biases in its MLP");
    assert_false(helper_exists("x.h5"));
    assert_false(helper_exists("x.h5.part"));
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=f --save-model=g",
                  "arm baseline is saved to f");
    assert_false(helper_exists("f"));
    assert_false(helper_exists("g"));
    assert_int_equal(mkdir("f", 0777), 0); /* what was there stays */
    helper_refuse(2, "run s.yaml -o no/x.h5 --save-model=f", "no/x.h5");
    helper_refuse(2, "run s.yaml -o no/x.h5 --save-model=g", "no/x.h5");
    assert_true(helper_exists("f"));
    assert_false(helper_exists("g"));
    assert_int_equal(rmdir("f"), 0);
}

/* The runs of the arms read the source again, so it must still be what it was. */
static void validate_sources(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    struct said said = helper_run(1, "run s.yaml -o from.h5 --save-model=test=from --quiet");
    helper_free(&said);
    helper_write("on.yaml", "twinstep: 1\nname: on\nabout: x\nsteps: 2\n"
                            "common: {model: {from: from}}\n"
                            "arms: {baseline: {}, test: {optimizer: {lr: 0.02}}}\n");
    assert_int_equal(symlink("from", "linked"), 0);
    static const char *const spellings[] = {"test=from", "baseline=./from/", "test=linked"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char words[128];
        snprintf(words, sizeof words, "run on.yaml -o x.h5 --overwrite --save-model=%s --quiet",
                 spellings[i]);
        helper_refuse(2, words, "model.from of arm baseline is this folder; save to another one");
    }
    assert_false(helper_exists("x.h5"));
    said = helper_run(1, "run on.yaml -o on.h5 --overwrite --save-model=test=fresh --quiet");
    helper_free(&said);
}

/* Each arm needs a folder of its own: a value that is repeated must be an error, and none may be
 * ignored. */
static void validate_repeated(void **state) {
    (void)state;
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    struct said said = helper_run(1, "run s.yaml -o two.h5 --save-model=baseline=own0 "
                                     "--save-model=test=own1 --quiet");
    helper_free(&said);
    assert_true(helper_exists("own0/config.json"));
    assert_true(helper_exists("own1/config.json"));
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=p --save-model=test=q",
                  "--save-model test=q: arm test is saved to p already");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=p --save-model=test=q",
                  "--save-model test=q: arm test is saved to p/test already");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=q --save-model=third=r", "no such arm");
    helper_refuse(2, "run s.yaml -o x.h5 --save-model=test=q --save-model=baseline=./q/ --quiet",
                  "expected a folder for each arm to save to, got one for both");
    assert_false(helper_exists("x.h5"));
    assert_false(helper_exists("q"));
}

/* The folder would stand where the trace is to be written; nothing is made before that is said. */
static void validate_one_path(void **state) {
    (void)state;
    static const struct {
        const char *words, *told;
    } cases[] = {
        {"-o a.h5 --save-model=a.h5", "a.h5: expected a folder apart from the trace's files, got "
                                      "a.h5, which the trace a.h5 needs: both options name one "
                                      "path"},
        {"-o a.h5 --save-model=./a.h5/", "got a.h5, which"},
        {"-o a.h5 --save-model=test=a.h5", "got a.h5, which"},
        {"-o q.h5 --save-model=q.h5.part", "got q.h5.part, which the trace q.h5 needs"},
        {"-o q.h5 --save-model=fine --save-model=q.h5.part.kept-2", "got q.h5.part.kept-2, which"},
        {"-o q/test --save-model=q", "got q/test, which the trace q/test needs"},
    };
    helper_scenario("s.yaml", "", "", "optimizer: {lr: 0.02}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        snprintf(line, sizeof line, "run s.yaml --quiet %s", cases[i].words);
        helper_refuse(2, line, cases[i].told);
    }
    static const char *const made[] = {"a.h5", "q.h5", "q.h5.part", "q.h5.part.kept-2",
                                       "fine", "q"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_false(helper_exists(made[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_both_arms),
        cmocka_unit_test(validate_tokenizer_files),
        cmocka_unit_test(validate_text_for_a_tokenizer),
        cmocka_unit_test(validate_long_text_for_a_tokenizer),
        cmocka_unit_test(validate_one_arm),
        cmocka_unit_test(validate_shards_alone),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_sources),
        cmocka_unit_test(validate_repeated),
        cmocka_unit_test(validate_one_path),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
