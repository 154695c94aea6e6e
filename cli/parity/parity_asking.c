/* SPDX-License-Identifier: Apache-2.0
 * Reads the numbers of `parity` with their bounds, and refuses what may not be asked for together.
 */
#include "cli/parity/parity_asking.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/output.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "model/pretrained.h"

enum status parity_read_count(const struct options *options, int key, const char *name,
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

/* Reads a list such as "100,1000". */
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

static enum status read_grid(struct parity_asking *asking) {
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
    TRY(parity_read_count(options, KEY_REPEATS, "repeats", 1000, &repeats));
    TRY(read_real(options, KEY_TEMPERATURE, "temperature", 1000.0, &grid->temperature));
    TRY(read_real(options, KEY_TOP_P, "top-p", 1.0, &grid->top_p));
    grid->repeats = (uint32_t)repeats;
    grid->refit = !options_given(options, KEY_NO_REFIT);
    grid->stale = options_given(options, KEY_STALE);
    if (grid->stale && !grid->refit)
        FAIL(STATUS_INPUT, "parity: expected --no-refit or --stale, got both");
    return STATUS_OK;
}

int parity_wants(const struct parity_asking *asking, int key) {
    const struct options *options = asking->options;
    for (int other = KEY_COMPONENTS; other <= KEY_TRAINING; other++)
        if (options_given(options, other)) return options_given(options, key);
    return key != KEY_TRAINING;
}

enum status parity_check_parts(const struct parity_asking *asking) {
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
        {KEY_ROLLOUTS, {KEY_LOGPROBS, KEY_LOGPROBS}, "rollouts", "--logprobs"},
        {KEY_STEPS, {KEY_LOGPROBS, KEY_TRAINING}, "steps", "--logprobs or --training"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (options_given(asking->options, rows[i].key) && !parity_wants(asking, rows[i].part[0]) &&
            !parity_wants(asking, rows[i].part[1]))
            FAIL(STATUS_INPUT, "parity: --%s: acts on %s alone, which is not measured",
                 rows[i].name, rows[i].needs);
    if (options_given(asking->options, KEY_STEPS) && options_given(asking->options, KEY_NO_REFIT) &&
        !parity_wants(asking, KEY_TRAINING))
        FAIL(STATUS_INPUT, "parity: --steps: acts on a refit or --training, and neither is done");
    return STATUS_OK;
}

/* Refuses a file to write if it is one of the files that are read: scenarios, checkpoints, data. */
static enum status check_apart(const struct parity_asking *asking, const char *output) {
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

enum status parity_check_output(const struct parity_asking *asking) {
    const char *paths[2] = {asking->options->output, options_value(asking->options, KEY_ROLLOUTS)};
    for (int i = 0; i < 2; i++) {
        if (paths[i] == NULL) continue;
        TRY(check_apart(asking, paths[i]));
        TRY(output_try(paths[i], asking->options->overwrite));
    }
    if (paths[0] == NULL || paths[1] == NULL) return STATUS_OK;
    if (strcmp(paths[0], paths[1]) == 0) /* output_apart() looks at files that are there */
        FAIL(STATUS_INPUT, "parity: --rollouts: expected another file than --output, got %s",
             paths[1]);
    return output_apart(paths[0], paths[1]);
}

/* The built-in text consists of bytes. With a smaller vocabulary parity draws ids instead, which a
 * training cannot do. */
static enum status check_vocabulary(const struct parity_asking *asking) {
    const struct config *config = &asking->request.config[0];
    if (!parity_wants(asking, KEY_TRAINING) || config->task != TASK_SFT) return STATUS_OK;
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

/* Reads --data: one file of completions or texts for both sides, in the place of A's data. */
static enum status read_data(struct parity_asking *asking) {
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

enum status parity_read_request(struct parity_asking *asking) {
    struct parity_request *request = &asking->request;
    uint64_t batches = 4, replicas = 19, steps = 5;
    TRY(parity_read_count(asking->options, KEY_BATCHES, "batches", 10000, &batches));
    TRY(parity_read_count(asking->options, KEY_REPLICAS, "replicas", 1000, &replicas));
    TRY(parity_read_count(asking->options, KEY_STEPS, "steps", 1000000, &steps));
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
