/* SPDX-License-Identifier: Apache-2.0
 * Ranks of the arms: how many there are, which samples each has, in which order their sums are
 * added, what each owns, and where replicas part. Nothing is shown where both arms are of one rank.
 *
 * Which samples are whose follows from the configuration, as law 21 deals them (ranks/tree.h); the
 * rest is what the trace holds. */
#include <stdlib.h>
#include <string.h>

#include "ranks/tree.h"
#include "report/page.h"

/* The value of a key in an arm's configuration; an empty one where there is no such key. */
static struct page_line value_of(const struct page *page, int arm, const char *key) {
    const char *text = page->run[arm]->plan.configuration;
    const size_t length = strlen(key);
    struct page_line line;
    while (page_next_line(&text, &line))
        if (line.key_length == length && memcmp(line.key, key, length) == 0) return line;
    return (struct page_line){"", "", 0, 0};
}

static int is_word(struct page_line line, const char *word) {
    return line.value_length == strlen(word) && memcmp(line.value, word, strlen(word)) == 0;
}

/* A count; `otherwise` where the key is missing or no number. */
static uint64_t number_of(const struct page *page, int arm, const char *key, uint64_t otherwise) {
    const struct page_line line = value_of(page, arm, key);
    uint64_t value = 0;
    if (line.value_length == 0 || line.value_length > 18) return otherwise;
    for (size_t i = 0; i < line.value_length; i++) {
        if (line.value[i] < '0' || line.value[i] > '9') return otherwise;
        value = value * 10 + (uint64_t)(line.value[i] - '0');
    }
    return value;
}

static uint64_t ranks_of(const struct page *page, int arm) {
    const uint64_t ranks = number_of(page, arm, "parallel.ranks", 1);
    return ranks <= TREE_SHARDS_MAX && ranks > 0 ? ranks : 1;
}

/* Ranks that the trace has columns for: data-parallel ones, or tensor-parallel ones that part. */
static uint32_t recorded(const struct page *page, int arm) {
    return page->run[arm]->plan.shape.ranks;
}

int page_has_ranks(const struct page *page) {
    for (int arm = 0; arm < 2; arm++)
        if (ranks_of(page, arm) > 1 || recorded(page, arm) > 1 ||
            number_of(page, arm, "parallel.tensor", 1) > 1)
            return 1;
    return 0;
}

/* Whether each rank closes a gradient of its own (law 22). */
static int closes(const struct page *page, int arm) {
    const struct page_line mode = value_of(page, arm, "numerics.mode");
    return is_word(mode, "shaped") || is_word(mode, "shuffled");
}

static void put_joined(struct page *page, int arm) {
    struct html *const html = &page->html;
    const uint64_t shards = number_of(page, arm, "numerics.shards", 1);
    const struct page_line order = value_of(page, arm, "parallel.reduce");
    if (ranks_of(page, arm) == 1)
        html_raw(html, "<td>nothing is joined</td>");
    else if (closes(page, arm))
        html_format(html, "<td>rounded gradients, %-.*s</td>", (int)order.value_length,
                    order.value);
    else if (shards == 1)
        html_raw(html, "<td>one chain, which ranks hand on</td>");
    else
        html_format(html, "<td>a tree over %ju shards%s</td>", (uintmax_t)shards,
                    is_word(value_of(page, arm, "parallel.sync"), "first")
                        ? ", of each rank's first micro-batch alone"
                    : is_word(value_of(page, arm, "parallel.keeps"), "last")
                        ? ", of each rank's last micro-batch alone"
                        : "");
}

static void put_dealt(struct page *page, int arm) {
    const struct page_line deal = value_of(page, arm, "parallel.deal");
    if (deal.value_length ==
        0) /* a key that is left out has its default (scenarios/config_read.c) */
        html_raw(&page->html, "<td>blocks</td>");
    else
        html_format(&page->html, "<td>%-.*s</td>", (int)deal.value_length, deal.value);
}

static void put_parts(struct page *page, int arm) {
    static const char *const words[] = {"every rank has all", "stage 1: masters and slots",
                                        "stage 2: gradient, masters and slots",
                                        "stage 3: rows of weights, gradient, masters and slots"};
    const uint64_t stage = number_of(page, arm, "parallel.zero", 0);
    const int parts = ranks_of(page, arm) > 1 && stage < COUNT_OF(words);
    html_format(&page->html, "<td>%s</td>", words[parts ? stage : 0]);
}

static void put_parting(struct page *page, int arm) {
    struct html *const html = &page->html;
    const struct judged_parting *const parting = &page->judgement.parting[arm];
    if (parting->update != 0)
        html_format(html, "<td>part at update %ju, rank %u, %-s</td>", (uintmax_t)parting->update,
                    (unsigned)parting->rank, parting->tensor);
    else if (recorded(page, arm) > 1)
        html_raw(html, "<td>equal after every update</td>");
    else
        html_raw(html, "<td>none</td>");
}

static void put_row(struct page *page, const char *what, void (*put)(struct page *, int)) {
    html_format(&page->html, "<tr><th scope=\"row\" class=\"w\">%s</th>", what);
    for (int arm = 0; arm < 2; arm++)
        put(page, arm);
    html_raw(&page->html, "</tr>\n");
}

static void put_count(struct page *page, const char *what, const char *key) {
    html_format(&page->html, "<tr><th scope=\"row\" class=\"w\">%s</th>", what);
    for (int arm = 0; arm < 2; arm++)
        html_format(&page->html, "<td>%ju</td>", (uintmax_t)number_of(page, arm, key, 1));
    html_raw(&page->html, "</tr>\n");
}

static void put_heads(struct page *page, const char *first, const char *caption) {
    html_format(&page->html,
                "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption>\n<thead><tr><th "
                "scope=\"col\">%s</th>",
                caption, first);
}

/* The samples of an update that a rank has, numbered from 0 in the update's order. */
static void put_samples(struct page *page, int arm, uint32_t rank) {
    struct html *const html = &page->html;
    const uint32_t ranks = (uint32_t)ranks_of(page, arm);
    const uint64_t shards = number_of(page, arm, "numerics.shards", 1);
    const uint64_t size = number_of(page, arm, "batch.size", 0);
    const int alone = closes(page, arm) || shards == 1 || shards > TREE_SHARDS_MAX;
    const uint32_t dealt = alone ? ranks : (uint32_t)shards;
    if (is_word(value_of(page, arm, "parallel.feeds"), "own-on-tensor") &&
        number_of(page, arm, "parallel.tensor", 1) > 1) {
        html_format(html, "<td>%ju of its own</td>", (uintmax_t)size);
        return;
    }
    if (ranks == 1 || size == 0) {
        html_raw(html, rank == 0 || ranks == 1 ? "<td>all</td>" : "<td></td>");
        return;
    }
    if (rank >= ranks) {
        html_raw(html, "<td></td>");
        return;
    }
    uint64_t first = tree_first_sample(tree_first_shard(rank, dealt, ranks), size, dealt);
    uint64_t end = tree_first_sample(tree_first_shard(rank + 1, dealt, ranks), size, dealt);
    if (is_word(value_of(page, arm, "parallel.feeds"),
                "same")) { /* law 21: sample i is rank 0's sample i */
        end -= first;
        first = 0;
    }
    if (end == first + 1)
        html_format(html, "<td>%ju</td>", (uintmax_t)first);
    else
        html_format(html, "<td>%ju to %ju</td>", (uintmax_t)first, (uintmax_t)(end - 1));
}

/* From when on a rank holds other bits than rank 0. */
static void put_other_bits(struct page *page, int arm, uint32_t rank) {
    struct html *const html = &page->html;
    const struct trace_run *const run = page->run[arm];
    if (rank == 0 || rank >= recorded(page, arm)) {
        html_raw(html, "<td></td>");
        return;
    }
    for (uint64_t i = 0; i < run->updates; i++) {
        const struct record *const row = trace_row(run, i);
        const int64_t tensor = row->ranks[rank][RANK_FIRST_TENSOR];
        if (tensor < 0) continue;
        const int named = (uint64_t)tensor < run->plan.shape.tensors;
        html_format(html, "<td>update %ju, %-s</td>", (uintmax_t)row->step,
                    named ? run->plan.tensors[tensor] : "a tensor without a name");
        return;
    }
    html_raw(html, "<td>never</td>");
}

static void put_ranks(struct page *page) {
    struct html *const html = &page->html;
    uint32_t most = 0;
    put_heads(page, "rank", "Rank by rank");
    for (int arm = 0; arm < 2; arm++) {
        const uint32_t own = recorded(page, arm) > ranks_of(page, arm)
                                 ? recorded(page, arm)
                                 : (uint32_t)ranks_of(page, arm);
        if (own > most) most = own;
        html_format(html,
                    "<th scope=\"col\">%s: samples</th><th scope=\"col\">%s: other bits than rank "
                    "0</th>",
                    page->judgement.arms[arm], page->judgement.arms[arm]);
    }
    html_raw(html, "</tr></thead>\n<tbody>\n");
    for (uint32_t rank = 0; rank < most; rank++) {
        html_format(html, "<tr><th scope=\"row\" class=\"r\">%u</th>", (unsigned)rank);
        for (int arm = 0; arm < 2; arm++) {
            put_samples(page, arm, rank);
            put_other_bits(page, arm, rank);
        }
        html_raw(html, "</tr>\n");
    }
    html_raw(html, "</tbody></table></div>\n");
    page_note(page, "Samples of a full update, numbered from 0 in its order. Other bits: the first "
                    "update after which weights, masters or optimizer slots of the rank differ "
                    "from those of rank 0, and the first such tensor. Where no key of an arm lets "
                    "ranks part, they share one copy, and <em>never</em> is so by construction.");
}

void page_ranks(struct page *page) {
    struct html *const html = &page->html;
    if (!page_has_ranks(page)) return;
    page_section(page, "ranks", "Ranks");
    put_heads(page, "of an arm", "Both arms");
    for (int arm = 0; arm < 2; arm++)
        html_format(html, "<th scope=\"col\">%s</th>", page->judgement.arms[arm]);
    html_raw(html, "</tr></thead>\n<tbody>\n");
    put_count(page, "data-parallel ranks", "parallel.ranks");
    put_count(page, "tensor-parallel ranks", "parallel.tensor");
    put_row(page, "samples are dealt by", put_dealt);
    put_row(page, "gradients are joined by", put_joined);
    put_row(page, "ranks own parts (ZeRO)", put_parts);
    put_row(page, "replicas", put_parting);
    html_raw(html, "</tbody></table></div>\n");
    put_ranks(page);
    page_section_end(page);
}
