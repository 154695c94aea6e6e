/* SPDX-License-Identifier: Apache-2.0
 * Runs every model over the series, pass by pass. Models that log the same column for the same
 * numbers are solved once.
 *
 * Invariant: the budget counts evaluations and not time, so a search gives the same result on any
 * machine. */
#include "forensics/fit_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "forensics/fit_samples.h"
#include "sched/values.h"

/* How many times too fast a counter is found to run: processes and micro-batches are powers of two
 * as a rule, 3, 6 and 12 the other sizes of nodes. Others are tried only where the request or the
 * log names them. STRIDES holds these, five of the request and ten of the log. */
static const double usual_strides[] = {1.0, 2.0, 4.0, 8.0, 3.0, 16.0, 32.0, 64.0, 6.0, 12.0};
#define STRIDES 24

/* Returns the roundest number above `low` and up to `high`: the multiple of the largest power of
 * ten. */
static uint64_t roundest(uint64_t low, uint64_t high) {
    uint64_t best = high;
    for (uint64_t grain = 10; grain <= high; grain *= 10) {
        const uint64_t multiple = high / grain * grain;
        if (multiple <= low) break;
        best = multiple;
    }
    return best;
}

/* Writes the totals that a flat end of the column shows: a run that goes on behind its schedule
 * (Megatron's --lr-decay-iters, shorter than --train-iters; elsewhere such a run is a mistake)
 * stays at the floor from there. That is the first row of the end, which logs the next LR or the
 * one that was used, or a round number on the way to it. Returns how many there are. */
static size_t totals_of_end(const struct fit_search *search, uint64_t totals[3]) {
    const struct series_point *points = search->series->points;
    const size_t count = search->series->count;
    size_t first = count;
    while (first > 1 && points[first - 1].value == points[count - 1].value &&
           points[first - 1].update > points[first - 2].update)
        first--;
    if (count < 4 || first + 2 > count || points[first - 1].value <= points[count - 1].value)
        return 0;
    totals[0] = roundest(points[first - 1].update, points[first].update);
    totals[1] = points[first].update;
    totals[2] = points[first].update - 1;
    return 3;
}

static void add_total(struct fit_window *window, uint64_t total) {
    for (size_t i = 0; i < window->known_totals; i++)
        if (window->known_total[i] == total) return;
    if (total > 0) window->known_total[window->known_totals++] = total;
}

int fit_search_ends_behind(const struct fit_search *search) {
    const struct series *const series = search->series;
    const uint64_t end = search->known->end;
    if (series->count < 2 || search->known->counted != NULL || end <= search->last) return 0;
    const uint64_t before = series->points[series->count - 2].update;
    return series->points[series->count - 1].update == search->last && before < search->last &&
           end - search->last <= search->last - before;
}

void fit_search_template(struct fit_search *search, struct fit_window *out) {
    const struct contract_request *request = &search->known->request;
    const struct fit_samples *counted = search->known->counted;
    static const double plain[] = {1.0};
    uint64_t ends[3];
    memset(out, 0, sizeof *out);
    add_total(out, request->steps);
    add_total(out, search->known->run_steps);
    out->said_totals = out->known_totals;
    add_total(out, counted != NULL ? (uint64_t)counted->total : 0);
    add_total(out, search->last);
    if (fit_search_ends_behind(search)) add_total(out, search->known->end);
    const size_t own = out->known_totals;
    const size_t end =
        counted == NULL && fit_samples_are_asked(search->known) ? totals_of_end(search, ends) : 0;
    for (size_t i = 0; i < end; i++)
        add_total(out, ends[i]);
    out->end_totals = out->known_totals - own;
    out->lag = request->skipped_count < FIT_WARMUPS ? (uint32_t)request->skipped_count : 0;
    out->known_epoch = request->updates_per_epoch;
    out->known_lr = request->lr;
    out->known_warmup = request->warmup;
    out->known_ratio = request->warmup_ratio;
    out->known_floor = request->min_lr_ratio;
    out->only_total = search->known->plain && request->steps > 0;
    out->only_warmup = search->known->plain && request->warmup == request->warmup;
    out->budget = &search->budget;
    out->walk = &search->walk;
    out->suspect = &search->suspect;
    out->strides = plain;
    out->stride_count = 1;
    out->only_floor = out->floor_peak = real_nan_f64();
}

static int same_segments(const struct fit_found *a, const struct fit_found *b) {
    if (a->segments == b->segments) return 1;
    if (a->segments == NULL || b->segments == NULL || a->segment_count != b->segment_count)
        return 0;
    for (size_t i = 0; i < a->segment_count; i++) {
        const struct fit_segment *x = &a->segments[i], *y = &b->segments[i];
        if (x->point != y->point || x->shift != y->shift || x->scale != y->scale ||
            x->event != y->event || x->steps != y->steps || x->warmup != y->warmup)
            return 0;
    }
    return 1;
}

/* Whether two findings say the same. `skipped` and `parts` are compared by address: of findings
 * that have any, no two are the same. The shift follows from the model. */
static int same_found(const struct fit_found *a, const struct fit_found *b) {
    const struct fit_numbers *x = &a->solution.numbers, *y = &b->solution.numbers;
    return a->solution.model == b->solution.model && same_segments(a, b) &&
           a->skipped == b->skipped && a->parts == b->parts &&
           a->first_differs == b->first_differs && x->lr == y->lr && x->warmup == y->warmup &&
           x->total == y->total && x->floor == y->floor && x->absolute == y->absolute &&
           x->stride == y->stride && x->epoch == y->epoch;
}

void fit_search_add(struct fit_search *search, const struct fit_found *found) {
    if (search->count == FIT_FOUND) return;
    for (size_t i = 0; i < search->count; i++)
        if (same_found(&search->found[i], found)) return;
    search->found[search->count] = *found;
    search->found[search->count++].cost = fit_cost(search, found);
}

static int logs_after(const struct contract *contract) {
    return contract->offset + (contract->logged == CONTRACT_LOGGED_NEXT);
}

int fit_contract_is_late(const struct contract *contract) {
    return contract->offset < 0 && contract->logged == CONTRACT_LOGGED_USED;
}

int fit_models_one_function(const struct fit_model *a, const struct fit_model *b) {
    return a->function == b->function;
}

/* What a contract does on a skip matters only where updates were skipped. */
int fit_models_alike(const struct fit_model *a, const struct fit_model *b) {
    return fit_models_one_function(a, b) && logs_after(a->contract) == logs_after(b->contract) &&
           (a->plan.skipped_count == 0 || a->contract->on_skip == b->contract->on_skip);
}

/* Tells whether two models that are alike, set to the same numbers, log the same double at every
 * point. They are one function except before the first counted update and behind the total, so only
 * those points are evaluated. Where updates are skipped or counted in epochs they may differ
 * anywhere. */
static int equal_columns(const struct fit_model *a, const struct fit_model *b,
                         const struct fit_window *window) {
    const int64_t total = (int64_t)a->plan.steps;
    if (a->plan.skipped_count > 0 || a->contract->unit == CONTRACT_UNIT_EPOCH) return 0;
    if (a->plan.increment != b->plan.increment || total != (int64_t)b->plan.steps) return 0;
    for (size_t i = 0; i < window->count; i++) {
        const uint64_t update = window->points[i].update;
        const int64_t at = (int64_t)update + window->shift;
        if (at > 1 && at < total) continue;
        if (fit_model_logged(a, update, window->shift) !=
            fit_model_logged(b, update, window->shift))
            return 0;
    }
    return 1;
}

/* Takes over solutions of a model that is alike, after verifying them on this one. */
static size_t adopt(struct fit_model *solved, struct fit_model *model,
                    const struct fit_window *window, const struct fit_solutions *from,
                    struct fit_solutions *out) {
    out->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        struct fit_solution solution = from->at[i];
        fit_model_set(solved, &solution.numbers);
        fit_model_set(model, &solution.numbers);
        if (equal_columns(solved, model, window) ||
            fit_verify(model, window, &solution.max_error, &solution.rms_error))
            out->at[out->count++] = solution;
    }
    return out->count;
}

/* Adds the cheapest solutions first, and at most `most` of one model. */
static void keep(struct fit_search *search, size_t model, struct fit_solutions *solutions,
                 uint8_t first_differs, size_t most) {
    double costs[FIT_SOLUTIONS];
    for (size_t i = 0; i < solutions->count; i++) {
        solutions->at[i].model = model;
        struct fit_found found = {.solution = solutions->at[i], .first_differs = first_differs};
        costs[i] = fit_cost(search, &found);
    }
    for (size_t n = 0; n < most; n++) {
        size_t best = solutions->count;
        for (size_t i = 0; i < solutions->count; i++)
            if (costs[i] < real_inf_f64() && (best == solutions->count || costs[i] < costs[best]))
                best = i;
        if (best == solutions->count) return;
        struct fit_found found = {.solution = solutions->at[best], .first_differs = first_differs};
        fit_search_add(search, &found);
        costs[best] = real_inf_f64();
    }
}

/* What became of a model: its evaluations may have been spent before it was tried to its end. */
enum turn { TURN_AHEAD = 0, TURN_SOLVED, TURN_CUT };

/* Solves one model, and adopts what solves it for those that are alike. */
static void solve_model(struct fit_search *search, const struct fit_window *window, size_t m,
                        uint8_t first_differs, uint8_t *turns) {
    struct fit_model *model = &search->models[m];
    struct fit_solutions solutions, copies;
    fit_solve(model, window, &solutions);
    const uint8_t turn = search->budget > 0 || window->turn > 0 ? TURN_SOLVED : TURN_CUT;
    turns[m] = turn;
    keep(search, m, &solutions, first_differs, 4);
    for (size_t n = m + 1; n < search->model_count; n++) {
        if (turns[n] == TURN_SOLVED || !fit_models_alike(model, &search->models[n])) continue;
        if (search->models[n].contract->start != model->contract->start && solutions.count == 0)
            continue; /* the first update may be what did not fit */
        turns[n] = turn;
        if (adopt(model, &search->models[n], window, &solutions, &copies) > 0)
            keep(search, n, &copies, first_differs, 4);
    }
}

/* Takes the warm-ups and totals of the simplest that was found. */
static void take_seeds(const struct fit_search *search, struct fit_window *window) {
    double least = -real_inf_f64();
    window->seed_count = 0;
    while (window->seed_count < FIT_SEEDS) {
        const struct fit_found *next = NULL;
        for (size_t i = 0; i < search->count; i++)
            if (search->found[i].cost > least &&
                (next == NULL || search->found[i].cost < next->cost))
                next = &search->found[i];
        if (next == NULL) return;
        least = next->cost;
        if (next->solution.numbers.stride == 1.0 && next->solution.numbers.epoch == 0)
            window->seeds[window->seed_count++] = next->solution.numbers;
    }
}

/* Evaluations for models whose turn came when those of the pass were spent. The last contracts of
 * the table would else be missing among the fits of a log from the middle of a run, and what they
 * apply would raise no doubt. A model takes about a thousand where nothing is sought, so this is
 * enough for most of them. */
#define BRIEF 300000

/* Gives those models a turn with what is listed. Where nobody said a total, the others get one with
 * what was found: two totals that are one update apart print one column under contracts that print
 * the LR of this update and of the next one, and the scan stops at the first that it finds. */
static void end_turns(struct fit_search *search, const struct fit_window *like, uint8_t *turns) {
    const size_t left = search->budget;
    struct fit_window window = *like;
    window.no_scan = 1;
    take_seeds(search, &window);
    search->budget = BRIEF;
    for (size_t m = 0; m < search->model_count; m++) {
        const int cut = turns[m] == TURN_CUT;
        if (!cut && (like->no_scan || window.seed_count == 0)) continue;
        window.turn = cut ? FIT_TURN_LISTED : FIT_TURN_SEEDS;
        solve_model(search, &window, m, 0, turns);
    }
    search->budget = left;
}

/* Tells whether a floor is worth a try that no row reaches: the model has one that nobody gave, and
 * is of the log's own format. */
static int may_have_floor(const struct fit_search *search, const struct fit_model *model) {
    return model->floor != NULL && !model->given_floor && model->needs_total &&
           model->plan.schedule->state_size == 0 && !model->contract->bug &&
           model->contract->unit != CONTRACT_UNIT_EPOCH &&
           fit_is_native(search->known, model->contract);
}

/* Tells whether the floor is to be solved for. A scheduler that is one update late stands beside
 * every contract, so that no pass rests on a floor which makes up for it. */
static int may_solve_floor(const struct fit_search *search, const struct fit_model *model) {
    return model->floor != NULL && !model->given_floor && model->needs_total &&
           model->contract->unit != CONTRACT_UNIT_EPOCH &&
           (model->contract->bug ? fit_contract_is_late(model->contract)
                                 : fit_is_native(search->known, model->contract));
}

/* Tells whether a model gets a turn with the floors of the window. */
static int has_turn(const struct fit_search *search, const struct fit_window *window,
                    const struct fit_model *model) {
    if (window->solved_floors) return may_solve_floor(search, model);
    return !window->typed_floors || may_have_floor(search, model);
}

void fit_search_window(struct fit_search *search, const struct fit_window *like, size_t first,
                       size_t end, uint8_t first_differs) {
    struct fit_window window = *like;
    const struct series_point *points = search->series->points;
    fit_window_open(&window, points + first, end - first);
    uint8_t turns[8192] = {0};
    for (int usual = 1; usual >= 0; usual--)
        for (size_t m = 0; m < search->model_count; m++)
            if (turns[m] == TURN_AHEAD &&
                (!search->usual_first || fit_is_usual(&search->models[m]) == usual) &&
                has_turn(search, like, &search->models[m]))
                solve_model(search, &window, m, first_differs, turns);
    if (window.every_model) end_turns(search, &window, turns);
}

/* Costs (forensics/fit_cost.c) below which an explanation that agrees with all that is known ends
 * the search: for skipped updates, the cost of numbers that somebody types (a peak of two digits
 * and a warm-up of three, say), below that of the skips; for what is stranger than those, nearly a
 * contradiction. */
#define TYPED 0.45
#define USABLE 0.9

static int any_agrees(const struct fit_search *search, double most) {
    for (size_t i = 0; i < search->count; i++)
        if (search->found[i].cost < most && fit_agrees(search, &search->found[i])) return 1;
    return 0;
}

/* Tells whether a contract of the log's own format explains it with numbers that somebody typed. */
static int any_typed(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found *found = &search->found[i];
        if (found->cost < TYPED && fit_agrees(search, found) &&
            fit_is_native(search->known, search->models[found->solution.model].contract))
            return 1;
    }
    return 0;
}

/* Tells whether one departure or less explains the log already: each costs about 1
 * (forensics/fit_cost.c). */
static int any_cheap(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++)
        if (search->found[i].cost < 1.0) return 1;
    return 0;
}

static void add_stride(double *strides, size_t *count, double stride) {
    if (!(stride > 0.0) || stride == 1.0 || *count == STRIDES) return;
    for (size_t i = 0; i < *count; i++)
        if (strides[i] == stride) return;
    strides[(*count)++] = stride;
}

static size_t list_strides(const struct fit_search *search, double *strides) {
    const struct contract_request *request = &search->known->request;
    const double p = (double)request->processes, a = (double)request->accumulate;
    const double b = (double)request->global_batch;
    size_t count = 0;
    const double own[] = {p, a, p * a, b, b > 0.0 ? 1.0 / b : 0.0};
    for (size_t i = 0; i < COUNT_OF(own); i++)
        add_stride(strides, &count, own[i]);
    for (size_t i = 0; i < COUNT_OF(usual_strides); i++)
        add_stride(strides, &count, usual_strides[i]);
    for (size_t i = 0; i < search->count; i++) { /* a total that the run is a whole multiple of */
        const double total = search->found[i].solution.numbers.total;
        const double run = (double)search->known->run_steps;
        const double times = total > 0.0 ? fit_round(run / total) : 0.0;
        if (times >= 2.0 && times <= 1024.0) add_stride(strides, &count, times);
    }
    return count;
}

static void pass_strides(struct fit_search *search, int free_strides) {
    struct fit_window window;
    double strides[STRIDES];
    fit_search_template(search, &window);
    window.strides = strides;
    window.stride_count = list_strides(search, strides);
    window.free_strides = free_strides;
    fit_search_window(search, &window, 0, search->series->count, 0);
}

/* How many evaluations each pass may take, at about 0.1 us each: chosen so that a pass ends within
 * a fifth of a second, and a column that nothing explains within one. */
enum {
    PLAIN = 1500000,
    OTHER_TOTALS = 1000000, /* than those that were said */
    SKIPS = 1200000,
    STRIDES_KNOWN = 800000,
    FIRST = 800000,
    SEGMENTS = 1500000,
    STRIDES_FREE = 800000,
    DEEP = 800000,
    FLOORS = 150000,
    FREE_FLOORS = 600000, /* decays behind a plateau come last, each length with every shape */
    /* Steps of recursive schedules in all passes together, since they fit few logs; and as many
     * where their floors are solved for. */
    WALK = 6000000
};

/* Tells whether something agrees with all that is known, and falls to no floor that was merely read
 * off the last row: a log that was cut off ends above its floor, and then the floor of a longer
 * decay explains it. */
static int any_ends(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found *found = &search->found[i];
        const struct fit_model *model = &search->models[found->solution.model];
        const double floor = found->solution.numbers.floor;
        if (found->cost < USABLE && fit_agrees(search, found) &&
            (model->floor == NULL || floor == model->floor_default ||
             fit_digits(floor) <= FIT_TYPED_DIGITS))
            return 1;
    }
    return 0;
}

/* Tells whether a contract of the log's own format explains it without a floor. Where all need one,
 * the floor is solved for under every contract: one of them may have read it off a row that the
 * others print elsewhere, and what passes must stand beside all of them. */
static int any_without_floor(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found *found = &search->found[i];
        const struct fit_model *model = &search->models[found->solution.model];
        if (found->cost < USABLE && fit_agrees(search, found) &&
            fit_is_native(search->known, model->contract) &&
            (model->floor == NULL || found->solution.numbers.floor == model->floor_default))
            return 1;
    }
    return 0;
}

/* Tries the total and the floor that the bend of the rows gives, where nobody said a total: of the
 * pairs that a scan would come to, this is the one that explains a decay of power 2. Contracts
 * print f(T) at update T - 1 to T + 2. */
static void search_vertex(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    struct fit_vertex vertex;
    fit_window_open(&window, search->series->points, search->series->count);
    if (window.said_totals > 0 ||
        search->known->request.min_lr_ratio == search->known->request.min_lr_ratio ||
        !fit_find_vertex(&window, &vertex))
        return;
    search->budget = FLOORS;
    window.typed_floors = window.no_scan = 1;
    window.every_model = 0;
    window.only_floor = vertex.floor;
    window.known_totals = window.end_totals = 0;
    for (double total = vertex.update - 2.0; total <= vertex.update + 1.0; total += 1.0)
        if (total >= 1.0) window.known_total[window.known_totals++] = (uint64_t)total;
    fit_search_window(search, &window, 0, search->series->count, 0);
}

/* Tries the ends and the floors of a decay behind a plateau that its rows give, where nobody said a
 * total: all of them, since the digits may leave several. Contracts print f(T) at update T - 1 to
 * T + 2. */
static void search_ends(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    if (window.said_totals > 0 ||
        search->known->request.min_lr_ratio == search->known->request.min_lr_ratio)
        return;
    search->budget = FREE_FLOORS;
    window.typed_floors = window.no_scan = 1;
    window.every_model = 0;
    for (size_t i = 0; i < search->decays->end_count; i++) {
        const double end = search->decays->ends[i].update;
        window.only_floor = search->decays->ends[i].floor;
        window.known_totals = window.end_totals = 0;
        for (double total = end - 2.0; total <= end + 1.0; total += 1.0)
            if (total >= 1.0) window.known_total[window.known_totals++] = (uint64_t)total;
        fit_search_window(search, &window, 0, search->series->count, 0);
    }
}

/* ---- a cosine of which the rows show no beginning, or several ---- */

/* Warm-ups beside the one that the rows give, and totals beside the one that goes with each. */
#define BESIDE 60.0
#define AROUND 2.0
/* Cycles in front of the rows that a long warm-up may stand for. */
#define CYCLES_BEFORE 8
/* Evaluations that a pair of warm-up and total takes, of which most fail at once; and what all of
 * them may take. */
#define PAIR 16
#define COSINES 600000

static double least_of(double a, double b) {
    return a < b ? a : b;
}

/* Returns how many cycles the model has, by its variant or by what was given; 0: it is no cosine of
 * that kind, and 1 for one that falls once. */
static double cycles_of(const struct fit_search *search, const struct fit_model *model,
                        size_t beginnings) {
    static const char key[] = "num_cycles";
    static const char *const once[] = {"cosine", "cosine_with_min_lr", "warmup_cosine"};
    const struct contract_request *const r = &search->known->request;
    const char *const name = sched_bare_name(model->plan.schedule);
    if (model->contract->unit == CONTRACT_UNIT_EPOCH || model->plan.schedule->state_size > 0)
        return 0.0;
    if (beginnings == 0) {
        for (size_t i = 0; i < COUNT_OF(once); i++)
            if (strcmp(name, once[i]) == 0) return model->parameters[0] == '\0' ? 1.0 : 0.0;
        return 0.0;
    }
    if (strcmp(name, "cosine_with_restarts") != 0) return 0.0;
    if (strncmp(model->parameters, key, sizeof key - 1) == 0)
        return strtod(model->parameters + sizeof key, NULL);
    for (size_t v = 0; v < r->value_count; v++)
        if (strcmp(r->values[v].key, key) == 0) return strtod(r->values[v].text, NULL);
    return 0.0;
}

/* Tells whether somebody said a total, and this is another one. */
static int is_another(const struct fit_window *window, double total) {
    for (size_t i = 0; i < window->said_totals; i++)
        if (total == (double)window->known_total[i]) return 0;
    return window->said_totals > 0;
}

struct cosine {
    const struct fit_window *window;
    const struct fit_cycles *cycles;
    struct fit_model *model;
    double count; /* its cycles */
};

/* Tries the totals that go with one warm-up, of which the cosine began at an update. */
static void try_warmup(struct fit_search *search, const struct cosine *c, double warmup,
                       double begin, struct fit_solutions *found) {
    const double length = SCHED_PI * (c->cycles->middle - begin) / c->cycles->angle;
    const double end = fit_round(warmup + c->count * length);
    for (double total = end - AROUND; total <= end + AROUND; total += 1.0) {
        struct fit_solution *const next = &found->at[found->count];
        if (total <= warmup || is_another(c->window, total) || search->budget < PAIR ||
            found->count == FIT_SOLUTIONS)
            continue;
        search->budget -= PAIR;
        memset(next, 0, sizeof *next);
        next->numbers.lr = c->cycles->peak;
        next->numbers.floor = c->cycles->floor;
        next->numbers.warmup = warmup;
        next->numbers.total = total;
        next->numbers.stride = 1.0;
        fit_model_set(c->model, &next->numbers);
        found->count += fit_verify(c->model, c->window, &next->max_error, &next->rms_error) != 0;
    }
}

/* Tries the whole warm-ups that the rows leave one model, round ones first, and adds the cheapest.
 */
static void solve_cosine(struct fit_search *search, const struct cosine *c, size_t m) {
    struct fit_solutions found = {.count = 0};
    const struct fit_cycles *const cycles = c->cycles;
    /* The row of update k shows f(k - 1), or f(k) where it is the next LR. */
    const double ahead = 1.0 - (double)logs_after(c->model->contract);
    for (int past = 0; past < (c->count > 1.0 ? CYCLES_BEFORE : 1); past++) {
        const double off = least_of(cycles->begin_off + past * cycles->length_off, BESIDE) + AROUND;
        const double first = cycles->begin - ahead - past * cycles->length;
        for (int odd = 0; odd < 2; odd++) {
            double warmup = fit_ceil(first - off);
            for (warmup = warmup < 0.0 ? 0.0 : warmup; warmup <= first + off; warmup += 1.0) {
                if ((fit_floor(warmup / 10.0) * 10.0 != warmup) != odd) continue;
                try_warmup(search, c, warmup, warmup + ahead + past * cycles->length, &found);
            }
        }
    }
    keep(search, m, &found, 0, 4);
}

/* Tells whether the model has this floor, or may. */
static int may_have(const struct fit_model *model, double floor) {
    const double own = model->floor != NULL ? model->floor_default : 0.0;
    return floor == own || (model->floor != NULL && !model->given_floor);
}

static const double cosine_floors[] = {0.0, 0.1, 1e-4, 0.01, 0.05, 0.2};

int fit_lies_on_cosine(const struct series *series, double known_lr) {
    struct fit_window window = {.known_lr = known_lr};
    fit_window_open(&window, series->points, series->count);
    for (size_t f = 0; f < COUNT_OF(cosine_floors); f++) {
        struct fit_cycles cycles = {.floor = cosine_floors[f], .digits = 1};
        if (fit_next_cycles(&window, &cycles)) return 1;
    }
    return 0;
}

/* Tries the warm-ups and totals of a cosine that all rows together give, where a scan comes to
 * none: behind a warm-up that nobody lists, from coarse rows, or in cycles, whose LR does not rise
 * with the total. */
static void search_cosines(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    fit_window_open(&window, search->series->points, search->series->count);
    search->budget = COSINES;
    for (size_t f = 0; f < COUNT_OF(cosine_floors) && !any_agrees(search, USABLE); f++) {
        const double floor = cosine_floors[f];
        struct fit_cycles cycles = {.floor = floor, .digits = 1};
        while (fit_next_cycles(&window, &cycles) && search->budget >= PAIR) {
            if (cycles.beginnings > 0 && floor > 0.0) break; /* restarts fall to 0 */
            for (size_t m = 0; m < search->model_count; m++) {
                const struct cosine c = {&window, &cycles, &search->models[m],
                                         cycles_of(search, &search->models[m], cycles.beginnings)};
                if (c.count > 0.0 && may_have(c.model, floor)) solve_cosine(search, &c, m);
            }
        }
    }
}

/* Digits of a floor that a line may fall to: one more than of those that are usual, as the line and
 * the total that was said leave few of them. */
#define LINE_DIGITS 3

/* Tries the floor at which the line of the rows arrives at the total that somebody said. It is
 * printed one step above its floor at the last, so the last row does not tell it. Contracts print
 * f(T) at update T - 1 to T + 2. A line to 0 that was held by skipped updates ends at a floor, too:
 * what as many as are believed can leave is no floor to try. */
static void search_line(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    struct fit_line line;
    double before = real_nan_f64();
    fit_window_open(&window, search->series->points, search->series->count);
    if (window.said_totals == 0 ||
        search->known->request.min_lr_ratio == search->known->request.min_lr_ratio ||
        !fit_find_line(&window, &line))
        return;
    const double every = line.update - (double)window.points[window.descent[1] - 1].update;
    const double held = (double)fit_skips_most(search->last);
    window.typed_floors = window.no_scan = 1;
    window.every_model = 0;
    window.floor_peak =
        fit_shortest_of(window.scale, window.scale - 2.0 * every * line.slope, FIT_TYPED_DIGITS);
    for (double end = -1.0; end <= 2.0; end += 1.0) {
        const double ahead = (double)window.known_total[0] + end - line.update;
        const double at = line.value + ahead * line.slope;
        const double half = line.half + real_abs_f64(ahead) * line.slope_off;
        window.only_floor = fit_shortest_of(at - half, at + half, LINE_DIGITS);
        if (ahead < 0.0 || !(window.only_floor > -held * line.slope) || window.only_floor == before)
            continue;
        before = window.only_floor;
        search->budget = FLOORS;
        fit_search_window(search, &window, 0, search->series->count, 0);
    }
}

/* Tries the floors that configurations have, where the rows end above theirs: with the total that
 * somebody said, else with those that two rows leave. */
static void search_floors(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    search->budget = FLOORS;
    window.typed_floors = 1;
    window.no_scan = window.said_totals > 0;
    window.every_model = 0;
    fit_search_window(search, &window, 0, search->series->count, 0);
}

/* Tries the floor that the rows themselves give, of a decay that is no line. */
static void search_free_floors(struct fit_search *search, const struct fit_window *like) {
    struct fit_window window = *like;
    fit_window_open(&window, search->series->points, search->series->count);
    if (search->known->request.min_lr_ratio == search->known->request.min_lr_ratio ||
        !fit_may_solve_floor(&window))
        return;
    search->budget = FREE_FLOORS;
    search->walk = search->known->evaluations > 0 ? search->known->evaluations : WALK;
    window.solved_floors = window.no_scan = 1;
    window.every_model = 0;
    fit_search_window(search, &window, 0, search->series->count, 0);
}

/* Tries more warm-ups and floors. */
static void search_deep(struct fit_search *search, struct fit_window *window) {
    search->budget = DEEP;
    window->deep = window->every_model = 1;
    fit_search_window(search, window, 0, search->series->count, 0);
}

/* Searches for explanations where no simple use of a contract gives the column. */
static enum status unusual(struct fit_search *search, struct fit_window *window) {
    search->budget = SEGMENTS;
    search->usual_first = 1;
    TRY(fit_search_segments(search));
    search->usual_first = 0;
    if (search->count > 0) return STATUS_OK;
    search->budget = STRIDES_FREE;
    pass_strides(search, 1);
    if (search->count > 0) return STATUS_OK;
    search_deep(search, window);
    return STATUS_OK;
}

static enum status run_passes(struct fit_search *search) {
    struct fit_window window;
    const size_t count = search->series->count;
    search->budget = search->known->evaluations > 0 ? search->known->evaluations : PLAIN;
    search->walk = search->known->evaluations > 0 ? search->known->evaluations : WALK;
    search->usual_first = 1;
    fit_search_template(search, &window);
    window.no_scan = window.said_totals > 0;
    window.whole = 1;
    window.every_model = search->known->evaluations == 0;
    fit_search_window(search, &window, 0, count, 0);
    window.every_model = 0;
    if (window.no_scan && !search->known->plain && !any_agrees(search, USABLE)) {
        window.no_scan = 0;
        search->budget = OTHER_TOTALS;
        fit_search_window(search, &window, 0, count, 0);
    }
    if (!search->known->plain && search->known->counted == NULL && !any_ends(search)) {
        search_vertex(search, &window);
        if (!any_ends(search)) search_line(search, &window);
        if (!any_ends(search)) search_floors(search, &window);
        if (!any_ends(search)) search_ends(search, &window);
    }
    if (search->known->counted == NULL &&
        (search->known->evaluations == 0 || search->known->cosines) && !any_agrees(search, USABLE))
        search_cosines(search, &window);
    if (search->known->counted == NULL && !any_without_floor(search))
        search_free_floors(search, &window);
    search->usual_first = 0;
    fit_search_hold(search);
    if (search->count > 0) search->longest = count;
    /* Over counters of samples no skipped update is left, and no stride or segment is looked for.
     */
    if (search->known->counted != NULL) {
        if (search->count == 0) search_deep(search, &window);
        return STATUS_OK;
    }
    if (!search->known->plain || search->known->with_skips) {
        struct fit_found *aside;
        size_t set_aside;
        TRY(arena_take(search->arena, search->count, sizeof *aside, "fit", &aside));
        TRY(fit_search_set_aside(search, aside, &set_aside));
        const size_t kept = search->count;
        search->budget = any_typed(search) ? 0 : SKIPS;
        TRY(fit_search_skips(search));
        for (size_t i = 0; i < set_aside && search->count == kept + i; i++)
            fit_search_add(search, &aside[i]);
    }
    if (search->known->plain || any_agrees(search, USABLE)) return STATUS_OK;
    search->budget = STRIDES_KNOWN;
    pass_strides(search, 0);
    search->budget = FIRST;
    if (count > 3 && search->series->points[0].update == 1 && !any_cheap(search))
        fit_search_window(search, &window, 1, count, 1);
    return search->count == 0 ? unusual(search, &window) : STATUS_OK;
}

enum status fit_search_run(struct fit_search *search) {
    TRY(run_passes(search));
    if ((search->known->plain && !search->known->with_skips) || search->known->counted != NULL)
        return STATUS_OK;
    return fit_search_stretch(search);
}
