/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --ops`: prints the ladder of operations, one table per mode and dtype, one line
 * per op. Each table is printed as soon as it is measured. */
#include <stdio.h>

#include "cli/json.h"
#include "cli/noise/noise_asking.h"
#include "experiment/noise/noise_ops.h"

struct text {
    char text[64];
};

static struct text cell_text(const struct noise_ops_cell *cell, int batch) {
    struct text out;
    if (cell->untestable != NULL)
        snprintf(out.text, sizeof out.text, "(%s)", cell->untestable);
    else if (cell->equal)
        snprintf(out.text, sizeof out.text, "bit-equal");
    else if (batch && cell->differing < cell->beyond)
        snprintf(out.text, sizeof out.text, "from %u: %u of %u, %jd ulp", cell->from,
                 cell->differing, cell->beyond, (intmax_t)cell->ulp);
    else if (batch)
        snprintf(out.text, sizeof out.text, "from %u on, %jd ulp", cell->from, (intmax_t)cell->ulp);
    else
        snprintf(out.text, sizeof out.text, "%jd ulp", (intmax_t)cell->ulp);
    return out;
}

/* Shows the rows that differ somewhere; the others are counted. */
static void print_rows(const struct noise_ops_row *rows, uint32_t count) {
    uint32_t equal = 0;
    for (uint32_t i = 0; i < count; i++)
        equal += noise_ops_is_equal(&rows[i]) != 0;
    printf("  %u of %u ops and sizes bit-equal in every class\n", equal, count);
    if (equal == count) return;
    printf("  %-19s %-10s %-27s %-10s %-10s %s\n", "op", "size", "batch", "threads", "repeat",
           "alignment");
    for (uint32_t i = 0; i < count; i++) {
        struct text cells[NOISE_OPS_CLASSES];
        if (noise_ops_is_equal(&rows[i])) continue;
        for (int c = 0; c < NOISE_OPS_CLASSES; c++)
            cells[c] = cell_text(&rows[i].cells[c], c == NOISE_OPS_BATCH);
        printf("  %-19s %-10s %-27s %-10s %-10s %s\n", rows[i].op, rows[i].size, cells[0].text,
               cells[1].text, cells[2].text, cells[3].text);
    }
}

static json_t *rows_json(const struct noise_ops_row *rows, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *row = json_pack("{ss ss}", "op", rows[i].op, "size", rows[i].size);
        for (int c = 0; c < NOISE_OPS_CLASSES; c++) {
            const struct noise_ops_cell *cell = &rows[i].cells[c];
            json_object_set_new(row, noise_ops_classes[c],
                                cell->untestable != NULL
                                    ? json_pack("{ss}", "untestable", cell->untestable)
                                    : json_pack("{sb sI sI sI so}", "bit_equal", cell->equal, "ulp",
                                                (json_int_t)cell->ulp, "differing",
                                                (json_int_t)cell->differing, "looked",
                                                (json_int_t)cell->looked, "from",
                                                json_positive(cell->from)));
        }
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *case_json(const struct noise_ops_case *one) {
    if (one->untestable[0] != '\0')
        return json_pack("{ss ss ss}", "mode", one->mode, "dtype", one->dtype, "untestable",
                         one->untestable);
    return json_pack("{ss ss so}", "mode", one->mode, "dtype", one->dtype, "ops",
                     rows_json(one->rows, one->count));
}

static void print_case(const struct noise_ops_case *one) {
    printf("%s, %s\n", one->mode, one->dtype);
    if (one->untestable[0] == '\0')
        print_rows(one->rows, one->count);
    else
        printf("  untestable: %s\n", one->untestable);
    printf("\n");
}

static enum status run_cases(const struct noise_asking *asking, const struct config *config,
                             json_t *list, uint32_t *equal, uint32_t *apart) {
    for (uint32_t m = 0; m < asking->mode_count; m++)
        for (uint32_t d = 0; d < asking->dtype_count; d++) {
            struct noise_ops_case one = {.mode = asking->modes[m], .dtype = asking->dtypes[d]};
            const enum status status = noise_ops_measure_case(
                config, (int)asking->threads, asking->cli->interrupted, &asking->cli->arena, &one);
            if (status != STATUS_OK) return status_prefix(status, "noise: --ops");
            *equal += one.equal;
            *apart += one.apart;
            if (list != NULL)
                json_array_append_new(list, case_json(&one));
            else
                print_case(&one);
        }
    return STATUS_OK;
}

static enum status with_option(enum status status, const char *option) {
    return status == STATUS_OK ? status : status_prefix(status, "noise: --ops: %s", option);
}

/* By default as many threads as there are processors, but at least 2, so that something can change,
 * and at most 64, which is also the most that can be asked for. */
static uint64_t standard_threads(uint64_t processors) {
    return processors < 2 ? 2 : processors < 64 ? processors : 64;
}

enum status noise_run_ops(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct arena *const arena = &asking->cli->arena;
    struct backend_seen device;
    uint32_t equal = 0, apart = 0;
    char *line;
    if (options->argument_count != 0 || options->output != NULL)
        FAIL(STATUS_INPUT, "noise: --ops measures operations: expected no scenario and no output");
    TRY(noise_read_lists(asking,
                         "invariant,shaped small-batch,shaped large-batch,shuffled,atomic,fast",
                         "f32,bf16"));
    for (uint32_t m = 0; m < asking->mode_count; m++)
        TRY(with_option(noise_ops_check_mode(asking->modes[m]), "--modes"));
    for (uint32_t d = 0; d < asking->dtype_count; d++)
        TRY(with_option(noise_ops_check_dtype(asking->dtypes[d]), "--dtypes"));
    TRY(noise_read_number(options, KEY_THREADS, "threads", 64, standard_threads(asking->processors),
                          &asking->threads));
    TRY(noise_load(asking));
    const struct config *const config = &asking->scenario->arms[0].config;
    json_t *list = options->json ? json_array() : NULL;
    enum status status = run_cases(asking, config, list, &equal, &apart);
    if (status == STATUS_OK) status = backends_of_config(config, arena, &device);
    if (status == STATUS_OK) status = backends_line(&device, arena, &line);
    if (status != STATUS_OK) {
        json_decref(list);
        return status;
    }
    *out_exit = noise_exit(equal, apart);
    if (options->json)
        return json_print(json_pack("{so so sI sI}", "device", noise_device_json(&device), "cases",
                                    list, "bit_equal", (json_int_t)equal, "apart",
                                    (json_int_t)apart));
    if (device.attribute_count > 0) printf("device %s\n", line);
    printf("batch: every row of a call of M rows against the same row alone, M = 2 to 96 and both "
           "sides of 128, 192, 256,\n384, 512, then bisection (attention: sequences of 33 tokens, "
           "M up to 24); dW and scatter: one call against two.\nthreads: 1 to %d. alignment: all "
           "buffers one element further on. ulp: largest, of the output's dtype.\n%u cells "
           "bit-equal, %u not\n",
           (int)asking->threads, equal, apart);
    return STATUS_OK;
}
