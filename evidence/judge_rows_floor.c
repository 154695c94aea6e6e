/* SPDX-License-Identifier: Apache-2.0
 * What a verdict rests on, in words: the devices of the arms, products that their libraries did not
 * compute, and the floor of repeats. Computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <string.h>

/* Why the arms are alike for so long. */
static void put_alike(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->cause_count == 0)
        row_add(pen, ROW_ARMS, "their configurations train alike");
    else if (judgement->alike >= judgement->updates)
        row_add(pen, ROW_ARMS, "nothing that differs between them acts in these %llu updates",
                (unsigned long long)judgement->updates);
    else
        row_add(pen, ROW_ARMS, "nothing that differs between them acts before update %llu",
                (unsigned long long)judgement->alike + 1);
}

void judge_row_arms(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->alike == 0) return;
    put_alike(judgement, pen);
    if (judgement->served > 0 && judgement->floor_equal[1] == 0)
        row_put(pen, " by what this program knows, and one training is recorded of both; the "
                     "process started anew does not bear it out (--both-arms trains both)");
    else if (judgement->served == 0)
        row_put(pen, "; both were trained all the same");
    else if (judgement->served >= judgement->updates)
        row_put(pen, ", so one training is recorded of both (--both-arms trains both)");
    else
        row_put(pen, ", so one training is recorded of both until then (--both-arms trains both)");
}

static void put_exact_floor(const struct judgement *judgement, struct row_pen *pen) {
    static const char *const words[] = {"not run", "differs", "bit-equal"};
    const int equal = judgement->floor_equal[0] == 1 && judgement->floor_equal[1] == 1;
    if (judgement->served > 0 && equal)
        row_add(pen, ROW_FLOOR,
                "exact: %s repeated, and %s trained in a process started anew, bit-equal",
                judgement->arms[0], judgement->arms[1]);
    else if (judgement->served > 0)
        row_add(pen, ROW_FLOOR, "exact expected: %s repeated: %s; %s in a process started anew: %s",
                judgement->arms[0], words[judgement->floor_equal[0] + 1], judgement->arms[1],
                words[judgement->floor_equal[1] + 1]);
    else if (equal)
        row_add(pen, ROW_FLOOR,
                "exact: %s repeated in two processes, one of them started anew, bit-equal",
                judgement->arms[0]);
    else
        row_add(pen, ROW_FLOOR, "exact expected: %s repeated: %s; in a process started anew: %s",
                judgement->arms[0], words[judgement->floor_equal[0] + 1],
                words[judgement->floor_equal[1] + 1]);
}

static const char *name_device(const char *device) {
    return device[0] == '\0' ? "cpu" : device;
}

void judge_row_devices(const struct judgement *judgement, struct row_pen *pen) {
    const char *const *device = judgement->device;
    if (device[0][0] == '\0' && device[1][0] == '\0') return;
    if (strcmp(device[0], device[1]) == 0) {
        row_add(pen, ROW_DEVICE, "%s", device[0]);
        return;
    }
    row_add(pen, ROW_DEVICES, "%s: %s", judgement->arms[0], name_device(device[0]));
    row_put(pen, "\n%s: %s", judgement->arms[1], name_device(device[1]));
}

void judge_row_products(const struct judgement *judgement, struct row_pen *pen) {
    const char *const *products = judgement->products;
    if (strcmp(products[0], products[1]) == 0) {
        if (products[0][0] != '\0') row_add(pen, ROW_LIBRARY, "both arms: %s", products[0]);
        return;
    }
    for (int arm = 0; arm < 2; arm++)
        if (products[arm][0] != '\0')
            row_add(pen, ROW_LIBRARY, "%s: %s", judgement->arms[arm], products[arm]);
}

/* Labels are tested by all distances, of which d(A,B) is one: it may be small where the arms
 * differ, and large where they do not. Then the means are told, which the reader would look for. */
static void put_means(const struct judgement *judgement, struct row_pen *pen) {
    const int seems_outside = judgement->floor_distance > judgement->floor_largest;
    if (judgement->floor != FLOOR_PERMUTATION || judgement->verdict == VERDICT_UNTESTABLE ||
        (judgement->p <= judgement->alpha) == seems_outside)
        return;
    row_put(
        pen,
        "\nd(A,B) is of the first run of each arm, and tested are all: runs of the two arms are "
        "%.4g apart on average, runs of one arm %.4g",
        judgement->floor_between, judgement->floor_inside);
}

void judge_row_floor(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->elsewhere[0] != '\0')
        row_add(pen, ROW_NOTE, "the floor file was measured elsewhere: %s", judgement->elsewhere);
    if (judgement->floor == FLOOR_EXACT) {
        put_exact_floor(judgement, pen);
        return;
    }
    if (judgement->floor == FLOOR_NONE || isnan(judgement->p)) {
        row_add(pen, ROW_FLOOR, "not measured");
        return;
    }
    if (judgement->floor == FLOOR_FILE)
        row_add(pen, ROW_FLOOR,
                "from a file: rank among %ju A/A pairs measured before: d(A,B) %.4g, largest of "
                "theirs %.4g",
                (uintmax_t)judgement->floor_pairs, judgement->floor_distance,
                judgement->floor_largest);
    else
        row_add(
            pen, ROW_FLOOR,
            "%s of %u + %u runs, each with its own order of sums: d(A,B) %.4g, largest d inside an "
            "arm %.4g",
            judgement->floor == FLOOR_RANK ? "rank among the pairs" : "label permutation",
            judgement->floor_runs[0], judgement->floor_runs[1], judgement->floor_distance,
            judgement->floor_largest);
    row_put(pen, "\np = %.4g (least possible %.4g), alpha = %g, power %.2f for a shift of 3 sigma",
            judgement->p, judgement->smallest_p, judgement->alpha, judgement->power);
    put_means(judgement, pen);
    if (isnan(judgement->loss_p)) return;
    row_put(pen, "\nthe last losses of these runs, tested alike: p = %.4g%s", judgement->loss_p,
            judgement->loss_p <= judgement->alpha && judgement->p > judgement->alpha
                ? ": the arms report different losses though their weights are alike"
                : "");
}
