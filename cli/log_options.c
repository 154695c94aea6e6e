/* SPDX-License-Identifier: Apache-2.0
 * Reads struct log_options from the command line. It opens no log. */
#include "cli/log_options.h"

#include <string.h>

#include "base/number.h"
#include "cli/output.h"
#include "logs/folder.h"
#include "scenarios/suggest.h"

static enum status add_map(const char *text, struct arena *arena, struct log_options *out) {
    const char *sign = strchr(text, '=');
    char *ours, *theirs;
    if (sign == NULL || sign == text || sign[1] == '\0')
        FAIL(STATUS_INPUT, "--map: expected OURS=THEIRS, such as loss=my_loss, got \"%s\"", text);
    if (out->map_count == LOG_MAP_MAX)
        FAIL(STATUS_INPUT, "--map: expected at most %d of them, got more", LOG_MAP_MAX);
    TRY(arena_text(arena, text, (size_t)(sign - text), &ours));
    TRY(arena_text(arena, sign + 1, strlen(sign + 1), &theirs));
    out->map[out->map_count].ours = ours;
    out->map[out->map_count++].theirs = theirs;
    return STATUS_OK;
}

enum status log_options_format(const char *option, const char *format, struct log_options *out) {
    struct suggestion nearest = {.word = format};
    if (format == NULL) return STATUS_OK;
    out->format = format;
    for (const struct log_format *known = log_formats(); known->name != NULL; known++) {
        if (strcmp(known->name, format) == 0) return STATUS_OK;
        suggest_offer(&nearest, known->name);
    }
    if (nearest.best != NULL)
        FAIL(STATUS_INPUT, "%s: expected a format of logs, got \"%s\"; did you mean %s?", option,
             format, nearest.best);
    FAIL(STATUS_INPUT, "%s: expected a format of logs (twinstep list formats), got \"%s\"", option,
         format);
}

enum status log_options_read(const struct options *options, struct arena *arena,
                             struct log_options *out) {
    const char *base = options_value(options, KEY_LOG_BASE);
    log_options_init(out);
    TRY(log_options_format("--format", options_value(options, KEY_LOG_FORMAT), out));
    out->run = options_value(options, KEY_LOG_RUN);
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_LOG_MAP) TRY(add_map(options->given[i].value, arena, out));
    if (base == NULL) return STATUS_OK;
    const enum status status = number_parse_int(base, &out->step_base);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "--step-base");
}

enum status log_options_apart(const char *output, const char *path, struct arena *arena) {
    struct log_files files;
    if (output == NULL) return STATUS_OK;
    TRY(log_files_of(path, arena, &files));
    for (size_t i = 0; i < files.count; i++)
        TRY(output_apart(output, files.paths[i]));
    return STATUS_OK;
}
