/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Tensor-parallel ranks with samples of their own (parallel.feeds own-on-tensor): losses, norms,
 * all gradients and what ranks hold apart against transformers' Llama and Qwen2, dealt to processes
 * by torch and fed unlike batches there (tests/golden/ranks/fed.txt). Ranks that are fed the same
 * samples have the bits of a training whose ranks are not told apart. And what must move no bit:
 * threads, layouts, a stop between updates. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/element.h"
#include "tests/trainer/helper_train.h"
#include "trainer/replicas.h"
#include "trainer/run_tensors.h"

enum { UPDATES = 3, MICROS = 2, MICRO = 2, LENGTH = 7, VOCAB = 19, RANKS_MOST = 4, NUMBERS = 160 };

/* ---- the training that torch recorded ---- */

/* The number that tests/bench/ranks_record.py gives element `index` of a tensor. */
static double drawn(const char *name, size_t index) {
    uint32_t start = 2166136261u;
    for (const char *at = name; *at != '\0'; at++)
        start = (start ^ (uint8_t)*at) * 16777619u;
    const uint32_t bits = start + 2654435761u * (uint32_t)(index + 1);
    const double value = (double)(bits >> 16) / 65536.0 - 0.5;
    return strstr(name, "norm") != NULL ? 1.0 + value / 2.0 : value;
}

/* Writes the samples of all updates. With `fed` ranks, rank r of a micro-batch has the r-th batch
 * of it, or, with `same`, that of every rank; a training of one stream has these once. */
static void open_rows(const struct config *config, uint32_t fed, int same, struct arena *arena,
                      struct dataset *out) {
    static char text[1 << 16];
    char path[HELPER_PATH_SIZE], *at = text;
    for (uint32_t i = 0; i < UPDATES * MICROS * MICRO * fed; i++) {
        const uint32_t sample = same ? i / (MICRO * fed) * MICRO + i % MICRO : i;
        char ids[128], labels[128], *id = ids, *label = labels;
        for (uint32_t p = 0; p < LENGTH; p++) {
            const uint32_t token = (7 * sample + 3 * p * p + p) % VOCAB;
            id += sprintf(id, "%s%u", p == 0 ? "" : ", ", token);
            label += sprintf(label, "%s%d", p == 0 ? "" : ", ", p < 2 ? -100 : (int)token);
        }
        at += sprintf(at, "{\"input_ids\": [%s], \"labels\": [%s]}\n", ids, labels);
    }
    helper_file_write(text, (size_t)(at - text), path);
    struct dataset_options options = run_dataset_options(config);
    options.source = path;
    const enum status status = dataset_open(&options, arena, out);
    unlink(path);
    assert_int_equal(status, STATUS_OK);
}

struct shape {
    const char *family, *feeds, *numerics, *batch;
    uint32_t ranks, cuts;
    int same; /* ranks are fed the same samples */
};
static const char wide[] = "param: f64, compute: f64, rope: f64";

/* A training that is watched by phases. */
struct bench {
    struct arena arena;
    struct dataset dataset;
    struct run run;
    double losses[RANKS_MOST]; /* of the running update */
    double *gradients;         /* (owners, ranks, NUMBERS) of update 1, clipped */
    int joined, parted;        /* of the first forward: o_proj, the embedding */
    uint32_t updates;
};

/* A rank's share of the update's loss, and what all rows of a place have in common. */
static void note_forward(struct bench *bench) {
    const struct model *const model = &bench->run.model;
    const struct batch *const batch = &bench->run.batch;
    const uint32_t labels = batch->label_count / batch->fed_ranks;
    const uint32_t tokens = batch->token_count / batch->fed_ranks;
    const size_t bytes = model->C * model->form.width;
    for (uint32_t i = 0; i < batch->label_count; i++)
        bench->losses[i / labels] -= model->logp[i] / (double)(labels * MICROS);
    for (uint32_t i = 0; i < batch->token_count; i++) {
        const size_t row = batch->token_row[i] * bytes,
                     first = batch->token_row[i % tokens] * bytes;
        const unsigned char *const o = (const unsigned char *)model->layer[0].o;
        const unsigned char *const x = (const unsigned char *)model->layer[0].x;
        bench->joined &= memcmp(o + row, o + first, bytes) == 0;
        bench->parted |= memcmp(x + row, x + first, bytes) != 0;
    }
}

static void note_gradients(struct bench *bench) {
    const struct run *const run = &bench->run;
    const uint32_t ranks = run->layout.replicas.copies + 1;
    for (uint32_t i = 0; i < run->owner_count; i++)
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const void *const gradient = replicas_gradient(run, rank, run->owner[i]);
            for (size_t e = 0; e < run->table.rows[run->owner[i]].count; e++)
                bench->gradients[(i * RANKS_MOST + rank) * NUMBERS + e] =
                    element_get(gradient, run->layout.gradient_dtype, e);
        }
}

static void at_phase(void *context, enum phase phase, int ended) {
    struct bench *const bench = (struct bench *)context;
    if (phase == PHASE_FORWARD && ended) note_forward(bench);
    if (phase == PHASE_OPTIMIZE && !ended && bench->updates++ == 0) note_gradients(bench);
}

static void bench_open(const struct shape *shape, struct bench *bench) {
    static struct config config;
    struct run_options options = {.tensors = 1,
                                  .poison = 1,
                                  .steps = UPDATES,
                                  .at_phase = at_phase,
                                  .at_phase_context = bench};
    const int fed = strcmp(shape->feeds, "own-on-tensor") == 0;
    memset(bench, 0, sizeof *bench);
    bench->joined = 1;
    helper_config(UPDATES, &config,
                  "task: sft, data: {shuffle: false}, model: {family: %s, hidden: 8, layers: 2, "
                  "heads: 4, kv_heads: %u, head_dim: 2, mlp: 8, vocab: 19, tied: false}, batch: "
                  "{size: 4, micro: 2%s}, numerics: {%s, cuts: %u}, optimizer: {lr: 0.01, "
                  "weight_decay: 0}, schedule: {name: constant}, clip: {max_norm: 0.5}, parallel: "
                  "{tensor: %u, feeds: %s}",
                  shape->family, shape->cuts > 2 ? 4 : 2, shape->batch, shape->numerics,
                  shape->cuts, shape->ranks, shape->feeds);
    open_rows(&config, fed ? shape->ranks : 1, shape->same, &bench->arena, &bench->dataset);
    helper_run_open(&config, &bench->dataset, &options, &bench->run);
    struct run *const run = &bench->run;
    assert_int_equal(arena_take(&bench->arena, (size_t)run->owner_count * RANKS_MOST * NUMBERS,
                                sizeof *bench->gradients, "gradients", &bench->gradients),
                     STATUS_OK);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        void *const values = run_at(run, run->layout.tensor[run->owner[i]].param);
        assert_true(row->count <= NUMBERS);
        for (size_t e = 0; e < row->count; e++)
            element_set(values, row->dtype, e, drawn(row->name, e));
    }
    run->weights_fresh = 0;
    replicas_spread(run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

static const struct record *step(struct bench *bench) {
    memset(bench->losses, 0, sizeof bench->losses);
    return helper_step(&bench->run);
}

/* Reads ` NAME=` and its numbers, 16 hexadecimal digits each; returns how many there are. */
static size_t recorded(const char *line, const char *name, double *out) {
    char sought[96], digits[17] = {0};
    size_t count = 0;
    snprintf(sought, sizeof sought, " %s=", name);
    const char *at = strstr(line, sought);
    if (at == NULL) fail_msg("%s is not recorded", name);
    for (at += strlen(sought); *at != ' ' && *at != '\n'; at += 16, count++) {
        assert_true(count < NUMBERS);
        memcpy(digits, at, 16);
        const uint64_t bits = strtoull(digits, NULL, 16);
        memcpy(&out[count], &bits, sizeof bits);
    }
    return count;
}

/* Both compute in f64, with sums in other orders and other functions. Numbers are held against the
 * largest of their tensor. */
#define CLOSE 1e-11

static void near(const double *got, const double *due, size_t count, const char *what) {
    double largest = 0.0;
    for (size_t e = 0; e < count; e++)
        largest = fmax(largest, fabs(due[e]));
    assert_true(largest > 0.0);
    for (size_t e = 0; e < count; e++)
        if (!(fabs(got[e] - due[e]) <= CLOSE * largest))
            fail_msg("%s[%zu]: %.17g, not %.17g", what, e, got[e], due[e]);
}

/* What every rank holds whole has the ranks' own numbers, `RANK:NAME`; of others there is one. */
static void check_rank(const struct bench *bench, const char *line, uint32_t owner, uint32_t rank) {
    const struct run *const run = &bench->run;
    const struct param_row *const row = &run->table.rows[run->owner[owner]];
    const int apart = model_holds_apart(&run->config, row->role);
    double due[NUMBERS];
    char name[96], prefix[8] = "";
    if (apart) snprintf(prefix, sizeof prefix, "%u:", rank);
    snprintf(name, sizeof name, "%sgradient:%s", prefix, row->name);
    assert_int_equal(recorded(line, name, due), row->count);
    near(bench->gradients + (owner * RANKS_MOST + rank) * NUMBERS, due, row->count, name);
    if (!apart) return;
    snprintf(name, sizeof name, "%s%s", prefix, row->name);
    assert_int_equal(recorded(line, name, due), row->count);
    near((const double *)replicas_param(run, rank, run->owner[owner]), due, row->count, name);
}

static void check_line(const char *line) {
    struct shape shape = {.feeds = "own-on-tensor", .numerics = wide, .batch = ""};
    struct bench bench;
    char family[16], name[24];
    double losses[RANKS_MOST][NUMBERS], norms[NUMBERS];
    assert_int_equal(sscanf(line, "%15s %u", family, &shape.ranks), 2);
    shape.family = family;
    shape.cuts = shape.ranks;
    for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        snprintf(name, sizeof name, "%u:losses", rank);
        assert_int_equal(recorded(line, name, losses[rank]), UPDATES);
    }
    assert_int_equal(recorded(line, "0:norms", norms), UPDATES);
    bench_open(&shape, &bench);
    for (int update = 0; update < UPDATES; update++) {
        const struct record *const record = step(&bench);
        for (uint32_t rank = 0; rank < shape.ranks; rank++)
            near(&bench.losses[rank], &losses[rank][update], 1, "loss");
        near(&record->reals[REAL_LOSS], &losses[0][update], 1, "logged loss");
        near(&record->reals[REAL_GRAD_NORM], &norms[update], 1, "norm");
    }
    for (uint32_t i = 0; i < bench.run.owner_count; i++)
        for (uint32_t rank = 0; rank < shape.ranks; rank++)
            check_rank(&bench, line, i, rank);
    assert_true(bench.joined && bench.parted);
    bench_close(&bench);
}

static void corroborate_torch(void **state) {
    static char line[1 << 18];
    size_t lines = 0;
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/ranks/fed.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        check_line(line);
        lines++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lines, 3);
}

/* ---- bits ---- */

struct outcome {
    uint8_t weights[UPDATES][DIGEST_BYTES];
    double loss[UPDATES], norm[UPDATES];
    int64_t first[RANKS_MOST]; /* the first tensor in which a rank differs at the end; -1: none */
};

static void outcome_of(const struct shape *shape, struct outcome *out) {
    struct bench bench;
    memset(out, 0, sizeof *out);
    bench_open(shape, &bench);
    for (int update = 0; update < UPDATES; update++) {
        const struct record *const record = step(&bench);
        memcpy(out->weights[update], record->digests[DIGEST_WEIGHTS], DIGEST_BYTES);
        out->loss[update] = record->reals[REAL_LOSS];
        out->norm[update] = record->reals[REAL_GRAD_NORM];
        for (uint32_t rank = 0; rank < RANKS_MOST; rank++)
            out->first[rank] =
                rank < bench.run.shape.ranks ? (int64_t)record->ranks[rank][RANK_FIRST_TENSOR] : -1;
    }
    assert_true(shape->same == !bench.parted);
    bench_close(&bench);
}

/* Ranks that are fed the same samples are what they should be: one training. */
static void verify_same_samples(void **state) {
    static const char *const numerics[] = {"compute: bf16", "param: f32, compute: f32, threads: 2",
                                           "param: f64, compute: f64", "mode: order-free"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(numerics); i++)
        for (uint32_t ranks = 2; ranks <= 4; ranks += 2) {
            struct shape shape = {i % 2 == 0 ? "llama" : "qwen2",
                                  "own",
                                  numerics[i],
                                  "",
                                  ranks,
                                  i == 0 ? 4 : ranks,
                                  1};
            struct outcome due, got;
            outcome_of(&shape, &due);
            shape.feeds = "own-on-tensor";
            outcome_of(&shape, &got);
            assert_memory_equal(&got, &due, sizeof due);
        }
}

static void verify_bits(void **state) {
    static const char *const batches[] = {"", ", padding: packed", ", pad: 3"};
    struct outcome due, got;
    (void)state;
    for (uint32_t i = 0; i < 2 * COUNT_OF(batches); i++) {
        const struct shape shape = {"llama",
                                    "own-on-tensor",
                                    i % 2 == 0 ? "compute: bf16" : "compute: bf16, threads: 2",
                                    batches[i / 2],
                                    4,
                                    4,
                                    0};
        outcome_of(&shape, i == 0 ? &due : &got);
        if (i > 0) assert_memory_equal(&got, &due, sizeof due);
    }
    for (uint32_t rank = 1; rank < 4; rank++)
        assert_int_equal(due.first[rank], 0); /* the embedding comes first */
}

/* The state holds what every rank has. */
static void verify_state(void **state) {
    const struct shape shape = {"llama", "own-on-tensor", "compute: bf16", "", 2, 2, 0};
    struct bench benches[2];
    const unsigned char *bytes;
    (void)state;
    for (int i = 0; i < 2; i++)
        bench_open(&shape, &benches[i]);
    step(&benches[0]);
    assert_int_equal(run_read_state(&benches[0].run, &bytes), STATUS_OK);
    assert_int_equal(run_restore(&benches[1].run, bytes), STATUS_OK);
    const struct record *const on = step(&benches[0]), *const anew = step(&benches[1]);
    assert_memory_equal(on->digests, anew->digests, sizeof on->digests);
    assert_memory_equal(on->rank_digests, anew->rank_digests, 2 * sizeof *on->rank_digests);
    for (int i = 0; i < 2; i++)
        bench_close(&benches[i]);
}

/* Ranks add tensors of one shape, and each needs an update's samples. */
static void validate_refused_data(void **state) {
#define ROW(ids, labels) "{\"input_ids\": [" ids "], \"labels\": [" labels "]}\n"
#define PLAIN ROW("1, 2, 3", "-100, 2, 3")
    static const struct {
        const char *text, *error;
    } cases[] = {
        {PLAIN PLAIN ROW("1, 2, 3, 4", "-100, 2, 3, 4") PLAIN,
         ":3: expected as many tokens as line 1 has (3), with labels at the same places, got 4 "
         "tokens and 3 labels (line 1: 2): "},
        {PLAIN PLAIN PLAIN ROW("1, 2, 3", "-100, 2, -100"),
         ":4: expected as many tokens as line 1 has (3), with labels at the same places, got 3 "
         "tokens and 1 labels (line 1: 2): "},
        {PLAIN PLAIN PLAIN,
         ": batch.size is 2 samples of each of 2 ranks (parallel.feeds own-on-tensor), but the "
         "data hold 3: not one full update"},
    };
    static struct config config;
    (void)state;
    helper_config(1, &config,
                  "task: sft, model: {family: llama, hidden: 8, layers: 1, heads: 2, kv_heads: 2, "
                  "mlp: 8, vocab: 19, tied: false}, batch: {size: 2, micro: 1}, numerics: {cuts: "
                  "2}, parallel: {tensor: 2, feeds: own-on-tensor}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run *run;
        char path[HELPER_PATH_SIZE];
        struct dataset_options options = run_dataset_options(&config);
        helper_file_write(cases[i].text, strlen(cases[i].text), path);
        options.source = path;
        assert_int_equal(dataset_open(&options, &arena, &dataset), STATUS_OK);
        unlink(path);
        assert_int_equal(run_open(&config, &dataset, &(struct run_options){.steps = 1}, &run),
                         STATUS_INPUT);
        if (strstr(status_text(), cases[i].error) == NULL) fail_msg("%s", status_text());
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_torch),     cmocka_unit_test(verify_same_samples),
        cmocka_unit_test(verify_bits),           cmocka_unit_test(verify_state),
        cmocka_unit_test(validate_refused_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
