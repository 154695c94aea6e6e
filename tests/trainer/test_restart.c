/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * resume.*: a restart that restores everything must change no bit. Where one thing is not restored,
 * the update after the restart must first differ in the phase in which that thing acts, and the run
 * must continue from what the state would be with that thing put back by hand. Whole experiments
 * with events and restarts must close exactly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiment/experiment_plan.h"
#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

enum { UPDATES = 8, AFTER = 4 };

#define SIZES "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}, init: {std: 0.3}"
#define SCALED                                                                                     \
    "task: sft, batch: {size: 6, micro: 3}, data: {max_len: 16}, dropout: {residual: 0.2}, "       \
    "schedule: {name: cosine, warmup: 3}, optimizer: {lr: 1e-2, weight_decay: 0.1}, "              \
    "scaler: {kind: dynamic, growth_interval: 2, init_scale: 4}, "                                 \
    "loop: {update: [unscale, clip, optimize, log, count, schedule, zero]}"

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *words, const char *restart) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config, SIZES ", %s%s", words, restart);
    const struct run_options options = {.phases = 1,
                                        .tensors = 1,
                                        .readback = 1,
                                        .steps = UPDATES,
                                        .order_seed = bench->config.numerics.order_seed};
    helper_ids_open(&bench->config, 71, 20, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset, &options, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

static struct state_head *head_of(struct bench *bench) {
    return state_head_of(bench->run.state.host);
}

static const struct record *step_to(struct bench *bench, uint64_t update) {
    const struct record *record = NULL;
    while (head_of(bench)->done < update)
        record = helper_step(&bench->run);
    return record;
}

static const struct {
    const char *words;
} subjects[] = {
    {SCALED},
    {SCALED ", rng: {kind: torch}"},
    {"task: dpo, batch: {size: 6, micro: 2}, data: {max_len: 16}, optimizer: {lr: 1e-2}, "
     "numerics: {param: bf16, compute: f32, master: f32}, rng: {data: 'advance 2 at 3, seed 4 at "
     "6'}"},
    {"task: sft, batch: {size: 6, micro: 2}, data: {max_len: 16}, optimizer: {lr: 1e-2}, "
     "numerics: {param: bf16, rounding: stochastic}, loop: {update: [optimize, log, count, "
     "schedule]}"},
    {"task: sft, batch: {size: 6, micro: 2}, data: {max_len: 16}, shuffle: {chunk: 2}, "
     "optimizer: {name: sgd, momentum: 0.9, lr: 1e-2}, numerics: {mode: shuffled, order_seed: 5}"},
};

static void verify_all_restored(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct bench plain, restarted;
        bench_open(&plain, subjects[i].words, "");
        bench_open(&restarted, subjects[i].words, ", resume: {after: 4}");
        for (uint64_t k = 1; k <= UPDATES; k++) {
            const struct record *a = helper_step(&plain.run), *b = helper_step(&restarted.run);
            assert_memory_equal(a->reals, b->reals, sizeof a->reals);
            assert_memory_equal(a->digests, b->digests, sizeof a->digests);
            assert_memory_equal(run_state_host(&plain.run), run_state_host(&restarted.run),
                                plain.run.layout.bytes);
        }
        bench_close(&plain);
        bench_close(&restarted);
    }
}

/* Phases are compared in the order of the loop, not of their numbers. */
static const char *first_phase(struct bench *a, const struct record *x, const struct record *y) {
    static const enum phase order[] = {PHASE_FETCH,   PHASE_FORWARD, PHASE_BACKWARD,
                                       PHASE_UNSCALE, PHASE_CLIP,    PHASE_OPTIMIZE};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        const uint8_t slot = a->run.axes.phase_slot[order[i]];
        if (slot != RUN_NO_SLOT && memcmp(x->phases[slot], y->phases[slot], DIGEST_BYTES) != 0)
            return phase_name(order[i]);
    }
    return "none";
}

static const struct omission {
    const char *words, *restores, *phase;
} omissions[] = {
    {SCALED, "[optimizer, data, rng, scaler]", "optimize"},
    {SCALED, "[schedule, data, rng, scaler]", "optimize"},
    {SCALED, "[schedule, optimizer, rng, scaler]", "fetch"},
    {SCALED, "[schedule, optimizer, data, scaler]", "forward"},
    {SCALED, "[schedule, optimizer, data, rng]", "backward"},
    {SCALED ", rng: {kind: torch}", "[schedule, optimizer, data, scaler]", "forward"},
    {SCALED, "[rng, scaler, data, optimizer, schedule]", "none"},
    /* without dropout no stream is drawn that a restart could lose */
    {"task: sft, batch: {size: 6}, data: {max_len: 16}, optimizer: {lr: 1e-2}",
     "[schedule, optimizer, data, scaler]", "none"},
};

static void verify_omissions(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(omissions); i++) {
        struct bench plain, restarted;
        char restart[128];
        snprintf(restart, sizeof restart, ", resume: {after: %d, restores: %s}", AFTER,
                 omissions[i].restores);
        bench_open(&plain, omissions[i].words, "");
        bench_open(&restarted, omissions[i].words, restart);
        for (uint64_t k = 1; k <= AFTER; k++) {
            (void)helper_step(&plain.run);
            (void)helper_step(&restarted.run);
            assert_memory_equal(run_state_host(&plain.run), run_state_host(&restarted.run),
                                plain.run.layout.bytes);
        }
        const struct record *a = helper_step(&plain.run), *b = helper_step(&restarted.run);
        assert_string_equal(first_phase(&plain, a, b), omissions[i].phase);
        bench_close(&plain);
        bench_close(&restarted);
    }
}

/* ---- by hand ---- */

static void lose_schedule(struct bench *bench, struct bench *fresh) {
    head_of(bench)->n = 0;
    memcpy(head_of(bench)->lr, head_of(fresh)->lr, sizeof head_of(bench)->lr);
}

static void lose_optimizer(struct bench *bench, struct bench *fresh) {
    const struct state_layout *layout = &bench->run.layout;
    head_of(bench)->t = 0;
    for (uint32_t i = 0; i < bench->run.owner_count; i++) {
        const struct state_tensor *tensor = &layout->tensor[bench->run.owner[i]];
        const size_t count = bench->run.table.rows[bench->run.owner[i]].count;
        for (uint32_t s = 0; s < OPTIM_SLOTS_MAX; s++)
            if (tensor->slot_count[s] > 0)
                memcpy(bench->run.state.host + tensor->slot[s],
                       fresh->run.state.host + tensor->slot[s],
                       tensor->slot_count[s] * layout->slots.width);
        /* carriers of bf16 and of f32 are both float */
        if (layout->has_master)
            memcpy(bench->run.state.host + tensor->master, bench->run.state.host + tensor->param,
                   count * sizeof(float));
    }
}

static void lose_data(struct bench *bench, struct bench *fresh) {
    head_of(bench)->sampler = head_of(fresh)->sampler;
}

static void lose_scaler(struct bench *bench, struct bench *fresh) {
    head_of(bench)->scaler = head_of(fresh)->scaler;
}

static void lose_offset(struct bench *bench, struct bench *fresh) {
    head_of(bench)->rng_offset = head_of(fresh)->rng_offset;
}

/* What resume.wrong does. An epoch has 3 updates, so 1 of the epoch of AFTER is behind it. */

static void double_counter(struct bench *bench, struct bench *fresh) {
    (void)step_to(fresh, 2 * AFTER);
    lose_schedule(bench, fresh);
    head_of(bench)->n = 2 * AFTER;
}

static void round_masters(struct bench *bench, struct bench *fresh) {
    const struct state_layout *layout = &bench->run.layout;
    (void)fresh;
    for (uint32_t i = 0; i < bench->run.owner_count; i++) {
        const struct state_tensor *tensor = &layout->tensor[bench->run.owner[i]];
        memcpy(bench->run.state.host + tensor->master, bench->run.state.host + tensor->param,
               bench->run.table.rows[bench->run.owner[i]].count * sizeof(float));
    }
}

static void peek(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    assert_int_equal(head_of(bench)->sampler.position, 1);
    head_of(bench)->sampler.position = 2;
}

static void shift_epoch(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    head_of(bench)->sampler.epoch++;
}

static void skip_again(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    assert_int_equal(head_of(bench)->sampler.position, 0);
    head_of(bench)->sampler.position = 1;
}

static void draw_once(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    head_of(bench)->stream[STREAM_DROPOUT].skew = 1;
}

static void draw_torch_once(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    head_of(bench)->rng_offset += 4;
}

/* As test_partition.c has it: the vector of a group is cut by ranks and read by others, in arrays.
 */
static void gather(struct bench *bench, uint32_t group, int slot, float *numbers, int back,
                   size_t *out_count) {
    const struct run *const run = &bench->run;
    size_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        const struct state_tensor *const tensor = &run->layout.tensor[run->owner[i]];
        unsigned char *const held =
            run->state.host + (slot < 0 ? tensor->master : tensor->slot[slot]);
        if (row->group != group || (slot >= 0 && tensor->slot_count[slot] == 0)) continue;
        if (back)
            memcpy(held, numbers + at, row->count * sizeof *numbers);
        else
            memcpy(numbers + at, held, row->count * sizeof *numbers);
        at += row->count;
    }
    *out_count = at;
}

static void reshard(struct bench *bench, size_t saved, size_t loading) {
    const int slots = (int)bench->run.optimizer->slot_count;
    for (uint32_t group = 0; group < bench->run.table.groups; group++)
        for (int slot = bench->run.layout.has_master ? -1 : 0; slot < slots; slot++) {
            static float old[1 << 16], moved[1 << 16];
            size_t count, written, read;
            memset(old, 0, sizeof old);
            memset(moved, 0, sizeof moved);
            gather(bench, group, slot, old, 0, &count);
            for (written = count; written % (2 * saved) != 0;)
                written++;
            for (read = count; read % (2 * loading) != 0;)
                read++;
            assert_true((count > 0 || slot > 1) && read < COUNT_OF(moved));
            written /= saved;
            read /= loading;
            for (size_t rank = 0; rank < loading && rank < saved; rank++)
                memcpy(moved + rank * read, old + rank * written,
                       (read < written ? read : written) * sizeof *moved);
            gather(bench, group, slot, moved, 1, &count);
        }
}

static void read_two_of_four(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    reshard(bench, 4, 2);
}

static void read_four_of_two(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    reshard(bench, 2, 4);
}

static void read_one_of_three(struct bench *bench, struct bench *fresh) {
    (void)fresh;
    reshard(bench, 3, 1);
}

/* Megatron's buffer as it lies there: all parameters from the last to the first, each at a multiple
 * of 64, a bucket of BUCKET elements and more filled up to a multiple of 384, which 128 and 3 ranks
 * divide. What is written has no filling at the ends, and each parameter is cut out of it at its
 * place in the buffer, with zeros where that ends. */
#define BUCKET 500

static void cut_behind(struct bench *bench, struct bench *fresh) {
    const struct run *const run = &bench->run;
    const int slots = (int)run->optimizer->slot_count;
    int moved = 0;
    (void)fresh;
    for (int slot = run->layout.has_master ? -1 : 0; slot < slots; slot++) {
        static float written[1 << 17];
        size_t place[64], at = 0, first = 0, length = 0;
        memset(written, 0, sizeof written);
        assert_true(run->owner_count <= COUNT_OF(place));
        for (uint32_t i = run->owner_count; i-- > 0;) {
            const struct param_row *const row = &run->table.rows[run->owner[i]];
            const struct state_tensor *const tensor = &run->layout.tensor[run->owner[i]];
            const size_t offset = slot < 0 ? tensor->master : tensor->slot[slot];
            for (; at % 64 != 0; at++)
                length++;
            place[i] = at;
            moved |= at != length;
            assert_true(length + row->count < COUNT_OF(written));
            memcpy(written + length, run->state.host + offset, row->count * sizeof *written);
            at += row->count;
            length += row->count;
            if (at - first < BUCKET) continue;
            while (at % 384 != 0)
                at++;
            first = at;
        }
        assert_true(at < COUNT_OF(written)); /* zeros behind `length` */
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct state_tensor *const tensor = &run->layout.tensor[run->owner[i]];
            memcpy(run->state.host + (slot < 0 ? tensor->master : tensor->slot[slot]),
                   written + place[i], run->table.rows[run->owner[i]].count * sizeof *written);
        }
    }
    assert_true(moved);
}

#define MASTERS                                                                                    \
    "task: dpo, batch: {size: 6, micro: 2}, data: {max_len: 16}, optimizer: {lr: 1e-2}, "          \
    "numerics: {param: bf16, compute: f32, master: f32}"

/* Two groups of parameters: matrices decay and norms do not. */
#define RANKS(count)                                                                               \
    "task: sft, batch: {size: 8, micro: 2}, data: {max_len: 16}, optimizer: {lr: 1e-2, "           \
    "weight_decay: 0.1, decay: matrices}, numerics: {param: bf16, compute: f32, master: f32, "     \
    "shards: 4}, parallel: {ranks: " #count "}, "                                                  \
    "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}"

#define TORCH ", rng: {kind: torch}"

static const struct {
    const char *words, *resume;
    void (*lose)(struct bench *bench, struct bench *fresh);
    uint64_t after; /* the update after which the hand acts */
    int drawn;      /* the restart draws the order of an epoch, which a hand does not: the ledgers
                       say so, and the roots */
} by_hand[] = {
    {SCALED, "restores: [optimizer, data, rng, scaler]", lose_schedule, AFTER, 0},
    {SCALED, "restores: [schedule, data, rng, scaler]", lose_optimizer, AFTER, 0},
    {MASTERS, "restores: [schedule, data, rng, scaler]", lose_optimizer, AFTER, 0},
    {SCALED, "restores: [schedule, optimizer, rng, scaler]", lose_data, AFTER, 0},
    {SCALED, "restores: [schedule, optimizer, data, rng]", lose_scaler, AFTER, 0},
    {SCALED TORCH, "restores: [schedule, optimizer, data, scaler]", lose_offset, AFTER, 0},
    {SCALED, "wrong: [counter-doubled]", double_counter, AFTER, 0},
    {MASTERS, "wrong: [masters-bf16]", round_masters, AFTER, 0},
    {SCALED, "wrong: [batch-peeked]", peek, AFTER, 0},
    {MASTERS, "wrong: [batch-peeked]", peek, AFTER, 0},
    {SCALED, "wrong: [epoch-shifted]", shift_epoch, AFTER, 1},
    {SCALED, "wrong: [skip-every-epoch]", skip_again, 6, 1},
    {SCALED, "wrong: [rng-before-skip]", draw_once, AFTER, 0},
    {SCALED TORCH, "wrong: [rng-before-skip]", draw_torch_once, AFTER, 0},
    {RANKS(2), "wrong: [shards-by-index], ranks: 4", read_two_of_four, AFTER, 0},
    {RANKS(4), "wrong: [shards-by-index], ranks: 2", read_four_of_two, AFTER, 0},
    {MASTERS, "wrong: [shards-by-index], ranks: 3", read_one_of_three, AFTER, 0},
    {MASTERS, "wrong: [padded-offsets], ranks: 3, bucket: 500", cut_behind, AFTER, 0},
    {RANKS(2), "wrong: [padded-offsets], ranks: 3, bucket: 500", cut_behind, AFTER, 0},
};

/* Compares states up to the streams' own bytes, which a run without a restart does not have. */
static void verify_by_hand(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(by_hand); i++) {
        struct bench plain, restarted, fresh;
        char restart[128];
        snprintf(restart, sizeof restart, ", resume: {after: %d, %s}", AFTER, by_hand[i].resume);
        bench_open(&plain, by_hand[i].words, "");
        bench_open(&fresh, by_hand[i].words, "");
        bench_open(&restarted, by_hand[i].words, restart);
        (void)step_to(&plain, by_hand[i].after);
        by_hand[i].lose(&plain, &fresh);
        /* what is derived from the state follows it */
        unsigned char *kept;
        assert_int_equal(arena_take(&fresh.arena, plain.run.layout.bytes, 1, "test", &kept),
                         STATUS_OK);
        assert_int_equal(run_snapshot(&plain.run, kept), STATUS_OK);
        assert_int_equal(run_restore(&plain.run, kept), STATUS_OK);
        (void)step_to(&plain, UPDATES);
        (void)step_to(&restarted, UPDATES);
        memset(head_of(&restarted)->stream, 0, sizeof head_of(&restarted)->stream);
        memset(head_of(&plain)->stream, 0, sizeof head_of(&plain)->stream);
        if (by_hand[i].drawn) head_of(&restarted)->root = head_of(&plain)->root;
        assert_memory_equal(run_state_host(&plain.run), run_state_host(&restarted.run),
                            plain.run.layout.bytes);
        bench_close(&fresh);
        bench_close(&plain);
        bench_close(&restarted);
    }
}

/* From the restart on the rates are those of a training whose peak is the rate that the checkpoint
 * held. */
static void verify_peak(void **state) {
    (void)state;
    static const char words[] = "task: sft, batch: {size: 6}, data: {max_len: 16}, "
                                "schedule: {name: cosine, warmup: 1}, optimizer: {lr: %s}";
    char plain[256], lower[256], rate[64];
    struct bench restarted, like;
    snprintf(plain, sizeof plain, words, "1e-2");
    bench_open(&restarted, plain, ", resume: {after: 4, wrong: [peak-overwritten]}");
    (void)step_to(&restarted, AFTER);
    const double held = head_of(&restarted)->lr[0];
    snprintf(rate, sizeof rate, "%.17g", held);
    snprintf(lower, sizeof lower, words, rate);
    bench_open(&like, lower, "");
    assert_true(held > 0.0 && held < 1e-2);
    (void)step_to(&like, AFTER);
    while (head_of(&like)->done < UPDATES) {
        const struct record *a = helper_step(&restarted.run), *b = helper_step(&like.run);
        assert_true(a->groups[0][GROUP_LR_APPLIED] == b->groups[0][GROUP_LR_APPLIED]);
    }
    bench_close(&restarted);
    bench_close(&like);
}

/* The first update after the restart decays as the restarted job was told, all others as the
 * checkpoint has it. */
static void verify_late_decay(void **state) {
    (void)state;
    static const char words[] = "task: sft, batch: {size: 6}, data: {max_len: 16}, "
                                "optimizer: {lr: 1e-2, weight_decay: 0.1}";
    struct bench late, plain, other;
    bench_open(&late, words, ", resume: {after: 4, wrong: [decay-late], weight_decay: 0.5}");
    bench_open(&plain, words, ", resume: {after: 4, weight_decay: 0.5}");
    bench_open(&other,
               "task: sft, batch: {size: 6}, data: {max_len: 16}, "
               "optimizer: {lr: 1e-2, weight_decay: 0.5}",
               "");
    for (uint64_t k = 1; k <= UPDATES; k++) {
        const struct record *const a = helper_step(&late.run), *const b = helper_step(&plain.run);
        if (k <= AFTER) assert_memory_equal(a->digests, b->digests, sizeof a->digests);
        assert_true(a->groups[0][GROUP_WD_APPLIED] == (k == AFTER + 1 ? 0.5 : 0.1));
        assert_true(b->groups[0][GROUP_WD_APPLIED] == 0.1);
    }
    /* what the one update did: that of a training with the other decay, from the same state */
    unsigned char *kept;
    struct bench base;
    bench_open(&base, words, "");
    (void)step_to(&base, AFTER);
    assert_int_equal(arena_take(&base.arena, base.run.layout.bytes, 1, "test", &kept), STATUS_OK);
    assert_int_equal(run_snapshot(&base.run, kept), STATUS_OK);
    assert_int_equal(run_restore(&other.run, kept), STATUS_OK);
    const struct record *const right = helper_step(&other.run);
    bench_close(&late);
    bench_open(&late, words, ", resume: {after: 4, wrong: [decay-late], weight_decay: 0.5}");
    const struct record *const found = step_to(&late, AFTER + 1);
    assert_memory_equal(right->digests[DIGEST_WEIGHTS], found->digests[DIGEST_WEIGHTS],
                        DIGEST_BYTES);
    bench_close(&base);
    bench_close(&late);
    bench_close(&plain);
    bench_close(&other);
}

/* ---- experiments ---- */

static const struct {
    const char *common, *arms, *causes[2], *phase;
    int64_t first_step;
    uint64_t closure_from;
} experiments[] = {
    {"dropout: {residual: 0.2}",
     "{a: {}, b: {rng: {dropout: advance 1 at 2}}}",
     {"rng", NULL},
     "forward",
     2,
     2},
    {"dropout: {residual: 0.2}, rng: {kind: torch}",
     "{a: {rng: {dropout: seed 5 at 3}}, b: {rng: {dropout: 'save x at 1, load x at 3'}}}",
     {"rng", NULL},
     "forward",
     3,
     1},
    {"data: {max_len: 16}",
     "{a: {}, b: {rng: {data: advance 1 at 2}}}",
     {"data-order", NULL},
     "fetch",
     2,
     2},
    /* arms that swap: each is the other from there on, but for the weights */
    {"dropout: {residual: 0.2}",
     "{a: {rng: {dropout: take b at 3}}, b: {dropout: {seed: 9}, rng: {dropout: take a at 3}}}",
     {"rng", NULL},
     "forward",
     1,
     1},
    {"dropout: {residual: 0.2}",
     "{a: {}, b: {resume: {after: 2, restores: [optimizer, data, rng]}}}",
     {"resume", NULL},
     "optimize",
     3,
     3},
    {"dropout: {residual: 0.2}",
     "{a: {}, b: {resume: {after: 2, wrong: [batch-peeked, rng-before-skip]}}}",
     {"resume", NULL},
     "fetch",
     3,
     3},
    {"dropout: {residual: 0.2}",
     "{a: {}, b: {resume: {after: 2, wrong: [shards-by-index], ranks: 3}}}",
     {"resume", NULL},
     "optimize",
     3,
     3},
    {"data: {max_len: 16}",
     "{a: {}, b: {resume: {after: 2, wrong: [decay-late], weight_decay: 0.5}}}",
     {"resume", NULL},
     "optimize",
     3,
     3},
    /* the states of the arms have another layout, so the full hybrid begins at its own start */
    {"dropout: {residual: 0.2}",
     "{a: {}, b: {resume: {after: 2, wrong: [peak-overwritten]}}}",
     {"resume", NULL},
     "optimize",
     3,
     0},
    {"dropout: {residual: 0.2}",
     "{a: {resume: {after: 1}}, b: {rng: {data: seed 3 at 2}, resume: {after: 2, restores: []}}}",
     {"data-order", "resume"},
     "fetch",
     2,
     2},
};

#define BY_INDEX "[shards-by-index], ranks: 3"

static const struct {
    const char *wrong, *common, *said;
} refused[] = {
    {BY_INDEX, "optimizer: {name: adafactor}",
     "case.yaml:4:45: error: resume.wrong: shards-by-index needs an optimizer whose elements stand "
     "alone, and adafactor looks at whole tensors, which no shard holds"},
    {BY_INDEX, "optimizer: {name: sgd}",
     "case.yaml:4:45: error: resume.wrong: shards-by-index needs moments "
     "or masters, and this sgd keeps neither"},
    {BY_INDEX, "optimizer: {name: sgd, momentum: 0.9}", NULL},
    {BY_INDEX, "optimizer: {name: sgd}, numerics: {param: bf16, master: f32}", NULL},
    {BY_INDEX, "optimizer: {name: lion}", NULL},
    {"[padded-offsets]", "seed: 3",
     "case.yaml: error: arm b: resume.bucket: expected a bucket whose end is filled up before "
     "another begins, with padded-offsets: each of 132544 parameters in buckets of 40000000 is "
     "read where it was written"},
    {"[padded-offsets], bucket: 500", "seed: 3", NULL},
    /* the first bucket ends behind the embedding, the buffer's last tensor */
    {"[padded-offsets], bucket: 132500", "seed: 3",
     "case.yaml:4:71: error: resume.bucket: expected a bucket whose end is filled up before "
     "another begins, with padded-offsets: each of 132544 parameters in buckets of 132500 is "
     "read where it was written"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        char text[512];
        struct arena arena = ARENA_EMPTY;
        const struct schema *schema;
        struct scenario *scenario;
        const int length = snprintf(text, sizeof text,
                                    "twinstep: 1\nsteps: 4\narms: {a: {}, b: {resume: {after: 2,\n"
                                    "                                     wrong: %s}}}\n"
                                    "common: {%s}\n",
                                    refused[i].wrong, refused[i].common);
        assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
        const enum status status =
            scenario_parse(&arena, schema, "case.yaml", text, (size_t)length, NULL, 0, &scenario);
        assert_int_equal(status, refused[i].said == NULL ? STATUS_OK : STATUS_INPUT);
        if (refused[i].said != NULL) assert_string_equal(status_text(), refused[i].said);
        arena_close(&arena);
    }
}

static void check_experiment(size_t i, const char *folder) {
    char text[2048], path[512], source[HELPER_PATH_SIZE + 32];
    char data[HELPER_PATH_SIZE];
    const char *overrides[] = {source};
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    struct judgement judgement;
    const struct schema *schema;
    helper_ids_write(TASK_SFT, 19, 1, 24, 16, data);
    snprintf(source, sizeof source, "common.data.text=%s", data);
    snprintf(path, sizeof path, "%s/case.h5", folder);
    const int length = snprintf(text, sizeof text,
                                "twinstep: 1\nname: case\nsteps: 4\ncommon: {" SIZES
                                ", task: sft, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-2}, "
                                "schedule: {name: cosine, warmup: 1}, %s}\narms: %s\n",
                                experiments[i].common, experiments[i].arms);
    assert_true(length > 0 && (size_t)length < sizeof text);
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    if (scenario_parse(&arena, schema, "case.yaml", text, (size_t)length, overrides,
                       COUNT_OF(overrides), &scenario) != STATUS_OK)
        fail_msg("%s", status_text());
    const struct experiment_options options = {
        .path = path, .reproducible = 1, .schema = schema, .scenario = scenario};
    if (experiment_run(&options, &arena, &judgement) != STATUS_OK) fail_msg("%s", status_text());
    uint32_t causes = 0;
    for (; causes < 2 && experiments[i].causes[causes] != NULL; causes++)
        ;
    assert_int_equal(judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(judgement.closure, CLOSURE_EXACT);
    assert_int_equal(judgement.closure_from, experiments[i].closure_from);
    assert_int_equal(judgement.first_step, experiments[i].first_step);
    assert_string_equal(judgement.first_phase, experiments[i].phase);
    assert_int_equal(judgement.cause_count, causes);
    unlink(path);
    unlink(data);
    arena_close(&arena);
}

static void verify_experiments(void **state) {
    (void)state;
    char folder[256];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/twinstep-restart-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < COUNT_OF(experiments); i++)
        check_experiment(i, folder);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- the floor of arms whose orders of sums differ by events ---- */

static const struct {
    const char *b;
    int floor;
} floors[] = {
    {"{}", FLOOR_EXACT},
    {"{rng: {order: advance 1 at 2}}", FLOOR_PERMUTATION},
    {"{rng: {order: seed 6 at 2}}", FLOOR_PERMUTATION},
    {"{resume: {after: 2, restores: [data]}}", FLOOR_PERMUTATION},
    {"{resume: {after: 2}}", FLOOR_EXACT},
};

/* Replicates draw orders of their own, on which no event of an arm acts. */
static void verify_floors(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(floors); i++) {
        char text[512];
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        struct experiment_plan plan;
        const struct schema *schema;
        uint32_t replicates = 0;
        const int length = snprintf(text, sizeof text,
                                    "twinstep: 1\nsteps: 4\ncommon: {numerics: {mode: shuffled, "
                                    "order_seed: 5}}\narms: {a: {}, b: %s}\n",
                                    floors[i].b);
        assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
        assert_int_equal(
            scenario_parse(&arena, schema, "case.yaml", text, (size_t)length, NULL, 0, &scenario),
            STATUS_OK);
        assert_int_equal(experiment_plan_open(schema, scenario, &arena, &plan), STATUS_OK);
        assert_int_equal(plan.floor, floors[i].floor);
        for (uint32_t r = 0; r < plan.run_count; r++) {
            if (plan.runs[r].kind != PLANNED_REPLICATE) continue;
            replicates++;
            assert_string_equal(plan.runs[r].config.rng.order, "none");
            assert_int_not_equal(plan.runs[r].config.numerics.order_seed, 5);
        }
        assert_int_equal(replicates != 0, floors[i].floor != FLOOR_EXACT);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_all_restored), cmocka_unit_test(verify_omissions),
        cmocka_unit_test(verify_by_hand),      cmocka_unit_test(verify_experiments),
        cmocka_unit_test(verify_peak),         cmocka_unit_test(verify_late_decay),
        cmocka_unit_test(validate_refusals),   cmocka_unit_test(verify_floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
