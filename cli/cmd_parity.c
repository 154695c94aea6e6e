/* SPDX-License-Identifier: Apache-2.0
 * twinstep parity: two models, or one under two settings: components, logits, log-probs, training.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/parity_print.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "trainer/dataset.h"
#include "trainer/pretrained.h"
#include "trainer/tokenizer.h"

enum {
    KEY_COMPONENTS = KEY_OWN,
    KEY_LOGITS,
    KEY_LOGPROBS,
    KEY_TRAINING,
    KEY_BATCHES,
    KEY_REPLICAS,
    KEY_FULL,
    KEY_LENGTHS,
    KEY_SIZES,
    KEY_REPEATS,
    KEY_TEMPERATURE,
    KEY_TOP_P,
    KEY_NO_REFIT,
    KEY_STALE,
    KEY_STEPS,
    KEY_DATA
};

struct asking {
    struct cli *cli;
    const struct options *options;
    struct parity_words words;
    struct parity_request request;
    struct parity_grid grid;
    struct parity parity;
    struct parity_report report;
    struct progress progress;
};

static enum status read_count(const struct options *options, int key, const char *name,
                              uint64_t most, uint64_t *value) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, value) == STATUS_OK && *value >= 1 && *value <= most)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "parity: --%s: expected an integer from 1 to %ju, got \"%s\"", name,
         (uintmax_t)most, text);
}

static enum status read_real(const struct options *options, int key, const char *name, double most,
                             double *value) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_FINITE, value) == STATUS_OK && *value > 0.0 &&
        *value <= most)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "parity: --%s: expected a number above 0 and at most %g, got \"%s\"", name,
         most, text);
}

/* "100,1000". */
static enum status read_list(const struct options *options, int key, const char *name,
                             uint64_t least, uint64_t most, uint32_t *values, uint32_t *count) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    for (*count = 0; *count < PARITY_CHOICES;) {
        const size_t length = strcspn(text, ",");
        char word[24];
        uint64_t value = 0;
        snprintf(word, sizeof word, "%.*s", (int)(length < 20 ? length : 20), text);
        if (number_parse_uint(word, &value) != STATUS_OK || value < least || value > most)
            FAIL(STATUS_INPUT,
                 "parity: --%s: expected integers from %ju to %ju with commas between them, got "
                 "\"%s\"",
                 name, (uintmax_t)least, (uintmax_t)most, word);
        values[(*count)++] = (uint32_t)value;
        if (text[length] == '\0') return STATUS_OK;
        text += length + 1;
    }
    FAIL(STATUS_INPUT, "parity: --%s: expected at most %d numbers", name, PARITY_CHOICES);
}

static enum status read_grid(struct asking *asking) {
    const struct options *options = asking->options;
    struct parity_grid *grid = &asking->grid;
    uint64_t repeats;
    if (options_given(options, KEY_FULL))
        parity_grid_full(grid);
    else
        parity_grid_small(grid);
    repeats = grid->repeats;
    TRY(read_list(options, KEY_LENGTHS, "lengths", 4, 1u << 20, grid->lengths,
                  &grid->length_count));
    TRY(read_list(options, KEY_SIZES, "sizes", 1, 4096, grid->batches, &grid->batch_count));
    TRY(read_count(options, KEY_REPEATS, "repeats", 1000, &repeats));
    TRY(read_real(options, KEY_TEMPERATURE, "temperature", 1000.0, &grid->temperature));
    TRY(read_real(options, KEY_TOP_P, "top-p", 1.0, &grid->top_p));
    grid->repeats = (uint32_t)repeats;
    grid->refit = !options_given(options, KEY_NO_REFIT);
    grid->stale = options_given(options, KEY_STALE);
    if (grid->stale && !grid->refit)
        FAIL(STATUS_INPUT, "parity: expected --no-refit or --stale, got both");
    return STATUS_OK;
}

static int wants(const struct asking *asking, int key) {
    const struct options *options = asking->options;
    for (int other = KEY_COMPONENTS; other <= KEY_TRAINING; other++)
        if (options_given(options, other)) return options_given(options, key);
    return key != KEY_TRAINING;
}

/* An option whose parts are not measured would change nothing. */
static enum status check_parts(const struct asking *asking) {
    static const struct {
        int key, part[2];
        const char *name, *needs;
    } rows[] = {
        {KEY_BATCHES, {KEY_COMPONENTS, KEY_LOGITS}, "batches", "--components or --logits"},
        {KEY_REPLICAS, {KEY_COMPONENTS, KEY_LOGITS}, "replicas", "--components or --logits"},
        {KEY_FULL, {KEY_LOGPROBS, KEY_LOGPROBS}, "full", "--logprobs"},
        {KEY_LENGTHS, {KEY_LOGPROBS, KEY_LOGPROBS}, "lengths", "--logprobs"},
        {KEY_SIZES, {KEY_LOGPROBS, KEY_LOGPROBS}, "sizes", "--logprobs"},
        {KEY_REPEATS, {KEY_LOGPROBS, KEY_LOGPROBS}, "repeats", "--logprobs"},
        {KEY_TEMPERATURE, {KEY_LOGPROBS, KEY_LOGPROBS}, "temperature", "--logprobs"},
        {KEY_TOP_P, {KEY_LOGPROBS, KEY_LOGPROBS}, "top-p", "--logprobs"},
        {KEY_NO_REFIT, {KEY_LOGPROBS, KEY_LOGPROBS}, "no-refit", "--logprobs"},
        {KEY_STALE, {KEY_LOGPROBS, KEY_LOGPROBS}, "stale", "--logprobs"},
        {KEY_STEPS, {KEY_LOGPROBS, KEY_TRAINING}, "steps", "--logprobs or --training"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (options_given(asking->options, rows[i].key) && !wants(asking, rows[i].part[0]) &&
            !wants(asking, rows[i].part[1]))
            FAIL(STATUS_INPUT, "parity: --%s: acts on %s alone, which is not measured",
                 rows[i].name, rows[i].needs);
    if (options_given(asking->options, KEY_STEPS) && options_given(asking->options, KEY_NO_REFIT) &&
        !wants(asking, KEY_TRAINING))
        FAIL(STATUS_INPUT, "parity: --steps: acts on a refit or --training, and neither is done");
    return STATUS_OK;
}

/* -o FILE is none of the files that are read: scenarios, checkpoints, data. */
static enum status check_apart(const struct asking *asking) {
    const char *output = asking->options->output;
    for (int i = 0; i < 2; i++) {
        const struct parity_word *side = &asking->words.side[i];
        const struct config *config = &asking->request.config[i];
        if (side->path != NULL) TRY(output_apart(output, side->path));
        if (pretrained_is_named(config)) TRY(output_apart_folder(output, config->model.from));
        TRY(output_apart(output, config->data.text));
        TRY(output_apart(output, config->data.pairs));
    }
    return STATUS_OK;
}

/* That -o FILE can be written; better now than after all measuring. Leaves nothing behind. */
static enum status check_output(const struct asking *asking) {
    const struct options *options = asking->options;
    struct output output;
    struct stat info;
    const char *path = options->output;
    if (path == NULL) return STATUS_OK;
    TRY(check_apart(asking));
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        FAIL(STATUS_IO, "%s: expected a file, got a folder", path);
    if (options->overwrite && lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return STATUS_OK; /* a device, pipe or link: opening it would empty it */
    TRY(output_open(path, options->overwrite, &output));
    return output_close(&output, STATUS_UNTESTABLE) == STATUS_UNTESTABLE ? STATUS_OK : STATUS_IO;
}

/* The built-in text is bytes; parity draws ids instead, a training cannot. */
static enum status check_vocabulary(const struct asking *asking) {
    const struct config *config = &asking->request.config[0];
    if (!wants(asking, KEY_TRAINING) || config->task != TASK_SFT) return STATUS_OK;
    if (!dataset_is_builtin(config->data.text) || config->model.vocab >= TOKENIZER_VOCAB)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "parity: --training: the built-in text needs a vocabulary of %u, A's is %ju; expected "
         "--data FILE with lists of ids",
         TOKENIZER_VOCAB, (uintmax_t)config->model.vocab);
}

static void tell(void *context, const char *what, uint64_t done, uint64_t total) {
    progress_count((struct progress *)context, what, done, total);
}

/* One file of completions or texts for both, instead of A's data. */
static enum status read_data(struct asking *asking) {
    const char *path = options_value(asking->options, KEY_DATA);
    struct config *config = &asking->request.config[0];
    if (path == NULL) return STATUS_OK;
    if (strlen(path) >= sizeof config->data.text)
        FAIL(STATUS_INPUT, "parity: --data: expected a path of at most %zu bytes",
             sizeof config->data.text - 1);
    config->task = TASK_SFT;
    snprintf(config->data.text, sizeof config->data.text, "%s", path);
    config->data.samples = KEY_WORD_UINT;
    return STATUS_OK;
}

static enum status read_request(struct asking *asking) {
    struct parity_request *request = &asking->request;
    uint64_t batches = 4, replicas = 19, steps = 5;
    TRY(read_count(asking->options, KEY_BATCHES, "batches", 10000, &batches));
    TRY(read_count(asking->options, KEY_REPLICAS, "replicas", 1000, &replicas));
    TRY(read_count(asking->options, KEY_STEPS, "steps", 1000000, &steps));
    for (int i = 0; i < 2; i++) {
        request->config[i] = asking->words.side[i].arm->config;
        request->name[i] = asking->words.side[i].name;
    }
    TRY(read_data(asking));
    TRY(check_vocabulary(asking));
    request->batches = (uint32_t)batches;
    request->replicas = (uint32_t)replicas;
    request->steps = steps;
    request->seed = request->config[0].seed;
    request->interrupted = asking->cli->interrupted;
    request->progress = tell;
    request->context = &asking->progress;
    return read_grid(asking);
}

/* ---- parts ---- */

static enum status measure_components(struct asking *asking) {
    struct parity_components *components;
    TRY(arena_take(&asking->cli->arena, 1, sizeof *components, "components", &components));
    TRY(parity_measure_components(&asking->parity, components));
    asking->report.components = components;
    return STATUS_OK;
}

static enum status measure_logits(struct asking *asking) {
    struct parity_logits *logits;
    TRY(arena_take(&asking->cli->arena, 1, sizeof *logits, "logits", &logits));
    TRY(parity_measure_logits(&asking->parity, logits));
    asking->report.logits = logits;
    return STATUS_OK;
}

/* Last: it trains A and changes B's weights. */
static enum status measure_logprob(struct asking *asking) {
    struct parity_logprob *logprob;
    if (asking->parity.shapes_differ) asking->grid.refit = 0;
    TRY(arena_take(&asking->cli->arena, 1, sizeof *logprob, "log-probs", &logprob));
    TRY(parity_measure_logprob(&asking->parity, &asking->grid, logprob));
    asking->report.logprob = logprob;
    asking->report.grid = &asking->grid;
    return STATUS_OK;
}

/* A's scenario with A and B as its arms, both on A's data. */
static enum status take_pair(const struct asking *asking, struct scenario *pair) {
    const struct parity_words *words = &asking->words;
    const struct config *a = &asking->request.config[0];
    *pair = *words->side[0].scenario;
    for (int i = 0; i < 2; i++) {
        pair->arms[i] = *words->side[i].arm;
        pair->arms[i].config.data = a->data;
        pair->arms[i].config.task = a->task;
        TRY(config_validate(&pair->arms[i].config, pair->steps));
    }
    if (strcmp(pair->arms[0].name, pair->arms[1].name) == 0) {
        snprintf(pair->arms[0].name, sizeof pair->arms[0].name, "A");
        snprintf(pair->arms[1].name, sizeof pair->arms[1].name, "B");
    }
    memset(&pair->expect, 0, sizeof pair->expect);
    pair->expect.cause = pair->expect.first_phase = -1;
    return STATUS_OK;
}

/* Both arms in lockstep against a floor, as `twinstep run` does, in a trace that goes away. */
static enum status measure_training(struct asking *asking) {
    struct arena *arena = &asking->cli->arena;
    struct scenario *pair;
    struct judgement *judgement;
    const char *parent = getenv("TMPDIR");
    char *folder, *trace, *live;
    TRY(arena_take(arena, 1, sizeof *pair, "scenario", &pair));
    TRY(arena_take(arena, 1, sizeof *judgement, "judgement", &judgement));
    TRY(take_pair(asking, pair));
    if (parent == NULL || parent[0] == '\0') parent = "/tmp";
    TRY(arena_format(arena, &folder, "%s/twinstep-parity-XXXXXX", parent));
    if (mkdtemp(folder) == NULL)
        FAIL(STATUS_IO, "%s: cannot make a folder: %s (TMPDIR names its parent)", folder,
             strerror(errno));
    TRY(arena_format(arena, &trace, "%s/pair.h5", folder));
    TRY(arena_format(arena, &live, "%s.part", trace));
    const struct performance how = {
        .path = trace, .reproducible = 1, .progress = progress_wanted(asking->options)};
    const enum status status = perform(asking->cli, pair, &how, arena, judgement);
    unlink(trace);
    unlink(live); /* of an interrupted training */
    rmdir(folder);
    asking->report.training = judgement;
    return status;
}

static enum status measure(struct asking *asking) {
    parity_compare_weights(asking->parity.run[PARITY_A], asking->parity.run[PARITY_B],
                           &asking->report.weights);
    for (int i = 0; i < 2; i++)
        TRY(pretrained_dtype_note(&asking->request.config[i], &asking->cli->arena,
                                  &asking->report.dtype_note[i]));
    if (wants(asking, KEY_COMPONENTS)) TRY(measure_components(asking));
    if (wants(asking, KEY_LOGITS)) TRY(measure_logits(asking));
    if (wants(asking, KEY_LOGPROBS)) TRY(measure_logprob(asking));
    return STATUS_OK;
}

static enum status measure_all(struct asking *asking) {
    progress_open(&asking->progress, "parity", progress_wanted(asking->options));
    enum status status = parity_open(&asking->request, &asking->cli->arena, &asking->parity);
    if (status == STATUS_OK) status = measure(asking);
    progress_close(&asking->progress);
    TRY(status);
    return wants(asking, KEY_TRAINING) ? measure_training(asking) : STATUS_OK;
}

/* ---- output ---- */

static enum status write_json(const struct asking *asking, const char *path) {
    struct output output;
    TRY(output_open(path, asking->options->overwrite, &output));
    json_t *value = parity_json(&asking->report);
    enum status status = STATUS_OK;
    if (value == NULL || json_dumpf(value, output.file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) != 0)
        status = status_fail(STATUS_IO, "cannot write JSON");
    fputc('\n', output.file);
    json_decref(value);
    return output_close(&output, status);
}

/* Printed first: what was measured is not lost with FILE. */
static enum status print_all(const struct asking *asking) {
    if (asking->options->json)
        TRY(json_print(parity_json(&asking->report)));
    else
        parity_print_text(&asking->report, stdout);
    if (asking->options->output == NULL) return STATUS_OK;
    fflush(stdout);
    return write_json(asking, asking->options->output);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct asking *asking;
    uint64_t steps = 0;
    TRY(arena_take(&cli->arena, 1, sizeof *asking, "parity", &asking));
    asking->cli = cli;
    asking->options = options;
    TRY(check_parts(asking));
    TRY(read_count(options, KEY_STEPS, "steps", 1000000, &steps));
    TRY(parity_load(cli, options,
                    wants(asking, KEY_TRAINING) ? options_value(options, KEY_STEPS) : NULL,
                    &cli->arena, &asking->words));
    TRY(read_request(asking));
    TRY(check_output(asking));
    asking->report.words = &asking->words;
    asking->report.parity = &asking->parity;
    enum status status = measure_all(asking);
    if (status == STATUS_OK) status = print_all(asking);
    if (status == STATUS_OK) *out_exit = exits[parity_overall(&asking->report)];
    parity_close(&asking->parity);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("components", KEY_COMPONENTS, NULL,
           "R-ratio of each component, gradient and first update"),
    OPTION("logits", KEY_LOGITS, NULL, "Logits under teacher forcing"),
    OPTION("logprobs", KEY_LOGPROBS, NULL, "B's generation against A's forward"),
    OPTION("training", KEY_TRAINING, NULL,
           "Train both on A's data against a floor; without one of these four: the first three"),
    OPTION("set", KEY_SET, "KEY=VALUE",
           "Change one key of B, e.g. numerics.compute=bf16 (repeatable)"),
    OPTION("batches", KEY_BATCHES, "N", "Micro-batches for components and logits; default 4"),
    OPTION("replicas", KEY_REPLICAS, "N",
           "Replicas of A with other orders of sums, which calibrate; default 19 (components: 4 "
           "at most)"),
    OPTION("full", KEY_FULL, NULL,
           "The whole grid of log-probs: lengths 100,1000,10000; sizes 1,8,32; ten repeats; real, "
           "numbers and random"),
    OPTION("lengths", KEY_LENGTHS, "LIST", "Tokens of a sequence, prompt included; default 32,100"),
    OPTION("sizes", KEY_SIZES, "LIST", "Sequences generated together; default 1,4"),
    OPTION("repeats", KEY_REPEATS, "N", "Of each case; default 2"),
    OPTION("temperature", KEY_TEMPERATURE, "X", "Of sampled generation; default 0.7"),
    OPTION("top-p", KEY_TOP_P, "X", "Of sampled generation; default 0.9"),
    OPTION("no-refit", KEY_NO_REFIT, NULL, "Only rows without refit"),
    OPTION("stale", KEY_STALE, NULL,
           "Drill: leave out the refit itself, to see what that looks like"),
    OPTION("data", KEY_DATA, "FILE",
           "JSONL of one text, completion or id list per row, for both; default: A's data"),
    OPTION("steps", KEY_STEPS, "N",
           "Updates of A before the refit; default 5. Of --training; default the scenario's, 8 "
           "of folders"),
    OPTION_OUTPUT("Write the figures as JSON to FILE, too"),
    OPTION_OVERWRITE("Replace FILE if it is there"),
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_parity = {
    .name = "parity",
    .brief = "two models, or one under two settings: components, logits, log-probs",
    .arguments = "A [B]",
    .text =
        "A and B are checkpoint folders, scenarios (their first arms) or SCENARIO:ARM. A alone: a "
        "scenario's two arms, or one model as it is and with --set. A is the reference, B the "
        "port. Held against A's own rounding: each component's output, gradients and first update "
        "(R-ratio), logits under teacher forcing, and the log-probs that B gives while it "
        "generates from a cache against A's training forward. docs/PARITY.md explains every "
        "figure.\v"
        "Exit status: 0 within, 1 outside, 2 error, 3 untestable.\n"
        "Example: twinstep parity dtype-bf16 --components --logits",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .trains = 1,
    .run = run,
};
