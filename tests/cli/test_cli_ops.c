/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * twinstep ops at the door: what each status means, what it says of torchtitan's text and of files
 * that are wrong. The rule has tests of its own (tests/dumps/), and so have real dumps
 * (tests/bench/op_dumps.py). The text of torchtitan is constructed after its source. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

#define HEAD "Total captured activations: 3\nExcluded ops dispatched: t, view\n====\n\n"
#define EMBED                                                                                      \
    "[tok_embeddings/op_0_embedding]\n  Shape: torch.Size([2, 4]), Dtype: torch.float32\n"         \
    "  L2 norm:  1.5e+00\n  Output hash: 8.5\n  Input hashes: 21.0, 3.0\n  Input producers: ;\n"   \
    "  Location: llama3/model.py:12\n\n"
#define MUL_BY(out, in, by)                                                                        \
    "[layers.0.ffn.w1/op_0_mm]\n  Shape: torch.Size([2, 4]), Dtype: torch.float32\n"               \
    "  Output hash: " out "\n  Input hashes: " in ", " by "\n  Location: common/ffn.py:7\n\n"
#define MUL(out, in) MUL_BY(out, in, "2.25")
#define BACK(out, in)                                                                              \
    "[layers.0.ffn.w1/op_1_mm]\n  Shape: torch.Size([4, 4]), Dtype: torch.float32\n"               \
    "  Output hash: " out "\n  Input hashes: " in "\n  Phase: backward\n\n"

static const char a[] = HEAD EMBED MUL("9.125", "8.5") BACK("0.5", "9.125");
static const char b[] = HEAD EMBED MUL("9.126", "8.5") BACK("0.51", "9.126");

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void verify_statuses(void **state) {
    (void)state;
    helper_write("a.log", a);
    helper_write("b.log", b);
    struct said said = helper_run(0, "ops a.log a.log");
    require_in(said.out, "EQUAL: no op of a.log (3)");
    helper_free(&said);
    said = helper_run(1, "ops a.log b.log");
    require_in(said.out, "DIFFERS: the first birth is mm in layers.0.ffn.w1\n");
    require_in(said.out, "where      entry 13 of b.log\n  called at  common/ffn.py:7\n  birth ");
    require_in(said.out, "hash       apart by 0.00011, relatively\n");
    require_in(said.out, "2 hold other values, 1 of them only inherited");
    require_in(said.out, "torchtitan writes no shapes of inputs");
    helper_free(&said);
    said = helper_run(3, "ops a.log b.log --floor b.log");
    require_in(said.out, "ONLY NOISE");
    helper_free(&said);
}

/* What has no hash but NaN is equal to anything by its hash, so nothing calls it equal; and an op
 * that is given other values is not the same call. */
static void verify_what_hashes_do_not_say(void **state) {
    (void)state;
    helper_write("nan.log", HEAD EMBED MUL("nan", "8.5") BACK("0.5", "nan"));
    helper_write("a.log", a);
    helper_write("input.log", HEAD EMBED MUL("9.5", "21.0") BACK("0.5", "9.125"));
    struct said said = helper_run(3, "ops nan.log nan.log");
    require_in(said.out, "UNDECIDED: no op made a value of its own, but 4 values have no hash but "
                         "NaN, which says nothing about them, first of mm in layers.0.ffn.w1 "
                         "(entry 13 of nan.log)");
    helper_free(&said);
    said = helper_run(3, "ops nan.log nan.log --json");
    require_in(said.out, "\"verdict\": \"undecided\"");
    require_in(said.out, "\"blank\": 4,");
    helper_free(&said);
    said = helper_run(1, "ops a.log input.log");
    require_in(said.out,
               "  inputs     number 1 is another value there, so this is not the same call");
    assert_null(strstr(said.out, "the same call gave"));
    helper_free(&said);
    said = helper_run(1, "ops a.log input.log --json");
    require_in(said.out, "\"other_input\": 1,");
    helper_free(&said);
    helper_write("b.log", b);
    said = helper_run(1, "ops a.log b.log");
    require_in(said.out, "  literal    all equal: the same call gave another value, or its inputs "
                         "hold theirs in another order (note)");
    helper_free(&said);
    /* The op that uses what came from outside stands behind others, so nothing is said of those. */
    helper_write("weight.log", HEAD EMBED MUL_BY("9.126", "8.5", "2.5") BACK("0.51", "9.126"));
    said = helper_run(1, "ops a.log weight.log");
    require_in(said.out, "DIFFERS by a value from outside: input 2 of mm in layers.0.ffn.w1 was "
                         "made by no op of the dump");
    helper_free(&said);
}

static void verify_json_and_ci(void **state) {
    (void)state;
    helper_write("a.log", a);
    helper_write("b.log", b);
    struct said said = helper_run(1, "ops a.log b.log --json --junit out.xml");
    json_t *value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    assert_string_equal(json_string_value(json_object_get(value, "verdict")), "differs");
    const json_t *first = json_object_get(value, "first");
    assert_string_equal(json_string_value(json_object_get(first, "op")), "mm");
    assert_string_equal(json_string_value(json_object_get(first, "module")), "layers.0.ffn.w1");
    assert_int_equal(json_integer_value(json_object_get(first, "entry")), 13);
    assert_int_equal(json_array_size(json_object_get(value, "events")), 2);
    json_decref(value);
    helper_free(&said);
    char *xml = helper_read("out.xml", NULL);
    require_in(xml, "the first birth is mm in layers.0.ffn.w1");
    free(xml);
    said = helper_run(1, "ops a.log b.log --github");
    require_in(said.out, "::error file=b.log");
    helper_free(&said);
}

static void verify_wrong_files_are_told(void **state) {
    (void)state;
    helper_write("a.log", a);
    helper_write("bad.json", "{\"traceEvents\": []}");
    helper_write(
        "one.json",
        "{\"format\": \"torch.utils._debug_mode.DebugMode.logs\", \"version\": 1, \"logs\": "
        "[{\"call_depth\": 1, \"type\": \"op\", \"op_name\": \"aten::exp\", \"args_str\": "
        "\"t: f32[2]\", \"output_str\": \"  ->  t: f32[2]\", \"log\": {\"type\": \"dict\", "
        "\"items\": [[\"input_hash\", {\"type\": \"scalar\", \"value\": 1.5}], [\"hash\", "
        "{\"type\": \"scalar\", \"value\": 2.5}]]}}]}");
    helper_refuse(2, "ops a.log none.json", "none.json: cannot open");
    helper_refuse(2, "ops a.log bad.json", "bad.json:1:19: expected \"format\", \"version\"");
    helper_refuse(2, "ops a.log a.log --floor bad.json", "--floor: bad.json:1:19:");
    helper_refuse(2, "ops a.log one.json",
                  "a.log is torchtitan and one.json is DebugMode: their hashes cannot be compared");
    helper_refuse(2, "ops a.log", "ops");
}

/* A dump is a stranger's: what it calls modules and paths begins no column of ours and no line, and
 * a terminal obeys none of it. */
static void verify_words_of_a_dump_are_plain(void **state) {
    (void)state;
#define STRANGE "\033[31m\xc2\x9b\xe2\x80\xae\tx\ry"
#define PLAIN "\\u001b[31m\\u009b\\u202e\\u0009x\\u000dy"
#define STRANGE_DUMP(out)                                                                          \
    "Total captured activations: 1\n[layers.0" STRANGE "/op_0_mm" STRANGE "]\n  Output hash: " out \
    "\n  Input hashes: 2.25\n  Phase: p" STRANGE "\n  Location: " STRANGE ".py:7\n"
    helper_write("strange_a.log", STRANGE_DUMP("1.5"));
    helper_write("strange_b.log", STRANGE_DUMP("2.5"));
    struct said said = helper_run(1, "ops strange_a.log strange_b.log");
    require_in(said.out, "  called at  " PLAIN ".py:7\n");
    require_in(said.out, "  mm" PLAIN "  (");
    require_in(said.out, "             in layers.0" PLAIN ", where both have births\n");
    assert_null(strpbrk(said.out, "\033\t\r"));
    assert_null(strstr(said.out, "\xc2\x9b"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_statuses),
        cmocka_unit_test(verify_what_hashes_do_not_say),
        cmocka_unit_test(verify_json_and_ci),
        cmocka_unit_test(verify_wrong_files_are_told),
        cmocka_unit_test(verify_words_of_a_dump_are_plain),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
