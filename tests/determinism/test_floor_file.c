/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Floor files: what was written must be what is read, and nothing else may pass for one. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "determinism/floor_file.h"
#include "determinism/trace.h"
#include "tests/base/helper_size.h"

/* HDF5 leaks what it held when a file is damaged; the leak sanitizer reads these suppressions. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

enum { STEPS = 3, PAIRS = 4, TENSORS = 2 };

static char folder[] = "/tmp/twinstep-floor-XXXXXX";
static char path[sizeof folder + 16], other[sizeof folder + 16];

static int enter(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/f.h5", folder);
    snprintf(other, sizeof other, "%s/o.h5", folder);
    return 0;
}

static int leave(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

struct sample {
    double pairs[FLOOR_COLUMNS][PAIRS * STEPS], twin[2][STEPS * TENSORS], share[STEPS];
    struct floor_stratum strata[2];
    struct floor_file file;
};

static void fill(struct sample *sample) {
    static const char *const names[TENSORS] = {"first", "second"};
    static const struct trace_attribute environment[] = {{"env", "twinstep", "test"}};
    memset(sample, 0, sizeof *sample);
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        for (int i = 0; i < PAIRS * STEPS; i++)
            sample->pairs[c][i] = 100 * c + i + 0.125;
    sample->pairs[FLOOR_DISTANCE][5] = (double)INFINITY;
    for (int i = 0; i < STEPS * TENSORS; i++)
        sample->twin[0][i] = i * 0x1p-20, sample->twin[1][i] = i * 0x1p-30;
    sample->share[0] = (double)NAN;
    for (int i = 0; i < 2; i++) {
        static const char *const words[FLOOR_WORDS] = {"fast", "f32", "2",       "threads",
                                                       "1 2",  "",    "forward", "first"};
        memcpy(sample->strata[i].words, words, sizeof words);
        sample->strata[i].figures[FIGURE_FIRST] = i;
        sample->strata[i].share = sample->share;
    }
    sample->strata[1].words[WORD_UNTESTABLE] = "no second device";
    sample->file =
        (struct floor_file){.scenario = "s",
                            .arm = "baseline",
                            .text = "twinstep: 1\n",
                            .configuration = "task: dpo\n",
                            .determines = "00ff",
                            .protocol = "how",
                            .steps = STEPS,
                            .pairs = PAIRS,
                            .strata = sample->strata,
                            .stratum_count = 2,
                            .twin = {TENSORS, names, "first[0]", sample->twin[0], sample->twin[1]},
                            .environment = environment,
                            .environment_count = 1};
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        sample->file.columns[c] = sample->pairs[c];
}

static void write_sample(struct sample *sample) {
    struct arena arena = ARENA_EMPTY;
    fill(sample);
    if (floor_file_write(path, &sample->file, 1, &arena) != STATUS_OK)
        fail_msg("%s", status_text());
    arena_close(&arena);
}

static void verify_round_trip(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct sample sample;
    struct floor_file back;
    write_sample(&sample);
    if (floor_file_open(path, &arena, &back) != STATUS_OK) fail_msg("%s", status_text());
    assert_string_equal(back.scenario, "s");
    assert_string_equal(back.arm, "baseline");
    assert_string_equal(back.text, "twinstep: 1\n");
    assert_string_equal(back.configuration, "task: dpo\n");
    assert_string_equal(back.determines, "00ff");
    assert_string_equal(back.protocol, "how");
    assert_true(back.steps == STEPS && back.pairs == PAIRS && back.stratum_count == 2);
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        assert_memory_equal(back.columns[c], sample.pairs[c], sizeof sample.pairs[c]);
    assert_string_equal(back.strata[1].words[WORD_UNTESTABLE], "no second device");
    assert_string_equal(back.strata[0].words[WORD_VARIANT], "1 2");
    assert_true(back.strata[1].figures[FIGURE_FIRST] == 1.0);
    assert_true(isnan(back.strata[0].share[0]) && back.strata[0].share[1] == 0.0);
    assert_int_equal(back.twin.tensors, TENSORS);
    assert_string_equal(back.twin.names[1], "second");
    assert_string_equal(back.twin.weight, "first[0]");
    assert_memory_equal(back.twin.distance, sample.twin[1], sizeof sample.twin[1]);
    double at[PAIRS];
    floor_file_at(&back, FLOOR_LOSS, 2, at);
    for (int i = 0; i < PAIRS; i++)
        assert_true(at[i] == sample.pairs[FLOOR_LOSS][i * STEPS + 1]);
    assert_int_equal(floor_file_write(path, &sample.file, 0, &arena), STATUS_IO);
    arena_close(&arena);
}

/* Parts make it a file of version 2, whose digest covers them; without parts it must be as
 * before. */
static void verify_parts(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct sample sample;
    struct floor_file back;
    fill(&sample);
    static const char *const parts[] = {NULL, "",
                                        "fast\tf32\tinstance\tlayer\tlayer 0\t9\t1\t1e-7\t3\n"};
    static const char *const versions[] = {"1", "1", "2"};
    for (int i = 0; i < 3; i++) {
        struct trace_image *image;
        sample.file.parts = parts[i];
        if (floor_file_write(path, &sample.file, 1, &arena) != STATUS_OK ||
            floor_file_open(path, &arena, &back) != STATUS_OK ||
            trace_open(path, &arena, &image) != STATUS_OK)
            fail_msg("%s", status_text());
        assert_string_equal(back.parts, parts[i] == NULL ? "" : parts[i]);
        assert_string_equal(trace_attribute_of(image, "noise", "version"), versions[i]);
    }
    arena_close(&arena);
}

/* A file with neither pairs nor rows nor a perturbed run gives nothing to judge by, and is still a
 * file. */
static void verify_empty(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct sample sample;
    struct floor_file back;
    fill(&sample);
    sample.file.pairs = sample.file.stratum_count = sample.file.twin.tensors = 0;
    if (floor_file_write(path, &sample.file, 1, &arena) != STATUS_OK) fail_msg("%s", status_text());
    if (floor_file_open(path, &arena, &back) != STATUS_OK) fail_msg("%s", status_text());
    assert_true(back.pairs == 0 && back.stratum_count == 0 && back.twin.tensors == 0);
    arena_close(&arena);
}

static void put_bytes(const char *bytes, size_t length) {
    FILE *file = fopen(other, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static char *bytes_of(size_t *out_length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_length = (size_t)ftell(file);
    rewind(file);
    char *bytes = (char *)malloc(*out_length);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *out_length, file), *out_length);
    fclose(file);
    return bytes;
}

static int opens(struct arena *arena, struct floor_file *out) {
    const enum status status = floor_file_open(other, arena, out);
    if (status != STATUS_OK && status_text()[0] == '\0') fail_msg("no text");
    return status == STATUS_OK;
}

static void verify_truncated(void **state) {
    (void)state;
    struct sample sample;
    size_t length;
    write_sample(&sample);
    char *bytes = bytes_of(&length);
    for (size_t cut = 0; cut < length; cut += 1 + length / helper_size(25, 97, 97)) {
        struct arena arena = ARENA_EMPTY;
        struct floor_file back;
        put_bytes(bytes, cut);
        if (opens(&arena, &back)) fail_msg("%zu of %zu bytes were read", cut, length);
        arena_close(&arena);
    }
    free(bytes);
}

/* A flipped bit must be noticed, or lie where nothing is read. */
static void verify_damaged(void **state) {
    (void)state;
    struct sample sample;
    size_t length;
    uint32_t noticed = 0;
    write_sample(&sample);
    char *bytes = bytes_of(&length);
    for (size_t at = 0; at < length; at += 1 + length / helper_size(99, 499, 499)) {
        struct arena arena = ARENA_EMPTY;
        struct floor_file back;
        bytes[at] = (char)(bytes[at] ^ 0x10);
        put_bytes(bytes, length);
        bytes[at] = (char)(bytes[at] ^ 0x10);
        if (!opens(&arena, &back)) {
            noticed++;
        } else {
            assert_true(back.steps == STEPS && back.pairs == PAIRS);
            for (int c = 0; c < FLOOR_COLUMNS; c++)
                assert_memory_equal(back.columns[c], sample.pairs[c], sizeof sample.pairs[c]);
            assert_string_equal(back.configuration, "task: dpo\n");
            assert_string_equal(back.determines, "00ff");
        }
        arena_close(&arena);
    }
    assert_true(noticed > 0);
    free(bytes);
}

static void refuses(const char *needle) {
    struct arena arena = ARENA_EMPTY;
    struct floor_file back;
    assert_int_equal(floor_file_open(other, &arena, &back), STATUS_INPUT);
    if (strstr(status_text(), needle) == NULL) fail_msg("%s", status_text());
    arena_close(&arena);
}

/* Files made through the same layer but with other contents. */
static void validate_others(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace *trace;
    struct trace_attribute attributes[] = {
        {"noise", "version", "2"},     {"noise", "scenario_name", ""},
        {"noise", "arm", ""},          {"noise", "determines", ""},
        {"noise", "protocol", ""},     {"noise", "twin_weight", ""},
        {"noise", "steps", "2"},       {"noise", "pairs", "1"},
        {"noise", "strata_count", "0"}};
    static const char *const texts[] = {"noise/scenario", "noise/configuration", "noise/strata",
                                        "noise/twin_tensors", "noise/sha256"};
    const struct trace_array_plan arrays[] = {{"noise/pairs_loss", 2, {1, 2}, "1", ""},
                                              {"noise/pairs_grad_norm", 2, {1, 2}, "1", ""},
                                              {"noise/pairs_distance", 2, {1, 2}, "1", ""}};
    const struct {
        const char *version, *steps, *pairs;
        uint32_t array_count;
        double value; /* of the first array; NaN: it is never written */
        const char *needle;
    } cases[] = {
        {"3", "2", "1", 3, 1.0, "floor file of version 3; this program reads versions 1 to 2"},
        {"1", "-1", "1", 3, 1.0, "noise/steps: expected a number up to"},
        {"1", "0", "1", 3, 1.0, "it has no update"},
        {"1", "2", "99", 3, 1.0, "noise/pairs_loss"},
        {"1", "2", "1", 2, 1.0, "noise/pairs_grad_norm"}, /* NaN there comes first */
        {"1", "2", "1", 3, (double)NAN, "expected distances >= 0, got nan"},
        {"1", "2", "1", 3, -1.0, "expected distances >= 0, got -1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        attributes[0].text = cases[i].version;
        attributes[6].text = cases[i].steps;
        attributes[7].text = cases[i].pairs;
        const struct trace_plan plan = {.arrays = arrays,
                                        .array_count = cases[i].array_count == 2 ? 1 : 3,
                                        .texts = texts,
                                        .text_count = COUNT_OF(texts),
                                        .attributes = attributes,
                                        .attribute_count = COUNT_OF(attributes),
                                        .overwrite = 1};
        const double values[] = {cases[i].value, 1.0};
        assert_int_equal(trace_create(other, &plan, &arena, &trace), STATUS_OK);
        for (size_t t = 0; t < COUNT_OF(texts); t++)
            assert_int_equal(trace_put_text(trace, texts[t], "", 0), STATUS_OK);
        for (uint32_t a = 0; a < plan.array_count; a++)
            assert_int_equal(trace_put_array(trace, arrays[a].path, values), STATUS_OK);
        assert_int_equal(trace_finish(trace), STATUS_OK);
        refuses(cases[i].needle);
    }
    const struct trace_plan bare = {.overwrite = 1};
    assert_int_equal(trace_create(other, &bare, &arena, &trace), STATUS_OK);
    assert_int_equal(trace_finish(trace), STATUS_OK);
    refuses("expected a floor file (twinstep noise -o), got another trace");
    put_bytes("no HDF5", 7);
    refuses("not HDF5");
    arena_close(&arena);
}

/* What is left out of a file, or is more than a floor file may say. */
static void validate_lacks(void **state) {
    (void)state;
    static const char *const names[] = {"version",    "scenario_name", "arm",
                                        "determines", "protocol",      "twin_weight",
                                        "steps",      "pairs",         "strata_count"};
    static const char *const texts[] = {"noise/scenario", "noise/configuration", "noise/strata",
                                        "noise/twin_tensors", "noise/sha256"};
    enum { NAMES = 9, TEXTS = 5 };
    const struct trace_array_plan arrays[] = {{"noise/pairs_loss", 2, {1, 2}, "1", ""},
                                              {"noise/pairs_grad_norm", 2, {1, 2}, "1", ""},
                                              {"noise/pairs_distance", 2, {1, 2}, "1", ""}};
    const struct {
        const char *name, *text; /* NULL: the attribute, or the text, is left out */
        size_t length;           /* of a text */
        const char *needle;
    } cases[] = {
        {"version", NULL, 0, "got another trace"},
        {"scenario_name", NULL, 0, "it has no noise/scenario_name"},
        {"arm", NULL, 0, "it has no noise/arm"},
        {"determines", NULL, 0, "it has no noise/determines"},
        {"protocol", NULL, 0, "it has no noise/protocol"},
        {"twin_weight", NULL, 0, "it has no noise/twin_weight"},
        {"steps", NULL, 0, "it has no noise/steps"},
        {"pairs", NULL, 0, "it has no noise/pairs"},
        {"strata_count", NULL, 0, "it has no noise/strata_count"},
        {"version", "0", 0, "floor file of version 0"},
        {"version", "2", 0, "damaged, or not a floor file: noise/parts"},
        {"steps", "1073741825", 0, "noise/steps: expected a number up to 1073741824"},
        {"steps", "1073741824", 0, "damaged, or not a floor file: noise/pairs_loss"},
        {"pairs", "1073741825", 0, "noise/pairs: expected a number up to 1073741824"},
        {"strata_count", "1048577", 0, "noise/strata_count: expected a number up to 1048576"},
        {"noise/scenario", NULL, 0, "damaged, or not a floor file: noise/scenario"},
        {"noise/configuration", NULL, 0, "damaged, or not a floor file: noise/configuration"},
        {"noise/strata", NULL, 0, "damaged, or not a floor file: noise/strata"},
        {"noise/twin_tensors", NULL, 0, "damaged, or not a floor file: noise/twin_tensors"},
        {"noise/sha256", NULL, 0, "damaged, or not a floor file: noise/sha256"},
        {"noise/configuration", "a\0b", 3, "damaged, or not a floor file: noise/configuration"},
        {"noise/configuration", "a b", 3, "its digest is of other contents"},
        {"noise/sha256", "00", 2, "its digest is of other contents"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static const char *const values[NAMES] = {"1", "", "", "", "", "", "2", "1", "0"};
        const double distances[] = {1.0, 1.0};
        struct arena arena = ARENA_EMPTY;
        struct trace_attribute attributes[NAMES];
        const char *kept[TEXTS];
        struct trace *trace;
        uint32_t attribute_count = 0, text_count = 0;
        for (size_t n = 0; n < NAMES; n++) {
            const int is_it = strcmp(names[n], cases[i].name) == 0;
            if (is_it && cases[i].text == NULL) continue;
            attributes[attribute_count++] =
                (struct trace_attribute){"noise", names[n], is_it ? cases[i].text : values[n]};
        }
        for (size_t t = 0; t < TEXTS; t++)
            if (strcmp(texts[t], cases[i].name) != 0 || cases[i].text != NULL)
                kept[text_count++] = texts[t];
        const struct trace_plan plan = {.arrays = arrays,
                                        .array_count = COUNT_OF(arrays),
                                        .texts = kept,
                                        .text_count = text_count,
                                        .attributes = attributes,
                                        .attribute_count = attribute_count,
                                        .overwrite = 1};
        assert_int_equal(trace_create(other, &plan, &arena, &trace), STATUS_OK);
        for (uint32_t t = 0; t < text_count; t++) {
            const int is_it = strcmp(kept[t], cases[i].name) == 0;
            assert_int_equal(trace_put_text(trace, kept[t], is_it ? cases[i].text : "",
                                            is_it ? cases[i].length : 0),
                             STATUS_OK);
        }
        for (uint32_t a = 0; a < COUNT_OF(arrays); a++)
            assert_int_equal(trace_put_array(trace, arrays[a].path, distances), STATUS_OK);
        assert_int_equal(trace_finish(trace), STATUS_OK);
        refuses(cases[i].needle);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_round_trip), cmocka_unit_test(verify_parts),
        cmocka_unit_test(verify_empty),      cmocka_unit_test(verify_truncated),
        cmocka_unit_test(verify_damaged),    cmocka_unit_test(validate_others),
        cmocka_unit_test(validate_lacks),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
