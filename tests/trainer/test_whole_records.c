/* SPDX-License-Identifier: Apache-2.0
 * labels: golden unit
 * Everything that is recorded of an update, part by part, for trainings of every task, optimizer,
 * dtype, schedule and order of phases by turns: tests/golden/whole_records.txt holds one number
 * (FNV-1a) of each part of the records of six updates.
 *
 * Beside the numbers stand rules that need no golden: a phase that did not run in an update has a
 * digest of zeros and one that ran has not; what is not asked for leaves all else as it was; and
 * the epoch and the counter are those that the lists and the batches say.
 *
 * With TWINSTEP_WRITE_GOLDEN=FILE the lines are appended to FILE in place of being compared. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/helper_draws.h"
#include "tests/trainer/helper_train.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/whole_records.txt"
enum { UPDATES = 6, SAMPLES = 18 };

#define UNSCALED "update: [unscale, clip, optimize, log, count, schedule, zero]"

static const struct {
    const char *name, *words;
} kinds[] = {
    {"sft", "task: sft, batch: {size: 6, micro: 2}"},
    {"dpo", "task: dpo, batch: {size: 6, micro: 3}"},
    {"epoch-zero", "task: sft, batch: {size: 8, micro: 2, tail: leak}, loop: {epoch: [zero]}"},
    {"epoch-count", "task: sft, batch: {size: 8, micro: 2, tail: drop}, loop: {epoch: [count]}"},
    {"epoch-all", "task: dpo, batch: {size: 8, micro: 2}, schedule: {name: linear, total: 9}, "
                  "loop: {epoch: [count, schedule, zero]}"},
    {"epoch-alone", "task: sft, batch: {size: 6, micro: 2}, schedule: {name: linear, total: 9}, "
                    "loop: {update: [clip, optimize, log, zero], epoch: [count, schedule]}"},
    {"eval", "task: sft, batch: {size: 6, micro: 2}, schedule: {name: linear, total: 9}, "
             "loop: {update: [clip, optimize, log, zero], eval: [count, schedule], eval_every: 2}"},
    {"recomputed", "task: dpo, batch: {size: 4, micro: 2}, schedule: {name: cosine, total: 7, "
                   "warmup: 2, logged: recomputed, logged_shift: 1}"},
    {"base", "task: sft, batch: {size: 4, micro: 4}, schedule: {name: linear, total: 12, start: "
             "base, origin: 2, increment: 2, shift: 1}"},
    {"sgd", "task: sft, batch: {size: 4, micro: 2}, optimizer: {name: sgd, lr: 1e-1, momentum: "
            "0.9, dampening: 0.5, weight_decay: 0.1}, clip: {max_norm: 0.05}"},
    {"lion", "task: dpo, batch: {size: 4, micro: 2}, optimizer: {name: lion, lr: 1e-3}"},
    {"adafactor", "task: sft, batch: {size: 4, micro: 2}, optimizer: {name: adafactor, lr: 1e-2}"},
    {"bf16", "task: dpo, batch: {size: 6, micro: 2}, numerics: {param: bf16, compute: bf16}"},
    {"master", "task: sft, batch: {size: 6, micro: 2}, numerics: {param: bf16, compute: bf16, "
               "master: f32}"},
    {"f64", "task: sft, batch: {size: 6, micro: 2}, numerics: {param: f64, compute: f64}"},
    {"scaler", "task: sft, batch: {size: 6, micro: 2}, scaler: {kind: dynamic, init_scale: 256, "
               "growth_interval: 2}, loop: {skip: nonfinite, " UNSCALED "}"},
    {"skips", "task: sft, batch: {size: 6, micro: 2}, scaler: {kind: dynamic, init_scale: "
              "1.5e38, backoff_factor: 1e-6}, loop: {skip: nonfinite, on_skip: [log, count, "
              "zero], " UNSCALED "}"},
    {"outlier", "task: sft, batch: {size: 6, micro: 2}, loop: {skip: olmo-outlier, skip_window: "
                "4, skip_sigma: 1e-9}"},
    {"never-zero", "task: sft, batch: {size: 6, micro: 2}, loop: {update: [clip, optimize, log, "
                   "count, schedule]}"},
    {"each-micro", "task: sft, batch: {size: 6, micro: 2}, loop: {micro: [fetch, forward, "
                   "backward, optimize, zero], update: [log, count, schedule]}"},
    {"late", "task: dpo, batch: {size: 6, micro: 2}, schedule: {name: linear, total: 7}, loop: "
             "{update: [count, clip, schedule, optimize, log, zero]}"},
    {"dropout", "task: sft, batch: {size: 6, micro: 2}, dropout: {attention: 0.1, residual: 0.2}"},
    {"mean-of-means", "task: sft, batch: {size: 6, micro: 2}, loss: {divisor: mean-of-means}"},
    {"ranks", "task: sft, batch: {size: 8, micro: 2}, numerics: {shards: 2}, parallel: {ranks: 2}, "
              "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}"},
    {"rank-log", "task: sft, batch: {size: 8, micro: 2}, numerics: {shards: 2}, parallel: {ranks: "
                 "2, logged: rank0}, loop: {update: [reduce, clip, optimize, log, count, schedule, "
                 "zero]}"},
};

/* The parts of a record that are hashed one by one, so that a golden says which of them moved. */
enum part { REALS, INTEGERS, DIGESTS, GROUPS, TENSORS, PHASES, SITES, MICROS, DRAWN, RANKS, PARTS };
static const char *const parts[] = {"reals",  "integers", "digests", "groups", "tensors",
                                    "phases", "sites",    "micros",  "drawn",  "ranks"};

static void add(uint64_t *hash, const void *bytes, size_t size) {
    if (size > 0) *hash = draws_hash(*hash, bytes, size);
}

static void add_record(uint64_t hash[PARTS], const struct run *run, const struct record *r) {
    const struct record_shape *const s = &run->shape;
    add(&hash[REALS], r->reals, sizeof r->reals);
    add(&hash[INTEGERS], r->integers, sizeof r->integers);
    add(&hash[DIGESTS], r->digests, sizeof r->digests);
    add(&hash[GROUPS], r->groups, s->groups * sizeof *r->groups);
    add(&hash[TENSORS], r->tensors, s->tensors * sizeof *r->tensors);
    add(&hash[TENSORS], r->tensor_digests, s->tensors * sizeof *r->tensor_digests);
    add(&hash[PHASES], r->phases, s->phases * sizeof *r->phases);
    add(&hash[SITES], r->sites, s->sites * sizeof *r->sites);
    add(&hash[MICROS], r->micros, s->micros * sizeof *r->micros);
    add(&hash[DRAWN], r->ledger, s->consumers * sizeof *r->ledger);
    add(&hash[DRAWN], r->places, s->streams * sizeof *r->places);
    add(&hash[RANKS], r->rank_digests, s->ranks * sizeof *r->rank_digests);
    add(&hash[RANKS], r->ranks, s->ranks * sizeof *r->ranks);
}

static void hold(const char *name, const uint64_t hash[PARTS]) {
    const char *const written = getenv("TWINSTEP_WRITE_GOLDEN");
    char line[80], read[80];
    FILE *const file = fopen(written != NULL ? written : GOLDEN, written != NULL ? "a" : "r");
    assert_non_null(file);
    for (size_t p = 0; p < PARTS; p++) {
        const size_t named = (size_t)snprintf(line, sizeof line, "%s %s ", name, parts[p]);
        snprintf(line + named, sizeof line - named, "%016" PRIx64 "\n", hash[p]);
        if (written != NULL) {
            assert_true(fputs(line, file) >= 0);
            continue;
        }
        do {
            if (fgets(read, sizeof read, file) == NULL)
                fail_msg("%s %s: not in %s", name, parts[p], GOLDEN);
        } while (strncmp(read, line, named) != 0);
        if (strcmp(read, line) != 0) fail_msg("expected %s got %s", read, line);
    }
    assert_int_equal(fclose(file), 0);
}

static int is_in(const struct key_list *list, enum phase phase) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->item[i] == (uint8_t)phase) return 1;
    return 0;
}

/* What was called in one update, as the run itself tells who watches its phases. */
static uint64_t began[PHASE_TOTAL], ended[PHASE_TOTAL];

static void count_phase(void *context, enum phase phase, int is_end) {
    assert_ptr_equal(context, began);
    if (is_end == 0) assert_true(began[phase] == ended[phase]);
    (is_end ? ended : began)[phase]++;
}

/* Holds which phases ran in an update, and which of them left a digest. Backward leaves none, and
 * optimize has one in every update: that of the LRs that were used, be they none. */
static void hold_phases(const struct config *config, const struct run *run,
                        const struct record *record, int epoch_ends, int eval_comes) {
    static const uint8_t zero[RECORD_DIGEST_BYTES] = {0};
    const int skipped = record->integers[INTEGER_SKIPPED] != 0;
    for (int p = 0; p < PHASE_TOTAL; p++) {
        const enum phase phase = (enum phase)p;
        assert_true(began[p] == ended[p]);
        int runs = is_in(&config->loop.micro, phase);
        runs |= is_in(&config->loop.update, phase) &&
                (!skipped || phase != PHASE_OPTIMIZE || config->loop.skip == 0);
        runs |= epoch_ends && is_in(&config->loop.epoch, phase);
        runs |= eval_comes && is_in(&config->loop.eval, phase);
        if (!skipped && runs != (began[p] > 0))
            fail_msg("update %" PRIu64 ": %s ran %" PRIu64 " times", record->step,
                     phase_name(phase), began[p]);
        const uint8_t slot = run->axes.phase_slot[p];
        if (slot == RUN_NO_SLOT || phase == PHASE_OPTIMIZE) continue;
        const int noted = memcmp(record->phases[slot], zero, sizeof zero) != 0;
        const int notes = phase != PHASE_BACKWARD && phase != PHASE_REDUCE;
        if (noted != (began[p] > 0 && notes) && notes)
            fail_msg("update %" PRIu64 ": %s ran %" PRIu64 " times, and a digest is%s there",
                     record->step, phase_name(phase), began[p], noted ? "" : " not");
    }
    memset(began, 0, sizeof began);
    memset(ended, 0, sizeof ended);
}

static void train(const struct run_options *options, const struct dataset *dataset,
                  const struct config *config, int is_watched, uint64_t hash[PARTS]) {
    struct run run;
    const uint64_t per_epoch = config->batch.tail == TAIL_DROP
                                   ? SAMPLES / config->batch.size
                                   : (SAMPLES + config->batch.size - 1) / config->batch.size;
    for (size_t p = 0; p < PARTS; p++)
        hash[p] = DRAWS_HASH;
    helper_run_open(config, dataset, options, &run);
    memset(began, 0, sizeof began);
    memset(ended, 0, sizeof ended);
    for (uint64_t k = 1; k <= UPDATES; k++) {
        const struct record *const record = helper_step(&run);
        assert_int_equal(record->step, k);
        add_record(hash, &run, record);
        if (!is_watched) continue;
        const int evaluates = config->loop.eval_every > 0 && k % config->loop.eval_every == 0;
        hold_phases(config, &run, record, k % per_epoch == 0, evaluates);
    }
    run_close(&run);
}

static void validate_whole_records(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        uint64_t hash[PARTS], bare[PARTS];
        helper_config(UPDATES, &config,
                      "%s, init: {std: 0.3}, model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, "
                      "mlp: 20, vocab: 19}",
                      kinds[k].words);
        helper_ids_open(&config, 5, SAMPLES, 16, &arena, &dataset);
        struct run_options options = {.tensors = 1,
                                      .phases = 1,
                                      .readback = 1,
                                      .poison = 1,
                                      .steps = UPDATES,
                                      .order_seed = 1,
                                      .at_phase = count_phase,
                                      .at_phase_context = began};
        train(&options, &dataset, &config, 1, hash);
        hold(kinds[k].name, hash);
        options = (struct run_options){.steps = UPDATES, .order_seed = 1};
        train(&options, &dataset, &config, 0, bare);
        /* The root is made of what is always recorded, and so are these. */
        assert_true(bare[INTEGERS] == hash[INTEGERS] && bare[DIGESTS] == hash[DIGESTS]);
        assert_true(bare[DRAWN] == hash[DRAWN] && bare[MICROS] == hash[MICROS]);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_whole_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
