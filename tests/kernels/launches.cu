/* SPDX-License-Identifier: Apache-2.0
 * The LAUNCH of kernels/cuda/port.h as nvcc compiles it. A launch that no device can take must not
 * be started and must be reported by the kernel's name; so must what the CUDA runtime says of a
 * start, here that there is no device. With a device, the start succeeds and nothing is reported.
 * launches.py compiles and runs this file. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/port.h"

static char told[400];
static int tellings; /* by what is refused one; by a start without a device another */

void module_tell_launch(const char *kernel, const char *why) {
    if (tellings++ == 0) snprintf(told, sizeof told, "kernel %s: %s", kernel, why);
}

uint64_t module_work(unsigned more) {
    static uint64_t count;
    return count += more;
}

struct mark {
    unsigned *out;
};

KERNEL(mark_kernel, struct mark) {
    if (args->out != NULL) args->out[BLOCK] = THREAD;
}

static const struct launch_case {
    size_t grid, block, shared;
    const char *text; /* NULL: the runtime is asked */
} cases[] = {
    {LIMITS_GRID + 1, 32, 0, "got 2147483648 blocks of 32 threads and 0 bytes"},
    {((size_t)1 << 32) + 1, 32, 0, "got 4294967297 blocks of 32 threads"},
    {SIZE_MAX, 32, 0, "got 18446744073709551615 blocks of"},
    {1, LIMITS_BLOCK + 1, 0, "blocks of 1025 threads"},
    {1, 0, 0, "blocks of 0 threads"},
    {1, 32, LIMITS_SHARED + 1, "and 101377 bytes"},
    {1, 1024, LIMITS_SHARED, NULL},
    {LIMITS_GRID, 32, 0, NULL},
};

static int fail(const struct launch_case *c, const char *what) {
    printf("%zu blocks of %zu threads and %zu bytes: %s, told \"%s\"\n", c->grid, c->block,
           c->shared, what, told);
    return 1;
}

static int try_case(const struct launch_case *c, int has_device) {
    const struct mark args = {NULL};
    told[0] = 0;
    tellings = 0;
    (void)cudaGetLastError();
    if (has_device && c->grid == LIMITS_GRID) return 0; /* it would run */
    LAUNCH(mark_kernel, c->grid, c->block, c->shared, &args);
    const cudaError_t error = cudaPeekAtLastError();
    if (c->text != NULL) {
        if (tellings != 1) return fail(c, "expected no start");
        const int named = strncmp(told, "kernel mark_kernel: expected 1 to ", 34) == 0;
        return named && strstr(told, c->text) != NULL ? 0 : fail(c, c->text);
    }
    if ((error == cudaSuccess) != has_device) return fail(c, "expected the runtime's word");
    if (has_device) return told[0] == 0 ? 0 : fail(c, "expected a start");
    return strstr(told, cudaGetErrorString(error)) != NULL ? 0 : fail(c, "expected its text");
}

int main(void) {
    const struct launch_case nothing = {0, 32, 0, NULL};
    const struct mark args = {NULL};
    int devices = 0, failed = 0;
    const int has_device = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
    (void)cudaGetLastError();
    LAUNCH(mark_kernel, nothing.grid, nothing.block, nothing.shared, &args);
    if (tellings != 0) failed += fail(&nothing, "expected nothing");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        failed += try_case(&cases[i], has_device);
    printf("%s device: %d of %zu launches wrong\n", has_device ? "a" : "no", failed,
           1 + sizeof cases / sizeof cases[0]);
    return failed != 0;
}
