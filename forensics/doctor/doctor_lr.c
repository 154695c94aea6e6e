/* SPDX-License-Identifier: Apache-2.0
 * Checks of the shape of the LR column that need no contract: sign, end, stairs, digits.
 * docs/FORENSICS.md lists them.
 *
 * Invariant: nothing is compared across a resume. */
#include <stdio.h>

#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

/* Returns the end of the stretch from `start` without a resume: updates ascend in one part. */
static size_t stretch_end(const struct series *series, size_t start) {
    size_t i = start + 1;
    while (i < series->count && series->points[i].part == series->points[start].part &&
           series->points[i].update > series->points[i - 1].update)
        i++;
    return i;
}

static enum status negative(struct doctor *doctor) {
    for (size_t i = 0; i < doctor->lr.count; i++) {
        const struct series_point *point = &doctor->lr.points[i];
        if (!(point->value < -0.5 * point->quantum)) continue;
        TRY(doctor_found(doctor, "lr_negative", DOCTOR_CERTAIN, point->row,
                         "The LR is negative: the update climbs the loss."));
        TRY(doctor_evidence_lr(doctor, point));
        return doctor_explain(
            doctor, "the log prints it",
            "A schedule without a clamp ran past its total (OLMo-core WSD does): set "
            "the total to the length of the run.");
    }
    return STATUS_OK;
}

double doctor_lr_is_lost(const struct doctor *doctor) {
    return series_lost(&doctor->lr);
}

enum status doctor_lr_lost(struct doctor *doctor) {
    return doctor_untestable(doctor, "every LR prints as 0 with steps of %.1g: too few digits",
                             doctor_lr_is_lost(doctor));
}

static enum status zero_throughout(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    double coarsest;
    if (!series_prints_as_zero(lr, &coarsest)) return STATUS_OK;
    if (lr->count < 3) return doctor_untestable(doctor, "fewer than 3 LRs");
    if (doctor_lr_is_lost(doctor) > 0.0) return doctor_lr_lost(doctor);
    TRY(doctor_found(doctor, "lr_zero_throughout", DOCTOR_CERTAIN, lr->points[0].row,
                     "The LR is 0 in all %zu rows.", lr->count));
    TRY(doctor_evidence_lr(doctor, &lr->points[0]));
    TRY(doctor_evidence_lr(doctor, &lr->points[lr->count - 1]));
    return doctor_explain(
        doctor, "the log prints it",
        "Check units: a warm-up counted in samples or processes instead of updates "
        "lasts longer than the run.");
}

/* ---- the end ---- */

/* A cosine of a whole cycle, which somebody may mean, is also what a scheduler prints that is
 * stepped twice per update. Where a warm-up comes before it, a doubled counter halves the warm-up,
 * too, and the fit has the bug's name (doctor_fit.c). */
static enum status report_return(struct doctor *doctor, const struct series_point *low,
                                 const struct series_point *back, int falls,
                                 const struct fit *plain) {
    const struct doctor_options *options = doctor->options;
    const int twice = options->processes == 2 || options->accumulate == 2;
    char where[64] = "the end of the run";
    if (falls)
        snprintf(where, sizeof where, "update %llu, from where it falls again",
                 (unsigned long long)back->update);
    TRY(doctor_found(doctor, "cosine_comes_back", twice ? DOCTOR_LIKELY : DOCTOR_POSSIBLE, low->row,
                     "The LR falls to its minimum at update %llu and comes back to its peak at %s.",
                     (unsigned long long)low->update, where));
    TRY(doctor_evidence_lr(doctor, low));
    TRY(doctor_evidence_lr(doctor, back));
    if (plain != NULL) TRY(doctor_evidence(doctor, "the LR column reads as %s", plain->text));
    return doctor_explain(
        doctor,
        twice ? "two scheduler steps per update, as --processes or --accumulate says, do this"
              : "num_cycles=1 does this as well (the usual half wave is 0.5)",
        "See whether the scheduler is stepped by the engine and by the trainer, or was passed "
        "through accelerator.prepare; --processes and --accumulate tell the doctor more.");
}

/* Returns the point from which on the LR never falls up to point end - 1: the last one with the
 * smallest value there. */
static size_t begin_of_rise(const struct series *lr, size_t end) {
    size_t low = end - 1;
    while (low > 0 && lr->points[low - 1].value <= lr->points[low].value)
        low--;
    while (low + 1 < end && lr->points[low + 1].value <= lr->points[low].value)
        low++;
    return low;
}

/* Returns the end of the last rise before point `end`, where the LR has come back to its peak and
 * has hardly left it since: a counter that moves twice per update is past the peak by then where a
 * warm-up made the schedule shorter than half the run. Elsewhere it returns `end`. */
static size_t end_of_return(const struct series *lr, size_t end, double peak) {
    size_t back = end;
    while (back > 1 && lr->points[back - 1].value < lr->points[back - 2].value)
        back--;
    return lr->points[back - 1].value >= 0.9 * peak && lr->points[end - 1].value >= 0.5 * peak
               ? back
               : end;
}

/* Returns the highest of the points before `low`, the first of equal ones. */
static size_t top_before(const struct series *lr, size_t low) {
    size_t top = 0;
    for (size_t i = 1; i < low; i++)
        if (lr->points[i].value > lr->points[top].value) top = i;
    return top;
}

/* Tells whether the explanation of the column has a counter that is 0 again at point `at`. */
static int counter_is_anew(const struct doctor *doctor, const struct series_point *at) {
    const struct fit *fit = doctor->fits->count > 0 ? &doctor->fits->fits[0] : NULL;
    for (size_t i = 1; fit != NULL && i < fit->segment_count; i++) {
        const struct fit_segment *segment = &fit->segments[i];
        const int anew = segment->event == FIT_RESET || segment->event == FIT_RESTARTED;
        if (anew && segment->update == at->update) return 1;
    }
    return 0;
}

/* Returns how far the LR rises per update from a point to the next. */
static double slope_at(const struct series *lr, size_t i) {
    const struct series_point *const points = lr->points;
    return (points[i + 1].value - points[i].value) /
           (double)(points[i + 1].update - points[i].update);
}

/* Share of a slope by which two of one line may differ. Chosen: a cosine's second step behind its
 * minimum is three times its first one. */
#define ONE_LINE 0.02

/* Tells whether the rows `first` .. `last` lie on one line of that slope, as they are printed. */
static int are_on_line(const struct series *lr, size_t first, size_t last, double slope) {
    for (size_t i = first; i < last; i++) {
        const struct series_point *const a = &lr->points[i], *const b = &lr->points[i + 1];
        const double printed = 0.5 * (a->quantum + b->quantum) / (double)(b->update - a->update);
        if (!(real_abs_f64(slope_at(lr, i) - slope) <= ONE_LINE * slope + printed)) return 0;
    }
    return 1;
}

/* Tells whether the rows from `at` on climb the line of the log's own warm-up: other updates of it,
 * where rows stand several updates apart. */
static int climbs_as_at_first(const struct series *lr, size_t at, size_t end) {
    const double slope = slope_at(lr, 0);
    return end - at >= 3 && at > 3 && slope > 0.0 && are_on_line(lr, 0, 2, slope) &&
           are_on_line(lr, at, end - 1, slope);
}

/* Tells whether the rise from point `at` to point end - 1 is that of a schedule that began anew: a
 * counter that is 0 again explains the column, or the LRs are those of the first rows, or climb as
 * they do. Three of them that move are no chance, and no schedule past its end gives them. */
static int begins_anew_at(const struct doctor *doctor, size_t at, size_t end) {
    const struct series *lr = &doctor->lr;
    if (counter_is_anew(doctor, &lr->points[at])) return 1;
    if (end - at >= 3 && series_replayed(lr, at) >= end - at &&
        point_differs(&lr->points[0], &lr->points[end - at - 1]))
        return 1;
    return climbs_as_at_first(lr, at, end);
}

/* Returns the update of the fall from point `top` to point `low` at which the LR was `value`, a
 * fraction between two rows; NaN where it was nowhere. */
static double fell_through(const struct series *lr, size_t top, size_t low, double value) {
    for (size_t i = low; i > top; i--) {
        const struct series_point *const a = &lr->points[i - 1], *const b = &lr->points[i];
        if (!(a->value >= value && value >= b->value) || !(a->value > b->value)) continue;
        const double done = (a->value - value) / (a->value - b->value);
        return (double)a->update + done * (double)(b->update - a->update);
    }
    return real_nan_f64();
}

/* Rows behind the minimum that must show a cosine's way back, and how far one of them must lie from
 * a straight line, as a share of the rise. Chosen: half a wave is a tenth off at most, the
 * beginning of one a quarter. */
#define ROWS_BACK 6
#define BENT 0.05

/* Tells whether the LR comes back on the way that it fell, as a cosine does behind its end: each
 * row lies as far behind one turning point as the LR was that high in front of it, within a row,
 * and the way is no straight line. */
static int returns_as_it_fell(const struct series *lr, size_t top, size_t low, size_t end) {
    const struct series_point *const points = lr->points, *const last = &points[end - 1];
    const double row = (double)(points[low + 1].update - points[low].update);
    const double rise = last->value - points[low].value;
    double first = real_inf_f64(), behind = 0.0, bent = 0.0;
    if (end - low <= ROWS_BACK) return 0;
    for (size_t i = low + 1; i < end; i++) {
        const double update = (double)points[i].update;
        const double turn = 0.5 * (update + fell_through(lr, top, low, points[i].value));
        const double way =
            (update - (double)points[low].update) / (double)(last->update - points[low].update);
        const double off = points[low].value + way * rise - points[i].value;
        if (turn != turn) return 0;
        if (turn < first) first = turn;
        if (turn > behind) behind = turn;
        if (off > bent) bent = off;
    }
    return behind - first <= row && bent > BENT * rise;
}

/* A schedule in its second warm-up is at no end. A restart that lies farther back is found by what
 * explains the column (doctor_fit.c); here too few rows are behind it for that. */
static enum status report_anew(struct doctor *doctor, size_t at, size_t end) {
    const struct series_point *points = doctor->lr.points;
    TRY(doctor_found(doctor, "scheduler_not_restored", DOCTOR_POSSIBLE, points[at].row,
                     "From update %llu on the LR begins anew: its last %zu rows are those of a "
                     "schedule at its start.",
                     (unsigned long long)points[at].update, end - at));
    TRY(doctor_evidence_lr(doctor, &points[at - 1]));
    TRY(doctor_evidence_lr(doctor, &points[at]));
    TRY(doctor_evidence_lr(doctor, &points[end - 1]));
    TRY(doctor_evidence_lr(doctor, &points[0]));
    return doctor_explain(
        doctor,
        "a schedule of several cycles, each with a warm-up of its own, prints the same, and the "
        "log shows no resume",
        "Was the run resumed there? Then save and load the scheduler (or set last_epoch) with the "
        "checkpoint.");
}

/* After falling to its minimum the LR rises smoothly: a schedule past its end. The minimum is
 * sought first, backwards from the end, and then the top before it: the last row may lie above
 * every other one, since rows need not stand at the peak. A restart, which is meant, jumps: by over
 * a quarter of the peak (a cosine's first step behind its end is far smaller). A minimum of over
 * half the peak is a wave and no end, and one in the row behind the top was not reached by a
 * schedule. */
static enum status rises_past_end(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    const double peak = series_largest(lr);
    const size_t last = stretch_end(lr, 0);
    if (last < 6) return doctor_untestable(doctor, "fewer than 6 LRs before a resume");
    const size_t end = end_of_return(lr, last, peak);
    const size_t low = begin_of_rise(lr, end), top = top_before(lr, low);
    if (low < top + 2 || low + 3 > end) return STATUS_OK;
    /* A schedule that began anew is back in its warm-up, and at no end. */
    if (doctor_has(doctor, "scheduler_not_restored") ||
        doctor_has(doctor, "initial_lr_overwritten"))
        return STATUS_OK;
    if (!(lr->points[low].value < 0.5 * lr->points[top].value)) return STATUS_OK;
    for (size_t i = top; i < low; i++)
        if (lr->points[i].value < lr->points[low].value) return STATUS_OK;
    if (!point_differs(&lr->points[low], &lr->points[end - 1]) ||
        lr->points[low + 1].value - lr->points[low].value > 0.25 * peak)
        return STATUS_OK;
    const struct fit *plain = doctor_plain_fit(doctor);
    if (end < last) /* where every explanation is a bug, that has a name (doctor_fit.c) */
        return lr->points[low].value < 0.05 * peak && (plain != NULL || doctor->fits->count == 0)
                   ? report_return(doctor, &lr->points[low], &lr->points[end - 1], 1, plain)
                   : STATUS_OK;
    if (plain != NULL && plain->steps >= lr->points[end - 1].update)
        return lr->points[end - 1].value > 0.9 * peak && lr->points[low].value < 0.05 * peak
                   ? report_return(doctor, &lr->points[low], &lr->points[end - 1], 0, plain)
                   : STATUS_OK;
    for (size_t at = low; at <= low + 1; at++)
        if (begins_anew_at(doctor, at, end)) return report_anew(doctor, at, end);
    /* Where a sound schedule explains the column, that is one behind its end. */
    const int back = plain != NULL || returns_as_it_fell(lr, top, low, end);
    TRY(doctor_found(doctor, "lr_rises_past_end", back ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     lr->points[low].row,
                     "The LR falls to its minimum at update %llu and rises again to the end.",
                     (unsigned long long)lr->points[low].update));
    TRY(doctor_evidence_lr(doctor, &lr->points[low]));
    TRY(doctor_evidence_lr(doctor, &lr->points[end - 1]));
    return doctor_explain(
        doctor,
        back ? "a cosine past its total does this (transformers clamps nothing but negatives); "
               "a cosine that was configured with a whole cycle does, too"
             : "a schedule that begins anew with another warm-up rises as well (a second stage, "
               "restarts, a resume with another total); a cosine past its total comes back on the "
               "way that it fell, which these rows do not show",
        "Compare the update of the minimum with the intended total: if it is 1/N of the "
        "run, the schedule advances N times per update (processes or micro-batches), "
        "else the total is too small.");
}

/* Whether a run of `length` updates may be n schedules long. The first 0 is known to an update or
 * so: the ratio may be off by 1.5 of them, and 0.02. */
static int is_multiple(uint64_t n, uint64_t zero, uint64_t length) {
    const double ratio = (double)length / (double)zero;
    return real_abs_f64(ratio - (double)n) <= ratio * 1.5 / (double)zero + 0.02;
}

/* Which multiple of the schedule the run is: what the user says of processes or micro-batches where
 * that may be, else what divides it evenly, since a loop that logs before it schedules prints the 0
 * of T updates in row T + 1; else the nearest. */
static uint64_t multiple_of(const struct doctor *doctor, uint64_t zero, uint64_t length) {
    const uint64_t told[] = {doctor->options->accumulate, doctor->options->processes};
    for (size_t i = 0; i < COUNT_OF(told); i++)
        if (told[i] >= 2 && is_multiple(told[i], zero, length)) return told[i];
    for (uint64_t total = zero; total > 0 && total + 1 >= zero; total--)
        if (length % total == 0 && is_multiple(length / total, zero, length)) return length / total;
    return (uint64_t)((double)length / (double)zero + 0.5);
}

/* `below`: an LR that is printed as this 0 is less than that; 0: it is one. */
static enum status report_early(struct doctor *doctor, const struct series_point *zero,
                                uint64_t length, double below) {
    const double ratio = (double)length / (double)zero->update;
    const uint64_t a = doctor->options->accumulate, p = doctor->options->processes;
    const uint64_t n = multiple_of(doctor, zero->update, length);
    const int whole = n >= 2 && is_multiple(n, zero->update, length);
    const char *id = !whole             ? "lr_ends_early"
                     : n == p && n != a ? "xP_scheduler"
                     : n == a && n != p ? "per_microbatch_stepping"
                                        : "lr_zero_at_1/N_of_run";
    const unsigned long long update = zero->update, left = length - zero->update + 1;
    if (below > 0.0)
        TRY(doctor_found(
            doctor, id, DOCTOR_POSSIBLE, zero->row,
            "The LR is printed as 0 from update %llu of %llu on, so it is less than %.2g "
            "there: the last %llu updates train nothing, or next to nothing.",
            update, (unsigned long long)length, below, left));
    else
        TRY(doctor_found(doctor, id, whole ? DOCTOR_LIKELY : DOCTOR_POSSIBLE, zero->row,
                         "The LR reaches 0 at update %llu of %llu and stays there: the last %llu "
                         "updates train nothing.",
                         update, (unsigned long long)length, left));
    TRY(doctor_evidence_lr(doctor, zero));
    TRY(doctor_evidence(doctor, "run length / update of the first 0 = %s", word_about(ratio).text));
    return doctor_explain(
        doctor,
        below > 0.0 ? "a decay that goes on below the printed digits looks the same"
        : whole     ? "the run is a whole multiple of the schedule"
                    : "a schedule may be shorter than its run on purpose",
        "If the number of processes or of micro-batches per update is this ratio, the "
        "scheduler is stepped by each of them. Give --processes and --accumulate to "
        "have the cause named.");
}

/* Tells whether the LR drops to the 0 of point `zero` by far more than it fell before: a schedule
 * that runs out comes down to its end, and a counter that jumps does not. */
static int drops_there(const struct series *lr, size_t zero) {
    for (size_t i = zero - 1; i > 0; i--) {
        const double before = lr->points[i - 1].value - lr->points[i].value;
        if (before > 0.0) return lr->points[zero - 1].value > 3.0 * before;
    }
    return 0;
}

/* A quantum of so much of the peak still shows that an LR printed as 0 is small (chosen). */
#define SMALL_OF_PEAK 0.1

/* Returns the first point of the zeros that the LR ends with, or the number of its points. */
static size_t first_zero(const struct series *lr) {
    size_t zero = lr->count;
    while (zero > 0 && lr->points[zero - 1].value <= 0.0 && lr->points[zero - 1].value >= 0.0)
        zero--;
    return zero;
}

static int is_too_coarse(const struct series *lr, size_t zero) {
    return series_coarser(lr->points[zero].quantum, SMALL_OF_PEAK * series_largest(lr));
}

const struct series_point *doctor_runs_out(const struct doctor *doctor) {
    const struct series *const lr = &doctor->lr;
    const size_t zero = first_zero(lr);
    if (lr->count - zero < 2 || zero == 0 || is_too_coarse(lr, zero) || drops_there(lr, zero))
        return NULL;
    /* A 0 in less than the last fifth is how schedules end that were made a little too short
     * (chosen). */
    const struct series_point *const first = &lr->points[zero];
    const uint64_t length = doctor_run_length(doctor);
    return first->update > length || 5 * (length - first->update + 1) < length ? NULL : first;
}

static enum status zero_early(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    const double peak = series_largest(lr);
    const size_t zero = first_zero(lr);
    if (!(peak > 0.0)) return doctor_untestable(doctor, "no LR above 0");
    if (lr->count - zero < 2 || zero == 0) return STATUS_OK;
    if (is_too_coarse(lr, zero))
        return doctor_untestable(doctor, "LR is printed too coarsely to tell 0 from small");
    const struct series_point *const first = doctor_runs_out(doctor);
    if (first == NULL) return STATUS_OK;
    const int is_coarse = series_coarser(first->quantum, 1e-3 * peak);
    return report_early(doctor, first, doctor_run_length(doctor), is_coarse ? first->quantum : 0.0);
}

/* ---- stairs ---- */

struct stairs {
    /* How many whole stairs there are, and the point where the second begins. */
    size_t count, first;
    uint64_t length;  /* updates of a stair; 0: they differ */
    int within_epoch; /* 1: a stair begins where no epoch does */
    int at_evals;     /* 1: every stair begins at an evaluation, and every evaluation begins one */
};

/* Counts the evaluations of the updates first .. last. */
static size_t evals_in(const struct series *eval, uint64_t first, uint64_t last) {
    size_t count = 0;
    for (size_t i = 0; i < eval->count; i++)
        count += eval->points[i].update >= first && eval->points[i].update <= last &&
                 (i == 0 || eval->points[i].update != eval->points[i - 1].update);
    return count;
}

static int epoch_begins(const struct doctor *doctor, const struct series_point *before,
                        const struct series_point *at) {
    const struct series_point *a = series_in_row(&doctor->series[LOG_EPOCH], before->row);
    const struct series_point *b = series_in_row(&doctor->series[LOG_EPOCH], at->row);
    if (a == NULL || b == NULL) return 1;
    const double tick = b->value - a->value; /* an epoch may be printed at its end */
    return (uint64_t)(a->value + 1e-6) != (uint64_t)(b->value + 1e-6) ||
           (uint64_t)(a->value - tick + 1e-6) != (uint64_t)(b->value - tick + 1e-6);
}

static struct stairs find_stairs(const struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    const struct series *eval = &doctor->series[LOG_EVAL_LOSS];
    struct stairs stairs = {.at_evals = 1};
    size_t moves = 0;
    const size_t end = lr->count > 0 ? stretch_end(lr, 0) : 0;
    uint64_t begin = 0;
    int same = 1;
    for (size_t i = 1; i < end; i++) {
        const struct series_point *point = &lr->points[i];
        const double rise = real_abs_f64(point->value - lr->points[i - 1].value);
        if (rise <= 0.0) continue;
        /* Steps of under 4 quanta are made by the digits. */
        if (rise < 4.0 * point->quantum) return (struct stairs){.count = 0};
        /* A row shows the LR that its update used, or the next one. */
        if (evals_in(eval, lr->points[i - 1].update, point->update) != 1) stairs.at_evals = 0;
        moves++;
        if (!epoch_begins(doctor, &lr->points[i - 1], point)) stairs.within_epoch = 1;
        if (begin != 0) {
            const uint64_t length = point->update - begin;
            if (stairs.count++ == 0) stairs.length = length;
            same &= length == stairs.length;
        } else {
            stairs.first = i;
        }
        begin = point->update;
    }
    if (!same) stairs.length = 0;
    if (end == 0 || evals_in(eval, lr->points[0].update, lr->points[end - 1].update) > moves + 1)
        stairs.at_evals = 0; /* one behind the last move may stand at the end of the run */
    return stairs;
}

/* Tells whether every stair is one factor, or a power of it, below the one before, as a schedule
 * makes them that waits for a metric (torch ReduceLROnPlateau) or counts steps (StepLR): such
 * stairs are meant. */
static int falls_by_factor(const struct series *lr) {
    double factor = 0.0; /* of the smallest fall */
    for (size_t i = 1; i < lr->count; i++) {
        const double before = lr->points[i - 1].value, now = lr->points[i].value;
        if (!point_differs(&lr->points[i - 1], &lr->points[i])) continue;
        if (!(now > 0.0 && now < before && real_finite_f64(before))) return 0;
        if (now > factor * before) factor = now / before;
    }
    if (!(factor < 0.999)) return 0; /* such stairs have no height */
    for (size_t i = 1; i < lr->count; i++) {
        const double before = lr->points[i - 1].value, now = lr->points[i].value;
        double share = before;
        if (!point_differs(&lr->points[i - 1], &lr->points[i])) continue;
        while (share > 1.001 * now)
            share *= factor;
        if (real_abs_f64(share - now) > 1e-6 * now + lr->points[i].quantum) return 0;
    }
    return factor > 0.0;
}

static enum status staircase(struct doctor *doctor) {
    const struct stairs stairs = find_stairs(doctor);
    const int epochs = doctor->series[LOG_EPOCH].count > 0;
    if (doctor->lr.count < 8) return doctor_untestable(doctor, "fewer than 8 LRs");
    if (stairs.count < 2 || stairs.length < 2 || falls_by_factor(&doctor->lr)) return STATUS_OK;
    const struct series_point *point = &doctor->lr.points[stairs.first];
    /* Rows must stand closer than a stair: otherwise every row shows another LR and there is
     * nothing to see. */
    if (point[1].update - point->update >= stairs.length) return STATUS_OK;
    const unsigned long long length = stairs.length;
    if (epochs && stairs.within_epoch && stairs.at_evals)
        TRY(doctor_found(doctor, "eval_steps_scheduler", DOCTOR_LIKELY, point->row,
                         "The LR moves at every evaluation, once per %llu updates, and nowhere "
                         "else.",
                         length));
    else if (epochs && stairs.within_epoch)
        TRY(doctor_remark(doctor, "lr_stairs", point->row,
                          "The LR is a staircase: it moves once per %llu updates, and not where an "
                          "epoch begins.",
                          length));
    else
        TRY(doctor_remark(doctor, "scheduler_epoch_default", point->row,
                          "The LR is a staircase: it moves once per %llu updates%s.", length,
                          epochs ? ", once per epoch" : ""));
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, point));
    TRY(doctor_evidence_lr(doctor, point + 1));
    return doctor_explain(
        doctor, "all stairs have one length",
        "Lightning steps a scheduler once per epoch unless interval is 'step'; NeMo-RL "
        "steps once per train() call; some loops step at validation, and some log a row per "
        "micro-batch, where the LR moves once per accumulated update. Is it meant?");
}

/* ---- digits ---- */

/* Neighbouring updates may print the same LR although it moves: then an offset by one cannot show.
 */
static enum status digits(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    size_t same = 0, moved = 0;
    for (size_t i = 1; i < lr->count; i++) {
        if (lr->points[i].quantum <= 0.0) return STATUS_OK;
        if (lr->points[i].value < lr->points[i - 1].value ||
            lr->points[i].value > lr->points[i - 1].value)
            moved++;
        else
            same++;
    }
    if (lr->count < 3) return doctor_untestable(doctor, "fewer than 3 LRs");
    if (doctor_lr_is_lost(doctor) > 0.0) return doctor_lr_lost(doctor);
    if (moved == 0 || same < moved || find_stairs(doctor).count > 0) return STATUS_OK;
    TRY(doctor_remark(doctor, "lr_printed_coarsely", lr->points[0].row,
                      "The LR is printed with too few digits: %zu of %zu neighbouring rows show "
                      "the same LR, so a shift by one update cannot be seen.",
                      same, same + moved));
    TRY(doctor_evidence_lr(doctor, &lr->points[0]));
    return doctor_explain(doctor, "",
                          "TensorBoard files and trainer_state.json hold more digits than the "
                          "console.");
}

/* ---- the beginning goes on to the end ---- */

/* Tells whether the LR rises from 0 by about the same per update in three of four steps, and never
 * falls: a linear warm-up, which skipped updates hold up. A search for the largest usable LR starts
 * above 0. */
static int rises_evenly(const struct series *lr) {
    const struct series_point *points = lr->points;
    const size_t last = lr->count - 1;
    const double pace =
        (points[last].value - points[0].value) / (double)(points[last].update - points[0].update);
    size_t even = 0;
    for (size_t i = 1; i < lr->count; i++) {
        const double updates = (double)(points[i].update - points[i - 1].update);
        const double rise = points[i].value - points[i - 1].value;
        if (rise < 0.0) return 0;
        even += real_abs_f64(rise - pace * updates) <=
                0.02 * pace * updates + points[i].quantum + points[i - 1].quantum;
    }
    const double start = (double)points[0].update - points[0].value / pace;
    return pace > 0.0 && start > -3.0 && start < 30.0 && 4 * even >= 3 * last;
}

static enum status warmup_ends(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    const uint64_t total = doctor->log->max_steps;
    if (total == 0) return doctor_untestable(doctor, "the log does not say how long the run was");
    if (lr->count < 6 || stretch_end(lr, 0) < lr->count)
        return doctor_untestable(doctor, "fewer than 6 LRs, or a resume");
    const struct series_point *last = &lr->points[lr->count - 1];
    if (20 * last->update < 19 * total || !rises_evenly(lr) ||
        !point_differs(last, &lr->points[lr->count - 2]))
        return STATUS_OK;
    /* Behind an earlier row it may have ended. */
    if (100 * last->update < 99 * total)
        TRY(doctor_found(doctor, "warmup_never_ends", DOCTOR_POSSIBLE, last->row,
                         "The LR rises from the first row to the last, at update %llu of %llu: the "
                         "warm-up takes nearly all of the run, or is longer.",
                         (unsigned long long)last->update, (unsigned long long)total));
    else
        TRY(doctor_found(doctor, "warmup_never_ends", DOCTOR_LIKELY, last->row,
                         "The LR rises from the first row to the last: the warm-up is as long as "
                         "the run of %llu updates, or longer.",
                         (unsigned long long)total));
    TRY(doctor_evidence_lr(doctor, &lr->points[0]));
    TRY(doctor_evidence_lr(doctor, last));
    return doctor_explain(doctor,
                          "a linear rise to the very end is no schedule that anybody trains with",
                          "Look at the unit of the warm-up: updates, micro-batches, samples or "
                          "processes, and at a ratio that was taken for a number of steps.");
}

/* ---- peak first (only where nothing sound explains the column) ---- */

static enum status peak_first(struct doctor *doctor) {
    const struct series *lr = &doctor->lr;
    const struct series_point *points = lr->points;
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers");
    if (lr->count < 3 || points[0].update != 1 || points[1].update != 2 || points[2].update != 3)
        return doctor_untestable(doctor, "needs the LRs of updates 1, 2 and 3");
    if (doctor_plain_fit(doctor) != NULL || doctor_has(doctor, "step_then_set")) return STATUS_OK;
    /* DeepSpeed's cosine applies a ten-thousandth of its peak in update 1, and then 0: no large LR.
     */
    if (points[0].value < 0.01 * series_largest(lr)) return STATUS_OK;
    if (!(points[0].value > 2.0 * points[1].value) || !(points[2].value > points[1].value) ||
        !point_differs(&points[1], &points[2]))
        return STATUS_OK;
    TRY(doctor_found(doctor, "step_then_set", DOCTOR_LIKELY, points[0].row,
                     "Update 1 has a large LR, then the warm-up begins: the schedule was not "
                     "installed before the first update."));
    for (size_t i = 0; i < 3; i++)
        TRY(doctor_evidence_lr(doctor, &points[i]));
    return doctor_explain(doctor, "no schedule starts high, falls and warms up",
                          "Initialise the LR with f(0) before the first update.");
}

const struct doctor_check doctor_lr_checks[] = {
    {"lr_negative", "LR is not negative", {LOG_LR_LOGGED}, negative},
    {"lr_zero_throughout", "LR is not 0 in every row", {LOG_LR_LOGGED}, zero_throughout},
    {"lr_rises_past_end", "LR does not rise after its minimum", {LOG_LR_LOGGED}, rises_past_end},
    {"lr_zero_early", "LR does not reach 0 long before the end", {LOG_LR_LOGGED}, zero_early},
    {"warmup_never_ends", "the warm-up ends within the run", {LOG_LR_LOGGED}, warmup_ends},
    {"lr_staircase", "LR moves at every update", {LOG_LR_LOGGED}, staircase},
    {"step_then_set",
     "LR does not start at its peak and then warm up",
     {LOG_LR_LOGGED},
     peak_first},
    {"lr_printed_coarsely", "LR has the digits to show a shift", {LOG_LR_LOGGED}, digits},
    {NULL, NULL, {LOG_OTHER}, NULL}};
