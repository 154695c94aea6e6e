/* SPDX-License-Identifier: Apache-2.0
 * The LRs of the parameter groups behind the first one, column by column.
 *
 * Invariant: LRs are said to agree without a condition only where no further group's LR differs,
 * and none stands in one log alone. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"
#include "forensics/group_lr.h"

/* Moves *i on to the point of that update. Returns 0 where the side has none. */
static int reach(const struct compare_side *side, uint64_t update, size_t *i) {
    while (*i < side->count && compare_point(side, *i).update < update)
        ++*i;
    return *i < side->count && compare_point(side, *i).update == update;
}

/* A trace records every group at every update, so that a number that is missing there was NaN: a
 * difference where the other one has a number and both have one of the first group. */
static void count_missing(const struct compare_column *first_group, struct compare_column *column) {
    size_t at[2] = {0, 0};
    for (size_t i = 0, j = 0; compare_next(first_group, &i, &j); i++, j++) {
        const uint64_t update = compare_point(&first_group->side[0], i).update;
        const int has[2] = {reach(&column->side[0], update, &at[0]),
                            reach(&column->side[1], update, &at[1])};
        if (has[0] == has[1]) continue;
        column->pairs++;
        column->class_of = COMPARE_DIFFERENT;
        column->largest = real_inf_f64(); /* no noise: one has no number at all */
        if (column->different++ > 0 && column->first_update <= update) continue;
        column->first_update = update;
        for (int s = 0; s < 2; s++)
            column->first[s] = has[s] ? compare_point(&column->side[s], at[s])
                                      : (struct series_point){update, real_nan_f64(), 0.0, 0, 0};
    }
}

static int are_traces(const struct compare_input *input) {
    return strcmp(input[0].log->format, "trace") == 0 && strcmp(input[1].log->format, "trace") == 0;
}

static enum status compare_group(const struct compare_input *input, const struct group_lr *lr,
                                 const struct compare_column *first_group, struct arena *arena,
                                 struct compare_group *out) {
    *out = (struct compare_group){.group = lr->group,
                                  .source = lr->source,
                                  .is_applied = lr->name == LOG_LR_APPLIED,
                                  .column = {.name = LOG_OTHER}};
    for (size_t s = 0; s < 2; s++)
        TRY(compare_align_column(input[s].log, lr->column[s], arena, &out->column.side[s]));
    compare_classify(&out->column);
    if (lr->column[0] != NULL && lr->column[1] != NULL && first_group != NULL && are_traces(input))
        count_missing(first_group, &out->column);
    return STATUS_OK;
}

/* What the further groups of one kind come to. */
struct tally {
    size_t both, differ, alone[2];       /* how many are in both, differ, are in A or in B alone */
    const struct compare_group *first;   /* the first to differ */
    const struct compare_group *only[2]; /* the first that A or B alone has */
};

static struct tally count_kind(const struct compare_lr *lr, int is_applied) {
    struct tally tally = {.both = 0};
    for (size_t i = 0; i < lr->group_count; i++) {
        const struct compare_group *const group = &lr->groups[i];
        const struct compare_column *const column = &group->column;
        if (group->is_applied != is_applied) continue;
        if (column->class_of == COMPARE_ABSENT) {
            const size_t side = column->side[0].column == NULL;
            if (column->side[1 - side].column != NULL) continue; /* no update is in both */
            if (tally.alone[side]++ == 0) tally.only[side] = group;
            continue;
        }
        tally.both++;
        if (column->class_of != COMPARE_DIFFERENT) continue;
        tally.differ++;
        if (tally.first == NULL || column->first_update < tally.first->column.first_update)
            tally.first = group;
    }
    return tally;
}

static enum status add_words(struct compare_lr *lr, const struct tally *tally, int is_applied,
                             struct arena *arena) {
    const char *const kind = is_applied ? "LR" : "printed LR";
    char *name, *text = NULL;
    TRY(arena_format(arena, &text, "%s", lr->groups_words));
    if (tally->first != NULL) {
        const struct compare_group *const group = tally->first;
        const double a = group->column.first[0].value, b = group->column.first[1].value;
        TRY(group_name(group->group, group->source, arena, &name));
        TRY(arena_format(arena, &text,
                         "%s The %s of %s differs from update %llu on (%s against %s).", text, kind,
                         name, (unsigned long long)group->column.first_update,
                         word_apart(a, b).text, word_apart(b, a).text));
        if (tally->both > 1)
            TRY(arena_format(arena, &text, "%s Of the %zu further groups in both, %zu %s.", text,
                             tally->both, tally->differ, tally->differ > 1 ? "differ" : "differs"));
    } else if (tally->both == 1) {
        TRY(arena_format(arena, &text, "%s The %s of the further group agrees.", text, kind));
    } else if (tally->both > 1) {
        TRY(arena_format(arena, &text, "%s The %ss of all %zu further groups in both agree.", text,
                         kind, tally->both));
    }
    for (size_t s = 0; s < 2; s++) {
        const struct compare_group *const only = tally->only[s];
        if (only == NULL) continue;
        TRY(group_name(only->group, only->source, arena, &name));
        TRY(arena_format(arena, &text, "%s Only %s has the %s of %s%s, so %s not compared.", text,
                         s == 0 ? "A" : "B", kind, name, tally->alone[s] > 1 ? ", and of more" : "",
                         tally->alone[s] > 1 ? "they were" : "it was"));
    }
    lr->groups_words = text;
    return STATUS_OK;
}

enum status compare_groups(const struct compare_input *input,
                           const struct compare_column *const *first_group, struct arena *arena,
                           struct compare_lr *lr) {
    struct group_lr *found;
    struct compare_group *groups;
    lr->groups_words = "";
    TRY(group_lrs(input[0].log, input[1].log, arena, &found, &lr->group_count));
    TRY(arena_take(arena, lr->group_count, sizeof *groups, "groups", &groups));
    for (size_t i = 0; i < lr->group_count; i++)
        TRY(compare_group(input, &found[i], first_group[found[i].name == LOG_LR_LOGGED], arena,
                          &groups[i]));
    lr->groups = groups;
    const struct tally applied = count_kind(lr, 1), printed = count_kind(lr, 0);
    lr->groups_differ = applied.differ + printed.differ;
    lr->groups_alone = applied.alone[0] + applied.alone[1];
    if (applied.both == 0) lr->groups_alone += printed.alone[0] + printed.alone[1];
    TRY(add_words(lr, &applied, 1, arena));
    if (printed.differ > 0 || applied.both == 0) TRY(add_words(lr, &printed, 0, arena));
    lr->group_first = applied.first != NULL ? applied.first
                      : applied.both == 0   ? printed.first
                                            : NULL;
    return STATUS_OK;
}
