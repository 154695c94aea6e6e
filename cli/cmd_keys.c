/* SPDX-License-Identifier: Apache-2.0
 * twinstep keys: the schema of scenario files. */
#include <stdio.h>

#include "cli/verb.h"

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    if (options->json && options->markdown)
        FAIL(STATUS_INPUT, "keys: expected --json or --markdown, got both");
    if (options->json)
        schema_print_json(cli->schema, stdout);
    else if (options->markdown)
        schema_print_markdown(cli->schema, stdout);
    else
        schema_print(cli->schema, stdout);
    *out_exit = EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_JSON, OPTION("markdown", KEY_MARKDOWN, NULL, "Print docs/SCENARIOS.md"), OPTIONS_END};

const struct verb verb_keys = {
    .name = "keys",
    .brief = "every key of a scenario file",
    .arguments = "",
    .text = "Prints every key of a scenario file: default, unit, the cause that "
            "a difference in it is attributed to, meaning and legal values.\v"
            "Example: twinstep keys | grep schedule",
    .options = option_rows,
    .run = run,
};
