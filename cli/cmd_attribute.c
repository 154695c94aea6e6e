/* SPDX-License-Identifier: Apache-2.0
 * twinstep attribute: judges a trace anew, whether its run finished or not. It trains nothing. */
#include "cli/consent.h"
#include "cli/foreign_print.h"
#include "cli/perform.h"
#include "determinism/trace.h"
#include "experiment/noise/noise_use.h"

enum { KEY_FLOOR = KEY_OWN };

/* Opens the trace as it is, or with a floor file in the place of the floor that it recorded. */
static enum status with_floor(struct cli *cli, const struct options *options,
                              const struct trace_image *image, struct trace_image *out) {
    const char *path = options_value(options, KEY_FLOOR);
    struct floor_file file;
    *out = *image;
    if (path == NULL) return STATUS_OK;
    TRY(floor_file_open(path, &cli->arena, &file));
    return noise_use_image(cli->schema, path, &file, image, &cli->arena, out);
}

static enum status attribute(struct cli *cli, const struct options *options,
                             const struct trace_image *image, struct judgement *out) {
    const char *path = options->arguments[0];
    struct trace_image *held; /* the judgement points to it */
    TRY(foreign_refuse(
        image, path,
        "no hybrids of two configurations were trained, so nothing can be "
        "attributed; twinstep ablate trains them, by your own commands, and twinstep "
        "compare A B says what differs first and what that points to"));
    TRY(arena_take(&cli->arena, 1, sizeof *held, "trace", &held));
    enum status status = with_floor(cli, options, image, held);
    if (status == STATUS_OK) status = judge(held, &cli->arena, out);
    return status == STATUS_OK ? status : status_prefix(status, "%s", path);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *path = options->arguments[0];
    struct trace_image *image;
    struct judgement judgement;
    TRY(trace_open_long(path, &cli->arena, &image));
    const enum status status = attribute(cli, options, image, &judgement);
    trace_close(image);
    TRY(status);
    if (options->json)
        TRY(judgement_print_json(&judgement, stdout));
    else
        judgement_print(&judgement, stdout);
    *out_exit = judgement_exit(&judgement);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("floor", KEY_FLOOR, "FILE",
           "Judge against this floor file (twinstep noise -o) of the same baseline"),
    OPTIONS_MODULES, OPTION_JSON, OPTIONS_END};

const struct verb verb_attribute = {
    .name = "attribute",
    .brief = "judge again from a trace",
    .arguments = "TRACE",
    .text =
        "Reads TRACE (OUT.h5, or the OUT.h5.part of a run that was stopped or still goes on) and "
        "judges it as run does. What the trace does not hold yet is untestable. "
        "docs/GLOSSARY.md explains the words of the answer.\v"
        "Example: twinstep attribute lr-set-before-step.h5 --json",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
