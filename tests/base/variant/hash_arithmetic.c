/* SPDX-License-Identifier: Apache-2.0
 * Hashes the results of base/real.h, base/sum.h and base/rule.h over fixed inputs; compiled once
 * per variant. A NaN is hashed as one pattern, since its sign and payload are not promised. */
#include "base/rule.h"
#include "base/sum.h"
#include "tests/base/helper_adamw.h"
#include "tests/base/helper_random.h"
#include "tests/base/variant/hash_rows.h"

void VARIANT(hash_arithmetic)(struct hash_rows *rows);

#define INPUTS 200000
#define VECTOR 70001

static uint64_t mix(uint64_t hash, uint64_t bits) {
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t mix_f32(uint64_t hash, float x) {
    return mix(hash, x == x ? real_bits_f32(x) : 0x7fc00000u);
}

static uint64_t mix_f64(uint64_t hash, double x) {
    return mix(hash, x == x ? real_bits_f64(x) : 0x7ff8000000000000u);
}

/* Draws any bits, and numbers of the ranges in which the functions are not trivial. */
static double input_f64(struct random_source *source, int i) {
    switch (i % 5) {
    case 0:
        return random_any_f64(source);
    case 1:
        return random_between(source, -1.0, 1.0);
    case 2:
        return random_between(source, -20.0, 20.0);
    case 3:
        return random_between(source, 0.0, 3.0);
    default:
        return random_between(source, -760.0, 760.0);
    }
}

static void add_row(struct hash_rows *rows, const char *name, uint64_t hash) {
    if (rows->count == HASH_ROWS_MAX) return;
    rows->row[rows->count].name = name;
    rows->row[rows->count++].hash = hash;
}

/* Adds a row for `expression` of x, y, z of type `input`, with results of type `output`. */
#define ROW(rows, name, input, type, output, expression)                                           \
    do {                                                                                           \
        struct random_source source = {11};                                                        \
        uint64_t hash = 0;                                                                         \
        for (int i = 0; i < INPUTS; i++) {                                                         \
            type x = input_##input(&source, i);                                                    \
            type y = input_##input(&source, i / 5);                                                \
            type z = input_##input(&source, i / 25);                                               \
            (void)y;                                                                               \
            (void)z;                                                                               \
            hash = mix_##output(hash, expression);                                                 \
        }                                                                                          \
        add_row(rows, name, hash);                                                                 \
    } while (0)

#define REAL_ROW(name, ...)                                                                        \
    ROW(rows, #name "_f32", f32, float, f32, real_##name##_f32(__VA_ARGS__));                      \
    ROW(rows, #name "_f64", f64, double, f64, real_##name##_f64(__VA_ARGS__))

#define ROUND_ROW(name)                                                                            \
    ROW(rows, #name "_f32", f32, float, f32, real_round_##name##_f32(x));                          \
    ROW(rows, #name "_f64", f64, double, f32, real_round_##name##_f64(x))

#if defined(TWINSTEP_CARRIER_f32) && defined(TWINSTEP_ACCUMULATOR_f32)
static float input_f32(struct random_source *source, int i) {
    return i % 5 == 0 ? random_any_f32(source) : (float)input_f64(source, i);
}

static void hash_real(struct hash_rows *rows) {
    REAL_ROW(fma, x, y, z);
    REAL_ROW(sqrt, x);
    REAL_ROW(exp, x);
    REAL_ROW(exp2, x);
    REAL_ROW(expm1, x);
    REAL_ROW(log, x);
    REAL_ROW(log1p, x);
    REAL_ROW(pow, x, y);
    REAL_ROW(tanh, x);
    REAL_ROW(sin, x);
    REAL_ROW(cos, x);
    ROUND_ROW(bf16);
    ROUND_ROW(f16);
    ROUND_ROW(tf32);
}
#else
static void hash_real(struct hash_rows *rows) {
    (void)rows;
}
#endif

/* ---- sums ---- */

/* Adds rows of sums over one element to many blocks, at changing alignments. */
#define SUM_ROWS(pair, type, input, output)                                                        \
    do {                                                                                           \
        static type a[VECTOR + 8];                                                                 \
        static type b[VECTOR + 8];                                                                 \
        struct random_source source = {12};                                                        \
        uint64_t terms = 0, products = 0, squares = 0;                                             \
        for (size_t i = 0; i < VECTOR + 8; i++) {                                                  \
            a[i] = (type)random_between(&source, -1.0, 1.0);                                       \
            b[i] = (type)random_between(&source, -1.0, 1.0);                                       \
        }                                                                                          \
        for (size_t n = 0; n < VECTOR; n += n < 300 ? 1 : 997 + n / 7) {                           \
            terms = mix_##output(terms, sum_terms_##pair(a + n % 8, n));                           \
            products = mix_##output(products, sum_products_##pair(a + n % 8, b + n % 5, n));       \
            squares = mix_##output(squares, sum_squares_##pair(b + n % 3, n));                     \
        }                                                                                          \
        add_row(rows, "sum_terms_" #pair, terms);                                                  \
        add_row(rows, "sum_products_" #pair, products);                                            \
        add_row(rows, "sum_squares_" #pair, squares);                                              \
    } while (0)

static void hash_sums(struct hash_rows *rows) {
    SUM_ROWS(f32_f32, float, f32, f32);
    SUM_ROWS(f32_f64, float, f32, f64);
    SUM_ROWS(f64_f64, double, f64, f64);
}

/* ---- rules ---- */

/* Draws numbers of the dtype, the same in every pair that can hold them. */
static carrier input_rule(struct random_source *source, int i, enum dtype dtype) {
    double x = i % 5 == 0   ? random_between(source, -1e-3, 1e-3)
               : i % 5 == 4 ? random_between(source, -90.0, 90.0)
                            : input_f64(source, i);
    if (dtype == DTYPE_BF16) return (carrier)real_round_bf16_f64(x);
    return dtype == DTYPE_F64 ? (carrier)x : (carrier)(float)x;
}

#if defined(TWINSTEP_CARRIER_f64)
#define mix_carrier mix_f64
#else
#define mix_carrier mix_f32
#endif

#define RULE_ROW(name, d, expression)                                                              \
    do {                                                                                           \
        struct random_source source = {13};                                                        \
        uint64_t hash = 0;                                                                         \
        for (int i = 0; i < INPUTS; i++) {                                                         \
            carrier x = input_rule(&source, i, d);                                                 \
            carrier y = input_rule(&source, i / 5, d);                                             \
            carrier z = input_rule(&source, i / 25, d);                                            \
            (void)y;                                                                               \
            (void)z;                                                                               \
            hash = mix_carrier(hash, expression);                                                  \
        }                                                                                          \
        add_row(rows, name, hash);                                                                 \
    } while (0)

static carrier adamw(carrier p, carrier m, carrier g, int t, enum dtype dtype) {
    const struct rule_adam narrow = helper_adamw(1e-3, 0.1, (uint64_t)t);
    struct rule_adam_element e = {p, m, (carrier)(m * m), 0};
    rule_adam_torch(&e, g, &narrow, dtype, dtype);
    return e.p + e.m + e.v;
}

static carrier sgd(carrier p, carrier buffer, carrier g, int variant, enum dtype dtype) {
    struct rule_sgd k = {(carrier)-0.01, (carrier)(variant % 2), (carrier)0.9, (carrier)0.75, 0};
    struct rule_sgd_element e = {p, buffer};
    k.nesterov = variant % 3 == 0;
    rule_sgd_step(&e, g, &k, variant % 5 == 0, dtype, dtype);
    return e.p + e.buffer;
}

#define RULE_ROWS(suffix, d)                                                                       \
    do {                                                                                           \
        RULE_ROW("rule_add_" suffix, d, rule_add(x, y, d));                                        \
        RULE_ROW("rule_mul_" suffix, d, rule_mul(x, y, d));                                        \
        RULE_ROW("rule_silu_" suffix, d, rule_silu(x, d));                                         \
        RULE_ROW("rule_silu_grad_" suffix, d, rule_silu_grad(y, x, d));                            \
        RULE_ROW("rule_swiglu_" suffix, d, rule_swiglu(x, y, d));                                  \
        RULE_ROW("rule_swiglu_gate_grad_" suffix, d, rule_swiglu_gate_grad(z, x, y, d));           \
        RULE_ROW(                                                                                  \
            "rule_norm_" suffix, d,                                                                \
            rule_norm(x, rule_norm_rstd((accumulator)(z * z), ACC(64.0), ACC(1e-5)), y, d, d));    \
        RULE_ROW("rule_norm_grad_" suffix, d, rule_norm_grad(x, y, (accumulator)z, ACC(0.3), d));  \
        RULE_ROW("rule_rotary_" suffix, d, rule_rotary(x, y, z, x, d));                            \
        RULE_ROW("rule_prob_" suffix, d,                                                           \
                 rule_prob(rule_exp_shifted(x, (accumulator)y), ACC(3.7), d));                     \
        RULE_ROW("rule_prob_grad_" suffix, d, rule_prob_grad(x, y, (accumulator)z, y, d));         \
        RULE_ROW("rule_logprob_" suffix, d,                                                        \
                 rule_logprob(x, (accumulator)y, (accumulator)(z * z), d));                        \
        RULE_ROW("rule_dlogit_" suffix, d,                                                         \
                 rule_dlogit((accumulator)x, ACC(3.7), ACC(1.0), (accumulator)y, d));              \
        RULE_ROW("rule_adamw_" suffix, d, adamw(x, y, z, i % 1000 + 1, d));                        \
        RULE_ROW("rule_sgd_" suffix, d, sgd(x, y, z, i, d));                                       \
    } while (0)

static void hash_rules(struct hash_rows *rows) {
    RULE_ROWS("f32", DTYPE_F32);
    RULE_ROWS("bf16", DTYPE_BF16);
#if defined(TWINSTEP_CARRIER_f64)
    RULE_ROWS("f64", DTYPE_F64);
#endif
}

void VARIANT(hash_arithmetic)(struct hash_rows *rows) {
    hash_real(rows);
    hash_sums(rows);
    hash_rules(rows);
}
