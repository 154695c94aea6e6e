/* SPDX-License-Identifier: Apache-2.0
 * What the experiment ran on, with which versions, and the command that runs it again. Says so
 * where that was left out of the trace. */
#include <string.h>

#include "report/page.h"

/* Writes the attributes of one group as a table; returns how many there are. */
static uint32_t put_group(struct page *page, const char *path, const char *caption) {
    struct html *html = &page->html;
    uint32_t count = 0;
    for (uint32_t i = 0; i < page->image->attribute_count; i++) {
        const struct trace_attribute *attribute = &page->image->attributes[i];
        if (strcmp(attribute->path, path) != 0) continue;
        if (count++ == 0)
            html_format(
                html,
                "<div><div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><caption>%s"
                "</caption><tbody>\n",
                caption);
        html_format(html, "<tr><th scope=\"row\">%-s</th><td class=\"w\">%-s</td></tr>\n",
                    attribute->name, attribute->text);
    }
    if (count > 0) html_raw(html, "</tbody></table></div></div>\n");
    return count;
}

/* Writes what is under /backend: which run was computed on what (evidence/backend_seen.h). */
static void put_devices(struct page *page) {
    const char *last = "";
    put_group(page, "backend", "Whose ops each run had");
    for (uint32_t i = 0; i < page->image->attribute_count; i++) {
        const char *const path = page->image->attributes[i].path;
        if (strncmp(path, "backend/", 8) != 0 || strcmp(path, last) == 0) continue;
        put_group(page, path, "What they ran on");
        last = path;
    }
}

void page_machine(struct page *page) {
    struct html *html = &page->html;
    page_section(page, "machine", "Machine and versions");
    html_raw(html, "<div class=\"figures\">\n");
    const uint32_t build = put_group(page, "env", "Build: what may decide a bit");
    const uint32_t machine = put_group(page, "env/volatile", "Machine and call");
    put_devices(page);
    html_raw(html, "</div>\n");
    if (build == 0) html_raw(html, "<p>The trace says nothing of the build.</p>\n");
    if (machine == 0)
        html_raw(html, "<p>Machine, host, date and command were left out (<code>--reproducible"
                       "</code>), so that equal runs write equal bytes.</p>\n");
    html_format(html, "<dl><dt>configuration digest</dt><dd><code>%s</code></dd></dl>\n",
                page_attribute(page, "", "configuration_digest"));
    page_section_end(page);
}

/* ---- command ---- */

static int is_plain(const char *word) {
    return word[0] != '\0' &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "_-./=,:+@%") == strlen(word);
}

/* Writes a word in single quotes, so that a POSIX shell reads it as it is. */
static void put_word(struct html *html, const char *word, size_t length) {
    html_raw(html, "&#39;");
    for (size_t i = 0; i < length;) {
        const size_t plain = strcspn(word + i, "'");
        const size_t piece = plain < length - i ? plain : length - i;
        html_bytes(html, word + i, piece);
        i += piece;
        if (i < length) {
            html_raw(html, "&#39;\\&#39;&#39;");
            i++;
        }
    }
    html_raw(html, "&#39;");
}

static void put_file(struct html *html, const char *name) {
    if (is_plain(name))
        html_text(html, name);
    else
        put_word(html, name, strlen(name));
}

static enum status put_commands(struct page *page, int builtin) {
    struct html *html = &page->html;
    const char *name = page->judgement.name, *sets = page_attribute(page, "", "overrides");
    char *trace, *scenario, *html_file;
    TRY(arena_format(page->arena, &trace, "%s.h5", name));
    TRY(arena_format(page->arena, &scenario, "%s%s", name, builtin ? "" : ".yaml"));
    TRY(arena_format(page->arena, &html_file, "%s.html", name));
    html_raw(html, "<pre>twinstep run ");
    put_file(html, scenario);
    while (*sets != '\0') {
        const size_t length = strcspn(sets, "\n");
        html_raw(html, " --set ");
        put_word(html, sets, length);
        sets += length + (sets[length] == '\n');
    }
    html_raw(html, " -o ");
    put_file(html, trace);
    html_raw(html, "\ntwinstep report ");
    put_file(html, trace);
    html_raw(html, " -o ");
    put_file(html, html_file);
    html_raw(html, "</pre>\n");
    return STATUS_OK;
}

enum status page_reproduce(struct page *page) {
    struct html *html = &page->html;
    const char *text = page_attribute(page, "", "scenario");
    const char *command = page_attribute(page, "env/volatile", "command");
    const int builtin =
        page->options->is_builtin != NULL && page->options->is_builtin(page->judgement.name, text);
    page_section(page, "reproduce", "Run it again");
    html_raw(html, builtin ? "<p>The scenario is one of the catalogue of this version.</p>\n"
                           : "<p>Save the scenario below under the name in the command; data files "
                             "that it names are relative to it.</p>\n");
    TRY(put_commands(page, builtin));
    if (command[0] != '\0')
        html_format(html, "<p>As it was called, words joined by blanks:</p>\n<pre>%s</pre>",
                    command);
    html_format(html,
                "<details><summary>The scenario, verbatim</summary>\n<pre>%s</pre></details>\n",
                text);
    page_section_end(page);
    return STATUS_OK;
}
