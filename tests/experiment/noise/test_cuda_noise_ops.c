/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * The ladder of operations on a backend (kernels/cuda/ run by the shim): all must be bit-equal in
 * mode invariant; sums by atomics must differ from one call to the next, which drawn orders never
 * may. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/noise/noise_ops.h"
#include "kernels/backend_module.h"
#include "tests/kernels/helper_variables.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"

static void measure(const char *mode, struct arena *arena, const struct noise_ops_row **out,
                    uint32_t *out_count) {
    struct noise_ops_request request = {mode, DTYPE_F32, 2, NULL, NULL, NULL};
    assert_int_equal(backend_module_open(SHIM, &request.backend), STATUS_OK);
    if (noise_ops_measure(&request, arena, out, out_count) != STATUS_OK)
        fail_msg("%s: %s", mode, status_text());
    assert_true(*out_count >= 16);
    for (uint32_t i = 0; i < *out_count; i++) /* a device's threads are not asked for */
        assert_string_equal((*out)[i].cells[NOISE_OPS_THREADS].untestable, "the device's own");
}

static void expect(const char *mode, int rows, int repeats) {
    struct arena arena = ARENA_EMPTY;
    const struct noise_ops_row *list;
    uint32_t count, apart[NOISE_OPS_CLASSES] = {0};
    measure(mode, &arena, &list, &count);
    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < NOISE_OPS_CLASSES; c++)
            apart[c] += list[i].cells[c].equal == 0;
    if ((apart[NOISE_OPS_BATCH] > 0) != rows || (apart[NOISE_OPS_REPEAT] > 0) != repeats ||
        (apart[NOISE_OPS_ALIGNMENT] > 0) != repeats)
        fail_msg("%s: %u batch, %u repeat, %u alignment", mode, apart[NOISE_OPS_BATCH],
                 apart[NOISE_OPS_REPEAT], apart[NOISE_OPS_ALIGNMENT]);
    arena_close(&arena);
}

static void verify_invariant(void **state) {
    (void)state;
    expect("invariant", 0, 0);
}

static void verify_shuffled(void **state) {
    (void)state;
    expect("shuffled", 1, 0);
}

static void verify_atomic(void **state) {
    (void)state;
    expect("atomic", 1, 1);
}

/* Watches every read and write of one op's ladder: calls of up to 520 rows of 1024 numbers. */
static void verify_watched(void **state) {
    (void)state;
#if defined(TWINSTEP_WATCHED)
    struct arena arena = ARENA_EMPTY;
    const struct noise_ops_row *list;
    struct noise_ops_request request = {"invariant", DTYPE_F32, 2, NULL, NULL, "norm"};
    uint32_t count;
    assert_int_equal(
        backend_module_open(TWINSTEP_BACKENDS "/twinstep_backend_watch.so", &request.backend),
        STATUS_OK);
    if (noise_ops_measure(&request, &arena, &list, &count) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_true(count >= 1);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(list[i].op, "norm");
        assert_true(list[i].cells[NOISE_OPS_BATCH].equal && list[i].cells[NOISE_OPS_REPEAT].equal);
    }
    arena_close(&arena);
#else
    skip();
#endif
}

/* A mode that no backend has is refused by name. */
static void verify_refused(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct noise_ops_row *list;
    struct noise_ops_request request = {"order-free", DTYPE_F32, 2, NULL, NULL, NULL};
    uint32_t count;
    assert_int_equal(backend_module_open(SHIM, &request.backend), STATUS_OK);
    assert_int_equal(noise_ops_measure(&request, &arena, &list, &count), STATUS_UNSUPPORTED);
    arena_close(&arena);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_invariant), cmocka_unit_test(verify_shuffled),
        cmocka_unit_test(verify_atomic),    cmocka_unit_test(verify_watched),
        cmocka_unit_test(verify_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
