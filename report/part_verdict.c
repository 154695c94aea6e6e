/* SPDX-License-Identifier: Apache-2.0
 * The verdict in the words that `twinstep run` prints: set as a list, and once more verbatim. */
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

#define LABEL_AT 2 /* columns of judgement_print: label, then text */
#define TEXT_AT 11

static enum status print_verdict(const struct page *page, char **out) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL) FAIL(STATUS_MEMORY, "no memory for the verdict");
    judgement_print(&page->judgement, stream);
    const int failed = fclose(stream);
    enum status status = failed ? status_fail(STATUS_MEMORY, "no memory for the verdict")
                                : arena_text(page->arena, text, length, out);
    free(text);
    return status;
}

static int is_label(const char *line, size_t length) {
    return length > TEXT_AT && strncmp(line, "  ", LABEL_AT) == 0 && line[LABEL_AT] != ' ';
}

static int is_continued(const char *line, size_t length) {
    return length > TEXT_AT && strspn(line, " ") >= TEXT_AT;
}

static void put_label(struct html *html, const char *line) {
    size_t length = TEXT_AT - LABEL_AT;
    while (length > 0 && line[LABEL_AT + length - 1] == ' ')
        length--;
    html_raw(html, "<dt>");
    html_bytes(html, line + LABEL_AT, length);
    html_raw(html, "</dt><dd>");
}

/* What the section of the causes shows as tables. */
static int is_tabled(const char *line) {
    return strncmp(line, "  shares ", 9) == 0 || strncmp(line, "  when ", 7) == 0;
}

/* Lines of judgement_print behind the first, up to its table of updates; without what has tables of
 * its own below. */
static void put_list(struct html *html, const char *text) {
    int open = 0, tabled = 0;
    html_raw(html, "<dl>\n");
    while (*text != '\0' && strncmp(text, "  update ", 9) != 0) {
        const size_t length = strcspn(text, "\n");
        const int label = is_label(text, length);
        if (label) tabled = is_tabled(text);
        if (tabled) {
            text += length + (text[length] == '\n');
            continue;
        }
        if (label || !open) {
            html_raw(html, open ? "</dd>\n" : "");
            if (label)
                put_label(html, text);
            else
                html_raw(html, "<dt></dt><dd>");
            open = 1;
        }
        const size_t skip = label || is_continued(text, length) ? TEXT_AT : 0;
        html_raw(html, "<span>");
        html_bytes(html, text + skip, length - skip);
        html_raw(html, "</span>");
        text += length + (text[length] == '\n');
    }
    html_raw(html, open ? "</dd>\n</dl>\n" : "<dt></dt><dd></dd></dl>\n");
}

enum status page_verdict(struct page *page) {
    struct html *html = &page->html;
    char *text;
    TRY(print_verdict(page, &text));
    const size_t first = strcspn(text, "\n");
    page_section(page, "verdict", "Verdict");
    html_raw(html, "<p class=\"lead\">");
    html_bytes(html, text, first);
    html_raw(html, "</p>\n");
    put_list(html, text + first + (text[first] == '\n'));
    html_raw(html, "<details><summary>The same as the terminal shows it</summary>\n<pre>");
    html_text(html, text);
    html_raw(html, "</pre></details>\n");
    page_section_end(page);
    return STATUS_OK;
}
