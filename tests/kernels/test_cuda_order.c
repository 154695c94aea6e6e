/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The orders that the device's kernel draws must be those of kernels/shuffle.c: for every number of
 * chunks near a power of two, for the largest number there is, in any batch, at any address. */
#define TWINSTEP_VARIANT f32_f32_order
#define TWINSTEP_CARRIER_f32 1
#define TWINSTEP_ACCUMULATOR_f32 1
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "tests/shim/shim_port.h"
#include "kernels/cuda/joined.h"

static struct arena arena = ARENA_EMPTY;
static void *device, *host;

static int open_memory(void **state) {
    (void)state;
    unsigned char *a = NULL, *b = NULL;
    const size_t bytes = shuffle_bytes(SHUFFLE_CHUNKS);
    if (arena_take(&arena, CUDA_ORDER_BYTES + bytes + 256, 1, "orders", &a) != STATUS_OK) return 1;
    b = a + CUDA_ORDER_BYTES + 64;
    memset(a, 0xa5, CUDA_ORDER_BYTES);
    device = a;
    host = b;
    return 0;
}

static int close_memory(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

/* Compares tiles first .. first+tiles-1 of a call. */
static void assert_same(const struct op_call *call, enum op_pass pass, uint32_t chunks,
                        size_t first, size_t tiles, size_t columns) {
    const struct shuffle own = order_open(call, pass), theirs = shuffle_open(call, pass);
    assert_memory_equal(&own.site, &theirs.site, sizeof own.site);
    assert_true(tiles <= order_batch(&own, chunks, tiles));
    const struct joined by = order_draw(call, &own, chunks, first, tiles, columns);
    assert_int_equal(shim_error(), STATUS_OK);
    for (size_t t = 0; t < tiles; t++) {
        const size_t tile = first + t;
        const uint32_t *const order =
            shuffle_order(&theirs, tile / columns, tile % columns, chunks, host);
        assert_memory_equal(by.order + t * chunks, order, chunks * sizeof *order);
    }
}

static void corroborate_host_orders(void **state) {
    (void)state;
    static const uint32_t chunks[] = {1, 2, 3, 15, 16, 17, 127, 128, 129, 255, 257, 1000, 2049};
    const struct order order = {
        .seed = 0x9e3779b97f4a7c15u, .kinds = SUM_FORWARD, .chunk = 16, .update = 7, .sample = 41};
    const struct op_call call = {
        .order = &order, .site = SITE_DOWN_BIAS, .layer = 12, .side = 1, .scratch = device};
    for (size_t c = 0; c < COUNT_OF(chunks); c++) {
        assert_same(&call, PASS_WEIGHT, chunks[c], 0, 3, 2);
        assert_same(&call, SHUFFLE_PASS_ROW, chunks[c], 5, 2, 3);
    }
}

/* The table must have room for one tile of the largest number of chunks, and no batch may be larger
 * than the table. */
static void corroborate_largest(void **state) {
    (void)state;
    const struct order order = {.seed = 3, .kinds = SUM_NORM, .chunk = 1, .update = 1};
    const struct op_call call = {.order = &order, .site = SITE_GRADIENT_NORM, .scratch = device};
    const struct shuffle own = order_open(&call, PASS_FORWARD);
    assert_same(&call, PASS_FORWARD, SHUFFLE_CHUNKS, 0, 1, 1);
    for (uint32_t chunks = 1; chunks <= SHUFFLE_CHUNKS; chunks += 61) {
        const size_t batch = order_batch(&own, chunks, SIZE_MAX);
        assert_true(batch >= 1 && batch * order_tile_bytes(chunks) <= CUDA_ORDER_BYTES);
    }
}

static void verify_shaped_has_no_table(void **state) {
    (void)state;
    const struct op_call call = {.scratch = device};
    const struct shuffle split = order_split(3, 100), theirs = shuffle_split(3, 100);
    const struct joined by = order_draw(&call, &split, 3, 0, 9, 3);
    assert_int_equal(split.chunk, theirs.chunk);
    assert_null(by.order);
    assert_int_equal(joined_chunk(&by, 5, 2), 2);
    assert_int_equal(order_batch(&split, 3, 9), 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_host_orders),
        cmocka_unit_test(corroborate_largest),
        cmocka_unit_test(verify_shaped_has_no_table),
    };
    return cmocka_run_group_tests(tests, open_memory, close_memory);
}
