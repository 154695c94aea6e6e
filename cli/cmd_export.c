/* SPDX-License-Identifier: Apache-2.0
 * twinstep export: writes a log, or a run of a trace, in the form that another tool reads. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "logs/export.h"
#include "logs/rename.h"

enum { KEY_TO = KEY_OWN, KEY_NAMES };

static enum status check_format(const char *format) {
    if (format == NULL)
        FAIL(STATUS_INPUT, "export: expected --to csv, jsonl, torchtitan, megatron or nemo-rl");
    for (const struct log_export_format *f = log_export_formats(); f->name != NULL; f++)
        if (strcmp(f->name, format) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "export: --to: expected csv, jsonl, torchtitan, megatron or nemo-rl, got \"%s\"", format);
}

static enum status check_names(const char *names, const char *format) {
    if (names == NULL || strcmp(format, "csv") == 0 || strcmp(format, "jsonl") == 0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "export: --names: %s has names of its own; expected --to csv or jsonl",
         format);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *format = options_value(options, KEY_TO);
    struct log_options how;
    const char *names = options_value(options, KEY_NAMES);
    struct log *log, renamed;
    struct output output;
    TRY(check_format(format));
    TRY(check_names(names, format));
    TRY(log_options_read(options, &cli->arena, &how));
    TRY(log_options_apart(options->output, options->arguments[0], &cli->arena));
    TRY(log_import(options->arguments[0], &how, &cli->arena, &log));
    if (names != NULL) {
        TRY(log_rename(log, names, &cli->arena, &renamed));
        log = &renamed;
    }
    *out_exit = EXIT_AS_EXPECTED;
    if (options->output == NULL || strcmp(options->output, "-") == 0)
        return log_export(log, format, stdout);
    TRY(output_open(options->output, options->overwrite, &output));
    TRY(output_close(&output, log_export(log, format, output.file)));
    if (options->json)
        return json_print(json_pack("{ss ss ss sI}", "log", log->path, "to", format, "output",
                                    options->output, "rows", (json_int_t)log->rows));
    plain_text_put(options->output, stdout);
    printf(": %zu rows of ", log->rows);
    plain_text_put(log->path, stdout);
    printf(" as %s\n", format);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("to", KEY_TO, "FORMAT", "csv, jsonl, torchtitan, megatron, nemo-rl"),
    OPTION("names", KEY_NAMES, "TOOL", "Names of trl, open-instruct or torchtune (csv, jsonl)"),
    OPTION_OUTPUT("File to write; default, and -, standard output"),
    OPTION_OVERWRITE("Replace a file that exists; never LOG itself"),
    OPTIONS_LOG,
    OPTION("json", KEY_JSON, NULL, "With --output: say as JSON what was written"),
    OPTIONS_END};

const struct verb verb_export = {
    .name = "export",
    .streams = 1,
    .brief = "write a log or a run as CSV, JSONL, golden values",
    .arguments = "LOG",
    .text = "Writes LOG, any log that import reads or a run of a trace, in another form. Rounded "
            "values keep their digits, exact ones are written so that they read back to the "
            "bit.\v"
            "Example: twinstep export trainer_state.json --to csv -o run.csv",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
