/* SPDX-License-Identifier: Apache-2.0
 * Reads the parameters of a schedule from text by its key rows: reals, names, flags and texts.
 * Scenarios have a reader of their own, which knows line and column (scenarios/row_value.c); this
 * one serves the command line and needs no YAML. Invariant: a value that was set lies within the
 * bounds of its row or is its special word. */
#include <string.h>

#include "base/number.h"
#include "sched/values.h"

void sched_join(char *names, size_t size, const char *name) {
    if (names[0] != '\0') strncat(names, ", ", size - strlen(names) - 1);
    strncat(names, name, size - strlen(names) - 1);
}

static enum status fail_row(const struct key_row *row, const char *text) {
    if (row->type == KEY_ENUM) {
        char names[160] = "";
        for (size_t i = 0; row->names[i] != NULL; i++)
            sched_join(names, sizeof names, row->names[i]);
        FAIL(STATUS_INPUT, "%s: expected one of %s, got \"%s\"", row->path, names, text);
    }
    FAIL(STATUS_INPUT, "%s: expected a number from %.17g to %.17g%s%s, got \"%s\"", row->path,
         row->low, row->high, row->word == NULL ? "" : ", or ", row->word == NULL ? "" : row->word,
         text);
}

static enum status set_real(const struct key_row *row, const char *text, char *values) {
    double x = KEY_WORD_REAL;
    if (row->word == NULL || strcmp(text, row->word) != 0) {
        if (number_parse_real(text, NUMBER_HEX, &x) != STATUS_OK) return fail_row(row, text);
        if (!(x >= row->low && x <= row->high)) return fail_row(row, text);
    }
    memcpy(values + row->offset, &x, sizeof x);
    return STATUS_OK;
}

static enum status set_name(const struct key_row *row, const char *text, char *values) {
    for (int32_t i = 0; row->names[i] != NULL; i++)
        if (strcmp(row->names[i], text) == 0) {
            memcpy(values + row->offset, &i, sizeof i);
            return STATUS_OK;
        }
    return fail_row(row, text);
}

static enum status set_flag(const struct key_row *row, const char *text, char *values) {
    const uint8_t on = strcmp(text, "true") == 0;
    if (!on && strcmp(text, "false") != 0)
        FAIL(STATUS_INPUT, "%s: expected true or false, got \"%s\"", row->path, text);
    memcpy(values + row->offset, &on, sizeof on);
    return STATUS_OK;
}

static enum status set_text(const struct key_row *row, const char *text, char *values) {
    const size_t length = strlen(text);
    if (length >= row->size)
        FAIL(STATUS_INPUT, "%s: expected at most %zu characters, got %zu", row->path, row->size - 1,
             length);
    memset(values + row->offset, 0, row->size);
    memcpy(values + row->offset, text, length);
    return STATUS_OK;
}

static enum status set_row(const struct key_row *row, const char *text, char *values) {
    if (row->type == KEY_REAL) return set_real(row, text, values);
    if (row->type == KEY_ENUM) return set_name(row, text, values);
    if (row->type == KEY_BOOL) return set_flag(row, text, values);
    if (row->type == KEY_TEXT) return set_text(row, text, values);
    FAIL(STATUS_INTERNAL, "schedule key %s: parameters of this type cannot be read", row->path);
}

const struct key_row *sched_row(const struct sched_class *schedule, const char *key) {
    for (size_t i = 0; i < schedule->key_count; i++)
        if (strcmp(schedule->keys[i].path, key) == 0) return &schedule->keys[i];
    return NULL;
}

enum status sched_values_standard(const struct sched_class *schedule, void *values) {
    for (size_t i = 0; i < schedule->key_count; i++) {
        const struct key_row *row = &schedule->keys[i];
        if (set_row(row, row->standard, (char *)values) != STATUS_OK)
            FAIL(STATUS_INTERNAL, "schedule %s: default of %s", schedule->name, row->path);
    }
    return STATUS_OK;
}

enum status sched_values_set(const struct sched_class *schedule, void *values, const char *key,
                             const char *text) {
    char names[320] = "";
    const struct key_row *row = sched_row(schedule, key);
    if (row != NULL) return set_row(row, text, (char *)values);
    for (size_t i = 0; i < schedule->key_count; i++)
        sched_join(names, sizeof names, schedule->keys[i].path);
    FAIL(STATUS_INPUT, "schedule %s has no parameter \"%s\"; it has %s", schedule->name, key,
         schedule->key_count == 0 ? "none" : names);
}
