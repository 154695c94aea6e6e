/* SPDX-License-Identifier: Apache-2.0
 * Rows and columns while they grow, in memory that belongs to the building. The cells are in
 * logs/build_cells.c, the finished arrays in logs/build_finish.c.
 *
 * Invariant: a source name has one column, and at most one column has a given name of ours. */
#include "logs/build_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"

#define STEP_MAX ((int64_t)1 << 62)

const struct log_rule log_rules_exact[] = {LOG_RULES_END(LOG_PRINT_EXACT)};
const struct log_rule log_rules_json[] = {LOG_RULES_END(LOG_PRINT_JSON)};

/* ---- open, close, notes ---- */

static enum status check_maps(const struct log_options *options) {
    for (size_t i = 0; i < options->map_count; i++) {
        const char *ours = options->map[i].ours;
        if (log_name_by_text(ours) == LOG_OTHER && strcmp(ours, "step") != 0)
            FAIL(STATUS_INPUT,
                 "--map %s=%s: expected one of our names before the sign (step, loss, lr_logged, "
                 "grad_norm, ...: twinstep list columns), got \"%s\"",
                 ours, options->map[i].theirs, ours);
    }
    return STATUS_OK;
}

enum status log_build_open(const char *path, const char *format, const struct log_options *options,
                           struct arena *arena, struct log_build **out) {
    struct log_build *build;
    *out = NULL;
    TRY(check_maps(options));
    TRY(arena_take(arena, 1, sizeof *build, "log", &build));
    build->arena = arena;
    build->scratch.source = arena->source;
    build->path = path;
    build->format = format;
    build->options = options;
    for (size_t i = 0; i < LOG_NAMES; i++)
        build->holder[i] = LOG_COLUMN_IGNORED;
    *out = build;
    return STATUS_OK;
}

void log_build_close(struct log_build *build) {
    if (build != NULL) arena_close(&build->scratch);
}

const char *log_build_step_source(const struct log_build *build) {
    for (size_t i = 0; i < build->options->map_count; i++)
        if (strcmp(build->options->map[i].ours, "step") == 0) return build->options->map[i].theirs;
    return NULL;
}

enum status log_build_note(struct log_build *build, const char *format, ...) {
    char text[512];
    char *kept;
    va_list arguments;
    if (build->note_count == BUILD_NOTES_MAX) {
        build->notes_left++;
        return STATUS_OK;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    TRY(arena_text(build->arena, text, strlen(text), &kept));
    build->notes[build->note_count++] = kept;
    return STATUS_OK;
}

enum status log_build_note_step(struct log_build *build, const char *step) {
    if (strcmp(step, "_step") != 0) return STATUS_OK;
    return log_build_note(build, "_step is W&B's own counter of log calls: it is an update number "
                                 "only where each update logged once");
}

const char *log_build_format(const struct log_build *build) {
    return build->format;
}

struct arena *log_build_scratch(struct log_build *build) {
    return &build->scratch;
}

const struct log_options *log_build_options(const struct log_build *build) {
    return build->options;
}

void log_build_max_steps(struct log_build *build, uint64_t steps) {
    if (steps > 0) build->max_steps = steps;
}

void log_build_logs_next(struct log_build *build) {
    build->logs_next = 1;
}

void log_build_logs_used(struct log_build *build) {
    build->logs_used = 1;
}

enum status log_build_odd_step(struct log_build *build, const char *name, const char *text,
                               size_t length, uint32_t line) {
    char shown[41], *kept;
    if (build->odd_step != NULL) return STATUS_OK;
    log_show(text, length, shown, sizeof shown);
    TRY(arena_format(build->arena, &kept, "its step is \"%s\": %s in line %" PRIu32, name, shown,
                     line));
    build->odd_step = kept;
    return STATUS_OK;
}

void log_build_bf16(struct log_build *build) {
    build->bf16 = 1;
}

void log_build_adopt(struct log_build *build, struct log *log) {
    build->adopted = log;
}

/* ---- growth ---- */

enum status log_build_grow(struct log_build *build, void *pointer, size_t *room, size_t wanted,
                           size_t size) {
    void *old, *larger;
    size_t next = *room == 0 ? 16 : *room;
    if (wanted <= *room) return STATUS_OK;
    while (next < wanted)
        next *= 2;
    memcpy(&old, pointer, sizeof old);
    TRY(arena_take(&build->scratch, next, size, "rows of a log", &larger));
    if (*room > 0) memcpy(larger, old, *room * size);
    memcpy(pointer, &larger, sizeof larger);
    *room = next;
    return STATUS_OK;
}

/* ---- columns ---- */

static size_t utf8_length(const unsigned char *s, size_t left) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
    const size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

/* Names of columns reach HDF5, JSON and terminals, so they must be UTF-8 without control
 * characters: every byte that breaks this becomes '?'. */
static size_t clean_name(const char *source, size_t length, char name[BUILD_NAME_MAX + 1]) {
    size_t kept = 0;
    for (size_t i = 0; i < length && kept < BUILD_NAME_MAX;) {
        size_t step = utf8_length((const unsigned char *)source + i, length - i);
        if (step > BUILD_NAME_MAX - kept) break;
        if (step == 0) name[kept++] = '?';
        for (size_t j = 0; j < step; j++)
            name[kept++] = source[i + j];
        i += step == 0 ? 1 : step;
    }
    name[kept] = '\0';
    return kept;
}

static uint32_t hash_name(const char *name, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static int is_column(const struct build_column *column, const char *name, size_t length) {
    return column->length == length && memcmp(column->source, name, length) == 0;
}

/* Returns the slot that holds the name, or the free slot where it belongs. */
static uint16_t *slot_of(struct log_build *build, const char *name, size_t length) {
    size_t at = hash_name(name, length) % COUNT_OF(build->slots);
    while (build->slots[at] != 0 && !is_column(&build->columns[build->slots[at] - 1], name, length))
        at = (at + 1) % COUNT_OF(build->slots);
    return &build->slots[at];
}

static const struct log_rule *rule_of(const struct log_rule *rules, const char *name,
                                      size_t length) {
    for (; rules != NULL && rules->source != NULL; rules++)
        if (strcmp(rules->source, "*") == 0 ||
            (strlen(rules->source) == length && memcmp(rules->source, name, length) == 0))
            return rules;
    return NULL;
}

/* Says what a column is. The weakest source comes first and is overruled by the next: the table of
 * known names, the reader's rule, the user's --map (rank -1, so that it always wins the name). */
static void describe(struct log_build *build, struct build_column *column,
                     const struct log_rule *rules) {
    const struct log_rule *rule = rule_of(rules, column->source, column->length);
    const struct log_known *known = log_known_name(column->source, column->length);
    if (known != NULL) {
        column->name = known->name;
        column->rank = known->rank;
        column->cumulative = known->cumulative;
    }
    if (rule != NULL) {
        column->print = rule->print;
        column->decimals = rule->decimals;
        column->windowed = rule->windowed;
        if (rule->cumulative) column->cumulative = 1;
    }
    if (rule != NULL && rule->name != LOG_NAMES) {
        column->name = rule->name;
        column->rank = 0;
        column->cumulative = rule->cumulative;
    }
    for (size_t i = 0; i < build->options->map_count; i++)
        if (strcmp(build->options->map[i].theirs, column->source) == 0 &&
            strcmp(build->options->map[i].ours, "step") != 0) {
            column->name = (int32_t)log_name_by_text(build->options->map[i].ours);
            column->rank = -1;
            build->map_used[i] = 1;
        }
}

/* Where several columns claim one name of ours, the one with the lowest rank has it, and of equal
 * ranks the first. */
static void claim_name(struct log_build *build, size_t index) {
    struct build_column *column = &build->columns[index];
    size_t *holder = &build->holder[column->name];
    if (column->name == LOG_OTHER) return;
    if (*holder != LOG_COLUMN_IGNORED && build->columns[*holder].rank <= column->rank) {
        column->name = LOG_OTHER;
        return;
    }
    if (*holder != LOG_COLUMN_IGNORED) build->columns[*holder].name = LOG_OTHER;
    *holder = index;
}

static enum status add_column(struct log_build *build, const char *name, size_t length,
                              const struct log_rule *rules, uint16_t *slot) {
    char *kept;
    TRY(log_build_grow(build, &build->columns, &build->column_room, build->column_count + 1,
                       sizeof *build->columns));
    TRY(arena_text(build->arena, name, length, &kept));
    struct build_column *column = &build->columns[build->column_count];
    memset(column, 0, sizeof *column);
    column->source = kept;
    column->length = length;
    column->finest = real_inf_f64();
    describe(build, column, rules);
    claim_name(build, build->column_count++);
    *slot = (uint16_t)build->column_count;
    return STATUS_OK;
}

enum status log_build_column(struct log_build *build, const char *source, size_t length,
                             const struct log_rule *rules, size_t *out) {
    char name[BUILD_NAME_MAX + 1];
    /* Most logs name their columns in the same order in every row, so the next column is tried
     * before the hash table. */
    const size_t next = build->last_column + 1;
    *out = LOG_COLUMN_IGNORED;
    if (next < build->column_count && is_column(&build->columns[next], source, length)) {
        *out = build->last_column = next;
        return STATUS_OK;
    }
    length = clean_name(source, length, name);
    uint16_t *slot = slot_of(build, name, length);
    if (*slot == 0) {
        if (build->column_count == LOG_COLUMNS_MAX) {
            build->columns_left = 1;
            return STATUS_OK;
        }
        TRY(add_column(build, name, length, rules, slot));
    }
    *out = build->last_column = (size_t)*slot - 1;
    return STATUS_OK;
}

enum status log_build_evaluation(struct log_build *build, size_t column,
                                 const struct log_rule *rules, size_t *out) {
    static const char head[] = "eval/";
    static const char *const own[] = {"eval", "val", "test"};
    const size_t skip = sizeof head - 1;
    char name[BUILD_NAME_MAX + 1];
    *out = column;
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    const struct build_column *const of = &build->columns[column];
    const size_t length = of->length < BUILD_NAME_MAX - skip ? of->length : BUILD_NAME_MAX - skip;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(of->source, own[i], strlen(own[i])) == 0) return STATUS_OK;
    memcpy(name, head, skip);
    memcpy(name + skip, of->source, length);
    return log_build_column(build, name, skip + length, rules, out);
}

/* ---- rows ---- */

struct build_row *log_build_row_at(const struct log_build *build, size_t row) {
    return &build->row_blocks[row / BUILD_BLOCK]->rows[row % BUILD_BLOCK];
}

int log_build_has_steps(const struct log_build *build) {
    for (size_t i = 0; i < build->row_count; i++)
        if (log_build_row_at(build, i)->step != INT64_MIN) return 1;
    return 0;
}

static enum status check_step(const struct log_build *build, int64_t step, uint32_t line) {
    if (step == INT64_MIN || (step >= -STEP_MAX && step <= STEP_MAX)) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected a step within 2^62, got %" PRId64, build->path,
         line, step);
}

void log_build_blank_loss(struct log_build *build) {
    build->blank_loss = 1;
}

void log_build_skip(struct log_build *build) {
    build->skips++;
    build->skip_count++;
}

static enum status append_row(struct log_build *build, int64_t step, uint32_t line, uint32_t part) {
    const size_t block = build->row_count / BUILD_BLOCK;
    if (build->row_count >= UINT32_MAX - 1)
        FAIL(STATUS_INPUT, "%s: expected at most 2^32 rows, got more", build->path);
    TRY(log_build_grow(build, &build->row_blocks, &build->row_room, block + 1,
                       sizeof *build->row_blocks));
    if (build->row_blocks[block] == NULL)
        TRY(arena_take(&build->scratch, 1, sizeof **build->row_blocks, "rows of a log",
                       &build->row_blocks[block]));
    build->row = build->row_count++;
    *log_build_row_at(build, build->row) = (struct build_row){step, line, part, 0, build->skips};
    build->skips = 0;
    build->last_column = LOG_COLUMN_IGNORED;
    return STATUS_OK;
}

enum status log_build_row(struct log_build *build, int64_t step, uint32_t line, uint32_t part) {
    TRY(check_step(build, step, line));
    if (build->row_count > 0 && log_build_row_at(build, build->row_count - 1)->values == 0) {
        build->row_count--; /* the last row stayed without a value, so it is no row */
        build->skips += log_build_row_at(build, build->row_count)->skips;
    }
    return append_row(build, step, line, part);
}

/* ---- rows by step ---- */

static size_t hash_step(int64_t step, uint32_t part, size_t room) {
    uint64_t mixed = ((uint64_t)step + 0x9e3779b97f4a7c15u * (part + 1u)) * 0xbf58476d1ce4e5b9u;
    return (size_t)((mixed ^ (mixed >> 29)) & (room - 1));
}

static uint32_t *step_slot(const struct log_build *build, int64_t step, uint32_t part) {
    size_t at = hash_step(step, part, build->step_room);
    for (;; at = (at + 1) & (build->step_room - 1)) {
        uint32_t *slot = &build->step_slots[at];
        if (*slot == 0) return slot;
        const struct build_row *row = log_build_row_at(build, *slot - 1);
        if (row->step == step && row->part == part) return slot;
    }
}

static enum status grow_steps(struct log_build *build) {
    if (2 * (build->row_count + 1) <= build->step_room) return STATUS_OK;
    build->step_room = build->step_room == 0 ? 1024 : 2 * build->step_room;
    TRY(arena_take(&build->scratch, build->step_room, sizeof *build->step_slots, "steps of a log",
                   &build->step_slots));
    for (size_t i = 0; i < build->row_count; i++) {
        const struct build_row *row = log_build_row_at(build, i);
        *step_slot(build, row->step, row->part) = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

enum status log_build_row_of(struct log_build *build, int64_t step, uint32_t line, uint32_t part) {
    TRY(check_step(build, step, line));
    TRY(grow_steps(build));
    uint32_t *slot = step_slot(build, step, part);
    build->by_step = 1;
    if (*slot == 0) {
        TRY(append_row(build, step, line, part));
        *slot = (uint32_t)build->row + 1;
    }
    build->row = (size_t)*slot - 1;
    build->last_column = LOG_COLUMN_IGNORED;
    return STATUS_OK;
}
