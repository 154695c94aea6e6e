/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * States whose tensors the host must not touch: every byte of them counts in a comparison, whoever
 * has them; a state that is kept comes back, also into a run of another machine, and where the
 * device has no room for it; and a touch by the host ends with SIGSEGV. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "kernels/backend_abi.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"

struct bench {
    struct arena arena;
    struct config config[2];
    struct dataset dataset[2];
    struct run run[2];
};

/* Opens two runs that differ in their machine alone: NULL is the CPU. Their first update has left
 * something in every piece of the state, since nothing is cleared. */
static void bench_open(struct bench *bench, const char *const modules[2]) {
    const struct run_options options = {.readback = 1, .steps = 2};
    bench->arena = (struct arena)ARENA_EMPTY;
    for (int i = 0; i < 2; i++) {
        struct config *const config = &bench->config[i];
        helper_config(2, config,
                      "task: sft, init: {std: 0.3}, batch: {size: 2, micro: 1}, optimizer: {lr: "
                      "1e-2}, model: {family: llama, layers: 1, hidden: 8, heads: 2, kv_heads: 1, "
                      "mlp: 12, vocab: 19, tied: true}, loop: {update: [optimize, log, count, "
                      "schedule]}, numerics: {param: bf16, compute: bf16, master: f32}");
        if (modules[i] != NULL) {
            config->numerics.backend = BACKEND_CUDA;
            snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s",
                     modules[i]);
        }
        helper_ids_open(config, 7, 8, 9, &bench->arena, &bench->dataset[i]);
        helper_run_open(config, &bench->dataset[i], &options, &bench->run[i]);
        (void)helper_step(&bench->run[i]);
    }
}

static void bench_close(struct bench *bench) {
    for (int i = 0; i < 2; i++)
        run_close(&bench->run[i]);
    arena_close(&bench->arena);
}

static int equal(const struct run *a, const struct run *b) {
    int out = 2;
    assert_int_equal(run_equal(a, b, &out), STATUS_OK);
    return out;
}

static int equal_kept(const struct run *run, const struct run_kept *kept) {
    int out = 2;
    assert_int_equal(run_kept_equal(run, kept, &out), STATUS_OK);
    return out;
}

/* Exchanges a bit of the byte at `offset`. */
static void flip(struct run *run, size_t offset, unsigned bit, unsigned char *room) {
    assert_int_equal(run_snapshot(run, room), STATUS_OK);
    room[offset] ^= (unsigned char)(1u << bit);
    assert_int_equal(run_restore(run, room), STATUS_OK);
}

/* With a sanitizer each test takes one: the shim beside itself, or before the CPU. */
static const char *const machines[][2] = {{SHIM, SHIM}, {NULL, SHIM}, {SHIM, NULL}, {NULL, NULL}};

/* A bit of the first and of the last byte of each piece of a tensor, of the head and of the whole
 * state, the sign of a number among them. */
static void verify_every_byte_counts(void **state) {
    (void)state;
    for (size_t m = 0; m < COUNT_OF(machines); m += helper_size(4, 1, 1)) {
        struct bench bench;
        bench_open(&bench, machines[m]);
        struct run *const a = &bench.run[0], *const b = &bench.run[1];
        const struct state_layout *const layout = &b->layout;
        const struct state_tensor *const tensor = &layout->tensor[0];
        const size_t last = b->table.rows[0].count * sizeof(float) - 1;
        const size_t first[] = {0,
                                layout->tensors,
                                tensor->param,
                                tensor->master,
                                tensor->gradient,
                                tensor->accumulator[0],
                                tensor->accumulator[1],
                                tensor->slot[0],
                                tensor->slot[1],
                                layout->bytes - 1 - last};
        unsigned char *room;
        struct run_kept kept;
        assert_int_equal(arena_take(&bench.arena, layout->bytes, 1, "state", &room), STATUS_OK);
        assert_int_equal(run_kept_open(a, &kept), STATUS_OK);
        assert_int_equal(run_keep(a, &kept), STATUS_OK);
        assert_true(equal(a, b));
        for (size_t i = 0; i < COUNT_OF(first); i++)
            for (int end = 0; end < 2; end++) {
                const size_t at = end && first[i] >= layout->tensors ? first[i] + last : first[i];
                const unsigned bit = end ? 7 : 0;
                flip(b, at, bit, room);
                if (equal(a, b) || equal(b, a)) fail_msg("machines %zu, byte %zu", m, at);
                flip(b, at, bit, room);
                assert_true(equal(a, b) && equal(b, a));
                flip(a, at, bit, room);
                if (equal_kept(a, &kept)) fail_msg("kept, machines %zu, byte %zu", m, at);
                flip(a, at, bit, room);
                assert_true(equal_kept(a, &kept));
            }
        run_kept_close(&kept);
        bench_close(&bench);
    }
}

/* A kept state comes back into its own run and into one of the other machine, and both go on
 * alike. */
static void verify_kept_states_come_back(void **state) {
    (void)state;
    for (size_t m = helper_size(2, 0, 0); m < COUNT_OF(machines); m += helper_size(2, 1, 1)) {
        struct bench bench;
        struct run_kept kept;
        bench_open(&bench, machines[m]);
        struct run *const a = &bench.run[0], *const b = &bench.run[1];
        assert_int_equal(run_kept_open(a, &kept), STATUS_OK);
        assert_true(kept.backend == a->backend);
        assert_int_equal(run_keep(a, &kept), STATUS_OK);
        (void)helper_step(a);
        struct digest root = run_state_head(a)->root;
        for (int i = 0; i < 2; i++) {
            assert_false(equal_kept(a, &kept));
            assert_int_equal(run_take_back(&bench.run[i], &kept), STATUS_OK);
            (void)helper_step(&bench.run[i]);
            assert_int_equal(digest_compare(&run_state_head(&bench.run[i])->root, &root), 0);
        }
        assert_true(equal(a, b));
        run_kept_close(&kept);
        bench_close(&bench);
    }
}

static enum status no_room(size_t bytes, void **out) {
    (void)out;
    FAIL(STATUS_MEMORY, "no room for %zu bytes", bytes);
}

/* Where the device has no room for one more state the host keeps it. */
static void verify_kept_by_the_host(void **state) {
    (void)state;
    struct bench bench;
    struct run_kept kept;
    bench_open(&bench, machines[0]);
    struct run *const run = &bench.run[0];
    const struct backend *const own = run->backend;
    struct backend full = *own;
    full.hidden.take = no_room;
    run->backend = &full;
    assert_int_equal(run_kept_open(run, &kept), STATUS_OK);
    assert_null(kept.backend);
    run->backend = own;
    assert_int_equal(run_keep(run, &kept), STATUS_OK);
    assert_true(equal_kept(run, &kept));
    (void)helper_step(run);
    const struct digest root = run_state_head(run)->root;
    assert_false(equal_kept(run, &kept));
    assert_int_equal(run_take_back(run, &kept), STATUS_OK);
    (void)helper_step(run);
    assert_int_equal(digest_compare(&run_state_head(run)->root, &root), 0);
    run_kept_close(&kept);
    bench_close(&bench);
}

/* ---- the shim's protection ---- */

static sigjmp_buf back;

static void jump_back(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static volatile unsigned char seen;

/* Whether reading a byte (or writing it) ends in SIGSEGV. */
static int is_closed(void *memory, int writes) {
    struct sigaction caught = {.sa_handler = jump_back}, before;
    assert_int_equal(sigemptyset(&caught.sa_mask), 0);
    assert_int_equal(sigaction(SIGSEGV, &caught, &before), 0);
    volatile int closed = 1;
    if (sigsetjmp(back, 1) == 0) {
        if (writes)
            *(volatile unsigned char *)memory = 1;
        else
            seen = *(volatile unsigned char *)memory;
        closed = 0;
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    return closed;
}

/* Tensors of every kind are closed to the host, before ops have run and behind them; what both see
 * is open. */
static void verify_the_host_cannot_touch(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, machines[1]);
    for (int i = 0; i < 2; i++) {
        struct run *const run = &bench.run[i];
        void *const tensors[] = {
            run->state.tensors, run->state.tensors + (run->layout.bytes - run->layout.tensors - 1),
            run->initial,       run->before,
            run->working,       run->moment,
            run->model.buffers, run->model.call.scratch,
            run->model.cosine};
        assert_true((run->moment == NULL) == (i == 0)); /* the CPU keeps pieces, inside the step */
        for (size_t t = 0; t < COUNT_OF(tensors); t++)
            for (int writes = 0; writes < 2; writes++)
                if (tensors[t] != NULL && is_closed(tensors[t], writes && i == 1) != (i == 1))
                    fail_msg("tensor %zu of the %s", t, i == 1 ? "shim" : "CPU");
        assert_false(is_closed(run->state.host, 0));
        assert_false(is_closed(run->model.logp, 0));
        assert_false(is_closed(run->batch.lists, 0));
    }
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_byte_counts),
        cmocka_unit_test(verify_kept_states_come_back),
        cmocka_unit_test(verify_kept_by_the_host),
        cmocka_unit_test(verify_the_host_cannot_touch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
