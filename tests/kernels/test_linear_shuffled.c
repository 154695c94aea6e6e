/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory omp
 * The linear ops in mode `shuffled` against law 9 written a second time: chunks are chains from +0,
 * added in the order of keys that are drawn per 64 x 64 tile. That order, and nothing else, must
 * change the bits. */
#include "tests/kernels/test_linear.h"

struct problem {
    uint32_t T, N, K, chunk;
    struct row_list rows;
    void *x, *w, *dy;
};

/* Finds the order of one tile the slow way: draws each key alone and takes the least remaining one,
 * again and again. */
static void tile_order(const struct op_call *call, enum op_pass pass, size_t row, size_t column,
                       size_t chunks, uint32_t *out) {
    const struct stream_address address = {.stream = STREAM_ORDER,
                                           .side = (enum stream_side)call->side,
                                           .layer = call->layer,
                                           .op = (uint64_t)call->site * 4 + (uint64_t)pass,
                                           .sample = call->order->sample,
                                           .update = call->order->update};
    struct stream_site site;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    uint64_t keys[64];
    assert_true(chunks <= COUNT_OF(keys));
    for (size_t i = 0; i < chunks; i++) {
        const uint64_t at = stream_element_order(row / 64, column / 64, 2 * i);
        const uint64_t low = stream_word(call->order->seed, site, at);
        keys[i] = low | (uint64_t)stream_word(call->order->seed, site, at + 1) << 32;
    }
    int taken[64] = {0};
    for (size_t k = 0; k < chunks; k++) {
        size_t least = chunks;
        for (size_t i = 0; i < chunks; i++) {
            if (!taken[i] && (least == chunks || keys[i] < keys[least])) least = i;
        }
        taken[least] = 1;
        out[k] = (uint32_t)least;
    }
}

struct term_source {
    const void *a, *b;
    size_t a_at, a_step, b_at, b_step;
    const struct row_list *rows; /* not NULL: steps count listed rows */
};

static double joined(const struct variant *v, const struct term_source *s, size_t terms,
                     size_t chunk, const uint32_t *order, double held) {
    double total = held;
    for (size_t c = 0; c < (terms + chunk - 1) / chunk; c++) {
        double sum = 0.0;
        for (size_t k = order[c] * chunk; k < terms && k < (order[c] + 1) * chunk; k++) {
            const size_t step = s->rows == NULL ? k : physical(s->rows, k);
            sum = chain_step(v->accumulator, element(s->a, v->carrier, s->a_at + step * s->a_step),
                             element(s->b, v->carrier, s->b_at + step * s->b_step), sum);
        }
        total = add_step(v->accumulator, total, sum);
    }
    return total;
}

static struct problem pose(struct arena *arena, const struct variant *v, enum dtype dtype,
                           uint32_t T, uint32_t N, uint32_t K, uint32_t chunk) {
    struct problem p = {.T = T, .N = N, .K = K, .chunk = chunk};
    const size_t rows = 2 * (size_t)T + 1;
    p.rows = scattered(arena, T);
    p.x = take(arena, rows * K, v->carrier);
    p.dy = take(arena, rows * N, v->carrier);
    p.w = take(arena, (size_t)N * K, v->carrier);
    fill(p.x, v->carrier, rows * K, 0, dtype);
    fill(p.dy, v->carrier, rows * N, 1 << 20, dtype);
    fill(p.w, v->carrier, (size_t)N * K, 2 << 20, dtype);
    poison(p.x, v->carrier, rows, K, &p.rows);
    poison(p.dy, v->carrier, rows, N, &p.rows);
    return p;
}

static void expect_forward(const struct variant *v, const struct op_call *call,
                           const struct problem *p, void *y) {
    uint32_t order[64];
    for (size_t i = 0; i < p->T; i++) {
        const size_t r = physical(&p->rows, i);
        for (size_t n = 0; n < p->N; n++) {
            tile_order(call, PASS_FORWARD, i, n, (p->K + p->chunk - 1) / p->chunk, order);
            const struct term_source s = {p->x, p->w, r * p->K, 1, n * p->K, 1, NULL};
            const double sum = joined(v, &s, p->K, p->chunk, order, 0.0);
            set_element(y, v->carrier, r * p->N + n, round_to(sum, call->compute));
        }
    }
}

static void expect_input(const struct variant *v, const struct op_call *call,
                         const struct problem *p, void *dx) {
    uint32_t order[64];
    for (size_t i = 0; i < p->T; i++) {
        const size_t r = physical(&p->rows, i);
        for (size_t k = 0; k < p->K; k++) {
            tile_order(call, PASS_INPUT, i, k, (p->N + p->chunk - 1) / p->chunk, order);
            const struct term_source s = {p->dy, p->w, r * p->N, 1, k, p->K, NULL};
            const double sum = round_to(joined(v, &s, p->N, p->chunk, order, 0.0), call->compute);
            const double held = element(dx, v->carrier, r * p->K + k);
            set_element(dx, v->carrier, r * p->K + k,
                        round_to(add_step(v->accumulator, held, sum), call->compute));
        }
    }
}

static void expect_weight(const struct variant *v, const struct op_call *call,
                          const struct problem *p, void *acc) {
    uint32_t order[64];
    for (size_t n = 0; n < p->N; n++) {
        for (size_t k = 0; k < p->K; k++) {
            tile_order(call, PASS_WEIGHT, n, k, (p->T + p->chunk - 1) / p->chunk, order);
            const struct term_source s = {p->dy, p->x, n, p->N, k, p->K, &p->rows};
            const size_t at = n * p->K + k;
            const double held = element(acc, v->accumulator, at);
            set_element(acc, v->accumulator, at, held + joined(v, &s, p->T, p->chunk, order, 0.0));
        }
    }
}

struct outputs {
    void *y, *dx, *acc;
};

static struct outputs fresh(struct arena *arena, const struct variant *v, const struct problem *p,
                            enum dtype dtype) {
    const size_t rows = 2 * (size_t)p->T + 1;
    struct outputs out = {take(arena, rows * p->N, v->carrier),
                          take(arena, rows * p->K, v->carrier),
                          take(arena, (size_t)p->N * p->K, v->accumulator)};
    fill(out.dx, v->carrier, rows * p->K, 3 << 20, dtype);
    fill(out.acc, v->accumulator, (size_t)p->N * p->K, 4 << 20, accumulator_dtype(v));
    return out;
}

static void run_ops(const struct variant *v, const struct op_call *call, const struct problem *p,
                    const struct outputs *out) {
    v->forward(call, &(struct linear_forward_args){p->rows, p->N, p->K, p->x, p->w, out->y, NULL});
    v->input(call, &(struct linear_input_args){p->rows, p->N, p->K, p->dy, p->w, out->dx, 1});
    v->weight(call, &(struct linear_weight_args){p->rows, p->N, p->K, p->dy, p->x, out->acc, 0});
}

/* Tells which of the three outputs are equal, as bits: 1 y, 2 dx, 4 acc. */
static int equal_outputs(const struct variant *v, const struct problem *p, const struct outputs *a,
                         const struct outputs *b) {
    const size_t rows = 2 * (size_t)p->T + 1;
    return same(a->y, b->y, v->carrier, rows * p->N) |
           same(a->dx, b->dx, v->carrier, rows * p->K) << 1 |
           same(a->acc, b->acc, v->accumulator, (size_t)p->N * p->K) << 2;
}

/* The cases have several tiles in each direction, chunks of one term, a last chunk cut short, and a
 * chunk longer than a block. */
static const struct {
    uint32_t T, N, K, chunk;
} cases[] = {{70, 66, 50, 16}, {20, 21, 22, 1},    {5, 130, 40, 7},
             {3, 600, 5, 560}, {130, 10, 67, 40},  {40, 33, 30, 16},
             {1, 1, 3, 16},    {580, 4, 570, 540}, {17, 2, 40, 3}};

static void verify_law_9(void **state) {
    (void)state;
    static const enum dtype compute[3] = {DTYPE_F32, DTYPE_BF16, DTYPE_F64};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct order order = {0x5eed, SUM_FORWARD | SUM_WEIGHT, cases[i].chunk, 3, 9};
        for (size_t pair = 0; pair < 3; pair++) {
            const struct variant *v = &variants[pair * 3];
            struct arena arena = ARENA_EMPTY;
            const struct problem p =
                pose(&arena, v, compute[pair], cases[i].T, cases[i].N, cases[i].K, cases[i].chunk);
            struct op_call call = {.compute = compute[pair], .threads = 1, .order = &order};
            call.site = SITE_UP_PROJ;
            call.layer = 2;
            call.side = 1;
            const struct outputs expected = fresh(&arena, v, &p, compute[pair]);
            expect_forward(v, &call, &p, expected.y);
            expect_input(v, &call, &p, expected.dx);
            expect_weight(v, &call, &p, expected.acc);
            for (size_t isa = 0; isa < 6; isa++) {
                v = &variants[pair * 3 + isa % 3];
                if (!variant_runs(v)) continue;
                call.threads = 1 + (int)isa / 3;
                const uint32_t width = p.N > p.K ? p.N : p.K;
                const struct fenced fenced = fenced_scratch(&arena, p.T, width, call.threads);
                call.scratch = fenced.scratch;
                const struct outputs out = fresh(&arena, v, &p, compute[pair]);
                run_ops(v, &call, &p, &out);
                const int equal = equal_outputs(v, &p, &out, &expected);
                if (equal != 7) {
                    fail_msg(
                        "%s: case %zu, %d threads: equal outputs are %d of 7 (y 1, dx 2, acc 4)",
                        v->name, i, call.threads, equal);
                }
                check_fence(&fenced);
            }
            arena_close(&arena);
        }
    }
}

/* Runs the three ops of one variant under `order`, with the address fields of `like`. */
static struct outputs run_with(struct arena *arena, const struct problem *p,
                               const struct order *order, const struct op_call *like) {
    struct op_call call = *like;
    call.compute = DTYPE_F32;
    call.threads = 1;
    call.order = order;
    const struct fenced fenced = fenced_scratch(arena, p->T, p->N > p->K ? p->N : p->K, 1);
    call.scratch = fenced.scratch;
    const struct outputs out = fresh(arena, &variants[0], p, DTYPE_F32);
    run_ops(&variants[0], &call, p, &out);
    return out;
}

/* Every field of the address must lead to another order, and the kinds must switch sums one by
 * one. */
static void verify_order_moves_bits(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct problem p = pose(&arena, &variants[0], DTYPE_F32, 80, 70, 90, 16);
    const struct order first = {1, SUM_FORWARD | SUM_WEIGHT, 16, 1, 0};
    const struct op_call here = {.site = SITE_Q_PROJ, .layer = 1};
    const struct outputs reference = run_with(&arena, &p, &first, &here);
    const struct outputs again = run_with(&arena, &p, &first, &here);
    assert_int_equal(equal_outputs(&variants[0], &p, &reference, &again), 7);
    static const struct {
        struct order order;
        struct op_call call;
        int equal; /* to the reference */
    } moved[] = {
        {{2, 3, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 0},
        {{1, 3, 8, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 0},
        {{1, 3, 16, 2, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 0},
        {{1, 3, 16, 1, 1}, {.site = SITE_Q_PROJ, .layer = 1}, 0},
        {{1, 3, 16, 1, 0}, {.site = SITE_K_PROJ, .layer = 1}, 0},
        {{1, 3, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 2}, 0},
        {{1, 3, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1, .side = 1}, 0},
        {{1, SUM_FORWARD, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 3},
        {{1, SUM_WEIGHT, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 4},
        {{1, 0, 16, 1, 0}, {.site = SITE_Q_PROJ, .layer = 1}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(moved); i++) {
        const struct outputs other = run_with(&arena, &p, &moved[i].order, &moved[i].call);
        assert_int_equal(equal_outputs(&variants[0], &p, &reference, &other), moved[i].equal);
    }
    const struct outputs canonical = run_with(&arena, &p, NULL, &here);
    const struct order none = {1, SUM_LOSS, 16, 1, 0};
    const struct outputs unshuffled = run_with(&arena, &p, &none, &here);
    assert_int_equal(equal_outputs(&variants[0], &p, &canonical, &unshuffled), 7);
    assert_int_equal(equal_outputs(&variants[0], &p, &reference, &canonical), 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_law_9),
        cmocka_unit_test(verify_order_moves_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
