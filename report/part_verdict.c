/* SPDX-License-Identifier: Apache-2.0
 * The verdict in the words that `twinstep run` prints: its rows as a list, and once more verbatim.
 *
 * Reads the rows of the judgement, and makes no words. The table of updates and what the section of
 * the causes shows as tables are left out of the list, but not of the verbatim text. */
#include <string.h>

#include "report/page.h"

static int is_listed(const struct judged_row *row) {
    return row->kind != ROW_HEADLINE && row->kind != ROW_SHARES && row->kind != ROW_WHEN &&
           row->kind != ROW_UPDATES;
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

void page_verdict(struct page *page) {
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
