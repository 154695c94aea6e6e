/* SPDX-License-Identifier: Apache-2.0
 * Compares configurations by what decides their trainings, and lays a file's distances into an
 * image as `run --floor` would have recorded them. It neither trains nor judges. */
#include "experiment/noise/noise_use.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "evidence/backend_seen.h"
#include "experiment/experiment_plan.h"

static enum status fail_key(const struct schema *schema, const char *path,
                            const struct config *measured, const struct config *config,
                            struct arena *arena) {
    struct factor *factors;
    uint32_t count;
    TRY(factors_of(schema, measured, config, arena, &factors, &count));
    if (count == 0) FAIL(STATUS_INTERNAL, "%s: its digest is not that of its configuration", path);
    FAIL(STATUS_INPUT,
         "%s: this floor was measured for another configuration: %s: %s there, %s here; twinstep "
         "noise measures one for this",
         path, factors[0].keys[0], factors[0].values[0][0], factors[0].values[1][0]);
}

enum status noise_use_check(const struct schema *schema, const char *path,
                            const struct floor_file *file, const struct config *config,
                            uint64_t steps, struct arena *arena) {
    struct config measured, here = *config;
    struct digest digests[2];
    char *label;
    if (file->writer != NULL)
        FAIL(STATUS_INPUT,
             "%s: this floor is of runs of %s; twinstep noise measures one for this run", path,
             file->writer);
    TRY(arena_format(arena, &label, "%s: configuration", path));
    TRY(config_read(schema, label, file->configuration, arena, &measured));
    if (measured.numerics.order_seed == KEY_WORD_UINT) here.numerics.order_seed = KEY_WORD_UINT;
    TRY(experiment_determines(schema, &measured, arena, &digests[0]));
    TRY(experiment_determines(schema, &here, arena, &digests[1]));
    if (memcmp(&digests[0], &digests[1], sizeof digests[0]) != 0)
        return fail_key(schema, path, &measured, &here, arena);
    if (file->steps >= steps) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: this floor holds %ju updates, %ju are needed: twinstep noise --steps",
         path, (uintmax_t)file->steps, (uintmax_t)steps);
}

/* The distance of the arms at the end: of their end points where those were recorded, else of the
 * parameters where there are no masters; NaN where neither is known. */
static double end_distance(const struct trace_image *image, const struct trace_run *baseline) {
    const struct trace_array *matrix = trace_array_of(image, "floor/distance");
    const struct trace_array *values = trace_array_of(image, "attribution/value");
    const struct trace_pair *pair = image->pair_count > 0 ? &image->pairs[0] : NULL;
    if (matrix != NULL && matrix->plan.rank == 2 && matrix->plan.shape[0] >= 2) {
        const char *runs = trace_attribute_of(image, "floor", "runs_baseline");
        uint64_t first;
        if (runs != NULL && number_parse_uint(runs, &first) == STATUS_OK &&
            first < matrix->plan.shape[1])
            return matrix->values[first];
    }
    if (values != NULL && values->plan.shape[0] > 0)
        return values->values[values->plan.shape[0] - 1];
    const char *text = baseline->plan.configuration;
    if (pair == NULL || pair->updates == 0 || !config_text_says(text, "numerics.master", "none"))
        return (double)NAN;
    return trace_pair_row(pair, pair->updates - 1)->reals[PAIR_DISTANCE];
}

static enum status copy_attributes(const struct trace_image *image, const char *elsewhere,
                                   struct arena *arena, struct trace_image *out) {
    const struct trace_attribute instead[] = {{"floor", "kind", "file"},
                                              {"floor", "runs_baseline", "1"},
                                              {"floor", "runs_test", "1"},
                                              {"floor", "elsewhere", elsewhere}};
    const uint32_t count = (uint32_t)COUNT_OF(instead);
    TRY(arena_take(arena, image->attribute_count + count, sizeof *out->attributes, "attributes",
                   &out->attributes));
    /* the first attribute of a name is the one that is found */
    memcpy(out->attributes, instead, sizeof instead);
    if (image->attribute_count > 0)
        memcpy(out->attributes + count, image->attributes,
               image->attribute_count * sizeof *image->attributes);
    out->attribute_count = count + image->attribute_count;
    return STATUS_OK;
}

static enum status copy_arrays(const struct trace_image *image, const struct floor_file *file,
                               uint64_t steps, double distance, struct arena *arena,
                               struct trace_image *out) {
    double *pairs, *matrix;
    TRY(arena_take(arena, (size_t)file->pairs, sizeof *pairs, "floor", &pairs));
    TRY(arena_take(arena, 4, sizeof *matrix, "floor", &matrix));
    floor_file_at(file, FLOOR_DISTANCE, steps, pairs);
    matrix[1] = matrix[2] = distance;
    TRY(arena_take(arena, image->array_count + 2, sizeof *out->arrays, "arrays", &out->arrays));
    out->arrays[0] = (struct trace_array){.plan = {"floor/pairs", 1, {file->pairs, 1}, "1", ""},
                                          .values = pairs};
    out->arrays[1] =
        (struct trace_array){.plan = {"floor/distance", 2, {2, 2}, "1", ""}, .values = matrix};
    out->array_count = 2;
    for (uint32_t i = 0; i < image->array_count; i++)
        if (strcmp(image->arrays[i].plan.path, "floor/distance") != 0 &&
            strcmp(image->arrays[i].plan.path, "floor/pairs") != 0)
            out->arrays[out->array_count++] = image->arrays[i];
    return STATUS_OK;
}

enum status noise_use_image(const struct schema *schema, const char *path,
                            const struct floor_file *file, const struct trace_image *image,
                            struct arena *arena, struct trace_image *out) {
    const char *name = trace_attribute_of(image, "", "baseline");
    const char *written = trace_attribute_of(image, "", "steps");
    const struct trace_run *baseline = name == NULL ? NULL : trace_run_of(image, name);
    struct config config;
    char *elsewhere;
    uint64_t steps;
    if (baseline == NULL || baseline->plan.configuration == NULL || written == NULL ||
        number_parse_uint(written, &steps) != STATUS_OK || steps == 0)
        FAIL(STATUS_INPUT, "trace: it holds no run that a floor could be held against: not written "
                           "by run");
    TRY(config_read(schema, "configuration of the baseline", baseline->plan.configuration, arena,
                    &config));
    TRY(noise_use_check(schema, path, file, &config, steps, arena));
    *out = *image;
    const struct backend_seen seen[2] = {backends_of_floor(file), backends_of_run(image, name)};
    TRY(backends_difference(seen, backends_here, arena, &elsewhere));
    TRY(copy_attributes(image, elsewhere, arena, out));
    return copy_arrays(image, file, steps, end_distance(image, baseline), arena, out);
}
