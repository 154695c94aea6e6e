/* SPDX-License-Identifier: Apache-2.0
 * One token at a time, from the bytes where they lie. A state (`wants`) says what may come next, so
 * no bracket needs a recursive call. */
#include "logs/scan.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"

enum wants {
    WANTS_VALUE,        /* or the end, when outside of all brackets */
    WANTS_FIRST_KEY,    /* or '}' */
    WANTS_COLON_VALUE,  /* the colon and the value behind a key */
    WANTS_FIRST_ITEM,   /* or ']' */
    WANTS_COMMA_OR_END, /* a comma or the bracket's end, behind a value in brackets */
};

static const char *const token_names[] = {
    [SCAN_END] = "the end",     [SCAN_OBJECT] = "an object ('{')",
    [SCAN_OBJECT_END] = "'}'",  [SCAN_ARRAY] = "a list ('[')",
    [SCAN_ARRAY_END] = "']'",   [SCAN_KEY] = "a name",
    [SCAN_STRING] = "a string", [SCAN_NUMBER] = "a number",
    [SCAN_TRUE] = "true",       [SCAN_FALSE] = "false",
    [SCAN_NULL] = "null",
};

void scan_open(struct scan *scan, const struct log_source *source) {
    scan->source = source;
    scan->at = scan->line_start = scan->start = 0;
    scan->line = 1;
    scan->depth = 0;
    scan->objects = 0;
    scan->wants = WANTS_VALUE;
    scan->token = SCAN_END;
    scan->text = "";
    scan->length = 0;
    scan->cut = 0;
}

/* ---- errors ---- */

static enum status fail_at(struct scan *scan, size_t at, const char *what) {
    const struct log_source *source = scan->source;
    const size_t column = at - scan->line_start + 1;
    char shown[25];
    if (at >= source->length) {
        scan->cut = 1;
        FAIL(STATUS_INPUT, "%s:%" PRIu32 ":%zu: expected %s, got the end of the file", source->name,
             scan->line, column, what);
    }
    const char *text = (const char *)source->bytes + at;
    const void *end = memchr(text, '\n', source->length - at);
    log_show(text, end == NULL ? source->length - at : (size_t)((const char *)end - text), shown,
             sizeof shown);
    FAIL(STATUS_INPUT, "%s:%" PRIu32 ":%zu: expected %s, got \"%s\"", source->name, scan->line,
         column, what, shown);
}

enum status scan_fail(struct scan *scan, const char *what) {
    return fail_at(scan, scan->start, what);
}

enum status scan_expect(struct scan *scan, enum scan_token token) {
    return scan->token == token ? STATUS_OK : scan_fail(scan, token_names[token]);
}

/* ---- bytes ---- */

static int peek(const struct scan *scan) {
    return scan->at < scan->source->length ? scan->source->bytes[scan->at] : -1;
}

static void skip_blanks(struct scan *scan) {
    for (;; scan->at++) {
        const int c = peek(scan);
        if (c == '\n') {
            scan->line++;
            scan->line_start = scan->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

/* ---- strings ---- */

static int hex_digit(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the four digits behind \u. Returns -1 when they are none. */
static int32_t read_unit(struct scan *scan) {
    int32_t unit = 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        const int digit = peek(scan) < 0 ? -1 : hex_digit(peek(scan));
        if (digit < 0) return -1;
        unit = 16 * unit + digit;
    }
    return unit;
}

static void keep(struct scan *scan, unsigned c) {
    if (scan->length < SCAN_TEXT) scan->buffer[scan->length++] = (char)c;
}

static void keep_code_point(struct scan *scan, uint32_t c) {
    if (c < 0x80) {
        keep(scan, c);
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned first[] = {0, 0xc0, 0xe0, 0xf0};
    keep(scan, first[more] | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        keep(scan, 0x80 | ((c >> (6 * i)) & 0x3f));
}

/* Reads the code point behind \u. A surrogate without its other half becomes U+FFFD. */
static enum status read_code_point(struct scan *scan) {
    int32_t unit = read_unit(scan);
    if (unit < 0) return fail_at(scan, scan->at, "four hex digits behind \\u");
    if (unit >= 0xd800 && unit < 0xdc00 && peek(scan) == '\\') {
        const size_t back = scan->at;
        scan->at += 1;
        if (peek(scan) == 'u') {
            scan->at += 1;
            const int32_t low = read_unit(scan);
            if (low >= 0xdc00 && low < 0xe000) {
                keep_code_point(scan, 0x10000u + (((uint32_t)unit - 0xd800u) << 10) +
                                          ((uint32_t)low - 0xdc00u));
                return STATUS_OK;
            }
        }
        scan->at = back;
    }
    keep_code_point(scan, unit >= 0xd800 && unit < 0xe000 ? 0xfffdu : (uint32_t)unit);
    return STATUS_OK;
}

static enum status read_escape(struct scan *scan) {
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const int c = peek(scan);
    if (c == 'u') {
        scan->at++;
        return read_code_point(scan);
    }
    const char *at = c > 0 ? strchr(letters, c) : NULL;
    if (at == NULL) return fail_at(scan, scan->at, "one of \"\\/bfnrtu behind a backslash");
    keep(scan, (unsigned char)bytes[at - letters]);
    scan->at++;
    return STATUS_OK;
}

/* Reads a string from its quote on. A string without an escape stays where it lies. */
static enum status read_string(struct scan *scan) {
    const size_t start = ++scan->at;
    int escaped = 0;
    scan->length = 0;
    for (;;) {
        const int c = peek(scan);
        if (c == '"') break;
        if (c < 0x20) return fail_at(scan, scan->at, "'\"' at the end of the string");
        if (c == '\\') {
            if (!escaped) {
                const size_t before = scan->at - start;
                scan->length = before < SCAN_TEXT ? before : SCAN_TEXT;
                memcpy(scan->buffer, scan->source->bytes + start, scan->length);
            }
            escaped = 1;
            scan->at++;
            TRY(read_escape(scan));
            continue;
        }
        if (escaped) keep(scan, (unsigned)c);
        scan->at++;
    }
    scan->text = escaped ? scan->buffer : (const char *)scan->source->bytes + start;
    if (!escaped) scan->length = scan->at - start;
    scan->at++;
    return STATUS_OK;
}

/* ---- words and numbers ---- */

static int is_word(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-' || c == '_';
}

int scan_is(const struct scan *scan, const char *text) {
    return scan->length == strlen(text) && memcmp(scan->text, text, scan->length) == 0;
}

/* Checks the grammar [-] digits [. digits] [e [sign] digits]. ".5" and "5.", which Python and some
 * C printers write, are refused. */
static int is_number(const char *s, size_t length) {
    size_t i = 0, digits = 0;
    if (i < length && s[i] == '-') i++;
    for (; i < length && s[i] >= '0' && s[i] <= '9'; i++)
        digits++;
    if (digits == 0) return 0;
    if (i < length && s[i] == '.') {
        for (i++, digits = 0; i < length && s[i] >= '0' && s[i] <= '9'; i++)
            digits++;
        if (digits == 0) return 0;
    }
    if (i < length && (s[i] | 0x20) == 'e') {
        i++;
        if (i < length && (s[i] == '+' || s[i] == '-')) i++;
        for (digits = 0; i < length && s[i] >= '0' && s[i] <= '9'; i++)
            digits++;
        if (digits == 0) return 0;
    }
    return i == length;
}

static int is_special(const struct scan *scan) {
    return scan_is(scan, "NaN") || scan_is(scan, "Infinity") || scan_is(scan, "-Infinity") ||
           scan_is(scan, "nan") || scan_is(scan, "inf") || scan_is(scan, "-inf");
}

static enum status read_word(struct scan *scan) {
    const size_t start = scan->at;
    while (is_word(peek(scan)))
        scan->at++;
    scan->text = (const char *)scan->source->bytes + start;
    scan->length = scan->at - start;
    if (is_number(scan->text, scan->length) || is_special(scan))
        scan->token = SCAN_NUMBER;
    else if (scan_is(scan, "true"))
        scan->token = SCAN_TRUE;
    else if (scan_is(scan, "false"))
        scan->token = SCAN_FALSE;
    else if (scan_is(scan, "null"))
        scan->token = SCAN_NULL;
    else if (scan->at == scan->source->length) /* "tru", "1e": the file was cut */
        return fail_at(scan, scan->at, "the rest of a value");
    else
        return fail_at(scan, start, "a value");
    return STATUS_OK;
}

/* ---- structure ---- */

static int in_object(const struct scan *scan) {
    return scan->depth > 0 && ((scan->objects >> (scan->depth - 1)) & 1) != 0;
}

static void value_is_over(struct scan *scan) {
    scan->wants = scan->depth == 0 ? WANTS_VALUE : WANTS_COMMA_OR_END;
}

static enum status open_bracket(struct scan *scan, int object) {
    if (scan->depth == SCAN_DEPTH)
        return fail_at(scan, scan->at, "at most 64 brackets inside each other");
    scan->objects &= ~((uint64_t)1 << scan->depth);
    scan->objects |= (uint64_t)object << scan->depth;
    scan->depth++;
    scan->at++;
    scan->token = object ? SCAN_OBJECT : SCAN_ARRAY;
    scan->wants = object ? WANTS_FIRST_KEY : WANTS_FIRST_ITEM;
    return STATUS_OK;
}

static void close_bracket(struct scan *scan) {
    scan->token = in_object(scan) ? SCAN_OBJECT_END : SCAN_ARRAY_END;
    scan->depth--;
    scan->at++;
    value_is_over(scan);
}

static enum status read_value(struct scan *scan) {
    const int c = peek(scan);
    scan->start = scan->at;
    if (c == '{' || c == '[') return open_bracket(scan, c == '{');
    if (c == '"') {
        scan->token = SCAN_STRING;
        TRY(read_string(scan));
    } else if (is_word(c)) {
        TRY(read_word(scan));
    } else {
        return fail_at(scan, scan->at, "a value");
    }
    value_is_over(scan);
    return STATUS_OK;
}

static enum status read_key(struct scan *scan) {
    scan->start = scan->at;
    if (peek(scan) != '"') return fail_at(scan, scan->at, "a name in double quotes");
    scan->token = SCAN_KEY;
    scan->wants = WANTS_COLON_VALUE;
    return read_string(scan);
}

/* Reads what may stand behind a value in brackets: the closing bracket, or a comma and what follows
 * it. */
static enum status read_comma(struct scan *scan) {
    const int closer = in_object(scan) ? '}' : ']';
    scan->start = scan->at;
    if (peek(scan) == closer) {
        close_bracket(scan);
        return STATUS_OK;
    }
    if (peek(scan) != ',')
        return fail_at(scan, scan->at, closer == '}' ? "',' or '}'" : "',' or ']'");
    scan->at++;
    skip_blanks(scan);
    return in_object(scan) ? read_key(scan) : read_value(scan);
}

enum status scan_next(struct scan *scan) {
    skip_blanks(scan);
    const int c = peek(scan);
    scan->start = scan->at;
    switch (scan->wants) {
    case WANTS_COMMA_OR_END:
        return read_comma(scan);
    case WANTS_COLON_VALUE:
        if (c != ':') return fail_at(scan, scan->at, "':'");
        scan->at++;
        skip_blanks(scan);
        return read_value(scan);
    case WANTS_FIRST_KEY:
        if (c != '}') return read_key(scan);
        close_bracket(scan);
        return STATUS_OK;
    case WANTS_FIRST_ITEM:
        if (c != ']') return read_value(scan);
        close_bracket(scan);
        return STATUS_OK;
    default:
        if (c >= 0) return read_value(scan);
        scan->token = SCAN_END;
        return STATUS_OK;
    }
}

enum status scan_skip(struct scan *scan) {
    const int depth = scan->depth - (scan->token == SCAN_OBJECT || scan->token == SCAN_ARRAY);
    while (scan->depth > depth)
        TRY(scan_next(scan));
    return STATUS_OK;
}

int scan_integer(const char *text, size_t length, int64_t *out) {
    char digits[24];
    size_t kept = length;
    if (length > 2 && memcmp(text + length - 2, ".0", 2) == 0) kept -= 2;
    if (kept == 0 || kept >= sizeof digits) return 0;
    memcpy(digits, text, kept);
    digits[kept] = '\0';
    if (memchr(digits, '\0', kept) != NULL) return 0;
    return number_parse_int(digits, out) == STATUS_OK;
}
