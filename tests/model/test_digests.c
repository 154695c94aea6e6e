/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Digests of several tensors through a backend that makes leaf hashes only when somebody waits for
 * it: they must be those of digest_tensor, in one turn or in several, and the errors must be the
 * same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "determinism/carrier.h"
#include "kernels/backend_abi.h"
#include "model/digests.h"

#define JOBS 6
#define NUMBERS 40000

/* A backend that can be asked for leaf hashes and for nothing else. */
static struct {
    struct leaf_hashes_args asked[2 * JOBS];
    size_t count, calls, most, waits, made;
    int broken;
} device;

static void ask_leaves(const struct leaf_hashes_args *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(device.count < COUNT_OF(device.asked));
        device.asked[device.count++] = tensors[i];
    }
    device.calls++;
    if (device.count > device.most) device.most = device.count;
}

/* Hashes one block's bytes in the dtype's own format, as leafhash.c does. */
static void make_leaf(const struct leaf_hashes_args *args, size_t leaf) {
    static uint32_t words[LEAFHASH_BLOCK / sizeof(uint32_t)];
    const size_t width = dtype_width(args->form.dtype), block = LEAFHASH_BLOCK / width;
    const size_t first = leaf * block;
    const size_t count = args->count - first < block ? args->count - first : block;
    const unsigned char *const values = (const unsigned char *)args->values;
    struct leafhash_leaf *const out = &args->leaves[leaf];
    struct leafhash hash;
    memset(words, 0, sizeof words);
    memset(out, 0, sizeof *out);
    out->misfit[7] =
        carrier_pack(args->form.dtype, values + first * dtype_carrier(args->form.dtype), count,
                     words) != count;
    leafhash_init(&hash);
    leafhash_absorb(&hash, words, count * width);
    leafhash_close(&hash, (uint8_t *)out->lane);
}

static enum status wait_leaves(void) {
    device.waits++;
    if (device.broken) FAIL(STATUS_INTERNAL, "the device is broken");
    for (size_t i = 0; i < device.count; i++)
        for (size_t leaf = 0;
             leaf < leaf_hashes_count(device.asked[i].form.dtype, device.asked[i].count);
             leaf++, device.made++)
            make_leaf(&device.asked[i], leaf);
    device.count = 0;
    return STATUS_OK;
}

/* The tensors of this backend are the host's; it copies none that it hashes. */
static enum status pull_here(void *to, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
    return STATUS_OK;
}

static const struct backend backend = {
    .wait = wait_leaves, .leaf_hashes = ask_leaves, .pull = pull_here};

/* The tensors have several shapes and dtypes, and 1, 2, 1, 0, 3 and 1 leaf hashes. */
struct problem {
    struct arena arena;
    float values[NUMBERS];
    double wide[3];
    struct digest got[JOBS], want[JOBS];
    struct digest_job jobs[JOBS];
};
#define LEAVES 8u
#define LARGEST 3u

static struct problem problem;

static int open_problem(void **state) {
    static const struct digest_job jobs[JOBS] = {
        {"a", {DTYPE_BF16, 4}, 2, {20, 50}, problem.values, &problem.got[0], NULL},
        {"b", {DTYPE_F32, 4}, 1, {16385, 0}, problem.values, &problem.got[1], NULL},
        {"c", {DTYPE_F64, 8}, 1, {3, 0}, problem.wide, &problem.got[2], NULL},
        {"d", {DTYPE_F32, 4}, 2, {0, 50}, problem.values, &problem.got[3], NULL},
        {"e", {DTYPE_TF32, 4}, 2, {400, 100}, problem.values, &problem.got[4], NULL},
        {"f", {DTYPE_E5M2, 4}, 0, {0, 0}, problem.values + 1, &problem.got[5], NULL},
    };
    (void)state;
    memset(&problem, 0, sizeof problem);
    memset(&device, 0, sizeof device);
    memcpy(problem.jobs, jobs, sizeof jobs);
    for (size_t i = 0; i < NUMBERS; i++)
        problem.values[i] = (float)(i % 199) * 0.25f;
    for (size_t i = 0; i < COUNT_OF(problem.wide); i++)
        problem.wide[i] = 0.1 * (double)i;
    for (size_t i = 0; i < JOBS; i++) {
        const struct digest_job *const job = &problem.jobs[i];
        assert_int_equal(digest_tensor(job->name, job->form.dtype, job->rank, job->shape, job->data,
                                       &problem.want[i]),
                         STATUS_OK);
    }
    return 0;
}

static int close_problem(void **state) {
    (void)state;
    arena_close(&problem.arena);
    return 0;
}

static void open_digests(const struct backend *by, size_t leaves, size_t jobs,
                         struct digests *out) {
    assert_int_equal(digests_open(by, 2, leaves, jobs, &problem.arena, out), STATUS_OK);
}

static void add_all(struct digests *digests) {
    for (size_t i = 0; i < JOBS; i++)
        if (digests_add(digests, &problem.jobs[i]) != STATUS_OK) fail_msg("%s", status_text());
}

static void assert_done(void) {
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(digest_compare(&problem.got[i], &problem.want[i]), 0);
}

static void corroborate_one_turn(void **state) {
    (void)state;
    struct digests digests;
    open_digests(&backend, LEAVES, JOBS, &digests);
    for (size_t turn = 1; turn <= 2; turn++) { /* its memory serves again */
        memset(problem.got, 0, sizeof problem.got);
        add_all(&digests);
        assert_int_equal(device.waits, turn - 1);
        assert_int_equal(digests_finish(&digests), STATUS_OK);
        assert_int_equal(device.waits, turn);
        assert_int_equal(device.calls, turn);
        assert_int_equal(device.made, turn * LEAVES);
        assert_done();
    }
    assert_int_equal(digests_finish(&digests), STATUS_OK); /* nothing was added */
    assert_int_equal(device.waits, 2);
}

/* There is room for some of the leaf hashes, for none of a large tensor's, or for few jobs. */
static void corroborate_several_turns(void **state) {
    (void)state;
    for (size_t leaves = 0; leaves <= LEAVES; leaves++)
        for (size_t jobs = 0; jobs <= JOBS; jobs++) {
            struct digests digests;
            memset(&device, 0, sizeof device);
            memset(problem.got, 0, sizeof problem.got);
            open_digests(&backend, leaves, jobs, &digests);
            add_all(&digests);
            assert_int_equal(digests_finish(&digests), STATUS_OK);
            assert_done();
            assert_true(device.most <= jobs);
            assert_int_equal(device.made == LEAVES, jobs > 0 && leaves >= LARGEST);
        }
}

static void corroborate_host(void **state) {
    (void)state;
    struct digests digests;
    open_digests(NULL, LEAVES, JOBS, &digests);
    add_all(&digests);
    assert_int_equal(digests_finish(&digests), STATUS_OK);
    assert_done();
    assert_int_equal(device.waits, 0);
}

/* Of two jobs somebody else made the leaf hashes; the others are asked of the backend. */
static void corroborate_made_elsewhere(void **state) {
    static struct leafhash_leaf leaves[2][LARGEST];
    const size_t made[2] = {1, 4};
    (void)state;
    struct digests digests;
    open_digests(&backend, LEAVES, JOBS, &digests);
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        struct digest_job *const job = &problem.jobs[made[i]];
        const size_t count = i == 0 ? 16385 : 40000;
        const struct leaf_hashes_args args = {job->form, count, job->data, leaves[i]};
        for (size_t leaf = 0; leaf < leaf_hashes_count(job->form.dtype, count); leaf++)
            make_leaf(&args, leaf);
        job->leaves = leaves[i];
    }
    add_all(&digests);
    assert_int_equal(digests_finish(&digests), STATUS_OK);
    assert_done();
    assert_int_equal(device.made, LEAVES - 5);
    leaves[1][2].misfit[31] = 1; /* no number is outside, so whoever made it was wrong */
    memset(problem.got, 0, sizeof problem.got);
    add_all(&digests);
    assert_int_equal(digests_finish(&digests), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "digest of e: its leaves were made of a value outside"));
    assert_int_equal(digest_compare(&problem.got[5], &problem.want[5]), 0);
}

/* A value that its dtype cannot hold must be reported as the host reports it, and later jobs must
 * go on. */
static void verify_errors(void **state) {
    (void)state;
    struct digests digests;
    char want[512];
    problem.values[39999] = 0x1.000002p0f; /* only "e" has such a value */
    const struct digest_job *const job = &problem.jobs[4];
    struct digest unused;
    assert_int_equal(
        digest_tensor(job->name, job->form.dtype, job->rank, job->shape, job->data, &unused),
        STATUS_INTERNAL);
    snprintf(want, sizeof want, "%s", status_text());
    open_digests(&backend, LEAVES, JOBS, &digests);
    add_all(&digests);
    assert_int_equal(digests_finish(&digests), STATUS_INTERNAL);
    assert_string_equal(status_text(), want);
    problem.values[39999] = 0.0f; /* 39999 is a multiple of 199 */
    add_all(&digests);
    assert_int_equal(digests_finish(&digests), STATUS_OK);
    assert_done();
    add_all(&digests);
    device.broken = 1;
    assert_int_equal(digests_finish(&digests), STATUS_INTERNAL);
    assert_string_equal(status_text(), "the device is broken");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(corroborate_one_turn, open_problem, close_problem),
        cmocka_unit_test_setup_teardown(corroborate_several_turns, open_problem, close_problem),
        cmocka_unit_test_setup_teardown(corroborate_host, open_problem, close_problem),
        cmocka_unit_test_setup_teardown(corroborate_made_elsewhere, open_problem, close_problem),
        cmocka_unit_test_setup_teardown(verify_errors, open_problem, close_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
