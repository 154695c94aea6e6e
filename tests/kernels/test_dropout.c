/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Dropout masks: by address, against Philox itself (law 10); their independence of where a token
 * lies; emulated ranks; and by place, against PyTorch's masks. And the dropout op in every
 * variant. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/philox.h"
#include "determinism/torch_rng.h"
#include "kernels/dropout.h"
#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

enum { WIDTH = 200 };

static const struct dropout base = {
    .keep = 0.75, .seed = 0x123456789ABCDEFu, .op = 37, .layer = 5, .update = 11};

/* The address of a mask's draw, field by field as the table of law 10 lists them. */
static int kept_by_law(const struct dropout *d, uint32_t sample, uint32_t rank, uint32_t side,
                       uint64_t element) {
    const uint64_t block = element / 4;
    const struct philox_block counter = {
        {(uint32_t)block, (uint32_t)(block >> 32) | sample << 8,
         d->op | d->layer << 9 | rank << 18 | side << 26 | 2u << 28, d->update}};
    const uint32_t word = philox_draw(counter, d->seed).word[element % 4];
    return ((double)word + 0.5) / 4294967296.0 < d->keep;
}

static void corroborate_addresses(void **state) {
    (void)state;
    const struct sequence sequence = {.row = 77, .length = 20, .sample = 6, .side = 1};
    uint8_t kept[WIDTH];
    for (uint32_t position = 0; position < 20; position += 3) {
        dropout_activation(&base, &sequence, position, WIDTH, kept);
        for (uint32_t c = 0; c < WIDTH; c++)
            assert_int_equal(kept[c], kept_by_law(&base, 6, 0, 1, (uint64_t)position << 18 | c));
        dropout_attention(&base, &sequence, 4, 2, position, position + 1, kept);
        for (uint32_t k = 0; k <= position; k++)
            assert_int_equal(kept[k], kept_by_law(&base, 6, 0, 1, 2ull << 32 | position << 16 | k));
    }
}

/* Of two ranks with four samples each, rank-dependent masks come from the rank's own address,
 * shared ones from rank 0's. */
static void corroborate_ranks(void **state) {
    (void)state;
    const struct sequence mine = {.length = 1, .sample = 2}, other = {.length = 1, .sample = 6};
    struct dropout own = base, same = base;
    uint8_t a[WIDTH], b[WIDTH];
    own.rank_samples = same.rank_samples = 4;
    same.same_masks = 1;
    dropout_activation(&own, &other, 0, WIDTH, a);
    for (uint32_t c = 0; c < WIDTH; c++)
        assert_int_equal(a[c], kept_by_law(&own, 2, 1, 0, c));
    dropout_activation(&own, &mine, 0, WIDTH, b);
    assert_memory_not_equal(a, b, WIDTH);
    dropout_activation(&same, &mine, 0, WIDTH, a);
    dropout_activation(&same, &other, 0, WIDTH, b);
    assert_memory_equal(a, b, WIDTH);
}

/* Over 200,000 draws the share that is kept must lie within 5 standard deviations of its
 * probability. */
static void verify_share(void **state) {
    (void)state;
    uint64_t count = 0;
    for (uint32_t sample = 0; sample < 1000; sample++) {
        const struct sequence sequence = {.length = 1, .sample = sample};
        uint8_t kept[WIDTH];
        dropout_activation(&base, &sequence, 0, WIDTH, kept);
        for (uint32_t c = 0; c < WIDTH; c++)
            count += kept[c];
    }
    const double deviation = sqrt(1000.0 * WIDTH * 0.75 * 0.25);
    assert_true(fabs((double)count - 1000.0 * WIDTH * 0.75) < 5.0 * deviation);
}

/* PyTorch's mask goes by the element (batch, head, query, key) of the padded tensor of the call. */
static void corroborate_torch(void **state) {
    (void)state;
    const struct dropout d = {.map = DROPOUT_TORCH,
                              .keep = 0.9,
                              .seed = 42,
                              .offset = 12,
                              .threads = 512,
                              .vector = 4,
                              .first_row = 30,
                              .length = 10};
    const struct sequence second = {.row = 40, .length = 7};
    uint8_t kept[WIDTH];
    dropout_activation(&d, &second, 3, WIDTH, kept);
    for (uint32_t c = 0; c < WIDTH; c++)
        assert_int_equal(kept[c], torch_uniform(torch_word(42, 12, 512, 4, 13 * WIDTH + c)) < 0.9f);
    dropout_attention(&d, &second, 4, 2, 5, 6, kept);
    for (uint32_t k = 0; k < 6; k++)
        assert_int_equal(kept[k], torch_uniform(torch_word(
                                      42, 12, 512, 4, ((1 * 4 + 2) * 10 + 5) * 10 + k)) < 0.9f);
}

static void validate_limits(void **state) {
    (void)state;
    struct dropout_extent extent = {.layers = 4,
                                    .samples = 8,
                                    .ranks = 1,
                                    .positions = 65536,
                                    .channels = 262144,
                                    .heads = 1024};
    assert_int_equal(dropout_check(&extent), STATUS_OK);
    extent.positions++;
    assert_int_equal(dropout_check(&extent), STATUS_INPUT);
    extent.positions--;
    extent.ranks = 257;
    assert_int_equal(dropout_check(&extent), STATUS_INPUT);
}

/* Elements that are kept must be scaled with one rounding, the others must be +0, and rows of no
 * sequence must stay. */
static void op_of(struct bench *b) {
    static const struct sequence two[] = {{2, 5, 0, 0}, {9, 3, 1, 1}};
    const struct sequence *const sequences = (struct sequence *)bench_copy(b, two, sizeof two);
    const struct op_table *ops = NULL;
    const uint32_t C = 37;
    const size_t count = (size_t)13 * C;
    const struct op_limits limits = {13, 0, C, 5, 1, 1, 2, 0, 0, 0, 0, 0, 0};
    double *const x = bench_draw(b, count, b->law.compute, 1.0);
    double *const before = bench_draw(b, count, b->law.compute, 1.0);
    double *const want = bench_numbers(b, count);
    memcpy(want, before, count * sizeof *want);
    const double scale = law_div(&b->law, 1.0, law_acc(&b->law, base.keep));
    for (size_t s = 0; s < 2; s++) {
        for (uint32_t p = 0; p < sequences[s].length; p++) {
            uint8_t kept[37];
            dropout_activation(&base, &sequences[s], p, C, kept);
            for (uint32_t c = 0; c < C; c++) {
                const size_t at = (size_t)(sequences[s].row + p) * C + c;
                want[at] = kept[c] ? law_out(&b->law, law_mul(&b->law, x[at], scale)) : 0.0;
            }
        }
    }
    void *const in = bench_store(b, x, count, b->carrier);
    for (size_t machine = 0; bench_machine(b, &limits, &machine, &ops);) {
        void *const y = bench_output(b, before, count, b->carrier);
        ops->dropout(&b->call, &(struct dropout_args){sequences, 2, C, &base, in, y});
        bench_check(b, ops, "dropout", y, want, count, b->carrier);
    }
}

static void verify_op(void **state) {
    (void)state;
    bench_pairs(op_of);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_addresses), cmocka_unit_test(corroborate_ranks),
        cmocka_unit_test(verify_share),          cmocka_unit_test(corroborate_torch),
        cmocka_unit_test(validate_limits),       cmocka_unit_test(verify_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
