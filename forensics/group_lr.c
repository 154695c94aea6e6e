/* SPDX-License-Identifier: Apache-2.0
 * Finds the LR columns of further parameter groups by their names. */
#include "forensics/group_lr.h"

#include <inttypes.h>
#include <string.h>

#include "base/macro.h"

/* Reads "NAME[k]" with k from 1 on, without leading zeros. */
static int is_of(const char *source, enum log_name name, uint32_t *group) {
    const char *const prefix = log_names[name].name;
    const size_t length = strlen(prefix);
    if (strncmp(source, prefix, length) != 0 || source[length] != '[') return 0;
    const char *at = source + length + 1;
    *group = 0;
    if (*at < '1' || *at > '9') return 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (*group > 100000) return 0;
        *group = 10 * *group + (uint32_t)(*at - '0');
    }
    return strcmp(at, "]") == 0;
}

static const char *skip_word(const char *at, const char *word) {
    for (size_t i = 0; word[i] != '\0'; i++)
        if ((at[i] | 0x20) != (word[i] | 0x20)) return NULL;
    return at + strlen(word);
}

static int ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && skip_word(text + length - tail, end) != NULL;
}

/* Reads the number at the end of "lr-AdamW/pg2", "lr/group_1", "optim/LR (group 1)" or "lr_1", as
 * tools call the LR of a group. A name that begins "lr/" or "lr-" needs no number ("lr/head"): its
 * group is GROUP_UNKNOWN. Momentum and decay that Lightning's monitor writes there are none. */
static int is_spelled(const char *source, uint32_t *group) {
    static const char *const words[] = {"optim/lr", "learning_rate", "learning rate", "lr"};
    const char *const text = skip_word(source, "train/") != NULL ? source + 6 : source;
    const char *rest = NULL;
    size_t length = strlen(text), digits = 0;
    for (size_t i = 0; i < COUNT_OF(words) && rest == NULL; i++)
        rest = skip_word(text, words[i]);
    if (rest == NULL || strchr("/-_ [(", *rest) == NULL || *rest == '\0') return 0;
    if (ends_in(text, "momentum") || ends_in(text, "weight_decay")) return 0;
    while (length > 0 && strchr(")]", text[length - 1]) != NULL)
        length--;
    *group = 0;
    for (uint32_t power = 1;
         digits < 5 && text[length - digits - 1] >= '0' && text[length - digits - 1] <= '9';
         digits++, power *= 10)
        *group += power * (uint32_t)(text[length - digits - 1] - '0');
    if (digits == 0) *group = GROUP_UNKNOWN;
    if (rest == text + 2 && strchr("/-", *rest) != NULL) return 1;
    /* Between the word and the number nothing but what says that it counts groups. */
    rest += strspn(rest, "/-_ [(");
    const char *const after = skip_word(rest, "group");
    rest = after != NULL ? after + strspn(after, "/-_ ") : rest;
    return digits > 0 && rest == text + length - digits;
}

static int read_name(const struct log_column *column, struct group_lr *out) {
    if (column->name != LOG_OTHER) return 0;
    out->source = column->source;
    out->name = LOG_LR_APPLIED;
    if (is_of(column->source, LOG_LR_APPLIED, &out->group)) return 1;
    out->name = LOG_LR_LOGGED;
    return is_of(column->source, LOG_LR_LOGGED, &out->group) ||
           is_spelled(column->source, &out->group);
}

enum status group_name(uint32_t group, const char *source, struct arena *arena, char **out) {
    if (group == GROUP_UNKNOWN) return arena_format(arena, out, "the column %s", source);
    return arena_format(arena, out, "group %" PRIu32 " (%s)", group, source);
}

enum status group_lrs(const struct log *a, const struct log *b, struct arena *arena,
                      struct group_lr **out, size_t *count) {
    const struct log *const logs[] = {a, b};
    *count = 0;
    TRY(arena_take(arena, a->column_count + b->column_count, sizeof **out, "groups", out));
    for (size_t s = 0; s < 2; s++)
        for (size_t c = 0; c < logs[s]->column_count; c++) {
            const struct log_column *const column = &logs[s]->columns[c];
            struct group_lr found;
            if (!read_name(column, &found)) continue;
            const struct log_column *const other =
                log_column_by_source(logs[1 - s], column->source);
            if (s == 1 && other != NULL) continue;
            found.column[s] = column;
            found.column[1 - s] = other;
            (*out)[(*count)++] = found;
        }
    return STATUS_OK;
}
