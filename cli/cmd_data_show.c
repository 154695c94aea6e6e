/* SPDX-License-Identifier: Apache-2.0
 * twinstep data show: prints what a training reads, token by token. It trains nothing. Invariant:
 * the data of a scenario are opened as `run` opens them. */
#include <string.h>

#include "cli/consent.h"
#include "cli/data_show_print.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/verb.h"
#include "data/jsonl.h"
#include "model/pretrained.h"
#include "scenarios/selection.h"
#include "scenarios/suggest.h"
#include "trainer/run.h"

enum {
    KEY_COUNT = KEY_OWN,
    KEY_ALL,
    KEY_ARM,
    KEY_TASK,
    KEY_TEMPLATE,
    KEY_MAX_LEN,
    KEY_VOCAB,
    KEY_TOKENIZER
};

#define SAMPLES_SHOWN 2

/* One data set to print, with its title. */
struct shown {
    const char *title;              /* NULL: no line stands above it */
    const char *tokenizer;          /* the model folder's, for ids; NULL: none is named */
    const struct config *config[2]; /* of the arms that read it; NULL: none, or one only */
    struct dataset_options options;
};

static enum status whole_number(const struct options *options, int key, const char *name,
                                uint64_t least, uint64_t most, uint64_t *out) {
    const char *text = options_value(options, key);
    uint64_t value = 0;
    if (text == NULL) return STATUS_OK;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || value > (UINT64_MAX - 9) / 10)
            FAIL(STATUS_INPUT, "%s: expected a whole number, got %s", name, text);
        value = 10 * value + (uint64_t)(*c - '0');
    }
    if (text[0] == '\0' || value < least || value > most)
        FAIL(STATUS_INPUT, "%s: expected %ju to %ju, got %s", name, (uintmax_t)least,
             (uintmax_t)most, text);
    *out = value;
    return STATUS_OK;
}

/* Finds the position of `word` among the names that a key of the schema may have. */
static enum status name_find(const struct options *options, int key, const char *option,
                             const char *const *names, int *out) {
    const char *word = options_value(options, key);
    struct suggestion nearest = {.word = word};
    if (word == NULL) return STATUS_OK;
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) {
            *out = i;
            return STATUS_OK;
        }
        suggest_offer(&nearest, names[i]);
    }
    if (nearest.best != NULL)
        FAIL(STATUS_INPUT, "%s: unknown name %s; did you mean %s?", option, word, nearest.best);
    FAIL(STATUS_INPUT, "%s: unknown name %s (twinstep keys lists them)", option, word);
}

static int ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

static int is_data(const char *word) {
    return dataset_is_builtin(word) || ends_with(word, ".jsonl") || ends_with(word, ".json") ||
           ends_with(word, ".parquet") || ends_with(word, ".arrow");
}

static const char *const *names_of(const char *path) {
    const struct key_row *row = schema_find(path, NULL);
    return row->names;
}

/* Opens a data file without a scenario. Unless the options say so, no sequence is cut, and ids are
 * bounded only by the type that holds a target. */
static enum status open_file(struct cli *cli, const struct options *options, struct shown *out) {
    int task = TASK_DPO, chat = CHAT_NONE;
    uint64_t max_len = DATASET_MAX_LEN, vocab = DATASET_MAX_VOCAB;
    const char *word = options->arguments[0];
    if (options->set_count > 0 || options_given(options, KEY_ARM))
        FAIL(STATUS_INPUT,
             "%s is a data file: expected --task, --template, --max-len or --vocab, "
             "got --%s, which is for scenarios",
             word, options->set_count > 0 ? "set" : "arm");
    if (options_value(options, KEY_TASK) != NULL)
        TRY(name_find(options, KEY_TASK, "--task", names_of("task"), &task));
    else if (!dataset_is_builtin(word))
        TRY(jsonl_task_of(word, &cli->arena, &task));
    else if (strncmp(word, "builtin:devil", strlen("builtin:devil")) == 0)
        task = TASK_SFT;
    TRY(name_find(options, KEY_TEMPLATE, "--template", names_of("data.template"), &chat));
    TRY(whole_number(options, KEY_MAX_LEN, "--max-len", 2, DATASET_MAX_LEN, &max_len));
    TRY(whole_number(options, KEY_VOCAB, "--vocab", 1, DATASET_MAX_VOCAB, &vocab));
    *out = (struct shown){NULL,
                          NULL,
                          {NULL, NULL},
                          {.task = (enum task)task,
                           .source = word,
                           .max_len = max_len,
                           .vocab = vocab,
                           .chat = (enum chat)chat}};
    return STATUS_OK;
}

static enum status refuse_file_options(const struct options *options) {
    static const struct {
        int key;
        const char *name, *instead;
    } rows[] = {{KEY_TASK, "--task", "task"},
                {KEY_TEMPLATE, "--template", "common.data.template"},
                {KEY_MAX_LEN, "--max-len", "common.data.max_len"},
                {KEY_VOCAB, "--vocab", "common.model.vocab"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (options_given(options, rows[i].key))
            FAIL(STATUS_INPUT,
                 "%s is for data files (.jsonl, builtin:); of a scenario expected "
                 "--set %s=VALUE",
                 rows[i].name, rows[i].instead);
    return STATUS_OK;
}

/* Opens the data of the arm that is named. Without a name it opens those of both arms, the second
 * only if it reads something else. */
static enum status open_scenario(struct cli *cli, const struct options *options,
                                 struct shown out[2], size_t *out_count) {
    struct scenario *scenario;
    const char *arm = options_value(options, KEY_ARM);
    struct suggestion nearest = {.word = arm};
    TRY(refuse_file_options(options));
    TRY(load_scenario(cli, &cli->arena, options->arguments[0], options, &scenario));
    *out_count = 0;
    for (int i = 0; i < 2; i++) {
        const struct scenario_arm *here = &scenario->arms[i];
        const struct dataset_options data = run_dataset_options(&here->config);
        if (arm != NULL && strcmp(arm, here->name) != 0) {
            suggest_offer(&nearest, here->name);
            continue;
        }
        TRY(load_check_data(scenario, i));
        if (*out_count == 1 && dataset_options_equal(&out[0].options, &data)) {
            out[0].title = "both arms";
            out[0].config[1] = &here->config;
            continue;
        }
        const char *from = here->config.model.from;
        out[(*out_count)++] = (struct shown){here->name,
                                             strcmp(from, CONFIG_NO_CHECKPOINT) == 0 ? NULL : from,
                                             {&here->config, NULL},
                                             data};
    }
    if (*out_count == 0)
        FAIL(STATUS_INPUT, "--arm: expected %s or %s, got %s", scenario->arms[0].name,
             scenario->arms[1].name, arm);
    return STATUS_OK;
}

/* Text has no ids to spell: it becomes bytes. So a tokenizer that is named, or that the model has,
 * says that the rows were meant to be ids. */
static enum status check_text(const struct options *options, const struct shown *shown,
                              const struct dataset *dataset) {
    const char *asked = options_value(options, KEY_TOKENIZER);
    const char *source = shown->options.source;
    for (int i = 0; i < 2; i++)
        if (shown->config[i] != NULL) TRY(pretrained_check_text(shown->config[i], dataset));
    if (asked == NULL || !dataset->bytes) return STATUS_OK;
    if (dataset_is_builtin(source))
        FAIL(STATUS_INPUT, "--tokenizer: %s is text, whose tokens are bytes; it spells ids",
             source);
    FAIL(
        STATUS_INPUT,
        "--tokenizer: %s is text, whose tokens are bytes here; make ids: python3 "
        "docs/pretokenise.py %s < %s > ids.jsonl; then twinstep data show ids.jsonl --tokenizer %s",
        source, asked, source, asked);
}

/* A tokenizer that was asked for must be readable, but the model's folder need not have one. */
static enum status find_text(struct cli *cli, const struct options *options,
                             const struct shown *shown, struct vocabulary *vocabulary,
                             struct data_print *print) {
    const char *asked = options_value(options, KEY_TOKENIZER);
    const char *path = asked != NULL ? asked : shown->tokenizer;
    char *why;
    print->vocabulary = NULL;
    print->why = NULL;
    if (path == NULL) return STATUS_OK;
    enum status status = vocabulary_open(path, &cli->arena, vocabulary);
    if (status == STATUS_OK) print->vocabulary = vocabulary;
    if (status == STATUS_OK || asked != NULL) return status;
    TRY(arena_text(&cli->arena, status_text(), strlen(status_text()), &why));
    print->why = why;
    return STATUS_OK;
}

static enum status show(struct cli *cli, const struct options *options, const struct shown *shown,
                        struct data_print *print, json_t *list) {
    struct dataset dataset;
    struct vocabulary vocabulary;
    enum status status = dataset_open(&shown->options, &cli->arena, &dataset);
    if (status != STATUS_OK)
        return shown->title == NULL ? status : status_prefix(status, "data of %s", shown->title);
    status = check_text(options, shown, &dataset);
    if (status != STATUS_OK)
        return shown->title == NULL ? status : status_prefix(status, "data of %s", shown->title);
    TRY(find_text(cli, options, shown, &vocabulary, print));
    if (options->json) {
        json_t *object = data_print_json(&dataset, print);
        if (object != NULL && shown->title != NULL)
            json_object_set_new(object, "arms", json_string(shown->title));
        if (object == NULL || json_array_append_new(list, object) != 0)
            FAIL(STATUS_MEMORY, "data show: no memory for the JSON");
        return STATUS_OK;
    }
    if (shown->title != NULL) printf("data of %s\n", shown->title);
    data_print_text(&dataset, print, stdout);
    return STATUS_OK;
}

static enum status show_all(struct cli *cli, const struct options *options,
                            const struct shown *shown, size_t count, json_t *list) {
    struct data_print print = {SAMPLES_SHOWN, options_given(options, KEY_ALL), NULL, NULL};
    TRY(whole_number(options, KEY_COUNT, "--samples", 0, UINT32_MAX, &print.samples));
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !options->json) printf("\n");
        TRY(show(cli, options, &shown[i], &print, list));
    }
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct shown shown[2];
    size_t count = 1;
    if (is_data(options->arguments[0]))
        TRY(open_file(cli, options, &shown[0]));
    else
        TRY(open_scenario(cli, options, shown, &count));
    *out_exit = EXIT_AS_EXPECTED;
    json_t *list = options->json ? json_array() : NULL;
    enum status status = show_all(cli, options, shown, count, list);
    if (options->json && status == STATUS_OK) return json_print(list);
    json_decref(list);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("samples", KEY_COUNT, "N", "How many of the first pairs or samples (default 2)"),
    OPTION("all", KEY_ALL, NULL, "Every token, long stretches too"),
    OPTION("arm", KEY_ARM, "NAME", "One arm of the scenario (default: both)"),
    OPTION_SET,
    OPTION("task", KEY_TASK, "NAME", "Of a data file: dpo or sft (default: by its first row)"),
    OPTION("template", KEY_TEMPLATE, "NAME",
           "Of a data file: none (default), plain, chatml, llama3, olmo"),
    OPTION("max-len", KEY_MAX_LEN, "TOKENS", "Of a data file: cut sequences (default: never)"),
    OPTION("vocab", KEY_VOCAB, "N", "Of a data file: ids are below N (default: 2147483648)"),
    OPTION("tokenizer", KEY_TOKENIZER, "PATH",
           "The tokenizer.json, or its folder, that spells ids (default: that of model.from)"),
    OPTIONS_MODULES,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_data_show = {
    .name = "data show",
    .brief = "the first pairs or samples: tokens, loss mask, text",
    .arguments = "SCENARIO|FILE",
    .text =
        "Reads the data of SCENARIO as `run` would, or a data file alone (FILE.jsonl, "
        "builtin:quiz), and prints totals, what is odd (a beginning or end of text that was "
        "added twice, sides that are equal), and the first pairs or samples token by token: id, "
        "whether it has a loss, text. Ids are spelled where a tokenizer.json "
        "is named (docs/DATA.md).\v"
        "Exit status: 0 shown, 2 error.\n"
        "Example: twinstep data show pairs.jsonl --template chatml",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
