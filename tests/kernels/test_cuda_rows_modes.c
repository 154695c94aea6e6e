/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The row ops of kernels/cuda/ in modes shuffled and atomic, run by the shim or by the module that
 * TWINSTEP_BACKEND names. Shuffled must have the CPU's bits, whatever the order of threads. Atomic
 * must add each chunk exactly once: sums that are exact in any order have the bits of mode
 * invariant, a sum of one chunk has the CPU's bits, and others change with the order of threads
 * (only the shim is held to that). A kind that is switched off keeps the bits of mode invariant.
 * Deterministic and fast join chunks by a tree, which is written out here a second time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

/* BIAS is the gradient of a weight that has one column. The first three have orders of law 20. */
enum { EMBEDDING, NORM, BIAS, SQUARE, LOGPROB, OPS, TREES = SQUARE };
static const char *const names[OPS] = {"embedding_weight", "norm_weight", "linear_weight", "square",
                                       "logprob_forward"};
static const uint32_t kinds[OPS] = {SUM_EMBEDDING, SUM_NORM, SUM_WEIGHT, SUM_NORM, SUM_FORWARD};
static const enum op_site sites[OPS] = {SITE_EMBEDDING, SITE_K_NORM, SITE_Q_BIAS,
                                        SITE_GRADIENT_NORM, SITE_LOSS};

/* T listed rows of C columns; V token ids, a few of which have most of the tokens; a vector of
 * `squares` numbers. */
struct shape {
    uint32_t T, C, V;
    size_t squares;
};

/* The operands that both machines read, and the values that they accumulate onto. */
struct problem {
    struct shape shape;
    struct row_list rows;
    const void *dy, *x, *rstd, *acc, *squares;
    const double *of_dy, *of_x, *of_rstd, *of_acc; /* the same numbers */
    uint32_t *ids;
};

static const struct op_limits limits = {20000, 20000, 33000, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0};

static void on_pairs(void (*test)(struct machines *m)) {
    machines_pairs(&limits, RUN_DISTANCES_NARROW, RUN_DISTANCES_TABLES, test);
}

static void set_mode(struct machines *m, int atomic, uint32_t kind, uint32_t chunk) {
    m->order.kinds = m->racing.kinds = kind;
    m->order.chunk = m->racing.chunk = chunk;
    for (size_t i = 0; i < 2; i++) {
        m->call[i].order = atomic ? NULL : &m->order;
        m->call[i].racing = atomic ? &m->racing : NULL;
    }
}

enum { PATTERN = 4099 }; /* no width and no chunk divides it */

/* Numbers with many bits set, or small integers whose partial sums are all exact. A pattern of
 * PATTERN draws is repeated, since drawing takes longer than adding. */
static double *numbers(struct bench *b, size_t count, enum dtype dtype, int exact) {
    double *const drawn = bench_draw(b, count < PATTERN ? count : PATTERN, dtype, 1.0);
    double *const out = bench_numbers(b, count);
    for (size_t i = 0; i < count && i < PATTERN && exact; i++)
        drawn[i] = (double)bench_integer(b, 7) - 3.0;
    for (size_t i = 0; i < count; i++)
        out[i] = drawn[i % PATTERN];
    return out;
}

static struct problem draw(struct machines *m, struct shape shape, int op, int exact) {
    struct bench *const b = &m->bench;
    if (op != SQUARE) shape.squares = 1; /* drawing them takes longest */
    const size_t rows = bench_physical(shape.T);
    const enum dtype compute = b->law.compute, wide = b->accumulate;
    struct problem p = {.shape = shape, .rows = bench_rows(b, shape.T)};
    double *const ones = bench_numbers(b, rows);
    for (size_t i = 0; i < rows; i++)
        ones[i] = 1.0;
    const size_t count = rows * shape.C, sums = (size_t)shape.V * shape.C;
    p.of_dy = numbers(b, op == LOGPROB ? 1 : count, compute, exact);
    p.of_x = numbers(b, op == EMBEDDING ? 1 : count, compute, exact);
    p.of_rstd = exact ? ones : numbers(b, rows, wide, 0);
    p.of_acc = numbers(b, sums, wide, exact);
    p.dy = bench_store(b, p.of_dy, op == LOGPROB ? 1 : count, b->carrier);
    p.x = bench_store(b, p.of_x, op == EMBEDDING ? 1 : count, b->carrier);
    p.rstd = bench_store(b, p.of_rstd, rows, b->accumulator);
    p.acc = bench_store(b, p.of_acc, sums, b->accumulator);
    p.squares = bench_store(b,
                            exact ? numbers(b, shape.squares, compute, 1)
                                  : bench_draw(b, shape.squares, compute, 1.0),
                            shape.squares, b->carrier);
    p.ids = (uint32_t *)machine_take(b, shape.T, sizeof *p.ids);
    for (uint32_t i = 0; i < shape.T; i++) /* four ids have most tokens */
        p.ids[i] = bench_integer(b, 3) == 0 ? bench_integer(b, shape.V)
                                            : bench_integer(b, 4) * shape.V / 4;
    return p;
}

static size_t result_bytes(const struct machines *m, const struct problem *p, int op) {
    const size_t wide = m->bench.accumulator;
    if (op == EMBEDDING) return (size_t)p->shape.V * p->shape.C * wide;
    if (op == NORM || op == BIAS) return p->shape.C * wide;
    if (op == SQUARE) return sizeof(double);
    return p->shape.T * (2 * wide + sizeof(double));
}

/* Runs the op on machine i, with its results in fresh memory. */
static const void *run(struct machines *m, const struct problem *p, int op, size_t i) {
    const struct op_table *const ops = m->ops[i];
    struct op_call *const call = &m->call[i];
    const struct shape s = p->shape;
    const size_t bytes = result_bytes(m, p, op), wide = m->bench.accumulator;
    char *const out = (char *)machine_take(&m->bench, bytes, 1);
    call->site = sites[op];
    memset(out, 0x5a, bytes);
    if (op < TREES) memcpy(out, p->acc, bytes);
    if (op == EMBEDDING)
        ops->embedding_weight(
            call, &(struct embedding_weight_args){p->rows, s.V, s.C, p->ids, p->dy, out});
    if (op == NORM)
        ops->norm_weight(call, &(struct norm_weight_args){p->rows, s.C, NORM_ROUND_BEFORE_WEIGHT,
                                                          p->dy, p->x, p->rstd, out,
                                                          NORM_BACKWARD_FUSED, NULL, 0.0});
    if (op == BIAS)
        ops->linear_weight(call,
                           &(struct linear_weight_args){p->rows, s.C, 1, p->dy, p->x, out, 0});
    if (op == SQUARE)
        ops->square(call, &(struct square_args){s.squares, call->compute, p->squares,
                                                (double *)(void *)out});
    if (op == LOGPROB) {
        const enum dtype loss = wide == sizeof(double) ? DTYPE_F64 : DTYPE_F32;
        uint32_t *const target = (uint32_t *)machine_take(&m->bench, s.T, sizeof *target);
        for (uint32_t row = 0; row < s.T; row++)
            target[row] = p->ids[row] % s.C;
        ops->logprob_forward(call, &(struct logprob_forward_args){
                                       s.T, s.C, loss, target, p->x, out + s.T * sizeof(double),
                                       out + s.T * (sizeof(double) + wide), (double *)(void *)out});
    }
    machine_wait(&m->bench, names[op]);
    return out;
}

static void assert_same(const struct machines *m, const char *what, int op, const void *want,
                        const void *got, size_t bytes) {
    if (memcmp(want, got, bytes) != 0)
        fail_msg("%s, %s of %s, chunks of %u: expected the bits of %s", what, names[op],
                 dtype_name(m->call[1].compute), m->order.chunk, m->ops[0]->name);
}

/* ---- shuffled ---- */

static void shuffled_one(struct machines *m, struct shape shape, int op, uint32_t chunk) {
    const struct problem p = draw(m, shape, op, 0);
    const size_t bytes = result_bytes(m, &p, op);
    const int large = shape.T > 1000 || shape.C > 1000;
    set_mode(m, 0, kinds[op], chunk);
    const void *const want = run(m, &p, op, 0);
    for (uint64_t seed = 0; seed < (large ? 1 : 2); seed++) {
        shim_seed(seed);
        assert_same(m, "shuffled", op, want, run(m, &p, op, 1), bytes);
    }
    if (large) return;
    set_mode(m, 0, ~kinds[op], chunk);
    assert_same(m, "kind off", op, run(m, &p, op, 0), run(m, &p, op, 1), bytes);
}

static void shuffled(struct machines *m) {
    for (int op = 0; op < OPS; op++) {
        shuffled_one(m, (struct shape){90, 131, 140, 5 * 4096 + 17}, op, 3);
        shuffled_one(m, (struct shape){70, 33, 65, 3 * 4096}, op, 16);
        shuffled_one(m, (struct shape){1, 1, 1, 1}, op, 1);
        if (!SLOW) shuffled_one(m, (struct shape){66, 200, 3, 40 * 4096 + 1}, op, 1);
    }
}

static void corroborate_shuffled(void **state) {
    (void)state;
    on_pairs(shuffled);
}

/* Counts of tokens that one block of threads sorts, or several blocks whose runs are then merged,
 * around the ends of both; and token ids that fit in one span of the host's counting, or in
 * three. */
static void corroborate_lists(void **state) {
    static const uint32_t tokens[] = {255, 256, 257, 513, 1537};
    struct machines m;
    (void)state;
    machines_open(&m, 0, &limits);
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        shuffled_one(&m, (struct shape){tokens[i], 2, 70, 1}, EMBEDDING, 16);
        shuffled_one(&m, (struct shape){tokens[i], 2, 9001, 1}, EMBEDDING, 2);
    }
    bench_close(&m.bench);
    shim_close();
}

/* More tiles than the table of orders holds at a time, so that orders come in batches. */
static void corroborate_batches(void **state) {
    (void)state;
    struct machines m;
    if (machines_slow()) skip();
    machines_open(&m, 0, &limits);
    const struct shape shape = {16400, 193, 1, 1}; /* a table of orders has three such tiles */
    shuffled_one(&m, shape, EMBEDDING, 1);
    shuffled_one(&m, shape, NORM, 1);
    shuffled_one(&m, (struct shape){193, 16400, 1, 1}, LOGPROB, 1);
    bench_close(&m.bench);
    shim_close();
}

/* ---- invariant ---- */

/* Ids of more tokens than a warp walks (256), one behind another and with others between them;
 * columns that end inside the eight of a block; sums of several slabs of rows. */
static void long_sums(struct machines *m) {
    static const struct shape shapes[] = {{257, 9, 1, 1}, {700, 5, 2, 1}, {1100, 17, 3, 1}};
    for (size_t i = 0; i < COUNT_OF(shapes) - (SLOW != 0); i++)
        for (int op = 0; op < TREES; op++) {
            const struct problem p = draw(m, shapes[i], op, 0);
            set_mode(m, 1, 0, 1);
            shim_seed(i);
            assert_same(m, "invariant", op, run(m, &p, op, 0), run(m, &p, op, 1),
                        result_bytes(m, &p, op));
        }
}

static void corroborate_long_sums(void **state) {
    (void)state;
    on_pairs(long_sums);
}

/* ---- deterministic and fast ---- */

/* Law 20, written out: chunks of 32 terms, each a chain from +0, join level by level. `sum` has
 * room for them. */
static double tree_of(const struct law *law, const double *a, const double *b, size_t count,
                      double *sum) {
    size_t left = 0;
    for (size_t i = 0; i < count; i += 32)
        sum[left++] = law_chain(law, 0.0, a + i, 1, b == NULL ? NULL : b + i, 1,
                                count - i < 32 ? count - i : 32);
    for (; left > 1; left = (left + 1) / 2)
        for (size_t j = 0; 2 * j < left; j++)
            sum[j] = 2 * j + 1 < left ? law_add(law, sum[2 * j], sum[2 * j + 1]) : sum[2 * j];
    return sum[0];
}

/* What the op makes of accumulator `at`, which is column c of id `id`. */
static double tree_expected(struct machines *m, const struct problem *p, int op, size_t at,
                            double *terms) {
    const struct law *const law = &m->bench.law;
    const uint32_t T = p->shape.T, C = p->shape.C;
    const size_t c = at % C, id = at / C;
    double *const a = terms, *const b = terms + T;
    size_t count = 0;
    for (uint32_t i = 0; i < T; i++) {
        const size_t row = p->rows.index[i];
        if (op == EMBEDDING && p->ids[i] != id) continue;
        a[count] = p->of_dy[row * C + c];
        if (op == NORM)
            b[count] = law_out(law, law_mul(law, p->of_x[row * C + c], p->of_rstd[row]));
        if (op == BIAS) b[count] = p->of_x[row];
        count++;
    }
    if (count == 0) return p->of_acc[at];
    return law_add(law, p->of_acc[at],
                   tree_of(law, a, op == EMBEDDING ? NULL : b, count, terms + 2 * T));
}

static void tree_one(struct machines *m, struct shape shape, int op) {
    static const struct library_mode mode = {.ordered = 1};
    const struct problem p = draw(m, shape, op, 0);
    const size_t size = m->bench.accumulator, count = result_bytes(m, &p, op) / size;
    double *const terms = bench_numbers(&m->bench, 3 * (size_t)shape.T);
    double *const want = bench_numbers(&m->bench, count);
    for (size_t i = 0; i < count; i++)
        want[i] = tree_expected(m, &p, op, i, terms);
    set_mode(m, 1, 0, 1);
    m->call[1].library = &mode;
    for (uint64_t seed = 0; seed < 2; seed++) {
        shim_seed(seed);
        bench_check(&m->bench, m->ops[1], names[op], run(m, &p, op, 1), want, count, size);
    }
    m->call[1].library = NULL;
}

/* Sums of one chunk, of as many as a block joins and one more, and columns that end inside a warp's
 * and behind those of one launch. */
static void tree(struct machines *m) {
    for (int op = 0; op < TREES; op++) {
        tree_one(m, (struct shape){1, 1, 1, 1}, op);
        tree_one(m, (struct shape){33, 40, 1, 1}, op);
        tree_one(m, (struct shape){256, 131, 5, 1}, op);
        if (m->bench.law.compute != DTYPE_F32 || SLOW) continue;
        tree_one(m, (struct shape){300, 1030, 3, 1}, op);
        tree_one(m, (struct shape){8300, 3, 2, 1}, op);
        tree_one(m, (struct shape){8300, 2, 1, 1}, op); /* an id of 260 chunks */
    }
}

static void verify_tree(void **state) {
    (void)state;
    on_pairs(tree);
}

/* ---- atomic ---- */

/* The logits of an exact problem are all equal, so that every exponential is 1. */
static void atomic_exact(struct machines *m, struct shape shape, int op, uint32_t chunk) {
    struct problem p = draw(m, shape, op, 1);
    const size_t bytes = result_bytes(m, &p, op), count = bench_physical(shape.T) * shape.C;
    if (op == LOGPROB)
        p.x = bench_store(&m->bench, bench_numbers(&m->bench, count), count, m->bench.carrier);
    set_mode(m, 1, 0, chunk);
    const void *const want = run(m, &p, op, 0);
    set_mode(m, 1, kinds[op], chunk);
    for (uint64_t seed = 0; seed < 3; seed++) {
        shim_seed(seed);
        assert_same(m, "atomic, exact sums", op, want, run(m, &p, op, 1), bytes);
    }
}

static void atomic_one_chunk(struct machines *m, struct shape shape, int op) {
    const struct problem p = draw(m, shape, op, 0);
    set_mode(m, 1, kinds[op], 4096);
    assert_same(m, "atomic, one chunk", op, run(m, &p, op, 0), run(m, &p, op, 1),
                result_bytes(m, &p, op));
    set_mode(m, 1, ~kinds[op], 1);
    assert_same(m, "kind off", op, run(m, &p, op, 0), run(m, &p, op, 1), result_bytes(m, &p, op));
}

static void atomic(struct machines *m) {
    for (int op = 0; op < OPS; op++) {
        atomic_exact(m, (struct shape){90, 70, 40, 5 * 4096 + 17}, op, 3);
        atomic_exact(m, (struct shape){65, 33, 2, 4096}, op, 1);
        atomic_one_chunk(m, (struct shape){70, 67, 30, 4096}, op);
    }
}

static void verify_atomic(void **state) {
    (void)state;
    on_pairs(atomic);
}

/* The order of threads must show in the bits. Devices are left out: they draw no order and may well
 * repeat one. */
static void races(struct machines *m) {
    if (m->bench.backend != NULL) return;
    for (int op = 0; op < OPS; op++) {
        const struct problem p = draw(m, (struct shape){90, 70, 5, 40 * 4096}, op, 0);
        const size_t bytes = result_bytes(m, &p, op);
        int moved = 0;
        set_mode(m, 1, kinds[op], 2);
        shim_seed(0);
        const void *const first = run(m, &p, op, 1);
        for (uint64_t seed = 1; seed < 24 && !moved; seed++) {
            shim_seed(seed);
            moved = memcmp(first, run(m, &p, op, 1), bytes) != 0;
        }
        if (!moved) fail_msg("%s: 24 orders of threads, one result", names[op]);
    }
}

static void verify_races(void **state) {
    (void)state;
    on_pairs(races);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_shuffled), cmocka_unit_test(corroborate_lists),
        cmocka_unit_test(corroborate_batches),  cmocka_unit_test(corroborate_long_sums),
        cmocka_unit_test(verify_tree),          cmocka_unit_test(verify_atomic),
        cmocka_unit_test(verify_races),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
