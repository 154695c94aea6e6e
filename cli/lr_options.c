/* SPDX-License-Identifier: Apache-2.0
 * Reads the numbers of one training from the command line, and the metric that a feedback schedule
 * follows from a list or a log. */
#include "cli/lr_options.h"

#include <string.h>

#include "base/number.h"
#include "forensics/fit.h"
#include "logs/import.h"
#include "scenarios/suggest.h"

#define COUNT_MAX 9007199254740992u /* 2^53: up to it a real holds every count */

static enum status read_count(const struct options *options, int key, const char *name,
                              uint64_t *out) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out > COUNT_MAX)
        FAIL(STATUS_INPUT, "%s: expected a whole number from 0 to 2^53, got \"%s\"", name, text);
    return STATUS_OK;
}

enum status lr_option_count(const struct options *options, int key, const char *name,
                            uint64_t *out) {
    TRY(read_count(options, key, name, out));
    if (options_given(options, key) && *out == 0)
        FAIL(STATUS_INPUT, "%s: expected a whole number >= 1, got 0", name);
    return STATUS_OK;
}

static enum status read_real(const struct options *options, int key, const char *name,
                             double *out) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_HEX, out) != STATUS_OK)
        FAIL(STATUS_INPUT, "%s: expected a finite number, got \"%s\"", name, text);
    return STATUS_OK;
}

static enum status read_rescaled(const struct options *options, int32_t *out) {
    static const char *const names[] = {[CONTRACT_RESCALED_NONE] = "none",
                                        [CONTRACT_RESCALED_TOTAL] = "total",
                                        [CONTRACT_RESCALED_WARMUP] = "warmup",
                                        [CONTRACT_RESCALED_BOTH] = "both"};
    const char *text = options_value(options, LR_RESCALED);
    if (text == NULL) return STATUS_OK;
    for (int32_t i = CONTRACT_RESCALED_NONE; i <= CONTRACT_RESCALED_BOTH; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--rescaled: expected none, total, warmup or both, got \"%s\"", text);
}

static enum status read_skipped(const struct options *options, struct arena *arena,
                                struct contract_request *out) {
    const char *text = options_value(options, LR_SKIPPED);
    uint64_t *updates;
    if (text == NULL) return STATUS_OK;
    TRY(arena_take(arena, strlen(text) + 1, sizeof *updates, "--skipped", &updates));
    for (const char *rest = text; rest != NULL;) {
        char *word;
        const size_t length = strcspn(rest, ",");
        TRY(arena_text(arena, rest, length, &word));
        if (number_parse_uint(word, &updates[out->skipped_count]) != STATUS_OK)
            FAIL(STATUS_INPUT, "--skipped: expected updates between commas, as 3,7; got \"%s\"",
                 text);
        out->skipped_count++;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    out->skipped = updates;
    return STATUS_OK;
}

static enum status read_values(const struct options *options, struct arena *arena,
                               struct contract_request *out) {
    for (size_t i = 0; i < options->given_count; i++) {
        if (options->given[i].key != LR_VALUE) continue;
        const char *text = options->given[i].value;
        const char *equals = strchr(text, '=');
        char *key;
        if (equals == NULL || equals == text)
            FAIL(STATUS_INPUT, "--value: expected KEY=VALUE, got \"%s\"", text);
        if (out->value_count == CONTRACT_VALUES)
            FAIL(STATUS_INPUT, "--value: expected at most %d of them", CONTRACT_VALUES);
        TRY(arena_text(arena, text, (size_t)(equals - text), &key));
        out->values[out->value_count].key = key;
        out->values[out->value_count].text = equals + 1;
        out->value_count++;
    }
    return STATUS_OK;
}

static enum status fail_list(const char *text, const char *word) {
    FAIL(STATUS_INPUT,
         "--metric: expected values between commas, as 2.1,1.9 or 10:2.1,20:1.9, or FILE[:COLUMN], "
         "got \"%s\" in \"%s\"",
         word, text);
}

/* A list consists of the characters that numbers are written with; any other word is a file. */
static int is_list(const char *text) {
    return strspn(text, "0123456789.,:+-eEnaif ") == strlen(text);
}

static enum status read_list(const char *text, uint64_t every, struct arena *arena,
                             struct contract_request *out) {
    uint64_t *updates;
    double *values;
    size_t count = 0;
    TRY(arena_take(arena, strlen(text) + 1, sizeof *updates, "--metric", &updates));
    TRY(arena_take(arena, strlen(text) + 1, sizeof *values, "--metric", &values));
    for (const char *rest = text; rest != NULL; count++) {
        char *word;
        const size_t length = strcspn(rest, ",");
        TRY(arena_text(arena, rest, length, &word));
        char *colon = strchr(word, ':');
        updates[count] = (count + 1) * every;
        if (colon != NULL) *colon = '\0';
        if (colon != NULL && number_parse_uint(word, &updates[count]) != STATUS_OK)
            return fail_list(text, word);
        const char *value = colon != NULL ? colon + 1 : word;
        if (number_parse_real(value, NUMBER_SPECIAL, &values[count]) != STATUS_OK)
            return fail_list(text, value);
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    out->metric_update = updates;
    out->metric_value = values;
    out->metric_count = count;
    return STATUS_OK;
}

static enum status read_log(const char *text, struct arena *arena, struct contract_request *out) {
    const char *colon = strrchr(text, ':');
    const char *column = colon != NULL && strchr(colon, '/') == NULL ? colon + 1 : NULL;
    const size_t length = column != NULL ? (size_t)(colon - text) : strlen(text);
    struct log_options options;
    struct log *log;
    char *path;
    TRY(arena_text(arena, text, length, &path));
    log_options_init(&options);
    const enum status status = log_import(path, &options, arena, &log);
    if (status != STATUS_OK) return status_prefix(status, "--metric");
    TRY(fit_metric_from_log(log, column, arena, out));
    if (out->metric_count > 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "--metric: %s has no column %s with update numbers", path,
         column != NULL ? column : "eval_loss or loss");
}

/* --metric: values between commas, of which each may be UPDATE:VALUE, or FILE or FILE:COLUMN of any
 * log that import reads. A value alone is that of the next multiple of --metric-every; without a
 * column the log's eval_loss is taken, else its loss. Whether the updates ascend is checked by
 * contract_resolve(). */
static enum status read_metric(const struct options *options, struct arena *arena,
                               struct contract_request *out) {
    const char *const text = options_value(options, LR_METRIC);
    uint64_t every = 1;
    TRY(lr_option_count(options, LR_METRIC_EVERY, "--metric-every", &every));
    if (text == NULL) return STATUS_OK;
    if (is_list(text)) return read_list(text, every, arena, out);
    return read_log(text, arena, out);
}

enum status lr_options_read(const struct options *options, struct arena *arena,
                            struct contract_request *out) {
    contract_request_init(out);
    out->schedule = options_value(options, LR_SCHEDULE);
    out->drop_last = options_given(options, LR_DROP_LAST);
    TRY(read_real(options, LR_PEAK, "--lr", &out->lr));
    TRY(read_real(options, LR_WARMUP, "--warmup", &out->warmup));
    TRY(read_real(options, LR_WARMUP_RATIO, "--warmup-ratio", &out->warmup_ratio));
    TRY(read_real(options, LR_MIN_LR_RATIO, "--min-lr-ratio", &out->min_lr_ratio));
    TRY(read_real(options, LR_EPOCHS, "--epochs", &out->epochs));
    TRY(lr_option_count(options, LR_STEPS, "--steps", &out->steps));
    TRY(lr_option_count(options, LR_PROCESSES, "--processes", &out->processes));
    TRY(lr_option_count(options, LR_GLOBAL_BATCH, "--global-batch", &out->global_batch));
    TRY(lr_option_count(options, LR_ACCUMULATE, "--accumulate", &out->accumulate));
    TRY(lr_option_count(options, LR_DATASET, "--dataset", &out->dataset));
    TRY(lr_option_count(options, LR_BATCH, "--batch", &out->batch));
    TRY(lr_option_count(options, LR_TOKENS, "--tokens", &out->tokens));
    TRY(lr_option_count(options, LR_UPDATES_PER_EPOCH, "--updates-per-epoch",
                        &out->updates_per_epoch));
    TRY(read_rescaled(options, &out->rescaled));
    TRY(read_skipped(options, arena, out));
    TRY(read_metric(options, arena, out));
    return read_values(options, arena, out);
}

enum status lr_contract(const char *option, const char *name, const struct contract **out) {
    struct suggestion nearest = {.word = name};
    size_t count;
    const struct contract *list = contract_list(&count);
    *out = contract_find(name);
    if (*out != NULL) return STATUS_OK;
    const char *const era = contract_name_of_version(name);
    if (era != NULL)
        FAIL(STATUS_INPUT, "%s: unknown contract \"%s\"; did you mean %s, which holds for it?",
             option, name, era);
    for (size_t i = 0; i < count; i++) {
        suggest_offer(&nearest, list[i].name);
        if (list[i].alias != NULL) suggest_offer(&nearest, list[i].alias);
    }
    if (nearest.best != NULL)
        FAIL(STATUS_INPUT, "%s: unknown contract \"%s\"; did you mean %s?", option, name,
             nearest.best);
    FAIL(STATUS_INPUT, "%s: unknown contract \"%s\"; see twinstep list contracts", option, name);
}
