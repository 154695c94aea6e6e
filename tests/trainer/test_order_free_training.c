/* SPDX-License-Identifier: Apache-2.0
 * labels: golden threads
 * Mode order-free (law 16): no split into micro-batches, layout, padding, number of threads or
 * instruction set may change a bit; nor may the order of the samples of an update, which does
 * change bits in mode invariant. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/test_invariance.h"

static const enum isa sets[] = {ISA_V3, ISA_BASE, ISA_V4};

static void check_family(uint32_t number, const char *params) {
    static const uint32_t shapes[] = {3, 4, 22, 57};
    struct family family;
    struct helper_outcome like, other;
    char hex[DIGEST_HEX];
    const struct shape first = shape_of(shapes[0], backend_isa(ISA_AUTO));
    family_open(number, &family);
    family_outcome(&family, &first, &other);
    family.config.numerics.mode = MODE_ORDER_FREE;
    family_outcome(&family, &first, &like);
    digest_hex(&like.params, hex);
    assert_string_equal(hex, params);
    assert_non_null(helper_outcome_gap(&like, &other));
    const size_t few = HELPER_UNOPTIMISED ? 1 : 2; /* the digest above is the same in every build */
    const size_t count =
        helper_size(2, HELPER_ISA_SETS > 1 ? COUNT_OF(shapes) : few, COUNT_OF(shapes));
    for (uint32_t i = 1; i < count; i++) {
        enum isa isa = sets[(i + number) % COUNT_OF(sets)];
        const struct shape shape = shape_of(shapes[i], helper_has_isa(isa) ? isa : ISA_BASE);
        char text[96];
        family_outcome(&family, &shape, &other);
        const char *gap = helper_outcome_gap(&like, &other);
        shape_text(&shape, text);
        if (gap != NULL) fail_msg("%s: %s differs at %s", family.key, gap, text);
    }
    family_close(&family);
}

/* The trainings are DPO with a tied Llama in bf16 and SFT with an untied OLMo-2 in f32. The
 * parameters' digest is the same in every build. */
static void verify_shapes(void **state) {
    (void)state;
    if (!helper_size(1, 0, 0))
        check_family(7, "73f05262c7df8ecf70ef32c7f648aa16d9e7f92c1ebcf7a3e04234bdb4cf0e01");
    check_family(8, "170243db4d4789e97f22d822780a8d69aa87569306222d5fd72bd92fa841db02");
}

/* ---- the order of samples ---- */

enum { SAMPLES = 8, UPDATES = 2 };

struct outcome {
    struct digest gradients[UPDATES], params[UPDATES];
    double loss[UPDATES], norm[UPDATES];
};

/* Trains two updates of 8 samples, with one update an epoch, so that the data seed permutes
 * each. */
static void train(uint64_t data_seed, const char *mode, const char *more, struct outcome *out) {
    struct config config;
    struct dataset dataset;
    struct arena arena = ARENA_EMPTY;
    struct run_options options = {.tensors = 1, .phases = 1, .steps = UPDATES};
    struct run run;
    helper_config(UPDATES, &config,
                  "task: dpo, data: {max_len: 64, seed: %d, shuffle: true}, "
                  "batch: {size: %d, micro: 4}, model: {layers: 2, hidden: 32, heads: 4, "
                  "kv_heads: 2, mlp: 48}, optimizer: {lr: 1e-3}, clip: {max_norm: 0.5}, "
                  "init: {std: 0.05}, numerics: {mode: %s}%s",
                  (int)data_seed, SAMPLES, mode, more);
    helper_ids_open(&config, 5, SAMPLES, 40, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    for (int update = 0; update < UPDATES; update++) {
        const struct record *record = helper_step(&run);
        digest_root("gradients", run.gradient_digest, run.owner_count, &out->gradients[update]);
        out->loss[update] = record->reals[REAL_LOSS];
        out->norm[update] = record->reals[REAL_GRAD_NORM];
    }
    run_close(&run);
    arena_close(&arena);
}

static void verify_sample_order(void **state) {
    (void)state;
    static const struct {
        const char *mode, *more;
        int equal;
    } rows[] = {
        {"order-free", "", 1},
        {"order-free", ", loop: {update: [clip, optimize, log, count, schedule]}", 1},
        {"invariant", "", 0},
    };
    for (size_t r = 0; r < COUNT_OF(rows); r += helper_size(3, HELPER_UNOPTIMISED ? 3 : 1, 1)) {
        struct outcome a, b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        train(1, rows[r].mode, rows[r].more, &a);
        train(2, rows[r].mode, rows[r].more, &b);
        assert_int_equal(memcmp(a.gradients, b.gradients, sizeof a.gradients) == 0, rows[r].equal);
        if (!rows[r].equal) continue;
        assert_memory_equal(a.loss, b.loss, sizeof a.loss);
        assert_memory_equal(a.norm, b.norm, sizeof a.norm);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_shapes),
                                       cmocka_unit_test(verify_sample_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
