/* SPDX-License-Identifier: Apache-2.0
 * twinstep env: prints the facts of this build and this machine, for a bug report. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/environment.h"
#include "cli/json.h"

static enum status print_json(const struct fact *facts) {
    json_t *object = json_object();
    for (; facts->name != NULL; facts++)
        json_object_set_new(object, facts->name, json_string(facts->text));
    return json_print(object);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const struct fact *facts;
    TRY(environment_facts(&cli->arena, &facts));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) return print_json(facts);
    int width = 15;
    for (const struct fact *fact = facts; fact->name != NULL; fact++)
        if ((int)strlen(fact->name) > width) width = (int)strlen(fact->name);
    for (; facts->name != NULL; facts++)
        printf("%-*s %s\n", width, facts->name, facts->text);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {OPTION_JSON, OPTIONS_END};

const struct verb verb_env = {
    .name = "env",
    .brief = "this build and this machine",
    .arguments = "",
    .text = "Prints version, compiler, flags, instruction sets, libraries and "
            "floating-point environment: what a bug report needs.\v"
            "Example: twinstep env --json",
    .options = option_rows,
    .run = run,
};
