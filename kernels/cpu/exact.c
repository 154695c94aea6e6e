/* SPDX-License-Identifier: Apache-2.0
 * Exact rows of products, and exact sums inside a vector (law 16). Vectors run across outputs of a
 * row, or along a vector's lanes, whose parts join exactly.
 *
 * The parts of base/exact_parts.h are a few doubles that hold a sum without loss while its terms
 * are of similar size. Where they cannot (terms of very different sizes, infinities, NaN), terms
 * are added one by one to fixed point: the same number, slower. */
#include "kernels/cpu/exact.h"

#include "base/exact_parts.h"
#include "base/sum.h"
#include "kernels/cpu/gemm_vector.h"

#if defined(TWINSTEP_ISA_v4)
#define LANE_BYTES 64
#define WIDEN(v) isa_widen_64(v)
#elif defined(TWINSTEP_ISA_v3)
#define LANE_BYTES 32
#define WIDEN(v) isa_widen_32(v)
#else
#define LANE_BYTES 16
#define WIDEN(v) __builtin_convertvector(v, lanes)
#endif

typedef double lanes __attribute__((vector_size(LANE_BYTES)));
typedef uint64_t words __attribute__((vector_size(LANE_BYTES)));
#define LANES (LANE_BYTES / sizeof(double))
#define GROUP 2 /* vectors at a time: the sums of independent outputs hide each other's latency */
#define ACROSS (GROUP * LANES)

_Static_assert(EXACT_COLUMNS % ACROSS == 0, "a row is padded to whole groups");

/* The parts of ACROSS sums, and the bits that any of their terms left behind. */
struct parts {
    lanes part[EXACT_PARTS][GROUP];
    words rest[GROUP];
};

VEC_INLINE lanes splat(double x) {
    return x - (lanes){0};
}

VEC_INLINE lanes load_f64(const double *from) {
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

#if defined(TWINSTEP_ACCUMULATOR_f32)
typedef float half_lanes __attribute__((vector_size(LANE_BYTES / 2)));

VEC_INLINE lanes load(const accumulator *from) {
    half_lanes v;
    memcpy(&v, from, sizeof v);
    return WIDEN(v);
}
#else
VEC_INLINE lanes load(const accumulator *from) {
    return load_f64(from);
}
#endif

VEC_INLINE void parts_open(struct parts *parts, const double *start) {
    VEC_UNROLL
    for (size_t g = 0; g < GROUP; g++) {
        VEC_UNROLL
        for (size_t i = 0; i < EXACT_PARTS; i++)
            parts->part[i][g] = splat(start[i]);
        parts->rest[g] = (words){0};
    }
}

VEC_INLINE void parts_add(struct parts *parts, size_t g, lanes term) {
    VEC_UNROLL
    for (size_t i = 0; i < EXACT_PARTS; i++) {
        const lanes next = parts->part[i][g] + term;
        term -= next - parts->part[i][g];
        parts->part[i][g] = next;
    }
    parts->rest[g] |= (words)term;
}

/* The parts of one sum, without the values that they started from. */
struct three {
    double part[EXACT_PARTS];
    int whole; /* 1: nothing was left behind, so the parts are the sum */
};

VEC_INLINE struct three parts_of(const struct parts *parts, const double *start, size_t j) {
    struct three out;
    for (size_t i = 0; i < EXACT_PARTS; i++)
        out.part[i] = parts->part[i][j / LANES][j % LANES] - start[i];
    out.whole = parts->rest[j / LANES][j % LANES] << 1 == 0; /* a rest of -0 is nothing, too */
    return out;
}

static accumulator round_three(const struct three *sum) {
    return ACC_NAME_(exact_three)(sum->part[0], sum->part[1], sum->part[2]);
}

/* ---- bounds: by bits, which order as numbers do, with all that is not finite on top ---- */

#if defined(TWINSTEP_ACCUMULATOR_f32)
typedef uint32_t acc_bits;
#define ACC_MAGNITUDE 0x7fffffffu
#else
typedef uint64_t acc_bits;
#define ACC_MAGNITUDE UINT64_C(0x7fffffffffffffff)
#endif

static acc_bits larger(acc_bits a, acc_bits b) {
    return a > b ? a : b;
}

static acc_bits magnitude(const accumulator *x) {
    return ACC_NAME_(real_bits)(*x) & ACC_MAGNITUDE;
}

static double bound_of(acc_bits bits) {
    const accumulator x = ACC_NAME_(real_from_bits)(bits);
    return ACC_NAME_(real_finite)(x) ? (double)x : real_inf_f64();
}

static acc_bits most(const accumulator *x, size_t n) {
    acc_bits lane[16] = {0};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t l = 0; l < 16; l++)
            lane[l] = larger(lane[l], magnitude(x + i + l));
    for (; i < n; i++)
        lane[0] = larger(lane[0], magnitude(x + i));
    for (size_t l = 1; l < 16; l++)
        lane[0] = larger(lane[0], lane[l]);
    return lane[0];
}

double VARIANT(exact_bound)(const accumulator *x, size_t line, size_t lines, size_t n) {
    acc_bits bits = 0;
    for (size_t i = 0; i < lines; i++)
        bits = larger(bits, most(x + i * line, n));
    return bound_of(bits);
}

/* ---- rows of a product ---- */

static double row_bound(const struct exact_row *row) {
    acc_bits bits = 0;
    for (size_t t = 0; t < row->terms; t++)
        bits = larger(bits, magnitude(row->a + t * row->a_term));
    return bound_of(bits) * row->b_bound;
}

/* Makes the parts of outputs j .. j+ACROSS-1. */
static void row_parts(const struct exact_row *row, const double *start, size_t j,
                      struct parts *out) {
    struct parts parts;
    parts_open(&parts, start);
    for (size_t t = 0; t < row->terms; t++) {
        const lanes weight = splat((double)row->a[t * row->a_term]);
        VEC_UNROLL
        for (size_t g = 0; g < GROUP; g++)
            parts_add(&parts, g, weight * load(row->b + t * row->b_line + j + g * LANES));
    }
    *out = parts;
}

static void add_terms(const struct exact_row *row, size_t j, struct exact_sum *sum) {
    for (size_t t = 0; t < row->terms; t++)
        exact_sum_add(sum, (double)row->a[t * row->a_term] * (double)row->b[t * row->b_line + j]);
}

static accumulator round_terms(const struct exact_row *row, size_t j) {
    struct exact_sum sum = {{0}};
    add_terms(row, j, &sum);
    return exact_acc(&sum);
}

void VARIANT(exact_row_round)(const struct exact_row *row, accumulator *out) {
    double start[EXACT_PARTS];
    const int fast = exact_parts_start(row_bound(row), row->terms, start);
    for (size_t first = 0; first < row->columns; first += ACROSS) {
        struct parts parts;
        if (fast) row_parts(row, start, first, &parts);
        for (size_t j = first; j < first + ACROSS && j < row->columns; j++) {
            struct three sum = {.whole = 0};
            if (fast) sum = parts_of(&parts, start, j - first);
            out[j] = sum.whole ? round_three(&sum) : round_terms(row, j);
        }
    }
}

void VARIANT(exact_row_join)(const struct exact_row *row, struct exact_sum *held) {
    double start[EXACT_PARTS];
    const int fast = exact_parts_start(row_bound(row), row->terms, start);
    for (size_t first = 0; first < row->columns; first += ACROSS) {
        struct parts parts;
        if (fast) row_parts(row, start, first, &parts);
        for (size_t j = first; j < first + ACROSS && j < row->columns; j++) {
            struct three sum = {.whole = 0};
            if (fast) sum = parts_of(&parts, start, j - first);
            if (!sum.whole) {
                add_terms(row, j, held + j);
                continue;
            }
            for (size_t i = 0; i < EXACT_PARTS; i++)
                exact_sum_add(held + j, sum.part[i]);
        }
    }
}

/* ---- inside a vector ---- */

/* The largest magnitude of a block, which has at most SUM_BLOCK doubles, padded with +0 to whole
 * groups. */
static double block_bound(const double *x, size_t n) {
    uint64_t bits[16] = {0};
    for (size_t i = 0; i < n; i += 16)
        for (size_t l = 0; l < 16; l++) {
            const uint64_t own = real_bits_f64(x[i + l]) & UINT64_C(0x7fffffffffffffff);
            bits[l] = own > bits[l] ? own : bits[l];
        }
    for (size_t l = 1; l < 16; l++)
        bits[0] = bits[l] > bits[0] ? bits[l] : bits[0];
    const double bound = real_from_bits_f64(bits[0]);
    return real_finite_f64(bound) ? bound : real_inf_f64();
}

/* The parts of a block's sum. All lanes hold multiples of one unit that fit into one part together,
 * so joining them is exact. */
static struct three block_sum(const double *x, size_t n) {
    double start[EXACT_PARTS];
    struct three sum = {.whole = 0};
    if (!exact_parts_start(block_bound(x, n), n, start)) return sum;
    struct parts parts;
    parts_open(&parts, start);
    for (size_t i = 0; i < n; i += ACROSS) {
        VEC_UNROLL
        for (size_t g = 0; g < GROUP; g++)
            parts_add(&parts, g, load_f64(x + i + g * LANES));
    }
    sum = parts_of(&parts, start, 0);
    for (size_t l = 1; l < ACROSS; l++) {
        const struct three lane = parts_of(&parts, start, l);
        for (size_t i = 0; i < EXACT_PARTS; i++)
            sum.part[i] += lane.part[i];
        sum.whole &= lane.whole;
    }
    return sum;
}

/* A vector's terms, as doubles, a block at a time. */
struct block {
    double x[SUM_BLOCK];
    size_t n; /* how many, padding included */
};

static void block_pad(struct block *block, size_t n) {
    block->n = exact_padded(n);
    for (size_t i = n; i < block->n; i++)
        block->x[i] = 0.0;
}

static void append(struct exact_wide *sum, const struct block *block) {
    const struct three three = block_sum(block->x, block->n);
    const double *const x = three.whole ? three.part : block->x;
    for (size_t i = 0; i < (three.whole ? EXACT_PARTS : block->n); i++)
        exact_wide_add(sum, x[i]);
}

static accumulator block_round(const struct block *block) {
    const struct three three = block_sum(block->x, block->n);
    struct exact_wide sum = {{0}};
    if (three.whole) return round_three(&three);
    for (size_t i = 0; i < block->n; i++)
        exact_wide_add(&sum, block->x[i]);
    return ACC_NAME_(exact_wide)(&sum);
}

/* The sum of n terms. FILL(block, first, n) writes n of them, from `first` on, as doubles. */
#define VECTOR_SUM(n, FILL)                                                                        \
    do {                                                                                           \
        struct block block;                                                                        \
        if ((n) <= SUM_BLOCK) {                                                                    \
            FILL(0, (n));                                                                          \
            block_pad(&block, (n));                                                                \
            return block_round(&block);                                                            \
        }                                                                                          \
        struct exact_wide sum = {{0}};                                                             \
        for (size_t first = 0; first < (n); first += SUM_BLOCK) {                                  \
            const size_t some = (n)-first < SUM_BLOCK ? (n)-first : SUM_BLOCK;                     \
            FILL(first, some);                                                                     \
            block_pad(&block, some);                                                               \
            append(&sum, &block);                                                                  \
        }                                                                                          \
        return ACC_NAME_(exact_wide)(&sum);                                                        \
    } while (0)

#define FILL_TERMS(first, count)                                                                   \
    for (size_t i = 0; i < (count); i++)                                                           \
    block.x[i] = (double)x[(first) + i]
#define FILL_PRODUCTS(first, count)                                                                \
    for (size_t i = 0; i < (count); i++)                                                           \
    block.x[i] = (double)a[(first) + i] * (double)b[(first) + i]

accumulator VARIANT(exact_terms)(const accumulator *x, size_t n) {
    VECTOR_SUM(n, FILL_TERMS);
}

accumulator VARIANT(exact_products)(const accumulator *a, const accumulator *b, size_t n) {
    VECTOR_SUM(n, FILL_PRODUCTS);
}

accumulator VARIANT(exact_carrier_products)(const carrier *a, const carrier *b, size_t n) {
    VECTOR_SUM(n, FILL_PRODUCTS);
}

void VARIANT(exact_append_squares)(struct exact_wide *sum, const float *x, size_t n) {
    struct block block;
    for (size_t first = 0; first < n; first += SUM_BLOCK) {
        const size_t some = n - first < SUM_BLOCK ? n - first : SUM_BLOCK;
        for (size_t i = 0; i < some; i++)
            block.x[i] = (double)x[first + i] * (double)x[first + i];
        block_pad(&block, some);
        append(sum, &block);
    }
}
