/* SPDX-License-Identifier: Apache-2.0
 * The curves of an experiment: losses, distances and learning rates, with the floor where it was
 * measured.
 *
 * The floor of the parameter distance was measured between the ends of runs, so its band has one
 * height; that of the loss follows from the losses of repeats at every update. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "report/page.h"

#define GROUPS_DRAWN 4

/* What the drawings share. */
struct curves {
    struct page *page;
    double *x[2]; /* the numbers of each arm's updates */
    uint64_t updates[2];
    uint64_t both; /* how many updates both arms finished */
};

static double *rows(const struct curves *curves, uint64_t count, enum status *status) {
    double *out = NULL;
    if (*status == STATUS_OK)
        *status = arena_take(curves->page->arena, count, sizeof *out, "curves", &out);
    return out;
}

#define NO_GROUP UINT32_MAX

/* Adds a line of each arm: column `which` of a parameter group or, with NO_GROUP, of enum
 * record_real. An arm without this group has no values. */
static enum status add_arms(const struct curves *curves, uint32_t group, int which,
                            struct chart *chart) {
    for (int arm = 0; arm < 2; arm++) {
        const struct trace_run *run = curves->page->run[arm];
        enum status status = STATUS_OK;
        double *y = rows(curves, curves->updates[arm], &status);
        TRY(status);
        for (uint64_t i = 0; i < curves->updates[arm]; i++)
            y[i] = group == NO_GROUP                ? trace_row(run, i)->reals[which]
                   : group < run->plan.shape.groups ? trace_row(run, i)->groups[group][which]
                                                    : (double)NAN;
        chart->series[chart->series_count++] = (struct series){
            curves->page->judgement.arms[arm], arm == 0 ? STYLE_FIRST : STYLE_SECOND,
            curves->x[arm], y, curves->updates[arm]};
    }
    return STATUS_OK;
}

/* ---- repeats ---- */

/* Whether a run has an arm's own configuration, so that it differs from the arm by noise alone. The
 * arm itself is one of them. */
static int is_repeat(const struct curves *curves, const struct trace_run *run, int arm) {
    const struct judgement *judgement = &curves->page->judgement;
    return strcmp(run->plan.arm, judgement->arms[arm]) == 0 && run->plan.mask == 0 &&
           (judgement->floor == FLOOR_PERMUTATION || judgement->floor == FLOOR_RANK);
}

static uint32_t repeats_of(const struct curves *curves, int arm) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < curves->page->image->run_count; r++)
        count += is_repeat(curves, &curves->page->image->runs[r], arm) ? 1u : 0u;
    return count;
}

/* The band from the least to the largest loss of an arm's runs at each update. */
static enum status loss_band(const struct curves *curves, int arm, struct band *out) {
    const struct trace_image *image = curves->page->image;
    enum status status = STATUS_OK;
    double *low = rows(curves, curves->updates[arm], &status);
    double *high = rows(curves, curves->updates[arm], &status);
    char *name;
    TRY(status);
    for (uint64_t i = 0; i < curves->updates[arm]; i++) {
        low[i] = high[i] = (double)NAN;
        for (uint32_t r = 0; r < image->run_count; r++) {
            if (!is_repeat(curves, &image->runs[r], arm) || i >= image->runs[r].updates) continue;
            const double loss = trace_row(&image->runs[r], i)->reals[REAL_LOSS];
            if (!(loss >= low[i])) low[i] = loss;
            if (!(loss <= high[i])) high[i] = loss;
        }
    }
    TRY(arena_format(curves->page->arena, &name, "%s, %u runs: least to largest",
                     curves->page->judgement.arms[arm], repeats_of(curves, arm)));
    *out = (struct band){name,           arm == 0 ? STYLE_FIRST : STYLE_SECOND,
                         curves->x[arm], low,
                         high,           curves->updates[arm]};
    return STATUS_OK;
}

static enum status draw_losses(const struct curves *curves) {
    struct chart chart = {.title = "Loss", .about = "Of each update, its divisor applied, in nat."};
    TRY(add_arms(curves, NO_GROUP, REAL_LOSS, &chart));
    for (int arm = 0; arm < 2; arm++)
        if (repeats_of(curves, arm) > 1)
            TRY(loss_band(curves, arm, &chart.bands[chart.band_count++]));
    page_chart(curves->page, &chart);
    return STATUS_OK;
}

static enum status draw_norms(const struct curves *curves) {
    struct chart chart = {.title = "Gradient norm",
                          .about = "Of all gradients of each update, before clipping.",
                          .from_zero = 1};
    TRY(add_arms(curves, NO_GROUP, REAL_GRAD_NORM, &chart));
    page_chart(curves->page, &chart);
    return STATUS_OK;
}

/* ---- distances ---- */

static void widen_by(double gap, double *low, double *high) {
    if (!(gap >= *low)) *low = gap;
    if (!(gap <= *high)) *high = gap;
}

/* The least and the largest distance between two runs of one arm, at their ends. */
static void end_floor(const struct curves *curves, double *low, double *high) {
    const struct judgement *judgement = &curves->page->judgement;
    const struct trace_array *matrix = trace_array_of(curves->page->image, "floor/distance");
    const uint64_t first = judgement->floor_runs[0], m = first + judgement->floor_runs[1];
    *low = *high = (double)NAN;
    if (matrix == NULL || matrix->plan.rank != 2 || matrix->plan.shape[0] != m ||
        matrix->plan.shape[1] != m)
        return;
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = i + 1; j < m; j++)
            if ((i < first) == (j < first)) widen_by(matrix->values[i * m + j], low, high);
}

static enum status end_band(const struct curves *curves, const struct series *series,
                            struct chart *chart) {
    enum status status = STATUS_OK;
    double least, most;
    end_floor(curves, &least, &most);
    if (isnan(most) || series->count == 0) return STATUS_OK;
    double *low = rows(curves, series->count, &status),
           *high = rows(curves, series->count, &status);
    TRY(status);
    for (uint64_t i = 0; i < series->count; i++) {
        low[i] = least;
        high[i] = most;
    }
    chart->bands[chart->band_count++] =
        (struct band){"floor: runs of one arm from each other, measured at their ends",
                      STYLE_NOISE,
                      series->x,
                      low,
                      high,
                      series->count};
    return STATUS_OK;
}

static void set_lane(const struct curves *curves, struct chart *chart) {
    const struct judgement *judgement = &curves->page->judgement;
    chart->logarithmic = 1;
    if (judgement->floor == FLOOR_EXACT && judgement->floor_equal[0] == 1 &&
        judgement->floor_equal[1] != 0)
        chart->zero_floor = "floor: exact. Repeats are bit-equal; only 0 lies inside it";
}

static enum status add_distance(const struct curves *curves, const struct trace_pair *pair,
                                const char *name, enum chart_style style, struct chart *chart) {
    enum status status = STATUS_OK;
    const uint64_t count = pair == NULL ? 0 : pair->updates;
    double *x = rows(curves, count, &status), *y = rows(curves, count, &status);
    TRY(status);
    for (uint64_t i = 0; i < count; i++) {
        x[i] = (double)trace_pair_row(pair, i)->step;
        y[i] = trace_pair_row(pair, i)->reals[PAIR_DISTANCE];
    }
    chart->series[chart->series_count++] = (struct series){name, style, x, y, count};
    return STATUS_OK;
}

#define PERTURBED_NAME "|A-twin|: one weight of A one unit in the last place off"

/* The law of a growth as a sentence, with a blank before it: " |A-B| grows like k^0.5 [0.4, 0.6]
 * over updates 1 to 9." */
static enum status put_law(const struct curves *curves, const char *what,
                           const struct judged_growth *growth, char **out) {
    char *law;
    TRY(judgement_law(&growth->fit, curves->page->arena, &law));
    return arena_format(curves->page->arena, out, " %s %s%s over updates %ju to %ju.", what, law,
                        growth->fit.law == GROWTH_UNDECIDED ? "," : "", (uintmax_t)growth->from,
                        (uintmax_t)growth->to);
}

static enum status about_distance(const struct curves *curves, struct chart *chart) {
    const struct judgement *judgement = &curves->page->judgement;
    char *arms = NULL, *perturbed = NULL, *about;
    if (judgement->growth.known && judgement->growth.end > 0.0)
        TRY(put_law(curves, "|A-B|", &judgement->growth, &arms));
    if (judgement->has_perturbed && judgement->perturbed.known)
        TRY(put_law(curves, "|A-twin|", &judgement->perturbed, &perturbed));
    TRY(arena_format(curves->page->arena, &about, "%s%s%s%s%s",
                     judgement->masters
                         ? "Norm of the difference of all parameters after each update: of the "
                           "copies that the models compute with, not of the masters, which shares "
                           "are of."
                         : "Norm of the difference of all parameters after each update.",
                     arms == NULL ? "" : arms, perturbed == NULL ? "" : perturbed,
                     arms == NULL && perturbed == NULL ? "" : " Intervals at 95 %, nominal.",
                     judgement->saturated
                         ? " Saturated: rounding alone takes the arms this far apart by the end."
                         : ""));
    chart->about = about;
    return STATUS_OK;
}

static enum status draw_distance(const struct curves *curves) {
    struct chart chart = {.title = "Distance of the parameters, |A-B|"};
    const char *const *arms = curves->page->judgement.arms;
    const struct trace_pair *perturbed = judge_pair(curves->page->image, arms[0], "twin");
    TRY(add_distance(curves, judge_pair(curves->page->image, arms[0], arms[1]), "|A-B|",
                     STYLE_NOISE, &chart));
    set_lane(curves, &chart);
    TRY(end_band(curves, &chart.series[0], &chart));
    if (perturbed != NULL && perturbed->updates > 0)
        TRY(add_distance(curves, perturbed, PERTURBED_NAME, STYLE_PERTURBED, &chart));
    TRY(about_distance(curves, &chart));
    page_chart(curves->page, &chart);
    return STATUS_OK;
}

/* The least and the largest difference of the losses of two runs of one arm, at update i. */
static void loss_gaps(const struct curves *curves, uint64_t i, double *low, double *high) {
    const struct trace_image *image = curves->page->image;
    *low = *high = (double)NAN;
    for (int arm = 0; arm < 2; arm++)
        for (uint32_t r = 0; r < image->run_count; r++)
            for (uint32_t s = r + 1; s < image->run_count; s++) {
                const struct trace_run *a = &image->runs[r], *b = &image->runs[s];
                if (!is_repeat(curves, a, arm) || !is_repeat(curves, b, arm)) continue;
                if (i >= a->updates || i >= b->updates) continue;
                widen_by(real_abs_f64(trace_row(a, i)->reals[REAL_LOSS] -
                                      trace_row(b, i)->reals[REAL_LOSS]),
                         low, high);
            }
}

static enum status gap_band(const struct curves *curves, struct chart *chart) {
    enum status status = STATUS_OK;
    if (repeats_of(curves, 0) < 2 && repeats_of(curves, 1) < 2) return STATUS_OK;
    double *low = rows(curves, curves->both, &status), *high = rows(curves, curves->both, &status);
    TRY(status);
    for (uint64_t i = 0; i < curves->both; i++)
        loss_gaps(curves, i, &low[i], &high[i]);
    chart->bands[chart->band_count++] =
        (struct band){"floor: runs of one arm from each other, at each update",
                      STYLE_NOISE,
                      curves->x[0],
                      low,
                      high,
                      curves->both};
    return STATUS_OK;
}

static enum status draw_loss_gap(const struct curves *curves) {
    struct chart chart = {.title = "Distance of the losses, |A-B|",
                          .about = "Absolute difference of the two losses of each update."};
    enum status status = STATUS_OK;
    double *y = rows(curves, curves->both, &status);
    TRY(status);
    for (uint64_t i = 0; i < curves->both; i++)
        y[i] = real_abs_f64(trace_row(curves->page->run[0], i)->reals[REAL_LOSS] -
                            trace_row(curves->page->run[1], i)->reals[REAL_LOSS]);
    chart.series[chart.series_count++] =
        (struct series){"|A-B| of the loss", STYLE_NOISE, curves->x[0], y, curves->both};
    set_lane(curves, &chart);
    TRY(gap_band(curves, &chart));
    page_chart(curves->page, &chart);
    return STATUS_OK;
}

/* ---- learning rates ---- */

static enum status draw_lr(const struct curves *curves, uint32_t group, enum record_group which,
                           const char *title, const char *about) {
    struct chart chart = {.title = title, .about = about, .steps = 1, .from_zero = 1};
    char *named;
    if (group > 0) {
        TRY(arena_format(curves->page->arena, &named, "%s, parameter group %u", title, group));
        chart.title = named;
    }
    TRY(add_arms(curves, group, (int)which, &chart));
    page_chart(curves->page, &chart);
    return STATUS_OK;
}

static int same_real(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Whether a parameter group has the learning rates of the first one, in both arms. */
static int is_like_first(const struct curves *curves, uint32_t group) {
    for (int arm = 0; arm < 2; arm++) {
        const struct trace_run *run = curves->page->run[arm];
        for (uint64_t i = 0; i < run->updates && group < run->plan.shape.groups; i++) {
            const double(*row)[RECORD_GROUPS] =
                (const double(*)[RECORD_GROUPS])trace_row(run, i)->groups;
            if (!same_real(row[0][GROUP_LR_APPLIED], row[group][GROUP_LR_APPLIED]) ||
                !same_real(row[0][GROUP_LR_LOGGED], row[group][GROUP_LR_LOGGED]))
                return 0;
        }
    }
    return 1;
}

static uint32_t groups_of(const struct curves *curves) {
    const uint32_t a = curves->page->run[0]->plan.shape.groups;
    const uint32_t b = curves->page->run[1]->plan.shape.groups;
    return a > b ? a : b;
}

/* Whether the learning rates of a parameter group differ between the arms. */
static int arms_part(const struct curves *curves, uint32_t group) {
    const struct trace_run *const *run = curves->page->run;
    if (group >= run[0]->plan.shape.groups || group >= run[1]->plan.shape.groups) return 1;
    for (uint64_t i = 0; i < curves->both; i++) {
        double first[RECORD_GROUPS];
        memcpy(first, trace_row(run[0], i)->groups[group], sizeof first);
        const double *second = trace_row(run[1], i)->groups[group];
        if (!same_real(first[GROUP_LR_APPLIED], second[GROUP_LR_APPLIED]) ||
            !same_real(first[GROUP_LR_LOGGED], second[GROUP_LR_LOGGED]))
            return 1;
    }
    return 0;
}

/* What is drawn first, where more groups than GROUPS_DRAWN have learning rates of their own. */
enum urgency { URGENCY_TOLD, URGENCY_APART, URGENCY_OTHER, URGENCIES, URGENCY_NONE = URGENCIES };

static enum urgency urgency_of(const struct curves *curves, uint32_t group) {
    if (group > 0 && is_like_first(curves, group)) return URGENCY_NONE;
    if (group == judgement_lr_group(&curves->page->judgement)) return URGENCY_TOLD;
    return arms_part(curves, group) ? URGENCY_APART : URGENCY_OTHER;
}

/* Draws the groups that are chosen in the order of their numbers. */
static enum status draw_rates(const struct curves *curves) {
    const uint32_t groups = groups_of(curves);
    uint8_t *urgency, *chosen;
    uint32_t left = GROUPS_DRAWN;
    TRY(arena_take(curves->page->arena, groups, sizeof *urgency, "curves", &urgency));
    TRY(arena_take(curves->page->arena, groups, sizeof *chosen, "curves", &chosen));
    for (uint32_t group = 0; group < groups; group++)
        urgency[group] = (uint8_t)urgency_of(curves, group);
    for (int now = 0; now < URGENCIES; now++)
        for (uint32_t group = 0; group < groups && left > 0; group++) {
            chosen[group] |= urgency[group] == now;
            left -= urgency[group] == now ? 1u : 0u;
        }
    for (uint32_t group = 0; group < groups; group++) {
        if (!chosen[group]) continue;
        TRY(draw_lr(curves, group, GROUP_LR_APPLIED, "Learning rate applied",
                    "What the optimizer used at each update."));
        TRY(draw_lr(curves, group, GROUP_LR_LOGGED, "Learning rate logged",
                    "What each framework would have printed for the same updates."));
    }
    return STATUS_OK;
}

static void note_groups(const struct curves *curves) {
    struct html *html = &curves->page->html;
    const uint32_t groups = groups_of(curves);
    uint32_t alike = 0;
    if (groups < 2) return;
    for (uint32_t group = 1; group < groups; group++)
        alike += is_like_first(curves, group) ? 1u : 0u;
    html_format(html,
                "<p class=\"note\">%u parameter groups; %u of them have the learning rates of "
                "the first at every update and are not drawn. At most %d are drawn, those in which "
                "the arms part before others.</p>\n",
                groups, alike, GROUPS_DRAWN);
}

static enum status open_curves(struct page *page, struct curves *out) {
    enum status status = STATUS_OK;
    *out = (struct curves){.page = page, .both = page->judgement.updates};
    for (int arm = 0; arm < 2; arm++) {
        out->updates[arm] = page->run[arm]->updates;
        out->x[arm] = rows(out, out->updates[arm], &status);
        for (uint64_t i = 0; status == STATUS_OK && i < out->updates[arm]; i++)
            out->x[arm][i] = (double)trace_row(page->run[arm], i)->step;
    }
    return status;
}

enum status page_curves(struct page *page) {
    struct curves curves;
    TRY(open_curves(page, &curves));
    page_section(page, "curves", "Curves");
    html_format(
        &page->html,
        "<p>A is %s (blue, solid), B is %s (orange, dashed). Where they coincide the dashes "
        "lie on the solid line. Every value stands in the table of updates below.</p>\n"
        "<div class=\"figures\">\n",
        page->judgement.arms[0], page->judgement.arms[1]);
    TRY(draw_losses(&curves));
    TRY(draw_distance(&curves));
    TRY(draw_rates(&curves));
    TRY(draw_loss_gap(&curves));
    TRY(draw_norms(&curves));
    html_raw(&page->html, "</div>\n");
    note_groups(&curves);
    page_section_end(page);
    return STATUS_OK;
}
