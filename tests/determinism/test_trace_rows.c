/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Rows that are read when they are asked for, of a file and of a trace that is being written: they
 * are those that were put, in any order, and one that cannot be read is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "determinism/trace/hdf5_writer.h"
#include "tests/determinism/helper_trace.h"

/* Rows of so many tensors are blocks of 64, the fewest that a block has: two blocks are less than
 * all updates. */
enum { UPDATES = 140, TENSORS = 600 };

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void corroborate_open_long(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *whole, *rows;
    sample_open(&sample, TENSORS);
    require(sample_write(&sample, sample.path, UPDATES));
    require(trace_open(sample.path, &sample.arena, &whole));
    require(trace_open_long(sample.path, &sample.arena, &rows));
    assert_null(rows->runs[0].records);
    assert_null(rows->pairs[0].records);
    assert_int_equal(sample_differences(&sample, whole, UPDATES, 1), 0);
    assert_int_equal(sample_differences(&sample, rows, UPDATES, 1), 0);
    /* two rows of a run at once, far from each other, and backwards */
    for (uint64_t i = UPDATES; i-- > 0;) {
        const struct record *a = trace_row(&rows->runs[0], i);
        const struct record *b = trace_row(&rows->runs[0], (i * 7) % UPDATES);
        assert_int_equal(a->step, i + 1);
        assert_int_equal(b->step, (i * 7) % UPDATES + 1);
        assert_memory_equal(a->digests, whole->runs[0].records[i].digests, sizeof a->digests);
        assert_memory_equal(b->digests, whole->runs[0].records[(i * 7) % UPDATES].digests,
                            sizeof b->digests);
    }
    require(trace_rows_status(rows));
    trace_close(rows);
    sample_close(&sample);
}

static void verify_rows_of_a_live_trace(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image image = {.run_count = 1};
    struct trace_run run = {.updates = 0};
    sample_open(&sample, TENSORS);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    run.plan = sample.plan.runs[0];
    image.runs = &run;
    require(trace_follow_run(trace, 0, &sample.arena, &run));
    for (uint64_t step = 1; step <= UPDATES; step++) {
        require(sample_put(&sample, trace, step, step));
        /* the last row, and one of an earlier block */
        const struct record *last = trace_row(&run, step - 1), *first = trace_row(&run, step / 2);
        assert_int_equal(last->step, step);
        assert_int_equal(first->step, step / 2 + 1);
        assert_memory_equal(last->digests, sample_record(&sample, 0, step)->digests,
                            sizeof last->digests);
    }
    require(trace_rows_status(&image));
    require(sample_put_late(&sample, trace));
    require(trace_finish(trace));
    require(trace_rows_status(&image));
    assert_true(isnan(trace_row(&run, 0)->reals[REAL_LOSS]));
    assert_int_equal(trace_rows_status(&image), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "once it is closed"));
    sample_close(&sample);
}

/* Finds one stored loss in the file, and flips a bit of it there. The time of writing is put back,
 * as damage by a disk would leave it. */
static void damage(struct sample *sample, uint64_t step) {
    size_t length;
    const char *const bytes = sample_bytes(&sample->arena, sample->path, &length);
    const struct record *const record = sample_record(sample, 0, step);
    const double loss = record->reals[REAL_PARAM_NORM];
    for (size_t at = 0; at + sizeof loss <= length; at += 8) {
        if (memcmp(bytes + at, &loss, sizeof loss) != 0) continue;
        const char flipped = (char)(bytes[at] ^ 1);
        const int file = open(sample->path, O_WRONLY | O_CLOEXEC);
        struct stat info;
        assert_true(file >= 0);
        assert_int_equal(fstat(file, &info), 0);
        const struct timespec times[2] = {info.st_atim, info.st_mtim};
        assert_int_equal(pwrite(file, &flipped, 1, (off_t)at), 1);
        assert_int_equal(futimens(file, times), 0);
        assert_int_equal(close(file), 0);
        return;
    }
    fail_msg("the value is not in the file");
}

static void verify_damage_is_told(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, TENSORS);
    require(sample_write(&sample, sample.path, UPDATES));
    require(trace_open_long(sample.path, &sample.arena, &image));
    assert_int_equal(trace_row(&image->runs[0], 0)->step, 1);
    damage(&sample, UPDATES); /* once it was opened and held against its checks */
    assert_int_equal(trace_row(&image->runs[0], UPDATES - 1)->step, 0);
    assert_true(isnan(trace_row(&image->runs[0], UPDATES - 1)->reals[REAL_LOSS]));
    assert_int_equal(trace_row(&image->runs[0], 0)->step, 1); /* that block is still there */
    assert_int_equal(trace_rows_status(image), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "the columns of update 140 do not match its check"));
    trace_close(image);
    assert_int_equal(trace_open_long(sample.path, &sample.arena, &image), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "the columns of update 140 do not match its check"));
    sample_close(&sample);
}

/* Asks for a row of a block that was not read yet; fails unless it is refused with that text. */
static void require_refusal(struct trace_image *image, const char *text) {
    assert_int_equal(trace_rows_status(image), STATUS_OK);
    assert_int_equal(trace_row(&image->runs[0], UPDATES - 1)->step, 0);
    assert_int_equal(trace_rows_status(image), STATUS_INPUT);
    if (strstr(status_text(), text) == NULL) fail_msg("%s", status_text());
    trace_close(image);
}

static struct trace_image *open_first_block(struct sample *sample, const char *path) {
    struct trace_image *image;
    require(trace_open_long(path, &sample->arena, &image));
    assert_int_equal(trace_row(&image->runs[0], 0)->step, 1);
    return image;
}

/* Another file by the name of the one that was opened, even one of the same updates, gives no row;
 * nor does a finished one that was written to, or one that is gone. */
static void verify_another_file_is_refused(void **state) {
    (void)state;
    static const char text[] = "was removed, replaced or changed while it was read";
    struct sample sample;
    struct trace_image *image;
    char other[256];
    sample_open(&sample, TENSORS);
    snprintf(other, sizeof other, "%s/other.h5", sample.folder);
    require(sample_write(&sample, sample.path, UPDATES));
    require(sample_write(&sample, other, UPDATES));

    image = open_first_block(&sample, sample.path);
    assert_int_equal(rename(other, sample.path), 0);
    require_refusal(image, text);

    image = open_first_block(&sample, sample.path);
    assert_int_equal(utimensat(AT_FDCWD, sample.path, NULL, 0), 0);
    require_refusal(image, text);

    image = open_first_block(&sample, sample.path);
    assert_int_equal(unlink(sample.path), 0);
    require_refusal(image, text);
    sample_close(&sample);
}

/* A run that ends while its file is read gives it another name. */
static void verify_the_final_name_is_found(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    sample_open(&sample, TENSORS);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, UPDATES));
    trace_abandon(trace);
    image = open_first_block(&sample, sample.part);
    assert_int_equal(rename(sample.part, sample.path), 0);
    assert_int_equal(trace_row(&image->runs[0], UPDATES - 1)->step, UPDATES);
    assert_int_equal(trace_pair_row(&image->pairs[0], UPDATES - 1)->step, UPDATES);
    require(trace_rows_status(image));
    trace_close(image);
    assert_int_equal(trace_row(&image->runs[0], 0)->step, 0);
    assert_int_equal(trace_rows_status(image), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "once it is closed"));
    sample_close(&sample);
}

/* ---- rows that columns have ahead of `step` ---- */

static uint64_t rows_of(hid_t file, const char *group, const char *column) {
    char path[256];
    hsize_t extent[HDF5_MAX_RANK];
    snprintf(path, sizeof path, "%s/steps/%s", group, column);
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0) fail_msg("%s: not there", path);
    const hid_t space = H5Dget_space(dataset);
    assert_true(H5Sget_simple_extent_dims(space, extent, NULL) > 0);
    H5Sclose(space);
    H5Dclose(dataset);
    return extent[0];
}

static void require_rows(const char *path, const char *group, const struct layout *layout,
                         uint64_t rows) {
    char name[LAYOUT_NAME];
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_int_equal(rows_of(file, group, "step"), rows);
    assert_int_equal(rows_of(file, group, "check"), rows);
    for (uint32_t c = 0; c < layout->count; c++) {
        layout_name(&layout->columns[c], name);
        if (rows_of(file, group, name) != rows) fail_msg("%s of %s", name, group);
    }
    H5Fclose(file);
}

/* The arms and the pair have that many updates, the rerun every second one. */
static void require_all_rows(const struct sample *sample, const char *path, uint64_t updates) {
    static const char *const groups[] = {"runs/baseline", "runs/test", "runs/floor-rerun"};
    struct layout layout;
    for (uint32_t i = 0; i < COUNT_OF(groups); i++) {
        layout_init_run(&layout, &sample->plan.runs[i].shape, 0);
        require_rows(path, groups[i], &layout, i < 2 ? updates : (updates + 1) / 2);
    }
    layout_init_pair(&layout);
    require_rows(path, "pairs/baseline-test", &layout, updates);
}

/* However many updates were planned, a file that was closed has columns of the length of `step`. */
static void verify_columns_end_with_step(void **state) {
    (void)state;
    static const struct {
        uint64_t updates, planned;
    } cases[] = {{3, 0}, {3, 3}, {3, 100}, {64, 64}, {70, 100}, {70, 69}, {130, 64}, {0, 5}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sample sample;
        struct trace_image *image;
        struct trace *trace;
        sample_open(&sample, 3);
        sample.plan.updates = cases[i].planned;
        require(sample_write(&sample, sample.path, cases[i].updates));
        require_all_rows(&sample, sample.path, cases[i].updates);
        require(trace_open(sample.path, &sample.arena, &image));
        assert_int_equal(sample_differences(&sample, image, cases[i].updates, 1), 0);
        assert_int_equal(unlink(sample.path), 0);
        require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
        require(sample_put(&sample, trace, 1, cases[i].updates));
        trace_abandon(trace);
        require_all_rows(&sample, sample.part, cases[i].updates);
        require(trace_open(sample.part, &sample.arena, &image));
        assert_int_equal(sample_differences(&sample, image, cases[i].updates, 0), 0);
        sample_close(&sample);
    }
}

static uint64_t chunk_rows(hid_t file, const char *column) {
    char path[256];
    hsize_t chunk[3];
    snprintf(path, sizeof path, "runs/baseline/steps/%s", column);
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0) fail_msg("%s: not there", path);
    const hid_t plan = H5Dget_create_plist(dataset);
    assert_true(H5Pget_chunk(plan, 3, chunk) > 0);
    H5Pclose(plan);
    H5Dclose(dataset);
    return chunk[0];
}

/* The more updates are planned, the more rows has a chunk, so that few have to be remembered; a
 * file of few updates does not become larger by it. Rows that were written are read alike. */
static void verify_chunks_of_long_plans(void **state) {
    (void)state;
    static const struct {
        uint64_t planned, rows;
    } cases[] = {{0, 64}, {4096, 64}, {4097, 128}, {8193, 256}, {16385, 512}, {1000000, 512}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sample sample;
        struct trace_image *image;
        struct trace *trace;
        sample_open(&sample, 3);
        sample.plan.updates = cases[i].planned;
        require(sample_write(&sample, sample.path, 70));
        const hid_t file = H5Fopen(sample.path, H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(file >= 0);
        assert_int_equal(chunk_rows(file, "loss"), cases[i].rows);
        assert_int_equal(chunk_rows(file, "check"), cases[i].rows);
        H5Fclose(file);
        require_all_rows(&sample, sample.path, 70);
        require(trace_open(sample.path, &sample.arena, &image));
        assert_int_equal(sample_differences(&sample, image, 70, 1), 0);
        assert_int_equal(unlink(sample.path), 0);
        require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
        require(sample_put(&sample, trace, 1, 70));
        trace_abandon(trace);
        require(trace_open(sample.part, &sample.arena, &image));
        assert_int_equal(sample_differences(&sample, image, 70, 0), 0);
        sample_close(&sample);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_columns_end_with_step),
                                       cmocka_unit_test(verify_chunks_of_long_plans),
                                       cmocka_unit_test(corroborate_open_long),
                                       cmocka_unit_test(verify_rows_of_a_live_trace),
                                       cmocka_unit_test(verify_damage_is_told),
                                       cmocka_unit_test(verify_another_file_is_refused),
                                       cmocka_unit_test(verify_the_final_name_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
