/* SPDX-License-Identifier: Apache-2.0
 * Measures the loops of Adam's variants over elements: ns of an element by one thread, for pairs of
 * dtypes. This is not a test: it prints a table (docs/measurements/bf16.md).
 *
 *     bench_optim [ROUNDS]
 *
 * Each figure is the least of ROUNDS (default 200) steps over 16,384 elements, which stay in the
 * second-level cache, in seconds of the thread. The hash is of all parameters and slots after the
 * steps of a row: builds whose hashes agree computed the same bits, and so did rows that differ in
 * the bytes of a slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "base/real_round.h"
#include "base/rule_adam.h"
#include "determinism/stream.h"
#include "kernels/op.h"
#include "kernels/step.h"

step_loop optim_adam_range_f32_f32_base;
step_loop optim_adam_range_f32_f32_v3;
step_loop optim_adam_range_f32_f32_v4;

enum { ELEMENTS = 16384 };

static const struct {
    const char *name;
    enum dtype param;
    struct form slot;
} pairs[] = {
    {"f32, f32", DTYPE_F32, {DTYPE_F32, 4}},
    {"bf16, bf16", DTYPE_BF16, {DTYPE_BF16, 4}},
    {"bf16, bf16 in two bytes", DTYPE_BF16, {DTYPE_BF16, 2}},
    {"f32, bf16", DTYPE_F32, {DTYPE_BF16, 4}},
    {"f32, bf16 in two bytes", DTYPE_F32, {DTYPE_BF16, 2}},
};

struct tensors {
    float p[ELEMENTS], g[ELEMENTS], m[ELEMENTS], v[ELEMENTS];
    float slot[2][ELEMENTS]; /* m and v as they lie in the pair's form */
};

static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(float *out, uint32_t update, float scale, float shift) {
    const struct stream_site site = {{{update}}};
    for (uint32_t i = 0; i < ELEMENTS; i++)
        out[i] =
            real_round_bf16_f32(((float)stream_uniform(stream_word(11, site, i)) - shift) * scale);
}

static uint64_t hash(const struct tensors *t) {
    const float *const all[] = {t->p, t->m, t->v};
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        for (size_t i = 0; i < ELEMENTS; i++)
            h = (h ^ real_bits_f32(all[k][i])) * UINT64_C(1099511628211);
    }
    return h;
}

static double least_seconds(struct tensors *t, step_loop *loop, enum rule_adam_variant variant,
                            enum dtype param, struct form slot, int rounds) {
    const struct step_range range = {.param_dtype = param,
                                     .gradient_dtype = param,
                                     .slot = slot,
                                     .param = t->p,
                                     .gradient = t->g,
                                     .slots = {t->slot[0], t->slot[1]},
                                     .count = ELEMENTS,
                                     .grad_scale = 1.0};
    double best = 0.0;
    form_narrow(t->m, slot, ELEMENTS, t->slot[0]);
    form_narrow(t->v, slot, ELEMENTS, t->slot[1]);
    for (int i = 0; i < rounds; i++) {
        const struct rule_adam_call call = {.variant = variant,
                                            .decoupled = 1,
                                            .bias_correction = 1,
                                            .lr = 1e-3,
                                            .weight_decay = 0.01,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .eps = 1e-8,
                                            .factor = 1.0,
                                            .t = (uint64_t)i + 1};
        const double start = thread_seconds();
        loop(&range, 1, &call);
        const double seconds = thread_seconds() - start;
        if (i == 0 || seconds < best) best = seconds;
    }
    form_widen(t->slot[0], slot, ELEMENTS, t->m);
    form_widen(t->slot[1], slot, ELEMENTS, t->v);
    return best;
}

int main(int argc, char **argv) {
    static struct tensors t;
    static step_loop *const loops[ISA_COUNT] = {[ISA_BASE] = optim_adam_range_f32_f32_base,
                                                [ISA_V3] = optim_adam_range_f32_f32_v3,
                                                [ISA_V4] = optim_adam_range_f32_f32_v4};
    const int rounds = argc > 1 ? atoi(argv[1]) : 200;
    if (rounds < 1) return 2;
#define HEAD(NAME, name) printf(#name " | ");
    printf("| set | parameter, slots | ");
    STEP_ADAM_VARIANTS(HEAD)
    printf("hash |\n");
    for (int isa = ISA_BASE; isa <= (int)backend_isa(ISA_AUTO); isa++) {
        for (size_t k = 0; k < COUNT_OF(pairs); k++) {
            uint64_t all = 0;
            printf("| %s | %s | ", isa_name((enum isa)isa), pairs[k].name);
            for (int variant = 0; variant < RULE_ADAM_COUNT; variant++) {
                fill(t.p, 1, 1.0F, 0.5F);
                fill(t.g, 2, 0.01F, 0.5F);
                fill(t.m, 3, 0.001F, 0.5F);
                fill(t.v, 4, 0.00001F, 0.0F);
                const double seconds =
                    least_seconds(&t, loops[isa], (enum rule_adam_variant)variant, pairs[k].param,
                                  pairs[k].slot, rounds);
                printf("%.2f | ", 1e9 * seconds / ELEMENTS);
                all = all * 31 + hash(&t);
            }
            printf("%016jx |\n", (uintmax_t)all);
        }
    }
    return 0;
}
