/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Dumps that are broken: each gives an error that names the place and what was expected. */
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
#define OP(log)                                                                                    \
    HEAD                                                                                           \
        "{\"call_depth\": 1, \"log\": " log ", \"output_str\": \"  ->  t: f32[2]\", \"type\": "    \
        "\"op\", \"op_name\": \"aten::exp\", \"args_str\": \"t: f32[2]\", \"kwargs_str\": \"\"}]}"
#define LOG(in, out)                                                                               \
    "{\"type\": \"dict\", \"items\": [[\"input_hash\", {\"type\": \"tuple\", \"items\": [" in      \
    "]}], [\"hash\", " out "]]}"
#define LEAF(x) "{\"type\": \"scalar\", \"value\": " x "}"
#define TITAN "Total captured activations: 1\n"

static const struct {
    const char *text, *needle;
} broken[] = {
    {"", "d: expected a dump of ops, got an empty file"},
    {" \n", "d: expected a dump of ops, got an empty file"},
    {"[1, 2]", "d:1: expected JSON of DebugMode.save_logs()"},
    {"{}", "d:1:2: expected \"format\", \"version\" and \"logs\", in this order"},
    {"{\"displayTimeUnit\": \"ms\", \"traceEvents\": []}", "expected \"format\", \"version\""},
    {"{\"format\": \"other\"}", "d:1:12: expected the format \"torch.utils._debug_mode"},
    {"{\"format\": 1e400}", "expected the format"},
    {"{\"format\": \"torch.utils._debug_mode.DebugMode.logs\", \"version\": 2, \"logs\": []}",
     "d:1:65: expected version 1, which is the one that is known, got \"2"},
    {HEAD "]}", "d: expected the ops of a step, got none"},
    {HEAD, "got the end of the file"},
    {HEAD "{\"call_depth\": 1, \"log\": {\"type\": \"di", "expected '\"' at the end of the string"},
    {HEAD "]} 5", "expected the end, got \"5\""},
    {HEAD "5]}", "expected an object ('{'), got \"5"},
    {HEAD "{\"type\": \"ops\"}]}", "expected op, annotate, triton_kernel, redistribute or"},
    {HEAD "{\"call_depth\": 1}]}", "entry 1 of logs has no \"type\""},
    {HEAD "{\"type\": \"redistribute\"}]}", "entry 1 of logs has no \"call_depth\""},
    {HEAD "{\"type\": \"op\", \"call_depth\": 1, \"op_name\": \"x\"}]}", "has no \"args_str\""},
    {HEAD "{\"type\": \"annotate\", \"call_depth\": 1}]}", "has no \"tag\""},
    {HEAD "{\"type\": \"op\", \"call_depth\": -1}]}", "expected a whole number from 0 on"},
    {HEAD "{\"type\": \"op\", \"call_depth\": 99999999999999999999999}]}",
     "expected a whole number from 0 on"},
    {HEAD "{\"type\": \"op\", \"call_depth\": 1, \"args_str\": 5}]}", "expected a string, got \"5"},
    {OP("null"), "expected hashes of inputs and outputs, got none of inputs; record with"},
    {OP("{\"type\": \"dict\", \"items\": [[\"hash\", " LEAF("5") "]]}"),
     "got none of inputs; record with DebugMode.log_tensor_hashes(hash_fn=[\"norm\", \"hash_tensor"
     "\"], hash_inputs=True)"},
    {OP("{\"type\": \"dict\", \"items\": 5}"), "expected a list ('['), got \"5"},
    {OP("{\"type\": \"dict\", \"items\": [5]}"), "expected a list ('['), got \"5"},
    {OP("{\"type\": \"dict\", \"items\": [[\"hash\"]]}"), "expected an object ('{'), got \"]"},
    {OP(LOG(LEAF("true"), LEAF("1"))), "expected a hash (a number or a text), got \"true"},
    {OP(LOG(LEAF("[1]"), LEAF("1"))), "expected a hash (a number or a text), got \"[1]"},
    {OP(LOG("{\"kind\": 5}", LEAF("1"))), "expected \"type\", \"value\" or \"items\""},
    {OP(LOG(LEAF("1") ", " LEAF("2") ", " LEAF("3"), LEAF("1"))),
     "entry 1 of logs: expected 3 hashes for each of its 1 output tensors, got 1 in all"},
    {OP(LOG(LEAF("1"), LEAF("1") ", " LEAF("1"))), "d:1:"},
    {OP(LOG(LEAF("0x5"), LEAF("1"))), "expected a value, got \"0x5"},
    {OP(LOG(LEAF("1,"), LEAF("1"))), "expected a name in double quotes"},
    {TITAN, "d:1: expected 1 activations, as the first line says, got 0"},
    {"Total captured activations: many\n",
     "d:1: expected Total captured activations: and a number"},
    {TITAN "[a/op_0_mm\n", "d:2: expected \"[module/op_N_name]\", got \"[a/op_0_mm\""},
    {TITAN "[a/op_0_mm]\n  Output hash: 5\n", "expected lines \"Input hashes:\", got none"},
    {TITAN "[a/op_0_mm]\n  Output hash: five\n", "d:3: expected hashes, numbers with commas"},
    {"Total captured activations: 9\n[a/op_0_mm]\n  Input hashes: 1, 2\n",
     "d:3: expected 9 activations, as the first line says, got 1"},
};

static void require_error(const char *text, size_t length, const char *needle) {
    struct arena arena = ARENA_EMPTY;
    struct words words;
    struct dump *dump;
    char *exact = (char *)malloc(length + (length == 0)); /* a sanitizer sees its end */
    assert_non_null(exact);
    memcpy(exact, text, length);
    assert_int_equal(words_open(&arena, &words), STATUS_OK);
    const enum status status = dump_read_bytes("d", exact, length, &words, &dump);
    if (status != STATUS_INPUT) fail_msg("no error in %.200s", text);
    if (strstr(status_text(), needle) == NULL)
        fail_msg("expected: %s\nin: %s\nof: %.200s", needle, status_text(), text);
    arena_close(&arena);
    free(exact);
}

static void verify_broken_dumps_are_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        require_error(broken[i].text, strlen(broken[i].text), broken[i].needle);
}

static char *repeated(const char *before, const char *part, int times, const char *behind) {
    char *text = (char *)malloc(strlen(before) + strlen(part) * (size_t)times + strlen(behind) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, before);
    for (int i = 0; i < times; i++)
        at = stpcpy(at, part);
    strcpy(at, behind);
    return text;
}

static void verify_what_is_too_much_is_told(void **state) {
    static const char leaf[] = OP(LOG(LEAF("@"), LEAF("1")));
    char before[512];
    (void)state;
    snprintf(before, sizeof before, "%.*s", (int)(strchr(leaf, '@') - leaf), leaf);
    char *digits = repeated(before, "7", 400, strchr(leaf, '@') + 1);
    require_error(digits, strlen(digits), "expected a hash of at most 128 characters, got \"777");
    char *deep = repeated(HEAD, "[", 100000, "");
    require_error(deep, strlen(deep), "expected an object ('{')");
    char *tree = repeated(HEAD "{\"log\": {\"items\": [[\"hash\", ", "{\"items\": [", 100000, "");
    require_error(tree, strlen(tree), "expected at most 64 brackets inside each other");
    free(digits);
    free(deep);
    free(tree);
}

static void verify_modules_inside_each_other_have_an_end(void **state) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    (void)state;
    assert_non_null(out);
    fprintf(out, HEAD);
    for (int i = 0; i < 300; i++)
        fprintf(out, "%s{\"type\": \"annotate\", \"call_depth\": %d, \"tag\": \"m\"}",
                i > 0 ? ", " : "", i);
    fprintf(out, "]}");
    assert_int_equal(fclose(out), 0);
    require_error(text, length,
                  "entry 257 of logs: expected at most 256 modules inside each other");
    free(text);
}

/* Cut anywhere, a dump is an error; it is never half of one. */
static void verify_no_beginning_of_a_dump_is_one(void **state) {
    static const struct helper_op rows[] = {
        {"m", "aten::mm", "t: f32[2, 2], t: f32[2, 2]", "1 2", "t: f32[2, 2]", "3"},
        {"", "aten::exp", "t: f32[2, 2]", "3", "t: f32[2, 2]", "nan"}};
    char *json = helper_json(rows, 2);
    (void)state;
    const size_t whole = strlen(json) - 1; /* the line end may be missing */
    for (size_t i = 1; i < whole; i++)
        require_error(json, i, "d:1");
    free(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_broken_dumps_are_told),
        cmocka_unit_test(verify_what_is_too_much_is_told),
        cmocka_unit_test(verify_modules_inside_each_other_have_an_end),
        cmocka_unit_test(verify_no_beginning_of_a_dump_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
