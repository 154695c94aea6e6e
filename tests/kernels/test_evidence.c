/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * What an update did to tensors (kernels/evidence.h), against the laws written a second time
 * (helper_law.h): each block's sums of update sizes, read-back and distances, on every instruction
 * set that this machine has and for 1 to 3 threads; and leaf hashes against digest_tensor.
 *
 * Lengths lie around the borders of rows of lanes (32), chunks (256), blocks (4096) and leaves.
 * Values have -0, NaN and infinities among them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/isa_objects.h"
#include "base/macro.h"
#include "base/rule_ulp.h"
#include "determinism/digest.h"
#include "determinism/philox.h"
#include "kernels/cpu/evidence_blocks.h"
#include "kernels/evidence.h"
#include "tests/kernels/helper_law.h"

#define F64(isa) OBJECTS_OF(f64_f64, isa)
EVIDENCE_BLOCKS(F64(base))
EVIDENCE_BLOCKS(F64(OBJECTS_V3))
EVIDENCE_BLOCKS(F64(OBJECTS_V4))

#define MOST 70000 /* more than one leaf of bf16 and four of f32 */
#define BLOCK 4096
#define TENSORS 7 /* as many vectors as a measure reads */

static const size_t lengths[] = {1, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097, 8192, 12345};
static const struct law wide = {DTYPE_F64, 1};

/* One tensor of numbers, as carriers and as what they are in f64. */
struct vector {
    float narrow[MOST];
    double value[MOST];
};
static struct vector vectors[TENSORS];
static double terms[3][BLOCK];

/* Draws every vector for a dtype. Vector 1 is vector 0 with every third number moved, so that some
 * numbers stay where they were; vector 3 (a second moment) has no negative number. */
static void draw(enum dtype dtype, int special) {
    const float odd[] = {-0.0f, 0.0f, NAN, INFINITY, -INFINITY, 0x1p-140f};
    for (size_t v = 0; v < TENSORS; v++)
        for (size_t i = 0; i < MOST; i++) {
            const struct philox_block drawn =
                philox_draw((struct philox_block){{(uint32_t)i, (uint32_t)v, 0, 0}}, 5);
            const uint32_t *const words = drawn.word;
            double x = ((double)words[0] / 0x1p31 - 1.0) * exp2((double)(words[1] % 20) - 12.0);
            if (v == 1 && i % 3 != 0) x = vectors[0].value[i];
            if (v == 3) x = fabs(x);
            if (special && words[2] % 50 == 0) x = (double)odd[words[3] % COUNT_OF(odd)];
            vectors[v].value[i] = law_round(x, dtype);
            vectors[v].narrow[i] = (float)vectors[v].value[i];
        }
}

/* The carriers of vector v from number `first` on. */
static const void *carriers(size_t v, enum dtype dtype, size_t first) {
    return dtype == DTYPE_F64 ? (const void *)(vectors[v].value + first)
                              : (const void *)(vectors[v].narrow + first);
}

/* Law 2's sum of squares of a - b, or of the products with c - d; a vector that is not there is -1.
 */
static double law_of(int a, int b, int c, int d, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        terms[0][i] = vectors[a].value[first + i] - (b < 0 ? 0.0 : vectors[b].value[first + i]);
        terms[1][i] = vectors[c].value[first + i] - (d < 0 ? 0.0 : vectors[d].value[first + i]);
    }
    return law_lanes(&wide, terms[0], terms[1], count);
}

static uint64_t law_changed(int a, int b, enum dtype dtype, size_t first, size_t count) {
    const size_t size = dtype == DTYPE_F64 ? sizeof(double) : sizeof(float);
    const char *const x = (const char *)carriers((size_t)a, dtype, first);
    const char *const y = (const char *)carriers((size_t)b, dtype, first);
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++)
        changed += memcmp(x + i * size, y + i * size, size) != 0;
    return changed;
}

/* Equal bits, where every NaN is one. */
static void assert_same(const char *what, double got, double want) {
    if (isnan(got) && isnan(want)) return;
    if (memcmp(&got, &want, sizeof got) != 0) fail_msg("%s: %a, expected %a", what, got, want);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* ---- update sizes ---- */

static void check_update(const struct update_sizes_block *got, enum dtype dtype, size_t first,
                         size_t count) {
    assert_same("update", got->update, law_of(0, 1, 0, 1, first, count));
    assert_same("norm", got->norm, law_of(0, -1, 0, -1, first, count));
    assert_same("travel", got->travel, law_of(0, 2, 0, 2, first, count));
    assert_int_equal(got->changed, law_changed(0, 1, dtype, first, count));
}

/* ---- distances ---- */

static int64_t law_ulp(enum dtype dtype, size_t first, size_t count) {
    int64_t largest = 0;
    for (size_t i = first; i < first + count; i++) {
        const int64_t ulp = dtype == DTYPE_F64
                                ? rule_ulp_f64(vectors[0].value[i], vectors[1].value[i])
                                : rule_ulp_f32(vectors[0].narrow[i], vectors[1].narrow[i], dtype);
        if (ulp > largest) largest = ulp;
    }
    return largest;
}

static void check_distance(const struct run_distances_block *got, enum dtype x_dtype,
                           enum dtype y_dtype, size_t first, size_t count) {
    const int same = x_dtype == y_dtype;
    assert_same("gap", got->sum[RUN_DISTANCES_GAP], law_of(0, 1, 0, 1, first, count));
    assert_same("travel", got->sum[RUN_DISTANCES_TRAVEL], law_of(0, 2, 0, 2, first, count));
    assert_same("xx", got->sum[RUN_DISTANCES_XX], law_of(0, 3, 0, 3, first, count));
    assert_same("yy", got->sum[RUN_DISTANCES_YY], law_of(1, 4, 1, 4, first, count));
    assert_same("xy", got->sum[RUN_DISTANCES_XY], law_of(0, 3, 1, 4, first, count));
    assert_int_equal(got->changed, same ? law_changed(0, 1, x_dtype, first, count) : 0);
    assert_int_equal(got->ulp, same ? law_ulp(x_dtype, first, count) : 0);
}

/* ---- read-back ---- */

/* The kinds of direction, and Adam's with amsgrad; SGD's without momentum has no slot. */
static const struct rule_direction directions[] = {
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .decay = 0.01,
     .grad_scale = 1.0,
     .factor = 0.99,
     .correction1 = 0.1,
     .root = 0.3,
     .eps = 1e-8},
    {.kind = RULE_DIRECTION_ADAM,
     .second = 2,
     .grad_scale = 1.0,
     .factor = 1.0,
     .correction1 = 0.19,
     .root = 0.1,
     .eps = 1e-6},
    {.kind = RULE_DIRECTION_SGD, .decay = 0.1, .grad_scale = 2.0},
    {.kind = RULE_DIRECTION_SGD, .nesterov = 1, .grad_scale = 1.0, .momentum = 0.9},
    {.kind = RULE_DIRECTION_LION,
     .decay = 0.1,
     .grad_scale = 3.0,
     .beta1 = 0.9,
     .weight1 = 0.1,
     .gradient = DTYPE_BF16,
     .working = DTYPE_F32,
     .slot = DTYPE_F16},
    /* Adam's that stores its denominator, and one whose moments were stored behind the step. The
     * slacks are so large that some elements are left out. */
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .is_stored = 1,
     .grad_scale = 1.0,
     .factor = 1.0,
     .correction1 = 0.1,
     .root = 0.3,
     .eps = 1e-8,
     .slot = DTYPE_BF16,
     .slack = {.is_on = 1, .under_most = 1e300, .unit = 0.2, .least = 0x1p-6}},
    {.kind = RULE_DIRECTION_ADAM,
     .second = 1,
     .decay = 0.01,
     .grad_scale = 1.0,
     .factor = 0.99,
     .correction1 = 0.1,
     .root = 0.3,
     .eps = 1e-8,
     .slack = {.is_on = 1,
               .first_unit = 0x1p-9,
               .first_least = 0x1p-12,
               .second_unit = 0x1p-9,
               .second_least = 0x1p-25,
               .under_unit = 0x1p-8,
               .under_least = 0x1p-10,
               .under_most = 0.5,
               .negligible = 0x1p-10}},
};
static const struct rule_taken taken = {0.9, 0.1, 0.02, 0x1p-22, 0x1p-149};

static struct readback_blocks_args args_of(size_t direction, enum dtype dtype) {
    return (struct readback_blocks_args){
        .working = dtype,
        .gradient_dtype = dtype,
        .slot = form_carried(dtype),
        .direction = directions[direction],
        .spacing = {dtype_epsilon(dtype), 0x1p-126},
        .decay = directions[direction].decay,
        .taken = taken,
    };
}

static struct readback_blocks_tensor tensor_of(size_t direction, enum dtype dtype, size_t count,
                                               int moment, struct readback_blocks_block *blocks) {
    const struct rule_direction *const k = &directions[direction];
    const int slots = k->kind != RULE_DIRECTION_SGD || k->momentum != 0.0;
    return (struct readback_blocks_tensor){
        .count = count,
        .old = carriers(0, dtype, 0),
        .now = carriers(1, dtype, 0),
        .gradient = carriers(4, dtype, 0),
        .slots = {slots ? carriers(2, dtype, 0) : NULL, carriers(3, dtype, 0),
                  carriers(3, dtype, 0)},
        .moment = moment ? carriers(5, dtype, 0) : NULL,
        .blocks = blocks,
    };
}

static double law_direction(const struct rule_direction *k, int moment, size_t i) {
    return RULE_DIRECTION_OF(k, vectors[4].value[i], vectors[moment ? 5 : 2].value[i],
                             vectors[2].value[i], vectors[3].value[i], vectors[0].value[i]);
}

static double law_slack(const struct rule_direction *k, size_t i) {
    return RULE_SLACK_OF(k, vectors[2].value[i], vectors[3].value[i]);
}

/* Where a block is not read, the sums of the LR and the decay are 0, and that of the gradient's
 * norm is of all its numbers all the same. */
static void check_read(const struct readback_blocks_block *got, size_t direction, enum dtype dtype,
                       int moment, int is_read, size_t first, size_t count) {
    static const int pairs[][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}};
    const struct readback_blocks_args args = args_of(direction, dtype);
    static double gradient[BLOCK], error[BLOCK], slack[BLOCK];
    const struct rule_direction *const k = &directions[direction];
    double meant = 0.0, lost = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double old = vectors[0].value[first + i];
        const struct rule_read_terms t = rule_read_terms(
            &args.spacing, law_direction(k, moment, first + i), law_slack(k, first + i),
            k->slack.negligible, args.decay, old, vectors[1].value[first + i]);
        const struct rule_taken_value value =
            rule_taken_value(&taken, vectors[2].value[first + i], vectors[5].value[first + i], old);
        terms[0][i] = is_read ? t.u : 0.0;
        terms[1][i] = is_read ? t.p : 0.0;
        terms[2][i] = is_read ? t.d : 0.0;
        slack[i] = is_read ? t.e : 0.0;
        meant += is_read ? t.meant : 0.0;
        lost += is_read ? t.lost : 0.0;
        gradient[i] = moment ? value.gradient : 0.0;
        error[i] = moment ? value.error : 0.0;
    }
    for (int s = READBACK_BLOCKS_UU; s <= READBACK_BLOCKS_PD; s++)
        assert_same("products", got->sum[s],
                    law_lanes(&wide, terms[pairs[s][0]], terms[pairs[s][1]], count));
    for (size_t i = 0; i < count; i++)
        for (int v = 0; v < 2; v++)
            terms[v][i] = fabs(terms[v][i]);
    assert_same("u", got->sum[READBACK_BLOCKS_U], law_lanes(&wide, terms[0], NULL, count));
    assert_same("p", got->sum[READBACK_BLOCKS_P], law_lanes(&wide, terms[1], NULL, count));
    for (int v = 0; v < 2; v++)
        assert_same(v == 0 ? "ue" : "pe", got->sum[READBACK_BLOCKS_UE + v],
                    k->slack.is_on ? law_lanes(&wide, terms[v], slack, count) : 0.0);
    assert_same("meant", got->sum[READBACK_BLOCKS_MEANT], meant);
    assert_same("lost", got->sum[READBACK_BLOCKS_LOST], lost);
    assert_same("taken", got->sum[READBACK_BLOCKS_TAKEN],
                law_lanes(&wide, gradient, gradient, count));
    assert_same("error", got->sum[READBACK_BLOCKS_TAKEN_ERROR],
                law_lanes(&wide, error, error, count));
}

/* Weights of 1 in f32, whose spacing is 2^-23, with a decay of 0.5: u is the direction less 0.5. By
 * hand: an element tells if its slack is a quarter of u at most, or negligible; it was meant to
 * move if its direction is further from 0 than its slack. */
static void validate_terms_of_slack(void **state) {
    (void)state;
    static const struct {
        double direction, slack, negligible, now;
        double u, e, meant, lost; /* u of 0: it tells nothing, and so is the rest */
    } rows[] = {
        {2.5, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0},
        {2.5, 0.5, 0.0, 1.5, 2.0, 0.5, 1.0, 0.0},
        {2.5, 0.51, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0},
        {2.5, 0.51, 0.51, 1.5, 2.0, 0.51, 1.0, 0.0},
        {-1.5, 0.5, 0.0, 1.0, -2.0, 0.5, 1.0, 1.0},
        {0.125, 0.0625, 0.0, 1.0, -0.375, 0.0625, 1.0, 1.0},
        {0.0625, 0.0625, 0.0, 1.0, -0.4375, 0.0625, 0.0, 0.0},
        {0.0, 0.0, 0.0, 1.0, -0.5, 0.0, 0.0, 0.0},
        {2.5, INFINITY, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0},
        {2.5, NAN, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0},
        {INFINITY, INFINITY, 0.0, 0.5, INFINITY, INFINITY, 0.0, 0.0},
    };
    const struct rule_spacing spacing = {0x1p-23, 0x1p-126};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct rule_read_terms t = rule_read_terms(&spacing, rows[i].direction, rows[i].slack,
                                                         rows[i].negligible, 0.5, 1.0, rows[i].now);
        const int tells = rows[i].u != 0.0;
        assert_true(t.u == rows[i].u * 0x1p23 && t.e == rows[i].e * 0x1p23);
        assert_true(t.p == (tells ? 0x1p23 : 0.0));
        assert_true(t.d == (tells ? (rows[i].now - 1.0) * 0x1p23 : 0.0));
        assert_true(t.meant == rows[i].meant && t.lost == rows[i].lost);
    }
}

/* The inverse of a spacing takes no division, and is what a division gives. */
static void validate_spacing_inverse(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F64, DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_E5M2};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dtypes); k++) {
        const double smallest = dtype_smallest(dtypes[k]);
        const struct rule_spacing spacing = {dtype_epsilon(dtypes[k]),
                                             smallest > 0x1p-126 ? smallest : 0x1p-126};
        for (int e = -1080; e <= 1024; e++) /* 0 to infinity */
            for (int sign = -1; sign <= 1; sign += 2) {
                const double x = (double)sign * ldexp(1.25, e);
                assert_same("inverse", rule_spacing_inverse(&spacing, x),
                            1.0 / rule_spacing_at(&spacing, x));
            }
        assert_same("inverse", rule_spacing_inverse(&spacing, (double)NAN),
                    1.0 / rule_spacing_at(&spacing, (double)NAN));
    }
}

/* ---- every instruction set, block by block ---- */

struct functions {
    enum isa isa;
    evidence_update_block *update;
    evidence_distance_block *distance;
    evidence_read_block *read;
    evidence_squares_block *squares;
};
#define FUNCTIONS_OF(isa, variant)                                                                 \
    {                                                                                              \
        isa, evidence_update_block_##variant, evidence_distance_block_##variant,                   \
            evidence_read_block_##variant, evidence_squares_block_##variant                        \
    }
#define FUNCTIONS(isa, variant) FUNCTIONS_OF(isa, variant)
static const struct functions functions[] = {
    FUNCTIONS(ISA_BASE, F64(base)),
    FUNCTIONS(ISA_V3, F64(OBJECTS_V3)),
    FUNCTIONS(ISA_V4, F64(OBJECTS_V4)),
};

/* Places to ask for, within memory and outside of it; which ones moves no bit. */
static const struct ahead *next_of(size_t number) {
    static const struct ahead places[] = {{{0}}, {{64, 0}}, {{0, UINTPTR_MAX - 64}}};
    return &places[number % COUNT_OF(places)];
}

static void check_block(const struct functions *of, enum dtype dtype, size_t first, size_t count) {
    const enum dtype other = dtype == DTYPE_F64 ? DTYPE_F32 : DTYPE_F64;
    const struct update_sizes_args sizes = {.dtype = dtype,
                                            .count = MOST,
                                            .now = carriers(0, dtype, 0),
                                            .before = carriers(1, dtype, 0),
                                            .start = carriers(2, dtype, 0)};
    struct update_sizes_block size;
    of->update(&sizes, first, count, next_of(count), &size);
    check_update(&size, dtype, first, count);
    const struct squares_args squares = {
        .storage = dtype, .wide = 1, .count = MOST, .values = carriers(0, dtype, 0)};
    assert_same("squares", of->squares(&squares, first, count), law_of(0, -1, 0, -1, first, count));
    for (int same = 0; same < 2; same++) {
        const enum dtype y_dtype = same || dtype == DTYPE_F64 ? dtype : other;
        const struct run_distances_args distances = {.x_dtype = dtype,
                                                     .y_dtype = y_dtype,
                                                     .count = MOST,
                                                     .x = carriers(0, dtype, 0),
                                                     .x_old = carriers(3, dtype, 0),
                                                     .start = carriers(2, dtype, 0),
                                                     .y = carriers(1, y_dtype, 0),
                                                     .y_old = carriers(4, y_dtype, 0)};
        struct run_distances_block distance;
        of->distance(&distances, first, count, &distance);
        check_distance(&distance, dtype, y_dtype, first, count);
    }
    for (size_t d = 0; d < COUNT_OF(directions); d++) {
        const struct readback_blocks_args args = args_of(d, dtype);
        const int moment = directions[d].kind != RULE_DIRECTION_SGD;
        for (uint32_t stride = 0; stride <= 4; stride++) {
            struct readback_blocks_tensor tensor = tensor_of(d, dtype, MOST, moment, NULL);
            struct readback_blocks_block read;
            tensor.stride = stride;
            tensor.turn = 1;
            of->read(&args, &tensor, first, count, next_of(count + 1), &read);
            check_read(&read, d, dtype, moment,
                       stride <= 1 || first / READBACK_BLOCKS_BLOCK % stride == 1, first, count);
        }
    }
}

static void corroborate_blocks(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F64};
    const struct op_table *unused;
    int sets = 0;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dtypes); k++)
        for (int special = 0; special < 2; special++) {
            draw(dtypes[k], special);
            for (size_t f = 0; f < COUNT_OF(functions); f++) {
                if (backend_ops(functions[f].isa, DTYPE_F32, DTYPE_F32, &unused) != STATUS_OK)
                    continue;
                sets++;
                for (size_t l = 0; l < COUNT_OF(lengths) && lengths[l] <= BLOCK; l++)
                    check_block(&functions[f], dtypes[k], 3 * BLOCK, lengths[l]);
            }
        }
    assert_true(sets >= 6);
}

/* A number of any bits, or one of ordinary size whose last bits are drawn. */
static double drawn_number(const uint32_t *words) {
    if (words[2] % 4 == 0) return real_from_bits_f64((uint64_t)words[0] << 32 | words[1]);
    const double x = (double)words[0] * 0x1p-31 - 1.0 + (double)words[1] * 0x1p-63;
    return x * exp2((double)(words[2] % 64) - 48.0);
}

/* Returns x, and in *out_y a divisor, of which the quotient is as near to the middle between two
 * numbers as that of any two numbers: y odd and of 53 bits, 2^54 x = y q + 1 or - 1 with an odd q
 * of 54 bits. */
static double hard_quotient(uint64_t bits, double *out_y) {
    const uint64_t y = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52 | 1;
    uint64_t inverse = y; /* modulo 2^64, by Newton's iteration: each step doubles the bits */
    for (int i = 0; i < 6; i++)
        inverse *= 2 - y * inverse;
    for (int sign = 0; sign < 2; sign++) {
        const uint64_t mask = (UINT64_C(1) << 54) - 1;
        const uint64_t q = (sign ? inverse : 0 - inverse) & mask; /* y q = 1 or -1 modulo 2^54 */
        const uint64_t x = (uint64_t)llroundl((long double)y * (long double)q * 0x1p-54L);
        if (q < UINT64_C(1) << 53) continue; /* the other sign's has 54 bits */
        *out_y = (double)y * 0x1p-56;
        return (double)x * 0x1p-50;
    }
    *out_y = 1.0;
    return 1.0;
}

enum { AMONG = 77 }; /* two whole rows and a part of one */

/* Numbers of one dtype: slots, moments of before and weights of before. */
struct among {
    double wide[3][AMONG];
    float narrow[3][AMONG];
};

static const void *among_values(const struct among *of, enum dtype dtype, size_t list) {
    return dtype == DTYPE_F64 ? (const void *)of->wide[list] : (const void *)of->narrow[list];
}

/* Reads what was taken in of numbers that are 0 but for one at `at`, which shows by its square. */
static void check_taken(evidence_read_block *read, const struct rule_taken *rule, enum dtype dtype,
                        size_t at, const double number[3]) {
    struct among of = {{{0.0}}, {{0.0f}}};
    struct readback_blocks_args args = args_of(0, dtype);
    args.taken = *rule;
    for (size_t list = 0; list < 3; list++) {
        of.wide[list][at] = number[list];
        of.narrow[list][at] = (float)number[list];
    }
    const void *const slot = among_values(&of, dtype, 0), *const old = among_values(&of, dtype, 2);
    const struct readback_blocks_tensor tensor = {.count = AMONG,
                                                  .old = old,
                                                  .now = old,
                                                  .slots = {slot, slot, slot},
                                                  .moment = among_values(&of, dtype, 1),
                                                  .stride = 2,
                                                  .turn = 1};
    struct readback_blocks_block got;
    read(&args, &tensor, 0, AMONG, next_of(at), &got);
    const int is_wide = dtype == DTYPE_F64;
    const struct rule_taken_value none = rule_taken_value(rule, 0.0, 0.0, 0.0);
    const struct rule_taken_value want =
        rule_taken_value(rule, is_wide ? of.wide[0][at] : (double)of.narrow[0][at],
                         is_wide ? of.wide[1][at] : (double)of.narrow[1][at],
                         is_wide ? of.wide[2][at] : (double)of.narrow[2][at]);
    /* the others add 0, or NaN where 0 is divided by 0 */
    assert_same("taken", got.sum[READBACK_BLOCKS_TAKEN],
                want.gradient * want.gradient + none.gradient * none.gradient);
    assert_same("error", got.sum[READBACK_BLOCKS_TAKEN_ERROR],
                want.error * want.error + none.error * none.error);
}

/* What an optimizer took in is divided number by number, by the division or by products that round
 * as it does: with any divisor, and at numbers that no product could round; in whole rows and
 * behind them; of f64 and of f32. */
static void corroborate_quotients(void **state) {
    static const double takes[] = {0.1,      1.0 - 0.9,  1.0,      0.05,    0.3,
                                   -0.1,     0x1p-99,    0x1p-101, 0x1p101, 0x1p-900,
                                   0x1p900,  0x1.8p1023, 1e-300,   3.0,     0x1.fffffffffffffp0,
                                   0.001,    0.0,        INFINITY, 7.0,     0x1p-30,
                                   1.0 / 3.0};
    static const double odd[] = {0.0,       -0.0,      NAN,      INFINITY,
                                 -INFINITY, 0x1p-1074, 0x1p1023, 0x1p-699};
    const struct op_table *unused;
    (void)state;
    for (size_t f = 0; f < COUNT_OF(functions); f++) {
        if (backend_ops(functions[f].isa, DTYPE_F32, DTYPE_F32, &unused) != STATUS_OK) continue;
        for (uint32_t i = 0; i < 60000; i++) {
            const struct philox_block a = philox_draw((struct philox_block){{i, 0, 1, 0}}, 5);
            const struct philox_block b = philox_draw((struct philox_block){{i, 0, 2, 0}}, 5);
            double number[3] = {drawn_number(a.word), drawn_number(b.word), 0.0};
            struct rule_taken rule = {.keep = 0.9, .take = takes[i % COUNT_OF(takes)], .unit = 1.0};
            if (i % 50 == 0) number[0] = odd[a.word[3] % COUNT_OF(odd)];
            if (i % 70 == 0) number[1] = odd[b.word[3] % COUNT_OF(odd)];
            if (i % 5 == 0) number[1] = number[0] / 0.9; /* little of the difference is left */
            if (i % 5 == 1) {
                number[0] = hard_quotient((uint64_t)a.word[0] << 32 | a.word[1], &rule.take);
                number[1] = 0.0;
                if (i % 10 == 1) rule.take = -rule.take;
            }
            if (i % 5 == 2) {
                rule.decay = 0.25;
                number[2] = number[1];
            }
            check_taken(functions[f].read, &rule, i % 3 == 0 ? DTYPE_F32 : DTYPE_F64,
                        b.word[3] / 8 % AMONG, number);
        }
    }
}

/* ---- whole calls ---- */

#define MOST_BLOCKS (MOST / BLOCK + 1)
static struct update_sizes_block sizes[COUNT_OF(lengths)][MOST_BLOCKS];
static struct run_distances_block distances[COUNT_OF(lengths)][MOST_BLOCKS];
static struct readback_blocks_block reads[COUNT_OF(lengths)][MOST_BLOCKS];
static double squares[COUNT_OF(lengths)][MOST_BLOCKS];

static void corroborate_calls(void **state) {
    (void)state;
    draw(DTYPE_F32, 0);
    for (int threads = 1; threads <= 3; threads++) {
        struct update_sizes_args update[COUNT_OF(lengths)];
        struct run_distances_args distance[COUNT_OF(lengths)];
        struct readback_blocks_tensor read[COUNT_OF(lengths)];
        struct squares_args square[COUNT_OF(lengths)];
        const struct readback_blocks_args args = args_of(0, DTYPE_F32);
        memset(sizes, 0xff, sizeof sizes);
        memset(distances, 0xff, sizeof distances);
        memset(reads, 0xff, sizeof reads);
        memset(squares, 0xff, sizeof squares);
        for (size_t l = 0; l < COUNT_OF(lengths); l++) {
            update[l] =
                (struct update_sizes_args){DTYPE_F32,         lengths[l],        vectors[0].narrow,
                                           vectors[1].narrow, vectors[2].narrow, sizes[l]};
            distance[l] =
                (struct run_distances_args){DTYPE_F32,         DTYPE_F32,         lengths[l],
                                            vectors[0].narrow, vectors[3].narrow, vectors[2].narrow,
                                            vectors[1].narrow, vectors[4].narrow, distances[l]};
            read[l] = tensor_of(0, DTYPE_F32, lengths[l], 1, reads[l]);
            square[l] = (struct squares_args){.storage = DTYPE_F32,
                                              .wide = 1,
                                              .count = lengths[l],
                                              .values = vectors[0].narrow,
                                              .blocks = squares[l]};
        }
        evidence_update_sizes(threads, update, COUNT_OF(lengths));
        evidence_run_distances(threads, distance, COUNT_OF(lengths));
        evidence_readback_blocks(threads, &args, read, COUNT_OF(lengths));
        evidence_squares(threads, square, COUNT_OF(lengths));
        for (size_t l = 0; l < COUNT_OF(lengths); l++)
            for (size_t first = 0, b = 0; first < lengths[l]; first += BLOCK, b++) {
                const size_t count = least(lengths[l] - first, BLOCK);
                check_update(&sizes[l][b], DTYPE_F32, first, count);
                check_distance(&distances[l][b], DTYPE_F32, DTYPE_F32, first, count);
                check_read(&reads[l][b], 0, DTYPE_F32, 1, 1, first, count);
                assert_same("squares", squares[l][b], law_of(0, -1, 0, -1, first, count));
            }
    }
}

/* ---- leaf hashes ---- */

static void corroborate_leaf_hashes(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64,  DTYPE_BF16, DTYPE_F16,
                                        DTYPE_TF32, DTYPE_E4M3, DTYPE_E5M2};
    static const size_t counts[] = {1, 2, 3, 5, 1023, 8192, 8193, 16384, 16385, 32769, 65537, MOST};
    static struct leafhash_leaf leaves[COUNT_OF(counts)][16];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dtypes); k++) {
        struct leaf_hashes_args asked[COUNT_OF(counts)];
        draw(dtypes[k], dtypes[k] != DTYPE_E4M3); /* which has no infinity */
        for (int threads = 1; threads <= 3; threads++) {
            memset(leaves, 0xff, sizeof leaves);
            for (size_t c = 0; c < COUNT_OF(counts); c++)
                asked[c] = (struct leaf_hashes_args){form_carried(dtypes[k]), counts[c],
                                                     carriers(0, dtypes[k], 0), leaves[c]};
            evidence_leaf_hashes(threads, asked, COUNT_OF(counts));
            for (size_t c = 0; c < COUNT_OF(counts); c++) {
                struct digest want, got;
                assert_int_equal(
                    digest_tensor("t", dtypes[k], 1, &counts[c], asked[c].values, &want),
                    STATUS_OK);
                assert_int_equal(digest_tensor_leaves("t", dtypes[k], 1, &counts[c],
                                                      asked[c].values, leaves[c], &got),
                                 STATUS_OK);
                assert_int_equal(digest_compare(&want, &got), 0);
            }
        }
    }
}

/* Numbers in two bytes have the leaf hashes of their carriers, and read-back the same sums. */
static void corroborate_narrow(void **state) {
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16};
    static const size_t counts[] = {1, 15, 8193, 32768, 32769, MOST};
    static struct leafhash_leaf leaves[2][3];
    static struct readback_blocks_block blocks[2][4];
    static uint16_t halves[TENSORS][MOST];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dtypes); k++) {
        const struct form forms[2] = {form_carried(dtypes[k]), form_own(dtypes[k])};
        draw(dtypes[k], 1);
        for (size_t v = 0; v < TENSORS; v++)
            form_narrow(vectors[v].narrow, forms[1], MOST, halves[v]);
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            const struct leaf_hashes_args asked[2] = {
                {forms[0], counts[c], vectors[0].narrow, leaves[0]},
                {forms[1], counts[c], halves[0], leaves[1]}};
            memset(leaves, 0xff, sizeof leaves);
            evidence_leaf_hashes(2, asked, 2);
            assert_memory_equal(leaves[0], leaves[1], sizeof leaves[0]);
        }
        for (size_t d = 0; d < COUNT_OF(directions); d++) {
            struct readback_blocks_args args = args_of(d, dtypes[k]);
            const int moment =
                directions[d].kind != RULE_DIRECTION_SGD || directions[d].momentum != 0.0;
            struct readback_blocks_tensor tensor =
                tensor_of(d, dtypes[k], 12345, moment, blocks[0]);
            evidence_readback_blocks(2, &args, &tensor, 1);
            args.slot = forms[1];
            tensor.blocks = blocks[1];
            if (moment) tensor.moment = halves[5];
            for (size_t s = 0; s < READBACK_BLOCKS_SLOTS; s++)
                if (tensor.slots[s] != NULL) tensor.slots[s] = halves[s == 0 ? 2 : 3];
            evidence_readback_blocks(2, &args, &tensor, 1);
            for (size_t b = 0; b < COUNT_OF(blocks[0]); b++)
                for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
                    assert_same("narrow", blocks[1][b].sum[s], blocks[0][b].sum[s]);
        }
    }
}

/* Digests of tensors that threads share are those of one thread, with enough leaf hashes to wake
 * the threads; a misfit in one tensor leaves the others as they are. The leaf hashes are drawn,
 * since nobody asks here what they were made of. */
static void corroborate_digests(void **state) {
    static struct leafhash_leaf leaves[80];
    static const size_t counts[] = {7 * 16384, 0, 1, 30 * 16384 + 5, 16384, 40 * 16384};
    enum { HASHED = COUNT_OF(counts) };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(leaves); i++) {
        memset(leaves[i].misfit, 0, sizeof leaves[i].misfit);
        for (uint32_t lane = 0; lane < LEAFHASH_LANES; lane++)
            leaves[i].lane[lane] = leafhash_step(leafhash_begin(lane), (uint32_t)i);
    }
    for (int threads = 1; threads <= 3; threads++)
        for (int misfit = 0; misfit <= 1; misfit++) {
            struct digest_leaves tensors[HASHED];
            struct digest got[HASHED], want;
            const struct leafhash_leaf *at = leaves;
            memset(got, 0, sizeof got);
            leaves[7 + 1 + 30].misfit[5] = (uint32_t)misfit; /* the last one of tensor 3 */
            for (size_t i = 0; i < HASHED; i++) {
                tensors[i] = (struct digest_leaves){"t", DTYPE_F32, 1, &counts[i], at, &got[i], 7};
                at += leaf_hashes_count(DTYPE_F32, counts[i]);
            }
            evidence_digests(threads, tensors, HASHED);
            for (size_t i = 0; i < HASHED; i++) {
                const int is_misfit = misfit && i == 3;
                assert_int_equal(tensors[i].misfit, is_misfit);
                memset(&want, 0, sizeof want);
                if (!is_misfit)
                    assert_int_equal(digest_tensor_leaves("t", DTYPE_F32, 1, &counts[i], NULL,
                                                          tensors[i].leaves, &want),
                                     STATUS_OK);
                assert_int_equal(digest_compare(&got[i], &want), 0);
            }
        }
}

/* A number outside its dtype makes no digest, wherever it stands. */
static void verify_misfits(void **state) {
    static const size_t places[] = {0, 2048, 32767, 32768, MOST - 1};
    static struct leafhash_leaf leaves[3];
    const size_t count = MOST;
    struct digest unused;
    (void)state;
    draw(DTYPE_BF16, 0);
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        const float right = vectors[0].narrow[places[p]];
        const struct leaf_hashes_args asked = {form_carried(DTYPE_BF16), MOST, vectors[0].narrow,
                                               leaves};
        vectors[0].narrow[places[p]] = 0x1.000002p0f;
        evidence_leaf_hashes(2, &asked, 1);
        assert_int_equal(
            digest_tensor_leaves("t", DTYPE_BF16, 1, &count, vectors[0].narrow, leaves, &unused),
            STATUS_INTERNAL);
        char place[64];
        snprintf(place, sizeof place, "carrier %zu holds", places[p]);
        assert_non_null(strstr(status_text(), place));
        vectors[0].narrow[places[p]] = right;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_terms_of_slack), cmocka_unit_test(validate_spacing_inverse),
        cmocka_unit_test(corroborate_blocks),      cmocka_unit_test(corroborate_quotients),
        cmocka_unit_test(corroborate_calls),       cmocka_unit_test(corroborate_leaf_hashes),
        cmocka_unit_test(corroborate_digests),     cmocka_unit_test(corroborate_narrow),
        cmocka_unit_test(verify_misfits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
