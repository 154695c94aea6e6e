/* SPDX-License-Identifier: Apache-2.0
 * Runs blocks of inputs through every instruction set of the machine and through the judge, and
 * counts. */
#include <float.h>
#include <mpfr.h>

#include "base/macro.h"
#include "tests/base/proof/proof_pair.h"
#include "tests/base/proof/proof.h"
#include "tests/base/proof/proof_table.h"

#define INFINITE (DBL_MAX * 2.0)

const char *const proof_names[PROOF_FUNCTIONS] = {"exp",   "exp2", "expm1", "tanh", "log",
                                                  "log1p", "sin",  "cos",   "pow"};

static const struct {
    const char *name;
    proof_evaluate *evaluate;
    proof_judge *judge;
    proof_refer *refer;
} sets[] = {
    {"base", proof_evaluate_base, proof_judge_base, proof_refer_base},
#ifndef TWINSTEP_ONE_ISA /* base/isa_objects.h */
    {"v3", proof_evaluate_v3, proof_judge_v3, proof_refer_v3},
    {"v4", proof_evaluate_v4, proof_judge_v4, proof_refer_v4},
#endif
};

int proof_machine_has(const char *isa) {
#if defined(__x86_64__)
    if (isa[1] == '4')
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512cd");
    if (isa[1] == '3')
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
#endif
    return isa[0] == 'b';
}

static int best_set(void) {
    int best = 0;
    for (int i = 1; i < (int)COUNT_OF(sets); i++)
        if (proof_machine_has(sets[i].name)) best = i;
    return best;
}

proof_judge *proof_best_judge(void) {
    return sets[best_set()].judge;
}

proof_refer *proof_best_refer(void) {
    return sets[best_set()].refer;
}

/* Decides x^y beyond the numbers of the format, and of a negative x by a y that is no integer. log2
 * |x| lies between (1 - 1/|x|) / ln2 and (|x| - 1) / ln2, and between its exponent and the next.
 * Returns 0, which leaves it to MPFR, for bases that are no numbers or not normal. */
static int special_power(int wide, double x, double y, double *want) {
    const double per_ln2 = 0x1.71547652b82fep+0;
    double magnitude = pair_abs(x);
    double high = wide ? 1025.0 : 129.0, low = wide ? -1077.0 : -152.0;
    double e = (double)((int)(pair_bits(magnitude) >> 52) - 1023);
    double least = (1.0 - 1.0 / magnitude) * per_ln2, most = (magnitude - 1.0) * per_ln2;
    double a = y * (least > e ? least : e), b = y * (most < e + 1.0 ? most : e + 1.0);
    int whole = pair_abs(y) >= 0x1p53 || (double)(int64_t)y == y;
    int odd = whole && pair_abs(y) < 0x1p53 && (int64_t)y % 2 != 0;
    if (!(magnitude <= DBL_MAX && magnitude >= DBL_MIN && pair_abs(y) <= DBL_MAX)) return 0;
    *want = pair_from_bits(0x7ff8000000000000u);
    if (x < 0.0 && !whole) return 1;
    *want = (a > 0.0 ? INFINITE : 0.0) * (x < 0.0 && odd ? -1.0 : 1.0);
    return (a > high && b > high) || (a < low && b < low);
}

/* Decides the results that need no reference: those that C11 Annex F calls undefined or infinite,
 * those beyond the largest or below the least number, and x itself where a function through 0
 * differs from it by less than 2^-800 of it. Returns 0 where it is none of these. */
static int special_value(enum proof_function function, int wide, double x, double y, double *want) {
    const double nan = pair_from_bits(0x7ff8000000000000u);
    double beyond = x > 0.0 ? INFINITE : 0.0;
    int tiny = pair_abs(x) < 0x1p-850;
    *want = nan;
    if (function == PROOF_POW) return special_power(wide, x, y, want);
    if (x != x) return 1;
    switch (function) {
    case PROOF_EXP:
        *want = beyond;
        return x > 0x1.62e42fefa39efp9 || x < -746.0;
    case PROOF_EXP2:
        *want = beyond;
        return x >= 1024.0 || x < -1075.0;
    case PROOF_EXPM1:
        *want = tiny ? x : beyond - (x < 0.0);
        return tiny || x > 0x1.62e42fefa39efp9 || x < -690.0;
    case PROOF_TANH:
        *want = tiny ? x : x > 0.0 ? 1.0 : -1.0;
        return tiny || pair_abs(x) > DBL_MAX;
    case PROOF_LOG:
        if (x >= 0.0) *want = x > 0.0 ? x : -INFINITE;
        return !(x > 0.0) || x > DBL_MAX;
    case PROOF_LOG1P:
        if (x >= -1.0) *want = x > -1.0 ? x : -INFINITE;
        return tiny || !(x > -1.0) || x > DBL_MAX;
    case PROOF_SIN:
        if (tiny) *want = x;
        return tiny || pair_abs(x) > 0x1p20;
    case PROOF_COS:
        return pair_abs(x) > 0x1p20;
    case PROOF_POW:
    case PROOF_FUNCTIONS:
        break;
    }
    return 0;
}

static int same(double a, double b) {
    return pair_bits(a) == pair_bits(b) || (a != a && b != b);
}

static int is_before(double x, double y, double at, double at_y) {
    if (pair_abs(x) != pair_abs(at)) return pair_abs(x) < pair_abs(at);
    if (pair_bits(x) != pair_bits(at)) return pair_bits(x) < pair_bits(at);
    return pair_bits(y) < pair_bits(at_y);
}

static void note_error(struct proof_tally *tally, double error, double x, double y) {
    if (error < tally->worst) return;
    if (error <= tally->worst && !is_before(x, y, tally->at, tally->at_y)) return;
    tally->worst = error;
    tally->at = x;
    tally->at_y = y;
}

/* Law 8: f32 exp and exp2 return +0 where the exact value is below 2^-126. */
static int flushes(enum proof_function function, int wide, const struct proof_block *b, size_t i) {
    if (wide || (function != PROOF_EXP && function != PROOF_EXP2) || b->ask[i] == 2) return 0;
    return pair_odd(b->high[i], b->low[i]) < 0x1p-126;
}

static void count_one(enum proof_function function, int wide, const struct proof_block *b, size_t i,
                      struct proof_tally *tally) {
    double x = b->x[i], y = b->y[i], got = b->result[i], want = b->want[i], error = b->error[i];
    double special;
    if (flushes(function, wide, b, i)) {
        tally->flushed++;
        want = 0.0;
        error = same(got, want) ? 0.0 : 0x1p1000;
    } else if (b->ask[i] != 0 && special_value(function, wide, x, y, &special)) {
        want = special;
        error = same(got, want) ? 0.0 : 0x1p1000;
        tally->special++;
    } else if (b->ask[i] != 0) {
        proof_ask(function, wide, x, y, got, &want, &error);
        tally->asked++;
    } else if (!(want < 0.0) && !(want > 0.0) && x != 1.0 && function != PROOF_POW) {
        want = x; /* of the odd functions at a zero; log(1) = +0 */
    }
    if (error != error) error = 0x1p1000;
    tally->inputs++;
    tally->misrounded += !same(got, want);
    note_error(tally, error, x, y);
}

/* Counts at once what the judge decided at once. */
static void count_block(enum proof_function function, int wide, const struct proof_block *b,
                        struct proof_tally *tally) {
    int notable = b->worst >= tally->worst;
    tally->hash += b->hash;
    for (size_t i = 0; i < b->count; i++) {
        if (!b->plain[i]) {
            count_one(function, wide, b, i, tally);
            continue;
        }
        tally->inputs++;
        tally->flushed += b->plain[i] == 2;
        tally->special += b->plain[i] == 3;
        if (notable) note_error(tally, b->plain[i] == 1 ? b->error[i] : 0.0, b->x[i], b->y[i]);
    }
}

/* Computes the results, and counts how many of them other sets of this machine do not give. Without
 * fma hardware a result costs ten times the rest of its proof, so that in long runs one block of 16
 * is computed that way. */
static void evaluate_sets(enum proof_function function, int wide, int with_base,
                          struct proof_block *b, struct proof_tally *tally) {
    double other[PROOF_BLOCK];
    int best = best_set();
    sets[best].evaluate(function, wide, b->x, b->y, b->result, b->count);
    for (int s = with_base ? 0 : 1; s < best; s++) {
        sets[s].evaluate(function, wide, b->x, b->y, other, b->count);
        for (size_t i = 0; i < b->count; i++)
            tally->isa += !same(other[i], b->result[i]);
    }
}

void proof_merge(struct proof_tally *tally, const struct proof_tally *more) {
    if (more->inputs == 0) return;
    if (tally->inputs == 0) {
        *tally = *more;
        return;
    }
    tally->inputs += more->inputs;
    tally->misrounded += more->misrounded;
    tally->flushed += more->flushed;
    tally->special += more->special;
    tally->asked += more->asked;
    tally->hash += more->hash;
    tally->isa += more->isa;
    note_error(tally, more->worst, more->at, more->at_y);
}

struct proof_tally proof_run(enum proof_function function, int wide, proof_fill *fill,
                             const void *context, uint64_t blocks, int threads) {
    struct proof_tally all = {0};
    proof_judge *judge = proof_best_judge();
    (void)proof_table();
    (void)threads; /* a build without OpenMP has one */
#pragma omp parallel num_threads(threads)
    {
        struct proof_tally mine = {0};
        struct proof_block b;
        mine.at = INFINITE;
#pragma omp for schedule(dynamic, 64)
        for (uint64_t k = 0; k < blocks; k++) {
            fill(function, k, context, &b);
            evaluate_sets(function, wide, blocks < PROOF_LONG || k % 16 == 0, &b, &mine);
            judge(function, wide, &b);
            count_block(function, wide, &b, &mine);
        }
#pragma omp critical
        proof_merge(&all, &mine);
        mpfr_free_cache();
    }
    return all;
}
