/* SPDX-License-Identifier: Apache-2.0
 * Finds a scenario, resolves its data files and checks its loops. Invariant: nothing here changes
 * the working folder, and no relative path becomes absolute. */
#include "cli/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "cli/output.h"
#include "model/pretrained.h"
#include "scenarios/suggest.h"
#include "trainer/loop.h"
#include "trainer/run.h"

const struct catalog_file *catalog_find(const char *name) {
    for (const struct catalog_file *file = catalog_files; file->name != NULL; file++)
        if (strcmp(file->name, name) == 0) return file;
    return NULL;
}

static enum status join_folder(const struct scenario *scenario, const char *key,
                               char value[CONFIG_PATH_SIZE]) {
    const char *slash = strrchr(scenario->path, '/');
    if (slash == NULL || value[0] == '/' || strncmp(value, "builtin:", 8) == 0) return STATUS_OK;
    size_t folder = (size_t)(slash - scenario->path) + 1;
    size_t length = strlen(value);
    if (folder + length >= CONFIG_PATH_SIZE)
        FAIL(STATUS_INPUT, "%s: error: %s: expected a path of at most %d bytes, folder included",
             scenario->path, key, CONFIG_PATH_SIZE - 1);
    memmove(value + folder, value, length);
    memcpy(value, scenario->path, folder);
    return STATUS_OK;
}

/* Refuses a loop that reads what was never written, and names the line that says so. */
static enum status check_loop(const struct scenario *scenario, const char *label, int arm) {
    struct loop_fault fault = {LOOP_LISTS, 0, PHASE_TOTAL};
    enum status status = loop_check(&scenario->arms[arm].config, &fault);
    if (status == STATUS_OK) return STATUS_OK;
    int line = fault.list < LOOP_LISTS ? scenario->loop_line[arm][fault.list] : 0;
    status = status_prefix(status, "arm %s", scenario->arms[arm].name);
    if (line > 0) return status_prefix(status, "%s:%d: error", label, line);
    return status_prefix(status, "%s: error", label);
}

enum status load_check_data(const struct scenario *scenario, int arm) {
    const char *const path = run_dataset_options(&scenario->arms[arm].config).source;
    if (dataset_is_builtin(path)) return STATUS_OK;
    const enum status status = input_try(path, "a file of JSONL");
    if (status == STATUS_OK) return STATUS_OK;
    const char *const file = scenario->path[0] == '\0' ? "scenario" : scenario->path;
    const char *const key =
        scenario->arms[arm].config.task == TASK_SFT ? "data.text" : "data.pairs";
    const int line = scenario->data_place[arm][0];
    if (line == 0) return status_prefix(status, "%s: error: %s", file, key);
    return status_prefix(status, "%s:%d:%d: error: %s", file, line, scenario->data_place[arm][1],
                         key);
}

static enum status apart_from(const char *output, const char *read) {
    static const char *const words[] = {"none", "auto", EVAL_REST};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(read, words[i]) == 0) return STATUS_OK;
    return strncmp(read, "builtin:", 8) == 0 ? STATUS_OK : output_apart(output, read);
}

enum status load_apart(const char *output, const struct scenario *scenario) {
    if (output == NULL) return STATUS_OK;
    TRY(apart_from(output, scenario->eval.from));
    for (int arm = 0; arm < 2; arm++) {
        const struct config *const config = &scenario->arms[arm].config;
        const char *const read[] = {config->data.text,
                                    config->data.pairs,
                                    config->optimizer.which.module,
                                    config->schedule.which.module,
                                    config->shaped.table,
                                    config->numerics.backend_module};
        for (size_t i = 0; i < COUNT_OF(read); i++)
            TRY(apart_from(output, read[i]));
        if (pretrained_is_named(config)) TRY(output_apart_folder(output, config->model.from));
    }
    return STATUS_OK;
}

static enum status settle(struct cli *cli, struct scenario *scenario, const char *label,
                          const struct options *options) {
    for (int arm = 0; arm < 2; arm++) {
        struct config *config = &scenario->arms[arm].config;
        TRY(join_folder(scenario, "data.pairs", config->data.pairs));
        TRY(join_folder(scenario, "data.text", config->data.text));
        TRY(check_loop(scenario, label, arm));
    }
    TRY(load_apart(options->output, scenario));
    const enum status status = load_apart(options->junit, scenario);
    cli->ci.withheld |= status != STATUS_OK;
    return status;
}

enum status load_catalog(struct cli *cli, struct arena *arena, const struct catalog_file *file,
                         const struct options *options, struct scenario **out) {
    char *label;
    TRY(arena_format(arena, &label, "%s.yaml", file->name));
    TRY(scenario_parse(arena, cli->schema, label, (const char *)file->bytes, file->length,
                       options->sets, options->set_count, out));
    return settle(cli, *out, label, options);
}

enum status load_fail_missing(const char *what, const char *word) {
    struct suggestion nearest = {.word = word};
    for (const struct catalog_file *file = catalog_files; file->name != NULL; file++)
        suggest_offer(&nearest, file->name);
    if (nearest.best != NULL) FAIL(STATUS_INPUT, "%s; did you mean %s?", what, nearest.best);
    FAIL(STATUS_INPUT, "%s (twinstep list scenarios)", what);
}

enum status load_scenario(struct cli *cli, struct arena *arena, const char *word,
                          const struct options *options, struct scenario **out) {
    struct stat info;
    /* a link that leads to itself is a file, which cannot be opened */
    if (strchr(word, '/') == NULL && strcmp(word, "-") != 0 && stat(word, &info) != 0 &&
        errno != ELOOP) {
        const struct catalog_file *file = catalog_find(word);
        if (file == NULL) {
            char *what;
            TRY(arena_format(arena, &what,
                             "%s: error: no such file, and no scenario of the catalogue", word));
            return load_fail_missing(what, word);
        }
        return load_catalog(cli, arena, file, options, out);
    }
    TRY(scenario_open(arena, cli->schema, word, options->sets, options->set_count, out));
    return settle(cli, *out, (*out)->path, options);
}
