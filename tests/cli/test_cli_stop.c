/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * Runs that do not reach their end: interrupted (130, with everything put in order) and killed at
 * random moments of every stage. Every finished update must be readable from the .part, to the bit,
 * by this program and by h5py; recover must make it a normal trace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "determinism/trace.h"
#include "tests/cli/helper_cli.h"

#define KILLS 4 /* TWINSTEP_KILLS asks for more */
#define LATE_LOOP "loop: {update: [count, clip, schedule, optimize, log, zero]}"
/* All optional records are on: probes, read-back, tensors and phases. */
#define RECORD "record: {probe_every: 2, readback: true, tensors: true, phases: true}"

static void pass(long microseconds) {
    const struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* Tells whether the process has ended; helper_wait() still gets its status. */
static int has_ended(pid_t child) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Waits until run `id` has `updates` updates in the live file of `child`, and tells whether that
 * happened. It gives up when the process has ended, never by the clock: a busy machine is slow, and
 * no test may fail for that. (A process that hangs is ended by the time limit of ctest.) */
static int wait_for(pid_t child, const char *part, const char *id, uint64_t updates) {
    for (int last = 0; !last;) {
        last = has_ended(child);
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        int there = 0;
        if (trace_open(part, &arena, &image) == STATUS_OK) {
            const struct trace_run *run = trace_run_of(image, id);
            there = run != NULL && run->updates >= updates;
        }
        arena_close(&arena);
        if (there) return 1;
        pass(2000);
    }
    return 0;
}

/* Waits until `child` has started a process of its own, and tells whether it did before it
 * ended. */
static int wait_for_second_process(pid_t child) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)child, (int)child);
    while (!has_ended(child)) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        const int first = fgetc(file);
        fclose(file);
        if (first != EOF) return 1;
        pass(1000);
    }
    return 0;
}

/* recover says which updates the arrays lack that the columns have: those from the first NaN on,
 * up to the last row. Whether the run was told to stop behind a whole block is chance. */
static void require_lacking(const char *part, const char *command) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    char first[64], last[64];
    if (trace_open(part, &arena, &image) != STATUS_OK) fail_msg("%s", status_text());
    const struct trace_array *const lost = trace_array_of(image, "steps/lost");
    const uint64_t updates = trace_run_of(image, "baseline")->updates;
    uint64_t there = 0;
    assert_non_null(lost);
    while (there < updates && !isnan(lost->values[there]))
        there++;
    struct said said = helper_run(0, command);
    snprintf(first, sizeof first, "\"first\": %ju,", (uintmax_t)(there + 1));
    snprintf(last, sizeof last, "\"last\": %ju,", (uintmax_t)updates);
    if (there == updates) {
        assert_non_null(strstr(said.out, "\"lacking\": []"));
    } else {
        const char *const array = strstr(said.out, "\"array\": \"steps/lost\"");
        if (array == NULL || strstr(array, first) == NULL || strstr(array, last) == NULL)
            fail_msg("expected %s %s in %s", first, last, said.out);
    }
    helper_free(&said);
    arena_close(&arena);
}

static void interrupt_with(int signal) {
    helper_scenario("long.yaml", "steps: 20000\n" RECORD, "seed: 3", LATE_LOOP);
    unlink("long.h5.part"); /* of the test before */
    pid_t child = helper_start("run long.yaml");
    assert_true(wait_for(child, "long.h5.part", "test", 3));
    assert_int_equal(kill(child, signal), 0);
    assert_int_equal(helper_wait(child), 130); /* long before the last of 20,000 updates */
    assert_false(helper_exists("long.h5"));
    struct said said = helper_run(3, "attribute long.h5.part");
    assert_non_null(strstr(said.out, "long: UNTESTABLE"));
    helper_free(&said);
    helper_refuse(2, "run long.yaml", "long.h5.part: exists");
    helper_accept(0, "recover long.h5.part");
    helper_refuse(2, "recover long.h5.part", "long.h5: exists");
    require_lacking("long.h5.part", "recover long.h5.part --overwrite --json");
    said = helper_run(3, "attribute long.h5");
    assert_non_null(strstr(said.out, "first    update 1, phase "));
    helper_free(&said);
    unlink("long.h5");
}

static void validate_interrupt(void **state) {
    (void)state;
    interrupt_with(SIGINT);
}

static void validate_terminate(void **state) {
    (void)state;
    interrupt_with(SIGTERM);
}

static void validate_hangup(void **state) {
    (void)state;
    interrupt_with(SIGHUP);
}

/* The interrupt comes while the second process trains, after the arms. (tests/cli/jobs.py has it
 * beside them.) */
static void validate_interrupt_of_second_process(void **state) {
    (void)state;
    helper_scenario("second.yaml", "steps: 150", "seed: 3", LATE_LOOP);
    pid_t child = helper_start("run second.yaml --jobs 1");
    assert_true(wait_for(child, "second.h5.part", "floor-rerun", 150));
    assert_true(wait_for_second_process(child));
    assert_int_equal(kill(child, SIGINT), 0);
    int code = helper_wait(child);
    assert_int_equal(code, 130);
    assert_false(helper_exists("second.h5"));
}

static int h5py_is_there(void) {
    return system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") == 0;
}

/* Reads every column of every run up to the commit mark, which must have as many updates as we
 * read. */
static void read_with_h5py(const char *path, const struct trace_image *image) {
    static const char script[] =
        "import sys, h5py\n"
        "f = h5py.File(sys.argv[1], 'r', libver='latest', swmr=True)\n"
        "for pair in sys.argv[2:]:\n"
        "    name, n = pair.rsplit('=', 1)\n"
        "    n = int(n)\n"
        "    steps = f['runs'][name]['steps']\n"
        "    assert len(steps['step']) == n, (name, len(steps['step']), n)\n"
        "    seen = []\n"
        "    def look(key, c):\n"
        "        if isinstance(c, h5py.Dataset) and c.maxshape[0] is None:\n"
        "            assert len(c[:n]) == n, (name, key)\n"
        "            seen.append(key)\n"
        "    steps.visititems(look)\n"
        "    assert len(seen) > 20, seen\n"
        "    assert list(steps['step'][:]) == list(range(1, n + 1))\n";
    char command[8192];
    helper_write("look.py", script);
    int used = snprintf(command, sizeof command, "/usr/bin/python3 look.py %s", path);
    for (uint32_t i = 0; i < image->run_count && i < 64; i++)
        if (image->runs[i].plan.first_step == 1 && image->runs[i].updates > 0 &&
            image->runs[i].records[0].step == 1)
            used += snprintf(command + used, sizeof command - (size_t)used, " %s=%llu",
                             image->runs[i].plan.id, (unsigned long long)image->runs[i].updates);
    assert_int_equal(system(command), 0);
}

#define SAME(a, b, count) assert_memory_equal((a), (b), (count) * sizeof *(a))

static void require_same_record(const struct record *a, const struct record *b,
                                struct record_shape shape) {
    assert_int_equal(a->step, b->step);
    SAME(a->reals, b->reals, RECORD_REALS);
    SAME(a->integers, b->integers, RECORD_INTEGERS);
    SAME(a->digests, b->digests, RECORD_DIGESTS);
    SAME(a->groups, b->groups, shape.groups);
    SAME(a->tensors, b->tensors, shape.tensors);
    SAME(a->tensor_digests, b->tensor_digests, shape.tensors);
    SAME(a->phases, b->phases, shape.phases);
    SAME(a->sites, b->sites, shape.sites);
    SAME(a->micros, b->micros, shape.micros);
}

/* Checks that what `part` holds is the beginning of what `whole` holds; returns its updates. */
static uint64_t require_prefix(const struct trace_image *part, const struct trace_image *whole) {
    uint64_t updates = 0;
    assert_int_equal(part->run_count, whole->run_count);
    for (uint32_t r = 0; r < part->run_count; r++) {
        const struct trace_run *a = &part->runs[r], *b = &whole->runs[r];
        assert_string_equal(a->plan.id, b->plan.id);
        assert_true(a->updates <= b->updates);
        for (uint64_t i = 0; i < a->updates; i++)
            require_same_record(&a->records[i], &b->records[i], b->plan.shape);
        updates += a->updates;
    }
    assert_true(part->pairs[0].updates <= part->runs[0].updates);
    for (uint64_t i = 0; i < part->pairs[0].updates; i++) {
        const struct pair_record *a = &part->pairs[0].records[i], *b = &whole->pairs[0].records[i];
        SAME(a->reals, b->reals, RECORD_PAIRS);
        SAME(a->gaps, b->gaps, RECORD_REALS);
        SAME(a->integers, b->integers, RECORD_PAIR_INTEGERS);
    }
    return updates;
}

static uint64_t updates_of(const struct trace_image *image) {
    uint64_t updates = 0;
    for (uint32_t r = 0; r < image->run_count; r++)
        updates += image->runs[r].updates;
    return updates;
}

static void require_open(const char *path, struct arena *arena, struct trace_image **out) {
    if (trace_open(path, arena, out) != STATUS_OK) fail_msg("%s", status_text());
}

static uint64_t check_killed(const struct trace_image *whole, int with_h5py) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    require_open("kill.h5.part", &arena, &image);
    uint64_t updates = require_prefix(image, whole);
    assert_true(updates >= 1);
    if (image->complete) assert_int_equal(updates, updates_of(whole)); /* only the name was left */
    if (with_h5py) read_with_h5py("kill.h5.part", image);
    struct said part = helper_say((const char *const[]){"attribute", "kill.h5.part", NULL}, NULL);
    assert_true(part.code == 3 || part.code == 1); /* 1: only the verdict was not written yet */
    assert_string_equal(part.err, "");
    helper_accept(0, "recover kill.h5.part");
    struct said made = helper_say((const char *const[]){"attribute", "kill.h5", NULL}, NULL);
    assert_int_equal(made.code, part.code);
    assert_string_equal(made.out, part.out);
    require_open("kill.h5", &arena, &image);
    assert_int_equal(require_prefix(image, whole), updates);
    helper_free(&part);
    helper_free(&made);
    arena_close(&arena);
    return updates;
}

/* Starts a run, waits for the first update and then a random while, and kills it. Returns 0 where
 * it was done before. */
static int kill_once(long most) {
    unlink("kill.h5");
    unlink("kill.h5.part");
    pid_t child = helper_start("run kill.yaml");
    assert_true(wait_for(child, "kill.h5.part", "baseline", 1));
    pass(rand() % (most + 1));
    kill(child, SIGKILL);
    return helper_wait(child) == 256 + SIGKILL;
}

static int wanted_kills(void) {
    const char *text = getenv("TWINSTEP_KILLS");
    return text == NULL ? KILLS : (int)strtol(text, NULL, 10);
}

static void verify_kills_lose_no_update(void **state) {
    (void)state;
    const int wanted = wanted_kills();
    struct arena arena = ARENA_EMPTY;
    struct trace_image *whole;
    uint64_t updates = 0, least = UINT64_MAX, most = 0;
    int killed = 0, tried = 0;
    helper_scenario("kill.yaml", "steps: 20\n" RECORD, "seed: 3",
                    "numerics: {rope: bf16}, " LATE_LOOP);
    long start = now();
    helper_accept(1, "run kill.yaml -o whole.h5");
    long spent = now() - start;
    require_open("whole.h5", &arena, &whole);
    const int with_h5py = h5py_is_there();
    if (!with_h5py) print_message("h5py: left out, /usr/bin/python3 cannot import it\n");
    srand(20241103);
    while (killed < wanted && tried++ < 20 * wanted) {
        if (!kill_once(spent)) continue;
        if (!helper_exists("kill.h5.part")) continue; /* just renamed */
        uint64_t got = check_killed(whole, with_h5py && killed % 6 == 0);
        updates += got;
        least = got < least ? got : least;
        most = got > most ? got : most;
        killed++;
    }
    assert_int_equal(killed, wanted);
    print_message("%d kills in %d runs: %llu updates, from %llu to %llu of %llu\n", killed, tried,
                  (unsigned long long)updates, (unsigned long long)least, (unsigned long long)most,
                  (unsigned long long)updates_of(whole));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_interrupt),
        cmocka_unit_test(validate_terminate),
        cmocka_unit_test(validate_hangup),
        cmocka_unit_test(validate_interrupt_of_second_process),
        cmocka_unit_test(verify_kills_lose_no_update),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
