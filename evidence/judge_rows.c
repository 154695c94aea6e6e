/* SPDX-License-Identifier: Apache-2.0
 * A judgement as rows of words, in the order in which they are read, and the pen that writes them.
 *
 * Where memory runs out, judge_rows fails; no verdict is ever shortened. Puts what was judged into
 * words, and computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "evidence/judge_parts.h"

#define ROWS_MAX 48      /* each kind has a largest number of rows, and these add up to 45 */
#define UPDATES_SHOWN 10 /* of more updates the table shows the first seven and the last three */

/* ---- the pen ---- */

static const char *const labels[] = {
    [ROW_HEADLINE] = "",         [ROW_WHY] = "why",           [ROW_DIFFERS] = "differs",
    [ROW_NOTE] = "note",         [ROW_INERT] = "note",        [ROW_FIRST] = "first",
    [ROW_RNG] = "rng",           [ROW_DEVICE] = "device",     [ROW_DEVICES] = "devices",
    [ROW_LIBRARY] = "library",   [ROW_ARMS] = "arms",         [ROW_FLOOR] = "floor",
    [ROW_SHARES] = "shares",     [ROW_WHEN] = "when",         [ROW_GROWTH] = "growth",
    [ROW_PERTURBED] = "twin",    [ROW_CLOSURE] = "closure",   [ROW_UNTESTED] = "untested",
    [ROW_EXPECTED] = "expected", [ROW_UPDATES] = "update",    [ROW_HAZARD] = "loop",
    [ROW_DROPPED] = "data",      [ROW_EVAL] = "eval",         [ROW_EVAL_TABLE] = "",
    [ROW_REPLAY] = "replay",     [ROW_REPLICAS] = "replicas", [ROW_MIXTURES] = "mixtures",
};

/* Makes room for `more` bytes and a NUL; the old piece stays behind in the arena. */
static enum status grow(struct row_pen *pen, size_t more) {
    char *text;
    if (more < pen->room - pen->length) return STATUS_OK;
    TRY(arena_take(pen->arena, pen->length + more + 1, 2, "verdict", &text));
    if (pen->length > 0) memcpy(text, pen->text, pen->length);
    pen->room = 2 * (pen->length + more + 1);
    pen->text = text;
    pen->rows[pen->count - 1].text = text;
    return STATUS_OK;
}

static TWINSTEP_PRINTF(2, 0) void put_list(struct row_pen *pen, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (pen->status == STATUS_OK) pen->status = grow(pen, (size_t)length);
    if (pen->status != STATUS_OK) return;
    vsnprintf(pen->text + pen->length, pen->room - pen->length, format, list);
    pen->length += (size_t)length;
}

void row_add(struct row_pen *pen, enum judged_row_kind kind, const char *format, ...) {
    va_list list;
    if (pen->count == ROWS_MAX)
        pen->status = status_fail(STATUS_INTERNAL, "verdict: more than %d rows", ROWS_MAX);
    if (pen->status != STATUS_OK) return;
    pen->rows[pen->count++] = (struct judged_row){.kind = kind, .label = labels[kind]};
    pen->length = pen->room = 0;
    va_start(list, format);
    put_list(pen, format, list);
    va_end(list);
}

void row_put(struct row_pen *pen, const char *format, ...) {
    va_list list;
    va_start(list, format);
    put_list(pen, format, list);
    va_end(list);
}

/* ---- what differs, and what is odd ---- */

/* Lines of one text as one row; they go on in the last row when it is of this kind. */
static void put_lines(struct row_pen *pen, enum judged_row_kind kind, const char *lines) {
    while (lines != NULL && *lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        if (pen->count > 0 && pen->rows[pen->count - 1].kind == kind)
            row_put(pen, "\n%.*s", (int)length, lines);
        else
            row_add(pen, kind, "%.*s", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

static void add_differences(const struct judgement *judgement, struct row_pen *pen) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        put_lines(pen, ROW_DIFFERS, judgement->causes[i].keys);
    put_lines(pen, ROW_NOTE, trace_attribute_of(judgement->image, "attribution", "notes"));
    put_lines(pen, ROW_INERT, trace_attribute_of(judgement->image, "", "inert"));
    put_lines(pen, ROW_DROPPED, trace_attribute_of(judgement->image, "", "dropped"));
    put_lines(pen, ROW_HAZARD, trace_attribute_of(judgement->image, "verdict", "hazards"));
}

/* Whether the arms applied the same LRs in every update of the run. */
static int applied_alike(const struct judgement *judgement) {
    return judgement->verdict == VERDICT_IDENTICAL || judgement->verdict == VERDICT_SAME_TRAINING ||
           (judgement->verdict == VERDICT_SAME_WEIGHTS && judgement->state_step == 0);
}

static int has_checkpoint(const struct judgement *judgement, int arm) {
    const char *const text =
        trace_run_of(judgement->image, judgement->arms[arm])->plan.configuration;
    size_t length;
    return config_text_value(text, "model.from", &length) != NULL &&
           !config_text_says(text, "model.from", "none");
}

static void add_notes(const struct judgement *judgement, struct row_pen *pen) {
    for (int arm = 0; arm < 2; arm++)
        if (judgement->diverged[arm] != 0)
            row_add(pen, ROW_NOTE, "the loss of %s is not finite from update %llu on",
                    judgement->arms[arm], (unsigned long long)judgement->diverged[arm]);
        else if (judgement->unbounded[arm] != 0)
            row_add(pen, ROW_NOTE,
                    "weights of %s are not finite from update %llu on, though all of its losses "
                    "are%s",
                    judgement->arms[arm], (unsigned long long)judgement->unbounded[arm],
                    has_checkpoint(judgement, arm)
                        ? ": twinstep check says whether the checkpoint holds such weights"
                        : "");
    for (int arm = 0; arm < 2; arm++)
        judge_row_arm(judgement, arm, pen);
    judge_row_reported(judgement, pen);
    if (!applied_alike(judgement) || judgement->logged_step == 0) return;
    row_add(pen, ROW_NOTE, "the logged LRs differ from update %llu on, the applied ones in ",
            (unsigned long long)judgement->logged_step);
    if (judgement->updates == 1)
        row_put(pen, "the one update of this run do not");
    else
        row_put(pen, "none of the %llu updates of this run",
                (unsigned long long)judgement->updates);
    row_put(pen, judgement->only_reported
                     ? ": a comparison of logs would raise a false alarm"
                     : ": a later update may apply those that differ, so this is no false "
                       "alarm");
}

static void add_first(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->first_step < 0) return;
    const struct first_place *place = &judgement->place;
    row_add(pen, ROW_FIRST, "update %lld", (long long)judgement->first_step);
    if (place->update > 0) {
        if (place->structure[0] != '\0') row_put(pen, ", %s", place->structure);
        if (place->structure[0] != '\0' && place->words[0] != '\0')
            row_put(pen, "; the first value that differs");
        if (place->words[0] != '\0') row_put(pen, ", %s", place->words);
        return;
    }
    if (judgement->first_phase[0] != '\0')
        row_put(pen, ", phase %s", judgement->first_phase);
    else
        row_put(pen, ", in a phase that only one arm runs or that was not recorded");
    if (judgement->first_tensor[0] != '\0') row_put(pen, ", %s", judgement->first_tensor);
    row_put(pen,
            "\nby digests of phases alone, which name what a phase left and not what in it "
            "differed first%s%s",
            place->undecided[0] == '\0' ? "" : ": ", place->undecided);
}

/* ---- the table of updates ---- */

/* Six decimals, where they fit the column. */
static void put_loss(double loss, struct row_pen *pen) {
    row_put(pen, fabs(loss) < 100.0 ? "%-9.6f " : "%-9.4g ", loss);
}

static void put_update(const struct judgement *judgement, uint64_t i, uint32_t group,
                       struct row_pen *pen) {
    const struct trace_image *image = judgement->image;
    const struct record *a = trace_row(trace_run_of(image, judgement->arms[0]), i);
    const struct record *b = trace_row(trace_run_of(image, judgement->arms[1]), i);
    double share = (double)NAN;
    if (image->pair_count > 0 && i < image->pairs[0].updates)
        share = trace_pair_row(&image->pairs[0], i)->reals[PAIR_DISTANCE_SHARE];
    row_put(pen, "\n%6llu   %-10.4g %-10.4g ", (unsigned long long)a->step,
            a->groups[group][GROUP_LR_APPLIED], b->groups[group][GROUP_LR_APPLIED]);
    put_loss(a->reals[REAL_LOSS], pen);
    put_loss(b->reals[REAL_LOSS], pen);
    row_put(pen, "%-9.4g %-9.4g ", a->reals[REAL_GRAD_NORM], b->reals[REAL_GRAD_NORM]);
    if (isnan(share))
        row_put(pen, "-");
    else
        row_put(pen, "%.3g", share);
}

/* Whether another parameter group than the first one has LRs of its own in an arm. */
static int has_other_lrs(const struct judgement *judgement) {
    for (int arm = 0; arm < 2; arm++) {
        const struct trace_run *run = trace_run_of(judgement->image, judgement->arms[arm]);
        for (uint64_t i = 0; i < judgement->updates; i++) {
            const struct record *record = trace_row(run, i);
            const double first = record->groups[0][GROUP_LR_APPLIED];
            for (uint32_t g = 1; g < run->plan.shape.groups; g++) {
                const double other = record->groups[g][GROUP_LR_APPLIED];
                if (other != first && !(isnan(other) && isnan(first))) return 1;
            }
        }
    }
    return 0;
}

static void add_updates(const struct judgement *judgement, struct row_pen *pen) {
    const uint32_t group = judgement_lr_group(judgement);
    char lr[32] = "LR applied";
    if (judgement->updates == 0) return;
    if (has_other_lrs(judgement)) snprintf(lr, sizeof lr, "LR applied, group %u", group);
    row_add(pen, ROW_UPDATES, "%-21s %-19s %-19s |a-b|/|a-a0|%s", lr, "loss", "grad norm",
            judgement_copies(judgement));
    for (uint64_t i = 0; i < judgement->updates; i++) {
        if (judgement->updates > UPDATES_SHOWN && i == UPDATES_SHOWN - 3) {
            row_put(pen, "\n   ...");
            i = judgement->updates - 3;
        }
        put_update(judgement, i, group, pen);
    }
}

/* ---- all of it ---- */

static void add_expectation(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->expectation == EXPECT_NONE) return;
    row_add(pen, ROW_EXPECTED, "%s", expectation_name(judgement->expectation));
    if (judgement->expectation == EXPECT_MISSED) row_put(pen, ": %s", judgement->missed);
}

enum status judge_rows(struct arena *arena, struct judgement *out) {
    const struct judgement *const judgement = out;
    struct row_pen pen = {.arena = arena};
    TRY(arena_take(arena, ROWS_MAX, sizeof *pen.rows, "verdict", &pen.rows));
    const int outside = judgement_differs(judgement);
    judge_row_headline(judgement, &pen);
    if (outside) judge_row_why(judgement, &pen);
    if (outside) judge_row_count(judgement, &pen);
    judge_row_corruption(judgement, &pen);
    add_differences(judgement, &pen);
    add_notes(judgement, &pen);
    add_first(judgement, &pen);
    judge_row_replicas(judgement, &pen);
    const struct trace_text *const checks = trace_text_of(judgement->image, REPLAY_CHECK_PATH);
    if (checks != NULL) put_lines(&pen, ROW_REPLAY, checks->text);
    if (judgement->rng_words[0] != '\0') row_add(&pen, ROW_RNG, "%s", judgement->rng_words);
    judge_row_devices(judgement, &pen);
    judge_row_products(judgement, &pen);
    judge_row_arms(judgement, &pen);
    judge_row_floor(judgement, &pen);
    judge_row_mixtures(judgement, &pen);
    judge_row_eval(judgement, &pen);
    if (outside) {
        judge_row_shares(judgement, &pen);
        judge_row_measures(judgement, &pen);
        judge_row_growth(judgement, &pen);
        judge_row_closure(judgement, &pen);
    }
    if (outside || (judgement->verdict == VERDICT_IDENTICAL && judgement->cause_count > 0))
        judge_row_untested(judgement, &pen);
    add_expectation(judgement, &pen);
    add_updates(judgement, &pen);
    out->rows = pen.rows;
    out->row_count = pen.count;
    return pen.status;
}
