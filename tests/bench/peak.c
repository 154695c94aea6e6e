/* SPDX-License-Identifier: Apache-2.0
 * Measures how many multiplications and additions this machine's cores do at most, as the figure
 * that products of matrices are held against. This is not a test: it prints a line for each number
 * of threads and kind, with tabs between:
 *
 *     bench_peak [THREADS]
 *
 *     fma-f32 1 242.1        kind, threads, GFLOP/s (10^9; an fma counts as two)
 *
 * fma-f32 is the widest f32 fma that the processor has (AVX-512, else AVX2), dp-bf16 is vdpbf16ps,
 * where there is one. Chains in registers only: no memory takes part. Each figure is the best of
 * five spells of 0.1 s, in all threads at once. THREADS is 2 unless it is given. */
#include <immintrin.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHAINS 14  /* enough for two units of latency 4 to 5, and all stay in registers */
#define TURNS 4096 /* of all chains, between two looks at the clock */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each function works TURNS times on CHAINS vectors and returns something of the result, so that no
 * compiler leaves the work out. */
typedef float spell(void);

__attribute__((target("avx512f"))) static float fma_wide(void) {
    __m512 chain[CHAINS];
    const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(1e-3F);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm512_set1_ps((float)i);
    for (int turn = 0; turn < TURNS; turn++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm512_fmadd_ps(chain[i], factor, term);
    }
    __m512 sum = chain[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm512_add_ps(sum, chain[i]);
    return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) static float fma_narrow(void) {
    __m256 chain[CHAINS];
    const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(1e-3F);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm256_set1_ps((float)i);
    for (int turn = 0; turn < TURNS; turn++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm256_fmadd_ps(chain[i], factor, term);
    }
    __m256 sum = chain[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm256_add_ps(sum, chain[i]);
    return _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f,avx512bf16"))) static float dot_bf16(void) {
    __m512 chain[CHAINS];
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3c003c00); /* pairs of 2^-7 */
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm512_set1_ps((float)i);
    for (int turn = 0; turn < TURNS; turn++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm512_dpbf16_ps(chain[i], a, a);
    }
    __m512 sum = chain[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm512_add_ps(sum, chain[i]);
    return _mm512_cvtss_f32(sum);
}

/* The sum of what the threads returned goes here, so that it counts as used. */
static volatile float kept;

/* Returns the GFLOP/s of `threads` threads that work 0.1 s; `operations` are those of a spell. */
static double rate(spell *work, double operations, int threads) {
    double total = 0.0;
    float sum = 0.0F;
#pragma omp parallel num_threads(threads) reduction(+ : total, sum)
    {
#pragma omp barrier
        const double start = seconds();
        double spent;
        uint64_t count = 0;
        do {
            sum += work();
            count++;
            spent = seconds() - start;
        } while (spent < 0.1);
        total += (double)count * operations / spent;
    }
    kept = sum;
    return 1e-9 * total;
}

static void print_best(const char *name, spell *work, double operations, int threads) {
    double best = 0.0;
    for (int i = 0; i < 5; i++) {
        const double now = rate(work, operations, threads);
        if (now > best) best = now;
    }
    printf("%s\t%d\t%.1f\n", name, threads, best);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char *end = "";
    const long most = argc > 1 ? strtol(argv[1], &end, 10) : 2;
    if (argc > 2 || end == argv[1] || *end != '\0' || most < 1 || most > 1024) {
        fprintf(stderr, "usage: bench_peak [THREADS], 1 to 1024\n");
        return 2;
    }
    const int wide = __builtin_cpu_supports("avx512f");
    if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) {
        fprintf(stderr, "bench_peak: this processor has neither AVX-512 nor AVX2 with fma\n");
        return 1;
    }
    const double turns = (double)TURNS * CHAINS;
    for (int threads = 1;; threads = (int)most) {
        print_best("fma-f32", wide ? fma_wide : fma_narrow, turns * (wide ? 32.0 : 16.0), threads);
        if (__builtin_cpu_supports("avx512bf16"))
            print_best("dp-bf16", dot_bf16, turns * 64.0, threads);
        if (threads == (int)most) break;
    }
    return 0;
}
