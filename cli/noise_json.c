/* SPDX-License-Identifier: Apache-2.0
 * The same table as JSON, with the growth of every update. */
#include "cli/noise_report.h"

#include "cli/json.h"

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

/* Figures that hold between dtypes, too. */
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

static json_t *row_json(const struct noise_row *row, uint64_t steps) {
    const struct noise_figures *figures = &row->figures;
    const char *name = noise_stratum_name(row->stratum);
    if (row->untestable[0] != '\0')
        return json_pack("{ss ss ss}", "stratum", name, "variant", row->variant, "untestable",
                         row->untestable);
    if (row->stratum == NOISE_F64) {
        json_t *object = json_pack("{ss ss si sn}", "stratum", name, "variant", row->variant,
                                   "repeats", (int)row->repeats, "bit_equal");
        json_t *rest = relative_json(figures, steps);
        json_object_update(object, rest);
        json_decref(rest);
        return object;
    }
    return json_pack(
        "{ss ss si sb so si si si sI sI so ss so so}", "stratum", name, "variant", row->variant,
        "repeats", (int)row->repeats, "bit_equal", figures->first == 0, "first",
        figures->first == 0 ? json_null()
                            : json_pack("{sI ss}", "update", (json_int_t)figures->first, "place",
                                        figures->first_place),
        "tensors", (int)figures->tensors, "gradients_equal", (int)figures->gradients_equal,
        "updates_equal", (int)figures->updates_equal, "gradient_ulp",
        (json_int_t)figures->gradient_ulp, "weight_ulp", (json_int_t)figures->weight_ulp,
        "tensor_relative", json_finite(figures->tensor_relative), "tensor_worst",
        figures->tensor_worst, "total_relative", json_finite(figures->total_relative), "growth",
        growth_json(figures, steps));
}

static json_t *list_json(const struct noise_part *list, uint32_t count) {
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

/* By layer in the order of the backward pass, and by op. */
static json_t *parts_json(const struct noise_case *one) {
    if (one->parts == NULL) return json_null();
    return json_pack("{ss so so so}", "stratum", one->parts_of, "growth",
                     layer_growth_json(one->parts), "layers",
                     list_json(one->parts->layers, one->parts->layer_count), "ops",
                     list_json(one->parts->ops, one->parts->op_count));
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
    return json_pack("{ss ss sI so so so so ss}", "mode", one->mode, "dtype", one->dtype, "threads",
                     (json_int_t)one->threads, "untestable",
                     one->untestable[0] == '\0' ? json_null() : json_string(one->untestable),
                     "strata", rows, "parts", parts_json(one), "orders",
                     orders_json(one->orders, steps), "library", library);
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
