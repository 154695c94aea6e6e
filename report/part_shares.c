/* SPDX-License-Identifier: Apache-2.0
 * How much of the difference each cause makes, and what causes make together; floor and closure.
 *
 * Shares and interactions are the judgement's; where there are none, words say why. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "report/page.h"

/* Range of bars: 0 to 1, more where a share leaves it. */
struct bars {
    double low, high;
};

static void stretch(struct bars *bars, double value) {
    if (!isfinite(value)) return;
    if (value < bars->low) bars->low = value;
    if (value > bars->high) bars->high = value;
}

static void put_bar(struct html *html, const struct bars *bars, double value) {
    const double width = bars->high - bars->low;
    const double zero = -bars->low / width * 1000.0, end = (value - bars->low) / width * 1000.0;
    html_raw(html, "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\">");
    if (isfinite(value)) {
        html_format(html, "<rect class=\"%s\" y=\"1\" height=\"8\" x=\"", value < 0.0 ? "m" : "p");
        html_place(html, value < 0.0 ? end : zero);
        html_raw(html, "\" width=\"");
        html_place(html, real_abs_f64(end - zero));
        html_raw(html, "\"/>");
    }
    html_raw(html, "<line y1=\"0\" y2=\"10\" x1=\"");
    html_place(html, zero);
    html_raw(html, "\" x2=\"");
    html_place(html, zero);
    html_raw(html, "\"/></svg>");
}

static void put_percent(struct html *html, double share) {
    if (isnan(share)) {
        html_raw(html, "not determined");
        return;
    }
    html_rounded(html, 100.0 * share, 4);
    html_raw(html, " %");
}

static void put_cause(struct html *html, const struct judged_cause *cause,
                      const struct bars *bars) {
    html_raw(html, "<tr><th scope=\"row\">");
    html_name(html, cause->name, strlen(cause->name));
    html_raw(html, "</th><td class=\"r\">");
    put_percent(html, cause->share);
    html_raw(html, "</td><td>");
    put_bar(html, bars, cause->share);
    html_raw(html, "</td><td class=\"r\">");
    html_rounded(html, cause->value, 6);
    html_raw(html, "</td><td class=\"r\">");
    if (isnan(cause->alone))
        html_raw(html, "not trained");
    else
        html_rounded(html, cause->alone, 6);
    html_raw(html, "</td><td>");
    if (isnan(cause->low) || isnan(cause->high)) {
        html_raw(html, "not measured");
    } else if (cause->low == cause->high) {
        html_raw(html, "exact");
    } else {
        put_percent(html, cause->low);
        html_raw(html, " to ");
        put_percent(html, cause->high);
    }
    html_raw(html, "</td></tr>\n");
}

/* One scale for shares and interactions, so that their bars compare. */
static struct bars bars_of(const struct judgement *judgement) {
    struct bars bars = {0.0, 1.0};
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        stretch(&bars, judgement->causes[i].share);
    for (uint32_t i = 0; i < judgement->cause_count && judgement->sample.orders > 0; i++) {
        stretch(&bars, judgement->causes[i].low);
        stretch(&bars, judgement->causes[i].high);
    }
    if (judgement->sample.orders > 0) return bars;
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++)
        if ((mask & (mask - 1)) != 0) stretch(&bars, judgement->dividends[mask] / judgement->total);
    return bars;
}

/* What the intervals of sampled shares are of, and what they do not put in an order. */
static void put_sample(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct judged_sample *sample = &judgement->sample;
    html_format(html,
                "<p>Shares are estimated from %u sampled orders of entry, %u of them reverses of "
                "the others, through %u mixtures of the arms. All intervals hold together at alpha "
                "= %g (Student's t over %u pairs of orders, nominal): the error of sampling orders "
                "only%s.</p>\n",
                sample->orders, sample->orders / 2, sample->mixtures, sample->alpha,
                sample->orders / 2,
                judgement->floor == FLOOR_EXACT ? "" : ", without the noise of runs");
    html_raw(html, "<ul>\n");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        html_raw(html, "<li>");
        html_text(html, cause->name);
        if (cause->place[0] == cause->place[1])
            html_format(html, ": place %u", cause->place[0]);
        else
            html_format(html, ": place %u to %u, not ordered", cause->place[0], cause->place[1]);
        html_raw(html, "</li>\n");
    }
    html_raw(html, "</ul>\n");
}

static void put_causes(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct bars bars = bars_of(judgement);
    html_raw(
        html,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>Shares</caption>\n<thead><tr><th "
        "scope=\"col\">cause</th><th scope=\"col\" class=\"r\">share</th><th scope=\"col\">"
        "</th><th scope=\"col\" class=\"r\">distance</th><th scope=\"col\" class=\"r\">alone"
        "</th><th scope=\"col\">interval of the share</th></tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        put_cause(html, &judgement->causes[i], &bars);
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, "share: Shapley value over |A-B| at the end; below 0 the cause brings the arms "
                    "closer. alone: distance of the baseline with this cause only. Six digits.");
    if (judgement->sample.orders > 0) put_sample(page);
}

static void put_mask(struct html *html, const struct judgement *judgement, uint32_t mask) {
    int first = 1;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if ((mask >> i & 1u) == 0) continue;
        html_raw(html, first ? "" : " &#215; ");
        html_text(html, judgement->causes[i].name);
        first = 0;
    }
}

static void put_interactions(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct bars bars = bars_of(judgement);
    if (judgement->cause_count < 2 || judgement->sample.orders > 0) return;
    html_raw(html, "<div class=\"scroll\" "
                   "tabindex=\"0\"><table><caption>Interactions</caption>\n<thead><tr><th "
                   "scope=\"col\">causes together</th><th scope=\"col\" class=\"r\">of |A-B|</th>"
                   "<th scope=\"col\"></th><th scope=\"col\" class=\"r\">distance</th></tr></thead>"
                   "\n<tbody>\n");
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++) {
        if ((mask & (mask - 1)) == 0) continue;
        html_raw(html, "<tr><th scope=\"row\">");
        put_mask(html, judgement, mask);
        html_raw(html, "</th><td class=\"r\">");
        put_percent(html, judgement->dividends[mask] / judgement->total);
        html_raw(html, "</td><td>");
        put_bar(html, &bars, judgement->dividends[mask] / judgement->total);
        html_raw(html, "</td><td class=\"r\">");
        html_rounded(html, judgement->dividends[mask], 6);
        html_raw(html, "</td></tr>\n");
    }
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, "What causes make together beyond what fewer of them make (Harsanyi "
                    "dividend). Below 0: together less than the parts.");
}

/* Why there are no shares; NULL when there are. */
static const char *without_shares(const struct judgement *judgement) {
    switch (judgement->verdict) {
    case VERDICT_IDENTICAL:
        return "None: the arms are equal, so there is nothing to share out.";
    case VERDICT_INSIDE_FLOOR:
        return "None: the difference is not larger than that of repeats, so no cause is named.";
    case VERDICT_OUTSIDE_FLOOR:
        break;
    default:
        return "Untestable: without a verdict no cause is named. What is missing stands above.";
    }
    if (judgement->cause_count == 0) return "None: the configurations are equal.";
    if (!judgement->attributed) return "Not computed: no distance of the mixtures was measured.";
    return judgement->total == 0.0
               ? "None: the weights are equal at the end, so there is no distance to share out."
               : NULL;
}

void page_shares(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const char *why = without_shares(judgement);
    page_section(page, "shares", "Causes and their shares");
    if (why != NULL) {
        html_element(html, "p", why);
        page_section_end(page);
        return;
    }
    html_raw(html, "<p>Of |A-B| = ");
    html_rounded(html, judgement->total, 6);
    html_raw(html, " at the end of training.");
    if (judgement->coupled)
        html_raw(html,
                 judgement->sample.orders > 0
                     ? " <strong>The causes act together</strong>: no share stands for itself."
                     : " <strong>The causes act together</strong>: no share stands for "
                       "itself; read the interactions.");
    if (judgement->cause_count == 1) html_raw(html, " Nothing else differs.");
    html_raw(html, "</p>\n");
    put_causes(page);
    put_interactions(page);
    page_section_end(page);
}

/* ---- floor and closure ---- */

static void put_fact(struct html *html, const char *name, const char *text) {
    html_element(html, "dt", name);
    html_element(html, "dd", text);
}

static void put_number(struct html *html, const char *name, double value, int digits) {
    html_element(html, "dt", name);
    html_raw(html, "<dd>");
    if (isnan(value))
        html_raw(html, "not measured");
    else
        html_rounded(html, value, digits);
    html_raw(html, "</dd>\n");
}

static const char *equal_words(int equal) {
    return equal < 0 ? "not run" : equal ? "equal, bit for bit" : "differs";
}

static void put_exact(struct html *html, const struct judgement *judgement) {
    put_fact(html, "kind", "exact: this mode promises equal bits, so any difference is one");
    put_fact(html, "repeat in the same process", equal_words(judgement->floor_equal[0]));
    put_fact(html, "repeat in a second process", equal_words(judgement->floor_equal[1]));
}

static void put_measured(struct html *html, const struct judgement *judgement) {
    put_fact(html, "kind",
             judgement->floor == FLOOR_FILE
                 ? "from a file: rank of d(A,B) among the distances of A/A pairs measured before"
             : judgement->floor == FLOOR_RANK
                 ? "measured: rank of d(A,B) among the distances of all pairs of runs"
                 : "measured: runs of both arms, each with its own order of sums, labels permuted");
    if (judgement->floor == FLOOR_FILE)
        html_format(html, "<dt>A/A pairs</dt><dd>%ju</dd>\n", (uintmax_t)judgement->floor_pairs);
    else
        html_format(html, "<dt>runs</dt><dd>%u + %u</dd>\n", judgement->floor_runs[0],
                    judgement->floor_runs[1]);
    put_number(html, "d(A,B)", judgement->floor_distance, 6);
    put_number(html,
               judgement->floor == FLOOR_FILE ? "largest distance of an A/A pair"
                                              : "largest distance inside an arm",
               judgement->floor_largest, 6);
    put_number(html, "p", judgement->p, 4);
    put_number(html, "least p of this design", judgement->smallest_p, 4);
    put_number(html, "alpha", judgement->alpha, 4);
    put_number(html, "power at 3 sigma", judgement->power, 3);
}

static void put_closure(struct html *html, const struct judgement *judgement) {
    html_raw(html, "<dt>closure</dt><dd>");
    if (!judgement->attributed || judgement->verdict != VERDICT_OUTSIDE_FLOOR) {
        html_raw(html, "not tested: no mixture of the arms was judged");
    } else if (judgement->closure == CLOSURE_WITHIN_FLOOR) {
        html_raw(html, "within-floor: the baseline with every difference of the test arm is as "
                       "near to the test arm's runs as these are to each other; it could be the "
                       "farthest by chance alone with probability ");
        html_rounded(html, judgement->closure_noise.alpha, 2);
    } else if (judgement->closure != CLOSURE_EXACT) {
        html_raw(html, "open: the baseline with every difference of the test arm does not equal "
                       "the test arm");
    } else {
        html_raw(html, "exact: the baseline with every difference of the test arm, ");
        if (judgement->closure_from > 0) {
            html_raw(html, "forked before update ");
            html_count(html, judgement->closure_from);
        } else {
            html_raw(html, "trained from its own start");
        }
        html_raw(html, ", equals the test arm, bit for bit, through update ");
        html_count(html, judgement->updates);
    }
    html_raw(html, "</dd>\n");
}

static void put_expectation(struct html *html, const struct judgement *judgement) {
    html_raw(html, "<dt>expectation</dt><dd>");
    html_text(html, expectation_name(judgement->expectation));
    if (judgement->missed[0] != '\0') {
        html_raw(html, ": ");
        html_text(html, judgement->missed);
    }
    html_raw(html, "</dd>\n");
}

void page_floor(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    page_section(page, "floor", "Floor and closure");
    html_raw(html,
             "<p>The floor is how much runs differ that are meant to be the same.</p>\n<dl>\n");
    if (judgement->floor == FLOOR_EXACT)
        put_exact(html, judgement);
    else if (judgement->floor == FLOOR_NONE || isnan(judgement->floor_distance))
        put_fact(html, "kind", "not measured");
    else
        put_measured(html, judgement);
    put_closure(html, judgement);
    put_expectation(html, judgement);
    html_raw(html, "</dl>\n");
    page_section_end(page);
}
