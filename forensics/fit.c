/* SPDX-License-Identifier: Apache-2.0
 * From what the search found to the list: sorted, grouped by logged and applied columns, put in
 * words.
 *
 * Invariant: a limit shortens groups. It never drops a contract whose applied column is different
 * from all that are listed. */
#include "forensics/fit.h"

#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "base/sort.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_search.h"

/* Fits that are listed unless the caller says otherwise: chosen so that the list is still read. */
#define LIMIT 24
/* Points at which two fits are compared: a quarter at either end, where conventions differ, and the
 * rest between. A shorter series is compared at all of its points. */
#define SAMPLES 64

void fit_known_init(struct fit_known *known) {
    memset(known, 0, sizeof *known);
    contract_request_init(&known->request);
}

int fit_matches(const struct series_point *point, double value, double scale, double *error) {
    const double distance = real_abs_f64(point->value - value);
    if (error != NULL) {
        const double ulp =
            real_next_up_f64(real_abs_f64(point->value)) - real_abs_f64(point->value);
        *error = distance / (point->quantum > 0.0 ? point->quantum : ulp);
    }
    return distance <= fit_half(point, scale);
}

/* Returns the segment that holds a point. */
static const struct fit_segment *segment_of(const struct fit *fit, size_t point) {
    size_t s = 0;
    while (s + 1 < fit->segment_count && fit->segments[s + 1].point <= point)
        s++;
    return &fit->segments[s];
}

uint64_t fit_skipped(const struct fit *fit) {
    uint64_t count = 0;
    for (size_t i = 0; i < fit->skip_count; i++)
        count += fit->skips[i].count;
    return count;
}

int fit_skips_any(const struct fit *fit) {
    return fit->skip_count > 0 || fit->part_count > 0;
}

int fit_skips_unshown(const struct fit *fit, const struct fit_known *known) {
    return known->skips.quiet && known->skips.shown == 0 && known->request.skipped_count == 0 &&
           fit_skips_any(fit);
}

/* Returns how many updates the log shows to have been skipped between a point and the one before.
 */
static uint32_t shown_before(const struct fit_evidence *skips, const struct series_point *point) {
    uint32_t shown = 0;
    for (size_t row = point[-1].row + 1; row <= point->row; row++)
        shown += skips->least[row];
    return shown;
}

int fit_total_ignores_skips(const struct fit *fit, const struct fit_known *known,
                            const struct series *series) {
    const struct fit_evidence *skips = &known->skips;
    const struct series_point *const points = series->points;
    const double last = points[series->count - 1].value;
    if (skips->shown == 0 || skips->least == NULL || known->run_steps > 0 ||
        known->request.steps > 0 || known->request.skipped_count > 0 || fit->steps == 0 ||
        fit->total_hidden || fit_skips_any(fit) || fit->segment_count != 1 || fit->in_samples ||
        fit->contract->on_skip != CONTRACT_SKIP_HOLD)
        return 0;
    for (size_t i = 1; i < series->count; i++)
        if (points[i].value == points[i - 1].value && points[i].value != last &&
            shown_before(skips, &points[i]) > 0)
            return 1;
    return 0;
}

int fit_skips_on_plateau(const struct fit *fit, const struct fit_known *known,
                         const struct series *series) {
    const struct series_point *const points = series->points;
    size_t first = 0, last = 0; /* the rows at the highest LR */
    if (known->skips.shown > 0 || known->run_steps > 0 || known->request.steps > 0 ||
        known->request.skipped_count > 0 || fit->steps == 0 || fit->segment_count != 1 ||
        fit->in_samples || sched_row(fit->schedule, "decay") == NULL)
        return 0;
    for (size_t i = 1; i < series->count; i++) {
        if (points[i].value > points[first].value) first = i;
        if (points[i].value >= points[first].value) last = i;
    }
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].last >= points[first].update &&
            fit->skips[i].first <= points[last].update)
            return 1;
    return 0;
}

/* Tells whether neither the total nor the warm-up was said, nor which updates were skipped, and the
 * rows begin behind the warm-up. */
static int front_is_free(const struct fit *fit, const struct fit_known *known) {
    const struct contract_request *const request = &known->request;
    return known->run_steps == 0 && request->steps == 0 && request->warmup != request->warmup &&
           request->skipped_count == 0 && (fit->warmup_hidden || fit->unseen_warmup > 0.0);
}

int fit_skips_before_rows(const struct fit *fit, const struct fit_known *known,
                          const struct series *series) {
    uint64_t front = 0;
    if (!front_is_free(fit, known) || fit->part_count > 0) return 0;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].last < series->points[0].update) front += fit->skips[i].count;
    return front > 0 && fit_skipped(fit) > known->skips.shown;
}

/* Skipped updates in front of the first row that are looked for behind a total. Chosen: a loss
 * scale that begins too high is halved once or a few times. */
#define SKIPS_IN_FRONT 3

int fit_total_is_beside(const struct fit *fit, const struct fit_known *known,
                        const struct series *series) {
    const uint64_t first = series->points[0].update;
    if (!front_is_free(fit, known) || fit_skips_any(fit) || fit->steps <= SKIPS_IN_FRONT ||
        fit->total_hidden || fit->segment_count != 1 || fit->stride != 1.0 || fit->in_samples ||
        fit->epoch_updates > 0 || known->skips.counted == FIT_COUNTED_EXACTLY)
        return 0;
    const int digits = fit_digits((double)fit->steps);
    for (uint64_t n = 1; n <= SKIPS_IN_FRONT && n < first; n++)
        if (fit_digits((double)(fit->steps - n)) + 2 <= digits) return 1;
    return fit_digits((double)(fit->steps + 1)) + 2 <= digits;
}

/* Returns the plan with the skipped updates of the part that holds a point, and with the total of
 * its segment. */
static struct contract_plan plan_at(const struct fit *fit, const struct fit_segment *segment,
                                    size_t point) {
    struct contract_plan plan = fit->plan;
    size_t p = 0;
    if (segment->steps > 0) {
        plan.steps = segment->steps;
        plan.warmup_updates = segment->warmup;
        plan.call.total = segment->call_total;
        plan.call.warmup = segment->call_warmup;
    }
    while (p + 1 < fit->part_count && fit->parts[p + 1].point <= point)
        p++;
    if (fit->part_count == 0) return plan;
    plan.skipped = fit->parts[p].skipped;
    plan.skipped_count = fit->parts[p].skipped_count;
    return plan;
}

static uint64_t moved(uint64_t update, int64_t shift) {
    const int64_t at = (int64_t)update + shift;
    return at < 1 ? 1 : (uint64_t)at;
}

double fit_logged(const struct fit *fit, size_t point, uint64_t update) {
    const struct fit_segment *segment = segment_of(fit, point);
    if (fit->first_differs && update == 1) return fit->first_value;
    if (fit->samples != NULL)
        return contract_logged(&fit->plan, fit_samples_before(fit->samples, point, update + 1));
    const struct contract_plan plan = plan_at(fit, segment, point);
    return segment->scale * contract_logged(&plan, moved(update, segment->shift));
}

double fit_applied(const struct fit *fit, size_t point, uint64_t update) {
    const struct fit_segment *segment = segment_of(fit, point);
    if (fit->first_differs && update == 1 && fit->contract->logged == CONTRACT_LOGGED_USED)
        return fit->first_value;
    if (fit->samples != NULL)
        return contract_applied(&fit->plan, 1 + fit_samples_before(fit->samples, point, update));
    const struct contract_plan plan = plan_at(fit, segment, point);
    return segment->scale * contract_applied(&plan, moved(update, segment->shift));
}

/* Lists the skipped updates that the request gave, where the contract's schedule holds at them. */
static enum status list_given(const struct fit_search *search, struct fit *fit) {
    const struct contract_request *request = &search->known->request;
    struct fit_skip *skips;
    if (fit->contract->on_skip != CONTRACT_SKIP_HOLD || request->skipped_count == 0)
        return STATUS_OK;
    TRY(arena_take(search->arena, request->skipped_count, sizeof *skips, "skips", &skips));
    for (size_t i = 0; i < request->skipped_count && request->skipped[i] <= search->last; i++) {
        const uint64_t update = request->skipped[i];
        if (fit->skip_count > 0 && skips[fit->skip_count - 1].last + 1 == update) {
            skips[fit->skip_count - 1].last++;
            skips[fit->skip_count - 1].count++;
        } else {
            skips[fit->skip_count++] = (struct fit_skip){update, update, 1, 0};
        }
    }
    fit->skips = skips;
    return STATUS_OK;
}

/* Tells whether a row lies below the one before it. */
static int falls(const struct series *series, double scale) {
    const struct series_point *points = series->points;
    for (size_t i = 1; i < series->count; i++)
        if (points[i - 1].value - points[i].value >
            fit_half(&points[i - 1], scale) + fit_half(&points[i], scale))
            return 1;
    return 0;
}

static enum status fill(const struct fit_search *search, const struct fit_found *found,
                        struct fit *out) {
    const struct fit_solution *solution = &found->solution;
    struct fit_model copy;
    TRY(fit_model_copy(&search->models[solution->model], search->arena, &copy));
    fit_model_set(&copy, &solution->numbers);
    *out = (struct fit){.contract = copy.contract,
                        .schedule = copy.plan.schedule,
                        .schedule_name = copy.schedule_name,
                        .plan = copy.plan,
                        .lr = solution->numbers.lr,
                        .warmup = copy.needs_warmup ? solution->numbers.warmup : 0.0,
                        .steps = copy.needs_total ? (uint64_t)solution->numbers.total : 0,
                        .stride = solution->numbers.stride,
                        .epoch_updates = solution->numbers.epoch,
                        .parameters = copy.parameters,
                        .takes_warmup = copy.needs_warmup,
                        .in_samples = search->known->counted != NULL,
                        .first_differs = found->first_differs,
                        .max_error = solution->max_error,
                        .rms_error = solution->rms_error,
                        .simplicity = found->cost};
    out->floor_ratio = copy.floor == NULL                   ? real_nan_f64()
                       : copy.floor_kind == FIT_FLOOR_RATIO ? *copy.floor
                                                            : *copy.floor / out->lr;
    out->first_value = search->series->points[0].value;
    out->segments = found->segments;
    out->segment_count = found->segment_count;
    out->skips = found->skips;
    out->skip_count = found->skip_count;
    out->parts = found->parts;
    out->part_count = found->part_count;
    if (found->skipped != NULL || found->parts != NULL) {
        out->plan.skipped = found->skipped;
        out->plan.skipped_count = found->skipped_count;
    } else {
        TRY(list_given(search, out));
    }
    if (found->segments == NULL) {
        struct fit_segment *plain;
        TRY(arena_take(search->arena, 1, sizeof *plain, "fit", &plain));
        *plain = (struct fit_segment){
            .update = search->series->points[0].update, .shift = solution->shift, .scale = 1.0};
        out->segments = plain;
        out->segment_count = 1;
    }
    const struct series_point *points = search->series->points;
    double top = 0.0;
    for (size_t i = 0; i < search->series->count; i++)
        top = points[i].value > top ? points[i].value : top;
    out->warmup_hidden = copy.needs_warmup && points[0].update > 1 && points[0].value == top &&
                         out->warmup <= (double)points[0].update;
    /* A constant without a warm-up has shown none: it may lie in front of the first row. */
    if (!copy.needs_warmup && points[0].update > 1 &&
        fit_alike(points, search->series->count, search->scale) == search->series->count)
        out->warmup_hidden = 1;
    const struct series_point *last = &points[search->series->count - 1];
    /* A cosine that came back to its peak has shown what it is. */
    const int fell = falls(search->series, search->scale);
    out->total_hidden = copy.needs_total && last->value == top && !fell;
    /* A stair of the warm-up may end the log, so its last two rows may be equal. */
    const int below = top < out->lr && !fit_near(top, out->lr);
    /* And where the last row is the peak, no row behind it says that the rise was over. */
    const int rises = search->series->count > 2 && last[-1].value < top;
    if (!fell && copy.needs_warmup && out->warmup > 1.0 && last->value == top &&
        points[0].value < top && (below || rises) && !fit_end_stands(search->series))
        out->reached = top;
    fit_find_unseen(search, &copy, out);
    return STATUS_OK;
}

/* The order of the list: contracts of the log's own format first, then ascending by simplicity,
 * then by error, then by the order of the models (the sort is stable). */
static int found_before(const void *a, const void *b, const void *context) {
    const struct fit_found *const x = (const struct fit_found *)a, *const y =
                                                                       (const struct fit_found *)b;
    (void)context;
    if (x->foreign != y->foreign) return y->foreign;
    if (x->cost != y->cost) return x->cost < y->cost;
    return x->solution.rms_error < y->solution.rms_error;
}

static uint64_t skips_of(const struct fit_found *found) {
    uint64_t count = 0;
    for (size_t i = 0; i < found->skip_count; i++)
        count += found->skips[i].count;
    return count;
}

/* Cost within which two fits differ in warm-up and skipped updates alone: the ranks of contracts
 * and schedules that are used much (hundredths). */
#define BESIDE 0.06

/* Puts the fit with the fewest skipped updates first, among those that are as simple as the first
 * in all but the warm-up: a rounder warm-up with more skipped updates is no simpler. That one stays
 * behind it and raises a doubt (fit_raises_doubt). */
static void prefer_fewer(const struct fit_search *search) {
    struct fit_found *const found = search->found;
    if (search->count == 0 || search->known->skips.shown > 0 || found[0].part_count > 0) return;
    const double most = fit_cost_beside_skips(search, &found[0]) + BESIDE;
    size_t best = 0;
    for (size_t i = 1; i < search->count && found[i].foreign == found[0].foreign; i++)
        if (skips_of(&found[i]) > 0 && skips_of(&found[i]) < skips_of(&found[best]) &&
            found[i].part_count == 0 && fit_cost_beside_skips(search, &found[i]) <= most)
            best = i;
    const struct fit_found first = found[best];
    for (; best > 0; best--)
        found[best] = found[best - 1];
    found[0] = first;
}

/* Both columns at the first and last points and at some between them. Two fits are called the same
 * where they agree on these samples: the ends are where conventions differ by an update. */
struct sample {
    double logged[SAMPLES], applied[SAMPLES];
    double between[2 * SAMPLES]; /* what no row shows: `applied` in front of these points */
};

static size_t sample_point(const struct series *series, size_t n) {
    if (series->count <= SAMPLES || n < SAMPLES / 4) return n;
    if (n >= SAMPLES - SAMPLES / 4) return series->count - (SAMPLES - n);
    return (size_t)((double)series->count * (double)n / SAMPLES);
}

static size_t samples_of(const struct series *series) {
    return series->count < SAMPLES ? series->count : SAMPLES;
}

/* The updates between the row before a point and the point: the one behind that row, and the one in
 * the middle. They are the point itself where there is none, or where a resume falls back. */
static void between_of(const struct series *series, size_t i, uint64_t out[2]) {
    const uint64_t now = series->points[i].update;
    const uint64_t before = i > 0 ? series->points[i - 1].update : 0;
    const int resumed = i > 0 && series->points[i].part != series->points[i - 1].part;
    out[0] = before + 1 < now && !resumed ? before + 1 : now;
    out[1] = out[0] < now ? out[0] + (now - out[0]) / 2 : now;
}

static void take_sample(const struct fit *fit, const struct series *series, struct sample *out) {
    for (size_t n = 0; n < samples_of(series); n++) {
        const size_t i = sample_point(series, n);
        out->logged[n] = fit_logged(fit, i, series->points[i].update);
        out->applied[n] = fit_applied(fit, i, series->points[i].update);
        uint64_t between[2];
        between_of(series, i, between);
        for (size_t b = 0; b < COUNT_OF(between); b++)
            out->between[2 * n + b] = fit_applied(fit, i, between[b]);
    }
}

static int same(const double *a, const double *b, size_t count, double slack) {
    for (size_t n = 0; n < count; n++)
        if ((a[n] != a[n]) != (b[n] != b[n]) || real_abs_f64(a[n] - b[n]) > slack) return 0;
    return 1;
}

/* How many groups of each kind there are. */
struct groups {
    uint32_t logged, applied, throughout;
};

static void group(struct fit *fits, const struct sample *samples, size_t n, size_t points,
                  double slack, struct groups *groups) {
    size_t i = 0, like = n;
    while (i < n && !same(samples[i].logged, samples[n].logged, points, slack))
        i++;
    fits[n].same_logged = i < n ? fits[i].same_logged : groups->logged++;
    for (i = 0; i < n; i++) {
        if (fits[i].same_logged != fits[n].same_logged ||
            !same(samples[i].applied, samples[n].applied, points, slack))
            continue;
        if (like == n) like = i;
        if (same(samples[i].between, samples[n].between, 2 * points, slack)) break;
    }
    fits[n].same_applied = like < n ? fits[like].same_applied : groups->applied++;
    fits[n].same_throughout = i < n ? fits[i].same_throughout : groups->throughout++;
}

/* Tells whether a fit beyond the limit must stay: it does when it logs what the best fit logs and
 * nothing listed applies the same. */
static int adds(const struct fit *fits, size_t n, const struct fit *top) {
    for (size_t i = 0; i < n; i++)
        if (fits[i].same_applied == fits[n].same_applied) return 0;
    return fits[n].same_logged == top->same_logged;
}

static enum status list(struct fit_search *search, struct fit_set *out) {
    const size_t limit = search->known->limit > 0 ? search->known->limit : LIMIT;
    const size_t room = search->count < 4 * limit ? search->count : 4 * limit;
    struct fit *fits;
    struct fit_found *spare;
    struct sample *samples;
    struct groups groups = {0, 0, 0};
    TRY(arena_take(search->arena, room + 1, sizeof *fits, "fit", &fits));
    TRY(arena_take(search->arena, room + 1, sizeof *samples, "fit", &samples));
    TRY(arena_take(search->arena, search->count, sizeof *spare, "fit", &spare));
    for (size_t i = 0; i < search->count; i++)
        search->found[i].foreign =
            !fit_is_native(search->known, search->models[search->found[i].solution.model].contract);
    search->found = (struct fit_found *)sort_stable(search->found, spare, search->count,
                                                    sizeof *spare, found_before, NULL);
    prefer_fewer(search);
    for (size_t i = 0; i < search->count; i++) {
        if (out->count == room) {
            out->left_out++;
            continue;
        }
        TRY(fill(search, &search->found[i], &fits[out->count]));
        take_sample(&fits[out->count], search->series, &samples[out->count]);
        group(fits, samples, out->count, samples_of(search->series), 0x1p-46 * search->scale,
              &groups);
        if (out->count >= limit && !adds(fits, out->count, &fits[0])) {
            out->left_out++;
            continue;
        }
        TRY(fit_words(search, &fits[out->count]));
        out->count++;
    }
    out->fits = fits;
    out->groups = groups.logged;
    return STATUS_OK;
}

static void judge(struct fit_set *out, const struct series *series, double scale) {
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        if (!real_finite_f64(point->value)) out->why |= FIT_WHY_NOT_FINITE;
        if (point->update > out->last) out->last = point->update;
    }
    if (series->count < 3) out->why |= series->count == 0 ? FIT_WHY_NO_COLUMN : FIT_WHY_FEW;
    if (series->count > 0 && fit_alike(series->points, series->count, scale) == series->count)
        out->why |= FIT_WHY_CONSTANT;
}

static void judge_fits(struct fit_set *out, const struct fit_search *search) {
    if (out->count == 0) out->why |= FIT_WHY_NOTHING;
    for (size_t i = 1; i < out->count; i++) {
        const struct fit *first = &out->fits[0], *other = &out->fits[i];
        /* One that needs more skipped updates is a remark and no doubt. */
        if (fit_skipped(other) > fit_skipped(first)) continue;
        if (other->same_logged == first->same_logged && other->same_applied != first->same_applied)
            out->why |= FIT_WHY_APPLIED;
        if (other->same_logged != first->same_logged && other->simplicity < first->simplicity + 1.0)
            out->why |= FIT_WHY_COARSE;
    }
    out->first_bad = search->longest;
}

/* Tells whether the column is negative and never above 0. Schedules may run below 0 behind their
 * end, and no training is there throughout: what prints such a column is no schedule's own. */
static int is_negative(const struct series *series) {
    double top = 0.0, bottom = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        if (series->points[i].value > top) top = series->points[i].value;
        if (series->points[i].value < bottom) bottom = series->points[i].value;
    }
    return bottom < 0.0 && !(top > 0.0);
}

/* Searches over updates, or what stands for them. */
static enum status over_updates(const struct series *series, const struct fit_known *known,
                                struct arena *arena, struct fit_set *out) {
    struct fit_search search = {.series = series,
                                .known = known,
                                .arena = arena,
                                .scale = fit_scale(series->points, series->count)};
    *out = (struct fit_set){.series = series};
    judge(out, series, search.scale);
    search.last = out->last;
    if ((out->why & (FIT_WHY_NO_COLUMN | FIT_WHY_NOT_FINITE)) != 0) return STATUS_OK;
    if (is_negative(series)) {
        out->why |= FIT_WHY_NOTHING;
        return STATUS_OK;
    }
    TRY(arena_take(arena, FIT_FOUND, sizeof *search.found, "fit", &search.found));
    struct contract_request request = known->request;
    /* What departs from the expectation may be the smallest LR, so it is fitted, not taken. */
    if (known->expected != NULL) request.min_lr_ratio = real_nan_f64();
    struct fit_decays decays;
    fit_find_decays(series, known, search.scale, out->last, &decays);
    search.decays = &decays;
    TRY(fit_models(&request, known, &decays, arena, &search.models, &search.model_count));
    TRY(fit_search_run(&search));
    TRY(list(&search, out));
    TRY(fit_plateau(&search, out));
    TRY(fit_torch(&search, out));
    judge_fits(out, &search);
    if (out->count == 0 && search.partial != NULL) TRY(fit_words_partial(&search, &out->partial));
    return STATUS_OK;
}

/* Tells whether a contract of the log's format explains all rows by one schedule. */
static int any_plain(const struct fit_set *set, const struct fit_known *known) {
    for (size_t i = 0; i < set->count; i++)
        if (fit_is_native(known, set->fits[i].contract) && !set->fits[i].first_differs &&
            set->fits[i].segment_count <= 1)
            return 1;
    return 0;
}

/* Where the batch stays, a counter of updates explains most logs, in numbers that are easier to
 * read. What no contract of the log's format explains so without a break has a warm-up or a total
 * of samples. */
static enum status over_steady_samples(const struct series *series, const struct fit_known *known,
                                       struct arena *arena, struct fit_set *out) {
    struct fit_known steady = *known;
    struct fit_set by_samples;
    if (known->steady == NULL || series->count < 3 || !fit_samples_are_asked(known) ||
        known->request.skipped_count > 0 || any_plain(out, known) ||
        (out->why & (FIT_WHY_NO_COLUMN | FIT_WHY_NOT_FINITE)) != 0)
        return STATUS_OK;
    /* Samples that no row prints are no reason to leave a bug of a counter of updates unnamed. */
    if (known->steady->assumed && out->count > 0) return STATUS_OK;
    steady.samples = known->steady;
    TRY(fit_series_by_samples(series, &steady, arena, &by_samples));
    if (by_samples.count > 0) *out = by_samples;
    return STATUS_OK;
}

/* A schedule that counts samples is tried first where the batch grows: in a counter of updates its
 * column has no sense. */
enum status fit_series(const struct series *series, const struct fit_known *known,
                       struct arena *arena, struct fit_set *out) {
    const struct contract *only = known->request.contract;
    uint32_t why = 0;
    if (series_lost(series) > 0.0) {
        *out = (struct fit_set){.series = series, .why = FIT_WHY_LOST | FIT_WHY_CONSTANT};
        return STATUS_OK;
    }
    if (known->samples != NULL && series->count > 0 && (only == NULL || fit_samples_counts(only))) {
        TRY(fit_series_by_samples(series, known, arena, out));
        if (out->count > 0 || only != NULL) return STATUS_OK;
        why = out->why & FIT_WHY_BATCH;
    }
    TRY(over_updates(series, known, arena, out));
    if (only == NULL || fit_samples_counts(only))
        TRY(over_steady_samples(series, known, arena, out));
    if (known->growing && known->samples == NULL) why = FIT_WHY_BATCH;
    if (out->count == 0) out->why |= why;
    return STATUS_OK;
}
