/* SPDX-License-Identifier: Apache-2.0
 * twinstep demo: runs a scenario of the catalogue, to show what a verdict looks like. It replaces a
 * trace of its own name that holds the same scenario, and no other file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cores.h"
#include "cli/load.h"
#include "cli/perform.h"
#include "determinism/trace.h"

#define DEMO_SCENARIO "lr-set-before-step"

/* Refuses unless `path` is free or a trace that a run of this scenario left, finished or not. */
static enum status check_ours(const char *path, const char *name, struct arena *arena) {
    struct trace_image *image;
    struct stat info;
    if (lstat(path, &info) != 0) return STATUS_OK; /* nothing is there */
    if (trace_open(path, arena, &image) == STATUS_OK) {
        const char *holds = trace_attribute_of(image, "", "name");
        if (holds != NULL && strcmp(holds, name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "demo: %s exists and is no trace of %s: it is left alone; use --output",
         path, name);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *name = options->argument_count == 0 ? DEMO_SCENARIO : options->arguments[0];
    const struct catalog_file *file = catalog_find(name);
    struct scenario *scenario;
    struct judgement judgement;
    char *path, *live;
    if (file == NULL) {
        TRY(arena_format(&cli->arena, &path, "demo: no scenario \"%s\" in the catalogue", name));
        return load_fail_missing(path, name);
    }
    TRY(load_catalog(cli, &cli->arena, file, options, &scenario));
    TRY(arena_format(&cli->arena, &path, "%s.h5", name));
    if (options->output != NULL) TRY(arena_format(&cli->arena, &path, "%s", options->output));
    TRY(arena_format(&cli->arena, &live, "%s.part", path));
    TRY(check_ours(path, scenario->name, &cli->arena));
    TRY(check_ours(live, scenario->name, &cli->arena));
    struct performance how = {.path = path,
                              .overwrite = 1,
                              .reproducible = options->reproducible,
                              .cores = cores_usable(),
                              .progress = progress_wanted(options)};
    TRY(perform(cli, scenario, &how, &cli->arena, &judgement));
    TRY(print_judgement(&judgement, path, options->json));
    *out_exit = judgement_exit(&judgement);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Trace to write; default NAME.h5 in this folder, replaced when demo wrote it"),
    OPTION_REPRODUCIBLE, OPTION_JSON, OPTION_QUIET, OPTIONS_END};

const struct verb verb_demo = {
    .name = "demo",
    .brief = "run a scenario of the catalogue",
    .arguments = "[NAME]",
    .text = "Runs the catalogue scenario NAME (default " DEMO_SCENARIO
            "), the learning-rate off-by-one of "
            "the open-instruct investigation, reproduced on a small model and real text.\v"
            "Example: twinstep demo",
    .options = option_rows,
    .most = 1,
    .trains = 1,
    .run = run,
};
