/* SPDX-License-Identifier: Apache-2.0
 * The applied LRs of two logs under the contracts that explain what they printed.
 *
 * The trap: two frameworks print one column and apply two. So every pair of explanations is tried.
 * Invariant: only what holds under all pairs is said without a condition. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"
#include "forensics/fit_solve.h"

/* Of longer logs only this many updates are compared, half at the start and half at the end:
 * conventions differ at the ends of a schedule, and it bounds the time of pairs of explanations. */
#define SAMPLED 4096

/* Both explanations lie within half a quantum of what was printed; 1e-9 besides covers the
 * arithmetic of contracts that compute in double by other orders. */
static int apart(double a, double b, double quantum) {
    const double size = real_abs_f64(a) > real_abs_f64(b) ? real_abs_f64(a) : real_abs_f64(b);
    return real_abs_f64(a - b) > quantum + 1e-9 * size;
}

/* Returns the index of this row's point in the fit's own series, which is in the order of the file.
 */
static size_t index_of(const struct fit_set *set, size_t row) {
    const size_t at = series_row(set->series, row);
    return at < set->series->count ? at : set->series->count - 1;
}

struct pairing {
    const struct compare_column *column;
    const struct compare_input *input;
    const struct fit *fit[2];
    int64_t shift; /* added to B's update */
};

/* Returns the first update up to the last common row at which the applied LRs differ, or 0. Updates
 * between rows and before the first one count as well: the explanations say what was applied there.
 */
static uint64_t first_apart(const struct pairing *pairing, double values[2]) {
    const struct compare_side *side = pairing->column->side;
    const uint64_t last = pairing->column->to;
    size_t row[2] = {0, 0};
    for (uint64_t k = 1; k <= last; k++) {
        if (last > SAMPLED && k == SAMPLED / 2) k = last - SAMPLED / 2;
        const int64_t at[2] = {(int64_t)k, (int64_t)k + pairing->shift};
        double quantum = 0.0;
        if (at[1] < 1) continue;
        for (size_t s = 0; s < 2; s++) {
            while (row[s] + 1 < side[s].count && compare_point(&side[s], row[s]).update < k)
                row[s]++;
            const struct series_point point = compare_point(&side[s], row[s]);
            values[s] = fit_applied(pairing->fit[s], index_of(pairing->input[s].fits, point.row),
                                    (uint64_t)at[s]);
            quantum += 0.5 * point.quantum;
        }
        if (apart(values[0], values[1], quantum)) return k;
    }
    return 0;
}

static int64_t find_shift(struct pairing pairing) {
    static const int64_t shifts[] = {1, -1, 2, -2};
    double values[2];
    for (size_t i = 0; i < COUNT_OF(shifts); i++) {
        pairing.shift = shifts[i];
        if (first_apart(&pairing, values) == 0) return shifts[i];
    }
    return 0;
}

static enum status words_apart(const struct compare_lr *lr, struct arena *arena, char **out) {
    const char *const a = lr->fit[0]->contract->name, *const b = lr->fit[1]->contract->name;
    const char *const agree = lr->logged != COMPARE_DIFFERENT ? "The logged LR columns agree, but"
                                                              : "The logged LR columns differ, and";
    if (lr->shift != 0)
        return arena_format(arena, out,
                            "%s under %s for A and %s for B the applied LRs differ by %s: update k "
                            "of A applies what update k%+lld of B applies",
                            agree, a, b,
                            lr->shift == 1 || lr->shift == -1 ? "one update" : "two updates",
                            (long long)lr->shift);
    return arena_format(arena, out,
                        "%s under %s for A and %s for B the applied LRs differ from update %llu on "
                        "(%s against %s)",
                        agree, a, b, (unsigned long long)lr->first_update,
                        word_apart(lr->first[0], lr->first[1]).text,
                        word_apart(lr->first[1], lr->first[0]).text);
}

static enum status put_words(struct compare_lr *lr, struct arena *arena) {
    char *text = NULL, *example = NULL;
    const char *const a = lr->fit[0]->contract->name, *const b = lr->fit[1]->contract->name;
    const int sure = lr->agree == 0 || lr->differ == 0;
    if (lr->state == COMPARE_LR_SAME)
        TRY(arena_format(arena, &text, "The applied LRs agree under %s for A and %s for B%s.", a, b,
                         !sure        ? " with the simplest numbers that fit"
                         : lr->stated ? ", with all numbers that fit"
                                      : " and under every other explanation of the two columns"));
    else
        TRY(words_apart(lr, arena, &example));
    if (lr->state == COMPARE_LR_DIFFERENT)
        TRY(arena_format(arena, &text, "%s%s.", example,
                         sure ? "" : " (with the simplest numbers that fit)"));
    else if (lr->state == COMPARE_LR_UNTESTABLE)
        TRY(arena_format(arena, &text,
                         "%s; other explanations of the same two columns make them agree. The logs "
                         "cannot say which contracts ran: state them with --contract-a and "
                         "--contract-b.",
                         example));
    if (lr->skips_words[0] != 0) TRY(arena_format(arena, &text, "%s %s", text, lr->skips_words));
    lr->words = text;
    return STATUS_OK;
}

/* Tries every pair of explanations and keeps the first that agrees and the first that differs. */
static void try_pairs(const struct compare_input *input, const struct compare_column *column,
                      struct compare_lr *lr) {
    struct pairing pairing = {.column = column, .input = input};
    double values[2];
    for (size_t i = 0; i < lr->fits[0]; i++)
        for (size_t j = 0; j < lr->fits[1]; j++) {
            pairing.fit[0] = &input[0].fits->fits[i];
            pairing.fit[1] = &input[1].fits->fits[j];
            const uint64_t first = first_apart(&pairing, values);
            if (first == 0) {
                if (lr->agree++ == 0) {
                    lr->alike[0] = pairing.fit[0];
                    lr->alike[1] = pairing.fit[1];
                }
                continue;
            }
            if (lr->differ++ > 0) continue;
            lr->fit[0] = pairing.fit[0];
            lr->fit[1] = pairing.fit[1];
            lr->first_update = first;
            lr->first[0] = values[0];
            lr->first[1] = values[1];
        }
    if (lr->differ == 0) {
        lr->fit[0] = &input[0].fits->fits[0];
        lr->fit[1] = &input[1].fits->fits[0];
        return;
    }
    pairing.fit[0] = lr->fit[0];
    pairing.fit[1] = lr->fit[1];
    lr->shift = find_shift(pairing);
}

/* Tells whether an explanation of one log prints every row of the other one as well. */
static int prints_all(const struct fit *fit, const struct series *other) {
    const double scale = fit_scale(other->points, other->count);
    if (fit->segment_count != 1 || fit->first_differs || fit->in_samples || fit_skips_any(fit))
        return 0;
    for (size_t i = 0; i < other->count; i++) {
        const struct series_point *const point = &other->points[i];
        if (!fit_matches(point, fit_logged(fit, 0, point->update), scale, NULL)) return 0;
    }
    return other->count > 0;
}

/* Where the printed columns agree and each pair of explanations differs, one of them may explain
 * both logs: a log with rows far apart, or of few digits, has more explanations than a search
 * lists. It counts where the format of the other log speaks for its contract, or nothing does. */
static enum status try_one_for_both(const struct compare_input *input, struct arena *arena,
                                    struct compare_lr *lr) {
    for (size_t s = 0; s < 2 && lr->agree == 0; s++) {
        const struct compare_input *const other = &input[1 - s];
        struct fit_known known;
        fit_known_init(&known);
        TRY(fit_known_from_log(&known, other->log, arena));
        for (size_t i = 0; i < lr->fits[s] && lr->agree == 0; i++) {
            const struct fit *const fit = &input[s].fits->fits[i];
            const int is_open = other->contract != NULL
                                    ? strcmp(other->contract, fit->contract->name) == 0
                                    : fit_is_native(&known, fit->contract);
            if (!is_open || !prints_all(fit, other->fits->series)) continue;
            lr->agree = 1;
            lr->alike[0] = lr->alike[1] = fit;
        }
    }
    return STATUS_OK;
}

/* Judges by the simplest numbers of each contract, when both are stated. Other numbers stay
 * possible, for an LR that a contract never prints (the first one, where it prints the next). */
static void judge_simplest(const struct compare_input *input, const struct compare_column *column,
                           struct compare_lr *lr) {
    struct pairing pairing = {.column = column,
                              .input = input,
                              .fit = {&input[0].fits->fits[0], &input[1].fits->fits[0]}};
    lr->fit[0] = pairing.fit[0];
    lr->fit[1] = pairing.fit[1];
    lr->first_update = first_apart(&pairing, lr->first);
    lr->state = lr->first_update == 0 ? COMPARE_LR_SAME : COMPARE_LR_DIFFERENT;
    lr->shift = lr->first_update == 0 ? 0 : find_shift(pairing);
}

/* Takes a pair of explanations as the example that differs in nothing but the skipped updates. */
static enum status take_skips(const struct compare_input *input,
                              const struct compare_column *column, struct arena *arena,
                              struct compare_lr *lr) {
    TRY(compare_skips(input, arena, lr));
    if (lr->skips_part == 0) return STATUS_OK;
    struct pairing pairing = {.column = column, .input = input, .fit = {lr->fit[0], lr->fit[1]}};
    lr->first_update = first_apart(&pairing, lr->first);
    lr->shift = lr->first_update == 0 ? 0 : find_shift(pairing);
    return STATUS_OK;
}

static enum status unfitted(const struct compare_input *input, struct compare_lr *lr,
                            struct arena *arena) {
    const int side = lr->fits[0] > 0;
    char *text;
    lr->state = COMPARE_LR_UNFITTED;
    if (input[side].contract != NULL)
        TRY(arena_format(arena, &text,
                         "The LR column of %s does not fit %s: the applied LRs cannot be compared.",
                         side ? "B" : "A", input[side].contract));
    else
        TRY(arena_format(arena, &text,
                         "No shipped contract explains the LR column of %s: what was applied there "
                         "cannot be said.",
                         side ? "B" : "A"));
    lr->words = text;
    return STATUS_OK;
}

enum status compare_applied(const struct compare_input *input, const struct compare_column *logged,
                            struct arena *arena, struct compare_lr *out) {
    *out = (struct compare_lr){.logged = COMPARE_ABSENT, .skips_words = ""};
    if (logged == NULL || logged->pairs == 0) {
        out->words = "There is no LR column in both logs.";
        return STATUS_OK;
    }
    out->logged = logged->class_of;
    for (size_t i = 0; i < 2; i++)
        out->fits[i] = input[i].fits != NULL ? input[i].fits->count : 0;
    if (out->fits[0] == 0 || out->fits[1] == 0) return unfitted(input, out, arena);
    out->stated = input[0].contract != NULL && input[1].contract != NULL;
    try_pairs(input, logged, out);
    if (!out->stated && out->agree == 0 && out->logged != COMPARE_DIFFERENT)
        TRY(try_one_for_both(input, arena, out));
    if (out->stated)
        judge_simplest(input, logged, out);
    else
        out->state = out->differ == 0  ? COMPARE_LR_SAME
                     : out->agree == 0 ? COMPARE_LR_DIFFERENT
                                       : COMPARE_LR_UNTESTABLE;
    TRY(take_skips(input, logged, arena, out));
    return put_words(out, arena);
}
