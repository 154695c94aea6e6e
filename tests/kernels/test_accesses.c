/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What kernels/cuda/accesses.h finds in planted kernels, and that it finds nothing in right ones.
 * This file is compiled with -fsanitize=thread, without its library; skipped in builds with another
 * sanitizer. (test_cuda_watched holds all kernels of kernels/cuda/ to it.) */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cuda/port.h"
#include "kernels/cuda/accesses.h"

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

/* One warp would do it all in order; two do not. */
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
        args->out[BLOCK * THREADS + THREAD] = gpu_shuffle_xor_f32(GPU_ARG next, 1);
        const float other = args->out[BLOCK * THREADS + (THREAD ^ 1)];
        at[THREAD] = gpu_shuffle_xor_f32(GPU_ARG other, 1);
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
            /* who comes first may read what is not yet written */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_findings),
        cmocka_unit_test(verify_right_kernel),
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
