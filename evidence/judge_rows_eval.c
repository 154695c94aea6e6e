/* SPDX-License-Identifier: Apache-2.0
 * Whether the test arm got worse, in words: a sentence for each set of rows, and the figures it
 * rests on. Computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <string.h>

/* How many measures of the set have this word and, where `good` is not 0, went that way: 1 better,
 * -1 worse. */
static uint32_t count_word(const struct judged_eval_set *set, enum eval_word word, int good) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->measures[i].word == word && (good == 0 || eval_side(&set->measures[i]) == good))
            count++;
    return count;
}

/* "loss and reward accuracy": the measures whose gap went this way. */
static void put_names(const struct judged_eval_set *set, int side, struct row_pen *pen) {
    const uint32_t all = count_word(set, EVAL_BEYOND, side);
    uint32_t put = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *of = &set->measures[i];
        if (of->word != EVAL_BEYOND || eval_side(of) != side) continue;
        row_put(pen, "%s%s", put == 0 ? "" : put + 1 < all ? ", " : " and ", of->words);
        put++;
    }
}

static void put_beyond(const struct judgement *judgement, const struct judged_eval_set *set,
                       struct row_pen *pen) {
    const uint32_t worse = count_word(set, EVAL_BEYOND, -1),
                   better = count_word(set, EVAL_BEYOND, 1);
    row_put(pen, "%s is ", judgement->arms[1]);
    if (worse == 0 && better == 0) row_put(pen, "neither worse nor better: only log-probs differ");
    if (worse > 0) row_put(pen, "worse in ");
    if (worse > 0) put_names(set, -1, pen);
    if (better > 0) row_put(pen, worse > 0 ? ", and better in " : "better in ");
    if (better > 0) put_names(set, 1, pen);
}

static const char *untestable_reason(const struct judgement *judgement) {
    if (judgement->floor == FLOOR_FILE) return "the floor file holds no such measurement";
    if (judgement->verdict == VERDICT_UNTESTABLE) return "the verdict is untestable, too";
    return "no floor was measured";
}

/* Names the arms with any value that is not finite, since a reward may be infinite where the loss
 * is 0. */
static void put_broken(const struct judgement *judgement, const struct judged_eval_set *set,
                       struct row_pen *pen) {
    int broken[2] = {0, 0};
    for (uint32_t i = 0; i < set->count; i++)
        for (int arm = 0; arm < 2; arm++)
            broken[arm] |= !isfinite(set->measures[i].end[arm]);
    row_put(pen, "the values of %s are not finite",
            broken[0] && broken[1] ? "both arms" : judgement->arms[broken[1]]);
}

static void put_sentence(const struct judgement *judgement, const struct judged_eval_set *set,
                         struct row_pen *pen) {
    const char *const test = judgement->arms[1];
    if (count_word(set, EVAL_BROKEN, 0) > 0)
        put_broken(judgement, set, pen);
    else if (count_word(set, EVAL_UNTESTABLE, 0) > 0)
        row_put(pen, "it is untestable whether %s is worse: %s", test,
                untestable_reason(judgement));
    else if (count_word(set, EVAL_EQUAL, 0) == set->count)
        row_put(pen, "both arms measure the same, bit for bit");
    else if (count_word(set, EVAL_BEYOND, 0) > 0)
        put_beyond(judgement, set, pen);
    else if (judgement->verdict == VERDICT_INSIDE_FLOOR)
        row_put(pen, "%s is neither worse nor better: the weights lie inside the floor", test);
    else if (count_word(set, EVAL_ROUNDING, 0) > 0)
        row_put(pen, "%s is neither worse nor better: rounding makes gaps as large", test);
    else
        row_put(pen, "%s is neither worse nor better: no gap is beyond the floor", test);
}

/* The measure that a sentence speaks of: the first that is beyond the floor, of those that are good
 * or bad before log-probs; else the first that is not equal. The margin comes before the loss. No
 * measure of the set is broken. */
static const struct judged_eval_measure *main_measure(const struct judged_eval_set *set) {
    static const int order[] = {EVAL_MARGIN, EVAL_LOSS, EVAL_ACCURACY, EVAL_LOGP_CHOSEN,
                                EVAL_LOGP_REJECTED};
    const struct judged_eval_measure *other = NULL;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        if ((uint32_t)order[i] >= set->count) continue;
        const struct judged_eval_measure *of = &set->measures[order[i]];
        if (of->word == EVAL_BEYOND) return of;
        if (other == NULL && of->word != EVAL_EQUAL) other = of;
    }
    return other;
}

/* "The gap is 0.030 in reward margin; A/A runs differ by at most 0.002." */
static void put_gap(const struct judgement *judgement, const struct judged_eval_set *set,
                    struct row_pen *pen) {
    const struct judged_eval_measure *of = main_measure(set);
    if (of == NULL) return;
    row_put(pen, "\nThe gap is %.4g in %s", fabs(of->gap), of->words);
    if (of->start[0] != of->start[1])
        row_put(pen, " (%.4g before update 1)", fabs(of->start[1] - of->start[0]));
    row_put(pen, "; ");
    if (of->pairs == 0)
        row_put(pen, "no A/A runs can be compared");
    else if (judgement->floor == FLOOR_EXACT && of->floor == 0.0)
        row_put(pen, "A/A runs repeat exactly");
    else
        row_put(pen, "A/A runs differ by at most %.2g", of->floor);
    if (!isnan(of->response))
        row_put(pen, ", and one weight of %s one unit in the last place off makes %.2g",
                judgement->arms[0], of->response);
    else if (judgement->floor == FLOOR_EXACT)
        row_put(pen, "; what rounding alone makes was not measured (attribution.twin)");
    if (!isnan(of->p)) row_put(pen, " (p = %.2g, alpha = %g)", of->p, judgement->alpha);
}

/* How many pairs have equal rewards, where an arm has such. */
static void put_ties(const struct judgement *judgement, const struct judged_eval_set *set,
                     struct row_pen *pen) {
    if (set->count <= EVAL_ACCURACY) return;
    const struct judged_eval_measure *const of = &set->measures[EVAL_ACCURACY];
    if (!(of->ties[0] > 0.0 || of->ties[1] > 0.0)) return;
    row_put(pen, of->word == EVAL_TIED ? "\nReward accuracy cannot be compared: of" : "\nOf");
    row_put(pen, " %u pairs, %.0f of %s and %.0f of %s are exact ties, which count as wrong",
            set->rows, of->ties[0], judgement->arms[0], of->ties[1], judgement->arms[1]);
    if (of->word != EVAL_TIED) row_put(pen, " in reward accuracy");
}

/* Both arms' start in one cell where it is the same. */
static void put_start(const struct judged_eval_measure *of, struct row_pen *pen) {
    if (of->start[0] == of->start[1])
        row_put(pen, "%-23.6g ", of->start[0]);
    else
        row_put(pen, "%-11.6g %-11.6g ", of->start[0], of->start[1]);
}

/* What a gap is held against; a dash where that was not measured. */
static void put_small(double value, struct row_pen *pen) {
    if (isnan(value))
        row_put(pen, "%-10s ", "-");
    else
        row_put(pen, "%-10.2g ", value);
}

static void put_table(const struct judgement *judgement, const struct judged_eval_set *set,
                      struct row_pen *pen) {
    const int exact = judgement->floor == FLOOR_EXACT;
    row_add(pen, ROW_EVAL_TABLE, "%-20s %-23s %-11.11s %-11.11s %-10s %-10s %s", "",
            "before update 1", judgement->arms[0], judgement->arms[1], "gap",
            exact ? "one ulp" : "A/A most", "the gap is");
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *of = &set->measures[i];
        row_put(pen, "\n%-20s ", of->words);
        put_start(of, pen);
        row_put(pen, "%-11.6g %-11.6g %-10.3g ", of->end[0], of->end[1], of->gap);
        put_small(exact ? of->response : of->floor, pen);
        row_put(pen, "%s", eval_verdict(of));
    }
}

void judge_row_eval(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_eval *eval = &judgement->eval;
    if (eval->set_count == 0) return;
    if (eval->seen[0] != '\0') row_add(pen, ROW_NOTE, "%s", eval->seen);
    if (eval->as_baseline[0] != '\0')
        row_add(pen, ROW_NOTE, "eval measures both arms with %s's %s", judgement->arms[0],
                eval->as_baseline);
    for (uint32_t s = 0; s < eval->set_count; s++) {
        const struct judged_eval_set *set = &eval->sets[s];
        if (set->rows == 0) {
            row_add(pen, ROW_EVAL, "training rows: none was trained on by both arms");
            continue;
        }
        if (set->is_held_out)
            row_add(pen, ROW_EVAL, "on %u held-out rows (%s) ", set->rows, eval->rows);
        else
            row_add(pen, ROW_EVAL, "on %u rows that both arms trained on ", set->rows);
        put_sentence(judgement, set, pen);
        if (count_word(set, EVAL_BROKEN, 0) == 0) put_gap(judgement, set, pen);
        put_ties(judgement, set, pen);
        put_table(judgement, set, pen);
    }
}
