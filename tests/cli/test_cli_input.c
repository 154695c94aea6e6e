/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * Every class of bad input through the binary must give exit status 2 and one error line with file,
 * line and column, must print no output and leave no trace. */
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

#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

#define HEAD "twinstep: 1\nname: bad\n"

static const struct {
    const char *about, *text, *needle;
} files[] = {
    {"unknown key", HEAD "common:\n  optimizer: {lrr: 1}\n",
     "bad.yaml:4:15: error: optimizer: unknown key \"lrr\"; did you mean optimizer.lr?"},
    {"unknown head key", HEAD "stepz: 3\n", "bad.yaml:3:1: error: unknown key"},
    {"wrong type", HEAD "common:\n  schedule: {warmup: ten}\n",
     "bad.yaml:4:22: error: schedule.warmup: expected a number"},
    {"wrong shape", HEAD "common: 3\n", "bad.yaml:3:9: error: common: expected a map"},
    {"duplicate key", HEAD "common:\n  seed: 1\n  seed: 2\n",
     "bad.yaml:5:3: error: key \"seed\" is given twice, first in line 4"},
    {"overflow of an integer", HEAD "steps: 99999999999999999999999\n",
     "bad.yaml:3:8: error: steps"},
    {"overflow of a real", HEAD "common: {optimizer: {lr: 1e999}}\n",
     "bad.yaml:3:26: error: optimizer.lr: expected a number"},
    {"negative size", HEAD "common: {batch: {size: -1}}\n",
     "bad.yaml:3:24: error: batch.size: expected"},
    {"not a number", HEAD "common: {optimizer: {lr: .nan}}\n",
     "bad.yaml:3:26: error: optimizer.lr: expected a number"},
    {"quoted number", HEAD "common: {seed: \"3\"}\n", "bad.yaml:3:16: error: seed: expected"},
    {"spans keys", HEAD "common: {batch: {size: 4, micro: 3}}\n",
     "bad.yaml:3:34: error: batch.micro: expected a divisor"},
    {"a bound that is open", HEAD "common: {optimizer: {beta1: 1}}\n",
     "bad.yaml:3:29: error: optimizer.beta1: expected a number >= 0 and < 1, got \"1\""},
    {"spans keys of a class", HEAD "arms: {a: {}, b: {optimizer: {name: sgd, nesterov: true}}}\n",
     "bad.yaml:3:52: error: optimizer.nesterov: expected momentum > 0"},
    {"derived from another key", HEAD "common: {model: {heads: 3}}\n",
     "bad.yaml:3:25: error: model.heads: model.head_dim: auto needs model.heads (3) to divide"},
    {"too many runs to enumerate", HEAD "floor: {replicates: 11}\n",
     "bad.yaml:3:21: error: floor.replicates: expected at most 10 runs"},
    {"unknown word", HEAD "common: {model: {family: gpt}}\n",
     "bad.yaml:3:26: error: model.family: expected one of olmo2, llama"},
    {"unknown optimizer", HEAD "common: {optimizer: {name: adamax}}\n",
     "bad.yaml:3:28: error: optimizer.name: expected one of adafactor, adam, adamw, lion, sgd"},
    {"known, not here", HEAD "common: {numerics: {shards: 2, mode: shaped}}\n",
     "bad.yaml:3:29: error: numerics.shards: 2 is not available"},
    {"operands, not storage", HEAD "common: {numerics: {param: tf32}}\n",
     "bad.yaml:3:28: error: numerics.param: expected f32, f64, bf16 or f16, got tf32"},
    {"three arms", HEAD "arms: {a: {}, b: {}, c: {}}\n",
     "bad.yaml:3:1: error: arms: expected two arms, got 3"},
    {"newer format", "twinstep: 2\n", "bad.yaml:1:11: error: twinstep: 2 is newer"},
    {"no version", "name: bad\n", "bad.yaml: error: twinstep: expected the version"},
    {"empty", "", "bad.yaml: error: the file is empty"},
    {"only a comment", "# nothing\n", "bad.yaml: error: the file is empty"},
    {"a list", "- 1\n", "bad.yaml:1:1: error: expected a map"},
    {"broken YAML", HEAD "common: {seed: 3\n", "bad.yaml:3: error: "},
    {"a tab", HEAD "common:\n\tseed: 3\n", "bad.yaml:4:1: error: "},
    {"invalid UTF-8", HEAD "about: \"\xff\xfe\"\n", "bad.yaml:3:9: error: expected UTF-8 text"},
    {"illegal loop", HEAD "common:\n  loop:\n    update: [clip, log, zero]\n",
     "bad.yaml:5: error: arm baseline: loop.update: expected optimize"},
    {"illegal loop of one arm",
     HEAD "arms:\n  baseline: {}\n  test:\n    loop:\n      micro: [forward, fetch, backward]\n",
     "bad.yaml:7: error: arm test: loop.micro[0] (forward): reads the micro-batch"},
    {"data file missing", HEAD "common: {data: {pairs: nowhere.jsonl}}\n",
     "bad.yaml:3:24: error: data.pairs: nowhere.jsonl: cannot open: No such file"},
    {"data file missing for one arm",
     HEAD "common: {task: sft}\narms:\n  baseline: {}\n  test:\n    data:\n"
          "      text: nowhere.jsonl\n",
     "bad.yaml:8:13: error: data.text: nowhere.jsonl: cannot open: No such file"},
    {"nothing left to learn", HEAD "common: {data: {max_len: 4}}\n",
     "tokens after truncation to max_len 4; raise data.max_len"},
    {"data word unknown", HEAD "common: {data: {pairs: \"builtin:nothing\"}}\n",
     "builtin:nothing: no such text"},
    {"more pairs than there are", HEAD "common: {batch: {size: 5000}}\n",
     "batch.size is 5000 samples, but the data hold 1670"},
};

static void require_one_error(const struct said *said, const char *about, const char *needle) {
    if (said->code != 2) fail_msg("%s: exit status %d\n%s", about, said->code, said->err);
    if (said->out[0] != '\0') fail_msg("%s: printed %s", about, said->out);
    if (strstr(said->err, needle) == NULL || strstr(said->err, "error: ") == NULL)
        fail_msg("%s: expected %s\ngot: %s", about, needle, said->err);
}

static void validate_bad_scenarios(void **state) {
    (void)state;
    const char *const check[] = {"check", "bad.yaml", NULL};
    const char *const run[] = {"run", "bad.yaml", NULL};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i += helper_size(4, 1, 1)) {
        helper_write("bad.yaml", files[i].text);
        struct said checked = helper_say(check, NULL), ran = helper_say(run, NULL);
        require_one_error(&checked, files[i].about, files[i].needle);
        require_one_error(&ran, files[i].about, files[i].needle);
        if (helper_exists("bad.h5") || helper_exists("bad.h5.part"))
            fail_msg("%s: left a trace", files[i].about);
        helper_free(&checked);
        helper_free(&ran);
    }
}

static void validate_binary(void **state) {
    (void)state;
    unsigned char bytes[4096];
    uint32_t word = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        word = word * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(word >> 24);
    }
    helper_write_bytes("noise.yaml", bytes, sizeof bytes);
    helper_write_bytes("zeros.yaml", "twinstep: 1\n\0\0\0", 15);
    helper_refuse(2, "check noise.yaml", "noise.yaml:");
    helper_refuse(2, "check zeros.yaml", "zeros.yaml:");
    helper_refuse(2, "attribute noise.yaml", "noise.yaml: ");
    helper_refuse(2, "recover noise.yaml -o out.h5", "noise.yaml: ");
    assert_false(helper_exists("out.h5"));
    /* a scenario that is really a program */
    helper_refuse(2, "check " TWINSTEP_BINARY, "error: ");
}

static void validate_wrong_files(void **state) {
    (void)state;
    helper_refuse(2, "run missing.yaml", "missing.yaml: error: no such file");
    helper_refuse(2, "check ./missing.yaml", "./missing.yaml: error: cannot open: No such file");
    assert_int_equal(symlink("itself.yaml", "itself.yaml"), 0);
    helper_refuse(2, "check itself.yaml", "itself.yaml: error: cannot open: Too many levels");
    helper_refuse(2, "check nul-pair", "did you mean null-pair?");
    assert_int_equal(mkdir("folder", 0777), 0);
    helper_refuse(2, "run folder", "folder: error: expected a file of text, got a folder");
    helper_refuse(2, "attribute folder", "folder");
    helper_refuse(2, "run null-pair/", "null-pair/: error: cannot open");
    helper_write("plain.h5", "this is text");
    helper_refuse(2, "attribute plain.h5", "plain.h5: ");
    helper_write("empty.h5", "");
    helper_refuse(2, "attribute empty.h5", "empty.h5: ");
}

static void validate_bad_sets(void **state) {
    (void)state;
    static const struct {
        const char *set, *needle;
    } sets[] = {{"common.seed", "expected"},
                {"=3", "error: "},
                {"common.sed=3", "common.sed"},
                {"steps=0", "steps: expected"},
                {"arms.tset.seed=1", "no such arm"},
                {"common.batch.micro=x", "batch.micro: expected"},
                {"common.numerics.threads=99999", "numerics.threads: expected"}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "check null-pair --set %s", sets[i].set);
        helper_refuse(2, line, sets[i].needle);
    }
}

/* Of a bad row of the user's data, the file, the line and the reason must be given. */
static void validate_bad_data(void **state) {
    (void)state;
    helper_write("rows.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"
                               "{\"prompt\": \"a\", \"chosen\": 3, \"rejected\": \"c\"}\n");
    helper_scenario("rows.yaml", "name: rows", "data: {pairs: rows.jsonl}", "");
    helper_write("data.yaml", "twinstep: 1\ncommon: {data: {pairs: rows.jsonl}}\n");
    helper_refuse(2, "check data.yaml", "rows.jsonl:2");
    helper_refuse(2, "check rows.yaml", "error: "); /* data twice */
}

/* Relative paths of data files begin at the scenario's folder, wherever the program runs. */
static void verify_data_is_found_beside_the_scenario(void **state) {
    (void)state;
    char text[4096] = "";
    for (int i = 0; i < 8; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"prompt\": \"number %d is \", \"chosen\": \"%d\", \"rejected\": \"no\"}\n", i,
                 i);
    mkdir("deep", 0777);
    helper_write("deep/own.jsonl", text);
    helper_write("deep/own.yaml", "twinstep: 1\ncommon: {data: {pairs: own.jsonl}}\n");
    struct said said = helper_run(0, "check deep/own.yaml");
    assert_non_null(strstr(said.out, "deep/own.jsonl: 8 samples"));
    helper_free(&said);
    helper_refuse(2, "check deep/own.yaml --set common.data.pairs=own2.jsonl", "deep/own2.jsonl");
    assert_int_equal(chdir("deep"), 0);
    said = helper_run(0, "check own.yaml");
    assert_non_null(strstr(said.out, "\nown.jsonl: 8 samples"));
    helper_free(&said);
    assert_int_equal(chdir(".."), 0);
    char line[1200];
    snprintf(line, sizeof line, "check deep/own.yaml --set common.data.pairs=d%01020d.jsonl", 7);
    line[strlen("check deep/own.yaml --set common.data.pairs=") + 1021] = '\0'; /* 1021 bytes */
    helper_refuse(2, line, "data.pairs: expected a path of at most 1023 bytes, folder included");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_bad_scenarios),
        cmocka_unit_test(validate_binary),
        cmocka_unit_test(validate_wrong_files),
        cmocka_unit_test(validate_bad_sets),
        cmocka_unit_test(validate_bad_data),
        cmocka_unit_test(verify_data_is_found_beside_the_scenario),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
