/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The LR that an update applied: what the loops of the frameworks apply at update k must be exact,
 * and the estimate from weights and moments before and after must lie within its printed error of
 * the LR applied. The trainings use AdamW and SGD, with and without momentum and decay, in f32 and
 * with f32 masters; and bf16 weights without masters, where the estimate must say how little it
 * knows. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/element.h"
#include "kernels/readback_blocks.h"
#include "tests/trainer/helper_train.h"

enum { UPDATES = 5 };

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open_wide(struct bench *bench, const char *words, int vocab,
                            enum readback_share share) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config,
                  "%s, data: {max_len: 16}, batch: {size: 4, micro: 2}, init: {std: 0.1}, "
                  "model: {layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 48, vocab: %d}",
                  words, vocab);
    helper_ids_open(&bench->config, 8, 20, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.readback = share, .steps = UPDATES}, &bench->run);
}

static void bench_open(struct bench *bench, const char *words) {
    bench_open_wide(bench, words, 19, READBACK_TURNS);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Returns f(n) of the linear schedule without warm-up, as transformers computes it. */
static double linear(double base, double n, double total) {
    return base * ((total - n) / total);
}

/* The LR applied at update k is f(k - 1 + shift), and the LR logged is f(k - 1 + logged). */
static const struct contract {
    const char *update;
    int applied, logged;
} contracts[] = {
    {"[clip, optimize, log, count, schedule, zero]", 0, 0}, /* PyTorch's order */
    {"[clip, optimize, count, schedule, log, zero]", 0, 1}, /* logs after the scheduler moved */
    {"[count, clip, schedule, optimize, log, zero]", 1, 1}, /* counts, then schedules, then steps */
    {"[clip, optimize, schedule, count, log, zero]", -1, 0}, /* schedule before count */
};

static void validate_lr_of_loops(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(contracts); c++) {
        char words[256];
        struct bench bench;
        snprintf(words, sizeof words,
                 "optimizer: {lr: 5e-7}, schedule: {name: linear, total: 5}, loop: {update: %s}",
                 contracts[c].update);
        bench_open(&bench, words);
        for (int k = 1; k <= UPDATES; k++) {
            const struct record *record = helper_step(&bench.run);
            int n = k - 1 + contracts[c].applied;
            if (n < 0) n = 0;
            assert_true(record->groups[0][GROUP_LR_APPLIED] == linear(5e-7, n, 5));
            n = k - 1 + contracts[c].logged;
            assert_true(record->groups[0][GROUP_LR_LOGGED] == linear(5e-7, n, 5));
        }
        bench_close(&bench);
    }
}

static const char *const readable[] = {
    "optimizer: {lr: 1e-3}",
    "optimizer: {lr: 1e-3, weight_decay: 0.1}",
    "optimizer: {lr: 5e-7}",
    "optimizer: {lr: 5e-7, weight_decay: 0.1}",
    "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: matrices}",
    "optimizer: {name: sgd, lr: 1e-1}",
    "optimizer: {name: sgd, lr: 1e-1, weight_decay: 0.1}",
    "optimizer: {name: sgd, lr: 1e-2, momentum: 0.9}",
    "optimizer: {name: sgd, lr: 1e-2, momentum: 0.9, weight_decay: 0.1}",
    "optimizer: {name: sgd, lr: 1e-2, momentum: 0.9, nesterov: true, weight_decay: 0.1}",
    "optimizer: {lr: 1e-4, weight_decay: 0.1}, task: sft, clip: {max_norm: 0.01}",
    "optimizer: {lr: 1e-4}, numerics: {param: bf16, compute: bf16, master: f32}",
    "optimizer: {lr: 1e-4}, numerics: {param: f64, compute: f64}",
    /* a step that does not start from the weights with which the update began */
    "optimizer: {lr: 1e-3}, loop: {update: [clip, optimize, optimize, log, count, schedule, zero]}",
    "optimizer: {lr: 1e-3}, loop: {micro: [fetch, forward, backward, optimize], "
    "update: [clip, log, count, schedule, zero]}",
};

static void verify_readback(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(readable); i++) {
        struct bench bench;
        double worst = 0.0, error = 0.0, relative = 0.0;
        bench_open(&bench, readable[i]);
        for (int k = 0; k < UPDATES; k++) {
            const struct record *record = helper_step(&bench.run);
            for (uint32_t g = 0; g < bench.run.shape.groups; g++) {
                const double *group = record->groups[g];
                double gap = fabs(group[GROUP_LR_READBACK] - group[GROUP_LR_APPLIED]);
                if (!(gap <= group[GROUP_LR_ERROR]))
                    fail_msg("%s: update %d, group %u: %.9g applied, %.9g +- %.2g read back",
                             readable[i], k + 1, g, group[GROUP_LR_APPLIED],
                             group[GROUP_LR_READBACK], group[GROUP_LR_ERROR]);
                if (gap / group[GROUP_LR_ERROR] > worst) worst = gap / group[GROUP_LR_ERROR];
                error = group[GROUP_LR_ERROR];
                relative = error / group[GROUP_LR_APPLIED];
            }
        }
        print_message("%-80s worst gap %.2f of the error, last error %.1e (%.1e of the LR)\n",
                      readable[i], worst, error, relative);
        assert_true(relative < 0.1);
        bench_close(&bench);
    }
}

/* At 5e-7 hardly any bf16 weight changes. The printed error must admit that, by covering the
 * neighbouring LR. */
static void verify_readback_admits_ignorance(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "optimizer: {lr: 5e-7}, schedule: {name: linear, total: 5}, "
                       "numerics: {param: bf16, compute: bf16}");
    for (int k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&bench.run);
        const double *group = record->groups[0];
        print_message("bf16 without masters: %.2e applied, %.2e +- %.1e read back, %.4f of the "
                      "weights moved\n",
                      group[GROUP_LR_APPLIED], group[GROUP_LR_READBACK], group[GROUP_LR_ERROR],
                      record->reals[REAL_UPDATE_SURVIVAL]);
        assert_true(group[GROUP_LR_ERROR] > 0.5e-7);
        assert_true(record->reals[REAL_UPDATE_SURVIVAL] < 0.1);
    }
    bench_close(&bench);
}

/* 16 blocks at least are read of a tensor that has 32, and one of sixteen of a larger one. */
static size_t stride_of(size_t count) {
    const size_t blocks = (count + 4095) / 4096, stride = blocks / 16;
    return blocks < 32 ? 1 : stride < 16 ? stride : 16;
}

/* Counted by hand: an element was to move where Adam's first moment is not 0 after the step (there
 * is no decay), and was lost where the copy that the optimizer moves kept its bits. Where blocks of
 * 4,096 numbers take turns, those of one turn are counted, by the update and the tensor's place. */
static struct run_steps steps_by_hand(const struct run *run, const unsigned char *before,
                                      uint64_t update, int by_turns) {
    const struct state_layout *layout = &run->layout;
    const enum dtype dtype =
        layout->has_master ? layout->master_dtype : (enum dtype)run->config.numerics.param;
    const size_t carrier = dtype_carrier(dtype);
    struct run_steps out = {0.0, 0.0};
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct state_tensor *tensor = &layout->tensor[run->owner[i]];
        const size_t at = layout->has_master ? tensor->master : tensor->param;
        const unsigned char *now = run_state_host(run) /* all of it, on the CPU */;
        const size_t stride = stride_of(run->table.rows[run->owner[i]].count);
        for (size_t e = 0; e < run->table.rows[run->owner[i]].count; e++) {
            if (by_turns && e / 4096 % stride != (update + run->owner[i]) % stride) continue;
            if (form_get(now + tensor->slot[0], layout->slots, e) == 0.0) continue;
            out.meant++;
            out.lost += memcmp(now + at + e * carrier, before + at + e * carrier, carrier) == 0;
        }
    }
    return out;
}

static void validate_lost_steps(void **state) {
    (void)state;
    static const struct {
        const char *words;
        double least, most; /* share of the steps that is lost */
    } rows[] = {
        {"optimizer: {lr: 5e-7}, numerics: {param: bf16, compute: bf16}", 0.9, 1.0},
        {"optimizer: {lr: 1e-2}, numerics: {param: bf16, compute: bf16}", 0.0, 0.2},
        {"optimizer: {lr: 5e-7}, numerics: {param: bf16, compute: bf16, master: f32}", 0.0, 0.05},
        {"optimizer: {lr: 1e-10}", 0.9, 1.0},
        {"optimizer: {lr: 1e-3}", 0.0, 0.01},
        {"optimizer: {lr: 0}", 0.0, 0.0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bench bench;
        char words[256];
        snprintf(words, sizeof words, "schedule: {name: constant}, %s", rows[i].words);
        bench_open(&bench, words);
        unsigned char *before;
        assert_int_equal(
            arena_take(&bench.arena, run_layout(&bench.run)->bytes, 1, "state", &before),
            STATUS_OK);
        for (int k = 0; k < UPDATES; k++) {
            assert_int_equal(run_snapshot(&bench.run, before), STATUS_OK);
            const struct record *record = helper_step(&bench.run);
            const struct run_steps steps = run_steps(&bench.run);
            struct run_steps hand = steps_by_hand(&bench.run, before, record->step, 1);
            if (record->groups[0][GROUP_LR_APPLIED] == 0.0) hand = (struct run_steps){0.0, 0.0};
            assert_true(steps.meant == hand.meant && steps.lost == hand.lost);
            if (hand.meant == 0.0) continue;
            if (k == 0)
                print_message("%-80s %.4f of %.0f steps lost\n", rows[i].words,
                              steps.lost / steps.meant, steps.meant);
            assert_in_range((int)(1e6 * steps.lost / steps.meant), (int)(1e6 * rows[i].least),
                            (int)(1e6 * rows[i].most));
        }
        bench_close(&bench);
    }
}

/* Marks the blocks of the last update whose numbers were read, and says how many there are. Each
 * tensor must have one. */
static size_t mark_read(const struct run *run, unsigned char *marks) {
    const struct readback_blocks_block *block = run->reads + run->owner_count;
    size_t read = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t count = (run->table.rows[run->owner[i]].count + 4095) / 4096;
        size_t here = 0;
        for (size_t b = 0; b < count; b++, block++, marks++) {
            const int is_read = block->sum[READBACK_BLOCKS_PP] > 0.0; /* old weights */
            *marks = (unsigned char)(*marks + is_read);
            here += (size_t)is_read;
        }
        assert_true(here > 0);
        read += here;
    }
    return read;
}

/* Of 33 blocks of an embedding every other one is read, of 258 one of 16, and every block comes in
 * its turn; the LR and the decay stand within their errors all the same, and the counts are those
 * of the blocks that were read. Where all is read, it is all of every update. */
static void validate_turns(void **state) {
    (void)state;
    static const struct {
        int vocab;
        enum readback_share share;
        size_t most; /* blocks of the embedding, and of the head, in an update */
    } cases[] = {
        {4100, READBACK_TURNS, 17},
        {4100, READBACK_ALL, 33},
        {33000, READBACK_TURNS, 17},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        static unsigned char marks[1000];
        unsigned char *before;
        memset(marks, 0, sizeof marks);
        bench_open_wide(&bench, "optimizer: {lr: 1e-3}, schedule: {name: constant}, task: sft",
                        cases[i].vocab, cases[i].share);
        assert_int_equal(
            arena_take(&bench.arena, run_layout(&bench.run)->bytes, 1, "state", &before),
            STATUS_OK);
        for (int k = 1; k <= UPDATES; k++) {
            assert_int_equal(run_snapshot(&bench.run, before), STATUS_OK);
            const double *const group = helper_step(&bench.run)->groups[0];
            const struct run_steps steps = run_steps(&bench.run);
            const struct run_steps hand =
                steps_by_hand(&bench.run, before, (uint64_t)k, cases[i].share == READBACK_TURNS);
            assert_true(steps.meant == hand.meant && steps.lost == hand.lost);
            assert_true(fabs(group[GROUP_LR_READBACK] - 1e-3) <= group[GROUP_LR_ERROR]);
            assert_true(group[GROUP_LR_ERROR] < 1e-5);
            assert_true(fabs(group[GROUP_WD_READBACK]) <= group[GROUP_WD_ERROR]);
            /* every other tensor has one block */
            assert_true(mark_read(&bench.run, marks) <=
                        2 * cases[i].most + bench.run.owner_count - 2);
            if (k == 2 && cases[i].vocab == 4100) /* the embedding is the first tensor */
                for (size_t b = 0; b < 33; b++)
                    assert_int_equal(marks[b], cases[i].share == READBACK_ALL ? 2 : 1);
        }
        bench_close(&bench);
    }
}

/* A weight decay outside of the gradient must read back as what was configured, also where it is 0.
 * It must be NaN where the class keeps the decay inside the gradient. */
static void verify_decay(void **state) {
    (void)state;
    static const struct {
        const char *words;
        double wanted;
    } cases[] = {
        {"optimizer: {lr: 1e-3, weight_decay: 0.1}", 0.1},
        {"optimizer: {lr: 1e-3}", 0.0},
        {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: apex}", 0.1},
        {"optimizer: {name: lion, lr: 1e-4, weight_decay: 1}", 1.0},
        {"optimizer: {name: sgd, lr: 1e-2, momentum: 0.9, weight_decay: 0.1}", (double)NAN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        bench_open(&bench, cases[i].words);
        for (int k = 0; k < UPDATES; k++) {
            const double *group = helper_step(&bench.run)->groups[0];
            const double gap = fabs(group[GROUP_WD_READBACK] - cases[i].wanted);
            if (k == UPDATES - 1)
                print_message("%-60s %.4g +- %.1g\n", cases[i].words, group[GROUP_WD_READBACK],
                              group[GROUP_WD_ERROR]);
            if (isnan(cases[i].wanted))
                assert_true(isnan(group[GROUP_WD_READBACK]));
            else
                assert_true(gap <= group[GROUP_WD_ERROR] && group[GROUP_WD_ERROR] < 0.05);
        }
        bench_close(&bench);
    }
}

/* The optimizer input, read back from the moments, is the gradient after clipping, unless the clip
 * acted on a copy. */
static void verify_taken(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int clipped;
    } cases[] = {
        {"optimizer: {lr: 1e-3, weight_decay: 0.1}, clip: {max_norm: 0.5}", 1},
        {"optimizer: {name: sgd, lr: 1e-2, momentum: 0.9, dampening: 0.5}, clip: {max_norm: 0.5}",
         1},
        {"optimizer: {lr: 1e-3}, clip: {max_norm: 0.5, apply: copy}", 0},
        {"optimizer: {lr: 1e-3}, clip: {max_norm: 0}", 0},
        {"optimizer: {name: adam, lr: 1e-3, weight_decay: 0.1}, clip: {max_norm: 0.5}", 1},
        {"optimizer: {name: lion, lr: 1e-3}, clip: {max_norm: 0.5}", 1},
        {"optimizer: {name: sgd, lr: 1e-2, momentum: 0.9, weight_decay: 0.1}, "
         "clip: {max_norm: 0.5}",
         1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        bench_open(&bench, cases[i].words);
        for (int k = 0; k < UPDATES; k++) {
            const double *reals = helper_step(&bench.run)->reals;
            const double factor = cases[i].clipped ? reals[REAL_CLIP_COEF] : 1.0;
            const double gap = fabs(reals[REAL_GRAD_TAKEN] - factor * reals[REAL_GRAD_NORM]);
            if (k == UPDATES - 1)
                print_message("%-80s %.6g of %.6g +- %.1g\n", cases[i].words,
                              reals[REAL_GRAD_TAKEN], reals[REAL_GRAD_NORM],
                              reals[REAL_GRAD_TAKEN_ERROR]);
            assert_true(gap <= reals[REAL_GRAD_TAKEN_ERROR]);
            /* a printed error that was larger than 1e-4 of the norm would prove little */
            assert_true(reals[REAL_GRAD_TAKEN_ERROR] < 1e-4 * reals[REAL_GRAD_NORM]);
            assert_int_equal(cases[i].clipped, factor < 1.0);
        }
        bench_close(&bench);
    }
}

/* Without a moment there is nothing from which the optimizer input could be read. */
static void validate_nothing_taken(void **state) {
    (void)state;
    static const char *const cases[] = {"optimizer: {name: sgd, lr: 1e-2}",
                                        "optimizer: {name: adafactor, lr: 1e-2}"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        bench_open(&bench, cases[i]);
        assert_true(isnan(helper_step(&bench.run)->reals[REAL_GRAD_TAKEN]));
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_decay),
        cmocka_unit_test(verify_taken),
        cmocka_unit_test(validate_nothing_taken),
        cmocka_unit_test(validate_lr_of_loops),
        cmocka_unit_test(verify_readback),
        cmocka_unit_test(verify_readback_admits_ignorance),
        cmocka_unit_test(validate_lost_steps),
        cmocka_unit_test(validate_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
