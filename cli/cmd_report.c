/* SPDX-License-Identifier: Apache-2.0
 * twinstep report: turns a trace into one page of HTML. The page is written beside its name first,
 * so that the name always holds a whole page or what it held before. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/verb.h"
#include "report/report.h"

static int is_builtin(const char *name, const char *text) {
    const struct catalog_file *file = catalog_find(name);
    return file != NULL && strlen(text) == file->length &&
           memcmp(file->bytes, text, file->length) == 0;
}

static enum status check_target(const char *path, int overwrite) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT) return STATUS_OK;
        FAIL(STATUS_IO, "%s: cannot look up: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) FAIL(STATUS_IO, "%s: exists and is not a regular file", path);
    if (!overwrite)
        FAIL(STATUS_IO, "%s: exists; choose another name, or ask to overwrite it (--overwrite)",
             path);
    return STATUS_OK;
}

static enum status write_and_close(const struct trace_image *image,
                                   const struct report_options *options, struct arena *arena,
                                   int handle) {
    FILE *out = fdopen(handle, "w");
    if (out == NULL) {
        close(handle);
        FAIL(STATUS_IO, "cannot write: %s", strerror(errno));
    }
    const enum status status = report_write(image, options, arena, out);
    if (fclose(out) == 0 || status != STATUS_OK) return status;
    FAIL(STATUS_IO, "cannot write: %s", strerror(errno));
}

static enum status write_file(const struct trace_image *image, const struct report_options *options,
                              struct arena *arena, const char *path, int overwrite) {
    char *live;
    TRY(check_target(path, overwrite));
    TRY(arena_format(arena, &live, "%s.part", path));
    if (overwrite) unlink(live);
    const int handle = open(live, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (handle < 0) FAIL(STATUS_IO, "%s: cannot create: %s", live, strerror(errno));
    enum status status = write_and_close(image, options, arena, handle);
    if (status == STATUS_IO) status = status_prefix(status, "%s", path);
    if (status == STATUS_OK) status = publish_settle(live);
    if (status == STATUS_OK) return publish_name(live, path, overwrite);
    unlink(live);
    return status;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const struct report_options how = {.version = TWINSTEP_VERSION, .is_builtin = is_builtin};
    const char *path = options->arguments[0], *output = options->output;
    struct trace_image *image;
    if (output == NULL || output[0] == '\0')
        FAIL(STATUS_INPUT, "report: expected --output FILE.html, or - for standard output");
    TRY(trace_open(path, &cli->arena, &image));
    *out_exit = EXIT_AS_EXPECTED;
    const int to_stdout = strcmp(output, "-") == 0;
    const enum status status =
        to_stdout ? report_write(image, &how, &cli->arena, stdout)
                  : write_file(image, &how, &cli->arena, output, options->overwrite);
    if (status == STATUS_INPUT) return status_prefix(status, "%s", path);
    TRY(status);
    if (to_stdout) return STATUS_OK;
    if (options->json) return json_print(json_pack("{ss ss}", "trace", path, "output", output));
    printf("%s: report of %s\n", output, path);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Page to write (HTML), - for standard output"),
    OPTION_OVERWRITE("Replace a page that exists"),
    OPTION("json", KEY_JSON, NULL, "Say as JSON what was written"), OPTIONS_END};

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
