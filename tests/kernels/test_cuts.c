/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Sums of several parts (law 23): products of linear layers, sums of norms and of exponentials must
 * equal the law written out one number at a time, for every number pair, instruction set and number
 * of threads; weights' gradients must not be cut. With one product in a part, torch's tensor
 * parallelism over two processes has the same bits (tests/golden/ranks/tensor.txt).
 *
 * The tree is written here as a recursion over halves, not by the slots of kernels/cpu/cuts.h. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

static const uint32_t all_cuts[] = {2, 4, 8};

/* ---- the law ---- */

/* What is summed: n products a[i * a_step] * b[i * b_step], or terms a where b is NULL. */
struct sum {
    const double *a, *b;
    size_t a_step, b_step, n;
    int lanes; /* 1: a part is a sum of law 2, with steps of 1; 0: a chain of law 1 */
};

static double part_sum(const struct law *law, const struct sum *sum, size_t first, size_t count) {
    const double *const a = sum->a + first * sum->a_step;
    const double *const b = sum->b == NULL ? NULL : sum->b + first * sum->b_step;
    return sum->lanes ? law_lanes(law, a, b, count)
                      : law_chain(law, 0.0, a, sum->a_step, b, sum->b_step, count);
}

/* The sum of parts first .. first + count - 1 of `cuts`: that of the left half plus that of the
 * right one. */
static double tree_sum(const struct law *law, const struct sum *sum, uint32_t cuts, uint32_t first,
                       uint32_t count) {
    if (count == 1) {
        const size_t start = (size_t)floor((double)first * (double)sum->n / cuts);
        const size_t end = (size_t)floor((double)(first + 1) * (double)sum->n / cuts);
        return part_sum(law, sum, start, end - start);
    }
    return law_add(law, tree_sum(law, sum, cuts, first, count / 2),
                   tree_sum(law, sum, cuts, first + count / 2, count / 2));
}

static double law_sum(const struct law *law, const struct sum *sum, uint32_t cuts) {
    return tree_sum(law, sum, cuts, 0, cuts);
}

/* ---- machines: the CPU's, as devices refuse the key ---- */

/* The next machine that is no stand-in for a device; on the widest set bf16 numbers go by pairs
 * where the computer has the instruction. */
static int cpu_machine(struct bench *b, const struct op_limits *limits, size_t *state,
                       const struct op_table **ops, struct bf16_tiles *tiles) {
    while (bench_machine(b, limits, state, ops)) {
        if (strstr((*ops)->name, "_base") == NULL && strstr((*ops)->name, "_v") == NULL) continue;
        const int pairs = strstr((*ops)->name, "f32_f32_v4") != NULL && backend_bf16(ISA_V4_BF16);
        b->call.bf16 = pairs ? tiles : NULL;
        return 1;
    }
    return 0;
}

static struct op_limits limits_of(uint32_t rows, uint32_t width, uint32_t cuts) {
    return (struct op_limits){
        .rows = rows, .width = width, .length = 8, .H = 1, .G = 1, .D = 8, .cuts = cuts};
}

/* ---- linear layers ---- */

struct shape {
    uint32_t T, N, K;
};

/* Parts of one term and of unequal lengths, parts longer than a block of terms (512, or 256 of
 * f64), edges of panels and strips, and enough work to wake a second thread. */
static const struct shape shapes[] = {
    {3, 8, 8},    {5, 17, 9},    {14, 33, 64},   {29, 48, 77},  {9, 23, 2051},
    {7, 400, 10}, {20, 259, 16}, {61, 130, 140}, {2, 2051, 33}, {3, 900, 200},
};

struct problem {
    struct shape shape;
    struct row_list rows;
    size_t physical;
    double *x, *w, *dy, *y, *dx, *start, *acc;
};

static void expect_linear(struct bench *b, struct problem *p, uint32_t cuts) {
    const size_t N = p->shape.N, K = p->shape.K;
    for (uint32_t i = 0; i < p->shape.T; i++) {
        const size_t r = p->rows.index[i];
        for (size_t n = 0; n < N; n++) {
            const struct sum sum = {p->x + r * K, p->w + n * K, 1, 1, K, 0};
            p->y[r * N + n] = law_out(&b->law, law_sum(&b->law, &sum, K < cuts ? 1 : cuts));
        }
        for (size_t k = 0; k < K; k++) {
            const struct sum sum = {p->dy + r * N, p->w + k, 1, K, N, 0};
            const double whole = law_out(&b->law, law_sum(&b->law, &sum, cuts));
            p->dx[r * K + k] = law_out(&b->law, law_add(&b->law, p->start[r * K + k], whole));
        }
    }
    for (size_t i = 0; i < N * K; i++) {
        p->acc[i] = 0.0;
        for (uint32_t t = 0; t < p->shape.T; t++) {
            const size_t r = p->rows.index[t];
            p->acc[i] = law_fma(&b->law, p->dy[r * N + i / K], p->x[r * K + i % K], p->acc[i]);
        }
    }
}

static struct problem pose(struct bench *b, struct shape shape) {
    struct problem p = {.shape = shape};
    p.rows = bench_rows(b, shape.T);
    p.physical = bench_physical(shape.T);
    p.x = bench_draw(b, p.physical * shape.K, b->law.compute, 1.0);
    p.dy = bench_draw(b, p.physical * shape.N, b->law.compute, 1.0);
    p.w = bench_draw(b, (size_t)shape.N * shape.K, b->law.compute, 1.0);
    p.start = bench_draw(b, p.physical * shape.K, b->law.compute, 1.0);
    p.y = bench_numbers(b, p.physical * shape.N);
    p.dx = bench_numbers(b, p.physical * shape.K);
    p.acc = bench_numbers(b, (size_t)shape.N * shape.K);
    memcpy(p.dx, p.start, p.physical * shape.K * sizeof *p.dx);
    bench_poison(p.x, shape.K, &p.rows);
    bench_poison(p.dy, shape.N, &p.rows);
    return p;
}

static void check_linear(struct bench *b, struct shape shape, uint32_t cuts) {
    struct problem p = pose(b, shape);
    struct bf16_tiles tiles = {0, 0};
    const struct op_table *ops = NULL;
    const uint32_t width = shape.N > shape.K ? shape.N : shape.K;
    const struct op_limits limits = limits_of(shape.T, width, cuts);
    const size_t N = shape.N, K = shape.K;
    void *const x = bench_store(b, p.x, p.physical * K, b->carrier);
    void *const w = bench_store(b, p.w, N * K, b->carrier);
    void *const dy = bench_store(b, p.dy, p.physical * N, b->carrier);
    double *const zeros = bench_numbers(b, N * K > p.physical * N ? N * K : p.physical * N);
    expect_linear(b, &p, cuts);
    for (size_t state = 0; cpu_machine(b, &limits, &state, &ops, &tiles);) {
        void *const y = bench_output(b, zeros, p.physical * N, b->carrier);
        void *const dx = bench_output(b, p.start, p.physical * K, b->carrier);
        void *const acc = bench_output(b, zeros, N * K, b->accumulator);
        b->call.cuts = K < cuts ? 1 : cuts;
        ops->linear_forward(&b->call,
                            &(struct linear_forward_args){p.rows, shape.N, shape.K, x, w, y, NULL});
        b->call.cuts = cuts;
        ops->linear_input(&b->call,
                          &(struct linear_input_args){p.rows, shape.N, shape.K, dy, w, dx, 1});
        ops->linear_weight(&b->call,
                           &(struct linear_weight_args){p.rows, shape.N, shape.K, dy, x, acc, 0});
        bench_check(b, ops, "y", y, p.y, p.physical * N, b->carrier);
        bench_check(b, ops, "dx", dx, p.dx, p.physical * K, b->carrier);
        bench_check(b, ops, "acc", acc, p.acc, N * K, b->accumulator);
    }
    if (b->law.compute == DTYPE_BF16 && !b->law.wide && backend_bf16(ISA_V4_BF16))
        assert_true(tiles.tiles > tiles.by_fma);
}

static void linears(struct bench *b) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        check_linear(b, shapes[i], all_cuts[i % COUNT_OF(all_cuts)]);
    check_linear(b, shapes[3], 2);
    check_linear(b, shapes[3], 8);
    check_linear(b, shapes[7], 4);
}

static void verify_linear(void **state) {
    (void)state;
    bench_pairs(linears);
}

/* ---- sums along a row ---- */

static void check_norm(struct bench *b, uint32_t C, uint32_t cuts) {
    const struct op_limits limits = limits_of(2, C, cuts);
    const struct op_table *ops = NULL;
    struct bf16_tiles tiles = {0, 0};
    double *const x = bench_draw(b, C, b->law.compute, 1.0);
    double *const w = bench_draw(b, C, b->law.compute, 1.0);
    double *const dy = bench_draw(b, C, b->law.compute, 1.0);
    double *const g = bench_numbers(b, C), *const hat = bench_numbers(b, C);
    double *const due = bench_numbers(b, C), *const zeros = bench_numbers(b, C);
    const struct law *const law = &b->law;
    const double eps = law_acc(law, 1e-6), count = law_acc(law, (double)C);
    const struct sum squares = {x, x, 1, 1, C, 1}, slope = {g, hat, 1, 1, C, 1};
    const double mean_square = law_div(law, law_sum(law, &squares, cuts), count);
    double rstd = law_div(law, 1.0, law_sqrt(law, law_add(law, mean_square, eps)));
    const enum dtype wide = b->carrier == sizeof(float) ? DTYPE_F32 : DTYPE_F64;
    for (size_t i = 0; i < C; i++) {
        g[i] = law_round(law_acc(law, dy[i] * w[i]), wide);
        hat[i] = law_round(law_mul(law, x[i], rstd), wide);
    }
    const double mean = law_div(law, law_sum(law, &slope, cuts), count);
    for (size_t i = 0; i < C; i++) {
        const double less = law_sub(law, g[i], law_mul(law, hat[i], mean));
        due[i] = law_out(law, law_mul(law, rstd, less));
    }
    for (size_t state = 0; cpu_machine(b, &limits, &state, &ops, &tiles);) {
        void *const xs = bench_store(b, x, C, b->carrier), *ws = bench_store(b, w, C, b->carrier);
        void *const dys = bench_store(b, dy, C, b->carrier);
        void *const y = bench_output(b, zeros, C, b->carrier);
        void *const dx = bench_output(b, zeros, C, b->carrier);
        void *const r = bench_output(b, zeros, 1, b->accumulator);
        b->call.cuts = cuts;
        ops->norm_forward(&b->call, &(struct norm_forward_args){.rows = {NULL, 1},
                                                                .C = C,
                                                                .eps = 1e-6,
                                                                .rounding = NORM_ROUND_AFTER_WEIGHT,
                                                                .x = xs,
                                                                .w = ws,
                                                                .y = y,
                                                                .rstd = r});
        bench_check(b, ops, "rstd", r, &rstd, 1, b->accumulator);
        ops->norm_input(&b->call, &(struct norm_input_args){.rows = {NULL, 1},
                                                            .C = C,
                                                            .rounding = NORM_ROUND_AFTER_WEIGHT,
                                                            .dy = dys,
                                                            .x = xs,
                                                            .w = ws,
                                                            .rstd = r,
                                                            .dx = dx,
                                                            .formula = NORM_BACKWARD_FUSED,
                                                            .eps = 1e-6});
        bench_check(b, ops, "dx", dx, due, C, b->carrier);
    }
}

static void check_logprob(struct bench *b, uint32_t V, uint32_t cuts) {
    const struct op_limits limits = limits_of(3, V, cuts);
    const struct op_table *ops = NULL;
    struct bf16_tiles tiles = {0, 0};
    const struct law *const law = &b->law;
    double *const z = bench_draw(b, 3 * (size_t)V, law->compute, 5.0);
    double *const e = bench_numbers(b, V), *const zeros = bench_numbers(b, 3);
    double *const logp = bench_numbers(b, 3);
    const uint32_t target[3] = {0, V / 2, V - 1};
    double sums[3];
    for (size_t row = 0; row < 3; row++) {
        double maximum = z[row * V];
        for (size_t v = 1; v < V; v++)
            maximum = fmax(maximum, z[row * V + v]);
        for (size_t v = 0; v < V; v++)
            e[v] = law_exp(law, law_sub(law, z[row * V + v], maximum));
        const struct sum sum = {e, NULL, 1, 0, V, 1};
        sums[row] = law_sum(law, &sum, cuts);
    }
    for (size_t state = 0; cpu_machine(b, &limits, &state, &ops, &tiles);) {
        void *const zs = bench_store(b, z, 3 * (size_t)V, b->carrier);
        void *const maximum = bench_output(b, zeros, 3, b->accumulator);
        void *const sum = bench_output(b, zeros, 3, b->accumulator);
        b->call.cuts = cuts;
        ops->logprob_forward(&b->call, &(struct logprob_forward_args){3, V, DTYPE_F32, target, zs,
                                                                      maximum, sum, logp});
        bench_check(b, ops, "sum", sum, sums, 3, b->accumulator);
    }
}

static void rows_of_sums(struct bench *b) {
    for (size_t i = 0; i < COUNT_OF(all_cuts); i++) {
        check_norm(b, 64, all_cuts[i]);
        check_norm(b, 1000 * (uint32_t)(i + 1) + 24, all_cuts[i]);
        check_logprob(b, 9, all_cuts[i]);
        check_logprob(b, 259, all_cuts[i]);
        check_logprob(b, 33000, all_cuts[i]);
    }
}

static void verify_rows(void **state) {
    (void)state;
    bench_pairs(rows_of_sums);
}

/* ---- torch ---- */

#define MOST 512 /* numbers in a tensor */

/* The tensor of this name, as f32 numbers; returns how many. */
static size_t tensor(const char *line, const char *name, float *out) {
    char sought[16];
    size_t count = 0;
    snprintf(sought, sizeof sought, " %s=", name);
    const char *at = strstr(line, sought);
    if (at == NULL) fail_msg("no tensor %s in %.30s", name, line);
    for (at += strlen(sought); *at != ' ' && *at != '\n' && *at != '\0'; at += 8) {
        char digits[9] = {0};
        memcpy(digits, at, 8);
        const uint32_t bits = (uint32_t)strtoul(digits, NULL, 16);
        assert_true(count < MOST);
        memcpy(&out[count++], &bits, sizeof bits);
    }
    return count;
}

struct recorded {
    float h[MOST], w[MOST], y[MOST], dh[MOST], v[MOST], dx[MOST];
    uint32_t ranks, tokens;
    enum dtype dtype;
};

static void recorded_read(const char *line, struct recorded *out) {
    out->ranks = (uint32_t)strtoul(line, NULL, 10);
    out->dtype = strstr(line, " bfloat16 ") != NULL ? DTYPE_BF16 : DTYPE_F32;
    out->tokens = (uint32_t)tensor(line, "h", out->h) / out->ranks;
    assert_int_equal(tensor(line, "w", out->w), 4 * (size_t)out->ranks);
    assert_int_equal(tensor(line, "v", out->v), 3 * (size_t)out->ranks);
    assert_int_equal(tensor(line, "dh", out->dh), out->tokens * (size_t)out->ranks);
    assert_int_equal(tensor(line, "y", out->y), out->tokens * (size_t)4);
    assert_int_equal(tensor(line, "dx", out->dx), out->tokens * (size_t)3);
}

/* How many of the numbers of y and dx differ from torch's. */
static uint32_t differing(const struct recorded *of, uint32_t cuts) {
    const struct op_limits limits = limits_of(of->tokens, 8, cuts);
    const struct row_list rows = {NULL, of->tokens};
    const struct op_table *ops = NULL;
    float y[MOST], dx[MOST];
    uint32_t count = 0;
    size_t bytes = 0;
    struct op_limits own = limits;
    own.threads = 1;
    assert_int_equal(backend_ops(ISA_AUTO, of->dtype, DTYPE_F32, &ops), STATUS_OK);
    assert_int_equal(backend_scratch(&own, &bytes), STATUS_OK);
    void *const scratch = malloc(bytes);
    assert_non_null(scratch);
    const struct op_call call = {
        .compute = of->dtype, .threads = 1, .cuts = cuts, .scratch = scratch};
    ops->linear_forward(&call,
                        &(struct linear_forward_args){rows, 4, of->ranks, of->h, of->w, y, NULL});
    ops->linear_input(&call, &(struct linear_input_args){rows, of->ranks, 3, of->dh, of->v, dx, 0});
    for (size_t i = 0; i < of->tokens * (size_t)4; i++)
        count += memcmp(&y[i], &of->y[i], sizeof y[i]) != 0;
    for (size_t i = 0; i < of->tokens * (size_t)3; i++)
        count += memcmp(&dx[i], &of->dx[i], sizeof dx[i]) != 0;
    free(scratch);
    return count;
}

/* How many of them differ from two products that are each rounded, then added and rounded. */
static uint32_t differing_rounded(const struct recorded *of) {
    uint32_t count = 0;
    for (size_t i = 0; i < of->tokens * (size_t)7; i++) {
        const size_t token = i / 7, j = i % 7;
        const float *const a = (j < 4 ? of->h : of->dh) + 2 * token;
        const float *const b = j < 4 ? of->w + 2 * j : of->v + (j - 4);
        const size_t next = j < 4 ? 1 : 3;
        const double left = law_round((double)a[0] * (double)b[0], of->dtype);
        const double right = law_round((double)a[1] * (double)b[next], of->dtype);
        const float due = j < 4 ? of->y[4 * token + j] : of->dx[3 * token + j - 4];
        count += law_round(left + right, of->dtype) != (double)due;
    }
    return count;
}

/* Two ranks of torch, each with one product of every sum: its all-reduce adds the two, as the tree
 * does, where one chain rounds the second product and the sum at once. In bf16 each rank rounds
 * its product before they are added, which the law does not. Four ranks are added in Gloo's order,
 * not over a tree. */
static void corroborate_torch(void **state) {
    /* numbers that differ, of 700 */
    static const struct expected {
        uint32_t cut, whole, rounded;
    } due[] = {{0, 149, 0}, {241, 241, 0}, {237, 305, 0}};
    static char line[1 << 16];
    static struct recorded of;
    size_t at = 0;
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/ranks/tensor.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (*line == '#') continue;
        assert_true(at < COUNT_OF(due));
        recorded_read(line, &of);
        const uint32_t cut = differing(&of, of.ranks), whole = differing(&of, 1);
        print_message("%u ranks, %s: %u of 700 differ with a part for each rank, %u with one\n",
                      of.ranks, dtype_name(of.dtype), cut, whole);
        assert_int_equal(cut, due[at].cut);
        assert_int_equal(whole, due[at].whole);
        if (of.ranks == 2) assert_int_equal(differing_rounded(&of), due[at].rounded);
        at++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(at, COUNT_OF(due));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_linear),
        cmocka_unit_test(verify_rows),
        cmocka_unit_test(corroborate_torch),
    };
    helper_unset_variables();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
