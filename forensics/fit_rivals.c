/* SPDX-License-Identifier: Apache-2.0
 * Rivals of an expectation that a log agrees with: contracts that log the same column with the same
 * numbers and apply another one.
 *
 * Invariant: a pass is given only where every rival was looked at. */
#include "forensics/fit_search.h"

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
        if (fit_is_native(known, fit->contract)) fits[kept++] = *fit;
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

/* Cost by which another explanation must lead (forensics/fit_cost.c). Chosen to be more than the
 * order of the contracts (hundredths) and the rarity of a named schedule (up to 0.2) make up, and
 * less than a floor costs that nobody would type (0.35 for three digits). The healthy logs that the
 * tests draw pass at 0 and without the rule alike, so no measurement narrows it. */
#define MUCH_SIMPLER 0.25

enum status fit_judge_plainer(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_known every = *known;
    struct fit_set set;
    if (out->verdict != FIT_PASS || r->schedule != NULL || r->lr == r->lr) return STATUS_OK;
    every.request.contract = NULL;
    every.plain = 1;
    every.limit = 8;
    TRY(fit_series(series, &every, arena, &set));
    fit_keep_native(known, &set);
    if (set.count == 0) return STATUS_OK;
    const struct fit *best = &set.fits[0];
    if (best->contract == r->contract || fit_applied_apart(best, out->expected, &set) == 0 ||
        best->simplicity + MUCH_SIMPLER > out->expected->simplicity)
        return STATUS_OK;
    char *needs;
    TRY(arena_format(arena, &needs,
                     "--schedule and --lr: %s explains the log more simply and applies other LRs",
                     best->text));
    out->verdict = FIT_UNDECIDED;
    out->why |= FIT_WHY_APPLIED;
    out->rival = best->contract->name;
    out->needs = needs;
    return STATUS_OK;
}
