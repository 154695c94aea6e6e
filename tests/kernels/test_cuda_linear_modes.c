/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The linear kernels of kernels/cuda/ in modes shaped, shuffled and atomic, run by the shim, on
 * shapes that end inside tiles and chunks. Shaped and shuffled must have the CPU's bits. Atomic
 * must equal mode invariant where sums are exact, and differ from seed to seed where they are not.
 * Mode invariant is tested here for every form of tile (for small shapes see
 * test_cuda_ops). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cuda/linear_form.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

#define OUTPUTS 3 /* y, dx, acc */

struct shape {
    uint32_t rows, N, K;
    int add;
};

/* The parts that all runs of one problem share. */
struct problem {
    struct machines *on;
    struct bench *bench;
    size_t pair;
    const struct op_table *cpu, *gpu;
    struct op_call call; /* of both machines, except for scratch */
    struct shape shape;
    struct row_list list;
    size_t physical, bytes[OUTPUTS];
    const void *x, *w, *dy;
    const void *before[OUTPUTS];
    int whole; /* small integers: every sum is exact in any order */
    uint64_t seed;
};

static const struct op_limits limits = {160, 160, 400, 16, 1, 1, 8, 1, 0, 0, 0, 0, 0};

/* Runs `test` for all number pairs; where kernels are slow, for one of each table. */
static void on_pairs(void (*test)(struct machines *m)) {
    machines_pairs(&limits, RUN_DISTANCES_ALL, RUN_DISTANCES_TABLES, test);
}

static struct problem problem_on(struct machines *m) {
    return (struct problem){.on = m,
                            .bench = &m->bench,
                            .pair = m->pair,
                            .cpu = m->ops[0],
                            .gpu = m->ops[1],
                            .call = m->call[0]};
}

static const void *numbers(struct problem *p, size_t count, enum dtype dtype, size_t size) {
    double *const drawn =
        p->whole ? machine_whole(p->bench, count, 3) : bench_draw(p->bench, count, dtype, 1.0);
    return bench_store(p->bench, drawn, count, size);
}

static void pose(struct problem *p, struct shape shape) {
    const enum dtype compute = p->bench->law.compute;
    const size_t carrier = p->bench->carrier, wide = p->bench->accumulator;
    p->shape = shape;
    p->physical = bench_physical(shape.rows);
    p->list = bench_rows(p->bench, shape.rows);
    const size_t in = p->physical * shape.K, out = p->physical * shape.N;
    const size_t weights = (size_t)shape.N * shape.K;
    p->x = numbers(p, in, compute, carrier);
    p->w = numbers(p, weights, compute, carrier);
    p->dy = numbers(p, out, compute, carrier);
    p->before[0] = p->dy;
    p->before[1] = p->x;
    p->before[2] = numbers(p, weights, p->bench->accumulate, wide);
    p->bytes[0] = out * carrier;
    p->bytes[1] = in * carrier;
    p->bytes[2] = weights * wide;
    p->call.rows = (uint32_t)p->physical;
}

/* Runs all three ops, each into its own copy of `before`. */
static void run(struct problem *p, const struct op_table *ops, void *out[OUTPUTS]) {
    const struct shape s = p->shape;
    struct op_call call = p->call;
    for (size_t i = 0; i < OUTPUTS; i++) {
        out[i] = machine_take(p->bench, p->bytes[i], 1);
        memcpy(out[i], p->before[i], p->bytes[i]);
    }
    const struct linear_forward_args forward = {p->list, s.N, s.K, p->x, p->w, out[0], NULL};
    const struct linear_input_args input = {p->list, s.N, s.K, p->dy, p->w, out[1], s.add};
    const struct linear_weight_args weight = {p->list, s.N, s.K, p->dy, p->x, out[2], 0};
    call.scratch = p->on->call[ops == p->gpu].scratch;
    shim_seed(SEED + 77u * p->seed++);
    ops->linear_forward(&call, &forward);
    ops->linear_input(&call, &input);
    ops->linear_weight(&call, &weight);
    machine_wait(p->bench, ops->name);
}

static const char *const names[OUTPUTS] = {"linear_forward", "linear_input", "linear_weight"};

static void assert_same(const struct problem *p, void *const got[OUTPUTS],
                        void *const want[OUTPUTS], const char *what) {
    for (size_t o = 0; o < OUTPUTS; o++)
        for (size_t i = 0; i < p->bytes[o]; i++)
            if (((unsigned char *)got[o])[i] != ((unsigned char *)want[o])[i])
                fail_msg("%s, %s of %s, %u x %u x %u, %s: byte %zu of %zu differs", names[o],
                         p->gpu->name, dtype_name(p->call.compute), p->shape.rows, p->shape.N,
                         p->shape.K, what, i, p->bytes[o]);
}

static int differ(const struct problem *p, void *const a[OUTPUTS], void *const b[OUTPUTS],
                  size_t output) {
    return memcmp(a[output], b[output], p->bytes[output]) != 0;
}

/* Both machines in the call's mode: every output must have the CPU's bits. */
static void corroborate_one(struct problem *p, struct shape shape, const char *what) {
    void *cpu[OUTPUTS], *gpu[OUTPUTS];
    pose(p, shape);
    run(p, p->cpu, cpu);
    run(p, p->gpu, gpu);
    assert_same(p, gpu, cpu, what);
}

/* The mode must change bits of each op; otherwise the comparison above would only have tested mode
 * invariant again. */
static void assert_moves(struct problem *p, struct shape shape) {
    void *own[OUTPUTS], *plain[OUTPUTS];
    const struct op_call mode = p->call;
    pose(p, shape);
    run(p, p->gpu, own);
    p->call.splits = NULL;
    p->call.order = NULL;
    run(p, p->gpu, plain);
    for (size_t o = 0; o < OUTPUTS; o++)
        if (!differ(p, own, plain, o)) fail_msg("%s has the bits of mode invariant", names[o]);
    p->call = mode;
}

static const struct op_rounding roundings[] = {
    {DTYPE_TF32, DTYPE_F32}, {DTYPE_BF16, DTYPE_BF16}, {DTYPE_F16, DTYPE_F32}};

static const struct shape shapes[] = {{70, 65, 35, 1}, {5, 64, 17, 1}, {33, 130, 50, 0},
                                      {1, 1, 1, 0},    {16, 3, 70, 0}, {9, 33, 1, 1}};

/* Runs every shape in one of the `ways` settings of the mode. The settings rotate with the pair, so
 * that over all pairs each shape meets several. */
static void on_shapes(struct problem *p, void (*mode)(struct problem *p, size_t way), size_t ways,
                      const char *what) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const size_t at = i + p->pair;
        if (SLOW && p->pair > 0 && i > 1) break;
        mode(p, at % ways);
        p->call.rounding = at % 4 == 0 ? NULL : &roundings[at % 4 - 1];
        corroborate_one(p, shapes[i], what);
    }
    p->call.rounding = NULL;
}

/* ---- invariant ---- */

/* Whole and cut tiles of every form, with lines a multiple of 16 bytes apart and not: by turns, as
 * the kernels' host side chooses forms in tests on the host (by rows + N + K). A device chooses by
 * its size, so there these shapes take small tiles; verify_large has the others. */
static const struct shape tiled[] = {
    {150, 20, 140, 1}, {130, 257, 17, 0}, {35, 129, 140, 1},  {48, 136, 200, 0}, {37, 132, 148, 1},
    {51, 100, 52, 0},  {130, 68, 132, 1}, {67, 132, 260, 0},  {19, 200, 64, 1},  {6, 64, 32, 0},
    {16, 4, 8, 1},     {150, 148, 35, 0}, {160, 160, 396, 1},
};
static void forms(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    for (size_t i = 0; i < COUNT_OF(tiled); i++) {
        if (p->pair > 0 && i != p->pair % COUNT_OF(tiled)) continue;
        p->call.rounding = i % 3 == 0 ? NULL : &roundings[i % 3];
        corroborate_one(p, tiled[i], "tiles");
    }
    p->call.rounding = NULL;
}

static void corroborate_forms(void **state) {
    (void)state;
    on_pairs(forms);
}

static const void *tiny(struct problem *p, size_t count, double sign) {
    double *const all = bench_numbers(p->bench, count);
    for (size_t i = 0; i < count; i++)
        all[i] = sign * 0x1p-100;
    return bench_store(p->bench, all, count, p->bench->carrier);
}

/* ---- large products ---- */

static void *transposed(struct problem *p, const double *from, size_t rows, size_t columns) {
    double *const to = bench_numbers(p->bench, rows * columns);
    for (size_t i = 0; i < rows * columns; i++)
        to[i % columns * rows + i / columns] = from[i];
    return bench_store(p->bench, to, rows * columns, p->bench->carrier);
}

/* y = a . b^T, `rows` rows at a time. */
static void *multiply(struct problem *p, struct shape shape, const void *a, const void *b,
                      uint32_t rows) {
    const size_t size = p->bench->carrier;
    void *const y = machine_take(p->bench, (size_t)shape.rows * shape.N, size);
    for (uint32_t first = 0; first < shape.rows; first += rows) {
        const uint32_t some = shape.rows - first < rows ? shape.rows - first : rows;
        const struct linear_forward_args args = {
            {NULL, some},
            shape.N,
            shape.K,
            (const char *)a + (size_t)first * shape.K * size,
            b,
            (char *)y + (size_t)first * shape.N * size,
            NULL,
        };
        p->gpu->linear_forward(&p->call, &args);
    }
    machine_wait(p->bench, p->gpu->name);
    return y;
}

/* Large products, of which the CPU would take long: the same chains, made of a few rows at a time
 * by small tiles, and by the tiles that the whole takes, as forward, as the input's gradient on the
 * transposed weight, and as the weight's gradient on both transposed. All must have the same bits.
 */
static void large(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    static const struct shape sizes[2][3] = {
        {{150, 140, 52, 0}, {97, 61, 37, 0}, {64, 200, 48, 0}},
        {{3000, 2900, 150, 0}, {768, 768, 200, 0}, {3001, 2903, 37, 0}},
    };
    const int device = strstr(p->gpu->name, "_cuda") != NULL;
    if (p->bench->law.compute != DTYPE_F32 || p->bench->law.wide) return;
    p->call.scratch = m->call[1].scratch;
    for (size_t i = 0; i < COUNT_OF(sizes[0]); i++) {
        const struct shape shape = sizes[device][i];
        const size_t M = shape.rows, N = shape.N, K = shape.K, size = p->bench->carrier;
        double *const a = bench_draw(p->bench, M * K, DTYPE_F32, 1.0);
        double *const b = bench_draw(p->bench, N * K, DTYPE_F32, 1.0);
        const void *const left = bench_store(p->bench, a, M * K, size);
        const void *const right = bench_store(p->bench, b, N * K, size);
        const void *const lines = transposed(p, b, N, K);
        void *const dx = machine_take(p->bench, M * N, size);
        void *const acc = machine_take(p->bench, M * N, size);
        memset(acc, 0, M * N * size);
        const struct linear_input_args input = {
            {NULL, shape.rows}, shape.K, shape.N, left, lines, dx, 0};
        const struct linear_weight_args weight = {
            {NULL, shape.K}, shape.rows, shape.N, transposed(p, a, M, K), lines, acc, 0};
        const void *const few = multiply(p, shape, left, right, 20);
        const void *const whole = multiply(p, shape, left, right, shape.rows);
        p->gpu->linear_input(&p->call, &input);
        p->gpu->linear_weight(&p->call, &weight);
        machine_wait(p->bench, p->gpu->name);
        assert_memory_equal(whole, few, M * N * size);
        assert_memory_equal(dx, few, M * N * size);
        assert_memory_equal(acc, few, M * N * size);
    }
}

static void verify_large(void **state) {
    (void)state;
    on_pairs(large);
}

/* On 132 multiprocessors (an H100's) large products must take the largest tiles, weight gradients
 * of 768 x 768 the ones of which there are 128, and small products small ones; whatever the shape,
 * no form may give the multiprocessor with most tiles less to do. */
static void validate_choice(void **state) {
    (void)state;
    static const struct choice {
        size_t M, N;
        int weight, apart;
        enum linear_form_name form;
    } known[] = {
        {8192, 768, 0, 0, FORM_TALL},   {8192, 50304, 0, 0, FORM_TALL},
        {50304, 768, 1, 0, FORM_TALL},  {768, 768, 1, 0, FORM_CUT},
        {256, 256, 0, 0, FORM_TINY},    {256, 256, 1, 0, FORM_TINY},
        {8192, 50257, 0, 1, FORM_TALL}, {64, 64, 0, 1, FORM_SMALL},
        {1, 1, 0, 0, FORM_TINY},        {2048, 768, 1, 0, FORM_SQUARE},
        {1024, 256, 0, 0, FORM_SMALL},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct choice *const c = &known[i];
        const enum linear_form_name form = linear_form_for(c->M, c->N, c->weight, c->apart, 132);
        if (form != c->form)
            fail_msg("%zu x %zu: form %d in place of %d", c->M, c->N, (int)form, (int)c->form);
    }
    for (size_t M = 1; M < 20000; M = M * 3 + 1)
        for (size_t N = 1; N < 60000; N = N * 2 + 5) {
            const enum linear_form_name form = linear_form_for(M, N, 0, 0, 132);
            assert_false(linear_forms[form].weight);
            for (int other = 0; other < LINEAR_FORMS; other++)
                assert_true(linear_forms[other].weight ||
                            linear_form_cost(form, M, N, 132) <=
                                linear_form_cost((enum linear_form_name)other, M, N, 132));
            assert_true(linear_forms[linear_form_for(M, N, 1, 1, 132)].apart);
        }
}

/* Sums that are -0, which a slab's missing terms must leave alone: products so small that they
 * round to -0 when they are added to +0, and accumulators that hold -0. Of the three products of x,
 * w and dy two can be negative at a time. */
static void negative_zeros(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    static const struct shape cut[] = {{35, 36, 20, 0}, {5, 11, 13, 0}, {70, 132, 68, 0}};
    static const double signs[][3] = {{-1, 1, -1}, {1, 1, -1}}; /* of x, w, dy */
    for (size_t i = 0; i < COUNT_OF(cut) * COUNT_OF(signs); i++) {
        const double *const sign = signs[i % COUNT_OF(signs)];
        const struct shape shape = cut[i / COUNT_OF(signs)];
        void *cpu[OUTPUTS], *gpu[OUTPUTS];
        pose(p, shape);
        const size_t in = p->physical * shape.K, out = p->physical * shape.N;
        const size_t weights = (size_t)shape.N * shape.K;
        p->x = tiny(p, in, sign[0]);
        p->w = tiny(p, weights, sign[1]);
        p->dy = tiny(p, out, sign[2]);
        double *const zeros = bench_numbers(p->bench, weights);
        for (size_t k = 0; k < weights; k++)
            zeros[k] = -0.0;
        p->before[2] = bench_store(p->bench, zeros, weights, p->bench->accumulator);
        run(p, p->cpu, cpu);
        run(p, p->gpu, gpu);
        assert_same(p, gpu, cpu, "negative zeros");
    }
}

static void corroborate_negative_zeros(void **state) {
    (void)state;
    on_pairs(negative_zeros);
}

/* ---- shaped ---- */

static struct splits splits;

/* In the table, M counts physical rows in forward products and input gradients, of which the
 * problem lists a part. */
static void set_splits(struct problem *p, size_t way) {
    static const char *const tables[] = {"*: 3", "forward m>=40: 7; input k>=34: 2; weight: 5",
                                         "forward: 1; weight n>=20: 1024; *: 2"};
    assert_int_equal(splits_parse(tables[way], &splits), STATUS_OK);
    p->call.splits = &splits;
}

static void shaped(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    on_shapes(p, set_splits, 3, "shaped");
    set_splits(p, 0);
    if (p->pair == 0) assert_moves(p, (struct shape){40, 41, 42, 0});
    p->call.splits = NULL;
}

static void corroborate_shaped(void **state) {
    (void)state;
    on_pairs(shaped);
}

/* ---- shuffled ---- */

static void set_order(struct problem *p, size_t way) {
    static const struct order orders[] = {
        {SEED, SUM_FORWARD | SUM_WEIGHT, 16, 3, 41},
        {SEED + 1, SUM_FORWARD | SUM_WEIGHT, 3, 4, 0},
        {SEED + 2, SUM_WEIGHT, 5, 1, 0},
        {SEED + 3, SUM_FORWARD, 21, 1, 0},
    };
    p->call.order = &orders[way];
    p->call.site = SITE_UP_PROJ;
}

static void shuffled(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    on_shapes(p, set_order, 4, "shuffled");
    set_order(p, 1);
    if (p->pair == 0) assert_moves(p, (struct shape){40, 41, 42, 0});
    p->call.order = NULL;
}

static void corroborate_shuffled(void **state) {
    (void)state;
    on_pairs(shuffled);
}

/* ---- atomic ---- */

/* Every chunk must be added exactly once: the sums of whole numbers must be those of mode
 * invariant. */
static void raced_exactly(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    static const struct racing races[] = {{SUM_FORWARD | SUM_WEIGHT, 16},
                                          {SUM_FORWARD | SUM_WEIGHT, 7},
                                          {SUM_WEIGHT, 9},
                                          {SUM_FORWARD, 100}};
    static const struct racing single = {SUM_FORWARD | SUM_WEIGHT, 1};
    p->whole = 1;
    for (size_t i = 0; i < COUNT_OF(shapes) + 2; i++) {
        void *cpu[OUTPUTS], *gpu[OUTPUTS];
        if (p->pair > 0 && i >= (SLOW ? 2 : COUNT_OF(shapes))) break;
        pose(p, i < COUNT_OF(shapes)    ? shapes[i]
                : i == COUNT_OF(shapes) ? (struct shape){66, 2, 70, 0}    /* chunks > pieces */
                                        : (struct shape){3, 300, 40, 1}); /* two blocks */
        run(p, p->cpu, cpu);
        p->call.racing = i == COUNT_OF(shapes) ? &single : &races[(i + p->pair) % COUNT_OF(races)];
        run(p, p->gpu, gpu);
        p->call.racing = NULL;
        assert_same(p, gpu, cpu, "atomic");
    }
    p->whole = 0;
}

static void corroborate_atomic(void **state) {
    (void)state;
    on_pairs(raced_exactly);
}

/* A kind of sum that the mode does not name must keep its order. */
static void raced_by_kinds(struct problem *p) {
    const struct racing forward = {SUM_FORWARD, 4}, weight = {SUM_WEIGHT, 4};
    void *cpu[OUTPUTS], *gpu[OUTPUTS];
    pose(p, (struct shape){50, 20, 30, 0});
    run(p, p->cpu, cpu);
    p->call.racing = &weight;
    run(p, p->gpu, gpu);
    assert_false(differ(p, gpu, cpu, 0));
    assert_false(differ(p, gpu, cpu, 1));
    assert_true(differ(p, gpu, cpu, 2));
    p->call.racing = &forward;
    run(p, p->gpu, gpu);
    assert_false(differ(p, gpu, cpu, 2));
    p->call.racing = NULL;
}

/* A sum has at most 50 products of magnitude 9 at most, so its partial sums stay below 50 * 9, and
 * each of at most 50 roundings errs by at most `epsilon` of that. With f64 accumulators the only
 * rounding is that of the result to f32, which 2^-22 covers. */
static void assert_near(const struct problem *p, void *const got[OUTPUTS],
                        void *const want[OUTPUTS]) {
    const double epsilon = p->bench->accumulate == DTYPE_F32 ? 0x1p-23 : 0x1p-22;
    for (size_t o = 0; o < OUTPUTS; o++) {
        const size_t size = o == 2 ? p->bench->accumulator : p->bench->carrier;
        for (size_t i = 0; i < p->bytes[o] / size; i++) {
            const double gap = machine_number(got[o], i, size) - machine_number(want[o], i, size);
            if (gap > 50 * 50 * 9 * epsilon || gap < -50 * 50 * 9 * epsilon)
                fail_msg("%s: %zu is %g away", names[o], i, gap);
        }
    }
}

/* The order of blocks, and nothing else, must change the bits of what races. */
static void raced(struct machines *m) {
    struct problem opened = problem_on(m), *const p = &opened;
    const struct racing race = {SUM_FORWARD | SUM_WEIGHT, 4};
    void *plain[OUTPUTS], *first[OUTPUTS], *next[OUTPUTS];
    int moved[OUTPUTS] = {0};
    if (p->bench->law.compute != DTYPE_F32) return;
    raced_by_kinds(p);
    pose(p, (struct shape){50, 40, 30, 0});
    run(p, p->cpu, plain);
    p->call.racing = &race;
    run(p, p->gpu, first);
    assert_near(p, first, plain);
    for (int seed = 0; seed < 3; seed++) {
        run(p, p->gpu, next);
        assert_near(p, next, plain);
        for (size_t o = 0; o < OUTPUTS; o++)
            moved[o] |= differ(p, first, next, o);
    }
    p->call.racing = NULL;
    for (size_t o = 0; o < OUTPUTS; o++)
        if (!moved[o] && p->bench->backend == NULL && (o == 2 || !p->bench->law.wide))
            fail_msg("%s of %s: four orders, one result", names[o], p->gpu->name);
}

static void verify_races_differ(void **state) {
    (void)state;
    on_pairs(raced);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_forms),  cmocka_unit_test(verify_large),
        cmocka_unit_test(validate_choice),    cmocka_unit_test(corroborate_negative_zeros),
        cmocka_unit_test(corroborate_shaped), cmocka_unit_test(corroborate_shuffled),
        cmocka_unit_test(corroborate_atomic), cmocka_unit_test(verify_races_differ),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
