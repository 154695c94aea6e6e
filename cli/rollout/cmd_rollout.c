/* SPDX-License-Identifier: Apache-2.0
 * twinstep rollout: two log-probs of the same tokens, the engine's that generated and the
 * trainer's. The floor comes from files of the same form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/ci.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/rollout/rollout_print.h"
#include "cli/verb.h"
#include "rollout/rollout_trace.h"

#define JSON_FLAGS (JSON_INDENT(2) | JSON_PRESERVE_ORDER)

enum { KEY_FLOOR = KEY_OWN, KEY_FIELD, KEY_METRICS, KEY_SLICES };

static enum status read_naming(const struct options *options, struct rollout_naming *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_FIELD)
            TRY(rollout_naming_add(out, options->given[i].value));
    return STATUS_OK;
}

static enum status measure_floors(struct cli *cli, const struct options *options,
                                  const struct rollout_naming *naming,
                                  const struct rollout_measure ***out, size_t *out_count) {
    *out_count = 0;
    TRY(arena_take(&cli->arena, options->given_count, sizeof **out, "floors", out));
    for (size_t i = 0; i < options->given_count; i++) {
        if (options->given[i].key != KEY_FLOOR) continue;
        const struct rollout_files files = {{options->given[i].value, NULL}, *naming};
        struct rollout_measure *floor;
        const enum status status = rollout_measure_files(&files, 0.0, &cli->arena, &floor);
        if (status != STATUS_OK) return status_prefix(status, "--floor");
        (*out)[(*out_count)++] = floor;
    }
    return STATUS_OK;
}

/* ---- the trace ---- */

/* Returns what rollout_print() writes. */
static enum status text_of(const struct rollout_judgement *judgement, struct arena *arena,
                           char **out) {
    static const struct rollout_shown all = {.metrics = 1, .slices = 1};
    FILE *spool = tmpfile();
    if (spool == NULL) FAIL(STATUS_IO, "cannot make a temporary file: %s", strerror(errno));
    rollout_print(judgement, &all, spool);
    const long length = fflush(spool) == 0 ? ftell(spool) : -1;
    enum status status = STATUS_OK;
    if (length < 0 || fseek(spool, 0, SEEK_SET) != 0)
        status = status_fail(STATUS_IO, "cannot write a temporary file: %s", strerror(errno));
    if (status == STATUS_OK) status = arena_take(arena, (size_t)length + 1, 1, "a text", out);
    if (status == STATUS_OK && fread(*out, 1, (size_t)length, spool) != (size_t)length)
        status = status_fail(STATUS_IO, "cannot read a temporary file: %s", strerror(errno));
    fclose(spool);
    return status;
}

static enum status write_trace(const struct rollout_judgement *judgement,
                               const struct options *options, struct arena *arena) {
    char *text, *json;
    TRY(text_of(judgement, arena, &text));
    json_t *value = rollout_json(judgement);
    const size_t length = value == NULL ? 0 : json_dumpb(value, NULL, 0, JSON_FLAGS);
    enum status status = length > 0 ? arena_take(arena, length + 1, 1, "a text", &json)
                                    : status_fail(STATUS_MEMORY, "no memory for JSON");
    if (status == STATUS_OK && json_dumpb(value, json, length, JSON_FLAGS) != length)
        status = status_fail(STATUS_INTERNAL, "JSON of another length");
    json_decref(value);
    if (status != STATUS_OK) return status;
    return rollout_write_trace(judgement, text, json, options->output, options->overwrite, arena);
}

/* Before the long reading begins: the file can be written, and is none of those that are read. */
static enum status check_output(const struct options *options) {
    if (options->output == NULL) return STATUS_OK;
    for (size_t i = 0; i < options->argument_count; i++)
        TRY(output_apart(options->output, options->arguments[i]));
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_FLOOR)
            TRY(output_apart(options->output, options->given[i].value));
    return output_try(options->output, options->overwrite);
}

/* Tells a CI system the verdict, and the causes that were named with it. */
static enum status add_case(struct cli *cli, const struct options *options,
                            const struct rollout_judgement *judgement, int code) {
    char *name, *message;
    TRY(arena_format(&cli->arena, &name, "%s%s%s", options->arguments[0],
                     options->argument_count > 1 ? " and " : "",
                     options->argument_count > 1 ? options->arguments[1] : ""));
    TRY(arena_format(&cli->arena, &message, "%s: %s", rollout_verdict_names[judgement->verdict],
                     judgement->why));
    for (size_t i = 0; i < ROLLOUT_CAUSES; i++)
        if (judgement->claim[i].state == ROLLOUT_NAMED)
            TRY(arena_format(&cli->arena, &message, "%s. %s: %s", message, rollout_cause_names[i],
                             judgement->claim[i].text));
    if (judgement->named == 0 && judgement->verdict == ROLLOUT_OUTSIDE)
        TRY(arena_format(&cli->arena, &message, "%s. None of the causes has its signature in it",
                         message));
    return ci_add(cli, &(struct ci_case){.name = name,
                                         .outcome = code,
                                         .title = code == EXIT_DIFFERS ? "the log-probs are apart"
                                                                       : "the log-probs cannot say",
                                         .message = message,
                                         .file = options->arguments[0],
                                         .seconds = -1.0});
}

/* A reward is looked for wherever it may be, so a name that is given and nowhere there is told. */
static enum status check_rewards(const struct rollout_files *files,
                                 const struct rollout_measure *measure) {
    const char *const name = files->naming.name[ROLLOUT_REWARD];
    if (name == NULL || measure->facts.names[ROLLOUT_REWARD] != NULL) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected rewards named \"%s\", as --field says, got none",
         measure->path, name);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    const struct rollout_shown shown = {.metrics = options_given(options, KEY_METRICS),
                                        .slices = options_given(options, KEY_SLICES)};
    struct rollout_files files = {.path = {options->arguments[0], options->argument_count > 1
                                                                      ? options->arguments[1]
                                                                      : NULL}};
    const struct rollout_measure **floors;
    struct rollout_measure *measure;
    struct rollout_judgement *judgement;
    size_t floor_count;
    TRY(check_output(options));
    TRY(read_naming(options, &files.naming));
    /* The floors first: what they show is looked for in the file while it is read. */
    TRY(measure_floors(cli, options, &files.naming, &floors, &floor_count));
    TRY(rollout_measure_files(&files, rollout_far_line(floors, floor_count), &cli->arena,
                              &measure));
    TRY(check_rewards(&files, measure));
    TRY(arena_take(&cli->arena, 1, sizeof *judgement, "judgement", &judgement));
    rollout_judge(measure, floors, floor_count, judgement);
    *out_exit = exits[judgement->verdict];
    TRY(add_case(cli, options, judgement, *out_exit));
    if (options->json)
        TRY(json_print(rollout_json(judgement)));
    else
        rollout_print(judgement, &shown, stdout);
    return options->output == NULL ? STATUS_OK : write_trace(judgement, options, &cli->arena);
}

static const struct argp_option option_rows[] = {
    OPTION("floor", KEY_FLOOR, "FILE",
           "A/A file of the same form: two log-probs of one engine that are meant to be equal "
           "(repeatable; the largest floor counts)"),
    OPTION("field", KEY_FIELD, "ROLE=NAME",
           "What a field is called: ROLE is rollout, trainer, tokens, trainer-tokens, mask, "
           "position, version, trainer-version, experts, trainer-experts, batch, kept, removed, "
           "reward or id (repeatable)"),
    OPTION("slices", KEY_SLICES, NULL, "By probability, position, length, batch and reward, too"),
    OPTION("metrics", KEY_METRICS, NULL,
           "The figures of NeMo-RL, verl, slime, TRL and AReaL, by their names, too"),
    OPTION_OUTPUT("Trace of the figures to write, for `twinstep report` and h5py"),
    OPTION_OVERWRITE("Replace a trace that exists"),
    OPTIONS_CI,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_rollout = {
    .name = "rollout",
    .brief = "an engine's log-probs against the trainer's: figures, floor, causes",
    .arguments = "FILE [FILE]",
    .text =
        "Reads token ids with two log-probs each, of the engine that generated and of the trainer, "
        "from JSONL (one object a sequence), .npz or HDF5, or from two JSONL files that are joined "
        "by id. Prints how far they are apart, whether that is more than --floor shows, and which "
        "of eight causes have their signature in it: another tokenisation, truncation, a masked "
        "prompt, shifted positions, a temperature, stale weights, other experts, rounding. Where "
        "sequences have a reward, its mean is printed as sampled and as the trainer would sample; "
        "no cause depends on it. Names that verl, TRL, vLLM, SGLang, slime, NeMo-RL and AReaL "
        "write are known; docs/ROLLOUT.md lists them.\v"
        "Exit status: 0 equal or within the floor, 1 outside, 2 error, 3 undecided.\n"
        "Example: twinstep rollout step10.jsonl --floor again.jsonl",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .run = run,
};
