/* SPDX-License-Identifier: Apache-2.0
 * Whether the test arm got worse: a table for each set of rows, with what each gap was held
 * against. Nothing is written where nothing was measured. */
#include <math.h>

#include "report/page.h"

static void put_value(struct html *html, double value, int digits) {
    if (isnan(value))
        html_raw(html, "<td class=\"r\">not measured</td>");
    else
        html_format(html, "<td class=\"r\">%.*g</td>", digits, value);
}

static void put_measure(struct html *html, const struct judged_eval_measure *of) {
    html_format(html, "<tr><th scope=\"row\" class=\"w\">%s</th>", of->words);
    for (int arm = 0; arm < 2; arm++)
        put_value(html, of->start[arm], 6);
    for (int arm = 0; arm < 2; arm++)
        put_value(html, of->end[arm], 6);
    put_value(html, of->gap, 3);
    put_value(html, of->floor, 2);
    put_value(html, of->response, 2);
    put_value(html, of->p, 2);
    html_format(html, "<td>%s</td></tr>\n", eval_verdict(of));
}

static void put_heads(struct page *page) {
    struct html *html = &page->html;
    const char *const *arms = page->judgement.arms;
    html_raw(html, "<thead><tr><th scope=\"col\">measure</th>");
    for (int i = 0; i < 4; i++)
        html_format(html, "<th scope=\"col\" class=\"r\">%s, %s</th>", arms[i % 2],
                    i < 2 ? "before update 1" : "at the end");
    html_raw(html, "<th scope=\"col\" class=\"r\">gap</th><th scope=\"col\" class=\"r\">A/A at most"
                   "</th><th scope=\"col\" class=\"r\">one ulp</th><th scope=\"col\" class=\"r\">p"
                   "</th><th scope=\"col\">the gap is</th></tr></thead>\n<tbody>\n");
}

/* Where pairs have equal rewards: how many, since an accuracy counts them as wrong. */
static void put_ties(struct page *page, const struct judged_eval_set *set) {
    if (set->count <= EVAL_ACCURACY) return;
    const struct judged_eval_measure *const of = &set->measures[EVAL_ACCURACY];
    if (!(of->ties[0] > 0.0 || of->ties[1] > 0.0)) return;
    html_format(
        &page->html,
        "<p>Of %ju pairs, %.0f of %s and %.0f of %s are exact ties, which count as wrong in "
        "reward accuracy%s.</p>\n",
        (uintmax_t)set->rows, of->ties[0], page->judgement.arms[0], of->ties[1],
        page->judgement.arms[1], of->word == EVAL_TIED ? ", so it cannot be compared" : "");
}

static void put_set(struct page *page, const struct judged_eval_set *set) {
    struct html *html = &page->html;
    html_raw(html, "<div class=\"scroll\" tabindex=\"0\"><table><caption>");
    if (set->is_held_out)
        html_format(html, "On %ju held-out rows: %s", (uintmax_t)set->rows,
                    page->judgement.eval.rows);
    else
        html_format(html, "On %ju rows that both arms trained on", (uintmax_t)set->rows);
    html_raw(html, "</caption>\n");
    put_heads(page);
    for (uint32_t i = 0; i < set->count; i++)
        put_measure(html, &set->measures[i]);
    html_raw(html, "</tbody></table></div>\n");
    put_ties(page, set);
}

void page_eval(struct page *page) {
    const struct judged_eval *eval = &page->judgement.eval;
    if (eval->set_count == 0) return;
    page_section(page, "eval", "Did it get worse?");
    for (uint32_t i = 0; i < eval->set_count; i++)
        if (eval->sets[i].rows > 0) put_set(page, &eval->sets[i]);
    page_note(
        page,
        "Last weights of both arms on the same rows; the gap is test less baseline. "
        "&quot;A/A at most&quot; is the largest gap of two runs that are meant to be "
        "the same, &quot;one ulp&quot; that of a run in which one weight of the baseline began one "
        "unit in the last place off, p that of the floor's test on this figure.");
    page_section_end(page);
}
