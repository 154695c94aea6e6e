/* SPDX-License-Identifier: Apache-2.0
 * The ladder is the product of families, tasks, depths and widths. Each case has an arena of its
 * own: what is printed of it is copied first, so that memory does not grow with the ladder. */
#include "cli/noise_models.h"

#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "scenarios/scenario.h"

#define MODEL_NAME_SIZE 48

static const char *const families[] = {"olmo2", "llama"};
static const char *const tasks[] = {"sft", "dpo"};
static const unsigned depths[] = {1, 4, 16}, widths[] = {32, 128};
#define MODELS (COUNT_OF(families) * COUNT_OF(tasks) * COUNT_OF(depths) * COUNT_OF(widths))

/* Width of the SwiGLU as in the default model, 172 of 64. */
static const char scenario_form[] = "twinstep: 1\n"
                                    "name: models\n"
                                    "about: One model of the ladder of noise floors\n"
                                    "steps: %ju\n"
                                    "common:\n"
                                    "  task: %s\n"
                                    "  model: {family: %s, layers: %u, hidden: %u, mlp: %u}\n"
                                    "  data: {max_len: 96}\n"
                                    "  optimizer: {lr: 1e-5}\n"
                                    "  batch: {size: 2, micro: 1}\n"
                                    "arms:\n"
                                    "  baseline: {}\n"
                                    "  test: {}\n";

struct rung {
    const char *family, *task;
    unsigned layers, hidden;
};

/* The worst variant of a stratum. */
struct cell {
    uint32_t measured, apart; /* variants */
    uint32_t tensors, equal;  /* gradients bit-equal */
    double tensor, total;
};

struct line {
    char model[MODEL_NAME_SIZE];
    const char *mode, *dtype;
    char untestable[NOISE_REASON_SIZE];
    struct cell cells[NOISE_STRATA];
};

struct climbing {
    const struct noise_models *models;
    struct config config; /* of a model, for what it runs on */
    struct backend_seen device;
    struct line *lines;
    uint32_t count;
    json_t *list; /* NULL: text */
};

static struct rung model_of(size_t index) {
    const size_t width = index % COUNT_OF(widths), rest = index / COUNT_OF(widths);
    const size_t depth = rest % COUNT_OF(depths), kind = rest / COUNT_OF(depths);
    return (struct rung){families[kind / COUNT_OF(tasks)], tasks[kind % COUNT_OF(tasks)],
                         depths[depth], widths[width]};
}

static enum status open_model(const struct noise_models *models, const struct rung *model,
                              struct arena *arena, struct scenario **out) {
    char *text;
    TRY(arena_format(arena, &text, scenario_form, (uintmax_t)models->steps, model->task,
                     model->family, model->layers, model->hidden, model->hidden * 172 / 64));
    return scenario_parse(arena, models->cli->schema, "builtin:models", text, strlen(text),
                          models->options->sets, models->options->set_count, out);
}

/* What was built, --set included. */
static struct rung rung_of(const struct config *config) {
    return (struct rung){family_name(config->model.family),
                         config->task == TASK_DPO ? "dpo" : "sft", (unsigned)config->model.layers,
                         (unsigned)config->model.hidden};
}

static void raise_to(double *value, double other) {
    if (other > *value) *value = other;
}

static void add_row(const struct noise_row *row, struct cell *into) {
    const struct noise_figures *figures = &row->figures;
    const int f64 = row->stratum == NOISE_F64;
    if (row->untestable[0] != '\0') return;
    if (into->measured == 0 || figures->gradients_equal < into->equal)
        into->equal = figures->gradients_equal;
    into->measured++;
    into->apart += f64 || figures->first != 0;
    into->tensors = figures->tensors;
    raise_to(&into->tensor, figures->tensor_relative);
    raise_to(&into->total, figures->total_relative);
}

static void keep_case(const struct noise_case *one, struct line *out) {
    memcpy(out->untestable, one->untestable, sizeof out->untestable);
    for (uint32_t i = 0; i < one->table.count; i++)
        add_row(&one->table.rows[i], &out->cells[one->table.rows[i].stratum]);
}

static enum status measure_in(struct climbing *climbing, const struct rung *model,
                              struct noise_case *one, struct arena *arena, struct line *line) {
    const struct noise_models *models = climbing->models;
    struct scenario *scenario;
    TRY(open_model(models, model, arena, &scenario));
    one->config = &scenario->arms[0].config;
    climbing->config = *one->config;
    const struct rung rung = rung_of(one->config);
    snprintf(line->model, sizeof line->model, "%s %s %ux%u", rung.family, rung.task, rung.layers,
             rung.hidden);
    TRY(noise_case_set_up(one, models->threads, one->config));
    const struct noise_request request = {.config = one->config,
                                          .steps = models->steps,
                                          .resolved = models->steps,
                                          .repeats = models->repeats,
                                          .processors = models->processors,
                                          .process = models->process,
                                          .context = models->cli,
                                          .interrupted = models->cli->interrupted};
    TRY(noise_case_measure(&request, arena, one));
    keep_case(one, line);
    if (climbing->list == NULL) return STATUS_OK;
    json_t *object = noise_case_json(one, models->steps);
    json_object_set_new(object, "family", json_string(rung.family));
    json_object_set_new(object, "task", json_string(rung.task));
    json_object_set_new(object, "layers", json_integer(rung.layers));
    json_object_set_new(object, "hidden", json_integer(rung.hidden));
    json_array_append_new(climbing->list, object);
    return STATUS_OK;
}

static enum status measure_line(struct climbing *climbing, size_t index, const char *mode,
                                const char *dtype) {
    const struct rung model = model_of(index);
    struct noise_case one = {.mode = mode, .dtype = dtype};
    struct line *line = &climbing->lines[climbing->count++];
    struct arena arena = ARENA_EMPTY;
    line->mode = mode;
    line->dtype = dtype;
    const enum status status = measure_in(climbing, &model, &one, &arena, line);
    arena_close(&arena);
    return status;
}

static enum status measure_all(struct climbing *climbing) {
    const struct noise_models *models = climbing->models;
    const uint64_t total = (uint64_t)MODELS * models->mode_count * models->dtype_count;
    TRY(arena_take(&models->cli->arena, (size_t)total, sizeof *climbing->lines, "ladder",
                   &climbing->lines));
    progress_count(models->progress, "models", 0, total);
    for (size_t i = 0; i < MODELS; i++)
        for (uint32_t d = 0; d < models->dtype_count; d++)
            for (uint32_t m = 0; m < models->mode_count; m++) {
                TRY(measure_line(climbing, i, models->modes[m], models->dtypes[d]));
                progress_count(models->progress, "models", climbing->count, total);
            }
    return STATUS_OK;
}

static int is_meant(int stratum) {
    return stratum == NOISE_ONE_ULP || stratum == NOISE_F64;
}

static void count_cells(const struct climbing *climbing, uint32_t *equal, uint32_t *apart) {
    *equal = *apart = 0;
    for (uint32_t i = 0; i < climbing->count; i++)
        for (int s = 0; s < NOISE_STRATA; s++) {
            const struct cell *cell = &climbing->lines[i].cells[s];
            if (is_meant(s)) continue;
            *apart += cell->apart;
            *equal += cell->measured - cell->apart;
        }
}

static void print_cell(const struct cell *cell) {
    if (cell->measured == 0)
        printf("  %7s", "-");
    else if (cell->apart == 0)
        printf("  %7s", "=");
    else
        printf("  %7.1e", cell->tensor);
}

static void print_line(const struct line *line, int device) {
    static const enum noise_stratum order[] = {NOISE_REPEAT,  NOISE_PROCESS, NOISE_THREADS,
                                               NOISE_MICRO,   NOISE_PADDING, NOISE_LAYOUT,
                                               NOISE_ONE_ULP, NOISE_F64};
    const struct cell *instance = &line->cells[NOISE_INSTANCE];
    char equal[32];
    printf("%-17s  %-5s  %-13s", line->model, line->dtype, line->mode);
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

static void print_all(const struct climbing *climbing, uint32_t equal, uint32_t apart) {
    const struct noise_models *models = climbing->models;
    printf("noise of %zu models: %ju update%s, worst of %u repeat%s\n\n%-39s  %s\n", MODELS,
           (uintmax_t)models->steps, models->steps == 1 ? "" : "s", models->repeats,
           models->repeats == 1 ? "" : "s", "", "two instances");
    printf("%-17s  %-5s  %-13s  %10s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s  %7s%s\n",
           "model", "dtype", "mode", "equal", "tensor", "total", "repeat", "process", "threads",
           "micro", "padding", "layout", "one-ulp", "f64",
           climbing->device.attribute_count > 0 ? "   device" : "");
    for (uint32_t i = 0; i < climbing->count; i++)
        print_line(&climbing->lines[i], climbing->device.attribute_count > 0);
    printf("\nmodel: family, task, layers x hidden. equal: tensors whose gradient is bit-equal at "
           "the first update that\ndiffers; tensor, total: largest relative difference of a "
           "gradient norm there, of one tensor and of all; the\nother columns: tensor. =: "
           "bit-equal in every way the stratum is measured; -: untestable (--json says why).\n"
           "%u strata bit-equal, %u not\n",
           equal, apart);
}

enum status noise_models_run(const struct noise_models *models, int *out_exit) {
    struct climbing climbing = {.models = models};
    uint32_t equal, apart;
    if (models->options->json) climbing.list = json_array();
    char *line;
    enum status status = measure_all(&climbing);
    if (status == STATUS_OK)
        status = backends_of_config(&climbing.config, &models->cli->arena, &climbing.device);
    if (status == STATUS_OK) status = backends_line(&climbing.device, &models->cli->arena, &line);
    progress_close(models->progress);
    if (status != STATUS_OK) {
        json_decref(climbing.list);
        return status;
    }
    count_cells(&climbing, &equal, &apart);
    *out_exit = apart != 0 ? EXIT_DIFFERS : equal != 0 ? EXIT_AS_EXPECTED : EXIT_UNTESTABLE;
    if (models->options->json)
        return json_print(json_pack(
            "{so sI si sI sI so}", "device", noise_device_json(&climbing.device), "updates",
            (json_int_t)models->steps, "repeats", (int)models->repeats, "bit_equal",
            (json_int_t)equal, "apart", (json_int_t)apart, "cases", climbing.list));
    print_all(&climbing, equal, apart);
    if (climbing.device.attribute_count > 0) printf("device %s\n", line);
    return STATUS_OK;
}
