/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the trace refuses, in its words: calls that a writer must not make, plans that are none,
 * stored states whose description is damaged, groups that nest for ever, and objects of a foreign
 * trace that are not what docs/FOREIGN.md asks for. Files are written soundly and then edited with
 * HDF5 itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "determinism/certify.h"
#include "determinism/foreign.h"
#include "tests/determinism/helper_trace.h"

/* HDF5 leaks what it held when a file is damaged; the leak sanitizer reads these suppressions. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

enum { UPDATES = 3, STATE = 40 };

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void refuse(enum status status, enum status expected, const char *text) {
    if (status != expected || strstr(status_text(), text) == NULL)
        fail_msg("expected status %d and \"%s\", got %d: %s", expected, text, status,
                 status_text());
}

/* ---- calls and plans ---- */

static void validate_arrays_by_parts(void **state) {
    (void)state;
    static const char *const path = "floor/distance"; /* (2, 3) */
    const double values[6] = {1, 2, 3, 4, 5, 6};
    struct sample sample;
    struct trace *trace;
    struct trace_array array = {.values = NULL};
    struct trace_image image = {.array_count = 1, .arrays = &array};
    sample_open(&sample, 2);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    refuse(trace_put_values(trace, "floor/other", 0, 1, values), STATUS_INTERNAL,
           "\"floor/other\" is not in the plan of the trace");
    refuse(trace_follow_array(trace, "floor/other", &sample.arena, &array), STATUS_INTERNAL,
           "\"floor/other\" is not in the plan of the trace");
    static const struct {
        uint64_t first, count;
        int fits;
    } parts[] = {{0, 3, 1}, {0, 4, 0}, {1, 3, 0}, {1, 2, 1}, {3, 3, 1},
                 {5, 1, 1}, {5, 2, 0}, {6, 1, 0}, {6, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const enum status status = trace_put_values(trace, path, parts[i].first, parts[i].count,
                                                    values + parts[i].first % 6);
        if (parts[i].fits) require(status);
        if (!parts[i].fits) refuse(status, STATUS_INTERNAL, "are not in one row");
    }
    require(trace_put_values(trace, path, 4, 1, &values[4]));
    require(trace_follow_array(trace, path, &sample.arena, &array));
    for (uint64_t i = 6; i-- > 0;)
        assert_true(trace_value(&array, i) == values[i]);
    require(trace_rows_status(&image));
    assert_true(trace_value(&array, 3) == values[3]);
    trace_abandon(trace);
    assert_true(trace_value(&array, 3) == values[3]); /* the row that is there */
    assert_true(isnan(trace_value(&array, 0)));
    refuse(trace_rows_status(&image), STATUS_INTERNAL,
           "\"floor/distance\" is asked for once its trace is closed");
    assert_true(isnan(trace_value(&array, 1)));
    sample_close(&sample);
}

static void validate_calls(void **state) {
    (void)state;
    const unsigned char bytes[STATE] = {1};
    struct sample sample;
    struct trace *trace;
    struct pair_record pair;
    struct trace_run run = {.updates = 1};
    struct trace_image image = {.run_count = 1, .runs = &run};
    sample_open(&sample, 2);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    sample_pair(1, &pair);
    refuse(trace_put_pair(trace, 1, &pair), STATUS_INTERNAL, "pair 1 of 1");
    refuse(trace_put_record(trace, 3, sample_record(&sample, 0, 1)), STATUS_INTERNAL, "run 3 of 3");
    refuse(trace_put_snapshot(trace, 0, 1, bytes), STATUS_INTERNAL, "has no stored states");
    struct record far = *sample_record(&sample, 0, 1);
    far.step = (uint64_t)INT64_MAX + 1;
    refuse(trace_put_record(trace, 0, &far), STATUS_INTERNAL,
           "update 9223372036854775808 comes after update 0");
    require(sample_put(&sample, trace, 1, 2));
    run.plan = sample.plan.runs[0];
    require(trace_follow_run(trace, 0, &sample.arena, &run));
    run.updates = 2;
    assert_int_equal(trace_row(&run, 1)->step, 2);
    assert_int_equal(trace_row(&run, 500)->step, 0); /* no such row: one without measurements */
    refuse(trace_rows_status(&image), STATUS_INTERNAL, "row 500 of 2");
    far.step = INT64_MAX;
    require(trace_put_record(trace, 0, &far));
    trace_abandon(trace);
    sample_close(&sample);
}

static void refuse_plan(struct sample *sample, const char *text) {
    struct trace *trace;
    refuse(trace_create(sample->path, &sample->plan, &sample->arena, &trace), STATUS_INTERNAL,
           text);
    assert_int_not_equal(access(sample->part, F_OK), 0);
}

static void validate_plans(void **state) {
    (void)state;
    struct sample sample;
    struct trace_run_plan runs[SAMPLE_RUNS];
    struct trace_array_plan arrays[2];
    static const struct trace_foreign foreign = {.digest = "", .causes = "", .world = 1};
    char long_name[202];
    sample_open(&sample, 2);
    const struct trace_plan sound = sample.plan;
    memset(long_name, 'x', sizeof long_name);
    long_name[201] = '\0';
    const char *const names[] = {"", "a/b", ".", "..", long_name};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        memcpy(runs, sound.runs, sizeof runs);
        sample.plan.runs = runs;
        runs[1].id = names[i];
        refuse_plan(&sample, "is no name for a run");
        runs[1].id = "test";
        runs[1].arm = names[i];
        refuse_plan(&sample, "is no name for a arm");
    }
    memcpy(runs, sound.runs, sizeof runs);
    runs[1].phases = NULL;
    refuse_plan(&sample, "run \"test\" has 7 phases and no names");
    memcpy(runs, sound.runs, sizeof runs);
    runs[1].streams = NULL;
    refuse_plan(&sample, "run \"test\" has 2 streams and no names");
    memcpy(runs, sound.runs, sizeof runs);
    runs[1].consumers = NULL;
    refuse_plan(&sample, "run \"test\" has 3 consumers and no list of them");
    memcpy(runs, sound.runs, sizeof runs);
    runs[1].foreign = &foreign;
    refuse_plan(&sample, "run \"test\" is foreign, and the trace names no writer");
    memcpy(runs, sound.runs, sizeof runs);
    sample.plan.writer = "another";
    refuse_plan(&sample, "run \"baseline\" is ours, and the trace names a foreign writer");
    sample.plan = sound;
    memcpy(runs, sound.runs, sizeof runs);
    long_name[200] = '\0'; /* the longest name */
    sample.plan.runs = runs;
    runs[1].id = long_name;
    runs[1].arm = long_name;
    struct trace *trace;
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    trace_abandon(trace);
    unlink(sample.part);
    sample.plan = sound;
    memcpy(arrays, sound.arrays, sizeof arrays);
    sample.plan.arrays = arrays;
    arrays[0].rank = 0;
    refuse_plan(&sample, "needs rank 1 or 2 and no empty axis");
    arrays[0].rank = 3;
    refuse_plan(&sample, "needs rank 1 or 2 and no empty axis");
    arrays[0] = sound.arrays[0];
    arrays[0].path = "floor//of/distance";
    refuse_plan(&sample, "is not a group path");
    sample_close(&sample);
}

/* ---- edits ---- */

static hid_t edit(const char *path) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, list);
    assert_true(file >= 0);
    H5Pclose(list);
    return file;
}

static void put_text(hid_t file, const char *path, const char *name, const char *text) {
    const hid_t object = H5Oopen(file, path, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    const hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(object >= 0 && H5Tset_size(type, strlen(text) + (text[0] == '\0')) >= 0);
    H5Tset_cset(type, H5T_CSET_UTF8);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    if (H5Aexists(object, name) > 0) assert_true(H5Adelete(object, name) >= 0);
    const hid_t made = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0 && H5Awrite(made, type, text) >= 0);
    H5Aclose(made);
    H5Tclose(type);
    H5Sclose(space);
    H5Oclose(object);
}

/* A dataset of that many rows in chunks, of which none is stored. */
static void put_dataset(hid_t file, const char *path, hid_t type, int rank, hsize_t rows,
                        hsize_t columns) {
    const hsize_t shape[2] = {rows, columns}, chunk[2] = {rows < 4 ? rows : 4, columns};
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, shape, NULL);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (rank > 0) assert_true(H5Pset_chunk(list, rank, chunk) >= 0);
    if (H5Lexists(file, path, H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
    const hid_t made = H5Dcreate2(file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(made >= 0);
    H5Dclose(made);
    H5Pclose(list);
    H5Sclose(space);
}

static void put_group(hid_t file, const char *path) {
    if (H5Lexists(file, path, H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    const hid_t list = H5Pcreate(H5P_GROUP_CREATE);
    assert_true(H5Pset_link_creation_order(list, order) >= 0);
    assert_true(H5Pset_attr_creation_order(list, order) >= 0);
    const hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(group >= 0);
    H5Gclose(group);
    H5Pclose(list);
}

/* Makes a file what a twinstep without seals would have written, else the seal would refuse it. */
static void make_earlier(hid_t file) {
    const int64_t version = 1;
    assert_true(H5Adelete(file, "twinstep_trace") >= 0);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t made =
        H5Acreate2(file, "twinstep_trace", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(made, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(made);
    H5Sclose(space);
    assert_true(H5Ldelete(file, "seal", H5P_DEFAULT) >= 0);
}

/* ---- states and nesting ---- */

static void write_with_states(struct sample *sample, struct trace_run_plan *runs) {
    const unsigned char bytes[STATE] = {7};
    struct trace *trace;
    memcpy(runs, sample->plan.runs, SAMPLE_RUNS * sizeof *runs);
    runs[0].snapshots = (struct trace_snapshot_plan){.bytes = STATE, .every = 1, .format = 1};
    sample->plan.runs = runs;
    sample->plan.overwrite = 1;
    require(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    require(trace_put_snapshot(trace, 0, 0, bytes));
    require(sample_put(sample, trace, 1, UPDATES));
    require(trace_put_snapshot(trace, 0, UPDATES, bytes));
    require(trace_finish(trace));
}

static void validate_damaged_states(void **state) {
    (void)state;
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    enum { TEXT, ROWS, GONE };
    static const struct {
        const char *name, *text, *said; /* NULL: it is read */
        int how;
    } cases[] = {
        {"layout", zeros, NULL, TEXT},
        {"layout", zeros + 1, "layout: expected 64 hexadecimal digits", TEXT},
        {"layout", "000000000000000000000000000000000000000000000000000000000000000G",
         "layout: expected 64 hexadecimal digits", TEXT},
        {"layout", "00000000000000000000000000000000000000000000000000000000000000AA",
         "layout: expected 64 hexadecimal digits", TEXT},
        {"byte_order", "big", NULL, TEXT},
        {"byte_order", "middle", "byte_order: expected little or big", TEXT},
        {"state", "", "\"state\" has 1 states of 2", ROWS},
        {"digest", "", "\"digest\" has 1 states of 2", ROWS},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sample sample;
        struct trace_run_plan runs[SAMPLE_RUNS];
        struct trace_image *image;
        char path[64];
        sample_open(&sample, 2);
        write_with_states(&sample, runs);
        const hid_t file = edit(sample.path);
        make_earlier(file);
        snprintf(path, sizeof path, "snapshots/baseline/%s", cases[i].name);
        if (cases[i].how == TEXT)
            put_text(file, "snapshots/baseline", cases[i].name, cases[i].text);
        else
            put_dataset(file, path, H5T_STD_U8LE, 2, 1, i == 6 ? STATE : 32);
        H5Fclose(file);
        const enum status status = trace_open(sample.path, &sample.arena, &image);
        if (cases[i].said != NULL) refuse(status, STATUS_INPUT, cases[i].said);
        if (cases[i].said == NULL) require(status);
        if (i == 4) assert_int_equal(image->runs[0].plan.snapshots.big_endian, 1);
        sample_close(&sample);
    }
}

/* The updates of the states increase. */
static void validate_order_of_states(void **state) {
    (void)state;
    static const struct {
        int64_t steps[2];
        const char *said; /* NULL: it is read */
    } cases[] = {
        {{0, 3}, NULL},
        {{3, 4}, NULL},
        {{3, 3}, "stored state 1 is of update 3"},
        {{3, 2}, "stored state 1 is of update 2"},
        {{-1, 3}, "stored state 0 is of update -1"},
        {{INT64_MIN, 3}, "stored state 0 is of update -9223372036854775808"},
        {{0, -1}, "stored state 1 is of update -1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sample sample;
        struct trace_run_plan runs[SAMPLE_RUNS];
        struct trace_image *image;
        sample_open(&sample, 2);
        write_with_states(&sample, runs);
        const hid_t file = edit(sample.path);
        make_earlier(file);
        const hid_t steps = H5Dopen2(file, "snapshots/baseline/step", H5P_DEFAULT);
        assert_true(
            H5Dwrite(steps, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, cases[i].steps) >= 0);
        H5Dclose(steps);
        H5Fclose(file);
        const enum status status = trace_open(sample.path, &sample.arena, &image);
        if (cases[i].said != NULL) refuse(status, STATUS_INPUT, cases[i].said);
        if (cases[i].said == NULL) require(status);
        if (cases[i].said == NULL)
            assert_true(image->runs[0].snapshot_steps[1] == (uint64_t)cases[i].steps[1]);
        sample_close(&sample);
    }
}

static void validate_states_that_are_gone(void **state) {
    (void)state;
    struct sample sample;
    struct trace_run_plan runs[SAMPLE_RUNS];
    struct trace_image *image;
    unsigned char *bytes;
    sample_open(&sample, 2);
    write_with_states(&sample, runs);
    require(trace_open(sample.path, &sample.arena, &image));
    require(trace_snapshot_read(sample.path, &image->runs[0], 1, &sample.arena, &bytes));
    assert_int_equal(bytes[0], 7);
    refuse(trace_snapshot_read(sample.path, &image->runs[0], 2, &sample.arena, &bytes),
           STATUS_INTERNAL, "stored state 2 of 2");
    const hid_t file = edit(sample.path);
    make_earlier(file);
    assert_true(H5Ldelete(file, "snapshots/baseline", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    refuse(trace_snapshot_read(sample.path, &image->runs[0], 1, &sample.arena, &bytes),
           STATUS_INPUT, "run baseline: its stored states are gone");
    sample_close(&sample);
}

/* Groups nest eight deep and no deeper, for the walk and for the seals. */
static void validate_nesting(void **state) {
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++)
        for (int depth = 8; depth <= 9; depth++) {
            struct sample sample;
            struct trace_image *image;
            char path[64] = "deep";
            sample_open(&sample, 2);
            require(sample_write(&sample, sample.path, UPDATES));
            const hid_t file = edit(sample.path);
            for (int i = 1; i <= depth; i++) {
                put_group(file, path);
                strcat(path, "/d");
            }
            if (!sealed) make_earlier(file);
            H5Fclose(file);
            const enum status status = trace_open(sample.path, &sample.arena, &image);
            if (depth == 8 && !sealed)
                require(status);
            else
                refuse(status, STATUS_INPUT, depth == 9 ? "groups nest deeper than 8" : "damaged");
            /* eight are refused for what was added to a sealed file, and not for their depth */
            if (depth == 8 && sealed) assert_null(strstr(status_text(), "nest deeper"));
            sample_close(&sample);
        }
}

/* An array that claims more numbers than a file can hold takes no memory. */
static void validate_vast_arrays(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 2);
    require(sample_write(&sample, sample.path, UPDATES));
    const hid_t file = edit(sample.path);
    make_earlier(file);
    put_dataset(file, "vast", H5T_IEEE_F64LE, 2, (hsize_t)1 << 55, 1 << 6);
    put_text(file, "vast", "units", "1");
    put_text(file, "vast", "long_name", "too many");
    H5Fclose(file);
    refuse(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT, "\"vast\" is too large");
    sample_close(&sample);
}

/* ---- traces of other programs ---- */

enum { KIND, WRITER, VERSION, NO_RUN, LONG_RUN, LOSS_GROUP, LOSS_TYPE, LOSS, STEPS, MANY };

static void edit_foreign(hid_t file, int how, hid_t type) {
    char name[220] = "runs/";
    switch (how) {
    case KIND:
        put_text(file, "/", "kind", "other");
        break;
    case WRITER:
        put_text(file, "/", "writer", "a\nb");
        break;
    case VERSION:
        put_text(file, "/", "writer_version", "1\n2");
        break;
    case NO_RUN:
        assert_true(H5Ldelete(file, "runs/main", H5P_DEFAULT) >= 0);
        break;
    case LONG_RUN:
        memset(name + 5, 'r', 201);
        assert_true(H5Lmove(file, "runs/main", file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        break;
    case LOSS_GROUP:
        put_group(file, "runs/main/steps/loss");
        break;
    case LOSS_TYPE:
        assert_true(H5Ldelete(file, "runs/main/steps/loss", H5P_DEFAULT) >= 0);
        type = H5Tcopy(H5T_STD_I8LE);
        assert_true(H5Tcommit2(file, "runs/main/steps/loss", type, H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT) >= 0);
        H5Tclose(type);
        break;
    case LOSS:
        put_dataset(file, "runs/main/steps/loss", type, 1, UPDATES, 1);
        break;
    case STEPS:
        put_dataset(file, "runs/main/steps", H5T_STD_I64LE, 1, UPDATES, 1);
        break;
    default:
        put_dataset(file, "runs/main/steps/group", H5T_STD_I64LE, 1, ((hsize_t)1 << 32) + 1, 1);
    }
}

static hid_t text_type(size_t size) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, size) >= 0);
    return type;
}

static void validate_foreign_objects(void **state) {
    (void)state;
    const hid_t variable = text_type(H5T_VARIABLE), fixed = text_type(5),
                opaque = H5Tcreate(H5T_OPAQUE, 3);
    const struct {
        int how;
        hid_t type;
        const char *said;
    } cases[] = {
        {KIND, 0, "attribute \"kind\": expected \"foreign\", got \"other\""},
        {WRITER, 0, "attribute \"writer\": expected the name of a program"},
        {VERSION, 0, "attribute \"writer_version\": expected a version"},
        {NO_RUN, 0, "runs: expected a group for each run, got an empty group"},
        {LONG_RUN, 0, "expected a name of 1 to 200 printable bytes of UTF-8"},
        {LOSS_GROUP, 0, "runs/main/steps/loss: expected a dataset '<f8', got a group"},
        {LOSS_TYPE, 0, "got a type"},
        {LOSS, H5T_STD_I8LE, "got '|i1' [3]"},
        {LOSS, H5T_STD_U16BE, "got '>u2' [3]"},
        {LOSS, H5T_STD_U32LE, "got '<u4' [3]"},
        {LOSS, H5T_IEEE_F32BE, "got '>f4' [3]"},
        {LOSS, variable, "got str [3]"},
        {LOSS, fixed, "got 'S5' [3]"},
        {LOSS, opaque, "got bytes [3]"},
        {STEPS, 0, "runs/main/steps: expected a group, got a dataset"},
        {MANY, 0, "runs/main/steps/group: expected fewer than 2^32 entries"},
    };
    struct sample sample;
    sample_open(&sample, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct foreign_report report;
        int found = 0;
        sample_write_foreign(sample.path, UPDATES);
        require(foreign_check(sample.path, &sample.arena, &report));
        assert_int_equal(report.problem_count, 0);
        const hid_t file = edit(sample.path);
        edit_foreign(file, cases[i].how, cases[i].type);
        H5Fclose(file);
        require(foreign_check(sample.path, &sample.arena, &report));
        for (uint32_t p = 0; p < report.problem_count; p++)
            found |= strstr(report.problems[p], cases[i].said) != NULL;
        if (!found)
            fail_msg("case %zu: %s, not %s", i,
                     report.problem_count > 0 ? report.problems[0] : "nothing", cases[i].said);
    }
    struct foreign_report report;
    char name[206] = "runs/";
    memset(name + 5, 'r', 200); /* the longest name */
    sample_write_foreign(sample.path, UPDATES);
    const hid_t file = edit(sample.path);
    assert_true(H5Lmove(file, "runs/main", file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    require(foreign_check(sample.path, &sample.arena, &report));
    for (uint32_t p = 0; p < report.problem_count; p++)
        assert_null(strstr(report.problems[p], "expected a name"));
    H5Tclose(opaque);
    H5Tclose(fixed);
    H5Tclose(variable);
    sample_close(&sample);
}

int main(void) {
    H5dont_atexit(); /* as the trace does, but before the HDF5 calls of this file */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_arrays_by_parts), cmocka_unit_test(validate_calls),
        cmocka_unit_test(validate_plans),           cmocka_unit_test(validate_damaged_states),
        cmocka_unit_test(validate_order_of_states), cmocka_unit_test(validate_states_that_are_gone),
        cmocka_unit_test(validate_nesting),         cmocka_unit_test(validate_vast_arrays),
        cmocka_unit_test(validate_foreign_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
