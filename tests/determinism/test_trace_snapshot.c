/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Stored states in a trace: what was put must be read back, one state at a time; recover must keep
 * them; the bytes of the file must be a function of them; and whatever byte is damaged, wherever
 * the file ends or its writer dies, no state may come back wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define RUNS 2 /* of the sample's three, these store states */
#define SMALL 700
#define LARGE ((size_t)2100001) /* three pieces, the last one shorter */
#define UPDATES 4

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* Returns byte `at` of the state of a run after an update. */
static unsigned char state_byte(uint32_t run, uint64_t step, size_t at) {
    uint64_t value = (at + 1) * 0x9e3779b97f4a7c15u ^ (step * 16 + run + 1) * 0xbf58476d1ce4e5b9u;
    value ^= value >> 29;
    return (unsigned char)((value * 0x94d049bb133111ebu) >> 56);
}

static unsigned char *state_of(struct arena *arena, uint32_t run, uint64_t step, size_t bytes) {
    unsigned char *state;
    require(arena_take(arena, bytes, 1, "state", &state));
    for (size_t i = 0; i < bytes; i++)
        state[i] = state_byte(run, step, i);
    return state;
}

/* Opens the sample with arms that store states of `bytes`. */
static void open_sample(struct sample *sample, size_t bytes) {
    struct trace_run_plan *runs;
    sample_open(sample, 3);
    require(arena_take(&sample->arena, SAMPLE_RUNS, sizeof *runs, "runs", &runs));
    memcpy(runs, sample->plan.runs, SAMPLE_RUNS * sizeof *runs);
    for (uint32_t r = 0; r < RUNS; r++) {
        runs[r].snapshots = (struct trace_snapshot_plan){.bytes = bytes, .every = 2, .format = 7};
        for (uint8_t i = 0; i < 32; i++)
            runs[r].snapshots.layout[i] = (uint8_t)(i * 9 + r);
    }
    sample->plan.runs = runs;
}

static enum status put_states(struct sample *sample, struct trace *trace, uint64_t step) {
    struct arena arena = ARENA_EMPTY;
    enum status status = STATUS_OK;
    for (uint32_t r = 0; r < RUNS && status == STATUS_OK; r++)
        status = trace_put_snapshot(
            trace, r, step,
            state_of(&arena, r, step, (size_t)sample->plan.runs[r].snapshots.bytes));
    arena_close(&arena);
    return status;
}

static enum status put_all(struct sample *sample, struct trace *trace, uint64_t updates) {
    TRY(put_states(sample, trace, 0));
    for (uint64_t step = 1; step <= updates; step++) {
        TRY(sample_put(sample, trace, step, step));
        if (step % 2 == 0) TRY(put_states(sample, trace, step));
    }
    return sample_put_late(sample, trace);
}

static void write_sample(struct sample *sample, const char *path) {
    struct trace *trace;
    require(trace_create(path, &sample->plan, &sample->arena, &trace));
    require(put_all(sample, trace, UPDATES));
    require(trace_finish(trace));
}

/* Counts the states that are not what was put; a refused one counts in *refused. */
static int wrong_states(const char *path, const struct trace_image *image, size_t bytes,
                        int *refused) {
    int wrong = 0;
    for (uint32_t r = 0; r < image->run_count && r < RUNS; r++)
        for (uint64_t i = 0; i < image->runs[r].snapshots; i++) {
            struct arena arena = ARENA_EMPTY;
            unsigned char *read;
            if (trace_snapshot_read(path, &image->runs[r], i, &arena, &read) != STATUS_OK)
                ++*refused;
            else if (image->runs[r].plan.snapshots.bytes != bytes ||
                     memcmp(read, state_of(&arena, r, image->runs[r].snapshot_steps[i], bytes),
                            bytes) != 0)
                wrong++;
            arena_close(&arena);
        }
    return wrong;
}

static void check_file(struct sample *sample, const char *path, size_t bytes) {
    struct trace_image *image;
    int refused = 0;
    require(trace_open(path, &sample->arena, &image));
    assert_int_equal(sample_differences(sample, image, UPDATES, 1), 0);
    for (uint32_t r = 0; r < RUNS; r++) {
        const struct trace_run *run = &image->runs[r];
        const struct trace_snapshot_plan *plan = &sample->plan.runs[r].snapshots;
        assert_int_equal(run->snapshots, 3);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(run->snapshot_steps[i], 2 * i);
        assert_int_equal(run->plan.snapshots.every, 2);
        assert_int_equal(run->plan.snapshots.format, 7);
        assert_int_equal(run->plan.snapshots.bytes, bytes);
        assert_memory_equal(run->plan.snapshots.layout, plan->layout, 32);
    }
    assert_int_equal(image->runs[2].snapshots, 0);
    assert_int_equal(image->runs[2].plan.snapshots.bytes, 0);
    assert_int_equal(wrong_states(path, image, bytes, &refused), 0);
    assert_int_equal(refused, 0);
}

static void verify_read_back(void **state) {
    (void)state;
    static const size_t sizes[] = {1, SMALL, 1 << 20, LARGE};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct sample sample;
        char copy[512], again[512];
        size_t lengths[2];
        open_sample(&sample, sizes[i]);
        write_sample(&sample, sample.path);
        check_file(&sample, sample.path, sizes[i]);
        snprintf(copy, sizeof copy, "%s/copy.h5", sample.folder);
        snprintf(again, sizeof again, "%s/again.h5", sample.folder);
        require(trace_recover(sample.path, copy, 0));
        check_file(&sample, copy, sizes[i]);
        write_sample(&sample, again);
        const char *first = sample_bytes(&sample.arena, sample.path, &lengths[0]);
        const char *second = sample_bytes(&sample.arena, again, &lengths[1]);
        assert_int_equal(lengths[0], lengths[1]);
        assert_memory_equal(first, second, lengths[0]);
        sample_close(&sample);
    }
}

static void verify_find(void **state) {
    (void)state;
    uint64_t steps[] = {3, 5, 9};
    const struct trace_run run = {.snapshots = 3, .snapshot_steps = steps};
    const struct trace_run none = {.snapshots = 0};
    uint64_t index = 77;
    assert_int_equal(trace_snapshot_find(&run, 2, &index), 0);
    assert_int_equal(trace_snapshot_find(&none, 2, &index), 0);
    static const uint64_t found[][2] = {{3, 0}, {4, 0}, {5, 1}, {8, 1}, {9, 2}, {1000, 2}};
    for (size_t i = 0; i < COUNT_OF(found); i++) {
        assert_int_equal(trace_snapshot_find(&run, found[i][0], &index), 1);
        assert_int_equal(index, found[i][1]);
    }
}

static void validate_misuse(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    open_sample(&sample, SMALL);
    unsigned char *bytes = state_of(&sample.arena, 0, 0, SMALL);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    require(trace_put_snapshot(trace, 0, 2, bytes));
    assert_int_equal(trace_put_snapshot(trace, 0, 2, bytes), STATUS_INTERNAL);
    assert_int_equal(trace_put_snapshot(trace, 0, 1, bytes), STATUS_INTERNAL);
    assert_int_equal(trace_put_snapshot(trace, 0, (uint64_t)INT64_MAX + 1, bytes), STATUS_INTERNAL);
    assert_int_equal(trace_put_snapshot(trace, 2, 3, bytes), STATUS_INTERNAL);
    assert_int_equal(trace_put_snapshot(trace, 3, 3, bytes), STATUS_INTERNAL);
    require(trace_put_snapshot(trace, 0, 3, bytes));
    require(trace_finish(trace));
    sample_close(&sample);
}

/* Reads a damaged copy in a process of its own, since HDF5 may crash on damage. Its exit status is
 * 0 where all was right, 1 where something was refused, 2 where a state came back wrong. */
static int outcome_of(struct sample *sample, const char *path, size_t bytes) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trace_image *image;
        int refused = 0;
        alarm(20);
        if (trace_open(path, &sample->arena, &image) != STATUS_OK) _exit(1);
        const int wrong = wrong_states(path, image, bytes, &refused);
        _exit(wrong != 0 ? 2 : refused != 0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 3;
}

static void verify_damage(void **state) {
    (void)state;
    struct sample sample;
    size_t length;
    char copy[512];
    int counts[4] = {0};
    open_sample(&sample, SMALL);
    write_sample(&sample, sample.path);
    const char *whole = sample_bytes(&sample.arena, sample.path, &length);
    snprintf(copy, sizeof copy, "%s/damaged.h5", sample.folder);
    char *bytes;
    require(arena_take(&sample.arena, length, 1, "copy", &bytes));
    for (size_t at = 11; at < length; at += 1 + length / helper_size(24, 24, 700)) {
        memcpy(bytes, whole, length);
        bytes[at] = (char)(bytes[at] ^ 0x10);
        sample_store(copy, bytes, length);
        const int outcome = outcome_of(&sample, copy, SMALL);
        counts[outcome]++;
        if (outcome == 2) fail_msg("byte %zu flipped: a wrong state came back", at);
    }
    print_message("flipped: %d right, %d refused, %d crashed in HDF5\n", counts[0], counts[1],
                  counts[3]);
    for (size_t cut = 100; cut < length; cut += 1 + length / helper_size(6, 6, 150)) {
        sample_store(copy, whole, length - cut);
        if (outcome_of(&sample, copy, SMALL) != 1) fail_msg("%zu bytes cut: not refused", cut);
    }
    sample_close(&sample);
}

/* Flips one bit of each of `count` bytes wherever they occur in the file. Returns how often they
 * do; each flip must be refused. */
static int flip_each(struct sample *sample, const void *wanted, size_t count) {
    int found = 0;
    size_t length;
    char copy[512];
    char *bytes;
    const char *whole = sample_bytes(&sample->arena, sample->path, &length);
    snprintf(copy, sizeof copy, "%s/damaged.h5", sample->folder);
    require(arena_take(&sample->arena, length, 1, "copy", &bytes));
    for (size_t at = 0; at + count <= length; at++) {
        if (memcmp(whole + at, wanted, count) != 0) continue;
        found++;
        for (size_t i = 0; i < count; i += helper_size(7, 7, 1)) {
            memcpy(bytes, whole, length);
            bytes[at + i] = (char)(bytes[at + i] ^ 16);
            sample_store(copy, bytes, length);
            assert_int_equal(outcome_of(sample, copy, 40), 1);
        }
    }
    return found;
}

/* The bytes are a state, and the steps 0, 2, 4 of both arms: raw data, of which HDF5 keeps no
 * checksum. */
static void verify_raw_bytes(void **state) {
    (void)state;
    static const uint64_t steps[] = {0, 2, 4};
    struct sample sample;
    open_sample(&sample, 40);
    write_sample(&sample, sample.path);
    assert_int_equal(flip_each(&sample, state_of(&sample.arena, 1, 2, 40), 40), 1);
    assert_true(flip_each(&sample, steps, sizeof steps) >= RUNS);
    sample_close(&sample);
}

/* Holds that of the states of a run of the copy just one does not match, or none (NONE). */
#define NONE UINT64_MAX
static void check_damaged(const char *copy, uint32_t run, uint64_t index) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    struct trace_states found = {99, {99}};
    require(trace_open_long(copy, &arena, &image));
    require(trace_check_states(image, &image->runs[run], &found));
    assert_int_equal(found.damaged, index != NONE);
    if (index != NONE) assert_int_equal(found.index[0], index);
    trace_close(image);
    arena_close(&arena);
}

/* Flips a bit in every stored state, at its ends and between: the state that does not match is
 * named, of its run and of no other. */
static void verify_states_are_checked(void **state) {
    (void)state;
    static const size_t places[] = {0, 1 << 20, LARGE / 2, LARGE - 1};
    struct sample sample;
    size_t length;
    char copy[512], *bytes;
    open_sample(&sample, LARGE);
    write_sample(&sample, sample.path);
    const char *whole = sample_bytes(&sample.arena, sample.path, &length);
    snprintf(copy, sizeof copy, "%s/damaged.h5", sample.folder);
    require(arena_take(&sample.arena, length, 1, "copy", &bytes));
    for (uint32_t r = 0; r < RUNS; r++)
        check_damaged(sample.path, r, NONE);
    check_damaged(sample.path, 2, NONE); /* stores none */
    for (uint64_t i = 0; i < 3; i++)
        for (size_t k = 0; k < COUNT_OF(places); k += helper_size(2, 2, 1)) {
            const uint32_t r = (uint32_t)(i + k) % RUNS;
            const unsigned char *wanted = state_of(&sample.arena, r, 2 * i, LARGE);
            size_t found = 0;
            memcpy(bytes, whole, length);
            /* pieces of a state lie apart: that which holds the place is looked for */
            const size_t window = 64, at = places[k] > LARGE - window ? LARGE - window : places[k];
            for (size_t b = 0; b + window <= length; b++)
                if (bytes[b] == (char)wanted[at] && memcmp(bytes + b, wanted + at, window) == 0) {
                    bytes[b + places[k] - at] = (char)(bytes[b + places[k] - at] ^ 4);
                    found++;
                }
            assert_int_equal(found, 1);
            sample_store(copy, bytes, length);
            check_damaged(copy, r, i);
            check_damaged(copy, 1 - r, NONE);
        }
    sample_close(&sample);
}

#define KILLS ((int)helper_size(2, 2, 10)) /* the first one and every third of a large state */

static void write_until_killed(struct sample *sample, int told) {
    struct trace *trace;
    if (trace_create(sample->path, &sample->plan, &sample->arena, &trace) != STATUS_OK) _exit(1);
    if (put_states(sample, trace, 0) != STATUS_OK) _exit(2);
    for (uint64_t step = 1;; step++) {
        if (sample_put(sample, trace, step, step) != STATUS_OK) _exit(3);
        if (put_states(sample, trace, step) != STATUS_OK) _exit(4);
        if (write(told, &step, sizeof step) != (ssize_t)sizeof step) _exit(5);
    }
}

static void check_killed(struct sample *sample, const char *path, uint64_t told, size_t bytes) {
    struct trace_image *image;
    int refused = 0;
    require(trace_open(path, &sample->arena, &image));
    for (uint32_t r = 0; r < RUNS; r++) {
        assert_in_range(image->runs[r].snapshots, told + 1, told + 2);
        for (uint64_t i = 0; i < image->runs[r].snapshots; i++)
            assert_int_equal(image->runs[r].snapshot_steps[i], i);
    }
    assert_int_equal(wrong_states(path, image, bytes, &refused), 0);
    assert_int_equal(refused, 0);
}

static void verify_kill(void **state) {
    (void)state;
    uint64_t states = 0;
    srand(4711);
    for (int i = 0; i < KILLS; i++) {
        const size_t bytes = i % 3 == 0 ? LARGE : SMALL;
        struct sample sample;
        int ends[2], result;
        uint64_t last = 0, step;
        open_sample(&sample, bytes);
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_until_killed(&sample, ends[1]);
        close(ends[1]);
        assert_int_equal(read(ends[0], &step, sizeof step), sizeof step);
        last = step;
        const struct timespec time = {0, rand() % 30000 * 1000L};
        nanosleep(&time, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result));
        while (read(ends[0], &step, sizeof step) == (ssize_t)sizeof step)
            last = step;
        close(ends[0]);
        states += last;
        check_killed(&sample, sample.part, last, bytes);
        require(trace_recover(sample.part, sample.path, 0));
        check_killed(&sample, sample.path, last, bytes);
        sample_close(&sample);
    }
    print_message("%d kills, %llu states of each run\n", KILLS, (unsigned long long)states);
}

/* A file that may grow no more gives an error that names it, and what was written before must be
 * readable. */
static void verify_full_disk(void **state) {
    (void)state;
    const size_t step = helper_size(2700000, 2700000, 900000);
    for (size_t limit = 400000; limit < 12000000; limit += step) {
        struct sample sample;
        open_sample(&sample, LARGE);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct trace *trace;
            const struct rlimit most = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(9);
            enum status status = trace_create(sample.path, &sample.plan, &sample.arena, &trace);
            if (status != STATUS_OK) _exit(1);
            status = put_all(&sample, trace, UPDATES);
            const int told = strstr(status_text(), sample.part) != NULL;
            trace_abandon(trace);
            _exit(status == STATUS_IO && told ? 2 : 3);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        if (!WIFEXITED(result) || WEXITSTATUS(result) > 2)
            fail_msg("limit %zu: result %d", limit, result);
        if (WEXITSTATUS(result) == 2) {
            struct trace_image *image;
            int refused = 0;
            require(trace_open(sample.part, &sample.arena, &image));
            assert_int_equal(wrong_states(sample.part, image, LARGE, &refused), 0);
            assert_int_equal(refused, 0);
        }
        sample_close(&sample);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_read_back),
        cmocka_unit_test(verify_find),
        cmocka_unit_test(validate_misuse),
        cmocka_unit_test(verify_damage),
        cmocka_unit_test(verify_states_are_checked),
        cmocka_unit_test(verify_raw_bytes),
        cmocka_unit_test(verify_kill),
        cmocka_unit_test(verify_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
