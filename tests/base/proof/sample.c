/* SPDX-License-Identifier: Apache-2.0
 * Makes the inputs of the proofs; sample.h says what each kind is. */
#include "tests/base/proof/sample.h"

#include "base/real.h"
#include "tests/base/helper_random.h"
#include "tests/base/proof/proof_pair.h"

#define LN2 0x1.62e42fefa39efp-1
#define QUARTER_PI 0x1.921fb54442d18p-1

void sample_all(enum proof_function function, uint64_t index, const void *context,
                struct proof_block *block) {
    (void)function;
    (void)context;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        block->x[i] = (double)real_from_bits_f32((uint32_t)(index * PROOF_BLOCK + i));
        block->y[i] = 0.0;
    }
}

void sample_strided(enum proof_function function, uint64_t index, const void *context,
                    struct proof_block *block) {
    (void)function;
    (void)context;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        uint32_t n = (uint32_t)(index * PROOF_BLOCK + i);
        uint32_t offset = n % 8 == 0 ? 0u : n * 2654435761u >> 20;
        block->x[i] = (double)real_from_bits_f32(n << 12 | offset);
        block->y[i] = 0.0;
    }
}

void sample_special(enum proof_function function, uint64_t index, const void *context,
                    struct proof_block *block) {
    static const float points[] = {
        0.0f,          0x1p-149f,     0x1p-126f,      0x1p-27f,       0x1p-25f,      0x1p-24f,
        0x1p-54f,      0x1.62e43p-2f, 0.5f,           0x1.6a09e6p-1f, 1.0f,          0x1.6a09e6p0f,
        0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.2cb3cp3f,   0x1.5d589ep6f,  0x1.62e42ep6f, 0x1.9fe36ap6f,
        88.0f,         89.0f,         126.0f,         127.0f,         128.0f,        150.0f,
        0x1p20f,       0x1p24f,       0x1.fffffep127f};
    (void)function;
    (void)context;
    block->count = 0;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        size_t n = index * PROOF_BLOCK + i;
        size_t point = n / 258 % COUNT_OF(points);
        uint32_t bits = real_bits_f32(points[point]) + (uint32_t)(n % 129) - 64u;
        bits ^= n / 129 % 2 != 0 ? 0x80000000u : 0u;
        block->x[i] = (double)real_from_bits_f32(bits);
        block->y[i] = 0.0;
        block->count++;
    }
}

struct range {
    double low, high;
};

static const struct range ranges[PROOF_POW][3] = {
    {{-746, 710}, {-1, 1}, {-88, 89}},             /* exp */
    {{-1076, 1025}, {-1, 1}, {-127, 128}},         /* exp2 */
    {{-42, 710}, {-1, 1}, {-4, 4}},                /* expm1 */
    {{-20, 20}, {-1, 1}, {0.9, 1.1}},              /* tanh */
    {{0, 10}, {0.7, 1.42}, {0, 1e6}},              /* log */
    {{-1, 1}, {-0.3, 0.42}, {0, 1e6}},             /* log1p */
    {{-4, 4}, {-1048576, 1048576}, {-4096, 4096}}, /* sin */
    {{-4, 4}, {-1048576, 1048576}, {-4096, 4096}}, /* cos */
};

static double move(double x, int64_t ulps) {
    uint64_t bits = real_bits_f64(x);
    if ((bits & 0x7fffffffffffffffu) <= (uint64_t)(ulps < 0 ? -ulps : ulps)) return x;
    return real_from_bits_f64(bits + (uint64_t)ulps);
}

static double whole_between(struct random_source *source, int low, int high) {
    uint64_t span = (uint64_t)(high - low + 1);
    return (double)(low + (int)(random_bits(source) % span));
}

/* Returns 2^k for -1022 <= k <= 1023. */
static double power_of_two(double k) {
    return real_from_bits_f64((uint64_t)(int64_t)(k + 1023.0) << 52);
}

/* Draws from the places where two pieces of an implementation meet, of ours or of another. */
static double seam(enum proof_function function, struct random_source *source) {
    static const double ends[] = {0x1p-54,
                                  0x1p-27,
                                  1.0,
                                  709.78271289338397,
                                  -745.13321910194122,
                                  0x1p20,
                                  -0x1p20,
                                  -1.0,
                                  -708.39641853226408,
                                  1024.0,
                                  -1074.0,
                                  -1022.0,
                                  -40.0,
                                  32.0,
                                  0x1p-1022,
                                  -0x1p-1022,
                                  0x1p-100,
                                  -0x1p-54};
    if (random_bits(source) % 8 == 0) return ends[random_bits(source) % COUNT_OF(ends)];
    int near = random_bits(source) % 2 != 0;
    switch (function) {
    case PROOF_EXP:
    case PROOF_EXPM1:
        return (whole_between(source, near ? -3 : -1076, near ? 3 : 1024) + 0.5) * LN2;
    case PROOF_EXP2:
        return whole_between(source, near ? -3 : -1076, near ? 3 : 1024) + 0.5;
    case PROOF_TANH:
        return (whole_between(source, -60, 60) + 0.5) * (0.5 * LN2);
    case PROOF_LOG:
        return power_of_two(whole_between(source, near ? -2 : -1021, near ? 2 : 1023)) *
               (near ? 1.0 : 0x1.6a09ep-1);
    case PROOF_LOG1P:
        return power_of_two(whole_between(source, near ? -2 : -50, near ? 2 : 1000)) *
                   (near ? 1.0 : 0x1.6a09ep-1) -
               1.0;
    case PROOF_SIN:
    case PROOF_COS:
        return whole_between(source, near ? -9 : -1335088, near ? 9 : 1335088) * QUARTER_PI;
    case PROOF_POW:
    case PROOF_FUNCTIONS:
        break;
    }
    return 1.0;
}

static double slope(enum proof_function function, double x, double y) {
    switch (function) {
    case PROOF_EXP:
        return y;
    case PROOF_EXP2:
        return y * LN2;
    case PROOF_EXPM1:
        return y + 1.0;
    case PROOF_TANH:
        return 1.0 - y * y;
    case PROOF_LOG:
        return 1.0 / x;
    case PROOF_LOG1P:
        return 1.0 / (1.0 + x);
    case PROOF_SIN:
        return real_cos_f64(x);
    case PROOF_COS:
        return -real_sin_f64(x);
    case PROOF_POW:
    case PROOF_FUNCTIONS:
        break;
    }
    return 1.0;
}

/* Moves each x by Newton's step to where the exact value is half an ulp above a double: as near to
 * a tie as the neighbours of x allow. */
static void aim_at_midpoints(enum proof_function function, struct proof_block *block) {
    proof_best_refer()(function, block);
    for (size_t i = 0; i < block->count; i++) {
        double y = block->high[i];
        double half = (real_next_up_f64(y) - y) * 0.5;
        double step = (half - block->low[i]) / slope(function, block->x[i], y);
        double x = block->x[i] + step;
        if (real_finite_f64(x)) block->x[i] = x;
    }
}

static double draw_exponent(struct random_source *source) {
    uint64_t bits = random_bits(source);
    uint64_t exponent = 1023u - 60u + bits % 73u;
    return real_from_bits_f64((bits & 0x800fffffffffffffu) | exponent << 52);
}

static double draw_short(struct random_source *source) {
    uint64_t bits = random_bits(source);
    double whole = (double)(int64_t)(bits >> 8 & 0xfffffu) * ((bits & 1u) != 0 ? -1.0 : 1.0);
    switch (bits >> 1 & 3u) {
    case 0:
        return whole;
    case 1:
        return whole * 0.125;
    case 2:
        return whole * 0x1p-20;
    default:
        return (double)random_any_f32(source);
    }
}

static double draw(enum proof_function function, unsigned kind, struct random_source *source) {
    const struct range *range;
    double place;
    switch (kind) {
    case 0:
        return random_any_f64(source);
    case 4:
        place = seam(function, source); /* before the next draw */
        return move(place, (int64_t)(random_bits(source) % 129) - 64);
    case 6:
        return draw_exponent(source);
    case 7:
        return draw_short(source);
    default:
        range = &ranges[function][kind == 5 ? 1 : kind - 1];
        return random_between(source, range->low, range->high);
    }
}

void sample_mixed(enum proof_function function, uint64_t index, const void *context,
                  struct proof_block *block) {
    struct random_source source = {index * 0xd1342543de82ef95u + (uint64_t)function};
    unsigned kind = (unsigned)(index % 8);
    (void)context;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        block->x[i] = draw(function, kind, &source);
        block->y[i] = 0.0;
    }
    if (kind == 5) aim_at_midpoints(function, block);
}

/* Ranges of bases and exponents; low == high means any bits. */
static const struct range pow_ranges[][2] = {
    {{0, 10}, {-300, 300}},
    {{0.99, 1.01}, {-70000, 70000}},
    {{0, 1e300}, {-1, 1}},
    {{0, 1e-300}, {-1, 1}},
    {{0.5, 2}, {-1000, 1000}},
    {{1e4, 1e6}, {-1, 0}},
    {{0.9, 0.999}, {1, 5e5}},
    {{0, 0}, {-2, 2}},
    {{0.99999, 1.00001}, {-7e7, 7e7}},
    {{-10, 10}, {-20, 20}},
    {{0, 0}, {0, 0}},
};

static double draw_between(struct random_source *source, struct range range) {
    if (range.low == range.high) return random_any_f64(source);
    return random_between(source, range.low, range.high);
}

/* Half of the exponents of negative bases are integers. */
void sample_pow(enum proof_function function, uint64_t index, const void *context,
                struct proof_block *block) {
    const struct range *range = pow_ranges[index % COUNT_OF(pow_ranges)];
    struct random_source source = {index * 0xd1342543de82ef95u + (uint64_t)function};
    (void)context;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        block->x[i] = draw_between(&source, range[0]);
        block->y[i] = draw_between(&source, range[1]);
        if (range[0].low < 0.0 && i % 2 != 0) block->y[i] = whole_between(&source, -20, 20);
    }
}

static void narrow(struct proof_block *block) {
    for (size_t i = 0; i < block->count; i++) {
        block->x[i] = (double)(float)block->x[i];
        block->y[i] = (double)(float)block->y[i];
    }
}

/* The same with bases that are floats; where those of f64 are beyond them, any bits. */
void sample_pow32(enum proof_function function, uint64_t index, const void *context,
                  struct proof_block *block) {
    struct random_source source = {~index};
    size_t kind = index % COUNT_OF(pow_ranges);
    int any = kind == 2 || kind == 3 || kind == 7 || kind == 10;
    sample_pow(function, index, context, block);
    for (size_t i = 0; i < block->count; i++) {
        if (any) block->x[i] = (double)random_any_f32(&source);
        if (kind == 2 || kind == 3) block->x[i] = pair_abs(block->x[i]);
        if (kind == 10) block->y[i] = (double)random_any_f32(&source);
    }
    narrow(block);
}

void sample_beta(enum proof_function function, uint64_t index, const void *context,
                 struct proof_block *block) {
    static const double betas[] = {0.8,   0.9,   0.95,   0.97,   0.98,   0.99,
                                   0.995, 0.999, 0.9995, 0.9999, 0.99999};
    (void)function;
    (void)context;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        block->x[i] = betas[index / 512];
        block->y[i] = (double)(index % 512 * PROOF_BLOCK + i + 1);
    }
}

void sample_beta32(enum proof_function function, uint64_t index, const void *context,
                   struct proof_block *block) {
    sample_beta(function, index, context, block);
    narrow(block);
}

void sample_theta(enum proof_function function, uint64_t index, const void *context,
                  struct proof_block *block) {
    static const double thetas[] = {1e4, 1e5, 5e5, 1e6, 1e7};
    size_t half = index % 256 + 1;
    (void)function;
    (void)context;
    block->count = half;
    for (size_t i = 0; i < half; i++) {
        block->x[i] = thetas[index / 256];
        block->y[i] = (double)(2 * i) / (double)(2 * half);
    }
}

void sample_theta32(enum proof_function function, uint64_t index, const void *context,
                    struct proof_block *block) {
    sample_theta(function, index, context, block);
    narrow(block);
}

void sample_line(enum proof_function function, uint64_t index, const void *context,
                 struct proof_block *block) {
    (void)function;
    block->count = PROOF_BLOCK;
    for (size_t i = 0; i < PROOF_BLOCK; i++) {
        block->x[i] = (double)real_from_bits_f32((uint32_t)(index * PROOF_BLOCK + i));
        block->y[i] = *(const double *)context;
    }
}
