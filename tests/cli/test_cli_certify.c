/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * twinstep certify must print and pin a root, name a changed byte by update and column, bisect two
 * traces, and help two people to do so by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/trace.h"
#include "tests/cli/helper_cli.h"

enum { STEPS = 7 };

#define HEX 65

/* Records a trace, whatever the verdict. */
static void record(const char *trace, const char *arms) {
    char text[1024];
    const char *const words[] = {"run", "s.yaml", "-o", trace, "--overwrite", NULL};
    snprintf(text, sizeof text,
             "twinstep: 1\nname: certified\nsteps: %d\ncommon:\n  data: {max_len: 96}\n"
             "  batch: {size: 2, micro: 1}\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
             "  dropout: {residual: 0.1}\n%s",
             STEPS, arms);
    helper_write("s.yaml", text);
    struct said said = helper_say(words, NULL);
    if (said.code == 2 || said.code > 3) fail_msg("%s", said.err);
    helper_free(&said);
}

/* The schedule of the test arm is another one, whose first three updates use the same LR. */
static const char late[] = "arms:\n  baseline: {schedule: {name: constant}}\n"
                           "  test: {schedule: {name: warmup_stable_decay, stable: 3, decay: 4}}\n";

static void root_at(const char *trace, const char *run, int update, char out[HEX]) {
    char line[128];
    snprintf(line, sizeof line, "certify %s --run %s --at %d", trace, run, update);
    struct said said = helper_run(0, line);
    int number;
    assert_int_equal(sscanf(said.out, "%d %64s", &number, out), 2);
    assert_int_equal(number, update);
    helper_free(&said);
}

static json_t *said_json(int code, const char *line) {
    json_error_t error;
    struct said said = helper_run(code, line);
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) fail_msg("%s\n%s", error.text, said.out);
    helper_free(&said);
    return object;
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static void validate_print(void **state) {
    (void)state;
    char root[HEX], line[256];
    record("a.h5", "arms: {baseline: {}, test: {}}\n");
    root_at("a.h5", "baseline", STEPS, root);
    struct said said = helper_run(0, "certify a.h5");
    snprintf(line, sizeof line, "  root           %s\n", root);
    assert_non_null(strstr(said.out, line));
    assert_non_null(strstr(said.out, "sound: 7 roots recomputed"));
    snprintf(line, sizeof line, "certify a.h5 --run baseline --expect %s\n", root);
    const char *pin = strstr(said.out, line);
    assert_non_null(pin);
    helper_free(&said);
    said = helper_run(0, "certify a.h5 --at 1,7");
    assert_int_equal(strncmp(said.out, "1 ", 2), 0);
    assert_non_null(strstr(said.out, "\n7 "));
    helper_free(&said);
    json_t *object = said_json(0, "certify a.h5 --run test --json");
    assert_string_equal(text_of(object, "root"), root); /* the arms are alike */
    assert_string_equal(text_of(object, "chain"), "sound");
    assert_int_equal(strlen(text_of(object, "configuration")), 64);
    assert_int_equal(strlen(text_of(object, "scenario")), 64);
    json_decref(object);
}

static void validate_pin(void **state) {
    (void)state;
    char root[HEX], line[256];
    root_at("a.h5", "baseline", STEPS, root);
    snprintf(line, sizeof line, "certify a.h5 --expect %s", root);
    struct said said = helper_run(0, line);
    assert_string_equal(said.out, "a.h5: run baseline: root as expected after update 7\n");
    helper_free(&said);
    for (int i = 0; i < HEX - 1; i++)
        if (root[i] >= 'a') root[i] = (char)(root[i] - 'a' + 'A');
    snprintf(line, sizeof line, "certify a.h5 --expect %s --json", root);
    json_t *object = said_json(0, line);
    assert_true(json_is_true(json_object_get(object, "met")));
    json_decref(object);
    root[40] = root[40] == '0' ? '1' : '0';
    snprintf(line, sizeof line, "certify a.h5 --expect %s", root);
    said = helper_run(1, line);
    assert_non_null(strstr(said.out, "expected root "));
    helper_free(&said);
    helper_refuse(2, "certify a.h5 --expect 1234", "expected 64 hexadecimal digits");
}

/* Changes one byte of a column in the baseline's update `update`. */
static void flip(const char *trace, const char *column, hsize_t update, hsize_t byte) {
    char path[128];
    snprintf(path, sizeof path, "runs/baseline/steps/%s", column);
    const hid_t file = H5Fopen(trace, H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    assert_true(dataset >= 0);
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(space);
    const size_t size = H5Tget_size(type); /* 1: a byte of a digest, the last axis */
    hsize_t from[3] = {update - 1, 0, 0};
    const hsize_t count[3] = {1, 1, 1};
    if (size == 1) from[rank - 1] = byte;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL);
    const hid_t memory = H5Screate_simple(rank, count, NULL);
    uint8_t value[8];
    assert_true(H5Dread(dataset, type, memory, space, H5P_DEFAULT, value) >= 0);
    value[size == 1 ? 0 : byte] ^= 1;
    assert_true(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, value) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    H5Fclose(file);
}

static void verify_changed_byte_is_named(void **state) {
    (void)state;
    static const struct {
        const char *column, *named;
        hsize_t update, byte;
    } changes[] = {
        {"digest_batch", "digest_batch", 3, 0},
        {"digest_rng", "digest_rng", 1, 31},
        {"digest_weights", "digest_weights", 7, 5},
        {"digest_lr", "digest_lr", 4, 17},
        {"digest_root", "digest_root", 2, 8},
        {"loss", "loss", 5, 3},
        {"lr_applied", "lr_applied", 6, 0},
        {"ledger/words", "ledger/words", 2, 1},
        {"grad_norm", "", 3, 2},
    };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        char wanted[64];
        size_t length;
        char *bytes = helper_read("a.h5", &length);
        helper_write_bytes("t.h5", bytes, length);
        free(bytes);
        flip("t.h5", changes[i].column, changes[i].update, changes[i].byte);
        json_t *object = said_json(1, "certify t.h5 --json");
        assert_string_equal(text_of(object, "chain"), "broken");
        assert_int_equal(json_integer_value(json_object_get(object, "broken")), changes[i].update);
        assert_string_equal(text_of(object, "column"), changes[i].named);
        json_decref(object);
        struct said said = helper_run(1, "certify t.h5");
        snprintf(wanted, sizeof wanted, "BROKEN at update %d: ", (int)changes[i].update);
        assert_non_null(strstr(said.out, wanted));
        assert_null(strstr(said.out, "--expect"));
        helper_free(&said);
        said = helper_run(0, "certify t.h5 --run test");
        helper_free(&said);
        helper_refuse(1, "certify t.h5 --at 1", "the chain is broken");
        helper_refuse(1, "certify t.h5 a.h5", "the chain is broken");
    }
}

static void must(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* Writes the runs of a trace anew with another digest of the weights in one row: so `check` and
 * seals fit, as only a forger makes them, and the chain does not. */
static void forge(const char *from, const char *to, uint64_t update) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    struct trace *trace;
    struct trace_run_plan *runs;
    must(trace_open(from, &arena, &image));
    must(arena_take(&arena, image->run_count, sizeof *runs, "runs", &runs));
    for (uint32_t i = 0; i < image->run_count; i++)
        runs[i] = image->runs[i].plan;
    image->runs[0].records[update - 1].digests[DIGEST_WEIGHTS][0] ^= 1;
    const struct trace_plan plan = {.runs = runs,
                                    .run_count = image->run_count,
                                    .attributes = image->attributes,
                                    .attribute_count = image->attribute_count,
                                    .overwrite = 1};
    must(trace_create(to, &plan, &arena, &trace));
    for (uint32_t r = 0; r < image->run_count; r++)
        for (uint64_t i = 0; i < image->runs[r].updates; i++)
            must(trace_put_record(trace, r, &image->runs[r].records[i]));
    must(trace_finish(trace));
    arena_close(&arena);
}

/* A run whose chain does not hold is refused before its configuration, which names modules, is
 * read. */
static void verify_nothing_is_trained_after_a_broken_chain(void **state) {
    (void)state;
    forge("a.h5", "forged.h5", 3);
    struct said said = helper_run(1, "certify forged.h5");
    helper_free(&said);
    helper_refuse(2, "replay forged.h5", "run baseline: the chain is broken at update 3");
    helper_refuse(2, "bisect forged.h5", "run baseline: the chain is broken at update 3");
    helper_refuse(2, "bisect a.h5 forged.h5", "forged.h5: run baseline: the chain is broken");
    said = helper_run(0, "replay forged.h5 --run test");
    helper_free(&said);
}

/* Weights that equal those of a record which was changed: the exit status, JSON and the file for CI
 * say that its chain does not hold. */
static void validate_equal_weights_do_not_mend_a_chain(void **state) {
    size_t length;
    (void)state;
    record("late.h5", late);
    struct said said = helper_run(1, "run s.yaml --quiet -o kept.h5 --overwrite --save-model kept");
    helper_free(&said);
    forge("kept.h5", "changed.h5", 3);
    json_t *object = said_json(0, "certify kept.h5 --at 7 --weights kept/baseline --json");
    assert_string_equal(text_of(object, "chain"), "sound");
    assert_true(json_is_null(json_object_get(object, "broken")));
    json_decref(object);
    object = said_json(1, "certify changed.h5 --at 7 --weights kept/baseline --json");
    assert_string_equal(text_of(object, "chain"), "broken");
    assert_int_equal(json_integer_value(json_object_get(object, "broken")), 3);
    assert_string_equal(text_of(object, "column"), "digest_weights");
    assert_true(json_is_false(json_object_get(object, "configuration_altered")));
    assert_true(json_integer_value(json_object_get(object, "equal")) > 0);
    assert_int_equal(json_integer_value(json_object_get(object, "differ")), 0);
    json_decref(object);
    said = helper_run(1, "certify changed.h5 --at 7 --weights kept/baseline --junit w.xml");
    assert_non_null(strstr(said.err, "the chain is broken at update 3"));
    assert_non_null(strstr(said.out, " tensors equal, 0 differ, 0 not there"));
    helper_free(&said);
    char *text = helper_read("w.xml", &length);
    assert_non_null(strstr(text, "tests=\"2\" failures=\"1\""));
    assert_non_null(strstr(text, "the chain is broken at update 3"));
    free(text);
    /* the other run of the trace was not changed, and its weights are not these */
    said = helper_run(0, "certify changed.h5 --run test --at 7 --weights kept/test");
    helper_free(&said);
    said = helper_run(1, "certify changed.h5 --run test --at 6 --weights kept/test --junit w.xml");
    helper_free(&said);
    text = helper_read("w.xml", &length);
    assert_non_null(strstr(text, "tests=\"1\" failures=\"1\""));
    free(text);
}

static void validate_two_traces(void **state) {
    (void)state;
    char a[HEX], b[HEX];
    record("b.h5", late);
    int first = 0;
    for (int k = 1; k <= STEPS && first == 0; k++) {
        root_at("b.h5", "baseline", k, a);
        root_at("b.h5", "test", k, b);
        if (strcmp(a, b) != 0) first = k;
    }
    assert_true(first > 1 && first < STEPS); /* otherwise this shows nothing */
    json_t *object = said_json(1, "certify b.h5 b.h5 --run-b test --json");
    const json_t *where = json_object_get(object, "first");
    assert_int_equal(json_integer_value(json_object_get(where, "update")), first);
    assert_string_equal(text_of(where, "phase"), "optimize");
    assert_true(strlen(text_of(where, "tensor")) > 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(where, "roots"), 1)), b);
    assert_true(json_integer_value(json_object_get(object, "comparisons")) <= 3 + 2);
    assert_true(json_is_null(json_object_get(object, "rng")));
    json_decref(object);
    record("c.h5", "arms: {baseline: {}, test: {dropout: {residual: 0.2, attention: 0.1}}}\n");
    struct said said = helper_run(1, "certify c.h5 c.h5 --run-b test");
    assert_non_null(strstr(said.out, "differs from update 1 on (3 comparisons of 7 roots)"));
    assert_non_null(strstr(said.out, "  phase    forward\n"));
    assert_non_null(strstr(said.out, "rng      update 1: dropout/attention drew 0 words in A, "));
    helper_free(&said);
    said = helper_run(0, "certify a.h5 c.h5"); /* the same baseline */
    assert_non_null(strstr(said.out, "equal through update 7 (1 comparison of 7 roots)"));
    helper_free(&said);
}

/* Two people, each with a trace of their own, tell each other only whether two roots are equal. */
static void verify_bisection_by_hand(void **state) {
    (void)state;
    json_t *object = said_json(1, "certify b.h5 b.h5 --run-b test --json");
    const json_int_t first =
        json_integer_value(json_object_get(json_object_get(object, "first"), "update"));
    json_decref(object);
    json_int_t equal = 0, differs = 0, found = 0;
    int comparisons = 0;
    while (found == 0) {
        char line[128], mine[HEX], theirs[HEX];
        if (differs == 0)
            snprintf(line, sizeof line, "certify b.h5 --equal %d --json", (int)equal);
        else
            snprintf(line, sizeof line, "certify b.h5 --equal %d --differs %d --json", (int)equal,
                     (int)differs);
        object = said_json(0, line);
        const json_int_t next = json_integer_value(json_object_get(object, "next"));
        found = json_integer_value(json_object_get(object, "first"));
        if (next != 0) {
            root_at("b.h5", "baseline", (int)next, mine);
            root_at("b.h5", "test", (int)next, theirs);
            assert_string_equal(text_of(object, "root"), mine);
            if (strcmp(mine, theirs) == 0)
                equal = next;
            else
                differs = next;
            comparisons++;
        }
        json_decref(object);
        assert_true(comparisons <= 3 + 2);
    }
    assert_int_equal(found, first);
    struct said said = helper_run(0, "certify b.h5 --equal 0");
    assert_int_equal(strncmp(said.out, "compare update 7: ", 18), 0);
    helper_free(&said);
    said = helper_run(0, "certify b.h5 --equal 7");
    assert_string_equal(said.out, "equal through update 7, the last one\n");
    helper_free(&said);
    said = helper_run(0, "certify b.h5 --equal 3 --differs 5");
    assert_int_equal(strncmp(said.out, "compare update 4: ", 18), 0);
    helper_free(&said);
    said = helper_run(0, "certify b.h5 --equal 4 --differs 5");
    assert_string_equal(said.out, "update 5 is the first that differs\n");
    helper_free(&said);
}

/* Another implementation of the hashes, in Python and from docs/CERTIFY.md alone, must get the same
 * chain. */
static void corroborate_document(void **state) {
    (void)state;
    char root[HEX], wanted[96], output[256] = "";
    size_t length;
    if (system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) {
        print_message("left out: python3 cannot import h5py\n");
        skip();
    }
    char *document = helper_read(TWINSTEP_SOURCE_DIR "/docs/CERTIFY.md", &length);
    char *begin = strstr(document, "```python\n");
    assert_non_null(begin);
    begin += strlen("```python\n");
    *strstr(begin, "```") = '\0';
    helper_write("chain.py", begin);
    free(document);
    char *bytes = helper_read("a.h5", &length);
    helper_write_bytes("out.h5", bytes, length);
    free(bytes);
    root_at("a.h5", "baseline", STEPS, root);
    snprintf(wanted, sizeof wanted, "sound %s\n", root);
    FILE *stream = popen("/usr/bin/python3 chain.py", "r");
    assert_non_null(stream);
    assert_non_null(fgets(output, sizeof output, stream));
    assert_int_equal(pclose(stream), 0);
    assert_string_equal(output, wanted);
    flip("out.h5", "loss", 2, 6);
    assert_int_not_equal(system("/usr/bin/python3 chain.py >/dev/null 2>&1"), 0);
}

static void validate_refusals(void **state) {
    (void)state;
    helper_write("log.csv", "step,loss\n1,0.5\n2,0.4\n");
    helper_accept(0, "import log.csv -o log.h5 --overwrite");
    helper_refuse(2, "certify log.h5", "one without runs, which has no roots");
    helper_refuse(2, "certify a.h5 --run nobody", "expected one of baseline, test");
    helper_refuse(2, "certify a.h5 --at 8", "expected an update from 1 to 7, got 8");
    helper_refuse(2, "certify a.h5 --at 1,", "expected an update");
    helper_refuse(2, "certify a.h5 --at 1;2", "expected updates with commas");
    helper_refuse(2, "certify a.h5 --equal 3 --differs 3", "expected --equal before --differs");
    helper_refuse(2, "certify a.h5 --differs 9", "--differs: expected an update up to 7, got 9");
    helper_refuse(2, "certify a.h5 a.h5 --at 1", "expected one of");
    helper_refuse(2, "certify absent.h5", "absent.h5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_print),
        cmocka_unit_test(validate_pin),
        cmocka_unit_test(verify_changed_byte_is_named),
        cmocka_unit_test(verify_nothing_is_trained_after_a_broken_chain),
        cmocka_unit_test(validate_equal_weights_do_not_mend_a_chain),
        cmocka_unit_test(validate_two_traces),
        cmocka_unit_test(verify_bisection_by_hand),
        cmocka_unit_test(corroborate_document),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
