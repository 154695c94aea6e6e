/* SPDX-License-Identifier: Apache-2.0
 * The page of what `twinstep rollout` measured: the verdict in its words, how sizes of d are spread
 * against the floor's, and d by probability, position, length, batch and reward. It judges
 * nothing. */
#include <math.h>
#include <string.h>

#include "report/bars.h"
#include "report/page.h"

/* Columns of a table, as rollout/rollout_trace.h writes them. */
enum { FROM, TOKENS, MEAN, SIZE, K3, LARGEST, COLUMNS };
static const char *const names[COLUMNS] = {"from",       "tokens", "mean_d",
                                           "mean_abs_d", "k3",     "max_abs_d"};

struct table {
    const double *column[COLUMNS];
    uint64_t rows;
    const char *const *words; /* NULL: the rows are named by numbers */
};

/* Finds a table; returns 0 where the trace has none or its columns are of several lengths. */
static int open_table(const struct page *page, const char *group, struct table *out) {
    for (int c = 0; c < COLUMNS; c++) {
        char path[64];
        snprintf(path, sizeof path, "rollout/%s/%s", group, names[c]);
        const struct trace_array *array = trace_array_of(page->image, path);
        if (array == NULL || array->plan.rank != 1) return 0;
        if (c > 0 && array->plan.shape[0] != out->rows) return 0;
        out->rows = array->plan.shape[0];
        out->column[c] = array->values;
    }
    return out->rows > 0;
}

/* ---- tables ---- */

/* What the rows of a table are called where that is no number. */
static const char *const rewards[] = {"below 0", "0", "between 0 and 1", "1 and above"};

static void put_row(struct page *page, const struct table *table, const struct bars *bars,
                    uint64_t row) {
    struct html *html = &page->html;
    const double from = table->column[FROM][row];
    html_raw(html, "<tr><th scope=\"row\" class=\"r\">");
    if (table->words != NULL && from >= 0.0 && from < (double)COUNT_OF(rewards))
        html_raw(html, table->words[(size_t)from]);
    else
        html_format(html, "%.15g", from);
    html_format(html, "</th><td class=\"r\">%.15g</td><td>", table->column[TOKENS][row]);
    bars_write(html, bars, table->column[SIZE][row], (double)NAN, (double)NAN);
    html_raw(html, "</td>");
    for (int c = SIZE; c < COLUMNS; c++)
        html_format(html, "<td class=\"r\">%.4g</td>", table->column[c][row]);
    html_format(html, "<td class=\"r\">%.3g</td></tr>\n", table->column[MEAN][row]);
}

static void put_table(struct page *page, const char *group, const char *title, const char *from) {
    struct html *html = &page->html;
    struct table table = {.words = strcmp(group, "reward") == 0 ? rewards : NULL};
    struct bars bars = {0.0, 1e-300};
    if (!open_table(page, group, &table)) return;
    for (uint64_t i = 0; i < table.rows; i++)
        if (isfinite(table.column[SIZE][i])) bars_stretch(&bars, table.column[SIZE][i]);
    html_format(html,
                "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption>\n<thead><tr>"
                "<th scope=\"col\" class=\"r\">%s</th><th scope=\"col\" class=\"r\">tokens</th>"
                "<th scope=\"col\"></th><th scope=\"col\" class=\"r\">mean |d|</th><th "
                "scope=\"col\" class=\"r\">k3</th><th scope=\"col\" class=\"r\">largest |d|</th>"
                "<th scope=\"col\" class=\"r\">mean d</th></tr></thead>\n<tbody>\n",
                title, from);
    for (uint64_t i = 0; i < table.rows; i++)
        if (page_row_shown(i, table.rows)) put_row(page, &table, &bars, i);
    html_raw(html, "</tbody></table></div>\n");
}

/* ---- drawings ---- */

static void draw_sizes(struct page *page) {
    struct table table = {.rows = 0};
    const char *floor = page_attribute(page, "rollout", "floor");
    if (!open_table(page, "size", &table)) return;
    const struct chart chart = {
        .title = "Sizes of d",
        .about = "Share of the tokens by the octave of |d|: 0 stands for 1 to 2 nat, -1 for 0.5 to "
                 "1, and so on. Equal log-probs are in no octave.",
        .across = "log2 |d|",
        .series = {{"here", STYLE_FIRST, table.column[FROM], table.column[MEAN], table.rows},
                   {"floor", STYLE_NOISE, table.column[FROM], table.column[SIZE], table.rows}},
        .series_count = floor[0] != '\0' ? 2 : 1,
        .from_zero = 1};
    page_chart(page, &chart);
}

/* The numbers of the drawing. */
static void list_sizes(struct page *page) {
    struct html *html = &page->html;
    struct table table = {.rows = 0};
    if (!open_table(page, "size", &table)) return;
    html_raw(html, "<details><summary>In numbers</summary>\n<div class=\"scroll\" "
                   "tabindex=\"0\"><table><thead><tr><th scope=\"col\" class=\"r\">log2 |d| "
                   "from</th><th scope=\"col\" class=\"r\">tokens</th><th scope=\"col\" "
                   "class=\"r\">share</th><th scope=\"col\" class=\"r\">of the floor</th></tr>"
                   "</thead>\n<tbody>\n");
    for (uint64_t i = 0; i < table.rows; i++) {
        html_format(html,
                    "<tr><th scope=\"row\" class=\"r\">%.15g</th><td class=\"r\">%.15g</td><td "
                    "class=\"r\">%.4g</td>",
                    table.column[FROM][i], table.column[TOKENS][i], table.column[MEAN][i]);
        if (isfinite(table.column[SIZE][i]))
            html_format(html, "<td class=\"r\">%.4g</td></tr>\n", table.column[SIZE][i]);
        else
            html_raw(html, "<td class=\"r\">-</td></tr>\n");
    }
    html_raw(html, "</tbody></table></div></details>\n");
}

static void draw_batches(struct page *page) {
    struct table table = {.rows = 0};
    if (!open_table(page, "batch", &table) || table.rows < 2) return;
    for (uint64_t i = 1; i < table.rows; i++) /* a line goes from left to right */
        if (!(table.column[FROM][i] > table.column[FROM][i - 1])) return;
    const struct chart chart = {
        .title = "By batch",
        .about = "Mean |d| of the tokens of each batch. Weights that are not refit show as growth.",
        .across = "batch",
        .series = {{"mean |d|", STYLE_FIRST, table.column[FROM], table.column[SIZE], table.rows}},
        .series_count = 1,
        .from_zero = 1};
    page_chart(page, &chart);
}

/* ---- the page ---- */

/* Which style the badge of a verdict has: those of verdicts with the same meaning. */
static int badge_of(const char *verdict) {
    if (strcmp(verdict, "equal") == 0) return 1;
    if (strcmp(verdict, "within") == 0) return 2;
    return strcmp(verdict, "outside") == 0 ? 3 : 4;
}

static void put_header(struct page *page) {
    const char *verdict = page_attribute(page, "rollout", "verdict");
    html_format(&page->html,
                "<header>\n<p class=\"kicker\">twinstep report of two engines</p>\n<h1>%-s</h1>\n"
                "<p class=\"badge v%d\">%s</p>\n<p>%s.</p>\n</header>\n",
                page_attribute(page, "rollout", "source"), badge_of(verdict), verdict,
                page_attribute(page, "rollout", "why"));
}

enum status page_rollout(struct page *page) {
    const struct trace_text *text = trace_text_of(page->image, "verdict/text");
    if (text == NULL)
        FAIL(STATUS_INPUT, "expected the verdict of a rollout (/verdict/text), got none");
    page_open(page, page_attribute(page, "rollout", "source"));
    put_header(page);
    page_section(page, "verdict", "Verdict");
    html_format(&page->html, "<pre>%.*s</pre>\n", (int)text->length, text->text);
    page_section_end(page);
    page_section(page, "sizes", "How far apart");
    html_raw(&page->html, "<div class=\"figures\">\n");
    draw_sizes(page);
    draw_batches(page);
    html_raw(&page->html, "</div>\n");
    list_sizes(page);
    page_section_end(page);
    page_section(page, "slices", "Where");
    put_table(page, "probability", "By probability of the token", "from");
    put_table(page, "position", "By position", "from");
    put_table(page, "length", "By tokens of the sequence", "from");
    put_table(page, "batch", "By batch", "batch");
    put_table(page, "reward", "By reward of the sequence", "reward");
    page_note(page, "d is the trainer's log-prob less the engine's; a bar is mean |d|.");
    page_section_end(page);
    page_close(page);
    return STATUS_OK;
}
