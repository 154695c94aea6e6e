/* SPDX-License-Identifier: Apache-2.0
 * A number as a log printed it: its value, and how finely it was printed.
 *
 * This file knows no column: whether short texts are rounded or shortest reprs is for
 * logs/build_finish.c to say. Invariant: what is accepted is one whole number, and its quantum is
 * the spacing of its last digit. */
#include "logs/build.h"

#include <string.h>

#include "base/number.h"
#include "base/real.h"

/* The longest decimal of a binary64 that printf("%f") writes has 316 characters; the rest is room
 * for more digits behind the point. */
#define TEXT_MAX 400

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int same_word(const char *text, size_t length, const char *word) {
    if (length != strlen(word)) return 0;
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 0x20) != word[i]) return 0;
    return 1;
}

/* Reads NaN and infinity as Python, C, numpy and JavaScript spell them. */
static int read_special(const char *text, size_t length, struct log_number *out) {
    const int negative = length > 0 && text[0] == '-';
    const size_t sign = length > 0 && (text[0] == '-' || text[0] == '+');
    out->quantum = 0.0;
    out->digits = 0;
    if (same_word(text + sign, length - sign, "nan")) {
        out->value = real_nan_f64();
        return 1;
    }
    if (!same_word(text + sign, length - sign, "inf") &&
        !same_word(text + sign, length - sign, "infinity"))
        return 0;
    out->value = negative ? -real_inf_f64() : real_inf_f64();
    return 1;
}

/* Checks the commas of "1,234,567.8": groups of three behind one to three digits, the first of
 * which is no 0 ("0,904" has a decimal comma), and only before the point. */
static int groups_are_whole(const char *text, size_t length) {
    size_t run = 0, commas = 0;
    const size_t first = text[0] == '-' || text[0] == '+';
    if (first < length && text[first] == '0') return 0;
    for (size_t i = first; i < length; i++) {
        if (is_digit(text[i])) {
            run++;
            continue;
        }
        if (commas > 0 && run != 3) return 0;
        if (text[i] != ',') return memchr(text + i, ',', length - i) == NULL;
        if (run == 0 || run > 3) return 0;
        commas++;
        run = 0;
    }
    return commas == 0 || run == 3;
}

/* Copies the text without its commas and ends it with a NUL. */
static int copy_plain(const char *text, size_t length, char plain[TEXT_MAX + 1]) {
    size_t kept = 0;
    if (length == 0 || length > TEXT_MAX) return 0;
    if (memchr(text, ',', length) != NULL && !groups_are_whole(text, length)) return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0') return 0;
        if (text[i] != ',') plain[kept++] = text[i];
    }
    plain[kept] = '\0';
    return 1;
}

/* Returns 10^power, correctly rounded; beyond binary64 its ends. The table saves parsing a text for
 * the powers that logs print; each literal in it is rounded correctly by the compiler. */
double log_power_of_ten(int power) {
    static const double small[] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,
                                   1e-9,  1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
                                   1e-18, 1e-19, 1e-20, 1e-21, 1e-22, 1e-23, 1e-24, 1e-25, 1e-26};
    if (power <= 0 && -power < (int)COUNT_OF(small)) return small[-power];
    if (power < -323) return 0x1p-1074;
    if (power > 308) return real_inf_f64();
    char digits[8] = {'1', 'e', power < 0 ? '-' : '+'};
    const int size = power < 0 ? -power : power;
    digits[3] = (char)('0' + size / 100);
    digits[4] = (char)('0' + size / 10 % 10);
    digits[5] = (char)('0' + size % 10);
    double value;
    return number_parse_real(digits, NUMBER_FINITE, &value) == STATUS_OK ? value : 0.0;
}

static int has_power(const char *text, size_t length) {
    return memchr(text, 'e', length) != NULL || memchr(text, 'E', length) != NULL;
}

void log_show(const char *text, size_t length, char *out, size_t room) {
    size_t kept = 0;
    for (; kept < length && kept + 1 < room; kept++)
        out[kept] = text[kept] >= ' ' && text[kept] <= '~' ? text[kept] : '?';
    out[kept] = '\0';
}

int log_number_read(const char *text, size_t length, struct log_number *out) {
    char plain[TEXT_MAX + 1];
    struct number_decimal read;
    if (length == 0 || length > TEXT_MAX) return 0;
    if (!number_read_decimal(text, length, &read)) {
        if (read_special(text, length, out)) return 1;
        if (!copy_plain(text, length, plain)) return 0;
        return memchr(text, ',', length) != NULL && log_number_read(plain, strlen(plain), out);
    }
    /* printf("%E") writes "0.000E+00" for no number but 0, so it is exact. */
    const int is_exact = read.value == 0.0 && has_power(text, length);
    if (read.value != read.value) { /* it has too many digits, or too large a power */
        if (!copy_plain(text, length, plain)) return 0;
        if (number_parse_real(plain, NUMBER_FINITE, &read.value) != STATUS_OK) return 0;
    }
    out->value = read.value;
    out->digits = read.digits;
    out->quantum = is_exact ? 0.0 : log_power_of_ten(read.place);
    return 1;
}

double log_float_spacing(double value) {
    const float size = (float)(value < 0.0 ? -value : value);
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    if (bits >= 0x7f800000u) return 0.0;
    if (bits == 0x7f7fffffu) return 0x1p104;
    bits++;
    float next;
    memcpy(&next, &bits, sizeof next);
    return (double)next - (double)size;
}
