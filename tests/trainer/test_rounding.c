/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Stochastic rounding: the neighbours and probabilities of a draw, and what it does to a training
 * whose updates are smaller than the spacing of its weights. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/distance.h"
#include "tests/determinism/helper_ledger.h"
#include "tests/trainer/helper_train.h"
#include "trainer/rounding.h"
#include "trainer/run_private.h"

static void validate_neighbours(void **state) {
    (void)state;
    static const struct {
        double value;
        enum dtype dtype;
        double below, above, share; /* the share of draws that go up */
    } cases[] = {
        {1.0 + 0x1p-9, DTYPE_BF16, 1.0, 1.0 + 0x1p-7, 0.25},
        {-1.0 - 0x1p-8, DTYPE_BF16, -1.0, -1.0 - 0x1p-7, 0.5},
        {1.0, DTYPE_BF16, 1.0, 1.0, 0.0},
        {0x1p-133, DTYPE_BF16, 0x1p-133, 0x1p-133, 0.0},
        {0x1p-134, DTYPE_BF16, 0.0, 0x1p-133, 0.5},
        {1.0 + 0x1p-12, DTYPE_F16, 1.0, 1.0 + 0x1p-10, 0.25},
        {0x1.8p-25, DTYPE_F16, 0.0, 0x1p-24, 0.75},
        {1.0625, DTYPE_E4M3, 1.0, 1.125, 0.5},
        {-0x1.4p-9, DTYPE_E4M3, -0x1p-9, -0x1p-8, 0.25},
        {1.0625, DTYPE_E5M2, 1.0, 1.25, 0.25},
        {2.0 - 0x1p-9, DTYPE_BF16, 2.0 - 0x1p-7, 2.0, 0.75},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double low = rounding_draw(cases[i].value, cases[i].dtype, cases[i].share);
        assert_true(low == cases[i].below);
        if (cases[i].share == 0.0) continue;
        const double just = cases[i].share - 0x1p-33;
        assert_true(rounding_draw(cases[i].value, cases[i].dtype, just) == cases[i].above);
    }
    assert_true(isinf(rounding_draw((double)INFINITY, DTYPE_BF16, 0.5)));
    assert_true(rounding_draw((double)NAN, DTYPE_F16, 0.5) != rounding_draw(0.0, DTYPE_F16, 0.5));
    assert_true(rounding_draw(65519.9, DTYPE_F16, 0.99999) == 65504.0);
    assert_true(isinf(rounding_draw(65519.9, DTYPE_F16, 0.1)));
    assert_true(rounding_draw(460.0, DTYPE_E4M3, 0.01) == 448.0); /* no infinity */
    assert_true(isinf(rounding_draw(60000.0, DTYPE_E5M2, 0.01)));
}

#define COMMON                                                                                     \
    "task: sft, data: {max_len: 16, seed: 17}, init: {std: 0.3, seed: 17}, schedule: {name: "      \
    "constant}, clip: {max_norm: 0}, "                                                             \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, "

enum { UPDATES = 8 };

struct outcome {
    struct digest root;
    double survival, travel, lr, lr_error;
    double first_error; /* of the rate read back from update 1 */
    uint64_t words;
};

static struct outcome train(const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    struct outcome out = {.survival = 0.0};
    helper_config(UPDATES, &config, COMMON "%s", words);
    helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = UPDATES, .readback = 1},
                    &run);
    for (size_t k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&run);
        out.survival += record->reals[REAL_UPDATE_SURVIVAL] / UPDATES;
        out.travel = record->reals[REAL_TRAVEL];
        out.lr = record->groups[0][GROUP_LR_READBACK];
        out.lr_error = record->groups[0][GROUP_LR_ERROR];
        if (k == 0) out.first_error = out.lr_error;
        out.words += helper_ledger_total(&run.ledger, STREAM_ROUNDING);
        memcpy(out.root.byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    run_close(&run);
    arena_close(&arena);
    return out;
}

/* Rounding to nearest loses steps of 1e-5 on weights of 0.3. Drawn roundings keep them on average:
 * weights do change, and the distance travelled grows like a random walk of whole ulps around the
 * f32 path. */
static void verify_updates_survive(void **state) {
    (void)state;
    const struct outcome nearest =
        train("optimizer: {lr: 1e-5}, batch: {size: 4}, numerics: {param: bf16}");
    const struct outcome drawn = train(
        "optimizer: {lr: 1e-5}, batch: {size: 4}, numerics: {param: bf16, rounding: stochastic}");
    /* a weight of 0.25 to 0.5 changes in lr / 2^-9 = 0.5 % of the draws, a smaller one more
     * often */
    assert_true(drawn.survival > 0.005 && drawn.survival > nearest.survival);
    assert_true(drawn.travel > nearest.travel);
    assert_true(nearest.words == 0 && drawn.words > 0);
    assert_true(fabs(drawn.lr - 1e-5) <= drawn.lr_error);
    /* a drawn rounding errs by up to a whole ulp instead of half of one; a fifth of the smaller
     * error is the direction's own, the same in both (8 half units of bf16 at a rate of 1e-5) */
    assert_true(drawn.first_error > 1.7 * nearest.first_error);
}

static void verify_address_decides(void **state) {
    (void)state;
#define DRAWN "optimizer: {lr: 1e-5}, numerics: {param: f16, rounding: stochastic"
    const struct outcome one = train(DRAWN "}, batch: {size: 4}");
    const struct outcome threads = train(DRAWN ", threads: 3}, batch: {size: 4}");
    const struct outcome micro = train(DRAWN "}, batch: {size: 4, micro: 1}");
    const struct outcome seed = train(DRAWN "}, batch: {size: 4}, seed: 5");
    assert_memory_equal(&one.root, &threads.root, sizeof one.root);
    assert_memory_equal(&one.root, &micro.root, sizeof one.root);
    assert_memory_not_equal(&one.root, &seed.root, sizeof one.root);
}

/* No framework steps in fp8. An update without masters is computed in f32 and rounded once, so that
 * the weights must be those of the loop p.float() - lr g, .to(fp8), with the step of
 * torch.optim.SGD. */
static void corroborate_fp8_step(const char *name, enum dtype dtype) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(2, &config,
                  COMMON "optimizer: {name: sgd, lr: 0.5, momentum: 0.9}, batch: {size: 4}, loop: "
                         "{update: [optimize, log, count, schedule]}, numerics: {param: %s}",
                  name);
    assert_int_equal(config.numerics.gradient, DTYPE_F32);
    assert_int_equal(config.numerics.optimizer, DTYPE_F32);
    helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 2}, &run);
    helper_step(&run);
    const uint32_t row = run.table.index[ROLE_Q];
    const float *old = (const float *)(const void *)run.before + run.packed[row];
    const float *now = (const float *)run_param(&run, row);
    const float *gradient = (const float *)run_at(&run, run.layout.tensor[row].gradient);
    uint64_t moved = 0;
    for (size_t i = 0; i < run.table.rows[row].count; i++) {
        const float step = -0.5f * gradient[i];
        assert_true((double)now[i] == dtype_round((double)(old[i] + step), dtype));
        assert_true(dtype_round((double)old[i], dtype) == (double)old[i]);
        moved += now[i] != old[i];
    }
    assert_true(moved > 0);
    run_close(&run);
    arena_close(&arena);
}

static void corroborate_fp8(void **state) {
    (void)state;
    corroborate_fp8_step("e4m3", DTYPE_E4M3);
    corroborate_fp8_step("e5m2", DTYPE_E5M2);
}

/* Masters keep what fp8 weights lose; the loss is that of coarse weights in both. */
static void verify_fp8_masters(void **state) {
    (void)state;
    const struct outcome lost =
        train("optimizer: {lr: 5e-4}, batch: {size: 4}, numerics: {param: e4m3}");
    const struct outcome kept =
        train("optimizer: {lr: 5e-4}, batch: {size: 4}, numerics: {param: e4m3, master: f32}");
    const struct outcome drawn = train(
        "optimizer: {lr: 5e-4}, batch: {size: 4}, numerics: {param: e4m3, rounding: stochastic}");
    assert_true(lost.survival < 0.001 && lost.words == 0);
    assert_true(kept.survival > lost.survival && kept.travel > lost.travel);
    assert_true(drawn.survival > 0.001 && drawn.words > 0);
}

/* The number for each weight is drawn from stream `rounding` at its role, layer, update and index
 * (law 15). The step is p - lr g of torch.optim.SGD, each operation rounded to f32. */
static void corroborate_draws(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(2, &config,
                  COMMON "optimizer: {name: sgd, lr: 1e-3}, batch: {size: 4}, loop: {update: "
                         "[optimize, log, count, schedule]}, numerics: {param: bf16, rounding: "
                         "stochastic, gradient: f32}");
    helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 2}, &run);
    for (uint64_t k = 1; k <= 2; k++) {
        helper_step(&run);
        uint64_t up = 0;
        const uint32_t row = run.table.index[ROLE_Q];
        const float *old = (const float *)(const void *)run.before + run.packed[row];
        const float *now = (const float *)run_param(&run, row);
        const float *gradient = (const float *)run_at(&run, run.layout.tensor[row].gradient);
        const struct stream_address address = {
            .stream = STREAM_ROUNDING, .layer = 1, .op = ROLE_Q, .update = k};
        struct stream_site site;
        assert_int_equal(stream_pack(&address, &site), STATUS_OK);
        for (size_t i = 0; i < run.table.rows[row].count; i++) {
            const float moved = -1e-3f * gradient[i];
            const float wide = old[i] + moved;
            const double u = stream_uniform(stream_word(config.seed, site, i));
            assert_true((double)now[i] == rounding_draw((double)wide, DTYPE_BF16, u));
            up += now[i] != old[i];
        }
        assert_true(up > 0);
    }
    run_close(&run);
    arena_close(&arena);
}

/* The values of two successive codes must be one step apart, over every binade, zero and both
 * signs. */
static void validate_fp8_distances(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        double largest;
        int64_t codes;
    } formats[] = {
        {DTYPE_E4M3, 448.0, 126}, {DTYPE_E5M2, 57344.0, 123}, {DTYPE_F16, 65504.0, 31743}};
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        const enum dtype dtype = formats[f].dtype;
        const float zero = 0.0f, top = (float)formats[f].largest;
        int64_t steps = 0;
        for (double x = 0.0; x < formats[f].largest; steps++) {
            const double next = x + dtype_spacing(x, dtype);
            const float pair[2] = {(float)x, (float)next}, mirrored[2] = {-pair[0], -pair[1]};
            assert_int_equal(distance_ulp(&pair[0], &pair[1], dtype, 1), 1);
            assert_int_equal(distance_ulp(&mirrored[0], &mirrored[1], dtype, 1), 1);
            assert_int_equal(distance_ulp(&mirrored[1], &pair[1], dtype, 1), 2 * (steps + 1));
            x = next;
        }
        assert_int_equal(steps, formats[f].codes);
        assert_int_equal(distance_ulp(&zero, &top, dtype, 1), formats[f].codes);
    }
}

/* An infinity is one step behind the largest number, as its code is; a NaN has no place. */
static void validate_distances_of_infinities(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        double largest;
        int64_t code; /* of infinity, without its sign; of E4M3's NaN, since it has no infinity */
    } formats[] = {{DTYPE_E4M3, 448.0, 0x7f},
                   {DTYPE_E5M2, 57344.0, 0x7c},
                   {DTYPE_F16, 65504.0, 0x7c00},
                   {DTYPE_BF16, 0x1.fep127, 0x7f80},
                   {DTYPE_TF32, 0x1.ffcp127, 0x3fc00},
                   {DTYPE_F32, 0x1.fffffep127, 0x7f800000},
                   {DTYPE_F64, 0x1.fffffffffffffp1023, 0x7ff0000000000000}};
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        const enum dtype dtype = formats[f].dtype;
        const double largest = formats[f].largest, infinity = (double)INFINITY;
        const int64_t code = formats[f].code;
        const struct {
            double a, b;
            int64_t apart;
        } cases[] = {
            {largest, infinity, 1},
            {-largest, -infinity, 1},
            {infinity, infinity, 0},
            {0.0, infinity, code},
            {-infinity, 0.0, code},
            {-infinity, infinity, dtype == DTYPE_F64 ? INT64_MAX : 2 * code},
            {infinity, (double)NAN, INT64_MAX},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            const double wide[2] = {cases[i].a, cases[i].b};
            const float narrow[2] = {(float)cases[i].a, (float)cases[i].b};
            const int64_t apart = dtype == DTYPE_F64
                                      ? distance_ulp(&wide[0], &wide[1], dtype, 1)
                                      : distance_ulp(&narrow[0], &narrow[1], dtype, 1);
            if (apart != cases[i].apart)
                fail_msg("%s, case %zu: expected %lld, got %lld", dtype_name(dtype), i,
                         (long long)cases[i].apart, (long long)apart);
        }
    }
}

/* At an LR of 0 nothing may change, whatever is drawn. */
static void verify_nothing_moves_nothing(void **state) {
    (void)state;
    const struct outcome still = train("optimizer: {name: sgd, lr: 0}, batch: {size: 4}, numerics: "
                                       "{param: bf16, rounding: stochastic}");
    assert_true(still.travel == 0.0 && still.survival == 0.0 && still.words > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_neighbours),
        cmocka_unit_test(verify_updates_survive),
        cmocka_unit_test(verify_address_decides),
        cmocka_unit_test(verify_nothing_moves_nothing),
        cmocka_unit_test(corroborate_draws),
        cmocka_unit_test(corroborate_fp8),
        cmocka_unit_test(verify_fp8_masters),
        cmocka_unit_test(validate_fp8_distances),
        cmocka_unit_test(validate_distances_of_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
