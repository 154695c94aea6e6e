/* SPDX-License-Identifier: Apache-2.0
 * What withdraws a pass of `lr check`: numbers that nobody gave, skipped updates that the log does
 * not show, too few rows. */
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_check_parts.h"
#include "forensics/fit_samples.h"
#include "forensics/words.h"

/* Withdraws a pass that rests on a floor which nobody gave, where the schedule may as well have
 * stopped on its way. */
enum status fit_check_doubt_floor(const struct fit_known *known, struct arena *arena,
                                  struct fit_check *out) {
    const struct fit_set own = {
        .series = out->found.series, .fits = out->expected, .count = 1, .last = out->found.last};
    struct fit_stop stop;
    char *text;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_FLOOR) == 0 ||
        !(out->expected->floor_ratio > 0.0))
        return STATUS_OK;
    TRY(fit_check_find_stop(known, &own, arena, &stop));
    if (stop.fit == NULL) return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    TRY(arena_format(arena, &text,
                     "--min-lr-ratio: a scheduler that is no longer stepped from update %llu on "
                     "prints the same, behind %s",
                     (unsigned long long)out->found.series->points[stop.point].update,
                     stop.open ? "a line to a lower floor with a larger total" : stop.fit->text));
    out->needs = text;
    return STATUS_OK;
}

/* Withdraws a pass that rests on a schedule which nobody gave and whose falls nothing explains: of
 * one, a peak that was changed on the way, at a resume say, prints the same; of falls from row to
 * row, a decay. An LR that is held between falls by one factor, again and again, is a schedule's.
 */
void fit_check_doubt_drop(const struct fit_known *known, struct fit_check *out) {
    const struct series *series = out->found.series;
    size_t falls = 0;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_SCHEDULE) == 0 ||
        !out->expected->drops_taken)
        return;
    for (size_t i = 1; i < series->count; i++)
        falls += series->points[i].value != series->points[i - 1].value;
    const int row_by_row = falls > 1 && fit_falls_row_by_row(out->expected, series);
    const int has_metric = known->request.metric_count > 0;
    if (falls > 1 && !row_by_row && !has_metric) return;
    out->verdict = FIT_UNDECIDED;
    if (row_by_row)
        out->needs = "--schedule of the training: nothing in the log explains why the LR falls "
                     "where it does, and a decay prints the same";
    else if (falls > 1)
        out->needs = "--schedule of the training: the log's metric does not explain why the LR "
                     "falls where it does, and milestones that somebody typed (torch's "
                     "MultiStepLR) print the same";
    else
        out->needs = "--schedule of the training: nothing in the log explains why the LR falls "
                     "where it does, and a constant LR whose peak was changed there prints the "
                     "same";
}

static void doubt_skips(const char *rival, struct fit_check *out) {
    out->verdict = FIT_UNDECIDED;
    out->rival = rival;
    out->needs = "what tells of a skipped update: the gradient norm of every update (it is "
                 "infinite there), the loss scale, or that the training was not in float16";
}

/* Judges an expectation that needs skipped updates: it passes where the log shows some, or where no
 * other contract explains the column about as simply without any. The one that is known as a bug
 * stands beside it, since the first updates of a training in float16 are often skipped. */
enum status fit_check_judge_skips(const struct series *series, const struct fit_known *known,
                                  struct arena *arena, struct fit_check *out) {
    struct fit_known every = *known;
    every.plain = 1;
    out->verdict = FIT_PASS;
    TRY(fit_check_search_all(series, &every, arena, &out->found));
    if (known->skips.shown > 0) return STATUS_OK;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *rival = &out->found.fits[i];
        if (rival->simplicity > out->expected->simplicity + FIT_CHECK_SIMPLER) continue;
        /* A bug that applies the same LRs did not skip the update: it is another training. */
        if (!rival->contract->bug && fit_applied_apart(rival, out->expected, &out->found) == 0)
            continue;
        doubt_skips(rival->contract->name, out);
        return STATUS_OK;
    }
    const struct contract *late = fit_late_twin(series, known, out->expected);
    if (late != NULL) doubt_skips(late->name, out);
    const struct fit_set own = {
        .series = series, .fits = out->expected, .count = 1, .last = out->found.last};
    struct fit_stop stop;
    TRY(fit_check_find_stop(known, &own, arena, &stop));
    if (stop.fit == NULL || out->verdict != FIT_PASS) return STATUS_OK;
    doubt_skips(NULL, out);
    out->needs = "what tells of a skipped update, or whether the loop of the training holds the LR "
                 "from below: that prints the same end";
    return STATUS_OK;
}

/* Tells whether rows behind the end of the expected schedule show an LR that rises again, as a
 * cosine's does. */
static int rises_behind_end(const struct fit_check *out) {
    const struct fit *const fit = out->expected;
    const struct series_point *const points = out->found.series->points;
    if (fit->steps == 0 || fit->segment_count > 1) return 0;
    for (size_t i = 1; i < out->found.series->count; i++)
        if (points[i - 1].update >= fit->steps && points[i].value > points[i - 1].value) return 1;
    return 0;
}

/* Tells whether the rows begin behind the peak and fall from there: they show neither where the
 * warm-up ended nor how high. */
static int begins_behind_peak(const struct fit *fit, const struct series *series) {
    const struct series_point *const points = series->points;
    const double scale = fit_check_scale(series);
    return series->count > 1 && points[0].update > 2 &&
           points[0].value >= scale - fit_half(&points[0], scale) &&
           points[series->count - 1].value < points[0].value &&
           points[0].value < fit->lr * (1.0 - 0x1p-40);
}

/* Digits of a total from which on it is no round number. */
#define ODD 3

/* Tells whether a line rests on numbers that nobody would type: its peak, or with a warm-up, which
 * can be one update more or less with the total, that total. */
static int is_odd_line(const struct fit *fit) {
    return fit_peak_is_odd(fit) || (fit->warmup > 0.0 && fit_digits((double)fit->steps) >= ODD);
}

/* Updates by which a scheduler may be ahead or behind, or a total longer, without a word. Chosen: a
 * call too many or too few, and a total that was rounded at two places. */
#define BESIDE 3

/* Stores the total with which the contract's line to 0 prints the rows of a line to a floor, where
 * it is at most BESIDE updates longer; 0: there is none. Polynomial decay of power 1 is such a
 * line, and the LR one update in front of the end of a longer one is a floor for it. */
static enum status longer_line(const struct fit *fit, const struct fit_known *known,
                               const struct series *series, struct arena *arena, uint64_t *out) {
    struct contract_request request = known->request;
    *out = 0;
    if (series->count < 3 || sched_find_in(fit->contract->family, "linear") == NULL ||
        !fit_falls_as_line(fit) || sched_row(fit->schedule, "decay") != NULL ||
        !(fit->floor_ratio > 0.0) || fit->floor_ratio >= 1.0 || fit->steps == 0 ||
        fit->stride != 1.0 || fit->segment_count != 1 || fit->in_samples || fit_skips_any(fit))
        return STATUS_OK;
    request.schedule = "linear";
    request.lr = fit->lr;
    request.warmup = fit->warmup;
    request.min_lr_ratio = 0.0;
    for (uint64_t more = 1; more <= BESIDE && *out == 0; more++) {
        struct fit line = *fit;
        size_t i = 0;
        request.steps = fit->steps + more;
        TRY(contract_resolve(&request, arena, &line.plan));
        while (i < series->count &&
               fit_matches(&series->points[i],
                           contract_logged(&line.plan, series->points[i].update), fit->lr, NULL))
            i++;
        if (i == series->count) *out = request.steps;
    }
    return STATUS_OK;
}

enum status fit_check_doubt_assumed(struct arena *arena, struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char *text;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_SCHEDULE) != 0 ||
        (out->fitted & FIT_OF_FLOOR) == 0)
        return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    TRY(arena_format(arena, &text,
                     "--min-lr-ratio or --value: assumed were the defaults of the schedule, which "
                     "print other LRs; %s prints these",
                     fit->text));
    out->needs = text;
    return STATUS_OK;
}

enum status fit_check_doubt_longer(const struct fit_known *known, struct arena *arena,
                                   struct fit_check *out) {
    uint64_t longer = 0;
    char *text;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_SCHEDULE) == 0 ||
        (out->fitted & FIT_OF_FLOOR) == 0)
        return STATUS_OK;
    TRY(longer_line(out->expected, known, out->found.series, arena, &longer));
    if (longer == 0) return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    TRY(arena_format(arena, &text,
                     "--min-lr-ratio or --schedule of the training: a line to 0 with a total of "
                     "%llu, and not %llu, prints the same",
                     (unsigned long long)longer, (unsigned long long)out->expected->steps));
    out->needs = text;
    return STATUS_OK;
}

/* Tells whether the log goes on behind the end of a schedule whose total nobody said, by more
 * updates than a total is off by without a word. Where the counter is samples, a decay shorter than
 * the run has an argument of its own (Megatron's --lr-decay-samples). */
static int goes_on_behind_end(const struct fit_check *out) {
    const struct fit *const fit = out->expected;
    return (out->fitted & FIT_OF_STEPS) != 0 && fit->steps > 0 && !fit->total_hidden &&
           fit->segment_count == 1 && fit->contract->unit != CONTRACT_UNIT_SAMPLE &&
           out->found.last > fit->steps + BESIDE;
}

/* Tells whether `updates` is less round than one that is so many more. */
static int is_less_round(double updates, int more) {
    return updates + more > 0.0 && fit_digits(updates + more) < fit_digits(updates);
}

/* Tells whether total and warm-up, which nobody said, lie one update beside rounder ones: a
 * scheduler that is one update ahead or behind prints the rows with those. */
static int lies_beside_round(const struct fit_check *out) {
    static const int beside[] = {1, -1};
    const struct fit *const fit = out->expected;
    const uint32_t both = FIT_OF_STEPS | FIT_OF_WARMUP;
    if ((out->fitted & both) != both || fit->steps == 0 || fit->total_hidden || fit->in_samples ||
        fit->contract->unit == CONTRACT_UNIT_EPOCH)
        return 0;
    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        const double warmup = fit->warmup + beside[i];
        if (!is_less_round((double)fit->steps, beside[i]) || warmup < 0.0) continue;
        if (fit->warmup == 0.0 || warmup == 0.0 || fit_digits(warmup) <= fit_digits(fit->warmup))
            return 1;
    }
    return 0;
}

/* Tells whether the schedule begins its warm-up one step above 0 by its own definition, as those
 * that begin at 0 do one update ahead. */
static int begins_a_step_ahead(const struct fit *fit) {
    static const char *const names[] = {"cosine_warmup_with_min_lr", "torch.linear_constant"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(fit->schedule->name, names[i]) == 0) return 1;
    return 0;
}

/* Tells whether a cosine goes up again on the way to its total, with a number of cycles that nobody
 * gave. */
static int goes_up_again(const struct fit *fit) {
    const char *const cycles = strstr(fit->parameters, "num_cycles=");
    return cycles != NULL && strcmp(sched_bare_name(fit->schedule), "cosine_with_restarts") != 0 &&
           strtod(strchr(cycles, '=') + 1, NULL) > 0.5;
}

/* A line that ends at half of its peak or above is half of a longer one, or the start. */
#define HALF 0.5

/* Tells whether a line falls to a floor behind which no row lies, and which nobody would type,
 * neither as a share of the peak nor as an LR, or which is half of the peak or more. */
static int floor_is_odd(const struct fit_known *known, const struct fit_check *out) {
    const struct fit *const fit = out->expected;
    const double floor = fit->floor_ratio;
    return fit_falls_as_line(fit) && floor > 0.0 && floor < 1.0 &&
           out->found.last <= fit->steps + 1 &&
           (floor >= HALF || !fit_check_floor_is_typed(known, floor, fit->lr));
}

/* Withdraws a pass that rests on a schedule which nobody gave, and which another schedule prints
 * that is stepped otherwise. */
static enum status doubt_schedule(const struct fit_known *known, struct arena *arena,
                                  struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char *text;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_SCHEDULE) == 0) return STATUS_OK;
    if (begins_a_step_ahead(fit)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--schedule of the training: the warm-up of %s begins one step above 0, "
                         "as that of another schedule does one update ahead",
                         fit->schedule_name));
        out->needs = text;
    } else if (goes_up_again(fit)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--schedule of the training, or --value num_cycles=N: the LR goes up "
                         "again on its way, and that of a scheduler which moves several times per "
                         "update, or whose total is too short, does so, too (%s)",
                         fit->parameters));
        out->needs = text;
    } else if ((out->fitted & FIT_OF_FLOOR) != 0 && known->request.steps == fit->steps &&
               floor_is_odd(known, out)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--min-lr-ratio of the training, or --schedule: nobody gave the floor, %s "
                         "of the peak, and a line to a lower one with a larger total prints the "
                         "same",
                         word_about(fit->floor_ratio).text));
        out->needs = text;
    }
    return STATUS_OK;
}

/* Withdraws a pass that rests on numbers which nobody gave: a line from a peak that no row shows
 * and nobody would type, of which a contract that is one update apart prints the same towards a
 * total that is one update apart; skipped updates for the first LR; a total behind which the LR
 * rises again, so that the run was longer than its schedule, or goes on; total and warm-up beside
 * rounder ones; and two that lr fit calls undecided, a
 * line to a floor that no row stands at, or a peak that nobody would type, behind which a scheduler
 * may have stopped in its warm-up; and a total that ignores a skipped update which the log shows.
 */
enum status fit_check_doubt_numbers(const struct fit_known *known, struct arena *arena,
                                    struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char *text;
    if (out->verdict != FIT_PASS) return STATUS_OK;
    if (fit_skips_from_a_floor(fit, known, out->found.series)) {
        doubt_skips(NULL, out);
        out->needs = "the loss scale, a count of skipped updates, or --skipped: a loop that holds "
                     "its LR from below prints the first rows, too";
        return STATUS_OK;
    }
    if (fit_total_ignores_skips(fit, known, out->found.series)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--steps of the training: the log shows a skipped update while the LR "
                         "stands, where the scheduler of %s stands still, too, and a total that is "
                         "as many updates smaller prints the same",
                         fit->contract->name));
        out->needs = text;
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_FLOOR) != 0 && fit_line_is_held(fit, known)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--min-lr-ratio of the training: a line to 0 with the log's own total, "
                         "whose LR the loop holds at %s from below, prints the same",
                         word_about(fit->floor_ratio * fit->lr).text));
        out->needs = text;
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_STEPS) != 0 && rises_behind_end(out)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--steps of the training: the log goes on behind update %llu, at which "
                         "the fitted schedule ends, and its LR rises again; that of a scheduler "
                         "which moves twice per update does",
                         (unsigned long long)fit->steps));
        out->needs = text;
        return STATUS_OK;
    }
    if (goes_on_behind_end(out)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--steps of the training: the log goes on behind update %llu, at which "
                         "the fitted schedule ends; that of a scheduler which moves several times "
                         "per update ends there",
                         (unsigned long long)fit->steps));
        out->needs = text;
        return STATUS_OK;
    }
    TRY(doubt_schedule(known, arena, out));
    if (out->verdict != FIT_PASS) return STATUS_OK;
    if ((out->fitted & FIT_OF_STEPS) != 0 && (out->fitted & FIT_OF_LR) != 0 &&
        fit_falls_as_line(fit) && is_odd_line(fit) && begins_behind_peak(fit, out->found.series)) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--steps and --lr of the training: the log begins behind the peak, and a "
                     "contract that is one update ahead or behind prints the same line with a "
                     "total that is one update more or less";
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_STEPS) != 0 && (out->fitted & FIT_OF_WARMUP) != 0 &&
        strcmp(sched_bare_name(fit->schedule), "cosine_with_restarts") == 0 &&
        (double)out->found.series->points[0].update > fit->warmup + 1.0) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--steps and --warmup of the training: the log begins behind the warm-up, and "
                     "a contract that is one update ahead or behind prints the same cycles with "
                     "both one update more or less";
        return STATUS_OK;
    }
    if (lies_beside_round(out)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--steps and --warmup of the training: a scheduler that is one update "
                         "ahead or behind prints the same with a total beside %llu",
                         (unsigned long long)fit->steps));
        out->needs = text;
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_SCHEDULE) == 0) return STATUS_OK;
    if ((out->fitted & FIT_OF_FLOOR) != 0 && fit->steps != known->request.steps &&
        (fit_ends_on_its_way(fit, out->found.last) || fit_ends_at_a_step(fit, out->found.series) ||
         ((out->fitted & FIT_OF_STEPS) != 0 && out->found.series->count >= 3 &&
          fit_floor_is_far(fit, out->found.last)))) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--schedule, --steps and --min-lr-ratio of the training, or rows behind the "
                     "end of the decay: one to a lower floor with a larger total prints the same";
    } else if ((out->fitted & FIT_OF_LR) != 0 && fit_stands_at_top(fit, out->found.series) &&
               fit_peak_is_odd(fit)) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--lr or --schedule of the training: the peak is one that nobody would type, "
                     "and a scheduler that is no longer stepped inside of a longer warm-up prints "
                     "the same";
    }
    return STATUS_OK;
}

/* Tells whether several updates must have been skipped at one distance, which no scaler does but in
 * a row. */
static int skips_evenly(const struct fit *fit) {
    if (fit->skip_count < 4) return 0;
    const uint64_t apart = fit->skips[1].first - fit->skips[0].first;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].first != fit->skips[i].last ||
            (i > 0 && fit->skips[i].first - fit->skips[i - 1].first != apart))
            return 0;
    return apart > 1;
}

static int none_is_shown(const struct fit_known *known) {
    return known->skips.shown == 0 && known->request.skipped_count == 0;
}

/* Returns up to which update all updates were skipped from the first on, as a scaler does whose
 * loss scale begins too high. */
static uint64_t end_of_burst(const struct fit *fit) {
    uint64_t end = 0;
    for (size_t i = 0; i < fit->skip_count; i++) {
        const struct fit_skip *const skip = &fit->skips[i];
        if (skip->first != end + 1 || skip->count != skip->last - skip->first + 1) break;
        end = skip->last;
    }
    return end;
}

/* Tells whether half of the updates were skipped, or more, those of a burst at the start left out:
 * a scaler raises its scale once in many updates, so it cannot go on like that. */
static int skips_half(const struct fit *fit, uint64_t last) {
    const uint64_t burst = end_of_burst(fit);
    uint64_t skipped = 0;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].first > burst) skipped += fit->skips[i].count;
    return skipped > 1 && 2 * skipped + 1 >= last - burst;
}

/* Returns how many updates were skipped one after the other up to the last row, which shows none of
 * its own where the LR that was used is logged. */
static uint64_t skips_at_end(const struct fit *fit, uint64_t last) {
    uint64_t end = last, count = 0;
    for (size_t i = fit->skip_count; i-- > 0;) {
        const struct fit_skip *const skip = &fit->skips[i];
        if (skip->last != end && !(i + 1 == fit->skip_count && skip->last + 1 == end)) break;
        if (skip->count != skip->last - skip->first + 1) break; /* those at its end may not be */
        count += skip->count;
        end = skip->first - 1;
    }
    return count;
}

/* Updates in a row that a scaler skips at the end of a log without a word. Chosen: an overflow
 * halves the loss scale, and the next update may overflow once more. */
#define AT_END 2
/* Skipped updates that are believed beside a schedule with parameters which nobody gave. Chosen. */
#define BESIDE_PARAMETERS 5

static int has_parameters(const struct fit *fit) {
    return fit->parameters[0] != '\0' || fit->floor_ratio > 0.0;
}

/* Tells whether updates were skipped in front of the rows which nothing shows, behind a peak that
 * no row shows, nobody gave and nobody would type. */
static int skips_behind_odd_peak(const struct series *series, const struct fit_known *known,
                                 const struct fit_check *out) {
    const struct fit *const fit = out->expected;
    return fit->skip_count > 0 &&
           (out->fitted & (FIT_OF_LR | FIT_OF_WARMUP)) == (FIT_OF_LR | FIT_OF_WARMUP) &&
           known->skips.shown == 0 && known->request.skipped_count == 0 &&
           fit->skips[0].first < series->points[0].update && begins_behind_peak(fit, series) &&
           fit_peak_is_odd(fit);
}

void fit_check_doubt_shown(const struct series *series, const struct fit_known *known,
                           struct fit_check *out) {
    if (out->verdict == FIT_PASS && fit_skips_unshown(out->expected, known)) {
        doubt_skips(NULL, out);
        out->needs = "the loss scale, a count of skipped updates, or --skipped: a finite "
                     "gradient norm that is printed once more is no evidence of a skip";
    } else if (out->verdict == FIT_PASS && fit_skips_on_plateau(out->expected, known, series)) {
        doubt_skips(NULL, out);
        out->needs = "--steps, a count of skipped updates, or --skipped: with a total that is as "
                     "much larger the same rows need no skipped update";
    } else if (out->verdict == FIT_PASS && fit_skips_before_rows(out->expected, known, series)) {
        doubt_skips(NULL, out);
        out->needs = "--steps, --warmup, a count of skipped updates, or --skipped: with another "
                     "total and warm-up the same rows need no skipped update";
    } else if (out->verdict == FIT_PASS && skips_behind_odd_peak(series, known, out)) {
        doubt_skips(NULL, out);
        out->needs = "--lr, --warmup, a count of skipped updates, or --skipped: the peak is one "
                     "that nobody would type, and with another peak and warm-up the same rows may "
                     "need no skipped update";
    } else if (out->verdict == FIT_PASS && fit_skips_to_a_floor(out->expected, known, series)) {
        doubt_skips(NULL, out);
        out->needs = "the loss scale, a count of skipped updates, or --skipped: a loop that "
                     "holds its LR from below prints the last LR, too";
    } else if (out->verdict == FIT_PASS && none_is_shown(known) &&
               skips_at_end(out->expected, out->found.last) > AT_END) {
        doubt_skips(NULL, out);
        out->needs = "the loss scale, a count of skipped updates, or --skipped: a scheduler "
                     "that is no longer stepped prints the last rows, too";
    } else if (out->verdict == FIT_PASS && none_is_shown(known) &&
               (skips_evenly(out->expected) || skips_half(out->expected, out->found.last))) {
        doubt_skips(NULL, out);
        out->needs = "the loss scale, a count of skipped updates, or --skipped: a scheduler "
                     "that is stepped once per several updates prints the same";
    } else if (out->verdict == FIT_PASS && none_is_shown(known) &&
               (out->fitted & FIT_OF_SCHEDULE) != 0 && has_parameters(out->expected) &&
               fit_skipped(out->expected) > BESIDE_PARAMETERS) {
        doubt_skips(NULL, out);
        out->needs = "--schedule, the loss scale, a count of skipped updates, or --skipped: nobody "
                     "gave the schedule with its parameters, and beside so many skipped updates "
                     "several print the same";
    }
}

enum status fit_check_doubt_beside(const struct series *series, const struct fit_known *known,
                                   struct arena *arena, struct fit_check *out) {
    struct fit_beside beside;
    int found;
    char *text;
    if (out->verdict != FIT_PASS || !none_is_shown(known) || !fit_skips_any(out->expected))
        return STATUS_OK;
    const double apart = known->request.lr == known->request.lr ? 0.0 : FIT_PEAK_APART;
    TRY(fit_check_beside(series, known, out->expected, apart, arena, &beside, &found));
    if (!found) return STATUS_OK;
    doubt_skips(NULL, out);
    TRY(arena_format(arena, &text,
                     "the loss scale, a count of skipped updates, or --skipped: with peak %s, "
                     "warm-up %s and total %llu the same rows need no skipped update",
                     word_about(beside.peak).text, number_text_f64(beside.warmup).text,
                     (unsigned long long)beside.steps));
    out->needs = text;
    return STATUS_OK;
}

enum status fit_check_doubt_samples(const struct fit_known *known, const struct fit_set *all,
                                    struct arena *arena, struct fit_check *out) {
    const double run = (double)known->run_steps * known->steady->batch;
    const double last = (double)all->last * known->steady->batch;
    const double total = (double)out->expected->steps;
    char *text = NULL;
    if (known->run_steps == 0 || known->request.steps > 0 || total == run) return STATUS_OK;
    for (size_t i = 0; i < all->count && text == NULL; i++) {
        const struct fit *const other = &all->fits[i];
        if (!fit_is_beside(known, other) || other->steps != known->run_steps) continue;
        out->rival = other->contract->name;
        TRY(arena_format(arena, &text,
                         "--lr-decay-samples of the training as --steps: %s explains the log with "
                         "the log's own total",
                         other->text));
    }
    if (text == NULL && total > last)
        TRY(arena_format(arena, &text,
                         "--steps of the training, in samples: the total that fits is not the %s "
                         "samples of the log's own total, and no row lies behind it",
                         number_text_f64(run).text));
    if (text == NULL) return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    out->needs = text;
    return STATUS_OK;
}

/* A search that had to be told these numbers does not say that no others print the column. */
void fit_check_doubt_borrowed(struct fit_check *out) {
    if (out->verdict != FIT_PASS) return;
    out->verdict = FIT_UNDECIDED;
    out->needs =
        "--schedule, --lr, --warmup, --steps and --min-lr-ratio: these numbers were taken from "
        "another explanation of the column";
}

/* Withdraws a pass that rests on fewer than three rows and on a number that was fitted to them:
 * there are always numbers that agree. Where everything was given, the rows were predicted. */
void fit_check_doubt_few(const struct series *series, struct fit_check *out) {
    const uint32_t all = FIT_OF_LR | FIT_OF_WARMUP | FIT_OF_STEPS | FIT_OF_SCHEDULE;
    if (series->count >= 3 || out->verdict != FIT_PASS) return;
    if ((out->fitted & all) == 0 && !fit_skips_any(out->expected)) return;
    out->verdict = FIT_UNDECIDED;
    out->why |= FIT_WHY_FEW;
    out->needs = "three rows or more, or --schedule, --lr, --warmup and --steps of the training: "
                 "fewer rows agree with any contract whose numbers are fitted to them";
}

/* Withdraws a pass of a contract that logs the LR that was used, where the log says that the
 * release which wrote it logs the next one: with an early update skipped both print the same. The
 * other way round a schedule that is one update ahead prints the same. */
void fit_check_doubt_release(const struct fit_known *known, struct fit_check *out) {
    const struct contract *const expected = out->expected->contract;
    const int earlier = fit_is_of_earlier_release(known, expected);
    if (out->verdict != FIT_PASS || (!earlier && !fit_is_of_later_release(known, expected)) ||
        !fit_is_native(known, expected))
        return;
    out->verdict = FIT_UNDECIDED;
    if (earlier) {
        out->needs = "--expect hf: by its losses, which are not rounded, the log was written by "
                     "transformers 5, which logs the learning rate that was used";
        return;
    }
    out->needs = "--expect hf-4.50: by its fields the log was written by transformers before 4.50, "
                 "which log the learning rate of the next update";
}
