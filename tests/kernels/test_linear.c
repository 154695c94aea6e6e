/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short omp
 * The linear ops must equal one scalar chain of fma per output (law 1), for every number pair,
 * instruction set (AVX-512 without and with vdpbf16ps) and dtype, on odd shapes, on gathered rows
 * between poisoned ones, with one thread and with more, and with a chain continued in a second
 * call. */
#include "tests/kernels/test_linear.h"

struct shape {
    uint32_t T, N, K;
};

/* The shapes lie around the edges of panels and strips; some exceed one block of terms (512 or 256)
 * or of columns (384 or 192), and some are enough work to wake a second thread. Of the last
 * three, threads have blocks of columns for themselves. */
static const struct shape shapes[] = {
    {1, 1, 1},    {1, 17, 5},     {3, 2, 40},     {13, 33, 16},  {14, 32, 64},
    {15, 31, 63}, {29, 48, 77},   {100, 64, 86},  {5, 400, 20},  {20, 24, 410},
    {4, 9, 1100}, {2, 1100, 7},   {600, 5, 9},    {0, 8, 8},     {70, 100, 120},
    {33, 3, 530}, {61, 130, 140}, {2, 1200, 300}, {2, 800, 520}, {19, 43, 800},
};

struct problem {
    const struct variant *variant;
    enum dtype dtype;
    enum dtype product; /* f32: operands are not rounded */
    const struct splits *splits;
    struct bf16_tiles *bf16; /* NULL: without vdpbf16ps */
    struct shape shape;
    struct row_list rows;
    size_t physical;
    void *x, *w, *dy;
    size_t acc_count;
    void *y, *dx, *acc;                      /* expected */
    void *start_dx, *start_acc, *poisoned_y; /* what the outputs hold before */
};

static double chain(const struct problem *p, const void *a, size_t a_at, size_t a_step,
                    const void *b, size_t b_at, size_t b_step, size_t count) {
    double sum = 0.0;
    for (size_t k = 0; k < count; k++) {
        sum =
            chain_step(p->variant->accumulator, element(a, p->variant->carrier, a_at + k * a_step),
                       element(b, p->variant->carrier, b_at + k * b_step), sum);
    }
    return sum;
}

static void expect_forward(const struct problem *p) {
    const size_t N = p->shape.N;
    const size_t K = p->shape.K;
    for (uint32_t i = 0; i < p->shape.T; i++) {
        const size_t r = physical(&p->rows, i);
        for (size_t n = 0; n < N; n++) {
            const double sum = chain(p, p->x, r * K, 1, p->w, n * K, 1, K);
            set_element(p->y, p->variant->carrier, r * N + n, round_to(sum, p->dtype));
        }
    }
}

static void expect_input(const struct problem *p, int add) {
    const size_t N = p->shape.N;
    const size_t K = p->shape.K;
    for (uint32_t i = 0; i < p->shape.T; i++) {
        const size_t r = physical(&p->rows, i);
        for (size_t k = 0; k < K; k++) {
            double sum = round_to(chain(p, p->dy, r * N, 1, p->w, k, K, N), p->dtype);
            const double held = element(p->start_dx, p->variant->carrier, r * K + k);
            if (add) sum = round_to(add_step(p->variant->accumulator, held, sum), p->dtype);
            set_element(p->dx, p->variant->carrier, r * K + k, sum);
        }
    }
}

static void expect_weight(const struct problem *p) {
    const size_t bytes = p->variant->carrier;
    const size_t N = p->shape.N;
    const size_t K = p->shape.K;
    for (size_t i = 0; i < N * K; i++) {
        double sum = element(p->start_acc, p->variant->accumulator, i);
        for (uint32_t t = 0; t < p->shape.T; t++) {
            const size_t r = physical(&p->rows, t);
            sum = chain_step(p->variant->accumulator, element(p->dy, bytes, r * N + i / K),
                             element(p->x, bytes, r * K + i % K), sum);
        }
        set_element(p->acc, p->variant->accumulator, i, sum);
    }
}

static struct problem pose(struct arena *arena, const struct variant *variant, enum dtype dtype,
                           struct shape shape, int gathered) {
    struct problem p = {.variant = variant, .dtype = dtype, .shape = shape};
    const size_t bytes = variant->carrier;
    const size_t N = shape.N;
    const size_t K = shape.K;
    p.rows = (struct row_list){NULL, shape.T};
    if (gathered) p.rows = scattered(arena, shape.T);
    p.physical = gathered ? (size_t)shape.T * 2 + 1 : shape.T;
    p.acc_count = N * K;
    p.x = take(arena, p.physical * K, bytes);
    p.dy = take(arena, p.physical * N, bytes);
    p.w = take(arena, N * K, bytes);
    p.y = take(arena, p.physical * N, bytes);
    p.poisoned_y = take(arena, p.physical * N, bytes);
    p.dx = take(arena, p.physical * K, bytes);
    p.start_dx = take(arena, p.physical * K, bytes);
    p.acc = take(arena, N * K, variant->accumulator);
    p.start_acc = take(arena, N * K, variant->accumulator);
    fill(p.x, bytes, p.physical * K, 0, dtype);
    fill(p.dy, bytes, p.physical * N, 1 << 20, dtype);
    fill(p.w, bytes, N * K, 2 << 20, dtype);
    fill(p.start_dx, bytes, p.physical * K, 3 << 20, dtype);
    fill(p.start_acc, variant->accumulator, N * K, 4 << 20, accumulator_dtype(variant));
    poison(p.x, bytes, p.physical, K, &p.rows);
    poison(p.dy, bytes, p.physical, N, &p.rows);
    for (size_t i = 0; i < p.physical * N; i++)
        set_element(p.poisoned_y, bytes, i, 77.0);
    memcpy(p.y, p.poisoned_y, p.physical * N * bytes);
    memcpy(p.dx, p.start_dx, p.physical * K * bytes);
    return p;
}

static void report(const struct problem *p, const char *op, int threads) {
    fail_msg("%s_%s: T %u N %u K %u %s %s, %d threads: differs from the chain", op,
             p->variant->name, p->shape.T, p->shape.N, p->shape.K, dtype_name(p->dtype),
             p->rows.index != NULL ? "gathered" : "dense", threads);
}

/* Chains that begin at +0 are those that go on from +0, whatever the accumulators held. */
static void run_opens(struct arena *arena, const struct problem *p, const struct op_call *call,
                      int threads) {
    const size_t count = (size_t)p->shape.N * p->shape.K, width = p->variant->accumulator;
    void *acc[2];
    for (int opens = 0; opens < 2; opens++) {
        acc[opens] = take(arena, count, width);
        memset(acc[opens], opens ? 0xff : 0, count * width); /* NaN */
        p->variant->weight(call, &(struct linear_weight_args){p->rows, p->shape.N, p->shape.K,
                                                              p->dy, p->x, acc[opens], opens});
    }
    if (!same(acc[0], acc[1], width, count)) report(p, "linear_weight that opens", threads);
}

static void run_ops(struct arena *arena, const struct problem *p, int threads, int add) {
    const size_t bytes = p->variant->carrier;
    const size_t N = p->shape.N;
    const size_t K = p->shape.K;
    const uint32_t width = p->shape.N > p->shape.K ? p->shape.N : p->shape.K;
    const struct fenced fenced = fenced_scratch(arena, p->shape.T, width, threads);
    const struct op_rounding rounding = {p->product, p->dtype};
    const struct op_call call = {.compute = p->dtype,
                                 .threads = threads,
                                 .splits = p->splits,
                                 .rounding = p->product == DTYPE_F32 ? NULL : &rounding,
                                 .bf16 = p->bf16,
                                 .scratch = fenced.scratch};
    void *const y = take(arena, p->physical * N, bytes);
    memcpy(y, p->poisoned_y, p->physical * N * bytes);
    p->variant->forward(
        &call, &(struct linear_forward_args){p->rows, p->shape.N, p->shape.K, p->x, p->w, y, NULL});
    if (!same(y, p->y, bytes, p->physical * N)) report(p, "linear_forward", threads);
    void *const dx = take(arena, p->physical * K, bytes);
    memcpy(dx, p->start_dx, p->physical * K * bytes);
    p->variant->input(
        &call, &(struct linear_input_args){p->rows, p->shape.N, p->shape.K, p->dy, p->w, dx, add});
    if (!same(dx, p->dx, bytes, p->physical * K)) report(p, "linear_input", threads);
    void *const acc = take(arena, N * K, p->variant->accumulator);
    memcpy(acc, p->start_acc, N * K * p->variant->accumulator);
    p->variant->weight(
        &call, &(struct linear_weight_args){p->rows, p->shape.N, p->shape.K, p->dy, p->x, acc, 0});
    if (!same(acc, p->acc, p->variant->accumulator, N * K)) report(p, "linear_weight", threads);
    run_opens(arena, p, &call, threads);
    check_fence(&fenced);
}

/* The widest set once more, by vdpbf16ps where the machine has it: every tile but those in which a
 * planted number forbids it. */
static void run_bf16(struct arena *arena, struct problem *p, int threads, int add) {
    struct bf16_tiles tiles = {0, 0};
    if (p->variant != &variants[HELPER_ISA_SETS > 1 ? 2 : 0] || !backend_bf16(ISA_V4_BF16)) return;
    p->bf16 = &tiles;
    run_ops(arena, p, threads, add);
    p->bf16 = NULL;
    const int asked = p->dtype == DTYPE_BF16 || p->product == DTYPE_BF16;
    assert_true(tiles.by_fma == 0 && (tiles.tiles > 0) == (asked && p->shape.T > 0));
}

/* One expectation per number pair serves its three instruction sets. */
static void verify_pair(size_t pair, enum dtype dtype, struct shape shape, int gathered, int add) {
    struct arena arena = ARENA_EMPTY;
    struct problem p = pose(&arena, &variants[pair * 3], dtype, shape, gathered);
    expect_forward(&p);
    expect_input(&p, add);
    expect_weight(&p);
    for (size_t isa = 0; isa < 3; isa++) {
        p.variant = &variants[pair * 3 + isa];
        if (!variant_runs(p.variant)) continue;
        run_ops(&arena, &p, 1, add);
        run_ops(&arena, &p, 2, add);
        run_ops(&arena, &p, 3, add);
        run_bf16(&arena, &p, 1, add);
        run_bf16(&arena, &p, 2, add);
    }
    arena_close(&arena);
}

static void round_numbers(void *values, size_t bytes, size_t count, enum dtype dtype) {
    for (size_t i = 0; i < count; i++)
        set_element(values, bytes, i, round_to(element(values, bytes, i), dtype));
}

/* Law 11: the result is as if the operands had been rounded beforehand. */
static void verify_product(size_t pair, enum dtype product, struct shape shape, int gathered) {
    struct arena arena = ARENA_EMPTY;
    struct problem p = pose(&arena, &variants[pair * 3], DTYPE_F32, shape, gathered);
    const size_t counts[] = {p.physical * shape.K, p.physical * shape.N, (size_t)shape.N * shape.K};
    void **const operands[] = {&p.x, &p.dy, &p.w};
    void *stored[3];
    for (size_t i = 0; i < 3; i++) {
        stored[i] = *operands[i];
        *operands[i] = take(&arena, counts[i], p.variant->carrier);
        memcpy(*operands[i], stored[i], counts[i] * p.variant->carrier);
        round_numbers(*operands[i], p.variant->carrier, counts[i], product);
    }
    expect_forward(&p);
    expect_input(&p, 1);
    expect_weight(&p);
    for (size_t i = 0; i < 3; i++)
        *operands[i] = stored[i];
    p.product = product;
    for (size_t isa = 0; isa < 3; isa++) {
        p.variant = &variants[pair * 3 + isa];
        if (!variant_runs(p.variant)) continue;
        run_ops(&arena, &p, 1 + (int)isa % 2, 1);
        run_bf16(&arena, &p, 1, 1);
    }
    arena_close(&arena);
}

/* Mode shaped: the terms fall into `parts` runs of equal length, each a chain from +0, and the runs
 * are added in order. */
static double split_chain(const struct problem *p, const void *a, size_t a_at, const void *b,
                          size_t b_at, size_t b_step, size_t count, size_t parts) {
    const size_t bytes = p->variant->accumulator;
    const size_t run = (count + parts - 1) / parts;
    double sum = 0.0;
    for (size_t first = 0; first < count; first += run) {
        const size_t some = count - first < run ? count - first : run;
        sum = add_step(bytes, sum,
                       chain(p, a, a_at + first, 1, b, b_at + first * b_step, b_step, some));
    }
    return sum;
}

static void verify_split(size_t pair, struct shape shape, size_t parts,
                         const struct splits *splits) {
    struct arena arena = ARENA_EMPTY;
    struct problem p = pose(&arena, &variants[pair * 3], DTYPE_F32, shape, 1);
    for (uint32_t i = 0; i < shape.T; i++) {
        const size_t r = physical(&p.rows, i);
        for (size_t n = 0; n < shape.N; n++) {
            const double sum =
                split_chain(&p, p.x, r * shape.K, p.w, n * shape.K, 1, shape.K, parts);
            set_element(p.y, p.variant->carrier, r * shape.N + n, round_to(sum, DTYPE_F32));
        }
        for (size_t k = 0; k < shape.K; k++) {
            const double sum = split_chain(&p, p.dy, r * shape.N, p.w, k, shape.K, shape.N, parts);
            set_element(p.dx, p.variant->carrier, r * shape.K + k, round_to(sum, DTYPE_F32));
        }
    }
    p.splits = splits;
    for (size_t isa = 0; isa < 3; isa++) {
        p.variant = &variants[pair * 3 + isa];
        if (!variant_runs(p.variant)) continue;
        expect_weight(&p); /* the splits leave it alone */
        run_ops(&arena, &p, 1 + (int)isa, 0);
    }
    arena_close(&arena);
}

static void verify_splits(void **state) {
    (void)state;
    static const struct shape few[] = {{15, 33, 40}, {9, 30, 530}, {70, 70, 3}};
    struct splits splits;
    assert_int_equal(splits_parse("weight: 1; *: 3", &splits), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        verify_split(0, few[i], 3, &splits);
        verify_split(1, few[i], 3, &splits);
    }
}

static void verify_rounded_operands(void **state) {
    (void)state;
    static const enum dtype products[] = {DTYPE_TF32, DTYPE_BF16, DTYPE_F16};
    static const struct shape few[] = {{15, 33, 40}, {9, 30, 530}, {20, 400, 8}, {3, 5, 7}};
    for (size_t d = 0; d < COUNT_OF(products); d++) {
        for (size_t i = 0; i < COUNT_OF(few); i++) {
            verify_product(0, products[d], few[i], (i + d) % 2 == 0);
            verify_product(1, products[d], few[i], (i + d) % 2 == 1);
        }
    }
}

static void verify_one_chain(void **state) {
    (void)state;
    static const enum dtype compute[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F64};
    for (size_t pair = 0; pair < 3; pair++) {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            verify_pair(pair, compute[pair], shapes[i], (i + pair) % 2 == 0, i % 3 == 1);
            verify_pair(pair, compute[pair], shapes[i], (i + pair) % 2 == 1, i % 3 != 1);
        }
    }
}

static void verify_rounded_once(void **state) {
    (void)state;
    static const enum dtype short_formats[] = {DTYPE_BF16, DTYPE_F16, DTYPE_TF32};
    static const struct shape few[] = {{15, 33, 40}, {9, 30, 530}, {20, 400, 8}};
    for (size_t d = 0; d < COUNT_OF(short_formats); d++) {
        for (size_t i = 0; i < COUNT_OF(few); i++) {
            for (size_t pair = 0; pair < 2; pair++) {
                verify_pair(pair, short_formats[d], few[i], 1, 0);
                verify_pair(pair, short_formats[d], few[i], 0, 1);
            }
        }
    }
}

/* There are more threads here than rows, than panels, or than strips. */
static void verify_many_threads(void **state) {
    (void)state;
    static const struct shape wide[] = {
        {40, 200, 130}, {3, 700, 300}, {700, 3, 300}, {2, 1200, 300}};
    for (size_t i = 0; i < COUNT_OF(wide); i++) {
        struct arena arena = ARENA_EMPTY;
        struct problem p = pose(&arena, &variants[HELPER_ISA_SETS > 1], DTYPE_F32, wide[i], 1);
        if (!variant_runs(p.variant)) skip();
        expect_forward(&p);
        expect_input(&p, 1);
        expect_weight(&p);
        run_ops(&arena, &p, 3, 1);
        run_ops(&arena, &p, 7, 1);
        arena_close(&arena);
    }
}

/* Law 3: whether the rows come in one call or in two, the chain is the same. */
static void verify_chain_continues(void **state) {
    (void)state;
    const struct shape shape = {90, 37, 50};
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        if (!variant_runs(&variants[v])) continue;
        struct arena arena = ARENA_EMPTY;
        const enum dtype dtype = variants[v].carrier == sizeof(float) ? DTYPE_F32 : DTYPE_F64;
        struct problem p = pose(&arena, &variants[v], dtype, shape, 1);
        expect_weight(&p);
        const struct fenced fenced = fenced_scratch(&arena, shape.T, shape.K, 1);
        const struct op_call call = {.compute = dtype, .threads = 1, .scratch = fenced.scratch};
        const struct row_list first = {p.rows.index, 41};
        const struct row_list second = {p.rows.index + 41, shape.T - 41};
        p.variant->weight(&call, &(struct linear_weight_args){first, shape.N, shape.K, p.dy, p.x,
                                                              p.start_acc, 0});
        assert_false(same(p.start_acc, p.acc, variants[v].accumulator, p.acc_count));
        p.variant->weight(&call, &(struct linear_weight_args){second, shape.N, shape.K, p.dy, p.x,
                                                              p.start_acc, 0});
        assert_true(same(p.start_acc, p.acc, variants[v].accumulator, p.acc_count));
        arena_close(&arena);
    }
}

/* Infinities, subnormals and overflowing sums must come out alike in every variant. */
static void verify_special_values(void **state) {
    (void)state;
    static const double specials[] = {0x1p127, -0x1p127, 0x1p-149, -0x1p-140, 0.0, -0.0, 0x1p-100};
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        if (!variant_runs(&variants[v])) continue;
        struct arena arena = ARENA_EMPTY;
        const size_t bytes = variants[v].carrier;
        const enum dtype dtype = bytes == sizeof(float) ? DTYPE_F32 : DTYPE_F64;
        struct problem p = pose(&arena, &variants[v], dtype, (struct shape){16, 40, 21}, 0);
        for (size_t i = 0; i < p.physical * 21; i += 5)
            set_element(p.x, bytes, i, specials[i % COUNT_OF(specials)]);
        for (size_t i = 0; i < p.physical * 40; i += 7)
            set_element(p.dy, bytes, i, specials[i % COUNT_OF(specials)]);
        for (size_t i = 0; i < p.acc_count; i += 3)
            set_element(p.w, bytes, i, specials[i % COUNT_OF(specials)]);
        set_element(p.x, bytes, 30, (double)INFINITY);
        expect_forward(&p);
        expect_input(&p, 0);
        expect_weight(&p);
        run_ops(&arena, &p, 1, 0);
        arena_close(&arena);
    }
}

/* Products small enough to check by hand, and one that bf16 gets right only if it is rounded
 * once. */
static void validate_known_products(void **state) {
    (void)state;
    const float x[3] = {1.0F, 2.0F, 3.0F};
    const float w[6] = {1.0F, 10.0F, 100.0F, -1.0F, 0.5F, 0.25F};
    float y[2] = {0.0F, 0.0F};
    struct arena arena = ARENA_EMPTY;
    const struct fenced fenced = fenced_scratch(&arena, 1, 3, 1);
    struct op_call call = {.compute = DTYPE_F32, .threads = 1, .scratch = fenced.scratch};
    const struct row_list one = {NULL, 1};
    linear_forward_f32_f32_base(&call, &(struct linear_forward_args){one, 2, 3, x, w, y, NULL});
    assert_true(y[0] == 321.0F && y[1] == 0.75F);
    /* The sum is 1 + 2^-8 + 2^-30. Rounding it to f32 first would lose 2^-30 and leave a tie that
     * bf16 rounds down. */
    const float a[3] = {1.0F, 0x1p-8F, 0x1p-30F};
    const float ones[3] = {1.0F, 1.0F, 1.0F};
    call.compute = DTYPE_BF16;
    linear_forward_f32_f64_base(&call, &(struct linear_forward_args){one, 1, 3, a, ones, y, NULL});
    assert_true(y[0] == 1.0F + 0x1p-7F);
    linear_forward_f32_f32_base(&call, &(struct linear_forward_args){one, 1, 3, a, ones, y, NULL});
    assert_true(y[0] == 1.0F);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_known_products), cmocka_unit_test(verify_one_chain),
        cmocka_unit_test(verify_rounded_once),     cmocka_unit_test(verify_rounded_operands),
        cmocka_unit_test(verify_splits),           cmocka_unit_test(verify_many_threads),
        cmocka_unit_test(verify_chain_continues),  cmocka_unit_test(verify_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
