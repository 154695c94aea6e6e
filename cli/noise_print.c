/* SPDX-License-Identifier: Apache-2.0
 * The invariance table as text: a row says bit-equal, or how far and from where. */
#include "cli/noise_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct noise_counts noise_count(const struct noise_report *report) {
    struct noise_counts counts = {0, 0, 0};
    for (uint32_t c = 0; c < report->count; c++) {
        const struct noise_case *one = &report->cases[c];
        counts.untestable += one->untestable[0] != '\0';
        for (uint32_t i = 0; i < one->table.count; i++) {
            const struct noise_row *row = &one->table.rows[i];
            if (row->stratum == NOISE_ONE_ULP || row->stratum == NOISE_F64)
                continue; /* they are meant to differ */
            if (row->untestable[0] != '\0')
                counts.untestable++;
            else if (row->figures.first == 0)
                counts.equal++;
            else
                counts.apart++;
        }
    }
    return counts;
}

static void print_share(FILE *out, double value) {
    if (isnan(value))
        fprintf(out, "  %9s", "-");
    else
        fprintf(out, "  %9.2e", value);
}

static void print_shares(const struct noise_figures *figures, uint64_t steps, FILE *out) {
    print_share(out, figures->tensor_relative);
    print_share(out, figures->total_relative);
    print_share(out, figures->growth[0].share);
    print_share(out, figures->growth[steps - 1].share);
}

static void print_figures(const struct noise_row *row, uint64_t steps, FILE *out) {
    const struct noise_figures *figures = &row->figures;
    if (row->stratum == NOISE_F64) {
        fprintf(out, "  %7s  %7s  %8s", "-", "-", "-");
    } else if (figures->first == 0) {
        fprintf(out, "  bit-equal: %ju updates, %u tensors%s%s\n", (uintmax_t)steps,
                figures->tensors, row->variant[0] == '\0' ? "" : "; ", row->variant);
        return;
    } else {
        fprintf(out, "  %5.1f %%  %5.1f %%  %8jd",
                100.0 * figures->gradients_equal / figures->tensors,
                100.0 * figures->updates_equal / figures->tensors, (intmax_t)figures->gradient_ulp);
    }
    print_shares(figures, steps, out);
    if (row->stratum == NOISE_F64)
        fprintf(out, "  -; worst: %s\n", figures->tensor_worst);
    else
        fprintf(out, "  %ju: %s%s%s\n", (uintmax_t)figures->first, figures->first_place,
                row->variant[0] == '\0' ? "" : "; ", row->variant);
}

static void print_orders(const struct noise_orders *orders, uint64_t steps, FILE *out) {
    static const char *const titles[2] = {"first order, from order-free",
                                          "second order, from order-free"};
    fprintf(out, "  %-37s", "two orders of sums, from each other");
    print_shares(&orders->apart, steps, out);
    for (int i = 0; i < 2; i++) {
        fprintf(out, "\n  %-37s", titles[i]);
        print_shares(&orders->neutral[i], steps, out);
    }
    fprintf(out, "\n");
}

static void print_parts(const char *stratum, const char *what, const struct noise_part *list,
                        uint32_t count, FILE *out) {
    int column = fprintf(out, "  %s by %s:", stratum, what);
    for (uint32_t i = 0; i < count; i++) {
        char text[128];
        if (list[i].equal == list[i].tensors)
            snprintf(text, sizeof text, " %s =", list[i].name);
        else
            snprintf(text, sizeof text, " %s %.2e", list[i].name, list[i].relative);
        const int width = (int)strlen(text) + 1;
        if (column + width > 110) column = fprintf(out, "\n   ") - 1;
        fprintf(out, "%s%s", text, i + 1 < count ? "," : "\n");
        column += width;
    }
}

/* Hypothesis 24 of the open-instruct investigation. */
static void print_growth(const struct noise_case *one, FILE *out) {
    const struct noise_parts *parts = one->parts;
    char factor[32] = "no factor";
    if (isfinite(parts->growth.factor))
        snprintf(factor, sizeof factor, "x%.3g", parts->growth.factor);
    fprintf(out, "  %s towards layer 0: ", one->parts_of);
    if (parts->no_growth != NULL)
        fprintf(out, "untestable: %s\n", parts->no_growth);
    else
        fprintf(out, "%s; %s a layer (median of pairs), tau %.2f, p %.2g, %zu layers\n",
                parts->growth.p <= NOISE_PARTS_ALPHA ? "grows" : "no growth shown", factor,
                parts->growth.tau, parts->growth.p, parts->growth.count);
}

static void print_case(const struct noise_report *report, const struct noise_case *one, FILE *out) {
    fprintf(out, "\n%s, %s, %ju thread%s\n", one->mode, one->dtype, (uintmax_t)one->threads,
            one->threads == 1 ? "" : "s");
    if (one->untestable[0] != '\0') {
        fprintf(out, "  untestable: %s\n", one->untestable);
        return;
    }
    if (one->table.products[0] != '\0') fprintf(out, "  library      %s\n", one->table.products);
    fprintf(out, "  %-11s  %7s  %7s  %8s  %9s  %9s  %9s  %9s  %s\n", "stratum",
            "grads =", "upd. =", "max ulp", "tensor", "total", "|a-b| 1", "last",
            "first difference");
    for (uint32_t i = 0; i < one->table.count; i++) {
        const struct noise_row *row = &one->table.rows[i];
        fprintf(out, "  %-11s", noise_stratum_name(row->stratum));
        if (row->untestable[0] != '\0')
            fprintf(out, "  untestable: %s\n", row->untestable);
        else
            print_figures(row, report->steps, out);
    }
    if (one->parts != NULL) {
        print_parts(one->parts_of, "layer", one->parts->layers, one->parts->layer_count, out);
        print_growth(one, out);
        print_parts(one->parts_of, "op", one->parts->ops, one->parts->op_count, out);
    }
    if (one->orders != NULL) print_orders(one->orders, report->steps, out);
}

void noise_print(const struct noise_report *report, FILE *out) {
    const struct noise_counts counts = noise_count(report);
    fprintf(out, "%s, arm %s: %ju updates, worst of %u repeat%s\n", report->scenario, report->arm,
            (uintmax_t)report->steps, report->repeats, report->repeats == 1 ? "" : "s");
    if (strcmp(report->device_line, BACKENDS_OWN) != 0)
        fprintf(out, "device %s\n", report->device_line);
    for (uint32_t i = 0; i < report->count; i++)
        print_case(report, &report->cases[i], out);
    fprintf(out,
            "\ngrads =, upd. =: share of tensors whose gradient, whose updated weights are "
            "bit-equal, and max ulp\nof a gradient, at the first update that differs (all before "
            "are equal). tensor, total: largest relative\ndifference of a gradient norm, of one "
            "tensor and of all. |a-b|: over |a-a0|, after update 1 and the last.\n"
            "%u strata bit-equal, %u not, %u untestable\n",
            counts.equal, counts.apart, counts.untestable);
}
