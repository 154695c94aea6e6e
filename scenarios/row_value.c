/* SPDX-License-Identifier: Apache-2.0
 * Reading and writing of single values, by key_type. Values move through memcpy: rows of a class
 * point into bytes without a type. */
#include "scenarios/row_value.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "scenarios/suggest.h"

#define EXACT 0x1p53                   /* bounds past it are not worth a sentence */
#define BELOW_ONE 0x1.fffffffffffffp-1 /* the largest number that is not 1 */

static const unsigned char *value_at(const struct key_row *row, const void *base) {
    return (const unsigned char *)base + row->offset;
}

static void store(const struct key_row *row, void *base, const void *value, size_t size) {
    unsigned char *at = (unsigned char *)base + row->offset;
    memset(at, 0, row->size);
    memcpy(at, value, size);
}

static size_t names_count(const struct key_row *row) {
    size_t count = 0;
    while (row->names[count] != NULL)
        count++;
    return count;
}

static uint64_t uint_high(const struct key_row *row) {
    return row->high >= 0x1p64 ? KEY_WORD_UINT - 1 : (uint64_t)row->high;
}

/* Bounds as text, with those left out that nobody meets. */
static void range_text(const struct key_row *row, int all, char *out, size_t size) {
    const char *what = row->type == KEY_REAL ? "a number" : "an integer";
    struct number_text low = number_text_f64(row->low);
    struct number_text high = number_text_f64(row->high);
    if (row->type == KEY_UINT)
        snprintf(high.text, sizeof high.text, "%ju", (uintmax_t)uint_high(row));
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

static const char *expected(const struct key_row *row, int all, char out[ROW_EXPECTED_SIZE]) {
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
        prefix = "a list [...] of ";
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

const char *row_expected(const struct key_row *row, char out[ROW_EXPECTED_SIZE]) {
    return expected(row, 0, out);
}

const char *row_limits(const struct key_row *row, char out[ROW_EXPECTED_SIZE]) {
    return expected(row, row->type != KEY_UINT || row->high < 0x1p64, out);
}

static enum status refuse(const struct key_row *row, const char *path, const struct yaml_node *node,
                          int all_bounds, const char *hint) {
    char want[ROW_EXPECTED_SIZE];
    char got[YAML_TEXT_SIZE];
    return yaml_fail(node, "%s: expected %s, got %s%s", path, expected(row, all_bounds, want),
                     yaml_describe(node, got), hint);
}

static int is_number(const char *text) {
    double value = 0;
    return number_parse_real(text, NUMBER_SPECIAL, &value) == STATUS_OK;
}

static enum status read_bool(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    int is_true = node->kind == YAML_PLAIN && strcmp(node->text, "true") == 0;
    int is_false = node->kind == YAML_PLAIN && strcmp(node->text, "false") == 0;
    if (!is_true && !is_false) return refuse(row, path, node, 0, "");
    uint8_t value = (uint8_t)is_true;
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

/* For everything that is no number where one belongs. */
static enum status not_a_number(const struct key_row *row, const char *path,
                                const struct yaml_node *node) {
    const char *hint = "";
    if (node->kind == YAML_QUOTED &&
        (is_number(node->text) || (row->word != NULL && strcmp(node->text, row->word) == 0)))
        hint = "; remove the quotes";
    if (node->kind == YAML_PLAIN && row->type != KEY_REAL && is_number(node->text) &&
        strpbrk(node->text, ".eE") != NULL)
        hint = "; integers are written in digits";
    return refuse(row, path, node, 0, hint);
}

static enum status read_uint(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    uint64_t value = 0;
    if (node->kind != YAML_PLAIN || number_parse_uint(node->text, &value) != STATUS_OK) {
        int all_digits = node->kind == YAML_PLAIN && node->text[0] != '\0' &&
                         strspn(node->text, "0123456789") == strlen(node->text);
        return all_digits ? refuse(row, path, node, 1, "") : not_a_number(row, path, node);
    }
    if (value > uint_high(row)) return refuse(row, path, node, 1, "");
    if (value < (uint64_t)row->low) return refuse(row, path, node, 0, "");
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status read_int(const struct key_row *row, const char *path,
                            const struct yaml_node *node, void *base) {
    int64_t value = 0;
    if (node->kind != YAML_PLAIN || number_parse_int(node->text, &value) != STATUS_OK)
        return not_a_number(row, path, node);
    if (value > (int64_t)row->high || value < (int64_t)row->low)
        return refuse(row, path, node, 1, "");
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status read_real(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    double value = 0;
    if (node->kind != YAML_PLAIN ||
        number_parse_real(node->text, NUMBER_FINITE, &value) != STATUS_OK)
        return not_a_number(row, path, node);
    size_t mantissa = strcspn(node->text, "eE");
    if (value == 0 && strcspn(node->text, "123456789") < mantissa)
        return refuse(row, path, node, 0, "; it is too small for a double");
    if (value > row->high || value < row->low) return refuse(row, path, node, 1, "");
    value += 0.0; /* -0 becomes +0: equal values are equal bytes */
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static int find_name(const struct key_row *row, const char *text) {
    for (size_t i = 0; row->names[i] != NULL; i++)
        if (strcmp(row->names[i], text) == 0) return (int)i;
    return -1;
}

static enum status unknown_name(const struct key_row *row, const char *path,
                                const struct yaml_node *node) {
    if (node->kind != YAML_PLAIN && node->kind != YAML_QUOTED)
        return refuse(row, path, node, 0, "");
    struct suggestion suggestion = {.word = node->text};
    for (size_t i = 0; row->names[i] != NULL; i++)
        suggest_offer(&suggestion, row->names[i]);
    if (suggestion.best == NULL) return refuse(row, path, node, 0, "");
    char hint[96];
    snprintf(hint, sizeof hint, "; did you mean %.60s?", suggestion.best);
    return refuse(row, path, node, 0, hint);
}

static enum status read_enum(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    int scalar = node->kind == YAML_PLAIN || node->kind == YAML_QUOTED;
    int32_t value = scalar ? (int32_t)find_name(row, node->text) : -1;
    if (value < 0) return unknown_name(row, path, node);
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status read_list(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    if (node->kind != YAML_LIST) return refuse(row, path, node, 0, "");
    if (node->count > KEY_LIST_MAX)
        return yaml_fail(node, "%s: expected at most %d entries, got %u", path, KEY_LIST_MAX,
                         node->count);
    struct key_list value = {0};
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        int scalar = item->kind == YAML_PLAIN || item->kind == YAML_QUOTED;
        int index = scalar ? find_name(row, item->text) : -1;
        if (index < 0) {
            struct key_row one = *row;
            one.type = KEY_ENUM;
            return unknown_name(&one, path, item);
        }
        value.item[value.count++] = (uint8_t)index;
    }
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static int is_reserved(const char *text) {
    static const char *const words[] = {"true", "false", "null", "Null", "NULL", "~"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0) return 1;
    return is_number(text);
}

static enum status read_text(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    if (node->kind != YAML_PLAIN && node->kind != YAML_QUOTED)
        return refuse(row, path, node, 0, "");
    if (node->kind == YAML_PLAIN && is_reserved(node->text))
        return refuse(row, path, node, 0, "; put it in quotes if it is meant as text");
    if (node->text[0] == '\0' && row->standard[0] != '\0') return refuse(row, path, node, 0, "");
    size_t length = strlen(node->text);
    if (length >= row->size)
        return yaml_fail(node, "%s: expected at most %zu bytes, got %zu", path, row->size - 1,
                         length);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)node->text[i];
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
            return refuse(row, path, node, 0, ", with a control character");
    }
    store(row, base, node->text, length);
    return STATUS_OK;
}

static enum status read_word(const struct key_row *row, void *base) {
    uint64_t whole = KEY_WORD_UINT;
    double real = KEY_WORD_REAL;
    int32_t index = KEY_WORD_ENUM;
    switch (row->type) {
    case KEY_UINT:
        store(row, base, &whole, sizeof whole);
        return STATUS_OK;
    case KEY_REAL:
        store(row, base, &real, sizeof real);
        return STATUS_OK;
    case KEY_ENUM:
        store(row, base, &index, sizeof index);
        return STATUS_OK;
    default:
        FAIL(STATUS_INTERNAL, "%s: a row of this type has no word", row->path);
    }
}

enum status row_read(const struct key_row *row, const char *path, const struct yaml_node *node,
                     void *base) {
    int may_be_word =
        node->kind == YAML_PLAIN || (node->kind == YAML_QUOTED && row->type == KEY_ENUM);
    if (row->word != NULL && may_be_word && strcmp(node->text, row->word) == 0)
        return read_word(row, base);
    switch (row->type) {
    case KEY_BOOL:
        return read_bool(row, path, node, base);
    case KEY_UINT:
        return read_uint(row, path, node, base);
    case KEY_INT:
        return read_int(row, path, node, base);
    case KEY_REAL:
        return read_real(row, path, node, base);
    case KEY_ENUM:
        return read_enum(row, path, node, base);
    case KEY_TEXT:
        return read_text(row, path, node, base);
    case KEY_LIST:
        return read_list(row, path, node, base);
    }
    FAIL(STATUS_INTERNAL, "%s: row of unknown type %d", path, (int)row->type);
}

/* "[a, b]" as a list node over `items` and `buffer`. */
static enum status standard_list(const struct key_row *row, struct yaml_node *list,
                                 struct yaml_node items[KEY_LIST_MAX], char *buffer, size_t size) {
    size_t length = strlen(row->standard);
    if (length < 2 || length >= size || row->standard[0] != '[' || row->standard[length - 1] != ']')
        FAIL(STATUS_INTERNAL, "%s: default %s is no list", row->path, row->standard);
    memcpy(buffer, row->standard + 1, length - 2);
    buffer[length - 2] = '\0';
    list->kind = YAML_LIST;
    for (char *at = buffer; *at != '\0' && list->count < KEY_LIST_MAX;) {
        size_t word = strcspn(at, ",");
        int more = at[word] == ',';
        at[word] = '\0';
        struct yaml_node *item = &items[list->count];
        *item = (struct yaml_node){.kind = YAML_PLAIN, .source = list->source, .text = at};
        if (list->count != 0) items[list->count - 1].next = item;
        list->first = items;
        list->count++;
        at += word + (size_t)more;
        at += strspn(at, " ");
    }
    return STATUS_OK;
}

enum status row_read_standard(const struct key_row *row, const char *path, void *base) {
    struct yaml_node node = {.kind = YAML_PLAIN, .source = "default", .text = row->standard};
    struct yaml_node items[KEY_LIST_MAX];
    char buffer[512];
    if (row->type == KEY_TEXT) node.kind = YAML_QUOTED;
    if (row->type == KEY_LIST) TRY(standard_list(row, &node, items, buffer, sizeof buffer));
    return row_read(row, path, &node, base);
}

int row_is_word(const struct key_row *row, const void *base) {
    uint64_t whole = 0;
    double real = 0;
    int32_t index = 0;
    if (row->word == NULL) return 0;
    switch (row->type) {
    case KEY_UINT:
        memcpy(&whole, value_at(row, base), sizeof whole);
        return whole == KEY_WORD_UINT;
    case KEY_REAL:
        memcpy(&real, value_at(row, base), sizeof real);
        return real == KEY_WORD_REAL;
    case KEY_ENUM:
        memcpy(&index, value_at(row, base), sizeof index);
        return index == KEY_WORD_ENUM;
    default:
        return 0;
    }
}

int row_in_bounds(const struct key_row *row, const void *base) {
    uint64_t whole = 0;
    int64_t signed_whole = 0;
    double real = 0;
    int32_t index = 0;
    if (row_is_word(row, base)) return 1;
    switch (row->type) {
    case KEY_UINT:
        memcpy(&whole, value_at(row, base), sizeof whole);
        return whole >= (uint64_t)row->low && whole <= uint_high(row);
    case KEY_INT:
        memcpy(&signed_whole, value_at(row, base), sizeof signed_whole);
        return signed_whole >= (int64_t)row->low && signed_whole <= (int64_t)row->high;
    case KEY_REAL:
        memcpy(&real, value_at(row, base), sizeof real);
        return real >= row->low && real <= row->high;
    case KEY_ENUM:
        memcpy(&index, value_at(row, base), sizeof index);
        return index >= 0 && (size_t)index < names_count(row);
    default:
        return 1;
    }
}

static int is_plain(const char *text) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_./:+-";
    size_t length = strlen(text);
    if (length == 0 || strspn(text, inside) != length) return 0;
    if (strchr(":+-", text[0]) != NULL || text[length - 1] == ':') return 0;
    return !is_reserved(text);
}

/* YAML's double-quoted form; bytes past ASCII stand for themselves. */
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
    memcpy(&value, value_at(row, base), sizeof value);
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
    const unsigned char *at = value_at(row, base);
    uint64_t whole = 0;
    int64_t signed_whole = 0;
    double real = 0;
    int32_t index = 0;
    if (row_is_word(row, base)) return arena_format(arena, out_text, "%s", row->word);
    switch (row->type) {
    case KEY_BOOL:
        return arena_format(arena, out_text, "%s", *at != 0 ? "true" : "false");
    case KEY_UINT:
        memcpy(&whole, at, sizeof whole);
        return arena_format(arena, out_text, "%ju", (uintmax_t)whole);
    case KEY_INT:
        memcpy(&signed_whole, at, sizeof signed_whole);
        return arena_format(arena, out_text, "%jd", (intmax_t)signed_whole);
    case KEY_REAL:
        memcpy(&real, at, sizeof real);
        return arena_format(arena, out_text, "%s", number_text_f64(real).text);
    case KEY_ENUM:
        memcpy(&index, at, sizeof index);
        return arena_format(arena, out_text, "%s", row->names[index]);
    case KEY_TEXT:
        if (is_plain((const char *)at))
            return arena_format(arena, out_text, "%s", (const char *)at);
        return quoted_text((const char *)at, arena, out_text);
    case KEY_LIST:
        return list_text(row, base, arena, out_text);
    }
    FAIL(STATUS_INTERNAL, "%s: row of unknown type %d", row->path, (int)row->type);
}

int row_equal(const struct key_row *row, const void *a, const void *b) {
    return memcmp(value_at(row, a), value_at(row, b), row->size) == 0;
}

void row_copy(const struct key_row *row, void *into, const void *from) {
    memcpy((unsigned char *)into + row->offset, value_at(row, from), row->size);
}
