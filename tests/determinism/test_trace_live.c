/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Readers of a file that is being created, written or finished at that moment: none is told that a
 * healthy file is damaged, and none keeps the writer from its own file.
 *
 * Writer and reader are two processes, as in life: HDF5 locks files between processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "determinism/trace/hdf5_reader.h"
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_seal.h"
#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define FILES ((int)helper_size(20, 16, 1000))
#define CREATED ((int)helper_size(20, 10, 50))
#define CHILD_SECONDS 120

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* ---- the end of a run ---- */

static void write_files(struct sample *sample) {
    for (int i = 0; i < FILES; i++)
        if (sample_write(sample, sample->path, 2) != STATUS_OK) {
            fprintf(stderr, "writer: %s\n", status_text());
            _exit(1);
        }
    _exit(0);
}

/* One look at the live file. It may be too early or too late, but what is there is sound. */
static int look(struct sample *sample) {
    struct trace_image *image;
    if (trace_open(sample->part, &sample->arena, &image) != STATUS_OK) {
        if (strstr(status_text(), "damaged") != NULL || strstr(status_text(), "truncated") != NULL)
            fail_msg("a healthy file: %s", status_text());
        return 0;
    }
    const int complete = image->complete;
    const uint64_t updates = complete ? 2 : sample_cut(image);
    if (complete) assert_int_equal(image->seal, TRACE_SEAL_WHOLE);
    if (complete) assert_int_equal(sample_differences(sample, image, updates, 1), 0);
    return 1;
}

static void verify_reader_of_runs_that_end(void **state) {
    (void)state;
    struct sample sample;
    int result, looks = 0, read = 0;
    sample_open(&sample, 3);
    sample.plan.overwrite = 1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_files(&sample);
    for (; waitpid(child, &result, WNOHANG) == 0; looks++)
        read += look(&sample);
    assert_int_equal(result, 0);
    print_message("%d looks while %d files were made, %d of them read\n", looks, FILES, read);
    assert_true(read > 0);
    sample_close(&sample);
}

/* A second writer is kept out by the mark, so that has to stand for most of the time in which a
 * file is begun, too: not before the file is open, nor while it is closed once and opened again. */
static void verify_file_that_is_begun_is_marked(void **state) {
    (void)state;
    struct sample sample;
    uint64_t marked = 0, bare = 0;
    sample_open(&sample, 3);
    sample.plan.overwrite = 1;
    for (int i = 0; i < FILES; i++) {
        int ends[2], result;
        char word = 0;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct trace *trace;
            alarm(CHILD_SECONDS);
            const int bad =
                trace_create(sample.path, &sample.plan, &sample.arena, &trace) != STATUS_OK;
            if (write(ends[1], "x", 1) != 1 || bad) _exit(1);
            for (;;)
                pause();
        }
        while (read(ends[0], &word, 1) != 1) {
            long process;
            const int written = trace_is_written(sample.part, &process);
            if (written) assert_int_equal(process, child);
            if (written)
                marked++;
            else if (access(sample.part, F_OK) == 0)
                bare++;
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &result, 0), child);
        close(ends[0]);
        close(ends[1]);
        unlink(sample.part);
    }
    print_message("of looks at %d files that were begun, %ju saw a mark and %ju none\n", FILES,
                  (uintmax_t)marked, (uintmax_t)bare);
    assert_true(marked > bare);
    sample_close(&sample);
}

/* Writes a closing seal, then a row that it does not cover: so the file stands for a reader that
 * had begun before the seal was written. Waits to be killed. */
static void seal_too_early(struct sample *sample, int told) {
    struct trace *trace;
    alarm(CHILD_SECONDS); /* should the test fail and leave it behind */
    int bad = trace_create(sample->path, &sample->plan, &sample->arena, &trace) != STATUS_OK;
    bad = bad || sample_put(sample, trace, 1, 2) != STATUS_OK;
    bad = bad || trace_seal(trace, SEAL_COMPLETE) != STATUS_OK || trace_flush(trace) != STATUS_OK;
    bad = bad || sample_put(sample, trace, 3, 3) != STATUS_OK;
    if (bad) fprintf(stderr, "writer: %s\n", status_text());
    if (write(told, &bad, sizeof bad) != (ssize_t)sizeof bad) _exit(1);
    for (;;)
        pause();
}

static void verify_closing_seal_of_a_live_file_says_nothing(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    int ends[2], bad = 1, result;
    sample_open(&sample, 3);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) seal_too_early(&sample, ends[1]);
    assert_int_equal(read(ends[0], &bad, sizeof bad), sizeof bad);
    assert_int_equal(bad, 0);
    require(trace_open(sample.part, &sample.arena, &image));
    assert_int_equal(image->complete, 0);
    assert_int_equal(image->seal, TRACE_SEAL_BEGUN);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    close(ends[0]);
    close(ends[1]);
    sample_close(&sample);
}

static void verify_reader_needs_no_name(void **state) {
    (void)state;
    struct sample sample;
    uint64_t length;
    int handle;
    sample_open(&sample, 3);
    require(sample_write(&sample, sample.path, 2));
    struct reader reader = {.file = {.id = H5I_INVALID_HID, .name = sample.path},
                            .arena = &sample.arena};
    require(reader_open(&reader, sample.path));
    assert_int_equal(unlink(sample.path), 0);
    require(reader_handle(&reader, &handle, &length));
    require(reader_spend(&reader, length, 1, "all of it"));
    assert_int_equal(reader_spend(&reader, 1, 1, "more"), STATUS_INPUT);
    reader_close(&reader);
    sample_close(&sample);
}

/* ---- the start of a run ---- */

/* Locks the live file, as HDF5 does, whenever its superblock (version 3: the flags are byte 11)
 * says that nobody writes it, and keeps the lock for a millisecond. */
static void lock_what_looks_finished(const char *path) {
    const struct timespec moment = {0, 1000000};
    alarm(CHILD_SECONDS);
    for (;;) {
        unsigned char block[12];
        const int handle = open(path, O_RDONLY | O_CLOEXEC);
        if (handle < 0) continue;
        if (pread(handle, block, sizeof block, 0) == (ssize_t)sizeof block &&
            memcmp(block, "\211HDF\r\n\032\n\003", 9) == 0 && block[11] == 0 &&
            flock(handle, LOCK_SH | LOCK_NB) == 0)
            nanosleep(&moment, NULL);
        close(handle);
    }
}

/* Locks the live file while nothing is in it, which h5py does before it sees that, and keeps the
 * lock for some milliseconds. Then it waits as long, as a program that polls does. */
static void lock_what_is_empty(const char *path) {
    const struct timespec moment = {0, 5000000};
    alarm(CHILD_SECONDS);
    for (;;) {
        struct stat info;
        const int handle = open(path, O_RDONLY | O_CLOEXEC);
        if (handle < 0) continue;
        if (fstat(handle, &info) == 0 && info.st_size == 0 &&
            flock(handle, LOCK_SH | LOCK_NB) == 0) {
            nanosleep(&moment, NULL);
            flock(handle, LOCK_UN);
            nanosleep(&moment, NULL);
        }
        close(handle);
    }
}

static void keeps_no_writer_out(void (*look_at)(const char *path)) {
    struct sample sample;
    int result;
    sample_open(&sample, 3);
    sample.plan.overwrite = 1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) look_at(sample.part);
    for (int i = 0; i < CREATED; i++)
        require(sample_write(&sample, sample.path, 1));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
    sample_close(&sample);
}

static void verify_reader_keeps_no_writer_out(void **state) {
    (void)state;
    keeps_no_writer_out(lock_what_looks_finished);
}

static void verify_reader_of_an_empty_file_keeps_no_writer_out(void **state) {
    (void)state;
    keeps_no_writer_out(lock_what_is_empty);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_reader_of_runs_that_end),
        cmocka_unit_test(verify_file_that_is_begun_is_marked),
        cmocka_unit_test(verify_closing_seal_of_a_live_file_says_nothing),
        cmocka_unit_test(verify_reader_needs_no_name),
        cmocka_unit_test(verify_reader_keeps_no_writer_out),
        cmocka_unit_test(verify_reader_of_an_empty_file_keeps_no_writer_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
