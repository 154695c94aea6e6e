/* SPDX-License-Identifier: Apache-2.0
 * The strata of every mode and dtype that was asked for, and the A/A pairs of a floor file. */
#include "cli/noise_measuring.h"

#include <string.h>

#include "cli/noise_case.h"
#include "cli/noise_file.h"
#include "cli/second.h"

enum status noise_measuring_process(void *context, const struct config *config, uint64_t steps,
                                    unsigned char *out_path, size_t size) {
    const struct cli *cli = (const struct cli *)context;
    return second_process_path(config, steps, cli->interrupted, out_path, size);
}

static void show(void *context, const char *what, uint64_t done, uint64_t total) {
    struct progress *progress = (struct progress *)context;
    progress_count(progress, what, done, total);
}

struct noise_request noise_measuring_request(const struct noise_asking *asking,
                                             const struct config *config) {
    return (struct noise_request){.config = config,
                                  .steps = asking->steps,
                                  .resolved = asking->scenario->steps,
                                  .repeats = asking->repeats,
                                  .processors = asking->processors,
                                  .process = noise_measuring_process,
                                  .context = asking->cli,
                                  .interrupted = asking->cli->interrupted,
                                  .progress = show,
                                  .progress_context = asking->progress};
}

/* Where the noise of runs that are told to be the same arose. */
static enum status find_parts(struct noise_case *one, struct arena *arena) {
    static const enum noise_stratum order[] = {NOISE_INSTANCE, NOISE_PROCESS, NOISE_REPEAT};
    one->parts_of = "";
    for (size_t i = 0; i < COUNT_OF(order) && one->parts == NULL; i++)
        for (uint32_t r = 0; r < one->table.count; r++) {
            const struct noise_row *row = &one->table.rows[r];
            if (row->stratum != order[i] || row->figures.first == 0) continue;
            one->parts_of = noise_stratum_name(row->stratum);
            TRY(arena_take(arena, 1, sizeof *one->parts, "parts", &one->parts));
            TRY(noise_parts_of(&one->table.layout, &row->figures, arena, one->parts));
            break;
        }
    return STATUS_OK;
}

static enum status measure_case(const struct noise_asking *asking, struct noise_case *one) {
    TRY(arena_take(&asking->cli->arena, 1, sizeof *one->config, "configuration", &one->config));
    *one->config = asking->arm->config;
    TRY(noise_case_set_up(one, asking->threads, one->config));
    const struct noise_request request = noise_measuring_request(asking, one->config);
    TRY(noise_case_measure(&request, &asking->cli->arena, one));
    return find_parts(one, &asking->cli->arena);
}

enum status noise_measuring_device(const struct noise_asking *asking, struct noise_report *out) {
    struct arena *arena = &asking->cli->arena;
    char *line;
    TRY(backends_of_config(&asking->arm->config, arena, &out->device));
    TRY(backends_line(&out->device, arena, &line));
    out->device_line = line;
    return STATUS_OK;
}

static int is_measured(const struct noise_case *one, int32_t mode) {
    return one->untestable[0] == '\0' && one->config->numerics.mode == mode &&
           one->table.path != NULL && one->table.instance != NULL;
}

/* Two orders against their neutral reference, of each dtype that has both. */
static enum status relate_orders(const struct noise_asking *asking, struct noise_report *report) {
    struct arena *arena = &asking->cli->arena;
    for (uint32_t a = 0; a < report->count; a++)
        for (uint32_t b = 0; b < report->count; b++) {
            struct noise_case *one = &report->cases[a];
            const struct noise_case *other = &report->cases[b];
            if (!is_measured(one, MODE_SHUFFLED) || !is_measured(other, MODE_ORDER_FREE)) continue;
            if (strcmp(one->dtype, other->dtype) != 0) continue;
            TRY(arena_take(arena, 1, sizeof *one->orders, "orders", &one->orders));
            TRY(noise_orders_measure(&one->table, &other->table, arena, one->orders));
        }
    return STATUS_OK;
}

enum status noise_measuring_run(const struct noise_asking *asking, struct noise_report *out) {
    *out = (struct noise_report){.scenario = asking->scenario->name,
                                 .arm = asking->arm->name,
                                 .steps = asking->steps,
                                 .repeats = asking->repeats};
    const size_t count = (size_t)asking->mode_count * asking->dtype_count;
    TRY(arena_take(&asking->cli->arena, count, sizeof *out->cases, "cases", &out->cases));
    for (uint32_t m = 0; m < asking->mode_count; m++)
        for (uint32_t d = 0; d < asking->dtype_count; d++) {
            struct noise_case *one = &out->cases[out->count++];
            one->mode = asking->modes[m];
            one->dtype = asking->dtypes[d];
            TRY(measure_case(asking, one));
        }
    TRY(noise_measuring_device(asking, out));
    return relate_orders(asking, out);
}

enum status noise_measuring_write(const struct noise_asking *asking,
                                  const struct noise_report *report) {
    const struct options *options = asking->options;
    const struct noise_case *first = &report->cases[0];
    struct noise_writing writing = {.cli = asking->cli,
                                    .report = report,
                                    .scenario = asking->scenario,
                                    .config = first->config,
                                    .pairs = asking->pairs,
                                    .overwrite = options->overwrite,
                                    .reproducible = options->reproducible};
    if (options->output == NULL) return STATUS_OK;
    if (first->untestable[0] != '\0') FAIL(STATUS_UNTESTABLE, "noise: %s", first->untestable);
    const struct noise_request request = noise_measuring_request(asking, first->config);
    const struct noise_pairs_plan plan = {&request, first->config, asking->pairs, "A/A pairs",
                                          NOISE_PAIRS_RUN};
    TRY(noise_pairs_measure(&plan, &asking->cli->arena, writing.columns));
    return noise_file_write(options->output, &writing);
}
