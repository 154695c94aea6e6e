/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the reader of DebugMode's JSON makes of an entry: its module, its tensors, its hashes, and
 * whether it moves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/dumps/helper_dump.h"

#define HEAD "{\"format\": \"torch.utils._debug_mode.DebugMode.logs\", \"version\": 1, \"logs\": ["

struct read {
    struct arena arena;
    struct words words;
    struct dump *dump;
};

static void begin(struct read *read, const char *json) {
    read->arena = (struct arena)ARENA_EMPTY;
    assert_int_equal(words_open(&read->arena, &read->words), STATUS_OK);
    if (dump_read_bytes("d", json, strlen(json), &read->words, &read->dump) != STATUS_OK)
        fail_msg("%s", status_text());
}

static const char *word(const struct read *read, uint32_t number) {
    return read->words.list[number].text;
}

static const char *value(const struct read *read, size_t op, size_t index) {
    return word(read, read->dump->values[read->dump->ops[op].first + index]);
}

#define ANNOTATE(depth, tag, header)                                                               \
    "{\"call_depth\": " #depth ", \"type\": \"annotate\", \"tag\": \"" tag                         \
    "\", \"header\": \"" header "\"}, "
#define EXP(depth)                                                                                 \
    "{\"call_depth\": " #depth                                                                     \
    ", \"type\": \"op\", \"op_name\": \"aten::exp\", \"args_str\": \"t: "                          \
    "f32[2]\", \"output_str\": \"  ->  t: f32[2]\", \"log\": {\"type\": \"dict\", \"items\": "     \
    "[[\"input_hash\", {\"type\": \"scalar\", \"value\": 1.5}], [\"hash\", {\"type\": "            \
    "\"scalar\", "                                                                                 \
    "\"value\": 2.5}]]}}"

/* As torch 2.15.0 nests: a module is written at its own depth and its ops one deeper; a range of
 * the profiler is written at its depth, too, and its ops two deeper. */
static void verify_modules_end_where_the_depth_says(void **state) {
    static const char json[] =
        HEAD EXP(1) ", " ANNOTATE(1, "M", "nn.Mod") EXP(2) ", " ANNOTATE(2, "M.a", "nn.Mod")
            EXP(3) ", " EXP(2) ", " ANNOTATE(2, "M.b", "nn.Mod")
                EXP(3) ", " EXP(1) ", " ANNOTATE(0, "step", "record function")
                    EXP(2) ", " ANNOTATE(2, "N", "nn.Mod") EXP(3) ", " EXP(2) ", " EXP(1) "]}";
    static const char *const modules[] = {"", "M", "M.a", "M", "M.b", "", "step", "N", "step", ""};
    struct read read;
    (void)state;
    begin(&read, json);
    assert_int_equal(read.dump->count, sizeof modules / sizeof modules[0]);
    for (size_t i = 0; i < read.dump->count; i++)
        assert_string_equal(word(&read, read.dump->ops[i].module), modules[i]);
    arena_close(&read.arena);
}

static void require_tensors(const char *args, const char *hashes, const char *shapes,
                            const char *literals) {
    char json[1024];
    struct read read;
    snprintf(json, sizeof json,
             HEAD
             "{\"call_depth\": 1, \"type\": \"op\", \"op_name\": \"aten::add.Tensor\", "
             "\"args_str\": \"%s\", \"kwargs_str\": \", alpha=1\", \"output_str\": null, "
             "\"log\": {\"type\": \"dict\", \"items\": [[\"input_hash\", {\"type\": \"tuple\", "
             "\"items\": [%s]}]]}}]}",
             args, hashes);
    begin(&read, json);
    assert_string_equal(word(&read, read.dump->ops[0].shapes), shapes);
    assert_string_equal(word(&read, read.dump->ops[0].literals), literals);
    assert_int_equal(read.dump->ops[0].outputs, 0);
    arena_close(&read.arena);
}

static void verify_tensors_are_found_among_arguments(void **state) {
    static const char one[] = "{\"type\": \"scalar\", \"value\": 1.5}";
    static const char two[] = "{\"type\": \"scalar\", \"value\": 1.5}, {\"type\": \"scalar\", "
                              "\"value\": null}, {\"type\": \"scalar\", \"value\": 2.5}";
    (void)state;
    require_tensors("t: f32[2, 3], 4", one, "f32[2, 3]", "_, 4, alpha=1");
    require_tensors("t$7: f32[2]{stride=(1,), device=cpu}", one, "f32[2]", "_, alpha=1");
    require_tensors("dt: bf16[4]| S(0), 5", one, "bf16[4]", "_| S(0), 5, alpha=1");
    require_tensors("['ft: i64[]', 't: b8[0]'], None", two, "i64[], b8[0]",
                    "['_', '_'], None, alpha=1");
    require_tensors("weight: f32[9], t: f32[2], t: 5, t:", one, "f32[2]",
                    "weight: f32[9], _, t: 5, t:, alpha=1");
}

static void require_move(int moves, const char *op, const char *from, const char *args,
                         const char *to) {
    struct helper_op row = {"", op, args, from, to, "9"};
    struct read read;
    char *json = helper_json(&row, 1);
    begin(&read, json);
    if (read.dump->ops[0].moves != moves) fail_msg("%s(%s) -> %s", op, args, to);
    arena_close(&read.arena);
    free(json);
}

static void verify_moves(void **state) {
    (void)state;
    require_move(1, "aten::view", "1", "t: f32[4], [2, 2]", "t: f32[2, 2]");
    require_move(1, "aten::select.int", "1", "t: f32[4, 2], 0, 1", "t: f32[2]");
    require_move(1, "aten::_to_copy", "1", "t: bf16[4]", "t: f32[4]");
    require_move(0, "aten::_to_copy", "1", "t: f32[4]", "t: bf16[4]");
    require_move(0, "aten::_to_copy", "1", "t: i64[4]", "t: f32[4]");
    require_move(1, "aten::copy_", "1 2", "t: f32[4], t: bf16[4]", "t: f32[4]");
    require_move(0, "aten::copy_", "1 2", "t: bf16[4], t: f32[4]", "t: bf16[4]");
    require_move(0, "aten::view_as_mine", "1", "t: f32[4]", "t: f32[4]");
    require_move(0, "mine::view", "1", "t: f32[4]", "t: f32[4]");
    require_move(0, "aten::embedding", "1 2", "t: f32[4, 4], t: i64[1]", "t: f32[1, 4]");
}

/* What a kernel of Triton changed among its arguments is an output; its old content is not read.
 * The entry is constructed after torch's source. */
static void verify_what_a_kernel_writes_is_no_input(void **state) {
    static const char json[] = HEAD
        "{\"call_depth\": 1, \"type\": \"triton_kernel\", \"kernel_name\": \"triton_poi_fused_0\", "
        "\"kwargs_str\": \"in_ptr0=t: f32[8], out_ptr0=t: f32[8], xnumel=8\", \"pre_hashes\": "
        "{\"type\": \"dict\", \"items\": [[\"in_ptr0\", {\"type\": \"scalar\", \"value\": 1.5}], "
        "[\"out_ptr0\", {\"type\": \"nonfinite_float\", \"value\": \"nan\"}]]}, \"post_hashes\": "
        "{\"type\": \"dict\", \"items\": [[\"in_ptr0\", {\"type\": \"scalar\", \"value\": 1.5}], "
        "[\"out_ptr0\", {\"type\": \"scalar\", \"value\": 9223372036854775809}]]}}]}";
    struct read read;
    (void)state;
    begin(&read, json);
    assert_int_equal(read.dump->count, 1);
    assert_int_equal(read.dump->ops[0].inputs, 1);
    assert_int_equal(read.dump->ops[0].outputs, 2);
    assert_int_equal(read.dump->nan, 1);
    assert_string_equal(value(&read, 0, 0), "f32[8]|1.5");
    assert_string_equal(value(&read, 0, 1), "f32[8]|1.5");
    assert_string_equal(value(&read, 0, 2), "f32[8]|9223372036854775809");
    arena_close(&read.arena);
}

/* The frame that is named is the innermost one outside of torch; of a backward op it is the one of
 * the forward op. */
static void verify_the_line_that_called_is_named(void **state) {
#define FRAME(path, line, name)                                                                    \
    "  File \\\"" path "\\\", line " line ", in " name "\\n    code()\\n"
    static const struct {
        const char *stack, *forward, *location;
    } rows[] = {
        {"null", "null", ""},
        {"\"no frame\"", "null", ""},
        {"\"" FRAME("/a/train.py", "5", "<module>")
             FRAME("/x/torch/nn/linear.py", "7", "forward") "\"",
         "null", "/a/train.py:5 in <module>"},
        {"\"" FRAME("/a/train.py", "5", "main") FRAME("/a/model.py", "225", "forward")
             FRAME("/x/torch/nn/linear.py", "7", "forward") "\"",
         "null", "/a/model.py:225 in forward"},
        {"\"" FRAME("/a/train.py", "5", "main") "\"",
         "\"" FRAME("/a/model.py", "9", "forward") "\"", "/a/model.py:9 in forward"},
        {"\"  File \\\"/a/cut.py\\\", line 5\"", "null", ""},
    };
    static const char op[] = HEAD EXP(1) "]}";
    const char *const at = strstr(op, "\"op_name\"");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char json[2048];
        struct read read;
        snprintf(json, sizeof json, "%.*s\"stack_trace\": %s, \"fwd_stack_trace\": %s, %s",
                 (int)(at - op), op, rows[i].stack, rows[i].forward, at);
        begin(&read, json);
        assert_string_equal(word(&read, read.dump->ops[0].location), rows[i].location);
        arena_close(&read.arena);
    }
}

static void verify_collectives_are_left_out(void **state) {
    static const struct helper_op rows[] = {
        {"", "c10d::allreduce_", "['t: f32[2]']", "1", "['t: f32[2]']", "2"},
        {"", "_c10d_functional::wait_tensor", "t: f32[2]", "2", "t: f32[2]", "2"},
        {"", "aten::exp", "t: f32[2]", "1", "t: f32[2]", "2"}};
    struct read read;
    char *json = helper_json(rows, 3);
    (void)state;
    begin(&read, json);
    assert_int_equal(read.dump->count, 1);
    assert_int_equal(read.dump->without, 2);
    arena_close(&read.arena);
    free(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_modules_end_where_the_depth_says),
        cmocka_unit_test(verify_tensors_are_found_among_arguments),
        cmocka_unit_test(verify_moves),
        cmocka_unit_test(verify_what_a_kernel_writes_is_no_input),
        cmocka_unit_test(verify_the_line_that_called_is_named),
        cmocka_unit_test(verify_collectives_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
