/* SPDX-License-Identifier: Apache-2.0
 * The frame of the page, the order of its sections, and small parts that several sections share.
 * What a section says stands in its own file. */
#include "report/page.h"

#include <errno.h>
#include <string.h>

#include "report/style.h"

const char *page_attribute(const struct page *page, const char *path, const char *name) {
    const char *text = trace_attribute_of(page->image, path, name);
    return text == NULL ? "" : text;
}

void page_section(struct page *page, const char *id, const char *title) {
    html_format(&page->html,
                "<section id=\"%s\" aria-labelledby=\"h-%s\">\n<h2 id=\"h-%s\">%s</h2>\n", id, id,
                id, title);
}

void page_section_end(struct page *page) {
    html_raw(&page->html, "</section>\n");
}

void page_chart(struct page *page, const struct chart *chart) {
    chart_write(&page->html, chart, ++page->drawings);
}

void page_note(struct page *page, const char *markup) {
    html_raw(&page->html, "<p class=\"note\">");
    html_raw(&page->html, markup);
    html_raw(&page->html, "</p>\n");
}

uint64_t page_row_stride(uint64_t rows) {
    return rows <= PAGE_ROWS_MAX ? 1 : (rows + PAGE_ROWS_MAX - 1) / PAGE_ROWS_MAX;
}

int page_row_shown(uint64_t row, uint64_t rows) {
    return row % page_row_stride(rows) == 0 || row + 1 == rows;
}

int page_next_line(const char **text, struct page_line *out) {
    const char *line = *text;
    if (*line == '\0') return 0;
    const size_t length = strcspn(line, "\n");
    *text = line + length + (line[length] == '\n');
    *out = (struct page_line){line, line, 0, length};
    for (size_t i = 0; i + 1 < length; i++)
        if (line[i] == ':' && line[i + 1] == ' ') {
            out->key_length = i;
            out->value = line + i + 2;
            out->value_length = length - i - 2;
            break;
        }
    return 1;
}

/* ---- frame ---- */

void page_open(struct page *page, const char *title) {
    struct html *html = &page->html;
    html_format(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        /* Nothing of the page is loaded or run; a name that slipped through could not either. */
        "<meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'\"/>\n"
        "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
        "<meta name=\"generator\" content=\"twinstep %s\"/>\n"
        "<title>%s - twinstep report</title>\n<style>\n",
        page->options->version, title);
    style_write(html);
    html_raw(html, "</style>\n</head>\n<body>\n<main>\n");
}

void page_close(struct page *page) {
    html_format(
        &page->html,
        "</main>\n<footer><p>Written by twinstep %s from the trace alone. Values are rounded "
        "where a table says so; the trace holds every bit (<code>twinstep export</code>, "
        "h5py). Its words are explained in docs/GLOSSARY.md of the program's "
        "source.</p></footer>\n</body>\n</html>\n",
        page->options->version);
}

static void write_contents(struct page *page) {
    static const char *const entries[][2] = {{"verdict", "Verdict"},
                                             {"curves", "Curves"},
                                             {"differences", "Differences"},
                                             {"eval", "Worse?"},
                                             {"shares", "Shares"},
                                             {"floor", "Floor"},
                                             {"configuration", "Configuration"},
                                             {"ranks", "Ranks"},
                                             {"updates", "Updates"},
                                             {"runs", "Runs"},
                                             {"machine", "Machine"},
                                             {"reproduce", "Reproduce"}};
    html_raw(&page->html, "<nav aria-label=\"Sections\"><ul>");
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        if ((page->judgement.eval.set_count > 0 || strcmp(entries[i][0], "eval") != 0) &&
            (page_has_ranks(page) || strcmp(entries[i][0], "ranks") != 0))
            html_format(&page->html, "<li><a href=\"#%s\">%s</a></li>", entries[i][0],
                        entries[i][1]);
    html_raw(&page->html, "</ul></nav>\n");
}

static const char *const verdict_titles[VERDICT_COUNT] = {
    "No verdict", "Identical",     "Inside the floor",   "Outside the floor",
    "Untestable", "Same training", "Same weights so far"};

static void write_header(struct page *page) {
    struct html *html = &page->html;
    const char *about = page_attribute(page, "", "about"),
               *source = page_attribute(page, "", "source");
    html_format(html,
                "<header>\n<p class=\"kicker\">twinstep report</p>\n<h1>%-s</h1>\n"
                "<p class=\"badge v%d\">%s</p>\n",
                page->judgement.name, (int)page->judgement.verdict,
                verdict_titles[page->judgement.verdict]);
    if (about[0] != '\0') html_format(html, "<p>%s</p>", about);
    if (source[0] != '\0') html_format(html, "<p class=\"note\">Source: %s</p>\n", source);
    html_raw(html, "</header>\n");
    write_contents(page);
}

/* Warns where the trace was never closed, and says how far each arm came. */
static void write_incomplete(struct page *page) {
    struct html *html = &page->html;
    if (page->image->complete) return;
    html_format(
        html,
        "<p class=\"warning\"><strong>Incomplete trace.</strong> The experiment was stopped, "
        "still goes on, or was recovered. Of %s updates, %s finished %ju, %s finished %ju. "
        "What is not there yet is called missing below, never zero.</p>\n",
        page_attribute(page, "", "steps"), page->judgement.arms[0], page->run[0]->updates,
        page->judgement.arms[1], page->run[1]->updates);
}

static int is_listed(const struct judged_row *row) {
    return row->kind != ROW_HEADLINE && row->kind != ROW_SHARES && row->kind != ROW_WHEN &&
           row->kind != ROW_UPDATES && row->kind != ROW_EVAL_TABLE;
}

static void put_row(struct html *html, const struct judged_row *row) {
    html_format(html, "<dt>%s</dt><dd>", row->label);
    for (const char *line = row->text; line != NULL;) {
        const char *const end = strchr(line, '\n');
        html_format(html, "<span>%.*s</span>",
                    (int)(end == NULL ? strlen(line) : (size_t)(end - line)), line);
        line = end == NULL ? NULL : end + 1;
    }
    html_raw(html, "</dd>\n");
}

static void put_escaped(void *html, const char *bytes, size_t length) {
    html_bytes((struct html *)html, bytes, length);
}

/* The verdict in the words that `twinstep run` prints: its rows as a list, and once more verbatim.
 */
static void write_verdict(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    page_section(page, "verdict", "Verdict");
    html_format(html, "<p class=\"lead\">%s</p>\n<dl>\n", judgement->rows[0].text);
    for (uint32_t i = 0; i < judgement->row_count; i++)
        if (is_listed(&judgement->rows[i])) put_row(html, &judgement->rows[i]);
    html_raw(html, "</dl>\n<details><summary>The same as the terminal shows it</summary>\n<pre>");
    judgement_print_to(judgement, put_escaped, html);
    html_raw(html, "</pre></details>\n");
    page_section_end(page);
}

static enum status write_experiment(struct page *page) {
    page_open(page, page->judgement.name);
    write_header(page);
    write_incomplete(page);
    write_verdict(page);
    TRY(page_curves(page));
    TRY(page_first_differences(page));
    page_eval(page);
    page_shares(page);
    page_floor(page);
    page_configuration(page);
    page_ranks(page);
    page_updates(page);
    page_runs(page);
    page_machine(page);
    TRY(page_reproduce(page));
    page_close(page);
    return STATUS_OK;
}

static enum status write_any(struct page *page) {
    const char *kind = page_attribute(page, "", "kind");
    if (page->image->writer != NULL) return page_foreign(page);
    if (page->options->run != NULL)
        FAIL(STATUS_INPUT, "--run: expected a trace that another program recorded; the page of an "
                           "experiment shows all of its runs");
    if (strcmp(kind, "log") == 0) return page_log(page);
    if (strcmp(kind, "rollout") == 0) return page_rollout(page);
    TRY(judge(page->image, page->arena, &page->judgement));
    for (int arm = 0; arm < 2; arm++)
        page->run[arm] = trace_run_of(page->image, page->judgement.arms[arm]);
    return write_experiment(page);
}

enum status report_write(const struct trace_image *image, const struct report_options *options,
                         struct arena *arena, FILE *out) {
    struct page page = {.html = {out}, .arena = arena, .image = image, .options = options};
    errno = 0;
    TRY(write_any(&page));
    if (fflush(out) != 0 || ferror(out))
        FAIL(STATUS_IO, "cannot write: %s", strerror(errno == 0 ? EIO : errno));
    return STATUS_OK;
}
