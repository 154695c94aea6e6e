/* SPDX-License-Identifier: Apache-2.0
 * twinstep resume-check: what a restart restored, from the checkpoint it began from and the first
 * one after it; or from two logs or traces that overlap. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/number.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/perform.h"
#include "cli/readback/readback_print.h"
#include "cli/verb.h"
#include "forensics/trajectory.h"
#include "readback/folders.h"
#include "readback/restored.h"

enum { KEY_NAMES = KEY_OWN, KEY_WHOLE, KEY_RESTART, KEY_RUN_AFTER };

enum { BEFORE = 0, AFTER, WHOLE, FOLDERS };

struct restarting {
    struct training_given_names names;
    struct training_folder folders[FOLDERS];
    int opened[FOLDERS];
    struct readback_update update, whole;
    struct restart_more more;
    struct restart_item items[RESTART_PARTS];
    struct progress progress;
};

static enum status open_folder(struct cli *cli, struct restarting *in, int which,
                               const char *path) {
    TRY(training_folder_open(path, in->names.count > 0 ? &in->names : NULL, &cli->arena,
                             &in->folders[which]));
    in->opened[which] = 1;
    return STATUS_OK;
}

static enum status read_between(struct cli *cli, struct restarting *in, int after,
                                struct rate_room *room, struct readback_update *out) {
    out->before = &in->folders[BEFORE];
    out->after = &in->folders[after];
    TRY(folders_join(out->before, &in->folders[after], room, &cli->arena, &out->step, &out->said));
    return update_read(&out->step, &out->said, room, &cli->arena, &out->reading);
}

/* Reads the losses that a log has for one update: of a run that was resumed the first is that of
 * before the restart, and the last that of after it. */
static enum status read_losses(struct cli *cli, const struct options *options, const char *path,
                               double update, struct restart_more *more) {
    struct log_options how;
    struct log *log;
    size_t found = 0;
    TRY(log_options_read(options, &cli->arena, &how));
    TRY(log_import(path, &how, &cli->arena, &log));
    const struct log_column *const loss = log_column_of(log, LOG_LOSS);
    for (size_t i = 0; i < log->rows && loss != NULL; i++) {
        if ((double)log->step[i] != update || !log_has(loss, i)) continue;
        if (found++ == 0) more->loss_before = loss->value[i];
        more->loss_after = loss->value[i];
    }
    if (found < 2) more->loss_before = more->loss_after = (double)NAN;
    return STATUS_OK;
}

static enum status read_all(struct cli *cli, const struct options *options, struct restarting *in) {
    const char *const whole = options_value(options, KEY_WHOLE);
    struct rate_room *room;
    TRY(rate_room_open(&cli->arena, &room));
    readback_watch(room, &in->progress);
    TRY(open_folder(cli, in, BEFORE, options->arguments[0]));
    TRY(open_folder(cli, in, AFTER, options->arguments[1]));
    TRY(read_between(cli, in, AFTER, room, &in->update));
    if (whole != NULL) {
        TRY(open_folder(cli, in, WHOLE, whole));
        TRY(read_between(cli, in, WHOLE, room, &in->whole));
        in->more.of_whole = &in->folders[WHOLE];
        TRY(restart_compare(&in->update.step, &in->update.reading, &in->whole.step,
                            &in->whole.reading, room, &cli->arena, &in->more.whole));
    }
    if (options->argument_count > 2)
        TRY(read_losses(cli, options, options->arguments[2], in->update.reading.update, &in->more));
    return restart_read(&in->folders[BEFORE], &in->folders[AFTER], &in->update.step,
                        &in->update.reading, &in->more, &cli->arena, in->items);
}

/* ---- the answer ---- */

static size_t count(const struct restarting *in, enum restart_state state) {
    size_t out = 0;
    for (int part = 0; part < RESTART_PARTS; part++)
        out += in->items[part].state == state;
    return out;
}

/* Weights, moments and count are what every optimizer with a state has: without an answer about
 * them "restored" would be too much. So it would be of an update that is known to be another one.
 */
static int exit_of(const struct restarting *in) {
    if (count(in, RESTART_LOST) > 0) return EXIT_DIFFERS;
    for (int part = RESTART_WEIGHTS; part <= RESTART_COUNT; part++)
        if (in->items[part].state == RESTART_UNTOLD) return EXIT_UNTESTABLE;
    if (in->items[RESTART_POSITION].is_apart) return EXIT_UNTESTABLE;
    return EXIT_AS_EXPECTED;
}

static void print_list(const struct restarting *in, enum restart_state state) {
    const char *between = "";
    for (int part = 0; part < RESTART_PARTS; part++) {
        if (in->items[part].state != state) continue;
        printf("%s%s", between, restart_part_names[part]);
        between = ", ";
    }
}

static void print_head(const struct restarting *in) {
    if (count(in, RESTART_LOST) > 0) {
        fputs("NOT RESTORED: ", stdout);
        print_list(in, RESTART_LOST);
    } else if (in->items[RESTART_POSITION].is_apart) {
        fputs("ANOTHER UPDATE than without the restart", stdout);
    } else {
        fputs("restored: ", stdout);
        print_list(in, RESTART_RESTORED);
    }
    if (count(in, RESTART_UNTOLD) > 0) {
        fputs("; cannot be told: ", stdout);
        print_list(in, RESTART_UNTOLD);
    }
    putchar('\n');
}

static void print_text(const struct restarting *in) {
    print_head(in);
    for (int part = 0; part < RESTART_PARTS; part++) {
        const struct restart_item *const item = &in->items[part];
        printf("  %-10s  %-8s  ", restart_part_names[part],
               item->state == RESTART_LOST ? "LOST" : restart_state_names[item->state]);
        readback_print_text(item->text, stdout);
        putchar('\n');
    }
    puts("\nThe first update after the restart:");
    readback_print("", &in->update, stdout);
}

static enum status print_json(const struct restarting *in, int code) {
    json_t *const parts = json_object();
    for (int part = 0; part < RESTART_PARTS; part++)
        json_object_set_new(parts, restart_part_names[part],
                            json_pack("{s:s,s:s}", "state",
                                      restart_state_names[in->items[part].state], "text",
                                      in->items[part].text));
    return json_print(json_pack("{s:i,s:o,s:o}", "exit", code, "parts", parts, "update",
                                readback_json(&in->update)));
}

static enum status tell(struct cli *cli, const struct options *options, const struct restarting *in,
                        int *out_exit) {
    *out_exit = exit_of(in);
    for (int part = 0; part < RESTART_PARTS; part++) {
        static const int codes[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE,
                                    EXIT_AS_EXPECTED};
        const struct ci_case add = {.name = restart_part_names[part],
                                    .outcome = codes[in->items[part].state],
                                    .title = "resume",
                                    .message = in->items[part].text,
                                    .file = options->arguments[1],
                                    .seconds = -1.0};
        TRY(ci_add(cli, &add));
    }
    if (options->json) return print_json(in, *out_exit);
    print_text(in);
    return STATUS_OK;
}

/* ---- two logs or traces ---- */

/* Pipes are opened by whoever reads checkpoints, who says what is wrong with them. */
static int is_log(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && !training_is_file(path);
}

/* A path that is not there is neither a log nor a checkpoint, and no option is to blame. */
static enum status check_there(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: cannot open: %s", path, strerror(errno));
}

/* Options that only two files can have. */
static enum status check_folders_options(const struct options *options) {
    const char *const option = options_given(options, KEY_RESTART)     ? "--restart"
                               : options_given(options, KEY_RUN_AFTER) ? "--run-after"
                                                                       : NULL;
    if (option == NULL) return STATUS_OK;
    FAIL(STATUS_INPUT, "resume-check: %s goes with two logs or traces, and %s is none of these",
         option, options->arguments[is_log(options->arguments[0])]);
}

/* The digests of a run tell more than its printed columns; a log has none. */
static enum status open_side(struct cli *cli, const struct options *options, int after,
                             struct trace_image **out_image, struct trajectory_side *out) {
    const char *const path = options->arguments[after];
    struct log_options how;
    struct log *log;
    TRY(log_options_read(options, &cli->arena, &how));
    if (after && options_given(options, KEY_RUN_AFTER))
        how.run = options_value(options, KEY_RUN_AFTER);
    TRY(log_import(path, &how, &cli->arena, &log));
    *out = (struct trajectory_side){.log = log};
    if (strcmp(log->format, "trace") != 0) return STATUS_OK;
    return log_import_run(path, &how, &cli->arena, out_image, &out->run);
}

static size_t count_items(const struct trajectory *of, enum trajectory_state state) {
    size_t out = 0;
    for (int part = 0; part < TRAJECTORY_PARTS; part++)
        out += of->items[part].state == state;
    return out;
}

/* A column that differs is enough to say that this is no continuation, whichever part it is of. A
 * scheduler that cannot be told has a constant LR, or its LR is not logged. */
static int trajectory_exit(const struct trajectory *of) {
    if (of->differs != 0 || of->settings != NULL || count_items(of, TRAJECTORY_LOST) > 0)
        return EXIT_DIFFERS;
    for (int part = TRAJECTORY_DATA; part < TRAJECTORY_PARTS; part++)
        if (of->items[part].state == TRAJECTORY_UNTOLD) return EXIT_UNTESTABLE;
    return EXIT_AS_EXPECTED;
}

static void print_items(const struct trajectory *of, enum trajectory_state state) {
    const char *between = "";
    for (int part = 0; part < TRAJECTORY_PARTS; part++) {
        if (of->items[part].state != state) continue;
        printf("%s%s", between, trajectory_part_names[part]);
        between = ", ";
    }
}

static void print_trajectory(const struct trajectory *of, int code) {
    static const char *const heads[] = {
        [EXIT_AS_EXPECTED] = "continued: ", [EXIT_DIFFERS] = "NOT CONTINUED"};
    fputs(code == EXIT_UNTESTABLE ? "CANNOT BE TOLD" : heads[code], stdout);
    if (code == EXIT_AS_EXPECTED) print_items(of, TRAJECTORY_RESTORED);
    if (code == EXIT_DIFFERS && count_items(of, TRAJECTORY_LOST) > 0) {
        fputs(", not restored: ", stdout);
        print_items(of, TRAJECTORY_LOST);
    }
    if (of->settings != NULL) {
        fputs(count_items(of, TRAJECTORY_LOST) > 0 ? "; settings changed: "
                                                   : ", settings changed: ",
              stdout);
        readback_print_text(of->settings, stdout);
    }
    if (count_items(of, TRAJECTORY_UNTOLD) > 0) {
        fputs(code == EXIT_UNTESTABLE ? ": " : "; cannot be told: ", stdout);
        print_items(of, TRAJECTORY_UNTOLD);
    }
    putchar('\n');
    for (int part = 0; part < TRAJECTORY_PARTS; part++) {
        const struct trajectory_item *const item = &of->items[part];
        printf("  %-10s  %-8s  ", trajectory_part_names[part],
               item->state == TRAJECTORY_LOST ? "LOST" : trajectory_state_names[item->state]);
        readback_print_text(item->text, stdout);
        if (item->bug != NULL) printf(" (%s)", item->bug);
        putchar('\n');
    }
    if (of->restart != TRAJECTORY_UNKNOWN)
        printf("\nrestarted after update %" PRIu64 "; ", of->restart);
    else
        fputs("\nwhere it restarted is not known; ", stdout);
    printf("%" PRIu64 " updates behind it stand in both", of->rows);
    if (of->differs != 0)
        printf("; the first that differs is update %" PRIu64 ", in %s", of->differs, of->column);
    putchar('\n');
}

static json_t *number_or_null(uint64_t value, uint64_t none) {
    return value == none ? json_null() : json_integer((json_int_t)value);
}

static enum status print_trajectory_json(const struct trajectory *of, int code) {
    json_t *const parts = json_object();
    for (int part = 0; part < TRAJECTORY_PARTS; part++) {
        const struct trajectory_item *const item = &of->items[part];
        json_object_set_new(parts, trajectory_part_names[part],
                            json_pack("{s:s,s:s,s:o}", "state", trajectory_state_names[item->state],
                                      "text", item->text, "bug",
                                      item->bug == NULL ? json_null() : json_string(item->bug)));
    }
    return json_print(
        json_pack("{s:i,s:o,s:o,s:I,s:o,s:o,s:o}", "exit", code, "parts", parts, "restart",
                  number_or_null(of->restart, TRAJECTORY_UNKNOWN), "rows", (json_int_t)of->rows,
                  "differs", number_or_null(of->differs, 0), "column",
                  of->column == NULL ? json_null() : json_string(of->column), "settings",
                  of->settings == NULL ? json_null() : json_string(of->settings)));
}

static enum status tell_trajectory(struct cli *cli, const struct options *options,
                                   const struct trajectory *of, int *out_exit) {
    static const int codes[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    *out_exit = trajectory_exit(of);
    for (int part = 0; part < TRAJECTORY_PARTS; part++)
        TRY(ci_add(cli, &(struct ci_case){.name = trajectory_part_names[part],
                                          .outcome = codes[of->items[part].state],
                                          .title = "resume",
                                          .message = of->items[part].text,
                                          .file = options->arguments[1],
                                          .seconds = -1.0}));
    if (of->settings != NULL)
        TRY(ci_add(cli, &(struct ci_case){.name = "settings",
                                          .outcome = EXIT_DIFFERS,
                                          .title = "resume",
                                          .message = of->settings,
                                          .file = options->arguments[1],
                                          .seconds = -1.0}));
    if (options->json) return print_trajectory_json(of, *out_exit);
    print_trajectory(of, *out_exit);
    return STATUS_OK;
}

static enum status run_logs(struct cli *cli, const struct options *options, int *out_exit) {
    const char *const given = options_value(options, KEY_RESTART);
    struct trajectory_side sides[2];
    struct trajectory of;
    uint64_t restart = TRAJECTORY_UNKNOWN;
    if (options->argument_count > 2 || options_given(options, KEY_NAMES) ||
        options_given(options, KEY_WHOLE))
        FAIL(STATUS_INPUT, "resume-check: two logs take no third file, no --names and no "
                           "--uninterrupted: these go with two checkpoints");
    if (given != NULL && number_parse_uint(given, &restart) != STATUS_OK)
        FAIL(STATUS_INPUT, "resume-check: --restart: expected an update, got \"%s\"", given);
    struct trace_image *images[2] = {NULL, NULL};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = open_side(cli, options, i, &images[i], &sides[i]);
    if (status == STATUS_OK)
        status = trajectory_judge(&sides[0], &sides[1], restart, &cli->arena, &of);
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        if (images[i] != NULL) status = trace_rows_status(images[i]);
    for (int i = 0; i < 2; i++)
        trace_close(images[i]);
    return status == STATUS_OK ? tell_trajectory(cli, options, &of, out_exit) : status;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    for (size_t i = 0; i < options->argument_count; i++)
        TRY(check_there(options->arguments[i]));
    if (is_log(options->arguments[0]) && is_log(options->arguments[1]))
        return run_logs(cli, options, out_exit);
    TRY(check_folders_options(options));
    const double nan = (double)NAN;
    const char *const names = options_value(options, KEY_NAMES);
    struct restarting *in;
    TRY(arena_take(&cli->arena, 1, sizeof *in, "folders", &in));
    in->more = (struct restart_more){.loss_before = nan, .loss_after = nan};
    if (names != NULL) TRY(training_names_read(names, &cli->arena, &in->names));
    progress_open(&in->progress, "resume-check", progress_wanted(options));
    enum status status = read_all(cli, options, in);
    progress_close(&in->progress);
    if (status == STATUS_OK) status = tell(cli, options, in, out_exit);
    for (int i = 0; i < FOLDERS; i++)
        if (in->opened[i]) training_folder_close(&in->folders[i]);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("uninterrupted", KEY_WHOLE, "CHECKPOINT",
           "The checkpoint after the same update of a run that was not interrupted: it tells "
           "whether the data went on, too"),
    OPTION("restart", KEY_RESTART, "UPDATE",
           "Of two logs: the last update before the restart; default: the one before AFTER begins"),
    OPTION("run-after", KEY_RUN_AFTER, "ID",
           "Of two traces: the run of AFTER, where it is another one than --run"),
    OPTION("names", KEY_NAMES, "FILE",
           "Names of the parameters, one a line, in the order of the optimizer's groups"),
    OPTIONS_LOG,
    OPTIONS_CI,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_resume_check = {
    .name = "resume-check",
    .brief =
        "what a restart restored: weights, moments, count, LR, settings, scaler, generators, data",
    .arguments = "BEFORE AFTER [LOG]",
    .text =
        "BEFORE is the checkpoint that a training was resumed from, AFTER the first one after it, "
        "one update later (save_steps=1). Says of weights, optimizer moments, count, scheduler, "
        "the optimizer's settings, loss scaler, random generators and the position in the data "
        "whether each was restored, and what the first update applied. What these files cannot "
        "tell is said, with what would. LOG may hold the update twice, before the restart and "
        "after it. Checkpoints are those that `twinstep readback` reads, folders or single files "
        "(.pt, .ckpt). Nothing in a pickle is executed. Or BEFORE and AFTER are logs or traces "
        "that overlap: AFTER begins at the restart, and BEFORE goes on past it, or is that of a "
        "run that was not interrupted. Then LRs, losses, gradient norms and token counts say "
        "whether it is the same trajectory continued, and digests where both are traces.\v"
        "Exit status: 0 restored, 1 not, 2 error, 3 cannot be told.\n"
        "Example: twinstep resume-check out/checkpoint-400 out/checkpoint-401",
    .options = option_rows,
    .least = 2,
    .most = 3,
    .run = run,
};
