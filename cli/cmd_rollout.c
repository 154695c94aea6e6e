/* SPDX-License-Identifier: Apache-2.0
 * twinstep rollout: two log-probs of the same tokens, the engine's that generated and the
 * trainer's. The floor comes from files of the same form. */
#include <string.h>

#include "cli/json.h"
#include "cli/rollout_print.h"
#include "cli/verb.h"

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
        const enum status status = rollout_measure_files(&files, &cli->arena, &floor);
        if (status != STATUS_OK) return status_prefix(status, "--floor");
        (*out)[(*out_count)++] = floor;
    }
    return STATUS_OK;
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
    TRY(read_naming(options, &files.naming));
    TRY(rollout_measure_files(&files, &cli->arena, &measure));
    TRY(measure_floors(cli, options, &files.naming, &floors, &floor_count));
    TRY(arena_take(&cli->arena, 1, sizeof *judgement, "judgement", &judgement));
    rollout_judge(measure, floors, floor_count, judgement);
    *out_exit = exits[judgement->verdict];
    if (options->json) return json_print(rollout_json(judgement));
    rollout_print(judgement, &shown, stdout);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("floor", KEY_FLOOR, "FILE",
           "A/A file of the same form: two log-probs of one engine that are meant to be equal "
           "(repeatable; the largest floor counts)"),
    OPTION("field", KEY_FIELD, "ROLE=NAME",
           "What a field is called: ROLE is rollout, trainer, tokens, trainer-tokens, mask, "
           "position, version, trainer-version, experts, trainer-experts, batch, reward or id "
           "(repeatable)"),
    OPTION("slices", KEY_SLICES, NULL, "By probability, position, length and batch, too"),
    OPTION("metrics", KEY_METRICS, NULL,
           "The figures of NeMo-RL, verl, slime, TRL and AReaL, by their names, too"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_rollout = {
    .name = "rollout",
    .brief = "an engine's log-probs against the trainer's: figures, floor, causes",
    .arguments = "FILE [FILE]",
    .text =
        "Reads token ids with two log-probs each, of the engine that generated and of the "
        "trainer, from JSONL (one object a sequence), .npz or HDF5, or from two JSONL files that "
        "are joined by id. Prints how far they are apart, whether that is more than --floor shows, "
        "and which of eight causes have their signature in it: another tokenisation, truncation, "
        "a masked prompt, shifted positions, a temperature, stale weights, other experts, "
        "rounding. "
        "Names that verl, TRL, vLLM, SGLang, slime, NeMo-RL and AReaL write are known; "
        "docs/ROLLOUT.md lists them.\v"
        "Exit status: 0 equal or within the floor, 1 outside, 2 error, 3 undecided.\n"
        "Example: twinstep rollout step10.jsonl --floor again.jsonl",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .run = run,
};
