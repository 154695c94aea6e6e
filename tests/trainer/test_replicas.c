/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Data-parallel ranks that part, against single processes without ranks. In mode order-free a sum
 * is exact, so what rank r takes in under parallel.sync `first` is the gradient of a process that
 * sees the first micro-batch of every rank once and the others of rank r P times. All rows have
 * equally many labels, so both divide by one number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

enum { LENGTH = 8, SIZE_MAX_HERE = 16, RANKS_MAX = 4 };

struct deal {
    const char *words;
    uint32_t ranks, shards, micro, size; /* P divides the size, and V leaves equal shares */
};

static const struct deal deals[] = {
    {"task: sft", 2, 2, 1, 4},
    {"task: sft", 4, 4, 1, 8},
    {"task: sft, numerics: {compute: bf16, gradient: bf16}, dropout: {residual: 0.1}", 2, 8, 2, 12},
    {"task: sft, numerics: {param: bf16, compute: bf16, master: f32}", 3, 256, 1, 6},
};

/* Opens rows of these samples. What a sample holds is a function of its number. */
static void open_rows(const struct config *config, const uint32_t *samples, uint32_t count,
                      struct arena *arena, struct dataset *out) {
    char text[1 << 14], path[HELPER_PATH_SIZE], *at = text;
    for (uint32_t i = 0; i < count; i++) {
        char ids[128], *end = ids;
        for (uint32_t j = 0; j < LENGTH; j++)
            end += sprintf(end, "%s%u", j == 0 ? "" : ", ",
                           (samples[i] * 7 + samples[i] * samples[i] * j + 3 * j * j) % 19);
        at += sprintf(at, "{\"input_ids\": [%s], \"labels\": [%s]}\n", ids, ids);
    }
    helper_file_write(text, (size_t)(at - text), path);
    struct dataset_options options = run_dataset_options(config);
    options.source = path;
    const enum status status = dataset_open(&options, arena, out);
    unlink(path);
    assert_int_equal(status, STATUS_OK);
}

static void config_of(const struct deal *deal, struct config *out) {
    helper_config(2, out,
                  "%s, data: {shuffle: false}, init: {std: 0.3}, batch: {size: %u, micro: %u}, "
                  "model: {family: llama, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
                  "vocab: 19, tied: true}, clip: {max_norm: 0.5}, optimizer: {lr: 1e-3}, loop: "
                  "{update: [reduce, clip, optimize, log, count, schedule, zero]}",
                  deal->words, deal->size, deal->micro);
}

static const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = 3};

struct keys {
    int32_t sync, keeps;
};
static const struct keys every = {SYNC_EVERY, KEEPS_ALL}, first = {SYNC_FIRST, KEEPS_ALL},
                         last = {SYNC_EVERY, KEEPS_LAST};

/* Opens a run of ranks over samples 0 to 2 size - 1, for two updates. */
static void open_ranks(const struct deal *deal, struct keys keys, int32_t mode, struct arena *arena,
                       struct dataset *dataset, struct run *out) {
    uint32_t samples[2 * SIZE_MAX_HERE];
    struct config config;
    config_of(deal, &config);
    config.parallel.sync = keys.sync;
    config.parallel.keeps = keys.keeps;
    config.parallel.ranks = config.loss.ranks = deal->ranks;
    config.numerics.shards = deal->shards;
    config.numerics.mode = mode;
    for (uint32_t i = 0; i < 2 * deal->size; i++)
        samples[i] = i;
    open_rows(&config, samples, 2 * deal->size, arena, dataset);
    helper_run_open(&config, dataset, &options, out);
}

/* The samples that a process sees whose gradient is that of a rank under sync `first`. */
static void samples_of_rank(const struct deal *deal, uint32_t rank, uint32_t *out) {
    const uint32_t share = deal->size / deal->ranks;
    for (uint32_t r = 0; r < deal->ranks; r++)
        for (uint32_t i = 0; i < deal->micro; i++)
            *out++ = r * share + i;
    for (uint32_t i = deal->micro; i < share; i++)
        for (uint32_t r = 0; r < deal->ranks; r++)
            *out++ = rank * share + i;
}

/* The process that is like rank `rank`: its weights after update 1, and the losses of all
 * micro-batches of update 2 with these weights. */
static void verify_rank(const struct deal *deal, uint32_t rank, const uint8_t *digest,
                        const double *losses) {
    uint32_t samples[2 * SIZE_MAX_HERE];
    const uint32_t share = deal->size / deal->ranks / deal->micro;
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    config_of(deal, &config);
    config.numerics.mode = MODE_ORDER_FREE;
    samples_of_rank(deal, rank, samples);
    for (uint32_t i = 0; i < deal->size; i++)
        samples[deal->size + i] = deal->size + i;
    open_rows(&config, samples, 2 * deal->size, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    const struct record *record = helper_step(&run);
    assert_memory_equal(record->digests[DIGEST_WEIGHTS], digest, DIGEST_BYTES);
    record = helper_step(&run);
    for (uint32_t m = rank * share; m < (rank + 1) * share; m++)
        assert_memory_equal(&record->micros[m][MICRO_LOSS], &losses[m], sizeof *losses);
    run_close(&run);
    arena_close(&arena);
}

/* Dropout draws by the canonical sample, which a process like a rank has elsewhere. */
static int draws(const struct deal *deal) {
    return strstr(deal->words, "dropout") != NULL;
}

static void corroborate_first(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT_OF(deals); d++) {
        const struct deal *const deal = &deals[d];
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        uint8_t digests[RANKS_MAX][DIGEST_BYTES];
        double losses[SIZE_MAX_HERE];
        if (draws(deal)) continue;
        open_ranks(deal, first, MODE_ORDER_FREE, &arena, &dataset, &run);
        const struct record *record = helper_step(&run);
        assert_int_equal(run.shape.ranks, deal->ranks);
        for (uint32_t r = 0; r < deal->ranks; r++) {
            memcpy(digests[r], record->rank_digests[r][RANK_DIGEST], DIGEST_BYTES);
            assert_int_equal(record->ranks[r][RANK_FIRST_TENSOR], r == 0 ? -1 : 0);
            assert_memory_not_equal(record->digests[DIGEST_WEIGHTS], digests[r], DIGEST_BYTES);
        }
        record = helper_step(&run);
        for (uint32_t m = 0; m < deal->size / deal->micro; m++)
            losses[m] = record->micros[m][MICRO_LOSS];
        for (uint32_t r = 0; r < deal->ranks; r++)
            verify_rank(deal, r, digests[r], losses);
        run_close(&run);
        arena_close(&arena);
    }
}

/* With one micro-batch a rank there is nothing that was not joined, in any mode. */
static void verify_one_micro(void **state) {
    static const int32_t modes[] = {MODE_INVARIANT, MODE_ORDER_FREE};
    (void)state;
    for (size_t d = 0; d < COUNT_OF(deals) * COUNT_OF(modes); d++) {
        struct deal deal = deals[d / COUNT_OF(modes)];
        const int32_t mode = modes[d % COUNT_OF(modes)];
        const struct keys sync[] = {every, first};
        uint8_t roots[2][DIGEST_BYTES];
        deal.micro = deal.size / deal.ranks;
        for (int i = 0; i < 2; i++) {
            struct arena arena = ARENA_EMPTY;
            struct dataset dataset;
            struct run run;
            open_ranks(&deal, sync[i], mode, &arena, &dataset, &run);
            const struct record *record = helper_step(&run);
            record = helper_step(&run);
            for (uint32_t r = 0; r < deal.ranks; r++) {
                assert_memory_equal(record->rank_digests[r][RANK_DIGEST],
                                    record->digests[DIGEST_WEIGHTS], DIGEST_BYTES);
                assert_int_equal(record->ranks[r][RANK_FIRST_TENSOR], -1);
            }
            memcpy(roots[i], record->digests[DIGEST_ROOT], DIGEST_BYTES);
            run_close(&run);
            arena_close(&arena);
        }
        assert_memory_equal(roots[0], roots[1], DIGEST_BYTES);
    }
}

/* A state holds what every rank has: a run that goes on from it has the bits of one that did not
 * stop. */
static void verify_state(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT_OF(deals); d++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset datasets[2];
        struct run runs[2];
        const unsigned char *bytes;
        for (int i = 0; i < 2; i++)
            open_ranks(&deals[d], first, MODE_INVARIANT, &arena, &datasets[i], &runs[i]);
        helper_step(&runs[0]);
        assert_int_equal(run_read_state(&runs[0], &bytes), STATUS_OK);
        assert_int_equal(run_restore(&runs[1], bytes), STATUS_OK);
        const struct record *const on = helper_step(&runs[0]);
        const struct record *const anew = helper_step(&runs[1]);
        assert_memory_equal(on->digests, anew->digests, sizeof on->digests);
        assert_memory_equal(on->rank_digests, anew->rank_digests,
                            deals[d].ranks * sizeof *on->rank_digests);
        for (int i = 0; i < 2; i++)
            run_close(&runs[i]);
        arena_close(&arena);
    }
}

/* Of two micro-batches a rank, the last alone counts: half of the gradient of a process that sees
 * each of its samples twice. The loss is that of all. */
static void corroborate_last(void **state) {
    static const struct deal deal = {"task: sft", 4, 4, 1, 8};
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run kept, like;
    struct config config;
    uint32_t samples[8];
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        samples[i] = i | 1;
    open_ranks(&deal, last, MODE_ORDER_FREE, &arena, &dataset, &kept);
    const struct record *const record = helper_step(&kept);
    config_of(&deal, &config);
    config.numerics.mode = MODE_ORDER_FREE;
    open_rows(&config, samples, 8, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &like);
    const struct record *const twice = helper_step(&like);
    for (uint32_t t = 0; t < kept.shape.tensors; t++)
        assert_true(2 * record->tensors[t][TENSOR_GRAD_NORM] ==
                    twice->tensors[t][TENSOR_GRAD_NORM]);
    run_close(&like);
    open_ranks(&deal, every, MODE_ORDER_FREE, &arena, &dataset, &like);
    const double loss = helper_step(&like)->reals[REAL_LOSS];
    assert_true(loss == record->reals[REAL_LOSS]);
    run_close(&like);
    run_close(&kept);
    arena_close(&arena);
}

/* The squares of the rows of a tensor that rank r of P owns, and whether an element is one of
 * them. */
static int owns(const struct param_row *row, size_t element, uint32_t rank, uint32_t ranks) {
    const size_t rows = (size_t)row->shape[0], width = row->count / rows;
    return element / width / ((rows + ranks - 1) / ranks) == rank;
}

/* Takes a run to its clipped gradient; max_norm 0: to the gradient as it was before. */
static void clip_once(uint32_t ranks, enum clip_over over, double max_norm, struct arena *arena,
                      struct dataset *dataset, struct run *out) {
    struct config config;
    helper_config(
        1, &config,
        "task: sft, batch: {size: 9, micro: 1}, numerics: {shards: 16}, init: {std: "
        "0.3}, parallel: {ranks: %u}, clip: {over: local, max_norm: 0.5}, model: {family: "
        "llama, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, loop: "
        "{update: [reduce, clip, optimize, log, count, schedule, zero]}",
        ranks);
    config.clip.max_norm = max_norm;
    config.clip.over = (int32_t)over;
    helper_ids_open(&config, 5, 9, 16, arena, dataset);
    helper_run_open(&config, dataset, &options, out);
    assert_int_equal(sampler_plan_update(&out->sampler, run_head(out)->sampler, &out->plan),
                     STATUS_OK);
    measure_begin(out);
    while (out->micro < out->plan.micros)
        for (int phase = PHASE_FETCH; phase <= PHASE_BACKWARD; phase++)
            assert_int_equal(phase_run(out, (enum phase)phase), STATUS_OK);
    assert_int_equal(phase_run(out, PHASE_REDUCE), STATUS_OK);
    assert_int_equal(phase_run(out, PHASE_CLIP), STATUS_OK);
}

/* Each rank clips its rows by their own norm: here with sums of long double, whose rounding does
 * not show in a coefficient of 24 bits. */
static void validate_local_norms(void **state) {
    static const uint32_t counts[] = {2, 3, 5};
    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset datasets[2];
        struct run before, clipped;
        clip_once(counts[c], OVER_LOCAL, 0.0, &arena, &datasets[0], &before);
        clip_once(counts[c], OVER_LOCAL, 0.5, &arena, &datasets[1], &clipped);
        for (uint32_t rank = 0; rank < counts[c]; rank++) {
            long double squares = 0;
            for (uint32_t i = 0; i < 2 * before.owner_count; i++) {
                const uint32_t row_index = before.owner[i % before.owner_count];
                const struct param_row *const row = &before.table.rows[row_index];
                const size_t at = before.layout.tensor[row_index].gradient;
                const float *const g = (const float *)run_at(&before, at);
                const float *const got = (const float *)run_at(&clipped, at);
                const double norm = sqrt((double)squares);
                const float factor = (float)(0.5 / (norm + 1e-6) < 1 ? 0.5 / (norm + 1e-6) : 1);
                for (size_t e = 0; e < row->count; e++) {
                    if (!owns(row, e, rank, counts[c])) continue;
                    if (i < before.owner_count)
                        squares += (long double)g[e] * g[e];
                    else
                        assert_true(got[e] == (float)((double)g[e] * (double)factor));
                }
            }
            assert_true(sqrt((double)squares) > 0.5);
            if (rank > 0) continue;
            const double norm = clipped.record.reals[REAL_GRAD_NORM];
            assert_true(fabs(norm - sqrt((double)squares)) < 1e-12 * norm);
        }
        run_close(&before);
        run_close(&clipped);
        arena_close(&arena);
    }
}

/* All ranks clip by the mean of the norms of their rows, as DeepSpeed's clip_grad_norm_ does (its
 * issue 8475 has norms of sqrt(20) and sqrt(100) on two ranks averaged to 7.236 in the place of
 * sqrt(120)); the sums are those of long double, as above. */
static void validate_averaged_norms(void **state) {
    static const uint32_t counts[] = {2, 3, 5};
    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset datasets[2];
        struct run before, clipped;
        long double mean = 0, all = 0;
        clip_once(counts[c], OVER_AVERAGED, 0.0, &arena, &datasets[0], &before);
        clip_once(counts[c], OVER_AVERAGED, 0.5, &arena, &datasets[1], &clipped);
        for (uint32_t rank = 0; rank < counts[c]; rank++) {
            long double squares = 0;
            for (uint32_t i = 0; i < before.owner_count; i++) {
                const struct param_row *const row = &before.table.rows[before.owner[i]];
                const float *const g =
                    (const float *)run_at(&before, before.layout.tensor[before.owner[i]].gradient);
                for (size_t e = 0; e < row->count; e++)
                    if (owns(row, e, rank, counts[c])) squares += (long double)g[e] * g[e];
            }
            mean += sqrtl(squares) / counts[c];
            all += squares;
        }
        const double norm = clipped.record.reals[REAL_GRAD_NORM];
        assert_true(before.record.reals[REAL_GRAD_NORM] == norm);
        assert_true(fabs(norm - (double)mean) < 1e-12 * norm);
        assert_true(norm > 0.5 && norm < 0.8 * sqrt((double)all));
        const float factor = (float)(0.5 / (norm + 1e-6));
        assert_true(clipped.record.reals[REAL_CLIP_COEF] == (double)factor);
        for (uint32_t i = 0; i < before.owner_count; i++) {
            const size_t at = before.layout.tensor[before.owner[i]].gradient;
            const float *const g = (const float *)run_at(&before, at);
            const float *const got = (const float *)run_at(&clipped, at);
            for (size_t e = 0; e < before.table.rows[before.owner[i]].count; e++)
                assert_true(got[e] == (float)((double)g[e] * (double)factor));
        }
        run_close(&before);
        run_close(&clipped);
        arena_close(&arena);
    }
}

/* Of two micro-batches a rank: rank 0 logs P times the share of its own, the sum is P times the
 * mean, and no weight differs. With `same` every rank takes the samples of rank 0, so a micro-batch
 * of any rank has the loss of rank 0's. */
static void verify_logged_and_fed(void **state) {
    static const struct deal deal = {"task: sft", 4, 4, 1, 8};
    double losses[4], micros[4][8];
    uint8_t weights[4][DIGEST_BYTES], batches[4][DIGEST_BYTES];
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct run run;
        uint32_t samples[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        config_of(&deal, &config);
        config.parallel.ranks = config.loss.ranks = 4;
        config.numerics.shards = 4;
        config.parallel.logged = i < 3 ? i : RANKS_LOG_MEAN;
        config.parallel.feeds = i < 3 ? FEEDS_OWN : FEEDS_SAME;
        open_rows(&config, samples, 8, &arena, &dataset);
        helper_run_open(&config, &dataset, &options, &run);
        const struct record *const record = helper_step(&run);
        losses[i] = record->reals[REAL_LOSS];
        memcpy(weights[i], record->digests[DIGEST_WEIGHTS], DIGEST_BYTES);
        memcpy(batches[i], record->digests[DIGEST_BATCH], DIGEST_BYTES);
        for (int m = 0; m < 8; m++)
            micros[i][m] = record->micros[m][MICRO_LOSS];
        run_close(&run);
        arena_close(&arena);
    }
    const double loss = losses[RANKS_LOG_MEAN];
    assert_true(losses[RANKS_LOG_FIRST] == 4 * (micros[0][0] + micros[0][1]));
    assert_true(losses[RANKS_LOG_FIRST] != loss);
    assert_true(losses[RANKS_LOG_SUM] == 4 * loss);
    for (int i = 1; i < 3; i++)
        assert_memory_equal(weights[i], weights[0], DIGEST_BYTES);
    for (int m = 0; m < 8; m++)
        assert_true(micros[3][m] == micros[0][m % 2]);
    assert_memory_not_equal(batches[3], batches[0], DIGEST_BYTES);
}

/* Bugs that one rank imitates of many, with the keys that say how many: a run of so many ranks has
 * the imitation's bits, and not those of a run without the bug. */
static void corroborate_imitations(void **state) {
    static const char loop[] =
        "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}, ";
    static const struct {
        const char *sound, *bug, *imitated, *loop;
    } rows[] = {
        {"task: sft, loss: {divisor: update}", "task: sft, loss: {divisor: mean-of-ranks}",
         "task: sft, loss: {divisor: mean-of-ranks, ranks: 4}", loop},
        {"task: dpo, schedule: {contract: hf}", "task: dpo, schedule: {contract: hf-x-processes}",
         "task: dpo, schedule: {contract: hf-x-processes, processes: 4}", ""},
        {"task: dpo, dropout: {residual: 0.1, ranks: 4}",
         "task: dpo, dropout: {residual: 0.1, ranks: 4, masks: same}",
         "task: dpo, dropout: {residual: 0.1, ranks: 4, masks: same}", loop},
        {"task: sft, clip: {max_norm: 0.01}", "task: sft, clip: {max_norm: 0.01, replicas: 4}",
         "task: sft, clip: {max_norm: 0.01, replicas: 4}", loop},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *const words[] = {rows[i].sound, rows[i].bug, rows[i].imitated};
        uint8_t roots[3][DIGEST_BYTES];
        for (int k = 0; k < 3; k++) {
            struct arena arena = ARENA_EMPTY;
            struct config config;
            struct dataset dataset;
            struct run run;
            helper_config(3, &config,
                          "%s, %s batch: {size: 8, micro: 1}, numerics: {shards: 4}, parallel: "
                          "{ranks: %d}, optimizer: {lr: 1e-3}, model: {family: llama, layers: 1, "
                          "hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}",
                          words[k], rows[i].loop, k < 2 ? 4 : 1);
            helper_ids_open(&config, 5, 24, 16, &arena, &dataset);
            helper_run_open(&config, &dataset, &options, &run);
            for (int update = 0; update < 3; update++)
                memcpy(roots[k], helper_step(&run)->digests[DIGEST_ROOT], DIGEST_BYTES);
            run_close(&run);
            arena_close(&arena);
        }
        if (memcmp(roots[1], roots[2], DIGEST_BYTES) != 0) fail_msg("%s: not imitated", words[1]);
        if (memcmp(roots[0], roots[1], DIGEST_BYTES) == 0) fail_msg("%s: no bug", words[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_first),     cmocka_unit_test(verify_one_micro),
        cmocka_unit_test(verify_state),          cmocka_unit_test(corroborate_last),
        cmocka_unit_test(validate_local_norms),  cmocka_unit_test(validate_averaged_norms),
        cmocka_unit_test(verify_logged_and_fed), cmocka_unit_test(corroborate_imitations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
