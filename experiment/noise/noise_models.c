/* SPDX-License-Identifier: Apache-2.0
 * Builds each model of the ladder as a scenario of its own and measures it. Each case has an arena
 * of its own, and what is kept of it is copied, so that memory does not grow with the ladder. */
#include "experiment/noise/noise_models.h"

#include <string.h>

static const char *const families[] = {"olmo2", "llama"};
static const char *const tasks[] = {"sft", "dpo"};
static const unsigned depths[] = {1, 4, 16}, widths[] = {32, 128};
_Static_assert(COUNT_OF(families) * COUNT_OF(tasks) * COUNT_OF(depths) * COUNT_OF(widths) ==
                   NOISE_MODELS,
               "NOISE_MODELS is the size of the ladder");

/* The width of the SwiGLU has the same ratio to `hidden` as in the default model: 172 to 64. */
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

/* The width varies fastest, the family slowest. */
static struct noise_model model_of(size_t index) {
    const size_t width = index % COUNT_OF(widths), rest = index / COUNT_OF(widths);
    const size_t depth = rest % COUNT_OF(depths), kind = rest / COUNT_OF(depths);
    return (struct noise_model){families[kind / COUNT_OF(tasks)], tasks[kind % COUNT_OF(tasks)],
                                depths[depth], widths[width]};
}

static enum status open_model(const struct noise_models_request *request, size_t index,
                              struct arena *arena, struct scenario **out) {
    const struct noise_model model = model_of(index);
    char *text;
    TRY(arena_format(arena, &text, scenario_form, (uintmax_t)request->of.steps, model.task,
                     model.family, model.layers, model.hidden, model.hidden * 172 / 64));
    return scenario_parse(arena, request->schema, "builtin:models", text, strlen(text),
                          request->sets, request->set_count, out);
}

static void raise_to(double *value, double other) {
    if (other > *value) *value = other;
}

/* The stratum f64 always differs: its runs have other dtypes, so that no bit can be compared. */
static void add_row(const struct noise_row *row, struct noise_models_cell *into) {
    const struct noise_figures *figures = &row->figures;
    if (row->untestable[0] != '\0') return;
    if (into->measured == 0 || figures->gradients_equal < into->equal)
        into->equal = figures->gradients_equal;
    into->measured++;
    into->apart += row->stratum == NOISE_F64 || figures->first != 0;
    into->tensors = figures->tensors;
    raise_to(&into->tensor, figures->tensor_relative);
    raise_to(&into->total, figures->total_relative);
}

/* `config` gets the model's configuration as it was before mode and dtype were put into it. */
static enum status measure_in(const struct noise_models_request *request, size_t index,
                              struct noise_models_line *line, struct arena *arena,
                              struct config *config) {
    struct noise_case one = {.mode = line->mode, .dtype = line->dtype};
    struct noise_request of = request->of;
    struct scenario *scenario;
    TRY(open_model(request, index, arena, &scenario));
    one.config = &scenario->arms[0].config;
    *config = *one.config;
    line->model = (struct noise_model){
        family_name(one.config->model.family), one.config->task == TASK_DPO ? "dpo" : "sft",
        (unsigned)one.config->model.layers, (unsigned)one.config->model.hidden};
    TRY(noise_case_set_up(&one, request->threads, one.config));
    memcpy(line->reset, one.reset, sizeof line->reset);
    of.config = one.config;
    of.progress = NULL; /* it counts cases here, not strata */
    TRY(noise_case_measure(&of, arena, &one));
    memcpy(line->untestable, one.untestable, sizeof line->untestable);
    for (uint32_t i = 0; i < one.table.count; i++)
        add_row(&one.table.rows[i], &line->cells[one.table.rows[i].stratum]);
    if (request->measured != NULL) request->measured(request->context, &line->model, &one);
    return STATUS_OK;
}

enum status noise_models_measure(const struct noise_models_request *request, struct arena *arena,
                                 struct noise_models *out) {
    const struct noise_words *const words = &request->words;
    const uint64_t total = (uint64_t)NOISE_MODELS * words->mode_count * words->dtype_count;
    struct config *config;
    char *line;
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, (size_t)total, sizeof *out->lines, "ladder", &out->lines));
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    noise_tell(&request->of, "models", 0, total);
    for (size_t i = 0; i < NOISE_MODELS; i++)
        for (uint32_t d = 0; d < words->dtype_count; d++)
            for (uint32_t m = 0; m < words->mode_count; m++) {
                struct noise_models_line *const at = &out->lines[out->count++];
                at->mode = words->modes[m];
                at->dtype = words->dtypes[d];
                struct arena scratch = ARENA_EMPTY;
                const enum status status = measure_in(request, i, at, &scratch, config);
                arena_close(&scratch);
                TRY(status);
                noise_tell(&request->of, "models", out->count, total);
            }
    TRY(backends_of_config(config, arena, &out->device));
    TRY(backends_line(&out->device, arena, &line));
    out->device_line = line;
    return STATUS_OK;
}

struct noise_counts noise_models_count(const struct noise_models *models) {
    struct noise_counts counts = {0, 0, 0};
    for (uint32_t i = 0; i < models->count; i++)
        for (int s = 0; s < NOISE_STRATA; s++) {
            const struct noise_models_cell *const cell = &models->lines[i].cells[s];
            if (s == NOISE_ONE_ULP || s == NOISE_F64) continue;
            counts.apart += cell->apart;
            counts.equal += cell->measured - cell->apart;
        }
    return counts;
}
