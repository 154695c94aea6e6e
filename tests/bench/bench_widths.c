/* SPDX-License-Identifier: Apache-2.0
 * Measures what it gives to keep bf16 numbers in 2 bytes instead of in an f32 (docs/decisions/
 * carriers.md): ns of an element by one thread, for loops that the training has. This is not a
 * test: it prints a table.
 *
 *     bench_widths [ROUNDS]
 *
 * Both loops do the same arithmetic and differ in what they load and store. Each figure is the
 * least of ROUNDS (default 5) in seconds of the process; the two widths take turns, so that
 * whoever shares the machine disturbs both. Vectors have 2^14, 2^18 and 2^22 numbers: in carriers
 * three of them take a second-level cache, a third-level one, and memory. The program ends with
 * status 1 if the widths did not give the same parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TWINSTEP_VARIANT f32_f32_bench
#define TWINSTEP_CARRIER_f32 1
#define TWINSTEP_ACCUMULATOR_f32 1
#include "base/macro.h"
#include "base/rule.h"
#include "base/rule_adam.h"

enum { VECTORS = 5, BLOCK = 256, NUMBERS_PER_ROUND = 1 << 23, MOST = 1 << 22 };

static inline float load_float(float x) {
    return x;
}

static inline float store_float(float x) {
    return x;
}

static inline float load_half(uint16_t x) {
    return real_from_bits_f32((uint32_t)x << 16);
}

static inline uint16_t store_half(float x) {
    return (uint16_t)(real_bits_f32(x) >> 16);
}

/* The loops, of x[0 .. 4]: a sum of two vectors, SwiGLU, numbers that become operands of a product,
 * and AdamW with parameters, gradients and slots in bf16. */
#define LOOPS(width, type)                                                                         \
    static __attribute__((noinline)) void add_##width(type *const *x, float *wide, size_t n,       \
                                                      const struct rule_adam *k) {                 \
        (void)wide, (void)k;                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) x[4][i] =                               \
            store_##width(rule_add(load_##width(x[0][i]), load_##width(x[1][i]), DTYPE_BF16));     \
    }                                                                                              \
    static __attribute__((noinline)) void swiglu_##width(type *const *x, float *wide, size_t n,    \
                                                         const struct rule_adam *k) {              \
        (void)wide, (void)k;                                                                       \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) x[4][i] =                               \
            store_##width(rule_swiglu(load_##width(x[0][i]), load_##width(x[1][i]), DTYPE_BF16));  \
    }                                                                                              \
    static __attribute__((noinline)) void widen_##width(type *const *x, float *wide, size_t n,     \
                                                        const struct rule_adam *k) {               \
        (void)k;                                                                                   \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) wide[i] = load_##width(x[0][i]);        \
    }                                                                                              \
    static __attribute__((noinline)) void adamw_##width(type *const *x, float *wide, size_t n,     \
                                                        const struct rule_adam *step) {            \
        const struct rule_adam k = *step;                                                          \
        float p[BLOCK], g[BLOCK], m[BLOCK], v[BLOCK];                                              \
        (void)wide;                                                                                \
        for (size_t first = 0; first < n; first += BLOCK) {                                        \
            for (size_t i = 0; i < BLOCK; i++) {                                                   \
                p[i] = load_##width(x[0][first + i]);                                              \
                g[i] = load_##width(x[1][first + i]);                                              \
                m[i] = load_##width(x[2][first + i]);                                              \
                v[i] = load_##width(x[3][first + i]);                                              \
            }                                                                                      \
            for (size_t i = 0; i < BLOCK; i++) {                                                   \
                struct rule_adam_element e = {p[i], m[i], v[i], 0};                                \
                rule_adam_step(&e, g[i], &k, RULE_ADAM_TORCH, DTYPE_BF16, DTYPE_BF16);             \
                p[i] = e.p;                                                                        \
                m[i] = e.m;                                                                        \
                v[i] = e.v;                                                                        \
            }                                                                                      \
            for (size_t i = 0; i < BLOCK; i++) {                                                   \
                x[0][first + i] = store_##width(p[i]);                                             \
                x[2][first + i] = store_##width(m[i]);                                             \
                x[3][first + i] = store_##width(v[i]);                                             \
            }                                                                                      \
        }                                                                                          \
    }

LOOPS(float, float)
LOOPS(half, uint16_t)

static const struct {
    const char *name;
    void (*carriers)(float *const *x, float *wide, size_t n, const struct rule_adam *k);
    void (*halves)(uint16_t *const *x, float *wide, size_t n, const struct rule_adam *k);
} loops[] = {
    {"add", add_float, add_half},
    {"swiglu", swiglu_float, swiglu_half},
    {"widen", widen_float, widen_half},
    {"adamw", adamw_float, adamw_half},
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *room(size_t bytes) {
    void *const memory = aligned_alloc(64, bytes);
    if (memory != NULL) return memory;
    fprintf(stderr, "bench_widths: no memory for %zu bytes\n", bytes);
    exit(1);
}

/* Between -1 and 1; the second moments (vector 3) are squares. */
static float number(size_t vector, size_t i) {
    const float x = (float)((i * 2654435761u + vector * 97) % 2001) / 1000.0f - 1.0f;
    return real_round_bf16_f32(vector == 3 ? x * x : x);
}

/* Prints a row for each loop. Returns whether both widths have the same numbers at the end. */
static int measure(size_t n, int rounds, float *const *carriers, uint16_t *const *halves,
                   float *wide, const struct rule_adam *k) {
    const size_t calls = NUMBERS_PER_ROUND / n;
    int same = 1;
    for (size_t l = 0; l < COUNT_OF(loops); l++) {
        double least[2] = {1e9, 1e9};
        for (int round = 0; round < rounds; round++) {
            const double start = seconds();
            for (size_t i = 0; i < calls; i++)
                loops[l].carriers(carriers, wide, n, k);
            const double between = seconds();
            for (size_t i = 0; i < calls; i++)
                loops[l].halves(halves, wide, n, k);
            const double end = seconds();
            if (between - start < least[0]) least[0] = between - start;
            if (end - between < least[1]) least[1] = end - between;
        }
        const double each = 1e9 / (double)(calls * n);
        printf("%8zu  %-7s %7.3f %7.3f %6.2f\n", n, loops[l].name, least[0] * each, least[1] * each,
               least[1] / least[0]);
    }
    for (size_t v = 0; v < VECTORS; v++) {
        for (size_t i = 0; i < n; i++)
            same &= store_half(carriers[v][i]) == halves[v][i];
    }
    return same;
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 5;
    const struct rule_adam_call call = {.variant = RULE_ADAM_TORCH,
                                        .decoupled = 1,
                                        .lr = 1e-3,
                                        .beta1 = 0.9,
                                        .beta2 = 0.999,
                                        .eps = 1e-8,
                                        .weight_decay = 0.01,
                                        .t = 3};
    const struct rule_adam k = rule_adam_open(&call);
    float *carriers[VECTORS], *const wide = (float *)room(MOST * sizeof *wide);
    uint16_t *halves[VECTORS];
    int same = 1;
    for (size_t v = 0; v < VECTORS; v++) {
        carriers[v] = (float *)room(MOST * sizeof **carriers);
        halves[v] = (uint16_t *)room(MOST * sizeof **halves);
    }
    memset(wide, 0, MOST * sizeof *wide);
    printf("%8s  %-7s %7s %7s %6s\n", "numbers", "loop", "f32", "2 bytes", "ratio");
    for (size_t n = 1 << 14; n <= MOST; n <<= 4) {
        for (size_t v = 0; v < VECTORS; v++) {
            for (size_t i = 0; i < n; i++) {
                carriers[v][i] = number(v, i);
                halves[v][i] = store_half(carriers[v][i]);
            }
        }
        same &= measure(n, rounds, carriers, halves, wide, &k);
    }
    if (!same) fprintf(stderr, "bench_widths: the two widths gave different numbers\n");
    return !same;
}
