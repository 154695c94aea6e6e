/* SPDX-License-Identifier: Apache-2.0
 * Describes the trace that a plan will fill, then fills it. The image that the judge reads has the
 * arms' and pairs' rows by a window on the file, so memory does not grow with them. */
#define _GNU_SOURCE /* fopencookie */
#include "experiment/experiment_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "determinism/floor_file.h"
#include "evidence/eval_seen.h"
#include "evidence/first_place.h"
#include "experiment/backend_record.h"
#include "experiment/experiment_series.h"
#include "experiment/hybrid_values.h"
#include "trainer/snapshot.h"

#define ARRAYS_MAX 34

static const char *const texts[] = {"verdict/json", "verdict/text", FIRST_PLACE_PATH,
                                    REPLAY_CHECK_PATH}; /* the last one where it was asked for */

struct trace_array_plan experiment_array(const char *path, uint64_t rows, uint64_t columns,
                                         const char *unit, const char *about) {
    return (struct trace_array_plan){.path = path,
                                     .rank = columns == 0 ? 1 : 2,
                                     .shape = {rows, columns == 0 ? 1 : columns},
                                     .units = unit,
                                     .long_name = about};
}

static int multiplies_by_library(const struct experiment_plan *plan) {
    for (uint32_t i = 0; i < plan->run_count; i++)
        if (config_uses_cublas(&plan->runs[i].config)) return 1;
    return 0;
}

static void plan_eval(const struct experiment_plan *plan, struct trace_array_plan *list,
                      uint32_t *count) {
    const uint32_t rows[] = {plan->eval.held_out, plan->eval.trained};
    for (int set = 0; set < EVAL_SETS; set++) {
        if (rows[set] == 0) continue;
        list[(*count)++] = experiment_array(eval_paths[set].end, plan->run_count, EVAL_VALUES, "1",
                                            "by run, last weights: loss, reward margin and "
                                            "accuracy, log-prob chosen, rejected, tied pairs");
        list[(*count)++] = experiment_array(eval_paths[set].start, 2, EVAL_VALUES, "1",
                                            "the same of both arms before update 1");
        list[(*count)++] = experiment_array(eval_paths[set].line, rows[set], 0, "1",
                                            "line of each row in its source");
    }
}

static enum status plan_arrays(const struct experiment_plan *plan, struct arena *arena,
                               struct trace_array_plan **out, uint32_t *out_count) {
    struct trace_array_plan *list;
    TRY(arena_take(arena, ARRAYS_MAX, sizeof *list, "arrays", &list));
    uint32_t count = 0;
    const uint64_t runs = (uint64_t)plan->floor_runs[0] + plan->floor_runs[1];
    const uint64_t ends = (uint64_t)plan->projection_runs << plan->factor_count;
    if (plan->floor == FLOOR_EXACT) {
        list[count++] = experiment_array("floor/equal", 2, 0, "1",
                                         "rerun equal to the baseline: in process, in a second");
    } else {
        list[count++] = experiment_array("floor/distance", runs, runs, "1",
                                         "parameter distance of the floor's end points");
        list[count++] =
            experiment_array("floor/loss", runs, 0, "nat", "last loss of the floor's runs");
    }
    if (plan->floor == FLOOR_FILE)
        list[count++] = experiment_array("floor/pairs", plan->scenario->floor.file->pairs, 0, "1",
                                         "distance of each A/A pair of the floor file");
    if (plan->attributable) {
        list[count++] = experiment_array("attribution/value", plan->hybrid_count, 0, "1",
                                         "|theta_S - theta_baseline| by mask of factors");
        list[count++] = experiment_array("attribution/closure", 3, 0, "1",
                                         "full hybrid equals test; forked at; updates");
        if (plan->floor != FLOOR_EXACT)
            list[count++] = experiment_array("attribution/closure_distance", plan->floor_runs[1], 0,
                                             "1", "full hybrid to each run of test");
        hybrid_values_plan(plan, list, &count);
        if (plan->projection_runs > 0)
            list[count++] = experiment_array("attribution/gram", ends, ends, "1",
                                             "inner products of end points, by hybrid and run");
    }
    list[count++] = experiment_array(STEPS_MEANT_PATH, 2, plan->scenario->steps, "1",
                                     "by arm and update: elements whose step was not 0");
    list[count++] = experiment_array(STEPS_LOST_PATH, 2, plan->scenario->steps, "1",
                                     "of these, elements that rounding left where they were");
    if (plan->perturbed > 0)
        list[count++] = experiment_array(
            RESPONSE_PATH, plan->scenario->steps, 0, "1",
            "distance of the perturbed run over all elements but the perturbed one, by update");
    if (plan->attributable && plan->orders.count > 0) {
        list[count++] = experiment_array("attribution/mask", plan->hybrid_count, 0, "1",
                                         "mask of factors of each value");
        list[count++] =
            experiment_array("attribution/order", plan->orders.count, plan->orders.factors, "1",
                             "factor that enters, by sampled order and place");
    }
    if (plan->eval.held_out > 0) plan_eval(plan, list, &count);
    if (multiplies_by_library(plan))
        list[count++] = experiment_array(
            PRODUCTS_PATH, plan->run_count, PRODUCTS_COLUMNS, "1",
            "by run: linear products, those of the kernel of invariant, M, N, K of the first");
    *out = list;
    *out_count = count;
    return STATUS_OK;
}

static void plan_runs(const struct experiment_plan *plan, struct trace_run_plan *out) {
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct planned_run *run = &plan->runs[i];
        out[i] = (struct trace_run_plan){.id = run->id,
                                         .arm = plan->runs[run->arm].id,
                                         .replicate = run->replicate,
                                         .mask = run->mask,
                                         .first_step = 1,
                                         .shape = run->axes.shape,
                                         .phases = run->axes.phases,
                                         .sites = run->axes.sites,
                                         .tensors = run->axes.tensors,
                                         .consumers = run->axes.consumers,
                                         .streams = run->axes.streams,
                                         .groups = run->axes.groups,
                                         .configuration = run->text};
    }
}

/* Lays the image out as the plan says, arrays filled with NaN until their values arrive. Those with
 * a number of each update are read from the file. */
static enum status open_image(struct experiment_trace *output, const struct trace_plan *plan,
                              struct arena *arena) {
    struct trace_image *image = &output->image;
    image->complete = 1;
    image->seal = TRACE_SEAL_WHOLE;
    TRY(arena_take(arena, plan->run_count, sizeof *image->runs, "image", &image->runs));
    TRY(arena_take(arena, plan->pair_count, sizeof *image->pairs, "image", &image->pairs));
    TRY(arena_take(arena, plan->array_count, sizeof *image->arrays, "image", &image->arrays));
    TRY(arena_take(arena, plan->text_count, sizeof *image->texts, "image", &image->texts));
    image->run_count = plan->run_count;
    image->pair_count = plan->pair_count;
    image->array_count = plan->array_count;
    image->attributes = (struct trace_attribute *)(void *)(uintptr_t)plan->attributes;
    image->attribute_count = plan->attribute_count;
    for (uint32_t i = 0; i < plan->run_count; i++)
        image->runs[i].plan = plan->runs[i];
    for (uint32_t i = 0; i < plan->pair_count; i++)
        image->pairs[i].plan = plan->pairs[i];
    for (uint32_t i = 0; i < plan->array_count; i++) {
        size_t count = (size_t)(plan->arrays[i].shape[0] * plan->arrays[i].shape[1]);
        double *values;
        image->arrays[i].plan = plan->arrays[i];
        if (experiment_is_series(plan->arrays[i].path)) continue; /* follow() reads it */
        TRY(arena_take(arena, count, sizeof *values, "image", &values));
        for (size_t j = 0; j < count; j++)
            values[j] = (double)NAN;
        image->arrays[i].values = values;
    }
    return STATUS_OK;
}

static enum status follow(struct experiment_trace *output, struct arena *arena) {
    for (uint32_t i = 0; i < 2; i++)
        TRY(trace_follow_run(output->trace, i, arena, &output->image.runs[i]));
    for (uint32_t i = 0; i < output->image.pair_count; i++)
        TRY(trace_follow_pair(output->trace, i, arena, &output->image.pairs[i]));
    for (uint32_t i = 0; i < output->image.array_count; i++) {
        struct trace_array *const array = &output->image.arrays[i];
        if (experiment_is_series(array->plan.path))
            TRY(trace_follow_array(output->trace, array->plan.path, arena, array));
    }
    return STATUS_OK;
}

static enum status open_products(struct experiment_trace *output, struct arena *arena) {
    const size_t count = (size_t)output->image.run_count * PRODUCTS_COLUMNS;
    TRY(arena_take(arena, count, sizeof *output->products, "products", &output->products));
    for (size_t i = 0; i < count; i++)
        output->products[i] = (double)NAN;
    return STATUS_OK;
}

/* The image holds every array but series, and most of those who put one hold it, too. */
static enum status ask_room(const struct experiment_plan *plan,
                            const struct experiment_options *options,
                            const struct experiment_needs *but_trace,
                            const struct trace_plan *trace) {
    struct experiment_needs needs = *but_trace;
    needs.disk = trace_plan_bytes(trace, plan->scenario->steps);
    for (uint32_t i = 0; i < trace->array_count; i++)
        if (!experiment_is_series(trace->arrays[i].path))
            needs.memory += 16 * trace->arrays[i].shape[0] * trace->arrays[i].shape[1];
    return options->room == NULL ? STATUS_OK : options->room(options->context, &needs);
}

/* What is held against a limit stands before trace_create(), so that a refusal leaves no file. What
 * fails after it leaves out->trace open: the caller ends it (experiment_run does by trace_abandon).
 */
enum status experiment_trace_open(const struct experiment_plan *plan, const struct resume *resume,
                                  const struct experiment_options *options,
                                  const struct trace_snapshot_plan *snapshots,
                                  const struct experiment_needs *needs, struct arena *arena,
                                  struct experiment_trace *out) {
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->distance = (double)NAN;
    struct experiment_attributes attributes = {NULL, 0};
    struct trace_array_plan *arrays;
    struct trace_run_plan *runs;
    struct trace_pair_plan *pair;
    uint32_t array_count;
    TRY(experiment_describe(plan, options, arena, &attributes));
    TRY(resume_check_backends(resume, attributes.list, attributes.count));
    TRY(plan_arrays(plan, arena, &arrays, &array_count));
    TRY(arena_take(arena, plan->run_count, sizeof *runs, "trace", &runs));
    TRY(arena_take(arena, 2, sizeof *pair, "trace", &pair));
    plan_runs(plan, runs);
    for (uint32_t i = 0; i < plan->run_count && snapshots != NULL; i++)
        runs[i].snapshots = snapshots[i];
    out->every = snapshots == NULL ? 0 : plan->scenario->record.snapshots;
    pair[0] = (struct trace_pair_plan){plan->runs[0].id, plan->runs[1].id};
    if (plan->perturbed > 0)
        pair[1] = (struct trace_pair_plan){plan->runs[0].id, plan->runs[plan->perturbed].id};
    const int checks = plan->scenario->record.replay_check != 0;
    struct trace_plan trace = {.runs = runs,
                               .run_count = plan->run_count,
                               .pairs = pair,
                               .pair_count = plan->perturbed > 0 ? 2 : 1,
                               .arrays = arrays,
                               .array_count = array_count,
                               .texts = texts,
                               .text_count = COUNT_OF(texts) - !checks,
                               .attributes = attributes.list,
                               .attribute_count = attributes.count,
                               .updates = plan->scenario->steps,
                               .overwrite = options->overwrite};
    TRY(ask_room(plan, options, needs, &trace));
    TRY(open_image(out, &trace, arena));
    if (multiplies_by_library(plan)) TRY(open_products(out, arena));
    TRY(trace_create(options->path, &trace, arena, &out->trace));
    return follow(out, arena);
}

enum status experiment_trace_record(struct experiment_trace *output, uint32_t run,
                                    const struct record *record) {
    TRY(trace_put_record(output->trace, run, record));
    output->image.runs[run].updates += run < 2;
    return STATUS_OK;
}

enum status experiment_trace_state(struct experiment_trace *output, uint32_t index,
                                   const struct run *run, uint64_t step, int start) {
    if (output->products != NULL)
        products_of_run(run, output->products + (size_t)index * PRODUCTS_COLUMNS);
    if (output->every == 0 || (!start && step % output->every != 0)) return STATUS_OK;
    return snapshot_put(output->trace, index, run, step);
}

enum status experiment_trace_pair(struct experiment_trace *output, uint32_t index,
                                  const struct pair_record *record) {
    TRY(trace_put_pair(output->trace, index, record));
    output->image.pairs[index].updates++;
    return STATUS_OK;
}

enum status experiment_trace_array(struct experiment_trace *output, const char *path,
                                   const double *values) {
    const struct trace_array *const array = trace_array_of(&output->image, path);
    if (array != NULL)
        memcpy((double *)(uintptr_t)array->values, values,
               (size_t)(array->plan.shape[0] * array->plan.shape[1]) * sizeof *values);
    return trace_put_array(output->trace, path, values);
}

enum status experiment_trace_text(struct experiment_trace *output, const char *path,
                                  const char *text) {
    struct trace_image *image = &output->image;
    struct trace_text *last = &image->texts[image->text_count++];
    *last = (struct trace_text){path, text, strlen(text)};
    return trace_put_text(output->trace, path, text, last->length);
}

/* What is printed, gathered in an arena. open_memstream() would not do: where memory lacks, glibc's
 * fclose() of such a stream succeeds and leaves no text, and prints before it may be cut short. */
struct gathered {
    struct arena *arena;
    char *text;
    size_t length, room;
};

static ssize_t gather(void *cookie, const char *bytes, size_t count) {
    struct gathered *const to = (struct gathered *)cookie;
    if (arena_grow(to->arena, to->length + count, &to->room, 1, "printed text", &to->text) !=
        STATUS_OK)
        return 0; /* the stream remembers it as an error */
    memcpy(to->text + to->length, bytes, count);
    to->length += count;
    return (ssize_t)count;
}

static enum status put_printed(struct experiment_trace *output, const char *path,
                               const struct judgement *judgement, struct arena *arena,
                               enum status (*print)(const struct judgement *, FILE *)) {
    const cookie_io_functions_t calls = {.write = gather};
    struct gathered printed = {.arena = arena};
    FILE *stream = fopencookie(&printed, "w", calls);
    if (stream == NULL) FAIL(STATUS_MEMORY, "%s: no memory", path);
    enum status status = print(judgement, stream);
    int failed = fflush(stream) != 0 || ferror(stream);
    failed |= fclose(stream) != 0;
    if (failed && status == STATUS_OK) status = status_fail(STATUS_MEMORY, "%s: no memory", path);
    if (status != STATUS_OK) return status;
    return trace_put_text(output->trace, path, printed.text, printed.length);
}

static enum status print_text(const struct judgement *judgement, FILE *out) {
    judgement_print(judgement, out);
    return STATUS_OK;
}

enum status experiment_trace_judge(struct experiment_trace *output, struct arena *arena,
                                   struct judgement *out) {
    if (output->products != NULL)
        TRY(experiment_trace_array(output, PRODUCTS_PATH, output->products));
    TRY(judge(&output->image, arena, out));
    TRY(put_printed(output, "verdict/json", out, arena, judgement_print_json));
    return put_printed(output, "verdict/text", out, arena, print_text);
}
