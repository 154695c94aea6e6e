/* SPDX-License-Identifier: Apache-2.0
 * The keys that differ, with both values and the cause that owns the key; and, in a second table,
 * every key. Invariant: each key of either arm's resolved configuration is in the second table. */
#include <string.h>

#include "report/page.h"

static int same_bytes(const char *a, size_t a_length, const char *b, size_t b_length) {
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

/* Finds the line of the key `wanted` in the text of a configuration. */
static int find_key(const char *text, const struct page_line *wanted, struct page_line *out) {
    while (page_next_line(&text, out))
        if (out->key_length > 0 &&
            same_bytes(out->key, out->key_length, wanted->key, wanted->key_length))
            return 1;
    return 0;
}

/* The name of the cause that owns this key; NULL: none does. */
static const char *cause_of(const struct page *page, const struct page_line *key) {
    const struct judgement *judgement = &page->judgement;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        struct page_line line;
        if (find_key(judgement->causes[i].keys, key, &line)) return judgement->causes[i].name;
    }
    return NULL;
}

static void put_value(struct html *html, int is_there, const struct page_line *line) {
    if (is_there)
        html_format(html, "<td class=\"w\">%-.*s</td>", (int)line->value_length, line->value);
    else
        html_raw(html, "<td class=\"w\"><em>has no such key</em></td>");
}

struct compared {
    struct page_line line[2];
    int there[2];
    int differs;
};

static void put_key(struct page *page, const struct compared *key, int with_cause) {
    struct html *html = &page->html;
    const struct page_line *named = &key->line[key->there[0] ? 0 : 1];
    html_raw(html, key->differs && !with_cause ? "<tr class=\"x\">" : "<tr>");
    html_format(html, "<th scope=\"row\" class=\"w\">%-.*s</th>", (int)named->key_length,
                named->key);
    put_value(html, key->there[0], &key->line[0]);
    put_value(html, key->there[1], &key->line[1]);
    if (with_cause) {
        const char *cause = cause_of(page, named);
        html_format(html, "<td>%s</td>", cause == NULL ? "none: no result depends on it" : cause);
    }
    html_raw(html, "</tr>\n");
}

/* The next key: those of the baseline in its order, then those that only the test arm has. */
static int next_key(const struct page *page, const char *at[2], struct compared *out) {
    for (int arm = 0; arm < 2; arm++)
        while (page_next_line(&at[arm], &out->line[arm])) {
            const struct page_line *line = &out->line[arm];
            const int other = 1 - arm;
            if (line->key_length == 0) continue;
            out->there[arm] = 1;
            out->there[other] =
                find_key(page->run[other]->plan.configuration, line, &out->line[other]);
            if (arm == 1 && out->there[0]) continue; /* it came with the baseline's */
            out->differs = !out->there[other] ||
                           !same_bytes(line->value, line->value_length, out->line[other].value,
                                       out->line[other].value_length);
            return 1;
        }
    return 0;
}

/* Writes a row for each key, or for each that differs; returns how many. */
static uint32_t put_keys(struct page *page, int all) {
    const char *at[2] = {page->run[0]->plan.configuration, page->run[1]->plan.configuration};
    struct compared key;
    uint32_t count = 0;
    while (next_key(page, at, &key)) {
        if (!all && !key.differs) continue;
        put_key(page, &key, !all);
        count++;
    }
    return count;
}

static void put_head(struct page *page, const char *caption, int with_cause) {
    struct html *html = &page->html;
    html_format(html,
                "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption>\n<thead><tr><th "
                "scope=\"col\">key</th><th scope=\"col\">%s</th><th scope=\"col\">%s</th>",
                caption, page->judgement.arms[0], page->judgement.arms[1]);
    html_raw(html, with_cause ? "<th scope=\"col\">cause</th>" : "");
    html_raw(html, "</tr></thead>\n<tbody>\n");
}

void page_configuration(struct page *page) {
    struct html *html = &page->html;
    page_section(page, "configuration", "Configuration");
    put_head(page, "What differs", 1);
    const uint32_t count = put_keys(page, 0);
    html_raw(html, "</tbody></table></div>\n");
    if (count == 0) html_raw(html, "<p>No key differs.</p>\n");
    html_raw(html, "<details><summary>Every key of both arms, resolved</summary>\n");
    put_head(page, "All keys", 0);
    (void)put_keys(page, 1);
    html_raw(html, "</tbody></table></div></details>\n");
    page_section_end(page);
}
