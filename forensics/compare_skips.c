/* SPDX-License-Identifier: Apache-2.0
 * Whether two trainings follow one schedule and differ in which updates were skipped.
 *
 * A loss scaler skips the update whose gradient overflows. Where the scheduler holds on a skip, the
 * LR columns part there although nobody changed the schedule. Invariant: this is said only under
 * explanations that are equal in every other number, and never against a gradient norm that is not
 * finite. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"

static int same_number(double a, double b) {
    return (a != a && b != b) || real_abs_f64(a - b) <= 1e-9 * real_abs_f64(b);
}

/* Tells whether two explanations are one plain course of one contract, whatever was skipped. */
static int same_course(const struct fit *a, const struct fit *b) {
    return a->contract == b->contract && a->schedule == b->schedule && same_number(a->lr, b->lr) &&
           same_number(a->warmup, b->warmup) && a->steps == b->steps &&
           same_number(a->floor_ratio, b->floor_ratio) && same_number(a->stride, b->stride) &&
           strcmp(a->parameters, b->parameters) == 0 && a->epoch_updates == b->epoch_updates &&
           a->segment_count == 1 && b->segment_count == 1 && !a->first_differs &&
           !b->first_differs && a->bug == NULL && b->bug == NULL;
}

/* How many updates up to `update` were skipped, at the least and at the most: a skip lies somewhere
 * in its range. */
struct bounds {
    uint64_t least, most;
};

static struct bounds skipped_by(const struct fit *fit, uint64_t update) {
    struct bounds bounds = {0, 0};
    for (size_t i = 0; i < fit->skip_count; i++) {
        const struct fit_skip *skip = &fit->skips[i];
        if (skip->last <= update) bounds.least += skip->count;
        if (skip->first <= update) bounds.most += skip->count;
    }
    return bounds;
}

/* Returns the update by which the two have skipped different numbers for certain, or 0. The least
 * grows only where a range ends, so these ends are enough. */
static uint64_t skips_part(const struct fit *a, const struct fit *b) {
    const struct fit *const fits[2] = {a, b};
    uint64_t first = 0;
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < fits[s]->skip_count; i++) {
            const uint64_t update = fits[s]->skips[i].last;
            const struct bounds x = skipped_by(a, update), y = skipped_by(b, update);
            if ((x.least > y.most || y.least > x.most) && (first == 0 || update < first))
                first = update;
        }
    return first;
}

/* Counts the rows up to `update` whose gradient norm is not finite. A scaler skips such an update,
 * so a run has skipped as many at the least. */
static uint64_t overflows_by(const struct log *log, uint64_t update) {
    const struct log_column *norm = log_column_of(log, LOG_GRAD_NORM);
    uint64_t count = 0;
    for (size_t row = 0; norm != NULL && row < log->rows; row++)
        count += log->step[row] > 0 && (uint64_t)log->step[row] <= update && log_has(norm, row) &&
                 !real_finite_f64(norm->value[row]);
    return count;
}

/* Tells whether one of the two skipped more updates up to there than its explanation says: then
 * both may have skipped the same ones, and one schedule went on where the other held. */
static int is_contradicted(const struct compare_input *input, const struct fit *const fits[2],
                           uint64_t update) {
    for (size_t s = 0; s < 2; s++)
        if (overflows_by(input[s].log, update) > skipped_by(fits[s], update).most) return 1;
    return 0;
}

/* The skipped updates of a fit as its text has them. */
static const char *skips_text(const struct fit *fit) {
    static const char mark[] = "; skipped: ";
    const char *at = strstr(fit->text, mark);
    return at == NULL ? "none" : at + sizeof mark - 1;
}

/* Returns the length of a fit's text before its skipped updates. */
static int course_length(const struct fit *fit) {
    const char *at = strstr(fit->text, "; skipped: ");
    return (int)(at == NULL ? strlen(fit->text) : (size_t)(at - fit->text));
}

enum status compare_skips(const struct compare_input *input, struct arena *arena,
                          struct compare_lr *lr) {
    char *text;
    if (lr->state != COMPARE_LR_DIFFERENT && lr->state != COMPARE_LR_UNTESTABLE) return STATUS_OK;
    for (size_t i = 0; i < lr->fits[0]; i++)
        for (size_t j = 0; j < lr->fits[1]; j++) {
            const struct fit *a = &input[0].fits->fits[i], *b = &input[1].fits->fits[j];
            if (!same_course(a, b)) continue;
            const uint64_t update = skips_part(a, b);
            const struct fit *const pair[2] = {a, b};
            if (update == 0 || is_contradicted(input, pair, update)) continue;
            TRY(arena_format(arena, &text,
                             "Under %.*s for both the schedules agree, and only the skipped "
                             "updates differ: %s in A, %s in B.",
                             course_length(a), a->text, skips_text(a), skips_text(b)));
            lr->skips_words = text;
            lr->skips_part = update;
            lr->skips_simplest = i == 0 && j == 0;
            lr->fit[0] = a;
            lr->fit[1] = b;
            return STATUS_OK;
        }
    return STATUS_OK;
}
