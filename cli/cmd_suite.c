/* SPDX-License-Identifier: Apache-2.0
 * twinstep suite: runs every scenario of a folder and holds it against its expect block. Scenarios
 * are loaded here and trained in children, several at once; results are told in the order of their
 * names. */
#include <stdio.h>
#include <string.h>

#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/cores.h"
#include "cli/jobs.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "cli/room.h"
#include "cli/suite.h"

enum { KEY_JOBS = KEY_OWN };

static enum status keep(struct arena *arena, const char *text, const char **out) {
    char *kept;
    TRY(arena_format(arena, &kept, "%s", text));
    *out = kept;
    return STATUS_OK;
}

/* The suite while its scenarios are trained, each in a child (cli/jobs.h). */
struct suite_run {
    struct cli *cli;
    const struct options *options;
    struct suite *suite;
    struct progress progress;
    uint64_t cores;
};

/* What a child answers; the texts follow, each with its NUL: cause, phase, what was missed, error.
 */
struct suite_answer {
    int32_t status, verdict, expectation;
    int64_t first_step;
    double seconds;
};

#define ANSWER_TEXTS 4

/* A child's view of its job. */
struct suite_child {
    struct suite_run *run;
    struct jobs_link *link;
};

static void tell_far(void *context, const struct experiment_progress *now) {
    const struct suite_child *const child = (const struct suite_child *)context;
    jobs_tell(child->link, now->done, now->total);
}

/* Where there is too little room beside other scenarios, this one waits until one of them ends. */
static enum status ask_room(void *context, const struct experiment_needs *needs) {
    const struct suite_child *const child = (const struct suite_child *)context;
    enum status status = STATUS_MEMORY;
    for (int last = 0; status == STATUS_MEMORY && !last;) {
        TRY(jobs_ask_memory(child->link, needs->memory, &last));
        status = room_check(needs);
    }
    if (child->run->progress.shown)
        progress_put(""); /* a note may come, and the line stands there */
    return status;
}

/* Trains the scenario in the child. */
static enum status run_case(struct suite_child *child, const struct suite_case *member,
                            struct arena *arena, struct judgement *out) {
    const struct suite_run *const run = child->run;
    struct cli cli = *run->cli;
    const struct performance_watch watch = {tell_far, ask_room, child};
    const struct performance how = {.path = member->trace,
                                    .overwrite = run->options->overwrite,
                                    .reproducible = run->options->reproducible,
                                    .progress = progress_wanted(run->options),
                                    .watch = &watch};
    cli.interrupted = jobs_interrupted(child->link);
    if (member->scenario == NULL) return status_fail(member->status, "%s", member->error);
    return perform(&cli, member->scenario, &how, arena, out);
}

/* Packs the result of a scenario; where there is no memory for it, *out is NULL. */
static void pack(struct arena *arena, enum status status, const struct judgement *judgement,
                 double seconds, char **out, size_t *out_length) {
    const int good = status == STATUS_OK;
    const char *const texts[ANSWER_TEXTS] = {
        good ? judgement_cause(judgement) : "", good ? judgement->first_phase : "",
        good ? judgement->missed : "", good ? "" : status_text()};
    const struct suite_answer answer = {.status = (int32_t)status,
                                        .verdict = good ? (int32_t)judgement->verdict : 0,
                                        .expectation = good ? (int32_t)judgement->expectation : 0,
                                        .first_step = good ? judgement->first_step : -1,
                                        .seconds = seconds};
    size_t length = sizeof answer;
    for (int i = 0; i < ANSWER_TEXTS; i++)
        length += strlen(texts[i]) + 1;
    *out = NULL;
    if (arena_take(arena, length, 1, "answer", out) != STATUS_OK) return;
    memcpy(*out, &answer, sizeof answer);
    *out_length = sizeof answer;
    for (int i = 0; i < ANSWER_TEXTS; i++) {
        memcpy(*out + *out_length, texts[i], strlen(texts[i]) + 1);
        *out_length += strlen(texts[i]) + 1;
    }
}

static void work(void *context, size_t index, struct jobs_link *link) {
    struct suite_run *const run = (struct suite_run *)context;
    struct suite_child child = {run, link};
    const double start = progress_clock();
    struct judgement judgement;
    char *answer;
    size_t length = 0;
    struct arena *const arena = &run->cli->arena;
    const enum status status = run_case(&child, &run->suite->cases[index], arena, &judgement);
    pack(arena, status, &judgement, progress_clock() - start, &answer, &length);
    if (answer != NULL) jobs_answer(link, answer, length);
}

/* Unpacks what a child answered; 0: it is no answer. The texts stay where they are. */
static int unpack(const char *bytes, size_t length, struct suite_result *out) {
    struct suite_answer answer;
    const char *texts[ANSWER_TEXTS];
    size_t at = sizeof answer;
    if (length < sizeof answer) return 0;
    memcpy(&answer, bytes, sizeof answer);
    if (answer.verdict < 0 || answer.verdict >= VERDICT_COUNT || answer.expectation < EXPECT_NONE ||
        answer.expectation > EXPECT_MISSED)
        return 0; /* a module wrote over the child's memory */
    for (int i = 0; i < ANSWER_TEXTS; i++) {
        texts[i] = bytes + at;
        while (at < length && bytes[at] != '\0')
            at++;
        if (at == length) return 0;
        at++;
    }
    out->status = (enum status)answer.status;
    out->verdict = (enum verdict)answer.verdict;
    out->expectation = (enum expectation)answer.expectation;
    out->first_step = answer.first_step;
    out->seconds = answer.seconds;
    out->cause = texts[0];
    out->first_phase = texts[1];
    out->missed = texts[2];
    out->error = texts[3];
    return 1;
}

/* An error of one scenario is a result of the suite, not its end, and so is a child that ends
 * without an answer, by a signal say. */
static enum status take_result(void *context, size_t index, const char *answer, size_t length,
                               const char *why) {
    struct suite_run *const run = (struct suite_run *)context;
    struct suite *const suite = run->suite;
    struct suite_result *const result = &suite->results[index];
    if (answer == NULL || !unpack(answer, length, result)) {
        result->status = STATUS_INTERNAL;
        result->error = why == NULL ? "its process gave an answer that cannot be read" : why;
    }
    if (result->status == STATUS_INTERRUPTED && *run->cli->interrupted) return STATUS_OK;
    result->name = suite->cases[index].name;
    suite->result_count = index + 1;
    if (run->options->json) return STATUS_OK;
    progress_close(&run->progress);
    suite_print_result(result, stdout);
    fflush(stdout);
    return STATUS_OK;
}

static void show_far(void *context, size_t done, const char *now) {
    struct suite_run *const run = (struct suite_run *)context;
    progress_text(&run->progress, "%zu of %zu scenarios done, now: %s", done,
                  run->suite->case_count, now);
}

/* Loads a scenario before anything is trained. One that cannot be loaded is an error of its own. */
static enum status load_case(struct suite_run *run, struct suite_case *member, struct job *job) {
    struct arena *const arena = &run->cli->arena;
    job->name = member->name;
    job->threads = 1;
    member->status =
        member->file != NULL
            ? load_catalog(run->cli, arena, member->file, run->options, &member->scenario)
            : load_scenario(run->cli, arena, member->path, run->options, &member->scenario);
    if (member->status != STATUS_OK) {
        member->scenario = NULL;
        return keep(arena, status_text(), &member->error);
    }
    job->alone = trains_alone(member->scenario);
    job->threads = trains_threads(member->scenario);
    return STATUS_OK;
}

static enum status run_members(struct suite_run *run) {
    struct suite *const suite = run->suite;
    const double start = progress_clock();
    struct job *list;
    TRY(arena_take(&run->cli->arena, suite->case_count, sizeof *list, "jobs", &list));
    for (size_t i = 0; i < suite->case_count; i++)
        TRY(load_case(run, &suite->cases[i], &list[i]));
    const struct jobs jobs = {.what = "scenarios",
                              .list = list,
                              .count = suite->case_count,
                              .cores = run->cores,
                              .memory = room_memory(),
                              .interrupted = run->cli->interrupted,
                              .work = work,
                              .done = take_result,
                              .far = show_far,
                              .context = run};
    if (!run->options->json) suite_print_head(stdout);
    fflush(stdout);
    progress_open(&run->progress, "suite", progress_wanted(run->options));
    const enum status status = jobs_run(&jobs, &run->cli->arena);
    progress_close(&run->progress);
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
    struct suite_run suite_run = {.cli = cli, .options = options, .suite = &suite};
    const char *folder = options->argument_count == 0 ? NULL : options->arguments[0];
    TRY(cores_asked(options, KEY_JOBS, "suite", &suite_run.cores));
    TRY(suite_collect(folder, &cli->arena, &suite));
    TRY(arena_take(&cli->arena, suite.case_count, sizeof *suite.results, "suite", &suite.results));
    TRY(suite_open_folder(options->keep, &cli->arena, &suite));
    enum status status = run_members(&suite_run);
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
    OPTION("jobs", KEY_JOBS, "N",
           "Fill N cores: train N scenarios at once, fewer where one has more threads or there is "
           "no memory for it; results are the same. Default: all cores that this process may use"),
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
        "compares each verdict with the scenario's expect block. Scenarios are trained several at "
        "once, each in a process of its own; those whose bits may depend on timing (modes atomic "
        "and fast) or that use a device come first where N is more than 1, one at a time. Exit "
        "status: 0 all met, 1 one or more missed, 2 errors.\v"
        "Example: twinstep suite scenarios/catalog --junit suite.xml",
    .options = option_rows,
    .most = 1,
    .trains = 1,
    .run = run,
};
