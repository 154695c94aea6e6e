/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
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
#include "tests/checkpoints/helper_checkpoint.h"

#define RUNS TWINSTEP_SOURCE_DIR "/tests/golden/foreign/runs"

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

/* The count and the LR that the update before the checkpoint used. */
static void check_numbers(const struct training_folder *folder, const json_t *truth, size_t update,
                          const char *path) {
    const json_t *of_update = json_array_get(json_object_get(truth, "updates"), update - 1);
    const json_t *groups = json_object_get(of_update, "groups");
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
            if (parameter->step != count)
                fail_msg("%s: count %g, expected %g", path, parameter->step, count);
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
    snprintf(path, sizeof path, RUNS "/%s/%s", name, text_of(checkpoint, "path"));
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
    if (folder.has_step) assert_int_equal(folder.global_step, update);
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
    DIR *directory = opendir(RUNS);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[1024];
        const json_t *checkpoint;
        size_t i;
        snprintf(path, sizeof path, RUNS "/%.200s/truth.json", entry->d_name);
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
    assert_true(tally.runs >= 70 && tally.named >= 130 && tally.refused == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_runs)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
