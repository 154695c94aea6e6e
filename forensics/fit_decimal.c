/* SPDX-License-Identifier: Apache-2.0
 * Short decimals, which is what people type as a learning rate, and whole numbers.
 *
 * Invariant: fit_shortest gives a number inside of its interval, or NaN where that is empty. */
#include <stdio.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_solve.h"

/* A power of ten with which x > 0 has one digit in front of the point, up to rounding. */
static double scale_of(double x) {
    double scale = 1.0;
    while (x * scale < 1.0 && scale < 1e300)
        scale *= 10.0;
    while (x * scale >= 10.0)
        scale *= 0.1;
    return scale;
}

/* Tells whether a decimal may lie within `half` of x > 0. It spares printing those that do not; its
 * own rounding, a few ulp, is allowed for. */
static int may_lie(double x, double half, double scale) {
    const double scaled = x * scale;
    return real_abs_f64(fit_round(scaled) - scaled) <= half * scale + 0x1p-44 * scaled;
}

/* Powers of ten up to this one are exact, and so are products of them. */
#define EXACT 1e22

/* Sets *out to the whole number of 1 / scale that is nearest to x > 0: what printing x and reading
 * it back gives, since the quotient of two exact numbers is rounded once. The product is off by
 * half an ulp at most, which takes it across no half that it does not meet or come near. Returns 0
 * where it does, and where scale or number are not exact. */
static int nearest_decimal(double x, double scale, double *out) {
    const double scaled = x * scale;
    if (!(scale >= 1.0 && scale <= EXACT && scaled >= 1.0 && scaled < 0x1p52)) return 0;
    const double whole = fit_floor(scaled), part = scaled - whole;
    if (real_abs_f64(part - 0.5) < 0x1p-20) return 0;
    *out = (part > 0.5 ? whole + 1.0 : whole) / scale;
    return 1;
}

/* Counts the significant digits of the shortest text of x. */
static int digits_of_text(double x) {
    struct number_text text = number_text_f64(real_abs_f64(x));
    int digits = 0, zeros = 0;
    for (const char *at = text.text; *at != '\0' && *at != 'e'; at++) {
        if (*at < '0' || *at > '9') continue;
        if (digits == 0 && *at == '0') continue;
        digits++;
        zeros = *at == '0' ? zeros + 1 : 0;
    }
    return digits - zeros > 0 ? digits - zeros : (x == 0.0 ? 0 : 1);
}

/* Two decimals of so many digits are two doubles (DBL_DIG), so the first one that x is has as many
 * digits as the shortest text. */
#define SURE 15

int fit_digits(double x) {
    const double size = real_abs_f64(x);
    double scale = size > 0.0 && size < 10.0 ? scale_of(size) : 0.0, decimal;
    for (int digits = 1; digits <= SURE && nearest_decimal(size, scale, &decimal); digits++) {
        if (decimal == size) return digits;
        scale *= 10.0;
    }
    return digits_of_text(x);
}

/* Prints any x with so many digits behind the first and reads it back. Returns 0 where it is not
 * finite. */
static int printed_decimal(double x, int behind, double *out) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", behind, x);
    return number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK;
}

double fit_shortest_of(double low, double high, int digits) {
    if (!(low <= high)) return real_nan_f64();
    const double middle = 0.5 * (low + high), half = 0.5 * (high - low);
    if (low <= 0.0 && high >= 0.0) return 0.0;
    double scale = middle > 0.0 ? scale_of(middle) : 1.0;
    /* Tenths are no exact scale; and where rounding alone made it 1, printing has one more digit.
     */
    const int exact = middle > 0.0 && middle < 10.0 && (middle == 1.0 || middle * scale > 1.0);
    /* One digit is enough for the peaks that most people type, as 1e-3. */
    if (middle * scale == 1.0 && scale <= EXACT && digits > 0) {
        const double one = 1.0 / scale;
        if (one >= low && one <= high) return one;
    }
    for (int behind = 0; behind < digits; behind++, scale *= 10.0) {
        double value;
        if (!exact || !nearest_decimal(middle, scale, &value)) {
            if (middle > 0.0 && behind < 16 && !may_lie(middle, half, scale)) continue;
            if (!printed_decimal(middle, behind, &value)) break;
        }
        if (value >= low && value <= high) return value;
    }
    return real_nan_f64();
}

double fit_shortest(double low, double high) {
    const double value = fit_shortest_of(low, high, 17);
    return value == value || !(low <= high) ? value : 0.5 * (low + high);
}

int fit_near(double a, double b) {
    return real_abs_f64(a - b) <= 1e-9 * real_abs_f64(b);
}

double fit_floor(double x) {
    return x >= 0.0 && x < 0x1p52 ? (double)(int64_t)x : x;
}

double fit_ceil(double x) {
    const double floor = fit_floor(x);
    return floor < x ? floor + 1.0 : floor;
}

double fit_round(double x) {
    return fit_floor(x + 0.5);
}
