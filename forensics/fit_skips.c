/* SPDX-License-Identifier: Apache-2.0
 * Explanations with skipped updates: a loss scaler drops an update, and a schedule that holds there
 * (sched/contract.h: CONTRACT_SKIP_HOLD) stays behind the update number for good.
 *
 * How many updates were skipped before a row is an unknown of its own, called the lag of the row
 * (forensics/fit_lags.c). The peak follows from one row (the pivot) for every lag that this row may
 * have, so nothing is searched beside warm-up, total and floor.
 *
 * Invariants: no more skips than skips_most are ever claimed without a column that counts them, for
 * a schedule that stands still for long is a bug and no scaler. What is added is verified through
 * the contract itself, with its list of skipped updates. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_lags.h"

/* Skipped updates that are believed without a column that counts them. 24 halvings take a scale
 * from 2^16, where torch.amp.GradScaler starts, to 2^-8, below any that trains in binary16; and as
 * it tries a larger scale every 2,000 updates (growth_interval), one skip per 500 leaves a factor
 * of four. The last number only bounds the time for a log of millions of rows. */
#define BURST 24
#define GROWTH 500
#define MOST 1000
/* And of those that the log counts. */
#define SHOWN (1 << 30)
/* Digits of a peak that somebody typed. */
#define TYPED 3
/* Digits behind which a peak was computed: the middle of what the row admits is nearer to it than
 * its shortest decimal, and the other rows have no more room than this one. */
#define COMPUTED 8
/* Explanations of one model that are kept, the simplest. Where rows leave open how far a warm-up
 * went and how many of its updates were skipped, a schedule of Accelerate has one for every
 * warm-up: six were seen. */
#define KEPT 8
#define TOTALS 16
/* Totals that a stretch without skipped updates gives, where nobody said one: of its simplest
 * explanations, and those that are up to so many less, as its counter may be behind already. */
#define STRETCH_LAGS 3
/* Rows that such a stretch must have, evaluations for it, and for all rows with its totals. */
#define STRETCH_ROWS 8
#define STRETCH_BUDGET 150000
#define STRETCH_SKIPS 300000
/* Skipped updates that are tried of all models before more are tried of any: the budget is for all
 * of them. */
#define FEW 4
/* Skipped updates from which on a number among them is found by halves: a log of so many updates
 * that they are believed would else spend all evaluations on the first few models. */
#define WIDE 64
/* Evaluations, on top of those of the pass, for such a log and the schedules that are used much. */
#define USUAL_WIDE 1000000
/* Evaluations for peaks that nobody typed, on top of those of the pass: typed ones come first. */
#define UNTYPED 1000000

uint32_t fit_skips_most(uint64_t updates) {
    const uint64_t most = BURST + updates / GROWTH;
    return most < MOST ? (uint32_t)most : MOST;
}

struct skips {
    struct fit_search *search;
    struct arena scratch;     /* what holds a number for every row: it ends with the pass */
    struct fit_window window; /* rows on the way to the last one, without what was run again */
    struct fit_window all;
    struct fit_lags lags; /* its model is the one that is tried */
    size_t pivot;
    int plateau;            /* 1: it is a row of a plateau */
    int level;              /* 1: the column stands still at its top, for however few updates */
    double stretch[TOTALS]; /* the only totals that are tried, where there are any */
    size_t stretch_count;
    int typed; /* 1: only peaks that somebody may have typed */
    int usual; /* 1: only schedules that are used much */
};

struct best {
    struct fit_found at[KEPT];
    size_t count;
};

/* Keeps the simplest ones. */
static void keep(struct best *best, const struct fit_found *found) {
    size_t worst = 0;
    if (best->count < KEPT) {
        best->at[best->count++] = *found;
        return;
    }
    for (size_t i = 1; i < KEPT; i++)
        if (best->at[i].cost > best->at[worst].cost) worst = i;
    if (found->cost < best->at[worst].cost) best->at[worst] = *found;
}

/* Narrows a peak that nobody typed to what all rows leave whose lag is known, where the row that it
 * was taken from leaves it open by more than they do. Returns 0 where nothing is left. */
static int narrow_peak(struct skips *skips) {
    struct fit_model *model = skips->lags.model;
    const struct fit_window *window = &skips->all;
    struct fit_numbers numbers = model->now;
    double low = 0.0, high = real_inf_f64();
    if (!fit_lags_follow(&skips->lags)) return 0;
    for (size_t i = 0; i < window->count; i++) {
        const struct series_point *point = &window->points[i];
        const struct fit_lag *seen = &skips->lags.seen[i];
        if (seen->low != seen->high) continue;
        const double half = fit_half(point, window->scale);
        const double share = fit_lagged(&skips->lags, point, seen->low) / numbers.lr;
        if (!(share > 0.0)) continue;
        if ((point->value - half) / share > low) low = (point->value - half) / share;
        if ((point->value + half) / share < high) high = (point->value + half) / share;
    }
    if (!(low <= high) || !(high < real_inf_f64())) return 0;
    numbers.lr = fit_shortest(low, high);
    fit_model_set(model, &numbers);
    skips->lags.blur = 0.0;
    return 1;
}

/* Follows the lags of the model as it is set, and verifies what comes out through the contract. */
static enum status try_numbers(struct skips *skips, struct best *best) {
    struct fit_model *model = skips->lags.model;
    if (skips->lags.blur > 0.0 && !narrow_peak(skips)) return STATUS_OK;
    struct fit_found found = {
        .solution = {.model = (size_t)(model - skips->search->models), .numbers = model->now}};
    if (!fit_lags_follow(&skips->lags)) return STATUS_OK;
    /* Where nothing needs to be skipped, these are numbers that the plain search does not try. */
    if (!fit_lags_none(&skips->lags)) TRY(fit_lags_list(&skips->lags, &found));
    if (!fit_lags_verify(model, &skips->all, &found)) return STATUS_OK;
    found.cost = fit_cost(skips->search, &found);
    keep(best, &found);
    return STATUS_OK;
}

/* ---- the numbers ---- */

/* What the pivot admits after some skipped updates. */
struct peaks {
    double low, high; /* NaN: none */
    int any;          /* 1: the pivot does not depend on the peak */
};

/* Finds the peaks with which the pivot prints what it does after `lag` skipped updates. A schedule
 * is a line in its peak: the floor may be an LR of its own. */
static struct peaks peaks_at(struct skips *skips, const struct fit_numbers *numbers, uint32_t lag) {
    const struct series_point *point = &skips->window.points[skips->pivot];
    const double half = fit_half(point, skips->window.scale);
    const struct peaks none = {real_nan_f64(), real_nan_f64(), 0};
    struct fit_numbers trial = *numbers;
    trial.lr = skips->window.scale;
    fit_model_set(skips->lags.model, &trial);
    const double one = fit_lagged(&skips->lags, point, lag);
    double slope = one / trial.lr, offset = 0.0;
    if (!fit_model_proportional(skips->lags.model)) {
        trial.lr = 0.5 * trial.lr;
        fit_model_set(skips->lags.model, &trial);
        slope = (one - fit_lagged(&skips->lags, point, lag)) / trial.lr;
        offset = one - slope * skips->window.scale;
    }
    const struct peaks range = {(point->value - half - offset) / slope,
                                (point->value + half - offset) / slope, 0};
    /* Where a schedule has a peak of its own, nothing follows for L. */
    if (real_abs_f64(slope) <= 0x1p-60)
        return real_abs_f64(point->value - one) > half ? none
                                                       : (struct peaks){0.0, real_inf_f64(), 1};
    return slope > 0.0 && range.high > 0.0 ? range : none;
}

/* Returns the known peak if it lies in [low, high], else one that somebody may have typed, or NaN.
 */
static double typed_peak(const struct skips *skips, double low, double high) {
    const double known = skips->window.known_lr;
    return known >= low && known <= high ? known : fit_shortest_of(low, high, TYPED);
}

/* Returns the peak that is tried of those that the pivot admits, or NaN. */
static double peak_of(struct skips *skips, const struct peaks *peaks) {
    const struct series_point *point = &skips->window.points[skips->pivot];
    const double known = skips->window.known_lr, low = peaks->low, high = peaks->high;
    skips->lags.blur = 0.0;
    if (peaks->any) {
        const double other = known == known ? known : skips->window.scale;
        return skips->typed && fit_digits(other) > TYPED ? real_nan_f64() : other;
    }
    if (!(low <= high)) return real_nan_f64();
    if (skips->typed || (known >= low && known <= high)) return typed_peak(skips, low, high);
    /* What is printed is rounded, and its own digits are in its range whatever the peak was. */
    if (point->quantum > 0.0 && fit_model_proportional(skips->lags.model)) {
        skips->lags.blur = (high - low) / (high + low);
        return 0.5 * (low + high);
    }
    const double shortest = fit_shortest_of(low, high, COMPUTED);
    return shortest == shortest ? shortest : 0.5 * (low + high);
}

/* Tells whether the row admits one of the lags low .. high, over which the schedule turns once at
 * most: a row just behind the zero of a cosine that comes back has the turn among its lags. */
static int admits_one(struct skips *skips, const struct series_point *point) {
    const uint64_t before = fit_lags_before(skips->lags.model, point);
    uint32_t low = 0, high = before < skips->lags.most ? (uint32_t)before : skips->lags.most;
    const double half = fit_half(point, skips->window.scale) +
                        skips->lags.blur * real_abs_f64(point->value) * (1.0 + 0x1p-10);
    const double first = fit_lagged(&skips->lags, point, low) - point->value;
    const double last = fit_lagged(&skips->lags, point, high) - point->value;
    if (real_abs_f64(first) <= half || real_abs_f64(last) <= half) return 1;
    if (high - low > 1) {
        const double leaves = fit_lagged(&skips->lags, point, low + 1) - point->value - first;
        const double comes = last - (fit_lagged(&skips->lags, point, high - 1) - point->value);
        struct fit_lag range = {low, high};
        if ((leaves > 0.0 && comes < 0.0) || (leaves < 0.0 && comes > 0.0))
            return fit_lags_narrow(&skips->lags, point, &range);
    }
    if ((first > 0.0) == (last > 0.0)) return 0;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const double off = fit_lagged(&skips->lags, point, middle) - point->value;
        if (real_abs_f64(off) <= half) return 1;
        if ((off > 0.0) == (first > 0.0))
            low = middle;
        else
            high = middle;
    }
    return 0;
}

/* Tells whether the rows at which a wrong peak shows admit any lag. */
static int probe(struct skips *skips) {
    const struct fit_window *window = &skips->window;
    const int by_halves = !skips->typed || skips->lags.most > WIDE;
    const size_t rows[] = {window->descent[1], window->descent[0], window->count - 1, window->top,
                           0};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        /* At the top lags are tried one by one, so it comes last where they are not elsewhere. */
        const size_t row =
            rows[by_halves ? (i + COUNT_OF(rows) - 1) % COUNT_OF(rows) : COUNT_OF(rows) - 1 - i];
        const struct series_point *point = &window->points[row];
        struct fit_lag range = {0, skips->lags.most};
        if (by_halves && row == window->top && i + 1 < COUNT_OF(rows)) continue;
        /* Around the knee a schedule is no line. */
        if (by_halves && row != window->top) {
            if (!admits_one(skips, point)) return 0;
        } else if (!fit_lags_narrow(&skips->lags, point, &range)) {
            return 0;
        }
    }
    return 1;
}

/* Tells whether the model is as flat at the pivot as the plateau of the column is. */
static int is_flat(struct skips *skips, struct fit_numbers *numbers, uint32_t lag) {
    const struct series_point *point = &skips->window.points[skips->pivot];
    numbers->lr = skips->window.scale;
    fit_model_set(skips->lags.model, numbers);
    return real_abs_f64(fit_lagged(&skips->lags, point, 0) -
                        fit_lagged(&skips->lags, point, lag)) <=
           4.0 * fit_half(point, skips->window.scale);
}

/* What a walk over the lags of the pivot tries. */
struct trials {
    struct fit_numbers *numbers;
    struct best *best;
    double last; /* the peak that was tried last */
};

static enum status try_peak(struct skips *skips, struct trials *trials, const struct peaks *peaks) {
    if (skips->search->budget == 0) return STATUS_OK;
    const double peak = peak_of(skips, peaks);
    if (!(peak > 0.0) || peak == trials->last) return STATUS_OK;
    trials->last = trials->numbers->lr = peak;
    fit_model_set(skips->lags.model, trials->numbers);
    return probe(skips) ? try_numbers(skips, trials->best) : STATUS_OK;
}

/* Tells whether a lag between two may have another typed peak than both. Over them the pivot's peak
 * rises throughout, or falls: what is in all that they span is one peak then, or none. */
static int may_differ(const struct skips *skips, const struct peaks *a, const struct peaks *b) {
    if (a->any || b->any) return a->any != b->any;
    if (a->low != a->low || b->low != b->low) return 1;
    const double one = typed_peak(skips, a->low, a->high),
                 other = typed_peak(skips, b->low, b->high);
    const double all =
        typed_peak(skips, a->low < b->low ? a->low : b->low, a->high > b->high ? a->high : b->high);
    return all == all && (all != one || all != other);
}

/* Tries the typed peaks of the lags between `from` and `to`, by halves. */
static enum status try_between(struct skips *skips, struct trials *trials, uint32_t from,
                               const struct peaks *at_from, uint32_t to,
                               const struct peaks *at_to) {
    if (to - from < 2 || skips->search->budget == 0 || !may_differ(skips, at_from, at_to))
        return STATUS_OK;
    const uint32_t middle = from + (to - from) / 2;
    const struct peaks peaks = peaks_at(skips, trials->numbers, middle);
    TRY(try_between(skips, trials, from, at_from, middle, &peaks));
    TRY(try_peak(skips, trials, &peaks));
    return try_between(skips, trials, middle, &peaks, to, at_to);
}

static enum status try_peaks(struct skips *skips, struct fit_numbers *numbers, struct best *best) {
    const uint64_t room = fit_lags_before(skips->lags.model, &skips->window.points[skips->pivot]);
    const uint32_t most = skips->lags.most < room ? skips->lags.most : (uint32_t)room;
    struct trials trials = {.numbers = numbers, .best = best};
    if (skips->plateau && !is_flat(skips, numbers, skips->lags.most)) return STATUS_OK;
    struct peaks peaks = peaks_at(skips, numbers, 0);
    TRY(try_peak(skips, &trials, &peaks));
    if (skips->typed && most > WIDE) {
        const struct peaks first = peaks;
        peaks = peaks_at(skips, numbers, most);
        TRY(try_between(skips, &trials, 0, &first, most, &peaks));
        return try_peak(skips, &trials, &peaks);
    }
    for (uint32_t lag = 1; lag <= most && skips->search->budget > 0; lag++) {
        peaks = peaks_at(skips, numbers, lag);
        TRY(try_peak(skips, &trials, &peaks));
    }
    return STATUS_OK;
}

/* Totals worth a try: those of a stretch, or those that somebody said, or else the updates from the
 * last row to where the next one would have stood. */
static size_t list_totals(const struct skips *skips, double *totals) {
    const struct fit_window *window = &skips->window;
    const struct series_point *last = &window->points[window->count - 1];
    size_t count = 0;
    if (skips->stretch_count > 0) {
        if (!skips->lags.model->needs_total) return 0;
        memcpy(totals, skips->stretch, skips->stretch_count * sizeof *totals);
        return skips->stretch_count;
    }
    if (!skips->lags.model->needs_total) {
        totals[count++] = window->known_totals > 0 ? (double)window->known_total[0] : 0.0;
        return count;
    }
    for (size_t i = 0; i < window->said_totals; i++)
        totals[count++] = (double)window->known_total[i];
    const uint64_t every = last->update - last[-1].update;
    for (uint64_t past = 0; count < TOTALS && window->said_totals == 0 && past < every; past++)
        totals[count++] = (double)(last->update + past);
    return count;
}

static enum status solve(struct skips *skips, size_t m, struct best *best) {
    struct fit_search *search = skips->search;
    struct fit_model *model = &search->models[m];
    struct fit_warmups warmups;
    struct fit_numbers numbers = {.lr = skips->window.scale, .stride = 1.0};
    struct fit_floor_trial floors[FIT_FLOORS];
    double totals[TOTALS];
    best->count = 0;
    skips->lags.model = model;
    const size_t total_count = list_totals(skips, totals);
    fit_list_warmups(model, &skips->window, 1.0, &warmups);
    size_t floor_count = fit_list_floors(model, &skips->window, floors);
    /* With a peak that nobody typed, the schedule's own floor and the known one. */
    if (!skips->typed && floor_count > 2) floor_count = 2;
    for (size_t w = 0; w < warmups.count && (w < warmups.likely || best->count == 0); w++)
        for (size_t f = 0; f < floor_count; f++)
            for (size_t t = 0; t < total_count && search->budget > 0; t++) {
                numbers.warmup = warmups.at[w];
                numbers.floor = floors[f].value;
                numbers.absolute = floors[f].absolute;
                numbers.total = totals[t];
                if (!fit_model_is_listed(model, &numbers)) continue;
                TRY(try_peaks(skips, &numbers, best));
            }
    for (size_t i = 0; i < best->count; i++)
        fit_search_add(search, &best->at[i]);
    return STATUS_OK;
}

/* Takes over what was found of a model that is alike, after verifying it on this one. */
static void adopt(struct skips *skips, size_t m, const struct best *best) {
    struct fit_search *search = skips->search;
    struct fit_model *model = &search->models[m];
    for (size_t i = 0; i < best->count; i++) {
        struct fit_found found = best->at[i];
        found.solution.model = m;
        fit_model_set(model, &found.solution.numbers);
        if (fit_lags_verify(model, &skips->all, &found)) fit_search_add(search, &found);
    }
}

/* Tells whether the model can explain skipped updates: its schedule holds there, and the log's
 * format speaks for it or somebody expects it. */
static int can_hold(const struct fit_search *search, const struct fit_model *model) {
    const struct contract *contract = model->contract;
    if (contract->on_skip != CONTRACT_SKIP_HOLD || contract->unit == CONTRACT_UNIT_EPOCH) return 0;
    /* One that is late by itself is solved where it is asked for only: with a schedule that holds,
     * the same column has one more skipped update (add_late). */
    if (fit_contract_is_late(contract) && search->known->request.contract == NULL) return 0;
    if (model->plan.schedule->state_size > 0 || model->plan.schedule->feedback) return 0;
    return contract == search->known->expected || fit_is_native(search->known, contract);
}

/* Adds to what explains the column with skipped updates the contracts that are late by themselves,
 * with the same numbers and one skipped update less: a counter that is one behind from the first
 * row on is that of either, so whoever reads the one must see the other. */
static enum status add_late(struct skips *skips, const struct fit_model *model,
                            const struct best *best) {
    struct fit_search *search = skips->search;
    if (model->contract->offset != 0 || model->contract->logged != CONTRACT_LOGGED_USED)
        return STATUS_OK;
    for (size_t m = 0; m < search->model_count; m++) {
        struct fit_model *late = &search->models[m];
        if (!fit_contract_is_late(late->contract) ||
            late->contract->on_skip != CONTRACT_SKIP_HOLD || !fit_models_one_function(late, model))
            continue;
        for (size_t i = 0; i < best->count; i++) {
            struct best twin = {.count = 0};
            if (best->at[i].part_count > 0) continue;
            skips->lags.model = late;
            skips->lags.blur = 0.0;
            fit_model_set(late, &best->at[i].solution.numbers);
            TRY(try_numbers(skips, &twin));
            if (twin.count > 0) fit_search_add(search, &twin.at[0]);
        }
    }
    return STATUS_OK;
}

/* Tells whether the log shows that nothing was skipped, while something plain explains it: a
 * contradiction of what is known costs 0.8 (forensics/fit_cost.c). */
static int refuted(const struct fit_search *search) {
    for (size_t i = 0; search->known->skips.quiet && i < search->count; i++)
        if (search->found[i].cost < 0.8) return 1;
    return 0;
}

/* Tells whether the schedule has a plateau of its own between its warm-up and its decay. */
static int has_plateau(const struct fit_model *model) {
    const char *name = sched_bare_name(model->plan.schedule);
    return strcmp(name, "wsd") == 0 || strncmp(name, "warmup_stable_decay", 19) == 0;
}

/* Tells whether the model is DeepSpeed's with a straight warm-up, a parameter that is written as
 * often as it is left out: without it the warm-up is a logarithm. */
static int has_straight_warmup(const struct fit_model *model) {
    return strcmp(model->parameters, "warmup_type=linear") == 0;
}

/* Runs the models that can explain skipped updates. Those that are alike are solved once, or the
 * many contracts of one framework would leave the later ones without budget. */
static enum status solve_all(struct skips *skips) {
    struct fit_search *search = skips->search;
    struct best best;
    uint8_t *done;
    TRY(arena_take(search->arena, search->model_count, sizeof *done, "models", &done));
    for (size_t m = 0; m < search->model_count; m++) {
        const struct fit_model *model = &search->models[m];
        if (done[m] || !can_hold(search, model)) continue;
        if (skips->usual && !skips->plateau && !fit_is_usual(model) &&
            !has_straight_warmup(model) && !(skips->level && has_plateau(model)))
            continue;
        TRY(solve(skips, m, &best));
        TRY(add_late(skips, model, &best));
        for (size_t n = m + 1; n < search->model_count; n++) {
            const struct fit_model *other = &search->models[n];
            if (!can_hold(search, other) || !fit_models_alike(model, other) ||
                model->contract->logged != other->contract->logged)
                continue;
            /* Where nothing was found yet, the first update may be what did not fit, and a contract
             * that starts otherwise explains it. */
            if (other->contract->start != model->contract->start && best.count == 0) continue;
            done[n] = 1;
            adopt(skips, n, &best);
        }
    }
    return STATUS_OK;
}

/* Tells whether something was found since, with the peak that is known. */
static int explained(const struct fit_search *search, size_t since) {
    const double known = search->known->request.lr;
    for (size_t i = since; i < search->count; i++)
        if (known != known || fit_near(search->found[i].solution.numbers.lr, known)) return 1;
    return 0;
}

/* Cost (forensics/fit_cost.c) from which a floor stands for skipped updates: nobody types either
 * the floor or the warm-up that goes with it. A line that was held is a line to such a floor. */
#define STRANGE 0.9

static int all_strange(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++)
        if (search->found[i].cost < STRANGE) return 0;
    return 1;
}

/* Returns how many skipped updates are believed. */
static uint32_t most_of(const struct fit_search *search) {
    const uint64_t shown = search->known->skips.shown;
    return fit_skips_most(search->last) + (shown < SHOWN ? (uint32_t)shown : (uint32_t)SHOWN);
}

/* Returns how many are tried of all models before more are tried of any: few beside those that the
 * log shows. */
static uint32_t few_of(const struct fit_search *search) {
    const uint64_t shown = search->known->skips.shown;
    return FEW + (shown < SHOWN ? (uint32_t)shown : (uint32_t)SHOWN);
}

/* Tells whether something that was found since needs skipped updates. A peak that nobody typed
 * makes everything strange, but a line to a floor that needs none may stand for a line that was
 * held. */
static int any_skips(const struct fit_search *search, size_t since) {
    for (size_t i = since; i < search->count; i++)
        if (search->found[i].skip_count > 0 || search->found[i].part_count > 0) return 1;
    return 0;
}

/* Tries few skipped updates of every model before more of any. Where all that was found is strange,
 * more of them under a schedule that is used much may still be simpler. */
static enum status with_peaks(struct skips *skips, int typed, int usual, uint32_t most) {
    const size_t found = skips->search->count;
    const uint32_t few = few_of(skips->search);
    skips->typed = typed;
    skips->usual = usual;
    for (int all = most <= few; all <= 1; all++) {
        if (explained(skips->search, found)) {
            if (!all_strange(skips->search) || (!typed && any_skips(skips->search, found)))
                return STATUS_OK;
            skips->usual = 1;
        }
        skips->lags.most = all ? most : few;
        TRY(solve_all(skips));
    }
    return STATUS_OK;
}

/* Opens the window of the rows on the way to the last one: behind a resume the rows before it fall
 * back, and would hide where the column rises and falls. */
static enum status open_window(struct skips *skips) {
    const struct series *series = skips->search->series;
    struct series_point *points;
    size_t first = series->count;
    uint64_t update = UINT64_MAX;
    int resumed = 0;
    fit_search_template(skips->search, &skips->window);
    skips->all = skips->window;
    fit_window_open(&skips->all, series->points, series->count);
    skips->window = skips->all;
    for (size_t i = 1; i < series->count; i++)
        resumed |= series->points[i].update <= series->points[i - 1].update;
    if (!resumed) return STATUS_OK;
    TRY(arena_take(&skips->scratch, series->count, sizeof *points, "rows", &points));
    for (size_t i = series->count; i-- > 0;)
        if (series->points[i].update < update) {
            update = series->points[i].update;
            points[--first] = series->points[i];
        }
    if (series->count - first < 3) return STATUS_OK;
    fit_window_open(&skips->window, points + first, series->count - first);
    return STATUS_OK;
}

/* A constant column needs no search: whatever was skipped, a counter behind the warm-up stays
 * there. But its first row is behind the warm-up only where what the log shows to have been skipped
 * by then leaves the counter so far. */
void fit_search_hold(struct fit_search *search) {
    struct fit_window window;
    struct fit_lags lags = {.search = search, .window = &window, .most = MOST};
    size_t kept = 0;
    if (search->known->skips.shown == 0 || search->known->skips.least == NULL) return;
    fit_search_template(search, &window);
    fit_window_open(&window, search->series->points, search->series->count);
    for (size_t i = 0; i < search->count && window.constant; i++) {
        const struct fit_found *found = &search->found[i];
        lags.model = &search->models[found->solution.model];
        fit_model_set(lags.model, &found->solution.numbers);
        if (can_hold(search, lags.model) && found->solution.numbers.stride == 1.0 &&
            !fit_lags_admit_first(&lags))
            continue;
        search->found[kept++] = *found;
    }
    if (window.constant) search->count = kept;
}

/* Tries as many skipped updates as are believed of a long log under the schedules that are used
 * much and with typed peaks: so long a training skips more than a few, and few of every model would
 * take all evaluations. */
static enum status usual_wide(struct skips *skips, uint32_t most) {
    const size_t left = skips->search->budget;
    skips->search->budget = USUAL_WIDE;
    skips->typed = skips->usual = 1;
    skips->lags.most = most;
    TRY(solve_all(skips));
    skips->search->budget = left;
    return STATUS_OK;
}

/* Finds the row that gives the peak. */
static enum status open_rows(struct skips *skips, uint32_t most, int *any) {
    *any = 0;
    TRY(open_window(skips));
    if (skips->window.constant || !(skips->window.scale > 0.0)) return STATUS_OK;
    TRY(fit_lags_open(skips->search, &skips->all, &skips->scratch, &skips->lags));
    if (skips->lags.part_count == 0) return STATUS_OK;
    *any = 1;
    skips->window.lag = most;
    skips->pivot = skips->window.descent[0] > 0 ? skips->window.descent[0] : skips->window.top;
    /* On a plateau no lag and no length changes what the peak is. */
    const size_t top = skips->window.top, top_last = skips->window.top_last;
    const struct series_point *const points = skips->window.points;
    skips->level = top_last >= top + 2;
    skips->plateau =
        top_last > top + 2 && points[top_last].update - points[top].update > 2 * (uint64_t)most;
    if (skips->plateau) skips->pivot = top + (top_last - top) / 2;
    return STATUS_OK;
}

static enum status run(struct skips *skips) {
    struct fit_search *const search = skips->search;
    const size_t found = search->count;
    const uint32_t most = most_of(search);
    int any;
    TRY(open_rows(skips, most, &any));
    if (!any) return STATUS_OK;
    if (most > WIDE) TRY(usual_wide(skips, most));
    TRY(with_peaks(skips, 1, 0, search->count > found ? few_of(search) : most));
    if (search->count > found) return STATUS_OK;
    search->budget = UNTYPED;
    TRY(with_peaks(skips, 0, 1, most));
    if (search->count > found) return STATUS_OK;
    return with_peaks(skips, 0, 0, most);
}

/* ---- totals of a stretch, and of a log that ends behind its last LR ---- */

/* Tells whether an update may have been skipped between a row and the one before it: the log says
 * so, or the LR stands there. */
static int may_break(const struct skips *skips, size_t i) {
    const struct series_point *const points = skips->window.points;
    const struct fit_evidence *const shown = &skips->search->known->skips;
    if (shown->least != NULL && shown->shown > 0 && shown->least[points[i].row] > 0) return 1;
    return real_abs_f64(points[i].value - points[i - 1].value) <=
           fit_half(&points[i], skips->window.scale) +
               fit_half(&points[i - 1], skips->window.scale);
}

static void add_stretch_total(struct skips *skips, double total) {
    const struct fit_window *const window = &skips->window;
    if (skips->stretch_count == TOTALS ||
        !(total > (double)window->points[window->count - 1].update))
        return;
    for (size_t i = 0; i < skips->stretch_count; i++)
        if (skips->stretch[i] == total) return;
    skips->stretch[skips->stretch_count++] = total;
}

/* Adds the totals with which contracts that hold explain the points [first, end), the simplest
 * first. What explains these points is no finding. */
static void take_totals(struct skips *skips, size_t first, size_t end) {
    struct fit_search *const search = skips->search;
    struct fit_window window;
    double least = -real_inf_f64();
    fit_search_template(search, &window);
    search->budget = STRETCH_BUDGET;
    search->usual_first = 1;
    fit_search_window(search, &window, first, end, 0);
    search->usual_first = 0;
    while (skips->stretch_count < TOTALS) {
        const struct fit_found *next = NULL;
        for (size_t i = 0; i < search->count; i++) {
            const struct fit_found *const found = &search->found[i];
            if (found->cost > least && (next == NULL || found->cost < next->cost) &&
                found->solution.numbers.stride == 1.0 &&
                search->models[found->solution.model].contract->on_skip == CONTRACT_SKIP_HOLD)
                next = found;
        }
        if (next == NULL) break;
        least = next->cost;
        for (int lag = 0; lag <= STRETCH_LAGS; lag++)
            add_stretch_total(skips, next->solution.numbers.total - lag);
    }
    search->count = 0;
}

/* The rows between two skipped updates are those of a schedule without any, whose total is that of
 * all rows, or as many updates more as were skipped in front of them. */
static void find_stretch(struct skips *skips, uint32_t most) {
    const struct series_point *const points = skips->window.points;
    const size_t count = skips->window.count;
    size_t begins = 0, longest = 0, from = 0, breaks = 0;
    /* Of a resumed log the rows on the way to the last one are no stretch of the series. */
    if (skips->window.said_totals > 0 || points != skips->search->series->points) return;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && !may_break(skips, i)) continue;
        breaks += i < count;
        if (i - begins > longest) {
            longest = i - begins;
            from = begins;
        }
        begins = i;
    }
    if (breaks == 0 || breaks > most || longest < STRETCH_ROWS) return;
    /* In its warm-up a counter that is behind has the total of no other. */
    const size_t top = skips->window.top_last;
    if (from < top && top + STRETCH_ROWS <= from + longest) {
        longest -= top - from;
        from = top;
    }
    take_totals(skips, from, from + longest);
}

static enum status run_stretch(struct skips *skips) {
    struct fit_search *const search = skips->search;
    const uint32_t most = most_of(search);
    int any;
    TRY(open_rows(skips, most, &any));
    if (!any) return STATUS_OK;
    if (skips->window.said_totals == 0 && fit_search_ends_behind(search))
        add_stretch_total(skips, (double)search->known->end);
    find_stretch(skips, most);
    if (skips->stretch_count == 0) return STATUS_OK;
    search->budget = STRETCH_SKIPS;
    return with_peaks(skips, 1, 1, most);
}

static double least_cost(const struct fit_found *found, size_t count) {
    double least = real_inf_f64();
    for (size_t i = 0; i < count; i++)
        if (found[i].cost < least) least = found[i].cost;
    return least;
}

/* Tells whether all that was found holds at some rows without saying that an update was skipped. */
static int all_held(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found *const found = &search->found[i];
        if (found->segments == NULL) return 0;
        for (size_t s = 0; s < found->segment_count; s++)
            if (found->segments[s].event != FIT_PLAIN && found->segments[s].event != FIT_SKIP)
                return 0;
    }
    return 1;
}

enum status fit_search_stretch(struct fit_search *search) {
    const struct fit_known *const known = search->known;
    const size_t count = search->count, budget = search->budget, suspect = search->suspect;
    const uint64_t walk = search->walk;
    struct fit_found *held;
    if (search->series->count < 3 || known->request.skipped_count > 0 || known->steps_guessed ||
        known->skips.quiet || !all_held(search))
        return STATUS_OK;
    TRY(arena_take(search->arena, count, sizeof *held, "fit", &held));
    if (count > 0) memcpy(held, search->found, count * sizeof *held);
    search->count = 0;
    struct skips skips = {.search = search, .scratch = {.source = search->arena->source}};
    const enum status status = run_stretch(&skips);
    arena_close(&skips.scratch);
    search->budget = budget;
    search->suspect = suspect;
    search->walk = walk;
    if (!any_skips(search, 0) ||
        least_cost(search->found, search->count) >= least_cost(held, count)) {
        if (count > 0) memcpy(search->found, held, count * sizeof *held);
        search->count = count;
    }
    return status;
}

/* Believes what is found with lags alone: a plain one of a contract that holds is what it says only
 * where its rows leave room for the skipped updates that the log counts. */
static enum status set_aside(struct skips *skips, struct fit_found *aside, size_t *count) {
    struct fit_search *const search = skips->search;
    size_t kept = 0;
    TRY(open_window(skips));
    TRY(fit_lags_open(search, &skips->all, &skips->scratch, &skips->lags));
    if (skips->lags.part_count == 0) return STATUS_OK;
    skips->lags.most = most_of(search);
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found found = search->found[i];
        skips->lags.model = &search->models[found.solution.model];
        fit_model_set(skips->lags.model, &found.solution.numbers);
        if (can_hold(search, skips->lags.model) && found.solution.numbers.stride == 1.0 &&
            found.segments == NULL && !found.first_differs && !fit_lags_follow(&skips->lags))
            aside[(*count)++] = found;
        else
            search->found[kept++] = found;
    }
    search->count = kept;
    return STATUS_OK;
}

enum status fit_search_set_aside(struct fit_search *search, struct fit_found *aside,
                                 size_t *count) {
    *count = 0;
    if (search->known->skips.shown == 0 || search->known->skips.least == NULL ||
        search->count == 0 || search->series->count < 3 ||
        search->known->request.skipped_count > 0 || search->known->steps_guessed)
        return STATUS_OK;
    struct skips skips = {.search = search, .scratch = {.source = search->arena->source}};
    const enum status status = set_aside(&skips, aside, count);
    arena_close(&skips.scratch);
    return status;
}

enum status fit_search_skips(struct fit_search *search) {
    if (search->budget == 0 || search->series->count < 3 ||
        search->known->request.skipped_count > 0 || search->known->steps_guessed || refuted(search))
        return STATUS_OK;
    struct skips skips = {.search = search, .scratch = {.source = search->arena->source}};
    const enum status status = run(&skips);
    arena_close(&skips.scratch);
    return status;
}
