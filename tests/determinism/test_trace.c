/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The trace as its user sees it: what went in must come out to the bit, equal inputs must give
 * equal files, a target must never be overwritten or half written, and wrong use must give an error
 * with a text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void require_failure(enum status status, enum status expected, const char *text) {
    if (status != expected || strstr(status_text(), text) == NULL)
        fail_msg("expected status %d and \"%s\", got %d: %s", expected, text, status,
                 status_text());
}

static void verify_round_trip(void **state) {
    (void)state;
    static const struct {
        uint64_t updates;
        uint32_t tensors; /* digests of 2100 take more than a chunk's 65536 bytes in one row */
    } cases[] = {{0, 3}, {1, 3}, {5, 3}, {64, 3}, {65, 3}, {200, 3}, {2, 2100}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, cases[i].tensors);
        require(sample_write(&sample, sample.path, cases[i].updates));
        assert_int_not_equal(access(sample.part, F_OK), 0);
        require(trace_open(sample.path, &sample.arena, &image));
        assert_int_equal(image->complete, 1);
        assert_int_equal(sample_differences(&sample, image, cases[i].updates, 1), 0);
        sample_close(&sample);
    }
}

/* The comparison itself must see a single changed bit. */
static void verify_comparison_sees_a_bit(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 3);
    require(sample_write(&sample, sample.path, 5));
    require(trace_open(sample.path, &sample.arena, &image));
    image->runs[1].records[4].tensor_digests[2][1][31] ^= 1;
    assert_int_equal(sample_differences(&sample, image, 5, 1), 1);
    sample_close(&sample);
}

struct axes {
    const char *name;
    uint64_t attached, referred; /* axes that have a scale; entries of the scales' lists */
    int scales;                  /* of one axis */
};

static herr_t check_scale(hid_t dataset, unsigned axis, hid_t scale, void *data) {
    struct axes *axes = (struct axes *)data;
    hsize_t length[3], coordinates;
    const hid_t spaces[2] = {H5Dget_space(dataset), H5Dget_space(scale)};
    assert_true(H5Sget_simple_extent_dims(spaces[0], length, NULL) > (int)axis);
    assert_int_equal(H5Sget_simple_extent_dims(spaces[1], &coordinates, NULL), 1);
    if (length[axis] != coordinates)
        fail_msg("%s: axis %u has another length than its scale", axes->name, axis);
    if (H5DSis_attached(dataset, scale, axis) != 1)
        fail_msg("%s: the scale of axis %u does not refer to it", axes->name, axis);
    axes->scales++;
    H5Sclose(spaces[0]);
    H5Sclose(spaces[1]);
    return 0;
}

static uint64_t references_of(hid_t scale) {
    if (H5Aexists(scale, "REFERENCE_LIST") <= 0) return 0;
    const hid_t list = H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT), space = H5Aget_space(list);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    H5Aclose(list);
    return (uint64_t)count;
}

static herr_t check_axes(hid_t root, const char *name, const H5O_info_t *info, void *data) {
    struct axes *axes = (struct axes *)data;
    if (info->type != H5O_TYPE_DATASET) return 0;
    const hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(space);
    axes->name = name;
    if (H5DSis_scale(dataset) > 0)
        axes->referred += references_of(dataset);
    else
        for (int axis = 0; axis < rank; axis++) {
            axes->scales = 0;
            assert_int_equal(H5DSiterate_scales(dataset, (unsigned)axis, NULL, check_scale, axes),
                             0);
            if (axes->scales != 1) fail_msg("%s: axis %d has %d scales", name, axis, axes->scales);
            axes->attached++;
        }
    H5Sclose(space);
    H5Dclose(dataset);
    return 0;
}

/* HDF5's own library must find each axis attached to one scale of its length, from both ends; and
 * no scale may refer to more. */
static void corroborate_dimension_scales(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct axes axes = {.attached = 0};
    sample_open(&sample, 20);
    struct trace_run_plan runs[SAMPLE_RUNS];
    memcpy(runs, sample.plan.runs, sizeof runs);
    runs[1].snapshots = (struct trace_snapshot_plan){.bytes = 100, .every = 2, .format = 7};
    sample.plan.runs = runs;
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, 3));
    require(sample_put_late(&sample, trace));
    require(trace_finish(trace));
    const hid_t file = H5Fopen(sample.path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_int_equal(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, check_axes, &axes), 0);
    H5Fclose(file);
    assert_true(axes.attached > 100);
    assert_int_equal(axes.referred, axes.attached);
    sample_close(&sample);
}

static void wait_for_next_second(void) {
    const struct timespec pause = {0, 10000000};
    struct timespec start;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &start);
    do {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_REALTIME, &now);
    } while (now.tv_sec == start.tv_sec);
}

static void verify_equal_input_gives_equal_bytes(void **state) {
    (void)state;
    struct sample sample;
    char other[512];
    size_t lengths[2];
    sample_open(&sample, 20);
    snprintf(other, sizeof other, "%s/other.h5", sample.folder);
    require(sample_write(&sample, sample.path, 70));
    wait_for_next_second(); /* times in the file would differ */
    char *dirt;             /* so that memory left over from here does not happen to be zero */
    require(arena_take(&sample.arena, 1 << 20, 1, "dirt", &dirt));
    memset(dirt, 0xa5, 1 << 20);
    require(sample_write(&sample, other, 70));
    const char *a = sample_bytes(&sample.arena, sample.path, &lengths[0]);
    const char *b = sample_bytes(&sample.arena, other, &lengths[1]);
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(a, b, lengths[0]);
    sample_close(&sample);
}

static void verify_target_is_not_overwritten(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    sample_open(&sample, 1);
    sample_store(sample.path, "mine", 4);
    require_failure(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_IO,
                    "exists");
    assert_int_not_equal(access(sample.part, F_OK), 0);
    sample.plan.overwrite = 1;
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    size_t length;
    assert_memory_equal(sample_bytes(&sample.arena, sample.path, &length), "mine", 4);
    require(sample_put(&sample, trace, 1, 2));
    require(sample_put_late(&sample, trace));
    require(trace_finish(trace));
    require(trace_open(sample.path, &sample.arena, &image));
    assert_int_equal(sample_differences(&sample, image, 2, 1), 0);
    sample_close(&sample);
}

static void verify_target_that_appears_is_left_alone(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    size_t length;
    sample_open(&sample, 1);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, 2));
    sample_store(sample.path, "mine", 4);
    require_failure(trace_finish(trace), STATUS_IO, "came to exist");
    assert_memory_equal(sample_bytes(&sample.arena, sample.path, &length), "mine", 4);
    require(trace_open(sample.part, &sample.arena, &image));
    assert_int_equal(sample_differences(&sample, image, 2, 0), 0);
    sample_close(&sample);
}

static void verify_part_of_another_run_is_kept(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    size_t length;
    sample_open(&sample, 1);
    sample_store(sample.part, "old", 3);
    require_failure(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_IO,
                    "twinstep recover");
    assert_memory_equal(sample_bytes(&sample.arena, sample.part, &length), "old", 3);
    sample.plan.overwrite = 1;
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    trace_abandon(trace);
    sample_close(&sample);
}

static void verify_part_that_was_replaced_is_not_published(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    sample_open(&sample, 1);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, 2));
    char aside[512];
    snprintf(aside, sizeof aside, "%s/aside", sample.folder);
    assert_int_equal(rename(sample.part, aside), 0);
    sample_store(sample.part, "another writer", 14);
    require_failure(trace_finish(trace), STATUS_IO, "replaced");
    assert_int_not_equal(access(sample.path, F_OK), 0);
    sample_close(&sample);
}

static void verify_abandoned_file_is_readable(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    sample_open(&sample, 2);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, 9));
    trace_abandon(trace);
    assert_int_not_equal(access(sample.path, F_OK), 0);
    require(trace_open(sample.part, &sample.arena, &image));
    assert_int_equal(image->complete, 0);
    assert_int_equal(sample_differences(&sample, image, 9, 0), 0);
    require(trace_recover(sample.part, sample.path, 0));
    assert_int_equal(access(sample.part, F_OK), 0);
    require(trace_open(sample.path, &sample.arena, &image));
    assert_int_equal(image->complete, 0);
    assert_int_equal(sample_differences(&sample, image, 9, 0), 0);
    require_failure(trace_recover(sample.part, sample.path, 0), STATUS_IO, "exists");
    require(trace_recover(sample.part, sample.path, 1));
    sample_close(&sample);
}

/* A recovered file that was already finished must be that file to the last value, apart from what
 * marks it complete. */
static void verify_recover_keeps_arrays_and_texts(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    char other[512];
    sample_open(&sample, 2);
    snprintf(other, sizeof other, "%s/other.h5", sample.folder);
    require(sample_write(&sample, sample.path, 7));
    require(trace_recover(sample.path, other, 0));
    require(trace_open(other, &sample.arena, &image));
    assert_int_equal(image->complete, 0);
    assert_int_equal(sample_differences(&sample, image, 7, 1), 0);
    sample_close(&sample);
}

static void verify_wrong_use_is_named(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    sample_open(&sample, 2);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(sample_put(&sample, trace, 1, 2));
    require_failure(trace_put_record(trace, 0, sample_record(&sample, 0, 2)), STATUS_INTERNAL,
                    "update 2 comes after update 2");
    require_failure(trace_put_record(trace, 9, sample_record(&sample, 0, 3)), STATUS_INTERNAL,
                    "run 9");
    require_failure(trace_put_text(trace, "no/such", "x", 1), STATUS_INTERNAL, "no/such");
    require(trace_put_text(trace, "notes", "x", 1));
    require_failure(trace_put_text(trace, "notes", "y", 1), STATUS_INTERNAL, "twice");
    struct record bare = *sample_record(&sample, 0, 3);
    bare.tensors = NULL;
    require_failure(trace_put_record(trace, 0, &bare), STATUS_INTERNAL, "grad_norm");
    require(sample_put(&sample, trace, 3, 3)); /* none of these broke the file */
    require(trace_finish(trace));
    sample_close(&sample);
}

static void verify_plan_is_checked(void **state) {
    (void)state;
    static const char *const wrong[] = {"", ".", "..", "a/b"};
    struct sample sample;
    struct trace *trace;
    sample_open(&sample, 2);
    sample.plan.runs++; /* without the baseline, which an attribute is for */
    sample.plan.run_count--;
    require_failure(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_INTERNAL,
                    "no run or pair");
    sample.plan.attribute_count = 0;
    sample.plan.runs--;
    struct trace_run_plan run = sample.plan.runs[0];
    sample.plan.runs = &run;
    sample.plan.run_count = 1;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        run.id = wrong[i];
        require_failure(trace_create(sample.path, &sample.plan, &sample.arena, &trace),
                        STATUS_INTERNAL, "no name for a run");
    }
    struct trace_run_plan twins[2] = {sample.plan.runs[0], sample.plan.runs[0]};
    twins[0].id = twins[1].id = "same";
    sample.plan.runs = twins;
    sample.plan.run_count = 2;
    assert_int_not_equal(trace_create(sample.path, &sample.plan, &sample.arena, &trace), STATUS_OK);
    assert_int_not_equal(access(sample.part, F_OK), 0); /* a failed creation leaves nothing */
    sample_close(&sample);
}

/* An array of a rank or shape that no dataset of a trace has is refused before a file is there. */
static void verify_arrays_of_a_plan_are_checked(void **state) {
    (void)state;
    static const struct trace_array_plan wrong[] = {
        {"floor/x", 0, {2, 3}, "1", "x"}, {"floor/x", 3, {2, 3}, "1", "x"},
        {"floor/x", 1, {0, 3}, "1", "x"}, {"floor/x", 2, {0, 3}, "1", "x"},
        {"floor/x", 2, {2, 0}, "1", "x"},
    };
    struct sample sample;
    struct trace *trace;
    sample_open(&sample, 1);
    sample.plan.array_count = 1;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        sample.plan.arrays = &wrong[i];
        assert_int_equal(trace_create(sample.path, &sample.plan, &sample.arena, &trace),
                         STATUS_INTERNAL);
        assert_string_equal(status_text(),
                            "trace: array \"floor/x\" needs rank 1 or 2 and no empty axis");
        assert_int_not_equal(access(sample.part, F_OK), 0);
    }
    sample_close(&sample);
}

static void verify_missing_folder(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    char path[512];
    sample_open(&sample, 1);
    snprintf(path, sizeof path, "%s/none/out.h5", sample.folder);
    require_failure(trace_create(path, &sample.plan, &sample.arena, &trace), STATUS_IO,
                    "No such file or directory");
    require_failure(trace_open(path, &sample.arena, &image), STATUS_IO, "No such file");
    require_failure(trace_create(sample.folder, &sample.plan, &sample.arena, &trace), STATUS_IO,
                    "not a regular file");
    require_failure(trace_open(sample.folder, &sample.arena, &image), STATUS_INPUT, "a folder");
    sample_close(&sample);
}

/* Tries it in a child process, which gives up the rights of root if it has them. */
static void verify_unwritable_folder(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, 1);
    assert_int_equal(chmod(sample.folder, 0555), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trace *trace;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
        if (trace_create(sample.path, &sample.plan, &sample.arena, &trace) != STATUS_IO) _exit(4);
        _exit(strstr(status_text(), "Permission denied") == NULL ? 5 : 0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    chmod(sample.folder, 0755);
    sample_close(&sample);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The time is printed, not asserted: it depends on the machine. */
static void report_cost_of_an_update(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    struct stat info;
    const uint64_t updates = 200;
    sample_open(&sample, 200);
    const double start = seconds();
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    const double created = seconds();
    double put = 0;
    for (uint64_t step = 1; step <= updates; step++) {
        const struct record *record = sample_record(&sample, 0, step);
        const double before = seconds();
        require(trace_put_record(trace, 0, record));
        put += seconds() - before;
    }
    const double before = seconds();
    require(trace_finish(trace));
    const double finished = seconds();
    require(trace_open(sample.path, &sample.arena, &image));
    print_message("200 tensors, all columns: create %.1f ms (3 runs, 1 pair), update %.3f ms, "
                  "finish %.1f ms, read %.1f ms; %lld bytes\n",
                  1e3 * (created - start), 1e3 * put / (double)updates, 1e3 * (finished - before),
                  1e3 * (seconds() - finished),
                  stat(sample.path, &info) == 0 ? (long long)info.st_size : -1);
    sample_close(&sample);
}

/* ---- statuses that a caller must not drop ---- */

/* Linked in the place of these calls: one of them fails, once, so that no later call tells it. */
enum call { CALL_NONE, CALL_FLUSH, CALL_DATASET_FLUSH, CALL_WRITE, CALL_CLOSE, CALL_FSYNC };
static int failing;
static int failing_number, calls, is_met;

static int fails(int call) {
    if (call != failing || ++calls != failing_number) return 0;
    is_met = 1;
    return 1;
}

herr_t __real_H5Fflush(hid_t object, H5F_scope_t scope);
herr_t __wrap_H5Fflush(hid_t object, H5F_scope_t scope);
herr_t __wrap_H5Fflush(hid_t object, H5F_scope_t scope) {
    return fails(CALL_FLUSH) ? -1 : __real_H5Fflush(object, scope);
}

herr_t __real_H5Dflush(hid_t dataset);
herr_t __wrap_H5Dflush(hid_t dataset);
herr_t __wrap_H5Dflush(hid_t dataset) {
    return fails(CALL_DATASET_FLUSH) ? -1 : __real_H5Dflush(dataset);
}

herr_t __real_H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
                       const void *values);
herr_t __wrap_H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
                       const void *values);
herr_t __wrap_H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
                       const void *values) {
    return fails(CALL_WRITE) ? -1 : __real_H5Dwrite(dataset, type, memory, file, list, values);
}

/* Closes in any case, or HDF5 would keep the file open. */
herr_t __real_H5Fclose(hid_t file);
herr_t __wrap_H5Fclose(hid_t file);
herr_t __wrap_H5Fclose(hid_t file) {
    const herr_t closed = __real_H5Fclose(file);
    return fails(CALL_CLOSE) ? -1 : closed;
}

int __real_fsync(int handle);
int __wrap_fsync(int handle);
int __wrap_fsync(int handle) {
    if (!fails(CALL_FSYNC)) return __real_fsync(handle);
    errno = EIO;
    return -1;
}

/* As sample_write, but a trace that cannot be finished is left as a program leaves it. */
static enum status write_or_abandon(struct sample *sample) {
    struct trace *trace;
    TRY(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    enum status status = sample_put(sample, trace, 1, 2);
    if (status == STATUS_OK) status = sample_put_late(sample, trace);
    if (status == STATUS_OK) return trace_finish(trace);
    trace_abandon(trace);
    return status;
}

/* Returns the calls that were made, `number` of which failed (0: none). The writer must say so, and
 * no file may get the trace's name. */
static int write_with_failure(struct sample *sample, int call, int number) {
    failing = call;
    calls = is_met = 0;
    failing_number = number;
    const enum status status = write_or_abandon(sample);
    failing = CALL_NONE;
    const int is_there = access(sample->path, F_OK) == 0;
    (void)unlink(sample->path);
    (void)unlink(sample->part);
    assert_int_equal(is_met, number > 0);
    if (is_met && status == STATUS_OK)
        fail_msg("call %d of kind %d failed, and nobody told", number, call);
    if (is_met == is_there) fail_msg("call %d of kind %d: %d traces", number, call, is_there);
    return calls;
}

/* The last ten calls of a kind are those of the last update and of what ends a trace. */
static void verify_no_status_is_dropped(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, 1);
    for (int call = CALL_FLUSH; call <= CALL_FSYNC; call++) {
        const int count = write_with_failure(&sample, call, 0);
        assert_true(count >= 1);
        for (int n = count > 10 ? count - 9 : 1; n <= count; n++)
            (void)write_with_failure(&sample, call, n);
    }
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_round_trip),
        cmocka_unit_test(verify_comparison_sees_a_bit),
        cmocka_unit_test(corroborate_dimension_scales),
        cmocka_unit_test(verify_equal_input_gives_equal_bytes),
        cmocka_unit_test(verify_target_is_not_overwritten),
        cmocka_unit_test(verify_target_that_appears_is_left_alone),
        cmocka_unit_test(verify_part_of_another_run_is_kept),
        cmocka_unit_test(verify_part_that_was_replaced_is_not_published),
        cmocka_unit_test(verify_abandoned_file_is_readable),
        cmocka_unit_test(verify_recover_keeps_arrays_and_texts),
        cmocka_unit_test(verify_wrong_use_is_named),
        cmocka_unit_test(verify_plan_is_checked),
        cmocka_unit_test(verify_arrays_of_a_plan_are_checked),
        cmocka_unit_test(verify_missing_folder),
        cmocka_unit_test(verify_unwritable_folder),
        cmocka_unit_test(report_cost_of_an_update),
        cmocka_unit_test(verify_no_status_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
