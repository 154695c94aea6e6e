/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Attention of kernels/cuda/ in modes shaped, shuffled and atomic, run by the shim. Shaped and
 * shuffled must have the CPU's bits, whatever the order of threads. Atomic must add each chunk
 * exactly once: sums that are exact in any order have the bits of mode invariant, a sum of one
 * chunk has them anyway, and inexact ones get other bits from another order of threads. A kind of
 * sum that is switched off keeps its bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/dropout.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

enum { OUT, DQ, DK, DV, RESULTS };
static const char *const names[RESULTS] = {"out", "dq", "dk", "dv"};

/* `gap` counts the rows from one sequence's start to the next one's; 0 means packed. */
struct shape {
    uint32_t H, G, D;
    uint32_t gap, count;
    const uint32_t *lengths;
    const struct dropout *dropout;
};

struct problem {
    struct shape is;
    struct sequence *sequences;
    size_t numbers[RESULTS];
    const void *q, *k, *v, *dout;
};

static const struct op_limits limits = {200, 200, 200, 200, 66, 66, 140, 1, 0, 0, 0, 0, 0};

/* Runs one dtype of each table, and bf16; where kernels are slow, the narrowest and the widest. */
static void on_pairs(void (*test)(struct machines *m)) {
    machines_pairs(&limits, RUN_DISTANCES_BF16, RUN_DISTANCES_ENDS, test);
}

static void set_rounding(struct machines *m, const struct op_rounding *rounding) {
    m->call[0].rounding = m->call[1].rounding = rounding;
}

static void set_length(struct machines *m, uint32_t length) {
    m->call[0].length = m->call[1].length = length;
}

static void shuffle(struct machines *m, uint32_t kinds, uint32_t chunk) {
    m->order.kinds = kinds;
    m->order.chunk = chunk;
    m->call[0].order = m->call[1].order = &m->order;
}

static void shape(struct machines *m, const char *rows) {
    assert_int_equal(splits_parse(rows, &m->splits), STATUS_OK);
    m->call[0].splits = m->call[1].splits = &m->splits;
}

/* Lets these kinds race on the machine under test; the CPU stays in mode invariant. */
static void race(struct machines *m, uint32_t kinds, uint32_t chunk) {
    m->racing = (struct racing){kinds, chunk};
    m->call[1].racing = &m->racing;
}

static void *drawn(struct machines *m, size_t count, double scale) {
    return machine_numbers(&m->bench, count, scale);
}

static void *integers(struct machines *m, size_t count) {
    return bench_store(&m->bench, machine_whole(&m->bench, count, 3), count, m->bench.carrier);
}

static int flash_now; /* 1: the backward is that of flash attention */

static struct problem draw(struct machines *m, struct shape is, int whole_values) {
    struct problem p = {.is = is};
    uint32_t row = 0;
    p.sequences = (struct sequence *)machine_take(&m->bench, is.count, sizeof *p.sequences);
    for (uint32_t i = 0; i < is.count; i++) {
        p.sequences[i] = (struct sequence){row, is.lengths[i], i / 2, i % 2};
        row += is.gap == 0 ? is.lengths[i] : is.gap;
    }
    p.numbers[OUT] = p.numbers[DQ] = (size_t)row * is.H * is.D;
    p.numbers[DK] = p.numbers[DV] = (size_t)row * is.G * is.D;
    p.q = drawn(m, p.numbers[OUT], 0.2);
    p.dout = drawn(m, p.numbers[OUT], 1.0);
    p.k = whole_values ? integers(m, p.numbers[DK]) : drawn(m, p.numbers[DK], 1.0);
    p.v = whole_values ? integers(m, p.numbers[DK]) : drawn(m, p.numbers[DK], 1.0);
    return p;
}

static int all_keep;     /* 1: the CPU keeps them, too */
static int spoiled = -1; /* the number of a state that is changed before the backward; -1: none */

static void spoil_state(const struct machines *m, void *state) {
    if (spoiled < 0) return;
    machine_wait(&m->bench, "attention_forward");
    if (m->bench.accumulate == DTYPE_F64)
        ((double *)state)[spoiled] += 0.5;
    else
        ((float *)state)[spoiled] += 0.5f;
}

/* Runs both directions on machine i. Rows outside of the sequences must keep what they hold. The
 * machine under test keeps maximum and sum in the forward, and the CPU makes them again, so that
 * every comparison of the two is one of both ways. */
static void run(struct machines *m, size_t i, const struct problem *p, void *out[RESULTS]) {
    const struct shape *const is = &p->is;
    for (int r = 0; r < RESULTS; r++) {
        out[r] = machine_take(&m->bench, p->numbers[r], m->bench.carrier);
        memset(out[r], 0x5a, p->numbers[r] * m->bench.carrier);
    }
    void *const state = machine_take(&m->bench, 2 * p->numbers[OUT] / is->D, sizeof(double));
    const int keeps = i == 1 || all_keep;
    if (i == 1) shim_seed(SEED + 31u * m->rounds++ + m->bench.next);
    const struct attention_forward_args forward = {
        p->sequences, is->count, is->H, is->G,    is->D,       0.37,
        p->q,         p->k,      p->v,  out[OUT], is->dropout, keeps ? state : NULL};
    const struct attention_backward_args backward = {p->sequences,
                                                     is->count,
                                                     is->H,
                                                     is->G,
                                                     is->D,
                                                     0.37,
                                                     p->q,
                                                     p->k,
                                                     p->v,
                                                     p->dout,
                                                     out[DQ],
                                                     out[DK],
                                                     out[DV],
                                                     is->dropout,
                                                     flash_now ? out[OUT] : NULL,
                                                     keeps ? state : NULL};
    m->call[i].site = SITE_ATTENTION;
    m->ops[i]->attention_forward(&m->call[i], &forward);
    if (keeps) spoil_state(m, state);
    m->ops[i]->attention_backward(&m->call[i], &backward);
    machine_wait(&m->bench, m->ops[i]->name);
}

static void assert_same(const struct machines *m, const struct problem *p, const char *mode, int r,
                        void *const a[RESULTS], void *const b[RESULTS]) {
    const unsigned char *const is = (const unsigned char *)a[r];
    const unsigned char *const due = (const unsigned char *)b[r];
    for (size_t i = 0; i < p->numbers[r] * m->bench.carrier; i++)
        if (is[i] != due[i])
            fail_msg("%s, %s of %s, %s, D %u, chunk %u: byte %zu of %zu differs", mode, names[r],
                     m->ops[1]->name, dtype_name(m->call[1].compute), p->is.D, m->order.chunk, i,
                     p->numbers[r] * m->bench.carrier);
}

/* Both machines in the call's mode: every result must have the CPU's bits. */
static void both(struct machines *m, const char *mode, struct shape is) {
    const struct problem p = draw(m, is, 0);
    void *due[RESULTS], *got[RESULTS];
    run(m, 0, &p, due);
    run(m, 1, &p, got);
    for (int r = 0; r < RESULTS; r++)
        assert_same(m, &p, mode, r, got, due);
}

static const struct dropout addressed = {
    .keep = 0.7, .seed = 5, .op = 60, .layer = 1, .update = 3, .rank_samples = 2};
static const struct dropout as_torch = {.map = DROPOUT_TORCH,
                                        .keep = 0.9,
                                        .seed = 11,
                                        .offset = 8,
                                        .threads = 512,
                                        .vector = 4,
                                        .length = 12};

static const struct op_rounding roundings[] = {{DTYPE_BF16, DTYPE_F32}, {DTYPE_TF32, DTYPE_BF16}};

/* These lengths end inside tiles of 32 and of 64, together and alone. */
static const uint32_t some[] = {21, 9, 36, 4}, few[] = {12, 1, 7}, one[] = {70};
static const struct shape packed = {2, 1, 34, 0, 4, some, NULL};
static const struct shape dropped = {2, 2, 5, 0, 4, some, &addressed};
static const struct shape torch = {2, 1, 5, 12, 3, few, &as_torch};
static const struct shape padded = {2, 2, 24, 24, 3, few, NULL};
static const struct shape one_long = {1, 1, 9, 0, 1, one, NULL};
static const struct shape panels = {1, 1, 66, 0, 1, one, NULL};
static const struct shape wide = {1, 1, 130, 0, 1, one, NULL};

/* A maximum or a sum that is changed between forward and backward must show in every gradient: the
 * backward reads it. Changed are the second query's, since the first has one key, whose P is 1. */
static void kept(struct machines *m) {
    const struct problem p = draw(m, (struct shape){1, 1, 5, 0, 1, one, NULL}, 0);
    void *due[RESULTS], *got[RESULTS];
    all_keep = 1;
    for (int i = 0; i < 4; i++) { /* both machines, both formulas */
        flash_now = i / 2;
        run(m, (size_t)i % 2, &p, due);
        for (spoiled = 2; spoiled < 4; spoiled++) {
            run(m, (size_t)i % 2, &p, got);
            assert_same(m, &p, "kept", OUT, got, due);
            for (int r = DQ; r < RESULTS; r++)
                assert_memory_not_equal(due[r], got[r], p.numbers[r] * m->bench.carrier);
        }
        spoiled = -1;
    }
    all_keep = flash_now = 0;
}

static void verify_kept_states(void **state) {
    (void)state;
    on_pairs(kept);
}

/* ---- shaped ---- */

static void shaped(struct machines *m) {
    static const char *const rows[] = {"attention k>=10: 4; dq k>=20: 3", "attention: 2",
                                       "dq k<=9: 5; attention n>=30: 7"};
    for (size_t i = 0; i < (SLOW ? 2 : COUNT_OF(rows)); i++) {
        shape(m, rows[i]);
        both(m, "shaped", i == 0 ? packed : dropped);
        set_length(m, 24);
        both(m, "shaped", padded);
        set_length(m, 12);
        if (i > 0) both(m, "shaped", torch);
        set_length(m, 0);
    }
    set_rounding(m, &roundings[0]);
    if (m->call[0].compute == DTYPE_F32) both(m, "shaped", wide);
}

/* A sum that is not cut into chunks may be -0; one whose chunks are added to +0 cannot be. */
static void signs(struct machines *m) {
    static const uint32_t lengths[] = {4, 12};
    struct problem p = draw(m, (struct shape){1, 1, 3, 0, 2, lengths, NULL}, 0);
    const double least = m->call[0].compute == DTYPE_F64 ? 0x1p-1074 : 0x1p-149;
    double *const values = bench_numbers(&m->bench, p.numbers[DV]);
    void *due[RESULTS], *got[RESULTS];
    for (size_t i = 0; i < p.numbers[DV]; i++)
        values[i] = -least;
    if (m->call[0].compute != m->bench.accumulate) return;
    p.v = bench_store(&m->bench, values, p.numbers[DV], m->bench.carrier);
    shape(m, "attention k>=10: 3");
    run(m, 0, &p, due);
    run(m, 1, &p, got);
    assert_same(m, &p, "shaped", OUT, got, due);
}

static void corroborate_shaped(void **state) {
    (void)state;
    on_pairs(shaped);
    on_pairs(signs);
}

/* ---- shuffled ---- */

static void shuffled(struct machines *m) {
    static const uint32_t kinds[] = {SUM_FORWARD | SUM_DQ, SUM_FORWARD, SUM_DQ, SUM_WEIGHT};
    static const uint32_t chunks[] = {3, 16, 1, 1000};
    for (size_t i = 0; i < (SLOW ? 1 : COUNT_OF(kinds)); i++) {
        shuffle(m, kinds[i], chunks[i]);
        both(m, "shuffled", i == 0 ? packed : dropped);
    }
    shuffle(m, SUM_FORWARD | SUM_DQ, 2);
    both(m, "shuffled", torch);
    both(m, "shuffled", padded);
    flash_now = 1;
    both(m, "shuffled, flash", packed);
    flash_now = 0;
    if (m->call[0].compute != DTYPE_F32) return;
    set_rounding(m, &roundings[0]);
    both(m, "shuffled", wide);
    set_rounding(m, &roundings[1]);
    both(m, "shuffled", packed);
}

static void corroborate_shuffled(void **state) {
    (void)state;
    on_pairs(shuffled);
}

/* The heads lie in two tiles of law 9, and there are more sequences than one launch takes. */
static void many(struct machines *m) {
    uint32_t lengths[70];
    for (uint32_t i = 0; i < COUNT_OF(lengths); i++)
        lengths[i] = 1 + i % 4;
    if (m->call[0].compute != DTYPE_F32 || m->bench.law.wide) return;
    shuffle(m, SUM_FORWARD | SUM_DQ, 1);
    both(m, "shuffled", (struct shape){66, 66, 2, 0, 1, (const uint32_t[]){9}, NULL});
    both(m, "shuffled", (struct shape){2, 1, 3, 0, COUNT_OF(lengths), lengths, &addressed});
}

static void corroborate_many(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    on_pairs(many);
}

/* ---- atomic ---- */

/* Values of few bits: a wide accumulator then holds every partial sum exactly, so that a lost or
 * doubled chunk shows and the order does not. With f32 accumulators this holds where P has 8
 * bits. */
static void exact(struct machines *m) {
    static const uint32_t chunks[] = {1, 3, 16, 33};
    static const struct op_rounding narrow = {DTYPE_BF16, DTYPE_F32};
    const int all = m->bench.law.wide && m->call[0].compute != DTYPE_F64;
    if (m->call[0].compute == DTYPE_F64) return;
    set_rounding(m, all ? NULL : &narrow);
    for (size_t c = 0; c < COUNT_OF(chunks); c++) {
        const struct problem p = draw(m, c % 2 == 0 ? dropped : c == 1 ? packed : torch, 1);
        void *due[RESULTS], *got[RESULTS];
        race(m, SUM_FORWARD | SUM_DQ, chunks[c]);
        run(m, 0, &p, due);
        for (int seed = 0; seed < 2; seed++) {
            run(m, 1, &p, got);
            for (int r = 0; r < RESULTS; r++)
                if (all || r != DQ) assert_same(m, &p, "atomic", r, got, due);
        }
    }
}

static void verify_exact(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    on_pairs(exact);
}

/* One chunk alone is the chain of mode invariant, and a kind that does not race keeps its bits. */
static void alone(struct machines *m) {
    static const uint32_t kinds[] = {SUM_FORWARD | SUM_DQ, SUM_WEIGHT | SUM_DQ, SUM_FORWARD};
    static const uint32_t chunks[] = {70, 2, 2};
    const struct problem p = draw(m, panels, 0);
    void *due[RESULTS], *got[RESULTS];
    run(m, 0, &p, due);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        race(m, kinds[i], chunks[i]);
        run(m, 1, &p, got);
        for (int r = 0; r < RESULTS; r++) {
            const int canonical = i == 0 || r > DQ || (r == OUT ? i == 1 : i == 2);
            if (canonical) assert_same(m, &p, "atomic", r, got, due);
        }
    }
}

static void verify_kinds(void **state) {
    (void)state;
    on_pairs(alone);
}

static double apart(double a, double b) {
    return a > b ? a - b : b - a;
}

/* Another order of threads must change bits, and by no more than rounding can. The terms'
 * magnitudes add up to less than 60, so that one addition errs by at most 60 * `unit` (half an
 * ulp); 70 additions whose errors have either sign stay far below the 40 of these that are allowed.
 * Only the shim must show other bits: a device may well repeat an order. */
static void races(struct machines *m) {
    const struct problem p = draw(m, one_long, 0);
    const double unit = m->call[0].compute == DTYPE_F64 ? 0x1p-53 : 0x1p-24;
    const size_t carrier = m->bench.carrier;
    int moved[RESULTS] = {0};
    void *due[RESULTS], *first[RESULTS], *got[RESULTS];
    if (m->call[0].compute != m->bench.accumulate) return; /* a short dtype would hide it */
    race(m, SUM_FORWARD | SUM_DQ, 1);
    run(m, 0, &p, due);
    run(m, 1, &p, first);
    for (int seed = 0; seed < 3; seed++) {
        run(m, 1, &p, got);
        for (int r = 0; r < RESULTS; r++) {
            moved[r] |= memcmp(got[r], first[r], p.numbers[r] * m->bench.carrier) != 0;
            for (size_t i = 0; i < p.numbers[r]; i++) /* for 40 and 60 see above */
                assert_true(apart(machine_number(got[r], i, carrier),
                                  machine_number(due[r], i, carrier)) < 40 * 60 * unit);
        }
    }
    if (m->bench.backend == NULL) assert_true(moved[OUT] && moved[DQ]);
    assert_false(moved[DK] || moved[DV]);
}

static void verify_races(void **state) {
    (void)state;
    on_pairs(races);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_shaped), cmocka_unit_test(corroborate_shuffled),
        cmocka_unit_test(corroborate_many),   cmocka_unit_test(verify_exact),
        cmocka_unit_test(verify_kinds),       cmocka_unit_test(verify_races),
        cmocka_unit_test(verify_kept_states),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
