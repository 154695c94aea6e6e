/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --models`: prints the noise floors of the ladder of models, one line per model,
 * dtype and mode. JSON has the whole table of every case instead, made while the case is there. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/noise/noise_asking.h"
#include "experiment/noise/noise_models.h"

static void print_cell(const struct noise_models_cell *cell) {
    if (cell->measured == 0)
        printf("  %7s", "-");
    else if (cell->apart == 0)
        printf("  %7s", "=");
    else
        printf("  %7.1e", cell->tensor);
}

static void print_line(const struct noise_models_line *line, int device) {
    static const enum noise_stratum order[] = {NOISE_REPEAT,  NOISE_PROCESS, NOISE_THREADS,
                                               NOISE_MICRO,   NOISE_PADDING, NOISE_LAYOUT,
                                               NOISE_ONE_ULP, NOISE_F64};
    const struct noise_models_cell *instance = &line->cells[NOISE_INSTANCE];
    char model[48], equal[32];
    snprintf(model, sizeof model, "%s %s %ux%u", line->model.family, line->model.task,
             line->model.layers, line->model.hidden);
    printf("%-17s  %-5s  %-13s", model, line->dtype, line->mode);
    if (line->untestable[0] != '\0') {
        printf("  untestable: %s\n", line->untestable);
        return;
    }
    snprintf(equal, sizeof equal, "%u of %u", instance->equal, instance->tensors);
    printf("  %10s", equal);
    print_cell(instance);
    if (instance->apart == 0)
        printf("  %7s", "=");
    else
        printf("  %7.1e", instance->total);
    for (size_t i = 0; i < COUNT_OF(order); i++)
        print_cell(&line->cells[order[i]]);
    if (device) print_cell(&line->cells[NOISE_DEVICE]);
    printf("\n");
}

static void print_reset(const struct noise_models *models, const char *mode) {
    for (uint32_t i = 0; i < models->count; i++) {
        if (strcmp(models->lines[i].mode, mode) != 0 || models->lines[i].reset[0] == '\0') continue;
        printf("mode %s sets %s (own keeps what was given)\n", mode, models->lines[i].reset);
        return;
    }
}

static void print_all(const struct noise_asking *asking, const struct noise_models *models,
                      const struct noise_counts *counts) {
    printf("noise of %d models: %ju update%s, worst of %u repeat%s\n\n%-39s  %s\n", NOISE_MODELS,
           (uintmax_t)asking->steps, asking->steps == 1 ? "" : "s", asking->repeats,
           asking->repeats == 1 ? "" : "s", "", "two instances");
    printf("%-17s  %-5s  %-13s  %10s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s%s\n",
           "model", "dtype", "mode", "equal", "tensor", "total", "repeat", "process", "threads",
           "micro", "padding", "layout", "one-ulp", "f64",
           models->device.attribute_count > 0 ? "   device" : "");
    for (uint32_t i = 0; i < models->count; i++)
        print_line(&models->lines[i], models->device.attribute_count > 0);
    printf("\nmodel: family, task, layers x hidden. equal: tensors whose gradient is bit-equal at "
           "the first update that\ndiffers; tensor, total: largest relative difference of a "
           "gradient norm there, of one tensor and of all; the\nother columns: tensor. =: "
           "bit-equal in every way the stratum is measured; -: untestable (--json says why).\n"
           "%u strata bit-equal, %u not\n",
           counts->equal, counts->apart);
    for (uint32_t i = 0; i < asking->mode_count; i++) /* one line tells it of every model */
        print_reset(models, asking->modes[i]);
    if (models->device.attribute_count > 0) printf("device %s\n", models->device_line);
}

struct listing {
    json_t *list;
    uint64_t steps;
};

static void add_case(void *context, const struct noise_model *model, const struct noise_case *one) {
    const struct listing *const listing = (const struct listing *)context;
    json_t *object = noise_case_json(one, listing->steps);
    json_object_set_new(object, "family", json_string(model->family));
    json_object_set_new(object, "task", json_string(model->task));
    json_object_set_new(object, "layers", json_integer(model->layers));
    json_object_set_new(object, "hidden", json_integer(model->hidden));
    json_array_append_new(listing->list, object);
}

enum status noise_run_models(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_models models;
    uint64_t repeats;
    if (options->argument_count != 0 || options->output != NULL)
        FAIL(STATUS_INPUT,
             "noise: --models measures models of its own: expected no scenario and no output");
    TRY(noise_read_lists(asking, "invariant,deterministic,fast,shuffled,atomic", "bf16"));
    TRY(noise_read_number(options, KEY_STEPS, "steps", 1000, 1, &asking->steps));
    TRY(noise_read_number(options, KEY_REPEAT, "repeat", 1000, 1, &repeats));
    TRY(noise_read_number(options, KEY_THREADS, "threads", 1024, 0, &asking->threads));
    const struct noise_words words = noise_words_of(asking);
    TRY(noise_words_check(&words));
    asking->repeats = (uint32_t)repeats;
    struct listing listing = {options->json ? json_array() : NULL, asking->steps};
    const struct noise_models_request request = {.of = noise_request_of(asking, NULL),
                                                 .schema = asking->cli->schema,
                                                 .sets = options->sets,
                                                 .set_count = options->set_count,
                                                 .words = words,
                                                 .threads = asking->threads,
                                                 .measured = options->json ? add_case : NULL,
                                                 .context = &listing};
    const enum status status = noise_models_measure(&request, &asking->cli->arena, &models);
    progress_close(asking->progress);
    if (status != STATUS_OK) {
        json_decref(listing.list);
        return status;
    }
    const struct noise_counts counts = noise_models_count(&models);
    *out_exit = noise_exit(counts.equal, counts.apart);
    if (options->json)
        return json_print(json_pack(
            "{so sI si sI sI so}", "device", noise_device_json(&models.device), "updates",
            (json_int_t)asking->steps, "repeats", (int)asking->repeats, "bit_equal",
            (json_int_t)counts.equal, "apart", (json_int_t)counts.apart, "cases", listing.list));
    print_all(asking, &models, &counts);
    return STATUS_OK;
}
