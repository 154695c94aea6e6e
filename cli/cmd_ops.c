/* SPDX-License-Identifier: Apache-2.0
 * twinstep ops: two dumps of ops of another program, and the first op that made another value. */
#include <stdio.h>

#include "cli/ci.h"
#include "cli/json.h"
#include "cli/ops_print.h"
#include "cli/verb.h"

enum { KEY_FLOOR = KEY_OWN };

static enum status read_floors(struct cli *cli, const struct options *options, struct words *words,
                               const struct dump ***out, size_t *out_count) {
    *out_count = 0;
    TRY(arena_take(&cli->arena, options->given_count, sizeof **out, "floors", out));
    for (size_t i = 0; i < options->given_count; i++) {
        struct dump *floor;
        if (options->given[i].key != KEY_FLOOR) continue;
        const enum status status = dump_read(options->given[i].value, words, &floor);
        if (status != STATUS_OK) return status_prefix(status, "--floor");
        (*out)[(*out_count)++] = floor;
    }
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {[DUMP_EQUAL] = EXIT_AS_EXPECTED,
                                [DUMP_DIFFERS] = EXIT_DIFFERS,
                                [DUMP_ONLY_NOISE] = EXIT_UNTESTABLE,
                                [DUMP_UNDECIDED] = EXIT_UNTESTABLE};
    struct words words;
    struct dump *dump[2];
    const struct dump **floors;
    struct dump_judgement judgement;
    size_t floor_count;
    char *line;
    TRY(words_open(&cli->arena, &words));
    for (int i = 0; i < 2; i++)
        TRY(dump_read(options->arguments[i], &words, &dump[i]));
    TRY(read_floors(cli, options, &words, &floors, &floor_count));
    TRY(dump_judge(dump[0], dump[1], floors, floor_count, &words, &judgement));
    TRY(ops_first_line(&judgement, &cli->arena, &line));
    *out_exit = exits[judgement.verdict];
    if (options->json)
        TRY(json_print(ops_json(&judgement, line)));
    else
        ops_print(&judgement, line);
    const struct ci_case one = {.name = options->arguments[1],
                                .outcome = *out_exit,
                                .title = "ops differ",
                                .message = line,
                                .file = options->arguments[1],
                                .seconds = -1};
    return ci_add(cli, &one);
}

static const struct argp_option option_rows[] = {
    OPTION("floor", KEY_FLOOR, "FILE",
           "Another dump of the same run as A: what differs between the two is noise, and listed "
           "apart (repeatable)"),
    OPTIONS_CI, OPTION_JSON, OPTIONS_END};

const struct verb verb_ops = {
    .name = "ops",
    .brief = "two dumps of PyTorch ops: the first op that made another value",
    .arguments = "A B",
    .text =
        "Reads what two runs of another program computed, op by op with hashes: the JSON of "
        "PyTorch's DebugMode.save_logs(), or torchtitan's rank_N_activations.log, packed or not. "
        "Names the births: ops that made, of values that both runs have, a value that the other "
        "run has not. All that comes behind a birth inherits, and is only counted. The dumps may "
        "have unlike numbers of ops. The verb is called after what PyTorch lists there.\v"
        "Exit status: 0 equal, 1 differs, 2 error, 3 only noise, or undecidable.\n"
        "Record with: with DebugMode(record_nn_module=True) as d, DebugMode.log_tensor_hashes("
        "hash_fn=[\"norm\", \"hash_tensor\"], hash_inputs=True): ...\n"
        "Example: twinstep ops a.json b.json --floor a2.json",
    .options = option_rows,
    .least = 2,
    .most = 2,
    .run = run,
};
