/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * The reader of traces, of whose calls of HDF5 one fails at a time: it refuses the file, or what it
 * says is what a reader says whose calls all succeed. The linker puts the failure in front of the
 * library; calls are counted in memory that the reading child shares. The same of numbers and rows
 * that a writer reads again, and of file systems that have no locks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define UPDATES 3

enum call {
    CALL_NONE,
    CALL_READ,
    CALL_ATTRIBUTE_READ,
    CALL_ATTRIBUTE_OPEN,
    CALL_DATASET_OPEN,
    CALL_GROUP_OPEN,
    CALL_OBJECT_OPEN,
    CALL_TYPE,
    CALL_SPACE,
    CALL_ATTRIBUTE_TYPE,
    CALL_ATTRIBUTE_SPACE,
    CALL_LINK_NAME,
    CALL_SELECT,
    CALL_COUNT
};

static struct shared { int kind, number, calls, is_met; } * shared;

static int fails(int kind) {
    if (shared == NULL || kind != shared->kind || ++shared->calls != shared->number) return 0;
    shared->is_met = 1;
    return 1;
}

#define WRAP(type, name, kind, parameters, arguments)                                              \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fails(kind) ? (type)-1 : __real_##name arguments;                                   \
    }
WRAP(herr_t, H5Dread, CALL_READ, (hid_t d, hid_t t, hid_t m, hid_t f, hid_t l, void *out),
     (d, t, m, f, l, out))
WRAP(herr_t, H5Aread, CALL_ATTRIBUTE_READ, (hid_t a, hid_t t, void *out), (a, t, out))
WRAP(hid_t, H5Aopen, CALL_ATTRIBUTE_OPEN, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Dopen2, CALL_DATASET_OPEN, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Gopen2, CALL_GROUP_OPEN, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Oopen, CALL_OBJECT_OPEN, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Dget_type, CALL_TYPE, (hid_t d), (d))
WRAP(hid_t, H5Dget_space, CALL_SPACE, (hid_t d), (d))
WRAP(hid_t, H5Aget_type, CALL_ATTRIBUTE_TYPE, (hid_t a), (a))
WRAP(hid_t, H5Aget_space, CALL_ATTRIBUTE_SPACE, (hid_t a), (a))
WRAP(ssize_t, H5Lget_name_by_idx, CALL_LINK_NAME,
     (hid_t o, const char *g, H5_index_t i, H5_iter_order_t r, hsize_t n, char *out, size_t room,
      hid_t l),
     (o, g, i, r, n, out, room, l))
WRAP(herr_t, H5Sselect_hyperslab, CALL_SELECT,
     (hid_t s, H5S_seloper_t o, const hsize_t *start, const hsize_t *stride, const hsize_t *count,
      const hsize_t *block),
     (s, o, start, stride, count, block))

/* ---- a trace of another program ---- */

static const char *const names[] = {"weight", "bias"};

static void put_text(hid_t where, const char *name, const char *text) {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute = H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, &text) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static void put(hid_t where, const char *name, hid_t type, hid_t memory, int rank,
                const void *values) {
    const hsize_t two = 2;
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &two, NULL);
    const hid_t dataset =
        H5Dcreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void write_foreign(const char *path) {
    static const char *const dtypes[] = {"f32", "bf16"}, *const shapes[] = {"2,3", "3"};
    static const int64_t version = 2, complete = 1, steps[] = {1, 2};
    static const double loss[] = {1.5, 1.25};
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    assert_true(H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute =
        H5Acreate2(file, "twinstep_trace", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    put_text(file, "kind", "foreign");
    put_text(file, "writer", "made up");
    put(file, "complete", H5T_STD_I64LE, H5T_NATIVE_INT64, 0, &complete);
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    assert_true(H5Pset_create_intermediate_group(parents, 1) >= 0);
    const hid_t tensors =
        H5Gcreate2(file, "runs/main/steps/tensors", parents, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t run = H5Gopen2(file, "runs/main", H5P_DEFAULT);
    put_text(run, "configuration", "lr: 0.1\n");
    put(run, "steps/step", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, steps);
    put(run, "steps/loss", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, loss);
    put(tensors, "tensor", text, text, 1, names);
    put(tensors, "dtype", text, text, 1, dtypes);
    put(tensors, "shape", text, text, 1, shapes);
    H5Gclose(run);
    H5Gclose(tensors);
    H5Pclose(parents);
    H5Tclose(text);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(list);
}

static int foreign_differences(const struct trace_image *image) {
    if (image->run_count != 1 || image->runs[0].updates != 2) return 1;
    const struct trace_run *const run = &image->runs[0];
    if (run->plan.shape.tensors != 2 || strcmp(run->plan.configuration, "lr: 0.1\n") != 0) return 1;
    for (int i = 0; i < 2; i++)
        if (strcmp(run->plan.tensors[i], names[i]) != 0) return 1;
    return strcmp(image->writer, "made up") != 0 || trace_row(run, 0)->reals[REAL_LOSS] != 1.5 ||
           trace_row(run, 1)->reals[REAL_LOSS] != 1.25 || trace_row(run, 1)->step != 2;
}

/* ---- failures ---- */

struct file {
    struct sample sample;
    int foreign;
};

/* Reads with the call of that number failing, or none (0); returns how many there were. */
static int read_with_failure(struct file *file, int kind, int number) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    *shared = (struct shared){.kind = kind, .number = number};
    const enum status status = trace_open(file->sample.path, &arena, &image);
    const int calls = shared->calls, is_met = shared->is_met;
    shared->kind = CALL_NONE;
    assert_int_equal(is_met, number > 0);
    if (status == STATUS_OK) {
        const int differences = file->foreign
                                    ? foreign_differences(image)
                                    : sample_differences(&file->sample, image, UPDATES, 1);
        if (differences != 0)
            fail_msg("call %d of kind %d failed, and something else was read", number, kind);
    } else if (number == 0 || status_text()[0] == '\0' || status == STATUS_INTERNAL) {
        fail_msg("call %d of kind %d: %d: %s", number, kind, status, status_text());
    } else if (file->foreign && kind == CALL_READ) {
        /* What cannot be read is no number of the file: nothing is said of its numbers. */
        if (strstr(status_text(), "cannot read") == NULL)
            fail_msg("call %d: %s", number, status_text());
    }
    arena_close(&arena);
    return calls;
}

/* The first two failures of a kind and a few of the rest; nightly all. */
static void verify_every_kind(struct file *file, int most) {
    int kinds = 0;
    for (int kind = CALL_NONE + 1; kind < CALL_COUNT; kind++) {
        const int calls = read_with_failure(file, kind, 0);
        const int step = calls > most ? calls / most : 1;
        kinds += calls > 0;
        for (int number = 1; number <= calls; number += number < 2 ? 1 : step)
            (void)read_with_failure(file, kind, number);
    }
    assert_true(kinds >= 11);
}

static void verify_own(void **state) {
    (void)state;
    struct file file = {.foreign = 0};
    sample_open(&file.sample, 2);
    assert_int_equal(sample_write(&file.sample, file.sample.path, UPDATES), STATUS_OK);
    verify_every_kind(&file, (int)helper_size(1, 2, 1000));
    sample_close(&file.sample);
}

static void verify_foreign(void **state) {
    (void)state;
    struct file file = {.foreign = 1};
    sample_open(&file.sample, 2);
    write_foreign(file.sample.path);
    verify_every_kind(&file, (int)helper_size(2, 6, 1000));
    sample_close(&file.sample);
}

/* ---- what a writer reads again ---- */

/* How many calls of each kind one value of an array takes, of which each fails once: the value is
 * NaN, and so is each that is asked for after it, be it readable or not. */
static void verify_followed_arrays(void **state) {
    (void)state;
    static const int kinds[] = {CALL_READ, CALL_SPACE, CALL_SELECT};
    const double values[3] = {1.5, 2.5, 3.5};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct sample sample;
        struct trace *trace;
        struct trace_array array = {.values = NULL};
        struct trace_image image = {.array_count = 1, .arrays = &array};
        sample_open(&sample, 2);
        const char *const path = sample.plan.arrays[0].path; /* (2, 3) */
        assert_int_equal(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_OK);
        assert_int_equal(trace_put_values(trace, path, 3, 3, values), STATUS_OK);
        assert_int_equal(trace_follow_array(trace, path, &sample.arena, &array), STATUS_OK);
        assert_true(trace_value(&array, 4) == 2.5);
        *shared = (struct shared){.kind = kinds[k], .number = 1};
        assert_true(isnan(trace_value(&array, 0)));
        assert_int_equal(shared->calls, 1);
        shared->kind = CALL_NONE;
        assert_true(isnan(trace_value(&array, 4)));
        assert_int_equal(trace_rows_status(&image), STATUS_IO);
        assert_non_null(strstr(status_text(), "read"));
        assert_non_null(strstr(status_text(), path));
        trace_abandon(trace);
        sample_close(&sample);
    }
}

/* Numbers of an array that cannot be written are told, and nothing is written after them. */
static void verify_failing_values(void **state) {
    (void)state;
    static const int kinds[] = {CALL_SPACE, CALL_SELECT};
    const double values[3] = {1.5, 2.5, 3.5};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct sample sample;
        struct trace *trace;
        sample_open(&sample, 2);
        const char *const path = sample.plan.arrays[0].path;
        assert_int_equal(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_OK);
        *shared = (struct shared){.kind = kinds[k], .number = 1};
        assert_int_equal(trace_put_values(trace, path, 3, 3, values), STATUS_IO);
        assert_non_null(strstr(status_text(), "write"));
        shared->kind = CALL_NONE;
        assert_int_equal(trace_put_values(trace, path, 3, 3, values), STATUS_IO);
        assert_non_null(strstr(status_text(), "a write failed before; nothing more is written"));
        trace_abandon(trace);
        sample_close(&sample);
    }
}

/* A row that cannot be read is one without measurements, and the failure is told; calls are let
 * fail one after the other, until the row is read with all of them. */
static void verify_followed_rows(void **state) {
    (void)state;
    static const int kinds[] = {CALL_READ, CALL_SPACE, CALL_SELECT};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int number = 1;; number += number < 3 ? 1 : 7) {
            struct sample sample;
            struct trace *trace;
            struct trace_run run = {.updates = UPDATES};
            struct trace_image image = {.run_count = 1, .runs = &run};
            sample_open(&sample, 2);
            run.plan = sample.plan.runs[0];
            assert_int_equal(trace_create(sample.path, &sample.plan, &sample.arena, &trace),
                             STATUS_OK);
            assert_int_equal(sample_put(&sample, trace, 1, UPDATES), STATUS_OK);
            assert_int_equal(trace_follow_run(trace, 0, &sample.arena, &run), STATUS_OK);
            *shared = (struct shared){.kind = kinds[k], .number = number};
            const uint64_t step = trace_row(&run, 1)->step;
            const int is_met = shared->is_met;
            shared->kind = CALL_NONE;
            assert_int_equal(step, is_met ? 0 : 2);
            assert_int_equal(trace_rows_status(&image) == STATUS_OK, !is_met);
            trace_abandon(trace);
            sample_close(&sample);
            assert_true(is_met || number > 3);
            if (!is_met) break;
        }
}

/* ---- locks ---- */

static int lock_reason; /* an error of every lock; 0: each is got */

/* HDF5 calls this one and no other, since a program's own functions come first. */
int flock(int handle, int operation) {
    (void)handle;
    (void)operation;
    errno = lock_reason;
    return lock_reason == 0 ? 0 : -1;
}

/* Where a file system says that it has no locks, a trace is read without; another failure of a lock
 * is one of the file. */
static void verify_without_locks(void **state) {
    (void)state;
    static const struct {
        int reason, is_read;
    } cases[] = {{0, 1}, {ENOLCK, 1}, {EOPNOTSUPP, 1}, {524, 1}, {EIO, 0}, {EPERM, 0}};
    struct sample sample;
    *shared = (struct shared){.kind = CALL_NONE};
    sample_open(&sample, 1);
    assert_int_equal(sample_write(&sample, sample.path, UPDATES), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        lock_reason = cases[i].reason;
        const enum status status = trace_open(sample.path, &arena, &image);
        lock_reason = 0;
        assert_int_equal(status, cases[i].is_read ? STATUS_OK : STATUS_INPUT);
        if (cases[i].is_read)
            assert_int_equal(sample_differences(&sample, image, UPDATES, 1), 0);
        else
            assert_non_null(strstr(status_text(), "read as HDF5"));
        arena_close(&arena);
    }
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_own),
        cmocka_unit_test(verify_foreign),
        cmocka_unit_test(verify_followed_arrays),
        cmocka_unit_test(verify_failing_values),
        cmocka_unit_test(verify_followed_rows),
        cmocka_unit_test(verify_without_locks),
    };
    FILE *const file = tmpfile(); /* POSIX of 2008 shares no memory that is no file's */
    if (file == NULL || ftruncate(fileno(file), sizeof *shared) != 0) return 1;
    void *const memory =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (memory == MAP_FAILED) return 1;
    shared = (struct shared *)memory;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
