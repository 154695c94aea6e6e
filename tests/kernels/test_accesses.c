/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The access watcher (tests/shim/accesses.h) finds what is wrong in planted kernels, and finds
 * nothing in right ones. What is wrong is known because it was planted. This file is compiled with
 * -fsanitize=thread, without its library; it is skipped in builds with another sanitizer.
 * (test_cuda_watched watches all kernels of kernels/cuda/.) */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/shim/shim_port.h"
#include "tests/shim/accesses.h"

enum {
    RIGHT,
    NO_BARRIER,
    LOST_UPDATE,
    BLOCKS,
    UNWRITTEN,
    BEYOND,
    FOREIGN,
    PAST_THE_END,
    PLAIN_AND_ATOMIC,
    SHUFFLE_IS_NONE,
    MISALIGNED,
    HOWS
};

struct planted {
    float *out; /* (128) */
    const double *wide;
    uint32_t *count, *foreign;
    int how;
};

/* Needs two warps: one warp alone would do everything in order, and no race could be found. */
KERNEL(plant, struct planted) {
    SHARED(float, at);
    at[THREAD] = (float)THREAD;
    if (args->how != NO_BARRIER) BARRIER();
    const float next = at[(THREAD + 33) % THREADS];
    BARRIER();
    at[THREAD] = next;
    if (args->how == LOST_UPDATE) *args->count += 1;
    if (args->how == BLOCKS && THREAD == 0) args->out[0] = next;
    if (args->how == UNWRITTEN) args->out[BLOCK * THREADS + THREAD] = at[THREADS + THREAD];
    if (args->how == BEYOND && THREAD == 7) args->out[BLOCK * THREADS] = at[2 * THREADS];
    if (args->how == FOREIGN && THREAD == 7) *args->foreign = 1;
    if (args->how == PAST_THE_END && THREAD == 7) args->out[3] = (float)*args->wide;
    if (args->how == MISALIGNED && THREAD == 4) gpu_store4_f32(at + 66, at + 4);
    if (args->how == SHUFFLE_IS_NONE) {
        args->out[BLOCK * THREADS + THREAD] = next;
        const float other = gpu_shuffle_xor_f32(GPU_ARG next, 1);
        at[THREAD] = other + args->out[BLOCK * THREADS + (THREAD ^ 1)];
    }
    if (args->how == PLAIN_AND_ATOMIC && THREAD == 40) *args->count = 0;
    if (args->how == RIGHT) {
        args->out[BLOCK * THREADS + THREAD] = next;
        WARP_BARRIER();
        const float other = args->out[BLOCK * THREADS + (THREAD ^ 1)];
        WARP_BARRIER();
        args->out[BLOCK * THREADS + THREAD] = other;
    }
    gpu_atomic_add_u32(GPU_ARG args->count, 1);
}

static enum status run(int how, uint64_t seed) {
    static float out[128];
    static double wide[2];
    static uint32_t count;
    static uint32_t foreign;
    const struct planted args = {out, wide, &count, &foreign, how};
    watch_memory(out, sizeof out);
    watch_memory(wide, sizeof wide[0] - 1); /* its last byte is nobody's */
    watch_memory(&count, sizeof count);
    shim_seed(seed);
    LAUNCH(plant, 2, 64, 128 * sizeof(float), &args);
    GPU_WAIT();
    watch_forget(out);
    watch_forget(wide);
    watch_forget(&count);
    return shim_error();
}

static const char *const texts[HOWS] = {
    [NO_BARRIER] = "no barrier between them",
    [LOST_UPDATE] = "no barrier between them",
    [BLOCKS] = "no barrier between them",
    [UNWRITTEN] = "reads shared memory that its block has not written",
    [BEYOND] = "outside its shared memory",
    [FOREIGN] = "touches memory that a device does not see",
    [PAST_THE_END] = "touches memory that a device does not see",
    [SHUFFLE_IS_NONE] = "no barrier between them",
    [MISALIGNED] = "at an address that is no multiple of 16",
    [PLAIN_AND_ATOMIC] = "no barrier between them",
};

static void validate_findings(void **state) {
    (void)state;
    for (int how = 1; how < HOWS; how++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            if (run(how, seed) == STATUS_OK)
                fail_msg("planted %d, seed %d: not found", how, (int)seed);
            /* a thread that comes first may read what is not yet written: another finding, and as
             * right */
            if (how == NO_BARRIER && strstr(status_text(), texts[UNWRITTEN]) != NULL) continue;
            if (strstr(status_text(), texts[how]) == NULL)
                fail_msg("planted %d: expected \"...%s...\", got \"%s\"", how, texts[how],
                         status_text());
        }
}

static void verify_right_kernel(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++)
        if (run(RIGHT, seed) != STATUS_OK) fail_msg("%s", status_text());
}

/* One launch visits places of 2.7 MiB, all of which the watcher must remember; and what one launch
 * did must not count against the next. */
#define PLACES 700000u

struct sweep {
    float *out;       /* (PLACES) */
    size_t at, count; /* the element that the first thread reads, whoever wrote it */
    int waits, alone; /* alone: one thread writes */
};

KERNEL(sweep, struct sweep) {
    const size_t step = args->alone ? 1 : THREADS, from = args->alone ? 0 : THREAD;
    for (size_t i = from; i < args->count && (!args->alone || THREAD == 32); i += step)
        args->out[i] = (float)i;
    if (args->waits) BARRIER();
    if (THREAD == 0) args->out[PLACES] = args->out[args->at];
}

static enum status sweep_once(const struct sweep *args, uint64_t seed) {
    shim_seed(seed);
    LAUNCH(sweep, 1, 64, 0, args);
    return shim_error();
}

static void verify_many_places(void **state) {
    (void)state;
    static float out[PLACES + 1];
    static const size_t at[] = {1, 1000, PLACES / 2 + 1, PLACES - 1};
    for (uint64_t seed = 0; seed < 8; seed++) {
        const size_t i = at[seed % COUNT_OF(at)];
        const struct sweep alone = {out, i, PLACES, 0, 1}, right = {out, i, PLACES, 1, 0};
        const struct sweep wrong = {out, i, PLACES, 0, 0}, few = {out, i, 1, 0, 0};
        watch_close(); /* it has remembered nothing yet */
        assert_int_equal(watch_open(), STATUS_OK);
        watch_memory(out, sizeof out);
        assert_int_equal(sweep_once(&alone, seed), STATUS_INTERNAL);
        assert_non_null(strstr(status_text(), "no barrier between them"));
        assert_int_equal(sweep_once(&wrong, seed), STATUS_INTERNAL);
        assert_non_null(strstr(status_text(), "no barrier between them"));
        if (sweep_once(&right, seed) != STATUS_OK) fail_msg("%s", status_text());
        if (sweep_once(&few, seed) != STATUS_OK) fail_msg("%s", status_text());
    }
    watch_forget(out);
}

/* Watches many pieces of memory, named in any order and with gaps between them, of which one is
 * forgotten again. */
#define PIECES 3000u

struct visits {
    uint32_t *piece; /* (2 * PIECES) */
    uint32_t first;
};

KERNEL(visit, struct visits) {
    for (uint32_t i = args->first + THREAD; i < PIECES; i += THREADS)
        args->piece[2 * i] = i;
}

static enum status visit_from(uint32_t *piece, uint32_t first) {
    const struct visits args = {piece, first};
    LAUNCH(visit, 1, 64, 0, &args);
    return shim_error();
}

static void verify_many_pieces(void **state) {
    (void)state;
    static uint32_t piece[2 * PIECES];
    for (uint32_t i = 0; i < PIECES; i++)
        watch_memory(&piece[2 * (i * 7 % PIECES)], sizeof *piece);
    if (visit_from(piece, 0) != STATUS_OK) fail_msg("%s", status_text());
    watch_forget(&piece[2 * 1500]);
    watch_forget(&piece[1]); /* nobody's */
    assert_int_equal(visit_from(piece, 0), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), texts[FOREIGN]));
    if (visit_from(piece, 1501) != STATUS_OK) fail_msg("%s", status_text());
    for (uint32_t i = 0; i < PIECES; i++)
        watch_forget(&piece[2 * i]);
    assert_int_equal(visit_from(piece, PIECES - 1), STATUS_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_findings),
        cmocka_unit_test(verify_right_kernel),
        cmocka_unit_test(verify_many_places),
        cmocka_unit_test(verify_many_pieces),
    };
#if !defined(TWINSTEP_WATCHED)
    (void)tests;
    return 77;
#else
    if (watch_open() != STATUS_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    watch_close();
    shim_close();
    return failed;
#endif
}
