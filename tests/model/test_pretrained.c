/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * model.from: weights that were drawn, written as a checkpoint and read again must train as the
 * drawn ones do, bit for bit; what save_model wrote must read back as it was; a master must get
 * what a parameter cannot hold. Keys that contradict config.json, files that are not what they
 * seem, and hybrids that fit no weights must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoints/checkpoint.h"
#include "experiment/experiment_plan.h"
#include "model/pretrained.h"
#include "model/save_model.h"
#include "tests/model/helper_folder.h"
#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

#define SIZES "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"
#define REST "task: sft, seed: 5, init: {std: 0.2}, data: {max_len: 16}, batch: {size: 2}"

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Writes a config.json. `extra` are keys before the last brace, with a comma before them. */
static void write_config(const char *path, const char *family, const char *class_name,
                         const char *extra) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"architectures\": [\"%s\"], \"hidden_size\": 16, "
             "\"intermediate_size\": 20, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
             "\"num_key_value_heads\": 2, \"vocab_size\": 19, \"max_position_embeddings\": 64, "
             "\"rms_norm_eps\": 1e-6, \"rope_theta\": 500.0, \"torch_dtype\": \"float32\"%s}",
             family, class_name, extra);
    write_text(path, text);
}

/* Writes the parameters of a run that was just opened. */
static void write_weights(const char *path, const struct run *run) {
    struct safetensors_source sources[64];
    assert_true(run->owner_count <= COUNT_OF(sources));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        sources[i] = (struct safetensors_source){.name = row->name,
                                                 .dtype = safetensors_dtype_from(row->dtype),
                                                 .rank = row->rank,
                                                 .shape = row->shape,
                                                 .carriers = run_param(run, run->owner[i])};
    }
    assert_int_equal(checkpoint_write(path, 1, sources, run->owner_count, NULL, 0, 0), STATUS_OK);
}

struct trained {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void open_run(struct trained *t, const char *words) {
    const struct run_options options = {.tensors = 1, .steps = 3};
    memset(t, 0, sizeof *t);
    helper_config(3, &t->config, "%s", words);
    t->arena = (struct arena)ARENA_EMPTY;
    helper_ids_open(&t->config, 7, 8, 12, &t->arena, &t->dataset);
    helper_run_open(&t->config, &t->dataset, &options, &t->run);
}

static void close_run(struct trained *t) {
    run_close(&t->run);
    arena_close(&t->arena);
}

static const struct subject {
    const char *name, *class_name, *words, *extra;
} subjects[] = {
    {"olmo2", "Olmo2ForCausalLM", "", ""},
    {"llama", "LlamaForCausalLM", ", tied: true", ", \"tie_word_embeddings\": true"},
    {"llama", "LlamaForCausalLM", ", head_dim: 6", ", \"head_dim\": 6"},
};

/* Saves a checkpoint of the subject in folder `name`; the run stays open. */
static void make(const struct subject *subject, const char *name, struct trained *out) {
    char words[512], path[128];
    snprintf(words, sizeof words, REST ", model: {family: %s, " SIZES "%s, rope_theta: 500}",
             subject->name, subject->words);
    open_run(out, words);
    write_weights(name, &out->run);
    snprintf(path, sizeof path, "%s/config.json", name);
    write_config(path, subject->name, subject->class_name, subject->extra);
}

static void corroborate_drawn_weights(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct trained drawn, read;
        struct helper_outcome outcomes[2];
        char words[256], name[16];
        snprintf(name, sizeof name, "drawn%zu", i);
        make(&subjects[i], name, &drawn);
        snprintf(words, sizeof words, REST ", model: {from: %s}", name);
        open_run(&read, words);
        assert_string_not_equal(read.config.model.from_digest, "auto");
        helper_outcome_of(&drawn.run, 3, &outcomes[0]);
        helper_outcome_of(&read.run, 3, &outcomes[1]);
        const char *gap = helper_outcome_gap(&outcomes[0], &outcomes[1]);
        if (gap != NULL) fail_msg("%s: %s differs", subjects[i].name, gap);
        close_run(&drawn);
        close_run(&read);
    }
}

/* What is saved and read again must have the same parameters and the same section model. */
static void verify_saving(void **state) {
    static const char *const models[] = {
        "family: llama, " SIZES ", norm_eps: 1e-5",
        "family: llama, " SIZES ", head_dim: 6, tied: true, qkv_bias: true, output_bias: true, "
        "mlp_bias: true, rope_scaling: llama3, rope_factor: 3, rope_original_positions: 16",
        "family: olmo2, " SIZES ", rope_theta: 123.5",
        "family: qwen2, " SIZES ", tied: true",
        "family: qwen3, " SIZES ", head_dim: 8, rope_scaling: yarn, rope_factor: 4, "
        "rope_original_positions: 8, rope_mscale: 0.7, rope_mscale_all_dim: 0.9, "
        "rope_truncate: false",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        const char *param = i % 2 == 0 ? "f32" : "bf16";
        struct trained saved, read;
        char words[512], name[16];
        snprintf(name, sizeof name, "saved%zu", i);
        snprintf(words, sizeof words, REST ", numerics: {param: %s}, model: {%s}", param,
                 models[i]);
        open_run(&saved, words);
        helper_step(&saved.run);
        assert_int_equal(run_save(&saved.run, name, 0), STATUS_OK);
        snprintf(words, sizeof words, REST ", numerics: {param: %s}, model: {from: %s}", param,
                 name);
        open_run(&read, words);
        assert_int_equal(saved.run.owner_count, read.run.owner_count);
        for (uint32_t o = 0; o < read.run.owner_count; o++) {
            const struct param_row *row = &read.run.table.rows[read.run.owner[o]];
            assert_memory_equal(run_param(&saved.run, saved.run.owner[o]),
                                run_param(&read.run, read.run.owner[o]),
                                row->count * dtype_carrier(row->dtype));
        }
        memcpy(read.config.model.from, saved.config.model.from, sizeof read.config.model.from);
        memcpy(read.config.model.from_digest, saved.config.model.from_digest,
               sizeof read.config.model.from_digest);
        assert_memory_equal(&read.config.model, &saved.config.model, sizeof read.config.model);
        close_run(&saved);
        close_run(&read);
    }
}

/* A save that is cut off behind the weights must not leave the old config.json to describe the new
 * ones. */
static void verify_saving_cut_off(void **state) {
    struct trained trained;
    struct config config;
    (void)state;
    open_run(&trained, REST ", model: {family: llama, " SIZES "}");
    assert_int_equal(run_save(&trained.run, "cut", 0), STATUS_OK);
    config = trained.config;
    assert_int_equal(pretrained_describe("cut", &config), STATUS_OK);
    assert_int_equal(mkdir("cut/config.json.part", 0777), 0);
    assert_int_equal(run_save(&trained.run, "cut", 1), STATUS_IO);
    config = trained.config;
    assert_int_equal(pretrained_describe("cut", &config), STATUS_IO);
    assert_non_null(strstr(status_text(), "cut/config.json"));
    assert_int_equal(rmdir("cut/config.json.part"), 0);
    assert_int_equal(run_save(&trained.run, "cut", 0), STATUS_IO);
    assert_int_equal(run_save(&trained.run, "cut", 1), STATUS_OK);
    assert_int_equal(pretrained_describe("cut", &config), STATUS_OK);
    close_run(&trained);
}

/* With numerics.param bf16 and a master, the parameter must be rounded and the master must not. */
static void validate_master(void **state) {
    struct trained drawn, read;
    uint32_t finer = 0;
    (void)state;
    make(&subjects[0], "wide", &drawn);
    open_run(&read, REST ", model: {from: wide}, numerics: {param: bf16, master: f32}");
    for (uint32_t i = 0; i < read.run.owner_count; i++) {
        const uint32_t row = read.run.owner[i];
        const float *exact = (const float *)run_param(&drawn.run, row);
        const float *param = (const float *)run_param(&read.run, row);
        const float *master =
            (const float *)(const void *)(read.run.state.host + read.run.layout.tensor[row].master);
        for (size_t j = 0; j < read.run.table.rows[row].count; j++) {
            assert_true(master[j] == exact[j]);
            assert_true((double)param[j] == dtype_round((double)exact[j], DTYPE_BF16));
            finer += master[j] != param[j];
        }
    }
    assert_true(finer > 1000);
    close_run(&drawn);
    close_run(&read);
}

/* The words of `common` and of the test arm, and the error; NULL where there is none. */
static const struct {
    const char *common, *arm, *needle;
} written[] = {
    {"model: {from: kept}", "seed: 3", NULL},
    {"model: {from: kept, layers: 2, rope_theta: 500, tied: false}", "seed: 3", NULL},
    {"model: {from: kept, kv_heads: auto}", "seed: 3", NULL},
    {"model: {from: kept}", "model: {norm_eps: 1e-5}", NULL},
    {"model: {from: kept}", "model: {norm_rounding: before-weight}", NULL},
    {"model: {layers: 7}", "model: {from: kept}", NULL},
    {"model: {from: kept, layers: 3}", "seed: 3",
     "model.layers: model.from kept/config.json says 2, got 3"},
    {"model: {from: kept}", "model: {hidden: 32}",
     "model.hidden: model.from kept/config.json says 16, got 32"},
    {"model: {from: kept}", "model: {tied: true}", "config.json says false, got true"},
    {"model: {from: kept}", "model: {family: llama}", "config.json says olmo2, got llama"},
    {"model: {from: kept, norm_eps: 1e-5}", "seed: 3", "or write it in an arm where model.from"},
    {"model: {from: nowhere}", "seed: 3", "model.from: nowhere"},
    {"model: {from: kept/config.json}", "seed: 3", "kept/config.json"},
    {"model: {from: kept/model.safetensors}", "seed: 3", "expected a folder"},
    {"model: {from: kept, from_digest: x0}", "seed: 3", "expected weights with digest x0 in kept"},
    {"model: {from_digest: x0}", "seed: 3", "model.from_digest: expected none without model.from"},
    {"model: {from: other}", "seed: 3", "missing: model.layers.0.input_layernorm.weight"},
    {"model: {from: odd}", "seed: 3", "sliding_window"},
};

static enum status parse(struct arena *arena, const char *common, const char *arm,
                         struct scenario **out) {
    const struct schema *schema;
    char text[1024];
    const int length =
        snprintf(text, sizeof text,
                 "twinstep: 1\nname: x\nabout: x\nsteps: 2\ncommon: {task: sft, %s}\n"
                 "arms: {baseline: {}, test: {%s}}\n",
                 common, arm);
    TRY(schema_with_classes(arena, &schema));
    return scenario_parse(arena, schema, "here.yaml", text, (size_t)length, NULL, 0, out);
}

static void validate_written(void **state) {
    struct trained kept;
    (void)state;
    make(&subjects[0], "kept", &kept);
    write_weights("odd", &kept.run);
    write_config("odd/config.json", "olmo2", "Olmo2ForCausalLM", ", \"sliding_window\": 5");
    write_weights("other", &kept.run);
    write_config("other/config.json", "llama", "LlamaForCausalLM", "");
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        const char *needle = written[i].needle;
        const enum status status = parse(&arena, written[i].common, written[i].arm, &scenario);
        if (needle == NULL && status != STATUS_OK)
            fail_msg("%s | %s: %s", written[i].common, written[i].arm, status_text());
        if (needle != NULL && status == STATUS_OK)
            fail_msg("%s | %s: accepted", written[i].common, written[i].arm);
        if (needle != NULL && strstr(status_text(), needle) == NULL)
            fail_msg("%s | %s: %s", written[i].common, written[i].arm, status_text());
        arena_close(&arena);
    }
    close_run(&kept);
}

/* Weights that were changed between the reading of the scenario and the run must be refused. */
static void validate_changed_weights(void **state) {
    const struct run_options options = {.tensors = 1, .steps = 3};
    struct trained kept;
    struct config config;
    struct run run;
    (void)state;
    make(&subjects[0], "moving", &kept);
    helper_config(3, &config, REST ", model: {from: moving}");
    float *value = (float *)(void *)(kept.run.state.host + kept.run.layout.tensor[0].param);
    value[0] += 1.0f;
    write_weights("moving", &kept.run);
    assert_int_equal(run_open_at(&config, &kept.dataset, &options, &run), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "the files were changed"));
    close_run(&kept);
}

/* The weights of one arm with the sizes of the other make no hybrid. */
static void validate_fits(void **state) {
    struct trained runs[2];
    struct config a, b, hybrid;
    (void)state;
    make(&subjects[0], "first", &runs[0]);
    make(&subjects[2], "second", &runs[1]);
    helper_config(3, &a, REST ", model: {from: first}");
    helper_config(3, &b, REST ", model: {from: second}");
    assert_int_equal(pretrained_fits(&a, &a, &b), STATUS_OK);
    assert_int_equal(pretrained_fits(&b, &a, &b), STATUS_OK);
    hybrid = a;
    memcpy(hybrid.model.from, b.model.from, sizeof b.model.from);
    memcpy(hybrid.model.from_digest, b.model.from_digest, sizeof b.model.from_digest);
    assert_int_equal(pretrained_fits(&hybrid, &a, &b), STATUS_INPUT);
    for (int i = 0; i < 2; i++)
        close_run(&runs[i]);
}

/* Two causes that only go together must act as one factor, and no others may. The ledger of a model
 * that was read from a file must have no draw of weights. */
static void validate_plan(void **state) {
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct experiment_plan plan;
    struct scenario *scenario;
    struct trained runs[2];
    (void)state;
    make(&subjects[0], "one", &runs[0]);
    make(&subjects[2], "two", &runs[1]);
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    if (parse(&arena, "model: {from: one}", "model: {from: two}, optimizer: {lr: 1e-3, beta1: 0.5}",
              &scenario) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_int_equal(experiment_plan_open(schema, scenario, &arena, &plan), STATUS_OK);
    assert_int_equal(plan.factor_count, 3);
    assert_string_equal(plan.factors[0].name, "schedule");
    assert_string_equal(plan.factors[1].name, "optimizer");
    assert_string_equal(plan.factors[2].name, "model+init");
    assert_non_null(strstr(plan.merged, "model and init act as one factor"));
    for (uint32_t i = 0; i < plan.runs[0].axes.shape.consumers; i++)
        assert_null(strstr(plan.runs[0].axes.consumers[i].name, "init/"));
    arena_close(&arena);
    for (int i = 0; i < 2; i++)
        close_run(&runs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_drawn_weights),
        cmocka_unit_test(validate_master),
        cmocka_unit_test(validate_written),
        cmocka_unit_test(validate_changed_weights),
        cmocka_unit_test(validate_fits),
        cmocka_unit_test(verify_saving),
        cmocka_unit_test(verify_saving_cut_off),
        cmocka_unit_test(validate_plan),
    };
    return cmocka_run_group_tests(tests, helper_folder_enter, helper_folder_leave);
}
