/* SPDX-License-Identifier: Apache-2.0
 * Finds the LR columns of further parameter groups by their names. */
#include "forensics/group_lr.h"

#include <string.h>

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

static int read_name(const struct log_column *column, struct group_lr *out) {
    if (column->name != LOG_OTHER) return 0;
    out->source = column->source;
    out->name = LOG_LR_APPLIED;
    if (is_of(column->source, LOG_LR_APPLIED, &out->group)) return 1;
    out->name = LOG_LR_LOGGED;
    return is_of(column->source, LOG_LR_LOGGED, &out->group);
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
