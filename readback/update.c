/* SPDX-License-Identifier: Apache-2.0
 * The order of a judgement: readings of each group, then what they say about the LR, the count, the
 * decay and the betas, then what concerns all groups. */
#include "readback/update.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/real.h"
#include "readback/update_private.h"

const char *const update_finding_names[UPDATE_FINDINGS] = {
    [UPDATE_LR] = "lr",
    [UPDATE_COUNT] = "count",
    [UPDATE_RESTART] = "restart",
    [UPDATE_DECAY] = "decay",
    [UPDATE_DECAY_ROUNDED] = "decay_rounded",
    [UPDATE_COUPLED] = "coupled_decay",
    [UPDATE_CLIP] = "clip",
    [UPDATE_BETAS] = "betas",
    [UPDATE_EPS] = "eps",
    [UPDATE_SETTINGS] = "settings",
    [UPDATE_SCHEDULER] = "scheduler",
    [UPDATE_MASTERS] = "masters",
    [UPDATE_FROZEN] = "frozen",
    [UPDATE_OUTSIDE] = "outside",
    [UPDATE_UNNAMED] = "unnamed",
    [UPDATE_UNEXPLAINED] = "unexplained",
};
const char *const update_verdict_names[UPDATE_VERDICTS] = {"kept", "broken", "undecided"};

struct number_text update_bar(double bar) {
    struct number_text out;
    snprintf(out.text, sizeof out.text, "%.1e", bar);
    return out;
}

/* There is a digit for each power of ten between the value and its bar, and one more. A number
 * without a bar gets the shortest text that reads back to 9 digits: more would show the rounding of
 * f32. */
struct number_text update_number(double value, double bar) {
    struct number_text out;
    double size = fabs(value);
    int digits = 0;
    if (!(bar > 0.0)) {
        snprintf(out.text, sizeof out.text, "%.9g", value);
        return out;
    }
    for (; size > bar && digits < 16; digits++)
        size /= 10.0;
    snprintf(out.text, sizeof out.text, "%.*e", digits, value);
    return out;
}

enum status update_find(struct judging *in, enum update_finding_kind kind, int is_remark,
                        uint32_t group, const char *format, ...) {
    char text[800], *kept;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct update_reading *const out = in->out;
    /* What another class than torch's did with decay and eps is its own affair. */
    const int is_own = group != STEP_NO_GROUP && in->settings[group].is_other_class &&
                       (kind == UPDATE_DECAY || kind == UPDATE_EPS || kind == UPDATE_COUPLED);
    TRY(arena_format(in->arena, &kept, "%s", text));
    TRY(arena_grow(in->arena, out->finding_count + 1, &out->room, sizeof *out->findings, "findings",
                   &out->findings));
    out->findings[out->finding_count++] =
        (struct update_finding){kind, is_remark || is_own, group, kept};
    return STATUS_OK;
}

/* ---- one group ---- */

static void count_updates(const struct step *step, uint32_t g, struct update_group *out) {
    out->fewest = out->most = (double)NAN;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        const double updates = step->tensors[i].updates;
        if (step->tensors[i].group != g) continue;
        out->tensors++;
        out->is_assumed |= step->tensors[i].is_assumed;
        if (!(updates >= 0.0)) continue;
        out->fell |= updates < step->tensors[i].updates_before;
        if (!(updates >= out->fewest)) out->fewest = updates;
        if (!(updates <= out->most)) out->most = updates;
    }
}

/* The log's row of the update, or NULL. Logs count updates that a loss scaler skipped, and so do
 * trainers; schedulers and optimizers do not. Where one of these gave the number, a row before it
 * without a finite norm, or a scaler and no norms at all, leaves open which row it is. */
static const struct update_logged *row_of(const struct update_said *said,
                                          const struct update_reading *reading) {
    const int is_counted_alike =
        reading->numbered_by == STEP_BY_TRAINER || reading->numbered_by == STEP_BY_LOG;
    const struct update_logged *found = NULL;
    int has_norms = 0, has_gap = 0;
    for (size_t i = 0; i < said->log_count; i++) {
        const struct update_logged *const row = &said->log[i];
        if (row->update == reading->update) found = row;
        has_norms |= isfinite(row->norm);
        has_gap |= row->update <= reading->update && !isfinite(row->norm);
    }
    if (!is_counted_alike && (has_norms ? has_gap : said->has_scaler)) return NULL;
    return found;
}

static double logged_for(const struct judging *in, uint32_t g) {
    const struct update_logged *const row = row_of(in->said, in->out);
    return row != NULL && g == 0 ? row->lr : (double)NAN;
}

/* Reads again as the scope says; 1 if this explains what nothing else did. */
static int explains(struct judging *in, struct rate_scope scope, struct update_group *group) {
    struct rate_reading reading;
    rate_read(in->step, scope, in->room, &reading);
    if (reading.lr.state != RATE_READ) return 0;
    group->reading = reading;
    return 1;
}

/* The count enters beside eps as well, so a wrong one leaves more than a wrong LR does: it can be
 * told apart. */
static enum status try_counts(struct judging *in, uint32_t g) {
    static const double offsets[] = {1.0, -1.0, 2.0};
    struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        const double count = group->most + offsets[i];
        const struct rate_scope scope = {.group = g, .only = STEP_NO_GROUP, .ahead = offsets[i]};
        if (!(count >= 1.0) || group->fewest < group->most || !explains(in, scope, group)) continue;
        return update_find(in, UPDATE_COUNT, 0, g,
                           "the weights moved as with Adam's count at %.0f, and the right one is "
                           "%.0f: it sizes this update by %.3f of what the right count does",
                           count, group->most,
                           direction_size(settings, count) / direction_size(settings, group->most));
    }
    return STATUS_OK;
}

/* A restart may have rounded the weights that the update began from. */
static enum status try_rounded(struct judging *in, uint32_t g) {
    static const enum dtype narrow[] = {DTYPE_BF16, DTYPE_F16};
    for (size_t i = 0; i < COUNT_OF(narrow); i++) {
        const struct rate_scope scope = {
            .group = g, .only = STEP_NO_GROUP, .is_rounded = 1, .rounded = narrow[i]};
        if (!explains(in, scope, &in->out->groups[g])) continue;
        return update_find(in, UPDATE_MASTERS, 0, g,
                           "the update began from the weights of %s rounded to %s: the wide ones "
                           "were lost in between",
                           in->said->before, dtype_name(narrow[i]));
    }
    return STATUS_OK;
}

/* Another eps, of those that trainings use. */
static enum status try_eps(struct judging *in, uint32_t g) {
    static const double tried[] = {1e-8, 1e-6, 1e-5, 1e-7, 1e-4, 1e-10, 1e-12, 1e-15, 1e-3, 0.0};
    struct step_group other = in->step->groups[g];
    for (size_t i = 0; i < COUNT_OF(tried); i++) {
        const struct rate_scope scope = {.group = g, .only = STEP_NO_GROUP, .instead = &other};
        other.eps = tried[i];
        if (tried[i] == in->step->groups[g].eps || !explains(in, scope, &in->out->groups[g]))
            continue;
        return update_find(
            in, UPDATE_EPS, 0, g, "the weights moved as with eps %s, and the file says %s",
            number_text_f64(tried[i]).text, number_text_f64(in->step->groups[g].eps).text);
    }
    return STATUS_OK;
}

/* With the betas that the moments were made with the direction is another, and so is the LR. */
static void read_with_betas(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    struct step_group other = in->step->groups[g];
    if (group->betas.state != INPUT_BETAS_OTHER) return;
    other.beta1 = group->betas.beta1;
    other.beta2 = group->betas.beta2;
    (void)explains(in, (struct rate_scope){.group = g, .only = STEP_NO_GROUP, .instead = &other},
                   group);
}

/* Where no LR explains how wide weights moved, the slips are tried that leave such a thing: another
 * count, another eps, another start. */
static enum status read_rate(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const struct rate *const lr = &group->reading.lr;
    rate_read(in->step, (struct rate_scope){.group = g, .only = STEP_NO_GROUP}, in->room,
              &group->reading);
    if (lr->state != RATE_UNEXPLAINED || lr->method != RATE_LEAST_SQUARES) return STATUS_OK;
    if (in->step->groups[g].rule == STEP_RULE_ADAM && !in->step->groups[g].is_other_class)
        TRY(try_counts(in, g));
    if (in->step->groups[g].rule == STEP_RULE_ADAM && lr->state == RATE_UNEXPLAINED)
        TRY(try_eps(in, g));
    return lr->state == RATE_UNEXPLAINED ? try_rounded(in, g) : STATUS_OK;
}

static enum status judge_group(struct judging *in, uint32_t g) {
    struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    count_updates(in->step, g, group);
    group->logged = logged_for(in, g);
    TRY(read_rate(in, g));
    read_with_betas(in, g);
    if (settings->decay > 0.0)
        input_coupled_read(in->step, g, settings->decay, in->room, &group->coupled);
    TRY(update_judge_rate(in, g));
    TRY(update_judge_count(in, g));
    TRY(update_judge_decay(in, g));
    TRY(update_judge_betas(in, g));
    return update_judge_settings(in, g);
}

/* Groups that have nothing to read (an optimizer without state for them) decide nothing. */
static void close_verdict(const struct step *step, struct update_reading *out) {
    size_t kept = 0, undecided = 0;
    for (uint32_t g = 0; g < step->group_count; g++) {
        if (out->groups[g].reading.elements == 0) continue;
        kept += out->groups[g].verdict == UPDATE_KEPT;
        undecided += out->groups[g].verdict == UPDATE_UNDECIDED;
    }
    out->verdict = kept > 0 && undecided == 0 ? UPDATE_KEPT : UPDATE_UNDECIDED;
    for (size_t i = 0; i < out->finding_count; i++)
        if (!out->findings[i].is_remark) out->verdict = UPDATE_BROKEN;
}

/* ---- all of them ---- */

/* Whether the log has a row for every update. */
static int is_dense(const struct update_said *said) {
    for (size_t i = 1; i < said->log_count; i++)
        if (said->log[i].update != said->log[i - 1].update + 1.0) return 0;
    return 1;
}

/* The one row of the log whose gradient norm, clipped as the user says, is what came in. A clipped
 * norm is that of all clipped updates, so it says something only where all rows are there. */
static void number_by_log(const struct judging *in, struct update_reading *out) {
    const double most = in->said->expected.max_norm;
    double found = (double)NAN;
    if (out->numbered_by == STEP_BY_TRAINER || !out->norm.is_known) return;
    for (size_t i = 0; i < in->said->log_count; i++) {
        const double logged = in->said->log[i].norm;
        const double clipped = most > 0.0 && logged > most ? most : logged;
        if (!(fabs(clipped - out->norm.norm) <= out->norm.error + UPDATE_NORM_DIGITS * clipped))
            continue;
        if (found >= 0.0 || (clipped != logged && !is_dense(in->said))) return;
        found = in->said->log[i].update;
    }
    if (!(found >= 0.0)) return;
    out->update = found;
    out->numbered_by = STEP_BY_LOG;
}

/* The power of ten of the last digit of a number's shortest text, and how many digits it has. */
static int last_digit(double value, int *out_digits) {
    const struct number_text shortest = number_text_f64(value);
    const char *text = shortest.text;
    int digits = 0, zeros = 0, after = 0, power = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        after += power;
        if (*text == '.') power = 1;
        if (*text < '0' || *text > '9' || (*text == '0' && digits == 0)) continue;
        digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    *out_digits = digits - zeros;
    return zeros - after + (*text == 'e' ? atoi(text + 1) : 0);
}

double update_log_slack(const struct update_said *said, int is_norm) {
    int most = 0, lowest = 1000;
    for (size_t i = 0; i < said->log_count; i++) {
        const double value = is_norm ? said->log[i].norm : said->log[i].lr;
        int digits;
        if (!(fabs(value) > 0.0)) continue;
        const int power = last_digit(value, &digits);
        if (digits > most) most = digits;
        if (power < lowest) lowest = power;
    }
    return most > 0 && most <= 6 ? 0.51 * real_pow_f64(10.0, (double)lowest) : 0.0;
}

static void find_logged_norm(const struct judging *in, struct update_reading *out) {
    const struct update_logged *const row = row_of(in->said, out);
    out->logged_norm = row != NULL ? row->norm : (double)NAN;
}

/* From which moments each group began, and with which betas, comes first: the gradient hangs on
 * both. */
static enum status read_input(struct judging *in) {
    const uint32_t count = in->step->group_count;
    struct input_betas *betas;
    TRY(arena_take(in->arena, count, sizeof *betas, "betas", &betas));
    for (uint32_t g = 0; g < count; g++) {
        input_betas_read(in->step, g, in->room, &betas[g]);
        in->out->groups[g].betas = betas[g];
    }
    input_norm_read(in->step, betas, in->room, &in->out->norm);
    return STATUS_OK;
}

enum status update_read(const struct step *given, const struct update_said *said,
                        struct rate_room *room, struct arena *arena, struct update_reading *out) {
    struct step settled = *given;
    const struct step *const step = &settled;
    struct judging in = {step, NULL, said, room, arena, out};
    *out = (struct update_reading){
        .update = step->update, .numbered_by = step->numbered_by, .group_count = step->group_count};
    TRY(arena_take(arena, step->group_count, sizeof *out->groups, "groups", &out->groups));
    TRY(arena_take(arena, step->group_count, sizeof *in.settings, "groups", &in.settings));
    for (uint32_t g = 0; g < step->group_count; g++)
        in.settings[g] = step->groups[g];
    settled.groups = out->settings = in.settings;
    update_settle(&in);
    TRY(read_input(&in));
    number_by_log(&in, out);
    find_logged_norm(&in, out);
    for (uint32_t g = 0; g < step->group_count; g++)
        TRY(judge_group(&in, g));
    TRY(update_judge_moved(&in));
    TRY(update_judge_norm(&in));
    TRY(update_judge_scheduler(&in));
    TRY(update_judge_tensors(&in));
    update_read_schedule(&in, &out->schedule);
    close_verdict(step, out);
    return STATUS_OK;
}
