/* SPDX-License-Identifier: Apache-2.0
 * twinstep report: turns a trace into one page of HTML. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "report/report.h"

static int is_builtin(const char *name, const char *text) {
    const struct catalog_file *file = catalog_find(name);
    return file != NULL && strlen(text) == file->length &&
           memcmp(file->bytes, text, file->length) == 0;
}

/* A row that could not be read looks like one without measurements, so no page is left then. */
static enum status write_page(const struct trace_image *image, const struct report_options *how,
                              struct arena *arena, FILE *out) {
    TRY(report_write(image, how, arena, out));
    return trace_rows_status(image);
}

static enum status write_file(const struct trace_image *image, const struct report_options *how,
                              const struct options *options, struct arena *arena) {
    struct output output;
    TRY(output_open(options->output, options->overwrite, &output));
    return output_close(&output, write_page(image, how, arena, output.file));
}

enum { KEY_RUN = KEY_OWN };

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const struct report_options how = {.version = TWINSTEP_VERSION,
                                       .is_builtin = is_builtin,
                                       .run = options_value(options, KEY_RUN)};
    const char *path = options->arguments[0], *output = options->output;
    struct trace_image *image;
    enum status status;
    if (output == NULL || output[0] == '\0')
        FAIL(STATUS_INPUT, "report: expected --output FILE.html, or - for standard output");
    const int to_stdout = strcmp(output, "-") == 0;
    if (!to_stdout) TRY(output_apart(output, path));
    TRY(trace_open_long(path, &cli->arena, &image));
    *out_exit = EXIT_AS_EXPECTED;
    status = to_stdout ? write_page(image, &how, &cli->arena, stdout)
                       : write_file(image, &how, options, &cli->arena);
    trace_close(image);
    if (status == STATUS_INPUT) return status_prefix(status, "%s", path);
    TRY(status);
    if (to_stdout) return STATUS_OK;
    if (options->json) return json_print(json_pack("{ss ss}", "trace", path, "output", output));
    plain_text_put(output, stdout);
    fputs(": report of ", stdout);
    plain_text_put(path, stdout);
    putchar('\n');
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Page to write (HTML), - for standard output"),
    OPTION_OVERWRITE("Replace a page that exists"),
    OPTION("json", KEY_JSON, NULL, "Say as JSON what was written"),
    OPTION("run", KEY_RUN, "RUN",
           "Which run of a trace that another program recorded; default the first"),
    OPTIONS_END};

const struct verb verb_report = {
    .name = "report",
    .streams = 1,
    .brief = "a trace as one self-contained page",
    .arguments = "TRACE",
    .text =
        "Writes TRACE (OUT.h5 of run, import or rollout, or the OUT.h5.part of a run that was "
        "stopped or "
        "still goes on) as one page: verdict, curves, floor, learning rates, first differences, "
        "shares, configuration, every update, machine. The page needs nothing else: no script, no "
        "font, no network. Equal traces give equal bytes.\v"
        "Example: twinstep report lr-set-before-step.h5 -o lr-set-before-step.html",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
