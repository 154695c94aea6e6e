/* SPDX-License-Identifier: Apache-2.0
 * twinstep lr fit: finds the contracts, schedules and numbers that explain the LR column of a log.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/lr_options.h"
#include "cli/lr_report.h"
#include "forensics/cut_digits.h"
#include "forensics/fit_samples.h"

enum { KEY_CONTRACT = KEY_OWN, KEY_ALL };

/* What else there is to say of a column beside the fits of all its rows. */
struct beside {
    const char *early;     /* contracts that print the same with update 1 skipped, or NULL */
    struct fit_stop stop;  /* the schedule that stands still from some row on */
    struct fit_clamp held; /* the schedule whose LR is held on its way */
    /* Why the first fit is no decision, as the rest of a sentence that begins with the number of
     * set.fits[doubtful]; NULL: it is one. */
    const char *doubt;
    size_t doubtful;
};

/* What the log records as applied, and what it decides. */
static json_t *used_json(const struct fit_used *used) {
    if (used->series.count == 0) return json_null();
    return json_pack("{sI sI so}", "values", (json_int_t)used->series.count, "left_out",
                     (json_int_t)used->left_out, "first_other", json_positive(used->update));
}

/* What the column follows up to the row from which on it stands still: null where it does not. */
static json_t *stop_json(const struct lr_report *report, const struct fit_stop *stop) {
    if (stop->fit == NULL) return json_null();
    return json_pack("{sI sb sb sb so}", "update",
                     (json_int_t)report->series.points[stop->point].update, "of_known_total",
                     stop->of_known_total, "held", stop->held, "open", stop->open, "fit",
                     lr_report_fit_json(stop->fit));
}

/* What the rows follow that are not held at the lowest or the highest LR: null where none are. */
static json_t *clamp_json(const struct fit_clamp *held) {
    if (held->fit == NULL) return json_null();
    return json_pack("{sf sb sI so}", "level", held->level, "above", held->above, "rows",
                     (json_int_t)held->rows, "fit", lr_report_fit_json(held->fit));
}

/* Which listed fit leaves the answer undecided, and why: null where none does. */
static json_t *doubt_json(const struct fit_set *set, const struct beside *beside) {
    if (beside->doubt == NULL) return json_null();
    return json_pack("{sI ss}", "fit", (json_int_t)lr_report_line_of(set, beside->doubtful),
                     "words", beside->doubt);
}

static json_t *fit_json(const struct lr_report *report, const struct fit_set *set,
                        const struct beside *beside) {
    return json_pack("{ss ss sI so sb so so sI sI so so so so so so so*}", "log", report->log->path,
                     "format", report->log->format, "values", (json_int_t)report->series.count,
                     "run_steps", json_positive(report->known.run_steps), "step_guessed",
                     report->log->step_guessed, "row_spacing", lr_report_rows_json(report), "fits",
                     lr_report_fits_json(set), "left_out", (json_int_t)set->left_out, "groups",
                     (json_int_t)set->groups, "why", lr_report_why_json(set->why), "early_skip",
                     beside->early != NULL ? json_string(beside->early) : json_null(), "doubt",
                     doubt_json(set, beside), "stands_still", stop_json(report, &beside->stop),
                     "held", clamp_json(&beside->held), "applied", used_json(&report->used),
                     "partial", set->partial != NULL ? json_string(set->partial) : json_null());
}

/* Tells whether the column may as well be that of a scheduler that stopped in its warm-up: nobody
 * said the peak or the schedule. */
static int may_have_stopped(const struct fit_known *known, const struct fit_set *set) {
    return known->request.lr != known->request.lr && known->request.schedule == NULL &&
           fit_stands_at_top(&set->fits[0], set->series);
}

/* Tells whether a scheduler that is one update late prints the best fit's column without the
 * skipped updates that it needs and that the log does not show. Under a contract that somebody
 * named that is one update; of two, one would be the other LR that another contract logs. */
static int may_be_late(const struct fit_known *known, const struct fit_set *set) {
    const struct fit *const first = &set->fits[0];
    const uint64_t skipped = fit_skipped(first);
    return skipped > 0 && known->skips.shown == 0 && known->request.skipped_count == 0 &&
           (known->request.contract == NULL || skipped == 1) &&
           fit_late_twin(set->series, known, first) != NULL;
}

/* Returns why the best fit is no decision, or NULL. It is one where the log's own framework
 * explains it, nothing that is listed raises a doubt about it, it is no bug that a sound contract
 * prints as well once update 1 was skipped, and no floor at which a scheduler may have stood that
 * was not stepped any more. *out_fit is the fit of which the words speak. */
static const char *doubt_of(const struct fit_known *known, const struct fit_set *set,
                            const struct beside *beside, size_t *out_fit) {
    const struct fit *const first = &set->fits[0];
    *out_fit = 0;
    if (beside->early != NULL && fit_bug_is_in_column(first->contract))
        return "is a known bug, and with update 1 skipped a sound contract prints the same";
    if (beside->stop.fit != NULL && beside->stop.held)
        return "ends where another schedule goes on whose LR is held from below";
    if (beside->stop.fit != NULL)
        return "stays at an LR at which a scheduler may stand that is no longer stepped";
    if (fit_goes_back(first))
        return "sets its counter back in mid-course, where the log shows no resume";
    if (fit_breaks_are_many(first, set))
        return "breaks its schedule many times where the log shows no resume: a schedule of "
               "several cycles prints such a column";
    if (fit_skips_unshown(first, known))
        return "needs skipped updates that the log shows by nothing but a repeated norm";
    if (may_be_late(known, set))
        return "needs a skipped update that the log does not show: a scheduler that is one update "
               "late (lag1) prints the same without one";
    if (fit_skips_on_plateau(first, known, set->series))
        return "needs skipped updates on its plateau that the log does not show: a total that is "
               "as much larger, which nobody said, needs none";
    if (fit_total_ignores_skips(first, known, set->series))
        return "has a total that nobody said, and the log shows a skipped update while the LR "
               "stands: its scheduler stands still there, too, and ends as many updates sooner";
    if (fit_skips_before_rows(first, known, set->series))
        return "needs skipped updates in front of the first row: with another total and warm-up, "
               "which nobody said, the same rows need none";
    if (fit_total_is_beside(first, known, set->series))
        return "ends beside a rounder total, which nobody said: with skipped updates in front of "
               "the first row, or logging the LR of the next update, that one prints the same";
    if (fit_samples_end_unseen(first, known, set->last))
        return "ends at a number of samples that nobody said, behind the last row, and not at the "
               "log's own total";
    if (fit_skips_to_a_floor(first, known, set->series))
        return "needs skipped updates for the last LR alone, at which a loop may hold it from "
               "below";
    if (fit_skips_stand_for_a_floor(first, known, set->series))
        return "needs skipped updates that the log does not show, where a floor that "
               "configurations have, and none of them, print the same rows";
    if (fit_skips_from_a_floor(first, known, set->series))
        return "needs skipped updates for the first LR, at which a loop may hold it from below";
    if (known->request.contract == NULL && fit_skips_second_alone(first, known, set->series))
        return "needs update 2 skipped, and a loop whose counter begins at 1 (max(step, 1)) prints "
               "the same two rows";
    if (first->steps != known->run_steps && first->steps != known->request.steps &&
        known->request.min_lr_ratio != known->request.min_lr_ratio) {
        if (fit_ends_on_its_way(first, set->last))
            return known->run_steps > 0 ? "ends at a floor that no row stands at, with another "
                                          "total than the log's own"
                                        : "ends at a floor that no row stands at, with a total "
                                          "that nobody said";
        if (fit_ends_at_a_step(first, set->series))
            return "ends its line at the log's last update, at a floor that is no rounder than LRs "
                   "in front of it: a log cut off on the way to a lower floor prints the same";
    }
    if (known->run_steps == 0 && known->request.steps == 0 &&
        known->request.min_lr_ratio != known->request.min_lr_ratio &&
        fit_floor_is_far(first, set->last))
        return "ends behind the last row, with a total that nobody said: other floors with other "
               "totals print the same";
    if (first->steps != known->run_steps && first->steps != known->request.steps &&
        known->request.min_lr_ratio != known->request.min_lr_ratio && first->floor_ratio > 0.0 &&
        fit_floor_is_far(first, set->last))
        return "ends behind the last row, with another total than the one that was said: another "
               "floor with that one may print the same";
    if (known->request.contract == NULL && known->possible == NULL && known->run_steps == 0 &&
        known->request.steps == 0 && fit_is_by_share(first, set->series))
        return "has a decay that is a share of a total which nobody said: a plateau and a decay of "
               "as many updates (WSD), with a total beside it, print the same";
    if (fit_plateau_is_long(first, known, set->last))
        return "has a plateau that is longer than the total which was said leaves: a scheduler "
               "that was not stepped at some updates of it prints the same";
    if (known->request.schedule == NULL && fit_falls_row_by_row(first, set->series))
        return "takes its falls from the rows, and does not hold the LR for two of them: a decay "
               "prints the same";
    if (known->request.schedule == NULL && first->drops_taken && known->request.metric_count > 0)
        return "takes its falls from the rows, where the log's metric does not explain them: "
               "milestones that somebody typed (torch's MultiStepLR) print the same";
    if (fit_hides_plateau(first) && known->request.warmup != known->request.warmup &&
        known->request.schedule == NULL)
        return "has a warm-up of more than a quarter of its total that no row shows: a plateau up "
               "to there and a decay behind it (WSD) print the same";
    if (may_have_stopped(known, set) && fit_peak_is_odd(first))
        return "has a peak that nobody would type: a scheduler that is no longer stepped inside of "
               "a longer warm-up prints the same";
    if (fit_line_is_held(first, known))
        return "ends at a floor with another total than the log's own, and a line to 0 with that "
               "one, whose LR a loop holds at the floor, prints the same";
    if (fit_peak_is_by_digits(first, known, set->series))
        return "has a peak that nobody would type, and the rows are printed too coarsely to tell "
               "it from one that somebody would: with that one the lengths are others";
    if (first->stairs_open)
        return "moves once per several updates, which does not say what a scheduler step counts";
    if (fit_is_of_earlier_release(known, first->contract) &&
        strncmp(first->contract->name, "hf", 2) == 0)
        return "is of a release that logs the LR of the next update, and by its losses, which are "
               "not rounded, the log was written by transformers 5, which logs the one that was "
               "used";
    if (!fit_is_native(known, first->contract)) return "is not of the framework that wrote the log";
    if (fit_is_half_speed(first) && known->request.min_lr_ratio != 0.5)
        return "is also printed by a decay to 0 that moves at every second update only";
    /* Without a total that somebody said, another time scale prints what a counter that moves
     * several times per update prints. */
    if (first->stride != 1.0 && first->steps > 0 && known->run_steps == 0 &&
        known->request.steps == 0)
        return "has a counter at another pace, and another total at the usual pace, which nobody "
               "said, may print the same";
    const char *const broken = fit_break_doubt(known, set, out_fit);
    if (broken != NULL) return broken;
    for (size_t i = 1; i < set->count; i++) {
        const char *const doubt = fit_doubt(known, set, &set->fits[i]);
        *out_fit = i;
        if (doubt != NULL) return doubt;
    }
    return NULL;
}

#define NAMED 4 /* contracts that are named; the rest is counted */

static int is_named(const struct contract *const *named, size_t count,
                    const struct contract *contract) {
    for (size_t i = 0; i < count; i++)
        if (named[i] == contract) return 1;
    return 0;
}

/* Says which other contracts print the column, where nothing but the column speaks for the one that
 * is named: its name is that of a habit, and no proof of who wrote the log. */
static void print_alike(const struct fit_known *known, const struct fit_set *set) {
    const struct contract *named[NAMED + 1] = {set->fits[0].contract};
    size_t count = 1, more = 0;
    if (known->possible != NULL && fit_is_native(known, set->fits[0].contract)) return;
    for (size_t i = 1; i < set->count; i++) {
        const struct fit *fit = &set->fits[i];
        int before = fit->same_logged != set->fits[0].same_logged;
        for (size_t j = 0; j < i && !before; j++)
            before = set->fits[j].contract == fit->contract &&
                     set->fits[j].same_logged == fit->same_logged;
        if (before || is_named(named, count, fit->contract)) continue;
        if (count <= NAMED)
            named[count++] = fit->contract;
        else
            more++;
    }
    if (count == 1) return;
    printf("  %s: ", known->possible == NULL
                         ? "the column does not say which framework wrote it, and is also that of"
                         : "no contract of the log's own framework prints it; the column is also "
                           "that of");
    for (size_t i = 1; i < count; i++)
        printf("%s%s", i > 1 ? ", " : "", named[i]->name);
    if (more > 0) printf(" and %zu more", more);
    putchar('\n');
}

/* The answer in one line, with how many others there are. */
static void print_answer(const struct lr_report *report, const struct fit_set *set,
                         const struct beside *beside) {
    size_t same = 0;
    for (size_t i = 1; i < set->count; i++)
        same += set->fits[i].same_throughout == set->fits[0].same_throughout;
    const size_t others = set->count - 1 - same + set->left_out;
    printf("%s: %s\n  (%zu more of the list below appl%s the same rates, %zu appl%s "
           "others)\n",
           beside->doubt == NULL && !report->known.steps_guessed ? "likeliest"
                                                                 : "likeliest, but undecided",
           set->fits[0].text, same, same == 1 ? "ies" : "y", others, others == 1 ? "ies" : "y");
    print_alike(&report->known, set);
}

/* Says which fits contradict the updates that are said to be skipped. */
static void print_contradictions(const struct lr_report *report, const struct fit_set *set) {
    const char *const who = report->skipped > 0 ? "it counts" : "--skipped names";
    size_t count = 0;
    if (set->count > 0 && fit_contradicts_skipped(&set->fits[0], &report->known)) {
        printf("remark: the log contradicts the skipped updates that %s: the schedule stands still "
               "or moves on elsewhere. Without --skipped the fit finds them\n",
               who);
        return;
    }
    for (size_t i = 1; i < set->count; i++) {
        if (!fit_contradicts_skipped(&set->fits[i], &report->known)) continue;
        if (count++ == 0)
            printf("remark: fits that contradict the skipped updates that %s, as their schedule "
                   "stands still or moves on elsewhere: ",
                   who);
        printf("%s%zu", count > 1 ? ", " : "", i + 1);
    }
    if (count > 0) putchar('\n');
}

/* Says which warm-ups and peaks print the rows as well. */
static void print_unseen(const struct fit *fit) {
    if (!(fit->unseen_warmup > 0.0)) return;
    printf("remark: no row shows the warm-up: each of %s to %s updates prints these rows",
           number_text_f64(fit->unseen_from).text, number_text_f64(fit->unseen_warmup).text);
    if (fit->unseen_most > fit->unseen_least)
        printf(", each with its own peak from %.4g to %.4g", fit->unseen_least, fit->unseen_most);
    putchar('\n');
}

/* Says that the LR stands still behind a schedule that had not come to its end. */
static void print_stop(const struct lr_report *report, const struct fit_set *set,
                       const struct fit_stop *stop) {
    if (stop->fit == NULL) return;
    const struct series_point *const point = &report->series.points[stop->point];
    if (stop->held) {
        printf("remark: in front of update %ju the column is that of %s; from there on the LR is "
               "held from below at %s, as where a loop sets lr = max(lr, floor): no step of that "
               "schedule has this LR, so no scheduler stopped at it\n",
               (uintmax_t)point->update, stop->fit->text, number_text_f64(point->value).text);
        return;
    }
    if (stop->open) {
        printf("remark: from update %ju on the column stands still, at a floor that nobody would "
               "type: a line to a lower floor with a larger total prints the same, where its "
               "scheduler is no longer stepped from there on (--min-lr-ratio says that it is the "
               "floor)\n",
               (uintmax_t)point->update);
        return;
    }
    printf("remark: in front of update %ju the column is that of %s; from there on it stands "
           "still, as where the scheduler is no longer stepped%s\n",
           (uintmax_t)point->update, stop->fit->text,
           set->count > 0 ? " (--min-lr-ratio says that the LR at which it stands is the floor)"
                          : "");
}

/* Says that the LR is held on its way, which nothing that was searched for does by itself. */
static void print_clamp(const struct fit_clamp *held) {
    if (held->fit == NULL) return;
    printf(
        "remark: but for %zu rows at its %s LR, %s, the column is that of %s, which lies %s that "
        "LR there: a loop that sets lr = %s prints this\n",
        held->rows, held->above ? "highest" : "lowest", number_text_f64(held->level).text,
        held->fit->text, held->above ? "above" : "below",
        held->above ? "min(lr, ceiling)" : "max(lr, floor) from the first update on");
}

static enum status print_text(const struct lr_report *report, const struct fit_set *set,
                              const struct beside *beside, struct arena *arena) {
    const char *const early = beside->early;
    if (set->count > 0) print_answer(report, set, beside);
    lr_report_print_head(report);
    if ((set->why & FIT_WHY_LOST) != 0) {
        printf("The printed digits can tell nothing: every learning rate prints as 0 in steps of "
               "%.1g.\n",
               series_lost(set->series));
    } else if (set->count == 0) {
        puts("Nothing fits.");
        if (set->partial != NULL)
            printf("the first %zu values fit %s\n", set->first_bad, set->partial);
    } else {
        printf("Fits, %ssimplest first; same letter: the same learning rates are applied\n",
               report->known.possible != NULL ? "those of the log's own framework before others, "
                                              : "");
    }
    TRY(lr_report_print_fits(set, arena));
    if (beside->doubt != NULL)
        printf("because: fit %zu %s\n", lr_report_line_of(set, beside->doubtful), beside->doubt);
    if (early != NULL)
        printf("remark: with update 1 skipped, as a loss scaler does, this is also printed by %s\n",
               early);
    if (set->count > 0 && fit_is_half_speed(&set->fits[0]))
        puts("remark: a decay to 0 whose schedule moves at every second update only prints this, "
             "too (--min-lr-ratio 0.5 says that it is the floor)");
    if (set->count > 0 && set->fits[0].stairs_open)
        printf("remark: the LR moves once per %ju updates, which speaks for no framework: a "
               "scheduler that is stepped once per accumulation (the log counts micro-batches), "
               "epoch or train() call prints it, and so does a loop that logs an update several "
               "times\n",
               (uintmax_t)set->fits[0].epoch_updates);
    if (set->count > 0 && may_have_stopped(&report->known, set))
        puts("remark: a scheduler that is no longer stepped inside of a longer warm-up, to a "
             "higher peak, prints the same rows (--lr and --schedule say which it was)");
    print_stop(report, set, &beside->stop);
    print_clamp(&beside->held);
    if (set->count > 0 && fit_skips_unshown(&set->fits[0], &report->known))
        puts("remark: at the skipped updates the log prints the gradient norm of the update before "
             "once more: DeepSpeed does so at a skip, but an equal number is no evidence of one, "
             "and a scheduler that was not stepped prints the same LRs");
    print_contradictions(report, set);
    if (set->count > 0) print_unseen(&set->fits[0]);
    if (set->count > 0) lr_report_print_unseen(report, &set->fits[0]);
    if (report->used.left_out > 0)
        printf("left out: %zu fits that apply other LRs than the log records\n",
               report->used.left_out);
    if (report->used.update > 0)
        printf("none of them applies what the log records: update %ju applied %s, the first fit "
               "applies %s\n",
               (uintmax_t)report->used.update, number_text_f64(report->used.applied).text,
               number_text_f64(report->used.expected).text);
    /* A decay that the log shows in part shows no total, and the search tries few of them. */
    const int no_total = (set->why & FIT_WHY_NOTHING) != 0 && report->known.request.steps == 0 &&
                         report->known.request.epochs == 0.0 && report->known.run_steps == 0;
    if (no_total)
        puts("because: without a total, no shipped contract and schedule was found that gives "
             "these values; --steps T says the total");
    if ((set->why & FIT_WHY_NOTHING) != 0 && fit_samples_are_asked(&report->known) &&
        report->known.steady == NULL && report->known.samples == NULL && !report->known.growing)
        puts("because: the log prints neither its batch nor its consumed samples, so no warm-up or "
             "total of samples was tried that is no whole number of updates; --global-batch B "
             "says the samples of an update");
    lr_report_print_why(no_total ? set->why & ~(uint32_t)FIT_WHY_NOTHING : set->why);
    return STATUS_OK;
}

static int exit_of(const struct fit_known *known, const struct fit_set *set,
                   const struct fit_used *used, const char *doubt) {
    if (known->steps_guessed || (set->why & (FIT_WHY_NO_COLUMN | FIT_WHY_FEW | FIT_WHY_LOST)) != 0)
        return EXIT_UNTESTABLE;
    if (set->count == 0) return (set->why & FIT_WHY_BATCH) != 0 ? EXIT_UNTESTABLE : EXIT_DIFFERS;
    if (used->update != 0) return EXIT_DIFFERS;
    return doubt == NULL ? EXIT_AS_EXPECTED : EXIT_UNTESTABLE;
}

/* Leaves the known bugs out, where the end of the column is explained by a loop that holds its LR:
 * they owe that end to numbers that were fitted to it. */
static enum status leave_bugs_out(struct fit_set *set, struct arena *arena) {
    struct fit *kept;
    size_t count = 0;
    TRY(arena_take(arena, set->count + 1, sizeof *kept, "fit", &kept));
    for (size_t i = 0; i < set->count; i++)
        if (set->fits[i].bug == NULL) kept[count++] = set->fits[i];
    set->fits = kept;
    set->count = count;
    set->left_out = 0;
    if (count == 0) set->why |= FIT_WHY_NOTHING;
    return STATUS_OK;
}

/* Fits the printed LRs, also as numbers whose digits were cut off; recorded ones are exact. */
static enum status fit_report(struct lr_report *report, struct arena *arena, struct fit_set *out) {
    if (report->of_applied) return fit_series(&report->series, &report->known, arena, out);
    return cut_digits_fit(report->log, &report->series, &report->known, arena, out);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct lr_report report;
    struct fit_set set;
    struct beside beside;
    TRY(lr_report_open(cli, options, &report));
    if (options_value(options, KEY_CONTRACT) != NULL)
        TRY(lr_contract("--contract", options_value(options, KEY_CONTRACT),
                        &report.known.request.contract));
    TRY(fit_check_request(&report.known.request, &cli->arena));
    TRY(lr_report_number(cli, options, &report));
    if (options_given(options, KEY_ALL)) report.known.limit = 1000;
    TRY(fit_report(&report, &cli->arena, &set));
    TRY(fit_keep_used(&set, &cli->arena, &report.used));
    TRY(fit_early_skip(&set, &report.known, &cli->arena, &beside.early));
    TRY(fit_find_stop(&report.series, &report.known, &set, &cli->arena, &beside.stop));
    beside.held = (struct fit_clamp){.fit = NULL};
    if (beside.stop.fit == NULL)
        TRY(fit_find_clamp(&report.series, &report.known, &set, &cli->arena, &beside.held));
    if (beside.stop.fit != NULL && beside.stop.held) TRY(leave_bugs_out(&set, &cli->arena));
    beside.doubtful = 0;
    beside.doubt = set.count > 0 ? doubt_of(&report.known, &set, &beside, &beside.doubtful) : NULL;
    *out_exit = exit_of(&report.known, &set, &report.used, beside.doubt);
    if (options->json) return json_print(fit_json(&report, &set, &beside));
    return print_text(&report, &set, &beside, &cli->arena);
}

static const struct argp_option option_rows[] = {
    OPTION("contract", KEY_CONTRACT, "C", "Try this contract only"),
    OPTION("all", KEY_ALL, NULL, "List every fit, not the simplest and what differs from them"),
    LR_OPTION_ROWS,
    LR_OPTION_LOG_EVERY,
    OPTIONS_LOG,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_lr_fit = {
    .name = "lr fit",
    .brief = "find the framework, schedule and numbers behind a log's learning rates",
    .arguments = "LOG",
    .text =
        "Lists every contract, schedule, peak, warm-up and total that gives each learning rate of "
        "LOG within its printed precision, simplest first; also strides, skipped updates and "
        "resumes. What a log prints is not what was applied: fits that log the same and apply "
        "different rates are all listed. Numbers that are known may be given; they rank the list.\v"
        "Exit status: 0 all simple fits of the log's own framework apply the same rates at the "
        "updates that the log shows, 1 nothing fits, 3 the log cannot say.\n\nExample: twinstep lr "
        "fit trainer_state.json",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
