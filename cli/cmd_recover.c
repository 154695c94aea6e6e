/* SPDX-License-Identifier: Apache-2.0
 * twinstep recover: makes a normal trace out of the live file that a killed run left. */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/trace.h"

/* The default output is the name of the live file without its ending ".part". */
static enum status default_output(const char *part, struct arena *arena, char **out) {
    static const char suffix[] = ".part";
    size_t length = strlen(part), tail = sizeof suffix - 1;
    if (length <= tail || strcmp(part + length - tail, suffix) != 0 ||
        part[length - tail - 1] == '/')
        FAIL(STATUS_INPUT, "recover: %s does not end in .part: name the output with --output",
             part);
    return arena_text(arena, part, length - tail, out);
}

/* Neither the trace nor the file that it is called while it is made may be the live file: a failure
 * would destroy the only copy. */
static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *part = options->arguments[0];
    char *path, *live;
    if (options->output != NULL)
        TRY(arena_format(&cli->arena, &path, "%s", options->output));
    else
        TRY(default_output(part, &cli->arena, &path));
    TRY(arena_format(&cli->arena, &live, "%s" TRACE_REBUILD, path));
    TRY(output_apart(path, part));
    TRY(output_apart(live, part));
    TRY(trace_recover(part, path, options->overwrite));
    plain_text_put(path, stdout);
    fputs(": every finished update of ", stdout);
    plain_text_put(part, stdout);
    fputs(" (twinstep doctor ", stdout);
    plain_text_put(path, stdout);
    puts("; h5py)");
    *out_exit = EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Trace to write; default FILE.part without .part"),
    OPTION_OVERWRITE("Replace a trace that exists"), OPTIONS_END};

const struct verb verb_recover = {
    .name = "recover",
    .brief = "make a normal trace of a killed run's .part",
    .arguments = "FILE.part",
    .text =
        "Copies every finished update of FILE.part, which a killed run left, into a normal trace. "
        "FILE.part itself is only read and stays.\v"
        "Example: twinstep recover lr-set-before-step.h5.part",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
