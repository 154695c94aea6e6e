/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads numbers. printf and strtod do the exact work, inside the C locale of this
 * thread. The grammar is checked here first, because strtod also takes blanks, prefixes, hex
 * floats, "infinity" and "nan(...)". */
#include "base/number.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"

/* The C locale and the thread's locale before it. glibc and musl return a static object for "C", so
 * entering it cannot run out of memory there. If newlocale fails all the same, uselocale(0) leaves
 * the locale as it is. */
struct c_locale {
    locale_t c;
    locale_t before;
};

static struct c_locale c_locale_enter(void) {
    struct c_locale l;
    l.c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    l.before = uselocale(l.c);
    return l;
}

static void c_locale_leave(struct c_locale l) {
    uselocale(l.before);
    if (l.c != (locale_t)0) freelocale(l.c);
}

/* ---- to text ---- */

struct format {
    int digits;    /* this many digits read back as the same bits, whatever the value */
    int integers;  /* exponents from -4 up to one less than this are written without "e" */
    int single;    /* the value is a float, and reading back compares as float */
    int sure;      /* a decimal of so many digits comes back from a normal number (DBL_DIG) */
    double normal; /* the least normal number */
};

static const struct format format_f64 = {
    .digits = 17, .integers = 15, .sure = DBL_DIG, .normal = DBL_MIN};
static const struct format format_f32 = {
    .digits = 9, .integers = 7, .single = 1, .sure = FLT_DIG, .normal = (double)FLT_MIN};

static int special_text(double x, char *text) {
    if (real_finite_f64(x)) return 0;
    strcpy(text, x != x ? "nan" : x > 0.0 ? "inf" : "-inf");
    return 1;
}

/* Writes x with so many significant digits, and tells whether the text reads back as x. */
static int reads_back(double x, int digits, struct format format, char *text, size_t size) {
    snprintf(text, size, "%.*e", digits - 1, x);
    return (format.single ? (double)strtof(text, NULL) : strtod(text, NULL)) == x;
}

/* Significant digits of a text that "%e" wrote, zeros at their end apart. */
static int digits_of(const char *text) {
    int digits = 0, last = 1;
    for (; *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        digits++;
        if (*text != '0') last = digits;
    }
    return last;
}

/* The least number of significant digits whose text reads back as x. A decimal of at most `sure`
 * digits comes back from a normal number with all of its digits: if one reads back as x, then x
 * written with `sure` digits is that decimal and zeros. Where it does not read back, more digits
 * are needed; they are tried one by one, as are all of them for a subnormal number, whose decimals
 * need not come back. */
static int shortest_digits(double x, struct format format, char *text, size_t size) {
    const double magnitude = real_abs_f64(x);
    int digits = 1;
    if (magnitude == 0.0) return digits;
    if (magnitude >= format.normal) {
        if (reads_back(x, format.sure, format, text, size)) return digits_of(text);
        digits = format.sure + 1;
    }
    while (digits < format.digits && !reads_back(x, digits, format, text, size))
        digits++;
    return digits;
}

/* printf's rounding is correct, so what reads back with the fewest digits is the shortest text. */
static struct number_text shortest(double x, struct format format) {
    struct number_text out = {{0}};
    if (special_text(x, out.text)) return out;
    struct c_locale locale = c_locale_enter();
    const int digits = shortest_digits(x, format, out.text, sizeof out.text);
    snprintf(out.text, sizeof out.text, "%.*e", digits - 1, x);
    const char *mark = strchr(out.text, 'e');
    int exponent = mark != NULL ? (int)strtol(mark + 1, NULL, 10) : 0;
    if (exponent >= -4 && exponent < format.integers) {
        int decimals = digits - 1 - exponent;
        snprintf(out.text, sizeof out.text, "%.*f", decimals > 0 ? decimals : 0, x);
    }
    c_locale_leave(locale);
    return out;
}

struct number_text number_text_f64(double x) {
    return shortest(x, format_f64);
}

struct number_text number_text_f32(float x) {
    return shortest((double)x, format_f32);
}

struct number_text number_hex_f64(double x) {
    struct number_text out = {{0}};
    if (special_text(x, out.text)) return out;
    struct c_locale locale = c_locale_enter();
    snprintf(out.text, sizeof out.text, "%a", x);
    c_locale_leave(locale);
    return out;
}

/* ---- from text ---- */

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *skip_sign(const char *s) {
    return *s == '+' || *s == '-' ? s + 1 : s;
}

/* Tells whether the text is [+-] 0x digits [. digits] [p [+-] digits], with at least one digit. */
static int is_hex_float(const char *s) {
    int digits = 0, points = 0;
    s = skip_sign(s);
    if (s[0] != '0' || (s[1] | 0x20) != 'x') return 0;
    for (s += 2; is_hex(*s) || (*s == '.' && points++ == 0); s++)
        digits += *s != '.';
    if (digits == 0 || *s == '\0') return digits > 0;
    if ((*s | 0x20) != 'p') return 0;
    s = skip_sign(s + 1);
    if (!is_digit(*s)) return 0;
    while (is_digit(*s))
        s++;
    return *s == '\0';
}

/* A decimal while it is read. The exponent stops growing where no decimal is a number any more, so
 * that it cannot overflow. */
struct decimal {
    uint64_t digits;     /* as an integer, while they are few */
    int64_t count;       /* digits in front of the exponent */
    int64_t decimals;    /* those of them behind the point */
    int64_t significant; /* those from the first that is no 0 */
    int64_t exponent;
    int negative;
    int many; /* `digits` has no room for all of them */
};

#define EXPONENT_MOST INT64_C(100000)

static const char *scan_digits(const char *s, const char *end, struct decimal *d) {
    const char *const first = s;
    for (; s < end && is_digit(*s); s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (d->digits <= (UINT64_MAX - 9) / 10)
            d->digits = 10 * d->digits + digit;
        else
            d->many = 1;
        d->significant += d->digits != 0;
    }
    d->count += s - first;
    return s;
}

/* Reads [+-] digits [. digits] [e [+-] digits]. Returns 0 where the text is anything else. */
static int scan_decimal(const char *s, const char *end, struct decimal *d) {
    *d = (struct decimal){.digits = 0};
    if (s < end && (*s == '+' || *s == '-')) d->negative = *s++ == '-';
    s = scan_digits(s, end, d);
    if (s < end && *s == '.') {
        const int64_t whole = d->count;
        s = scan_digits(s + 1, end, d);
        d->decimals = d->count - whole;
    }
    if (d->count == 0) return 0;
    if (s == end) return 1;
    if ((*s++ | 0x20) != 'e') return 0;
    const int falls = s < end && *s == '-';
    if (s < end && (*s == '+' || *s == '-')) s++;
    if (s == end) return 0;
    for (; s < end && is_digit(*s); s++)
        if (d->exponent < EXPONENT_MOST) d->exponent = 10 * d->exponent + (*s - '0');
    if (falls) d->exponent = -d->exponent;
    return s == end;
}

static int read_special(const char *s, double *out) {
    if (strcmp(s, "nan") != 0 && strcmp(skip_sign(s), "inf") != 0) return 0;
    *out = s[0] == 'n' ? real_nan_f64() : s[0] == '-' ? -real_inf_f64() : real_inf_f64();
    return 1;
}

/* Powers of ten that a double is exactly, and powers of five below 2^63. */
#define TENS 23
#define FIVES 28

/* Returns digits / 10^places, rounded once, to the nearest double, for digits > 0 and places <
 * FIVES: the quotient of the digits and 5^places, both shifted up to bit 63, has 63 bits or 64, and
 * what is left over only says on which side of a tie it lies. The rest is a power of two. */
static double divide_once(uint64_t digits, int places) {
    __extension__ typedef unsigned __int128 wide;
    uint64_t fives = 1;
    for (int i = 0; i < places; i++)
        fives *= 5;
    const int up = __builtin_clzll(digits), down = __builtin_clzll(fives);
    const wide high = (wide)(digits << up) << 63;
    const uint64_t divisor = fives << down;
    const uint64_t quotient = (uint64_t)(high / divisor);
    const uint64_t odd = (wide)quotient * divisor != high;
    const uint64_t exponent = (uint64_t)(1023 - 63 + down - up - places);
    return (double)(quotient | odd) * real_from_bits_f64(exponent << 52);
}

/* Gives the value of a decimal of up to 19 digits. Where these, taken as an integer, and their
 * power of ten are both exact as f64, one product or quotient rounds once, as strtod does (Clinger,
 * "How to Read Floating Point Numbers Accurately", PLDI 1990); so does divide_once, which learning
 * rates of 16 and 17 digits need. Most numbers of a log are such, and strtod takes several times as
 * long. Returns 0 for any other decimal. */
static int value_of(const struct decimal *d, double *out) {
    static const double power[TENS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t shift = d->exponent - d->decimals;
    double value;
    if (d->digits == 0)
        value = 0.0;
    else if (d->many || shift <= -FIVES || shift >= TENS)
        return 0;
    else if (d->digits < UINT64_C(1) << 53 && shift > -TENS)
        value = shift < 0 ? (double)d->digits / power[-shift] : (double)d->digits * power[shift];
    else if (shift <= 0)
        value = divide_once(d->digits, (int)-shift);
    else
        return 0;
    *out = d->negative ? -value : value;
    return 1;
}

int number_read_decimal(const char *text, size_t length, struct number_decimal *out) {
    struct decimal d;
    if (!scan_decimal(text, text + length, &d)) return 0;
    const int64_t most = INT32_MAX, place = d.exponent - d.decimals;
    out->digits = (int)(d.significant == 0 ? 1 : d.significant < most ? d.significant : most);
    out->place = (int)(place > -most ? place : -most);
    if (!value_of(&d, &out->value)) out->value = real_nan_f64();
    return 1;
}

/* A text as an error shows it: at most 40 characters, with '?' for each that is not printable
 * ASCII. */
struct shown {
    char text[48];
};

static struct shown show(const char *text) {
    struct shown out = {{0}};
    size_t i = 0;
    for (; i < 40 && text[i] != '\0'; i++)
        out.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    if (text[i] != '\0') strcpy(out.text + i, "...");
    return out;
}

enum status number_parse_real(const char *text, unsigned flags, double *out) {
    if ((flags & NUMBER_SPECIAL) != 0 && read_special(text, out)) return STATUS_OK;
    struct decimal d;
    if (scan_decimal(text, text + strlen(text), &d)) {
        if (value_of(&d, out)) return STATUS_OK;
    } else if ((flags & NUMBER_HEX) == 0 || !is_hex_float(text)) {
        FAIL(STATUS_INPUT, "expected a number, got \"%s\"", show(text).text);
    }
    struct c_locale locale = c_locale_enter();
    double value = strtod(text, NULL);
    c_locale_leave(locale);
    if (!real_finite_f64(value))
        FAIL(STATUS_INPUT, "expected a number below 1.8e308 in size, got \"%s\"", show(text).text);
    *out = value;
    return STATUS_OK;
}

static int is_integer(const char *s) {
    size_t count = 0;
    while (is_digit(s[count]))
        count++;
    return count > 0 && s[count] == '\0';
}

enum status number_parse_int(const char *text, int64_t *out) {
    errno = 0;
    long long value = is_integer(skip_sign(text)) ? strtoll(text, NULL, 10) : 0;
    if (!is_integer(skip_sign(text)))
        FAIL(STATUS_INPUT, "expected an integer, got \"%s\"", show(text).text);
    if (errno == ERANGE)
        FAIL(STATUS_INPUT, "expected an integer from %" PRId64 " to %" PRId64 ", got \"%s\"",
             INT64_MIN, INT64_MAX, show(text).text);
    *out = (int64_t)value;
    return STATUS_OK;
}

enum status number_parse_uint(const char *text, uint64_t *out) {
    const char *digits = *text == '+' ? text + 1 : text;
    errno = 0;
    unsigned long long value = is_integer(digits) ? strtoull(digits, NULL, 10) : 0;
    if (!is_integer(digits))
        FAIL(STATUS_INPUT, "expected an integer >= 0, got \"%s\"", show(text).text);
    if (errno == ERANGE)
        FAIL(STATUS_INPUT, "expected an integer from 0 to %" PRIu64 ", got \"%s\"", UINT64_MAX,
             show(text).text);
    *out = (uint64_t)value;
    return STATUS_OK;
}
