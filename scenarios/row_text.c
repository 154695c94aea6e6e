/* SPDX-License-Identifier: Apache-2.0
 * A row on paper: what it takes, and its value as a scenario would hold it. */
#include "scenarios/row_private.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* Integer bounds past this one stand for "none" and are not printed. */
#define EXACT 0x1p53
/* The largest double below 1, a bound that stands for "< 1". */
#define BELOW_ONE 0x1.fffffffffffffp-1

/* Writes bounds as text, without those that nobody meets unless `all` asks for them. */
static void range_text(const struct key_row *row, int all, char *out, size_t size) {
    const char *what = row->type == KEY_REAL ? "a number" : "an integer";
    struct number_text low = number_text_f64(row->low);
    struct number_text high = number_text_f64(row->high);
    if (row->type == KEY_UINT)
        snprintf(high.text, sizeof high.text, "%ju", (uintmax_t)row_uint_high(row));
    if (row->type == KEY_INT) {
        snprintf(low.text, sizeof low.text, "%jd", (intmax_t)row->low);
        snprintf(high.text, sizeof high.text, "%jd", (intmax_t)row->high);
    }
    int has_low = all || row->low > -EXACT;
    int has_high = all || row->high < (row->type == KEY_REAL ? 1e6 : EXACT);
    if (row->type == KEY_REAL && row->high == BELOW_ONE)
        snprintf(out, size, "%s >= %s and < 1", what, low.text);
    else if (has_low && has_high)
        snprintf(out, size, "%s from %s to %s", what, low.text, high.text);
    else if (has_low)
        snprintf(out, size, "%s >= %s", what, low.text);
    else
        snprintf(out, size, "%s", what);
}

static void names_text(const struct key_row *row, char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; row->names[i] != NULL && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", row->names[i]);
}

const char *row_expect(const struct key_row *row, int all, char out[ROW_EXPECTED_SIZE]) {
    char body[ROW_EXPECTED_SIZE - 48] = "";
    const char *prefix = "";
    switch (row->type) {
    case KEY_BOOL:
        return "true or false";
    case KEY_TEXT:
        return "text";
    case KEY_UINT:
    case KEY_INT:
    case KEY_REAL:
        range_text(row, all, body, sizeof body);
        break;
    case KEY_ENUM:
        names_text(row, body, sizeof body);
        prefix = row->names[1] == NULL && row->word == NULL ? "" : "one of ";
        break;
    case KEY_LIST:
        names_text(row, body, sizeof body);
        prefix = ROW_LIST_PREFIX;
        if (row_takes_pair(row))
            snprintf(body + strlen(body), sizeof body - strlen(body), ", %s (%s, %s)",
                     ROW_PAIR_WORD, ROW_PAIR_FIRST, ROW_PAIR_SECOND);
        break;
    }
    int is_enum = row->type == KEY_ENUM;
    snprintf(out, ROW_EXPECTED_SIZE, "%s%s%s%s", prefix, body,
             row->word == NULL ? ""
             : is_enum         ? ", "
                               : ", or ",
             row->word == NULL ? "" : row->word);
    return out;
}

const char *row_limits(const struct key_row *row, char out[ROW_EXPECTED_SIZE]) {
    return row_expect(row, row->type != KEY_UINT || row->high < 0x1p64, out);
}

static int is_plain(const char *text) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_./:+-";
    size_t length = strlen(text);
    if (length == 0 || strspn(text, inside) != length) return 0;
    if (strchr(":+-", text[0]) != NULL || text[length - 1] == ':') return 0;
    return !row_is_reserved(text);
}

/* Writes YAML's double-quoted form. Bytes past ASCII stand for themselves. */
static enum status quoted_text(const char *text, struct arena *arena, char **out) {
    TRY(arena_take(arena, 4 * strlen(text) + 3, 1, "text", out));
    char *at = *out;
    *at++ = '"';
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            at += sprintf(at, "\\%c", byte);
        else if (byte < 0x20)
            at += sprintf(at, "\\x%02x", byte);
        else
            *at++ = (char)byte;
    }
    *at = '"';
    return STATUS_OK;
}

static enum status list_text(const struct key_row *row, const void *base, struct arena *arena,
                             char **out) {
    struct key_list value;
    memcpy(&value, row_at(row, base), sizeof value);
    size_t size = 3;
    for (size_t i = 0; i < value.count; i++)
        size += strlen(row->names[value.item[i]]) + 2;
    TRY(arena_take(arena, size, 1, "text", out));
    size_t used = (size_t)snprintf(*out, size, "[");
    for (size_t i = 0; i < value.count; i++)
        used += (size_t)snprintf(*out + used, size - used, "%s%s", i == 0 ? "" : ", ",
                                 row->names[value.item[i]]);
    snprintf(*out + used, size - used, "]");
    return STATUS_OK;
}

enum status row_text(const struct key_row *row, const void *base, struct arena *arena,
                     char **out_text) {
    const unsigned char *at = row_at(row, base);
    if (row_is_word(row, base)) return arena_format(arena, out_text, "%s", row->word);
    switch (row->type) {
    case KEY_BOOL:
        return arena_format(arena, out_text, "%s", *at != 0 ? "true" : "false");
    case KEY_UINT:
        return arena_format(arena, out_text, "%ju", (uintmax_t)row_uint(row, base));
    case KEY_INT:
        return arena_format(arena, out_text, "%jd", (intmax_t)row_int(row, base));
    case KEY_REAL:
        return arena_format(arena, out_text, "%s", number_text_f64(row_real(row, base)).text);
    case KEY_ENUM:
        return arena_format(arena, out_text, "%s", row->names[row_enum(row, base)]);
    case KEY_TEXT:
        if (is_plain((const char *)at))
            return arena_format(arena, out_text, "%s", (const char *)at);
        return quoted_text((const char *)at, arena, out_text);
    case KEY_LIST:
        return list_text(row, base, arena, out_text);
    }
    FAIL(STATUS_INTERNAL, "%s: row of unknown type %d", row->path, (int)row->type);
}
