/* SPDX-License-Identifier: Apache-2.0
 * Fits in words. Names of bugs are those of docs/LR.md. A name is given where the numbers show the
 * bug's signature against what is known, and never for plain use.
 *
 * Invariant: every number in a text is one of the fit. */
#include "forensics/fit_search.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"

/* Digits of a peak that somebody typed. */
#define TYPED 3
/* Moves of a staircase, over the run, from which on it is told as one. */
#define MOVES_LEAST 4

struct line {
    char text[768];
};

/* A share of the total is a whole number up to the rounding of a product: 0.07 * 700 is not 49. */
static double whole(double updates) {
    const double nearest = fit_round(updates);
    return fit_near(updates, nearest) ? nearest : updates;
}

static void put(struct line *line, const char *format, ...) TWINSTEP_PRINTF(2, 3);
static void put(struct line *line, const char *format, ...) {
    const size_t used = strlen(line->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line->text + used, sizeof line->text - used, format, arguments);
    va_end(arguments);
}

/* `warmup` is the one of the segment before. */
static void put_segment(struct line *line, const struct fit_segment *segment, double warmup) {
    const unsigned long long k = segment->update;
    switch (segment->event) {
    case FIT_SKIP:
        put(line, "; held %lld time%s at update %llu", (long long)-segment->moved,
            segment->moved == -1 ? "" : "s", k);
        break;
    case FIT_BACK:
        put(line, "; counter back to %lld at update %llu",
            (long long)k + (long long)segment->shift - 1, k);
        break;
    case FIT_JUMP:
        put(line, "; ahead by %lld from update %llu", (long long)segment->moved, k);
        break;
    case FIT_RESET:
        put(line, "; counter back to 0 at update %lld", (long long)(1 - segment->shift));
        break;
    case FIT_DOUBLED:
        put(line, "; counter doubled at update %lld", (long long)(segment->moved + 1));
        break;
    case FIT_RESCALED:
        put(line, "; peak times %.4g from update %llu", segment->scale, k);
        break;
    case FIT_RESTARTED:
        put(line, "; counter back to 0 and peak times %.4g from update %llu", segment->scale, k);
        break;
    case FIT_TOTAL:
        put(line, "; total %llu", (unsigned long long)segment->steps);
        if (warmup != segment->warmup)
            put(line, " and warm-up %s", number_text_f64(whole(segment->warmup)).text);
        put(line, " from update %llu", k);
        if (segment->moved != 0)
            put(line, ", %s by %lld", segment->moved < 0 ? "held" : "ahead",
                (long long)(segment->moved < 0 ? -segment->moved : segment->moved));
        break;
    default:
        break;
    }
}

/* Ranges of skipped updates that are listed; the rest is counted. */
#define SKIPS 4

static void put_skip(struct line *line, const struct fit_skip *skip, const char *sign) {
    const unsigned long long first = skip->first, last = skip->last, count = skip->count;
    if (first == last)
        put(line, "%s update %llu", sign, first);
    else if (last - first + 1 == count)
        put(line, "%s updates %llu to %llu", sign, first, last);
    else
        put(line, "%s %llu of the updates %llu to %llu", sign, count, first, last);
}

/* Says how a part begins, where that is not with the counter that was saved. */
static void put_part(struct line *line, const struct fit *fit, size_t p) {
    const struct fit_part *part = &fit->parts[p];
    if (part->begins == FIT_PART_COUNTS_ANEW)
        put(line, "; at resume %zu the counter is the number of updates", p);
    if (part->begins == FIT_PART_OTHER)
        put(line, "; at resume %zu the counter is %lu behind", p, (unsigned long)part->lag);
}

static void put_skips(struct line *line, const struct fit *fit) {
    uint64_t more = 0;
    size_t part = 0;
    for (size_t i = 0; i < fit->skip_count; i++) {
        const struct fit_skip *skip = &fit->skips[i];
        const char *sign = i == 0 ? "; skipped:" : ",";
        char other[64];
        if (i >= SKIPS) {
            more += skip->count;
            continue;
        }
        if (skip->part != part) {
            snprintf(other, sizeof other, "; skipped after resume %zu:", skip->part);
            sign = other;
        }
        part = skip->part;
        put_skip(line, skip, sign);
    }
    if (more > 0) put(line, " and %llu more", (unsigned long long)more);
    for (size_t p = 0; p < fit->part_count; p++)
        put_part(line, fit, p);
}

/* Cuts a positive number to four digits, so that "at least" is never said of more than was seen.
 * Fourteen digits before the cut leave 59 * 1e-7 what it is, whose last bits are rounding. */
static double cut(double x) {
    char text[NUMBER_TEXT_SIZE];
    double four;
    snprintf(text, sizeof text, "%.13e", x);
    char *const power = strchr(text, 'e');
    if (power == NULL) return x;
    memmove(text + strlen("1.234"), power, strlen(power) + 1);
    return number_parse_real(text, NUMBER_FINITE, &four) == STATUS_OK ? four : x;
}

static void describe(struct line *line, const struct fit *fit) {
    const char *const unit = fit->in_samples ? " samples" : "";
    /* A log that ends in the warm-up shows no floor, and no total that lies before its end. */
    const int ends_early = fit->reached > 0.0;
    const int has_total =
        fit->steps > 0 && !(ends_early && fit->total_hidden && (double)fit->steps <= fit->warmup);
    line->text[0] = '\0';
    if (fit->stairs_open)
        put(line, "%s, moved once per %s updates as in %s", fit->schedule_name,
            number_text_f64((double)fit->epoch_updates).text, fit->contract->name);
    else
        put(line, "%s %s", fit->contract->name, fit->schedule_name);
    if (fit->parameters[0] != '\0') put(line, " (%s)", fit->parameters);
    if (fit->reached > 0.0)
        put(line, ", still warming up at the last row: peak at least %.4g (%s assumed)",
            cut(fit->reached), number_text_f64(fit->lr).text);
    else
        put(line, ", peak %s", number_text_f64(fit->lr).text);
    if (fit->unseen_most > fit->unseen_least) put(line, " (not shown)");
    if (fit->warmup > 0.0)
        put(line, ", warm-up %s%s%s", number_text_f64(whole(fit->warmup)).text, unit,
            fit->warmup_hidden || fit->unseen_warmup > 0.0 || fit->reached > 0.0 ? " (not shown)"
                                                                                 : "");
    else
        put(line, ", no warm-up%s", fit->warmup_hidden && fit->steps == 0 ? " (not shown)" : "");
    if (has_total)
        put(line, ", total %s%s%s", number_text_f64((double)fit->steps).text, unit,
            fit->total_hidden ? " (not shown)" : "");
    if (fit->floor_ratio > 0.0 && !ends_early)
        put(line, ", floor %.4g of the peak%s", fit->floor_ratio,
            fit->total_hidden ? " (not shown)" : "");
    if (fit->stride != 1.0)
        put(line, ", counter moves %s per update", number_text_f64(fit->stride).text);
    if (fit->epoch_updates > 0 && !fit->stairs_open)
        put(line, ", one move every %s updates", number_text_f64((double)fit->epoch_updates).text);
    if (fit->first_differs)
        put(line, ", but update 1 at %s", number_text_f64(fit->first_value).text);
    for (size_t i = 0; i < fit->segment_count; i++)
        put_segment(line, &fit->segments[i],
                    i > 0 && fit->segments[i - 1].steps > 0 ? fit->segments[i - 1].warmup
                                                            : fit->warmup);
    put_skips(line, fit);
}

/* Returns the counter of the last row in front of segment i, or of `last` behind the last segment:
 * a counter that was set back begins again. */
static int64_t counter_before(const struct fit *fit, size_t i, const struct series *series,
                              uint64_t last) {
    const uint64_t update =
        i < fit->segment_count ? series->points[fit->segments[i].point - 1].update : last;
    return (int64_t)update + fit->segments[i - 1].shift;
}

int fit_is_next_stage(const struct fit *fit, size_t i, const struct series *series) {
    const struct fit_segment *segment = &fit->segments[i];
    const char *name = sched_bare_name(fit->schedule);
    if (segment->event == FIT_RESCALED) return strncmp(name, "constant", 8) == 0;
    if (segment->event != FIT_RESET && segment->event != FIT_RESTARTED) return 0;
    if (i == 0 || segment->point == 0) return 0;
    /* The counter that the update had when it went on, from 1. */
    const int64_t began = 1 - segment->shift, counter = began + fit->segments[i - 1].shift;
    const int64_t shown = counter_before(fit, i, series, 0);
    return fit->steps > 0 && counter > (int64_t)fit->steps &&
           (shown < 0 || !fit_ends_on_its_way(fit, (uint64_t)shown));
}

/* Share of an LR within which a factor of the peak is that LR: the factor is the shortest of those
 * that the rows admit. */
#define ABOUT 1e-3
/* Updates between two rows among which such an LR is looked for one by one: it bounds the work. */
#define STEPS 65536

/* Tells whether the peak behind a break is an LR that the schedule in front of it had between the
 * two rows: a scheduler that is made anew takes the one that the optimizer has for its peak. */
static int peak_is_decayed(const struct fit_search *search, const struct fit *fit, size_t i) {
    const struct fit_segment *const segment = &fit->segments[i];
    const struct series_point *const points = search->series->points;
    const double peak = segment->scale * fit->lr;
    size_t before = segment->point;
    while (before > 0 && points[before - 1].update >= segment->update)
        before--;
    if (before == 0) return 0;
    const uint64_t first = points[before - 1].update;
    const uint64_t last = segment->update + 1;
    if (last - first > STEPS) {
        const double from = fit_logged(fit, before - 1, first);
        const double to = fit_logged(fit, before - 1, last);
        const double low = from < to ? from : to, high = from < to ? to : from;
        return peak >= low * (1.0 - ABOUT) && peak <= high * (1.0 + ABOUT);
    }
    for (uint64_t update = first; update <= last; update++) {
        const double had = fit_logged(fit, before - 1, update);
        if (peak >= had * (1.0 - ABOUT) && peak <= had * (1.0 + ABOUT)) return 1;
    }
    return 0;
}

/* Tells whether the counter of a segment is as far from 0 at its first row as a scheduler may come
 * that began anew behind the row before, and took one step more. */
static int is_near_start(const struct fit_search *search, const struct fit_segment *segment) {
    const uint64_t before = search->series->points[segment->point - 1].update;
    return (int64_t)segment->update + segment->shift <= 1 + (int64_t)(segment->update - before);
}

/* Names what a resume broke; a peak that is no LR of the schedule in front is merely another one.
 */
static const char *bug_of_segment(const struct fit_search *search, const struct fit *fit,
                                  size_t i) {
    switch (fit->segments[i].event) {
    case FIT_JUMP:
        return "eval_steps_scheduler";
    case FIT_RESET:
        return "scheduler_not_restored";
    case FIT_BACK:
        return is_near_start(search, &fit->segments[i]) ? "scheduler_not_restored" : NULL;
    case FIT_DOUBLED:
        return "double_counter";
    case FIT_RESCALED:
        return peak_is_decayed(search, fit, i) ? "initial_lr_overwritten" : "other_peak";
    case FIT_RESTARTED:
        return peak_is_decayed(search, fit, i) ? "initial_lr_overwritten"
                                               : "scheduler_not_restored";
    default:
        return NULL;
    }
}

static const char *bug_of_event(const struct fit_search *search, const struct fit *fit) {
    size_t jumps = 0;
    for (size_t i = 0; i < fit->segment_count; i++)
        jumps += fit->segments[i].event == FIT_JUMP;
    for (size_t i = 0; i < fit->segment_count; i++) {
        /* Validations come again and again; ahead once may be anything. */
        if (fit->segments[i].event == FIT_JUMP && jumps < 2) continue;
        if (fit_is_next_stage(fit, i, search->series)) continue;
        const char *const bug = bug_of_segment(search, fit, i);
        if (bug != NULL) return bug;
    }
    return NULL;
}

static const char *bug_of_stride(const struct fit_search *search, double stride) {
    const struct contract_request *request = &search->known->request;
    if (stride == 1.0) return NULL;
    if (request->processes > 1 && stride == (double)request->processes) return "xP_scheduler";
    if (request->accumulate > 1 && stride == (double)request->accumulate)
        return "per_microbatch_stepping";
    if (stride < 1.0) return "unit_mismatch";
    if (request->global_batch > 1 && stride == (double)request->global_batch)
        return "unit_mismatch";
    if (stride == 2.0 && request->processes > 0 && request->accumulate > 0) return "two_schedulers";
    if (request->processes > 0 && request->accumulate > 0) return "other_stride";
    return "xP_scheduler or per_microbatch_stepping";
}

static const char *bug_of_contract(const struct contract *contract) {
    static const struct {
        const char *contract, *bug;
    } rows[] = {{"open-instruct-h17", "step_then_set"},
                {"open-instruct-h17-h25", "zero_init_patch"},
                {"deepspeed-warmup-old", "step_then_set"},
                {"deepspeed-cosine-old", "step_then_set"},
                {"deepspeed-warmup", "double_zero_start"},
                {"deepspeed-cosine", "double_zero_start"},
                {"lag1", "lag1"},
                {"hf-x-processes", "xP_scheduler"},
                {"per-micro-batch", "per_microbatch_stepping"},
                {"lightning-epoch", "scheduler_epoch_default"},
                {"torchtitan", "virtual_last_step"},
                {"llmc", "virtual_last_step"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].contract, contract->name) == 0) return rows[i].bug;
    return NULL;
}

int fit_bug_is_in_column(const struct contract *contract) {
    return contract->bug && bug_of_contract(contract) != NULL;
}

/* Returns the last update of the fit's own count that a row shows. */
static uint64_t farthest(const struct fit_search *search, const struct fit *fit) {
    int64_t most = 0;
    for (size_t i = 1; i <= fit->segment_count; i++) {
        const int64_t counter = counter_before(fit, i, search->series, search->last);
        if (counter > most) most = counter;
    }
    return (uint64_t)most;
}

/* Tells whether update 1 has the LR at which the fit ends: a loop that sets lr = max(lr, floor)
 * from its first update on leaves both, and ends the schedule before its total. */
static int begins_at_floor(const struct fit *fit) {
    return fit->first_differs && fit->floor_ratio > 0.0 &&
           fit_near(fit->first_value, fit->floor_ratio * fit->lr);
}

/* Names a departure from the numbers that are known. */
static const char *bug_of_numbers(const struct fit_search *search, const struct fit *fit) {
    const struct contract_request *request = &search->known->request;
    const double steps = (double)(request->steps > 0 ? request->steps : search->known->run_steps);
    const double total = (double)fit->steps;
    double warmup = request->warmup;
    if (warmup != warmup) warmup = request->warmup_ratio * steps;
    /* Where the log ends in the warm-up, neither its peak nor its length is known. */
    if (fit->reached > 0.0 && !(request->lr < fit->reached)) return NULL;
    if (request->lr == request->lr && real_abs_f64(fit->lr - request->lr) > 1e-6 * request->lr)
        return real_abs_f64(fit->lr - 1e-3) < 1e-9 ? "default_lr_overrides" : "other_peak";
    const double changed = (double)fit->segments[fit->segment_count - 1].steps;
    if (steps > 0.0 && total > 0.0 && total != steps && changed != steps) {
        /* Another total explains nearly anything with a peak that nobody typed or knows. */
        if (request->lr != request->lr && fit_digits(fit->lr) > TYPED) return NULL;
        /* Megatron has an option for it, --lr-decay-iters, and stays at its floor from there. */
        if (total < steps && search->known->possible != NULL &&
            fit->contract->unit == CONTRACT_UNIT_SAMPLE &&
            fit_is_native(search->known, fit->contract))
            return NULL;
        if (total < steps && (fit_ends_on_its_way(fit, farthest(search, fit)) ||
                              fit_ends_at_a_step(fit, search->series)))
            return NULL;
        if (fit_plateau_is_long(fit, search->known, search->last) ||
            (total < steps && begins_at_floor(fit)))
            return NULL;
        if (real_abs_f64(total - steps) <= 0.05 * steps + 1.0) return "floor_vs_ceil_steps";
        return total > steps ? "max_steps_ignored" : "schedule_too_short";
    }
    if (warmup == warmup && real_abs_f64(fit->warmup - warmup) > 1e-9)
        return real_abs_f64(fit->warmup - warmup) <= 1.0 ? "warmup_rounding" : "other_warmup";
    if (request->min_lr_ratio == request->min_lr_ratio && fit->floor_ratio == fit->floor_ratio &&
        real_abs_f64(fit->floor_ratio - request->min_lr_ratio) > 1e-9)
        return "cosine_floor_mismatch";
    return NULL;
}

/* Names a staircase where the expected schedule moves at every update. Stairs that end at the
 * evaluations, and at no end of an epoch, are theirs. */
static const char *bug_of_stairs(const struct fit_search *search, const struct fit *fit) {
    const struct fit_known *known = search->known;
    const struct contract_request *request = &known->request;
    const struct contract *expected = known->expected;
    const uint64_t steps = request->steps > 0 ? request->steps : known->run_steps;
    if (fit->epoch_updates < 2 || (expected != NULL && expected->unit == CONTRACT_UNIT_EPOCH))
        return NULL;
    /* Where nothing is expected, a schedule that was made for as many moves as the run has updates
     * is one that somebody meant to move at each of them. */
    if (expected == NULL)
        return fit->stairs_open && steps > 0 &&
                       fit->steps + fit->epoch_updates > steps * fit->epoch_updates &&
                       fit->steps < (steps + 1) * fit->epoch_updates
                   ? FIT_SELDOM
                   : NULL;
    int at_evals = known->evals_within_epoch && request->metric_count > 1;
    for (size_t i = 0; i < request->metric_count; i++)
        at_evals &= request->metric_update[i] % fit->epoch_updates == 0 &&
                    request->metric_update[i] / fit->epoch_updates == i + 1;
    if (at_evals) return "eval_steps_scheduler";
    /* A column of a few values is a staircase of any schedule. */
    if (fit->stairs_open && steps > 0 && steps < MOVES_LEAST * fit->epoch_updates) return NULL;
    return fit->stairs_open ? FIT_SELDOM : "scheduler_epoch_default";
}

/* Names the case where skipped updates are known and the fit goes on at them while the expectation
 * holds. */
static const char *bug_of_skip(const struct fit_search *search, const struct fit *fit) {
    const struct fit_known *known = search->known;
    if (known->expected == NULL || known->request.skipped_count == 0) return NULL;
    if (known->expected->on_skip == fit->contract->on_skip) return NULL;
    return fit->contract->on_skip == CONTRACT_SKIP_ADVANCE ? "skip_advances_schedule" : NULL;
}

/* A one-cycle schedule moves nothing beyond its total: the LR of the log stands still from there
 * on. */
static const char *bug_of_cycle(const struct fit_search *search, const struct fit *fit) {
    const struct contract_plan *plan = &fit->plan;
    if (strcmp(fit->schedule->name, "torch.one_cycle") != 0 || fit->segment_count != 1) return NULL;
    const double stop = plan->call.total / plan->increment + 2.0; /* the update that applies f(T) */
    return plan->increment > 0.0 && (double)search->last > stop ? "onecycle_overrun" : NULL;
}

/* Whether updates 1 and 2 print the same LR, and update 3 another one. That is what a skipped
 * update leaves where the schedule holds, so a first update apart accuses nobody there. */
static int stands_still(const struct fit_search *search) {
    const struct series *series = search->series;
    const struct series_point *const points = series->points;
    return series->count > 2 && points[0].update == 1 && points[1].update == 2 &&
           points[0].value == points[1].value && points[2].value != points[1].value;
}

/* Tells whether update 1 is above 0 and below update 2: no optimizer's own LR is left there, but a
 * floor at which a loop holds its LR, lr = max(lr, floor). */
static int rises_from_first(const struct fit_search *search, const struct fit *fit) {
    const struct series *series = search->series;
    return series->count > 1 && fit->first_value > 0.0 &&
           fit->first_value < series->points[1].value;
}

static const char *bug_of(const struct fit_search *search, const struct fit *fit) {
    const char *bug = bug_of_event(search, fit);
    /* A first update apart, and not at the peak, in a contract that is a bug is that bug's. */
    if (bug == NULL && fit->first_differs && !stands_still(search) &&
        !rises_from_first(search, fit) &&
        (!fit->contract->bug || bug_of_contract(fit->contract) == NULL ||
         fit_near(fit->first_value, fit->lr)))
        bug = fit->first_value == 0.0 ? "zero_init_patch" : "step_then_set";
    if (bug == NULL) bug = bug_of_skip(search, fit);
    if (bug == NULL) bug = bug_of_cycle(search, fit);
    if (bug == NULL) bug = bug_of_stride(search, fit->stride);
    if (bug == NULL && fit->contract->bug) bug = bug_of_contract(fit->contract);
    if (bug == NULL) bug = bug_of_stairs(search, fit);
    if (bug == NULL) bug = bug_of_numbers(search, fit);
    if (bug == NULL && (fit->contract->bug || search->known->expected != NULL))
        bug = fit->contract == search->known->expected || fit->stairs_open
                  ? NULL
                  : bug_of_contract(fit->contract);
    return bug;
}

enum status fit_describe(const struct fit *fit, struct arena *arena, const char **out) {
    struct line line;
    char *text;
    describe(&line, fit);
    TRY(arena_text(arena, line.text, strlen(line.text), &text));
    *out = text;
    return STATUS_OK;
}

enum status fit_words(const struct fit_search *search, struct fit *fit) {
    fit->stairs_open = fit->epoch_updates > 1 && !fit_stairs_are_epochs(fit, search->known);
    TRY(fit_describe(fit, search->arena, &fit->text));
    fit->bug = bug_of(search, fit);
    fit->unsound = fit->bug != NULL && fit_changes_total(fit);
    if (fit->unsound) fit->bug = NULL;
    return STATUS_OK;
}

static double floor_of_partial(const struct fit_search *search) {
    const struct fit_numbers *numbers = &search->partial_numbers;
    if (search->partial->floor == NULL) return real_nan_f64();
    return numbers->absolute ? numbers->floor / numbers->lr : numbers->floor;
}

enum status fit_words_partial(const struct fit_search *search, const char **out) {
    const struct fit_model *model = search->partial;
    const struct fit_segment plain = {.scale = 1.0};
    struct fit fit = {.contract = model->contract,
                      .schedule_name = model->schedule_name,
                      .parameters = model->parameters,
                      .lr = search->partial_numbers.lr,
                      .warmup = search->partial_numbers.warmup,
                      .steps = model->needs_total ? (uint64_t)search->partial_numbers.total : 0,
                      .floor_ratio = floor_of_partial(search),
                      .stride = search->partial_numbers.stride,
                      .segments = &plain,
                      .segment_count = 1};
    return fit_describe(&fit, search->arena, out);
}
