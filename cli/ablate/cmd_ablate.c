/* SPDX-License-Identifier: Apache-2.0
 * twinstep ablate: which of the differences between two of a user's own trainings makes how much of
 * the gap, by running them. Only this verb and bisect-command run commands. */
#include <stdio.h>
#include <string.h>

#include "ablate/ablate_rights.h"
#include "ablate/ablate_two.h"
#include "cli/ablate/ablate_asked.h"
#include "cli/ablate/ablate_print.h"
#include "cli/ablate/ablate_runner.h"

enum {
    KEY_GOOD = ABLATE_KEY_OWN,
    KEY_BAD,
    KEY_NAME,
    KEY_READ /* and one for each kind */
};

enum status ablate_check_rights(const char *path) {
    if (strcmp(path, "-") == 0)
        FAIL(STATUS_INPUT, "expected a file, got -: it is read again when continued");
    return ablate_rights_check(path, "so others could run commands as you");
}

static enum status folder_name(const struct options *options, const struct ablate_file *file,
                               struct arena *arena, const char **out) {
    char *name;
    *out = options->output;
    if (*out != NULL) return STATUS_OK;
    TRY(arena_format(arena, &name, "%s.ablate", file->name));
    *out = name;
    return STATUS_OK;
}

static enum status finish(struct ablate_running *running, const struct options *options,
                          struct arena *arena, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct ablate_result *results = NULL;
    struct ablate_verdict *verdict;
    TRY(arena_take(arena, 1, sizeof *verdict, "verdict", &verdict));
    enum status status = ablate_results_open(running->folder, arena, &results);
    if (status == STATUS_OK) status = ablate_judge(running->plan, results, arena, verdict);
    if (status == STATUS_OK && options->json)
        status = ablate_json(running->folder, results, verdict);
    else if (status == STATUS_OK)
        ablate_print(running->folder, results, verdict);
    ablate_results_close(running->plan, results);
    if (status == STATUS_OK && !options->json)
        status = ablate_print_next(running->folder, verdict, arena);
    if (status == STATUS_OK) *out_exit = exits[verdict->kind];
    return status;
}

/* Makes the file's text of two commands; NULL where a file is given. */
static enum status read_two(const struct options *options, struct arena *arena, char **out) {
    struct ablate_two two = {.good = options_value(options, KEY_GOOD),
                             .bad = options_value(options, KEY_BAD),
                             .name = options_value(options, KEY_NAME)};
    int reads = 0;
    *out = NULL;
    for (int i = 0; i < READ_KINDS; i++) {
        two.read[i] = options_value(options, KEY_READ + i);
        reads += two.read[i] != NULL;
    }
    if (two.good == NULL && two.bad == NULL) {
        if (options->argument_count == 0)
            FAIL(STATUS_INPUT, "ablate: expected FILE, or --good and --bad; see twinstep ablate "
                               "--help");
        if (reads > 0 || two.name != NULL)
            FAIL(STATUS_INPUT, "ablate: a FILE says itself what is read and what its name is");
        return STATUS_OK;
    }
    if (options->argument_count > 0)
        FAIL(STATUS_INPUT, "ablate: expected FILE or --good and --bad, got both");
    if (two.good == NULL || two.bad == NULL)
        FAIL(STATUS_INPUT, "ablate: expected both --good and --bad, got one");
    if (reads == 0)
        FAIL(STATUS_INPUT, "ablate: expected what the commands leave: --weights, --log, --trace or "
                           "--bytes, with {dir} in it and in the commands");
    if (two.name == NULL) two.name = "good-bad";
    struct ablate_file *slots; /* which the option alone sets */
    TRY(arena_take(arena, 1, sizeof *slots, "ablation", &slots));
    TRY(ablate_asked_slots(options, slots));
    two.slots = slots->slots;
    return ablate_two_write(&two, arena, out);
}

/* Prints the file, with its price or what is to be mended in it as a comment. */
static enum status print_two(const char *text, struct arena *arena) {
    struct ablate_file *file;
    struct ablate_plan plan;
    TRY(arena_take(arena, 1, sizeof *file, "ablation", &file));
    fputs(text, stdout);
    enum status status = ablate_file_parse("this file", text, strlen(text), arena, file);
    if (status == STATUS_OK) status = ablate_plan_open(file, arena, &plan);
    if (status != STATUS_OK) {
        printf("# to be mended before it is run: %s\n", status_text());
        return STATUS_OK;
    }
    const uint32_t confirm = ablate_plan_confirm(&plan);
    printf(
        "# as it stands here: up to %u runs (%s%u if the arms are equal), %u more if repeats of an "
        "arm differ; nothing has been run\n",
        plan.stage_runs[ABLATE_ARMS] + plan.stage_runs[ABLATE_HYBRIDS] + ablate_plan_again(&plan) +
            confirm,
        ablate_plan_if_equal(&plan) > 0 ? "up to " : "",
        plan.stage_runs[ABLATE_ARMS] + ablate_plan_if_equal(&plan) +
            ablate_plan_again_if_equal(&plan),
        plan.stage_runs[ABLATE_ARMS_NOISE] + plan.stage_runs[ABLATE_HYBRIDS_NOISE] - confirm);
    return STATUS_OK;
}

enum status ablate_fail_interrupted(const struct cli *cli, struct arena *arena) {
    const struct ablate_words again = {(size_t)cli->argc - 1, (const char *const *)(cli->argv + 1)};
    char *line;
    TRY(ablate_quote(&again, arena, &line));
    FAIL(STATUS_INTERRUPTED, "interrupted; what is done is kept. Continue with: twinstep %s", line);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *output;
    char *text;
    struct ablate_file *file;
    struct ablate_plan plan;
    struct ablate_folder folder;
    struct ablate_words executor;
    TRY(arena_take(&cli->arena, 1, sizeof *file, "ablation", &file));
    TRY(ablate_asked_executor(options, &cli->arena, &executor));
    TRY(read_two(options, &cli->arena, &text));
    *out_exit = EXIT_AS_EXPECTED;
    if (text != NULL && options_given(options, ABLATE_KEY_DRY_RUN) && !options->json)
        return print_two(text, &cli->arena);
    if (text != NULL) {
        TRY(ablate_file_parse("--good and --bad", text, strlen(text), &cli->arena, file));
    } else {
        TRY(ablate_check_rights(options->arguments[0]));
        TRY(ablate_file_read(options->arguments[0], &cli->arena, file));
    }
    TRY(ablate_asked_slots(options, file));
    TRY(ablate_plan_open(file, &cli->arena, &plan));
    TRY(folder_name(options, file, &cli->arena, &output));
    TRY(ablate_asked_json(options, &plan, output));
    if (options_given(options, ABLATE_KEY_DRY_RUN))
        return options->json ? ablate_json_plan(&plan, output, &cli->arena)
                             : ablate_print_plan(&plan, output, &cli->arena);
    struct ablate_running running = {
        .want = ablate_want_stages, .file = file, .plan = &plan, .executor = executor};
    TRY(ablate_plan_check_folder(&plan, &cli->arena));
    TRY(ablate_check_executor(&executor, &cli->arena));
    TRY(ablate_folder_open(output, &plan, &cli->arena, &folder));
    TRY(ablate_asked_run(cli, options, &folder, &running));
    return finish(&running, options, &cli->arena, out_exit);
}

static const struct argp_option option_rows[] = {
    OPTION("output", KEY_OUTPUT, "DIR",
           "Folder of the runs; default NAME.ablate. One that is there is continued"),
    OPTION("dry-run", ABLATE_KEY_DRY_RUN, NULL, "Say what would be run, and run nothing"),
    OPTION("good", KEY_GOOD, "COMMAND",
           "The baseline's command line, instead of FILE; split into words, with no shell"),
    OPTION(
        "bad", KEY_BAD, "COMMAND",
        "The test arm's command line: where it differs from --good in options, in variables before "
        "them, in leaves of YAML, JSON and TOML files, there are factors. --dry-run prints FILE"),
    OPTION("weights", KEY_READ + READ_WEIGHTS, "PATH",
           "With --good and --bad: the weights that a run leaves, as {dir}/model.safetensors"),
    OPTION("log", KEY_READ + READ_LOG, "PATH",
           "With --good and --bad: a log that a run leaves, whose loss counts"),
    OPTION("trace", KEY_READ + READ_TRACE, "PATH",
           "With --good and --bad: a trace that a run leaves, by the recorder"),
    OPTION("bytes", KEY_READ + READ_BYTES, "PATH",
           "With --good and --bad: any file that a run leaves, of which only equality is asked"),
    OPTION("name", KEY_NAME, "NAME", "The name of an ablation of --good and --bad"),
    ABLATE_OPTIONS,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_ablate = {
    .name = "ablate",
    .brief = "which factor of your own two trainings makes the gap, by running them",
    .arguments = "[FILE]",
    .text =
        "Runs a command of yours in two arms and in the hybrids between them, and says which of "
        "the differences makes how much of the gap. FILE names the command, the factors in which "
        "the arms differ, and what each run leaves: weights, a log, a trace (docs/ABLATE.md). "
        "Repeats of both arms in other processes come first; they are the floor. One folder a "
        "run; what is there is not run again.\v"
        "Exit status: 0 identical or inside the floor; 1 outside; 2 error; 3 untestable; 130 "
        "interrupted, to be continued with the same command.\n"
        "Example: twinstep ablate lr-or-order.yaml --dry-run\n"
        "         twinstep ablate --good 'python train.py --out {dir} a.yaml' --bad 'python "
        "train.py --out {dir} b.yaml' --weights '{dir}/model.safetensors'",
    .options = option_rows,
    .least = 0,
    .most = 1,
    .trains = 1,
    .run = run,
};
