/* SPDX-License-Identifier: Apache-2.0
 * One block of law 2 of each measure of kernels/evidence.h, per instruction set. Sums and
 * differences are f64's, from exact conversions, so only the f64 pair has a use for them.
 *
 * Numbers are taken in chunks that stay in the first-level cache as f64: a chunk is a multiple of
 * the 32 lanes, so lanes go on from chunk to chunk, and each loop has one thing to do and
 * vectorises. The arithmetic of an element is that of kernels/cuda/ in the same order. */
#include "kernels/cpu/evidence_blocks.h"

#include "base/rule_ulp.h"
#include "base/sum.h"
#include "base/variant.h"

#ifdef TWINSTEP_CARRIER_f64
#define CHUNK ((size_t)256) /* 2 KiB of f64; a dozen such arrays fit */
#define REGISTERS (SUM_LANES / SUM_WIDTH_f64)

/* The lanes of one sum while a block is walked. */
struct lanes {
    sum_vector_f64 in[REGISTERS];
};

static inline void lanes_open(struct lanes *sums, size_t count) {
    memset(sums, 0, count * sizeof *sums);
}

static inline void add_products(struct lanes *sum, const double *a, const double *b, size_t count) {
    sum_rows_products_f64_f64(sum->in, a, b, count);
}

static inline double join(const struct lanes *sum) {
    return sum_join_f64(sum->in);
}

/* Reads numbers first .. first+count-1 of a tensor. */
static inline void read_form(const void *values, struct form form, size_t first, size_t count,
                             double *restrict out) {
    const void *const from = form_at(values, form, first);
    const uint16_t *const halves = (const uint16_t *)from;
    const float *const floats = (const float *)from;
    if (form.dtype == DTYPE_F64)
        memcpy(out, from, count * sizeof *out);
    else if (!form_is_narrow(form))
        for (size_t i = 0; i < count; i++)
            out[i] = (double)floats[i];
    else if (form.dtype == DTYPE_BF16)
        for (size_t i = 0; i < count; i++)
            out[i] = (double)form_load_bf16(halves[i]);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = (double)form_load_f16(halves[i]);
}

/* The same where they lie in carriers. */
static inline void read_values(const void *values, enum dtype dtype, size_t first, size_t count,
                               double *restrict out) {
    read_form(values, form_carried(dtype), first, count, out);
}

static inline void subtract(const double *a, const double *b, size_t count, double *restrict out) {
    for (size_t i = 0; i < count; i++)
        out[i] = a[i] - b[i];
}

/* How many numbers have other bits in `b`. */
static inline uint64_t changed_words(const uint32_t *a, const uint32_t *b, size_t count) {
    uint32_t changed = 0; /* a block has 4096 */
    for (size_t i = 0; i < count; i++)
        changed += a[i] != b[i];
    return changed;
}

static inline uint64_t changed_long_words(const uint64_t *a, const uint64_t *b, size_t count) {
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++)
        changed += a[i] != b[i];
    return changed;
}

static inline uint64_t count_changed(const void *a, const void *b, enum dtype dtype, size_t first,
                                     size_t count) {
    union {
        uint32_t words[2][CHUNK];
        uint64_t long_words[2][CHUNK];
    } bits;
    if (dtype == DTYPE_F64) {
        memcpy(bits.long_words[0], (const double *)a + first, count * sizeof(uint64_t));
        memcpy(bits.long_words[1], (const double *)b + first, count * sizeof(uint64_t));
        return changed_long_words(bits.long_words[0], bits.long_words[1], count);
    }
    memcpy(bits.words[0], (const float *)a + first, count * sizeof(uint32_t));
    memcpy(bits.words[1], (const float *)b + first, count * sizeof(uint32_t));
    return changed_words(bits.words[0], bits.words[1], count);
}

/* The chunks of a block of `count` numbers that begins at number `first`: `at` is where the chunk
 * begins, `some` how many numbers it has. */
#define FOR_CHUNKS(first, count, at, some)                                                         \
    for (size_t at = (first), left_ = (count), some;                                               \
         left_ > 0 && (some = left_ < CHUNK ? left_ : CHUNK, 1); left_ -= some, at += some)

/* ---- update sizes ---- */

/* The sums of a block, and how many of its numbers have other bits than before. */
enum { UPDATE, NORM, TRAVEL, SIZES };
struct sizes {
    struct lanes sum[SIZES];
    uint64_t changed;
};

static inline void add_sizes(const struct update_sizes_args *args, size_t first, size_t count,
                             struct sizes *sizes) {
    double now[CHUNK], other[CHUNK], step[CHUNK];
    FOR_CHUNKS(first, count, at, some) {
        read_values(args->now, args->dtype, at, some, now);
        read_values(args->before, args->dtype, at, some, other);
        subtract(now, other, some, step);
        add_products(&sizes->sum[UPDATE], step, step, some);
        add_products(&sizes->sum[NORM], now, now, some);
        read_values(args->start, args->dtype, at, some, other);
        subtract(now, other, some, step);
        add_products(&sizes->sum[TRAVEL], step, step, some);
        sizes->changed += count_changed(args->now, args->before, args->dtype, at, some);
    }
}

/* Registers of each of the three sums that are walked together: with the numbers on their way they
 * fill the 32 of AVX-512, or most of 16. */
#define ABREAST (SUM_BYTES == 64 ? (size_t)4 : (size_t)2)
/* Rows after which the next registers are walked, while the numbers are in the first-level cache.
 */
#define ROWS_AT_ONCE ((size_t)32)
#define ROW_BYTES (SUM_LANES * sizeof(float))

/* Adds rows of 32 numbers to `ABREAST` registers of each sum, from register `r` on. */
SUM_INLINE void add_size_rows(const float *now, const float *before, const float *start,
                              size_t rows, size_t r, const struct ahead *next,
                              struct sizes *sizes) {
    sum_vector_f64 sum[SIZES][ABREAST];
    for (size_t s = 0; s < SIZES; s++)
        memcpy(sum[s], &sizes->sum[s].in[r], sizeof sum[s]);
    for (size_t at = r * SUM_WIDTH_f64; rows > 0; at += SUM_LANES, rows--) {
        if (r == 0) ahead_ask(next, at * sizeof(float), ROW_BYTES);
        SUM_UNROLL
        for (size_t i = 0; i < ABREAST; i++) {
            const size_t from = at + i * SUM_WIDTH_f64;
            const sum_vector_f64 x = sum_load_f32_f64(now + from);
            const sum_vector_f64 step = x - sum_load_f32_f64(before + from);
            const sum_vector_f64 way = x - sum_load_f32_f64(start + from);
            sum[UPDATE][i] = sum_fma_f64(step, step, sum[UPDATE][i]);
            sum[NORM][i] = sum_fma_f64(x, x, sum[NORM][i]);
            sum[TRAVEL][i] = sum_fma_f64(way, way, sum[TRAVEL][i]);
        }
    }
    for (size_t s = 0; s < SIZES; s++)
        memcpy(&sizes->sum[s].in[r], sum[s], sizeof sum[s]);
}

static inline uint64_t changed_floats(const float *a, const float *b, size_t count) {
    uint32_t changed = 0; /* of at most 4096 */
    for (size_t i = 0; i < count; i++)
        changed += real_bits_f32(a[i]) != real_bits_f32(b[i]);
    return changed;
}

/* add_sizes of whole rows of f32 numbers, without a copy of them. */
static inline void add_sizes_f32(const struct update_sizes_args *args, size_t first, size_t rows,
                                 const struct ahead *next, struct sizes *sizes) {
    size_t walked = 0;
    const float *now = (const float *)args->now + first,
                *before = (const float *)args->before + first,
                *start = (const float *)args->start + first;
    while (rows > 0) {
        const size_t some = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE, numbers = some * SUM_LANES;
        const struct ahead here = ahead_after(next, walked);
        for (size_t r = 0; r < REGISTERS; r += ABREAST)
            add_size_rows(now, before, start, some, r, &here, sizes);
        sizes->changed += changed_floats(now, before, numbers);
        walked += numbers * sizeof(float);
        now += numbers, before += numbers, start += numbers;
        rows -= some;
    }
}

void VARIANT(evidence_update_block)(const struct update_sizes_args *args, size_t first,
                                    size_t count, const struct ahead *next,
                                    struct update_sizes_block *out) {
    struct sizes sizes = {.changed = 0};
    const size_t rows = args->dtype == DTYPE_F64 ? 0 : count / SUM_LANES;
    const size_t done = rows * SUM_LANES;
    lanes_open(sizes.sum, SIZES);
    add_sizes_f32(args, first, rows, next, &sizes);
    add_sizes(args, first + done, count - done, &sizes);
    *out = (struct update_sizes_block){.update = join(&sizes.sum[UPDATE]),
                                       .norm = join(&sizes.sum[NORM]),
                                       .travel = join(&sizes.sum[TRAVEL]),
                                       .changed = sizes.changed};
}

/* ---- sums of squares ---- */

double VARIANT(evidence_squares_block)(const struct squares_args *args, size_t first,
                                       size_t count) {
    double values[CHUNK];
    struct lanes sum;
    lanes_open(&sum, 1);
    FOR_CHUNKS(first, count, at, some) {
        read_values(args->values, args->storage, at, some, values);
        add_products(&sum, values, values, some);
    }
    return join(&sum);
}

/* ---- distances between two runs ---- */

/* The dtypes whose positions on the line of values are the upper bits of an f32's (bf16, tf32,
 * f32), where no number is NaN: by how many bits to shift; -1: another dtype. */
static inline int line_shift(enum dtype dtype) {
    return dtype == DTYPE_F32 ? 0 : dtype == DTYPE_TF32 ? 13 : dtype == DTYPE_BF16 ? 16 : -1;
}

/* As rule_ulp_f32 for all numbers of a block of such a dtype, in 32 bits, in which the distance of
 * two positions fits. Returns -1 where a number is NaN. */
static inline int64_t largest_ulp_line(const float *x, const float *y, int shift, size_t count) {
    uint32_t largest = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t a = real_bits_f32(x[i]), b = real_bits_f32(y[i]);
        const uint32_t u = a & 0x7fffffffu, v = b & 0x7fffffffu;
        const int32_t p = (int32_t)(u >> shift), q = (int32_t)(v >> shift);
        const int32_t from = a >> 31 != 0 ? -p : p, to = b >> 31 != 0 ? -q : q;
        const uint32_t up = (uint32_t)from - (uint32_t)to, down = (uint32_t)to - (uint32_t)from;
        const uint32_t apart = from > to ? up : down, higher = u > v ? u : v;
        largest = apart > largest ? apart : largest;
        highest = higher > highest ? higher : highest;
    }
    return highest > 0x7f800000u ? -1 : (int64_t)largest;
}

static inline int64_t largest_ulp(const struct run_distances_args *args, size_t first,
                                  size_t count) {
    const int shift = line_shift(args->x_dtype);
    int64_t largest = -1;
    if (shift >= 0)
        largest = largest_ulp_line((const float *)args->x + first, (const float *)args->y + first,
                                   shift, count);
    if (largest >= 0) return largest;
    largest = 0;
    for (size_t i = first; i < first + count; i++) {
        const int64_t ulp =
            args->x_dtype == DTYPE_F64
                ? rule_ulp_f64(((const double *)args->x)[i], ((const double *)args->y)[i])
                : rule_ulp_f32(((const float *)args->x)[i], ((const float *)args->y)[i],
                               args->x_dtype);
        if (ulp > largest) largest = ulp;
    }
    return largest;
}

/* Adds numbers of any form. */
static inline void add_distances(const struct run_distances_args *args, size_t first, size_t count,
                                 struct lanes *sums) {
    double x[CHUNK], y[CHUNK], other[CHUNK], x_step[CHUNK], y_step[CHUNK];
    FOR_CHUNKS(first, count, at, some) {
        read_values(args->x, args->x_dtype, at, some, x);
        read_values(args->y, args->y_dtype, at, some, y);
        subtract(x, y, some, x_step);
        add_products(&sums[RUN_DISTANCES_GAP], x_step, x_step, some);
        read_values(args->start, args->x_dtype, at, some, other);
        subtract(x, other, some, x_step);
        add_products(&sums[RUN_DISTANCES_TRAVEL], x_step, x_step, some);
        read_values(args->x_old, args->x_dtype, at, some, other);
        subtract(x, other, some, x_step);
        read_values(args->y_old, args->y_dtype, at, some, other);
        subtract(y, other, some, y_step);
        add_products(&sums[RUN_DISTANCES_XX], x_step, x_step, some);
        add_products(&sums[RUN_DISTANCES_YY], y_step, y_step, some);
        add_products(&sums[RUN_DISTANCES_XY], x_step, y_step, some);
    }
}

/* Adds rows of f32 numbers to one register of each sum, from register `r` on. */
SUM_INLINE void add_distance_rows(const struct run_distances_args *args, size_t first, size_t rows,
                                  size_t r, struct lanes *sums) {
    const float *const x = (const float *)args->x, *const y = (const float *)args->y,
                       *const start = (const float *)args->start,
                       *const x_old = (const float *)args->x_old,
                       *const y_old = (const float *)args->y_old;
    sum_vector_f64 sum[RUN_DISTANCES_SUMS];
    for (size_t s = 0; s < RUN_DISTANCES_SUMS; s++)
        sum[s] = sums[s].in[r];
    for (size_t at = first + r * SUM_WIDTH_f64; rows > 0; at += SUM_LANES, rows--) {
        const sum_vector_f64 a = sum_load_f32_f64(x + at), b = sum_load_f32_f64(y + at);
        const sum_vector_f64 gap = a - b, way = a - sum_load_f32_f64(start + at);
        const sum_vector_f64 x_step = a - sum_load_f32_f64(x_old + at);
        const sum_vector_f64 y_step = b - sum_load_f32_f64(y_old + at);
        sum[RUN_DISTANCES_GAP] = sum_fma_f64(gap, gap, sum[RUN_DISTANCES_GAP]);
        sum[RUN_DISTANCES_TRAVEL] = sum_fma_f64(way, way, sum[RUN_DISTANCES_TRAVEL]);
        sum[RUN_DISTANCES_XX] = sum_fma_f64(x_step, x_step, sum[RUN_DISTANCES_XX]);
        sum[RUN_DISTANCES_YY] = sum_fma_f64(y_step, y_step, sum[RUN_DISTANCES_YY]);
        sum[RUN_DISTANCES_XY] = sum_fma_f64(x_step, y_step, sum[RUN_DISTANCES_XY]);
    }
    for (size_t s = 0; s < RUN_DISTANCES_SUMS; s++)
        sums[s].in[r] = sum[s];
}

void VARIANT(evidence_distance_block)(const struct run_distances_args *args, size_t first,
                                      size_t count, struct run_distances_block *out) {
    struct lanes sums[RUN_DISTANCES_SUMS];
    const int is_wide = args->x_dtype == DTYPE_F64 || args->y_dtype == DTYPE_F64;
    const size_t rows = is_wide ? 0 : count / SUM_LANES, done = rows * SUM_LANES;
    lanes_open(sums, RUN_DISTANCES_SUMS);
    *out = (struct run_distances_block){.ulp = 0};
    for (size_t row = 0, some; row < rows; row += some) {
        some = rows - row < ROWS_AT_ONCE ? rows - row : ROWS_AT_ONCE;
        for (size_t r = 0; r < REGISTERS; r++)
            add_distance_rows(args, first + row * SUM_LANES, some, r, sums);
    }
    add_distances(args, first + done, count - done, sums);
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        out->sum[s] = join(&sums[s]);
    if (args->x_dtype == args->y_dtype) FOR_CHUNKS(first, count, at, some) {
            out->changed += count_changed(args->x, args->y, args->x_dtype, at, some);
        }
    if (out->changed > 0) out->ulp = largest_ulp(args, first, count);
}

/* ---- read-back ---- */

/* A chunk's numbers, as f64. */
struct numbers {
    double old[CHUNK], now[CHUNK], direction[CHUNK];
    double gradient[CHUNK], then[CHUNK], slot[2][CHUNK]; /* those that the direction reads */
};

/* `is_stored` is a constant, so that the usual loop has none of the other's roundings. */
static inline void direct_adam(const struct rule_direction *rule, int is_stored, struct numbers *of,
                               size_t count) {
    struct rule_direction k = *rule;
    k.is_stored = is_stored;
    for (size_t i = 0; i < count; i++)
        of->direction[i] = rule_direction_adam(&k, of->slot[0][i], of->slot[1][i], of->old[i]);
}

static inline void direct_sgd(const struct rule_direction *rule, struct numbers *of, size_t count) {
    const struct rule_direction k = *rule;
    for (size_t i = 0; i < count; i++)
        of->direction[i] = rule_direction_sgd(&k, of->gradient[i], of->slot[0][i], of->old[i]);
}

static inline void direct_lion(const struct rule_direction *rule, struct numbers *of,
                               size_t count) {
    const struct rule_direction k = *rule;
    for (size_t i = 0; i < count; i++)
        of->direction[i] = rule_direction_lion(&k, of->gradient[i], of->then[i], of->old[i]);
}

/* Reads a chunk and computes its directions. A slot that the kind does not read may not exist. */
static inline void read_numbers(const struct readback_blocks_args *args,
                                const struct readback_blocks_tensor *of, size_t at, size_t count,
                                struct numbers *out) {
    const struct rule_direction *const k = &args->direction;
    read_values(of->old, args->working, at, count, out->old);
    read_values(of->now, args->working, at, count, out->now);
    switch (k->kind) {
    case RULE_DIRECTION_ADAM:
        read_form(of->slots[0], args->slot, at, count, out->slot[0]);
        read_form(of->slots[k->second], args->slot, at, count, out->slot[1]);
        if (k->is_stored)
            direct_adam(k, 1, out, count);
        else
            direct_adam(k, 0, out, count);
        break;
    case RULE_DIRECTION_SGD:
        read_values(of->gradient, args->gradient_dtype, at, count, out->gradient);
        if (k->momentum != 0.0)
            read_form(of->slots[0], args->slot, at, count, out->slot[0]);
        else
            memset(out->slot[0], 0, sizeof out->slot[0]);
        direct_sgd(k, out, count);
        break;
    default:
        read_values(of->gradient, args->gradient_dtype, at, count, out->gradient);
        read_form(of->moment != NULL ? of->moment : of->slots[0], args->slot, at, count, out->then);
        direct_lion(k, out, count);
    }
}

/* The terms of a chunk in columns. */
struct terms {
    double u[CHUNK], p[CHUNK], d[CHUNK], e[CHUNK];
    uint64_t meant, lost;
};

/* Directions without a slack: every element is told. */
static inline void fill_terms(const struct readback_blocks_args *args, const struct numbers *of,
                              size_t count, struct terms *out) {
    const struct rule_spacing spacing = args->spacing;
    const double decay = args->decay;
    for (size_t i = 0; i < count; i++) {
        const struct rule_read_terms terms =
            rule_read_terms(&spacing, of->direction[i], 0.0, 0.0, decay, of->old[i], of->now[i]);
        out->u[i] = terms.u;
        out->p[i] = terms.p;
        out->d[i] = terms.d;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t is_meant = of->direction[i] != 0.0, stands = of->now[i] == of->old[i];
        out->meant += is_meant;
        out->lost += is_meant & stands;
    }
}

static inline void fill_slack_terms(const struct readback_blocks_args *args,
                                    const struct numbers *of, size_t count, struct terms *out) {
    const struct rule_direction *const k = &args->direction;
    for (size_t i = 0; i < count; i++) {
        const double slack = RULE_SLACK_OF(k, of->slot[0][i], of->slot[1][i]);
        const struct rule_read_terms terms =
            rule_read_terms(&args->spacing, of->direction[i], slack, k->slack.negligible,
                            args->decay, of->old[i], of->now[i]);
        out->u[i] = terms.u;
        out->p[i] = terms.p;
        out->d[i] = terms.d;
        out->e[i] = terms.e;
        out->meant += (uint64_t)terms.meant;
        out->lost += (uint64_t)terms.lost;
    }
}

static inline void add_terms(const struct readback_blocks_args *args, const struct numbers *of,
                             size_t count, struct lanes *sums, double *meant, double *lost) {
    struct terms t;
    const int is_slack = args->direction.slack.is_on;
    t.meant = t.lost = 0;
    if (is_slack)
        fill_slack_terms(args, of, count, &t);
    else
        fill_terms(args, of, count, &t);
    *meant += (double)t.meant; /* f64 holds counts in any order */
    *lost += (double)t.lost;
    add_products(&sums[READBACK_BLOCKS_UU], t.u, t.u, count);
    add_products(&sums[READBACK_BLOCKS_UP], t.u, t.p, count);
    add_products(&sums[READBACK_BLOCKS_PP], t.p, t.p, count);
    add_products(&sums[READBACK_BLOCKS_UD], t.u, t.d, count);
    add_products(&sums[READBACK_BLOCKS_PD], t.p, t.d, count);
    for (size_t i = 0; i < count; i++) {
        t.u[i] = real_abs_f64(t.u[i]);
        t.p[i] = real_abs_f64(t.p[i]);
    }
    sum_rows_terms_f64_f64(sums[READBACK_BLOCKS_U].in, t.u, count);
    sum_rows_terms_f64_f64(sums[READBACK_BLOCKS_P].in, t.p, count);
    if (!is_slack) return;
    add_products(&sums[READBACK_BLOCKS_UE], t.u, t.e, count);
    add_products(&sums[READBACK_BLOCKS_PE], t.p, t.e, count);
}

/* The numbers of which rule_taken_value is made: slots, the same before the step, and weights
 * before it. All are f64, or all f32. */
struct taken_numbers {
    const void *slot, *then, *old;
};

#if defined(__FMA__)
/* The inverse of a divisor as a sum of two numbers. */
struct inverse {
    double divisor, high, low;
};

/* Returns x / divisor with the division's rounding, but for the sign of a 0, from products: eight
 * divisions take 16 cycles of a processor with AVX-512, and these 4. The quotient by both parts of
 * the inverse is off by less than a unit in the last place (Brisebarre, Muller and Raina, IEEE
 * Transactions on Computers 53 (8), 2004), and the step that adds the remainder's share then rounds
 * correctly (Markstein, IBM Journal of Research and Development 34 (1), 1990), as long as no number
 * on the way overflows or is subnormal. */
SUM_INLINE sum_vector_f64 quotient(const struct inverse *by, sum_vector_f64 x) {
    const sum_vector_f64 none = {0}, high = by->high - none, divisor = by->divisor - none;
    const sum_vector_f64 near = sum_fma_f64(x, high, x * by->low);
    return sum_fma_f64(sum_fma_f64(-near, divisor, x), high, near);
}

typedef uint64_t bits_vector __attribute__((vector_size(SUM_BYTES)));

SUM_INLINE sum_vector_f64 magnitude(sum_vector_f64 x) {
    return (sum_vector_f64)((bits_vector)x & UINT64_C(0x7fffffffffffffff));
}

SUM_INLINE sum_vector_f64 load_numbers(const void *values, size_t at, int are_wide) {
    return are_wide ? sum_load_f64_f64((const double *)values + at)
                    : sum_load_f32_f64((const float *)values + at);
}

/* What rule_taken_value divides by. */
struct taking {
    struct rule_taken k;
    struct inverse by, by_size;
    int is_possible; /* the inverse is neither too large nor too small */
};

static inline struct taking taking_open(const struct rule_taken *k) {
    const double high = 1.0 / k->take, size = real_abs_f64(k->take);
    const double low = real_fma_f64(-high, k->take, 1.0) / k->take;
    return (struct taking){.k = *k,
                           .by = {k->take, high, low},
                           .by_size = {size, real_abs_f64(high), k->take < 0.0 ? -low : low},
                           .is_possible = size >= 0x1p-100 && size <= 0x1p100};
}

/* Adds the squares of rule_taken_value of whole rows to its two sums. Returns 0, and adds nothing,
 * where a number is too large for quotient(), infinite or NaN. Those that are too small for it need
 * no look, since their squares are 0. */
SUM_INLINE int add_taken_rows(const struct taking *by, const struct taken_numbers *of, size_t rows,
                              int are_wide, const struct ahead *next, struct lanes *sums) {
    const struct rule_taken k = by->k;
    struct lanes taken, errors;
    sum_vector_f64 bounds = {0};
    for (size_t r = 0; r < REGISTERS; r++) {
        sum_vector_f64 gradients = sums[READBACK_BLOCKS_TAKEN].in[r];
        sum_vector_f64 distances = sums[READBACK_BLOCKS_TAKEN_ERROR].in[r];
        size_t at = r * SUM_WIDTH_f64;
        for (size_t row = 0; row < rows; row++, at += SUM_LANES) {
            if (r == 0) ahead_ask(next, row * ROW_BYTES, ROW_BYTES);
            const sum_vector_f64 m = load_numbers(of->slot, at, are_wide);
            const sum_vector_f64 kept = k.keep * load_numbers(of->then, at, are_wide);
            const sum_vector_f64 inside = k.decay * load_numbers(of->old, at, are_wide);
            const sum_vector_f64 bound = magnitude(m) + magnitude(kept);
            const sum_vector_f64 gradient = quotient(&by->by, m - kept) - inside;
            const sum_vector_f64 error =
                k.unit * (quotient(&by->by_size, bound) + magnitude(inside)) + k.least;
            bounds += bound;
            gradients = sum_fma_f64(gradient, gradient, gradients);
            distances = sum_fma_f64(error, error, distances);
        }
        taken.in[r] = gradients;
        errors.in[r] = distances;
    }
    for (size_t l = 0; l < SUM_WIDTH_f64; l++)
        if (!(bounds[l] <= 0x1p700)) return 0; /* and so is none of those added */
    sums[READBACK_BLOCKS_TAKEN] = taken;
    sums[READBACK_BLOCKS_TAKEN_ERROR] = errors;
    return 1;
}

/* Returns how many numbers were taken: those of whole rows, or none. */
static size_t add_taken_by_products(const struct taking *by, const struct taken_numbers *of,
                                    size_t count, int are_wide, const struct ahead *next,
                                    struct lanes *sums) {
    const size_t rows = by->is_possible ? count / SUM_LANES : 0;
    const int is_taken = rows > 0 && (are_wide ? add_taken_rows(by, of, rows, 1, next, sums)
                                               : add_taken_rows(by, of, rows, 0, next, sums));
    return is_taken ? rows * SUM_LANES : 0;
}
#else
struct taking {
    struct rule_taken k;
};

static inline struct taking taking_open(const struct rule_taken *k) {
    return (struct taking){*k};
}

static size_t add_taken_by_products(const struct taking *by, const struct taken_numbers *of,
                                    size_t count, int are_wide, const struct ahead *next,
                                    struct lanes *sums) {
    (void)by, (void)of, (void)count, (void)are_wide, (void)next, (void)sums;
    return 0;
}
#endif

static inline void add_taken_divided(const struct rule_taken *by, const double *slot,
                                     const double *then, const double *old, size_t count,
                                     struct lanes *sums) {
    double gradient[CHUNK], error[CHUNK];
    const struct rule_taken k = *by;
    for (size_t i = 0; i < count; i++) {
        const struct rule_taken_value value = rule_taken_value(&k, slot[i], then[i], old[i]);
        gradient[i] = value.gradient;
        error[i] = value.error;
    }
    add_products(&sums[READBACK_BLOCKS_TAKEN], gradient, gradient, count);
    add_products(&sums[READBACK_BLOCKS_TAKEN_ERROR], error, error, count);
}

/* Takes a chunk, of any form. */
static inline void add_taken_chunk(const struct readback_blocks_args *args,
                                   const struct readback_blocks_tensor *of, size_t at, size_t count,
                                   const struct taking *by, struct lanes *sums) {
    double slot[CHUNK], then[CHUNK], old[CHUNK];
    const struct taken_numbers numbers = {slot, then, old};
    read_form(of->slots[0], args->slot, at, count, slot);
    read_form(of->moment, args->slot, at, count, then);
    read_values(of->old, args->working, at, count, old);
    const size_t done = add_taken_by_products(by, &numbers, count, 1, &ahead_none, sums);
    add_taken_divided(&by->k, slot + done, then + done, old + done, count - done, sums);
}

static inline void add_taken(const struct readback_blocks_args *args,
                             const struct readback_blocks_tensor *of, size_t first, size_t count,
                             const struct ahead *next, struct lanes *sums) {
    const struct taking by = taking_open(&args->taken);
    const int are_floats =
        args->working != DTYPE_F64 && args->slot.dtype != DTYPE_F64 && !form_is_narrow(args->slot);
    for (size_t at = first, left = count, done; left > 0; left -= done, at += done) {
        done = 0;
        if (are_floats) {
            const size_t some = left < ROWS_AT_ONCE * SUM_LANES ? left : ROWS_AT_ONCE * SUM_LANES;
            const struct taken_numbers floats = {(const float *)of->slots[0] + at,
                                                 (const float *)of->moment + at,
                                                 (const float *)of->old + at};
            const struct ahead here = ahead_after(next, (at - first) * sizeof(float));
            done = add_taken_by_products(&by, &floats, some, 0, &here, sums);
        }
        if (done > 0) continue;
        done = left < CHUNK ? left : CHUNK;
        add_taken_chunk(args, of, at, done, &by, sums);
    }
}

void VARIANT(evidence_read_block)(const struct readback_blocks_args *args,
                                  const struct readback_blocks_tensor *of, size_t first,
                                  size_t count, const struct ahead *next,
                                  struct readback_blocks_block *out) {
    struct numbers numbers;
    struct lanes sums[READBACK_BLOCKS_SUMS];
    double meant = 0.0, lost = 0.0;
    const int is_read = readback_blocks_is_read(of, first / READBACK_BLOCKS_BLOCK);
    lanes_open(sums, READBACK_BLOCKS_SUMS);
    FOR_CHUNKS(first, is_read ? count : 0, at, some) {
        read_numbers(args, of, at, some, &numbers);
        add_terms(args, &numbers, some, sums, &meant, &lost);
    }
    if (of->moment != NULL) add_taken(args, of, first, count, next, sums);
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
        out->sum[s] = join(&sums[s]);
    out->sum[READBACK_BLOCKS_MEANT] = meant;
    out->sum[READBACK_BLOCKS_LOST] = lost;
}
#else
typedef int VARIANT(evidence_blocks_unused); /* a translation unit is not empty */
#endif
