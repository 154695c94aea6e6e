/* SPDX-License-Identifier: Apache-2.0
 * twinstep recover: makes a normal trace out of the live file that a killed run left. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/trace.h"
#include "evidence/series_seen.h"

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

static enum status say_json(const char *part, const char *path, const struct trace_image *image,
                            const struct series_lack *lacks, uint32_t count) {
    json_t *const runs = json_array(), *const lacking = json_array();
    for (uint32_t i = 0; i < image->run_count; i++)
        json_array_append_new(runs, json_pack("{ss sI}", "run", image->runs[i].plan.id, "updates",
                                              (json_int_t)image->runs[i].updates));
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(lacking, json_pack("{ss sI sI sI}", "array", lacks[i].path, "first",
                                                 (json_int_t)lacks[i].first, "last",
                                                 (json_int_t)lacks[i].last, "updates",
                                                 (json_int_t)(lacks[i].last - lacks[i].first + 1)));
    return json_print(
        json_pack("{ss ss so so}", "part", part, "output", path, "runs", runs, "lacking", lacking));
}

static void say_text(const char *part, const char *path, const struct series_lack *lacks,
                     uint32_t count) {
    plain_text_put(path, stdout);
    fputs(": every finished update of ", stdout);
    plain_text_put(part, stdout);
    fputs(" (twinstep doctor ", stdout);
    plain_text_put(path, stdout);
    puts("; h5py)");
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t updates = lacks[i].last - lacks[i].first + 1;
        printf("/%s has no number of ", lacks[i].path);
        if (updates == 1)
            printf("update %" PRIu64 ", which the columns have\n", lacks[i].last);
        else
            printf("updates %" PRIu64 " to %" PRIu64 " (%" PRIu64 "), which the columns have\n",
                   lacks[i].first, lacks[i].last, updates);
    }
}

static enum status recover(const char *part, const char *path, const struct options *options,
                           const struct trace_image *image) {
    struct series_lack lacks[SERIES_LACKS];
    uint32_t count;
    TRY(series_lacking(image, lacks, &count));
    TRY(trace_recover_image(image, part, path, options->overwrite));
    if (options->json) return say_json(part, path, image, lacks, count);
    say_text(part, path, lacks, count);
    return STATUS_OK;
}

/* Neither the trace nor the file that it is called while it is made may be the live file: a failure
 * would destroy the only copy. */
static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *part = options->arguments[0];
    struct trace_image *image;
    char *path, *live;
    if (options->output != NULL)
        TRY(arena_format(&cli->arena, &path, "%s", options->output));
    else
        TRY(default_output(part, &cli->arena, &path));
    TRY(arena_format(&cli->arena, &live, "%s" TRACE_REBUILD, path));
    TRY(output_apart(path, part));
    TRY(output_apart(live, part));
    TRY(trace_open_long(part, &cli->arena, &image));
    const enum status status = recover(part, path, options, image);
    trace_close(image);
    *out_exit = EXIT_AS_EXPECTED;
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Trace to write; default FILE.part without .part"),
    OPTION_OVERWRITE("Replace a trace that exists"), OPTION_JSON, OPTIONS_END};

const struct verb verb_recover = {
    .name = "recover",
    .brief = "make a normal trace of a killed run's .part",
    .arguments = "FILE.part",
    .text =
        "Copies every finished update of FILE.part, which a killed run left, into a normal trace. "
        "FILE.part itself is only read and stays. Arrays with a number of each update are written "
        "16 updates at a time; it is said which updates they lack.\v"
        "Example: twinstep recover lr-set-before-step.h5.part",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
