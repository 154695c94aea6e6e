/* SPDX-License-Identifier: Apache-2.0
 * What a failure of `lr check` leaves open where nobody gave the numbers: whether the expected
 * contract prints the column with numbers beside those of another explanation, and whether that
 * explanation rests on numbers which somebody gave, or would type.
 *
 * A failure says that no configuration of the expected contract prints the column. A search that
 * found none does not prove it. Invariant: nothing here makes a pass, and no failure of which all
 * numbers were given is touched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "forensics/fit_check_parts.h"

/* ---- numbers of another explanation ---- */

/* Of longer logs a row more or less decides nothing, and each costs. */
#define BORROWED_ROWS 100000

/* Digits of a peak that somebody typed. */
#define TYPED_PEAK 3

/* Fits that restarts are looked for behind: the simplest ones, as each costs thousands of trials.
 */
#define RESTARTS_TRIED 4

/* One search for numbers with which the expected contract prints the column. */
struct trial {
    const struct series *series;
    const struct fit_known *known;
    struct arena *arena;
    struct fit_check *out;
    double scale;
    char text[CONTRACT_VALUES][48]; /* what the parameters of a fit are, as options say it */
};

/* Tries one request. Sets out->expected where it prints every row; numbers that the contract
 * refuses, a warm-up behind its total say, print nothing. */
static enum status try_numbers(const struct trial *t, const struct contract_request *request) {
    struct fit_known borrowed = *t->known;
    struct contract_plan plan;
    borrowed.request = *request;
    borrowed.request.epochs = 0.0;
    borrowed.request.warmup_ratio = real_nan_f64();
    if (request->steps == 0 || !(request->warmup >= 0.0) ||
        request->warmup > (double)request->steps)
        return STATUS_OK;
    const enum status status = contract_resolve(&borrowed.request, t->arena, &plan);
    if (status == STATUS_INPUT) return STATUS_OK;
    TRY(status);
    for (size_t i = 0; i < t->series->count; i++)
        if (!fit_matches(&t->series->points[i], contract_logged(&plan, t->series->points[i].update),
                         t->scale, NULL))
            return STATUS_OK;
    t->out->found = fit_check_bare(t->series);
    TRY(fit_check_expect(t->series, &borrowed, NULL, t->arena, t->out));
    if (t->out->bad_points > 0) t->out->expected = NULL;
    t->out->bad_points = 0;
    if (t->out->expected == NULL || request->value_count <= t->known->request.value_count)
        return STATUS_OK;
    struct fit *said;
    char *parameters = NULL;
    TRY(arena_take(t->arena, 1, sizeof *said, "fit", &said));
    *said = *t->out->expected;
    for (size_t v = 0; v < request->value_count; v++)
        TRY(arena_format(t->arena, &parameters, "%s%s%s=%s", v > 0 ? parameters : "",
                         v > 0 ? ", " : "", request->values[v].key, request->values[v].text));
    said->parameters = parameters;
    TRY(fit_describe(said, t->arena, &said->text));
    t->out->expected = said;
    return STATUS_OK;
}

/* What the contract asked about calls the schedule of another contract's fit, or one of its shape:
 * which floor they have, and by one update where they begin, is all that these differ in. NULL: it
 * has none like it, or another one was given. */
static const char *schedule_like(const struct contract_request *r, const struct fit *fit) {
    static const char *const cosines[] = {"cosine", "warmup_cosine", "cosine_with_min_lr"};
    static const char *const lines[] = {"linear", "warmup_decay", "polynomial"};
    const char *const name = sched_bare_name(fit->schedule);
    const char *const family = r->contract->family;
    const char *const *shape = &name;
    size_t count = 1;
    if ((strncmp(name, "cosine", 6) == 0 && strcmp(name, "cosine_with_restarts") != 0) ||
        strcmp(name, "warmup_cosine") == 0) {
        shape = cosines;
        count = COUNT_OF(cosines);
    } else if (fit->parameters[0] == '\0' && fit_falls_as_line(fit)) {
        shape = lines;
        count = COUNT_OF(lines);
    }
    for (size_t i = 0; i < count; i++) {
        /* transformers' own have none; its others are called after theirs. */
        const size_t at = shape != &name && fit->floor_ratio > 0.0 ? count - 1 - i : i;
        const struct sched_class *const like = sched_find_in(family, shape[at]);
        if (like == NULL || like->feedback || like->state_size > 0) continue;
        if (r->schedule == NULL) return shape[at];
        if (sched_find_in(family, r->schedule) == like) return r->schedule;
    }
    return NULL;
}

/* Puts the parameters of a fit ("decay=230, decay_style=linear") into a request. Returns 0 where
 * the schedule has no such keys, or values were given. */
static int take_parameters(struct trial *t, const struct fit *fit, struct contract_request *to) {
    const struct sched_class *const schedule = sched_find_in(to->contract->family, to->schedule);
    const char *at = fit->parameters;
    if (*at == '\0') return 1;
    if (to->value_count > 0) return 0;
    while (*at != '\0') {
        const size_t length = strcspn(at, ",");
        const size_t v = to->value_count;
        char *const text = t->text[v];
        if (v == CONTRACT_VALUES || length >= sizeof t->text[v]) return 0;
        memcpy(text, at, length);
        text[length] = '\0';
        char *const equals = strchr(text, '=');
        if (equals == NULL) return 0;
        *equals = '\0';
        if (sched_row(schedule, text) == NULL) return 0;
        to->values[v].key = text;
        to->values[v].text = equals + 1;
        to->value_count++;
        at += length;
        at += strspn(at, ", ");
    }
    return 1;
}

/* Begins a request with the schedule, the peak and the floor of a fit. Returns 0 where a number
 * that was given contradicts it. */
static int begin_request(const struct trial *t, const struct fit *fit,
                         struct contract_request *out) {
    const struct contract_request *const r = &t->known->request;
    *out = *r;
    out->schedule = schedule_like(r, fit);
    if (out->schedule == NULL || (r->lr == r->lr && !fit_near(fit->lr, r->lr))) return 0;
    out->lr = fit->lr;
    if (r->schedule == NULL && r->min_lr_ratio != r->min_lr_ratio && fit->floor_ratio > 0.0)
        out->min_lr_ratio = fit->floor_ratio;
    return 1;
}

/* Return the lengths of a fit in updates of its counter, also where that moves several times per
 * update, or as many times as there are processes. */
static double warmup_of(const struct fit *fit) {
    return fit->plan.increment > 0.0 ? fit->plan.call.warmup / fit->plan.increment : fit->warmup;
}
static double total_of(const struct fit *fit) {
    return fit->plan.increment > 0.0 ? fit->plan.call.total / fit->plan.increment
                                     : (double)fit->steps;
}

/* Tries a fit's own warm-up and total, and both one update more or less: a row shows the LR of the
 * update before or behind it under another contract, and behind the warm-up that is all that the
 * two differ in. A counter that moves several times per update prints what one does that moves
 * once, with lengths that are as much shorter. Numbers that were given stay. */
static enum status try_beside(struct trial *t, const struct fit *fit) {
    /* With no warm-up, one update of it is the last that is tried: nobody would type that. */
    static const int beside[][2] = {{0, 0}, {1, 1},  {-1, -1}, {0, 1},  {0, -1},
                                    {1, 0}, {-1, 0}, {1, -1},  {-1, 1}, {1, 1}};
    const struct contract_request *const r = &t->known->request;
    struct contract_request mine;
    if (fit->steps == 0 || fit->segment_count != 1 || fit->stride < 1.0 || fit->first_differs ||
        !begin_request(t, fit, &mine) || !take_parameters(t, fit, &mine))
        return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(beside) && t->out->expected == NULL; i++) {
        if (i == 1 && !(fit->warmup > 0.0)) continue;
        const double warmup = warmup_of(fit) + beside[i][0];
        const double total = fit_round(total_of(fit)) + beside[i][1];
        if (total < 1.0 || (r->steps > 0 && total != (double)r->steps)) continue;
        if (r->warmup == r->warmup ? !fit_near(warmup, r->warmup) && fit->takes_warmup
                                   : beside[i][0] != 0 && !fit->takes_warmup)
            continue;
        mine.warmup = r->warmup == r->warmup ? r->warmup : warmup;
        mine.steps = (uint64_t)total;
        TRY(try_numbers(t, &mine));
    }
    return STATUS_OK;
}

/* Updates by which a warm-up and a total are tried around where the rows put them: contracts count
 * from 0 or 1, and log the LR that was used or the next one. */
#define AROUND 2

/* Rounds a warm-up. The rows may put it up to AROUND updates below 0, which fit_round() is not for;
 * those of 0 and above are tried from there. */
static double round_warmup(double warmup) {
    return fit_round(warmup + AROUND) - AROUND;
}

/* Cycles that are tried where the rows show how long one is, and nobody says how many there are. */
#define MOST_CYCLES 8

/* Returns how many updates lie between two peaks of a cosine that comes back to its peak, by a fit
 * whose cosine falls once and is begun anew on the way, or goes up and down; 0: it is no such one.
 */
static double cycle_of(const struct fit *fit) {
    static const char key[] = "num_cycles=";
    const char *const name = sched_bare_name(fit->schedule);
    double waves = strcmp(name, "cosine_with_restarts") == 0 ? 1.0 : 0.5;
    if (strncmp(name, "cosine", 6) != 0 || fit->stride != 1.0 || fit->segment_count < 2 ||
        fit->first_differs || fit->steps == 0)
        return 0.0;
    for (size_t i = 1; i < fit->segment_count; i++)
        if (fit->segments[i].event != FIT_BACK && fit->segments[i].event != FIT_RESET) return 0.0;
    if (strncmp(fit->parameters, key, sizeof key - 1) == 0)
        waves = strtod(fit->parameters + sizeof key - 1, NULL);
    const double falls = strcmp(name, "cosine_with_restarts") == 0 ? waves : 2.0 * waves;
    return falls > 0.0 ? (total_of(fit) - warmup_of(fit)) / falls : 0.0;
}

/* Tries a cosine with restarts, where a counter goes back on the way: where the rows begin in the
 * middle of the run, a cosine that begins anew is found first. Its warm-up may stand for cycles in
 * front of the rows. */
static enum status try_restarts(struct trial *t, const struct fit *fit) {
    static const char *const counts[] = {"2", "3", "4", "5", "6", "7", "8"};
    const struct contract_request *const r = &t->known->request;
    const double cycle = cycle_of(fit);
    struct contract_request mine;
    if (!(cycle > 0.0) || !begin_request(t, fit, &mine) || mine.value_count > 0 ||
        (r->schedule != NULL &&
         strcmp(sched_bare_name(sched_find_in(r->contract->family, r->schedule)),
                "cosine_with_restarts") != 0) ||
        sched_find_in(r->contract->family, "cosine_with_restarts") == NULL)
        return STATUS_OK;
    mine.schedule = "cosine_with_restarts";
    mine.min_lr_ratio = r->min_lr_ratio;
    mine.value_count = 1;
    mine.values[0].key = "num_cycles";
    /* The shortest warm-up first: a training has none that is longer than a cycle. */
    const int begun = (int)fit_floor((warmup_of(fit) + AROUND) / cycle);
    for (int past = begun < MOST_CYCLES ? begun : 0; past >= 0; past--)
        for (int cycles = past > 1 ? past + 1 : 2; cycles <= MOST_CYCLES; cycles++) {
            /* An error of the cycle counts once per cycle; past ones were whole updates. */
            const int most = past > 0 ? 1 : cycles;
            for (int later = -AROUND; later <= AROUND; later++)
                for (int off = -most; off <= most && t->out->expected == NULL; off++) {
                    const double warmup = round_warmup(warmup_of(fit) - past * cycle) + later;
                    const double total = fit_round(warmup + cycles * cycle) + off;
                    if (r->steps > 0 && total != (double)r->steps) continue;
                    if (r->warmup == r->warmup && !fit_near(warmup, r->warmup)) continue;
                    mine.values[0].text = counts[cycles - 2];
                    mine.warmup = warmup;
                    mine.steps = total >= 1.0 ? (uint64_t)total : 0;
                    TRY(try_numbers(t, &mine));
                }
        }
    return STATUS_OK;
}

/* The line that the rows of a fit follow, but for those of the rise and a first one that stands
 * apart. */
struct line {
    double update, value; /* of its first row */
    double slope;         /* by which the LR falls per update */
};

/* Returns 0 where the fit is no line that falls. A top row behind a rise may still be a row of the
 * rise. */
static int line_of(const struct series *series, const struct fit *fit, struct line *out) {
    const struct series_point *const points = series->points;
    size_t first = fit->first_differs;
    for (size_t i = first + 1; i < series->count; i++)
        if (points[i].value > points[i - 1].value) first = i + 1;
    if (series->count < 3 + first || !fit_falls_as_line(fit) || fit->segment_count != 1 ||
        fit->stride != 1.0)
        return 0;
    const size_t last = series->count - 2;
    out->update = (double)points[first].update;
    out->value = fit_logged(fit, first, points[first].update);
    out->slope = (out->value - fit_logged(fit, last, points[last].update)) /
                 ((double)points[last].update - out->update);
    return out->slope > 0.0;
}

/* Tries the line from a peak. Behind its warm-up a line shows neither where it began nor where it
 * ends: from each peak it has one warm-up, and to each floor one total. */
static enum status try_line_from(struct trial *t, const struct line *line, double lr) {
    static const double floors[] = {0.0, 0.1, 0.05, 0.01, 0.2, 0.02, 0.5};
    static const char *const names[] = {"linear", "warmup_decay", "polynomial"};
    const struct contract_request *const r = &t->known->request;
    struct contract_request mine = *r;
    if (r->warmup == r->warmup || r->value_count > 0 || line->value > lr) return STATUS_OK;
    const double peak_at = line->update - (lr - line->value) / line->slope;
    mine.lr = lr;
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t f = 0; f < COUNT_OF(floors); f++) {
            const struct sched_class *const schedule = sched_find_in(r->contract->family, names[n]);
            if (schedule == NULL ||
                (r->schedule != NULL &&
                 sched_find_in(r->contract->family, r->schedule) != schedule) ||
                /* What was given has its own floor: another one would excuse a shift. */
                ((r->min_lr_ratio == r->min_lr_ratio || r->schedule != NULL) && floors[f] > 0.0))
                continue;
            const double floor =
                r->min_lr_ratio == r->min_lr_ratio ? r->min_lr_ratio * lr : floors[f] * lr;
            const double end_at = line->update + (line->value - floor) / line->slope;
            mine.schedule = names[n];
            mine.min_lr_ratio = floors[f] > 0.0 ? floors[f] : r->min_lr_ratio;
            for (int w = -AROUND; w <= AROUND; w++)
                for (int e = -AROUND; e <= AROUND && t->out->expected == NULL; e++) {
                    const double total =
                        r->steps > 0 ? (double)r->steps : fit_round(end_at) + (double)e;
                    mine.warmup = round_warmup(peak_at) + (double)w;
                    mine.steps = total >= 1.0 ? (uint64_t)total : 0;
                    TRY(try_numbers(t, &mine));
                }
        }
    return STATUS_OK;
}

/* Tries the line of a fit from the peak that was given, or, where its first row alone stands apart
 * from the line and below it, from the peak of a warm-up that ends between that row and the next:
 * the first row is on its way, at L / W per counter, so the two meet at one whole W. */
static enum status try_line(struct trial *t, const struct fit *fit) {
    const struct contract *const contract = t->known->request.contract;
    const struct series_point *const first = &t->series->points[0];
    const double lr = t->known->request.lr;
    struct line line;
    if (!line_of(t->series, fit, &line)) return STATUS_OK;
    if (lr == lr) return try_line_from(t, &line, lr);
    const double counter = (double)first->update - 1.0 + (double)contract->offset +
                           (contract->logged == CONTRACT_LOGGED_NEXT ? 1.0 : 0.0);
    if (!fit->first_differs || !(counter > 0.0) || !(first->value > 0.0) ||
        first->value >= line.value)
        return STATUS_OK;
    const double rise = first->value / counter, half = 0.5 * first->quantum / counter;
    const double at_start =
        line.value + (line.update - (double)first->update + counter) * line.slope;
    const double warmup = fit_round(at_start / (rise + line.slope));
    const double peak = fit_shortest_of(warmup * (rise - half), warmup * (rise + half), TYPED_PEAK);
    return peak == peak ? try_line_from(t, &line, peak) : STATUS_OK;
}

/* Returns the row behind the highest one whose digits say its LR best. */
static const struct series_point *finest_fallen(const struct series *series) {
    const struct series_point *best = &series->points[0];
    for (size_t i = 1; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        if (point->value > best->value && point->value > point[-1].value)
            best = point; /* it still rises */
        else if (point->value > 0.0 && point->quantum * best->value <= best->quantum * point->value)
            best = point;
    }
    return best;
}

/* Tries an inverse square root from the peak that was given. Behind its warm-up it is L sqrt(W / n)
 * at counter n, so each peak has its own warm-up. */
static enum status try_root(struct trial *t, const struct fit *fit) {
    static const char *const names[] = {"inverse_sqrt", "inverse-square-root"};
    const struct contract_request *const r = &t->known->request;
    const struct series_point *const row = finest_fallen(t->series);
    struct contract_request mine = *r;
    if (r->lr != r->lr || r->warmup == r->warmup || r->value_count > 0 ||
        strncmp(sched_bare_name(fit->schedule), "inverse", 7) != 0 || fit->segment_count != 1 ||
        row->value > r->lr)
        return STATUS_OK;
    const double share = row->value / r->lr;
    const double warmup = fit_round((double)row->update * share * share);
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (int off = -AROUND; off <= AROUND && t->out->expected == NULL; off++) {
            const struct sched_class *const schedule = sched_find_in(r->contract->family, names[n]);
            if (schedule == NULL || (r->schedule != NULL &&
                                     sched_find_in(r->contract->family, r->schedule) != schedule))
                continue;
            mine.schedule = names[n];
            mine.warmup = warmup + (double)off;
            /* It falls for ever: the total plays no part. */
            mine.steps = r->steps > 0 ? r->steps : t->series->points[t->series->count - 1].update;
            TRY(try_numbers(t, &mine));
        }
    return STATUS_OK;
}

/* Tries the plateau and decay of a fit that says its decay as a share of the total under a class
 * that says its length (torchtitan's decay_ratio, transformers' num_decay_steps, Megatron's
 * lr_wsd_decay_iters). */
static enum status try_plateau(struct trial *t, const struct fit *fit) {
    static const char key[] = "decay_ratio=";
    static const char *const names[] = {"warmup_stable_decay", "wsd"};
    static const char *const types[] = {"decay_type", "decay_style"};
    const struct contract_request *const r = &t->known->request;
    const char *const shape = sched_bare_name(fit->schedule);
    if (strncmp(fit->parameters, key, sizeof key - 1) != 0 || fit->segment_count != 1 ||
        fit->stride != 1.0 || fit->first_differs || fit->steps == 0 || r->value_count > 0 ||
        (strcmp(shape, "cosine") != 0 && strcmp(shape, "linear") != 0))
        return STATUS_OK;
    const double share = strtod(fit->parameters + sizeof key - 1, NULL);
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        const struct sched_class *const like = sched_find_in(r->contract->family, names[n]);
        struct contract_request mine = *r;
        if (like == NULL || sched_row(like, "decay") == NULL ||
            (r->schedule != NULL && sched_find_in(r->contract->family, r->schedule) != like) ||
            (r->lr == r->lr && !fit_near(fit->lr, r->lr)))
            continue;
        mine.schedule = names[n];
        mine.lr = fit->lr;
        if (r->min_lr_ratio != r->min_lr_ratio && fit->floor_ratio > 0.0)
            mine.min_lr_ratio = fit->floor_ratio;
        mine.warmup = r->warmup == r->warmup ? r->warmup : warmup_of(fit);
        mine.steps = r->steps > 0 ? r->steps : fit->steps;
        mine.value_count = 1;
        mine.values[0].key = "decay";
        mine.values[0].text = t->text[0];
        for (size_t k = 0; k < COUNT_OF(types); k++) {
            if (sched_row(like, types[k]) == NULL) continue;
            mine.values[1].key = types[k];
            mine.values[1].text = shape;
            mine.value_count = 2;
        }
        for (int off = -AROUND; off <= AROUND && t->out->expected == NULL; off++) {
            const double decay = fit_round(share * (double)mine.steps) + off;
            if (decay < 1.0) continue;
            snprintf(t->text[0], sizeof t->text[0], "%.0f", decay);
            TRY(try_numbers(t, &mine));
        }
    }
    return STATUS_OK;
}

enum status fit_check_match_borrowed(const struct series *series, const struct fit_known *known,
                                     const struct fit_set *all, struct arena *arena,
                                     struct fit_check *out) {
    struct trial *t;
    int line = 0, restarts = 0;
    if (known->request.contract->unit == CONTRACT_UNIT_EPOCH || series->count > BORROWED_ROWS)
        return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *t, "fit", &t));
    *t = (struct trial){.series = series,
                        .known = known,
                        .arena = arena,
                        .out = out,
                        .scale = fit_check_scale(series)};
    for (size_t i = 0; i < all->count && out->expected == NULL; i++) {
        const struct fit *const fit = &all->fits[i];
        if (fit_skips_any(fit) || fit->in_samples || fit->schedule->feedback) continue;
        TRY(try_beside(t, fit));
        restarts += cycle_of(fit) > 0.0;
        if (out->expected == NULL && restarts <= RESTARTS_TRIED) TRY(try_restarts(t, fit));
        /* The others are the same line, read off from the same rows. */
        if (out->expected == NULL && !line) TRY(try_line(t, fit));
        line |= fit_falls_as_line(fit);
        if (out->expected == NULL) TRY(try_root(t, fit));
        if (out->expected == NULL) TRY(try_plateau(t, fit));
    }
    return STATUS_OK;
}

/* ---- whether an explanation proves a failure ---- */

/* How finely rows are printed, as a share of the largest LR, which leave no room for the numbers of
 * another schedule where they show its rise or a break in it. */
#define FINE 1e-5

static int is_fine(const struct series *series) {
    const double most = FINE * fit_check_scale(series) * (1.0 + 0x1p-40);
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].quantum > most) return 0;
    return 1;
}

static int rises(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].value > series->points[i - 1].value) return 1;
    return 0;
}

/* Printed steps by which an LR must jump at a break that is no matter of rounding. Chosen. */
#define VISIBLE 20.0

/* A cosine with restarts comes down to less than this share of its peak before it is back at it. */
#define LOW 0.1

/* Tells whether every break is a scheduler that begins anew, or another peak, and a jump of many
 * printed steps. A cosine that begins anew behind its lowest LR is none: restarts do that. */
static int breaks_visibly(const struct fit *fit, const struct series *series) {
    for (size_t s = 1; s < fit->segment_count; s++) {
        const struct fit_segment *const segment = &fit->segments[s];
        if (segment->event != FIT_RESET && segment->event != FIT_RESCALED &&
            segment->event != FIT_RESTARTED)
            return 0;
        if (segment->point == 0 || segment->point >= series->count) return 0;
        const struct series_point *const at = &series->points[segment->point];
        const double jump = segment->event == FIT_RESCALED
                                ? real_abs_f64((segment->scale - 1.0) * at->value)
                                : real_abs_f64(at->value - at[-1].value);
        if (jump < VISIBLE * at->quantum) return 0;
        if (segment->event == FIT_RESET && at[-1].value < LOW * fit->lr &&
            strncmp(sched_bare_name(fit->schedule), "cosine", 6) == 0)
            return 0;
    }
    return fit->segment_count > 1;
}

/* Tells whether somebody would type a number of updates: one with at most two digits in front of
 * its zeros. Below 100 every number has that, so there it ends in 0 or 5, or is below 10. */
static int is_round(double updates) {
    if (updates >= 100.0) return fit_digits(updates) <= 2;
    return updates == 5.0 * fit_floor(updates / 5.0) || (updates > 1.0 && updates < 10.0);
}

/* Tells whether a number of updates is a whole percentage of the total, rounded in any way. */
static int is_percentage(double updates, double total) {
    for (int percent = 1; percent <= 50; percent++)
        if (real_abs_f64(updates - 0.01 * percent * total) < 1.0) return 1;
    return 0;
}

/* One that contradicts the total that was said is another training's, whatever it is. */
static int total_is_typed(const struct fit_known *known, double total, uint64_t last) {
    return total == 0.0 || known->run_steps > 0 || known->request.steps > 0 ||
           total == (double)last || is_round(total);
}

int fit_check_floor_is_typed(const struct fit_known *known, double floor, double lr) {
    const double given = known->request.min_lr_ratio;
    if (!(floor > 0.0) || floor >= 1.0) return 1;
    return (given == given && fit_near(floor, given)) ||
           fit_shortest_of(floor * (1.0 - 0x1p-44), floor * (1.0 + 0x1p-44), FIT_TYPED_DIGITS) >
               0.0 ||
           fit_shortest_of(floor * lr * (1.0 - 0x1p-44), floor * lr * (1.0 + 0x1p-44),
                           FIT_TYPED_DIGITS) > 0.0;
}

/* Tells whether each length or count among the parameters is round, or a share of the total. */
static int parameters_are_typed(const struct fit *fit) {
    for (const char *at = strchr(fit->parameters, '='); at != NULL; at = strchr(at + 1, '=')) {
        const double value = strtod(at + 1, NULL);
        if (value >= 10.0 && !is_round(value) && !is_percentage(value, (double)fit->steps))
            return 0;
    }
    return 1;
}

/* Tells whether somebody gave each number of a fit, or would type it. */
static int is_typed_throughout(const struct fit_known *known, const struct fit *fit,
                               uint64_t last) {
    const struct contract_request *const r = &known->request;
    const double total = (double)fit->steps;
    if (!(r->lr == r->lr && fit_near(fit->lr, r->lr)) && fit_digits(fit->lr) > TYPED_PEAK) return 0;
    if (!fit->total_hidden && !total_is_typed(known, total, last)) return 0;
    if (fit->warmup > 0.0 && !(r->warmup == r->warmup && fit_near(fit->warmup, r->warmup)) &&
        !is_round(fit->warmup) && !is_percentage(fit->warmup, total))
        return 0;
    for (size_t i = 1; i < fit->segment_count; i++) {
        const double scale = fit->segments[i].scale;
        if (scale != 1.0 && fit_digits(scale) > FIT_TYPED_DIGITS &&
            fit_digits(scale * fit->lr) > TYPED_PEAK)
            return 0;
    }
    return fit_check_floor_is_typed(known, fit->floor_ratio, fit->lr) && parameters_are_typed(fit);
}

static int lies_above(const struct series *series, double peak) {
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].value - fit_half(&series->points[i], peak) > peak * (1.0 + 0x1p-40))
            return 1;
    return 0;
}

/* Tells whether a given peak stands against one that no row shows: with another warm-up in front of
 * the rows the peak is another one, too. */
static int peak_is_unseen(const struct fit_known *known, const struct fit *fit,
                          const struct series *series) {
    const struct contract_request *const r = &known->request;
    return r->lr == r->lr && r->warmup != r->warmup && !fit_near(fit->lr, r->lr) &&
           (fit->warmup_hidden || fit->unseen_warmup > 0.0) && fit->lr > series->points[0].value;
}

/* Tells whether a given peak is that of the explanation but for less than a printed step: its own
 * peak is read off the digits then, with a total or a floor that need not be the training's. */
static int peak_is_by_digits(const struct fit_known *known, const struct fit *fit,
                             const struct series *series) {
    const double given = known->request.lr;
    double finest = real_inf_f64();
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].quantum < finest) finest = series->points[i].quantum;
    return given == given && !fit_near(fit->lr, given) && real_abs_f64(fit->lr - given) <= finest &&
           fit_digits(fit->lr) > TYPED_PEAK;
}

/* Tells whether the bug is that the column is the expected one, some updates on: it has the numbers
 * of the expectation then, whatever else explains it (forensics/fit_check_mismatch.c). */
static int is_shift(const char *bug) {
    static const char *const names[] = {"lag1", "lr_ahead_by_one", "lr_ahead_by_one or log_next_lr",
                                        "log_next_lr", "zero_lr_first_step"};
    for (size_t i = 0; bug != NULL && i < COUNT_OF(names); i++)
        if (strcmp(bug, names[i]) == 0) return 1;
    return 0;
}

/* Tells whether the explanation says enough of the column to fail it, where numbers were fitted.
 * Stairs, and in finely printed rows a rise or a break, are seen whatever the numbers are; a
 * stretch of a decay alone is printed by many contracts, each with numbers of its own. */
static int is_proven(const struct fit_known *known, const struct fit_check *out) {
    /* Speaks of another schedule, with numbers of its own. */
    static const char stands[] = "schedule_stands_still";
    const struct series *const series = out->found.series;
    const struct fit *const best = out->found.count > 0 ? &out->found.fits[0] : NULL;
    if (best == NULL || (out->fitted & (FIT_OF_LR | FIT_OF_WARMUP | FIT_OF_STEPS)) == 0) return 1;
    /* Here the rows themselves refuted what was asked (forensics/fit_check_mismatch.c). */
    if ((out->found.why & FIT_WHY_CONSTANT) != 0 || fit_changes_total(best)) return 1;
    if (known->request.lr == known->request.lr && lies_above(series, known->request.lr)) return 1;
    if (out->bug != NULL && strncmp(out->bug, stands, sizeof stands - 1) == 0) return 1;
    if (fit_total_is_foreign(best, out->bug, known) || fit_late_stands_at_floor(best, series))
        return 0;
    if (best->epoch_updates > 0 || best->stride < 1.0) return 1;
    if (fit_breaks_at_last_row(best, series)) return 0;
    if (breaks_visibly(best, series)) return 1;
    if (peak_is_by_digits(known, best, series)) return 0;
    if (is_fine(series) && (best->segment_count > 1 || best->first_differs || rises(series)))
        return 1;
    /* With a total that was said, finely printed rows leave the contract one set of numbers, but
     * for a line, which has a floor for each total. */
    if (is_fine(series) && (known->request.steps > 0 || known->run_steps > 0) &&
        best->contract == known->request.contract && !fit_falls_as_line(best))
        return 1;
    /* Without the name of a bug, all that is known is that a search found numbers of another
     * contract and none of this one, whose floor is open, too. */
    if (out->bug == NULL && (out->fitted & FIT_OF_SCHEDULE) != 0) return 0;
    if (is_shift(out->bug) && out->expected != NULL &&
        is_typed_throughout(known, out->expected, out->found.last))
        return 1;
    if (peak_is_unseen(known, best, series)) return 0;
    return is_typed_throughout(known, best, out->found.last);
}

/* Tells whether two fits differ in how often the counter moves per update, and in a total and a
 * warm-up that are as many times as long: they print one column, and without a total that somebody
 * said neither is nearer. */
static int differ_in_pace(const struct fit_known *known, const struct fit *a, const struct fit *b) {
    return known->request.steps == 0 && known->run_steps == 0 && a->steps > 0 && b->steps > 0 &&
           a->plan.increment != b->plan.increment && fit_near(total_of(a), total_of(b)) &&
           fit_near(warmup_of(a), warmup_of(b));
}

int fit_check_stands(const struct fit_known *known, const struct fit_check *out,
                     const struct fit_check *borrowed) {
    if (out->verdict != FIT_FAIL) return 1;
    if (borrowed->expected == NULL) return is_proven(known, out);
    if (out->found.count > 0 && differ_in_pace(known, &out->found.fits[0], borrowed->expected))
        return 0;
    /* What shows in the rows alone proves a bug of odd numbers, and not against these. */
    return out->bug != NULL && is_proven(known, out) &&
           !is_typed_throughout(known, borrowed->expected, out->found.last) &&
           (out->found.count == 0 ||
            is_typed_throughout(known, &out->found.fits[0], out->found.last));
}

enum status fit_check_doubt_unproven(const struct fit_known *known, struct arena *arena,
                                     struct fit_check *out) {
    char *text;
    if (out->found.count > 0 && !is_typed_throughout(known, &out->found.fits[0], out->found.last)) {
        TRY(arena_format(arena, &text,
                         "%s; nobody gave all of these numbers, and nobody would type them",
                         out->words));
        out->words = text;
    }
    TRY(arena_format(arena, &text,
                     "--schedule, --lr, --warmup, --steps and --min-lr-ratio of the training: that "
                     "a search for numbers of %s finds none does not say that none print the rows",
                     known->request.contract->name));
    out->needs = text;
    out->verdict = FIT_UNDECIDED;
    out->bug = NULL;
    return STATUS_OK;
}

/* Of a log that ends within its warm-up no row tells the total, so that a schedule which was given
 * has no fit there, and the expectation has the log's last update for a total. */
enum status fit_check_doubt_rising(const struct series *series, const struct fit_known *known,
                                   struct arena *arena, struct fit_check *out) {
    const uint32_t both = FIT_OF_WARMUP | FIT_OF_STEPS;
    struct fit_known rising = *known;
    struct fit_set set;
    char *text;
    if (out->verdict != FIT_FAIL || (out->fitted & both) != both ||
        known->request.schedule == NULL ||
        sched_find_in(known->request.contract->family, "constant_with_warmup") == NULL)
        return STATUS_OK;
    rising.request.schedule = "constant_with_warmup";
    rising.request.value_count = 0;
    rising.request.min_lr_ratio = real_nan_f64();
    TRY(fit_series(series, &rising, arena, &set));
    for (size_t i = 0; i < set.count; i++) {
        const struct fit *const fit = &set.fits[i];
        if (!(fit->reached > 0.0) || fit->segment_count > 1 || fit->stride != 1.0 ||
            fit->first_differs)
            continue;
        TRY(arena_format(arena, &text,
                         "every printed LR lies in a warm-up that %s would print, and no row shows "
                         "its end or the total",
                         known->request.contract->name));
        out->verdict = FIT_UNDECIDED;
        out->bad_points = 0;
        out->bug = NULL;
        out->words = text;
        out->needs = "--warmup and --steps of the training, or rows behind the warm-up";
        return STATUS_OK;
    }
    return STATUS_OK;
}
