/* SPDX-License-Identifier: Apache-2.0
 * twinstep import: turns a log of any known format into a trace, and says what it understood of the
 * log. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/foreign_print.h"
#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "logs/export.h"

enum { KEY_CHECK = KEY_OWN };

struct range { /* of the values that a column has */
    size_t values;
    double least, most;
    float finest, coarsest; /* the least and the largest step of the printed digits */
};

static struct range range_of(const struct log *log, const struct log_column *column) {
    struct range range = {0, 0.0, 0.0, 0.0f, 0.0f};
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(column, i)) continue;
        const double value = column->value[i];
        const float quantum = column->quantum[i];
        if (range.values++ == 0) range = (struct range){1, value, value, quantum, quantum};
        if (value < range.least || range.least != range.least) range.least = value;
        if (value > range.most || range.most != range.most) range.most = value;
        if (quantum < range.finest) range.finest = quantum;
        if (quantum > range.coarsest) range.coarsest = quantum;
    }
    return range;
}

static const char *our_name(const struct log_column *column) {
    return column->name == LOG_OTHER ? "-" : log_names[column->name].name;
}

static void print_quanta(const struct range *range) {
    if (range->coarsest == 0.0f)
        printf("exact");
    else if (range->finest == range->coarsest)
        printf("%.3g", (double)range->finest);
    else if (range->finest == 0.0f)
        printf("exact to %.3g", (double)range->coarsest);
    else
        printf("%.3g to %.3g", (double)range->finest, (double)range->coarsest);
}

static void print_column(const struct log *log, const struct log_column *column) {
    const struct range range = range_of(log, column);
    printf("  %-17s %-28s %7zu  %-12.6g %-12.6g ", our_name(column), column->source, range.values,
           range.least, range.most);
    print_quanta(&range);
    printf("%s%s\n", column->cumulative ? "; running total" : "",
           column->windowed ? "; mean since the last row" : "");
}

static void print_steps(const struct log *log) {
    int64_t first = 0, last = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (log->step[i] == 0) continue;
        if (first == 0 || log->step[i] < first) first = log->step[i];
        if (log->step[i] > last) last = log->step[i];
    }
    printf("%zu rows, updates %" PRId64 " to %" PRId64, log->rows, first, last);
    if (log->max_steps > 0) printf(" of %" PRIu64, log->max_steps);
    printf("; its first update is called %" PRId64 "%s\n", log->step_base,
           log->step_guessed ? " (numbered by us)" : "");
}

static void print_log(const struct log *log) {
    plain_text_put(log->path, stdout);
    printf(": %s (%s)\n", log->title, log->format);
    print_steps(log);
    printf("  %-17s %-28s %7s  %-12s %-12s %s\n", "column", "in the log", "values", "least", "most",
           "printed to");
    for (size_t i = 0; i < log->column_count; i++)
        print_column(log, &log->columns[i]);
    for (size_t i = 0; i < log->note_count; i++)
        printf("note: %s\n", log->notes[i]);
}

static json_t *column_json(const struct log *log, const struct log_column *column) {
    const struct range range = range_of(log, column);
    json_t *name = column->name == LOG_OTHER ? json_null() : json_string(our_name(column));
    return json_pack("{so ss sI so so so so sb sb}", "name", name, "source", column->source,
                     "values", (json_int_t)range.values, "least", json_finite(range.least), "most",
                     json_finite(range.most), "quantum_least", json_finite((double)range.finest),
                     "quantum_most", json_finite((double)range.coarsest), "cumulative",
                     (int)column->cumulative, "windowed", (int)column->windowed);
}

static json_t *log_json(const struct log *log, const char *output) {
    json_t *columns = json_array(), *notes = json_array();
    for (size_t i = 0; i < log->column_count; i++)
        json_array_append_new(columns, column_json(log, &log->columns[i]));
    for (size_t i = 0; i < log->note_count; i++)
        json_array_append_new(notes, json_string(log->notes[i]));
    json_t *to = output == NULL ? json_null() : json_string(output);
    json_t *total = json_positive(log->max_steps);
    return json_pack("{ss ss ss so sI sI sb so so so}", "log", log->path, "format", log->format,
                     "title", log->title, "output", to, "rows", (json_int_t)log->rows, "step_base",
                     (json_int_t)log->step_base, "step_guessed", log->step_guessed, "max_steps",
                     total, "columns", columns, "notes", notes);
}

/* An overwritten trace loses the live file of a killed run, too, so that file must not be the log.
 */
static enum status check_output(const char *output, const char *log, struct arena *arena) {
    char *live;
    if (output == NULL) return STATUS_OK;
    TRY(arena_format(arena, &live, "%s.part", output));
    TRY(log_options_apart(live, log, arena));
    return log_options_apart(output, log, arena);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct log_options how;
    struct log *log;
    if (options_given(options, KEY_CHECK)) return foreign_print_check(cli, options, out_exit);
    TRY(log_options_read(options, &cli->arena, &how));
    TRY(check_output(options->output, options->arguments[0], &cli->arena));
    TRY(log_import(options->arguments[0], &how, &cli->arena, &log));
    if (options->output != NULL)
        TRY(log_write_trace(log, options->output, options->overwrite, &cli->arena));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) return json_print(log_json(log, options->output));
    print_log(log);
    if (options->output != NULL) {
        fputs("written to ", stdout);
        plain_text_put(options->output, stdout);
        putchar('\n');
    }
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("check", KEY_CHECK, NULL,
           "LOG is a trace that another program wrote (docs/FOREIGN.md): list what is not as it "
           "should be, and read nothing into a log"),
    OPTION_OUTPUT("Trace to write (HDF5); without it, only what was understood is printed"),
    OPTION_OVERWRITE("Replace a trace that exists; never LOG itself"),
    OPTIONS_LOG,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_import = {
    .name = "import",
    .brief = "read a log of a training tool; write it as a trace",
    .arguments = "LOG",
    .text = "Reads LOG, a file, a folder or \"-\" for standard input, and says what it understood: "
            "format, updates, columns with our names and theirs, and how finely each was "
            "printed. The format is told by content (twinstep list formats). With --check LOG is a "
            "trace that another program wrote; then all of it that is not as docs/FOREIGN.md says "
            "is listed, with what was expected and what is there.\v"
            "Example: twinstep import trainer_state.json -o run.h5",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
