/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * data show: what it prints for a file and for a scenario, as text and as JSON, for which arms, and
 * every refusal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define PAIR "{\"prompt\": \"a\\u001b\", \"chosen\": \" C\", \"rejected\": \"E\", \"n\": 1}\n"

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void expect_say(const char *line, const char *needle) {
    struct said said = helper_run(0, line);
    assert_string_equal(said.err, "");
    require_in(said.out, needle);
    helper_free(&said);
}

static void scenario_write(const char *path, const char *data, const char *test) {
    char text[512];
    snprintf(text, sizeof text,
             "twinstep: 1\ncommon:\n  task: dpo\n  data: {%s}\narms:\n  baseline: {}\n"
             "  test: {%s}\n",
             data, test);
    helper_write(path, text);
}

static void validate_text(void **state) {
    (void)state;
    helper_write("x.jsonl", PAIR PAIR);
    struct said said = helper_run(0, "data show x.jsonl --samples 1 --max-len 4");
    assert_string_equal(said.err, "");
    require_in(said.out, "x.jsonl: 2 pairs, 16 tokens, 4 with a loss, longest sequence 4\ndigest ");
    require_in(said.out, "\ntokens are bytes, <bos> 256 and <eos> 257\n"
                         "truncated: 4 sequences, 6 tokens cut off\n"
                         "ignored: 2 values of other keys, the first is \"n\"\n"
                         "\n"
                         "pair 0, line 1\n"
                         "  chosen: 4 tokens, 1 with a loss, 2 cut off\n");
    assert_null(strchr(said.out, '\x1b'));
    helper_free(&said);
}

static void validate_table(void **state) {
    (void)state;
    helper_write("x.jsonl", PAIR);
    struct said said = helper_run(0, "data show x.jsonl");
    require_in(said.out, "\npair 0, line 1\n"
                         "  chosen: 6 tokens, 3 with a loss\n"
                         "    <bos>a\\x1B[ C<eos>]\n"
                         "      place      id  loss  text\n"
                         "          0     256  -     <bos>\n"
                         "          1      97  -     a\n"
                         "          2      27  -     \\x1B\n"
                         "          3      32  yes   (space)\n"
                         "          4      67  yes   C\n"
                         "          5     257  yes   <eos>\n"
                         "  rejected: 5 tokens, 2 with a loss\n"
                         "    <bos>a\\x1B[E<eos>]\n");
    helper_free(&said);
}

/* Long stretches of tokens are left out; changes of the mask must never be. */
static void validate_long(void **state) {
    (void)state;
    helper_write("i.jsonl", "{\"input_ids\": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19], "
                            "\"labels\": [-100,-100,-100,-100,-100,-100,-100,-100,-100,-100,-100,"
                            "-100,-100,13,14,15,16,17,18,19]}\n");
    struct said said = helper_run(0, "data show i.jsonl");
    require_in(said.out, "tokens are ids of the file: their text is not known (--tokenizer names a "
                         "tokenizer.json)\n");
    require_in(said.out, "  row: 20 tokens, 7 with a loss\n"
                         "      place      id  loss\n"
                         "          0       0  -\n");
    require_in(said.out, "          7       7  -\n"
                         "        ... 2 more alike\n"
                         "         10      10  -\n");
    require_in(said.out, "         12      12  -\n"
                         "         13      13  yes\n");
    require_in(said.out, "         19      19  yes\n");
    helper_free(&said);
    expect_say("data show i.jsonl --all", "          8       8  -\n          9       9  -\n");
}

/* Ids are spelled by a tokenizer where one is named. */
static void validate_tokenizer(void **state) {
    (void)state;
    helper_write("i.jsonl", "{\"input_ids\": [1, 0, 2, 5], \"labels\": [-100, 0, 2, 5]}\n");
    helper_write("t.json", "{\"added_tokens\": [{\"id\": 2, \"content\": \"<|end|>\"}], "
                           "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": "
                           "\"BPE\", \"vocab\": {\"\\u0120\": 0, \"Hi\": 1}}}");
    struct said said = helper_run(0, "data show i.jsonl --tokenizer t.json");
    require_in(said.out, "tokens are ids of the file, spelled by a tokenizer of 3\n");
    require_in(said.out, "    Hi[ <|end|><5>]\n"
                         "      place      id  loss  text\n"
                         "          0       1  -     Hi\n"
                         "          1       0  yes   (space)\n"
                         "          2       2  yes   <|end|>\n"
                         "          3       5  yes   <5>\n");
    helper_free(&said);
    expect_say("data show i.jsonl --json --tokenizer t.json", "\"<|end|>\"");
    helper_refuse(2, "data show i.jsonl --tokenizer i.jsonl",
                  "i.jsonl: expected a tokenizer.json whose model.vocab gives ids to tokens");
    helper_refuse(2, "data show i.jsonl --tokenizer none", "none: cannot open");
    /* text becomes bytes, whatever tokenizer is named */
    helper_write("x.jsonl", PAIR);
    helper_refuse(2, "data show x.jsonl --tokenizer t.json",
                  "--tokenizer: x.jsonl is text, whose tokens are bytes here; make ids: python3 "
                  "docs/pretokenise.py t.json < x.jsonl > ids.jsonl; then twinstep data show "
                  "ids.jsonl --tokenizer t.json");
    helper_refuse(2, "data show builtin:quiz --tokenizer t.json",
                  "--tokenizer: builtin:quiz is text, whose tokens are bytes");
}

/* Rows that data.no_label drops are told wherever data are looked at or trained on. */
static void validate_dropped(void **state) {
    (void)state;
    helper_write("long.jsonl", PAIR "{\"prompt\": \"a long, long prompt\", \"chosen\": \" C\", "
                                    "\"rejected\": \"E\"}\n" PAIR);
    helper_write("drop.yaml", "twinstep: 1\nname: drop\nsteps: 1\ncommon:\n"
                              "  data: {pairs: long.jsonl, max_len: 8, no_label: drop}\n"
                              "  batch: {size: 2}\n"
                              "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n");
    static const char told[] = "1 rows of long.jsonl dropped (data.no_label), for data.max_len 8 "
                               "leaves nothing with a loss in them; the first is line 2\n";
    char line[256];
    helper_refuse(2, "check drop.yaml --set common.data.no_label=error",
                  "long.jsonl:2: chosen: no label is left of ");
    expect_say("data show drop.yaml",
               "\ndropped: 1 rows of which truncation leaves nothing with a loss, first line 2\n");
    expect_say("data show drop.yaml --json", "\"dropped_rows\": 1");
    expect_say("check drop.yaml",
               "\ndropped: 1 rows of which truncation leaves nothing with a loss, first line 2\n");
    expect_say("check drop.yaml --json", "\"dropped_rows\": 1");
    snprintf(line, sizeof line, "\n  data     both arms: %s", told);
    expect_say("run drop.yaml --quiet", line);
    expect_say("attribute drop.h5", line);
    expect_say("attribute drop.h5 --json", "\"dropped\": [\n    \"both arms: 1 rows of");
    struct said said =
        helper_run(1, "run drop.yaml --quiet --overwrite --set arms.test.data.max_len=64");
    snprintf(line, sizeof line, "\n  data     baseline: %s", told);
    require_in(said.out, line);
    helper_free(&said);
}

static void validate_json(void **state) {
    (void)state;
    helper_write("x.jsonl", PAIR PAIR PAIR);
    struct said said = helper_run(0, "data show --json x.jsonl --template plain");
    json_t *list = json_loads(said.out, 0, NULL);
    assert_int_equal(json_array_size(list), 1);
    json_t *object = json_array_get(list, 0);
    const char *source, *task, *side, *second;
    json_int_t samples, length, labelled, line, token;
    int bytes;
    assert_int_equal(json_unpack(object,
                                 "{s:s, s:s, s:I, s:b, s:[{s:I, s:[{s:s, s:I, s:I}, {s:s}]}]}",
                                 "source", &source, "task", &task, "samples", &samples, "bytes",
                                 &bytes, "shown", "line", &line, "sequences", "side", &side,
                                 "length", &length, "labelled", &labelled, "side", &second),
                     0);
    assert_string_equal(source, "x.jsonl");
    assert_string_equal(task, "dpo");
    assert_string_equal(side, "chosen");
    assert_string_equal(second, "rejected");
    assert_int_equal(samples, 3);
    assert_int_equal(bytes, 1);
    assert_int_equal(length, 7); /* <bos> a ESC \n, blank C <eos> */
    assert_int_equal(labelled, 3);
    assert_int_equal(line, 1);
    const json_t *shown = json_object_get(object, "shown");
    assert_int_equal(json_array_size(shown), 2);
    const json_t *sequence =
        json_array_get(json_object_get(json_array_get(shown, 1), "sequences"), 0);
    assert_int_equal(json_unpack((json_t *)json_object_get(sequence, "tokens"), "[i, i, i, I]",
                                 &bytes, &bytes, &bytes, &token),
                     0);
    assert_int_equal(token, 10);
    assert_string_equal(json_string_value(json_array_get(json_object_get(sequence, "text"), 3)),
                        "\\n");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(sequence, "mask"), 4)), 1);
    json_decref(list);
    helper_free(&said);
}

static void validate_scenario(void **state) {
    (void)state;
    helper_write("x.jsonl", PAIR PAIR PAIR PAIR);
    scenario_write("s.yaml", "pairs: x.jsonl, max_len: 5", "");
    expect_say("data show s.yaml --samples 0", "data of both arms\nx.jsonl: 4 pairs, 40 tokens, ");
    scenario_write("t.yaml", "pairs: x.jsonl", "data: {template: chatml}");
    struct said said = helper_run(0, "data show t.yaml --samples 0");
    require_in(said.out, "data of baseline\nx.jsonl: 4 pairs, 44 tokens");
    require_in(said.out, "\n\ndata of test\nx.jsonl: 4 pairs, ");
    helper_free(&said);
    said = helper_run(0, "data show t.yaml --samples 0 --arm test");
    assert_null(strstr(said.out, "baseline"));
    require_in(said.out, "data of test\n");
    helper_free(&said);
    said = helper_run(0, "data show t.yaml --json");
    json_t *list = json_loads(said.out, 0, NULL);
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "arms")),
                        "test");
    json_decref(list);
    helper_free(&said);
}

static void validate_task(void **state) {
    (void)state;
    helper_write("m.jsonl",
                 "\n{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": "
                 "\"assistant\", \"content\": \"A\"}]}\n");
    expect_say("data show m.jsonl --template chatml",
               "    <|im_start|>user\\nQ<|im_end|>\\n<|im_start|>assistant\\n[A<|im_end|>\\n]\n");
    expect_say("data show builtin:devil --samples 0", "devil.tsv: ");
    expect_say("data show builtin:quiz --task sft --samples 0", " samples, ");
    expect_say("data show builtin:quiz --samples 0", " pairs, ");
}

static const struct {
    const char *line, *error;
} refused[] = {
    {"data show", "data show: expected SCENARIO|FILE, got nothing"},
    {"data", "data: expected one more word; see twinstep data --help"},
    {"data show none.jsonl", "none.jsonl: cannot open: No such file"},
    {"data show bad.jsonl", "bad.jsonl:1:"},
    {"data show x.parquet", "x.parquet: expected JSONL, got Parquet; "
                            "dataset.to_json(\"x.jsonl\") of datasets writes JSONL"},
    {"data show x.arrow", "x.arrow: expected JSONL, got Arrow; dataset.to_json("},
    {"data show stream.jsonl", "stream.jsonl: expected JSONL, got Arrow"},
    {"data show s.yaml --set common.data.pairs=x.parquet",
     "data of both arms: x.parquet: expected JSONL, got Parquet; dataset.to_json("},
    {"data show bare.jsonl",
     "bare.jsonl:1: key \"labels\" is missing; a row has input_ids, labels"},
    {"data show x.jsonl --arm test",
     "x.jsonl is a data file: expected --task, --template, --max-len or --vocab, got --arm, which "
     "is for scenarios"},
    {"data show x.jsonl --set steps=3", "got --set, which is for scenarios"},
    {"data show x.jsonl --task dop", "--task: unknown name dop; did you mean dpo?"},
    {"data show x.jsonl --task sft",
     "x.jsonl:1: a row of prompt, chosen, rejected is for task dpo, but the task is sft"},
    {"data show x.jsonl --template chatlm",
     "--template: unknown name chatlm; did you mean chatml?"},
    {"data show x.jsonl --max-len 1", "--max-len: expected 2 to 16777216, got 1"},
    {"data show x.jsonl --max-len -3", "--max-len: expected a whole number, got -3"},
    {"data show x.jsonl --samples many", "--samples: expected a whole number, got many"},
    {"data show x.jsonl --vocab 99999999999999999999999",
     "--vocab: expected a whole number, got 99999999999999999999999"},
    {"data show x.jsonl --vocab 258", "x.jsonl: text needs a vocabulary of 259"},
    {"data show i.jsonl --vocab 19",
     "i.jsonl:1: \"input_ids\"[1]: id 19 is not below the vocabulary size 19"},
    {"data show s.yaml --vocab 300",
     "--vocab is for data files (.jsonl, builtin:); of a scenario expected --set "
     "common.model.vocab=VALUE"},
    {"data show s.yaml --arm other", "--arm: expected baseline or test, got other"},
    {"data show s.yaml --set common.data.max_len=2", "data of both arms: x.jsonl:1: chosen: no "},
    {"data show nosuch", "nosuch: error: no such file, and no scenario of the catalogue"},
};

static void validate_refused(void **state) {
    (void)state;
    helper_write("x.jsonl", PAIR);
    helper_write("bad.jsonl", "{\n");
    helper_write("x.parquet", "PAR1\x15\x04");
    helper_write("x.arrow", "ARROW1");
    helper_write("stream.jsonl", "\xff\xff\xff\xff\x01");
    helper_write("bare.jsonl", "{\"input_ids\":[1,2,3]}\n");
    helper_write("i.jsonl", "{\"input_ids\": [1, 19], \"labels\": [1, 19]}\n");
    scenario_write("s.yaml", "pairs: x.jsonl", "");
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        helper_refuse(2, refused[i].line, refused[i].error);
    expect_say("data --help", "  data show      the first pairs or samples");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_text),    cmocka_unit_test(validate_table),
        cmocka_unit_test(validate_long),    cmocka_unit_test(validate_tokenizer),
        cmocka_unit_test(validate_json),    cmocka_unit_test(validate_scenario),
        cmocka_unit_test(validate_task),    cmocka_unit_test(validate_refused),
        cmocka_unit_test(validate_dropped),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
