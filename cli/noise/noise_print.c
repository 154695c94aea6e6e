/* SPDX-License-Identifier: Apache-2.0
 * Prints the invariance table of each mode and dtype: as text, in which a row says that it is
 * bit-equal, or how far it is apart and from where on; and as JSON, with the growth of every
 * update. */
#include "cli/noise/noise_asking.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "scenarios/selection.h"

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

/* Says whether differences grow from the last layer to layer 0, as they would if the backward pass
 * amplified them (hypothesis 24 of the open-instruct investigation). */
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

/* What a mode does with sums, for a reader who meets its name here first. */
static const char *mode_words(const struct config *config) {
    static const char *const words[] = {
        [MODE_INVARIANT] = "sums have one order, whatever shapes, threads and the machine are",
        [MODE_SHUFFLED] = "each run draws another order of sums, which a seed replays",
        [MODE_SHAPED] = "sums are cut by operation and shape, as a library cuts them",
        [MODE_DETERMINISTIC] = "the same bits again for the same shapes on the same machine",
        [MODE_FAST] = "what this machine does fastest; sums may change with shapes and threads",
        [MODE_ATOMIC] = "threads race on sums, as the atomics of a GPU do",
        [MODE_ORDER_FREE] = "sums are exact and rounded once, so they have no order",
    };
    return words[config->numerics.mode];
}

void noise_print_case(const struct noise_report *report, const struct noise_case *one, FILE *out) {
    const int own = strcmp(one->mode, "own") == 0;
    const struct key_row *mode = schema_find("numerics.mode", NULL);
    fprintf(out, "\n%s, %s, %ju thread%s: %s%s%s\n", one->mode, one->dtype, (uintmax_t)one->threads,
            one->threads == 1 ? "" : "s", own ? mode->names[one->config->numerics.mode] : "",
            own ? ", " : "", mode_words(one->config));
    if (one->reset[0] != '\0')
        fprintf(out, "  set by mode  %s (own keeps what the scenario gives)\n", one->reset);
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
}

void noise_print_title(const struct noise_report *report, FILE *out) {
    fprintf(out, "%s, arm %s: %ju updates, worst of %u repeat%s\n", report->scenario, report->arm,
            (uintmax_t)report->steps, report->repeats, report->repeats == 1 ? "" : "s");
}

void noise_print_end(const struct noise_report *report, FILE *out) {
    const struct noise_counts counts = noise_count(report);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct noise_case *one = &report->cases[i];
        if (one->orders == NULL) continue;
        fprintf(out, "\n%s, %s: two orders\n", one->mode, one->dtype);
        print_orders(one->orders, report->steps, out);
    }
    /* A device is asked last, when its clocks are those of work; an interrupted run did not ask. */
    if (report->device_line != NULL && strcmp(report->device_line, BACKENDS_OWN) != 0)
        fprintf(out, "\ndevice %s\n", report->device_line);
    fprintf(out,
            "\ngrads =, upd. =: share of tensors whose gradient, whose updated weights are "
            "bit-equal, and max ulp\nof a gradient, at the first update that differs (all before "
            "are equal). tensor, total: largest relative\ndifference of a gradient norm, of one "
            "tensor and of all. |a-b|: over |a-a0|, after update 1 and the last.\n"
            "%u strata bit-equal, %u not, %u untestable\n",
            counts.equal, counts.apart, counts.untestable);
}

static json_t *growth_json(const struct noise_figures *figures, uint64_t steps) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < steps; i++) {
        const struct noise_growth *growth = &figures->growth[i];
        json_array_append_new(list, json_pack("{sI so so so so so}", "update", (json_int_t)i + 1,
                                              "loss", json_finite(growth->loss), "tensor",
                                              json_finite(growth->tensor), "grad_norm",
                                              json_finite(growth->grad_norm), "distance",
                                              json_finite(growth->distance), "distance_share",
                                              json_finite(growth->share)));
    }
    return list;
}

/* These are the figures that two runs in different dtypes have, too: nothing is counted in bits. */
static json_t *relative_json(const struct noise_figures *figures, uint64_t steps) {
    return json_pack("{si so ss so so}", "tensors", (int)figures->tensors, "tensor_relative",
                     json_finite(figures->tensor_relative), "tensor_worst", figures->tensor_worst,
                     "total_relative", json_finite(figures->total_relative), "growth",
                     growth_json(figures, steps));
}

static json_t *orders_json(const struct noise_orders *orders, uint64_t steps) {
    if (orders == NULL) return json_null();
    return json_pack("{so so so}", "from_each_other", relative_json(&orders->apart, steps),
                     "first_from_order_free", relative_json(&orders->neutral[0], steps),
                     "second_from_order_free", relative_json(&orders->neutral[1], steps));
}

json_t *noise_first_json(const struct noise_figures *figures) {
    if (figures->first == 0) return json_null();
    return json_pack("{sI ss}", "update", (json_int_t)figures->first, "place",
                     figures->first_place);
}

static json_t *row_json(const struct noise_row *row, uint64_t steps) {
    const struct noise_figures *figures = &row->figures;
    const char *name = noise_stratum_name(row->stratum);
    if (row->untestable[0] != '\0')
        return json_pack("{ss ss ss}", "stratum", name, "variant", row->variant, "untestable",
                         row->untestable);
    if (row->stratum == NOISE_F64) {
        json_t *object = json_pack("{ss ss si sn}", "stratum", name, "variant", row->variant,
                                   "repeats", (int)row->repeats, "bit_equal");
        return json_join(object, relative_json(figures, steps));
    }
    json_t *object = json_pack(
        "{ss ss si sb so si si si sI sI}", "stratum", name, "variant", row->variant, "repeats",
        (int)row->repeats, "bit_equal", figures->first == 0, "first", noise_first_json(figures),
        "tensors", (int)figures->tensors, "gradients_equal", (int)figures->gradients_equal,
        "updates_equal", (int)figures->updates_equal, "gradient_ulp",
        (json_int_t)figures->gradient_ulp, "weight_ulp", (json_int_t)figures->weight_ulp);
    return json_join(object, relative_json(figures, steps));
}

static json_t *part_list_json(const struct noise_part *list, uint32_t count) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_pack("{ss si si so sI}", "name", list[i].name, "tensors",
                                               (int)list[i].tensors, "equal", (int)list[i].equal,
                                               "relative", json_finite(list[i].relative), "ulp",
                                               (json_int_t)list[i].ulp));
    return array;
}

static json_t *layer_growth_json(const struct noise_parts *parts) {
    if (parts->no_growth != NULL) return json_pack("{ss}", "untestable", parts->no_growth);
    const struct trend *growth = &parts->growth;
    return json_pack("{sb so sf sf sI}", "grows", growth->p <= NOISE_PARTS_ALPHA, "factor",
                     json_finite(growth->factor), "tau", growth->tau, "p", growth->p, "layers",
                     (json_int_t)growth->count);
}

/* Layers stand in the order of the backward pass. */
static json_t *parts_json(const struct noise_case *one) {
    if (one->parts == NULL) return json_null();
    return json_pack("{ss so so so}", "stratum", one->parts_of, "growth",
                     layer_growth_json(one->parts), "layers",
                     part_list_json(one->parts->layers, one->parts->layer_count), "ops",
                     part_list_json(one->parts->ops, one->parts->op_count));
}

json_t *noise_device_json(const struct backend_seen *seen) {
    if (seen->attribute_count == 0) return json_null();
    json_t *object = json_pack("{ss}", "backend", seen->group);
    for (uint32_t i = 0; i < seen->attribute_count; i++)
        json_object_set_new(object, seen->attributes[i].name,
                            json_string(seen->attributes[i].text));
    return object;
}

json_t *noise_case_json(const struct noise_case *one, uint64_t steps) {
    json_t *rows = json_array();
    for (uint32_t i = 0; i < one->table.count; i++)
        json_array_append_new(rows, row_json(&one->table.rows[i], steps));
    const char *const library = one->table.products == NULL ? "" : one->table.products;
    return json_pack("{ss ss sI so so so so ss ss}", "mode", one->mode, "dtype", one->dtype,
                     "threads", (json_int_t)one->threads, "untestable", json_text(one->untestable),
                     "strata", rows, "parts", parts_json(one), "orders",
                     orders_json(one->orders, steps), "library", library, "set_by_mode",
                     one->reset);
}

json_t *noise_json(const struct noise_report *report) {
    const struct noise_counts counts = noise_count(report);
    json_t *cases = json_array();
    for (uint32_t c = 0; c < report->count; c++)
        json_array_append_new(cases, noise_case_json(&report->cases[c], report->steps));
    return json_pack("{ss ss so sI si si si si so}", "scenario", report->scenario, "arm",
                     report->arm, "device", noise_device_json(&report->device), "updates",
                     (json_int_t)report->steps, "repeats", (int)report->repeats, "bit_equal",
                     (int)counts.equal, "apart", (int)counts.apart, "untestable",
                     (int)counts.untestable, "cases", cases);
}
