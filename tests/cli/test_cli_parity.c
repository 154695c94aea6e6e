/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * parity: what A and B may be, the parts, exit statuses, JSON, refusals; and faults planted by a
 * key and by an altered checkpoint folder. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/hf/"
#define QUICK " --batches 2 --replicas 3 "
#define GRID " --lengths 12,16 --sizes 1,3 --repeats 2 --steps 2 "

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void require_not_in(const char *text, const char *needle) {
    if (strstr(text, needle) != NULL) fail_msg("not expected: %s\nin: %s", needle, text);
}

static void validate_two_arms(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "numerics: {compute: bf16}");
    struct said said = helper_run(0, "parity pair.yaml" QUICK GRID);
    assert_string_equal(said.err, "");
    require_in(said.out, "A  pair.yaml:baseline: ");
    require_in(said.out, "B  pair.yaml:test: ");
    require_in(said.out, "weights  B has A's, every bit of ");
    require_in(said.out, "\nComponents: within\n");
    require_in(said.out, "low: A in bf16, high: A in f32; 2 batches, 3 replicas");
    require_in(said.out, "\nLogits under teacher forcing: within\n");
    require_in(said.out, "\nLog-prob consistency: within ");
    require_in(said.out, "refit after 2 updates of A: B has A's weights");
    require_not_in(said.out, "Training");
    require_in(said.out, "\n\nwithin\n");
    require_in(said.out, "\ndiffers  numerics.compute: f32 | bf16\n");
    helper_free(&said);
}

/* The keys that differ are named with both values, eight of them; where none does nothing is said,
 * and what B takes from A, its data, is none. */
static void validate_keys_that_differ(void **state) {
    (void)state;
    static const char *const keys[] = {"optimizer.lr=0.5",    "optimizer.weight_decay=0.25",
                                       "optimizer.eps=0.5",   "optimizer.beta1=0.5",
                                       "optimizer.beta2=0.5", "model.norm_eps=0.5",
                                       "dpo.beta=0.5",        "init.seed=77",
                                       "dropout.residual=0.5"};
    helper_scenario("pair.yaml", "", "", "");
    struct said said = helper_run(0, "parity pair.yaml --logits" QUICK);
    require_not_in(said.out, "differs ");
    helper_free(&said);
    helper_scenario("nine.yaml", "", "",
                    "optimizer: {lr: 0.5, weight_decay: 0.25, eps: 0.5, beta1: 0.5, beta2: 0.5}, "
                    "model: {norm_eps: 0.5}, dpo: {beta: 0.5}, init: {seed: 77}, "
                    "dropout: {residual: 0.5}");
    said = helper_run(1, "parity nine.yaml --logits --json" QUICK);
    json_t *const object = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    const json_t *const found = json_object_get(object, "keys_differ");
    assert_int_equal(json_array_size(found), COUNT_OF(keys));
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        size_t seen = 0;
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            const json_t *const row = json_array_get(found, k);
            const char *const key = json_string_value(json_object_get(row, "key"));
            const char *const value = json_string_value(json_object_get(row, "b"));
            seen += strncmp(keys[i], key, strlen(key)) == 0 &&
                    strcmp(keys[i] + strlen(key) + 1, value) == 0 &&
                    strcmp(value, json_string_value(json_object_get(row, "a"))) != 0;
        }
        assert_int_equal(seen, 1);
    }
    json_decref(object);
    helper_free(&said);
    said = helper_run(1, "parity nine.yaml --logits" QUICK);
    require_in(said.out, "\n         and 1 more (--json)\nweights  ");
    size_t lines = 0;
    for (const char *at = strstr(said.out, "\ndiffers  "); at < strstr(said.out, "\nweights"); at++)
        lines += *at == '\n';
    assert_int_equal(lines, 9);
    helper_free(&said);
}

/* Only the parts asked for are measured, and overrides act on B alone. */
static void validate_planted_key(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    struct said said =
        helper_run(1, "parity pair.yaml:baseline --set model.norm_eps=1e-3 --components" QUICK);
    require_in(said.out, "\nComponents: outside\n");
    require_in(said.out, "a factor on the whole");
    require_not_in(said.out, "Logits");
    require_in(said.out, "depth: R of the residual stream is above the line from layer 0 on");
    helper_free(&said);
    said = helper_run(1, "parity pair.yaml --set numerics.rope=bf16 --logits" QUICK);
    require_in(said.out, "Logits under teacher forcing: outside: KL is above its threshold");
    require_not_in(said.out, "Components");
    helper_free(&said);
    helper_accept(0, "parity pair.yaml pair.yaml:test --logits --quiet" QUICK);
}

static void validate_stale(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    struct said said = helper_run(1, "parity pair.yaml --logprobs --stale" GRID);
    require_in(said.out, "tensors of B are NOT A's; the first is model.embed_tokens.weight");
    helper_free(&said);
    helper_accept(0, "parity pair.yaml --logprobs --no-refit --lengths 12 --sizes 1 --repeats 1");
    helper_refuse(2, "parity pair.yaml --no-refit --stale", "expected --no-refit or --stale");
}

static void validate_training(void **state) {
    (void)state;
    helper_scenario("same.yaml", "", "", "batch: {micro: 1}");
    struct said said = helper_run(0, "parity same.yaml --training");
    require_in(said.out, "\nTraining: within\n");
    helper_free(&said);
    helper_scenario("other.yaml", "", "", "numerics: {compute: bf16}");
    said = helper_run(1, "parity other.yaml --training");
    require_in(said.out, "\nTraining: outside\n");
    helper_free(&said);
}

static void require_training(int code, const char *line, const char *needle) {
    struct said said = helper_run(code, line);
    require_in(said.out, needle);
    require_not_in(said.out, "data-order");
    helper_free(&said);
}

/* B must train on A's data, or both on --data, for as many updates as --steps says. */
static void validate_training_data(void **state) {
    (void)state;
    helper_scenario("a.yaml", "steps: 2", "", "");
    helper_scenario("b.yaml", "steps: 2", "", "data: {seed: 9}");
    require_training(0, "parity a.yaml b.yaml:test --training", "IDENTICAL");
    require_training(0, "parity a.yaml b.yaml:test --training --steps 3", "all 3 updates");
    require_training(
        0, "parity " GOLDEN "llama " GOLDEN "llama --training --data " GOLDEN "texts.jsonl",
        "all 8 updates");
    require_training(1,
                     "parity " GOLDEN
                     "llama --set optimizer.lr=0.01 --training --steps 2 --data " GOLDEN
                     "texts.jsonl",
                     "Cause: schedule (the learning-rate schedule)");
    helper_refuse(2, "parity " GOLDEN "llama " GOLDEN "llama --training --components",
                  "--training: the built-in text needs a vocabulary of 259, A's is 64; expected "
                  "--data FILE");
}

/* Models that cannot be compared must be reported before anything is opened; what was measured must
 * be printed even where FILE then cannot be written. */
static void validate_output_first(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    helper_write("kept.json", "kept");
    struct said said = helper_run(2, "parity pair.yaml --set model.vocab=300 -o no/such.json");
    require_in(said.err, "no/such.json: cannot create");
    assert_string_equal(said.out, "");
    helper_free(&said);
    said = helper_run(2, "parity pair.yaml --set model.vocab=300 -o kept.json");
    require_in(said.err, "kept.json: exists");
    assert_string_equal(said.out, "");
    helper_free(&said);
    helper_refuse(2, "parity pair.yaml --logits -o . --overwrite" QUICK, "expected a file");
    helper_accept(0, "parity pair.yaml --logits -o kept.json --overwrite" QUICK);
    assert_false(helper_exists("kept.json.part"));
    said = helper_run(2, "parity pair.yaml --logits -o /dev/full --overwrite" QUICK);
    require_in(said.out, "Logits under teacher forcing: within");
    helper_free(&said);
}

/* An option that would change nothing must be refused by name. */
static void validate_idle_options(void **state) {
    static const char *const rows[][2] = {
        {"--logits", "--stale"},       {"--logits", "--no-refit"},
        {"--components", "--full"},    {"--training", "--lengths 8"},
        {"--training", "--sizes 2"},   {"--logits", "--repeats 2"},
        {"--logits", "--top-p 0.5"},   {"--logits", "--temperature 0.5"},
        {"--logprobs", "--batches 2"}, {"--training", "--replicas 3"},
        {"--components", "--steps 2"},
    };
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char line[128], needle[64];
        snprintf(line, sizeof line, "parity pair.yaml %s %s", rows[i][0], rows[i][1]);
        snprintf(needle, sizeof needle, "parity: %.*s: acts on", (int)strcspn(rows[i][1], " "),
                 rows[i][1]);
        helper_refuse(2, line, needle);
    }
    helper_refuse(2, "parity pair.yaml --logprobs --no-refit --steps 2",
                  "parity: --steps: acts on");
}

static int entries(const char *folder) {
    DIR *open = opendir(folder);
    int count = 0;
    if (open == NULL) return -1;
    while (readdir(open) != NULL)
        count++;
    closedir(open);
    return count - 2;
}

static void validate_interrupted(void **state) {
    (void)state;
    const struct timespec moment = {0, 5000000};
    int waited = 0;
    assert_int_equal(mkdir("scratch", 0777), 0);
    setenv("TMPDIR", "scratch", 1);
    helper_scenario("long.yaml", "", "", "batch: {micro: 1}");
    const pid_t child = helper_start("parity long.yaml --training --steps 1000");
    while (entries("scratch") < 1 && waited++ < 2000)
        nanosleep(&moment, NULL);
    assert_int_equal(entries("scratch"), 1);
    for (int i = 0; i < 40; i++)
        nanosleep(&moment, NULL);
    kill(child, SIGINT);
    assert_int_equal(helper_wait(child), 130);
    unsetenv("TMPDIR");
    assert_int_equal(entries("scratch"), 0);
}

static void validate_json(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "numerics: {rope: bf16}");
    struct said said = helper_run(1, "parity pair.yaml --json -o file.json" QUICK GRID);
    json_t *object = json_loads(said.out, 0, NULL);
    json_t *written = json_load_file("file.json", 0, NULL);
    assert_non_null(object);
    assert_true(json_equal(object, written));
    assert_string_equal(json_string_value(json_object_get(object, "finding")), "outside");
    json_t *components = json_object_get(object, "components");
    json_t *rows = json_object_get(components, "rows"), *row;
    json_t *table = json_object_get(components, "rotary_table");
    assert_true(json_integer_value(json_object_get(table, "apart")) > 0);
    assert_string_equal(json_string_value(json_object_get(components, "shape")), "step");
    size_t i, outside = 0;
    json_array_foreach(rows, i, row) {
        if (strcmp(json_string_value(json_object_get(row, "finding")), "outside") != 0) continue;
        if (strcmp(json_string_value(json_object_get(row, "level")), "op") != 0) continue;
        assert_string_equal(json_string_value(json_object_get(row, "op")), "rotary");
        outside++;
    }
    assert_true(outside > 0);
    json_t *grid = json_object_get(json_object_get(object, "logprobs"), "rows");
    assert_int_equal(json_array_size(grid), 2 * 2 * 2 * 2 * 2);
    row = json_array_get(grid, 0);
    assert_int_equal(json_integer_value(json_object_get(row, "length")), 12);
    assert_int_equal(json_integer_value(json_object_get(row, "repeats_alike")), 2);
    assert_true(json_real_value(json_object_get(row, "error")) > 1.0);
    json_decref(object);
    json_decref(written);
    helper_free(&said);
    helper_refuse(2, "parity pair.yaml --logits -o file.json" QUICK, "file.json");
}

static double real_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("no number %s", name);
    return json_number_value(value);
}

/* The JSON has losses and distances update by update, and the whole judgement with its floor. */
static void validate_training_json(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "numerics: {compute: bf16}");
    struct said said = helper_run(1, "parity pair.yaml --training --steps 3 --json -o train.json");
    json_t *object = json_loads(said.out, 0, NULL), *row;
    json_t *training = json_object_get(object, "training");
    json_t *judgement = json_object_get(training, "judgement");
    json_t *rows = json_object_get(training, "by_update");
    size_t i;
    double last = 0.0, gap = 0.0;
    assert_string_equal(json_string_value(json_object_get(training, "finding")), "outside");
    assert_string_equal(json_string_value(json_object_get(training, "verdict")),
                        json_string_value(json_object_get(judgement, "verdict")));
    assert_int_equal(json_array_size(rows), 3);
    json_array_foreach(rows, i, row) {
        assert_int_equal(json_integer_value(json_object_get(row, "step")), i + 1);
        assert_true(real_of(row, "loss_a") > 0.0);
        gap = fabs(real_of(row, "loss_a") - real_of(row, "loss_b"));
        assert_true(real_of(row, "distance") > 0.0 && real_of(row, "distance_share") > 0.0);
        assert_true(json_integer_value(json_object_get(row, "tensors_differing")) > 0);
        last = real_of(row, "distance");
    }
    assert_true(real_of(judgement, "distance") == last && gap > 0.0);
    const json_t *floor = json_object_get(judgement, "floor");
    assert_string_equal(json_string_value(json_object_get(floor, "kind")), "exact");
    assert_true(json_is_true(json_object_get(floor, "rerun_in_process")));
    json_decref(object);
    helper_free(&said);
    assert_true(helper_exists("train.json"));
}

static void copy(const char *from, const char *to) {
    size_t length;
    char *bytes = helper_read(from, &length);
    helper_write_bytes(to, bytes, length);
    free(bytes);
}

/* Makes a folder with the same weights and one line of config.json changed. */
static void alter(const char *family, const char *folder, const char *old, const char *now) {
    char path[512], text[8192];
    size_t length;
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, GOLDEN "%s/model.safetensors", family);
    char to[512];
    snprintf(to, sizeof to, "%s/model.safetensors", folder);
    copy(path, to);
    snprintf(path, sizeof path, GOLDEN "%s/config.json", family);
    char *config = helper_read(path, &length);
    const char *at = strstr(config, old);
    if (at == NULL) fail_msg("%s: no %s", path, old);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, now, at + strlen(old));
    free(config);
    snprintf(to, sizeof to, "%s/config.json", folder);
    helper_write(to, text);
}

static void validate_checkpoints(void **state) {
    (void)state;
    alter("qwen2", "plain", "\"rope_type\": \"yarn\"", "\"rope_type\": \"yarn\"");
    alter("qwen2", "eps", "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e-04");
    helper_accept(0, "parity plain --set numerics.compute=bf16 --quiet" QUICK GRID);
    helper_accept(0, "parity plain " GOLDEN "qwen2 --components --logits --quiet" QUICK);
    struct said said = helper_run(1, "parity plain eps --components" QUICK);
    require_in(said.out, "norm, output (alone): R ");
    helper_free(&said);
    alter("qwen2", "cast", "\"dtype\": \"float32\"", "\"dtype\": \"bfloat16\"");
    said = helper_run(0, "parity plain cast --logits" QUICK);
    require_in(said.out, "\nweights  B: model.from: the dtype of config.json is bf16, 26 of 26 ");
    require_not_in(said.out, "weights  A: ");
    helper_free(&said);
    alter("qwen2", "bare",
          "    \"beta_fast\": 4.0,\n    \"beta_slow\": 1.0,\n    \"factor\": 4.0,\n"
          "    \"original_max_position_embeddings\": 64,\n    \"rope_theta\": 100.0,\n"
          "    \"rope_type\": \"yarn\"",
          "    \"rope_theta\": 100.0,\n    \"rope_type\": \"default\"");
    said = helper_run(1, "parity plain bare --components" QUICK);
    require_in(said.out, "rotary, Q (alone): R ");
    require_in(said.out, "rotary table: ");
    helper_free(&said);
    said = helper_run(1, "parity plain --set model.rope_attention_factor=1 --components" QUICK);
    require_in(said.out, "rotary, Q (alone): R ");
    require_in(said.out, "a factor on the whole");
    helper_free(&said);
}

/* ---- one fault in the paths that build models of their own ---- */

static void require_outside(const char *line, const char *needle) {
    struct said said = helper_run(1, line);
    require_in(said.out, needle);
    helper_free(&said);
}

/* One element of the rotary table is wrong, in generation's two models or everywhere; batch.pad
 * says where (planted_rope.c). The same pads must change no bit of the product. */
static void validate_planted_rope(void **state) {
    static const char *const pads[] = {"3", "4", "5"};
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    for (size_t i = 0; i < COUNT_OF(pads); i++) {
        char logprobs[256], training[256];
        snprintf(logprobs, sizeof logprobs,
                 "parity pair.yaml --set batch.pad=%s --logprobs --no-refit --lengths 16 "
                 "--sizes 1,3 --repeats 1",
                 pads[i]);
        snprintf(training, sizeof training,
                 "parity pair.yaml --set batch.pad=%s --training --steps 2", pads[i]);
        helper_accept(0, logprobs);
        helper_accept(0, training);
        helper_binary(TWINSTEP_PLANTED);
        require_outside(logprobs, "\nLog-prob consistency: outside ");
        if (i == 0) require_outside(training, "\nTraining: outside\n");
        helper_accept(0, "parity pair.yaml --logprobs --training" GRID);
        helper_binary(NULL);
    }
}

/* The faults of a key, in training; for the other parts see test_parity.c. */
static void validate_planted_keys_in_training(void **state) {
    static const char *const keys[] = {"model.norm_eps=1.1e-5", "numerics.rope=bf16",
                                       "model.rope_attention_factor=1"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "parity " GOLDEN "qwen2 --set %s --training --steps 2 --data " GOLDEN
                 "texts.jsonl",
                 keys[i]);
        require_outside(line, "\nTraining: outside\n");
    }
}

/* Transposes a square matrix of f32 in a folder's file. */
static void transpose(const char *folder, const char *tensor) {
    char path[512], needle[128];
    size_t length, rows, columns, from, to;
    uint64_t header;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    char *bytes = helper_read(path, &length);
    memcpy(&header, bytes, sizeof header);
    snprintf(needle, sizeof needle, "\"%s\":", tensor);
    const char *at = strstr(bytes + sizeof header, needle);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(needle),
                            "{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
                            &rows, &columns, &from, &to),
                     4);
    assert_true(rows == columns && to - from == rows * columns * sizeof(float));
    float *matrix = (float *)calloc(rows * columns, sizeof *matrix);
    assert_non_null(matrix);
    char *values = bytes + sizeof header + header + from;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            memcpy(&matrix[j * columns + i], values + (i * columns + j) * sizeof *matrix,
                   sizeof *matrix);
    memcpy(values, matrix, to - from);
    helper_write_bytes(path, bytes, length);
    free(matrix);
    free(bytes);
}

static void validate_planted_transposition(void **state) {
    (void)state;
    alter("qwen2", "upright", "\"rope_type\": \"yarn\"", "\"rope_type\": \"yarn\"");
    alter("qwen2", "askew", "\"rope_type\": \"yarn\"", "\"rope_type\": \"yarn\"");
    transpose("askew", "model.layers.0.self_attn.q_proj.weight");
#define LOGPROBS " --logprobs --no-refit --lengths 16 --sizes 1,3 --repeats 1"
#define TRAINING " --training --steps 2 --data " GOLDEN "texts.jsonl"
    helper_accept(0, "parity " GOLDEN "qwen2 upright" LOGPROBS);
    helper_accept(0, "parity " GOLDEN "qwen2 upright" TRAINING);
    require_outside("parity upright askew" LOGPROBS, "\nLog-prob consistency: outside ");
    require_outside("parity upright askew" LOGPROBS,
                    "1 of 26 tensors of B are not A's in B's dtype; the first is "
                    "model.layers.0.self_attn.q_proj.weight");
    require_outside("parity upright askew" TRAINING, "\nTraining: outside\n");
}

/* -o must never replace what is read: a scenario, its data, or any file of a checkpoint, under any
 * name. */
static void validate_output_apart(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    alter("qwen2", "kept", "\"rope_type\": \"yarn\"", "\"rope_type\": \"yarn\"");
    alter("qwen2", "other", "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e-04");
    copy(GOLDEN "texts.jsonl", "texts.jsonl");
    helper_write("from.yaml", "twinstep: 1\nname: from\nsteps: 2\ncommon:\n  task: sft\n"
                              "  model: {from: kept}\n  data: {text: texts.jsonl}\n"
                              "arms: {a: {}, b: {}}\n");
    assert_int_equal(symlink("pair.yaml", "link.yaml"), 0);
    assert_int_equal(symlink("../kept/config.json", "other/note.json"), 0);
    static const char *const lines[] = {
        "parity pair.yaml -o pair.yaml --overwrite",
        "parity pair.yaml -o ./pair.yaml --overwrite",
        "parity link.yaml -o pair.yaml --overwrite",
        "parity pair.yaml:test pair.yaml:baseline --logits -o pair.yaml --overwrite",
        "parity kept other -o kept/model.safetensors --overwrite",
        "parity kept other -o kept/config.json --overwrite",
        "parity kept other -o other/model.safetensors --overwrite",
        "parity from.yaml -o from.yaml --overwrite",
        "parity from.yaml -o texts.jsonl --overwrite",
        "parity from.yaml -o kept/model.safetensors --overwrite",
        "parity kept other --data texts.jsonl -o texts.jsonl --overwrite",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        helper_refuse(2, lines[i], "expected an output that is not read, got the input");
    assert_true(helper_same_bytes("kept/model.safetensors", GOLDEN "qwen2/model.safetensors"));
    helper_accept(0, "parity pair.yaml --logits -o kept/note.json" QUICK);
}

static void validate_untestable(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "model: {family: llama}");
    struct said said = helper_run(3, "parity pair.yaml --components" QUICK);
    require_in(said.out, "A and B have models of other shapes");
    require_in(said.out, "\nuntestable\n");
    helper_free(&said);
}

static void validate_refusals(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    helper_refuse(2, "parity", "expected A [B], got nothing");
    helper_refuse(2, "parity pair.yaml:baseline", "expected B, or --set");
    helper_refuse(2, "parity pair.yaml:none", "expected arm baseline or test, got \"none\"");
    helper_refuse(2, "parity nothing.yaml", "nothing.yaml");
    helper_refuse(2, "parity pair.yaml --batches 0", "--batches: expected an integer from 1");
    helper_refuse(2, "parity pair.yaml --lengths 8,,9", "--lengths: expected integers");
    helper_refuse(2, "parity pair.yaml --top-p 1.5", "--top-p: expected a number above 0");
    helper_refuse(2, "parity pair.yaml --set nothing.here=1", "nothing.here");
    struct said said = helper_run(2, "parity . pair.yaml");
    require_in(said.err, "parity: model.from: .: expected a checkpoint");
    helper_free(&said);
    helper_refuse(2, "parity pair.yaml --steps 0", "--steps: expected an integer from 1");
    helper_refuse(2, "parity " GOLDEN "llama/model.safetensors pair.yaml",
                  "expected a scenario or the folder of a checkpoint, got a file of one");
    helper_refuse(2, "parity " GOLDEN "llama:a pair.yaml", "a folder has no arms");
    helper_refuse(2, "parity builtin:base builtin:bas",
                  "builtin:bas: no such model; there is builtin:base");
    helper_refuse(2, "parity weights", "parity weights: expected A B");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_two_arms),
        cmocka_unit_test(validate_keys_that_differ),
        cmocka_unit_test(validate_planted_key),
        cmocka_unit_test(validate_stale),
        cmocka_unit_test(validate_training),
        cmocka_unit_test(validate_training_data),
        cmocka_unit_test(validate_output_first),
        cmocka_unit_test(validate_idle_options),
        cmocka_unit_test(validate_interrupted),
        cmocka_unit_test(validate_json),
        cmocka_unit_test(validate_checkpoints),
        cmocka_unit_test(validate_planted_rope),
        cmocka_unit_test(validate_planted_transposition),
        cmocka_unit_test(validate_planted_keys_in_training),
        cmocka_unit_test(validate_training_json),
        cmocka_unit_test(validate_output_apart),
        cmocka_unit_test(validate_untestable),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
