/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Checkpoint folders: single and sharded, every way in which an index and its shards can disagree,
 * writing with a limit, and what a write that is cut off leaves. */
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

#include "base/macro.h"
#include "checkpoints/checkpoint.h"
#include "tests/checkpoints/helper_checkpoint.h"

#define ONE(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

static enum status open_once(const char *path) {
    struct arena arena = ARENA_EMPTY;
    struct checkpoint checkpoint;
    const enum status status = checkpoint_open(path, &arena, &checkpoint);
    if (status == STATUS_OK) checkpoint_close(&checkpoint);
    arena_close(&arena);
    return status;
}

static void write_index(const char *text) {
    helper_write_text("s/" CHECKPOINT_INDEX, text);
}

/* Makes folder s: tensor a in shard 1, b in shard 2, and an index of its own. */
static void make_shards(void) {
    (void)mkdir("s", 0777);
    helper_write_safetensors("s/m1.safetensors", ONE("a"), 4);
    helper_write_safetensors("s/m2.safetensors", ONE("b"), 4);
}

static void validate_shards(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct checkpoint checkpoint;
    static const char *const accepted[] = {
        "{\"weight_map\":{\"b\":\"m2.safetensors\",\"a\":\"m1.safetensors\"}}",
        "{\"metadata\":{},\"weight_map\":{\"b\":\"m2.safetensors\",\"a\":\"m1.safetensors\"}}",
        "{\"metadata\":{\"total_size\":8.0},\"weight_map\":{\"b\":\"m2.safetensors\",\"a\":"
        "\"m1.safetensors\"}}",
        "{\"metadata\":{\"total_size\":8,\"total_parameters\":8},\"weight_map\":{\"b\":"
        "\"m2.safetensors\",\"a\":\"m1.safetensors\"}}",
    };
    make_shards();
    for (size_t i = 0; i < COUNT_OF(accepted); i++) {
        write_index(accepted[i]);
        if (open_once("s") != STATUS_OK) fail_msg("%s: %s", accepted[i], status_text());
    }
    assert_int_equal(checkpoint_open("s", &arena, &checkpoint), STATUS_OK);
    assert_int_equal(checkpoint.file_count, 2);
    assert_int_equal(checkpoint.count, 2);
    assert_int_equal(checkpoint.bytes, 8);
    assert_string_equal(checkpoint.tensors[0]->name, "a");
    assert_string_equal(checkpoint_find(&checkpoint, "b")->path, "s/m2.safetensors");
    assert_null(checkpoint_find(&checkpoint, "c"));
    checkpoint_close(&checkpoint);
    arena_close(&arena);
}

#define MAP(text) "{\"weight_map\":{" text "}}"
#define A1 "\"a\":\"m1.safetensors\""
#define B2 "\"b\":\"m2.safetensors\""

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        const char *index;
        const char *needle;
    } cases[] = {
        {"", "expected a JSON object, got no bytes"},
        {"[]", "expected a JSON object, got an array"},
        {"{}", "weight_map: expected an object of file names, got nothing"},
        {MAP(""), "weight_map: expected tensors, got none"},
        {MAP("\"a\":1"), "\"a\": expected a file name, got an integer"},
        {MAP(A1 "," A1), "duplicate"},
        {MAP("\"a\":\"../s/m1.safetensors\""), "in the same folder, got \"../s/m1.safetensors\""},
        {MAP("\"a\":\"/etc/passwd\""), "in the same folder, got \"/etc/passwd\""},
        {MAP("\"a\":\"x\\\\m1.safetensors\""), "in the same folder"},
        {MAP("\"a\":\"..\""), "in the same folder"},
        {MAP("\"a\":\"\""), "in the same folder"},
        {MAP(A1), NULL}, /* m2 is nobody's: not looked at */
        {MAP(A1 "," B2 ",\"c\":\"m2.safetensors\""), "missing: \"c\"; extra: none"},
        {MAP(A1 ",\"c\":\"m2.safetensors\""), "missing: \"c\"; extra: \"b\""},
        {MAP("\"a\":\"m2.safetensors\",\"b\":\"m1.safetensors\""), "missing: \"b\"; extra: \"a\""},
        {MAP(A1 "," B2 ",\"c\":\"m3.safetensors\""), "m3.safetensors: cannot open: No such file"},
        {"{\"metadata\":[],\"weight_map\":{" A1 "," B2 "}}", "metadata: expected an object"},
        {"{\"metadata\":{\"total_size\":\"8\"},\"weight_map\":{" A1 "," B2 "}}",
         "total_size: expected a number, got a string"},
        {"{\"metadata\":{\"total_size\":9},\"weight_map\":{" A1 "," B2 "}}",
         "the 8 bytes that the shards hold, got 9"},
    };
    make_shards();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_index(cases[i].index);
        const enum status status = open_once("s");
        if (cases[i].needle == NULL) {
            assert_int_equal(status, STATUS_OK);
            continue;
        }
        if (status == STATUS_OK) fail_msg("accepted: %s", cases[i].index);
        if (strstr(status_text(), cases[i].needle) == NULL)
            fail_msg("expected: %s\nin: %s", cases[i].needle, status_text());
    }
}

/* A tensor in two shards must be reported as extra in the one that the map does not name. */
static void validate_twice(void **state) {
    (void)state;
    make_shards();
    helper_write_safetensors("s/m2.safetensors",
                             "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]},"
                             "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
                             8);
    write_index(MAP(A1 "," B2));
    helper_require(open_once("s"), STATUS_INPUT, "s/m2.safetensors: expected the tensors");
    helper_require(open_once("s"), STATUS_INPUT, "missing: none; extra: \"a\"");
}

static void validate_many_names(void **state) {
    (void)state;
    char index[8192] = "{\"weight_map\":{" A1;
    make_shards();
    for (int i = 0; i < 150; i++) {
        const size_t used = strlen(index);
        snprintf(index + used, sizeof index - used, ",\"layer%d\":\"m1.safetensors\"", i);
    }
    strcat(index, "}}");
    write_index(index);
    helper_require(open_once("s"), STATUS_INPUT, "missing: \"layer0\", \"layer1\", ");
    helper_require(open_once("s"), STATUS_INPUT, " more; extra: none");
}

static void validate_folders(void **state) {
    (void)state;
    assert_int_equal(mkdir("e", 0777), 0);
    helper_require(open_once("e"), STATUS_INPUT,
                   "e: expected a checkpoint: model.safetensors or model.safetensors.index.json");
    helper_write_safetensors("e/model.safetensors", ONE("a"), 4);
    assert_int_equal(open_once("e"), STATUS_OK);
    assert_int_equal(open_once("e/model.safetensors"), STATUS_OK);
    helper_write_text("e/" CHECKPOINT_INDEX, MAP("\"a\":\"model.safetensors\""));
    helper_require(open_once("e"), STATUS_INPUT, "got both");
    helper_require(open_once("nowhere"), STATUS_IO, "nowhere: cannot open");
}

#define TENSORS 7
static const uint64_t shapes[TENSORS] = {100, 300, 50, 1000, 0, 20, 30};
static unsigned char data[1000];

static void make_sources(struct safetensors_source *sources) {
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < TENSORS; i++)
        sources[i] =
            (struct safetensors_source){names[i], SAFETENSORS_U8, 1, &shapes[i], data, NULL};
}

/* By hand, a limit of 400 gives the shards ab c de fg, and one of 349 gives a b c de fg. An empty
 * tensor must open no shard. */
static void verify_written_shards(void **state) {
    (void)state;
    static const struct {
        uint64_t limit;
        size_t files;
    } cases[] = {{0, 1}, {1500, 1}, {1499, 2}, {400, 4}, {349, 5}, {1, 6}};
    struct safetensors_source sources[TENSORS];
    const struct safetensors_pair format = {"format", "pt"};
    make_sources(sources);
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct arena arena = ARENA_EMPTY;
        struct checkpoint checkpoint;
        assert_int_equal(checkpoint_write("w", 1, sources, TENSORS, &format, 1, cases[c].limit),
                         STATUS_OK);
        const enum status status = checkpoint_open("w", &arena, &checkpoint);
        if (status != STATUS_OK) fail_msg("%s", status_text());
        assert_int_equal(checkpoint.file_count, cases[c].files);
        assert_int_equal(checkpoint.count, TENSORS);
        for (size_t i = 0; i < TENSORS; i++) {
            const struct safetensors_tensor *tensor = checkpoint_find(&checkpoint, sources[i].name);
            assert_int_equal(tensor->count, shapes[i]);
            assert_memory_equal(tensor->data, data, shapes[i]);
        }
        assert_string_equal(helper_metadata(&checkpoint.files[0], "format"), "pt");
        checkpoint_close(&checkpoint);
        arena_close(&arena);
    }
    helper_require(checkpoint_write("w", 0, sources, TENSORS, &format, 1, 400), STATUS_IO,
                   "exists, and is left alone");
}

/* A folder in the place of the second shard stops the write; the result must then not pass for a
 * checkpoint. */
static void verify_cut_off(void **state) {
    (void)state;
    struct safetensors_source sources[TENSORS];
    make_sources(sources);
    assert_int_equal(checkpoint_write("k", 0, sources, TENSORS, NULL, 0, 0), STATUS_OK);
    assert_int_equal(mkdir("k/model-00002-of-00004.safetensors", 0777), 0);
    assert_int_equal(checkpoint_write("k", 1, sources, TENSORS, NULL, 0, 400), STATUS_IO);
    helper_require(open_once("k"), STATUS_INPUT, "is missing");
}

/* Weights in the old pickled format must be named, with the way to get others. */
static void validate_pickled(void **state) {
    (void)state;
    assert_int_equal(mkdir("b", 0777), 0);
    helper_require(open_once("b"), STATUS_INPUT, "b: expected a checkpoint: model.safetensors or");
    helper_write_text("b/pytorch_model.bin", "x");
    helper_require(open_once("b"), STATUS_INPUT,
                   "got pytorch_model.bin, whose weights are pickled");
    helper_require(open_once("b"), STATUS_INPUT, "safe_serialization=True");
    assert_int_equal(remove("b/pytorch_model.bin"), 0);
    helper_write_text("b/pytorch_model.bin.index.json", "{}");
    helper_require(open_once("b"), STATUS_INPUT, "got pytorch_model.bin.index.json, whose");
}

/* A folder of LoRA's weights alone, as peft saves it, is told from one that lacks a file. */
static void validate_adapters(void **state) {
    (void)state;
    assert_int_equal(mkdir("lora", 0777), 0);
    helper_write_text("lora/adapter_config.json", "{}");
    helper_write_text("lora/adapter_model.safetensors", "x");
    helper_require(open_once("lora"), STATUS_INPUT,
                   "lora: expected a whole model, got an adapter of peft (adapter_config.json), "
                   "which holds only what is added to one: merge_and_unload() of peft");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_shards),   cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_twice),    cmocka_unit_test(validate_many_names),
        cmocka_unit_test(validate_folders),  cmocka_unit_test(verify_written_shards),
        cmocka_unit_test(verify_cut_off),    cmocka_unit_test(validate_pickled),
        cmocka_unit_test(validate_adapters),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
