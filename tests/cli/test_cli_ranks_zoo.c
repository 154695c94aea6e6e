/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory whole
 * Scenarios of the catalogue whose ranks close gradients of their own (law 22): each meets what it
 * expects, and where no bit may differ the arms are identical. Their traces hold together and are
 * replayed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

static void require(int code, const char *line, const char *needle) {
    struct said said = helper_run(code, line);
    assert_string_equal(said.err, "");
    if (strstr(said.out, needle) == NULL) fail_msg("%s: expected %s in %s", line, needle, said.out);
    helper_free(&said);
}

/* The last ones are left to the nightly run: verify_null_arms() has their buckets, too, and
 * trainer/test_collective the numbers of a bucket that is overwritten. */
static void validate_expectations(void **state) {
    static const char *const names[] = {"bf16-on-wire",      "tree-of-nccl", "buckets-rebuilt",
                                        "arrival",           "bucket-size",  "bucket-views",
                                        "bucket-overwritten"};
    const size_t count = helper_size(4, 4, COUNT_OF(names));
    (void)state;
    for (size_t i = 0; i < count; i++) {
        char line[128];
        snprintf(line, sizeof line, "run ranks-%s -o %s.h5 --quiet", names[i], names[i]);
        require(0, line, "  expected met\n");
    }
}

/* Tensor-parallel ranks: bugs that read their number, and what is said where none does. One of each
 * key of parallel.* comes first; the nightly run has the others. */
static void validate_tensor_ranks(void **state) {
    static const char *const names[] = {"in-loss",          "forget-norms",   "draw-own",
                                        "count-norms-each", "fed-unlike",     "forget-final-norm",
                                        "draw-the-same",    "forget-qk-norms"};
    const size_t count = helper_size(5, 5, COUNT_OF(names));
    (void)state;
    for (size_t i = 0; i < count; i++) {
        char line[128];
        snprintf(line, sizeof line, "run tensor-ranks-%s -o tensor-%s.h5 --quiet", names[i],
                 names[i]);
        require(0, line, "  expected met\n");
    }
    require(0, "replay tensor-forget-norms.h5 --run test", "test: 5 updates replayed, bit-equal");
    require(0,
            "run tensor-parallel-sums -o tensor.h5 --quiet --set arms.test.parallel.tensor=4 "
            "--set steps=1",
            "note     test: parallel.tensor has no effect here: parallel.scale and "
            "parallel.forgets are none, parallel.draws is whole, parallel.counts is once, and "
            "parallel.feeds is not own-on-tensor\n");
}

/* In mode invariant ranks join shards, whatever a message looks like; dividing by a power of two is
 * exact; and of two ranks nothing depends on who arrives first. Buckets that are rebuilt are so in
 * update 2. */
static void verify_null_arms(void **state) {
#define INVARIANT "--set common.numerics.mode=invariant --set common.numerics.shards=4"
    static const char *const lines[] = {
        "run ranks-bucket-size -o null.h5 --overwrite --quiet " INVARIANT,
        "run ranks-buckets-rebuilt -o null.h5 --overwrite --quiet " INVARIANT,
        "run ranks-bucket-views -o null.h5 --overwrite --quiet " INVARIANT,
        "run ranks-bucket-views -o null.h5 --overwrite --quiet --set common.parallel.ranks=2",
        "run ranks-bucket-size -o null.h5 --overwrite --quiet --set common.parallel.ranks=2",
        "run ranks-buckets-rebuilt -o null.h5 --overwrite --quiet "
        "--set common.parallel.reduce=linear",
        "run ranks-arrival -o null.h5 --overwrite --quiet --set common.parallel.ranks=2",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char line[256];
        snprintf(line, sizeof line, "%s --set steps=%zu", lines[i], helper_size(2, 2, 5));
        require(1, line, ": IDENTICAL.");
    }
#define ALONE "all gradients are in one bucket, which no other one overwrites"
    require(1,
            "run ranks-bucket-overwritten -o null.h5 --overwrite --quiet "
            "--set common.parallel.bucket=1000000",
            "  note     test: parallel.race has no effect here: " ALONE " (parallel.bucket)\n");
    /* DDP's second layout is that of update 2 */
    require(0, "check ranks-bucket-overwritten --set common.parallel.buckets=rebuilt --set steps=1",
            "test: parallel.race moves no bit here: " ALONE);
    struct said said =
        helper_run(0, "check ranks-bucket-overwritten --set common.parallel.buckets=rebuilt");
    assert_null(strstr(said.out, "parallel.race moves"));
    helper_free(&said);
}

/* Where nothing is clipped a wrong norm moves no weight, and the log shows it all the same. */
static void validate_norms_of_identical_arms(void **state) {
    static const char *const names[] = {"tensor-ranks-count-norms-each", "ranks-clip-own-shards"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "run %s -o null.h5 --overwrite --quiet --set common.clip.max_norm=0 --set steps=2",
                 names[i]);
        require(
            1, line,
            ": SAME TRAINING. It trains identically and reports differently: weights, optimizer "
            "state and applied LR are equal after each of 2 updates. First reported otherwise: "
            "grad_norm of update 1, ");
    }
}

/* A deal says whose a sample of an update is, and which samples an update has only in the tail of
 * an epoch: where sums are exact, it moves no weight before that. Exact sums take their time: the
 * nightly run has the catalogue's model. */
static void verify_deals(void **state) {
#define DEALT                                                                                      \
    "run ranks-fed-the-same -o dealt.h5 --overwrite --quiet --set common.numerics.mode=order-free" \
    " --set arms.test.parallel.feeds=own --set common.batch.micro=1 --set "                        \
    "arms.test.parallel.deal="
    static const char *const deals[] = {"cyclic", "micros"};
    static const char small[] = " --set common.model.layers=1 --set common.model.hidden=16 "
                                "--set common.model.heads=1 --set common.model.mlp=16";
    (void)state;
    for (size_t i = 0; i < COUNT_OF(deals); i++) {
        char line[512];
        snprintf(line, sizeof line, DEALT "%s%s", deals[i], helper_size(1, 1, 0) ? small : "");
        require(
            1, line,
            ": SAME WEIGHTS SO FAR. Weights, optimizer state and applied LR are equal after each");
    }
    require(0, "run ranks-pad-the-epoch -o padded.h5 --quiet", "  expected met\n");
    require(0, "run ranks-repeat-one-order -o repeated.h5 --quiet", "  expected met\n");
    require(0, "check ranks-pad-the-epoch --set common.data.samples=24",
            "parallel.uneven is without effect here");
}

/* Phase `reduce` has the digest of the gradient that the trace holds, and `backward` that of the
 * ranks'. A trace is read, checked and trained again with all keys of parallel.*. */
static void verify_traces(void **state) {
    (void)state;
    require(0, "run ranks-bf16-on-wire -o kept.h5 --quiet --set arms.test.parallel.average=after",
            "parallel.reduce_dtype: f32 -> bf16");
    require(0, "certify kept.h5", "sound: 3 roots");
    require(0, "replay kept.h5", "test: 3 updates replayed, bit-equal");
    /* What the optimizer took in is the mean that P times a rank's share makes: one number divides
     * the terms of all ranks, that of all labels. */
    require(0, "replay kept.h5 --divisor 2 --run baseline",
            "explains it: update, update-unshifted\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_expectations), cmocka_unit_test(validate_tensor_ranks),
        cmocka_unit_test(verify_null_arms),      cmocka_unit_test(validate_norms_of_identical_arms),
        cmocka_unit_test(verify_deals),          cmocka_unit_test(verify_traces),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
