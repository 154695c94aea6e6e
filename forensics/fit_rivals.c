/* SPDX-License-Identifier: Apache-2.0
 * Rivals of an expectation that a log agrees with: contracts that log the same column with the same
 * numbers and apply another one.
 *
 * Invariant: a pass is given only where every rival was looked at. */
#include "forensics/fit_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/real.h"

static const char *kind_of(const struct sched_class *schedule) {
    static const char *const kinds[][2] = {{"cosine_with_min_lr", "cosine"},
                                           {"warmup_decay", "linear"},
                                           {"warmup_cosine", "cosine"},
                                           {"warmup", "constant_with_warmup"}};
    const char *name = sched_bare_name(schedule);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(name, kinds[i][0]) == 0) return kinds[i][1];
    return name;
}

static int same_kind(const struct sched_class *a, const struct sched_class *b) {
    return strcmp(kind_of(a), kind_of(b)) == 0;
}

/* Tells whether the contract counts beside the expected one. The log's format leaves out those of
 * other frameworks, but where it speaks for another one than is expected: then one of them is not
 * what wrote the log. */
static int may_rival(const struct fit_known *known, const struct fit *expected,
                     const struct contract *contract) {
    return fit_is_native(known, contract) || !fit_is_native(known, expected->contract);
}

enum status fit_find_rivals(const struct series *series, const struct fit_known *known,
                            const struct fit *expected, struct arena *arena, struct fit_set *out) {
    struct fit_known every = *known;
    every.request.contract = NULL;
    every.request.schedule = NULL;
    every.request.lr = expected->lr;
    every.request.warmup = expected->warmup;
    every.request.warmup_ratio = real_nan_f64();
    every.request.steps = expected->steps;
    every.plain = 1;
    every.limit = 64;
    TRY(fit_series(series, &every, arena, out));
    size_t kept = 0;
    struct fit *fits = NULL;
    TRY(arena_take(arena, out->count + 1, sizeof *fits, "fit", &fits));
    for (size_t i = 0; i < out->count; i++) {
        const struct fit *fit = &out->fits[i];
        const double floor = fit->floor_ratio == fit->floor_ratio ? fit->floor_ratio : 0.0;
        const double wanted =
            expected->floor_ratio == expected->floor_ratio ? expected->floor_ratio : 0.0;
        if (!fit_near(fit->lr, expected->lr) || fit->steps != expected->steps) continue;
        if (!fit_near(fit->warmup, expected->warmup) || real_abs_f64(floor - wanted) > 1e-9)
            continue;
        if (!same_kind(fit->schedule, expected->schedule)) continue;
        if (may_rival(known, expected, fit->contract)) fits[kept++] = *fit;
    }
    out->fits = fits;
    out->count = kept;
    return STATUS_OK;
}

enum status fit_judge_rivals(const struct fit_known *known, int applied, struct arena *arena,
                             struct fit_check *out) {
    const struct fit_set *set = &out->found;
    const uint32_t weak = set->why & (FIT_WHY_FEW | FIT_WHY_CONSTANT);
    out->why |= weak;
    out->verdict = FIT_PASS;
    for (size_t i = 0; i < set->count && out->verdict == FIT_PASS; i++) {
        const struct fit *rival = &set->fits[i];
        if (rival->contract == known->request.contract) continue;
        if (fit_applied_apart(rival, out->expected, set) == 0) continue;
        int same = 1;
        for (size_t p = 0; p < set->series->count; p++) {
            const uint64_t k = set->series->points[p].update;
            const double a = fit_logged(rival, p, k), b = fit_logged(out->expected, p, k);
            if (real_abs_f64(a - b) > 0x1p-44 * out->expected->lr) same = 0;
        }
        out->why |= same ? FIT_WHY_APPLIED : FIT_WHY_COARSE;
        if (same && !applied) continue;
        out->verdict = FIT_UNDECIDED;
        out->rival = rival->contract->name;
        TRY(fit_tell_apart(out->expected, rival, set, arena, &out->needs));
    }
    if (out->verdict == FIT_PASS && set->series->count < 2) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "more rows: one LR fits any schedule that passes through it";
    }
    if (out->verdict == FIT_PASS && (weak & FIT_WHY_CONSTANT) != 0) {
        out->verdict = FIT_UNDECIDED;
        out->needs =
            "rows where the schedule moves (warm-up or decay), or more digits: every LR of "
            "this log is the same";
    }
    return STATUS_OK;
}

/* Cost (forensics/fit_cost.c) above the first fit's up to which others raise a doubt: half a
 * contradiction. Where the first one needs skipped updates, whose price is in it, it is what a
 * contract that is a bug costs more than those. */
#define DOUBT 0.5
#define DOUBT_SKIPPED 0.25

/* Cost within which one peak that no row shows is as good as another: the step from no warm-up to a
 * share of the total. */
#define UNSEEN 0.2

/* Digits of a peak that somebody typed. */
#define TYPED_PEAK 3

/* Tells whether the other fit has another peak in front of the first row, that is as likely to have
 * been typed. In samples a warm-up has so many lengths that no peak is likelier than others which
 * nobody typed either. */
static int other_peak(const struct fit *first, const struct fit *other) {
    return first->unseen_most > first->unseen_least && other->unseen_most > other->unseen_least &&
           first->contract == other->contract && first->schedule == other->schedule &&
           !fit_near(other->lr, first->lr) && fit_digits(other->lr) <= fit_digits(first->lr) &&
           (other->simplicity < first->simplicity + UNSEEN ||
            (first->in_samples && fit_digits(first->lr) > TYPED_PEAK));
}

int fit_breaks_are_many(const struct fit *fit, const struct fit_set *set) {
    const struct fit_segment *first = NULL;
    size_t count = 0, unlike = 0;
    for (size_t i = 1; i < fit->segment_count; i++) {
        const struct fit_segment *const segment = &fit->segments[i];
        if (segment->event == FIT_SKIP || !fit_break_is_hidden(segment, set)) continue;
        if (first == NULL) first = segment;
        unlike += segment->event != first->event || segment->event == FIT_RESET;
        count++;
    }
    return count >= FIT_MANY_BREAKS && unlike > 0;
}

/* A loaded optimizer may still apply the LR that was saved, so another total shows one row behind
 * the resume. */
int fit_break_is_hidden(const struct fit_segment *segment, const struct fit_set *set) {
    const struct series_point *points = set->series->points;
    const size_t first =
        segment->event == FIT_TOTAL && segment->point > 1 ? segment->point - 1 : segment->point;
    for (size_t at = first; at > 0 && at <= segment->point; at++)
        if (points[at].part != points[at - 1].part || points[at].update <= points[at - 1].update)
            return 0;
    return segment->point > 0;
}

int fit_changes_total(const struct fit *fit) {
    for (size_t i = 1; i < fit->segment_count; i++)
        if (fit->segments[i].event == FIT_TOTAL) return 1;
    return 0;
}

/* Tells whether the segment goes on towards a total that nobody said. */
static int is_unsaid(const struct fit_segment *segment, const struct fit_known *known) {
    return segment->event == FIT_TOTAL && segment->steps != known->run_steps &&
           segment->steps != known->request.steps;
}

int fit_total_is_said(const struct fit *fit, const struct fit_known *known) {
    if (known == NULL || fit->unsound || fit->contract->bug) return 0;
    for (size_t i = 1; i < fit->segment_count; i++)
        if (is_unsaid(&fit->segments[i], known)) return 0;
    return 1;
}

/* Tells whether an event of the fit has a peak or a total of its own, which is a free number. */
static int has_free_event(const struct fit *fit, const struct fit_known *known) {
    for (size_t i = 1; i < fit->segment_count; i++)
        if (fit->segments[i].event == FIT_RESCALED || fit->segments[i].event == FIT_RESTARTED ||
            is_unsaid(&fit->segments[i], known))
            return 1;
    return 0;
}

static const char *bug_or_none(const struct fit *fit) {
    return fit->unsound ? "unsound" : fit->bug != NULL ? fit->bug : "";
}

int fit_contradicts_skipped(const struct fit *fit, const struct fit_known *known) {
    if (known->request.skipped_count == 0 || fit->contract->on_skip != CONTRACT_SKIP_HOLD) return 0;
    for (size_t i = 0; i < fit->segment_count; i++)
        if (fit->segments[i].event == FIT_SKIP || fit->segments[i].event == FIT_JUMP) return 1;
    return 0;
}

/* Tells whether the counter jumps ahead of the updates once, where no resume shows: neither what
 * was skipped nor what a resume forgot brings it there, but another schedule may. More jumps are
 * those of a known bug, which moves the schedule at evaluations. */
static int runs_ahead(const struct fit *fit, const struct fit_set *set) {
    size_t jumps = 0, ahead = 0;
    for (size_t i = 1; i < fit->segment_count; i++) {
        if (fit->segments[i].event != FIT_JUMP) continue;
        jumps++;
        ahead += fit->segments[i].shift > 0 && fit_break_is_hidden(&fit->segments[i], set);
    }
    return jumps == 1 && ahead == 1;
}

int fit_goes_back(const struct fit *fit) {
    /* A bug of the segments is that break itself. */
    if (fit->bug != NULL && !fit->contract->bug) return 0;
    for (size_t i = 1; i < fit->segment_count; i++)
        if (fit->segments[i].event == FIT_BACK) return 1;
    return 0;
}

const char *fit_break_doubt(const struct fit_known *known, const struct fit_set *set,
                            size_t *out_fit) {
    const struct fit *first = set->fits;
    size_t hidden = 0, free_scales = 0;
    int extended = 0, other_event = 0;
    *out_fit = 0;
    if (fit_changes_total(first) && !fit_total_is_said(first, known))
        return first->unsound || first->contract->bug
                   ? "goes on towards another total and needs a known bug as well"
                   : "goes on towards a total that neither the log nor an option says";
    if (known != NULL && runs_ahead(first, set))
        return "runs ahead of the updates once, where the log shows no resume";
    if (known != NULL && fit_contradicts_skipped(first, known))
        return "stands still or moves on elsewhere than at the updates that are said to be skipped";
    for (size_t i = 1; i < first->segment_count; i++) {
        if (!fit_break_is_hidden(&first->segments[i], set)) continue;
        if (first->segments[i].event == FIT_RESTARTED)
            return "begins again with another peak, where the log shows no resume";
        /* So many updates are not skipped without a word. */
        if (first->segments[i].event == FIT_SKIP &&
            -first->segments[i].moved > (int64_t)fit_skips_most(set->last))
            return "stands still for more updates than are skipped without a word";
        /* What goes on at a skipped update has no reason to stand still. */
        if (known != NULL && first->segments[i].event == FIT_SKIP &&
            first->contract->on_skip == CONTRACT_SKIP_ADVANCE)
            return "stands still under a contract whose schedule goes on at a skipped update";
        hidden++;
        const int extends = first->segments[i].event == FIT_TOTAL; /* one that was said */
        free_scales += first->segments[i].event == FIT_RESCALED;
        extended |= extends;
        other_event |= first->segments[i].event != FIT_SKIP && !extends;
    }
    if (hidden == 0) return NULL;
    if (free_scales > 0 && first->segment_count > 2)
        return "needs another peak and one more event, where the log shows no resume";
    for (size_t i = 1; i < set->count; i++) {
        const struct fit *other = &set->fits[i];
        /* Where the log itself says the other total, the doubts are those of a log without breaks:
         * none comes from other frameworks' contracts, nor from a later peak or total that nobody
         * said behind a peak that is no rounder. */
        if (extended && !other_event && fit_is_native(known, first->contract) &&
            (!fit_is_native(known, other->contract) ||
             (has_free_event(other, known) && fit_digits(other->lr) >= fit_digits(first->lr))))
            continue;
        if (other->segment_count <= first->segment_count &&
            other->same_applied != first->same_applied &&
            (other->steps != first->steps || !fit_near(other->warmup, first->warmup) ||
             strcmp(bug_or_none(first), bug_or_none(other)) != 0)) {
            *out_fit = i;
            return "explains the rows with no more events than the first and applies other LRs";
        }
    }
    return NULL;
}

int fit_break_is_doubtful(const struct fit_known *known, const struct fit_set *set) {
    size_t fit;
    return fit_break_doubt(known, set, &fit) != NULL;
}

/* Tells whether the schedule is one of torch's own, of which no framework's trainer makes one by
 * itself. */
static int is_of_torch(const struct fit *fit) {
    return strncmp(fit->schedule->name, "torch.", 6) == 0;
}

/* Tells whether the log is of a framework, and the first fit has a schedule that somebody gave to
 * it by hand, where one of its own explains the column with a few skipped updates. */
static int other_hand(const struct fit_known *known, const struct fit *first,
                      const struct fit *other) {
    return known->possible != NULL && is_of_torch(first) && !is_of_torch(other) &&
           fit_is_native(known, other->contract) && other->bug == NULL &&
           other->same_applied != first->same_applied &&
           other->simplicity < first->simplicity + DOUBT;
}

/* Tells whether the other fit has another length of the decay, or another such parameter, and needs
 * more skipped updates for it. A shorter decay that was held now and then prints what a longer one
 * prints, so no number of skips is the answer before the log shows them. */
static int other_decay(const struct fit_known *known, const struct fit *first,
                       const struct fit *other) {
    return known->skips.shown == 0 && fit_skipped(first) > 0 && first->parameters[0] != '\0' &&
           other->contract == first->contract && other->schedule == first->schedule &&
           strcmp(other->parameters, first->parameters) != 0 && other->bug == NULL &&
           other->simplicity < first->simplicity + DOUBT_SKIPPED;
}

/* Tells whether the floor is where the LR is held, and not what its line falls to: VeOmni's. */
static int floor_is_a_clamp(const struct fit *fit) {
    return strncmp(fit->schedule->name, "veomni.", 7) == 0;
}

/* Tells whether the rows begin below the peak of the fit and never rise. */
static int begins_below_peak(const struct fit *fit, const struct series *series) {
    const struct series_point *const points = series->points;
    for (size_t i = 1; i < series->count; i++)
        if (points[i].value > points[i - 1].value) return 0;
    return series->count > 2 && points[0].value < fit->lr * (1.0 - 0x1p-40);
}

int fit_line_floats(const struct fit *fit, const struct fit_known *known,
                    const struct series *series) {
    const size_t before = series->count - 2;
    if (!(fit->floor_ratio > 0.0) || known->request.lr == known->request.lr ||
        known->request.min_lr_ratio == known->request.min_lr_ratio || !fit_falls_as_line(fit) ||
        floor_is_a_clamp(fit) || fit->stride != 1.0 || fit->epoch_updates > 0 ||
        fit->segment_count != 1 || fit->in_samples || !begins_below_peak(fit, series))
        return 0;
    /* The last row may stand at the floor, and then says no more of it than of its line. */
    return fit_logged(fit, before, series->points[before].update) >
           fit->floor_ratio * fit->lr * (1.0 + 0x1p-40);
}

/* Tells whether the rows show neither peak nor floor of the first fit, and the other one prints
 * them with updates skipped in front of the first row, with another floor or none, from a peak that
 * is as likely to have been typed. A contract that is one update late stands for a sound one with
 * one skipped update. */
static int other_end(const struct fit_known *known, const struct fit_set *set,
                     const struct fit *other) {
    const struct fit *const first = set->fits;
    const int skips = fit_skipped(other) > 0 && other->bug == NULL;
    return fit_skipped(first) == 0 && (skips || fit_contract_is_late(other->contract)) &&
           fit_falls_as_line(other) && fit_digits(other->lr) <= fit_digits(first->lr) &&
           !(other->floor_ratio > 0.0 &&
             fit_near(other->floor_ratio * other->lr, first->floor_ratio * first->lr)) &&
           fit_is_native(known, other->contract) == fit_is_native(known, first->contract) &&
           fit_line_floats(first, known, set->series);
}

/* Tells whether the fit is a bug whose scheduler is one update late. */
static int is_late_bug(const struct fit *fit) {
    return fit->contract->bug && fit_contract_is_late(fit->contract);
}

/* Tells whether the first fit needs skipped updates that the log does not show, and the other one
 * is a scheduler that is one update late and needs none. It applies the same LRs at the rows, and
 * is another training: in it no update was lost. */
static int other_is_late(const struct fit_known *known, const struct fit *first,
                         const struct fit *other) {
    return fit_skipped(first) > 0 && first->part_count == 0 && known->skips.shown == 0 &&
           known->request.skipped_count == 0 && is_late_bug(other) && !fit_skips_any(other) &&
           other->segment_count == 1 && other->stride == 1.0 && !other->first_differs &&
           other->simplicity < first->simplicity + DOUBT;
}

const char *fit_doubt(const struct fit_known *known, const struct fit_set *set,
                      const struct fit *other) {
    const struct fit *first = set->fits;
    const uint64_t said = first->steps == known->run_steps ? known->run_steps : 0;
    const double margin = fit_skipped(first) > 0 && known->skips.shown == 0 ? DOUBT_SKIPPED : DOUBT;
    if (other_peak(first, other))
        return "has another peak, which no row shows either and which is as likely to be typed";
    if (other_hand(known, first, other))
        return "needs a few skipped updates and no schedule that somebody made by hand";
    if (other_decay(known, first, other))
        return "has a decay of another length, which as many or more skipped updates make alike";
    if (other_end(known, set, other))
        return "needs another floor or none, with updates skipped in front of the rows, which show "
               "neither the peak nor a floor";
    if (other_is_late(known, first, other))
        return "is a scheduler that is one update late, and prints the same without a skipped "
               "update";
    return other->same_applied != first->same_applied &&
                   fit_is_native(known, other->contract) == fit_is_native(known, first->contract) &&
                   (fit_skipped(other) <= fit_skipped(first) ||
                    other->simplicity < first->simplicity) &&
                   (said == 0 || other->steps == 0 || other->steps == said) &&
                   other->simplicity < first->simplicity + margin
               ? "explains the rows about as simply as the first and applies other LRs"
               : NULL;
}

int fit_raises_doubt(const struct fit_known *known, const struct fit_set *set,
                     const struct fit *other) {
    return fit_doubt(known, set, other) != NULL;
}

static int is_line(const struct fit *fit) {
    const char *name = sched_bare_name(fit->schedule);
    return (strcmp(name, "linear") == 0 || strcmp(name, "polynomial") == 0) &&
           fit->parameters[0] == '\0';
}

int fit_falls_as_line(const struct fit *fit) {
    return is_line(fit) || (sched_row(fit->schedule, "decay") != NULL &&
                            (strstr(fit->parameters, "decay_type=linear") != NULL ||
                             strstr(fit->parameters, "decay_style=linear") != NULL));
}

/* Tells whether the fall is a power of the way: a line, or 1 - sqrt, with a plateau in front of it
 * or without. Its rows show one number, how fast it falls. */
static int falls_as_power(const struct fit *fit) {
    const char *const name = sched_bare_name(fit->schedule);
    return fit_falls_as_line(fit) || strcmp(name, "sqrt") == 0 ||
           (strcmp(name, "linear") == 0 && strstr(fit->parameters, "decay_ratio=") != NULL) ||
           strstr(fit->parameters, "decay_type=1-sqrt") != NULL ||
           strstr(fit->parameters, "decay_style=minus_sqrt") != NULL;
}

static int is_typed(double x) {
    return fit_shortest_of(x * (1.0 - 0x1p-44), x * (1.0 + 0x1p-44), FIT_TYPED_DIGITS) > 0.0;
}

/* The contracts print f(T) at update T or T + 1, so a row that stands at it comes no sooner than
 * behind that one. */
int fit_ends_on_its_way(const struct fit *fit, uint64_t last) {
    return falls_as_power(fit) && fit->stride == 1.0 && fit->epoch_updates == 0 && fit->steps > 0 &&
           fit->floor_ratio > 0.0 && last < fit->steps + 2 && !is_typed(fit->floor_ratio) &&
           !is_typed(fit->floor_ratio * fit->lr);
}

int fit_floor_is_far(const struct fit *fit, uint64_t last) {
    if (!falls_as_power(fit) || floor_is_a_clamp(fit) || fit->stride != 1.0 ||
        fit->epoch_updates > 0 || fit->segment_count != 1 || fit->total_hidden || fit->in_samples ||
        last + 1 >= fit->steps)
        return 0;
    if (fit->floor_ratio > 0.0) return 1;
    const double at_last =
        fit_logged(fit, 0, fit->contract->logged == CONTRACT_LOGGED_NEXT ? last : last + 1);
    return at_last > 0.0 && at_last < fit->lr && (is_typed(at_last) || is_typed(at_last / fit->lr));
}

int fit_plateau_is_long(const struct fit *fit, const struct fit_known *known, uint64_t last) {
    const uint64_t said = known->request.steps > 0 ? known->request.steps : known->run_steps;
    return said > 0 && fit->steps > said && fit->steps - said <= fit_skips_most(last) &&
           sched_row(fit->schedule, "decay") != NULL && fit->segment_count == 1 &&
           fit->stride == 1.0 && !fit->total_hidden && !fit->in_samples;
}

int fit_is_by_share(const struct fit *fit, const struct series *series) {
    static const char key[] = "decay_ratio=";
    const char *const found = strstr(fit->parameters, key);
    if (found == NULL || fit->steps == 0 || fit->segment_count != 1 || fit->stride != 1.0) return 0;
    const double length = strtod(found + sizeof key - 1, NULL) * (double)fit->steps;
    return fit_near(length, fit_round(length)) || series->points[0].quantum > 1e-9 * fit->lr;
}

int fit_falls_row_by_row(const struct fit *fit, const struct series *series) {
    const struct series_point *const points = series->points;
    size_t held = 2; /* rows at the LR so far; a log may begin anywhere, so the first LR is held */
    if (!fit->drops_taken) return 0;
    for (size_t i = 1; i < series->count; i++) {
        const int falls = points[i].value != points[i - 1].value;
        if (falls && held == 1) return 1;
        held = falls ? 1 : held + 1;
    }
    return held == 1 && fit->floor_ratio > 0.0;
}

/* Tells whether the length of the decay behind a plateau is one that somebody may have typed, as a
 * number of one digit in front of its zeros or as a share of the total; without a plateau the total
 * has said all. */
static int decay_is_typed(const struct fit *fit) {
    static const int percent[] = {5, 10, 15, 20, 25, 30, 50};
    const char *const found = strstr(fit->parameters, "decay=");
    if (found == NULL) return 1;
    const double decay = strtod(found + strlen("decay="), NULL);
    if (fit_digits(decay) <= 1) return 1;
    for (size_t i = 0; i < COUNT_OF(percent); i++)
        if (real_abs_f64(decay - 0.01 * percent[i] * (double)fit->steps) < 1.0) return 1;
    return 0;
}

/* Rows of the decay in front of the last one that are looked at. Where one in so many of them is
 * typed, it is no news that the last one is: chance, in a decay whose steps are round. */
#define STEPS_SEEN 16
#define ONE_TYPED_IN 8

int fit_ends_at_a_step(const struct fit *fit, const struct series *series) {
    const struct series_point *const points = series->points;
    if (series->count < 2 || !fit_falls_as_line(fit) || fit->stride != 1.0 ||
        fit->epoch_updates > 0 || fit->segment_count != 1 || fit->in_samples ||
        !(fit->floor_ratio > 0.0) || fit->steps == 0)
        return 0;
    const uint64_t last = points[series->count - 1].update;
    const double floor = fit->floor_ratio * fit->lr, slack = 0x1p-44 * fit->lr;
    const int at_end = fit->steps == last;
    if (at_end && is_typed(fit->floor_ratio) && decay_is_typed(fit)) return 0;
    if (!at_end && fit_logged(fit, series->count - 1, last) - floor > slack) return 0;
    size_t seen = 0, typed = 0;
    for (size_t i = series->count - 1; i > 0 && seen < STEPS_SEEN; i--) {
        const double value = fit_logged(fit, i - 1, points[i - 1].update);
        if (value - floor <= slack) return 0; /* more than one row stands there */
        if (fit->lr - value <= slack) break;
        seen++;
        typed += is_typed(value) || is_typed(value / fit->lr);
    }
    return seen > 0 && ONE_TYPED_IN * typed >= seen;
}

int fit_peak_is_odd(const struct fit *fit) {
    return !is_typed(fit->lr);
}

int fit_peak_is_by_digits(const struct fit *fit, const struct fit_known *known,
                          const struct series *series) {
    const struct series_point *top = &series->points[0];
    if (known->request.lr == known->request.lr || known->run_steps > 0 ||
        known->request.steps > 0 || fit->steps == 0 || !fit_peak_is_odd(fit))
        return 0;
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].value > top->value) top = &series->points[i];
    const double half = 0.5 * top->quantum;
    return half > 0.0 && real_abs_f64(fit->lr - top->value) <= half &&
           fit_shortest_of(top->value - half, top->value + half, FIT_TYPED_DIGITS) > 0.0;
}

/* Warm-ups are shares of a tenth or less as a rule, and of a fifth at most. Chosen above that. */
#define LONG_WARMUP 0.25

int fit_hides_plateau(const struct fit *fit) {
    return fit->warmup_hidden && fit->steps > 0 && !fit->total_hidden &&
           sched_row(fit->schedule, "decay") == NULL &&
           fit->warmup > LONG_WARMUP * (double)fit->steps;
}

int fit_is_half_speed(const struct fit *fit) {
    return is_line(fit) && real_abs_f64(fit->floor_ratio - 0.5) < 1e-9;
}

/* Tells whether the contract, with update 1 skipped, prints the column of the fit. */
static int prints_same(const struct fit *fit, const struct contract *contract,
                       const struct series *series) {
    static const uint64_t first[] = {1};
    struct contract_plan plan = fit->plan;
    plan.contract = contract;
    plan.skipped = first;
    plan.skipped_count = 1;
    for (size_t i = 0; i < series->count; i++)
        if (!fit_matches(&series->points[i], contract_logged(&plan, series->points[i].update),
                         fit->lr, NULL))
            return 0;
    return 1;
}

enum status fit_early_skip(const struct fit_set *set, const struct fit_known *known,
                           struct arena *arena, const char **out) {
    size_t count;
    const struct contract *list = contract_list(&count);
    const struct fit *best = set->fits;
    char *names = NULL;
    *out = NULL;
    if (set->count == 0 || best->samples != NULL || best->segment_count != 1 ||
        best->first_differs || best->plan.skipped_count > 0 || best->schedule->feedback ||
        best->schedule->state_size > 0)
        return STATUS_OK;
    if (known->skips.shown > 0 || known->skips.least != NULL || known->skips.quiet ||
        (set->why & (FIT_WHY_CONSTANT | FIT_WHY_FEW)) != 0)
        return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        if (list[i].on_skip != CONTRACT_SKIP_HOLD || list[i].unit != best->contract->unit ||
            list[i].bug || !sched_in_family(best->schedule, list[i].family) ||
            !fit_is_native(known, &list[i]) || !prints_same(best, &list[i], set->series))
            continue;
        TRY(arena_format(arena, &names, "%s%s%s", names != NULL ? names : "",
                         names != NULL ? ", " : "", list[i].name));
    }
    *out = names;
    return STATUS_OK;
}

/* Cost by which another explanation must lead (forensics/fit_cost.c). Chosen to be more than the
 * order of the contracts (hundredths) and the rarity of a named schedule (up to 0.2) make up, and
 * less than a floor costs that nobody would type (0.35 for three digits). The healthy logs that the
 * tests draw pass at 0 and without the rule alike, so no measurement narrows it. */
#define MUCH_SIMPLER 0.25

/* Tells whether the fit is one of a contract's own course but for update 1, which was skipped.
 * Where the first call of the scheduler is lost, the counter of that contract is as far behind. */
static int only_first_skipped(const struct fit *fit, const struct series *series) {
    return fit_skipped(fit) == 1 && fit->segment_count == 1 && !fit->first_differs &&
           fit->stride == 1.0 && fit->contract->on_skip == CONTRACT_SKIP_HOLD &&
           prints_same(fit, fit->contract, series);
}

/* A search may miss it, where the warm-up lies in front of the first row. Of a contract of another
 * family or counter no row of the table is late: the bug is the same there, and so is its name. */
const struct contract *fit_late_twin(const struct series *series, const struct fit_known *known,
                                     const struct fit *expected) {
    size_t count;
    const struct contract *list = contract_list(&count);
    if (expected->part_count > 0 || expected->samples != NULL) return NULL;
    for (size_t c = 0; c < count; c++) {
        struct fit twin = *expected;
        size_t i = 0;
        if (!fit_contract_is_late(&list[c]) || list[c].unit != expected->contract->unit ||
            !sched_in_family(expected->schedule, list[c].family) ||
            (!list[c].bug && !fit_is_native(known, &list[c])))
            continue;
        twin.contract = twin.plan.contract = &list[c];
        twin.plan.skipped_count = 0;
        while (i < series->count &&
               fit_matches(&series->points[i], fit_logged(&twin, i, series->points[i].update),
                           twin.lr, NULL))
            i++;
        if (i == series->count) return &list[c];
    }
    return only_first_skipped(expected, series) ? contract_find("lag1") : NULL;
}

/* What a known bug costs (forensics/fit_cost.c): here the question is whose numbers are typed. */
#define BUG 0.6

int fit_is_beside(const struct fit_known *known, const struct fit *fit) {
    const struct contract *const expected = known->request.contract;
    return fit->contract != expected && fit->segment_count == 1 && fit->stride == 1.0 &&
           !fit->first_differs &&
           (fit_is_native(known, fit->contract) || is_late_bug(fit) ||
            strcmp(fit->contract->family, expected->family) == 0);
}

/* Tells whether the numbers of a fit cost so much less than the expectation's, and its training is
 * another one. One that is late is, also where the rows show all that it applied: nobody configured
 * it. */
static int is_plainer(const struct fit_known *known, const struct fit *fit,
                      const struct fit_set *set, const struct fit *expected) {
    const int late = is_late_bug(fit);
    return fit_is_beside(known, fit) &&
           fit->simplicity - (late ? BUG : 0.0) + MUCH_SIMPLER <= expected->simplicity &&
           (late || fit_applied_apart(fit, expected, set) != 0);
}

enum status fit_judge_plainer(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_known every = *known;
    struct fit_set set;
    size_t i = 0;
    if (out->verdict != FIT_PASS || (r->schedule != NULL && (out->fitted & FIT_OF_FLOOR) == 0))
        return STATUS_OK;
    every.request.contract = NULL;
    every.plain = 1;
    every.limit = 64;
    TRY(fit_series(series, &every, arena, &set));
    while (i < set.count && !is_plainer(known, &set.fits[i], &set, out->expected))
        i++;
    if (i == set.count) return STATUS_OK;
    const struct fit *const best = &set.fits[i];
    const int apart = fit_applied_apart(best, out->expected, &set) != 0;
    char *needs;
    TRY(arena_format(
        arena, &needs, "%s: %s explains the log more simply%s",
        r->lr == r->lr ? "--schedule, with its floor where it has one" : "--schedule and --lr",
        best->text, apart ? " and applies other LRs" : ", as a scheduler that is one update late"));
    out->verdict = FIT_UNDECIDED;
    out->needs = needs;
    if (!apart) return STATUS_OK;
    out->why |= FIT_WHY_APPLIED;
    out->rival = best->contract->name;
    return STATUS_OK;
}

int fit_late_stands_at_floor(const struct fit *fit, const struct series *series) {
    const double floor = fit->floor_ratio * fit->lr;
    if (!fit->contract->bug || !(floor > 0.0) || fit->segment_count != 1 || fit->first_differs ||
        series->count < 3)
        return 0;
    for (size_t i = 0; i < 2; i++)
        if (!fit_matches(&series->points[i], floor, fit->lr, NULL)) return 0;
    return series->points[2].value > series->points[1].value;
}

int fit_total_is_foreign(const struct fit *fit, const char *bug, const struct fit_known *known) {
    return bug != NULL &&
           (strcmp(bug, "max_steps_ignored") == 0 || strcmp(bug, "schedule_too_short") == 0) &&
           known->possible != NULL && !fit->contract->bug && !fit_is_native(known, fit->contract);
}

int fit_breaks_at_last_row(const struct fit *fit, const struct series *series) {
    const size_t last = series->count - 1;
    const struct series_point *const at = &series->points[last];
    const double half = fit_half(at, fit->lr), low = at->value - half, high = at->value + half;
    return fit->segment_count > 1 && fit->segments[fit->segment_count - 1].point == last &&
           at->value < at[-1].value &&
           (fit_shortest_of(low, high, FIT_TYPED_DIGITS) > 0.0 ||
            fit_shortest_of(low / fit->lr, high / fit->lr, FIT_TYPED_DIGITS) > 0.0);
}

int fit_line_is_held(const struct fit *fit, const struct fit_known *known) {
    const double total = fit->plan.call.total, warmup = fit->plan.call.warmup;
    const double said = (double)known->run_steps, given = known->request.min_lr_ratio;
    if (!is_line(fit) || !(fit->floor_ratio > 0.0) || fit->floor_ratio >= 1.0 || given == given ||
        said == 0.0 || known->request.steps > 0 || fit->segment_count != 1 || fit->stride != 1.0 ||
        fit->epoch_updates > 0)
        return 0;
    /* Where the line comes to 0, in units of the counter. Of samples each update has as many. */
    const double end = warmup + (total - warmup) / (1.0 - fit->floor_ratio);
    const double unit = fit->in_samples ? fit_round(end / said) : fit->plan.increment;
    return unit >= 1.0 && fit_near(end, unit * said) && !fit_near(total, unit * said);
}
