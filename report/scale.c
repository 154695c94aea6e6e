/* SPDX-License-Identifier: Apache-2.0
 * Finds round numbers for an axis. Powers of ten are read from their decimal text, so that a tick
 * and its label are the same number to the last bit; no logarithm decides where a decade begins. */
#include "report/scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"

#define LEAST_EXPONENT (-323)
#define MOST_EXPONENT 308
#define TINY 1e-300 /* sizes outside of TINY to HUGE_SIZE lie at the edge of their axis */
#define HUGE_SIZE 1e300

static double decimal(int64_t mantissa, int exponent) {
    char text[40];
    double value;
    snprintf(text, sizeof text, "%" PRId64 "e%d", mantissa, exponent);
    return number_parse_real(text, NUMBER_FINITE, &value) == STATUS_OK ? value : real_inf_f64();
}

/* The largest e with 10^e <= value, for a value above 0. */
static int exponent_of(double value) {
    int low = LEAST_EXPONENT, high = MOST_EXPONENT;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (decimal(1, middle) <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static double rounded_down(double value) {
    const double cut = (double)(int64_t)value;
    return cut > value ? cut - 1.0 : cut;
}

/* Prints mantissa * 10^exponent as a person writes it: 0.6935, 250, 5e-07. */
static void print_label(int64_t mantissa, int exponent, char out[SCALE_LABEL]) {
    const double value = decimal(mantissa, exponent), size = real_abs_f64(value);
    const int decimals = exponent < 0 ? -exponent : 0;
    if (mantissa == 0)
        snprintf(out, SCALE_LABEL, "0");
    else if (size < 1e7 && decimals <= 14 && (decimals <= 6 || size >= 1e-3))
        snprintf(out, SCALE_LABEL, "%.*f", decimals, value);
    else
        snprintf(out, SCALE_LABEL, "%s", number_text_f64(value).text);
}

static void add_tick(struct scale *scale, int64_t mantissa, int exponent) {
    if (scale->count == SCALE_TICKS_MAX) return;
    char *label = scale->label[scale->count];
    scale->tick[scale->count++] = decimal(mantissa, exponent);
    if (scale->logarithmic && (exponent < -2 || exponent > 5))
        snprintf(label, SCALE_LABEL, "%" PRId64 "e%s%02d", mantissa, exponent < 0 ? "-" : "+",
                 exponent < 0 ? -exponent : exponent);
    else
        print_label(mantissa, exponent, label);
}

static void open_scale(struct scale *scale, double low, double high) {
    memset(scale, 0, sizeof *scale);
    scale->low = low;
    scale->high = high;
    scale->to = 1.0;
}

static double between(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* Puts the two in order. Equal values, and values that no drawing can tell apart, get room around
 * them. */
static void widen(double *least, double *most) {
    if (*most < *least) {
        const double swap = *least;
        *least = *most;
        *most = swap;
    }
    const double size =
        real_abs_f64(*least) > real_abs_f64(*most) ? real_abs_f64(*least) : real_abs_f64(*most);
    if (size >= TINY && *most - *least > size * 1e-9) return;
    const double room = size < TINY ? 0.5 : size * 0.01;
    *least -= room;
    *most += room;
}

static const int64_t fine[] = {1, 2, 5}; /* what people divide a power of ten by */

/* The step of a linear axis: 1, 2 or 5 times 10^*exponent, the smallest with which at most `ticks`
 * ticks lie in `span`. */
static int64_t choose_step(double span, int ticks, int *exponent) {
    for (int e = exponent_of(span / (double)ticks);; e++)
        for (size_t i = 0; i < 3; i++)
            if (decimal(fine[i], e) * (double)(ticks - 1) >= span || e >= MOST_EXPONENT - 1) {
                *exponent = e;
                return fine[i];
            }
}

void scale_init_linear(struct scale *scale, double least, double most, int ticks) {
    int exponent;
    least = between(least, -HUGE_SIZE, HUGE_SIZE);
    most = between(most, -HUGE_SIZE, HUGE_SIZE);
    widen(&least, &most);
    const int64_t step = choose_step(most - least, ticks, &exponent);
    const double unit = decimal(step, exponent);
    const double first = rounded_down(least / unit);
    open_scale(scale, first * unit, first * unit);
    for (int64_t i = (int64_t)first; scale->count < SCALE_TICKS_MAX; i++) {
        add_tick(scale, i * step, exponent);
        scale->high = scale->tick[scale->count - 1];
        if (scale->high >= most) break;
    }
    scale->low = scale->tick[0];
}

void scale_init_counts(struct scale *scale, double least, double most, int ticks) {
    int exponent;
    open_scale(scale, least - 0.5, most + 0.5);
    if (most - least < (double)ticks) {
        for (int64_t i = 0; i <= (int64_t)(most - least); i++)
            add_tick(scale, (int64_t)least + i, 0);
        return;
    }
    const int64_t step = choose_step(most - least, ticks, &exponent);
    const double unit = decimal(step, exponent);
    for (int64_t i = (int64_t)rounded_down(least / unit); i <= (int64_t)(most / unit); i++)
        if (decimal(i * step, exponent) >= least) add_tick(scale, i * step, exponent);
}

/* ---- logarithmic ---- */

/* The nearest numbers of the form 1, 2 or 5 times a power of ten that enclose least ... most. */
static void enclose(double least, double most, double *low, double *high) {
    const int first = exponent_of(least);
    *low = decimal(1, first);
    for (size_t i = 1; i < 3; i++)
        if (decimal(fine[i], first) <= least) *low = decimal(fine[i], first);
    const int last = exponent_of(most);
    *high = last >= MOST_EXPONENT ? most : decimal(1, last + 1);
    for (size_t i = 3; i-- > 0;)
        if (decimal(fine[i], last) >= most) *high = decimal(fine[i], last);
}

static void add_decades(struct scale *scale, int every) {
    for (int e = exponent_of(scale->low); e <= MOST_EXPONENT; e++) {
        if (decimal(1, e) > scale->high) return;
        if (decimal(1, e) >= scale->low && e % every == 0) add_tick(scale, 1, e);
    }
}

static void add_fine(struct scale *scale) {
    for (int e = exponent_of(scale->low); e <= MOST_EXPONENT; e++)
        for (size_t i = 0; i < 3; i++) {
            const double value = decimal(fine[i], e);
            if (value > scale->high) return;
            if (value >= scale->low) add_tick(scale, fine[i], e);
        }
}

void scale_init_log(struct scale *scale, double least, double most, int ticks) {
    double low, high;
    least = between(least, TINY, HUGE_SIZE);
    most = between(most, least, HUGE_SIZE);
    enclose(least, most, &low, &high);
    if (!(high > low)) enclose(least * 0.5, most * 2.0, &low, &high);
    open_scale(scale, low, high);
    scale->logarithmic = 1;
    scale->log_low = real_log_f64(low);
    scale->log_high = real_log_f64(high);
    const int decades = exponent_of(high) - exponent_of(low);
    if (decades < 3)
        add_fine(scale);
    else
        add_decades(scale, 1 + decades / ticks);
}

/* ---- places ---- */

void scale_place_between(struct scale *scale, double from, double to) {
    scale->from = from;
    scale->to = to;
}

double scale_place(const struct scale *scale, double value) {
    double share;
    if (scale->logarithmic)
        share = value <= scale->low
                    ? 0.0
                    : (real_log_f64(value) - scale->log_low) / (scale->log_high - scale->log_low);
    else
        share = (value - scale->low) / (scale->high - scale->low);
    if (!(share >= 0.0)) share = 0.0;
    if (share > 1.0) share = 1.0;
    return scale->from + share * (scale->to - scale->from);
}

size_t scale_widest(const struct scale *scale) {
    size_t widest = 0;
    for (int i = 0; i < scale->count; i++)
        if (strlen(scale->label[i]) > widest) widest = strlen(scale->label[i]);
    return widest;
}
