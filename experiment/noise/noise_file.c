/* SPDX-License-Identifier: Apache-2.0
 * Puts the members of a noise report where a floor file has them: strata, the perturbed run, facts
 * of build and machine, and the parts of the model in which differences arose. */
#include "experiment/noise/noise_file.h"

#include <string.h>

#include "experiment/experiment_plan.h"

static enum status fill_stratum(const struct noise_report *report, const struct noise_case *one,
                                const struct noise_row *row, struct arena *arena,
                                struct floor_stratum *out) {
    const struct noise_figures *figures = &row->figures;
    const int known = row->untestable[0] == '\0';
    char *threads;
    double *share;
    TRY(arena_format(arena, &threads, "%ju", (uintmax_t)one->threads));
    TRY(arena_take(arena, report->steps, sizeof *share, "strata", &share));
    for (uint64_t i = 0; i < report->steps && known; i++)
        share[i] = figures->growth[i].share;
    const char *words[FLOOR_WORDS] = {one->mode,
                                      one->dtype,
                                      threads,
                                      noise_stratum_name(row->stratum),
                                      row->variant,
                                      row->untestable,
                                      figures->first_place,
                                      figures->tensor_worst};
    memcpy(out->words, words, sizeof words);
    out->share = share;
    if (!known) return STATUS_OK;
    const double values[FLOOR_FIGURES] = {row->repeats,
                                          (double)figures->first,
                                          figures->tensors,
                                          figures->gradients_equal,
                                          figures->updates_equal,
                                          (double)figures->gradient_ulp,
                                          (double)figures->weight_ulp,
                                          figures->tensor_relative,
                                          figures->total_relative};
    memcpy(out->figures, values, sizeof values);
    return STATUS_OK;
}

static enum status fill_strata(const struct noise_report *report, struct arena *arena,
                               struct floor_file *out) {
    struct floor_stratum *strata;
    uint32_t count = 0;
    for (uint32_t c = 0; c < report->count; c++)
        count += report->cases[c].table.count;
    TRY(arena_take(arena, count, sizeof *strata, "strata", &strata));
    for (uint32_t c = 0; c < report->count; c++)
        for (uint32_t i = 0; i < report->cases[c].table.count; i++)
            TRY(fill_stratum(report, &report->cases[c], &report->cases[c].table.rows[i], arena,
                             &strata[out->stratum_count++]));
    out->strata = strata;
    return STATUS_OK;
}

static void fill_perturbed(const struct noise_case *one, struct floor_twin *out) {
    const struct noise_table *table = &one->table;
    out->weight = "";
    if (table->perturbed.gradient == NULL) return;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].stratum == NOISE_ONE_ULP) out->weight = table->rows[i].variant;
    out->tensors = table->layout.tensors;
    out->names = table->layout.tensor_names;
    out->gradient = table->perturbed.gradient;
    out->distance = table->perturbed.distance;
}

/* Adds facts of build and machine, and what the ops ran on in the form that a trace has; the run is
 * called "noise". */
static enum status fill_environment(const struct noise_file_request *request, struct arena *arena,
                                    struct floor_file *out) {
    const struct backend_seen *const seen = &request->report->device;
    const char *const products = request->report->cases[0].table.products;
    struct trace_attribute *all;
    TRY(arena_take(arena, request->environment_count + 2 + seen->attribute_count, sizeof *all,
                   "environment", &all));
    for (uint32_t i = 0; i < request->environment_count; i++)
        if (!request->reproducible || strcmp(request->environment[i].path, "env/volatile") != 0)
            all[out->environment_count++] = request->environment[i];
    out->environment = all;
    if (seen->attribute_count == 0) return STATUS_OK;
    all[out->environment_count++] = (struct trace_attribute){"backend", "noise", seen->group};
    if (products[0] != '\0')
        all[out->environment_count++] =
            (struct trace_attribute){"backend", "noise_products", products};
    for (uint32_t i = 0; i < seen->attribute_count; i++)
        if (!request->reproducible || !backends_is_volatile(&seen->attributes[i]))
            all[out->environment_count++] = seen->attributes[i];
    return STATUS_OK;
}

static enum status add_parts(const struct noise_case *one, const char *what,
                             const struct noise_part *list, uint32_t count, struct arena *arena,
                             char **text) {
    for (uint32_t i = 0; i < count; i++)
        TRY(arena_format(arena, text, "%s%s\t%s\t%s\t%s\t%s\t%u\t%u\t%.17g\t%jd\n", *text,
                         one->mode, one->dtype, one->parts_of, what, list[i].name, list[i].tensors,
                         list[i].equal, list[i].relative, (intmax_t)list[i].ulp));
    return STATUS_OK;
}

static enum status fill_parts(const struct noise_report *report, struct arena *arena,
                              struct floor_file *out) {
    char *text;
    TRY(arena_format(arena, &text, "%s", ""));
    for (uint32_t c = 0; c < report->count; c++) {
        const struct noise_case *one = &report->cases[c];
        const struct noise_parts *parts = one->parts;
        if (parts == NULL) continue;
        TRY(add_parts(one, "layer", parts->layers, parts->layer_count, arena, &text));
        TRY(add_parts(one, "op", parts->ops, parts->op_count, arena, &text));
    }
    out->parts = text;
    return STATUS_OK;
}

enum status noise_file_fill(const struct noise_file_request *request, struct arena *arena,
                            struct floor_file *out) {
    const struct noise_report *const report = request->report;
    const struct noise_case *const first = &report->cases[0];
    struct digest determines;
    char *configuration, *hex;
    memset(out, 0, sizeof *out);
    out->scenario = request->scenario->name;
    out->arm = report->arm;
    out->text = request->scenario->text;
    out->protocol = noise_pairs_protocol;
    out->steps = report->steps;
    out->pairs = request->pairs;
    for (int i = 0; i < FLOOR_COLUMNS; i++)
        out->columns[i] = request->columns[i];
    TRY(config_text(request->schema, first->config, arena, &configuration));
    TRY(experiment_determines(request->schema, first->config, arena, &determines));
    TRY(arena_take(arena, DIGEST_HEX, 1, "digest", &hex));
    digest_hex(&determines, hex);
    out->configuration = configuration;
    out->determines = hex;
    fill_perturbed(first, &out->twin);
    TRY(fill_environment(request, arena, out));
    TRY(fill_parts(report, arena, out));
    return fill_strata(report, arena, out);
}
