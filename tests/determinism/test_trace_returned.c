/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * What a trace takes it gives back: whoever writes, reads, follows or recovers one file after the
 * other has no more memory, descriptors and objects of HDF5 than before. HDF5 keeps every space,
 * type and list that nobody closes, and says nothing of it. The same in the children that read:
 * there the linker puts a reader that reads several times in front of the one that reads once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <hdf5.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/confined.h"
#include "base/macro.h"
#include "determinism/trace/hdf5_columns.h"
#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

/* Rows of so many tensors are blocks of 64, so that rows are read in three blocks. */
enum { UPDATES = 140, TENSORS = 600, STATE = 5000 };
enum {
    SETTLED = 1,
    REPEATS = 3,
    MOST = 16384,
    MAPPED = 1 << 20
}; /* what HDF5 makes once is there after SETTLED */

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* ---- what is taken ---- */

/* HDF5 tells how many objects a file has open, and nothing of spaces, types and lists, which belong
 * to no file. It numbers the objects of each kind upwards (H5I.c, H5I_register), and says of a
 * number whether it is that of an object. */
static int64_t living(hid_t first, hid_t last) {
    int64_t count = 0;
    for (hid_t id = first; id < last; id++)
        count += H5Iis_valid(id) > 0;
    return count;
}

struct stock {
    hid_t space, type, list; /* the next numbers */
    int64_t descriptors, bytes;
    int64_t mapped; /* bytes of the address space: what children have left, among others */
};

static int64_t mapped_bytes(void) {
    long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0; /* a confined child opens nothing */
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static struct stock take_stock(void) {
    struct stock now = {.space = H5Screate(H5S_SCALAR),
                        .type = H5Tcopy(H5T_C_S1),
                        .list = H5Pcreate(H5P_DATASET_XFER)};
    assert_true(now.space >= 0 && now.type >= 0 && now.list >= 0);
    H5Pclose(now.list);
    H5Tclose(now.type);
    H5Sclose(now.space);
    for (int i = 0; i < 256; i++)
        now.descriptors += fcntl(i, F_GETFD) >= 0;
    H5garbage_collect(); /* what HDF5 keeps for its next objects */
    const struct mallinfo2 info = mallinfo2();
    now.bytes = (int64_t)info.uordblks + (int64_t)info.hblkhd;
    now.mapped = mapped_bytes();
    return now;
}

/* Fails where something that was taken since is still there. Of memory some thousand bytes are, in
 * the lists of malloc and of HDF5; a block of rows is some MiB. */
static enum status compare_stock(const struct stock *before, int64_t most) {
    const struct stock now = take_stock();
    const int64_t spaces = living(before->space, now.space);
    const int64_t types = living(before->type, now.type);
    const int64_t lists = living(before->list, now.list);
    const int64_t bytes = now.bytes - before->bytes, mapped = now.mapped - before->mapped;
    if (spaces == 0 && types == 0 && lists == 0 && now.descriptors == before->descriptors &&
        bytes < most && mapped < MAPPED)
        return STATUS_OK;
    FAIL(STATUS_INTERNAL,
         "kept: %lld spaces, %lld types, %lld lists, %lld descriptors, %lld bytes, %lld mapped",
         (long long)spaces, (long long)types, (long long)lists,
         (long long)(now.descriptors - before->descriptors), (long long)bytes, (long long)mapped);
}

static void validate_the_count(void **state) {
    (void)state;
    for (int which = 0; which < 5; which++) {
        const struct stock before = take_stock();
        const hid_t made = which == 0   ? H5Screate(H5S_SCALAR)
                           : which == 1 ? H5Tcopy(H5T_C_S1)
                           : which == 2 ? H5Pcreate(H5P_FILE_ACCESS)
                                        : -1;
        const int descriptor = which == 3 ? dup(1) : -1;
        char expected[128];
        snprintf(expected, sizeof expected, "kept: %d spaces, %d types, %d lists, %d descriptors",
                 which == 0, which == 1, which == 2, which == 3);
        assert_int_equal(compare_stock(&before, MOST), which < 4 ? STATUS_INTERNAL : STATUS_OK);
        if (which < 4 && strncmp(status_text(), expected, strlen(expected)) != 0)
            fail_msg("%s, expected %s", status_text(), expected);
        if (which == 0) H5Sclose(made);
        if (which == 1) H5Tclose(made);
        if (which == 2) H5Pclose(made);
        if (which == 3) close(descriptor);
        assert_int_equal(compare_stock(&before, MOST), STATUS_OK);
    }
}

/* ---- in the children ---- */

enum status __real_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);
enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);

static enum status (*reading)(const void *asked, struct arena *arena, void *answer);
static int children; /* how many have read so */

/* Each time the answer is made anew in memory of its own, which the last reader shares with the
 * parent. */
static enum status read_again(const void *asked, struct arena *arena, void *answer) {
    struct stock settled = {0};
    for (int i = 0; i < REPEATS; i++) {
        TRY(reading(asked, arena, answer));
        if (i == SETTLED) settled = take_stock();
    }
    return compare_stock(&settled, INT64_MAX); /* a child's memory ends with it */
}

enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena) {
    struct confined again = *confined;
    again.memory = (size_t)1 << 30;
    again.seconds = 60;
    reading = confined->work;
    again.work = read_again;
    children++;
    return __real_confined_run(&again, answer, size, arena);
}

/* ---- what is done with a trace ---- */

static void write_rows(struct sample *sample, struct trace *trace, const unsigned char *state) {
    require(trace_put_snapshot(trace, 0, 0, state));
    require(sample_put(sample, trace, 1, UPDATES / 2));
    require(trace_put_snapshot(trace, 0, UPDATES / 2, state));
    require(sample_put(sample, trace, UPDATES / 2 + 1, UPDATES));
}

static void follow(struct sample *sample, struct trace *trace) {
    struct trace_run run = {.updates = UPDATES, .plan = sample->plan.runs[0]};
    struct trace_pair pair = {.updates = UPDATES};
    struct trace_array array = {.values = NULL};
    require(trace_follow_run(trace, 0, &sample->arena, &run));
    require(trace_follow_pair(trace, 0, &sample->arena, &pair));
    for (uint64_t i = 0; i < UPDATES; i += 13) {
        assert_int_equal(trace_row(&run, i)->step, i + 1);
        assert_int_equal(trace_pair_row(&pair, UPDATES - 1 - i)->step, UPDATES - i);
    }
    require(trace_follow_array(trace, sample->plan.arrays[0].path, &sample->arena, &array));
    for (uint64_t i = 0; i < 6; i++) {
        const double value = (double)i + 0.5;
        require(trace_put_values(trace, sample->plan.arrays[0].path, i, 1, &value));
    }
    for (uint64_t i = 0; i < 6; i++)
        assert_true(trace_value(&array, i) == (double)i + 0.5);
}

static void write_and_follow(struct sample *sample) {
    const unsigned char state[STATE] = {1, 2, 3};
    struct trace *trace;
    require(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    write_rows(sample, trace, state);
    follow(sample, trace);
    require(trace_put_text(trace, sample->plan.texts[0], "text", 4));
    require(trace_finish(trace));
}

static void write_and_recover(struct sample *sample) {
    const unsigned char state[STATE] = {4, 5, 6};
    struct trace *trace;
    long process;
    require(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    write_rows(sample, trace, state);
    trace_abandon(trace);
    assert_int_equal(trace_is_written(sample->part, &process), 0);
    require(trace_recover(sample->part, sample->path, 1));
}

static void read_all(struct sample *sample) {
    struct trace_image *image;
    require(trace_open(sample->path, &sample->arena, &image));
    assert_int_equal(image->runs[0].updates, UPDATES);
    require(trace_open_damaged(sample->path, &sample->arena, &image));
}

static void read_later(struct sample *sample) {
    struct trace_image *image;
    struct trace_states states;
    unsigned char *state;
    require(trace_open_long(sample->path, &sample->arena, &image));
    for (uint64_t i = 0; i < UPDATES; i += 50) {
        assert_int_equal(trace_row(&image->runs[1], i)->step, i + 1);
        assert_int_equal(trace_pair_row(&image->pairs[0], i)->step, i + 1);
    }
    require(trace_check_states(image, &image->runs[0], &states));
    assert_int_equal(states.damaged, 0);
    assert_int_equal(image->runs[0].snapshots, 2);
    require(trace_snapshot_read(sample->path, &image->runs[0], 1, &sample->arena, &state));
    require(trace_rows_status(image));
    trace_close(image);
}

/* A trace that another trainer writes. */
static void write_foreign(struct sample *sample) {
    struct trace_image *image;
    sample_write_foreign(sample->path, 3);
    require(trace_open(sample->path, &sample->arena, &image));
    assert_int_equal(image->runs[0].updates, 3);
}

/* What h5py leaves: texts of variable length, attributes of numbers, lists of names. */
static void put_texts(hid_t where, const char *name, const char *const *texts, hsize_t count) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
    if (count == 0) {
        const hid_t space = H5Screate(H5S_SCALAR);
        const hid_t made = H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0 && H5Awrite(made, type, texts) >= 0);
        H5Aclose(made);
        H5Sclose(space);
    } else {
        const hid_t space = H5Screate_simple(1, &count, NULL);
        const hid_t made =
            H5Dcreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0 && H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0);
        H5Dclose(made);
        H5Sclose(space);
    }
    H5Tclose(type);
}

static void put_numbers(hid_t where, const char *name, hid_t type, const void *numbers, int rank,
                        const hsize_t *shape) {
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, shape, NULL);
    const hid_t made =
        rank == 0 ? H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT)
                  : H5Dcreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0);
    if (rank == 0) {
        assert_true(H5Awrite(made, type, numbers) >= 0);
        H5Aclose(made);
    } else {
        assert_true(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        H5Dclose(made);
    }
    H5Sclose(space);
}

static void put_scalar(hid_t where, const char *name, int64_t number) {
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t made =
        H5Dcreate2(where, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0 &&
                H5Dwrite(made, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &number) >= 0);
    H5Dclose(made);
    H5Sclose(space);
}

/* The columns of docs/FOREIGN.md with the fewest that a reader takes. */
static void write_as_h5py(struct sample *sample) {
    static const char *const names[] = {"embed", "layer.0.mlp.weight", "head"};
    static const char *const writer[] = {"a recorder"}, *const none[] = {""};
    const int64_t version = TRACE_VERSION_FOREIGN, one = 1, steps[4] = {1, 2, 3, 4};
    const double losses[4] = {4, 3, 2, 1}, norms[4][3] = {{1, 2, 3}};
    const hsize_t rows[2] = {4, 3};
    hsize_t extent[2] = {4, 3};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    struct trace_image *image;
    assert_true(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    const hid_t file = H5Fcreate(sample->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t runs = H5Gcreate2(file, "runs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t run = H5Gcreate2(runs, "main", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t steps_of = H5Gcreate2(run, "steps", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t tensors = H5Gcreate2(steps_of, "tensors", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0 && runs >= 0 && run >= 0 && steps_of >= 0 && tensors >= 0);
    put_numbers(file, "twinstep_trace", H5T_STD_I64LE, &version, 0, NULL);
    put_texts(file, "kind", (const char *const[]){"foreign"}, 0);
    put_texts(file, "writer", writer, 0);
    put_texts(file, "writer_version", none, 0);
    put_numbers(run, "rank", H5T_STD_I64LE, &(int64_t){0}, 0, NULL);
    put_numbers(run, "world", H5T_STD_I64LE, &one, 0, NULL);
    put_texts(run, "digest", (const char *const[]){"keyed 1"}, 0);
    put_texts(run, "configuration", (const char *const[]){"lr: 0.5\n"}, 0);
    put_texts(run, "note", (const char *const[]){"a note"}, 0);
    put_numbers(steps_of, "group", H5T_STD_I64LE, steps, 1, &(hsize_t){1});
    put_numbers(steps_of, "lr_applied", H5T_IEEE_F64LE, losses, 2, (const hsize_t[]){4, 1});
    put_texts(tensors, "dtype", (const char *const[]){"f32", "f32", "f32"}, 3);
    put_texts(tensors, "shape", (const char *const[]){"1,2", "3", ""}, 3);
    put_numbers(tensors, "group", H5T_STD_U32LE, (const uint32_t[]){0, 0, 0}, 1, &(hsize_t){3});
    put_scalar(file, "complete", 1);
    put_numbers(steps_of, "step", H5T_STD_I64LE, steps, 1, extent);
    put_numbers(steps_of, "loss", H5T_IEEE_F64LE, losses, 1, extent);
    put_texts(tensors, "tensor", names, COUNT_OF(names));
    put_numbers(tensors, "grad_norm", H5T_IEEE_F64LE, norms, 2, rows);
    H5Gclose(tensors);
    H5Gclose(steps_of);
    H5Gclose(run);
    H5Gclose(runs);
    H5Fclose(file);
    H5Pclose(access);
    require(trace_open(sample->path, &sample->arena, &image));
    assert_int_equal(image->runs[0].updates, 4);
    assert_string_equal(image->runs[0].plan.tensors[1], names[1]);
    assert_string_equal(image->writer, "a recorder");
}

static void read_columns(struct sample *sample) {
    const double numbers[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const hsize_t shape[2] = {2, 3};
    struct hdf5_column *columns;
    uint32_t count;
    double read[3];
    const hid_t file = H5Fcreate(sample->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put_numbers(file, "a", H5T_IEEE_F64LE, numbers, 2, shape);
    put_numbers(file, "b", H5T_IEEE_F64LE, numbers, 1, shape);
    H5Fclose(file);
    require(hdf5_columns_open(sample->path, &sample->arena, &count, &columns));
    assert_int_equal(count, 2);
    require(hdf5_column_read(&columns[0], 3, 3, read));
    assert_true(read[2] == 6.0);
    require(hdf5_column_read(&columns[1], 1, 1, read));
    assert_true(read[0] == 2.0);
    hdf5_columns_close(columns);
}

/* ---- so often ---- */

static void write_and_read(struct sample *sample) {
    write_and_follow(sample);
    read_all(sample);
    read_later(sample);
}

static void recover_and_read(struct sample *sample) {
    write_and_recover(sample);
    read_all(sample);
}

static const struct task {
    const char *name;
    void (*work)(struct sample *sample);
    int readers; /* children that it starts, or more */
} tasks[] = {
    {"write, follow and read", write_and_read, 7},
    {"recover", recover_and_read, 3},
    {"a recorder's trace", write_foreign, 1},
    {"a trace that h5py could have written", write_as_h5py, 1},
    {"columns of a file", read_columns, 0},
};

static void verify_all_is_given_back(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        const size_t repeats = helper_size(2, REPEATS, REPEATS);
        struct stock settled = {0};
        children = 0;
        for (size_t i = 0; i < repeats; i++) {
            struct sample sample;
            sample_open(&sample, TENSORS);
            struct trace_run_plan runs[SAMPLE_RUNS];
            memcpy(runs, sample.plan.runs, sizeof runs);
            runs[0].snapshots =
                (struct trace_snapshot_plan){.bytes = STATE, .every = UPDATES / 2, .format = 1};
            sample.plan.runs = runs;
            sample.plan.overwrite = 1;
            tasks[t].work(&sample);
            sample_close(&sample);
            if (i == SETTLED) settled = take_stock();
        }
        if (children < tasks[t].readers * (int)repeats)
            fail_msg("%s: %d readers", tasks[t].name, children);
        if (repeats == REPEATS && compare_stock(&settled, MOST) != STATUS_OK)
            fail_msg("%s: %s", tasks[t].name, status_text());
    }
}

int main(void) {
    H5dont_atexit(); /* as the trace does, but before the HDF5 calls of this file */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_the_count),
                                       cmocka_unit_test(verify_all_is_given_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
