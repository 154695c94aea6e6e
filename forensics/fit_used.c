/* SPDX-License-Identifier: Apache-2.0
 * Compares update by update. A trainer may hold its LR in f32, so half an f32 ulp of the LR is
 * allowed, and some rounding of the largest one, from which a decay subtracts. */
#include "forensics/fit_used.h"

#include "base/number.h"
#include "base/real.h"

#define SLACK_OF_LR 0x1p-23
#define SLACK_OF_PEAK 0x1p-40

enum status fit_used_open(const struct log *log, struct arena *arena, struct fit_used *out) {
    *out = (struct fit_used){.update = 0};
    return series_of(log, log_column_of(log, LOG_LR_APPLIED), arena, &out->series);
}

/* The last point of the printed column that is not behind the update. */
static size_t point_before(const struct series *printed, uint64_t update) {
    size_t at = 0;
    while (at + 1 < printed->count && printed->points[at + 1].update <= update)
        at++;
    return at;
}

/* Stores the first update at which the fit applies another LR than was recorded, or 0. */
static void hold(const struct fit *fit, const struct series *printed, struct fit_used *used) {
    double peak = 0.0;
    used->update = 0;
    for (size_t i = 0; i < used->series.count; i++)
        if (real_abs_f64(used->series.points[i].value) > peak)
            peak = real_abs_f64(used->series.points[i].value);
    for (size_t i = 0; i < used->series.count; i++) {
        const struct series_point *point = &used->series.points[i];
        const double expected =
            fit_applied(fit, point_before(printed, point->update), point->update);
        const double slack = SLACK_OF_LR * real_abs_f64(expected) + SLACK_OF_PEAK * peak;
        if (real_abs_f64(point->value - expected) <= slack) continue;
        used->update = point->update;
        used->applied = point->value;
        used->expected = expected;
        return;
    }
}

enum status fit_keep_used(struct fit_set *set, struct arena *arena, struct fit_used *used) {
    struct fit *kept;
    size_t count = 0;
    if (used->series.count == 0 || set->count == 0) return STATUS_OK;
    TRY(arena_take(arena, set->count, sizeof *kept, "fits", &kept));
    for (size_t i = 0; i < set->count; i++) {
        hold(&set->fits[i], set->series, used);
        if (used->update == 0) kept[count++] = set->fits[i];
    }
    if (count == 0) {
        hold(&set->fits[0], set->series, used);
        return STATUS_OK;
    }
    used->update = 0;
    used->left_out = set->count - count;
    set->fits = kept;
    set->count = count;
    set->why &= ~(uint32_t)FIT_WHY_APPLIED; /* all that are left apply what was recorded */
    return STATUS_OK;
}

const struct fit *fit_used_by(const struct fit_set *set, struct fit_used *used) {
    for (size_t i = 0; i < set->count; i++) {
        hold(&set->fits[i], set->series, used);
        if (used->update == 0) return &set->fits[i];
    }
    if (set->count > 0) hold(&set->fits[0], set->series, used);
    return NULL;
}

int fit_used_refutes(const struct fit_used *used, const struct fit *fit,
                     const struct series *printed) {
    struct fit_used trial = *used;
    hold(fit, printed, &trial);
    return trial.update != 0;
}

static enum status say_other(struct fit_check *check, struct arena *arena,
                             const struct fit_used *used) {
    struct fit_used trial = *used;
    const struct fit *other = fit_used_by(&check->found, &trial);
    const char *const name = check->expected->contract->name;
    char *text;
    TRY(arena_format(arena, &text,
                     "every printed LR agrees with %s, but update %ju applied %s, where %s applies "
                     "%s%s%s",
                     name, (uintmax_t)used->update, number_text_f64(used->applied).text, name,
                     number_text_f64(used->expected).text, other != NULL ? "; so applies " : "",
                     other != NULL ? other->contract->name : ""));
    check->verdict = FIT_FAIL;
    check->words = text;
    check->bug = other != NULL ? other->bug : NULL;
    check->needs = check->rival = NULL;
    return STATUS_OK;
}

enum status fit_check_used(struct fit_check *check, struct arena *arena, struct fit_used *used) {
    char *text;
    if (used->series.count == 0 || check->expected == NULL || check->bad_points > 0 ||
        check->verdict == FIT_FAIL)
        return STATUS_OK;
    hold(check->expected, check->found.series, used);
    if (used->update != 0) return say_other(check, arena, used);
    if (check->verdict == FIT_UNDECIDED && check->rival == NULL) return STATUS_OK;
    if (used->alone)
        TRY(arena_format(arena, &text, "every applied LR is the one that %s applies (%s)",
                         check->expected->contract->name, check->expected->text));
    else
        TRY(arena_format(
            arena, &text,
            "every printed LR agrees with %s, and so does every one of the %zu that the log "
            "records as applied",
            check->expected->contract->name, used->series.count));
    check->verdict = FIT_PASS;
    check->words = text;
    check->why &= ~(uint32_t)FIT_WHY_APPLIED;
    check->needs = check->rival = NULL;
    return STATUS_OK;
}
