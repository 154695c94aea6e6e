/* SPDX-License-Identifier: Apache-2.0
 * What a verdict rests on, in words: devices, products that their libraries did not make, and the
 * floor of repeats. Prints what was judged; computes nothing new. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

static void print_exact_floor(const struct judgement *judgement, FILE *out) {
    static const char *const words[] = {"not run", "differs", "bit-equal"};
    if (judgement->floor_equal[0] == 1 && judgement->floor_equal[1] == 1)
        fprintf(out, "exact: %s repeated in this process and in a second one, bit-equal\n",
                judgement->arms[0]);
    else
        fprintf(out, "exact expected: %s repeated in this process: %s; in a second one: %s\n",
                judgement->arms[0], words[judgement->floor_equal[0] + 1],
                words[judgement->floor_equal[1] + 1]);
}

void judge_print_devices(const struct judgement *judgement, FILE *out) {
    const char *const *device = judgement->device;
    if (device[0][0] == '\0' && device[1][0] == '\0') return;
    if (strcmp(device[0], device[1]) == 0) {
        fprintf(out, "  device   %s\n", device[0]);
        return;
    }
    for (int arm = 0; arm < 2; arm++)
        fprintf(out, "  %-8s %s: %s\n", arm == 0 ? "devices" : "", judgement->arms[arm],
                device[arm][0] == '\0' ? "cpu" : device[arm]);
}

void judge_print_products(const struct judgement *judgement, FILE *out) {
    const char *const *products = judgement->products;
    if (strcmp(products[0], products[1]) == 0) {
        if (products[0][0] != '\0') fprintf(out, "  library  both arms: %s\n", products[0]);
        return;
    }
    for (int arm = 0; arm < 2; arm++)
        if (products[arm][0] != '\0')
            fprintf(out, "  library  %s: %s\n", judgement->arms[arm], products[arm]);
}

void judge_print_floor(const struct judgement *judgement, FILE *out) {
    if (judgement->elsewhere[0] != '\0')
        fprintf(out, "  note     the floor file was measured elsewhere: %s\n",
                judgement->elsewhere);
    fprintf(out, "  floor    ");
    if (judgement->floor == FLOOR_EXACT) {
        print_exact_floor(judgement, out);
        return;
    }
    if (judgement->floor == FLOOR_NONE || isnan(judgement->p)) {
        fprintf(out, "not measured\n");
        return;
    }
    if (judgement->floor == FLOOR_FILE)
        fprintf(out,
                "from a file: rank among %ju A/A pairs measured before: d(A,B) %.4g, largest of "
                "theirs %.4g\n",
                (uintmax_t)judgement->floor_pairs, judgement->floor_distance,
                judgement->floor_largest);
    else
        fprintf(
            out,
            "%s of %u + %u runs, each with its own order of sums: d(A,B) %.4g, largest d inside an "
            "arm %.4g\n",
            judgement->floor == FLOOR_RANK ? "rank among the pairs" : "label permutation",
            judgement->floor_runs[0], judgement->floor_runs[1], judgement->floor_distance,
            judgement->floor_largest);
    fprintf(out, "           p = %.4g (least possible %.4g), alpha = %g, power at 3 sigma %.2f\n",
            judgement->p, judgement->smallest_p, judgement->alpha, judgement->power);
    if (isnan(judgement->loss_p)) return;
    fprintf(out, "           the last losses of these runs, tested alike: p = %.4g%s\n",
            judgement->loss_p,
            judgement->loss_p <= judgement->alpha && judgement->p > judgement->alpha
                ? ": the arms report different losses though their weights are alike"
                : "");
}
