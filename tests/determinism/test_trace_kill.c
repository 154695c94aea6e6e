/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * The trace when its writer dies: killed at 40 random moments, every update whose put had returned
 * must be read back to the bit, by this program and by h5py, and recover must make a normal file of
 * it. And while its writer lives, a reader must be able to follow.
 *
 * The child says through a pipe which update it has committed, so that the parent knows what the
 * file must hold at least. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/determinism/helper_trace.h"
#include "tests/base/helper_size.h"

#define KILLS ((int)helper_size(8, 8, 40))
#define LAST 1000000 /* the child never gets there */
#define WAITS 60000  /* of a millisecond, on a machine that gives the writer no time */

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void write_until_killed(struct sample *sample, int told) {
    struct trace *trace;
    if (trace_create(sample->path, &sample->plan, &sample->arena, &trace) != STATUS_OK) _exit(1);
    for (uint64_t step = 1; step < LAST; step++) {
        if (sample_put(sample, trace, step, step) != STATUS_OK) _exit(2);
        if (write(told, &step, sizeof step) != (ssize_t)sizeof step) _exit(3);
    }
    _exit(4);
}

struct writer {
    pid_t child;
    int told; /* the pipe's end to read */
};

static struct writer start(struct sample *sample) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct writer writer = {fork(), ends[0]};
    assert_true(writer.child >= 0);
    if (writer.child == 0) {
        close(ends[0]);
        write_until_killed(sample, ends[1]);
    }
    close(ends[1]);
    return writer;
}

/* Kills the writer; returns the last update that it said was committed. */
static uint64_t stop(struct writer writer) {
    int result;
    uint64_t last = 0;
    uint64_t step;
    assert_int_equal(kill(writer.child, SIGKILL), 0);
    assert_int_equal(waitpid(writer.child, &result, 0), writer.child);
    if (!WIFSIGNALED(result)) fail_msg("the writer ended by itself: %d", result);
    while (read(writer.told, &step, sizeof step) == (ssize_t)sizeof step)
        last = step;
    close(writer.told);
    return last;
}

static void wait_first(struct writer writer) {
    uint64_t step;
    assert_int_equal(read(writer.told, &step, sizeof step), sizeof step);
}

static void pass(long microseconds) {
    const struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static int h5py_is_there(void) {
    return system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") == 0;
}

/* Reads a .part through h5py with swmr, a finished file without; it must have as many updates as we
 * read of it. */
static void read_with_h5py(const char *path, int swmr, const struct trace_image *image) {
    static const char script[] =
        "import sys, h5py\n"
        "path, swmr, expected, total = sys.argv[1], sys.argv[2] == '1', int(sys.argv[3]), "
        "sys.argv[4]\n"
        "f = h5py.File(path, 'r', libver='latest', swmr=swmr)\n"
        "s = f['arms/baseline/steps']\n"
        "n = len(s['step'])\n"
        "assert n == expected, (n, expected)\n"
        "for name, c in list(s.items()) + list(s['tensors'].items()):\n"
        "    if isinstance(c, h5py.Dataset) and c.maxshape[0] is None: assert len(c[:n]) == n, "
        "name\n"
        "assert list(s['step'][:]) == list(range(1, n + 1))\n"
        "assert '%d' % s['tokens'][:n].astype('u8').sum() == total, 'tokens'\n"
        "assert int(f['complete'][()]) == 0\n";
    const struct trace_run *run = &image->runs[0];
    uint64_t total = 0;
    for (uint64_t i = 0; i < run->updates; i++)
        total += (uint64_t)run->records[i].integers[INTEGER_TOKENS];
    char expected[32];
    char sum[32];
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)run->updates);
    snprintf(sum, sizeof sum, "%llu", (unsigned long long)total);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/usr/bin/python3", "/usr/bin/python3", "-c", script, path, swmr ? "1" : "0",
              expected, sum, (char *)NULL);
        _exit(127);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

static void check_killed(struct sample *sample, uint64_t told, int with_h5py) {
    struct trace_image *image;
    require(trace_open(sample->part, &sample->arena, &image));
    assert_int_equal(image->complete, 0);
    if (with_h5py) read_with_h5py(sample->part, 1, image);
    require(trace_recover(sample->part, sample->path, 0));
    const uint64_t updates = sample_cut(image);
    if (updates < told)
        fail_msg("told %llu updates, found %llu", (unsigned long long)told,
                 (unsigned long long)updates);
    assert_in_range(updates, told, told + 1); /* the one in flight may be there */
    assert_int_equal(sample_differences(sample, image, updates, 0), 0);
    require(trace_open(sample->path, &sample->arena, &image));
    assert_int_equal(image->complete, 0);
    if (with_h5py) read_with_h5py(sample->path, 0, image);
    assert_int_equal(sample_cut(image), updates);
    assert_int_equal(sample_differences(sample, image, updates, 0), 0);
}

/* So many that a chunk has the most rows; not known; as many as a trace of usual length has. */
static const uint64_t planned[] = {LAST, 0, 4096};

static void verify_kill_loses_no_update(void **state) {
    (void)state;
    const int with_h5py = h5py_is_there();
    uint64_t updates = 0;
    if (!with_h5py) print_message("h5py: left out, /usr/bin/python3 cannot import it\n");
    srand(20240917);
    for (int i = 0; i < KILLS; i++) {
        struct sample sample;
        sample_open(&sample, 20);
        sample.plan.updates = planned[i % 3];
        const struct writer writer = start(&sample);
        wait_first(writer);
        pass(rand() % 40000);
        const uint64_t told = stop(writer);
        updates += told;
        check_killed(&sample, told == 0 ? 1 : told, with_h5py && i % 4 == 0);
        sample_close(&sample);
    }
    print_message("%d kills, %llu updates\n", KILLS, (unsigned long long)updates);
}

/* The writer is killed from the first system call on: at every moment there must be an answer, and
 * never a wrong one. */
static void verify_kill_while_starting(void **state) {
    (void)state;
    int without = 0;
    srand(7);
    for (int i = 0; i < KILLS; i++) {
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, 20);
        sample.plan.updates = planned[i % 3];
        const struct writer writer = start(&sample);
        pass(rand() % 300 * (rand() % 300));
        const uint64_t told = stop(writer);
        const enum status status = trace_open(sample.part, &sample.arena, &image);
        if (status == STATUS_OK) {
            const uint64_t updates = sample_cut(image);
            assert_in_range(updates, told, told + 1);
            assert_int_equal(sample_differences(&sample, image, updates, 0), 0);
        } else {
            without++;
            assert_int_equal(told, 0);
            assert_int_equal(status, access(sample.part, F_OK) == 0 ? STATUS_INPUT : STATUS_IO);
        }
        sample_close(&sample);
    }
    print_message("%d of %d killed before the file was made\n", without, KILLS);
}

/* The writer finishes files one after the other; at any moment the target must be whole or not
 * there. */
static void verify_kill_while_finishing(void **state) {
    (void)state;
    int whole = 0;
    srand(11);
    for (int i = 0; i < KILLS; i++) {
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, 3);
        sample.plan.overwrite = 1;
        const pid_t child = fork();
        assert_true(child >= 0);
        while (child == 0)
            if (sample_write(&sample, sample.path, 2) != STATUS_OK) _exit(1);
        for (int waits = 0; i % 2 == 1 && access(sample.path, F_OK) != 0 && waits < WAITS; waits++)
            pass(1000); /* then it is being overwritten by the next one */
        pass(rand() % 60000);
        assert_int_equal(kill(child, SIGKILL), 0);
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result));
        if (access(sample.path, F_OK) == 0) {
            whole++;
            require(trace_open(sample.path, &sample.arena, &image));
            assert_int_equal(image->complete, 1);
            assert_int_equal(sample_differences(&sample, image, 2, 1), 0);
        }
        sample_close(&sample);
    }
    print_message("%d of %d had a finished file, each whole\n", whole, KILLS);
    assert_true(whole >= KILLS / 2);
}

static void verify_reader_follows_a_live_run(void **state) {
    (void)state;
    struct sample sample;
    uint64_t before = 0;
    sample_open(&sample, 20);
    sample.plan.updates = LAST;
    const struct writer writer = start(&sample);
    wait_first(writer);
    for (int look = 0; look < 25 || (before < 2 && look < WAITS); look++) {
        struct trace_image *image;
        pass(2000);
        require(trace_open(sample.part, &sample.arena, &image));
        const uint64_t updates = sample_cut(image);
        assert_true(updates >= before);
        assert_int_equal(sample_differences(&sample, image, updates, 0), 0);
        before = updates;
    }
    stop(writer);
    assert_true(before > 1);
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_kill_loses_no_update),
        cmocka_unit_test(verify_kill_while_starting),
        cmocka_unit_test(verify_kill_while_finishing),
        cmocka_unit_test(verify_reader_follows_a_live_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
