/* SPDX-License-Identifier: Apache-2.0
 * twinstep suite: runs every scenario of a folder and holds it against its expect block. Scenarios
 * are loaded here and trained in children, several at once; results are told in the order of their
 * names. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/parent.h"
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
#include "cli/suite_results.h"
#include "model/save_model.h"

enum { KEY_JOBS = KEY_OWN, KEY_BOTH_ARMS, KEY_RESULTS, KEY_PART, KEY_RESUME, KEY_JOIN };

#define PARTS_MOST 1000000

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
    const size_t *case_of; /* (jobs) the scenario of a job; those whose result was taken over have
                            * none */
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

/* Trains the scenario in the child. A suite that goes on may find the trace of a scenario that was
 * killed, or was another one. */
static enum status run_case(struct suite_child *child, const struct suite_case *member,
                            struct arena *arena, struct judgement *out) {
    const struct suite_run *const run = child->run;
    struct cli cli = *run->cli;
    const struct performance_watch watch = {tell_far, ask_room, child};
    const struct performance how = {.path = member->trace,
                                    .overwrite = run->options->overwrite ||
                                                 options_given(run->options, KEY_RESUME),
                                    .reproducible = run->options->reproducible,
                                    .progress = progress_wanted(run->options),
                                    .both_arms = options_given(run->options, KEY_BOTH_ARMS),
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

/* An error replaces no result that holds: somebody else may train the same part. */
static enum status write_result(const struct suite_run *run, const struct suite_case *member,
                                const struct suite_result *result) {
    struct suite_result there;
    enum suite_kept kept = SUITE_KEPT_NOT;
    if (result->status != STATUS_OK && !run->options->overwrite) {
        TRY(suite_result_read(member->result, member->of, &run->cli->arena, &kept, &there));
        if (kept == SUITE_KEPT && there.status == STATUS_OK) return STATUS_OK;
    }
    return suite_result_write(member->result, member->of, result);
}

/* Keeps the result, in the child: whoever kills the suite now loses the scenarios that are being
 * trained, and none that is done. What was read is looked at again, because a result of data that
 * were edited meanwhile would be taken for one of theirs. */
static enum status keep_result(const struct suite_run *run, const struct suite_case *member,
                               const char *answer, size_t length) {
    struct suite_result result = {.name = member->name};
    char of[DIGEST_HEX];
    if (member->result == NULL || member->scenario == NULL) return STATUS_OK;
    if (!unpack(answer, length, &result) || result.status == STATUS_INTERRUPTED) return STATUS_OK;
    TRY(suite_result_digest(member->scenario, member->name, of));
    if (strcmp(of, member->of) != 0)
        FAIL(STATUS_INPUT, "%s: a file that it reads was changed while it was trained",
             member->name);
    return write_result(run, member, &result);
}

static void work(void *context, size_t index, struct jobs_link *link) {
    struct suite_run *const run = (struct suite_run *)context;
    const struct suite_case *const member = &run->suite->cases[run->case_of[index]];
    struct suite_child child = {run, link};
    const double start = progress_clock();
    struct judgement judgement;
    char *answer;
    size_t length = 0;
    struct arena *const arena = &run->cli->arena;
    const enum status status = run_case(&child, member, arena, &judgement);
    pack(arena, status, &judgement, progress_clock() - start, &answer, &length);
    if (answer == NULL) return;
    const enum status kept = keep_result(run, member, answer, length);
    if (kept != STATUS_OK) {
        pack(arena, kept, NULL, progress_clock() - start, &answer, &length);
        if (answer == NULL) return;
    }
    jobs_answer(link, answer, length);
}

static void tell(struct suite_run *run, const struct suite_result *result) {
    if (run->options->json) return;
    progress_close(&run->progress);
    suite_print_result(result, stdout);
    fflush(stdout);
}

/* Tells the results that were taken over and stand before scenario `at` in the order of names. */
static void tell_before(struct suite_run *run, size_t at) {
    struct suite *const suite = run->suite;
    for (; suite->result_count < at; suite->result_count++)
        tell(run, &suite->results[suite->result_count]);
}

/* An error of one scenario is a result of the suite, not its end, and so is a child that ends
 * without an answer, by a signal say. */
static enum status take_result(void *context, size_t index, const char *answer, size_t length,
                               const char *why) {
    struct suite_run *const run = (struct suite_run *)context;
    struct suite *const suite = run->suite;
    const size_t at = run->case_of[index];
    const struct suite_case *const member = &suite->cases[at];
    struct suite_result *const result = &suite->results[at];
    const int answered = answer != NULL && unpack(answer, length, result);
    if (!answered) {
        result->status = STATUS_INTERNAL;
        result->error = why == NULL ? "its process gave an answer that cannot be read" : why;
    }
    if (result->status == STATUS_INTERRUPTED && *run->cli->interrupted) return STATUS_OK;
    result->name = member->name;
    tell_before(run, at);
    tell(run, result);
    suite->result_count = at + 1;
    return answered || member->result == NULL || member->scenario == NULL
               ? STATUS_OK
               : write_result(run, member, result);
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
    if (member->result == NULL) return STATUS_OK;
    const enum status status = suite_result_digest(member->scenario, member->name, member->of);
    if (status == STATUS_OK) return STATUS_OK;
    member->status = status;
    member->scenario = NULL; /* it would fail at the same file */
    return keep(arena, status_text(), &member->error);
}

/* Looks whether the result of a scenario is there already. An error is a result where results are
 * joined; where the suite goes on, the scenario is tried again. */
static enum status take_kept(struct suite_run *run, struct suite_case *member,
                             struct suite_result *result) {
    const int join = options_given(run->options, KEY_JOIN);
    const int resume = options_given(run->options, KEY_RESUME);
    enum suite_kept kept = SUITE_KEPT_NOT;
    result->name = member->name;
    if (member->result == NULL) return STATUS_OK;
    if (member->scenario == NULL) {
        member->taken = join; /* the error of loading it is its result */
        result->status = member->status;
        result->error = member->error;
        return STATUS_OK;
    }
    TRY(suite_result_read(member->result, member->of, &run->cli->arena, &kept, result));
    if (kept != SUITE_KEPT_NOT && !join && !resume && !run->options->overwrite)
        FAIL(STATUS_IO,
             "%s: there is a result already; --resume takes over those that still hold, "
             "--overwrite replaces them",
             member->result);
    if (join && kept != SUITE_KEPT) {
        result->status = STATUS_INPUT;
        result->error = kept == SUITE_KEPT_NOT
                            ? "no result is there yet: --resume trains it"
                            : "the result is of another scenario, of other data or of another "
                              "build of twinstep: --resume trains it again";
    }
    member->taken = join || (resume && kept == SUITE_KEPT && result->status == STATUS_OK);
    if (kept == SUITE_KEPT_OTHER) run->suite->stale++;
    return STATUS_OK;
}

/* Loads all scenarios, and lists those that have to be trained. */
static enum status plan_members(struct suite_run *run, struct job *list, size_t *case_of,
                                size_t *out_count) {
    struct suite *const suite = run->suite;
    *out_count = 0;
    for (size_t i = 0; i < suite->case_count; i++) {
        TRY(load_case(run, &suite->cases[i], &list[*out_count]));
        TRY(take_kept(run, &suite->cases[i], &suite->results[i]));
        if (!suite->cases[i].taken)
            case_of[(*out_count)++] = i;
        else if (!suite->joined)
            suite->taken++;
    }
    if (suite->stale > 0 && options_given(run->options, KEY_RESUME))
        fprintf(stderr,
                "twinstep: note: %zu results are of other scenarios, data or builds of twinstep; "
                "these scenarios are trained again\n",
                suite->stale);
    if (suite->strays > 0)
        fprintf(stderr,
                "twinstep: note: %zu results in %s are of no scenario of this suite; they are not "
                "in the table\n",
                suite->strays, options_value(run->options, KEY_RESULTS));
    return STATUS_OK;
}

static enum status run_members(struct suite_run *run) {
    struct suite *const suite = run->suite;
    const double start = progress_clock();
    struct job *list;
    size_t *case_of, count;
    TRY(arena_take(&run->cli->arena, suite->case_count, sizeof *list, "jobs", &list));
    TRY(arena_take(&run->cli->arena, suite->case_count, sizeof *case_of, "jobs", &case_of));
    TRY(plan_members(run, list, case_of, &count));
    run->case_of = case_of;
    const struct jobs jobs = {.what = "scenarios",
                              .list = list,
                              .count = count,
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
    const enum status status = count == 0 ? STATUS_OK : jobs_run(&jobs, &run->cli->arena);
    progress_close(&run->progress);
    if (status != STATUS_OK) return status;
    tell_before(run, suite->case_count);
    suite->seconds = progress_clock() - start;
    for (size_t i = 0; suite->joined && i < suite->case_count; i++)
        suite->seconds = (i == 0 ? 0.0 : suite->seconds) + suite->results[i].seconds;
    return STATUS_OK;
}

/* The file of a scenario; NULL: it is one of the catalogue, or of another part that was joined. */
static const char *file_of(const struct suite *suite, const char *name) {
    for (size_t i = 0; i < suite->case_count; i++)
        if (strcmp(suite->cases[i].name, name) == 0) return suite->cases[i].path;
    return NULL;
}

static enum status add_case(struct cli *cli, const struct suite *suite,
                            const struct suite_result *result) {
    const int missed = result->expectation == EXPECT_MISSED;
    const int failed = result->status != STATUS_OK;
    char *message = NULL;
    if (!failed)
        TRY(arena_format(&cli->arena, &message, "%s: %s", result->name,
                         missed ? result->missed : "no expect block"));
    return ci_add(cli, &(struct ci_case){.name = result->name,
                                         .outcome = failed   ? EXIT_ERROR
                                                    : missed ? EXIT_DIFFERS
                                                    : result->expectation == EXPECT_NONE
                                                        ? EXIT_UNTESTABLE
                                                        : EXIT_AS_EXPECTED,
                                         .title = "expectation of a scenario",
                                         .message = failed ? result->error : message,
                                         .file = file_of(suite, result->name),
                                         .seconds = result->seconds});
}

static enum status report(struct cli *cli, const struct options *options,
                          const struct suite *suite) {
    for (size_t i = 0; i < suite->result_count; i++)
        TRY(add_case(cli, suite, &suite->results[i]));
    if (options->json) return json_print(suite_json(suite));
    suite_print_sum(suite, stdout);
    return STATUS_OK;
}

/* Reads --part=I/N. */
static enum status read_part(const struct options *options, uint64_t *out_number,
                             uint64_t *out_parts) {
    const char *const text = options_value(options, KEY_PART);
    const char *const slash = text == NULL ? NULL : strchr(text, '/');
    char number[32];
    *out_number = *out_parts = 1;
    if (text == NULL) return STATUS_OK;
    if (slash != NULL && (size_t)(slash - text) < sizeof number) {
        memcpy(number, text, (size_t)(slash - text));
        number[slash - text] = '\0';
        if (number_parse_uint(number, out_number) == STATUS_OK &&
            number_parse_uint(slash + 1, out_parts) == STATUS_OK && *out_number >= 1 &&
            *out_number <= *out_parts && *out_parts <= PARTS_MOST)
            return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "suite: --part: expected I/N with I from 1 to N, such as 2/4, got \"%s\"",
         text);
}

static enum status check_asked(const struct options *options) {
    const int results = options_value(options, KEY_RESULTS) != NULL;
    const int join = options_given(options, KEY_JOIN), resume = options_given(options, KEY_RESUME);
    const int part = options_value(options, KEY_PART) != NULL;
    if ((join || resume) && !results)
        FAIL(STATUS_INPUT, "suite: --%s: expected --results too, the folder where results are",
             join ? "join" : "resume");
    if (join && (resume || part || options->keep != NULL))
        FAIL(STATUS_INPUT,
             "suite: --join trains nothing and takes the results of all parts: expected no %s",
             resume ? "--resume"
             : part ? "--part"
                    : "--keep");
    return STATUS_OK;
}

/* The folders are the suite's: a file of --junit there may be a result or a trace, and none can
 * have the name of the folder itself. Then nothing is written to it. */
static enum status check_apart(struct cli *cli, const struct options *options, const char *folder,
                               const char *option) {
    if (options->junit == NULL || folder == NULL ||
        !(save_model_same_place(options->junit, folder) ||
          save_model_same_place(parent_of(options->junit).text, folder)))
        return STATUS_OK;
    cli->ci.withheld = 1;
    FAIL(STATUS_INPUT, "suite: --junit: expected a file outside of the folder of %s, got %s",
         option, options->junit);
}

/* The folders are made first, because only then every spelling of them leads to them. */
static enum status open_folders(struct cli *cli, const struct options *options,
                                struct suite *suite) {
    struct arena *const arena = &cli->arena;
    TRY(suite_open_results(options_value(options, KEY_RESULTS), arena, suite));
    if (!suite->joined) TRY(suite_open_folder(options->keep, arena, suite));
    TRY(check_apart(cli, options, options_value(options, KEY_RESULTS), "--results"));
    return check_apart(cli, options, options->keep, "--keep");
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct suite suite = {.joined = options_given(options, KEY_JOIN)};
    struct suite_run suite_run = {.cli = cli, .options = options, .suite = &suite};
    const char *folder = options->argument_count == 0 ? NULL : options->arguments[0];
    uint64_t number, parts;
    TRY(cores_asked(options, KEY_JOBS, "suite", &suite_run.cores));
    TRY(check_asked(options));
    TRY(scenario_check_overrides(options->sets, options->set_count));
    TRY(read_part(options, &number, &parts));
    TRY(suite_collect(folder, &cli->arena, &suite));
    suite_deal(&suite, number, parts);
    TRY(arena_take(&cli->arena, suite.case_count, sizeof *suite.results, "suite", &suite.results));
    enum status status = open_folders(cli, options, &suite);
    if (status == STATUS_OK) status = run_members(&suite_run);
    suite_close_folder(&suite);
    if (status != STATUS_OK) {
        suite_remove_empty(&suite);
        return status;
    }
    *out_exit = suite_errors(&suite) > 0                 ? EXIT_ERROR
                : suite_count(&suite, EXPECT_MISSED) > 0 ? EXIT_DIFFERS
                                                         : EXIT_AS_EXPECTED;
    return report(cli, options, &suite);
}

static const struct argp_option option_rows[] = {
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION("keep", KEY_KEEP, "DIR",
           "Keep the traces of what is trained in DIR; default is to remove them"),
    OPTION_OVERWRITE("Replace what exists in the folders of --keep and --results"),
    OPTION("jobs", KEY_JOBS, "N",
           "Fill N cores: train N scenarios at once, fewer where one has more threads or there is "
           "no memory for it; results are the same. Default: all cores that this process may use"),
    OPTION("both-arms", KEY_BOTH_ARMS, NULL,
           "Train both arms of every update. By default one training is recorded of both for the "
           "updates in which nothing that differs between them can act, which the verdict says "
           "(arms); all that is measured is the same"),
    OPTION("results", KEY_RESULTS, "DIR",
           "Keep the result of each scenario in DIR as NAME.json, as soon as it is there"),
    OPTION("part", KEY_PART, "I/N",
           "Run part I of N alone: every N-th scenario, from the I-th on; for job arrays and "
           "several machines"),
    OPTION("resume", KEY_RESUME, NULL,
           "With --results: take over results that are there and still hold, and train the other "
           "scenarios; errors are tried again"),
    OPTION("join", KEY_JOIN, NULL,
           "With --results: train nothing, and print the results of all parts as one run's"),
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
        "Example: twinstep suite scenarios/catalog --junit suite.xml\n"
        "twinstep suite scenarios --results out --part 2/4 --resume\n"
        "twinstep suite scenarios --results out --join",
    .options = option_rows,
    .most = 1,
    .trains = 1,
    .run = run,
};
