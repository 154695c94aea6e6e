/* SPDX-License-Identifier: Apache-2.0
 * Short decimals, which is what people type as a learning rate, and whole numbers.
 *
 * Invariant: fit_shortest gives a number inside of its interval, or NaN where that is empty. */
#include <stdio.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_solve.h"

int fit_digits(double x) {
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

double fit_shortest(double low, double high) {
    if (!(low <= high)) return real_nan_f64();
    const double middle = 0.5 * (low + high);
    if (low <= 0.0 && high >= 0.0) return 0.0;
    for (int digits = 0; digits < 17; digits++) {
        char text[64];
        double value;
        snprintf(text, sizeof text, "%.*e", digits, middle);
        if (number_parse_real(text, NUMBER_FINITE, &value) != STATUS_OK) break;
        if (value >= low && value <= high) return value;
    }
    return middle;
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
