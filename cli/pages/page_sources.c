/* SPDX-License-Identifier: Apache-2.0
 * What shell completion offers for the values of options and for operands.
 *
 * The words are asked of the tables that the program itself reads them from. One table here says
 * which option takes which words, because a row of argp knows only a placeholder such as NAME.
 * Invariant: a row of that table which fits no verb or no option is an error, not silence. */
#include "cli/pages.h"

#include <string.h>

#include "base/dtype.h"
#include "cli/catalog.h"
#include "logs/export.h"
#include "logs/import.h"
#include "logs/rename.h"
#include "ranks/deal.h"
#include "ranks/grouping.h"
#include "scenarios/head.h"
#include "sched/contract.h"

/* The rows of one verb stand before those of any verb, because the first that fits counts. */
static const struct {
    const char *verb;   /* NULL: any */
    const char *option; /* NULL: the operands */
    struct page_offer offer;
} offers[] = {
    {"parity", "set", {.source = "keys-of-arm"}},
    {"lr check", "expect", {.source = "contracts"}},
    {"noise", "modes", {.source = "numerics.mode", .listed = 1}},
    {"noise", "dtypes", {.source = "numerics.compute", .listed = 1}},
    {"doctor", "dtype", {.source = "dtypes"}},
    {"export", "to", {.source = "exports"}},
    {"export", "names", {.source = "namings"}},
    {"data show", "task", {.source = "task"}},
    {"init", "task", {.source = "task"}},
    {"data show", "template", {.source = "data.template"}},
    {"lr table", "contract", {.source = "contracts"}},
    {"lr fit", "contract", {.source = "contracts"}},
    {"compare", "contract-a", {.source = "contracts"}},
    {"compare", "contract-b", {.source = "contracts"}},
    {"ranks order", "algorithm", {.source = "groupings"}},
    {"ranks order", "dtype", {.source = "dtypes"}},
    {"ranks buckets", "dtype", {.source = "dtypes"}},
    {"ranks deal", "deal", {.source = "deals"}},
    {"ranks deal", "tail", {.source = "tails"}},
    {NULL, "set", {.source = "keys"}},
    {NULL, "backend", {.source = "numerics.backend"}},
    {NULL, "schedule", {.source = "schedule.name"}},
    {"compare", "format-a", {.source = "formats"}},
    {"compare", "format-b", {.source = "formats"}},
    {NULL, "format", {.source = "formats"}},
    {"demo", NULL, {.source = "scenarios"}},
    {"list", NULL, {.source = "topics"}},
    {"lr compare", NULL, {.source = "contracts"}},
    {"suite", NULL, {.folders = 1}},
    {"run", NULL, {.source = "scenarios", .files = 1}},
    {"check", NULL, {.source = "scenarios", .files = 1}},
    {"bisect", NULL, {.source = "scenarios", .files = 1}},
    {"noise", NULL, {.source = "scenarios", .files = 1}},
    {"parity", NULL, {.source = "scenarios", .files = 1}},
    {"data show", NULL, {.source = "scenarios", .files = 1}},
};

static int fits(size_t row, const struct verb *verb, const char *option) {
    if (offers[row].verb != NULL && strcmp(offers[row].verb, verb->name) != 0) return 0;
    if (offers[row].option == NULL || option == NULL) return offers[row].option == option;
    return strcmp(offers[row].option, option) == 0;
}

struct page_offer page_offer(const struct verb *verb, const struct argp_option *option) {
    const char *placeholder = option == NULL ? verb->arguments : option->arg;
    struct page_offer offer = {.files = 0};
    for (size_t i = 0; i < COUNT_OF(offers); i++)
        if (fits(i, verb, option == NULL ? NULL : option->name)) return offers[i].offer;
    if (option != NULL) {
        offer.folders = strstr(placeholder, "FOLDER") != NULL || strstr(placeholder, "DIR") != NULL;
        offer.files = strstr(placeholder, "FILE") != NULL || strstr(placeholder, "PATH") != NULL;
    } else {
        offer.files = placeholder[0] != '\0';
    }
    return offer;
}

static int is_option_of(const struct verb *verb, const char *name) {
    const struct argp_option *option = verb->options;
    while (option->name != NULL && strcmp(option->name, name) != 0)
        option++;
    return option->name != NULL && option->arg != NULL;
}

enum status page_offers_check(const struct page_source *sources, size_t count) {
    for (size_t row = 0; row < COUNT_OF(offers); row++) {
        const char *option = offers[row].option, *source = offers[row].offer.source;
        int used = 0, known = source == NULL;
        const struct verb *verb;
        for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
            used |= fits(row, verb, option) && (option == NULL || is_option_of(verb, option));
        for (size_t i = 0; i < count; i++)
            known |= source != NULL && strcmp(sources[i].name, source) == 0;
        if (!used || !known)
            FAIL(STATUS_INTERNAL, "completion: row %zu (%s): no such %s", row,
                 option == NULL ? "operands" : option, used ? "source" : "verb or option");
    }
    return STATUS_OK;
}

void page_name(const struct verb *verb, char *name) {
    snprintf(name, PAGE_NAME, "%s", verb->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == ' ') *c = '-';
}

/* A list that grows: the sources, and the words of the last one. */
struct collection {
    struct arena *arena;
    struct page_source *sources;
    size_t count, room, word_room;
};

static enum status open_source(struct collection *all, const char *name) {
    TRY(arena_grow(all->arena, all->count + 1, &all->room, sizeof *all->sources, "completion",
                   &all->sources));
    all->sources[all->count++] = (struct page_source){.name = name};
    all->word_room = 0;
    return STATUS_OK;
}

static enum status add_word(struct collection *all, const char *word) {
    struct page_source *source = &all->sources[all->count - 1];
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->words[i], word) == 0) return STATUS_OK;
    if (strpbrk(word, " \t\n'\"\\`$") != NULL)
        FAIL(STATUS_INTERNAL, "completion: %s: no shell takes \"%s\" as it is", source->name, word);
    TRY(arena_grow(all->arena, source->count + 1, &all->word_room, sizeof *source->words,
                   "completion", &source->words));
    source->words[source->count++] = word;
    return STATUS_OK;
}

static enum status add_ranks(struct collection *all) {
    TRY(open_source(all, "groupings"));
    for (int i = 0; i < GROUPING_COUNT; i++)
        TRY(add_word(all, grouping_name((enum grouping_algorithm)i)));
    TRY(open_source(all, "deals"));
    for (int i = 0; i < DEAL_COUNT; i++)
        TRY(add_word(all, deal_name((enum deal_kind)i)));
    TRY(open_source(all, "tails"));
    for (int i = 0; i < DEAL_TAIL_COUNT; i++)
        TRY(add_word(all, deal_tail_name((enum deal_tail)i)));
    return STATUS_OK;
}

/* Names from the tables that have nothing to do with the schema. */
static enum status add_tables(struct collection *all) {
    size_t contracts;
    const struct contract *contract = contract_list(&contracts);
    TRY(open_source(all, "scenarios"));
    for (const struct catalog_file *file = catalog_files; file->name != NULL; file++)
        TRY(add_word(all, file->name));
    TRY(open_source(all, "topics"));
    for (size_t i = 0; list_topic(i) != NULL; i++)
        TRY(add_word(all, list_topic(i)));
    TRY(open_source(all, "contracts"));
    for (size_t i = 0; i < contracts; i++)
        TRY(add_word(all, contract[i].name));
    TRY(open_source(all, "formats"));
    for (const struct log_format *format = log_formats(); format->name != NULL; format++)
        TRY(add_word(all, format->name));
    TRY(open_source(all, "exports"));
    for (const struct log_export_format *f = log_export_formats(); f->name != NULL; f++)
        TRY(add_word(all, f->name));
    TRY(open_source(all, "namings"));
    for (const struct log_naming *naming = log_namings(); naming->name != NULL; naming++)
        TRY(add_word(all, naming->name));
    TRY(add_ranks(all));
    TRY(open_source(all, "dtypes"));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        TRY(add_word(all, dtype_name((enum dtype)dtype)));
    return STATUS_OK;
}

/* "common.optimizer.lr=" and its like; of a class with its prefix. */
static enum status add_key(struct collection *all, const char *before, const char *prefix,
                           const char *path) {
    char *word;
    TRY(arena_format(all->arena, &word, "%s%s%s%s=", before, prefix, prefix[0] == '\0' ? "" : ".",
                     path));
    return add_word(all, word);
}

static enum status add_keys(struct collection *all, const struct schema *schema,
                            const char *before) {
    size_t count;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        TRY(add_key(all, before, "", rows[i].path));
    for (size_t c = 0; c < schema->class_count; c++)
        for (size_t i = 0; i < schema->classes[c].key_count; i++)
            TRY(add_key(all, before, schema->classes[c].prefix, schema->classes[c].keys[i].path));
    return STATUS_OK;
}

/* The legal values of one key, where there is a finite number of them. */
static enum status add_values(struct collection *all, const struct key_row *row,
                              const char *prefix) {
    char *path;
    if (row->type != KEY_BOOL && row->names == NULL) return STATUS_OK;
    TRY(arena_format(all->arena, &path, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", row->path));
    TRY(open_source(all, path));
    if (row->type == KEY_BOOL) {
        TRY(add_word(all, "true"));
        return add_word(all, "false");
    }
    for (size_t i = 0; row->names[i] != NULL; i++)
        TRY(add_word(all, row->names[i]));
    return row->word == NULL ? STATUS_OK : add_word(all, row->word);
}

/* optimizer.name and schedule.name are texts of the schema, because modules bring more of them. */
static enum status add_classes(struct collection *all, const struct schema *schema,
                               const char *path) {
    TRY(open_source(all, path));
    for (size_t c = 0; c < schema->class_count; c++)
        if (strncmp(schema->classes[c].prefix, path, strcspn(path, ".")) == 0)
            TRY(add_word(all, schema->classes[c].name));
    return STATUS_OK;
}

static enum status add_schema(struct collection *all, const struct schema *schema) {
    size_t count, heads;
    const struct key_row *rows = schema_rows(&count), *head = head_rows(&heads);
    TRY(open_source(all, "keys-of-arm"));
    TRY(add_keys(all, schema, ""));
    TRY(open_source(all, "keys"));
    for (size_t i = 0; i < heads; i++)
        TRY(add_key(all, "", "", head[i].path));
    TRY(add_keys(all, schema, "common."));
    for (size_t i = 0; i < heads; i++)
        TRY(add_values(all, &head[i], ""));
    for (size_t i = 0; i < count; i++)
        TRY(add_values(all, &rows[i], ""));
    TRY(add_classes(all, schema, "optimizer.name"));
    return add_classes(all, schema, "schedule.name");
}

enum status page_sources(struct cli *cli, struct page_source **sources, size_t *count) {
    struct collection all = {.arena = &cli->arena};
    TRY(add_tables(&all));
    TRY(add_schema(&all, cli->schema));
    *sources = all.sources;
    *count = all.count;
    return STATUS_OK;
}
