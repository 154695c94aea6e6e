/* SPDX-License-Identifier: Apache-2.0
 * Reads a row's value from YAML, or from the text of its default, by key_type. What does not fit is
 * refused in the words of row_text.c. */
#include "scenarios/row_private.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

static void store(const struct key_row *row, void *base, const void *value, size_t size) {
    unsigned char *at = (unsigned char *)base + row->offset;
    memset(at, 0, row->size);
    memcpy(at, value, size);
}

static enum status refuse(const struct key_row *row, const char *path, const struct yaml_node *node,
                          int all_bounds, const char *hint) {
    char want[ROW_EXPECTED_SIZE];
    char got[YAML_TEXT_SIZE];
    return yaml_fail(node, "%s: expected %s, got %s%s", path, row_expect(row, all_bounds, want),
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

/* Refuses what is no number where one belongs, with a hint where the slip is plain. */
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

/* Whether a number has zeros in front that readers of YAML differ about: of 010, version 1.1 makes
 * the octal 8 and version 1.2 the decimal 10. */
static int is_ambiguous(const char *text) {
    text += *text == '+' || *text == '-';
    return text[0] == '0' && text[1] != '\0' && strspn(text, "0123456789") == strlen(text);
}

static enum status refuse_ambiguous(const struct key_row *row, const char *path,
                                    const struct yaml_node *node) {
    return refuse(row, path, node, 0,
                  "; YAML 1.1 reads digits behind a zero as octal, YAML 1.2 as decimal: write it "
                  "without the zero");
}

static enum status read_uint(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    uint64_t value = 0;
    if (node->kind == YAML_PLAIN && is_ambiguous(node->text))
        return refuse_ambiguous(row, path, node);
    if (node->kind != YAML_PLAIN || number_parse_uint(node->text, &value) != STATUS_OK) {
        int all_digits = node->kind == YAML_PLAIN && node->text[0] != '\0' &&
                         strspn(node->text, "0123456789") == strlen(node->text);
        return all_digits ? refuse(row, path, node, 1, "") : not_a_number(row, path, node);
    }
    if (value > row_uint_high(row)) return refuse(row, path, node, 1, "");
    if (value < (uint64_t)row->low) return refuse(row, path, node, 0, "");
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status read_int(const struct key_row *row, const char *path,
                            const struct yaml_node *node, void *base) {
    int64_t value = 0;
    if (node->kind == YAML_PLAIN && is_ambiguous(node->text))
        return refuse_ambiguous(row, path, node);
    if (node->kind != YAML_PLAIN || number_parse_int(node->text, &value) != STATUS_OK)
        return not_a_number(row, path, node);
    if (value > (int64_t)row->high || value < (int64_t)row->low)
        return refuse(row, path, node, 1, "");
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

/* Whether a text is a decimal that no double holds. */
static int is_too_large(const char *text) {
    struct number_decimal decimal;
    double value;
    return number_read_decimal(text, strlen(text), &decimal) &&
           number_parse_real(text, NUMBER_FINITE, &value) != STATUS_OK;
}

static enum status read_real(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    double value = 0;
    if (node->kind == YAML_PLAIN && is_ambiguous(node->text))
        return refuse_ambiguous(row, path, node);
    if (node->kind == YAML_PLAIN && is_too_large(node->text))
        return refuse(row, path, node, 0, "; it is too large for a double");
    if (node->kind != YAML_PLAIN ||
        number_parse_real(node->text, NUMBER_FINITE, &value) != STATUS_OK)
        return not_a_number(row, path, node);
    size_t mantissa = strcspn(node->text, "eE");
    if (value == 0 && strcspn(node->text, "123456789") < mantissa)
        return refuse(row, path, node, 0, "; it is too small for a double");
    if (value > row->high || value < row->low) return refuse(row, path, node, 1, "");
    value += 0.0; /* -0 becomes +0, so that equal values are equal bytes */
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status unknown_name(const struct key_row *row, const char *path,
                                const struct yaml_node *node) {
    if (node->kind != YAML_PLAIN && node->kind != YAML_QUOTED)
        return refuse(row, path, node, 0, "");
    char hint[SYNONYM_HINT_SIZE];
    const struct synonym *synonym = synonym_of_value(path, node->text);
    if (synonym != NULL) return refuse(row, path, node, 0, synonym_hint(synonym, hint));
    struct suggestion suggestion = {.word = node->text};
    for (size_t i = 0; row->names[i] != NULL; i++)
        suggest_offer(&suggestion, row->names[i]);
    return refuse(row, path, node, 0, suggest_hint(&suggestion, hint));
}

static enum status read_enum(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    int scalar = node->kind == YAML_PLAIN || node->kind == YAML_QUOTED;
    int32_t value = scalar ? (int32_t)row_name_index(row, node->text) : -1;
    if (value < 0) return unknown_name(row, path, node);
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

static enum status unknown_item(const struct key_row *row, const char *path,
                                const struct yaml_node *item) {
    char want[ROW_EXPECTED_SIZE], got[YAML_TEXT_SIZE], hint[SYNONYM_HINT_SIZE];
    const int scalar = item->kind == YAML_PLAIN || item->kind == YAML_QUOTED;
    const struct synonym *synonym = scalar ? synonym_of_value(path, item->text) : NULL;
    struct suggestion suggestion = {.word = scalar ? item->text : ""};
    for (size_t i = 0; row->names[i] != NULL && scalar; i++)
        suggest_offer(&suggestion, row->names[i]);
    if (row_takes_pair(row) && scalar) suggest_offer(&suggestion, ROW_PAIR_WORD);
    return yaml_fail(item, "%s: expected one of %s, got %s%s", path,
                     row_expect(row, 0, want) + strlen(ROW_LIST_PREFIX), yaml_describe(item, got),
                     synonym != NULL ? synonym_hint(synonym, hint)
                                     : suggest_hint(&suggestion, hint));
}

/* Puts the indices of one word into `value`, at most two; returns 0 where the row has no such word.
 * The caller left room. */
static int take_item(const struct key_row *row, const char *word, struct key_list *value) {
    const int pair = strcmp(word, ROW_PAIR_WORD) == 0 && row_takes_pair(row);
    const int index = row_name_index(row, pair ? ROW_PAIR_FIRST : word);
    if (index < 0) return 0;
    value->item[value->count++] = (uint8_t)index;
    if (pair) value->item[value->count++] = (uint8_t)row_name_index(row, ROW_PAIR_SECOND);
    return 1;
}

static enum status read_list(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    if (node->kind != YAML_LIST) return refuse(row, path, node, 0, "");
    uint32_t entries = node->count;
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next)
        entries += item->text != NULL && strcmp(item->text, ROW_PAIR_WORD) == 0;
    if (entries > KEY_LIST_MAX)
        return yaml_fail(node, "%s: expected at most %d entries, got %u", path, KEY_LIST_MAX,
                         entries);
    struct key_list value = {0};
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        const int scalar = item->kind == YAML_PLAIN || item->kind == YAML_QUOTED;
        if (!scalar || !take_item(row, item->text, &value)) return unknown_item(row, path, item);
    }
    store(row, base, &value, sizeof value);
    return STATUS_OK;
}

int row_is_reserved(const char *text) {
    static const char *const words[] = {"true", "false", "null", "Null", "NULL", "~"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0) return 1;
    return is_number(text);
}

static enum status read_text(const struct key_row *row, const char *path,
                             const struct yaml_node *node, void *base) {
    if (node->kind != YAML_PLAIN && node->kind != YAML_QUOTED)
        return refuse(row, path, node, 0, "");
    if (node->kind == YAML_PLAIN && row_is_reserved(node->text))
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
    const uint64_t whole = KEY_WORD_UINT;
    const double real = KEY_WORD_REAL;
    const int32_t index = KEY_WORD_ENUM;
    if (row->type == KEY_UINT)
        store(row, base, &whole, sizeof whole);
    else if (row->type == KEY_REAL)
        store(row, base, &real, sizeof real);
    else if (row->type == KEY_ENUM)
        store(row, base, &index, sizeof index);
    else
        FAIL(STATUS_INTERNAL, "%s: a row of this type has no word", row->path);
    return STATUS_OK;
}

enum status row_read(const struct key_row *row, const char *path, const struct yaml_node *node,
                     void *base) {
    static enum status (*const readers[])(const struct key_row *, const char *,
                                          const struct yaml_node *, void *) = {
        [KEY_BOOL] = read_bool, [KEY_UINT] = read_uint, [KEY_INT] = read_int,
        [KEY_REAL] = read_real, [KEY_ENUM] = read_enum, [KEY_TEXT] = read_text,
        [KEY_LIST] = read_list};
    int may_be_word =
        node->kind == YAML_PLAIN || (node->kind == YAML_QUOTED && row->type == KEY_ENUM);
    if (row->word != NULL && may_be_word && strcmp(node->text, row->word) == 0)
        return read_word(row, base);
    if ((size_t)row->type >= COUNT_OF(readers))
        FAIL(STATUS_INTERNAL, "%s: row of unknown type %d", path, (int)row->type);
    return readers[row->type](row, path, node, base);
}

/* Makes a list node of a default such as "[a, b]", over `items` and `buffer`. */
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
