/* SPDX-License-Identifier: Apache-2.0
 * The causes once more: by other measures, and their shares after earlier updates.
 *
 * As in the verdict's own words, these are shown where runs are exact and there are two to five
 * causes. Where runs are noisy they are figures of single runs with the noise in them, so a
 * sentence stands in their place. */
#include <math.h>
#include <string.h>

#include "report/bars.h"
#include "report/page.h"

static void put_heads(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        html_format(html, "<th scope=\"col\" class=\"r\">%-s</th>", judgement->causes[i].name);
    html_raw(html, "</tr></thead>\n<tbody>\n");
}

static void put_rounded(struct html *html, double value, int digits) {
    if (isnan(value))
        html_raw(html, "<td class=\"r\">not measured</td>");
    else
        html_format(html, "<td class=\"r\">%.*g</td>", digits, value);
}

static void put_measures(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    int otherwise = 0;
    if (judgement->measure_count == 0) return;
    html_raw(html, "<div class=\"scroll\" tabindex=\"0\"><table><caption>By other measures"
                   "</caption>\n<thead><tr><th scope=\"col\">measure</th><th scope=\"col\" "
                   "class=\"r\">whole</th>");
    put_heads(page);
    for (uint32_t m = 0; m < judgement->measure_count; m++) {
        const struct judged_measure *measure = &judgement->measures[m];
        html_format(html, "<tr><th scope=\"row\" class=\"w\">%s</th>", measure->words);
        put_rounded(html, measure->whole, 4);
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            html_format(html, "<td class=\"r\">%.4g / %.4g</td>", measure->alone[i],
                        measure->without[i]);
        html_raw(html, "</tr>\n");
        otherwise |= measure->ranks_otherwise;
    }
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, "After the last update, against the baseline: the test arm (whole), and for "
                    "each cause the baseline with this cause only / the test arm with this cause "
                    "repaired. Four digits.");
    if (otherwise)
        page_note(page, "A measure ranks the causes otherwise than the way of the parameters.");
}

static struct bars bars_of_marks(const struct judgement *judgement) {
    struct bars bars = {0.0, 1.0};
    for (uint32_t m = 0; m < judgement->mark_count; m++)
        bars_stretch_parts(&bars, judgement->marks[m].share, judgement->cause_count);
    return bars;
}

static void put_mark(struct page *page, const struct bars *bars, const struct judged_mark *mark) {
    struct html *html = &page->html;
    html_format(html, "<tr><th scope=\"row\" class=\"r\">%ju</th>", mark->update);
    put_rounded(html, mark->whole, 5);
    html_raw(html, "<td>");
    bars_write_parts(html, bars, mark->share, page->judgement.cause_count);
    html_raw(html, "</td>");
    for (uint32_t i = 0; i < page->judgement.cause_count; i++) {
        html_raw(html, "<td class=\"r\">");
        page_percent(page, mark->share[i]);
        html_raw(html, "</td>");
    }
    html_raw(html, "</tr>\n");
}

static void put_legend(struct page *page) {
    struct html *html = &page->html;
    html_raw(html, "<p class=\"legend\">");
    for (uint32_t i = 0; i < page->judgement.cause_count; i++) {
        html_raw(html, "<span>");
        bars_write_key(html, i);
        html_format(html, "%s</span> ", page->judgement.causes[i].name);
    }
    html_raw(html, "</p>\n");
}

static void put_marks(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct bars bars = bars_of_marks(judgement);
    html_raw(html, "<h3>Shares over time</h3>\n");
    put_legend(page);
    html_raw(html, "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\" "
                   "class=\"r\">update</th><th scope=\"col\" class=\"r\">|A-B|</th><th "
                   "scope=\"col\"></th>");
    put_heads(page);
    for (uint32_t m = 0; m < judgement->mark_count; m++)
        put_mark(page, &bars, &judgement->marks[m]);
    html_raw(html, "</tbody></table></div>\n");
    page_note(page,
              "Of |A-B| after that update. Each bar is the causes end to end, in the order of "
              "the columns; shares below 0 lie left of the line. A share at the end is a "
              "share at that update.");
}

void page_measures(struct page *page) {
    const struct judgement *judgement = &page->judgement;
    if (judgement->cause_count < 2 || judgement->mark_count == 0) return;
    if (judgement->floor != FLOOR_EXACT) {
        page_note(page, "Other measures and earlier updates were recorded of single runs. Their "
                        "noise is in every figure, so they are not shown.");
        return;
    }
    put_measures(page);
    put_marks(page);
}
