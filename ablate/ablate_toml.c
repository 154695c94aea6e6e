/* SPDX-License-Identifier: Apache-2.0
 * One pass over the text, a function for each rule of toml.io/en/v1.0.0. Which keys may still be
 * added to which table is the part that readers disagree about: the rules here are those of
 * Python's tomllib, against which tests/python/test_toml.py holds this file. */
#include "ablate/ablate_toml.h"

#include <string.h>

#include "ablate/ablate_leaves.h"
#include "scenarios/textfile.h"

struct toml_reader {
    struct arena *arena;
    const char *source, *text;
    size_t length, at, line_start;
    int line;
    uint32_t nodes;
};

struct toml_key {
    const char *parts[YAML_DEPTH_MAX];
    uint32_t count;
    int line, column;
};

/* ---- the text ---- */

/* 0 is the end: plaintext_check lets no NUL pass. */
static char ahead(const struct toml_reader *r, size_t by) {
    return by < r->length - r->at ? r->text[r->at + by] : '\0';
}

static int column(const struct toml_reader *r) {
    return (int)(r->at - r->line_start) + 1;
}

static enum status expected(const struct toml_reader *r, const char *what) {
    const char c = ahead(r, 0);
    size_t length = 1; /* of the character, in UTF-8 */
    while (((unsigned char)ahead(r, length) & 0xc0) == 0x80)
        length++;
    if (c == '\0' || c == '\n' || (c == '\r' && ahead(r, 1) == '\n'))
        FAIL(STATUS_INPUT, "%s:%d:%d: error: expected %s, got the end of the %s", r->source,
             r->line, column(r), what, c == '\0' ? "file" : "line");
    if (c == '\r')
        FAIL(STATUS_INPUT, "%s:%d:%d: error: expected %s, got a carriage return without a newline",
             r->source, r->line, column(r), what);
    FAIL(STATUS_INPUT, "%s:%d:%d: error: expected %s, got \"%.*s\"", r->source, r->line, column(r),
         what, (int)length, r->text + r->at);
}

/* Passes the end of a line; 0 if there is none. */
static int pass_newline(struct toml_reader *r) {
    const size_t length = ahead(r, 0) == '\n'                          ? 1
                          : ahead(r, 0) == '\r' && ahead(r, 1) == '\n' ? 2
                                                                       : 0;
    if (length == 0) return 0;
    r->at += length;
    r->line++;
    r->line_start = r->at;
    return 1;
}

static void pass_blanks(struct toml_reader *r) {
    while (ahead(r, 0) == ' ' || ahead(r, 0) == '\t')
        r->at++;
}

static void pass_comment(struct toml_reader *r) {
    if (ahead(r, 0) != '#') return;
    while (ahead(r, 0) != '\0' && ahead(r, 0) != '\n' && ahead(r, 0) != '\r')
        r->at++;
}

static enum status pass_rest_of_line(struct toml_reader *r) {
    pass_blanks(r);
    pass_comment(r);
    return pass_newline(r) || r->at == r->length ? STATUS_OK : expected(r, "the end of the line");
}

/* Blanks, comments and ends of lines, as they may stand between the values of an array. */
static void pass_lines(struct toml_reader *r) {
    do {
        pass_blanks(r);
        pass_comment(r);
    } while (pass_newline(r));
}

/* ---- strings ---- */

static enum status put_point(struct ablate_pen *pen, uint32_t point) {
    char bytes[4];
    const size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--) {
        bytes[i] = (char)(0x80u | (point & 0x3fu));
        point >>= 6;
    }
    bytes[0] = (char)(lead[size] | point);
    return ablate_put(pen, bytes, size);
}

static enum status read_code(struct toml_reader *r, int digits, struct ablate_pen *out) {
    uint32_t point = 0;
    const int began = column(r) - 2;
    for (int i = 0; i < digits; i++, r->at++) {
        static const char hex[] = "0123456789abcdef";
        const char c = ahead(r, 0);
        const char *found = strchr(hex, c >= 'A' && c <= 'F' ? c + 32 : c);
        if (c == '\0' || found == NULL) return expected(r, "a hexadecimal digit");
        point = point << 4 | (uint32_t)(found - hex);
    }
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        FAIL(STATUS_INPUT, "%s:%d:%d: error: U+%04X is no character", r->source, r->line, began,
             (unsigned)point);
    if (point == 0)
        FAIL(STATUS_INPUT, "%s:%d:%d: error: a text with U+0000 cannot be kept", r->source, r->line,
             began);
    return put_point(out, point);
}

/* A backslash at the end of a line takes all blanks and ends of lines behind it away. */
static enum status pass_joined_lines(struct toml_reader *r) {
    pass_blanks(r);
    if (!pass_newline(r)) return expected(r, "the end of the line after a backslash");
    do
        pass_blanks(r);
    while (pass_newline(r));
    return STATUS_OK;
}

static enum status read_escape(struct toml_reader *r, int lines, struct ablate_pen *out) {
    static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    const char c = ahead(r, 1);
    const char *found = strchr(names, c);
    r->at++;
    if (c != '\0' && found != NULL) {
        r->at++;
        return ablate_put(out, &values[found - names], 1);
    }
    if (c == 'u' || c == 'U') {
        r->at++;
        return read_code(r, c == 'u' ? 4 : 8, out);
    }
    if (lines && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) return pass_joined_lines(r);
    return expected(r, "one of btnfr\"\\uU after a backslash");
}

/* How many quotes stand here, at most five: two that belong to the text, and three that end it. */
static size_t quotes(const struct toml_reader *r, char quote) {
    size_t count = 0;
    while (count < 5 && ahead(r, count) == quote)
        count++;
    return count;
}

static enum status read_lines(struct toml_reader *r, char quote, struct ablate_pen *out) {
    r->at += 3;
    pass_newline(r); /* the first one is not part of the text */
    for (;;) {
        const size_t run = quotes(r, quote);
        if (run >= 3) {
            r->at += run;
            return ablate_put(out, "\"\"''" + (quote == '"' ? 0 : 2), run - 3);
        }
        if (pass_newline(r)) {
            TRY(ablate_put(out, "\n", 1));
        } else if (ahead(r, 0) == '\0' || ahead(r, 0) == '\r') {
            return expected(r, quote == '"' ? "three quotes at the end of a text"
                                            : "three apostrophes at the end of a text");
        } else if (quote == '"' && ahead(r, 0) == '\\') {
            TRY(read_escape(r, 1, out));
        } else {
            TRY(ablate_put(out, r->text + r->at++, 1));
        }
    }
}

static enum status read_string(struct toml_reader *r, const char **out, int in_key) {
    const char quote = ahead(r, 0);
    struct ablate_pen pen = {.arena = r->arena};
    TRY(ablate_put_text(&pen, ""));
    if (!in_key && quotes(r, quote) >= 3) {
        TRY(read_lines(r, quote, &pen));
    } else {
        for (r->at++; ahead(r, 0) != quote;) {
            if (ahead(r, 0) == '\0' || ahead(r, 0) == '\n' || ahead(r, 0) == '\r')
                return expected(r, quote == '"' ? "a quote at the end of a text"
                                                : "an apostrophe at the end of a text");
            if (quote == '"' && ahead(r, 0) == '\\')
                TRY(read_escape(r, 0, &pen));
            else
                TRY(ablate_put(&pen, r->text + r->at++, 1));
        }
        r->at++;
    }
    *out = pen.text;
    return STATUS_OK;
}

/* ---- numbers and dates ---- */

/* Passes digits of a set, between which single underscores may stand; `at` where there is none. */
static size_t pass_digits(const char *text, size_t length, size_t at, const char *set) {
    if (at >= length || strchr(set, text[at]) == NULL) return at;
    for (at++; at < length; at++) {
        if (text[at] == '_' && at + 1 < length && strchr(set, text[at + 1]) != NULL) continue;
        if (strchr(set, text[at]) == NULL) break;
    }
    return at;
}

static int is_number(const char *text, size_t length) {
    static const char decimal[] = "0123456789";
    static const struct {
        char name;
        const char *set;
    } bases[] = {{'x', "0123456789abcdefABCDEF"}, {'o', "01234567"}, {'b', "01"}};
    size_t at = text[0] == '+' || text[0] == '-';
    for (size_t i = 0; at == 0 && length > 2 && text[0] == '0' && i < COUNT_OF(bases); i++)
        if (text[1] == bases[i].name) return pass_digits(text, length, 2, bases[i].set) == length;
    if (length - at == 3 && (memcmp(text + at, "inf", 3) == 0 || memcmp(text + at, "nan", 3) == 0))
        return 1;
    size_t end = at < length && text[at] == '0' ? at + 1 : pass_digits(text, length, at, decimal);
    if (end == at) return 0;
    if (end < length && text[end] == '.') {
        at = end + 1;
        end = pass_digits(text, length, at, decimal);
        if (end == at) return 0;
    }
    if (end < length && (text[end] == 'e' || text[end] == 'E')) {
        at = end + 1;
        at += at < length && (text[at] == '+' || text[at] == '-');
        end = pass_digits(text, length, at, decimal);
        if (end == at) return 0;
    }
    return end == length;
}

/* The number of `width` digits at `text`; -1 if other characters stand there. */
static int digits_at(const char *text, size_t width) {
    int value = 0;
    for (size_t i = 0; i < width; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

static int is_between(int value, int least, int most) {
    return value >= least && value <= most;
}

static int is_date(const char *text, size_t length) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (length < 10 || text[4] != '-' || text[7] != '-') return 0;
    const int year = digits_at(text, 4), month = digits_at(text + 5, 2);
    if (year < 0 || !is_between(month, 1, 12)) return 0;
    const int leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int most = days[month - 1] - (month == 2 && !leaps);
    return is_between(digits_at(text + 8, 2), 1, most);
}

static int is_clock(const char *text, size_t length, int may_have_zone) {
    if (length < 8 || text[2] != ':' || text[5] != ':' || !is_between(digits_at(text, 2), 0, 23) ||
        !is_between(digits_at(text + 3, 2), 0, 59) || !is_between(digits_at(text + 6, 2), 0, 59))
        return 0;
    size_t at = 8;
    if (at < length && text[at] == '.') {
        for (at++; at < length && digits_at(text + at, 1) >= 0;)
            at++;
        if (at == 9) return 0;
    }
    if (at == length) return 1;
    if (!may_have_zone) return 0;
    if (text[at] == 'Z' || text[at] == 'z') return at + 1 == length;
    return (text[at] == '+' || text[at] == '-') && length - at == 6 && text[at + 3] == ':' &&
           is_between(digits_at(text + at + 1, 2), 0, 23) &&
           is_between(digits_at(text + at + 4, 2), 0, 59);
}

static int is_moment(const char *text, size_t length) {
    if (!is_date(text, length)) return is_clock(text, length, 0);
    return length == 10 || (strchr("Tt ", text[10]) != NULL && /* no NUL is in the text */
                            is_clock(text + 11, length - 11, 1));
}

static enum status read_plain(struct toml_reader *r, struct yaml_node *node) {
    static const char ends[] = " \t\r\n,]}#";
    const char *const from = r->text + r->at;
    char description[YAML_TEXT_SIZE];
    size_t length = strcspn(from, ends);
    if (length == 10 && is_date(from, 10) && from[10] == ' ' && digits_at(from + 11, 1) >= 0)
        length = 11 + strcspn(from + 11, ends);
    if (length == 0) return expected(r, "a value");
    char *text;
    TRY(arena_text(r->arena, from, length, &text));
    node->kind = YAML_PLAIN;
    node->text = text;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0 && !is_number(text, length) &&
        !is_moment(text, length))
        return yaml_fail(node,
                         "expected a string, a number, a truth value, a date, an array or a table, "
                         "got %s",
                         yaml_describe(node, description));
    r->at += length;
    return STATUS_OK;
}

/* ---- tables ---- */

static struct toml_node *child_of(const struct toml_node *table, const char *key) {
    struct yaml_node *child =
        table->node.first; /* yaml_child gives one that is not to be changed */
    while (child != NULL && strcmp(child->key, key) != 0)
        child = child->next;
    return (struct toml_node *)child;
}

static enum status add_child(struct toml_reader *r, struct toml_node *parent, const char *key,
                             enum yaml_kind kind, struct toml_node **out) {
    struct toml_node *node;
    if (++r->nodes > YAML_NODES_MAX)
        FAIL(STATUS_INPUT, "%s:%d: error: more than %d values", r->source, r->line, YAML_NODES_MAX);
    if (parent->node.kind == YAML_MAP && parent->node.count == YAML_KEYS_MAX)
        FAIL(STATUS_INPUT, "%s:%d: error: more than %d keys in one table", r->source, r->line,
             YAML_KEYS_MAX);
    if (parent->depth == YAML_DEPTH_MAX)
        FAIL(STATUS_INPUT, "%s:%d:%d: error: more than %d levels deep", r->source, r->line,
             column(r), YAML_DEPTH_MAX);
    TRY(arena_take(r->arena, 1, sizeof *node, "a TOML value", &node));
    *node = (struct toml_node){
        .node = {.kind = kind, .source = r->source, .line = r->line, .column = column(r)},
        .depth = parent->depth + 1};
    node->node.key = key;
    node->node.key_line = r->line;
    node->node.key_column = column(r);
    if (parent->node.last == NULL)
        parent->node.first = &node->node;
    else
        parent->node.last->next = &node->node;
    parent->node.last = &node->node;
    parent->node.count++;
    *out = node;
    return STATUS_OK;
}

static enum status taken(const struct toml_reader *r, const struct toml_key *key, uint32_t part,
                         const struct toml_node *by) {
    const struct yaml_node name = {.kind = YAML_PLAIN, .text = key->parts[part]};
    const int is_table = by->node.kind == YAML_MAP || by->node.kind == YAML_LIST;
    char description[YAML_TEXT_SIZE];
    FAIL(STATUS_INPUT, "%s:%d:%d: error: %s is %s in line %d", r->source, key->line, key->column,
         yaml_describe(&name, description), is_table ? "defined" : "given a value", by->node.line);
}

/* Goes to the table of a part of a key, which is made where it is not there. Of an array of tables
 * that is the last one. */
static enum status enter(struct toml_reader *r, const struct toml_key *key, uint32_t part,
                         struct toml_node **table) {
    struct toml_node *child = child_of(*table, key->parts[part]);
    if (child == NULL) return add_child(r, *table, key->parts[part], YAML_MAP, table);
    if (!child->fixed && child->node.kind == YAML_LIST)
        child = (struct toml_node *)child->node.last;
    if (child->fixed || child->node.kind != YAML_MAP) return taken(r, key, part, child);
    *table = child;
    return STATUS_OK;
}

static enum status read_key(struct toml_reader *r, struct toml_key *out) {
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    *out = (struct toml_key){.line = r->line, .column = column(r)};
    for (;;) {
        const char *part;
        const char c = ahead(r, 0);
        const size_t length = strspn(r->text + r->at, bare);
        if (c == '"' || c == '\'') {
            TRY(read_string(r, &part, 1));
        } else if (length == 0) {
            return expected(r, "a key");
        } else {
            char *copy;
            TRY(arena_text(r->arena, r->text + r->at, length, &copy));
            part = copy;
            r->at += length;
        }
        if (out->count == YAML_DEPTH_MAX)
            FAIL(STATUS_INPUT, "%s:%d:%d: error: more than %d levels deep", r->source, r->line,
                 column(r), YAML_DEPTH_MAX);
        out->parts[out->count++] = part;
        pass_blanks(r);
        if (ahead(r, 0) != '.') return STATUS_OK;
        r->at++;
        pass_blanks(r);
    }
}

static enum status read_value(struct toml_reader *r, struct toml_node *value);

/* "key = value", into the table that it stands under. */
static enum status read_pair(struct toml_reader *r, struct toml_node *table) {
    struct toml_key key;
    struct toml_node *value;
    TRY(read_key(r, &key));
    if (ahead(r, 0) != '=') return expected(r, "\"=\" after a key");
    for (uint32_t i = 0; i + 1 < key.count; i++) {
        TRY(enter(r, &key, i, &table));
        /* One that dotted keys made under another header cannot be met here: that header stands on
         * the way to it. */
        if (table->declared) return taken(r, &key, i, table);
        table->dotted = 1;
    }
    value = child_of(table, key.parts[key.count - 1]);
    if (value != NULL) return taken(r, &key, key.count - 1, value);
    r->at++;
    pass_blanks(r);
    TRY(add_child(r, table, key.parts[key.count - 1], YAML_NULL, &value));
    value->node.key_line = key.line;
    value->node.key_column = key.column;
    return read_value(r, value);
}

static enum status read_array(struct toml_reader *r, struct toml_node *list) {
    list->node.kind = YAML_LIST;
    r->at++;
    for (;;) {
        struct toml_node *value;
        pass_lines(r);
        if (ahead(r, 0) == ']') break;
        TRY(add_child(r, list, NULL, YAML_NULL, &value));
        TRY(read_value(r, value));
        pass_lines(r);
        if (ahead(r, 0) == ']') break;
        if (ahead(r, 0) != ',') return expected(r, "\",\" or \"]\" in an array");
        r->at++;
    }
    r->at++;
    return STATUS_OK;
}

static enum status read_inline(struct toml_reader *r, struct toml_node *table) {
    table->node.kind = YAML_MAP;
    r->at++;
    pass_blanks(r);
    if (ahead(r, 0) == '}') {
        r->at++;
        return STATUS_OK;
    }
    for (;;) {
        TRY(read_pair(r, table));
        pass_blanks(r);
        if (ahead(r, 0) == '}') break;
        if (ahead(r, 0) != ',') return expected(r, "\",\" or \"}\" in a table on one line");
        r->at++;
        pass_blanks(r);
    }
    r->at++;
    return STATUS_OK;
}

static enum status read_value(struct toml_reader *r, struct toml_node *value) {
    value->from = r->at;
    switch (ahead(r, 0)) {
    case '"':
    case '\'':
        value->node.kind = YAML_QUOTED;
        TRY(read_string(r, &value->node.text, 0));
        break;
    case '[':
        TRY(read_array(r, value));
        break;
    case '{':
        TRY(read_inline(r, value));
        break;
    default:
        TRY(read_plain(r, &value->node));
        break;
    }
    value->to = r->at;
    value->fixed = 1;
    return STATUS_OK;
}

/* [table] or [[table]]; *out_table is where the keys behind it go. */
static enum status read_header(struct toml_reader *r, struct toml_node *root,
                               struct toml_node **out_table) {
    struct toml_node *table = root, *child;
    struct toml_key key;
    const int is_array = ahead(r, 1) == '[';
    r->at += is_array ? 2 : 1;
    pass_blanks(r);
    TRY(read_key(r, &key));
    for (uint32_t i = 0; i + 1 < key.count; i++)
        TRY(enter(r, &key, i, &table));
    child = child_of(table, key.parts[key.count - 1]);
    if (child != NULL && (child->fixed || child->node.kind != (is_array ? YAML_LIST : YAML_MAP) ||
                          (!is_array && (child->declared || child->dotted))))
        return taken(r, &key, key.count - 1, child);
    if (child == NULL)
        TRY(add_child(r, table, key.parts[key.count - 1], is_array ? YAML_LIST : YAML_MAP, &child));
    child->declared = 1;
    if (is_array) {
        TRY(add_child(r, child, NULL, YAML_MAP, &child));
        child->declared = 1;
    }
    if (ahead(r, 0) != ']' || (is_array && ahead(r, 1) != ']'))
        return expected(r, is_array ? "\"]]\" after the name of an array of tables"
                                    : "\"]\" after the name of a table");
    r->at += is_array ? 2 : 1;
    *out_table = child;
    return STATUS_OK;
}

enum status toml_parse(struct arena *arena, const char *source, const char *text, size_t length,
                       struct toml_node **out_root) {
    struct toml_reader reader = {.arena = arena,
                                 .source = source,
                                 .text = text,
                                 .length = length,
                                 .line = 1},
                       *const r = &reader;
    struct toml_node *root, *table;
    TRY(plaintext_check(source, text, length));
    TRY(arena_take(arena, 1, sizeof *root, "a TOML document", &root));
    root->node = (struct yaml_node){.kind = YAML_MAP, .source = source, .line = 1, .column = 1};
    table = root;
    while (r->at < length) {
        pass_blanks(r);
        if (ahead(r, 0) == '[')
            TRY(read_header(r, root, &table));
        else if (ahead(r, 0) != '\0' && strchr("#\r\n", ahead(r, 0)) == NULL)
            TRY(read_pair(r, table));
        TRY(pass_rest_of_line(r));
    }
    *out_root = root;
    return STATUS_OK;
}

/* ---- writing ---- */

static enum status put_key(struct ablate_pen *pen, const char *key) {
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    char *quoted;
    if (key[0] != '\0' && key[strspn(key, bare)] == '\0') return ablate_put_text(pen, key);
    TRY(leaves_quote(key, pen->arena, &quoted));
    return ablate_put_text(pen, quoted);
}

static enum status put_value(struct ablate_pen *pen, const struct yaml_node *value) {
    char *quoted;
    if (value->kind == YAML_PLAIN) return ablate_put_text(pen, value->text);
    if (value->kind == YAML_QUOTED) {
        TRY(leaves_quote(value->text, pen->arena, &quoted));
        return ablate_put_text(pen, quoted);
    }
    TRY(ablate_put_text(pen, value->kind == YAML_MAP ? "{" : "["));
    for (const struct yaml_node *child = value->first; child != NULL; child = child->next) {
        if (child != value->first) TRY(ablate_put_text(pen, ", "));
        if (value->kind == YAML_MAP) {
            TRY(put_key(pen, child->key));
            TRY(ablate_put_text(pen, " = "));
        }
        TRY(put_value(pen, child));
    }
    return ablate_put_text(pen, value->kind == YAML_MAP ? "}" : "]");
}

/* `above` is the table's own name, as it stands in a header; "" for the document. */
static enum status put_table(struct ablate_pen *pen, const struct yaml_node *table,
                             const char *above) {
    for (const struct yaml_node *child = table->first; child != NULL; child = child->next) {
        if (child->kind == YAML_MAP) continue;
        TRY(put_key(pen, child->key));
        TRY(ablate_put_text(pen, " = "));
        TRY(put_value(pen, child));
        TRY(ablate_put_text(pen, "\n"));
    }
    for (const struct yaml_node *child = table->first; child != NULL; child = child->next) {
        struct ablate_pen name = {.arena = pen->arena};
        if (child->kind != YAML_MAP) continue;
        TRY(ablate_put_text(&name, above));
        if (above[0] != '\0') TRY(ablate_put_text(&name, "."));
        TRY(put_key(&name, child->key));
        TRY(ablate_put_text(pen, "\n["));
        TRY(ablate_put_text(pen, name.text));
        TRY(ablate_put_text(pen, "]\n"));
        TRY(put_table(pen, child, name.text));
    }
    return STATUS_OK;
}

enum status toml_write(struct ablate_pen *pen, const struct yaml_node *root) {
    TRY(ablate_put_text(pen, ""));
    return put_table(pen, root, "");
}
