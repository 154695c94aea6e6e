/* SPDX-License-Identifier: Apache-2.0
 * twinstep resume-check: what a restart restored, from the checkpoint it began from and the first
 * one after it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/perform.h"
#include "cli/readback/readback_print.h"
#include "cli/verb.h"
#include "readback/folders.h"
#include "readback/restored.h"

enum { KEY_NAMES = KEY_OWN, KEY_WHOLE };

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
 * them "restored" would be too much. */
static int exit_of(const struct restarting *in) {
    if (count(in, RESTART_LOST) > 0) return EXIT_DIFFERS;
    for (int part = RESTART_WEIGHTS; part <= RESTART_COUNT; part++)
        if (in->items[part].state == RESTART_UNTOLD) return EXIT_UNTESTABLE;
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

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
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
        "what a restart restored: weights, moments, count, scheduler, scaler, generators, data",
    .arguments = "BEFORE FIRST_AFTER [LOG]",
    .text =
        "BEFORE is the checkpoint that a training was resumed from, FIRST_AFTER the first one "
        "after "
        "it, one update later (save_steps=1). Says of weights, optimizer moments, count, "
        "scheduler, "
        "loss scaler, random generators and the position in the data whether each was restored, "
        "and what the first update applied. What these files cannot tell is said, with what would. "
        "LOG may hold the update twice, before the restart and after it. Checkpoints are those "
        "that `twinstep readback` reads. Nothing in a pickle is executed.\v"
        "Exit status: 0 restored, 1 not, 2 error, 3 weights, moments or count cannot be told.\n"
        "Example: twinstep resume-check out/checkpoint-400 out/checkpoint-401",
    .options = option_rows,
    .least = 2,
    .most = 3,
    .run = run,
};
