/* SPDX-License-Identifier: Apache-2.0
 * twinstep replay: recorded runs once more, on this machine and build, update by update. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/verb.h"
#include "trainer/replay.h"

enum { KEY_RUN = KEY_OWN, KEY_TO };

static enum status read_to(const struct options *options, uint64_t *out) {
    const char *text = options_value(options, KEY_TO);
    *out = 0;
    if (text == NULL) return STATUS_OK;
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != '\0')
        FAIL(STATUS_INPUT, "replay: --to: expected an update, got \"%s\"", text);
    for (size_t i = 0; i < digits; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    if (*out == 0) FAIL(STATUS_INPUT, "replay: --to: expected an update >= 1, got 0");
    return STATUS_OK;
}

static enum status chosen_run(const struct trace_image *image, const char *path, const char *id,
                              const struct trace_run **out) {
    *out = trace_run_of(image, id);
    if (*out != NULL) return STATUS_OK;
    char names[512] = "";
    for (uint32_t i = 0; i < image->run_count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                 image->runs[i].plan.id);
    }
    FAIL(STATUS_INPUT, "%s: --run: expected one of %s, got \"%s\"", path, names, id);
}

static json_t *result_json(const char *run, const struct replay_result *result) {
    const int differs = result->first != 0;
    return json_pack("{ss sb sI so so so so}", "run", run, "equal", !differs, "compared",
                     (json_int_t)result->compared, "first",
                     differs ? json_integer((json_int_t)result->first) : json_null(), "column",
                     differs ? json_string(result->column) : json_null(), "recorded",
                     differs ? json_finite(result->recorded) : json_null(), "computed",
                     differs ? json_finite(result->computed) : json_null());
}

static void print_result(const char *run, const struct replay_result *result) {
    if (result->first == 0) {
        printf("%s: %ju updates replayed, bit-equal to the record\n", run,
               (uintmax_t)result->compared);
        return;
    }
    printf("%s: differs from the record at update %ju: %s", run, (uintmax_t)result->first,
           result->column);
    if (!isnan(result->recorded) || !isnan(result->computed))
        printf(", recorded %.17g, now %.17g", result->recorded, result->computed);
    printf("\n");
    if (result->scalars_only)
        printf("  the digests of the training agree: only what was measured of it differs\n");
}

static enum status replay_one(struct cli *cli, const struct trace_image *image,
                              const struct trace_run *run, uint64_t to, struct replay_result *out) {
    struct arena arena = ARENA_EMPTY;
    const struct replay_request request = {.image = image,
                                           .run = run,
                                           .schema = cli->schema,
                                           .to = to,
                                           .interrupted = cli->interrupted};
    const enum status status = replay_run(&request, &arena, out);
    arena_close(&arena);
    return status;
}

/* A log that was imported has runs without a configuration. */
static int is_replayable(const struct trace_run *run) {
    return run->updates > 0 && run->plan.configuration != NULL &&
           run->plan.configuration[0] != '\0';
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *path = options->arguments[0];
    const char *id = options_value(options, KEY_RUN);
    const struct trace_run *only = NULL;
    struct trace_image *image;
    uint64_t to;
    uint32_t replayed = 0;
    TRY(read_to(options, &to));
    TRY(trace_open(path, &cli->arena, &image));
    if (id != NULL) TRY(chosen_run(image, path, id, &only));
    json_t *list = options->json ? json_array() : NULL;
    *out_exit = EXIT_AS_EXPECTED;
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run *here = &image->runs[i];
        struct replay_result result;
        if ((only != NULL && here != only) || !is_replayable(here)) continue;
        const enum status status = replay_one(cli, image, here, to, &result);
        if (status != STATUS_OK) {
            json_decref(list);
            return status_prefix(status, "%s: ", path);
        }
        replayed++;
        if (list != NULL)
            json_array_append_new(list, result_json(here->plan.id, &result));
        else
            print_result(here->plan.id, &result);
        if (result.first != 0) *out_exit = EXIT_DIFFERS;
    }
    if (list != NULL && replayed > 0) return json_print(list);
    json_decref(list);
    if (replayed == 0)
        FAIL(STATUS_INPUT,
             "%s: holds no run with a configuration: only traces of twinstep run can "
             "be replayed",
             path);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    {"run", KEY_RUN, "RUN", 0, "Only this run (baseline, test, ...); default all", 0},
    {"to", KEY_TO, "UPDATE", 0, "Stop after this update; default as far as it was recorded", 0},
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_replay = {
    .name = "replay",
    .brief = "train recorded runs once more and compare with the record",
    .arguments = "TRACE",
    .text =
        "Trains the runs of TRACE again from the configurations that it holds, with this build on "
        "this machine, and compares digests, losses, norms and learning rates of every update, bit "
        "by bit. Exit status 0: all equal; 1: something differs. Data files and modules are "
        "looked for where they were.\v"
        "Example: twinstep replay lr-set-before-step.h5 --run baseline",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .trains = 1,
    .run = run,
};
