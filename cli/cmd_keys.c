/* SPDX-License-Identifier: Apache-2.0
 * twinstep keys: prints the keys of scenario files, or those that a module adds. */
#include <stdio.h>

#include "cli/consent.h"
#include "cli/verb.h"

#define KEY_MODULE KEY_OWN

static enum status print_module(struct cli *cli, const struct options *options, const char *path) {
    char sha256[CONFIG_SHA256_SIZE];
    if (options->markdown)
        FAIL(STATUS_INPUT, "keys: --markdown prints a document of this program; expected no "
                           "--module with it");
    TRY(consent_give(cli)); /* it was named here, and not by a file */
    TRY(cli->schema->load(cli->schema, NULL, path, NULL, sha256));
    if (options->json)
        schema_print_module_json(cli->schema, sha256, stdout);
    else
        schema_print_module(cli->schema, sha256, stdout);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    if (options->json && options->markdown)
        FAIL(STATUS_INPUT, "keys: expected --json or --markdown, got both");
    const char *module = options_value(options, KEY_MODULE);
    *out_exit = EXIT_AS_EXPECTED;
    if (module != NULL) return print_module(cli, options, module);
    if (options->json)
        schema_print_json(cli->schema, stdout);
    else if (options->markdown)
        schema_print_markdown(cli->schema, stdout);
    else
        schema_print(cli->schema, stdout);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_JSON, OPTION("markdown", KEY_MARKDOWN, NULL, "Print docs/SCENARIOS.md"),
    OPTION(
        "module", KEY_MODULE, "FILE",
        "Print the keys of the optimizers and schedules in FILE, which is run (docs/PLUGINS.md)"),
    OPTIONS_END};

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
