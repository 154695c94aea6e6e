/* SPDX-License-Identifier: Apache-2.0
 * The applied LRs of two logs under the contracts that explain what they printed.
 *
 * The trap: two frameworks print one column and apply two. So every pair of explanations is tried.
 * Invariant: only what holds under all pairs is said without a condition. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"

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

/* An explanation as it places its skipped updates, at the last one of each range, and with each at
 * the first one: in between, the rows leave open what was applied. */
struct placed {
    const struct fit *fit;
    struct fit soonest;
};

struct pairing {
    const struct compare_column *column;
    const struct compare_input *input;
    const struct placed *placed[2];
    int64_t shift; /* added to B's update */
};

/* Explanations of resumed logs keep the places that they have. */
static enum status place(const struct fit *fit, struct arena *arena, struct placed *out) {
    uint64_t *updates;
    size_t count = 0;
    *out = (struct placed){.fit = fit, .soonest = *fit};
    if (fit->skip_count == 0 || fit->part_count > 0) return STATUS_OK;
    TRY(arena_take(arena, fit_skipped(fit), sizeof *updates, "skipped updates", &updates));
    for (size_t i = 0; i < fit->skip_count; i++)
        for (uint64_t n = 0; n < fit->skips[i].count; n++, count++) {
            const uint64_t behind = count > 0 ? updates[count - 1] + 1 : 0;
            updates[count] = fit->skips[i].first > behind ? fit->skips[i].first : behind;
        }
    out->soonest.plan.skipped = updates;
    out->soonest.plan.skipped_count = count;
    return STATUS_OK;
}

static enum status place_pair(const struct fit *const fits[2], struct arena *arena,
                              struct placed out[2]) {
    TRY(place(fits[0], arena, &out[0]));
    return place(fits[1], arena, &out[1]);
}

/* What one side may have applied at an update. */
struct range {
    double low, high;
};

static struct range range_at(const struct placed *placed, size_t point, uint64_t update,
                             double *value) {
    *value = fit_applied(placed->fit, point, update);
    const double other =
        placed->fit->skip_count == 0 ? *value : fit_applied(&placed->soonest, point, update);
    return *value < other ? (struct range){*value, other} : (struct range){other, *value};
}

/* Returns the first update up to the last common row at which the applied LRs differ, or 0. Updates
 * between rows and before the first one count as well: the explanations say what was applied there.
 */
static uint64_t first_apart(const struct pairing *pairing, double values[2]) {
    const struct compare_side *side = pairing->column->side;
    const uint64_t last = pairing->column->to;
    size_t row[2] = {0, 0};
    struct range range[2];
    for (uint64_t k = 1; k <= last; k++) {
        if (last > SAMPLED && k == SAMPLED / 2) k = last - SAMPLED / 2;
        const int64_t at[2] = {(int64_t)k, (int64_t)k + pairing->shift};
        double quantum = 0.0;
        if (at[1] < 1) continue;
        for (size_t s = 0; s < 2; s++) {
            while (row[s] + 1 < side[s].count && compare_point(&side[s], row[s]).update < k)
                row[s]++;
            const struct series_point point = compare_point(&side[s], row[s]);
            range[s] = range_at(pairing->placed[s], index_of(pairing->input[s].fits, point.row),
                                (uint64_t)at[s], &values[s]);
            quantum += 0.5 * point.quantum;
        }
        if ((range[0].low > range[1].high && apart(range[0].low, range[1].high, quantum)) ||
            (range[1].low > range[0].high && apart(range[1].low, range[0].high, quantum)))
            return k;
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

/* Tells whether the rows leave open at which updates the explanation skipped. */
static int skips_somewhere(const struct fit *fit) {
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].last - fit->skips[i].first + 1 > fit->skips[i].count) return 1;
    return 0;
}

static enum status put_words(struct compare_lr *lr, struct arena *arena) {
    char *text = NULL, *example = NULL;
    const char *const a = lr->fit[0]->contract->name, *const b = lr->fit[1]->contract->name;
    const int sure = lr->agree == 0 || lr->differ == 0;
    if (lr->state == COMPARE_LR_SAME)
        TRY(arena_format(arena, &text, "The applied LRs agree under %s for A and %s for B%s.%s", a,
                         b,
                         !sure        ? " with the simplest numbers that fit"
                         : lr->stated ? ", with all numbers that fit"
                                      : " and under every other explanation of the two columns",
                         skips_somewhere(lr->fit[0]) || skips_somewhere(lr->fit[1])
                             ? " Which updates of a range were skipped, the rows leave open."
                             : ""));
    else
        TRY(words_apart(lr, arena, &example));
    if (lr->state == COMPARE_LR_DIFFERENT)
        TRY(arena_format(arena, &text, "%s%s.", example,
                         sure ? "" : " (with the simplest numbers that fit)"));
    else if (lr->state == COMPARE_LR_UNTESTABLE)
        TRY(arena_format(arena, &text,
                         "%s; %s. The logs cannot say which contracts ran: state them with "
                         "--contract-a and --contract-b.",
                         example,
                         lr->agree > 0
                             ? "other explanations of the same two columns make them agree"
                             : "the two columns may have other explanations than were tried"));
    if (lr->skips_words[0] != 0) TRY(arena_format(arena, &text, "%s %s", text, lr->skips_words));
    lr->words = text;
    return STATUS_OK;
}

/* Tries every pair of explanations and keeps the first that agrees and the first that differs. */
static enum status try_pairs(const struct compare_input *input, const struct compare_column *column,
                             struct arena *arena, struct compare_lr *lr) {
    struct placed *placed[2];
    struct pairing pairing = {.column = column, .input = input}, apart = pairing;
    double values[2];
    for (size_t s = 0; s < 2; s++) {
        TRY(arena_take(arena, lr->fits[s], sizeof *placed[s], "explanations", &placed[s]));
        for (size_t i = 0; i < lr->fits[s]; i++)
            TRY(place(&input[s].fits->fits[i], arena, &placed[s][i]));
    }
    for (size_t i = 0; i < lr->fits[0]; i++)
        for (size_t j = 0; j < lr->fits[1]; j++) {
            pairing.placed[0] = &placed[0][i];
            pairing.placed[1] = &placed[1][j];
            const uint64_t first = first_apart(&pairing, values);
            if (first == 0) {
                if (lr->agree++ == 0) {
                    lr->alike[0] = placed[0][i].fit;
                    lr->alike[1] = placed[1][j].fit;
                }
                continue;
            }
            if (lr->differ++ > 0) continue;
            apart = pairing;
            lr->first_update = first;
            lr->first[0] = values[0];
            lr->first[1] = values[1];
        }
    lr->fit[0] = lr->differ > 0 ? apart.placed[0]->fit : placed[0][0].fit;
    lr->fit[1] = lr->differ > 0 ? apart.placed[1]->fit : placed[1][0].fit;
    if (lr->differ > 0) lr->shift = find_shift(apart);
    return STATUS_OK;
}

/* Judges by the simplest numbers of each contract, when both are stated. Other numbers stay
 * possible, for an LR that a contract never prints (the first one, where it prints the next). */
static enum status judge_simplest(const struct compare_input *input,
                                  const struct compare_column *column, struct arena *arena,
                                  struct compare_lr *lr) {
    struct placed placed[2];
    const struct pairing pairing = {
        .column = column, .input = input, .placed = {&placed[0], &placed[1]}};
    lr->fit[0] = &input[0].fits->fits[0];
    lr->fit[1] = &input[1].fits->fits[0];
    TRY(place_pair(lr->fit, arena, placed));
    lr->first_update = first_apart(&pairing, lr->first);
    lr->state = lr->first_update == 0 ? COMPARE_LR_SAME : COMPARE_LR_DIFFERENT;
    lr->shift = lr->first_update == 0 ? 0 : find_shift(pairing);
    return STATUS_OK;
}

/* Takes a pair of explanations as the example that differs in nothing but the skipped updates. */
static enum status take_skips(const struct compare_input *input,
                              const struct compare_column *column, struct arena *arena,
                              struct compare_lr *lr) {
    struct placed placed[2];
    const struct pairing pairing = {
        .column = column, .input = input, .placed = {&placed[0], &placed[1]}};
    TRY(compare_skips(input, arena, lr));
    if (lr->skips_part == 0) return STATUS_OK;
    TRY(place_pair(lr->fit, arena, placed));
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

/* Tells whether the log's column may have explanations beside those that are listed: there were too
 * many, or the simplest one needs a break that the log shows no resume for. Where contracts of
 * other frameworks were left out, those of the log's own, which come first, are all there. */
static int is_wide_open(const struct fit_set *set) {
    const struct fit *const best = &set->fits[0];
    if (set->left_out > 0 && set->foreign == 0) return 1;
    for (size_t s = 1; s < best->segment_count; s++)
        if (fit_break_is_hidden(&best->segments[s], set)) return 1;
    return 0;
}

/* Says why no LR column is in both: one may have the LR that was applied, and the other the one
 * that its trainer prints. */
static const char *no_column(const struct compare_input *input) {
    int applied[2], printed[2];
    for (size_t s = 0; s < 2; s++) {
        applied[s] = log_column_of(input[s].log, LOG_LR_APPLIED) != NULL;
        printed[s] = log_column_of(input[s].log, LOG_LR_LOGGED) != NULL;
    }
    if (applied[0] && printed[1] && !applied[1] && !printed[0])
        return "A has the LR that was applied and B the one that it prints, which need not be the "
               "same: they were not held against each other.";
    if (applied[1] && printed[0] && !applied[0] && !printed[1])
        return "B has the LR that was applied and A the one that it prints, which need not be the "
               "same: they were not held against each other.";
    return "There is no LR column in both logs.";
}

enum status compare_applied(const struct compare_input *input, const struct compare_column *logged,
                            struct arena *arena, struct compare_lr *out) {
    int wide_open = 0;
    *out = (struct compare_lr){.logged = COMPARE_ABSENT, .skips_words = ""};
    if (logged == NULL || logged->pairs == 0) {
        out->words = no_column(input);
        return STATUS_OK;
    }
    out->logged = logged->class_of;
    for (size_t i = 0; i < 2; i++)
        out->fits[i] = input[i].fits != NULL ? input[i].fits->count : 0;
    if (out->fits[0] == 0 || out->fits[1] == 0) return unfitted(input, out, arena);
    out->stated = input[0].contract != NULL && input[1].contract != NULL;
    TRY(try_pairs(input, logged, arena, out));
    if (!out->stated && out->agree == 0 && out->logged != COMPARE_DIFFERENT) {
        TRY(compare_one_for_both(input, arena, out));
        wide_open = is_wide_open(input[0].fits) || is_wide_open(input[1].fits);
    }
    if (out->stated)
        TRY(judge_simplest(input, logged, arena, out));
    else
        out->state = out->differ == 0                ? COMPARE_LR_SAME
                     : out->agree == 0 && !wide_open ? COMPARE_LR_DIFFERENT
                                                     : COMPARE_LR_UNTESTABLE;
    TRY(take_skips(input, logged, arena, out));
    return put_words(out, arena);
}
