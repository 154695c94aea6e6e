/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Products of bf16 numbers through vdpbf16ps must have the bits of law 1's chain, one fma a term.
 *
 * First what the instruction computes on this machine, against two scalar fma with subnormal
 * numbers as zeros; then weight gradients, whose sums are not rounded, over operands and sums on
 * both sides of every bound of kernels/cpu/gemm_bf16.h; then which tiles are left to fma. Skipped
 * where the machine has no such instruction. */
#include "tests/kernels/test_linear.h"

#include "tests/base/helper_size.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_INTRINSICS 1
#endif

#define LANES 16

#ifdef TWINSTEP_SANITIZED
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static const struct variant *const widest = &variants[HELPER_ISA_SETS > 1 ? 2 : 0];

/* A sanitizer's build has no kernel of AVX-512. A machine whose instruction computes something else
 * than what was found so far is told here, where the program would quietly do without it. */
static void need_instruction(void) {
    const struct op_table *ops;
    if (IS_SANITIZED || !__builtin_cpu_supports("avx512bf16") ||
        backend_ops(ISA_V4, DTYPE_F32, DTYPE_F32, &ops) != STATUS_OK)
        skip();
    assert_true(backend_bf16(ISA_V4_BF16));
}

struct draws {
    uint64_t place;
};

static uint64_t draw(struct draws *draws) {
    const struct stream_site site = {{{2}}};
    return stream_word64(SEED, site, draws->place++);
}

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A bf16 number as f32: one in sixteen is a zero, the others have biased exponents from `low` to
 * low + span - 1, at most `top`. */
static float number(struct draws *draws, uint32_t low, uint32_t span, uint32_t top) {
    const uint64_t word = draw(draws);
    const uint32_t sign = (uint32_t)(word >> 63) << 31;
    const uint32_t exponent = low + (uint32_t)(word >> 8 & 0xffff) % span;
    if (word % 16 == 0) return of_bits(sign);
    return of_bits(sign | (exponent > top ? top : exponent) << 23 |
                   (uint32_t)(word >> 32 & 0x7f) << 16);
}

static float flushed(float x) {
    return (bits_of(x) & 0x7f800000u) == 0 ? of_bits(bits_of(x) & 0x80000000u) : x;
}

/* A result is subnormal if it is below 2^-126 after it is rounded to 24 digits, however small: just
 * below 2^-126 that says zero where fmaf, on its coarser grid, gives 2^-126. */
static float term(float a, float b, float sum) {
    const float x = flushed(a);
    const float y = flushed(b);
    const float z = flushed(sum);
    const float rounded = fmaf(x, y, z);
    const float fine = (float)(((double)x * (double)y + (double)z) * 0x1p100);
    if (fabsf(rounded) == 0x1p-126F && fabsf(fine) < 0x1p-26F) return copysignf(0.0F, rounded);
    return flushed(rounded);
}

#if defined(HAS_INTRINSICS)

__attribute__((target("avx512f,avx512bf16"))) static void instruction(const uint32_t *a,
                                                                      const uint32_t *b,
                                                                      const float *sums,
                                                                      float *out) {
    _mm512_storeu_ps(out, _mm512_dpbf16_ps(_mm512_loadu_ps(sums), (__m512bh)_mm512_loadu_si512(a),
                                           (__m512bh)_mm512_loadu_si512(b)));
}

/* Any bits, or a special number, or bits near to those of `like`. */
static uint32_t any_bits(struct draws *draws, uint32_t like) {
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
                                       0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345,
                                       0x3f800000, 0xbf800000, 0x7f7fffff, 0x00010000, 0x80400000};
    const uint64_t word = draw(draws);
    if (word % 8 == 0) return special[(word >> 8) % COUNT_OF(special)];
    if (word % 8 == 1) return like ^ (uint32_t)(word >> 32 & 0x80000000u);
    if (word % 8 < 4) return (uint32_t)(word >> 32);
    return (uint32_t)(word >> 63) << 31 | (uint32_t)(100 + (word >> 8) % 56) << 23 |
           (uint32_t)(word >> 32 & 0x7fffff);
}

/* The odd element first, then the even one: each rounded to nearest even, subnormal numbers taken
 * and given as zeros. NaN comes where the two fma have one, and where no operand is NaN it has the
 * bits of theirs. */
static void validate_instruction(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx512bf16")) skip();
    struct draws draws = {UINT64_C(1) << 40};
    const int rounds = (int)helper_size(300, 6000, 400000);
    for (int round = 0; round < rounds; round++) {
        uint32_t a[LANES], b[LANES];
        float sums[LANES], got[LANES];
        for (int l = 0; l < LANES; l++) {
            a[l] = any_bits(&draws, 0) >> 16 | (any_bits(&draws, 0x00400000) & 0xffff0000u);
            b[l] = any_bits(&draws, 0) >> 16 | (any_bits(&draws, 0x7f000000) & 0xffff0000u);
            const float odd = of_bits(a[l] & 0xffff0000u) * of_bits(b[l] & 0xffff0000u);
            sums[l] = of_bits(any_bits(&draws, bits_of(odd)));
        }
        instruction(a, b, sums, got);
        for (int l = 0; l < LANES; l++) {
            const float first =
                term(of_bits(a[l] & 0xffff0000u), of_bits(b[l] & 0xffff0000u), sums[l]);
            const float expected = term(of_bits(a[l] << 16), of_bits(b[l] << 16), first);
            if (isnan(expected) && isnan(got[l])) continue;
            if (bits_of(got[l]) != bits_of(expected))
                fail_msg("vdpbf16ps(%08x, %08x, %08x): %08x, expected %08x", bits_of(sums[l]), a[l],
                         b[l], bits_of(got[l]), bits_of(expected));
        }
    }
}

/* An invalid operation gives the same NaN as fma, which then goes through a chain as it is. */
static void validate_default_nan(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx512bf16")) skip();
    const uint32_t infinities[LANES] = {0x7f807f80u};
    const uint32_t zeros[LANES] = {0};
    const float none[LANES] = {0.0F};
    float got[LANES], after[LANES];
    instruction(infinities, zeros, none, got);
    assert_int_equal(bits_of(got[0]), 0xffc00000u);
    instruction(zeros, zeros, got, after);
    assert_int_equal(bits_of(after[0]), 0xffc00000u);
    const float minus[LANES] = {-INFINITY};
    const uint32_t ones[LANES] = {0x3f803f80u};
    instruction(infinities, ones, minus, got);
    assert_int_equal(bits_of(got[0]), 0xffc00000u);
}

#else

static void validate_instruction(void **state) {
    (void)state;
    skip();
}

static void validate_default_nan(void **state) {
    (void)state;
    skip();
}

#endif

/* Exponents of the operands of one problem. */
struct range {
    uint32_t low, span, top;
};

/* A weight gradient acc (N, K) += dy^T x of T tokens. */
struct gradient {
    uint32_t T, N, K;
    float *dy, *x, *acc, *expected;
};

static struct gradient gradient_of(struct arena *arena, uint32_t T, uint32_t N, uint32_t K) {
    const size_t size = sizeof(float);
    return (struct gradient){.T = T,
                             .N = N,
                             .K = K,
                             .dy = (float *)take(arena, (size_t)T * N, size),
                             .x = (float *)take(arena, (size_t)T * K, size),
                             .acc = (float *)take(arena, (size_t)N * K, size),
                             .expected = (float *)take(arena, (size_t)N * K, size)};
}

static void expect_chain(const struct gradient *g) {
    for (size_t i = 0; i < (size_t)g->N * g->K; i++) {
        float sum = g->acc[i];
        for (size_t t = 0; t < g->T; t++)
            sum = fmaf(g->dy[t * g->N + i / g->K], g->x[t * g->K + i % g->K], sum);
        g->expected[i] = sum;
    }
}

/* Runs it by pairs where they may be; returns the tiles. */
static struct bf16_tiles run_gradient(struct arena *arena, const struct gradient *g) {
    struct bf16_tiles tiles = {0, 0};
    const struct fenced fenced = fenced_scratch(arena, g->T, g->N > g->K ? g->N : g->K, 1);
    const struct op_call call = {
        .compute = DTYPE_BF16, .threads = 1, .bf16 = &tiles, .scratch = fenced.scratch};
    const struct row_list rows = {NULL, g->T};
    widest->weight(&call, &(struct linear_weight_args){rows, g->N, g->K, g->dy, g->x, g->acc, 0});
    check_fence(&fenced);
    return tiles;
}

static void check_gradient(const struct gradient *g, const char *what, uint32_t seed) {
    for (size_t i = 0; i < (size_t)g->N * g->K; i++) {
        if (isnan(g->acc[i]) && isnan(g->expected[i])) continue;
        if (bits_of(g->acc[i]) != bits_of(g->expected[i]))
            fail_msg("%s, problem %u: %08x, expected %08x", what, seed, bits_of(g->acc[i]),
                     bits_of(g->expected[i]));
    }
}

/* Sums are zeros of either sign where acc.top is 0. */
static void fill_gradient(struct draws *draws, const struct gradient *g, struct range dy,
                          struct range x, struct range acc) {
    for (size_t i = 0; i < (size_t)g->T * g->N; i++)
        g->dy[i] = number(draws, dy.low, dy.span, dy.top);
    for (size_t i = 0; i < (size_t)g->T * g->K; i++)
        g->x[i] = number(draws, x.low, x.span, x.top);
    for (size_t i = 0; i < (size_t)g->N * g->K; i++) {
        const uint64_t word = draw(draws);
        const float start = number(draws, acc.low, acc.span, acc.top);
        g->acc[i] = word % 4 == 0 || acc.top == 0
                        ? copysignf(0.0F, start)
                        : of_bits(bits_of(start) | (uint32_t)(word >> 48));
    }
}

/* Sums and operands around the bounds of the guard, chains that start at zeros of both signs, odd
 * numbers of terms, subnormal numbers and overflow. Some problems go by pairs, some do not, and all
 * have the bits of the chain. */
static void verify_bounds(void **state) {
    (void)state;
    need_instruction();
    struct draws draws = {UINT64_C(2) << 40};
    struct bf16_tiles all = {0, 0};
    const uint32_t problems = (uint32_t)helper_size(200, 3000, 100000);
    for (uint32_t i = 0; i < problems; i++) {
        struct arena arena = ARENA_EMPTY;
        const struct gradient g = gradient_of(&arena, 1 + (uint32_t)draw(&draws) % 24,
                                              1 + (uint32_t)draw(&draws) % 3, 16);
        const uint32_t low = (uint32_t)draw(&draws) % 240;
        const uint32_t sum = 100 + (uint32_t)draw(&draws) % 80;
        const uint32_t least = i % 4 == 0 ? 0 : 1; /* with subnormal numbers, and without */
        const struct range dy = {low > least ? low : least, 1 + (uint32_t)draw(&draws) % 12, 254};
        const struct range x = {sum > low + least ? sum - low : least,
                                1 + (uint32_t)draw(&draws) % 12, 254};
        const struct range acc = {(i % 3 == 0 ? 0 : 24) + (uint32_t)draw(&draws) % 40,
                                  1 + i % 2 * 3, i % 3 == 1 ? 0 : 254};
        fill_gradient(&draws, &g, dy, x, acc);
        expect_chain(&g);
        const struct bf16_tiles tiles = run_gradient(&arena, &g);
        check_gradient(&g, "around the bounds", i);
        all.tiles += tiles.tiles;
        all.by_fma += tiles.by_fma;
        arena_close(&arena);
    }
    assert_true(all.by_fma > all.tiles / 20 && all.by_fma < all.tiles - all.tiles / 20);
    print_message("%ju tiles around the bounds, %ju of them by fma\n", (uintmax_t)all.tiles,
                  (uintmax_t)all.by_fma);
}

/* One product and one sum, by hand. */
static void check_one(float dy, float x, float acc, uint32_t expected, uint64_t by_fma) {
    struct arena arena = ARENA_EMPTY;
    const struct gradient g = gradient_of(&arena, 1, 1, 1);
    g.dy[0] = dy;
    g.x[0] = x;
    g.acc[0] = acc;
    const struct bf16_tiles tiles = run_gradient(&arena, &g);
    if (bits_of(g.acc[0]) != expected || tiles.tiles != 1 || tiles.by_fma != by_fma)
        fail_msg("fma(%a, %a, %a): %08x by %s, expected %08x", (double)dy, (double)x, (double)acc,
                 bits_of(g.acc[0]), tiles.by_fma ? "fma" : "pairs", expected);
    arena_close(&arena);
}

static void validate_single_terms(void **state) {
    (void)state;
    need_instruction();
    check_one(3.0F, 5.0F, 0.5F, bits_of(15.5F), 0);
    /* An odd term's partner must leave -0 alone. */
    check_one(-0.0F, 1.0F, -0.0F, 0x80000000u, 0);
    check_one(0.0F, 1.0F, -0.0F, 0x00000000u, 0);
    /* 2^-112 (1 + 2^-23) - 2^-112 is 2^-135, which is subnormal. */
    check_one(-0x1p-56F, 0x1p-56F, of_bits(0x07800001u), 0x00004000u, 1);
    /* The smallest products and sums that pass: exponents 71 + 71, and 24. */
    const float last = of_bits(0x0c000001u);
    check_one(0x1.02p-56F, 0x1.02p-56F, last, bits_of(fmaf(0x1.02p-56F, 0x1.02p-56F, last)), 0);
    check_one(0x1.02p-56F, 0x1.02p-57F, 0.0F, bits_of(0x1.02p-56F * 0x1.02p-57F), 1);
    /* A subnormal operand beside a large one. */
    check_one(0x1p-130F, 0x1p20F, 0.0F, bits_of(0x1p-110F), 1);
    check_one(0x1p20F, 0x1p-130F, 0.0F, bits_of(0x1p-110F), 1);
    check_one(INFINITY, 1.0F, 0.0F, bits_of(INFINITY), 1);
    /* More digits than bf16 has. */
    check_one(0x1.0002p0F, 1.0F, 0.0F, bits_of(0x1.0002p0F), 1);
    check_one(1.0F, 0x1.0002p0F, 0.0F, bits_of(0x1.0002p0F), 1);
    /* Nothing but zeros is smaller than nothing. */
    check_one(0.0F, 0x1p-126F, 1.0F, bits_of(1.0F), 0);
}

/* x (28, 64), w (64, 64): two panels of 14 rows by two strips of 32 columns. */
static struct bf16_tiles run_forward(struct arena *arena, float in_x, float in_w, int threads) {
    enum { T = 28, N = 64, K = 64 };
    struct bf16_tiles tiles = {0, 0};
    float *const x = (float *)take(arena, (size_t)T * K, sizeof *x);
    float *const w = (float *)take(arena, (size_t)N * K, sizeof *w);
    float *const y = (float *)take(arena, (size_t)T * N, sizeof *y);
    fill(x, sizeof *x, (size_t)T * K, 0, DTYPE_BF16);
    fill(w, sizeof *w, (size_t)N * K, 1 << 20, DTYPE_BF16);
    x[3 * K + 5] = in_x;
    w[40 * K + 7] = in_w;
    const struct fenced fenced = fenced_scratch(arena, T, K, threads);
    const struct op_call call = {
        .compute = DTYPE_BF16, .threads = threads, .bf16 = &tiles, .scratch = fenced.scratch};
    const struct row_list rows = {NULL, T};
    widest->forward(&call, &(struct linear_forward_args){rows, N, K, x, w, y, NULL});
    for (size_t i = 0; i < (size_t)T * N; i++) {
        float sum = 0.0F;
        for (size_t k = 0; k < K; k++)
            sum = fmaf(x[i / N * K + k], w[i % N * K + k], sum);
        const float rounded = (float)round_to((double)sum, DTYPE_BF16);
        assert_true(bits_of(y[i]) == bits_of(rounded) || (isnan(y[i]) && isnan(rounded)));
    }
    check_fence(&fenced);
    return tiles;
}

/* A number that the instruction may not see sends the tiles that it is in to fma, and no other. */
static void verify_tiles(void **state) {
    (void)state;
    need_instruction();
    static const float planted[] = {0x1p-133F, -0x1p-128F, INFINITY, NAN, 0x1.01p0F};
    struct arena arena = ARENA_EMPTY;
    struct bf16_tiles tiles = run_forward(&arena, 1.0F, 1.0F, 1);
    assert_true(tiles.tiles == 4 && tiles.by_fma == 0);
    for (size_t i = 0; i < COUNT_OF(planted); i++) {
        tiles = run_forward(&arena, planted[i], 1.0F, 1);
        assert_true(tiles.tiles == 4 && tiles.by_fma == 2);
        tiles = run_forward(&arena, 1.0F, planted[i], 2);
        assert_true(tiles.tiles == 4 && tiles.by_fma == 2);
        tiles = run_forward(&arena, planted[i], planted[i], 1);
        assert_true(tiles.tiles == 4 && tiles.by_fma == 3);
    }
    arena_close(&arena);
}

/* Products whose operands the call does not round to bf16 are neither looked at nor counted. */
static void verify_not_asked(void **state) {
    (void)state;
    struct bf16_tiles tiles = {0, 0};
    struct arena arena = ARENA_EMPTY;
    const float x = 2.0F;
    const float w = 3.0F;
    float y = 0.0F;
    const struct fenced fenced = fenced_scratch(&arena, 1, 1, 1);
    const struct op_call call = {
        .compute = DTYPE_F32, .threads = 1, .bf16 = &tiles, .scratch = fenced.scratch};
    variants[0].forward(&call, &(struct linear_forward_args){{NULL, 1}, 1, 1, &x, &w, &y, NULL});
    assert_true(y == 6.0F && tiles.tiles == 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_instruction),  cmocka_unit_test(validate_default_nan),
        cmocka_unit_test(validate_single_terms), cmocka_unit_test(verify_bounds),
        cmocka_unit_test(verify_tiles),          cmocka_unit_test(verify_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
