/* SPDX-License-Identifier: Apache-2.0
 * What mixtures of causes do where the arms lie inside the floor, in words. Computes nothing new.
 */
#include "evidence/judge_rows.h"

static void put_names(const struct judgement *judgement, uint32_t mask, struct row_pen *pen) {
    int first = 1;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if ((mask >> i & 1u) == 0) continue;
        row_put(pen, "%s%s", first ? "" : " + ", judgement->causes[i].name);
        first = 0;
    }
}

/* "schedule 0.0409, normalisation 0.0204": of mixtures that are beyond the floor, the least that
 * they move the weights by. */
static void put_beyond(const struct judgement *judgement, const struct judged_mixture *of,
                       struct row_pen *pen) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (of[i].is_beyond)
            row_put(pen, "%s%s %.3g", count++ == 0 ? "" : ", ", judgement->causes[i].name,
                    of[i].size.low);
}

static uint32_t count_beyond(const struct judgement *judgement, const struct judged_mixture *of) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        count += (uint32_t)of[i].is_beyond;
    return count;
}

static void put_bound(const struct judged_mixtures *of, struct row_pen *pen) {
    if (of->bound > 0.0)
        row_put(pen, "the arms are at most %.3g apart", of->bound);
    else
        row_put(pen, "%u runs of each arm ended in the same weights", of->runs);
}

static void put_sizes(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_mixtures *const of = &judgement->mixtures;
    if (count_beyond(judgement, of->alone) > 0) {
        row_put(pen, "alone a cause moves the weights by at least: ");
        put_beyond(judgement, of->alone, pen);
    } else if (count_beyond(judgement, of->without) > 0) {
        row_put(pen, "with one cause repaired they would be apart by at least: ");
        put_beyond(judgement, of->without, pen);
    } else {
        row_put(pen, "one mixture moves the weights by at least %.3g: ", of->farthest_low);
        put_names(judgement, of->farthest, pen);
    }
}

void judge_put_mixtures(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_mixtures *const of = &judgement->mixtures;
    if (of->beyond == 0) {
        row_put(pen, "; no cause is named.");
        return;
    }
    row_put(pen, "%s",
            judgement->word == WORD_NEARLY   ? ". The causes cancel, or nearly: "
            : judgement->word == WORD_OPPOSE ? ". Causes oppose each other: "
                                             : ". Causes act all the same: ");
    put_bound(of, pen);
    row_put(pen, ", but ");
    if (judgement->word == WORD_OPPOSE) {
        row_put(pen, "with one cause repaired they would be apart by at least: ");
        put_beyond(judgement, of->without, pen);
    } else {
        put_sizes(judgement, pen);
    }
    row_put(pen, ".");
}

static void put_one(const char *what, const struct judged_mixture *of, struct row_pen *pen) {
    row_put(pen, "%s %.4g [%.4g, %.4g], p = %.4g%s", what, of->size.value, of->size.low,
            of->size.high, of->p, of->is_beyond ? ", beyond repeats" : "");
}

void judge_row_mixtures(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_mixtures *const of = &judgement->mixtures;
    if (of->unasked[0] != '\0') {
        row_add(pen, ROW_MIXTURES, "whether causes cancel was not asked: %s", of->unasked);
        return;
    }
    if (of->runs == 0) return;
    row_add(pen, ROW_MIXTURES,
            "%u of %u go farther from %s than repeats do: %u runs of each, labels permuted, "
            "p <= %.4g, which holds alpha = %g for all together",
            of->beyond, of->count, judgement->arms[0], of->runs, of->level, judgement->alpha);
    row_put(pen, "\n");
    put_bound(of, pen);
    row_put(pen, "; noise of runs taken out, intervals at %g %%", 100.0 * of->confidence);
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        row_put(pen, "\n%s", judgement->causes[i].name);
        put_one(" alone", &of->alone[i], pen);
        put_one("; repaired", &of->without[i], pen);
    }
}
