/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's own schedulers that no framework wraps: SequentialLR of LinearLR and CosineAnnealingLR,
 * ExponentialLR, PolynomialLR or LinearLR, and ExponentialLR or PolynomialLR alone. They are tried
 * where nothing else explains the column.
 *
 * Peak, warm-up and the numbers of the decay are read off rows and taken only where somebody may
 * have typed them; then the recursion of sched/torch_sequential.c, which rounds as torch does, has
 * to give every printed value. Invariant: nothing is added to a list that is not empty. */
#include "forensics/fit_search.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "sched/stages.h"
#include "sched/values.h"

#define NAME "torch.sequential"
#define LEAST_ROWS ((size_t)8)  /* fewer rows leave the numbers open (chosen) */
#define LEAST_DECAY ((size_t)5) /* of these, behind the peak */
/* A column that is printed more coarsely, as a share of its peak, gives no number that is typed. */
#define COARSE 1e-6
/* How far a length that is read off a row may be from a whole one: what the last bit of an LR, far
 * down a cosine, makes of it (chosen). */
#define WHOLE 1e-3

/* A loop that prints the LR of the update at hand, and one that prints the next one: the counter of
 * update 1 is 0 and 1. */
static const char *const loops[] = {"hf", "hf-4.50"};

struct torch_fitter {
    const struct fit_search *search;
    const struct series *series;
    const struct contract *contract;
    size_t ahead;            /* the counter of update 1 */
    size_t top;              /* the point of the peak */
    double odd;              /* what the share costs at which the warm-up begins */
    double lr, warmup;       /* warmup: the counter of the peak */
    char begin[STAGES_TEXT]; /* the stage in front of the decay, with its comma; empty: there is
                                none */
    struct fit fits[COUNT_OF(loops)];
    size_t fit_count;
};

static double counter_of(const struct torch_fitter *f, size_t point) {
    return (double)(f->series->points[point].update - 1 + f->ahead);
}

static double value_of(const struct torch_fitter *f, size_t point) {
    return f->series->points[point].value;
}

/* Returns the number of at most so many digits that x stands for, or NaN. */
static double typed(double x, int digits) {
    return fit_shortest_of(x * (1.0 - 1e-9), x * (1.0 + 1e-9), digits);
}

/* Returns the share of the peak that x stands for, as somebody types one: 0.01, or 1 / 3. */
static double typed_share(double x) {
    const double decimal = typed(x, 3), inverse = fit_round(1.0 / x);
    if (decimal > 0.0) return decimal;
    return fit_near(1.0 / x, inverse) ? 1.0 / inverse : real_nan_f64();
}

/* Returns the whole number that x stands for, or NaN. */
static double whole(double x) {
    const double near = fit_round(x);
    return near >= 1.0 && real_abs_f64(x - near) <= WHOLE ? near : real_nan_f64();
}

/* ---- the peak, and what stands in front of it ---- */

/* Finds the peak. It must be shown as such: the updates beside it have rows, too. */
static int find_peak(struct torch_fitter *f) {
    const struct series *const s = f->series;
    f->top = 0;
    for (size_t i = 1; i < s->count; i++)
        if (s->points[i].value > s->points[f->top].value) f->top = i;
    const struct series_point *const top = &s->points[f->top];
    if (s->count < LEAST_ROWS || f->top + LEAST_DECAY >= s->count) return 0;
    if (top[1].update != top->update + 1) return 0;
    if (f->top == 0 ? counter_of(f, 0) > 0.0 : top[-1].update + 1 != top->update) return 0;
    f->lr = typed(top->value, 4);
    f->warmup = counter_of(f, f->top);
    return f->lr > 0.0;
}

/* Reads the share of the peak at which the warm-up begins off its first row, which lies on a line
 * from there to the peak. */
static int find_begin(struct torch_fitter *f) {
    f->begin[0] = '\0';
    f->odd = 0.0;
    if (f->top == 0) return 1;
    const double way = counter_of(f, 0) / f->warmup;
    const double start = typed_share((value_of(f, 0) / f->lr - way) / (1.0 - way));
    if (!(start > 0.0 && start < 1.0)) return 0;
    /* A line is also that of a longer warm-up from lower, printed one update later; the share of
     * fewer digits is likelier. torch's own is 1 / 3; another 1 / n is as likely as one of two. */
    const int digits = start == 1.0 / 3.0 ? 1 : fit_digits(start) <= 3 ? fit_digits(start) : 2;
    f->odd = 0.05 * (digits - 1);
    const int length =
        snprintf(f->begin, sizeof f->begin, "linear:%.0f:start_factor=%s:total_iters=%.0f,",
                 f->warmup, number_text_f64(start).text, f->warmup);
    return length > 0 && (size_t)length < sizeof f->begin;
}

/* ---- a whole list of stages ---- */

static enum status resolve(const struct torch_fitter *f, const char *stages,
                           struct contract_plan *out) {
    const struct fit_known *const known = f->search->known;
    struct contract_request r = known->request;
    r.contract = f->contract;
    r.schedule = NAME;
    r.lr = f->lr;
    r.warmup = 0.0;
    r.warmup_ratio = r.min_lr_ratio = real_nan_f64();
    r.steps = r.steps > 0 ? r.steps : known->run_steps > 0 ? known->run_steps : f->search->last;
    r.epochs = 0.0;
    r.skipped_count = 0;
    r.value_count = 1;
    r.values[0].key = "stages";
    r.values[0].text = stages;
    r.rescaled = CONTRACT_RESCALED_DEFAULT;
    if (r.updates_per_epoch == 0) r.updates_per_epoch = 1;
    if (r.tokens == 0) r.tokens = 1;
    if (r.processes == 0) r.processes = 1;
    return contract_resolve(&r, f->search->arena, out);
}

static int agrees(const struct torch_fitter *f, const struct contract_plan *plan, double *max_error,
                  double *rms_error) {
    double sum = 0.0;
    *max_error = 0.0;
    for (size_t i = 0; i < f->series->count; i++) {
        const struct series_point *const point = &f->series->points[i];
        double error;
        if (!fit_matches(point, contract_logged(plan, point->update), f->search->scale, &error))
            return 0;
        sum += error * error;
        if (error > *max_error) *max_error = error;
    }
    *rms_error = real_sqrt_f64(sum / (double)f->series->count);
    return 1;
}

/* Stores a fit where the stages in front of the decay and `decay` give every point. */
static enum status try_decay(struct torch_fitter *f, const char *decay, int *out_fits) {
    struct contract_plan plan;
    struct fit_segment *plain;
    double max_error, rms_error;
    char *stages, *parameters;
    TRY(arena_format(f->search->arena, &stages, "%s%s", f->begin, decay));
    if (strlen(stages) >= STAGES_TEXT) return STATUS_OK;
    if (resolve(f, stages, &plan) != STATUS_OK) return STATUS_OK; /* it is no list of torch's */
    if (!agrees(f, &plan, &max_error, &rms_error)) return STATUS_OK;
    TRY(arena_take(f->search->arena, 1, sizeof *plain, "fit", &plain));
    TRY(arena_format(f->search->arena, &parameters, "stages=%s", stages));
    *plain = (struct fit_segment){.update = f->series->points[0].update, .scale = 1.0};
    struct fit *const fit = &f->fits[f->fit_count];
    *fit = (struct fit){.contract = plan.contract,
                        .schedule = plan.schedule,
                        .schedule_name = NAME,
                        .plan = plan,
                        .lr = f->lr,
                        .floor_ratio = real_nan_f64(),
                        .stride = 1.0,
                        .parameters = parameters,
                        .segments = plain,
                        .segment_count = 1,
                        .max_error = max_error,
                        .rms_error = rms_error,
                        .simplicity = 0.3 + f->odd, /* above all that is used more */
                        .same_applied = (uint32_t)f->fit_count,
                        .same_throughout = (uint32_t)f->fit_count};
    f->fit_count++;
    *out_fits = 1;
    return fit_describe(fit, f->search->arena, &fit->text);
}

/* ---- decays ---- */

/* What is left of a decay after `t` of `length` steps, as a share; it grows with the length. */
typedef double (*decay_share)(double t, double length, double power);

static double cosine_share(double t, double length, double power) {
    (void)power;
    return 0.5 * (1.0 + sched_cos(SCHED_PI * t / length));
}

static double power_share(double t, double length, double power) {
    return sched_pow(1.0 - t / length, power);
}

/* Returns the whole length by which so much is left after t steps, or NaN. */
static double length_of(decay_share share, double power, double t, double left) {
    double low = t, high = t * 0x1p20;
    if (!(left > 0.0 && left < share(t, high, power))) return real_nan_f64();
    for (int n = 0; n < 100; n++) {
        const double middle = 0.5 * (low + high);
        if (share(t, middle, power) < left)
            low = middle;
        else
            high = middle;
    }
    return whole(0.5 * (low + high));
}

/* The row that numbers are read from: in the middle of the decay, where each of them moves it. */
static size_t row_of(const struct torch_fitter *f) {
    return f->top + (f->series->count - f->top) / 2;
}

static enum status try_cosine(struct torch_fitter *f, double floor, int *out_fits) {
    char *decay;
    const size_t row = row_of(f);
    const double t = counter_of(f, row) - f->warmup;
    const double left = (value_of(f, row) - floor) / (f->lr - floor);
    const double length = length_of(cosine_share, 1.0, t, left);
    if (*out_fits || !(length >= 1.0)) return STATUS_OK;
    TRY(arena_format(f->search->arena, &decay, "cosine:t_max=%.0f", length));
    if (floor > 0.0)
        TRY(arena_format(f->search->arena, &decay, "%s:min_lr=%s", decay,
                         number_text_f64(floor).text));
    return try_decay(f, decay, out_fits);
}

/* Floors that configurations have: none, shares of the peak, and LRs. */
static enum status try_cosines(struct torch_fitter *f, int *out_fits) {
    static const double shares[] = {0.0, 0.1, 0.01, 0.001, 0.05, 0.2, 0.5, 0.02};
    for (size_t i = 0; i < COUNT_OF(shares); i++)
        TRY(try_cosine(f, typed(shares[i] * f->lr, 4), out_fits));
    double power = 1e-9;
    for (int decade = 0; decade < 6; decade++, power *= 10.0)
        for (int digit = 1; digit < 10; digit++)
            if (digit * power < f->lr) TRY(try_cosine(f, typed(digit * power, 1), out_fits));
    return STATUS_OK;
}

static enum status try_exponential(struct torch_fitter *f, int *out_fits) {
    char *decay;
    const double gamma = typed(value_of(f, f->top + 1) / f->lr, 6);
    if (*out_fits || !(gamma > 0.0 && gamma < 1.0)) return STATUS_OK;
    TRY(arena_format(f->search->arena, &decay, "exponential:gamma=%s",
                     number_text_f64(gamma).text));
    return try_decay(f, decay, out_fits);
}

static enum status try_powers(struct torch_fitter *f, int *out_fits) {
    static const double powers[] = {1.0, 0.9, 0.5, 2.0, 1.5, 3.0, 4.0};
    const size_t row = row_of(f);
    const double t = counter_of(f, row) - f->warmup;
    for (size_t i = 0; i < COUNT_OF(powers) && !*out_fits; i++) {
        char *decay;
        const double length = length_of(power_share, powers[i], t, value_of(f, row) / f->lr);
        if (!(length >= 1.0)) continue;
        TRY(arena_format(f->search->arena, &decay, "polynomial:total_iters=%.0f:power=%s", length,
                         number_text_f64(powers[i]).text));
        TRY(try_decay(f, decay, out_fits));
    }
    return STATUS_OK;
}

/* A line from the peak to a share of it, as LinearLR(1, share). */
static enum status try_lines(struct torch_fitter *f, int *out_fits) {
    static const double ends[] = {0.1, 0.01, 0.05, 0.001, 0.2, 0.5};
    const size_t row = row_of(f);
    const double t = counter_of(f, row) - f->warmup, gone = 1.0 - value_of(f, row) / f->lr;
    for (size_t i = 0; i < COUNT_OF(ends) && !*out_fits && gone > 0.0; i++) {
        char *decay;
        const double length = whole(t * (1.0 - ends[i]) / gone);
        if (!(length >= 1.0)) continue;
        TRY(arena_format(f->search->arena, &decay,
                         "linear:start_factor=1:end_factor=%s:total_iters=%.0f",
                         number_text_f64(ends[i]).text, length));
        TRY(try_decay(f, decay, out_fits));
    }
    return STATUS_OK;
}

static int is_wanted(const struct fit_search *search, const struct fit_set *set) {
    const struct fit_known *const known = search->known;
    const char *const schedule = known->request.schedule;
    if (set->count > 0 || known->plain || known->samples != NULL) return 0;
    if (schedule != NULL && strcmp(schedule, NAME) != 0) return 0;
    for (size_t i = 0; i < search->series->count; i++)
        if (search->series->points[i].quantum > COARSE * search->scale) return 0;
    return known->request.value_count == 0 && known->request.skipped_count == 0;
}

/* Whether the log, and the one who asks, leave the contract open or mean this one. */
static int is_possible(const struct fit_known *known, const struct contract *contract) {
    if (known->request.contract != NULL) return known->request.contract == contract;
    if (known->possible == NULL) return 1;
    for (size_t i = 0; known->possible[i] != NULL; i++)
        if (contract_find(known->possible[i]) == contract) return 1;
    return 0;
}

enum status fit_torch(const struct fit_search *search, struct fit_set *set) {
    struct torch_fitter *f;
    struct fit *list;
    if (!is_wanted(search, set)) return STATUS_OK;
    TRY(arena_take(search->arena, 1, sizeof *f, "fit", &f));
    f->search = search;
    f->series = search->series;
    for (f->ahead = 0; f->ahead < COUNT_OF(loops); f->ahead++) {
        int fits = 0;
        f->contract = contract_find(loops[f->ahead]);
        if (!is_possible(search->known, f->contract) || !find_peak(f) || !find_begin(f)) continue;
        TRY(try_exponential(f, &fits));
        TRY(try_cosines(f, &fits));
        TRY(try_lines(f, &fits));
        TRY(try_powers(f, &fits));
    }
    if (f->fit_count == 0) return STATUS_OK;
    TRY(arena_take(search->arena, f->fit_count, sizeof *list, "fit", &list));
    memcpy(list, f->fits, f->fit_count * sizeof *list);
    if (f->fit_count == 2 && list[1].simplicity < list[0].simplicity) {
        list[0] = f->fits[1];
        list[1] = f->fits[0];
    }
    set->fits = list;
    set->count = f->fit_count;
    set->groups = 1;
    return STATUS_OK;
}
