/* SPDX-License-Identifier: Apache-2.0
 * Sorts samples by heap and reads figures off them. The order is total, NaN last, so every correct
 * sort gives the same answer; a heap needs no memory and has no bad case. */
#include "experiment/parity/parity_stats.h"

#include <math.h>
#include <string.h>

#include "base/sum.h"

enum status parity_sample_open(struct parity_sample *sample, size_t room, struct arena *arena) {
    memset(sample, 0, sizeof *sample);
    sample->room = room;
    return arena_take(arena, room, sizeof *sample->value, "sample", &sample->value);
}

void parity_sample_add(struct parity_sample *sample, double value) {
    if (sample->count == sample->room) return;
    sample->value[sample->count++] = value;
    sample->sorted = 0;
}

double parity_sample_mean(const struct parity_sample *sample) {
    return sum_chain_terms_f64_f64(0.0, sample->value, sample->count) / (double)sample->count;
}

double parity_add(double sum, double term) {
    return sum_chain_terms_f64_f64(sum, &term, 1);
}

static int before(double a, double b) {
    if (isnan(a)) return 0;
    return isnan(b) || a < b;
}

static void sift(double *value, size_t root, size_t count) {
    const double moved = value[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count) break;
        if (child + 1 < count && before(value[child], value[child + 1])) child++;
        if (!before(moved, value[child])) break;
        value[root] = value[child];
        root = child;
    }
    value[root] = moved;
}

static void sort(struct parity_sample *sample) {
    double *value = sample->value;
    for (size_t root = sample->count / 2; root-- > 0;)
        sift(value, root, sample->count);
    for (size_t last = sample->count; last-- > 1;) {
        const double largest = value[0];
        value[0] = value[last];
        value[last] = largest;
        sift(value, 0, last);
    }
    sample->sorted = 1;
}

double parity_sample_quantile(struct parity_sample *sample, double share) {
    if (sample->count == 0) return (double)NAN;
    if (!sample->sorted) sort(sample);
    const double place = share * (double)sample->count;
    size_t at = place <= 1.0 ? 0 : (size_t)place - 1;
    while (at + 1 < sample->count && (double)(at + 1) < place)
        at++;
    return sample->value[at];
}

double parity_larger(double most, double value) {
    return isnan(most) || value <= most ? most : value;
}

double parity_smaller(double least, double value) {
    return isnan(least) || value >= least ? least : value;
}
