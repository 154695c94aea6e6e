/* SPDX-License-Identifier: Apache-2.0
 * A trace of ours as a log: either the columns of a run, which are log_rules_exact, or a log that
 * `twinstep import` wrote.
 *
 * In a run, NaN means "not measured", except for the loss, which every update of a run of ours has.
 * Invariant: a log that log_write_trace wrote comes back with equal content. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "determinism/trace.h"
#include "logs/build_state.h"
#include "logs/import.h"
#include "logs/readers.h"

/* ---- a run ---- */

static enum status put_real(struct log_build *build, const char *name, double value, int always) {
    size_t column;
    if (value != value && !always) return STATUS_OK;
    TRY(log_build_column(build, name, strlen(name), log_rules_exact, &column));
    return log_build_value(build, column, value, 0.0);
}

/* Puts the columns of the parameter groups: "lr_applied" is that of the first group,
 * "lr_applied[1]" that of the next. */
static enum status put_groups(struct log_build *build, const struct trace_run *run,
                              const struct record *record) {
    for (uint32_t g = 0; g < run->plan.shape.groups; g++)
        for (int c = 0; c < RECORD_GROUPS; c++) {
            char name[64];
            snprintf(name, sizeof name, g == 0 ? "%s" : "%s[%u]", record_groups[c].name, g);
            TRY(put_real(build, name, record->groups[g][c], 0));
        }
    return STATUS_OK;
}

static int has_phases(const struct trace_run *run, const struct record *record) {
    int any = 0;
    for (uint32_t i = 0; i < run->plan.shape.phases; i++)
        any |= record->phase_places[i][PHASE_PLACE] >= 0;
    return any;
}

/* Whether a backward pass of that update was seen, or nobody looked for one: who saw phases before
 * (`looked`) looks at every update, also at one in which nothing was trained. */
static int may_have_gone_back(const struct trace_run *run, const struct record *record,
                              int looked) {
    const int64_t place = trace_phase_place(run, record, "backward");
    return !looked || place == INT64_MIN || place >= 0;
}

/* Whether a NaN in the place of the loss is one. A writer that saw no loss has none to tell: that
 * of a recorded training can be computed where its calls are not seen. */
static int has_loss(const struct trace_run *run, const struct record *record, int looked) {
    return run->plan.foreign == NULL ||
           (!run->without_loss && may_have_gone_back(run, record, looked));
}

static enum status put_record(struct log_build *build, const struct trace_run *run,
                              const struct record *record, int looked) {
    if (record->step > (uint64_t)1 << 53)
        FAIL(STATUS_INPUT, "run %s: expected updates below 2^53, got more", run->plan.id);
    TRY(log_build_row(build, (int64_t)record->step, 0, 0));
    for (int c = 0; c < RECORD_REALS; c++)
        TRY(put_real(build, record_reals[c].name, record->reals[c],
                     c == REAL_LOSS && has_loss(run, record, looked)));
    for (int c = 0; c < RECORD_INTEGERS; c++)
        if (record->integers[c] >= 0)
            TRY(put_real(build, record_integers[c].name, (double)record->integers[c], 0));
    return put_groups(build, run, record);
}

static enum status list_runs(const struct trace_image *image, struct arena *arena, char **out) {
    TRY(arena_format(arena, out, "%s", ""));
    for (uint32_t i = 0; i < image->run_count && i < 16; i++)
        TRY(arena_format(arena, out, "%s%s%s", *out, i == 0 ? "" : ", ", image->runs[i].plan.id));
    return STATUS_OK;
}

/* Chooses the run that was asked for by name, or the first one that is an arm itself. */
static enum status choose_run(const char *name, const char *wanted, struct arena *arena,
                              const struct trace_image *image, const struct trace_run **out) {
    char *runs;
    for (uint32_t i = 0; i < image->run_count; i++) {
        *out = &image->runs[i];
        if (wanted != NULL ? strcmp((*out)->plan.id, wanted) == 0
                           : (*out)->plan.replicate == 0 && (*out)->plan.mask == 0)
            return STATUS_OK;
    }
    TRY(list_runs(image, arena, &runs));
    FAIL(STATUS_INPUT, "%s: expected a run of this trace (%s), got \"%s\"", name, runs,
         wanted == NULL ? "" : wanted);
}

/* Takes the total of a recorded training from its TrainingArguments, where they say one: max_steps
 * is -1 where epochs count. */
static void put_total(struct log_build *build, const struct trace_run *run) {
    static const char key[] = "args.max_steps: ";
    const char *at = run->plan.foreign == NULL ? NULL : run->plan.configuration;
    for (; at != NULL; at = strchr(at, '\n')) {
        char digits[24] = "";
        uint64_t total;
        at += *at == '\n';
        if (strncmp(at, key, sizeof key - 1) != 0) continue;
        snprintf(digits, sizeof digits, "%.*s", (int)strcspn(at + sizeof key - 1, "\n"),
                 at + sizeof key - 1);
        if (number_parse_uint(digits, &total) == STATUS_OK) log_build_max_steps(build, total);
        return;
    }
}

static enum status read_run(const struct log_source *source, struct log_build *build,
                            const struct trace_image *image) {
    const struct trace_run *run = NULL;
    int looked = 0;
    TRY(choose_run(source->name, log_build_options(build)->run, log_build_scratch(build), image,
                   &run));
    if (run->updates == 0)
        FAIL(STATUS_INPUT, "%s: run %s: expected updates, got none", source->name, run->plan.id);
    put_total(build, run);
    for (uint64_t i = 0; i < run->updates; i++) {
        const struct record *const record = trace_row(run, i);
        looked |= has_phases(run, record);
        TRY(put_record(build, run, record, looked));
    }
    TRY(trace_rows_status(image));
    if (image->run_count == 1 && image->complete) return STATUS_OK; /* there is nothing to choose */
    TRY(log_build_note(build, "run %s of %u runs: %s", run->plan.id, (unsigned)image->run_count,
                       image->complete ? "the experiment is complete"
                                       : "the experiment did not run to its end"));
    return STATUS_OK;
}

/* ---- an imported log ---- */

struct imported {
    const struct log_source *source;
    const struct trace_image *image;
    struct arena *arena;
    struct log *log;
};

static enum status damaged(const struct imported *in, const char *what) {
    FAIL(STATUS_INPUT, "%s: expected %s in an imported log, got none or another shape",
         in->source->name, what);
}

static enum status rows_of(const struct imported *in, const char *path, const double **out) {
    const struct trace_array *found = trace_array_of(in->image, path);
    if (found == NULL || found->plan.rank != 1 || found->plan.shape[0] != in->log->rows)
        return damaged(in, path);
    *out = found->values;
    return STATUS_OK;
}

static enum status number_of(const struct imported *in, const char *name, int64_t *out) {
    const char *text = trace_attribute_of(in->image, "log", name);
    if (text == NULL || number_parse_int(text, out) != STATUS_OK) return damaged(in, name);
    return STATUS_OK;
}

static int is_whole(double value, double most) {
    return value >= 0.0 && value <= most && (double)(int64_t)value == value;
}

static enum status read_steps(struct imported *in) {
    struct log *log = in->log;
    const double *step, *line, *part;
    TRY(rows_of(in, "log/step", &step));
    TRY(rows_of(in, "log/line", &line));
    TRY(rows_of(in, "log/part", &part));
    TRY(arena_take(in->arena, log->rows, sizeof *log->step, "steps", &log->step));
    TRY(arena_take(in->arena, log->rows, sizeof *log->line, "lines", &log->line));
    TRY(arena_take(in->arena, log->rows, sizeof *log->part, "parts", &log->part));
    for (size_t i = 0; i < log->rows; i++) {
        if (!is_whole(step[i], 0x1p62) || !is_whole(line[i], 0x1p32 - 1.0) ||
            !is_whole(part[i], 0x1p32 - 1.0))
            return damaged(in, "whole numbers in log/step, log/line and log/part");
        log->step[i] = (int64_t)step[i];
        log->line[i] = (uint32_t)line[i];
        log->part[i] = (uint32_t)part[i];
    }
    return STATUS_OK;
}

static enum status read_column(struct imported *in, const char *group, struct log_column *column) {
    const double *value, *quantum;
    char path[600];
    const char *source = trace_attribute_of(in->image, group, "source_name");
    const char *name = trace_attribute_of(in->image, group, "name");
    const char *cumulative = trace_attribute_of(in->image, group, "cumulative");
    const char *windowed = trace_attribute_of(in->image, group, "windowed");
    char *kept;
    if (source == NULL || name == NULL || cumulative == NULL || windowed == NULL)
        return damaged(in, "attributes of a column");
    TRY(arena_text(in->arena, source, strlen(source), &kept));
    column->source = kept;
    column->name = (int32_t)log_name_by_text(name);
    column->cumulative = strcmp(cumulative, "1") == 0;
    column->windowed = strcmp(windowed, "1") == 0;
    snprintf(path, sizeof path, "%s/value", group);
    TRY(rows_of(in, path, &value));
    snprintf(path, sizeof path, "%s/quantum", group);
    TRY(rows_of(in, path, &quantum));
    TRY(arena_take(in->arena, in->log->rows, sizeof(double), "column", &column->value));
    TRY(arena_take(in->arena, in->log->rows, sizeof(float), "column", &column->quantum));
    for (size_t i = 0; i < in->log->rows; i++) {
        column->value[i] = value[i];
        column->quantum[i] = quantum[i] >= 0.0 ? (float)quantum[i] : real_nan_f32();
        if (!(quantum[i] >= 0.0)) column->value[i] = real_nan_f64();
    }
    return STATUS_OK;
}

/* Reads the columns in their own order, which the attribute `column` holds; that in which HDF5
 * lists groups is another. */
static enum status read_columns(struct imported *in) {
    const struct trace_image *image = in->image;
    size_t count = 0;
    for (uint32_t i = 0; i < image->attribute_count; i++)
        count += strcmp(image->attributes[i].name, "source_name") == 0;
    TRY(arena_take(in->arena, count, sizeof *in->log->columns, "columns", &in->log->columns));
    in->log->column_count = count;
    for (uint32_t i = 0; i < image->attribute_count; i++) {
        const struct trace_attribute *a = &image->attributes[i];
        int64_t index;
        if (strcmp(a->name, "source_name") != 0) continue;
        const char *text = trace_attribute_of(image, a->path, "column");
        if (text == NULL || number_parse_int(text, &index) != STATUS_OK || index < 0 ||
            index >= (int64_t)count || strlen(a->path) > 512 ||
            in->log->columns[index].source != NULL)
            return damaged(in, "numbered columns");
        TRY(read_column(in, a->path, &in->log->columns[index]));
    }
    return STATUS_OK;
}

static enum status read_notes(struct imported *in) {
    const struct trace_text *text = trace_text_of(in->image, "log/notes");
    const char **notes;
    if (text == NULL || text->length == 0) return STATUS_OK;
    const char *at = text->text, *end = text->text + text->length;
    TRY(arena_take(in->arena, text->length, sizeof *notes, "notes", &notes));
    while (at < end) {
        const char *stop = (const char *)memchr(at, '\n', (size_t)(end - at));
        char *kept;
        if (stop == NULL) stop = end;
        TRY(arena_text(in->arena, at, (size_t)(stop - at), &kept));
        notes[in->log->note_count++] = kept;
        at = stop + 1;
    }
    in->log->notes = notes;
    return STATUS_OK;
}

static enum status read_imported(struct imported *in) {
    const struct trace_array *step = trace_array_of(in->image, "log/step");
    const char *format = trace_attribute_of(in->image, "log", "format");
    int64_t guessed, max_steps;
    char *kept;
    if (step->plan.rank != 1 || step->plan.shape[0] == 0) return damaged(in, "log/step");
    if (format == NULL) return damaged(in, "format");
    TRY(arena_text(in->arena, format, strlen(format), &kept));
    in->log->format = kept;
    in->log->rows = (size_t)step->plan.shape[0];
    TRY(number_of(in, "step_base", &in->log->step_base));
    TRY(number_of(in, "step_guessed", &guessed));
    TRY(number_of(in, "max_steps", &max_steps));
    in->log->step_guessed = guessed != 0;
    in->log->max_steps = max_steps > 0 ? (uint64_t)max_steps : 0;
    TRY(read_steps(in));
    TRY(read_columns(in));
    return read_notes(in);
}

/* ---- the reader ---- */

static int claim(const struct log_source *source) {
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    return source->length >= 8 && memcmp(source->bytes, signature, 8) == 0 ? 3 : 0;
}

static enum status read_image(const struct log_source *source, struct log_build *build,
                              const struct trace_image *image) {
    const struct log_options *options = log_build_options(build);
    struct imported in = {source, image, build->arena, NULL};
    if (trace_array_of(image, "log/step") == NULL) return read_run(source, build, image);
    if (options->map_count > 0 || options->step_base != INT64_MIN)
        FAIL(STATUS_INPUT,
             "%s: expected --map and --step-base when the log was imported: this "
             "trace holds it as it was understood then",
             source->name);
    TRY(arena_take(in.arena, 1, sizeof *in.log, "log", &in.log));
    TRY(read_imported(&in));
    log_build_adopt(build, in.log);
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct trace_image *image;
    if (source->path == NULL)
        FAIL(STATUS_INPUT, "%s: expected a trace as a file, got its bytes", source->name);
    TRY(trace_open_long(source->path, log_build_scratch(build), &image));
    const enum status status = read_image(source, build, image);
    trace_close(image);
    return status;
}

enum status log_import_run(const char *path, const struct log_options *options, struct arena *arena,
                           struct trace_image **out_image, const struct trace_run **out) {
    *out = NULL;
    *out_image = NULL;
    TRY(trace_open_long(path, arena, out_image));
    if (trace_array_of(*out_image, "log/step") != NULL) return STATUS_OK;
    return choose_run(path, options->run, arena, *out_image, out);
}

const struct log_reader log_reader_trace = {.step_base = 1, .claim = claim, .read = read};
