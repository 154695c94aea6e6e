/* SPDX-License-Identifier: Apache-2.0
 * twinstep list: prints what there is to choose from. Every list is read from the table that the
 * program itself uses, so that none can fall behind. */
#include <stdio.h>
#include <string.h>

#include "cli/consent.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/pages.h"
#include "logs/export.h"
#include "logs/import.h"
#include "optim/optim.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/suggest.h"
#include "sched/contract.h"

struct entry {
    const char *name, *about;
};

#define KEY_MODULE KEY_OWN

struct listing {
    struct cli *cli;
    const char *module, *sha256; /* NULL if there is no module */
    struct entry *entries;
    size_t count, room;
};

static enum status add(struct listing *listing, const char *name, const char *about) {
    TRY(arena_grow(&listing->cli->arena, listing->count + 1, &listing->room,
                   sizeof *listing->entries, "list", &listing->entries));
    listing->entries[listing->count++] = (struct entry){name, about};
    return STATUS_OK;
}

static enum status list_scenarios(struct listing *listing) {
    static const struct options none = {.set_count = 0};
    for (const struct catalog_file *file = catalog_files; file->name != NULL; file++) {
        struct scenario *scenario;
        TRY(load_catalog(listing->cli, &listing->cli->arena, file, &none, &scenario));
        TRY(add(listing, file->name, scenario->about));
    }
    return STATUS_OK;
}

/* Adds what the module has; it stands after the built-in entries. */
static enum status list_module(struct listing *listing, const char *prefix) {
    const struct schema *schema = listing->cli->schema;
    for (size_t i = 0; listing->module != NULL && i < schema->class_count; i++) {
        const struct schema_class *here = &schema->classes[i];
        char *about;
        if (here->module == NULL || strcmp(here->module, listing->sha256) != 0 ||
            strcmp(here->prefix, prefix) != 0)
            continue;
        TRY(arena_format(&listing->cli->arena, &about, "[%s] %s", listing->module, here->help));
        TRY(add(listing, here->name, about));
    }
    return STATUS_OK;
}

static enum status list_optimizers(struct listing *listing) {
    for (const struct optim_class *const *c = optim_classes(); *c != NULL; c++)
        TRY(add(listing, (*c)->name, (*c)->help));
    return list_module(listing, "optimizer");
}

static enum status list_schedules(struct listing *listing) {
    for (const struct sched_class *const *c = sched_classes(); *c != NULL; c++)
        TRY(add(listing, (*c)->name, (*c)->help));
    return list_module(listing, "schedule");
}

static enum status list_contracts(struct listing *listing) {
    size_t count;
    const struct contract *list = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        char *about;
        TRY(arena_format(&listing->cli->arena, &about, "%s [%s%s]", list[i].help,
                         contract_evidence_name(list[i].evidence), list[i].bug ? ", bug" : ""));
        TRY(add(listing, list[i].name, about));
    }
    return STATUS_OK;
}

static enum status list_formats(struct listing *listing) {
    for (const struct log_format *f = log_formats(); f->name != NULL; f++)
        TRY(add(listing, f->name, f->title));
    for (const struct log_export_format *f = log_export_formats(); f->name != NULL; f++) {
        char *about;
        TRY(arena_format(&listing->cli->arena, &about, "twinstep export --to: %s", f->about));
        TRY(add(listing, f->name, about));
    }
    return STATUS_OK;
}

static enum status list_columns(struct listing *listing) {
    for (int name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
        char *about;
        TRY(arena_format(&listing->cli->arena, &about, "%s (%s)", log_names[name].long_name,
                         log_names[name].units));
        TRY(add(listing, log_names[name].name, about));
    }
    return STATUS_OK;
}

static enum status list_modes(struct listing *listing) {
    static const char *const promises[] = {
        [MODE_INVARIANT] = "same bits for any threads, micro-batches, padding, layout, process and "
                           "instruction set",
        [MODE_SHUFFLED] = "simulated nondeterminism: the order of sums is drawn from a seed, so a "
                          "noisy run replays bit for bit",
        [MODE_SHAPED] = "simulated library: how sums are cut follows from op and shape, by a table "
                        "of the scenario; same bits for the same shapes",
        [MODE_DETERMINISTIC] = "same bits run to run on one machine, shape and build; here those "
                               "of invariant, on a device those of cuBLAS held to one way",
        [MODE_FAST] = "no promise: linear layers through OpenBLAS where it is installed, through "
                      "cuBLAS on a device",
        [MODE_ATOMIC] = "real nondeterminism: threads race to add their parts to shared sums; no "
                        "seed replays it",
        [MODE_ORDER_FREE] = "every sum is exact and rounded once, so no order shows: a neutral "
                            "reference between two orders, slower"};
    const struct key_row *row = schema_find("numerics.mode", NULL);
    for (size_t i = 0; row != NULL && row->names[i] != NULL; i++)
        TRY(add(listing, row->names[i], i < COUNT_OF(promises) ? promises[i] : ""));
    return STATUS_OK;
}

static enum status list_causes(struct listing *listing) {
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        char *keys;
        size_t count, found = 0;
        const struct key_row *rows = schema_rows(&count);
        TRY(arena_format(&listing->cli->arena, &keys, "%s", ""));
        for (size_t i = 0; i < count; i++)
            if (rows[i].cause == (enum cause)cause)
                TRY(arena_format(&listing->cli->arena, &keys, "%s%s%s", keys,
                                 found++ == 0 ? "" : ", ", rows[i].path));
        TRY(add(listing, cause_name((enum cause)cause), found == 0 ? "no key yet" : keys));
    }
    return STATUS_OK;
}

#define NUMERICS "numerics."

/* Finds out whether a scenario may set this key to this dtype by asking the parser itself. For
 * masters the parameters are bf16, because f32 parameters have none. */
static enum status asks_dtype(struct listing *listing, const char *path, const char *dtype,
                              int *out_may) {
    static const char text[] = "twinstep: 1\n";
    struct scenario *scenario;
    char *set;
    TRY(arena_format(&listing->cli->arena, &set, "common.%s=%s", path, dtype));
    const char *const sets[] = {set, "common.numerics.param=bf16"};
    const size_t count = strcmp(path, "numerics.master") == 0 ? 2 : 1;
    const enum status status = scenario_parse(&listing->cli->arena, listing->cli->schema, "list",
                                              text, sizeof text - 1, sets, count, &scenario);
    *out_may = status == STATUS_OK;
    return status == STATUS_UNSUPPORTED || status == STATUS_INPUT ? STATUS_OK : status;
}

static int is_listed(const char *name, const char *const *names) {
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* Adds the keys that take this dtype: either those of numerics, or all others. */
static enum status add_keys(struct listing *listing, const char *dtype, int of_numerics,
                            char **text) {
    size_t count;
    const struct key_row *rows = schema_rows(&count);
    const char *const *const all = schema_find("numerics.param", NULL)->names;
    const char *const *const wide = schema_find("numerics.master", NULL)->names;
    const char *between = of_numerics ? "numerics: " : "; ";
    for (size_t i = 0; i < count; i++) {
        const int inside = strncmp(rows[i].path, NUMERICS, strlen(NUMERICS)) == 0;
        int may;
        if ((rows[i].names != all && rows[i].names != wide) || inside != of_numerics) continue;
        if (!is_listed(dtype, rows[i].names)) continue;
        TRY(asks_dtype(listing, rows[i].path, dtype, &may));
        if (!may) continue;
        TRY(arena_format(&listing->cli->arena, text, "%s%s%s", *text, between,
                         rows[i].path + (inside ? strlen(NUMERICS) : 0)));
        between = ", ";
    }
    return STATUS_OK;
}

static enum status list_dtypes(struct listing *listing) {
    const char *const *const names = schema_find("numerics.param", NULL)->names;
    for (size_t i = 0; names[i] != NULL; i++) {
        char *text;
        TRY(arena_format(&listing->cli->arena, &text, "%s", ""));
        TRY(add_keys(listing, names[i], 1, &text));
        TRY(add_keys(listing, names[i], 0, &text));
        TRY(add(listing, names[i], text));
    }
    return STATUS_OK;
}

static const struct {
    const char *name;
    enum status (*fill)(struct listing *listing);
} topics[] = {
    {"scenarios", list_scenarios}, {"optimizers", list_optimizers}, {"schedules", list_schedules},
    {"contracts", list_contracts}, {"modes", list_modes},           {"causes", list_causes},
    {"dtypes", list_dtypes},       {"formats", list_formats},       {"columns", list_columns}};

const char *list_topic(size_t index) {
    return index < COUNT_OF(topics) ? topics[index].name : NULL;
}

static enum status check_topic(const char *word) {
    struct suggestion nearest = {.word = word};
    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        if (strcmp(word, topics[i].name) == 0) return STATUS_OK;
        suggest_offer(&nearest, topics[i].name);
    }
    FAIL(STATUS_INPUT,
         "list: expected scenarios, optimizers, schedules, contracts, modes, causes, dtypes, "
         "formats or columns, got \"%s\"%s%s%s",
         word, nearest.best == NULL ? "" : "; did you mean ",
         nearest.best == NULL ? "" : nearest.best, nearest.best == NULL ? "" : "?");
}

/* Returns the length of the first sentence. */
static int first_sentence(const char *text) {
    const char *end = strstr(text, ". ");
    return (int)(end == NULL ? strlen(text) : (size_t)(end - text) + 1);
}

static void print_listing(const struct listing *listing, const char *title) {
    size_t width = 25;
    for (size_t i = 0; i < listing->count; i++)
        if (strlen(listing->entries[i].name) > width) width = strlen(listing->entries[i].name);
    printf("%s\n", title);
    for (size_t i = 0; i < listing->count; i++)
        printf("  %-*s %.*s\n", (int)width, listing->entries[i].name,
               first_sentence(listing->entries[i].about), listing->entries[i].about);
}

static json_t *listing_json(const struct listing *listing) {
    json_t *list = json_array();
    for (size_t i = 0; i < listing->count; i++)
        json_array_append_new(list, json_pack("{ss ss}", "name", listing->entries[i].name, "about",
                                              listing->entries[i].about));
    return list;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *wanted = options->argument_count == 0 ? NULL : options->arguments[0];
    const char *module = options_value(options, KEY_MODULE);
    char sha256[CONFIG_SHA256_SIZE] = "";
    if (wanted != NULL) TRY(check_topic(wanted));
    if (module != NULL) TRY(consent_give(cli)); /* it was named here, and not by a file */
    if (module != NULL) TRY(cli->schema->load(cli->schema, NULL, module, NULL, sha256));
    json_t *object = options->json ? json_object() : NULL;
    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        struct listing listing = {cli, module, sha256, NULL, 0, 0};
        if (wanted != NULL && strcmp(wanted, topics[i].name) != 0) continue;
        TRY(topics[i].fill(&listing));
        if (options->json)
            json_object_set_new(object, topics[i].name, listing_json(&listing));
        else
            print_listing(&listing, topics[i].name);
    }
    *out_exit = EXIT_AS_EXPECTED;
    return options->json ? json_print(object) : STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION_JSON,
    OPTION("module", KEY_MODULE, "FILE",
           "List the optimizers and schedules in FILE, too, which is run (docs/PLUGINS.md)"),
    OPTIONS_END};

const struct verb verb_list = {
    .name = "list",
    .brief = "scenarios, optimizers, schedules, contracts, modes, causes, dtypes, formats, columns",
    .arguments = "[TOPIC]",
    .text =
        "Lists what a scenario or an lr verb can name. TOPIC: scenarios, optimizers, "
        "schedules, contracts, "
        "modes, causes, dtypes, formats (of logs), columns (of logs); without it, all of them.\v"
        "Example: twinstep list scenarios",
    .options = option_rows,
    .most = 1,
    .run = run,
};
