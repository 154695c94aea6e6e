/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads the kept results of a suite. They are JSON, so that other programs read them,
 * too; members are those of a row of `suite --json`. */
#include "cli/suite_results.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "base/number.h"
#include "cli/build_id.h"
#include "cli/output.h"
#include "data/dataset.h"

#define RESULT_MOST ((uint64_t)1 << 20) /* bytes; the texts of a result are far shorter */

static void add_text(struct digest_stream *stream, const char *text) {
    struct digest digest;
    digest_sha256(text, strlen(text), &digest);
    digest_stream_add(stream, &digest);
}

/* The bytes of a file, whatever its name: the same suite may be called from another folder. */
static enum status add_file(struct digest_stream *stream, const char *path) {
    char digest[DIGEST_HEX];
    TRY(digest_file(path, digest));
    add_text(stream, digest);
    return STATUS_OK;
}

static enum status add_source(struct digest_stream *stream, const char *source) {
    return dataset_is_builtin(source) ? STATUS_OK : add_file(stream, source);
}

/* What the scenario's text names and does not hold. What it leaves open, such as defaults, this
 * program fills in. */
static enum status add_arm(struct digest_stream *stream, const struct config *config) {
    add_text(stream, config->model.from_digest);
    add_text(stream, config->optimizer.which.module_sha256);
    add_text(stream, config->schedule.which.module_sha256);
    TRY(add_source(stream, config->task == TASK_SFT ? config->data.text : config->data.pairs));
    if (config->numerics.backend == BACKEND_CPU ||
        strcmp(config->numerics.backend_module, "auto") == 0)
        return STATUS_OK;
    return add_file(stream, config->numerics.backend_module);
}

enum status suite_result_digest(const struct scenario *scenario, const char *name,
                                char out[DIGEST_HEX]) {
    struct digest_stream stream;
    struct digest digest;
    char program[DIGEST_HEX];
    const char *const held_out = scenario->eval.from;
    json_t *const told = json_string(name);
    if (told == NULL)
        FAIL(STATUS_INPUT, "--results: expected the name of a file in UTF-8, got %s.yaml", name);
    json_decref(told);
    TRY(build_id(program));
    digest_stream_init(&stream, "twinstep suite result 1");
    add_text(&stream, program);
    add_text(&stream, scenario->name);
    digest_sha256(scenario->text, scenario->text_length, &digest);
    digest_stream_add(&stream, &digest);
    add_text(&stream, scenario->overrides);
    for (int arm = 0; arm < 2; arm++)
        TRY(add_arm(&stream, &scenario->arms[arm].config));
    if (strcmp(held_out, EVAL_NOTHING) != 0 && strcmp(held_out, EVAL_REST) != 0)
        TRY(add_source(&stream, held_out));
    digest_stream_close(&stream, &digest);
    digest_hex(&digest, out);
    return STATUS_OK;
}

/* A value of JSON, with its kind, so that "1" and 1 are two. */
static void add_value(struct digest_stream *stream, const json_t *value) {
    char text[64];
    const char *key;
    json_t *inner;
    snprintf(text, sizeof text, "%d", (int)json_typeof(value));
    add_text(stream, text);
    if (json_is_string(value)) add_text(stream, json_string_value(value));
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        add_text(stream, text);
    }
    if (json_is_real(value)) add_text(stream, number_hex_f64(json_real_value(value)).text);
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) {
        if (strcmp(key, "seal") == 0) continue;
        add_text(stream, key);
        add_value(stream, inner);
    }
}

/* The digest of a result's own members. A row that somebody edited would be taken over otherwise,
 * since what decides the result is as it was. */
static json_t *seal_of(const json_t *object) {
    struct digest_stream stream;
    struct digest digest;
    char hex[DIGEST_HEX];
    digest_stream_init(&stream, "twinstep suite seal 1");
    add_value(&stream, object);
    digest_stream_close(&stream, &digest);
    digest_hex(&digest, hex);
    return json_string(hex);
}

enum status suite_result_write(const char *path, const char *digest,
                               const struct suite_result *result) {
    struct output output;
    json_t *const object = suite_result_json(result);
    if (object == NULL || json_object_set_new(object, "of", json_string(digest)) != 0 ||
        json_object_set_new(object, "seal", seal_of(object)) != 0) {
        json_decref(object);
        FAIL(STATUS_MEMORY, "%s: no memory for a result, or a text that is not UTF-8", path);
    }
    enum status status = output_open(path, 1, &output);
    if (status == STATUS_OK) {
        const int failed =
            json_dumpf(object, output.file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) != 0 ||
            fputc('\n', output.file) == EOF;
        if (failed) status = status_fail(STATUS_IO, "cannot write the result");
        status = output_close(&output, status);
    }
    json_decref(object);
    return status;
}

static enum status wrong(const char *path, const char *what) {
    return status_fail(STATUS_INPUT,
                       "%s: expected the result of a scenario as suite --results writes it, got %s "
                       "(remove the file; --resume trains the scenario again)",
                       path, what);
}

/* The number of the word that `name` gives of 0 .. count - 1, or -1. */
static int find_word(const char *word, const char *(*name)(int), int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name(i), word) == 0) return i;
    return -1;
}

static const char *verdict_word(int verdict) {
    return verdict_name((enum verdict)verdict);
}

static const char *expectation_word(int expectation) {
    return expectation_name((enum expectation)expectation);
}

static enum status keep(struct arena *arena, const json_t *text, const char **out) {
    char *kept;
    TRY(arena_text(arena, json_string_value(text), json_string_length(text), &kept));
    *out = kept;
    return STATUS_OK;
}

static enum status take_error(const char *path, const json_t *object, struct arena *arena,
                              struct suite_result *out) {
    const json_t *const error = json_object_get(object, "error");
    const json_t *const seconds = json_object_get(object, "seconds");
    if (!json_is_string(error) || !json_is_real(seconds))
        return wrong(path, "an object without its members");
    out->status = STATUS_INTERNAL; /* which one it was is in the text */
    out->seconds = json_real_value(seconds);
    return keep(arena, error, &out->error);
}

static enum status take_row(const char *path, const json_t *object, struct arena *arena,
                            struct suite_result *out) {
    const json_t *const verdict = json_object_get(object, "verdict");
    const json_t *const cause = json_object_get(object, "cause");
    const json_t *const first = json_object_get(object, "first");
    const json_t *const step = json_object_get(first, "step");
    const json_t *const phase = json_object_get(first, "phase");
    const json_t *const expectation = json_object_get(object, "expectation");
    const json_t *const missed = json_object_get(object, "missed");
    const json_t *const seconds = json_object_get(object, "seconds");
    if (!json_is_string(verdict) || !json_is_string(cause) || !json_is_string(expectation) ||
        !json_is_string(missed) || !json_is_real(seconds) ||
        (!json_is_null(first) && (!json_is_integer(step) || !json_is_string(phase))))
        return wrong(path, "an object without its members");
    const int verdict_number = find_word(json_string_value(verdict), verdict_word, VERDICT_COUNT);
    const int expectation_number =
        find_word(json_string_value(expectation), expectation_word, EXPECT_MISSED + 1);
    if (verdict_number < 0 || expectation_number < 0)
        return wrong(path, "a verdict of no scenario");
    out->status = STATUS_OK;
    out->verdict = (enum verdict)verdict_number;
    out->expectation = (enum expectation)expectation_number;
    out->first_step = json_is_null(first) ? -1 : (int64_t)json_integer_value(step);
    out->first_phase = "";
    out->seconds = json_real_value(seconds);
    if (!json_is_null(first)) TRY(keep(arena, phase, &out->first_phase));
    TRY(keep(arena, cause, &out->cause));
    return keep(arena, missed, &out->missed);
}

static enum status take(const char *path, const char *digest, const json_t *object,
                        struct arena *arena, enum suite_kept *out_kept, struct suite_result *out) {
    const json_t *const of = json_object_get(object, "of");
    if (!json_is_string(of)) return wrong(path, "JSON without the member \"of\"");
    *out_kept = SUITE_KEPT_OTHER;
    if (strcmp(json_string_value(of), digest) != 0) return STATUS_OK;
    json_t *const seal = seal_of(object);
    const int is_whole = seal != NULL && json_equal(seal, json_object_get(object, "seal"));
    json_decref(seal);
    if (!is_whole) return wrong(path, "one that was edited since");
    *out_kept = SUITE_KEPT;
    return json_object_get(object, "error") != NULL ? take_error(path, object, arena, out)
                                                    : take_row(path, object, arena, out);
}

enum status suite_result_read(const char *path, const char *digest, struct arena *arena,
                              enum suite_kept *out_kept, struct suite_result *out) {
    struct input input;
    FILE *stream;
    struct stat info;
    *out_kept = SUITE_KEPT_NOT;
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT) return STATUS_OK;
        FAIL(STATUS_IO, "%s: cannot look for a result: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) return wrong(path, "no regular file");
    TRY(input_open_stream(path, INPUT_FILE, path, "the result of a scenario", &stream, &input));
    json_error_t error;
    json_t *const object =
        input.length > RESULT_MOST ? NULL : json_loadf(stream, JSON_REJECT_DUPLICATES, &error);
    fclose(stream); /* nothing was written to it */
    if (object == NULL) return wrong(path, "no JSON");
    const enum status status = take(path, digest, object, arena, out_kept, out);
    json_decref(object);
    return status;
}
