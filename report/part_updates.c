/* SPDX-License-Identifier: Apache-2.0
 * Every update of both arms as a table, and every run of the trace. Invariant: up to PAGE_ROWS_MAX
 * updates each is a row; of more, the page says what is left out. */
#include <math.h>
#include <string.h>

#include "report/page.h"

#define OPEN_UPDATES 60 /* up to so many rows, about a printed page, the table is open at first */

static void put_cell(struct html *html, double value, int digits) {
    html_format(html, "<td class=\"r\">%.*g</td>", digits, value);
}

static void put_missing(struct html *html) {
    html_raw(html, "<td class=\"r\">-</td>");
}

static const struct record *record_at(const struct page *page, int arm, uint64_t i) {
    return i < page->run[arm]->updates ? trace_row(page->run[arm], i) : NULL;
}

/* A column of both arms: an enum record_group of the parameter group that parts first, or an enum
 * record_real. */
static void put_arms(struct page *page, uint64_t i, int of_group, int column) {
    for (int arm = 0; arm < 2; arm++) {
        const struct record *record = record_at(page, arm, i);
        const uint32_t group = judgement_lr_group(&page->judgement);
        if (record == NULL || (of_group && page->run[arm]->plan.shape.groups <= group))
            put_missing(&page->html);
        else
            put_cell(&page->html, of_group ? record->groups[group][column] : record->reals[column],
                     7);
    }
}

static void put_pair(struct page *page, uint64_t i) {
    const char *const *arms = page->judgement.arms;
    const struct trace_pair *pair = judge_pair(page->image, arms[0], arms[1]);
    for (int column = PAIR_DISTANCE; column <= PAIR_DISTANCE_SHARE; column++)
        if (pair == NULL || i >= pair->updates)
            put_missing(&page->html);
        else
            put_cell(&page->html, trace_pair_row(pair, i)->reals[column], 4);
}

/* Says whether all was equal up to this update, from the chained digests of the two arms. */
static void put_bits(struct page *page, const struct record *a, const struct record *b) {
    html_raw(&page->html,
             a == NULL || b == NULL ? "<td>-</td>"
             : memcmp(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) == 0
                 ? "<td>equal</td>"
                 : "<td>differ</td>");
}

static void put_row(struct page *page, uint64_t i) {
    struct html *html = &page->html;
    const struct record *a = record_at(page, 0, i), *b = record_at(page, 1, i);
    const uint64_t step = a != NULL ? a->step : b->step;
    html_raw(html, page->judgement.first_step >= 0 && step == (uint64_t)page->judgement.first_step
                       ? "<tr class=\"x\">"
                       : "<tr>");
    html_format(html, "<th scope=\"row\" class=\"r\">%ju</th>", step);
    put_bits(page, a, b);
    put_arms(page, i, 0, REAL_LOSS);
    if (a == NULL || b == NULL)
        put_missing(html);
    else
        put_cell(html, a->reals[REAL_LOSS] - b->reals[REAL_LOSS], 3);
    put_arms(page, i, 1, GROUP_LR_APPLIED);
    put_arms(page, i, 1, GROUP_LR_LOGGED);
    put_arms(page, i, 0, REAL_GRAD_NORM);
    put_pair(page, i);
    html_raw(html, "</tr>\n");
}

static const char head[] =
    "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th rowspan=\"2\" scope=\"col\" "
    "class=\"r\">update</th><th rowspan=\"2\" scope=\"col\">bits so far</th><th colspan=\"3\" "
    "scope=\"colgroup\">loss</th><th colspan=\"2\" scope=\"colgroup\">LR applied</th><th "
    "colspan=\"2\" scope=\"colgroup\">LR logged</th><th colspan=\"2\" scope=\"colgroup\">gradient "
    "norm</th><th colspan=\"2\" scope=\"colgroup\">parameters</th></tr>\n<tr><th scope=\"col\" "
    "class=\"r\">A</th><th scope=\"col\" class=\"r\">B</th><th scope=\"col\" "
    "class=\"r\">A-B</th><th scope=\"col\" class=\"r\">A</th><th scope=\"col\" "
    "class=\"r\">B</th><th scope=\"col\" class=\"r\">A</th><th scope=\"col\" class=\"r\">B</th><th "
    "scope=\"col\" class=\"r\">A</th><th scope=\"col\" class=\"r\">B</th><th scope=\"col\" "
    "class=\"r\">|A-B|</th><th scope=\"col\" class=\"r\">over travel</th></tr></thead>\n<tbody>\n";

static void put_table(struct page *page, uint64_t rows) {
    struct html *html = &page->html;
    html_raw(html, rows <= OPEN_UPDATES ? "<details open=\"open\">" : "<details>");
    html_format(html, "<summary>%ju updates</summary>\n", rows);
    html_raw(html, head);
    for (uint64_t i = 0; i < rows; i++)
        if (page_row_shown(i, rows)) put_row(page, i);
    html_raw(html, "</tbody></table></div></details>\n");
}

static void note_rows(struct page *page, uint64_t rows) {
    struct html *html = &page->html;
    if (page_row_stride(rows) > 1)
        html_format(html,
                    "<p class=\"note\">Thinned: one row in %ju, and the last one. <code>twinstep "
                    "export</code> and h5py give all.</p>\n",
                    page_row_stride(rows));
    if (rows > OPEN_UPDATES)
        page_note(page, "Printed only when opened: on paper this table takes a page for about 60 "
                        "updates.");
    page_note(page,
              "Seven digits; differences and distances fewer. Whether bits are equal is told "
              "from digests, never from these digits. over travel: |A-B| over the distance of "
              "A from its start. The shaded row is the first difference.");
    if (page->judgement.masters)
        page_note(page, "Parameters here are the copies that the models compute with; shares are "
                        "of the masters.");
    const uint32_t group = judgement_lr_group(&page->judgement);
    html_format(html, "<p class=\"note\">LR of parameter group %u, counted from 0%s.</p>\n", group,
                group > 0 ? ": the first whose applied LR differs" : "");
}

void page_updates(struct page *page) {
    const uint64_t a = page->run[0]->updates, b = page->run[1]->updates;
    const uint64_t rows = a > b ? a : b;
    page_section(page, "updates", "Update by update");
    if (rows == 0) {
        html_raw(&page->html, "<p>No update was finished.</p>\n");
    } else {
        put_table(page, rows);
        note_rows(page, rows);
    }
    page_section_end(page);
}

/* ---- runs ---- */

static const char *role_of(const struct page *page, const struct trace_run *run) {
    if (strcmp(run->plan.id, page->judgement.arms[0]) == 0) return "baseline arm";
    if (strcmp(run->plan.id, page->judgement.arms[1]) == 0) return "test arm";
    if (run->plan.mask != 0) return "hybrid of the arms";
    if (strcmp(run->plan.id, "twin") == 0) return "baseline, one weight one unit off";
    return "repeat of an arm";
}

static void put_run(struct page *page, const struct trace_run *run, const char *planned) {
    struct html *html = &page->html;
    html_format(html,
                "<tr><th scope=\"row\" class=\"w\">%-s</th><td>%s</td><td>%s</td>"
                "<td class=\"r\">%ju%s%s</td>",
                run->plan.id, role_of(page, run), run->plan.arm, run->updates,
                planned[0] == '\0' ? "" : " of ", planned);
    if (run->updates > 0)
        put_cell(html, trace_row(run, run->updates - 1)->reals[REAL_LOSS], 7);
    else
        put_missing(html);
    html_raw(html, "</tr>\n");
}

void page_runs(struct page *page) {
    struct html *html = &page->html;
    const char *planned = page_attribute(page, "", "steps");
    page_section(page, "runs", "Runs");
    html_raw(html, page->image->run_count <= 6 || !page->image->complete ? "<details open=\"open\">"
                                                                         : "<details>");
    html_format(html,
                "<summary>%u runs were trained for this verdict</summary>\n<div class=\"scroll\" "
                "tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">run</th><th "
                "scope=\"col\">what</th><th scope=\"col\">starts from</th><th scope=\"col\" "
                "class=\"r\">updates</th><th scope=\"col\" class=\"r\">last loss</th></tr>"
                "</thead>\n<tbody>\n",
                page->image->run_count);
    for (uint32_t i = 0; i < page->image->run_count; i++)
        put_run(page, &page->image->runs[i], planned);
    html_raw(html, "</tbody></table></div></details>\n");
    page_section_end(page);
}
