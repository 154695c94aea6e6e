/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Norms whose gradients tensor-parallel ranks do not sum (parallel.forgets): losses, gradient norms
 * and the weights of every rank after three updates against a Llama and a Qwen3 that were written
 * out with torch, ranks as lists, and trained there (tests/golden/ranks/forgets.txt). And what must
 * move no bit: micro-batches, layouts, threads, a stop between updates. */
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

enum { UPDATES = 3, SEQUENCES = 4, VOCAB = 19, RANKS = 2, NUMBERS_MOST = 16 };

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

static void open_rows(const struct config *config, struct arena *arena, struct dataset *out) {
    char text[1 << 14], path[HELPER_PATH_SIZE], *at = text;
    for (uint32_t i = 0; i < UPDATES * SEQUENCES; i++) {
        const uint32_t update = i / SEQUENCES, number = i % SEQUENCES;
        const uint32_t count = 5 + (3 * number + update) % 7;
        char ids[128], labels[128], *id = ids, *label = labels;
        for (uint32_t p = 0; p < count; p++) {
            const uint32_t token = (7 * number + 3 * p * p + p + 5 * update) % VOCAB;
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
    uint32_t micro, threads, tensor, cuts;
    const char *layout, *dtypes;
};
static const char wide[] = "param: f64, compute: f64, rope: f64", narrow[] = "compute: bf16",
                  copied[] = "param: f64, compute: f32";

static void open_training(const char *family, const char *forgets, const struct shape *shape,
                          struct arena *arena, struct dataset *dataset, struct run *out) {
    static const struct run_options options = {.tensors = 1, .poison = 1, .steps = UPDATES};
    static struct config config;
    helper_config(UPDATES, &config,
                  "task: sft, data: {shuffle: false}, model: {family: %s, hidden: 12, layers: 2, "
                  "heads: 4, kv_heads: %u, head_dim: 4, mlp: 8, vocab: 19, tied: false}, batch: "
                  "{size: 4, micro: %u, layout: %s}, numerics: {%s, cuts: %u, threads: %u}, "
                  "optimizer: {lr: 0.01, weight_decay: 0}, schedule: {name: constant}, clip: "
                  "{max_norm: 0.5}, parallel: {tensor: %u, forgets: %s}",
                  family, shape->tensor > 2 ? 4 : 2, shape->micro, shape->layout, shape->dtypes,
                  shape->cuts, shape->threads, shape->tensor, forgets);
    open_rows(&config, arena, dataset);
    helper_run_open(&config, dataset, &options, out);
    for (uint32_t i = 0; i < out->owner_count; i++) {
        const struct param_row *const row = &out->table.rows[out->owner[i]];
        void *const values = run_at(out, out->layout.tensor[out->owner[i]].param);
        for (size_t e = 0; e < row->count; e++)
            element_set(values, row->dtype, e, drawn(row->name, e));
    }
    out->weights_fresh = 0;
    replicas_spread(out);
}

/* Reads ` NAME=` and its numbers, 16 hexadecimal digits each; returns how many there are. */
static size_t recorded(const char *line, const char *name, double *out) {
    char sought[96], digits[17] = {0};
    size_t count = 0;
    snprintf(sought, sizeof sought, " %s=", name);
    const char *at = strstr(line, sought);
    if (at == NULL) fail_msg("%s is not recorded", name);
    for (at += strlen(sought); *at != ' ' && *at != '\n'; at += 16, count++) {
        assert_true(count < NUMBERS_MOST);
        memcpy(digits, at, 16);
        const uint64_t bits = strtoull(digits, NULL, 16);
        memcpy(&out[count], &bits, sizeof bits);
    }
    return count;
}

/* Both compute in f64, with sums in other orders and other functions: some hundred roundings of
 * 1e-16. Adam divides by roots of squares, where small gradients magnify them. A gradient of other
 * rows moves the numbers by 1e-3 and more. */
#define CLOSE 1e-11

/* Weights that are copied to f32, in which the model then computes: its roundings of 6e-8 show in
 * losses and norms, and copies that no update makes anew would show a hundred times as much. */
#define CLOSE_IN_F32 1e-5

static void near(double got, double due, double part, const char *what) {
    if (!(fabs(got - due) <= part * fabs(due))) fail_msg("%s: %.17g, not %.17g", what, got, due);
}

static void check_line(const char *line, const char *dtypes, double part) {
    const struct shape shape = {2, 1, RANKS, 2, "separate", dtypes};
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    char family[16], forgets[16], name[80];
    double losses[NUMBERS_MOST], norms[NUMBERS_MOST], due[NUMBERS_MOST];
    size_t compared = 0;
    assert_int_equal(sscanf(line, "%15s %15s", family, forgets), 2);
    assert_int_equal(recorded(line, "losses", losses), UPDATES);
    assert_int_equal(recorded(line, "norms", norms), UPDATES);
    open_training(family, forgets, &shape, &arena, &dataset, &run);
    for (int update = 0; update < UPDATES; update++) {
        const struct record *const record = helper_step(&run);
        near(record->reals[REAL_LOSS], losses[update], part, "loss");
        near(record->reals[REAL_GRAD_NORM], norms[update], part, "norm");
    }
    for (uint32_t i = 0; i < run.owner_count && dtypes == wide; i++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            const struct param_row *const row = &run.table.rows[run.owner[i]];
            const int copies = run.layout.replicas.copies > 0;
            const double *const got =
                (const double *)replicas_param(&run, copies ? rank : 0, run.owner[i]);
            if (strstr(row->name, "norm") == NULL) continue;
            snprintf(name, sizeof name, "%u:%s", rank, row->name);
            assert_int_equal(recorded(line, name, due), row->count);
            for (size_t e = 0; e < row->count; e++, compared++)
                near(got[e], due[e], part, name);
        }
    assert_true(dtypes != wide || compared >= (size_t)RANKS * 5 * 12);
    run_close(&run);
    arena_close(&arena);
}

static void corroborate_torch(void **state) {
    static char line[1 << 14];
    size_t lines = 0;
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/ranks/forgets.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        check_line(line, wide, CLOSE);
        check_line(line, copied, CLOSE_IN_F32);
        lines++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lines, 6);
}

/* ---- bits ---- */

struct outcome {
    uint8_t ranks[4][DIGEST_BYTES], root[DIGEST_BYTES];
    char first[4][64]; /* the first tensor in which a rank differs; "": none */
};

static void outcome_of(const char *family, const char *forgets, const struct shape *shape,
                       struct outcome *out) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    const struct record *record = NULL;
    memset(out, 0, sizeof *out);
    open_training(family, forgets, shape, &arena, &dataset, &run);
    for (int update = 0; update < UPDATES; update++)
        record = helper_step(&run);
    for (uint32_t rank = 0; rank < run.shape.ranks; rank++) {
        memcpy(out->ranks[rank], record->rank_digests[rank][RANK_DIGEST], DIGEST_BYTES);
        const int64_t first = (int64_t)record->ranks[rank][RANK_FIRST_TENSOR];
        if (first >= 0)
            snprintf(out->first[rank], sizeof out->first[rank], "%s",
                     run.table.rows[run.owner[first]].name);
    }
    memcpy(out->root, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    for (uint32_t i = 0; i < run.owner_count && run.shape.ranks > 1; i++) {
        const struct param_row *const row = &run.table.rows[run.owner[i]];
        const size_t bytes = row->count * dtype_carrier(row->dtype);
        const int apart = model_holds_apart(&run.config, row->role);
        for (uint32_t rank = 1; rank < run.shape.ranks; rank++)
            assert_int_equal(memcmp(replicas_param(&run, 0, run.owner[i]),
                                    replicas_param(&run, rank, run.owner[i]), bytes) != 0,
                             apart);
    }
    run_close(&run);
    arena_close(&arena);
}

static void verify_bits(void **state) {
    static const struct {
        const char *family, *forgets;
        const char *first; /* the tensor by which ranks part */
    } bugs[] = {{"llama", "final-norm", "model.norm.weight"},
                {"llama", "norms", "model.layers.0.input_layernorm.weight"},
                {"olmo2", "norms", "model.layers.0.post_attention_layernorm.weight"},
                {"qwen3", "qk-norms", "model.layers.0.self_attn.q_norm.weight"}};
    (void)state;
    for (size_t b = 0; b < COUNT_OF(bugs); b++)
        for (uint32_t tensor = 2; tensor <= 4; tensor += 2) {
            const struct shape shapes[] = {
                {4, 1, tensor, tensor, "separate", narrow},
                {1, 2, tensor, tensor, "separate", narrow},
                {2, 1, tensor, tensor, "separate, padding: packed", narrow}};
            struct outcome due, got, sound;
            outcome_of(bugs[b].family, "none", &shapes[0], &sound);
            for (size_t s = 0; s < COUNT_OF(shapes); s++) {
                outcome_of(bugs[b].family, bugs[b].forgets, &shapes[s], s == 0 ? &due : &got);
                if (s > 0) assert_memory_equal(&got, &due, sizeof got);
            }
            assert_string_equal(due.first[0], "");
            for (uint32_t rank = 1; rank < tensor; rank++)
                assert_string_equal(due.first[rank], bugs[b].first);
            assert_memory_not_equal(due.root, sound.root, DIGEST_BYTES);
        }
}

/* Chosen and rejected answers in one forward or in one each. */
static void verify_sides(void **state) {
    static const struct run_options options = {.tensors = 1, .poison = 1, .steps = 2};
    static const char *const layouts[] = {"separate", "concatenated"};
    static struct config config;
    uint8_t ranks[2][4][DIGEST_BYTES];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        helper_config(2, &config,
                      "task: dpo, batch: {size: 4, layout: %s}, model: {family: llama, layers: 2, "
                      "hidden: 16, heads: 4, kv_heads: 4, mlp: 12, vocab: 19}, init: {std: 0.3}, "
                      "optimizer: {lr: 0.01}, numerics: {cuts: 4}, parallel: {tensor: 4, forgets: "
                      "norms}",
                      layouts[i]);
        helper_ids_open(&config, 5, 8, 12, &arena, &dataset);
        helper_run_open(&config, &dataset, &options, &run);
        helper_step(&run);
        const struct record *const record = helper_step(&run);
        for (int rank = 0; rank < 4; rank++)
            memcpy(ranks[i][rank], record->rank_digests[rank][RANK_DIGEST], DIGEST_BYTES);
        run_close(&run);
        arena_close(&arena);
    }
    assert_memory_equal(ranks[0], ranks[1], sizeof ranks[0]);
    for (int rank = 1; rank < 4; rank++)
        assert_memory_not_equal(ranks[0][0], ranks[0][rank], DIGEST_BYTES);
}

/* One rank has all rows: nothing is forgotten. */
static void verify_one_rank(void **state) {
    static const struct shape shape = {2, 1, 1, 2, "separate", narrow};
    struct outcome bug, sound;
    (void)state;
    outcome_of("qwen3", "none", &shape, &sound);
    outcome_of("qwen3", "qk-norms", &shape, &bug);
    assert_memory_equal(&bug, &sound, sizeof bug);
}

/* The state holds what every rank has. */
static void verify_state(void **state) {
    static const struct shape shape = {2, 1, 2, 2, "separate", narrow};
    struct arena arena = ARENA_EMPTY;
    struct dataset datasets[2];
    struct run runs[2];
    const unsigned char *bytes;
    (void)state;
    for (int i = 0; i < 2; i++)
        open_training("llama", "norms", &shape, &arena, &datasets[i], &runs[i]);
    helper_step(&runs[0]);
    assert_int_equal(run_read_state(&runs[0], &bytes), STATUS_OK);
    assert_int_equal(run_restore(&runs[1], bytes), STATUS_OK);
    const struct record *const on = helper_step(&runs[0]), *const anew = helper_step(&runs[1]);
    assert_memory_equal(on->digests, anew->digests, sizeof on->digests);
    assert_memory_equal(on->rank_digests, anew->rank_digests, RANKS * sizeof *on->rank_digests);
    for (int i = 0; i < 2; i++)
        run_close(&runs[i]);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_torch), cmocka_unit_test(verify_bits),
        cmocka_unit_test(verify_sides),      cmocka_unit_test(verify_one_rank),
        cmocka_unit_test(verify_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
