/* SPDX-License-Identifier: Apache-2.0
 * A column of constant levels that fall by one factor: ReduceLROnPlateau, with the metric of the
 * log or without.
 *
 * Without a metric, the plan follows drops at the updates where the column drops, with a patience
 * of 0: it reproduces the column and claims nothing else (fit.parameters says so). Invariant: as
 * everywhere, a fit is evaluated by sched/contract.h and gives every printed value. */
#include "forensics/fit_search.h"

#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_plateau_levels.h"

/* The search tries every patience up to PATIENCE and every cooldown up to COOLDOWN. Patience counts
 * evaluations; torch's default is 10, and 200 was chosen far beyond what a run of some hundred
 * evaluations can show. A cooldown above 5 is left out: nobody was seen to type one. */
#define PATIENCE 200
#define COOLDOWN 5
/* Points that trials may look at, at some 0.3 us each (forensics/fit_search.c): a few seconds at
 * most. */
#define BUDGET 20000000u

/* ---- one plan, many parameters ---- */

struct guess {
    double patience, cooldown, threshold;
    const char *mode, *threshold_mode;
    int backwards; /* 1: the metric improves the other way */
};

static enum status resolve(const struct plateau *p, const struct contract *contract,
                           uint64_t processes, const struct contract_request *metric,
                           struct contract_plan *out) {
    const struct fit_known *known = p->search->known;
    struct contract_request r = known->request;
    r.contract = contract;
    r.schedule = "hf." PLATEAU_NAME;
    r.lr = p->peak;
    r.warmup = 0.0;
    r.warmup_ratio = r.min_lr_ratio = real_nan_f64();
    r.steps = known->request.steps > 0 ? known->request.steps
              : known->run_steps > 0   ? known->run_steps
                                       : p->search->last;
    r.epochs = 0.0;
    r.processes = processes;
    r.skipped_count = 0;
    r.value_count = 0;
    r.rescaled = CONTRACT_RESCALED_DEFAULT;
    if (r.updates_per_epoch == 0) r.updates_per_epoch = 1;
    if (r.tokens == 0) r.tokens = 1;
    r.metric_update = metric->metric_update;
    r.metric_value = metric->metric_value;
    r.metric_count = metric->metric_count;
    return contract_resolve(&r, p->search->arena, out);
}

static enum status set_number(const struct contract_plan *plan, const char *key, double x) {
    void *values = (void *)(uintptr_t)plan->call.values; /* the plan's own, in the arena */
    return sched_values_set(plan->schedule, values, key, number_text_f64(x).text);
}

static enum status set_guess(const struct plateau *p, const struct contract_plan *plan,
                             const struct guess *guess) {
    void *values = (void *)(uintptr_t)plan->call.values;
    TRY(set_number(plan, "factor", p->factor));
    TRY(set_number(plan, "min_lr", p->min_lr));
    TRY(set_number(plan, "patience", guess->patience));
    TRY(set_number(plan, "cooldown", guess->cooldown));
    TRY(set_number(plan, "threshold", guess->threshold));
    TRY(sched_values_set(plan->schedule, values, "mode", guess->mode));
    return sched_values_set(plan->schedule, values, "threshold_mode", guess->threshold_mode);
}

/* Tells whether the plan gives every point. */
static int agrees(struct plateau *p, const struct contract_plan *plan, double *max_error,
                  double *rms_error) {
    double sum = 0.0;
    *max_error = 0.0;
    for (size_t i = 0; i < p->series->count; i++) {
        const struct series_point *point = &p->series->points[i];
        double error;
        if (p->budget == 0) return 0;
        p->budget--;
        if (!fit_matches(point, contract_logged(plan, point->update), p->search->scale, &error))
            return 0;
        sum += error * error;
        *max_error = error > *max_error ? error : *max_error;
    }
    *rms_error = real_sqrt_f64(sum / (double)p->series->count);
    return 1;
}

/* ---- what fits becomes an entry ---- */

/* Returns the updates between two falls, where there are three falls or more and they are as far
 * apart as the rows can show; else 0. */
static uint64_t steps_of(const struct plateau *p) {
    const struct series_point *points = p->series->points;
    if (p->count < 4) return 0;
    const uint64_t first = points[p->levels[1].first].update,
                   last = points[p->levels[p->count - 1].first].update;
    const uint64_t apart = (last - first) / (p->count - 2);
    for (size_t i = 2; i < p->count; i++) {
        const size_t at = p->levels[i].first;
        const uint64_t rows = points[at].update - points[at - 1].update;
        const uint64_t step = points[at].update - points[p->levels[i - 1].first].update;
        if (step + rows <= apart || step >= apart + rows) return 0;
    }
    return apart;
}

static enum status say_parameters(const struct plateau *p, const struct guess *guess,
                                  uint64_t repeat, const char **out) {
    char *text;
    TRY(arena_format(p->search->arena, &text, "factor=%s, patience=%s",
                     number_text_f64(p->factor).text, number_text_f64(guess->patience).text));
    if (guess->cooldown > 0.0)
        TRY(arena_format(p->search->arena, &text, "%s, cooldown=%s", text,
                         number_text_f64(guess->cooldown).text));
    if (guess->threshold != 1e-4)
        TRY(arena_format(p->search->arena, &text, "%s, threshold=%s", text,
                         number_text_f64(guess->threshold).text));
    if (strcmp(guess->threshold_mode, "rel") != 0)
        TRY(arena_format(p->search->arena, &text, "%s, threshold_mode=%s", text,
                         guess->threshold_mode));
    if (strcmp(guess->mode, "min") != 0)
        TRY(arena_format(p->search->arena, &text, "%s, mode=%s", text, guess->mode));
    if (p->min_lr > 0.0)
        TRY(arena_format(p->search->arena, &text, "%s, min_lr=%s", text,
                         number_text_f64(p->min_lr).text));
    if (guess->backwards && steps_of(p) > 0)
        TRY(arena_format(p->search->arena, &text,
                         "%s; a fall every %llu updates, as torch's StepLR, prints the same", text,
                         (unsigned long long)steps_of(p)));
    if (repeat > 1)
        TRY(arena_format(p->search->arena, &text, "%s, each evaluation handed over %llu times",
                         text, (unsigned long long)repeat));
    *out = text;
    return STATUS_OK;
}

static enum status add(struct plateau *p, const struct contract_plan *plan, const char *parameters,
                       double cost, double max_error, double rms_error, const char *bug) {
    struct fit_segment *plain;
    if (p->fit_count == PLATEAU_ROOM) return STATUS_OK;
    struct fit *fit = &p->fits[p->fit_count++];
    TRY(arena_take(p->search->arena, 1, sizeof *plain, "fit", &plain));
    *plain = (struct fit_segment){.update = p->series->points[0].update, .scale = 1.0};
    const int in_family = sched_in_family(plan->schedule, plan->contract->family);
    *fit = (struct fit){.contract = plan->contract,
                        .schedule = plan->schedule,
                        .schedule_name = in_family ? PLATEAU_NAME : "hf." PLATEAU_NAME,
                        .plan = *plan,
                        .lr = plan->call.base_lr,
                        .floor_ratio =
                            p->min_lr > 0.0 ? p->min_lr / plan->call.base_lr : real_nan_f64(),
                        .stride = 1.0,
                        .parameters = parameters,
                        .segments = plain,
                        .segment_count = 1,
                        .max_error = max_error,
                        .rms_error = rms_error,
                        .simplicity = cost,
                        .bug = bug};
    return fit_describe(fit, p->search->arena, &fit->text);
}

/* Copies the plan's values, because the next trial overwrites them. */
static enum status keep_values(const struct plateau *p, struct contract_plan *plan) {
    void *values;
    TRY(arena_take(p->search->arena, plan->schedule->values_size, 1, "fit", &values));
    memcpy(values, plan->call.values, plan->schedule->values_size);
    plan->call.values = values;
    return arena_take(p->search->arena, plan->schedule->state_size, 1, "fit", &plan->call.state);
}

static enum status try_guess(struct plateau *p, struct contract_plan *plan,
                             const struct guess *guess, double cost, int *out_fits) {
    double max_error, rms_error;
    const uint64_t repeat = (uint64_t)plan->call.metric->repeat;
    *out_fits = 0;
    TRY(set_guess(p, plan, guess));
    if (!agrees(p, plan, &max_error, &rms_error)) return STATUS_OK;
    struct contract_plan kept = *plan;
    const char *parameters;
    *out_fits = 1;
    TRY(keep_values(p, &kept));
    TRY(say_parameters(p, guess, repeat, &parameters));
    return add(p, &kept, parameters, cost, max_error, rms_error, repeat > 1 ? "plateau_xP" : NULL);
}

/* ---- with a metric ---- */

static double number_of(const struct plateau *p, const char *key, double standard) {
    const char *text = plateau_given(p, key);
    double x = standard;
    if (text != NULL && number_parse_real(text, NUMBER_HEX, &x) != STATUS_OK) x = standard;
    return x;
}

/* Returns the schedule as it was given, with torch's defaults for the rest
 * (torch/optim/lr_scheduler.py::ReduceLROnPlateau: patience 10, cooldown 0, threshold 1e-4, mode
 * min, threshold_mode rel). */
static struct guess believed(const struct plateau *p) {
    const char *mode = plateau_given(p, "mode"), *kind = plateau_given(p, "threshold_mode");
    return (struct guess){number_of(p, "patience", 10.0),  number_of(p, "cooldown", 0.0),
                          number_of(p, "threshold", 1e-4), mode != NULL ? mode : "min",
                          kind != NULL ? kind : "rel",     0};
}

/* Returns how often the metric set a record: its first value, and each one beyond all before it. */
static size_t records_of(const struct contract_plan *plan, int falling) {
    const struct sched_metric *metric = plan->call.metric;
    double best = falling ? real_inf_f64() : -real_inf_f64();
    size_t count = 0;
    for (size_t i = 0; i < metric->count; i++) {
        const double value = metric->value[i];
        if (falling ? !(value < best) : !(value > best)) continue;
        best = value;
        count++;
    }
    return count;
}

/* Searches for the first guess that fits, with usual numbers first; numbers that were given stay.
 *
 * Every number that is free is one fall that proves nothing: there must be more falls than these. A
 * metric says itself which way is better. Taken the other way round nothing improves, and the LR
 * falls every patience + 1 evaluations, which is a schedule of fixed steps as likely: that is tried
 * up to torch's own patience only, and said. */
#define BACKWARDS 10
static enum status search_guess(struct plateau *p, struct contract_plan *plan, double cost,
                                int *out_fits) {
    static const char *const modes[] = {"min", "max"};
    static const char *const kinds[] = {"rel", "abs"};
    static const double thresholds[] = {1e-4, 0.0, 1e-3, 1e-2};
    const struct guess start = believed(p);
    const int free_patience = !plateau_is_fixed(p, "patience");
    const size_t falling = records_of(plan, 1), rising = records_of(plan, 0);
    const size_t falls = p->count - 1;
    for (size_t n = 0; n < 2 * 2 * 4 * (COOLDOWN + 1); n++) {
        const size_t mode = n / (2 * 4 * (COOLDOWN + 1)), kind = n / (4 * (COOLDOWN + 1)) % 2;
        const size_t threshold = n / (COOLDOWN + 1) % 4, cooldown = n % (COOLDOWN + 1);
        if ((mode > 0 && plateau_is_fixed(p, "mode")) ||
            (kind > 0 && plateau_is_fixed(p, "threshold_mode")) ||
            (threshold > 0 && plateau_is_fixed(p, "threshold")) ||
            (cooldown > 0 && plateau_is_fixed(p, "cooldown")))
            continue;
        struct guess guess = start;
        if (!plateau_is_fixed(p, "mode")) guess.mode = modes[mode];
        if (!plateau_is_fixed(p, "threshold_mode")) guess.threshold_mode = kinds[kind];
        if (!plateau_is_fixed(p, "threshold")) guess.threshold = thresholds[threshold];
        if (!plateau_is_fixed(p, "cooldown")) guess.cooldown = (double)cooldown;
        /* a setting other than torch's default is rare, which costs hundredths (fit_cost.c) */
        const size_t rare = mode + kind + (threshold > 0) + (cooldown > 0);
        const double odd = 0.05 * (double)rare;
        if (rare > 0 && rare + (size_t)(plateau_given(p, "patience") == NULL) >= falls) continue;
        guess.backwards = plateau_given(p, "mode") == NULL &&
                          (strcmp(guess.mode, "max") == 0 ? rising < falling : falling < rising);
        for (size_t k = 0; k <= PATIENCE; k++) {
            if (free_patience) guess.patience = (double)k;
            if (k > 0 && (!free_patience || k > plan->call.metric->count)) break;
            if (guess.backwards && k > BACKWARDS) break;
            TRY(try_guess(p, plan, &guess, cost + odd, out_fits));
            if (*out_fits || p->budget == 0) return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static enum status try_processes(struct plateau *p, const char *name, uint64_t processes,
                                 double cost, int *out_fits) {
    struct contract_plan plan;
    struct guess start = believed(p);
    TRY(resolve(p, contract_find(name), processes, &p->search->known->request, &plan));
    TRY(try_guess(p, &plan, &start, cost, out_fits));
    /* a single drop is explained by some patience always, so it must be given */
    if (*out_fits || (p->count < 3 && plateau_given(p, "patience") == NULL)) return STATUS_OK;
    /* found by search, not given and not torch's defaults: the least of the rare settings */
    return search_guess(p, &plan, cost + 0.05, out_fits);
}

static int takes_metric(const struct contract *contract) {
    return contract->offset == 0 && contract->start == CONTRACT_START_F0;
}

/* Returns the contract that was asked for, one of the log's own framework, or Hugging Face's. */
static const struct contract *plain_contract(const struct plateau *p) {
    const struct fit_known *known = p->search->known;
    if (known->request.contract != NULL) return known->request.contract;
    for (size_t i = 0; known->possible != NULL && known->possible[i] != NULL; i++) {
        const struct contract *own = contract_find(known->possible[i]);
        if (takes_metric(own) && own->unit == CONTRACT_UNIT_UPDATE) return own;
    }
    return contract_find("hf");
}

static enum status with_metric(struct plateau *p, int *out_fits) {
    static const uint64_t usual[] = {2, 4, 8, 3, 16};
    const struct fit_known *known = p->search->known;
    /* Two falls or more at the metric's stalls leave little to chance: a plateau then costs what a
     * rare schedule does (0.2, as inverse_sqrt). A single fall is met by some patience nearly
     * always, so it costs as much as a contract that is a known bug (0.6, fit_cost.c) and stands
     * behind every sound fit. Either order a list only: set to 0.6 and 0.2, no test changes. */
    const double cost = p->count > 2 ? 0.2 : 0.6;
    const struct contract *only = known->request.contract;
    const char *wrapped = only != NULL ? only->name : "accelerate";
    const uint64_t processes = known->request.processes;
    const int was_given = plateau_given(p, "patience") != NULL;
    int wraps = 0;
    TRY(try_processes(p, plain_contract(p)->name, 1, cost, out_fits));
    if (only != NULL && only->unit != CONTRACT_UNIT_PROCESS) return STATUS_OK;
    if (processes > 1) TRY(try_processes(p, wrapped, processes, cost, &wraps));
    *out_fits |= wraps;
    for (size_t i = 0; i < COUNT_OF(usual) && processes == 0 && was_given; i++) {
        if (*out_fits) return STATUS_OK;
        /* a number of processes that nobody gave costs a tenth, more than any odd setting */
        TRY(try_processes(p, wrapped, usual[i], cost + 0.1, out_fits));
    }
    return STATUS_OK;
}

/* ---- without ---- */

/* Makes a metric that stalls at each drop and is seen right before it. */
static enum status drops_of(const struct plateau *p, struct contract_request *out) {
    uint64_t *updates;
    double *values;
    TRY(arena_take(p->search->arena, p->count, sizeof *updates, "fit", &updates));
    TRY(arena_take(p->search->arena, p->count, sizeof *values, "fit", &values));
    updates[0] = 1;
    values[0] = 1.0;
    for (size_t i = 1; i < p->count; i++) {
        const uint64_t at = p->series->points[p->levels[i].first].update;
        updates[i] = at > 1 ? at - 1 : 1;
        values[i] = 2.0;
    }
    out->metric_update = updates;
    out->metric_value = values;
    out->metric_count = p->count;
    return STATUS_OK;
}

static enum status say_drops(const struct plateau *p, const char **out) {
    const struct series_point *points = p->series->points;
    char *text;
    TRY(arena_format(p->search->arena, &text, "factor=%s; lower at update",
                     number_text_f64(p->factor).text));
    for (size_t i = 1; i < p->count && i < 9; i++)
        TRY(arena_format(p->search->arena, &text, "%s %llu%s", text,
                         (unsigned long long)points[p->levels[i].first].update,
                         i + 1 == p->count ? ""
                         : i == 8          ? " ..."
                                           : ","));
    const uint64_t apart = steps_of(p);
    if (apart > 0)
        TRY(arena_format(p->search->arena, &text, "%s, every %llu as torch's StepLR", text,
                         (unsigned long long)apart));
    TRY(arena_format(p->search->arena, &text, "%s; %s", text,
                     p->search->known->request.metric_count > 0
                         ? "the log's metric does not explain when, so patience is not known"
                         : "the log has no metric, so patience cannot be told"));
    *out = text;
    return STATUS_OK;
}

static enum status without_metric(struct plateau *p) {
    const struct guess at_once = {0.0, 0.0, 1e-4, "min", "rel", 0};
    struct contract_request drops;
    struct contract_plan plan;
    double max_error, rms_error;
    const char *parameters;
    TRY(drops_of(p, &drops));
    TRY(resolve(p, plain_contract(p), 1, &drops, &plan));
    TRY(set_guess(p, &plan, &at_once));
    if (!agrees(p, &plan, &max_error, &rms_error)) return STATUS_OK;
    TRY(say_drops(p, &parameters));
    /* Drops taken as they are explain any falling staircase: the cost lies above that of every fit
     * that explains when they fall, and for a single drop at that of a contradicted number (1). */
    const size_t before = p->fit_count;
    TRY(add(p, &plan, parameters, p->count > 2 ? 0.7 : 1.0, max_error, rms_error, NULL));
    for (size_t i = before; i < p->fit_count; i++)
        p->fits[i].drops_taken = 1;
    return STATUS_OK;
}

/* ---- into the list ---- */

static int alike(const struct plateau *p, const struct fit *a, const struct fit *b,
                 double (*column)(const struct fit *fit, size_t point, uint64_t update)) {
    for (size_t i = 0; i < p->series->count; i++) {
        const uint64_t k = p->series->points[i].update;
        if (real_abs_f64(column(a, i, k) - column(b, i, k)) > 0x1p-46 * p->search->scale) return 0;
    }
    return 1;
}

static void group(const struct plateau *p, struct fit_set *set, const struct fit *list,
                  struct fit *fit) {
    uint32_t applied = 0, throughout = 0;
    size_t like = set->count;
    for (size_t i = 0; i < set->count; i++) {
        if (list[i].same_applied >= applied) applied = list[i].same_applied + 1;
        if (list[i].same_throughout >= throughout) throughout = list[i].same_throughout + 1;
        if (like == set->count && alike(p, &list[i], fit, fit_logged)) like = i;
    }
    fit->same_logged = like < set->count ? list[like].same_logged : set->groups++;
    fit->same_applied = applied;
    fit->same_throughout = throughout; /* it moves when its metric says, and so between the rows */
    for (size_t i = like; i < set->count; i++)
        if (list[i].same_logged == fit->same_logged && alike(p, &list[i], fit, fit_applied))
            fit->same_applied = list[i].same_applied;
}

static enum status insert(struct plateau *p, struct fit_set *set) {
    struct fit *list;
    TRY(arena_take(p->search->arena, set->count + p->fit_count, sizeof *list, "fit", &list));
    if (set->count > 0) memcpy(list, set->fits, set->count * sizeof *list);
    for (size_t n = 0; n < p->fit_count; n++) {
        size_t at = 0;
        group(p, set, list, &p->fits[n]);
        while (at < set->count && list[at].simplicity <= p->fits[n].simplicity)
            at++;
        memmove(&list[at + 1], &list[at], (set->count - at) * sizeof *list);
        list[at] = p->fits[n];
        set->count++;
    }
    set->fits = list;
    return STATUS_OK;
}

static int wanted(const struct fit_known *known) {
    const struct contract *only = known->request.contract;
    const char *schedule = known->request.schedule;
    if (schedule != NULL && strstr(schedule, PLATEAU_NAME) == NULL) return 0;
    return only == NULL || takes_metric(only);
}

enum status fit_plateau(const struct fit_search *search, struct fit_set *set) {
    struct plateau *p;
    int fits = 0;
    if (!wanted(search->known)) return STATUS_OK;
    TRY(arena_take(search->arena, 1, sizeof *p, "fit", &p));
    p->search = search;
    p->series = search->series;
    p->budget = BUDGET;
    if (!plateau_find(p)) return STATUS_OK;
    if (search->known->request.metric_count > 0) TRY(with_metric(p, &fits));
    /* 0.6 is the cost of a known bug: below it something sound explains the column already. */
    if (!fits && (set->count == 0 || set->fits[0].simplicity >= 0.6)) TRY(without_metric(p));
    return p->fit_count > 0 ? insert(p, set) : STATUS_OK;
}
