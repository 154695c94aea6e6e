/* SPDX-License-Identifier: Apache-2.0
 * twinstep suite: runs every scenario of a folder and holds it against its expect block. */
#include <stdio.h>
#include <string.h>

#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "cli/suite.h"

static enum status keep(struct arena *arena, const char *text, const char **out) {
    char *kept;
    TRY(arena_format(arena, &kept, "%s", text));
    *out = kept;
    return STATUS_OK;
}

static enum status keep_judgement(struct arena *arena, const struct judgement *judgement,
                                  struct suite_result *out) {
    out->verdict = judgement->verdict;
    out->first_step = judgement->first_step;
    out->expectation = judgement->expectation;
    TRY(keep(arena, judgement_cause(judgement), &out->cause));
    TRY(keep(arena, judgement->first_phase, &out->first_phase));
    return keep(arena, judgement->missed, &out->missed);
}

static enum status run_case(struct cli *cli, const struct options *options,
                            const struct suite_case *member, struct suite_result *out) {
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    struct judgement judgement;
    struct performance how = {.path = member->trace,
                              .overwrite = options->overwrite,
                              .reproducible = options->reproducible,
                              .progress = progress_wanted(options)};
    enum status status = member->file != NULL
                             ? load_catalog(cli, &arena, member->file, options, &scenario)
                             : load_scenario(cli, &arena, member->path, options, &scenario);
    if (status == STATUS_OK) status = perform(cli, scenario, &how, &arena, &judgement);
    if (status == STATUS_OK) status = keep_judgement(&cli->arena, &judgement, out);
    arena_close(&arena);
    return status;
}

/* An error of one scenario is a result of the suite, not its end. */
static enum status run_member(struct cli *cli, const struct options *options, struct suite *suite,
                              size_t index) {
    struct suite_result *result = &suite->results[index];
    double start = progress_clock();
    result->name = suite->cases[index].name;
    result->status = run_case(cli, options, &suite->cases[index], result);
    result->seconds = progress_clock() - start;
    if (result->status == STATUS_INTERRUPTED) return STATUS_INTERRUPTED;
    suite->result_count = index + 1;
    if (result->status != STATUS_OK) TRY(keep(&cli->arena, status_text(), &result->error));
    if (!options->json) {
        suite_print_result(result, stdout);
        fflush(stdout);
    }
    return STATUS_OK;
}

static enum status run_members(struct cli *cli, const struct options *options,
                               struct suite *suite) {
    double start = progress_clock();
    enum status status = STATUS_OK;
    if (!options->json) suite_print_head(stdout);
    for (size_t i = 0; i < suite->case_count && status == STATUS_OK; i++)
        status = run_member(cli, options, suite, i);
    suite->seconds = progress_clock() - start;
    return status;
}

static enum status add_case(struct cli *cli, const struct suite_result *result) {
    const int missed = result->expectation == EXPECT_MISSED;
    const int failed = result->status != STATUS_OK;
    return ci_add(cli, &(struct ci_case){.name = result->name,
                                         .outcome = failed   ? EXIT_ERROR
                                                    : missed ? EXIT_DIFFERS
                                                    : result->expectation == EXPECT_NONE
                                                        ? EXIT_UNTESTABLE
                                                        : EXIT_AS_EXPECTED,
                                         .title = "expectation of a scenario",
                                         .message = failed   ? result->error
                                                    : missed ? result->missed
                                                             : "no expect block",
                                         .seconds = result->seconds});
}

static enum status report(struct cli *cli, const struct options *options,
                          const struct suite *suite) {
    for (size_t i = 0; i < suite->result_count; i++)
        TRY(add_case(cli, &suite->results[i]));
    if (options->json) return json_print(suite_json(suite));
    suite_print_sum(suite, stdout);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct suite suite = {.cases = NULL};
    const char *folder = options->argument_count == 0 ? NULL : options->arguments[0];
    TRY(suite_collect(folder, &cli->arena, &suite));
    TRY(arena_take(&cli->arena, suite.case_count, sizeof *suite.results, "suite", &suite.results));
    TRY(suite_open_folder(options->keep, &cli->arena, &suite));
    enum status status = run_members(cli, options, &suite);
    suite_close_folder(&suite);
    if (status != STATUS_OK) return status;
    *out_exit = suite_errors(&suite) > 0                 ? EXIT_ERROR
                : suite_count(&suite, EXPECT_MISSED) > 0 ? EXIT_DIFFERS
                                                         : EXIT_AS_EXPECTED;
    return report(cli, options, &suite);
}

static const struct argp_option option_rows[] = {
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION("keep", KEY_KEEP, "DIR", "Keep the traces in DIR; default is to remove them"),
    OPTION_OVERWRITE("Replace traces that exist in the folder of --keep"),
    OPTION_SET,
    OPTION_REPRODUCIBLE,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_suite = {
    .name = "suite",
    .brief = "run every scenario of a folder against its expect block",
    .arguments = "[DIR]",
    .text =
        "Runs every *.yaml of DIR, in the order of their names, or the embedded catalogue, and "
        "compares each verdict with the scenario's expect block. Exit status: 0 all met, 1 one or "
        "more missed, 2 errors.\v"
        "Example: twinstep suite scenarios/catalog --junit suite.xml",
    .options = option_rows,
    .most = 1,
    .trains = 1,
    .run = run,
};
