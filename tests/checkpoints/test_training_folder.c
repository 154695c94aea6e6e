/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Checkpoints that real trainers wrote (tests/golden/foreign/runs), each held against its
 * truth.json: the names in every parameter group, Adam's count, the rule, the LR that is promised;
 * and every way to be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "checkpoints/training_folder.h"
#include "tests/base/helper_size.h"
#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_torch.h"

#define RUNS TWINSTEP_SOURCE_DIR "/tests/golden/foreign/runs"

static const char *runs = RUNS; /* or another folder of such trainings, as argument */

struct tally {
    size_t runs, checkpoints, named, refused;
};

static const char *text_of(const json_t *truth, const char *key) {
    const char *text = json_string_value(json_object_get(truth, key));
    if (text == NULL) fail_msg("truth.json without %s", key);
    return text;
}

/* The kinds as truth.json has them. */
static int is_kind(enum training_kind kind, const char *wanted) {
    if (kind == TRAINING_ACCELERATE) return strcmp(wanted, "accelerate") == 0;
    if (kind == TRAINING_LIGHTNING) return strcmp(wanted, "lightning") == 0;
    if (kind == TRAINING_HF) return strcmp(wanted, "hf-trainer") == 0 || wanted[0] == 't';
    return strcmp(wanted, "torch") == 0;
}

static int is_rule(const struct training_folder *folder, const char *optimizer) {
    switch (folder->rule) {
    case TRAINING_ADAM:
        return strncmp(optimizer, "Adam", 4) == 0 &&
               folder->groups[0].decoupled == (strcmp(optimizer, "AdamW") == 0);
    case TRAINING_AMSGRAD:
        return strcmp(optimizer, "AdamW") == 0;
    case TRAINING_SGD:
        return strcmp(optimizer, "SGD") == 0;
    case TRAINING_LION:
        return strcmp(optimizer, "Lion") == 0;
    default:
        return strcmp(optimizer, "Adafactor") == 0;
    }
}

/* The names of a group must be the truth's, in its order. Names that are guessed say so; then those
 * that are there must be of the right shape, and the truth's are given as a file would. */
static void check_names(const struct training_folder *folder, const json_t *groups,
                        const char *path) {
    assert_int_equal(folder->group_count, json_array_size(groups));
    for (size_t g = 0; g < folder->group_count; g++) {
        const json_t *names = json_array_get(groups, g);
        assert_int_equal(folder->groups[g].count, json_array_size(names));
        for (size_t i = 0; i < json_array_size(names); i++) {
            const struct training_parameter *parameter =
                &folder->parameters[folder->groups[g].first + i];
            const char *wanted = json_string_value(json_array_get(names, i));
            if (parameter->weight == NULL || strcmp(parameter->weight->name, wanted) != 0)
                fail_msg("%s: group %zu, parameter %zu: %s, expected %s", path, g, i,
                         parameter->weight == NULL ? "no name" : parameter->weight->name, wanted);
        }
    }
}

static enum status open_given(const char *path, const json_t *groups, struct arena *arena,
                              struct training_folder *out) {
    const char *names[64];
    struct training_given_names given = {.path = "names.txt", .names = names};
    for (size_t g = 0; g < json_array_size(groups); g++)
        for (size_t i = 0; i < json_array_size(json_array_get(groups, g)); i++)
            names[given.count++] = json_string_value(json_array_get(json_array_get(groups, g), i));
    return training_folder_open(path, &given, arena, out);
}

static int is_listed(const json_t *names, const char *name) {
    size_t i;
    const json_t *each;
    json_array_foreach(names, i, each) if (strcmp(json_string_value(each), name) == 0) return 1;
    return 0;
}

/* The count and the LR that the update before the checkpoint used. A weight that no gradient
 * reached after update 1 keeps its count of 1. */
static void check_numbers(const struct training_folder *folder, const json_t *truth, size_t update,
                          const char *path) {
    const json_t *of_update = json_array_get(json_object_get(truth, "updates"), update - 1);
    const json_t *groups = json_object_get(of_update, "groups");
    const json_t *idle = json_object_get(truth, "idle_after_update_1");
    for (size_t g = 0; g < json_array_size(groups); g++) {
        const json_t *group = json_array_get(groups, g);
        const double count = json_number_value(json_object_get(group, "count"));
        const double decay = json_number_value(json_object_get(group, "weight_decay"));
        double value = -1.0;
        assert_true(training_group_number(&folder->groups[g], "weight_decay", &value));
        assert_true(value == decay);
        assert_true(training_group_number(&folder->groups[g], "lr", &value) && value >= 0.0);
        for (size_t i = 0; i < folder->groups[g].count; i++) {
            const struct training_parameter *parameter =
                &folder->parameters[folder->groups[g].first + i];
            if (!parameter->has_step || strcmp(path, "bug-count-ahead-unstored") == 0) continue;
            const json_t *name =
                json_array_get(json_array_get(json_object_get(truth, "groups"), g), i);
            const double expected = is_listed(idle, json_string_value(name)) ? 1.0 : count;
            if (parameter->step != expected)
                fail_msg("%s: count %g, expected %g", path, parameter->step, expected);
        }
    }
}

static void check_checkpoint(const char *name, const json_t *truth, const json_t *checkpoint,
                             struct tally *tally) {
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    char path[1024];
    const json_t *groups = json_object_get(truth, "groups");
    const size_t update = (size_t)json_integer_value(json_object_get(checkpoint, "update"));
    snprintf(path, sizeof path, "%s/%s/%s", runs, name, text_of(checkpoint, "path"));
    tally->checkpoints++;
    const enum status status = training_folder_open(path, NULL, &arena, &folder);
    if (strcmp(text_of(truth, "sees"), "refused") == 0) {
        helper_require(status, STATUS_INPUT, "got plain SGD (no momentum)");
        tally->refused++;
        arena_close(&arena);
        return;
    }
    if (status != STATUS_OK) fail_msg("%s", status_text());
    if (!is_kind(folder.kind, text_of(truth, "kind")))
        fail_msg("%s: %s", path, training_kind_name(folder.kind));
    if (!is_rule(&folder, text_of(truth, "optimizer")))
        fail_msg("%s: %s", path, training_rule_name(folder.rule));
    if (!folder.is_ambiguous) {
        tally->named++;
        check_names(&folder, groups, path);
    }
    if (update > 0) check_numbers(&folder, truth, update, name);
    const json_t *stored = json_object_get(checkpoint, "stored_step"); /* a loop's index, from 0 */
    if (folder.has_step)
        assert_int_equal(folder.global_step,
                         stored == NULL ? update : (size_t)json_integer_value(stored));
    const int has_masters = strcmp(text_of(truth, "dtype"), "masters") == 0;
    assert_int_equal(folder.master_count > 0, has_masters);
    assert_int_equal(folder.parameters[0].master != NULL, has_masters);
    training_folder_close(&folder);
    if (open_given(path, groups, &arena, &folder) != STATUS_OK) fail_msg("%s", status_text());
    check_names(&folder, groups, path);
    assert_int_equal(folder.names_from, TRAINING_NAMES_GIVEN);
    training_folder_close(&folder);
    arena_close(&arena);
}

static void corroborate_runs(void **state) {
    (void)state;
    struct tally tally = {0};
    DIR *directory = opendir(runs);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[1024];
        const json_t *checkpoint;
        size_t i;
        snprintf(path, sizeof path, "%.700s/%.200s/truth.json", runs, entry->d_name);
        json_t *truth = json_load_file(path, 0, NULL);
        if (truth == NULL) continue;
        tally.runs++;
        json_array_foreach(json_object_get(truth, "checkpoints"), i, checkpoint)
            check_checkpoint(entry->d_name, truth, checkpoint, &tally);
        json_decref(truth);
    }
    closedir(directory);
    print_message("%zu runs, %zu checkpoints, %zu named without a choice, %zu refused\n",
                  tally.runs, tally.checkpoints, tally.named, tally.refused);
    if (strcmp(runs, RUNS) != 0) return;
    assert_true(tally.runs >= 65 && tally.named >= 125 && tally.refused == 4);
}

#define FOREIGN TWINSTEP_SOURCE_DIR "/tests/golden/foreign"
#define FILES FOREIGN "/folders/"

static off_t size_below(const char *folder) {
    off_t total = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[1024];
        struct stat file;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%.700s/%.300s", folder, entry->d_name);
        assert_int_equal(stat(path, &file), 0);
        total += S_ISDIR(file.st_mode) ? size_below(path) : file.st_size;
    }
    closedir(directory);
    return total;
}

/* A checkout shall stay small: a training beyond this goes to the set `large` of
 * tests/bench/foreign_cases.py, which is made where it is needed. Logs alone take few bytes, and
 * each kind of bug has one. */
static void verify_size(void **state) {
    (void)state;
    const off_t size = size_below(FOREIGN);
    print_message("%.2f MB\n", (double)size / 1e6);
    assert_true(size <= 4200000);
}

/* Names beside each file that torch wrote (tests/bench/torch_folders.py). What could be named in
 * another way says so. */
static void corroborate_layouts(void **state) {
    (void)state;
    static const struct {
        const char *stem;
        int is_ambiguous;
    } cases[] = {{"tied_buffers", 0}, {"embedding_apart", 0}, {"backbone_head", 0},
                 {"user_objects", 0}, {"keyed_by_name", 0},   {"dcp_converted", 0},
                 {"wrapped", 0},      {"frozen_left_out", 1}, {"layer_by_layer", 1},
                 {"shards", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct training_folder folder;
        struct training_given_names names;
        char path[1024], list[1024];
        const int is_folder = strcmp(cases[i].stem, "shards") == 0;
        snprintf(path, sizeof path, FILES "%s%s", cases[i].stem, is_folder ? "" : ".pt");
        snprintf(list, sizeof list, FILES "%s.names", cases[i].stem);
        assert_int_equal(training_names_read(list, &arena, &names), STATUS_OK);
        for (int given = cases[i].is_ambiguous; given < 2; given++) {
            if (training_folder_open(path, given ? &names : NULL, &arena, &folder) != STATUS_OK)
                fail_msg("%s", status_text());
            assert_int_equal(folder.is_ambiguous, 0);
            assert_int_equal(folder.parameter_count, names.count);
            for (size_t k = 0; k < names.count; k++)
                assert_string_equal(folder.parameters[k].weight->name, names.names[k]);
            training_folder_close(&folder);
        }
        assert_int_equal(training_folder_open(path, NULL, &arena, &folder), STATUS_OK);
        assert_int_equal(folder.is_ambiguous, cases[i].is_ambiguous);
        training_folder_close(&folder);
        arena_close(&arena);
    }
}

/* Where no order fits, what has a shape of its own is named; and flags that are not there are
 * unknown. */
static void validate_remains(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    double value;
    assert_int_equal(training_folder_open(FILES "reversed.pt", NULL, &arena, &folder), STATUS_OK);
    assert_true(folder.is_ambiguous && folder.names_from == TRAINING_NAMES_SHAPES);
    assert_string_equal(folder.parameters[0].weight->name, "head.bias");
    for (size_t i = 1; i < folder.parameter_count; i++)
        assert_null(folder.parameters[i].weight);
    training_folder_close(&folder);
    assert_int_equal(training_folder_open(FILES "older_adam.pt", NULL, &arena, &folder), STATUS_OK);
    assert_true(folder.rule == TRAINING_ADAM && folder.groups[0].decoupled == -1);
    training_folder_close(&folder);
    assert_int_equal(
        training_folder_open(RUNS "/plain-foreach-safetensors/step-1", NULL, &arena, &folder),
        STATUS_OK);
    assert_true(folder.is_ambiguous && folder.names_from == TRAINING_NAMES_SHAPES);
    assert_string_equal(folder.parameters[0].weight->name, "0.weight");
    training_folder_close(&folder);
    assert_int_equal(training_folder_open(RUNS "/plain-adafactor/step-1", NULL, &arena, &folder),
                     STATUS_OK);
    assert_false(training_group_number(&folder.groups[0], "eps[0]", &value)); /* None */
    assert_true(training_group_number(&folder.groups[0], "eps[1]", &value) && value == 0.001);
    training_folder_close(&folder);
    arena_close(&arena);
}

static void refuse(const char *path, const struct training_given_names *given, enum status wanted,
                   const char *needle) {
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    const enum status status = training_folder_open(path, given, &arena, &folder);
    if (status == STATUS_OK) fail_msg("%s was read: %s", path, needle);
    helper_require(status, wanted, needle);
    arena_close(&arena);
}

static void validate_refused_files(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"refused_8bit.pt",
         "optimizer.state[0].state1: got the state of an optimizer of bitsandbytes"},
        {"refused_adagrad.pt", "got that of Adagrad"},
        {"refused_rmsprop.pt", "got that of RMSprop"},
        {"refused_nadam.pt", "got that of NAdam"},
        {"refused_radam.pt", "got RAdam"},
        {"refused_muon.pt", "got Muon (ns_steps)"},
        {"refused_two.pt", "expected one optimizer, got 2"},
        {"refused_alone.pt", "got the state dict of an optimizer alone: name the folder"},
        {"refused_no_model.pt", "expected the weights of a model beside the optimizer"},
        {"refused_legacy.pt", "got its legacy format: load it with torch.load and save it again"},
        {"dcp", "`python -m torch.distributed.checkpoint.format_utils dcp_to_torch /"},
        {"dcp/__0_0.distcp", "got a shard of torch.distributed.checkpoint"},
        {"", "got none of them"},
        {"../runs/hf-qwen2-fused", "got that of a run: name one of \"checkpoint-1\", \"checkpoint"},
        {"../runs/restart-ok-hf/checkpoint-4/training_args.bin",
         "got an object of the class transformers.training_args.TrainingArguments"},
        {"../runs/hf-qwen2-fused/checkpoint-1/scheduler.pt", "got no tensor"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[1024];
        snprintf(path, sizeof path, FILES "%s", cases[i][0]);
        refuse(path, NULL, STATUS_INPUT, cases[i][1]);
    }
    refuse(FILES "absent", NULL, STATUS_IO, "absent: cannot open");
}

static void copy(const char *from, const char *to) {
    size_t length;
    unsigned char *bytes = helper_read(from, &length);
    helper_write_bytes(to, bytes, length);
    free(bytes);
}

/* What says who wrote a folder. */
static void validate_folders(void **state) {
    (void)state;
    static const char *const marks[][2] = {
        {"f/latest_universal", "got a universal checkpoint of DeepSpeed"},
        {"f/zero_pp_rank_0_mp_rank_00_model_states.pt",
         "`python -m deepspeed.checkpoint.ds_to_universal --inject_"},
        {"f/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "got a checkpoint of DeepSpeed ZeRO"},
        {"f/pytorch_model_fsdp_0_rank0.bin", "(LOCAL_STATE_DICT), which nothing puts together"},
        {"f/zero_to_fp32.py", "got a checkpoint of DeepSpeed ZeRO, whose states are flat"},
        {"f/pytorch_model_fsdp_0", "dcp_to_torch FOLDER/optimizer_0 optimizer.pt`"},
        {"f/.metadata", "dcp_to_torch f FILE`, and name that file"},
        {"f/optimizer_1.bin", "expected one optimizer, got optimizer.bin and optimizer_1.bin"},
    };
    assert_int_equal(mkdir("f", 0700), 0);
    copy(FILES "weights_alone.pt", "f/pytorch_model.bin");
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        helper_write_text(marks[i][0], "");
        refuse("f", NULL, STATUS_INPUT, marks[i][1]);
        assert_int_equal(unlink(marks[i][0]), 0);
    }
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    assert_int_equal(training_folder_open("f/", NULL, &arena, &folder), STATUS_OK);
    assert_string_equal(folder.path, "f");
    assert_int_equal(folder.kind, TRAINING_WEIGHTS);
    assert_null(folder.optimizer_path);
    assert_string_equal(folder.rule_reason, "the folder holds no optimizer.pt or optimizer.bin");
    training_folder_close(&folder);
    assert_int_equal(unlink("f/pytorch_model.bin"), 0);
    arena_close(&arena);
}

/* An index of pickled shards that says another thing than they hold, or than the folder. */
static void validate_pickled_shards(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "weight_map: expected an object of file names, got nothing"},
        {"{\"weight_map\": {\"w\": \"../w.bin\"}}", "expected the name of a file in the same"},
        {"{\"weight_map\": {\"w\": \"w.bin\"}}", "p/w.bin: cannot open"},
        {"{\"weight_map\": {\"w\": \"a.bin\"}}",
         "p/a.bin: expected the tensors that weight_map of "
         "pytorch_model.bin.index.json gives it; missing: \"w\""},
        {"{\"weight_map\": {\"a.bias\": \"a.bin\"}}", "missing: none; extra: \"a.weight\""},
    };
    assert_int_equal(mkdir("p", 0700), 0);
    copy(FILES "weights_alone.pt", "p/a.bin");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        helper_write_text("p/pytorch_model.bin.index.json", cases[i][0]);
        refuse("p", NULL, i == 2 ? STATUS_IO : STATUS_INPUT, cases[i][1]);
    }
    copy(FILES "weights_alone.pt", "p/pytorch_model.bin");
    refuse("p", NULL, STATUS_INPUT, "got both: programs differ in which of them they read");
}

/* Python's NaN in a log is a row without that number. */
static void validate_trainer_state(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    assert_int_equal(mkdir("h", 0700), 0);
    copy(FILES "weights_alone.pt", "h/pytorch_model.bin");
    helper_write_text("h/trainer_state.json",
                      "{\"epoch\": 0.5, \"global_step\": 3, \"max_steps\": 9, \"x\": \"NaN \\\"\", "
                      "\"log_history\": [{\"step\": 2, \"loss\": NaN, \"learning_rate\": 1e-3, "
                      "\"grad_norm\": -Infinity}, {\"step\": 3, \"eval_loss\": 1}]}");
    assert_int_equal(training_folder_open("h", NULL, &arena, &folder), STATUS_OK);
    assert_int_equal(folder.kind, TRAINING_HF);
    assert_true(folder.has_step && folder.global_step == 3 && folder.max_steps == 9);
    assert_true(folder.epoch == 0.5);
    assert_int_equal(folder.log_count, 1);
    assert_true(folder.log[0].step == 2 && folder.log[0].has_lr && folder.log[0].lr == 1e-3);
    assert_true(!folder.log[0].has_loss && !folder.log[0].has_norm);
    training_folder_close(&folder);
    arena_close(&arena);
    helper_write_text("h/trainer_state.json", "{\"global_step\": -1}");
    refuse("h", NULL, STATUS_INPUT, "global_step: expected a whole number from 0 on");
    helper_write_text("h/trainer_state.json", "{");
    refuse("h", NULL, STATUS_INPUT, "trainer_state.json: expected JSON");
}

static void validate_given_names(void **state) {
    (void)state;
    static const char *const names[] = {"embed.weight", "a.weight",    "a.bias",   "b.weight",
                                        "b.bias",       "head.weight", "head.bias"};
    static const struct {
        size_t count, at;
        const char *name, *needle;
    } cases[] = {
        {6, 0, "embed.weight", "expected a name for each of the optimizer's 7 parameters, got 6"},
        {7, 3, "c.weight", "n.txt: expected the name of a weight in"},
        {7, 3, "a.weight", "expected each name once, got \"a.weight\" twice"},
        {7, 0, "head.weight", "expected each name once"},
        {7, 1, "a.bias", "(F32 [4, 4]), got F32 [4]: names stand in the order of the groups"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *list[7];
        memcpy(list, names, sizeof list);
        list[cases[i].at] = cases[i].name;
        const struct training_given_names given = {"n.txt", cases[i].count, list};
        refuse(FILES "user_objects.pt", &given, STATUS_INPUT, cases[i].needle);
    }
    static const char *const swapped[] = {"1.weight", "0.weight", "5.weight",
                                          "3.weight", "3.bias",   "5.bias"};
    const struct training_given_names factored = {"n.txt", 6, swapped};
    refuse(RUNS "/plain-adafactor/step-1", &factored, STATUS_INPUT,
           "n.txt: \"1.weight\": expected a weight of the shape");
    struct arena arena = ARENA_EMPTY;
    struct training_given_names read;
    helper_write_bytes("n.txt", "# one\na.weight\r\n\nb", 18);
    assert_int_equal(training_names_read("n.txt", &arena, &read), STATUS_OK);
    assert_int_equal(read.count, 2);
    assert_string_equal(read.names[0], "a.weight");
    assert_string_equal(read.names[1], "b");
    helper_write_bytes("n.txt", "a\0b", 3);
    helper_require(training_names_read("n.txt", &arena, &read), STATUS_INPUT, "got a NUL");
    arena_close(&arena);
}

/* A damaged file is refused with a text, or read to the end. */
static void verify_mutations(void **state) {
    (void)state;
    static const char *const stems[] = {"user_objects", "tied_buffers", "keyed_by_name"};
    const size_t count = helper_size(60, 200, 5000);
    size_t refused = 0;
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_EMPTY;
        struct training_folder folder;
        char path[1024];
        size_t length;
        snprintf(path, sizeof path, FILES "%s.pt", stems[i % COUNT_OF(stems)]);
        unsigned char *bytes = helper_read(path, &length);
        helper_torch_mutate(bytes, length, i);
        helper_write_bytes("m.pt", bytes, length);
        free(bytes);
        if (training_folder_open("m.pt", NULL, &arena, &folder) == STATUS_OK) {
            training_folder_close(&folder);
        } else {
            refused++;
            assert_true(strncmp(status_text(), "m.pt: ", 6) == 0);
        }
        arena_close(&arena);
    }
    print_message("%zu mutations, %zu refused\n", count, refused);
    assert_true(refused > count / 4 && refused < count);
}

/* What stands beside weights and moments, where a Trainer wrote all of it. */
static void validate_others(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct training_folder a, b;
    assert_int_equal(training_folder_open(RUNS "/restart-ok-hf/checkpoint-4", NULL, &arena, &a),
                     STATUS_OK);
    assert_int_equal(training_folder_open(RUNS "/restart-ok-hf/checkpoint-5", NULL, &arena, &b),
                     STATUS_OK);
    assert_int_equal(a.generator_count, 3);
    assert_string_equal(a.generators[0].name, "python");
    assert_string_equal(a.generators[1].name, "numpy");
    assert_string_equal(a.generators[2].name, "cpu");
    assert_memory_not_equal(&a.generators[0].digest, &a.generators[1].digest,
                            sizeof(struct digest));
    assert_true(a.scheduler.is_there && a.scheduler.last_epoch == 4 && b.scheduler.last_epoch == 5);
    assert_true(a.scheduler.has_step_count && a.scheduler.step_count == 5);
    assert_int_equal(a.scheduler.last_count, 2);
    assert_true(a.scheduler.base_lrs[0] == 0.001 && a.scheduler.last_lrs[1] == 0.0005);
    assert_int_equal(a.scaler.is_there, 0);
    assert_int_equal(b.log_count, 5);
    assert_true(b.log[4].has_lr && b.log[4].lr == 0.0005);
    training_folder_close(&a);
    training_folder_close(&b);
    assert_int_equal(training_folder_open(RUNS "/restart-scaler-lost/step-4", NULL, &arena, &a),
                     STATUS_OK);
    assert_true(a.scaler.is_there && a.scaler.scale == 2048.0 && a.scaler.growth_tracker == 1 &&
                a.scaler.growth_interval == 3);
    assert_int_equal(a.sampler_count, 1);
    assert_true(strcmp(a.sampler[0].key, "position") == 0 && a.sampler[0].value == 4.0);
    training_folder_close(&a);
    assert_int_equal(training_folder_open(RUNS "/accelerate-llama/step_1", NULL, &arena, &a),
                     STATUS_OK);
    assert_int_equal(a.generator_count, 4); /* with Accelerate's count of steps */
    assert_string_equal(a.generators[3].name, "torch_manual_seed");
    training_folder_close(&a);
    arena_close(&arena);
}

int main(int argc, char **argv) {
    if (argc > 1) runs = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_runs),       cmocka_unit_test(verify_size),
        cmocka_unit_test(corroborate_layouts),    cmocka_unit_test(validate_refused_files),
        cmocka_unit_test(validate_folders),       cmocka_unit_test(validate_pickled_shards),
        cmocka_unit_test(validate_trainer_state), cmocka_unit_test(validate_given_names),
        cmocka_unit_test(validate_others),        cmocka_unit_test(validate_remains),
        cmocka_unit_test(verify_mutations),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
