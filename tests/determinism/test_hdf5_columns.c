/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Datasets of numbers in HDF5 files that the library itself wrote here: which of them are columns,
 * with which name and shape, and what every piece of them holds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "determinism/trace/hdf5_columns.h"

#define NAME63 "n23456789012345678901234567890123456789012345678901234567890123"
#define VAST (((hsize_t)1 << 44) - 1)

static char path[512];

static hid_t create(void) {
    const char *const folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/twinstep-columns-%ld.h5", folder == NULL ? "/tmp" : folder,
             (long)getpid());
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* Writes 10, 11, 12, ... as numbers of a type; a length of 0 ends the shape. */
static void put(hid_t file, const char *name, hid_t type, const hsize_t *shape, int rank) {
    double values[24];
    for (int i = 0; i < 24; i++)
        values[i] = 10.0 + i;
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, shape, NULL);
    const hid_t dataset =
        H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0);
    if (H5Tget_class(type) != H5T_STRING)
        assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >=
                    0);
    H5Dclose(dataset);
    H5Sclose(space);
}

/* A dataset of so many numbers, none of which is stored. */
static void put_unstored(hid_t file, const char *name, hsize_t count) {
    const hsize_t chunk = 64;
    const hid_t made = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &count, NULL);
    assert_true(H5Pset_chunk(made, 1, &chunk) >= 0);
    const hid_t dataset =
        H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(made);
}

static void write_file(void) {
    static const hsize_t shape[4] = {2, 3, 4, 1}, five = 5;
    const hid_t file = create();
    put(file, "scalar", H5T_STD_I32BE, NULL, 0);
    put(file, "line", H5T_IEEE_F32LE, &five, 1);
    put(file, "matrix", H5T_IEEE_F64LE, (const hsize_t[]){4, 3}, 2);
    put(file, "cube", H5T_STD_I64LE, shape, 3);
    put(file, NAME63, H5T_STD_U8LE, &five, 1);
    put(file, NAME63 "4", H5T_STD_U8LE, &five, 1);
    put(file, "four axes", H5T_IEEE_F64LE, shape, 4);
    put(file, "text", H5T_C_S1, &five, 1);
    put_unstored(file, "vast", VAST);
    put_unstored(file, "too vast", VAST + 1);
    H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Lcreate_soft("/line", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external("x.h5", "/line", file, "out", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

static void validate_columns(void **state) {
    (void)state;
    static const struct hdf5_column columns[] = {
        {.name = "cube", .rank = 3, .shape = {2, 3, 4}},
        {.name = "line", .rank = 1, .shape = {5}},
        {.name = "matrix", .rank = 2, .shape = {4, 3}},
        {.name = NAME63, .rank = 1, .shape = {5}},
        {.name = "scalar", .rank = 0},
        {.name = "vast", .rank = 1, .shape = {VAST}},
    };
    struct arena arena = ARENA_EMPTY;
    struct hdf5_column *found;
    uint32_t count;
    write_file();
    assert_int_equal(hdf5_columns_open(path, &arena, &count, &found), STATUS_OK);
    assert_int_equal(count, COUNT_OF(columns));
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(found[i].name, columns[i].name);
        assert_string_equal(found[i].path, path);
        assert_int_equal(found[i].rank, columns[i].rank);
        for (uint32_t axis = 0; axis < found[i].rank; axis++)
            assert_true(found[i].shape[axis] == columns[i].shape[axis]);
    }
    hdf5_columns_close(found);
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    arena_close(&arena);
    unlink(path);
}

/* Element k of each dataset is 10 + k. */
static void validate_pieces(void **state) {
    (void)state;
    static const struct {
        uint32_t column;
        uint64_t first, count;
    } pieces[] = {
        {4, 0, 1}, {1, 0, 5}, {1, 3, 2},  {1, 4, 1},  {2, 0, 12}, {2, 3, 6},   {2, 9, 3},
        {2, 3, 1}, {2, 4, 2}, {2, 11, 1}, {2, 6, 2},  {0, 0, 24}, {0, 12, 12}, {0, 0, 12},
        {0, 0, 4}, {0, 4, 8}, {0, 16, 8}, {0, 20, 4}, {3, 0, 5},  {3, 2, 2},
    };
    struct arena arena = ARENA_EMPTY;
    struct hdf5_column *found;
    uint32_t count;
    write_file();
    assert_int_equal(hdf5_columns_open(path, &arena, &count, &found), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        double values[25] = {0};
        const uint64_t length = pieces[i].count;
        assert_int_equal(
            hdf5_column_read(&found[pieces[i].column], pieces[i].first, length, values), STATUS_OK);
        for (uint64_t k = 0; k < length; k++)
            if (values[k] != 10.0 + (double)(pieces[i].first + k))
                fail_msg("%s from %d on, element %d: got %g", found[pieces[i].column].name,
                         (int)pieces[i].first, (int)k, values[k]);
        assert_true(values[length] == 0.0);
    }
    double none = 1.0;
    assert_int_equal(hdf5_column_read(&found[1], 2, 0, &none), STATUS_OK);
    assert_true(none == 1.0);
    /* behind the end */
    assert_int_equal(hdf5_column_read(&found[1], 5, 1, &none), STATUS_IO);
    char text[600];
    snprintf(text, sizeof text, "%s: cannot read line", path);
    if (strncmp(status_text(), text, strlen(text)) != 0) fail_msg("%s", status_text());
    hdf5_columns_close(found);
    arena_close(&arena);
    unlink(path);
}

static void validate_refusals(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct hdf5_column *found;
    uint32_t count;
    char text[600];
    H5Fclose(create());
    assert_int_equal(hdf5_columns_open(path, &arena, &count, &found), STATUS_INPUT);
    snprintf(text, sizeof text, "%s: expected datasets of numbers in the root group, got none",
             path);
    assert_string_equal(status_text(), text);
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    fputs("no HDF5", file);
    fclose(file);
    assert_int_equal(hdf5_columns_open(path, &arena, &count, &found), STATUS_INPUT);
    snprintf(text, sizeof text, "%s: cannot open as HDF5", path);
    if (strncmp(status_text(), text, strlen(text)) != 0) fail_msg("%s", status_text());
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    unlink(path);
    assert_int_equal(hdf5_columns_open(path, &arena, &count, &found), STATUS_IO);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_columns),
        cmocka_unit_test(validate_pieces),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
