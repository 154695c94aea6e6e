/* SPDX-License-Identifier: Apache-2.0
 * How simple an explanation is. Costs are added up on one scale: what contradicts a known number
 * costs about 1, what nobody would type a few tenths, what is merely rare a few hundredths. The
 * weights within each class were chosen by hand so that the explanations of the healthy-log
 * generator and of the mutation table (tests/forensics) come out in the order that a reader
 * expects.
 *
 * They order a list for people. Verdicts depend on them in two places only: which fit counts as the
 * best (fit_check.c) and MUCH_SIMPLER (fit_rivals.c). Invariant: a cost depends on the log and the
 * request alone. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_search.h"

static double min_of(double a, double b) {
    return a < b ? a : b;
}

static uint64_t total_known(const struct fit_search *search) {
    return search->known->request.steps > 0 ? search->known->request.steps
                                            : search->known->run_steps;
}

/* A digit costs 0.12 behind the first, so that 5e-7 is free and a peak of nine digits costs 1. A
 * peak that contradicts the known one costs 1.1, a little more than any other contradiction: people
 * know their peak best. */
static double lr_cost(const struct fit_search *search, const struct fit_solution *solution) {
    const double known = search->known->request.lr;
    if (known == known) return fit_near(solution->numbers.lr, known) ? 0.0 : 1.1;
    return min_of(0.12 * (fit_digits(solution->numbers.lr) - 1), 1.0);
}

/* Tells whether a warm-up is a whole percentage of the total, exactly or as the contract rounds it.
 * Rounded shares count up to 10 % and in steps of 5 % only: with every percentage, nearly every
 * whole number of a short run would be one. */
static int is_share(const struct fit_model *model, double warmup, double total) {
    for (int percent = 1; percent <= 50; percent++) {
        const double exact = total * (0.01 * percent);
        const double low = fit_floor(exact), high = fit_ceil(exact);
        if (fit_near(warmup, exact) ||
            (model->contract->warmup_rule != CONTRACT_ROUND_NONE &&
             (warmup == low || warmup == high) && (percent <= 10 || percent % 5 == 0)))
            return 1;
    }
    return 0;
}

/* Returns the share of the total that a warm-up is which is no whole number of updates, where it is
 * one in half permilles; else 0. */
static double share_of(double warmup, double total) {
    const double share = fit_round(2000.0 * warmup / total) / 2000.0;
    return warmup != fit_floor(warmup) && fit_near(warmup, total * share) ? share : 0.0;
}

static double warmup_known(const struct fit_search *search, const struct fit_solution *solution) {
    const struct contract_request *request = &search->known->request;
    if (request->warmup == request->warmup) return request->warmup;
    return request->warmup_ratio * solution->numbers.total;
}

/* A share of the total costs 0.15, less than any warm-up in updates (0.25 for one digit).
 * Where a warm-up stays a fraction, the digits are those of the share. A warm-up that is off by up
 * to one update from the known one costs half of a contradiction, since contracts round it
 * differently. Of a schedule that moves once per epoch a warm-up that ends within one is no
 * share of anything. */
static double warmup_cost(const struct fit_search *search, const struct fit_solution *solution) {
    const struct fit_model *model = &search->models[solution->model];
    const double warmup = solution->numbers.warmup, known = warmup_known(search, solution);
    if (!model->needs_warmup) return 0.0;
    if (known == known) {
        if (fit_near(warmup, known)) return 0.0;
        return real_abs_f64(warmup - known) <= 1.0 ? 0.5 : 1.0;
    }
    if (warmup == 0.0) return 0.0;
    const uint64_t epoch = solution->numbers.epoch;
    const double moves = epoch > 1 ? warmup / (double)epoch : warmup;
    if (epoch > 1 && !fit_near(moves, fit_round(moves)))
        return 0.15 + 0.1 * min_of(fit_digits(warmup), 6);
    const double total = model->needs_total ? solution->numbers.total : (double)total_known(search);
    if (total > 0.0 && is_share(model, warmup, total)) return 0.15;
    const double share = total > 0.0 ? share_of(warmup, total) : 0.0;
    return 0.15 + 0.1 * min_of(fit_digits(share > 0.0 ? share : moves), 6);
}

/* Tells whether the log goes on towards that total behind a resume. */
static int ends_at(const struct fit_found *found, uint64_t total) {
    return total > 0 && found->segments != NULL && found->segment_count > 0 &&
           found->segments[found->segment_count - 1].steps == total;
}

/* A total that contradicts the one that was given costs 1, and one that contradicts the log's own
 * 0.8: the log's may be the run's and not the schedule's. When nothing is known, the end of the log
 * is the likeliest total, then the updates next to it, then numbers by their digits. */
static double total_cost(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_solution *solution = &found->solution;
    const struct fit_model *model = &search->models[solution->model];
    const double total = solution->numbers.total, known = (double)total_known(search);
    if (!model->needs_total || ends_at(found, total_known(search))) return 0.0;
    if (known > 0.0) return total == known ? 0.0 : search->known->request.steps > 0 ? 1.0 : 0.8;
    const double past = total - (double)search->last;
    if (past >= -1.0 && past <= 1.0) return past == 0.0 ? 0.15 : 0.25;
    return 0.25 + 0.1 * min_of(fit_digits(total), 6);
}

/* Decays to 0 or to the schedule's own default are free. A floor that the schedule does not have in
 * its framework costs nearly a contradiction, and an absolute floor a tenth more than a share. */
static double floor_cost(const struct fit_search *search, const struct fit_solution *solution) {
    const struct fit_model *model = &search->models[solution->model];
    const double floor = solution->numbers.floor, known = search->known->request.min_lr_ratio;
    const char *name = model->plan.schedule->name;
    if (model->floor == NULL) return 0.0;
    /* Those that are called after their floor are not used without one. */
    const char *tail = strstr(name, "with_min_lr");
    const int with_floor = tail != NULL && strcmp(tail, "with_min_lr") == 0;
    if ((strcmp(name, "cosine") == 0 || strcmp(name, "linear") == 0) && floor != 0.0)
        return 0.9; /* transformers' own have none */
    if (with_floor && floor == 0.0) return 0.5;
    /* With such a floor nothing falls, so it is a constant under a name that nobody would give it.
     */
    if (floor >= (solution->numbers.absolute ? solution->numbers.lr : 1.0)) return 0.9;
    if (known == known && !solution->numbers.absolute) return fit_near(floor, known) ? 0.0 : 1.0;
    if (floor == 0.0 || floor == model->floor_default) return 0.0;
    return (solution->numbers.absolute ? 0.15 : 0.05) + 0.1 * min_of(fit_digits(floor), 6);
}

/* A counter that moves faster than the updates is a bug, so it costs about 1: less (0.8) where the
 * factor is a number of the request, more (1.2) where it is one that is seldom typed. */
static double stride_cost(const struct fit_search *search, const struct fit_solution *solution) {
    const struct contract_request *request = &search->known->request;
    const double stride = solution->numbers.stride;
    if (stride == 1.0) return 0.0;
    if (stride == (double)request->processes || stride == (double)request->accumulate) return 0.8;
    if (fit_near(stride * (double)request->global_batch, 1.0)) return 0.8;
    return stride == 2.0 || stride == 4.0 || stride == 8.0 ? 1.0 : 1.2;
}

/* How rare a schedule is in practice. The numbers were chosen by hand to order a list; those up to
 * USUAL are tried first. */
#define USUAL 0.1
static double rarity(const struct sched_class *schedule) {
    static const struct {
        const char *name;
        double cost;
    } usual[] = {{"linear", 0.0},
                 {"cosine", 0.01},
                 {"constant", 0.0},
                 {"wsd", 0.15},
                 {"constant_with_warmup", 0.02},
                 {"cosine_with_min_lr", 0.1},
                 {"warmup", 0.05},
                 {"warmup_decay", 0.05},
                 {"warmup_cosine", 0.05},
                 {"inverse_sqrt", 0.2}};
    const char *name = sched_bare_name(schedule);
    for (size_t i = 0; i < COUNT_OF(usual); i++)
        if (strcmp(usual[i].name, name) == 0) return usual[i].cost;
    return 0.35;
}

int fit_is_usual(const struct fit_model *model) {
    return model->parameters[0] == '\0' && rarity(model->plan.schedule) <= USUAL;
}

/* Contracts that we ran ourselves come before those that were only read (a hundredth per step of
 * evidence), a known bug costs BUG, a parameter that is not the default 0.25, one of torch's
 * schedulers 0.2, and in a log of a framework, which would have to be handed it, 0.55: with its
 * rarity more than a few skipped updates under a schedule of its own; 1e-4 per row of the table
 * makes ties impossible. */
#define BUG 0.6
static double contract_cost(const struct fit_search *search, const struct fit_model *model) {
    const int32_t evidence = model->contract->evidence;
    const double doubt = evidence == CONTRACT_RUN ? 0.0 : 0.01 * (double)evidence;
    double cost = doubt + (model->contract->bug ? BUG : 0.0);
    size_t rank = 0;
    const struct sched_class *const *classes = sched_classes();
    while (classes[rank] != NULL && classes[rank] != model->plan.schedule)
        rank++;
    cost += rarity(model->plan.schedule);
    cost += 1e-4 * (double)rank + (model->parameters[0] != '\0' ? 0.25 : 0.0);
    if (strncmp(model->plan.schedule->name, "torch.", 6) == 0)
        cost += search->known->possible != NULL ? 0.55 : 0.2;
    return cost;
}

/* Skipped updates cost nearly a contradiction where nothing but the LRs speaks for them, and next
 * to nothing where the log shows some. Each one costs a hundredth, so fewer are simpler; a part of
 * a resumed log whose counter was not the saved one costs a few of them. */
static double skip_cost(const struct fit_search *search, const struct fit_found *found) {
    uint64_t count = 0;
    for (size_t i = 0; i < found->skip_count; i++)
        count += found->skips[i].count;
    for (size_t p = 0; p < found->part_count; p++) {
        if (found->parts[p].begins == FIT_PART_COUNTS_ANEW) count += 3;
        if (found->parts[p].begins == FIT_PART_OTHER) count += 5 + found->parts[p].lag;
    }
    if (count == 0) return 0.0;
    return (search->known->skips.shown > 0 ? 0.05 : 0.5) + 0.01 * (double)count;
}

/* A break in the log costs 1 in all for the first, 0.5 for each further one, among which are
 * updates that were skipped in front of the first row; next to nothing for these where the log
 * shows skipped updates. A counter that jumps ahead of the updates costs what a contract that is a
 * bug does, as nothing that was skipped or forgotten brings it there. */
static double break_cost(const struct fit_search *search, const struct fit_found *found) {
    double cost = found->segment_count > 1 ? 0.5 + 0.5 * (double)(found->segment_count - 1) : 0.0;
    int ahead = 0;
    for (size_t s = 0; s < found->segment_count; s++)
        ahead |= found->segments[s].event == FIT_JUMP && found->segments[s].shift > 0;
    if (found->segment_count > 0 && found->segments[0].event == FIT_SKIP)
        cost += search->known->skips.shown > 0 ? 0.05 : 0.5;
    return cost + (ahead ? BUG : 0.0);
}

/* What cycles cost of which no row shows a fall: more than the order of schedules that are as rare.
 */
#define UNSEEN_CYCLES 0.05

/* Tells whether the model falls in cycles of which no row behind the first highest one shows a
 * fall: rows that are as far apart as its cycles, or a multiple, stand at their peaks, and print a
 * plateau. */
static int cycles_are_unseen(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_model *const model = &search->models[found->solution.model];
    const struct series *const series = search->series;
    const char *const name = sched_bare_name(model->plan.schedule);
    size_t i = 0;
    int ends = 0;
    if (strcmp(name, "cosine_with_restarts") != 0 &&
        strncmp(model->parameters, "num_cycles=", 11) != 0)
        return 0;
    while (i < series->count &&
           series->points[i].value < search->scale - fit_half(&series->points[i], search->scale))
        i++;
    for (; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        const double half = fit_half(point, search->scale);
        if (point->value > half && point->value < search->scale - half) return 0;
        ends |= point->value <= half;
    }
    return ends;
}

/* A first update apart costs 1, as much as a contradicted number. */
double fit_cost(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_solution *solution = &found->solution;
    double cost = contract_cost(search, &search->models[solution->model]);
    cost += lr_cost(search, solution) + warmup_cost(search, solution);
    cost += total_cost(search, found) + floor_cost(search, solution);
    cost += stride_cost(search, solution) + skip_cost(search, found);
    cost += break_cost(search, found);
    if (found->first_differs) cost += 1.0;
    if (cycles_are_unseen(search, found)) cost += UNSEEN_CYCLES;
    return cost;
}

double fit_cost_beside_skips(const struct fit_search *search, const struct fit_found *found) {
    return fit_cost(search, found) - warmup_cost(search, &found->solution) -
           skip_cost(search, found);
}

int fit_agrees(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_solution *solution = &found->solution;
    const struct contract_request *request = &search->known->request;
    if (solution->numbers.stride != 1.0 || found->segment_count > 1 || found->first_differs)
        return 0;
    if (request->lr == request->lr && !fit_near(solution->numbers.lr, request->lr)) return 0;
    if (search->models[solution->model].contract->bug) return 0;
    const uint64_t total = total_known(search);
    if (total > 0 && search->models[solution->model].needs_total &&
        solution->numbers.total != (double)total)
        return 0;
    return warmup_cost(search, solution) < 1.0;
}
