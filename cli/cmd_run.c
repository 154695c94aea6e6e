/* SPDX-License-Identifier: Apache-2.0
 * twinstep run: trains, records and judges scenarios, one after the other. Invariant: a scenario
 * that fails does not keep the next one from running, but an interruption does. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/parent.h"
#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/cores.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/perform.h"
#include "cli/run_ranks.h"
#include "determinism/trace.h"
#include "experiment/noise/noise_use.h"
#include "model/save_model.h"

enum {
    KEY_CHECKPOINT = KEY_OWN,
    KEY_FLOOR,
    KEY_SAVE,
    KEY_RESUME,
    KEY_ROOM,
    KEY_KEEP_EVERY,
    KEY_VERIFY,
    KEY_JOBS,
    KEY_BOTH_ARMS,
    KEY_RANKS,
    KEY_RANKS_WAIT
};

#define KEEP_SECONDS 5.0 /* said by --help */

static int is_folder(const char *path) {
    struct stat info;
    size_t length = strlen(path);
    return (length > 0 && path[length - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* The trace goes to -o FILE, to NAME.h5 in -o FOLDER, or without -o to NAME.h5 in the working
 * folder. */
static enum status output_path(const struct options *options, const char *name, struct arena *arena,
                               char **out) {
    const char *given = options->output;
    if (given == NULL) return arena_format(arena, out, "%s.h5", name);
    if (given[0] == '\0') FAIL(STATUS_INPUT, "run: --output: expected a file name, got nothing");
    if (!is_folder(given)) return arena_format(arena, out, "%s", given);
    const char *slash = given[strlen(given) - 1] == '/' ? "" : "/";
    return arena_format(arena, out, "%s%s%s.h5", given, slash, name);
}

/* Turns --backend and --checkpoint-every into the keys that they stand for. */
static enum status with_options(const struct options *options, struct arena *arena,
                                struct options *out) {
    const char *every = options_value(options, KEY_CHECKPOINT);
    struct options with;
    TRY(set_backend(options, arena, &with));
    if (every != NULL && (every[0] == '\0' || every[strspn(every, "0123456789")] != '\0'))
        FAIL(STATUS_INPUT, "run: --checkpoint-every: expected a number of updates, got \"%s\"",
             every);
    return options_with(&with, arena, "record.snapshots", every, out);
}

/* Reads --keep-every: seconds, or never. */
static enum status keeping(const struct options *options, struct performance *how) {
    const char *const given = options_value(options, KEY_KEEP_EVERY);
    how->keep = 1;
    how->keep_every = KEEP_SECONDS;
    if (given == NULL) return STATUS_OK;
    how->keep = strcmp(given, "never") != 0;
    if (!how->keep || (number_parse_real(given, NUMBER_FINITE, &how->keep_every) == STATUS_OK &&
                       how->keep_every >= 0.0))
        return STATUS_OK;
    FAIL(STATUS_INPUT, "run: --keep-every: expected a number of seconds, or never, got \"%s\"",
         given);
}

/* Opens a floor file, whose pairs take the place of runs for the floor. */
static enum status with_floor(const struct cli *cli, const struct options *options,
                              struct arena *arena, struct scenario *scenario) {
    const char *path = options_value(options, KEY_FLOOR);
    struct floor_file *file;
    if (path == NULL) return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *file, "floor", &file));
    TRY(floor_file_open(path, arena, file));
    TRY(noise_use_check(cli->schema, path, file, &scenario->arms[0].config, scenario->steps,
                        arena));
    scenario->floor.file = file;
    return STATUS_OK;
}

static const char *const trace_ends[] = {"", ".part", ".part.kept-1", ".part.kept-2"};

/* The longest of the names that stand beside a trace while it is written: a kept state
 * (experiment/experiment_kept.c), before it has its own (checkpoints/safetensors_write.c). */
#define LONGEST_END ".part.kept-1.part"

/* Refuses a name that leaves no room for those, before anything is trained. */
static enum status name_fits(const char *trace) {
    const char *const slash = strrchr(trace, '/');
    const size_t length = strlen(slash == NULL ? trace : slash + 1);
    if (length + strlen(LONGEST_END) <= NAME_MAX) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "run: --output: expected a name of at most %zu bytes, got %zu: while it trains, files "
         "beside it have the same name and up to %zu bytes more (%s)",
         NAME_MAX - strlen(LONGEST_END), length, strlen(LONGEST_END), LONGEST_END);
}

/* Refuses a --junit that would replace the trace, which has its name from the scenario where no
 * --output gives one; then nothing is written to it. */
static enum status junit_apart(struct cli *cli, const struct options *options, const char *trace,
                               struct arena *arena) {
    for (size_t i = 0; options->junit != NULL && i < COUNT_OF(trace_ends); i++) {
        char *path;
        TRY(arena_format(arena, &path, "%s%s", trace, trace_ends[i]));
        if (!save_model_same_place(options->junit, path)) continue;
        cli->ci.withheld = 1;
        FAIL(STATUS_INPUT,
             "run: --junit: expected a file apart from the trace's, got %s, which the trace %s "
             "needs",
             options->junit, trace);
    }
    return STATUS_OK;
}

/* Whether `path` is the folder, or one that is above it and made on the way to it. */
static int is_on_the_way(const char *path, const char *folder) {
    char above[4096];
    for (size_t i = 1; folder[i] != '\0' && i < sizeof above; i++) {
        if (folder[i] != '/') continue;
        memcpy(above, folder, i);
        above[i] = '\0';
        if (save_model_same_place(path, above)) return 1;
    }
    return save_model_same_place(path, folder);
}

/* The same for the folder of a model: each of its files is the model's. */
static enum status junit_outside(struct cli *cli, const struct options *options,
                                 const struct performance *how) {
    for (int arm = 0; options->junit != NULL && arm < 2; arm++) {
        if (how->save[arm] == NULL ||
            !(save_model_same_place(parent_of(options->junit).text, how->save[arm]) ||
              is_on_the_way(options->junit, how->save[arm])))
            continue;
        cli->ci.withheld = 1;
        FAIL(STATUS_INPUT,
             "run: --junit: expected a file outside of the folder of --save-model, got %s",
             options->junit);
    }
    return STATUS_OK;
}

/* Refuses a --save-model that names a file of the trace, however it is spelled, before anything is
 * made: the folder would stand where the trace is to be written. */
static enum status save_apart(const char *given, const struct scenario *scenario, const char *trace,
                              struct arena *arena) {
    const char *const equals = strchr(given, '=');
    const char *const folder = equals == NULL ? given : equals + 1;
    for (size_t i = 0; i < COUNT_OF(trace_ends); i++) {
        char *path, *inside[2];
        TRY(arena_format(arena, &path, "%s%s", trace, trace_ends[i]));
        int same = strcmp(path, folder) == 0 || save_model_same_place(path, folder);
        for (int arm = 0; arm < 2 && equals == NULL; arm++) {
            TRY(arena_format(arena, &inside[arm], "%s/%s", given, scenario->arms[arm].name));
            same |= strcmp(path, inside[arm]) == 0 || save_model_same_place(path, inside[arm]);
        }
        if (same)
            FAIL(STATUS_INPUT,
                 "run: --save-model %s: expected a folder apart from the trace's files, got %s, "
                 "which the trace %s needs: both options name one path",
                 given, path, trace);
    }
    return STATUS_OK;
}

/* Reads one --save-model: FOLDER, in which each arm gets a folder, or ARM=FOLDER for one arm.
 * FOLDER is made now, so that one that cannot be made is told before anything is trained. */
static enum status add_saving(const char *given, const struct scenario *scenario,
                              struct arena *arena, struct performance *how) {
    const char **const out = how->save;
    const char *equals = strchr(given, '=');
    int found = 0;
    if (given[0] == '\0' || (equals != NULL && equals[1] == '\0'))
        FAIL(STATUS_INPUT, "run: --save-model: expected FOLDER or ARM=FOLDER, got \"%s\"", given);
    for (int arm = 0; arm < 2; arm++) {
        const char *name = scenario->arms[arm].name;
        char *path;
        if (equals != NULL &&
            (strlen(name) != (size_t)(equals - given) || strncmp(name, given, strlen(name)) != 0))
            continue;
        if (out[arm] != NULL)
            FAIL(STATUS_INPUT, "run: --save-model %s: arm %s is saved to %s already", given, name,
                 out[arm]);
        TRY(equals == NULL ? arena_format(arena, &path, "%s/%s", given, name)
                           : arena_format(arena, &path, "%s", equals + 1));
        out[arm] = path;
        found = 1;
    }
    if (!found)
        FAIL(STATUS_INPUT, "run: --save-model %s: no such arm; there are %s and %s", given,
             scenario->arms[0].name, scenario->arms[1].name);
    if (equals == NULL && mkdir(given, 0777) == 0)
        how->made = given;
    else if (equals == NULL && errno != EEXIST)
        FAIL(STATUS_IO, "%s: cannot create: %s", given, strerror(errno));
    return STATUS_OK;
}

/* Adds the scenario's case: its headline, or what of its expectation was missed. */
static enum status add_case(struct cli *cli, const struct judgement *judgement, const char *word,
                            int code) {
    const int missed = judgement->expectation == EXPECT_MISSED;
    return ci_add(cli,
                  &(struct ci_case){.name = judgement->name,
                                    .outcome = code,
                                    .title = missed ? "expectation missed" : "twinstep run",
                                    .message = missed                     ? judgement->missed
                                               : judgement->row_count > 0 ? judgement->rows[0].text
                                                                          : "",
                                    .file = strstr(word, ".yaml") != NULL ? word : NULL,
                                    .seconds = -1.0});
}

/* The file that is gone on with is read to the end, so nothing may be written in its place. */
static enum status check_resume(const char *path, const char *resume, struct arena *arena) {
    char *live;
    TRY(arena_format(arena, &live, "%s.part", path));
    TRY(output_apart(path, resume));
    if (output_apart(live, resume) == STATUS_OK) return STATUS_OK;
    FAIL(STATUS_INPUT, "run: --resume: %s is where %s would be written: name another --output",
         resume, path);
}

/* The updates of all runs in a file that was just closed; 0 where it cannot be read. */
static uint64_t updates_in(const char *path) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    uint64_t updates = 0;
    if (trace_open_long(path, &arena, &image) == STATUS_OK) {
        for (uint32_t i = 0; i < image->run_count; i++)
            updates += image->runs[i].updates;
        trace_close(image);
    }
    arena_close(&arena);
    return updates;
}

/* Names a trace that is not there yet: NAME-2.h5 for NAME.h5 and NAME-3.h5 for NAME-2.h5. */
static enum status next_output(const char *path, struct arena *arena, char **out) {
    const size_t length = strlen(path);
    size_t stem = length > 3 && strcmp(path + length - 3, ".h5") == 0 ? length - 3 : length;
    size_t digits = stem;
    struct stat info;
    while (digits > 0 && path[digits - 1] >= '0' && path[digits - 1] <= '9')
        digits--;
    if (digits < stem && digits > 1 && path[digits - 1] == '-') stem = digits - 1;
    for (unsigned number = 2;; number++) {
        char *live;
        TRY(arena_format(arena, out, "%.*s-%u.h5", (int)stem, path, number));
        TRY(arena_format(arena, &live, "%s.part", *out));
        if (lstat(*out, &info) != 0 && lstat(live, &info) != 0) return STATUS_OK;
    }
}

/* A word as a shell reads it. */
static enum status shell_word(const char *word, struct arena *arena, char **out) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_./=:,@%+-";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0')
        return arena_format(arena, out, "%s", word);
    TRY(arena_format(arena, out, "'"));
    while (*word != '\0') {
        const size_t length = strcspn(word, "'");
        TRY(arena_format(arena, out, "%s%.*s%s", *out, (int)length, word,
                         word[length] == '\0' ? "" : "'\\''"));
        word += length + (word[length] != '\0');
    }
    return arena_format(arena, out, "%s'", *out);
}

/* Whether this run has saved models, of which --resume without --overwrite would say that they are
 * there already. They are its own: it refuses to begin where there are some. */
static int has_saved(const struct options *options, const struct performance *how) {
    int saved = 0;
    for (int arm = 0; arm < 2; arm++)
        saved |= how->save[arm] != NULL && save_model_is_there(how->save[arm]);
    return saved && !options->overwrite;
}

/* The command that goes on with `part`: that of this process with another --resume and --output,
 * and --overwrite for the models that it `saved`. What this process kept it has verified, where it
 * was asked to. */
static enum status command_from(const struct cli *cli, const char *part, const char *path,
                                int saved, struct arena *arena, char **out) {
    char *word, *output;
    TRY(next_output(path, arena, &output));
    TRY(shell_word(cli->argv[0], arena, out));
    for (int i = 1, key, words; i < cli->argc; i += words) {
        words = options_span(&verb_run, cli->argc, cli->argv, i, &key);
        if (key == KEY_VERIFY || key == KEY_RESUME || key == KEY_OUTPUT) continue;
        /* What started processes as ranks (mpirun -n P) is not known here, and simulated ranks go
         * on with the same bits. */
        if (key == KEY_RANKS || key == KEY_RANKS_WAIT) continue;
        for (int k = i; k < i + words; k++) {
            TRY(shell_word(cli->argv[k], arena, &word));
            TRY(arena_format(arena, out, "%s %s", *out, word));
        }
    }
    TRY(shell_word(part, arena, &word));
    TRY(arena_format(arena, out, "%s%s --resume %s", *out, saved ? " --overwrite" : "", word));
    TRY(shell_word(output, arena, &word));
    return arena_format(arena, out, "%s -o %s", *out, word);
}

/* Whether more options may follow the words of the command line, of which one is a scenario that
 * can be read again. */
static int can_be_extended(const struct cli *cli, const struct options *options) {
    for (int i = 1; i < cli->argc; i++)
        if (strcmp(cli->argv[i], "--") == 0) return 0;
    return options->argument_count == 1 && strcmp(options->arguments[0], "-") != 0;
}

/* A run that went on from a file and is stopped has not yet written again what that file holds of
 * later runs, so the file that holds more is the one to go on with. */
static enum status tell_how_to_go_on(const struct cli *cli, const struct options *options,
                                     enum status status, const struct performance *how,
                                     struct arena *arena) {
    const char *const resume = how->resume, *const path = how->path;
    char told[1024], *part, *from, *command;
    if (status != STATUS_INTERRUPTED) return status;
    const int saved = has_saved(options, how);
    snprintf(told, sizeof told, "%s", status_text());
    TRY(arena_format(arena, &part, "%s.part", path));
    const int older = resume != NULL && updates_in(resume) > updates_in(part);
    if (older)
        TRY(arena_format(arena, &from, "%s holds more than %s", resume, part));
    else
        TRY(arena_format(arena, &from, "what there is is in %s", part));
    const char *const file = older ? resume : part;
    if (!can_be_extended(cli, options))
        return status_fail(
            status,
            "%s; %s: the same command with --resume %s%s and another --output goes on with it",
            told, from, file, saved ? ", with --overwrite for the models that it saved" : "");
    TRY(command_from(cli, file, path, saved, arena, &command));
    return status_fail(status, "%s; %s. This goes on with it: %s", told, from, command);
}

/* What does not end leaves no folder that was not there, unless a model is in it. */
static enum status perform_and_save(struct cli *cli, const struct options *options,
                                    struct scenario *scenario, struct performance *how,
                                    struct arena *arena, struct judgement *judgement) {
    enum status status = STATUS_OK;
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_SAVE)
            TRY(save_apart(options->given[i].value, scenario, how->path, arena));
    for (size_t i = 0; i < options->given_count && status == STATUS_OK; i++)
        if (options->given[i].key == KEY_SAVE)
            status = add_saving(options->given[i].value, scenario, arena, how);
    if (status == STATUS_OK) status = junit_outside(cli, options, how);
    if (status == STATUS_OK) status = perform(cli, scenario, how, arena, judgement);
    if (status != STATUS_OK && how->made != NULL) (void)rmdir(how->made);
    return status;
}

static enum status run_scenario(struct cli *cli, const struct options *options,
                                const struct run_ranks *ranks, const char *word,
                                struct arena *arena, int *out_exit) {
    struct scenario *scenario;
    struct judgement judgement;
    struct options all;
    char *path;
    TRY(with_options(options, arena, &all));
    TRY(load_scenario(cli, arena, word, &all, &scenario));
    TRY(run_ranks_check(ranks, scenario));
    TRY(output_path(options, scenario->name, arena, &path));
    TRY(name_fits(path));
    TRY(junit_apart(cli, options, path, arena));
    TRY(output_apart(path, word));
    TRY(load_apart(path, scenario));
    for (int arm = 0; arm < 2; arm++)
        TRY(load_check_data(scenario, arm));
    const char *const floor = options_value(options, KEY_FLOOR);
    if (floor != NULL) TRY(output_apart(path, floor));
    TRY(with_floor(cli, options, arena, scenario));
    const char *const resume = options_value(options, KEY_RESUME);
    if (resume != NULL) TRY(check_resume(path, resume, arena));
    struct performance how = {.path = path,
                              .resume = resume,
                              .overwrite = options->overwrite,
                              .reproducible = options->reproducible,
                              .progress = progress_wanted(options),
                              .unasked_room = options_given(options, KEY_ROOM),
                              .both_arms = options_given(options, KEY_BOTH_ARMS),
                              .verify = options_given(options, KEY_VERIFY),
                              .ranks = ranks->group};
    TRY(cores_asked(options, KEY_JOBS, "run", &how.cores));
    if (ranks->group != NULL) how.cores = 1; /* the other ones are the ranks' */
    TRY(keeping(options, &how));
    TRY(tell_how_to_go_on(cli, options,
                          perform_and_save(cli, options, scenario, &how, arena, &judgement), &how,
                          arena));
    TRY(print_judgement(&judgement, path, options->json));
    *out_exit = judgement_exit(&judgement);
    return add_case(cli, &judgement, word, *out_exit);
}

/* Asks junit_apart() of the traces of all scenarios before the first is trained. One that cannot be
 * read is told in its turn, where no --junit is at stake; standard input is read only once, so that
 * its trace is looked at in its turn, too. */
static enum status junit_apart_all(struct cli *cli, const struct options *options) {
    enum status status = STATUS_OK;
    if (options->junit == NULL || options->argument_count < 2) return STATUS_OK;
    for (size_t i = 0; i < options->argument_count && status == STATUS_OK; i++) {
        const char *const word = options->arguments[i];
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        struct options all;
        char *path;
        if (strcmp(word, "-") == 0) continue;
        status = with_options(options, &arena, &all);
        if (status == STATUS_OK) status = load_scenario(cli, &arena, word, &all, &scenario);
        if (status == STATUS_OK) status = output_path(options, scenario->name, &arena, &path);
        if (status == STATUS_OK) status = junit_apart(cli, options, path, &arena);
        arena_close(&arena);
        if (!cli->ci.withheld) status = STATUS_OK;
    }
    return status;
}

static enum status run_scenarios(struct cli *cli, const struct options *options,
                                 const struct run_ranks *ranks, int *out_exit) {
    TRY(ci_try(options));
    TRY(check_backend(options->backend));
    if (options->output != NULL && options->argument_count > 1 && !is_folder(options->output))
        FAIL(STATUS_INPUT, "run: --output with %zu scenarios: expected a folder, got \"%s\"",
             options->argument_count, options->output);
    if (options_given(options, KEY_RESUME) && options->argument_count > 1)
        FAIL(STATUS_INPUT, "run: --resume: expected one scenario, got %zu",
             options->argument_count);
    if (options_given(options, KEY_VERIFY) && !options_given(options, KEY_RESUME))
        FAIL(STATUS_INPUT,
             "run: --verify: expected with --resume FILE, whose runs it trains again");
    if (options_given(options, KEY_SAVE) && options->argument_count > 1)
        FAIL(STATUS_INPUT, "run: --save-model: expected one scenario, got %zu",
             options->argument_count);
    TRY(junit_apart_all(cli, options));
    *out_exit = EXIT_AS_EXPECTED;
    for (size_t i = 0; i < options->argument_count; i++) {
        struct arena arena = ARENA_EMPTY;
        int code = EXIT_AS_EXPECTED;
        enum status status =
            run_scenario(cli, options, ranks, options->arguments[i], &arena, &code);
        if (status != STATUS_OK) {
            print_error(status_text());
            code = exit_of_status(status);
            TRY(ci_add(cli,
                       &(struct ci_case){.name = options->arguments[i],
                                         .outcome = code == EXIT_INTERRUPTED ? EXIT_ERROR : code,
                                         .title = "twinstep run",
                                         .message = status_text(),
                                         .file = options->arguments[i],
                                         .seconds = -1.0}));
        }
        arena_close(&arena);
        *out_exit = exit_worst(*out_exit, code);
        if (status == STATUS_INTERRUPTED) break;
    }
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct run_ranks ranks;
    memset(&ranks, 0, sizeof ranks);
    const enum status joined = run_ranks_join(cli, options_value(options, KEY_RANKS),
                                              options_value(options, KEY_RANKS_WAIT), &ranks);
    if (ranks.ranks.rank != 0) cli->ci.withheld = 1; /* rank 0 writes --junit */
    TRY(joined);
    if (ranks.group == NULL) return run_scenarios(cli, options, &ranks, out_exit);
    if (run_ranks_serves(&ranks)) return run_ranks_serve(cli, &ranks, out_exit);
    const enum status status = run_scenarios(cli, options, &ranks, out_exit);
    if (status != STATUS_OK) print_error(status_text());
    if (status != STATUS_OK) *out_exit = exit_of_status(status);
    return run_ranks_end(&ranks, *out_exit);
}

static const struct argp_option option_rows[] = {
    OPTION_OUTPUT("Trace to write; default NAME.h5 in this folder. A folder for several scenarios"),
    OPTION_SET,
    OPTION_BACKEND,
    OPTION_REPRODUCIBLE,
    OPTION("checkpoint-every", KEY_CHECKPOINT, "N",
           "Store every run's state at its start and after each N updates (record.snapshots), for "
           "replay --from; default 0, none"),
    OPTION("floor", KEY_FLOOR, "FILE",
           "Judge against this floor file (twinstep noise -o) of the same baseline instead of "
           "training runs for the floor"),
    OPTION("resume", KEY_RESUME, "FILE",
           "Go on with an interrupted run of the same scenario, options and build: FILE is what it "
           "left (NAME.h5.part). Finished runs are taken over, the interrupted one goes on from "
           "the last state in FILE.kept-1 or FILE.kept-2. Where none was kept (--keep-every never, "
           "record.replay_check, products of a device's library, threads that race) repeats and "
           "hybrids go on from the states of --checkpoint-every, and both arms are trained again. "
           "The trace is that of a run that was never interrupted"),
    OPTION("keep-every", KEY_KEEP_EVERY, "SECONDS",
           "How often states are kept for --resume, in two files beside the trace, NAME.h5.part."
           "kept-1 and -2, that are written in turns and removed at the end. Default 5, but never "
           "more than a twentieth of the time; 0: after every update; never: not at all. Each "
           "takes the bytes of the states of the two runs that are trained, of the baseline's "
           "repeat and of those that hybrids begin with, and 8 bytes per parameter (16 in f64) "
           "and update 1, 2, 4, 8 ... Ctrl-C keeps them at once between two updates; while "
           "held-out rows are "
           "measured or the first difference is looked for it does not, because a file says only "
           "how many updates each run has behind it, and what came after the last file is then "
           "trained again"),
    OPTION("both-arms", KEY_BOTH_ARMS, NULL,
           "Train both arms of every update. By default one training is recorded of both for the "
           "updates in which nothing that differs between them can act, which the verdict says "
           "(arms); all that is measured is the same"),
    OPTION("verify", KEY_VERIFY, NULL,
           "With --resume: believe no kept state. Both arms, or the training that serves both, are "
           "trained again from their start, "
           "other runs from their last stored state, and must come out as recorded"),
    OPTION("save-model", KEY_SAVE, "FOLDER",
           "Write each arm's final weights to FOLDER/ARM, as checkpoints that transformers loads; "
           "ARM=FOLDER: those of one arm (repeatable). Written as soon as both arms are trained, "
           "before the floor and the hybrids, whose memory is theirs: what fails or is "
           "interrupted later leaves them"),
    OPTION(
        "no-room-check", KEY_ROOM, NULL,
        "Train even where the disk or the memory that are free seem too small for it. By default "
        "such a run is refused before its first update, with what it needs (trace, kept states, "
        "saved models; runs and end points in memory) and what there is. Arms that need more than "
        "all of the machine's memory are refused in any case"),
    OPTION(
        "jobs", KEY_JOBS, "N",
        "Fill N cores: repeats and hybrids are trained by processes of their own, beside "
        "the arms what an exact floor repeats and the hybrid of all differences (for a while two "
        "processes more than N), then the others N at once, where memory is free; the trace is the "
        "same. 1: one after the other. Default: all cores that this process may use. One "
        "after the other come runs of several threads (numerics.threads), of threads that race, of "
        "a device, a library or a module, with --checkpoint-every, --resume or --no-room-check. A "
        "run that such a process had not finished is trained again as a whole by --resume"),
    OPTION(
        "ranks", KEY_RANKS, "KIND",
        "Train ranks as processes: mpi, under mpirun -n P, P being parallel.ranks of an arm or of "
        "both. Each process computes the forward and backward of its own shards; what it adds up "
        "is joined in the order of simulated ranks, so the trace is theirs, byte for byte with "
        "--reproducible. Rank 0 alone prints and writes (docs/RANKS.md)"),
    OPTION("ranks-wait", KEY_RANKS_WAIT, "SECONDS",
           "With --ranks: how long a process waits for another one before it ends the job. Default "
           "60; more where one of them computes its share of an update for longer"),
    OPTION_OVERWRITE("Replace a trace that exists, and saved models"),
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_run = {
    .name = "run",
    .brief = "train the arms of a scenario, record them, judge what differs",
    .arguments = "SCENARIO...",
    .text =
        "Trains both arms of each SCENARIO, measures what difference is normal, names the cause, "
        "and writes everything to a trace. SCENARIO is a YAML file, - for standard input, or the "
        "name of a catalogue scenario (twinstep list scenarios). Data files are relative to the "
        "scenario's folder. A run that is stopped leaves NAME.h5.part, which attribute and recover "
        "read and from which --resume goes on. docs/GLOSSARY.md explains floor, twin, closure and "
        "other words of the answer.\v"
        "Example: twinstep run lr-set-before-step --set steps=20 -o lr.h5",
    .options = option_rows,
    .least = 1,
    .most = SIZE_MAX,
    .trains = 1,
    .run = run,
};
