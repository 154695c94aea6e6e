/* SPDX-License-Identifier: Apache-2.0
 * twinstep readback: what an update applied, read from the checkpoints before and after it. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/perform.h"
#include "cli/readback/readback_print.h"
#include "cli/verb.h"
#include "readback/folders.h"

enum { KEY_NAMES = KEY_OWN, KEY_LOG, KEY_EXPECT, KEY_AGAINST };

/* One run's folders, in the order given, and the updates between them. */
struct readback_run {
    struct training_folder *folders;
    size_t opened;
    struct readback_update *updates;
    size_t update_count;
};

/* What the user says beside the folders. */
struct asked {
    struct training_given_names names;
    struct update_expected expected;
    struct {
        struct update_logged *rows; /* NULL: the folders' own */
        size_t count;
    } logs[2]; /* of A and of B */
    size_t log_count;
};

/* The names of transformers' TrainingArguments, and torch's. */
static const struct {
    const char *name;
    size_t offset;
} expectations[] = {
    {"max_grad_norm", offsetof(struct update_expected, max_norm)},
    {"weight_decay", offsetof(struct update_expected, decay)},
    {"adam_beta1", offsetof(struct update_expected, beta1)},
    {"adam_beta2", offsetof(struct update_expected, beta2)},
    {"adam_epsilon", offsetof(struct update_expected, eps)},
    {"decoupled_weight_decay", offsetof(struct update_expected, decoupled)},
};

static enum status read_expectation(const char *text, struct update_expected *out) {
    const char *const equals = strchr(text, '=');
    for (size_t i = 0; i < COUNT_OF(expectations) && equals != NULL; i++) {
        const char *const name = expectations[i].name;
        if (strlen(name) != (size_t)(equals - text) || strncmp(name, text, strlen(name)) != 0)
            continue;
        double *const value = (double *)(void *)((char *)out + expectations[i].offset);
        const enum status status = number_parse_real(equals + 1, NUMBER_FINITE, value);
        if (status != STATUS_OK) return status_prefix(status, "--expect");
        if (!(*value >= 0.0))
            FAIL(STATUS_INPUT, "--expect: expected a number of 0 or above, got \"%s\"", text);
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT,
         "--expect: expected NAME=NUMBER with max_grad_norm, weight_decay, "
         "adam_beta1, adam_beta2, adam_epsilon or decoupled_weight_decay, got \"%s\"",
         text);
}

static enum status read_log(struct cli *cli, const struct options *options, const char *path,
                            struct asked *out) {
    struct log_options how;
    struct log *log;
    TRY(log_options_read(options, &cli->arena, &how));
    TRY(log_import(path, &how, &cli->arena, &log));
    const struct log_column *const lr = log_column_of(log, LOG_LR_LOGGED);
    const struct log_column *const norm = log_column_of(log, LOG_GRAD_NORM);
    struct update_logged *rows;
    TRY(arena_take(&cli->arena, log->rows, sizeof *rows, "log", &rows));
    for (size_t i = 0; i < log->rows; i++)
        rows[i] = (struct update_logged){
            (double)log->step[i], lr != NULL && log_has(lr, i) ? lr->value[i] : (double)NAN,
            norm != NULL && log_has(norm, i) ? norm->value[i] : (double)NAN};
    out->logs[out->log_count].rows = rows;
    out->logs[out->log_count++].count = log->rows;
    return STATUS_OK;
}

static enum status read_asked(struct cli *cli, const struct options *options, struct asked *out) {
    const double nan = (double)NAN;
    const char *const names = options_value(options, KEY_NAMES);
    const size_t most = options_given(options, KEY_AGAINST) ? 2 : 1;
    *out = (struct asked){.expected = {nan, nan, nan, nan, nan, nan}};
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_EXPECT)
            TRY(read_expectation(options->given[i].value, &out->expected));
    for (size_t i = 0; i < options->given_count; i++) {
        if (options->given[i].key != KEY_LOG) continue;
        if (out->log_count == most)
            FAIL(STATUS_INPUT,
                 "readback: expected one --log for each run (%zu here): that of the run before "
                 "--against, then that of the run behind it",
                 most);
        TRY(read_log(cli, options, options->given[i].value, out));
    }
    return names == NULL ? STATUS_OK : training_names_read(names, &cli->arena, &out->names);
}

/* Puts what was asked in the place of what the folder says. */
static void apply(const struct asked *asked, size_t which, struct update_said *said) {
    said->expected = asked->expected;
    if (asked->logs[which].rows == NULL) return;
    said->log = asked->logs[which].rows;
    said->log_count = asked->logs[which].count;
}

static enum status open_run(struct cli *cli, const char **paths, size_t count,
                            const struct training_given_names *names, struct readback_run *out) {
    *out = (struct readback_run){.opened = 0};
    TRY(arena_take(&cli->arena, count, sizeof *out->folders, "folders", &out->folders));
    TRY(arena_take(&cli->arena, count, sizeof *out->updates, "updates", &out->updates));
    for (; out->opened < count; out->opened++)
        TRY(training_folder_open(paths[out->opened], names->count > 0 ? names : NULL, &cli->arena,
                                 &out->folders[out->opened]));
    return STATUS_OK;
}

static void close_run(struct readback_run *run) {
    while (run->opened > 0)
        training_folder_close(&run->folders[--run->opened]);
}

static enum status read_run(struct cli *cli, const struct asked *asked, size_t which,
                            struct rate_room *room, struct readback_run *run) {
    for (size_t i = 0; i + 1 < run->opened; i++) {
        struct readback_update *const update = &run->updates[run->update_count];
        update->before = &run->folders[i];
        update->after = &run->folders[i + 1];
        TRY(folders_join(update->before, &run->folders[i + 1], room, &cli->arena, &update->step,
                         &update->said));
        apply(asked, which, &update->said);
        TRY(update_read(&update->step, &update->said, room, &cli->arena, &update->reading));
        run->update_count++;
    }
    return STATUS_OK;
}

static enum status add_case(struct cli *cli, const struct readback_update *update, int outcome) {
    const struct update_finding *const first = readback_first(update);
    const struct ci_case add = {
        .name = update->after->path,
        .outcome = outcome,
        .title = "the applied learning rate",
        .message = first != NULL ? first->text : "what was applied cannot be read",
        .file = update->after->path,
        .seconds = -1.0,
    };
    return ci_add(cli, &add);
}

static const int exits[UPDATE_VERDICTS] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};

static enum status tell_run(struct cli *cli, const struct readback_run *run, const char *label,
                            json_t *json, int *out_exit) {
    for (size_t i = 0; i < run->update_count; i++) {
        const struct readback_update *const update = &run->updates[i];
        const int code = exits[update->reading.verdict];
        *out_exit = exit_worst(*out_exit, code);
        TRY(add_case(cli, update, code));
        if (json != NULL) {
            json_array_append_new(json, readback_json(update));
            continue;
        }
        if (i > 0) putchar('\n');
        readback_print(label, update, stdout);
    }
    return STATUS_OK;
}

static enum status tell_one(struct cli *cli, const struct options *options,
                            const struct readback_run *run, int *out_exit) {
    json_t *const updates = options->json ? json_array() : NULL;
    *out_exit = EXIT_AS_EXPECTED;
    const enum status status = tell_run(cli, run, "", updates, out_exit);
    if (status != STATUS_OK) json_decref(updates);
    if (status != STATUS_OK || !options->json) return status;
    return json_print(json_pack("{s:i,s:o}", "exit", *out_exit, "updates", updates));
}

/* Two runs: what each did, then both held against each other. They differ as soon as one tensor's
 * step does. */
static enum status tell_two(struct cli *cli, const struct options *options,
                            const struct readback_run runs[2], const struct readback_pair *pairs,
                            int *out_exit) {
    json_t *const a = options->json ? json_array() : NULL, *const b =
                                                               options->json ? json_array() : NULL;
    json_t *const json = options->json ? json_array() : NULL;
    int each = EXIT_AS_EXPECTED;
    *out_exit = EXIT_AS_EXPECTED;
    enum status status = tell_run(cli, &runs[0], "A: ", a, &each);
    if (status == STATUS_OK && !options->json) putchar('\n');
    if (status == STATUS_OK) status = tell_run(cli, &runs[1], "B: ", b, &each);
    for (size_t i = 0; i < runs[0].update_count && status == STATUS_OK; i++) {
        const struct against *const against = &pairs[i].against;
        if (against->first_step != NULL)
            *out_exit = EXIT_DIFFERS;
        else if (against->only_a + against->only_b > 0)
            *out_exit = exit_worst(*out_exit, EXIT_UNTESTABLE);
        if (options->json)
            json_array_append_new(json, readback_pair_json(&pairs[i]));
        else
            readback_print_pair(&pairs[i], stdout);
    }
    if (status == STATUS_OK && options->json)
        return json_print(
            json_pack("{s:i,s:o,s:o,s:o}", "exit", *out_exit, "a", a, "b", b, "pairs", json));
    json_decref(a);
    json_decref(b);
    json_decref(json);
    return status;
}

/* The folders of A stand before --against, those of B behind it. */
static enum status split(const struct options *options, struct arena *arena, const char **paths[2],
                         size_t counts[2]) {
    const struct option_given *given = NULL;
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_AGAINST) given = &options->given[i];
    paths[0] = options->arguments;
    counts[0] = options->argument_count;
    counts[1] = 0;
    if (given != NULL) {
        counts[0] = given->before;
        counts[1] = options->argument_count - given->before + 1;
        TRY(arena_take(arena, counts[1], sizeof *paths[1], "folders", &paths[1]));
        paths[1][0] = given->value;
        for (size_t i = 1; i < counts[1]; i++)
            paths[1][i] = options->arguments[given->before + i - 1];
        if (counts[0] != counts[1])
            FAIL(
                STATUS_INPUT,
                "readback: expected as many checkpoints before --against as behind it, got %zu and "
                "%zu",
                counts[0], counts[1]);
    }
    if (counts[0] < 2)
        FAIL(STATUS_INPUT, "readback: expected two checkpoints or more of a run: what an update "
                           "applied is read from those before and after it");
    return STATUS_OK;
}

/* Reads both runs, and holds them against each other where there are two. */
static enum status read_runs(struct cli *cli, const struct asked *asked, struct rate_room *room,
                             struct readback_run runs[2], struct readback_pair **out) {
    struct readback_pair *pairs;
    TRY(read_run(cli, asked, 0, room, &runs[0]));
    TRY(read_run(cli, asked, 1, room, &runs[1]));
    TRY(arena_take(&cli->arena, runs[1].update_count, sizeof *pairs, "updates", &pairs));
    for (size_t i = 0; i < runs[1].update_count; i++) {
        pairs[i].a = &runs[0].updates[i];
        pairs[i].b = &runs[1].updates[i];
        TRY(against_read(&pairs[i].a->step, &pairs[i].b->step, room, &cli->arena,
                         &pairs[i].against));
    }
    *out = pairs;
    return STATUS_OK;
}

/* What the verb does once the folders are open; run() closes them, whatever comes of it. */
static enum status run_opened(struct cli *cli, const struct options *options,
                              const struct asked *asked, struct readback_run runs[2],
                              int *out_exit) {
    struct rate_room *room;
    struct readback_pair *pairs;
    struct progress progress;
    TRY(rate_room_open(&cli->arena, &room));
    progress_open(&progress, "readback", progress_wanted(options));
    readback_watch(room, &progress);
    const enum status status = read_runs(cli, asked, room, runs, &pairs);
    progress_close(&progress);
    if (status != STATUS_OK) return status;
    if (runs[1].opened == 0) return tell_one(cli, options, &runs[0], out_exit);
    return tell_two(cli, options, runs, pairs, out_exit);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct asked asked;
    struct readback_run runs[2] = {{.opened = 0}, {.opened = 0}};
    const char **paths[2] = {NULL, NULL};
    size_t counts[2];
    TRY(read_asked(cli, options, &asked));
    TRY(split(options, &cli->arena, paths, counts));
    enum status status = open_run(cli, paths[0], counts[0], &asked.names, &runs[0]);
    if (status == STATUS_OK) status = open_run(cli, paths[1], counts[1], &asked.names, &runs[1]);
    if (status == STATUS_OK) status = run_opened(cli, options, &asked, runs, out_exit);
    close_run(&runs[0]);
    close_run(&runs[1]);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("names", KEY_NAMES, "FILE",
           "Names of the parameters, one a line, in the order of the optimizer's groups"),
    OPTION("log", KEY_LOG, "FILE",
           "A log of the training, in any format that `twinstep doctor` reads; a second one is "
           "that of "
           "the run behind --against. Default: trainer_state.json of the checkpoint"),
    OPTION("expect", KEY_EXPECT, "NAME=NUMBER",
           "What you configured: max_grad_norm, weight_decay, adam_beta1, adam_beta2, "
           "adam_epsilon, or decoupled_weight_decay=1 for AdamW (repeatable)"),
    OPTION("against", KEY_AGAINST, "CHECKPOINT...",
           "Checkpoints of another run, as many as before it: the same updates of both are held "
           "against each other"),
    OPTIONS_LOG,
    OPTIONS_CI,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_readback = {
    .name = "readback",
    .brief = "the LR, decay and count that an update applied, from two checkpoints of your run",
    .arguments = "CHECKPOINT CHECKPOINT...",
    .text =
        "Reads what each update between consecutive checkpoints did: the learning rate that every "
        "parameter group applied, its weight decay, Adam's count, the gradient norm that the "
        "optimizer took in, whether the moments follow from the betas, and tensors that did not "
        "move. Each number comes with a bar from the dtype that is stored; what cannot be read is "
        "said. It is held against what optimizer.pt, scheduler.pt and trainer_state.json promised. "
        "A checkpoint is a checkpoint-K folder of Hugging Face's Trainer or TRL, a folder of "
        "Accelerate's save_state, a .ckpt of Lightning, or a file of torch.save with a model's and "
        "an optimizer's state dict. Nothing in a pickle is executed.\v"
        "The checkpoints must be consecutive: with Trainer and TRL, save_strategy=\"steps\", "
        "save_steps=1, max_steps=3.\n"
        "Exit status: 0 as promised, 1 not, 2 error, 3 unreadable or undecided; with --against 0 "
        "equal steps, 1 unlike ones.\n"
        "Example: twinstep readback out/checkpoint-1 out/checkpoint-2",
    .options = option_rows,
    .least = 1,
    .most = 10000,
    .run = run,
};
