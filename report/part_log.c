/* SPDX-License-Identifier: Apache-2.0
 * The page of a log that `twinstep import` wrote, or of a run that another program recorded: what
 * was understood, a curve of each column, and a table of the rows. It has no verdict, because
 * nothing is compared, and shows nothing that the log does not hold. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "determinism/digest.h"
#include "report/page.h"

#define RUNS_NAMED 20u /* so many runs that are not shown have their names listed */
#define CHARTS_MOST 24
#define COLUMNS_MOST 14 /* of the table of rows: more do not fit a page */

struct log_shown {
    const char *group;             /* "log/loss" */
    const char *name;              /* what we call the column, or "" */
    const char *source, *units;    /* what the log calls it, and in what it counts */
    const double *value, *quantum; /* (rows) each; a quantum of NaN: the row has no value */
    int is_mean, is_total;         /* over the rows since the last; since the beginning */
};

struct shown {
    struct page *page;
    const double *step;
    uint64_t rows;
    struct log_shown *columns;
    uint32_t count;
};

static const struct trace_array *array_of(const struct page *page, const char *group,
                                          const char *name, uint64_t rows) {
    char path[512];
    const int length = snprintf(path, sizeof path, "%s/%s", group, name);
    if (length < 0 || (size_t)length >= sizeof path) return NULL;
    const struct trace_array *array = trace_array_of(page->image, path);
    return array != NULL && array->plan.rank == 1 && array->plan.shape[0] == rows ? array : NULL;
}

static enum status open_rows(struct shown *shown) {
    const struct trace_array *step = trace_array_of(shown->page->image, "log/step");
    if (step == NULL || step->plan.rank != 1)
        FAIL(STATUS_INPUT, "expected rows in an imported log (/log/step), got none");
    shown->rows = step->plan.shape[0];
    shown->step = step->values;
    return STATUS_OK;
}

/* Adds a column of the run that another program recorded, where some row has a value. */
static enum status add_recorded(struct shown *shown, const struct trace_run *run,
                                const struct record_column *text,
                                double (*of)(const struct record *, size_t), size_t index,
                                uint32_t group) {
    double *value, *quantum;
    uint64_t values = 0;
    char *name;
    TRY(arena_take(shown->page->arena, run->updates, sizeof *value, "report", &value));
    TRY(arena_take(shown->page->arena, run->updates, sizeof *quantum, "report", &quantum));
    for (uint64_t i = 0; i < run->updates; i++) {
        value[i] = of(trace_row(run, i), index);
        quantum[i] = isnan(value[i]) ? (double)NAN : 0.0;
        values += isnan(value[i]) ? 0u : 1u;
    }
    if (values == 0) return STATUS_OK;
    if (group == 0)
        TRY(arena_format(shown->page->arena, &name, "%s", text->name));
    else
        TRY(arena_format(shown->page->arena, &name, "%s[%u]", text->name, group));
    shown->columns[shown->count++] =
        (struct log_shown){"", group == 0 ? name : "", name, text->units, value, quantum, 0, 0};
    return STATUS_OK;
}

static double real_of(const struct record *record, size_t index) {
    return record->reals[index];
}

static double integer_of(const struct record *record, size_t index) {
    return record->integers[index] < 0 ? (double)NAN : (double)record->integers[index];
}

static double group_of(const struct record *record, size_t index) {
    return record->groups[index / RECORD_GROUPS][index % RECORD_GROUPS];
}

static enum status open_recorded(struct shown *shown, const struct trace_run *run) {
    const size_t groups = (size_t)run->plan.shape.groups * RECORD_GROUPS;
    double *step;
    shown->rows = run->updates;
    TRY(arena_take(shown->page->arena, run->updates, sizeof *step, "report", &step));
    for (uint64_t i = 0; i < run->updates; i++)
        step[i] = (double)trace_row(run, i)->step;
    shown->step = step;
    TRY(arena_take(shown->page->arena, RECORD_REALS + RECORD_INTEGERS + groups,
                   sizeof *shown->columns, "report", &shown->columns));
    for (size_t i = 0; i < RECORD_REALS; i++)
        TRY(add_recorded(shown, run, &record_reals[i], real_of, i, 0));
    for (size_t i = 0; i < RECORD_INTEGERS; i++)
        TRY(add_recorded(shown, run, &record_integers[i], integer_of, i, 0));
    for (size_t i = 0; i < groups; i++)
        TRY(add_recorded(shown, run, &record_groups[i % RECORD_GROUPS], group_of, i,
                         (uint32_t)(i / RECORD_GROUPS)));
    return STATUS_OK;
}

/* A group below /log that has a source name is a column. */
static void add_column(struct shown *shown, const struct trace_attribute *attribute) {
    const char *group = attribute->path;
    const struct page *page = shown->page;
    const struct trace_array *value = array_of(page, group, "value", shown->rows);
    const struct trace_array *quantum = array_of(page, group, "quantum", shown->rows);
    if (value == NULL || quantum == NULL) return;
    shown->columns[shown->count++] =
        (struct log_shown){group,
                           page_attribute(page, group, "name"),
                           attribute->text,
                           page_attribute(page, group, "units"),
                           value->values,
                           quantum->values,
                           strcmp(page_attribute(page, group, "windowed"), "1") == 0,
                           strcmp(page_attribute(page, group, "cumulative"), "1") == 0};
}

static enum status open_columns(struct shown *shown) {
    const struct trace_image *image = shown->page->image;
    TRY(arena_take(shown->page->arena, image->attribute_count, sizeof *shown->columns, "report",
                   &shown->columns));
    for (uint32_t i = 0; i < image->attribute_count; i++)
        if (strcmp(image->attributes[i].name, "source_name") == 0)
            add_column(shown, &image->attributes[i]);
    return STATUS_OK;
}

static const char *title_of(const struct log_shown *column) {
    return column->name[0] != '\0' && strcmp(column->name, "other") != 0 ? column->name
                                                                         : column->source;
}

static const char *source_of(const struct shown *shown) {
    const struct trace_text *source = trace_text_of(shown->page->image, "log/source");
    return source == NULL || source->length == 0 ? "A log" : source->text;
}

/* ---- what was understood ---- */

static void put_facts(struct shown *shown) {
    struct page *page = shown->page;
    struct html *html = &page->html;
    const char *most = page_attribute(page, "log", "max_steps");
    html_format(html, "<dl><dt>log</dt><dd>%s</dd><dt>format</dt><dd>%s</dd><dt>rows</dt><dd>%ju",
                source_of(shown), page_attribute(page, "log", "format"), shown->rows);
    if (shown->rows > 0)
        html_format(html, ", updates %.15g to %.15g", shown->step[0], shown->step[shown->rows - 1]);
    if (most[0] != '\0' && strcmp(most, "0") != 0) html_format(html, " of %s", most);
    html_format(html, "</dd><dt>its first update is called</dt><dd>%s",
                page_attribute(page, "log", "step_base"));
    if (strcmp(page_attribute(page, "log", "step_guessed"), "1") == 0)
        html_raw(html, " (numbered by us: the log prints no step)");
    html_raw(html, "</dd></dl>\n");
}

static void put_notes(struct shown *shown) {
    const struct trace_text *notes = trace_text_of(shown->page->image, "log/notes");
    const char *at = notes == NULL ? "" : notes->text;
    while (*at != '\0') {
        const size_t length = strcspn(at, "\n");
        html_format(&shown->page->html, "<p class=\"warning\">%.*s</p>\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static void put_column(struct html *html, const struct shown *shown,
                       const struct log_shown *column) {
    double least = (double)NAN, most = (double)NAN, coarsest = (double)NAN;
    uint64_t values = 0;
    for (uint64_t i = 0; i < shown->rows; i++) {
        const double q = column->quantum[i], v = column->value[i];
        if (isnan(q)) continue;
        values++;
        if (!(v >= least) && !isnan(v)) least = v;
        if (!(v <= most) && !isnan(v)) most = v;
        if (!(q <= coarsest)) coarsest = q;
    }
    html_format(html,
                "<tr><th scope=\"row\" class=\"w\">%-s</th><td>%s%s</td><td class=\"r\">%ju</td>"
                "<td class=\"r\">%.7g</td><td class=\"r\">%.7g</td>",
                column->source, column->name,
                column->is_mean    ? " (mean since the last row)"
                : column->is_total ? " (running total)"
                                   : "",
                values, least, most);
    if (values == 0 || coarsest == 0.0)
        html_format(html, "<td>%s</td></tr>\n", values == 0 ? "-" : "exactly");
    else
        html_format(html, "<td>%.2g</td></tr>\n", coarsest);
}

static void put_columns(struct shown *shown) {
    struct html *html = &shown->page->html;
    html_raw(
        html,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>Columns</caption>\n<thead><tr><th "
        "scope=\"col\">in the log</th><th scope=\"col\">our name</th><th scope=\"col\" "
        "class=\"r\">values</th><th scope=\"col\" class=\"r\">least</th><th "
        "scope=\"col\" class=\"r\">most</th><th scope=\"col\">printed to</th></tr>"
        "</thead>\n<tbody>\n");
    for (uint32_t i = 0; i < shown->count; i++)
        put_column(html, shown, &shown->columns[i]);
    html_raw(html, "</tbody></table></div>\n");
}

/* ---- curves ---- */

/* Draws the rows of a column that have a value and a step. */
static enum status draw_column(struct shown *shown, const struct log_shown *column) {
    double *x, *y;
    uint64_t count = 0;
    char *about;
    TRY(arena_take(shown->page->arena, shown->rows, sizeof *x, "curves", &x));
    TRY(arena_take(shown->page->arena, shown->rows, sizeof *y, "curves", &y));
    for (uint64_t i = 0; i < shown->rows; i++) {
        if (isnan(column->quantum[i]) || !(shown->step[i] > 0.0)) continue;
        x[count] = shown->step[i];
        y[count++] = column->value[i];
    }
    TRY(arena_format(shown->page->arena, &about, "In the log: %s%s%s.", column->source,
                     column->units[0] != '\0' && strcmp(column->units, "1") != 0 ? ", in " : "",
                     strcmp(column->units, "1") != 0 ? column->units : ""));
    const struct chart chart = {.title = title_of(column),
                                .about = about,
                                .series = {{column->source, STYLE_FIRST, x, y, count}},
                                .series_count = 1};
    page_chart(shown->page, &chart);
    return STATUS_OK;
}

/* The place of a column among the drawings: what every training prints comes first, in this order,
 * and columns that we have no name for come last. */
static size_t rank_of(const struct log_shown *column) {
    static const char *const first[] = {"loss", "lr_logged", "lr_applied", "grad_norm"};
    for (size_t i = 0; i < COUNT_OF(first); i++)
        if (strcmp(column->name, first[i]) == 0) return i;
    return title_of(column) != column->source ? COUNT_OF(first) : COUNT_OF(first) + 1;
}

static enum status put_curves(struct shown *shown) {
    uint32_t drawn = 0;
    page_section(shown->page, "curves", "Curves");
    html_raw(&shown->page->html, "<div class=\"figures\">\n");
    for (size_t rank = 0; rank < 6; rank++)
        for (uint32_t i = 0; i < shown->count && drawn < CHARTS_MOST; i++) {
            if (rank_of(&shown->columns[i]) != rank) continue;
            TRY(draw_column(shown, &shown->columns[i]));
            drawn++;
        }
    html_raw(&shown->page->html, "</div>\n");
    if (drawn < shown->count)
        html_format(&shown->page->html,
                    "<p class=\"note\">Capped: %u of %u columns are drawn.</p>\n", drawn,
                    shown->count);
    page_section_end(shown->page);
    return STATUS_OK;
}

/* ---- rows ---- */

static void put_row(struct shown *shown, uint64_t row) {
    struct html *html = &shown->page->html;
    if (shown->step[row] > 0.0)
        html_format(html, "<tr><th scope=\"row\" class=\"r\">%.15g</th>", shown->step[row]);
    else
        html_raw(html, "<tr><th scope=\"row\" class=\"r\">?</th>");
    for (uint32_t i = 0; i < shown->count && i < COLUMNS_MOST; i++) {
        html_raw(html, "<td class=\"r\">");
        if (!isnan(shown->columns[i].quantum[row]))
            html_raw(html, number_text_f64(shown->columns[i].value[row]).text);
        html_raw(html, "</td>");
    }
    html_raw(html, "</tr>\n");
}

static void put_rows(struct shown *shown) {
    struct html *html = &shown->page->html;
    page_section(shown->page, "rows", "Row by row");
    html_raw(html, shown->rows <= 60 ? "<details open=\"open\">" : "<details>");
    html_format(
        html,
        "<summary>%ju rows</summary>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
        "<th scope=\"col\" class=\"r\">update</th>",
        shown->rows);
    for (uint32_t i = 0; i < shown->count && i < COLUMNS_MOST; i++)
        html_format(html, "<th scope=\"col\" class=\"r\">%-s</th>", shown->columns[i].source);
    html_raw(html, "</tr></thead>\n<tbody>\n");
    for (uint64_t i = 0; i < shown->rows; i++)
        if (page_row_shown(i, shown->rows)) put_row(shown, i);
    html_raw(html, "</tbody></table></div></details>\n");
    if (page_row_stride(shown->rows) > 1)
        html_format(html, "<p class=\"note\">Thinned: one row in %ju, and the last one.</p>\n",
                    page_row_stride(shown->rows));
    if (shown->count > COLUMNS_MOST)
        html_format(html, "<p class=\"note\">Capped: the first %d of %u columns.</p>\n",
                    COLUMNS_MOST, shown->count);
    page_section_end(shown->page);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

static void put_header(struct shown *shown) {
    html_format(
        &shown->page->html,
        "<header>\n<p class=\"kicker\">twinstep report of one log</p>\n<h1>%-s</h1>\n"
        "<p class=\"badge v0\">No verdict: nothing is compared</p>\n<p>One imported log. It "
        "says what a training printed, not what it did. To compare two: <code>twinstep "
        "compare A B</code>.</p>\n</header>\n",
        base_name(source_of(shown)));
}

/* Names the runs that the page does not show. */
static void put_other_runs(struct shown *shown, const struct trace_run *run) {
    const struct trace_image *image = shown->page->image;
    struct html *html = &shown->page->html;
    const char *between = "";
    if (image->run_count < 2) return;
    html_format(html,
                "<p class=\"note\">The trace has %u runs. This page shows one; the others, each "
                "with <code>twinstep report --run NAME</code>: ",
                image->run_count);
    for (uint32_t i = 0, named = 0; i < image->run_count; i++) {
        if (&image->runs[i] == run) continue;
        if (named++ == RUNS_NAMED) {
            html_format(html, " and %u more", image->run_count - 1 - RUNS_NAMED);
            break;
        }
        html_format(html, "%s%-s", between, image->runs[i].plan.id);
        between = ", ";
    }
    html_raw(html, ".</p>\n");
}

static void put_recorded(struct shown *shown, const struct trace_run *run) {
    const struct trace_image *image = shown->page->image;
    const struct trace_foreign *foreign = run->plan.foreign;
    struct html *html = &shown->page->html;
    char hex[DIGEST_HEX] = "none";
    struct digest root;
    if (run->updates > 0) {
        memcpy(root.byte, trace_row(run, run->updates - 1)->digests[DIGEST_ROOT], DIGEST_BYTES);
        digest_hex(&root, hex);
    }
    html_format(
        html,
        "<header>\n<p class=\"kicker\">twinstep report of a run of %s %s</p>\n<h1>%-s</h1>\n"
        "<p class=\"badge v0\">No verdict: nothing is compared</p>\n<p>One run that another "
        "program trained and recorded. To compare two: <code>twinstep compare A "
        "B</code>.</p>\n</header>\n",
        image->writer, image->writer_version, run->plan.id);
    page_section(shown->page, "understood", "What was recorded");
    html_format(html,
                "<dl><dt>updates</dt><dd>%ju%s</dd><dt>tensors</dt><dd>%u in %u group%s</dd>"
                "<dt>process</dt><dd>%jd of %jd</dd><dt>digests</dt><dd>%s</dd><dt>last root</dt>"
                "<dd>%s</dd></dl>\n",
                (uintmax_t)run->updates, image->complete ? "" : " (it did not run to its end)",
                run->plan.shape.tensors, run->plan.shape.groups,
                run->plan.shape.groups == 1 ? "" : "s", (intmax_t)foreign->rank,
                (intmax_t)foreign->world, foreign->digest[0] == '\0' ? "none" : foreign->digest,
                hex);
    put_other_runs(shown, run);
    if (run->plan.configuration[0] != '\0')
        html_format(html, "<pre>%s</pre>\n", run->plan.configuration);
    put_columns(shown);
    page_section_end(shown->page);
}

enum status page_foreign(struct page *page) {
    struct shown shown = {.page = page};
    const struct trace_run *run = &page->image->runs[0];
    if (page->options->run != NULL) run = trace_run_of(page->image, page->options->run);
    if (run == NULL)
        FAIL(STATUS_INPUT, "--run: expected a run of this trace such as \"%s\", got \"%s\"",
             page->image->runs[0].plan.id, page->options->run);
    TRY(open_recorded(&shown, run));
    page_open(page, run->plan.id);
    put_recorded(&shown, run);
    TRY(put_curves(&shown));
    put_rows(&shown);
    page_close(page);
    return STATUS_OK;
}

enum status page_log(struct page *page) {
    struct shown shown = {.page = page};
    TRY(open_rows(&shown));
    TRY(open_columns(&shown));
    page_open(page, base_name(source_of(&shown)));
    put_header(&shown);
    page_section(page, "understood", "What was understood");
    put_facts(&shown);
    put_notes(&shown);
    put_columns(&shown);
    page_section_end(page);
    TRY(put_curves(&shown));
    put_rows(&shown);
    page_close(page);
    return STATUS_OK;
}
