/* SPDX-License-Identifier: Apache-2.0
 * How much of the difference each cause makes, what causes make together, the floor and closure.
 *
 * Shares and interactions are those of the judgement; where there are none, a sentence says why. */
#include <math.h>
#include <string.h>

#include "report/bars.h"
#include "report/page.h"

void page_percent(struct page *page, double share) {
    if (isnan(share))
        html_raw(&page->html, "not determined");
    else
        html_format(&page->html, "%.4g %%", 100.0 * share);
}

/* Whether it is known from when on causes act alone. Noisy runs differ from the first update on,
 * whatever a cause does, so there it means nothing. */
static int has_acted(const struct judgement *judgement) {
    if (judgement->floor != FLOOR_EXACT) return 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (judgement->causes[i].acted >= 0) return 1;
    return 0;
}

static void put_acted(struct html *html, const struct judged_cause *cause) {
    if (cause->acted > 0)
        html_format(html, "<td class=\"n\">from update %ju</td>", (uintmax_t)cause->acted);
    else
        html_format(html, "<td class=\"n\">%s</td>",
                    cause->acted == 0 ? "in no update" : "not seen");
}

/* The interval that holds the noise of runs is symmetric, so half its width says it; and that is
 * often less than the four digits of a share could show. */
static void put_interval(struct page *page, const struct attributed *share) {
    struct html *html = &page->html;
    if (isnan(share->low) || isnan(share->high)) {
        html_raw(html, "not measured");
    } else if (share->low == share->high) {
        html_raw(html, page->judgement.sample.orders > 0 ? "the same in every order" : "exact");
    } else if (page->judgement.projection.runs > 0) {
        html_format(html, "&#177; %.2g %%", 50.0 * (share->high - share->low));
    } else {
        page_percent(page, share->low);
        html_raw(html, " to ");
        page_percent(page, share->high);
    }
}

static void put_size(struct page *page, const struct attributed *of) {
    struct html *html = &page->html;
    html_raw(html, "<td class=\"r\">");
    if (isnan(of->value))
        html_raw(html, "not trained");
    else
        page_percent(page, of->value);
    html_raw(html, "</td>");
}

static void put_cause(struct page *page, const struct judged_cause *cause, const struct bars *bars,
                      int acted) {
    struct html *html = &page->html;
    html_format(html, "<tr><th scope=\"row\">%-s</th><td class=\"r\">", cause->name);
    page_percent(page, cause->share.value);
    html_raw(html, "</td><td>");
    bars_write(html, bars, cause->share.value, cause->share.low, cause->share.high);
    html_raw(html, "</td><td class=\"n\">");
    put_interval(page, &cause->share);
    html_raw(html, "</td>");
    put_size(page, &cause->left);
    put_size(page, &cause->alone);
    if (acted) put_acted(html, cause);
    html_raw(html, "</tr>\n");
}

/* Whether there are interactions. They need the distances of all hybrids, so sampled shares have
 * none; and projections just add up. */
static int has_interactions(const struct judgement *judgement) {
    return judgement->cause_count >= 2 && !judgement_is_estimated(judgement);
}

/* The one scale of the bars of shares and of interactions, so that they compare. */
static struct bars bars_of(const struct judgement *judgement) {
    struct bars bars = {0.0, 1.0};
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct attributed *const share = &judgement->causes[i].share;
        bars_stretch(&bars, share->value);
        bars_stretch(&bars, share->low);
        bars_stretch(&bars, share->high);
    }
    if (!has_interactions(judgement)) return bars;
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++)
        if ((mask & (mask - 1)) != 0) bars_stretch(&bars, judgement->dividends[mask]);
    return bars;
}

/* Says which error the intervals of sampled shares hold. */
static void put_sample(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct judged_sample *sample = &judgement->sample;
    html_format(html,
                "<p>Shares are estimated from %u sampled orders of entry, %u of them reverses of "
                "the others, through %u hybrids of the arms. All intervals hold together at alpha "
                "= %g (Student's t over %u pairs of orders, nominal): the error of sampling "
                "orders%s.</p>\n",
                sample->orders, sample->orders / 2, sample->hybrids, sample->alpha,
                sample->orders / 2,
                judgement->floor == FLOOR_EXACT ? "" : " and the noise of runs");
}

static void put_projection(struct page *page) {
    const struct judged_projection *projection = &page->judgement.projection;
    html_format(
        &page->html,
        "<p>Every hybrid was trained %u times, each time with its own order of sums. Shares "
        "are of the way from one arm to the other, with the noise of runs taken out; each "
        "interval holds by itself at %g %% (jackknife over runs, Student&#39;s t): the error "
        "from the noise of runs.</p>\n",
        projection->runs, 100.0 * projection->confidence);
}

/* Says which causes the intervals put in an order, and which they do not. */
static void put_places(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    html_raw(html, "<ul>\n");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        if (cause->place[0] == cause->place[1])
            html_format(html, "<li>%s: place %u</li>\n", cause->name, cause->place[0]);
        else
            html_format(html, "<li>%s: place %u to %u, not ordered</li>\n", cause->name,
                        cause->place[0], cause->place[1]);
    }
    html_raw(html, "</ul>\n");
}

static void put_causes(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    const struct bars bars = bars_of(judgement);
    const int acted = has_acted(judgement);
    html_raw(html, "<div class=\"scroll\" tabindex=\"0\"><table><caption>Shares</caption>\n<thead>"
                   "<tr><th scope=\"col\">cause</th><th scope=\"col\" class=\"r\">share</th><th "
                   "scope=\"col\"></th><th scope=\"col\" class=\"n\">");
    html_raw(html, judgement->sample.orders > 0     ? "interval: sampling of orders"
                   : judgement->projection.runs > 0 ? "interval: noise of runs"
                                                    : "interval of the share");
    html_raw(html, "</th><th scope=\"col\" class=\"r\">left when repaired</th><th scope=\"col\" "
                   "class=\"r\">alone</th>");
    if (acted) html_raw(html, "<th scope=\"col\" class=\"n\">acts, alone</th>");
    html_raw(html, "</tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        put_cause(page, &judgement->causes[i], &bars, acted);
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, judgement->by_distance
                        ? "The trace holds no projections. share: Shapley value of the "
                          "distance, which has no sign, so causes that oppose each other do not "
                          "show."
                        : "share: Shapley value of the way from one arm to the other; below 0 the "
                          "cause leads away from the test arm.");
    page_note(page, "left when repaired: distance of the arms when the test arm is repaired in "
                    "this cause alone. alone: distance of the baseline with this cause only. Both "
                    "in parts of |A-B|.");
    if (acted)
        page_note(page,
                  "acts, alone: the first update after which the baseline with this cause only "
                  "is another training, bit for bit.");
    if (judgement->sample.orders > 0) put_sample(page);
    if (judgement->projection.runs > 0) put_projection(page);
    if (judgement_is_estimated(judgement)) put_places(page);
    if (judgement->projection.runs == 0 && judgement->projection.reason != NULL &&
        judgement->projection.reason[0] != '\0')
        html_format(html, "<p>No interval of the noise of runs: %s.</p>\n",
                    judgement->projection.reason);
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
    if (!has_interactions(judgement)) return;
    html_raw(html, "<div class=\"scroll\" "
                   "tabindex=\"0\"><table><caption>Interactions</caption>\n<thead><tr><th "
                   "scope=\"col\">causes together</th><th scope=\"col\" class=\"r\">of |A-B|</th>"
                   "<th scope=\"col\"></th></tr></thead>\n<tbody>\n");
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++) {
        if ((mask & (mask - 1)) == 0) continue;
        html_raw(html, "<tr><th scope=\"row\">");
        put_mask(html, judgement, mask);
        html_raw(html, "</th><td class=\"r\">");
        page_percent(page, judgement->dividends[mask]);
        html_raw(html, "</td><td>");
        bars_write(html, &bars, judgement->dividends[mask], (double)NAN, (double)NAN);
        html_raw(html, "</td></tr>\n");
    }
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, "What causes make together beyond what fewer of them make (Harsanyi "
                    "dividend). Below 0: together less than the parts.");
}

/* Says why there are no shares; NULL when there are. */
static const char *without_shares(const struct judgement *judgement) {
    switch (judgement->verdict) {
    case VERDICT_IDENTICAL:
        return "None: the arms are equal, so there is nothing to share out.";
    case VERDICT_INSIDE_FLOOR:
        return judgement->mixtures.beyond > 0
                   ? "None: the difference is not larger than that of repeats, so there is nothing "
                     "to share out. Causes act all the same: what their mixtures do stands above."
                   : "None: the difference is not larger than that of repeats, so no cause is "
                     "named.";
    case VERDICT_SAME_TRAINING:
    case VERDICT_SAME_WEIGHTS:
        return "None: the weights are equal after every update, so there is nothing to share out.";
    case VERDICT_OUTSIDE_FLOOR:
        break;
    default:
        return "Untestable: without a verdict no cause is named. What is missing stands above.";
    }
    if (judgement->cause_count == 0) return "None: the configurations are equal.";
    if (!judgement->attributed) return "Not computed: no distance of the hybrids was measured.";
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
        html_format(html, "<p>%s</p>", why);
        page_section_end(page);
        return;
    }
    html_format(html, "<p>Of |A-B|%s = %.6g at the end of training%s.", judgement_points(judgement),
                judgement->total,
                judgement->projection.runs > 0 ? ", the noise of runs taken out" : "");
    if (judgement->cause_count == 1) html_raw(html, " Nothing else differs.");
    html_raw(html, "</p>\n");
    put_causes(page);
    put_interactions(page);
    page_measures(page);
    page_section_end(page);
}

/* ---- floor and closure ---- */

static void put_fact(struct html *html, const char *name, const char *text) {
    html_format(html, "<dt>%s</dt><dd>%s</dd>", name, text);
}

static void put_number(struct html *html, const char *name, double value, int digits) {
    if (isnan(value))
        html_format(html, "<dt>%s</dt><dd>not measured</dd>\n", name);
    else
        html_format(html, "<dt>%s</dt><dd>%.*g</dd>\n", name, digits, value);
}

static const char *equal_words(int equal) {
    return equal < 0 ? "not run" : equal ? "equal, bit for bit" : "differs";
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
    if (judgement->closure == CLOSURE_ABSENT) {
        html_raw(html, "absent: no hybrid of the arms was trained that could close anything");
    } else if (judgement->closure == CLOSURE_WITHIN_FLOOR) {
        html_format(html,
                    "within-floor: the baseline with every difference of the test arm is as near "
                    "to the test arm's runs as these are to each other; it could be the farthest "
                    "by chance alone with probability %.2g",
                    judgement->closure_noise.alpha);
    } else if (judgement->closure != CLOSURE_EXACT) {
        html_raw(html, "open: the baseline with every difference of the test arm does not equal "
                       "the test arm");
    } else {
        html_raw(html, "exact: the baseline with every difference of the test arm, ");
        if (judgement->closure_from > 0)
            html_format(html, "forked before update %ju", judgement->closure_from);
        else
            html_raw(html, "trained from its own start");
        html_format(html, ", equals the test arm, bit for bit, through update %ju",
                    judgement->updates);
    }
    html_raw(html, "</dd>\n");
}

void page_floor(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    page_section(page, "floor", "Floor and closure");
    html_raw(html,
             "<p>The floor is how much runs differ that are meant to be the same.</p>\n<dl>\n");
    if (judgement->floor == FLOOR_EXACT) {
        put_fact(html, "kind", "exact: this mode promises equal bits, so any difference is one");
        put_fact(html, "repeat in the same process, or a copy of it",
                 equal_words(judgement->floor_equal[0]));
        put_fact(html,
                 judgement->served > 0 ? "test arm in a second process"
                                       : "repeat in a second process",
                 equal_words(judgement->floor_equal[1]));
    } else if (judgement->floor == FLOOR_NONE || isnan(judgement->floor_distance)) {
        put_fact(html, "kind", "not measured");
    } else {
        put_measured(html, judgement);
    }
    put_closure(html, judgement);
    html_format(html, "<dt>expectation</dt><dd>%s%s%s</dd>\n",
                expectation_name(judgement->expectation), judgement->missed[0] == '\0' ? "" : ": ",
                judgement->missed);
    html_raw(html, "</dl>\n");
    page_section_end(page);
}
