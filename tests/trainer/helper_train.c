/* SPDX-License-Identifier: Apache-2.0
 * Opens and steps whole trainings with few words, and computes digests of what they left behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "determinism/philox.h"
#include "experiment/backend_record.h"
#include "kernels/op.h"
#include "trainer/schema_classes.h"
#include "trainer/run_tensors.h"

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

void helper_config(uint64_t steps, struct config *out, const char *format, ...) {
    char common[2048], text[3072];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(common, sizeof common, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < sizeof common);
    length = snprintf(text, sizeof text,
                      "twinstep: 1\nname: test\nsteps: %llu\ncommon: {%s}\n"
                      "arms: {baseline: {}, test: {}}\n",
                      (unsigned long long)steps, common);
    assert_true(length >= 0 && (size_t)length < sizeof text);
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    expect_ok(schema_with_classes(&arena, &schema));
    expect_ok(
        scenario_parse(&arena, schema, "test.yaml", text, (size_t)length, NULL, 0, &scenario));
    *out = scenario->arms[0].config;
    arena_close(&arena);
}

void helper_data_open(const struct config *config, struct arena *arena, struct dataset *out) {
    struct dataset_options options = run_dataset_options(config);
    expect_ok(dataset_open(&options, arena, out));
}

static uint32_t draw_below(uint64_t seed, uint32_t index, uint32_t bound) {
    const struct philox_block counter = {{index, 0, 1, 0}};
    return (uint32_t)(((uint64_t)philox_draw(counter, seed).word[0] * bound) >> 32);
}

double helper_uniform(uint64_t seed, uint64_t index) {
    const struct philox_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
    const struct philox_block drawn = philox_draw(counter, seed);
    uint64_t bits = ((uint64_t)drawn.word[1] << 32 | drawn.word[0]) >> 11;
    return (double)bits * 0x1p-52 - 1.0;
}

struct ids_writer {
    uint64_t seed;
    uint32_t next; /* the next draw */
    uint32_t vocab;
    char *at;
};

static uint32_t draw(struct ids_writer *writer, uint32_t bound) {
    return draw_below(writer->seed, writer->next++, bound);
}

static void write_list(struct ids_writer *writer, const char *key, const uint32_t *ids,
                       uint32_t count, uint32_t masked) {
    writer->at += sprintf(writer->at, "\"%s\": [", key);
    for (uint32_t i = 0; i < count; i++)
        writer->at +=
            sprintf(writer->at, "%s%d", i == 0 ? "" : ", ", i < masked ? -100 : (int)ids[i]);
    writer->at += sprintf(writer->at, "]");
}

static void draw_ids(struct ids_writer *writer, uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        ids[i] = draw(writer, writer->vocab);
}

static void write_sample(struct ids_writer *writer, enum task task, uint32_t longest) {
    uint32_t ids[64], prompt = 2 + draw(writer, longest / 2 - 1);
    writer->at += sprintf(writer->at, "{");
    if (task == TASK_SFT) {
        uint32_t length = prompt + 2 + draw(writer, longest - prompt - 1);
        draw_ids(writer, ids, length);
        write_list(writer, "input_ids", ids, length, 0);
        writer->at += sprintf(writer->at, ", ");
        write_list(writer, "labels", ids, length, prompt);
    } else {
        draw_ids(writer, ids, prompt);
        write_list(writer, "prompt_ids", ids, prompt, 0);
        static const char *const sides[] = {"chosen_ids", "rejected_ids"};
        for (int side = 0; side < 2; side++) {
            uint32_t length = 2 + draw(writer, longest - prompt - 1);
            draw_ids(writer, ids, length);
            writer->at += sprintf(writer->at, ", ");
            write_list(writer, sides[side], ids, length, 0);
        }
    }
    writer->at += sprintf(writer->at, "}\n");
}

void helper_ids_write(enum task task, uint64_t vocab, uint64_t seed, uint32_t samples,
                      uint32_t longest, char out_path[HELPER_PATH_SIZE]) {
    char text[1 << 19];
    assert_true(longest >= 6 && longest <= 64 && samples * longest * 16 <= sizeof text / 2);
    struct ids_writer writer = {seed, 0, (uint32_t)vocab, text};
    for (uint32_t i = 0; i < samples; i++)
        write_sample(&writer, task, longest);
    helper_file_write(text, (size_t)(writer.at - text), out_path);
}

void helper_ids_open(const struct config *config, uint64_t seed, uint32_t samples, uint32_t longest,
                     struct arena *arena, struct dataset *out) {
    char path[HELPER_PATH_SIZE];
    helper_ids_write((enum task)config->task, config->model.vocab, seed, samples, longest, path);
    struct dataset_options options = run_dataset_options(config);
    options.source = path;
    enum status status = dataset_open(&options, arena, out);
    unlink(path);
    expect_ok(status);
}

void helper_backend(struct config *config) {
    const char *const module = getenv("TWINSTEP_BACKEND");
    if (module == NULL) return;
    config->numerics.backend = BACKEND_CUDA;
    snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s", module);
}

int helper_backend_lacks(void) {
    const char *const module = getenv("TWINSTEP_BACKEND");
    struct backend_site site;
    if (module == NULL || backends_site(module, &site) != STATUS_UNSUPPORTED) return 0;
    fprintf(stderr, "skipped: %s\n", status_text());
    return 1;
}

void helper_run_open(const struct config *config, const struct dataset *dataset,
                     const struct run_options *options, struct run *out) {
    expect_ok(run_open_at(config, dataset, options, out));
}

const struct record *helper_step(struct run *run) {
    const struct record *record = NULL;
    expect_ok(run_step(run, &record));
    return record;
}

void helper_small_open(struct helper_small *bench, uint32_t samples, const char *format, ...) {
    static const struct run_options options = {
        .tensors = 1, .poison = 1, .steps = 16, .order_seed = 1};
    char words[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(16, &bench->config,
                  "%s, init: {std: 0.3}, model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, "
                  "mlp: 20, vocab: 19}",
                  words);
    helper_ids_open(&bench->config, 5, samples, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset, &options, &bench->run);
}

void helper_small_close(struct helper_small *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

static void add(struct digest_stream *stream, const void *bytes, size_t length) {
    struct digest item;
    digest_bytes("item", bytes, length, &item);
    digest_stream_add(stream, &item);
}

static void add_gradients(struct digest_stream *stream, const struct run *run,
                          const struct record *record) {
    for (uint32_t i = 0; i < run->shape.tensors; i++) {
        add(stream, record->tensor_digests[i][TENSOR_DIGEST_GRADIENT], DIGEST_BYTES);
        add(stream, &record->tensors[i][TENSOR_GRAD_NORM], sizeof(double));
    }
}

void helper_outcome_of(struct run *run, uint64_t updates, struct helper_outcome *out) {
    struct digest_stream gradients, forward, scalars, params;
    digest_stream_init(&gradients, "gradients");
    digest_stream_init(&forward, "forward");
    digest_stream_init(&scalars, "scalars");
    digest_stream_init(&params, "params");
    assert_true(run->shape.tensors > 0);
    for (uint64_t k = 0; k < updates; k++) {
        const struct record *record = helper_step(run);
        add_gradients(&gradients, run, record);
        for (uint32_t i = 0; i < run->shape.sites; i++)
            add(&forward, record->sites[i], DIGEST_BYTES);
        add(&scalars, record->reals, sizeof record->reals);
        add(&scalars, record->integers, sizeof record->integers);
        add(&scalars, record->groups, run->shape.groups * sizeof *record->groups);
        memcpy(out->root.byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const void *values;
        assert_int_equal(run_read_param(run, WINDOW_NOW, run->owner[i], &values), STATUS_OK);
        add(&params, values, row->count * dtype_carrier(row->dtype));
    }
    digest_stream_close(&gradients, &out->gradients);
    digest_stream_close(&forward, &out->forward);
    digest_stream_close(&scalars, &out->scalars);
    digest_stream_close(&params, &out->params);
}

const char *helper_outcome_gap(const struct helper_outcome *a, const struct helper_outcome *b) {
    if (digest_compare(&a->forward, &b->forward) != 0) return "forward";
    if (digest_compare(&a->gradients, &b->gradients) != 0) return "gradients";
    if (digest_compare(&a->scalars, &b->scalars) != 0) return "loss, norm and other scalars";
    if (digest_compare(&a->params, &b->params) != 0) return "parameters";
    if (digest_compare(&a->root, &b->root) != 0) return "root";
    return NULL;
}

int helper_has_isa(enum isa isa) {
    const struct op_table *ops;
    return backend_ops(isa, DTYPE_F32, DTYPE_F32, &ops) == STATUS_OK;
}
