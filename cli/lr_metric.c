/* SPDX-License-Identifier: Apache-2.0
 * Reads a metric from a list or a log. Whether its updates ascend is contract_resolve's to say. */
#include "cli/lr_metric.h"

#include <string.h>

#include "base/number.h"
#include "forensics/fit.h"
#include "logs/import.h"

static enum status fail_list(const char *text, const char *word) {
    FAIL(STATUS_INPUT,
         "--metric: expected values between commas, as 2.1,1.9 or 10:2.1,20:1.9, or FILE[:COLUMN], "
         "got \"%s\" in \"%s\"",
         word, text);
}

/* Digits and what numbers are written with: no name of a file. */
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
    for (const char *rest = text; rest != NULL; ++count) {
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

enum status lr_metric_read(const char *text, uint64_t every, struct arena *arena,
                           struct contract_request *out) {
    if (is_list(text)) return read_list(text, every, arena, out);
    return read_log(text, arena, out);
}
