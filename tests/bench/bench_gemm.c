/* SPDX-License-Identifier: Apache-2.0
 * Measures the linear ops, beside OpenBLAS where it is linked. This is not a test: it prints a
 * table.
 *
 *     OPENBLAS_CORETYPE=SkylakeX bench_gemm [ROUNDS] [WORD]...
 *
 * Each line is one problem: the three ops, dense and gathered, with the best of ROUNDS (default 20)
 * rounds in which ours and OpenBLAS take turns. WORD selects lines by group (square, rectangle,
 * small, double, avx2, shuffled, bf16). Products are M = rows, N = outputs, K = inputs of the
 * layer. Group bf16 is a table of its own, by one thread: AVX-512's kernels on bf16 numbers, by fma
 * and by vdpbf16ps in turns (docs/measurements/bf16.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/real_round.h"
#include "determinism/stream.h"
#include "kernels/cpu/gemm.h"
#include "kernels/op.h"

#ifdef BENCH_OPENBLAS
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                 float *, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int,
                 double, double *, int);
void openblas_set_num_threads(int);
char *openblas_get_corename(void);
#endif

#define DECLARE(pair, isa)                                                                         \
    void linear_forward_##pair##_##isa(const struct op_call *,                                     \
                                       const struct linear_forward_args *);                        \
    void linear_input_##pair##_##isa(const struct op_call *, const struct linear_input_args *);    \
    void linear_weight_##pair##_##isa(const struct op_call *, const struct linear_weight_args *);
DECLARE(f32_f32, v3)
DECLARE(f32_f32, v4)
DECLARE(f32_f64, v3)
DECLARE(f32_f64, v4)
DECLARE(f64_f64, v3)
DECLARE(f64_f64, v4)

struct variant {
    const char *name;
    enum dtype compute;
    size_t carrier, accumulator;
    void (*forward)(const struct op_call *, const struct linear_forward_args *);
    void (*input)(const struct op_call *, const struct linear_input_args *);
    void (*weight)(const struct op_call *, const struct linear_weight_args *);
};

#define ROW(pair, isa, compute, carrier, accumulator)                                              \
    {                                                                                              \
#pair "_" #isa, compute, carrier, accumulator, linear_forward_##pair##_##isa,              \
            linear_input_##pair##_##isa, linear_weight_##pair##_##isa                              \
    }
/* Indexed [instruction set][pair]. */
static const struct variant variants[2][3] = {
    {ROW(f32_f32, v3, DTYPE_F32, 4, 4), ROW(f32_f64, v3, DTYPE_F32, 4, 8),
     ROW(f64_f64, v3, DTYPE_F64, 8, 8)},
    {ROW(f32_f32, v4, DTYPE_F32, 4, 4), ROW(f32_f64, v4, DTYPE_F32, 4, 8),
     ROW(f64_f64, v4, DTYPE_F64, 8, 8)},
};

enum op_name { FORWARD, INPUT, WEIGHT, OPS };

struct problem {
    const char *group;
    uint32_t T, N, K;
    int pair; /* 0 f32/f32, 1 f32/f64, 2 f64/f64 */
    int shuffled;
    int narrow; /* AVX2 even where there is AVX-512 */
};

static const struct problem problems[] = {
    {"square", 64, 64, 64, 0, 0, 0},        {"square", 128, 128, 128, 0, 0, 0},
    {"square", 256, 256, 256, 0, 0, 0},     {"square", 384, 384, 384, 0, 0, 0},
    {"square", 512, 512, 512, 0, 0, 0},     {"square", 768, 768, 768, 0, 0, 0},
    {"square", 1024, 1024, 1024, 0, 0, 0},  {"rectangle", 1024, 768, 256, 0, 0, 0},
    {"rectangle", 256, 3072, 768, 0, 0, 0}, {"rectangle", 256, 768, 3072, 0, 0, 0},
    {"rectangle", 2048, 256, 256, 0, 0, 0}, {"small", 100, 64, 64, 0, 0, 0},
    {"small", 200, 172, 64, 0, 0, 0},       {"small", 300, 128, 128, 0, 0, 0},
    {"small", 400, 260, 64, 0, 0, 0},       {"small", 700, 64, 172, 0, 0, 0},
    {"double", 128, 128, 128, 1, 0, 0},     {"double", 512, 512, 512, 1, 0, 0},
    {"double", 128, 128, 128, 2, 0, 0},     {"double", 512, 512, 512, 2, 0, 0},
    {"avx2", 256, 256, 256, 0, 0, 1},       {"avx2", 512, 512, 512, 0, 0, 1},
    {"shuffled", 256, 256, 256, 0, 1, 0},   {"shuffled", 512, 512, 512, 0, 1, 0},
    {"shuffled", 300, 128, 260, 0, 1, 0},
};

/* Layers of docs/measurements/bf16.md: q and gate of L4 C256 M688, its head; those of C768 M2048.
 */
static const struct problem bf16_problems[] = {
    {"bf16", 512, 512, 512, 0, 0, 0},   {"bf16", 1024, 256, 256, 0, 0, 0},
    {"bf16", 1024, 688, 256, 0, 0, 0},  {"bf16", 1024, 256, 688, 0, 0, 0},
    {"bf16", 1024, 8192, 256, 0, 0, 0}, {"bf16", 256, 768, 768, 0, 0, 0},
    {"bf16", 256, 2048, 768, 0, 0, 0},  {"bf16", 256, 768, 2048, 0, 0, 0},
};

struct buffers {
    void *x, *w, *dy, *y, *dx, *acc, *scratch;
    uint32_t *index;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *take(struct arena *arena, size_t count, size_t bytes) {
    void *out = NULL;
    if (arena_take(arena, count, bytes, "bench buffer", &out) != STATUS_OK) {
        fprintf(stderr, "%s\n", status_text());
        exit(2);
    }
    return out;
}

static void fill(void *buffer, size_t bytes, size_t count) {
    const struct stream_site site = {{{0}}};
    for (size_t i = 0; i < count; i++) {
        const double value = stream_uniform(stream_word(7, site, i)) - 0.5;
        if (bytes == 4) {
            ((float *)buffer)[i] = (float)value;
        } else {
            ((double *)buffer)[i] = value;
        }
    }
}

static struct buffers prepare(struct arena *arena, const struct problem *p, const struct variant *v,
                              int threads) {
    const size_t T = p->T;
    struct buffers b = {take(arena, T * p->K, v->carrier),
                        take(arena, (size_t)p->N * p->K, v->carrier),
                        take(arena, T * p->N, v->carrier),
                        take(arena, T * p->N, v->carrier),
                        take(arena, T * p->K, v->carrier),
                        take(arena, (size_t)p->N * p->K, v->accumulator),
                        NULL,
                        (uint32_t *)take(arena, T, sizeof(uint32_t))};
    const struct op_limits limits = {
        .rows = p->T, .width = p->N > p->K ? p->N : p->K, .threads = threads};
    b.scratch = take(arena, linear_scratch(&limits), 1);
    fill(b.x, v->carrier, T * p->K);
    fill(b.w, v->carrier, (size_t)p->N * p->K);
    fill(b.dy, v->carrier, T * p->N);
    /* The blocks of rows are out of order, as layouts make them. */
    for (uint32_t i = 0; i < p->T; i++)
        b.index[i] = (i * 37u) % p->T;
    if (p->T % 37 == 0) exit(2);
    return b;
}

static void run_ours(const struct problem *p, const struct variant *v, const struct buffers *b,
                     enum op_name op, int gathered, int threads, struct bf16_tiles *bf16) {
    const struct order order = {1, SUM_FORWARD | SUM_WEIGHT, 16, 1, 0};
    const struct op_call call = {.compute = v->compute,
                                 .threads = threads,
                                 .order = p->shuffled ? &order : NULL,
                                 .bf16 = bf16,
                                 .scratch = b->scratch};
    const struct row_list rows = {gathered ? b->index : NULL, p->T};
    if (op == FORWARD) {
        v->forward(&call, &(struct linear_forward_args){rows, p->N, p->K, b->x, b->w, b->y, NULL});
    } else if (op == INPUT) {
        v->input(&call, &(struct linear_input_args){rows, p->N, p->K, b->dy, b->w, b->dx, 0});
    } else {
        v->weight(&call, &(struct linear_weight_args){rows, p->N, p->K, b->dy, b->x, b->acc, 0});
    }
}

#ifdef BENCH_OPENBLAS
static void run_theirs(const struct problem *p, const struct buffers *b, enum op_name op) {
    const int T = (int)p->T;
    const int N = (int)p->N;
    const int K = (int)p->K;
    if (p->pair == 0) {
        const float *const x = (const float *)b->x;
        const float *const w = (const float *)b->w;
        const float *const dy = (const float *)b->dy;
        if (op == FORWARD) {
            cblas_sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, T, N, K, 1.0F, x, K, w, K, 0.0F,
                        (float *)b->y, N);
        } else if (op == INPUT) {
            cblas_sgemm(ROW_MAJOR, PLAIN, PLAIN, T, K, N, 1.0F, dy, N, w, K, 0.0F, (float *)b->dx,
                        K);
        } else {
            cblas_sgemm(ROW_MAJOR, TRANSPOSED, PLAIN, N, K, T, 1.0F, dy, N, x, K, 1.0F,
                        (float *)b->acc, K);
        }
        return;
    }
    const double *const x = (const double *)b->x;
    const double *const w = (const double *)b->w;
    const double *const dy = (const double *)b->dy;
    if (op == FORWARD) {
        cblas_dgemm(ROW_MAJOR, PLAIN, TRANSPOSED, T, N, K, 1.0, x, K, w, K, 0.0, (double *)b->y, N);
    } else if (op == INPUT) {
        cblas_dgemm(ROW_MAJOR, PLAIN, PLAIN, T, K, N, 1.0, dy, N, w, K, 0.0, (double *)b->dx, K);
    } else {
        cblas_dgemm(ROW_MAJOR, TRANSPOSED, PLAIN, N, K, T, 1.0, dy, N, x, K, 1.0, (double *)b->acc,
                    K);
    }
}
#else
static void run_theirs(const struct problem *p, const struct buffers *b, enum op_name op) {
    (void)p;
    (void)b;
    (void)op;
}
#endif

/* Returns the seconds of one call, averaged over as many calls as fill half a millisecond. */
static double time_one(const struct problem *p, const struct variant *v, const struct buffers *b,
                       enum op_name op, int gathered, int threads, int theirs) {
    const double flops = 2.0 * p->T * p->N * p->K;
    const int repeats = 1 + (int)(5e7 / flops);
    const double start = now();
    for (int i = 0; i < repeats; i++) {
        if (theirs) {
            run_theirs(p, b, op);
        } else {
            run_ours(p, v, b, op, gathered, threads, NULL);
        }
    }
    return (now() - start) / repeats;
}

static void keep_least(double *best, double seconds) {
    if (*best == 0.0 || seconds < *best) *best = seconds;
}

static void bench(const struct problem *p, const struct variant *v, int threads, int rounds) {
    struct arena arena = ARENA_EMPTY;
    const struct buffers b = prepare(&arena, p, v, threads);
    double ours[OPS][2] = {{0}};
    double theirs[OPS] = {0};
    for (int round = 0; round < rounds; round++) {
        for (int op = 0; op < OPS; op++) {
            for (int gathered = 0; gathered < 2; gathered++) {
                keep_least(&ours[op][gathered],
                           time_one(p, v, &b, (enum op_name)op, gathered, threads, 0));
            }
#ifdef BENCH_OPENBLAS
            if (p->pair != 1) {
                keep_least(&theirs[op], time_one(p, v, &b, (enum op_name)op, 0, threads, 1));
            }
#endif
        }
    }
    const double giga = 2e-9 * p->T * p->N * p->K;
    printf("| %s%s | %ux%ux%u | %d |", v->name, p->shuffled ? " shuffled" : "", p->T, p->N, p->K,
           threads);
    for (int op = 0; op < OPS; op++) {
        printf(" %.0f | %.0f |", giga / ours[op][0], giga / ours[op][1]);
        if (theirs[op] > 0.0) {
            printf(" %.0f | %.2f | %.2f |", giga / theirs[op], theirs[op] / ours[op][0],
                   theirs[op] / ours[op][1]);
        } else {
            printf(" | | |");
        }
    }
    printf("\n");
    fflush(stdout);
    arena_close(&arena);
}

static void round_bf16(void *buffer, size_t count) {
    float *const x = (float *)buffer;
    for (size_t i = 0; i < count; i++)
        x[i] = real_round_bf16_f32(x[i]);
}

/* One line of group bf16. */
static void bench_bf16(const struct problem *p, int rounds) {
    struct arena arena = ARENA_EMPTY;
    struct variant v = variants[1][0];
    v.compute = DTYPE_BF16;
    const struct buffers b = prepare(&arena, p, &v, 1);
    double best[OPS][2] = {{0}};
    struct bf16_tiles tiles = {0, 0};
    round_bf16(b.x, (size_t)p->T * p->K);
    round_bf16(b.w, (size_t)p->N * p->K);
    round_bf16(b.dy, (size_t)p->T * p->N);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 2 * OPS; i++) {
            const double start = now();
            run_ours(p, &v, &b, (enum op_name)(i / 2), 0, 1, i % 2 ? &tiles : NULL);
            keep_least(&best[i / 2][i % 2], now() - start);
        }
    }
    const double giga = 2e-9 * p->T * p->N * p->K;
    printf("| %ux%ux%u |", p->T, p->N, p->K);
    for (int op = 0; op < OPS; op++)
        printf(" %.0f | %.0f | %.2f |", giga / best[op][0], giga / best[op][1],
               best[op][0] / best[op][1]);
    printf(" %ju of %ju |\n", (uintmax_t)tiles.by_fma, (uintmax_t)tiles.tiles);
    fflush(stdout);
    arena_close(&arena);
}

static int bench_all_bf16(int rounds) {
    if (!backend_bf16(ISA_V4_BF16)) {
        fprintf(stderr, "this machine has no vdpbf16ps\n");
        return 2;
    }
    printf("| TxNxK | forward fma | vdpbf16ps | ratio | input fma | vdpbf16ps | ratio | weight fma "
           "| vdpbf16ps | ratio | tiles by fma |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < COUNT_OF(bf16_problems); i++)
        bench_bf16(&bf16_problems[i], rounds);
    return 0;
}

static int selected(const char *group, int count, char **words) {
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], group) == 0) return 1;
    }
    return count == 0;
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;
    const int words = argc > 2 ? argc - 2 : 0;
    const int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || rounds < 1) return 2;
    if (words == 1 && strcmp(argv[2], "bf16") == 0) return bench_all_bf16(rounds);
#ifdef BENCH_OPENBLAS
    printf("OpenBLAS core: %s\n\n", openblas_get_corename());
#endif
    printf("| variant | TxNxK | threads |");
    static const char *const names[OPS] = {"forward", "input", "weight"};
    for (int op = 0; op < OPS; op++)
        printf(" %s | gathered | OpenBLAS | ratio | gathered |", names[op]);
    printf("\n|---|---|---|");
    for (int column = 0; column < 5 * OPS; column++)
        printf("---|");
    printf("\n");
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (!selected(problems[i].group, words, argv + 2)) continue;
        for (int threads = 1; threads <= 2; threads++) {
#ifdef BENCH_OPENBLAS
            openblas_set_num_threads(threads);
#endif
            bench(&problems[i], &variants[v4 && !problems[i].narrow][problems[i].pair], threads,
                  rounds);
        }
    }
    return 0;
}
